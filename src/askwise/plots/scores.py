"""The score by which a study chooses its next query."""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from askwise.plots.planes import Plane, checked_pair, pairs
from askwise.plots.scene import Scene
from askwise.plots.style import ASKED, STYLE, legend_below, mark, member_name, message
from askwise.plots.trace import Trace, Watched
from askwise.space import Setting
from askwise.study import Entry, Situation, State, Study, next_question

_MOST = 4  # members for which the score is drawn
_NEAR = 1e-3  # in shares of the range
_DEPTH = 3  # depth to which a score is drawn, in units of the range of its better half


@rc_context(STYLE)
def study_score(
    study: Study,
    context: Setting | None = None,
    participant: str | None = None,
    pair: Sequence[str] | None = None,
) -> Figure:
    """The score that the next query maximises, as one of its members moves, and the query.

    Over a pair of parameters, by default those along which the mean of f changes most; the others are as in
    the member that moves.  Nothing is asked: an open question is drawn, or else the one that would come next.
    """
    scene = Scene.of(study, context, participant)
    trace = _trace(scene)
    movers = list(trace.chosen)[:_MOST]
    drawn = pairs(scene)[0] if pair is None else checked_pair(scene, pair)
    columns = max(1, min(2, len(movers)))
    rows = max(1, math.ceil(len(movers) / columns))
    figure = Figure(figsize=(5.4 if columns == 1 else 8.6, 1.2 + 2.9 * rows), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axis, member in zip(panels, movers, strict=False):
        _score(figure, axis, Plane.of(scene, drawn, trace.points[member]), trace, member)
    for axis in panels[max(1, len(movers)) :]:
        axis.remove()
    if not movers:
        _no_score(panels[0], Plane.of(scene, drawn, trace.points[0]), trace)
    scene.head(figure, f"the next question by {study.rule.title}" if trace.steps else "the next question")
    legend_below(figure, panels[:1], columns + 1, Plane.of(scene, drawn).keys)
    return figure


def _score(figure: Figure, axis: Axes, plane: Plane, trace: Trace, member: int) -> None:
    values = _clipped(plane.values(lambda x: trace.score(member, x)))
    plane.label(figure, axis, plane.draw(axis, values, colours=ASKED), "score")
    count = len(trace.points)
    axis.set_title(plane.held(f"as {member_name(member, count)} moves" if count > 1 else ""))
    with torch.no_grad():
        heights = trace.score(member, trace.points)
    low, high = axis.get_ylim()
    _mark_members(axis, plane, trace, [min(max(height, low), high) for height in heights.tolist()])


def _no_score(axis: Axes, plane: Plane, trace: Trace) -> None:
    """The query alone, and why there is no score."""
    plane.dress(axis)
    if len(plane.scales) == 1:
        axis.set(ylim=(0, 1), yticks=())
    drawn, other = "the rule asks\nwhere draws of f are highest", "the model\ndid not choose this question"
    message(axis, f"no score: {drawn if trace.steps else other}")
    _mark_members(axis, plane, trace, [0.12] * len(trace.points))


def _mark_members(axis: Axes, plane: Plane, trace: Trace, heights: list[float]) -> None:
    """Mark the query; members off the plane are hollow."""
    count, columns = len(trace.points), {column for scale in plane.scales for column in scale.columns}
    others = [column for column in range(trace.points.shape[-1]) if column not in columns]
    through = plane.points.reshape(-1, trace.points.shape[-1])[0]
    for member, (point, height) in enumerate(zip(trace.points, heights, strict=True)):
        x, y = plane.positions(plane.scene.space.natural(point), height)
        off = bool(((point - through)[others].abs() > _NEAR).any())
        label = f"next question: {member_name(member, count)}{' (off this plane)' if off else ''}"
        mark(axis, member, x, y, label, hollow=off)


def _clipped(values: Tensor) -> Tensor:
    """Values clipped from below, since a logarithm may dwarf all other differences."""
    known = values[values.isfinite()]
    if not len(known):
        return values
    top, middle = float(known.max()), float(known.median())
    return values.clamp_min(max(float(known.min()), top - _DEPTH * (top - middle)))


def _trace(scene: Scene) -> Trace:
    """The next query, as the study would choose it, and the searches that lead to it."""
    study, given, who = scene.study, scene.context or None, scene.participant
    entries = study.history()
    waiting = _waiting(scene, entries)
    known = {entry.id: entry for entry in entries if waiting is None or entry.id < waiting.id}
    rule = Watched(study.rule)
    model = copy.copy(study.model)
    model.plan = replace(study.plan, spelled_rule=rule)  # what it has learned does not depend on the rule
    options, order = next_question(model, Situation.of(State(known), given, study.plan.people, who))
    members = [options[order.index(member)] for member in range(len(order))]
    return Trace(model.points(members if waiting is None else waiting.members), rule.steps)


def _waiting(scene: Scene, entries: list[Entry]) -> Entry | None:
    """The question that would be shown again."""
    here = [entry for entry in entries if (entry.context or {}) == scene.context]
    theirs = [entry for entry in here if entry.participant == scene.participant]
    separate = scene.study.plan.people.participants == "separate"
    expired = [entry for entry in (theirs if separate else here) if entry.status == "expired"]
    return next(iter([entry for entry in theirs if entry.status == "open"] + expired), None)
