"""Cross entropy in blocks of words against the definition in a float64 loop, with every logit at
hand.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from numpy.testing import assert_allclose, assert_array_equal

from jaxmetrics.losses import cross_entropy, linear_cross_entropy, mean_linear_cross_entropy

N, D, V = 6, 5, 11
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "label_smoothing": {"label_smoothing": 0.3},
    "z_loss": {"z_loss": 0.2},
    "soft_cap": {"soft_cap": 1.5},
    "all": {"label_smoothing": 0.1, "z_loss": 0.01, "soft_cap": 2.5},
}


@pytest.fixture(autouse=True)
def not_rounded_to_tf32() -> Iterator[None]:
    """Products of float32 matrices as on a CPU: GPUs round their numbers to 10 bits by default."""
    with jax.default_matmul_precision("float32"):
        yield


Arrays = dict[str, Any]
WEIGHTS = ("hidden", "kernel", "bias")


def problem(n: int = N, d: int = D, v: int = V, dtype: Any = np.float32) -> Arrays:
    """One label is out of range on each side, the others lie in several blocks; g is the gradient
    that arrives.
    """
    rng = np.random.default_rng(0)
    labels = rng.integers(0, v, n)
    labels[:4] = [0, -1, v - 1, v]
    shapes: dict[str, Any] = {"hidden": (n, d), "kernel": (d, v), "bias": v, "g": n}
    return {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()} | {
        "labels": labels
    }


def with_bias(hidden: Any, kernel: Any, bias: Any, labels: Any, **options: Any) -> Any:
    return linear_cross_entropy(hidden, kernel, labels, bias=bias, **options)


def by_definition(
    hidden: np.ndarray,
    kernel: np.ndarray,
    bias: np.ndarray,
    labels: np.ndarray,
    g: np.ndarray,
    *,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float | None = None,
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The losses and the gradients of `sum_i g_i loss_i`."""
    h, k, b, g = (np.asarray(x, np.float64) for x in (hidden, kernel, bias, g))
    losses = np.zeros(len(h))
    gradients = {"hidden": np.zeros_like(h), "kernel": np.zeros_like(k), "bias": np.zeros_like(b)}
    for i, y in enumerate(labels):
        if not 0 <= y < len(b):
            continue
        z = h[i] @ k + b
        slope = np.ones(len(b))
        if soft_cap is not None:
            slope = 1 / np.cosh(z / soft_cap) ** 2
            z = soft_cap * np.tanh(z / soft_cap)
        lse = z.max() + np.log(np.exp(z - z.max()).sum())
        losses[i] = (
            (1 - label_smoothing) * (lse - z[y])
            + label_smoothing * (lse - z.mean())
            + z_loss * lse**2
        )
        target = label_smoothing / len(b) + (1 - label_smoothing) * (np.arange(len(b)) == y)
        dz = g[i] * ((1 + 2 * z_loss * lse) * np.exp(z - lse) - target) * slope
        gradients["hidden"][i] = k @ dz
        gradients["kernel"] += np.outer(h[i], dz)
        gradients["bias"] += dz
    return losses, gradients


def ours(arrays: Arrays, *, where: Any = None, **options: Any) -> tuple[Any, Arrays]:
    """The same by the library, compiled once for all arrays of the same shapes."""
    on_device = {name: jnp.asarray(x) for name, x in arrays.items()}
    return _with_gradients(on_device, where, options=tuple(options.items()))


@partial(jax.jit, static_argnames="options")
def _with_gradients(arrays: Arrays, where: Any, options: tuple[tuple[str, Any], ...]) -> Any:
    def loss_of(weights: Arrays) -> Any:
        return with_bias(**weights, labels=arrays["labels"], where=where, **dict(options))

    losses, pullback = jax.vjp(loss_of, {name: arrays[name] for name in WEIGHTS})
    return losses, pullback(arrays["g"].astype(losses.dtype))[0]


def assert_close(got: tuple[Any, Arrays], expected: tuple[Any, Arrays], tolerance: float) -> None:
    assert_allclose(got[0], expected[0], rtol=tolerance, atol=tolerance)
    for name, gradient in expected[1].items():
        assert got[1][name].shape == gradient.shape
        atol = tolerance * np.abs(gradient).max()
        ours = np.asarray(got[1][name], np.float64)
        assert_allclose(ours, gradient, rtol=tolerance, atol=atol, err_msg=name)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_float64_has_all_digits(float64: None, options: dict[str, Any]) -> None:
    arrays = problem(dtype=float)
    assert_close(ours(arrays, chunk_size=3, **options), by_definition(**arrays, **options), 1e-12)


@pytest.mark.parametrize("chunk_size", [1, V - 1, V, V + 1, None])
def test_any_chunk_size_gives_the_same(chunk_size: int | None) -> None:
    arrays = problem()
    found = ours(arrays, chunk_size=chunk_size, **OPTIONS["all"])
    assert {x.dtype for x in jax.tree.leaves(found)} == {np.dtype(np.float32)}
    assert_close(found, by_definition(**arrays, **OPTIONS["all"]), 1e-6)


