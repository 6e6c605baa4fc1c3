"""What a comparison of two classifiers says."""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxmetrics._namespaces import Array
from jaxmetrics._printing import Printed
from jaxmetrics._wording import fraction
from jaxmetrics.estimates import Estimate

__all__ = ["Comparison"]


class _Comparison(NamedTuple):
    a: Estimate
    b: Estimate
    difference: Estimate
    probability_better: Array
    probability_equivalent: Array


class Comparison(Printed, _Comparison):
    """Hold a metric of A, of B and their difference A - B.

    Attributes:
        a, b: the metric of A and of B, each an `Estimate`.
        difference: A - B, an `Estimate`.
        probability_better: how probably A is above B.
        probability_equivalent: how probably they differ by `rope` at most.

    It prints as `Estimate` does, and has its methods.

    >>> import jaxmetrics as jm
    >>> jm.compare_unpaired(jm.accuracy, [[90, 10], [5, 95]], [[80, 20], [9, 91]], rope=0.02)
    A 0.925 [0.881, 0.956], B 0.855 [0.800, 0.899], A - B 0.070 [0.007, 0.134],
    P(A > B) 0.986, P(equivalent) 0.056
    """

    __slots__ = ()
    _plural = "comparisons"

    def _cells(self, spec: str) -> dict[str, str]:
        return comparison_cells(self, spec)


def comparison_cells(x: Any, spec: str) -> dict[str, str]:
    """Write the parts of a comparison of two numbers."""
    cells = {"A": x.a, "B": x.b, "A - B": x.difference}
    shares = {"P(A > B)": x.probability_better}
    if x.probability_equivalent:
        shares["P(equivalent)"] = x.probability_equivalent
    return {title: format(part, spec) for title, part in cells.items()} | {
        title: format(share, spec) if spec else fraction(share) for title, share in shares.items()
    }
