"""Values along one parameter as a curve, over two as a map."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from torch import Tensor

from askwise.plots.scales import SIDES, Scale, shown
from askwise.plots.scene import Scene
from askwise.plots.style import INK, SKY, hatch, hatch_spans
from askwise.study import Verdict

_CELLS, _POINTS = 80, 201
_LINE = 46  # characters that fit above a narrow panel
_MARGIN = 0.16  # share of a curve's range left free above and below it, for the marks


@dataclass(frozen=True)
class Plane:
    """Settings along one parameter or two, through one setting."""

    scene: Scene
    scales: Sequence[Scale]
    points: Float[Tensor, "*grid d"]

    @classmethod
    def of(cls, scene: Scene, names: Sequence[str], through: Float[Tensor, " d"] | None = None) -> "Plane":
        """Through this setting, or through the recommended one."""
        scales = scene.scales(names, _POINTS if len(names) == 1 else _CELLS)
        return cls(scene, scales, scene.along(scales, scene.best if through is None else through))

    def held(self, before: str = "", width: int = _LINE) -> str:
        """The values of the parameters that are not drawn, wrapped for a title, after other words."""
        drawn = {scale.name for scale in self.scales}
        point = self.points.reshape(-1, self.points.shape[-1])[0]
        others = {
            name: value
            for name, value in self.scene.space.natural(point).items()
            if name in self.scene.free and name not in drawn
        }
        at = f"at {shown(self.scene.space, others)}" if others else ""
        whole = ", ".join(part for part in (before, at) if part)
        return textwrap.fill(whole, width, break_long_words=False, break_on_hyphens=False)

    def values(self, values: Callable[[Tensor], Tensor]) -> Float[Tensor, "*grid"]:
        """Values [q] of points [q, d]; nan where infeasible."""
        return self.scene.over(self.points, values)

    def draw(
        self,
        axis: Axes,
        values: Float[Tensor, "*grid"],
        limits: tuple[float, float] | None = None,
        reach: Float[Tensor, "*grid"] | None = None,
    ) -> QuadMesh | None:
        """Draw a map, which is returned, or a curve with a band around it."""
        for scale, which in zip(self.scales, SIDES, strict=False):
            scale.dress(axis, which)
        if len(self.scales) == 1:
            self._curve(axis, values, reach)
            return None
        hatch(axis)
        low, high = _range(values) if limits is None else limits
        grid = (*(scale.edges.numpy() for scale in self.scales), values.numpy())
        return axis.pcolormesh(*grid, cmap="cividis", vmin=low, vmax=high, rasterized=True)

    def label(self, figure: Figure, axes: Axes | Sequence[Axes], image: QuadMesh | None, text: str) -> None:
        """Label the colour bar, or the y axis of a curve."""
        if image is not None:
            figure.colorbar(image, ax=axes, label=text, pad=0.02)
        for axis in () if image is not None else [axes] if isinstance(axes, Axes) else axes:
            axis.set_ylabel(text)

    def mark_asked(self, axis: Axes) -> None:
        """Mark the settings asked about; along a curve good ones above it, others below."""
        low, high = axis.get_ylim()
        inset = (high - low) * _MARGIN / (1 + 2 * _MARGIN) / 2
        heights: dict[Verdict, float]
        heights = {"good": high - inset, "bad": low + inset, "undecided": low + inset}
        self.scene.mark_asked(axis, self.scales, heights if len(self.scales) == 1 else None)

    def mark_best(self, axis: Axes, height: float | Tensor) -> None:
        """Mark the recommended setting; ``height`` is for curves."""
        self.scene.mark_best(axis, self.scales, float(height) if len(self.scales) == 1 else None)

    def _curve(self, axis: Axes, values: Tensor, reach: Tensor | None) -> None:
        (scale,) = self.scales
        low, high = (values, values) if reach is None else (values - reach, values + reach)
        label = "" if reach is None else "95% credible band"
        if scale.discrete:
            axis.vlines(scale.at, low, high, color=SKY, lw=7, label=label)
            axis.plot(scale.at, values, "_", color=INK, ms=12, mew=2)
        else:
            axis.fill_between(scale.at, low, high, color=SKY, lw=0, label=label)
            axis.plot(scale.at, values, color=INK, lw=1.6)
        hatch_spans(axis, scale.edges, self.scene.allowed(self.points))
        bottom, top = _range(torch.stack([low, high]))
        margin = _MARGIN * (top - bottom)
        axis.set_ylim(bottom - margin, top + margin)


def _range(values: Tensor) -> tuple[float, float]:
    known = values[values.isfinite()]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    return (low, high) if high - low > 1e-12 * max(1.0, abs(high)) else (low - 0.5, high + 0.5)
