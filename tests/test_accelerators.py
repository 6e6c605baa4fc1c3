"""Programs compiled for accelerators that are not there, and how their schedules are read."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")

from bench import accelerators

PROGRAM = """
HloModule jit_f, is_scheduled=true

%body (p: (s32[], f32[1000])) -> (s32[], f32[1000]) {
  %p = (s32[], f32[1000]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[1000]{0} get-tuple-element(%p), index=1
  %y = f32[1000]{0} fusion(%x), kind=kLoop, calls=%fused
  ROOT %t = (s32[], f32[1000]{0}) tuple(%i, %y)
}

%few (q: f32[1000]) -> f32[1000] {
  %q = f32[1000]{0} parameter(0)
  ROOT %copied = f32[1000]{0} copy(%q)
}

%many (r: f32[1000]) -> f32[1000] {
  %r = f32[1000]{0} parameter(0)
  %once = f32[1000]{0} copy(%r)
  ROOT %twice = f32[1000]{0} copy(%once)
}

ENTRY %main (a: f32[1000], c: s32[]) -> f32[1000] {
  %a = f32[1000]{0} parameter(0)
  %c = s32[] parameter(1)
  %start = (s32[], f32[1000]{0}) tuple(%c, %a)
  %loop = (s32[], f32[1000]{0}) while(%start), condition=%cond, body=%body, backend_config={"known_trip_count":{"n":"7"}}
  %last = f32[1000]{0} get-tuple-element(%loop), index=1
  ROOT %chosen = f32[1000]{0} conditional(%c, %last, %last), branch_computations={%few, %many}
}
"""  # noqa: E501  # a line as XLA writes it


def test_work_of_loops_and_branches() -> None:
    # The loop launches 7 kernels, which read and write 4000 bytes; then come one copy or two.
    least, most = accelerators.work_of(PROGRAM)
    assert least == accelerators.Work(kernels=8, nbytes=8 * 8000, iterations=7)
    assert most == accelerators.Work(kernels=9, nbytes=9 * 8000, iterations=7)


SLICES = """
%sliced (p: f32[9,1000], q: s32[]) -> f32[1,1000] {
  %p = f32[9,1000]{1,0} parameter(0)
  %b = f32[9,1000]{1,0} bitcast(%p)
  %q = s32[] parameter(1)
  ROOT %s = f32[1,1000]{1,0} dynamic-slice(%b, %q, %q), dynamic_slice_sizes={1,1000}
}

%written (p: f32[9,1000], u: f32[1,1000], q: s32[]) -> f32[9,1000] {
  %p.1 = f32[9,1000]{1,0} parameter(0)
  %u = f32[1,1000]{1,0} parameter(1)
  %q.1 = s32[] parameter(2)
  ROOT %w = f32[9,1000]{1,0} dynamic-update-slice(%p.1, %u, %q.1, %q.1)
}

ENTRY %main (a: f32[9,1000], c: s32[]) -> f32[9,1000] {
  %a = f32[9,1000]{1,0} parameter(0)
  %c = s32[] parameter(1)
  %x = f32[1,1000]{1,0} fusion(%a, %c), kind=kLoop, calls=%sliced, metadata={op_name="f"}
  ROOT %y = f32[9,1000]{1,0} fusion(%a, %x, %c), kind=kLoop, calls=%written
}
"""


def test_slices_are_read_and_written_alone() -> None:
    # Each kernel reads 4000 bytes, of the array or of its row, and an index of 4, and writes 4000.
    least, most = accelerators.work_of(SLICES)
    assert least == most == accelerators.Work(kernels=2, nbytes=2 * 8000 + 8, iterations=0)


@pytest.mark.parametrize(
    ("shape", "nbytes"),
    [
        ("f32[8,2]{1,0}", 64),
        ("(s32[], bf16[3]{0}, pred[5]{0})", 4 + 6 + 5),
        ("f8e4m3fn[16]{0}", 16),
        ("c64[2,2]{1,0:T(8,128)}", 32),
        ("s4[6]{0}", 3),
        ("(f32[8]{0:T(1024)}, f32[8]{0:T(1024)S(1)}, u32[]{:S(2)})", 32),
        ("token[]", 0),
    ],
)
def test_bytes_of_a_shape(shape: str, nbytes: float) -> None:
    assert accelerators.bytes_of(shape) == nbytes


MOST_USED = [
    *("confusion matrix", "macro F1", "likelihood interval", "ROC AUC", "calibration error"),
    *("cross-entropy and gradient, 4096", "update of a state", "top-5 accuracy"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("platform", "plugin"), [("gpu", "jax_cuda12_plugin"), ("tpu", "libtpu")])
def test_compiles_for(platform: str, plugin: str) -> None:
    if importlib.util.find_spec(plugin) is None:
        pytest.skip("compilers of accelerators need the extra `accelerators`")
    run = subprocess.run(
        [sys.executable, "-m", "bench.accelerators", platform, "--json", "--only", *MOST_USED],
        cwd=Path(accelerators.__file__).parent.parent,
        env={**os.environ, **accelerators.WORLD},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(run.stdout.splitlines()[-1])
    assert len(found) == 10
    for name, figures in found.items():
        assert figures["kernels"][1] <= 300, name
