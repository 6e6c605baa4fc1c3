"""Pictures: what is drawn is what was computed, and mistakes are named."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

import jaxmetrics as jm
from jaxmetrics import plots
from jaxmetrics._text.wording import probability
from jaxmetrics.plots import diagrams
from tests.oracles import fields_of

pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Truth, calibrated probabilities, and how often each example is drawn in 200 bootstrap
    samples.
    """
    rng = np.random.default_rng(0)
    prob = rng.beta(2, 3, 400).astype(np.float32)
    return (rng.random(400) < prob).astype(int), prob, rng.multinomial(400, np.ones(400) / 400, 200)


Y, PROB, WEIGHTS = problem()
COUNTS = np.array([[[90, 10], [5, 95]], [[9, 1], [0, 10]], [[50, 50], [40, 60]]])
ACCURACY = jm.interval(jm.accuracy, COUNTS[0], method=jm.Delta())
ROC, ROCS = (jm.roc_curve(Y, PROB, sample_weight=w) for w in (None, WEIGHTS))
RECALLS = jm.proportion_interval(np.diagonal(COUNTS[0]), COUNTS[0].sum(1), method="likelihood")
PRECISIONS = jm.precision_recall_curve(Y, PROB)
CALIBRATION = jm.calibration_curve(Y, PROB)


@pytest.fixture(autouse=True)
def draw_figures() -> Iterator[None]:
    """Draw all figures of a test: of a name that is taken for a formula, drawing raises."""
    yield
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        pyplot.figure(number).canvas.draw()


def texts_of(texts: Any) -> list[str]:
    return [text.get_text() for text in texts]


def segments_of(bars: Any, axis: int) -> np.ndarray:
    return np.array([segment[:, axis] for segment in bars.get_segments()])


def test_nothing_is_compiled_for_data_of_the_host(programs: list[str]) -> None:
    plots.balanced_accuracy_violin(COUNTS)
    plots.confusion_matrix(COUNTS[0])
    plots.intervals({"accuracy": ACCURACY})
    plots.roc(ROC, replicates=ROCS)
    plots.precision_recall(PRECISIONS)
    plots.reliability(CALIBRATION)
    assert programs == []


def test_new_axes_are_those_of_pyplot() -> None:
    from matplotlib import pyplot

    for draw in (lambda: plots.roc(Y, PROB), lambda: plots.confusion_matrix(COUNTS[0])):
        axes = draw()
        assert pyplot.gcf() is axes.figure
        assert axes in pyplot.gcf().axes
    first = plots.intervals({"accuracy": ACCURACY})
    assert plots.reliability(Y, PROB, ax=first) is first
    assert len(pyplot.get_fignums()) == 3


def test_a_page_leaves_no_figure_to_pyplot() -> None:
    from matplotlib import pyplot

    assert "<svg" in jm.Report.from_counts(COUNTS[0]).to_html()
    assert pyplot.get_fignums() == []


def test_violins_show_density_interval_and_mean() -> None:
    samples = jm.balanced_accuracy_posterior(COUNTS).sample(0, (40,))
    axes: Any = plots.balanced_accuracy_violin(COUNTS, ["A", "B", "C"], samples=samples)
    posterior = jm.balanced_accuracy_posterior(COUNTS)
    assert texts_of(axes.get_xticklabels()) == ["A", "B", "C"]
    assert axes.get_ylabel() == "balanced accuracy"
    for i, outline in enumerate(axes.collections[:3]):
        x, y = outline.get_paths()[0].vertices.T
        widest = float(y[x.argmax()])
        assert_allclose(widest, posterior.mode[i], atol=0.02 * float(np.ptp(y)))
        assert_allclose(x.max() - x.min(), 0.8, rtol=1e-6)
    bars = segments_of(axes.collections[3], 1)
    assert_allclose(bars.T, posterior.interval(0.95), rtol=1e-6)
    dots = next(line for line in axes.lines if line.get_label() == "posterior mean")
    assert_allclose(dots.get_ydata(), posterior.mean, rtol=1e-6)
    assert plots.balanced_accuracy_violin(COUNTS[0], ax=axes) is axes


def test_curves_with_bands() -> None:
    axes: Any = plots.roc(ROC, replicates=ROCS, name="A")
    assert axes.lines[0].get_label() == f"A, AUC {float(jm.roc_auc(Y, PROB)):.3f}"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("false positive rate", "true positive rate")
    assert_allclose(axes.lines[0].get_ydata(), ROC.tpr)
    rates = [np.interp(0.2, x, z) for x, z in zip(ROCS.fpr, ROCS.tpr, strict=True)]
    assert_allclose(band_of(axes, 0.2), np.quantile(rates, [0.025, 0.975]), atol=1e-6)
    assert plots.roc(jm.roc_curve(Y, -PROB), name="B", ax=axes) is axes


