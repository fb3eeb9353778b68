"""A new study from the fields of a form, as the text of a study file."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from askwise.errors import Refused
from askwise.web.toml import toml_of

_STUDY = (
    *("name", "question", "feedback", "size", "level", "participants"),
    *("repeats", "expires", "initial", "seed"),
)
_NUMBERS = ("size", "level", "repeats", "expires", "initial", "seed", "low", "high", "step")
_BY_TYPE: Mapping[str, Sequence[str]] = {
    "real": ("low", "high", "step", "unit", "log"),
    "integer": ("low", "high", "unit", "log"),
    "ordinal": ("values", "unit"),
    "choice": ("values",),
    "fixed": ("value",),
}
_FILLED = ("name", "low", "high", "values", "value")  # fields by which a row is one
TYPES = tuple(_BY_TYPE)
"""The kinds of parameters that the form knows."""


_ROW = re.compile(r"([0-9]{1,4})\..+")


def rows_of(form: Mapping[str, Any]) -> set[int]:
    """The rows of parameters that a form has fields of."""
    return {int(found[1]) for key in form if (found := _ROW.fullmatch(key))}


@dataclass(frozen=True)
class Draft:
    """A study that somebody describes, as the text of a study file."""

    text: str
    rows: Sequence[int] | None = None
    """Which row of the form each parameter came from; None if the text was written by hand."""

    @classmethod
    def sent(cls, form: Mapping[str, Any]) -> "Draft":
        """From a form, or from the text in it."""
        if form.get("mode") == "toml":
            return cls(str(form.get("toml", "")).replace("\r\n", "\n"))
        return cls.of(form)

    @classmethod
    def of(cls, form: Mapping[str, Any]) -> "Draft":
        """From the fields of the study, and ``0.name``, ``0.low`` ... of the parameters; rows may be empty.

        >>> form = {"name": "hall", "0.name": "gain", "0.type": "real", "0.low": "0", "0.high": "4.5"}
        >>> print(Draft.of(form).text)
        [study]
        "name" = "hall"
        [space."gain"]
        "type" = "real"
        "low" = 0
        "high" = 4.5
        <BLANKLINE>
        """
        study = {key: _value(key, form[key]) for key in _STUDY if _given(form, key)}
        space: dict[str, dict[str, Any]] = {}
        rows = [row for row in sorted(rows_of(form)) if any(_given(form, f"{row}.{key}") for key in _FILLED)]
        for row in rows:
            name = str(form.get(f"{row}.name", "")).strip()
            if not name or name in space:
                got = repr(name) if name else "none"
                raise Refused("name", "be that of one parameter", got, "Choose another.", f"row {row + 1}")
            space[name] = _parameter(form, row)
        return cls(toml_of(None, study, space), rows)

    def field(self, place: str) -> str | None:
        """The field of the form that a line of the text came from, such as ``name`` or ``1.low``."""
        number = line_of(place)
        if self.rows is None or number is None:
            return None
        lines = self.text.split("\n")[:number]
        tables = sum(line.startswith("[") for line in lines)
        head = lines[-1].startswith("[")
        key = "name" if head else lines[-1].partition(" = ")[0].strip('"')
        return key if tables < 2 else f"{self.rows[tables - 2]}.{key}"


@dataclass(frozen=True)
class Finding:
    """What is wrong with a draft, and where; nothing where ``problem`` is None."""

    toml: str
    problem: str | None = None
    line: int | None = None
    field: str | None = None


def finding(form: Mapping[str, Any], check: Callable[[str], object]) -> Finding:
    """What ``check`` says of the study that a form describes."""
    try:
        draft = Draft.sent(form)
    except Refused as error:
        return Finding("", str(error), field=f"{int(error.place.removeprefix('row ')) - 1}.name")
    try:
        check(draft.text)
    except Refused as error:
        if draft.rows is None:
            return Finding(draft.text, str(error), line_of(error.place))
        plain = Refused(error.what, error.expected, error.got, error.advice)  # a form has no lines
        return Finding(draft.text, str(plain), field=draft.field(error.place) or "name")
    return Finding(draft.text)


def line_of(place: str) -> int | None:
    """The number in ``line 3``."""
    word, _, number = place.partition(" ")
    return int(number) if word == "line" and number.isdigit() else None


def _parameter(form: Mapping[str, Any], row: int) -> dict[str, Any]:
    kind = str(form.get(f"{row}.type", "real"))
    fields = [key for key in _BY_TYPE.get(kind, ()) if _given(form, f"{row}.{key}")]
    found = {"type": kind, **{key: _value(key, form[f"{row}.{key}"]) for key in fields}}
    return found | ({"context": True} if _given(form, f"{row}.context") else {})


def _given(form: Mapping[str, Any], key: str) -> bool:
    return bool(str(form.get(key, "")).strip())


def _value(key: str, given: Any) -> Any:
    text = str(given).strip()
    if key == "log":
        return True
    if key == "values":
        return [_plain(part.strip()) for part in text.split(",") if part.strip()]
    return _plain(text) if key in (*_NUMBERS, "value") else text


def _plain(text: str) -> Any:
    """A number if it is one, else the text, which is refused where a number is needed."""
    try:
        read = json.loads(text)
    except ValueError:
        return text
    return read if isinstance(read, int | float) and abs(read) < 1e300 else text
