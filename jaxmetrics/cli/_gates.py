"""Gates: what a comparison must show, for a change to pass."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

from jaxmetrics._wording import title_of
from jaxmetrics.cli._errors import InputError, shortened
from jaxmetrics.reports.contents import ReportedValue, value_cell
from jaxmetrics.reports.formats import escaped
from jaxmetrics.reports.pairs import ComparisonReport

__all__: list[str] = []

_GATE = re.compile(r"\s*(\S+?)\s*(>=|<=)\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*")


class Verdict(IntEnum):
    """What the interval of a difference says of a gate: the exit code of the command."""

    PASSED = 0
    FAILED = 1
    UNKNOWN = 3

    @property
    def sentence(self) -> str:
        """Say it in words."""
        return {
            Verdict.PASSED: "passed",
            Verdict.FAILED: "failed",
            Verdict.UNKNOWN: "not known: more examples would tell",
        }[self]


class Gate(NamedTuple):
    """A bound that the difference A - B of a metric must keep."""

    metric: str
    is_lower: bool
    bound: float
    text: str

    def judge(self, difference: ReportedValue) -> Verdict:
        """Judge by the interval: passed if all of it keeps the bound, failed if nothing does."""
        worst, best = difference.low - self.bound, difference.high - self.bound
        if not self.is_lower:
            worst, best = -best, -worst
        if worst >= 0:  # NaN, where there is no interval, is neither
            return Verdict.PASSED
        return Verdict.FAILED if best < 0 else Verdict.UNKNOWN


def parsed(text: str) -> Gate:
    """Parse `METRIC >= NUMBER` or `METRIC <= NUMBER`."""
    match = _GATE.fullmatch(text)
    if match is None or not math.isfinite(float(match[3])):
        raise InputError(
            "--gate must be like 'macro_f1 >= -0.01' or 'log_loss <= 0.02', got"
            f" {shortened(text)!r}"
        )
    name, sign, bound = match.groups()
    return Gate(name, sign == ">=", float(bound), text.strip())


@dataclass(frozen=True, eq=False, repr=False)
class GatedReport(ComparisonReport):
    """A comparison with the verdicts on its gates, which stand where they are read first."""

    verdicts: Sequence[tuple[Gate, ReportedValue, Verdict]] = ()

    @classmethod
    def of(cls, report: ComparisonReport, gates: Sequence[Gate]) -> GatedReport:
        """Judge a comparison."""
        verdicts = []
        for gate in gates:
            if gate.metric not in report.figures:
                known = ", ".join(report.figures)
                raise InputError(
                    f"--gate: no metric {shortened(gate.metric)!r} is compared; known are {known}"
                )
            difference = report.figures[gate.metric].difference
            verdicts.append((gate, difference, gate.judge(difference)))
        return cls(**vars(report), verdicts=verdicts)

    @property
    def exit_code(self) -> int:
        """Gives 1 if a gate failed, else 3 if one is not known, else 0."""
        found = {verdict for _, _, verdict in self.verdicts}
        order = Verdict.FAILED, Verdict.UNKNOWN
        return next((int(x) for x in order if x in found), int(Verdict.PASSED))

    def to_dict(self) -> dict[str, Any]:
        """Add the verdicts."""
        gates = [
            {"gate": gate.text, "verdict": verdict.name.lower()}
            for gate, _, verdict in self.verdicts
        ]
        return super().to_dict() | ({"gates": gates} if gates else {})

    def to_text(self) -> str:
        """Write the report, and at its end what the gates say."""
        lines = [
            f"Gate {gate.text}: {verdict.sentence}; {title_of(gate.metric)} A - B"
            f" {value_cell(difference)}.\n"
            for gate, difference, verdict in self.verdicts
        ]
        return super().to_text() + "".join(lines)

    def to_markdown(self) -> str:
        """Write what the gates say, then the report."""
        lines = [
            f"- **{verdict.sentence}**: {escaped(gate.text)}; A - B {value_cell(difference)}"
            for gate, difference, verdict in self.verdicts
        ]
        return "\n".join([*lines, ""] * bool(lines) + [super().to_markdown()])
