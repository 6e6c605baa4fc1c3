"""Every metric against its definition and scikit-learn, the formulas of the texts, published
figures, hard cases.

On the host, in float64; float32 only where it is what the test is about. The device gives the same:
test_transforms.py.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics as sk
from numpy.random import default_rng
from numpy.testing import assert_allclose
from sklearn.metrics.cluster import normalized_mutual_info_score

import jaxmetrics as jm
from jaxmetrics.metrics import (
    accuracy,
    balanced_accuracy,
    binary,
    cohen_kappa,
    confusion_entropy,
    cramers_v,
    demographic_parity_ratio,
    error_rate,
    expected_cost,
    f1,
    f_beta,
    false_negative_rate,
    fowlkes_mallows,
    group_difference,
    group_ratio,
    krippendorff_alpha,
    label_macro,
    macro,
    matthews_corrcoef,
    micro,
    mutual_information,
    net_benefit,
    normalized_mutual_information,
    precision,
    recall,
    specificity,
    tversky,
    weighted,
    weighted_micro,
)
from tests import oracles
from tests.cases import MATRICES, METRICS

NAN = float("nan")


def labels_of(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Truth and prediction of examples that have these counts."""
    t, p = np.indices(counts.shape)
    return np.repeat(t.ravel(), counts.ravel()), np.repeat(p.ravel(), counts.ravel())


@pytest.mark.quick
@pytest.mark.filterwarnings("ignore:class 0 occurs neither")  # AC1 and S of empty tables
@pytest.mark.parametrize("name", METRICS)
def test_equals_definition(name: str) -> None:
    metric = METRICS[name]
    for kind, (counts,) in metric.cases.items():
        expected = metric.oracle(counts.astype(float))
        with np.errstate(all="raise"):
            value = metric.call(counts)
        assert_allclose(value, expected, rtol=1e-12, atol=1e-13, err_msg=kind)


@pytest.mark.parametrize("name", METRICS)
def test_equals_definition_for_one_class(name: str) -> None:
    metric = METRICS[name]
    if name in ("binary", "at_prevalence"):
        return
    for count in (0, 7):
        counts = np.full((*metric.ordinary[0].shape[:-2], 1, 1), count)
        if name == "cohen_kappa costs" or name.startswith("cohen_kappa gwet"):
            assert np.isnan(metric.call(counts))  # all disagreements weigh nothing
        else:
            assert_allclose(metric.call(counts), metric.oracle(counts.astype(float)), rtol=1e-12)


SKLEARN = {
    "accuracy": (accuracy, sk.accuracy_score),
    "error_rate": (error_rate, sk.zero_one_loss),
    "hamming_loss": (error_rate, sk.hamming_loss),
    "matthews_corrcoef": (matthews_corrcoef, sk.matthews_corrcoef),
    "balanced_accuracy": (balanced_accuracy, sk.balanced_accuracy_score),
    "mutual_information": (mutual_information, sk.mutual_info_score),
    "cohen_kappa": (cohen_kappa, sk.cohen_kappa_score),
    **{
        f"{average}_{rate}": (
            getattr(jm, average)(getattr(jm, rate)),
            lambda t, p, f=score, a=average: f(t, p, average=a, zero_division=0.0),
        )
        for average in ("macro", "micro", "weighted")
        for rate, score in {
            "precision": sk.precision_score,
            "recall": sk.recall_score,
            "f1": sk.f1_score,
            "jaccard": sk.jaccard_score,
        }.items()
    },
}


# Scikit-learn warns where it divides by 0.
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SKLEARN)
def test_equals_sklearn(name: str) -> None:
    ours, theirs = SKLEARN[name]
    for kind, counts in MATRICES.items():
        if kind not in ("rare", "empty"):  # a billion rows, and none, which scikit-learn refuses
            assert_allclose(
                ours(counts), theirs(*labels_of(counts)), rtol=1e-12, atol=1e-12, err_msg=kind
            )


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_weighted_kappa_and_f_beta_equal_sklearn(weights: str | None) -> None:
    t, p = labels_of(MATRICES["ordinary"])
    ours = cohen_kappa(MATRICES["ordinary"], weights=weights)
    assert_allclose(ours, sk.cohen_kappa_score(t, p, weights=weights), rtol=1e-12)
    for beta in (0.0, 0.5, 2.0, np.inf):
        theirs = sk.fbeta_score(t, p, beta=beta, average=None)
        assert_allclose(f_beta(MATRICES["ordinary"], beta), theirs, rtol=1e-12)


