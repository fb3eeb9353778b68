"""Who answers, and how: what a plan says of the people."""

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from askwise.errors import Refused

Participants = Literal["shared", "separate", "population"]
"""Whose taste is modelled: one of all, one of each, or one of each that has something in common with all."""
Aim = Literal["person", "population"]
"""Whose best setting the questions of a population study look for."""
_MOST_GUESSES = 0.5  # with two alternatives


@dataclass(frozen=True)
class People:
    """The people of a study; the defaults are those of studies from before there was a choice."""

    participants: Participants = "shared"
    aim: Aim = "person"
    lapses: float | Literal["learned"] = 0.0
    """Share of answers that are given without looking, or that it is learned."""
    guess: float = 0.0
    """Share of yes answers where nothing is perceived: 1/m in a task with m alternatives."""
    noise: Literal["constant", "setting"] = "constant"
    """Whether answers are equally noisy everywhere, or the noise depends on the setting and is learned."""
    threshold: Literal["best", "all"] = "all"
    """What the margin of ties separates in groups: see `askwise.model.Threshold`."""

    @classmethod
    def read(cls, compares: bool, **given: Any) -> "People":
        """People as they are described; what is None or left out has the default."""
        people = cls(**{name: value for name, value in given.items() if value is not None})
        if given.get("aim") == "level":
            advice = (
                "Leave out the aim, and write level=0.95: the study then looks for all that work so often."
            )
            raise Refused(
                "aim", "be 'person' or 'population', whose setting is looked for", "'level'", advice
            )
        for name, kind in (("participants", Participants), ("aim", Aim)):
            _check_choice(name, getattr(people, name), get_args(kind))
        _check_choice("noise", people.noise, ("constant", "setting"))
        _check_choice("threshold", people.threshold, ("best", "all"))
        if people.lapses != "learned":
            _check_share("lapses", people.lapses, 0.5, "Write 0.02 for 2%, or 'learned'.")
        _check_share("guess", people.guess, _MOST_GUESSES, "Write 0.25 for four alternatives.")
        if people.guess and compares:
            advice = "Leave it out: who compares without looking takes any option."
            raise Refused("guess", "be 0 where settings are compared", people.guess, advice)
        if people.aim == "population" and people.participants != "population":
            advice = "Add participants='population', or leave out the aim."
            raise Refused("aim", "be 'person' unless people have something in common", "'population'", advice)
        return people

    def to_dict(self) -> dict[str, Any]:
        """What is not the default, so that plans are written as they were before there was a choice."""
        each = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in each.items() if value != getattr(SHARED, name)}

    @property
    def differ(self) -> bool:
        """Whether each has a taste of their own."""
        return self.participants != "shared"


SHARED = People()
NAMES = tuple(field.name for field in fields(People))


def _check_choice(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        listed = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        raise Refused(name, f"be {listed}", repr(value), "Choose one of them.")


def _check_share(name: str, value: object, most: float, advice: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0 <= value <= most):  # type: ignore[operator]
        raise Refused(name, f"be a share of answers from 0 to {most}", repr(value), advice)
