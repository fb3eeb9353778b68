r"""Checks of the answers themselves: whether somebody looked at the questions.

A model explains any answers, those of a coin as well, and then names probabilities that mean nothing.  Each
check weighs what an honest person would answer against what somebody answers who does not look.  For sides
and repeats that is a likelihood ratio which is at most one in expectation for every honest person, whatever
was answered before.  By Ville's inequality such a ratio ever reaches :math:`1 / \alpha` with a probability of
at most :math:`\alpha`, however often one looks.  With several participants, each is checked and all together,
and the limit of a ratio is multiplied by the number of these checks: so their false alarms add up to
:math:`\alpha` again, as long as nobody joins.  docs/answer-checks.md says how often good people are flagged
and careless ones found.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from askwise.errors import shortened
from askwise.model import Belief, average_evidence, chance_evidence, held_out
from askwise.numerics import ndtr, one_thread
from askwise.study.answers import Verdict
from askwise.study.answers.base import listed
from askwise.study.plan import Plan
from askwise.study.raters import disagreement
from askwise.study.repeats import is_repeat, subject
from askwise.study.state import Entry

SIDES_LIMIT = 100.0  # likelihood ratio from which sides are flagged
RATERS_LIMIT = 20.0  # likelihood ratio from which people are said to disagree
COINS_LIMIT = 8.0  # how many times better than the model coin flips must explain the answers
REPEATS_LIMIT = 20.0  # likelihood ratio from which repeated answers are flagged
_AGREE = 0.9  # share of repeated questions, chosen for their clear answers, that honest people answer alike
_LONGEST = 40  # characters of a participant's name
_MANY_TIMES = 1000  # how many times better something is need not be said any more exactly
_FAST, _TOO_MANY, _TIMED = 0.3, 0.2, 20  # seconds, share of answers below them, and answers needed


Name = Literal["sides", "model", "repeats", "speed", "raters"]


@dataclass(frozen=True)
class Check:
    """A check of the answers; while one is flagged, no probability is to be trusted."""

    name: Name
    flagged: bool
    detail: str
    """What was found, in a sentence with the numbers; of several participants, who is flagged."""


def checks(
    plan: Plan, answered: Sequence[Entry], belief: Belief | None, by_rater: Belief | None = None
) -> list[Check]:
    """The checks that apply to these answered questions; ``belief`` is that of their answers, if any.

    ``by_rater`` is the same belief with points of different people kept apart.
    """
    found = [sides(plan, answered), repeats(plan, answered), speed(plan, answered)]
    if belief is not None:
        found.insert(1, foresight(plan, answered, belief))
    if by_rater is not None:
        found.append(raters(plan, answered, by_rater))
    return [check for check in found if check is not None]


def by_participant(plan: Plan, answered: Sequence[Entry]) -> dict[str | None, list[Check]]:
    """The checks of everybody's own answers, flagged where :func:`checks` flags them."""
    people: dict[str | None, list[Entry]] = {}
    for entry in answered:
        people.setdefault(entry.participant, []).append(entry)
    among = len(people) if len(people) > 1 else 0
    each = {
        who: [check(plan, theirs, among) for check in (sides, repeats, speed)]
        for who, theirs in people.items()
    }
    return {who: [check for check in found if check is not None] for who, found in each.items()}


def raters(plan: Plan, answered: Sequence[Entry], belief: Belief) -> Check | None:
    """Whether people disagree more than noise explains; None if there is one person, or each has a model.

    Tastes that differ, by shares of 20 to 95% of the utility, are weighed against one taste of all.
    """
    counts = Counter(entry.participant for entry in answered)
    if plan.people.differ or len(counts) < 2:
        return None
    ratio = disagreement(belief)
    detail = (
        f"{len(counts)} people answered; that their tastes differ explains the answers "
        f"{_times(ratio) if ratio > 0 else 'no'} better than that they have one taste"
    )
    flagged = ratio >= math.log(RATERS_LIMIT)
    advice = ": with participants='population' each has a model of their own" if flagged else ""
    return Check("raters", flagged, f"{detail}{advice}.")


