"""A study that was sent as JSON, as the text of a study file: there is one way to read both."""

import json
from collections.abc import Mapping
from typing import Any

from askwise.errors import Refused


def toml_of(
    text: str | None, study: Mapping[str, Any] | None, space: Mapping[str, Mapping[str, Any]] | None
) -> str:
    """The text that was sent, or that says what these tables say.

    >>> print(toml_of(None, {"name": "hall"}, {"gain": {"type": "real", "low": 0, "high": 4.5}}))
    [study]
    "name" = "hall"
    [space."gain"]
    "type" = "real"
    "low" = 0
    "high" = 4.5
    <BLANKLINE>
    """
    if (text is None) == (study is None or space is None):
        advice = "Send either a study file as toml, or the tables study and space."
        raise Refused("study", "be described once", "both or neither", advice)
    if text is not None:
        return text
    tables = {"study": study or {}} | {
        f"space.{_spelled(name)}": table for name, table in (space or {}).items()
    }
    lines = []
    for head, table in tables.items():
        given = {key: value for key, value in table.items() if value is not None}
        lines += [f"[{head}]", *(f"{_spelled(key)} = {_spelled(value)}" for key, value in given.items())]
    return "\n".join(lines) + "\n"


def _spelled(value: Any) -> str:
    """A value as TOML; what JSON has and TOML has not is null, which is left out of tables."""
    match value:
        case bool() | str():
            return json.dumps(value)  # TOML escapes as JSON does, but for pairs of surrogates
        case int() | float():
            return repr(value)
        case list():
            return f"[{', '.join(map(_spelled, value))}]"
        case dict():
            return f"{{{', '.join(f'{_spelled(key)} = {_spelled(part)}' for key, part in value.items())}}}"
    raise Refused("value", "be text, a number, true, false, a list or a table", repr(value), "Leave it out.")
