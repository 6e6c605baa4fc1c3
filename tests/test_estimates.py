"""`Estimate`: a value that knows its interval, and is a pytree and no tuple."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

import jaxmetrics as jm
from jaxmetrics.estimates import SCALES

pytestmark = pytest.mark.quick

COUNTS = [[45, 5], [3, 47]]
TRUE, SCORE = [0, 0, 1, 0, 1, 1] * 5, [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 5
OTHER = SCORE[::-1]
PAIRED = jm.paired_confusion_matrix(TRUE, TRUE, [0, 1, 1, 0, 1, 0] * 5)


def test_names_and_members() -> None:
    """Names are those of the last axis; they stay in transformations, and mark printed members."""
    recalls = replace(
        jm.proportion_interval([[90, 80], [9, 8]], [[100], [10]]), names=["cat", "dog"]
    )
    assert repr(recalls).startswith("2 x 2 estimates: 0, cat 0.900 [0.826, 0.945]; 0, dog 0.800 [")
    assert [line.split("  ")[0] for line in str(recalls).splitlines()[1:]] == [
        f"{i}, {name}" for i in range(2) for name in ("cat", "dog")
    ]
    assert recalls.to_dict()["names"] == ["cat", "dog"]
    frame = recalls.to_frame("pandas")
    assert [*frame.columns[:3]] == ["index_0", "name", "value"]
    assert frame["name"].tolist() == ["cat", "dog"] * 2
    assert "\n0, dog & 0.800 [" in recalls.to_latex()
    dogs = recalls.select("dog")
    assert dogs.names is None
    assert_array_equal(dogs.low, recalls.low[:, 1])
    assert dogs.select(1) == jm.proportion_interval(8, 10) == recalls.select(1).select(1)
    with pytest.raises(KeyError, match="'cow' is not among the names: cat, dog"):
        recalls.select("cow")
    on_device = jax.tree.map(jnp.asarray, recalls)
    rows = jax.vmap(lambda x: x)(on_device)
    assert rows.names == ("cat", "dog")
    of_one = jax.jit(jax.vmap(lambda x: x.select("cat")))(on_device)
    assert_array_equal(of_one.high, on_device.high[:, 0])
    assert str(jax.tree.map(lambda x: x[..., :1], recalls)).splitlines()[1][:4] == "0, 0"
    assert pickle.loads(pickle.dumps(recalls)).names == recalls.names
    shared = jm.interval(jm.recall, COUNTS)  # one number of examples for all classes
    assert shared.select(1).to_dict() == jm.interval(lambda c: jm.recall(c)[1], COUNTS).to_dict()


def evaluated(accumulator: Any, **batch: Any) -> Any:
    evaluator = jm.evaluator(accumulator)
    state = evaluator.update(evaluator.init(), loss=jnp.asarray(SCORE), **batch)
    return {k: x for k, x in evaluator.compute(state).items() if not k.startswith("num_")}


def followed(method: Any) -> jm.Estimate:
    sequence = jm.confidence_sequence(0.9, method=method)
    return sequence.compute(sequence.update(sequence.init(), jnp.asarray(TRUE, float)))


# All functions that return intervals, with the level 0.9, and the method of each estimate.
# All functions that return intervals, with the level 0.9, by the methods of their estimates.
FOUND: dict[str, list[Callable[[], Any]]] = {
    "likelihood": [
        lambda: jm.interval(jm.accuracy, COUNTS, level=0.9),
        lambda: jm.interval(lambda c: {"a": jm.f1(c)}, COUNTS, level=0.9),
        lambda: jm.mean_interval(SCORE, level=0.9, bounds=(0, 1)),
        lambda: jm.mean_interval([*SCORE, np.nan], level=0.9, bounds=(0, 1), missing="bounds"),
        lambda: jm.crossed_interval([SCORE, OTHER], level=0.9, bounds=(0, 1)).mean,
        lambda: jm.compare(jm.accuracy, PAIRED, level=0.9),
        lambda: jm.compare_unpaired(jm.accuracy, COUNTS, COUNTS, level=0.9),
        lambda: jm.compare_predictions(jm.accuracy, TRUE, TRUE, TRUE[::-1], level=0.9),
        lambda: jm.leaderboard(jm.accuracy, TRUE, [TRUE, TRUE[::-1]], level=0.9),
        lambda: jm.score_leaderboard([SCORE, OTHER], bounds=(0, 1), level=0.9),
    ],
    "delta": [lambda: jm.interval(jm.accuracy, COUNTS, level=0.9, method=jm.Delta())],
    "basic": [
        lambda: jm.interval(jm.recall, COUNTS, level=0.9, method=jm.Bootstrap(0, "basic", 20))
    ],
    "bca": [lambda: jm.bootstrap_examples(0, np.mean, SCORE, level=0.9, num_samples=20)],
    "posterior": [lambda: jm.interval(jm.accuracy, COUNTS, level=0.9, method=jm.Posterior(0))],
    "prediction-powered": [
        lambda: jm.prediction_powered(jm.accuracy, PAIRED, PAIRED.sum(0), level=0.9)
    ],
    "wilson": [
        lambda: jm.proportion_interval(3, 4, level=0.9),
        lambda: jm.average_precision_interval(TRUE, SCORE, level=0.9),
    ],
    "student": [
        lambda: jm.mean_interval(SCORE, level=0.9),
        lambda: jm.compare_scores(SCORE, OTHER, level=0.9),
        lambda: jm.crossed_interval([SCORE, OTHER], level=0.9).mean,
    ],
    "student wilson": [lambda: jm.compare_average_precision(TRUE, SCORE, OTHER, level=0.9)],
    "corrected resampled t": [
        lambda: jm.cross_validation_interval(SCORE, num_train=9, num_test=1, level=0.9)
    ],
    "score": [lambda: jm.delong_interval(TRUE, SCORE, level=0.9)],
    "mover score": [
        lambda: jm.delong(TRUE, SCORE, OTHER, level=0.9),
        lambda: jm.delong_unpaired(TRUE, SCORE, TRUE, OTHER, level=0.9),
    ],
    "mover": [
        lambda: jm.compare_groups(jm.accuracy, [COUNTS, COUNTS], level=0.9),
        lambda: jm.score_leaderboard([SCORE, [*OTHER[1:], 1]], groups=TRUE, level=0.9),
    ],
    "inequalities": [lambda: jm.calibration_interval(TRUE, SCORE, level=0.9)],
    "tango": [lambda: jm.paired_difference_interval(PAIRED, level=0.9)],
    "normal": [lambda: evaluated(jm.mean_of("loss", level=0.9))],
    "percentile": [
        lambda: evaluated(
            jm.poisson_bootstrap(jm.mean_of("loss"), num_samples=20, level=0.9), unit=np.arange(30)
        )
    ],
    "mixture": [lambda: followed("mixture")],
}


def estimates_in(found: Any) -> list[Any]:
    leaves = jax.tree.leaves(found, is_leaf=lambda x: isinstance(x, jm.Estimate))
    return [x for x in leaves if isinstance(x, jm.Estimate)]


@pytest.mark.filterwarnings("ignore:there are only")
@pytest.mark.parametrize("methods", FOUND)
def test_each_interval_knows_its_level_and_method(methods: str) -> None:
    for found in FOUND[methods]:
        estimates = estimates_in(found())
        assert " ".join(sorted({x.method for x in estimates})) == methods
        assert {x.level for x in estimates} == {0.9}


def test_what_else_an_estimate_knows() -> None:
    both = jm.interval(jm.recall, COUNTS, simultaneous=True, anytime=True)
    assert (both.level, both.note) == (0.95, "simultaneous, anytime-valid")
    assert jm.interval(jm.recall, COUNTS).note is None
    assert_array_equal(both.num_examples, [100, 100])
    assert both.effective_number is None
    clusters = np.stack([COUNTS] * 30) - np.arange(30)[:, None, None] // 10
    for found in (
        jm.interval(jm.accuracy, clusters, cluster_axis=0),
        jm.proportion_interval(
            clusters.trace(axis1=1, axis2=2), clusters.sum((1, 2)), cluster_axis=0
        ),
    ):
        assert found.num_examples == clusters.sum()
        assert found.effective_number is not None
        assert 0 < found.effective_number < found.num_examples


def test_jit_keeps_level_and_method_and_compiles_once(programs: list[str]) -> None:
    counts = jnp.asarray(COUNTS)
    traced = jax.jit(lambda c: jm.interval(jm.accuracy, c, level=0.9))(counts)
    assert (traced.level, traced.method) == (0.9, "likelihood")
    found = jm.proportion_interval(counts[0, 0], counts.sum(), level=0.9)
    programs.clear()
    assert jm.proportion_interval(counts[0, 1], counts.sum(), level=0.9).level == 0.9
    assert jax.jit(lambda x: x)(found) == found
    assert not [name for name in programs if "proportion" in name]


def test_an_estimate_is_a_pytree() -> None:
    estimate = jm.interval(jm.accuracy, COUNTS)
    for kept in (
        jax.tree.map(lambda x: x, estimate),
        copy.deepcopy(estimate),
        *(pickle.loads(pickle.dumps(estimate, protocol)) for protocol in range(6)),
    ):
        assert type(kept) is jm.Estimate
        assert kept == estimate
    paths, _ = jax.tree_util.tree_flatten_with_path(estimate)
    names = ["value", "low", "high", "standard_error", "num_undefined", "num_examples"]
    assert [path[0].name for path, _ in paths] == names
    doubled = jax.tree.map(lambda x: 2 * x, estimate)
    assert (doubled.low, doubled.method) == (2 * estimate.low, "likelihood")
    changed = replace(estimate, low=0.1)
    assert (changed.low, changed.level, changed.method) == (0.1, 0.95, "likelihood")
    narrower = jm.interval(jm.accuracy, COUNTS, level=0.9)
    with pytest.raises(ValueError, match=r"metadata|node data"):
        jax.tree.map(lambda x, y: x - y, estimate, narrower)
    batch = jax.vmap(lambda c: jm.interval(jm.accuracy, c))(jnp.asarray([COUNTS, COUNTS]))
    assert (batch.value.shape, batch.method) == ((2,), "likelihood")
    with pytest.raises(FrozenInstanceError):
        estimate.low = 0.1  # type: ignore[misc]


def test_estimates_made_before_jax_is_imported_are_pytrees() -> None:
    program = """
