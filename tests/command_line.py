"""The command line as tests call it, and files for it."""

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from jaxmetrics import cli

Run = Callable[..., tuple[int, str, str]]
Content = str | bytes | pl.DataFrame | Mapping[str, Any]


def caller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that calls the command line: exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["jaxmetrics", *map(str, arguments)])
        monkeypatch.setattr(cli, "_exit_by_signals", lambda: None)  # they are for the tests
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        captured = capsys.readouterr()
        code = exit_.value.code
        assert code is None or isinstance(code, int)
        return code or 0, captured.out, captured.err

    return call


def answer(run: Run, *arguments: object, code: int = 0) -> Any:
    """Return the JSON that a command line prints; it warns of nothing."""
    found, out, err = run(*arguments, "--json")
    assert (found, err) == (code, "")
    return json.loads(out)


N = 240
NAMES = np.array(["cat", "dog", "owl"])
RNG = np.random.default_rng(0)
TRUE = RNG.integers(0, 3, N)
PROBS = [
    0.5 * np.eye(3)[np.where(RNG.random(N) < right, TRUE, RNG.integers(0, 3, N))]
    + 0.5 * RNG.dirichlet([1, 1, 1], N)
    for right in (0.9, 0.75)
]
PREDS = [prob.argmax(1) for prob in PROBS]
SITES = np.array([*"xyz"])[RNG.choice(3, N, p=[0.5, 0.3, 0.2])]
PATIENTS = RNG.integers(0, 40, N)
A, B = (
    pl.DataFrame(
        {
            "id": np.arange(N),
            "y_true": NAMES[TRUE],
            "y_pred": NAMES[pred],
            "site": SITES,
            "patient": PATIENTS,
            **{f"p_{name}": prob[:, i] for i, name in enumerate(NAMES)},
        }
    )
    for prob, pred in zip(PROBS, PREDS, strict=True)
)
TASKS = np.array(["math", "law", "code"])[np.arange(N) % 3]
USERS = np.arange(N) // 4
GRADES = np.round(np.random.default_rng(3).random((2, N)), 2)
RIGHT = np.random.default_rng(4).random((3, N)) < np.array([[0.85], [0.7], [0.8]])
# Samples of three systems, as evaluation harnesses write them: a nested document beside the
# metric, which is a number, a boolean and a text.
SAMPLES = [
    pl.DataFrame(
        {
            "doc_id": np.arange(N),
            "doc": [{"question": "?", "choices": ["yes", "no"]}] * N,
            "resps": [[["yes"]]] * N,
            "acc": scores,
            "evaluation": [{"score": score} for score in GRADES[i % 2]],
            "task": TASKS,
            "user": USERS,
        }
    )
    for i, scores in enumerate(
        [RIGHT[0].astype(float), RIGHT[1], np.where(RIGHT[2], "True", "false")]
    )
]
FILES: dict[str, Content] = {
    "a.csv": A,
    "b.parquet": B.sort("site", "id"),
    **{f"{name}.jsonl": frame for name, frame in zip("abc", SAMPLES, strict=True)},
}


def with_files(command: str, *contents: Content) -> list[str]:
    """Split a command into its arguments, and write the files that they name: first those with the
    given contents, then those of `FILES`.
    """
    arguments = shlex.split(command)
    shared = {name: FILES[name] for name in arguments if name in FILES}
    for name, content in (shared | dict(zip(arguments[1:], contents, strict=False))).items():
        write(Path(name), content)
    return arguments


def write(path: Path, content: Content) -> Path:
    """Write a file: text, bytes, or columns in the format that the suffix names."""
    if isinstance(content, str):
        content = content.encode()
    if isinstance(content, bytes):
        path.write_bytes(content)
        return path
    return save(content, path)


def save(columns: pl.DataFrame | Mapping[str, Any], path: Path) -> Path:
    if path.suffix == ".npz":
        arrays = columns.to_dict() if isinstance(columns, pl.DataFrame) else columns
        np.savez(path, **{name: _array(x) for name, x in arrays.items()})  # type: ignore[arg-type]
        return path
    frame = pl.DataFrame(columns)
    if path.suffix == ".csv":
        frame.write_csv(path)
    elif path.suffix == ".tsv":
        frame.write_csv(path, separator="\t")
    elif path.suffix in (".jsonl", ".ndjson"):
        frame.write_ndjson(path)
    elif path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_ipc(path)
    return path


def _array(x: Any) -> np.ndarray:
    return np.array(x.to_list()) if isinstance(x, pl.Series) else np.asarray(x)
