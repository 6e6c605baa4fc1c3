"""Gates for continuous integration: bounds that values of a report must satisfy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from jaxmetrics._text.wording import printable, title_of
from jaxmetrics.reports.values import ReportValue

__all__: list[str] = []

_GATE = re.compile(
    r"\s*([^\s\[]+)(?:\[(.+)\])?\s*(>=|<=)\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*",
    re.DOTALL,  # the name of a class may contain a line break
)

QUANTILE_OF_POWER = 0.8416  # of the standard normal distribution, for a power of 80 %
_MOST_EXAMPLES = 1e12  # a larger number of examples is not written


class Verdict(IntEnum):
    """Verdict of a gate; its number is the exit code of the command line."""

    PASSED = 0
    FAILED = 1
    UNKNOWN = 3


class Gate(NamedTuple):
    """A bound for a metric, `accuracy >= 0.9`, or for its value in a class, `recall[cat] >= .8`."""

    name: str
    of_class: str | None
    is_lower: bool
    bound: float
    text: str

    @classmethod
    def parsed(cls, text: str) -> Gate:
        """Parse `METRIC >= NUMBER`, `METRIC <= NUMBER` or `METRIC[CLASS] >= NUMBER`.

        Raises:
            ValueError: the text has another form.
        """
        match = _GATE.fullmatch(text)
        if match is None or not math.isfinite(float(match[4])):
            raise ValueError("no gate")
        name, of_class, sign, bound = match.groups()
        return cls(name, of_class, sign == ">=", float(bound), text.strip())

    def judge(self, x: ReportValue) -> Verdict:
        """Return the verdict: passed if the whole interval satisfies the bound, failed if no part
        of the interval does, and otherwise unknown.
        """
        worst, best = x.low - self.bound, x.high - self.bound
        if not self.is_lower:
            worst, best = -best, -worst
        if worst >= 0:  # false for NaN, if there is no interval
            return Verdict.PASSED
        return Verdict.FAILED if best < 0 else Verdict.UNKNOWN

    def more(self, x: ReportValue, number: float) -> float:
        """Return how many more examples would decide the gate if the value stayed the same.

        The distance between the value and the end of the interval on the side of the bound is
        inversely proportional to the square root of the number of examples, or to the number of
        examples if the standard error is 0, as without mistakes or without differing predictions.
        """
        end = x.low if x.value > self.bound else x.high
        distance = abs(x.value - self.bound)
        ratio = abs(x.value - end) / distance if distance > 0 else math.inf
        return number * (ratio ** (2 if x.standard_error else 1) - 1)


def _rounded_up(x: float, least: float = 0.0) -> float:
    """Round up to two significant digits, or to multiples of `least`, because estimates are not
    more accurate.
    """
    unit = max(10.0 ** (math.floor(math.log10(x)) - 1), least)
    return math.ceil(x / unit) * unit


class JudgedGate(NamedTuple):
    """A gate with its value and verdict.

    Attributes:
        gate: the gate.
        what: what the value describes, such as "A - B", or "".
        value: the value with its interval.
        verdict: the verdict.
        more: how many more of the independent units would decide the gate.
        number, units: the number and the name of the independent units: examples, items or
            clusters.
        missing: which scores are missing, and the value in the worst case; or "".
    """

    gate: Gate
    what: str
    value: ReportValue
    verdict: Verdict
    more: float
    number: float
    units: str = "examples"
    missing: str = ""

    @property
    def verdict_in_words(self) -> str:
        """The verdict in words."""
        if self.missing:
            word = "undecided" if self.verdict is Verdict.UNKNOWN else self.verdict.name.lower()
            return f"{word} ({self.missing})"
        if self.verdict is not Verdict.UNKNOWN:
            return self.verdict.name.lower()
        if not self.value.has_interval:
            return "undecided (the value has no confidence interval)"
        if self.more >= _MOST_EXAMPLES:
            return f"undecided (the value is at the bound{self._margin()})"
        number = f"about {_rounded_up(self.more, 1):,.0f} " if self.more > 0 else ""
        return f"undecided ({number}more {self.units} would decide it{self._margin()})"

    def _margin(self) -> str:
        """Write which margin of a difference the present number of units supports, if the margin of
        the gate is smaller.
        """
        low, value, high = self.value.low, self.value.value, self.value.high
        sign, side = (-1, value - low) if self.gate.is_lower else (1, high - value)
        margin = side + QUANTILE_OF_POWER * self.value.standard_error
        if not (self.what and 0 <= sign * self.gate.bound < margin):
            return ""
        return (
            f"; if A and B are equal, {self.number:,.10g} {self.units} like these pass"
            f" {'>=' if self.gate.is_lower else '<='} {sign * _rounded_up(margin):g} with 80 %"
            " power"
        )

    @property
    def name(self) -> str:
        """The name of the value, such as "recall, cat"."""
        of_class = [printable(self.gate.of_class)] if self.gate.of_class else []
        name = ", ".join([title_of(self.gate.name), *of_class])
        return f"{name} {self.what}".rstrip()

    def sentence(self) -> str:
        """Write the gate and its verdict as one sentence."""
        text = printable(self.gate.text)
        return f"Gate {text}: {self.verdict_in_words}; {self.name} is {self.value}."

    def content(self) -> dict[str, Any]:
        """Return the gate and its verdict for JSON."""
        more = self.more if self.verdict is Verdict.UNKNOWN and math.isfinite(self.more) else None
        parts = {"gate": self.gate.text, "verdict": self.verdict.name.lower()}
        parts |= {"reason": self.missing} if self.missing else {}
        key = "more_clusters" if self.units == "clusters" else "more_examples"
        return parts | ({} if more is None else {key: math.ceil(more)})


def judged(
    gates: Sequence[Gate],
    value: Callable[[Gate, float], ReportValue],
    *,
    level: float,
    number: float,
    units: str = "examples",
    what: str = "",
    missing: str = "",
    worst: Callable[[Gate], ReportValue] | None = None,
) -> list[JudgedGate]:
    """Decide gates from the intervals of their values.

    A gate passes if its interval at `level` satisfies the bound. If scores are missing, it passes
    only if the interval in the worst case does, too. The report passes only if all gates pass, so
    several gates do not make a wrong pass more likely than a single gate: Berger (1982),
    Technometrics 24. The report fails if any of the gates fails, so failures are corrected for
    multiple testing by the step-down procedure of Holm (1979), Scandinavian Journal of Statistics
    6.

    Args:
        gates: the gates.
        value: a function of a gate and a confidence level that returns the value of the gate with
            its interval.
        level: the confidence level of each interval, 1 - α.
        number, units: the number and the name of the independent units.
        what: what the values describe, such as "A - B".
        missing: which scores are missing, or "".
        worst: a function of a gate that returns its value if missing scores are the worst that are
            possible; None if scores have no bounds.
    """
    values = [value(gate, level) for gate in gates]
    verdicts = [gate.judge(x) for gate, x in zip(gates, values, strict=True)]
    suspected = [i for i, x in enumerate(verdicts) if x is Verdict.FAILED]
    number_failed = 0
    while suspected:
        joint = 1 - (1 - level) / (len(gates) - number_failed)
        at_joint = {i: gates[i].judge(value(gates[i], joint)) for i in suspected}
        unclear = [i for i, x in at_joint.items() if x is not Verdict.FAILED]
        if len(unclear) == len(suspected):
            break
        number_failed += len(suspected) - len(unclear)
        suspected = unclear
    for i in suspected:
        verdicts[i] = Verdict.UNKNOWN
    results = []
    for gate, x, verdict in zip(gates, values, verdicts, strict=True):
        more, reason = gate.more(x, number), missing
        if verdict is Verdict.UNKNOWN:  # also without missing scores
            reason = ""
        elif missing and verdict is Verdict.PASSED:
            at_worst = None if worst is None else worst(gate)
            if at_worst is None or gate.judge(at_worst) is not Verdict.PASSED:
                verdict, more = Verdict.UNKNOWN, math.inf
            found = "unknown without bounds" if at_worst is None else str(at_worst)
            reason = f"{missing}; in the worst case, {what or 'the value'} is {found}"
        results.append(JudgedGate(gate, what, x, verdict, more, number, units, reason))
    return results


def contents_of(gates: Sequence[JudgedGate]) -> dict[str, Any]:
    """Return the gates for JSON, or an empty dict if there are none."""
    return {"gates": [x.content() for x in gates]} if gates else {}


def exit_code(gates: Sequence[JudgedGate]) -> int:
    """Return 1 if a gate failed, otherwise 3 if a gate is undecided, otherwise 0."""
    verdicts = {x.verdict for x in gates}
    return int(Verdict.FAILED if Verdict.FAILED in verdicts else max(verdicts, default=0))
