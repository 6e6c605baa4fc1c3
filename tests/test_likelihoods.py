"""Likelihood intervals, against a general optimiser and what is known of proportions."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, special, stats

import jaxmetrics as jm
from tests.estimates import ends, parts

METRICS: dict[str, Any] = {
    "macro_f1": jm.macro(jm.f1),
    "balanced_accuracy": jm.balanced_accuracy,
    "cohen_kappa": jm.cohen_kappa,
    "matthews_corrcoef": jm.matthews_corrcoef,
}
TABLES: dict[str, Any] = {
    "ordinary": [[30, 4, 1], [6, 20, 3], [0, 2, 34]],
    "rare": [[190, 5, 0], [1, 4, 0], [0, 1, 2]],
    "perfect": [[25, 0, 0], [0, 20, 0], [0, 0, 15]],
    "small": [[5, 3, 0], [1, 6, 0], [2, 1, 0]],
}


def limits_by_optimiser(metric: Any, counts: Any, stratified: Any) -> tuple[float, float]:
    """Both limits by sequential quadratic programming, over the cells that hold examples once a
    third of one is added to a cell: to whichever of four cells gives the most extreme limit.
    """
    counts = np.asarray(counts, float)
    totals = counts.sum(1, keepdims=True)
    radius = stats.chi2.ppf(0.95, 1) / 2

    def limit(sign: int, cell: Any) -> float:
        base = counts.copy()
        base[cell] += 1 / 3
        if stratified:
            base *= totals / base.sum(1, keepdims=True)
        seen = base > 0
        observed, rows = base[seen], np.nonzero(seen)[0]

        def table_of(x: Any) -> Any:
            table = np.zeros(seen.shape)
            table[seen] = x
            return table

        groups = [rows == i for i in set(rows)] if stratified else [rows >= 0]
        constraints = [
            {"type": "eq", "fun": lambda x, g=g: x[g].sum() - observed[g].sum()} for g in groups
        ]

        def room(x: Any) -> float:
            return float(radius - special.rel_entr(observed, x).sum())

        constraints.append({"type": "ineq", "fun": room})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # steps that leave the bounds
            found = optimize.minimize(
                lambda x: -sign * metric(table_of(x)),
                observed,
                constraints=constraints,
                bounds=[(1e-9, None)] * len(observed),
                method="SLSQP",
                options={"maxiter": 500, "ftol": 1e-13},
            )
        value = float(metric(table_of(found.x)))
        return value if room(found.x) > -1e-6 else -sign * np.inf

    def gain(cell: Any) -> float:
        more = counts.copy()
        more[cell] += 1e-5
        more = more * totals / more.sum(1, keepdims=True) if stratified else more
        return float(metric(more))

    cells = sorted(np.ndindex(counts.shape), key=gain)
    low = min(limit(-1, cell) for cell in cells[:4])
    return low, max(limit(1, cell) for cell in cells[-4:])


@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", METRICS)
def test_limits_are_those_of_a_general_optimiser(name: Any, table: Any, stratified: Any) -> None:
    metric, counts = METRICS[name], np.array(TABLES[table])
    estimate = jm.interval(metric, counts, stratified=stratified)
    low, high = limits_by_optimiser(metric, counts, stratified)
    assert_allclose(estimate.low, min(low, estimate.value), atol=2e-5)
    assert_allclose(estimate.high, max(high, estimate.value), atol=2e-5)
    assert_allclose(
        estimate.standard_error,
        jm.interval(metric, counts, method=jm.Delta(), stratified=stratified).standard_error,
    )


def test_large_counts_give_the_interval_of_the_delta_method() -> None:
    counts = np.array([[90, 10, 1], [5, 95, 3], [2, 2, 50]]) * 1e7
    for metric in METRICS.values():
        by_likelihood = jm.interval(metric, counts)
        by_delta = jm.interval(metric, counts, method=jm.Delta())
        reach = by_delta.high - by_delta.value
        assert_allclose(by_likelihood.high - by_likelihood.value, reach, rtol=1e-3)
        assert_allclose(by_likelihood.value - by_likelihood.low, reach, rtol=1e-3)


@pytest.mark.parametrize(
    "counts",
    [
        [[30, 4], [6, 20]],
        [[10, 0], [10, 0]],  # a class is never predicted
        [[8, 6], [0, 0]],  # a class is never the truth
        [[8, 0, 0], [3, 0, 0], [6, 0, 0]],
        [[0, 3, 5], [0, 7, 2], [0, 0, 0]],
    ],
)
@pytest.mark.parametrize("places", [(0, 1, 2), (1, 3, 0), (4, 2, 1)])
def test_classes_that_do_not_occur_change_no_average(counts: Any, places: Any) -> None:
    places = places[: len(counts)]
    more = np.zeros((5, 5), int)
    more[np.ix_(places, places)] = counts
    true, pred = (np.repeat(x.ravel(), np.ravel(counts)) for x in np.indices(np.shape(counts)))
    other = np.roll(pred, 3)
    for metric in (jm.macro(jm.f1), jm.macro(jm.precision), jm.balanced_accuracy):
        alone = jm.interval(metric, counts)
        assert_allclose(parts(jm.interval(metric, more)), parts(alone), rtol=1e-4, atol=1e-9)
        among_five, among_its_own = (
            jm.interval(jm.difference(metric), jm.paired_confusion_matrix(*x, num_classes=k))
            for x, k in (
                ([np.array(places)[y] for y in (true, pred, other)], 5),
                ([true, pred, other], len(counts)),
            )
        )
        assert_allclose(parts(among_five), parts(among_its_own), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("as_array", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("counts", [TABLES["ordinary"], TABLES["perfect"]])
def test_classes_that_do_not_occur_change_no_interval(as_array: Any, counts: Any) -> None:
    def values(c: Any) -> Any:
        weighted = [jm.cohen_kappa(c, weights=w) for w in ("linear", "quadratic")]
        return *weighted, *[f(c) for f in (*METRICS.values(), jm.accuracy, jm.mutual_information)]

    alone = jm.interval(values, as_array(counts))
    among = jm.interval(values, as_array([np.pad(counts, x) for x in ((3, 1), (0, 4))]))
    for one, two in zip(alone, among, strict=True):
        assert_allclose(parts(two)[:3], np.stack([parts(one)[:3]] * 2, -1), rtol=1e-3)


def test_classes_that_do_not_occur_change_no_interval_of_pairs_and_clusters() -> None:
    def weighted(c: Any) -> Any:
        return jm.cohen_kappa(c, weights="quadratic")

    counts = np.array(TABLES["ordinary"])
    cube, clusters = counts[:, :, None] * np.array([1, 2, 0]), np.stack([counts, counts.T] * 10)
    among = np.pad(clusters, ((0, 0), (4, 1), (4, 1)))
    for one, two in (
        [jm.interval(jm.difference(weighted), x) for x in (cube, np.pad(cube, (4, 1)))],
        [jm.interval(weighted, x, cluster_axis=-3) for x in (clusters, among)],
    ):
        assert_allclose(parts(two)[:3], parts(one)[:3], rtol=1e-3)


def test_a_value_of_a_class_that_does_not_occur_keeps_its_interval() -> None:
    counts = np.pad(TABLES["ordinary"], (0, 1))
    share = jm.interval(lambda c: c.sum(-1)[..., -1] / c.sum((-2, -1)), counts)
    assert share.low == 0 < 0.01 < share.high < 0.04
    assert jm.interval(jm.false_positive_rate, counts).high[-1] > 0.01


def test_an_example_may_be_taken_for_a_class_that_does_not_occur() -> None:
    two, three = np.array([[50, 0], [0, 0]]), np.pad([[50]], (1, 2))
    assert jm.interval(jm.accuracy, two).low < 0.95
    assert np.isnan(jm.interval(jm.macro(jm.f1), two).low)  # of a single class
    recalls = [jm.interval(jm.balanced_accuracy, x) for x in (two, three, jnp.asarray(three))]
    assert all(0.5 < recall.low < 0.97 for recall in recalls)
    assert recalls[0].high == recalls[1].high == 1
    assert_allclose(parts(recalls[2])[:3], parts(recalls[1])[:3], 1e-5)


def test_it_does_not_matter_whether_the_wrong_class_occurs() -> None:
    y_true = np.repeat([1, 1, 2], 10)
    y_pred = np.where(np.arange(30) < 28, 2, 1)
    elsewhere = np.where(y_pred == y_true, y_true, 0)  # the same mistakes; 1 is never predicted

    def limits(y: Any) -> Any:
        counts = jm.confusion_matrix(y_true, y, num_classes=3)
        pairs = jm.paired_confusion_matrix(y_true, y, y, num_classes=3)
        of_columns = jm.interval(lambda c: jm.balanced_accuracy(c.mT), counts.T)
        difference = jm.interval(jm.difference(jm.balanced_accuracy), pairs)
        return [
            parts(x)[:3]
            for x in (jm.interval(jm.balanced_accuracy, counts), of_columns, difference)
        ]

    assert_allclose(limits(elsewhere), limits(y_pred), rtol=1e-3, atol=1e-9)


def test_a_convention_has_no_interval() -> None:
    never_predicted = jm.interval(jm.precision, [[5, 0], [2, 0]])
    assert never_predicted.value[1] == 0
    assert np.isnan(never_predicted.low[1])
    assert np.isnan(never_predicted.high[1])
    assert not np.isnan(never_predicted.low[0])


def test_many_classes_and_pytrees() -> None:
    rng = np.random.default_rng(0)
    k = 60
    counts = rng.multinomial(5000, (np.eye(k) * 0.8 / k + 0.2 / k / k).ravel()).reshape(k, k)
    both = jm.interval(lambda c: {"f1": jm.macro(jm.f1)(c), "two": jm.recall(c)[..., :2]}, counts)
    by_delta = jm.interval(jm.macro(jm.f1), counts, method=jm.Delta())
    assert_allclose(both["f1"].high - both["f1"].low, by_delta.high - by_delta.low, rtol=0.05)
    assert both["two"].low.shape == (2,)
    on_device = jm.interval(jm.macro(jm.f1), jnp.asarray(counts))
    assert_allclose(both["f1"].low, on_device.low, rtol=1e-5)


def test_what_has_no_likelihood_is_refused() -> None:
    with pytest.raises(ValueError, match="sums of weights do not say"):
        jm.interval(jm.accuracy, np.array([[5.5, 1], [2, 3]]))
    hidden = jax.jit(lambda c: jm.interval(jm.accuracy, c))
    assert np.isnan(hidden(jnp.array([[5.5, 1], [2, 3]])).low)
    assert np.isnan(hidden(jnp.array([[5.0, -1], [2, 3]])).high)


def test_differences_are_those_of_a_general_optimiser() -> None:
    metric = jm.macro(jm.f1)
    for counts in ([[[30, 4], [2, 6]], [[5, 1], [9, 28]]], [[[20, 0], [3, 0]], [[0, 0], [0, 25]]]):
        difference = jm.compare(metric, counts).difference

        def function(cube: Any) -> Any:
            return metric(cube.sum(2)) - metric(cube.sum(1))

        low, high = limits_by_optimiser(function, counts, stratified=False)
        assert_allclose([difference.low, difference.high], [low, high], atol=2e-5)


def test_a_value_that_no_likely_table_moves_has_no_interval() -> None:
    for metric, counts in (
        (jm.g_mean, [[0, 5], [5, 0]]),  # a product of two zeros
        (jm.recall, [[0, 0], [0, 0]]),
        (jm.matthews_corrcoef, [[0, 0], [0, 0]]),
    ):
        estimate = jm.interval(metric, counts)
        assert np.isnan(estimate.low).all()
        assert np.isnan(estimate.high).all()
    constant = jm.interval(lambda c: 1 + 0 * c.sum((-2, -1)), [[5, 1], [1, 2]])
    assert (constant.low, constant.high) == (1, 1)


def test_many_classes_without_empty_cells() -> None:
    k = 200
    counts = np.random.default_rng(0).poisson(3, (k, k)) + 50 * np.eye(k, dtype=int)
    by_likelihood = jm.interval(jm.accuracy, counts)
    wilson = jm.proportion_interval(counts.trace(), counts.sum())
    assert_allclose(ends(by_likelihood), ends(wilson), atol=1e-5)


def test_a_method_is_a_value() -> None:
    for method in ("likelihood", jm.Likelihood, None):
        with pytest.raises(TypeError, match=r"such as jaxmetrics.Likelihood\(\)"):
            jm.leaderboard(jm.accuracy, [0, 1], [[0, 1]], method=method)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be an interval method"):
        jm.Report.from_counts([[5, 1], [1, 2]], method="likelihood")  # type: ignore[arg-type]


def test_classifiers_that_always_agree_are_not_known_to_be_equal() -> None:
    few, many = (
        jm.compare_predictions(jm.accuracy, *[np.arange(k).repeat(3)] * 3, num_classes=k)
        for k in (10, 70)
    )
    assert few.difference.low < 0 < few.difference.high
    assert np.isnan(many.difference.low)  # of many classes pairs that were not seen are not held
    assert np.isnan(many.probability_equivalent)


def test_an_absolute_value_has_both_sides_of_the_signed_value() -> None:
    """Of two classes, Cramér's V is the absolute value of Matthews' correlation coefficient."""
    rng = np.random.default_rng(4)
    shares = rng.dirichlet([1, 1], (60, 2))
    cells = shares[:, 0, :, None] * shares[:, 1, None]  # independent: the sign may be either
    counts = np.array([rng.multinomial(rng.integers(10, 200), p.ravel()) for p in cells])
    counts = np.concatenate([counts.reshape(-1, 2, 2), [[[188, 2], [10, 0]]]])
    counts = counts[counts.sum(1).all(-1) & counts.sum(2).all(-1)]
    assert len(counts) > 40
    association, signed = (jm.interval(f, counts) for f in (jm.cramers_v, jm.matthews_corrcoef))
    assert_allclose(association.high, np.maximum(-signed.low, signed.high), atol=1e-3)


@pytest.mark.parametrize(
    ("metric", "counts"),
    [
        (jm.g_mean, np.array([[270, 0], [30, 0]])),
        (jm.g_mean, jnp.array([[500, 0, 0], [20, 0, 5], [20, 0, 10]])),
        (jm.matthews_corrcoef, np.array([[270, 0], [30, 0]])),
        (jm.binary(jm.fowlkes_mallows), np.array([[270, 30], [30, 0]])),
    ],
)
def test_a_steep_root_is_no_jump(metric: Any, counts: Any) -> None:
    """The value is 0, and changes by a root of what is added to empty cells."""
    estimate = jm.interval(metric, counts)
    assert estimate.value == 0
    assert 0.05 < estimate.high < 0.9
    assert estimate.low <= 0


@pytest.mark.parametrize("counts", [[[500, 10], [0, 3]], [[1800, 200], [1, 11]], [[19, 1], [0, 8]]])
def test_errors_of_other_classes_than_the_worst(counts: list[list[int]]) -> None:
    """The worst recall may be as low as that of any class."""
    lows = jm.interval(jm.recall, counts).low
    found = jm.interval(lambda c: jm.recall(c).min(-1), counts)
    assert_allclose(found.low, lows.min(), rtol=1e-3)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_end_without_bound_is_infinite(sign: int) -> None:
    """The other end against all pairs of rates on a grid, with a third of a false positive."""
    fpr, tpr = np.meshgrid(np.linspace(1e-4, 0.4, 4000), np.linspace(0.4, 0.999, 600))
    log_likelihood = 20 * np.log(tpr) + 5 * np.log(1 - tpr)
    log_likelihood += np.log(fpr) / 3 + 43 * np.log(1 - fpr)
    rate = 1 / 3 / (43 + 1 / 3)
    peak = 20 * np.log(0.8) + 5 * np.log(0.2) + np.log(rate) / 3 + 43 * np.log(1 - rate)
    low = (tpr / fpr)[log_likelihood > peak - 1.959964**2 / 2].min()
    found = jm.interval(
        lambda c: sign * jm.positive_likelihood_ratio(c)[..., 1], [[43, 0], [5, 20]]
    )
    ends = np.sort([sign * found.low, sign * found.high])
    assert_allclose(ends, [low, np.inf], rtol=5e-3)
    assert np.isnan(found.value)


@pytest.mark.parametrize("as_array", [np.asarray, jnp.asarray])
def test_a_value_that_is_extreme_inside_of_the_plausible_tables(as_array: Any) -> None:
    """An absolute value may be 0 if the interval of the signed value contains 0, and the share of
    the more frequent of two classes may be a half.
    """

    def gap(counts: Any) -> Any:
        recall = jm.recall(counts)
        return recall[..., 0] - recall[..., 1]

    apart = [[40, 2], [14, 20]]
    counts = as_array([[[26, 3], [4, 17]], [[15, 11], [14, 10]], [[9, 14], [13, 14]], apart])
    of_signed: list[tuple[Any, Any]] = [
        (lambda c: abs(gap(c)), gap),
        (jm.cramers_v, jm.matthews_corrcoef),
        (jm.mutual_information, jm.matthews_corrcoef),
    ]
    for metric, signed in of_signed if as_array is np.asarray else of_signed[:1]:
        found, around = jm.interval(metric, counts), jm.interval(signed, counts)
        may_be_0 = np.asarray((around.low <= 0) & (around.high >= 0))[:3]
        *low, low_apart = np.asarray(found.low)
        assert may_be_0[1:].all()
        # Exactly, because a difference is called significant if its interval excludes 0.
        assert (np.array(low)[may_be_0] == 0).all()
        assert (np.array(low)[~may_be_0] > 0.1).all()
        assert low_apart > 0.05
    shares = jm.interval(jm.no_information_rate, counts)
    assert_allclose(np.asarray(shares.low)[:3], 0.5, atol=1e-6)
