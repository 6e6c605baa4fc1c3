"""What reports hold, whatever they are written as."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics.reports.values import ComparedValue, ReportedValue, as_json

__all__: list[str] = []


@dataclass(frozen=True, eq=False)
class ReportContents:
    """The numbers of a `Report`, which says what they are."""

    counts: np.ndarray
    class_names: tuple[str, ...]
    level: float
    num_ignored: int
    overall: Mapping[str, ReportedValue]
    per_class: Mapping[str, Sequence[ReportedValue]]
    score_histogram: np.ndarray | None = None
    calibration_bins: np.ndarray | None = None
    calibrated_event: str | None = None
    num_clusters: int | None = None

    def __iter__(self) -> Iterator[str]:
        """List the names of overall values, then of those of each class."""
        return iter(dict.fromkeys([*self.overall, *self.per_class]))

    def __getitem__(self, name: str) -> Any:
        """Return an overall value by its name, or those of the classes by their names."""
        if name in self.overall:
            return self.overall[name]
        if name in self.per_class:
            return dict(zip(self.class_names, self.per_class[name], strict=True))
        raise KeyError(f"{name!r} is not reported; there are {', '.join(self)}")

    @cached_property
    def num_examples(self) -> float:
        """Sums the counts: the number of examples, or their total weight."""
        return self.counts.sum().item()

    @cached_property  # for each class it is asked for
    def support(self) -> np.ndarray:
        """Counts the examples of each class in truth."""
        return self.counts.sum(-1)

    @property
    def notes(self) -> dict[str, str]:
        """Gives the notes of the overall values that have one."""
        return {name: x.note for name, x in self.overall.items() if x.note}

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers; undefined numbers are None."""
        return {
            "num_examples": self.num_examples,
            "num_ignored": self.num_ignored,
            **({} if self.num_clusters is None else {"num_clusters": self.num_clusters}),
            "level": self.level,
            **values_as_json(self.overall, self.per_class, self.class_names, self.support),
            "confusion_matrix": self.counts.tolist(),
        }


def values_as_json(
    overall: Mapping[str, ReportedValue],
    per_class: Mapping[str, Sequence[ReportedValue]],
    names: Sequence[str],
    support: np.ndarray,
    kind: str = "classes",
) -> dict[str, Any]:
    """Write overall values, and values of each class or label with the number of its examples."""
    of_kind = [
        {"name": name, "support": n} | {key: as_json(x[i]) for key, x in per_class.items()}
        for i, (name, n) in enumerate(zip(names, support.tolist(), strict=True))
    ]
    return {"overall": {name: as_json(x) for name, x in overall.items()}, kind: of_kind}


class Findings(NamedTuple):
    """What is added to a report: values by name, values of each class, tables for its pictures."""

    overall: Mapping[str, ReportedValue] = {}
    per_class: Mapping[str, Sequence[ReportedValue]] = {}
    tables: Mapping[str, Any] = {}


@dataclass(frozen=True, eq=False)
class ComparisonContents:
    """The numbers of a `ComparisonReport`, which says what they are."""

    counts: np.ndarray
    class_names: tuple[str, ...]
    num_ignored: int
    names: tuple[str, str]
    level: float
    rope: float
    figures: Mapping[str, ComparedValue]
    only_right_per_class: np.ndarray
    p_value: float
    num_clusters: int | None = None

    def __iter__(self) -> Iterator[str]:
        """List the names of the values."""
        return iter(self.figures)

    def __getitem__(self, name: str) -> ComparedValue:
        """Return a value of both and their difference by its name."""
        if name in self.figures:
            return self.figures[name]
        raise KeyError(f"{name!r} is not reported; there are {', '.join(self)}")

    @property
    def num_examples(self) -> int:
        """Counts the examples that were compared."""
        return int(self.counts[0].sum())

    @property
    def num_classes(self) -> int:
        """Counts the classes, K."""
        return len(self.class_names)

    @property
    def only_right(self) -> tuple[int, int]:
        """Counts the examples that only A has right, and only B."""
        of_a, of_b = self.only_right_per_class.sum(0).tolist()
        return of_a, of_b

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers; undefined numbers are None."""
        only_a, only_b = self.only_right
        classes = zip(
            self.class_names,
            self.counts[0].sum(1).tolist(),
            self.only_right_per_class.tolist(),
            strict=True,
        )
        return {
            "num_examples": self.num_examples,
            "num_ignored": self.num_ignored,
            **({} if self.num_clusters is None else {"num_clusters": self.num_clusters}),
            "num_classes": self.num_classes,
            "names": list(self.names),
            "level": self.level,
            "rope": self.rope,
            "figures": {name: as_json(x) for name, x in self.figures.items()},
            "mcnemar": {"only_a": only_a, "only_b": only_b, "p_value": self.p_value},
            "classes": [
                {"name": name, "support": support, "only_a": of_a, "only_b": of_b}
                for name, support, (of_a, of_b) in classes
            ],
        }


def json_of(report: Mapping[str, Any]) -> str:
    """Write a report as JSON, with a line for each row of a confusion matrix, which stands last.

    Its cells, 16 million for 4096 classes, are thus written by the compiled encoder, which knows no
    indent.
    """
    matrix = report.get("confusion_matrix")
    rest = report if matrix is None else {**report, "confusion_matrix": []}
    text = json.dumps(rest, indent=2, allow_nan=False, ensure_ascii=False)
    if matrix is None:
        return text + "\n"
    rows = ",\n    ".join(map(json.dumps, matrix))
    return text.removesuffix("[]\n}") + f"[\n    {rows}\n  ]\n}}\n"
