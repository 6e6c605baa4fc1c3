"""The options and commands, and the options of each command."""

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
        "Column of the predicted class (default: y_pred, or else predicted from the probabilities)."
    ),
    "preds": _option(
        "Column of the predicted class (default: y_pred). For a single FILE, repeat it for each"
        " classifier (default: all columns that begin with y_pred).",
        action="append",
        default=[],
    ),
    "value": _option(
        "Column of scores per item (0 and 1, true and false, or grades) instead of truth and"
        " predictions. Leaderboard of a single FILE: COLUMN,..., one per system."
    ),
    "bounds": _option(
        "Least and greatest possible score of --value (default: 0,1 if all scores lie between"
        " them, otherwise no bounds).",
        "LOW,HIGH",
    ),
    "weight": _option("Column of sample weights (2 = the row written twice)."),
    "prob": _option(
        "Prefix of the columns of probabilities, such as prob_cat for class cat; or a column of"
        " lists, an (n, K) array, or one column with the probability of the positive class.",
        "PREFIX",
    ),
    "score": _option("Column of scores of the positive class, on any scale; adds the ROC AUC."),
    "threshold": _option(
        "Least score or probability for which the positive class is predicted (default: 0.5 for"
        " one column of probabilities).",
        "NUMBER",
        type=float,
    ),
    "pos-label": _option(
        "Positive class; all others are negative (with --score, the default is 1).", "CLASS"
    ),
    "labels-prefix": _option(
        "Multilabel problem: prefix of the columns of true labels, and prefix of the columns of"
        " predicted labels, all 0 or 1.",
        ("TRUE", "PRED"),
        nargs=2,
    ),
    "group": _option(
        "Column of groups, such as tasks or patient subgroups: adds a report per group, and"
        " differences between groups. compare and leaderboard need --value with it; a leaderboard"
        " then ranks by the mean of group means."
    ),
    "id": _option(
        "Column of ids by which the rows of the files are matched (default: row by row); with"
        " --value also COLUMN,... such as item and attempt."
    ),
    "id-of-examples": _option(
        "Column of ids that is shown with --examples; with --value also COLUMN,... that must be"
        " unique."
    ),
    "examples": _option(
        "How many misclassified rows to list, from the most frequent mistakes (compare: rows that"
        " only one of the two predicts correctly), the most confident first if there are"
        " probabilities (default: 0).",
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
        "Column of cluster ids, for correlated examples such as images of one patient: clusters are"
        " then the independent units."
    ),
    "prevalence": _option(
        "Restate the metrics for a population in which the classes have these shares.",
        "CLASS=SHARE,...",
    ),
    "ignore": _option(
        "Leave out rows with this label (repeatable).", "LABEL", action="append", default=[]
    ),
    "counts": {
        "help": "FILE contains a confusion matrix, row = true class, or a long table of its cells"
        " (y_true, y_pred, count).",
        "action": "store_true",
        "default": False,
    },
    "metric": _option(
        "Metric: accuracy (default), balanced_accuracy, macro_f1, weighted_f1, matthews_corrcoef"
        " or cohen_kappa; with --pos-label also precision, recall, specificity or f1.",
        "METRIC",
        default="accuracy",
    ),
    "rope": _option(
        "Region of practical equivalence: differences up to this size do not matter (default: 0).",
        "NUMBER",
        type=float,
        default=0.0,
    ),
    "gate": _option(
        "Bound that a metric (compare: the difference A - B) must satisfy (repeatable); also METRIC"
        " <= NUMBER and, in a report, METRIC[CLASS] >= NUMBER. Exit code 0: passed, the whole"
        " interval satisfies the bound; 1: failed, no part of it does; 3: undecided, the interval"
        " straddles the bound; 2: an error in the input or the output.",
        "'METRIC >= NUMBER'",
        action="append",
        default=[],
    ),
    "half-width": _option("Half of the wanted width of the interval.", "NUMBER", type=float),
    "difference": _option(
        "Difference between the two classifiers to detect.", "NUMBER", type=float
    ),
    "power": _option(
        "Probability of detecting the difference, the power (default: 0.8).",
        "NUMBER",
        type=float,
        default=0.8,
    ),
    "classes": _option("Names of the classes, separated by commas.", "NAME,..."),
    "separator": _option(
        r"Separator of the columns of text: ';', '\t', ... (default: a comma; a tab in .tsv).",
        "CHARACTER",
    ),
    "level": _option(
        "Confidence level of the intervals (default: 0.95).", "NUMBER", type=float, default=0.95
    ),
    "output": _option(
        f"Write {_WRITTEN}; the suffix of FILE selects the format (repeatable).",
        "FILE",
        action="append",
        type=Path,
        default=[],
    ),
    "output-of-states": _option(
        f"Write the merged state to .npz, or {_WRITTEN}; the suffix of FILE selects the format"
        " (repeatable).",
        "FILE",
        action="append",
        type=Path,
        default=[],
    ),
    "html": _option("Write an HTML page to FILE, whatever its suffix.", "FILE", type=Path),
    "json": _option(
        "Write JSON to FILE, whatever its suffix; without FILE, or with -, to standard output.",
        "FILE",
        nargs="?",
        const="-",
    ),
    "format": _option(
        "Format of the printed report: text (default), markdown, json, csv or every-eval-ever"
        " (JSON in the Every Eval Ever schema).",
        "FORMAT",
        default="text",
    ),
}
OF_ANY_REPORT = ("separator", "level", "output", "html", "json", "format")
_TYPED = {
    "preds": "pred",
    "output-of-states": "output",
    "id-of-examples": "id",
}  # options with several help texts


