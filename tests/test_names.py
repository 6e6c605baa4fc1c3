"""What `jaxmetrics.` offers to whoever types on."""

import re
import types

import pytest

import jaxmetrics as jm
from jaxmetrics._names_elsewhere import NAMES_HERE

pytestmark = pytest.mark.quick


def test_completion_shows_public_names_only() -> None:
    shown = dir(jm)
    assert {"confusion_matrix", "f1", "macro", "report", "Estimate", "plots", "__version__"} <= set(
        shown
    )
    modules = [name for name in shown if isinstance(getattr(jm, name), types.ModuleType)]
    assert modules == ["plots"]
    assert not any(name.startswith("_") for name in shown if name != "__version__")


@pytest.mark.parametrize("name", NAMES_HERE)
def test_names_of_other_libraries(name: str) -> None:
    """The message names something that exists."""
    with pytest.raises(AttributeError, match=re.escape(f"Here it is {NAMES_HERE[name]}.")):
        getattr(jm, name)
    here = re.match(r"[a-z_]+\((\w+)\)|([\w.]+)", NAMES_HERE[name])
    assert here is not None
    for part in (here[1] or here[2]).split("."):
        assert hasattr(jm, part) or hasattr(jm.plots, part)


def test_names_that_nobody_knows() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'acuracy'\.$"):
        jm.acuracy  # type: ignore[attr-defined]  # noqa: B018
