"""ROC AUC of a million and ten million scores, histograms of them, and bootstrap replicates, beside the peers."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torcheval.metrics.functional import binary_auroc
from torchmetrics.functional.classification import binary_auroc as torchmetrics_auroc

import jaxmetrics as jm
from bench.harness import Contender, measure, milliseconds, publish

REPLICATES = 1000
FEW = 5  # replicates of the loop; its time is multiplied
KEY = jax.random.key(0)


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.3).astype(np.int32)
    return y, (rng.normal(size=n) + y).astype(np.float32)


def exact_areas(n: int) -> dict[str, dict[str, float]]:
    y, score = problem(n)
    on_device, tensors = (jnp.asarray(y), jnp.asarray(score)), (torch.from_numpy(score), torch.from_numpy(y))
    jitted = jax.jit(jm.roc_auc)
    contenders: dict[str, Contender] = {
        "jaxmetrics": lambda: jm.roc_auc(*on_device),
        "jaxmetrics within jit": lambda: jitted(*on_device),
        "scikit-learn": lambda: roc_auc_score(y, score),
        "torcheval": lambda: binary_auroc(*tensors),
        "torchmetrics": lambda: torchmetrics_auroc(*tensors),
    }
    exact = roc_auc_score(y, score)
    assert abs(jm.roc_auc(*on_device) - exact) < 1e-6 * exact
    return measure(contenders, repetitions=5)


def histograms(n: int) -> dict[str, dict[str, float]]:
    y, logit = problem(n)
    on_device = jnp.asarray(y), jnp.asarray(logit)
    cells = y.astype(np.int64) * 4096 + np.random.default_rng(1).integers(0, 4096, n)
    return measure(
        {
            "jaxmetrics": lambda: jm.score_histogram(*on_device, scale="logit"),
            "NumPy bincount of cells already known": lambda: np.bincount(cells, minlength=8192),
        }
    )


def replicates(n: int) -> dict[str, dict[str, float]]:
    y, logit = problem(n)
    on_device = jnp.asarray(y), jnp.asarray(logit)
    rng = np.random.default_rng(2)

    def ours() -> Any:
        histogram = jm.score_histogram(*on_device, scale="logit")
        return jm.bootstrap_histogram(KEY, jm.roc_auc_bounds, histogram, num_samples=REPLICATES)

    def loop() -> Any:
        rows = [rng.integers(0, n, n) for _ in range(FEW)]
        return np.quantile([roc_auc_score(y[row], logit[row]) for row in rows], [0.025, 0.975])

    results = measure({"jaxmetrics": ours, "scikit-learn": loop}, repetitions=5)
    for key in ("median", "lower_quartile", "upper_quartile"):
        results["scikit-learn"][key] *= REPLICATES / FEW
    return results


def main() -> None:
    warnings.simplefilter("ignore")
    results = {
        "exact area, n = 1e6": exact_areas(10**6),
        "exact area, n = 1e7": exact_areas(10**7),
        "histogram, n = 1e6": histograms(10**6),
        "1000 bootstrap replicates, n = 1e5": replicates(10**5),
    }
    names = dict.fromkeys(name for result in results.values() for name in result)
    rows = [[name, *(milliseconds(r[name]) if name in r else "" for r in results.values())] for name in names]
    publish(
        "ranking",
        results,
        ["ROC AUC", *results],
        rows,
        "Histograms have 4096 bins."
        f" Replicates are of the histogram, those of scikit-learn of the examples ({FEW}, multiplied).",
    )


if __name__ == "__main__":
    main()
