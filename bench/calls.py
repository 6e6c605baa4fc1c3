"""Thirty calls that people make first, and what the peers do for the same job.

`python -m bench.calls CALL SIDE` is a fresh process, which `first_call` starts: it imports the
library of that side, calls twice, and prints the seconds of all three as JSON. Whatever is imported
here would make the import that is timed look shorter: NumPy alone.
"""

import importlib
import json
import sys
import time
import types
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

K = 10
CHECKPOINTS = 30
ROWS = 899  # of the report, as many as the file of predictions in the README has
REPLICATES = 2000
OURS = HOST, DEVICE = "jaxmetrics, host", "jaxmetrics, device"
SKLEARN, SCIPY, TORCH, STUDY = "scikit-learn", "SciPy", "torchmetrics", "prob_conf_mat"
MODULES = {
    HOST: "jaxmetrics",
    DEVICE: "jaxmetrics",
    SKLEARN: "sklearn.metrics",
    SCIPY: "scipy.stats",
    TORCH: "torchmetrics.functional.classification",
    STUDY: "prob_conf_mat",
}
COMPILED = "/jax/core/compile/backend_compile_duration"  # the event of jax.monitoring

Data = SimpleNamespace
Job = Callable[[Any, Data], Any]  # of the imported module and the data that it takes


class Call(NamedTuple):
    ours: Job
    peers: Mapping[str, Job] = {}
    bar: float | None = None  # seconds that the first call may take on the host
    same: bool = True  # scikit-learn and SciPy return the same, up to rounding
    modules: tuple[str, ...] = ()  # that peers need besides, imported before the clock starts


def matrix(y_true: np.ndarray, y_pred: np.ndarray) -> np.ndarray:
    return np.bincount(y_true * K + y_pred, minlength=K * K).reshape(K, K)


def problem() -> dict[str, np.ndarray]:
    """A thousand examples of ten classes; thirty checkpoints, 75 to 85 % right."""
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, K, 1000)
    right = rng.random((CHECKPOINTS, 1000)) < np.linspace(0.72, 0.83, CHECKPOINTS)[:, None]
    y_preds = np.where(right, y_true, rng.integers(0, K, (CHECKPOINTS, 1000)))
    logits = rng.normal(size=(1000, K)) + 2 * (np.arange(K) == y_preds[0][:, None])
    y_prob = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    counts = matrix(y_true, y_preds[0])
    return {
        "y_true": y_true,
        "y_pred": y_preds[0],
        "y_pred_b": y_preds[-1],
        "y_preds": y_preds,
        "logits": logits,
        "y_prob": y_prob,
        "y_binary": (y_true == 3).astype(int),
        "y_score": y_prob[:, 3],
        "thresholds": np.linspace(0, 1, 101),
        "counts": counts,
        "row_true": y_true[:ROWS],
        "row_pred": y_preds[0, :ROWS],
        "row_prob": y_prob[:ROWS],
        "successes": counts.trace(),
        "trials": counts.sum(),
    }


def data_for(side: str) -> Data:
    """In the form that a user of that library has: NumPy, JAX arrays on their device, tensors."""
    arrays: dict[str, Any] = problem()
    if side == DEVICE:
        import jax

        return Data(**jax.block_until_ready(jax.device_put(arrays) | {"key": jax.random.key(0)}))
    if side == TORCH:
        import torch

        tensors: dict[str, Any] = {name: torch.as_tensor(x) for name, x in arrays.items()}
        return Data(**tensors)
    return Data(**arrays, key=0)


def counted(metric: Callable[[Any], Callable[[Any], Any]]) -> Job:
    """`metric(jm)` of the labels: counting is a part of the call."""
    return lambda jm, d: metric(jm)(jm.confusion_matrix(d.y_true, d.y_pred, num_classes=K))


def paired(jm: Any, d: Data) -> Any:
    return jm.paired_confusion_matrix(d.y_true, d.y_pred, d.y_pred_b, num_classes=K)


def macro_f1(jm: Any) -> Any:
    return jm.macro(jm.f1)


