"""What the answers say of the people who give them, in words that those would understand."""

import math
from collections.abc import Iterator

from askwise.space import Space, readable
from askwise.study import Estimate, Raters, Study

_ENOUGH = 20  # answers, below which a share of lapses is mostly what was expected of them


def raters_of(study: Study, participant: str | None) -> Raters | None:
    """What is learned of the people; None where nothing is, or from too few answers to be worth a word."""
    people, who = study.plan.people, study.whose(participant)
    counts = study.answers_by_participant()
    if people.participants == "population" and len(counts) > 1:
        return study.raters()
    count = counts.get(who, 0) if people.participants == "separate" else sum(counts.values())
    learns = people.lapses == "learned" or people.noise == "setting"
    return study.raters(who) if learns and count >= _ENOUGH else None


def rows(study: Study, found: Raters) -> list[tuple[str | None, int, str, str]]:
    """Of each of several people: number of answers, how many are given without looking, and noise."""
    known = {rater.name: (percent(rater.lapse), number(rater.noise)) for rater in found.each}
    people = study.answers_by_participant().items()
    return [(who, count, *known.get(who, ("not known yet", ""))) for who, count in people]


def sentences(space: Space, found: Raters) -> Iterator[str]:
    """What else is learned, of one person or of all."""
    if len(found.each) == 1 and found.each[0].lapse.interval:
        yield f"{percent(found.each[0].lapse)} of the answers are given without looking at the question."
    if found.share is not None:
        yield f"{percent(found.share)} of a person's taste is their own, the rest is common to all."
    if found.margin is not None:
        yield f"Differences below {number(found.margin)} noises of an answer are too small to decide."
    if found.slopes is not None:
        yield from _slopes(space, found.slopes)


def _slopes(space: Space, slopes: list[Estimate]) -> Iterator[str]:
    """How the noise depends on the setting, a sentence for each coordinate."""
    rest = iter(slopes)
    for name, parameter in space.parameters.items():
        for place in range(parameter.width):
            times = number(_exp(next(rest)))
            ends = [[float(k == place and side) for k in range(parameter.width)] for side in (True, False)]
            if parameter.one_hot:
                value = parameter.text(parameter.natural(ends[0]))
                yield f"With {name} {value} answers are {times} times as noisy as without."
            else:
                high, low = (parameter.text(parameter.natural(end)) for end in ends)
                yield f"With {name} {high} answers are {times} times as noisy as with {low}."


def _exp(log: Estimate) -> Estimate:
    ends = log.interval and (math.exp(log.interval[0]), math.exp(log.interval[1]))
    return Estimate(math.exp(log.value), ends)


def percent(share: Estimate) -> str:
    """A share with its interval."""
    if share.interval is None:
        return f"{share.value:.0%} (assumed)" if share.value else "none (assumed)"
    return f"{share.value:.0%} ({share.interval[0]:.0%} to {share.interval[1]:.0%})"


def number(estimate: Estimate) -> str:
    """Two digits of a number, with its interval."""
    value = readable(float(f"{estimate.value:.2g}"))
    if estimate.interval is None:
        return f"{value} (assumed)"
    low, high = (readable(float(f"{end:.2g}")) for end in estimate.interval)
    return f"{value} ({low} to {high})"
