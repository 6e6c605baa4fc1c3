"""Leaderboards of up to 200 classifiers on up to a hundred thousand examples, beside a bootstrap of
the examples.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm
from bench.harness import (
    LIMIT,
    Contender,
    Results,
    bandwidth_in_words,
    limit,
    measure,
    publish_times,
    rate_in_words,
)

CLASSIFIERS, EXAMPLES, K = (10, 50, 200), (10**3, 10**4, 10**5), 10
REPLICATES = 2000  # and as many draws of ours
FEW = 3  # replicates of the loop; its time is multiplied
KEY = jax.random.key(0)


def problem(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw m classifiers that are right in 70 to 75 % of n examples, difficult for all alike."""
    rng = np.random.default_rng(0)
    y_true, difficulty = rng.integers(0, K, n, np.int32), rng.random(n)
    right = (difficulty + rng.random((m, n))) / 2 < np.linspace(0.63, 0.65, m)[:, None]
    return y_true, np.where(right, y_true, (y_true + rng.integers(1, K, (m, n))) % K)


def boards(m: int, n: int) -> Results:
    y_true, y_preds = problem(m, n)
    on_device = jnp.asarray(y_true), jnp.asarray(y_preds, jnp.int32)
    rng = np.random.default_rng(1)

    def ours(metric: Any, y_true: Any, y_preds: Any) -> Any:
        return jm.leaderboard(
            metric, y_true, y_preds, num_classes=K, key=KEY, num_samples=REPLICATES
        )

    def loop() -> Any:
        right = y_preds == y_true
        drawn = [right[:, rng.integers(0, n, n)].mean(-1) for _ in range(FEW)]
        return np.bincount(np.argmax(drawn, -1), minlength=m) / FEW

    contenders: dict[str, Contender] = {
        "jaxmetrics, accuracy": lambda: ours(jm.accuracy, *on_device),
        "jaxmetrics, macro-F1": lambda: ours(jm.macro(jm.f1), *on_device),
        "jaxmetrics, host, accuracy": lambda: ours(jm.accuracy, y_true, y_preds),
        "NumPy, shares of 2000 replicates won": loop,
    }
    factors = {"NumPy, shares of 2000 replicates won": REPLICATES / FEW}
    bound = limit(nbytes=sum(x.nbytes for x in on_device), flops=m * m * n)
    return measure(contenders, factors=factors) | {LIMIT: bound}


def main() -> None:
    by_classifiers = {m: boards(m, EXAMPLES[-1]) for m in CLASSIFIERS}
    by_examples = {n: boards(CLASSIFIERS[-1], n) for n in EXAMPLES[:-1]}
    by_examples[EXAMPLES[-1]] = by_classifiers[CLASSIFIERS[-1]]
    publish_times(
        "leaderboard",
        "leaderboard, ranks with intervals",
        {"classifiers, 1e5 examples": by_classifiers, "examples, 200 classifiers": by_examples},
        {
            "10 classifiers, n = 1e5": by_classifiers[10],
            "200 classifiers, n = 1e3": by_examples[10**3],
            "200 classifiers, n = 1e5": by_classifiers[200],
        },
        "There are ten classes. The row `NumPy, shares of 2000 replicates won` resamples the"
        " examples and counts how often each classifier has the highest accuracy. It computes no"
        f" intervals of ranks. Only {FEW} replicates were drawn for this row, and the time was"
        " extrapolated to 2000 replicates. The row `limit` is the longer of two times: the time"
        f" for reading the predictions once, at {bandwidth_in_words()}, and the time for a matrix"
        f" product that compares all pairs of classifiers, at {rate_in_words()}. The product is"
        " symmetric, so only half of its entries are included.",
    )


if __name__ == "__main__":
    main()
