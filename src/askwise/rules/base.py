"""The base class of rules, their registry and spelling, and what rules share."""

import ast
import pkgutil
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args, get_origin

import torch
from jaxtyping import Float
from torch import Tensor

from askwise import plugins
from askwise.errors import NotFound, Refused, WrongType
from askwise.model import Belief as Belief
from askwise.model import Formula, lane_groups, paths
from askwise.numerics import Mixed
from askwise.rules.asks import Asks as Asks
from askwise.search import Search as Search
from askwise.search import coincide

RULES: "dict[str, type[Rule]]" = {}
Points = Float[Tensor, "*lane m d"]
"""The query of each lane: m points of the unit cube."""
_MAX_REDRAWS = 5


@dataclass(frozen=True)
class Rule(ABC):
    """An acquisition rule; one with settings is a frozen dataclass, and its fields are the settings."""

    key: ClassVar[str]
    title: ClassVar[str]
    asks: ClassVar[frozenset[Asks]]
    source: ClassVar[str]
    cost: ClassVar[str]
    former: ClassVar[dict[str, object]] = {}
    """Settings that once had another default: records that do not name them mean that."""

    def __init_subclass__(cls, *, register: bool = True) -> None:
        """Register the rule under its key."""
        if not register:
            return
        if cls.key in RULES:
            raise WrongType("rule key", "be unique", f"{cls.key!r} twice", "Choose another key.")
        RULES[cls.key] = cls

    def __post_init__(self) -> None:
        """Check the settings that have a list of choices."""
        for field in fields(self):
            value, options = getattr(self, field.name), get_args(field.type)
            if get_origin(field.type) is Literal and value not in options:
                expected = f"be {' or '.join(map(repr, options))}"
                raise Refused(field.name, expected, repr(value), "Choose one of them.")

    @abstractmethod
    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The query of each lane: m points of the unit cube."""

    def at_level(self, level: float | None) -> "Rule":
        """The rule in a study with this level: its setting ``level``, if it has one, is that of the study.

        None: its default, so that the spelling does not say what the study says.
        """
        for field in fields(self):
            if field.name == "level":
                instead: dict[str, Any] = {"level": field.default if level is None else level}
                return replace(self, **instead)
        return self

    def __str__(self) -> str:
        """Its key, with the settings that differ from the default or once had another; for :func:`parse`."""
        values = [(field, getattr(self, field.name)) for field in fields(self)]
        named = [
            f"{field.name}={value!r}"
            for field, value in values
            if value != field.default or field.name in self.former
        ]
        return f"{self.key}({', '.join(named)})" if named else self.key


def registry() -> dict[str, type[Rule]]:
    """All rules by key: those of this package, of installed plug-ins, and of imported modules."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)], "askwise.rules."):
        import_module(module.name)
    plugins.load("rules")
    return RULES


def check_size(rule: Rule, m: int) -> None:
    """Raise if the rule does not choose queries of m points."""
    if isinstance(rule, str):
        raise Refused("rule", "be a rule", repr(rule), f"Write aw.rules.parse({rule!r}).")
    if m < 1 or Asks.of_size(m) not in rule.asks:
        kinds = ", ".join(sorted(rule.asks))
        advice = "One point is a yes/no question, two are a duel, more are a batch."
        raise Refused(f"rule {rule}", f"be used for what it asks ({kinds})", f"m = {m}", advice)


def parse(text: str, *, recorded: bool = False) -> Rule:
    """The rule that a text such as ``muc`` or ``ucb_phi(beta=2)`` spells.

    ``recorded``: the text is in a record, which may be older than today's defaults.

    >>> str(parse("ucb_phi(beta=2.0)"))
    'ucb_phi(beta=2.0)'
    """
    known = registry()
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
        expected = "be a name, or a name with settings such as 'ucb_phi(beta=2)'"
        raise Refused("rule", expected, repr(text), f"Choose one of {', '.join(sorted(known))}.") from None
    if key not in known:
        raise NotFound("rule", f"be one of {', '.join(sorted(known))}", repr(key), "Choose one of them.")
    defaults = {field.name: field.default for field in fields(known[key])}
    for name, value in settings.items():
        if name not in defaults:
            names = ", ".join(defaults) or "nothing"
            raise Refused(f"setting of {key}", f"be {names}", repr(name), "Leave it out or rename it.")
        if isinstance(defaults[name], float):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and abs(value) <= sys.float_info.max):
                raise Refused(f"{name} of {key}", "be a finite number", repr(value), "Give one.")
            settings[name] = float(value)
    return known[key](**(known[key].former | settings if recorded else settings))


def challenge(
    first: Float[Tensor, "*lane 1 d"],
    belief: Belief,
    search: Search,
    formula: Formula,
    *,
    log: bool = False,
    mixed: Mixed | None = None,
) -> Float[Tensor, "*lane 2 d"]:
    """``first`` and the point x of highest score, or (``log``) log score, of f(x) - f(first).

    ``mixed``: the score of several kernels, if it is not the formula at the moments of their mixture.
    """
    score = belief.predictive.against(first).score(formula, log=log, mixed=mixed)
    return torch.cat([first, search.argmax(score)], -2)


def sampled_maxima(
    belief: Belief, count: int, search: Search, avoid: Float[Tensor, "*lane 1 d"] | None = None
) -> Float[Tensor, "*lane count d"]:
    """Maxima of ``count`` draws of f, distinct from each other and from ``avoid``.

    A draw whose maximum is a duplicate (both in the same corner, say) is repeated a few times; if the belief
    is so certain that this does not help, the duplicate is kept.
    """
    found = _maxima(belief, count, search)
    for _ in range(_MAX_REDRAWS):
        duplicates = _is_duplicate(found, avoid)
        if not duplicates.any():
            break
        if search.lanes:
            lanes = duplicates.any(-1).nonzero()[:, 0]
            again = found.clone()
            again[lanes] = _maxima(belief.select(lanes), count, search.select(lanes))
        else:
            again = _maxima(belief, count, search)
        found = torch.where(duplicates[..., None], again, found)
    return found


def _maxima(belief: Belief, count: int, search: Search) -> Tensor:
    groups = lane_groups(belief.prior, search.warm.shape[-1])
    if len(groups) > 1:
        found = search.warm.new_empty(*search.lanes, count, search.warm.shape[-1])
        for lanes in groups:
            found[lanes] = _maxima(belief.select(lanes), count, search.select(lanes))
        return found
    path = paths.draw(belief, count, search.source)
    return search.argmax(path, draws=count)[..., 0, :].movedim(0, -2)


def _is_duplicate(found: Tensor, avoid: Tensor | None) -> Tensor:
    """Which points are duplicates of ``avoid`` or of an earlier point of their lane."""
    earlier = found if avoid is None else torch.cat([avoid.expand(*found.shape[:-2], 1, -1), found], -2)
    return coincide(found, earlier).tril(earlier.shape[-2] - found.shape[-2] - 1).any(-1)


def incumbent(belief: Belief, search: Search) -> Float[Tensor, "*lane 1 d"]:
    """The queried point of highest posterior mean, snapped to the domain (the context may have changed)."""
    points = search.snapped(belief.data.points)
    if points.shape[-2] == 0:
        advice = "Ask at random first, or use another rule."
        raise Refused("this rule", "have answers to start from", "none", advice)
    best = belief.mean(points).argmax(-1)[..., None, None]
    return points.gather(-2, best.expand(*best.shape[:-1], points.shape[-1]))
