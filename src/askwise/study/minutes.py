"""Kinds of question compared in minutes of a person's time."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import t as student

from askwise.errors import Refused
from askwise.study.answers import Answer, Ranking, Worst
from askwise.study.plan import Plan
from askwise.study.simulation import Simulation, simulated

SIZE = 4
"""Options of a question about several, unless the study or its user says otherwise."""
_MARKS = (0.25, 0.5, 1.0)  # of the time, at which the recommended settings are judged
_LEVEL = 0.95
_LONGEST = 24 * 60.0  # minutes


@dataclass(frozen=True)
class Pace:
    """Seconds that people take: for the turn to the next question, a look at an option, a comparison of two.

    The sum is what a question takes: docs/bench-minutes.md says what is known of it.

    >>> Pace().seconds(KINDS["duel"], 2), Pace().seconds(KINDS["ranking"], 4)
    (6.5, 16.5)
    """

    turn: float = 1.0
    look: float = 2.0
    compare: float = 1.5

    def __post_init__(self) -> None:
        """Refuse times that are not."""
        for name, value in vars(self).items():
            if not 0 <= value < math.inf:
                raise Refused(name, "be a number of seconds, 0 or more", value, "Leave it out.")

    def seconds(self, kind: "Kind", size: int) -> float:
        """What a question of this kind takes."""
        return self.turn + self.look * size + self.compare * kind.comparisons(size)


@dataclass(frozen=True)
class Kind:
    """A kind of question: how it is asked, and what is said of the order of its options."""

    key: str
    title: str
    feedback: str
    comparisons: Callable[[int], int]
    """Comparisons of two that it takes to answer."""
    said: Callable[[Answer], Answer]
    """The answer of somebody who would give this ranking."""

    def size(self, size: int) -> int:
        """The number of options that a question is about."""
        return 2 if self.feedback == "duel" else size

    def plan(self, plan: Plan, size: int) -> Plan:
        """The study with questions of this kind, and by its own rule if that asks such questions."""
        if plan.feedback == self.feedback and plan.size == self.size(size):
            return plan
        fixed = {"seed": plan.seed, "kernel": plan.kernel, "expires": plan.expires, "repeats": plan.repeats}
        made = Plan.read(plan.space, self.feedback, size=self.size(size), **fixed)
        return replace(made, people=plan.people)


def _all(answer: Answer) -> Answer:
    return answer


def _best(answer: Answer) -> Answer:
    assert isinstance(answer, Ranking)
    return Ranking(answer.ranking[:1])


def _worst(answer: Answer) -> Answer:
    assert isinstance(answer, Ranking)
    (last,) = {*range(len(answer.ranking) + 1)} - {*answer.ranking}
    return Worst(last)


def _sorting(size: int) -> int:
    """Comparisons that sort so many (Knuth 1998, section 5.3.1, for up to 11)."""
    return math.ceil(math.log2(math.factorial(size)))


KINDS = {
    kind.key: kind
    for kind in (
        Kind("duel", "duel", "duel", lambda _: 1, _all),
        Kind("best", "best of {}", "batch", lambda size: size - 1, _best),
        Kind("worst", "worst of {}", "batch", lambda size: size - 1, _worst),
        Kind("ranking", "ranking of {}", "batch", _sorting, _all),
    )
}
"""Every kind of question that is compared."""


@dataclass(frozen=True)
class Contest:
    """What is compared: kinds of question of a study, each answered by the same users for some minutes."""

    plan: Plan
    minutes: float
    users: int
    seed: int
    size: int = SIZE
    context: dict[str, Any] | None = None
    pace: Pace = Pace()
    seconds: Mapping[str, float] = field(default_factory=dict)
    """What questions of a kind take, where that is known better than by the pace."""

    def __post_init__(self) -> None:
        """Refuse what cannot be compared."""
        if not self.plan.kind.compares:
            advice = "How often something works is another question than which is better."
            raise Refused(
                "study", "compare settings (duel or batch)", f"a {self.plan.feedback} study", advice
            )
        if not 0 < self.minutes <= _LONGEST:
            raise Refused("minutes", f"be above 0, {_LONGEST:g} at most", f"{self.minutes:g}", "Try 10.")
        for key, value in self.seconds.items():
            if key not in KINDS:
                expected = f"be given for {', '.join(KINDS)}"
                raise Refused("seconds", expected, repr(key), "Choose among these.")
            if not 0 < value < math.inf:
                raise Refused(f"seconds of {key}", "be above 0", f"{value:g}", "Leave it out.")
        for kind in KINDS.values():
            if self.answers(kind, self.minutes) < 1:
                got, advice = f"{self.minutes:g}, and {self.seconds_of(kind):g} seconds", "Give more minutes."
                raise Refused("minutes", f"suffice for a {kind.title.format(self.size)}", got, advice)
            kind.plan(self.plan, self.size).check_enough(self.context)

    def seconds_of(self, kind: Kind) -> float:
        """What a question of this kind takes."""
        return self.seconds.get(kind.key, self.pace.seconds(kind, kind.size(self.size)))

    def answers(self, kind: Kind, minutes: float) -> int:
        """Questions that are answered in this time."""
        return math.floor(60 * minutes / self.seconds_of(kind))

    @property
    def total(self) -> int:
        """Number of questions asked of all users."""
        return self.users * sum(self.answers(kind, self.minutes) for kind in KINDS.values())


@dataclass(frozen=True)
class Mark:
    """How good the recommended settings are after this time, one number for each user."""

    minutes: float
    answers: int
    share: list[float]
    """Where it lies between the average setting (0) and the user's best (1)."""


@dataclass(frozen=True)
class Course:
    """What one kind of question brings as time passes."""

    kind: str
    title: str
    seconds: float
    after: list[Mark]


def compared(wanted: Contest, step: Callable[[], None] = lambda: None) -> list[Course]:
    """What each kind of question brings the same users; ``step`` is called after every answer."""
    return [_course(wanted, kind, step) for kind in KINDS.values()]


def _course(wanted: Contest, kind: Kind, step: Callable[[], None]) -> Course:
    times = [wanted.minutes * part for part in _MARKS]
    counts = [max(1, wanted.answers(kind, minutes)) for minutes in times]
    simulation = Simulation(
        kind.plan(wanted.plan, wanted.size),
        counts[-1],
        wanted.users,
        wanted.seed,
        wanted.context,
        tuple(counts),
        kind.said,
    )
    found = {one.answers: one.share for one in simulated(simulation, step)}
    marks = [Mark(time, count, found[count]) for time, count in zip(times, counts, strict=True)]
    title = kind.title.format(wanted.size)
    return Course(kind.key, title, wanted.seconds_of(kind), marks)


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95% interval of the mean (Student's t); None of a single value."""
    if len(values) < 2:
        return None
    half = student.ppf((1 + _LEVEL) / 2, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return float(np.mean(values) - half), float(np.mean(values) + half)


def lead(courses: Sequence[Course]) -> tuple[Course, dict[str, tuple[float, float] | None]]:
    """The course that is ahead in the end, and how far behind the others are, as intervals."""
    ahead = max(courses, key=lambda one: float(np.mean(one.after[-1].share)))
    behind = {}
    for other in courses:
        if other is not ahead:
            both = zip(ahead.after[-1].share, other.after[-1].share, strict=True)
            behind[other.title] = interval([one - another for one, another in both])
    return ahead, behind
