"""Methods of intervals as values: each serves every design, and so does one that a user writes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmetrics as jm
from tests.cases import METHODS
from tests.oracles import fields_of
from tests.test_comparisons import PAIRED, macro_f1, predictions
from tests.test_units import clustered_tables, jackknife_error

OF_DIFFERENCES = {name: make for name, make in METHODS.items() if name != "delta logit"}
OF_CLUSTERS = {name: make for name, make in OF_DIFFERENCES.items() if name != "posterior"}


def assert_same(result: Any, expected: Any, rtol: float = 1e-12) -> None:
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol), result, expected
    )


def cubes_of_clusters() -> np.ndarray:
    truth, a, b = predictions(600)
    return np.asarray(jm.paired_confusion_matrix(truth, a, b, groups=np.arange(600) // 20))


@pytest.mark.parametrize("name", OF_DIFFERENCES)
def test_the_difference_of_a_comparison_is_an_interval_of_the_difference(name: str) -> None:
    gain, method = jm.difference(macro_f1), OF_DIFFERENCES[name]()
    for level in (0.95, 0.5):
        found = jm.interval(gain, PAIRED, method=method, level=level)
        assert_same(found, jm.compare(macro_f1, PAIRED, method=method, level=level).difference)
    if name in OF_CLUSTERS:
        cubes = cubes_of_clusters()
        found = jm.interval(gain, cubes, method=method, cluster_axis=-4)
        expected = jm.compare(macro_f1, cubes, method=method, cluster_axis=0)
        assert_same(found, expected.difference)


@pytest.mark.parametrize("name", ["likelihood", "bca", "posterior"])
def test_so_it_is_on_the_device_and_in_a_batch(name: str) -> None:
    gain, method = jm.difference(jm.recall), OF_DIFFERENCES[name]()
    batch = jnp.stack([PAIRED, 2 * PAIRED.swapaxes(1, 2)])
    found = jm.interval(gain, batch, method=method)
    assert found.low.shape == (2, 3)
    assert_same(found, jm.compare(jm.recall, batch, method=method).difference, 2e-6)


@dataclass(frozen=True)
class Wald(jm.IntervalMethod):
    """So many standard errors, whatever the level."""

    reach: float = 2.0
    name = "so many errors"

    def estimate(self, metric: Any, confidence: Any) -> tuple[jm.Estimate, None]:
        value, error = metric.values, metric.errors
        low, high = value - self.reach * error, value + self.reach * error
        return jm.Estimate(value, low, high, error, 0 * error), None


COUNTS = np.array([[40, 5, 2], [6, 30, 4], [1, 3, 9]])
TRUTH, A, B = predictions()
EVERY_PUT = pytest.mark.parametrize("put", [np.asarray, jnp.asarray], ids=["host", "device"])


def around(value: Any, error: Any) -> list[Any]:
    return [value, value - 2 * error, value + 2 * error, error]


@EVERY_PUT
def test_a_method_of_ones_own(put: Callable[[Any], Any]) -> None:
    """Against arithmetic: of one test set, pairs, two test sets, and their clusters."""
    p, gains = 79 / 100, (A == TRUTH).astype(float) - (B == TRUTH)
    error = np.sqrt(p * (1 - p) / 100)
    found = jm.interval(jm.accuracy, put(COUNTS), method=Wald())
    assert isinstance(found.low, jax.Array) == (put is jnp.asarray)
    np.testing.assert_allclose(fields_of(found), around(p, error), rtol=1e-5)

    compared = jm.compare(jm.accuracy, put(PAIRED), method=Wald())
    expected = around(gains.mean(), gains.std() / 20)
    np.testing.assert_allclose(fields_of(compared.difference), expected, rtol=1e-5)
    assert 0.5 < compared.probability_better < 1
    labels = (put(x) for x in (TRUTH, A, B))
    of_labels = jm.compare_predictions(jm.accuracy, *labels, num_classes=3, method=Wald())
    np.testing.assert_allclose(fields_of(of_labels.difference), expected, rtol=1e-4)

    apart = jm.compare_unpaired(jm.accuracy, put(COUNTS), put(3 * COUNTS.T), method=Wald())
    expected = around(0, np.sqrt(4 / 3) * error)
    np.testing.assert_allclose(fields_of(apart.difference), expected, rtol=1e-5, atol=1e-7)

    clusters, others = (clustered_tables(seed, 30 + seed)[0] for seed in (0, 5))
    errors = [jackknife_error(jm.accuracy, x) for x in (clusters, others)]
    values = [float(jm.accuracy(x.sum(0))) for x in (clusters, others)]
    found = jm.interval(jm.accuracy, put(clusters), method=Wald(), cluster_axis=0)
    np.testing.assert_allclose(fields_of(found), around(values[0], errors[0]), rtol=0.02)
    apart = jm.compare_unpaired(
        jm.accuracy, put(clusters), put(others), method=Wald(), cluster_axis=-3
    )
    expected = around(values[0] - values[1], np.hypot(*errors))
    np.testing.assert_allclose(fields_of(apart.difference), expected, rtol=0.03, atol=1e-3)
    cubes = cubes_of_clusters()
    compared = jm.compare(jm.accuracy, put(cubes), method=Wald(), cluster_axis=0)
    error = jackknife_error(jm.difference(jm.accuracy), cubes)
    np.testing.assert_allclose(compared.difference.standard_error, error, rtol=0.02)


def test_a_method_of_ones_own_under_jit_and_vmap() -> None:
    batch = jnp.stack([COUNTS, COUNTS.T, 3 * COUNTS])

    def interval(c: Any) -> Any:
        return jm.interval(macro_f1, c, method=Wald(1.5))

    for found in jax.jit(lambda c: (interval(c), jax.vmap(interval)(c)))(batch):
        assert_same(found, interval(batch), 2e-6)


def test_a_method_of_ones_own_in_leaderboards_groups_and_reports() -> None:
    for clusters in (None, np.arange(400) // 10):
        options: dict[str, Any] = {} if clusters is None else {"clusters": clusters}
        axis = None if clusters is None else 0
        tables = [jm.confusion_matrix(TRUTH, x, groups=clusters) for x in (A, B)]
        each = [jm.interval(macro_f1, x, method=Wald(), cluster_axis=axis) for x in tables]
        board = jm.leaderboard(
            macro_f1, TRUTH, [A, B], num_classes=3, method=Wald(), num_samples=50, **options
        )
        np.testing.assert_allclose(
            np.stack(fields_of(board.estimates), 1), [fields_of(x) for x in each]
        )
        report = jm.report(TRUTH, A, method=Wald(), **options)
        figure = report.overall["macro_f1"]
        assert (figure.low, figure.high) == (float(each[0].low), float(each[0].high))
        assert figure.method == Wald.name
        assert report.to_dict()["overall"]["macro_f1"]["method"] == Wald.name
        for text in (report.to_text(), report.to_html()):
            assert f"{figure.low:.3f}"[1:] in text
    alike = np.array([[[40, 10], [6, 24]], [[70, 5], [5, 20]]])
    gap = jm.compare_groups(jm.accuracy, alike, method=Wald())
    a, b = (jm.interval(jm.accuracy, x, method=Wald()) for x in alike)
    reach = 2 * np.hypot(a.standard_error, b.standard_error)
    np.testing.assert_allclose(gap.high, abs(a.value - b.value) + reach)


def test_a_method_of_ones_own_in_streams() -> None:
    score = jnp.asarray(TRUTH + 2 * A, jnp.float32)
    evaluator = jm.evaluator(
        jm.count_metrics({"f1": macro_f1}, num_classes=3, method=Wald()),
        jm.paired_metrics({"gain": macro_f1}, num_classes=3, method=Wald()),
        jm.ranking_metrics(
            {"auc": lambda h: jm.roc_auc(h).value}, num_bins=64, scale="float", method=Wald()
        ),
    )
    batch = {"y_true": jnp.asarray(TRUTH), "y_pred": jnp.asarray(A)}
    batch |= {"y_pred_a": jnp.asarray(A), "y_pred_b": jnp.asarray(B), "y_score": score}
    batch["y_true"] = jnp.minimum(batch["y_true"], 1)  # areas are of two classes
    found = evaluator.compute(evaluator.update(evaluator.init(), **batch))
    counts = jm.confusion_matrix(batch["y_true"], batch["y_pred"], num_classes=3)
    assert_same(found["f1"], jm.interval(macro_f1, counts, method=Wald()), 2e-6)
    paired = jm.paired_confusion_matrix(batch["y_true"], A, B, num_classes=3)
    assert_same(found["gain"], jm.compare(macro_f1, paired, method=Wald()), 1e-5)
    assert found["auc"].low < found["auc"].value < found["auc"].high


@pytest.mark.parametrize("name", ["bca", "posterior"])
def test_another_key_compiles_nothing(name: str, programs: list[str]) -> None:
    """As a JAX key, as a seed, and in a comparison."""
    counts, cubes = jnp.asarray(COUNTS), jnp.asarray(PAIRED)
    kind: Callable[..., jm.IntervalMethod] = {"bca": jm.Bootstrap, "posterior": jm.Posterior}[name]
    for keys in ([jax.random.key(i) for i in (1, 2)], [1, 2]):
        numbers, lows = [], []
        for key in keys:
            before, method = len(programs), kind(key, num_samples=30)
            lows.append(float(jm.interval(macro_f1, counts, method=method).low))
            jm.compare(jm.accuracy, cubes, method=method)
            numbers.append(len(programs) - before)
        assert numbers[1] == 0
        assert lows[0] != lows[1]


def test_keys_priors_and_methods_are_traced(programs: list[str]) -> None:
    """A key and a prior, or the whole method, are arguments of a compiled function."""
    counts, keys = jnp.asarray(COUNTS), [jax.random.key(i) for i in (3, 4)]
    priors = [jnp.float32(1), jnp.float32(0.25)]

    def by_parts(key: Any, prior: Any, c: Any) -> Any:
        methods = jm.Bootstrap(key, num_samples=30), jm.Posterior(key, prior, num_samples=30)
        return [jm.interval(jm.f1, c, method=method) for method in methods]

    def whole(methods: Any, c: Any) -> Any:
        return [jm.interval(jm.f1, c, method=method) for method in methods]

    jitted, of_methods = jax.jit(by_parts), jax.jit(whole)
    found = []
    for i in (0, 1):
        before = len(programs)
        methods = (
            jm.Bootstrap(keys[i], num_samples=30),
            jm.Posterior(keys[i], priors[i], num_samples=30),
        )
        found.append((jitted(keys[i], priors[i], counts), of_methods(methods, counts)))
        if i == 1:
            assert len(programs) == before
    for i in (0, 1):
        expected = by_parts(keys[i], priors[i], counts)
        for result in found[i]:
            assert_same(result, expected, 2e-6)
    assert np.all(found[0][0][1].value != found[1][0][1].value)
    in_a_row = jax.vmap(by_parts, (0, 0, None))(jnp.stack(keys), jnp.stack(priors), counts)
    for i in (0, 1):
        assert_same(jax.tree.map(lambda x, i=i: x[i], in_a_row), found[i][0], 2e-6)


def test_histograms_of_scores_have_no_posterior() -> None:
    with pytest.raises(
        ValueError,
        match="Posterior needs confusion matrices, with an axis of true",
    ):
        jm.interval(jm.roc_auc, [[50, 40, 10], [5, 20, 75]], method=jm.Posterior(0))
