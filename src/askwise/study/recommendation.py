"""Which setting to use, how much one more answer is expected to improve it, and when to stop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.model import Belief, Data, Kernels, infer, paths
from askwise.numerics import cholesky, generator, ndtr, one_thread
from askwise.rules import latent_level
from askwise.search import Search
from askwise.space import Domain
from askwise.study.answers import Answer
from askwise.study.checks import Check
from askwise.study.level_sets import LevelOutlook, level_hint
from askwise.study.plan import Plan

Answering = Callable[[Tensor, Answer], Data]
"""Rows of an answer to a query [m, d]."""
_CROWD = 256  # settings spread over the space that the best one is compared with
_RIVALS, _DRAWS = 1024, 256  # settings among which draws of f have their best, and number of draws
UNTRUSTED = "Until that is explained, probabilities are not to be trusted."
"""What follows from a check that is flagged."""
UNKNOWN = "A narrow peak that no question came near would not be known."
"""What no number of answers rules out."""
_FEW = 5  # answers per parameter, below which a learned kernel is mostly a guess


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


@one_thread()
def best(belief: Belief, plan: Plan, domain: Domain | None, reference: Tensor | None = None) -> Best:
    """The setting most likely to be best."""
    search = _search(belief, plan, domain)
    point = plan.kind.champion(search, belief)
    mean, var = belief.moments(point)
    if plan.kind.compares:
        rivals = search.space_filling(_CROWD) if reference is None else reference[None]
        chance = belief.success_probability(point.expand_as(rivals), rivals).mean()
    elif reference is None:
        chance = belief.success_probability(point)
    else:
        chance = belief.probability_of_better(point, reference[None])
    above = None if plan.level is None else float(belief.probability_above(point, latent_level(plan.level)))
    return Best(plan.space.natural(point[0]), float(mean), float(var.sqrt()), float(chance), above)


@one_thread()
def outlook(
    belief: Belief,
    plan: Plan,
    kernel: Kernel | Kernels,
    domain: Domain | None,
    query: Float[Tensor, "m d"],
    answered: Answering,
) -> Outlook:
    """What is left to gain, by this query and in total; ``answered`` makes rows of its answers."""
    search = _search(belief, plan, domain)
    point = plan.kind.champion(search, belief)
    source = generator("askwise study", plan.seed, "outlook")
    rivals = torch.cat([point, search.warm, search.space_filling(_RIVALS)], -2)
    drawn = paths.draw_at(rivals, belief, _DRAWS, source)
    top, here, margin = drawn.amax(-1), drawn[:, 0], belief.data.margin
    rate = ndtr(top) - ndtr(here)
    if plan.kind.compares:  # a tie counts for both
        rate = (ndtr(top - here - margin) + ndtr(top - here + margin)) / 2
    gain = _expected_gain(belief, plan, kernel, search, torch.cat([point, query]), answered)
    return Outlook(gain, float((top - here).mean()), float(rate.mean()))


def _expected_gain(
    belief: Belief, plan: Plan, kernel: Kernel | Kernels, search: Search, points: Tensor, answered: Answering
) -> float:
    """Expected rise of the highest mean, now at the first point, by a query about the others."""
    point, query = points[:1], points[1:]
    now, expected = float(belief.mean(point)), 0.0
    source = generator("askwise study", plan.seed, "answers")
    for chance, answer in plan.kind.chances(belief, query, source, plan.people.threshold):
        data = belief.data + answered(query, answer)
        later = infer(data.with_margin(belief.data.margin), kernel, warm=belief).like(belief)
        found = search.champion(later)
        expected += chance * float(later.mean(torch.cat([found, point])).max())
    return max(0.0, expected - now)


def hint(plan: Plan, answers: int, look: Outlook | LevelOutlook | None, checks: Sequence[Check] = ()) -> str:
    """Whether to go on, in words, and why; with a check that is flagged, only what is wrong."""
    if flagged := [check.detail for check in checks if check.flagged]:
        return f"Look at the answers first: {_lowered(flagged[0])} {' '.join([*flagged[1:], UNTRUSTED])}"
    if look is None and not plan.kind.compares and answers >= plan.initial:
        return "Go on: before anything can be said there must be a yes and a no."
    if look is None:
        return "Go on: too little has been answered to say anything."
    few = answers < _FEW * len(set(plan.space.owners))
    if isinstance(look, LevelOutlook):
        assert plan.level is not None
        return level_hint(look, plan.level, few)
    left = plan.kind.remaining(look.rate)
    if look.rate >= plan.kind.close:
        return f"Go on: {left}. The next answer is expected to bring {look.gain:.2g}."
    if few:
        return f"Go on a little: {left}, but that rests on few answers."
    return f"You may stop: {left}. {UNKNOWN}"


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _search(belief: Belief, plan: Plan, domain: Domain | None) -> Search:
    return Search.around(belief, generator("askwise study", plan.seed, "best"), domain)


@one_thread()
def probability_of_best(belief: Belief, points: Float[Tensor, "k d"], seed: int) -> Float[Tensor, " k"]:
    """Probability of each setting to be the best of these, by draws of f."""
    source = generator("askwise study", seed, "best of them")
    drawn = paths.draw_at(points, belief, 4 * _DRAWS, source)
    return torch.bincount(drawn.argmax(-1), minlength=len(points)).float() / len(drawn)


@one_thread()
def likely_bests(belief: Belief, plan: Plan, domain: Domain | None) -> Float[Tensor, "draws d"]:
    """Where draws of f have their best, of 1,024 space-filling settings and the recommended one."""
    search = _search(belief, plan, domain)
    rivals = torch.cat([plan.kind.champion(search, belief), search.warm, search.space_filling(_RIVALS)], -2)
    mean, cov = belief.joint(rivals)  # paths of a person take a draw of everybody else's, too
    source = generator("askwise study", plan.seed, "likely bests")
    normals = torch.randn(len(mean), _DRAWS, generator=source, dtype=mean.dtype)
    return rivals[(mean[:, None] + cholesky(cov)[0] @ normals).argmax(0)]
