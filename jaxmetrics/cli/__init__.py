"""The command line: `jaxmetrics report`, `compare`, `leaderboard`, `plan` and `merge`.

Here is what can be typed. What is done about it is in `_commands.py`, which is imported when a
command runs, and so are the libraries that read files: help does not wait for them.
"""

import errno
import io
import os
import signal
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Annotated, NoReturn

try:
    import typer
except ImportError as error:
    raise SystemExit(
        f"jaxmetrics: the command line needs {error.name}: pip install 'jaxmetrics[cli]'"
    ) from None

from jaxmetrics.cli._options import (
    READ,
    Cluster,
    File,
    Files,
    Format,
    Html,
    Id,
    Ignore,
    Json,
    Level,
    MetricName,
    PosLabel,
    Pred,
    Prob,
    Score,
    Separator,
    StateOrFiles,
    Threshold,
    TrueColumn,
    input_file,
)

__all__ = ["main"]

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Performance measures of classifiers, with intervals.",
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from jaxmetrics import __version__

        print(f"jaxmetrics {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Measure classifiers by files of their predictions, with intervals."""


@app.command(short_help="Report on a file of predictions.")
def report(
    file: File,
    true: TrueColumn = "y_true",
    pred: Pred = None,
    weight: Annotated[
        str | None, typer.Option(help="Column of weights (2 = the row written twice).")
    ] = None,
    prob: Prob = None,
    score: Score = None,
    threshold: Threshold = None,
    pos_label: PosLabel = None,
    labels_prefix: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="TRUE PRED",
            help="Prefixes of the columns of 0 and 1, of truth and predictions, of examples with"
            " any number of labels.",
            show_default=False,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Column of groups: a report on each, and how much they differ."),
    ] = None,
    cluster: Cluster = None,
    prevalence: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS=SHARE,...",
            help="Restate the metrics as of examples among which the classes have these shares.",
        ),
    ] = None,
    ignore: Ignore = None,
    counts: Annotated[
        bool,
        typer.Option(
            "--counts",
            help="FILE holds a confusion matrix, row = true class, or a long table of its cells"
            " (y_true, y_pred, count).",
        ),
    ] = False,
    separator: Separator = None,
    level: Level = 0.95,
    files_to_write: Files = None,
    html: Html = None,
    json: Json = None,
    format: Format = "text",
) -> None:
    """Report how good the predictions in FILE are, per class and overall, with intervals.

    Rows are counted from 1, without the header.
    """
    from jaxmetrics.cli import _commands

    columns = _commands.Columns(
        true, pred, weight=weight, prob=prob, score=score, group=group, cluster=cluster
    )
    question = _commands.Selection(
        columns, frozenset(ignore or ()), pos_label, threshold, separator
    )
    output = _commands.Output(level, _name(file), files_to_write or (), json, html, format)
    if labels_prefix is not None:
        others = {
            "--pred": pred,
            "--weight": weight,
            "--prob": prob,
            "--score": score,
            "--group": group,
            "--cluster": cluster,
            "--pos-label": pos_label,
            "--prevalence": prevalence,
            "--ignore": ignore,
            "--counts": counts or None,
            "--threshold": threshold,
            "--true": None if true == "y_true" else true,
        }
        given = [option for option, value in others.items() if value is not None]
        if given:
            raise typer.BadParameter(f"--labels-prefix does not go with {', '.join(given)}.")
        _commands.report_labels(file, labels_prefix, separator, output)
    elif counts:
        _commands.report_counts(file, question, prevalence, output)
    else:
        _commands.report_predictions(file, question, prevalence, output)


@app.command(short_help="Compare two files of predictions in pairs.")
def compare(
    file_a: Annotated[Path, input_file("A", f"Predictions: {READ}.")],
    file_b: Annotated[Path, input_file("B", "Others for the same examples.")],
    true: TrueColumn = "y_true",
    pred: Pred = None,
    prob: Prob = None,
    score: Score = None,
    threshold: Threshold = None,
    pos_label: PosLabel = None,
    id: Id = None,
    cluster: Cluster = None,
    ignore: Ignore = None,
    rope: Annotated[float, typer.Option(help="Differences up to this size do not matter.")] = 0.0,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'METRIC >= NUMBER'",
            help="What the difference A - B must keep (repeatable), or METRIC <= NUMBER. The exit"
            " code is 0 if all of its interval does, 1 if nothing of it does, 3 if it is not"
            " known; 2 says that something was wrong with the input or the output.",
        ),
    ] = None,
    separator: Separator = None,
    level: Level = 0.95,
    files_to_write: Files = None,
    html: Html = None,
    json: Json = None,
    format: Format = "text",
) -> None:
    """Compare two files of predictions for the same examples, in pairs: differences with
    intervals, and McNemar's test.

    Rows are counted from 1, without the header.
    """
    from jaxmetrics.cli import _commands, _comparing

    columns = _commands.Columns(true, pred, prob=prob, score=score, cluster=cluster, id=id)
    question = _commands.Selection(
        columns, frozenset(ignore or ()), pos_label, threshold, separator
    )
    title = f"{_name(file_a)} and {_name(file_b)}"
    output = _commands.Output(level, title, files_to_write or (), json, html, format)
    _comparing.compare(file_a, file_b, question, rope, gate or (), output)