def test_gradients_are_differences_of_first_and_second_order(float64: None) -> None:
    """The slopes of the definition are those of its losses, and the second derivatives those of its
    slopes.
    """
    arrays, options, step = problem(n=4, d=2, v=5, dtype=float), OPTIONS["all"], 1e-5
    hidden, kernel, bias, g, labels = map(jnp.asarray, arrays.values())
    v = np.random.default_rng(1).normal(size=hidden.shape)
    ahead, behind = (
        by_definition(**(arrays | {"hidden": arrays["hidden"] + x * v}), **options)
        for x in (step, -step)
    )
    slope = (by_definition(**arrays, **options)[1]["hidden"] * v).sum()
    assert_allclose(slope, g @ (ahead[0] - behind[0]) / (2 * step), rtol=1e-8)
    loss = lambda h: (g * with_bias(h, kernel, bias, labels, chunk_size=2, **options)).sum()
    second = jax.jit(jax.grad(lambda h: (jax.grad(loss)(h) * v).sum()))(hidden)
    change = (ahead[1]["hidden"] - behind[1]["hidden"]) / (2 * step)
    assert_allclose(second, change, rtol=1e-7, atol=1e-9)


def test_options_may_be_traced_and_have_gradients() -> None:
    """The loss is linear in both."""
    arrays = problem()
    hidden, kernel, bias, _, labels = map(jnp.asarray, arrays.values())

    def loss(eps: Any, weight: Any) -> Any:
        options = {"label_smoothing": eps, "z_loss": weight}
        return with_bias(hidden, kernel, bias, labels, chunk_size=4, **options)

    plain, smooth, with_z = (
        by_definition(**arrays, label_smoothing=eps, z_loss=weight)[0]
        for eps, weight in ((0, 0), (1, 0), (0, 1))
    )
    eps, weight = jnp.float32(0.25), jnp.float32(0.125)
    losses = jax.jit(loss)(eps, weight)
    assert_allclose(losses, plain + (smooth - plain) / 4 + (with_z - plain) / 8, rtol=1e-5)
    slopes = jax.jit(jax.jacrev(loss, (0, 1)))(eps, weight)
    assert_allclose(slopes, [smooth - plain, with_z - plain], rtol=1e-5, atol=1e-6)


def test_labels_out_of_range_and_masked_rows_are_absent() -> None:
    arrays = problem(n=12)
    arrays["labels"] = np.asarray([3, -1, 0, -100, 7, V, 10, 2**31 - 1, 5, -(2**31), 4, 1])
    dropped, kept = jnp.asarray([1, 3, 5, 7, 9, 11]), np.asarray([0, 2, 4, 6, 8, 10])
    arrays["hidden"][1::2] = np.asarray([np.nan, np.inf, 1e30, np.nan, -np.inf, np.nan])[:, None]
    losses, gradients = ours(arrays, chunk_size=4, where=jnp.arange(12) != 11, **OPTIONS["all"])
    few = {k: x[kept] if k in ("hidden", "labels", "g") else x for k, x in arrays.items()}
    assert (losses[dropped] == 0).all()
    assert (gradients["hidden"][dropped] == 0).all()
    got = losses[kept], gradients | {"hidden": gradients["hidden"][kept]}
    assert_close(got, by_definition(**few, **OPTIONS["all"]), 1e-6)


def test_labels_of_the_host_beyond_the_vocabulary_raise_unless_masked() -> None:
    arrays = problem()
    hidden, kernel, bias, *_ = arrays.values()
    for label in (V, 2**32):  # the latter is 0 to JAX, which cuts it to 32 bits
        labels = np.asarray([0, 1, 2, 3, label, 5])
        message = rf"labels\[4\] is {label}, but class ids must lie in \[0, 11\)"
        with pytest.raises(ValueError, match=message):
            with_bias(hidden, kernel, bias, labels, chunk_size=4)
    got = with_bias(hidden, kernel, bias, labels, chunk_size=4, where=labels < V)
    expected = by_definition(**(arrays | {"labels": np.where(labels < V, labels, -1)}))[0]
    assert_allclose(got, expected, rtol=1e-5)


def test_narrow_labels_of_a_wider_vocabulary() -> None:
    arrays = problem(v=300) | {"labels": np.asarray([5, -1, 127, 3, 0, 1], np.int8)}
    assert_allclose(ours(arrays, chunk_size=64)[0], by_definition(**arrays)[0], rtol=1e-5)


