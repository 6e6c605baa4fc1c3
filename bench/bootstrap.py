"""Bootstrap of macro-F1 and balanced accuracy, 10 classes: 10,000 replicates, beside NumPy on the
cells and four peers.
"""

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
from bench.harness import (
    LIMIT,
    Contender,
    Results,
    bandwidth_in_words,
    limit,
    measure,
    publish_times,
)

K = 10
REPLICATES = 10_000
FEW = 5  # replicates of a peer that resamples examples; its time is multiplied
SIZES = tuple(10**i for i in range(3, 10))
MOST = 10**5  # examples that are resampled one by one
MATRICES = (1, 10, 100)
OF_EACH = 1000  # replicates of each of many matrices
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
    return rng.multinomial(n, cells / cells.sum(), size).reshape(
        *(() if size is None else (size,)), K, K
    )


def numpy_metrics(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    right, true, pred = np.diagonal(counts, 0, -2, -1), counts.sum(-1), counts.sum(-2)
    return (2 * right / (true + pred)).mean(-1), (right / true).mean(-1)


def on_cells(counts: np.ndarray, size: int = REPLICATES) -> Any:
    """The best that NumPy can do: a multinomial over the cells, metrics of all replicates at once,
    percentiles.
    """
    n = counts.sum()
    replicates = np.random.default_rng(0).multinomial(n, counts.ravel() / n, size).reshape(-1, K, K)
    return [np.quantile(values, [0.025, 0.975]) for values in numpy_metrics(replicates)]


def by_study(counts: np.ndarray) -> Any:
    study = Study(seed=0, num_samples=REPLICATES, ci_probability=0.95)
    study.add_experiment("a/b", confusion_matrix=counts, prevalence_prior=0.0, confusion_prior=0.0)
    for name in ("f1@macro", "balanced_accuracy"):
        study.add_metric(name)
    return [
        np.quantile(
            study.get_metric_samples(
                metric=name, experiment_name="a/b", sampling_method="posterior"
            ).values,
            [0.025, 0.975],
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
                (true, pred),
                score,
                n_resamples=FEW,
                paired=True,
                vectorized=False,
                method="percentile",
            ).confidence_interval
            for score in (macro_f1_score, balanced_accuracy_score)
        ]

    def with_torchmetrics() -> Any:
        results = []
        for metric in (
            MulticlassF1Score(K, average="macro"),
            MulticlassAccuracy(K, average="macro"),
        ):
            wrapper = BootStrapper(
                metric, num_bootstraps=FEW, quantile=torch.tensor([0.025, 0.975])
            )
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


def compare(n: int) -> Results:
    counts = counts_of(n)
    on_device = jnp.asarray(counts)

    def check(values: dict[str, Any]) -> None:
        for name in (name for name in values if "jaxmetrics" in name):
            # BCa corrects the bias that percentiles have.
            close = 0.15 if "percentile" in name else 0.5
            for ours, theirs in zip(values[name], values["NumPy on the cells"], strict=True):
                assert (
                    abs(np.array([ours.low, ours.high]) - theirs).max()
                    < close * ours.standard_error
                ), (name, ours, theirs)

    results = measure(
        {
            "jaxmetrics, percentile": lambda: jm.interval(
                metrics, on_device, method=jm.Bootstrap(KEY, "percentile", REPLICATES)
            ),
            "jaxmetrics, BCa": lambda: jm.interval(
                metrics, on_device, method=jm.Bootstrap(KEY, num_samples=REPLICATES)
            ),
            "jaxmetrics, host, BCa": lambda: jm.interval(
                metrics, counts, method=jm.Bootstrap(0, num_samples=REPLICATES)
            ),
            "NumPy on the cells": lambda: on_cells(counts),
            "random bits, a word per cell": lambda: jax.random.bits(KEY, (REPLICATES, K * K)),
        },
        check=check,
    )
    # Apart: some of these leave threads spinning, which would slow down whoever comes next.
    results |= measure({"prob_conf_mat, posterior": lambda: by_study(counts)})
    if n <= MOST:
        peers = resampling_examples(counts)
        results |= measure(peers, factors=dict.fromkeys(peers, REPLICATES / FEW))
    return results | {LIMIT: limit(nbytes=REPLICATES * K * K * 4)}


def many_matrices(n: int, size: int) -> Results:
    """Replicates of each matrix in one call, and in NumPy in a loop; the time per 10,000
    replicates.
    """
    counts = counts_of(n, size)
    batch = jnp.asarray(counts)
    contenders: dict[str, Contender] = {
        "jaxmetrics, percentile": lambda: jm.interval(
            metrics, batch, method=jm.Bootstrap(KEY, "percentile", OF_EACH)
        ),
        "NumPy on the cells": lambda: [on_cells(c, OF_EACH) for c in counts],
    }
    results = measure(contenders, factors=dict.fromkeys(contenders, REPLICATES / (OF_EACH * size)))
    return results | {LIMIT: limit(nbytes=REPLICATES * K * K * 4)}


def main() -> None:
    warnings.simplefilter("ignore")
    of_examples = {n: compare(n) for n in SIZES}
    of_matrices = {n: {size: many_matrices(n, size) for size in MATRICES} for n in (10**3, 10**5)}
    publish_times(
        "bootstrap",
        "10,000 replicates of macro-F1 and balanced accuracy",
        {
            "examples, 10,000 replicates": of_examples,
            "matrices of 1,000 examples, per 10,000 replicates": of_matrices[10**3],
            "matrices of 100,000 examples, per 10,000 replicates": of_matrices[10**5],
        },
        {f"n = 1e{i}": of_examples[10**i] for i in (3, 5, 7, 9)}
        | {f"100 matrices, n = 1e{i}": of_matrices[10**i][100] for i in (3, 5)},
        "There are 10 classes, and all intervals are 95 % intervals. SciPy, torchmetrics and"
        f" confidenceinterval resample the examples. They drew only {FEW} replicates, and their"
        " time was extrapolated to 10,000 replicates. In the columns of 100 matrices,"
        f" {OF_EACH} replicates of each matrix were drawn, and the table shows the time per 10,000"
        " replicates. The row `limit` is the time for writing the counts of all replicates once,"
        f" at {bandwidth_in_words()}.",
    )


if __name__ == "__main__":
    main()
