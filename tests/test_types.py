"""The types that a user's program sees: each is named, and none is `Any`."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import jax
import numpy as np

import jaxmetrics as jm

y_true, y_pred, y_other = [0, 1, 1], np.array([0, 1, 0]), np.array([1, 1, 1])
counts = jm.confusion_matrix(y_true, y_pred)
reveal_type(counts)  # ndarray
on_device = jax.numpy.array(y_true)
reveal_type(jm.confusion_matrix(on_device, on_device, num_classes=2))  # jax.Array
found = jm.interval(jm.macro(jm.f1), counts, method=jm.Delta("logit"), level=0.9)
reveal_type(found)  # Estimate
reveal_type(found.method)  # str | None
reveal_type(float(found))  # float
reveal_type(jm.proportion_interval(80, 94))  # Estimate
reveal_type(jm.bootstrap_examples(0, np.mean, y_pred))  # Estimate
reveal_type(jm.compare_groups(jm.accuracy, [counts, counts]))  # Estimate
compared = jm.compare_predictions(jm.accuracy, y_true, y_pred, y_other)
reveal_type(compared)  # Comparison
reveal_type(compared.difference)  # Estimate
paired = jm.paired_confusion_matrix(y_true, y_pred, y_other)
reveal_type(jm.compare(jm.accuracy, paired))  # Comparison
reveal_type(jm.leaderboard(jm.accuracy, y_true, [y_pred, y_other]).winner_estimate)  # Estimate
print(f"{found:.1%}", f"{counts.sum()} examples")
"""


@pytest.mark.slow
def test_a_users_program_has_types(tmp_path: Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    root = str(Path(__file__).parent.parent)
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            "--follow-imports=silent",
            str(path),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": root},
        check=False,
    )
    assert "error" not in checked.stdout, checked.stdout
    lines = [line for line in checked.stdout.splitlines() if "Revealed type is" in line]
    revealed = [line.split('"')[1] for line in lines]
    expected = [line.split("  # ")[1] for line in PROGRAM.splitlines() if "reveal_type" in line]
    assert len(revealed) == len(expected)
    for name, text in zip(expected, revealed, strict=True):
        assert all(part.split(".")[-1] in text for part in name.split(" | ")), (name, text)
        assert text != "Any"
