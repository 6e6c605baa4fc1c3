"""Bootstrap of macro-F1 and balanced accuracy, 10 classes: 10,000 replicates, beside NumPy on the cells and four peers."""

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from confidenceinterval.bootstrap import bootstrap_ci
from prob_conf_mat import Study
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, f1_score
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score
from torchmetrics.wrappers import BootStrapper

import jaxmetrics as jm
from bench.harness import Contender, measure, milliseconds, publish

K = 10
REPLICATES = 10_000
FEW = 5  # replicates of a peer that resamples examples; its time is multiplied
SIZES = {"n = 1e3": 10**3, "n = 1e5": 10**5, "n = 1e9": 10**9}
KEY = jax.random.key(0)
macro_f1 = jm.macro(jm.f1)


def metrics(counts: jax.Array) -> tuple[jax.Array, jax.Array]:
    return macro_f1(counts), jm.balanced_accuracy(counts)


def counts_of(n: int, size: int | None = None) -> np.ndarray:
    """Recalls from 0.6 to 0.95, mistakes spread unevenly."""
    rng = np.random.default_rng(0)
    recall = np.linspace(0.6, 0.95, K)
    cells = (1 - recall)[:, None] * rng.dirichlet(np.ones(K), K) + np.diag(recall)
    cells = (cells * rng.dirichlet(np.full(K, 20))[:, None]).ravel()
    return rng.multinomial(n, cells / cells.sum(), size).reshape(*(() if size is None else (size,)), K, K)


def numpy_metrics(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    right, true, pred = np.diagonal(counts, 0, -2, -1), counts.sum(-1), counts.sum(-2)
    return (2 * right / (true + pred)).mean(-1), (right / true).mean(-1)


def on_cells(counts: np.ndarray) -> Any:
    """The best that NumPy can do: a multinomial over the cells, metrics of all replicates at once, percentiles."""
    n = counts.sum()
    replicates = np.random.default_rng(0).multinomial(n, counts.ravel() / n, REPLICATES).reshape(-1, K, K)
    return [np.quantile(values, [0.025, 0.975]) for values in numpy_metrics(replicates)]


def by_study(counts: np.ndarray) -> Any:
    study = Study(seed=0, num_samples=REPLICATES, ci_probability=0.95)
    study.add_experiment("a/b", confusion_matrix=counts, prevalence_prior=0.0, confusion_prior=0.0)
    for name in ("f1@macro", "balanced_accuracy"):
        study.add_metric(name)
    return [
        np.quantile(
            study.get_metric_samples(metric=name, experiment_name="a/b", sampling_method="posterior").values, [0.025, 0.975]
        )
        for name in ("f1@macro", "balanced_accuracy")
    ]


def resampling_examples(counts: np.ndarray) -> dict[str, Contender]:
    """Peers that draw examples; each computes one metric after the other."""
    true, pred = (np.repeat(ids, counts.ravel()) for ids in np.divmod(np.arange(K * K), K))
    tensors = torch.from_numpy(pred), torch.from_numpy(true)

    def macro_f1_score(true: np.ndarray, pred: np.ndarray) -> float:
        return f1_score(true, pred, average="macro")

    def with_scipy() -> Any:
        return [
            stats.bootstrap(
                (true, pred), score, n_resamples=FEW, paired=True, vectorized=False, method="percentile"
            ).confidence_interval
            for score in (macro_f1_score, balanced_accuracy_score)
        ]

    def with_torchmetrics() -> Any:
        results = []
        for metric in (MulticlassF1Score(K, average="macro"), MulticlassAccuracy(K, average="macro")):
            wrapper = BootStrapper(metric, num_bootstraps=FEW, quantile=torch.tensor([0.025, 0.975]))
            wrapper.update(*tensors)
            results.append(wrapper.compute())
        return results

    def with_confidenceinterval() -> Any:
        return [
            bootstrap_ci(true, pred, score, n_resamples=FEW, method="bootstrap_percentile")
            for score in (macro_f1_score, balanced_accuracy_score)
        ]

    return {
        "scipy.stats.bootstrap": with_scipy,
        "torchmetrics BootStrapper": with_torchmetrics,
        "confidenceinterval": with_confidenceinterval,
    }


def compare(n: int) -> dict[str, dict[str, float]]:
    counts = counts_of(n)
    on_device = jnp.asarray(counts)
    contenders: dict[str, Contender] = {
        "jaxmetrics, percentile": lambda: jm.bootstrap(KEY, metrics, on_device, num_samples=REPLICATES, method="percentile"),
        "jaxmetrics, BCa": lambda: jm.bootstrap(KEY, metrics, on_device, num_samples=REPLICATES),
        "NumPy on the cells": lambda: on_cells(counts),
    }
    for ours, theirs in zip(contenders["jaxmetrics, percentile"](), on_cells(counts), strict=True):
        assert abs(np.array([ours.low, ours.high]) - theirs).max() < 0.15 * ours.standard_error, (ours, theirs)
    results = measure(contenders)
    if n == 10**5:  # apart: some of these leave threads spinning, which would slow down whoever comes next
        results |= measure({"prob_conf_mat, posterior": lambda: by_study(counts)})
        for name, result in measure(resampling_examples(counts)).items():
            results[name] = {key: x * REPLICATES / FEW for key, x in result.items()}
    return results


def many_matrices() -> dict[str, dict[str, float]]:
    """1000 matrices with 1000 replicates each, in one call, per 10,000 replicates."""
    batch = jnp.asarray(counts_of(10**5, 1000))
    results = measure(
        {"jaxmetrics, percentile": lambda: jm.bootstrap(KEY, metrics, batch, num_samples=1000, method="percentile")}
    )
    for key in ("median", "lower_quartile", "upper_quartile"):
        results["jaxmetrics, percentile"][key] *= REPLICATES / 10**6
    return results


def main() -> None:
    warnings.simplefilter("ignore")
    results = {setting: compare(n) for setting, n in SIZES.items()} | {"1000 matrices at once": many_matrices()}
    rows = [
        [name, *(milliseconds(result[name]) if name in result else "" for result in results.values())]
        for name in results["n = 1e5"]
    ]
    publish(
        "bootstrap",
        results,
        ["10,000 replicates of macro-F1 and balanced accuracy", *results],
        rows,
        f"10 classes, 95 % intervals. Peers that resample examples drew {FEW} replicates; their time is multiplied. 1000"
        " matrices: 1000 replicates of each in one call, the time per 10,000.",
    )


if __name__ == "__main__":
    main()
