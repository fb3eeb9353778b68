"""Pages of the site that are no files in docs/: the README and its like, and source files that pages link to.

On the repository's own pages links lead from ``docs/`` to the source; here the source becomes pages, so that
the site is complete in itself, wherever it is put.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"index.md": "README.md", "changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
"""Pages that are kept at the root of the repository."""
_SOURCE = "source/"  # where source files are on the site
_LINK = re.compile(r"(\]\(|<img[^>]*? src=\")([^)#\"\s]+)(?=[)#\"])")
_CODE = re.compile(r"^( *)(```|~~~).*?^\1\2\s*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".toml": "toml", ".sh": "bash", ".R": "r", ".m": "matlab", ".js": "javascript"}
_NAMED = re.compile(r"^```(\w+) ([^\s=]+)$", re.MULTILINE)  # a block of code that is a file of this name
_QUIET = "---\nsearch:\n  exclude: true\n---\n"  # there are words enough on the pages about it


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, and those of all source files that any page links to."""
    for uri, name in ELSEWHERE.items():
        head = "---\nhide: [navigation]\n---\n" if uri == "index.md" else ""
        files.append(File.generated(config, uri, content=head + (ROOT / name).read_text(encoding="utf-8")))
    seen, new = set[str](), list(files.documentation_pages())
    while new:
        linked = sorted({path for file in new for path in _sources(file)} - seen)
        new = [File.generated(config, _page_of(path), content=_shown(path)) for path in linked]
        seen.update(linked)
        for file in new:
            files.append(file)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links that leave docs/ to the pages made for them, and show the names of files."""
    return _NAMED.sub(r'```\1 title="\2"', rewritten(markdown, page.file.src_uri))


def rewritten(markdown: str, uri: str) -> str:
    """The text of a page with its links as they are on the site."""

    def link(match: re.Match[str]) -> str:
        path = _resolved(match[2], uri)
        if path is None:
            return match[0]
        return match[1] + posixpath.relpath(_page_of(path), posixpath.dirname(uri) or ".")

    return "".join(text if is_code else _LINK.sub(link, text) for text, is_code in _parts(markdown))


def _parts(markdown: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, and whether each is code, in which nothing is a link."""
    end = 0
    for code in _CODE.finditer(markdown):
        yield markdown[end : code.start()], False
        yield code[0], True
        end = code.end()
    yield markdown[end:], False


def _sources(file: File) -> Iterator[str]:
    """Files of the repository outside docs/ that a page links to."""
    for text, is_code in _parts(file.content_string):
        for _, target in () if is_code else _LINK.findall(text):
            path = _resolved(target, file.src_uri)
            if path is not None and not path.startswith("docs/") and path not in ELSEWHERE.values():
                yield path


def _resolved(target: str, uri: str) -> str | None:
    """The file of the repository that a link leads to; None if it is an address."""
    if re.match(r"[a-z]+:", target):
        return None
    origin = uri[len(_SOURCE) : -len(".md")] if uri.startswith(_SOURCE) else f"docs/{uri}"
    here = posixpath.dirname(ELSEWHERE.get(uri, origin))
    path = posixpath.normpath(posixpath.join(here, target))
    return path if (ROOT / path).exists() else None


def _page_of(path: str) -> str:
    """The page on the site for a file of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    pages = {name: uri for uri, name in ELSEWHERE.items()}
    return pages.get(path) or f"{_SOURCE}{path}.md"


def _shown(path: str) -> str:
    """A source file, or what is in a folder, as Markdown."""
    place = ROOT / path
    if place.is_dir():
        names = sorted(one.name + "/" * one.is_dir() for one in place.iterdir() if one.name[0] not in "_.")
        return f"{_QUIET}# {path}\n\n" + "\n".join(f"- `{name}`" for name in names)
    text = place.read_text(encoding="utf-8")
    if place.suffix == ".md":
        return _QUIET + text
    if place.suffix == ".csv":
        text = "\n".join(text.splitlines()[:50])
    return f"{_QUIET}# {path}\n\n````{_LANGUAGES.get(place.suffix, 'text')}\n{text}\n````\n"