def test_bands_of_score_tests() -> None:
    """The recalls and precisions that the test does not reject, by a search among 4001."""
    y, score, z = Y[:60], PROB[:60], 1.959964
    m, n = y.sum(), (1 - y).sum()
    fine = np.linspace(0, 1, 4001)
    # Between neighbouring thresholds, rates are mixed, as on the curve.
    steps = np.linspace(0, 1, 40)[:, None]
    fpr, tpr = (np.asarray(part) for part in jm.roc_curve(y, score)[:2])
    f, h = ((a[:-1] + steps * np.diff(a)).ravel()[:, None] for a in (fpr, tpr))
    roc: Any = plots.roc(y, score, band=True)
    curve: Any = plots.precision_recall(y, score, band=True)
    for at in (0.1, 0.3, 0.7):
        used = n * (f - at) ** 2 / (at * (1 - at))
        with np.errstate(divide="ignore", invalid="ignore"):
            recall = m * (h - fine) ** 2 / (fine * (1 - fine))
            share = at * (1 - fine) / (at * (1 - fine) + fine)
            expected, size = n * f / (n * f + m), n * f + m
            precision = size * (expected - share) ** 2 / (share * (1 - share))
        kept = fine[(used + recall <= z**2).any(0)]
        assert_allclose(band_of(roc, at), [kept[0], kept[-1]], atol=2e-3)
        used = m * (h - at) ** 2 / (at * (1 - at))
        kept = fine[(used + precision <= z**2).any(0)]
        assert_allclose(band_of(curve, at), [kept[0], kept[-1]], atol=4e-3)
    area, average = jm.delong_interval(y, score), jm.average_precision_interval(y, score)
    assert texts_of(roc.get_legend().get_texts()) == [f"AUC {area}", "95 % band", "chance"]
    assert curve.lines[0].get_label() == f"average precision {average}, chance {y.mean():.3f}"


def test_bands_contain_the_truth() -> None:
    """In 95 % of 200 data sets with few negatives; 0.9 is three standard errors below."""
    rng, at = np.random.default_rng(0), np.array([0.05, 0.2, 0.5, 0.8])
    truth = special.ndtr(1.5 + special.ndtri(at))
    y = np.repeat([0, 1], [15, 60])
    curves = [jm.roc_curve(y, rng.normal(size=75) + 1.5 * y) for _ in range(200)]
    limits = [diagrams.score_limits(x.fpr, 15, x.tpr, 60, 0.95) for x in curves]
    low, high = np.array(limits)[..., np.rint(300 * at).astype(int)].swapaxes(0, 1)
    covered = ((low <= truth) & (truth <= high)).mean(0)
    assert (covered > 0.9).all()
    assert (high - low).mean() < 0.6


def test_precision_and_recall_with_a_band() -> None:
    replicates = jm.precision_recall_curve(Y, PROB, sample_weight=WEIGHTS)
    axes: Any = plots.precision_recall(PRECISIONS, replicates=replicates)
    average = float(jm.average_precision(Y, PROB))
    assert axes.lines[0].get_label() == f"average precision {average:.3f}, chance {Y.mean():.3f}"
    assert len(axes.collections) == 1


def band_of(axes: Any, x: float) -> np.ndarray:
    """The ends of the band of a picture at x."""
    outline = axes.collections[0].get_paths()[0].vertices
    y = outline[np.isclose(outline[:, 0], x), 1]
    return np.array([y.min(), y.max()])


