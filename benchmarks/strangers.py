"""Duels about ten functions that are in none of the lists, with learned and with averaged kernels.

    python benchmarks/strangers.py --device cuda --workers 14    # runs them, then writes the page
    python benchmarks/strangers.py --page                        # only docs/bench-strangers.md
    python benchmarks/strangers.py --kernels learned             # with learned kernels only; others are kept

No rule, prior or setting was chosen by these functions (random_functions.py).  Their standard deviation is
three noises.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from final_regrets import Regrets, regrets, together, within, within_both

from askwise import plugins
from askwise.bench.campaign import Campaign
from askwise.bench.effects import averages, superiority
from askwise.bench.executors import Processes
from askwise.bench.experiments import EXPERIMENTS, Experiment
from askwise.bench.functions import named
from askwise.bench.user import User

ROOT = Path(__file__).resolve().parent.parent
KEPT, PAGE = ROOT / "results" / "strangers" / "regrets.npz", ROOT / "docs" / "bench-strangers.md"
PRIORS = ("learned", "averaged")

HEAD = """# Functions that nothing was tuned on

`python benchmarks/strangers.py`: duels about ten random functions
([definition](../benchmarks/random_functions.py)): draws of Matern processes, smooth to rough, in two (4
functions), four (3) and eight (3) dimensions. Nothing in askwise was tuned on them. Their standard deviation
is three times that of the noise; {iterations} duels in each run. Runs of each rule and function: {runs}.
Regret: 0 is the best point, 1 an average one. *Beats MUC*: how often a run ends above one of `muc` with the
same kind of kernel. Intervals of 95% are for these functions; after a semicolon, and in the last column of
the first tables, for functions like these.
"""


def experiment(prior: str) -> Experiment:
    """All rules for duels on these functions."""
    import random_functions

    return Experiment(
        f"strangers-{prior}",
        "Duels about functions of no list",
        "Random draws of smooth and rough processes.",
        EXPERIMENTS["pbo"].arms,
        *(20, 80, 5),
        *("standardised", prior, "value"),  # type: ignore[arg-type]
        functions=random_functions.NAMES,
        user=User(noise=1 / 3),
    )


def table(found: Regrets) -> list[str]:
    """Regrets by rule, the lowest first, and how often a run beats one of MUC."""
    means, medians = averages(found), averages(found, np.median)
    above = superiority({rule: -values[..., None] for rule, values in found.items()})
    lines = ["| rule | mean regret | median regret | beats MUC | functions like these |", "|" + "---|" * 5]
    for rule in sorted(found, key=lambda rule: means.each[rule].fixed.mean):
        chance = above.of(rule, "muc")
        beats = ("", "") if rule == "muc" else (within(chance.fixed, 2), within(chance.drawn, 2))
        cells = within(means.each[rule].fixed), within(medians.each[rule].fixed), *beats
        lines.append(f"| `{rule}` | {' | '.join(cells)} |")
    return lines


def by_dimension(found: dict[str, Regrets], functions: list[str]) -> list[str]:
    """Mean regret of the rules in each dimension."""
    dims = np.array([named(name).dim for name in functions])
    columns = [(prior, d) for prior in found for d in sorted({*dims.tolist()})]
    head = " | ".join(f"{prior}, {d}-D" for prior, d in columns)
    lines = [f"| rule | {head} |", "|" + "---|" * (1 + len(columns))]
    for rule in found["learned"]:
        known = ((found[prior].get(rule), d) for prior, d in columns)
        cells = " | ".join("" if runs is None else f"{runs[dims == d].mean():.3f}" for runs, d in known)
        lines.append(f"| `{rule}` | {cells} |")
    return lines


def kernels(found: dict[str, Regrets], functions: list[str]) -> list[str]:
    """What averaging changes, for all rules that were run with both, by dimension, and rule by rule."""
    lines = ["| rule | difference of mean regrets | an averaged run beats a learned one |", "|---|---|---|"]
    dims = np.array([named(name).dim for name in functions])
    both = tuple(rule for rule in found["learned"] if rule in found["averaged"])
    rows = {f"these {len(both)} together": (both, dims > 0)}
    rows |= {f"together, {d}-D": (both, dims == d) for d in sorted({*dims.tolist()})}
    rows |= {f"`{rule}`": ((rule,), dims > 0) for rule in both}
    for title, (rules, where) in rows.items():
        pair = {prior: together(found[prior], rules)[where] for prior in PRIORS}
        change = averages(pair).differences.of("averaged", "learned")
        above = superiority({prior: -values[..., None] for prior, values in pair.items()})
        chance = above.of("averaged", "learned")
        cells = within_both(change.fixed, change.drawn), within_both(chance.fixed, chance.drawn, 2)
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def page() -> str:
    """The whole page, from the committed regrets."""
    with np.load(KEPT) as kept:
        functions = kept["functions"].tolist()
        found: dict[str, Regrets] = {}
        for name in kept.files:
            prior, _, rule = name.partition(" ")
            if rule:
                found.setdefault(prior, {})[rule] = kept[name]
        iterations = int(kept["iterations"])
    runs = " and ".join(f"{each['muc'].shape[1]} with {prior} kernels" for prior, each in found.items())
    parts = [HEAD.format(iterations=iterations, runs=runs)]
    parts += [f"## Kernels {prior}\n\n" + "\n".join(table(each)) + "\n" for prior, each in found.items()]
    if len(found) > 1:
        parts.append("## Averaged or learned\n\n" + "\n".join(kernels(found, functions)) + "\n")
    parts.append("## Mean regret by dimension\n\n" + "\n".join(by_dimension(found, functions)) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Run them, keep the regrets, write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lanes", type=int)
    parser.add_argument("--kernels", nargs="+", choices=PRIORS, default=PRIORS)
    parser.add_argument("--rules", nargs="+")
    parser.add_argument("--replicates", type=int)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--work", type=Path, default=ROOT / "out" / "bench")
    parser.add_argument("--out", type=Path, default=KEPT)
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    plugins.use("random_functions", Path(__file__).parent)
    if options.page:
        PAGE.write_text(page())
        return
    kept: dict[str, np.ndarray] = dict(np.load(options.out)) if options.out.exists() else {}
    for prior in options.kernels:
        rules = None if options.rules is None else tuple(options.rules)
        lengths = {"replicates": options.replicates, "iterations": options.iterations}
        reduced = experiment(prior).reduced(rules=rules, **lengths)
        campaign = Campaign(reduced, options.work / reduced.name, options.device, options.lanes)
        campaign.run(Processes(options.workers), sys.stderr)
        kept |= {f"{prior} {rule}": values for rule, values in regrets(options.work / reduced.name).items()}
        kept |= {"functions": np.array(reduced.functions), "iterations": np.array(reduced.iterations)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(options.out, **kept)  # type: ignore[arg-type]
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
