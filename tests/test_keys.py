"""Keys of whatever draws: JAX keys, int seeds and NumPy Generators, on the host and on the
device.
"""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import jaxmetrics as jm

COUNTS = np.array([[40, 5, 2], [6, 30, 4], [1, 3, 9]])
_rng = np.random.default_rng(0)
TRUE = _rng.integers(0, 3, 200)
PRED_A, PRED_B = (
    np.where(_rng.random(200) < p, TRUE, _rng.integers(0, 3, 200)) for p in (0.7, 0.6)
)
PAIRED = jm.paired_confusion_matrix(TRUE, PRED_A, PRED_B, num_classes=3)
HISTOGRAM = np.array([[50, 40, 10], [5, 20, 75]])
LOSSES = _rng.exponential(size=50)


def mean_loss(losses: Any) -> Any:
    return losses.mean(-1)


# What draws, as a function of a key and of the counts or losses that it is given: host or device.
Draw = Callable[[Any, Callable[[np.ndarray], Any]], Any]
DRAWS: dict[str, Draw] = {
    "bootstrap": lambda key, put: jm.interval(
        jm.accuracy, put(COUNTS), method=jm.Bootstrap(key, num_samples=20)
    ),
    "bootstrap studentized": lambda key, put: jm.interval(
        jm.accuracy, put(COUNTS), method=jm.Bootstrap(key, "studentized", 20), stratified=True
    ),
    "bootstrap of a histogram": lambda key, put: jm.interval(
        jm.roc_auc, put(HISTOGRAM), method=jm.Bootstrap(key, num_samples=20)
    ),
    "posterior": lambda key, put: jm.interval(
        jm.accuracy, put(COUNTS), method=jm.Posterior(key, num_samples=20)
    ),
    "bootstrap_counts": lambda key, put: jm.bootstrap_counts(key, put(COUNTS), 5),
    "bootstrap_counts bayesian": lambda key, put: jm.bootstrap_counts(
        key, put(COUNTS), 5, kind="bayesian"
    ),
    "bootstrap_counts poisson": lambda key, put: jm.bootstrap_counts(
        key, put(COUNTS), 5, kind="poisson"
    ),
    "posterior_counts": lambda key, put: jm.posterior_counts(key, put(COUNTS), 5),
    "bootstrap_examples": lambda key, put: jm.bootstrap_examples(
        key, mean_loss, put(LOSSES), num_samples=20
    ),
    "compare": lambda key, put: jm.compare(
        jm.accuracy, put(PAIRED), method=jm.Bootstrap(key, num_samples=20)
    ),
    "compare posterior": lambda key, put: jm.compare(
        jm.accuracy, put(PAIRED), method=jm.Posterior(key, num_samples=20)
    ),
    "compare_predictions": lambda key, put: jm.compare_predictions(
        jm.accuracy,
        put(TRUE),
        PRED_A,
        PRED_B,
        num_classes=3,
        method=jm.Bootstrap(key, num_samples=20),
    ),
    "compare_unpaired": lambda key, put: jm.compare_unpaired(
        jm.accuracy, put(PAIRED.sum(-1)), PAIRED.sum(-2), method=jm.Bootstrap(key, num_samples=20)
    ),
    "compare_unpaired posterior": lambda key, put: jm.compare_unpaired(
        jm.accuracy, put(PAIRED.sum(-1)), PAIRED.sum(-2), method=jm.Posterior(key, num_samples=20)
    ),
    "permutation_test": lambda key, put: jm.permutation_test(
        key, jm.accuracy, put(PAIRED), num_samples=20
    ),
    "leaderboard": lambda key, put: jm.leaderboard(
        jm.accuracy, put(TRUE), [PRED_A, PRED_B], num_classes=3, key=key, num_samples=20
    ),
}
# Most draws of counts differ between keys; the p-value of twenty swaps need not.
SAME_ANYHOW = {"permutation_test"}


def numbers(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(x) for x in jax.tree.leaves(tree)])


@pytest.fixture(params=DRAWS)
def draw(request: pytest.FixtureRequest) -> Draw:
    return DRAWS[request.param]


def test_the_same_key_draws_the_same_and_another_something_else(request: Any, draw: Draw) -> None:
    keys: list[Callable[[int], Any]] = [
        jax.random.key,
        jax.random.PRNGKey,
        lambda seed: jax.random.key(seed, impl="rbg"),
        lambda seed: np.asarray(jax.random.PRNGKey(seed)),
        int,
        np.int64,
        np.random.default_rng,
    ]
    for key in keys:
        first, again, other = (draw(key(seed), np.asarray) for seed in (3, 3, 4))
        assert all(isinstance(x, np.ndarray | np.generic) for x in jax.tree.leaves(first))
        assert_array_equal(numbers(first), numbers(again))
        if request.node.callspec.params["draw"] not in SAME_ANYHOW:
            assert (numbers(first) != numbers(other)).any(), key


def test_old_and_new_keys_draw_alike(draw: Draw) -> None:
    new, old = (draw(key(7), np.asarray) for key in (jax.random.key, jax.random.PRNGKey))
    assert_array_equal(numbers(new), numbers(old))


def test_generators_move_on() -> None:
    rng, again = np.random.default_rng(5), np.random.default_rng(5)
    first, second = (jm.bootstrap_counts(rng, COUNTS, 50) for _ in range(2))
    assert (first != second).any()
    for expected in (first, second):
        assert_array_equal(jm.bootstrap_counts(again, COUNTS, 50), expected)
    assert rng.integers(2**62) == again.integers(2**62)


