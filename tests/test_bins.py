"""A score is in one bin, wherever it is counted: edges and their neighbours, of every dtype."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import jaxmetrics as jm

DTYPES = [jnp.float16, jnp.bfloat16, np.float32, np.float64]


def around(edges: np.ndarray, dtype: Any) -> np.ndarray:
    """The numbers of a dtype that are nearest to the edges, and two on either side of each."""
    nearest = edges.astype(dtype)
    numbers = [nearest]
    for end in (-np.inf, np.inf):
        next_one = np.nextafter(nearest, nearest.dtype.type(end))
        numbers += [next_one, np.nextafter(next_one, nearest.dtype.type(end))]
    return np.concatenate(numbers)


def single(x: np.ndarray) -> np.ndarray:
    """In float32, where numbers below the least normal one are 0."""
    narrow = x.astype(np.float32)
    return np.where(np.abs(narrow) < np.finfo(np.float32).tiny, np.float32(0), narrow)


def assert_counted(
    call: Callable[..., Any], expected: np.ndarray, y: np.ndarray, *others: np.ndarray
) -> None:
    """On the host, on the device, and some examples on either."""
    assert_array_equal(call(y, *others), expected)
    assert_array_equal(call(*map(jnp.asarray, (y, *others))), expected)
    of_host = np.arange(len(y)) % 3 == 0
    first, second = np.where(of_host, y, -1), np.where(of_host, -1, y)
    rest = call(*map(jnp.asarray, (second, *others)))
    assert_array_equal(call(first, *others) + np.asarray(rest), expected)


def uniform_edges(num_bins: int) -> np.ndarray:
    return np.linspace(0, 1, num_bins + 1)[1:-1]


EDGES = np.unique(np.concatenate([*map(uniform_edges, (5, 10, 15, 100)), uniform_edges(4096)[::9]]))


def test_calibration_bins_of_edges_and_their_neighbours(x64: bool) -> None:
    """A number up to its edge, in float32, is below it."""

    def call(y: Any, p: Any, weights: Any) -> Any:
        return jm.calibration_bins(y, p, sample_weight=weights, edges=EDGES)[:, 0]

    for dtype in DTYPES:
        p = np.clip(around(EDGES, dtype), 0, 1).astype(dtype)
        y, weights = np.arange(len(p)) % 2, np.arange(len(p)) % 97
        which = np.searchsorted(single(EDGES), single(p))
        expected = np.bincount(which, weights, len(EDGES) + 1)
        assert_counted(call, expected, y, p, weights)


@pytest.mark.parametrize("num_bins", [5, 10, 15, 100, 4096])
def test_uniform_bins(num_bins: int) -> None:
    p = around(uniform_edges(num_bins), np.float32)
    which = np.searchsorted(uniform_edges(num_bins).astype(np.float32), p)
    for given in (p, p.astype(float), jnp.asarray(p)):
        bins = jm.calibration_bins(np.arange(len(p)) % 2, given, num_bins=num_bins)
        assert_array_equal(bins[:, 0], np.bincount(which, minlength=num_bins))


def test_logits_at_edges_and_their_neighbours(x64: bool) -> None:
    """The bin is reached where `edge <= score`, in float32."""
    edges = np.arange(1, 4096) / 64 - 32
    for dtype in DTYPES:
        score = around(edges, dtype)
        which = np.searchsorted(edges, single(score), side="right")
        y = np.arange(len(score)) % 3 % 2
        expected = np.stack([np.bincount(which[y == k], minlength=4096) for k in (0, 1)])
        call = lambda y, s: jm.score_histogram(y, s, scale="logit")
        assert_counted(call, expected, y, score)


@pytest.mark.parametrize("scale", ["probability", "float"])
def test_scores_at_edges_of_octaves_and_their_neighbours(scale: Any, x64: bool) -> None:
    octave = (1 + np.arange(64) / 64)[:, None] * 2.0 ** -np.arange(2, 44)
    edges = np.concatenate([octave.ravel(), 1 - octave[:, :24].ravel(), [0.0]])
    for dtype in DTYPES:
        score = np.clip(around(edges, dtype), 0, 1).astype(dtype)
        call = lambda y, s: jm.score_histogram(y, s, scale=scale)
        y = np.arange(len(score)) % 3 % 2
        assert_counted(call, call(y, single(score).astype(float)), y, score)


def test_thresholds_have_the_precision_of_the_scores(x64: bool) -> None:
    """As `scores >= t` of NumPy, with a Python number t."""
    thresholds = uniform_edges(10)
    for dtype in (np.float32, np.float64) if x64 else (np.float32,):
        score = around(thresholds, dtype)
        expected = [(score >= t).sum() for t in thresholds.tolist()]
        y = np.arange(len(score)) % 2

        def predicted(y: Any, score: Any) -> Any:
            return jm.confusion_matrix_at_thresholds(y, score, thresholds)[..., 1].sum(-1)

        def reached(y: Any, score: Any) -> Any:
            histogram = np.asarray(jm.score_histogram(y, score, edges=thresholds))
            return histogram.sum(0)[::-1].cumsum()[-2::-1]

        assert_counted(predicted, np.array(expected), y, score)
        assert_counted(reached, np.array(expected), y, score)
