"""Counting up to 1e7 labels, and all metrics of 10,000 matrices in one call, beside NumPy,
scikit-learn and torchmetrics.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sklearn.metrics as sk
import torch
from torchmetrics.functional.classification import multiclass_confusion_matrix

import jaxmetrics as jm
from bench.harness import LIMIT, Results, bandwidth_in_words, limit, measure, publish_times

SIZES = (10**4, 10**5, 10**6, 10**7)
CLASSES = (2, 10, 100, 1000)
MATRICES = (10, 100, 1000, 10_000)
FEW = 10  # matrices of the scikit-learn loop at most; its time is multiplied
METRICS: dict[str, Any] = {
    "accuracy": jm.accuracy,
    "balanced_accuracy": jm.balanced_accuracy,
    "matthews_corrcoef": jm.matthews_corrcoef,
    "cohen_kappa": jm.cohen_kappa,
    "precision": jm.precision,
    "recall": jm.recall,
    "specificity": jm.specificity,
    "f1": jm.f1,
    "jaccard": jm.jaccard,
    "macro_precision": jm.macro(jm.precision),
    "macro_recall": jm.macro(jm.recall),
    "macro_f1": jm.macro(jm.f1),
    "micro_f1": jm.micro(jm.f1),
    "weighted_f1": jm.weighted(jm.f1),
}


def counting(n: int, num_classes: int) -> Results:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, num_classes, n)
    y_pred = np.where(rng.random(n) < 0.8, y_true, rng.integers(0, num_classes, n))
    true, pred = jnp.asarray(y_true, jnp.int32), jnp.asarray(y_pred, jnp.int32)
    y_weight = rng.random(n, dtype=np.float32)
    weight = jnp.asarray(y_weight)
    torch_true, torch_pred = torch.from_numpy(y_true), torch.from_numpy(y_pred)
    fused_bincount = jax.jit(lambda t, p: jnp.bincount(t * num_classes + p, length=num_classes**2))
    contenders: dict[str, Any] = {
        "jaxmetrics": lambda: jm.confusion_matrix(true, pred, num_classes=num_classes),
        "jaxmetrics, host": lambda: jm.confusion_matrix(y_true, y_pred, num_classes=num_classes),
        "jnp.bincount, jitted, unchecked": lambda: fused_bincount(true, pred),
        "np.bincount, unchecked": lambda: np.bincount(
            y_true * num_classes + y_pred, minlength=num_classes**2
        ),
        "jaxmetrics, weighted": lambda: jm.confusion_matrix(
            true, pred, num_classes=num_classes, sample_weight=weight
        ),
        "np.bincount, weighted": lambda: np.bincount(
            y_true * num_classes + y_pred, y_weight, minlength=num_classes**2
        ),
        "torchmetrics, unvalidated": lambda: multiclass_confusion_matrix(
            torch_pred, torch_true, num_classes, validate_args=False
        ),
        "torchmetrics": lambda: multiclass_confusion_matrix(torch_pred, torch_true, num_classes),
        "scikit-learn": lambda: sk.confusion_matrix(y_true, y_pred),
    }

    def check(matrices: dict[str, Any]) -> None:
        matrices = {name: np.asarray(matrix).ravel() for name, matrix in matrices.items()}
        for name, matrix in matrices.items():
            if "weighted" in name:
                np.testing.assert_allclose(matrix, matrices["np.bincount, weighted"], rtol=1e-5)
            else:
                np.testing.assert_array_equal(matrix, matrices["np.bincount, unchecked"])

    nbytes = true.nbytes + pred.nbytes + 4 * num_classes**2
    return measure(contenders, check=check) | {LIMIT: limit(nbytes=nbytes)}


def all_metrics(size: int) -> Results:
    counts = np.random.default_rng(0).integers(0, 50, (size, 10, 10)) + 200 * np.eye(10, dtype=int)
    on_device = jnp.asarray(counts, jnp.float32)

    def evaluate(c: Any) -> Any:
        return {name: metric(c) for name, metric in METRICS.items()}

    jitted = jax.jit(evaluate)
    labels = np.indices((10, 10)).reshape(2, -1)

    def sklearn_loop() -> float:
        """From the cells as weighted examples; returns the last macro F1 of the last."""
        for c in counts[:FEW]:
            weight = c.ravel()
            sk.accuracy_score(*labels, sample_weight=weight)
            sk.balanced_accuracy_score(*labels, sample_weight=weight)
            sk.matthews_corrcoef(*labels, sample_weight=weight)
            sk.cohen_kappa_score(*labels, sample_weight=weight)
            sk.precision_recall_fscore_support(*labels, sample_weight=weight)
            sk.jaccard_score(*labels, average=None, sample_weight=weight)
            for average in ("micro", "weighted", "macro"):
                f1 = sk.precision_recall_fscore_support(
                    *labels, average=average, sample_weight=weight
                )[2]
        return f1

    def check(values: dict[str, Any]) -> None:
        for ours in ("jaxmetrics", "jaxmetrics, host"):
            macro_f1 = values[ours]["macro_f1"][FEW - 1]
            np.testing.assert_allclose(macro_f1, values["scikit-learn"], rtol=1e-5)

    results = measure(
        {
            "jaxmetrics": lambda: jitted(on_device),
            "jaxmetrics, host": lambda: evaluate(counts),
            "scikit-learn": sklearn_loop,
        },
        check=check,
        factors={"scikit-learn": size / FEW},
    )
    return results | {LIMIT: limit(nbytes=on_device.nbytes)}


def main() -> None:
    of_labels = {n: counting(n, 10) for n in SIZES}
    of_classes = {k: of_labels[SIZES[-1]] if k == 10 else counting(SIZES[-1], k) for k in CLASSES}
    of_matrices = {size: all_metrics(size) for size in MATRICES}
    publish_times(
        "confusion_matrix",
        "confusion matrix",
        {
            "labels, 10 classes": of_labels,
            "classes, 1e7 labels": of_classes,
            "matrices, 10 classes, 14 metrics": of_matrices,
        },
        {
            "1e4 labels, K = 10": of_labels[10**4],
            "1e6, K = 10": of_labels[10**6],
            "1e7, K = 10": of_classes[10],
            "1e7, K = 1000": of_classes[1000],
            "14 metrics of 10,000 matrices, K = 10": of_matrices[10_000],
        },
        "Labels are int32 arrays in JAX, and int64 arrays in NumPy, scikit-learn and torch."
        f" scikit-learn computes the metrics of one matrix at a time. It was run for {FEW}"
        " matrices, and its time was extrapolated to all matrices. The row `limit` is the time for"
        f" reading the int32 labels or the matrices once, at {bandwidth_in_words()}.",
    )


if __name__ == "__main__":
    main()
