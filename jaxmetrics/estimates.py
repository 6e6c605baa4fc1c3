"""An estimate: a value with its confidence interval and standard error."""

from __future__ import annotations

import math
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple, NoReturn, Self, TypeAlias, TypeVar

import numpy as np

from jaxmetrics._arguments.single import check_level, check_option
from jaxmetrics._places.jax_imports import pytree, trees
from jaxmetrics._places.namespaces import Array, xp
from jaxmetrics._text.printing import Printed
from jaxmetrics._text.wording import interval, listed

__all__ = ["Estimate"]


Metric: TypeAlias = Callable[[Array], Any]
T = TypeVar("T")


class Scale(NamedTuple):
    """A monotone function from an interval to the real numbers, such as the logit."""

    lowest: float
    highest: float
    transform: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    slope_of_inverse: Callable[[Array], Array]  # the derivative, as a function of the value


SCALES = {
    # SciPy's functions would take a tenth of a second to load.
    "logit": Scale(
        0,
        1,
        lambda v: xp.log(v) - xp.log1p(-v),
        lambda x: xp.exp(-xp.logaddexp(-x, 0.0)),
        lambda v: v * (1 - v),
    ),
    "atanh": Scale(-1, 1, xp.arctanh, xp.tanh, lambda v: 1 - v**2),
    "log": Scale(0, math.inf, xp.log, xp.exp, lambda v: v),
}


def _refuse(self: Estimate, *_: Any, **__: Any) -> NoReturn:
    """Raise an error, because it is unclear which number of the estimate is meant."""
    raise TypeError(
        "An Estimate is not a number or an array of its fields. Use e.value for the value of an"
        " estimate e, and e.low and e.high for the ends of its interval."
    )


# What an estimate was in version 0.3.
_Tuple = namedtuple("_Tuple", "value low high standard_error num_undefined")


