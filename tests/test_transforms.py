"""What holds for every public function: the promises of the table in cases.py, kept on the host and
on the device.

What concerns values (order, masks, weights, batches) is tested on the host, where nothing is
compiled. The device is tested for what it adds: it gives what the host gives, eager, under jit,
vmap and grad, in its own dtypes; two or three programs for a row.
"""

import pickle
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from jax import export
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less

import jaxmetrics as jm
from jaxmetrics._applied import Applied
from tests import cases
from tests.cases import (
    COUNTERS,
    METRICS,
    READ,
    ROWS,
    SCORERS,
    STREAMS,
    TOGETHER,
    TYPES,
    Case,
    K,
    Metric,
    N,
    Row,
    public_names,
)

# Tables may lack class 0, of which AC1 and S warn.
pytestmark = pytest.mark.filterwarnings("ignore:class 0 occurs neither")


def those(promised: Callable[[Row], Any]) -> list[str]:
    return [name for name, row in ROWS.items() if promised(row)]


def numbers(result: Any) -> list[Any]:
    return [x for x in jax.tree.leaves(result) if not isinstance(x, str)]


def close(actual: Any, expected: Any, error: float = 1e-12) -> None:
    ours, theirs = numbers(actual), numbers(expected)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert np.shape(a) == np.shape(b)
        assert_allclose(a, b, rtol=error, atol=error / 10)


def piled(results: list[Any]) -> Any:
    return jax.tree.map(lambda *x: np.stack(x), *results)


def loop(row: Row, **options: Any) -> Any:
    """The results of all cases, one call for each, along a leading axis."""
    return piled([row.call(*case, **options) for case in row.cases.values()])


@cache
def loop_on_host(row: Row) -> Any:
    """Computed once for all tests."""
    return loop(row)


def expected_of(row: Row) -> Any:
    """The results with which the device is compared: of the host, if it has any."""
    if row.host:
        return loop_on_host(row)
    return piled([row.call(*as_jax(row, case)) for case in row.cases.values()])


KEEP = np.arange(N) % 3 != 0
WEIGHTED_AND_MASKED = {"where": KEEP, "sample_weight": 0.25 + np.sqrt(np.arange(N) % 7)}


def options_of(row: Row) -> dict[str, np.ndarray]:
    """A mask and weights, those of them that the function takes; none where it has no host."""
    names = {*row.options} & {*WEIGHTED_AND_MASKED} if row.host else set()
    return {name: WEIGHTED_AND_MASKED[name] for name in names}


# The table itself.


@pytest.mark.quick
def test_every_public_name_has_a_row() -> None:
    public = {name for name in public_names() if not name.startswith("plots.")}
    rows = {name.split()[0] for name in ROWS} | set(TYPES) | set(TOGETHER)
    missing, unknown = sorted(public - rows), sorted(rows - public)
    assert not missing, (
        f"tests/cases.py has no row for {missing}: a rate gets one from its oracle in rates of"
        " tests/oracles.py; another function needs one in the table of its kind, such as METRICS,"
        " which says what it promises; a type one in TYPES"
    )
    assert not unknown, f"tests/cases.py has rows for what is not public: {unknown}"


@pytest.mark.quick
@pytest.mark.parametrize("name", ROWS)
def test_rows_are_well_formed(name: str) -> None:
    row = ROWS[name]
    shapes = [tuple(np.shape(x) for x in case) for case in row.cases.values()]
    assert next(iter(row.cases)) == "ordinary"
    assert len(set(shapes)) == 1
    assert not row.examples or len(row.examples) == len(row.ordinary)
    if not (row.host and row.device and row.jit and row.batch and not row.draws):
        assert row.why, "a row that promises less says why"


@pytest.mark.parametrize("name", TYPES)
def test_public_types_are_those_of_results(name: str) -> None:
    assert isinstance(TYPES[name](), public_names()[name])


# On the host.


