"""Tables of clusters: against the jackknife, arithmetic, and simulations."""

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmetrics as jm
from tests.oracles import fields_of

F1 = jm.macro(jm.f1)
METHODS = [jm.Likelihood(), jm.Delta(), jm.Bootstrap(0)]


def clustered_tables(
    seed: Any,
    num_clusters: Any,
    *,
    k: int = 3,
    size: int = 20,
    recall: float = 0.85,
    icc: float = 0.3,
    ratio: float = 1.0,
) -> Any:
    """Tables `(C, K, K)` with cell probabilities that vary by cluster; and their mean `(K, K)`."""
    rng = np.random.default_rng(seed)
    mean = (np.eye(k) * (recall - (1 - recall) / (k - 1)) + (1 - recall) / (k - 1)) / k
    tables = []
    for _ in range(num_clusters):
        cells = rng.dirichlet(mean.ravel() * (1 - icc) / icc) if icc else mean.ravel()
        tables.append(rng.multinomial(round(size * ratio ** rng.uniform(-0.5, 0.5)), cells))
    return np.reshape(tables, (num_clusters, k, k)), mean


def jackknife_error(function: Any, clusters: Any) -> Any:
    """`sqrt((C - 1) / C sum (θ_-c - mean)^2)`, each cluster left out."""
    c = len(clusters)
    without = np.array([float(function(clusters.sum(0) - x)) for x in clusters])
    return np.sqrt((c - 1) / c * ((without - without.mean()) ** 2).sum())


def test_errors_of_clusters_are_those_of_the_jackknife() -> None:
    clusters, _ = clustered_tables(0, 60)
    for metric in (F1, jm.cohen_kappa, jm.balanced_accuracy):
        expected = jackknife_error(metric, clusters)
        for method in (jm.Delta(), jm.Likelihood(), jm.Bootstrap(0, num_samples=10_000)):
            found = jm.interval(metric, clusters, method=method, cluster_axis=-3)
            np.testing.assert_allclose(found.standard_error, expected, rtol=0.05)


def test_clusters_of_one_example_are_examples() -> None:
    counts = np.array([[30, 4, 1], [6, 20, 3], [0, 2, 34]])
    singles = np.concatenate(
        [np.repeat(np.eye(9, dtype=int)[i][None], n, 0) for i, n in enumerate(counts.ravel())]
    ).reshape(-1, 3, 3)
    alone, of_clusters = (
        jm.interval(F1, counts, method=jm.Delta()),
        jm.interval(F1, singles, method=jm.Delta(), cluster_axis=0),
    )
    factor = np.sqrt(len(singles) / (len(singles) - 1))
    np.testing.assert_allclose(of_clusters.standard_error, alone.standard_error * factor)
    share = jm.proportion_interval(84, 100)
    right = np.repeat([1, 0], [84, 16])
    with_clusters = jm.proportion_interval(right, np.ones(100), cluster_axis=-1)
    np.testing.assert_allclose(
        fields_of(with_clusters)[1:3], fields_of(share)[1:3], atol=0.003
    )  # t for z, C / (C - 1)


def test_proportions_of_clusters() -> None:
    """Ten clusters of ten, all right or all wrong: as ten examples, with Student's quantile."""
    right = np.array([10] * 16 + [0] * 4)
    estimate = jm.proportion_interval(right, np.full(20, 10), cluster_axis=0)
    np.testing.assert_allclose(estimate.value, 0.8)
    np.testing.assert_allclose(estimate.standard_error, np.sqrt(0.8 * 0.2 / 19))
    independent = 19 * (1.959964 / 2.093024) ** 2
    expected = jm.proportion_interval(0.8 * independent, independent)
    np.testing.assert_allclose(fields_of(estimate)[1:3], fields_of(expected)[1:3], rtol=1e-5)
    # Without an error a cluster counts once.
    perfect = jm.proportion_interval(np.full(20, 10), np.full(20, 10), cluster_axis=0)
    assert 0.75 < perfect.low < 0.87


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_differences_of_clusters(method: jm.IntervalMethod) -> None:
    rng = np.random.default_rng(1)
    k = 3
    a, b = np.eye(k) * 0.7 + 0.1, np.eye(k) * 0.55 + 0.15
    mean = np.einsum("ta,tb->tab", a, b) / k
    cubes = rng.multinomial(15, rng.dirichlet(mean.ravel() * 3, 40)).reshape(40, k, k, k)
    comparison = jm.compare(F1, cubes, method=method, cluster_axis=-4)

    def difference(cube: Any) -> Any:
        return F1(cube.sum(2)) - F1(cube.sum(1))

    np.testing.assert_allclose(comparison.difference.value, difference(cubes.sum(0)))
    expected = jackknife_error(difference, cubes)
    np.testing.assert_allclose(comparison.difference.standard_error, expected, rtol=0.07)
    of_a = jm.interval(F1, cubes.sum(3), method=method, cluster_axis=-3)
    np.testing.assert_allclose(comparison.a.low, of_a.low, rtol=1e-6)
    on_device = jm.compare(F1, jnp.asarray(cubes), method=method, cluster_axis=-4)
    atol = 0.02 if method.draws else 1e-5  # 2000 other draws
    np.testing.assert_allclose(on_device.difference.low, comparison.difference.low, atol=atol)


