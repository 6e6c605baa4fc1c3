"""What the command line reads and rows of a table cannot say: pipes, parts, forged and damaged
files, streams that are closed, signals.
"""

import csv
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
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zstandard

import jaxmetrics as jm
from jaxmetrics import cli
from jaxmetrics.cli._options import _TYPED, COMMANDS
from tests.command_line import Run, answer, save, write

FRAME = pl.DataFrame({"y_true": [*"babac"], "y_pred": [*"baaab"], "w": [1, 2, 3, 0, 1]})
COUNTS = [[2, 0, 0], [1, 1, 0], [0, 1, 0]]
PROGRAM = [sys.executable, "-c", "from jaxmetrics.cli import main; main()"]


def matrix(run: Run, *arguments: object) -> list[list[float]]:
    return answer(run, "report", *arguments)["confusion_matrix"]


def refused(run: Run, *arguments: object) -> str:
    """Return the one line with which a report is refused."""
    code, out, err = run("report", *arguments)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"jaxmetrics: [^\n]+\n", err), err
    return err


def feed(data: bytes, patch: pytest.MonkeyPatch) -> None:
    """Put bytes into standard input."""

    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(data))

    patch.setattr(sys, "stdin", Stdin)


@pytest.mark.parametrize("options", ["", "--cluster id", "--prob p --pos-label b", "--ignore c"])
def test_rows_of_weight_zero_are_no_examples(options: str, run: Run, tmp_path: Path) -> None:
    """Rows with equal labels are counted together, whatever their weights."""
    rows = [(label, pred, w) for w in (0, 2.5) for label in "ab" for pred in "aabb"]
    text = "".join(f"{i},{y},{p},{w},.{i:02}\n" for i, (y, p, w) in enumerate(rows))
    path = write(tmp_path / "x.csv", f"id,y_true,y_pred,w,p\n{text}")
    found = json.loads(run("report", path, "--weight", "w", "--json", *options.split())[1])
    assert (found["num_examples"], found["sum_of_weights"]) == (8, 20)