def bounds(estimate: Any) -> tuple[Any, Any]:
    return estimate.low, estimate.high


def all_rates(jm: Any, d: Data) -> Any:
    counts = jm.confusion_matrix(d.y_true, d.y_pred, num_classes=K)
    ten = (
        jm.recall,
        jm.precision,
        jm.specificity,
        jm.negative_predictive_value,
        jm.false_positive_rate,
        jm.false_negative_rate,
        jm.false_discovery_rate,
        jm.false_omission_rate,
        jm.f1,
        jm.jaccard,
    )
    return [rate(counts) for rate in ten]


def all_rates_by_sklearn(sk: Any, d: Data) -> Any:
    tn, fp, fn, tp = sk.multilabel_confusion_matrix(d.y_true, d.y_pred).reshape(-1, 4).T
    pairs = ((tp, fn), (tp, fp), (tn, fp), (tn, fn), (fp, tn), (fn, tp), (fp, tp), (fn, tn))
    return [a / (a + b) for a, b in pairs] + [2 * tp / (2 * tp + fp + fn), tp / (tp + fp + fn)]


def calibration_curve_by_sklearn(sk: Any, d: Data) -> Any:
    from sklearn.calibration import calibration_curve

    return calibration_curve(d.y_binary, d.y_score, n_bins=10)


def temperature_by_scipy(stats: Any, d: Data) -> Any:
    from scipy.optimize import minimize_scalar

    def loss(log_t: float) -> float:
        tempered = Data(logits=d.logits / np.exp(log_t), y_true=d.y_true)
        return cross_entropy_by_scipy(stats, tempered).mean()

    return np.exp(minimize_scalar(loss).x)


def cross_entropy_by_scipy(stats: Any, d: Data) -> Any:
    from scipy.special import logsumexp

    return logsumexp(d.logits, -1) - d.logits[np.arange(len(d.y_true)), d.y_true]


def cross_entropy_by_torch(tm: Any, d: Data) -> Any:
    from torch.nn.functional import cross_entropy

    return cross_entropy(d.logits, d.y_true, reduction="none")


def proportions_by_scipy(stats: Any, d: Data) -> Any:
    test = stats.binomtest(int(d.successes), int(d.trials))
    return [bounds(test.proportion_ci(method=method)) for method in ("wilson", "exact")]


def recall_posterior_by_scipy(stats: Any, d: Data) -> Any:
    right = d.counts.diagonal()
    return stats.beta.interval(0.95, 1 + right, 1 + d.counts.sum(-1) - right)


def macro_f1_of(true: np.ndarray, pred: np.ndarray) -> float:
    from sklearn.metrics import f1_score

    return f1_score(true, pred, average="macro")


def bootstrap_by_scipy(stats: Any, d: Data) -> Any:
    drawn = stats.bootstrap(
        (d.y_true, d.y_pred),
        macro_f1_of,
        n_resamples=REPLICATES,
        paired=True,
        vectorized=False,
    )
    return bounds(drawn.confidence_interval)


def comparison_by_scipy(stats: Any, d: Data) -> Any:
    drawn = stats.bootstrap(
        (d.y_true, d.y_pred, d.y_pred_b),
        lambda y, a, b: macro_f1_of(y, a) - macro_f1_of(y, b),
        n_resamples=REPLICATES,
        paired=True,
        vectorized=False,
        method="percentile",
    )
    return bounds(drawn.confidence_interval)


def mcnemar_by_scipy(stats: Any, d: Data) -> Any:
    a, b = d.y_pred == d.y_true, d.y_pred_b == d.y_true
    return stats.binomtest(int((a & ~b).sum()), int((a != b).sum())).pvalue


