"""Studies of calibration errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import jaxmetrics as jm
from bench import populations
from bench.populations import Rng, clusters_of, normal, uniform
from bench.studies.study import Outcomes, Study

FREQUENCIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda p: p,
    "overconfident": lambda p: 0.2 + 0.6 * p,
    "underconfident": lambda p: p**2 / (p**2 + (1 - p) ** 2),
    "a little too high": lambda p: 0.97 * p,
    "far off": lambda p: p**3,
}
PROBABILITIES: dict[str, Callable[[], np.ndarray]] = {
    "uniform": lambda: (np.arange(populations.ATOMS) + 0.5) / populations.ATOMS,
    "predicted class": lambda: 0.5 + populations.values("beta", 0.75) / 2,
    "near 0 and 1": lambda: populations.values("beta", 0.02),
}


def calibrations(
    rng: Rng,
    size: int,
    n: int | tuple[int, int, float],
    prob: str,
    truth: str,
    within: float = 0.0,
) -> Outcomes:
    """n examples, or examples in clusters."""
    table, frequency = PROBABILITIES[prob](), FREQUENCIES[truth]
    clusters = None if isinstance(n, int) else clusters_of(*n)
    shape = size, n if isinstance(n, int) else len(clusters_of(*n))
    p = populations.drawn(table, normal(rng, shape, clusters, within))
    y = (uniform(normal(rng, shape, clusters, within)) < frequency(p)).astype(int)
    error = population_error(table, frequency(table))
    by = "" if clusters is None else "(clusters=)"
    found = jm.calibration_interval(y, p, clusters=clusters)
    yield f"`calibration_interval{by}`", "", (found, error)
    if clusters is not None:
        alone = jm.calibration_interval(y, p)
        yield "for comparison: `calibration_interval` without `clusters=`", "", (alone, error)


def population_error(prob: np.ndarray, frequency: np.ndarray) -> float:
    """The expected calibration error with 15 bins of equal width."""
    y, weight = np.repeat([0, 1], len(prob)), np.concatenate([1 - frequency, frequency])
    return float(jm.calibration_error(y, np.tile(prob, 2), num_bins=15, sample_weight=weight))


def biases(rng: Rng, size: int, n: int) -> Outcomes:
    """Calibrated, uniformly distributed probabilities."""
    p = rng.random((size, n))
    y = (rng.random(p.shape) < p).astype(int)
    shown = {
        name: float(np.mean(jm.calibration_error(y, p, norm="l2", debiased=debiased)))
        for name, debiased in {"mean": False, "mean with `debiased=True`": True}.items()
    }
    yield '`calibration_error(norm="l2")` of a sample', "", shown


STUDIES: dict[str, Study] = {
    "calibration": Study(
        "30 to 5000 examples; probabilities of class 1 or of the predicted class, calibrated,"
        " overconfident, underconfident or far off",
        [
            (30, "uniform", "calibrated"),
            (100, "predicted class", "a little too high"),
            (300, "uniform", "overconfident"),
            (300, "near 0 and 1", "calibrated"),
            (1000, "predicted class", "calibrated"),
            (1000, "uniform", "far off"),
            (3000, "uniform", "underconfident"),
            (5000, "predicted class", "far off"),
        ],
        calibrations,
    ),
    "calibration of clusters": Study(
        "20 to 100 clusters of up to 10:1, intraclass correlations of .2 to .6",
        [
            ((20, 15, 5), "uniform", "calibrated", 0.3),
            ((40, 20, 10), "predicted class", "a little too high", 0.6),
            ((100, 10, 1), "uniform", "overconfident", 0.5),
            ((60, 30, 5), "predicted class", "far off", 0.2),
        ],
        calibrations,
    ),
    "calibration errors": Study(
        "calibrated, uniformly distributed probabilities; number of examples",
        [(30,), (100,), (1000,)],
        biases,
    ),
}