import importlib.util, sys
import jaxmetrics as jm
from jaxmetrics.estimates import SCALES
one, same = jm.proportion_interval(80, 94), jm.proportion_interval(80, 94)
assert one == same and "jax" not in sys.modules
importlib.util.find_spec("jax")  # looks, and does not import
import jax
assert jax.tree.map(lambda x, y: x + y, one, same).low == 2 * one.low
assert jax.tree.map(lambda x: x, one).method == "wilson"
assert not any("jaxmetrics" in type(x).__module__ for x in sys.meta_path)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_estimates_are_equal_if_all_fields_are() -> None:
    estimate = jm.proportion_interval(80, 94)
    assert (estimate == jm.proportion_interval(80, 94)) is True
    assert hash(estimate) == hash(jm.proportion_interval(80, 94))
    for other in (
        jm.proportion_interval(80, 94, level=0.9),
        replace(estimate, method="exact"),
        replace(estimate, note="of a sample"),
        replace(estimate, num_undefined=1),
        0.5,
        None,
    ):
        assert (estimate == other) is False
    batch = [jm.proportion_interval([80, 81], 94) for _ in range(2)]
    with pytest.raises(ValueError, match="ambiguous"):
        assert batch[0] == batch[1]


@pytest.mark.parametrize(
    "use",
    [
        lambda e: np.mean([e, e]),
        lambda e: e * 100,
        lambda e: 100 * e,
        lambda e: np.float64(100) * e,
        lambda e: np.arange(3) - e,
        lambda e: jnp.arange(3) - e,
        lambda e: e - e,
        lambda e: max(e, e),
        lambda e: e > 0.5,
        lambda e: e <= 0.5,
        lambda e: len(e),
        lambda e: round(e),
        lambda e: -e,
    ],
)
def test_an_estimate_is_no_number(use: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"An Estimate is not a number.* Use e\.value"):
        use(jm.proportion_interval(80, 94))


