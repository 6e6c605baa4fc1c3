"""The pages of the site: Markdown files and notebooks of the repository, and one page per public
name.

Pages keep their paths in the repository, so that one link serves both. Of every page there is also
its Markdown, at the path of its source; `llms.txt` lists these.
"""

from __future__ import annotations

import html
import importlib
import inspect
import json
import logging
import posixpath
import re
import shutil
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from docstrings import as_markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

import jaxmetrics
from jaxmetrics._text.names_elsewhere import NAMES_HERE

ROOT = Path(__file__).parent.parent.parent
LINKED = ["CITATION.cff", "bench/results/*.svg", "notebooks/*.png"]  # by pages
FUNCTIONS = "notebooks/functions.md"  # links to every public name
NEIGHBOURS = "notebooks/neighbours.md"  # names are ours only after `jm.`

NAMESPACES = [x for x in dir(jaxmetrics) if isinstance(getattr(jaxmetrics, x), ModuleType)]

_REFERENCE = "reference/index.md"

# With anchors by which signatures find them.
_TYPES = """\
These types occur in signatures:

- `ArrayLike`[](){#jaxmetrics._arguments.single.ArrayLike} is a NumPy or JAX array, a list, a Series, a
  tensor in CPU memory, or a number;
- `Array`[](){#jaxmetrics._places.namespaces.Array} is a NumPy array (in float64 or int64), or a JAX array
  if one of the arguments is a JAX array;
- `KeyLike`[](){#jaxmetrics._arguments.keys.KeyLike} is a JAX key, an integer seed or, for NumPy data, a
  NumPy `Generator`;
- `Metric`[](){#jaxmetrics.estimates.Metric} is a function of counts.

In the examples, names of jaxmetrics are written without `jm.`, `np` is NumPy, and `jnp` is
`jax.numpy`.
""".splitlines()
_log = logging.getLogger("mkdocs.hooks.collect")


@dataclass
class Group:
    """Public names that the package's table of contents lists together."""

    title: str
    module: ModuleType
    names: dict[str, Any] = field(default_factory=dict)  # "f1", "plots.roc", "betas.beta_pdf"

    @property
    def page(self) -> str:
        """The path of the page."""
        return f"reference/{self.module.__name__.removeprefix('jaxmetrics.')}/index.md"


@cache
def groups() -> list[Group]:
    """Return the groups in the order of the package's table of contents."""
    modules = {home: importlib.import_module(f"jaxmetrics.{home}") for home in jaxmetrics._CONTENTS}
    return [
        Group(title, modules[home], _names_of(modules[home]))
        for home, (title, _) in jaxmetrics._CONTENTS.items()
    ]


def _names_of(module: ModuleType) -> dict[str, Any]:
    """Return the public names of a module, in the order of its files."""
    space = module.__name__.rsplit(".")[-1]
    found = {}
    for name, value in vars(module).items():
        is_here = f"{getattr(value, '__module__', '')}.".startswith(f"{module.__name__}.")
        if name.startswith("_") or not callable(value) or not is_here:
            continue
        if getattr(jaxmetrics, name, None) is value:  # not `plots.confusion_matrix`
            found[name] = value
        elif space in NAMESPACES:
            found[f"{space}.{name}"] = value
    return found


@cache
def pages() -> dict[str, str]:
    """Return the pages of public names and modules."""
    found: dict[str, str] = {}
    for group in groups():
        for name, value in group.names.items():
            # Apart, because files on some disks may not differ by case alone: `report`, `Report`.
            folder = "reference/types" if inspect.isclass(value) else "reference"
            found[name] = f"{folder}/{name}.md"
            found[value.__module__] = f"{group.page}#{value.__module__}"
        found[group.module.__name__] = group.page
    public = {"": jaxmetrics} | {f"{x}.": getattr(jaxmetrics, x) for x in NAMESPACES}
    names = {
        space * (getattr(jaxmetrics, name, None) is not getattr(module, name)) + name
        for space, module in public.items()
        for name in dir(module)
    }
    if missing := names - {"__version__", *NAMESPACES} - set(found):
        _log.warning("The reference has no page of %s.", ", ".join(missing))
    return found


def _short_names(source: str) -> dict[str, str]:
    """Return the pages of names that texts write without their namespace."""
    found = {}
    for group in groups():
        is_here = source in {group.page, *(pages()[name] for name in group.names)}
        for name, value in group.names.items():
            if is_here or inspect.isclass(value):
                found[name.rsplit(".")[-1]] = pages()[name]
    return found


def _link(text: str, page: str, *, source: str) -> str:
    return f"[{text}]({posixpath.relpath(page, posixpath.dirname(source))})"


