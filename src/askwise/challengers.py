"""Challengers of a champion that are chosen together."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from askwise.belief import Belief
from askwise.search import Search
from askwise.uncertainty import epistemic_variance

__all__ = ["Pairs", "best_challengers"]

_CANDIDATES = 256  # points among which batches are first put together
_TRIES = 64  # batches put together, divided by their size
_ROUNDS = 3
_SMALL = 5  # batches up to this size are worth a search of the whole cube for each member


@dataclass(frozen=True)
class Pairs:
    """What is believed of the duels between all members of groups."""

    var: Float[Tensor, "*g m m"]
    """Variance of the difference of f."""
    doubt: Float[Tensor, "*g m m"]
    """Epistemic variance of the answer."""

    @classmethod
    def of(cls, belief: Belief, x: Float[Tensor, "*g m d"]) -> "Pairs":
        """The pairs of the points of each group."""
        mean, cov = belief.joint(x)
        alone, m = cov.diagonal(dim1=-2, dim2=-1), x.shape[-2]
        var = (alone[..., :, None] + alone[..., None, :] - cov - cov.mT).clamp_min(0)
        # the doubt, nearly all of the work, is the same both ways round, and nil of a point and itself
        one, other = torch.triu_indices(m, m, 1, device=x.device)
        apart = mean.index_select(-1, one) - mean.index_select(-1, other)
        doubt = epistemic_variance(apart, var.flatten(-2).index_select(-1, one * m + other))
        place = torch.zeros(m, m, dtype=torch.long, device=x.device)
        place[one, other] = place[other, one] = torch.arange(1, len(one) + 1, device=x.device)
        return cls(var, pad(doubt, (1, 0)).index_select(-1, place.flatten()).unflatten(-1, (m, m)))

    def among(self, members: Int[Tensor, "*h k"]) -> "Pairs":
        """The pairs of some members only, by index [.., *g, t, k]: t choices for each of these groups."""
        m, (*shape, t, k) = self.var.shape[-1], members.shape
        where = (members[..., :, None] * m + members[..., None, :]).flatten(-3)

        def taken(values: Tensor) -> Tensor:
            return values.flatten(-2).expand(*shape, m * m).gather(-1, where).unflatten(-1, (t, k, k))

        return Pairs(taken(self.var), taken(self.doubt))


def best_challengers(
    belief: Belief,
    champion: Float[Tensor, "*lane 1 d"],
    m: int,
    search: Search,
    total: Callable[[Pairs], Tensor],
) -> Float[Tensor, "*lane k d"]:
    """The m - 1 points that with the champion have the highest total.

    Batches are first put together from Sobol points inside and on the faces of the cube, by exchanging
    one member at a time for the best in its place; they are then improved in all members at once.
    """

    def score(x: Tensor) -> Tensor:
        group = torch.cat([champion.expand(*x.shape[:-2], 1, -1), x], -2)
        return total(Pairs.of(belief, group))

    if m == 2:  # points [*lane, k, d] are groups of one
        return search.argmax(lambda x: score(x.movedim(-2, 0)[..., None, :]).movedim(0, -1))
    found = search.argmax(score, q=m - 1, extra=_put_together(belief, champion, m, search, total))
    for member in range(m - 1 if m <= _SMALL else 0):
        found = _exchanged_anywhere(score, found, member, search)
    return _in_order(found)


def _exchanged_anywhere(
    score: Callable[[Tensor], Tensor], found: Float[Tensor, "*lane k d"], member: int, search: Search
) -> Float[Tensor, "*lane k d"]:
    """The batch with one member replaced by the best point in its place, then improved as a whole."""

    def in_its_place(x: Tensor) -> Tensor:
        points = x.movedim(-2, 0)[..., None, :]
        others = found.expand(len(points), *found.shape)
        group = torch.cat([others[..., :member, :], points, others[..., member + 1 :, :]], -2)
        return score(group).movedim(0, -1)

    best = search.argmax(in_its_place)
    replaced = torch.cat([found[..., :member, :], best, found[..., member + 1 :, :]], -2)
    improved = search.climbed(score, torch.stack([found, replaced]))
    better = score(improved[None])[0] > score(found[None])[0]
    return torch.where(better[..., None, None], improved, found)


def _in_order(found: Float[Tensor, "*lane k d"]) -> Float[Tensor, "*lane k d"]:
    """The points by their first coordinate, then by the second; no order is better, but one must be had."""
    for column in reversed(range(found.shape[-1])):
        order = (found[..., column] * 1e6).round().argsort(dim=-1, stable=True)
        found = found.gather(-2, order[..., None].expand_as(found))
    return found


def _put_together(
    belief: Belief, champion: Tensor, m: int, search: Search, total: Callable[[Pairs], Tensor]
) -> Float[Tensor, "tries *lane k d"]:
    """Batches of candidates that no exchange of one member improves, from different beginnings."""
    lanes, d = champion.shape[:-2], champion.shape[-1]
    # members like to be on the faces of the cube
    spread, faces = search.spread(_CANDIDATES), search.faces(_CANDIDATES)
    points = torch.cat([champion, spread, faces, search.corners()], -2)
    pairs = Pairs.of(belief, points)
    tries = max(1, _TRIES // m)
    every = torch.arange(points.shape[-2], device=points.device)
    # the first try starts with copies of the champion, the others with points of all over the cube
    number = torch.arange(tries * m, device=points.device).view(tries, m)
    chosen = (1 + number % _CANDIDATES).masked_fill((number < m) | (number % m == 0), 0)
    chosen = chosen.view(tries, *[1] * len(lanes), m).expand(tries, *lanes, m)
    for _ in range(_ROUNDS):
        before = chosen
        for place in range(1, m):
            chosen = _exchanged(pairs, chosen, place, every, total)
        if torch.equal(before, chosen):
            break
    members = chosen[..., 1:, None].expand(*chosen.shape[:-1], m - 1, d)
    return points.expand(tries, *points.shape).gather(-2, members)


def _exchanged(
    pairs: Pairs, chosen: Tensor, place: int, every: Tensor, total: Callable[[Pairs], Tensor]
) -> Tensor:
    """The batches with the best point in this place, given the others."""
    trial = chosen[..., None, :].repeat_interleave(len(every), -2)
    trial[..., place] = every
    best = total(pairs.among(trial)).argmax(-1, keepdim=True)
    return torch.cat([chosen[..., :place], best, chosen[..., place + 1 :]], -1)
