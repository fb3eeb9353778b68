r"""Answers as signed rows over the distinct points.

An answer observes one row of ``A f``, where f is taken at the distinct points and a row of A is ``e_x`` for a
yes/no answer or ``e_x - e_x'`` for a comparison.  With the latent response
:math:`r = (A f)_i + \varepsilon` the outcome is +1 if :math:`r > t`, -1 if :math:`r < -t`, and otherwise 0, a
tie: "can't decide".  Without ties the margin t is zero, and :math:`P(+1) = \Phi((A f)_i)`.

A ranking compares noisy utilities :math:`f(x_k) + \varepsilon_k` with
:math:`\varepsilon_k \sim \mathcal N(0, 1/2)`, so that a comparison of two has the noise of a duel.
If a member appears in several rows they share its noise: it becomes a point of its own, a noisy copy.

Somebody names the best of m only if it is ahead of all others by the margin; otherwise they can't decide.
So the best and the next differ by more than t, the order below is that of the noisy utilities, and "can't
decide" says that the top two, whichever they are, are within t.  The probabilities of all possible answers
sum to one.

The rows of an answer hold together.  A lapse replaces all of them: with probability l somebody answers
without looking, and takes any answer but "can't decide" with equal probability.  A yes/no task with m
alternatives has a known guess rate g, :math:`P(+1) = g + (1 - g - l) \Phi(f)`.

People may differ: with a share :math:`\rho` of the prior variance of one's own,
:math:`f_p = f_0 + g_p` has the covariance :math:`(1 - \rho + \rho\, \delta_{pq}) \, k(x, x')`.
Code outside this file does not distinguish kinds of rows.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from askwise.errors import Refused, WrongType

Threshold = Literal["best", "all"]
"""What the margin separates: the best of a group from the others, or every compared pair (before 0.2)."""
Lanes = Tensor | int | tuple[Tensor | int | slice, ...]
"""Which lanes to select, as an index of tensors; a tuple where there are several dimensions of lanes."""
_Groups = Tensor | list[list[list[float]]]
_NO_POINT = -1
_MEMBER_NOISE = 0.5  # variance per member, so that a comparison of two has variance one
_RATERS = 2**20  # most people; a power of two, so that no digit is lost
_DEFAULT_MARGIN = 0.5  # makes two in five duels of equals a tie


@dataclass(frozen=True, eq=False)
class Data:
    """Distinct points, the signed rows over them, and the observed outcome of each row.

    All tensors may have one leading dimension, the lane.  Lanes have the same number of rows; a lane with
    fewer distinct points is padded with copies that no row refers to.

    >>> one = Data.binary([[0.2], [0.7]], [1, 0]) + Data.duels([[[0.2], [0.9]]], [1])
    >>> one.n, one.points.shape[-2]
    (3, 3)
    """

    points: Float[Tensor, "*lane p d"]
    first: Int[Tensor, "*lane n"]
    second: Int[Tensor, "*lane n"]
    """Index of the subtracted point; -1 for none."""
    signs: Float[Tensor, "*lane n"]
    """+1 for a yes or a win of the first point, -1 for a no or a win of the second, 0 for a tie."""
    point_noise: Float[Tensor, "*lane p"] = None  # type: ignore[assignment]
    """Variance of the noise on a point, shared by all its rows; default 0."""
    row_noise: Float[Tensor, "*lane n"] = None  # type: ignore[assignment]
    """Variance of the noise of each row alone; default 1."""
    margin: Float[Tensor, "*lane"] = None  # type: ignore[assignment]
    """Half-width of the tie interval of the latent response; default 0, or 0.5 in lanes with ties."""
    has_margin: Bool[Tensor, "*lane n"] = None  # type: ignore[assignment]
    """Whether the outcome of the row exceeds the margin, or else only zero; default true."""
    answer: Int[Tensor, "*lane n"] = None  # type: ignore[assignment]
    """The answer that the row belongs to, counted from 0; by default each row is one."""
    chance: Float[Tensor, "*lane n"] = None  # type: ignore[assignment]
    """Probability of the whole answer if it is made without looking; default 1/2, for ties 0."""
    lapse: Float[Tensor, "*lane n"] = None  # type: ignore[assignment]
    """Probability that the answer is made without looking; default 0."""
    guess: Float[Tensor, "*lane"] = None  # type: ignore[assignment]
    """Probability of a yes where nothing is perceived; default 0."""
    rater: Int[Tensor, "*lane p"] = None  # type: ignore[assignment]
    """Who was asked about the point; default 0 for all."""
    share: Float[Tensor, "*lane"] = None  # type: ignore[assignment]
    """Share of the prior variance that is each rater's own; default 0: all have the same taste."""

    in_cube: ClassVar[bool] = True
    """Whether points must lie in the unit cube."""

    def __post_init__(self) -> None:
        """Fill in the defaults."""
        for name, default in _DEFAULTS.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, default(self))

    @classmethod
    def binary(cls, X: Tensor | list[list[float]], c: Tensor | list[int]) -> "Data":
        """Yes/no answers: ``X`` [n, d] or [lane, n, d] and ``c`` of {0, 1}."""
        points = _checked_points(X, "", dims=(2, 3), in_cube=cls.in_cube)
        outcomes = _checked_outcomes(c, points, points.shape[:-1])
        return cls._pairs(points[..., None, :], 2.0 * outcomes[..., None] - 1.0)

    @classmethod
    def duels(cls, X: _Groups, c: Tensor | list[int]) -> "Data":
        """Duels: ``X`` [n, 2, d] or [lane, n, 2, d]; ``c`` = 1 where the first won, 0.5 for a tie."""
        points = _checked_points(X, "2, ", dims=(3, 4), in_cube=cls.in_cube)
        if (m := points.shape[-2]) != 2:
            raise Refused("X", "hold two points a duel", m, "Use Data.batches for more than two.")
        outcomes = _checked_outcomes(c, points, points.shape[:-2], ties=True)
        return cls._pairs(points, 2.0 * outcomes[..., None] - 1.0)

    @classmethod
    def batches(cls, X: Tensor, c: Tensor) -> "Data":
        """All pairs of batches of m: ``X`` [n, m, d] or [lane, n, m, d], ``c`` [.., n, m(m-1)/2].

        Pairs i < j are ordered (0, 1), (0, 2), .., (1, 2), ..; ``c`` = 1 where i won.
        """
        points = _checked_points(X, "m, ", dims=(3, 4), in_cube=cls.in_cube)
        m = points.shape[-2]
        outcomes = _checked_outcomes(c, points, (*points.shape[:-2], m * (m - 1) // 2))
        return cls._pairs(points, 2.0 * outcomes - 1.0)

    @classmethod
    def rankings(cls, X: _Groups, best: Tensor | list[list[int]], *, threshold: Threshold = "best") -> "Data":
        """The k best of m, in order: ``X`` [n, m, d] or [lane, n, m, d] and ``best`` [.., n, k], best first.

        ``k = 1`` is the winner alone; ``k = m`` ranks all and is equivalent to ``k = m - 1``.

        >>> Data.rankings([[[0.1], [0.5], [0.9]]], [[1]]).n
        2
        """
        points = _checked_points(X, "m, ", dims=(3, 4), in_cube=cls.in_cube)
        m = points.shape[-2]
        ordered, k = _checked_ranking(best, points)
        points = points.gather(-2, ordered[..., None].expand_as(points))
        row = _arange(m - 1, points)
        winner, loser = row.clamp_max(k - 1), row + 1  # each beats the next; the k-th beats all others
        # with the second place named, it alone is compared with the best
        has_margin = torch.ones_like(row, dtype=torch.bool) if threshold == "all" or k == 1 else row == 0
        return cls._ordered(points, winner, loser, has_margin, ways=math.perm(m, k))

    @classmethod
    def _ordered(cls, points: Tensor, winner: Tensor, loser: Tensor, has_margin: Tensor, ways: int) -> "Data":
        """Rows in which members win against others, one answer of ``ways`` possible ones for each group.

        A member in several rows is a noisy copy; the noise of one in a single row is part of that row's.
        """
        *lanes, n, m, _ = points.shape
        rows = len(winner)
        shared = torch.cat([winner, loser]).bincount(minlength=m) > 1
        alone = _MEMBER_NOISE * (~shared).to(points.dtype)
        point_noise = (_MEMBER_NOISE - alone).repeat(n).expand(*lanes, -1)
        row_noise = (alone[winner] + alone[loser]).repeat(n).expand(*lanes, -1)
        made = cls._from_groups(
            points, winner, loser, points.new_ones(*lanes, n, rows), point_noise, row_noise
        )
        answer = _arange(n, points).repeat_interleave(rows).expand_as(made.answer)
        chance = torch.full_like(made.chance, 1 / ways)
        return replace(made, has_margin=has_margin.repeat(n).expand_as(answer), answer=answer, chance=chance)

    @classmethod
    def worst(cls, X: _Groups, worst: Tensor | list[int]) -> "Data":
        """The worst of m, named alone: ``X`` [n, m, d] or [lane, n, m, d] and its index ``worst`` [.., n].

        The rows are those of a winner with the opposite outcome: each of the others beats it, by any margin,
        since who can't decide can't decide about the best.

        >>> Data.worst([[[0.1], [0.5], [0.9]]], [1]).signs.tolist()
        [-1.0, -1.0]
        """
        try:
            named = cls.rankings(X, _checked_numbers("worst", worst)[..., None])
        except Refused as error:
            raise error.about("worst" if error.what == "best" else error.what) from None
        return replace(named, signs=-named.signs, has_margin=torch.zeros_like(named.has_margin))

    @classmethod
    def ties(
        cls,
        X: _Groups,
        margin: float | int | Tensor = _DEFAULT_MARGIN,
        *,
        threshold: Threshold = "best",
    ) -> "Data":
        """Undecided queries: ``X`` [n, m, d] or [lane, n, m, d].

        One point: neither yes nor no.  Two: neither won.  More: the two highest noisy utilities, whichever
        they are, differ by no more than the margin; with the threshold ``"all"``, no two differ by more.
        """
        points = _checked_points(X, "m, ", dims=(3, 4), in_cube=cls.in_cube)
        *lanes, n, m, _ = points.shape
        if m == 0:
            raise Refused("X", "hold at least one point a tie", "none", "Give the queried points.")
        signs, noise = points.new_zeros(*lanes, n, max(1, m * (m - 1) // 2)), []
        if m > 2:
            noise = [points.new_full((*lanes, n * m), _MEMBER_NOISE), signs.flatten(-2)]
        made = cls._pairs(points, signs, *noise).with_margin(margin)
        if threshold == "all":
            return made  # each pair an answer of its own: all hold
        answer = _arange(n, points).repeat_interleave(signs.shape[-1])
        return replace(made, answer=answer.expand_as(made.answer))

    @property
    def undecided(self) -> Bool[Tensor, "*lane n"]:
        """Rows of answers that are undecided about three points or more: all pairs of them."""
        tied = self.signs == 0
        counts = torch.zeros_like(self.signs).scatter_add(-1, self.answer, tied.to(self.signs))
        return tied & (counts.gather(-1, self.answer) > 1)

    @classmethod
    def _pairs(cls, points: Tensor, signs: Tensor, *noise: Tensor) -> "Data":
        """Rows for all pairs of each group, or for its only point."""
        m = points.shape[-2]
        i, j = torch.triu_indices(m, m, offset=1, device=points.device)
        if m == 1:
            i, j = (torch.tensor([index], device=points.device) for index in (0, _NO_POINT))
        return cls._from_groups(points, i, j, signs, *noise)

    @classmethod
    def _from_groups(cls, points: Tensor, i: Tensor, j: Tensor, signs: Tensor, *noise: Tensor) -> "Data":
        """The rows of members i and j of each group; ``points`` [.., n, m, d], ``signs`` [.., n, rows]."""
        *lanes, n, m, d = points.shape
        start = m * _arange(n, points)[:, None]
        first, second = (start + i).reshape(-1), torch.where(j < 0, j, start + j).reshape(-1)
        rows = first.expand(*lanes, -1), second.expand(*lanes, -1), signs.flatten(-2)
        return cls(points.reshape(*lanes, n * m, d), *rows, *noise)._deduplicated()

    def _deduplicated(self) -> "Data":
        """The same rows over distinct points; noisy copies, and points of different raters, stay separate."""
        index, points, point_noise, rater = _distinct_points(self.points, self.point_noise, self.rater)
        first = index.gather(-1, self.first)
        second = torch.where(self.second < 0, self.second, index.gather(-1, self.second.clamp_min(0)))
        return replace(self, points=points, first=first, second=second, point_noise=point_noise, rater=rater)

    def __add__(self, other: "Data") -> "Data":
        """These answers, then those of ``other``; of margins, guess rates and shares the larger."""
        return self.appended(other)._deduplicated()

    def appended(self, other: "Data") -> "Data":
        """As the sum, but equal points stay separate, and gradients flow through the points."""
        if self.points.shape[-1] != other.points.shape[-1] or self.lanes != other.lanes:
            lanes = f"{tuple(self.lanes)} and {tuple(other.lanes)} lanes"
            got = f"{lanes}, d = {self.points.shape[-1]} and {other.points.shape[-1]}"
            advice = "Build both for the same space and lanes."
            raise Refused("data to add", "have the same lanes and dimension", got, advice)
        shift, answers = self.points.shape[-2], int(self.answer.max()) + 1 if self.n else 0
        second = torch.where(other.second < 0, other.second, other.second + shift)
        shifted = replace(other, first=other.first + shift, second=second, answer=other.answer + answers)
        both = {name: (getattr(self, name), getattr(shifted, name)) for name in _NAMES}
        merged = {name: torch.cat(pair, -1) for name, pair in both.items() if name not in _OF_LANE}
        merged |= {name: torch.maximum(*both[name]) for name in _OF_LANE}
        return Data(points=torch.cat([self.points, other.points], -2), **merged)

    def in_lanes(self, lanes: torch.Size) -> "Data":
        """The same data in lanes that these broadcast to, counted in one dimension."""
        return Data(*(in_lanes(part, self.lanes, lanes) for part in self._parts()))

    def with_margin(self, margin: float | int | Tensor) -> "Data":
        """The same outcomes with another margin: a number, or one per lane."""
        value = _checked_numbers("margin", margin, self.signs.dtype).to(self.signs.device)
        if value.shape not in (torch.Size(), self.lanes):
            expected = f"be a number or one for each lane, {tuple(self.lanes)}"
            raise Refused("margin", expected, f"shape {tuple(value.shape)}", "Give one for all.")
        value = value.expand(self.lanes).clone()
        wrong = ~(value.isfinite() & (value >= 0)) | (self.has_ties & (value <= 0))
        if wrong.any():
            expected = "be finite and not negative, and above zero where there are ties"
            raise Refused("margin", expected, f"{value[wrong][0].item():g}", "Try 0.5.")
        return replace(self, margin=value)

    def with_lapses(self, lapse: float | Tensor, guess: float | Tensor = 0.0) -> "Data":
        """The same answers of people who lapse at this rate: one for all, for each lane, or each row.

        ``guess``: probability of a yes where nothing is perceived, for yes/no answers only.
        """
        rates = [
            torch.as_tensor(rate, dtype=self.signs.dtype, device=self.signs.device) for rate in (lapse, guess)
        ]
        for name, rate in zip(("lapse", "guess"), rates, strict=True):
            if (wrong := ~((rate >= 0) & (rate < 1))).any():
                got = f"{rate[wrong].flatten()[0].item():g}"
                raise Refused(name, "be a probability below 1", got, "Write 0.02 for 2%.")
        if (rates[0].max() + rates[1].max() >= 1) and rates[1].any():
            advice = "Lower one of them: nobody who always lapses or guesses says anything."
            raise Refused("lapse", "be below 1 - guess", f"{rates[0].max().item():g}", advice)
        if rates[1].any() and (self.second >= 0).any():
            raise Refused("guess", "be 0 for comparisons", guess, "Leave it out: a lapse is a guess there.")
        if self.lanes and rates[0].shape == self.lanes:
            rates[0] = rates[0][..., None]
        return replace(self, lapse=rates[0].expand_as(self.signs), guess=rates[1].expand(self.lanes))

    def with_raters(self) -> "Data":
        """The same rows, with raters in place of the last coordinate, see :func:`with_rater_column`."""
        rater = (self.points[..., -1] * _RATERS).round().long()
        return replace(self, points=self.points[..., :-1], rater=rater)

    def with_share(self, share: float | Tensor) -> "Data":
        """The same answers of people of whose prior variance this share is their own: one for each lane."""
        value = torch.as_tensor(share, dtype=self.signs.dtype, device=self.signs.device)
        if (wrong := ~((value >= 0) & (value < 1))).any():
            got = f"{value[wrong].flatten()[0].item():g}"
            raise Refused(
                "share", "be from 0 to below 1", got, "People without anything in common are separate."
            )
        return replace(self, share=value.expand(self.lanes))

    def together(self, answer: Tensor) -> "Data":
        """The same rows as parts of these answers, which are counted from 0; each row is a free choice."""
        counts = torch.zeros_like(self.signs).scatter_add(-1, answer, torch.ones_like(self.signs))
        return replace(self, answer=answer, chance=self.chance.pow(counts.gather(-1, answer)))

    @property
    def lanes(self) -> torch.Size:
        """Shape of the lanes: empty for a single study."""
        return self.signs.shape[:-1]

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.signs.shape[-1]

    @property
    def has_ties(self) -> Bool[Tensor, "*lane"]:
        """Whether any row of the lane is a tie."""
        return (self.signs == 0).any(-1)

    @property
    def plain(self) -> bool:
        """Whether every row has the plain probit likelihood: unit noise, none shared, no margin, no tie."""
        return self.plain_rows and not self.has_lapses

    @property
    def plain_rows(self) -> bool:
        """Whether it has where it is no lapse."""
        unusual = (self.row_noise != 1, self.margin != 0, self.point_noise != 0, self.has_ties)
        return not any(bool(part.any()) for part in unusual)

    @property
    def has_lapses(self) -> bool:
        """Whether any answer may have been made without looking."""
        return bool(self.lapse.any() or self.guess.any())

    @property
    def rater_correlation(self) -> Float[Tensor, "*lane p p"]:
        """Prior correlation of two people's utilities of the same setting, for every two points."""
        same = self.rater[..., :, None] == self.rater[..., None, :]
        return 1 - self.share[..., None, None] * (~same).to(self.signs)

    @property
    def row_rater(self) -> Int[Tensor, "*lane n"]:
        """Who gave the answer of each row."""
        return self.rater.gather(-1, self.first)

    def unsqueezed(self) -> "Data":
        """The data with a lane dimension, added if there is none."""
        return self if self.lanes else self.select(None)

    def select(self, lanes: Lanes | None) -> "Data":
        """Some of the lanes, or one without its lane dimension."""
        return Data(*(part[lanes] for part in self._parts()))

    def _parts(self) -> list[Tensor]:
        return [getattr(self, field.name) for field in fields(self)]

    def matvec(self, values: Float[Tensor, "*lane p k"]) -> Float[Tensor, "*lane n k"]:
        """``A @ values``: from points to rows."""
        if self._is_identity:
            return values
        taken = self._taken(values, self.first)
        if not (self.second >= 0).any():
            return taken
        subtracted = self._taken(values, self.second.clamp_min(0))
        return taken - torch.where(self.second[..., None] >= 0, subtracted, 0.0)

    def rmatvec(self, values: Float[Tensor, "*lane n k"]) -> Float[Tensor, "*lane p k"]:
        """``A^T @ values``: from rows to points."""
        if self._is_identity:
            return values.clone()
        shape = *values.shape[:-2], self.points.shape[-2], values.shape[-1]
        collected = self._added(values.new_zeros(shape), self.first, values)
        if not (self.second >= 0).any():
            return collected
        subtracted = torch.where(self.second[..., None] >= 0, -values, 0.0)
        return self._added(collected, self.second.clamp_min(0), subtracted)

    def row_covariance(self, cov: Float[Tensor, "*lane p p"]) -> Float[Tensor, "*lane n n"]:
        """``A @ cov @ A^T``: from the covariance of the points to that of the rows."""
        rows = self.matvec(self.matvec(cov).mT)
        return (rows + rows.mT).mul_(0.5)

    @functools.cached_property
    def _is_identity(self) -> bool:
        """Whether A is the identity: yes/no answers about distinct points."""
        if self.n != self.points.shape[-2] or bool((self.second >= 0).any()):
            return False
        return bool((self.first == _arange(self.n, self.signs)).all())

    def _taken(self, values: Tensor, index: Tensor) -> Tensor:
        """The points of these indices; for one lane a third of the time."""
        if index.shape[:-1].numel() == 1:
            return values.index_select(-2, index.flatten())
        return values.gather(-2, index[..., None].expand(*index.shape, values.shape[-1]))

    def _added(self, total: Tensor, index: Tensor, values: Tensor) -> Tensor:
        """The total after values are added to the points of these indices."""
        if index.shape[:-1].numel() == 1:
            return total.index_add(-2, index.flatten(), values)
        return total.scatter_add(-2, index[..., None].expand_as(values), values)


_DEFAULTS: dict[str, Callable[[Data], Tensor]] = {
    "point_noise": lambda data: torch.zeros_like(data.points[..., 0]),
    "row_noise": lambda data: torch.ones_like(data.signs),
    "margin": lambda data: _DEFAULT_MARGIN * data.has_ties.to(data.signs.dtype),
    "has_margin": lambda data: torch.ones_like(data.signs, dtype=torch.bool),
    "answer": lambda data: _arange(data.n, data.signs).expand_as(data.signs),
    "chance": lambda data: 0.5 * (data.signs != 0).to(data.signs),
    "lapse": lambda data: torch.zeros_like(data.signs),
    "guess": lambda data: data.signs.new_zeros(data.lanes),
    "rater": lambda data: torch.zeros_like(data.points[..., 0], dtype=torch.long),
    "share": lambda data: data.signs.new_zeros(data.lanes),
}
_NAMES = [field.name for field in fields(Data) if field.name != "points"]
_OF_LANE = ("margin", "guess", "share")


def with_rater_column(
    points: Float[Tensor, "*b m d"], rater: int | Int[Tensor, " q"]
) -> Float[Tensor, "*b m e"]:
    """Points with one more coordinate that says who was asked, so that points of two people differ.

    ``rater``: one for all, or one for each query.
    """
    column = torch.as_tensor(rater, device=points.device).to(points.dtype) / _RATERS
    return torch.cat([points, column[..., None, None].expand_as(points[..., :1])], -1)


def in_lanes(values: Tensor, given: torch.Size, lanes: torch.Size) -> Tensor:
    """Values of the ``given`` lanes, in lanes that these broadcast to, counted in one dimension."""
    rest = values.shape[len(given) :]
    return values.expand(*lanes, *rest).reshape(lanes.numel(), *rest)


def _arange(count: int, like: Tensor) -> Tensor:
    return torch.arange(count, device=like.device)


def _checked_numbers(what: str, given: object, dtype: torch.dtype | None = None) -> Tensor:
    """What was given as a tensor; refuses what has no numbers, or not the same number of them everywhere."""
    try:
        if isinstance(given, Tensor) and given.is_complex():
            raise TypeError
        return torch.as_tensor(given, dtype=dtype).detach()
    except (TypeError, ValueError, RuntimeError, OverflowError):
        advice = "Give nested lists of equal lengths, an array or a tensor."
        raise WrongType(what, "be real numbers", repr(given), advice) from None


class Extended(Data):
    """Rows of points that may lie outside the unit cube: settings out of a range that is narrower now."""

    in_cube = False


def _checked_points(X: object, members: str, dims: tuple[int, int], in_cube: bool) -> Tensor:
    """Points as float64, in the unit cube if ``in_cube``."""
    points = _checked_numbers("X", X, torch.float64)
    if points.ndim not in dims:
        expected = f"have shape [n, {members}d] or [lane, n, {members}d]"
        raise Refused("X", expected, tuple(points.shape), "Add or drop a dimension.")
    if points.shape[-1] == 0:
        raise Refused("X", "have at least one dimension", "d = 0", "Add a parameter.")
    if (outside := ~((points >= 0) & (points <= 1) if in_cube else points.isfinite())).any():
        got = f"{points[outside][0].item():g}"
        raise Refused("X", "lie in the unit cube", got, "Scale each parameter to [0, 1] first.")
    return points


def _checked_outcomes(c: object, points: Tensor, answers: tuple[int, ...], *, ties: bool = False) -> Tensor:
    """Outcomes as 0.0 or 1.0, one per answer; with ``ties`` also 0.5."""
    outcomes = _checked_numbers("c", c, torch.float64).to(points.device)
    if outcomes.shape != torch.Size(answers):
        expected = f"have one outcome for each answer, shape {tuple(answers)}"
        raise Refused("c", expected, tuple(outcomes.shape), "Give X and c for the same answers.")
    if (invalid := (outcomes != 0) & (outcomes != 1) & ~(ties & (outcomes == 0.5))).any():
        expected, got = "be 0, 1 or 0.5" if ties else "be 0 or 1", f"{outcomes[invalid][0].item():g}"
        advice = "Use 1 for a win of the first point, 0 for a loss, 0.5 for a tie."
        advice = advice if ties else "Use 1 for a yes or a win of the first point, 0 otherwise."
        raise Refused("c", expected, got, advice)
    return outcomes


def _checked_ranking(best: object, points: Tensor) -> tuple[Int[Tensor, "*b m"], int]:
    """The members of each group, ranked ones first, and how many are ranked, at most m - 1."""
    places = _checked_numbers("best", best).to(points.device)
    groups, m = points.shape[:-2], points.shape[-2]
    if m < 2:
        raise Refused("X", "hold two points or more a ranking", m, "Use Data.binary for one.")
    if places.shape[:-1] != groups or not 1 <= places.shape[-1] <= m:
        expected = f"name 1 to {m} members of each group, shape {(*groups, f'1..{m}')}"
        raise Refused("best", expected, tuple(places.shape), "Give X and best for the same answers.")
    if places.is_floating_point() or places.is_complex() or places.dtype == torch.bool:
        raise WrongType("best", "be whole numbers", places.dtype, "Give the members' indices.")
    if (wrong := (places < 0) | (places >= m)).any():
        raise Refused("best", f"be indices from 0 to {m - 1}", places[wrong][0].item(), "Count from zero.")
    named = torch.zeros(*groups, m, dtype=torch.long, device=points.device)
    named = named.scatter_add(-1, places.long(), torch.ones_like(places, dtype=torch.long))
    if (named > 1).any():
        group = places[(named > 1).any(-1)][0].tolist()
        raise Refused("best", "name each member at most once", group, "Leave out repetitions.")
    others = named.argsort(dim=-1, stable=True)[..., : m - places.shape[-1]]
    return torch.cat([places.long(), others], -1), min(places.shape[-1], m - 1)


def _distinct_points(
    points: Float[Tensor, "*lane k d"],
    point_noise: Float[Tensor, "*lane k"],
    rater: Int[Tensor, "*lane k"],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The index of each point among the distinct ones, the distinct points, their noise and raters."""
    count = points.shape[-2]
    ids = torch.zeros(points.shape[:-1], dtype=torch.long, device=points.device)
    if points.numel() == 0:
        return ids, points, point_noise, rater
    if point_noise.any():  # numbered, so that a noisy copy equals no other point
        ids = _dense_rank(torch.where(point_noise > 0, 1 + _arange(count, points), 0))
    if rater.any():
        ids = _dense_rank(ids * count + _dense_rank(rater))
    for column in points.unbind(-1):
        ids = _dense_rank(ids * count + _dense_rank(column))
    total = int(ids.max()) + 1
    # lanes with fewer distinct points are padded with their first point
    kept = points[..., :1, :].repeat_interleave(total, -2)
    kept = kept.scatter(-2, ids[..., None].expand_as(points), points)
    noise = point_noise.new_zeros(kept.shape[:-1]).scatter(-1, ids, point_noise)
    return ids, kept, noise, rater.new_zeros(noise.shape).scatter(-1, ids, rater)


def _dense_rank(values: Float[Tensor, "*lane k"] | Int[Tensor, "*lane k"]) -> Int[Tensor, "*lane k"]:
    """Rank of each value among the distinct values of its lane."""
    ordered, order = values.sort(-1)
    step = torch.zeros_like(order)
    step[..., 1:] = (ordered[..., 1:] != ordered[..., :-1]).long()
    return torch.zeros_like(order).scatter(-1, order, step.cumsum(-1))
