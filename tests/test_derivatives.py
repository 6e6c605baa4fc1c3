"""Derivatives on the host: against those of JAX in float64, for every metric of the package and for
what users write.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import jaxmetrics as jm
from jaxmetrics.intervals import derivatives
from tests.cases import MATRICES, METRICS, TWO_CLASS_MATRICES
from tests.estimates import assert_close

Function = Callable[[Any], Any]
macro_f1 = jm.macro(jm.f1)
_rng = np.random.default_rng(0)

FOUR: dict[str, np.ndarray] = {
    **{kind: matrix for kind, matrix in MATRICES.items() if kind != "empty"},
    "weights": _rng.gamma(0.5, 2, (4, 4)),
    "weights and zeros": _rng.gamma(0.5, 2, (4, 4)) * (_rng.random((4, 4)) < 0.6) + np.eye(4),
    "ones among a billion": np.array(
        [[10**9, 1, 0, 1], [0, 10**9, 1, 0], [0, 1, 1, 0], [1, 0, 0, 2 * 10**9]]
    ),
}
TWO = {kind: matrix for kind, matrix in TWO_CLASS_MATRICES.items() if kind != "empty"} | {
    "one among a billion": np.array([[10**9, 1], [1, 10**9 + 7]])
}
TEN = {
    "sparse": np.where(_rng.random((10, 10)) < 0.4, _rng.poisson(3, (10, 10)), 0)
    + np.diag(np.arange(10) * 9),
    "weights": _rng.gamma(0.3, 1, (10, 10)),
}
OF_FOUR = {name: row.call for name, row in METRICS.items() if set(row.cases) == set(MATRICES)}
SOME = (
    "macro",
    "matthews_corrcoef",
    "cohen_kappa",
    "krippendorff_alpha",
    "cramers_v",
    "mutual_information",
)


def errors_by_jax(functions: dict[str, Function], matrices: np.ndarray) -> dict[str, np.ndarray]:
    """`sqrt(sum C (g - mean g)^2)` of each matrix, g by reverse mode in float64: one program for
    all.
    """

    def slopes(c: jax.Array) -> dict[str, jax.Array]:
        return {name: jax.jacrev(function)(c) for name, function in functions.items()}

    def error(g: np.ndarray) -> np.ndarray:
        c = matrices.reshape((len(matrices), *(1,) * (g.ndim - 3), *matrices.shape[1:]))
        centred = g - (c * g).sum((-2, -1), keepdims=True) / c.sum((-2, -1), keepdims=True)
        return np.sqrt((c * centred**2).sum((-2, -1)))

    found = jax.jit(jax.vmap(slopes))(jnp.asarray(matrices))
    return {name: error(np.asarray(g)) for name, g in found.items()}


@pytest.mark.filterwarnings("ignore:class 0 occurs neither")  # AC1 and S of a table without it
@pytest.mark.parametrize(
    ("tables", "names"),
    [(FOUR, tuple(OF_FOUR)), (TWO, SOME), (TEN, SOME)],
    ids=["K = 4", "K = 2", "K = 10"],
)
def test_errors_of_every_metric(
    tables: dict[str, np.ndarray], names: tuple[str, ...], float64: None
) -> None:
    """To 1e-6, and to the rounding of an error of 0; on the device too, which is the same
    program.
    """
    functions = {name: OF_FOUR[name] for name in names}
    matrices = np.stack(list(tables.values())).astype(float)
    by_jax = errors_by_jax(functions, matrices)
    for name, function in functions.items():
        for i, (kind, matrix) in enumerate(tables.items()):
            estimate = jm.interval(function, matrix, squares=matrix, method=jm.Delta())
            assert isinstance(estimate.standard_error, np.ndarray | np.float64)
            expected = np.where(
                np.isfinite(estimate.value), by_jax[name][i], estimate.standard_error
            )
            assert_allclose(
                estimate.standard_error, expected, rtol=1e-6, atol=1e-15, err_msg=f"{name}, {kind}"
            )


def test_every_metric_is_analytic_and_takes_batches() -> None:
    """Complex steps serve all of them, but for maxima, and no table is asked for alone but the
    probes.
    """
    matrix = MATRICES["ordinary"].astype(float)
    for name, row in METRICS.items():
        table = np.asarray(row.ordinary[0], float)
        if table.ndim == 2:
            calls: list[tuple[int, ...]] = []

            def noted(c: np.ndarray, call: Function = row.call, calls: list[Any] = calls) -> Any:
                calls.append(np.shape(c))
                return call(c)

            with np.errstate(all="raise"):
                assert derivatives._tested_complex_steps(noted, table) is not None, name
            assert len(calls) <= 5 + 1 + 4, name  # probes, all at once, a difference quotient
    assert matrix.min() == 0


def test_a_thousand_classes() -> None:
    """Macro f1 of sparse counts: one reverse pass, against a central difference along the influence
    itself.
    """
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 1000, 20_000)
    y_pred = np.where(rng.random(20_000) < 0.7, y_true, rng.integers(0, 1000, 20_000))
    counts = jm.confusion_matrix(y_true, y_pred, num_classes=1000).astype(float)
    true, pred = counts.sum(-1), counts.sum(0)
    hits, both = np.diag(counts), true + pred
    f1 = 2 * hits / both  # d f1_k = (2 d hits_k - f1_k (d true_k + d pred_k)) / both_k
    slope = (2 * np.diag(1 / both) - (f1 / both)[:, None] - (f1 / both)) / 1000
    expected = np.sqrt((counts * (slope - (counts * slope).sum() / counts.sum()) ** 2).sum())
    estimate = jm.interval(macro_f1, counts, method=jm.Delta())
    assert_allclose(estimate.value, f1.mean(), rtol=1e-12)
    assert_allclose(estimate.standard_error, expected, rtol=1e-6)


def one_less_abs(c: Any) -> Any:
    return 1 - abs(c[0, 1] + c[1, 0]) / c.sum()


def cast(c: Any) -> Any:
    return float(np.trace(c)) / float(c.sum())


def real(c: Any) -> Any:
    return np.real(np.trace(c)) / np.real(c.sum())


def compared(c: Any) -> Any:
    if c[0, 0] < 0 or c.sum() <= 0:
        raise ValueError("no counts")
    return np.trace(c) / c.sum()


def with_a_loop(c: Any) -> Any:
    total = 0.0
    for i in range(len(c)):
        total += c[i, i] * np.conj(1)
    return np.hypot(total / c.sum(), 0)


NOT_ANALYTIC = [one_less_abs, cast, real, compared, with_a_loop]


@pytest.mark.parametrize("metric", NOT_ANALYTIC, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "table",
    [
        [[80, 7], [3, 21]],
        [[5, 1], [1, 2]],
        [[0.3, 0.02], [0.01, 0.4]],
        [[10**6, 1], [1, 10**6]],
        [[10**9, 1], [0, 10**9]],
    ],
    ids=str,
)
def test_what_is_not_analytic_has_its_error_too(metric: Function, table: Any) -> None:
    """All of them are the accuracy p: `sqrt(p (1 - p) / n)`, with 1 - p from the counts, as float64
    has no 1 - 1e-19.
    """
    counts = np.array(table, float)
    n, wrong = counts.sum(), counts[0, 1] + counts[1, 0]
    expected = np.sqrt((1 - wrong / n) * (wrong / n) / n)
    estimate = jm.interval(metric, counts, squares=counts, method=jm.Delta())
    assert_allclose(estimate.value, 1 - wrong / n, rtol=1e-15)
    assert_allclose(estimate.standard_error, expected, rtol=1e-6)
    both = np.stack([counts, 2 * counts])
    together = jm.interval(metric, both, squares=both, method=jm.Delta())
    assert_allclose(together.standard_error, [expected, expected / np.sqrt(2)], rtol=1e-6)


def test_what_is_not_analytic_in_curves_and_pytrees() -> None:
    """Ridders' differences of functions that bend: to 1e-6 of those of complex steps."""

    def bent(c: Any) -> Any:
        return {
            "f1": np.asarray(macro_f1(c.real)),
            "both": np.stack([np.log(c.real.sum()), np.abs(c[0, 1]) ** 0.5]),
        }

    def smooth(c: Any) -> Any:
        return {"f1": macro_f1(c), "both": np.stack([np.log(c.sum()), c[0, 1] ** 0.5])}

    c = MATRICES["ordinary"]
    errors = [
        jax.tree.map(lambda e: e, jm.interval(f, c, method=jm.Delta())) for f in (bent, smooth)
    ]
    assert_close(errors[0], errors[1], 1e-6, 1e-12)


def test_studentized_of_what_is_not_analytic() -> None:
    cast_, smooth = (
        jm.interval(metric, [[80, 7], [3, 21]], method=jm.Bootstrap(0, "studentized", 50))
        for metric in (cast, jm.accuracy)
    )
    assert_close(cast_, smooth, 1e-6)


@pytest.mark.parametrize("counts", [[[19, 1], [1, 19]], [[20, 0], [1, 19]], [[20, 0], [0, 20]]])
def test_a_function_of_scipy_may_be_infinite_at_the_table(counts: Any) -> None:
    def d_prime(c: Any) -> Any:
        recall = jm.recall(c)
        return stats.norm.ppf(recall[..., 1]) - stats.norm.ppf(1 - recall[..., 0])

    found = jm.interval(d_prime, counts)
    assert found.value == d_prime(np.array(counts))
    assert np.isfinite(found.low) == np.isfinite(found.value)


def test_a_division_by_zero_at_a_table_that_is_tried_gives_no_warning() -> None:
    found = jm.interval(lambda c: 1 / jm.binary(jm.informedness)(c), [[19, 1], [1, 19]])
    assert 1 < found.low < found.value < found.high
