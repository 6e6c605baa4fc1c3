"""Training on macro-F1 itself, on cross-entropy, or on both: macro-F1 on held-out digits, twenty
splits, differences in pairs.

What is compared is how well it learns, not how fast, so that there is no size to grow with, no
picture and no physical limit.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import stats
from sklearn.datasets import load_digits

import jaxmetrics as jm
from bench.harness import publish

SEEDS = 20
STEPS = 400
HIDDEN = 16
macro_f1 = jm.macro(jm.f1)

Loss = Callable[[jax.Array, jax.Array], jax.Array]
Parameters = dict[str, jax.Array]


def problem() -> tuple[jax.Array, jax.Array]:
    """Pixels of 1797 digits, pooled to 4 x 4 so that some mistakes remain; is it an 8 (10 %), a 9
    (10 %) or another?
    """
    pixels, digits = load_digits(return_X_y=True)
    pooled = pixels.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16) / 16
    return jnp.asarray(pooled, jnp.float32), jnp.asarray(
        np.where(digits == 8, 1, np.where(digits == 9, 2, 0)), jnp.int32
    )


def logits(parameters: Parameters, x: jax.Array) -> jax.Array:
    return (
        jnp.tanh(x @ parameters["in"] + parameters["shift"]) @ parameters["out"]
        + parameters["bias"]
    )


def held_out_macro_f1(
    losses: tuple[Loss, Loss], key: jax.Array, x: jax.Array, y: jax.Array
) -> jax.Array:
    """Half of the examples train a small network in full batches, the other half judges it. The
    second loss is used in the second half of the steps.
    """
    of_split, of_in, of_out = jax.random.split(key, 3)
    order = jax.random.permutation(of_split, len(y))
    train, test = jnp.split(order[: len(y) // 2 * 2], 2)
    parameters = {
        "in": jax.random.normal(of_in, (16, HIDDEN)),
        "shift": jnp.zeros(HIDDEN),
        "out": jax.random.normal(of_out, (HIDDEN, 3)) / HIDDEN**0.5,
        "bias": jnp.zeros(3),
    }
    optimizer = optax.adam(0.02)

    def step(
        state: tuple[Parameters, optax.OptState], is_late: jax.Array
    ) -> tuple[tuple[Parameters, optax.OptState], None]:
        parameters, moments = state

        def of_both(p: Parameters) -> jax.Array:
            early, late = (loss(logits(p, x[train]), y[train]) for loss in losses)
            return jnp.where(is_late, late, early)

        slopes = jax.grad(of_both)(parameters)
        updates, moments = optimizer.update(slopes, moments)
        return (optax.apply_updates(parameters, updates), moments), None

    is_late = jnp.arange(STEPS) >= STEPS // 2
    (parameters, _), _ = jax.lax.scan(step, (parameters, optimizer.init(parameters)), is_late)
    prediction = logits(parameters, x[test]).argmax(-1)
    return macro_f1(jm.confusion_matrix(y[test], prediction, num_classes=3))


def interval(differences: np.ndarray) -> str:
    reach = stats.t.ppf(0.975, SEEDS - 1) * differences.std(ddof=1) / SEEDS**0.5
    mean = differences.mean()
    return f"{mean:+.4f} ({mean - reach:+.4f} to {mean + reach:+.4f})"


def main() -> None:
    x, y = problem()
    frequency = np.bincount(y) / len(y)
    metric_loss = jm.metric_loss(macro_f1)

    def cross_entropy(z: jax.Array, y: jax.Array) -> jax.Array:
        return jm.cross_entropy(z, y).mean()

    def weighted(z: jax.Array, y: jax.Array) -> jax.Array:
        return jm.cross_entropy(z, y, class_weights=1 / (3 * frequency)).mean()

    def both(z: jax.Array, y: jax.Array) -> jax.Array:
        return cross_entropy(z, y) + metric_loss(z, y)

    losses: dict[str, tuple[Loss, Loss]] = {
        "cross-entropy": (cross_entropy, cross_entropy),
        "cross-entropy, classes weighted": (weighted, weighted),
        "cross-entropy, then metric_loss(macro(f1))": (cross_entropy, metric_loss),
        "cross-entropy + metric_loss(macro(f1))": (both, both),
        "metric_loss(macro(f1))": (metric_loss, metric_loss),
    }
    keys = jax.random.split(jax.random.key(0), SEEDS)
    scores = {
        name: np.asarray(
            jax.jit(jax.vmap(lambda key, loss=loss: held_out_macro_f1(loss, key, x, y)))(keys),
            float,
        )
        for name, loss in losses.items()
    }
    ours = scores["metric_loss(macro(f1))"]
    rows = [
        [name, f"{score.mean():.4f}", "" if score is ours else interval(ours - score)]
        for name, score in scores.items()
    ]
    publish(
        "metric_loss",
        {name: score.tolist() for name, score in scores.items()},
        ["trained on", "macro-F1 on the other half", "metric_loss minus this, 95 %"],
        rows,
        "The classifiers distinguish three classes of digits: 8, 9 and all other digits. Images"
        " have 4 x 4 pixels, and the model has one hidden layer. Each training step uses all"
        f" training examples. The digits were split {SEEDS} times at random into training examples"
        " and held-out examples.",
        "Scores and differences are means over these splits. The interval of a difference is a"
        " paired t interval.",
    )


if __name__ == "__main__":
    main()
