"""What noise, averaged kernels and what people are like change, by rule, from the committed campaigns.

    python benchmarks/noise.py    # writes docs/bench-noise.md from results/

The campaigns are those of `askwise bench run`: pbo-learned and pbo-averaged, each also with a third and a
tenth of the noise, on the functions of two dimensions, which all of them have; pbo-lapses, pbo-ties and
pbo-raters; and yes/no questions and batches with learned and with averaged kernels.
"""

from pathlib import Path

import numpy as np
from final_regrets import Regrets, regrets, together, within, within_both

from askwise.bench.effects import averages, superiority
from askwise.bench.published import PAPER

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "results", ROOT / "docs" / "bench-noise.md"
SMOOTHNESS = RESULTS / "candidates" / "smoothness.npz"
LEVELS = {1: "", 3: "-3", 10: "-10"}
GOOD = (
    *("muc", "dueling_ucb", "bivariate_ei", "eubo", "eiig(k=0.1)", "max_entropy_challenge"),
    *("dueling_thompson", "duel_thompson"),
)
AIM = 0.55

HEAD = """# Duels at three levels of noise

`python benchmarks/noise.py`, from the campaigns `pbo-learned`, `pbo-averaged`, and both with `-3` and `-10`:
80 duels about each of the {functions} functions of two parameters, of which the first 5 are random. All rules
for duels were run, with either kind of kernels.
*Deviation*: the standard deviation of a function, in units of the noise of an answer. At 1 most duels of two
settings at random are close, at 10 most are certain. Runs of each rule and function: {runs}.

Regret: 0 is the best point, 1 an average one. Intervals are of 95%, for these functions; after a semicolon
for functions like these. *Above*: how often a run of the one ends above a run of the other.

"""
KERNELS = """## Averaged or learned kernels

*Learned* is the kernel of highest posterior, *averaged* the mean over eight drawn from the posterior
([averaged kernels](averaged-kernels.md)). *Eight rules*: all runs of those that are good with either,
{good}.
Negative differences: averaging is better.

"""
ROUGHER = """
## Rougher kernels to average over

Averages over kernels of Matern 3/2 beside those of Matern 5/2, which studies take; on functions that are odd
in alphabetical order, even, and both; 12 runs of each rule and function (`pbo-rough-3`, `pbo-rough-10`).
Negative differences: Matern 3/2 is better. The odd functions suggested it, so the even ones judge.

"""
RULES = """
## Rules on averaged kernels

Mean regret at each deviation and over the three. *Least above*: how often a run ends above one of
the rule's strongest opponent (mean over the deviations), and which rule that is.

"""
PEOPLE = """
## People who lapse, can't decide or differ

With learned kernels, on the functions of two parameters, deviation 3, 80 duels; each beside the same without
it (`pbo-learned-3`), which the model knows. Positive differences: it costs something.

"""
HABITS = {
    "pbo-lapses": ("Lapses", "5% of the answers are given without looking. The lapse rate is learned."),
    "pbo-ties": (
        "Ties",
        "Who feels a difference of less than half the noise can't decide and says so. The margin is learned.",
    ),
    "pbo-raters": (
        "Five people",
        (
            "They answer in turn; 30% of the variance of a taste is one's own, and what all like is sought. "
            "The population model learns this share, and how noisy each person is."
        ),
    ),
}
OTHERS = """
## Yes/no questions and batches, with averaged kernels

On the functions of two parameters, whose deviation is that of the noise: yes/no questions (100 of them;
`bbo-learned`, `bbo-averaged`) and batches of three, all comparisons of which are answered (30 batches;
`batch-learned`, `batch-averaged`). *Runs* of each function, learned/averaged.
Negative differences: averaging is better.

"""


def changes(name: str, of: tuple[str, ...], before: Regrets, after: Regrets) -> str:
    """A row: what changes for the runs of these rules."""
    pair = {"before": together(before, of), "after": together(after, of)}
    means = averages(pair)
    change = means.differences.of("after", "before")
    chance = superiority({k: -v[..., None] for k, v in pair.items()}).of("after", "before")
    cells = [f"{means.each[which].fixed.mean:.3f}" for which in pair]
    cells += [within_both(change.fixed, change.drawn), within_both(chance.fixed, chance.drawn, 2)]
    return f"| {name} | {' | '.join(cells)} |"


def groups(found: Regrets) -> dict[str, tuple[str, ...]]:
    """All good rules together, and each rule."""
    return {"eight rules": GOOD} | {f"`{rule}`": (rule,) for rule in found}


def kernels(found: dict[tuple[str, int], Regrets]) -> list[str]:
    """What averaging changes."""
    lines = ["| rule | deviation | learned | averaged | difference | above |", "|---|---|---|---|---|---|"]
    return lines + [
        changes(f"{name} | {level}", of, found["learned", level], found["averaged", level])
        for name, of in groups(found["averaged", 1]).items()
        for level in LEVELS
    ]


def habits() -> list[str]:
    """What it changes that people lapse, can't decide or differ."""
    plain, lines = regrets(RESULTS / "pbo-learned-3", (2,)), []
    for name, (title, about) in HABITS.items():
        after = regrets(RESULTS / name, (2,))
        lines += [f"### {title}", "", f"{about} `{name}`, {after['muc'].shape[1]} runs.", ""]
        lines += ["| rule | without | with | difference | above |", "|---|---|---|---|---|"]
        lines += [*(changes(group, of, plain, after) for group, of in groups(after).items()), ""]
    return lines[:-1]


