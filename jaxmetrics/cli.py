"""The command line: `jaxmetrics report FILE`."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import jax

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from jaxmetrics._reading import Columns, InputError, OnProgress, check_file, count_predictions, read_counts
except ImportError as error:
    raise SystemExit(f"jaxmetrics: the command line needs {error.name}: pip install 'jaxmetrics[cli]'") from None

from jaxmetrics.reports import Report

__all__ = ["main"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def _describe() -> None:
    """Performance measures of classifiers, with intervals."""
    jax.config.update("jax_enable_x64", True)  # an application may decide it; precision costs nothing here


@app.command()
def report(
    file: Annotated[Path, typer.Argument(help="Predictions: .csv, .parquet or .npz.", show_default=False)],
    true: Annotated[str, typer.Option(help="Column of the true class.")] = "y_true",
    pred: Annotated[str, typer.Option(help="Column of the predicted class.")] = "y_pred",
    weight: Annotated[str | None, typer.Option(help="Column of weights (2 = the row written twice).")] = None,
    prob: Annotated[
        str | None,
        typer.Option(
            help="Prefix of the columns of probabilities, prob_cat for class cat; in .npz an (n, K) array."
            " Without a column of predictions the most probable class is the prediction."
        ),
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Leave out rows with this label (repeatable).")] = None,
    counts: Annotated[bool, typer.Option("--counts", help="FILE holds a confusion matrix, row = true class.")] = False,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    json: Annotated[str | None, typer.Option(help="Write JSON to this file; - or nothing: to standard output.")] = None,
) -> None:
    """Report how good the predictions in FILE are: per class and overall, with intervals where they are proportions."""
    try:
        if not 0 < level < 1:
            raise InputError(f"--level must lie between 0 and 1 (0.95 for 95 %), got {level:g}")
        check_file(file)
        with _replacing(None if json in (None, "-") else Path(json)) as write_json:
            result = (
                _report_of_counts(file, level)
                if counts
                else _report_of_predictions(file, Columns(true, pred, weight, prob), ignore or [], level)
            )
            write_json(result.to_json())
        sys.stdout.write(result.to_json() if json == "-" else result.to_text())
    except InputError as error:
        _refuse(error)


def _report_of_counts(file: Path, level: float) -> Report:
    matrix, names = read_counts(file)
    try:
        return Report.from_counts(matrix, class_names=names, level=level)
    except ValueError as error:
        raise InputError(f"{file}: {error}") from None


def _report_of_predictions(file: Path, columns: Columns, ignore: list[str], level: float) -> Report:
    with _progress() as on_progress:
        counted = count_predictions(file, columns, ignore=ignore, on_progress=on_progress)
    names, counts, soft_counts = counted.in_order()
    return Report.from_counts(counts, class_names=names, soft_counts=soft_counts, num_ignored=counted.num_ignored, level=level)


@contextmanager
def _progress() -> Iterator[OnProgress]:
    """A bar on standard error while the rows are counted, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    layout = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*layout, console=console, transient=True) as progress:
        task = progress.add_task("rows", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def _replacing(path: Path | None) -> Iterator[Callable[[str], object]]:
    """A function that writes text to `path`, which appears whole when the block ends well, and not at all otherwise."""
    if path is None:
        yield lambda text: None
        return
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yield file.write
        os.replace(name, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        Path(name).unlink(missing_ok=True)


def _refuse(error: InputError) -> NoReturn:
    print(f"jaxmetrics: {error}", file=sys.stderr)
    raise typer.Exit(2)


def main() -> None:
    """Run the command line; `--json` without a value writes to standard output."""
    arguments: list[str] = []
    for argument, following in zip(sys.argv[1:], [*sys.argv[2:], "--"], strict=True):
        arguments.append(argument)
        if argument == "--json" and following.startswith("--"):
            arguments.append("-")
    app(arguments)