def _first_sentence(value: Any) -> str:
    text = " ".join((inspect.getdoc(value) or "").split())
    return re.split(r"(?<=\.) ", text)[0]


def _page_of_group(group: Group) -> str:
    """Write the page of a group: the shared conventions, and a list of names per file."""
    files: dict[str, dict[str, Any]] = {}
    for name, value in group.names.items():
        files.setdefault(value.__module__, {})[name] = value
    text = as_markdown(inspect.getdoc(group.module) or "")
    text = re.sub(r"^- `_.*\n(  .*\n?)*", "", text, flags=re.MULTILINE)  # private files
    lines = [f"# {group.title}", "", text, ""]
    for file, names in files.items():
        if file != group.module.__name__:
            title = file.rsplit(".")[-1].replace("_", " ").capitalize()
            text = inspect.getdoc(importlib.import_module(file)) or ""
            lines += [f"## {title} {{#{file}}}", "", as_markdown(text), ""]
        for name, value in names.items():
            link = _link(f"`{name}`", pages()[name], source=group.page)
            lines.append(f"- {link}: {_first_sentence(value)}")
        lines.append("")
    return "\n".join(lines)


def _page_of_name(group: Group, name: str) -> str:
    """Write the page of a name: the directive for mkdocstrings, names in other libraries for those
    who search for them, and a link to the conventions.
    """
    conventions = pages()[group.names[name].__module__]
    shared = _link(group.title, conventions, source=pages()[name])
    parts = [
        f"::: jaxmetrics.{name}\n    options: {{heading: {name}}}",
        *_names_elsewhere(name),
        f"Conventions and related functions: {shared}.\n{{ data-search-exclude }}\n",
    ]
    return "\n\n".join(parts)


def _names_elsewhere(name: str) -> list[str]:
    """Return a sentence with the names that a function has in other libraries, if there are any."""
    names = [f"`{x}`" for x, here in NAMES_HERE.items() if name in re.findall(r"[\w.]+", here)]
    return [f"Names elsewhere: {', '.join(names)}."] if names else []


def _page_of_all() -> str:
    lines = ["# Reference", "", "Every public name of `import jaxmetrics as jm`.", "", *_TYPES]
    for group in groups():
        title = _link(group.title, group.page, source=_REFERENCE)
        names = sorted(group.names, key=str.lower)
        links = (_link(f"`{name}`", pages()[name], source=_REFERENCE) for name in names)
        lines += [f"## {title}", "", ", ".join(links), ""]
    return "\n".join(lines)


# What MkDocs calls.


def on_config(config: MkDocsConfig) -> None:
    """Return the navigation; pages of names are sorted."""
    reference: list[Any] = [_REFERENCE]
    for group in groups():
        names = sorted(group.names, key=str.lower)
        reference.append({group.title: [group.page, *({name: pages()[name]} for name in names)]})
    notebooks = [{_title(_markdown_of_notebook(ROOT / path)): path} for path in _notebooks()]
    config.nav = [
        {"Home": "README.md"},
        {"Guide": _guide()},
        {"Notebooks": notebooks},
        {"Reference": reference},
        {"Project": [path for path in _found("*.md") if path != "README.md"]},
    ]


def _found(*patterns: str) -> list[str]:
    paths = (path for pattern in patterns for path in sorted(ROOT.glob(pattern)))
    return [path.relative_to(ROOT).as_posix() for path in paths if path.is_file()]


def _guide() -> list[str]:
    """Return the texts of the guide in the order of the README's links."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return sorted(_found("notebooks/*.md"), key=lambda path: readme.find(path) % len(readme))


def _notebooks() -> list[str]:
    return _found("notebooks/[0-9]*.ipynb")


def _title(markdown: str) -> str:
    return re.search(r"^# (.*)$", markdown, re.MULTILINE)[1]


@event_priority(100)  # before notebooks are looked for among the files
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and the files that they link to."""
    for path in _found("*.md", *_guide(), *_notebooks(), *LINKED):
        files.append(File(path, str(ROOT), config.site_dir, config.use_directory_urls))
    files.append(File.generated(config, _REFERENCE, content=_page_of_all()))
    for group in groups():
        files.append(File.generated(config, group.page, content=_page_of_group(group)))
        for name in group.names:
            text = _page_of_name(group, name)
            files.append(File.generated(config, pages()[name], content=text))
    return files


