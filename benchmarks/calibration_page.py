"""Tables and figure of docs/calibration.md, from the rows of benchmarks/calibration.py.

An interval is of 95%, by a bootstrap over functions: studies of one function are alike.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

import askwise as aw
from askwise.bench.published import PAPER
from askwise.plots.style import BLUE, GREY, INK, ORANGE, RED, STYLE
from askwise.study import FEEDBACKS, Outlook, Plan, expectations
from askwise.study.recommendation import SURE as SURE_NOW
from askwise.study.recommendation import hint

DOCS = Path(__file__).resolve().parent.parent / "docs"
EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
RESAMPLES = 1000
SURE = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95, 0.97)
FEWEST = 5  # answers per parameter, before which nobody is told to stop
SHOWN = 10  # statements in a bin, below which the figure leaves it out
AIM = 0.9
PROMISED = {"duel": 0.05, "binary": 0.01}  # "you may stop" is right if fewer are better: Feedback.held
REPLICATES = 10
LOOKS = {1: (BLUE, "o"), 3: (ORANGE, "s"), 10: (RED, "^")}
NAMES = {"duel": "duels", "binary": "yes/no"}
QUANTITIES = {  # what a study says, in a table and above a panel, and the truth
    "random": ("preferred to a setting at random (yes/no: works)", "beats a random one\n(yes/no: works)"),
    "reference": ("preferred to the reference (yes/no: better)", "beats the reference\n(yes/no: is better)"),
    "better": ("better than the reference", ""),
    "ordinary": ("better than one setting at random", ""),
    "best": ("no setting asked about is better", "no setting asked\nabout is better"),
    "few": ("fewer than 1 in 100 settings are noticeably better", "few settings are\nnoticeably better"),
    "rate": ("duels that the best setting wins (yes/no: succeeds more often)", "rate of the\nbest setting"),
}
Rows = np.ndarray
Said = Callable[[Rows], Bool[np.ndarray, " n"]]


@dataclass(frozen=True)
class Share:
    """An average, with its interval."""

    count: int
    value: float
    interval: tuple[float, float]

    def __str__(self) -> str:
        """In percent."""
        low, high = self.interval
        return f"{self.value:.0%} ({low:.0%} to {high:.0%})" if self.count else ""


@dataclass(frozen=True)
class Bin:
    """Statements of about the same probability, and how often they were true."""

    said: float
    true: Share


def share(true: Float[np.ndarray, " n"], group: Sequence[object] | np.ndarray) -> Share:
    """The average of what is true, between 0 and 1, with an interval over groups."""
    if len(true) == 0:
        return Share(0, np.nan, (np.nan, np.nan))
    _, index = np.unique(np.asarray(group), return_inverse=True)
    sums, counts = np.bincount(index, true), np.bincount(index)
    groups = len(counts)
    drawn = np.random.default_rng(0).multinomial(groups, np.full(groups, 1 / groups), RESAMPLES)
    means = (drawn @ sums) / (drawn @ counts)
    low, high = np.quantile(means, (0.025, 0.975))
    return Share(len(true), float(np.mean(true)), (float(low), float(high)))


def reliability(
    said: Float[np.ndarray, " n"],
    true: Float[np.ndarray, " n"],
    group: Sequence[object] | np.ndarray,
    edges: Sequence[float] = EDGES,
) -> list[Bin]:
    """How often statements were true, by the probability that was said (not a number if none was).

    Empty bins are left out.
    """
    place = np.clip(np.digitize(said, edges[1:-1]), 0, len(edges) - 2)
    place[np.isnan(said)] = -1  # was not said
    named = np.asarray(group)
    found = []
    for number in np.unique(place[place >= 0]):
        some = place == number
        found.append(Bin(float(np.mean(said[some])), share(true[some], named[some])))
    return found


def calibration_error(bins: Sequence[Bin]) -> float:
    """Average distance of what was said from how often it was true."""
    counts = np.array([one.true.count for one in bins])
    apart = np.array([abs(one.said - one.true.value) for one in bins])
    return float((counts * apart).sum() / counts.sum())


# the hint


def noticeable(rows: Rows) -> Float[np.ndarray, " n"]:
    """The rate from which on a setting is noticeably better."""
    return np.array([FEEDBACKS[name].noticeable for name in rows["feedback"].tolist()])


def right(rows: Rows) -> Bool[np.ndarray, " n"]:
    """Whether few settings are noticeably better, as "you may stop" promises."""
    return rows["true_share"] < np.array([PROMISED[name] for name in rows["feedback"].tolist()])


def fewest(rows: Rows) -> Bool[np.ndarray, " n"]:
    """Whether as few are as the model says."""
    return rows["true_share"] < expectations.FEW


def none(rows: Rows) -> Bool[np.ndarray, " n"]:
    """Whether no setting at all is noticeably better, as it promised before."""
    return rows["true_rate"] < noticeable(rows)


def before(rows: Rows) -> Bool[np.ndarray, " n"]:
    """The hint as it was: the best setting is not expected to be noticeably better."""
    return (rows["rate"] < noticeable(rows)) & (rows["answers"] >= FEWEST * rows["d"])


def rule(sure: float) -> Said:
    """The hint with another probability from which on it says stop."""
    return lambda rows: (rows["few"] >= sure) & before(rows)


def now(rows: Rows) -> Bool[np.ndarray, " n"]:
    """What the hint of a study says."""
    said = []
    for row in rows:
        look = Outlook(*(float(row[name]) for name in ("gain", "regret", "rate", "few")))
        words = hint(_plan(str(row["feedback"]), int(row["d"])), int(row["answers"]), look)
        said.append(words.startswith("You may stop"))
    return np.array(said, dtype=bool)


@cache
def _plan(feedback: str, d: int) -> Plan:
    return Plan.checked(aw.Space(**{f"x{k}": aw.Real(0, 1) for k in range(d)}), feedback)


def first(rows: Rows, said: Bool[np.ndarray, " n"]) -> Rows:
    """The row of each study in which it says so for the first time."""
    some = np.sort(rows[said], order=["feedback", "function", "level", "replicate", "answers"])
    _, index = np.unique(some[["feedback", "function", "level", "replicate"]], return_index=True)
    return some[index]


def studies(rows: Rows) -> int:
    """Number of studies."""
    return len(np.unique(rows[["feedback", "function", "level", "replicate"]]))


def halves(rows: Rows) -> tuple[Rows, Rows]:
    """The paper's functions that are odd in alphabetical order, on which the hint is tuned, and even ones."""
    odd = np.isin(rows["function"], sorted(PAPER)[::2])
    return rows[odd], rows[~odd]


