"""The notebooks run from a clean kernel, and are committed as they ran."""

import os
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient", reason="notebooks need the extra `notebooks`")
nbformat = pytest.importorskip("nbformat", reason="notebooks need the extra `notebooks`")

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def kinds_of_outputs(notebook: Any) -> list[list[str]]:
    """Of each code cell: text, pictures, errors."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    kinds = [
        [
            ", ".join([o.output_type, o.get("name", ""), *sorted(o.get("data", {}))])
            for o in cell.outputs
        ]
        for cell in cells
    ]
    return [[kind for kind, _ in groupby(cell)] for cell in kinds]  # text may come in pieces


def test_all_are_here() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"{i:02}" for i in range(10)]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_as_committed(path: Path) -> None:
    pytest.importorskip("ipykernel", reason="notebooks need the extra `notebooks`")
    committed = nbformat.read(path, as_version=4)
    # As a reader runs it, but compiled as the tests are: half of the time went into XLA.
    world = {key: x for key, x in os.environ.items() if not key.startswith("JAX_NUMPY_")}
    client = nbclient.NotebookClient(
        nbformat.from_dict(committed),
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    )
    fresh = client.execute(env=world)
    assert kinds_of_outputs(fresh) == kinds_of_outputs(committed)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_after_a_clean_run(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = kinds_of_outputs(notebook)
    assert not [kind for cell in outputs for kind in cell if "stderr" in kind or "error" in kind]
    assert sum("image/png" in kind for cell in outputs for kind in cell) >= 3
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/(home|root|tmp|work|Users|usr)/", text)
    assert len(text) < 400_000
