"""The pages of the documentation, and the blocks of code on them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
_FENCED = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^ {4,}\S.*\n(?:\n(?= {4}))?)+", re.MULTILINE)
_NOT_RUN = re.compile(r"<!-- not run: [^>]+ -->\n\Z")


@dataclass(frozen=True)
class Block:
    """Code on a page."""

    language: str
    """As the page says; nothing where the code is indented only."""
    name: str
    """The file that it is, if any."""
    code: str
    runs: bool
    """Whether it can run as it stands."""


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in these languages."""
    return [block for block in _blocks(page.read_text(encoding="utf-8")) if block.language in languages]


def _blocks(text: str) -> Iterator[Block]:
    for found in _FENCED.finditer(text):
        yield Block(found[1], found[2] or "", found[3], not _NOT_RUN.search(text[: found.start()]))
    for found in _INDENTED.finditer(_FENCED.sub("", text)):
        yield Block("", "", found[0], True)
