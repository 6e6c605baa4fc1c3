"""The command line: `jaxmetrics report FILE`, `jaxmetrics compare A B`, `jaxmetrics merge STATE`.

Here is what can be typed. What is done about it is in `_commands.py`, which is imported when a
command runs, and so are the libraries that read files: help does not wait for them.
"""

import signal
import sys
from pathlib import Path
from typing import Annotated, NoReturn

try:
    import typer
except ImportError as error:
    raise SystemExit(
        f"jaxmetrics: the command line needs {error.name}: pip install 'jaxmetrics[cli]'"
    ) from None

__all__ = ["main"]

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Performance measures of classifiers, with intervals.",
)

TRUE, PRED = "y_true", "y_pred"

File = Annotated[
    Path, typer.Argument(help="Predictions: .csv, .parquet or .npz.", show_default=False)
]
Ignore = Annotated[
    list[str] | None, typer.Option(help="Leave out rows with this label (repeatable).")
]
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


@app.command()
def report(
    file: File,
    true: Annotated[str, typer.Option(help="Column of the true class.")] = TRUE,
    pred: Annotated[
        str | None,
        typer.Option(
            help="Column of the predicted class.",
            show_default=f"{PRED}, else the most probable class",
        ),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="Column of weights (2 = the row written twice).")
    ] = None,
    prob: Annotated[
        str | None,
        typer.Option(
            help="Prefix of the columns of probabilities, prob_cat for class cat; in .npz an"
            " (n, K) array."
        ),
    ] = None,
    ignore: Ignore = None,
    counts: Annotated[
        bool, typer.Option("--counts", help="FILE holds a confusion matrix, row = true class.")
    ] = False,
    level: Level = 0.95,
    files_to_write: Files = None,
    html: Html = None,
    json: Json = None,
) -> None:
    """Report how good the predictions in FILE are, per class and overall, with intervals.

    Rows are counted from 1, without the header.
    """
    from jaxmetrics.cli import _commands

    columns = _commands.Columns(true, pred, weight, prob)
    output = _commands.Output(level, file.name, files_to_write or (), json, html)
    if counts:
        chosen = columns != _commands.Columns() or bool(ignore)
        _commands.report_counts(file, chosen, output)
    else:
        _commands.report_predictions(file, columns, ignore or [], output)


@app.command()
def compare(
    file_a: Annotated[
        Path,
        typer.Argument(
            metavar="A", help="Predictions: .csv, .parquet or .npz.", show_default=False
        ),
    ],
    file_b: Annotated[
        Path,
        typer.Argument(metavar="B", help="Others for the same examples.", show_default=False),
    ],
    true: Annotated[str, typer.Option(help="Column of the true class, in both.")] = TRUE,
    pred: Annotated[str, typer.Option(help="Column of the predicted class, in both.")] = PRED,
    id: Annotated[
        str | None, typer.Option(help="Column to join the rows by; without it, row by row.")
    ] = None,
    ignore: Ignore = None,
    rope: Annotated[float, typer.Option(help="Differences up to this size do not matter.")] = 0.0,
    level: Level = 0.95,
    files_to_write: Files = None,
    html: Html = None,
    json: Json = None,
) -> None:
    """Compare two files of predictions for the same examples, in pairs: differences with
    intervals, and McNemar's test.

    Rows are counted from 1, without the header.
    """
    from jaxmetrics.cli import _commands

    columns = _commands.Columns(true, pred, id=id)
    title = f"{file_a.name} and {file_b.name}"
    output = _commands.Output(level, title, files_to_write or (), json, html)
    _commands.compare(file_a, file_b, columns, ignore or [], rope, output)


@app.command()
def merge(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="STATE...", help="Files written by save_state.", show_default=False),
    ],
    files_to_write: StateOrFiles = None,
    classes: Annotated[
        str | None, typer.Option(help="Names of the classes, separated by commas.")
    ] = None,
    level: Level = 0.95,
    html: Html = None,
    json: Json = None,
) -> None:
    """Merge the evaluation states that hosts have saved, and report on all of their examples."""
    from jaxmetrics.cli import _commands

    names = None if classes is None else classes.split(",")
    output = _commands.Output(
        level, "Merged states", files_to_write or (), json, html, has_state=True
    )
    _commands.merge(files, names, output)


def main() -> None:
    """Run the command line; `--json` last, or before another option, writes to standard output."""
    _exit_by_signals()
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    given = sys.argv[1:]
    arguments: list[str] = []
    for argument, following in zip(given, [*given, "--"][1:], strict=True):
        arguments.append(argument)
        if argument == "--json" and following.startswith("--"):
            arguments.append("-")
    app(arguments)


def _exit_by_signals() -> None:
    """Let the signals that ask for an end unwind the program, so that no half-written file stays.

    Those that are ignored, as `nohup` has it, stay so.
    """

    def leave(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, leave)
