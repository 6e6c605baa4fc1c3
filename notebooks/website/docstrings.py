"""Docstrings as Markdown: examples become code blocks, sections become lists."""

import re
from typing import Any

import griffe

_SECTION = re.compile(r"(Args|Attributes|Returns|Raises):")
_ENTRY = re.compile(r"    ([\w.]+(?:, [\w.]+)*): (.*)")
_TITLES = {"Args": "Arguments"}


class AsMarkdown(griffe.Extension):
    """Extension for mkdocstrings that converts docstrings to Markdown."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Convert the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """Convert a docstring, and escape characters with another meaning in Markdown."""
    written: list[str] = []
    section, in_example = "", False
    for line in docstring.splitlines():
        if in_example and not line:
            written.append("```")
            in_example = False
        if line and not line.startswith(" "):
            section = ""
        if line.startswith(">>> ") and not in_example:
            written += ["", "```pycon"]
            in_example = True
        if in_example:
            written.append("" if line == "<BLANKLINE>" else line)
        elif match := _SECTION.fullmatch(line):
            section = match[1]
            written += ["", f"**{_TITLES.get(section, section)}**", ""]
        elif section == "Returns":
            written.append(line.removeprefix("    "))
        elif section and (entry := _ENTRY.fullmatch(line)):
            written.append(f"- **`{entry[1]}`**: {entry[2]}")
        else:  # what follows an entry has eight spaces, of which its list takes four
            written.append(line.removeprefix("    ") if section else line)
    return "\n".join([*written, "```"] if in_example else written)
