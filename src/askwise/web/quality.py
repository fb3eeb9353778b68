"""How well everybody answers: sides, repeats, contradictions, response times, lapses."""

from statistics import median
from typing import Any

from askwise.errors import Refused
from askwise.study import Entry, Estimate, Study, Tie, by_participant, foretold
from askwise.web.lens import Lens
from askwise.web.overview import TITLES

UNLIKELY = 0.05
"""An answer to which all others give less than this chance contradicts them."""
_ENOUGH = 20  # answers, below which a share of lapses is mostly what was expected of them


def people(study: Study, lens: Lens) -> list[dict[str, Any]]:
    """A row for everybody who was asked something, in the order of their first questions."""
    entries = study.history()
    answered = [entry for entry in entries if entry.status == "answered"]
    found = by_participant(study.plan, answered)
    against = contradicting(study, lens.participant, answered)
    lapses = _lapses(study, lens.participant, len(answered))
    rows = []
    for who in dict.fromkeys(entry.participant for entry in entries):
        theirs = [entry for entry in entries if entry.participant == who]
        checks = [
            {"title": TITLES[one.name], "flagged": one.flagged, "detail": one.detail}
            for one in found.get(who, ())
        ]
        rows.append(_row(who, theirs, against) | {"checks": checks, "lapse": _estimate(lapses.get(who))})
    return rows


def contradicting(study: Study, participant: str | None, answered: list[Entry]) -> dict[int, float | None]:
    """The chance that all other answers give to each, by question; None to what is likely or undecided.

    Of a study of separate people, the answers of one of them; of none while there is no model.
    """
    if study.plan.people.participants == "separate":
        answered = [entry for entry in answered if entry.participant == participant]
    answers = tuple(entry.answered for entry in answered)
    if len(answers) < study.plan.initial or not study.model.is_ready(answers):
        return {}
    found = foretold(study.plan, answered, study.model.belief(answers))
    each = zip(answered, found, strict=True)
    return {entry.id: chance if chance is not None and chance < UNLIKELY else None for entry, chance in each}


def _row(who: str | None, theirs: list[Entry], against: dict[int, float | None]) -> dict[str, Any]:
    answered = [entry for entry in theirs if entry.status == "answered"]
    known = [against[entry.id] for entry in answered if entry.id in against]
    times = [entry.seconds for entry in answered if entry.seconds is not None]
    return {
        "name": who,
        "answers": len(answered),
        "undecided": sum(isinstance(entry.answer, Tie) for entry in answered),
        "skipped": sum(entry.status == "skipped" for entry in theirs),
        "voided": sum(entry.status == "voided" for entry in theirs),
        "seconds": median(times) if times else None,
        "fastest": min(times, default=None),
        "contradicting": sum(one is not None for one in known) if known else None,
        "last": max((entry.asked for entry in theirs), default=None),
    }


def _lapses(study: Study, participant: str | None, answers: int) -> dict[str | None, Estimate]:
    """The share of answers without a look at the question, of those of whom it is learned."""
    if answers < _ENOUGH or study.plan.people.lapses != "learned":
        return {}
    try:
        each = study.raters(participant).each
    except Refused:  # too few answers of this person
        return {}
    alone = len(study.participants()) == 1
    if study.plan.people.participants == "population" or alone:
        names = study.participants() if alone else [rater.name for rater in each]
        return {name: rater.lapse for name, rater in zip(names, each, strict=False)}
    return {participant: each[0].lapse} if study.plan.people.participants == "separate" else {}


def _estimate(found: Estimate | None) -> list[float] | None:
    return None if found is None else [found.value, *(found.interval or (found.value, found.value))]