def test_reliability_diagram() -> None:
    curve = jm.calibration_curve(Y, PROB)
    found = np.isfinite(curve.frequency)
    axes: Any = plots.reliability(curve)
    assert_allclose(axes.lines[1].get_xdata(), np.asarray(curve.mean_prob)[found])
    bars = segments_of(axes.collections[0], 1)
    assert_allclose(bars.T, np.asarray([curve.low, curve.high])[:, found])
    assert_allclose(sum(bar.get_height() for bar in axes.patches), 1, rtol=1e-6)
    replicates = jm.calibration_curve(Y, PROB, sample_weight=WEIGHTS)
    axes = plots.reliability(curve, replicates=replicates, name="A")
    assert axes.lines[1].get_label() == "A"
    assert "95 % band" in texts_of(axes.get_legend().get_texts())
    axes = plots.reliability(Y, PROB, band=True)
    error = jm.calibration_interval(Y, PROB, num_bins=10)
    assert axes.lines[1].get_label() == f"calibration error {error}"
    assert_allclose(band_of(axes, curve.mean_prob[3]), [curve.low[3], curve.high[3]])
    isotonic = jm.calibration_curve(Y, PROB, strategy="isotonic")
    axes = plots.reliability(isotonic)
    line = axes.lines[1]
    drawn = np.interp(isotonic.mean_prob, line.get_xdata(), line.get_ydata())
    assert_allclose(drawn, isotonic.frequency, atol=1e-12)
    assert len(line.get_xdata()) < len(Y)
    assert len(axes.collections) == 1


def test_confusion_matrix_in_colours_and_numbers() -> None:
    counts = np.array([[90, 10, 0], [5, 20, 0], [0, 0, 0]])
    axes: Any = plots.confusion_matrix(counts, class_names=["cat", "dog", "fish"])
    wrong, right = axes.images
    expected = np.array([[9.0, 1, 0], [2, 8, 0], [0, 0, 0]]) / 10
    for image, shown in ((wrong, ~np.eye(3, dtype=bool)), (right, np.eye(3, dtype=bool))):
        assert_allclose(image.get_array().data, expected)
        assert_array_equal(~image.get_array().mask, shown)
    # Mistakes have a scale of their own, up to the largest share of them, or as given.
    assert (wrong.get_clim(), right.get_clim()) == ((0, 0.2), (0, 1))
    scaled: Any = plots.confusion_matrix(counts, scale=0.5)
    assert [image.get_clim() for image in scaled.images] == [(0, 0.5), (0, 1)]
    assert plots.confusion_matrix(np.eye(2)).images[0].get_clim() == (0, 1)
    texts = {text.get_position(): text.get_text() for text in axes.texts}
    assert texts[1, 0] == "10"  # x is the predicted class
    assert texts_of(axes.get_yticklabels()) == ["cat", "dog", "fish"]
    assert not plots.confusion_matrix(np.eye(21)).texts
    assert plots.confusion_matrix([[0.25, 1.0], [2.0, 3.0]]).texts[0].get_text() == "0.25"
    shares: Any = plots.confusion_matrix([[1, 3], [0, 0]], numbers="shares", colorbar=False)
    assert texts_of(shares.texts) == ["25.0", "75.0", "0", "0"]
    assert [image.colorbar for image in shares.images] == [None, None]
    many: Any = plots.confusion_matrix(np.eye(120))
    assert texts_of(many.get_xticklabels()) == [str(i) for i in range(0, 120, 3)]


def test_estimates_and_differences_below_each_other() -> None:
    metrics = {"accuracy": jm.accuracy, "macro F1": jm.macro(jm.f1)}
    together = lambda counts: {name: metric(counts) for name, metric in metrics.items()}
    axes: Any = plots.intervals(jm.interval(together, COUNTS[0], method=jm.Delta()))
    assert texts_of(axes.get_yticklabels()) == list(metrics)
    bars = segments_of(axes.collections[0], 0)
    assert_allclose(bars[0], fields_of(ACCURACY)[1:3], rtol=1e-6)
    low_on_screen, high_on_screen = axes.get_ylim()
    assert low_on_screen > high_on_screen  # the first on top

    paired = jm.paired_confusion_matrix(
        [0, 0, 1, 1] * 25, [0, 0, 1, 1] * 20 + [1] * 20, [0, 1, 1, 0] * 25, num_classes=2
    )
    both: Any = jm.compare(together, paired, method=jm.Delta())
    axes = plots.difference(both, rope=0.05)
    assert min(float(x.probability_better) for x in both.values()) > 0.999
    assert texts_of(axes.texts) == ["confidence A > B", *["> 0.999"] * len(both)]


def test_data_are_drawn_as_their_curves_are(programs: list[str]) -> None:
    for draw, curve_of in (
        (plots.roc, jm.roc_curve),
        (plots.precision_recall, jm.precision_recall_curve),
        (plots.reliability, jm.calibration_curve),
    ):
        ours: Any = draw(Y.tolist(), PROB.tolist(), name="A")
        theirs: Any = draw(curve_of(Y.tolist(), PROB.tolist()), name="A")
        for a, b in zip(ours.lines, theirs.lines, strict=True):
            assert_array_equal(a.get_xydata(), b.get_xydata())
        assert ours.lines[0].get_label() == theirs.lines[0].get_label()
    assert programs == []


