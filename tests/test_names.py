"""What `jaxmetrics.` offers to whoever types on."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
import sys
import types
from typing import Any

import pytest

import jaxmetrics as jm
from jaxmetrics._names_elsewhere import NAMES_HERE
from jaxmetrics.intervals import methods
from jaxmetrics.reports import _pages

pytestmark = pytest.mark.quick


def test_completion_shows_public_names_only() -> None:
    shown = dir(jm)
    assert {"confusion_matrix", "f1", "macro", "report", "Estimate", "plots", "__version__"} <= set(
        shown
    )
    modules = [name for name in shown if isinstance(getattr(jm, name), types.ModuleType)]
    assert modules == ["plots"]
    assert not any(name.startswith("_") for name in shown if name != "__version__")


def test_folders_offer_what_their_files_do() -> None:
    offered = {*dir(jm), *vars(jm.plots)}
    for module in pkgutil.walk_packages(jm.__path__, "jaxmetrics."):
        if not module.name.startswith("jaxmetrics.cli"):
            names = vars(importlib.import_module(module.name)).get("__all__", ())
            assert offered.issuperset(names), f"__init__.py beside {module.name} must import it"


METHODS = [name for name, x in inspect.getmembers(methods, inspect.isclass) if hasattr(x, "name")]


@pytest.mark.parametrize("name", METHODS)
def test_methods_as_values_are_public_and_explained(name: str) -> None:
    assert getattr(jm, name).name in _pages._METHODS, "a page of a report says what it is"


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


PUBLIC: dict[str, Any] = {name: getattr(jm, name) for name in dir(jm) if name != "__version__"}
PUBLIC |= {
    f"plots.{name}": value
    for name, value in vars(PUBLIC.pop("plots")).items()
    if inspect.isfunction(value) and not name.startswith("_")
}


def fields_of(value: Any) -> list[str] | None:
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value) if field.name[0] != "_"]
    return list(value._fields) if hasattr(value, "_fields") else None


def explanations(name: str) -> str:
    """What its docstring says, those that it says hold for it, and those of its file and folder."""
    found: dict[Any, str] = {}
    names = [name]
    while names:
        value = PUBLIC[names.pop()]
        package = ".".join(value.__module__.split(".")[:2])
        for source in (value, sys.modules[value.__module__], sys.modules[package]):
            found[source] = inspect.getdoc(source) or ""
        for other in re.findall(r"\bas (?:for )?`(\w+)`", found[value], re.IGNORECASE):
            names += [n for n in (other, f"plots.{other}") if PUBLIC.get(n, value) not in found]
    return "\n".join(found.values())


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_say_what_goes_in_and_what_comes_out(name: str) -> None:
    """A result names what each field holds; all else has an example and speaks of each argument."""
    docstring = inspect.getdoc(PUBLIC[name])
    assert docstring is not None
    fields = fields_of(PUBLIC[name])
    for field in fields or ():
        assert re.search(rf"^    (\w+, )*{field}(, \w+)*: ", docstring, re.MULTILINE), field
    if fields is None:
        assert "\n>>> " in docstring
        for argument in set(inspect.signature(PUBLIC[name]).parameters) - {"args", "kwargs"}:
            assert re.search(rf"\b{argument}\b", explanations(name)), argument
