"""The kinds of questions, and what a study does where nothing else is said."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["KINDS", "Feedback", "Kind"]

Feedback = Literal["binary", "duel", "batch"]


@dataclass(frozen=True)
class Kind:
    """Defaults of one kind of question."""

    question: str
    rule: str
    size: int
    """Settings that one question is about."""
    initial: int
    """Questions asked before the first model.

    Ten duels cost nothing after forty (regret on Branin and Hartmann 3 as with five) and keep more users
    off a lower hill: 0.2 to 0.5 instead of 0.7 on the two hills of the demo, 40 users each.
    """


KINDS: dict[str, Kind] = {
    "binary": Kind("Did it work?", rule="ucb_phi", size=1, initial=3),
    "duel": Kind("Which is better?", rule="muc", size=2, initial=10),
    "batch": Kind("Which are better than others?", rule="muc_joint", size=3, initial=2),
}
