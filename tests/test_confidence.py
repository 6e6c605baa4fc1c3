"""Tables of groups, intervals that hold together, and intervals that hold at all times."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxmetrics as jm
from tests.oracles import fields_of

F1 = jm.macro(jm.f1)
GROUPS = np.array([[[40, 10], [5, 45]], [[20, 2], [9, 39]], [[8, 1], [2, 9]]])


def difference_of_two(counts: Any) -> Any:
    return jm.accuracy(counts[..., 0, :, :]) - jm.accuracy(counts[..., 1, :, :])


difference_of_two.table_ndim = 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("put", [np.asarray, jnp.asarray])
def test_tables_of_groups(put: Any) -> None:
    """The difference of two groups is that of independent test sets: the textbook's error."""
    counts = put(GROUPS[:2])
    p, n = np.array([85 / 100, 59 / 70]), np.array([100, 70])
    error = np.sqrt((p * (1 - p) / n).sum())
    delta = jm.interval(difference_of_two, counts, method=jm.Delta())
    np.testing.assert_allclose(delta.value, p[0] - p[1], rtol=1e-4)
    np.testing.assert_allclose(delta.standard_error, error, rtol=1e-5)
    np.testing.assert_allclose(delta.high - delta.value, 1.959964 * error, rtol=1e-5)
    apart = jm.compare_unpaired(jm.accuracy, *GROUPS[:2]).difference
    likely = jm.interval(difference_of_two, GROUPS[:2], method=jm.Likelihood())
    # One of them adds a third of an example to one stratum of two, the other to all examples.
    np.testing.assert_allclose(fields_of(likely), fields_of(apart), atol=1e-3)
    for drawing in (jm.Bootstrap(0), jm.Posterior(0)):
        drawn = jm.interval(difference_of_two, counts, method=drawing, stratified=True)
        np.testing.assert_allclose(drawn.standard_error, error, rtol=0.07)


def test_clusters_in_groups() -> None:
    """A cluster with examples of both groups moves them together."""
    rng = np.random.default_rng(0)
    clusters = rng.multinomial(20, rng.dirichlet(np.full(8, 2), 40)).reshape(40, 2, 2, 2)
    estimate = jm.interval(difference_of_two, clusters, method=jm.Delta(), cluster_axis=-4)
    without = np.array([difference_of_two(np.delete(clusters, i, 0).sum(0)) for i in range(40)])
    error = np.sqrt(39 / 40 * ((without - without.mean()) ** 2).sum())
    np.testing.assert_allclose(estimate.standard_error, error, rtol=0.05)
    likely = jm.interval(difference_of_two, clusters, cluster_axis=0)
    np.testing.assert_allclose(likely.high, estimate.high, atol=0.02)


def test_tables_that_are_no_groups_are_refused() -> None:
    for counts in (GROUPS[0], GROUPS[..., :1]):
        with pytest.raises(ValueError, match=r"metric needs tables with three axes, .* but counts"):
            jm.interval(difference_of_two, counts)


@pytest.mark.parametrize("put", [np.asarray, jnp.asarray])
def test_simultaneous_intervals_have_sidaks_level(put: Any) -> None:
    counts, each = put([[30, 5, 2], [4, 20, 1], [0, 3, 15]]), 0.95 ** (1 / 4)
    methods: list[jm.IntervalMethod] = [jm.Delta()]
    if put is np.asarray:
        methods += [jm.Likelihood(), jm.Bootstrap(0, "percentile")]

    def values(c: Any) -> Any:
        return {"recall": jm.recall(c), "accuracy": jm.accuracy(c)}

    for method in methods:
        found: Any = jm.interval(values, counts, method=method, simultaneous=True)
        expected: Any = jm.interval(values, counts, method=method, level=each)
        for name, x in found.items():
            np.testing.assert_allclose(fields_of(x), fields_of(expected[name]), rtol=1e-6)
        cube = put(np.full((2, 2, 2), 9))
        of_pairs = jm.interval(jm.difference(jm.recall), cube, method=method, simultaneous=True)
        apart = jm.compare(jm.recall, cube, method=method, level=0.95**0.5)
        np.testing.assert_allclose(
            fields_of(of_pairs)[:3], fields_of(apart.difference)[:3], rtol=1e-6
        )


