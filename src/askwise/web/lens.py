"""How the experimenter looks at a study: for whom, in which context, compared with which setting."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from askwise.errors import Refused
from askwise.space import Parameter, Space, readable
from askwise.study import Study


@dataclass(frozen=True)
class Lens:
    """For whom, in which context, and the setting to compare with."""

    participant: str | None = None
    context: dict[str, Any] | None = None
    reference: dict[str, Any] | None = None

    @property
    def key(self) -> str:
        """A name for it, by which results are kept."""
        return repr((self.participant, self.context, self.reference))

    @classmethod
    def of(cls, study: Study, query: Mapping[str, str]) -> "Lens":
        """What an address asks for, as ``participant=Ann&context.noise=loud&reference.gain=3``.

        What it leaves out is the first participant, where people are apart, and the last context.
        """
        given = query.get("participant") or None
        differ = study.plan.people.differ
        who = given if differ else None
        if who is None and study.plan.people.participants == "separate":
            who = next(iter(study.participants()), None)
        context = _context(study, query)
        return cls(who, context, _reference(study.space, query, context))

    def query(self) -> dict[str, str]:
        """The same as parts of an address."""
        parts = {} if self.participant is None else {"participant": self.participant}
        for kind in ("context", "reference"):
            chosen = getattr(self, kind) or {}
            parts |= {f"{kind}.{name}": readable(value) for name, value in chosen.items()}
        return parts


def chosen(space: Space) -> dict[str, Parameter]:
    """The parameters that a study chooses, by name."""
    return {name: one for name, one in space.parameters.items() if not one.context and one.width}


def _context(study: Study, query: Mapping[str, str]) -> dict[str, Any] | None:
    space = study.space
    if not space.contexts:
        return None
    last = next((entry.context for entry in reversed(study.history()) if entry.context), None)
    start = last or {name: _middle(space)[name] for name in space.contexts}
    return {name: _read(space, name, query.get(f"context.{name}"), start[name]) for name in space.contexts}


def _reference(
    space: Space, query: Mapping[str, str], context: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    if not any(part.startswith("reference.") for part in query):
        return None
    middle = _middle(space) | dict(context or {})
    read = {name: _read(space, name, query.get(f"reference.{name}"), middle[name]) for name in chosen(space)}
    return {name: value for name, value in (middle | read).items() if name not in space.contexts}


def _read(space: Space, name: str, text: str | None, start: Any) -> Any:
    parameter = space.parameters[name]
    if text is None or not text.strip():
        return start
    try:
        value = parameter.read(text.strip())
        parameter.places(value)  # refuses what is no value of it
        return value
    except Refused as error:
        raise error.about(name) from None


def _middle(space: Space) -> dict[str, Any]:
    return space.natural(torch.full((space.d,), 0.5, dtype=torch.float64))
