"""Validate input and convert it to JSON types."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from askwise.errors import Refused, WrongType
from askwise.space import Setting, Space
from askwise.study.plan import Plan

if TYPE_CHECKING:
    from torch import Tensor
else:  # only points need torch, which takes seconds to import
    Tensor = Any

_RECORDED = ("options", "answer", "ranking", "winner", "pairs", "worst", "participant", "seconds")
_LONGEST = 1e9  # seconds that an answer may take
_MOST = 100_000  # things that are computed at once


def check_participant(participant: object) -> None:
    """Refuse anything but a name or None."""
    if participant is not None and (type(participant) is not str or not participant):
        advice = "Leave it out if there is only one person."
        raise Refused("participant", "be a name", repr(participant), advice)
    _check_text("participant", participant)


def _check_text(name: str, text: object) -> None:
    """Refuse halves of characters, as terminals and programs that cut text send: no file can keep them."""
    if isinstance(text, str) and any("\ud800" <= one <= "\udfff" for one in text):
        raise Refused(name, "be text", repr(text), "Write it in UTF-8.")


def checked_reason(reason: object) -> str | None:
    """The reason for a change, if given."""
    if reason is not None and type(reason) is not str:
        raise WrongType("reason", "be text", repr(reason), "Leave it out if there is none.")
    _check_text("reason", reason)
    return reason


def checked_time(seconds: Any) -> float | None:
    """Response time in seconds, if given."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (number and 0 <= seconds <= _LONGEST):
        expected = f"be a number from 0 to {_LONGEST:.0e}"
        raise Refused("seconds", expected, repr(seconds), "Leave it out if unknown.")
    return None if seconds is None else float(seconds)


def checked_context(space: Space, context: object) -> dict[str, Any] | None:
    """Values of the context parameters, as plain types."""
    if context is not None and not isinstance(context, Mapping):
        raise WrongType(
            "context", "be a dictionary of parameters", repr(context), "Give each context parameter a value."
        )
    space.domain(context)
    if not context:
        return None
    known = space.parameters
    return {name: known[name].natural(known[name].places(value)) for name, value in context.items()}


def checked_reference(space: Space, reference: object, context: Setting | None) -> Tensor:
    """The point [d] of a setting to compare with."""
    if not isinstance(reference, Mapping):
        advice = "Give each parameter a value."
        raise WrongType("reference", "be a dictionary of parameters", repr(reference), advice)
    return space.unit({**(context or {}), **reference})


def checked_settings(settings: Any, context: Setting | None) -> list[dict[str, Any]]:
    """Settings, one or several, with the values of the context; as the rows of a DataFrame, too."""
    if hasattr(settings, "to_dict") and hasattr(settings, "columns"):
        settings = settings.to_dict("records")
    each = [settings] if isinstance(settings, Mapping) else settings
    if not isinstance(each, Sequence) or not each or not all(isinstance(one, Mapping) for one in each):
        advice = "Give each as a dictionary of parameters."
        raise WrongType("settings", "be a setting or a list of settings", repr(settings), advice)
    return [{**(context or {}), **one} for one in each]


def checked_count(name: str, value: object) -> int:
    """A number of things, one or more."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Refused(name, "be a whole number, 1 or more", repr(value), "Leave it out.")
    if value > _MOST:
        raise Refused(name, f"be at most {_MOST:,}", value, "Ask for fewer.")
    return value


def checked_options(space: Space, size: int, options: Any) -> list[dict[str, Any]]:
    """The settings of a question, as plain types; refuses a wrong number of them."""
    settings = isinstance(options, Sequence) and all(isinstance(option, Mapping) for option in options)
    if not settings or len(options) != size:
        expected = f"be {size}, as many as this study asks about"
        raise Refused("options", expected, repr(options), "Give each as a dictionary of parameters.")
    return [space.values(space.unit(option)) for option in options]


def recorded(
    plan: Plan, options: Any, participant: object = None, seconds: object = None, **told: object
) -> dict[str, Any]:
    """The body of the event by which a question that was asked and answered elsewhere is recorded."""
    answer = plan.kind.read(plan.size, **told)
    check_participant(participant)
    shown, order = checked_options(plan.space, plan.size, options), list(range(plan.size))
    asked = {"options": shown, "order": order, "participant": participant, "context": None, "seen": None}
    return asked | {"answer": answer.to_json(), "seconds": checked_time(seconds)}


def recorded_many(plan: Plan, answers: Sequence[Mapping[str, Any]], key: str | None) -> list[dict[str, Any]]:
    """The bodies of several such events; the first has the key, the others numbers after it."""
    bodies = [recorded(plan, **given) for given in answers]
    for index, body in enumerate(bodies if key else ()):
        body["key"] = f"{key} {index}" if index else key
    return bodies


def checked_answers(answers: Any) -> list[dict[str, Any]]:
    """Answers with what they are about, as :meth:`Study.record` takes them."""
    if not isinstance(answers, Sequence) or not all(isinstance(one, Mapping) for one in answers):
        expected = "be a list of dictionaries, a DataFrame or the path of a file"
        raise WrongType("answers", expected, repr(answers), "Write [{'options': [...], 'answer': 1}], say.")
    for one in answers:
        if unknown := [str(name) for name in one if name not in _RECORDED]:
            raise Refused("answer", f"have {', '.join(_RECORDED)} only", unknown[0], "Leave it out.")
        if "options" not in one:
            raise Refused("answer", "have options", ", ".join(one), "Give the settings that were shown.")
    return [dict(one) for one in answers]


def check_key(key: object) -> None:
    """Refuse a key that cannot be stored."""
    if key is not None and (type(key) is not str or not key):
        raise Refused("key", "be a text", repr(key), "Leave it out, or give each answer one of its own.")