def on_page_content(text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link every public name in code format to its page."""
    source = page.file.src_uri
    prefix = r"jm\." if source == NEIGHBOURS else r"(?:jm\.|jaxmetrics\.)?"
    linked = {source}
    short = _short_names(source)

    def link(match: re.Match[str]) -> str:
        code = html.unescape(match[2] or "")
        call = rf"{prefix}((?:(?:{'|'.join(NAMESPACES)})\.)?\w+)(?:\(.*\))?"
        name = re.fullmatch(rf"{call}|(jaxmetrics\.[\w.]+)", code, re.DOTALL)
        target = pages().get(name[1] or name[2]) or short.get(name[1]) if name else None
        if target is None or target == source:
            return match[0]
        linked.add(target)
        path, anchor = re.fullmatch("([^#]*)(.*)", target).groups()
        url = get_relative_url(files.get_file_from_path(path).url, page.url)
        return f'<a href="{url}{anchor}">{match[0]}</a>'

    def resolved(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        file = files.get_file_from_path(path)
        if file is None:
            _log.warning("%s links to %s, which is not here.", source, match[1])
            return match[0]
        return f'href="{get_relative_url(file.url, page.url)}'

    if source.endswith(".ipynb"):  # MkDocs resolves the links of Markdown only
        text = re.sub(r'href="(?!#|[a-z]+:)([^"#]+)', resolved, text)
    # Names of arguments, which `as_markdown` makes bold, stay as they are.
    kept = r"<(a|pre|h[1-6]|script|style|svg)\b.*?</\1>|<strong><code>[^<]*</code></strong>"
    # Search takes for a page what follows a title that is in no box, and needs no code of ours.
    title_in_box = r'(<div class="doc doc-object[^>]*>)\s*(<h1.*?</h1>)'
    text = re.sub(title_in_box, r"\2\1", text, flags=re.DOTALL)
    text = text.replace(
        '<details class="mkdocstrings', '<details data-search-exclude class="mkdocstrings'
    )
    text = text.replace(
        '<div class="doc-signature', '<div data-search-exclude class="doc-signature'
    )
    text = re.sub(rf"{kept}|<code>(.*?)</code>", link, text, flags=re.DOTALL)
    if source == FUNCTIONS:
        left = [name for group in groups() for name in group.names if pages()[name] not in linked]
        if left:
            _log.warning("%s has no link to %s.", FUNCTIONS, ", ".join(left))
    return text


def on_post_build(config: MkDocsConfig) -> None:
    """Write the Markdown of each page, and `llms.txt`."""
    site = Path(config.site_dir)
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", "", "## Guide", ""]
    for path in [*_found("*.md"), *_guide()]:
        text = (ROOT / path).read_text(encoding="utf-8")
        _write(site / path, text)
        lines.append(f"- [{_title(text)}]({path})")
    lines += ["", "## Notebooks", ""]
    for path in _notebooks():
        text = _markdown_of_notebook(ROOT / path)
        _write(site / f"{path}.md", text)
        shutil.copy(ROOT / path, site / path)
        lines.append(f"- [{_title(text)}]({path}.md)")
    for group in groups():
        _write(site / group.page, _page_of_group(group))
        lines += ["", f"## {group.title}", "", f"- [{group.module.__name__}]({group.page})"]
        for name, value in group.names.items():
            path = pages()[name]
            _write(site / path, _markdown_of_name(name, value))
            lines.append(f"- [{name}]({path}): {_first_sentence(value)}")
    _write(site / _REFERENCE, _page_of_all())
    _write(site / "llms.txt", "\n".join(lines) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _markdown_of_name(name: str, value: Any) -> str:
    """Write signature and docstring, for a class also of its public members."""
    lines = [f"# jaxmetrics.{name}", "", *_described(name, value)]
    lines += ["", *_names_elsewhere(name)]
    for member, found in inspect.getmembers(value) if inspect.isclass(value) else []:
        function = found.fget if isinstance(found, property) else found
        module = getattr(function, "__module__", None) or ""
        if not member.startswith("_") and module.startswith("jaxmetrics."):
            lines += ["", f"## {member}", "", *_described(member, found)]
    return "\n".join(lines) + "\n"


def _described(name: str, value: Any) -> list[str]:
    text = as_markdown(inspect.getdoc(value) or "")
    if not callable(value):
        return [text]
    signature = inspect.signature(value)
    named = [x.replace(annotation=inspect.Parameter.empty) for x in signature.parameters.values()]
    signature = signature.replace(parameters=named, return_annotation=inspect.Signature.empty)
    return ["```python", f"{name.rsplit('.')[-1]}{signature}", "```", "", text]


def _markdown_of_notebook(path: Path) -> str:
    """Write text, code and printed output of a notebook, without pictures."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            printed = "".join(output.get("text") or output["data"].get("text/plain", "")).rstrip()
            parts.append(f"```text\n{printed}\n```")
    return "\n\n".join(parts) + "\n"
