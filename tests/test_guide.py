"""The README, the guide's pages and CONTRIBUTING say what is so."""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cases import public_names
from tests.command_line import Run

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "notebooks").glob("*.md"))]
NUMBER = r"-?\d+(?:\.(\d+))?"


def read(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def python_in(page: Path) -> list[tuple[str, str]]:
    """Each block of Python, with the output shown in a block of text directly below, or ""."""
    blocks = r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?"
    return re.findall(blocks, page.read_text(encoding="utf-8"), re.DOTALL)


def is_output(comment: str) -> bool:
    try:
        ast.literal_eval(comment)
    except (SyntaxError, ValueError):
        return re.match(rf"{NUMBER} \[|.*\.\.\.$", comment) is not None
    return True


def as_shown(value: Any, shown: str) -> str:
    """The text of a value, its numbers rounded as those that are shown."""
    decimals = iter([len(match[1] or "") for match in re.finditer(NUMBER, shown)])
    rounded = re.sub(NUMBER, lambda match: f"{float(match[0]):.{next(decimals, 0)}f}", str(value))
    return rounded[: len(shown) - 3] + "..." if shown.endswith("...") else rounded


@pytest.mark.usefixtures("small_arrays")
@pytest.mark.parametrize(
    "page", [page for page in PAGES if python_in(page)], ids=lambda page: page.stem
)
def test_python_runs_and_returns_what_the_page_says(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)  # where blocks write files
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")  # and read them
    namespace: dict[str, Any] = {}
    compared = 0
    for block, output in python_in(page):
        exec(compile(block, str(page), "exec"), namespace)
        printed = capsys.readouterr().out
        if output:
            assert printed == output, block
            compared += 1
        for expression, shown in re.findall(r"^(\S[^#=\n]*\S)  # (.+)$", block, re.MULTILINE):
            if is_output(shown):
                assert as_shown(eval(expression, namespace), shown) == shown, expression
                compared += 1
    assert compared >= 4


def test_commands_of_the_guide_succeed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    pages = read("notebooks", "tasks.md") + read("notebooks", "evaluations.md")
    commands = re.findall(r"^jaxmetrics (.+)$", pages, re.MULTILINE)
    assert len(commands) >= 9
    for command in commands:
        assert run(*shlex.split(command))[0] == 0, command


def test_the_workflow_of_a_pull_request_posts_the_verdict(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="the extra `docs` installs it")
    (text,) = re.findall(r"```yaml\n(.*?)```", read("notebooks", "command_line.md"), re.DOTALL)
    steps = yaml.safe_load(text)["jobs"]["compare"]["steps"]
    *_, gate, post = (step["run"].replace("${{ github.event.number }}", "7") for step in steps[1:])
    commands = {"jaxmetrics": f'{sys.executable} -m jaxmetrics "$@"', "gh": "echo $* >posted"}
    for name, command in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{command}\n")
        (tmp_path / name).chmod(0o755)
    for name, wrong in (("new", 1), ("main", 2)):
        rows = "".join(f"{i},{i % 2},{(i + (i < wrong)) % 2}\n" for i in range(40))
        (tmp_path / f"{name}.csv").write_text(f"id,y_true,y_pred\n{rows}")
    paths = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    env = os.environ | paths | {"GITHUB_STEP_SUMMARY": "summary"}
    codes = [subprocess.run(["bash", "-e", "-c", x], cwd=tmp_path, env=env) for x in (gate, post)]
    assert [x.returncode for x in codes] == [3, 0]
    posted = (tmp_path / "posted").read_text()
    assert posted == "pr comment 7 --edit-last --create-if-none --body-file gate.md\n"
    assert (
        (tmp_path / "summary").read_text().startswith("### Undecided\n\n| gate | verdict | A - B")
    )


def test_each_task_has_its_output() -> None:
    tasks = re.split(r"^### ", read("notebooks", "tasks.md"), flags=re.MULTILINE)[1:]
    assert tasks
    for task in tasks:
        blocks = re.findall(r"```python\n(.*?)```\n\n```text\n.+?```", task, re.DOTALL)
        assert len(blocks) == 1, task
        assert len([line for line in blocks[0].splitlines() if line]) <= 8, task


def test_links_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = page.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
            path = page.parent / target if target else page
            assert path.exists(), f"{page.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
                assert anchor in {h.lower().replace(" ", "-") for h in headings}, anchor


def test_every_page_is_linked_from_the_readme() -> None:
    readme = read("README.md")
    for page in [*PAGES[1:], *(ROOT / "notebooks").glob("*.ipynb")]:
        assert f"(notebooks/{page.name}" in readme, page.name


@pytest.mark.quick
def test_every_public_name_is_listed() -> None:
    functions = read("notebooks", "functions.md")
    names = [name for name in public_names() if not name.startswith("plots.")]
    missing = [name for name in names if f"`{name}" not in functions]
    assert not missing, f"notebooks/functions.md has no place for {sorted(missing)}"


@pytest.mark.quick
def test_each_file_imports_from_those_above_it() -> None:
    """The order in which CONTRIBUTING lists them."""
    rooms = re.findall(r"^\| `(\w+)(?:\.py|/)` \|", read("CONTRIBUTING.md"), re.MULTILINE)
    package = ROOT / "jaxmetrics"
    found = {
        path.stem for path in package.iterdir() if not path.name.startswith(("__", "py.typed"))
    }
    assert found == set(rooms), "the table of files in CONTRIBUTING lists others"
    for path in package.rglob("*.py"):
        room = path.relative_to(package).parts[0].removesuffix(".py")
        if room in ("__init__", "__main__"):
            continue
        below = rooms[rooms.index(room) + 1 :]
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                imported = {name.split(".")[1] for name in names if name.startswith("jaxmetrics.")}
                assert not imported & set(below), (
                    f"{path.relative_to(ROOT)} imports {imported & set(below)}, which CONTRIBUTING"
                    " lists below it"
                )
