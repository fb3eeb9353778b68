"""Our scores compared with the authors', rule by rule and function by function.

    python benchmarks/fidelity.py SCORES.npz RESULTS... --out docs/bench/fidelity.md

``SCORES.npz`` is not part of askwise: it holds scores recovered from the published result files of Fauvel &
Chalk (2021), an array [replicate, iteration] under each ``experiment/function/rule``, in the authors' names.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float, Real
from scipy.stats import mannwhitneyu

from askwise.bench.published import ALPHA, FUNCTION_NAMES, PUBLISHED, Published
from askwise.bench.regret import levels
from askwise.bench.report.page import Cell, Column, Recipe, Sheet, code, short
from askwise.bench.results import Results, load
from askwise.errors import Refused

AS_RUN = "-as-run"
_EQUAL = 1e-6  # of the distance from mean to maximum: smaller differences are ignored

Verdict = Literal["better", "worse", "indistinguishable"]
Theirs = Mapping[str, Mapping[str, Real[np.ndarray, "_ _"]]]
"""Arrays [replicate, iteration] by rule and function, in our names."""


@dataclass(frozen=True)
class Comparison:
    """Final scores of one rule on one function: ours and theirs."""

    rule: str
    function: str
    ours_median: float
    theirs_median: float
    ours_mean: float
    theirs_mean: float
    p: float
    """Of a two-sided Mann-Whitney test."""
    verdict: Verdict
    """Ours compared with theirs."""


def authors_scores(path: Path, experiment: str) -> dict[str, dict[str, Real[np.ndarray, "_ _"]]]:
    """The authors' scores in an experiment such as ``pbo-as-run``, by our names for rules and functions."""
    published = _published(experiment)
    found: dict[str, dict[str, Real[np.ndarray, "_ _"]]] = {rule: {} for rule in published.rules}
    try:
        scores = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise Refused(path, "be the file of the authors' scores", error, "Check the path.") from error
    with scores as file:
        for key in file.files:
            source, function, rule = key.split("/")
            if source == published.source and rule in published.names:
                found[published.names[rule]][FUNCTION_NAMES[function]] = file[key]
    if not any(found.values()):
        raise Refused(path, f"hold {published.source}", "none of it", "Check the file.")
    return found


def fidelity(ours: Results, theirs: Theirs, alpha: float = ALPHA) -> tuple[Comparison, ...]:
    """Our final scores compared with theirs, for each rule and function that both have.

    They differ if a two-sided Mann-Whitney test (normal approximation, corrected for ties and continuity) has
    p <= alpha.  Differences below a millionth of the distance from the function's mean to its maximum are
    ignored.  Runs of unequal length are compared at the end of the shorter ones.
    """
    found = []
    for rule, scores in ours.scores.items():
        for place, function in enumerate(ours.functions):
            other = theirs.get(rule, {}).get(function)
            if other is not None:
                last = min(scores.shape[-1], other.shape[-1]) - 1
                found.append(_compared(ours, rule, function, (scores[place][:, last], other[:, last]), alpha))
    return tuple(found)


def _compared(
    results: Results,
    rule: str,
    function: str,
    pair: tuple[Real[np.ndarray, " _"], Real[np.ndarray, " _"]],
    alpha: float,
) -> Comparison:
    ours, theirs = (np.asarray(scores, dtype=float) for scores in pair)
    level = levels(function, results.experiment.scale, results.experiment.score)
    grain = _EQUAL * (level.best - level.usual)
    p, ahead = _difference(np.round(ours / grain), np.round(theirs / grain))
    verdict: Verdict = "indistinguishable"
    if p <= alpha:
        verdict = "better" if ahead else "worse"
    medians = float(np.median(ours)), float(np.median(theirs))
    return Comparison(rule, function, *medians, float(ours.mean()), float(theirs.mean()), p, verdict)


