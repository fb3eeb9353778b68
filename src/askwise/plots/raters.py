"""The people of a study beside each other: what is best for each, and how they answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator, PercentFormatter

from askwise.errors import Refused
from askwise.model import Belief
from askwise.plots.names import shortened
from askwise.plots.scales import Scale, escaped
from askwise.plots.scene import subject
from askwise.plots.style import BLUE, GREY, INK, RED, SKY, STYLE, legend_below, title
from askwise.space import Setting
from askwise.study import Answered, Estimate, Model, Rater, Raters, Study, best, likely_bests, search_about

_COLUMNS = 5
_NAME = 22  # characters of a name
_ROOM = 20  # letters of tick labels that fit below a panel
_STEPS = (0.025, 0.25, 0.75, 0.975)  # ends of intervals of 95% and 50%
_NOISES = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
_DASHED = (0, (4, 3))


@dataclass(frozen=True)
class _Row:
    """One of the people, or all together."""

    name: str
    setting: Setting
    """What is recommended."""
    likely: Sequence[Setting]
    """What may be best, one for each draw of f."""
    rater: Rater | None = None
    """How they answer, if that is known."""
    together: bool = False


@rc_context(STYLE)
def study_raters(study: Study, context: Setting | None = None) -> Figure:
    """What is recommended for each person, and how each answers; refused for fewer than two people.

    A panel for each parameter: the recommended value, and the intervals in which 50% and 95% of draws of f
    have their best; of a choice, the area of a mark is the share of these draws.  Then, where they are
    learned, the share of answers that are given without looking, and the noise in the answers, with intervals
    of 95%.  A study with one taste of all is drawn as if each had a taste of their own, and the title says
    whether that explains the answers better.
    """
    counts = study.answers_by_participant()
    if len(counts) < 2:
        got = "those of one" if counts else "none"
        advice = "Say who answers: study.ask(participant=...), or --participant in a terminal."
        raise Refused("study", "have answers of two people or more to compare them", got, advice)
    rows, found = _rows(study, context)
    names = [name for name, one in study.space.parameters.items() if not one.context and one.width]
    raters = [row.rater for row in rows if row.rater is not None]
    lapses, noises = (any(getattr(one, what).interval for one in raters) for what in ("lapse", "noise"))
    count = len(names) + lapses + noises
    lines = math.ceil(count / _COLUMNS)
    columns = math.ceil(count / lines)
    width, height = 1.7 + 1.9 * columns, 0.9 + lines * (0.7 + 0.27 * max(4, len(rows)))
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = list(figure.subplots(lines, columns, sharey=True, squeeze=False).flat)
    scales = [Scale.of(study.space, name, 2) for name in names]
    for axis, scale in zip(panels, scales, strict=False):
        _values(axis, scale, rows)
    if lapses:
        _lapses(panels[len(names)], rows)
    if noises:
        _noises(panels[count - 1], rows)
    for axis in panels[count:]:
        axis.remove()
    panels[0].set_ylim(len(rows) - 0.4, -0.6)
    for axis in panels[:count:columns]:
        axis.set_yticks(range(len(rows)), [escaped(row.name) for row in rows])
        axis.set_ylabel("person (answers)")
    title(figure, escaped(study.name), _verdict(study, found), subject(study, context, None))
    keys = [scale.key(room=_ROOM) for scale in scales]
    legend_below(figure, panels[: len(names)], 4 if columns > 4 else 2 if columns > 2 else 1, keys)
    return figure


def _rows(study: Study, context: Setting | None) -> tuple[list[_Row], Raters | None]:
    """All together, if they have something in common, then each person; and what is learned of all."""
    plan, model = study.plan, study.model
    separate = plan.people.participants == "separate"
    if not plan.people.differ:  # as if they did
        plan = replace(plan, people=replace(plan.people, participants="population"))
        model = Model(plan)
    domain = study.space.domain(context)
    answers = tuple(entry.answered for entry in study.history() if entry.status == "answered")

    def row(name: str, belief: Belief, rater: Rater | None, together: bool = False) -> _Row:
        search = search_about(belief, plan, domain)
        likely = [study.space.natural(point) for point in likely_bests(belief, plan, search)]
        return _Row(name, best(belief, plan, search).params, likely, rater, together)

    if separate:
        people = _by_person(answers).items()
        return [row(_label(who, own), model.belief(own), _alone(model, own)) for who, own in people], None
    found, belief = model.raters(answers), model.belief(answers)
    known = {rater.name: rater for rater in found.each}
    rows = [row(f"all ({len(answers)})", belief, None, together=True)]
    for who, own in _by_person(answers).items():
        rater = known.get(who)
        theirs = belief.of_rater(model.rater(answers, who), 1.0 if rater is None else rater.noise.value)
        rows.append(row(_label(who, own), theirs, rater))
    return rows, found


def _by_person(answers: Sequence[Answered]) -> dict[str | None, tuple[Answered, ...]]:
    people = dict.fromkeys(one.participant for one in answers)
    return {who: tuple(one for one in answers if one.participant == who) for who in people}


def _alone(model: Model, answers: tuple[Answered, ...]) -> Rater | None:
    """What is learned of somebody from their own answers."""
    return model.raters(answers).each[0] if model.plan.people.lapses == "learned" else None


def _label(who: str | None, answers: Sequence[Answered]) -> str:
    name = "(no name)" if who is None else who
    return f"{shortened(name, _NAME)} ({len(answers)})"


def _verdict(study: Study, found: Raters | None) -> str:
    """How much people differ, in a sentence."""
    if found is None:
        return "each person from their own answers alone"
    if not study.plan.people.differ:
        said = [check.detail for check in study.checks() if check.name == "raters"]
        return escaped(" ".join([*said, "Drawn as if each had a taste of their own"]))
    if found.share is None or found.share.interval is None:
        return ""
    low, high = found.share.interval
    return f"{found.share.value:.0%} ({low:.0%} to {high:.0%}) of a person's taste is their own"


def _values(axis: Axes, scale: Scale, rows: Sequence[_Row]) -> None:
    """The recommended value of a parameter, and what may be best."""
    scale.dress(axis, room=_ROOM)
    for height, row in enumerate(rows):
        values = [scale.parameter.position(setting[scale.name]) for setting in row.likely]
        if not scale.ordered:
            for value in sorted(set(values)):
                area = 220 * values.count(value) / len(values)
                label = "the best is here (area: how likely)" if (height, value) == (0, max(values)) else None
                axis.scatter([value], [height], area, color=SKY, lw=0, zorder=2, label=label)
        else:
            ends = torch.tensor(values, dtype=torch.float64).quantile(torch.tensor(_STEPS).double()).tolist()
            _interval(axis, height, ends[0], ends[3])
            label = "the best is here with 50% (thick) or 95%" if height == 0 else None
            axis.plot(ends[1:3], [height] * 2, color=BLUE, lw=4, alpha=0.45, zorder=2, label=label)
        at = scale.parameter.position(row.setting[scale.name])
        if row.together:
            axis.axvline(at, color=RED, lw=0.8, ls=_DASHED, zorder=1)
            said = shortened(scale.parameter.text(row.setting[scale.name]), _ROOM)
            axis.set_title(f"for all: {escaped(said)}")
            look: dict[str, Any] = {"color": RED, "mec": INK, "mew": 0.6, "label": "recommended for all"}
            axis.plot([at], [height], "*", ms=11, ls="none", clip_on=False, zorder=4, **look)
        else:
            label = "recommended for the person" if height == len(rows) - 1 else None
            look = {"color": INK, "mec": "white", "mew": 0.6, "label": label}
            axis.plot([at], [height], "o", ms=6, ls="none", clip_on=False, zorder=4, **look)
    axis.tick_params(axis="y", length=0)


def _lapses(axis: Axes, rows: Sequence[_Row]) -> None:
    highest = _estimates(axis, [(k, row.rater.lapse) for k, row in enumerate(rows) if row.rater])
    axis.set(xlim=(0, min(1.0, 1.05 * highest)), xlabel="answers given\nwithout looking")
    axis.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axis.xaxis.set_major_locator(MaxNLocator(4))


def _noises(axis: Axes, rows: Sequence[_Row]) -> None:
    axis.set_xscale("log")
    axis.axvline(1, color=GREY, lw=0.8, ls=_DASHED, zorder=1)
    _estimates(axis, [(k, row.rater.noise) for k, row in enumerate(rows) if row.rater])
    low, high = axis.get_xlim()
    ticks = [tick for tick in _NOISES if low <= tick <= high]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set(xlim=(low, high), xlabel="noise of answers\n(1 is typical)")


def _estimates(axis: Axes, found: Sequence[tuple[int, Estimate]]) -> float:
    """Draw estimates at their heights; the highest end of an interval."""
    for height, estimate in found:
        _interval(axis, height, *(estimate.interval or (estimate.value, estimate.value)))
        axis.plot([estimate.value], [height], "o", color=INK, mec="white", mew=0.6, ms=6, zorder=4)
    axis.tick_params(axis="y", length=0)
    return max((max(one.value, *(one.interval or ())) for _, one in found), default=1.0)


def _interval(axis: Axes, height: int, low: float, high: float) -> None:
    axis.plot([low, high], [height] * 2, color=BLUE, lw=1.2, solid_capstyle="butt", zorder=2)
