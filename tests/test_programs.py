"""What is computed is what a metric says now, whatever it reads; and programs are shared."""

import enum
import functools
import gc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxmetrics as jm
from jaxmetrics._places import compilation

FACTOR = 1.0  # a global, read by `scaled`


def share(counts: Any) -> Any:
    return counts[..., 0, 0] / counts.sum((-2, -1))


def scaled(counts: Any) -> Any:
    return FACTOR * share(counts)


def scaled_recall(counts: Any) -> Any:
    return FACTOR * jm.recall(counts)


Y = np.arange(40) % 2
PREDICTED = np.where(np.arange(40) % 7 == 0, 1 - Y, Y), np.where(np.arange(40) % 5 == 0, 1 - Y, Y)
SCORES = np.where(PREDICTED[0] == 1, 0.7, 0.2) + 0.05 * (np.arange(40) % 3)
Y_TRUE, Y_A, Y_B, SCORE = map(jnp.asarray, (Y, *PREDICTED, SCORES.astype(np.float32)))
LOGITS = jnp.stack([-SCORE, SCORE], -1)
COUNTS = jnp.array([[30.0, 5], [7, 40]])
GROUPS = jnp.stack([COUNTS, jnp.array([[20.0, 9], [1, 40]])])
CLUSTERS = jnp.asarray(np.arange(24.0)[:, None, None] + np.array([[30.0, 5], [7, 40]]))
LABELS = jnp.array([[[5.0, 1], [1, 3]], [[6, 2], [1, 1]]])


def paired() -> Any:
    return jm.paired_confusion_matrix(Y_TRUE, Y_A, Y_B, num_classes=2)


def computed(**accumulator: Any) -> Any:
    evaluator = jm.evaluator(
        jm.count_metrics({"scaled": scaled}, num_classes=2, **accumulator), jm.mean_of("loss")
    )
    state = evaluator.update(evaluator.init(), y_true=Y_TRUE, y_pred=Y_A, loss=SCORE)
    return evaluator.compute(state)["scaled"]


def resampled(y: Any, sample_weight: Any) -> Any:
    return FACTOR * (sample_weight * y).sum(-1) / sample_weight.sum(-1)


