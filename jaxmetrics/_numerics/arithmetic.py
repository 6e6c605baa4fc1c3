"""Division, roots and logarithms whose values and gradients are defined at 0/0 and at 0."""

from __future__ import annotations

from jaxmetrics._arguments.single import ArrayLike, as_float
from jaxmetrics._places.namespaces import Array, custom_jvp, is_jax, lax, xp

__all__: list[str] = []


def weighted_sum(p: Array, w: Array) -> Array:
    """Compute `sum_ij w_ij p_ij` for matrices p `(..., K, K)` and weights w `(K, K)`."""
    return (p * xp.broadcast_to(w, p.shape)).sum((-2, -1))


def divide(numerator: Array, denominator: Array, zero_division: ArrayLike = 0.0) -> Array:
    """Divide; if the denominator is 0, return `zero_division` with a finite gradient."""
    defined = denominator != 0
    quotient = _quotient(numerator, xp.where(defined, denominator, 1))
    return _unless(defined, quotient, zero_division)


def _unless(defined: Array, quotient: Array, zero_division: ArrayLike) -> Array:
    other = as_float(zero_division, "zero_division")
    try:
        return xp.where(defined, quotient, other)
    except (TypeError, ValueError):
        raise ValueError(
            f"zero_division must be a number, but it is an array of shape {other.shape}, which"
            f" does not fit the results of shape {quotient.shape}. Pass a single number."
        ) from None


@custom_jvp
def _quotient(a: Array, b: Array) -> Array:
    if not is_jax(a):
        return a / b
    # Accelerators divide equal numbers to 0.9999999. The difference of infinities is not 0.
    return xp.where(b - a == 0, 1, a / b)


@_quotient.defjvp
def _quotient_jvp(
    primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Differentiate a / b without a division by b^2, which is part of JAX's own rule.

    b^2 underflows to 0 for b = 1e-25, which can be the soft count of an absent class.
    """
    (a, b), (da, db) = primals, tangents
    quotient = _quotient(a, b)
    return quotient, (da - quotient * db) / b


def safe_sqrt(x: Array) -> Array:
    """Return the square root, whose gradient at 0 is defined as 0 instead of infinity."""
    return xp.where(x == 0, 0, xp.sqrt(xp.where(x == 0, 1, x)))


def divide_by_geometric_mean(a: Array, b: Array, c: Array, zero_division: ArrayLike) -> Array:
    """Compute `a / sqrt(b c)`, exactly 1 if a = b = c, and `zero_division` if b or c is 0."""
    quotient = divide(a, b) * safe_sqrt(divide(b, c))
    # On GPUs, the quotient of equal numbers can be 0.9999999.
    quotient += lax.stop_gradient(xp.where((a == b) & (b == c), 1 - quotient, 0))
    return _unless((b != 0) & (c != 0), quotient, zero_division)


def safe_log(x: Array) -> Array:
    """Return the logarithm, or 0 with gradient 0 at x = 0, for products such as `x log x`."""
    return xp.log(xp.where(x == 0, 1, x))


def argmax(x: Array) -> Array:
    """Return the first index of the largest number of each row, `(..., n)` to `(...)`.

    Compiled for a TPU, a comparison with the maximum is a small part of the program that JAX's
    `argmax` becomes. For a CPU, it is several times as much.
    """
    if not is_jax(x):
        return x.argmax(-1)
    return lax.platform_dependent(
        x, cpu=lambda x: xp.argmax(x, -1).astype(xp.int32), default=_argmax_by_comparison
    )


def _argmax_by_comparison(x: Array) -> Array:
    n = x.shape[-1]
    # Computed once: a number that two fusions round differently would not equal the maximum.
    x = lax.optimization_barrier(x)
    numbers = xp.arange(n, dtype=xp.int32)
    return xp.where(x == x.max(-1, keepdims=True), numbers, n - 1).min(-1)


def pick(values: Array, index: Array) -> Array:
    """Return the elements of `values` `(..., n)` at `index` `(..., m)`, by `take_along_axis`.

    A TPU compares each index with all positions instead: this compiles eight times faster.
    """
    return lax.platform_dependent(
        values,
        index,
        tpu=_pick_by_comparison,
        default=lambda values, index: xp.take_along_axis(values, index, -1, mode="clip"),
    )


def _pick_by_comparison(values: Array, index: Array) -> Array:
    is_there = index[..., None] == xp.arange(values.shape[-1])
    return xp.where(is_there, values[..., None, :], 0).sum(-1).astype(values.dtype)


def matmul(a: Array, b: Array) -> Array:
    """Multiply matrices in full precision, also on devices whose default is TF32 or bfloat16."""
    return xp.matmul(a, b, precision="highest")


def append_axes(x: Array, number: int) -> Array:
    """Append axes of length one."""
    return x.reshape((*x.shape, *(1,) * number))


def subtract(a: Array, b: Array) -> Array:
    """Return `a - b`, or 0 if it is only rounding error; the derivative is unchanged."""
    d = a - b
    # In complex steps, the imaginary part is the derivative.
    return d - lax.stop_gradient(xp.where(xp.abs(d.real) <= rounding(a, b), d.real, 0))


def rounding(a: Array, b: Array) -> Array:
    """Return an upper bound of the rounding error of `a - b`."""
    return xp.finfo(xp.result_type(a, b)).eps * (xp.abs(a) + xp.abs(b)) / 2


def deviance(t: Array) -> Array:
    """Return `(1 + t) log(1 + t) - t` for t >= -1, by its series if the terms would cancel."""
    near = xp.abs(t) < 0.1
    s, far = xp.where(near, t, 0), xp.where(near | (t <= -1), 1, t)
    series = s**2 * (
        1 / 2 - s * (1 / 6 - s * (1 / 12 - s * (1 / 20 - s * (1 / 30 - s * (1 / 42 - s / 56)))))
    )
    return xp.where(near, series, xp.where(t <= -1, 1, (1 + far) * xp.log1p(far) - far))


def stirling(k: Array) -> Array:
    """Return `(k! e^k / k^k)^2 / 2 pi` = k + 1/6 + 1/72k + ... for k = 0, 1, 2, ...

    The terms after k + 1/6 are a rational fit; the error is below 1e-8.
    """
    top = -3.084672120917846e-06 + k * (0.0049901738797081515 + k / 72)
    bottom = 0.00041064771477838984 + k * (0.3184705467530385 + k * (0.7025048427109624 + k))
    return k + 1 / 6 + top / bottom
