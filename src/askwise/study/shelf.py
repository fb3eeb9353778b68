"""Kernels as they were learned, kept for other programs of this user on this machine that share a study.

All of them would learn the same kernel from the same answers, one after the other while the rest wait.  Now
one learns it and the others read it.  Nothing depends on it but speed: a kernel is found by a hash of all
that it is learned from, and read to the last bit.  `replay` learns every kernel itself.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askwise.study.plan import Plan
from askwise.study.program import program
from askwise.study.state import Answered, as_text


@dataclass(frozen=True)
class Kept:
    """The margin of ties, the kernel's raw parameters and, if learned, how people answer, by name."""

    margin: float
    parameters: dict[str, Any]
    observer: dict[str, Any] | None = None
    kernels: dict[str, Any] | None = None
    """In a study that averages over kernels: their parameters, evidence and sites."""


class Shelf:
    """The last kernel that somebody learned for a study with this plan, or for each of separate people."""

    def __init__(self, plan: Plan) -> None:
        """Files in the folder for temporary files."""
        self._about = as_text([program("any"), plan.to_dict()])
        self._separate = plan.people.participants == "separate"

    def get(self, answers: Sequence[Answered]) -> Kept | None:
        """What was learned from these answers, if it is there; files of other users are not read."""
        with suppress(OSError, ValueError, KeyError, TypeError), self._file(answers).open("rb") as opened:
            if os.fstat(opened.fileno()).st_uid != _user():
                return None
            found: dict[str, Any] = json.load(opened)
            if found["key"] == self._key(answers):
                return Kept(found["margin"], found["parameters"], found["observer"], found.get("kernels"))
        return None

    def put(self, answers: Sequence[Answered], learned: Kept) -> None:
        """Keep what was learned from these answers; it does not matter if that fails."""
        text = json.dumps({"key": self._key(answers), **vars(learned)})
        with suppress(OSError):
            number, name = tempfile.mkstemp(prefix="askwise-", suffix=".learned")
            with open(number, "w", encoding="utf-8") as out:
                out.write(text)
            try:
                os.replace(name, self._file(answers))
            except OSError:  # of somebody else, perhaps
                os.unlink(name)

    def _file(self, answers: Sequence[Answered]) -> Path:
        who = as_text(answers[0].participant) if self._separate and answers else ""
        return Path(tempfile.gettempdir(), f"askwise-{_hash(f'{_user()} {self._about}{who}')[:24]}.learned")

    def _key(self, answers: Sequence[Answered]) -> str:
        return _hash(as_text([self._about, [one.identity for one in answers]]))


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0  # Windows: folders for temporary files are private


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
