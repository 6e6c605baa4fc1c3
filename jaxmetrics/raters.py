"""Agreement of several raters, with gaps: Krippendorff's alpha and Fleiss' kappa, with intervals.

All coefficients are `1 - c D_o / D_e`. D_o is the observed mean disagreement of two ratings of the
same item, and D_e is the mean disagreement of two ratings that are drawn independently, with the
frequencies p of the categories. The coefficients differ in the weights of the pairs of ratings. If
an item has m ratings, the weights are:

- alpha: `1 / (m - 1)`, so that each rating has the same weight. If there are n ratings, c is
  `(n - 1) / n`. Source: Krippendorff (2011), Computing Krippendorff's alpha-reliability.
- kappa: `1 / (m (m - 1))`, so that each item has the same weight, and c is 1. Sources: Fleiss
  (1971), Psychological Bulletin 76; with gaps Gwet (2014), Handbook of Inter-Rater Reliability, but
  here p is computed from items with at least two ratings.
- a rater and the others: `1 / (m - 1)` if one of both ratings is by this rater, otherwise 0. c is
  `(n - 1) / n` for the n ratings of the items of this rater. For two raters, this is alpha.

The disagreement of two ratings is 1 if they differ (nominal), `(x - y)^2` (interval), or the square
of the difference of their midranks among all ratings (ordinal). Items with fewer than two ratings
are left out.

The interval is an empirical likelihood interval (Owen, 2001, Empirical Likelihood) over the N
items. Its ends are the smallest and the largest coefficient for all weights w of the items with
`-2 sum log w <= t^2` and `sum w = N`, where t is the quantile of Student's t distribution with
N - 1 degrees of freedom. Before an end is computed, a third of a pair of ratings is added, so that
the interval has a width even if all raters agree. For the lower end, this is an average of pairs
that are drawn by chance, in proportion to their disagreement. For the upper end, it is a pair of
equal ratings, of the category that disagrees most with ratings by chance. The standard error is
computed from the derivatives with respect to w.

In simulations with 20 to 200 items, 3 to 8 raters and a quarter of the ratings missing
(`bench/studies/labels.py`), the coverage of the 95 % interval was 94 to 99 % for alpha and kappa,
and 94 to 99.5 % for a rater and the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxmetrics._arguments.labels import are_integers, as_ids, is_missing, ordered_categories
from jaxmetrics._arguments.single import (
    ArrayLike,
    check_option,
    check_real,
    is_integer,
    on_host,
    refuse_where,
    require,
)
from jaxmetrics._places.user_warnings import warn
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.clusters import check_size_of_tables
from jaxmetrics.estimates import Estimate, computed_estimate, normal_quantile, with_level
from jaxmetrics.intervals.tilting import ADDED, tilted

__all__ = ["rater_agreement"]

_STEPS = 16  # in samples of 3 to 40 items, more steps change an end by at most 0.01


class RaterAgreement(NamedTuple):
    """Agreement of R raters, as returned by `rater_agreement`.

    Attributes:
        alpha: Krippendorff's alpha.
        kappa: Fleiss' kappa.
        raters: the agreement of each rater with the others, of shape `(R,)`.
        num_left_out: the number of items with fewer than two ratings.
    """

    alpha: Estimate
    kappa: Estimate
    raters: Estimate
    num_left_out: int

    def __repr__(self) -> str:
        """Return the number of items, and one line per coefficient and rater."""
        items = f"{self.alpha.num_examples:,.0f} items with at least two ratings"
        items += f", {self.num_left_out:,} left out" * (self.num_left_out > 0)
        whole = f"alpha: {self.alpha}\nkappa: {self.kappa}"
        return f"{items}\n{whole}\neach rater and the others:\n{self.raters}"


def rater_agreement(
    ratings: ArrayLike | Sequence[Any],
    *,
    scale: Literal["nominal", "ordinal", "interval"] = "nominal",
    level: float = 0.95,
) -> RaterAgreement:
    """Compute the agreement of several raters of the same items: Krippendorff's alpha and Fleiss'
    kappa, with confidence intervals over the items.

    Raters may have rated some of the items only. Both coefficients are `1 - D_o / D_e`, up to a
    correction for small samples: one minus the mean disagreement of two ratings of an item, divided
    by the disagreement that is expected by chance. They are 1 if all raters agree, and near 0 if
    they agree as by chance. In alpha, each rating has the same weight, in kappa each item. Without
    gaps and with the nominal scale, kappa is Fleiss' kappa (1971). The formulas, sources and the
    coverage of the intervals are at the top of `jaxmetrics/raters.py`.

    Args:
        ratings: numbers or strings of shape `(items, raters)`, an array or a data frame of pandas
            or Polars without other columns, such as ids; a table that looks as if it held ids or
            counts gives a warning. Missing ratings are NaN or None. Among integers without NaN and
            None, negative numbers are missing, too, with a warning. Raters need not be the same
            persons for all items, but then only alpha and kappa have a meaning.
        scale: what a disagreement costs. `"nominal"`: all disagreements cost the same.
            `"ordinal"`: the squared difference of the midranks of the categories. Strings must then
            be ordered categories, such as an ordered `Categorical` of pandas, or integers.
            `"interval"`: the squared difference of the numbers.
        level: the confidence level.

    Returns:
        `RaterAgreement(alpha, kappa, raters, num_left_out)`, computed by NumPy. The first three are
        `Estimate`s. `raters`, of shape `(R,)`, is the same coefficient as alpha, for the pairs of
        each rater with the others; the columns of a data frame are its `names`.
        `num_left_out` items have fewer than two ratings, `num_examples` is the number of others.
        Values are NaN if there are no such items, or if all ratings are equal, because chance then
        gives the same agreement. The ends are NaN if there is only one such item.

    Raises:
        TypeError, ValueError: if ratings have another shape, are neither numbers nor strings, are
            infinite, or have no order or distance that the scale needs; if `scale` is unknown.

    >>> ratings = [[1, 1, 1], [2, 2, None], [2, 3, 2], [3, 3, 3], [1, 1, 2]] * 6
    >>> agreement = rater_agreement(ratings)
    >>> agreement.alpha, agreement.kappa
    (0.574 [0.368, 0.751], 0.595 [0.385, 0.769])
    >>> agreement.raters
    3 estimates: 0.698 [0.520, 0.830]; 0.554 [0.301, 0.753]; 0.443 [0.138, 0.674]
    """
    check_option(scale, "scale", ("nominal", "ordinal", "interval"))
    ids, values = _categories(ratings, scale)
    made, size = ids >= 0, ids.shape[1]
    advice = "If raters differ between items, move the ratings of each item to the first columns."
    check_size_of_tables(len(ids), size**2, advice, "items")
    item, rater, other = np.nonzero(made[:, :, None] & made[:, None] & ~np.eye(size, dtype=bool))
    pairs = np.stack([ids[item, rater], ids[item, other], item])
    m = made.sum(1)[item]
    weights = 1 / (m - 1)
    num_ratings = weights.sum()
    mean_number = num_ratings / max(len(np.unique(item)), 1)
    samples = [(weights, num_ratings), (weights / m * mean_number, np.inf)]
    for i in range(size):
        w = weights * ((rater == i) | (other == i))
        samples.append((w, w @ m / 2))
    z, rows = normal_quantile(level), []
    for w, n in samples:
        first, second, item = pairs[:, w > 0]
        used = _Pairs(first, second, item, w[w > 0], values, scale)
        rows.append(_coefficient(used, n, z))
    *numbers, num_items = np.transpose(rows)
    found = computed_estimate(*numbers, num_examples=num_items)
    found = with_level(found, level, "likelihood")
    raters = replace(found.select(slice(2, None)), names=getattr(ratings, "columns", None))
    num_left_out = int((made.sum(1) < 2).sum())
    return RaterAgreement(found.select(0), found.select(1), raters, num_left_out)


def _categories(ratings: Any, scale: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the category of each rating, -1 if it is missing, and the values of the
    categories, in increasing order.
    """
    array = on_host(ratings, "ratings")
    expected = "have shape (items, raters), with at least one rater"
    require(array.ndim == 2 and array.shape[1] > 0, "ratings", expected, array.shape)
    made, numbers = np.ones(array.shape, bool), array.ravel()
    if array.dtype.kind in "OU":
        made = np.reshape([not is_missing(x) for x in numbers], array.shape)
        labels = array[made].tolist()
        numbers = on_host(labels, "ratings")
        is_text = np.reshape([isinstance(x, str) for x in array.ravel()], array.shape)
        if is_text.any():
            raters = getattr(ratings, "columns", range(array.shape[1]))
            if (made & ~is_text).any():
                raise TypeError(
                    "ratings must be all strings or all numbers, but only some are strings, the"
                    f" first in column {raters[is_text.any(0).argmax()]!r}. Pass the columns of"
                    " the raters only, without ids of the items."
                )
            _warn_of_ids(
                [{*x[used].tolist()} for x, used in zip(array.T, made.T, strict=True)], raters
            )
            columns = {str(name): ratings[name] for name in getattr(ratings, "columns", ())}
            ordered = ordered_categories(columns)
            has_order = ordered is not None or are_integers({*labels})
            is_usable = scale == "nominal" or (scale == "ordinal" and has_order)
            expected = "hold numbers, or ordered categories for the ordinal scale"
            require(is_usable, "ratings", expected, labels[0], TypeError)
            (numbers,), _ = as_ids({"ratings": np.array(labels, object)}, ordered, None)
    check_real(numbers, "ratings")
    x = np.full(array.shape, np.nan)
    x[made] = numbers
    refuse_where(np.isinf, x, "ratings", "but ratings must be finite.")
    _warn_of_counts(x)
    # Only integers that have no other mark of gaps may mark them by negative numbers.
    is_gap = (numbers < 0) & (made.all() and is_integer(numbers))
    if number := np.count_nonzero(is_gap):
        warn(
            f"{number} of {is_gap.size} ratings are negative integers, which are taken as missing."
            " If they are ratings, pass floats. If they are missing, replace them by NaN."
        )
    valid = ~(is_gap | np.isnan(numbers))
    made[made], ids, given = valid, np.full(array.shape, -1), numbers[valid]
    if is_integer(given):
        given = given.astype(np.uint64 if given.dtype.kind == "u" else np.int64)
    categories, ids[made] = np.unique(given, return_inverse=True)
    if is_integer(categories):  # before floats merge large integers
        categories = (categories - categories[:1]).astype(np.uint64)
    values = categories.astype(float)
    values = values / np.abs(values).max(initial=1e-300)  # so that no square overflows
    return ids, values - values.sum() / max(len(values), 1)


