"""Methods of intervals as values, to hand to what needs one.

Each is a function of a metric and counts, the short form of which is a function of this package:
`BCa(key)(metric, counts)` is `bootstrap(key, metric, counts)`. What draws holds its key. `compare`,
`leaderboard`, `count_metrics` and reports take any of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

from jaxmetrics._keys import KeyLike
from jaxmetrics._validation import ArrayLike
from jaxmetrics.estimates import Metric, check_transform
from jaxmetrics.intervals.bootstraps import bootstrap
from jaxmetrics.intervals.delta import delta_method
from jaxmetrics.intervals.likelihoods import likelihood_interval
from jaxmetrics.intervals.posterior_draws import posterior
from jaxmetrics.intervals.tables import check_num_samples

__all__ = [
    "BCa",
    "Basic",
    "Delta",
    "IntervalMethod",
    "Likelihood",
    "Percentile",
    "Posterior",
    "Studentized",
]


class IntervalMethod:
    """Make estimates of any metric of counts.

    `name` is what reports call it.

    >>> import jaxmetrics as jm
    >>> counts = [[45, 5], [3, 47]]
    >>> for method in (jm.Likelihood(), jm.Delta("logit"), jm.BCa(0), jm.Posterior(0)):
    ...     print(f"{method.name:10} {method(jm.macro(jm.f1), counts):.2f}")
    likelihood 0.92 [0.85, 0.96]
    delta      0.92 [0.85, 0.96]
    bca        0.92 [0.86, 0.97]
    posterior  0.90 [0.84, 0.95]
    """

    name: ClassVar[str]
    takes_units: ClassVar[bool] = True

    def __call__(
        self,
        metric: Metric,
        counts: ArrayLike,
        *,
        level: float = 0.95,
        cluster_axis: int | None = None,
        table_ndim: int = 2,
    ) -> Any:
        """Estimate a metric of counts `(..., K, K)`, of clusters or of groups, as `delta_method`
        takes them.

        Raises:
            ValueError: clusters or groups for a posterior; as the function of which this is the
                value.
        """
        if cluster_axis is None and table_ndim == 2:
            return self._interval(metric, counts, level=level)
        if not self.takes_units:
            raise ValueError(
                f"clusters and groups have no {self.name}: take Likelihood, Delta or BCa."
            )
        return self._interval(
            metric, counts, level=level, cluster_axis=cluster_axis, table_ndim=table_ndim
        )

    @property
    def _interval(self) -> Callable[..., Any]:
        """The function of which this is the value, with its arguments."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Likelihood(IntervalMethod):
    """Hold the likelihood interval as a value; see `likelihood_interval`.

    Attributes:
        simultaneous, anytime: as for `likelihood_interval`.

    >>> import jaxmetrics as jm
    >>> Likelihood()(jm.accuracy, [[9, 1], [3, 7]])
    0.800 [0.575, 0.935]
    """

    simultaneous: bool = False
    anytime: bool | int = False
    name: ClassVar[str] = "likelihood"

    @property
    def _interval(self) -> Callable[..., Any]:
        return partial(likelihood_interval, simultaneous=self.simultaneous, anytime=self.anytime)


@dataclasses.dataclass(frozen=True)
class Delta(IntervalMethod):
    """Hold the normal interval by derivatives as a value; see `delta_method`.

    Attributes:
        transform, simultaneous, anytime: as for `delta_method`.

    >>> import jaxmetrics as jm
    >>> Delta("logit")(jm.accuracy, [[9, 1], [3, 7]])
    0.800 [0.572, 0.923]
    """

    transform: Literal["logit", "atanh", "log"] | None = None
    simultaneous: bool = False
    anytime: bool | int = False
    name: ClassVar[str] = "delta"

    def __post_init__(self) -> None:
        check_transform(self.transform)

    @property
    def _interval(self) -> Callable[..., Any]:
        options: dict[str, Any] = {"simultaneous": self.simultaneous, "anytime": self.anytime}
        return partial(delta_method, transform=self.transform, **options)