@dataclass(frozen=True)
class Verdict:
    """How often the hint was right."""

    once: Share
    """When it was first said."""
    ever: Share
    """Whenever it was said."""
    fewest: Share
    """How often as few were better as the model says, when it was first said."""
    none: Share
    """How often no setting at all was noticeably better, whenever it was said."""
    told: int
    """Studies that ever said it."""


def judged(rows: Rows, said: Said) -> Verdict:
    """How often the hint was right."""
    stop = said(rows)
    once, ever = first(rows, stop), rows[stop]

    def kept(promise: Said, some: Rows) -> Share:
        return share(promise(some).astype(float), some["function"])

    return Verdict(kept(right, once), kept(right, ever), kept(fewest, once), kept(none, ever), len(once))


def tuned(rows: Rows) -> float:
    """The lowest limit with which the hint is right on the odd functions as often as is aimed at.

    When first said and whenever said, for each kind of question of which some limit makes it so.
    """
    odd, _ = halves(rows)

    def reaches(some: Rows, sure: float) -> bool:
        found = judged(some, rule(sure))
        return not found.told or min(found.once.value, found.ever.value) >= AIM

    each = [{sure for sure in SURE if reaches(some, sure)} for _, some in of_kinds(odd)]
    return min(set.intersection(*filter(None, each)), default=np.inf)


# tables


