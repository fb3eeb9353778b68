"""Candidates for a better rule of duels, on averaged kernels, at three levels of noise: is one of them ahead?

    python benchmarks/candidates.py --device cuda --workers 14
    python benchmarks/candidates.py --functions trid,ackley --replicates 4   # some of it, on a CPU

They are chosen by the functions of two dimensions that are odd in alphabetical order, so that a rule that is
ahead can be judged by the others.  None was: see docs/science.md.  So these rules are in candidate_rules.py
and not in the package.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from final_regrets import regrets

from askwise import plugins
from askwise.bench.campaign import Campaign
from askwise.bench.executors import Processes
from askwise.bench.experiments import Arm, Experiment
from askwise.bench.functions import named
from askwise.bench.published import PAPER
from askwise.bench.user import User

OUT = Path(__file__).resolve().parent.parent / "out" / "bench"
LEVELS = (1, 3, 10)
ODD = tuple(name for name in sorted(PAPER)[::2] if named(name).dim == 2)
RULES = (
    *("muc", "dueling_ucb", "duel_thompson", "eiig(k=0.1)", "eubo"),
    *("contender(weight=1.0)", "contender(weight=0.3)"),
    *("of_draws", "of_draws(repeats=4.0)", "of_draws(value='maximiser')"),
    "in_turn",
    "in_turn(first='muc', second='of_draws')",
    "in_turn(first='dueling_ucb', second='of_draws(repeats=4.0)')",
)


def experiment(times: int) -> Experiment:
    """All of them on functions with this standard deviation, in units of the noise."""
    return Experiment(
        f"candidates-{times}",
        "Candidates for a better rule",
        "Duels with averaged kernels.",
        tuple(Arm(rule, 2) for rule in RULES),
        *(20, 80, 5),
        *("standardised", "averaged", "value"),
        functions=ODD,
        user=User(noise=1 / times),
    )


def superiority(one: np.ndarray, other: np.ndarray) -> float:
    """How often a run of one ends above a run of the other, on average over functions."""
    apart = one[:, :, None] - other[:, None, :]
    return float((np.mean(apart < 0) + np.mean(apart <= 0)) / 2)


def table(found: list[dict[str, np.ndarray]]) -> list[str]:
    """Regrets at each level, and how often a run ends above one of each other rule, over all levels."""
    lines = []
    for rule in found[0]:
        cells = []
        for level in found:
            error = np.sqrt((level[rule].var(-1, ddof=1) / level[rule].shape[-1]).mean() / len(level[rule]))
            cells.append(f"{level[rule].mean():.3f} ± {1.96 * error:.3f}")
        others = [other for other in found[0] if other != rule]
        above = [np.mean([superiority(at[rule], at[other]) for at in found]) for other in others]
        lines.append(f"| `{rule}` | {' | '.join(cells)} | {min(above):.0%} to {max(above):.0%} |")
    return lines


def main() -> None:
    """Run them and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lanes", type=int, default=240)
    parser.add_argument("--functions")
    parser.add_argument("--replicates", type=int)
    parser.add_argument("--iterations", type=int)
    options = parser.parse_args()
    plugins.use("candidate_rules")
    functions = None if options.functions is None else tuple(options.functions.split(","))
    lengths = {"replicates": options.replicates, "iterations": options.iterations}
    for times in LEVELS:
        reduced = experiment(times).reduced(functions, **lengths)
        campaign = Campaign(reduced, OUT / reduced.name, options.device, options.lanes)
        campaign.run(Processes(options.workers), sys.stderr)
    print("\n".join(table([regrets(OUT / experiment(times).name) for times in LEVELS])))


if __name__ == "__main__":
    main()
