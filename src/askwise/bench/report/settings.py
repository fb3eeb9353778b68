"""The three settings of the paper, and experiments that belong to none."""

from collections.abc import Mapping
from dataclasses import dataclass

from askwise.bench.published import PUBLISHED, Published
from askwise.bench.report import advantage, places, trajectories
from askwise.bench.report.analysis import Analysis, described
from askwise.bench.report.page import Page

__all__ = ["NAMES", "SETTINGS", "Setting", "add", "add_other"]


@dataclass(frozen=True)
class Setting:
    """A kind of question, and the two experiments about it."""

    key: str
    title: str
    about: str
    shown: tuple[str, ...]
    """The functions whose runs the paper draws."""

    @property
    def published(self) -> Published:
        """What the paper says of it."""
        return PUBLISHED[self.key]

    @property
    def experiments(self) -> dict[str, str]:
        """Their names, by what they follow."""
        return {"as run": f"{self.key}-as-run", "as written": self.key}


SETTINGS = (
    Setting(
        "bbo",
        "Yes or no",
        "Each question is about one point, and the answer is yes or no.",
        ("sphere", "sum_squares", "ursem_waves"),
    ),
    Setting(
        "pbo",
        "Duels",
        "Each question is about two points: which is better?",
        ("ackley", "gramacy_lee", "ursem_waves"),
    ),
    Setting(
        "batch",
        "Batches",
        "Each question is about several points at once, and every pair of them is compared.",
        ("holder_table", "schwefel", "ursem_waves"),
    ),
)

NAMES = tuple(name for setting in SETTINGS for name in setting.experiments.values())


def add(page: Page, setting: Setting, runs: Mapping[str, Analysis]) -> None:
    """Add what was found in a setting; nothing if none of its experiments is there."""
    own = {way: runs[name] for way, name in setting.experiments.items() if name in runs}
    if not own:
        return
    page.heading(2, setting.title)
    page.text(setting.about)
    page.text("\n".join(f"- **{way}**, {described(run)}" for way, run in own.items()))
    _add_comparisons(page, setting.key, own, setting.published)
    for way, run in own.items():
        trajectories.add(page, run, f"Runs {way}", setting.shown)


def add_other(page: Page, run: Analysis) -> None:
    """Add what was found in an experiment that has no part of the page to itself."""
    page.heading(2, run.results.experiment.title)
    page.text(f"- {described(run)}")
    _add_comparisons(page, run.name, {run.name: run}, None)
    trajectories.add(page, run, "Runs", ())


def _add_comparisons(page: Page, key: str, own: Mapping[str, Analysis], published: Published | None) -> None:
    ranked = {way: run for way, run in own.items() if run.tables}
    if ranked:
        places.add(page, key, ranked, published)
        advantage.add(page, key, ranked)