def test_huge_logits() -> None:
    """The logits are +-1e4, all exact in float32: 1e4 and 9998, say."""
    kernel = np.asarray([[1.0, -1.0, 0.5, 0.9998, -0.75]], np.float32)
    arrays = {
        "hidden": np.asarray([[1e4], [1e4], [-1e4], [1e4]], np.float32),
        "kernel": kernel,
        "bias": np.zeros(5, np.float32),
        "labels": np.asarray([0, 1, 4, 3]),
        "g": np.ones(4, np.float32),
    }
    losses, gradients = ours(arrays, chunk_size=2)
    rival = 1 / (1 + np.exp(2.0))  # share of the second best
    assert_allclose(losses, [-np.log(1 - rival), 20000, 2500, -np.log(rival)], rtol=1e-5)
    dz = np.asarray(
        [
            [-rival, 0, 0, rival, 0],
            [1 - rival, -1, 0, rival, 0],
            [0, 1, 0, 0, -1],
            [1 - rival, 0, 0, rival - 1, 0],
        ]
    )
    assert_allclose(gradients["bias"], dz.sum(0), rtol=1e-5)
    by_hidden = dz @ [1, -1, 0.5, 0.9998, -0.75]
    assert_allclose(gradients["hidden"][:, 0], by_hidden, rtol=1e-5, atol=1e-7)


def test_small_losses_and_gradients_keep_their_digits() -> None:
    """`ln sum exp z - z_y` and `p_y - 1` would be 0 or have one digit left."""
    gaps = np.asarray([10.0, 20.0, 40.0, 60.0])
    arrays = {"hidden": gaps[:, None], "kernel": [[0.0, 1.0, 0.0]], "bias": np.zeros(3)}
    losses, gradients = ours(arrays | {"g": np.ones(4), "labels": np.ones(4, int)}, chunk_size=1)
    assert_allclose(losses, np.log1p(2 * np.exp(-gaps)), rtol=4e-6)
    assert_allclose(gradients["hidden"][:, 0], -2 / (np.exp(gaps) + 2), rtol=4e-6)


def test_bias_rules_out_whole_blocks() -> None:
    arrays = problem()
    arrays["bias"][[0, 1, 2, 3, 9, 10]] = -np.inf
    arrays["labels"] = np.asarray([4, 8, 5, -1, 6, 7])
    losses, gradients = ours(arrays, chunk_size=3, z_loss=0.1)
    kept = slice(4, 9)
    few = arrays | {
        "kernel": arrays["kernel"][:, kept],
        "bias": arrays["bias"][kept],
        "labels": arrays["labels"] - 4,
    }
    expected, of_few = by_definition(**few, z_loss=0.1)
    cut = {
        "hidden": gradients["hidden"],
        "kernel": gradients["kernel"][:, kept],
        "bias": gradients["bias"][kept],
    }
    assert_close((losses, cut), (expected, of_few), 1e-6)
    assert (gradients["bias"][:4] == 0).all()
    assert np.isinf(ours(arrays | {"labels": np.full(N, 2)}, chunk_size=3, z_loss=0.1)[0]).all()


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"z_loss": 0.1}], ids=str)
@pytest.mark.parametrize(
    "bias",
    [[np.inf, 0, 0], [0, np.inf, 0], [np.inf, np.inf, 0], [-np.inf] * 3, [-np.inf, 0, 0]],
    ids=str,
)
def test_infinite_logits_are_limits(bias: list[float], options: dict[str, float]) -> None:
    arrays = {"hidden": np.ones((2, 1)), "kernel": np.zeros((1, 3)), "bias": np.array(bias)}
    arrays |= {"g": np.ones(2), "labels": np.zeros(2, int)}
    value, gradients = ours(arrays, chunk_size=2, where=np.array([True, False]), **options)
    assert value[1] == 0
    if "z_loss" not in options:
        assert_allclose(value[0], cross_entropy(bias, 0, **options), rtol=1e-6)
    assert not np.isnan(value[0])
    assert all(np.isfinite(g).all() for g in gradients.values())
    _, of_nothing = ours(arrays, chunk_size=2, where=np.array([False, False]), **options)
    assert not any(g.any() for g in of_nothing.values())


def test_no_gradient_of_what_is_dropped_though_the_kernel_is_nan() -> None:
    loss = lambda k: linear_cross_entropy(jnp.ones((1, 2)), k, jnp.array([-1])).sum()
    gradient = jax.grad(loss)(jnp.array([[np.nan, 0.0], [0.0, 0.0]]))
    assert_array_equal(gradient, np.zeros((2, 2)))


