"""Posterior balanced accuracy: mean, sd and 95 % interval of each matrix, beside sampling in NumPy
and two peers.
"""

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from prob_conf_mat import Study
from scipy import stats
from scipy.optimize import brentq

import jaxmetrics as jm
from bench.harness import (
    LIMIT,
    Contender,
    Results,
    bandwidth_in_words,
    limit,
    measure,
    publish_times,
)

DRAWS = 10_000
SIZES = {2: 1000, 3: 1000, 10: 1000, 100: 1000, 1000: 100}  # classes -> matrices


def matrices(num_classes: int) -> np.ndarray:
    """100 to 1000 examples per class, 70 to 99 % of them right, the others spread evenly."""
    rng = np.random.default_rng(num_classes)
    size = SIZES[num_classes]
    totals = rng.integers(100, 1000, (size, num_classes))
    right = rng.binomial(totals, rng.uniform(0.7, 0.99, (size, num_classes)))
    counts = np.zeros((size, num_classes, num_classes), np.int32)
    classes = np.arange(num_classes)
    counts[:, classes, classes] = right
    counts[:, classes, (classes + 1) % num_classes] = totals - right
    return counts


def ours(counts: Any) -> Any:
    posterior = jm.balanced_accuracy_posterior(counts)
    return posterior.mean, posterior.variance**0.5, posterior.interval(0.95)


def by_sampling(counts: np.ndarray) -> Any:
    right = counts.diagonal()
    draws = (
        np.random.default_rng(0)
        .beta(1 + right, 1 + counts.sum(1) - right, (DRAWS, len(counts)))
        .mean(1)
    )
    return draws.mean(), draws.std(), np.quantile(draws, [0.025, 0.975])


def by_study(counts: np.ndarray) -> Any:
    """prob_conf_mat: a study of one experiment, with as many draws."""
    study = Study(seed=0, num_samples=DRAWS, ci_probability=0.95)
    study.add_experiment("a/b", confusion_matrix=counts, prevalence_prior=1.0, confusion_prior=1.0)
    study.add_metric("balanced_accuracy")
    samples = study.get_metric_samples(
        metric="balanced_accuracy", experiment_name="a/b", sampling_method="posterior"
    ).values
    return samples.mean(), samples.std(), np.quantile(samples, [0.025, 0.975])


class FixedGrid:
    """The method of mclearn, written anew: densities at 0, .001, ..., k; the cdf by trapezoids;
    quantiles by root finding.

    Every evaluation of the cdf convolves again, as there; `evaluations` counts them.
    """

    step = 0.001

    def __init__(self, counts: np.ndarray) -> None:
        right = counts.diagonal()
        self.parameters = np.stack([1 + right, 1 + counts.sum(1) - right], 1)
        self.evaluations = 0

    def convolve(self) -> np.ndarray:
        self.evaluations += 1
        x = np.arange(0, len(self.parameters) + self.step, self.step)
        density = stats.beta.pdf(x, *self.parameters[0])
        for parameters in self.parameters[1:]:
            density = np.convolve(density, stats.beta.pdf(x, *parameters))
        density = density[: len(x)]
        return density / (density.sum() * self.step)

    def cdf(self, x: float) -> float:
        index = round(len(self.parameters) * x / self.step)
        return float(np.trapezoid(self.convolve()[: index + 1], dx=self.step))

    def summary(self) -> Any:
        return [brentq(lambda x, q=q: self.cdf(x) - q, 0, 1) for q in (0.025, 0.975)]


def fixed_grid(counts: np.ndarray) -> tuple[Callable[[], Any], int]:
    """The whole job, or for k = 10, where it takes minutes, one evaluation and how many of them the
    job takes at k = 3.
    """
    if len(counts) < 10:
        return lambda: FixedGrid(counts).summary(), 1
    smaller = FixedGrid(matrices(3)[0])
    smaller.summary()
    return lambda: FixedGrid(counts).cdf(0.9), smaller.evaluations


def compare(num_classes: int) -> Results:
    counts = matrices(num_classes)
    on_device, jitted = jnp.asarray(counts), jax.jit(ours)
    contenders: dict[str, Contender] = {
        "jaxmetrics": lambda: jitted(on_device),
        "jaxmetrics, host": lambda: ours(counts[0]),
        f"NumPy, {DRAWS:,} draws": lambda: by_sampling(counts[0]),
    }
    factors = {"jaxmetrics": 1 / len(counts)}
    if num_classes <= 10:
        contenders["prob_conf_mat"] = lambda: by_study(counts[0])
        contenders["mclearn's method"], factors["mclearn's method"] = fixed_grid(counts[0])

    def check(values: dict[str, Any]) -> None:
        """The first matrix, within the noise of the draws and the step of the grid."""
        mean, sd, interval = (np.asarray(x)[..., 0] for x in values.pop("jaxmetrics"))
        on_host = values.pop("jaxmetrics, host")
        for a, b in zip((mean, sd, interval), on_host, strict=True):
            np.testing.assert_allclose(a, b, atol=0.01 * float(sd))
        grid = values.pop("mclearn's method", None)
        if isinstance(grid, list):
            np.testing.assert_allclose(interval, grid, atol=2 * FixedGrid.step)
        if num_classes > 2:  # its prior is one example per cell, not one right and one wrong
            values.pop("prob_conf_mat", None)
        for sampled_mean, _, sampled in values.values():
            assert abs(mean - sampled_mean) < 0.1 * sd, (mean, sampled_mean)
            assert abs(interval - sampled).max() < 0.15 * sd, (interval, sampled)

    return measure(contenders, check=check, factors=factors) | {
        LIMIT: limit(nbytes=on_device[0].nbytes)
    }


def main() -> None:
    warnings.simplefilter("ignore")
    results = {k: compare(k) for k in SIZES}
    publish_times(
        "balanced_accuracy",
        "mean, sd and 95 % interval, per matrix",
        {"classes, one matrix": results},
        {f"k = {k}": result for k, result in results.items()},
        "In the row `jaxmetrics`, one call computes the posteriors of 1000 matrices (100 matrices"
        " if k = 1000) in float32, and the table shows the time per matrix. In the other rows, one"
        " call computes the posterior of one matrix in float64. mclearn evaluates the cumulative"
        " distribution function of the posterior many times. For k = 10 classes, only one"
        " evaluation was measured, and its time was multiplied by the number of evaluations for"
        " k = 3. The row `limit` is the time for reading one matrix once, at"
        f" {bandwidth_in_words()}, without arithmetic.",
    )


if __name__ == "__main__":
    main()
