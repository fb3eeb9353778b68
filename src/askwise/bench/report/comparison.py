"""The three scenarios of the paper, and the sections that other experiments share with them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from askwise.bench.estimates import Estimate, Interval
from askwise.bench.published import ALPHA, PUBLISHED, Published
from askwise.bench.ranking import Table
from askwise.bench.report import figures
from askwise.bench.report.analysis import ALPHAS, Analysis, described, recipe
from askwise.bench.report.page import MISSING, Cell, Column, Page, Sheet, code, span, spelled, within

_WINS = (
    "Percentage of functions on which the rule of the row beats that of the column "
    f"at level {ALPHA:g}, by final score and by AUC; grey where a rule was not compared."
)
_SUPERIORITY = (
    "The same as a figure: right of the line, the best rule wins more than half of the comparisons. Thick "
    "bars are 95 % intervals for these functions, thin ones for functions like these."
)
_SCORES = {"value": "Mean score", "probability": "Mean score (the probability of a yes)"}
COVERED = "these functions", "functions like these"
"""What the two intervals of an estimate cover."""


@dataclass(frozen=True)
class Scenario:
    """A kind of query, and the two experiments with it."""

    key: str
    title: str
    about: str
    shown: tuple[str, ...]
    """The functions whose runs the paper shows."""

    @property
    def experiments(self) -> dict[str, str]:
        """The names of the two experiments: as the authors ran it, and with standardised functions."""
        return {"as run": f"{self.key}-as-run", "standardised": self.key}


SCENARIOS = (
    Scenario(
        "bbo",
        "Yes or no",
        "Each query is about one point; the answer is yes or no.",
        ("sphere", "sum_squares", "ursem_waves"),
    ),
    Scenario(
        "pbo",
        "Duels",
        "Each query is about two points: which is better?",
        ("ackley", "gramacy_lee", "ursem_waves"),
    ),
    Scenario(
        "batch",
        "Batches",
        "Each query is about several points, and every pair of them is compared.",
        ("holder_table", "schwefel", "ursem_waves"),
    ),
)


def add_scenario(page: Page, scenario: Scenario, runs: Mapping[str, Analysis]) -> None:
    """Add the results of a scenario, if any of its experiments is among the runs."""
    versions = {title: runs[name] for title, name in scenario.experiments.items() if name in runs}
    if versions:
        page.text(f"## {scenario.title}\n\n{scenario.about}\n\n{listed(versions)}")
        _add_comparison(page, scenario.key, versions, PUBLISHED[scenario.key])
        for title, run in versions.items():
            add_runs(page, run, f"Runs {title}", scenario.shown)


def add_other(page: Page, run: Analysis) -> None:
    """Add the results of an experiment without a section of its own."""
    page.text(f"## {run.results.experiment.title}\n\n- {described(run)}")
    _add_comparison(page, run.name, {run.name: run}, None)
    add_runs(page, run, "Runs")


def listed(versions: Mapping[str, Analysis]) -> str:
    """A list of experiments, each with a sentence or two."""
    return "\n".join(f"- **{title}**, {described(run)}" for title, run in versions.items())


def add_runs(page: Page, run: Analysis, heading: str, shown: Sequence[str] = ()) -> None:
    """Add the course of the runs: scores on the functions shown, regret on all."""
    page.text(f"### {heading}")
    examples = [name for name in shown if name in run.results.functions]
    if examples:
        caption = f"{_SCORES[run.results.experiment.score]} ± SEM after each query, `{run.name}`."
        page.figure(f"examples-{run.name}", figures.score_curves(run, examples), caption)
    caption = f"Mean normalised regret ± SEM after each query, `{run.name}`."
    page.figure(f"runs-{run.name}", figures.regret_curves(run), caption)


def _add_comparison(
    page: Page, key: str, versions: Mapping[str, Analysis], published: Published | None
) -> None:
    """Add the ranking, the shares of functions won, the advantage of the best rules, and all regrets."""
    ranked = {title: run for title, run in versions.items() if run.tables}
    if not ranked:
        return
    page.text("### Ranking")
    if published is not None:
        theirs = {title: run.among(published.rules) for title, run in ranked.items()}
        _add_ranking(page, key, {title: run for title, run in theirs.items() if run.tables}, published)
    if published is None or any(set(run.arms) - set(published.rules) for run in ranked.values()):
        _add_ranking(page, key if published is None else f"{key}-all", ranked, None)
    tables: dict[str, Table | Published] = {} if published is None else {"published": published}
    tables |= {title: run.tables[ALPHA] for title, run in ranked.items()}
    page.figure(f"wins-{key}", figures.win_matrices(tables, _labels(tables.values())), _WINS)
    page.text("### How much better is the best?")
    for title, run in ranked.items():
        page.sheet(_superiority(run, title))
    found = {title: (run.best, run.advantage()) for title, run in ranked.items()}
    page.figure(f"superiority-{key}", figures.superiority_of_best(found), _SUPERIORITY)
    for title, run in ranked.items():
        page.sheet(_regret(run, title))
        every = combinations(run.tables[ALPHA].rules, 2)
        page.sheet(pairs(run, every), folded=f"Every pair of rules, {title} (<code>{run.name}</code>)")


def _labels(tables: Iterable[Table | Published]) -> list[str]:
    return list(dict.fromkeys(rule for table in tables for rule in table.rules))


def _add_ranking(page: Page, key: str, ranked: Mapping[str, Analysis], published: Published | None) -> None:
    """Add ranks at all levels: of the paper's rules beside the published ones, or of all rules."""
    if not ranked:
        return
    labels = list(published.rules) if published is not None else []
    labels = list(dict.fromkeys((*labels, *_labels(run.tables[ALPHA] for run in ranked.values()))))
    columns = [Column("rule", align="l")]
    if published is not None:
        columns.append(Column(f"{ALPHA:g}", group="published"))
    columns += [Column(f"{alpha:g}", group=title) for title in ranked for alpha in ALPHAS]
    rows = []
    for label in labels:
        theirs = [] if published is None else [_published_place(published, label)]
        ours = [place(run, label, alpha) for run in ranked.values() for alpha in ALPHAS]
        rows.append([code(spelled(label)), *theirs, *ours])
    counts = {"published": len(published.rules)} if published else {}
    counts |= {title: len(run.arms) for title, run in ranked.items()}
    each = ", ".join(f"{title} {count}" for title, count in counts.items())
    compared = f"Scores grow with the number of rules compared: {each}."
    if len(set(counts.values())) == 1:
        compared = f"{counts.popitem()[1]} rules were compared."
    whose = "of the paper's rules" if published is not None else "of all rules"
    caption = (
        f"Rank {whose}, with the Borda score ± its standard error in brackets, at several levels. {compared}"
    )
    page.sheet(Sheet(f"ranking-{key}", caption, columns, rows, recipe(*ranked.values())))
    warn(page, ranked, ALPHAS)