def test_clusters_on_different_examples() -> None:
    """Of different numbers: errors add up as of independent values; each classifier is known about
    as well as alone, and clusters of one example are as examples.
    """
    a, _ = clustered_tables(4, 40)
    b, _ = clustered_tables(5, 25)
    for method in METHODS:
        comparison = jm.compare_unpaired(F1, a, b, method=method, cluster_axis=-3)
        of_a, of_b = (jm.interval(F1, x, method=method, cluster_axis=-3) for x in (a, b))
        np.testing.assert_allclose(comparison.difference.value, of_a.value - of_b.value)
        error, rtol = np.hypot(of_a.standard_error, of_b.standard_error), 1e-9
        if method.draws:
            rtol = 5 / np.sqrt(2000)
        np.testing.assert_allclose(comparison.difference.standard_error, error, rtol=rtol)
        # The degrees of freedom are those of the fewer clusters.
        for together, alone in ((comparison.a, of_a), (comparison.b, of_b)):
            np.testing.assert_allclose(fields_of(together)[1:3], fields_of(alone)[1:3], atol=0.015)
        mirrored = jm.compare_unpaired(F1, b, a, method=method, cluster_axis=0).difference
        atol = 0.01 if method.draws else 1e-9
        np.testing.assert_allclose(
            [-mirrored.high, -mirrored.low], fields_of(comparison.difference)[1:3], atol=atol
        )
    one = np.eye(4)[np.repeat(np.arange(4), [40, 15, 20, 45])].reshape(-1, 2, 2).astype(int)
    other = np.eye(4)[np.repeat(np.arange(4), [50, 5, 12, 53])].reshape(-1, 2, 2).astype(int)
    apart = jm.compare_unpaired(F1, one, other, cluster_axis=0)
    plain = jm.compare_unpaired(F1, one.sum(0), other.sum(0))
    np.testing.assert_allclose(
        fields_of(apart.difference)[1:3], fields_of(plain.difference)[1:3], atol=0.01
    )
    np.testing.assert_allclose(apart.probability_better, plain.probability_better, atol=0.01)


@pytest.mark.slow
def test_differences_of_clusters_on_different_examples_cover() -> None:
    """150 pairs of test sets without a difference; as for one test set, but three standard errors
    below 95 % are 89.7 %. As examples, which they are not, they cover in much fewer.
    """
    covered = []
    for seed in range(150):
        a, b = (clustered_tables((seed, i), number)[0] for i, number in enumerate((40, 25)))
        together = jm.compare_unpaired(jm.cohen_kappa, a, b, cluster_axis=-3)
        apart = jm.compare_unpaired(jm.cohen_kappa, a.sum(0), b.sum(0))
        covered.append([x.difference.low <= 0 <= x.difference.high for x in (together, apart)])
    of_clusters, of_examples = np.mean(covered, 0)
    assert of_clusters > 0.897
    assert of_examples < 0.75


def test_permutations_swap_clusters_as_a_whole() -> None:
    """All swaps of ten clusters; with a cluster for each example, as without clusters."""
    rng = np.random.default_rng(6)
    cubes = rng.multinomial(8, rng.dirichlet(np.ones(8) / 2, 10)).reshape(10, 2, 2, 2)
    swaps = np.array(list(itertools.product([True, False], repeat=10)))
    drawn = np.where(swaps[..., None, None, None], cubes, cubes.swapaxes(-1, -2)).sum(1)
    differences = F1(drawn.sum(-1)) - F1(drawn.sum(-2))
    observed = F1(cubes.sum((0, 3))) - F1(cubes.sum((0, 2)))
    expected = np.mean(np.abs(differences) >= abs(observed) - 1e-12)
    for array in (cubes, jnp.asarray(cubes)):
        with pytest.warns(UserWarning, match="10 clusters"):
            test = jm.permutation_test(0, F1, array, cluster_axis=-4, num_samples=20_000)
        np.testing.assert_allclose(test.statistic, observed, rtol=1e-5)
        np.testing.assert_allclose(test.p_value, expected, atol=5 * np.sqrt(0.25 / 20_000))
    single = np.eye(8)[rng.integers(0, 8, 60)].reshape(60, 2, 2, 2).astype(int)
    alone = jm.permutation_test(0, F1, single, cluster_axis=0, num_samples=20_000)
    plain = jm.permutation_test(0, F1, single.sum(0), num_samples=20_000)
    np.testing.assert_allclose(alone.p_value, plain.p_value, atol=5 * np.sqrt(0.5 / 20_000))


