"""How many examples: against arithmetic, and against simulated test sets."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import jaxmetrics as jm


def test_required_examples_of_accuracy_are_those_of_a_proportion() -> None:
    """`n = z^2 p (1 - p) / h^2`, whatever the size of the pilot study."""
    counts = np.array([[40, 10], [5, 45]])
    expected = pytest.approx(1.959964**2 * 0.85 * 0.15 / 0.03**2)
    assert jm.required_examples(jm.accuracy, counts, half_width=0.03) == expected
    assert jm.required_examples(jm.accuracy, 1000 * counts, half_width=0.03) == expected


ONES = np.ones((2, 2, 2))
PILOT = np.array([[50, 5, 5], [2, 20, 3], [1, 4, 10]])
# Only A is right in 9 %, only B in 5 %.
PAIRED = np.array([[[400, 45], [25, 30]], [[30, 25], [45, 400]]])


@pytest.mark.parametrize(
    "metric",
    [
        jm.accuracy,
        jm.balanced_accuracy,
        jm.macro(jm.f1),
        jm.weighted(jm.f1),
        jm.matthews_corrcoef,
        jm.cohen_kappa,
    ],
)
def test_plans_hold_in_simulation(metric: Any) -> None:
    """The number planned is within 10 % of that by the spread of 8000 test sets of that size."""
    width = 0.05
    n = jm.required_examples(metric, PILOT, half_width=width)
    p = (PILOT / PILOT.sum()).ravel()
    drawn = np.random.default_rng(0).multinomial(round(n), p, 8000).reshape((-1, 3, 3))
    spread = metric(drawn).std()
    # 8000 draws err by 0.8 %, the number by 1.6 %.
    assert n * (1.96 * spread / width) ** 2 == pytest.approx(n, rel=0.1)
    simulated = jm.simulated_error(0, metric, PILOT, round(n))
    assert simulated == pytest.approx(spread, rel=4 * 0.018)


def test_a_simulation_knows_what_derivatives_do_not() -> None:
    """With three examples of a class the error of an average is not that of its derivative."""
    rare = np.array([[95, 2], [1, 2]])
    by_derivatives = jm.interval(jm.macro(jm.f1), rare, method=jm.Delta()).standard_error
    assert jm.simulated_error(0, jm.macro(jm.f1), rare, 100) > 1.2 * by_derivatives


def test_power_is_the_share_of_comparisons_that_show_it() -> None:
    n, difference = 500, 0.04
    drawn = np.random.default_rng(0).multinomial(n, PAIRED.ravel() / PAIRED.sum(), 2000)
    compared = jm.compare(jm.accuracy, jnp.asarray(drawn.reshape((-1, 2, 2, 2))), method=jm.Delta())
    shown = (compared.difference.low > 0).mean()
    planned = jm.power(jm.accuracy, PAIRED, n, difference=difference)
    assert abs(shown - planned) < 4 * np.sqrt(0.25 / 2000)
    assert jm.power(jm.accuracy, PAIRED, n, difference=-difference) == planned
    found = jm.detectable_difference(jm.accuracy, PAIRED, n, power=float(planned))
    assert found == pytest.approx(difference, rel=1e-9)
    error = jm.simulated_error(0, jm.difference(jm.accuracy), PAIRED, n)
    assert error == pytest.approx(float(compared.difference.value.std()), rel=4 * 0.018)


def clusters_of(table: np.ndarray, number: int, seed: int) -> np.ndarray:
    """Clusters of ten examples, of which five are copies of one."""
    rng, p = np.random.default_rng(seed), table.ravel() / table.sum()
    drawn = 5 * rng.multinomial(1, p, number) + rng.multinomial(5, p, number)
    return drawn.reshape((number, *table.shape))


def test_plans_of_clusters() -> None:
    """So many clusters give intervals of that width; and the power counts clusters, too."""
    metric, width = jm.macro(jm.f1), 0.06
    n = jm.required_examples(metric, clusters_of(PILOT, 400, 0), half_width=width, cluster_axis=-3)
    tests = clusters_of(PILOT, 300 * round(n), 1).reshape((300, -1, 3, 3))
    estimates = jm.interval(metric, jnp.asarray(tests), method=jm.Delta(), cluster_axis=-3)
    found = float(((estimates.high - estimates.low) / 2).mean())
    # The pilot's error of 400 clusters errs by some 4 %.
    assert n * (found / width) ** 2 == pytest.approx(n, rel=0.1)
    error = jm.simulated_error(0, metric, clusters_of(PILOT, 400, 0), round(n), cluster_axis=-3)
    assert error == pytest.approx(float(estimates.value.std()), rel=0.15)

    pairs = clusters_of(PAIRED, 400, 2)
    options: dict[str, Any] = {"cluster_axis": -4}
    planned = jm.power(jm.accuracy, pairs, 60, difference=0.08, **options)
    drawn = clusters_of(PAIRED, 1000 * 60, 3).reshape((1000, 60, 2, 2, 2))
    compared = jm.compare(jm.accuracy, jnp.asarray(drawn), method=jm.Delta(), **options)
    error = float(compared.difference.value.std())
    truth = float(jm.accuracy(PAIRED.sum(2)) - jm.accuracy(PAIRED.sum(1)))
    shown = (compared.difference.low > truth - 0.08).mean()  # as if the truth were 0.08
    assert abs(shown - planned) < 0.08
    spread = jm.simulated_error(0, jm.difference(jm.accuracy), pairs, 60, **options)
    assert spread == pytest.approx(error, rel=0.15)
    found = jm.detectable_difference(jm.accuracy, pairs, 60, power=float(planned), **options)
    assert found == pytest.approx(0.08, rel=1e-9)


def test_what_nothing_is_known_of() -> None:
    assert np.isnan(jm.required_examples(jm.accuracy, [[5, 0], [0, 5]], half_width=0.1))
    never = np.zeros((2, 2, 2))
    never[0, 0, 0] = never[1, 1, 1] = 10
    assert np.isnan(jm.detectable_difference(jm.accuracy, never, 100))
    assert np.isnan(jm.power(jm.accuracy, never, 100, difference=0.1))
    assert np.isnan(jm.simulated_error(0, jm.accuracy, np.zeros((2, 2)), 100))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: jm.required_examples(jm.accuracy, np.eye(2), half_width=0),
            "half_width must be a finite Python number above 1e-150, got 0",
        ),
        (
            lambda: jm.detectable_difference(jm.accuracy, ONES, 0),
            "num_examples must be a finite Python number above 0, got 0",
        ),
        (
            lambda: jm.detectable_difference(jm.accuracy, ONES, 9, power=0.01),
            r"which is the power if there is no difference, got 0\.01",
        ),
        (
            lambda: jm.detectable_difference(jm.accuracy, ONES, 9, power=1),
            r"power must be less than 1 and greater than 0\.025, which is the power if"
            r" there is no difference, got 1",
        ),
        (
            lambda: jm.power(jm.accuracy, ONES, 9, difference=0),
            "difference must not be 0",
        ),
        (
            lambda: jm.power(jm.accuracy, np.stack([ONES] * 20), 1, difference=0.1, cluster_axis=0),
            "confidence interval cannot be computed from a single cluster",
        ),
        (
            lambda: jm.simulated_error(0, jm.accuracy, np.ones((2, 2)), 0),
            "num_examples must be at least 1",
        ),
    ],
)
def test_what_cannot_be_planned(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_order_in_memory_changes_no_draw() -> None:
    """Sums in another order differ by a rounding, which turned a share of 1/2 the other way."""
    counts = np.array([[9, 4], [7, 7]])
    for draw in (
        lambda x: jm.simulated_error(0, jm.accuracy, x, 422, num_samples=50),
        lambda x: jm.posterior_counts(0, x, 50),
        lambda x: jm.bootstrap_counts(0, x, 50),
    ):
        assert_array_equal(draw(counts), draw(np.asfortranarray(counts)))