@pytest.mark.quick
@pytest.mark.parametrize("name", those(lambda row: row.host))
def test_host_gives_numpy_at_once(name: str, programs: list[str]) -> None:
    row = ROWS[name]
    cases.key()
    before = len(programs)
    with np.errstate(all="raise"):
        result = row.call(*row.ordinary)
    assert len(programs) == before, "compiled on the host"
    for x in numbers(result) if row.device else []:
        assert isinstance(x, np.ndarray | np.generic), type(x)
        assert x.dtype.kind in "iub" or x.dtype == np.float64, x.dtype
        assert x.ndim or not isinstance(x, np.ndarray), (
            "an array without axes where a number is meant"
        )


@pytest.mark.parametrize("name", those(lambda row: row.host))
def test_host_computes_any_dtype_in_float64(name: str) -> None:
    row = ROWS[name]
    expected = row.call(*row.ordinary)
    narrow = {"f": np.float32, "i": np.int32, "b": bool}
    close(row.call(*(x.astype(narrow[x.dtype.kind]) for x in row.ordinary)), expected)
    close(row.call(*(x.tolist() for x in row.ordinary)), expected)


@pytest.mark.parametrize("name", those(lambda row: row.host and row.batch))
def test_leading_axes_equal_a_loop(name: str) -> None:
    row = ROWS[name]
    expected = loop_on_host(row)
    close(row.call(*row.stacked), expected)
    twice = row.call(*(np.stack([x, x]) for x in row.stacked))
    close(twice, piled([expected, expected]))
    if row.examples and len(row.ordinary) > 1:  # (2, n) against (n,), and (n,) against (2, n)
        ordinary, all_cases = row.ordinary, row.cases.values()
        each = piled([row.call(case[0], *ordinary[1:]) for case in all_cases])
        close(row.call(row.stacked[0], *ordinary[1:]), each)
        if name != "nll":  # which would take two rows of labels for distributions
            each = piled([row.call(ordinary[0], *case[1:]) for case in all_cases])
            close(row.call(ordinary[0], *row.stacked[1:]), each)
    if options := options_of(row):
        close(row.call(*row.stacked, **options), loop(row, **options))


@pytest.mark.parametrize(
    "name", [name for name, metric in METRICS.items() if isinstance(metric.call, Applied)]
)
def test_averages_pickle(name: str) -> None:
    assert pickle.loads(pickle.dumps(METRICS[name].call)) == METRICS[name].call


SHAPES = {metric.ordinary[0].shape for metric in METRICS.values()}


@pytest.mark.parametrize("shape", sorted(SHAPES), ids=str)
@given(data=st.data())
def test_metric_symmetries(shape: tuple[int, ...], data: st.DataObject) -> None:
    """Scaling, reordering the classes and adding a class that does not occur change nothing, where
    promised.
    """
    counts = data.draw(
        hnp.arrays(np.int32, shape, elements=st.one_of(st.just(0), st.integers(0, 30)))
    )
    assume(counts.any())  # means of no class: there is nothing to be symmetric about
    order = data.draw(st.permutations(range(shape[-1])))
    padding = [(0, 0)] * (counts.ndim - 2) + [(0, 1), (0, 1)]
    for name, metric in METRICS.items():
        if metric.ordinary[0].shape != shape:
            continue
        note(name)
        value = metric.call(counts)
        if metric.scale_free:
            close(metric.call(counts * 7), value)
        if metric.any_class_order:
            reordered = metric.call(counts[..., order, :][..., order])
            close(reordered, value[..., order] if metric.per_class else value)
        if metric.ignores_absent_classes:
            padded = metric.call(np.pad(counts, padding))
            close(padded[..., :-1] if metric.per_class else padded, value)


# Examples.


def with_examples_first(row: Row) -> list[np.ndarray]:
    return [np.moveaxis(x, axis, 0) for x, axis in zip(row.ordinary, row.examples, strict=True)]


def back(row: Row, arrays: list[np.ndarray]) -> Case:
    return tuple(np.moveaxis(x, 0, axis) for x, axis in zip(arrays, row.examples, strict=True))


def take(row: Row, which: np.ndarray) -> Case:
    return back(row, [x[which] for x in with_examples_first(row)])