@pytree
@dataclass(frozen=True, init=False, repr=False)
class Estimate(Printed):
    """An estimate with its confidence interval: numbers, or arrays of the same shape.

    Attributes:
        value: the estimate.
        low, high: the lower and upper end of the confidence interval.
        standard_error: the standard error of the value. The docstring of the function that returned
            the estimate explains it.
        num_undefined: the number of bootstrap replicates (random resamples of the examples) in
            which the metric was NaN or infinite. These replicates are not part of the interval.
        num_examples: the number of examples, or the sum of their weights; None if unknown.
        effective_number: the number of independent examples that contain as much information, if
            examples are clustered; otherwise None.
        level: the confidence level of the interval.
        method: the name of the method of the interval, such as `"likelihood"`.
        note: a note for the interpretation of the interval, or None.
        names: names along the last axis, such as classes, or None; unused if their number differs.

    The narrower the interval, the more decimals are printed, unless an f-string has a format such
    as `.1%`. `float` returns a single value. `to_dict` and `to_frame` return all attributes (but
    `to_frame` no `num_undefined` of 0). `==` compares all attributes of single estimates.

    An estimate is a pytree, whose leaves are the numbers. All other attributes are part of the tree
    structure. Therefore `jax.tree.map` cannot combine estimates of different levels or methods, and
    `jax.lax.cond` cannot return them. Use `dataclasses.replace` to change attributes.

    >>> import jaxmetrics as jm
    >>> accuracy = jm.proportion_interval(80, 94)
    >>> accuracy, accuracy.level, accuracy.method
    (0.851 [0.765, 0.909], 0.95, 'wilson')
    >>> f"{accuracy:.1%}", float(accuracy) > 0.85
    ('85.1% [76.5%, 90.9%]', True)
    >>> recalls = jm.proportion_interval([90, 1995], [100, 2000])
    >>> recalls
    2 estimates: 0.900 [0.826, 0.945]; 0.9975 [0.9942, 0.9989]
    >>> print(recalls)
       value [low, high]
    0  0.9000 [0.8256, 0.9448]
    1  0.9975 [0.9942, 0.9989]
    >>> recalls.to_dict()["low"], recalls.select(1)
    ([0.825634, 0.994160], 0.9975 [0.9942, 0.9989])
    """

    value: Array
    low: Array
    high: Array
    standard_error: Array
    num_undefined: Array
    num_examples: Array | None
    effective_number: Array | None
    level: float | None = field(metadata={"static": True})
    method: str | None = field(metadata={"static": True})
    note: str | None = field(metadata={"static": True})
    names: Sequence[str] | None = field(metadata={"static": True})

    _plural = "estimates"

    # Pickles of version 0.3 call `__new__` with the first five numbers, and do not call `__init__`.
    def __new__(  # noqa: D102  # the class explains it
        cls,
        value: Array,
        low: Array = math.nan,
        high: Array = math.nan,
        standard_error: Array = math.nan,
        num_undefined: Array = 0,
        num_examples: Array | None = None,
        effective_number: Array | None = None,
        *,
        level: float | None = None,
        method: str | None = None,
        note: str | None = None,
        names: Sequence[str] | None = None,
    ) -> Self:
        self = object.__new__(cls)
        self.__dict__.update(
            value=value,
            low=low,
            high=high,
            standard_error=standard_error,
            num_undefined=num_undefined,
            num_examples=num_examples,
            effective_number=effective_number,
            level=level,
            method=method,
            note=note,
            names=None if names is None else tuple(map(str, names)),  # hashable
        )
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
        return (), self.__dict__

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return tuple(self.__dict__.values()) == tuple(other.__dict__.values())

    def __float__(self) -> float:
        """Return the value if the estimate is a single estimate, not a batch."""
        if np.shape(self.value) != ():
            raise TypeError(
                "Only a single estimate can be converted to float, but this Estimate has the"
                f" shape {np.shape(self.value)}. Select one estimate, such as e.select(0)."
            )
        return float(self.value)

    def __bool__(self) -> bool:
        return True

    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __pow__ = __rpow__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __neg__ = __pos__ = __abs__ = __round__ = __len__ = __array__ = _refuse

    def __iter__(self) -> Iterator[Any]:
        return iter(self._as_tuple())

    def __getitem__(self, index: Any) -> Any:
        return self._as_tuple()[index]

    def __getattr__(self, name: str) -> Any:
        if name not in ("_asdict", "_fields", "_replace"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        old = self._as_tuple()
        return partial(replace, self) if name == "_replace" else getattr(old, name)

    def _as_tuple(self) -> _Tuple:
        warnings.warn(
            "An Estimate is no longer a tuple: use its attributes, such as e.value, e.low and"
            " e.high, and dataclasses.replace. For estimate i of several, use"
            " e.select(i). In version 0.5, this will be an error.",
            FutureWarning,  # which Python shows in imported modules, too
            stacklevel=3,
        )
        return _Tuple(*(self.__dict__[name] for name in _Tuple._fields))

    def select(self, member: Any) -> Estimate:
        """Return one of several estimates.

        Args:
            member: a name, or an index of the last axis.

        Raises:
            KeyError: if there is no such name.

        >>> import jaxmetrics as jm
        >>> named = replace(jm.proportion_interval([90, 80], 100), names=["cat", "dog"])
        >>> print(named)
             value [low, high]
        cat  0.900 [0.826, 0.945]
        dog  0.800 [0.711, 0.867]
        >>> named.select("dog")
        0.800 [0.711, 0.867]
        """
        if isinstance(member, str):
            names = self.names or ()
            if member not in names:
                raise KeyError(f"{member!r} is not among the names: {listed(names) or None}.")
            member = names.index(member)
        one = trees.map(lambda x: x[..., member] if np.ndim(x) else x, self)
        return replace(one, names=None)

    def _names(self) -> Sequence[str] | None:
        size = np.shape(self.value)[-1:]
        return self.names if self.names and size == (len(self.names),) else None

    def _numbers(self) -> dict[str, Any]:
        """Return the numbers that are known; only the last two can be unknown."""
        numbers = list(self.__dict__.items())[:7]
        return {name: x for i, (name, x) in enumerate(numbers) if i < 5 or x is not None}

    def _labels(self) -> dict[str, Any]:
        labels = {name: self.__dict__[name] for name in ("level", "method", "note")}
        return {name: x for name, x in labels.items() if x is not None}

    def _cells(self, spec: str) -> dict[str, str]:
        text = interval(self.value, self.low, self.high, spec)
        text += " (no interval)" * bool(self.low != self.low and self.high != self.high)
        undefined = f" ({self.num_undefined:g} replicates undefined)" if self.num_undefined else ""
        return {"value [low, high]": text + undefined}


def with_level(estimates: T, level: float, method: str, note: str | None = None) -> T:
    """Return a pytree of estimates and other values, in which each estimate knows its interval."""
    labels = {"level": check_level(level), "method": method, "note": note}

    def labelled(x: Any) -> Any:
        return Estimate(**(x.__dict__ | labels)) if isinstance(x, Estimate) else x

    if isinstance(estimates, Estimate):
        return labelled(estimates)
    return trees.map(labelled, estimates, is_leaf=lambda x: isinstance(x, Estimate))


def normal_quantile(level: float) -> float:
    """Return z such that a standard normal variable is in [-z, z] with probability `level`."""
    return -NormalDist().inv_cdf((1 - check_level(level)) / 2)


def check_transform(transform: str | None, name: str = "transform") -> None:
    if transform is not None:
        check_option(transform, name, tuple(SCALES))


def normal_estimate(
    value: Array,
    error: Array,
    z: Array | float,
    transform: str | None = None,
    **known: Array | None,
) -> Estimate:
    low, high = _normal_interval(value, z * error, transform)
    return computed_estimate(value, low, high, error, **known)


def computed_estimate(
    value: Array, low: Array, high: Array, error: Array, **known: Array | None
) -> Estimate:
    """Make an estimate that does not come from replicates."""
    return Estimate(value, low, high, error, xp.zeros(np.shape(value), xp.int32), **known)


def _normal_interval(value: Array, reach: Array, transform: str | None) -> tuple[Array, Array]:
    """Return the ends of the interval, which are NaN if the value is outside of the domain of the
    scale.
    """
    if transform is None:
        return value - reach, value + reach
    scale = SCALES[transform]
    almost = 1 - 2 * xp.finfo(value.dtype).eps  # rounding may move an end away from 1
    inside = (value > scale.lowest * almost) & (value < scale.highest * almost)
    v = xp.where(inside, value, 0.5)  # 0.5 is inside all scales
    centre, reach = scale.transform(v), reach / scale.slope_of_inverse(v)
    with np.errstate(over="ignore"):  # an end may be infinite
        ends = scale.inverse(xp.stack([centre - reach, centre + reach]))
    low, high = xp.where(inside, ends, xp.nan)
    return low, high
