"""Losses against float64 definitions, the published figures, and at the ends of the real line.

Values are checked on the host, at once and to the last digits; on the device against those.
Gradients are checked against differences of the definitions. What is compiled is compiled once for
all losses.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from jax.sharding import Mesh, PartitionSpec
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

import jaxmetrics as jm
from jaxmetrics.losses import (
    binary_cross_entropy,
    cross_entropy,
    focal_loss,
    hinge_loss,
    metric_loss,
    multiclass_hinge_loss,
    nll,
    pairwise_auc_loss,
    soft_calibration_error,
    soft_cross_entropy,
    weighted_mean,
)

N, K = 12, 5
_rng = np.random.default_rng(3)
LOGITS = 3 * _rng.normal(size=(N, K))
LABELS = _rng.integers(0, K, N)
TARGETS = _rng.dirichlet(np.ones(K), N)
WEIGHTS = _rng.random(K) + 0.5
BINARY = _rng.integers(0, 2, N)
DIRECTION = _rng.normal(size=(N, K))
INF = np.inf

Loss = Callable[..., Any]


def surprises(logits: np.ndarray) -> np.ndarray:
    return -special.log_softmax(logits, -1)


def softmax(z: Any) -> Any:
    return jax.nn.softmax(z) if isinstance(z, Array) else special.softmax(np.asarray(z, float), -1)


class Data(NamedTuple):
    """What a loss is given but logits."""

    labels: Any
    targets: Any
    weights: Any
    binary: Any


ON_HOST = Data(LABELS, TARGETS, WEIGHTS, BINARY)


def on_device() -> Data:
    return Data(*map(jnp.array, ON_HOST))


# Each loss of logits and data, and its definition in float64.
PER_EXAMPLE: dict[str, tuple[Loss, Callable[[np.ndarray], np.ndarray]]] = {
    "cross_entropy": (
        lambda z, d: cross_entropy(z, d.labels),
        lambda z: surprises(z)[range(N), LABELS],
    ),
    "cross_entropy weighted": (
        lambda z, d: cross_entropy(z, d.labels, class_weights=d.weights),
        lambda z: WEIGHTS[LABELS] * surprises(z)[range(N), LABELS],
    ),
    "cross_entropy smoothed": (
        lambda z, d: cross_entropy(z, d.labels, class_weights=d.weights, label_smoothing=0.2),
        lambda z: ((0.8 * np.eye(K)[LABELS] + 0.2 / K) * WEIGHTS * surprises(z)).sum(-1),
    ),
    "cross_entropy smoothed without weights": (
        lambda z, d: cross_entropy(z, d.labels, label_smoothing=0.2),
        lambda z: ((0.8 * np.eye(K)[LABELS] + 0.2 / K) * surprises(z)).sum(-1),
    ),
    "cross_entropy with z-loss": (
        lambda z, d: cross_entropy(z, d.labels, class_weights=d.weights, z_loss=0.3),
        lambda z: (
            WEIGHTS[LABELS] * (surprises(z)[range(N), LABELS] + 0.3 * special.logsumexp(z, -1) ** 2)
        ),
    ),
    "soft_cross_entropy": (
        lambda z, d: soft_cross_entropy(z, d.targets, where=d.targets.sum(-1) > 0),
        lambda z: (TARGETS * surprises(z)).sum(-1),
    ),
    "focal_loss": (
        lambda z, d: focal_loss(z, d.labels, class_weights=d.weights),
        lambda z: (WEIGHTS * (1 - special.softmax(z, -1)) ** 2 * surprises(z))[range(N), LABELS],
    ),
    "focal_loss 0.5": (
        lambda z, d: focal_loss(z, d.labels, gamma=0.5),
        lambda z: ((1 - special.softmax(z, -1)) ** 0.5 * surprises(z))[range(N), LABELS],
    ),
    "focal_loss 0": (
        lambda z, d: focal_loss(z, d.labels, gamma=0),
        lambda z: surprises(z)[range(N), LABELS],
    ),
    "multiclass_hinge_loss": (
        lambda z, d: multiclass_hinge_loss(z, d.labels),
        lambda z: np.maximum(
            0, 1 + np.where(np.eye(K)[LABELS], -INF, z).max(-1) - z[range(N), LABELS]
        ),
    ),
    "binary_cross_entropy": (
        lambda z, d: binary_cross_entropy(z[:, 0], d.binary, class_weights=d.weights[:2]),
        lambda z: -WEIGHTS[BINARY] * special.log_expit(np.where(BINARY, z[:, 0], -z[:, 0])),
    ),
    "binary_cross_entropy of probabilities": (
        lambda z, d: binary_cross_entropy(z[:, 0], d.targets[:, 0]),
        lambda z: (
            -TARGETS[:, 0] * special.log_expit(z[:, 0])
            - (1 - TARGETS[:, 0]) * special.log_expit(-z[:, 0])
        ),
    ),
    "hinge_loss": (
        lambda z, d: hinge_loss(z[:, 0], d.binary),
        lambda z: np.maximum(0, 1 - (2 * BINARY - 1) * z[:, 0]),
    ),
    "nll": (
        lambda z, d: nll(softmax(z), d.labels),
        lambda z: -np.log(special.softmax(z, -1))[range(N), LABELS],
    ),
    "nll of distributions": (
        lambda z, d: nll(softmax(z), d.targets),
        lambda z: -(TARGETS * np.log(special.softmax(z, -1))).sum(-1),
    ),
}


@jax.jit
def values(z: Array, data: Data) -> dict[str, Array]:
    single = z.astype(jnp.float32)  # softmax of a half would have no digits
    return {
        name: loss(single if name.startswith("nll") else z, data)
        for name, (loss, _) in PER_EXAMPLE.items()
    }


@jax.jit
def derivatives(z: Array, data: Data, v: Array) -> dict[str, tuple[Array, ...]]:
    """Values, gradients and slopes along `v` of sums over examples; second derivatives along `v`
    twice, forwards, and once, forwards over backwards and backwards.
    """

    def of(loss: Loss) -> tuple[Array, ...]:
        total = lambda z: loss(z, data).sum()
        forwards = lambda z: jax.jvp(total, (z,), (v,))[1]
        backwards = lambda z: (jax.grad(total)(z) * v).sum()
        gradient, change = jax.jvp(jax.grad(total), (z,), (v,))
        twice = jax.jvp(forwards, (z,), (v,))[1]
        return loss(z, data), gradient, forwards(z), twice, change, jax.grad(backwards)(z)

    return {name: of(loss) for name, (loss, _) in PER_EXAMPLE.items()}


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_losses_of_the_host_equal_their_definitions(name: str) -> None:
    loss, definition = PER_EXAMPLE[name]
    for logits in (LOGITS, LOGITS.astype(np.float32)):
        value = loss(logits, ON_HOST)
        assert type(value) is np.ndarray
        assert value.dtype == np.float64
        assert_allclose(value, definition(logits.astype(float)), rtol=1e-12)


def test_losses_of_the_device_are_float32() -> None:
    """Also of bfloat16, which float32 holds."""
    logits = jnp.asarray(LOGITS, jnp.bfloat16)
    for name, value in values(logits, on_device()).items():
        assert value.dtype == jnp.float32, name
        expected = PER_EXAMPLE[name][0](np.asarray(logits, float), ON_HOST)
        assert_allclose(value, expected, rtol=2e-6, atol=1e-6, err_msg=name)


def test_losses_of_float64_and_their_derivatives(float64: None) -> None:
    z, data, v, step = jnp.asarray(LOGITS), on_device(), DIRECTION, 1e-5
    got, ahead, behind = (
        jax.device_get(derivatives(x, data, v)) for x in (z, z + step * v, z - step * v)
    )
    for name, (_, definition) in PER_EXAMPLE.items():
        value, gradient, slope, twice, *changes = got[name]
        by = partial(assert_allclose, err_msg=name)
        by(value, definition(LOGITS), 1e-12)
        difference = (definition(LOGITS + step * v) - definition(LOGITS - step * v)).sum()
        by((gradient * v).sum(), difference / (2 * step), 1e-6, 1e-8)
        by(slope, (gradient * v).sum(), 1e-12)
        change = (ahead[name][1] - behind[name][1]) / (2 * step)
        for once in changes:
            by(once, change, 1e-6, 1e-8)
        by(twice, (change * v).sum(), 1e-6, 1e-8)


ROWS = np.array(
    [
        [1e4, -1e4, 0],
        [-INF, 0, 1],
        [INF, 0, 1],
        [INF, INF, 0],
        [-INF, -INF, -INF],
        [0, 0, 0],
        [np.nan] * 3,
        [np.nan, 0, 1],
    ],
    np.float32,
)
KNOWN, UNKNOWN = slice(6), slice(6, 8)
WITH_LIMITS = [
    *("cross_entropy", "cross_entropy smoothed", "cross_entropy with z-loss"),
    *("soft_cross_entropy", "binary_cross_entropy"),
    *("focal_loss", "focal_loss 0.5", "multiclass_hinge_loss", "hinge_loss"),
]


def on_rows(name: str, z: Any, y: Any) -> Any:
    one_hot = (y[:, None] == np.arange(3, dtype=y.dtype)[None]).astype(z.dtype)
    return PER_EXAMPLE[name][0](z, Data(y, one_hot, np.ones(3), y))


@jax.jit
def of_rows(z: Array, y: Array) -> dict[str, tuple[Array, ...]]:
    """Values, gradients, and gradients of value and squared gradient, as of a penalty."""

    def of(name: str) -> tuple[Array, ...]:
        def value_and_gradient(z: Array) -> tuple[Array, Array]:
            value, pullback = jax.vjp(lambda z: on_rows(name, z, y), z)
            return value, pullback(jnp.ones_like(value))[0]

        (value, gradient), pullback = jax.vjp(value_and_gradient, z)
        return value, gradient, pullback((jnp.ones_like(value), 2 * gradient))[0]

    return {name: of(name) for name in WITH_LIMITS}


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (0, [0, INF, 0, 0, np.log(3), np.log(3)]),
        (1, [2e4, np.logaddexp(0, 1), INF, 0, np.log(3), np.log(3)]),
    ],
)
def test_infinite_logits_are_limits(label: int, expected: list[float]) -> None:
    """Those that are NaN make loss and gradient NaN."""
    labels = np.full(len(ROWS), label, np.int32)
    got = jax.device_get(of_rows(jnp.asarray(ROWS), labels))
    for name, (value, gradient, of_penalty) in got.items():
        assert_allclose(value, on_rows(name, ROWS, labels), rtol=2e-6, atol=1e-6, err_msg=name)
        assert not np.isnan(value[KNOWN]).any(), name
        assert np.isfinite(gradient[KNOWN]).all(), name
        assert np.isfinite(of_penalty[KNOWN]).all(), name
        if "hinge" not in name:
            assert np.isnan(value[UNKNOWN]).all(), name
            assert np.isnan(gradient[UNKNOWN, :1]).all(), name
        if name in ("cross_entropy", "focal_loss"):
            assert np.isnan(gradient[UNKNOWN]).all(), name
    assert_allclose(cross_entropy(ROWS, labels)[KNOWN], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("label", "dtype"), [(-1, np.int32), (-100, np.int8), (3, np.int32), (2**31 - 1, np.int32)]
)
def test_what_is_left_out_costs_nothing(label: int, dtype: Any) -> None:
    """Labels outside of the classes, of any integer dtype, whatever the logits hold."""
    labels = np.full(len(ROWS), label, dtype)
    for name, of_all in of_rows(jnp.asarray(ROWS), jnp.asarray(labels)).items():
        for array in of_all:
            assert_array_equal(array, 0, err_msg=name)
        if label < 0:
            assert_array_equal(on_rows(name, ROWS, labels), 0, err_msg=name)
        elif name != "soft_cross_entropy":
            message = rf"labels\[0\] is {label}, but class ids must lie in \[0, [23]\)"
            with pytest.raises(ValueError, match=message):
                on_rows(name, ROWS, labels)


def test_a_label_beyond_the_classes_may_be_masked() -> None:
    labels, where = np.append(LABELS[:-1], 2**32), np.arange(N) < N - 1
    expected = np.append(cross_entropy(LOGITS[:-1], LABELS[:-1]), 0)
    assert_array_equal(cross_entropy(LOGITS, labels, where=where), expected)
    assert_allclose(
        cross_entropy(jnp.asarray(LOGITS), labels, where=where), expected, rtol=2e-6, atol=1e-6
    )
    with pytest.raises(ValueError, match=r"labels\[11\] is 4294967296"):
        cross_entropy(LOGITS, labels)


def test_columns_of_one_event() -> None:
    """The head of a network has the shape (n, 1), and so may its labels; the place of a wrong one
    is named all the same.
    """
    column = LOGITS[:, :1]
    assert_array_equal(
        binary_cross_entropy(column, BINARY[:, None])[:, 0],
        binary_cross_entropy(column[:, 0], BINARY),
    )
    assert_array_equal(
        cross_entropy(LOGITS[:, None], LABELS[:, None])[:, 0], cross_entropy(LOGITS, LABELS)
    )
    wrong = np.append(BINARY[:-1], 2)[:, None]
    with pytest.raises(ValueError, match=r"labels\[11, 0\] is 2"):
        hinge_loss(column, wrong)
    assert hinge_loss(column, wrong, where=wrong < 2)[-1, 0] == 0


def test_likely_events_keep_their_digits() -> None:
    z, ones = np.array([1.0, 10, 15, 20, 30, 80]), np.ones(6, int)
    expected = np.log1p(np.exp(-z))
    assert_allclose(binary_cross_entropy(z, ones), expected, rtol=1e-12)
    value, pullback = jax.vjp(lambda z: binary_cross_entropy(z, ones), jnp.asarray(z))
    assert_allclose(value, expected, rtol=1e-6)
    assert_allclose(pullback(jnp.ones(6))[0], -1 / (1 + np.exp(z)), rtol=1e-6)


def test_class_weight_of_zero_leaves_out() -> None:
    z, labels = np.array([[1.0, 2.0, 0.0], [INF, 0.0, 0.0]]), jnp.array([-1, 1])
    for loss in (cross_entropy, focal_loss):

        @jax.jit
        def with_gradient(z: Array, weights: Array, loss: Loss = loss) -> Any:
            value, pullback = jax.vjp(lambda z: loss(z, labels, class_weights=weights), z)
            return value, pullback(jnp.ones(2))[0]

        for weights in ([INF, 0, 1], [np.nan, 0, 1]):
            assert_array_equal(loss(z, [-1, 1], class_weights=weights), [0, 0])
            value, gradient = with_gradient(jnp.asarray(z), jnp.asarray(weights))
            assert_array_equal(value, [0, 0])
            assert_array_equal(gradient, np.zeros((2, 3)))


def test_smoothing_of_zero_leaves_an_infinite_loss_out() -> None:
    z = np.array([[-INF, 0.0]])
    for put, zeros in (
        (np.asarray, (0.0, np.float32(0), np.zeros(()))),
        (jnp.asarray, (np.float32(0), jnp.float32(0))),
    ):
        for zero in zeros:
            assert_array_equal(cross_entropy(put(z), put([1]), label_smoothing=zero), [0])


def test_gradient_in_the_class_weights() -> None:
    of_weights = jax.grad(lambda w: cross_entropy(LOGITS, LABELS, class_weights=w).sum())(
        jnp.zeros(K)
    )
    assert_allclose(of_weights, np.bincount(LABELS, cross_entropy(LOGITS, LABELS), K), rtol=1e-5)


def test_probabilities_of_an_event_lie_in_the_unit_interval() -> None:
    z, labels = np.array([0.5, 0.5]), np.array([0.5, 1.5])
    message = r"labels\[1\] is 1\.5, but probabilities must be in \[0, 1\]"
    with pytest.raises(ValueError, match=message):
        binary_cross_entropy(z, labels)
    assert binary_cross_entropy(z, labels, where=[True, False])[1] == 0
    on_device = binary_cross_entropy(jnp.asarray(z), jnp.asarray(labels))
    assert_array_equal(np.isnan(on_device), [False, True])


def test_a_tie_has_a_gradient() -> None:
    slopes = jax.grad(lambda z: multiclass_hinge_loss(z, [0]).sum())
    assert_allclose(slopes(jnp.zeros((1, 3))), [[-1, 0.5, 0.5]])
    for of_one_class in ([[-INF], [3.0]], jnp.array([[-INF], [3.0]])):
        assert_array_equal(multiclass_hinge_loss(of_one_class, [0, 0]), [0, 0])


def test_two_hundred_classes_of_small_integers() -> None:
    z = np.zeros((3, 200))
    small, beyond = np.array([-100, 127, -1], np.int8), jnp.array([-100, 199, 200])
    on_device = jnp.asarray(z)
    for logits, labels in (
        *((z, small), (on_device, small), (on_device, jnp.asarray(small))),
        (on_device, beyond),
    ):
        assert_allclose(cross_entropy(logits, labels), [0, np.log(200), 0], rtol=1e-6)


def test_published_figures() -> None:
    """The textbook example, mean cross-entropy of seven forecasts, three times."""
    y = np.eye(3)[np.array([1, 2, 2, 3, 3, 1, 3]) - 1]
    state = np.random.RandomState(10)
    for expected in (0.49631710718508326, 0.6616817361606729, 0.7961738233757771):
        p = state.rand(7, 3) + 0.6 * y
        p /= p.sum(-1, keepdims=True)
        assert_allclose(nll(p, y).mean(), expected, rtol=1e-14)
        assert_allclose(nll(p, y.argmax(-1)).mean(), expected, rtol=1e-14)


def test_nll_at_the_ends() -> None:
    p = [[0.0, 1.0], [0.0, 1.0]]
    assert_array_equal(nll(p, [0, 1]), [INF, 0])
    value, pullback = jax.vjp(lambda p: nll(p, jnp.array([0, 1])), jnp.array(p))
    assert_array_equal(value, [INF, 0])
    assert_array_equal(pullback(jnp.ones(2))[0], [[-INF, 0], [0, -1]])


@pytest.mark.parametrize("put", [np.asarray, jnp.asarray], ids=["host", "device"])
def test_masks_broadcast_and_examples_may_be_one_or_none(put: Any) -> None:
    alone, z, labels = cross_entropy(LOGITS, LABELS), put(LOGITS), put(LABELS)
    where = np.arange(2 * N).reshape(2, N) % 3 > 0
    masked = cross_entropy(z, labels, where=put(where))
    assert_allclose(masked, np.where(where, alone, 0), rtol=2e-6, atol=1e-6)
    assert_allclose(cross_entropy(z[None], labels)[0], alone, rtol=2e-6, atol=1e-6)
    assert cross_entropy(z[0], labels[0]).shape == ()
    assert cross_entropy(z[:0], labels[:0]).shape == (0,)


def test_weighted_mean() -> None:
    values, weight = np.array([1.0, 2.0, np.nan, 4.0]), np.array([1.0, 3.0, 0.0, 2.0])
    assert weighted_mean(values, weight, parts=True) == (15, 6)
    for put in (np.asarray, jnp.asarray):
        assert weighted_mean(put(values), weight) == 15 / 6
        assert weighted_mean(put(values), where=np.zeros(4, bool)) == 0
        by_row = weighted_mean(put(np.eye(2)), np.array([3.0, 1.0]), axis=1)
        assert_array_equal(by_row, [3 / 4, 1 / 4])


def test_weighted_mean_over_devices() -> None:
    """The sums of eight devices, of which some hold nothing that counts."""
    mesh, spec = Mesh(np.array(jax.devices("cpu")), ("data",)), PartitionSpec("data")
    values, where = jnp.arange(16.0), jnp.arange(16) > 4

    def mean(values: Array, where: Array) -> Array:
        total, weight = jax.lax.psum(weighted_mean(values, where=where, parts=True), "data")
        return total / weight

    sharded = jax.shard_map(mean, mesh=mesh, in_specs=(spec, spec), out_specs=PartitionSpec())
    assert_allclose(jax.jit(sharded)(values, where), np.arange(5, 16).mean(), rtol=1e-6)


METRICS: dict[str, Any] = {
    "f1": jm.macro(jm.f1),
    "recall": jm.balanced_accuracy,
    "matthews": jm.matthews_corrcoef,
    "jaccard": jm.macro(jm.jaccard),
}


def test_metric_loss_is_the_metric_of_soft_counts() -> None:
    step = 1e-6 * DIRECTION
    soft = special.softmax(LOGITS, -1)
    counts = np.stack([soft[label == LABELS].sum(0) for label in range(K)])
    for metric in METRICS.values():
        loss = metric_loss(metric)
        assert metric_loss(metric) == loss
        on_host = loss(LOGITS, LABELS)
        assert type(on_host) is np.float64
        assert_allclose(on_host, 1 - metric(counts), rtol=1e-12)
        value, gradient = jax.jit(jax.value_and_grad(loss))(jnp.asarray(LOGITS), LABELS)
        assert_allclose(value, on_host, rtol=2e-6)
        difference = (loss(LOGITS + step, LABELS) - loss(LOGITS - step, LABELS)) / 2
        assert_allclose((gradient * step).sum(), difference, rtol=1e-4, atol=1e-12)
        assert loss(LOGITS - np.asarray(gradient), LABELS) < on_host


def test_metric_loss_of_nan_has_no_gradient_of_zero() -> None:
    logits = jnp.asarray(LOGITS).at[0, 0].set(jnp.nan)
    loss, gradient = jax.value_and_grad(metric_loss(jm.macro(jm.f1)))(logits, LABELS)
    assert np.isnan(loss)
    assert np.isnan(gradient[0]).all()


def test_metric_loss_of_certain_rows() -> None:
    """Infinite logits are limits, also of the gradient; of -inf alone no class is more likely."""
    z = jnp.array([[INF, 0.0], [0.5, 1.0], [2.0, 0.0], [-INF, -INF]])
    same = jnp.array([[40.0, -40.0], [0.5, 1.0], [2.0, 0.0], [0.0, 0.0]])
    y = np.array([0, 1, 1, 0])
    for metric in (METRICS[name] for name in ("f1", "matthews", "recall")):
        loss = metric_loss(metric)
        assert_allclose(loss(np.asarray(z), y), loss(np.asarray(same), y), rtol=1e-12)
        program = jax.jit(jax.value_and_grad(loss))
        (value, gradient), (expected, slopes) = program(z, y), program(same, y)
        assert_allclose(value, expected, rtol=1e-6)
        assert_allclose(gradient[1:3], slopes[1:3], rtol=1e-5)
        assert np.isfinite(gradient).all()


SURROGATES: dict[Any, Callable[[np.ndarray], np.ndarray]] = {
    "logistic": lambda d: np.logaddexp(0, -d),
    "hinge": lambda d: np.maximum(0, 1 - d),
    "squared_hinge": lambda d: np.maximum(0, 1 - d) ** 2,
}


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_pairwise_auc_loss(surrogate: Any) -> None:
    """By pairs; masked; at the ends of the real line; of weights of any size."""
    on_host = partial(pairwise_auc_loss, surrogate=surrogate)
    program = jax.jit(jax.value_and_grad(on_host))
    score, step = LOGITS[:, 0], 1e-6 * DIRECTION[:, 0]
    expected = SURROGATES[surrogate](score[BINARY == 1][:, None] - score[BINARY == 0]).mean()
    assert_allclose(on_host(score, BINARY), expected, rtol=1e-12)
    longer, labels, where = np.append(score, np.nan), np.append(BINARY, 1), np.arange(N + 1) < N
    assert_allclose(on_host(longer, labels, where=where), expected, rtol=1e-12)
    value, gradient = program(jnp.asarray(longer), labels, where=where)
    assert_allclose(value, expected, rtol=2e-6)
    difference = (on_host(score + step, BINARY) - on_host(score - step, BINARY)) / 2
    assert_allclose((gradient[:-1] * step).sum(), difference, rtol=1e-4, atol=1e-12)
    assert gradient[-1] == 0
    if surrogate != "logistic":  # a bound on the pairs out of order
        assert expected >= 1 - float(jm.roc_auc(BINARY, score))
    assert on_host(score, np.ones(N, int)) == 0

    def at(z: list[float], weight: float = 1) -> Any:
        return program(jnp.array(z, float), jnp.array(y), sample_weight=jnp.full(3, weight, float))

    y = [1, 0, 0]
    for z in ([1e20, 0, 1], [INF, 0, 1]):
        value, gradient = at(z)
        assert value == on_host(z, y) == 0
        assert not gradient.any()
    for z in ([-INF, 0, 1], [INF, INF, -INF], [3e38, 1e4, -3e38]):
        value, gradient = at(z)
        assert np.isfinite([value, *gradient, on_host(z, y)]).all()
    for weight in (1e-30, 1e30):
        for a, b in zip(at([0.5, 0.1, 0.9], weight), at([0.5, 0.1, 0.9]), strict=True):
            assert_allclose(a, b, rtol=1e-6)
    assert np.isnan([at([np.nan, 0, 1])[0], on_host([np.nan, 0, 1], y)]).all()
    assert surrogate == "logistic" or not at([2, 1, 1])[1].any()  # at the corner of the hinge
    for put in (np.asarray, jnp.asarray):
        none = put(np.zeros((2, 0), np.float32))
        assert_array_equal(on_host(none, none.astype(int)), [0, 0])


def test_soft_calibration_error_becomes_the_hard_one() -> None:
    rng = np.random.default_rng(4)
    p = rng.choice((np.arange(10) + 0.5) / 10, 200)
    y, weight = (rng.random(200) < p**2).astype(int), rng.random(200)
    hard = jm.calibration_error(y, p, norm="l2", num_bins=10)
    assert_allclose(soft_calibration_error(p, y, num_bins=10, temperature=1e-4), hard, rtol=1e-3)
    by_loop = soft_calibration_error_by_loop(p, y, weight)
    assert_allclose(soft_calibration_error(p, y, sample_weight=weight), by_loop, rtol=1e-12)
    none = jnp.zeros(0, int)
    value, gradient = jax.value_and_grad(soft_calibration_error)(jnp.zeros(0), none)
    assert value == soft_calibration_error(np.zeros(0), np.zeros(0, int)) == 0
    assert gradient.shape == (0,)
    assert np.isnan(soft_calibration_error([0.5, 1.5], [0, 1]))
    assert soft_calibration_error([0.5, 1.5], [0, -1]) == 0.5


def soft_calibration_error_by_loop(p: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Karandikar et al. (2021), with 15 bins and a temperature of 0.01."""
    centres = (np.arange(15) + 0.5) / 15
    sizes, gaps = np.zeros(15), np.zeros(15)
    for p_i, y_i, w_i in zip(p, y, weight, strict=True):
        closeness = np.exp(-((p_i - centres) ** 2) / 0.01)
        share = w_i * closeness / closeness.sum()
        sizes, gaps = sizes + share, gaps + share * (p_i - y_i)
    return float(np.sqrt(((gaps / sizes) ** 2 * sizes).sum() / sizes.sum()))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cross_entropy(LABELS, LOGITS), "labels must hold class ids"),
        (
            lambda: cross_entropy(LOGITS, LABELS[1:]),
            rf"same number of examples .* logits without .* classes \({N},\), labels \({N - 1},\)",
        ),
        (
            lambda: cross_entropy(LOGITS, LABELS, class_weights=[1.0]),
            r"class_weights must have shape \(K,\) = \(5,\)",
        ),
        (lambda: cross_entropy(1.0, 0), r"logits must have shape \(..., K\)"),
        (
            lambda: cross_entropy(LOGITS, LABELS + 1),
            r"labels\[\d+\] is 5, but class ids must lie in \[0, 5\)",
        ),
        (lambda: soft_cross_entropy(LOGITS, TARGETS[:, 1:]), "same number of classes K"),
        (
            lambda: nll(TARGETS, TARGETS[:, 1:]),
            "labels must be class ids, or probabilities with the same shape",
        ),
        (
            lambda: cross_entropy(LOGITS, LABELS[:, None]),
            rf"same number of examples .* labels \({N}, 1\)",
        ),
        (
            lambda: cross_entropy(LOGITS, LABELS, label_smoothing=1.1),
            r"label_smoothing must be in \[0, 1\], got 1.1",
        ),
        (
            lambda: binary_cross_entropy(LOGITS[:, :1], BINARY),
            rf"same number of examples .* logits \({N}, 1\), labels \({N},\)",
        ),
        (
            lambda: binary_cross_entropy(LOGITS[:, 0], BINARY + 1),
            r"labels\[\d+\] is 2, .* y_true == 1",
        ),
        (
            lambda: weighted_mean([1.0, 2.0], [[1.0], [0.0]]),
            r"same number of examples .* values \(2,\), sample_weight \(2, 1\)",
        ),
        (lambda: focal_loss(LOGITS, LABELS, gamma=-1), "gamma must be"),
        (lambda: focal_loss(LOGITS, LABELS, gamma=INF), "gamma must be"),
        (lambda: metric_loss("f1"), "metric_loss takes metric, a function"),  # type: ignore[arg-type]
        (
            lambda: metric_loss(jm.accuracy)(LOGITS[0], LABELS[0]),
            r"logits must have shape \(..., n, K\)",
        ),
        (lambda: metric_loss(jm.accuracy)(LOGITS, LABELS + 1), r"labels\[\d+\] is 5"),
        (lambda: pairwise_auc_loss([1.0], [1], surrogate="log"), "surrogate must be"),  # type: ignore[arg-type]
        (lambda: soft_calibration_error([0.5], [1], temperature=0), "temperature must be"),
    ],
)
def test_mistakes_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.quick
def test_gamma_may_be_traced() -> None:
    """The derivative by gamma is that of differences, and 0 at the limits of the loss."""
    z, y = jnp.array([[2.0, 0.5, 0.0], [0.0, INF, 1.0], [-INF, 0.0, 1.0]]), jnp.array([1, 1, 0])
    for gamma in (0.5, 1.0, 3.0):
        by_gamma = jax.jacobian(lambda g: focal_loss(z, y, gamma=g))(gamma)
        wide = np.asarray(z, float)
        low, high = (focal_loss(wide[0], 1, gamma=gamma + h) for h in (-1e-5, 1e-5))
        assert_allclose(by_gamma[0], (high - low) / 2e-5, rtol=1e-4)
        assert_array_equal(by_gamma[1:], 0)
        assert_allclose(
            jax.jit(lambda g: focal_loss(z, y, gamma=g))(gamma),
            focal_loss(wide, [1, 1, 0], gamma=gamma),
            rtol=1e-5,
        )
    assert_allclose(focal_loss(z, y, gamma=jnp.zeros(())), cross_entropy(z, y), rtol=1e-6)
    assert_array_equal(focal_loss(z, y, gamma=0), cross_entropy(z, y))