def sides(plan: Plan, answered: Sequence[Entry], among: int = 0) -> Check | None:
    r"""Whether options are chosen for their place; None in studies that do not compare.

    Options are shown in random order, so the k-th is chosen with probability 1/m whatever somebody likes.
    Against that stand fixed preferences for places, all equally likely: after :math:`n_k` choices of each,

    .. math:: \frac{(m - 1)!\, \prod_k n_k!}{(n + m - 1)!} \Big/ m^{-n}

    The same holds for the worst, if that is what was named; both ratios are multiplied.
    Questions that were not chosen here but recorded do not count, since their order may mean something.
    """
    if not plan.kind.compares:
        return None

    def weighed(some: Sequence[Entry]) -> tuple[float, str]:
        named = [_named(entry) for entry in some if entry.seen is not None]
        counts = Counter((verdict, places[0]) for verdict, places in named if len(places) == 1)
        chosen, worst = (
            [counts[verdict, place] for place in range(plan.size)] for verdict in ("good", "bad")
        )
        also = f", and named the worst {listed(map(str, worst))} times" if any(worst) else ""
        detail = (
            f"in the order shown, options were chosen {listed(map(str, chosen))} times{also}; it is random."
        )
        return place_ratio(chosen) + place_ratio(worst) - math.log(SIDES_LIMIT), detail

    return _of_each("sides", answered, weighed, among)


def place_ratio(counts: Sequence[int]) -> float:
    """Log likelihood ratio of fixed but unknown preferences for places to no preference."""
    n, m = sum(counts), len(counts)
    fixed = math.lgamma(m) + sum(math.lgamma(count + 1) for count in counts) - math.lgamma(n + m)
    return fixed + n * math.log(m)


@one_thread()
def foresight(plan: Plan, answered: Sequence[Entry], belief: Belief) -> Check:
    """Whether the model explains the answers better than coin flips do.

    The test is the evidence of the model, averaged over the kernels that a study expects, against that of a
    utility which is the same everywhere.  How many answers the others foretell is more vivid, but separates
    people from coins less well.
    """
    data = belief.data
    learned = isinstance(plan.kernel, str)
    chance, explained = chance_evidence(data), float(belief.log_evidence)
    if learned:  # no more need be known than that it is many times better than coins
        explained = average_evidence(data, plan.expected_kernel(), belief, chance + math.log(_MANY_TIMES))
    coins = chance - explained
    mean, _ = held_out(belief, [_rows(plan, entry) for entry in answered])
    foreseen, decided = int((mean * data.signs > 0).sum()), int((data.signs != 0).sum())
    than = (
        "coin flips explain them {} better than the model"
        if coins > 0
        else ("the model explains them {} better than coin flips")
    )
    detail = (
        f"Each from the others, the model foresees {foreseen} of {decided} "
        f"{'comparisons' if plan.size > 2 else 'answers'}; {than.format(_times(abs(coins)))}."
    )
    return Check("model", coins >= math.log(COINS_LIMIT), detail)


@one_thread()
def foretold(plan: Plan, answered: Sequence[Entry], belief: Belief) -> list[float | None]:
    """How likely each answer was, from all others; of several comparisons the least likely; None for ties."""
    counts = [_rows(plan, entry) for entry in answered]
    mean, var = held_out(belief, counts)
    signs = belief.data.signs
    chance = ndtr(signs * mean / (1 + var.clamp_min(0)).sqrt()).masked_fill(signs == 0, math.inf)
    least = [float(part.min()) for part in chance.split(counts)]
    return [None if math.isinf(one) else one for one in least]


def repeats(plan: Plan, answered: Sequence[Entry], among: int = 0) -> Check | None:
    """Whether questions that were asked again get the same answer; None if the study repeats none.

    Honest people are taken to answer 90% of them alike, others by chance.  Answers of different people, or
    undecided ones, do not count; neither does the best once and the worst another time.
    """
    if not plan.repeats:
        return None

    def weighed(some: Sequence[Entry]) -> tuple[float, str]:
        first: dict[tuple[str | None, str, Verdict], list[str]] = {}
        alike = different = 0
        for entry in some:
            verdict, chosen = _named_settings(entry)
            before = first.setdefault((entry.participant, subject(entry.options), verdict), chosen)
            if before is not chosen and is_repeat(plan, entry.id) and before and chosen:
                alike, different = alike + (before == chosen), different + (before != chosen)
        detail = f"{alike} of {alike + different} questions that were asked twice got the same answer twice."
        return repeat_ratio(alike, different, max(2, plan.size)) - math.log(REPEATS_LIMIT), detail

    return _of_each("repeats", answered, weighed, among)


