"""Two tables of command lines with the contents of their files: what is refused, with the message,
and what is counted, with the confusion matrix.
"""

import datetime
import gzip
import io
import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import zstandard

from tests.command_line import A, Run, with_files

PREDICTIONS = "y_true,y_pred,w,p_0,p_1\n0,0,1,0.9,0.1\n1,1,1,0.2,0.8\n1,0,1,0.6,0.4\n"
IDS = "id,y_true,y_pred\n1,a,a\n2,b,b\n3,a,b\n"
SCORES = "acc,task\n1,math\n0,math\n"
OF_SITES = "id,y_true,y_pred,site\n1,a,a,x\n2,b,a,y\n"
BOTH = "y_true,y_pred,s,p_0,p_1\n0,1,1,1,0\n1,0,2,0.4,0.6\n"
LONG = "m,q,y_true,y_pred,v,e\na,1,k,k,1,x\nb,1,k,l,0,\na,2,l,l,1,x\nb,2,l,l,1,x\na,3,k,k,1,x\n"
OF_3 = f"m,{IDS}".replace("\n1", "\na,1").replace("\n2", "\nb,1").replace("\n3", "\nc,1")
MATRIX = "5,1\n2,8\n"
LABELS = "y_true,y_pred\n"

PETS = "cat,dog\n90,10\n20,80\n"
CELLS = "y_true,y_pred,count\ncat,cat,80\ncat,dog,20\ndog,cat,10\ndog,dog,190\n"
ATTEMPTS = "id,epoch,v\n1,1,1\n1,2,0\n2,1,1\n2,2,1\n"
REVERSED = "id,epoch,v\n2,1,1\n2,2,1\n1,1,1\n1,2,0\n"
NESTED = """\
{"doc": {"q": "x", "ids": [1, "2"]}, "resps": [["a", "b"]], "o": {"t": "b", "w": 2}, "o.p": "b",\
 "mixed": 1, "text": "\\ud800", "loss": NaN}
{"doc": {"q": 3}, "resps": [3], "o": {"t": "a", "w": 3, "p": "c"}, "o.p": "b", "mixed": [1],\
 "text": "\\ud83d\\ude00", "loss": -Infinity}
{"doc": null, "resps": "a", "o": {"w": 0.5, "t": "b"}, "o.p": "a", "mixed": {"a": 1}, "loss": 7}
"""
LINES = """\
{"y_true": 0, "y_pred": "0", "p": [0.9, 0.1]}

{"y_pred": 1, "y_true": 1, "p": [0, 1], "late": 3}
{"y_true": "1", "y_pred": 0, "p": [0.6, 0.4]}
"""
ZIPPED: dict[str, Any] = {"gz": gzip.compress, "zst": zstandard.compress}
TABS = "y_true\ty_pred\na\ta\n"
SEPARATORS = ";;", "'\"'", "é", "''"
FORM = "--gate must have a form such as 'accuracy >= 0.9'"
ONE_OF_CLASS = (
    "which has one value for each class. Write one of the classes in brackets, such as recall[cat]"
)
WRITTEN = "--output writes files with the suffixes"

FRAME = pl.DataFrame(
    {
        "y_true": [*"babac"],
        "y_pred": [*"baaab"],
        "w": [1.0, 2.0, 0.5, 0.0, 1.0],
        "n": [1, 2, 3, 0, 1],
    }
)
DATE = datetime.date(2020, 1, 2)
KINDS = FRAME.with_columns(
    cat=pl.Series([*"32122"], dtype=pl.Categorical),
    date=pl.lit(DATE),
    time=pl.lit(datetime.datetime(2020, 1, 2)),
    span=pl.lit(datetime.timedelta(1)),
    bytes=pl.lit(b"1"),
    list=pl.lit([1.0, 2.0]),
    dates=pl.lit([DATE, DATE]),
    objects=pl.struct(p_a=pl.lit(0.5), w=pl.col("w")),
).with_columns(pl.col("y_true", "y_pred").cast(pl.Categorical))
SPAM = "y_true,s,p\nham,1.5,.2\nspam,2,.7\n"


def arrays(true: Any, pred: Any) -> dict[str, Any]:
    return {"y_true": true, "y_pred": pred}


