"""Formulas of the site as MathML, which browsers draw without a script."""

import html
import re
from typing import Any
from unicodedata import lookup

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)
_SPELLINGS = {
    r"\thinspace": r"\,",
    r"\arg\max": r"\text{arg max}",
    r"{aligned}": "{split}",
}
"""What the converter does not know, and what it knows instead."""
_STYLED = re.compile(r'<mi mathvariant="(double-struck|script)">([A-Z])</mi>')
_ODD = {("script", letter): f"SCRIPT CAPITAL {letter}" for letter in "BEFHILMR"}
_ODD |= {("double-struck", letter): f"DOUBLE-STRUCK CAPITAL {letter}" for letter in "CHNPQRZ"}


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """The page with every formula in MathML; one that cannot be converted stops the build."""
    shown = _FORMULA.sub(lambda found: as_mathml(html.unescape(found[2])), content)
    if unknown := re.search(r"<mi>(\\\w+)", shown):
        raise ValueError(f"a formula of {page.file.src_uri} has a command that is not known: {unknown[1]}")
    return shown


def as_mathml(delimited: str) -> str:
    r"""A formula between ``\(`` and ``\)``, or for a line of its own between ``\[`` and ``\]``."""
    text = re.sub(r"<[^>]*>", "", delimited).strip()
    body = text[2:-2].strip()
    for name, instead in _SPELLINGS.items():
        body = body.replace(name, instead)
    shown = convert(body, display="block" if text.startswith(r"\[") else "inline")
    # browsers ignore these two attributes
    shown = _STYLED.sub(lambda found: f"<mi>{_letter(found[1], found[2])}</mi>", shown)
    return re.sub(r'columnalign="(left|right)"', r'style="text-align: \1"', shown)


def _letter(style: str, letter: str) -> str:
    """The letter in this style: one of its own in Unicode."""
    name = style.upper()
    return lookup(_ODD.get((style, letter), f"MATHEMATICAL {name} CAPITAL {letter}"))
