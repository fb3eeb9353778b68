"""How each rule looks in every figure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from matplotlib.colors import to_hex, to_rgb

from askwise.plots.style import BLUE, GREY, INK, ORANGE, RED
from askwise.rules import parse

__all__ = ["Look", "look", "looks"]

_GREEN, _PINK, _AZURE, _BROWN, _OLIVE, _PURPLE = (
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#8c510a",
    "#b5a300",
    "#6a3d9a",
)
_DASHED, _DOTTED, _BROKEN = (0, (5.0, 2.0)), (0, (1.0, 1.3)), (0, (6.0, 1.5, 1.5, 1.5))
Dash = str | tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class Look:
    """Colour, line and mark."""

    colour: str
    dash: Dash = "-"
    mark: str = "o"


_LOOKS = {
    "ucb_phi": Look(BLUE),
    "ucb_f": Look(RED, _DASHED, "s"),
    "thompson": Look(ORANGE, "-", "^"),
    "binary_ei": Look(_GREEN, _DASHED, "D"),
    "muc": Look(BLUE),
    "dueling_ucb": Look(RED, _DASHED, "s"),
    "bivariate_ei": Look(_GREEN, _DASHED, "D"),
    "duel_thompson": Look(ORANGE, "-", "^"),
    "dueling_thompson": Look(_PINK, "-", "v"),
    "kss": Look(_AZURE, _BROKEN, "P"),
    "eiig": Look(_BROWN, _BROKEN, "X"),
    "ei": Look(_OLIVE, _DASHED, "d"),
    "muc_joint": Look(_PURPLE, "-", "*"),
    "dueling_ucb_phi": Look(_PURPLE, _DASHED, "p"),
    "eubo": Look("#117733", "-", "<"),
    "hallucination_believer": Look("#882255", _BROKEN, ">"),
    "max_entropy_challenge": Look("#44aa99", _BROKEN, "h"),
    "random": Look(GREY, _DOTTED, "x"),
}
_PALEST = 0.75  # share of white in the first of several variants of a rule


def look(rule: str) -> Look:
    """How a rule looks, whatever its settings; one that is not known here is drawn in ink."""
    return _LOOKS.get(parse(rule).key, Look(INK))


def looks(arms: Mapping[str, str]) -> dict[str, Look]:
    """How each arm looks, from the rules by the arms' labels.

    Variants of a rule stand together, in the order of their weights if they have some, from pale to full.
    """
    found = {}
    for key in dict.fromkeys(parse(rule).key for rule in arms.values()):
        own = [label for label in arms if parse(arms[label]).key == key]
        own.sort(key=lambda label: getattr(parse(arms[label]), "beta", 0.0))
        for place, label in enumerate(own):
            white = _PALEST * (1 - place / (len(own) - 1)) if len(own) > 1 else 0.0
            found[label] = _paler(look(arms[label]), white)
    return found


def _paler(full: Look, white: float) -> Look:
    red, green, blue = (white + (1 - white) * part for part in to_rgb(full.colour))
    return replace(full, colour=to_hex((red, green, blue)))
