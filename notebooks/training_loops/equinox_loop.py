"""Train and evaluate with Equinox. The model is a tree of arrays and functions, and the evaluator's
state is a separate tree of arrays.
"""

import equinox as eqx
import jax
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


@eqx.filter_jit
def train_step(model, opt_state, batch):
    """Return the model and the state of the optimizer after one step of training."""

    def loss(model):
        logits = jax.vmap(model)(batch.images)
        return jm.weighted_mean(jm.cross_entropy(logits, batch.labels), where=batch.where)

    updates, opt_state = optimizer.update(eqx.filter_grad(loss)(model), opt_state)
    return eqx.apply_updates(model, updates), opt_state


@eqx.filter_jit(
    donate="all-except-first"
)  # what is still needed afterwards goes first, in one argument
def eval_step(model_and_batch, state):
    """Return the evaluator's state after adding a batch."""
    model, batch = model_and_batch
    logits = jax.vmap(model)(batch.images)
    loss = jm.cross_entropy(logits, batch.labels)
    return evaluator.update(state, y_true=batch.labels, logits=logits, loss=loss, where=batch.where)


def train(num_epochs=3, seed=0) -> dict[str, float]:
    """Train a model, and return its results on the test set after the last epoch."""
    train_set, test_set = load(seed)
    test_batches, rng = in_batches(test_set, 128), np.random.default_rng(seed)
    model = eqx.nn.MLP(in_size=64, out_size=10, width_size=64, depth=1, key=jax.random.key(seed))
    opt_state = optimizer.init(eqx.filter(model, eqx.is_array))
    for _ in range(num_epochs):
        for batch in map(Batch, *in_batches(shuffled(train_set, rng), 32)):
            model, opt_state = train_step(model, opt_state, batch)
        state = evaluator.init()
        for batch in map(Batch, *test_batches):
            state = eval_step((model, batch), state)
        results = jm.to_python(evaluator.compute(state))
    return results


if __name__ == "__main__":
    print(train())
