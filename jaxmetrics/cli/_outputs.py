"""Write the results of commands: reports in the requested formats, or one error line."""

from __future__ import annotations

import json
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from jaxmetrics._files import replaced_file
from jaxmetrics._text.wording import printable
from jaxmetrics.cli._errors import InputError, refusals, shown
from jaxmetrics.cli._options import COMMANDS, refuse
from jaxmetrics.cli._reader import mentioned
from jaxmetrics.estimates import normal_quantile
from jaxmetrics.reports.formats import FORMATS, AnyReport, as_text
from jaxmetrics.reports.gates import exit_code

STANDARD_OUTPUT = "-"
STATE = ".npz"  # suffix of states
PRINTED: dict[str, Callable[[AnyReport], str]] = {
    "text": AnyReport.to_text,
    "markdown": AnyReport.to_markdown,
    "latex": AnyReport.to_latex,
    "json": AnyReport.to_json,
    "csv": AnyReport.to_csv,
    "every-eval-ever": AnyReport.to_every_eval_ever,
}


class Target(NamedTuple):
    """An output file, its option, and the function that writes the report; None for the state."""

    option: str
    file: Path
    writer: Callable[[AnyReport], str] | None


def targets(options: Namespace) -> list[Target]:
    """List the output files. Only the command `merge` has a state."""
    states = {STATE: None} if options.command == "merge" else {}
    formats = {**FORMATS, **states}
    listed = []
    for file in options.output:
        suffix = file.suffix.lower()
        if suffix not in formats:
            known = ", ".join([*FORMATS, *(f"{x} (the state)" for x in states)])
            raise InputError(
                f"{shown(file)}: the suffix {file.suffix!r} is unknown. --output writes files with"
                f" the suffixes {known}."
            )
        listed.append(Target("--output", file, formats[suffix]))
    if options.json not in (None, STANDARD_OUTPUT):
        listed.append(Target("--json", Path(options.json), AnyReport.to_json))
    if options.html is not None:
        listed.append(Target("--html", options.html, AnyReport.to_html))
    return listed


def _check(options: Namespace, written: Sequence[Target]) -> None:
    """Raise an error for an invalid level, an unknown format, or an output that would overwrite an
    input or another output.
    """
    try:
        normal_quantile(options.level)
    except ValueError:
        raise InputError(
            f"--level must be between 0 and 1, such as 0.95 for 95 %, got {options.level:g}."
        ) from None
    if options.format not in PRINTED:
        raise InputError(f"--format must be one of {', '.join(PRINTED)}, got {options.format!r}.")
    meant = (part for file in options.files for part in mentioned(file))
    taken = {os.path.realpath(part): "the input" for part in meant}
    for option, file, _ in written:
        path = os.path.realpath(file)
        if path in taken:
            raise InputError(f"{shown(file)}: {option} would overwrite {taken[path]}")
        taken[path] = option


def deliver(compute: Callable[[Namespace], AnyReport], options: Namespace) -> int:
    """Compute the report of a command, write it, and return the exit code; or write one error line.

    A `--gate`, such as `accuracy >= 0.9`, is a bound on a metric. If a gate fails, the exit code is
    1. If no gate fails, but the confidence interval of a metric contains the bound of its gate, so
    that the gate is undecided, the exit code is 3. Otherwise, the exit code is 0.
    """
    title = COMMANDS[options.command].title or " and ".join(
        shown(file.name) for file in options.files
    )
    try:
        written = targets(options)
        _check(options, written)
        with ExitStack() as stack, _warnings_as_lines():
            # The files are opened before anything is computed, so that errors appear immediately.
            opened = []
            for _, target, writer in written:
                if writer is not None:
                    stack.enter_context(writing(target))
                    opened.append((stack.enter_context(replaced_file(target)), writer))
            report = compute(options)
            for file, writer in opened:
                is_page = writer is AnyReport.to_html
                page_title = None if options.command == "leaderboard" else title
                text = report.to_html(title=page_title) if is_page else writer(report)
                file.write(text.encode("utf-8", "backslashreplace"))
        # Standard output may be closed if files are written.
        screen = sys.__stdout__
        if screen is not None or not opened:
            kind = "json" if options.json == STANDARD_OUTPUT else options.format
            with refusals(title):
                text = PRINTED[kind](report)
            if screen is not None and screen.isatty():
                # Control characters of labels are escaped as JSON does.
                safe = "".join(c if c in printable(c) + "\n" else json.dumps(c)[1:-1] for c in text)
                plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
                has_colour = kind == "text" and text == safe and not plain
                text = as_text(report.outline(), has_colour=True) if has_colour else safe
            sys.stdout.write(text)
        return exit_code(report.gates)
    except (InputError, OSError) as error:
        refuse(str(error))


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Convert an OSError to an InputError that names the file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{shown(target)}: cannot be written: {error.strerror}") from None


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Write each different warning of the library once, as one line on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        print(f"jaxmetrics: warning: {printable(message)}", file=sys.stderr)


@contextmanager
def progress(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar during the block, if standard error is a terminal."""
    if not (sys.stderr.isatty() or {"FORCE_COLOR", "TTY_COMPATIBLE"} & set(os.environ)):
        yield lambda done, total: None  # without importing rich
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    layout = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with ExitStack() as stack:
        console = Console(stderr=True)
        # A separate descriptor, because the usual one is closed while a library reads.
        with suppress(OSError, ValueError, AttributeError):  # if it is closed or has no descriptor
            copy = os.dup(sys.stderr.fileno())
            console = Console(file=stack.enter_context(os.fdopen(copy, "w", encoding="utf-8")))
        is_hidden = not console.is_terminal
        bar = stack.enter_context(
            Progress(*layout, console=console, transient=True, disable=is_hidden)
        )
        task = bar.add_task(name, total=None)

        def on_progress(done: int, total: int | None) -> None:
            text = f"{name} {done}/{'?' if total is None else total}"
            bar.update(task, description=text, completed=done, total=total)

        yield on_progress
