"""A metric of cell probabilities drawn from their posterior."""

from __future__ import annotations

from typing import Any, Literal

from jaxmetrics._compilation import compiled
from jaxmetrics._keys import Key, KeyLike, place
from jaxmetrics._namespaces import Array, xp
from jaxmetrics._validation import (
    ArrayLike,
    as_counts,
    check_level,
)
from jaxmetrics.betas.parameters import as_prior
from jaxmetrics.estimates import Metric
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.quantiles import posterior_estimates
from jaxmetrics.intervals.tables import (
    as_floats,
    check_finite,
    check_num_samples,
    is_possible,
    nan_unless,
    where_answered,
)

__all__ = ["posterior"]


def posterior(
    key: KeyLike,
    metric: Metric,
    counts: ArrayLike,
    *,
    prior: ArrayLike = 1.0,
    prevalence: ArrayLike | Literal["inferred", "fixed"] = "inferred",
    num_samples: int = 2000,
    level: float = 0.95,
) -> Any:
    """Estimate a metric with a posterior interval, its equal-tailed quantiles over posterior draws.

    The draws are those of `posterior_counts`: all cells, or those of each class, have a Dirichlet
    posterior. Its default prior, 1 for the right cell and 1 / (K - 1) for each wrong one, makes
    each recall Beta(1 + C_ii, 1 + m_i - C_ii); a flat prior of 1 on all cells, `prior=(1, K - 1)`,
    has poor coverage. A class without examples takes part with its prior. In averages over many
    classes the prior of each adds up, and the interval is narrow around it: a recall of 0.97 in 10
    classes of 10 examples has the interval 0.84 to 0.94. Use `delta_method` there.

    Args:
        metric: a function of one `(K, K)` matrix, which is given cell probabilities.
        counts: `(..., K, K)`; weights are read as frequencies.
        prior: as for `posterior_counts`.
        prevalence: `"inferred"`, uncertain as well; `"fixed"`, that of the counts; or `(K,)`, known
            from elsewhere: then precision and the like are those of a deployment with that
            prevalence.

    Returns:
        `Estimate` or a pytree of them; `value` is the posterior mean, `standard_error` the
        posterior's standard deviation.

    Raises:
        ValueError: as `posterior_counts`; num_samples < 2, a level outside of (0, 1), a metric that
            is nowhere finite.

    >>> import jaxmetrics as jm
    >>> posterior(0, jm.accuracy, [[95, 0], [0, 95]])  # no error was seen
    0.990 [0.974, 0.999]
    """
    size, level = check_num_samples(num_samples), check_level(level)
    floats = as_floats(metric)
    matrices = where_answered(floats, as_counts(counts))
    k = matrices.shape[-1]
    given = as_prior(prior, k), replicates.as_prevalence(prevalence, k)
    estimates = _posterior(*place(key, matrices, *given), metric=floats, size=size, level=level)
    return check_finite(estimates, size)


@compiled
def _posterior(
    key: Key,
    counts: Array,
    prior: Array,
    prevalence: Array | None,
    *,
    metric: Metric,
    size: int,
    level: float,
) -> Any:
    counts = xp.where((counts >= 0).all((-2, -1), keepdims=True), counts, xp.nan)
    sampler = replicates.posterior(prior, prevalence)
    samples = replicates.evaluate(
        sampler, metric, key, counts, size=size, numbers=counts.shape[-1] ** 2
    )
    return nan_unless(is_possible(counts), posterior_estimates(samples, level))
