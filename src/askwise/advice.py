"""What to do with what is believed: which setting to use, what another answer would bring, when to stop."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise import paths
from askwise.answers import Answer, data_of
from askwise.belief import Belief
from askwise.domain import Domain
from askwise.inference import infer
from askwise.normal import ndtr, success_probability
from askwise.plan import Plan
from askwise.search import Search
from askwise.seeds import generator
from askwise.threads import one_thread

__all__ = ["Best", "Outlook", "best", "champion", "hint", "outlook", "probability_of_best"]

_CROWD = 256  # settings spread over the space that the best one is compared with
_RIVALS, _DRAWS = 1024, 256  # settings among which draws of f have their best, and how many draws
_TRIALS = 4096
_CLOSE = (2 / 3, 0.1)  # how much better the true best may be for the recommended setting to do: duels, yes/no
_FEW = 5  # answers a parameter, below which a kernel that is learned is mostly a guess


@dataclass(frozen=True)
class Best:
    """The recommended setting, and how sure that is."""

    params: dict[str, Any]
    mean: float
    """Posterior mean of f there; with duels alone, f is zero on average over what one would expect."""
    std: float
    """Posterior standard deviation of f there."""
    probability: float
    """That it succeeds (yes/no), or that it is preferred to the reference or else to a random setting.

    For yes/no studies with a reference: that it is more likely to succeed than the reference.
    """


@dataclass(frozen=True)
class Outlook:
    """What is left to gain, in units of the noise of one answer."""

    gain: float
    """By how much the recommended setting is expected to get better by the next answer."""
    shortfall: float
    """By how much the best of 1,024 settings all over the space is expected to be better."""
    rate: float
    """Duels: how often the best of them would be preferred to the recommended one.  Yes/no: by how much
    more often it would succeed."""


@one_thread()
def best(belief: Belief, plan: Plan, domain: Domain | None, reference: Tensor | None = None) -> Best:
    """The setting most likely to be best."""
    search = _search(belief, plan, domain)
    point = champion(belief, plan, search)
    mean, var = belief.moments(point)
    if reference is not None:
        rival = reference[None]
        ahead, spread = belief.difference(point, rival)
        chance = ndtr(ahead / spread.clamp_min(1e-300).sqrt())
        if plan.feedback != "binary":
            chance = belief.success_probability(point, rival)
    elif plan.feedback == "binary":
        chance = success_probability(mean, var)
    else:
        crowd = search.spread(_CROWD)
        chance = belief.success_probability(point.expand_as(crowd), crowd).mean()
    return Best(plan.space.natural(point[0]), float(mean), float(var.sqrt()), float(chance))


def champion(belief: Belief, plan: Plan, search: Search) -> Float[Tensor, "1 d"]:
    """The point to recommend: of highest mean, or for yes/no answers of highest chance of a yes."""
    if plan.feedback == "binary":
        return search.likeliest(belief)
    return search.champion(belief)


@one_thread()
def outlook(
    belief: Belief, plan: Plan, kernel: Kernel, domain: Domain | None, question: Float[Tensor, "m d"]
) -> Outlook:
    """What is left to gain, by this question and altogether."""
    search = _search(belief, plan, domain)
    point = champion(belief, plan, search)
    source = generator("askwise study", plan.seed, "outlook")
    rivals = torch.cat([point, search.warm, search.spread(_RIVALS)], -2)
    drawn = paths.draw(belief, _DRAWS, source)(rivals)
    top, here, margin = drawn.amax(-1), drawn[:, 0], belief.data.margin
    rate = ndtr(top) - ndtr(here)
    if plan.feedback != "binary":  # a tie counts for both
        rate = (ndtr(top - here - margin) + ndtr(top - here + margin)) / 2
    gain = _gain(belief, plan, kernel, search, torch.cat([point, question]))
    return Outlook(gain, float((top - here).mean()), float(rate.mean()))


def _gain(belief: Belief, plan: Plan, kernel: Kernel, search: Search, points: Tensor) -> float:
    """Expected rise of the highest mean, now at the first point, by a question about the others."""
    point, question = points[:1], points[1:]
    now, expected = float(belief.mean(point)), 0.0
    for chance, answer in _possible_answers(belief, plan, question):
        data = belief.data + data_of([(question, answer)], question.shape[-1])
        later = infer(data.with_margin(belief.data.margin), kernel, warm=belief)
        found = search.champion(later)
        expected += chance * float(later.mean(torch.cat([found, point])).max())
    return max(0.0, expected - now)


def _possible_answers(belief: Belief, plan: Plan, question: Tensor) -> list[tuple[float, Answer]]:
    """What may be answered, and how likely it is: yes or no, which option is best, or "can't decide"."""
    if plan.feedback == "batch":
        return _possible_winners(belief, plan, question)
    alone = plan.feedback == "binary"
    mean, var = belief.moments(question) if alone else belief.difference(question[:1], question[1:])
    margin, spread = belief.data.margin, (1 + var).sqrt()
    first, second = (ndtr((side * mean - margin) / spread).item() for side in (1, -1))
    answers: list[Answer] = [{"yes": True}, {"yes": False}] if alone else [{"prefers": 0}, {"prefers": 1}]
    chances = [(first, answers[0]), (second, answers[1]), (1 - first - second, {"undecided": True})]
    return chances if margin > 0 else chances[:2]


def _possible_winners(belief: Belief, plan: Plan, question: Tensor) -> list[tuple[float, Answer]]:
    source = generator("askwise study", plan.seed, "answers")
    mean, cov = belief.joint(question)
    values, vectors = torch.linalg.eigh(cov)
    normal = torch.randn(_TRIALS, 2, len(mean), generator=source, dtype=mean.dtype)
    utility = mean + normal[:, 0] * values.clamp_min(0).sqrt() @ vectors.mT + normal[:, 1] * math.sqrt(0.5)
    tied = utility.amax(-1) - utility.amin(-1) < belief.data.margin
    wins = torch.bincount(utility.argmax(-1)[~tied], minlength=len(mean)) / _TRIALS
    chances: list[tuple[float, Answer]] = [(rate, {"ranking": [k]}) for k, rate in enumerate(wins.tolist())]
    chances.append((tied.double().mean().item(), {"undecided": True}))
    return [(rate, answer) for rate, answer in chances if rate > 0]


def hint(plan: Plan, answers: int, look: Outlook | None) -> str:
    """Whether to go on, in words, with what that rests on."""
    if look is None and plan.feedback == "binary" and answers >= plan.initial:
        return "Go on: before anything can be said there must be a yes and a no."
    if look is None:
        return "Go on: too little has been answered to say anything."
    if plan.feedback == "binary":
        left = f"the true best is expected to succeed {look.rate:.0%} more often than the recommended setting"
    else:
        left = f"the true best would win {look.rate:.0%} of duels with the recommended one (50% is no better)"
    if look.rate >= _CLOSE[plan.feedback == "binary"]:
        return f"Go on: {left}. The next answer is expected to bring {look.gain:.2g}."
    if answers < _FEW * len(set(plan.space.owners)):
        return f"Go on a little: {left}, but that rests on few answers."
    return f"You may stop: {left}."


def _search(belief: Belief, plan: Plan, domain: Domain | None) -> Search:
    return Search.around(belief, generator("askwise study", plan.seed, "best"), domain)


@one_thread()
def probability_of_best(belief: Belief, points: Float[Tensor, "k d"], seed: int) -> Float[Tensor, " k"]:
    """Probability of each of some settings to be the best of them, by draws of f."""
    source = generator("askwise study", seed, "best of them")
    drawn = paths.draw(belief, 4 * _DRAWS, source)(points)
    return torch.bincount(drawn.argmax(-1), minlength=len(points)) / len(drawn)
