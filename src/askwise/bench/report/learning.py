"""What it costs to learn the kernel's parameters from the answers."""

from collections.abc import Mapping

from askwise.bench.published import ALPHA
from askwise.bench.report import places, trajectories
from askwise.bench.report.analysis import Analysis, described, recipe
from askwise.bench.report.numbers import spelled, within
from askwise.bench.report.page import Page
from askwise.bench.report.sheets import MISSING, Cell, Column, Sheet, code

__all__ = ["LEARNED", "add"]

KNOWN, LEARNED = "pbo", "pbo-learned"


def add(page: Page, runs: Mapping[str, Analysis]) -> None:
    """Add duels with learned parameters beside those with known ones; nothing if none were learned."""
    if LEARNED not in runs:
        return
    own = {way: runs[name] for way, name in (("known", KNOWN), ("learned", LEARNED)) if name in runs}
    page.heading(2, "Known and learned hyperparameters")
    page.text(
        "Kernels with known parameters were fitted to the function itself, which nobody can do who does not "
        "know it. Learned ones come from the answers so far. Here are duels with both."
    )
    page.text("\n".join(f"- **{way}**, {described(run)}" for way, run in own.items()))
    page.sheet(_sheet(own))
    trajectories.add(page, own["learned"], "Runs with learned hyperparameters", ())


def _sheet(own: Mapping[str, Analysis]) -> Sheet:
    """Regret and rank of each rule of both experiments."""
    labels = [label for label in own["learned"].arms if all(label in run.arms for run in own.values())]
    least = {way: min(run.final_regret(label).mean for label in labels) for way, run in own.items()}
    columns = [
        Column.of("rule", align="l"),
        *(Column.of(way, "normalised regret") for way in own),
        *(Column.of(way, "rank (Borda)") for way in own),
    ]
    rows = []
    for label in labels:
        regrets = {way: run.final_regret(label) for way, run in own.items()}
        rows.append(
            [
                code(spelled(label)),
                *(Cell(within(regret, 4), bold=regret.mean == least[way]) for way, regret in regrets.items()),
                *(_place(run, label) for run in own.values()),
            ]
        )
    caption = (
        f"Mean normalised regret after the last question (95 % intervals), and ranks at level {ALPHA:g}."
    )
    return Sheet("learned", caption, columns, rows, recipe(*own.values()))


def _place(run: Analysis, label: str) -> Cell:
    return places.place(run.tables[ALPHA], label) if run.tables else MISSING
