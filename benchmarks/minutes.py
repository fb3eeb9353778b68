"""Which kind of question brings most in a person's minute: a duel, the best, the worst, or a ranking of four?

python benchmarks/minutes.py    # writes docs/bench-minutes.md and its figure from what `people.py` found
"""

import io
import math
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from people import NAMES, QUESTIONS, REPLICATES, SIZE, SPREAD, interval, preferred, results
from PIL import Image

from askwise.bench.functions import FUNCTIONS
from askwise.plots.style import BLUE, GREY, ORANGE, RED, STYLE, legend_below
from askwise.study import KINDS, Pace

DOCS = Path(__file__).resolve().parent.parent / "docs"
RULES = {"duel": "muc", "best": "muc_joint", "worst": "muc_joint", "ranking": "muc_joint"}
LOOKS = {"duel": (BLUE, "-"), "best": (RED, "--"), "worst": (GREY, ":"), "ranking": (ORANGE, "-.")}
PACES = {
    "a glance": Pace(look=0.5),
    "as assumed by `askwise simulate`": Pace(),
    "sounds of 8 seconds": Pace(look=8.0),
    "comparisons twice as slow": Pace(compare=3.0),
}
DRAWN = ("a glance", "as assumed by `askwise simulate`", "sounds of 8 seconds")
PARTS = (0.25, 0.5, 1.0)

HEAD = f"""# Minutes of a person's time

`make bench-minutes`. Simulated people answer duels, name the best or the worst of {SIZE}, or rank them,
each with the default rule of a study (`muc`, or `muc_joint`) and its default start (10 duels or 2 batches
that fill the space); kernels are those of highest posterior. Their utilities are the benchmark functions of
2 parameters ({{flat}} of them) and of 3 and 4 ({{deep}}), with a standard deviation of {SPREAD:g} times
the noise of a duel; {REPLICATES} replicates each.

## How long a question takes

These seconds are assumptions. `askwise simulate --minutes` takes yours.

    seconds = turn + look x options + compare x comparisons,    turn = 1, look = 2, compare = 1.5

A duel is one comparison. Naming the best or the worst of m takes m - 1. Sorting m takes the next whole
number above log2(m!), 5 for four: nobody can do with fewer in the worst case, and for up to 11 that many
suffice (Knuth 1998, section 5.3.1). What is known of people:

- People who choose among 9 to 36 snacks look from one to another, and tend to choose what they have looked
  at for longer (Thomas, Molter & Krajbich 2021). So we take time to grow with the number of options. That
  it grows with the logarithm alone holds for practised responses to signals that need no judgement (Hick
  1952; Hyman 1953).
- Of four methods to judge the quality of images, the choice between two was the most accurate, and with a
  moderate number of conditions took the least time (Mantiuk, Tomaszewska & Mantiuk 2012).
- To rank items takes longer than to rate them (Krosnick & Presser 2010 review this), and how much longer
  depends on how ranks are entered (Blasius 2012).

We know of no measurement of all four kinds about the same things. A study keeps the seconds of every
answer (`askwise export`).

## What the same time brings

![Regret and how often the true best is preferred, by minutes](bench-minutes.png)

*Regret*: value of the best setting minus that of the recommended one, in standard deviations of the
function; mean over functions, a few of which, that nothing solves, contribute most. *True best preferred*:
how often somebody would prefer the true best to the recommended setting; 50% is no better. *Minus duels*: the
difference after the whole time, with a 95% interval by resampling functions and replicates; negative is
better. Above the figure: seconds of a duel, the best and a ranking. Its bands: 95%
intervals of the mean for these functions, by resampling replicates.

"""


TAIL = """
**By mean regret, duels, the best and rankings of four cannot be told apart**: at the assumed pace the 95%
interval of the difference from duels is -0.3 to +0.2 for rankings after a quarter of the time, and -0.2 to
+0.3 in the end. Naming the worst has a higher regret than all others after a quarter, by
0.4 to 0.5 (95% intervals within 0.1 to 0.7).

**By how often the true best is preferred, rankings bring most and duels least.** With two parameters at the
assumed pace, it is preferred less often than with duels by 5 points for rankings (2 to 7) and by 4 for the
best of four (1 to 7) after a quarter of the time. In the end rankings are ahead by 1.6 to 3.0 points; in
two of four paces the interval includes zero, as it does for the best of four in all. This measure was
added when the runs had been seen: it weighs small regrets, mean regret the few functions that nothing
solves.

Part of the early lead is the start: ten space-filling duels are 65 seconds, two batches of four 27 to 33.
And here people are as careful with four options as with two. If yours are not, duels gain.

The runs are those of [batches answered by a winner or a ranking](bench-answers.md); the worst of four was
not run in 3 and 4 parameters.
"""


def regrets(kind: str, dims: tuple[int, ...]) -> np.ndarray:
    """Regret [function, replicate, question] of the functions of these dimensions."""
    chosen = [number for number, name in enumerate(NAMES) if FUNCTIONS[name].dim in dims]
    return results()[f"{RULES[kind]}, {kind}"][chosen]


