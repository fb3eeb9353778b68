"""A study over time: the answers, and what they achieved."""

import functools
import math
import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, PercentFormatter

from askwise.errors import Refused
from askwise.plots.scales import escaped
from askwise.plots.scene import entries_of, subject
from askwise.plots.style import BLUE, GREY, INK, RED, STYLE, message, title
from askwise.space import Setting
from askwise.study import (
    CONFIDENCE,
    UNTRUSTED,
    Answered,
    Entry,
    LevelSet,
    Model,
    Outlook,
    Situation,
    State,
    Study,
    best,
    confidence,
    labels,
    level_set,
    next_question,
    outlook,
)

_EVERY, _MOST = 5, 8  # answers between checkpoints, and the largest number of checkpoints
_LINE = 76  # characters of the warning
_FAST = 20  # ratio of response times beyond which their axis is logarithmic


_Checkpoint = tuple[int, float, Outlook]
"""Question, probability that the setting then recommended is the best of all asked about, expectations."""


@rc_context(STYLE)
def study_progress(study: Study, context: Setting | None = None, participant: str | None = None) -> Figure:
    """Confidence in the recommended setting, expected regret and gain, and the answers, question by question.

    Top: the probability that the setting recommended at the time was the best of all settings asked about
    (those within 2% of the range of each parameter count as the same).  Then its expected regret, and the
    expected gain from the next answer, in units of the noise of one answer.  With contexts, all this is for
    one of them, by default the last; where people differ, for one of them or for all.  In a study with a
    level: shares of the space inside and outside, and what is expected to be misclassified.  If a check of
    the answers is flagged, it says so.
    """
    who = study.whose(participant)
    separate = study.plan.people.participants == "separate"
    entries = entries_of(study, who) if separate else study.history()
    if not any(entry.status == "answered" for entry in entries):
        raise Refused("study", "have answers to be drawn", "none", "Ask and tell first.")
    if context is None and study.space.contexts:
        last = [entry for entry in entries if entry.status == "answered"][-1].options[0]
        context = {name: last[name] for name in study.space.contexts}
    timed = any(entry.seconds is not None for entry in entries)
    ratios = (3, 3, 2, 2) if timed else (3, 3, 2)
    figure = Figure(figsize=(7, 7.4 if timed else 6), layout="constrained")
    sure, left, answers, *times = figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios)
    missing = f"no model yet: it takes {study.plan.kind.needs(study.plan.initial)}"
    if study.plan.level is None:
        _outlooks(sure, left, _checkpoints(study, entries, context, who), missing)
    else:
        _levels(sure, left, _level_checkpoints(study, entries, context, who), missing)
    _answers(answers, entries, study)
    for axis in times:
        _times(axis, entries)
    bottom, margin = figure.axes[-1], max(0.7, 0.015 * len(entries))
    bottom.set(xlabel="question", xlim=(entries[0].id - margin, entries[-1].id + margin))
    bottom.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    figure.align_ylabels()
    title(figure, escaped(study.name), subject(study, context, who))
    if flagged := [check.detail for check in study.checks(who) if check.flagged]:
        words = textwrap.fill(" ".join([*flagged, UNTRUSTED]), _LINE)
        sure.set_title(escaped(words), color=RED)
    return figure


def _checkpoints(
    study: Study, entries: Sequence[Entry], context: Setting | None, who: str | None
) -> list[_Checkpoint]:
    """Checkpoints after 5, 10, .. answers and after all, from the first model on."""
    plan, model, domain = study.plan, study.model, study.space.domain(context)
    state = State({entry.id: entry for entry in entries})
    answered = state.having("answered")
    answers = Situation.of(state, context, plan.people, who).answers
    asked = model.points([option for entry in answered for option in entry.options])
    asked = asked[((asked >= 0) & (asked <= 1)).all(-1)]  # others are out of ranges narrowed since
    rivals = (asked if domain is None else domain.snapped(asked)).unique(dim=0)  # distinct, in this context
    points = []
    for count in _counts(model, answers):
        known = answers[:count]
        (belief, search), (_, prior) = model.searched(known, who, context), model.prepared(known)
        at_best = plan.space.unit(best(belief, plan, search).params)[None]
        sure = confidence(belief, plan, at_best, rivals)
        last = answered[count - 1].id
        later = [entry.members for entry in entries if entry.id > last]
        now = Situation.of(state, context, plan.people, who)
        then = later[0] if later else next_question(model, now)[0]
        answered_by = functools.partial(model.answered, known, who=who)
        look = outlook(belief, plan, prior, search, model.points(then), answered_by)
        points.append((last, sure, look))
    return points


def _level_checkpoints(
    study: Study, entries: Sequence[Entry], context: Setting | None, who: str | None
) -> list[tuple[int, LevelSet]]:
    """The level set after 5, 10, .. answers and after all, from the first model on."""
    plan, model, domain = study.plan, study.model, study.space.domain(context)
    state = State({entry.id: entry for entry in entries})
    answered, answers = state.having("answered"), Situation.of(state, context, plan.people, who).answers
    assert plan.level is not None
    return [
        (
            answered[count - 1].id,
            level_set(model.belief(answers[:count], who), plan, domain, plan.level, CONFIDENCE, 1),
        )
        for count in _counts(model, answers)
    ]