def test_soft_cap_far_out_and_over_words_ruled_out() -> None:
    one = jnp.ones((1, 1))
    loss = with_bias(one, 0 * jnp.ones((1, 2)), jnp.array([0.0, -np.inf]), [0], soft_cap=2.0)
    assert_array_equal(loss, [0])
    # Of caps; the slope of the loss in z is sigmoid(-c tanh z/c) sech^2.
    z = np.array([3.0, 6.0, 9.0])
    capped = lambda z: linear_cross_entropy(one, jnp.stack([z, 0.0])[None], [1], soft_cap=1.0)[0]
    gradient = jax.vmap(jax.grad(capped))(jnp.asarray(z))
    assert_allclose(gradient, 1 / (1 + np.exp(-np.tanh(z))) / np.cosh(z) ** 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ((P(), P(), P()), "kernel is the same"),
        (
            (P("v"), P(None, "v"), P("v")),
            "hidden and labels must be the same on all devices, but they differ",
        ),
    ],
)
def test_what_should_differ_between_devices_does(specs: Any, message: str) -> None:
    arrays = problem(n=8, v=16)
    loss = partial(linear_cross_entropy, axis_name="v")
    call = jax.shard_map(
        lambda *arrays: loss(*arrays), mesh=mesh_of(1, 8), in_specs=specs, out_specs=P("v")
    )
    with pytest.raises(ValueError, match=message):
        call(arrays["hidden"], arrays["kernel"], arrays["labels"])


def test_a_single_word_is_certain() -> None:
    losses, gradients = ours(problem(v=1) | {"labels": np.zeros(N, int)})
    assert (losses == 0).all()
    assert all((gradient == 0).all() for gradient in gradients.values())


@pytest.mark.parametrize("other", [jnp.bfloat16, jnp.float32])
def test_half_precision_is_summed_in_float32(other: Any) -> None:
    arrays = problem(n=300, d=16, v=40)
    bfloat16 = {
        k: jnp.asarray(arrays[k]).astype(jnp.bfloat16) for k in ("hidden", "kernel", "bias")
    }
    bfloat16["kernel"] = bfloat16["kernel"].astype(other)
    losses, gradients = ours(arrays | bfloat16, chunk_size=16, **OPTIONS["all"])
    expected = by_definition(
        **(arrays | {k: np.asarray(x.astype(jnp.float32)) for k, x in bfloat16.items()}),
        **OPTIONS["all"],
    )
    assert losses.dtype == jnp.float32
    assert_allclose(losses, expected[0], rtol=1e-5, atol=1e-6)
    assert {k: x.dtype for k, x in gradients.items()} == {k: x.dtype for k, x in bfloat16.items()}
    for name, gradient in expected[1].items():
        # 300 terms each rounded to 2^-9 at most: a sum held in bfloat16 would be worse by the
        # square root of 300.
        error = np.abs(np.asarray(gradients[name].astype(jnp.float32)) - gradient).max()
        assert error < 2**-8 * np.abs(gradient).max(), name


def test_leading_axes_are_batch_and_broadcast() -> None:
    arrays = problem(n=12)
    hidden, labels = arrays["hidden"].reshape(2, 6, D), jnp.asarray(arrays["labels"].reshape(2, 6))
    expected = by_definition(**arrays)[0].reshape(2, 6)
    loss = partial(linear_cross_entropy, kernel=arrays["kernel"], bias=arrays["bias"], chunk_size=4)
    assert_allclose(loss(hidden, labels=labels), expected, rtol=1e-5)
    assert_allclose(loss(hidden[0], labels=labels)[0], expected[0], rtol=1e-5)
    assert_allclose(loss(hidden, labels=labels[1])[1], expected[1], rtol=1e-5)
    assert loss(hidden[:, :0], labels=labels[:, :0]).shape == (2, 0)


def test_vmap_and_scan_with_remat() -> None:
    arrays = problem(n=12) | {"g": np.ones(12)}
    losses, gradients = by_definition(**arrays)
    hidden, kernel, bias, _, labels = map(jnp.asarray, arrays.values())
    loss = partial(with_bias, chunk_size=4)

    def mapped(hidden: Any, kernel: Any, bias: Any) -> Any:
        batches = hidden.reshape(3, 4, D), kernel, bias, labels.reshape(3, 4)
        return jax.vmap(loss, (0, None, None, 0))(*batches).sum()

    def scanned(hidden: Any, kernel: Any, bias: Any) -> Any:
        step = lambda total, x: (
            total + jax.checkpoint(loss)(x[0], kernel, bias, x[1]).sum(),
            None,
        )
        batches = hidden.reshape(3, 4, D), labels.reshape(3, 4)
        return jax.lax.scan(step, jnp.zeros(()), batches)[0]

    for total in (mapped, scanned):
        value, slopes = jax.jit(jax.value_and_grad(total, (0, 1, 2)))(hidden, kernel, bias)
        got = value, dict(zip(WEIGHTS, slopes, strict=True))
        assert_close(got, (losses.sum(), gradients), 2e-6)


def mesh_of(n: int, v: int) -> Mesh:
    return Mesh(np.asarray(jax.devices("cpu")).reshape(n, v), ("n", "v"))


OF_WORDS = {"hidden": P("n"), "kernel": P(None, "v"), "bias": P("v"), "labels": P("n")}


@pytest.mark.parametrize(
    "spread", [{"kernel": P(None, "v"), "bias": P("v")}, {"hidden": P("v")}], ids=str
)
def test_sharded_inputs(spread: dict[str, P]) -> None:
    arrays = problem(n=16, v=40)
    placed = {
        name: jax.device_put(arrays[name], NamedSharding(mesh_of(1, 8), spread.get(name, P())))
        for name in WEIGHTS
    }
    got = ours(arrays | placed, chunk_size=12, **OPTIONS["all"])
    assert_close(got, by_definition(**arrays, **OPTIONS["all"]), 1e-6)


