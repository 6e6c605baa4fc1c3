"""What the commands do: read, compute, and write what is asked for, or a line that says why not."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

import jax
import typer

try:
    from jaxmetrics.cli._counted_files import OnProgress, count_predictions, read_counts, read_pairs
    from jaxmetrics.cli._sources import Columns, InputError
except ImportError as error:
    raise SystemExit(
        f"jaxmetrics: the command line needs {error.name}: pip install 'jaxmetrics[cli]'"
    ) from None

from jaxmetrics._files import replaced_file
from jaxmetrics.comparisons.differences import check_rope
from jaxmetrics.estimates import normal_quantile
from jaxmetrics.reports import ComparisonReport, Report, comparison_report
from jaxmetrics.reports.formats import FORMATS, Writer
from jaxmetrics.reports.states import confusion_matrices
from jaxmetrics.streaming import load_state, save_state
from jaxmetrics.streaming.states import EvaluatorState, merge_checked

__all__ = ["Columns", "Output", "compare", "merge", "report_counts", "report_predictions"]

_STANDARD_OUTPUT = "-"
_STATE = ".npz"  # the suffix of files of states


class _Target(NamedTuple):
    option: str
    file: Path
    writer: Writer


@dataclass(frozen=True)
class Output:
    """Says what is asked for.

    Attributes:
        level: of the intervals.
        title: of pages.
        files: to write, each in the format of its suffix.
        json, html: files to write in these formats, whatever their suffix; "-" prints JSON.
        has_state: whether there is a state, which files may be asked to hold.
    """

    level: float
    title: str
    files: Sequence[Path] = ()
    json: str | None = None
    html: Path | None = None
    has_state: bool = False

    @property
    def is_json_printed(self) -> bool:
        """Tells whether standard output gets JSON in place of text."""
        return self.json == _STANDARD_OUTPUT

    @property
    def state_files(self) -> list[Path]:
        """Lists the files that are to hold the state."""
        return [file for file in self.files if self.has_state and _suffix(file) == _STATE]

    @property
    def targets(self) -> list[_Target]:
        """Lists the files that are to hold the report, and what writes them."""
        found = []
        for file in self.files:
            if file in self.state_files:
                continue
            if _suffix(file) not in FORMATS:
                known = ", ".join([*FORMATS, *[f"{_STATE} (the state)"] * self.has_state])
                raise InputError(f"{file}: unknown suffix {file.suffix!r}; --output writes {known}")
            found.append(_Target("--output", file, FORMATS[_suffix(file)]))
        if self.json is not None and not self.is_json_printed:
            found.append(_Target("--json", Path(self.json), FORMATS[".json"]))
        if self.html is not None:
            found.append(_Target("--html", self.html, FORMATS[".html"]))
        return found

    def check(self, inputs: Sequence[Path]) -> None:
        """Refuse a level that is none, unknown formats, and what would be overwritten."""
        with _input_errors("--level"):
            normal_quantile(self.level)
        taken = {file.resolve(): "the input" for file in inputs}
        states = [("--output", file) for file in self.state_files]
        for option, file in [*states, *((x.option, x.file) for x in self.targets)]:
            if file.resolve() in taken:
                raise InputError(f"{file}: {option} would overwrite {taken[file.resolve()]}")
            taken[file.resolve()] = option


def _suffix(file: Path) -> str:
    return file.suffix.lower()


def report_predictions(file: Path, columns: Columns, ignore: Sequence[str], output: Output) -> None:
    """Run `jaxmetrics report FILE`."""
    _deliver(lambda: _report_of_predictions(file, columns, ignore, output.level), output, (file,))


def report_counts(file: Path, is_told_columns: bool, output: Output) -> None:
    """Run `jaxmetrics report FILE --counts`."""

    def result() -> Report:
        if is_told_columns:
            raise InputError(
                "--counts reads a matrix: it takes no --true, --pred, --weight, --prob or --ignore"
            )
        matrix, names = read_counts(file)
        with _input_errors(file):
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
    """Run `jaxmetrics compare A B`."""

    def result() -> ComparisonReport:
        pairs = read_pairs(file_a, file_b, columns, ignore=ignore)
        with _input_errors("--rope"):
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
    """Run `jaxmetrics merge STATE...`."""

    def result() -> Report:
        jax.config.update("jax_enable_x64", True)  # states may hold sums in double precision
        state = _merged_state(files)
        for file in output.state_files:
            _save_state(file, state)
        is_report_wanted = output.targets or output.json is not None or not output.state_files
        if not confusion_matrices(state) and not is_report_wanted:
            number = f"{len(files)} states merged"
            print(f"jaxmetrics: {number}; they hold no counts to report on", file=sys.stderr)
            raise typer.Exit
        with _input_errors(files[0]):
            return Report.from_state(state, class_names=class_names, level=output.level)

    _deliver(result, output, files)


def _merged_state(files: Sequence[Path]) -> EvaluatorState:
    state = _read_state(files[0])
    for file in files[1:]:
        with _input_errors(file):
            state = merge_checked(state, _read_state(file))
    return state


def _read_state(file: Path) -> EvaluatorState:
    try:
        return load_state(file)
    except ValueError as error:  # which names the file
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None


def _save_state(file: Path, state: EvaluatorState) -> None:
    try:
        save_state(file, state)
    except OSError as error:
        raise InputError(f"{file}: cannot be written: {error.strerror}") from None


def _deliver(
    result: Callable[[], Report | ComparisonReport], output: Output, inputs: Sequence[Path]
) -> None:
    """Write the result of reading `inputs`, or one line that says what is wrong."""
    try:
        output.check(inputs)
        with ExitStack() as stack:
            # Opened before anything is computed: what cannot be written is known at once.
            opened = [
                (stack.enter_context(_replaced_file(target.file)), target.writer)
                for target in output.targets
            ]
            report = result()
            for file, writer in opened:
                file.write(writer(report, output.title).encode())
        sys.stdout.write(report.to_json() if output.is_json_printed else report.to_text())
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
    names, counts, probabilities = counted.sorted_classes()
    with _input_errors(file):
        report = Report.from_counts(
            counts, class_names=names, num_ignored=counted.num_ignored, level=level
        )
        return report if probabilities is None else report.with_probabilities(probabilities)


@contextmanager
def _input_errors(subject: Path | str) -> Iterator[None]:
    """Turn what the library refuses in the block into a complaint about the file or option."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise InputError(f"{subject}: {error}") from None


@contextmanager
def _progress() -> Iterator[OnProgress]:
    """Show a bar on standard error while the rows are counted, if that is a terminal."""
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
def _replaced_file(target: Path) -> Iterator[BinaryIO]:
    """Open a file as `replaced_file` does, and complain of what cannot be written."""
    try:
        with replaced_file(target) as file:
            yield file
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror}") from None


def _refuse(message: str) -> NoReturn:
    print(f"jaxmetrics: {message}", file=sys.stderr)
    raise typer.Exit(2)
