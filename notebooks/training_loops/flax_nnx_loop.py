"""Train and evaluate with Flax NNX. The evaluator's state is an argument of a jitted function and
is returned by it.
"""

import numpy as np
import optax
from digits import Batch, in_batches, load, shuffled
from flax import nnx

import jaxmetrics as jm

evaluator = jm.evaluator(
    jm.count_metrics(
        {"accuracy": jm.accuracy, "macro_f1": jm.macro(jm.f1)},
        num_classes=10,
        method=jm.Delta(),
    ),
    jm.mean_of("loss"),
)


class Classifier(nnx.Module):
    """A network with one hidden layer."""

    def __init__(self, rngs):
        self.hidden = nnx.Linear(64, 64, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.output = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, images):
        """Return logits `(n, 10)`."""
        return self.output(self.dropout(nnx.relu(self.hidden(images))))


@nnx.jit
def train_step(model, optimizer, batch):
    """Change the model by one step of the optimizer."""

    def loss(model):
        return jm.weighted_mean(
            jm.cross_entropy(model(batch.images), batch.labels), where=batch.where
        )

    optimizer.update(model, nnx.grad(loss)(model))


@nnx.jit(donate_argnames="state")
def eval_step(model, state, batch):
    """Return the evaluator's state after adding a batch."""
    logits = model(batch.images)
    loss = jm.cross_entropy(logits, batch.labels)
    return evaluator.update(state, y_true=batch.labels, logits=logits, loss=loss, where=batch.where)


def train(num_epochs=3, seed=0) -> dict[str, float]:
    """Train a model, and return its results on the test set after the last epoch."""
    train_set, test_set = load(seed)
    test_batches, rng = in_batches(test_set, 128), np.random.default_rng(seed)
    model = Classifier(nnx.Rngs(seed))
    optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)
    for _ in range(num_epochs):
        model.train()
        for batch in map(Batch, *in_batches(shuffled(train_set, rng), 32)):
            train_step(model, optimizer, batch)
        model.eval()
        state = evaluator.init()
        for batch in map(Batch, *test_batches):
            state = eval_step(model, state, batch)
        results = jm.to_python(evaluator.compute(state))
    return results


if __name__ == "__main__":
    print(train())
