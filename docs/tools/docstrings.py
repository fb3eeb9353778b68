"""Docstrings for the site: what is reStructuredText in them becomes Markdown."""

import inspect
import re
from typing import Any

from griffe import Extension, Object


class Markdown(Extension):
    """Rewrites every docstring as it is read from the source."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """A docstring with formulas, code and names of objects in Markdown."""
    text = "\n\n".join(map(_listed, inspect.cleandoc(docstring).split("\n\n")))
    text = re.sub(r"``([^`]+)``", r"`\1`", text)  # before there are blocks between three of these
    text = re.sub(r"^\.\. math::(.*?)(?=^\S|\Z)", _equation, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r":math:`([^`]*)`", lambda found: f"${' '.join(found[1].split())}$", text)
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text)
    return re.sub(r"((?:^>>> .*\n?)(?:^.+\n?)*)", r"```pycon\n\1\n```\n", text, flags=re.MULTILINE)


def _listed(paragraph: str) -> str:
    """A paragraph that explains arguments one after the other, as a list; any other as it is."""
    if not paragraph.startswith("``"):
        return paragraph
    parts = re.split(r"(?:^|(?<=[.;]  )|(?<=[.;]\n))(?=``\w+``: )", paragraph)
    items = [" ".join(part.split()) for part in parts if part.strip()]
    return "\n".join(f"- {item}" for item in items) if len(items) > 1 else paragraph


def _equation(found: re.Match[str]) -> str:
    body = "\n".join(line.strip() for line in found[1].strip().splitlines())
    if "&" in body or r"\\" in body:
        body = f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"
    return f"```math\n{body}\n```\n\n"