PETS = ["dog", "cat", "dog", "cat", "cat"], ["dog", "cat", "cat", "cat", "dog"]


@pytest.mark.parametrize(
    ("labels", "names", "shown", "cells"),
    [
        (PETS, None, "cat dog", "2 1 1 1"),
        (PETS, ["dog", "cat", "cow"], "dog cat cow", "1 1 0 1 2 0 0 0 0"),
        (np.array([[0, 1, 3], [0, 3, 3]]), None, "0 1 3", "1 0 0 0 0 1 0 0 1"),  # as in reports
        (([0, 1, 1], [0, 1, 0]), ["no", "yes"], "no yes", "1 0 1 1"),
        (([-1, 1, 1, -100], [-1, 1, -1, 1]), [-1, 1], "-1 1", "1 0 1 1"),
    ],
)
def test_labels_are_counted(
    labels: Any, names: Any, shown: str, cells: str, programs: list[str]
) -> None:
    axes: Any = plots.confusion_matrix(*labels, class_names=names)
    for texts in (axes.get_xticklabels(), axes.get_yticklabels()):
        assert texts_of(texts) == shown.split()
    assert texts_of(axes.texts) == cells.split()
    assert programs == []


def test_intervals_of_a_batch_and_of_a_report() -> None:
    axes: Any = plots.intervals(RECALLS, ["cat", "dog"])
    bars = segments_of(axes.collections[0], 0)
    assert_array_equal(bars, np.stack([RECALLS.low, RECALLS.high], -1))
    assert texts_of(axes.get_yticklabels()) == ["cat", "dog"]
    report = jm.Report.from_counts(COUNTS[0], class_names=["cat", "dog"])
    same: Any = plots.intervals(report["recall"])
    assert_allclose([segment[:, 0] for segment in same.collections[0].get_segments()], bars)
    alone: Any = plots.intervals({"rate": report["no_information_rate"]})  # which has no interval
    assert alone.lines[0].get_xdata() == [report["no_information_rate"].value]
    one: Any = plots.intervals(jm.proportion_interval(9, 10))
    assert texts_of(one.get_yticklabels()) == [""]


def test_a_single_comparison() -> None:
    comparison = jm.compare_unpaired(jm.accuracy, COUNTS[0], [[80, 20], [9, 91]])
    axes: Any = plots.difference(comparison)
    assert axes.texts[1].get_text() == probability(comparison.probability_better)
    assert texts_of(axes.get_yticklabels()) == [""]


def test_groups_and_tasks() -> None:
    """The groups in the given order, and the value of all examples below."""
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b", "c"], 400)
    y_pred = np.where(rng.random(400) < np.select([group == "b"], [0.2], 0.9), Y, 1 - Y)
    report: Any = jm.report(Y, y_pred, groups=group)
    values = {name: x["recall"]["1"] for name, x in report.groups.items()}
    disparity = report.disparities["recall", "1"]
    total = report["recall"]["1"]
    axes: Any = plots.groups(values, total, largest_difference=disparity, xlabel="recall")
    assert texts_of(axes.get_yticklabels()) == [*values, "(all)"]
    ends = [[x.low, x.high] for x in (*values.values(), total)]
    assert_allclose(segments_of(axes.collections[0], 0), ends)
    assert axes.lines[1].get_xdata() == [total.value, total.value]
    assert axes.get_title() == f"largest difference {disparity}"
    scores = jm.score_report(y_pred == Y, Y == Y, groups=group, bounds=(0, 1))
    compared: Any = plots.groups(scores["group"], scores["mean"])
    assert texts_of(compared.get_yticklabels()) == [*"abc", "(all)"]
    means = scores["mean"].difference
    assert_allclose(segments_of(compared.collections[0], 0)[-1], [means.low, means.high])
    falling = {f"{i}": jm.proportion_interval(60 - i, 60) for i in range(60)}
    many: Any = plots.groups(falling, total)
    assert many.get_title() == "the 50 least of 60"
    assert texts_of(many.get_yticklabels()) == [*map(str, range(10, 60)), "(all)"]


def test_the_legend_is_outside_of_the_axes() -> None:
    from matplotlib import pyplot

    alone: Any = [
        plots.roc(Y, PROB, band=True),
        plots.balanced_accuracy_violin(COUNTS),
        plots.leaderboard(board_of(7, 300)),
        plots.reliability(Y, PROB, ax=pyplot.subplots(figsize=(5, 5))[1]),
    ]
    for axes in alone:
        axes.figure.canvas.draw()
        legend, box = axes.get_legend().get_window_extent(), axes.get_window_extent()
        assert 0 <= legend.y0 < legend.y1 < axes.xaxis.get_tightbbox().y0 < box.y0


