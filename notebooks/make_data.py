"""Write the tables in data/: what classifiers predict for examples that they were not fitted to.

The examples come with scikit-learn, both from the UCI Machine Learning Repository (CC BY 4.0): 1797
images of handwritten digits (Alpaydin and Kaynak 1998, Optical Recognition of Handwritten Digits)
and 569 tumours of the breast (Street, Wolberg and Mangasarian 1993, Breast Cancer Wisconsin).
Scores of language models are drawn at random, in the shapes that evaluation tools write.
"""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import jaxmetrics as jm

# From the best to the worst.
CLASSIFIERS = {
    "svm": SVC(gamma=0.001, C=10),
    "neighbours": KNeighborsClassifier(3),
    "logistic": LogisticRegression(C=0.01, max_iter=1000),
    "forest": RandomForestClassifier(200, random_state=0),
    "discriminant": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "gaussian": GaussianNB(var_smoothing=1e-2),
    "multinomial": MultinomialNB(),
    "tree": DecisionTreeClassifier(random_state=0),
}


def write(name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    path = Path(__file__).parent / "data" / name
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def digits_predictions() -> None:
    """Gaussian naive Bayes on half of the digits: quick, and wrong often enough to be interesting.

    It takes pixels for independent, so most of its probabilities are 0 or 1. A temperature, fitted
    to cross-validated predictions for that half, makes them credible, and changes no prediction.
    """
    images, digits = load_digits(return_X_y=True)
    ids = range(len(digits))
    fit_x, test_x, fit_y, test_y, _, test_ids = train_test_split(
        images, digits, ids, test_size=0.5, random_state=0, stratify=digits
    )
    model = GaussianNB(var_smoothing=1e-2)
    held_out = cross_val_predict(model, fit_x, fit_y, cv=10, method="predict_log_proba")
    temperature = float(jm.fit_temperature(fit_y, held_out))
    logits = model.fit(fit_x, fit_y).predict_log_proba(test_x) / temperature
    probabilities = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
    rows = (
        [i, truth, row.argmax(), *(f"{p:.6f}" for p in row)]
        for i, truth, row in zip(test_ids, test_y, probabilities, strict=True)
    )
    write(
        "digits_predictions.csv",
        ["id", "y_true", "y_pred", *(f"prob_{k}" for k in range(10))],
        rows,
    )


def digits_classifiers() -> None:
    """Eight classifiers, fitted to 400 digits, on the other 1397."""
    images, digits = load_digits(return_X_y=True)
    fit, test = train_test_split(
        np.arange(len(digits)), train_size=400, random_state=0, stratify=digits
    )
    predictions = [
        classifier.fit(images[fit], digits[fit]).predict(images[test])
        for classifier in CLASSIFIERS.values()
    ]
    header = ["id", "y_true", *(f"y_pred_{name}" for name in CLASSIFIERS)]
    write("digits_classifiers.csv", header, zip(test, digits[test], *predictions, strict=True))


def tumours_predictions() -> None:
    """Logistic regression on two features of a half of the tumours."""
    data = load_breast_cancer()
    features, names = data.data[:, :2], data.target_names[data.target]
    fit, test = train_test_split(
        np.arange(len(names)), test_size=0.5, random_state=0, stratify=names
    )
    model = LogisticRegression(max_iter=1000).fit(features[fit], names[fit])
    predictions = model.predict(features[test])
    write(
        "tumours_predictions.csv",
        ["id", "y_true", "y_pred"],
        zip(test, names[test], predictions, strict=True),
    )


def evaluations() -> None:
    """Scores of two models on 120 questions of three tasks, with two attempts at each in one shape."""
    rng = np.random.default_rng(0)
    ease = rng.beta(3, 1, 120)
    tasks = [("arithmetic", "law", "spelling")[i % 3] for i in range(120)]
    folder = Path(__file__).parent / "data" / "evaluations"
    folder.mkdir(parents=True, exist_ok=True)
    for name, skill in (("a", 1.0), ("b", 0.85)):
        right = rng.random((120, 2)) < skill * ease[:, None]
        samples = [
            {
                "doc_id": i // 3,
                "doc": {"question": f"Question {i}?"},
                "resps": [["yes"]],
                "filtered_resps": ["yes" if right[i, 0] else "no"],
                "filter": "none",
                "target": "yes",
                "acc": float(right[i, 0]),
            }
            for i in range(120)
        ]
        instances = [
            {
                "sample_id": str(i),
                "model_id": f"model-{name}",
                "interaction_type": "single_turn",
                "evaluation": {"score": float(right[i, 0]), "is_correct": bool(right[i, 0])},
            }
            for i in range(120)
        ]
        (folder / f"lm_eval_{name}").mkdir(exist_ok=True)
        files = {f"every_eval_ever_{name}": instances} | {
            f"lm_eval_{name}/samples_{tasks[i]}_2026-11-01T10-00-00.000000": samples[i::3]
            for i in range(3)
        }
        for file, lines in files.items():
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (folder / f"{file}.jsonl").write_text(text)
        write(
            f"evaluations/inspect_{name}.csv",
            ["id", "epoch", "score_match"],
            ([i, j + 1, "C" if right[i, j] else "I"] for i in range(120) for j in range(2)),
        )


if __name__ == "__main__":
    evaluations()
    digits_predictions()
    digits_classifiers()
    tumours_predictions()
