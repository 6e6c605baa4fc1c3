"""Counting 1e7 labels, and all metrics of 10,000 matrices in one call, beside NumPy, scikit-learn and torchmetrics."""

import jax
import jax.numpy as jnp
import numpy as np
import sklearn.metrics as sk
import torch
from torchmetrics.functional.classification import multiclass_confusion_matrix

import jaxmetrics as jm
from bench.harness import measure, milliseconds, publish

N = 10_000_000
METRICS = {
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


def counting(num_classes: int) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, num_classes, N)
    y_pred = np.where(rng.random(N) < 0.8, y_true, rng.integers(0, num_classes, N))
    true, pred = jnp.asarray(y_true), jnp.asarray(y_pred)
    y_weight = rng.random(N, dtype=np.float32)
    weight = jnp.asarray(y_weight)
    torch_true, torch_pred = torch.from_numpy(y_true), torch.from_numpy(y_pred)
    read_once = jax.jit(lambda t, p: t.sum() + p.sum())
    fused_bincount = jax.jit(lambda t, p: jnp.bincount(t * num_classes + p, length=num_classes**2))
    contenders = {
        "reading the input once": lambda: read_once(true, pred),
        "jaxmetrics": lambda: jm.confusion_matrix(true, pred, num_classes=num_classes),
        "jaxmetrics, NumPy int64 in": lambda: jm.confusion_matrix(y_true, y_pred, num_classes=num_classes),
        "jnp.bincount, jitted, unchecked": lambda: fused_bincount(true, pred),
        "np.bincount, unchecked": lambda: np.bincount(y_true * num_classes + y_pred, minlength=num_classes**2),
        "jaxmetrics, weighted": lambda: jm.confusion_matrix(true, pred, num_classes=num_classes, sample_weight=weight),
        "np.bincount, weighted": lambda: np.bincount(y_true * num_classes + y_pred, y_weight, minlength=num_classes**2),
        "torchmetrics, unvalidated": lambda: multiclass_confusion_matrix(
            torch_pred, torch_true, num_classes, validate_args=False
        ),
        "torchmetrics": lambda: multiclass_confusion_matrix(torch_pred, torch_true, num_classes),
        "scikit-learn": lambda: sk.confusion_matrix(y_true, y_pred),
    }
    expected = contenders["np.bincount, unchecked"]().reshape(num_classes, num_classes)
    for name, run in contenders.items():
        if "weighted" in name:
            in_float64 = contenders["np.bincount, weighted"]().reshape(num_classes, num_classes)
            np.testing.assert_allclose(np.reshape(run(), in_float64.shape), in_float64, rtol=1e-5)
        elif "reading" not in name:
            np.testing.assert_array_equal(np.reshape(run(), expected.shape), expected)
    return measure(contenders)


def all_metrics() -> dict[str, dict[str, float]]:
    counts = np.random.default_rng(0).integers(0, 50, (10_000, 10, 10)) + 200 * np.eye(10, dtype=int)
    on_device = jnp.asarray(counts, jnp.float32)
    evaluate = jax.jit(lambda c: {name: metric(c) for name, metric in METRICS.items()})
    one_pass = jax.jit(lambda c: c.sum((-2, -1)))
    labels = np.indices((10, 10)).reshape(2, -1)

    def sklearn_loop_over_ten() -> None:
        """scikit-learn, from the cells as weighted examples; ten matrices stand for ten thousand."""
        for c in counts[:10]:
            weight = c.ravel()
            sk.accuracy_score(*labels, sample_weight=weight)
            sk.balanced_accuracy_score(*labels, sample_weight=weight)
            sk.matthews_corrcoef(*labels, sample_weight=weight)
            sk.cohen_kappa_score(*labels, sample_weight=weight)
            sk.precision_recall_fscore_support(*labels, sample_weight=weight)
            sk.jaccard_score(*labels, average=None, sample_weight=weight)
            for average in ("macro", "micro", "weighted"):
                sk.precision_recall_fscore_support(*labels, average=average, sample_weight=weight)

    results = measure(
        {
            "reading the input once": lambda: one_pass(on_device),
            "jaxmetrics": lambda: evaluate(on_device),
            "scikit-learn": sklearn_loop_over_ten,
        }
    )
    for key in ("median", "lower_quartile", "upper_quartile"):
        results["scikit-learn"][key] *= 1000
    return results


def main() -> None:
    sizes = (2, 10, 100, 1000)
    results = {f"K = {k}": counting(k) for k in sizes} | {"14 metrics of 10,000 matrices, K = 10": all_metrics()}
    contenders = list(results["K = 2"])
    rows = [
        [name, *(milliseconds(result[name]) if name in result else "" for result in results.values())] for name in contenders
    ]
    publish(
        "confusion_matrix",
        results,
        ["1e7 labels, confusion matrix", *results],
        rows,
        "int32 labels on the device, int64 for NumPy, scikit-learn and torch."
        " The scikit-learn loop over 10,000 matrices is ten of them times 1000.",
    )


if __name__ == "__main__":
    main()
