"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated, Any

import typer

__all__: list[str] = []

READ = (
    ".csv, .tsv, .jsonl (.gz, .zst), .parquet, .arrow, .npz; a folder or glob of parts; - for"
    " standard input"
)


def _path_of(name: str) -> Path:
    """Return the path of a file to read; an empty name would mean the current folder."""
    if not name:
        raise typer.BadParameter("the name of a file is empty.")
    return Path(name)


def input_file(metavar: str, help: str) -> Any:
    """Describe an argument that names a file to read, or several."""
    return typer.Argument(metavar=metavar, parser=_path_of, help=help, show_default=False)


File = Annotated[Path, input_file("FILE", f"Predictions: {READ}.")]
TrueColumn = Annotated[str, typer.Option("--true", help="Column of the true class.")]
Pred = Annotated[
    str | None,
    typer.Option(
        help="Column of the predicted class.",
        show_default="y_pred, else what the probabilities say",
    ),
]
Prob = Annotated[
    str | None,
    typer.Option(
        help="Prefix of the columns of probabilities, prob_cat for class cat; or a column of lists,"
        " an (n, K) array, or one column of the probability of the positive class."
    ),
]
Score = Annotated[
    str | None,
    typer.Option(help="Column of scores of the positive class, of any scale: adds the ROC AUC."),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        help="Predict the positive class from this score, or probability, on.",
        show_default="0.5 for one column of probabilities",
    ),
]
PosLabel = Annotated[
    str | None,
    typer.Option(
        help="Positive class, set against all others; of scores 1 if not given.", show_default=False
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Column of ids of examples that may be alike, as those of one patient: they are then"
        " the independent units."
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="LABEL", help="Leave out rows with this label (repeatable)."),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="What separates the columns of text: ';', '\\t', ...",
        show_default="a comma; a tab in .tsv",
    ),
]
Id = Annotated[str | None, typer.Option(help="Column to join the rows by; without it, row by row.")]
Level = Annotated[float, typer.Option(help="Level of the intervals.")]
Files = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Write the report to this file, as its suffix says (repeatable): .html (a page with"
        " pictures), .json, .md (Markdown), .csv (one line per value).",
    ),
]
StateOrFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Write to this file, as its suffix says (repeatable): the merged state to .npz, the"
        " report to .html (a page with pictures), .json, .md (Markdown), .csv (one line per"
        " value).",
    ),
]
Html = Annotated[Path | None, typer.Option(help="Short for --output of a page, of any suffix.")]
Json = Annotated[
    str | None,
    typer.Option(
        help="Short for --output of JSON, of any suffix; without a name, or with -, to standard"
        " output."
    ),
]
Format = Annotated[
    str, typer.Option(help="What is printed: text, markdown, json or csv.", metavar="FORMAT")
]
MetricName = Annotated[
    str,
    typer.Option(
        help="accuracy, balanced_accuracy, macro_f1, weighted_f1, matthews_corrcoef or"
        " cohen_kappa; with --pos-label also precision, recall, specificity or f1."
    ),
]
