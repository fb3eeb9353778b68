"""The README for a package index, which shows neither our pictures nor the pages that links lead to.

What stands between ``<!-- of the repository -->`` and ``<!-- end -->`` is left out, pictures among it, and a
link to a file becomes its words.  Whoever has the repository reads ``README.md`` as it is.
"""

import re

_REPOSITORY = re.compile(r"<!-- of the repository -->.*?<!-- end -->\n*", re.DOTALL)
_FILE = re.compile(r"\[([^]]*)\]\((?!https?:)[^)]*\)")


def for_index(text: str) -> str:
    """The text of the README without what only the repository can show."""
    return _FILE.sub(r"\1", _REPOSITORY.sub("", text))
