"""Cross entropy in blocks of words against the definition in a float64 loop, with every logit at
hand.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from numpy.testing import assert_allclose, assert_array_equal

from jaxmetrics.losses import cross_entropy, linear_cross_entropy

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


def problem(n: int = N, d: int = D, v: int = V, seed: int = 0) -> dict[str, Any]:
    """One label is out of range on each side, the others lie in several blocks; g is the gradient
    that arrives.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, v, n)
    labels[:4] = [0, -1, v - 1, v]
    arrays = {
        "hidden": rng.normal(size=(n, d)),
        "kernel": rng.normal(size=(d, v)),
        "bias": rng.normal(size=v),
    }
    return {k: x.astype(np.float32) for k, x in arrays.items()} | {
        "labels": labels,
        "g": rng.normal(size=n).astype(np.float32),
    }


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
    losses, gradients = (
        np.zeros(len(h)),
        {"hidden": np.zeros_like(h), "kernel": np.zeros_like(k), "bias": np.zeros_like(b)},
    )
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


def ours(
    arrays: Mapping[str, Any], *, where: Any = None, **options: Any
) -> tuple[Any, dict[str, Any]]:
    """The same by the library, compiled once for all arrays of the same shapes."""
    arguments = {
        name: jnp.asarray(arrays[name]) for name in ("hidden", "kernel", "bias", "labels", "g")
    }
    return _with_gradients(*arguments.values(), where, options=tuple(options.items()))


@partial(jax.jit, static_argnames="options")
def _with_gradients(
    hidden: Array,
    kernel: Array,
    bias: Array,
    labels: Array,
    g: Array,
    where: Array | None,
    options: tuple[tuple[str, Any], ...],
) -> tuple[Array, dict[str, Array]]:
    def loss_of(weights: dict[str, Any]) -> Array:
        return linear_cross_entropy(**weights, labels=labels, where=where, **dict(options))

    losses, pullback = jax.vjp(loss_of, {"hidden": hidden, "kernel": kernel, "bias": bias})
    return losses, pullback(g.astype(losses.dtype))[0]


def assert_close(
    got: tuple[Any, dict[str, Any]], expected: tuple[Any, dict[str, Any]], tolerance: float
) -> None:
    assert_allclose(got[0], expected[0], rtol=tolerance, atol=tolerance)
    for name, gradient in expected[1].items():
        assert got[1][name].shape == gradient.shape
        assert_allclose(
            np.asarray(got[1][name], np.float64),
            gradient,
            rtol=tolerance,
            atol=tolerance * np.abs(gradient).max(),
            err_msg=name,
        )


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_float64_has_all_digits(float64: None, options: dict[str, Any]) -> None:
    arrays = {k: x if k == "labels" else x.astype(np.float64) for k, x in problem(seed=1).items()}
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
    arrays = {
        k: x if k == "labels" else x.astype(np.float64) for k, x in problem(n=4, d=2, v=5).items()
    }
    hidden, g, step = arrays["hidden"], arrays["g"], 1e-5
    direction = np.random.default_rng(1).normal(size=hidden.shape)
    ahead, behind = (
        by_definition(**(arrays | {"hidden": hidden + x * direction}), **OPTIONS["all"])
        for x in (step, -step)
    )
    gradient = by_definition(**arrays, **OPTIONS["all"])[1]["hidden"]
    assert_allclose(
        (gradient * direction).sum(), g @ (ahead[0] - behind[0]) / (2 * step), rtol=1e-8
    )

    @jax.jit
    def second(hidden: Array, kernel: Array, bias: Array, labels: Array) -> Array:
        def loss(hidden: Array) -> Array:
            options = OPTIONS["all"]
            return (
                g * linear_cross_entropy(hidden, kernel, labels, bias=bias, chunk_size=2, **options)
            ).sum()

        return jax.grad(lambda hidden: (jax.grad(loss)(hidden) * direction).sum())(hidden)

    got = second(*weights_of(arrays), jnp.array(arrays["labels"]))
    assert_allclose(
        got, (ahead[1]["hidden"] - behind[1]["hidden"]) / (2 * step), rtol=1e-7, atol=1e-9
    )


