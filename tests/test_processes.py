"""Two processes of two devices each, as two hosts would be: together they give what one gives, and
none outwaits the other.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxmetrics as jm
from tests.worker_of_processes import (
    EVALUATOR,
    NUM_EXAMPLES,
    NUM_PROCESSES,
    PATIENCE,
    State,
    all_examples,
    wait_until,
)

ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo",
    "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running(folder: Path, *, heartbeat_timeout: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes, each of which has evaluated its own part and waits for the signal to evaluate
    with the other.
    """
    port, processes = str(free_port()), []
    try:
        for process in range(NUM_PROCESSES):
            command = [
                sys.executable,
                "-m",
                "tests.worker_of_processes",
                str(process),
                port,
                str(heartbeat_timeout),
                str(folder),
            ]
            with (folder / f"log{process}").open("wb") as log:
                processes.append(
                    subprocess.Popen(
                        command,
                        cwd=Path(__file__).parents[1],
                        env=os.environ | ENVIRONMENT,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                    )
                )
        ready = [folder / f"ready{process}" for process in range(NUM_PROCESSES)]
        wait_until(
            lambda: (
                all(path.exists() for path in ready) or any(p.poll() is not None for p in processes)
            )
        )
        assert all(path.exists() for path in ready)
        yield processes
    finally:
        for p in processes:
            p.kill()
        for p in processes:
            p.wait(PATIENCE)
        for path in sorted(folder.glob("log*")):
            print(path.read_text(errors="replace"))  # pytest shows it if a test fails


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the processes wrote; started once, for that takes longer than all the rest."""
    folder = tmp_path_factory.mktemp("processes")
    with running(folder, heartbeat_timeout=int(PATIENCE)) as processes:
        (folder / "go").touch()
        wait_until(
            lambda: all(p.poll() == 0 for p in processes) or any(p.poll() for p in processes)
        )
        assert [p.poll() for p in processes] == [0, 0]
    return folder


def assert_same_integers(x: jax.Array, y: jax.Array) -> None:
    assert (x.shape, x.dtype) == (y.shape, y.dtype)
    # Sums of floats may be split otherwise into value and error.
    if np.issubdtype(x.dtype, np.integer):
        np.testing.assert_array_equal(x, y)


def assert_whole(state: State, results: dict[str, float]) -> None:
    """Counts are exactly those of all examples in one process; the loss is, but for the last
    digits.
    """
    whole = EVALUATOR.update(EVALUATOR.init(), **all_examples())
    expected = jm.to_python(EVALUATOR.compute(whole))
    numbers = [expected[f"num_{name}"] for name in ("examples", "ignored", "invalid")]
    assert numbers == [NUM_EXAMPLES - 4, 3, 1]
    assert results | {"loss": 0} == expected | {"loss": 0}
    assert results["loss"] == pytest.approx(expected["loss"], rel=1e-6)
    jax.tree.map(assert_same_integers, state, whole)


@pytest.mark.parametrize("process", range(NUM_PROCESSES))
@pytest.mark.parametrize("way", ["jit", "shard_map"])
def test_each_process_has_the_results_of_all(way: str, process: int, folder: Path) -> None:
    path = folder / f"{way}{process}.npz"
    assert_whole(jm.load_state(path), json.loads(path.with_suffix(".json").read_text()))


def test_states_of_processes_merge_offline(folder: Path) -> None:
    paths = [folder / f"alone{process}.npz" for process in range(NUM_PROCESSES)]
    parts = [json.loads(path.with_suffix(".json").read_text()) for path in paths]
    names = "num_examples", "num_ignored", "num_invalid"
    assert sum(part[name] for part in parts for name in names) == NUM_EXAMPLES
    merged = reduce(EVALUATOR.merge, map(jm.load_state, paths))
    assert_whole(merged, jm.to_python(EVALUATOR.compute(merged)))


@pytest.mark.parametrize("victim", range(NUM_PROCESSES))
def test_a_killed_process_ends_the_other(victim: int, tmp_path: Path) -> None:
    """The heartbeat bounds the wait for it, 100 s by default; only the loss of process 0, the
    coordinator, is seen at once.
    """
    survivor = 1 - victim
    with running(tmp_path, heartbeat_timeout=3) as processes:
        processes[victim].kill()
        processes[victim].wait(PATIENCE)
        (tmp_path / "go").touch()
        assert processes[survivor].wait(PATIENCE) != 0
    # No results without the victim's examples.
    assert {path.stem for path in tmp_path.glob("*.json")} == {
        "alone0",
        "alone1",
    }
    saved = EVALUATOR.compute(jm.load_state(tmp_path / f"alone{survivor}.npz"))
    assert jm.to_python(saved) == json.loads((tmp_path / f"alone{survivor}.json").read_text())
