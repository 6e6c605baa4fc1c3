"""Pictures: what is drawn is what was computed, and mistakes are named."""

from typing import Any

import numpy as np
import pytest

import jaxmetrics as jm
from jaxmetrics import plots

COUNTS = np.array([[[90, 10], [5, 95]], [[9, 1], [0, 10]], [[50, 50], [40, 60]]])


def test_nothing_is_compiled_for_data_of_the_host(programs: list[str]) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    y, prob, weights = problem()
    plots.balanced_accuracy_violin(COUNTS)
    plots.confusion_matrix(COUNTS[0])
    plots.intervals({"accuracy": jm.delta_method(jm.accuracy, COUNTS[0])})
    plots.roc(jm.roc_curve(y, prob), replicates=jm.roc_curve(y, prob, sample_weight=weights))
    plots.precision_recall(jm.precision_recall_curve(y, prob))
    plots.reliability(jm.calibration_curve(y, prob))
    assert programs == []


def test_violins_show_density_interval_and_mean(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    samples = jm.balanced_accuracy_posterior(COUNTS).sample(0, (40,))
    axes: Any = plots.balanced_accuracy_violin(COUNTS, ["A", "B", "C"], samples=samples)
    posterior = jm.balanced_accuracy_posterior(COUNTS)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["A", "B", "C"]
    assert axes.get_ylabel() == "balanced accuracy"
    for i, outline in enumerate(axes.collections[:3]):
        x, y = outline.get_paths()[0].vertices.T
        widest = float(y[x.argmax()])
        np.testing.assert_allclose(widest, posterior.mode[i], atol=0.02 * float(np.ptp(y)))
        np.testing.assert_allclose(x.max() - x.min(), 0.8, rtol=1e-6)
    bars = np.array([segment[:, 1] for segment in axes.collections[3].get_segments()])
    np.testing.assert_allclose(bars.T, posterior.interval(0.95), rtol=1e-6)
    dots = next(line for line in axes.lines if line.get_label() == "posterior mean")
    np.testing.assert_allclose(dots.get_ydata(), posterior.mean, rtol=1e-6)
    axes.figure.savefig(tmp_path / "violin.png")
    assert plots.balanced_accuracy_violin(COUNTS[0], ax=axes) is axes


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Truth, calibrated probabilities, and how often each example is drawn in 200 bootstrap
    samples.
    """
    rng = np.random.default_rng(0)
    prob = rng.beta(2, 3, 400).astype(np.float32)
    return (rng.random(400) < prob).astype(int), prob, rng.multinomial(400, np.ones(400) / 400, 200)


def test_curves_with_bands(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    y, prob, weights = problem()
    curve, replicates = jm.roc_curve(y, prob), jm.roc_curve(y, prob, sample_weight=weights)
    axes: Any = plots.roc(curve, replicates=replicates, name="A")
    assert axes.lines[0].get_label() == f"A, AUC {float(jm.roc_auc(y, prob)):.3f}"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("false positive rate", "true positive rate")
    np.testing.assert_allclose(axes.lines[0].get_ydata(), curve.tpr)
    outline = axes.collections[0].get_paths()[0].vertices
    at_fifth = outline[np.isclose(outline[:, 0], 0.2), 1]
    rates = [np.interp(0.2, x, z) for x, z in zip(replicates.fpr, replicates.tpr, strict=True)]
    np.testing.assert_allclose(
        [at_fifth.min(), at_fifth.max()], np.quantile(rates, [0.025, 0.975]), atol=1e-6
    )
    axes.figure.savefig(tmp_path / "roc.png")
    assert plots.roc(jm.roc_curve(y, -prob), name="B", ax=axes) is axes


def test_precision_and_recall_with_a_band(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    y, prob, weights = problem()
    axes: Any = plots.precision_recall(
        jm.precision_recall_curve(y, prob),
        replicates=jm.precision_recall_curve(y, prob, sample_weight=weights),
    )
    average = float(jm.average_precision(y, prob))
    assert axes.lines[0].get_label() == f"average precision {average:.3f}, chance {y.mean():.3f}"
    assert len(axes.collections) == 1
    axes.figure.savefig(tmp_path / "precision_recall.png")


def test_reliability_diagram(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    y, prob, weights = problem()
    curve = jm.calibration_curve(y, prob)
    found = np.isfinite(curve.frequency)
    axes: Any = plots.reliability(curve)
    np.testing.assert_allclose(axes.lines[1].get_xdata(), np.asarray(curve.mean_prob)[found])
    bars = np.array([segment[:, 1] for segment in axes.collections[0].get_segments()])
    np.testing.assert_allclose(bars.T, np.asarray([curve.low, curve.high])[:, found])
    np.testing.assert_allclose(sum(bar.get_height() for bar in axes.patches), 1, rtol=1e-6)
    axes = plots.reliability(
        curve, replicates=jm.calibration_curve(y, prob, sample_weight=weights), name="A"
    )
    assert axes.lines[1].get_label() == "A"
    assert "95 % band" in [text.get_text() for text in axes.get_legend().get_texts()]
    axes.figure.savefig(tmp_path / "reliability.png")


def test_curves_that_cannot_be_drawn() -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    y, prob, weights = problem()
    with pytest.raises(ValueError, match="without batch axes"):
        plots.roc(jm.roc_curve(y, prob, sample_weight=weights))
    with pytest.raises(TypeError, match="curve must be a RocCurve, got PrecisionRecallCurve"):
        plots.roc(jm.precision_recall_curve(y, prob))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="undefined"):
        plots.roc(jm.roc_curve(np.ones(400, int), prob))
    with pytest.raises(ValueError, match="one batch axis"):
        plots.roc(jm.roc_curve(y, prob), replicates=jm.roc_curve(y, prob))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"counts": COUNTS, "names": ["A"]}, "expected 3, got 1"),
        ({"counts": np.ones(3)}, "counts must have shape"),
        ({"counts": -COUNTS}, "negative"),
        ({"counts": COUNTS, "samples": np.ones((5, 2))}, r"\(s, 3\)"),
        ({"counts": COUNTS, "level": 95}, "level"),
    ],
)
def test_mistakes_raise(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plots.balanced_accuracy_violin(**arguments)


def test_confusion_matrix_in_colours_and_numbers(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    counts = np.array([[90, 10, 0], [5, 20, 0], [0, 0, 0]])
    axes: Any = plots.confusion_matrix(counts, class_names=["cat", "dog", "fish"])
    np.testing.assert_allclose(
        axes.images[0].get_array(), np.array([[9.0, 1, 0], [2, 8, 0], [0, 0, 0]]) / 10
    )
    texts = {text.get_position(): text.get_text() for text in axes.texts}
    assert texts[1, 0] == "10"  # x is the predicted class
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cat", "dog", "fish"]
    axes.figure.savefig(tmp_path / "matrix.png")
    assert not plots.confusion_matrix(np.eye(21)).texts
    assert plots.confusion_matrix([[0.25, 1.0], [2.0, 3.0]]).texts[0].get_text() == "0.25"
    shares: Any = plots.confusion_matrix([[1, 3], [0, 0]], numbers="shares", colorbar=False)
    assert [text.get_text() for text in shares.texts] == ["25.0", "75.0", "0", "0"]
    assert shares.images[0].colorbar is None
    many: Any = plots.confusion_matrix(np.eye(120))
    assert [label.get_text() for label in many.get_xticklabels()] == [
        str(i) for i in range(0, 120, 3)
    ]


def test_estimates_and_differences_below_each_other(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    metrics = {"accuracy": jm.accuracy, "macro F1": jm.macro(jm.f1)}
    axes: Any = plots.intervals(
        {name: jm.delta_method(metric, COUNTS[0]) for name, metric in metrics.items()}
    )
    assert [label.get_text() for label in axes.get_yticklabels()] == list(metrics)
    bars = np.array([segment[:, 0] for segment in axes.collections[0].get_segments()])
    np.testing.assert_allclose(bars[0], jm.delta_method(jm.accuracy, COUNTS[0])[1:3], rtol=1e-6)
    low_on_screen, high_on_screen = axes.get_ylim()
    assert low_on_screen > high_on_screen  # the first on top

    paired = jm.paired_confusion_matrix(
        [0, 0, 1, 1] * 25, [0, 0, 1, 1] * 20 + [1] * 20, [0, 1, 1, 0] * 25, num_classes=2
    )
    together = lambda counts: {name: metric(counts) for name, metric in metrics.items()}  # noqa: E731
    both = jm.compare(0, together, paired, method="delta")
    axes = plots.difference(both, rope=0.05)
    assert (
        axes.texts[0].get_text() == f"P(A > B) = {float(both['accuracy'].probability_better):.3f}"
    )
    axes.figure.savefig(tmp_path / "difference.png")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.confusion_matrix(np.ones((2, 3))), r"counts must be one matrix \(K, K\)"),
        (
            lambda: plots.confusion_matrix([[1, -1], [0, 2]]),
            "counts must be finite and not negative",
        ),
        (lambda: plots.confusion_matrix(np.eye(2), numbers="percent"), "numbers must be"),  # type: ignore[arg-type]
        (
            lambda: plots.confusion_matrix(np.eye(2), class_names=["a"]),
            "class_names must be one name each: expected 2, got 1",
        ),
        (lambda: plots.intervals({"a": 1}), "dict of Estimates"),  # type: ignore[dict-item]
        (lambda: plots.intervals({}), "at least one"),
        (
            lambda: plots.intervals({"a": jm.delta_method(jm.recall, COUNTS[0])}),
            "of one number each",
        ),
        (lambda: plots.difference({"a": 1}), "dict of Comparisons"),  # type: ignore[dict-item]
    ],
)
def test_mistakes_of_tables_are_named(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()
