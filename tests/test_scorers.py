"""Scorers: what scikit-learn computes by its own, of labels of any kind."""

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import jaxmetrics as jm

_rng = np.random.default_rng(3)
X = _rng.normal(size=(150, 3))
Y = np.array(["ant", "bee", "cat"])[(X[:, 0] > -0.4).astype(int) + (X[:, 0] + X[:, 1] > 0.8)]
W = _rng.exponential(size=150)
MODEL = make_pipeline(StandardScaler(), LogisticRegression(C=0.05))


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (jm.macro(jm.f1), "f1_macro"),
        (jm.weighted(jm.precision), "precision_weighted"),
        (jm.matthews_corrcoef, "matthews_corrcoef"),
    ],
    ids=lambda x: x if isinstance(x, str) else x.__name__,
)
def test_scores_are_those_of_scikit_learn(metric: Any, name: str) -> None:
    expected = cross_val_score(MODEL, X, Y, scoring=name, cv=3)
    found = cross_val_score(MODEL, X, Y, scoring=jm.scorer(metric), cv=3)
    assert_allclose(found, expected, rtol=1e-12)


def test_a_grid_search_takes_copies_of_scorers() -> None:
    scoring = {"f1": jm.scorer(jm.macro(jm.f1)), "mcc": jm.scorer(jm.matthews_corrcoef)}
    grid = {"logisticregression__C": [1e-4, 1.0]}
    search = clone(GridSearchCV(MODEL, grid, scoring=scoring, refit="f1", cv=3)).fit(X, Y)
    assert search.best_params_ == {"logisticregression__C": 1.0}
    again = pickle.loads(pickle.dumps(search))
    assert {*again.scoring} == {*copy.deepcopy(scoring)} == {*scoring}
    assert again.score(X, Y) == scoring["f1"](search.best_estimator_, X, Y)


def test_labels_order_the_classes_and_weights_count() -> None:
    model, weights = clone(MODEL).fit(X, Y), _rng.integers(0, 4, len(Y))
    cost = np.array([[0, 3, 1], [2, 0, 5], [7, 4, 0]])
    labels = ["cat", "ant", "bee"]
    scored = jm.scorer(lambda counts: -jm.expected_cost(counts, cost), labels=labels)
    pairs = zip(Y, model.predict(X), weights, strict=True)
    total = sum(w * cost[labels.index(y), labels.index(p)] for y, p, w in pairs)
    assert_allclose(scored(model, X, Y, sample_weight=weights), -total / weights.sum(), rtol=1e-12)


def test_a_class_that_the_estimator_has_not_seen_is_an_error() -> None:
    model = LogisticRegression().fit(X[Y != "cat"], Y[Y != "cat"])
    right = np.mean(model.predict(X) == Y)
    assert_allclose(jm.scorer(jm.accuracy)(model, X, Y), right, rtol=1e-12)


def test_scorers_are_those_of_scikit_learn() -> None:
    """Which tunes thresholds and routes weights only by scorers of its own."""
    y = Y == "cat"
    tuned = TunedThresholdClassifierCV(MODEL, scoring=jm.scorer(jm.matthews_corrcoef)).fit(X, y)
    assert 0 < tuned.best_threshold_ < 1
    with config_context(enable_metadata_routing=True):
        accuracy: Any = jm.scorer(jm.accuracy)
        scoring = accuracy.set_score_request(sample_weight=True)
        model = LogisticRegression().set_fit_request(sample_weight=False)
        found = cross_val_score(model, X, Y, scoring=scoring, cv=3, params={"sample_weight": W})
    splits = StratifiedKFold(3).split(X, Y)
    for score, (train, test) in zip(found, splits, strict=True):
        right = LogisticRegression().fit(X[train], Y[train]).predict(X[test]) == Y[test]
        assert_allclose(score, np.average(right, weights=W[test]))


def test_without_scikit_learn_a_scorer_is_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    model = clone(MODEL).fit(X, Y)
    expected = jm.scorer(jm.accuracy)(model, X, Y, sample_weight=W)
    monkeypatch.setitem(sys.modules, "sklearn.metrics", None)
    scored = jm.scorer(jm.accuracy)
    assert repr(scored) == "scorer(score(accuracy))"
    assert scored(model, X, Y, W) == expected


@pytest.mark.parametrize(
    ("metric", "way"),
    [
        (jm.roc_auc, r'make_scorer\(jaxmetrics.roc_auc, response_method="decision_function"\)'),
        (
            jm.average_precision,
            r'jaxmetrics.average_precision, response_method="decision_function"',
        ),
        (jm.log_loss, r'jaxmetrics.log_loss, response_method="predict_proba".*greater_is_better'),
        (jm.brier_score, r'jaxmetrics.brier_score, response_method="predict_proba"'),
    ],
)
def test_metrics_of_scores_need_another_function(metric: Any, way: str) -> None:
    with pytest.raises(TypeError, match=way):
        jm.scorer(metric)


def test_mistakes_are_named() -> None:
    model = clone(MODEL).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"metric must return one number, but it returned an array of shape \(3,\)"
    ):
        jm.scorer(jm.f1)(model, X, Y)
    with pytest.raises(TypeError, match=r"result of metric must hold real numbers.* is None"):
        jm.scorer(lambda counts: None)(model, X, Y)
    with pytest.raises(ValueError, match=r"must have the same shape \(n,\)"):
        jm.scorer(jm.accuracy)(model, X, Y[:, None])
    with pytest.raises(TypeError, match=r"macro\(f1\)\(confusion_matrix.*scorer\(macro\(f1\)\)"):
        make_scorer(jm.macro(jm.f1))(model, X, Y)
