"""A study at one moment, and what follows from it: recommendation, predictions, outlook, checks.

Others may answer or change the study meanwhile; what is computed from a snapshot stays consistent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from askwise.errors import Refused
from askwise.model import Belief, Data
from askwise.rules import checked_level
from askwise.search import Search
from askwise.space import Setting
from askwise.study import validation
from askwise.study.answers import Answer, Tie
from askwise.study.checks import Check, checks
from askwise.study.level_sets import (
    Classified,
    LevelOutlook,
    LevelSet,
    checked_confidence,
    classified,
    level_outlook,
    level_set,
)
from askwise.study.model import Model
from askwise.study.plan import Plan
from askwise.study.predictions import Comparison, Prediction, comparison, importance, predictions
from askwise.study.question import Status
from askwise.study.questions import Situation
from askwise.study.raters import Estimate, Raters
from askwise.study.recommendation import Best, Outlook, best, hint, outlook
from askwise.study.state import Answered, Entry, State, as_text

Chosen = tuple[list[dict[str, Any]], list[int]]
"""Options of the next question in the order in which to show them, and which member each is."""
Choosing = Callable[[Model, Situation], Chosen]
_PART = 4096  # items whose means are computed at once


@dataclass(frozen=True)
class Snapshot:
    """The model by the plan and the state of one moment."""

    model: Model
    state: State
    choose: Choosing

    @property
    def plan(self) -> Plan:
        """The plan of that moment."""
        return self.model.plan

    def whose(self, participant: str | None) -> str | None:
        """Whose utility is modelled for this participant."""
        return self.state.whose(self.plan.people, participant)

    def belief(self, participant: str | None) -> Belief:
        """Posterior of f."""
        validation.check_participant(participant)
        who = self.whose(participant)
        return self.model.belief(self._answers(who), who)

    def raters(self, participant: str | None) -> Raters:
        """What is learned of the people."""
        return self.model.raters(self._answers(self.whose(participant)))

    def best(self, context: Setting | None, reference: Setting | None, participant: str | None) -> Best:
        """The setting most likely to be best."""
        space = self.plan.space
        given = validation.checked_context(space, context)
        rival = None if reference is None else validation.checked_reference(space, reference, given)
        belief, search = self._searched(participant, given)
        return best(belief, self.plan, search, rival)

    def status(self, context: Setting | None, participant: str | None) -> Status:
        """How far the study has come."""
        plan, state = self.plan, self.state
        given = validation.checked_context(plan.space, context)
        validation.check_participant(participant)
        participant = self.whose(participant)
        if plan.people.participants == "separate":
            state = state.of_participant(participant)
        counts = {status: state.count(status) for status in ("skipped", "voided", "open", "expired")}
        situation = Situation.of(state, given, plan.people, participant)
        answers, belief = situation.answers, self._belief(situation.answers, participant)
        look = None
        if belief is not None:
            look = self._outlook(belief, situation, given)
        found = self._checks(state.having("answered"), belief, participant)
        return Status(
            answers=len(answers),
            undecided=sum(isinstance(one.answer, Tie) for one in answers),
            **counts,
            gain=look.gain if isinstance(look, Outlook) else None,
            regret=look.regret if isinstance(look, Outlook) else None,
            hint=hint(plan, len(answers), look, found),
            checks=found,
            misclassified=look.misclassified if isinstance(look, LevelOutlook) else None,
        )

    def level_set(
        self,
        level: float | None,
        confidence: float,
        context: Setting | None,
        participant: str | None,
        safest: int,
    ) -> LevelSet:
        """The settings that work at least so often."""
        domain = self.plan.space.domain(validation.checked_context(self.plan.space, context))
        given = self._level(level), checked_confidence(confidence), validation.checked_count("safest", safest)
        return level_set(self.belief(participant), self.plan, domain, *given)

    def classified(
        self,
        count: int,
        level: float | None,
        confidence: float,
        context: Setting | None,
        participant: str | None,
    ) -> list[Classified]:
        """Settings spread over the space, each with its side of the level."""
        domain = self.plan.space.domain(validation.checked_context(self.plan.space, context))
        given = self._level(level), checked_confidence(confidence), validation.checked_count("count", count)
        return classified(self.belief(participant), self.plan, domain, *given)

    def checks(self, participant: str | None) -> list[Check]:
        """Whether the answers look as if somebody had looked at the questions."""
        answered = self.state.having("answered")
        separate = self.plan.people.participants == "separate"
        people = list(self.state.answers_by_participant()) if separate else []
        if participant is None and len(people) > 1:
            each = (self.state.of_participant(who).having("answered") for who in people)
            return checks(self.plan, [entry for theirs in each for entry in theirs], None)
        if people:
            answered = self.state.of_participant(self.whose(participant)).having("answered")
        return self._checks(answered, self._belief(tuple(entry.answered for entry in answered)))

    def predict(
        self, settings: Setting | Sequence[Setting], context: Setting | None, participant: str | None
    ) -> list[Prediction]:
        """What the model says of settings."""
        space = self.plan.space
        each = validation.checked_settings(settings, validation.checked_context(space, context))
        points = torch.stack([space.unit(setting) for setting in each])
        belief, top = self.belief(participant), None
        if self.plan.kind.compares:
            top = space.unit(self.best(context, None, participant).params)[None]
        return predictions(belief, self.plan, points, each, top)

    def compare(
        self, first: Setting, second: Setting, context: Setting | None, participant: str | None
    ) -> Comparison:
        """Which of two settings is better."""
        space = self.plan.space
        given = validation.checked_context(space, context)
        one, other = (space.unit(each)[None] for each in validation.checked_settings([first, second], given))
        return comparison(self.belief(participant), one, other)

    def top(self, k: int, context: Setting | None, participant: str | None) -> list[Prediction]:
        """The best of the settings that were asked about and may still be chosen, or of all items."""
        space = self.plan.space
        given = validation.checked_context(space, context) or {}
        first = self.best(context, None, participant).params
        entries = [entry for _, entry in sorted(self.state.entries.items())]
        asked = [dict(option) for entry in entries for option in entry.options if space.allows(option)]
        asked += self._best_items(validation.checked_count("k", k), given, participant)
        here = [one for one in [first, *asked] if all(one[name] == value for name, value in given.items())]
        distinct = list({as_text(one): one for one in here}.values())
        found = self.predict(distinct, context, participant)
        return sorted(found, key=lambda one: -one.mean)[:k]

    def importance(self, context: Setting | None, participant: str | None) -> dict[str, Estimate]:
        """Which parameters matter."""
        given = validation.checked_context(self.plan.space, context)
        return importance(self.belief(participant), self.plan.space, self.plan.seed, given)

    def _outlook(
        self, belief: Belief, situation: Situation, context: Setting | None
    ) -> Outlook | LevelOutlook:
        """What is left to gain."""
        plan, answers, who = self.plan, situation.answers, situation.participant
        if (level := plan.level) is not None:
            domain = plan.space.domain(context)
            return self.model.recent.get(situation, lambda: level_outlook(belief, plan, domain, level))
        options = self._next_options(situation)

        def answered(points: Tensor, answer: Answer) -> Data:
            return self.model.answered(answers, points, answer, who)

        def found() -> Outlook:
            about, search = self.model.searched(answers, who, context)
            _, prior = self.model.prepared(answers)
            return outlook(about, plan, prior, search, self.model.points(options), answered)

        return self.model.recent.get((answers, who, situation.context, as_text(options)), found)

    def _next_options(self, situation: Situation) -> Sequence[Setting]:
        """The settings of the question whose answer comes next: one that is open, or that would be asked."""
        for entry in self.state.having("open"):
            asked = not self.plan.people.differ or entry.participant == situation.participant
            if asked and as_text(entry.context) == situation.context:
                return list(entry.options)
        options, _ = self.choose(self.model, situation)
        return options

    def _searched(self, participant: str | None, context: Setting | None) -> tuple[Belief, Search]:
        """Posterior of f, and the search by which a setting is recommended."""
        validation.check_participant(participant)
        who = self.whose(participant)
        return self.model.searched(self._answers(who), who, context)

    def _level(self, level: float | None) -> float:
        """The level that is asked for, or that of the study."""
        if self.plan.kind.compares:
            advice = "Ask yes/no questions, feedback='binary'."
            raise Refused("study", "ask yes/no questions to have a level", self.plan.feedback, advice)
        if level is None and self.plan.level is None:
            raise Refused("level", "be given in a study without one", "none", "Write level=0.95, say.")
        return checked_level(self.plan.level if level is None else level)

    def _answers(self, participant: str | None) -> tuple[Answered, ...]:
        return Situation.of(self.state, None, self.plan.people, participant).answers

    def _belief(self, answers: tuple[Answered, ...], participant: str | None = None) -> Belief | None:
        """The posterior once there is a model; None before."""
        ready = len(answers) >= self.plan.initial and self.model.is_ready(answers)
        return self.model.belief(answers, participant) if ready else None

    def _checks(
        self, answered: Sequence[Entry], belief: Belief | None, participant: str | None = None
    ) -> list[Check]:
        several = len({entry.participant for entry in answered}) > 1 and not self.plan.people.differ

        def found() -> list[Check]:
            answers = tuple(entry.answered for entry in answered)
            by_rater = self.model.by_rater(answers) if several and belief is not None else None
            return checks(self.plan, answered, belief, by_rater)

        return list(self.model.recent.get(("checks", belief is None, participant), found, answered))

    def _best_items(self, k: int, context: Setting, participant: str | None) -> list[dict[str, Any]]:
        """The items of highest mean, asked about or not; none where there are no items to choose from."""
        domain = self.plan.space.domain(context)
        if domain is None or not domain.free_pools or domain.listed is None:
            return []
        points, belief = domain.listed, self.belief(participant)
        with torch.no_grad():
            means = torch.cat([belief.mean(part) for part in points.split(_PART)])
        highest = means.topk(min(k, len(points))).indices
        return [self.plan.space.natural(point) for point in points[highest]]
