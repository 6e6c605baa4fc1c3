"""What `jaxmetrics.` offers to whoever types on."""

import dataclasses
import enum
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import types
from typing import Any

import pytest

import jaxmetrics as jm
from jaxmetrics._text.names_elsewhere import NAMES_HERE
from jaxmetrics.reports import pages
from tests.cases import METHODS, NAMESPACES, public_names

pytestmark = pytest.mark.quick


PUBLIC = public_names()


def test_completion_shows_public_names_only() -> None:
    shown = dir(jm)
    assert {"confusion_matrix", "f1", "macro", "report", "Estimate", "plots", "__version__"} <= set(
        shown
    )
    modules = [name for name in shown if isinstance(getattr(jm, name), types.ModuleType)]
    assert modules == [*NAMESPACES]
    assert not any(name.startswith("_") for name in shown if name != "__version__")


def test_folders_offer_what_their_files_do() -> None:
    offered = {name.split(".")[-1] for name in PUBLIC}
    for module in pkgutil.walk_packages(jm.__path__, "jaxmetrics."):
        if not module.name.startswith("jaxmetrics.cli"):
            names = vars(importlib.import_module(module.name)).get("__all__", ())
            assert offered.issuperset(names), f"__init__.py beside {module.name} must import it"


def test_names_come_from_where_the_table_of_contents_says() -> None:
    for home, (_, names) in jm._CONTENTS.items():
        offered = set(
            getattr(importlib.import_module(f"jaxmetrics.{home}"), "__all__", names.split())
        )
        assert set(names.split()) >= offered, home
        assert names.split() == sorted(names.split()), home


def test_nothing_is_loaded_before_its_first_use() -> None:
    """Help and versions do not wait for it."""
    code = (
        "import sys, jaxmetrics; dir(jaxmetrics); loaded = {'jax', 'numpy'} & {*sys.modules};"
        " jaxmetrics.f1([[3, 1], [0, 4]]); print(loaded, 'jaxmetrics.losses' in sys.modules)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout == "set() False\n"


def test_methods_of_intervals_are_public_tested_and_explained() -> None:
    tested = [make() for make in METHODS.values()]
    public = {
        name
        for name, x in PUBLIC.items()
        if inspect.isclass(x) and issubclass(x, jm.IntervalMethod) and x is not jm.IntervalMethod
    }
    assert public == {type(method).__name__ for method in tested}, "a row of cases.METHODS"
    for method in tested:
        assert method.name in pages.explanations(), "a page of a report says what it is"


HINTS = {
    **jm._MOVED,
    **NAMES_HERE,
    "Accuracy": "accuracy",
    "BinaryAUROC": NAMES_HERE["roc_auc_score"],
    "BinaryHingeLoss": "hinge_loss",
    "CohenKappa": "cohen_kappa",
    "ConfusionMatrixDisplay": "plots.confusion_matrix",
    "F1Score": NAMES_HERE["f1_score"],
    "MAE": "macro_absolute_error",
    "MatthewsCorrCoef": "matthews_corrcoef",
    "MulticlassF1Score": NAMES_HERE["f1_score"],
    "MulticlassHingeLoss": "multiclass_hinge_loss",
    "ndcg_score": "ndcg",
}


@pytest.mark.parametrize("name", HINTS)
def test_names_of_before_and_of_other_libraries(name: str) -> None:
    """The message names something that exists."""
    with pytest.raises(AttributeError, match=re.escape(f"Here it is {HINTS[name]}.")):
        getattr(jm, name)
    here = re.match(r"([\w.]+)(?:\((\w+)\))?", HINTS[name])
    assert here is not None
    assert {here[1], here[2] or here[1]} <= {*PUBLIC, "bins", "histogram", "ratings"}


@pytest.mark.parametrize("name", ["acuracy", "score", "multiclass", "_score"])
def test_names_that_nobody_knows(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'\.$"):
        getattr(jm, name)


def fields_of(value: Any) -> list[str] | None:
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value) if field.name[0] != "_"]
    if inspect.isclass(value) and issubclass(value, enum.Enum):
        return list(value.__members__)
    return list(value._fields) if hasattr(value, "_fields") else None


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_say_what_goes_in_and_what_comes_out(name: str) -> None:
    """A result explains each field; all else has an example and explains each argument itself."""
    docstring = inspect.getdoc(PUBLIC[name])
    assert docstring is not None
    assert len(docstring.splitlines()) <= 40
    fields = fields_of(PUBLIC[name])
    for field in fields or ():
        assert re.search(rf"^    (\w+, )*{field}(, \w+)*: ", docstring, re.MULTILINE), field
    if fields is None:
        assert "\n>>> " in docstring
        for argument in set(inspect.signature(PUBLIC[name]).parameters) - {"args", "kwargs"}:
            assert re.search(rf"\b{argument}\b", docstring), argument