@pytest.mark.parametrize(
    "key",
    [
        True,
        np.True_,
        "0",
        1.0,
        np.float32(1),
        None,
        (0, 1),
        np.array([1, 2]),
        jax.random.split(jax.random.key(0), 3),
        jax.random.split(jax.random.PRNGKey(0), 3),
        jnp.array(1.0),
        np.random,
        np.random.RandomState(0),
    ],
    ids=lambda key: type(key).__name__,
)
@pytest.mark.parametrize("put", [np.asarray, jnp.asarray], ids=["host", "device"])
def test_what_is_no_key(key: Any, put: Any) -> None:
    message = (
        rf"key must be a JAX key, an int seed or, .* got {type(key).__name__}.*jax.random.key\(0\)"
    )
    for name in ("bootstrap", "bootstrap_counts", "posterior", "compare", "permutation_test"):
        with pytest.raises(TypeError, match=message):
            DRAWS[name](key, put)


def test_a_key_is_looked_at_whatever_is_drawn(draw: Draw) -> None:
    for key in (True, "0", None, jax.random.split(jax.random.key(0), 3)):
        with pytest.raises(TypeError, match="key must be a JAX key"):
            draw(key, np.asarray)


def test_generators_do_not_draw_for_the_device(draw: Draw) -> None:
    with pytest.raises(TypeError, match=r"key is a NumPy Generator, but the data are JAX arrays"):
        draw(np.random.default_rng(0), jnp.asarray)


def test_generators_do_not_draw_for_metrics_that_answer_with_jax_arrays() -> None:
    with pytest.raises(TypeError, match="or the metric returns JAX arrays"):
        jm.interval(
            lambda c: jnp.trace(c) / c.sum(), COUNTS, method=jm.Bootstrap(np.random.default_rng(0))
        )


def test_large_and_negative_seeds() -> None:
    """Whole words of 64 bits count, on the device too; neighbours draw independently, and NumPy's
    integers draw as Python's.
    """
    seeds: tuple[Any, ...] = (0, 1, 2**31, 2**32, 2**63, 2**64 - 2, -1, np.uint32(1))
    for put in (np.asarray, jnp.asarray):
        draws = [jm.bootstrap_counts(seed, put(COUNTS), 400)[:, 0, 0] for seed in seeds]
        correlation = np.corrcoef(draws[:-1]) - np.eye(len(seeds) - 1)
        assert np.abs(correlation).max() < 5 / np.sqrt(400)
        assert_array_equal(draws[-1], draws[1])
        for seed in (2**64, -(2**63) - 1):
            message = rf"int seed, it must be at least -2\^63 and less than 2\^64, got {seed}\."
            with pytest.raises(ValueError, match=message):
                jm.bootstrap_counts(seed, put(COUNTS), 20)


def test_seeds_on_the_device_are_those_of_keys() -> None:
    seeded, keyed, legacy = (
        jm.bootstrap_counts(key, jnp.asarray(COUNTS), 5, kind="bayesian")
        for key in (3, jax.random.key(3), jax.random.PRNGKey(3))
    )
    assert isinstance(seeded, jax.Array)
    assert_array_equal(seeded, keyed)
    assert_array_equal(seeded, legacy)


def test_keys_that_are_traced_move_counts_of_the_host_to_the_device() -> None:
    """Of independent keys, the means of the draws differ by their own error; each draws as
    alone.
    """
    keys = jax.random.split(jax.random.key(0), 8)
    draw = jax.jit(jax.vmap(lambda key: jm.bootstrap_counts(key, COUNTS, 200)))
    draws = np.asarray(draw(keys))
    assert draws.shape == (8, 200, 3, 3)
    assert (draws.sum((-2, -1)) == 100).all()
    correlation = np.corrcoef(draws[:, :, 0, 0]) - np.eye(8)
    assert np.abs(correlation).max() < 5 / np.sqrt(200)
    assert_allclose(draws.mean((0, 1)), COUNTS, atol=5 * np.sqrt(24 / 1600))
    assert_array_equal(jm.bootstrap_counts(keys[3], jnp.asarray(COUNTS), 200), draws[3])


QUICK = ("posterior", "bootstrap_examples", "compare_unpaired posterior")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in DRAWS]
)
def test_vmap_over_keys_of_whatever_draws(name: str) -> None:
    """One program for all keys, each of which draws what it draws alone on the device."""
    keys = jax.random.split(jax.random.key(1), 2)
    together = jax.jit(jax.vmap(lambda key: DRAWS[name](key, np.asarray)))(keys)
    assert all(isinstance(x, jax.Array) and len(x) == 2 for x in jax.tree.leaves(together))
    alone = DRAWS[name](keys[1], jnp.asarray)
    for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
        assert_allclose(a[1], b, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    ("function", "arguments", "usage"),
    [
        (jm.permutation_test, (jm.accuracy, PAIRED), "permutation_test(key, metric, paired)"),
        (jm.bootstrap_counts, (COUNTS, 10), "bootstrap_counts(key, counts, num_samples)"),
    ],
)
def test_the_order_of_arguments_if_the_key_is_missing(
    function: Any, arguments: tuple[Any, ...], usage: str
) -> None:
    with pytest.raises(TypeError, match=f"missing a required .* Call {re.escape(usage)}, where"):
        function(*arguments)


def test_parts_of_a_key_are_independent() -> None:
    """The two classifiers of `compare_unpaired` are drawn apart: their errors add up."""
    c = 10 * COUNTS
    result = jm.compare_unpaired(jm.accuracy, c, c, method=jm.Bootstrap(0, num_samples=4000))
    apart = np.hypot(result.a.standard_error, result.b.standard_error)
    assert_allclose(result.difference.standard_error, apart, rtol=0.06)  # five errors