THREE = np.array([[6, 4, 0], [1, 3, 1], [0, 0, 2]])  # t = 10, 5, 2; p = 7, 7, 3


@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
@pytest.mark.parametrize("chosen", [[0], [2, 0], [0, 1, 2, 3]])
def test_averages_over_chosen_classes_equal_scikit_learns(average: str, chosen: list[int]) -> None:
    rng = default_rng(5)
    y, pred = rng.integers(0, 4, (2, 80))
    counts = jm.confusion_matrix(y, pred)
    for rate, theirs in ((f1, sk.f1_score), (precision, sk.precision_score)):
        ours = getattr(jm, average)(rate, classes=chosen)(counts)
        assert_allclose(ours, theirs(y, pred, labels=chosen, average=average))


def test_classes_of_averages() -> None:
    counts = jm.confusion_matrix([0, 1, 0], [0, 1, 1], num_classes=4)
    # Of those chosen the ones that occur; if none does, all of them alike.
    assert macro(recall, classes=[1, 3])(counts) == 1
    assert macro(recall, classes=[2, 3])(counts, zero_division=0.25) == 0.25
    assert weighted(recall, classes=[2, 3])(counts, zero_division=0.25) == 0.25


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_averages_over_labels_equal_scikit_learns(average: str) -> None:
    rng = default_rng(6)
    y, pred = rng.integers(0, 2, (2, 50, 4))
    y[:, 1] = 0  # a label that never occurs
    pred[:, 1] = 0
    counts = jm.multilabel_confusion_matrix(y, pred)
    for rate, theirs in ((f1, sk.f1_score), (recall, sk.recall_score)):
        ours = getattr(jm, f"label_{average}")(rate)(counts)
        assert_allclose(ours, theirs(y, pred, average=average, zero_division=0))


def test_normalized_mutual_information_equals_scikit_learns() -> None:
    rng = default_rng(7)
    for y, pred in (rng.integers(0, 4, (2, 90)), np.zeros((2, 5), int)):
        ours = normalized_mutual_information(jm.confusion_matrix(y, pred, num_classes=4))
        assert_allclose(ours, normalized_mutual_info_score(y, pred), rtol=1e-9)


def in_float32(counts: Any) -> jax.Array:
    return jnp.asarray(np.asarray(counts), jnp.float32)


def test_two_times_ten_to_the_ten_examples() -> None:
    counts = np.array([[9_900_000_000, 100_000_000], [300_000_000, 9_700_000_000]])  # beyond int32
    expected = oracles.matthews_corrcoef(counts.astype(float))
    for given, error in ((counts, 1e-12), (in_float32(counts), 1e-6)):
        assert_allclose(matthews_corrcoef(given), expected, rtol=error)
        assert_allclose(accuracy(given), 0.98, rtol=error)


@pytest.mark.parametrize("number", [2**24 + 1, 2**40 + 1, 2**53 - 3])
def test_large_counts_are_exact_on_the_host(number: int) -> None:
    counts = np.array([[number - 3, 2], [1, 0]])
    assert accuracy(counts) == (number - 3) / number
    assert error_rate(counts) == 3 / number
    assert_allclose(recall(counts), [(number - 3) / (number - 1), 0], rtol=1e-15)


def test_rare_classes_keep_their_digits() -> None:
    # FN / support and TN are lost where totals are subtracted.
    counts = np.array([[10**9, 7], [3, 13]])
    for given, error in ((counts, 1e-12), (in_float32(counts), 1e-6)):
        assert_allclose(false_negative_rate(given)[0], 7 / (10**9 + 7), rtol=error)
        assert_allclose(specificity(given), [13 / 16, 10**9 / (10**9 + 7)], rtol=error)
        assert_allclose(error_rate(given), 10 / (10**9 + 23), rtol=error)


def test_near_independence_and_near_certainty() -> None:
    """Sums of logarithms, and p - t q, cancel here: in float64 six digits or more of those of
    float32 are left, too.
    """
    tables = (
        [[249_900, 250_100], [250_100, 249_900]],
        [[10**9, 1], [1, 1]],
        [[10**9, 3], [5, 16]],
        [[10**9, 0], [0, 1]],
    )
    for c in map(np.array, tables):
        for given, error in ((c, 1e-12), (in_float32(c), 5e-4)):
            close = partial(assert_allclose, rtol=error, err_msg=str(c))
            close(mutual_information(given), oracles.mutual_information(c))
            close(cramers_v(given), oracles.cramers_v(c))
    for c in (np.array([[1, 10**9], [1, 3]]), np.array([[0, 10**9], [1, 0]])):
        for given, error in ((c, 1e-7), (in_float32(c), 1e-5)):
            assert_allclose(confusion_entropy(given), oracles.confusion_entropy(c), rtol=error)