def _counts(model: Model, answers: tuple[Answered, ...]) -> list[int]:
    """Numbers of answers after which something is drawn."""
    step = _EVERY * math.ceil(len(answers) / (_EVERY * _MOST))
    counts = sorted({*range(step, len(answers), step), len(answers)})
    return [count for count in counts if count >= model.plan.initial and model.is_ready(answers[:count])]


def _levels(sides: Axes, wrong: Axes, points: Sequence[tuple[int, LevelSet]], missing: str) -> None:
    """Shares inside and outside above, what is expected to be misclassified below."""
    x = [question for question, _ in points]
    for side, look, colour in (("inside", "o-", BLUE), ("outside", "s-", GREY)):
        shares = [getattr(found, side).value for _, found in points]
        sides.plot(x, shares, look, color=colour, ms=5, lw=1.6, label=side)
    sides.set(ylim=(-0.03, 1.03), ylabel="share of\nthe space")
    misclassified = [found.misclassified for _, found in points]
    wrong.plot(x, misclassified, "o-", color=RED, ms=5, lw=1.6)
    wrong.set(ylim=(0, 1.08 * max([*misclassified, 1e-3])), ylabel="expected to be\non the wrong side")
    for axis in (sides, wrong):
        axis.yaxis.set_major_formatter(PercentFormatter(1))
        if not points:
            axis.set_yticks(())
            message(axis, missing)
    if points:
        sides.legend(loc="lower left", bbox_to_anchor=(0, 0.98), ncols=2, borderaxespad=0)


def _outlooks(sure: Axes, left: Axes, points: Sequence[_Checkpoint], missing: str) -> None:
    """Confidence above, expected regret and gain below."""
    x = [question for question, _, _ in points]
    sure.plot(x, [chance for _, chance, _ in points], "o-", color=INK, ms=5, lw=1.6)
    sure.set(ylim=(-0.03, 1.03), ylabel="probability that\nno setting asked\nabout is better")
    sure.yaxis.set_major_formatter(PercentFormatter(1))
    regret, gain = [look.regret for _, _, look in points], [look.gain for _, _, look in points]
    left.plot(x, regret, "o-", color=RED, ms=5, lw=1.6, label="expected regret")
    left.plot(x, gain, "s--", color=BLUE, ms=5, lw=1.6, label="expected gain from the next answer")
    left.set(ylim=(0, 1.08 * max([*regret, *gain, 1e-3])), ylabel="regret, gain\n(noise of one\nanswer = 1)")
    if points:
        left.legend(loc="lower left", bbox_to_anchor=(0, 0.98), ncols=2, borderaxespad=0)
    for axis in () if points else (sure, left):
        axis.set_yticks(())
        message(axis, missing)


def _answers(axis: Axes, entries: Sequence[Entry], study: Study) -> None:
    """Each question as a mark in the row of its status."""
    kind = study.plan.kind
    options = [f"option {label}" for label in labels(study.size)]
    names = options if kind.compares else [kind.words["good"], kind.words["bad"]]
    found = [(entry.id, row) for entry in entries for row in _rows(entry, study, names)]
    rows = names + [row for row in _LOOKS if row in {row for _, row in found} - {*names}]
    size = min(5.5, max(3.0, 330 / len(entries)))
    for height, row in enumerate(rows):
        look = _LOOKS.get(row, {"marker": "o", "mfc": INK, "mec": INK})
        places = [question for question, other in found if other == row]
        axis.plot(places, [height] * len(places), ls="none", ms=size, clip_on=False, **look)
    axis.set(ylim=(len(rows) - 0.4, -0.6), ylabel="preferred" if kind.compares else "answers")
    axis.set_yticks(range(len(rows)), rows)
    axis.grid(axis="y", color="#e5e5e5", lw=0.8)
    axis.set_axisbelow(True)


_LOOKS: dict[str, dict[str, Any]] = {
    "no": {"marker": "o", "mfc": "white", "mec": INK},
    "only the worst": {"marker": "s", "mfc": "white", "mec": INK},
    "can't decide": {"marker": "D", "mfc": GREY, "mec": GREY},
    "skipped": {"marker": "x", "mec": INK},
    "voided": {"marker": "x", "mec": GREY},
    "expired": {"marker": "v", "mfc": "white", "mec": GREY},
    "open": {"marker": "^", "mfc": "white", "mec": INK},
}


def _rows(entry: Entry, study: Study, names: Sequence[str]) -> list[str]:
    """Rows of a question; after pairwise answers several options may be unbeaten."""
    if entry.status != "answered" or entry.answer is None:
        return [entry.status]
    said = entry.answer.verdicts(len(entry.options))
    if not study.plan.kind.compares:
        return [study.plan.kind.words[said[0]]]
    preferred = [name for name, verdict in zip(names, said, strict=True) if verdict == "good"]
    return preferred or ["only the worst" if "bad" in said else "can't decide"]


def _times(axis: Axes, entries: Sequence[Entry]) -> None:
    times = [(entry.id, entry.seconds) for entry in entries if entry.seconds is not None]
    questions, seconds = zip(*times, strict=True)
    axis.plot(questions, seconds, "o", color=INK, ms=4, clip_on=False)
    axis.set_ylabel("response\ntime (s)")
    if 0 < _FAST * min(seconds) < max(seconds):
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
    else:
        axis.set_ylim(0, 1.1 * max(seconds) or 1)
