"""The options and commands, and the options of each command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from jaxmetrics._text.wording import filled, printable

_READ = (
    "a .csv, .tsv, .jsonl (also .gz or .zst), .json, .parquet, .arrow or .npz file; a folder or"
    " glob pattern that stands for several such files; or - for standard input"
)
_WRITTEN = (
    "the report as .html (a page with pictures), .json, .md (Markdown), .tex (LaTeX tables), .csv"
    " (one line per value), .txt or .eee (JSON of Every Eval Ever)"
)


def _file(name: str) -> Path:
    """Return the path of a file; an empty name would mean the current folder."""
    if not name:
        raise argparse.ArgumentTypeError("the name of a file is empty")
    return Path(name)


def _condition(text: str) -> tuple[str, str]:
    """Parse `COLUMN=VALUE`."""
    column, equals, value = text.partition("=")
    if not (column and equals):
        raise argparse.ArgumentTypeError(f"expected COLUMN=VALUE, got {text!r}")
    return column, value


def _label(name: str) -> str:
    """Return the name of a class as text, because polars raises if it is not valid UTF-8."""
    return name.encode("utf-8", "backslashreplace").decode()


def _classes(names: str) -> list[str]:
    """Split the names of classes."""
    classes = [_label(name.strip()) for name in names.split(",")]
    if len({*classes}) < len(classes):
        raise argparse.ArgumentTypeError(f"{names!r} names a class twice")
    return classes


def _option(help: str, metavar: str | tuple[str, str] = "COLUMN", **more: Any) -> dict[str, Any]:
    return {"help": help, "metavar": metavar, **more}


_OPTIONS: dict[str, dict[str, Any]] = {
    "true": _option("Column of the true class (default: y_true).", default="y_true"),
    "pred": _option(
        "Column of the predicted class (default: y_pred). If the file has no column y_pred, the"
        " predicted class is computed from the columns of probabilities."
    ),
    "value": _option(
        "Column of scores. Use this option if a file contains one score for each item instead of"
        " a true and a predicted class. A score is a number, such as a grade or 0 or 1, or it is"
        " true or false."
    ),
    "bounds": _option(
        "Least and greatest score that is possible in the column of --value. If --bounds is not"
        " given and all scores lie between 0 and 1, the bounds are 0,1. If --bounds is not given"
        " and a score lies outside this range, the scores have no bounds.",
        "LOW,HIGH",
    ),
    "weight": _option(
        "Column of weights, such as those of a survey. Each row is one example, and intervals do"
        " not depend on the scale of the weights."
    ),
    "count": _option("Column of numbers of examples; a row with the count 2 counts twice."),
    "prob": _option(
        "Prefix of the names of the columns of probabilities, one column for each class. For"
        " example, the prefix is prob_ if the columns are prob_cat and prob_dog. Instead of a"
        " prefix you can give the name of a single column, which contains in each row the list of"
        " the probabilities of all classes or the probability of the positive class. If FILE is an"
        " .npz file, you can also give the name of an array of shape (n, K) for n rows and K"
        " classes.",
        "PREFIX",
    ),
    "score": _option(
        "Column of scores for the positive class, on any scale. A higher score means that the"
        " positive class is more probable. If this option is given, the report contains the ROC"
        " AUC."
    ),
    "threshold": _option(
        "The positive class is predicted for a row if the score or the probability of the"
        " positive class is at least NUMBER. If --prob names a single column, the default is 0.5."
        " Intervals treat NUMBER as known, so choose it on other examples.",
        "NUMBER",
        type=float,
    ),
    "pos-label": _option(
        "The class that counts as positive; all other classes count as negative. If --score is"
        " given and --pos-label is not, the class 1 counts as positive.",
        "CLASS",
    ),
    "labels-prefix": _option(
        "Use this option for a multilabel problem, in which each column of labels contains 0 and"
        " 1. TRUE is the prefix of the names of the columns of true labels, and PRED is the prefix"
        " of the names of the columns of predicted labels.",
        ("TRUE", "PRED"),
        nargs=2,
    ),
    "group": _option(
        "Column of groups, such as tasks or patient subgroups. report adds the metrics of"
        " each group and, without --value, the differences between the groups. compare and"
        " leaderboard accept --group only together with --value: compare adds the means of each"
        " group, and leaderboard ranks the systems by the mean of their group means."
    ),
    "system": _option(
        "Column of names of systems, such as models, if a single FILE has rows for each system."
        " Rows of different systems that have the same --id belong to the same example. The default"
        " of --id is then a column such as id or question_id."
    ),
    "id": _option(
        "Column of ids. Rows of different files that have the same id belong to the same example."
        " If --id is not given, rows that have the same position in their files belong to the same"
        " example. If --value is given, an id may consist of the values of several columns: with"
        " --id item,attempt, rows belong together if they have the same item and the same attempt."
    ),
    "id-of-examples": _option(
        "Column of ids, which are shown for the rows that --examples lists. If --value is given,"
        " each row must have a different id; an id may then consist of the values of several"
        " columns, such as --id item,attempt."
    ),
    "examples": _option(
        "Number of misclassified rows to list (default: 0): in reports, rows with the most"
        " frequent confusions of two classes; in comparisons, rows that only one of the two"
        " classifiers predicts correctly. If --value is given, items with the lowest scores or, in"
        " comparisons, items whose scores differ, first items for which A is worse. If the file has"
        " columns of probabilities, the rows whose predicted class has the highest probability are"
        " listed first.",
        "NUMBER",
        type=int,
        default=0,
    ),
    "show": _option(
        "Columns whose values are shown for the rows that --examples lists. Write commas between"
        " the names of the columns.",
        "COLUMN,...",
        type=lambda names: tuple(names.split(",")),
        default=(),
    ),
    "cluster": _option(
        "Column of cluster ids. Rows with the same cluster id are correlated, such as images of"
        " one patient. If this option is given, the confidence intervals treat the clusters as"
        " independent, but not the rows of one cluster. If it is not given, and a column such as"
        " task_id, doc_id, question, item or id repeats, rows with the same id are one cluster;"
        " --cluster '' treats all rows as independent."
    ),
    "prevalence": _option(
        "Estimate the metrics for a population in which the classes of --true have these shares,"
        " such as cat=0.1,dog=0.9. If there are two classes, or with --pos-label, a single number"
        " is the share of the second class, which is the class of --pos-label.",
        "CLASS=SHARE,...",
    ),
    "ignore": _option(
        "Leave out rows whose true or predicted class is LABEL; rows whose predicted class is also"
        " a LABEL of --invalid are not left out. The option may be repeated.",
        "LABEL",
        action="append",
        type=_label,
        default=[],
    ),
    "invalid": _option(
        "A predicted label that is no class, such as the mark of an answer that could not be"
        " parsed. It counts as a wrong prediction, and averages over classes do not include it. The"
        " option may be repeated.",
        "LABEL",
        action="append",
        type=_label,
        default=[],
    ),
    "invalid-others": {
        "help": (
            "Count all predictions that are no true class, such as answers that could not be"
            " parsed, as one invalid label, (other), as --invalid does for labels that you name."
        ),
        "action": "store_true",
        "default": False,
    },
    "counts": {
        "help": (
            "Use this option if FILE contains counts instead of predictions. FILE is then a"
            " confusion matrix whose rows are the true classes, or a table with the columns"
            " y_true, y_pred and count."
        ),
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
        "The largest difference between the classifiers that does not matter to you (default: 0)."
        " If NUMBER is greater than 0, the report contains the confidence that the difference is"
        " at most this large.",
        "NUMBER",
        type=float,
        default=0.0,
    ),
    "gate": _option(
        "Condition that a metric must satisfy. You can write METRIC >= NUMBER or METRIC <="
        " NUMBER. In the command report, you can also write METRIC[CLASS] >= NUMBER for the value"
        " of the metric for one class. In the command compare, the condition applies to the"
        " difference A - B, which is the metric of classifier A minus the metric of classifier B."
        " The option may be repeated. The exit code is 0 (passed) if all values in the confidence"
        " interval satisfy the condition, 1 (failed) if no value in the interval satisfies the"
        " condition, and 3 (undecided) if only some values in the interval do. If there are"
        " several gates, it is 1 if one fails, otherwise 3 if one is undecided, otherwise 0. If"
        " scores of --value are missing, a gate passes only if it also passes with the worst"
        " possible scores.",
        "'METRIC >= NUMBER'",
        action="append",
        default=[],
    ),
    "half-width": _option(
        "Plan for a confidence interval whose half-width is NUMBER. The half-width is in the"
        " units of the metric: for accuracy, 0.02 means 2 percentage points.",
        "NUMBER",
        type=float,
    ),
    "difference": _option(
        "Plan for a test that detects a difference of NUMBER between the metrics of the"
        " classifiers A and B.",
        "NUMBER",
        type=float,
    ),
    "power": _option(
        "Power of the test: the probability that the test detects the difference (default: 0.8).",
        "NUMBER",
        type=float,
        default=0.8,
    ),
    "where": _option(
        "Read only the rows whose value in COLUMN is VALUE. The option may be repeated: for one"
        " column with all of its values to read, and for several columns, all of which must have"
        " one of their values.",
        "COLUMN=VALUE",
        action="append",
        type=_condition,
        default=[],
    ),
    "decimal": _option(
        "Decimal separator of numbers in text files (default: a point), such as ',' for numbers"
        " like 0,5.",
        "CHARACTER",
        choices=(".", ","),
        default=".",
    ),
    "classes": _option(
        "All classes, in the order of the report, which may have no rows. If the first begins with"
        " -, write =, as in --classes=-1,1. In the command merge: the names of the class ids 0, 1"
        " and so on.",
        "CLASS,...",
        type=_classes,
    ),
    "separator": _option(
        r"Separator of the columns in text files, such as ';' or '\t' (default: a comma, or a tab"
        " in .tsv files).",
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
        "File to write. If the suffix of FILE is .npz, FILE receives the merged state, which the"
        " command merge can read again. If the suffix is not .npz, FILE receives"
        f" {_WRITTEN}. The option may be repeated.",
        "FILE",
        action="append",
        type=Path,
        default=[],
    ),
    "html": _option("Write an HTML page to FILE, which may have any suffix.", "FILE", type=Path),
    "json": _option(
        "Write JSON to FILE, which may have any suffix; if FILE is - or not given, print the JSON.",
        "FILE",
        nargs="?",
        const="-",
    ),
    "format": _option(
        "Format of the printed report: text (default), markdown, latex, json, csv, or"
        " every-eval-ever, which is JSON in the format of Every Eval Ever, a public collection of"
        " evaluation results.",
        "FORMAT",
        default="text",
    ),
}
# Options that are repeated for each system if the systems are columns of a single file.
OF_SYSTEMS = ("pred", "value", "prob", "score")
_REPEATED = " If a single FILE has columns for each system, repeat the option for each of them."
_OPTIONS |= {
    f"{name}s": {
        **_OPTIONS[name],
        "help": _OPTIONS[name]["help"] + _REPEATED,
        "action": "append",
        "default": [],
    }
    for name in OF_SYSTEMS
}
_OF_ANY_REPORT = ("where", "separator", "decimal", "level", "output", "html", "json", "format")
_TYPED = {f"{name}s": name for name in OF_SYSTEMS} | {
    "output-of-states": "output",
    "id-of-examples": "id",
}  # options whose help depends on the command, and their names for users


class _Command(NamedTuple):
    """A command: the module that runs it, a summary, the file arguments, the options, and the title
    of HTML pages, which is by default the names of the files.
    """

    module: str
    summary: str
    files: dict[str, dict[str, Any]]
    options: str
    title: str = ""


COMMANDS = {
    "report": _Command(
        "_commands",
        "Classification report of a file of predictions: metrics per class and overall, with"
        " confidence intervals.",
        {
            "FILE": {
                "help": f"Predictions: {_READ}. In messages, row 1 is the first row below the"
                " header."
            }
        },
        "true pred value bounds weight count prob score threshold classes pos-label labels-prefix"
        " group cluster prevalence ignore invalid invalid-others counts gate examples"
        " id-of-examples show where separator decimal level output html json format",
    ),
    "compare": _Command(
        "_commands",
        "Compare two classifiers on the same examples: paired differences with confidence"
        " intervals, and McNemar's test.",
        {
            "A": {
                "help": f"Predictions of the first classifier: {_READ}. In messages, row 1 is the"
                " first row below the header."
            },
            "[B]": {
                "help": "Predictions of the second classifier for the same examples. Without B, A"
                " has the columns or the rows of both classifiers (default: the columns that begin"
                " with y_pred).",
                "nargs": "*",
                "default": [],  # otherwise argparse says that B is required, too
            },
        },
        "true preds values bounds probs scores threshold classes pos-label system id cluster group"
        " ignore invalid invalid-others rope gate examples show where separator decimal level"
        " output html json format",
    ),
    "leaderboard": _Command(
        "_commands",
        "Rank classifiers on the same examples: confidence intervals of ranks, tiers of classifiers"
        " that do not differ significantly, and the value of the winner, corrected for the"
        " selection of the winner.",
        {
            "FILE...": {
                "help": f"Predictions for the same examples: {_READ.partition(';')[0]}. A single"
                " FILE has the columns or the rows of all classifiers (default: the columns that"
                " begin with y_pred).",
                "nargs": "+",
            }
        },
        "true preds values bounds metric classes pos-label system id cluster group ignore invalid"
        " invalid-others where separator decimal level output html json format",
        "Leaderboard",
    ),
    "plan": _Command(
        "_commands",
        "Estimate how many examples a test set needs: either for an interval of a given"
        " half-width, or to detect a difference between two classifiers.",
        {
            "FILE...": {
                "help": "If --half-width is given: one FILE with predictions of a pilot study. If"
                " --difference is given: two FILEs with the predictions of two classifiers for the"
                " same examples of a pilot study.",
                "nargs": "+",
            }
        },
        "half-width difference power metric true pred value bounds classes pos-label id cluster"
        " ignore invalid invalid-others counts where separator decimal level output json format",
        "Plan",
    ),
    "merge": _Command(
        "_states",
        "Merge the evaluation states of several hosts: report on all of their examples.",
        {"STATE...": {"help": "File that jaxmetrics.save_state wrote.", "nargs": "+"}},
        "classes level output-of-states html json format",
        "Merged states",
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
        text = "\n".join(map(filled, super().format_help().split("\n")))
        return text[:1].upper() + text[1:]

    def error(self, message: str) -> NoReturn:
        """Print the error as one line, and exit."""
        refuse(f"{message}; see {self.prog} --help")


def parser_of(command: str) -> Parser:
    """Return the parser of a command, which also knows the defaults of the options of the others.

    The arguments that are files are `files`, and `command` is the name of the command.
    """
    about = COMMANDS[command]
    parser = Parser(f"jaxmetrics {command}", about.summary, f"{' '.join(about.files)} [OPTIONS]")
    parser.set_defaults(
        command=command, **{_place(name): x.get("default") for name, x in _OPTIONS.items()}
    )
    for name, more in about.files.items():
        action, metavar = "extend" if "nargs" in more else "append", name.strip(".[]")
        parser.add_argument("files", type=_file, action=action, metavar=metavar, **more)
    for name in about.options.split():
        parser.add_argument(f"--{_TYPED.get(name, name)}", **{"action": _Once, **_OPTIONS[name]})
    return parser


class _Once(argparse.Action):
    """Store the value of an option that cannot be repeated."""

    def __call__(
        self, parser: Any, namespace: Any, values: Any, option_string: str | None = None
    ) -> None:
        if getattr(namespace, self.dest) != self.default:
            refuse(f"{option_string} was given twice")
        setattr(namespace, self.dest, values)


def _place(option: str) -> str:
    """Return the name of the attribute that holds an option."""
    return option.replace("-", "_")


def with_options(options: argparse.Namespace, **changed: Any) -> argparse.Namespace:
    """Return the options with changed values."""
    return argparse.Namespace(**vars(options) | changed)


def check_alone(options: argparse.Namespace, option: str, *allowed: str) -> None:
    """Refuse other options beside this option, except the allowed options."""
    typed = {name: _TYPED.get(name, name) for name in COMMANDS[options.command].options.split()}
    others = [
        f"--{name}"
        for key, name in typed.items()
        if not {key, name} & {option, *allowed, *_OF_ANY_REPORT}
        and getattr(options, _place(name)) != _OPTIONS[key].get("default")
    ]
    if others:
        refuse(
            f"--{option} cannot be used together with {', '.join(others)}. Leave out"
            f" --{option} or the other options."
        )


def refuse(message: str) -> NoReturn:
    """Print a message as one line without control characters, and exit with code 2."""
    print(f"jaxmetrics: {printable(message)}", file=sys.stderr)
    raise SystemExit(2)