def test_options_may_be_traced_and_have_gradients() -> None:
    arrays = problem()
    hidden, kernel, labels = arrays["hidden"], arrays["kernel"], arrays["labels"]

    def loss(eps: Array, weight: Array) -> Array:
        words = jnp.asarray(labels)
        return linear_cross_entropy(
            hidden, kernel, words, label_smoothing=eps, z_loss=weight, chunk_size=4
        )

    @jax.jit
    def with_slopes(eps: Array, weight: Array) -> tuple[Array, tuple[Array, Array]]:
        return loss(eps, weight), jax.jacrev(loss, (0, 1))(eps, weight)

    zero = np.zeros(V, np.float32)
    at = {
        (eps, weight): by_definition(
            hidden, kernel, zero, labels, arrays["g"], label_smoothing=eps, z_loss=weight
        )[0]
        for eps, weight in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]
    }
    eps, weight = jnp.float32(0.25), jnp.float32(0.125)
    slope_eps, slope_weight = at[1.0, 0.0] - at[0.0, 0.0], at[0.0, 1.0] - at[0.0, 0.0]
    losses, slopes = with_slopes(eps, weight)
    assert_allclose(losses, at[0.0, 0.0] + slope_eps / 4 + slope_weight / 8, rtol=1e-5)
    assert_allclose(slopes, [slope_eps, slope_weight], rtol=1e-5, atol=1e-6)


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
    hidden, kernel, bias = weights_of(arrays)
    for label in (V, 2**32):  # the latter is 0 to JAX, which cuts it to 32 bits
        labels = np.asarray([0, 1, 2, 3, label, 5])
        with pytest.raises(
            ValueError, match=rf"labels\[4\] is {label}, but class ids must lie in \[0, 11\)"
        ):
            linear_cross_entropy(hidden, kernel, labels, bias=bias, chunk_size=4)
    got = linear_cross_entropy(hidden, kernel, labels, bias=bias, chunk_size=4, where=labels < V)
    expected = by_definition(**(arrays | {"labels": np.where(labels < V, labels, -1)}))[0]
    assert_allclose(got, expected, rtol=1e-5)


def test_narrow_labels_of_a_wider_vocabulary() -> None:
    arrays = problem(v=300)
    labels = np.asarray([5, -1, 127, 3, 0, 1], np.int8)
    expected = by_definition(**(arrays | {"labels": labels}))[0]
    got = linear_cross_entropy(
        arrays["hidden"], arrays["kernel"], jnp.asarray(labels), bias=arrays["bias"], chunk_size=64
    )
    assert_allclose(got, expected, rtol=1e-5)


def test_huge_logits() -> None:
    """The logits are +-1e4, all exact in float32: 1e4 and 9998, say."""
    hidden = np.asarray([[1e4], [1e4], [-1e4], [1e4]], np.float32)
    kernel = np.asarray([[1.0, -1.0, 0.5, 0.9998, -0.75]], np.float32)
    logits = np.asarray([10000.0, -10000.0, 5000.0, 9998.0, -7500.0])
    labels, g = np.asarray([0, 1, 4, 3]), np.ones(4, np.float32)
    bias = np.zeros(5, np.float32)
    losses, gradients = ours(
        {"hidden": hidden, "kernel": kernel, "bias": bias, "labels": labels, "g": g}, chunk_size=2
    )
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
    assert_allclose(gradients["hidden"][:, 0], dz @ logits / 1e4, rtol=1e-5, atol=1e-7)


def test_small_losses_and_gradients_keep_their_digits() -> None:
    """`ln sum exp z - z_y` and `p_y - 1` would be 0 or have one digit left."""
    gaps = np.asarray([10.0, 20.0, 40.0, 60.0], np.float32)
    kernel = np.asarray([[0.0, 1.0, 0.0]], np.float32)
    arrays = {
        "hidden": gaps[:, None],
        "kernel": kernel,
        "bias": np.zeros(3, np.float32),
        "labels": np.ones(4, int),
    }
    losses, gradients = ours(arrays | {"g": np.ones(4, np.float32)}, chunk_size=1)
    assert_allclose(losses, np.log1p(2 * np.exp(-np.float64(gaps))), rtol=4e-6)
    assert_allclose(gradients["hidden"][:, 0], -2 / (np.exp(np.float64(gaps)) + 2), rtol=4e-6)


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
    arrays = {
        "hidden": np.ones((2, 1)),
        "kernel": np.zeros((1, 3)),
        "bias": np.asarray(bias),
        "g": np.ones(2),
    }
    arrays = {k: x.astype(np.float32) for k, x in arrays.items()} | {"labels": np.zeros(2, int)}
    value, gradients = ours(arrays, chunk_size=2, where=np.array([True, False]), **options)
    assert value[1] == 0
    if "z_loss" not in options:
        assert_allclose(value[0], cross_entropy(bias, 0, **options), rtol=1e-6)
    assert not np.isnan(value[0])
    assert all(np.isfinite(g).all() for g in gradients.values())
    _, of_nothing = ours(arrays, chunk_size=2, where=np.array([False, False]), **options)
    assert not any(g.any() for g in of_nothing.values())


