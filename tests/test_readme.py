"""The README's Python runs, and what it says of the results holds."""

import re
from pathlib import Path
from typing import Any

import jaxmetrics as jm

README = Path(__file__).parent.parent / "README.md"


def test_python_blocks_run_in_order() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 8
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), namespace)
        for expression, expected in re.findall(r"^(\S.*\.shape) +# (\(.*\))$", block, re.MULTILINE):
            assert eval(expression, namespace) == eval(expected), expression


def test_every_public_name_is_mentioned() -> None:
    text = README.read_text(encoding="utf-8")
    for name in vars(jm):
        if not name.startswith("_") and callable(getattr(jm, name)):
            assert f"`{name}" in text, name