def poisoned(row: Row, keep: np.ndarray, label: int = 1) -> Case:
    """Examples that are not kept hold NaN and a label, by default one that would count."""
    arrays = []
    for x in with_examples_first(row):
        y = x.copy()
        y[~keep] = np.nan if x.dtype.kind == "f" else label
        arrays.append(y)
    return back(row, arrays)


def total(row: Row, result: Any) -> Any:
    return result.sum(-1) if row.per_example else result


WITH_EXAMPLES = those(lambda row: row.examples and not row.draws)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_order_of_examples_does_not_matter(name: str) -> None:
    row = ROWS[name]
    order = np.random.default_rng(0).permutation(N)
    error = 1e-12 if row.host else row.float32
    result, expected = row.call(*take(row, order)), row.call(*row.ordinary)
    close(result, expected[order] if row.per_example else expected, error)


@pytest.mark.parametrize(
    "name", [name for name in WITH_EXAMPLES if ROWS[name].options and name not in STREAMS]
)
def test_examples_that_are_absent_or_twice(name: str) -> None:
    """Masked and weightless rows are absent, masked ones whatever they hold; weight 2 is the row
    twice.
    """
    row = ROWS[name]
    absent = total(row, row.call(*take(row, np.flatnonzero(KEEP))))
    for label in (1, 99) if "where" in row.options else ():
        masked = row.call(*poisoned(row, KEEP, label), where=KEEP)
        close(total(row, masked), absent)
        if row.per_example:
            assert_array_equal(masked[~KEEP], 0)
    if "sample_weight" not in row.options:
        return
    close(row.call(*row.ordinary, sample_weight=KEEP.astype(float)), absent)
    if name != "confusion_matrix_at_thresholds":  # to which a NaN score is a mistake
        close(row.call(*poisoned(row, KEEP), sample_weight=KEEP.astype(float)), absent)
    weights = np.where(KEEP, 1, np.nan)
    close(row.call(*poisoned(row, KEEP), sample_weight=weights, where=KEEP), absent)
    if name in SCORERS and name != "score_histogram" and row.examples[0] == -1:
        close(row.call(*poisoned(row, KEEP, -5), sample_weight=weights), absent)
    twice = row.call(*take(row, np.repeat(np.arange(N), KEEP + 1)))
    close(row.call(*row.ordinary, sample_weight=KEEP + 1), twice)


WEIGHTED = [name for name in WITH_EXAMPLES if "sample_weight" in ROWS[name].options]


@pytest.mark.parametrize("name", WEIGHTED)
def test_impossible_weights_are_refused(name: str) -> None:
    """On the host; of the first example that every row counts."""
    row, weights = ROWS[name], np.ones(N)
    place = 46
    for bad in (-1.0, np.inf, np.nan):
        weights[place] = bad
        with pytest.raises(ValueError, match=rf"sample_weight\[(0, )?{place}\] is {bad:g}, "):
            row.call(*row.ordinary, sample_weight=weights)


