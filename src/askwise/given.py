"""What people hand to a study, checked and made plain enough to be recorded."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from jaxtyping import Float
from torch import Tensor

from askwise.space import Space

__all__ = [
    "check_participant",
    "checked_context",
    "checked_options",
    "checked_reason",
    "checked_reference",
    "checked_time",
]

_LONGEST = 1e9  # seconds that an answer may take


def check_participant(participant: object) -> None:
    """Refuse what is no name; None is nobody in particular."""
    if participant is not None and (type(participant) is not str or not participant):
        raise ValueError(
            f"participant must be a name; got {participant!r}. Leave it out if there is only one person."
        )


def checked_reason(reason: object) -> str | None:
    """Why something was changed, if that was said."""
    if reason is not None and type(reason) is not str:
        raise TypeError(f"reason must be a text; got {reason!r}. Leave it out if there is none.")
    return reason


def checked_time(seconds: object) -> float | None:
    """How long an answer took, if that was said."""
    if seconds is None:
        return None
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 <= cast(float, seconds) <= _LONGEST:
        raise ValueError(
            f"seconds must be a number from 0 to {_LONGEST:.0e}; got {seconds!r}. Leave it out if unknown."
        )
    return float(cast(float, seconds))


def checked_context(space: Space, context: object) -> dict[str, Any] | None:
    """Values of the parameters that are given, of plain types whatever they were given as."""
    if context is not None and not isinstance(context, Mapping):
        raise TypeError(f"context must be a dictionary of parameters; got {context!r}. Give each a value.")
    space.domain(context)
    if not context:
        return None
    known = space.parameters
    return {name: known[name].natural(known[name].places(value)) for name, value in context.items()}


def checked_reference(
    space: Space, reference: object, context: Mapping[str, Any] | None
) -> Float[Tensor, " d"]:
    """The place of a setting to compare with."""
    if not isinstance(reference, Mapping):
        raise TypeError(
            f"reference must be a dictionary of parameters; got {reference!r}. Give one for each of them."
        )
    return space.unit({**(context or {}), **reference})


def checked_options(space: Space, size: int, options: object) -> list[dict[str, Any]]:
    """As many settings as a question is about."""
    settings = isinstance(options, Sequence) and all(isinstance(option, Mapping) for option in options)
    if not settings or len(cast(Sequence[Any], options)) != size:
        raise ValueError(
            f"options must be {size}, as many as this study asks about; got {options!r}. "
            "Give each as a dictionary of parameters."
        )
    return [space.natural(space.unit(option)) for option in cast(Sequence[Any], options)]
