"""Pictures: what is drawn is what was computed, and mistakes are named."""

from typing import Any

import jax
import numpy as np
import pytest

import jaxmetrics as jm
from jaxmetrics import plots

COUNTS = np.array([[[90, 10], [5, 95]], [[9, 1], [0, 10]], [[50, 50], [40, 60]]])


def test_violins_show_density_interval_and_mean(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")
    samples = jm.balanced_accuracy_posterior(COUNTS).sample(jax.random.key(0), (40,))
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