def free_text(late: int) -> pl.DataFrame:
    answers = ["a"] * late + [f"answer {i}" for i in range(5000)]
    return pl.DataFrame({"y_true": ["a", "b"] * (len(answers) // 2), "y_pred": answers})


def late(row: str) -> str:
    """Write a row as the 30th and the last of 40 rows, some of which are empty."""
    rows = ["a,b,1", "b,a,1", "", "c,c,1"] * 10
    rows[29] = rows[-1] = f"{row},1"
    return "\n".join(["y_true,y_pred,w", *rows]) + "\n"


REFUSED: list[tuple[Any, ...]] = [
    ("report gone.csv", "gone.csv: no such file"),
    ("report .", "the folder contains no file of type .csv, .tsv, .jsonl,"),
    (
        "report x.txt",
        "the suffix '.txt' is unknown. The supported suffixes are .csv, .tsv, .jsonl,",
        "y_true,y_pred\n",
    ),
    ("report x.csv", "x.csv: cannot be read: the file is empty", ""),
    ("report x.csv", "x.csv: the file has no rows", "y_true,y_pred\n"),
    (
        "report x.csv",
        "columns are not separated by ',', the first line is 'y_true;y_pred': --separator",
        "y_true;y_pred\n0;1\n",
    ),
    ("report x.csv", "'truth', 'y_pred'; --true names another", "truth,y_pred\n0,1\n"),
    ("report x.csv", "the file has two columns 'y_pred'", "y_true,y_pred,y_pred\n0,1,1\n"),
    (
        "report x.csv --pred guess",
        "no column 'guess'; the file has 'y_true', 'y_pred', 'w', 'p_0', 'p_1'",
        PREDICTIONS,
    ),
    ("report x.csv --pred guess --prob p_", "no column 'guess'", PREDICTIONS),
    (
        "report x.csv --pred y_true",
        "one column is given for two options: true = 'y_true', pred = 'y_true'",
        PREDICTIONS,
    ),
    *(
        (
            f"{command} x.csv y.csv",
            "y.csv: the true and the predicted classes have no class in common: '0', '1' and '00'",
            "y_true,y_pred\n1,1\n0,0\n",
            "y_true,y_pred\n1,01\n0,00\n",
        )
        for command in ("compare", "leaderboard")
    ),
    (
        "report x.csv",
        "no class in common: 'D+', 'D-' and 'T+', 'T-'. Write the classes in the same way",
        "y_true,y_pred\nD+,T+\nD-,T-\n",
    ),
    (
        "report x.csv",
        "'Cat', 'Dog' and 'cat', 'dog'. They differ in case or spaces. Write",
        "y_true,y_pred\nCat,cat\nDog,dog\n",
    ),
    ("report x.csv --weight weight", "no column 'weight'", PREDICTIONS),
    ("report x.csv --count n", "no column 'n'", PREDICTIONS),
    (
        "report x.csv --weight n --count n",
        "--weight and --count cannot be used together",
        PREDICTIONS,
    ),
    ("report x.csv --prob q_", "no column begins with 'q_'", PREDICTIONS),
    (
        "report x.csv --weight w",
        "in row 2, the value of 'w' is 'nan', but it must be a number >= 0.",
        "y_true,y_pred,w,p_0,p_1\n0,0,1,0.9,0.1\n1,1,nan,0.2,0.8\n1,0,1,0.6,0.4\n",
    ),
    (
        "report x.csv --weight w",
        "in row 3, the value of 'w' is '-2', but it must be a number >= 0.",
        "y_true,y_pred,w,p_0,p_1\n0,0,1,0.9,0.1\n1,1,1,0.2,0.8\n1,0,-2,0.6,0.4\n",
    ),
    (
        "report x.csv --weight w",
        "in row 3, the value of 'w' is 'much', but it must be a number >= 0.",
        "y_true,y_pred,w,p_0,p_1\n0,0,1,0.9,0.1\n1,1,1,0.2,0.8\n1,0,much,0.6,0.4\n",
    ),
    (
        "report x.csv --weight w",
        "no examples to report on: all counts are 0",
        "y_true,y_pred,w,p_0,p_1\n0,0,0,0.9,0.1\n1,1,0,0.2,0.8\n1,0,0,0.6,0.4\n",
    ),
    (
        "report x.csv --prob p_",
        "row 2, the value of 'p_0' + 'p_1' is ['0.2', '0.7'], but it must be prob",
        "y_true,y_pred,w,p_0,p_1\n0,0,1,0.9,0.1\n1,1,1,0.2,0.7\n1,0,1,0.6,0.4\n",
    ),
    (
        "report x.csv --prob p_",
        "row 2: 'y_true' is '2', a class for which there is no",
        "y_true,y_pred,w,p_0,p_1\n0,0,1,0.9,0.1\n2,1,1,0.2,0.8\n1,0,1,0.6,0.4\n",
    ),
    (
        "report x.csv",
        "'y_pred' is '', which is no class; --invalid '' counts it as a wrong prediction; --ignore",
        "y_true,y_pred\na,a\nb,\n",
    ),
    (
        "report x.csv",
        "'-1', which is no class id; --invalid=-1 counts it as a wrong prediction; --ignore=-1"
        " leaves such rows out; to use it as a class, name all, as in --classes=-1,1",
        "y_true,y_pred\n0,1\n1,-1\n",
    ),
    (
        "report x.csv --classes a,b",
        "row 2: 'y_pred' is 'b c', which is none of --classes; --invalid='b c' counts it as a wrong"
        " prediction; --ignore='b c' leaves",
        "y_true,y_pred\na,a\nb,b c\n",
    ),
    ("report x.csv --classes a,b,a", "--classes: 'a,b,a' names a class twice", PREDICTIONS),
    ("report x.csv --counts --classes a,b", "--count or --classes. Leave out --counts", MATRIX),
    (
        "report x.csv --prob p_ --classes 0,1,2",
        "columns of probabilities for the classes '0', '1', but --classes names '0', '1', '2'",
        PREDICTIONS,
    ),
    (
        "report x.jsonl --invalid-others",
        "row 2: 'y_true' is '', which is no class; --ignore '' leaves",
        '{"y_true": "a", "y_pred": null}\n{"y_true": null, "y_pred": "b"}\n',
    ),
    (
        "report x.csv",
        "the true classes are '0', '1', but the predicted classes are '0.3', '0.8'",
        "y_true,y_pred\n0,0.3\n1,0.8\n",
    ),
    (
        "report x.csv",
        "the true classes are '0', '1', but the predicted classes are 'cat', 'dog'",
        "y_true,y_pred\n0,cat\n1,dog\n",
    ),
    ("report x.csv --ignore 0", "all rows are ignored", "y_true,y_pred\n0,1\n"),
    ("report x.csv", "cannot be read", "y_true,y_pred\n0,1\n0,1,5,6\n"),
    ("report x.parquet", "cannot be read", "no parquet"),
    ("report x.npz", "cannot be read: File is not a zip file", "no archive"),
    ("report x.npz --counts", "cannot be read: File is not a zip file", ""),
    ("report x.csv --counts", "of shape (C, K, K), got (2, 3)", "1,2,3\n4,5,6\n"),
    (
        "report x.csv --counts",
        "counts[1, 1] is -4, expected a number from 0 to 1e30",
        "1,2\n3,-4\n",
    ),
    ("report x.csv --counts", "counts[1, 1] is nan", "1,2\n3,nan\n"),
    (
        "report x.csv --counts",
        "in row 1, the confusion matrix contains 'x', which is not a number",
        "a,b\n3,x\n1,2\n",
    ),
    (
        "report x.csv --counts",
        "the rows and the columns of the confusion matrix must name the same classes",
        ",a,b\nb,1,2\na,3,4\n",
    ),
    ("report x.csv --counts", "at least two classes, got 1", "7\n"),
    ("report x.csv --counts", "no examples to report on", "0,0\n0,0\n"),
    ("report x.csv --counts", "counts[0, 0] is 1e+308, expected", "1e308,1e308\n0,1\n"),
    (
        "report x.csv --counts --weight w",
        "--counts reads a confusion matrix and cannot be used together with",
        "1,2\n3,4\n",
    ),
    ("report x.csv --level 95", "--level must be between 0 and 1", PREDICTIONS),
    (
        "report x.csv --json nowhere/out.json",
        "out.json: cannot be written: No such file or directory",
        PREDICTIONS,
    ),
    ("report x.csv --json x.csv", "--json would overwrite the input", PREDICTIONS),
    ("report x.csv --html x.csv", "--html would overwrite the input", PREDICTIONS),
    ("report x.csv --json y --html y", "y: --html would overwrite --json", PREDICTIONS),
    (
        "report x.csv --html nowhere/out.html",
        "out.html: cannot be written: No such file or directory",
        PREDICTIONS,
    ),
    (
        "compare a.csv b.csv",
        "a.csv has 3 rows and b.csv has 2 rows; give --id with a column of ids to match the",
        IDS,
        "y_true,y_pred\na,a\nb,b\n",
    ),
    (
        "compare a.csv b.csv",
        "differs in 2 of 3 rows. The first difference is in row 1, where the true classes",
        IDS,
        "y_true,y_pred\nb,a\na,b\na,b\n",
    ),
    (
        "compare a.csv b.csv --id id",
        "in 1 of 3 rows. The first difference is in id '2', where the true classes are 'b'",
        IDS,
        "id,y_true,y_pred\n3,a,a\n1,a,a\n2,a,a\n",
    ),
    (
        "compare a.csv b.csv --id id",
        "b.csv: each row must have a different id, but 2 rows have the id of another row.",
        IDS,
        "id,y_true,y_pred\n1,a,a\n1,a,a\n2,a,a\n",
    ),
    (
        "compare a.csv b.csv --id id",
        "1 of the 3 rows in a.csv have an id that does not occur in b.csv. The first such id",
        IDS,
        "id,y_true,y_pred\n1,a,a\n2,a,a\n",
    ),
    (
        "compare a.csv b.csv --id id",
        "1 of the 4 rows in b.csv have an id that does not occur in a.csv",
        IDS,
        "id,y_true,y_pred\n1,a,a\n2,b,a\n3,a,a\n9,a,a\n",
    ),
    (
        "compare a.csv b.csv --id id",
        "b.csv: row 3: the id is missing",
        IDS,
        "id,y_true,y_pred\n1,a,a\n2,b,a\n,a,a\n",
    ),
    (
        "compare a.csv b.csv --cluster c",
        "must have the same cluster in each row, but the cluster differs in 1 of 3 rows. The",
        IDS.replace("id", "c"),
        "c,y_true,y_pred\n1,a,a\n2,b,a\n4,a,a\n",
    ),
    (
        "compare a.csv b.csv",
        "b.csv: row 2: 'y_pred' is '-1', which is no class id; --invalid=-1",
        IDS,
        "y_true,y_pred\na,a\nb,-1\na,b\n",
    ),
    (
        "compare a.csv b.csv",
        "b.csv: row 2: 'y_pred' is '', which is no class",
        IDS,
        "y_true,y_pred\na,a\nb,\na,b\n",
    ),
    (
        "compare a.csv b.csv",
        "b.csv: the true classes are 'a', 'b', but the predicted classes are '0', '1'.",
        IDS,
        "y_true,y_pred\na,0\nb,1\na,0\n",
    ),
    (
        "compare a.csv b.csv",
        "b.csv: no column 'y_pred'; the file has 'y_true', 'guess'",
        IDS,
        "y_true,guess\na,0\nb,1\na,0\n",
    ),
    (
        "compare a.csv b.csv --rope -1",
        "--rope: rope must not be negative, because",
        IDS,
        "y_true,y_pred\na,a\nb,b\na,b\n",
    ),
    (
        "compare a.csv b.csv --ignore a --ignore b",
        "all rows are ignored",
        IDS,
        "y_true,y_pred\na,a\nb,b\na,b\n",
    ),
    (
        "report x.csv",
        "Save the file as UTF-8 if it is UTF-16, or correct its suffix",
        b"\xff\xfey\x00_\x00t\x00r\x00u\x00e\x00,\x00y\x00_\x00p\x00r\x00e\x00d\x00\n\x00a\x00,\x00a\x00\n\x00",
    ),
    (
        "report x.csv",
        "lines of the file end with a carriage return only",
        b"y_true,y_pred\ra,a\rb,b\r",
    ),
    ("report x.csv", "a row has more columns than the header", b"y_true,y_pred\na,a\nb,b,b\n"),
    (
        "report x.csv",
        "Write the classes in both columns in the same way",
        b"y_true,y_pred\n1.0,1\n0.0,0\n",
    ),
    (
        "report x.csv",
        "a quote is not closed, or it is inside a value",
        'y_true,y_pred\na,"a\n\na"\n\nb,b\nx,y"z\nb,a\nb,c\n',
    ),
    (
        "report x.csv",
        "a quote is not closed, or it is inside a value",
        'y_true,y_pred\na,"a\n\na"\n\nb,b\nx,"y"z\nb,a\nb,c\n',
    ),
    (
        "report x.csv",
        "a quote is not closed, or it is inside a value",
        'y_true,y_pred\na,"a\n\na"\n\nb,b\nx,"y\nb,a\nb,c\n',
    ),
    (
        "report x.csv",
        "a row has more columns than the header",
        'y_true,y_pred\na,"a\n\na"\n\nb,b\nx,y,z\nb,a\nb,c\n',
    ),
    (
        "report x.csv",
        "is the file UTF-8 text?",
        b'y_true,y_pred\na,"a\n\na"\n\nb,b\nx,\xff\nb,a\nb,c\n',
    ),
    ("report x.csv --examples -1", "--examples must be 0 or more, got -1", OF_SITES),
    ("report x.csv --examples x", "argument --examples: invalid int value: 'x'", OF_SITES),
    ("report x.csv --show site", "--show is used only together with --examples", OF_SITES),
    ("report x.csv --id id", "--id is used only together with --examples", OF_SITES),
    ("report x.csv --examples 2 --show nowhere", "no column 'nowhere'; the file has", OF_SITES),
    (
        "report x.csv --examples 2 --counts",
        "--counts cannot be used together with --examples",
        OF_SITES,
    ),
    ("report x.csv --value acc --prob p_", "--value cannot be used together with --prob", SCORES),
    ("report x.csv --value acc --show task", "--show is used only together with", SCORES),
    ("report x.csv --value acc --examples -3", "--examples must be 0 or more, got -3", SCORES),
    (
        "report x.csv --value task",
        "row 1, the column 'task' contains 'math', but a number, true or false was",
        SCORES,
    ),
    ("report x.csv --value nope", "no column 'nope'", SCORES),
    (
        "report x.csv --value acc --bounds 0",
        "--bounds must have the form LOW,HIGH, such as '0,1', got '0'",
        SCORES,
    ),
    ("report x.csv --value acc --bounds 0,.5", "--bounds must be two numbers LOW,HIGH", SCORES),
    ("report x.csv --value acc --bounds nan,1", "--bounds must be two numbers LOW,HIGH", SCORES),
    ("report x.csv --bounds 0,1", "--bounds needs --value", SCORES),
    (
        "compare a.csv b.csv --group task",
        "the command compare accepts --group only together with --value",
        SCORES,
        SCORES,
    ),
    (
        "compare a.csv b.csv --value acc --rope .1",
        "--value cannot be used together with --rope",
        SCORES,
        SCORES,
    ),
    (
        "compare a.csv b.csv --value acc --id task",
        "rows have the same id. The first such id is 'math'",
        SCORES,
        SCORES,
    ),
    ("compare a.csv b.csv --value acc --id user.x", "no column 'user.x'", SCORES, SCORES),
    (
        "leaderboard a.csv b.csv --value acc --metric f1",
        "--value cannot be used together with --metric",
        SCORES,
        SCORES,
    ),
    ("plan x.csv --value acc", "give FILE --half-width H, or FILE FILE --difference D", SCORES),
    (
        "compare a.csv b.csv --value acc",
        "has 3 rows; give --id with a column of ids to match the rows by",
        SCORES,
        "acc,task\n1,math\n0,math\n1,x\n",
    ),
    (
        "compare a.csv b.csv --value acc --id id",
        "no item has a score in all files",
        "id,acc\n1,0\n2,1\n",
        "id,acc\n3,0\n4,1\n",
    ),
    ("report x.csv --value acc", "the file has no rows", "acc\n"),
    (
        "leaderboard x.csv --value acc",
        "leaderboard needs several systems. Give several files; or, if this file has columns for",
        SCORES,
    ),
    (
        "report x.csv --counts --group g --prob p",
        "--counts cannot be used together with --prob, --group",
        MATRIX,
    ),
    (
        "report x.csv --counts --pos-label 1",
        "--counts and --pos-label cannot be used together",
        MATRIX,
    ),
    (
        "report x.csv --counts --nonsense",
        "unrecognized arguments: --nonsense; see jaxmetrics report --help",
        MATRIX,
    ),
    ("report x.csv --counts --level much", "argument --level: invalid float value: 'much'", MATRIX),
    (
        "report x.csv --score s --threshold 1 --pred y_pred",
        "each of them determines the predicted class",
        BOTH,
    ),
    ("report x.csv --score s --threshold nan", "--threshold must be a number, got nan", BOTH),
    ("report x.csv --prob p_ --threshold 0.3", "Add --pos-label", BOTH),
    (
        "report x.csv --labels-prefix y_ p_ --threshold 0.3",
        "cannot be used together with --threshold",
        BOTH,
    ),
    ("report x.csv --labels-prefix y_ p_ --true y", "cannot be used together with --true", BOTH),
    ("report x.csv --pos-label ''", "no row has the class ''", BOTH),
    (
        "report x.csv --cluster c",
        "row 2: 'c' is '', which is no cluster",
        "y_true,y_pred,c\na,a,1\nb,b,\n",
    ),
    (
        "compare a.csv b.csv --cluster c",
        "row 2: 'c' is '', which is no cluster",
        "y_true,y_pred,c\na,a,1\nb,b,\n",
        "y_true,y_pred,c\na,a,1\nb,b,\n",
    ),
    (
        "report x.csv",
        "row 4: 'y_true' is '', which is no class",
        "id,y_true,y_pred\n1,a,a\n\n2,b,b\n3,,\n4,b,b\n",
    ),
    ("report x.csv --counts", "cannot be read: the file is empty", "\n"),
    # Columns of other types, arrays, and columns that are none of classes.
    (
        "report x.parquet",
        "column 'y_pred' holds Float64, but classes, groups and ids must be strings or integers",
        pl.DataFrame({"y_true": [0, 1], "y_pred": [0.2, 0.7]}),
    ),
    (
        "report x.parquet --true p --pred y",
        "column 'p' holds",
        pl.DataFrame({"y": [0, 1], "p": [[0.7, 0.3], [0.4, 0.6]]}),
    ),
    *(
        (f"report x{suffix} {option} {name} --pos-label a", f"column {name!r} holds ", KINDS)
        for suffix in (".parquet", ".arrow")
        for option, names in {
            "--weight": "date time span bytes list",
            "--score": "date span",
            "--prob": "time bytes dates",
            "--group": "date bytes list",
        }.items()
        for name in names.split()
    ),
    (
        "report x.arrow --prob objects.p_",
        "--prob is a prefix that only one column has, 'objects.p_a', but there must be one column",
        KINDS,
    ),
    ("report x.npz", "unequal lengths: 'y_true' has 3, 'y_pred' has 2", arrays([0, 1, 1], [0, 1])),
    (
        "report x.npz",
        "no column 'y_pred'; the file has 'y_true', 'guess'",
        {"y_true": [0, 1], "guess": [0, 1]},
    ),
    ("report x.npz", "array 'y_pred' holds float64", arrays([0, 1], [0.0, 1.0])),
    (
        "report x.npz",
        "array 'y_true' has shape (2, 2), expected (n,)",
        arrays(np.eye(2, dtype=int), [0, 1]),
    ),
    (
        "report x.npz",
        "the array 'y_true' contains Python objects",
        arrays(np.array([0, "a"], object), [0, 1]),
    ),
    (
        "report x.npz --prob p",
        "column 'p' contains 0 numbers in each row",
        {"y_true": [0, 1], "p": np.zeros((2, 0))},
    ),
    *(
        (
            f"report x{suffix}",
            f"row {late + 4095}: 'y_pred' is 'answer 4094', after 4096 other values: is it a",
            free_text(late),
        )
        for suffix, late in product((".csv", ".parquet"), (0, 5000))
    ),
    *(
        ("report x.csv", f"row 30: 'y_{column}' is '{label}', which is no class{rest}", late(row))
        for row, column, label, rest in (
            ("a,", "pred", "", "; --invalid '' counts it as a wrong"),
            (",b", "true", "", "; --ignore '' leaves such rows out"),
            ("a, -7", "pred", "-7", " id; --invalid=-7 counts it as"),
            ("a,-1.0", "pred", "-1.0", " id; --invalid=-1.0 counts"),
        )
    ),
    ("report x.csv --group id", "column 'id' has more than 100 different values, which is too", A),
    # Files that are not what they seem.
    *(
        (
            f"report x.csv{suffix}",
            "row 3: 'y_true' is 'y_true', the name of a column. If files were joined with their",
            joined(f"{LABELS}a,b\nb,b\n".encode()),
        )
        for suffix, joined in (
            ("", lambda x: x * 2),
            (".gz", lambda x: gzip.compress(x) * 2),
            (".zst", lambda x: zstandard.compress(x) * 2),
        )
    ),
    *(
        (f"report x.csv {options}", f"row 2: {cell}, the name of a column", text)
        for options, cell, text in (
            ("", "'y_true' is 'y_pred'", f"{LABELS}a,b\ny_pred,y_true\nb,b\n"),
            ("", "'y_pred' is 'y_pred'", f"\ufeff{LABELS}a,b\n\ufeff{LABELS}b,b\n"),
            ("--true t --pred p", "'t' is 'p'", "t,p\na,b\np,t\nb,b\n"),
        )
    ),
    (
        "report x.jsonl",
        "is not an object. A list of objects needs the suffix .json.",
        '[{"y_true": "a", "y_pred": "a"}, {"y_true": "b", "y_pred": "a"}]',
    ),
    *(
        ("report x.csv", f"the first line, {names}, is read as the names", text)
        for names, text in (
            ("'cat', 'cat'", "cat,cat\ndog,dog\n"),
            ("'0', '1'", "0,1\n1,1\n"),
            ("'a', 'b', 'a'", "a,b,a\nb,b,c\n"),
        )
    ),
    *(
        (
            "report x.csv --counts",
            f"the rows of the confusion matrix are named {title!r}, but rows must be true",
            f"{title},a,b\na,5,1\nb,2,8\n",
        )
        for title in ("y_pred", "prediction", "predicted class")
    ),
    *(
        ("report x.csv --counts", "the confusion matrix contains shares", text)
        for text in (
            "a,b\n.9,.1\n.2,.8\n",
            "a,b\n90.5,9.5\n20,80\n",
            ".45,.05\n.1,.4\n",
            ".03,.11,.11\n.11,.18,.14\n.11,.11,.08\n",  # rounded, with the sum 0.98
            "33.4,33.4,33.4\n16.8,16.8,66.8\n0,0,100\n",
        )
    ),
    *(
        (f"report x.csv {option}", "Add --pos-label with the class that has the higher", text)
        for option, text in (
            ("--prob p", "y_true,p\n1,.2\n2,.9\n2,.4\n"),
            ("--score p --threshold .5", "y_true,p\n1,.2\n2,.9\n2,.4\n"),
            ("--prob p", "y_true,p\n0,.2\n1,.9\n2,.4\n"),
        )
    ),
    *(
        (f"report x.csv {option}", "--decimal , reads decimal commas", text)
        for option, text in (
            ("--weight w --separator ;", "y_true;y_pred;w\n0;0;1,5\n1;1;2\n"),
            ("--value v --separator ;", "id;v\n1;0,5\n2;1\n"),
            ("--counts --separator ;", "a;b\n5,5;1\n2;8\n"),
        )
    ),
    (
        "report x.parquet",
        "column 'y_pred' holds Float64, but classes, groups and ids must be strings or integers."
        " pandas stores integers with missing values as floats",
        pl.DataFrame({"y_true": [0, 1], "y_pred": [1.0, float("nan")]}),
    ),
    (
        "report x.csv --true t_",
        "Several columns begin with 't_': if they are 0 and 1 for each class",
        "t_a,t_b,y_pred\n1,0,a\n0,1,b\n",
    ),
    ("report x.csv", "row 1: 'y_true' is '[1, 0]', a list of", f'{LABELS}"[1, 0]",a\n'),
    ("report x.eval", "Save the samples with samples_df(logs).to_parquet", "{}"),
    ("report x.json", "log of Inspect. Save the samples with", '{"eval": {}, "samples": []}'),
    (
        "report x.json",
        "as results.results in a file of promptfoo",
        '{"evalId": "a", "results": {"version": 3, "results": [{"score": 1}]}}',
    ),
    (
        "report x.jsonl",
        "use --labels-prefix",
        '{"y_true": ["a"], "y_pred": ["a", "b"]}',
    ),
    (
        "report x.csv",
        "pandas writes whole numbers beside missing values with a point",
        "y_true,y_pred\n1,1.0\n0,0.0\n",
    ),
    (
        "report x.csv",
        "--prob reads a column of probabilities",
        "y_true,y_pred\n1,0.91\n0,0.2\n",
    ),
    (
        "report x.csv --prevalence .1",
        "a single share is that of the second of two classes, but the classes are a, b, c",
        "y_true,y_pred\na,a\nb,b\nc,c\n",
    ),
    ("report x.csv --gate 'ppv >= 1'", "'ppv'. This package calls it precision", PREDICTIONS),
    (
        "report a.jsonl --value acc --group task --gate 'law >= 1'",
        "'law'. Write group[law] for the value of this group",
    ),
    ("report x.json", "a .json file must be a list of objects, or a table", '{"acc": 1}'),
    ("report x.csv --where y_true", "argument --where: expected COLUMN=VALUE, got", PREDICTIONS),
    ("report x.csv --decimal ''", "argument --decimal: invalid choice: ''", PREDICTIONS),
    (
        "report x.csv --prevalence a=.5,b=.5",
        "--prevalence has no intervals for items that repeat",
        f"id,{LABELS}1,a,a\n1,a,b\n2,b,b\n2,b,b\n",
    ),
    *(
        (
            f"{command} x.csv y.csv",
            "some of the files have items that repeat. Add --cluster COLUMN",
            f"id,{LABELS}1,a,a\n1,a,b\n2,b,b\n2,b,b\n",
            f"id,{LABELS}1,a,a\n3,a,b\n2,b,b\n4,b,b\n",
        )
        for command in ("compare", "leaderboard")
    ),
    ("report x.csv --where z=1", "no column 'z'; the file has 'y_true'", PREDICTIONS),
    *(
        (f"{command} --where y_true=7 --where w=1", "has no rows with y_true = '7' and w = '1'", x)
        for command, x in (
            ("report x.csv", PREDICTIONS),
            ("report x.csv --value y_pred", PREDICTIONS),
            ("compare x.csv x.csv", PREDICTIONS),
        )
    ),
    (
        "report x.csv",
        "the column 'id' has only 1 different values in 3 rows. If rows with the same value are",
        "id,y_true,y_pred\n7,a,a\n7,b,b\n7,a,b\n",
    ),
    *(
        (
            f"{command} --invalid b --invalid ?",
            "x.csv: row 2: 'y_true' is 'b', which --invalid names, but only predictions can be",
            *[f"{LABELS}a,a\nb,b\na,?\nb,?\n"] * 2,
        )
        for command in ("report x.csv", "compare x.csv y.csv", "leaderboard x.csv y.csv")
    ),
    (
        "report x.csv --counts --invalid b",
        "invalid names the label 'b', which is the true class of 3 examples",
        "a,b\n5,1\n1,2\n",
    ),
    (
        "plan x.csv --counts --invalid b --half-width .1",
        "invalid names the label 'b', which is the true class of 3 examples",
        "a,b\n5,1\n1,2\n",
    ),
    ("report x.csv --invalid ? --value w", "cannot be used together with --invalid", PREDICTIONS),
    # Text: compressed, separated, JSON lines.
    *((f"report x.csv.{x}", "the contents are not", TABS) for x in ZIPPED),
    *((f"report x.csv.{x}", "cannot be read", f(PETS.encode())[:-9]) for x, f in ZIPPED.items()),
    *((f"report x.csv --separator {x}", "must be one ASCII character", TABS) for x in SEPARATORS),
    ("report x.csv", "'y_true\\ty_pred': --separator '\\t' reads it", TABS),
    (
        "report x.jsonl --prob p",
        "row 4, the value of 'p[:, 0]' + 'p[:, 1]' is [None, None], but it must be probabilities",
        f'{LINES}{{"y_true": 1, "p": [1, 0, 0]}}',
    ),
    ("report x.jsonl", "row 4: 'y_pred' is ''", f'{LINES}{{"y_true": 1}}'),
    ("report x.jsonl", "cannot be read", f'{LINES}{{"y_true": 1,'),
    (
        "report x.jsonl --prob p",
        "row 2, the value of 'p[:, 0]' + 'p[:, 1]' is ['0.5', 'x']",
        '{"y_true": 0, "p": [0.5, 0.5]}\n{"y_true": 1, "p": [0.5, "x"]}',
    ),
    (
        "report x.jsonl --prob p",
        "row 2, the value of 'p[:, 0]' + 'p[:, 1]' is [None, None], but it must be",
        '{"y_true": 0, "p": [0.5, 0.5]}\n{"y_true": 1, "p": 0.5}',
    ),
    (
        "report x.jsonl --prob p",
        "row 1: 'y_true' is 'a', a class for which",
        '{"y_true": "a", "p": [0.5, 0.5]}',
    ),
    (
        "report x.jsonl --true o",
        "no column 'o'; the file has 'resps', 'o.p', 'mixed', 'text', 'loss'",
        NESTED,
    ),
    *(
        (f"report x.jsonl --true o.t --pred o.p --weight {weight}", message, NESTED + line)
        for weight, line, message in (
            ("mixed", "", "row 2, the value of 'mixed' is '["),
            (
                "o.w",
                '{"o": {"t": "a"}, "o.p": }',
                "cannot be read: line 4 is not JSON: Expecting value",
            ),
            ("o.w", "[7]", "[7] is not an object"),
            (
                "o.w",
                '{"o": {"t": "a", "w": "x"}, "o.p": "a"}',
                "row 4, the value of 'o.w' is 'x', but it must be a number",
            ),
            (
                "o.w",
                '{"o": 7, "o.p": "a"}',
                "cannot be read: unexpected value while building Series",
            ),
        )
    ),
    # Counts, prevalences, one class, thresholds, many labels.
    (
        "report x.csv --counts",
        "Use --count to name its column of counts, which is one of the columns 'n', 'site'",
        "y_true,y_pred,n,site\na,a,1,x\nb,b,2,x\n",
    ),
    ("report x.csv --counts", "use --count COLUMN", "truth,y_pred,count\na,a,1\na,b,2\nb,b,3\n"),
    (
        "report x.csv --counts",
        "a table of predictions, not a confusion matrix. Leave out --counts",
        "y_true,y_pred\na,a\na,b\n",
    ),
    *(
        (f"report x.csv --counts --prevalence {shares}", message, PETS)
        for shares, message in (
            ("cat=1", "prevalence must contain each of the classes cat, dog exactly once"),
            ("cat=0.95", "each class one share that is not negative, and the shares must sum to 1"),
            ("cat=0.5,cat=0.5,dog=0.5", "each class one share that is not negative"),
            ("cat=-1,dog=2", "each class one share that is not negative"),
            ("cat=0.95,dog=0.1", "sum to 1"),
            ("cat,dog", "--prevalence must have the form CLASS=SHARE,CLASS=SHARE, such as 'cat="),
        )
    ),
    (
        "report x.csv --counts --prevalence cat=0.95,dog=0.05",
        "class 'dog' has no examples",
        "cat,dog\n90,10\n0,0\n",
    ),
    *(
        (
            f"report x.csv {option} x --prevalence cat=0.95,dog=0.05",
            "--prevalence cannot be used together with --prob or --cluster",
            PETS,
        )
        for option in ("--prob", "--cluster")
    ),
    (
        "report a.csv --pos-label cow",
        "'cow', which --pos-label names. The classes in the file are 'cat', 'dog', 'owl'",
    ),
    ("report x.csv --prob p", "Add --pos-label with the class that has the higher scores", SPAM),
    (
        "report x.csv --score s --pos-label spam",
        "--score gives scores, but the predicted classes are missing. Add --threshold",
        SPAM,
    ),
    ("report x.csv --threshold 1", "to scores or probabilities. Add --score or --prob", SPAM),
    ("report x.csv --prob s --pos-label spam", "'s' is", SPAM),
    *(
        ("report x.csv --labels-prefix t_ p_", message, pl.DataFrame(columns))
        for message, columns in (
            (
                "must name the same labels, but they name 'a' and 'b'",
                {"t_a": [0, 1], "p_b": [0, 1]},
            ),
            (
                "row 2, the column 'p_a' contains '2', but 0 or 1 was expected",
                {"t_a": [0, 1], "p_a": [0, 2]},
            ),
            ("the file has no rows", {"t_a": [], "p_a": []}),
        )
    ),
    # Leaderboards and plans.
    *(
        (f"leaderboard x.csv {options}", message, "y_true,y_pred_0,y_pred_1\na,a,b\nb,b,b\n")
        for options, message in (
            ("--pred y_pred_0", "leaderboard needs several systems"),
            # A name, not the beginning of y_pred_0 and y_pred_1.
            ("--pred y_pred", "leaderboard needs several systems"),
            ("--metric f3", "--metric is one of accuracy, balanced_accuracy"),
        )
    ),
    ("plan a.csv", "give FILE --half-width H, or FILE FILE --difference D"),
    ("plan a.csv b.parquet --half-width 1", "give FILE --half-width H, or FILE FILE --difference"),
    *(
        (f"plan {files}", "more than 1e+15 examples would be needed to ")
        for files in (
            "a.csv --half-width 1e-140",
            "a.csv --half-width 1e-9",
            "a.csv b.parquet --id id --difference 1e-320",
        )
    ),
    ("plan a.csv --half-width 2", "the half-width must be above 0 and less than 1, got 2. Write"),
    (
        "plan a.csv b.parquet --id id --difference 1",
        "the difference must be above 0 and less than 1, got 1. Write",
    ),
    (
        "plan x.csv --half-width 1 --value v",
        "the half-width must be above 0 and less than 1, got 1. Write",
        "v\n0\n1\n1\n",
    ),
    (
        "plan x.csv --counts --half-width 0.1",
        "contain no mistake or, if two classifiers are compared, no difference",
        "5,0\n0,5\n",
    ),
    ("plan x.csv y.csv --counts --difference .1", "--counts reads a single FILE", PETS, PETS),
    # Gates.
    *(
        (f"report x.csv --counts --gate '{gate}'", message, CELLS)
        for gate, message in (
            ("f2 >= 1", "unknown metric 'f2'. The reported metrics are accuracy, balanced_acc"),
            ("recall >= 1", f"recall, {ONE_OF_CLASS}. The classes are 'cat'"),
            ("recall[cow] >= 1", f"recall, {ONE_OF_CLASS}"),
            (
                "accuracy[cat] >= 1",
                "accuracy, which has a single value for all classes. Leave out the brackets and",
            ),
            (
                "accuracy = 1",
                "--gate must have a form such as 'accuracy >= 0.9', 'recall[cat] >= 0.8'",
            ),
            ("accuracy >= 1e999", FORM),
            (f"accuracy >= {'7' * 40_000}", FORM),
            (f"accuracy >= {'7' * 40_000}x", FORM),
            (f"{'x' * 40_000} >= 1", "unknown metric 'xxxx"),
        )
    ),
    # A malformed gate is refused before files are read.
    *(
        (f"{command} --gate 'accuracy > 1'", FORM)
        for command in ("report none.csv", "report none.csv --value x", "compare none none")
    ),
    (
        "compare a.csv b.parquet --id id --gate 'f2 >= 1'",
        "unknown metric 'f2'. The compared metrics are accuracy, balanced_accuracy",
    ),
    ("report a.jsonl --value acc --gate 'accuracy >= 1'", "The reported metrics are acc, mean"),
    # Output.
    *(
        (f"report x.csv {' '.join(f'--output {file}' for file in files)}", message, PREDICTIONS)
        for *files, message in (
            ("y.pdf", f"y.pdf: the suffix '.pdf' is unknown. {WRITTEN} .html, .json, .md, .tex"),
            ("y", f"y: the suffix '' is unknown. {WRITTEN} .html"),
            ("y.npz", f"the suffix '.npz' is unknown. {WRITTEN} .html, .json, .md, .tex"),
            ("y.md", "y.md", "y.md: --output would overwrite --output"),
            ("x.csv", "--output would overwrite the input"),
            ("no/y.md", "no/y.md: cannot be written"),
        )
    ),
    (
        "report a.csv --format pdf",
        "--format must be one of text, markdown, latex, json, csv, every-eval-ever, got 'pdf'",
    ),
    (
        "plan a.jsonl --value acc --half-width .1 --format every-eval-ever",
        "this report has no values",
    ),
    # Scores.
    *(
        (f"{files} --bounds 0,1", "--bounds needs --value")
        for files in ("compare a.jsonl b.jsonl", "leaderboard a.jsonl b.jsonl", "plan a.jsonl")
    ),
    ("leaderboard a.jsonl b.jsonl --group task", "--group only together with --value"),
    ("report x.csv --value score", "row 2, the column 'score' contains 'A'", "score,i\nC,1\nA,2\n"),
    # An empty row of a file without ids may be an item without a score.
    *(
        ("compare a.csv b.csv --value acc", "empty rows in different places", first, second)
        for first, second in (
            ("acc\n1\n\n0\n1\n", "acc\n1\n0\n\n1\n"),
            ("acc,time\n1,1\n,\n0,1\n0,1\n", "acc,time\n1,1\n0,1\n,\n0,1\n"),
        )
    ),
    *(
        (
            f"compare a.csv b.csv --value v {role} g {more}",
            f"must have the same {role[2:]} in all files, but the files differ for the item",
            "id,v,g\n1,1,x\n2,0,y\n3,1,x\n",
            "id,v,g\n1,1,y\n2,0,y\n3,1,y\n",
        )
        for role, more in product(("--group", "--cluster"), ("", "--id id"))
    ),
    *(
        (command + " --value v --id id", message, *[ATTEMPTS] * 2)
        for command, message in product(
            ("report x.csv", "compare x.csv y.csv"),
            ("several rows have the same id", "--id item,attempt"),
        )
    ),
    ("compare x.csv y.csv --value v --cluster id", "; give --id", ATTEMPTS, REVERSED),
    # Several systems in one file.
    *(
        (f"{command} {options}", message, LONG)
        for command in ("compare x.csv", "leaderboard x.csv")
        for options, message in (
            ("", "add --system with the column that names the system, and --id. The file has 'm'"),
            ("--pred y_pred", "if this file has columns for each system, repeat --pred or --value"),
            ("--pred y_pred --pred v --score v", "repeat --pred or --value for each of them"),
            ("--system m --value v", "--system needs --id, the column of ids that matches"),
            ("--system m --value v --id ''", "--system needs --id"),
            ("--system m --value v --id q --where m=a", "but there are 1: 'a'; --where m=NAME"),
            ("--system m --pred v --pred y_pred --id q", "--pred may be repeated only for the"),
            ("--system x --id q", "no column 'x'; the file has 'm'"),
            ("--system e --id q", "x.csv: row 2: the system is missing in 'e'"),
            ("--system m --id q --where m=z", "the file has no rows with m = 'z'"),
            ("--system m --id q", "1 of the 3 rows in a have an id that does not occur in b"),
            ("--system m --id y_true", "a: each row must have a different id, but 2 rows"),
        )
        if not ("--score" in options and "leaderboard" in command)
    ),
    ("compare x.csv --system m", "two or more, but there are 3: 'a', 'b', 'c'; --where m=", OF_3),
    ("compare x.csv --pred m --pred id --pred y_pred", "there are 3: 'm', 'id', 'y_pred'", OF_3),
    ("leaderboard x.csv y.csv --system m", "rows of one FILE, which may be a folder", LONG, LONG),
    ("leaderboard x.csv y.csv --pred a --pred b", "--pred may be repeated only for", LONG, LONG),
    (
        "compare x.csv y.csv",
        "x.csv and y.csv have ids in different orders. The first difference is in row 1",
        IDS,
        "id,y_true,y_pred\n3,a,b\n2,b,b\n1,a,a\n",
    ),
]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[0][:60])
def test_bad_input_is_one_line_and_exit_code_two(row: Any, run: Run, folder: Path) -> None:
    command, message, *contents = row
    arguments = with_files(command, *contents)
    before = set(folder.iterdir())
    output = [] if {"--json", "--format"} & {*arguments} else ["--json", "out.json"]
    code, out, err = run(*arguments, *output)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"jaxmetrics: [^\n]+\n", err), err
    assert message in err
    assert set(folder.iterdir()) == before  # nothing written, not even in part


LONG = "7" * 5000  # digits, read as a name
SUFFIXES = ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".npz", ".arrow", ".feather"
COUNTS, WEIGHTED = [[2, 0, 0], [1, 1, 0], [0, 1, 0]], [[2, 0, 0], [0.5, 1, 0], [0, 1, 0]]
INTEGERS = FRAME.select(pl.col("y_true", "y_pred").replace_strict({"a": 9, "b": 10, "c": 11}))
TEXTS = {"csv": FRAME.write_csv(), "jsonl": FRAME.write_ndjson()}
LONG_TABLE = pl.DataFrame({"y_true": [*"aab"], "y_pred": [*"abb"], "count": [2**52, 3, 7]})
CELLS_OF_LONG = [[2**52, 3], [0, 7]]
A_AND_B = f"{LABELS}a,a\nb,a\n"
NO_ANSWERS = """\
{"y_true": "a", "y_pred": "a"}
{"y_true": "a", "y_pred": "b"}
{"y_true": "b", "y_pred": null}
{"y_true": "b", "y_pred": "-1"}
{"y_true": "b", "y_pred": "?"}
"""
RIGHT_AND_WRONG = [[1, 0], [1, 1]]
WHERE = pl.DataFrame({"y_true": [*"abbb"], "y_pred": [*"aabc"], "w": [1, 2, 1, 3]})
LISTS = pl.DataFrame({"y_true": [0, 1, 1], "p": [[0.7, 0.3], [0.4, 0.6], [0.9, 0.1]]})


def stream(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_ipc_stream(file)
    return file.getvalue()


TOTALS = [[5, 1, 6], [2, 7, 9], [7, 8, 16]]


COUNTED: list[tuple[Any, ...]] = [
    *(
        row
        for suffix in SUFFIXES
        for row in (
            (f"report x{suffix}", "a b c", COUNTS, FRAME),
            (f"report x{suffix} --weight w", "a b c", WEIGHTED, FRAME),
            (f"report x{suffix}", "9 10 11", COUNTS, INTEGERS),  # sorted as numbers
        )
    ),
    ("report x.arrow", "a b c", COUNTS, stream(FRAME)),
    *(
        (f"report x.{kind}.{zipped}", "a b c", COUNTS, ZIPPED[zipped](data.encode()))
        for (kind, data), zipped in product(TEXTS.items(), ZIPPED)
    ),
    ("report x.csv --separator ';'", "a b c", COUNTS, FRAME.write_csv(separator=";")),
    (r"report x.csv --separator '\t'", "a b c", COUNTS, FRAME.write_csv(separator="\t")),
    *(
        (f"report x{suffix} --weight {name}", "a b c", counts, KINDS)
        for suffix in (".parquet", ".arrow")
        for name, counts in (
            ("cat", [[4, 0, 0], [1, 3, 0], [0, 2, 0]]),
            ("objects.w", WEIGHTED),
        )
    ),
    ("report x.csv --counts", "0 1", [[5, 1], [2, 8]], MATRIX),
    ("report x.csv --counts", "cat dog", [[5, 1], [2, 8]], "cat,dog\n5,1\n2,8\n"),
    ("report x.csv --counts", "cat dog", [[5, 1], [2, 8]], ",cat,dog\ncat,5,1\ndog,2,8\n"),
    ("report x.csv --counts", "0 1", [[5, 1], [2, 8]], ",0,1\n0,5,1\n1,2,8\n"),
    ("report x.csv --counts", "a b c", TOTALS, ",a,b,c\na,5,1,6\nb,2,7,9\nc,7,8,16\n"),
    ("report x.npz --counts", "0 1", [[5, 1], [2, 10**12]], {"counts": [[5, 1], [2, 10**12]]}),
    (
        "report x.parquet --counts",
        "cat dog",
        [[5, 1.5], [2, 8]],
        pl.DataFrame({"cat": [5, 2], "dog": [1.5, 8]}),
    ),
    *(
        (f"report x{suffix} {option}", "a b", CELLS_OF_LONG, LONG_TABLE)
        for suffix in (".csv", ".parquet", ".jsonl")
        for option in ("--counts", "--count count")
    ),
    (
        "report x.csv --counts --count count",
        "a b",
        CELLS_OF_LONG,
        LONG_TABLE.with_columns(site=pl.lit("x")),
    ),
    (
        "report x.csv --counts --true t",
        "a b",
        CELLS_OF_LONG,
        LONG_TABLE.rename({"y_true": "t"}),
    ),
    (
        "report x.csv --true truth --pred guess --ignore=-1 --ignore ?",
        "0 1",
        RIGHT_AND_WRONG,
        "id,truth,guess\n1,0,0\n2,1,1\n3,-1,0\n4,1,0\n5,1,?\n",
    ),
    (  # a byte-order mark, CRLF, spaces, quotes, blank lines, brackets in the name
        "report predictions[1].csv",
        "0 1 unknown",
        [[1, 0, 0], [0, 1, 1], [0, 0, 0]],
        '\ufeffy_true,y_pred\r\n0, 0\r\n\r\n1 ,"1"\r\n1,unknown\r\n\r\n',
    ),
    ("report x.csv", f"{LONG} a", [[0, 1], [1, 0]], f"{LABELS}a,{LONG}\n{LONG},a\n"),
    # Classes that are not one class in two ways: other numbers, and both in both columns.
    ("report x.csv", "1 2 10", [[0, 1, 1], [0, 0, 0], [0, 0, 1]], f"{LABELS}1,2\n10,10\n1,10\n"),
    (
        "report x.csv",
        f"10 {'9' * 39}8 {'9' * 40}",
        [[1, 0, 0], [0, 0, 0], [1, 1, 0]],
        f"{LABELS}{'9' * 40},{'9' * 39}8\n10,10\n{'9' * 40},10\n",
    ),
    (  # one number in three forms, in lines with and without constants and escapes
        "report x.jsonl",
        "0.00001 1",
        [[2, 1], [0, 0]],
        '{"y_true": 1e-05, "y_pred": 0.00001}\n{"y_true": 1e-5, "y_pred": 1.0, "x": NaN}\n'
        '{"y_true": 0.00001, "y_pred": 1E-05, "x": "\\ud83d\\ude00"}\n',
    ),
    ("report x.jsonl --true o.t --pred o.p", "a b", [[0, 1], [1, 1]], NESTED),
    ("report x.jsonl --true o.t --pred o.p --weight o.w", "a b", [[0, 3], [0.5, 2]], NESTED),
    ("report x.jsonl --prob p", "0 1", RIGHT_AND_WRONG, LINES),
    *(  # a byte-order mark
        (f"report {name} --prob p", "0 1", RIGHT_AND_WRONG, pack(f"\ufeff{LINES}".encode()))
        for name, pack in (("x.jsonl", bytes), ("x.json", bytes), ("x.jsonl.gz", gzip.compress))
    ),
    ("report x.ndjson --prob p", "0 1", RIGHT_AND_WRONG, LINES.replace("{", "\ufeff{")),
    ("report x.json --prob p", "0 1", RIGHT_AND_WRONG, LINES),
    ("report x.jsonl --prob p --ignore ''", "0 1", RIGHT_AND_WRONG, f'{LINES}{{"y_true": 1}}'),
    ("report x.parquet --prob p", "0 1", RIGHT_AND_WRONG, LISTS),
    (
        "report x.parquet --prob p",
        "0 1",
        RIGHT_AND_WRONG,
        LISTS.with_columns(pl.col("p").list.to_array(2)),
    ),
    (  # the full name of a column is not a prefix
        "report x.csv --prob p",
        "0 1",
        RIGHT_AND_WRONG,
        "y_true,p,patient\n0,.1,x\n1,.9,y\n1,.2,z\n",
    ),
    # Rows that --where selects.
    *(
        (f"report x{suffix} --where w=1 --where w=2", "a b", [[1, 0], [1, 1]], WHERE)
        for suffix in (".csv", ".jsonl", ".parquet", ".npz")
    ),
    (
        "report x.parquet --where y_true=b --where w=1 --where w=3",
        "b c",
        [[1, 1], [0, 0]],
        WHERE,
    ),
    ("report x.csv --where y_true=b --weight w", "a b c", [[0, 0, 0], [2, 1, 3], [0] * 3], WHERE),
    # Lists of probabilities in cells, decimal commas, and tables of other tools.
    *(
        ("report x.csv --prob p", "0 1", RIGHT_AND_WRONG, f"y_true,p\n{rows}")
        for rows in (
            '0,"[0.9, 0.1]"\n1,"[0, 1]"\n1,"[0.6, 0.4]"\n',
            "0,[0.9 0.1]\n1,[0. 1.]\n1,[0.6 0.4]\n",
            "0,0.9 0.1\n1,0 1\n1,0.6 0.4\n",
        )
    ),
    (
        "report x.csv --prob p_ --separator ; --decimal ,",
        "0 1",
        RIGHT_AND_WRONG,
        "y_true;p_0;p_1\n0;0,9;0,1\n1;0;1\n1;0,6;0,4\n",
    ),
    (
        "report x.csv --counts --separator ; --decimal ,",
        "a b",
        [[5.5, 1], [2, 8]],
        "a;b\n5,5;1\n2;8\n",
    ),
    *(
        ("report x.csv", "a b", [[1, 0], [1, 1]], f"{start}y_true;y_pred\na;a\nb;a\nb;b\n")
        for start in ("sep=;\n", "sep=;\r\n", "\ufeffsep=;\n")
    ),
    *(
        ("report x.json", "a b", [[1, 0], [1, 1]], text)
        for text in (
            '{"columns": ["y_true", "y_pred"], "data": [["a", "a"], ["b", "a"], ["b", "b"]]}',
            '{"data": [["a", NaN, "a"], ["a", 1, "b"], ["b", 2, "b"]], "index": [0, 1, 2],'
            ' "columns": ["y_pred", "x", "y_true"]}',
            '[{"y_true": "a", "y_pred": "a"}, {"y_pred": "a", "y_true": "b"},'
            ' {"y_true": "b", "y_pred": "b"}]',
        )
    ),
    # Of the predictions, none is valid.
    *(
        (f"{command} --invalid ? --invalid ''", "a b ? ", [[0, 0, 1, 0], [0, 0, 0, 1]], text)
        for command, text in (
            ("report x.csv", f"{LABELS}a,?\nb,\n"),
            ("report x.jsonl", '{"y_true": "a", "y_pred": "?"}\n{"y_true": "b", "y_pred": null}\n'),
            ("report x.npz", arrays(["a", "b"], ["?", ""])),
        )
    ),
    # Classes are named, and answers that are none of them are wrong.
    ("report x.csv --classes=1,-1", "1 -1", [[1, 0], [1, 1]], f"{LABELS}-1,-1\n-1,1\n1,1\n"),
    (
        "report x.csv --classes=-1,1 --pos-label 1",
        "-1 1",
        [[1, 1], [0, 1]],
        f"{LABELS}-1,-1\n-1,1\n1,1\n",
    ),
    ("report x.csv --classes b,c,a", "b c a", [[0, 0, 1], [0, 0, 0], [0, 0, 1]], A_AND_B),
    ("report x.csv --classes a,c", "a c", [[1, 0], [0, 0]], f"{LABELS}a,a\n"),
    ("report x.csv --prob p_ --classes 1,0", "1 0", [[1, 1], [0, 1]], PREDICTIONS),
    (
        "report x.csv --counts --classes dog,fox,cat",
        "dog fox cat",
        [[190, 0, 10], [0, 0, 0], [20, 0, 80]],
        CELLS,
    ),
    *(
        (f"report x.jsonl --invalid-others{more}", f"{classes} (other)", counts, NO_ANSWERS)
        for more, classes, counts in (
            ("", "a b", [[1, 1, 0], [0, 0, 3]]),
            (" --classes b,c,a", "b c a", [[0, 0, 0, 3], [0, 0, 0, 0], [1, 0, 1, 0]]),
        )
    ),
    # A threshold replaces the column of predictions.
    ("report x.csv --score s --threshold 1.5", "0 1", [[1, 0], [0, 1]], BOTH),
    ("report x.csv --prob p_ --threshold .7 --pos-label 1", "0 1", [[1, 0], [1, 0]], BOTH),
]


@pytest.mark.parametrize("row", COUNTED, ids=lambda row: row[0][:60])
def test_counts(row: Any, run: Run, folder: Path) -> None:
    command, classes, counts, *contents = row
    found = json.loads(run(*with_files(command, *contents), "--json")[1])
    names = [x["name"] for x in found["classes"]] + found.get("invalid_labels", [])
    counts = counts + [[0] * len(names)] * (len(names) - len(counts))
    assert (" ".join(names).split(), found["confusion_matrix"]) == (classes.split(), counts)


def test_classes_of_several_files_are_named(run: Run, folder: Path) -> None:
    b = f"{LABELS}1,-1\n-1,1\n1,1\n"
    files = b.replace("1,-1", "1,1"), b
    report = json.loads(
        run(*with_files("compare a.csv b.csv --classes=1,0,-1", *files), "--json")[1]
    )
    assert [(x["name"], x["only_a"]) for x in report["classes"]] == [("1", 1), ("0", 0), ("-1", 0)]
    code, out, _err = run(*with_files("leaderboard a.csv b.csv --classes=1,-1", *files))
    assert code == 0
    assert "3 examples, 2 classifiers" in out
    code, out, _err = run(*with_files("plan a.csv b.csv --difference .1 --classes=1,-1", *files))
    assert code == 0
    assert "examples like these" in out
    for command in ("compare a.csv b.csv", "leaderboard a.csv b.csv --classes 1,0"):
        code, _out, err = run(*with_files(command, *files))
        assert code == 2
        assert "--classes" in err
