"""Several attempts at each item, beside enumeration; cross-validation's interval, beside SciPy."""

from itertools import combinations
from typing import Any

import jax
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import jaxmetrics as jm

RULES: dict[Any, Any] = {
    "any": lambda drawn: float(any(drawn)),
    "all": lambda drawn: float(all(drawn)),
    "majority": lambda drawn: (1 + np.sign(2 * sum(drawn) - len(drawn))) / 2,
}


def by_enumeration(scores: np.ndarray, k: int, rule: Any) -> list[float]:
    """The mean of all ways to choose k of the attempts that were made."""
    found = []
    for item in scores:
        made = item[~np.isnan(item)]
        drawn = [RULES[rule](chosen) for chosen in combinations(made, k)]
        found.append(float(np.mean(drawn)) if drawn else np.nan)
    return found


@pytest.mark.quick
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("k", [1, 2, 3, 5, 7])
def test_attempts_are_those_of_all_choices(rule: Any, k: int) -> None:
    rng = np.random.default_rng(k)
    scores = (rng.random((40, 7)) < rng.random((40, 1))).astype(float)
    scores[::3, :2] = np.nan
    scores[0] = np.nan
    found = jm.pass_at_k(scores, k, rule=rule)
    assert_allclose(found, by_enumeration(scores, k, rule), rtol=1e-12, atol=1e-15)


@pytest.mark.quick
@pytest.mark.parametrize("rule", RULES)
def test_chances_lie_within_the_bounds_of_their_means(rule: Any) -> None:
    """Their sums are 1 + 2e-16 for half of the pairs k <= r."""
    for r in range(1, 33):
        scores = np.tril(np.ones((r + 1, r)), -1)  # 0 to r right attempts
        for k in range(1, r + 1):
            chances = jm.pass_at_k(scores, k, rule=rule)
            assert chances.min() >= 0
            assert chances.max() <= 1
    chances = jax.jit(lambda x: jm.pass_at_k(x, 3, rule=rule))(jax.numpy.asarray(scores))
    assert chances.min() >= 0
    assert chances.max() <= 1
    found = jm.mean_interval(jm.pass_at_k([[1, 1, 1, 0, 0]] * 20, 3), bounds=(0, 1))
    assert (found.value, found.high) == (1, 1)


@pytest.mark.quick
def test_many_attempts() -> None:
    """Products of factorials that floats do not hold."""
    scores = (np.arange(2000) < 30)[None]
    expected = stats.hypergeom.sf(0, 2000, 30, 500)
    assert jm.pass_at_k(scores, 500)[0] == pytest.approx(expected, rel=1e-10)
    expected = stats.hypergeom.pmf(2, 2000, 30, 2)
    assert jm.pass_at_k(scores, 2, rule="all")[0] == pytest.approx(expected, rel=1e-10)


def test_the_program_of_many_attempts_is_small() -> None:
    """Otherwise XLA would compile it for minutes."""
    scores = jax.numpy.asarray((np.arange(2000) < 30)[None])
    expected = stats.hypergeom.sf(0, 2000, 30, 500)
    assert_allclose(jm.pass_at_k(scores, 500), [expected], rtol=1e-5)


@pytest.mark.quick
def test_variance_is_split() -> None:
    """Without bias, of attempts that differ in number; it foretells errors of other plans."""
    rng = np.random.default_rng(0)
    number = np.arange(6) % 3 + 2
    is_made = np.where(np.arange(4) < number[:, None], 0, np.nan)
    chance = rng.beta(2, 1, (20_000, 6, 1))
    drawn = (rng.random((20_000, 6, 4)) < chance) + is_made
    found = [jm.score_variance(x) for x in drawn[:2000]]
    expected = 1 / 6  # E p (1 - p) of Beta(2, 1)
    assert np.mean([x.attempts for x in found]) == pytest.approx(expected, rel=0.03)
    one = jm.score_variance((rng.random((5000, 4)) < rng.beta(2, 1, (5000, 1))).astype(float))
    assert one.items == pytest.approx(1 / 18, rel=0.05)
    assert one.attempts == pytest.approx(1 / 6, rel=0.03)
    means = (rng.random((4000, 50, 3)) < rng.beta(2, 1, (4000, 50, 1))).mean((1, 2))
    assert one.standard_error(50, 3) == pytest.approx(means.std(), rel=0.05)
    same = jm.score_variance(np.repeat([[0.0], [1.0], [0.5]], 3, 1))
    assert (same.items, same.attempts) == (0.25, 0)
    assert np.isnan(jm.score_variance([[1.0, 0.0]]).items)
    assert np.isnan(jm.score_variance([[1.0], [0.0]]).attempts)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jm.pass_at_k([1, 0], 1), "scores must have shape"),
        (
            lambda: jm.pass_at_k([[1, 0]], 3),
            "k must be at most 2, which is the number of attempts in scores, got 3",
        ),
        (lambda: jm.pass_at_k([[1, 0]], 0), "k must be at least 1"),
        (lambda: jm.pass_at_k([[1, 0.5]], 1), r"scores\[0, 1\] is 0.5, expected 0, 1 or NaN"),
        (lambda: jm.pass_at_k([[1, 0]], 1, rule="most"), "rule"),  # type: ignore[arg-type]
        (lambda: jm.score_variance([1, 0]), "scores must have shape"),
        (lambda: jm.score_variance([[1, 0]]).standard_error(0, 1), "num_items"),
        (
            lambda: jm.cross_validation_interval([1.0, np.nan], num_train=9, num_test=1),
            r"scores\[1\] is nan, not a number\. Repeat this split",
        ),
        (lambda: jm.cross_validation_interval([1.0], num_train=0, num_test=1), "num_train"),
        (
            lambda: jm.cross_validation_interval(
                pl.DataFrame({"A": [0.5, 0.6, 0.7], "B": [0.4, 0.4, 0.6]}), num_train=4, num_test=2
            ),
            r"\(3, 2\).* If rows are folds, pass scores.to_numpy\(\)\.T",
        ),
    ],
)
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.quick
def test_the_corrected_resampled_t() -> None:
    scores = np.random.default_rng(1).normal(0.8, 0.03, 20)
    found = jm.cross_validation_interval(scores, num_train=160, num_test=40, level=0.9)
    error = np.sqrt((1 / 20 + 40 / 160) * scores.var(ddof=1))
    expected = stats.t.interval(0.9, 19, scores.mean(), error)
    assert_allclose([found.low, found.high], expected, rtol=1e-10)
    assert found.standard_error == pytest.approx(error)
    one = jm.cross_validation_interval([0.8], num_train=4, num_test=1)
    assert one.value == 0.8
    assert np.isnan(one.low)
