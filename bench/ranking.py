"""ROC AUC of up to ten million scores, histograms of them, and bootstrap replicates, beside the
peers.
"""

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
from bench.harness import (
    LIMIT,
    Contender,
    Results,
    bandwidth_in_words,
    limit,
    measure,
    publish_times,
)

SIZES = (10**4, 10**5, 10**6, 10**7)
BINS = 4096
REPLICATES = 1000
FEW = 5  # replicates of the loop; its time is multiplied
KEY = jax.random.key(0)


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.3).astype(np.int32)
    return y, (rng.normal(size=n) + y).astype(np.float32)


def exact_areas(n: int) -> Results:
    y, score = problem(n)
    on_device, tensors = (
        (jnp.asarray(y), jnp.asarray(score)),
        (torch.from_numpy(score), torch.from_numpy(y)),
    )
    jitted = jax.jit(jm.roc_auc)
    contenders: dict[str, Contender] = {
        "jaxmetrics": lambda: jm.roc_auc(*on_device),
        "jaxmetrics within jit": lambda: jitted(*on_device),
        "jaxmetrics, host": lambda: jm.roc_auc(y, score),
        "scikit-learn": lambda: roc_auc_score(y, score),
        "torcheval": lambda: binary_auroc(*tensors),
        "torchmetrics": lambda: torchmetrics_auroc(*tensors),
    }

    def check(areas: dict[str, Any]) -> None:
        """The peers add up in float32; ours are held to more."""
        exact = areas["scikit-learn"]
        for name, area in areas.items():
            assert abs(float(area) - exact) < (1e-6 if "jaxmetrics" in name else 1e-3) * exact, (
                name,
                area,
                exact,
            )

    return measure(contenders, check=check) | {
        LIMIT: limit(nbytes=sum(x.nbytes for x in on_device))
    }


def histograms(n: int) -> Results:
    y, logit = problem(n)
    on_device = jnp.asarray(y), jnp.asarray(logit)
    cells = y.astype(np.int64) * BINS + np.random.default_rng(1).integers(0, BINS, n)
    results = measure(
        {
            "jaxmetrics": lambda: jm.score_histogram(*on_device, scale="logit", num_bins=BINS),
            "jaxmetrics, host": lambda: jm.score_histogram(y, logit, scale="logit", num_bins=BINS),
            "NumPy bincount of cells already known": lambda: np.bincount(cells, minlength=2 * BINS),
        }
    )
    return results | {LIMIT: limit(nbytes=sum(x.nbytes for x in on_device))}


def replicates(n: int) -> Results:
    y, logit = problem(n)
    on_device = jnp.asarray(y), jnp.asarray(logit)
    rng = np.random.default_rng(2)

    def ours() -> Any:
        histogram = jm.score_histogram(*on_device, scale="logit", num_bins=BINS)
        return jm.interval(jm.roc_auc, histogram, method=jm.Bootstrap(KEY, num_samples=REPLICATES))

    def loop() -> Any:
        rows = [rng.integers(0, n, n) for _ in range(FEW)]
        return np.quantile([roc_auc_score(y[row], logit[row]) for row in rows], [0.025, 0.975])

    results = measure(
        {"jaxmetrics": ours, "scikit-learn": loop}, factors={"scikit-learn": REPLICATES / FEW}
    )
    nbytes = sum(x.nbytes for x in on_device) + REPLICATES * 2 * BINS * 4
    return results | {LIMIT: limit(nbytes=nbytes)}


def main() -> None:
    warnings.simplefilter("ignore")
    areas, of_bins = {n: exact_areas(n) for n in SIZES}, {n: histograms(n) for n in SIZES}
    of_replicates = {n: replicates(n) for n in SIZES[:-1]}
    publish_times(
        "ranking",
        "ROC AUC",
        {
            "scores, exact area": areas,
            "scores, histogram": of_bins,
            f"scores, {REPLICATES} bootstrap replicates": of_replicates,
        },
        {
            "exact area, n = 1e4": areas[10**4],
            "exact, n = 1e6": areas[10**6],
            "exact, n = 1e7": areas[10**7],
            "histogram, n = 1e6": of_bins[10**6],
            f"{REPLICATES} bootstrap replicates, n = 1e5": of_replicates[10**5],
        },
        f"Histograms have {BINS} bins. For the bootstrap, jaxmetrics draws replicates of the"
        " histogram, and the loop with scikit-learn resamples the examples. This loop drew only"
        f" {FEW} replicates, and its time was extrapolated to {REPLICATES} replicates. The row"
        f" `limit` is the time for reading the scores and labels once, at {bandwidth_in_words()}."
        " For the bootstrap, the limit includes writing the histograms of all replicates once.",
    )


if __name__ == "__main__":
    main()
