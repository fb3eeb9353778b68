"""Rules on trial: see benchmarks/candidates.py."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.model import Belief, Mixture
from askwise.numerics import (
    Generators,
    cholesky,
    log_epistemic_variance,
    log_ndtr,
    mixed_log_variance,
    mixed_rate,
    ndtr,
    randn,
    standardised,
)
from askwise.rules import Asks, Rule, parse
from askwise.rules.base import Points, challenge
from askwise.search import Search

_SOBOL, _NEAR, _SPREAD = 128, 48, 0.1  # points of a set: space-filling, and close to the champion
_DRAWS, _CONTENDERS = 256, 24  # joint draws of f there, and points that are likeliest to be the best


@dataclass(frozen=True)
class Contender(Rule):
    r"""MUC among points that may win.

    .. math:: x_1 = \arg\max_x \mu_f(x), \qquad
        x_2 = \arg\max_x \; \log \mathbb V[\Phi(f(x) - f(x_1))] + w \log \mathbb E[\Phi(f(x) - f(x_1))]
    """

    weight: float = 1.0

    key, title = "contender", "MUC among points that may win"
    asks = frozenset({Asks.DUEL})
    source, cost = "on trial", "a search of the mean, and one of mean and variance"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The champion and its challenger."""
        return challenge(search.champion(belief), belief, search, self.score, log=True, mixed=self.mixed)

    def score(self, mean: Tensor, var: Tensor) -> Tensor:
        """Logarithm of the score, from mean and variance of the difference."""
        return log_epistemic_variance(mean, var) + self.weight * log_ndtr(standardised(mean, var))

    def mixed(self, mean: Tensor, var: Tensor, weights: Tensor) -> Tensor:
        """The same of several kernels."""
        rate = mixed_rate(mean, var, weights).clamp_min(1e-300)
        return mixed_log_variance(mean, var, weights) + self.weight * rate.log()


@dataclass(frozen=True)
class OfDraws(Rule):
    r"""The pair of likely maximisers whose duel is worth most, by joint draws of f on a set of points A.

    .. math:: \mathrm{gain} = \max_a \mathbb E[p\, f(a)] + \max_a \mathbb E[(1 - p)\, f(a)], \qquad
        p = \Phi(\sqrt r\, (f(x_1) - f(x_2)))

    is the knowledge gradient of the duel, asked r times; ``maximiser`` is the information of the answer about
    which point of A is the best.  Draws of several kernels are weighted by their probabilities.
    """

    value: Literal["gain", "maximiser"] = "gain"
    repeats: float = 1.0

    key, title = "of_draws", "Knowledge gradient or information about the maximiser"
    asks = frozenset({Asks.DUEL})
    source, cost = "on trial", "a search of the mean, and joint draws at 240 points"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The two points."""
        champion = search.champion(belief)
        near = randn(search.source, search.lanes, _NEAR, champion.shape[-1], like=champion)
        near = (champion + _SPREAD * near).clamp(0, 1)
        points = torch.cat([champion, search.space_filling(_SOBOL), search.warm, near], -2)
        f, weights = _drawn(belief, points, search.source)
        best = f.argmax(-1)
        share = torch.zeros_like(f[..., 0, :]).scatter_add(-1, best, weights)
        share[..., 0] += 2.0  # the champion is always among them
        likely = share.topk(_CONTENDERS, -1).indices
        of_likely = f.gather(-1, likely[..., None, :].expand(*f.shape[:-1], -1))
        i, j = torch.triu_indices(_CONTENDERS, _CONTENDERS, offset=1, device=f.device)
        rate = ndtr(self.repeats**0.5 * (of_likely[..., i] - of_likely[..., j]))
        yes, no = weights[..., None] * rate, weights[..., None] * (1 - rate)
        if self.value == "gain":
            worth = (yes.mT @ f).amax(-1) + (no.mT @ f).amax(-1)
        else:
            worth = _information(yes, weights, best, likely)
        top = worth.argmax(-1)
        pair = torch.stack([likely.gather(-1, side[top][..., None])[..., 0] for side in (i, j)], -1)
        return points.gather(-2, pair[..., None].expand(*pair.shape, points.shape[-1]))


def _drawn(
    belief: Belief, points: Tensor, source: Generators
) -> tuple[Float[Tensor, "*lane s p"], Float[Tensor, "*lane s"]]:
    """Draws of f at the points, with their probabilities."""
    if isinstance(belief, Mixture):
        mean, cov = belief.joint_by_kernel(points)
        share = belief.weights
    else:
        mean, cov = (part[None] for part in belief.joint(points))
        share = torch.ones_like(mean[..., 0])
    each = _DRAWS // len(mean)
    half = randn(source, belief.data.lanes, each // 2, points.shape[-2], like=mean)
    f = mean[..., None, :] + torch.cat([half, -half], -2) @ cholesky(cov)[0].mT
    weights = (share[..., None] / each).expand(*share.shape, each)
    return f.movedim(0, -3).flatten(-3, -2), weights.movedim(0, -2).flatten(-2)


def _information(yes: Tensor, weights: Tensor, best: Tensor, likely: Tensor) -> Float[Tensor, "*lane pairs"]:
    """Information of each duel's answer about which of the likely points, or none of them, is the best."""
    same = best[..., None] == likely[..., None, :]
    groups = torch.cat([same, ~same.any(-1, keepdim=True)], -1).to(yes)
    share = (weights[..., None] * groups).sum(-2)
    rate = (groups.mT @ yes) / share[..., None].clamp_min(1e-12)
    return _entropy(yes.sum(-2)) - (share[..., None] * _entropy(rate)).sum(-2)


def _entropy(rate: Tensor) -> Tensor:
    rate = rate.clamp(1e-12, 1 - 1e-12)
    return -(rate * rate.log() + (1 - rate) * (1 - rate).log())


@dataclass(frozen=True)
class InTurn(Rule):
    """Two rules in turn."""

    first: str = "dueling_ucb"
    second: str = "duel_thompson"

    key, title = "in_turn", "Two rules in turn"
    asks = frozenset({Asks.DUEL})
    source, cost = "on trial", "that of the two"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The query of the rule whose turn it is."""
        return parse(self.second if belief.data.n % 2 else self.first).ask(belief, m, search)
