"""One wrong argument at a time, of every public function.

The answer is a value, or a TypeError or ValueError whose message names the argument. The suite
takes a sample; `ARGUMENT_CALLS=40000` takes all.
"""

import datetime
import inspect
import os
import random
import re
import runpy
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple

import jax
import ml_dtypes
import numpy as np
import pytest
from scipy import sparse

import jaxmetrics as jm
from tests.cases import public_names
from tests.test_examples import Tensor

CALLS = int(os.environ.get("ARGUMENT_CALLS", "800"))
SECONDS = 10


class Call(NamedTuple):
    """A call of a public function with one argument replaced."""

    function: str
    arguments: Mapping[str, Any]
    changed: str
    value: Callable[[Any], Any]
    described: str

    def __str__(self) -> str:
        return f"{self.function}({self.changed} := {self.described})"


def _itself() -> list[Any]:
    x: list[Any] = []
    x.append(x)
    return x


def _of(change: Callable[[np.ndarray], Any]) -> Callable[[Any], Any]:
    """Change an array; what is none stays as it is, a call that is right."""
    return lambda x: change(x) if isinstance(x, np.ndarray) else x


NAMES = {"np": np, "nan": float("nan"), "inf": float("inf")}
WRITTEN = """
None nan inf -1 0 1 2 0.5 1.5 2**31-1 2**63 10**400 1e-320 1e300 1j True '' 'x' b'x' [] () {} [1]
[[]] [0.5] [None] ['a'] ['a','b'] ['a','a'] {1,2} {'a':1} object() int iter([1]) range(2)
np.int8(3) np.float16(0.5) np.nan*np.ones(3) np.zeros(0) np.zeros((2,0)) np.float64('nan')
np.datetime64('2020-01-01') np.zeros((1,1,1,1,1)) np.arange(3) np.array(2) np.array('a') np.eye(3)
np.ones((2,2),complex) np.array([None,1],object)
"""
VALUES: dict[str, Callable[[Any], Any]] = {
    text: lambda x, text=text: eval(text, NAMES) for text in WRITTEN.split()
} | {
    "lambda": lambda x: lambda *a, **k: 1.0,
    "lambda of text": lambda x: lambda *a, **k: "text",
    "ragged": lambda x: [[1, [2]], [3]],
    "a list that holds itself": lambda x: _itself(),
    "a date": lambda x: np.array(["2020-01-01"], "M8[D]"),
    "a duration": lambda x: np.array([3], "m8[s]"),
    "masked": lambda x: np.ma.array([1, 2], mask=[True, False]),
    "in a list": lambda x: [x],
    "as text": lambda x: str(x),
    "transposed": _of(lambda x: x.T),
    "a row": _of(lambda x: x[None]),
    "a column": _of(lambda x: x[..., None]),
    "shorter": _of(lambda x: x[..., :-1] if x.ndim else x),
    "fewer rows": _of(lambda x: x[:-1] if x.ndim else x),
    "flat": _of(np.ravel),
    "negative": _of(lambda x: -x - 1 if x.dtype != bool else x),
    "half": _of(lambda x: x / 2),
    "NaN": _of(lambda x: x * np.nan),
    "infinite": _of(lambda x: x + np.inf),
    "strings": _of(lambda x: x.astype(str)),
    "bytes": _of(lambda x: x.astype("S")),
    "objects": _of(lambda x: x.astype(object)),
    "small": _of(lambda x: x.astype(np.float16)),
    "complex": _of(lambda x: x.astype(complex)),
}


PUBLIC = public_names()
METHODS = ("Likelihood", "Delta", "Bootstrap", "Posterior")


class Recorded(Exception):
    """The arguments are known, and the call need not go on."""


