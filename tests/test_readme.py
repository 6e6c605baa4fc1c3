"""The README's Python runs, and what it says of the results holds."""

import ast
import re
from pathlib import Path
from typing import Any

import jaxmetrics as jm

README = Path(__file__).parent.parent / "README.md"


def test_python_blocks_run_in_order() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 9
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), namespace)
        for expression, expected in re.findall(r"^(\S.*\.shape) +# (\(.*\))$", block, re.MULTILINE):
            assert eval(expression, namespace) == eval(expected), expression


def test_every_public_name_is_mentioned() -> None:
    text = README.read_text(encoding="utf-8")
    for name in set(dir(jm)) - {"__version__", "plots"}:
        assert f"`{name}" in text, name


def test_each_file_imports_from_those_above_it() -> None:
    """The order in which the README lists them."""
    rooms = re.findall(
        r"^\| `(\w+)(?:\.py|/)` \|", README.read_text(encoding="utf-8"), re.MULTILINE
    )
    package = README.parent / "jaxmetrics"
    assert {
        path.stem for path in package.iterdir() if not path.name.startswith(("_", "py.typed"))
    } == set(rooms)
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        below = (
            rooms[rooms.index(room) + 1 :]
            if room in rooms
            else []
            if room in ("__init__", "_counted_files")
            else rooms
        )
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                imported = {name.split(".")[1] for name in names if name.startswith("jaxmetrics.")}
                assert not imported & set(below), f"{path.name} imports {imported & set(below)}"