def others() -> list[str]:
    """What averaging changes for yes/no questions and batches."""
    lines = ["| | rule | runs | learned | averaged | difference | above |", "|---|---|---|---|---|---|---|"]
    for kind, title in (("bbo", "yes/no"), ("batch", "batches")):
        before, after = (regrets(RESULTS / f"{kind}-{prior}", (2,)) for prior in ("learned", "averaged"))
        good = tuple(rule for rule in after if rule != "random")
        both = {f"all but `random` | {_runs(before, good)}/{_runs(after, good)}": good}
        both |= {f"`{rule}` | {_runs(before, (rule,))}/{_runs(after, (rule,))}": (rule,) for rule in after}
        lines += [changes(f"{title} | {name}", of, before, after) for name, of in both.items()]
    return lines


def rougher() -> list[str]:
    """What Matern 3/2 changes where kernels are averaged, for halves of the functions and by rule."""
    with np.load(SMOOTHNESS) as kept:
        names, held = kept["functions"].tolist(), {key: kept[key] for key in kept.files}
    odd = np.isin(names, sorted(PAPER)[::2])
    cells = [key.split()[1:] for key in held if key.startswith("matern32")]
    lines = [
        "| functions | rule, deviation | Matern 5/2 | Matern 3/2 | difference | above |",
        "|" + "---|" * 6,
    ]
    for title, half in (("odd", odd), ("even", ~odd), ("both", odd | ~odd)):
        each = {family: _cells(held, family, half) for family in ("matern52", "matern32")}
        lines.append(changes(f"{title} | all below", tuple(each["matern52"]), *each.values()))
    each = {family: _cells(held, family, odd | ~odd) for family in ("matern52", "matern32")}
    for level, rule in sorted(cells, key=lambda cell: (int(cell[0]), cell[1])):
        lines.append(changes(f"both | `{rule}`, {level}", (f"{level} {rule}",), *each.values()))
    return lines


def _cells(held: dict[str, np.ndarray], family: str, half: np.ndarray) -> Regrets:
    """Regrets with this family of kernels, by deviation and rule, on half of the functions."""
    return {key.partition(" ")[2]: held[key][half] for key in held if key.startswith(family)}


def _runs(found: Regrets, rules: tuple[str, ...]) -> int:
    """Runs of each function."""
    return sum(found[rule].shape[1] for rule in rules)


def wins(found: Regrets, names: list[str]) -> np.ndarray:
    """How often a run of the rule of the row ends above one of that of the column; of itself always."""
    above = superiority({rule: -values[..., None] for rule, values in found.items()}, 10)
    each = [[above.of(one, other).fixed.mean for other in names] for one in names]
    return np.where(np.eye(len(names)) > 0, 1.0, each)


def rules(found: dict[int, Regrets]) -> list[str]:
    """Regrets of every rule, and how far it is ahead of each other one."""
    names = [*found[1]]
    each = {level: averages(of).each for level, of in found.items()}
    above = np.mean([wins(of, names) for of in found.values()], axis=0)
    lines = [
        "| rule | " + " | ".join(f"deviation {level}" for level in found) + " | mean | least above, of |",
        "|" + "---|" * (3 + len(found)),
    ]
    total = {rule: np.mean([each[level][rule].fixed.mean for level in found]) for rule in names}
    for rule in sorted(names, key=lambda rule: total[rule]):
        row = above[names.index(rule)]
        cells = [within(each[level][rule].fixed) for level in found] + [f"{total[rule]:.3f}"]
        cells += [f"{row.min():.0%}, `{names[int(row.argmin())]}`"]
        lines.append(f"| `{rule}` | {' | '.join(cells)} |")
    ahead = [f"`{rule}`" for rule in names if above[names.index(rule)].min() >= AIM]
    first = [min(names, key=lambda rule: each[level][rule].fixed.mean) for level in found]
    lowest = f"Lowest mean regret at each deviation: {', '.join(f'`{rule}`' for rule in first)}."
    who = ", ".join(ahead) or "no rule"
    lines += ["", f"{lowest} A run of {who} ends above one of every", f"other rule {AIM:.0%} of the time."]
    return lines


def main() -> None:
    """Write the page."""
    found = {
        (kernel, level): regrets(RESULTS / f"pbo-{kernel}{suffix}", (2,))
        for kernel in ("learned", "averaged")
        for level, suffix in LEVELS.items()
    }
    runs = ", ".join(
        f"{kernel} {'/'.join(str(found[kernel, level]['muc'].shape[1]) for level in LEVELS)}"
        for kernel in ("learned", "averaged")
    )
    good = ", ".join(f"`{rule}`" for rule in GOOD)
    parts = [HEAD.format(functions=len(found["averaged", 1]["muc"]), runs=runs), KERNELS.format(good=good)]
    parts += ["\n".join(kernels(found)), "\n", ROUGHER, "\n".join(rougher()), "\n", RULES]
    parts.append("\n".join(rules({level: found["averaged", level] for level in LEVELS})) + "\n")
    parts += [PEOPLE, "\n".join(habits()) + "\n", OTHERS, "\n".join(others()) + "\n"]
    PAGE.write_text("".join(parts))


if __name__ == "__main__":
    main()