def valid_calls() -> dict[str, list[dict[str, Any]]]:
    """Record how the rows of `cases.py` call public functions: arguments by name."""
    found: dict[str, list[dict[str, Any]]] = {}

    def recorded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            arguments = signature.bind(*args, **kwargs).arguments
            calls = found.setdefault(name, [])
            if all(set(arguments) != set(known) for known in calls):
                few = {"num_samples": 20} if "num_samples" in signature.parameters else {}
                calls.append({k: _on_host(x) for k, x in arguments.items()} | few)
            if stops and any(isinstance(x, np.ndarray | jax.Array) for x in arguments.values()):
                raise Recorded
            return function(*args, **kwargs)

        return call

    stops = False
    with pytest.MonkeyPatch.context() as patch:
        for name, function in PUBLIC.items():
            if inspect.isfunction(function) and not name.startswith("plots."):
                patch.setattr(f"jaxmetrics.{name}", recorded(name, function))
        cases = runpy.run_path(str(Path(__file__).parent / "cases.py"))
        for name, row in cases["ROWS"].items():
            # What makes states is called where the row is made.
            if name not in cases["STREAMS"] or name in ("save_state", "load_state"):
                stops = name not in (*cases["TOGETHER"].values(), "to_python")
                with suppress(Recorded):
                    row.call(*row.ordinary)
        for name, make in cases["TYPES"].items():
            if name in (*METHODS, "streaming.ConfidenceSequence"):
                make()
    stops = False
    for kind in (*METHODS, "betas.BetaAverage"):
        known = {"key": 0, "parameters": np.array([[3.0, 2.0], [1.5, 4.0]])}
        names = inspect.signature(PUBLIC[kind]).parameters
        found[kind] = [{name: known[name] for name in names if name in known}]
    return found


def _on_host(x: Any) -> Any:
    if isinstance(x, jax.Array):
        return 0 if jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key) else np.asarray(x)
    if isinstance(x, list):
        return np.asarray(x)
    return x


def wrong_calls() -> Iterator[Call]:
    for name, calls in sorted(valid_calls().items()):
        parameters = inspect.signature(PUBLIC[name]).parameters
        for arguments in calls[:2]:
            for changed in parameters:
                if changed in ("y_prob", "y_score") and changed not in arguments:
                    continue  # bins or a histogram, which are the only data
                if changed == "computed":
                    continue  # what JAX puts together again, which no user gives
                for described, value in VALUES.items():
                    if (changed, described) == ("arrays", "in a list"):
                        continue  # which the user's function refuses
                    yield Call(name, arguments, changed, value, described)


class TooLong(Exception):
    pass


def _too_long(*_: Any) -> None:
    raise TooLong(f"more than {SECONDS} s")


def fault_of(call: Call) -> str | None:
    """Make the call, and say what is wrong with its answer."""
    function = PUBLIC[call.function]
    arguments = dict(call.arguments)
    value = call.value(arguments.get(call.changed))
    arguments[call.changed] = value
    parameters = inspect.signature(function).parameters
    kinds = {name: x.kind for name, x in parameters.items()}
    positional = [
        x
        for name, kind in kinds.items()
        if kind is inspect.Parameter.VAR_POSITIONAL
        and isinstance(arguments.get(name), tuple | list)
        for x in arguments.pop(name)
    ]
    before = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if positional:
        positional = [
            arguments.pop(name) for name, kind in kinds.items() if kind in before
        ] + positional
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)
            warnings.filterwarnings("ignore", "overflow encountered in cast")  # 1e300 in float32
            warnings.filterwarnings("ignore", "Python iterable type")  # JAX's, of an iterator
            function(*positional, **arguments)
    except (TypeError, ValueError) as error:
        # What arrays hold is wrong beside that of others, which the message may name.
        names = [call.changed]
        of_data = isinstance(call.arguments.get(call.changed), np.ndarray)
        if of_data or call.changed == "num_classes":
            names += [name for name, x in call.arguments.items() if isinstance(x, np.ndarray)]
        named = re.search(rf"\b({'|'.join(names)})\b", str(error))
        return (
            None
            if named or callable(value)
            else f"{type(error).__name__} without the name: {error}"
        )
    except OSError as error:
        return None if not {"path", "source"}.isdisjoint(parameters) else str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