def board_of(size: int, n: int) -> jm.Leaderboard:
    """Classifiers in three groups, which differ between them only."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, n)
    accuracies = np.repeat([0.9, 0.7, 0.4], -(-size // 3))[:size]
    preds = np.where(rng.random((size, n)) < accuracies[:, None], truth, (truth + 1) % 3)
    return jm.leaderboard(jm.accuracy, truth, preds, method=jm.Delta())


def test_a_leaderboard_by_tiers_in_words() -> None:
    board, names = board_of(7, 3000), [*"ABCDEFG"]
    assert board.tiers.tolist() == [1, 1, 1, 2, 2, 2, 3]
    axes: Any = plots.leaderboard(board, names, xlabel="accuracy")
    shown = texts_of(axes.get_yticklabels())
    order = np.lexsort((-board.estimates.value, board.tiers))
    assert shown == [names[i] for i in order]
    assert shown[0] == names[int(board.winner)]
    bars = segments_of(axes.collections[0], 0)
    assert_array_equal(bars[:, 0], board.estimates.low[order])
    told = [" ".join(text.get_text().split()) for text in axes.texts]
    first, second = ("{}, {} and {}".format(*shown[i : i + 3]) for i in (0, 3))
    assert told == [
        f"{first} cannot be told apart.",
        f"{second} cannot be told apart; each is shown to be worse than one above.",
        "G is shown to be worse than one above.",
    ]
    diamond = next(line for line in axes.lines if line.get_marker() == "d")
    assert diamond.get_xdata() == [board.winner_estimate.value]


def test_the_first_of_many_classifiers_are_drawn() -> None:
    axes: Any = plots.leaderboard(board_of(60, 300))
    assert len(axes.get_yticklabels()) == 50
    assert axes.get_title() == "the first 50 of 60"


ODD_NAMES = ["$\\frac{", "_hidden", "a\x1b[31m\n", "#010203", "back\\slash", "z" * 1_000_000]


def test_names_are_drawn_as_they_are() -> None:
    """Neither a formula, nor a colour, nor more than fits."""
    shown = [*ODD_NAMES[:2], r"a\x1b[31m\n", *ODD_NAMES[3:5]]
    matrix: Any = plots.confusion_matrix(np.eye(6), class_names=ODD_NAMES)
    recalls = jm.proportion_interval(np.arange(6), np.full(6, 9))
    forest: Any = plots.intervals(recalls, ODD_NAMES)
    violin: Any = plots.balanced_accuracy_violin(COUNTS[[0] * 6], ODD_NAMES)
    for labels in (matrix.get_xticklabels(), forest.get_yticklabels(), violin.get_xticklabels()):
        assert texts_of(labels)[:5] == shown
        assert max(len(label.get_text()) for label in labels) <= 40
    curves: Any = None
    for name in ODD_NAMES:
        curves = plots.roc(Y, PROB, name=name, ax=curves)
    texts = [text.get_text().strip() for text in curves.get_legend().get_texts()]
    assert [text.split(", AUC")[0] for text in texts[:5]] == shown
    assert texts[-1] == "chance"
    compared = jm.compare_unpaired(jm.accuracy, COUNTS[0], COUNTS[2])
    plots.difference(dict.fromkeys(ODD_NAMES, compared))
    plots.leaderboard(board_of(6, 300), ODD_NAMES)


def test_one_entry_explains_each_line() -> None:
    axes: Any = None
    for i in range(3):
        axes = plots.precision_recall((Y + (i == 2)) % 2, PROB, name=f"{i}", ax=axes)
    texts = texts_of(axes.get_legend().get_texts())
    assert len(texts) == 3
    assert [text.split("chance ")[1] for text in texts] == [
        f"{Y.mean():.3f}",
        f"{Y.mean():.3f}",
        f"{1 - Y.mean():.3f}",
    ]


SINGLE = "curve must be the curve of a single classifier, without batch axes"
REFUSED: list[tuple[Any, ...]] = [
    # How it is called, and with which message it is refused.
    (plots.balanced_accuracy_violin, COUNTS, ["A"], "must have 3 names, got 1"),
    (plots.balanced_accuracy_violin, np.ones(3), "counts must have shape"),
    (plots.balanced_accuracy_violin, -COUNTS, "expected a count >= 0"),
    (
        plots.balanced_accuracy_violin,
        COUNTS,
        {"samples": np.ones((5, 2))},
        r"\(s, 3\), with s draws for each",
    ),
    (plots.balanced_accuracy_violin, COUNTS, {"level": 95}, "level"),
    (plots.roc, ROCS, SINGLE),
    (plots.roc, Y, np.stack([PROB, PROB]), SINGLE),
    (plots.roc, PRECISIONS, "curve must be a RocCurve, got PrecisionRecallCurve"),
    (plots.roc, [0, 1], "curve must be a RocCurve, got list"),
    (plots.roc, jm.roc_curve(np.ones(400, int), PROB), "contains NaN"),
    (plots.roc, ROC, {"replicates": ROC}, "one batch axis"),
    (plots.roc, ROC, {"band": True}, "from labels and scores: pass both, and no replicates"),
    (plots.reliability, Y, PROB, {"band": True, "replicates": CALIBRATION}, "no replicates"),
    (plots.groups, [1], "values must be a dict of Estimates"),
    (plots.groups, {}, "at least one Estimate"),
    (
        plots.reliability,
        jm.calibration_curve(Y, PROB, strategy="isotonic"),
        {"replicates": CALIBRATION},
        "already has a confidence band",
    ),
    (
        plots.confusion_matrix,
        np.ones((2, 3)),
        r"counts must be a single confusion matrix of shape \(K, K\)",
    ),
    (plots.confusion_matrix, [[1, -1], [0, 2]], "counts must be finite and not negative"),
    (plots.confusion_matrix, np.eye(2), {"numbers": "percent"}, "numbers must be"),
    (plots.confusion_matrix, np.eye(2), {"scale": 0}, "scale must be a fraction above 0"),
    (plots.confusion_matrix, np.eye(2), {"class_names": ["a"]}, "must have 2 names, got 1"),
    (
        plots.confusion_matrix,
        np.eye(2),
        ["a", "b"],
        "counts as the only positional argument, and pass the names of the classes as class_n",
    ),
    (plots.confusion_matrix, [-1], [-1], "must contain at least one example"),
    (
        plots.confusion_matrix,
        ["cat", "dog"],
        ["cat", "cow"],
        {"class_names": ["cat", "dog"]},
        r"y_pred\[1\] is 'cow', which is not one of class_names",
    ),
    (plots.intervals, {"a": 1}, {}, "dict of Estimates"),
    (plots.intervals, {}, {}, "at least one Estimate"),
    (
        plots.intervals,
        {"a": jm.interval(jm.recall, COUNTS[0], method=jm.Delta())},
        {},
        "each Estimate must be a single number",
    ),
    (plots.intervals, RECALLS, ["cat"], "names must have 2 names, got 1"),
    (
        plots.intervals,
        jm.Estimate(*np.zeros((5, 2, 2))),
        "each Estimate must be a single number",
    ),
    (plots.difference, {"a": 1}, {}, "dict of Comparisons"),
    (plots.leaderboard, RECALLS, "board must be a Leaderboard, got Estimate"),
]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[-1])
def test_refusals(row: Any) -> None:
    draw, *arguments, message = row
    options = arguments.pop() if len(arguments) > 1 and isinstance(arguments[-1], dict) else {}
    with pytest.raises((TypeError, ValueError), match=message):
        draw(*arguments, **options)


MASKED: Any = np.ma.array([[1, 0], [1, 1]], mask=[[False, True], [False, False]])


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: plots.confusion_matrix(x),
        lambda x: plots.confusion_matrix(x[0], [0, 1]),
        lambda x: plots.confusion_matrix([0, 1], x[0]),
        lambda x: plots.balanced_accuracy_violin(x),
        lambda x: plots.balanced_accuracy_violin([[5, 1], [2, 7]], samples=x[0]),
        lambda x: plots.intervals(jm.Estimate(*[x[0]] * 5)),
        lambda x: plots.roc([0, 1], x[0]),
        lambda x: plots.roc(x[0], [0.1, 0.9]),
        lambda x: plots.precision_recall([0, 1], x[0]),
        lambda x: plots.reliability([0, 1], x[0]),
    ],
)
def test_masks_are_not_forgotten(draw: Any) -> None:
    with pytest.raises(TypeError, match="is a masked array: pass "):
        draw(MASKED)
    draw(np.ma.array(MASKED.data))  # nothing in it is masked
