"""Losses and their gradients against float64 definitions, the published figures, and at the ends of the real line."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec
from scipy import special
from sklearn import metrics as sk

import jaxmetrics as jm

N, K = 12, 5
_rng = np.random.default_rng(3)
LOGITS = 3 * _rng.normal(size=(N, K))
LABELS = _rng.integers(0, K, N)
TARGETS = _rng.dirichlet(np.ones(K), N)
WEIGHTS = _rng.random(K) + 0.5
BINARY = _rng.integers(0, 2, N)
INF = np.inf


def surprises(logits: np.ndarray) -> np.ndarray:
    return -special.log_softmax(logits, -1)


# Each loss of logits, and its definition in float64.
PER_EXAMPLE: dict[str, tuple[Callable[..., jax.Array], Callable[[np.ndarray], np.ndarray]]] = {
    "cross_entropy": (lambda z: jm.cross_entropy(z, LABELS), lambda z: surprises(z)[range(N), LABELS]),
    "cross_entropy weighted": (
        lambda z: jm.cross_entropy(z, LABELS, class_weights=WEIGHTS),
        lambda z: WEIGHTS[LABELS] * surprises(z)[range(N), LABELS],
    ),
    "cross_entropy smoothed": (
        lambda z: jm.cross_entropy(z, LABELS, class_weights=WEIGHTS, label_smoothing=0.2),
        lambda z: ((0.8 * np.eye(K)[LABELS] + 0.2 / K) * WEIGHTS * surprises(z)).sum(-1),
    ),
    "soft_cross_entropy": (lambda z: jm.soft_cross_entropy(z, TARGETS), lambda z: (TARGETS * surprises(z)).sum(-1)),
    "focal_loss": (
        lambda z: jm.focal_loss(z, LABELS, class_weights=WEIGHTS),
        lambda z: (WEIGHTS * (1 - special.softmax(z, -1)) ** 2 * surprises(z))[range(N), LABELS],
    ),
    "focal_loss 0.5": (
        lambda z: jm.focal_loss(z, LABELS, gamma=0.5),
        lambda z: ((1 - special.softmax(z, -1)) ** 0.5 * surprises(z))[range(N), LABELS],
    ),
    "multiclass_hinge_loss": (
        lambda z: jm.multiclass_hinge_loss(z, LABELS),
        lambda z: np.maximum(0, 1 + np.where(np.eye(K)[LABELS], -INF, z).max(-1) - z[range(N), LABELS]),
    ),
    "binary_cross_entropy": (
        lambda z: jm.binary_cross_entropy(z[:, 0], BINARY, class_weights=WEIGHTS[:2]),
        lambda z: -WEIGHTS[BINARY] * special.log_expit(np.where(BINARY, z[:, 0], -z[:, 0])),
    ),
    "hinge_loss": (
        lambda z: jm.hinge_loss(z[:, 0], BINARY),
        lambda z: np.maximum(0, 1 - (2 * BINARY - 1) * z[:, 0]),
    ),
    "nll": (lambda z: jm.nll(jax.nn.softmax(z), LABELS), lambda z: surprises(z)[range(N), LABELS]),
}


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_losses_equal_their_definitions(name: str, x64: bool) -> None:
    ours, definition = PER_EXAMPLE[name]
    dtype = np.float64 if x64 else np.float32
    logits = LOGITS.astype(dtype)
    loss = ours(jnp.asarray(logits))
    assert loss.dtype == dtype
    np.testing.assert_allclose(loss, definition(logits.astype(float)), rtol=1e-12 if x64 else 2e-6, atol=0 if x64 else 1e-6)
    if x64:
        jax.test_util.check_grads(ours, (jnp.asarray(logits),), order=2 if "hinge" not in name else 1, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PER_EXAMPLE)
def test_losses_of_half_precision_are_float32(name: str) -> None:
    half = jnp.asarray(LOGITS, jnp.bfloat16)
    loss = PER_EXAMPLE[name][0](half if name != "nll" else half.astype(jnp.float32))
    assert loss.dtype == jnp.float32
    expected = PER_EXAMPLE[name][1](np.asarray(half, float))
    np.testing.assert_allclose(loss, expected, rtol=1e-5, atol=1e-6)


ROWS = np.array([[1e4, -1e4, 0], [-INF, 0, 1], [INF, 0, 1], [INF, INF, 0], [-INF, -INF, -INF], [0, 0, 0]], np.float32)
OF_ROWS: dict[str, Callable[[Any, Any], jax.Array]] = {
    "cross_entropy": lambda z, y: jm.cross_entropy(z, y),
    "cross_entropy smoothed": lambda z, y: jm.cross_entropy(z, y, label_smoothing=0.1),
    "soft_cross_entropy": lambda z, y: jm.soft_cross_entropy(z, jax.nn.one_hot(y, 3), where=y >= 0),
    "focal_loss": lambda z, y: jm.focal_loss(z, y),
    "focal_loss 0.5": lambda z, y: jm.focal_loss(z, y, gamma=0.5),
    "multiclass_hinge_loss": lambda z, y: jm.multiclass_hinge_loss(z, y),
    "binary_cross_entropy": lambda z, y: jm.binary_cross_entropy(z[:, 0], y),
    "hinge_loss": lambda z, y: jm.hinge_loss(z[:, 0], y),
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_infinite_logits_are_limits(name: str) -> None:
    call = OF_ROWS[name]
    for label in (0, 1):
        labels = jnp.full(len(ROWS), label)
        assert not np.isnan(call(ROWS, labels)).any()
        assert np.isfinite(jax.grad(lambda z: call(z, labels).sum())(jnp.asarray(ROWS))).all()  # noqa: B023
    if name == "cross_entropy":
        np.testing.assert_allclose(call(ROWS, jnp.zeros(6, int)), [0, INF, 0, 0, np.log(3), np.log(3)], rtol=1e-6)
        np.testing.assert_allclose(call(ROWS, jnp.ones(6, int))[:4], [2e4, np.log1p(np.e), INF, 0], rtol=1e-6)
    if "hinge" not in name:
        assert np.isnan(call(jnp.full((1, 3), jnp.nan), jnp.zeros(1, int))).all()


@pytest.mark.parametrize("name", OF_ROWS)
def test_what_is_left_out_costs_nothing(name: str) -> None:
    """Labels outside of the classes, of any integer dtype, whatever the logits hold."""
    call = OF_ROWS[name]
    bad = jnp.asarray(np.concatenate([ROWS, np.full((1, 3), np.nan, np.float32)]))
    for label, dtype in ((-1, np.int32), (-100, np.int8), (3, np.int32), (2**31 - 1, np.int32)):
        labels = jnp.full(len(bad), label, dtype) if name != "soft_cross_entropy" else jnp.full(len(bad), -1)
        np.testing.assert_array_equal(call(bad, labels), 0)
        gradient = jax.grad(lambda z: call(z, labels).sum())(bad)  # noqa: B023
        np.testing.assert_array_equal(gradient, 0)


def test_likely_events_keep_their_digits() -> None:
    z = np.array([1.0, 10, 15, 20, 30, 80], np.float32)
    expected = np.log1p(np.exp(-z.astype(float)))
    np.testing.assert_allclose(jm.binary_cross_entropy(z, np.ones(6, int)), expected, rtol=1e-6)
    slopes = jax.grad(lambda z: jm.binary_cross_entropy(z, np.ones(6, int)).sum())(jnp.asarray(z))
    np.testing.assert_allclose(slopes, -1 / (1 + np.exp(z.astype(float))), rtol=1e-6)


def test_class_weight_of_zero_leaves_out() -> None:
    for weights in ([INF, 0, 1], [np.nan, 0, 1]):
        for loss in (jm.cross_entropy, jm.focal_loss):

            def call(z: Any, loss: Any = loss, weights: Any = weights) -> jax.Array:
                return loss(z, [-1, 1], class_weights=weights)

            z = jnp.array([[1.0, 2.0, 0.0], [INF, 0.0, 0.0]])
            np.testing.assert_array_equal(call(z), [0, 0])
            np.testing.assert_array_equal(jax.grad(lambda z: call(z).sum())(z), np.zeros((2, 3)))
    impossible = jnp.array([[-INF, 0.0]])
    np.testing.assert_array_equal(jm.cross_entropy(impossible, [1], label_smoothing=np.float32(0)), [0])
    np.testing.assert_array_equal(jm.cross_entropy(impossible, [1], label_smoothing=jnp.float32(0)), [0])
    of_weights = jax.grad(lambda w: jm.cross_entropy(LOGITS, LABELS, class_weights=w).sum())(jnp.zeros(K))
    expected = np.bincount(LABELS, jm.cross_entropy(LOGITS, LABELS), K)
    np.testing.assert_allclose(of_weights, expected, rtol=1e-5)


def test_nan_logits_make_loss_and_gradient_nan() -> None:
    z = jnp.array([[np.nan, 0.0, 1.0]])
    for loss in (jm.cross_entropy, jm.focal_loss):
        assert np.isnan(loss(z, [0])).all()
        assert np.isnan(jax.grad(lambda z: loss(z, [0]).sum())(z)).all()  # noqa: B023
    assert np.isnan(jm.binary_cross_entropy([0.5], [1.5])).all()


def test_a_tie_has_a_gradient() -> None:
    slopes = jax.grad(lambda z: jm.multiclass_hinge_loss(z, [0]).sum())
    np.testing.assert_allclose(slopes(jnp.zeros((1, 3))), [[-1, 0.5, 0.5]])
    np.testing.assert_array_equal(jm.multiclass_hinge_loss([[-INF], [3.0]], [0, 0]), [0, 0])


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_losses_equal_those_of_optax(scale: float) -> None:
    optax = pytest.importorskip("optax", reason="optax is in the extra 'loops'")
    z, y = jnp.asarray(LOGITS * scale, jnp.float32), jnp.asarray(LABELS)
    pairs = [
        (lambda z: jm.cross_entropy(z, y), lambda z: optax.softmax_cross_entropy_with_integer_labels(z, y)),
        (lambda z: jm.soft_cross_entropy(z, TARGETS), lambda z: optax.softmax_cross_entropy(z, jnp.asarray(TARGETS))),
        (lambda z: jm.binary_cross_entropy(z[:, 0], BINARY), lambda z: optax.sigmoid_binary_cross_entropy(z[:, 0], BINARY)),
        (lambda z: jm.hinge_loss(z[:, 0], BINARY), lambda z: optax.hinge_loss(z[:, 0], 2 * BINARY - 1)),
    ]
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        for ours, theirs in pairs:
            np.testing.assert_allclose(ours(z), theirs(z), rtol=1e-6, atol=1e-6)
            gradient, expected = (jax.grad(lambda z, f=f: f(z).sum())(z) for f in (ours, theirs))
            np.testing.assert_allclose(gradient, expected, atol=1e-6)


def test_two_hundred_classes_of_small_integers() -> None:
    logits = jnp.zeros((3, 200))
    np.testing.assert_allclose(jm.cross_entropy(logits, np.array([-100, 127, -1], np.int8)), [0, np.log(200), 0], rtol=1e-6)
    np.testing.assert_allclose(jm.cross_entropy(logits, np.array([-100, 199, 200])), [0, np.log(200), 0], rtol=1e-6)


def test_published_figures() -> None:
    """The textbook example, mean cross-entropy of seven forecasts, three times."""
    y = np.eye(3)[np.array([1, 2, 2, 3, 3, 1, 3]) - 1]
    state = np.random.RandomState(10)
    for expected in (0.49631710718508326, 0.6616817361606729, 0.7961738233757771):
        p = state.rand(7, 3) + 0.6 * y
        p /= p.sum(-1, keepdims=True)
        np.testing.assert_allclose(jm.nll(p, y).mean(), expected, rtol=1e-6)
        np.testing.assert_allclose(jm.nll(p, y.argmax(-1)).mean(), expected, rtol=1e-6)


def test_nll_at_the_ends() -> None:
    p = jnp.array([[0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_array_equal(jm.nll(p, [0, 1]), [INF, 0])
    np.testing.assert_array_equal(jax.grad(lambda p: jm.nll(p, jnp.array([0, 1])).sum())(p), [[-INF, 0], [0, -1]])


def test_hinge_equals_scikit_learns() -> None:
    np.testing.assert_allclose(
        jm.multiclass_hinge_loss(LOGITS, LABELS).mean(), sk.hinge_loss(LABELS, LOGITS, labels=range(K)), rtol=1e-6
    )


def test_losses_broadcast_and_vmap() -> None:
    logits = jnp.asarray(np.stack([LOGITS, -LOGITS]), jnp.float32)
    each = np.stack([jm.cross_entropy(z, LABELS) for z in logits])
    np.testing.assert_allclose(jm.cross_entropy(logits, LABELS), each, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jm.cross_entropy, (0, None))(logits, jnp.asarray(LABELS)), each, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jm.cross_entropy)(logits, LABELS), each, rtol=1e-6)
    assert jm.cross_entropy(logits[0, 0], LABELS[0]).shape == ()
    assert jm.cross_entropy(jnp.zeros((0, 3)), jnp.zeros(0, int)).shape == (0,)


def test_weighted_mean() -> None:
    values, weight = jnp.array([1.0, 2.0, jnp.nan, 4.0]), jnp.array([1.0, 3.0, 0.0, 2.0])
    np.testing.assert_allclose(jm.weighted_mean(values, weight), 15 / 6, rtol=1e-6)
    np.testing.assert_allclose(jm.weighted_mean(values, where=[True, False, False, True]), 2.5, rtol=1e-6)
    assert jm.weighted_mean(values, where=[False] * 4) == 0
    gradient = jax.grad(lambda v: jm.weighted_mean(v, weight))(values)
    np.testing.assert_allclose(gradient, [1 / 6, 1 / 2, 0, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(jm.weighted_mean(jnp.ones((2, 3)) * 2, axis=-1), [2, 2])


def test_weighted_mean_over_devices() -> None:
    """The sums of eight devices, of which some hold nothing that counts."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    values, where = jnp.arange(16.0), jnp.arange(16) > 4

    def mean(values: jax.Array, where: jax.Array) -> jax.Array:
        total, weight = jax.lax.psum(jm.weighted_mean(values, where=where, parts=True), "data")
        return total / weight

    spec = PartitionSpec("data")
    sharded = jax.jit(jax.shard_map(mean, mesh=mesh, in_specs=(spec, spec), out_specs=PartitionSpec()))
    np.testing.assert_allclose(sharded(values, where), np.arange(5, 16).mean(), rtol=1e-6)


