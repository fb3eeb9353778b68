r"""Answers as signed rows: what was asked, of which points, and what came back.

An answer is a noisy look at a row of ``A f``, where f is taken at the distinct points and a row of A
is ``e_x`` for a yes/no answer or ``e_x - e_x'`` for a comparison.  With the reaction
:math:`r = (A f)_i + \varepsilon` it is +1 if :math:`r > t`, -1 if :math:`r < -t`, and otherwise 0, a
tie: "can't decide".  Without ties the margin t is zero, and :math:`P(+1) = \Phi((A f)_i)`.

A ranking compares noisy utilities :math:`f(x_k) + \varepsilon_k` with
:math:`\varepsilon_k \sim \mathcal N(0, 1/2)`, so that a comparison of two has the noise of a duel.
The noise of a member that several rows compare is common to them: such a member is a point of its
own, a noisy copy.  Nothing above this file asks which kind a row is.
"""

from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["Data"]

_NOBODY = -1
_SHARE = 0.5  # of the noise of a comparison: each of the two members has one
_MARGIN = 0.5  # of ties of which nothing more is known: so come out two duels of equals in five


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
    """+1 for a yes or a win of the first point, -1 for a no or a win of the second, 0 for a tie."""
    noise: Float[Tensor, "*lane p"] = None  # type: ignore[assignment]
    """Variance of a noise on the point itself, common to all its rows; by default none."""
    slack: Float[Tensor, "*lane n"] = None  # type: ignore[assignment]
    """Variance of the noise that a row has for itself; by default one."""
    margin: Float[Tensor, "*lane"] = None  # type: ignore[assignment]
    """How far from zero a reaction must be to be told; by default zero, or 0.5 where there are ties."""

    def __post_init__(self) -> None:
        """Fill in what was left out."""
        if self.noise is None:
            object.__setattr__(self, "noise", torch.zeros_like(self.points[..., 0]))
        if self.slack is None:
            object.__setattr__(self, "slack", torch.ones_like(self.signs))
        if self.margin is None:
            object.__setattr__(self, "margin", _MARGIN * self.has_ties.to(self.signs.dtype))

    @classmethod
    def binary(cls, X: Tensor | list[list[float]], c: Tensor | list[int]) -> "Data":
        """Yes/no answers: ``X`` [n, d] or [lane, n, d] and ``c`` of {0, 1}."""
        points = _checked_points(X, "", dims=(2, 3))
        outcomes = _checked_outcomes(c, points, points.shape[:-1])
        first = _counter(points.shape[-2], points).expand(outcomes.shape)
        return cls(points, first, torch.full_like(first, _NOBODY), 2.0 * outcomes - 1.0)._merged()

    @classmethod
    def duels(cls, X: Tensor | list[list[list[float]]], c: Tensor | list[int]) -> "Data":
        """Duels: ``X`` [n, 2, d] or [lane, n, 2, d]; ``c`` = 1 where the first of the two won."""
        points = _checked_points(X, "2, ", dims=(3, 4))
        if points.shape[-2] != 2:
            raise ValueError(
                f"X must hold two points a duel; got {points.shape[-2]}. Use Data.batches for more than two."
            )
        outcomes = _checked_outcomes(c, points, points.shape[:-2])
        return cls._pairs(points, 2.0 * outcomes[..., None] - 1.0)._merged()

    @classmethod
    def batches(cls, X: Tensor, c: Tensor) -> "Data":
        """All pairs of batches of m: ``X`` [n, m, d] or [lane, n, m, d], ``c`` [.., n, m(m-1)/2].

        Pairs i < j come in the order (0, 1), (0, 2), .., (1, 2), ..; ``c`` = 1 where i won.
        """
        points = _checked_points(X, "m, ", dims=(3, 4))
        m = points.shape[-2]
        outcomes = _checked_outcomes(c, points, (*points.shape[:-2], m * (m - 1) // 2))
        return cls._pairs(points, 2.0 * outcomes - 1.0)._merged()

    @classmethod
    def rankings(cls, X: Tensor | list[list[list[float]]], best: Tensor | list[list[int]]) -> "Data":
        """The k best of m, in order: ``X`` [n, m, d] or [lane, n, m, d] and ``best`` [.., n, k], best first.

        ``k = 1`` names the winner; ``k = m`` ranks all, and says the same as ``k = m - 1``.

        >>> Data.rankings([[[0.1], [0.5], [0.9]]], [[1]]).n
        2
        """
        points = _checked_points(X, "m, ", dims=(3, 4))
        *lanes, n, m, d = points.shape
        ordered, k = _checked_order(best, points)
        points = points.gather(-2, ordered[..., None].expand_as(points)).reshape(*lanes, n * m, d)
        row = _counter(m - 1, points)
        winner, loser = row.clamp_max(k - 1), row + 1  # each beats the next, the last of the best all others
        shared = torch.cat([winner, loser]).bincount(minlength=m) > 1
        alone = _SHARE * (~shared).to(points.dtype)
        noise = (_SHARE - alone).repeat(n).expand(*lanes, -1)
        slack = (alone[winner] + alone[loser]).repeat(n).expand(*lanes, -1)
        start = m * _counter(n, points)[:, None]
        first, second = ((start + place).reshape(-1).expand(*lanes, -1) for place in (winner, loser))
        return cls(points, first, second, torch.ones_like(slack), noise, slack)._merged()

    @classmethod
    def ties(cls, X: Tensor | list[list[list[float]]], margin: float | int | Tensor = _MARGIN) -> "Data":
        """Questions that could not be decided: ``X`` [n, m, d] or [lane, n, m, d].

        One point: neither yes nor no.  Two: neither won.  More: no two of the noisy utilities
        differ by more than the margin.
        """
        points = _checked_points(X, "m, ", dims=(3, 4))
        *lanes, n, m, _ = points.shape
        if m == 0:
            raise ValueError("X must hold at least one point a tie; got none. Give what was asked about.")
        if m == 1:
            first = _counter(n, points).expand(*lanes, n)
            nobody, signs = torch.full_like(first, _NOBODY), points.new_zeros(first.shape)
            undecided = cls(points.squeeze(-2), first, nobody, signs)
        else:
            undecided = cls._pairs(points, points.new_zeros(*lanes, n, m * (m - 1) // 2))
        if m > 2:
            noise = torch.full_like(undecided.noise, _SHARE)
            undecided = replace(undecided, noise=noise, slack=torch.zeros_like(undecided.slack))
        return undecided._merged().with_margin(margin)

    @classmethod
    def _pairs(cls, points: Tensor, signs: Tensor) -> "Data":
        """Rows for all pairs of each group; ``points`` [.., n, m, d], ``signs`` [.., n, pairs]."""
        *lanes, n, m, d = points.shape
        i, j = torch.triu_indices(m, m, offset=1, device=points.device)
        start = m * _counter(n, points)[:, None]
        first, second = ((start + k).reshape(-1).expand(*lanes, -1) for k in (i, j))
        return cls(points.reshape(*lanes, n * m, d), first, second, signs.flatten(-2))

    def _merged(self) -> "Data":
        """The same, with each distinct point once; a noisy copy is never another point."""
        where, points, noise = _distinct_points(self.points, self.noise)
        second = torch.where(self.second < 0, self.second, where.gather(-1, self.second.clamp_min(0)))
        return replace(self, points=points, first=where.gather(-1, self.first), second=second, noise=noise)

    def __add__(self, other: "Data") -> "Data":
        """These answers, then those of ``other``; the margin is the larger of the two."""
        if self.points.shape[-1] != other.points.shape[-1] or self.lanes != other.lanes:
            raise ValueError(
                "data to add must have the same lanes and dimension; got "
                f"{tuple(self.lanes)} and {tuple(other.lanes)} lanes, d = {self.points.shape[-1]} "
                f"and {other.points.shape[-1]}. Build both for the same space and lanes."
            )
        shift = self.points.shape[-2]
        shifted = torch.where(other.second < 0, other.second, other.second + shift)
        return type(self)(
            torch.cat([self.points, other.points], -2),
            torch.cat([self.first, other.first + shift], -1),
            torch.cat([self.second, shifted], -1),
            torch.cat([self.signs, other.signs], -1),
            torch.cat([self.noise, other.noise], -1),
            torch.cat([self.slack, other.slack], -1),
            self.margin.maximum(other.margin),
        )._merged()

    def with_margin(self, margin: float | int | Tensor) -> "Data":
        """The same answers, each told only where the reaction was further than ``margin`` from zero.

        A number, or one for each lane.
        """
        value = torch.as_tensor(margin, dtype=self.signs.dtype, device=self.signs.device).detach()
        if value.shape not in (torch.Size(), self.lanes):
            raise ValueError(
                f"margin must be a number or one for each lane, {tuple(self.lanes)}; "
                f"got shape {tuple(value.shape)}. Give one for all."
            )
        value = value.expand(self.lanes).clone()
        wrong = ~(value.isfinite() & (value >= 0)) | (self.has_ties & (value <= 0))
        if wrong.any():
            raise ValueError(
                "margin must be finite and not negative, and above zero where there are ties; "
                f"got {value[wrong][0].item():g}. Try 0.5."
            )
        return replace(self, margin=value)

    @property
    def lanes(self) -> torch.Size:
        """Shape of the lanes: empty for a single study."""
        return self.signs.shape[:-1]

    @property
    def n(self) -> int:
        """Number of answers."""
        return self.signs.shape[-1]

    @property
    def has_ties(self) -> Bool[Tensor, "*lane"]:
        """Whether any row of the lane is a tie."""
        return (self.signs == 0).any(-1)

    @property
    def plain(self) -> bool:
        """Whether every answer is a yes, a no or a win with a noise of its own, and no margin."""
        plain = (self.slack == 1).all() & (self.margin == 0).all() & (self.noise == 0).all()
        return bool(plain & ~self.has_ties.any())

    def unsqueezed(self) -> "Data":
        """The same data with a lane dimension, which is added where there was none."""
        return self if self.lanes else Data(*(part[None] for part in self._parts()))

    def select(self, lanes: Tensor | int) -> "Data":
        """Some of the lanes, or one without its lane dimension."""
        return Data(*(part[lanes] for part in self._parts()))

    def _parts(self) -> list[Tensor]:
        return [getattr(self, field.name) for field in fields(self)]

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


def _checked_points(X: object, members: str, dims: tuple[int, int]) -> Tensor:
    """Points as float64, or an error that says what is wrong."""
    points = torch.as_tensor(X, dtype=torch.float64).detach()
    if points.ndim not in dims:
        raise ValueError(
            f"X must have shape [n, {members}d] or [lane, n, {members}d]; got {tuple(points.shape)}. "
            "Add or drop a dimension."
        )
    if points.shape[-1] == 0:
        raise ValueError("X must have at least one dimension; got d = 0. Add a parameter.")
    outside = ~((points >= 0) & (points <= 1))
    if outside.any():
        raise ValueError(
            f"X must lie in the unit cube; got {points[outside][0].item():g}. "
            "Scale each parameter to [0, 1] first."
        )
    return points


def _checked_outcomes(c: object, points: Tensor, answers: tuple[int, ...]) -> Tensor:
    """Outcomes as 0.0 or 1.0, one for each of the answers."""
    outcomes = torch.as_tensor(c, dtype=torch.float64, device=points.device).detach()
    if outcomes.shape != torch.Size(answers):
        raise ValueError(
            f"c must have one outcome for each answer, shape {tuple(answers)}; "
            f"got {tuple(outcomes.shape)}. Give X and c for the same answers."
        )
    strange = (outcomes != 0) & (outcomes != 1)
    if strange.any():
        raise ValueError(
            f"c must be 0 or 1; got {outcomes[strange][0].item():g}. "
            "Use 1 for a yes or a win of the first point, 0 otherwise."
        )
    return outcomes


def _checked_order(best: object, points: Tensor) -> tuple[Int[Tensor, "*b m"], int]:
    """The members of each group, the best ones first, and how many of them are in order."""
    places = torch.as_tensor(best, device=points.device).detach()
    groups, m = points.shape[:-2], points.shape[-2]
    if m < 2:
        raise ValueError(f"X must hold two points or more a ranking; got {m}. Use Data.binary for one.")
    if places.shape[:-1] != groups or not 1 <= places.shape[-1] <= m:
        raise ValueError(
            f"best must name 1 to {m} members of each group, shape {(*groups, f'1..{m}')}; "
            f"got {tuple(places.shape)}. Give X and best for the same answers."
        )
    if places.is_floating_point() or places.is_complex() or places.dtype == torch.bool:
        raise TypeError(f"best must be whole numbers; got {places.dtype}. Give the members' indices.")
    if ((places < 0) | (places >= m)).any():
        wrong = places[(places < 0) | (places >= m)][0].item()
        raise ValueError(f"best must be indices from 0 to {m - 1}; got {wrong}. Count from zero.")
    named = torch.zeros(*groups, m, dtype=torch.long, device=points.device)
    named = named.scatter_add(-1, places.long(), torch.ones_like(places, dtype=torch.long))
    if (named > 1).any():
        group = places[(named > 1).any(-1)][0].tolist()
        raise ValueError(f"best must name each member at most once; got {group}. Leave out repetitions.")
    others = named.argsort(dim=-1, stable=True)[..., : m - places.shape[-1]]
    return torch.cat([places.long(), others], -1), min(places.shape[-1], m - 1)


def _distinct_points(
    points: Float[Tensor, "*lane k d"], noise: Float[Tensor, "*lane k"]
) -> tuple[Tensor, Tensor, Tensor]:
    """For each point the index of its value among the distinct ones, those, and their noise."""
    count = points.shape[-2]
    ids = torch.zeros(points.shape[:-1], dtype=torch.long, device=points.device)
    if points.numel() == 0:
        return ids, points, noise
    if noise.any():  # a noisy copy is numbered, so that it equals no other
        ids = _dense_rank(torch.where(noise > 0, 1 + _counter(count, points), 0))
    for column in points.unbind(-1):
        ids = _dense_rank(ids * count + _dense_rank(column))
    total = int(ids.max()) + 1
    # a place that no point takes (another lane has more) keeps its start, the lane's first point
    kept = points[..., :1, :].repeat_interleave(total, -2)
    kept = kept.scatter(-2, ids[..., None].expand_as(points), points)
    return ids, kept, noise.new_zeros(kept.shape[:-1]).scatter(-1, ids, noise)


def _dense_rank(values: Float[Tensor, "*lane k"] | Int[Tensor, "*lane k"]) -> Int[Tensor, "*lane k"]:
    """Rank of each value among the distinct values of its lane."""
    ordered, order = values.sort(-1)
    step = torch.zeros_like(order)
    step[..., 1:] = (ordered[..., 1:] != ordered[..., :-1]).long()
    return torch.zeros_like(order).scatter(-1, order, step.cumsum(-1))
