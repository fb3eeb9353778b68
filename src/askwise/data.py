"""Answers as signed rows: what was asked, of which points, and what came back.

An answer is a probit look at a row of ``A f``, where f is taken at the distinct points and a row
of A is ``e_x`` for a yes/no answer or ``e_x - e_x'`` for a duel.  Nothing above this file asks
which of the two a row is.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["Data"]

_NOBODY = -1


@dataclass(frozen=True, eq=False)
class Data:
    """Distinct points, the signed rows over them, and the outcome of each row.

    All tensors may carry one leading dimension, the lane.  Lanes have the same number of answers;
    one with fewer distinct points than another is filled up with copies that no row mentions.

    >>> one = Data.binary([[0.2], [0.7]], [1, 0]) + Data.duels([[[0.2], [0.9]]], [1])
    >>> one.n, one.points.shape[-2]
    (3, 3)
    """

    points: Float[Tensor, "*lane p d"]
    first: Int[Tensor, "*lane n"]
    second: Int[Tensor, "*lane n"]
    """Index of the point that is subtracted; -1 for none."""
    signs: Float[Tensor, "*lane n"]
    """+1 for a yes or a win of the first point, -1 otherwise."""

    @classmethod
    def binary(cls, X: Tensor | list[list[float]], c: Tensor | list[int]) -> "Data":
        """Yes/no answers: ``X`` [n, d] or [lane, n, d] and ``c`` of {0, 1}."""
        points, outcomes = _checked(X, c, members="", dims=(2, 3))
        first = _counter(points.shape[-2], points).expand(outcomes.shape)
        return cls._distinct(points, first, torch.full_like(first, _NOBODY), outcomes)

    @classmethod
    def duels(cls, X: Tensor | list[list[list[float]]], c: Tensor | list[int]) -> "Data":
        """Duels: ``X`` [n, 2, d] or [lane, n, 2, d]; ``c`` = 1 where the first of the two won."""
        points, outcomes = _checked(X, c, members="2, ", dims=(3, 4))
        if points.shape[-2] != 2:
            raise ValueError(
                f"X must hold two points a duel; got {points.shape[-2]}. Use Data.batches for more than two."
            )
        return cls._pairs(points, outcomes[..., None])

    @classmethod
    def batches(cls, X: Tensor, c: Tensor) -> "Data":
        """All pairs of batches of m: ``X`` [n, m, d] or [lane, n, m, d], ``c`` [.., n, m(m-1)/2].

        Pairs i < j come in the order (0, 1), (0, 2), .., (1, 2), ..; ``c`` = 1 where i won.
        """
        points, outcomes = _checked(X, c, members="m, ", dims=(3, 4), pairs=True)
        return cls._pairs(points, outcomes)

    @classmethod
    def _pairs(cls, points: Tensor, outcomes: Tensor) -> "Data":
        """Rows for all pairs of each group; ``points`` [.., n, m, d], ``outcomes`` [.., n, pairs]."""
        *lanes, n, m, d = points.shape
        i, j = torch.triu_indices(m, m, offset=1, device=points.device)
        start = m * _counter(n, points)[:, None]
        first, second = ((start + k).reshape(-1).expand(*lanes, -1) for k in (i, j))
        return cls._distinct(points.reshape(*lanes, n * m, d), first, second, outcomes.flatten(-2))

    @classmethod
    def _distinct(cls, points: Tensor, first: Tensor, second: Tensor, outcomes: Tensor) -> "Data":
        """Keep each distinct point once."""
        where, kept = _distinct_points(points)
        second = torch.where(second < 0, second, where.gather(-1, second.clamp_min(0)))
        return cls(kept, where.gather(-1, first), second, 2.0 * outcomes - 1.0)

    def __add__(self, other: "Data") -> "Data":
        """These answers, then those of ``other``."""
        if self.points.shape[-1] != other.points.shape[-1] or self.lanes != other.lanes:
            raise ValueError(
                "data to add must have the same lanes and dimension; got "
                f"{tuple(self.lanes)} and {tuple(other.lanes)} lanes, d = {self.points.shape[-1]} "
                f"and {other.points.shape[-1]}. Build both for the same space and lanes."
            )
        shift = self.points.shape[-2]
        shifted = torch.where(other.second < 0, other.second, other.second + shift)
        return type(self)._distinct(
            torch.cat([self.points, other.points], -2),
            torch.cat([self.first, other.first + shift], -1),
            torch.cat([self.second, shifted], -1),
            (torch.cat([self.signs, other.signs], -1) + 1) / 2,
        )

    @property
    def lanes(self) -> torch.Size:
        """Shape of the lanes: empty for a single study."""
        return self.signs.shape[:-1]

    @property
    def n(self) -> int:
        """Number of answers."""
        return self.signs.shape[-1]

    def unsqueezed(self) -> "Data":
        """The same data with a lane dimension, which is added where there was none."""
        if self.lanes:
            return self
        return type(self)(self.points[None], self.first[None], self.second[None], self.signs[None])

    def select(self, lanes: Tensor | int) -> "Data":
        """Some of the lanes, or one without its lane dimension."""
        return Data(self.points[lanes], self.first[lanes], self.second[lanes], self.signs[lanes])

    def rows(self, values: Float[Tensor, "*lane p k"]) -> Float[Tensor, "*lane n k"]:
        """``A @ values``: the signed combination of the points' rows that each answer looks at."""
        lanes, k = values.shape[:-2], values.shape[-1]
        index = self.first[..., None].expand(*lanes, self.n, k)
        taken = values.gather(-2, index)
        if not (self.second >= 0).any():
            return taken
        other = self.second[..., None].expand(*lanes, self.n, k)
        subtracted = values.gather(-2, other.clamp_min(0))
        return taken - torch.where(other >= 0, subtracted, 0.0)

    def spread(self, values: Float[Tensor, "*lane n k"]) -> Float[Tensor, "*lane p k"]:
        """``A^T @ values``: what the answers say, collected at the points."""
        lanes, k = values.shape[:-2], values.shape[-1]
        index = self.first[..., None].expand(*lanes, self.n, k)
        other = self.second[..., None].expand(*lanes, self.n, k)
        collected = values.new_zeros(*lanes, self.points.shape[-2], k)
        collected = collected.scatter_add(-2, index, values)
        return collected.scatter_add(-2, other.clamp_min(0), torch.where(other >= 0, -values, 0.0))