@pytest.mark.parametrize(
    ("mesh_shape", "check_vma"), [((1, 8), True), ((2, 4), True), ((2, 4), False), ((8, 1), True)]
)
def test_words_and_examples_spread_by_shard_map(
    mesh_shape: tuple[int, int], check_vma: bool
) -> None:
    """Gradients are taken outside of shard_map, where those of what is replicated must be sums over
    the devices.
    """
    arrays = problem(n=16, v=40)
    hidden, kernel, bias, g, labels = map(jnp.asarray, arrays.values())
    loss: Any = jax.shard_map(
        partial(with_bias, chunk_size=3, axis_name="v", **OPTIONS["all"]),
        mesh=mesh_of(*mesh_shape),
        in_specs=tuple(OF_WORDS.values()),
        out_specs=P("n"),
        check_vma=check_vma,
    )

    @jax.jit
    def run(*weights: Any) -> Any:
        losses, pullback = jax.vjp(lambda *weights: loss(*weights, labels), *weights)
        return losses, dict(zip(WEIGHTS, pullback(g), strict=True))

    expected = by_definition(**arrays, **OPTIONS["all"])
    assert_close(run(hidden, kernel, bias), expected, 1e-6)


def test_gradients_inside_of_shard_map() -> None:
    """A training step: the examples are spread over one axis, the words over the other."""
    arrays = problem(n=16, v=40)
    hidden, kernel, bias, g, labels = map(jnp.asarray, arrays.values())
    specs = {name: OF_WORDS[name] for name in WEIGHTS}

    def step(weights: Any, labels: Any, g: Any) -> Any:
        def total(weights: Any) -> Any:
            losses = with_bias(**weights, labels=labels, chunk_size=4, axis_name="v")
            return jax.lax.psum((g * losses).sum(), "n")

        return jax.value_and_grad(total)(weights)

    run = jax.shard_map(
        step, mesh=mesh_of(2, 4), in_specs=(specs, P("n"), P("n")), out_specs=(P(), specs)
    )
    losses, gradients = by_definition(**arrays)
    got = jax.jit(run)({"hidden": hidden, "kernel": kernel, "bias": bias}, labels, g)
    assert_close(got, ((losses * arrays["g"]).sum(), gradients), 2e-6)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_logits_are_never_held(dtype: Any) -> None:
    n, d, v = 512, 16, 16384
    shapes = ((n, d), dtype), ((d, v), dtype), ((n,), jnp.int32)

    def naive(hidden: Any, kernel: Any, labels: Any) -> Any:
        z = (hidden @ kernel).astype(jnp.float32)
        return -jnp.take_along_axis(jax.nn.log_softmax(z), labels[:, None], 1).mean()

    def temporary(loss: Any) -> int:
        program: Any = jax.jit(jax.value_and_grad(loss, (0, 1)))
        lowered = program.lower(*(jax.ShapeDtypeStruct(*x) for x in shapes))
        return lowered.compile().memory_analysis().temp_size_in_bytes

    in_blocks = lambda *arrays: linear_cross_entropy(*arrays, chunk_size=512).mean()
    assert dtype == jnp.bfloat16 or temporary(naive) >= 4 * n * v
    assert temporary(in_blocks) < 4 * n * v / 10


def entropies_by_definition(h: Any, k: Any, b: Any, labels: Any, cap: float = 1e30) -> np.ndarray:
    z = np.asarray(h, float) @ k + b
    z = np.where(z == -np.inf, z, cap * np.tanh(z / cap))
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    entropies = -np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(1)
    return np.where((labels >= 0) & (labels < z.shape[1]), entropies, 0)


@pytest.mark.parametrize("cap", [None, 1.5])
def test_entropies_and_their_gradients(float64: None, cap: float | None) -> None:
    arrays, step = problem(dtype=float), 1e-5
    arrays["bias"][3] = -np.inf
    hidden, kernel, bias, g, labels = arrays.values()
    definition = lambda h: entropies_by_definition(h, kernel, bias, labels, cap or 1e30)

    def entropies(hidden: Any) -> Any:
        options: Any = {"chunk_size": 3, "soft_cap": cap, "entropy": True}
        return with_bias(hidden, kernel, bias, jnp.asarray(labels), **options)[1]

    found, pullback = jax.vjp(entropies, hidden)
    assert_allclose(found, definition(hidden), rtol=1e-12)
    v = np.random.default_rng(1).normal(size=hidden.shape)
    change = (definition(hidden + step * v) - definition(hidden - step * v)) / (2 * step)
    assert_allclose((pullback(jnp.asarray(g))[0] * v).sum(), g @ change, rtol=1e-7)


