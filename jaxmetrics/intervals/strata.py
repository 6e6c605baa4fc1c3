"""The mean of group means, such as the mean accuracy of the subjects of a benchmark, and the strata
of sampling units that its interval needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmetrics._numerics.arithmetic import safe_sqrt
from jaxmetrics._places.namespaces import Array
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.clusters import check_size_of_tables, jackknife_moves, kish_number, sums_by_cluster
from jaxmetrics.estimates import Estimate, computed_estimate
from jaxmetrics.intervals.means import MeanAndError, mean_by_likelihood


class Strata(NamedTuple):
    """Strata of independent units, made from groups of items that have equal weights.

    Units are items or clusters of items. Within a group that has a single unit the variance is
    unknown, so all groups with a single unit form one stratum (collapsed strata, Cochran, 1977,
    Sampling Techniques, section 5A.12).

    Attributes:
        numbers: the stratum of each item, `(n,)`.
        weights: the weight of each item in the mean of groups, `(n,)`; all weights sum to 1.
        units: the unit of each item, `(n,)`.
        is_clustered: True if units are clusters.
    """

    numbers: np.ndarray
    weights: np.ndarray
    units: np.ndarray
    is_clustered: bool

    @classmethod
    def of(cls, groups: np.ndarray, clusters: np.ndarray | None = None) -> Strata:
        """Make strata from the group numbers and the cluster numbers of the items, `(n,)`."""
        groups = np.unique(groups, return_inverse=True)[1]
        sizes = np.bincount(groups)
        units = np.arange(len(groups)) if clusters is None else clusters
        num_units = int(units.max()) + 1
        is_single = np.bincount(np.unique(groups * num_units + units) // num_units) == 1
        strata = np.where(is_single[groups], len(sizes), groups)
        numbers = np.unique(strata, return_inverse=True)[1]
        return cls(numbers, 1 / (len(sizes) * sizes[groups]), units, clusters is not None)

    def sums(self, x: np.ndarray) -> np.ndarray:
        """Add up values of items by stratum, `(..., S)`."""
        return sums_by_cluster(x, self.numbers, int(self.numbers.max()) + 1)

    def centred(self, x: np.ndarray) -> np.ndarray:
        """Return the contribution of each item to the mean of groups, centred in its stratum."""
        means = self.sums(self.weights * x) / self.sums(self.weights)
        return self.weights * (x - means[..., self.numbers])

    def by_unit(self, moves: np.ndarray, z: float | None = None) -> np.ndarray:
        """Add up contributions m of items by unit, `(..., U)`, scaled so that the sum of their
        squares is the jackknife variance (`jackknife_moves` in each stratum).

        If the normal quantile z is given, the contributions are also multiplied by the quantile of
        Student's t for their stratum.
        """
        num_units = int(self.units.max()) + 1
        pairs, place = np.unique(self.numbers * num_units + self.units, return_inverse=True)
        strata, units = np.divmod(pairs, num_units)

        def total(x: np.ndarray) -> np.ndarray:
            return sums_by_cluster(x, strata, int(strata.max()) + 1)[..., strata]

        sums, shares = (sums_by_cluster(x, place, len(pairs)) for x in (moves, self.weights))
        shares /= total(shares)
        scaled = jackknife_moves(sums, shares, total=total)
        if z is not None:
            scaled *= student_quantile(z, np.maximum(1 / total(shares**2) - 1, 1))
        return sums_by_cluster(scaled, units, num_units)

    def table(self, x: np.ndarray, amounts: np.ndarray) -> tuple[Array, Array, Array]:
        """Return the distinct values in each stratum, their weights, and the shares of the strata.

        If there are several strata, n values of a stratum count as n - 1 values, because the values
        are closer to their own mean than to the population mean.
        """
        shares, sizes = self.sums(self.weights), self.sums(np.ones(len(x)))
        number = np.maximum(sizes - 1, 1) if len(sizes) > 1 else sizes
        amounts = amounts * self.weights * (number / shares)[self.numbers]
        order = np.lexsort((x, self.numbers))
        x, numbers = x[order], self.numbers[order]
        is_new = np.append(True, (np.diff(x) != 0) | (np.diff(numbers) != 0))
        cell, first = is_new.cumsum() - 1, np.flatnonzero(is_new)
        row = numbers[first]
        widths = np.bincount(row)
        column = np.arange(len(first)) - (widths.cumsum() - widths)[row]
        advice = "Merge small groups, or leave out bounds."
        check_size_of_tables(len(widths), int(widths.max()), advice, "groups")
        counts, values = np.zeros((2, len(widths), widths.max()))
        counts[row, column], values[row, column] = np.bincount(cell, amounts[order]), x[first]
        return values, counts, shares


def mean_of_groups(
    x: np.ndarray,
    strata: Strata,
    *,
    bounds: tuple[float, float] | None,
    z: float,
    is_difference: bool = False,
) -> Estimate:
    """Estimate the unweighted mean of group means, from NumPy values `(n,)`.

    If bounds are given, the ends are the smallest and the largest mean that a likelihood-ratio test
    over all groups does not reject, as in `mean_interval` for one group. Otherwise, each squared
    distance from the mean to an end is the sum of the squared distances in the groups (MOVER).
    """
    value, moves = np.clip(strata.weights @ x, x.min(), x.max()), strata.centred(x)
    items = strata._replace(units=np.arange(len(x)))
    independent, error = (safe_sqrt((s.by_unit(moves) ** 2).sum()) for s in (items, strata))
    if bounds is None:
        reach = safe_sqrt((strata.by_unit(moves, z) ** 2).sum())
        return computed_estimate(value, value - reach, value + reach, error)
    size, number = (kish_number(np.bincount(s.units, s.weights)) for s in (items, strata))
    moves_of_units = np.bincount(strata.units, moves) if strata.is_clustered else None
    summary = MeanAndError(size, value, independent, error, number, moves_of_units)
    options = z, bounds, is_difference, strata.table
    return mean_by_likelihood(summary, x, np.ones(len(x)), strata.units, *options)
