"""The distribution of a sum of independent beta variables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmetrics._arguments.single import ArrayLike, as_float, check_samples
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.namespaces import Array, xp
from jaxmetrics.betas.beta_averages import BetaAverage

__all__ = ["Convolution", "beta_sum_cdf", "beta_sum_pdf", "convolve_betas"]


class Convolution(NamedTuple):
    """Distribution of a sum of beta variables on a grid, as returned by `convolve_betas`.

    Attributes:
        x: equally spaced points, of shape `(..., num_points)`.
        pdf, cdf: density and cdf at these points, of shape `(..., num_points)`.
    """

    x: Array
    pdf: Array
    cdf: Array


@on_host_if_small
def convolve_betas(parameters: ArrayLike, *, num_points: int | None = None) -> Convolution:
    """Return the density and cdf of a sum of beta variables, `A_1 + ... + A_k`, on a grid.

    The variables A_i ~ Beta(alpha_i, beta_i) are independent. The grid covers a part of [0, k]. On
    each side, the probability that the sum is outside of the grid is at most 2e-16 (float32: 1e-7).

    Args:
        parameters: array of shape `(..., k, 2)` with a row (alpha_i, beta_i) > 0 per class.
        num_points: number of points; default: 1025.

    Returns:
        `Convolution`, whose three arrays have shape `(..., num_points)`.

    Raises:
        ValueError: if `BetaAverage(parameters)` raises ValueError, or if `num_points` is below 1.

    >>> x, pdf, cdf = convolve_betas([[1, 1], [1, 1]], num_points=5)
    >>> (x[1:4] * 100).round(), (pdf[1:4] * 100).round()
    (array([ 50., 100., 150.]), array([ 50., 100.,  50.]))
    """
    size = check_samples(1025 if num_points is None else num_points, "num_points")
    return _on_grid(BetaAverage(parameters), size=size)


@compiled
def _on_grid(average: BetaAverage, *, size: int) -> Convolution:
    low, high = average.interval(1 - 2 * float(np.finfo(average.parameters.dtype).eps))
    x = xp.linspace(low, high, size)
    k = average.parameters.shape[-2]
    columns = k * x, average.pdf(x) / k, average.cdf(x)
    return Convolution(*(xp.moveaxis(v, 0, -1) for v in columns))


@on_host_if_small
def beta_sum_pdf(x: ArrayLike, parameters: ArrayLike) -> Array:
    """Return the density of a sum of beta variables, `BetaAverage(parameters).pdf(x / k) / k`.

    Args:
        x: real numbers, which broadcast against the batch axes of the parameters.
        parameters: array of shape `(..., k, 2)` with a row (alpha_i, beta_i) > 0 per class.

    >>> beta_sum_pdf([0.5, 0.75], [[1, 1], [1, 1]]).round(3).tolist()
    [0.5, 0.75]
    """
    average = BetaAverage(parameters)
    k = average.parameters.shape[-2]
    return average.pdf(as_float(x, "x") / k) / k


@on_host_if_small
def beta_sum_cdf(x: ArrayLike, parameters: ArrayLike) -> Array:
    """Return the cdf of a sum of beta variables, `BetaAverage(parameters).cdf(x / k)`.

    Args:
        x: real numbers, which broadcast against the batch axes of the parameters.
        parameters: array of shape `(..., k, 2)` with a row (alpha_i, beta_i) > 0 per class.

    Returns:
        `P(A_1 + ... + A_k <= x)`, where A_i ~ Beta(alpha_i, beta_i) are independent.

    >>> beta_sum_cdf([0.5, 1.0], [[1, 1], [1, 1]]).round(4).tolist()
    [0.125, 0.5]
    """
    average = BetaAverage(parameters)
    return average.cdf(as_float(x, "x") / average.parameters.shape[-2])