def test_batches_axes_and_empty_clusters() -> None:
    clusters, _ = clustered_tables(2, 30)
    batch = np.stack([clusters, clusters[:, ::-1]], 1)  # (C, 2, K, K)
    padded = np.concatenate([clusters, np.zeros((4, 3, 3), int)])
    for method in METHODS[:2]:
        interval = partial(jm.interval, F1, method=method)
        alone = interval(clusters, cluster_axis=-3)
        both = interval(batch, cluster_axis=0)
        np.testing.assert_allclose(both.low[0], alone.low)
        np.testing.assert_allclose(fields_of(interval(padded, cluster_axis=-3)), fields_of(alone))
        jitted = jax.jit(partial(interval, cluster_axis=1))
        in_jit = jitted(jnp.asarray(batch).swapaxes(0, 1))
        np.testing.assert_allclose(in_jit.low, both.low, rtol=1e-4)


def test_few_clusters_and_mistakes() -> None:
    clusters, _ = clustered_tables(3, 12)
    with pytest.warns(UserWarning, match="12 clusters"):
        jm.interval(F1, clusters, cluster_axis=-3)
    with pytest.warns(UserWarning, match="1 cluster"):
        alone = jm.interval(F1, clusters[:1], cluster_axis=-3)
    assert np.isnan(alone.low)
    many, _ = clustered_tables(3, 25)
    with pytest.raises(ValueError, match=r"cluster_axis must be -3 or another .* is -2"):
        jm.interval(F1, many, method=jm.Delta(), cluster_axis=-2)
    with pytest.raises(
        ValueError,
        match=r"must be an axis of the array successes of shape \(25,\), got cluster_axis=1",
    ):
        jm.proportion_interval(np.ones(25), 2, cluster_axis=1)
    with pytest.warns(UserWarning, match="3 clusters") as caught:
        jm.proportion_interval([1, 1, 2], [2, 3, 4], cluster_axis=0)
    assert caught[0].filename == __file__
    with pytest.raises(ValueError, match="whole clusters are drawn"):
        jm.interval(F1, many, method=jm.Delta(), cluster_axis=-3, stratified=True)
    with pytest.raises(ValueError, match=r"Posterior needs confusion matrices, .* and no clusters"):
        jm.compare(F1, np.ones((25, 2, 2, 2), int), cluster_axis=-4, method=jm.Posterior(0))


def test_methods_are_checked_when_they_are_made() -> None:
    with pytest.raises(ValueError, match="scale must be"):
        jm.Delta("sqrt")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kind must be"):
        jm.Bootstrap(0, "percentiles")  # type: ignore[arg-type]
    for make in (jm.Bootstrap, jm.Posterior):
        with pytest.raises(ValueError, match="num_samples must be at least 2"):
            make(0, num_samples=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_clusters", "options"),
    [
        (20, {"icc": 0.3, "recall": 0.8}),
        (20, {"icc": 0.7, "recall": 0.8, "ratio": 10.0, "k": 2}),
        (40, {"icc": 0.1, "recall": 0.95, "size": 10}),
        (30, {"icc": 0.0, "recall": 0.9}),
    ],
)
def test_likelihood_intervals_of_clusters_cover(num_clusters: Any, options: Any) -> None:
    """300 test sets; of intervals of 95 %, fewer than 91 % cover with probability 0.2 %."""
    drawn = [clustered_tables(seed, num_clusters, **options) for seed in range(300)]
    truth = float(jm.cohen_kappa(drawn[0][1]))
    estimates = [jm.interval(jm.cohen_kappa, c, cluster_axis=-3) for c, _ in drawn]
    covered = [e.low <= truth <= e.high for e in estimates]
    assert np.mean(covered) >= 0.91
    if options["icc"] >= 0.3:
        ignored = [jm.interval(jm.cohen_kappa, c.sum(0)) for c, _ in drawn[:100]]
        assert np.mean([e.low <= truth <= e.high for e in ignored]) < 0.8
