"""Tune a hearing aid by asking thirty times "which of these two sounds better?".

The listener is simulated: it has a taste that askwise never sees, and answers with noise.  Each
question pits the setting that is likely best against the one whose duel with it is most
uncertain (the paper's Maximally Uncertain Challenge).  Run with ``make demo``.
"""

import math
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from torch import Tensor

import askwise as aw
from askwise.numerics.seeds import generator
from askwise.plots.style import GOOD, UNSURE

ANSWERS, OUT = 30, Path("out")
SPACE = aw.Space(gain=aw.Real(0, 40), cutoff=aw.Real(100, 10_000, log=True))
LIKED = {"gain": 28.0, "cutoff": 500.0}
TICKS = (100, 200, 500, 1000, 2000, 5000, 10_000)
BOX = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8}


def taste(x: Tensor) -> Tensor:
    """How good a setting is to the listener, over the unit square: a high hill and a lower one."""
    high = 5.0 * torch.exp(-((x - SPACE.unit(LIKED)) / 0.22).square().sum(-1))
    low = 3.0 * torch.exp(-((x - torch.tensor([0.22, 0.75])) / 0.25).square().sum(-1))
    return high + low


def preferred(question: aw.Question, source: torch.Generator) -> int:
    """The option that the listener prefers: the better one, the more likely the larger the difference."""
    first, second = (float(taste(SPACE.unit(option))) for option in question.options)
    chance = 0.5 * math.erfc((second - first) / math.sqrt(2))
    return int(torch.rand((), generator=source) >= chance)


def progress(count: int, best: aw.Best) -> None:
    """Say how good the recommended setting really is, once in a while and at the end."""
    worth = float(taste(SPACE.unit(best.params)) / taste(SPACE.unit(LIKED)))
    here = f"gain {best.params['gain']:4.1f} dB, cutoff {best.params['cutoff']:5.0f} Hz"
    line = f"after {count:2d} answers: {here}, worth {worth:4.0%} of the hidden best"
    print(line, end="\n" if count % 5 == 0 or not sys.stdout.isatty() else "\r", flush=True)


def picture(study: aw.Study, best: aw.Best, path: Path) -> None:
    """The hidden taste, its posterior, and where the next duel would be most informative."""
    side = torch.linspace(0, 1, 101, dtype=torch.float64)
    grid, belief = torch.cartesian_prod(side, side), study.belief()
    champion = SPACE.unit(best.params)
    uncertainty = aw.numerics.epistemic_variance(*belief.difference(grid, champion.expand_as(grid))).sqrt()
    maps = {
        "the hidden taste": (taste(grid), GOOD),
        f"what {ANSWERS} answers say about it": (belief.mean(grid), GOOD),
        "uncertainty that the next duel can reduce": (uncertainty, UNSURE),
    }
    figure, axes = plt.subplots(1, 3, figsize=(12.5, 4.1), layout="constrained")
    gain, cutoff = 40 * side, 100 * 100**side
    for axis, (title, (values, colours)) in zip(axes, maps.items(), strict=True):
        drawn = axis.contourf(gain, cutoff, values.reshape(101, 101).T, levels=16, cmap=colours)
        figure.colorbar(drawn, ax=axis, shrink=0.85, format="%.2g")
        axis.set(title=title, xlabel="gain, dB", yscale="log")
        axis.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    asked = [SPACE.natural(point) for point in belief.data.points]
    for axis in axes[1:]:
        places = [[option[name] for option in asked] for name in ("gain", "cutoff")]
        axis.plot(*places, "o", ms=4, mfc="white", mec="black", mew=0.6, label="asked", clip_on=False)
        axis.plot(*best.params.values(), "*", ms=17, mfc="#d55e00", mec="black", label="recommended")
    value = f"{best.params['gain']:.1f} dB\n{best.params['cutoff']:.0f} Hz"
    place = tuple(best.params.values())
    axes[1].annotate(value, place, (12, -8), textcoords="offset points", va="top", bbox=BOX)
    axes[0].set_ylabel("cutoff, Hz")
    axes[1].legend(loc="lower left", framealpha=0.9)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Run the demonstration."""
    torch.set_num_threads(1)
    study, source = aw.Study(SPACE, feedback="duel", rule="muc", seed=1), generator("demo")
    for count in range(1, ANSWERS + 1):
        question = study.ask()
        study.tell(question, preferred(question, source))
        if count % 5 == 0:
            best = study.best()
            progress(count, best)
    found = f"gain {best.params['gain']:.1f} dB, cutoff {best.params['cutoff']:.0f} Hz"
    picture(study, best, OUT / "demo.png")
    print(f"\nRecommended: {found}, which beats a setting at random in {best.probability:.0%} of duels.")
    hidden = f"{LIKED['gain']:.0f} dB, {LIKED['cutoff']:.0f} Hz"
    print(f"Picture: {OUT / 'demo.png'}, which also shows the hidden taste (best at {hidden}).")
    print("Now you: `make serve` opens a page on which you choose flowers, and finds the one you like best.")


if __name__ == "__main__":
    main()