def table(head: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def extent(rows: Rows) -> str:
    """What was simulated, and whether it is all that was planned."""
    said, whole = [], True
    for kind, some in of_kinds(rows):
        functions, each = len(np.unique(some["function"])), len(np.unique(some["replicate"]))
        whole = whole and functions == len(PAPER) and each >= REPLICATES
        said.append(
            f"{NAMES[kind]}: {functions} functions, {each} studies for each deviation, {studies(some)} in all"
        )
    planned = f", of {len(PAPER)} functions and {REPLICATES} studies that are planned"
    missing = " Without comparisons with one setting at random." if np.isnan(rows["ordinary"]).all() else ""
    return f"Simulated for this page{'' if whole else planned}: {'; '.join(said)}.{missing}"


def of_kinds(rows: Rows) -> list[tuple[str, Rows]]:
    """Duels and yes/no questions apart."""
    return [(kind, rows[rows["feedback"] == kind]) for kind in NAMES]


def reliabilities(rows: Rows) -> str:
    """Every quantity, in bins."""
    lines = []
    for kind, some in of_kinds(rows):
        for name, (words, _) in QUANTITIES.items():
            if name == "better" and kind == "binary":
                continue  # the same as the line before
            bins = reliability(some[name], truth(some, name), some["function"])
            if not bins:
                continue
            cells = [f"{one.said:.0%}: {one.true}, {one.true.count}" for one in bins]
            lines.append((NAMES[kind], words, f"{calibration_error(bins):.3f}", "<br>".join(cells)))
    return table(("study", "statement", "error", "said: true (interval), statements"), lines)


def truth(rows: Rows, name: str) -> Float[np.ndarray, " n"]:
    """What was true, for a quantity."""
    return (fewest(rows) if name == "few" else rows[f"true_{name}"]).astype(float)


def regrets(rows: Rows) -> str:
    """Expected and true regret by kind, noise and number of answers."""
    lines = []
    for kind, of_kind in of_kinds(rows):
        for level in LOOKS:
            some = of_kind[of_kind["level"] == level]
            cells = []
            for count in np.unique(some["answers"]):
                at = some[some["answers"] == count]
                cells.append(f"{at['regret'].mean():.2f} / {at['true_regret'].mean():.2f}")
            lines.append((NAMES[kind], level, *cells))
    return table(("study", "deviation", *(f"after {n}" for n in np.unique(rows["answers"]))), lines)


def tuning(rows: Rows) -> str:
    """The hint with other constants, on the odd functions."""
    lines = []
    odd, _ = halves(rows)
    for kind, some in of_kinds(odd):
        for sure in SURE:
            found = judged(some, rule(sure))
            told = f"{found.told} of {studies(some)}"
            lines.append((NAMES[kind], f"{sure:.1%}", found.once, found.ever, told))
    head = ("study", "limit", "right when first said", "whenever said", "studies that say it")
    return table(head, lines)


def hints(rows: Rows) -> str:
    """The hint as it was and as it is, on the functions it was tuned on and on the others."""
    lines = []
    for half, of_half in zip(("odd (tuned on)", "even"), halves(rows), strict=True):
        for kind, some in of_kinds(of_half):
            for name, said in (("before", before), ("now", now)):
                found = judged(some, said)
                shares = found.once, found.ever, found.fewest, found.none
                lines.append((half, NAMES[kind], name, *shares, f"{found.told} of {studies(some)}"))
    head = ("functions", "study", "hint", "right, when first said", "whenever said")
    others = "fewer than 1 in 100, when first said", "none is better, whenever said", "studies that say it"
    return table((*head, *others), lines)


def by(rows: Rows, column: str) -> str:
    """The hint of studies about the even functions when first said, by something."""
    _, even = halves(rows)
    lines = []
    for value in np.unique(even[column]):
        cells: list[object] = [value]
        for _, some in of_kinds(even[even[column] == value]):
            once = first(some, now(some))
            cells += [f"{right(once).sum()} of {len(once)}", f"{none(once).sum()}", studies(some)]
        lines.append(cells)
    words = {"level": "deviation", "d": "parameters"}.get(column, column)
    head = [f"{name}: {what}" for name in NAMES.values() for what in ("right", "none is better", "studies")]
    return table([words, *head], lines)


# figure


@rc_context(STYLE)
def figure(rows: Rows) -> Figure:
    """Reliability of every quantity by noise, and expected against true regret."""
    panels = {name: words for name, (_, words) in QUANTITIES.items() if words}
    drawn = Figure(figsize=(12.5, 5), layout="constrained")
    axes = drawn.subplots(2, 1 + len(panels))
    for row, (kind, some) in zip(axes, of_kinds(rows), strict=True):
        for axis, (name, words) in zip(row, panels.items(), strict=False):
            axis.plot([0, 1], [0, 1], color=GREY, lw=0.8)
            _lines(axis, some, name)
            axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
            axis.set_title(words if axis in axes[0] else "")
        row[0].set_ylabel(f"{NAMES[kind]}\nhow often it was true")
        _regret(row[-1], some)
    for axis in axes[1]:
        axis.set_xlabel("what was said")
        axis.set_title("")
    marks, names = axes[0, 0].get_legend_handles_labels()
    words = "standard deviation of the utility, in units of the noise:"
    drawn.legend(marks, names, title=words, loc="outside lower center", ncols=len(names), title_fontsize=9)
    return drawn


def _lines(axis: Axes, rows: Rows, name: str) -> None:
    for level, (colour, mark) in LOOKS.items():
        some = rows[rows["level"] == level]
        every = reliability(some[name], truth(some, name), some["function"])
        bins = [one for one in every if one.true.count >= SHOWN]
        if not bins:
            continue
        x, y = [one.said for one in bins], [one.true.value for one in bins]
        ends = np.array([one.true.interval for one in bins]).T
        axis.vlines(x, *ends, color=colour, lw=0.8, alpha=0.6)
        axis.plot(x, y, mark + "-", color=colour, ms=4, lw=1, label=f"{level}")


def _regret(axis: Axes, rows: Rows) -> None:
    """Medians and quartiles of the true regret, by the expected one."""
    low, high = 0.03, 30
    axis.plot([low, high], [low, high], color=GREY, lw=0.8)
    edges = np.geomspace(low, high, 10)
    for level, (colour, mark) in LOOKS.items():
        some = rows[rows["level"] == level]
        place, points = np.digitize(some["regret"], edges), []
        for number in np.unique(place):
            at = some[place == number]
            if len(at) >= SHOWN:
                points.append((at["regret"].mean(), *np.quantile(at["true_regret"], (0.25, 0.5, 0.75))))
        if points:
            x, below, middle, above = np.clip(np.array(points), low, high).T
            axis.vlines(x, below, above, color=colour, lw=0.8, alpha=0.6)
            axis.plot(x, middle, mark + "-", color=colour, ms=4, lw=1)
    axis.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), aspect="equal")
    axis.set_title("true regret:\nmedian, quartiles", color=INK)


def write(path: Path) -> None:
    """Put the tables into the page and draw the figure."""
    rows = np.load(path)["rows"]
    tables = {
        "extent": extent(rows),
        "hints": hints(rows),
        "deviations": by(rows, "level"),
        "parameters": by(rows, "d"),
        "functions": by(rows, "function"),
        "reliability": reliabilities(rows),
        "regrets": regrets(rows),
        "tuning": tuning(rows),
    }
    page = DOCS / "calibration.md"
    text = page.read_text(encoding="utf-8")
    for name, found in tables.items():
        before_it, marker, rest = text.partition(f"<!-- {name} -->")
        text = f"{before_it}{marker}\n\n{found}\n\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    page.write_text(text, encoding="utf-8")
    drawn = BytesIO()
    figure(rows).savefig(drawn, dpi=110)
    small = Image.open(drawn).convert("RGB").quantize(64, dither=Image.Dither.NONE)  # a third of the size
    small.save(DOCS / "calibration.png", optimize=True)
    print(f"tuned on the odd functions: stop from {tuned(rows):.1%} on; the hint does from {SURE_NOW:.1%} on")
