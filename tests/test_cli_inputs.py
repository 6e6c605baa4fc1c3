"""What the command line reads: every kind of file, pipes, parts, and what does not fit anywhere."""

import csv
import datetime
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import jaxmetrics as jm
from jaxmetrics import cli
from tests.command_line import Run, save, write

FRAME = pl.DataFrame(
    {
        "y_true": ["b", "a", "b", "a", "c"],
        "y_pred": ["b", "a", "a", "a", "b"],
        "w": [1, 2, 3, 0, 1],
    }
)
COUNTS = [[2, 0, 0], [1, 1, 0], [0, 1, 0]]
PROGRAM = [sys.executable, "-c", "from jaxmetrics.cli import main; main()"]


def matrix(run: Run, *arguments: object) -> list[list[float]]:
    code, out, err = run("report", *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)["confusion_matrix"]


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".ndjson", ".arrow", ".feather"])
def test_more_kinds_of_files(suffix: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    if suffix == ".ndjson":
        FRAME.write_ndjson(path)
    else:
        save(FRAME, path)
    assert matrix(run, path) == COUNTS
    assert matrix(run, path, "--weight", "w") == [[2, 0, 0], [3, 1, 0], [0, 1, 0]]
    if suffix == ".arrow":
        FRAME.write_ipc_stream(path)  # of the same name
        assert matrix(run, path) == COUNTS


def test_json_lines_as_people_write_them(run: Run, tmp_path: Path) -> None:
    """Numbers or strings, blank lines, lists of probabilities, columns that come late."""
    lines = [
        '{"y_true": 0, "y_pred": "0", "p": [0.9, 0.1]}',
        "",
        '{"y_pred": 1, "y_true": 1, "p": [0, 1], "late": 3}',
        '{"y_true": "1", "y_pred": 0, "p": [0.6, 0.4]}',
    ]
    path = write(tmp_path / "x.jsonl", "\n".join(lines))
    assert matrix(run, path, "--prob", "p") == [[1, 0], [1, 1]]
    bad = write(tmp_path / "bad.jsonl", "\n".join([*lines, '{"y_true": 1, "p": [1, 0, 0]}']))
    code, _, err = run("report", bad, "--prob", "p")
    assert code == 2
    assert (
        "row 4, the value of 'p[:, 0]' + 'p[:, 1]' is [None, None], but it must be probabilities"
        in err
    )
    assert "row 4: 'y_pred' is ''" in run("report", bad)[2]
    ignoring = run("report", bad, "--prob", "p", "--ignore", "", "--json")
    assert json.loads(ignoring[1])["confusion_matrix"] == [[1, 0], [1, 1]]
    broken = write(tmp_path / "broken.jsonl", "\n".join([*lines, '{"y_true": 1,']))
    code, _, err = run("report", broken)
    assert code == 2
    assert "cannot be read" in err


def test_lists_and_arrays_of_probabilities(run: Run, tmp_path: Path) -> None:
    frame = pl.DataFrame({"y_true": [0, 1, 1], "p": [[0.7, 0.3], [0.4, 0.6], [0.9, 0.1]]})
    frame.write_parquet(tmp_path / "lists.parquet")
    frame.with_columns(pl.col("p").list.to_array(2)).write_parquet(tmp_path / "arrays.parquet")
    for name in ("lists", "arrays"):
        path = tmp_path / f"{name}.parquet"
        assert matrix(run, path, "--prob", "p") == [[1, 0], [1, 1]]
        code, _, err = run("report", path, "--true", "p", "--pred", "y_true")
        assert code == 2
        assert "column 'p' holds" in err


def zst(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard", reason="it is in the extra `cli`")
    return zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("compress", [gzip.compress, zst])
def test_compressed_text(kind: str, compress: Any, run: Run, tmp_path: Path) -> None:
    data = save(FRAME, tmp_path / f"x.{kind}").read_bytes()
    path = tmp_path / f"x.{kind}.{'gz' if compress is gzip.compress else 'zst'}"
    path.write_bytes(compress(data))
    assert matrix(run, path) == COUNTS
    path.write_bytes(data)
    assert "the contents are not" in run("report", path)[2]
    path.write_bytes(compress(data)[:-9])
    assert run("report", path)[0] == 2


def test_separators(run: Run, tmp_path: Path) -> None:
    semicolons = tmp_path / "x.csv"
    FRAME.write_csv(semicolons, separator=";")
    assert matrix(run, semicolons, "--separator", ";") == COUNTS
    code, _, err = run("report", semicolons)
    assert code == 2
    assert "'y_true;y_pred;w': --separator ';' reads it\n" in err
    tabs = tmp_path / "tabs.csv"
    FRAME.write_csv(tabs, separator="\t")
    assert r"--separator '\t' reads it" in run("report", tabs)[2]
    assert matrix(run, tabs, "--separator", r"\t") == COUNTS
    for bad in (";;", '"', "é", ""):
        err = run("report", tabs, "--separator", bad)[2]
        assert "--separator must be one ASCII character" in err


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".npz", ".arrow", ".csv.gz"])
def test_standard_input_and_pipes(
    suffix: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if suffix == ".csv.gz":
        data = gzip.compress(save(FRAME, tmp_path / "x.csv").read_bytes())
    else:
        data = save(FRAME, tmp_path / f"x{suffix}").read_bytes()

    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(data))

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert matrix(run, "-") == COUNTS
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    assert matrix(run, pipe) == COUNTS
    writer.join()