@pytest.mark.quick
def test_rows_that_sum_to_one() -> None:
    """They are no mistake in a hinge loss, and logits in other losses if 1 is added."""
    rows, y = np.array([[0.2, 0.8], [0.7, 0.3]]), [1, 1]
    assert_allclose(multiclass_hinge_loss(rows, y), [1 - 0.6, 1 + 0.4])
    for loss in (cross_entropy, focal_loss, lambda z, y: soft_cross_entropy(z, np.eye(2)[y])):
        assert_allclose(loss(rows + 1, y), loss(np.vstack([rows, [[2, 3]]]), [*y, 0])[:2])


@pytest.mark.quick
def test_pairs_of_clipped_logits() -> None:
    """The limits that the docstring gives: 2.6e15 in float32, 2.0e123 in float64."""
    for dtype, limit in ((np.float32, 2.6e15), (np.float64, 2.0e123)):
        assert float(np.finfo(dtype).max) ** 0.4 == pytest.approx(limit, rel=0.02)
    for z in (np.array([-INF, INF]), np.array([-1e200, 1e200])):
        assert_allclose(pairwise_auc_loss(z, [1, 0]), 2 * np.finfo(float).max ** 0.4)
    assert_allclose(
        pairwise_auc_loss(jnp.array([-1e20, 1e20]), jnp.array([1, 0])), 5.2e15, rtol=0.02
    )