@pytest.mark.parametrize(
    ("bias", "expected"),
    [
        ([0.0, -np.inf, -np.inf], 0.0),
        ([-np.inf, 0.0, 0.0], np.log(2)),
        ([-np.inf] * 3, np.log(3)),
        ([np.inf, 0.0, np.inf], np.log(2)),
        ([0.0, -30.0, -30.0], 2 * np.exp(-30) * (1 + 30)),
    ],
    ids=str,
)
def test_entropies_at_the_ends(bias: list[float], expected: float) -> None:
    """The label is the first word, and its probability may be 0 or 1. Examples without a label have
    no entropy and no gradient, whatever the kernel is.
    """

    def entropy(kernel: Any, label: int = 0) -> Any:
        labels, options = jnp.array([label]), {"bias": jnp.asarray(bias), "chunk_size": 2}
        hidden: Any = jnp.ones((1, 1))
        return linear_cross_entropy(hidden, kernel, labels, entropy=True, **options)[1][0]  # type: ignore[arg-type]

    value, pullback = jax.vjp(entropy, jnp.zeros((1, 3)))
    (gradient,) = pullback(jnp.float32(9))
    assert_allclose(value, expected, rtol=1e-6)
    assert np.isfinite(gradient).all()
    value, gradient = jax.value_and_grad(entropy)(jnp.full((1, 3), np.nan), -1)
    assert_array_equal([value, *gradient[0]], 0)


def mean_by_definition(arrays: Arrays, **options: Any) -> tuple[float, Arrays]:
    """`g` are weights >= 0; labels that are out of range do not count."""
    labels, weights = arrays["labels"], arrays["g"]
    weights = np.where((labels >= 0) & (labels < arrays["kernel"].shape[1]), weights, 0)
    weights = weights / max(weights.sum(), 1e-300)
    losses, gradients = by_definition(**(arrays | {"g": weights}), **options)
    return float(losses @ weights), gradients


def positive(arrays: Arrays) -> Arrays:
    return arrays | {"g": np.abs(arrays["g"])}


@partial(jax.jit, static_argnames="options")
def _mean(arrays: Arrays, where: Any, options: tuple[tuple[str, Any], ...]) -> Any:
    def loss(weights: Arrays) -> Any:
        hidden, kernel, bias = (weights[name] for name in WEIGHTS)
        return mean_linear_cross_entropy(
            hidden, kernel, arrays["labels"], arrays["g"], where, bias=bias, **dict(options)
        )

    # Differentiated as a whole, so that JAX's rules of promotion are those of the test.
    return jax.value_and_grad(jax.jit(loss))({name: arrays[name] for name in WEIGHTS})


def our_mean(arrays: Arrays, *, where: Any = None, **options: Any) -> Any:
    on_device = {name: jnp.asarray(x) for name, x in arrays.items()}
    return _mean(on_device, where, tuple(options.items()))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_mean_and_its_gradients(float64: None, options: dict[str, Any]) -> None:
    arrays = positive(problem(n=11, dtype=float))
    expected = mean_by_definition(arrays, **options)
    assert_close(our_mean(arrays, chunk_size=3, **options), expected, 1e-12)


@pytest.mark.parametrize("chunk_size", [1, 5, 11, 12, None])
def test_mean_of_any_chunk_size(chunk_size: int | None) -> None:
    """Eleven examples; the value is the same outside of a gradient."""
    arrays, options = positive(problem(n=11)), OPTIONS["all"] | {"chunk_size": chunk_size}
    value, gradients = our_mean(arrays, **options)
    assert_close((value, gradients), mean_by_definition(arrays, **OPTIONS["all"]), 1e-6)
    hidden, kernel, bias, weights, labels = map(jnp.asarray, arrays.values())
    alone = mean_linear_cross_entropy(hidden, kernel, labels, weights, bias=bias, **options)
    assert_allclose(alone, value, rtol=1e-6)


def test_mean_leaves_out_what_is_masked_or_has_no_weight() -> None:
    arrays = positive(problem(n=12))
    arrays["labels"] = np.asarray([3, -1, 0, -100, 7, V, 10, 2**31 - 1, 5, 2, 4, 1])
    arrays["hidden"][1::2] = np.asarray([np.nan, np.inf, 1e30, np.nan, -np.inf, np.nan])[:, None]
    arrays["g"][9] = 0
    where = np.arange(12) != 11
    got = our_mean(arrays, chunk_size=5, where=jnp.asarray(where), **OPTIONS["all"])
    few = {k: x[::2] if k in ("hidden", "labels", "g") else x for k, x in arrays.items()}
    assert (got[1]["hidden"][1::2] == 0).all()
    cut = got[0], got[1] | {"hidden": got[1]["hidden"][::2]}
    assert_close(cut, mean_by_definition(few, **OPTIONS["all"]), 1e-6)
    value, gradients = our_mean(arrays | {"kernel": np.full((D, V), np.nan), "g": np.zeros(12)})
    assert value == 0
    assert not any(x.any() for x in gradients.values())
    assert np.isnan(our_mean(arrays | {"g": np.full(12, -1.0)})[0])
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is -1"):
        mean_linear_cross_entropy(arrays["hidden"], arrays["kernel"], [1] * 12, [-1.0] * 12)