C = [[90, 10], [5, 95]]
TOO_LARGE: dict[str, Callable[[int], Any]] = {
    "num_samples": lambda n: jm.interval(jm.accuracy, C, method=jm.Bootstrap(0, num_samples=n)),
    "num_samples of counts": lambda n: jm.bootstrap_counts(0, C, n),
    "num_samples of a posterior": lambda n: jm.posterior_counts(0, C, n),
    "num_samples of a leaderboard": lambda n: jm.leaderboard(
        jm.accuracy, [0, 1], [[0, 1]], num_samples=n
    ),
    "num_samples of a method": lambda n: jm.Bootstrap(0, num_samples=n),
    "num_bins": lambda n: jm.calibration_error([0, 1], [0.1, 0.7], num_bins=n),
    "num_points": lambda n: jm.betas.convolve_betas([[3, 2], [1, 4]], num_points=n),
    "num_classes": lambda n: jm.confusion_matrix([0, 1], [0, 1], num_classes=n),
    "num_groups": lambda n: jm.confusion_matrix([0], [0], groups=[0], num_groups=n),
}


@pytest.mark.quick
@pytest.mark.parametrize("case", TOO_LARGE)
def test_sizes_that_no_memory_holds_are_refused(case: str) -> None:
    name = case.split()[0]
    with pytest.raises(ValueError, match=rf"{name}\b.* GiB"):
        TOO_LARGE[case](2**31 - 1)


def test_draws_of_a_large_table_are_refused() -> None:
    with pytest.raises(ValueError, match=r"num_samples and counts .* GiB"):
        jm.bootstrap_counts(0, np.ones((256, 256), int), 2**20)


MISTAKES: dict[str, Callable[[], Any]] = {
    "f1": lambda: jm.f1([0, 1, 1], [0, 1, 0]),  # type: ignore[call-arg]
    "macro(f1)": lambda: jm.macro(jm.f1)([0, 1, 1], [0, 1, 0]),
    "binary(f1)": lambda: jm.binary(jm.f1)(y_true=[0, 1, 1], y_pred=[0, 1, 0]),
    "group_ratio(recall)": lambda: jm.group_ratio(jm.recall)([0, 1, 1], [0, 1, 0]),
    "accuracy": lambda: jm.accuracy(np.eye(2), normalize=False),  # type: ignore[call-arg]
    "jaccard": lambda: jm.jaccard(np.eye(2), pos_label="yes"),  # type: ignore[call-arg]
    "macro(precision)": lambda: jm.macro(jm.precision)(np.eye(2), labels=[1]),
    "recall_posterior": lambda: jm.recall_posterior([0, 1], [0, 1]),  # type: ignore[call-arg]
    "metric": lambda: jm.f_beta([0, 1, 1], [0, 1, 0]),
}


@pytest.mark.quick
@pytest.mark.parametrize("metric", MISTAKES)
def test_metrics_of_labels_say_how_counts_are_made(metric: str) -> None:
    with pytest.raises(
        (TypeError, ValueError), match=re.escape(f"{metric}(confusion_matrix(y_true, y_pred))")
    ):
        MISTAKES[metric]()


@pytest.mark.quick
@pytest.mark.parametrize("array", [np.asarray, jax.numpy.asarray])
def test_intervals_of_labels_say_how_counts_are_made(array: Callable[[Any], Any]) -> None:
    call = "call interval(macro(f1), confusion_matrix(y_true, y_pred));"
    with pytest.raises(TypeError, match=re.escape(call)):
        jm.interval(jm.macro(jm.f1), array([0, 1, 1]), array([0, 1, 0]))  # type: ignore[call-arg]


@pytest.mark.quick
def test_a_wrong_argument_is_named() -> None:
    calls = list(wrong_calls())
    sample = random.Random(20).sample(calls, min(CALLS, len(calls)))
    faults = {str(call): fault for call in sample if (fault := fault_of(call))}
    assert not faults


