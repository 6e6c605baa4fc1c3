"""How many examples: against arithmetic, and against simulated test sets."""

from typing import Any

import numpy as np
import pytest

import jaxmetrics as jm


def test_required_examples_of_accuracy_are_those_of_a_proportion() -> None:
    """`n = z^2 p (1 - p) / h^2`, whatever the size of the pilot study."""
    counts = np.array([[40, 10], [5, 45]])
    expected = pytest.approx(1.959964**2 * 0.85 * 0.15 / 0.03**2)
    assert jm.required_examples(jm.accuracy, counts, half_width=0.03) == expected
    assert jm.required_examples(jm.accuracy, 1000 * counts, half_width=0.03) == expected


def test_so_many_examples_give_the_width() -> None:
    """Of the macro-F1, and of each class, by simulation: the spread of test sets of that size."""
    p = np.array([[0.5, 0.05, 0.05], [0.02, 0.2, 0.03], [0.01, 0.04, 0.1]])
    n = jm.required_examples(jm.macro(jm.f1), 1000 * p, half_width=0.04)
    drawn = np.random.default_rng(0).multinomial(int(n), p.ravel(), 4000).reshape((-1, 3, 3))
    spread = jm.macro(jm.f1)(drawn).std()
    # The standard deviation of 4000 draws errs by 1.1 %; the delta method is of first order.
    assert 1.96 * spread == pytest.approx(0.04, rel=0.05)
    assert jm.required_examples(jm.f1, 1000 * p, half_width=0.04).shape == (3,)


def test_a_detectable_difference_is_detected() -> None:
    """Of 2000 comparisons with that difference, a share of about `power` shows it."""
    # Only A is right in 9 %, only B in 5 %: a difference of 0.04.
    cells = np.array([[[0.40, 0.045], [0.025, 0.03]], [[0.03, 0.025], [0.045, 0.40]]])
    difference = 0.04
    n = 400
    while jm.detectable_difference(jm.accuracy, 1e4 * cells, n, power=0.7) > difference:
        n += 1
    drawn = np.random.default_rng(0).multinomial(n, cells.ravel(), 2000).reshape((-1, 2, 2, 2))
    shown = jm.compare(0, jm.accuracy, drawn, method="delta").difference.low > 0
    # Four standard errors of the share are 0.041.
    assert abs(shown.mean() - 0.7) < 0.041


def test_what_nothing_is_known_of() -> None:
    assert np.isnan(jm.required_examples(jm.accuracy, [[5, 0], [0, 5]], half_width=0.1))
    never = np.zeros((2, 2, 2))
    never[0, 0, 0] = never[1, 1, 1] = 10
    assert np.isnan(jm.detectable_difference(jm.accuracy, never, 100))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: jm.required_examples(jm.accuracy, np.eye(2), half_width=0),
            "half_width must be above 0, got 0",
        ),
        (
            lambda: jm.detectable_difference(jm.accuracy, np.ones((2, 2, 2)), 0),
            "num_examples must be above 0, got 0",
        ),
        (
            lambda: jm.detectable_difference(jm.accuracy, np.ones((2, 2, 2)), 9, power=1),
            "power must be between 0 and 1, got 1",
        ),
    ],
)
def test_what_cannot_be_planned(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