def warn(page: Page, ranked: Mapping[str, Analysis], alphas: Sequence[float]) -> None:
    """Say at which of these levels no rule can beat another, because there are too few replicates."""
    for title, run in ranked.items():
        for alpha in alphas:
            if why := run.tables[alpha].undecidable:
                page.text(f"**{title[:1].upper()}{title[1:]}, level {alpha:g}:** {why}")


def place(run: Analysis, label: str, alpha: float = ALPHA) -> Cell:
    """Rank and Borda score of a rule, with its standard error; a dash if it was not compared."""
    found = [row for row in run.tables[alpha].rows if row.rule == label]
    if not found:
        return MISSING
    error = run.spreads[alpha].error(label)
    return Cell(f"{found[0].rank} ({found[0].borda} ± {error:.0f})", bold=found[0].rank == 1)


def _published_place(published: Published, label: str) -> Cell:
    if label not in published.borda:
        return MISSING
    borda = published.borda[label]
    rank = 1 + sum(other > borda for other in published.borda.values())
    return Cell(f"{rank} ({borda})", bold=rank == 1)


def _superiority(run: Analysis, title: str) -> Sheet:
    columns = [Column("against", align="l")]
    columns += [Column(one, group=of) for of in ("final score", "AUC") for one in COVERED]
    columns += [Column(one, group="Borda score ahead by") for one in COVERED]
    scores, spread = {row.rule: row.borda for row in run.tables[ALPHA].rows}, run.spreads[ALPHA]
    rows = []
    for rule, (final, auc) in run.advantage().items():
        fixed, drawn = spread.errors_between(run.best, rule)
        ahead = Cell(f"{scores[run.best] - scores[rule]} ± {fixed:.0f}"), Cell(f"± {drawn:.0f}")
        rows.append([code(spelled(rule)), *both(final, 3, 0.5), *both(auc, 3, 0.5), *ahead])
    best = f"`{spelled(run.best)}`, the best {title},"
    caption = (
        f"Probability that a run of {best} beats a run of another rule, and by how much its Borda score is "
        "higher, ± the standard error of the difference."
    )
    return Sheet(f"superiority-{run.name}", caption, columns, rows, recipe(run))