def _warn_of_ids(categories: Sequence[set[str]], raters: Sequence[Any]) -> None:
    """Warn if a rater shares no category with the others, as if the column held ids of items."""
    for name, own in zip(raters, categories, strict=True):
        others = set().union(*(x for x in categories if x is not own))
        if own and others and own.isdisjoint(others):
            warn(
                f"column {name!r} of ratings shares no category with the other columns, so perhaps"
                " it has no ratings. Pass one row per item and one column per rater, without ids."
                " In pandas, .pivot(index=..., columns=..., values=...) makes them from one row per"
                " rating."
            )
            return


def _warn_of_counts(x: np.ndarray) -> None:
    """Warn if rows are perhaps the numbers of ratings in each category, which have equal sums."""
    sums, whole = {*x.sum(1).tolist()}, (x >= 0) & (x % 1 == 0)
    if len(x) > 2 and len(sums) == 1 and whole.all() and (x == 0).any() and x.max() > 1:
        warn(
            f"all rows of ratings have the sum {sums.pop():g}, like counts of the categories. Pass"
            " one rating per rater: [numpy.repeat(range(len(row)), row) for row in counts]."
        )


class _Pairs(NamedTuple):
    """Pairs of ratings of the same item, each in both orders.

    Attributes:
        i, j: the categories of both ratings, `(P,)`.
        item: the item, `(P,)`.
        weights: the weights of the pairs, `(P,)`.
        values: the values of the K categories, `(K,)`.
        scale: the scale of the disagreement.
    """

    i: np.ndarray
    j: np.ndarray
    item: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    scale: str

    def ratio(self, w: np.ndarray, disagreement: float, categories: np.ndarray) -> tuple[Any, ...]:
        """Return `D_o / D_e`, its derivatives with respect to w, and the categories' frequencies p,
        mean disagreements e with ratings by chance, and squared distances from the mean.

        The weights w, `(N + 1,)`, are those of the items and of the added pair, whose disagreement
        and frequencies of the categories are given.
        """
        i, j, item, weights, y, scale = self
        counts, extra = weights * w[item], 2 * w[-1]  # a pair has two ratings
        total = counts.sum() + extra
        p = (np.bincount(i, counts, len(y)) + extra * categories) / total
        if scale == "ordinal":
            y = _midranks(p)
        gaps, squares = y[i] - y[j], (y - p @ y) ** 2
        d, e = gaps**2, squares + p @ squares
        if scale == "nominal":
            d, e = i != j, 1 - p
        observed, expected = (counts @ d + extra * disagreement) / total, p @ e
        ratio = observed / expected
        of_p = -2 * ratio * e  # derivatives with respect to p of D_o - ratio D_e, up to a constant
        if scale == "ordinal":  # y depends on p, and D_e is (1 - sum p^3) / 6
            of_y = 4 * np.bincount(i, counts * gaps, len(y)) / total
            of_p = ratio * p**2 / 2 - _midranks(of_y)
        mean = observed + p @ of_p
        moves = np.bincount(item, weights * (d + of_p[i] - mean), len(w) - 1)
        moves = np.append(moves, 2 * (disagreement + categories @ of_p - mean))
        return ratio, moves / (total * expected), p, e, squares


