"""What is compared, and how to read the page."""

from collections.abc import Mapping

from askwise.bench.ranking import BOOTSTRAPS
from askwise.bench.regret import POINTS
from askwise.bench.report.analysis import Analysis, recipe
from askwise.bench.report.page import Cell, Column, Page, Recipe, Sheet, code
from askwise.rules import RULES, parse

_COMPARED = """\
# Acquisition rules compared

A rule chooses the next query in order to find a person's favourite setting with few queries: does this work
(yes or no), which of these two is better (a duel), how do these few compare (a batch, answered pair by pair).
Here the person is simulated. Their preference is one of {functions} functions over a box, with a known
maximum, and their answers are noisy: yes with probability Φ(f(x)), x over x' with probability
Φ(f(x) - f(x')), where Φ is the normal distribution function. After each answer the model estimates the
optimum; the score of a run is the value of the function there (or Φ of it, the probability of a yes). All
rules share the model, the search and the initial queries, which are random.

The scenarios are those of Fauvel & Chalk (2021), "Efficient exploration in binary and preferential Bayesian
optimization". Each is run twice: **as run**, with the units, kernels and numbers of runs behind the published
tables, and **standardised**, with functions of mean 0 and variance 1, kernels of maximum likelihood and the
numbers of runs in the text. For yes/no queries the text says all that. For duels and batches it is our
reading: the text does not say in which units functions were, and standardises for yes/no only."""

_READING = """\
**Wins.** A rule beats another on a function if a one-sided Mann-Whitney test of the replicates at level
0.0005 finds its scores higher. *Final* compares the scores after the last query, *AUC* (area under the curve)
the means over all queries, which reward speed.

**Borda score.** On each function, rules are ordered by the number of rules they beat by final score; ties are
broken by the number of tied rules they beat by AUC. The Borda score of a rule is the number of rules below
it, summed over functions; the highest score has rank 1. Neither losses nor margins count, and the order may
depend on the significance level, so it is also given at levels 0.005 and 0.05. Its standard error (±) is the
deviation over {bootstraps} resamples of the replicates, each ranked again. Scores that differ by less than
about two errors of their difference are no order.

**Two kinds of intervals.** *These functions*: the functions are fixed, and the replicates of each rule and
function are resampled. *Functions like these*: the functions are resampled first, then their replicates, as
if they had been drawn from a larger collection; such intervals are wider, and say what to expect elsewhere.
All are 95 % bootstrap percentiles. Rules are compared on the same functions, and it is the difference that
has an interval: intervals of two rules may overlap although their difference is clear. Of twenty comparisons
of equal rules one is expected to be bold.

**Probability of superiority.** How often a run of one rule ends with a higher score than a run of another, on
a random one of these functions; one half means that neither is better.

**Normalised regret.** (best - score) / (best - mean), where *best* is the maximum of the score and *mean* its
average over the box ({points} quasi-random points): 0 is the maximum, 1 is no better than a random point.
This makes functions with different units comparable, and each has the same weight in an average. A few bad
runs can dominate a mean, so medians are beside it: the median of the replicates of each function, averaged
over functions. SEM is the standard error of a mean over replicates.

**Runs.** Each experiment has a figure of all its functions: mean normalised regret ± SEM after each query,
with a separate logarithmic axis per function, since regrets differ by orders of magnitude. Lower is better.
Another figure shows the scores
themselves on the functions that the paper shows, with the maximum as a dashed line. Queries to the left of
the grey line are random.

This page, its tables in LaTeX (`tables/`) and its figures (`figures/`) are made by `{report}`."""

_RULES = "The rules compared. The champion is the estimated optimum."


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Describe the comparison and its measures, and list the rules."""
    functions = {name for run in runs.values() for name in run.results.functions}
    page.text(_COMPARED.format(functions=len(functions)))
    page.text("## How to read this page")
    page.text(_READING.format(points=POINTS, bootstraps=BOOTSTRAPS, report=recipe(*runs.values()).report))
    page.sheet(_rules(runs))


def _rules(runs: Mapping[str, Analysis]) -> Sheet:
    """The rules compared, with the first paragraph of the docstring of each."""
    keys = {parse(rule).key: None for run in runs.values() for rule in run.arms.values()}
    rows = []
    for key in keys:
        rule = RULES[key]
        gist = " ".join((rule.__doc__ or "").strip().split("\n\n")[0].split()).replace("`", "")
        rows.append([code(key), Cell(rule.title), Cell(gist), Cell(rule.source.split(";")[0])])
    columns = [Column(name, align="l") for name in ("rule", "name", "what it does", "source")]
    return Sheet("rules", _RULES, columns, rows, Recipe(recipe(*runs.values()).report))
