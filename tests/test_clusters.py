"""Clusters of examples: their numbers, and intervals that take them as the independent units."""

import datetime
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import jaxmetrics as jm
from jaxmetrics._places.compilation import compiled
from jaxmetrics.betas.student import student_quantile, student_tails
from jaxmetrics.clusters import numbered_clusters, sums_by_cluster, warn_of_clusters
from tests.estimates import assert_close, ends, parts
from tests.test_intervals import weighted_mean


@pytest.mark.parametrize(
    "ids",
    [
        [7, -3, 7, 10**12, -3],
        ["b", "nan", "b", "", "nan"],
        [(1, "x"), (2, "x"), (1, "x"), (1, "y"), (2, "x")],
        ["a", 1, "a", (1,), 1],
        np.array(["2024-01-02", "2024-01-01", "2024-01-02", "2025-01-01", "2024-01-01"], "M8[D]"),
        [datetime.date(2024, 1, day) for day in (2, 1, 2, 3, 1)],
        jnp.array([5, 4, 5, 3, 4]),
    ],
    ids=repr,
)
def test_clusters_have_ids_of_any_kind(ids: Any) -> None:
    numbers, size = numbered_clusters(ids, (5,))
    assert numbers.dtype == np.int32
    assert size == 3
    assert sorted(set(numbers.tolist())) == [0, 1, 2]
    assert numbers[0] == numbers[2] != numbers[1] == numbers[4] != numbers[3] != numbers[0]