def test_an_estimate_is_no_sequence() -> None:
    estimate = jm.proportion_interval(80, 94)
    assert not isinstance(estimate, tuple | Sequence)
    assert bool(estimate)
    assert jax.tree.leaves({"a": estimate}, is_leaf=lambda x: isinstance(x, jm.Estimate)) == [
        estimate
    ]
    with (
        pytest.warns(FutureWarning, match=r"such as e\.value, e\.low and e\.high"),
        pytest.raises(ValueError, match="too many values to unpack"),
    ):
        _low, _high = estimate
    with pytest.raises(AttributeError, match="'Estimate' object has no attribute 'hgih'"):
        estimate.hgih  # noqa: B018  # raises


def test_the_use_as_a_tuple_is_deprecated() -> None:
    estimate = jm.proportion_interval(80, 94)
    names = "value", "low", "high", "standard_error", "num_undefined"
    numbers = tuple(getattr(estimate, x) for x in names)
    uses: list[tuple[Callable[[Any], Any], Any]] = [
        (lambda e: e[1], estimate.low),
        (lambda e: e[:3], numbers[:3]),
        (lambda e: (*e,), numbers),
        (lambda e: e._replace(low=0.5), replace(estimate, low=0.5)),
        (lambda e: e._asdict(), dict(zip(names, numbers, strict=True))),
    ]
    for use, expected in uses:
        with pytest.warns(
            FutureWarning, match=r"no longer a tuple.* use its attributes, such as e\.value"
        ) as seen:
            assert use(estimate) == expected
        assert seen[0].filename == __file__