def _midranks(p: np.ndarray) -> np.ndarray:
    return np.cumsum(p) - p / 2


@np.errstate(all="ignore")
def _coefficient(pairs: _Pairs, num_ratings: float, z: float) -> tuple[float, ...]:
    """Return a coefficient, both ends of its interval, its standard error and the number of items.

    Args:
        pairs: the weighted pairs of ratings.
        num_ratings: the number n of ratings in c, or infinity.
        z: the normal quantile of the level.
    """
    is_used = np.bincount(pairs.item) > 0
    number, factor = is_used.sum(), 1 - 1 / num_ratings
    first, slopes, p, e, squares = pairs.ratio(np.append(is_used, 0), 0, 0 * pairs.values)
    value = 1 - factor * first if (p > 0).sum() > 1 else np.nan
    if number < 2 or np.isnan(value):
        return value, np.nan, np.nan, np.nan, number
    error = factor * np.sqrt(number / (number - 1) * (slopes[:-1] ** 2).sum())
    # The mean of d^2 and the categories of pairs by chance, divided by the mean of d.
    variance = p @ squares
    worst = 1 if pairs.scale == "nominal" else p @ squares**2 / variance + 3 * variance
    e = e * (p > 0)
    farthest = e >= e.max() * (1 - 1e-9)
    lower, upper = (1, worst, p * e / (p @ e)), (-1, 0, farthest / farthest.sum())
    radius, ends = student_quantile(z, number - 1) ** 2 / 2, []
    counts = np.append(is_used, ADDED)
    for sign, *pair in (lower, upper):
        direction, best, step = pairs.ratio(counts, *pair)[1], -np.inf, 1.0
        slopes = direction
        for _ in range(_STEPS):
            tried = direction + step * (slopes - direction)
            w = tilted(counts[None], sign * tried[None], radius)[0]
            now, slopes_now, *_ = pairs.ratio(w, *pair)
            if sign * now > best:
                best, direction, slopes = sign * now, tried, slopes_now
            else:
                step /= 2
        ends.append(1 - factor * sign * best)
    low, high = np.clip(ends, [-1, value], [value, 1])
    return value, low, high, error, number