def test_mean_in_half_precision() -> None:
    arrays = positive(problem(n=300, d=16, v=40))
    halves = {k: jnp.asarray(arrays[k]).astype(jnp.bfloat16) for k in WEIGHTS}
    value, gradients = our_mean(arrays | halves, chunk_size=16, **OPTIONS["all"])
    wide = {k: np.asarray(x.astype(jnp.float32)) for k, x in halves.items()}
    expected = mean_by_definition(arrays | wide, **OPTIONS["all"])
    assert value.dtype == jnp.float32
    assert_allclose(value, expected[0], rtol=1e-5)
    for name, gradient in expected[1].items():
        assert gradients[name].dtype == jnp.bfloat16
        error = np.abs(np.asarray(gradients[name].astype(jnp.float32)) - gradient).max()
        assert error < 2**-7 * np.abs(gradient).max(), name


def test_mean_has_derivatives_by_weights_and_terms_and_of_second_order(float64: None) -> None:
    arrays, step = positive(problem(n=7, d=2, v=5, dtype=float)), 1e-5
    hidden, kernel, _, weights, labels = map(jnp.asarray, arrays.values())

    def mean(hidden: Any, weights: Any, eps: Any, factor: Any) -> Any:
        terms: Any = {"label_smoothing": eps, "z_loss": factor}
        return mean_linear_cross_entropy(hidden, kernel, labels, weights, chunk_size=3, **terms)

    def definition(*changed: Any) -> Any:
        hidden, weights, eps, factor = changed
        new = {"hidden": hidden, "g": np.asarray(weights), "bias": np.zeros(5)}
        terms = {"label_smoothing": float(eps), "z_loss": float(factor)}
        return mean_by_definition(arrays | new, **terms)

    at = hidden, weights, jnp.asarray(0.2), jnp.asarray(0.3)
    slopes = jax.jit(jax.grad(mean, (0, 1, 2, 3)))(*at)
    rng = np.random.default_rng(1)
    for i, (x, slope) in enumerate(zip(at, slopes, strict=True)):
        v = rng.normal(size=x.shape)
        ahead, behind = (definition(*at[:i], x + t * v, *at[i + 1 :]) for t in (step, -step))
        assert_allclose((slope * v).sum(), (ahead[0] - behind[0]) / (2 * step), rtol=1e-7)
        if i == 0:
            second = jax.jit(jax.grad(lambda h, v=v: (jax.grad(mean)(h, *at[1:]) * v).sum()))
            change = (ahead[1]["hidden"] - behind[1]["hidden"]) / (2 * step)
            assert_allclose(second(hidden), change, rtol=1e-6, atol=1e-9)


def test_mean_under_vmap_and_in_batches_that_are_added() -> None:
    arrays = positive(problem(n=12))
    hidden, kernel, bias, weights, labels = map(jnp.asarray, arrays.values())
    rows = hidden.reshape(3, 4, D), labels.reshape(3, 4), weights.reshape(3, 4)

    def total(hidden: Any, kernel: Any, bias: Any, at_once: bool) -> Any:
        def parts(h: Any, y: Any, w: Any) -> Any:
            return mean_linear_cross_entropy(
                h, kernel, y, w, bias=bias, chunk_size=3, parts=True, **OPTIONS["all"]
            )

        if at_once:
            sums = jax.vmap(parts)(hidden, *rows[1:])
        else:
            sums = jax.lax.map(lambda x: jax.checkpoint(parts)(*x), (hidden, *rows[1:]))
        return sums[0].sum() / sums[1].sum()

    expected = mean_by_definition(arrays, **OPTIONS["all"])
    for at_once in (True, False):
        run = jax.jit(jax.value_and_grad(partial(total, at_once=at_once), (0, 1, 2)))
        value, (d_hidden, *others) = run(rows[0], kernel, bias)
        got = value, dict(zip(WEIGHTS, (d_hidden.reshape(12, D), *others), strict=True))
        assert_close(got, expected, 2e-6)
    axes = mean_linear_cross_entropy(rows[0], kernel, rows[1], rows[2], bias=bias)
    assert_allclose(axes, mean_by_definition(arrays)[0], rtol=1e-6)


@pytest.mark.parametrize(
    "spread", [{"kernel": P(None, "v"), "bias": P("v")}, {"hidden": P("v")}], ids=str
)
def test_mean_of_sharded_inputs(spread: dict[str, P]) -> None:
    arrays = positive(problem(n=32, v=40))
    placed = {
        name: jax.device_put(arrays[name], NamedSharding(mesh_of(1, 8), spread.get(name, P())))
        for name in WEIGHTS
    }
    got = our_mean(arrays | placed, chunk_size=16, **OPTIONS["all"])
    assert_close(got, mean_by_definition(arrays, **OPTIONS["all"]), 1e-6)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("shape", [(1, 8), (2, 4), (8, 1)], ids=str)
