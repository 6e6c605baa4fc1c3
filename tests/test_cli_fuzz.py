"""Damaged files: whatever is in them, a command ends soon, with a report or with one line.

`JAXMETRICS_FUZZ=2000` asks for more cases than the tests take time for.
"""

import gzip
import io
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import hypothesis
import numpy as np
import polars as pl
import pytest
from hypothesis import strategies as st

from jaxmetrics import cli

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


def written(write: Callable[[pl.DataFrame, io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(FRAME, file)
    return file.getvalue()


def arrays(frame: pl.DataFrame, file: io.BytesIO, save: Callable[..., None]) -> None:
    save(file, **{name: np.array(frame[name].to_list()) for name in frame.columns})


FILES = {
    "csv": written(lambda frame, file: frame.write_csv(file)),
    "csv.gz": gzip.compress(written(lambda frame, file: frame.write_csv(file))),
    "jsonl": written(lambda frame, file: frame.write_ndjson(file)),
    "jsonl.gz": gzip.compress(written(lambda frame, file: frame.write_ndjson(file))),
    "parquet": written(lambda frame, file: frame.write_parquet(file)),
    "feather": written(lambda frame, file: frame.write_ipc(file)),
    "arrow": written(lambda frame, file: frame.write_ipc_stream(file)),
    "npz": written(lambda frame, file: arrays(frame, file, np.savez)),
    "NPZ": written(lambda frame, file: arrays(frame, file, np.savez_compressed)),
}
OPTIONS = (
    (),
    ("--prob", "p_"),
    ("--weight", "w"),
    ("--counts",),
    ("--value", "w"),
    ("--group", "w"),
    ("--cluster", "w"),
)


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    """Draw a file some bytes of which were changed, left out, repeated or put in."""
    kind = draw(st.sampled_from(sorted(FILES)))
    data = bytearray(FILES[kind])
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        length = draw(st.sampled_from([1, 1, 2, 4, 8, 64]))
        change = draw(st.sampled_from(["change", "change", "cut", "leave out", "put in", "repeat"]))
        new = draw(
            st.binary(min_size=length, max_size=length)
            | st.sampled_from([b"\xff", b"\0", b"\n", b'"', b",", b"\x1b[31m", b"1e999"])
        )
        if change == "change":
            data[at : at + len(new)] = new
        elif change == "cut":
            del data[at:]
        elif change == "leave out":
            del data[at : at + length]
        elif change == "put in":
            data[at:at] = new
        else:
            data[at:at] = data[max(at - 64, 0) : at] * length
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
    options: tuple[str, ...],
) -> None:
    kind, data = file
    path = folder / f"x.{kind}"
    path.write_bytes(data)
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["jaxmetrics", "report", str(path), "--json", *options])
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
