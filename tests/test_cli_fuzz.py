"""Damaged files: whatever is in them, a command ends soon, with a report or with one line.

`JAXMETRICS_FUZZ=2000` asks for more cases than the tests take time for.
"""

import gzip
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import polars as pl
import pytest
from hypothesis import strategies as st

from jaxmetrics import cli
from tests.command_line import save

NUM_CASES = int(os.environ.get("JAXMETRICS_FUZZ", "60"))
LONGEST = 20  # seconds
MOST_MEMORY = 2**20  # kB

FRAME = pl.DataFrame(
    {
        "y_true": ["cat", "dog", "owl"] * 40,
        "y_pred": ["cat", "dog", "dog"] * 40,
        "w": np.arange(120) / 7,
        "p_cat": [0.7, 0.2, 0.1] * 40,
        "p_dog": [0.2, 0.7, 0.1] * 40,
        "p_owl": [0.1, 0.1, 0.8] * 40,
    }
)


with tempfile.TemporaryDirectory() as temporary:
    FILES = {
        kind: save(FRAME, Path(temporary, f"x.{kind}")).read_bytes()
        for kind in ("csv", "jsonl", "parquet", "feather", "npz")
    }
    FRAME.write_ipc_stream(Path(temporary, "x"))
    FILES["arrow"] = Path(temporary, "x").read_bytes()
    columns: dict[str, Any] = FRAME.to_dict(as_series=False)
    np.savez_compressed(Path(temporary, "y.npz"), **columns)
    FILES["NPZ"] = Path(temporary, "y.npz").read_bytes()
FILES |= {f"{kind}.gz": gzip.compress(FILES[kind]) for kind in ("csv", "jsonl")}
OPTIONS = "", "--prob p_", "--weight w", "--counts", "--value w", "--group w", "--cluster w"


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """Draw a file some bytes of which were changed, left out, repeated or put in."""
    kind = draw(st.sampled_from(sorted(FILES)))
    data = bytearray(FILES[kind])
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        length = draw(st.sampled_from([1, 1, 2, 4, 8, 64]))
        new = draw(
            st.binary(min_size=length, max_size=length)
            | st.sampled_from([b"\xff", b"\0", b"\n", b'"', b",", b"\x1b[31m", b"1e999"])
        )
        before = bytes(data[max(at - 64, 0) : at])
        end, piece = draw(
            st.sampled_from(
                [
                    (at + len(new), new),  # changed
                    (at + len(new), new),
                    (len(data), b""),  # cut
                    (at + length, b""),  # left out
                    (at, new),  # put in
                    (at, before * length),  # repeated
                ]
            )
        )
        data[at:end] = piece
    return kind, bytes(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


@hypothesis.settings(
    max_examples=NUM_CASES,
    deadline=None,
    derandomize=NUM_CASES == 60,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(file=damaged(), options=st.sampled_from(OPTIONS))
def test_damaged_files(
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    file: tuple[str, bytes],
    options: str,
) -> None:
    kind, data = file
    path = folder / f"x.{kind}"
    path.write_bytes(data)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["jaxmetrics", "report", str(path), "--json", *options.split()])
        patch.setattr(cli, "_exit_by_signals", lambda: None)
        with pytest.raises(SystemExit) as exit_:
            cli.main()
    assert time.monotonic() - start < LONGEST
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY
    out, err = capfd.readouterr()
    lines = [line for line in err.splitlines() if not line.startswith("jaxmetrics: warning: ")]
    if exit_.value.code in (None, 0):
        assert out.startswith("{")
        assert not lines
    else:
        assert (exit_.value.code, out) == (2, "")
        assert len(lines) == 1, err
        assert lines[0].startswith("jaxmetrics: ")
        assert lines[0].isprintable()
