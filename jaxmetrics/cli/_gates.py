"""Parse the gates of the option `--gate`, and decide them from the values of a report."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

from jaxmetrics.cli._errors import InputError, listed, shortened
from jaxmetrics.cli._options import refuse
from jaxmetrics.reports.gates import Gate, JudgedGate, judged
from jaxmetrics.reports.values import ReportValue

__all__: list[str] = []


def check_gates(given: Namespace) -> None:
    """Exit with an error if a gate cannot be parsed, before files are read."""
    for text in given.gate:
        try:
            Gate.parsed(text)
        except ValueError:
            refuse(
                "--gate must have a form such as 'accuracy >= 0.9', 'recall[cat] >= 0.8' or"
                f" 'log_loss <= 0.02', got {shortened(text)!r}"
            )


def verdicts(
    given: Namespace,
    values_at: Callable[[float], Mapping[str, Any]],
    number: float,
    what: str = "",
    verb: str = "reported",
) -> list[JudgedGate]:
    """Decide the gates.

    Args:
        given: the parsed arguments.
        values_at: a function of a confidence level that returns the values of the report; values
            per class are dicts.
        number: the number of examples.
        what: what the values describe, such as "A - B".
        verb: what was done with the metrics, for an error message: "reported" or "compared".
    """

    def value(gate: Gate, level: float) -> ReportValue:
        known = values_at(level)
        if gate.name not in known:
            raise InputError(
                f"--gate names the unknown metric {shortened(gate.name)!r}. The {verb} metrics are"
                f" {', '.join(known)}."
            )
        found = known[gate.name]
        if not isinstance(found, Mapping):
            if gate.of_class is not None:
                raise InputError(
                    f"--gate names a class for the metric {gate.name}, which has a single value"
                    " for all classes. Leave out the brackets and the class."
                )
            return found
        if gate.of_class not in found:
            raise InputError(
                f"--gate names the metric {gate.name}, which has one value for each class. Write"
                " one of the classes in brackets, such as"
                f" {gate.name}[{shortened(next(iter(found)))}]. The classes are {listed([*found])}."
            )
        return found[gate.of_class]

    gates = [Gate.parsed(text) for text in given.gate]
    return judged(gates, value, level=given.level, number=number, what=what)
