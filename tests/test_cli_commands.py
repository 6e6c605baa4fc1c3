"""A table of command lines with what the library computes in Python, and what else they say of
groups, clusters, one class, labels, scores, many classifiers and plans.
"""

import gzip
import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import jaxmetrics as jm
from jaxmetrics.reports.prevalences import report_at_prevalence
from tests.command_line import (
    GRADES,
    NAMES,
    PATIENTS,
    PREDS,
    PROBS,
    RIGHT,
    SAMPLES,
    SITES,
    TASKS,
    TRUE,
    USERS,
    A,
    B,
    N,
    Run,
    answer,
    save,
    with_files,
    write,
)
from tests.oracles import fields_of

WORDS = NAMES[TRUE], *(NAMES[pred] for pred in PREDS)
OF_A, OF_B = WORDS[:2], WORDS[::2]
NUMBERS = {"num_classes": 3, "class_names": NAMES}


def of_two(p: np.ndarray) -> np.ndarray:
    return np.stack([1 - p, p], 1)


# Scores and probabilities of one class.
SPAM = TRUE // 2
SCORE = SPAM + np.random.default_rng(1).normal(size=N)
PROB = 1 / (1 + np.exp(1 - 2 * SCORE))
MAIL = pl.DataFrame({"y_true": np.array(["ham", "spam"])[SPAM], "s": SCORE, "p": PROB})
OF_MAIL: dict[str, Any] = {"y_prob": of_two(PROB), "class_names": ["ham", "spam"]}

# Three examples of two classes, whose probabilities are in arrays, lists, objects and columns.
CHANCES = np.array([[0.7, 0.3], [0.4, 0.6], [0.9, 0.1]])
OF_THREE = jm.report([*"abb"], [*"aba"], y_prob=CHANCES)
OBJECTS = pl.DataFrame({"y_true": [*"abb"], "p": [{"a": a, "b": b} for a, b in CHANCES]})
LINES = """\
{"y_true": "a", "p": {"a": 0.7, "b": 0.3}}
{"y_true": "b", "p": {"b": 0.6, "a": 0.4}}
{"y_true": "b", "p": {"a": 0.9, "b": 0.1}}
"""

# Three labels, and predictions of them in another order.
TAGS = np.random.default_rng(0).random((2, 150, 3)) < 0.5
TAG_FRAME = pl.DataFrame(
    np.concatenate([TAGS[0], TAGS[1][:, ::-1]], 1).astype(int),
    schema=["t_a", "t_b", "t_c", "p_c", "p_b", "p_a"],
)