@pytest.mark.parametrize(
    "metric",
    [jm.macro(jm.f1), jm.balanced_accuracy, jm.matthews_corrcoef, jm.macro(jm.jaccard)],
    ids=["f1", "recall", "matthews", "jaccard"],
)
def test_metric_loss_is_the_metric_of_soft_counts(metric: Any) -> None:
    loss = jm.metric_loss(metric)
    soft = special.softmax(LOGITS, -1)
    counts = np.stack([soft[label == LABELS].sum(0) for label in range(K)])
    np.testing.assert_allclose(loss(LOGITS, LABELS), 1 - metric(counts), rtol=1e-5)
    gradient = jax.grad(loss)(jnp.asarray(LOGITS, jnp.float32), LABELS)
    assert np.isfinite(gradient).all()
    assert abs(gradient).max() > 0
    better = LOGITS - np.asarray(gradient)
    assert loss(better, LABELS) < loss(LOGITS, LABELS)
    assert jm.metric_loss(metric) == loss


@pytest.mark.parametrize("metric", [jm.macro(jm.f1), jm.matthews_corrcoef, jm.balanced_accuracy])
def test_metric_loss_of_rows_without_a_say_and_of_certain_ones(metric: Any) -> None:
    loss = jm.metric_loss(metric)
    z = jnp.array([[INF, 0.0], [0.5, 1.0], [2.0, 0.0], [-INF, -INF]])
    y = np.array([0, 1, 1, 0])
    same = jnp.array([[40.0, -40.0], [0.5, 1.0], [2.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(loss(z, y), loss(same, y), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(loss)(z, y)[1:3], jax.grad(loss)(same, y)[1:3], rtol=1e-5)
    assert np.isfinite(jax.grad(loss)(z, y)).all()
    nothing = jnp.array([[np.nan, 1.0]])
    for options in ({"where": [True] * 4 + [False]}, {"sample_weight": [1.0] * 4 + [0]}, {}):
        labels = np.append(y, 0 if options else -1)
        assert loss(jnp.concatenate([z, nothing]), labels, **options) == loss(z, y)
        gradient = jax.grad(loss)(jnp.concatenate([z, nothing]), labels, **options)
        np.testing.assert_array_equal(gradient[-1], [0, 0])
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("surrogate", ["logistic", "hinge", "squared_hinge"])
def test_pairwise_auc_loss_by_pairs(surrogate: Any) -> None:
    score = LOGITS[:, 0]
    d = score[BINARY == 1][:, None] - score[BINARY == 0]
    hinge = np.maximum(0, 1 - d)
    expected = {"logistic": np.logaddexp(0, -d), "hinge": hinge, "squared_hinge": hinge**2}[surrogate]
    np.testing.assert_allclose(jm.pairwise_auc_loss(score, BINARY, surrogate=surrogate), expected.mean(), rtol=1e-5)
    if surrogate != "logistic":  # a bound on the pairs out of order
        assert expected.mean() >= 1 - float(jm.roc_auc(BINARY, score))
    masked = jm.pairwise_auc_loss(
        np.append(score, np.nan), np.append(BINARY, 1), surrogate=surrogate, where=np.arange(N + 1) < N
    )
    np.testing.assert_allclose(masked, expected.mean(), rtol=1e-5)
    assert jm.pairwise_auc_loss(score, np.ones(N, int), surrogate=surrogate) == 0


@pytest.mark.parametrize("surrogate", ["logistic", "hinge", "squared_hinge"])
def test_pairwise_auc_loss_of_extremes(surrogate: Any) -> None:
    def loss(z: Any, y: Any = (1, 0, 0), **options: Any) -> Any:
        return jax.value_and_grad(lambda z: jm.pairwise_auc_loss(z, np.array(y), surrogate=surrogate, **options))(jnp.array(z))

    for z in ([1e20, 0, 1], [INF, 0, 1]):
        value, gradient = loss(z)
        assert value == 0
        np.testing.assert_array_equal(gradient, [0, 0, 0])
    for z in ([-INF, 0, 1], [INF, INF, -INF], [3e38, 1e4, -3e38]):
        value, gradient = loss(z)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
    ordinary = loss([0.5, 0.1, 0.9])
    for weight in (1e-30, 1e30):
        assert_all_close(loss([0.5, 0.1, 0.9], sample_weight=[weight] * 3), ordinary)
    assert np.isnan(loss([np.nan, 0, 1])[0])


def assert_all_close(got: Any, expected: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), got, expected)


def test_soft_calibration_error_becomes_the_hard_one() -> None:
    rng = np.random.default_rng(4)
    centres = (np.arange(10) + 0.5) / 10
    p = rng.choice(centres, 200)
    y = (rng.random(200) < p**2).astype(int)
    hard = jm.calibration_error(y, p, norm="l2", num_bins=10)
    np.testing.assert_allclose(jm.soft_calibration_error(p, y, num_bins=10, temperature=1e-4), hard, rtol=1e-3)
    gradient = jax.grad(lambda p: jm.soft_calibration_error(p, y))(jnp.asarray(p))
    assert np.isfinite(gradient).all()
    assert np.isfinite(jax.grad(lambda p: jm.soft_calibration_error(p, jnp.zeros(0, int)))(jnp.zeros(0))).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jm.cross_entropy(LABELS, LOGITS), "labels must hold class ids"),
        (lambda: jm.cross_entropy(LOGITS, LABELS[1:]), "logits and labels must go together"),
        (lambda: jm.cross_entropy(LOGITS, LABELS, class_weights=[1.0]), r"class_weights must have shape \(K,\) = \(5,\)"),
        (lambda: jm.cross_entropy(LOGITS, LABELS, where=np.ones(3, bool)), "where and the examples must go together"),
        (lambda: jm.cross_entropy(1.0, 0), r"logits must have shape \(..., K\)"),
        (lambda: jm.soft_cross_entropy(LOGITS, TARGETS[:, 1:]), "same K"),
        (lambda: jm.nll(TARGETS, TARGETS[:, 1:]), "labels must be class ids, or of shape"),
        (lambda: jm.cross_entropy(LOGITS, LABELS[:, None]), "logits and labels must go together"),
        (lambda: jm.cross_entropy(LOGITS, LABELS, label_smoothing=1.1), r"label_smoothing must be in \[0, 1\], got 1.1"),
        (lambda: jm.binary_cross_entropy(LOGITS[:, :1], BINARY), "logits and labels must go together"),
        (lambda: jm.weighted_mean([1.0, 2.0], [[1.0], [0.0]]), "values and sample_weight must go together"),
        (lambda: jm.focal_loss(LOGITS, LABELS, gamma=-1), "gamma must be"),
        (lambda: jm.focal_loss(LOGITS, LABELS, gamma=INF), "gamma must be"),
        (lambda: jm.metric_loss("f1"), "metric_loss takes a function"),  # type: ignore[arg-type]
        (lambda: jm.metric_loss(jm.accuracy)(LOGITS[0], LABELS[0]), r"logits must have shape \(..., n, K\)"),
        (lambda: jm.pairwise_auc_loss([1.0], [1], surrogate="log"), "surrogate must be"),  # type: ignore[arg-type]
        (lambda: jm.pairwise_auc_loss([1.0, 2.0], [1]), "same number of examples"),
        (lambda: jm.soft_calibration_error([0.5], [1], temperature=0), "temperature must be"),
    ],
)
def test_mistakes_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()