def _regret(run: Analysis, title: str) -> Sheet:
    """Normalised regret of all rules, and how much higher its mean is than that of the best rule."""
    columns = [Column("rule", align="l")]
    groups = ("mean", "mean, minus that of the best", "median")
    columns += [Column(one, group=of) for of in groups for one in COVERED]
    columns += [Column("runs above 1"), Column("mean over all queries")]
    rules = run.tables[ALPHA].rules
    least = {
        of: min(one.fixed.mean for one in found.each.values())
        for of, found in (("mean", run.final_regret), ("median", run.median_regret))
    }
    average = regrets({rule: run.average_regret.each[rule].fixed for rule in rules})
    rows = []
    for rule in rules:
        mean, median = run.final_regret.each[rule], run.median_regret.each[rule]
        behind = run.final_regret.differences.of(rule, run.best)
        rows.append(
            [
                code(spelled(rule)),
                *_bold_if(mean, mean.fixed.mean == least["mean"]),
                *([MISSING] * 2 if rule == run.best else both(behind, 3, 0.0)),
                *_bold_if(median, median.fixed.mean == least["median"]),
                Cell(f"{100 * float((run.last_regret[rule] > 1).mean()):.1f} %"),
                average[rule],
            ]
        )
    caption = (
        f"Normalised regret after the last query, {title}. The best by Borda score is `{spelled(run.best)}`. "
        "Bold differences are significant for functions like these."
    )
    return Sheet(f"regret-{run.name}", caption, columns, rows, recipe(run))


def pairs(run: Analysis, chosen: Iterable[tuple[str, str]]) -> Sheet:
    """Pairs of rules: how often the first beats the second, and how much lower its regret is."""
    columns = [Column("rule", align="l"), Column("against", align="l")]
    groups = ("probability of superiority", "difference of mean regrets", "difference of median regrets")
    columns += [Column(one, group=of) for of in groups for one in COVERED]
    rows = []
    for rule, other in chosen:
        chance = run.superiority[0].of(rule, other)
        mean, median = (found.differences.of(rule, other) for found in (run.final_regret, run.median_regret))
        differences = (*both(mean, 3, 0.0), *both(median, 3, 0.0))
        rows.append([code(spelled(rule)), code(spelled(other)), *both(chance, 3, 0.5), *differences])
    caption = (
        f"Pairs of rules after the last query, `{run.name}`. A negative difference is a lower regret of the "
        "first. Bold: significant for functions like these, at level 0.05, whatever the number of pairs."
    )
    return Sheet(f"pairs-{run.name}", caption, columns, rows, recipe(run))


def both(found: Estimate, places: int, neutral: float) -> tuple[Cell, Cell]:
    """A number with its interval for these functions, and the interval for functions like these.

    Bold if the latter excludes the ``neutral`` value.
    """
    differs = not found.drawn.low <= neutral <= found.drawn.high
    return _bold_if(found, differs, places)


def _bold_if(found: Estimate, bold: bool, places: int = 3) -> tuple[Cell, Cell]:
    return Cell(within(found.fixed, places), bold=bold), Cell(span(found.drawn, places))


def regrets(found: Mapping[Any, Interval]) -> dict[Any, Cell]:
    """Cells of regrets, the lowest in bold."""
    least = min(one.mean for one in found.values())
    return {name: Cell(within(one, 3), bold=one.mean == least) for name, one in found.items()}
