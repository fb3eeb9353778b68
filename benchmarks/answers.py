"""Batches answered by their winner or a ranking: does a score that knows which help?

python benchmarks/answers.py    # writes docs/bench-answers.md from what `people.py` found
"""

import math
from pathlib import Path

from people import (
    ARMS,
    EUBO,
    NAMES,
    ORDER,
    REPLICATES,
    SIZE,
    SPREAD,
    WINNER,
    interval,
    preferred,
    results,
)

from askwise.bench.functions import FUNCTIONS

OUT = Path(__file__).resolve().parent.parent / "docs" / "bench-answers.md"
SHOWN = {
    "muc_joint": "`muc_joint`",
    WINNER: "winner information",
    ORDER: "ranking information",
    EUBO: "expected best",
    "muc": "`muc`",
    "random": "`random`",
}
HALVES = {"even": NAMES[1::2], "odd": NAMES[::2]}
AFTER = (10, 20, 30)

HEAD = f"""# Batches answered by a winner or a ranking

`make bench-answers`. `muc_joint`, the default rule for batches, chooses {SIZE} settings by what their
duels with the champion would tell. But people name the best of a batch, or rank it. Three scores were tried
that know of this:

- *Winner information*: the champion and the challengers for which naming the best tells most about f,
  $I(c, f) = H(\\mathbb E[p(f)]) - \\mathbb E[H(p(f))]$, where $p_k(f)$ is the probability that option k
  has the highest of the noisy utilities $f(x_k) + \\varepsilon_k$, $\\varepsilon_k \\sim \\mathcal N(0,
  1/2)$. The expectations are averages over 32 quasi-random draws of the differences, so that the score is
  smooth.
- *Ranking information*: the same with the probabilities of all {math.factorial(SIZE)} orders, which are
  nested integrals, and 16 draws; tried for rankings.
- *Expected best*: the batch of highest $\\mathbb E[\\max_k f(x_k)]$ (qEUBO: Astudillo, Lin, Bakshy &
  Frazier 2023), all members free.

Simulated people have the benchmark functions of 2 to 4 parameters as utilities, with a standard deviation
of {SPREAD:g} times the noise of a duel; kernels are learned from the answers; 2 batches are
space-filling, the rule chooses the other 28; {REPLICATES} replicates. *Regret*: mean in standard
deviations of the function; a few functions that no rule solves contribute most. *True best preferred*:
how often somebody would prefer the true best to the recommended setting (50% is no better), after 30
batches. *Minus `muc_joint`*: the differences after 30 batches on the same functions, with 95% intervals by
resampling functions and replicates; negative is better. *Lower on*: functions on which the true best is
preferred less often than with `muc_joint`. Functions are in alphabetical order: the odd ones were there to
choose a rule, the even ones to report on it. Regret was the planned measure; the second one was added on the
odd functions, and a third, regret as a share of that of `random`, was looked at there and said the same.

"""
TAIL = """
**It does not pay.** On the odd functions no score was better than `muc_joint`, with winners or with
rankings, in either measure, so none was adopted; winner information had a higher regret with winners, and
ranking information with rankings. On the even ones none can be told apart from `muc_joint`.
Five replicates leave room: expected best may be better with winners by up to 0.8 in regret, or worse by
0.1. It gets further on functions with many hills (Ackley, eggholder, Langermann) and stays further from
the top of smooth ones.

One NVIDIA H200, 15 processes, 10 minutes (`python benchmarks/people.py --device cuda --workers 15`); two
runs that were repeated on a CPU had the same regret to four digits in their first ten batches. Winner
information was not run in 3 parameters, and with rankings only in 2, so its regret is the mean of fewer
functions. The same goes for ranking information, which was run later, on a CPU with a later version;
rankings with `muc_joint`, run again there, had a regret higher by 0.08 (-0.08 to 0.27), which is chance.
"""


def table(half: str, said: str) -> list[str]:
    """Rows of all rules for one half of the functions."""
    found, lines = results(), []
    arms = {arm.rule: arm for arm in ARMS if arm.said == said}
    for rule, name in SHOWN.items():
        if rule not in arms:
            continue
        arm = arms[rule]
        chosen = [NAMES.index(each) for each in HALVES[half] if FUNCTIONS[each].dim in arm.dims]
        regret, usual = (found[f"{one}, {said}"][chosen] for one in (rule, "muc_joint"))
        last, worse = preferred(regret[..., -1]), regret[..., -1] - usual[..., -1]
        gap = last - preferred(usual[..., -1])
        beside = "| |"
        if rule != "muc_joint":
            (low, high), (least, most) = interval(worse), interval(gap)
            beside = f"{worse.mean():+.2f} ({low:+.2f} to {high:+.2f}) | "
            beside += f"{gap.mean():+.1%} ({least:+.1%} to {most:+.1%}) | "
            beside += f"{(gap.mean(1) < 0).sum()} of {len(chosen)}"
        means = " | ".join(f"{regret[..., count - 1].mean():.2f}" for count in AFTER)
        lines.append(f"| {name} | {len(chosen)} | {means} | {last.mean():.1%} | {beside} |")
    return lines


def main() -> None:
    """Write the page."""
    page = HEAD
    for half in HALVES:
        for said in ("best", "ranking"):
            after = " | ".join(f"regret after {count}" for count in AFTER)
            page += f"## {'Winners' if said == 'best' else 'Rankings'}, {half} functions\n\n"
            page += f"| rule | functions | {after} | true best preferred | regret minus `muc_joint` |"
            page += " preferred minus `muc_joint` | lower on |\n"
            page += "|---" * 9 + "|\n" + "\n".join(table(half, said)) + "\n\n"
    OUT.write_text(page.rstrip() + "\n" + TAIL, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