@app.command(short_help="Rank many classifiers.")
def leaderboard(
    files: Annotated[
        list[Path],
        input_file("FILE", f"Predictions for the same examples: {READ.partition(';')[0]}."),
    ],
    true: TrueColumn = "y_true",
    pred: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the predicted class; of a single FILE one for each classifier"
            " (repeatable).",
            show_default="y_pred; of a single FILE all that begin with y_pred",
        ),
    ] = None,
    metric: MetricName = "accuracy",
    pos_label: PosLabel = None,
    id: Id = None,
    cluster: Cluster = None,
    ignore: Ignore = None,
    separator: Separator = None,
    level: Level = 0.95,
    files_to_write: Files = None,
    html: Html = None,
    json: Json = None,
    format: Format = "text",
) -> None:
    """Rank classifiers on the same examples: ranks with intervals, tiers of those that cannot be
    told apart, how probably each is best, and the winner corrected for having been chosen.
    """
    from jaxmetrics.cli import _commands, _comparing

    columns = _commands.Columns(true, None, cluster=cluster, id=id)
    question = _commands.Selection(columns, frozenset(ignore or ()), pos_label, None, separator)
    output = _commands.Output(level, "Leaderboard", files_to_write or (), json, html, format)
    _comparing.leaderboard(files, pred or (), question, metric, output)


@app.command(short_help="Say how many examples a test set needs.")
def plan(
    files: Annotated[
        list[Path],
        input_file(
            "FILE",
            "Predictions of a pilot study; or two FILEs, of two classifiers for the same examples.",
        ),
    ],
    half_width: Annotated[
        float | None, typer.Option(help="Half of the width that the interval is to have.")
    ] = None,
    difference: Annotated[
        float | None, typer.Option(help="Difference between the two FILEs that is to be shown.")
    ] = None,
    power: Annotated[float, typer.Option(help="Probability to show it.")] = 0.8,
    metric: MetricName = "accuracy",
    true: TrueColumn = "y_true",
    pred: Pred = None,
    pos_label: PosLabel = None,
    id: Id = None,
    ignore: Ignore = None,
    counts: Annotated[
        bool,
        typer.Option(
            "--counts",
            help="FILE holds a confusion matrix, row = true class, or a long table of its cells.",
        ),
    ] = False,
    separator: Separator = None,
    level: Level = 0.95,
    files_to_write: Files = None,
    json: Json = None,
    format: Format = "text",
) -> None:
    """Say how many examples a test set needs: for an interval of a given width, or to show a
    difference between two classifiers.
    """
    from jaxmetrics.cli import _commands, _comparing

    question = _commands.Selection(
        _commands.Columns(true, pred, id=id), frozenset(ignore or ()), pos_label, None, separator
    )
    output = _commands.Output(level, "Plan", files_to_write or (), json, None, format)
    if counts and len(files) > 1:
        raise typer.BadParameter("--counts goes with one FILE: pairs are not in a matrix.")
    if half_width is not None and difference is None and len(files) == 1:
        _comparing.plan_width(files[0], question, metric, half_width, counts, output)
    elif difference is not None and half_width is None and len(files) == 2:
        pair = files[0], files[1]
        _comparing.plan_difference(pair, question, metric, difference, power, output)
    else:
        raise typer.BadParameter("give FILE --half-width H, or FILE FILE --difference D.")


@app.command(short_help="Add up the states that hosts have saved, and report.")
def merge(
    files: Annotated[list[Path], input_file("STATE", "Files written by save_state.")],
    files_to_write: StateOrFiles = None,
    classes: Annotated[
        str | None, typer.Option(help="Names of the classes, separated by commas.")
    ] = None,
    level: Level = 0.95,
    html: Html = None,
    json: Json = None,
    format: Format = "text",
) -> None:
    """Merge the evaluation states that hosts have saved, and report on all of their examples."""
    from jaxmetrics.cli import _states

    names = None if classes is None else classes.split(",")
    output = _states.Output(
        level, "Merged states", files_to_write or (), json, html, format, has_state=True
    )
    _states.merge(files, names, output)


def _name(file: Path) -> str:
    """Write the last part of a file's name, which need not be text."""
    return os.fsencode(file.name).decode("utf-8", "backslashreplace")


def main() -> None:
    """Run the command line; `--json` last, or before another option, writes to standard output.

    The exit code is 0, or 1 or 3 by a gate, or 2 where something is wrong with what was given or
    the output cannot be written, or `128 + number` of the signal that ended it.
    """
    _open_standard_streams()
    _exit_by_signals()
    given = sys.argv[1:]
    arguments: list[str] = []
    for argument, following in zip(given, [*given, "--"][1:], strict=True):
        arguments.append(argument)
        if argument == "--json" and following.startswith("--"):
            arguments.append("-")
    text = io.StringIO()
    try:
        # What is printed is written at the end, so that there is one place where this may fail.
        with redirect_stdout(text):
            app(arguments)
    except MemoryError:
        print("jaxmetrics: there is not enough memory", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:  # such as a standard error that cannot be written
        with suppress(OSError):
            print(f"jaxmetrics: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    finally:
        _write(text.getvalue())


def _open_standard_streams() -> None:
    """Open those that are closed, so that no file takes their place."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # until the end


def _write(text: str) -> None:
    """Write to standard output; what fails leaves nothing to be written at exit."""
    try:
        if text and sys.stdout is None:
            raise OSError(errno.EBADF, "it is closed")
        if text:
            if isinstance(sys.stdout, io.TextIOWrapper):  # not where a program captures it
                sys.stdout.reconfigure(errors="backslashreplace")
            sys.stdout.write(text)
            sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        if isinstance(error, BrokenPipeError):  # who reads has seen enough
            raise SystemExit(141) from None  # 128 + SIGPIPE
        with suppress(OSError):
            print(f"jaxmetrics: standard output: {error.strerror}", file=sys.stderr, flush=True)
        raise SystemExit(2) from None


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