def test_pickles_of_earlier_versions() -> None:
    # pickle.dumps(jaxmetrics.Estimate(0.5, 0.25, 0.75, 0.125, 0), protocol) of version 0.3.0
    numbers = (
        b"(G?\xe0\x00\x00\x00\x00\x00\x00G?\xd0\x00\x00\x00\x00\x00\x00"
        b"G?\xe8\x00\x00\x00\x00\x00\x00G?\xc0\x00\x00\x00\x00\x00\x00K\x00t"
    )
    kind = b"cjaxmetrics.estimates\nEstimate\n"
    expected = jm.Estimate(0.5, 0.25, 0.75, 0.125, 0)
    second = b"\x80\x02" + kind + b"q\x00" + numbers + b"q\x01\x81q\x02."
    assert pickle.loads(second) == expected
    fourth = (
        b"\x80\x04\x95P\x00\x00\x00\x00\x00\x00\x00\x8c\x14jaxmetrics.estimates\x94"
        b"\x8c\x08Estimate\x94\x93\x94" + numbers + b"\x94\x81\x94."
    )
    assert pickle.loads(fourth) == expected
    first = (
        b"ccopy_reg\n_reconstructor\nq\x00("
        + kind
        + b"q\x01c__builtin__\ntuple\nq\x02"
        + numbers
        + b"q\x03tq\x04Rq\x05."
    )
    with pytest.raises(TypeError, match="Estimate is not a subtype of tuple"):
        pickle.loads(first)


@pytest.mark.quick
def test_the_logit_scale_needs_no_scipy() -> None:
    code = (
        "import sys, jaxmetrics as jm\n"
        "jm.interval(jm.accuracy, [[90, 10], [5, 95]], method=jm.Delta('logit'))\n"
        "assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    scale = SCALES["logit"]
    x = np.array([-800, -30, -1e-9, 0, 0.3, 5, 30, 800])
    with np.errstate(all="raise", under="ignore"):
        assert_allclose(scale.inverse(x), special.expit(x), rtol=1e-13, atol=1e-300)
        v = np.array([1e-300, 1e-9, 0.2, 0.5, 0.7, 1 - 1e-9])
        assert_allclose(scale.transform(v), special.logit(v), rtol=1e-9, atol=1e-15)
