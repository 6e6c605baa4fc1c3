"""What each of the processes of `tests/test_processes.py` does; started by
`python -m tests.worker_of_processes`.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jaxmetrics as jm

NUM_PROCESSES = 2
NUM_EXAMPLES = 37  # odd, so that the processes have unequal shares
BATCH_SIZE = 10
PATIENCE = 60.0  # seconds, for every wait

Batch = dict[str, np.ndarray]
State = jm.streaming.EvaluatorState
Update = Callable[..., State]

EVALUATOR = jm.evaluator(
    jm.count_metrics({"accuracy": jm.accuracy}, num_classes=3), jm.mean_of("loss")
)


def all_examples() -> Batch:
    """The whole data set; three of its labels are ignored, and one prediction is invalid."""
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(0, 3, (2, NUM_EXAMPLES)).astype(np.int32)
    y_true[[3, 8, 20]], y_pred[15] = -1, 3
    return {
        "y_true": y_true,
        "y_pred": y_pred,
        "loss": rng.exponential(size=NUM_EXAMPLES).astype(np.float32),
    }


def batches_of(process: int) -> Iterator[Batch]:
    """Its share of the examples, in batches as many and as long as those of the other, the last one
    padded.
    """
    mine = {name: x[process::NUM_PROCESSES] for name, x in all_examples().items()}
    size = len(mine["loss"])
    for start in range(0, size, BATCH_SIZE):
        rows = np.arange(start, start + BATCH_SIZE)
        yield {name: x[np.minimum(rows, size - 1)] for name, x in mine.items()} | {
            "where": rows < size
        }


def update_on_each(mesh: Mesh) -> Update:
    """Each device updates an empty state, `psum` adds them, `merge` adds the examples before."""
    axis, everywhere = PartitionSpec("data"), PartitionSpec()

    def of_device(batch: dict[str, jax.Array]) -> State:
        return EVALUATOR.psum(EVALUATOR.update(EVALUATOR.init(), **batch), "data")

    of_all = jax.shard_map(of_device, mesh=mesh, in_specs=(axis,), out_specs=everywhere)
    return jax.jit(lambda state, **batch: EVALUATOR.merge(state, of_all(batch)))


def evaluate(process: int, update: Update, sharding: NamedSharding | None = None) -> State:
    """The state of the batches of this process; with a sharding, of those of all, each process
    giving its rows.
    """
    state = EVALUATOR.init()
    for batch in batches_of(process):
        if sharding is None:
            state = update(state, **batch)
        else:
            state = update(
                state,
                **{
                    name: jax.make_array_from_process_local_data(sharding, x)
                    for name, x in batch.items()
                },
            )
    return state


def write(folder: Path, name: str, state: State) -> None:
    jm.save_state(folder / f"{name}.npz", state)
    (folder / f"{name}.json").write_text(json.dumps(jm.to_python(EVALUATOR.compute(state))))


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"still waiting after {PATIENCE} s.")
        time.sleep(0.02)


def main(process: int, port: int, heartbeat_timeout: int, folder: Path) -> None:
    """Evaluate alone, report to be ready, wait for the signal to go on, evaluate with the
    others.
    """
    jax.distributed.initialize(
        f"127.0.0.1:{port}",
        NUM_PROCESSES,
        process,
        initialization_timeout=int(PATIENCE),
        heartbeat_timeout_seconds=heartbeat_timeout,
    )
    assert jax.process_count() == NUM_PROCESSES
    assert jax.device_count() > jax.local_device_count() > 1
    mesh = Mesh(np.array(jax.devices()), ("data",))
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    write(folder, f"alone{process}", evaluate(process, EVALUATOR.update))
    (folder / f"ready{process}").touch()
    wait_until((folder / "go").exists)
    write(folder, f"jit{process}", evaluate(process, jax.jit(EVALUATOR.update), sharding))
    write(folder, f"shard_map{process}", evaluate(process, update_on_each(mesh), sharding))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