def test_compressed_lines_from_a_pipe(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first bytes of a stream may say nothing before more are read."""
    y = np.random.default_rng(0).integers(0, 2, (20_000, 2))
    lines = [f'{{"y_true": {t}, "y_pred": {p}, "id": "{i * t}"}}' for i, (t, p) in enumerate(y)]

    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(zst("\n".join(lines).encode())))

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert matrix(run, "-") == jm.confusion_matrix(*y.T).tolist()


def test_parts_of_one_whole(run: Run, tmp_path: Path) -> None:
    """In a folder or by a glob, of any kinds; what tools put beside them is left out."""
    for i, suffix in enumerate([".csv", ".parquet", ".jsonl", ".npz", ".tsv"]):
        save(FRAME[i : i + 1], tmp_path / f"part-{i}{suffix}")
    write(tmp_path / "_SUCCESS", "")
    write(tmp_path / ".hidden.csv", "nonsense")
    write(tmp_path / "_metadata.csv", "nonsense")
    assert matrix(run, tmp_path) == COUNTS
    assert matrix(run, tmp_path / "part-*") == COUNTS
    found = json.loads(run("report", tmp_path / "part-[013]*", "--json")[1])
    assert found["num_examples"] == 3
    for whole in (tmp_path, tmp_path / "part-*"):
        code, _, err = run("report", whole, "--output", tmp_path / "part-0.csv")
        assert code == 2
        assert "part-0.csv: --output would overwrite the input" in err
    write(tmp_path / "part-9.csv", "y_true,y_pred\na,a\n,b\n")
    code, _, err = run("report", tmp_path)
    assert code == 2
    assert "part-9.csv: row 2: 'y_true' is ''" in err
    assert "no such file" in run("report", tmp_path / "nothing-*")[2]
    (tmp_path / "empty").mkdir()
    assert "the folder contains no file of type .csv" in run("report", tmp_path / "empty")[2]


def test_parts_must_have_the_same_classes_of_probabilities(run: Run, tmp_path: Path) -> None:
    """In any order of the columns."""
    write(tmp_path / "a.csv", "y_true,p_0,p_1\n0,.5,.5\n1,.2,.8\n")
    write(tmp_path / "b.csv", "y_true,p_1,p_0\n0,.3,.7\n1,.2,.8\n")
    found = json.loads(run("report", tmp_path, "--prob", "p_", "--json")[1])
    assert found["confusion_matrix"] == [[2, 0], [1, 1]]
    mean = -np.mean(np.log([0.5, 0.8, 0.7, 0.2]))
    np.testing.assert_allclose(found["overall"]["log_loss"]["value"], mean)
    write(tmp_path / "b.csv", "y_true,p_1,p_2\n2,.5,.5\n1,.2,.8\n")
    code, _, err = run("report", tmp_path, "--prob", "p_")
    assert code == 2
    assert (
        "b.csv: the columns of probabilities in this file differ from the columns of"
        " probabilities in" in err
    )


def test_long_tables_of_counts(run: Run, tmp_path: Path) -> None:
    """Recognised under --counts; exact as integers."""
    rows = [("a", "a", 2**52), ("a", "b", 3), ("b", "b", 7)]
    frame = pl.DataFrame(rows, schema=["y_true", "y_pred", "count"], orient="row")
    for suffix in (".csv", ".parquet", ".jsonl"):
        path = save(frame, tmp_path / f"x{suffix}")
        assert matrix(run, path, "--counts") == [[2**52, 3], [0, 7]]
        assert matrix(run, path, "--weight", "count") == [[2**52, 3], [0, 7]]
    wide = save(frame.with_columns(site=pl.lit("x")), tmp_path / "wide.csv")
    code, _, err = run("report", wide, "--counts")
    assert code == 2
    assert (
        "Use --weight to name its column of counts, which is one of the columns 'count', 'site'"
        in err
    )
    assert matrix(run, wide, "--counts", "--weight", "count") == [[2**52, 3], [0, 7]]
    other = save(frame.rename({"y_true": "truth"}), tmp_path / "other.csv")
    assert "use --weight COLUMN" in run("report", other, "--counts")[2]
    assert matrix(run, other, "--counts", "--true", "truth") == [[2**52, 3], [0, 7]]


def npy(shape: str, descr: str, data: bytes = b"") -> bytes:
    """An array whose header says what it likes."""
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + data


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return path


def saved(array: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array))
    return file.getvalue()


@pytest.mark.parametrize(
    ("true", "message"),
    [
        (npy("(10**9,)", "<U8"), "cannot be read"),
        (npy("(1000000000000,)", "<U8", b"a\0\0\0" * 9), "cannot be read"),
        (npy("(True,)", "<i8", bytes(8)), "cannot be read"),
        (npy("(-1,)", "<i8"), "cannot be read"),
        (npy("(2,)", "<U1", b"\xff\xff\xff\x7fa\0\0\0"), "cannot be read"),
        (npy("(2,)", "<U1", b"\0\xd8\0\0a\0\0\0"), "cannot be read"),
        (npy("(2,)", "<U500000000"), "cannot be read"),
        (npy("(1000000000000000,)", "<U0"), "the file is too large"),
        (npy("(2,)", "<i8", bytes(16)).replace(b"'shape'", b"'shape\\"), "cannot be read"),
        (b"\x93NUMPY\2\0\xff\xff\xff\x7f" + b" " * 2**17, "cannot be read"),
        (b"", "cannot be read"),
    ],
)
def test_arrays_that_promise_too_much(true: bytes, message: str, run: Run, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", y_true=true, y_pred=saved(["a", "b"]))
    code, out, err = run("report", path)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"jaxmetrics: [^\n]+\n", err), err
    assert re.search(message, err), err


def test_damaged_and_encrypted_archives(run: Run, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", y_true=saved(["a", "b"] * 50), y_pred=saved(["a"] * 100))
    data = bytearray(path.read_bytes())
    members = [i for i in range(len(data) - 4) if data[i : i + 4] == b"PK\1\2"]
    for place, change in ((members[0] + 8, 1), (members[0] + 10, 99), (60, data[60] ^ 255)):
        changed = bytearray(data)
        changed[place] = change  # encrypted, by an unknown method, flipped
        path.write_bytes(changed)
        code, out, err = run("report", path)
        assert (code, out) == (2, "")
        assert re.fullmatch(r"jaxmetrics: [^\n]+ cannot be read: [^\n]+\n", err), err


def test_no_probabilities_at_all(run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", y_true=[0, 1], p=np.zeros((2, 0)))
    code, _, err = run("report", tmp_path / "x.npz", "--prob", "p")
    assert code == 2
    assert "column 'p' contains 0 numbers in each row" in err


MEASURED = """if True:
    import re, sys
    from jaxmetrics.cli import main
    try:
        main()
    finally:
        peak = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())
        print(int(peak[1]) // 1024, file=sys.stderr)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="where memory is read")
def test_bombs(tmp_path: Path) -> None:
    """Few bytes that stand for many: long labels, a line without end, thousands of columns."""
    long = np.array(["a", "b" * 7000])[np.arange(20_000) % 2]
    wide = archive(tmp_path / "wide.npz", y_true=saved(long), y_pred=saved(long == "a"))
    with gzip.open(tmp_path / "line.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"y_true,y_pred\n")
        for _ in range(900):
            file.write(b"a" * 10**6)
    columns = [f"p{i}" for i in range(30_000)]
    many = write(tmp_path / "many.csv", ",".join(["y_true", *columns]) + "\n")
    for path, options, code, message in (
        (wide, (), 0, ""),
        (tmp_path / "line.csv.gz", (), 2, "the file is too large"),
        (
            many,
            ("--prob", "p"),
            2,
            "30000 columns have names that begin with 'p', but a report may have at most"
            " 4096 classes",
        ),
    ):
        command = [sys.executable, "-c", MEASURED, "report", str(path), *options]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert result.returncode == code
        *lines, memory = result.stderr.splitlines()
        assert message in "".join(lines)
        assert int(memory) < 1100  # MB, of which 200 are those of the libraries


def test_file_names_that_are_not_text(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for suffix in (".csv", ".parquet", ".npz", ".arrow"):
        data = save(FRAME, tmp_path / f"x{suffix}").read_bytes()
        name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b[31m" + suffix.encode())
        Path(name).write_bytes(data)
        assert matrix(run, name) == COUNTS
        code, _, err = run("report", f"{name}.csv")
        assert code == 2
        assert r"\xff\x1b" in err
        assert "\x1b" not in err
    for command in (("report", name), ("compare", name, name)):
        assert run(*command, "--html", page)[0] == 0
        assert r"\xff" in page.read_text(encoding="utf-8")


def test_loops_of_links(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    code, out, err = run("report", tmp_path / "a.csv", "--json", tmp_path / "a.json")
    assert (code, out) == (2, "")
    assert "Too many levels of symbolic links" in err


def test_names_do_not_control_the_terminal(run: Run, tmp_path: Path) -> None:
    red = "\x1b[31m"
    path = write(tmp_path / "x.csv", f"y_true,{red},{red}\na,b,c\n{red},b,c\n")
    for options in (("--pred", red), ("--pred", "none"), ("--true", red, "--pred", "y_true")):
        code, out, err = run("report", path, *options)
        assert (code, out) == (2, "")
        assert "\x1b" not in err
    good = write(tmp_path / "y.csv", f"y_true,y_pred\na,{red}\n{red},a\n")
    others = ("compare", good, good), ("leaderboard", good, good)
    for command in (("report", good), *others):
        assert "\x1b" not in run(*command)[1]


def test_standard_output_that_is_closed(tmp_path: Path) -> None:
    path = save(FRAME, tmp_path / "x.csv")
    out = tmp_path / "out.json"
    command = 'exec "$@" >&-'
    arguments = ["sh", "-c", command, "sh", *PROGRAM, "report", str(path), "--output", str(out)]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    assert json.loads(out.read_text())["confusion_matrix"] == COUNTS
    # Who reads leaves before anything is written.
    reader, writer = os.pipe()
    os.close(reader)
    gone = subprocess.run(
        [*PROGRAM, "report", str(path)], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert (gone.returncode, gone.stderr) == (141, "")


def test_streams_that_are_closed_or_full(tmp_path: Path) -> None:
    """Output that is lost is an error, other than a failed gate's; whatever else is closed."""
    path = save(FRAME, tmp_path / "x.csv")
    started = {}
    for redirection in ("2>&-", "<&- >&- 2>&-", ">/dev/full", "--help >&-"):
        command = ["sh", "-c", f'exec "$@" {redirection}', "sh", *PROGRAM, "report", str(path)]
        started[redirection] = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    for redirection, process in started.items():
        out, err = process.communicate(timeout=120)
        assert process.returncode == (0 if redirection == "2>&-" else 2)
        assert out.startswith("5 examples") == (redirection == "2>&-")
        assert err.startswith("jaxmetrics: standard output: ") == ("2>&-" not in redirection)
        assert err.count("\n") <= 1


def test_memory_that_runs_out_is_one_line(tmp_path: Path) -> None:
    y = np.arange(3000)
    np.savez(tmp_path / "x.npz", y_true=y, y_pred=y[::-1])
    program = (
        "import resource; from jaxmetrics.cli import main, _predictions;"
        "_predictions.Predictions.counts = lambda *_: bytes(2**60);"
        "main()"
    )
    command = [sys.executable, "-c", program, "report", str(tmp_path / "x.npz")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "jaxmetrics: there is not enough memory\n"


def test_warnings_are_lines(run: Run, tmp_path: Path) -> None:
    frame = pl.concat([FRAME] * 4).with_columns(patient=pl.Series([*range(5)] * 4))
    code, out, err = run("report", save(frame, tmp_path / "x.csv"), "--cluster", "patient")
    assert code == 0
    assert out.startswith("20 examples in 5 clusters")
    assert "with 5 clusters, confidence intervals" in err
    assert all(line.startswith("jaxmetrics: warning: ") for line in err.splitlines())


def test_truth_and_prediction_without_a_common_class(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "y_true,y_pred\nCat,cat\nDog,dog\n")
    code, _, err = run("report", path)
    assert (code, err.count("\n")) == (0, 1)
    assert "have no class in common: 'Cat', 'Dog' and 'cat', 'dog'" in err


@pytest.mark.quick
@pytest.mark.parametrize(
    ("true", "pred", "is_other"),
    [
        ("01", "1", True),
        ("Cat", "cat", True),
        ("\u00e9", "e\u0301", True),
        ("1", "2", False),
        ("9" * 40, "9" * 39 + "8", False),
    ],
)
def test_classes_that_are_written_in_two_ways(
    true: str, pred: str, is_other: bool, run: Run, tmp_path: Path
) -> None:
    text = f"y_true,y_pred\n{true},{pred}\n10,10\n{true},10\n"
    path, same = write(tmp_path / "x.csv", text), write(tmp_path / "y.csv", text)
    for command, files in (("report", [path]), ("compare", [path, same])):
        code, _, err = run(command, *files)
        assert code == 0
        messages = [x for x in err.splitlines() if f"the true class {true!r} is never" in x]
        assert len(messages) == is_other * len(files)
        assert all(
            f"but {pred!r} is, which differs only in case, spaces, zeros" in x for x in messages
        )
    # A class that occurs in both columns has no other name.
    path = write(path, f"{text}{pred},{true}\n")
    assert run("report", path)[2] == ""


def test_classes_that_differ_in_a_space(run: Run, tmp_path: Path) -> None:
    frame = pl.DataFrame({"y_true": ["a ", "b"], "y_pred": ["a", "b"]})  # Parquet keeps spaces
    assert "'a ' is never predicted" in run("report", save(frame, tmp_path / "x.parquet"))[2]


def test_a_comparison_warns_of_predictions_without_a_true_class(run: Run, tmp_path: Path) -> None:
    first = write(tmp_path / "a.csv", "y_true,y_pred\n1,1\n0,0\n")
    second = write(tmp_path / "b.csv", "y_true,y_pred\n1,01\n0,00\n")
    for command in ("compare", "leaderboard"):
        code, _, err = run(command, first, second)
        assert (code, err.count("\n")) == (0, 1)
        assert "b.csv: the true and the predicted classes have no class in common" in err


def test_matrices_from_pipes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(b"a,b\n5,1\n2,8\n"))

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert matrix(run, "-", "--counts") == [[5, 1], [2, 8]]


def test_version(run: Run) -> None:
    expected = 0, f"jaxmetrics {jm.__version__}\n", ""
    assert run("--version") == expected
    command = [sys.executable, "-m", "jaxmetrics", "--version"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == expected


@pytest.mark.parametrize("where", ["opened", "read"])
def test_panics_of_rust_are_one_line(
    where: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are no exceptions, and are written to standard error by whichever thread panics."""

    def panic(*_: object, **__: object) -> None:
        os.write(2, b"thread 'x' panicked at mod.rs\n")
        raise pl.exceptions.PanicException("called `Result::unwrap()`")

    if where == "opened":
        monkeypatch.setattr(pl, "scan_parquet", panic)
    else:
        monkeypatch.setattr(pl.LazyFrame, "collect_batches", panic)
    path = save(FRAME, tmp_path / "x.parquet")
    monkeypatch.setattr(sys, "argv", ["jaxmetrics", "report", str(path), "--weight", "w"])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 2
    expected = f"jaxmetrics: {path}: cannot be read: called `Result::unwrap()`\n"
    assert capfd.readouterr().err == expected


SAMPLE = """\
{"doc": {"q": "x", "ids": [1, "2"]}, "resps": [["a", "b"]], "o": {"t": "b", "w": 2}, "o.p": "b",\
 "mixed": 1, "text": "\\ud800", "loss": NaN}
{"doc": {"q": 3}, "resps": [3], "o": {"t": "a", "w": 3, "p": "c"}, "o.p": "b", "mixed": [1],\
 "text": "\\ud83d\\ude00", "loss": -Infinity}
{"doc": null, "resps": "a", "o": {"w": 0.5, "t": "b"}, "o.p": "a", "mixed": {"a": 1}, "loss": 7}
"""


def test_json_lines_of_other_columns_too(run: Run, tmp_path: Path) -> None:
    """Nobody asks for their lists, objects, mixtures, NaN and lone surrogates."""
    path = write(tmp_path / "x.jsonl", SAMPLE)
    asked = ("--true", "o.t", "--pred", "o.p")
    assert matrix(run, path, *asked) == [[0, 1], [1, 1]]
    assert matrix(run, path, *asked, "--weight", "o.w") == [[0, 3], [0.5, 2]]
    found = run("report", path, "--true", "o")[2]
    assert "no column 'o'; the file has 'resps', 'o.p', 'mixed', 'text', 'loss'" in found
    found = run("report", path, *asked, "--weight", "mixed")[2]
    assert "row 2, the value of 'mixed' is '[" in found
    for line, message in {
        '{"o": {"t": "a"}, "o.p": }': "cannot be read: Expecting value",
        "[7]": "[7] is not an object",
        '{"o": {"t": "a", "w": "x"}, "o.p": "a"}': "row 4, the value of 'o.w' is 'x', but it must"
        " be a number",
        '{"o": 7, "o.p": "a"}': "cannot be read: unexpected value while building Series",
    }.items():
        write(path, SAMPLE + line)
        code, out, err = run("report", path, *asked, "--weight", "o.w")
        assert (code, out) == (2, "")
        assert message in err


def test_lone_surrogates_are_kept_apart(run: Run, tmp_path: Path) -> None:
    escapes = ["\\ud800", "\\ud801", "\\u0000", "\\udc00x", "\\ud83d\\ude00", "\\\\ud83d\\n\\\\"]
    lines = [f'{{"y_true": "{x}", "y_pred": "{escapes[i // 2]}"}}' for i, x in enumerate(escapes)]
    path = write(tmp_path / "x.jsonl", "\n".join(lines))
    code, out, _ = run("report", path, "--json")
    assert code == 0
    found = json.loads(out)
    names = ["\\ud800", "\\ud801", "\0", "\\udc00x", "\U0001f600", "\\ud83d\n\\"]
    assert {x["name"] for x in found["classes"]} == set(names)
    order = [x["name"] for x in found["classes"]]
    place = [order.index(name) for name in names]
    for i in range(len(names)):
        assert found["confusion_matrix"][place[i]][place[i // 2]] == 1


def test_probabilities_in_objects_and_lists(run: Run, tmp_path: Path) -> None:
    probs = [{"a": 0.7, "b": 0.3}, {"b": 0.4, "a": 0.6}, {"a": 0.2, "b": 0.8}]
    rows = [
        {"y_true": t, "p": p, "list": [p["b"], str(p["a"])]}
        for t, p in zip("abb", probs, strict=True)
    ]
    path = write(tmp_path / "x.jsonl", "\n".join(map(json.dumps, rows)))
    table = save(
        pl.DataFrame([{"y_true": x["y_true"], "p": x["p"]} for x in rows]), tmp_path / "x.parquet"
    )
    for file, prefix in ((path, "p"), (path, "p."), (table, "p")):
        found = json.loads(run("report", file, "--prob", prefix, "--json")[1])
        assert found["confusion_matrix"] == [[1, 0], [1, 1]]
        mean = -np.mean(np.log([0.7, 0.4, 0.8]))
        np.testing.assert_allclose(found["overall"]["log_loss"]["value"], mean)
    assert "row 1: 'y_true' is 'a', a class for which" in run("report", path, "--prob", "list")[2]
    write(path, '{"y_true": 0, "list": [0.5, 0.5]}\n{"y_true": 1, "list": [0.5, "x"]}')
    assert (
        "row 2, the value of 'list[:, 0]' + 'list[:, 1]' is ['0.5', 'x']"
        in run("report", path, "--prob", "list")[2]
    )
    write(path, '{"y_true": 0, "list": [0.5, 0.5]}\n{"y_true": 1, "list": 0.5}')
    assert (
        "row 2, the value of 'list[:, 0]' + 'list[:, 1]' is [None, None], but it must be"
        in run("report", path, "--prob", "list")[2]
    )


def test_lines_within_quotes(run: Run, tmp_path: Path) -> None:
    labels = ["a", "b\nc", 'd"e', "f,g\n\nh", '"i""\n"j"', "\n".join("klmn")]
    rng = np.random.default_rng(0)
    pairs = rng.choice(6, (60, 2), p=[0.1, 0.2, 0.2, 0.1, 0.2, 0.2])
    path = tmp_path / "x.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("y_true", "y_pred"), *((labels[i], labels[j]) for i, j in pairs)])
    code, out, _ = run("report", path, "--json")
    assert code == 0
    found = json.loads(out)
    with path.open(newline="") as file:
        rows = Counter((x["y_true"], x["y_pred"]) for x in csv.DictReader(file))
    names = [x["name"] for x in found["classes"]]
    assert found["confusion_matrix"] == [[rows[t, p] for p in names] for t in names]


def test_kinds_of_columns(run: Run, tmp_path: Path) -> None:
    """Categories are strings; dates, bytes and lists are no numbers, and the message names them."""
    date = datetime.date(2020, 1, 2)
    frame = FRAME.with_columns(
        cat=pl.Series(["3", "2", "1", "2", "2"], dtype=pl.Categorical),
        date=pl.lit(date),
        time=pl.lit(datetime.datetime(2020, 1, 2)),
        span=pl.lit(datetime.timedelta(1)),
        bytes=pl.lit(b"1"),
        list=pl.lit([1.0, 2.0]),
        dates=pl.lit([date, date]),
        objects=pl.struct(p_a=pl.lit(0.5), w=pl.col("w")),
    ).with_columns(pl.col("y_true", "y_pred").cast(pl.Categorical))
    for path in (save(frame, tmp_path / "x.parquet"), save(frame, tmp_path / "x.arrow")):
        assert matrix(run, path, "--weight", "cat") == [[4, 0, 0], [1, 3, 0], [0, 2, 0]]
        assert matrix(run, path, "--weight", "objects.w") == [[2, 0, 0], [3, 1, 0], [0, 1, 0]]
        for option, names in {
            "--weight": ["date", "time", "span", "bytes", "list"],
            "--score": ["date", "span"],
            "--prob": ["time", "bytes", "dates"],
            "--group": ["date", "bytes", "list"],
        }.items():
            for name in names:
                code, _, err = run("report", path, option, name, "--pos-label", "a")
                assert (code, err.count("\n")) == (2, 1)
                assert f"column {name!r} holds " in err
        code, _, err = run("report", path, "--prob", "objects.p_")
        assert code == 2
        assert (
            "--prob is a prefix that only one column has, 'objects.p_a', but there must be"
            " one column for each class" in err
        )


def test_an_interrupt_ends_what_waits_for_its_input(tmp_path: Path) -> None:
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from jaxmetrics.cli import main; main()"
    )
    command = [sys.executable, "-c", program, "report", "-", "--output", str(tmp_path / "x.json")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not list(tmp_path.iterdir()):
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(20) == 130
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []
