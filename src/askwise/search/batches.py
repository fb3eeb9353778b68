"""Challengers of a champion, chosen jointly."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from askwise.model import Belief, GroupScore
from askwise.numerics import log_epistemic_variance, mixed_log_variance
from askwise.search.ascent import finite_scores, score_scale
from askwise.search.search import Search

_CANDIDATES = 256  # points inside the cube, and as many on its faces
_LEAST_KEPT, _KEPT_PER_MEMBER = 128, 24  # among which the exchange algorithm chooses
_TRIES = 24  # initial batches of the exchange algorithm, divided by their size
_ROUNDS = 3
_SMALL = 9  # batches up to this size are worth replacing each member
_REPLACEMENTS = 24  # candidates for each member


@dataclass(frozen=True)
class Pairs:
    """Uncertainty about the duels between all members of groups."""

    var: Float[Tensor, "*g m m"]  # of the difference of f
    epistemic: Float[Tensor, "*g m m"]  # part of the variance of the outcome

    @classmethod
    def of(cls, belief: Belief, x: Float[Tensor, "*g m d"]) -> "Pairs":
        """The pairs of the points of each group."""
        return cls(*belief.duels(x))

    def among(self, members: Int[Tensor, "*h k"]) -> "Pairs":
        """The pairs of some members only, by index [.., *g, t, k]: t choices for each group."""
        m, (*shape, t, k) = self.var.shape[-1], members.shape
        flat = (members[..., :, None] * m + members[..., None, :]).flatten(-3)

        def taken(values: Tensor) -> Tensor:
            return values.flatten(-2).expand(*shape, m * m).gather(-1, flat).unflatten(-1, (t, k, k))

        return Pairs(taken(self.var), taken(self.epistemic))


Total = Callable[[Pairs], Tensor]


def best_challengers(
    belief: Belief, champion: Float[Tensor, "*lane 1 d"], m: int, search: Search, total: Total
) -> Float[Tensor, "*lane k d"]:
    """The m - 1 points that together with the champion have the highest ``total``.

    An exchange algorithm builds batches from candidates inside and on the faces of the cube; small ones are
    joined by the best with one member replaced.  An ascent in all members improves them.
    """
    score = GroupScore(belief, champion, lambda var, epistemic: total(Pairs(var, epistemic)))
    if m == 2:  # points [*lane, k, d] are groups of one
        return search.argmax(lambda x: score(x.movedim(-2, 0)[..., None, :]).movedim(0, -1))
    points = torch.cat([champion, _candidates(belief, champion, m, search)], -2)
    pairs = Pairs.of(belief, points)
    chosen, scale = _exchange(pairs, champion.shape[:-2], m, total)
    if m <= _SMALL:
        chosen = torch.cat([chosen, _with_other_members(pairs, chosen, total)])
    return _sorted(search.local_maximum(score, _points(points, chosen[..., 1:]), scale))


def _candidates(
    belief: Belief, champion: Float[Tensor, "*lane 1 d"], m: int, search: Search
) -> Float[Tensor, "*lane c d"]:
    """Points inside and on the faces of the cube: a few that fill it, and the champion's worst opponents."""
    # the best members are often on the faces of the cube
    parts = [search.space_filling(_CANDIDATES), search.faces(_CANDIDATES), search.corners()]
    kept = max(_LEAST_KEPT, _KEPT_PER_MEMBER * m)
    points = torch.cat(parts, -2)
    if kept >= points.shape[-2]:
        return points
    doubt = belief.predictive.against(champion).score(log_epistemic_variance, mixed=mixed_log_variance)(
        points
    )
    first = torch.arange(kept // 4, device=points.device)
    filling = torch.cat([first, _CANDIDATES + first])
    best = doubt.index_fill(-1, filling, -torch.inf).topk(kept - len(filling), -1).indices
    chosen = torch.cat([filling.expand(*best.shape[:-1], -1), best], -1)
    return points.gather(-2, chosen[..., None].expand(*chosen.shape, points.shape[-1]))


def _with_other_members(
    pairs: Pairs, batches: Int[Tensor, "tries *lane m"], total: Total
) -> Int[Tensor, "s *lane m"]:
    """The best batch with one member replaced, the best few for each member."""
    best = total(pairs.among(batches[..., None, :]))[..., 0].argmax(0)
    found = batches.gather(0, best[None, ..., None].expand(1, *batches.shape[1:]))
    every, k = torch.arange(pairs.var.shape[-1], device=found.device), found.shape[-1] - 1
    trial = found[..., None, :].expand(k, *found.shape[1:-1], len(every), k + 1).clone()
    for member in range(k):
        trial[member, ..., member + 1] = every
    best = total(pairs.among(trial)).topk(min(_REPLACEMENTS, len(every)), -1).indices
    return trial.gather(-2, best[..., None].expand(*best.shape, k + 1)).movedim(-2, 0).flatten(0, 1)


def _points(points: Float[Tensor, "*lane c d"], members: Int[Tensor, "s *lane k"]) -> Tensor:
    """The points with these indices."""
    index = members[..., None].expand(*members.shape, points.shape[-1])
    return points.expand(len(members), *points.shape).gather(-2, index)


def _sorted(found: Float[Tensor, "*lane k d"]) -> Float[Tensor, "*lane k d"]:
    """The points in lexicographic order, which makes the result unique."""
    for column in reversed(range(found.shape[-1])):
        order = (found[..., column] * 1e6).round().argsort(dim=-1, stable=True)
        found = found.gather(-2, order[..., None].expand_as(found))
    return found


def _exchange(
    pairs: Pairs, lanes: torch.Size, m: int, total: Total
) -> tuple[Int[Tensor, "tries *lane m"], Float[Tensor, "*lane 1"]]:
    """Batches that no exchange of one member improves, from several initial ones; and the scale of scores.

    The first candidate is the champion, a member of all.
    """
    tries, count = max(1, _TRIES // m), pairs.var.shape[-1]
    every = torch.arange(count, device=pairs.var.device)
    # the first batch starts as copies of the champion, the others as space-filling points
    number = torch.arange(tries * m, device=pairs.var.device).view(tries, m)
    chosen = (1 + number % (count - 1)).masked_fill((number < m) | (number % m == 0), 0)
    chosen = chosen.view(tries, *[1] * len(lanes), m).expand(tries, *lanes, m)
    initial = total(pairs.among(chosen[..., None, :]))[..., 0]
    for _ in range(_ROUNDS):
        before = chosen
        for member in range(1, m):
            trial = chosen[..., None, :].repeat_interleave(count, -2)
            trial[..., member] = every
            values = total(pairs.among(trial))
            best = values.argmax(-1, keepdim=True)
            chosen = torch.cat([chosen[..., :member], best, chosen[..., member + 1 :]], -1)
        if torch.equal(before, chosen):
            break
    scores = torch.cat([initial, values.amax(-1)]).movedim(0, -1)
    return chosen, score_scale(finite_scores(scores))
