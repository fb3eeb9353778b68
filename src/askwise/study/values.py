"""What a value in a study file must be, and how a refusal says so."""

from collections.abc import Callable
from typing import Any

from askwise.errors import Refused

Check = Callable[[str, str, object], None]
"""Refuses a value of a key on a line of the file."""


def must_be(what: str, example: str, fits: Callable[[Any], bool]) -> Check:
    """A check that refuses what does not fit."""

    def check(place: str, key: str, value: object) -> None:
        if not fits(value):
            raise Refused(key, f"be {what}", repr(value), f"Write {key} = {example}, say.", place)

    return check


def of(*kinds: type) -> Callable[[Any], bool]:
    """Whether a value is of one of these types; true and false are not numbers."""
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def list_of(*kinds: type) -> Callable[[Any], bool]:
    """Whether a value is a list of values of these types."""
    return lambda value: isinstance(value, list) and all(map(of(*kinds), value))


def one_of(*values: object) -> Callable[[Any], bool]:
    """Whether a value is one of these."""
    return lambda value: value in values


TEXT = must_be("text in quotes", '"..."', of(str))
WHOLE, NUMBER = must_be("a whole number", "3", of(int)), must_be("a number", "2.5", of(int, float))
COUNT = must_be("a whole number from 1", "20", lambda value: of(int)(value) and value >= 1)
FLAG = must_be("true or false", "true", of(bool))
