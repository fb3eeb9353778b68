"""Find the best of a hidden 2-D taste by asking thirty times "which of these two is better?".

The user is simulated: it has a taste that askwise never sees, and answers with probit noise.
Each question pits the likely best point against the one whose duel is hardest to foresee
(the paper's Maximally Uncertain Challenge).  Run with ``make demo``.
"""

import math
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from torch import Tensor

import askwise as aw
from askwise.bfgs import minimize
from askwise.seeds import generator

ANSWERS, AT_RANDOM, OUT = 30, 4, Path("out")


def taste(x: Tensor) -> Tensor:
    """How good a setting is to the simulated user: a high hill and a lower one."""
    high = 5.0 * torch.exp(-((x - torch.tensor([0.72, 0.34])) / 0.22).square().sum(-1))
    low = 3.0 * torch.exp(-((x - torch.tensor([0.22, 0.75])) / 0.25).square().sum(-1))
    return high + low


def maximiser(score: Callable[[Tensor], Tensor], extra: Tensor) -> Tensor:
    """The best point of the unit square: Sobol points and some more, the best eight polished."""
    sobol = torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(512, dtype=torch.float64)
    with torch.no_grad():
        candidates = torch.cat([sobol, extra])
        starts = candidates[score(candidates).topk(8).indices]

    def downhill(x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_()
        value = -score(x)
        return value.detach(), torch.autograd.grad(value.sum(), x)[0]

    ends, values = minimize(downhill, starts, torch.zeros_like(starts), torch.ones_like(starts))
    return ends[values.argmin()]


def question(belief: aw.Belief) -> Tensor:
    """The likely best point, and the challenger whose duel with it is hardest to foresee."""
    champion = maximiser(belief.mean, belief.data.points)

    def doubt(x: Tensor) -> Tensor:
        return aw.numerics.log_epistemic_variance(*belief.difference(x, champion.expand_as(x)))

    return torch.stack([champion, maximiser(doubt, belief.data.points)])


def answer(duel: Tensor, source: torch.Generator) -> int:
    """1 if the simulated user likes the first better, which it says with probit noise."""
    noise = torch.randn((), generator=source, dtype=torch.float64)
    return int(taste(duel[0]) - taste(duel[1]) + noise > 0)


def progress(count: int, champion: Tensor, best: float) -> None:
    """One line that is written over again and again, or plain lines where that is not possible."""
    share = float(taste(champion)) / best
    line = f"answer {count:2d} of {ANSWERS}   best guess ({champion[0]:.3f}, {champion[1]:.3f})"
    line += f"   worth {share:4.0%} of the hidden best"
    if sys.stdout.isatty():
        print("\r" + line, end="" if count < ANSWERS else "\n", flush=True)
    elif count % 5 == 0:
        print(line, flush=True)


def optimise() -> tuple[aw.Belief, Tensor]:
    """Ask, take the answer, learn; thirty times."""
    source = generator("demo")
    grid = torch.cartesian_prod(*[torch.linspace(0, 1, 401, dtype=torch.float64)] * 2)
    best = float(taste(grid).max())
    duel = torch.rand(2, 2, generator=source, dtype=torch.float64)
    data = aw.Data.duels(duel[None], [answer(duel, source)])
    kernel = aw.fit(data, "se").kernel
    for count in range(2, ANSWERS + 1):
        belief = aw.infer(data, kernel)
        if count <= AT_RANDOM:
            duel = torch.rand(2, 2, generator=source, dtype=torch.float64)
        else:
            duel = question(belief)
        data = data + aw.Data.duels(duel[None], [answer(duel, source)])
        kernel = aw.fit(data, kernel).kernel
        belief = aw.infer(data, kernel)
        champion = maximiser(belief.mean, data.points)
        progress(count, champion, best)
    return belief, champion


def picture(belief: aw.Belief, champion: Tensor, path: Path) -> None:
    """What was hidden, what is believed, and where the next duel would teach most."""
    side = torch.linspace(0, 1, 101, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    doubt = aw.numerics.epistemic_variance(*belief.difference(grid, champion.expand_as(grid))).sqrt()
    maps = {
        "the hidden taste": taste(grid),
        "what 30 answers tell of it": belief.mean(grid),
        "doubt that the next duel can remove": doubt,
    }
    figure, axes = plt.subplots(1, 3, figsize=(12.5, 4.1), layout="constrained")
    points = belief.data.points
    for axis, (title, values) in zip(axes, maps.items(), strict=True):
        image = values.reshape(101, 101).T.numpy()
        drawn = axis.contourf(side, side, image, levels=16, cmap="cividis")
        figure.colorbar(drawn, ax=axis, shrink=0.85, format="%.2g")
        axis.set(title=title, xlabel="first parameter", aspect="equal", xticks=(0, 1), yticks=(0, 1))
    for axis in axes[1:]:
        axis.plot(*points.T, "o", ms=4, mfc="white", mec="black", mew=0.6, label="asked")
        axis.plot(*champion, "*", ms=17, mfc="#d55e00", mec="white", label="recommended")
    axes[0].set_ylabel("second parameter")
    axes[1].legend(loc="lower left", framealpha=0.9)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Run the demonstration."""
    torch.set_num_threads(1)
    belief, champion = optimise()
    mean, var = belief.moments(champion[None])
    print(f"\nrecommended: ({champion[0]:.3f}, {champion[1]:.3f}); the hidden best is at (0.72, 0.34)")
    print(f"believed worth {mean.item():.2f} +- {math.sqrt(var.item()):.2f} above average")
    middle = torch.full_like(champion, 0.5)
    wins = belief.success_probability(champion[None], middle[None]).item()
    print(f"it beats the middle of the square with probability {wins:.2f}")
    picture(belief, champion, OUT / "demo.png")
    print(f"picture: {OUT / 'demo.png'}")


if __name__ == "__main__":
    main()
