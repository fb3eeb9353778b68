"""The values of a question: by the names that may stand in braces, and in the environment of commands."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from askwise.commands import variables
from askwise.study import Question, labels


def place_names(parameters: Collection[str], size: int) -> list[str]:
    """The names that may stand in braces: of parameters or, if options are compared, such as ``A.gain``."""
    if size == 1:
        return list(parameters)
    return [f"{label}.{name}" for label in labels(size) for name in parameters]


def values_by_place(options: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The values of a question by the names that may stand in braces."""
    values = [value for option in options for value in option.values()]
    return dict(zip(place_names(list(options[0]), len(options)), values, strict=True))


def environment(question: Question, more: Mapping[str, object]) -> dict[str, str]:
    """Values of a question by their environment variables, all options as JSON, and ``more``.

    The variable of a parameter has precedence over others of its name.
    """
    about = {"question": question.id, "options": json.dumps(question.options), **more}
    return {**variables(about), **variables(values_by_place(question.options))}
