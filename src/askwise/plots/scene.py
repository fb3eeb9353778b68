"""The data behind the figures of a study."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from askwise.errors import Refused
from askwise.model import Belief
from askwise.plots.scales import SIDES, Scale, scale, shown
from askwise.plots.style import GREY, INK, RED
from askwise.space import Domain, Setting, Space
from askwise.study import Study, Verdict

_LOOKS: dict[Verdict, dict[str, Any]] = {
    "good": {"marker": "o", "facecolor": INK, "edgecolor": "white"},
    "bad": {"marker": "o", "facecolor": "white", "edgecolor": INK},
    "undecided": {"marker": "D", "facecolor": GREY, "edgecolor": "white"},
}
_COARSE = 12  # values per parameter, to find the parameters that matter most
_FAR = 0.9  # the legend explains marks that are fainter than this
_FAINT = 0.15  # opacity of a mark that is far away


@dataclass(frozen=True)
class Asked:
    """A setting that was asked about, and what the answer says of it."""

    setting: Setting
    point: Float[Tensor, " d"]
    verdict: Verdict


@dataclass(frozen=True)
class Scene:
    """What is known of a study in one context."""

    study: Study
    context: dict[str, Any]
    belief: Belief
    domain: Domain | None
    best: Float[Tensor, " d"]
    """The recommended setting."""
    params: Setting
    """The same in natural units."""
    asked: Sequence[Asked]

    @classmethod
    def of(cls, study: Study, context: Setting | None) -> "Scene":
        """The scene after all answers; refused while answers are missing."""
        domain = study.space.domain(context)
        asked = [
            Asked(option, study.model.points([option])[0], verdict)
            for entry in study.history()
            if entry.status == "answered" and entry.answer is not None
            for option, verdict in zip(entry.options, entry.answer.verdicts(len(entry.options)), strict=True)
        ]
        _check_answers(study, asked)
        best = study.best(context).params
        return cls(study, dict(context or {}), study.belief(), domain, study.space.unit(best), best, asked)

    @property
    def space(self) -> Space:
        """The parameters."""
        return self.study.space

    @property
    def compares(self) -> bool:
        """Whether settings are compared with each other."""
        return self.study.plan.kind.compares

    @property
    def free(self) -> list[str]:
        """Names of the parameters to choose."""
        return [
            name
            for name, parameter in self.space.parameters.items()
            if not parameter.context and parameter.width
        ]

    @property
    def pairs(self) -> list[tuple[str, ...]]:
        """Pairs of parameters to draw over, sorted by how much the mean of f changes along them.

        Choices come last; a single parameter is alone.
        """
        numbers = [name for name in self.free if not self.space.parameters[name].one_hot]
        names = numbers if len(numbers) > 1 else numbers + [name for name in self.free if name not in numbers]
        if len(names) == 1:
            return [(names[0],)]
        return sorted(itertools.combinations(names, 2), key=self._change, reverse=True)

    def scales(self, names: Sequence[str], count: int) -> list[Scale]:
        """Axes of these parameters; two of them form cells."""
        return [scale(self.space, name, count, cells=len(names) > 1) for name in names]

    def along(self, scales: Sequence[Scale], through: Float[Tensor, " d"]) -> Float[Tensor, "*grid d"]:
        """Settings along these parameters through one setting: [first], or [second, first] as in images."""
        counts = [len(one.axis.values) for one in reversed(scales)]
        points = through.expand(*counts, -1).clone()
        for back, one in enumerate(scales):
            places = one.places
            points[..., list(one.columns)] = places.view(-1, *[1] * back, places.shape[-1])
        return points

    def over(
        self, points: Float[Tensor, "*grid d"], values: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*grid"]:
        """Values [q] of points [q, d] on a grid; nan where infeasible."""
        with torch.no_grad():
            found = values(points.reshape(-1, points.shape[-1])).reshape(points.shape[:-1])
        return found.masked_fill(~self.allowed(points), torch.nan)

    def allowed(self, points: Float[Tensor, "*grid d"]) -> Bool[Tensor, "*grid"]:
        """Whether points are feasible."""
        if self.domain is None or not self.domain.constrained:
            return torch.ones(points.shape[:-1], dtype=torch.bool)
        return self.domain.feasible(points)

    def moments(self, x: Float[Tensor, "q d"]) -> tuple[Float[Tensor, " q"], Float[Tensor, " q"]]:
        """Mean and variance of f, or of its lead over the recommended setting."""
        if self.compares:
            return self.belief.difference(x, self.best.expand_as(x))
        return self.belief.moments(x)

    def nearness(self, scales: Sequence[Scale]) -> Float[Tensor, " n"]:
        """Prior correlation of each setting asked about with its projection onto the slice."""
        points = torch.stack([one.point for one in self.asked])
        images = self.best.repeat(len(points), 1)
        columns = [column for one in scales for column in one.columns]
        images[:, columns] = points[:, columns]
        with torch.no_grad():
            both = (self.belief.prior.diagonal(points) * self.belief.prior.diagonal(images)).sqrt()
            return (self.belief.prior.paired(points, images) / both).clamp(0, 1)

    def mark_asked(
        self, axis: Axes, scales: Sequence[Scale], heights: Mapping[Verdict, float] | None
    ) -> None:
        """Mark the settings asked about, opaque where near; in one dimension at these heights."""
        strength = (_FAINT + (1 - _FAINT) * self.nearness(scales)).tolist()
        words = self.study.plan.kind.words
        positions = [
            one.scattered([asked.setting[one.name] for asked in self.asked], side)
            for one, side in zip(scales, SIDES, strict=False)
        ]
        for verdict, style in _LOOKS.items():
            chosen = [k for k, asked in enumerate(self.asked) if asked.verdict == verdict]
            if not chosen:
                continue
            x, *more = ([place[k] for k in chosen] for place in positions)
            y = more[0] if heights is None else [heights[verdict]] * len(chosen)
            axis.scatter(
                x,
                y,
                s=26,
                linewidths=0.8,
                alpha=[strength[k] for k in chosen],  # type: ignore[arg-type]  # the stubs know of one for all
                clip_on=False,
                zorder=4,
                **style,
            )
            look = {"marker": style["marker"], "mfc": style["facecolor"], "mec": style["edgecolor"]}
            axis.plot([], [], ls="none", ms=6, label=f"asked: {words[verdict]}", **look)  # for the legend
        if min(strength) < _FAR:
            faint: dict[str, Any] = {"marker": "o", "color": INK, "alpha": 0.3, "mec": "white"}
            axis.plot([], [], ls="none", ms=6, label="fainter: farther from this slice", **faint)

    def mark_best(self, axis: Axes, scales: Sequence[Scale], height: float | None = None) -> None:
        """A star at the recommended setting."""
        x, *more = (one.position(self.params[one.name]) for one in scales)
        y = more[0] if height is None else height
        look: dict[str, Any] = {"color": RED, "mec": INK, "mew": 0.8, "ms": 15, "ls": "none"}
        axis.plot([x], [y], "*", clip_on=False, zorder=6, label="recommended setting", **look)

    def head(self, figure: Figure, text: str = "") -> None:
        """Title: what the figure shows, and in which context."""
        given = f"for {shown(self.space, self.context)}" if self.context else ""
        if text or given:
            whole = ", ".join(part for part in (text, given) if part)
            figure.suptitle(whole[:1].upper() + whole[1:], fontsize=10.5, x=0.01, ha="left")

    def _change(self, names: tuple[str, ...]) -> float:
        values = self.over(self.along(self.scales(names, _COARSE), self.best), self.belief.mean)
        known = values[~values.isnan()]
        return float(known.max() - known.min()) if len(known) else 0.0


def _check_answers(study: Study, asked: Sequence[Asked]) -> None:
    if not asked:
        raise Refused("study", "have answers to be drawn", "none", "Ask and tell first.")
    kind = study.plan.kind
    if not kind.has_both_outcomes(study.belief().data):
        good, bad = (sum(one.verdict == verdict for one in asked) for verdict in ("good", "bad"))
        got = f"{good} {kind.words['good']} and {bad} {kind.words['bad']}"
        raise Refused("study", f"have {kind.needs(study.plan.initial)}", got, "Ask and tell on.")
