"""Challengers of a champion that are chosen together."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.search import Search

__all__ = ["Pairs", "best_challengers"]

_GREEDY = 192  # candidates among which a first batch is put together


@dataclass(frozen=True)
class Pairs:
    """Mean and variance of the differences of f between all members of groups."""

    mean: Float[Tensor, "*g m m"]
    var: Float[Tensor, "*g m m"]

    @classmethod
    def of(cls, belief: Belief, x: Float[Tensor, "*g m d"]) -> "Pairs":
        """Those of the points of each group."""
        mean, cov = belief.joint(x)
        alone = cov.diagonal(dim1=-2, dim2=-1)
        var = alone[..., :, None] + alone[..., None, :] - cov - cov.mT
        return cls(mean[..., :, None] - mean[..., None, :], var.clamp_min(0))

    @property
    def indices(self) -> tuple[Tensor, Tensor]:
        """The pairs i < j."""
        m = self.mean.shape[-1]
        i, j = torch.triu_indices(m, m, offset=1, device=self.mean.device)
        return i, j

    def among(self, members: Tensor) -> "Pairs":
        """The pairs of some members, given by index [*g, k] with a group's own choice."""
        m, k = self.mean.shape[-1], members.shape[-1]
        rows = members[..., :, None].expand(*members.shape, m)

        def taken(values: Tensor) -> Tensor:
            values = values.expand(*members.shape[:-1], m, m).gather(-2, rows)
            return values.gather(-1, members[..., None, :].expand(*members.shape[:-1], k, k))

        return Pairs(taken(self.mean), taken(self.var))


def best_challengers(
    belief: Belief,
    champion: Float[Tensor, "*lane 1 d"],
    m: int,
    search: Search,
    total: Callable[[Pairs], Tensor],
) -> Float[Tensor, "*lane k d"]:
    """The m - 1 points that with the champion have the highest total, as :math:`(x_2, .., x_m)`.

    A first batch is put together one member at a time from Sobol points; it and batches of Sobol
    points are then improved in all members at once.
    """

    def score(x: Tensor) -> Tensor:
        group = torch.cat([champion.expand(*x.shape[:-2], 1, -1), x], -2)
        return total(Pairs.of(belief, group))

    first = _put_together(belief, champion, m, search, total)
    if m == 2:
        return search.argmax(lambda x: score(x.movedim(-2, 0)[..., None, :]).movedim(0, -1))
    return search.argmax(score, q=m - 1, extra=first[None])


def _put_together(
    belief: Belief, champion: Tensor, m: int, search: Search, total: Callable[[Pairs], Tensor]
) -> Tensor:
    """Challengers chosen one after the other, each the best beside those before it."""
    lanes = champion.shape[:-2]
    points = torch.cat([champion, search.spread(_GREEDY).expand(*lanes, -1, -1)], -2)
    with torch.no_grad():
        pairs = Pairs.of(belief, points)
        chosen = torch.zeros(*lanes, 1, dtype=torch.long, device=points.device)
        every = torch.arange(points.shape[-2], device=points.device)
        for _ in range(m - 1):
            beside = chosen[..., None, :].expand(*lanes, len(every), -1)
            trial = torch.cat([beside, every[:, None].expand(*lanes, -1, 1)], -1)
            beyond = Pairs(pairs.mean[..., None, :, :], pairs.var[..., None, :, :])
            value = total(beyond.among(trial))
            chosen = torch.cat([chosen, value.argmax(-1, keepdim=True)], -1)
    members = chosen[..., 1:, None].expand(*lanes, m - 1, points.shape[-1])
    return points.gather(-2, members)
