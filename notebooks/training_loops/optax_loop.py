"""Train and evaluate with plain JAX and Optax. One `lax.scan` evaluates all batches of the test
set, and the results of all epochs are computed together at the end.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from digits import Batch, in_batches, load, shuffled

import jaxmetrics as jm

evaluator = jm.evaluator(
    jm.count_metrics(
        {"accuracy": jm.accuracy, "macro_f1": jm.macro(jm.f1)},
        num_classes=10,
        method=jm.Delta(),
    ),
    jm.mean_of("loss"),
)
optimizer = optax.adam(3e-3)


def predict(params, images):
    """Return the logits `(n, 10)` of a linear classifier."""
    kernel, bias = params
    return images @ kernel + bias


@partial(jax.jit, donate_argnames=("params", "opt_state"))
def train_step(params, opt_state, batch):
    """Return the parameters and the state of the optimizer after one step of training."""

    def loss(params):
        return jm.weighted_mean(
            jm.cross_entropy(predict(params, batch.images), batch.labels), where=batch.where
        )

    updates, opt_state = optimizer.update(jax.grad(loss)(params), opt_state)
    return optax.apply_updates(params, updates), opt_state


@jax.jit
def evaluate(params, batches):
    """Return the evaluator's state after all batches, and a mask of correct predictions."""

    def step(state, batch):
        logits = predict(params, batch.images)
        loss = jm.cross_entropy(logits, batch.labels)
        state = evaluator.update(
            state, y_true=batch.labels, logits=logits, loss=loss, where=batch.where
        )
        return state, logits.argmax(-1) == batch.labels

    return jax.lax.scan(step, evaluator.init(), batches)


def lead(correct, other, where):
    """Estimate the mean of `correct` minus the mean of `other`. Stop reading batches as soon as the
    interval of the difference does not contain 0.
    """
    sequence = jm.confidence_sequence(low=-1)  # of differences, each -1, 0 or 1
    state = sequence.init()
    differences = correct.astype(jnp.float32) - other.astype(jnp.float32)
    for values, mask in zip(differences, where, strict=True):
        state = sequence.update(state, values, where=mask)
        estimate = sequence.compute(state)
        if (
            estimate.low > 0 or estimate.high < 0
        ):  # a look after every batch is fair: the bounds hold at all times at once
            break
    return estimate


def train(num_epochs=3, seed=0) -> dict[str, float]:
    """Train a model, and return its results on the test set after the last epoch, the difference of
    accuracy between the last epoch and the first, and whether the last is certainly better.
    """
    train_set, test_set = load(seed)
    test_batches, rng = in_batches(test_set, 128), np.random.default_rng(seed)
    params = jnp.zeros((64, 10)), jnp.zeros(10)
    opt_state, history = optimizer.init(params), []
    for _ in range(num_epochs):
        for batch in map(Batch, *in_batches(shuffled(train_set, rng), 32)):
            params, opt_state = train_step(params, opt_state, batch)
        history.append(evaluate(params, test_batches))
    states, correct = jax.tree.map(lambda *epochs: jnp.stack(epochs), *history)
    by_epoch = jm.to_python(jax.vmap(evaluator.compute)(states))
    over_first = lead(correct[-1], correct[0], test_batches.where)
    last = {name: values[-1] for name, values in by_epoch.items()}
    return last | jm.to_python({"lead": over_first, "last_is_better": over_first.low > 0})


if __name__ == "__main__":
    print(train())
