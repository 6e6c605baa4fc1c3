"""Write the results of commands: reports in the requested formats, or one error line."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar

from jaxmetrics._files import replaced_file
from jaxmetrics._text.wording import printable
from jaxmetrics.cli._errors import InputError, refusals, shown
from jaxmetrics.cli._options import refuse
from jaxmetrics.cli._reader import mentioned
from jaxmetrics.estimates import normal_quantile
from jaxmetrics.reports.formats import FORMATS, AnyReport, Writer

if TYPE_CHECKING:
    from rich.console import Console

__all__: list[str] = []

STANDARD_OUTPUT = "-"
STATE = ".npz"  # suffix of states
PRINTED: dict[str, Callable[[AnyReport], str]] = {
    "text": lambda report: report.to_text(),
    "markdown": lambda report: report.to_markdown(),
    "json": lambda report: report.to_json(),
    "csv": lambda report: report.to_csv(),
    "every-eval-ever": lambda report: report.to_every_eval_ever(),
}


_R = TypeVar("_R", bound=AnyReport)


class Target(NamedTuple):
    """An output file, its option, and the function that writes the report; None for the state."""

    option: str
    file: Path
    writer: Writer | None


def targets(given: Namespace, *, has_state: bool = False) -> list[Target]:
    """List the output files."""
    formats: dict[str, Writer | None] = {**FORMATS, **({STATE: None} if has_state else {})}
    found = []
    for file in given.output:
        suffix = file.suffix.lower()
        if suffix not in formats:
            known = ", ".join([*FORMATS, *[f"{STATE} (the state)"] * has_state])
            raise InputError(
                f"{shown(file)}: the suffix {file.suffix!r} is unknown. --output writes files with"
                f" the suffixes {known}."
            )
        found.append(Target("--output", file, formats[suffix]))
    if given.json not in (None, STANDARD_OUTPUT):
        found.append(Target("--json", Path(given.json), FORMATS[".json"]))
    html = vars(given).get("html")
    if html is not None:
        found.append(Target("--html", html, FORMATS[".html"]))
    return found


def _check(given: Namespace, inputs: Sequence[Path], written: Sequence[Target]) -> None:
    """Raise an error for an invalid level, an unknown format, or an output that would overwrite an
    input or another output.
    """
    try:
        normal_quantile(given.level)
    except ValueError:
        raise InputError(
            f"--level must be between 0 and 1, such as 0.95 for 95 %, got {given.level:g}."
        ) from None
    if given.format not in PRINTED:
        raise InputError(f"--format must be one of {', '.join(PRINTED)}, got {given.format!r}.")
    meant = (part for file in inputs for part in mentioned(file))
    taken = {os.path.realpath(part): "the input" for part in meant}
    for option, file, _ in written:
        path = os.path.realpath(file)
        if path in taken:
            raise InputError(f"{shown(file)}: {option} would overwrite {taken[path]}")
        taken[path] = option


def deliver(
    result: Callable[[Namespace], _R],
    given: Namespace,
    inputs: Sequence[Path],
    title: str,
    *,
    has_state: bool = False,
) -> _R:
    """Compute the result of a command, and write the report, or one error line.

    Args:
        result: the function that reads the inputs and computes the report.
        given: the parsed arguments.
        inputs: the input files.
        title: the title of HTML pages.
        has_state: whether the command has a state, which `result` writes.
    """
    with suppress(AttributeError, ValueError):  # raised on Windows and in other threads
        # The signal handler of polars would continue a read after Ctrl-C, forever for an open pipe.
        signal.siginterrupt(signal.SIGINT, True)
    try:
        found = targets(given, has_state=has_state)
        _check(given, inputs, found)
        with ExitStack() as stack, _warnings_as_lines():
            # The files are opened before anything is computed, so that errors appear immediately.
            opened = [
                (stack.enter_context(_replaced_file(file)), writer)
                for _, file, writer in found
                if writer is not None
            ]
            report = result(given)
            for file, writer in opened:
                file.write(writer(report, title).encode("utf-8", "backslashreplace"))
        # Standard output may be closed if files are written.
        if sys.__stdout__ is not None or not opened:
            kind = "json" if given.json == STANDARD_OUTPUT else given.format
            with refusals(title):
                text = PRINTED[kind](report)
            sys.stdout.write(text)
        return report
    except (InputError, OSError) as error:
        refuse(str(error))


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Write each different warning of the library once, as one line on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"jaxmetrics: warning: {printable(message)}", file=sys.stderr)


@contextmanager
def _terminal() -> Iterator[Console | None]:
    """If standard error is a terminal, open it with a separate descriptor, because the usual
    descriptor is closed while a library reads; otherwise return None.
    """
    if not (sys.stderr.isatty() or {"FORCE_COLOR", "TTY_COMPATIBLE"} & set(os.environ)):
        yield None  # without importing rich
        return
    from rich.console import Console

    with ExitStack() as stack:
        console = Console(stderr=True)
        with suppress(OSError, ValueError, AttributeError):  # if it is closed or has no descriptor
            copy = os.dup(sys.stderr.fileno())
            file = stack.enter_context(os.fdopen(copy, "w", encoding="utf-8"))
            console = Console(file=file)
        yield console if console.is_terminal else None


@contextmanager
def progress(of_what: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar during the block, if standard error is a terminal."""
    with _terminal() as console:
        if console is None:
            yield lambda done, total: None
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        layout = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*layout, console=console, transient=True) as bar:
            task = bar.add_task(of_what, total=None)

            def on_progress(done: int, total: int | None) -> None:
                text = f"{of_what} {done}/{'?' if total is None else total}"
                bar.update(task, description=text, completed=done, total=total)

            yield on_progress


@contextmanager
def _replaced_file(target: Path) -> Iterator[BinaryIO]:
    """Open a file with `replaced_file`, and convert an OSError to an InputError."""
    try:
        with replaced_file(target) as file:
            yield file
    except OSError as error:
        raise InputError(f"{shown(target)}: cannot be written: {error.strerror}") from None
