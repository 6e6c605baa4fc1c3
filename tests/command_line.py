"""The command line as tests call it, and files for it."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from jaxmetrics import cli

Run = Callable[..., tuple[int, str, str]]


def caller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that calls the command line: exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["jaxmetrics", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        captured = capsys.readouterr()
        code = exit_.value.code
        assert code is None or isinstance(code, int)
        return code or 0, captured.out, captured.err

    return call


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def save(frame: pl.DataFrame, path: Path) -> Path:
    if path.suffix == ".csv":
        frame.write_csv(path)
    elif path.suffix == ".tsv":
        frame.write_csv(path, separator="\t")
    elif path.suffix == ".jsonl":
        frame.write_ndjson(path)
    elif path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix in (".arrow", ".feather"):
        frame.write_ipc(path)
    else:
        np.savez(path, **{name: np.array(frame[name].to_list()) for name in frame.columns})  # type: ignore[arg-type]
    return path
