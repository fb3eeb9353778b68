"""The data behind the figures of a study."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from askwise.errors import Refused
from askwise.model import Belief
from askwise.plots.scales import escaped, shown
from askwise.plots.style import title
from askwise.space import Domain, Setting, Space
from askwise.study import Entry, Study, Verdict


class NothingToDraw(Refused):
    """The answers do not suffice for a figure yet."""


@dataclass(frozen=True)
class Scene:
    """What is known of a study in one context."""

    study: Study
    context: dict[str, Any]
    belief: Belief
    domain: Domain | None
    best: Float[Tensor, " d"]
    """The recommended setting."""
    params: Setting
    """The same in natural units."""
    asked: Sequence[tuple[Setting, Verdict]]
    """The settings asked about that lie in the space, and what the answers say of them."""
    participant: str | None = None
    """Whose utility it is, where people differ."""

    @classmethod
    def of(cls, study: Study, context: Setting | None, participant: str | None = None) -> "Scene":
        """The scene after all answers; refused while answers are missing."""
        domain, kind = study.space.domain(context), study.plan.kind
        who = study.whose(participant)
        asked = [
            (option, verdict)
            for entry in entries_of(study, who)
            if entry.status == "answered" and entry.answer is not None
            for option, verdict in zip(entry.options, entry.answer.verdicts(len(entry.options)), strict=True)
        ]
        if not asked:
            raise NothingToDraw("study", "have answers to be drawn", "none", "Ask and tell first.")
        belief = study.belief(who)
        if not kind.has_both_outcomes(belief.data):
            counts = Counter(verdict for _, verdict in asked)
            got = f"{counts['good']} {kind.words['good']} and {counts['bad']} {kind.words['bad']}"
            raise NothingToDraw("study", f"have {kind.needs(study.plan.initial)}", got, "Ask and tell more.")
        points = study.model.points([option for option, _ in asked])
        drawn = ((points >= 0) & (points <= 1)).all(-1).tolist()  # others are out of ranges narrowed since
        asked = [one for one, inside in zip(asked, drawn, strict=True) if inside]
        best = study.best(context, participant=who).params
        place = study.space.unit(best)
        return cls(study, dict(context or {}), belief, domain, place, best, asked, who)

    @property
    def space(self) -> Space:
        """The parameters."""
        return self.study.space

    @property
    def compares(self) -> bool:
        """Whether settings are compared with each other."""
        return self.study.plan.kind.compares

    @property
    def free(self) -> list[str]:
        """Names of the parameters to choose."""
        parameters = self.space.parameters.items()
        return [name for name, one in parameters if not one.context and one.width]

    def head(self, figure: Figure, text: str = "") -> None:
        """Title: the name of the study, what the figure shows, for whom, and in which context."""
        title(figure, escaped(self.study.name), text, subject(self.study, self.context, self.participant))


def entries_of(study: Study, participant: str | None) -> list[Entry]:
    """The questions of one person, or of all who share a model."""
    alone = participant is not None or study.plan.people.participants == "separate"
    return [entry for entry in study.history() if not alone or entry.participant == participant]


def subject(study: Study, context: Setting | None, participant: str | None) -> str:
    """For whom and in which context something is drawn, in words; empty where there is no choice."""
    given = [shown(study.space, dict(context))] if context else []
    whom = [escaped(participant)] if participant is not None else []
    return f"for {', '.join(whom + given)}" if whom or given else ""