@pytest.mark.parametrize("name", [name for name in WITH_EXAMPLES if ROWS[name].adds])
@given(data=st.data())
def test_parts_add_up(name: str, data: st.DataObject) -> None:
    row = ROWS[name]
    order = np.array(data.draw(st.permutations(range(N))))
    first, second = order[: N // 2], order[N // 2 :]
    everything = total(row, row.call(*row.ordinary))
    parts = [total(row, row.call(*take(row, which))) for which in (first, second)]
    close(parts[0] + parts[1], everything)


@pytest.mark.parametrize("name", COUNTERS)
def test_counts_by_group(name: str) -> None:
    row = COUNTERS[name]
    groups = np.arange(N, dtype=np.int8) % 4 - 1  # -1 belongs to no group
    by_group = row.call(*row.ordinary, groups=groups, num_groups=3)
    each = [row.call(*take(row, np.flatnonzero(groups == g))) for g in range(3)]
    # Labels and thresholds are batch.
    batched = (
        "multilabel_confusion_matrix",
        "confusion_matrix_at_thresholds",
    )
    close(by_group, np.stack(each, 1 if name in batched else 0))
    on_device = row.call(*map(jnp.asarray, row.ordinary), groups=jnp.asarray(groups), num_groups=3)
    close(on_device, by_group, 1e-6)


# +inf is one also without examples.
THRESHOLDS = ("best_threshold", "best_threshold recall at specificity")
SUMS = ("score_histogram", "calibration_bins")  # of nothing 0


@pytest.mark.parametrize("name", SCORERS)
def test_scores_of_nothing(name: str) -> None:
    row = SCORERS[name]
    for nothing in (
        row.call(*row.ordinary, where=np.zeros(N, bool)),
        row.call(*take(row, np.arange(0))),
    ):
        first = numbers(nothing)[0]
        if name in SUMS:
            assert not np.any(first)
        else:
            assert np.isnan(first).all() or (name in THRESHOLDS and (first <= 1).all()), nothing


@pytest.mark.parametrize(
    "name", [name for name, row in SCORERS.items() if row.ordinary[1].dtype.kind == "f"]
)
def test_nan_scores_raise_on_the_host(name: str) -> None:
    row = SCORERS[name]
    scores = row.ordinary[1].copy()
    scores[3] = np.nan
    with pytest.raises(ValueError, match=r"\[3(, 0)?\] is nan|\[0, 3\] is nan"):
        row.call(row.ordinary[0], scores)


# On the device.


def as_jax(row: Row, case: Case) -> list[jax.Array]:
    """Arrays of JAX; those with a gradient are floats."""
    floats = [x.astype(float) if i in row.smooth else x for i, x in enumerate(case)]
    return [jnp.asarray(x, jax.dtypes.canonicalize_dtype(x.dtype)) for x in floats]


def sum_of(result: Any) -> Any:
    return sum(jnp.nansum(x) for x in numbers(result) if jnp.issubdtype(x.dtype, jnp.floating))


def gradient_and_value(call: Callable[..., Any], smooth: tuple[int, ...]) -> Callable[..., Any]:
    """The gradient of the sum of what `call` returns, beside what it returns, of one trace."""

    def total(*arrays: jax.Array) -> tuple[Any, Any]:
        result = call(*arrays)
        return sum_of(result), result

    return jax.grad(total, argnums=smooth, has_aux=True)


def mapped(row: Row, x64: bool, *arrays: jax.Array) -> dict[str, Any]:
    """What vmap gives for a batch, with the gradient, in one program; in float64 also with weights
    and a mask, which in float32 `test_masked_examples_on_the_device` has in its program.
    """
    results = {}
    if x64 and options_of(row):
        results["weighted"] = jax.vmap(partial(row.call, **options_of(row)))(*arrays)
    if row.smooth:
        gradient, value = jax.vmap(gradient_and_value(row.call, row.smooth))(*arrays)
        results |= {"value": value, "gradient": gradient}
    # A rule of differentiation has values of its own, but for the quotient of the metrics.
    elsewhere = "weighted" in results or isinstance(row, Metric) or (row.host and not x64)
    if not (row.smooth and elsewhere):
        results["value"] = jax.vmap(row.call)(*arrays)
    return results


def assert_other_devices_have(program: Any, *arrays: jax.Array) -> None:
    """The program has just run here, so that nothing is traced again."""
    platforms = ("cuda", "rocm", "tpu")
    assert export.export(program, platforms=platforms)(*arrays).platforms == platforms


def assert_of_jax(result: Any, x64: bool) -> None:
    for x in numbers(result):
        assert isinstance(x, jax.Array)
        assert not jnp.issubdtype(x.dtype, jnp.floating) or x.dtype == (
            np.float64 if x64 else np.float32
        ), x.dtype
        assert not x.weak_type


# The same program gives the same numbers again; but a GPU adds scattered floats in any order.
AGAIN = 0 if jax.default_backend() == "cpu" else 1e-6
ON_DEVICE = those(lambda row: row.device and row.jit)
READ_ROWS = [name for name in ON_DEVICE if name.split()[0] in READ and not ROWS[name].draws]
MASKED = [name for name in WITH_EXAMPLES if ROWS[name].options and ROWS[name].device]
# Kinds of bootstraps share their draws, and float32 programs compute their quantiles. The program
# of judged pairs contains what judged examples need.
ALIKE = {"prediction_powered"} | {
    f"{call} {kind}"
    for call in ("interval", "compare")
    for kind in ("basic", "percentile", "studentized")
}
# What compiles is what costs. In float32 the eager call, below, says what a program under jit
# would, and the program of `test_masked_examples_on_the_device` has the gradient.
COMPILED = [
    (name, x64)
    for name in ON_DEVICE
    for x64 in (False, True)
    if (x64 and name not in ALIKE)
    or (not x64 and name not in MASKED and (ROWS[name].smooth or not ROWS[name].host))
]


def assert_gradient_is_finite(row: Row, gradient: jax.Array, x64: bool) -> None:
    assert gradient.dtype == (np.float64 if x64 else np.float32)
    bad = [kind for kind, x in zip(row.cases, gradient, strict=True) if not np.isfinite(x).all()]
    assert not bad, (
        f"the gradient is not finite in the cases {bad}: divide, safe_sqrt and safe_log of"
        " _numerics/arithmetic.py have finite ones; or the row promises none: smooth=(), with why"
    )


@pytest.mark.parametrize(
    ("name", "x64"),
    COMPILED,
    ids=lambda x: x if isinstance(x, str) else "x64" if x else "x32",
    indirect=["x64"],
)
def test_jit_vmap_and_grad_give_what_the_host_gives(name: str, x64: bool) -> None:
    row = ROWS[name]
    program, arrays = jax.jit(partial(mapped, row, x64)), as_jax(row, row.stacked)
    results = program(*arrays)
    assert_of_jax({**results, "gradient": ()}, x64)
    if "weighted" in results:
        compare(row, results["weighted"], loop(row, **options_of(row)), x64)
    if not x64 or name in READ_ROWS:
        assert_other_devices_have(program, *arrays)
    compare(row, results["value"], expected_of(row), x64)
    for gradient in results.get("gradient", ()):
        assert_gradient_is_finite(row, gradient, x64)
    if row.smooth and x64:
        assert_finite_differences(row, program, arrays)


@pytest.mark.usefixtures("small_arrays")
@pytest.mark.parametrize("name", READ_ROWS)
def test_what_people_read_of_few_numbers_compiles_nothing(name: str, programs: list[str]) -> None:
    """In JAX arrays of float32, up to rounding what the host gives; alone and in a batch."""
    row = ROWS[name]
    for case in (row.ordinary, *([row.stacked] if row.batch else [])):
        arrays = [jnp.asarray(x) for x in case]
        before = len(programs)
        result = row.call(*arrays)
        assert programs[before:] == []
        assert_of_jax(result, False)
        # The methods of a `BetaAverage` read a table that is stored in float32.
        error = row.float32 if name == "betas.BetaAverage" else 1e-6
        close(result, row.call(*case), error)


@pytest.mark.usefixtures("optimized")
@pytest.mark.parametrize(
    "name", [n for n in those(lambda row: row.device and row.host) if n not in READ_ROWS]
)
def test_eager_calls_give_what_the_host_gives(name: str, programs: list[str]) -> None:
    """In float32, integers as they are, leading axes at once; a second call compiles nothing."""
    row = ROWS[name]
    if row.draws or row.float32 > 1e-4:  # which differ by more than rounding
        jax.config.update("jax_disable_most_optimizations", True)
    arrays = [jnp.asarray(x) for x in (row.stacked if row.batch else row.ordinary)]
    result = row.call(*arrays)
    before = len(programs)
    again = row.call(*arrays)
    assert len(programs) == before
    close(again, result, AGAIN)
    assert_of_jax(result, False)
    if row.jit and name not in MASKED and (name, False) not in COMPILED:
        assert_other_devices_have(jax.jit(row.call), *arrays)
    if row.batch:
        compare(row, result, loop_on_host(row), False)
    elif row.draws:
        agree(jax.tree.map(np.asarray, result), row.call(*row.ordinary), row.draws)
    else:
        close(result, row.call(*row.ordinary), row.float32)


def part(result: Any, i: int) -> Any:
    return jax.tree.map(lambda x: np.asarray(x)[i], result)


def compare(row: Row, actual: Any, expected: Any, x64: bool) -> None:
    """Results of all cases, along the leading axis."""
    if not (row.draws and row.host):
        close(actual, expected, row.float64 if x64 else row.float32)
        return
    for i in range(len(row.cases)):
        agree(part(actual, i), part(expected, i), row.draws)


def assert_finite_differences(
    row: Row, program: Callable[..., Any], arrays: list[jax.Array]
) -> None:
    """Of the first case, along a direction in which probabilities still sum to 1."""
    rng, steps = np.random.default_rng(0), {}
    for i in row.smooth:
        point = np.asarray(arrays[i][0]) + row.inside
        v = rng.normal(size=point.shape)
        if point.ndim and np.allclose(point.sum(-1), 1, atol=1e-5):
            v -= v.mean(-1, keepdims=True)
        steps[i] = 1e-6 * np.abs(point).max() * v

    def at(times: float) -> tuple[float, Any]:
        moved = [np.array(x) for x in arrays]
        for i, step in steps.items():
            moved[i][0] += row.inside + times * step
        results = program(*moved)
        values = [x[0] for x in numbers(results["value"]) if x.dtype.kind == "f"]
        return sum(float(np.nansum(x)) for x in values), results["gradient"]

    size = max(float(np.abs(x).max()) for x in steps.values())
    difference = (at(1)[0] - at(-1)[0]) / 2 / size
    slopes = zip(at(0)[1], steps.values(), strict=True)
    slope = sum(float(np.sum(x[0] * step)) for x, step in slopes) / size
    assert_allclose(difference, slope, rtol=1e-5, atol=1e-7)


def agree(a: Any, b: Any, draws: int) -> None:
    """Two results of independent random draws, within five of their standard errors."""
    if isinstance(a, jm.Estimate):
        spread = np.maximum(a.standard_error, b.standard_error) / np.sqrt(draws)
        for part, errors in (("value", 1), ("low", 4), ("high", 4), ("standard_error", 1)):
            # the quantiles at 2.5 % of a normal have the error 2.7 s / sqrt(draws); BCa moves them,
            # by levels that vary as well
            difference = np.abs(getattr(a, part) - getattr(b, part))
            assert (difference <= 5 * np.sqrt(2) * errors * spread + 1e-6).all(), (part, a, b)
    elif hasattr(a, "_asdict"):
        for part in a._fields:
            agree(getattr(a, part), getattr(b, part), draws)
    elif np.ndim(a) and len(a) == draws:
        error = 5 * np.sqrt((np.var(a, 0) + np.var(b, 0)) / draws)
        assert_array_less(np.abs(np.mean(a, 0) - np.mean(b, 0)), error + 1e-6)
    else:  # a probability, estimated by a share of the draws
        assert_array_less(np.abs(np.asarray(a) - b), 5 * np.sqrt(2) * 0.5 / np.sqrt(draws))


@pytest.mark.parametrize("name", those(lambda row: not row.device))
def test_answers_are_the_same_wherever_the_data_live(name: str) -> None:
    row = ROWS[name]
    close(row.call(*map(jnp.asarray, row.ordinary)), row.call(*row.ordinary), 1e-5)


def refused(row: Row) -> list[Case]:
    """Examples of which one that counts holds what the host refuses."""
    counts = [x >= 0 if x.dtype.kind == "i" else x < np.inf for x in with_examples_first(row)]
    place = np.flatnonzero(np.all([x.reshape(N, -1).all(1) for x in counts], 0))[2]
    cases = []
    for i, x in enumerate(with_examples_first(row)):
        if x.dtype.kind == "f":
            one_of_them = np.array(x[place])
            one_of_them.flat[0] = np.nan
            for bad in (x[place] * np.nan, one_of_them, x[place] / 2, 5 * x[place] - 2):
                arrays = with_examples_first(row)
                arrays[i] = x.copy()
                arrays[i][place] = bad
                cases.append(back(row, arrays))
            # Logits that all are probabilities: on the device no loss asks, a temperature does.
            if x.ndim == 2 and row is ROWS["fit_temperature"]:
                arrays[i] = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
                cases.append(back(row, arrays))
    return [case for case in cases if host_refuses(row, case)]


def host_refuses(row: Row, case: Case) -> bool:
    try:
        row.call(*case)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("name", MASKED)
def test_masked_examples_on_the_device(name: str) -> None:
    """Under jit and vmap: what is masked or weightless is absent, whatever it holds, also from the
    gradient; weight 2 is the row twice, labels of no class are ignored, and all else that the host
    refuses makes NaN. Where all count, all cases give what the host gives, with finite gradients.
    """
    row = ROWS[name]
    weighted = "sample_weight" in row.options
    all_of_them, none = np.ones(N, bool), np.zeros(N, bool)
    once_or_twice = 1 + np.arange(N) % 2
    bad = poisoned(row, KEEP)
    variants = [
        (bad, KEEP, all_of_them),
        (row.ordinary, none, all_of_them),
        (poisoned(row, none), all_of_them, all_of_them),
    ]
    if weighted:
        variants += [(bad, all_of_them, KEEP), (bad, KEEP, np.where(KEEP, 1, np.nan))]
        variants += [(bad, KEEP, once_or_twice)]
    judges = name in SCORERS and name not in SUMS
    if judges:
        beyond = tuple(np.where(x < 0, 99, x) if x.dtype.kind == "i" else x for x in row.ordinary)
        variants += [(beyond, all_of_them, all_of_them)]
        variants += [(row.ordinary, all_of_them, np.where(KEEP, 1, x)) for x in (np.nan, -1)]
        variants += [(case, all_of_them, all_of_them) for case in refused(row)]
    variants += [(row.ordinary, KEEP, all_of_them)]
    number = len(variants)
    variants += [(case, all_of_them, all_of_them) for case in row.cases.values()]
    arrays = [jnp.stack([np.asarray(x, np.float32) if x.dtype.kind == "f" else x for x in column])
              for column in zip(*(case for case, _, _ in variants), strict=True)]  # fmt: skip
    where = jnp.stack([mask for _, mask, _ in variants])
    weights = jnp.stack([np.asarray(weight, np.float32) for *_, weight in variants])

    def call(where: jax.Array, weights: jax.Array, *arrays: jax.Array) -> Any:
        return row.call(*arrays, where=where, **({"sample_weight": weights} if weighted else {}))

    def with_gradient(where: jax.Array, weights: jax.Array, *arrays: jax.Array) -> Any:
        total = jax.grad(lambda *x: sum_of(call(where, weights, *x)), argnums=row.smooth or (0,))
        return call(where, weights, *arrays), total(*arrays) if row.smooth else ()

    program = jax.jit(jax.vmap(with_gradient))
    results, gradients = program(where, weights, *arrays)
    assert_of_jax(results, False)
    assert_other_devices_have(program, where, weights, *arrays)
    compare(row, jax.tree.map(lambda x: x[number:], results), expected_of(row), False)
    for gradient, axis in zip(gradients, (row.examples[i] for i in row.smooth), strict=True):
        assert_gradient_is_finite(row, gradient[number:], False)
        of_masked, of_ordinary = (np.moveaxis(gradient[i], axis, 0) for i in (0, number - 1))
        close(of_masked, of_ordinary, AGAIN)
        assert np.isfinite(of_masked).all()
        assert not of_masked[~KEEP].any()
    of = [jax.tree.map(lambda x, i=i: x[i], results) for i in range(number - 1)]
    which = take(row, np.flatnonzero(KEEP))
    absent = total(row, row.call(*(which if row.host else map(jnp.asarray, which))))
    if name in STREAMS:  # they count what a mask or a weight leaves out as never there
        assert of[1].get("num_examples", 0) == 0
    elif row.adds:
        assert not np.any(of[1])
    for i in (0, 3, 4) if weighted else (0,):
        close(total(row, of[i]), absent, max(row.float32, 1e-6))
    if weighted and name not in STREAMS:
        twice = row.call(*take(row, np.repeat(np.arange(N), KEEP * once_or_twice)))
        close(total(row, of[5]), total(row, twice), max(row.float32, 1e-6))
    if judges and row.ordinary[1].dtype.kind == "f":
        assert np.isnan(numbers(of[2])[0]).all(), of[2]
    if judges:
        close(of[6], row.call(*row.ordinary), max(row.float32, 1e-6))
        for result in of[7:]:
            assert np.isnan(numbers(result)[0]).any(), result


@pytest.mark.parametrize("name", COUNTERS)
def test_gradient_with_respect_to_weights(name: str) -> None:
    """The gradient of a cell with respect to a weight is what the example adds to that cell."""
    row = COUNTERS[name]
    each = np.stack([row.call(*take(row, np.array([i]))) for i in range(N)])
    moment = np.arange(each[0].size, dtype=np.float32).reshape(each[0].shape)

    def first_moment(weights: jax.Array) -> jax.Array:
        return (row.call(*row.ordinary, sample_weight=weights) * moment).sum()

    weights = jnp.where(jnp.arange(N) % 5 == 0, 0.0, 1.0)
    assert_allclose(
        jax.grad(first_moment)(weights), (each * moment).reshape(N, -1).sum(-1), rtol=1e-4
    )


@pytest.mark.parametrize("name", METRICS)
def test_metrics_of_narrow_dtypes(name: str, x64: bool) -> None:
    metric: Metric = METRICS[name]
    expected = np.float64 if x64 else np.float32
    for dtype in (jnp.bfloat16, jnp.float16, jnp.int8, jnp.uint8):
        assert (
            jax.eval_shape(metric.call, jax.ShapeDtypeStruct(metric.ordinary[0].shape, dtype)).dtype
            == expected
        )
    few = np.minimum(metric.ordinary[0], 100)
    for narrow in (few.astype(np.int8), few.astype(jnp.bfloat16), few.astype(np.float16)):
        close(metric.call(narrow), metric.call(few))


def test_soft_counts_of_certain_predictions_are_counts() -> None:
    y_true, y_pred = COUNTERS["confusion_matrix"].ordinary
    one_hot = np.eye(K)[y_pred]
    close(
        jm.soft_confusion_matrix(y_true, one_hot), COUNTERS["confusion_matrix"].call(y_true, y_pred)
    )


def test_gradients_of_an_almost_absent_class_are_finite() -> None:
    """A soft count of 1e-22 has a square that is 0 in float32."""

    def loss(logits: jax.Array) -> jax.Array:
        counts = jm.soft_confusion_matrix([0, 1], jax.nn.softmax(logits))
        return sum(
            jm.macro(rate)(counts) for rate in (jm.f1, jm.precision, jm.jaccard)
        ) + jm.matthews_corrcoef(counts)

    gradient = jax.jit(jax.grad(loss))
    for logit in (-20.0, -40.0, -45.0, -50.0, -60.0, -90.0):
        assert np.isfinite(gradient(jnp.array([[0.0, 0.0, logit]] * 2))).all(), logit


def test_masked_nan_reaches_no_gradient() -> None:
    """Neither of probabilities nor of weights."""
    arrays = jnp.array([[0.5, 0.5], [jnp.nan, jnp.nan]]), jnp.array([1.0, jnp.nan])
    for y_true, where in (([0, 1], [True, False]), ([0, -1], [True, True])):
        by_probs, by_weights = jax.grad(
            lambda p, w, y=y_true, where=where: jm.soft_confusion_matrix(
                y, p, sample_weight=w, where=where
            ).sum(),
            argnums=(0, 1),
        )(*arrays)
        assert_array_equal(by_probs, [[1, 1], [0, 0]])
        assert_array_equal(by_weights, [1, 0])


def test_counts_in_a_scan() -> None:
    y_true, y_pred = (jnp.asarray(x).reshape(6, 8) for x in COUNTERS["confusion_matrix"].ordinary)

    def step(total: jax.Array, batch: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return total + jm.confusion_matrix(*batch, num_classes=K), None

    total, _ = jax.lax.scan(step, jnp.zeros((K, K), jnp.int32), (y_true, y_pred))
    close(total, jm.confusion_matrix(y_true.ravel(), y_pred.ravel(), num_classes=K))