def repeat_ratio(alike: int, different: int, ways: int) -> float:
    """Log likelihood ratio of answers by chance, one of ``ways``, to those of a person."""
    chance = 1 / ways
    return alike * math.log(chance / _AGREE) + different * math.log((1 - chance) / (1 - _AGREE))


def speed(plan: Plan, answered: Sequence[Entry], among: int = 0) -> Check | None:
    """Whether answers come faster than anybody can choose; None if nothing was timed.

    To press a key when a light goes on takes 0.23 s on average (Woods et al. 2015, Front. Hum. Neurosci.
    9:131), and nobody reads and compares settings in the rest of 0.3 s.  Only for studies that compare:
    yes/no questions may be answered by machines, which are that fast.
    """
    if not plan.kind.compares or all(entry.seconds is None for entry in answered):
        return None

    def weighed(some: Sequence[Entry]) -> tuple[float, str]:
        times = [entry.seconds for entry in some if entry.seconds is not None]
        fast = sum(time < _FAST for time in times)
        flagged = len(times) >= _TIMED and fast > _TOO_MANY * len(times)
        detail = f"{fast} of {len(times)} answers took less than {_FAST} s."
        return math.inf if flagged else -math.inf, detail  # nobody is that fast: no chance to share

    return _of_each("speed", answered, weighed, among)


def _of_each(
    name: Name,
    answered: Sequence[Entry],
    weighed: Callable[[Sequence[Entry]], tuple[float, str]],
    among: int,
) -> Check:
    """A check of all participants together and, if there are several, of each.

    ``weighed``: by how much the log likelihood ratio exceeds its limit, and what was found.  ``among``: of
    the answers of one, the number of people who are checked in this way.
    """
    people: dict[str | None, list[Entry]] = {}
    for entry in answered:
        people.setdefault(entry.participant, []).append(entry)
    each = {} if len(people) < 2 else {who: weighed(some) for who, some in people.items()}
    allowed, (excess, detail) = math.log(1 + (among or len(each))), weighed(answered)
    named = [f"{_called(who)}: {text}" for who, (over, text) in each.items() if over >= allowed]
    pooled = detail[0].upper() + detail[1:]
    return Check(name, bool(named) or excess >= allowed, " ".join(named) or pooled)


def _called(participant: str | None) -> str:
    return "Without a name" if participant is None else f"Participant {shortened(participant, _LONGEST)}"


def _rows(plan: Plan, entry: Entry) -> int:
    """Number of rows that the answer became."""
    if plan.size <= 2 or entry.answer is None:
        return 1
    return entry.answer.rows(torch.zeros(1, plan.size, 1, dtype=torch.float64), [entry.answer]).n


def _named(entry: Entry) -> tuple[Verdict, list[int]]:
    """The options that the answer calls good or, if it calls none so, bad, by their place."""
    assert entry.answer is not None
    verdicts = entry.answer.verdicts(len(entry.options))
    verdict: Verdict = "good" if "good" in verdicts else "bad"
    return verdict, [place for place, said in enumerate(verdicts) if said == verdict]


def _named_settings(entry: Entry) -> tuple[Verdict, list[str]]:
    """What the answer says, whatever the sides: the settings it calls good or bad; none if undecided."""
    verdict, places = _named(entry)
    if len(entry.options) == 1 and places:
        return "good", ["yes" if verdict == "good" else "no"]
    return verdict, sorted(subject([entry.options[place]]) for place in places)


def _times(log_ratio: float) -> str:
    many = log_ratio >= math.log(_MANY_TIMES)
    return f"over {_MANY_TIMES} times" if many else f"{math.exp(log_ratio):.0f} times"
