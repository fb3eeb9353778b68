"""Checks the built site: every link leads somewhere, and no page loads anything from elsewhere.

``python docs/tools/check.py out/site`` prints what is wrong, and ends with 1 if anything is.
"""

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
_ADDRESSES = ("http:", "https:", "//")


class Page(HTMLParser):
    """What a page links to and loads, and the anchors on it."""

    def __init__(self, path: Path) -> None:
        """Read the page."""
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag in _LOADED and _LOADED[tag] in given:
            self.loads.append(given[_LOADED[tag]])
        elif tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(given.get("href", ""))
        elif tag == "a" and "href" in given:
            self.links.append(given["href"])


@cache
def _page(path: Path) -> Page:
    return Page(path)


def problems(site: Path) -> Iterator[str]:
    """Everything that is wrong with the pages of a site, in words."""
    for path in sorted(site.rglob("*.html")):
        if path.name == "404.html":  # has addresses from the root, wherever that will be
            continue
        page, name = _page(path), path.relative_to(site)
        for address in page.loads:
            if address.startswith(_ADDRESSES):
                yield f"{name} loads {address}"
        for address in [*page.loads, *page.links]:
            if not urlsplit(address).scheme and not address.startswith("//"):
                yield from _missing(path, name, address)


def _missing(path: Path, name: Path, address: str) -> Iterator[str]:
    parts = urlsplit(address)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        yield f"{name} links to {address}, which is not there"
    elif target.suffix == ".html" and unquote(parts.fragment) not in _page(target).anchors:
        yield f"{name} links to {address}, which has no such place"


def main() -> None:
    """Check the site in the folder that is named."""
    found = list(problems(Path(sys.argv[1]).resolve()))
    for line in found:
        sys.stderr.write(f"{line}\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
