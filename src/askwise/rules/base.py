"""What a rule is, how it is named, and how its name is read.

A rule is a frozen dataclass in a file of its own; the file's existence registers it.
"""

import ast
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from askwise import paths
from askwise.belief import Belief
from askwise.features import lanes_alike
from askwise.search import Search
from askwise.view import Formula

__all__ = ["RULES", "Asks", "Rule", "challenge", "parse", "sampled_maxima", "top_of_data"]

RULES: "dict[str, type[Rule]]" = {}
_TWINS = 1e-6  # points closer than this in every coordinate are one and the same to a person
_REDRAWS = 5


class Asks(StrEnum):
    """The kinds of question."""

    BINARY = "binary"
    DUEL = "duel"
    BATCH = "batch"


@dataclass(frozen=True)
class Rule(ABC):
    """A way to choose the next question; its fields are its settings.

    ``str(rule)`` spells it with the settings that are not the default, and :func:`parse` reads that.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    asks: ClassVar[frozenset[Asks]]
    source: ClassVar[str]
    cost: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """Register the rule under its key."""
        if cls.key in RULES:
            raise TypeError(f"rule key must be unique; got {cls.key!r} twice. Choose another key.")
        RULES[cls.key] = cls

    @abstractmethod
    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The question for each lane: m points of the unit cube."""

    def __str__(self) -> str:
        """Key and settings, as on the command line and in result tables."""
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{self.key}({', '.join(changed)})" if changed else self.key


def parse(text: str) -> Rule:
    """The rule that a text such as ``muc`` or ``ucb_phi(beta=2)`` spells.

    >>> str(parse("ucb_phi(beta=2.0)"))
    'ucb_phi(beta=2.0)'
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        call = tree if isinstance(tree, ast.Call) else ast.Call(tree, [], [])
        if not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        key = call.func.id
        settings = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
        if len(settings) < len(call.keywords):
            raise ValueError
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ValueError(
            f"rule must be a name, or a name with settings such as 'ucb_phi(beta=2)'; got {text!r}. "
            f"Choose one of {', '.join(sorted(RULES))}."
        ) from None
    if key not in RULES:
        raise ValueError(f"rule must be one of {', '.join(sorted(RULES))}; got {key!r}. Choose one of them.")
    defaults = {field.name: field.default for field in fields(RULES[key])}
    for name, value in settings.items():
        if name not in defaults:
            known = ", ".join(defaults) or "nothing"
            raise ValueError(f"setting of {key} must be {known}; got {name!r}. Leave it out or rename it.")
        if isinstance(defaults[name], float):
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not abs(value) <= sys.float_info.max
            ):
                raise ValueError(f"{name} of {key} must be a finite number; got {value!r}. Give one.")
            settings[name] = float(value)
    return RULES[key](**settings)


def challenge(
    first: Float[Tensor, "*lane 1 d"], belief: Belief, search: Search, formula: Formula
) -> Float[Tensor, "*lane 2 d"]:
    """``first``, and the point for which the difference of f to it has the highest score."""
    return torch.cat([first, search.argmax(belief.view.against(first).score(formula))], -2)


def sampled_maxima(
    belief: Belief, count: int, search: Search, avoid: Float[Tensor, "*lane 1 d"] | None = None
) -> Float[Tensor, "*lane count d"]:
    """Maxima of so many draws of f, all different from each other and from ``avoid``.

    A draw whose maximum is another's (both in the same corner, say) is drawn again, a few times;
    if it stays so, the belief is that sure, and the twin is kept.
    """
    found = _maxima(belief, count, search)
    for _ in range(_REDRAWS):
        twins = _is_twin(found, avoid)
        if not twins.any():
            break
        if search.lanes:
            lanes = twins.any(-1).nonzero()[:, 0]
            again = found.clone()
            again[lanes] = _maxima(belief.select(lanes), count, search.select(lanes))
        else:
            again = _maxima(belief, count, search)
        found = torch.where(twins[..., None], again, found)
    return found


def _maxima(belief: Belief, count: int, search: Search) -> Tensor:
    groups = lanes_alike(belief.prior, search.warm.shape[-1])
    if len(groups) > 1:
        found = search.warm.new_empty(*search.lanes, count, search.warm.shape[-1])
        for lanes in groups:
            found[lanes] = _maxima(belief.select(lanes), count, search.select(lanes))
        return found
    path = paths.draw(belief, count, search.source)
    return search.argmax(path, draws=count)[..., 0, :].movedim(0, -2)


def _is_twin(found: Tensor, avoid: Tensor | None) -> Tensor:
    """Which points repeat an earlier one of their lane."""
    count = found.shape[-2]
    earlier = found if avoid is None else torch.cat([avoid.expand(*found.shape[:-2], 1, -1), found], -2)
    close = ((found[..., :, None, :] - earlier[..., None, :, :]).abs() < _TWINS).all(-1)
    before = torch.ones(count, earlier.shape[-2], dtype=torch.bool, device=found.device)
    return (close & before.tril(earlier.shape[-2] - count - 1)).any(-1)


def top_of_data(belief: Belief, search: Search) -> Float[Tensor, "*lane 1 d"]:
    """The point of highest posterior mean among those that were asked about.

    Where not every point is a setting now (the context may have changed), among the settings near them.
    """
    points = search.settings(belief.data.points)
    if points.shape[-2] == 0:
        raise ValueError(
            "this rule must have answers to start from; got none. Ask at random first, or use another rule."
        )
    best = belief.mean(points).argmax(-1)[..., None, None]
    return points.gather(-2, best.expand(*best.shape[:-1], points.shape[-1]))
