"""All designs of samples by all methods of intervals: what holds of one holds of each.

Standard errors are held against the jackknife. All else is what a design or a method promises: the
order of units and of classes does not matter, what is empty is absent, a batch is a loop, NumPy and
JAX agree, levels nest. A method that a user wrote is one of the methods.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import jaxmetrics as jm
from jaxmetrics.intervals import replicates
from tests import cases
from tests.estimates import assert_close, ends, parts
from tests.test_comparisons import PAIRED, macro_f1, predictions

TRUTH, A, B = predictions()
COUNTS = np.array([[40, 5, 2], [6, 30, 4], [1, 3, 9]])
GROUPS = np.array([[[40, 10], [5, 45]], [[20, 2], [9, 39]]])
UNLIKE = np.array([[45, 1, 1], [18, 16, 6], [6, 4, 3]])  # recalls, so that strata matter


@dataclass(frozen=True)
class Wald(jm.IntervalMethod):
    """So many standard errors, whatever the level."""

    reach: float = 2.0
    name = "so many errors"

    def estimate(self, metric: Any, confidence: Any) -> tuple[jm.Estimate, None]:
        value, error = metric.values, metric.errors
        low, high = value - self.reach * error, value + self.reach * error
        return jm.Estimate(value, low, high, error, 0 * error), None


def clusters_of(table: np.ndarray, number: int, seed: int) -> np.ndarray:
    """Tables of clusters of twenty, whose cell probabilities vary by cluster."""
    rng = np.random.default_rng(seed)
    cells = rng.dirichlet(3 * table.ravel() / table.sum() + 0.1, number)
    return rng.multinomial(20, cells).reshape(number, *table.shape)


def gap(counts: Any) -> Any:
    """The difference between the accuracies of two groups."""
    return jm.accuracy(counts[..., 0, :, :]) - jm.accuracy(counts[..., 1, :, :])


gap.table_ndim = 3  # type: ignore[attr-defined]


def area(histogram: Any) -> Any:
    return jm.roc_auc(histogram).value


def unpaired(metric: Any, a: Any, b: Any, **options: Any) -> Any:
    return jm.compare_unpaired(metric, a, b, **options).difference


@dataclass(frozen=True, eq=False)
class Design:
    """What is drawn, and the metric of it.

    Attributes:
        tables: counts of each sample, with the clusters on the first axis if `clustered`.
        classes: the axes of the classes, which may be reordered.
        strata: how many axes, from the first of a table, tell the strata apart.
        each: a metric with a value for each class.
    """

    tables: tuple[np.ndarray, ...]
    metric: Callable[..., Any] = macro_f1
    call: Callable[..., Any] = jm.interval
    clustered: bool = False
    classes: tuple[int, ...] = (-2, -1)
    strata: int = 0
    each: Callable[..., Any] | None = None

    @property
    def options(self) -> dict[str, Any]:
        axis = {"cluster_axis": -self.tables[0].ndim} if self.clustered else {}
        return axis | ({"stratified": True} if self.strata else {})

    def estimate(self, method: jm.IntervalMethod, *tables: Any, **options: Any) -> Any:
        options = self.options | {"method": method} | options
        return self.call(options.pop("metric", self.metric), *tables or self.tables, **options)

    def value(self, *wholes: np.ndarray) -> float:
        metric = self.metric
        return float(metric(*wholes) if len(wholes) == 1 else metric(wholes[0]) - metric(wholes[1]))

    def units(self, tables: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tables of single units, how often each occurs, and its stratum."""
        if self.clustered:
            return tables, np.ones(len(tables), int), np.zeros(len(tables), int)
        size = tables.size
        units = np.eye(size, dtype=int).reshape(size, *tables.shape)
        return units, tables.ravel(), np.arange(size) // np.prod(tables.shape[self.strata :])

    def jackknife(self) -> tuple[float, float]:
        """The value, and its standard error from leaving out each unit within its stratum."""
        wholes = [x.sum(0) if self.clustered else x for x in self.tables]
        variance = 0.0
        for i, tables in enumerate(self.tables):
            units, times, strata = self.units(tables)
            for stratum in set(strata[times > 0]):
                inside = (strata == stratum) & (times > 0)
                total, n = np.tensordot(times[inside], units[inside], 1), times[inside].sum()
                without = [
                    self.value(
                        *wholes[:i], wholes[i] - total + (total - x) * n / (n - 1), *wholes[i + 1 :]
                    )
                    for x in units[inside]
                ]
                mean = np.average(without, weights=times[inside])
                variance += (n - 1) / n * (times[inside] * (without - mean) ** 2).sum()
        return self.value(*wholes), float(np.sqrt(variance))


