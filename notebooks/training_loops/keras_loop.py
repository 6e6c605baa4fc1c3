"""Train and evaluate with Keras on JAX. `model.fit` trains the model, and a callback evaluates it
after each epoch.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"  # read when Keras is imported

from functools import partial

import jax
import jax.numpy as jnp
import keras
from digits import Batch, in_batches, load

import jaxmetrics as jm

evaluator = jm.evaluator(
    jm.count_metrics(
        {"accuracy": jm.accuracy, "macro_f1": jm.macro(jm.f1)},
        num_classes=10,
        method=jm.Delta(),
    ),
    jm.mean_of("loss"),
)


def loss(labels, logits):
    """Return the mean cross-entropy of a batch. Keras has converted the labels to floats."""
    return jm.weighted_mean(jm.cross_entropy(logits, labels.astype(jnp.int32)))


@partial(jax.jit, static_argnames="model", donate_argnames="state")
def eval_step(model, variables, state, batch):
    """Return the evaluator's state after adding a batch."""
    logits, _ = model.stateless_call(*variables, batch.images, training=False)
    losses = jm.cross_entropy(logits, batch.labels)
    return evaluator.update(
        state, y_true=batch.labels, logits=logits, loss=losses, where=batch.where
    )


class Evaluation(keras.callbacks.Callback):
    """Evaluate the model on a test set after each epoch. The results are stored in `results`, and
    in the logs of Keras under names such as `val_accuracy`.
    """

    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def on_epoch_end(self, epoch, logs=None):
        """Evaluate the current model."""
        both = self.model.trainable_variables, self.model.non_trainable_variables
        variables = [[v.value for v in vs] for vs in both]
        state = evaluator.init()
        for batch in map(Batch, *self.batches):
            state = eval_step(self.model, variables, state, batch)
        self.results = jm.to_python(evaluator.compute(state))
        logs.update(
            {f"val_{name}": x for name, x in self.results.items()}
        )  # for EarlyStopping and its kin


def train(num_epochs=3, seed=0) -> dict[str, float]:
    """Train a model, and return its results on the test set after the last epoch."""
    train_set, test_set = load(seed)
    keras.utils.set_random_seed(seed)
    layers = [
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dropout(0.1),
        keras.layers.Dense(10),
    ]
    model = keras.Sequential([keras.Input([64]), *layers])
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=loss)
    evaluation = Evaluation(in_batches(test_set, 128))
    model.fit(*train_set, batch_size=32, epochs=num_epochs, callbacks=[evaluation], verbose=0)
    return evaluation.results


if __name__ == "__main__":
    print(train())