@pytest.mark.parametrize("k", [1, 2, 3, 17, 100, 1000])
def test_perfect_is_exactly_one(k: int) -> None:
    counts = np.diag(default_rng(k).integers(1, 2_000_000, k))
    for given in (counts, in_float32(counts)) if k in (3, 1000) else (counts,):
        for metric in (
            accuracy,
            matthews_corrcoef,
            macro(f1),
            balanced_accuracy,
            cohen_kappa,
        ):
            undefined = k == 1 and metric in (matthews_corrcoef, cohen_kappa)
            assert undefined or metric(given) == 1, metric
        for rate in (recall, fowlkes_mallows):
            assert (np.asarray(rate(given)) == 1).all()
        assert error_rate(given) == 0


def test_gradient_of_perfect_counts() -> None:
    """A mistake takes 1/2 of its share from the row's class, and as much from the column's."""
    gradient = jax.grad(lambda counts: fowlkes_mallows(counts).sum())(
        jnp.diag(jnp.array([4.0, 8.0]))
    )
    assert_allclose(gradient, -(1 - np.eye(2)) * (1 / 8 + 1 / 16), atol=1e-7)


def test_chance_agreement_of_a_thousand_classes() -> None:
    counts = np.full((1000, 1000), 12345)
    assert abs(cohen_kappa(counts)) < 1e-12
    # 1.4e-6 seen; running sums over a class give 9.4e-6.
    assert abs(cohen_kappa(in_float32(counts))) < 3e-6


@pytest.mark.parametrize(
    "metric",
    [
        accuracy,
        balanced_accuracy,
        macro(f1),
        matthews_corrcoef,
        cohen_kappa,
        normalized_mutual_information,
        jm.betas.get_beta_parameters,
    ],
)
def test_programs_hold_no_table_of_constants(metric: Any) -> None:
    # One of 300 x 300 has 180,000 characters or more; of 1024 classes it doubled compiling times.
    assert len(jax.jit(metric).lower(jnp.ones((300, 300))).as_text()) < 100_000


def test_negative_importance_in_jax_arrays_makes_nan() -> None:
    counts = jnp.asarray(THREE)
    assert np.isnan([f_beta(counts, -1.0), tversky(counts, 0.5, -1.0)]).all()


def test_f_beta_of_a_small_beta() -> None:
    counts = np.array([[0, 2], [10**9, 1]])
    assert_allclose(f_beta(counts, 1e-4)[1], (1 + 1e-8) / (1 + 1e-8 + 10 + 2), rtol=1e-12)
    assert_allclose(f_beta(in_float32(counts), 1e-4)[1], 1 / 13, rtol=1e-6)


def test_krippendorff_needs_counts() -> None:
    assert np.isnan(krippendorff_alpha(np.array([[4, 1], [1, 4]]) / 100))


def test_a_thousand_classes() -> None:
    rng = default_rng(0)
    counts = rng.poisson(0.3, (1000, 1000)) + np.diag(rng.poisson(500, 1000))
    expected_f1 = np.diag(counts) * 2 / (counts.sum(0) + counts.sum(1))
    names = ("accuracy", "matthews_corrcoef", "balanced_accuracy")
    expected = {name: oracles.OVERALL[name](counts) for name in names} | {
        "cohen_kappa": _fast_kappa(counts)
    }
    for given, error in ((counts, 1e-12), (in_float32(counts), 2e-6)):
        for name, value in expected.items():
            assert_allclose(METRICS[name].call(given), value, rtol=error, err_msg=name)
        assert_allclose(f1(given), expected_f1, rtol=error)


def _fast_kappa(c: np.ndarray) -> float:
    p = c / c.sum()
    chance = float(p.sum(0) @ p.sum(1))
    return float((np.trace(p) - chance) / (1 - chance))


def test_zero_division() -> None:
    counts = MATRICES["only in truth"]  # class 2 is never predicted
    assert precision(counts)[2] == 0
    assert np.isnan(precision(counts, zero_division=np.nan)[2])
    assert precision(counts, zero_division=1.0)[2] == 1
    defined = precision(counts)[[0, 1, 3]]
    assert_allclose(macro(precision)(counts, zero_division=NAN), defined.mean(), rtol=1e-12)
    assert_allclose(macro(precision)(counts), defined.sum() / 4, rtol=1e-12)