class _Command(NamedTuple):
    """A command: its module, a summary, its files, and its options."""

    module: str
    summary: str
    files: dict[str, dict[str, Any]]
    options: str


COMMANDS = {
    "report": _Command(
        "_commands",
        "Classification report of a file of predictions: metrics per class and overall, with"
        " confidence intervals.",
        {
            "file": {
                "help": f"Predictions: {_READ}. Messages count rows from 1, without the header."
            }
        },
        "true pred value bounds weight prob score threshold pos-label labels-prefix group cluster"
        " prevalence ignore counts gate examples id-of-examples show separator level output html"
        " json format",
    ),
    "compare": _Command(
        "_comparing",
        "Compare two classifiers on the same examples: paired differences with confidence"
        " intervals, and McNemar's test.",
        {
            "a": {"help": f"Predictions: {_READ}. Messages count rows from 1, without the header."},
            "b": {"help": "Predictions of the other classifier for the same examples."},
        },
        "true pred value bounds prob score threshold pos-label id cluster group ignore rope gate"
        " examples show separator level output html json format",
    ),
    "leaderboard": _Command(
        "_comparing",
        "Rank classifiers on the same examples: confidence intervals of ranks, tiers of tied"
        " classifiers, the probability that each is best, and the winner's value corrected for its"
        " selection.",
        {
            "files": {
                "help": f"Predictions for the same examples: {_READ.partition(';')[0]}.",
                "metavar": "FILE",
                "nargs": "+",
            }
        },
        "true preds value bounds metric pos-label id cluster group ignore separator level output"
        " html json format",
    ),
    "plan": _Command(
        "_comparing",
        "Estimate how many examples a test set needs: for an interval of a given width, or to"
        " detect a difference between two classifiers.",
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
        "Merge evaluation states saved by several hosts, and report on all of their examples.",
        {"files": {"help": "Files written by save_state.", "metavar": "STATE", "nargs": "+"}},
        "classes level output-of-states html json format",
    ),
}


class Parser(argparse.ArgumentParser):
    """Argument parser whose errors are one line."""

    def __init__(self, prog: str, description: str, usage: str, **more: Any) -> None:
        super().__init__(
            prog=prog,
            description=description,
            usage=f"{prog} {usage}",
            allow_abbrev=False,
            **more,
        )

    def format_help(self) -> str:
        """Return the help text, beginning with a capital."""
        text = super().format_help()
        return text[:1].upper() + text[1:]

    def error(self, message: str) -> NoReturn:
        """Print the error as one line, and exit."""
        refuse(f"{message}; see {self.prog} --help")


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
    """List the given options, except those that are allowed."""
    values = vars(given)
    typed = {name: _TYPED.get(name, name) for name in COMMANDS[command].options.split()}
    return [
        f"--{option}"
        for name, option in typed.items()
        if name not in (*allowed, *OF_ANY_REPORT)
        and values[option.replace("-", "_")] != _OPTIONS[name].get("default")
    ]


def refuse(message: str) -> NoReturn:
    """Print a message as one line without control characters, and exit with code 2."""
    print(f"jaxmetrics: {printable(message)}", file=sys.stderr)
    raise SystemExit(2)
