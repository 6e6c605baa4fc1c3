"""JAX is imported when an array of its can exist, and not before."""

import collections
import subprocess
import sys
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from jaxmetrics._places import jax_imports
from jaxmetrics._places.jax_imports import trees

pytestmark = pytest.mark.quick

ON_THE_HOST = """
import sys, numpy as np, jaxmetrics as jm
rng = np.random.default_rng(0)
y, s = np.arange(200) % 3, rng.random(200)
p = np.where(s < 0.8, y, rng.integers(0, 3, 200))
y_prob = rng.dirichlet(np.ones(3), 200)
counts, groups = jm.confusion_matrix(y, p), jm.confusion_matrix(y, p, groups=np.arange(200) // 8)
for method in (jm.Likelihood(), jm.Delta(), jm.Bootstrap(0), jm.Posterior(0)):
    jm.interval(lambda c: {"a": jm.accuracy(c), "f": jm.macro(jm.f1)(c)}, counts, method=method)
jm.interval(jm.accuracy, groups, cluster_axis=-3)
print(jm.compare_predictions(jm.accuracy, y, p, y), jm.leaderboard(jm.accuracy, y, [p, y]))
print(jm.balanced_accuracy_posterior(counts), jm.recall_posterior(counts).interval())
jm.roc_auc(y > 0, s), jm.roc_curve(y > 0, s), jm.delong_interval(y > 0, s)
jm.log_loss(y, y_prob), jm.calibration_error(y > 0, s), jm.calibration_interval(y > 0, s)
jm.bootstrap_examples(0, np.mean, s), jm.mean_interval(s, bounds=(0, 1))
jm.permutation_test(0, jm.accuracy, jm.paired_confusion_matrix(y, p, y), num_samples=99)
jm.required_examples(jm.accuracy, counts, half_width=0.01)
assert "jax" not in sys.modules
"""


def test_what_is_computed_on_the_host_does_not_wait_for_jax() -> None:
    subprocess.run([sys.executable, "-c", ON_THE_HOST], check=True, stdout=subprocess.DEVNULL)


IN_TRAINING = """
import jax, jax.numpy as jnp, jaxmetrics as jm
compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, *_, **__: compiled.append(name) if "backend_compile" in name else None
)
step = jax.jit(lambda x: x + 1)
step(1.0)
evaluator = jm.evaluator(jm.count_metrics({"own": lambda c: jm.accuracy(c)}, num_classes=2))
y = jnp.array([0, 1])
evaluator.compute(evaluator.update(evaluator.init(), y_true=y, y_pred=y))
jm.interval(lambda c: jm.accuracy(c), jnp.eye(2))
jm.metric_loss(lambda c: jm.accuracy(c))(jnp.eye(2), y)
compiled.clear()
step(1.0)
assert not compiled
"""


def test_programs_of_users_are_not_compiled_again() -> None:
    """JAX would compile them again if a module were imported that adds an option of JAX."""
    subprocess.run([sys.executable, "-c", IN_TRAINING], check=True)


class Pair(NamedTuple):
    first: Any
    second: Any


TREES = [
    3.0,
    None,
    (),
    [np.float64(1), (2, None), {"b": 1, "a": [True, "x"]}],
    Pair({"z": np.ones(2)}, Pair(1, None)),
    collections.OrderedDict(b=1, a=2),  # which only JAX takes apart
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_trees_are_those_of_jax(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a tree is taken apart before JAX is loaded, and put together after."""
    monkeypatch.setattr(jax_imports, "is_loaded", lambda: False)
    leaves, structure = trees.flatten(tree)
    assert repr(leaves) == repr(jax.tree.leaves(tree)) == repr(trees.leaves(tree))
    assert repr(trees.map(lambda x, y: (x, y), tree, tree)) == repr(
        jax.tree.map(lambda x, y: (x, y), tree, tree)
    )
    monkeypatch.undo()
    assert repr(trees.unflatten(structure, leaves)) == repr(jax.tree.map(lambda x: x, tree))


def test_leaves_of_a_tree_may_be_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = {"a": Pair(1, 2), "b": [Pair(3, None), None]}

    def is_leaf(x: Any) -> bool:
        return x is None or isinstance(x, Pair)

    monkeypatch.setattr(jax_imports, "is_loaded", lambda: False)
    assert trees.leaves(tree, is_leaf=is_leaf) == [Pair(1, 2), Pair(3, None), None]
    assert trees.map(lambda _: 0, tree, is_leaf=is_leaf) == {"a": 0, "b": [0, 0]}
