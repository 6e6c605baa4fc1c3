"""One table of every public function: what it is called on, and what it promises.

The invariants of test_transforms.py run over `ROWS`. What a row does not promise stands in it by
name, with the reason. A key is the public name, "f1" or "betas.beta_pdf", followed by a space and a
variant where there are several.
"""

import inspect
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars as pl
from sklearn.base import BaseEstimator

import jaxmetrics as jm
from tests import oracles

K, N = 4, 48

Case = tuple[np.ndarray, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """A public function and its promises. `call` takes the arrays of a case; all else is bound.

    Attributes:
        cases: arrays by the name of the case, "ordinary" first. Of all cases they have the same
            shapes, so that they can be stacked. Floats are numbers that float32 holds, so that host
            and device see the same.
        host: arrays of the host give NumPy's, computed in float64, and nothing is compiled.
        device: arrays of JAX give JAX's, in its precision, and equal to those of the host.
        jit: it can be traced, by jit and vmap; else it looks at values.
        batch: leading axes of all arrays give what a loop gives.
        smooth: the arguments for which the gradient is finite, and near `ordinary + inside` equal
            to finite differences.
        examples: the axis of the examples in each array, counted from the end; their order does not
            matter.
        options: which of "where", "sample_weight" and "groups" it takes; what they leave out is as
            if absent.
        adds: the result of all examples is the sum of those of parts.
        per_example: one result for each example, of which the promises about examples hold for the
            sum.
        draws: the number of random draws; on host and device the same in distribution only.
        float32, float64: how far device and host may differ, relative to numbers above 1,
            absolutely to those below.
        why: the reason for what is not promised.
    """

    call: Callable[..., Any]
    cases: Mapping[str, Case]
    host: bool = True
    device: bool = True
    jit: bool = True
    batch: bool = True
    smooth: tuple[int, ...] = ()
    inside: float = 0.0
    examples: tuple[int, ...] = ()
    options: tuple[str, ...] = ()
    adds: bool = False
    per_example: bool = False
    draws: int = 0
    float32: float = 2e-6
    float64: float = 1e-12
    why: str = ""

    @property
    def ordinary(self) -> Case:
        return self.cases["ordinary"]

    @property
    def stacked(self) -> Case:
        """All cases along a leading axis."""
        return tuple(np.stack(arrays) for arrays in zip(*self.cases.values(), strict=True))


def function(name: str) -> Any:
    """The function of a row: its name is followed by a variant, if there are several."""
    found: Any = jm
    for part in name.split()[0].split("."):
        found = getattr(found, part)
    return found


def rows(calls: str | Mapping[str, Callable[..., Any]], **promises: Any) -> dict[str, Row]:
    """Functions with the same promises, or those of jaxmetrics with these names."""
    if isinstance(calls, str):
        calls = named(calls)
    return {name: Row(call=call, **promises) for name, call in calls.items()}


def named(names: str) -> dict[str, Callable[..., Any]]:
    return {name: function(name) for name in names.split()}


NAMESPACES = ("betas", "plots", "ranking", "scoring", "streaming")


def public_names() -> dict[str, Any]:
    """Every public function and type, those of namespaces as "betas.beta_pdf"."""
    shown = {name: getattr(jm, name) for name in dir(jm) if name != "__version__"}
    modules = {name: shown.pop(name) for name in NAMESPACES}
    for space, module in modules.items():
        inner = {name: getattr(module, name) for name in dir(module)}
        shown |= {f"{space}.{name}": x for name, x in inner.items() if shown.get(name) is not x}
    return shown


def single(x: Any) -> np.ndarray:
    """In float64, what float32 holds."""
    return np.asarray(x, np.float32).astype(float)


# Matrices of counts, and functions of them.


def matrices(text: str) -> dict[str, np.ndarray]:
    """On each line a name, a colon and the rows, separated by slashes."""
    lines = (line.split(":") for line in text.strip().splitlines())
    return {name: np.array([row.split() for row in rows.split("/")], int) for name, rows in lines}


MATRICES = matrices("""
ordinary:             31 4 2 0 /  3 22 6 1 /   0 5 40 7 / 2 1  3 18
absent class:         31 4 0 2 /  3 22 0 6 /   0 0  0 0 / 2 1  0 18
only in truth:        31 4 0 2 /  3 22 0 6 /   5 1  0 2 / 2 1  0 18
only in prediction:   31 4 1 2 /  3 22 4 6 /   0 0  0 0 / 2 1  3 18
constant prediction:   0 0 9 0 /  0  0 5 0 /   0 0 70 0 / 0 0 16  0
one class:             0 0 0 0 /  0 12 0 0 /   0 0  0 0 / 0 0  0  0
one class, all wrong:  0 0 0 0 /  0  0 5 0 /   0 0  0 0 / 0 0  0  0
perfect:               3 0 0 0 /  0  1 0 0 /   0 0  8 0 / 0 0  0  2
all wrong:             0 3 1 2 /  4  0 2 5 /   1 2  0 2 / 2 1  2  0
rare:      1000000000 30 2 5 / 40 300 1 0 /   7 0 12 3 / 1 2  1  4
transposed:           31 3 0 2 /  4 22 5 1 /   2 6 40 3 / 0 1  7 18
empty:                 0 0 0 0 /  0  0 0 0 /   0 0  0 0 / 0 0  0  0
""")
TWO_CLASS_MATRICES = matrices("""
ordinary:       80 7 / 3 21
rare:           2000000000 300 / 40 1000
never positive: 9 0 / 4 0
transposed:     80 3 / 7 21
one class:      9 0 / 0 0
empty:          0 0 / 0 0
""")
GROUPED: dict[str, np.ndarray] = {
    "ordinary": np.stack([MATRICES["ordinary"], MATRICES["all wrong"], MATRICES["perfect"]]),
    "empty group": np.stack([MATRICES["ordinary"], MATRICES["empty"], MATRICES["absent class"]]),
    "transposed": np.stack([MATRICES["transposed"], MATRICES["all wrong"].T, MATRICES["perfect"]]),
    "empty": np.zeros((3, 4, 4), int),
}


def alone(arrays: Mapping[str, Any]) -> dict[str, Case]:
    """Cases of one argument."""
    return {kind: (np.asarray(x),) for kind, x in arrays.items()}


def two_cases(ordinary: tuple[Any, ...], other: tuple[Any, ...]) -> dict[str, Case]:
    return {"ordinary": tuple(map(np.asarray, ordinary)), "other": tuple(map(np.asarray, other))}


@dataclass(frozen=True, kw_only=True, eq=False)
class Metric(Row):
    """A function of counts.

    Attributes:
        oracle: the definition, in float64, of one matrix.
        per_class: one number for each class.
        scale_free: counts and their multiples give the same.
        any_class_order: reordering the classes changes nothing, or reorders the result.
        ignores_absent_classes: a class that does not occur changes nothing.
    """

    cases: Mapping[str, Case] = field(default_factory=partial(alone, MATRICES))
    oracle: Callable[[np.ndarray], Any]
    per_class: bool = False
    scale_free: bool = True
    any_class_order: bool = True
    ignores_absent_classes: bool = True
    smooth: tuple[int, ...] = (0,)
    inside: float = 0.5  # no cell is empty there


def _costs(counts: Any) -> np.ndarray:
    return oracles.example_costs(np.shape(counts)[-1])


# Rates with more parameters than counts, which have the values of their oracles.
_WITH_PARAMETERS = {
    "f_beta": partial(jm.f_beta, beta=2.0),
    "tversky": partial(jm.tversky, alpha=0.3, beta=0.8),
    "net_benefit": partial(jm.net_benefit, threshold=0.2),
}
_CALLS: dict[str, Callable[..., Any]] = {
    **_WITH_PARAMETERS,
    **{name: partial(function(name), **words) for name, words in oracles.KEYWORDS.items()},
    **{name: function(name)(getattr(jm, rate)) for name, rate in oracles.AVERAGES.items()},
    "group_ratio": jm.group_ratio(jm.precision),
    "group_difference": jm.group_difference(jm.precision),
    "cohen_kappa costs": lambda c: jm.cohen_kappa(c, weights=_costs(c)),
    "expected_cost": lambda c: jm.expected_cost(c, _costs(c)),
}
_order: dict[str, Any] = {"any_class_order": False}
_all_classes: dict[str, Any] = {"ignores_absent_classes": False}
_size: dict[str, Any] = {"scale_free": False}
_maximum: dict[str, Any] = {"smooth": (), "why": "a maximum"}
_OTHER_PROMISES = {
    "no_information_rate": _maximum,
    "cohen_kappa linear": _order,
    "cohen_kappa quadratic": _order,
    "cohen_kappa costs": _order,
    "cohen_kappa uniform": _all_classes,
    "cohen_kappa majority": _maximum,
    "cohen_kappa gwet": _all_classes,
    "cohen_kappa gwet linear": _order | _all_classes,
    "krippendorff_alpha": _size,
    "krippendorff_alpha quadratic": _size | _order,
    "expected_cost": _order,
    "accuracy_within": _order | _all_classes,
    "accuracy_within two": _order | _all_classes,
    "macro_absolute_error": _order | _all_classes,
} | {name: {"cases": alone(GROUPED)} for name in oracles.GROUPS}


def _metric(name: str, oracle: Callable[..., Any]) -> Metric:
    """The function of jaxmetrics that an oracle is named after."""
    assert hasattr(jm, name.split()[0]), (
        f"oracles.py has {name!r}: write it, in __all__ of its file too"
    )
    call = _CALLS.get(name) or function(name)
    _, *others = inspect.signature(call).parameters.values()
    unbound = [x.name for x in others if x.default is x.empty and x.kind is not x.VAR_KEYWORD]
    assert not unbound, f"{name!r} needs {unbound}: bind them in _WITH_PARAMETERS of cases.py"
    promises = {"per_class": name not in oracles.OVERALL, **_OTHER_PROMISES.get(name, {})}
    return Metric(call=call, oracle=oracle, **promises)


_PREVALENCE = (0.1, 0.2, 0.3, 0.4)
METRICS: dict[str, Metric] = {
    **{
        name: _metric(name, oracle)
        for name, oracle in (oracles.OVERALL | oracles.RATES | oracles.GROUPS).items()
    },
    "binary": Metric(
        call=jm.binary(jm.precision),
        oracle=lambda c: oracles.RATES["precision"](c)[1],
        cases=alone(TWO_CLASS_MATRICES),
        **(_order | _all_classes),
    ),
    "at_prevalence": Metric(
        call=jm.at_prevalence(jm.precision, _PREVALENCE),
        oracle=partial(oracles.precision_at_prevalence, prevalence=_PREVALENCE),
        per_class=True,
        cases=alone({name: x for name, x in MATRICES.items() if x.sum(1).all()}),
        why="of a class without examples nothing is known",
        **(_order | _all_classes),
    ),
}


# Examples, and functions of them. Their labels are -1, which is ignored, or in [0, K): on the host
# another raises.

_rng = np.random.default_rng(20)
_TRUE = _rng.integers(-1, K, N)
_PRED = abs(np.where(_rng.random(N) < 0.6, _TRUE, _rng.integers(-1, K, N)))
_OTHER = abs(np.where(_rng.random(N) < 0.5, _TRUE, _rng.integers(0, K, N)))
_BINARY = _rng.integers(-1, 2, N)
_SCORE = single(np.round(_rng.normal(size=N) + _BINARY, 1))  # rounded: ties, also with thresholds
_SCORE_B = single(np.round(_rng.normal(size=N) + 0.5 * _BINARY, 1))
_PROB = single(_rng.dirichlet(np.ones(K), N))
_LABELS = _rng.integers(-1, 2, (2, N, 3))
_GAIN = single(np.abs(_LABELS[0]))
_LOGITS = single(_rng.normal(size=(N, K)) + 2 * np.eye(K)[np.clip(_TRUE, 0, K - 1)])
_LOSS = single(_rng.normal(3, 1, N))


def against(truth: Any, *others: Any, axis: int = -1) -> dict[str, Case]:
    """Examples, and others with the same predictions and another truth."""
    return {"ordinary": (truth, *others), "other truth": (np.roll(truth, 5, axis), *others)}


OF_EXAMPLES: dict[str, Any] = {"examples": (-1, -1), "options": ("where", "sample_weight")}
OF_ROWS: dict[str, Any] = {"examples": (-1, -2), "options": ("where", "sample_weight")}
OF_TABLES: dict[str, Any] = {"examples": (-2, -2), "options": ("where", "sample_weight")}
_THRESHOLDS = np.array([0.5, -0.2, 1.1], np.float32)


_GROUPED: dict[str, Any] = {"options": ("where", "sample_weight", "groups"), "adds": True}
_labelled = against(_TRUE, _PRED)
_binary = against(_BINARY, _SCORE)
_event = against(_BINARY, _PROB[:, 0])
_probs = against(_TRUE, _PROB)
_soft = against(_PROB[::-1].copy(), _PROB, axis=-2)
_labels = against(_LABELS[0], _PROB[:, :3], axis=-2)
_pairs = against(_TRUE, _PRED, _OTHER)
_label_sets = against(_LABELS[0], abs(_LABELS[1]), axis=-2)

COUNTERS: dict[str, Row] = {
    "confusion_matrix": Row(
        call=partial(jm.confusion_matrix, num_classes=K),
        cases=_labelled,
        examples=(-1, -1),
        **_GROUPED,
    ),
    "paired_confusion_matrix": Row(
        call=partial(jm.paired_confusion_matrix, num_classes=K),
        cases=_pairs,
        examples=(-1, -1, -1),
        **_GROUPED,
    ),
    "soft_confusion_matrix": Row(
        call=jm.soft_confusion_matrix, cases=_probs, examples=(-1, -2), smooth=(1,), **_GROUPED
    ),
    "multilabel_confusion_matrix": Row(
        call=jm.multilabel_confusion_matrix, cases=_label_sets, examples=(-2, -2), **_GROUPED
    ),
    "confusion_matrix_at_thresholds": Row(
        call=partial(jm.confusion_matrix_at_thresholds, thresholds=_THRESHOLDS),
        cases=_binary,
        examples=(-1, -1),
        **_GROUPED,
    ),
}

_constrained = {
    "recall at precision": (jm.recall, jm.precision),
    "precision at recall": (jm.precision, jm.recall),
    "recall at specificity": (jm.recall, jm.specificity),
    "accuracy at f1": (jm.accuracy, jm.binary(jm.f1)),
}
# A histogram of few bins cannot hold all orders; the scores stand at its edges' middles.
_histogram = partial(jm.score_histogram, scale="logit", num_bins=64)


def _of_logits(score: Callable[..., Any]) -> Callable[..., Any]:
    return lambda y, z, **options: score(y, logits=z, **options)


SCORERS: dict[str, Row] = {
    **rows(
        {
            **named("roc_auc average_precision equal_error_rate ks_statistic"),
            "roc_auc partial": partial(jm.roc_auc, max_fpr=0.3),
            "roc_auc along sensitivity": partial(jm.roc_auc, min_tpr=0.6, standardized=False),
            "best_threshold": partial(jm.best_threshold, jm.accuracy),
            **{
                f"best_threshold {name}": partial(
                    jm.best_threshold, metric, subject_to=(constraint, 0.7)
                )
                for name, (metric, constraint) in _constrained.items()
            },
        },
        cases=_binary,
        **OF_EXAMPLES,
    ),
    "score_histogram": Row(call=_histogram, cases=_binary, **(OF_EXAMPLES | _GROUPED)),
    **rows(
        {
            "roc_auc_one_vs_one": jm.roc_auc_one_vs_one,
            "roc_auc_one_vs_one weighted": partial(jm.roc_auc_one_vs_one, average="weighted"),
            "per_class": jm.per_class(jm.roc_auc),
            "per_class micro": jm.per_class(jm.roc_auc, average="micro"),
            "per_class weighted": jm.per_class(jm.average_precision, average="weighted"),
            "top_k_accuracy": partial(jm.top_k_accuracy, k=2),
            "top_k_accuracy expected": partial(jm.top_k_accuracy, k=2, ties="expected"),
        },
        cases=_probs,
        **OF_ROWS,
    ),
    **rows(
        {
            **named("label_ranking_average_precision label_ranking_loss coverage_error"),
            "per_label": jm.per_label(jm.average_precision, average="macro"),
            "top_k_precision": partial(jm.top_k_precision, k=2),
            "top_k_recall": partial(jm.top_k_recall, k=2),
        },
        cases=_labels,
        **OF_TABLES,
    ),
    **rows("hamming_loss exact_match", cases=_label_sets, **OF_TABLES),
    **rows("ndcg dcg", cases=against(_GAIN, _PROB[:, :3], axis=-2), **OF_TABLES),
    **rows(
        {
            **named("log_loss d2_log_loss_score normalized_entropy brier_score d2_brier_score"),
            **named("spherical_score ranked_probability_score"),
            "top_label": jm.top_label(jm.calibration_error),
        },
        cases=_probs,
        smooth=(1,),
        **OF_ROWS,
    ),
    **rows(
        {
            "log_loss logits": _of_logits(jm.log_loss),
            "d2_log_loss_score logits": _of_logits(jm.d2_log_loss_score),
        },
        cases=against(_TRUE, _LOGITS),
        smooth=(1,),
        **OF_ROWS,
    ),
    **rows(
        {f"{name} soft": f for name, f in named("log_loss brier_score d2_brier_score").items()},
        cases=_soft,
        smooth=(1,),
        **OF_TABLES,
    ),
    "log_loss soft logits": Row(
        call=_of_logits(jm.log_loss),
        cases=against(_PROB, _LOGITS, axis=-2),
        smooth=(1,),
        **OF_TABLES,
    ),
    "calibration_bins": Row(
        call=jm.calibration_bins, cases=_event, smooth=(1,), adds=True, **OF_EXAMPLES
    ),
    **rows(
        {
            "calibration_error": jm.calibration_error,
            "calibration_error l2": partial(
                jm.calibration_error, norm="l2", debiased=True, strategy="quantile", num_bins=7
            ),
            "calibration_error max": partial(jm.calibration_error, norm="max", num_bins=4),
            "calibration_curve": partial(jm.calibration_curve, strategy="quantile"),
            "score_decomposition bins": partial(jm.score_decomposition, strategy="quantile"),
        },
        cases=_event,
        smooth=(1,),
        **OF_EXAMPLES,
    ),
    **rows(
        {
            "calibration_interval": partial(jm.calibration_interval, frequency=True),
            "score_decomposition": jm.score_decomposition,
            "score_decomposition log_loss": partial(jm.score_decomposition, score="log_loss"),
        },
        cases=_event,
        **OF_EXAMPLES,
    ),
    "fit_temperature": Row(
        call=jm.fit_temperature,
        cases=against(_TRUE, single(3 * np.log(_PROB))),
        float32=2e-5,  # the place of a minimum, found by its slope
        smooth=(1,),
        **OF_ROWS,
    ),
}

# Curves: one point per example, so what is left out is there as a point more.
_as_points: dict[str, Any] = {"examples": (-1, -1)}
_both_areas: dict[str, Any] = {
    "auc": jm.roc_auc,
    "average_precision": jm.average_precision,
}
_HISTOGRAM = np.array([[30, 12, 6, 2, 1], [1, 3, 7, 14, 35]])
_histograms = alone(
    {"ordinary": _HISTOGRAM, "other": _HISTOGRAM[::-1], "one class": _HISTOGRAM * [[1], [0]]}
)
_BINS = single(np.stack([[20, 25, 30, 12], [2.5, 9, 19.5, 10.5], [1, 8, 22, 11]], -1))
_bins = alone(
    {
        "ordinary": _BINS,
        "other": _BINS[::-1] * [1, 1, 0.5],
        "empty bin": _BINS * np.array([[1.0], [0], [1], [1]]),
    }
)
_tables = two_cases((np.arange(3, 15).reshape(3, 2, 2),), (np.eye(2) + [[[3]]] * 3,))
_no_information = alone({kind: MATRICES[kind] for kind in ("ordinary", "perfect", "all wrong")})
_FPR, _TPR = single([0, 0, 0.25, 0.5, 1]), single([0, 0.5, 0.5, 0.875, 1])
_IDS = np.arange(N) * 2 // 3
_MASKED_PAIRS: dict[str, Any] = {"examples": (-1, -1), "options": ("where",)}
_two_scores = against(_BINARY, _SCORE, _SCORE_B)
_answers = against(_TRUE, _PRED, _SCORE)
_OF_ANSWERS: dict[str, Any] = {
    "examples": (-1, -1, -1),
    "options": ("where", "sample_weight"),
}

OF_CURVES: dict[str, Row] = {
    **rows("roc_curve precision_recall_curve det_curve", cases=_binary, **_as_points),
    "risk_coverage": Row(call=jm.risk_coverage, cases=_answers, examples=(-1, -1, -1)),
    "risk_coverage area": Row(
        call=lambda *arrays, **options: jm.risk_coverage(*arrays, **options).area,
        cases=_answers,
        **_OF_ANSWERS,
    ),
    "risk_coverage accuracy": Row(
        call=lambda *arrays, **options: jm.risk_coverage(
            *arrays, coverage=0.8, **options
        )._asdict()["accuracy"],
        cases=_answers,
        float32=1e-5,
        **(_OF_ANSWERS | {"options": ("where",)}),
    ),
    "calibration_curve isotonic": Row(
        call=partial(jm.calibration_curve, strategy="isotonic"),
        cases=_event,
        float32=1e-5,
        **_as_points,
    ),
    "metric_at_thresholds": Row(
        call=partial(jm.metric_at_thresholds, jm.accuracy),
        cases=_binary,
        batch=False,
        why="the metric sees (n, 2, 2)",
    ),
    "auc": Row(call=jm.auc, cases=two_cases((_FPR, _TPR), (_FPR, _TPR**2)), smooth=(1,)),
    **rows(
        {
            f"{average.__name__} classes": average(jm.f1, classes=[0, 2])
            for average in (jm.macro, jm.weighted, jm.micro)
        },
        cases=alone(MATRICES),
        smooth=(0,),
        inside=0.5,
    ),
    **rows(
        {"label_macro": jm.label_macro(jm.f1), "label_weighted": jm.label_weighted(jm.f1)},
        cases=_tables,
        smooth=(0,),
        inside=0.5,
    ),
    "no_information_test": Row(call=jm.no_information_test, cases=_no_information, float32=1e-4),
    "delong_unpaired": Row(
        call=jm.delong_unpaired,
        cases=against(_BINARY, _SCORE, np.roll(_BINARY, 7), _SCORE_B),
        float32=1e-4,
    ),
    # In float32 the bounds are moved apart by the rounding.
    **rows(
        {"roc_auc histogram": jm.roc_auc, "average_precision histogram": jm.average_precision},
        cases=_histograms,
        float32=5e-5,
    ),
    **rows(
        {
            f"{name} bins": call
            for name, call in named(
                "calibration_error calibration_interval calibration_curve"
            ).items()
        },
        cases=_bins,
    ),
    "two_class": Row(
        call=jm.two_class, cases=two_cases((_PROB[:, 0],), (_PROB[:, 1],)), smooth=(0,)
    ),
    "delong_interval": Row(call=jm.delong_interval, cases=_binary, **_MASKED_PAIRS),
    **rows(
        {
            f"delong_interval {average}": partial(jm.delong_interval, average=average)
            for average in ("macro", "weighted")
        },
        cases=_probs,
        examples=(-1, -2),
        options=("where",),
        float32=1e-5,
    ),
    **rows(
        {
            f"safe_threshold {metric.__name__}": partial(jm.safe_threshold, metric, least=0.15)
            for metric in (jm.recall, jm.precision)
        },
        cases=_binary,
        **_MASKED_PAIRS,
    ),
    "delong_interval weighted clusters": Row(
        call=partial(jm.delong_interval, average="weighted", clusters=_IDS),
        cases=_probs,
        float32=1e-5,
    ),
    "average_precision_interval": Row(
        call=jm.average_precision_interval, cases=_binary, float32=1e-5, **_MASKED_PAIRS
    ),
    **{
        f"{name} clusters": Row(call=partial(call, clusters=_IDS), cases=cases, float32=1e-5)
        for cases, names in (
            (_event, "calibration_interval"),
            (_binary, "delong_interval average_precision_interval"),
        )
        for name, call in named(names).items()
    },
    "compare_average_precision": Row(
        call=jm.compare_average_precision, cases=_two_scores, examples=(-1, -1, -1), float32=1e-4
    ),
    "delong": Row(call=jm.delong, cases=_two_scores, examples=(-1, -1, -1)),
}


# Betas, and what is believed after counts were seen.

_PARAMETERS = {
    "ordinary": np.array([[91.0, 11.0], [96.0, 6.0]]),
    "small": single([[3.0, 2.0], [1.5, 4.0]]),
}
_x_and_parameters = {
    "ordinary": (single(0.875), _PARAMETERS["ordinary"]),
    "small": (single(0.375), _PARAMETERS["small"]),
    "outside": (single(1.5), _PARAMETERS["small"]),
}
_two_classes = alone(
    {"ordinary": [[80, 7], [3, 21]], "transposed": [[80, 3], [7, 21]], "few": [[2, 1], [0, 1]]}
)
_x_a_b = {
    "ordinary": (single(0.25), single(2.0), single(5.5)),
    "many": (single(0.8125), single(800.0), single(200.0)),
    "pole": (single(0.125), single(0.5), single(0.5)),
    "end": (single(1.0), single(3.0), single(2.0)),
}
# Densities are tables, and in float32 coarser ones.
_TABULATED: dict[str, Any] = {"float32": 1e-4, "float64": 1e-7}


def _described(average: jm.betas.BetaAverage) -> dict[str, Any]:
    """What the methods of a BetaAverage say."""
    x = single(0.625)
    return {
        "mean": average.mean,
        "variance": average.variance,
        "mode": average.mode,
        "pdf": average.pdf(x),
        "cdf": average.cdf(x),
        "sf": average.sf(x),
        "ppf": average.ppf(single(0.125)),
        "interval": average.interval(0.9),
        "shortest": average.interval(0.9, kind="hdi"),
    }


def _summary(average: jm.betas.BetaAverage) -> dict[str, Any]:
    return {"mean": average.mean, "variance": average.variance, "cdf": average.cdf(single(0.625))}


def _of_sums_and_averages(x: Any, parameters: Any) -> dict[str, Any]:
    """All functions that make a table of the same betas, which XLA then makes once."""
    return {
        "beta_avg_pdf": jm.betas.beta_avg_pdf(x, parameters),
        "beta_avg_cdf": jm.betas.beta_avg_cdf(x, parameters),
        "beta_avg_inv_cdf": jm.betas.beta_avg_inv_cdf(x, parameters),
        "beta_sum_pdf": jm.betas.beta_sum_pdf(x, parameters),
        "beta_sum_cdf": jm.betas.beta_sum_cdf(x, parameters),
    }


def _moments_of_convolution(parameters: Any) -> dict[str, Any]:
    """Mass and mean of the tabulated density, whose points lie closer in float64 than in
    float32.
    """
    x, pdf, cdf = jm.betas.convolve_betas(parameters, num_points=513)
    step = x[..., 1:] - x[..., :-1]
    mass, first = ((step * (y[..., 1:] + y[..., :-1]) / 2).sum(-1) for y in (pdf, x * pdf))
    return {"mass": mass, "mean": first, "ends": cdf[..., -1] - cdf[..., 0]}


def key() -> Any:
    """Made at each call: a key made while JAX traces belongs to that trace."""
    return jax.random.key(0)


BETAS: dict[str, Row] = {
    "betas.BetaAverage": Row(
        call=lambda p: _described(jm.betas.BetaAverage(p)), cases=alone(_PARAMETERS), **_TABULATED
    ),
    "betas.BetaAverage sample": Row(
        call=lambda p: jm.betas.BetaAverage(p).sample(key(), (400,)),
        cases=alone(_PARAMETERS),
        draws=400,
        batch=False,
        why="random; batch axes come last",
    ),
    "betas.beta_avg_pdf": Row(call=_of_sums_and_averages, cases=_x_and_parameters, **_TABULATED),
    "betas.convolve_betas": Row(
        call=_moments_of_convolution, cases=alone(_PARAMETERS), float32=1e-3, float64=1e-4
    ),
    **rows(
        "betas.get_beta_parameters balanced_accuracy_expected",
        cases=alone(MATRICES),
        smooth=(0,),
        inside=0.5,
    ),
    **rows("betas.beta_pdf betas.beta_cdf betas.beta_ppf", cases=_x_a_b, float32=1e-5),
    "balanced_accuracy_posterior": Row(
        call=lambda c: _summary(jm.balanced_accuracy_posterior(c)), cases=_two_classes, **_TABULATED
    ),
    **{
        name: Row(
            call=lambda c, posterior=posterior: _summary(posterior(c)),
            cases=_two_classes,
            float32=1e-5,
        )
        for name, posterior in named(
            "recall_posterior precision_posterior accuracy_posterior"
        ).items()
    },
    "posterior_counts": Row(
        call=lambda c: jm.posterior_counts(key(), c, 400),
        cases=_two_classes,
        draws=400,
        batch=False,
        why="random; batch axes come second",
    ),
}

# Public functions that are called within the row of another.
TOGETHER = {
    f"betas.{name}": "betas.beta_avg_pdf"
    for name in ("beta_avg_cdf", "beta_avg_inv_cdf", "beta_sum_cdf", "beta_sum_pdf")
}


# Intervals and comparisons.

DRAWS = 500
_TABLES = two_cases(([[90, 10], [5, 95]],), ([[40, 20], [9, 71]],))
_GROUPS_OF_TWO = two_cases(
    ([[[90, 10], [25, 95]], [[40, 20], [9, 71]], [[50, 2], [3, 60]]],),
    ([[[40, 20], [9, 71]], [[31, 6], [15, 60]], [[12, 3], [4, 10]]],),
)
_paired = two_cases(
    ([[[70, 8], [5, 7]], [[4, 6], [9, 81]]],),
    ([[[60, 9], [6, 5]], [[3, 9], [4, 51]]],),
)
_judged = two_cases(
    (*_paired["ordinary"], [[800, 120], [90, 990]]),
    (*_paired["other"], [[700, 150], [40, 860]]),
)
_judged_pairs: dict[str, Any] = {
    kind: (np.stack([cube, cube[:, ::-1]], 1), np.stack([10 * cube.sum(0), 9 * cube.sum(0)], 1))
    for kind, (cube,) in _paired.items()
}
_pair = two_cases(
    (*_TABLES["ordinary"], *_TABLES["other"]), (*_TABLES["other"], *_TABLES["ordinary"])
)
_random: dict[str, Any] = {"draws": DRAWS, "why": "random: the same in distribution only"}
_looks = "looks for the combinations of labels that occur"


_of_proportions: Any = [("", "wilson")] + [
    (f" {name}", name) for name in ("likelihood", "jeffreys", "clopper_pearson", "agresti_coull")
]
_proportions = {
    "ordinary": (np.array(18), np.array(20)),
    "none": (np.array(0), np.array(7)),
    "all": (np.array(9), np.array(9)),
}


def _roc_auc(y: Any, s: Any, sample_weight: Any = None) -> Any:
    return jm.roc_auc(y, s, sample_weight=sample_weight)


_paired_clusters = {
    kind: (np.stack([np.roll(cube, i, (0, 1, 2)) for i in range(24)]),)
    for kind, (cube,) in _paired.items()
}
_shares = two_cases((_PROB[:, 0],), (_PROB[:, 1] ** 2,))
_OF_VALUES: dict[str, Any] = {"examples": (-1,), "options": ("where", "sample_weight")}
_made = np.where(np.arange(N * 4).reshape(N, 4) % 5 == 0, np.nan, 0)  # some attempts were not
_attempts = alone(
    {"ordinary": (_PROB[:, :1] > np.linspace(0.1, 0.5, 4)) + _made, "right": np.ones((N, 4))}
)
_crossed = two_cases((_PROB.reshape(K, N),), (_PROB.reshape(K, N) ** 2,))
_two_shares = {"ordinary": (_PROB[:, 0], _PROB[:, 2]), "equal": (_PROB[:, 1], _PROB[:, 1])}

# One row a method: what holds of one holds of all, by each door that takes methods.
METHODS: dict[str, Callable[[], Any]] = {
    "likelihood": jm.Likelihood,
    "delta": jm.Delta,
    "delta logit": lambda: jm.Delta("logit"),
    "bca": lambda: jm.Bootstrap(key(), num_samples=DRAWS),
    "percentile": lambda: jm.Bootstrap(key(), "percentile", DRAWS),
    "basic": lambda: jm.Bootstrap(key(), "basic", DRAWS),
    "studentized": lambda: jm.Bootstrap(key(), "studentized", DRAWS),
    "posterior": lambda: jm.Posterior(key(), num_samples=DRAWS),
}


def _intervals() -> dict[str, Row]:
    """An interval and a comparison by each method."""
    rows = {}
    for name, method in METHODS.items():
        promises = _random if method().draws else {"float32": 1e-5}
        variant = "" if name == "likelihood" else f" {name}"
        rows[f"interval{variant}"] = Row(
            call=lambda c, method=method: jm.interval(jm.macro(jm.f1), c, method=method()),
            cases=_TABLES,
            **promises,
        )
        if name != "delta logit":  # differences have no scale
            rows[f"compare{variant}"] = Row(
                call=lambda p, method=method: jm.compare(jm.accuracy, p, method=method()),
                cases=_paired,
                **promises,
            )
    return rows


_mean_interval = partial(jm.mean_interval, frequency=True)
_compare_groups = partial(jm.compare_groups, jm.binary(jm.recall), method=jm.Delta())
_compare_predictions = partial(
    jm.compare_predictions, jm.accuracy, num_classes=K, method=jm.Delta()
)

ESTIMATES: dict[str, Row] = {
    **_intervals(),
    "interval of a histogram": Row(
        call=lambda h: jm.interval(jm.roc_auc, h, method=jm.Bootstrap(key(), num_samples=DRAWS)),
        cases={kind: _histograms[kind] for kind in ("ordinary", "other")},
        **_random,
    ),
    "difference": Row(
        call=jm.difference(jm.macro(jm.f1)), cases=_paired, smooth=(0,), float32=1e-5
    ),
    "interval stratified": Row(
        call=partial(jm.interval, jm.f1, stratified=True), cases=_TABLES, float32=1e-5
    ),
    "bootstrap_counts": Row(
        call=lambda c: jm.bootstrap_counts(key(), c, DRAWS), cases=_TABLES, batch=False, **_random
    ),
    "bootstrap_examples": Row(
        call=lambda y, s: jm.bootstrap_examples(
            key(), _roc_auc, y, s, num_samples=DRAWS, resample="weights"
        ),
        cases=_binary,
        batch=False,
        **_random,
    ),
    **rows(
        {
            "compare_groups": _compare_groups,
            "compare_groups ratio": partial(_compare_groups, ratio=True),
        },
        cases=_GROUPS_OF_TWO,
        float32=1e-5,
    ),
    "mean_interval": Row(call=_mean_interval, cases=_shares, smooth=(0,), **_OF_VALUES),
    "mean_interval bounds": Row(
        call=partial(_mean_interval, bounds=(0, 1)), cases=_shares, float32=1e-5, **_OF_VALUES
    ),
    "mean_interval clusters": Row(
        call=partial(jm.mean_interval, transform="log", clusters=_IDS), cases=_shares, smooth=(0,)
    ),
    "mean_interval missing": Row(
        call=partial(_mean_interval, bounds=(0, 1), missing="bounds"),
        cases=alone({"ordinary": np.where(np.arange(N) % 7 == 2, np.nan, _PROB[:, 0])}),
        float32=1e-5,
        **_OF_VALUES,
    ),
    "score_variance of a plan": Row(
        call=lambda x: jm.score_variance(x).standard_error(10, 2)[()],
        cases=alone({"ordinary": _PROB[:6, :3], "equal": np.ones((6, 3))}),
        smooth=(0,),
    ),
    "cross_validation_interval": Row(
        call=partial(jm.cross_validation_interval, num_train=90, num_test=10),
        cases=_shares,
        smooth=(0,),
        examples=(-1,),
    ),
    "crossed_interval": Row(call=jm.crossed_interval, cases=_crossed, smooth=(0,), examples=(-1,)),
    "crossed_interval of two": Row(
        call=partial(jm.crossed_interval, bounds=(0, 1)),
        cases={kind: (*x, _PROB[::-1].reshape(K, N)) for kind, x in _crossed.items()},
        examples=(-1, -1),
        float32=1e-5,
    ),
    **rows(
        {
            "pass_at_k": partial(jm.pass_at_k, k=3),
            "pass_at_k majority": partial(jm.pass_at_k, k=2, rule="majority"),
            "score_variance": jm.score_variance,
        },
        cases=_attempts,
    ),
    **{
        f"prediction_powered{variant}": Row(
            call=partial(jm.prediction_powered, metric), cases=cases, float32=1e-5
        )
        for variant, metric, cases in (
            ("", jm.macro(jm.f1), _judged),
            (" difference", jm.difference(jm.accuracy), _judged_pairs),
        )
    },
    **rows(
        {
            f"proportion_interval{variant}": partial(jm.proportion_interval, method=method)
            for variant, method in _of_proportions
        },
        cases=_proportions,
        float32=1e-5,
    ),
    "compare_predictions": Row(
        call=_compare_predictions,
        cases=_pairs,
        batch=False,
        examples=(-1, -1, -1),
        options=("where",),
        float32=1e-5,
        why=_looks,
    ),
    "compare_predictions clusters": Row(
        call=partial(_compare_predictions, clusters=_IDS),
        cases=_pairs,
        batch=False,
        float32=1e-5,
        why="labels have no batch axes",
    ),
    "compare_unpaired": Row(
        call=partial(jm.compare_unpaired, jm.accuracy, method=jm.Delta()),
        cases=_pair,
        float32=1e-5,
    ),
    "required_examples": Row(
        call=partial(jm.required_examples, jm.accuracy, half_width=0.1),
        cases=_TABLES,
        float32=1e-5,
    ),
    **rows(
        {
            "detectable_difference": lambda p: jm.detectable_difference(jm.accuracy, p, 500),
            "power": lambda p: jm.power(jm.accuracy, p, 500, difference=0.05),
            "paired_difference_interval": jm.paired_difference_interval,
            "paired_difference_interval bonett_price": partial(
                jm.paired_difference_interval, method="bonett_price"
            ),
        },
        cases=_paired,
        float32=1e-5,
    ),
    "simulated_error": Row(
        call=lambda c: jm.simulated_error(key(), jm.f1, c, 300, num_samples=DRAWS),
        cases=_TABLES,
        **_random,
    ),
    "leaderboard": Row(
        call=lambda y, p, **options: jm.leaderboard(
            jm.accuracy, y, p, num_classes=K, key=key(), num_samples=DRAWS, **options
        ),
        cases=against(_TRUE, np.stack([_PRED, _OTHER])),
        batch=False,
        draws=DRAWS,
        why="random, and the classifiers are no batch",
    ),
    "compare_scores": Row(
        call=partial(jm.compare_scores, bounds=(0, 1)),
        cases=_two_shares,
        float32=1e-5,
        **_MASKED_PAIRS,
    ),
    "compare_scores clusters": Row(
        call=partial(jm.compare_scores, clusters=_IDS),
        cases=_two_shares,
        smooth=(0, 1),
        float32=1e-5,
    ),
    "compare_scores unpaired": Row(
        call=partial(jm.compare_scores, paired=False),
        cases=_two_shares,
        smooth=(0, 1),
        float32=1e-5,
    ),
    "compare_scores unpaired bounds": Row(
        call=partial(jm.compare_scores, paired=False, bounds=(0, 1)),
        cases=_two_shares,
        float32=1e-5,
    ),
    "score_leaderboard": Row(
        call=partial(jm.score_leaderboard, bounds=(0, 1), key=key(), num_samples=DRAWS),
        cases=alone({"ordinary": _PROB.T[:3]}),
        batch=False,
        draws=DRAWS,
        why="random, and the systems are no batch",
    ),
    # The host takes SciPy's incomplete beta function, the device Stirling's series.
    **rows(
        {
            "mcnemar": jm.mcnemar,
            **{
                f"mcnemar {method}": partial(jm.mcnemar, method=method)
                for method in ("exact", "corrected", "asymptotic")
            },
        },
        cases=_paired,
        float32=1e-5,
        float64=1e-8,
    ),
    "mcnemar clusters": Row(
        call=partial(jm.mcnemar, cluster_axis=-4), cases=_paired_clusters, float32=1e-5
    ),
    "permutation_test": Row(
        call=lambda p: jm.permutation_test(key(), jm.accuracy, p, num_samples=DRAWS),
        cases=_paired,
        **_random,
    ),
}


# Losses: of logits, differentiable; most of them one per example.

_EACH: dict[str, Any] = {"per_example": True, "adds": True, "smooth": (0,), "options": ("where",)}
_rows = two_cases((_LOGITS, _TRUE), (_LOGITS, np.roll(_TRUE, 5)))
_events = two_cases((_LOGITS[:, 0], _BINARY), (_LOGITS[:, 0], np.roll(_BINARY, 5)))
_HIDDEN, _KERNEL = single(_rng.normal(size=(N, 3))), single(_rng.normal(size=(3, 7)))
_fields = two_cases((_LOSS,), (_LOSS[::-1] ** 2,))
_words = two_cases(
    (_HIDDEN, _KERNEL, _rng.integers(-1, 7, N)), (_HIDDEN[::-1], _KERNEL, _rng.integers(-1, 7, N))
)

LOSSES: dict[str, Row] = {
    **rows(
        {
            **named("cross_entropy focal_loss multiclass_hinge_loss"),
            "cross_entropy smoothed": partial(
                jm.cross_entropy, label_smoothing=0.1, class_weights=np.arange(1.0, K + 1)
            ),
        },
        cases=_rows,
        examples=(-2, -1),
        **_EACH,
    ),
    "soft_cross_entropy": Row(
        call=jm.soft_cross_entropy,
        cases=two_cases((_LOGITS, _PROB), (_LOGITS, _PROB[::-1])),
        examples=(-2, -2),
        **_EACH,
    ),
    "nll": Row(
        call=jm.nll,
        cases=two_cases((_PROB, _TRUE), (_PROB[::-1], _TRUE)),
        examples=(-2, -1),
        **_EACH,
    ),
    **rows("binary_cross_entropy hinge_loss", cases=_events, examples=(-1, -1), **_EACH),
    **rows(
        "linear_cross_entropy mean_linear_cross_entropy",
        cases=_words,
        host=False,
        batch=False,
        smooth=(0, 1),
        why="exists for training alone, and all batches share a kernel",
    ),
    "weighted_mean": Row(
        call=partial(jm.weighted_mean, axis=-1), cases=_fields, smooth=(0,), **_OF_VALUES
    ),
    "metric_loss": Row(
        call=jm.metric_loss(jm.macro(jm.f1)),
        cases=_rows,
        smooth=(0,),
        **(OF_ROWS | {"examples": (-2, -1)}),
    ),
    "pairwise_auc_loss": Row(call=jm.pairwise_auc_loss, cases=_events, smooth=(0,), **OF_EXAMPLES),
    "soft_calibration_error": Row(
        call=jm.soft_calibration_error,
        cases=two_cases((_PROB[:, 0], _BINARY), (_PROB[:, 1], _BINARY)),
        smooth=(0,),
        float32=1e-4,  # bins of temperature 0.01
        **OF_EXAMPLES,
    ),
}


# States: of JAX, from the start to the end.

_STATES: dict[str, Any] = {
    "host": False,
    "batch": False,
    "why": "states are carries of training loops: JAX's",
    "options": ("where", "sample_weight"),
}


class Constant(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that has learned its predictions by heart."""

    def __init__(self, predictions: Any) -> None:
        self.predictions = predictions

    def predict(self, X: object) -> Any:
        return self.predictions


def _streamed(
    fields: str, cases: Mapping[str, Case], *accumulators: jm.streaming.Accumulator, **promises: Any
) -> Row:
    """The results of one batch with these fields."""
    evaluator, names = jm.evaluator(*accumulators), fields.split()

    def call(*arrays: Any, **options: Any) -> Any:
        batch = dict(zip(names, arrays, strict=True)) | options
        return evaluator.compute(evaluator.update(evaluator.init(), **batch))

    examples = tuple(-2 if name == "logits" else -1 for name in names)
    return Row(call=call, cases=cases, examples=examples, **(_STATES | promises))


def _round_trip(loss: Any) -> Any:
    evaluator = jm.evaluator(jm.mean_of("loss"))
    state = evaluator.update(evaluator.init(), loss=loss)
    with tempfile.TemporaryDirectory() as folder:
        jm.save_state(Path(folder) / "state", state)
        return evaluator.compute(jm.load_state(Path(folder) / "state"))


def _sequence(values: Any) -> Any:
    sequence = jm.confidence_sequence(low=-4.0, high=10.0)
    return sequence.compute(sequence.update(sequence.init(), values))


_files: dict[str, Any] = {
    "host": False,
    "jit": False,
    "batch": False,
    "why": "of files, which hold the states of JAX",
}

STREAMS: dict[str, Row] = {
    "evaluator": _streamed(
        "y_true logits loss",
        against(_TRUE, _LOGITS, _LOSS),
        jm.count_metrics({"macro_f1": jm.macro(jm.f1)}, num_classes=K, weighted=True),
        jm.mean_of("loss", level=0.9, frequency=True),
        float32=1e-5,
    ),
    "count_metrics": _streamed(
        "y_true y_pred",
        _labelled,
        jm.count_metrics({"accuracy": jm.accuracy}, num_classes=K, method=jm.Delta()),
        options=("where",),
    ),
    "mean_of": _streamed(
        "loss cost kind size",
        two_cases(
            (_LOSS, _LOSS[::-1], np.arange(N) % 3, _LOSS + 1),
            (_LOSS**2, _LOSS, np.arange(N) // 30 - 1, np.arange(N) % 4.0),
        ),
        jm.mean_of("loss", level=0.9, frequency=True),
        jm.mean_of("cost", groups="kind", num_groups=4, weights="size"),
        float32=1e-5,
    ),
    "ranking_metrics": _streamed(
        "y_true y_score",
        _binary,
        jm.ranking_metrics(_both_areas, scale="logit", num_bins=64, weighted=True),
    ),
    "calibration_metrics": _streamed("y_true y_prob", _event, jm.calibration_metrics()),
    "paired_metrics": _streamed(
        "y_true y_pred_a y_pred_b",
        _pairs,
        jm.paired_metrics({"accuracy": jm.accuracy}, num_classes=K, weighted=True),
    ),
    "poisson_bootstrap": _streamed(
        "loss unit",
        two_cases((_LOSS, np.arange(N)), (_LOSS**2, np.arange(N) // 2)),
        jm.poisson_bootstrap(jm.mean_of("loss"), num_samples=50),
        options=("where",),
        float32=1e-5,
    ),
    "confidence_sequence": Row(
        call=_sequence,
        cases=_fields,
        float32=1e-5,
        **(_STATES | {"options": ()}),
    ),
    **rows({"save_state": _round_trip, "load_state": _round_trip}, cases=_fields, **_files),
}


# What answers a person: Python's numbers, wherever the data live.


def _frame(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({name: np.asarray(values) for name, values in columns.items()})


_plain: dict[str, Any] = {"device": False, "jit": False, "batch": False, "why": "Python's numbers"}
_of_frames: dict[str, Any] = _plain | {"why": "of tables"}

ANSWERS: dict[str, Row] = {
    "check_labels": Row(
        call=partial(jm.check_labels, num_classes=K),
        cases=alone({"ordinary": _OTHER % K}),
        **(_plain | {"why": "raises or not"}),
    ),
    **rows("one_vs_rest normalize", cases=alone(MATRICES), smooth=(0,), inside=0.5),
    "to_python": Row(
        call=lambda c: jm.to_python(
            {"accuracy": jm.interval(jm.accuracy, c, method=jm.Delta()), "recall": jm.recall(c)}
        ),
        cases=_TABLES,
        **_plain,
    ),
    "confusion_matrix_of": Row(
        call=lambda y, p: jm.confusion_matrix_of(_frame(y_true=y, y_pred=p)).counts,
        cases=_labelled,
        examples=(-1, -1),
        adds=True,
        **_of_frames,
    ),
    "paired_confusion_matrix_of": Row(
        call=lambda y, a, b: (
            jm.paired_confusion_matrix_of(_frame(y_true=y, y_pred_a=a, y_pred_b=b)).counts
        ),
        cases=_pairs,
        examples=(-1, -1, -1),
        **_of_frames,
    ),
    "score_histogram_of": Row(
        call=lambda y, s: (
            jm.score_histogram_of(_frame(y_true=y, y_score=s), scale="logit", num_bins=64).counts
        ),
        cases=_binary,
        examples=(-1, -1),
        adds=True,
        **_of_frames,
    ),
    "rater_agreement": Row(
        call=jm.rater_agreement,
        cases=alone(
            {
                "ordinary": np.where(_LABELS[0] < 0, np.nan, _LABELS[0]),
                "two categories": abs(_LABELS[1]),
            }
        ),
        examples=(-2,),
        float64=1e-8,  # of ends, which are found in steps
        **(_plain | {"why": "looks for the categories that occur"}),
    ),
    "scorer": Row(
        call=lambda y, p: jm.scorer(jm.macro(jm.f1))(Constant(p), None, y),
        cases=_labelled,
        examples=(-1, -1),
        **_plain,
    ),
    **{
        name: Row(
            call=lambda *arrays, report=report: report(*arrays).to_dict(),
            cases=cases,
            examples=(axis,) * len(cases["ordinary"]),
            **_plain,
        )
        for name, report, cases, axis in (
            ("report", jm.report, _labelled, -1),
            ("comparison_report", jm.comparison_report, _pairs, -1),
            ("score_report", partial(jm.score_report, bounds=(0, 1)), _two_shares, -1),
            (
                "multilabel_report",
                jm.multilabel_report,
                against(abs(_LABELS[0]), abs(_LABELS[1]), axis=-2),
                -2,
            ),
        )
    },
}

ROWS: dict[str, Row] = (
    METRICS | COUNTERS | SCORERS | OF_CURVES | BETAS | ESTIMATES | LOSSES | STREAMS | ANSWERS
)

# Functions whose results people read: of few numbers in JAX arrays, NumPy computes them.
_READ = """
    accuracy_posterior average_precision_interval balanced_accuracy_expected
    balanced_accuracy_posterior betas.BetaAverage betas.beta_avg_pdf betas.beta_cdf
    betas.beta_pdf betas.beta_ppf calibration_interval compare compare_average_precision
    compare_groups compare_predictions compare_scores compare_unpaired cross_validation_interval
    crossed_interval delong delong_interval delong_unpaired detectable_difference interval mcnemar
    mean_interval no_information_test paired_difference_interval power precision_posterior
    prediction_powered proportion_interval recall_posterior required_examples risk_coverage
"""
READ = _READ.split()

# Public types, and a row whose function returns one, itself or within its result.
TYPES: dict[str, Callable[[], Any]] = {
    "streaming.Accumulator": lambda: jm.mean_of("loss"),
    "ranking.AreaBounds": lambda: jm.roc_auc(_HISTOGRAM),
    "scoring.CalibrationCurve": lambda: jm.calibration_curve(*_event["ordinary"]),
    "scoring.ScoreDecomposition": lambda: jm.score_decomposition(*_event["ordinary"]),
    "streaming.Batch": lambda: jm.streaming.Batch(
        {"loss": _LOSS}, {"loss": jm.streaming.Kind.NUMBERS}
    ),
    "Comparison": lambda: ESTIMATES["compare delta"].call(*_paired["ordinary"]),
    "ComparisonReport": lambda: jm.comparison_report(*_pairs["ordinary"]),
    "ranking.ConstrainedPoint": lambda: jm.best_threshold(
        jm.recall, *_binary["ordinary"], subject_to=(jm.precision, 0.5), level=0.9
    ),
    "streaming.ConfidenceSequence": jm.confidence_sequence,
    "streaming.ConfidenceState": lambda: jm.confidence_sequence().init(),
    "betas.Convolution": lambda: jm.betas.convolve_betas(_PARAMETERS["small"], num_points=33),
    "Bootstrap": lambda: jm.Bootstrap(0),
    "Delta": lambda: jm.Delta("logit"),
    "ranking.DetCurve": lambda: jm.det_curve(*_binary["ordinary"]),
    "Estimate": lambda: jm.proportion_interval(18, 20),
    "streaming.Evaluator": lambda: jm.evaluator(jm.mean_of("loss")),
    "streaming.EvaluatorState": lambda: jm.evaluator(jm.mean_of("loss")).init(),
    "HypothesisTest": lambda: jm.mcnemar(*_paired["ordinary"]),
    "IntervalMethod": jm.Likelihood,
    "Leaderboard": lambda: ESTIMATES["leaderboard"].call(*ESTIMATES["leaderboard"].ordinary),
    "Likelihood": jm.Likelihood,
    "ranking.OperatingPoint": lambda: jm.best_threshold(jm.accuracy, *_binary["ordinary"]),
    "streaming.Kind": lambda: jm.streaming.Kind.LABELS,
    "streaming.PairedValues": lambda: STREAMS["paired_metrics"].call(*_pairs["ordinary"])[
        "accuracy"
    ],
    "Posterior": lambda: jm.Posterior(0),
    "ranking.PrecisionRecallCurve": lambda: jm.precision_recall_curve(*_binary["ordinary"]),
    "Report": lambda: jm.report(_TRUE, _PRED),
    "ranking.RiskCoverage": lambda: jm.risk_coverage(*_answers["ordinary"]),
    "ranking.RocCurve": lambda: jm.roc_curve(*_binary["ordinary"]),
    "streaming.Statistic": lambda: jm.mean_of("loss").statistics[0],
    "TableCounts": lambda: jm.confusion_matrix_of(_frame(y_true=_TRUE, y_pred=_PRED)),
}
