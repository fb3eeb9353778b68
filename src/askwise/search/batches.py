"""Challengers of a champion, chosen jointly."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from askwise.model import Belief
from askwise.search.search import Search

_CANDIDATES = 256  # points among which the exchange algorithm chooses
_TRIES = 64  # initial batches of the exchange algorithm, divided by their size
_ROUNDS = 3
_SMALL = 5  # batches up to this size are worth a global search for each member


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

    An exchange algorithm builds batches from points inside and on the faces of the cube; an ascent in all
    members improves them.
    """

    def score(x: Tensor) -> Tensor:
        return total(Pairs.of(belief, torch.cat([champion.expand(*x.shape[:-2], 1, -1), x], -2)))

    if m == 2:  # points [*lane, k, d] are groups of one
        return search.argmax(lambda x: score(x.movedim(-2, 0)[..., None, :]).movedim(0, -1))
    found = search.argmax(score, q=m - 1, extra=_exchange(belief, champion, m, search, total))
    for member in range(m - 1 if m <= _SMALL else 0):
        found = _with_better_member(score, found, member, search)
    return _sorted(found)


def _with_better_member(
    score: Callable[[Tensor], Tensor], found: Float[Tensor, "*lane k d"], member: int, search: Search
) -> Float[Tensor, "*lane k d"]:
    """The batch after a global search for one member and a local search for all."""

    def score_of_member(x: Tensor) -> Tensor:
        points = x.movedim(-2, 0)[..., None, :]
        others = found.expand(len(points), *found.shape)
        group = torch.cat([others[..., :member, :], points, others[..., member + 1 :, :]], -2)
        return score(group).movedim(0, -1)

    best = search.argmax(score_of_member)
    replaced = torch.cat([found[..., :member, :], best, found[..., member + 1 :, :]], -2)
    improved = search.local_maximum(score, torch.stack([found, replaced]))
    better = score(improved[None])[0] > score(found[None])[0]
    return torch.where(better[..., None, None], improved, found)


def _sorted(found: Float[Tensor, "*lane k d"]) -> Float[Tensor, "*lane k d"]:
    """The points in lexicographic order, which makes the result unique."""
    for column in reversed(range(found.shape[-1])):
        order = (found[..., column] * 1e6).round().argsort(dim=-1, stable=True)
        found = found.gather(-2, order[..., None].expand_as(found))
    return found


def _exchange(
    belief: Belief, champion: Float[Tensor, "*lane 1 d"], m: int, search: Search, total: Total
) -> Float[Tensor, "tries *lane k d"]:
    """Batches of candidates that no exchange of one member improves, from several initial batches."""
    lanes, d = champion.shape[:-2], champion.shape[-1]
    # the best members are often on the faces of the cube
    inside, faces = search.space_filling(_CANDIDATES), search.faces(_CANDIDATES)
    points = torch.cat([champion, inside, faces, search.corners()], -2)
    pairs = Pairs.of(belief, points)
    tries = max(1, _TRIES // m)
    every = torch.arange(points.shape[-2], device=points.device)
    # the first batch starts as copies of the champion, the others as space-filling points
    number = torch.arange(tries * m, device=points.device).view(tries, m)
    chosen = (1 + number % _CANDIDATES).masked_fill((number < m) | (number % m == 0), 0)
    chosen = chosen.view(tries, *[1] * len(lanes), m).expand(tries, *lanes, m)
    for _ in range(_ROUNDS):
        before = chosen
        for member in range(1, m):
            trial = chosen[..., None, :].repeat_interleave(len(every), -2)
            trial[..., member] = every
            best = total(pairs.among(trial)).argmax(-1, keepdim=True)
            chosen = torch.cat([chosen[..., :member], best, chosen[..., member + 1 :]], -1)
        if torch.equal(before, chosen):
            break
    members = chosen[..., 1:, None].expand(*chosen.shape[:-1], m - 1, d)
    return points.expand(tries, *points.shape).gather(-2, members)