SHARES, PAIRED_SHARES = np.array([[0.9, 0.1], [0.05, 0.95]]), np.full((2, 2, 2), 0.125)
FRACTIONS: dict[str, Callable[[Any], Any]] = {
    "balanced_accuracy_posterior": jm.balanced_accuracy_posterior,
    "balanced_accuracy_expected": jm.balanced_accuracy_expected,
    "recall_posterior": jm.recall_posterior,
    "precision_posterior": jm.precision_posterior,
    "accuracy_posterior": jm.accuracy_posterior,
    "posterior_counts": lambda c: jm.posterior_counts(0, c, 3),
    "no_information_test": jm.no_information_test,
    "required_examples": lambda c: jm.required_examples(jm.accuracy, c, half_width=0.1),
    "mcnemar": jm.mcnemar,
    "paired_difference_interval": jm.paired_difference_interval,
    "detectable_difference": lambda c: jm.detectable_difference(jm.accuracy, c, 100),
    "power": lambda c: jm.power(jm.accuracy, c, 100, difference=0.1),
    "required_examples of a difference": lambda c: jm.required_examples(
        jm.accuracy, c, difference=0.1
    ),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", FRACTIONS)
def test_fractions_are_no_numbers_of_examples(name: str) -> None:
    is_paired = [*FRACTIONS].index(name) >= [*FRACTIONS].index("mcnemar")
    table = PAIRED_SHARES if is_paired else SHARES
    FRACTIONS[name](np.round(40 * table))
    for scale in (1, 100.5, np.float32(2.5)):
        with pytest.raises(
            ValueError, match=r"(counts|paired)\[0, .*expected a number of examples"
        ):
            FRACTIONS[name](scale * table)
    if not name.startswith(("required", "detectable", "power")):
        hidden = jax.jit(lambda c: jax.tree.leaves(FRACTIONS[name](c))[0])(table)
        assert np.isnan(hidden).any()


untyped: Any = jm  # what goes in has wrong types
SPARSE, TENSOR = sparse.csr_matrix(np.eye(2, dtype=int)), Tensor([[2.0, 1.0], [0.5, 3.0]])
SAID: dict[str, tuple[Callable[[], Any], str]] = {
    "rate": (lambda: untyped.proportion_interval(0.85, 100), "successes is 0.85, a rate and not"),
    **{
        f"statistic {value!r}": (
            partial(jm.bootstrap_examples, 0, lambda x, value=value: value, [1.0, 2, 4]),
            f"statistic must return {expected}",
        )
        for value, expected in ((None, "an array"), ({}, "an array"), ("x", "numbers"))
    },
    "threshold": (
        lambda: jm.confusion_matrix_at_thresholds([0, 1], [0.1, 0.9], [0.5, np.nan]),
        r"thresholds\[1\] is nan, but a threshold must be a number",
    ),
    **{
        f"infinite trials of {successes} successes": (
            partial(jm.proportion_interval, [1, successes], [2, np.inf]),
            r"trials\[1\] is inf, but the number of trials is finite",
        )
        for successes in (0, 7, np.inf)
    },
    "rates": (
        lambda: untyped.proportion_interval([3, 0.9], [10, 20]),
        r"successes\[1\] is 0.9, a rate",
    ),
    "rate, exact": (
        lambda: untyped.proportion_interval(np.float32(0.5), 7, method="clopper_pearson"),
        "rate and not",
    ),
    "sparse truth": (lambda: untyped.confusion_matrix(SPARSE, SPARSE), r"Pass y_true\.toarray\(\)"),
    "sparse counts": (lambda: untyped.accuracy(SPARSE), r"Pass counts\.toarray\(\)"),
    "sparse labels": (lambda: untyped.report([0, 1], SPARSE), r"Pass y_pred\.toarray\(\)"),
    "generator": (lambda: untyped.confusion_matrix((x for x in "ab"), ["a"]), r"y_true.*list\(x\)"),
    "map": (lambda: untyped.roc_auc([0, 1], map(float, [0, 1])), r"y_score must.*list\(x\)"),
    "rows of a generator": (
        lambda: untyped.leaderboard(untyped.accuracy, [0, 1], (x for x in [[0, 1]])),
        r"y_preds must.*list\(x\)",
    ),
    "size of a fold": (
        lambda: untyped.cross_validation_interval([0.8, 0.9], num_train=80, num_test=100 / 5),
        r"num_test must be a Python int, got 20\.0\. Pass int\(num_test\)\.$",
    ),
    "half a size": (
        lambda: untyped.cross_validation_interval([0.8, 0.9], num_train=80.5, num_test=20),
        r"num_train must be a Python int, got 80\.5\.$",
    ),
    "axis": (
        lambda: untyped.interval(untyped.accuracy, C, cluster_axis=1e300),
        "cluster_axis.*1e.300",
    ),
    "axis of pairs": (
        lambda: untyped.mcnemar(np.ones((2, 2, 2, 2)), cluster_axis=-4.0),
        r"cluster_axis must be a Python int, got -4\.0",
    ),
    "NaN of a statistic": (
        lambda: untyped.bootstrap_examples(0, lambda x: x.mean(-1) * np.nan, np.arange(5.0)),
        r"^statistic is NaN or infinite for all 2000 resamples .* value of statistic\(\*arrays\)",
    ),
    "names in a matrix": (
        lambda: untyped.comparison_report([0, 1], [0, 1], [0, 1], class_names=np.zeros((2, 0))),
        "class_names must be a sequence of names, got a ndarray",
    ),
    "name": (
        lambda: untyped.report([0], [0], class_names=np.array("a")),
        "class_names must be a seq",
    ),
    "no names": (
        lambda: untyped.report([0], [0], class_names=np.eye(2)),
        "class_names must be a seq",
    ),
    "large counts": (
        lambda: untyped.accuracy(np.full((2, 2), 1e308)),
        r"counts\[0, 0\] .* at most 1e",
    ),
    "large pairs": (
        lambda: untyped.compare(untyped.f1, np.full((2, 2, 2), 4e307)),
        r"paired\[0, 0, 0\]",
    ),
    "large cells": (
        lambda: untyped.interval(untyped.f1, [[1e306, 3], [4, 5]]),
        r"counts\[0, 0\] .*1e",
    ),
    "infinite score": (
        lambda: untyped.score_leaderboard([[1, np.inf, 0], [0, 1, 1]]),
        r"scores\[0, 1\] is inf, but scores must be finite",
    ),
    "infinite score of a group": (
        lambda: untyped.score_leaderboard([[1, 0, -np.inf], [0, 1, 1]], groups=[0, 0, 1]),
        r"scores\[0, 2\] is -inf",
    ),
    "infinite score of B": (lambda: untyped.compare_scores([1, 2], [np.inf, 0]), r"b\[0\] is inf"),
    "clusters of nothing": (
        lambda: untyped.average_precision_interval([], [], clusters=[]),
        "clusters cannot be used here, because the other arguments have no examples",
    ),
    "clusters of no scores": (lambda: untyped.mean_interval([], clusters=[]), "Leave out clusters"),
    "clusters of no areas": (lambda: untyped.delong_interval([], [], clusters=[]), "out clusters"),
    "probabilities": (
        lambda: untyped.cross_entropy([[0.2, 0.8]], [1]),
        r"If these are logits, pass logits \+ 1",
    ),
    **{
        f"gradient in {name}": (partial(loss, TENSOR, [0, 1]), "requires a gradient.*detach")
        for name, loss in {
            "cross_entropy": untyped.cross_entropy,
            "multiclass_hinge_loss": untyped.multiclass_hinge_loss,
            "focal_loss": untyped.focal_loss,
            "metric_loss": untyped.metric_loss(untyped.accuracy),
        }.items()
    },
    "gradient in pairwise_auc_loss": (
        lambda: untyped.pairwise_auc_loss(Tensor([0.5, 2.0]), [0, 1]),
        "logits is a tensor of torch that requires a gradient",
    ),
    "gradient in weighted_mean": (
        lambda: untyped.weighted_mean(TENSOR),
        r"Pass values\.detach\(\)",
    ),
    **{
        f"{kind} in {name}": (
            partial(
                untyped.compare_predictions,
                untyped.accuracy,
                **{x: [0, 1, 1] for x in ("y_true", "y_pred_a", "y_pred_b")} | {name: values},
            ),
            rf"^{name} must hold class ids .*{name}\[1\] is ",
        )
        for kind, values in {
            "None": [0, None, 1],
            "infinity": [0, np.inf, 1],
            "a date": [0, datetime.date(2020, 1, 2), 1],
        }.items()
        for name in ("y_true", "y_pred_a", "y_pred_b")
    },
    "dates": (
        lambda: untyped.compare_predictions(untyped.accuracy, np.zeros(2, "M8[D]"), [0, 1], [1, 1]),
        r"^y_true must hold class ids .*y_true\[0\] is datetime",
    ),
}


@pytest.mark.quick
@pytest.mark.parametrize("case", SAID)
def test_what_goes_in_is_named(case: str) -> None:
    call, message = SAID[case]
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.quick
def test_what_looks_odd_is_right() -> None:
    tiny = np.array([0, 1, 1, 0], ml_dtypes.int4)
    assert jm.report(tiny, tiny)["accuracy"].value == 1
    assert jm.report(tiny, np.array([0, 1, 0, 0], ml_dtypes.uint4))["accuracy"].value == 0.75
    assert jm.accuracy(jm.confusion_matrix([0, 1, 1, 0], tiny)) == 1
    assert jm.proportion_interval(0.85, 100.7).num_examples == 100.7  # sums of weights
    assert jm.proportion_interval(0, 100).value == 0
    assert jm.proportion_interval(1, 100).value == 0.01
    variance = jm.score_variance([[1, 0, 0], [0, 0, 1], [1, 1, 1]])
    assert isinstance(variance.standard_error(10, 2), float)
    assert np.isnan(jm.average_precision_interval([], []).low)
    assert np.isnan(jm.fit_temperature([0, 1], [[0.5, 0.5]] * 2))  # any temperature fits alike
    assert np.isnan(jm.fit_temperature([0, 1], [[2.0, 2.0]] * 2))
    assert jm.cross_entropy([[0.5, 0.5]], [1]) == np.log(2)


@pytest.mark.parametrize(
    ("values", "is_convertible"),
    [
        (np.array([0.2, 0.7, 1], object), True),
        (["0.2", "0.7", "1"], True),
        ([Decimal("0.2"), Decimal("0.7"), Decimal(1)], True),
        (np.array([0.2, None, 1], object), False),
        (["0.2", "high", "1"], False),
    ],
)
def test_numbers_of_another_type_say_how_to_convert_them(values: Any, is_convertible: bool) -> None:
    for call, name in (
        (lambda x: jm.roc_auc([0, 1, 1], x), "y_score"),
        (lambda x: jm.brier_score([0, 1, 1], x), "y_prob"),
        (lambda x: jm.mean_interval([1, 2, 3], sample_weight=x), "sample_weight"),
    ):
        with pytest.raises(TypeError, match=f"{name} must hold real numbers") as error:
            call(values)
        assert (f"pass numpy.asarray({name}, float)" in str(error.value)) == is_convertible


def test_the_bootstrap_says_how_to_convert_labels() -> None:
    labels, score = np.array(["good", "bad", "good"]), [0.9, 0.2, 0.7]
    match = r"arrays\[0\]\[0\] is .*'good'.*\. numpy\.searchsorted\(classes, labels\) converts"
    with pytest.raises(TypeError, match=match):
        untyped.bootstrap_examples(0, jm.roc_auc, labels, score)
    ids = np.searchsorted(["bad", "good"], labels)
    assert jm.bootstrap_examples(0, jm.roc_auc, ids, score, num_samples=9).value == 1