@pytest.mark.parametrize("option", ["--weight", "--count"])
def test_groups_of_weight_zero_are_left_out(option: str, run: Run, tmp_path: Path) -> None:
    rows = "a,a,x,1\nb,a,x,2\na,b,y,0\nb,b,y,0\na,b,z,2\nb,b,z,1\n"
    path = write(tmp_path / "x.csv", f"y_true,y_pred,g,w\n{rows}")
    found = json.loads(run("report", path, option, "w", "--group", "g", "--json")[1])
    assert {name: x["confusion_matrix"] for name, x in found["groups"].items()} == {
        "x": [[1, 0], [2, 0]],
        "z": [[0, 2], [0, 1]],
    }


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".npz", ".arrow", ".csv.gz"])
def test_standard_input_and_pipes(
    suffix: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = save(FRAME, tmp_path / f"x{suffix.removesuffix('.gz')}").read_bytes()
    data = gzip.compress(data) if suffix == ".csv.gz" else data
    feed(data, monkeypatch)
    assert matrix(run, "-") == COUNTS
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    assert matrix(run, pipe) == COUNTS
    writer.join()


def test_matrices_and_compressed_lines_from_pipes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first bytes of a stream may say nothing before more are read."""
    feed(b"a,b\n5,1\n2,8\n", monkeypatch)
    assert matrix(run, "-", "--counts") == [[5, 1], [2, 8]]
    y = np.random.default_rng(0).integers(0, 2, (20_000, 2))
    lines = [f'{{"y_true": {t}, "y_pred": {p}, "note": "{i * t}"}}' for i, (t, p) in enumerate(y)]
    feed(zstandard.compress("\n".join(lines).encode()), monkeypatch)
    assert matrix(run, "-") == jm.confusion_matrix(*y.T).tolist()


def test_parts_of_one_whole(run: Run, folder: Path) -> None:
    """In a folder or by a glob, of any kinds; what tools put beside them is left out."""
    parts = folder / "parts"
    parts.mkdir()
    for i, suffix in enumerate([".csv", ".parquet", ".jsonl", ".npz", ".tsv"]):
        save(FRAME[i : i + 1], parts / f"part-{i}{suffix}")
    for name in ("_SUCCESS", ".hidden.csv", "_metadata.csv"):
        write(parts / name, "nonsense")
    assert matrix(run, parts) == matrix(run, parts / "part-*") == COUNTS
    assert answer(run, "report", parts / "part-[013]*")["num_examples"] == 3
    assert answer(run, "report", parts, "--value", "w")["num_items"] == 5
    for name in ("parts", "parts/part-*"):
        err = refused(run, name, "--output", parts / "part-0.csv")
        assert "part-0.csv: --output would overwrite the input" in err
    write(parts / "part-9.csv", "y_true,y_pred\na,a\n,b\n")
    assert "part-9.csv: row 2: 'y_true' is ''" in refused(run, parts)
    assert "no such file" in refused(run, "nothing-*")


def test_parts_must_have_the_same_classes_of_probabilities(run: Run, tmp_path: Path) -> None:
    """In any order of the columns."""
    write(tmp_path / "a.csv", "y_true,p_0,p_1\n0,.5,.5\n1,.2,.8\n")
    write(tmp_path / "b.csv", "y_true,p_1,p_0\n0,.3,.7\n1,.2,.8\n")
    found = answer(run, "report", tmp_path, "--prob", "p_")
    assert found["confusion_matrix"] == [[2, 0], [1, 1]]
    loss = -np.log([0.5, 0.8, 0.7, 0.2]).mean()
    assert found["overall"]["log_loss"]["value"] == pytest.approx(loss)
    whole = tmp_path / "whole.tsv"
    whole.write_text("y_true\tp_0\n0\t.5\n1\t.2\n0\t.7\n1\t.2\n")
    for role in ("--group", "--cluster"):
        assert run("compare", tmp_path / "*.csv", whole, "--value", "p_0", role, "y_true")[0] == 0
    write(tmp_path / "b.csv", "y_true,p_1,p_2\n2,.5,.5\n1,.2,.8\n")
    err = refused(run, tmp_path, "--prob", "p_")
    assert "b.csv: the columns of probabilities in this file differ from the columns of" in err


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


TOO_LARGE = npy("(1000000000000000,)", "<U0")


@pytest.mark.parametrize(
    "true",
    [
        npy("(10**9,)", "<U8"),
        npy("(1000000000000,)", "<U8", b"a\0\0\0" * 9),
        npy("(True,)", "<i8", bytes(8)),
        npy("(-1,)", "<i8"),
        npy("(2,)", "<U1", b"\xff\xff\xff\x7fa\0\0\0"),
        npy("(2,)", "<U1", b"\0\xd8\0\0a\0\0\0"),
        npy("(2,)", "<U500000000"),
        TOO_LARGE,
        npy("(2,)", "<i8", bytes(16)).replace(b"'shape'", b"'shape\\"),
        b"\x93NUMPY\2\0\xff\xff\xff\x7f" + b" " * 2**17,
        b"",
    ],
)
def test_arrays_that_promise_too_much(true: bytes, run: Run, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", y_true=true, y_pred=saved(["a", "b"]))
    message = "the file is too large" if true is TOO_LARGE else "cannot be read"
    assert message in refused(run, path)


def test_damaged_and_encrypted_archives(run: Run, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.npz", y_true=saved(["a", "b"] * 50), y_pred=saved(["a"] * 100))
    data = bytearray(path.read_bytes())
    members = [i for i in range(len(data) - 4) if data[i : i + 4] == b"PK\1\2"]
    for place, change in ((members[0] + 8, 1), (members[0] + 10, 99), (60, data[60] ^ 255)):
        changed = bytearray(data)
        changed[place] = change  # encrypted, by an unknown method, flipped
        path.write_bytes(changed)
        assert " cannot be read: " in refused(run, path)


QUOTED = ["", '"of\ntwo lines",']


def wide_rows(number: int) -> str:
    """Write a header, a blank line and two rows with many columns."""
    columns = [f"p{i}" for i in range(number)]
    return "\n".join(
        ["y_true,y_pred," + ",".join(columns), "", *(f"{x},b" + ",1" * number for x in "ab"), ""]
    )


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
    wide = archive(tmp_path / "wide.npz", y_true=saved(long), y_pred=saved(long.astype("U1")))
    with gzip.open(tmp_path / "line.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"y_true,y_pred\n")
        for _ in range(900):
            file.write(b"a" * 10**6)
    columns = [f"p{i}" for i in range(30_000)]
    wide_lines = write(tmp_path / "lines.csv", wide_rows(3000))
    headers = [write(tmp_path / f"h{i}.csv", x + wide_rows(70_000)) for i, x in enumerate(QUOTED)]
    many = write(tmp_path / "many.csv", ",".join(["y_true", *columns]) + "\n")
    for path, options, code, message in (
        (wide, (), 0, ""),
        (wide_lines, (), 0, ""),
        *((header, (), 2, "the file has more than 65536 columns") for header in headers),
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
        err = refused(run, f"{name}.csv")
        assert (r"\xff\x1b" in err, "\x1b" in err) == (True, False)
    for command in (("report", name), ("compare", name, name)):
        assert run(*command, "--html", page)[0] == 0
        assert r"\xff" in page.read_text(encoding="utf-8")


def test_loops_of_links(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    err = refused(run, tmp_path / "a.csv", "--json", tmp_path / "a.json")
    assert "Too many levels of symbolic links" in err


def test_names_do_not_control_the_terminal(run: Run, tmp_path: Path) -> None:
    red = "\x1b[31m"
    path = write(tmp_path / "x.csv", f"y_true,{red},{red}\na,b,c\n{red},b,c\n")
    for options in (("--pred", red), ("--pred", "none"), ("--true", red, "--pred", "y_true")):
        assert "\x1b" not in refused(run, path, *options)
    good = write(tmp_path / "y.csv", f"y_true,y_pred\na,{red}\n{red},a\n")
    for command in ("report", "compare", "leaderboard"):
        assert "\x1b" not in run(command, *[good] * (1 + (command != "report")))[1]


@pytest.mark.skipif(os.name == "nt", reason="terminals of POSIX")
@pytest.mark.parametrize("format_", ["json", "csv"])
def test_values_do_not_control_the_terminal(format_: str, tmp_path: Path) -> None:
    """JSON remains the same JSON; in a pipe or a file, CSV has the labels as they are."""
    names = ["a\a", "b\x7f", "c\x9b31m", "d\u202e", "e\x1b[31m"]
    lines = ["y_true,y_pred", *(f"{name},{names[0]}" for name in names)]
    path = write(tmp_path / "x.csv", "\n".join(lines) + "\n")
    command = [*PROGRAM, "report", str(path), "--format", format_]
    terminal, end = os.openpty()
    with subprocess.Popen(command, stdout=end) as process:
        os.close(end)
        shown = b""
        with suppress(OSError):  # the end of a terminal is an error
            while piece := os.read(terminal, 2**16):
                shown += piece
    os.close(terminal)
    assert process.returncode == 0
    text = shown.decode().replace("\r\n", "\n")
    assert {c for c in text if not c.isprintable()} == {"\n"}
    assert r"d\u202e" in text
    if format_ == "json":
        assert [x["name"] for x in json.loads(text)["classes"]] == names
    else:
        assert names[4] in subprocess.run(command, capture_output=True, check=True).stdout.decode()


@pytest.mark.parametrize("kind", [KeyError, RecursionError, pl.exceptions.PanicException])
def test_errors_that_nobody_foresaw(
    kind: type[BaseException], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are no failed gates, and say where they happened."""

    def fail(_: object) -> None:
        raise kind("a\n\x1b[31m")

    monkeypatch.setattr(cli, "app", fail)
    code, out, err = run("report", "x.csv")
    assert (code, out, err.count("\n")) == (70, "", 1)
    assert "unforeseen error in fail, line " in err
    assert "\x1b" not in err
    assert f"open an issue with this line, the command and version {jm.__version__}" in err


@pytest.mark.parametrize("command", COMMANDS)
def test_values_that_look_like_options(command: str, run: Run, folder: Path) -> None:
    """Of every option; a class may have any name."""
    files = [save(FRAME, folder / f"{name}.csv") for name in "ab"]
    arguments = [command, *files[: len(COMMANDS[command].files) + (command == "leaderboard")]]
    for option in (_TYPED.get(name, name) for name in COMMANDS[command].options.split()):
        for values in ([f"--{option}=--"], [f"--{option}", "--level"], [f"--{option}", "--", "-"]):
            code, _, err = run(*arguments, *values)
            assert code in (0, 2)
            assert code == 0 or re.fullmatch(r"jaxmetrics: [^\n]+\n", err), err
        assert run(*arguments, f"--{option}=--")[0] == 2
    if command == "report":
        assert matrix(run, *arguments[1:], "--ignore", "\udcff", "--ignore=---") == COUNTS


def test_a_page_needs_no_window(tmp_path: Path) -> None:
    path = save(FRAME, tmp_path / "x.csv")
    command = [*PROGRAM, "report", str(path), "--html", str(tmp_path / "x.html")]
    environment = os.environ | {"MPLBACKEND": "nonsense"}
    assert subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode == 0


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
    monkeypatch.setattr(cli, "_exit_by_signals", lambda: None)
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 2
    expected = f"jaxmetrics: {path}: cannot be read: called `Result::unwrap()`\n"
    assert capfd.readouterr().err == expected


def test_lone_surrogates_are_kept_apart(run: Run, tmp_path: Path) -> None:
    escapes = ["\\ud800", "\\ud801", "\\u0000", "\\udc00x", "\\ud83d\\ude00", "\\\\ud83d\\n\\\\"]
    names = ["\\ud800", "\\ud801", "\0", "\\udc00x", "\U0001f600", "\\ud83d\n\\"]
    lines = [f'{{"y_true": "{x}", "y_pred": "{escapes[i // 2]}"}}' for i, x in enumerate(escapes)]
    found = answer(run, "report", write(tmp_path / "x.jsonl", "\n".join(lines)))
    order = [x["name"] for x in found["classes"]]
    cells = {(true, names[i // 2]) for i, true in enumerate(names)}
    assert {*order} == {*names}
    assert found["confusion_matrix"] == [[1 * ((t, p) in cells) for p in order] for t in order]


def test_lines_within_quotes(run: Run, folder: Path) -> None:
    labels = ["a", "b\nc", 'd"e', "f,g\n\nh", '"i""\n"j"', "\n".join("klmn")]
    pairs = np.random.default_rng(0).choice(labels, (60, 2))
    with (folder / "x.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("y_true", "y_pred"), *pairs])
    found, rows = answer(run, "report", "x.csv"), Counter((true, pred) for true, pred in pairs)
    names = [x["name"] for x in found["classes"]]
    assert found["confusion_matrix"] == [[rows[t, p] for p in names] for t in names]
    assert {*names} == {*labels}


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
