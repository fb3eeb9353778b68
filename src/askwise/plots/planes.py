"""Values along one parameter as a curve, over two as a map."""

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from torch import Tensor

from askwise.errors import Refused
from askwise.plots.names import shortened
from askwise.plots.scales import SIDES, Scale, escaped, shown
from askwise.plots.scene import Scene
from askwise.plots.style import GOOD, GREY, HATCH, INK, RED, SKY, hatch_spans
from askwise.plots.tags import tag
from askwise.plots.ticks import ROOM
from askwise.study import Verdict

_CELLS, _POINTS = 80, 201
_COARSE = 12  # values per parameter, to find the parameters that matter most
_LINE = 46  # characters that fit above a narrow panel
_MARGIN = 0.16  # share of a curve's range left free above and below it, for the marks
_FAR = 0.9  # the legend explains marks that are fainter than this
_FAINT = 0.15  # opacity of a mark that is far away
_SHORT = 44  # letters of a value beside the star
_LOOKS: dict[Verdict, dict[str, Any]] = {
    "good": {"marker": "o", "facecolor": INK, "edgecolor": "white"},
    "bad": {"marker": "o", "facecolor": "white", "edgecolor": INK},
    "undecided": {"marker": "D", "facecolor": GREY, "edgecolor": "white"},
}