@dataclasses.dataclass(frozen=True, eq=False)  # keys of JAX have no hash
class Bootstrap(IntervalMethod):
    """Hold the key and the number of replicates of a bootstrap interval."""

    key: KeyLike
    num_samples: int = 2000
    simultaneous: bool = False

    def __post_init__(self) -> None:
        check_num_samples(self.num_samples)

    @property
    def _interval(self) -> Callable[..., Any]:
        options: dict[str, Any] = {"num_samples": self.num_samples, "method": self.name}
        return partial(bootstrap, self.key, simultaneous=self.simultaneous, **options)


class BCa(Bootstrap):
    """Hold the bootstrap with bias correction and acceleration as a value; see `bootstrap`.

    Attributes:
        key: a JAX key, an int seed or, for counts of the host, a NumPy Generator.
        num_samples, simultaneous: as for `bootstrap`.

    >>> import jaxmetrics as jm
    >>> BCa(0)(jm.accuracy, [[9, 1], [3, 7]])
    0.800 [0.598, 0.950]
    """

    name: ClassVar[str] = "bca"


class Percentile(Bootstrap):
    """Hold the bootstrap by percentiles as a value; see `bootstrap`.

    Attributes:
        key: a JAX key, an int seed or, for counts of the host, a NumPy Generator.
        num_samples, simultaneous: as for `bootstrap`.

    >>> import jaxmetrics as jm
    >>> Percentile(0, num_samples=500)(jm.accuracy, [[9, 1], [3, 7]])
    0.800 [0.600, 0.950]
    """

    name: ClassVar[str] = "percentile"


class Basic(Bootstrap):
    """Hold the bootstrap by reflected percentiles as a value; see `bootstrap`.

    Attributes:
        key: a JAX key, an int seed or, for counts of the host, a NumPy Generator.
        num_samples, simultaneous: as for `bootstrap`.

    >>> import jaxmetrics as jm
    >>> Basic(0)(jm.accuracy, [[9, 1], [3, 7]])
    0.800 [0.650, 1.000]
    """

    name: ClassVar[str] = "basic"


class Studentized(Bootstrap):
    """Hold the studentized bootstrap as a value; see `bootstrap`.

    Attributes:
        key: a JAX key, an int seed or, for counts of the host, a NumPy Generator.
        num_samples, simultaneous: as for `bootstrap`.

    >>> import jaxmetrics as jm
    >>> Studentized(0)(jm.accuracy, [[9, 1], [3, 7]])
    0.800 [0.525, 0.963] (18 replicates undefined)
    """

    name: ClassVar[str] = "studentized"


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior(IntervalMethod):
    """Hold the posterior interval as a value; see `posterior`.

    Attributes:
        key: a JAX key, an int seed or, for counts of the host, a NumPy Generator.
        prior, num_samples: as for `posterior`.

    >>> import jaxmetrics as jm
    >>> Posterior(0, prior=0.5)(jm.accuracy, [[9, 1], [3, 7]])
    0.770 [0.584, 0.917]
    """

    key: KeyLike
    prior: ArrayLike = 1.0
    num_samples: int = 2000
    name: ClassVar[str] = "posterior"
    takes_units: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_num_samples(self.num_samples)

    @property
    def _interval(self) -> Callable[..., Any]:
        options: dict[str, Any] = {"prior": self.prior, "num_samples": self.num_samples}
        return partial(posterior, self.key, **options)


def check_method(method: object) -> None:
    if not isinstance(method, IntervalMethod):
        raise TypeError(
            "method must be an interval method as a value, such as jaxmetrics.Likelihood() or"
            f" jaxmetrics.BCa(key), got {method!r}."
        )


def as_method(
    method: str | IntervalMethod, key: KeyLike, *, prior: ArrayLike = 1.0, num_samples: int = 2000
) -> IntervalMethod:
    """Return the method of a short name, with the arguments beside it."""
    if isinstance(method, IntervalMethod):
        return method
    named = {
        "likelihood": Likelihood(),
        "bootstrap": BCa(key, num_samples),
        "posterior": Posterior(key, prior, num_samples),
        "delta": Delta(),
    }
    if method not in named:
        raise ValueError(
            "method must be 'likelihood', 'bootstrap', 'posterior' or 'delta', or a value such as"
            f" jaxmetrics.Percentile(key), got {method!r}."
        )
    return named[method]
