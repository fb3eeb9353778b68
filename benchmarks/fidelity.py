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

from askwise.bench.effects import superiority
from askwise.bench.estimates import Estimate
from askwise.bench.published import ALPHA, FUNCTION_NAMES, PUBLISHED, Published
from askwise.bench.regret import levels
from askwise.bench.report.comparison import COVERED, both
from askwise.bench.report.page import Cell, Column, Recipe, Sheet, code, short, spelled
from askwise.bench.results import Results, load
from askwise.errors import Refused

AS_RUN = "-as-run"
LEVELS = (ALPHA, 0.05)
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
    higher: bool
    """Whether ours are higher, significantly or not."""

    def verdict(self, alpha: float = ALPHA) -> Verdict:
        """Ours compared with theirs, at a significance level."""
        if self.p > alpha:
            return "indistinguishable"
        return "better" if self.higher else "worse"


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


def fidelity(ours: Results, theirs: Theirs) -> tuple[Comparison, ...]:
    """Our final scores compared with theirs, for each rule and function that both have.

    By a two-sided Mann-Whitney test (normal approximation, corrected for ties and continuity).  Differences
    below a millionth of the distance from the function's mean to its maximum are ignored.  Runs of unequal
    length are compared at the end of the shorter ones.
    """
    return tuple(
        _compared(rule, function, *pair)
        for rule in ours.scores
        for function, pair in _final_scores(ours, theirs, rule).items()
    )


def overall(ours: Results, theirs: Theirs, rule: str) -> Estimate:
    """The probability that a run of ours ends above one of theirs, on average over functions."""
    pairs = _final_scores(ours, theirs, rule).values()
    runs = {who: np.stack([pair[at][0] for pair in pairs]) for at, who in enumerate(("ours", "theirs"))}
    return superiority({who: scores[..., None] for who, scores in runs.items()}).of("ours", "theirs")


Final = tuple[Float[np.ndarray, "2 _"], Float[np.ndarray, "2 _"]]
"""Final scores, ours and theirs: rounded to what counts as a difference, and as they are."""


def _final_scores(ours: Results, theirs: Theirs, rule: str) -> dict[str, Final]:
    """By function, for those that both have."""
    found = {}
    for place, function in enumerate(ours.functions):
        mine, other = ours.scores[rule][place], theirs.get(rule, {}).get(function)
        if other is not None:
            last = min(mine.shape[-1], other.shape[-1]) - 1
            level = levels(function, ours.experiment.scale, ours.experiment.score)
            grain = _EQUAL * (level.best - level.usual)
            each = (np.asarray(scores[:, last], dtype=float) for scores in (mine, other))
            first, second = (np.stack([np.round(scores / grain), scores]) for scores in each)
            found[function] = first, second
    return found


def _compared(
    rule: str, function: str, ours: Float[np.ndarray, "2 _"], theirs: Float[np.ndarray, "2 _"]
) -> Comparison:
    test = _difference(ours[0], theirs[0])
    medians = float(np.median(ours[1])), float(np.median(theirs[1]))
    return Comparison(rule, function, *medians, float(ours[1].mean()), float(theirs[1].mean()), *test)


def _difference(ours: Float[np.ndarray, " _"], theirs: Float[np.ndarray, " _"]) -> tuple[float, bool]:
    """The p-value of the difference, and whether ours are higher."""
    test = mannwhitneyu(ours, theirs, alternative="two-sided", method="asymptotic")
    p = float(test.pvalue)
    return 1.0 if np.isnan(p) else p, bool(test.statistic > len(ours) * len(theirs) / 2)


def fidelity_table(
    rows: Sequence[Comparison], means: Mapping[str, Estimate], experiment: str, recipe: Recipe
) -> str:
    """Markdown: for each rule, numbers of better and worse functions, the mean, and a folded table of all."""
    rules = list(dict.fromkeys(row.rule for row in rows))
    verdicts: tuple[Verdict, ...] = ("better", "indistinguishable", "worse")
    lines = []
    for rule in rules:
        counts = [Counter(row.verdict(alpha) for row in rows if row.rule == rule) for alpha in LEVELS]
        cells = [Cell(str(count[verdict])) for count in counts for verdict in verdicts]
        lines.append([code(spelled(rule)), *cells, *both(means[rule], 3, 0.5)])
    columns = [Column("rule", align="l")]
    columns += [Column(verdict, group=f"at {alpha:g}") for alpha in LEVELS for verdict in verdicts]
    columns += [Column(one, group="ours end above theirs") for one in COVERED]
    caption = (
        f"Functions on which our final scores are better or worse than the authors', `{experiment}`; "
        "and the probability that a run of ours ends above one of theirs, averaged over functions."
    )
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
            Cell(row.verdict(), bold=row.verdict() != "indistinguishable"),
        ]
        for row in rows
    ]
    return Sheet(f"fidelity-{experiment}-{rule}", f"Final scores of `{rule}`.", columns, lines, recipe)


_INTRODUCTION = f"""\
# Our scores compared with the authors'

Final scores of our runs, compared with those in the published result files of Fauvel & Chalk (2021), in the
experiments as the authors ran them: better or worse where a two-sided Mann-Whitney test of the replicates
has p <= {ALPHA:g}, otherwise indistinguishable. That level, the paper's, detects large differences only;
counts at {LEVELS[1]:g} are beside it, where chance alone makes 1 function in 40 better and 1 in 40 worse.
Over all functions together smaller differences show: the probability that a run of ours ends above one of
theirs, one half if they are equal, with 95 % intervals for these functions (replicates resampled) and for
functions like these (functions resampled, too). Differences below a millionth of the distance from a
function's mean to its maximum are ignored. Rules need not agree: ours follow their definitions, and the
authors' code does not always. EIIG is compared with the paper's weight, k = 0.5, but with the other sign."""


def page(scores: Path, directories: Sequence[Path]) -> str:
    """The page in Markdown."""
    parts = [_INTRODUCTION]
    for directory in directories:
        ours = load(directory)
        name = ours.experiment.name
        theirs = authors_scores(scores, name)
        rows = fidelity(ours, theirs)
        means = {rule: overall(ours, theirs, rule) for rule in dict.fromkeys(row.rule for row in rows)}
        made = Recipe(f"python benchmarks/fidelity.py {Path(scores).name} {directory}")
        parts += [f"## {ours.experiment.title}", fidelity_table(rows, means, name, made)]
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