# Scores of items: B without an item and in another order; attempts; a column for each system.
SHUFFLED = SAMPLES[1].sample(fraction=1, shuffle=True, seed=0).filter(pl.col("doc_id") != 7)
KEPT = np.arange(N) != 7
OF_SCORES: dict[str, Any] = {"bounds": (0, 1), "name": "acc"}
PAIRS = np.arange(N) // 2
ATTEMPTS = [
    pl.DataFrame({"id": PAIRS, "epoch": [1, 2] * (N // 2), "v_1": right}).sample(
        fraction=1, shuffle=True, seed=seed
    )
    for seed, right in enumerate(RIGHT[:2])
]
SYSTEMS = pl.DataFrame(RIGHT.T.astype(int), schema=[*"xyz"])
COLUMNS = A.select("y_true", "patient", *(pl.Series(f"y_pred_{i}", x) for i, x in enumerate(WORDS)))
PREDS_OF_COLUMNS = [TRUE, *PREDS]

PAIRED = jm.paired_confusion_matrix(TRUE, *PREDS, num_classes=3)
BY_PATIENT: dict[str, Any] = {"num_classes": 3, "groups": PATIENTS}
Z = 1.9599639845400545
FILES = "compare a.csv b.parquet --id id"
JSONL = "a.jsonl b.jsonl"


ASKED = np.select([np.arange(N) % 9 == 4, np.arange(N) % 31 == 7], ["?", ""], WORDS[1])
X = A.with_columns(y_pred=pl.Series(ASKED))
UNPARSED = "--invalid ? --invalid ''"
OF_INVALID: dict[str, Any] = {"y_true": WORDS[0], "y_pred": ASKED, "invalid": ["?", ""]}


def number(of: str, least: Any) -> dict[str, float]:
    return {f"num_{of}": np.ceil(least)}


LABELS = "y_true,y_pred\n"
COMPUTED: list[tuple[Any, ...]] = [
    # Predictions.
    ("report a.csv", lambda: jm.report(*OF_A)),
    ("report a.csv --prob p_ --level .9", lambda: jm.report(*OF_A, y_prob=PROBS[0], level=0.9)),
    (
        "report a.csv --prob p_ --group site",
        lambda: jm.report(*OF_A, y_prob=PROBS[0], groups=SITES),
    ),
    ("report a.csv --cluster patient", lambda: jm.report(*OF_A, clusters=PATIENTS)),
    (
        "report a.csv --cluster patient --prob p_",
        lambda: jm.report(*OF_A, y_prob=PROBS[0], clusters=PATIENTS),
    ),
    (
        "report a.csv --prob p_ --weight patient",
        lambda: jm.report(*OF_A, y_prob=PROBS[0], sample_weight=PATIENTS),
    ),
    (
        "report a.csv --pos-label dog --prob p_",
        lambda: jm.report(
            1 * (TRUE == 1),
            1 * (PREDS[0] == 1),
            y_prob=of_two(PROBS[0][:, 1]),
            class_names=["not dog", "dog"],
        ),
    ),
    (
        "report x.csv --prob p --pos-label spam",
        lambda: jm.report(SPAM, 1 * (PROB >= 0.5), **OF_MAIL),
        MAIL,
    ),
    (
        "report x.csv --score s --threshold .25 --pos-label spam",
        lambda: {
            "confusion_matrix": jm.confusion_matrix(SPAM, SCORE >= 0.25).tolist(),
            "overall": {"roc_auc": numbers(jm.delong_interval(SPAM, SCORE))},
        },
        MAIL,
    ),
    *(
        (f"report x{suffix} --prob {prefix}", lambda: OF_THREE, content)
        for suffix, prefix, content in (
            (".csv", "p_", {"y_true": [*"abb"], "p_b": CHANCES[:, 1], "p_a": CHANCES[:, 0]}),
            (".parquet", "p_", {"y_true": [*"abb"], "p_a": CHANCES[:, 0], "p_b": CHANCES[:, 1]}),
            (".parquet", "p", OBJECTS),
            (".jsonl", "p", LINES),
            (".jsonl", "p.", LINES),
        )
    ),
    (
        "report x.npz --prob y_prob",
        lambda: jm.report([0, 1, 1], [0, 1, 0], y_prob=CHANCES),
        {"y_true": [0, 1, 1], "y_prob": CHANCES},
    ),
    (  # also of the probabilities, and what else they hold is not looked at
        "report x.csv --prob p_ --weight w --ignore c",
        lambda: jm.report(
            [0, 1, -1],
            [0, 0, 2],
            y_prob=[[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.0, 0.0, 1.0]],
            sample_weight=[1, 1, 1],
            class_names=[*"abc"],
        ),
        "y_true,y_pred,w,p_a,p_b,p_c\na,a,1,.6,.3,.1\nb,a,1,.1,.8,.1\nc,c,-1,,,\n",
    ),
    *(
        (
            f"report x.csv --counts --prevalence {shares}",
            lambda: report_at_prevalence(
                jm.Report.from_counts([[90, 10], [20, 80]], class_names=["cat", "dog"]),
                {"cat": 0.95, "dog": 0.05},
            ),
            "cat,dog\n90,10\n20,80\n",
        )
        for shares in ("cat=.95,dog=.05", ".05")
    ),
    (
        "report x.csv --labels-prefix t_ p_",
        lambda: jm.multilabel_report(*TAGS, label_names=[*"abc"]),
        TAG_FRAME,
    ),
    (
        "report x.npz --labels-prefix t p",
        lambda: jm.multilabel_report(*TAGS),
        {"t": TAGS[0].astype(int), "p": TAGS[1]},
    ),
    (
        f"{FILES} --rope .1 --level .9",
        lambda: jm.comparison_report(*WORDS, rope=0.1, level=0.9, names=("a.csv", "b.parquet")),
    ),
    (
        f"{FILES} --prob p_ --cluster patient",
        lambda: jm.comparison_report(
            *WORDS,
            y_prob_a=PROBS[0],
            y_prob_b=PROBS[1],
            clusters=PATIENTS,
            names=("a.csv", "b.parquet"),
        ),
    ),
    (  # row by row
        "compare x.npz y.csv",
        lambda: jm.comparison_report([*"abb"], [*"aba"], [*"bbb"], names=("x.npz", "y.csv")),
        {"y_true": [*"abb"], "y_pred": [*"aba"]},
        "y_true,y_pred\na,b\nb,b\nb,b\n",
    ),
    (
        "compare x.csv y.csv --ignore=-1",
        lambda: {"num_examples": 2, "num_ignored": 2},
        "y_true,y_pred\na,a\nb,-1\nb,b\nb,b\n",
        "y_true,y_pred\na,a\nb,b\nb,b\nb,-1\n",
    ),
    (
        "leaderboard x.csv --metric macro_f1 --level .9",
        lambda: jm.leaderboard(jm.macro(jm.f1), TRUE, PREDS_OF_COLUMNS, level=0.9).to_dict(
            ["y_pred_0", "y_pred_1", "y_pred_2"]
        ),
        COLUMNS,
    ),
    (
        "leaderboard x.csv --cluster patient --pred y_pred_2 --pred y_pred_1",
        lambda: {
            "num_clusters": 40,
            **jm.leaderboard(jm.accuracy, TRUE, PREDS, clusters=PATIENTS).to_dict(
                ["y_pred_1", "y_pred_2"]
            ),
        },
        COLUMNS,
    ),
    (
        "leaderboard a.csv b.parquet --id id",
        lambda: jm.leaderboard(jm.accuracy, TRUE, PREDS).to_dict(["a.csv", "b.parquet"]),
    ),
    # Labels of predictions that are no classes.
    *(
        (
            f"report x{suffix} {UNPARSED} {options}",
            lambda more=more: jm.report(**OF_INVALID | more),
            X,
        )
        for suffix in (".csv", ".parquet")
        for options, more in (
            ("", {}),
            ("--invalid never --invalid ''", {"invalid": ["?", "", "never"]}),
            ("--cluster patient", {"clusters": PATIENTS}),
            ("--group site", {"groups": SITES}),
            ("--count patient", {"sample_weight": PATIENTS, "frequency": True}),
            ("--weight patient", {"sample_weight": PATIENTS}),
            ("--prob p_", {"y_prob": PROBS[0]}),
        )
    ),
    *(
        (
            command,
            lambda: {"num_invalid": 3, "confusion_matrix": [[1, 0, 0, 2], [0, 1, 1, 0], [0] * 4]},
            f"{LABELS}a,a\na,~\na,(other)\nb,b\nb,?\n",
        )
        for command in (
            "report x.csv --invalid ? --invalid-others",
            "report x.csv --invalid ? --invalid-others --examples 1",
        )
    ),
    (
        "compare x.csv y.csv --invalid-others",
        lambda: {"figures/accuracy/a/value": 0.5, "figures/accuracy/b/value": 0.75},
        f"{LABELS}a,a\na,~\nb,b\nb,?\n",
        f"{LABELS}a,a\na,a\nb,b\nb,?\n",
    ),
    (
        "leaderboard x.csv y.csv --invalid-others",
        lambda: {"classifiers/0/name": "y.csv", "classifiers/1/valid_rate": 0.5},
        f"{LABELS}a,a\na,~\nb,b\nb,?\n",
        f"{LABELS}a,a\na,a\nb,b\nb,?\n",
    ),
    (  # a label that is left out of the truth counts as wrong in predictions
        "report x.csv --ignore=-1 --invalid=-1",
        lambda: {
            "num_ignored": 1,
            "num_invalid": 1,
            "confusion_matrix": [[1, 0, 1], [0, 1, 0], [0, 0, 0]],
        },
        f"{LABELS}0,0\n1,1\n-1,-1\n0,-1\n",
    ),
    (
        "report x.csv --pos-label dog --invalid ? --invalid ''",
        lambda: jm.report(
            1 * (TRUE == 1),
            np.select([ASKED == "?", ASKED == ""], [2, 3], 1 * (ASKED == "dog")),
            class_names=["not dog", "dog", "?", ""],
            invalid=["?", ""],
        ),
        X,
    ),
    *(
        (
            f"report x.csv --counts --invalid {label}",
            lambda: jm.Report.from_counts(
                [[5, 1, 2], [2, 8, 0], [0, 0, 0]], class_names=[*"ab?"], invalid="?"
            ),
            content,
        )
        for label, content in (
            ("?", "?,a,b\n0,0,0\n2,5,1\n0,2,8\n"),
            ("?", "y_true,y_pred,count\na,a,5\na,b,1\na,?,2\nb,a,2\nb,b,8\n"),
        )
    ),
    (
        f"compare x.csv y.csv {UNPARSED} --prob p_",
        lambda: jm.comparison_report(
            WORDS[0],
            ASKED,
            WORDS[2],
            y_prob_a=PROBS[0],
            y_prob_b=PROBS[1],
            invalid=["?", ""],
            names=("x.csv", "y.csv"),
        ),
        X,
        B,
    ),
    (
        f"compare x.csv y.csv {UNPARSED} --id id --cluster patient",
        lambda: jm.comparison_report(
            *(WORDS[0], ASKED, WORDS[2]),
            clusters=PATIENTS,
            invalid=["?", ""],
            names=("x.csv", "y.csv"),
        ),
        X,
        B,
    ),
    *(
        (
            f"leaderboard x.csv y.csv {UNPARSED} --metric {name}",
            lambda metric=metric: jm.leaderboard(
                metric, WORDS[0], [ASKED, WORDS[2]], labels=[*NAMES, "?", ""]
            ).to_dict(["x.csv", "y.csv"]),
            X,
            B,
        )
        for name, metric in (
            ("accuracy", jm.accuracy),
            ("macro_f1", jm.macro(jm.f1, classes=range(3))),
            ("accuracy_of_valid", jm.micro(jm.precision, classes=range(3))),
            ("f1 --pos-label dog", None),
        )
        if metric is not None
    ),
    (
        f"plan x.csv {UNPARSED} --metric macro_f1 --half-width .05",
        lambda: number(
            "examples",
            jm.required_examples(
                jm.macro(jm.f1, classes=range(3)),
                jm.confusion_matrix(WORDS[0], ASKED, labels=[*NAMES, "?", ""]),
                half_width=0.05,
            ),
        ),
        X,
    ),
    # Plans.
    (
        "plan a.csv --half-width 0.02",
        lambda: number("examples", (PREDS[0] == TRUE).var() * (Z / 0.02) ** 2),
    ),
    (
        "plan a.csv b.parquet --id id --difference 0.05 --power 0.9",
        lambda: number(
            "examples", jm.required_examples(jm.accuracy, PAIRED, difference=0.05, power=0.9)
        ),
    ),
    (
        "plan a.csv --half-width 0.05 --cluster patient",
        lambda: number(
            "clusters",
            jm.required_examples(
                jm.accuracy,
                jm.confusion_matrix(TRUE, PREDS[0], **BY_PATIENT),
                half_width=0.05,
                cluster_axis=-3,
            ),
        ),
    ),
    (
        "plan a.csv b.parquet --id id --difference 0.05 --cluster patient",
        lambda: number(
            "clusters",
            jm.required_examples(
                jm.accuracy,
                jm.paired_confusion_matrix(TRUE, *PREDS, **BY_PATIENT),
                difference=0.05,
                cluster_axis=-4,
            ),
        ),
    ),
    *(
        (
            "plan x.csv --counts --half-width 0.02",
            lambda: number("examples", 90 * 8 / 98**2 * (Z / 0.02) ** 2),
            content,
        )
        for content in ("40,8\n0,50\n", "y_true,y_pred,count\na,a,40\na,b,8\nb,b,50\n")
    ),
    (
        "plan a.jsonl --value acc --half-width 0.01",
        lambda: number("items", RIGHT[0].var(ddof=1) * (Z / 0.01) ** 2),
    ),
    (
        f"plan {JSONL} --value acc --difference 0.05 --power 0.9",
        lambda: number(
            "items",
            N
            * jm.compare_scores(*RIGHT[:2], bounds=(0, 1)).difference.standard_error ** 2
            * ((Z + 1.2815515655446004) / 0.05) ** 2,
        ),
    ),
    (
        "plan x.csv --value v_1 --cluster id --half-width 0.05",
        lambda: number(
            "clusters",
            N / 2 * (Z / 0.05 * jm.mean_interval(RIGHT[0], clusters=PAIRS).standard_error) ** 2,
        ),
        ATTEMPTS[0],
    ),
    # Scores.
    (
        "report a.jsonl --value acc --group task",
        lambda: jm.score_report(RIGHT[0], groups=TASKS, **OF_SCORES),
    ),
    (
        "report b.jsonl --value evaluation.score --cluster user",
        lambda: jm.score_report(GRADES[1], bounds=(0, 1), clusters=USERS, name="evaluation.score"),
    ),
    *(
        (
            f"report a.jsonl --value acc --level .9 --bounds{sign}-1,3",
            lambda: jm.score_report(RIGHT[0], bounds=(-1.0, 3.0), level=0.9, name="acc"),
        )
        for sign in "= "
    ),
    (
        "report x.parquet --value loss --group g",
        lambda: jm.score_report(3 * SCORE, groups=TASKS, name="loss"),
        pl.DataFrame({"loss": 3 * SCORE, "g": TASKS}),
    ),
    (
        "report x.csv --value ok",
        lambda: jm.score_report([1, 0, np.nan, np.nan, 1, 0, np.nan, 1], bounds=(0, 1), name="ok"),
        "id,ok\n1,true\n2,False\n3,\n4,NaN\n5,1\n6,0.0\n7,null\n8, TRUE \n",
    ),
    (  # letters of Inspect
        "report x.csv --value score",
        lambda: jm.score_report([1, 0, 0.5, 0], bounds=(0, 1), name="score"),
        "id,score\n1,C\n2,I\n3,P\n4,N\n",
    ),
    (
        f"compare {JSONL} --value acc --group task",
        lambda: jm.score_report(
            *RIGHT[:2], groups=TASKS, **OF_SCORES, names=("a.jsonl", "b.jsonl")
        ),
    ),
    (  # rows in another order; an item that one system lacks has no part
        "compare a.jsonl x.parquet --value acc --id doc_id",
        lambda: {
            "num_items": N - 1,
            "num_ignored": 1,
            "values": jm.score_report(*RIGHT[:2, KEPT], **OF_SCORES).to_dict()["values"],
        },
        SAMPLES[0],
        SHUFFLED,
    ),
    (
        "compare x.csv y.csv --value v_1 --id id,epoch --cluster id",
        lambda: {
            "values": jm.score_report(*RIGHT[:2], bounds=(0, 1), clusters=PAIRS).to_dict()["values"]
        },
        *ATTEMPTS,
    ),
    *(
        ("compare x.csv y.csv --value acc", lambda: {"num_items": 3}, content, f"{content}\n\n")
        for content in ("acc\n1\n\n0\n1\n", "acc,time\n1,1\n,\n0,1\n0,1\n")
    ),
    *(
        (
            f"leaderboard a.jsonl b.jsonl c.jsonl --value acc {option}",
            lambda options=options: jm.score_leaderboard(RIGHT, bounds=(0, 1), **options).to_dict(
                ["a.jsonl", "b.jsonl", "c.jsonl"]
            ),
        )
        for option, options in (
            ("--cluster user", {"clusters": USERS}),
            ("--group task", {"groups": TASKS}),
        )
    ),
    (
        "leaderboard x.csv --value x,y,z",
        lambda: jm.score_leaderboard(RIGHT, bounds=(0, 1)).to_dict([*"xyz"]),
        SYSTEMS,
    ),
]


def numbers(x: Any) -> dict[str, float]:
    return {"value": float(x.value), "low": float(x.low), "high": float(x.high)}


def flat(x: Any, path: str = "") -> dict[str, Any]:
    """The leaves of nested dicts and lists, by their paths."""
    if not isinstance(x, Mapping | list | tuple):
        return {path: x}
    items = x.items() if isinstance(x, Mapping) else enumerate(x)
    return {k: y for name, part in items for k, y in flat(part, f"{path}/{name}").items()}


@pytest.mark.quick
@pytest.mark.parametrize("row", COMPUTED, ids=lambda row: row[0])
@pytest.mark.usefixtures("folder")
def test_a_command_computes_what_python_does(row: Any, run: Run) -> None:
    command, call, *contents = row
    found, expected = flat(answer(run, *with_files(command, *contents))), call()
    if {*command.split()} & {"--cluster"}:  # whose name is not known in Python
        assert found.pop("/cluster", "") in command
    if not isinstance(expected, dict):
        expected = json.loads(expected.to_json())
        assert [*found] == [*flat(expected)]
    for key, x in flat(expected).items():
        assert found.get(key) == (pytest.approx(x, rel=1e-9) if isinstance(x, float) else x), key


TWO_WAYS = "the classes {} and {} differ only in case, spaces, zeros or invisible characters."
OF_NAMES = "the first line, '0', '1'"
OF_TOTALS = "the last row and the last column of the confusion matrix are the sums"
ATTEMPTED = "--value v_1 --cluster id"
TOLD: list[tuple[Any, ...]] = [
    # Warnings.
    (
        "report x.csv --counts --weight n",
        "--weight means weights of examples; to name the column of counts, use --count.",
        "y_true,y_pred,n\na,a,3\nb,b,2\n",
    ),
    ("report x.csv --counts", OF_TOTALS, ",a,b,All\na,5,1,6\nb,2,7,9\nAll,7,8,15\n"),
    ("report x.csv --counts", OF_NAMES, "0,1,2\n5,1,0\n2,8,1\n"),
    ("report x.csv --counts", OF_NAMES, "0,1\n5,3\n"),
    (
        "report x.csv",
        "3 predictions are no true class: '?', 'd'; --invalid-others counts such predictions as",
        f"{LABELS}a,?\nb,b\nc,d\na,?\n",
    ),
    (
        "compare x.csv y.csv",
        "2 predictions are no true class: '?', 'd';",
        f"{LABELS}a,?\nb,b\n",
        f"{LABELS}a,d\nb,b\n",
    ),
    *(
        (
            "report x.csv",
            TWO_WAYS.format(*map(repr, sorted(names))),
            "{2}{0},{1}\n10,10\n{0},10\n".format(*names, LABELS),
        )
        for names in (("01", "1"), ("Cat", "cat"), ("\u00e9", "e\u0301"))
    ),
    ("report x.csv", TWO_WAYS.format("'Cat'", "'cat'"), f"{LABELS}Cat,cat\ncat,Cat\n"),
    ("report x.csv", "'nan' is counted as a class", f"{LABELS}18_25,nan\nnan,18_25\n"),
    (
        "report x.csv",
        "count them as wrong with invalid='[invalid]'",
        f"{LABELS}a,[invalid]\n[invalid],b\n",
    ),
    (
        "report x.csv --pos-label a",
        "1 prediction is no true class: '[invalid]';",
        f"{LABELS}a,[invalid]\nb,b\n",
    ),
    *(
        (
            f"{command} --invalid [INVALID]",
            "no prediction is '[INVALID]', which is named as invalid; '??' is predicted and counts",
            *[f"{LABELS}a,??\nb,b\na,a\n"] * 2,
        )
        for command in ("report x.csv", "compare x.csv y.csv", "leaderboard x.csv y.csv")
    ),
    (
        f"leaderboard x.csv y.csv {UNPARSED}",
        "tier valid rate",
        X,
        B,
    ),
    (  # Parquet keeps spaces
        "report x.parquet",
        TWO_WAYS.format("'a'", "'a '"),
        pl.DataFrame({"y_true": ["a ", "b"], "y_pred": ["a", "b"]}),
    ),
    (
        "compare x.csv y.csv",
        TWO_WAYS.format("'01'", "'1'"),
        f"{LABELS}01,01\n10,10\n",
        f"{LABELS}01,1\n10,10\n",
    ),
    (
        "report x.csv --cluster c",
        "8 examples in 4 clusters",
        "y_true,y_pred,c\n" + "a,a,1\nb,b,2\na,b,3\nb,a,4\n" * 2,
    ),
    (
        "report x.csv --cluster c",
        "jaxmetrics: warning: with 2 clusters (of a class), confidence",
        "y_true,y_pred,c\n" + "a,a,1\nb,b,2\na,b,3\nb,a,4\n" * 2,
    ),
    (
        "report x.csv",
        "the column 'Seed' perhaps tells apart attempts at the same items. If so, name the column",
        "y_true,y_pred,Seed,split\na,a,0,x\nb,b,0,x\na,b,1,x\nb,b,1,x\n",
    ),
    (  # a column of few values is not a column of items
        "report x.csv",
        "4 examples, 2 classes",
        "y_true,y_pred,test\na,a,x\nb,b,x\na,b,y\nb,b,y\n",
    ),
    *(
        (command, "labels such as ' b', 'a\\n' have spaces around them, which are removed", text)
        for command, text in (
            ("report x.csv", f'{LABELS}a,"a\n"\nb, b\n'),
            (
                "report x.jsonl",
                '{"y_true": "a", "y_pred": "a\\n"}\n{"y_true": "b", "y_pred": " b"}',
            ),
        )
    ),
    # Sentences. A file of a single class has accuracy.
    *(
        (f"report x.csv {options}", f"classes Accuracy is {value}", f"{LABELS}a,a\na,{pred}\n")
        for options, value, pred in (
            ("", "1.00", "a"),
            ("--pos-label a", "1.00", "a"),
            ("--gate accuracy>=0", "1.00", "a"),
            ("--invalid-others", "0.50", "b"),
            ("--invalid ?", "0.50", "?"),
        )
    ),
    *(
        (f"compare x.csv y.csv {options}", text, f"{LABELS}a,a\na,{pred}\n", f"{LABELS}a,a\na,a\n")
        for options, text, pred in (
            ("", "accuracy of A minus accuracy of B is 0.00", "a"),
            ("--invalid-others", "accuracy of A minus accuracy of B is -0.50", "b"),
        )
    ),
    (
        "compare x.csv y.csv --pos-label b",
        "F1 (b) of A minus F1 (b) of B is",
        f"{LABELS}a,a\nb,b\na,b\n",
        f"{LABELS}a,a\nb,b\na,a\n",
    ),
    (
        "report x.csv --prevalence a=.9,b=.1",
        "Accuracy is 0.55",
        f"{LABELS}a,a\nb,b\na,b\n",
    ),
    (
        "report x.csv --score s --threshold 3",
        "ROC AUC: it is below 0.5, because the other class has the higher scores. Make that class",
        "y_true,s\n" + "".join(f"{i // 10},{20 - i}\n" for i in range(20)),
    ),
    *(
        (command, f"{names} (missing)", content)
        for command, names, content in (
            ("report x.csv --group g", "x", "y_true,y_pred,g\na,a,x\nb,b,\na,b,x\n"),
            ("report x.csv --group g", "9 10", "y_true,y_pred,g\na,a,\nb,b,10\na,b,9\n"),
            (
                "report x.parquet --group g",
                "x y",
                pl.DataFrame({"y_true": [*"aba"], "y_pred": [*"abb"], "g": ["x", None, "y"]}).sort(
                    "g"
                ),
            ),
        )
    ),
    (
        "report x.csv --value acc --group task",
        "mean: 0.000 1.000 (missing) 1",
        "acc,task\n1,x\n0,\n",
    ),
    (
        "compare x.csv y.csv --value acc --group task",
        "(missing) 1",
        *["acc,task\n1,x\n0,\n1,x\n"] * 2,
    ),
    ("report a.csv --format csv", "name,class,value"),
    (f"report x.csv {UNPARSED}", "34 invalid predictions (14.2 %), 3 classes", X),
    (f"report x.csv {UNPARSED} --gate 'valid_rate >= .5'", "passed", X),
    (f"report x.csv {UNPARSED} --examples 9", " cat ? ", X),
    (f"compare x.csv y.csv {UNPARSED} --gate 'valid_rate <= 0' --examples 5", "valid rate", X, B),
    ("report a.csv --format latex", r"accuracy & 0."),
    ("report a.csv --format json", '{ "num_examples": 240'),
    ("report a.csv --format every-eval-ever", '"evaluation_name": "accuracy"'),
    ("report x.csv --labels-prefix t_ p_", "150 examples, 3 labels", TAG_FRAME),
    ("report x.csv --labels-prefix t_ p_", "2 examples, 1 label Labels", "t_a,p_a\n1,0\n1,1\n"),
    (
        "report x.csv --counts --prevalence cat=0.95,dog=0.05",
        "The classes have likelihood intervals",
        "cat,dog\n90,10\n20,80\n",
    ),
    (
        "leaderboard x.csv",
        "y_pred_0 is shown to be the best. classifier accuracy [low, high] ranks tier accuracy:",
        COLUMNS,
    ),
    ("leaderboard a.jsonl b.jsonl c.jsonl --value acc --group task", "classifiers by acc, mean of"),
    (f"leaderboard x.csv y.csv {ATTEMPTED} --id id,epoch", "2 classifiers by v_1", *ATTEMPTS),
    (f"report x.csv {ATTEMPTED} --id epoch,id", "240 items in 120 clusters", *ATTEMPTS),
    (
        "compare a.jsonl b.jsonl --value acc --group task",
        "A is better: its mean is higher by 0.138 [0.056, 0.218].",
    ),
    ("compare a.jsonl b.jsonl --value acc --group task --gate 'group[law] >= -1'", "law A - B"),
    (
        "plan a.csv b.parquet --id id --difference 0.05 --power 0.9",
        "978 examples like these show a difference of 0.05 in accuracy with",
    ),
    (
        "plan a.csv b.parquet --id id --difference 0.1 --cluster patient",
        "240 examples in 40 clusters, enough to show",
    ),
    (
        f"plan {JSONL} --value acc --difference 0.05",
        "items like these show a difference of 0.05 in acc",
    ),
    (f"plan x.csv {ATTEMPTED} --half-width .1", "v_1", *ATTEMPTS),
]


@pytest.mark.parametrize("row", TOLD, ids=lambda row: row[0])
@pytest.mark.usefixtures("folder")
def test_a_command_says(row: Any, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # three groups side by side
    command, sentence, *contents = row
    code, out, err = run(*with_files(command, *contents))
    assert code == 0
    assert sentence in " ".join((out + err).split())
    warnings = err.splitlines()
    assert all(line.startswith("jaxmetrics: warning: ") for line in warnings)
    assert len({*warnings}) == len(warnings)


@pytest.mark.usefixtures("folder")
def test_groups_that_memory_may_not_hold(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "y_true,y_pred,p_a,p_b,g\na,a,1,0,x\nb,b,0,1,y\nb,b,0,1,z\n"
    arguments = with_files("report x.csv --prob p_ --group g", text)
    for limit, value, number, message in (
        ("_MOST_CELLS", 11, 4, "3 groups with 2 classes are too many: the confusion matrices of"),
        ("_MOST_BYTES", 10_000, 2, "Leave out --group or --prob"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"jaxmetrics.cli._predictions.{limit}", value)
            code, _, error = run(*arguments[:2], *arguments[number:])
            assert (code, message in error) == (2, True), error
            assert run(*arguments[:4])[0] == 0


@pytest.mark.quick
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_scores_in_float32_reach_their_threshold(dtype: Any, run: Run) -> None:
    true, score = np.array([0, 1, 1, 0]), np.array([0.7, 0.7, 0.2, 0.8], dtype)
    expected = jm.confusion_matrix_at_thresholds(true, score, [0.7])[0].tolist()
    columns = {"y_true": true, "p": score}
    for suffix in (".npz", ".parquet") if dtype == np.float32 else (".npz",):
        for option in ("--prob", "--score"):
            command = f"report x{suffix} {option} p --threshold 0.7"
            assert answer(run, *with_files(command, columns))["confusion_matrix"] == expected


@pytest.mark.usefixtures("folder")
def test_the_positive_class_is_compared(run: Run) -> None:
    found = answer(run, *with_files(f"{FILES} --pos-label cat --prob p_"))["figures"]
    of_cat = TRUE == 0, *(pred == 0 for pred in PREDS)
    recalls = jm.compare_predictions(jm.binary(jm.recall), *of_cat, num_classes=2)
    areas = jm.delong(of_cat[0], *(prob[:, 0] for prob in PROBS))
    for name, expected in (("recall", recalls), ("roc_auc", areas)):
        for system in ("a", "b", "difference"):
            x = found[name][system]
            assert [x["value"], x["low"], x["high"]] == pytest.approx(
                fields_of(getattr(expected, system))[:3], rel=1e-9
            )


QUESTIONS = np.arange(N) // 2
REPEATED = [
    pl.DataFrame({"doc_id": QUESTIONS, "filter": [*"xy"] * (N // 2), "acc": right, "task": tasks})
    for right, tasks in zip(RIGHT[:2], (TASKS[QUESTIONS],) * 2, strict=True)
]

MODELS = [REPEATED[0].rename({"doc_id": "task_id", "filter": "model"})]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "frames", "column"),
    [
        ("report x.jsonl --value acc", REPEATED, "doc_id"),
        ("compare x.jsonl y.jsonl --value acc", REPEATED, "doc_id"),
        ("compare x.jsonl y.jsonl --value acc --id doc_id,filter", REPEATED, "doc_id"),
        ("leaderboard x.jsonl y.jsonl --value acc --group filter", REPEATED, "doc_id"),
        ("leaderboard x.jsonl y.jsonl --value acc --group task", REPEATED, "doc_id"),
        ("plan x.jsonl y.jsonl --value acc --difference .1", REPEATED, "doc_id"),
        ("report x.csv", [A.with_columns(id=QUESTIONS)], "id"),
        ("report x.jsonl --value acc --group model", MODELS, "task_id"),
        ("compare x.csv y.csv", [x.with_columns(id=QUESTIONS) for x in (A, B)], "id"),
        ("report x.parquet --prob p_", [A.with_columns(sample_id=QUESTIONS)], "sample_id"),
        ("report x.csv --id item --examples 2", [A.with_columns(item=QUESTIONS)], "item"),
        ("leaderboard x.csv y.csv", [x.with_columns(id=QUESTIONS) for x in (A, B)], "id"),
        ("report x.csv", [A.with_columns(testIdx=QUESTIONS)], "testIdx"),
    ],
)
def test_items_that_repeat_are_clusters(
    command: str, frames: list[pl.DataFrame], column: str, run: Run
) -> None:
    arguments = with_files(command, *frames)
    code, out, err = run(*arguments, "--json")
    assert (code, err.count("\n")) == (0, 1)
    assert f"rows with the same {column} are treated as one cluster" in err
    # Items of one task differ from items of another.
    named = f"{column},task" if "task" in command else column
    out = out.replace(f'"cluster": "{named}"', f'"cluster": "{column}"')
    if not command.startswith("plan"):
        assert json.loads(out)["cluster"] == column
        assert f" in 120 clusters ({named})" in run(*arguments)[1]
    assert run(*arguments, "--json", "--cluster", column) == (0, out, "")
    independent = run(*arguments, "--json", "--cluster", "")
    assert independent[::2] == (0, "")
    assert independent[1] != out


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("other", "sizes", "is_clustered"),
    [
        ("subject", (20, 60, 100), False),
        ("subject", (60, 60, 60), True),  # perhaps languages
        ("subject", (60, 60, 55), True),
        ("epoch", (20, 60, 100), True),
        ("run_name", (20, 60, 100), True),
        ("model.name", (20, 60, 100), True),
    ],
)
@pytest.mark.parametrize("command", ["report x.jsonl", "compare x.jsonl y.jsonl"])
def test_items_that_start_anew_in_each_task(
    command: str, other: str, sizes: tuple[int, ...], is_clustered: bool, run: Run
) -> None:
    rng, number = np.random.default_rng(3), [*range(len(sizes))]
    frame = pl.DataFrame(
        {
            other: np.repeat([f"t{i}" for i in number], sizes),
            "doc_id": np.concatenate([*map(np.arange, sizes)]),
            "field": np.repeat([*"aab"], sizes),
        }
    )
    scores = [frame.with_columns(acc=rng.random(len(frame))) for _ in range(2)]
    ids = ["--value", "acc", "--id", f"{other},doc_id"]
    for more in ([], ["--group", "field"]):
        arguments = with_files(command, *scores)
        code, out, err = run(*arguments, *ids, *more)
        assert (code, "doc_id are treated as one cluster" in err) == (0, is_clustered)
        assert ("for example if doc_id starts anew in each task" in err) == is_clustered
        alone = run(*arguments, *ids, *more, "--cluster", "")
        assert (out == alone[1]) == (not is_clustered)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["sample.id", "x.Question.ID", "doc.question_id", "item.id"])
def test_items_in_fields_of_objects_repeat(name: str, run: Run) -> None:
    frame = REPEATED[0].select(doc_id="doc_id", acc="acc").rename({"doc_id": name})
    for repeated in (frame, frame.with_columns(pl.Series("model.id", [*"ab"] * (N // 2)))):
        arguments = with_files("report x.csv --value acc", repeated)
        out, err = run(*arguments)[1:]
        assert f"the column '{name}' repeats (120 different values in 240 rows)" in err
        assert f"240 items in 120 clusters ({name})" in out
    both = with_files("compare x.csv y.csv --value acc", frame, frame.reverse())
    assert "have ids in different orders" in run(*both)[2]


@pytest.mark.usefixtures("folder")
def test_attempts_in_fields_of_objects(run: Run) -> None:
    epochs = pl.DataFrame({"run.Epoch": [1, 2] * 50, "response.id": range(100), "acc": [0, 1] * 50})
    err = run(*with_files("report x.csv --value acc", epochs))[2]
    assert "the column 'run.Epoch' perhaps tells apart attempts at the same items" in err


ONE_FILE = {
    role: A.select("id", "patient", "site", pl.col("y_true").alias("truth")).with_columns(
        pl.Series(name, x) for name, x in zip("xyz", columns, strict=True)
    )
    for role, columns in (("pred", (ASKED, *WORDS[1:])), ("value", (*GRADES, 1.0 * RIGHT[2])))
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["compare", "leaderboard"])
@pytest.mark.parametrize(
    ("role", "options"),
    [
        ("pred", f"--true truth {UNPARSED}"),
        ("pred", f"--true truth {UNPARSED} --cluster patient"),
        ("pred", f"--true truth {UNPARSED} --where site=x"),
        ("value", ""),
        ("value", "--cluster patient --group site --bounds=-1,2"),
    ],
)
def test_systems_in_one_file_are_those_of_several_files(
    command: str, role: str, options: str, run: Run
) -> None:
    wide, number = ONE_FILE[role], 2 + (command == "leaderboard")
    shared = ["id", "patient", "site", "truth"]
    parts = [wide.select(*shared, pl.lit(x).alias("model"), answer=x) for x in "xyz"[:number]]
    long = pl.concat(parts).sample(fraction=1, shuffle=True, seed=5)
    names = long["model"].unique(maintain_order=True).to_list()
    save(wide, Path("wide.csv"))
    save(long, Path("long.parquet"))

    def of(*arguments: str) -> Any:
        found = answer(run, command, *arguments, *shlex.split(options))
        return {key: x for key, x in found.items() if key not in ("score", "metric")}

    def of_files(frames: Iterable[pl.DataFrame], *more: str) -> Any:
        files = [str(save(x, Path(f"{name}.csv"))) for name, x in zip(names, frames, strict=True)]
        found = json.dumps(of(*files, f"--{role}", "answer", *more))
        return json.loads(found.replace(".csv", ""))

    columns = [part for name in names for part in (f"--{role}", name)]
    assert of("wide.csv", *columns) == of_files([wide.select(*shared, answer=x) for x in names])
    by_rows = of("long.parquet", "--system", "model", f"--{role}", "answer")
    assert by_rows == of("long.parquet", "--system", "model", f"--{role}", "answer", "--id", "id")
    assert by_rows == of_files([long.filter(model=name) for name in names], "--id", "id")


@pytest.mark.usefixtures("folder")
def test_scores_of_two_classifiers_in_one_file(run: Run) -> None:
    save(pl.DataFrame({"y_true": SPAM, "s": SCORE, "t": -SCORE}), Path("x.csv"))
    options = ["--score", "s", "--score", "t", "--threshold", "0"]
    found = answer(run, "compare", "x.csv", *options)["figures"]["roc_auc"]["difference"]
    expected = jm.delong(SPAM, SCORE, -SCORE).difference
    assert (found["value"], found["low"]) == pytest.approx((expected.value, expected.low))


@pytest.mark.usefixtures("folder")
def test_an_option_that_is_given_twice_is_refused(run: Run) -> None:
    code, _, error = run("report", "a.csv", "--group", "patient", "--group", "y_pred")
    assert (code, error) == (2, "jaxmetrics: --group was given twice\n")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["compare", "leaderboard"])
def test_ids_in_another_order_are_not_matched_by_position(command: str, run: Run) -> None:
    shuffled = SAMPLES[1].sample(fraction=1, shuffle=True, seed=0)
    arguments = with_files(f"{command} x.jsonl y.jsonl --value acc", SAMPLES[0], shuffled)
    code, _, error = run(*arguments)
    assert code == 2
    assert "have ids in different orders. The first difference is in row" in error
    by_id, by_order = (answer(run, *arguments, "--id", x) for x in ("doc_id", ""))
    ordered = with_files(f"{command} x.jsonl y.jsonl --value acc", *SAMPLES[:2])
    assert by_id == answer(run, *ordered) != by_order


@pytest.mark.usefixtures("folder")
def test_items_of_other_groups_and_files_do_not_repeat(run: Run, folder: Path) -> None:
    restarted = SAMPLES[0].with_columns(doc_id=QUESTIONS, task=pl.Series([*"xy"] * (N // 2)))
    grouped = with_files("report x.jsonl --value acc --group task", restarted)
    assert "num_clusters" not in answer(run, *grouped)
    (folder / "parts").mkdir()
    for i in range(2):
        write(folder / f"parts/{i}.jsonl", restarted[i::2])
    assert "num_clusters" not in answer(run, "report", "parts", "--value", "acc")
    for i in range(2):
        write(folder / f"parts/{i}.jsonl", pl.concat([restarted[i::2]] * 2))
    assert json.loads(run("report", "parts", "--value", "acc", "--json")[1])["num_clusters"] == N
    for i in range(2):
        write(folder / f"parts/{i}.jsonl", pl.concat([A.head(9)] * 2))
    assert json.loads(run("report", "parts", "--json")[1])["num_clusters"] == 18


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("report {}", "{}.csv"),
        ("report {} --value w", "{}.jsonl"),
        ("compare {} {}", "{}.parquet"),
        ("compare {} {} --value w", "{}.csv"),
        ("leaderboard {0} {0}", "{}.csv"),
    ],
)
def test_ids_that_repeat_between_files_are_of_different_items(
    command: str, name: str, run: Run, folder: Path
) -> None:
    (folder / "parts").mkdir()
    rows = A.with_columns(w=pl.Series(RIGHT[0]))
    for i in range(3):
        write(folder / "parts" / name.format(i), rows[i::3].with_columns(id=np.arange(N // 3)))
    assert "num_clusters" not in answer(run, *command.format("parts", "parts").split())


def lm_eval_rows(number: int, **columns: Any) -> pl.DataFrame:
    """Rows in the format of lm-evaluation-harness."""
    return pl.DataFrame(
        {
            "doc_id": np.arange(number),
            "doc": [{"question": "?"}] * number,
            "filter": ["none"] * number,
            "resps": [[["yes"]]] * number,
            **columns,
        }
    )


@pytest.mark.usefixtures("folder")
def test_folders_of_lm_evaluation_harness(run: Run, folder: Path) -> None:
    pairs = np.stack([TRUE == 0, PREDS[0] == 0], 1).astype(int)
    for i, model in enumerate("ab"):
        (folder / model).mkdir()
        acc, strict, flexible = RIGHT[i, :90], RIGHT[i, 90:160], RIGHT[i, 120:190]
        extracts = [
            lm_eval_rows(70, exact_match=right, filter=[name] * 70)
            for name, right in (("strict", strict), ("flexible", flexible))
        ]
        tasks = {
            "arc_easy": lm_eval_rows(90, acc=acc, acc_norm=~acc)[:: 1 - 2 * i],  # b: other order
            "cola": lm_eval_rows(N, mcc=pairs.tolist()),
            "gsm8k": pl.concat(extracts),
        }
        for task, rows in tasks.items():
            write(folder / model / f"samples_{task}_2026-11-0{i + 1}T10-00-00.123.jsonl", rows)
        write(folder / model / "results_2026-11-01T10-00-00.123.json", "{}")
    items = np.r_[:160, 120:190]
    groups = np.repeat(["arc_easy", "gsm8k"], [90, 140])
    clusters = np.r_[:160, 90:160]
    values = {"bounds": (0, 1), "clusters": clusters}
    read: dict[str, Any] = {}
    for command, expected in (
        ("report a", jm.score_report(RIGHT[0, items], groups=groups, **values)),
        ("compare a b", jm.score_report(*RIGHT[:2, items], groups=groups, **values)),
    ):
        code, out, err = run(*command.split(), "--value", "acc,exact_match", "--json")
        read[command] = code, out
        assert (code, "left out: 'cola'" in err) == (0, True)
        found = flat(json.loads(out)["values"])
        for key, x in flat(expected.to_dict()["values"]).items():
            assert found[key] == (pytest.approx(x, rel=1e-9) if isinstance(x, float) else x), key
    for option, grouped in (("", None), ("--group task", groups)):
        ranking = f"leaderboard a b --value acc,exact_match {option} --json".split()
        board = jm.score_leaderboard(RIGHT[:2, items], groups=grouped, **values)
        read[f"leaderboard a b {option}"] = run(*ranking)[:2]
        found = flat(json.loads(read[f"leaderboard a b {option}"][1]))
        for key, x in flat(board.to_dict([*"ab"])).items():
            assert found[key] == (pytest.approx(x, rel=1e-9) if isinstance(x, float) else x), key
    command = "report a --value exact_match --where filter=strict --json"
    found = json.loads(run(*command.split())[1])["values"]["mean"]
    assert found["value"] == pytest.approx(RIGHT[0, 90:160].mean())
    for model in "ab":  # compressed, and compressed in part
        for path in sorted((folder / model).glob("*.jsonl"))[: 2 + (model == "a")]:
            path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.rename(folder / path.name)
    for command in ("report a", "compare a b", "leaderboard a b --group task"):
        code, out, err = run(*command.split(), "--value", "acc,exact_match", "--json")
        assert (code, out, "left out: 'cola'" in err) == (*read[command], True)
    for path in folder.glob("samples_*01T*.jsonl"):
        path.rename(folder / "a" / path.name)
    cola = "a/samples_cola_2026-11-01T10-00-00.123.jsonl"
    answered = answer(run, "report", cola, "--true", "mcc.0", "--pred", "mcc.1")
    counts = jm.confusion_matrix(*pairs.T, num_classes=2)
    assert answered["confusion_matrix"] == counts.tolist()
    for command, message in (
        (f"report {cola} --value mcc", "--true mcc.0 --pred mcc.1 reads them"),
        ("report a --value f1", "no file of the folder has a column 'f1'"),
        ("report a --value acc --where filter=x", "the file has no rows with filter = 'x'"),
    ):
        code, _, err = run(*command.split())
        assert (code, message in err) == (2, True), err