def test_mean_spread_by_shard_map(shape: tuple[int, int], inside: bool) -> None:
    """Examples over one axis of the mesh, and words over the other. Gradients are taken inside or
    outside of shard_map.
    """
    arrays = positive(problem(n=16, v=40))
    hidden, kernel, bias, weights, labels = map(jnp.asarray, arrays.values())
    specs = tuple(OF_WORDS[name] for name in WEIGHTS)
    terms = {"soft_cap": OPTIONS["all"]["soft_cap"]}

    def mean(operands: Any, labels: Any, weights: Any, eps: Any) -> Any:
        h, k, b = operands
        options: Any = terms | {"bias": b, "label_smoothing": eps, "chunk_size": 3, "parts": True}
        parts = mean_linear_cross_entropy(h, k, labels, weights, axis_name="v", **options)
        total, size = jax.lax.psum(parts, "n")
        return total / size

    run = jax.value_and_grad(mean, (0, 3)) if inside else mean
    out = (P(), (specs, P())) if inside else P()
    mapped: Any = jax.shard_map(
        run, mesh=mesh_of(*shape), in_specs=(specs, P("n"), P("n"), P()), out_specs=out
    )
    run = jax.jit(mapped if inside else jax.value_and_grad(mapped, (0, 3)))
    value, (slopes, by_eps) = run((hidden, kernel, bias), labels, weights, jnp.float32(0.1))
    of_eps = [mean_by_definition(arrays, label_smoothing=eps, **terms)[0] for eps in (0, 1)]
    assert_allclose(by_eps, of_eps[1] - of_eps[0], rtol=1e-5)
    got = value, dict(zip(WEIGHTS, slopes, strict=True))
    assert_close(got, mean_by_definition(arrays, label_smoothing=0.1, **terms), 2e-6)


def test_mean_needs_three_products_and_few_logits() -> None:
    n, d, v = 1024, 64, 8192
    shapes = ((n, d), jnp.float32), ((d, v), jnp.float32), ((n,), jnp.int32)

    def compiled(loss: Any) -> Any:
        program: Any = jax.jit(jax.value_and_grad(loss, (0, 1)))
        return program.lower(*(jax.ShapeDtypeStruct(*x) for x in shapes)).compile()

    # Without a loop, so that XLA counts all products.
    at_once = compiled(partial(mean_linear_cross_entropy, chunk_size=n))
    assert 3 <= at_once.cost_analysis()["flops"] / (2 * n * d * v) < 3.5
    in_blocks = compiled(partial(mean_linear_cross_entropy, chunk_size=64))
    assert in_blocks.memory_analysis().temp_size_in_bytes < 4 * n * v / 4


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"labels": np.zeros(N)},
            TypeError,
            r"labels must contain ids of words, whose dtype is an integer dtype, got float64",
        ),
        (
            {"kernel": np.zeros((D + 1, V))},
            ValueError,
            r"shape of hidden is \(6, 5\) and the shape of kernel is \(6, 11\)",
        ),
        (
            {"kernel": np.zeros((2, D, V))},
            ValueError,
            r"kernel must have shape \(d, V\), but .* shape of kernel is \(2, 5, 11\)",
        ),
        ({"hidden": np.zeros(D)}, ValueError, r"hidden must have shape \(\.\.\., n, d\)"),
        ({"hidden": np.zeros((N, D), complex)}, TypeError, r"hidden must hold real numbers"),
        (
            {"bias": np.zeros(V - 1)},
            ValueError,
            r"bias must have shape \(V,\) = \(11,\).*got \(10,\)",
        ),
        ({"labels": np.zeros(N - 1, int)}, ValueError, r"hidden without d \(6,\), labels \(5,\)"),
        (
            {"labels": 3},
            ValueError,
            r"must have at least one axis, because the last axis is the axis of examples",
        ),
        ({"chunk_size": 0}, ValueError, r"chunk_size must be at least 1, got 0"),
        ({"chunk_size": 4.0}, TypeError, r"chunk_size must be a Python int"),
        ({"soft_cap": 0.0}, ValueError, r"soft_cap must be positive and finite, .*got 0"),
        ({"soft_cap": jnp.ones(())}, TypeError, r"soft_cap must be a Python number"),
        (
            {"label_smoothing": np.ones(2)},
            ValueError,
            r"label_smoothing must be a single number, got an array of shape \(2,\)",
        ),
        ({"z_loss": "much"}, TypeError, r"z_loss must hold real numbers"),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], error: type[Exception], message: str) -> None:
    arrays = {"hidden": np.zeros((N, D)), "kernel": np.zeros((D, V)), "labels": np.zeros(N, int)}
    with pytest.raises(error, match=message):
        linear_cross_entropy(**(arrays | change))