def test_undefined_rates_do_not_bring_in_absent_classes() -> None:
    # The specificity of the only class is undefined.
    for counts in (
        np.array([[12]]),
        np.array([[12, 0], [0, 0]]),
    ):
        assert np.isnan(macro(specificity)(counts, zero_division=NAN))


def test_parameters_broadcast_against_batch_axes() -> None:
    batch = np.stack([THREE, THREE.T])
    by_beta = f_beta(batch, np.array([0.5, 2.0]))
    for i, beta in enumerate((0.5, 2.0)):
        assert_allclose(by_beta[i], f_beta(batch[i], beta), rtol=1e-12)
    assert f_beta(THREE, np.array([0.5, 1.0, 2.0, 4.0])).shape == (4, 3)  # a curve over beta


def test_averages_of_nothing_are_the_rates_own_zero_division() -> None:
    empty = np.zeros((3, 3))
    for average in (macro, micro, weighted, weighted_micro):
        assert average(f1)(empty) == 0
        assert np.isnan(average(f1)(empty, zero_division=NAN))


def test_nan_counts_give_nan() -> None:
    for name, metric in METRICS.items():
        counts = np.array(metric.ordinary[0], float)
        if counts.ndim == 2:
            counts[0, 1] = NAN
            assert np.isnan(metric.call(counts)).any(), name


IMPOSSIBLE = {
    "negative": (-5, r"counts\[(?:0, )*0, 1\] is -5, expected a count >= 0"),
    "infinite": (np.inf, r"counts\[(?:0, )*0, 1\] is inf, expected a count >= 0"),
}


@pytest.mark.quick
@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_impossible_counts_are_refused(kind: str) -> None:
    """By every metric, of one small matrix, of a large one, and of the last of a batch."""
    bad, message = IMPOSSIBLE[kind]
    for name, metric in METRICS.items():
        counts = np.array(metric.ordinary[0], float)
        counts[..., 0, 1] = bad
        with pytest.raises(ValueError, match=message):
            metric.call(counts)
        assert np.isfinite(metric.call(np.where(counts == bad, -1e-12, counts))).any(), name
    for shape in ((9, 9), (40, 2, 2)):
        counts = np.full(shape, 2.0)
        counts[..., -1, 0] = bad
        with pytest.raises(ValueError, match=r"counts\[(0, 1, 0|8, 0)\] is"):
            macro(lambda c: c.diagonal(axis1=-2, axis2=-1))(counts)
        counts[..., 0, 0] = NAN  # ahead of the bad one
        with pytest.raises(ValueError, match=r"counts\[(0, 1, 0|8, 0)\] is"):
            accuracy(counts)