def test_recalls_hold_together() -> None:
    """Ten recalls of 50 examples each: all are covered in 95 % of 2000 test sets, less three
    standard errors; single intervals hold together in much fewer.
    """
    k, recall = 10, 0.8
    cells = (np.eye(k) * (recall - 0.2 / 9) + 0.2 / 9) / k
    drawn = np.random.default_rng(0).multinomial(500, cells.ravel(), 2000)
    counts, covered = jnp.asarray(drawn.reshape(2000, k, k)), []
    for simultaneous in (True, False):
        estimate = jm.interval(
            jm.recall, counts, method=jm.Delta("logit"), simultaneous=simultaneous
        )
        inside = (estimate.low <= recall) & (recall <= estimate.high) | np.isnan(estimate.low)
        covered.append(inside.all(-1).mean())
    assert covered[0] > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 2000)
    assert covered[1] < 0.75


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
        np.testing.assert_allclose((density * ratio).sum() * (means[1] - means[0]), 20, rtol=1e-5)
    likely = jm.interval(jm.accuracy, [[5000, 500], [400, 4100]], anytime=True)
    normal = jm.interval(jm.accuracy, [[5000, 500], [400, 4100]], method=jm.Delta(), anytime=True)
    np.testing.assert_allclose(fields_of(likely)[1:3], fields_of(normal)[1:3], atol=5e-4)


@pytest.mark.slow
def test_streams_that_are_looked_at_all_the_time() -> None:
    """Streams to 20,000 examples, looked at 40 times from the 20th, or by normal intervals from the
    170th on: the macro F1 is missed at some time in at most 5 %, and three standard errors; by
    intervals for one look in a third.
    """
    rng, looks = np.random.default_rng(1), np.unique(np.geomspace(20, 20_000, 40).astype(int))
    cells = np.array([[0.5, 0.05, 0.02], [0.03, 0.2, 0.05], [0.02, 0.03, 0.1]])
    steps = rng.multinomial(np.diff(looks, prepend=0), cells.ravel(), (1000, len(looks)))
    counts = jnp.asarray(steps.cumsum(1).reshape(1000, -1, 3, 3))
    truth, late = F1(cells), looks >= 170
    ways: dict[str, tuple[jm.IntervalMethod, bool, Any]] = {
        "normal": (jm.Delta(), True, counts[:, late]),
        "likelihood": (jm.Likelihood(), True, counts[:200]),
        "once": (jm.Delta(), False, counts[:, late]),
    }
    missed = {}
    for name, (method, anytime, seen) in ways.items():
        estimate = jm.interval(F1, seen, method=method, anytime=anytime)
        missed[name] = float(((estimate.low > truth) | (estimate.high < truth)).any(-1).mean())
    assert missed["normal"] < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)
    assert missed["likelihood"] < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert missed["once"] > 0.25
    reach = [jm.interval(F1, cells * 1e5, method=jm.Delta(), anytime=x) for x in (True, False)]
    assert np.ptp(fields_of(reach[0])[1:3]) < 2.2 * np.ptp(fields_of(reach[1])[1:3])


def test_differences_at_all_times() -> None:
    cube = np.random.default_rng(2).multinomial(900, np.full(8, 1 / 8)).reshape(2, 2, 2)
    for put in (np.asarray, jnp.asarray):
        for method in (jm.Delta(), jm.Likelihood()):
            once, always = (
                jm.interval(jm.difference(jm.accuracy), put(cube), method=method, anytime=looks)
                for looks in (False, 900)
            )
            assert 1.4 < np.ptp(fields_of(always)[1:3]) / np.ptp(fields_of(once)[1:3]) < 1.7
    clusters = np.stack([cube] * 30)
    with_axis = jm.interval(
        jm.accuracy, clusters[:, 0], method=jm.Delta(), cluster_axis=0, anytime=True
    )
    assert np.ptp(fields_of(with_axis)[1:3]) >= 0


def test_odd_times_are_refused() -> None:
    for wrong in (-1, 2.5, 0):
        with pytest.raises((TypeError, ValueError), match="anytime"):
            jm.interval(jm.accuracy, [[5, 1], [2, 7]], method=jm.Delta(), anytime=wrong)  # type: ignore[arg-type]
    for method in (jm.Bootstrap(0), jm.Posterior(0)):
        with pytest.raises(
            ValueError, match=f"{method.name} cannot compute intervals with the option anytime"
        ):
            jm.interval(jm.accuracy, [[5, 1], [2, 7]], method=method, anytime=True)


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
        assert call(np.float32(0.9)) == call(0.9)
    with pytest.raises(ValueError, match="level must be a Python number between 0 and 1"):
        jm.mean_interval(scores, level=np.float32(1))  # type: ignore[arg-type]