def cubes_of_clusters() -> np.ndarray:
    truth, a, b = predictions(600)
    return np.asarray(jm.paired_confusion_matrix(truth, a, b, groups=np.arange(600) // 20))


CLUSTERS, FEWER = clusters_of(COUNTS, 40, 4), clusters_of(COUNTS, 25, 5)
GAIN, GAINS = jm.difference(macro_f1), jm.difference(jm.recall)
THREE = (-3, -2, -1)
DESIGNS = {
    "examples": Design((COUNTS,), each=jm.recall),
    "strata": Design((UNLIKE,), jm.accuracy, strata=1),
    "clusters": Design((CLUSTERS,), clustered=True, each=jm.recall),
    "pairs": Design((PAIRED,), GAIN, classes=THREE, each=GAINS),
    "strata of pairs": Design((PAIRED,), GAIN, classes=THREE, strata=1),
    "clusters of pairs": Design(
        (cubes_of_clusters(),), GAIN, clustered=True, classes=THREE, each=GAINS
    ),
    "groups": Design((GROUPS,), gap),
    "strata of groups": Design((GROUPS,), gap, strata=2),
    "clusters of groups": Design((clusters_of(GROUPS, 40, 0),), gap, clustered=True),
    "bins of scores": Design((np.array([[50, 40, 10], [5, 20, 75]]),), area, classes=()),
    "two test sets": Design((PAIRED.sum(-1), 2 * PAIRED.sum(-2)), call=unpaired),
    "clusters of two test sets": Design((CLUSTERS, FEWER), call=unpaired, clustered=True),
}
METHODS: dict[str, Any] = {name: make() for name, make in cases.METHODS.items()}
METHODS |= {"of one's own": Wald(), "studentized": replace(METHODS["studentized"], num_samples=50)}
EXACT = [name for name, method in METHODS.items() if not method.draws]


def number_of_draws(method: str) -> int:
    return getattr(METHODS[method], "num_samples", 0)


def serves(design: str, method: str) -> bool:
    clustered, of_one = DESIGNS[design].clustered, design in ("examples", "strata", "clusters")
    if method == "delta logit":  # differences need no scale
        return of_one or design == "bins of scores"
    return method != "posterior" or not (clustered or design == "bins of scores")


def each(
    promised: Callable[[Design, str], Any] = lambda design, method: True, methods: Any = METHODS
) -> pytest.MarkDecorator:
    """Run a test for every design and every method that promise something."""
    names = [(d, m) for d in DESIGNS for m in methods if serves(d, m) and promised(DESIGNS[d], m)]
    return pytest.mark.parametrize(("design", "method"), names)


every, exactly = each(), each(methods=EXACT)


@every
def test_values_and_errors_are_those_of_the_jackknife(design: str, method: str) -> None:
    """Within five errors of the replicates; the ends are on both sides of the value, and within the
    metric's range.
    """
    found, draws = DESIGNS[design].estimate(METHODS[method]), number_of_draws(method)
    value, error = DESIGNS[design].jackknife()
    assert_allclose(found.value, value, atol=error if method == "posterior" else 1e-12)
    rtol = 0.05 + (5 / np.sqrt(2 * draws) if draws else 0)
    assert_allclose(found.standard_error, error, rtol=rtol)
    assert found.low < found.value < found.high
    if method not in ("delta", "basic", "studentized", "of one's own"):
        lowest = 0 if serves(design, "delta logit") else -1
        assert lowest <= found.low < found.high <= 1
    if not draws:
        reach = (found.high - found.low) / 2 / error
        number = min(map(len, DESIGNS[design].tables))
        t = stats.t.ppf(0.975, number - 1 if DESIGNS[design].clustered else np.inf)
        expected = 2 if method == "of one's own" else t
        assert_allclose(reach, expected, rtol=0.3 if method == "likelihood" else 0.05)
        if method == "delta":
            assert_allclose(reach * error, t * found.standard_error)


@exactly
def test_the_order_of_clusters_and_classes_does_not_matter(design: str, method: str) -> None:
    this = DESIGNS[design]
    expected = parts(this.estimate(METHODS[method]))
    tables = this.tables
    for axis in this.classes:
        tables = tuple(np.roll(x, 1, axis) for x in tables)
    if this.clustered:
        tables = tuple(np.random.default_rng(0).permutation(x) for x in tables)
    assert_allclose(parts(this.estimate(METHODS[method], *tables)), expected, rtol=1e-5)


@every
def test_a_batch_is_a_loop(design: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In chunks of replicates, and with the clusters on the first axis."""
    this = DESIGNS[design]
    other = [2 * x[..., ::-1] for x in this.tables]
    batch = [np.stack(x) for x in zip(this.tables, other, strict=True)]
    monkeypatch.setattr(replicates, "LANES", 40)
    together = this.estimate(METHODS[method], *batch)
    for i, tables in enumerate((this.tables, other)):
        alone = this.estimate(METHODS[method], *tables)
        assert_close(jax.tree.map(lambda x, i=i: x[i], together), alone, 1e-9)
    if this.clustered and method in EXACT:
        moved = this.estimate(METHODS[method], *(x.swapaxes(0, 1) for x in batch), cluster_axis=0)
        assert_close(moved, together, 1e-9)


@each(lambda design, method: design.clustered)
def test_clusters_without_examples_are_absent(design: str, method: str) -> None:
    this = DESIGNS[design]
    padded = [np.concatenate([x[:9], 0 * x[:4], x[9:]]) for x in this.tables]
    found, expected = (this.estimate(METHODS[method], *x) for x in (padded, this.tables))
    atol = 0.01 if METHODS[method].draws else 0
    assert_allclose(parts(found), parts(expected), rtol=1e-9, atol=atol)


SINGLES = [DESIGNS[name] for name in ("examples", "pairs", "two test sets")]


@each(
    lambda design, method: design in SINGLES and method != "delta logit",
    [*EXACT, "percentile"],
)
def test_clusters_of_one_example_are_examples(design: str, method: str) -> None:
    """But for C / (C - 1) and Student's quantile."""
    this = DESIGNS[design]
    singles = [np.repeat(*this.units(x)[:2], 0) for x in this.tables]
    found = replace(this, clustered=True, tables=tuple(singles)).estimate(METHODS[method])
    alone = this.estimate(METHODS[method])
    assert_allclose(found.value, alone.value)
    rtol = 0.2 if METHODS[method].draws else 0.01
    assert_allclose(found.standard_error, alone.standard_error, rtol=rtol)
    atol = 0.6 * float(alone.standard_error)
    assert_allclose(ends(found), ends(alone), atol=atol)


@each(lambda design, method: method != "of one's own")
def test_levels_nest(design: str, method: str) -> None:
    wide, narrow = (DESIGNS[design].estimate(METHODS[method], level=x) for x in (0.95, 0.5))
    assert wide.low < narrow.low < narrow.high < wide.high


@each(lambda design, method: design.each, [*EXACT, "percentile"])
def test_simultaneous_intervals_have_sidaks_level(design: str, method: str) -> None:
    this = DESIGNS[design]

    def values(counts: Any) -> dict[str, Any]:
        return {"each": this.each(counts), "one": this.metric(counts)}  # type: ignore[misc]

    values.table_ndim = this.tables[0].ndim - this.clustered  # type: ignore[attr-defined]
    together = this.estimate(METHODS[method], simultaneous=True, metric=values)
    apart = this.estimate(METHODS[method], level=0.95**0.25, metric=values)
    assert_close(together, apart, 1e-6)


@each(lambda design, method: design.call is jm.interval and method != "of one's own")
def test_intervals_at_all_times_are_wider(design: str, method: str) -> None:
    this = DESIGNS[design]
    if METHODS[method].draws:
        with pytest.raises(ValueError, match="cannot compute intervals with the option anytime"):
            this.estimate(METHODS[method], anytime=True)
    else:
        once, always = (this.estimate(METHODS[method], anytime=looks) for looks in (False, 400))
        assert 1.2 < (always.high - always.low) / (once.high - once.low) < 3


@every
def test_counts_that_are_none_are_refused(design: str, method: str) -> None:
    this = DESIGNS[design]
    for bad in (np.nan, -1.0):
        first = this.tables[0].astype(float)
        first.flat[1] = bad
        with pytest.raises(ValueError, match=rf"\[(0, )+1\] is {bad:g}, expected a "):
            this.estimate(METHODS[method], first, *this.tables[1:])
    with pytest.raises(ValueError, match="level must be a Python number between 0 and 1"):
        this.estimate(METHODS[method], level=95)


# The rows of cases.py have the likelihood of the first three on the device.
# The rows of cases.py have the likelihood of examples, strata and pairs on the device.
@pytest.mark.parametrize(
    "name", ["clusters", "groups", "bins of scores", "clusters of two test sets"]
)
def test_likelihood_intervals_of_the_device_agree_with_those_of_the_host(name: str) -> None:
    this, method = DESIGNS[name], METHODS["likelihood"]
    device = this.estimate(method, *map(jnp.asarray, this.tables))
    assert all(isinstance(x, jax.Array) for x in jax.tree.leaves(device))
    assert_close(device, this.estimate(method), 1e-4, 2e-5)


@each(methods=["of one's own"])
def test_methods_of_ones_own_are_traced_in_a_batch(design: str, method: str) -> None:
    this = DESIGNS[design]
    batch = [jnp.stack([x, 2 * x]) for x in this.tables]
    traced = jax.jit(lambda *x: this.estimate(METHODS[method], *x))(*batch)
    assert_allclose(parts(traced)[:, 0], parts(this.estimate(METHODS[method])), 1e-4, 2e-5)


@pytest.mark.slow
@each(methods=["bca", "posterior"])
def test_replicates_of_the_device_agree_with_those_of_the_host(design: str, method: str) -> None:
    """Within five Monte Carlo errors of the replicates on either side."""
    this = DESIGNS[design]
    host = this.estimate(METHODS[method])
    device = this.estimate(METHODS[method], *map(jnp.asarray, this.tables))
    assert isinstance(device.low, jax.Array)
    error, noise = float(host.standard_error), 5 / np.sqrt(number_of_draws(method))
    assert_allclose(device.value, host.value, atol=1e-6 + noise * error)
    assert_allclose(device.standard_error, error, rtol=noise)
    assert_allclose(ends(device), ends(host), atol=4 * noise * error)


@pytest.mark.parametrize("method", [name for name in METHODS if serves("pairs", name)])
def test_a_comparison_has_the_interval_of_the_difference(method: str) -> None:
    """And of each classifier the interval that it has alone."""
    for name in ("pairs", "clusters of pairs"):
        if serves(name, method):
            this = DESIGNS[name]
            (cubes,), options = this.tables, this.options
            found = jm.compare(macro_f1, cubes, method=METHODS[method], level=0.5, **options)
            assert_close(found.difference, this.estimate(METHODS[method], level=0.5))
            if options:
                options = {"cluster_axis": 0}
            for pair, margin in ((found.a, cubes.sum(-1)), (found.b, cubes.sum(-2))):
                alone = jm.interval(macro_f1, margin, method=METHODS[method], level=0.5, **options)
                atol = 0.02 if METHODS[method].draws else 1e-5
                assert_allclose(parts(pair), parts(alone), atol=atol)


@each(lambda design, method: design.call is unpaired, EXACT)
def test_each_of_two_test_sets_is_known_about_as_well_as_alone(design: str, method: str) -> None:
    this = DESIGNS[design]
    options = this.options | {"method": METHODS[method]}
    found = jm.compare_unpaired(macro_f1, *this.tables, **options)
    alone = [jm.interval(macro_f1, x, **options) for x in this.tables]
    for together, one in zip((found.a, found.b), alone, strict=True):
        # The degrees of freedom are those of the fewer clusters.
        assert_allclose(ends(together), ends(one), atol=0.015)
    error = np.hypot(*(x.standard_error for x in alone))
    assert_allclose(found.difference.standard_error, error, rtol=1e-9)
    mirrored = this.estimate(METHODS[method], *this.tables[::-1])
    assert_allclose(-ends(mirrored)[::-1], ends(found.difference), atol=1e-9)


def test_methods_of_ones_own_in_leaderboards_groups_and_reports() -> None:
    for clusters in (None, np.arange(400) // 10):
        options: dict[str, Any] = {} if clusters is None else {"clusters": clusters}
        axis = None if clusters is None else 0
        tables = [jm.confusion_matrix(TRUTH, x, groups=clusters) for x in (A, B)]
        each = [jm.interval(macro_f1, x, method=Wald(), cluster_axis=axis) for x in tables]
        options |= {"method": Wald()}
        board = jm.leaderboard(macro_f1, TRUTH, [A, B], num_classes=3, num_samples=50, **options)
        assert_allclose(parts(board.estimates), np.stack([*map(parts, each)], 1))
        report = jm.report(TRUTH, A, **options)
        figure = report.to_dict()["overall"]["macro_f1"]
        assert (figure["low"], figure["high"]) == (float(each[0].low), float(each[0].high))
        assert figure["method"] == Wald.name
        for text in (report.to_text(), report.to_html()):
            assert f"{each[0].low:.3f}"[1:] in text
    apart = jm.compare_groups(jm.accuracy, GROUPS, method=Wald())
    a, b = (jm.interval(jm.accuracy, x, method=Wald()) for x in GROUPS)
    reach = 2 * np.hypot(a.standard_error, b.standard_error)
    assert_allclose(apart.high, abs(a.value - b.value) + reach)


def test_methods_of_ones_own_in_streams() -> None:
    score = jnp.asarray(TRUTH + 2 * A, jnp.float32)
    evaluator = jm.evaluator(
        jm.count_metrics({"f1": macro_f1}, num_classes=3, method=Wald()),
        jm.paired_metrics({"gain": macro_f1}, num_classes=3, method=Wald()),
        jm.ranking_metrics({"auc": area}, num_bins=64, scale="float", method=Wald()),
    )
    truth = np.minimum(TRUTH, 1)  # areas are of two classes
    batch = {"y_true": truth, "y_pred": A, "y_pred_a": A, "y_pred_b": B, "y_score": score}
    found = evaluator.compute(evaluator.update(evaluator.init(), **batch))
    counts = jm.confusion_matrix(truth, A, num_classes=3)
    assert_close(found["f1"], jm.interval(macro_f1, counts, method=Wald()), 2e-6)
    paired = jm.paired_confusion_matrix(truth, A, B, num_classes=3)
    assert_close(found["gain"], jm.compare(macro_f1, paired, method=Wald()), 1e-5)
    assert found["auc"].low < found["auc"].value < found["auc"].high


@pytest.mark.parametrize("kind", [jm.Bootstrap, jm.Posterior])
def test_another_key_compiles_nothing(kind: Any, programs: list[str]) -> None:
    """As a JAX key, as a seed, and in a comparison."""
    counts, cubes = jnp.asarray(COUNTS), jnp.asarray(PAIRED)
    for keys in ([jax.random.key(i) for i in (1, 2)], [1, 2]):
        numbers, lows = [], []
        for key in keys:
            before, method = len(programs), kind(key, num_samples=30)
            lows.append(float(jm.interval(macro_f1, counts, method=method).low))
            jm.compare(jm.accuracy, cubes, method=method)
            numbers.append(len(programs) - before)
        assert numbers[1] == 0
        assert lows[0] != lows[1]


def test_keys_priors_and_methods_are_traced(programs: list[str]) -> None:
    """A key and a prior, or the whole method, are arguments of a compiled function."""
    counts = jnp.asarray(COUNTS)

    def methods(key: Any, prior: Any) -> Any:
        return jm.Bootstrap(key, num_samples=30), jm.Posterior(key, prior, num_samples=30)

    def whole(methods: Any, c: Any) -> Any:
        return [jm.interval(jm.f1, c, method=method) for method in methods]

    def by_parts(key: Any, prior: Any, c: Any) -> Any:
        return whole(methods(key, prior), c)

    jitted, of_methods, found = jax.jit(by_parts), jax.jit(whole), []
    arguments = [(jax.random.key(i), jnp.float32(prior)) for i, prior in ((3, 1), (4, 0.25))]
    for each in arguments:
        before = len(programs)
        found.append((jitted(*each, counts), of_methods(methods(*each), counts)))
    assert len(programs) == before
    for each, results in zip(arguments, found, strict=True):
        for result in results:
            assert_close(result, by_parts(*each, counts), 2e-6)
    assert np.all(found[0][0][1].value != found[1][0][1].value)
    keys, priors = (jnp.stack(x) for x in zip(*arguments, strict=True))
    in_a_row = jax.vmap(by_parts, (0, 0, None))(keys, priors, counts)
    for i in (0, 1):
        assert_close(jax.tree.map(lambda x, i=i: x[i], in_a_row), found[i][0], 2e-6)


def test_proportions_of_clusters() -> None:
    """Ten clusters of ten, all right or all wrong: as ten examples, with Student's quantile."""
    right = np.array([10] * 16 + [0] * 4)
    estimate = jm.proportion_interval(right, np.full(20, 10), cluster_axis=0)
    assert_allclose(estimate.value, 0.8)
    assert_allclose(estimate.standard_error, np.sqrt(0.8 * 0.2 / 19))
    independent = 19 * (1.959964 / 2.093024) ** 2
    expected = jm.proportion_interval(0.8 * independent, independent)
    assert_allclose(ends(estimate), ends(expected), rtol=1e-5)
    # Without an error a cluster counts once.
    perfect = jm.proportion_interval(np.full(20, 10), np.full(20, 10), cluster_axis=0)
    assert 0.75 < perfect.low < 0.87


def test_few_clusters_and_mistakes() -> None:
    for number in (12, 1):
        with pytest.warns(UserWarning, match=f"{number} cluster"):
            few = jm.interval(macro_f1, CLUSTERS[:number], cluster_axis=-3)
    assert np.isnan(few.low)
    with pytest.warns(UserWarning, match="3 clusters") as caught:
        jm.proportion_interval([1, 1, 2], [2, 3, 4], cluster_axis=0)
    assert caught[0].filename == __file__
    calls: list[tuple[Callable[[], Any], str]] = [
        (
            lambda: jm.interval(macro_f1, FEWER, cluster_axis=-2),
            r"cluster_axis must be -3 or another .* is -2",
        ),
        (
            lambda: jm.proportion_interval(np.ones(25), 2, cluster_axis=1),
            r"must be an axis of the array successes of shape \(25,\), got cluster_axis=1",
        ),
        (
            lambda: jm.interval(macro_f1, FEWER, cluster_axis=-3, stratified=True),
            "whole clusters are drawn",
        ),
        (
            lambda: DESIGNS["clusters of pairs"].estimate(METHODS["posterior"]),
            r"Posterior needs confusion matrices, .* and no clusters",
        ),
        (
            lambda: DESIGNS["bins of scores"].estimate(METHODS["posterior"]),
            "Posterior needs confusion matrices, with an axis of true",
        ),
        (lambda: jm.interval(gap, COUNTS), "metric needs tables with three axes, .* but counts"),
        *(
            (lambda x=x: jm.interval(macro_f1, COUNTS, method=jm.Delta(), anytime=x), "anytime")
            for x in (-1, 0, 2.5)
        ),
    ]
    for call, message in calls:
        with pytest.raises((TypeError, ValueError), match=message):
            call()


def test_the_boundary_of_a_normal_mixture() -> None:
    """The reach is where the mixture of likelihood ratios, by quadrature, is 1 / α."""
    for n, narrowest in ((50, 500), (500, 500), (10_000, 100)):
        counts = np.array([[n // 2, 0], [n // 4, n - n // 2 - n // 4]])
        estimate = jm.interval(jm.accuracy, counts, method=jm.Delta(), anytime=narrowest)
        z = (estimate.high - estimate.value) / estimate.standard_error
        rho = np.sqrt((np.log(400) + np.log(np.log(400)) + 1) / narrowest)
        means = np.linspace(-12, 12, 200_001) * rho
        density = stats.norm.pdf(means, scale=rho)
        ratio = np.exp(means * z * np.sqrt(n) - n * means**2 / 2)
        assert_allclose((density * ratio).sum() * (means[1] - means[0]), 20, rtol=1e-5)
    likely, normal = (
        jm.interval(jm.accuracy, [[5000, 500], [400, 4100]], method=method, anytime=True)
        for method in (jm.Likelihood(), jm.Delta())
    )
    assert_allclose(ends(likely), ends(normal), atol=5e-4)


@pytest.mark.quick
@pytest.mark.parametrize("put", [np.asarray, jnp.asarray])
def test_a_level_of_numpy_is_its_decimals(put: Any) -> None:
    counts, scores = put(GROUPS[0]), put(np.array([0.2, 0.9, 0.7]))
    calls: list[Any] = [
        lambda level: jm.interval(jm.accuracy, counts, level=level),
        lambda level: jm.proportion_interval(put(np.array(7)), 10, level=level),
        lambda level: jm.paired_difference_interval(counts, level=level),
        lambda level: jm.mean_interval(scores, level=level),
    ]
    for call in calls:
        assert_array_equal(parts(call(np.float32(0.9))), parts(call(0.9)))
    with pytest.raises(ValueError, match="level must be a Python number between 0 and 1"):
        jm.mean_interval(scores, level=np.float32(1))  # type: ignore[arg-type]