def test_sums_of_blocks_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of many classes are computed by blocks of rows, here of 5 of 23."""
    rng = default_rng(0)
    counts = rng.poisson(0.4, (2, 23, 23)) + 9 * np.eye(23)
    counts[1, 4], counts[1, :, 4] = 0, 0
    names = ["mutual_information", "confusion_entropy", "cramers_v", "specificity"]
    whole = {name: getattr(jm, name)(counts) for name in names}
    monkeypatch.setattr("jaxmetrics._sums.cell_sums._CELLS", 1)
    monkeypatch.setattr("jaxmetrics._sums.cell_sums._FEWEST_ROWS", 5)
    for name in names:
        assert_allclose(getattr(jm, name)(counts), whole[name], rtol=1e-13)


def test_averages_work_on_your_own_rate() -> None:
    def hits_per_truth(counts: Any) -> Any:
        return counts.diagonal(axis1=-2, axis2=-1) / counts.sum(-1)

    for counts, error in ((THREE, 1e-12), (in_float32(THREE), 1e-6)):
        for average in (macro, micro):
            assert_allclose(average(hits_per_truth)(counts), average(recall)(THREE), rtol=error)


def test_averages_are_values() -> None:
    assert macro(f1) == macro(f1) != macro(recall)
    assert hash(binary(f1, pos_label=0)) == hash(binary(f1, pos_label=0))
    assert binary(f1, pos_label=np.int64(0)) == binary(f1, pos_label=0)  # type: ignore[arg-type]  # np.int64 is no int
    assert repr(binary(f1)) == "binary(f1, pos_label=1)"


GROUPS = np.array([[[8, 2], [1, 9]], [[4, 1], [6, 9]]])
MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: macro(recall, classes=cast(Any, "ab")), "classes must be"),
    (lambda: macro(recall, classes=cast(Any, [0.5])), "classes must be"),
    (lambda: macro(recall, classes=[1, 1]), "classes must be"),
    (lambda: macro(recall, classes=[]), "classes must contain at least one class, but it is empty"),
    (
        lambda: macro(recall, classes=[4])(np.eye(4)),
        "ids in classes must be less than the number of classes, 4, got",
    ),
    (lambda: label_macro(f1)(np.eye(2)), "one matrix of two rows and two columns for each"),
    (
        lambda: macro(accuracy)(THREE),
        r"For counts of shape \(3, 3\), accuracy should return an array of shape \(..., 3\)",
    ),
    (lambda: binary(f1)(THREE), r"binary needs counts of shape \(..., 2, 2\)"),
    (lambda: binary(f1, pos_label=2), "pos_label must be 0 or 1, .* got 2"),
    (
        lambda: macro(cast(Any, "f1")),
        r"macro takes rate, a function of counts, such as jaxmetrics\.f1, got 'f1'",
    ),
    (
        lambda: recall(THREE, zero_division="warn"),
        "zero_division must hold real numbers, got dtype <U4",
    ),
    (
        lambda: group_ratio(lambda c: c.sum())(GROUPS),
        r"metric should return an array of shape \(2,\) or \(2, 2\), but it returned \(\)",
    ),
    (lambda: cohen_kappa(THREE, chance=cast(Any, "guess")), r"chance must be 'marginals', .*guess"),
    (lambda: cohen_kappa(THREE, weights="cubic"), 'weights must be None, "linear"'),
    (
        lambda: expected_cost(THREE, np.ones((2, 2))),
        r"cost must have shape \(K, K\) = \(3, 3\), got \(2, 2\)",
    ),
    (lambda: demographic_parity_ratio(THREE), r"counts must have shape \(..., G, K, K\)"),
    (lambda: f_beta(THREE, -1.0), "beta is -1, but it must be at least 0"),
    (lambda: tversky(THREE, 0.5, -1.0), "beta is -1, but it must be at least 0"),
]


@pytest.mark.parametrize(("call", "message"), MISTAKES)
def test_mistakes_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_groups_of_metrics_with_one_number() -> None:
    assert_allclose(group_ratio(binary(recall))(GROUPS), (9 / 15) / (9 / 10), rtol=1e-12)
    assert_allclose(group_difference(accuracy)(GROUPS), 17 / 20 - 13 / 20, rtol=1e-12)
    poisoned = GROUPS.astype(float)
    poisoned[0, 0, 0] = NAN
    assert np.isnan(group_difference(recall)(poisoned)[0])  # NaN counts are not skipped


def test_decision_curve() -> None:
    thresholds = np.array([0.1, 0.5, 0.9])
    counts = jm.confusion_matrix_at_thresholds([0, 0, 1, 1], [0.2, 0.6, 0.6, 0.95], thresholds)
    curve = binary(net_benefit)(counts, threshold=thresholds)
    assert_allclose(curve, [2 / 4 - 2 / 4 / 9, 2 / 4 - 1 / 4, 1 / 4], rtol=1e-12)


@pytest.mark.parametrize("name", METRICS)
def test_refuses_what_is_no_matrix(name: str) -> None:
    with pytest.raises(ValueError, match=r"counts must have shape \(..., K, K\).*got \(2, 3\)"):
        METRICS[name].call(np.ones((2, 3)))
    for bad in (
        np.ones((2, 2), np.complex64),
        np.ones((2, 2), complex),
        jnp.ones((2, 2), jnp.complex64),
    ):
        message = f"counts must hold real numbers, got dtype {bad.dtype}"
        with pytest.raises(TypeError, match=message):
            METRICS[name].call(bad)


def test_codes_that_begin_at_one_give_a_warning_if_all_classes_are_counted() -> None:
    y_true, y_pred = np.repeat([1, 2], 50), np.repeat([1, 2], [45, 55])
    counts = jm.confusion_matrix(y_true, y_pred)
    for chance in ("gwet", "uniform"):
        coefficient: Any = partial(jm.cohen_kappa, chance=cast(Any, chance))
        for call in (coefficient, partial(jm.interval, coefficient, method=jm.Bootstrap(0))):
            with pytest.warns(UserWarning, match=r"class 0 occurs neither .* 3 classes"):
                call(counts)
            with warnings.catch_warnings(action="error"):
                call(jm.confusion_matrix(y_true, y_pred, labels=[1, 2]))
                call(np.array([[1, 0, 0], [0, 9, 1], [0, 0, 8]]))  # some replicates lack class 0
    with warnings.catch_warnings(action="error"):
        jm.cohen_kappa(counts)