def test_no_gradient_of_what_is_dropped_though_the_kernel_is_nan() -> None:
    kernel = jnp.array([[np.nan, 0.0], [0.0, 0.0]])
    gradient = jax.grad(lambda k: linear_cross_entropy(jnp.ones((1, 2)), k, jnp.array([-1])).sum())(
        kernel
    )
    assert_array_equal(gradient, np.zeros((2, 2)))


def test_soft_cap_far_out_and_over_words_ruled_out() -> None:
    bias = jnp.array([0.0, -np.inf])
    loss = linear_cross_entropy(
        jnp.ones((1, 1)), jnp.zeros((1, 2)), jnp.array([0]), bias=bias, soft_cap=2.0
    )
    assert_array_equal(loss, [0])
    # Of caps; the slope of the loss in z is sigmoid(-c tanh z/c) sech^2.
    z = np.array([3.0, 6.0, 9.0])
    gradient = jax.vmap(
        jax.grad(
            lambda z: linear_cross_entropy(
                jnp.ones((1, 1)), jnp.stack([z, 0.0])[None], jnp.array([1]), soft_cap=1.0
            ).sum()
        )
    )(jnp.asarray(z, jnp.float32))
    assert_allclose(gradient, 1 / (1 + np.exp(-np.tanh(z))) / np.cosh(z) ** 2, rtol=1e-6)


def test_what_should_differ_between_devices_does() -> None:
    arrays = problem(n=8, v=16)
    mesh = Mesh(np.array(jax.devices("cpu")[:2]), ("v",))
    specs = {"same kernel": (P(), P(), P()), "other examples": (P("v"), P(None, "v"), P("v"))}
    for name, message in (
        ("same kernel", "kernel is the same"),
        ("other examples", "hidden and labels must be the same on all devices, but they differ"),
    ):
        call = jax.shard_map(
            lambda h, k, y: linear_cross_entropy(h, k, y, axis_name="v"),
            mesh=mesh,
            in_specs=specs[name],
            out_specs=P("v"),
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


def test_vmap_jit_remat_and_scan() -> None:
    arrays = problem(n=12)
    expected = by_definition(**(arrays | {"g": np.ones(12)}))
    hidden, labels = (
        jnp.asarray(arrays["hidden"].reshape(3, 4, D)),
        jnp.asarray(arrays["labels"].reshape(3, 4)),
    )
    kernel, bias = jnp.asarray(arrays["kernel"]), jnp.asarray(arrays["bias"])

    def loss(hidden: Array, kernel: Array, bias: Array, labels: Array) -> Array:
        return linear_cross_entropy(hidden, kernel, labels, bias=bias, chunk_size=4)

    def mapped(hidden: Array, kernel: Array, bias: Array) -> Array:
        return jax.vmap(loss, (0, None, None, 0))(hidden, kernel, bias, labels).sum()

    def scanned(hidden: Array, kernel: Array, bias: Array) -> Array:
        def step(total: Array, batch: tuple[Array, Array]) -> tuple[Array, None]:
            return total + jax.checkpoint(loss)(batch[0], kernel, bias, batch[1]).sum(), None

        return jax.lax.scan(step, jnp.zeros(()), (hidden, labels))[0]

    for total in (mapped, scanned):
        value, gradients = jax.jit(jax.value_and_grad(total, (0, 1, 2)))(hidden, kernel, bias)
        named = dict(
            zip(
                ("hidden", "kernel", "bias"),
                (gradients[0].reshape(12, D), *gradients[1:]),
                strict=True,
            )
        )
        assert_close((value, named), (expected[0].sum(), expected[1]), 2e-6)


def test_vmap_over_kernels() -> None:
    arrays = problem()
    kernels = np.stack([arrays["kernel"], 2 * arrays["kernel"]])
    bias = np.zeros(V, np.float32)
    labels = jnp.asarray(arrays["labels"])
    got = jax.vmap(lambda k: linear_cross_entropy(arrays["hidden"], k, labels, chunk_size=4))(
        jnp.asarray(kernels)
    )
    expected = [
        by_definition(**(arrays | {"kernel": kernel, "bias": bias}))[0] for kernel in kernels
    ]
    assert_allclose(got, expected, rtol=1e-5)


def weights_of(arrays: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    return jnp.asarray(arrays["hidden"]), jnp.asarray(arrays["kernel"]), jnp.asarray(arrays["bias"])


@pytest.mark.parametrize(
    "specs", [(P(), P(None, "v"), P("v")), (P("v"), P(), P())], ids=["words", "examples"]
)
def test_sharded_inputs(specs: tuple[P, P, P]) -> None:
    arrays = problem(n=16, v=40)
    mesh = Mesh(np.asarray(jax.devices("cpu")), ("v",))
    placed = [
        jax.device_put(x, NamedSharding(mesh, spec))
        for x, spec in zip(weights_of(arrays), specs, strict=True)
    ]

    weights = dict(zip(("hidden", "kernel", "bias"), placed, strict=True))
    assert_close(
        ours(arrays | weights, chunk_size=12, **OPTIONS["all"]),
        by_definition(**arrays, **OPTIONS["all"]),
        1e-6,
    )


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
    mesh = Mesh(np.asarray(jax.devices("cpu")).reshape(mesh_shape), ("n", "v"))
    g, labels = jnp.asarray(arrays["g"]), jnp.asarray(arrays["labels"])

    @partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P("n"), P(None, "v"), P("v"), P("n")),
        out_specs=P("n"),
        check_vma=check_vma,
    )
    def loss(hidden: Array, kernel: Array, bias: Array, labels: Array) -> Array:
        return linear_cross_entropy(
            hidden, kernel, labels, bias=bias, chunk_size=3, axis_name="v", **OPTIONS["all"]
        )

    @jax.jit
    def run(hidden: Array, kernel: Array, bias: Array) -> Any:
        losses, pullback = jax.vjp(lambda *weights: loss(*weights, labels), hidden, kernel, bias)
        return losses, dict(zip(("hidden", "kernel", "bias"), pullback(g), strict=True))

    assert_close(run(*weights_of(arrays)), by_definition(**arrays, **OPTIONS["all"]), 1e-6)


