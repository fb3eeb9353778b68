"""Which setting to use, how much one more answer is expected to improve it, and when to stop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.model import Belief, Kernels
from askwise.numerics import cholesky, one_thread
from askwise.rules import latent_level
from askwise.search import Search
from askwise.study import expectations
from askwise.study.checks import Check
from askwise.study.expectations import Answering, source
from askwise.study.level_sets import LevelOutlook, level_hint
from askwise.study.plan import Plan

_DRAWS = 256  # draws of f, of which each has its best
UNTRUSTED = "Until that is explained, probabilities are not to be trusted."
"""What follows from a check that is flagged."""
SURE = 0.9
"""Probability that few settings are noticeably better, from which on you may stop: docs/calibration.md."""
_FEWEST = 5  # answers per parameter, below which a learned kernel is mostly a guess


@dataclass(frozen=True)
class Best:
    """The recommended setting, and how certain it is."""

    params: dict[str, Any]
    mean: float
    """Posterior mean of f there; with duels alone, f is zero on average under the prior."""
    std: float
    """Posterior standard deviation of f there."""
    probability: float
    """That it succeeds (yes/no), or that it is preferred to the reference or else to a random setting.
    For yes/no studies with a reference: that it is more likely to succeed than the reference."""
    above_level: float | None = None
    """That it works at least as often as the level of the study; None in a study without one."""


@dataclass(frozen=True)
class Outlook:
    """What is left to gain, in units of the noise of one answer."""

    gain: float
    """Expected gain: by how much the next answer is expected to improve the recommended setting."""
    regret: float
    """Expected regret: by how much the best of 1,024 space-filling settings is expected to be better."""
    rate: float
    """Duels: how often the best of them would be preferred to the recommended one.  Yes/no: by how much
    more often it would succeed."""
    few: float
    """Probability that fewer than one setting in a hundred is noticeably better: would win two of three duels
    with the recommended one (yes/no: would succeed 10% more often)."""


@one_thread()
def best(belief: Belief, plan: Plan, search: Search, reference: Tensor | None = None) -> Best:
    """The setting most likely to be best."""
    point = plan.kind.champion(search, belief)
    mean, var = belief.moments(point)
    rival = None if reference is None else reference[None]
    chance = expectations.chance(plan.kind, belief, search, point, rival)
    above = None if plan.level is None else float(belief.probability_above(point, latent_level(plan.level)))
    return Best(plan.space.natural(point[0]), float(mean), float(var.sqrt()), float(chance), above)


@one_thread()
def outlook(
    belief: Belief,
    plan: Plan,
    kernel: Kernel | Kernels,
    search: Search,
    query: Float[Tensor, "m d"],
    answered: Answering,
) -> Outlook:
    """What is left to gain, by this query and in total; ``answered`` makes rows of its answers."""
    chances = plan.kind.chances(belief, query, source(plan.seed, "answers"), plan.people.threshold)
    drawn_from = source(plan.seed, "outlook")
    found = expectations.expectations(
        plan.kind, belief, kernel, search, query, chances, answered, source=drawn_from
    )
    return Outlook(float(found.gain), float(found.regret), float(found.rate), float(found.few))


@one_thread()
def confidence(belief: Belief, plan: Plan, best: Tensor, rivals: Float[Tensor, "k d"]) -> float:
    """Probability that none of the rivals is better than the best one [1, d]."""
    return float(expectations.confidence(belief, best, rivals, source(plan.seed, "best of them")))


def hint(plan: Plan, answers: int, look: Outlook | LevelOutlook | None, checks: Sequence[Check] = ()) -> str:
    """Whether to go on, in words, and why; with a check that is flagged, only what is wrong."""
    if flagged := [check.detail for check in checks if check.flagged]:
        return f"Look at the answers first: {_lowered(flagged[0])} {' '.join([*flagged[1:], UNTRUSTED])}"
    if look is None and not plan.kind.compares and answers >= plan.initial:
        return "Go on: before anything can be said there must be a yes and a no."
    if look is None:
        return "Go on: too little has been answered to say anything."
    rests_on_few = answers < _FEWEST * len(set(plan.space.owners))
    if isinstance(look, LevelOutlook):
        assert plan.level is not None
        return level_hint(look, plan.level, rests_on_few)
    more = f"The next answer is expected to bring {look.gain:.2g}."
    if look.few < SURE:
        many = f"with a probability of {1 - look.few:.0%} more than one setting in a hundred"
        return f"Go on: {many} {plan.kind.noticeably}. {more}"
    if look.rate >= plan.kind.noticeable:
        return f"Go on: hardly any setting {plan.kind.noticeably}, but {plan.kind.best(look.rate)}. {more}"
    left = f"with a probability of {look.few:.0%} fewer than one setting in a hundred {plan.kind.noticeably}"
    if rests_on_few:
        return f"Go on a little: {left}, but that rests on few answers."
    return " ".join(filter(None, [f"You may stop: {left}.", plan.kind.held, plan.kind.unknown]))


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


@one_thread()
def likely_bests(belief: Belief, plan: Plan, search: Search) -> Float[Tensor, "draws d"]:
    """Where draws of f have their best, of 1,024 space-filling settings and the recommended one."""
    rivals = expectations.rivals_of(search, plan.kind.champion(search, belief))
    mean, cov = belief.joint(rivals)  # paths of a person take a draw of everybody else's, too
    normals = torch.randn(len(mean), _DRAWS, generator=source(plan.seed, "likely bests"), dtype=mean.dtype)
    return rivals[(mean[:, None] + cholesky(cov)[0] @ normals).argmax(0)]
