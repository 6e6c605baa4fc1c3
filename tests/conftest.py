"""The strict world: eight CPU devices, no silent promotion of dtypes or ranks, no compilation cache
on disk.

Programs run once, so XLA is told to make little of them and each in one piece, which takes a
quarter of the time. What rounds otherwise where a product and a sum become one instruction, as
users have it, takes the fixture `optimized`.
"""

import gc
import os
import sys

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "")
    + " --xla_force_host_platform_device_count=8"
    + " --xla_backend_extra_options=xla_cpu_disable_new_fusion_emitters"
    + " --xla_cpu_parallel_codegen_split_count=1"
)
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")
os.environ["JAX_NUMPY_DTYPE_PROMOTION"] = "strict"
os.environ["JAX_NUMPY_RANK_PROMOTION"] = "raise"
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
os.environ["JAX_TRACEBACK_IN_LOCATIONS_LIMIT"] = "0"  # no line of a source in a program

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
from hypothesis import settings

from jaxmetrics._places import compilation
from tests.command_line import Run, caller


def pytest_collection_finish() -> None:
    """What is imported stays: no collection of garbage looks at it before the end, and tracing,
    which makes many objects, is interrupted less often.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def pytest_unconfigure() -> None:
    gc.unfreeze()


settings.register_profile("reproducible", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("reproducible")


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Run the test with `jax_enable_x64` off and on."""
    jax.config.update("jax_enable_x64", request.param)
    yield request.param
    jax.config.update("jax_enable_x64", False)


@pytest.fixture
def float64() -> Iterator[None]:
    """Run the test with `jax_enable_x64` on, where float32 could show nothing."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture
def optimized() -> Iterator[None]:
    """Run the test with programs as users have them."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture
def small_arrays() -> None:
    """Compute few numbers in JAX arrays by NumPy, as users have it."""


@pytest.fixture(autouse=True)
def programs_of_few_numbers(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compile whatever is in JAX arrays: few numbers stand for many in all other tests."""
    if "small_arrays" not in request.fixturenames:
        monkeypatch.setattr(compilation, "_MOST_NUMBERS", -1)


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Close what pyplot holds, which warns of more than 20 figures."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


_compiled: list[str] = []


def _note(event: str, duration_secs: float, **details: Any) -> None:
    if event.endswith("/backend_compile_duration"):
        _compiled.append(str(details.get("fun_name", event)))


jax.monitoring.register_event_duration_secs_listener(_note)


_compiled_since_looking = 0


@pytest.fixture(autouse=True)
def forget_compiled_programs() -> Iterator[None]:
    """Each compiled program holds memory maps, of which a process may have 65,530: beyond that, XLA
    crashes. They are counted after each hundred programs, for that takes 10 ms.
    """
    global _compiled_since_looking
    _compiled.clear()
    yield
    _compiled_since_looking += len(_compiled)
    maps = Path("/proc/self/maps")
    if _compiled_since_looking > 100 and maps.exists():
        _compiled_since_looking = 0
        if maps.read_bytes().count(b"\n") > 20_000:
            jax.clear_caches()


@pytest.fixture
def programs() -> list[str]:
    """Grows by one for each program that XLA compiles."""
    return _compiled


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Call the command line; returns exit code, standard output and standard error."""
    yield caller(monkeypatch, capsys)
    jax.config.update("jax_enable_x64", False)  # which `merge` switches on


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