def seconds(kind: str, pace: Pace) -> float:
    """What a question takes."""
    return pace.seconds(KINDS[kind], KINDS[kind].size(SIZE))


def whole_time(pace: Pace) -> float:
    """Minutes in which all kinds have been asked as often as they were simulated, or less."""
    return min(QUESTIONS[kind] * seconds(kind, pace) for kind in RULES) / 60


def at(values: np.ndarray, minutes: float, each: float) -> np.ndarray:
    """The values after this time, of questions that take ``each`` seconds."""
    found: np.ndarray = values[..., math.floor(60 * minutes / each + 1e-9) - 1]
    return found


def rows(name: str, pace: Pace, dims: tuple[int, ...], kinds: tuple[str, ...]) -> list[str]:
    """The rows of one pace."""
    whole, lines = whole_time(pace), []
    duels = preferred(at(regrets("duel", dims), whole, seconds("duel", pace)))
    for kind in kinds:
        each, values = seconds(kind, pace), regrets(kind, dims)
        marks = [at(values, part * whole, each) for part in PARTS]
        gap = preferred(marks[-1]) - duels
        low, high = interval(gap)
        beside = "" if kind == "duel" else f"{gap.mean():+.1%} ({low:+.1%} to {high:+.1%})"
        cells = [f"{mark.mean():.2f}, {preferred(mark).mean():.0%}" for mark in marks]
        title, count = KINDS[kind].title.format(SIZE), math.floor(60 * whole / each + 1e-9)
        lines.append(f"| {name} | {title} | {each:g} | {count} | {' | '.join(cells)} | {beside} |")
        name = ""
    return lines


def table(dims: tuple[int, ...], kinds: tuple[str, ...], paces: dict[str, Pace]) -> str:
    """Regret and preference after a quarter, a half and the whole of the time."""
    head = "| pace | question | seconds | answers | a quarter | half | whole time | minus duels |"
    lines = [head, "|---" * 8 + "|"]
    for name, pace in paces.items():
        lines += rows(f"{name}: {whole_time(pace):.1f} minutes", pace, dims, kinds)
    return "\n".join(lines) + "\n"


def figure() -> Figure:
    """Both measures by minutes, for several paces; functions of two parameters."""
    with mpl.rc_context(STYLE):
        made = Figure(figsize=(9.5, 6.0), layout="constrained")
        axes = made.subplots(2, len(DRAWN), sharey="row", squeeze=False)
        for column, name in enumerate(DRAWN):
            for row, measure in enumerate((lambda regret: regret, preferred)):
                _draw(axes[row, column], PACES[name], measure)
            each = ", ".join(f"{seconds(kind, PACES[name]):g}" for kind in ("duel", "best", "ranking"))
            axes[0, column].set_title(f"{name.replace('`', '')}\n({each} s)")
            axes[1, column].set_xlabel("minutes")
        axes[0, 0].set_ylabel("regret (standard deviations)")
        axes[1, 0].set_ylabel("true best preferred")
        axes[1, 0].yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        legend_below(made, axes.flat, 4)
        return made


def _draw(axis: Axes, pace: Pace, measure: Callable[[np.ndarray], np.ndarray]) -> None:
    source = np.random.default_rng(0)
    for kind, (colour, dash) in LOOKS.items():
        values = measure(regrets(kind, (2,)))
        each = seconds(kind, pace) / 60
        count = math.floor(whole_time(pace) / each + 1e-9)
        minutes = each * np.arange(1, count + 1)
        shown, means = values[..., :count], []
        for _ in range(400):
            some = source.integers(REPLICATES, size=shown.shape[:2])
            means.append(np.take_along_axis(shown, some[..., None], 1).mean((0, 1)))
        low, high = np.quantile(means, [0.025, 0.975], axis=0)
        axis.fill_between(minutes, low, high, color=colour, alpha=0.15, lw=0)
        title = KINDS[kind].title.format(SIZE)
        axis.plot(minutes, shown.mean((0, 1)), color=colour, ls=dash, lw=1.8, label=title)
    axis.set_xlim(left=0)
    if measure is preferred:
        axis.set_ylim(0.62, 0.9)
    else:
        axis.set_ylim(0.8, 2.2)


def main() -> None:
    """Write the page and its figure."""
    dims = [FUNCTIONS[name].dim for name in NAMES]
    page = HEAD.format(flat=dims.count(2), deep=len(dims) - dims.count(2))
    page += "Functions of 2 parameters:\n\n" + table((2,), ("duel", "best", "worst", "ranking"), PACES)
    one = {"as assumed": Pace()}
    page += "\nFunctions of 3 and 4 parameters:\n\n" + table((3, 4), ("duel", "best", "ranking"), one)
    drawn = io.BytesIO()
    figure().savefig(drawn, dpi=100)
    small = Image.open(drawn).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(DOCS / "bench-minutes.png", optimize=True)
    print(page)
    (DOCS / "bench-minutes.md").write_text(page + TAIL, encoding="utf-8")


if __name__ == "__main__":
    main()
