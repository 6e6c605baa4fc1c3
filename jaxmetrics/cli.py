"""The command line: `jaxmetrics report FILE`, `jaxmetrics compare A B`, `jaxmetrics merge STATE...`."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Annotated, NoReturn

import jax

try:
    import polars  # noqa: F401  # which reads files
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
except ImportError as error:
    raise SystemExit(f"jaxmetrics: the command line needs {error.name}: pip install 'jaxmetrics[cli]'") from None

from jaxmetrics._estimates import normal_quantile
from jaxmetrics._reading import DEFAULT_PRED, Columns, InputError, OnProgress, count_predictions, read_counts, read_pairs
from jaxmetrics.comparisons.differences import check_rope
from jaxmetrics.reports import ComparisonReport, Report, comparison_report
from jaxmetrics.streaming import load_state, save_state
from jaxmetrics.streaming.evaluators import State, merge_checked

__all__ = ["main"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True)

Ignore = Annotated[list[str] | None, typer.Option(help="Leave out rows with this label (repeatable).")]
Level = Annotated[float, typer.Option(help="Level of the intervals.")]
Html = Annotated[Path | None, typer.Option(help="Write a page with pictures to this file.")]
Json = Annotated[str | None, typer.Option(help="Write JSON to this file; without a name, or with -, to standard output.")]


@app.callback()
def _set_up() -> None:
    """Performance measures of classifiers, with intervals."""
    jax.config.update("jax_enable_x64", True)  # an application may decide it; precision costs nothing here


@app.command()
def report(
    file: Annotated[Path, typer.Argument(help="Predictions: .csv, .parquet or .npz.", show_default=False)],
    true: Annotated[str, typer.Option(help="Column of the true class.")] = Columns.true,
    pred: Annotated[
        str | None,
        typer.Option(help="Column of the predicted class.", show_default=f"{DEFAULT_PRED}, else the most probable class"),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of weights (2 = the row written twice).")] = None,
    prob: Annotated[
        str | None,
        typer.Option(help="Prefix of the columns of probabilities, prob_cat for class cat; in .npz an (n, K) array."),
    ] = None,
    ignore: Ignore = None,
    counts: Annotated[bool, typer.Option("--counts", help="FILE holds a confusion matrix, row = true class.")] = False,
    level: Level = 0.95,
    html: Html = None,
    json: Json = None,
) -> None:
    """Report how good the predictions in FILE are: per class and overall, each number with its interval.

    Rows are counted from 1, without the header.
    """
    columns = Columns(true, pred, weight, prob)

    def result() -> Report:
        if counts and (columns != Columns() or ignore):
            raise InputError("--counts reads a matrix: it takes no --true, --pred, --weight, --prob or --ignore")
        return _report_of_counts(file, level) if counts else _report_of_predictions(file, columns, ignore or [], level)

    _deliver(result, _Output(level, json, html, file.name), (file,))


@app.command()
def compare(
    file_a: Annotated[Path, typer.Argument(metavar="A", help="Predictions: .csv, .parquet or .npz.", show_default=False)],
    file_b: Annotated[Path, typer.Argument(metavar="B", help="Others for the same examples.", show_default=False)],
    true: Annotated[str, typer.Option(help="Column of the true class, in both.")] = Columns.true,
    pred: Annotated[str, typer.Option(help="Column of the predicted class, in both.")] = DEFAULT_PRED,
    id: Annotated[str | None, typer.Option(help="Column to join the rows by; without it, row by row.")] = None,
    ignore: Ignore = None,
    rope: Annotated[float, typer.Option(help="Differences up to this size do not matter.")] = 0.0,
    level: Level = 0.95,
    html: Html = None,
    json: Json = None,
) -> None:
    """Compare two files of predictions for the same examples, in pairs: differences with intervals, and McNemar's test.

    Rows are counted from 1, without the header.
    """

    def result() -> ComparisonReport:
        pairs = read_pairs(file_a, file_b, Columns(true, pred, id=id), ignore=ignore or [])
        with _about("--rope"):
            check_rope(rope)
        report = comparison_report(
            pairs.true,
            pairs.pred_a,
            pairs.pred_b,
            class_names=pairs.class_names,
            names=(str(file_a), str(file_b)),
            rope=rope,
            level=level,
        )
        return replace(report, num_ignored=pairs.num_ignored)

    _deliver(result, _Output(level, json, html, f"{file_a.name} and {file_b.name}"), (file_a, file_b))


@app.command()
def merge(
    files: Annotated[list[Path], typer.Argument(metavar="STATE...", help="Files written by save_state.", show_default=False)],
    output: Annotated[Path | None, typer.Option(help="Write the merged state to this file (.npz).")] = None,
    classes: Annotated[str | None, typer.Option(help="Names of the classes, separated by commas.")] = None,
    level: Level = 0.95,
    html: Html = None,
    json: Json = None,
) -> None:
    """Merge the evaluation states that several hosts have saved, and report on all of their examples."""

    asked = _Output(level, json, html, "Merged states", state=output)

    def result() -> Report:
        state = _read_state(files[0])
        for file in files[1:]:
            with _about(file):
                state = merge_checked(state, _read_state(file))
        if output is not None:
            _save_state(output, state)
            if not any(name.startswith("confusion_matrix(") for name in state) and json is None and html is None:
                print(f"jaxmetrics: {len(files)} states merged; they hold no counts to report on", file=sys.stderr)
                raise typer.Exit
        with _about(files[0]):
            return Report.from_state(state, class_names=None if classes is None else classes.split(","), level=level)

    _deliver(result, asked, files)


def _read_state(file: Path) -> State:
    try:
        return load_state(file)
    except ValueError as error:  # which names the file
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None


def _save_state(file: Path, state: State) -> None:
    try:
        save_state(file, state)
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror}") from None


@dataclass(frozen=True)
class _Output:
    """What is asked for: intervals of what level; where to write JSON (- for standard output), HTML and a state; a title."""

    level: float
    json: str | None
    html: Path | None
    title: str
    state: Path | None = None

    def written(self) -> dict[str, Path]:
        """The files to write, by option."""
        json = None if self.json in (None, "-") else Path(self.json)
        files = {"--output": self.state, "--json": json, "--html": self.html}
        return {option: file for option, file in files.items() if file is not None}


def _deliver(result: Callable[[], Report | ComparisonReport], output: _Output, files: Sequence[Path]) -> None:
    """Write what comes out of reading `files`, or one line that says what is wrong."""
    try:
        with _about("--level"):
            normal_quantile(output.level)
        taken = {file.resolve(): "the input" for file in files}
        for option, file in output.written().items():
            if file.resolve() in taken:
                raise InputError(f"{file}: {option} would overwrite {taken[file.resolve()]}")
            taken[file.resolve()] = option
        texts = {option: file for option, file in output.written().items() if option != "--output"}
        with ExitStack() as stack:
            targets = {option: stack.enter_context(_replacing(file)) for option, file in texts.items()}
            report = result()
            if "--json" in targets:
                targets["--json"].write(report.to_json())
            if "--html" in targets:
                targets["--html"].write(report.to_html(title=output.title))
        sys.stdout.write(report.to_json() if output.json == "-" else report.to_text())
        sys.stdout.flush()
    except InputError as error:
        _refuse(str(error))
    except OSError as error:
        _refuse(f"standard output: {error.strerror}")


def _report_of_counts(file: Path, level: float) -> Report:
    matrix, names = read_counts(file)
    with _about(file):
        return Report.from_counts(matrix, class_names=names, level=level)


def _report_of_predictions(file: Path, columns: Columns, ignore: list[str], level: float) -> Report:
    with _progress() as on_progress:
        counted = count_predictions(file, columns, ignore=ignore, on_progress=on_progress)
    names, counts, probabilities = counted.in_order()
    with _about(file):
        report = Report.from_counts(counts, class_names=names, num_ignored=counted.num_ignored, level=level)
        return report if probabilities is None else report.with_probabilities(probabilities)


@contextmanager
def _about(what: Path | str) -> Iterator[None]:
    """What the library refuses in the block, as a complaint about the file or option."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: {error}") from None


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
def _replacing(target: Path) -> Iterator[IO[str]]:
    """A text file that appears as `target`, whole, when the block ends well, and not at all otherwise.

    A target that exists and is no regular file (a pipe, a device) is written to directly.
    """
    path = target.resolve()
    in_place = path.exists() and not path.is_file()
    temporary = path if in_place else path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            with temporary.open("w", encoding="utf-8") as file:
                yield file
            if not in_place:
                temporary.replace(path)
        finally:
            if not in_place:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror}") from None


def _refuse(message: str) -> NoReturn:
    print(f"jaxmetrics: {message}", file=sys.stderr)
    raise typer.Exit(2)


def main() -> None:
    """Run the command line; `--json` last, or before another option, writes to standard output."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    given = sys.argv[1:]
    arguments: list[str] = []
    for argument, following in zip(given, [*given, "--"][1:], strict=True):
        arguments.append(argument)
        if argument == "--json" and following.startswith("--"):
            arguments.append("-")
    app(arguments)
