"""The options and commands, and the options of each command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from jaxmetrics._wording import printable

__all__: list[str] = []

_READ = (
    "a .csv, .tsv, .jsonl (also .gz or .zst), .parquet, .arrow or .npz file; a folder or glob"
    " pattern that stands for several such files; or - for standard input"
)
_WRITTEN = (
    "the report as .html (a page with pictures), .json, .md (Markdown) or .csv (one line per value)"
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
        "Column of the predicted class (default: y_pred; if the file has no column y_pred, the"
        " class is predicted from the probabilities)."
    ),
    "preds": _option(
        "Column of the predicted class (default: y_pred). If there is a single FILE, repeat --pred"
        " for each classifier (default: all columns that begin with y_pred).",
        action="append",
        default=[],
    ),
    "value": _option(
        "Column with a score per item (0 and 1, true and false, or grades) instead of truth and"
        " predictions. A leaderboard of one FILE needs a column per system, separated by commas."
    ),
    "bounds": _option(
        "Least and greatest possible score in the column of --value (default: 0,1 if all scores"
        " lie between 0 and 1, otherwise no bounds).",
        "LOW,HIGH",
    ),
    "weight": _option("Column of sample weights; a weight of 2 counts the row twice."),
    "prob": _option(
        "Prefix of the columns of probabilities, such as prob_ for prob_cat; or the name of a"
        " column of lists, of an (n, K) array, or of the probabilities of the positive class.",
        "PREFIX",
    ),
    "score": _option("Column of scores of the positive class, on any scale, for the ROC AUC."),
    "threshold": _option(
        "The positive class is predicted if its score or probability is at least NUMBER (default:"
        " 0.5 if --prob names a single column).",
        "NUMBER",
        type=float,
    ),
    "pos-label": _option(
        "Positive class; all others are negative. If --score is given, the default is 1.", "CLASS"
    ),
    "labels-prefix": _option(
        "For a multilabel problem: the prefix of the columns of true labels and the prefix of the"
        " columns of predicted labels. All labels are 0 or 1.",
        ("TRUE", "PRED"),
        nargs=2,
    ),
    "group": _option(
        "Column of groups, such as tasks or patient subgroups. The report then has the metrics of"
        " each group and, for predictions, differences between groups. In compare and leaderboard,"
        " --group needs --value; leaderboard then ranks by the mean of the group means."
    ),
    "id": _option(
        "Column of ids that match the rows of the files (default: rows match by their order). If"
        " --value is given, several columns may be named, such as item,attempt."
    ),
    "id-of-examples": _option(
        "Column of ids to show in the list of --examples. If --value is given, the ids must be"
        " unique, and several columns may be named, such as item,attempt."
    ),
    "examples": _option(
        "Number of misclassified rows to list (default: 0). The report lists rows of the most"
        " frequent mistakes; compare lists rows that only one of the two classifiers predicts"
        " correctly. If there are probabilities, the most confident predictions come first.",
        "NUMBER",
        type=int,
        default=0,
    ),
    "show": _option(
        "Columns to show in the list of --examples, separated by commas.",
        "COLUMN,...",
        type=lambda names: tuple(names.split(",")),
        default=(),
    ),
    "cluster": _option(
        "Column of cluster ids, for correlated examples such as images of one patient. The"
        " intervals then treat the clusters, not the examples, as independent."
    ),
    "prevalence": _option(
        "Convert the metrics to a population with these class shares, such as cat=0.1,dog=0.9.",
        "CLASS=SHARE,...",
    ),
    "ignore": _option(
        "Leave out rows whose true or predicted class is LABEL. The option may be repeated.",
        "LABEL",
        action="append",
        default=[],
    ),
    "counts": {
        "help": "FILE contains counts, not predictions: a confusion matrix whose rows are the true"
        " classes, or a table with the columns y_true, y_pred and count.",
        "action": "store_true",
        "default": False,
    },
    "metric": _option(
        "One of accuracy (default), balanced_accuracy, macro_f1, weighted_f1, matthews_corrcoef"
        " and cohen_kappa; if --pos-label is given, also precision, recall, specificity and f1.",
        "METRIC",
        default="accuracy",
    ),
    "rope": _option(
        "Region of practical equivalence: differences up to NUMBER do not matter (default: 0).",
        "NUMBER",
        type=float,
        default=0.0,
    ),
    "gate": _option(
        "Bound for a metric; in compare, for its difference A - B. Other forms: METRIC <= NUMBER"
        " and, in report, METRIC[CLASS] >= NUMBER. The option may be repeated. The exit code is 0"
        " (passed) if the whole interval satisfies the bound, 1 (failed) if no part of it does, 3"
        " (undecided) if the interval straddles the bound, and 2 if input or output has an error.",
        "'METRIC >= NUMBER'",
        action="append",
        default=[],
    ),
    "half-width": _option("Half of the desired width of the interval.", "NUMBER", type=float),
    "difference": _option(
        "Difference to detect between the two classifiers.", "NUMBER", type=float
    ),
    "power": _option(
        "Power of the test: the probability that it detects the difference (default: 0.8).",
        "NUMBER",
        type=float,
        default=0.8,
    ),
    "classes": _option("Names of the classes, separated by commas.", "NAME,..."),
    "separator": _option(
        r"Separator of columns in text, such as ';' or '\t' (default: a comma; in .tsv a tab).",
        "CHARACTER",
    ),
    "level": _option(
        "Confidence level of the intervals (default: 0.95).", "NUMBER", type=float, default=0.95
    ),
    "output": _option(
        f"Write {_WRITTEN}. The suffix of FILE selects the format. The option may be repeated.",
        "FILE",
        action="append",
        type=Path,
        default=[],
    ),
    "output-of-states": _option(
        f"Write the merged state as .npz, or {_WRITTEN}, by the suffix of FILE (may be repeated).",
        "FILE",
        action="append",
        type=Path,
        default=[],
    ),
    "html": _option("Write an HTML page to FILE, which may have any suffix.", "FILE", type=Path),
    "json": _option(
        "Write JSON to FILE, which may have any suffix; if FILE is - or left out, print the JSON.",
        "FILE",
        nargs="?",
        const="-",
    ),
    "format": _option(
        "Format of the printed report: text (default), markdown, json, csv, or every-eval-ever,"
        " which is JSON in the schema of Every Eval Ever.",
        "FORMAT",
        default="text",
    ),
}
OF_ANY_REPORT = ("separator", "level", "output", "html", "json", "format")
_TYPED = {
    "preds": "pred",
    "output-of-states": "output",
    "id-of-examples": "id",
}  # options whose help depends on the command, and their names for users


class _Command(NamedTuple):
    """A command: the module that runs it, a summary, the file arguments, and the options."""

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
            "b": {"help": "Predictions of the second classifier for the same examples."},
        },
        "true pred value bounds prob score threshold pos-label id cluster group ignore rope gate"
        " examples show separator level output html json format",
    ),
    "leaderboard": _Command(
        "_comparing",
        "Rank classifiers on the same examples: confidence intervals of ranks, tiers of classifiers"
        " that do not differ significantly, the probability that each classifier is the best, and"
        " the value of the winner, corrected for the selection of the winner.",
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
        "Estimate how many examples a test set needs: either for an interval of a given width, or"
        " to detect a difference between two classifiers.",
        {
            "files": {
                "help": "For --half-width: one FILE with predictions of a pilot study. For"
                " --difference: two FILEs, with predictions of two classifiers for the same rows.",
                "metavar": "FILE",
                "nargs": "+",
            }
        },
        "half-width difference power metric true pred value bounds pos-label id cluster ignore"
        " counts separator level output json format",
    ),
    "merge": _Command(
        "_states",
        "Merge evaluation states that several hosts saved, and report on all of their examples.",
        {"files": {"help": "File written by save_state.", "metavar": "STATE", "nargs": "+"}},
        "classes level output-of-states html json format",
    ),
}


class Parser(argparse.ArgumentParser):
    """Argument parser that prints each error as one line."""

    def __init__(self, prog: str, description: str, usage: str, **more: Any) -> None:
        super().__init__(
            prog=prog,
            description=description,
            usage=f"{prog} {usage}",
            allow_abbrev=False,
            **more,
        )

    def format_help(self) -> str:
        """Return the help text, with a capital as its first letter."""
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
    """List the options that the user gave, except the allowed options."""
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
