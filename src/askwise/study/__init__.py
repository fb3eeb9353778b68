"""Studies: ask, tell, best.

A study is its record: `storage` keeps events, `state` folds them, `questions` derives the next query from the
state alone, `recommendation` says which setting to use and when to stop.  Names are imported when they are
first used, so that the command line can read the defaults of a study without loading torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askwise.study.answers import Answer as Answer
    from askwise.study.answers import Preference as Preference
    from askwise.study.answers import Tie as Tie
    from askwise.study.answers import Verdict as Verdict
    from askwise.study.answers import Worst as Worst
    from askwise.study.answers import YesNo as YesNo
    from askwise.study.answers import labels as labels
    from askwise.study.checks import Check as Check
    from askwise.study.checks import by_participant as by_participant
    from askwise.study.checks import foretold as foretold
    from askwise.study.config import Config as Config
    from askwise.study.config import load as load
    from askwise.study.config import template as template
    from askwise.study.feedback import FEEDBACKS as FEEDBACKS
    from askwise.study.level_sets import CONFIDENCE as CONFIDENCE
    from askwise.study.level_sets import UNKNOWN_REGION as UNKNOWN_REGION
    from askwise.study.level_sets import Classified as Classified
    from askwise.study.level_sets import LevelOutlook as LevelOutlook
    from askwise.study.level_sets import LevelSet as LevelSet
    from askwise.study.level_sets import checked_confidence as checked_confidence
    from askwise.study.level_sets import level_hint as level_hint
    from askwise.study.level_sets import level_sentence as level_sentence
    from askwise.study.level_sets import level_set as level_set
    from askwise.study.level_sets import percent as percent
    from askwise.study.level_sets import side_of as side_of
    from askwise.study.minutes import KINDS as KINDS
    from askwise.study.minutes import SIZE as SIZE
    from askwise.study.minutes import Contest as Contest
    from askwise.study.minutes import Course as Course
    from askwise.study.minutes import Mark as Mark
    from askwise.study.minutes import Pace as Pace
    from askwise.study.minutes import compared as compared
    from askwise.study.minutes import interval as interval
    from askwise.study.minutes import lead as lead
    from askwise.study.model import Model as Model
    from askwise.study.page import Page as Page
    from askwise.study.plan import Plan as Plan
    from askwise.study.predictions import Comparison as Comparison
    from askwise.study.predictions import Prediction as Prediction
    from askwise.study.question import Question as Question
    from askwise.study.question import Status as Status
    from askwise.study.questions import Situation as Situation
    from askwise.study.questions import next_question as next_question
    from askwise.study.raters import Estimate as Estimate
    from askwise.study.raters import Rater as Rater
    from askwise.study.raters import Raters as Raters
    from askwise.study.recommendation import UNTRUSTED as UNTRUSTED
    from askwise.study.recommendation import Best as Best
    from askwise.study.recommendation import Outlook as Outlook
    from askwise.study.recommendation import best as best
    from askwise.study.recommendation import confidence as confidence
    from askwise.study.recommendation import likely_bests as likely_bests
    from askwise.study.recommendation import outlook as outlook
    from askwise.study.searching import search_about as search_about
    from askwise.study.simulation import Checkpoint as Checkpoint
    from askwise.study.simulation import Simulation as Simulation
    from askwise.study.simulation import conclusion as conclusion
    from askwise.study.simulation import simulated as simulated
    from askwise.study.state import Answered as Answered
    from askwise.study.state import Entry as Entry
    from askwise.study.state import State as State
    from askwise.study.study import Study as Study

_HOMES = {
    "answers": ("Answer", "Preference", "Tie", "Verdict", "Worst", "YesNo", "labels"),
    "checks": ("Check", "by_participant", "foretold"),
    "config": ("Config", "load", "template"),
    "feedback": ("FEEDBACKS",),
    "level_sets": (
        *("CONFIDENCE", "UNKNOWN_REGION", "Classified", "LevelOutlook", "LevelSet"),
        *("checked_confidence", "level_hint", "level_sentence", "level_set", "percent", "side_of"),
    ),
    "minutes": ("KINDS", "SIZE", "Contest", "Course", "Mark", "Pace", "compared", "interval", "lead"),
    "page": ("Page",),
    "plan": ("Plan",),
    "model": ("Model",),
    "predictions": ("Comparison", "Prediction"),
    "questions": ("Situation", "next_question"),
    "raters": ("Estimate", "Rater", "Raters"),
    "recommendation": (
        "UNTRUSTED",
        "Best",
        "Outlook",
        "best",
        "confidence",
        "likely_bests",
        "outlook",
    ),
    "searching": ("search_about",),
    "simulation": ("Checkpoint", "Simulation", "conclusion", "simulated"),
    "state": ("Answered", "Entry", "State"),
    "question": ("Question", "Status"),
    "study": ("Study",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_HOME]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'askwise.study' has no attribute {name!r}")
    return getattr(import_module(f"askwise.study.{_HOME[name]}"), name)
