"""Trace functions to jaxprs, with their constants as arguments.

A program that was compiled for a user's function is valid as long as the function computes the
same. The code and the closure of the function do not show this, because the function may read
globals, attributes and objects that change, but the jaxpr does. Two traces share a program if their
jaxprs are equal up to the names of variables. Floating-point constants are not part of the jaxpr,
but arguments of the program. Rules of `custom_jvp` and `custom_vjp` are compared only where the
program may be differentiated, because each trace may contain a new function for the same rule.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmetrics._places.jax_imports import jax, trees

__all__: list[str] = []


class Jaxpr:
    """The jaxpr of a trace and the structure of its results.

    Objects are equal if their computations are equal.

    Attributes:
        jaxpr: the jaxpr, whose first arguments are the constants.
        differentiable: whether the results may be differentiated.
        key: the key by which objects are compared.
    """

    def __init__(self, jaxpr: Any, structure: Any, differentiable: bool) -> None:
        self.jaxpr, self.structure, self.differentiable = jaxpr, structure, differentiable
        self.key = structure, differentiable, _key_of_jaxpr(jaxpr, differentiable)
        self._hash = hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Jaxpr) and self.key == other.key

    def __call__(self, constants: Sequence[Any], arrays: Sequence[Any]) -> Any:
        with jax.debug_nans(False):  # JAX turns it off for operations that use NaN internally
            results = jax.core.eval_jaxpr(self.jaxpr, (), *constants, *arrays)
        return trees.unflatten(self.structure, results)


@dataclass(frozen=True, eq=False)
class TracedMetric:
    """The computation of a metric at the time it was traced; a pytree of its constants."""

    jaxpr: Jaxpr
    constants: tuple[Any, ...]

    def __call__(self, tables: Any) -> Any:
        table = self.jaxpr.jaxpr.invars[-1].aval
        if tables.ndim > table.ndim:
            return jax.vmap(self)(tables)
        return self.jaxpr(self.constants, [tables.astype(table.dtype)])

    @classmethod
    def of(cls, metric: Callable[..., Any], table: Any) -> TracedMetric:
        """Trace a metric of a table."""
        _register()
        return cls(*trace(metric, table, differentiable=True))


@functools.cache
def _register() -> None:
    jax.tree_util.register_pytree_node(
        TracedMetric, lambda x: (x.constants, x.jaxpr), lambda jaxpr, x: TracedMetric(jaxpr, x)
    )


def trace(
    function: Callable[..., Any], *arrays: Any, differentiable: bool
) -> tuple[Jaxpr, tuple[Any, ...]]:
    """Trace a function of arrays, and return the jaxpr and the constants."""
    # The lambda is new in each call, because JAX caches the jaxprs of functions.
    closed, shapes = jax.make_jaxpr(lambda *x: function(*x), return_shape=True)(*arrays)
    jaxpr = closed.jaxpr
    used = [*(x for eqn in jaxpr.eqns for x in eqn.invars), *jaxpr.outvars]
    literals: list[Any] = [x for x in used if _is_literal(x) and _is_inexact(x)]
    values = [np.asarray(x.val, x.aval.dtype) for x in literals]
    variables = jax.make_jaxpr(lambda *x: x)(*values).jaxpr.invars
    arguments = dict(zip(map(id, literals), variables, strict=True))

    def hoisted(atoms: Sequence[Any]) -> list[Any]:
        return [arguments.get(id(x), x) for x in atoms]

    with_arguments = jaxpr.replace(
        invars=[*variables, *jaxpr.constvars, *jaxpr.invars],
        constvars=[],
        eqns=[eqn.replace(invars=hoisted(eqn.invars)) for eqn in jaxpr.eqns],
        outvars=hoisted(jaxpr.outvars),
    )
    structure = jax.tree.structure(shapes)
    return Jaxpr(with_arguments, structure, differentiable), (*values, *closed.consts)


# The types of jaxprs and literals are only in `jax.extend`, which we must not import: in JAX 0.12
# the import adds an option of JAX, so that every program of the user would be compiled again.


def _is_jaxpr(x: Any) -> bool:
    return hasattr(x, "eqns")


def _is_literal(x: Any) -> bool:
    return hasattr(x, "val")


def _is_inexact(literal: Any) -> bool:
    return jax.numpy.issubdtype(literal.aval.dtype, jax.numpy.inexact)


_CALLS_WITH_RULES = ("custom_jvp_call", "custom_vjp_call")
_KEYS: weakref.WeakKeyDictionary[Any, dict[bool, Hashable]] = weakref.WeakKeyDictionary()


def _key_of_jaxpr(jaxpr: Any, with_rules: bool) -> Hashable:
    """Return a key of a jaxpr that ignores the names of variables and source lines."""
    keys = _KEYS.setdefault(jaxpr, {})  # JAX keeps one jaxpr per jitted function
    if with_rules in keys:
        return keys[with_rules]
    numbers: dict[Any, int] = {}

    def value(x: Any) -> Hashable:
        return _key_of_value(x, with_rules)

    def atom(x: Any) -> Hashable:
        if _is_literal(x):
            return value(x.aval), value(np.asarray(x.val))
        return numbers.setdefault(x, len(numbers)), x.aval

    def parameters(eqn: Any) -> Hashable:
        without_rule = not with_rules and eqn.primitive.name in _CALLS_WITH_RULES
        return value(eqn.params["call_jaxpr"] if without_rule else eqn.params)

    key = (
        tuple(map(atom, [*jaxpr.constvars, *jaxpr.invars])),
        tuple(
            (
                eqn.primitive,
                tuple(map(atom, eqn.invars)),
                parameters(eqn),
                tuple(map(atom, eqn.outvars)),
            )
            for eqn in jaxpr.eqns
        ),
        tuple(map(atom, jaxpr.outvars)),
    )
    keys[with_rules] = key
    return key


def _key_of_value(x: Any, with_rules: bool) -> Hashable:
    """Return a key of a parameter of an operation; a function is only equal to itself."""
    if _is_jaxpr(x):  # with constants, which before JAX 0.12 only a closed jaxpr has
        constants = getattr(x, "consts", ())
        return _key_of_jaxpr(getattr(x, "jaxpr", x), with_rules), _key_of_value(constants, False)
    if isinstance(x, tuple | list):
        return type(x), tuple(_key_of_value(item, with_rules) for item in x)
    if isinstance(x, dict):
        return tuple((name, _key_of_value(item, with_rules)) for name, item in x.items())
    if isinstance(x, jax.core.Tracer):
        return _Same(x)
    if isinstance(x, np.ndarray | np.generic | jax.Array | float | complex):
        array = np.asarray(x)
        return type(x), array.dtype, array.shape, array.tobytes()
    is_plain = isinstance(x, bool | int | str | bytes | np.dtype | type | None)
    is_of_jax = type(x).__module__.partition(".")[0] in ("jax", "jaxlib")
    return (type(x), x) if (is_plain or is_of_jax) and _is_hashable(x) else _Same(x)


def _is_hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


class _Same:
    """A wrapper that is only equal to a wrapper of the same object."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value