def _difference(ours: Float[np.ndarray, " _"], theirs: Float[np.ndarray, " _"]) -> tuple[float, bool]:
    """The p-value of the difference, and whether ours are higher."""
    test = mannwhitneyu(ours, theirs, alternative="two-sided", method="asymptotic")
    p = float(test.pvalue)
    return 1.0 if np.isnan(p) else p, bool(test.statistic > len(ours) * len(theirs) / 2)


def fidelity_table(rows: Sequence[Comparison], experiment: str, recipe: Recipe) -> str:
    """Markdown: for each rule, how many functions are better, equal or worse, and a folded table of all."""
    rules = list(dict.fromkeys(row.rule for row in rows))
    verdicts: tuple[Verdict, ...] = ("better", "indistinguishable", "worse")
    lines = []
    for rule in rules:
        counts = Counter(row.verdict for row in rows if row.rule == rule)
        lines.append([code(rule), *(Cell(str(counts[verdict])) for verdict in verdicts)])
    columns = [Column("rule", align="l"), *(Column(verdict) for verdict in verdicts)]
    caption = f"Functions on which our final scores are better or worse than the authors', `{experiment}`."
    parts = [Sheet(f"fidelity-{experiment}", caption, columns, lines, recipe).markdown()]
    for rule in rules:
        table = _details(rule, [row for row in rows if row.rule == rule], experiment, recipe).markdown()
        parts.append(f"<details>\n<summary><code>{rule}</code></summary>\n\n{table}\n\n</details>")
    return "\n\n".join(parts)


def _details(rule: str, rows: Sequence[Comparison], experiment: str, recipe: Recipe) -> Sheet:
    columns = [
        Column("function", align="l"),
        *(Column(who, group=what) for what in ("median", "mean") for who in ("ours", "theirs")),
        Column("p"),
        Column("ours are", align="l"),
    ]
    lines = [
        [
            code(row.function),
            *(Cell(short(v)) for v in (row.ours_median, row.theirs_median, row.ours_mean, row.theirs_mean)),
            Cell(f"{row.p:.2g}"),
            Cell(row.verdict, bold=row.verdict != "indistinguishable"),
        ]
        for row in rows
    ]
    return Sheet(f"fidelity-{experiment}-{rule}", f"Final scores of `{rule}`.", columns, lines, recipe)


_INTRODUCTION = f"""\
# Our scores compared with the authors'

Final scores of our runs, compared with those in the published result files of Fauvel & Chalk (2021), in the
experiments as the authors ran them: better or worse where a two-sided Mann-Whitney test of the replicates has
p <= {ALPHA:g}, otherwise indistinguishable. Differences below a millionth of the distance from a function's
mean to its maximum are ignored. Rules need not agree: ours follow their definitions, and the authors' code
does not always."""


def page(scores: Path, directories: Sequence[Path]) -> str:
    """The page in Markdown."""
    parts = [_INTRODUCTION]
    for directory in directories:
        ours = load(directory)
        name = ours.experiment.name
        rows = fidelity(ours, authors_scores(scores, name))
        made = Recipe(f"python benchmarks/fidelity.py {Path(scores).name} {directory}")
        parts += [f"## {ours.experiment.title}", fidelity_table(rows, name, made)]
    return "\n\n".join(parts) + "\n"


def _published(experiment: str) -> Published:
    known = [f"{key}{AS_RUN}" for key in PUBLISHED]
    if experiment not in known:
        raise Refused(
            "experiment",
            f"be one that the authors ran ({', '.join(known)})",
            repr(experiment),
            "Leave it out.",
        )
    return PUBLISHED[experiment.removesuffix(AS_RUN)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scores", type=Path, help="the authors' scores, an .npz file")
    parser.add_argument("results", type=Path, nargs="+", help="directories of our results")
    parser.add_argument("--out", type=Path, help="file; by default the page is printed")
    given = parser.parse_args(arguments)
    text = page(given.scores, given.results)
    if given.out is None:
        sys.stdout.write(text)
    else:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