def test_clusters_are_numbered_in_each_batch_entry() -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 9, (2, 3, 12)) * [[[10], [1], [-1]]]
    numbers, size = numbered_clusters(ids, (4, 2, 3, 12))
    most = 0
    for row, found in zip(ids.reshape(-1, 12), numbers.reshape(-1, 12), strict=True):
        expected = np.unique(row, return_inverse=True)[1]
        assert_array_equal(found, expected)
        most = max(most, expected.max() + 1)
    assert size == most
    values = rng.normal(size=(4, 2, 3, 12))
    expected = (values[..., None] * (numbers[..., None] == np.arange(size))).sum(-2)
    assert_allclose(sums_by_cluster(values, numbers, size), expected, atol=1e-12)
    on_device = jax.jit(lambda x: sums_by_cluster(x, numbers, size))(jnp.asarray(values))
    assert_allclose(on_device, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (["a", None, "b"], ValueError, r"clusters\[1\] is missing \(None\)"),
        (["a", "b", np.nan], ValueError, r"clusters\[2\] is missing \(nan\)"),
        ([1.0, np.nan, 2.0], ValueError, r"clusters\[1\] is missing \(nan\)"),
        (np.array(["2024", "NaT", "2025"], "M8[D]"), ValueError, r"clusters\[1\] is missing"),
        ([1, 2], ValueError, r"shape \(n,\) = \(3,\), with one id for each example, got \(2,\)"),
        (np.ones((3, 1), int), ValueError, r"got \(3, 1\)"),
        ([{1}, {2}, {1}], TypeError, "hashable"),
    ],
)
def test_what_is_no_id_is_refused(ids: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        numbered_clusters(ids, (3,))


def test_ids_that_jit_hides_are_refused() -> None:
    with pytest.raises(TypeError, match="Use an array of ids that is defined outside"):
        jax.jit(lambda ids: numbered_clusters(ids, (3,))[0])(jnp.arange(3))


def test_students_distribution() -> None:
    """From half a degree of freedom on, to rounding; on the device in float32."""
    freedom = np.array([0, 0.5, 1, 2, 3, 7.5, 19, 1e3, 1e6])
    level = np.array([[0.5], [0.8], [0.95], [0.999]])
    z, t = stats.norm.ppf((1 + level) / 2), stats.t.ppf((1 + level) / 2, freedom)
    p = np.where(freedom > 0, 1 - level, np.nan)
    assert_allclose(student_quantile(z, freedom), t, rtol=1e-12)
    assert_allclose(student_tails(-t, freedom), p, rtol=1e-12)
    assert_allclose(compiled(student_quantile)(jnp.asarray(z), freedom), t, rtol=2e-5)
    assert_allclose(compiled(student_tails)(jnp.asarray(-t), freedom), p, rtol=2e-3)


def test_two_values_have_one_degree_of_freedom() -> None:
    x = np.array([1.0, 4.0])
    expected = stats.ttest_1samp(x, 0).confidence_interval(0.95)
    assert_allclose(ends(jm.mean_interval(x)), expected, rtol=1e-12)
    # One of two positives falls below both negatives: the shares of the positives differ by 1 and
    # 0, those of the negatives both by 1/2. The statistic is 1. With 1/4 added to the sums of
    # squares, the variances are 3/16 and 1/16, and Welch's degrees of freedom are 1.6.
    result = jm.delong([0, 0, 1, 1], [1.0, 2, 3, 4], [1.0, 2, 0, 4])
    expected = 1, 2 * stats.t.sf(1, 1.6)
    assert_allclose([result.statistic, result.p_value], expected, rtol=1e-12)


def test_few_clusters_give_a_warning() -> None:
    warn_of_clusters(np.ones(20))
    with pytest.warns(UserWarning, match="with 19 clusters, confidence intervals"):
        warn_of_clusters(np.ones(19))


@pytest.mark.parametrize("is_perfect", [False, True])
def test_clusters_without_a_class_do_not_count_for_its_recall(is_perfect: bool) -> None:
    """Intervals of rates are those of proportions of the examples on which they depend."""
    rng = np.random.default_rng(5)
    counts = rng.poisson(2, (50, 3, 3)) + 2 * np.eye(3, dtype=int)
    counts[25:, 1] = 0
    if is_perfect:
        counts[:, 1, [0, 2]] = 0
    right, support = counts[:, 1, 1], counts[:, 1].sum(-1)
    expected = jm.proportion_interval(right, support, method="likelihood", cluster_axis=0)
    found = jm.interval(jm.macro(jm.recall, classes=[1]), counts, cluster_axis=0)
    assert_allclose(ends(found), ends(expected), rtol=1e-6)
    assert_allclose(found.standard_error, expected.standard_error, rtol=1e-9)


def test_a_report_of_groups_has_one_warning_of_few_clusters() -> None:
    rng = np.random.default_rng(0)
    y, patients = rng.integers(0, 3, 1200), np.repeat(np.arange(60), 20)
    groups = np.array(["Porto", "Lisbon", "Faro"])[np.searchsorted([4, 23], patients, "right")]
    with pytest.warns(UserWarning, match="with few clusters of a group or of a class in") as caught:
        jm.report(y, (y + (rng.random(1200) < 0.2)) % 3, clusters=patients, groups=groups)
    (warning,) = caught
    assert "(Porto: 4, Lisbon: 19), confidence intervals may be too narrow" in str(warning.message)


def test_unequal_clusters_give_a_warning() -> None:
    """Of sizes 1 and 10 in turn there is none; one cluster of 100 beside 39 of 1 counts as 1.9."""
    warn_of_clusters(np.tile([1, 10], 20))
    with pytest.warns(UserWarning, match="40 clusters .* effective number is 1.92"):
        warn_of_clusters(np.array([[1] * 40, [1] * 39 + [100]]))
    ids = np.append(np.arange(39), np.full(100, 39))
    values = np.random.default_rng(0).random(139)
    counts = jm.confusion_matrix(ids % 2, ids % 3 % 2, num_classes=2, groups=ids)
    for call in (
        lambda: jm.mean_interval(values, clusters=ids),
        lambda: jm.delong_interval(ids % 2, values, clusters=ids),
        lambda: jm.calibration_interval(ids % 2, values, clusters=ids),
        lambda: jm.bootstrap_examples(0, np.mean, values, clusters=ids, num_samples=20),
        lambda: jm.interval(jm.accuracy, counts, cluster_axis=-3),
        lambda: jm.compare_predictions(
            jm.accuracy, ids % 2, ids % 3 % 2, ids % 5 % 2, num_classes=2, clusters=ids
        ),
    ):
        with pytest.warns(
            UserWarning, match="such unequal sizes that their effective number is 1.92"
        ) as caught:
            call()
        assert len(caught) == 1
        assert caught[0].filename == __file__


def clustered_scores(
    seed: int, size: tuple[int, ...], ids: np.ndarray, icc: float, area: float
) -> tuple[np.ndarray, np.ndarray]:
    """Truth and scores whose effects of clusters differ between the classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, (*size, len(ids)))
    effects = rng.normal(size=(2, *size, ids.max() + 1))[..., ids]
    noise = np.sqrt(icc) * np.where(truth == 1, *effects)
    noise = noise + np.sqrt(1 - icc) * rng.normal(size=truth.shape)
    return truth, stats.norm.ppf(area) * np.sqrt(2) * truth + noise


# Of two readers of magnetic resonance angiograms of carotid arteries, by patient: truth and two
# scores of each artery. Masaryk et al. (1991), Radiology 179, the example of Obuchowski (1997).
ANGIOGRAMS = """
1 87 87 1 79 83; 1 88 94 1 95 93; 1 100 100 1 68 79; 1 65 61 1 89 91; 1 97 97 1 100 100;
1 100 99 1 89 88; 1 77 77; 1 94 89 0 45 44; 1 89 92 0 -11 -17; 1 95 91 0 30 14;
1 95 95 0 10 -122; 1 100 100 0 19 -3; 1 75 75; 0 70 73 1 70 81; 0 26 27 1 86 93;
0 0 8 1 65 70; 0 6 23 1 100 100; 0 76 79 1 96 95; 0 44 55 1 100 100; 0 73 67 1 97 94;
1 85 86; 0 58 60 1 100 99; 0 -2 -2 1 100 100; 0 -3 -14 0 0 -11; 0 47 -3 0 -94 -90;
0 -16 17 0 75 85; 0 5 -22 0 -1 -14; 0 -6 -52; 0 37 38 0 47 35; 0 42 40 0 4 6;
0 55 23 0 55 45; 0 4 -87 0 -13 -65; 0 49 24 0 35 9; 0 53 66; 0 2 -15; 0 -48 -78
"""


def test_areas_of_clusters_as_published() -> None:
    """Their figures, and the parts S10, S01 and S11 from which these were made."""
    patients = [np.array(row.split(), int).reshape(-1, 3) for row in ANGIOGRAMS.split(";")]
    truth, first, second = np.concatenate(patients).T
    ids = [f"patient {i}" for i, row in enumerate(patients) for _ in row]
    result = jm.delong(truth, second, first, clusters=ids)
    assert_allclose([result.b.value, result.a.value], [0.9837, 0.9852], atol=5e-5)
    of_first = 0.0013151307 / 29 + 0.0022375873 / 36 + 2 * 0.0051785478 / (29 * 36)
    of_second = 0.0009284122 / 29 + 0.0022598583 / 36 - 2 * 0.0005015760 / (29 * 36)
    of_both = 0.0008484357 / 29 + 0.0019241250 / 36 + (0.0028648340 - 0.0015136931) / (29 * 36)
    expected = np.sqrt([of_first, of_second, of_first + of_second - 2 * of_both])
    assert_allclose(expected, [0.0108, 0.0097, 0.0066], atol=5e-5)
    found = [x.standard_error for x in (result.b, result.a, result.difference)]
    assert_allclose(found, expected, rtol=0.02)  # those of the jackknife are larger
    assert_allclose(result.difference.value, 0.0014, atol=5e-5)
    assert_allclose(result.p_value, 0.8271, atol=5e-3)  # by the normal distribution
    for reader, score in ((result.b, first), (result.a, second)):
        alone = jm.delong_interval(truth, score, clusters=ids)
        assert_close(reader, alone)


def test_clusters_of_more_than_127_examples_on_the_device() -> None:
    """Their sizes are beyond int8, in which truth came."""
    rng = np.random.default_rng(0)
    ids, truth = rng.integers(0, 20, 6000), rng.integers(0, 2, 6000).astype(np.int8)
    score = (rng.random(6000) + 0.3 * truth + ids / 40).astype(np.float32)
    host = jm.delong_interval(truth, score, clusters=ids)
    device = jm.delong_interval(jnp.asarray(truth), jnp.asarray(score), clusters=ids)
    assert_close(device, host, 1e-5)


def test_clusters_of_one_example_are_none() -> None:
    """The error is DeLong's, and so is the interval, but for Student's quantile."""
    ids = np.arange(4000)
    truth, score = clustered_scores(3, (), ids, 0.0, 0.9)
    alone = jm.delong_interval(truth, score)
    result = jm.delong_interval(truth, score, clusters=ids)
    assert_allclose(result.standard_error, alone.standard_error, rtol=1e-10)
    assert_allclose(ends(result), ends(alone), rtol=1e-4)


def test_few_clusters_of_examples_that_count_give_a_warning() -> None:
    ids = np.repeat(np.arange(25), 4)
    truth, score = clustered_scores(9, (), ids, 0.3, 0.8)
    jm.delong_interval(truth, score, clusters=ids)
    with pytest.warns(UserWarning, match="with 15 clusters, confidence intervals") as caught:
        jm.delong_interval(truth, score, clusters=ids, where=ids < 15)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="with 2 clusters, confidence intervals"):
        of_one = jm.delong_interval([0, 0, 1, 1], [1, 2, 3, 4], clusters=[0, 1, 0, 0])
    assert of_one.value == 1
    assert np.isnan(parts(of_one)[1:]).all()
    with pytest.warns(UserWarning, match="with 15 clusters, confidence intervals") as caught:
        jm.delong(np.where(ids < 15, truth, -1), score, -score, clusters=ids)
    assert caught[0].filename == __file__


def test_means_of_clusters_from_the_definition() -> None:
    """The jackknife of clusters, weights and a mask; without clusters Student's interval."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(30), rng.integers(1, 8, 30))
    x, w = rng.exponential(size=len(ids)), rng.integers(0, 4, len(ids))
    keep = rng.random(len(ids)) < 0.8
    names = [f"patient {i}" for i in ids]
    nan = np.where(keep, x, np.nan)
    result = jm.mean_interval(nan, sample_weight=w, where=keep, clusters=names)
    w = w * keep
    used = np.unique(ids[w > 0])
    mean = (w * x).sum() / w.sum()
    left_out = np.array([np.average(x[ids != c], weights=w[ids != c]) for c in used])
    error = np.sqrt((len(used) - 1) / len(used) * ((left_out - mean) ** 2).sum())
    sizes = np.array([w[ids == c].sum() for c in used])
    t = stats.t.ppf(0.975, sizes.sum() ** 2 / (sizes**2).sum() - 1)
    expected = [mean, mean - t * error, mean + t * error, error]
    assert_allclose(parts(result), expected, rtol=1e-5)
    logarithmic = jm.mean_interval(
        nan, sample_weight=w, where=keep, clusters=names, transform="log"
    )
    expected = mean * np.exp([-t * error / mean, t * error / mean])
    assert_allclose(ends(logarithmic), expected, rtol=1e-5)

    alone = jm.mean_interval(x, level=0.9)
    interval = stats.ttest_1samp(x, 0).confidence_interval(0.9)
    assert_allclose(ends(alone), interval, rtol=1e-6)
    single = jm.mean_interval(x, level=0.9, clusters=np.arange(len(x)))
    assert_allclose(parts(single), parts(alone), rtol=1e-12)


def test_means_of_one_unit_have_no_interval() -> None:
    with pytest.warns(UserWarning, match="with 1 cluster, confidence intervals"):
        of_one = jm.mean_interval([1.0, 3.0], clusters=["a", "a"])
    assert of_one.value == 2
    assert np.isnan(parts(of_one)[1:]).all()
    assert np.isnan(parts(jm.mean_interval([1.0]))[1:]).all()
    assert np.isnan(parts(jm.mean_interval([]))).all()
    with pytest.raises(ValueError, match=r"values\[1\] is nan"):
        jm.mean_interval([1.0, np.nan])


@pytest.mark.parametrize("put", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("sizes", [(3, 3), (1, 7)])
def test_the_bootstrap_draws_whole_clusters(put: Any, sizes: tuple[int, int]) -> None:
    """By indices as by weights, whether or not clusters are of one size: the error is that of a
    ratio of totals, of 2000 replicates within five of its own errors; the acceleration, too, is
    that of whole clusters.
    """
    rng, numbers = np.random.default_rng(0), np.repeat(np.arange(40), sizes * 20)
    order = rng.permutation(len(numbers))
    x = (rng.exponential(size=40)[numbers] + 0.3 * rng.normal(size=len(numbers)))[order]
    ids = [f"patient {i}" for i in numbers[order]]
    mean = np.mean if put is np.asarray else jnp.mean
    by_weights = jm.bootstrap_examples(0, weighted_mean, put(x), resample="weights", clusters=ids)
    sums = np.bincount(numbers[order], x - x.mean())
    error = np.sqrt((sums**2).sum()) / len(x)
    assert_allclose(by_weights.standard_error, error, rtol=5 / np.sqrt(4000))
    if put is jnp.asarray and sizes == (1, 7):
        with pytest.raises(ValueError, match="between 1 and 7 examples"):
            jm.bootstrap_examples(0, mean, put(x), clusters=ids)
        return
    by_indices = jm.bootstrap_examples(0, mean, put(x), clusters=ids)
    assert isinstance(by_indices.value, jax.Array) == (put is jnp.asarray)
    assert_close(by_indices, by_weights, 1e-5)


@pytest.mark.parametrize("put", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("kind", ["bca", "percentile", "basic"])
def test_the_bootstrap_of_one_example_and_of_one_cluster(put: Any, kind: Any) -> None:
    """One example varies as little as many equal ones; one cluster does not show the variance."""
    found = jm.bootstrap_examples(0, weighted_mean, put([2.0]), resample="weights", kind=kind)
    assert_array_equal(parts(found), (2, 2, 2, 0))
    with pytest.warns(UserWarning, match="with 1 cluster"):
        found = jm.bootstrap_examples(
            0, weighted_mean, put([2.0, 3.0]), resample="weights", clusters=[7, 7], kind=kind
        )
    assert_array_equal(parts(found), (2.5, np.nan, np.nan, np.nan))


@pytest.mark.parametrize("put", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("statistic", [np.mean, jnp.mean, lambda x: x.mean()])
def test_weights_need_a_statistic_that_takes_them(put: Any, statistic: Any) -> None:
    with pytest.raises(TypeError, match="has no argument sample_weight"):
        jm.bootstrap_examples(0, statistic, put(np.arange(5.0)), resample="weights")


def test_calibration_of_examples_that_are_copies_is_that_of_one_of_each() -> None:
    prob, chance = np.random.default_rng(0).random((2, 4000))
    truth = (chance < prob).astype(int)
    one = jm.calibration_interval(truth, prob)
    of_one_each = jm.calibration_interval(truth, prob, clusters=np.arange(4000))
    assert_allclose(parts(of_one_each), parts(one), rtol=0.01)
    copies = np.repeat(truth, 5), np.repeat(prob, 5)
    result = jm.calibration_interval(*copies, clusters=np.repeat(np.arange(4000), 5))
    assert_allclose(parts(result), parts(one), rtol=0.05)  # a correlation of nearly 1
    assert jm.calibration_interval(*copies).low > 0


def test_equal_systems_keep_the_clusters_in_which_they_do_not_differ() -> None:
    """Their difference is 0, and so are its derivatives where both are right or both are wrong."""
    cluster, y_true = np.repeat(np.arange(40), 10), np.tile([0, 1], 200)
    a, b = y_true.copy(), y_true.copy()
    for i in (0, 1, 2):
        a[i * 10 : i * 10 + 2] ^= 1
        b[i * 10 + 4 : i * 10 + 6] ^= 1
    a[8], b[18] = 1 - a[8], 1 - b[18]
    widths = []
    for errors_of_b in ((), (55,)):
        b[[*errors_of_b]] ^= 1
        cube = [
            jm.paired_confusion_matrix(y_true[at], a[at], b[at], num_classes=2)
            for at in (cluster == k for k in range(40))
        ]
        for method in (jm.Likelihood(), jm.Delta()):
            x = jm.compare(jm.accuracy, np.array(cube), cluster_axis=0, method=method).difference
            widths.append(x.high - x.low)
    assert_allclose(widths[:2], widths[2:], rtol=0.25)


@pytest.mark.parametrize(("number", "size"), [(25, 3), (20, 15), (25, 24), (30, 4)])
def test_perfect_recall_in_clusters_is_a_perfect_proportion(number: int, size: int) -> None:
    """Also where rounding leaves an error that is not 0."""
    counts = np.zeros((number, 2, 2), int)
    counts[:, 0, 0], counts[:, 1, 1], counts[:10, 1, 0] = size, 2, 1
    trials = np.full(number, size)
    expected = jm.proportion_interval(trials, trials, cluster_axis=0, method="likelihood")
    recall = jm.interval(jm.recall, counts, cluster_axis=0)
    assert_allclose(recall.low[0], expected.low, atol=1e-5)
    traced = jax.jit(lambda x: jm.interval(jm.recall, x, cluster_axis=0).low[0])
    assert_allclose(traced(jnp.asarray(counts)), expected.low, atol=1e-3)