def _counter(count: int, like: Tensor) -> Tensor:
    return torch.arange(count, device=like.device)


def _checked(
    X: object, c: object, members: str, dims: tuple[int, int], pairs: bool = False
) -> tuple[Tensor, Tensor]:
    """Points as float64 and outcomes as 0.0 or 1.0, or an error that says what is wrong."""
    points = torch.as_tensor(X, dtype=torch.float64).detach()
    outcomes = torch.as_tensor(c, dtype=torch.float64, device=points.device).detach()
    if points.ndim not in dims:
        raise ValueError(
            f"X must have shape [n, {members}d] or [lane, n, {members}d]; got {tuple(points.shape)}. "
            "Add or drop a dimension."
        )
    answers: tuple[int, ...] = points.shape[:-1] if dims == (2, 3) else points.shape[:-2]
    if pairs:
        answers = (*answers, points.shape[-2] * (points.shape[-2] - 1) // 2)
    if outcomes.shape != torch.Size(answers):
        raise ValueError(
            f"c must have one outcome for each answer, shape {tuple(answers)}; "
            f"got {tuple(outcomes.shape)}. Give X and c for the same answers."
        )
    if points.shape[-1] == 0:
        raise ValueError("X must have at least one dimension; got d = 0. Add a parameter.")
    outside = ~((points >= 0) & (points <= 1))
    if outside.any():
        raise ValueError(
            f"X must lie in the unit cube; got {points[outside][0].item():g}. "
            "Scale each parameter to [0, 1] first."
        )
    strange = (outcomes != 0) & (outcomes != 1)
    if strange.any():
        raise ValueError(
            f"c must be 0 or 1; got {outcomes[strange][0].item():g}. "
            "Use 1 for a yes or a win of the first point, 0 otherwise."
        )
    return points, outcomes


def _distinct_points(points: Float[Tensor, "*lane k d"]) -> tuple[Tensor, Tensor]:
    """For each point the index of its value among the distinct ones, and those."""
    count = points.shape[-2]
    if points.numel() == 0:
        return torch.zeros(points.shape[:-1], dtype=torch.long, device=points.device), points
    ids = torch.zeros(points.shape[:-1], dtype=torch.long, device=points.device)
    for column in points.unbind(-1):
        ids = _dense_rank(ids * count + _dense_rank(column))
    total = int(ids.max()) + 1
    # a place that no point takes (another lane has more) keeps its start, the lane's first point
    kept = points[..., :1, :].repeat_interleave(total, -2)
    return ids, kept.scatter(-2, ids[..., None].expand_as(points), points)


def _dense_rank(values: Float[Tensor, "*lane k"] | Int[Tensor, "*lane k"]) -> Int[Tensor, "*lane k"]:
    """Rank of each value among the distinct values of its lane."""
    ordered, order = values.sort(-1)
    step = torch.zeros_like(order)
    step[..., 1:] = (ordered[..., 1:] != ordered[..., :-1]).long()
    return torch.zeros_like(order).scatter(-1, order, step.cumsum(-1))
