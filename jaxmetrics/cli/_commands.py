"""What the commands do: read, compute, and write what is asked for, or a line that says why not."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, NoReturn

import jax
import typer

try:
    from jaxmetrics.cli._reading import (
        Columns,
        InputError,
        OnProgress,
        count_predictions,
        read_counts,
        read_pairs,
    )
except ImportError as error:
    raise SystemExit(
        f"jaxmetrics: the command line needs {error.name}: pip install 'jaxmetrics[cli]'"
    ) from None

from jaxmetrics.comparisons.differences import check_rope
from jaxmetrics.estimates import normal_quantile
from jaxmetrics.reports import ComparisonReport, Report, comparison_report
from jaxmetrics.streaming import load_state, save_state
from jaxmetrics.streaming.evaluators import State, merge_checked

__all__ = ["Columns", "Output", "compare", "merge", "report_counts", "report_predictions"]


@dataclass(frozen=True)
class Output:
    """What is asked for: intervals of what level; where to write JSON (- for standard output), HTML
    and a state; a title.
    """

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


def report_predictions(file: Path, columns: Columns, ignore: Sequence[str], output: Output) -> None:
    """`jaxmetrics report FILE`."""
    _deliver(lambda: _report_of_predictions(file, columns, ignore, output.level), output, (file,))


def report_counts(file: Path, is_told_columns: bool, output: Output) -> None:
    """`jaxmetrics report FILE --counts`."""

    def result() -> Report:
        if is_told_columns:
            raise InputError(
                "--counts reads a matrix: it takes no --true, --pred, --weight, --prob or --ignore"
            )
        matrix, names = read_counts(file)
        with _about(file):
            return Report.from_counts(matrix, class_names=names, level=output.level)

    _deliver(result, output, (file,))


def compare(
    file_a: Path,
    file_b: Path,
    columns: Columns,
    ignore: Sequence[str],
    rope: float,
    output: Output,
) -> None:
    """`jaxmetrics compare A B`."""

    def result() -> ComparisonReport:
        pairs = read_pairs(file_a, file_b, columns, ignore=ignore)
        with _about("--rope"):
            check_rope(rope)
        report = comparison_report(
            pairs.true,
            pairs.pred_a,
            pairs.pred_b,
            class_names=pairs.class_names,
            names=(str(file_a), str(file_b)),
            rope=rope,
            level=output.level,
        )
        return replace(report, num_ignored=pairs.num_ignored)

    _deliver(result, output, (file_a, file_b))


def merge(files: Sequence[Path], class_names: Sequence[str] | None, output: Output) -> None:
    """`jaxmetrics merge STATE...`."""

    def result() -> Report:
        jax.config.update("jax_enable_x64", True)  # states may hold sums in double precision
        state = _read_state(files[0])
        for file in files[1:]:
            with _about(file):
                state = merge_checked(state, _read_state(file))
        if output.state is not None:
            _save_state(output.state, state)
            has_counts = any(name.startswith("confusion_matrix(") for name in state)
            if not has_counts and output.json is None and output.html is None:
                number = f"{len(files)} states merged"
                print(f"jaxmetrics: {number}; they hold no counts to report on", file=sys.stderr)
                raise typer.Exit
        with _about(files[0]):
            return Report.from_state(state, class_names=class_names, level=output.level)

    _deliver(result, output, files)


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


def _deliver(
    result: Callable[[], Report | ComparisonReport], output: Output, files: Sequence[Path]
) -> None:
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
            targets = {
                option: stack.enter_context(_replacing(file)) for option, file in texts.items()
            }
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


def _report_of_predictions(
    file: Path, columns: Columns, ignore: Sequence[str], level: float
) -> Report:
    with _progress() as on_progress:
        counted = count_predictions(file, columns, ignore=ignore, on_progress=on_progress)
    names, counts, probabilities = counted.in_order()
    with _about(file):
        report = Report.from_counts(
            counts, class_names=names, num_ignored=counted.num_ignored, level=level
        )
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
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    layout = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*layout, console=console, transient=True) as progress:
        task = progress.add_task("rows", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def _replacing(target: Path) -> Iterator[IO[str]]:
    """A text file that appears as `target` when the block ends well, and not at all otherwise.

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
