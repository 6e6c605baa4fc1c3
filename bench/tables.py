"""A hundred million rows of Parquet, counted by an engine that we ask, and by its own group-by.

Each run has a process of its own, whose greatest memory is measured, libraries included.
`python -m bench.tables` writes 0.9 GB into a temporary folder.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.harness import ROOT, publish, status, three_digits

ROWS, CLASSES = 10**8, 10
PROCESSES, CALLS = 3, 3
NOTE = (
    f"The Parquet file has {ROWS:.0e} rows. Each row has a true and a predicted label ({CLASSES}"
    " classes), a score and a weight. `by hand` is a query for Polars or DuckDB without"
    " jaxmetrics. This query counts scores in bins of equal width. `score_histogram_of` counts"
    " scores in the 4096 bins that `score_histogram` uses for probabilities, and also counts the"
    " confusion matrix at one threshold."
    f" The time of a process is the time of the fastest of {CALLS} calls, and the table shows the"
    f" median of {PROCESSES} processes. The memory is the largest amount that a process used,"
    " including its libraries."
)

Query = Callable[[str], Any]
Process = dict[str, float]


def polars(query: Callable[[Any], Any]) -> Query:
    import polars as pl

    return lambda path: query(pl.scan_parquet(path))


def duckdb(query: Callable[[Any], Any]) -> Query:
    import duckdb as engine

    return lambda path: query(engine.read_parquet(path))


def ours(job: str) -> Callable[[Any], Any]:
    import jaxmetrics as jm

    return {
        "confusion matrix": jm.confusion_matrix_of,
        "float weights": lambda table: jm.confusion_matrix_of(table, sample_weight="weight"),
        "histogram of scores": lambda table: jm.score_histogram_of(
            table, y_true="positive", scale="probability", threshold=0.5
        ),
    }[job]


def polars_by_hand(job: str) -> Callable[[Any], Any]:
    import polars as pl

    labels, bins = ("y_true", "y_pred"), (pl.col("y_score") * 4096).floor()
    grouped = {
        "confusion matrix": lambda table: table.group_by(labels).len(),
        "float weights": lambda table: table.group_by(labels).agg(pl.col("weight").sum()),
        "histogram of scores": lambda table: table.group_by("positive", bins).len(),
    }[job]
    return lambda table: grouped(table).collect(engine="streaming")


def duckdb_by_hand(job: str) -> Callable[[Any], Any]:
    columns = {
        "confusion matrix": "y_true, y_pred, count(*)",
        "float weights": "y_true, y_pred, sum(weight)",
        "histogram of scores": "positive, floor(y_score * 4096), count(*)",
    }[job]
    return lambda table: table.aggregate(columns).fetchall()


JOBS = ("confusion matrix", "float weights", "histogram of scores")
ENGINES = {"Polars": (polars, polars_by_hand), "DuckDB": (duckdb, duckdb_by_hand)}
OURS, HAND = SIDES = ("jaxmetrics", "by hand")


def write(path: Path, rows: int) -> None:
    import duckdb as engine

    engine.execute("set preserve_insertion_order = false")
    right = "hash(i) % 10 < 8"
    engine.execute(
        f"copy (select (i % {CLASSES})::tinyint as y_true,"
        f" (case when {right} then i else hash(i + 1) end % {CLASSES})::tinyint as y_pred,"
        f" (i % {CLASSES} = 1)::tinyint as positive, (hash(i + 2) % 1000003) / 1000003 as y_score,"
        f" (hash(i + 3) % 97) / 97 as weight from range({rows}) _(i)) to '{path}' (format parquet)"
    )


def work(engine: str, side: str, job: str, path: str) -> Process:
    """What a process of its own measures."""
    relation, by_hand = ENGINES[engine]
    query = relation(ours(job) if side == OURS else by_hand(job))
    seconds = []
    for _ in range(CALLS):
        start = time.perf_counter()
        query(path)
        seconds.append(time.perf_counter() - start)
    return {"seconds": min(seconds), "first": seconds[0], "bytes": float(status("VmHWM"))}


def fresh(*arguments: str) -> Process:
    command = [sys.executable, "-m", "bench.tables", *arguments]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(process.stdout.splitlines()[-1])


def measure(rows: int) -> dict[str, dict[str, list[Process]]]:
    """The processes of each job, engine and side, which take turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write(path, rows)
        results = {
            f"{job}, {engine}": {side: list[Process]() for side in SIDES}
            for job in JOBS
            for engine in ENGINES
        }
        for _ in range(PROCESSES):
            for name, sides in results.items():
                job, engine = name.rsplit(", ", 1)
                for side, processes in sides.items():
                    processes.append(fresh(engine, side, job, str(path)))
    return results


def row(name: str, sides: dict[str, list[Process]]) -> list[str]:
    def median(side: str, key: str) -> float:
        return statistics.median(process[key] for process in sides[side])

    seconds = {side: median(side, "seconds") for side in SIDES}
    memory = (f"{max(p['bytes'] for p in sides[side]) / 1e6:.0f}" for side in SIDES)
    speed = seconds[HAND] / seconds[OURS]
    times = (three_digits(seconds[side]) for side in SIDES)
    return [name, *times, f"{speed:.2f}", *memory]


def main() -> None:
    results = measure(ROWS)
    headings = ["s, MB", *SIDES, "speed", "memory", "memory, by hand"]
    rows = [row(name, sides) for name, sides in results.items()]
    note = f"{NOTE} The machine has {os.cpu_count()} cores."
    publish("tables", results, headings, rows, note, "Times are in seconds, and memory is in MB.")


if __name__ == "__main__":
    print(json.dumps(work(*sys.argv[1:]))) if sys.argv[1:] else main()
