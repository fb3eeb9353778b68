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
from askwise.plots.scales import shown
from askwise.space import Domain, Setting, Space
from askwise.study import Study, Verdict


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
    """The settings asked about, and what the answers say of them."""

    @classmethod
    def of(cls, study: Study, context: Setting | None) -> "Scene":
        """The scene after all answers; refused while answers are missing."""
        domain, kind = study.space.domain(context), study.plan.kind
        asked = [
            (option, verdict)
            for entry in study.history()
            if entry.status == "answered" and entry.answer is not None
            for option, verdict in zip(entry.options, entry.answer.verdicts(len(entry.options)), strict=True)
        ]
        if not asked:
            raise Refused("study", "have answers to be drawn", "none", "Ask and tell first.")
        if not kind.has_both_outcomes(study.belief().data):
            counts = Counter(verdict for _, verdict in asked)
            got = f"{counts['good']} {kind.words['good']} and {counts['bad']} {kind.words['bad']}"
            raise Refused("study", f"have {kind.needs(study.plan.initial)}", got, "Ask and tell more.")
        best = study.best(context).params
        return cls(study, dict(context or {}), study.belief(), domain, study.space.unit(best), best, asked)

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
        """Title: what the figure shows, and in which context."""
        given = f"for {shown(self.space, self.context)}" if self.context else ""
        if text or given:
            whole = ", ".join(part for part in (text, given) if part)
            figure.suptitle(whole[:1].upper() + whole[1:], fontsize=10.5, x=0.01, ha="left")
