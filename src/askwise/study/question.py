"""What a study shows: a question, and how far it has come."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from askwise.space import Space
from askwise.study.state import Entry

if TYPE_CHECKING:
    from askwise.study.checks import Check
else:  # checks need torch, questions do not
    Check = Any


@dataclass(frozen=True)
class Question:
    """What to show: one setting for a yes/no question, several to compare."""

    id: int
    options: list[dict[str, Any]]
    """Settings in natural units, in the order in which to show them: sides are drawn at random."""
    order: tuple[int, ...]
    """Which member of the rule's query each option is; for most rules 0 is the champion."""
    participant: str | None = None
    context: dict[str, Any] | None = None

    @classmethod
    def of(cls, entry: Entry, space: Space) -> "Question":
        """A question of the record, as it is shown: with what the space knows of its items."""
        context = None if entry.context is None else dict(entry.context)
        options = [space.described(option) for option in entry.options]
        return cls(entry.id, options, entry.order, entry.participant, context)


@dataclass(frozen=True)
class Status:
    """How far a study has come."""

    answers: int
    """Answers that count, "can't decide" included."""
    undecided: int
    skipped: int
    voided: int
    open: int
    expired: int
    gain: float | None
    """Expected gain: by how much the next answer is expected to improve the recommended setting, in units of
    the noise of one answer; None until there is a model."""
    regret: float | None
    """Expected regret: by how much the best of 1,024 space-filling settings is expected to be better."""
    hint: str
    checks: list[Check] = field(default_factory=list)
    """Whether the answers look as if somebody had looked at the questions; see :meth:`Study.checks`."""
    misclassified: float | None = None
    """In a study with a level, in place of gain and regret: the share of the space that is expected to be on
    the other side of it, if every setting is put on its likelier one."""

    @property
    def short_hint(self) -> str:
        """The hint without its reasons, which follow a colon."""
        return self.hint.partition(":")[0]
