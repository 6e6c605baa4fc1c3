"""Two tables of command lines: what is refused, with the message, and what is counted, with the
confusion matrix; both with the contents of the files.
"""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Run

PREDICTIONS = "y_true,y_pred,w,p_0,p_1\n0,0,1,0.9,0.1\n1,1,1,0.2,0.8\n1,0,1,0.6,0.4\n"
IDS = "id,y_true,y_pred\n1,a,a\n2,b,b\n3,a,b\n"
SCORES = "acc,task\n1,math\n0,math\n"
SITES = "id,y_true,y_pred,site\n1,a,a,x\n2,b,a,y\n"
BOTH = "y_true,y_pred,s,p_0,p_1\n0,1,1,1,0\n1,0,2,0.4,0.6\n"
MATRIX = "5,1\n2,8\n"

REFUSED: list[tuple[str | bytes, ...]] = [
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
    ("report x.csv --weight weight", "no column 'weight'", PREDICTIONS),
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
        "row 2: 'y_pred' is '', which is no class; --ignore '' leaves",
        "y_true,y_pred\na,a\nb,\n",
    ),
    (
        "report x.csv",
        "row 2: 'y_pred' is '-1', which is no class id; --ignore=-1 leaves",
        "y_true,y_pred\n0,1\n1,-1\n",
    ),
    (
        "report x.csv",
        "the true classes are '0', '1', but the predicted classes are '0.3', '0.8'",
        "y_true,y_pred\n0,0.3\n1,0.8\n",
    ),
    (
        "report x.csv",
        "at least two classes, but the file contains 'a'.",
        "y_true,y_pred\na,a\na,a\n",
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
        "compare a.csv b.csv --cluster id",
        "must have the same cluster in each row, but the cluster differs in 1 of 3 rows. The",
        IDS,
        "id,y_true,y_pred\n1,a,a\n2,b,a\n4,a,a\n",
    ),
    (
        "compare a.csv b.csv",
        "b.csv: row 2: 'y_pred' is '-1', which is no class id; --ignore=-1",
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
        "compare a.csv b.csv --ignore b",
        "at least two classes, but the files contain 'a'.",
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
    ("report x.csv --examples -1", "--examples must be 0 or more, got -1", SITES),
    ("report x.csv --examples x", "argument --examples: invalid int value: 'x'", SITES),
    ("report x.csv --show site", "--show is used only together with --examples", SITES),
    ("report x.csv --id id", "--id is used only together with --examples", SITES),
    ("report x.csv --examples 2 --show nowhere", "no column 'nowhere'; the file has", SITES),
    (
        "report x.csv --examples 2 --counts",
        "--counts cannot be used together with --examples",
        SITES,
    ),
    ("report x.csv --value acc --prob p_", "--value cannot be used together with --prob", SCORES),
    (
        "report x.csv --value acc --examples 3",
        "--value cannot be used together with --examples",
        SCORES,
    ),
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
        "must name two columns or more, one column for each system",
        SCORES,
    ),
    ("report x.csv --value acc --group task", "row 2: the group is missing", "acc,task\n1,x\n0,\n"),
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
]


def with_files(command: str, contents: Sequence[str | bytes]) -> list[str]:
    """Write the files that a command names first, and return its arguments."""
    arguments = shlex.split(command)
    for name, content in zip(arguments[1:], contents, strict=False):
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return arguments


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_bad_input_is_one_line_and_exit_code_two(
    case: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command, message, *contents = case
    arguments = with_files(command, contents)
    before = set(tmp_path.iterdir())
    output = [] if "--json" in arguments else ["--json", "out.json"]
    code, out, err = run(*arguments, *output)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"jaxmetrics: [^\n]+\n", err), err
    assert message in err
    assert set(tmp_path.iterdir()) == before  # nothing written, not even in part


LONG = "7" * 5000  # digits, read as a name
COUNTED: list[tuple[str, str, Any, str]] = [
    ("report x.csv --counts", "0 1", [[5, 1], [2, 8]], MATRIX),
    ("report x.csv --counts", "cat dog", [[5, 1], [2, 8]], "cat,dog\n5,1\n2,8\n"),
    ("report x.csv --counts", "cat dog", [[5, 1], [2, 8]], ",cat,dog\ncat,5,1\ndog,2,8\n"),
    ("report x.csv --counts", "0 1", [[5, 1], [2, 8]], ",0,1\n0,5,1\n1,2,8\n"),
    (
        "report x.csv --true truth --pred guess --ignore=-1 --ignore ?",
        "0 1",
        [[1, 0], [1, 1]],
        "id,truth,guess\n1,0,0\n2,1,1\n3,-1,0\n4,1,0\n5,1,?\n",
    ),
    (  # a byte-order mark, CRLF, spaces, quotes, blank lines, brackets in the name
        "report predictions[1].csv",
        "0 1 unknown",
        [[1, 0, 0], [0, 1, 1], [0, 0, 0]],
        '\ufeffy_true,y_pred\r\n0, 0\r\n\r\n1 ,"1"\r\n1,unknown\r\n\r\n',
    ),
    ("report x.csv", "18_25 nan", [[0, 1], [1, 0]], "y_true,y_pred\n18_25,nan\nnan,18_25\n"),
    ("report x.csv", f"{LONG} a", [[0, 1], [1, 0]], f"y_true,y_pred\na,{LONG}\n{LONG},a\n"),
    (  # one number in three forms, in lines with and without constants and escapes
        "report x.jsonl",
        "0.00001 1",
        [[2, 1], [0, 0]],
        '{"y_true": 1e-05, "y_pred": 0.00001}\n{"y_true": 1e-5, "y_pred": 1.0, "x": NaN}\n'
        '{"y_true": 0.00001, "y_pred": 1E-05, "x": "\\ud83d\\ude00"}\n',
    ),
]


@pytest.mark.parametrize(("command", "classes", "counts", "content"), COUNTED)
def test_counts(
    command: str,
    classes: str,
    counts: Any,
    content: str,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(*with_files(command, [content]), "--json")
    assert code == 0
    found = json.loads(out)
    assert ([x["name"] for x in found["classes"]], found["confusion_matrix"]) == (
        classes.split(),
        counts,
    )


def test_ignored_rows_of_either_file_are_left_out(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    contents = "y_true,y_pred\na,a\nb,-1\na,b\nb,b\n", "y_true,y_pred\na,a\nb,b\na,b\nb,-1\n"
    found = json.loads(run(*with_files("compare a.csv b.csv --ignore=-1 --json", contents))[1])
    assert (found["num_examples"], found["num_ignored"]) == (2, 2)
