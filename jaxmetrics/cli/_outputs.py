"""What commands write: the report, in all formats asked for, or one line on what is wrong."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, NoReturn, TypeVar

import typer

from jaxmetrics._files import replaced_file
from jaxmetrics._wording import printable
from jaxmetrics.cli._errors import InputError, shown
from jaxmetrics.cli._inputs import mentioned
from jaxmetrics.estimates import normal_quantile
from jaxmetrics.reports.formats import FORMATS, AnyReport, Writer

if TYPE_CHECKING:
    from rich.console import Console

__all__: list[str] = []

STANDARD_OUTPUT = "-"
STATE = ".npz"  # the suffix of files of states
PRINTED: dict[str, Callable[[AnyReport], str]] = {
    "text": lambda report: report.to_text(),
    "markdown": lambda report: report.to_markdown(),
    "json": lambda report: report.to_json(),
    "csv": lambda report: report.to_csv(),
}


_R = TypeVar("_R", bound=AnyReport)


class Target(NamedTuple):
    """A file to write, the option that asks for it, and what writes it."""

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
        format: of what is printed, one of `PRINTED`.
        has_state: whether there is a state, which files may be asked to hold.
    """

    level: float
    title: str
    files: Sequence[Path] = ()
    json: str | None = None
    html: Path | None = None
    format: str = "text"
    has_state: bool = False

    @property
    def printed(self) -> str:
        """Gives the format of standard output."""
        return "json" if self.json == STANDARD_OUTPUT else self.format

    @property
    def state_files(self) -> list[Path]:
        """Lists the files that are to hold the state."""
        return [file for file in self.files if self.has_state and _suffix(file) == STATE]

    @property
    def targets(self) -> list[Target]:
        """Lists the files that are to hold the report, and what writes them."""
        found = []
        for file in self.files:
            if file in self.state_files:
                continue
            if _suffix(file) not in FORMATS:
                known = ", ".join([*FORMATS, *[f"{STATE} (the state)"] * self.has_state])
                raise InputError(
                    f"{shown(file)}: unknown suffix {file.suffix!r}; --output writes {known}"
                )
            found.append(Target("--output", file, FORMATS[_suffix(file)]))
        if self.json is not None and self.json != STANDARD_OUTPUT:
            found.append(Target("--json", Path(self.json), FORMATS[".json"]))
        if self.html is not None:
            found.append(Target("--html", self.html, FORMATS[".html"]))
        return found

    def check(self, inputs: Sequence[Path]) -> None:
        """Refuse a level that is none, unknown formats, and what would be overwritten."""
        try:
            normal_quantile(self.level)
        except ValueError:
            raise InputError(
                f"--level must be between 0 and 1 (0.95 for 95 %), got {self.level:g}"
            ) from None
        if self.format not in PRINTED:
            raise InputError(f"--format is one of {', '.join(PRINTED)}, got {self.format!r}")
        meant = (part for file in inputs for part in mentioned(file))
        taken = {os.path.realpath(part): "the input" for part in meant}
        states = [("--output", file) for file in self.state_files]
        for option, file in [*states, *((x.option, x.file) for x in self.targets)]:
            path = os.path.realpath(file)
            if path in taken:
                raise InputError(f"{shown(file)}: {option} would overwrite {taken[path]}")
            taken[path] = option


def _suffix(file: Path) -> str:
    return file.suffix.lower()


def deliver(result: Callable[[], _R], output: Output, inputs: Sequence[Path]) -> _R:
    """Write the result of reading `inputs`, or one line that says what is wrong."""
    with suppress(AttributeError, ValueError):  # on Windows, in another thread
        # The handler of polars lets a read go on after Ctrl-C, for ever where a pipe stays open.
        signal.siginterrupt(signal.SIGINT, True)
    try:
        output.check(inputs)
        with ExitStack() as stack, _warnings_as_lines():
            # Opened before anything is computed: what cannot be written is known at once.
            opened = [
                (stack.enter_context(_replaced_file(target.file)), target.writer)
                for target in output.targets
            ]
            report = result()
            for file, writer in opened:
                file.write(writer(report, output.title).encode("utf-8", "backslashreplace"))
        if sys.__stdout__ is not None or not opened:  # it may be closed where files are written
            sys.stdout.write(PRINTED[output.printed](report))
        return report
    except (InputError, OSError) as error:
        refuse(str(error))


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Write each warning of the library as one line on standard error, once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"jaxmetrics: warning: {printable(message)}", file=sys.stderr)


def refuse(message: str) -> NoReturn:
    """End with a line on standard error, in which nothing controls the terminal."""
    print(f"jaxmetrics: {printable(message)}", file=sys.stderr)
    raise typer.Exit(2)


@contextmanager
def _terminal() -> Iterator[Console | None]:
    """Open standard error if it is a terminal, by a descriptor of its own: while a library reads,
    the other one is closed.
    """
    from rich.console import Console

    with ExitStack() as stack:
        console = Console(stderr=True)
        with suppress(OSError, ValueError, AttributeError):  # none, or none with a descriptor
            copy = os.dup(sys.stderr.fileno())
            file = stack.enter_context(os.fdopen(copy, "w", encoding="utf-8"))
            console = Console(file=file)
        yield console if console.is_terminal else None


@contextmanager
def progress() -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar on standard error while the rows are counted, if that is a terminal."""
    with _terminal() as console:
        if console is None:
            yield lambda done, total: None
            return
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        layout = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*layout, console=console, transient=True) as bar:
            task = bar.add_task("rows", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def waiting(for_what: str) -> Iterator[None]:
    """Say on standard error what is being done, if that is a terminal."""
    with _terminal() as console:
        if console is None:
            yield
            return
        with console.status(f"{for_what} …"):
            yield


@contextmanager
def _replaced_file(target: Path) -> Iterator[BinaryIO]:
    """Open a file as `replaced_file` does, and complain of what cannot be written."""
    try:
        with replaced_file(target) as file:
            yield file
    except OSError as error:
        raise InputError(f"{shown(target)}: cannot be written: {error.strerror}") from None
