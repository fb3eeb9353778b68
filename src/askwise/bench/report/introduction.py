"""What is compared, and how to read the rest."""

from collections.abc import Mapping

from askwise.bench.regret import POINTS
from askwise.bench.report.analysis import Analysis, recipe
from askwise.bench.report.page import Page
from askwise.bench.report.sheets import Cell, Column, Recipe, Sheet, code
from askwise.rules import RULES, parse

__all__ = ["add"]

_COMPARED = """\
# Rules for asking questions, compared

A rule chooses which question to ask a person next, so as to find what they like best with few questions:
does this work (yes or no), which of these two is better (a duel), how do these few compare (a batch,
answered pair by pair). Here the person is simulated. What they like is one of {functions} functions over a
box whose highest point is known, and they answer with noise: yes with probability Φ(f(x)), x rather than x'
with probability Φ(f(x) - f(x')), where Φ is the normal distribution function. After each answer the model
names the point it holds for the best, and the score is the function there (or Φ of it, the probability of a
yes). All rules share the model, the search and the first questions, which are drawn at random.

The settings are those of Fauvel & Chalk (2021), "Efficient exploration in binary and preferential Bayesian
optimization". Each is run in two ways: **as run**, with the units, kernels and numbers of runs behind the
published tables, and **as written**, with those that the text of the paper describes."""

_READING = """\
**A win.** On one function, a rule beats another if its scores are higher than chance explains: a one-sided
Mann-Whitney test of the replicates at level 0.0005. *Final* compares the scores after the last question,
*AUC* (area under the curve) the means over all questions, which reward speed.

**Borda score.** On each function, rules are put in the order of the number of rules they beat by final score;
equals are put in the order of the number of their equals they beat by AUC. A rule's Borda score is the number
of rules below it, summed over functions; the highest has rank 1. Losses do not count, nor does by how much a
rule wins, and the order may hang on the level: it is also given at levels 0.005 and 0.05.

**Probability of superiority.** How often a run of one rule ends with a higher score than a run of another, on
a function drawn from these: one half means that neither is better. Intervals of 95 % come from a bootstrap of
the replicates; they speak of these functions, not of others.

**Normalised regret.** (best - score) / (best - mean), where *best* is the highest score the function allows
and *mean* its mean score over the box ({points} quasi-random points): 0 is the maximum, 1 is no better than a
point drawn at random. So functions in different units can be averaged, each with the same weight. Its
intervals of 95 % speak of the replicates, too; SEM is the standard error of a mean over replicates.

**Runs.** Each experiment has a figure of all its functions: the mean normalised regret after each question ±
SEM, with a logarithmic axis of its own for every function, since regrets differ by orders of magnitude.
Lower is better. A mean heeds a few bad runs more than many good ones; the axis does not change that.
Another figure has the scores themselves on the functions that the paper shows, and the highest score as a
dashed line. Left of the grey line, questions are drawn at random.

This page, its tables in LaTeX (`tables/`) and its figures (`figures/`) come from `{report}`."""

_RULES = "The rules compared. The champion is the point that the model holds for the best."


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Say what is compared, by which measures, and list the rules."""
    functions = {name for run in runs.values() for name in run.results.functions}
    page.text(_COMPARED.format(functions=len(functions)))
    page.heading(2, "How to read this page")
    page.text(_READING.format(points=POINTS, report=recipe(*runs.values()).report))
    page.sheet(_rules(runs))


def _rules(runs: Mapping[str, Analysis]) -> Sheet:
    """The rules that occur, with what they do in a sentence."""
    keys = {parse(arm.rule).key: None for run in runs.values() for arm in run.results.experiment.arms}
    rows = [
        [code(key), Cell(RULES[key].title), Cell(_gist(key)), Cell(RULES[key].source.split(";")[0])]
        for key in keys
    ]
    columns = [Column.of(name, align="l") for name in ("rule", "name", "what it does", "source")]
    return Sheet("rules", _RULES, columns, rows, Recipe(recipe(*runs.values()).report))


def _gist(key: str) -> str:
    """The first sentence about a rule."""
    about = (RULES[key].__doc__ or "").strip()
    return " ".join(about.split("\n\n")[0].split()).replace("`", "")
