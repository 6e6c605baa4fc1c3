"""What can be typed: each option once, and which of them each command takes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from jaxmetrics._wording import printable

__all__: list[str] = []

_READ = (
    ".csv, .tsv, .jsonl (.gz, .zst), .parquet, .arrow, .npz; a folder or glob of parts; - for"
    " standard input"
)
_WRITTEN = (
    "the report to .html (a page with pictures), .json, .md (Markdown) or .csv (one line per value)"
)


def _file(name: str) -> Path:
    """Return the path of a file; an empty name would mean the current folder."""
    if not name:
        raise argparse.ArgumentTypeError("the name of a file is empty")
    return Path(name)


def _option(help: str, metavar: str | tuple[str, str] = "COLUMN", **more: Any) -> dict[str, Any]:
    return {"help": help, "metavar": metavar, **more}


_OPTIONS: dict[str, dict[str, Any]] = {
    "true": _option("Column of the true class (default: y_true).", default="y_true"),
    "pred": _option(
        "Column of the predicted class (default: y_pred, else what the probabilities say)."
    ),
    "preds": _option(
        "Column of the predicted class; of a single FILE one for each classifier (repeatable;"
        " default: y_pred; of a single FILE all that begin with y_pred).",
        action="append",
        default=[],
    ),
    "value": _option(
        "Column of scores per item, 0 and 1, true and false or grades, in place of truth and"
        " predictions (of a leaderboard of a single FILE: COLUMN,... of the systems)."
    ),
    "bounds": _option(
        "Least and greatest possible score of --value (default: 0,1 if all scores lie between"
        " them, else none).",
        "LOW,HIGH",
    ),
    "weight": _option("Column of weights (2 = the row written twice)."),
    "prob": _option(
        "Prefix of the columns of probabilities, prob_cat for class cat; or a column of lists, an"
        " (n, K) array, or one column of the probability of the positive class.",
        "PREFIX",
    ),
    "score": _option("Column of scores of the positive class, of any scale: adds the ROC AUC."),
    "threshold": _option(
        "Predict the positive class from this score, or probability, on (default: 0.5 for one"
        " column of probabilities).",
        "NUMBER",
        type=float,
    ),
    "pos-label": _option(
        "Positive class, set against all others; of scores 1 if not given.", "CLASS"
    ),
    "labels-prefix": _option(
        "Prefixes of the columns of 0 and 1, of truth and predictions, of examples with any number"
        " of labels.",
        ("TRUE", "PRED"),
        nargs=2,
    ),
    "group": _option(
        "Column of groups, such as tasks: a report on each, and how much they differ (of compare:"
        " with --value)."
    ),
    "id": _option("Column to join the rows by; without it, row by row."),
    "id-of-examples": _option("Column that names the rows of --examples."),
    "examples": _option(
        "List so many rows of the most frequent mistakes (of compare: on which only one of the two"
        " is right), the most confident first where there are probabilities (default: 0).",
        "NUMBER",
        type=int,
        default=0,
    ),
    "show": _option(
        "Columns to show with --examples.",
        "COLUMN,...",
        type=lambda names: tuple(names.split(",")),
        default=(),
    ),
    "cluster": _option(
        "Column of ids of examples that may be alike, as those of one patient: they are then the"
        " independent units."
    ),
    "prevalence": _option(
        "Restate the metrics as of examples among which the classes have these shares.",
        "CLASS=SHARE,...",
    ),
    "ignore": _option(
        "Leave out rows with this label (repeatable).", "LABEL", action="append", default=[]
    ),
    "counts": {
        "help": "FILE holds a confusion matrix, row = true class, or a long table of its cells"
        " (y_true, y_pred, count).",
        "action": "store_true",
        "default": False,
    },
    "metric": _option(
        "accuracy (the default), balanced_accuracy, macro_f1, weighted_f1, matthews_corrcoef or"
        " cohen_kappa; with --pos-label also precision, recall, specificity or f1.",
        "METRIC",
        default="accuracy",
    ),
    "rope": _option(
        "Differences up to this size do not matter (default: 0).",
        "NUMBER",
        type=float,
        default=0.0,
    ),
    "gate": _option(
        "A bound that a value, of compare the difference A - B, must keep (repeatable); also METRIC"
        " <= NUMBER and, in a report, METRIC[CLASS] >= NUMBER. Exit code 0: passed, its whole"
        " interval keeps the bound; 1: failed, nothing of it does; 3: not known, the interval"
        " straddles the bound; 2: something was wrong with the input or the output.",
        "'METRIC >= NUMBER'",
        action="append",
        default=[],
    ),
    "half-width": _option("Half of the width that the interval is to have.", "NUMBER", type=float),
    "difference": _option(
        "Difference between the two FILEs that is to be shown.", "NUMBER", type=float
    ),
    "power": _option("Probability to show it (default: 0.8).", "NUMBER", type=float, default=0.8),
    "classes": _option("Names of the classes, separated by commas.", "NAME,..."),
    "separator": _option(
        r"What separates the columns of text: ';', '\t', ... (default: a comma; a tab in .tsv).",
        "CHARACTER",
    ),
    "level": _option("Level of the intervals (default: 0.95).", "NUMBER", type=float, default=0.95),
    "output": _option(
        f"Write {_WRITTEN}, as the suffix of the file says (repeatable).",
        "FILE",
        action="append",
        type=Path,
        default=[],
    ),
    "output-of-states": _option(
        f"Write the merged state to .npz, {_WRITTEN}, as the suffix of the file says (repeatable).",
        "FILE",
        action="append",
        type=Path,
        default=[],
    ),
    "html": _option("Short for --output of a page, of any suffix.", "FILE", type=Path),
    "json": _option(
        "Short for --output of JSON, of any suffix; without a name, or with -, to standard output.",
        "FILE",
        nargs="?",
        const="-",
    ),
    "format": _option(
        "What is printed: text (the default), markdown, json or csv.", "FORMAT", default="text"
    ),
}
OF_ANY_REPORT = ("separator", "level", "output", "html", "json", "format")
_TYPED = {
    "preds": "pred",
    "output-of-states": "output",
    "id-of-examples": "id",
}  # of options that differ in their help


class _Command(NamedTuple):
    """What does it, a line about it, the files that it reads, and its options."""

    module: str
    summary: str
    files: dict[str, dict[str, Any]]
    options: str


COMMANDS = {
    "report": _Command(
        "_commands",
        "Report how good the predictions in FILE are, per class and overall, with intervals.",
        {"file": {"help": f"Predictions: {_READ}. Rows are counted from 1, without the header."}},
        "true pred value bounds weight prob score threshold pos-label labels-prefix group cluster"
        " prevalence ignore counts gate examples id-of-examples show separator level output html"
        " json format",
    ),
    "compare": _Command(
        "_comparing",
        "Compare two files of predictions for the same examples, in pairs: differences with"
        " intervals, and McNemar's test.",
        {
            "a": {"help": f"Predictions: {_READ}. Rows are counted from 1, without the header."},
            "b": {"help": "Others for the same examples."},
        },
        "true pred value bounds prob score threshold pos-label id cluster group ignore rope gate"
        " examples show separator level output html json format",
    ),
    "leaderboard": _Command(
        "_comparing",
        "Rank classifiers on the same examples: ranks with intervals, tiers of those that cannot"
        " be told apart, how probably each is best, and the winner corrected for having been"
        " chosen.",
        {
            "files": {
                "help": f"Predictions for the same examples: {_READ.partition(';')[0]}.",
                "metavar": "FILE",
                "nargs": "+",
            }
        },
        "true preds value bounds metric pos-label id cluster ignore separator level output html"
        " json format",
    ),
    "plan": _Command(
        "_comparing",
        "Say how many examples a test set needs: for an interval of a given width, or to show a"
        " difference between two classifiers.",
        {
            "files": {
                "help": "Predictions of a pilot study; or two FILEs, of two classifiers for the"
                " same examples.",
                "metavar": "FILE",
                "nargs": "+",
            }
        },
        "half-width difference power metric true pred value bounds pos-label id cluster ignore"
        " counts separator level output json format",
    ),
    "merge": _Command(
        "_states",
        "Merge the evaluation states that hosts have saved, and report on all of their examples.",
        {"files": {"help": "Files written by save_state.", "metavar": "STATE", "nargs": "+"}},
        "classes level output-of-states html json format",
    ),
}


class Parser(argparse.ArgumentParser):
    """Parses what is typed; what is wrong with it is one line."""

    def __init__(self, prog: str, description: str, usage: str, **more: Any) -> None:
        super().__init__(
            prog=prog,
            description=description,
            usage=f"{prog} {usage}",
            allow_abbrev=False,
            **more,
        )

    def format_help(self) -> str:
        """Begin with a capital, as sentences do."""
        text = super().format_help()
        return text[:1].upper() + text[1:]

    def error(self, message: str) -> NoReturn:
        """End with a line on standard error."""
        refuse(f"{message}; {self.prog} --help says what can be given")


def parser_of(command: str) -> Parser:
    """Return the parser of a command."""
    about = COMMANDS[command]
    files = " ".join(
        option.get("metavar", name.upper()) + "..." * ("nargs" in option)
        for name, option in about.files.items()
    )
    parser = Parser(f"jaxmetrics {command}", about.summary, f"{files} [OPTIONS]")
    for name, more in about.files.items():
        parser.add_argument(name, type=_file, **{"metavar": name.upper(), **more})
    for name in about.options.split():
        typed = _TYPED.get(name, name)
        parser.add_argument(f"--{typed}", **_OPTIONS[name])
    return parser


def given_beside(command: str, given: argparse.Namespace, *allowed: str) -> list[str]:
    """List the options that were given, but for those that are allowed."""
    values = vars(given)
    typed = {name: _TYPED.get(name, name) for name in COMMANDS[command].options.split()}
    return [
        f"--{option}"
        for name, option in typed.items()
        if name not in (*allowed, *OF_ANY_REPORT)
        and values[option.replace("-", "_")] != _OPTIONS[name].get("default")
    ]


def refuse(message: str) -> NoReturn:
    """End with a line on standard error, in which nothing controls the terminal."""
    print(f"jaxmetrics: {printable(message)}", file=sys.stderr)
    raise SystemExit(2)
