"""A loop of plain JAX and Optax: the test set is one `lax.scan`, and the epochs are computed together at the end."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from digits import Batch, in_batches, load, shuffled

import jaxmetrics as jm

evaluator = jm.evaluator(
    jm.count_metrics({"accuracy": jm.accuracy, "macro_f1": jm.macro(jm.f1)}, num_classes=10, interval=jm.delta_method),
    jm.mean_of("loss"),
)
optimizer = optax.adam(3e-3)


def init_params(key):
    """Weights and biases of a network with one hidden layer."""
    shapes = (64, 64), (64, 10)
    keys = jax.random.split(key, len(shapes))
    return [(jax.nn.initializers.he_normal()(k, shape), jnp.zeros(shape[1])) for k, shape in zip(keys, shapes, strict=True)]


def predict(params, images):
    """Logits `(n, 10)`."""
    (hidden, hidden_bias), (output, output_bias) = params
    return jax.nn.relu(images @ hidden + hidden_bias) @ output + output_bias


@partial(jax.jit, donate_argnames=("params", "opt_state"))
def train_step(params, opt_state, batch):
    """Parameters and state of the optimizer, a step later."""

    def loss(params):
        return jm.weighted_mean(jm.cross_entropy(predict(params, batch.images), batch.labels), where=batch.where)

    updates, opt_state = optimizer.update(jax.grad(loss)(params), opt_state)
    return optax.apply_updates(params, updates), opt_state


@jax.jit
def evaluate(params, batches):
    """The evaluator's state after all batches, and which examples were classified correctly."""

    def step(state, batch):
        logits = predict(params, batch.images)
        loss = jm.cross_entropy(logits, batch.labels)
        state = evaluator.update(state, y_true=batch.labels, logits=logits, loss=loss, where=batch.where)
        return state, logits.argmax(-1) == batch.labels

    return jax.lax.scan(step, evaluator.init(), batches)


def lead(correct, other, where):
    """By how much more often `correct` holds than `other`, from as many batches as it takes to be sure which is better."""
    sequence = jm.confidence_sequence(low=-1)  # of differences, each -1, 0 or 1
    state = sequence.init()
    differences = correct.astype(jnp.float32) - other.astype(jnp.float32)
    for values, mask in zip(differences, where, strict=True):
        state = sequence.update(state, values, where=mask)
        estimate = sequence.compute(state)
        if estimate.low > 0 or estimate.high < 0:  # a look after every batch is fair: the bounds hold at all times at once
            break
    return estimate


def train(num_epochs=3, seed=0) -> dict[str, float]:
    """Results on the test set after the last epoch, its lead over the first, and whether that is certain."""
    train_set, test_set = load(seed)
    test_batches, rng = in_batches(test_set, 128), np.random.default_rng(seed)
    params = init_params(jax.random.key(seed))
    opt_state = optimizer.init(params)
    states, correct = [], []
    for _ in range(num_epochs):
        for batch in map(Batch, *in_batches(shuffled(train_set, rng), 32)):
            params, opt_state = train_step(params, opt_state, batch)
        state, hits = evaluate(params, test_batches)
        states.append(state)
        correct.append(hits)
    history = jax.tree.map(lambda *epochs: jnp.stack(epochs), *states)
    by_epoch = jm.to_python(jax.vmap(evaluator.compute)(history))
    last = {name: values[-1] for name, values in by_epoch.items()}
    over_first = lead(correct[-1], correct[0], test_batches.where)
    return last | jm.to_python({"lead": over_first, "last_is_better": over_first.low > 0})


if __name__ == "__main__":
    print(train())
