"""Validate input and convert it to JSON types."""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused, WrongType
from askwise.space import Setting, Space

_LONGEST = 1e9  # seconds that an answer may take


def check_participant(participant: object) -> None:
    """Refuse anything but a name or None."""
    if participant is not None and (type(participant) is not str or not participant):
        advice = "Leave it out if there is only one person."
        raise Refused("participant", "be a name", repr(participant), advice)


def checked_reason(reason: object) -> str | None:
    """Why something was changed, if given."""
    if reason is not None and type(reason) is not str:
        raise WrongType("reason", "be a text", repr(reason), "Leave it out if there is none.")
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
        raise WrongType("context", "be a dictionary of parameters", repr(context), "Give each a value.")
    space.domain(context)
    if not context:
        return None
    known = space.parameters
    return {name: known[name].natural(known[name].places(value)) for name, value in context.items()}


def checked_reference(space: Space, reference: object, context: Setting | None) -> Float[Tensor, " d"]:
    """The point of a setting to compare with."""
    if not isinstance(reference, Mapping):
        advice = "Give one for each of them."
        raise WrongType("reference", "be a dictionary of parameters", repr(reference), advice)
    return space.unit({**(context or {}), **reference})


def checked_options(space: Space, size: int, options: Any) -> list[dict[str, Any]]:
    """As many settings as a question is about."""
    settings = isinstance(options, Sequence) and all(isinstance(option, Mapping) for option in options)
    if not settings or len(options) != size:
        expected = f"be {size}, as many as this study asks about"
        raise Refused("options", expected, repr(options), "Give each as a dictionary of parameters.")
    return [space.values(space.unit(option)) for option in options]
