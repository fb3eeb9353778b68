"""Batches of 4, 9 and 25: are members distinct, and how low is the regret?

    python benchmarks/batches.py    # prints the table and writes docs/bench-batches.md

Utilities are draws from the prior in two dimensions, one per lane and the same for every rule.
"""

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when scipy is imported

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

import askwise as aw
from askwise.numerics import generator
from askwise.search import Search

OUT = Path(__file__).resolve().parent.parent / "docs" / "bench-batches.md"
RULES = ("muc", "muc_joint", "kss", "random")
ROUNDS = {4: 10, 9: 5, 25: 3}
USERS = 40
SAME = 1e-3  # members closer than this in every coordinate count as equal

HEAD = """# Batches

`make bench-batches`: {users} simulated users, whose utilities are draws from a squared exponential prior
(lengthscale 0.2, variance 4) in two dimensions, answer all pairs of each batch. The first batch is random.
*Distinct*: mean number of members that differ by more than 0.001 in some parameter, in batches chosen by the
rule. *Regret*: utility of the best setting minus that of the recommended one, in standard deviations of the
prior; mean after each batch. The last column compares each user's regret, averaged over batches, with that
under `muc` (negative is better): mean and standard error of the difference.

"""
TAIL = """
`muc`, as published, repeats points in large batches, because it sums the uncertainty of all pairs as if they
were independent. `muc_joint` counts information shared between duels once, and considers only duels with the
champion.

People who name the best of a batch, or rank it: [bench-answers.md](bench-answers.md).
"""


def utilities(kernel: Kernel) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """A utility for each user, and its maximum."""
    source = [generator("batches", user) for user in range(USERS)]
    nothing = aw.Data.binary(torch.empty(USERS, 0, 2), torch.empty(USERS, 0))
    belief = aw.infer(nothing, kernel)
    utility = aw.paths.draw(belief, 1, source)
    best = Search.around(belief, source).argmax(utility, draws=1)[0]
    return utility, utility(best)[0, :, 0]


def run(case: tuple[str, int]) -> tuple[list[float], list[Tensor]]:
    """Distinct members of each chosen batch, and regrets [user] after each batch."""
    torch.set_num_threads(1)
    name, m = case
    kernel = aw.kernel("se", [0.2, 0.2], 4.0)
    utility, best = utilities(kernel)
    rule, data = aw.rules.parse(name), aw.Data.binary(torch.empty(USERS, 0, 2), torch.empty(USERS, 0))
    i, j = torch.triu_indices(m, m, offset=1)
    distinct, regrets = [], []
    for number in range(ROUNDS[m]):
        source = [generator("batches", user, name if number else "first", m, number) for user in range(USERS)]
        chosen = aw.rules.parse("random") if number == 0 else rule
        x = aw.next_query(data, chosen, kernel, m, source).points
        worth = utility(x)[0]
        odds = torch.special.ndtr(worth[:, i] - worth[:, j])
        won = torch.stack([torch.rand(len(i), generator=g, dtype=torch.float64) for g in source]) < odds
        data = data + aw.Data.batches(x[:, None], won[:, None])
        belief = aw.infer(data, kernel)
        champion = Search.around(belief, source).champion(belief)
        regrets.append((best - utility(champion)[0, :, 0]) / 2)
        if number:
            distinct += [different(batch) for batch in x]
    return distinct, regrets


def different(batch: Tensor) -> float:
    """The number of members that do not repeat an earlier one."""
    close = ((batch[:, None] - batch[None]).abs() < SAME).all(-1)
    return float((~(close.tril(-1).any(-1))).sum())


def spelled(values: Tensor) -> str:
    """Mean and standard error."""
    return f"{values.mean():.3f} ± {values.std() / len(values) ** 0.5:.3f}"


def main() -> None:
    """Run all cases and write the table."""
    cases = [(name, m) for m in ROUNDS for name in RULES]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        results = dict(zip(cases, pool.map(run, cases), strict=True))
    lines = [
        "| m | rule | distinct | regret after each batch | average, minus `muc` |",
        "|---|---|---|---|---|",
    ]
    for (name, m), (distinct, regrets) in results.items():
        average = torch.stack(regrets).mean(0)
        beside = average - torch.stack(results["muc", m][1]).mean(0)
        path = ", ".join(f"{regret.mean():.2f}" for regret in regrets)
        gap = "" if name == "muc" else spelled(beside)
        lines.append(f"| {m} | `{name}` | {sum(distinct) / len(distinct):.1f} | {path} | {gap} |")
    table = "\n".join(lines)
    OUT.write_text(HEAD.format(users=USERS) + table + "\n" + TAIL)
    print(table)


if __name__ == "__main__":
    main()
