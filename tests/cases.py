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
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import polars as pl

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

MATRICES: dict[str, np.ndarray] = {
    "ordinary": np.array([[31, 4, 2, 0], [3, 22, 6, 1], [0, 5, 40, 7], [2, 1, 3, 18]]),
    "absent class": np.array([[31, 4, 0, 2], [3, 22, 0, 6], [0, 0, 0, 0], [2, 1, 0, 18]]),
    "only in truth": np.array([[31, 4, 0, 2], [3, 22, 0, 6], [5, 1, 0, 2], [2, 1, 0, 18]]),
    "only in prediction": np.array([[31, 4, 1, 2], [3, 22, 4, 6], [0, 0, 0, 0], [2, 1, 3, 18]]),
    "constant prediction": np.array([[0, 0, 9, 0], [0, 0, 5, 0], [0, 0, 70, 0], [0, 0, 16, 0]]),
    "one class": np.array([[0, 0, 0, 0], [0, 12, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
    "one class, all wrong": np.array([[0, 0, 0, 0], [0, 0, 5, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
    "perfect": np.diag([3, 1, 8, 2]),
    "all wrong": np.array([[0, 3, 1, 2], [4, 0, 2, 5], [1, 2, 0, 2], [2, 1, 2, 0]]),
    "rare": np.array([[10**9, 30, 2, 5], [40, 300, 1, 0], [7, 0, 12, 3], [1, 2, 1, 4]]),
    "transposed": np.array([[31, 3, 0, 2], [4, 22, 5, 1], [2, 6, 40, 3], [0, 1, 7, 18]]),
    "empty": np.zeros((4, 4), int),
}
TWO_CLASS_MATRICES: dict[str, np.ndarray] = {
    "ordinary": np.array([[80, 7], [3, 21]]),
    "rare": np.array([[2 * 10**9, 300], [40, 1000]]),
    "never positive": np.array([[9, 0], [4, 0]]),
    "transposed": np.array([[80, 3], [7, 21]]),
    "one class": np.array([[9, 0], [0, 0]]),
    "empty": np.zeros((2, 2), int),
}
GROUPED: dict[str, np.ndarray] = {
    "ordinary": np.stack([MATRICES["ordinary"], MATRICES["all wrong"], MATRICES["perfect"]]),
    "empty group": np.stack([MATRICES["ordinary"], MATRICES["empty"], MATRICES["absent class"]]),
    "transposed": np.stack([MATRICES["transposed"], MATRICES["all wrong"].T, MATRICES["perfect"]]),
    "empty": np.zeros((3, 4, 4), int),
}


def alone(arrays: Mapping[str, Any]) -> dict[str, Case]:
    """Cases of one argument."""
    return {kind: (np.asarray(x),) for kind, x in arrays.items()}


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


def _overall(name: str, call: Callable[..., Any], **promises: Any) -> tuple[str, Metric]:
    return name, Metric(call=call, oracle=oracles.OVERALL[name], **promises)


def _rate(name: str) -> tuple[str, Metric]:
    """The function of jaxmetrics that an oracle is named after."""
    assert hasattr(jm, name), f"oracles.py has {name!r}: write it, in __all__ of its file too"
    call = _WITH_PARAMETERS.get(name, getattr(jm, name))
    _, *others = inspect.signature(call).parameters.values()
    unbound = [x.name for x in others if x.default is x.empty]
    assert not unbound, f"{name!r} needs {unbound}: bind them in _WITH_PARAMETERS of cases.py"
    return name, Metric(call=call, oracle=oracles.RATES[name], per_class=True)


def _of_groups(name: str, call: Callable[..., Any]) -> tuple[str, Metric]:
    return name, Metric(
        call=call, oracle=oracles.GROUPS[name], per_class=True, cases=alone(GROUPED)
    )


def _costs(counts: Any) -> np.ndarray:
    return oracles.example_costs(np.shape(counts)[-1])


# Rates with more parameters than counts, which have the values of their oracles.
_WITH_PARAMETERS = {
    "f_beta": partial(jm.f_beta, beta=2.0),
    "tversky": partial(jm.tversky, alpha=0.3, beta=0.8),
    "net_benefit": partial(jm.net_benefit, threshold=0.2),
}

METRICS: dict[str, Metric] = dict(
    [
        _overall("accuracy", jm.accuracy),
        _overall("naive_accuracy", jm.naive_accuracy),
        _overall("error_rate", jm.error_rate),
        _overall("no_information_rate", jm.no_information_rate, smooth=(), why="a maximum"),
        _overall("balanced_accuracy", jm.balanced_accuracy),
        _overall("balanced_accuracy adjusted", partial(jm.balanced_accuracy, adjusted=True)),
        _overall("g_mean", jm.g_mean),
        _overall("matthews_corrcoef", jm.matthews_corrcoef),
        _overall("cohen_kappa", jm.cohen_kappa),
        _overall(
            "cohen_kappa linear", partial(jm.cohen_kappa, weights="linear"), any_class_order=False
        ),
        _overall(
            "cohen_kappa quadratic",
            partial(jm.cohen_kappa, weights="quadratic"),
            any_class_order=False,
        ),
        _overall(
            "cohen_kappa costs",
            lambda c: jm.cohen_kappa(c, weights=_costs(c)),
            any_class_order=False,
        ),
        _overall("cohen_kappa pooled", partial(jm.cohen_kappa, chance="pooled")),
        _overall(
            "cohen_kappa uniform",
            partial(jm.cohen_kappa, chance="uniform"),
            ignores_absent_classes=False,
        ),
        _overall(
            "cohen_kappa majority",
            partial(jm.cohen_kappa, chance="majority"),
            smooth=(),
            why="a maximum",
        ),
        _overall(
            "cohen_kappa gwet", partial(jm.cohen_kappa, chance="gwet"), ignores_absent_classes=False
        ),
        _overall(
            "cohen_kappa gwet linear",
            partial(jm.cohen_kappa, chance="gwet", weights="linear"),
            any_class_order=False,
            ignores_absent_classes=False,
        ),
        _overall("krippendorff_alpha", jm.krippendorff_alpha, scale_free=False),
        _overall(
            "krippendorff_alpha quadratic",
            partial(jm.krippendorff_alpha, weights="quadratic"),
            scale_free=False,
            any_class_order=False,
        ),
        _overall("cramers_v", jm.cramers_v),
        _overall("mutual_information", jm.mutual_information),
        _overall("normalized_mutual_information", jm.normalized_mutual_information),
        _overall("confusion_entropy", jm.confusion_entropy),
        _overall("expected_cost", lambda c: jm.expected_cost(c, _costs(c)), any_class_order=False),
        _overall("macro", jm.macro(jm.f1)),
        _overall("macro precision", jm.macro(jm.precision)),
        _overall("weighted", jm.weighted(jm.f1)),
        _overall("micro", jm.micro(jm.f1)),
        _overall("micro specificity", jm.micro(jm.specificity)),
        _overall("weighted_micro", jm.weighted_micro(jm.precision)),
        _overall("weighted_micro recall", jm.weighted_micro(jm.recall)),
        *map(_rate, oracles.RATES),
        (
            "binary",
            Metric(
                call=jm.binary(jm.precision),
                oracle=lambda c: oracles.RATES["precision"](c)[1],
                cases=alone(TWO_CLASS_MATRICES),
                any_class_order=False,
                ignores_absent_classes=False,
            ),
        ),
        (
            "at_prevalence",
            Metric(
                call=jm.at_prevalence(jm.precision, [0.1, 0.2, 0.3, 0.4]),
                oracle=partial(oracles.precision_at_prevalence, prevalence=(0.1, 0.2, 0.3, 0.4)),
                per_class=True,
                cases=alone({name: x for name, x in MATRICES.items() if x.sum(1).all()}),
                any_class_order=False,
                ignores_absent_classes=False,
                why="of a class without examples nothing is known",
            ),
        ),
        _of_groups("group_ratio", jm.group_ratio(jm.precision)),
        _of_groups("group_difference", jm.group_difference(jm.precision)),
        _of_groups("demographic_parity_ratio", jm.demographic_parity_ratio),
        _of_groups("equal_opportunity_ratio", jm.equal_opportunity_ratio),
    ]
)


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


def _counter(
    call: Callable[..., Any], cases: dict[str, Case], examples: tuple[int, ...], **promises: Any
) -> Row:
    """A function of examples to counts."""
    options = ("where", "sample_weight", "groups")
    return Row(call=call, cases=cases, examples=examples, options=options, adds=True, **promises)


COUNTERS: dict[str, Row] = {
    "confusion_matrix": _counter(
        partial(jm.confusion_matrix, num_classes=K), against(_TRUE, _PRED), (-1, -1)
    ),
    "paired_confusion_matrix": _counter(
        partial(jm.paired_confusion_matrix, num_classes=K),
        against(_TRUE, _PRED, _OTHER),
        (-1, -1, -1),
    ),
    "soft_confusion_matrix": _counter(
        jm.soft_confusion_matrix, against(_TRUE, _PROB), (-1, -2), smooth=(1,)
    ),
    "multilabel_confusion_matrix": _counter(
        jm.multilabel_confusion_matrix, against(_LABELS[0], abs(_LABELS[1]), axis=-2), (-2, -2)
    ),
    "confusion_matrix_at_thresholds": _counter(
        partial(jm.confusion_matrix_at_thresholds, thresholds=_THRESHOLDS),
        against(_BINARY, _SCORE),
        (-1, -1),
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

_binary = against(_BINARY, _SCORE)
_event = against(_BINARY, _PROB[:, 0])
_probs = against(_TRUE, _PROB)
_soft = against(_PROB[::-1].copy(), _PROB, axis=-2)
_labels = against(_LABELS[0], _PROB[:, :3], axis=-2)

SCORERS: dict[str, Row] = {
    "roc_auc": Row(call=jm.roc_auc, cases=_binary, **OF_EXAMPLES),
    "roc_auc partial": Row(call=partial(jm.roc_auc, max_fpr=0.3), cases=_binary, **OF_EXAMPLES),
    "roc_auc along sensitivity": Row(
        call=partial(jm.roc_auc, min_tpr=0.6, standardized=False), cases=_binary, **OF_EXAMPLES
    ),
    "average_precision": Row(call=jm.average_precision, cases=_binary, **OF_EXAMPLES),
    "equal_error_rate": Row(call=jm.equal_error_rate, cases=_binary, **OF_EXAMPLES),
    "ks_statistic": Row(call=jm.ks_statistic, cases=_binary, **OF_EXAMPLES),
    "best_threshold": Row(
        call=partial(jm.best_threshold, jm.accuracy), cases=_binary, **OF_EXAMPLES
    ),
    **{
        f"best_threshold {name}": Row(
            call=partial(jm.best_threshold, metric, subject_to=(constraint, 0.7)),
            cases=_binary,
            **OF_EXAMPLES,
        )
        for name, (metric, constraint) in _constrained.items()
    },
    "score_histogram": Row(
        call=_histogram,
        cases=_binary,
        adds=True,
        **(OF_EXAMPLES | {"options": ("where", "sample_weight", "groups")}),
    ),
    "roc_auc_one_vs_one": Row(call=jm.roc_auc_one_vs_one, cases=_probs, **OF_ROWS),
    "roc_auc_one_vs_one weighted": Row(
        call=partial(jm.roc_auc_one_vs_one, average="weighted"), cases=_probs, **OF_ROWS
    ),
    "per_class": Row(call=jm.per_class(jm.roc_auc), cases=_probs, **OF_ROWS),
    "per_class micro": Row(call=jm.per_class(jm.roc_auc, average="micro"), cases=_probs, **OF_ROWS),
    "per_class weighted": Row(
        call=jm.per_class(jm.average_precision, average="weighted"), cases=_probs, **OF_ROWS
    ),
    "per_label": Row(
        call=jm.per_label(jm.average_precision, average="macro"), cases=_labels, **OF_TABLES
    ),
    "top_k_accuracy": Row(call=partial(jm.top_k_accuracy, k=2), cases=_probs, **OF_ROWS),
    "top_k_accuracy expected": Row(
        call=partial(jm.top_k_accuracy, k=2, ties="expected"), cases=_probs, **OF_ROWS
    ),
    "top_k_precision": Row(call=partial(jm.top_k_precision, k=2), cases=_labels, **OF_TABLES),
    "top_k_recall": Row(call=partial(jm.top_k_recall, k=2), cases=_labels, **OF_TABLES),
    "hamming_loss": Row(
        call=jm.hamming_loss, cases=against(_LABELS[0], abs(_LABELS[1]), axis=-2), **OF_TABLES
    ),
    "exact_match": Row(
        call=jm.exact_match, cases=against(_LABELS[0], abs(_LABELS[1]), axis=-2), **OF_TABLES
    ),
    "label_ranking_average_precision": Row(
        call=jm.label_ranking_average_precision, cases=_labels, **OF_TABLES
    ),
    "label_ranking_loss": Row(call=jm.label_ranking_loss, cases=_labels, **OF_TABLES),
    "coverage_error": Row(call=jm.coverage_error, cases=_labels, **OF_TABLES),
    "ndcg": Row(call=jm.ndcg, cases=against(_GAIN, _PROB[:, :3], axis=-2), **OF_TABLES),
    "dcg": Row(call=jm.dcg, cases=against(_GAIN, _PROB[:, :3], axis=-2), **OF_TABLES),
    "log_loss": Row(call=jm.log_loss, cases=_probs, smooth=(1,), **OF_ROWS),
    "log_loss logits": Row(
        call=lambda y, z, **options: jm.log_loss(y, logits=z, **options),
        cases=against(_TRUE, _LOGITS),
        smooth=(1,),
        **OF_ROWS,
    ),
    "log_loss soft": Row(call=jm.log_loss, cases=_soft, smooth=(1,), **OF_TABLES),
    "log_loss soft logits": Row(
        call=lambda t, z, **options: jm.log_loss(t, logits=z, **options),
        cases=against(_PROB, _LOGITS, axis=-2),
        smooth=(1,),
        **OF_TABLES,
    ),
    "brier_score": Row(call=jm.brier_score, cases=_probs, smooth=(1,), **OF_ROWS),
    "brier_score soft": Row(call=jm.brier_score, cases=_soft, smooth=(1,), **OF_TABLES),
    "spherical_score": Row(call=jm.spherical_score, cases=_probs, smooth=(1,), **OF_ROWS),
    "ranked_probability_score": Row(
        call=jm.ranked_probability_score, cases=_probs, smooth=(1,), **OF_ROWS
    ),
    "d2_log_loss_score": Row(call=jm.d2_log_loss_score, cases=_probs, smooth=(1,), **OF_ROWS),
    "d2_log_loss_score logits": Row(
        call=lambda y, z, **options: jm.d2_log_loss_score(y, logits=z, **options),
        cases=against(_TRUE, _LOGITS),
        smooth=(1,),
        **OF_ROWS,
    ),
    "d2_brier_score": Row(call=jm.d2_brier_score, cases=_probs, smooth=(1,), **OF_ROWS),
    "d2_brier_score soft": Row(call=jm.d2_brier_score, cases=_soft, smooth=(1,), **OF_TABLES),
    "normalized_entropy": Row(call=jm.normalized_entropy, cases=_probs, smooth=(1,), **OF_ROWS),
    "calibration_bins": Row(
        call=jm.calibration_bins, cases=_event, smooth=(1,), adds=True, **OF_EXAMPLES
    ),
    "calibration_error": Row(call=jm.calibration_error, cases=_event, smooth=(1,), **OF_EXAMPLES),
    "calibration_error l2": Row(
        call=partial(
            jm.calibration_error, norm="l2", debiased=True, strategy="quantile", num_bins=7
        ),
        cases=_event,
        smooth=(1,),
        **OF_EXAMPLES,
    ),
    "calibration_error max": Row(
        call=partial(jm.calibration_error, norm="max", num_bins=4),
        cases=_event,
        smooth=(1,),
        **OF_EXAMPLES,
    ),
    "calibration_interval": Row(call=jm.calibration_interval, cases=_event, **OF_EXAMPLES),
    "calibration_curve": Row(
        call=partial(jm.calibration_curve, strategy="quantile"),
        cases=_event,
        smooth=(1,),
        **OF_EXAMPLES,
    ),
    "score_decomposition bins": Row(
        call=partial(jm.score_decomposition, strategy="quantile"),
        cases=_event,
        smooth=(1,),
        **OF_EXAMPLES,
    ),
    "score_decomposition": Row(call=jm.score_decomposition, cases=_event, **OF_EXAMPLES),
    "score_decomposition log_loss": Row(
        call=partial(jm.score_decomposition, score="log_loss"), cases=_event, **OF_EXAMPLES
    ),
    "top_label": Row(call=jm.top_label(jm.calibration_error), cases=_probs, smooth=(1,), **OF_ROWS),
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
_tables = alone({"ordinary": np.arange(3, 15).reshape(3, 2, 2), "other": np.eye(2) + [[[3]]] * 3})
_no_information = alone({kind: MATRICES[kind] for kind in ("ordinary", "perfect", "all wrong")})
_FPR, _TPR = single([0, 0, 0.25, 0.5, 1]), single([0, 0.5, 0.5, 0.875, 1])

OF_CURVES: dict[str, Row] = {
    "roc_curve": Row(call=jm.roc_curve, cases=_binary, **_as_points),
    "precision_recall_curve": Row(call=jm.precision_recall_curve, cases=_binary, **_as_points),
    "det_curve": Row(call=jm.det_curve, cases=_binary, **_as_points),
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
    "auc": Row(
        call=jm.auc, cases={"ordinary": (_FPR, _TPR), "other": (_FPR, _TPR**2)}, smooth=(1,)
    ),
    # In float32 the bounds are moved apart by the rounding.
    **{
        f"{average.__name__} classes": Row(
            call=average(jm.f1, classes=[0, 2]), cases=alone(MATRICES), smooth=(0,), inside=0.5
        )
        for average in (jm.macro, jm.weighted, jm.micro)
    },
    "label_macro": Row(call=jm.label_macro(jm.f1), cases=_tables, smooth=(0,), inside=0.5),
    "label_weighted": Row(call=jm.label_weighted(jm.f1), cases=_tables, smooth=(0,), inside=0.5),
    "no_information_test": Row(call=jm.no_information_test, cases=_no_information, float32=1e-4),
    "delong_unpaired": Row(
        call=jm.delong_unpaired,
        cases=against(_BINARY, _SCORE, np.roll(_BINARY, 7), _SCORE_B),
        float32=1e-4,
    ),
    "roc_auc histogram": Row(call=jm.roc_auc, cases=_histograms, float32=5e-5),
    "average_precision histogram": Row(call=jm.average_precision, cases=_histograms, float32=5e-5),
    "calibration_error bins": Row(call=jm.calibration_error, cases=_bins),
    "calibration_interval bins": Row(call=jm.calibration_interval, cases=_bins),
    "calibration_curve bins": Row(call=jm.calibration_curve, cases=_bins),
    "two_class": Row(
        call=jm.two_class, cases=alone({"ordinary": _PROB[:, 0], "other": _PROB[:, 1]}), smooth=(0,)
    ),
    "delong_interval": Row(
        call=jm.delong_interval, cases=_binary, examples=(-1, -1), options=("where",)
    ),
    "calibration_interval clusters": Row(
        call=partial(jm.calibration_interval, clusters=np.arange(N) * 2 // 3),
        cases=_event,
        float32=1e-5,
    ),
    "delong_interval clusters": Row(
        call=partial(jm.delong_interval, clusters=np.arange(N) * 2 // 3),
        cases=_binary,
        float32=1e-5,
    ),
    "average_precision_interval": Row(
        call=jm.average_precision_interval,
        cases=_binary,
        examples=(-1, -1),
        options=("where",),
        float32=1e-5,
    ),
    "average_precision_interval clusters": Row(
        call=partial(jm.average_precision_interval, clusters=np.arange(N) * 2 // 3),
        cases=_binary,
        float32=1e-5,
    ),
    "compare_average_precision": Row(
        call=jm.compare_average_precision,
        cases=against(_BINARY, _SCORE, _SCORE_B),
        examples=(-1, -1, -1),
        float32=1e-4,
    ),
    "delong": Row(call=jm.delong, cases=against(_BINARY, _SCORE, _SCORE_B), examples=(-1, -1, -1)),
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
    "betas.get_beta_parameters": Row(
        call=jm.betas.get_beta_parameters, cases=alone(MATRICES), smooth=(0,), inside=0.5
    ),
    "betas.beta_pdf": Row(call=jm.betas.beta_pdf, cases=_x_a_b, float32=1e-5),
    "betas.beta_cdf": Row(call=jm.betas.beta_cdf, cases=_x_a_b, float32=1e-5),
    "betas.beta_ppf": Row(call=jm.betas.beta_ppf, cases=_x_a_b, float32=1e-5),
    "balanced_accuracy_expected": Row(
        call=jm.balanced_accuracy_expected, cases=alone(MATRICES), smooth=(0,), inside=0.5
    ),
    "balanced_accuracy_posterior": Row(
        call=lambda c: _summary(jm.balanced_accuracy_posterior(c)), cases=_two_classes, **_TABULATED
    ),
    **{
        f"{name}_posterior": Row(
            call=lambda c, posterior=posterior: _summary(posterior(c)),
            cases=_two_classes,
            float32=1e-5,
        )
        for name, posterior in {
            "recall": jm.recall_posterior,
            "precision": jm.precision_posterior,
            "accuracy": jm.accuracy_posterior,
        }.items()
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
_TABLES = alone({"ordinary": [[90, 10], [5, 95]], "other": [[40, 20], [9, 71]]})
_GROUPS_OF_TWO = alone(
    {
        "ordinary": [[[90, 10], [25, 95]], [[40, 20], [9, 71]], [[50, 2], [3, 60]]],
        "other": [[[40, 20], [9, 71]], [[31, 6], [15, 60]], [[12, 3], [4, 10]]],
    }
)
_paired = alone(
    {
        "ordinary": [[[70, 8], [5, 7]], [[4, 6], [9, 81]]],
        "other": [[[60, 9], [6, 5]], [[3, 9], [4, 51]]],
    }
)
_judged: dict[str, Any] = {
    "ordinary": (*_paired["ordinary"], np.array([[800, 120], [90, 990]])),
    "other": (*_paired["other"], np.array([[700, 150], [40, 860]])),
}
_judged_pairs: dict[str, Any] = {
    kind: (np.stack([cube, cube[:, ::-1]], 1), np.stack([10 * cube.sum(0), 9 * cube.sum(0)], 1))
    for kind, (cube,) in _paired.items()
}
_pair: dict[str, Any] = {
    "ordinary": (*_TABLES["ordinary"], *_TABLES["other"]),
    "other": (*_TABLES["other"], *_TABLES["ordinary"]),
}
_random: dict[str, Any] = {"draws": DRAWS, "why": "random: the same in distribution only"}
_looks = "looks for the combinations of labels that occur"


def _proportion(method: Any) -> Row:
    cases = {
        "ordinary": (np.array(18), np.array(20)),
        "none": (np.array(0), np.array(7)),
        "all": (np.array(9), np.array(9)),
    }
    return Row(call=partial(jm.proportion_interval, method=method), cases=cases, float32=1e-5)


def _roc_auc(y: Any, s: Any, sample_weight: Any = None) -> Any:
    return jm.roc_auc(y, s, sample_weight=sample_weight)


_mcnemars: dict[str, Any] = {"": {}} | {
    f" {name}": {"method": name} for name in ("exact", "corrected", "asymptotic")
}

_paired_clusters = {
    kind: (np.stack([np.roll(cube, i, (0, 1, 2)) for i in range(24)]),)
    for kind, (cube,) in _paired.items()
}
_shares = alone({"ordinary": _PROB[:, 0], "other": _PROB[:, 1] ** 2})
_made = np.where(np.arange(N * 4).reshape(N, 4) % 5 == 0, np.nan, 0)  # some attempts were not
_attempts = alone(
    {"ordinary": (_PROB[:, :1] > np.linspace(0.1, 0.5, 4)) + _made, "right": np.ones((N, 4))}
)
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
    "compare_groups": Row(
        call=partial(jm.compare_groups, jm.binary(jm.recall), method=jm.Delta()),
        cases=_GROUPS_OF_TWO,
        smooth=(0,),
        float32=1e-5,
    ),
    "compare_groups ratio": Row(
        call=partial(jm.compare_groups, jm.binary(jm.recall), method=jm.Delta(), ratio=True),
        cases=_GROUPS_OF_TWO,
        smooth=(0,),
        float32=1e-5,
    ),
    "mean_interval": Row(
        call=jm.mean_interval,
        cases=_shares,
        smooth=(0,),
        examples=(-1,),
        options=("where", "sample_weight"),
    ),
    "mean_interval bounds": Row(
        call=partial(jm.mean_interval, bounds=(0, 1)),
        cases=_shares,
        examples=(-1,),
        options=("where", "sample_weight"),
        float32=1e-5,
    ),
    "mean_interval clusters": Row(
        call=partial(jm.mean_interval, transform="log", clusters=np.arange(N) * 2 // 3),
        cases=_shares,
        smooth=(0,),
    ),
    "mean_interval missing": Row(
        call=partial(jm.mean_interval, bounds=(0, 1), missing="bounds"),
        cases=alone({"ordinary": np.where(np.arange(N) % 7 == 2, np.nan, _PROB[:, 0])}),
        examples=(-1,),
        options=("where", "sample_weight"),
        float32=1e-5,
    ),
    "cross_validation_interval": Row(
        call=partial(jm.cross_validation_interval, num_train=90, num_test=10),
        cases=_shares,
        smooth=(0,),
        examples=(-1,),
    ),
    "pass_at_k": Row(call=partial(jm.pass_at_k, k=3), cases=_attempts),
    "pass_at_k majority": Row(call=partial(jm.pass_at_k, k=2, rule="majority"), cases=_attempts),
    "score_variance": Row(call=jm.score_variance, cases=_attempts),
    "prediction_powered": Row(
        call=partial(jm.prediction_powered, jm.macro(jm.f1)), cases=_judged, float32=1e-5
    ),
    "prediction_powered difference": Row(
        call=partial(jm.prediction_powered, jm.difference(jm.accuracy)),
        cases=_judged_pairs,
        float32=1e-5,
    ),
    **{
        f"proportion_interval{variant}": _proportion(variant.strip() or "wilson")
        for variant in ("", " likelihood", " jeffreys", " clopper_pearson", " agresti_coull")
    },
    "compare_predictions": Row(
        call=lambda y, a, b, **options: jm.compare_predictions(
            jm.accuracy, y, a, b, num_classes=K, method=jm.Delta(), **options
        ),
        cases=against(_TRUE, _PRED, _OTHER),
        batch=False,
        examples=(-1, -1, -1),
        options=("where",),
        float32=1e-5,
        why=_looks,
    ),
    "compare_predictions clusters": Row(
        call=lambda y, a, b: jm.compare_predictions(
            jm.accuracy, y, a, b, num_classes=K, method=jm.Delta(), clusters=np.arange(N) * 2 // 3
        ),
        cases=against(_TRUE, _PRED, _OTHER),
        batch=False,
        float32=1e-5,
        why="labels have no batch axes",
    ),
    "compare_unpaired": Row(
        call=lambda a, b: jm.compare_unpaired(jm.accuracy, a, b, method=jm.Delta()),
        cases=_pair,
        float32=1e-5,
    ),
    "required_examples": Row(
        call=lambda c: jm.required_examples(jm.accuracy, c, half_width=0.1),
        cases=_TABLES,
        float32=1e-5,
    ),
    "detectable_difference": Row(
        call=lambda p: jm.detectable_difference(jm.accuracy, p, 500), cases=_paired, float32=1e-5
    ),
    "power": Row(
        call=lambda p: jm.power(jm.accuracy, p, 500, difference=0.05), cases=_paired, float32=1e-5
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
        examples=(-1, -1),
        options=("where",),
        float32=1e-5,
    ),
    "compare_scores clusters": Row(
        call=partial(jm.compare_scores, clusters=np.arange(N) * 2 // 3),
        cases=_two_shares,
        smooth=(0, 1),
        float32=1e-5,
    ),
    "score_leaderboard": Row(
        call=partial(jm.score_leaderboard, bounds=(0, 1), key=key(), num_samples=DRAWS),
        cases=alone({"ordinary": _PROB.T[:3]}),
        batch=False,
        draws=DRAWS,
        why="random, and the systems are no batch",
    ),
    **{
        # The host takes SciPy's incomplete beta function, the device Stirling's series.
        f"mcnemar{variant}": Row(
            call=partial(jm.mcnemar, **_method), cases=_paired, float32=1e-5, float64=1e-8
        )
        for variant, _method in _mcnemars.items()
    },
    "mcnemar clusters": Row(
        call=partial(jm.mcnemar, cluster_axis=-4), cases=_paired_clusters, float32=1e-5
    ),
    "paired_difference_interval": Row(
        call=jm.paired_difference_interval, cases=_paired, float32=1e-5
    ),
    "paired_difference_interval bonett_price": Row(
        call=partial(jm.paired_difference_interval, method="bonett_price"),
        cases=_paired,
        float32=1e-5,
    ),
    "permutation_test": Row(
        call=lambda p: jm.permutation_test(key(), jm.accuracy, p, num_samples=DRAWS),
        cases=_paired,
        **_random,
    ),
}


# Losses: of logits, differentiable; most of them one per example.

_EACH: dict[str, Any] = {"per_example": True, "adds": True, "smooth": (0,), "options": ("where",)}
_rows: dict[str, Any] = {"ordinary": (_LOGITS, _TRUE), "other": (_LOGITS, np.roll(_TRUE, 5))}
_events: dict[str, Any] = {
    "ordinary": (_LOGITS[:, 0], _BINARY),
    "other": (_LOGITS[:, 0], np.roll(_BINARY, 5)),
}
_HIDDEN, _KERNEL = single(_rng.normal(size=(N, 3))), single(_rng.normal(size=(3, 7)))
_words = {
    "ordinary": (_HIDDEN, _KERNEL, _rng.integers(-1, 7, N)),
    "other": (_HIDDEN[::-1], _KERNEL, _rng.integers(-1, 7, N)),
}

LOSSES: dict[str, Row] = {
    "cross_entropy": Row(call=jm.cross_entropy, cases=_rows, examples=(-2, -1), **_EACH),
    "cross_entropy smoothed": Row(
        call=partial(jm.cross_entropy, label_smoothing=0.1, class_weights=np.arange(1.0, K + 1)),
        cases=_rows,
        examples=(-2, -1),
        **_EACH,
    ),
    "soft_cross_entropy": Row(
        call=jm.soft_cross_entropy,
        cases={"ordinary": (_LOGITS, _PROB), "other": (_LOGITS, _PROB[::-1])},
        examples=(-2, -2),
        **_EACH,
    ),
    "nll": Row(
        call=jm.nll,
        cases={"ordinary": (_PROB, _TRUE), "other": (_PROB[::-1], _TRUE)},
        examples=(-2, -1),
        **_EACH,
    ),
    "focal_loss": Row(call=jm.focal_loss, cases=_rows, examples=(-2, -1), **_EACH),
    "multiclass_hinge_loss": Row(
        call=jm.multiclass_hinge_loss, cases=_rows, examples=(-2, -1), **_EACH
    ),
    "binary_cross_entropy": Row(
        call=jm.binary_cross_entropy, cases=_events, examples=(-1, -1), **_EACH
    ),
    "hinge_loss": Row(call=jm.hinge_loss, cases=_events, examples=(-1, -1), **_EACH),
    "linear_cross_entropy": Row(
        call=jm.linear_cross_entropy,
        cases=_words,
        host=False,
        batch=False,
        smooth=(0, 1),
        why="exists for training alone, and all batches share a kernel",
    ),
    "weighted_mean": Row(
        call=partial(jm.weighted_mean, axis=-1),
        cases=alone({"ordinary": _LOSS, "other": _LOSS[::-1] ** 2}),
        smooth=(0,),
        examples=(-1,),
        options=("where", "sample_weight"),
    ),
    "metric_loss": Row(
        call=jm.metric_loss(jm.macro(jm.f1)),
        cases=_rows,
        smooth=(0,),
        examples=(-2, -1),
        options=("where", "sample_weight"),
    ),
    "pairwise_auc_loss": Row(
        call=jm.pairwise_auc_loss,
        cases=_events,
        smooth=(0,),
        examples=(-1, -1),
        options=("where", "sample_weight"),
    ),
    "soft_calibration_error": Row(
        call=jm.soft_calibration_error,
        cases={"ordinary": (_PROB[:, 0], _BINARY), "other": (_PROB[:, 1], _BINARY)},
        smooth=(0,),
        examples=(-1, -1),
        options=("where", "sample_weight"),
        float32=1e-4,  # bins of temperature 0.01
    ),
}


# States: of JAX, from the start to the end.

_STATES: dict[str, Any] = {
    "host": False,
    "why": "states are carries of training loops: JAX's",
    "options": ("where", "sample_weight"),
}


def _streamed(
    *accumulators: jm.streaming.Accumulator, fields: tuple[str, ...]
) -> Callable[..., Any]:
    """The results of a batch with these fields."""
    evaluator = jm.evaluator(*accumulators)

    def call(*arrays: Any, **options: Any) -> Any:
        batch = dict(zip(fields, arrays, strict=True)) | options
        return evaluator.compute(evaluator.update(evaluator.init(), **batch))

    return call


def _round_trip(loss: Any) -> Any:
    evaluator = jm.evaluator(jm.mean_of("loss"))
    state = evaluator.update(evaluator.init(), loss=loss)
    with tempfile.TemporaryDirectory() as folder:
        jm.save_state(Path(folder) / "state", state)
        return evaluator.compute(jm.load_state(Path(folder) / "state"))


def _sequence(values: Any) -> Any:
    sequence = jm.confidence_sequence(low=-4.0, high=10.0)
    return sequence.compute(sequence.update(sequence.init(), values))


_fields = alone({"ordinary": _LOSS, "other": _LOSS[::-1] ** 2})
_pairs = against(_TRUE, _PRED, _OTHER)
_files: dict[str, Any] = {
    "host": False,
    "jit": False,
    "batch": False,
    "why": "of files, which hold the states of JAX",
}

STREAMS: dict[str, Row] = {
    "evaluator": Row(
        call=_streamed(
            jm.count_metrics({"macro_f1": jm.macro(jm.f1)}, num_classes=K),
            jm.mean_of("loss", level=0.9),
            fields=("y_true", "logits", "loss"),
        ),
        cases=against(_TRUE, _LOGITS, _LOSS),
        batch=False,
        examples=(-1, -2, -1),
        float32=1e-5,
        **_STATES,
    ),
    "count_metrics": Row(
        call=_streamed(
            jm.count_metrics({"accuracy": jm.accuracy}, num_classes=K, method=jm.Delta()),
            fields=("y_true", "y_pred"),
        ),
        cases=against(_TRUE, _PRED),
        batch=False,
        examples=(-1, -1),
        **(_STATES | {"options": ("where",)}),
    ),
    "mean_of": Row(
        call=_streamed(
            jm.mean_of("loss", level=0.9),
            jm.mean_of("cost", groups="kind", num_groups=4, weights="size"),
            fields=("loss", "cost", "kind", "size"),
        ),
        cases={
            "ordinary": (_LOSS, _LOSS[::-1], np.arange(N) % 3, _LOSS + 1),
            "other": (_LOSS**2, _LOSS, np.arange(N) // 30 - 1, np.arange(N) % 4.0),
        },
        batch=False,
        examples=(-1, -1, -1, -1),
        float32=1e-5,
        **_STATES,
    ),
    "ranking_metrics": Row(
        call=_streamed(
            jm.ranking_metrics(_both_areas, scale="logit", num_bins=64),
            fields=("y_true", "y_score"),
        ),
        cases=_binary,
        batch=False,
        examples=(-1, -1),
        **_STATES,
    ),
    "calibration_metrics": Row(
        call=_streamed(jm.calibration_metrics(), fields=("y_true", "y_prob")),
        cases=_event,
        batch=False,
        examples=(-1, -1),
        **_STATES,
    ),
    "paired_metrics": Row(
        call=_streamed(
            jm.paired_metrics({"accuracy": jm.accuracy}, num_classes=K),
            fields=("y_true", "y_pred_a", "y_pred_b"),
        ),
        cases=_pairs,
        batch=False,
        examples=(-1, -1, -1),
        **_STATES,
    ),
    "poisson_bootstrap": Row(
        call=_streamed(
            jm.poisson_bootstrap(jm.mean_of("loss"), num_samples=50), fields=("loss", "unit")
        ),
        cases={"ordinary": (_LOSS, np.arange(N)), "other": (_LOSS**2, np.arange(N) // 2)},
        batch=False,
        examples=(-1, -1),
        float32=1e-5,
        **(_STATES | {"options": ("where",)}),
    ),
    "confidence_sequence": Row(
        call=_sequence,
        cases=_fields,
        batch=False,
        float32=1e-5,
        **(_STATES | {"options": ()}),
    ),
    "save_state": Row(call=_round_trip, cases=_fields, **_files),
    "load_state": Row(call=_round_trip, cases=_fields, **_files),
}


# What answers a person: Python's numbers, wherever the data live.


def _frame(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({name: np.asarray(values) for name, values in columns.items()})


_plain: dict[str, Any] = {"device": False, "jit": False, "batch": False}

ANSWERS: dict[str, Row] = {
    "check_labels": Row(
        call=partial(jm.check_labels, num_classes=K),
        cases=alone({"ordinary": _OTHER % K}),
        why="raises or not",
        **_plain,
    ),
    "one_vs_rest": Row(call=jm.one_vs_rest, cases=alone(MATRICES), smooth=(0,)),
    "normalize": Row(call=jm.normalize, cases=alone(MATRICES), smooth=(0,), inside=0.5),
    "to_python": Row(
        call=lambda c: jm.to_python(
            {"accuracy": jm.interval(jm.accuracy, c, method=jm.Delta()), "recall": jm.recall(c)}
        ),
        cases=_TABLES,
        why="Python's numbers",
        **_plain,
    ),
    "report": Row(
        call=lambda y, p: jm.report(y, p).to_dict(),
        cases=against(_TRUE, _PRED),
        examples=(-1, -1),
        why="Python's numbers",
        **_plain,
    ),
    "confusion_matrix_of": Row(
        call=lambda y, p: jm.confusion_matrix_of(_frame(y_true=y, y_pred=p)).counts,
        cases=against(_TRUE, _PRED),
        examples=(-1, -1),
        adds=True,
        why="of tables",
        **_plain,
    ),
    "paired_confusion_matrix_of": Row(
        call=lambda y, a, b: (
            jm.paired_confusion_matrix_of(_frame(y_true=y, y_pred_a=a, y_pred_b=b)).counts
        ),
        cases=against(_TRUE, _PRED, _OTHER),
        examples=(-1, -1, -1),
        why="of tables",
        **_plain,
    ),
    "score_histogram_of": Row(
        call=lambda y, s: (
            jm.score_histogram_of(_frame(y_true=y, y_score=s), scale="logit", num_bins=64).counts
        ),
        cases=_binary,
        examples=(-1, -1),
        adds=True,
        why="of tables",
        **_plain,
    ),
    "scorer": Row(
        call=lambda y, p: jm.scorer(jm.macro(jm.f1))(SimpleNamespace(predict=lambda _: p), None, y),
        cases=against(_TRUE, _PRED),
        examples=(-1, -1),
        why="Python's numbers",
        **_plain,
    ),
    "multilabel_report": Row(
        call=lambda y, p: jm.multilabel_report(y, p).to_dict(),
        cases=against(abs(_LABELS[0]), abs(_LABELS[1]), axis=-2),
        examples=(-2, -2),
        why="Python's numbers",
        **_plain,
    ),
    "score_report": Row(
        call=lambda x, y: jm.score_report(x, y, bounds=(0, 1)).to_dict(),
        cases=_two_shares,
        examples=(-1, -1),
        why="Python's numbers",
        **_plain,
    ),
    "comparison_report": Row(
        call=lambda y, a, b: jm.comparison_report(y, a, b).to_dict(),
        cases=against(_TRUE, _PRED, _OTHER),
        examples=(-1, -1, -1),
        why="Python's numbers",
        **_plain,
    ),
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
    delong delong_interval delong_unpaired detectable_difference interval mcnemar mean_interval
    no_information_test paired_difference_interval power precision_posterior prediction_powered
    proportion_interval recall_posterior required_examples
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
    "ranking.RocCurve": lambda: jm.roc_curve(*_binary["ordinary"]),
    "streaming.Statistic": lambda: jm.mean_of("loss").statistics[0],
    "TableCounts": lambda: jm.confusion_matrix_of(_frame(y_true=_TRUE, y_pred=_PRED)),
}