@dataclass(frozen=True)
class Plane:
    """Settings along one parameter or two, through one setting."""

    scene: Scene
    scales: Sequence[Scale]
    points: Float[Tensor, "*grid d"]
    """[first], or [second, first] as in images."""
    room: int = ROOM
    """Letters of tick labels that fit below a panel."""

    @classmethod
    def of(
        cls,
        scene: Scene,
        names: Sequence[str],
        through: Float[Tensor, " d"] | None = None,
        count: int = 0,
        room: int = ROOM,
    ) -> "Plane":
        """Through this setting or the recommended one, with about ``count`` values per parameter."""
        curve = len(names) == 1
        count = count or (_POINTS if curve else _CELLS)
        scales = [Scale.of(scene.space, name, count, cells=not curve) for name in names]
        counts = [len(one.axis.values) for one in reversed(scales)]
        points = (scene.best if through is None else through).expand(*counts, -1).clone()
        for back, one in enumerate(scales):
            places = one.places
            points[..., list(one.columns)] = places.view(-1, *[1] * back, places.shape[-1])
        return cls(scene, scales, points, room)

    def held(self, before: str = "", width: int = _LINE) -> str:
        """A wrapped title: ``before``, and the values of the parameters that are not drawn."""
        names = set(self.scene.free) - {scale.name for scale in self.scales}
        setting = self.scene.space.natural(self.points.reshape(-1, self.points.shape[-1])[0])
        others = {name: value for name, value in setting.items() if name in names}
        at = f"at {shown(self.scene.space, others)}" if others else ""
        whole = ", ".join(part for part in (before, at) if part)
        return textwrap.fill(whole, width, break_long_words=False, break_on_hyphens=False)

    def values(self, values: Callable[[Tensor], Tensor]) -> Float[Tensor, "*grid"]:
        """Values [q] of points [q, d]; nan where infeasible."""
        with torch.no_grad():
            found = values(self.points.reshape(-1, self.points.shape[-1])).reshape(self.points.shape[:-1])
        return found.masked_fill(~self.feasible, torch.nan)

    @property
    def feasible(self) -> Bool[Tensor, "*grid"]:
        """Whether points satisfy the constraints."""
        domain = self.scene.domain
        if domain is None or not domain.constrained:
            return torch.ones(self.points.shape[:-1], dtype=torch.bool)
        return domain.feasible(self.points)

    def draw(
        self,
        axis: Axes,
        values: Float[Tensor, "*grid"],
        limits: tuple[float, float] | None = None,
        reach: Float[Tensor, "*grid"] | None = None,
        colours: str | Colormap = GOOD,
    ) -> QuadMesh | None:
        """Draw a map in these colours, which is returned, or a curve with a band around it."""
        if len(self.scales) == 1:
            ends = (values, values) if reach is None else (values - reach, values + reach)
            self.curve(axis, values, ends, "" if reach is None else "95% credible band")
            bottom, top = span(torch.stack(ends))
            margin = _MARGIN * (top - bottom)
            axis.set_ylim(bottom - margin, top + margin)
            return None
        self.dress(axis)
        axis.patch.set(**HATCH, linewidth=0)
        low, high = span(values) if limits is None else limits
        grid = (*(scale.edges.numpy() for scale in self.scales), values.numpy())
        return axis.pcolormesh(*grid, cmap=colours, vmin=low, vmax=high, rasterized=True)

    def curve(
        self, axis: Axes, values: Tensor, ends: tuple[Tensor, Tensor], band: str, name: str = ""
    ) -> None:
        """Draw values along one parameter in a band with these ends, and hatch what is infeasible."""
        (scale,) = self.scales
        self.dress(axis)
        if not scale.ordered:
            many = len(scale.at)
            axis.vlines(scale.at, *ends, color=SKY, lw=min(7.0, 150 / many), label=band)
            axis.plot(scale.at, values, "_", color=INK, ms=min(12.0, max(3.0, 200 / many)), mew=2, label=name)
        else:
            axis.fill_between(scale.at, *ends, color=SKY, lw=0, label=band)
            axis.plot(scale.at, values, color=INK, lw=1.6, label=name)
        hatch_spans(axis, scale.edges, self.feasible)

    def dress(self, axis: Axes) -> None:
        """Give an axis the names, limits and ticks of the parameters."""
        for scale, side in zip(self.scales, SIDES, strict=False):
            scale.dress(axis, side, self.room)

    @property
    def keys(self) -> list[str]:
        """What the numbers on its axes stand for, where names are too long or too many."""
        return [scale.key(side, self.room) for scale, side in zip(self.scales, SIDES, strict=False)]

    def label(self, figure: Figure, axis: Axes, image: QuadMesh | None, text: str) -> None:
        """Label the colour bar, or the y axis of a curve."""
        if image is None:
            axis.set_ylabel(text)
        else:
            figure.colorbar(image, ax=axis, label=text, pad=0.02)

    def positions(self, setting: Mapping[str, Any], height: float) -> tuple[float, float]:
        """Where a setting is drawn; along one parameter, at this height."""
        x, *more = (scale.parameter.position(setting[scale.name]) for scale in self.scales)
        return x, (more[0] if more else height)

    def mark_asked(self, axis: Axes, heights: Mapping[Verdict, float] | None = None) -> None:
        """Mark the settings asked about, fainter where far away.

        Along one parameter they are at these heights, by default good ones above the curve, others below.
        """
        if not self.scene.asked:  # none that is in the space any more
            return
        low, high = axis.get_ylim()
        inset = (high - low) * _MARGIN / (1 + 2 * _MARGIN) / 2
        heights = heights or {"good": high - inset, "bad": low + inset, "undecided": low + inset}
        opacity, (x, *more) = self.opacity, self.asked_positions
        y = more[0] if more else [heights[verdict] for _, verdict in self.scene.asked]
        for verdict, style in _LOOKS.items():
            chosen = [k for k, (_, other) in enumerate(self.scene.asked) if other == verdict]
            if not chosen:
                continue
            places: list[Any] = [[part[k] for k in chosen] for part in (x, y, opacity)]
            look: dict[str, Any] = {"s": 26, "linewidths": 0.8, "alpha": places[2], **style}
            axis.scatter(*places[:2], clip_on=False, zorder=4, **look)
            look = {"marker": style["marker"], "mfc": style["facecolor"], "mec": style["edgecolor"]}
            label = f"asked: {self.scene.study.plan.kind.words[verdict]}"
            axis.plot([], [], ls="none", ms=6, label=label, **look)  # for the legend
        if min(opacity) < _FAR:
            look = {"marker": "o", "color": INK, "alpha": 0.3, "mec": "white"}
            axis.plot([], [], ls="none", ms=6, label="fainter: farther from this slice", **look)

    @property
    def asked_positions(self) -> list[list[float]]:
        """Where the settings asked about are drawn along each parameter."""
        return [
            scale.scattered([setting[scale.name] for setting, _ in self.scene.asked], side)
            for scale, side in zip(self.scales, SIDES, strict=False)
        ]

    @property
    def opacity(self) -> list[float]:
        """Of the marks of settings asked about: those far from this slice are faint."""
        return (_FAINT + (1 - _FAINT) * self._nearness()).tolist()

    def mark_best(self, axis: Axes, height: float | Tensor, size: float = 15, said: bool = True) -> None:
        """A star at the recommended setting, along one parameter at this height, and its values beside it."""
        x, y = self.positions(self.scene.params, float(height))
        look: dict[str, Any] = {"color": RED, "mec": INK, "mew": 0.8, "ms": size, "ls": "none"}
        axis.plot([x], [y], "*", clip_on=False, zorder=6, label="recommended setting", **look)
        if said:
            values = [scale.parameter.text(self.scene.params[scale.name]) for scale in self.scales]
            brief = [shortened(value, _SHORT) for value in values]
            tag(axis, x, y, escaped("\n".join(textwrap.fill(value, 3 * self.room // 4) for value in brief)))

    def _nearness(self) -> Float[Tensor, " n"]:
        """Prior correlation of each setting asked about with its projection onto this slice."""
        points = self.scene.study.model.points([setting for setting, _ in self.scene.asked])
        images = self.scene.best.repeat(len(points), 1)
        columns = [column for one in self.scales for column in one.columns]
        images[:, columns] = points[:, columns]
        prior = self.scene.belief.prior
        with torch.no_grad():
            both = (prior.diagonal(points) * prior.diagonal(images)).sqrt()
            return (prior.paired(points, images) / both).clamp(0, 1)


def pairs(scene: Scene) -> list[tuple[str, ...]]:
    """Pairs of parameters to draw over, sorted by how much the mean of f changes along them.

    Choices and items only where there are fewer than two numbers; a single parameter is alone.
    """
    known = scene.space.parameters
    numbers = [name for name in scene.free if not known[name].one_hot and known[name].pool is None]
    names = numbers if len(numbers) > 1 else numbers + [name for name in scene.free if name not in numbers]
    if len(names) == 1:
        return [(names[0],)]

    def change(pair: tuple[str, ...]) -> float:
        values = Plane.of(scene, pair, count=_COARSE).values(scene.belief.mean)
        found = values[~values.isnan()]
        return float(found.max() - found.min()) if len(found) else 0.0

    return sorted(itertools.combinations(names, 2), key=change, reverse=True)


def checked_pair(scene: Scene, pair: object) -> tuple[str, ...]:
    """A pair of parameters to draw over; refuses what is none."""
    free, names = ", ".join(scene.free), tuple(pair) if isinstance(pair, Sequence) else ()
    if isinstance(pair, str) or len(names) != 2 or names[0] == names[1]:
        raise Refused("pair", "be the names of two parameters", repr(pair), f"Choose two of {free}.")
    for name in names:
        if name not in scene.free:
            raise Refused("pair", f"name two of {free}", repr(name), "Choose two parameters that are drawn.")
    return names


def span(values: Tensor) -> tuple[float, float]:
    """The lowest and the highest of the finite values."""
    known = values[values.isfinite()]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    return (low, high) if high - low > 1e-12 * max(1.0, abs(high)) else (low - 0.5, high + 0.5)
