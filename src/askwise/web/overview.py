"""What to know at a glance: the recommended setting, whether to go on, what matters."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from askwise.space import Setting, Space
from askwise.study import UNKNOWN_REGION, Entry, Study, Tie, level_sentence
from askwise.web.lens import Lens

TITLES = {
    "sides": "Side bias",
    "model": "Model against coin flips",
    "repeats": "Questions asked twice",
    "speed": "Response times",
    "raters": "Agreement between people",
}
"""What the checks are called."""


def counts(entries: list[Entry]) -> dict[str, int]:
    """The number of questions of each status, and of answers that decide nothing."""
    found = Counter(entry.status for entry in entries)
    undecided = sum(entry.status == "answered" and isinstance(entry.answer, Tie) for entry in entries)
    each = {status: found[status] for status in ("answered", "open", "skipped", "voided", "expired")}
    return each | {"undecided": undecided}


def outlook(study: Study, lens: Lens) -> dict[str, Any]:
    """Whether to go on, the checks of the answers, and the recommended setting once there is a model."""
    status = study.status(lens.context, lens.participant)
    kind = study.plan.kind
    checks = [
        {"title": TITLES[check.name], "flagged": check.flagged, "detail": check.detail}
        for check in status.checks
        if status.answers
    ]
    unknown = kind.unknown if study.plan.level is None else UNKNOWN_REGION
    has_model = status.gain is not None or status.misclassified is not None
    return {
        "hint": status.hint.removesuffix(unknown).rstrip(),
        "short": status.short_hint,
        "gain": status.gain,
        "regret": status.regret,
        "unit": kind.unit,
        "unknown": unknown,
        "level": level(study, lens) if status.misclassified is not None else None,
        "trusted": not any(check.flagged for check in status.checks),
        "checks": checks,
        "best": recommended(study, lens) if has_model else None,
        "needs": kind.needs(study.plan.initial),
    }


def recommended(study: Study, lens: Lens) -> dict[str, Any]:
    """The recommended setting in words, and how likely it beats the reference."""
    found = study.best(lens.context, lens.reference, lens.participant)
    told = {name: value for name, value in found.params.items() if name not in study.space.contexts}
    compared = lens.reference and study.compare(
        found.params, {**lens.reference, **(lens.context or {})}, lens.context, lens.participant
    )
    chance = study.plan.kind.sentence(found.probability, lens.reference is not None)
    if study.plan.level is not None and found.above_level is not None:
        chance += f" {level_sentence(study.plan.level, found.above_level)}"
    return {
        "params": texts(study.space, told),
        "mean": found.mean,
        "std": found.std,
        "probability": found.probability,
        "sentence": chance,
        "reference": texts(study.space, lens.reference) if lens.reference else None,
        "better": compared.better if compared else None,
        "difference": [compared.difference, *compared.interval] if compared else None,
    }


def level(study: Study, lens: Lens) -> dict[str, Any]:
    """The shares of the space on either side of the level, and what they are, in words."""
    found = study.level_set(None, context=lens.context, participant=lens.participant)
    return {
        "inside": found.inside.value,
        "outside": found.outside.value,
        "misclassified": found.misclassified,
        "words": f"Shares of the space. The level is a success rate of {100 * found.level:.4g}%; inside and "
        f"outside are settings that are on their side with a probability of {100 * found.confidence:.4g}%.",
    }


def importance(study: Study, lens: Lens) -> dict[str, Any]:
    """Which parameters matter, most first, with intervals of 95%; of the prior it would say nothing."""
    if not study.count():
        return {"missing": missing(study)}
    found = study.importance(lens.context, lens.participant)
    return {
        "each": [
            {"name": name, "value": one.value, "interval": list(one.interval or (one.value, one.value))}
            for name, one in found.items()
        ]
    }


def missing(study: Study) -> str:
    """What it takes until there is something to show, in words."""
    kind = study.plan.kind
    return f"It takes {'a first answer' if kind.compares else kind.needs(study.plan.initial)} to show this."


def texts(space: Space, setting: Setting) -> list[Mapping[str, str]]:
    """Names and values of a setting as people write them."""
    return [
        {"name": name, "text": space.parameters[name].text(value) if name in space.parameters else str(value)}
        for name, value in setting.items()
    ]
