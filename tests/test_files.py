"""Files that appear whole or not at all, and what damaged or strange states do."""

import dataclasses
import io
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxmetrics as jm
from jaxmetrics._files import replaced_file

EVALUATOR = jm.evaluator(
    jm.count_metrics({"accuracy": jm.accuracy}, num_classes=2),
    jm.mean_of("loss", groups="kind", num_groups=2, weights="size"),
    jm.poisson_bootstrap(jm.mean_of("other"), num_samples=2),
)
BATCH: dict[str, Any] = {
    "y_true": np.array([0, 1, 1]),
    "y_pred": np.array([0, 1, 0]),
    "loss": np.array([0.1, 0.2, 2.1]),
    "kind": np.array([0, 1, 1]),
    "size": np.array([3.0, 1.0, 2.0]),
    "other": np.array([1.0, 2.0, 4.0]),
    "unit": np.arange(3),
}


def state_of_batch() -> jm.streaming.EvaluatorState:
    return EVALUATOR.update(EVALUATOR.init(), **BATCH)


@pytest.mark.quick
def test_threads_that_write_one_file(tmp_path: Path) -> None:
    """Each reads a whole file while others replace it, and none finds its own gone."""
    target, failures = tmp_path / "x", []

    def write_and_read(letter: bytes) -> None:
        for _ in range(50):
            try:
                with replaced_file(target) as file:
                    file.write(letter * 1000)
                    file.write(letter * 1000)
                content = target.read_bytes()
                assert len(content) == 2000
                assert len(set(content)) == 1
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=write_and_read, args=(x,)) for x in (b"a", b"b", b"c", b"d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.quick
def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "x"
    target.write_text("old")

    def write(error: BaseException) -> None:
        with replaced_file(target) as file:
            file.write(b"new")
            raise error

    for error in (ValueError(), KeyboardInterrupt(), SystemExit()):
        with pytest.raises(type(error)):
            write(error)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    with pytest.raises(FileNotFoundError), replaced_file(tmp_path / "none" / "x"):
        pass


@pytest.mark.quick
@pytest.mark.skipif(os.name == "nt", reason="modes, links and pipes of POSIX")
def test_modes_links_and_pipes(tmp_path: Path) -> None:
    ordinary, target = tmp_path / "ordinary", tmp_path / "x"
    ordinary.touch()
    with replaced_file(target) as file:
        file.write(b"1")
    assert target.stat().st_mode == ordinary.stat().st_mode
    target.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to("x")
    with replaced_file(link) as file:
        file.write(b"2")
    assert link.is_symlink()
    assert target.read_bytes() == b"2"
    assert target.stat().st_mode & 0o777 == 0o600

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    jm.save_state(pipe, state_of_batch())
    reader.join()
    (tmp_path / "y.npz").write_bytes(read[0])
    assert_equal(jm.load_state(tmp_path / "y.npz"), state_of_batch())
    assert pipe.is_fifo()
    with replaced_file("/dev/null") as file:
        file.write(b"3")
    assert Path("/dev/null").is_char_device()
    link.unlink()
    link.symlink_to("link")
    with pytest.raises(OSError, match="symbolic links"), replaced_file(link):
        pass


@pytest.mark.quick
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_leaves_no_file(name: str, tmp_path: Path) -> None:
    """Sent while the output is open, in a callback that would lose an exception."""
    number = getattr(signal, name)
    program = (
        "import os, signal, sys, time; from pathlib import Path; from jaxmetrics import cli;"
        "from jaxmetrics._files import replaced_file\n"
        "def wait():\n"
        "    with replaced_file(sys.argv[1]):\n"
        "        class Garbage:\n"
        "            def __del__(self):\n"
        "                os.write(1, b'open\\n'); time.sleep(60)\n"
        "        Garbage()\n"
        "cli.app = lambda arguments: wait()\n"
        # Whoever starts the tests by `nohup` has them inherit that it is ignored.
        f"signal.signal(signal.{name}, signal.SIG_DFL)\n"
        "cli.main()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "x")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    assert list(tmp_path.iterdir()) == []


def assert_equal(a: Any, b: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, np.ndarray]:
    jm.save_state(tmp_path / "good.npz", state_of_batch())
    with np.load(tmp_path / "good.npz") as npz:
        return dict(npz)


def described(saved: dict[str, np.ndarray], **options: Any) -> dict[str, np.ndarray]:
    """Change options of the statistics in a file."""
    descriptions = json.loads(str(saved["statistics"]))
    for description in descriptions:
        changed = {k: v for k, v in options.items() if k in description["options"]}
        description["options"] |= changed
    return {"statistics": np.asarray(json.dumps(descriptions))}


CHANGES: list[Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]] = [
    lambda saved: {"0/total": np.array([["a", "b"]] * 2)},
    lambda saved: {"0/total": np.zeros((2, 2, 2), "datetime64[s]")},
    lambda saved: {"0/total": saved["0/total"].astype(np.int64) - 5},
    lambda saved: {"0/total": saved["0/total"][:, :1]},
    lambda saved: {"1/total": saved["1/total"].astype(complex)},
    lambda saved: {"1/total": saved["1/total"].astype(np.float16)},
    lambda saved: {"1/total": saved["1/total"][..., :2]},
    lambda saved: described(saved, weighted=1),
    lambda saved: described(saved, weighted=None),
    lambda saved: {"version": np.asarray(2)},
    lambda saved: {"examples": np.zeros(3, np.uint32)},
    lambda saved: {"examples": np.array(["1", "2"])},
    lambda saved: {"version": np.asarray("two")},
    lambda saved: {"version": np.arange(3)},
    lambda saved: {"statistics": np.asarray("[" * 100_000)},
    lambda saved: {"statistics": np.asarray(7)},
    lambda saved: {"statistics": np.asarray('[{"kind": "\x1b[31m"}]')},
    lambda saved: {"statistics": np.asarray('["\x1b[31m"]')},
    lambda saved: described(saved, num_classes="2"),
    lambda saved: described(saved, num_classes=-2),
    lambda saved: described(saved, num_classes=10**30),
    lambda saved: described(saved, name=5),
    lambda saved: described(saved, weights=5),
    lambda saved: described(saved, groups=None, num_groups="2"),
    lambda saved: described(saved, num_groups=0),
    lambda saved: described(saved, statistic="x"),
    lambda saved: {"statistics": np.asarray(str(saved["statistics"]).replace("name", "colour"))},
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_states_of_other_contents(
    number: int, saved: dict[str, np.ndarray], tmp_path: Path
) -> None:
    arrays: dict[str, Any] = saved | CHANGES[number](saved)
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(
        ValueError, match=r"x\.npz: this file does not contain the state of an evaluator\.$"
    ):
        jm.load_state(tmp_path / "x.npz")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_states_of_impossible_sums(
    bad: float, saved: dict[str, np.ndarray], tmp_path: Path
) -> None:
    """Of every statistic; only sums of values may be negative, in replicates too."""
    state = state_of_batch()
    for i, statistic in enumerate(state.statistics[1:], 1):
        moments = "Moments" in repr(statistic)
        for place in range(statistic.shape[-1]):  # type: ignore[union-attr]
            sums = saved[f"{i}/total"].copy()
            sums[0, ..., place] = bad
            sums[1] = 0
            np.savez(tmp_path / "x.npz", **(saved | {f"{i}/total": sums}))  # type: ignore[arg-type]
            if moments and place in (1, 4) and bad == -1:
                jm.load_state(tmp_path / "x.npz")
                continue
            message = rf"x\.npz: the file contains a state in which the sum {bad:g} of"
            with pytest.raises(ValueError, match=message):
                jm.load_state(tmp_path / "x.npz")


def test_states_of_more_than_their_examples_and_bytes(
    saved: dict[str, np.ndarray], tmp_path: Path
) -> None:
    """Sums of no examples, members that share their bytes, and files without an end."""
    path = tmp_path / "x.npz"
    ignored = np.array([[0, 5, 0], [0, 0, 0]], np.uint32)
    np.savez(path, **saved | {"examples": ignored})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="contains sums, but it has counted no examples"):
        jm.load_state(path)
    invalid = np.array([[0, 5, 7], [0, 0, 0]], np.uint32)  # rows of means, not of classes
    np.savez(path, **saved | {"examples": invalid})  # type: ignore[arg-type]
    jm.load_state(path)
    whole = io.BytesIO()
    np.save(whole, np.zeros(2**18))
    members, tail = [], whole.getvalue()
    for i in range(40):  # each member holds all members behind it
        name, size = f"{i}.npy".encode(), len(tail)
        about = struct.pack("<5H3L2H", 20, 0, 0, 0, 33, zlib.crc32(tail), size, size, len(name), 0)
        members.append((name, about, len(tail) + 30 + len(name)))
        opening = {"descr": "|u1", "fortran_order": False, "shape": (members[-1][2],)}
        whole = io.BytesIO()
        np.lib.format.write_array_header_1_0(whole, opening)
        tail = whole.getvalue() + b"PK\3\4" + about + name + tail
    listed = b"".join(
        b"PK\1\2\24\0" + about + struct.pack("<3H2L", 0, 0, 0, 0, len(tail) - place) + name
        for name, about, place in members
    )
    ends = struct.pack("<4H2LH", 0, 0, len(members), len(members), len(listed), len(tail), 0)
    path.write_bytes(tail + listed + b"PK\5\6" + ends)
    assert zipfile.ZipFile(path).getinfo("39.npy").file_size > 2**21
    tracemalloc.start()
    with pytest.raises(ValueError, match="does not contain the state of an evaluator"):
        jm.load_state(path)
    assert tracemalloc.get_traced_memory()[1] < 3 * 2**21
    tracemalloc.stop()
    for endless in ("/dev/zero", "/dev/urandom"):
        with pytest.raises(ValueError, match="from a file, not from a pipe or a device"):
            jm.load_state(endless)


def test_merged_counts_do_not_start_again_from_0() -> None:
    """Two states of 2^62 examples are refused, of which one more or less is not."""
    state = state_of_batch()
    words = np.array([[0, 2**31], [2**31 - 1, 2**31 - 1]], np.uint32)  # low and high, as a count
    half, less = (
        dataclasses.replace(state, examples=state.examples.at[:, 0].set(x)) for x in words
    )
    assert EVALUATOR.merge(half, less).examples[:, 0].tolist() == [2**31 - 1, 2**32 - 1]
    with pytest.raises(
        ValueError, match=r"The sum of the states would contain counts of 2\^63 or more"
    ):
        EVALUATOR.merge(half, half)
    assert jax.jit(EVALUATOR.merge)(half, half).examples[:, 0].tolist() == [0, 0]  # hidden by jit


def test_damaged_states(saved: dict[str, np.ndarray], tmp_path: Path) -> None:
    """Cut anywhere, a byte flipped, encrypted, packed, with a header that promises too much."""
    good, path = (tmp_path / "good.npz").read_bytes(), tmp_path / "x.npz"
    rng = np.random.default_rng(0)
    damaged = [good[:end] for end in rng.integers(0, len(good), 60)]
    for place in rng.integers(0, len(good), 400):
        bytes_ = bytearray(good)
        bytes_[place] ^= 1 << rng.integers(8)
        damaged.append(bytes(bytes_))
    damaged.append(good.replace(b"'shape': (2, 2)", b"'shape': (99999999999999999999, 2)"))
    damaged.append(good.replace(b"'shape': (2, 2)", b"'shape': (True,)"))
    for content in damaged:
        path.write_bytes(content)
        message = f"{path}: "
        try:
            state = jm.load_state(path)
        except ValueError as error:
            message = str(error)
        else:  # the bit stands where nobody reads it
            assert_equal(state.totals, state_of_batch().totals)
        assert message.startswith(f"{path}: ")
        assert message.isprintable()
    np.savez_compressed(path, **saved)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="does not contain the state of an evaluator"):
        jm.load_state(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("version.npy", b"")
    with pytest.raises(ValueError, match="does not contain the state of an evaluator"):
        jm.load_state(path)


def test_sums_in_double_precision_are_not_cut(float64: None, tmp_path: Path) -> None:
    path, state = tmp_path / "x.npz", state_of_batch()
    jm.save_state(path, state)
    assert_equal(jm.load_state(path), state)
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(ValueError, match=r'double precision.*update\("jax_enable_x64", True\)'):
        jm.load_state(path)


def test_control_characters_of_names_are_escaped(tmp_path: Path) -> None:
    evaluator = jm.evaluator(jm.mean_of("\x1b[31mred"))
    jm.save_state(tmp_path / "x.npz", evaluator.init())
    state = jm.load_state(tmp_path / "x.npz")
    for call in (
        lambda: jm.Report.from_state(state),
        lambda: EVALUATOR.compute(state),
        lambda: EVALUATOR.merge(state_of_batch(), state),
    ):
        with pytest.raises(ValueError, match="x1b") as caught:
            call()
        assert str(caught.value).isprintable()


DATA = Path(__file__).parent / "data"


def evaluator_of_0_3(*, weighted: bool = False) -> jm.streaming.Evaluator:
    """The evaluator whose states jaxmetrics 0.3 wrote to tests/data."""
    return jm.evaluator(
        jm.count_metrics({"accuracy": jm.accuracy}, num_classes=3, weighted=weighted),
        jm.mean_of("loss"),
        jm.ranking_metrics(
            {"auc": jm.roc_auc}, scale="probability", num_bins=64, num_classes=3, weighted=weighted
        ),
        jm.poisson_bootstrap(
            jm.count_metrics({"recall": jm.recall}, num_classes=3, weighted=weighted), num_samples=2
        ),
    )


def tree_of_0_3(name: str) -> Any:
    """What Orbax restores without a target."""
    with np.load(DATA / name) as npz:
        arrays = dict(npz)
    totals = [
        {"sums": arrays[f"{i}/sums"], "counts": arrays.get(f"{i}/counts")}
        for i in range(len(json.loads(str(arrays["statistics"]))))
    ]
    return {"examples": arrays["examples"], "totals": totals}


def test_counts_of_0_3_are_read() -> None:
    """From a file, what Orbax restores, and a pickle; 2^40 + 2^31 + 1 examples stay exact."""
    evaluator = evaluator_of_0_3()
    sources: list[Any] = [
        DATA / "state_of_0_3.npz",
        tree_of_0_3("state_of_0_3.npz"),
        pickle.loads((DATA / "state_of_0_3.pickle").read_bytes()),
    ]
    for source in sources:
        state = jm.load_state(source, evaluator)
        counts, loss, _, histogram = state.tables().values()
        exact = [[2**40 + 2**31 + 1, 0, 0], [0, 1, 0], [0, 1, 0]]
        np.testing.assert_array_equal(counts, exact)
        assert histogram.sum() == 9
        np.testing.assert_array_equal(loss, [3, 3.5, 5.25])
        results = jm.to_python(evaluator.compute(evaluator.merge(state, evaluator.init())))
        assert results["num_ignored"] == 1
        assert results["num_examples"] == np.float32(2**40 + 2**31 + 3)
        assert results["loss"] == pytest.approx(3.5 / 3)
    assert_equal(jm.load_state(sources[0]), state)
    with pytest.raises(ValueError, match=r"made by jaxmetrics 0\.3\. Convert it by load_state"):
        evaluator.compute(sources[2])


def test_weights_of_0_3_are_read() -> None:
    """One batch without weights, and again with weights .5, .25, 2: sums of counts and weights."""
    evaluator, name = evaluator_of_0_3(weighted=True), "weighted_state_of_0_3.npz"
    states = [
        jm.load_state(DATA / name),
        jm.load_state(DATA / name, evaluator),
        jm.load_state(tree_of_0_3(name), evaluator),
    ]
    for state in states:
        counts = next(iter(state.tables().values()))
        np.testing.assert_array_equal(counts, [[1.5, 0, 0], [0, 1.25, 0], [0, 3, 0]])
        assert jm.to_python(evaluator.compute(state))["accuracy"] == pytest.approx(2.75 / 5.75)
    for source in (DATA / name, tree_of_0_3(name)):
        with pytest.raises(ValueError, match=r"contains sums of weights.* with weighted=True"):
            jm.load_state(source, evaluator_of_0_3())
    for wrong in (3, {"examples": 3}, tree_of_0_3(name) | {"examples": np.zeros(3, np.uint32)}):
        with pytest.raises(TypeError, match="source must be a path, or with the argument evaluat"):
            jm.load_state(wrong, evaluator)
    unweighted = jm.load_state(DATA / "state_of_0_3.npz", evaluator)
    assert next(iter(unweighted.tables().values()))[1, 1] == 1