# Numbers that are linear in the factor.
FUNCTIONS: dict[str, Callable[[], Any]] = {
    "interval delta": lambda: jm.interval(scaled, COUNTS, method=jm.Delta()).high,
    "interval of clusters": lambda: (
        jm.interval(scaled, CLUSTERS, method=jm.Delta(), cluster_axis=-3).high
    ),
    "interval": lambda: jm.interval(scaled, COUNTS).high,
    "interval basic": lambda: jm.interval(scaled, COUNTS, method=jm.Bootstrap(0, "basic", 40)).high,
    "bootstrap_examples": lambda: (
        jm.bootstrap_examples(
            0, resampled, SCORE, num_samples=40, kind="basic", resample="weights"
        ).high
    ),
    "interval posterior": lambda: (
        jm.interval(scaled, COUNTS, method=jm.Posterior(0, num_samples=40)).high
    ),
    "compare": lambda: jm.compare(scaled, paired(), method=jm.Delta()).difference.high,
    "compare_predictions": lambda: (
        jm.compare_predictions(
            scaled, Y_TRUE, Y_A, Y_B, num_classes=2, method=jm.Delta()
        ).difference.high
    ),
    "compare_unpaired": lambda: (
        jm.compare_unpaired(scaled, *GROUPS, method=jm.Delta()).difference.high
    ),
    "leaderboard": lambda: jm.leaderboard(
        scaled,
        Y_TRUE,
        jnp.stack([Y_A, Y_B]),
        num_classes=2,
        method=jm.Delta(),
        num_samples=40,
    ).estimates.value[0],
    "permutation_test": lambda: jm.permutation_test(0, scaled, paired(), num_samples=9).statistic,
    "simulated_error": lambda: jm.simulated_error(0, scaled, COUNTS, 50, num_samples=40),
    "detectable_difference": lambda: jm.detectable_difference(scaled, paired(), 100),
    "at_prevalence": lambda: jm.at_prevalence(scaled, 0.2)(COUNTS),
    "macro": lambda: jm.macro(scaled_recall)(COUNTS),
    "micro": lambda: jm.micro(scaled_recall)(COUNTS),
    "label_macro": lambda: jm.label_macro(scaled_recall)(LABELS),
    "group_difference": lambda: jm.group_difference(scaled)(GROUPS),
    "metric_at_thresholds": lambda: jm.metric_at_thresholds(scaled, Y_TRUE, SCORE)[0][1],
    "best_threshold": lambda: jm.best_threshold(scaled, Y_TRUE, SCORE).value,
    "metric_loss": lambda: jm.metric_loss(scaled)(LOGITS, Y_TRUE),
    "per_class": lambda: jm.per_class(lambda y, s: FACTOR * jm.roc_auc(y, s), average="macro")(
        Y_TRUE, jax.nn.softmax(LOGITS)
    ),
    "count_metrics": computed,
    "count_metrics with an interval": lambda: computed(method=jm.Delta()).high,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_changed_global_changes_the_result_and_compiles_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch, programs: list[str]
) -> None:
    values = []
    for factor in (1.0, 2.0, 4.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        before = len(programs)
        values.append(float(FUNCTIONS[name]()))
    assert len(programs) == before
    assert values[1] != pytest.approx(values[0])
    assert_allclose(values[2] - values[1], 2 * (values[1] - values[0]), rtol=1e-3)


# Each yields metrics that compute `factor * share`, with a factor that changes from 1 to 2.


def by_closure() -> Iterator[Any]:
    factor = 1.0

    def metric(counts: Any) -> Any:
        return factor * share(counts)

    yield metric
    factor = 2.0
    yield metric


def by_loop() -> Iterator[Any]:
    for factor in (1.0, 2.0):
        yield lambda counts, factor=factor: factor * share(counts)


def by_array_in_place() -> Iterator[Any]:
    factor = np.ones(1)
    yield (metric := lambda counts: factor[0] * share(counts))
    factor[0] = 2
    yield metric


def by_device_array() -> Iterator[Any]:
    for factor in (jnp.float32(1), jnp.float32(2)):
        yield lambda counts, factor=factor: factor * share(counts)


class Scaled:
    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def __call__(self, counts: Any) -> Any:
        return self.factor * share(counts)


class EqualScaled(Scaled):
    """All are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EqualScaled)

    def __hash__(self) -> int:
        return 0


def by_object() -> Iterator[Any]:
    metric = Scaled()
    yield metric
    metric.factor = 2.0
    yield metric


def by_equal_objects() -> Iterator[Any]:
    yield from map(EqualScaled, (1.0, 2.0))


def by_applied_equal_objects() -> Iterator[Any]:
    for factor in (1.0, 2.0):
        yield jm.at_prevalence(EqualScaled(factor), np.array(COUNTS.sum(-1) / COUNTS.sum()))


def by_partial_of_object() -> Iterator[Any]:
    metric = Scaled()
    partial = functools.partial(metric)
    yield partial
    metric.factor = 2.0
    yield partial


def by_wrapped() -> Iterator[Any]:
    metric = Scaled()

    @functools.wraps(share)
    def wrapped(counts: Any) -> Any:
        return metric(counts)

    yield wrapped
    metric.factor = 2.0
    yield wrapped


def by_nested_average() -> Iterator[Any]:
    metric = Scaled()
    yield (average := jm.macro(lambda c: metric(c)[..., None] * jnp.ones(2)))
    metric.factor = 2.0
    yield average


def by_custom_rule() -> Iterator[Any]:
    factor = 1.0

    @jax.custom_jvp
    def times(x: Any) -> Any:
        return factor * x

    times.defjvp(lambda x, t: (factor * x[0], factor * t[0]))
    yield (metric := lambda counts: times(share(counts)))
    factor = 2.0
    yield metric


def by_constants_of_a_jitted_function() -> Iterator[Any]:
    for factor in (1.0, 2.0):
        factors = np.array([[factor, 0], [0, 0]])
        first = jax.jit(lambda counts, factors=factors: (factors * counts).sum((-2, -1)))
        yield lambda counts, first=first: first(counts) / counts.sum((-2, -1))


WAYS = {name: way for name, way in list(globals().items()) if name.startswith("by_")}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_metric_may_read_what_changes(way: Callable[[], Iterator[Any]]) -> None:
    ends = []
    for metric in way():
        found = jm.interval(metric, COUNTS, method=jm.Delta())
        ends.append((found.value, found.low, found.high, jm.at_prevalence(metric, 0.25)(COUNTS)))
        gc.collect(1)  # what was just made is young
    assert_allclose(ends[1], 2 * np.array(ends[0]), rtol=1e-5)


class Pair(NamedTuple):
    """A metric that JAX takes for a pytree."""

    part: Any = None

    def __call__(self, counts: Any) -> Any:
        return scaled(counts)


class Made:
    """A class whose call is the metric."""

    def __new__(cls, counts: Any) -> Any:
        return scaled(counts)


class Kind(enum.Enum):
    ONLY = 1
    __call__ = staticmethod(scaled)


class Text(str):
    __call__ = staticmethod(scaled)


OF_MANY_TYPES = scaled, Pair(), jax.tree_util.Partial(scaled), Made, Kind.ONLY, Text("share")


@pytest.mark.parametrize("metric", OF_MANY_TYPES, ids=lambda x: type(x).__name__)
def test_a_metric_of_any_type_may_read_a_global(
    metric: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> Any:
        return jm.interval(metric, COUNTS).high, jm.at_prevalence(metric, 0.25)(COUNTS)

    before = found()
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert_allclose(found(), 2 * np.array(before), rtol=1e-5)


def test_a_metric_may_have_a_rule_of_differentiation_that_changes() -> None:
    factor = 1.0

    @jax.custom_jvp
    def twice(x: Any) -> Any:
        return 2 * x

    twice.defjvp(lambda x, t: (2 * x[0], factor * t[0]))

    def standard_error() -> Any:
        return jm.interval(lambda c: twice(share(c)), COUNTS, method=jm.Delta()).standard_error

    before = standard_error()
    factor = 3.0
    assert_allclose(standard_error(), 3 * before, rtol=1e-6)


def test_rules_that_are_traced_anew_share_a_program_of_values(programs: list[str]) -> None:
    """JAX traces a rule into a new function, which matters only to who differentiates."""

    def metric(counts: Any) -> Any:
        @jax.custom_jvp
        def half(x: Any) -> Any:
            return x / 2

        half.defjvp(lambda x, t: (half(*x), t[0] / 2))
        return jax.vmap(lambda x: half(x) + jm.macro(jm.f1)(x))(counts[None])[0].sum()

    def auc(y_true: Any, y_score: Any) -> Any:
        return jm.roc_auc(y_true, y_score)

    key = jax.random.key(0)
    for _ in range(2):
        before = len(programs)
        jm.at_prevalence(metric, 0.25)(COUNTS)
        jm.bootstrap_examples(key, auc, Y_TRUE, SCORE, num_samples=20)
    assert len(programs) == before


def costly(factor: float, costs: np.ndarray) -> Callable[[Any], Any]:
    return lambda c: factor * jm.macro(jm.f1)(c) + (costs * c).sum()


def test_equal_lambdas_share_a_program_whatever_their_constants(programs: list[str]) -> None:
    for factor in (1.0, 3.0, -0.0, float("nan")):
        before = len(programs)
        metric = costly(factor, factor * np.eye(2))
        jm.interval(metric, COUNTS, method=jm.Delta())
    assert len(programs) == before


def test_programs_of_metrics_are_bounded_and_cleared(
    programs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest is compiled again after as many others as are kept; `clear_caches` drops all."""
    assert compilation._program.cache_info().maxsize == compilation._MOST_PROGRAMS
    few = functools.lru_cache(2)(compilation._program.__wrapped__)
    monkeypatch.setattr(compilation, "_program", few)

    def compiles(number: int) -> bool:
        before = len(programs)
        jm.macro(lambda counts: jm.recall(counts) + jnp.ones((number, 1)).sum(0))(COUNTS)
        return len(programs) > before

    assert [compiles(number) for number in (1, 1, 2, 1, 3, 2)] == [
        True,
        False,
        True,
        False,
        True,
        True,
    ]
    jax.clear_caches()
    assert compiles(2)


ODD = np.arange(487) % 2  # a length that no other test has
ROWS = np.stack([0.9 - 0.4 * ODD, 0.1 + 0.4 * ODD], -1).astype(np.float32)


@pytest.mark.parametrize(
    ("measure", "options"),
    [
        (jm.confusion_matrix, {"y_pred": ODD, "num_classes": 2, "sample_weight": ROWS[:, 1]}),
        (jm.log_loss, {"logits": ROWS, "where": ODD == 1}),
        (jm.brier_score, {"y_prob": ROWS}),
        (jm.top_k_accuracy, {"y_score": ROWS, "k": 1}),
    ],
)
def test_jax_arrays_take_one_program(
    measure: Callable[..., Any], options: dict[str, Any], programs: list[str]
) -> None:
    """The checks of the arguments are in it."""
    on_device = {
        name: jnp.asarray(x) if isinstance(x, np.ndarray) else x for name, x in options.items()
    }
    y_true = jnp.asarray(ODD)
    before = len(programs)
    measure(y_true, **on_device)
    assert programs[before:] == [f"jit({measure.__name__})"]


def test_an_error_shows_no_frames_of_a_trace() -> None:
    """It passes the decorator `one_program`, but not the compiled function."""
    with pytest.raises(ValueError, match="y_prob must have shape") as raised:
        jm.log_loss(Y_TRUE, SCORE)
    files = [str(entry.path) for entry in raised.traceback]
    assert files.count(compilation.__file__) == 1


def test_a_metric_may_close_over_what_is_traced() -> None:
    """Its derivative by a factor, and a batch of factors."""

    def high(factor: Any) -> Any:
        return jm.interval(lambda counts: factor * share(counts), COUNTS, method=jm.Delta()).high

    unscaled = float(high(1.0))
    assert_allclose(jax.grad(high)(3.0), unscaled, rtol=1e-5)
    assert_allclose(jax.jit(high)(3.0), 3 * unscaled, rtol=1e-5)
    assert_allclose(jax.vmap(high)(jnp.arange(3.0)), unscaled * np.arange(3), rtol=1e-5)


# Few numbers in JAX arrays need no program where a person reads the result.

MANY = 2**14 + 2  # more numbers than are computed on the host
DELTA = jm.Delta()


@pytest.mark.usefixtures("small_arrays")
def test_few_numbers_are_computed_on_the_host(x64: bool, programs: list[str]) -> None:
    """Transfers are explicit, and the results are where the arguments are."""
    device = jax.devices("cpu")[3]
    counts, elsewhere = jnp.asarray(COUNTS), jax.device_put(COUNTS, device)
    with jax.transfer_guard("disallow"):
        near = jm.interval(jm.macro(jm.f1), counts)
        far = jm.interval(jm.macro(jm.f1), elsewhere)
    assert programs == []
    assert (near.high.devices(), near.high.committed) == (counts.devices(), False)
    assert (far.high.devices(), far.high.committed) == ({device}, True)
    assert near.high.dtype == (np.float64 if x64 else np.float32)
    expected = jm.interval(jm.macro(jm.f1), np.asarray(COUNTS))
    assert_allclose([near.low, far.high], [expected.low, expected.high], rtol=1e-6)


@pytest.mark.usefixtures("small_arrays")
def test_many_numbers_traced_and_sharded_ones_need_a_program(programs: list[str]) -> None:
    everywhere = jax.sharding.Mesh(np.array(jax.devices("cpu")), ("data",))
    spread = jax.sharding.NamedSharding(everywhere, jax.sharding.PartitionSpec("data"))
    calls: list[Callable[[], Any]] = [
        lambda: jm.mean_interval(jnp.ones(MANY)),
        lambda: jm.mean_interval(jax.device_put(jnp.ones(64), spread)),
        lambda: jax.jit(lambda x: jm.mean_interval(x))(jnp.ones(9)),
        lambda: jax.vmap(lambda x: jm.mean_interval(x))(jnp.ones((3, 7))),
        lambda: jax.grad(lambda x: jm.mean_interval(x).low)(jnp.arange(11.0)),
    ]
    for call in calls:
        before = len(programs)
        call()
        assert len(programs) > before


@pytest.mark.usefixtures("small_arrays")
def test_a_computation_that_is_repeated_gets_a_program(
    programs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers of other computations do not matter."""
    monkeypatch.setattr(compilation, "_HOST_TABLES", 2)
    compilation._allowance.cache_clear()
    compiled, highs = [], []
    for _ in range(4):
        before = len(programs)
        highs.append(jm.interval(jm.recall, COUNTS, method=DELTA).high)
        compiled.append(len(programs) > before)
        jm.interval(jm.recall, GROUPS, method=DELTA)
        if len(highs) == 2:
            jm.interval(jm.precision, COUNTS, method=DELTA)
    assert compiled == [False, False, True, False]
    assert_allclose(highs[3], highs[0], rtol=1e-6)


@pytest.mark.usefixtures("small_arrays")
def test_a_batch_of_many_tables_gets_a_program(programs: list[str]) -> None:
    """Because NumPy would evaluate its tables one by one; a warning is given once."""
    compilation._allowance.cache_clear()
    clusters = np.random.default_rng(0).multinomial(9, [0.4, 0.1, 0.2, 0.3], (65, 5))
    tables = clusters.reshape(65, 5, 2, 2)
    for number, is_compiled in ((64, False), (65, True)):
        counts = jnp.asarray(tables[:number])
        before = len(programs)
        with pytest.warns(UserWarning, match="clusters") as given:
            found = jm.interval(jm.macro(jm.f1), counts, cluster_axis=-3)
        assert (len(programs) > before, len(given)) == (is_compiled, 1)
        with pytest.warns(UserWarning, match="clusters"):
            alone = jm.interval(jm.macro(jm.f1), tables[3], cluster_axis=-3)
        assert_allclose((found.low[3], found.high[3]), (alone.low, alone.high), rtol=1e-4)


@pytest.mark.usefixtures("small_arrays")
def test_draws_are_the_same_in_and_outside_of_jit() -> None:
    key = jax.random.key(3)
    methods = (jm.Bootstrap(key, "basic", 40), jm.Posterior(key, num_samples=40))

    def drawn(counts: Any) -> Any:
        ends = [jm.interval(jm.accuracy, counts, method=method).low for method in methods]
        return *ends, jm.recall_posterior(counts).sample(key, (5,))

    for ours, jitted in zip(drawn(COUNTS), jax.jit(drawn)(COUNTS), strict=True):
        assert_allclose(ours, jitted, rtol=1e-5)


IMPOSSIBLE: dict[str, Callable[[Any], Any]] = {
    "more successes than trials": lambda ones: jm.proportion_interval(3 * ones, 2 * ones).high[0],
    "a NaN weight": lambda ones: jm.mean_interval(ones, sample_weight=ones.at[0].set(jnp.nan)).high,
    "a third label": lambda ones: jm.delong_interval(ones.astype(int).at[0].set(2), ones).high,
    "a NaN score": lambda ones: (
        jm.average_precision_interval(ones.astype(int).at[1].set(0), ones.at[0].set(jnp.nan)).high
    ),
}


@pytest.mark.usefixtures("small_arrays")
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_values_are_nan_in_few_and_in_many_numbers(name: str) -> None:
    for number in (8, MANY):
        assert np.isnan(IMPOSSIBLE[name](jnp.ones(number))), number


@pytest.mark.usefixtures("small_arrays")
def test_mistakes_raise_the_errors_of_the_device() -> None:
    with pytest.raises(ValueError, match="counts must have shape") as raised:
        jm.interval(jm.accuracy, jnp.ones((3, 4)))
    assert raised.value.__context__ is None


@pytest.mark.usefixtures("small_arrays")
def test_a_metric_need_not_be_hashable() -> None:
    kind = type("Unhashable", (Scaled,), {"__hash__": None})
    highs = [jm.interval(kind(factor), COUNTS, method=DELTA).high for factor in (1.0, 2.0)]
    assert_allclose(highs[1], 2 * highs[0], rtol=1e-6)


def test_functions_of_the_package_are_constant() -> None:
    """Otherwise each call of `interval(f1, ...)` would trace the metric anew."""
    for constant in (jm.f1, jm.macro(jm.f1), functools.partial(jm.f_beta, beta=2), jm.Likelihood()):
        assert compilation.is_constant(constant)
    assert not compilation.is_constant(scaled)