def permutations_by_scipy(stats: Any, d: Data) -> Any:
    right = (d.y_pred == d.y_true) * 1.0, (d.y_pred_b == d.y_true) * 1.0
    return stats.permutation_test(
        right,
        lambda a, b, axis: (a - b).mean(axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=10_000,
        batch=1000,
    ).pvalue


def study(module: Any, metric: str, *matrices: np.ndarray) -> Any:
    """One experiment per matrix, uniform priors."""
    study = module.Study(seed=0, num_samples=REPLICATES, ci_probability=0.95)
    priors = {"prevalence_prior": 1.0, "confusion_prior": 1.0}
    for i, counts in enumerate(matrices):
        study.add_experiment(f"{i}/{i}", confusion_matrix=counts, **priors)
    study.add_metric(metric)
    return study


def posterior_by_study(metric: str) -> Job:
    def interval(module: Any, d: Data) -> Any:
        samples = study(module, metric, d.counts).get_metric_samples(
            metric=metric,
            experiment_name="0/0",
            sampling_method="posterior",
        )
        return np.quantile(samples.values, [0.025, 0.975])

    return interval


def comparison_by_study(module: Any, d: Data) -> Any:
    of_both = study(module, "f1@macro", *(matrix(d.y_true, y) for y in (d.y_pred, d.y_pred_b)))
    names = {"experiment_a": "0/0", "experiment_b": "1/1"}
    return of_both.get_pairwise_comparison(metric="f1@macro", **names)


def leaderboard_by_study(module: Any, d: Data) -> Any:
    of_all = study(module, "accuracy", *(matrix(d.y_true, y) for y in d.y_preds))
    return of_all.get_listwise_comparsion_result(metric="accuracy")


def comparison(jm: Any, d: Data) -> Any:
    both = d.y_pred, d.y_pred_b
    return jm.compare_predictions(macro_f1(jm), d.y_true, *both, num_classes=K)


def leaderboard(jm: Any, d: Data) -> Any:
    return jm.leaderboard(jm.accuracy, d.y_true, d.y_preds, num_classes=K, key=d.key)


def report(jm: Any, d: Data) -> str:
    return jm.report(d.row_true, d.row_pred, y_prob=d.row_prob).to_text()


def proportions(jm: Any, d: Data) -> Any:
    methods = ("wilson", "clopper_pearson")
    return [bounds(jm.proportion_interval(d.successes, d.trials, method=m)) for m in methods]


OF_COUNTS = 1e-3
CALLS = {
    "confusion_matrix": Call(
        lambda jm, d: jm.confusion_matrix(d.y_true, d.y_pred, num_classes=K),
        {
            SKLEARN: lambda sk, d: sk.confusion_matrix(d.y_true, d.y_pred),
            TORCH: lambda tm, d: tm.multiclass_confusion_matrix(d.y_pred, d.y_true, K),
        },
        OF_COUNTS,
    ),
    "accuracy": Call(
        counted(lambda jm: jm.accuracy),
        {
            SKLEARN: lambda sk, d: sk.accuracy_score(d.y_true, d.y_pred),
            TORCH: lambda tm, d: tm.multiclass_accuracy(d.y_pred, d.y_true, K, average="micro"),
        },
        OF_COUNTS,
    ),
    "balanced_accuracy": Call(
        counted(lambda jm: jm.balanced_accuracy),
        {
            SKLEARN: lambda sk, d: sk.balanced_accuracy_score(d.y_true, d.y_pred),
            TORCH: lambda tm, d: tm.multiclass_accuracy(d.y_pred, d.y_true, K, average="macro"),
        },
        OF_COUNTS,
    ),
    "macro(f1)": Call(
        counted(macro_f1),
        {
            SKLEARN: lambda sk, d: sk.f1_score(d.y_true, d.y_pred, average="macro"),
            TORCH: lambda tm, d: tm.multiclass_f1_score(d.y_pred, d.y_true, K, average="macro"),
        },
        OF_COUNTS,
    ),
    "matthews_corrcoef": Call(
        counted(lambda jm: jm.matthews_corrcoef),
        {
            SKLEARN: lambda sk, d: sk.matthews_corrcoef(d.y_true, d.y_pred),
            TORCH: lambda tm, d: tm.multiclass_matthews_corrcoef(d.y_pred, d.y_true, K),
        },
        OF_COUNTS,
    ),
    "cohen_kappa": Call(
        counted(lambda jm: jm.cohen_kappa),
        {
            SKLEARN: lambda sk, d: sk.cohen_kappa_score(d.y_true, d.y_pred),
            TORCH: lambda tm, d: tm.multiclass_cohen_kappa(d.y_pred, d.y_true, K),
        },
        OF_COUNTS,
    ),
    "ten rates per class": Call(all_rates, {SKLEARN: all_rates_by_sklearn}, OF_COUNTS),
    "top_k_accuracy, k = 3": Call(
        lambda jm, d: jm.top_k_accuracy(d.y_true, d.y_prob, k=3),
        {
            SKLEARN: lambda sk, d: sk.top_k_accuracy_score(d.y_true, d.y_prob, k=3),
            TORCH: lambda tm, d: tm.multiclass_accuracy(d.y_prob, d.y_true, K, "micro", 3),
        },
    ),
    "confusion_matrix_at_thresholds": Call(
        lambda jm, d: jm.confusion_matrix_at_thresholds(d.y_binary, d.y_score, d.thresholds),
        {SKLEARN: lambda sk, d: sk.confusion_matrix_at_thresholds(d.y_binary, d.y_score)},
        same=False,  # at all scores, not at a hundred thresholds
    ),
    "roc_curve": Call(
        lambda jm, d: jm.roc_curve(d.y_binary, d.y_score),
        {
            SKLEARN: lambda sk, d: sk.roc_curve(d.y_binary, d.y_score),
            TORCH: lambda tm, d: tm.binary_roc(d.y_score, d.y_binary),
        },
        same=False,  # of as many points, which ours repeats where scores are tied
    ),
    "roc_auc": Call(
        lambda jm, d: jm.roc_auc(d.y_binary, d.y_score),
        {
            SKLEARN: lambda sk, d: sk.roc_auc_score(d.y_binary, d.y_score),
            TORCH: lambda tm, d: tm.binary_auroc(d.y_score, d.y_binary),
        },
    ),
    "delong_interval": Call(lambda jm, d: jm.delong_interval(d.y_binary, d.y_score), bar=5e-3),
    "average_precision": Call(
        lambda jm, d: jm.average_precision(d.y_binary, d.y_score),
        {
            SKLEARN: lambda sk, d: sk.average_precision_score(d.y_binary, d.y_score),
            TORCH: lambda tm, d: tm.binary_average_precision(d.y_score, d.y_binary),
        },
    ),
    "log_loss": Call(
        lambda jm, d: jm.log_loss(d.y_true, d.y_prob),
        {SKLEARN: lambda sk, d: sk.log_loss(d.y_true, d.y_prob)},
    ),
    "brier_score": Call(
        lambda jm, d: jm.brier_score(d.y_true, d.y_prob),
        {SKLEARN: lambda sk, d: sk.brier_score_loss(d.y_true, d.y_prob)},
        same=False,  # before scikit-learn 1.7 of two classes alone
    ),
    "calibration_error": Call(
        lambda jm, d: jm.calibration_error(d.y_binary, d.y_score),
        {TORCH: lambda tm, d: tm.binary_calibration_error(d.y_score, d.y_binary)},
    ),
    "calibration_curve": Call(
        lambda jm, d: jm.calibration_curve(d.y_binary, d.y_score),
        {SKLEARN: calibration_curve_by_sklearn},
        same=False,  # scikit-learn has no intervals, and leaves out bins that are empty
        modules=("sklearn.calibration",),
    ),
    "fit_temperature": Call(
        lambda jm, d: jm.fit_temperature(d.y_true, d.logits),
        {SCIPY: temperature_by_scipy},
    ),
    "cross_entropy": Call(
        lambda jm, d: jm.cross_entropy(d.logits, d.y_true),
        {SCIPY: cross_entropy_by_scipy, TORCH: cross_entropy_by_torch},
    ),
    "proportion_interval, Wilson and exact": Call(
        proportions,
        {SCIPY: proportions_by_scipy},
    ),
    "recall_posterior, interval": Call(
        lambda jm, d: jm.recall_posterior(d.counts).interval(0.95),
        {SCIPY: recall_posterior_by_scipy},
    ),
    "balanced_accuracy_posterior, interval": Call(
        lambda jm, d: jm.balanced_accuracy_posterior(d.counts).interval(0.95),
        {STUDY: posterior_by_study("balanced_accuracy")},
        30e-3,
        same=False,
    ),
    "bootstrap, macro(f1)": Call(
        lambda jm, d: bounds(
            jm.interval(macro_f1(jm), d.counts, method=jm.Bootstrap(d.key, num_samples=REPLICATES))
        ),
        {SCIPY: bootstrap_by_scipy},
        100e-3,
        same=False,
        modules=("sklearn.metrics",),
    ),
    "Delta, macro(f1)": Call(
        lambda jm, d: bounds(jm.interval(macro_f1(jm), d.counts, method=jm.Delta()))
    ),
    "posterior, macro(f1)": Call(
        lambda jm, d: bounds(
            jm.interval(macro_f1(jm), d.counts, method=jm.Posterior(d.key, num_samples=REPLICATES))
        ),
        {STUDY: posterior_by_study("f1@macro")},
        same=False,
    ),
    "compare_predictions, macro(f1)": Call(
        comparison,
        {SCIPY: comparison_by_scipy, STUDY: comparison_by_study},
        200e-3,
        same=False,
        modules=("sklearn.metrics",),
    ),
    "mcnemar, exact": Call(
        lambda jm, d: jm.mcnemar(paired(jm, d), method="exact").p_value,
        {SCIPY: mcnemar_by_scipy},
    ),
    "permutation_test, accuracy": Call(
        lambda jm, d: jm.permutation_test(d.key, jm.accuracy, paired(jm, d)),
        {SCIPY: permutations_by_scipy},
        same=False,
    ),
    f"leaderboard of {CHECKPOINTS}, accuracy": Call(
        leaderboard,
        {STUDY: leaderboard_by_study},
        500e-3,
        same=False,
    ),
    f"report of {ROWS} rows": Call(
        report,
        {SKLEARN: lambda sk, d: sk.classification_report(d.row_true, d.row_pred)},
        100e-3,
        same=False,  # scikit-learn's has no intervals, areas or calibration
    ),
}


def job(name: str, side: str) -> Job:
    call = CALLS[name]
    return call.ours if side in OURS else call.peers[side]


def timed(name: str, side: str) -> dict[str, float]:
    """Seconds of the import and of two calls; of ours, how many programs XLA compiled in each."""
    start = time.perf_counter()
    module, run = importlib.import_module(MODULES[side]), job(name, side)
    if side in OURS:  # the files of a name are imported when it is first used
        for used in names_of(run) & set(module.__all__):
            getattr(module, used)
    result = {"import": time.perf_counter() - start}
    data, programs = data_for(side), list[str]()
    if side in OURS:
        import jax

        wait = jax.block_until_ready

        def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
            if event == COMPILED:
                programs.append(event)

        jax.monitoring.register_event_duration_secs_listener(listen)
    else:
        wait = no_wait
        for other in CALLS[name].modules:
            importlib.import_module(other)
    for which in ("first", "second"):
        programs.clear()
        start = time.perf_counter()
        wait(run(module, data))
        result[which] = time.perf_counter() - start
        if side in OURS:
            result[f"programs, {which}"] = len(programs)
    return result


def names_of(function: Any) -> set[str]:
    """The names that a function reads, and those that it calls from here, or holds, read."""
    found, left = set[str](), [function]
    while left:
        x = left.pop()
        code = getattr(x, "__code__", x)
        if not isinstance(code, types.CodeType):
            continue
        held = [cell.cell_contents for cell in getattr(x, "__closure__", None) or ()]
        called = [globals().get(name) for name in set(code.co_names) - found]
        left += [*held, *code.co_consts, *called]
        found |= set(code.co_names)
    return found


def no_wait(x: Any) -> Any:
    return x


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    print(json.dumps(timed(*sys.argv[1:])))
