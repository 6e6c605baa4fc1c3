"""The command `merge`: read the states of evaluators, merge them, and report on the result."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import Namespace
from pathlib import Path

from jaxmetrics._places.jax_imports import jax
from jaxmetrics.cli._errors import InputError, refusals, shown
from jaxmetrics.cli._outputs import progress, targets, writing
from jaxmetrics.reports.singles import Report
from jaxmetrics.reports.statistics_found import confusion_matrices
from jaxmetrics.streaming.files import load_state, save_state
from jaxmetrics.streaming.states import EvaluatorState, merge_checked

__all__ = ["merge"]


def merge(options: Namespace) -> Report:
    """Run `jaxmetrics merge STATE...`: write the merged state, and return the report."""
    jax.config.update("jax_enable_x64", True)  # states may have float64 sums
    state = _read_state(options.files[0])
    paths = [os.path.realpath(file) for file in options.files]
    for i, file in enumerate(options.files[1:], 1):
        if paths[i] in paths[:i]:
            warnings.warn(
                f"{shown(file)} is given twice, so that its examples count twice.", stacklevel=2
            )
        with refusals(file):
            state = merge_checked(state, _read_state(file))
    written = targets(options)
    for _, file, writer in written:
        if writer is None:
            with writing(file):
                save_state(file, state)
    is_report_wanted = options.json is not None or not written or any(x.writer for x in written)
    if not confusion_matrices(state) and not is_report_wanted:
        number = f"{len(options.files)} states merged"
        print(f"jaxmetrics: {number}; they hold no counts to report on", file=sys.stderr)
        raise SystemExit
    with progress("computing intervals"), refusals(options.files[0]):
        return Report.from_state(state, class_names=options.classes, level=options.level)


def _read_state(file: Path) -> EvaluatorState:
    try:
        return load_state(file)
    except ValueError as error:  # the message names the file
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{shown(file)}: {error.strerror}") from None