def test_gradients_inside_of_shard_map() -> None:
    """A training step: the examples are spread over one axis, the words over the other."""
    arrays = problem(n=16, v=40)
    mesh = Mesh(np.asarray(jax.devices("cpu")).reshape(2, 4), ("n", "v"))

    def step(hidden: Array, kernel: Array, bias: Array, labels: Array, g: Array) -> Any:
        def total(hidden: Array, kernel: Array, bias: Array) -> Array:
            losses = linear_cross_entropy(
                hidden, kernel, labels, bias=bias, chunk_size=4, axis_name="v"
            )
            return jax.lax.psum((g * losses).sum(), "n")

        value, gradients = jax.value_and_grad(total, (0, 1, 2))(hidden, kernel, bias)
        return value, dict(zip(("hidden", "kernel", "bias"), gradients, strict=True))

    specs = {"hidden": P("n"), "kernel": P(None, "v"), "bias": P("v")}
    run = jax.jit(
        jax.shard_map(
            step, mesh=mesh, in_specs=(*specs.values(), P("n"), P("n")), out_specs=(P(), specs)
        )
    )
    losses, gradients = by_definition(**arrays)
    got = run(*weights_of(arrays), jnp.asarray(arrays["labels"]), jnp.asarray(arrays["g"]))
    assert_close(got, ((losses * arrays["g"]).sum(), gradients), 2e-6)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_logits_are_never_held(dtype: Any) -> None:
    n, d, v = 512, 16, 16384

    def naive(hidden: Array, kernel: Array, labels: Array) -> Array:
        z = (hidden @ kernel).astype(jnp.float32)
        return -jnp.take_along_axis(jax.nn.log_softmax(z), labels[:, None], 1).mean()

    def in_blocks(hidden: Array, kernel: Array, labels: Array) -> Array:
        return linear_cross_entropy(hidden, kernel, labels, chunk_size=512).mean()

    def temporary(loss: Any) -> int:
        shapes = (
            jax.ShapeDtypeStruct((n, d), dtype),
            jax.ShapeDtypeStruct((d, v), dtype),
            jax.ShapeDtypeStruct((n,), jnp.int32),
        )
        memory: Any = (
            jax.jit(jax.value_and_grad(loss, (0, 1))).lower(*shapes).compile().memory_analysis()
        )
        return memory.temp_size_in_bytes

    assert dtype == jnp.bfloat16 or temporary(naive) >= 4 * n * v
    assert temporary(in_blocks) < 4 * n * v / 10


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
    arguments = {
        "hidden": np.zeros((N, D)),
        "kernel": np.zeros((D, V)),
        "labels": np.zeros(N, int),
    } | change
    with pytest.raises(error, match=message):
        linear_cross_entropy(
            arguments.pop("hidden"), arguments.pop("kernel"), arguments.pop("labels"), **arguments
        )
