"""The command line: `jaxmetrics report`, `compare`, `leaderboard`, `plan` and `merge`.

The options are defined in `_options.py`. The modules of a command and the libraries that read files
are imported only when the command runs, so that `--help` is fast.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress

from jaxmetrics import __version__
from jaxmetrics._files import UNFINISHED
from jaxmetrics._text.wording import printable
from jaxmetrics.cli._options import COMMANDS, Parser, parser_of, refuse

__all__ = ["main"]


def app(arguments: Sequence[str]) -> int:
    """Run the command named by the first argument, or print help, and return the exit code."""
    summaries = (
        f"  {name:11} {x.summary.partition(':')[0].rstrip('.')}" for name, x in COMMANDS.items()
    )
    parser = Parser(
        "jaxmetrics",
        "Classification metrics with confidence intervals, from files of predictions.",
        "COMMAND [--help] ...",
        epilog="commands:\n" + "\n".join(summaries),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)
    parser.add_argument("--version", action="version", version=f"jaxmetrics {__version__}")
    name = parser.parse_args(arguments[:1] or ["--help"]).command
    for argument in arguments:
        if re.fullmatch("--[^=]+=--", argument):  # argparse of Python 3.11 makes it a list
            refuse(f"{argument}: the value of an option cannot be --; see {name} --help")
    options = parser_of(name).parse_intermixed_args(_with_bounds(arguments[1:]))
    options.invalid = [*dict.fromkeys(options.invalid)]
    if options.bounds is not None and not options.value:
        refuse("--bounds needs --value, the name of the column of scores")
    try:
        from jaxmetrics.cli._outputs import deliver

        module = importlib.import_module(f"jaxmetrics.cli.{COMMANDS[name].module}")
        return deliver(getattr(module, name), options)
    except ModuleNotFoundError as error:
        needed = f"the command line needs {error.name}: run pip install 'jaxmetrics[cli]'"
        print(f"jaxmetrics: {needed}", file=sys.stderr)
        return 2


def _with_bounds(arguments: Sequence[str]) -> list[str]:
    """Write `--bounds -1,1` as `--bounds=-1,1`, because argparse would read -1,1 as an option."""
    text = "\0".join(arguments)
    return re.sub(r"(^|\0)--bounds\0(?=-[\d.])", r"\1--bounds=", text).split("\0") if text else []


def main() -> None:
    """Run the command line.

    The exit code is 0 for success, 1 if a gate failed, 3 if a gate is undecided, 2 if the input is
    invalid or the output cannot be written, 70 after an error that we did not foresee, and
    `128 + number` if a signal ended the program.
    """
    _open_standard_streams()
    os.environ["MPLBACKEND"] = "agg"  # pages need no window, and matplotlib raises for other names
    _exit_by_signals()
    text = io.StringIO()
    try:
        # All output is printed at the end, so that writing can fail in one place only.
        with redirect_stdout(text):
            sys.exit(app(sys.argv[1:]))
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # 128 + SIGINT
    except MemoryError:
        print("jaxmetrics: there is not enough memory", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:  # for example, if standard error cannot be written
        with suppress(OSError):
            print(f"jaxmetrics: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except SystemExit:
        raise
    except BaseException as error:  # also a panic of polars; Python would exit with 1
        place = traceback.extract_tb(error.__traceback__)[-1]
        what = printable(f"{type(error).__name__}: {error}")
        print(
            f"jaxmetrics: unforeseen error in {place.name}, line {place.lineno}: {what}. Please"
            f" open an issue with this line, the command and version {__version__}.",
            file=sys.stderr,
        )
        raise SystemExit(70) from error  # EX_SOFTWARE
    finally:
        _write(text.getvalue())


def _open_standard_streams() -> None:
    """Open the null device in place of closed standard streams, so that no file replaces them."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # until the end


def _write(text: str) -> None:
    """Write to standard output. If this fails, discard the text that Python would write at exit."""
    try:
        if text and sys.stdout is None:
            raise OSError(errno.EBADF, "it is closed")
        if text:
            if isinstance(sys.stdout, io.TextIOWrapper):  # false if a program captures the output
                sys.stdout.reconfigure(errors="backslashreplace")
            sys.stdout.write(text)
            sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        if isinstance(error, BrokenPipeError):  # the reader closed the pipe
            raise SystemExit(141) from None  # 128 + SIGPIPE
        with suppress(OSError):
            print(f"jaxmetrics: standard output: {error.strerror}", file=sys.stderr, flush=True)
        raise SystemExit(2) from None


def _exit_by_signals() -> None:
    """End the program at once if a signal arrives, so that no half-written file remains.

    Any thread may get a signal, and Python then writes its number to a pipe. A thread reads the
    pipe, because an exception in the main thread could be lost in a callback, and would wait for
    the end of a call of another library. Signals that are ignored, for example after `nohup`,
    remain ignored.
    """
    if not hasattr(signal, "SIGHUP"):  # on Windows, Python raises KeyboardInterrupt
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def leave() -> None:
        number = os.read(reader, 1)[0]
        for file in list(UNFINISHED):
            file.unlink(missing_ok=True)
        os._exit(128 + number)

    signal.set_wakeup_fd(writer)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    threading.Thread(target=leave, daemon=True).start()
