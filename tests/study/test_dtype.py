"""Questions do not depend on torch's default dtype, which users of BoTorch set to float64."""

import pytest
import torch

import askwise as aw
from askwise.search import search

SPACE = aw.Space(gain=aw.Real(0, 1), steps=aw.Integer(1, 5), mode=aw.Choice(["a", "b", "c"]))
ANSWERS = {"binary": (True, False, None), "duel": (0, 1, None), "batch": (0, 1, None)}
FAST = [("binary", "ucb_phi", False), ("duel", "muc", True)]
ALL = [
    (feedback, name, constrained)
    for feedback in ANSWERS
    for name, rule in sorted(aw.rules.RULES.items())
    for constrained in (False, True)
    if feedback in rule().asks and (feedback, name, constrained) not in FAST
]


@pytest.fixture
def float64():
    yield lambda: torch.set_default_dtype(torch.float64)
    torch.set_default_dtype(torch.float32)


def course(feedback: str, rule: str, space: aw.Space) -> list[object]:
    """Everything that a study says on its way."""
    study = aw.Study(space, feedback, rule, initial=2)
    said: list[object] = []
    for answer in ANSWERS[feedback] * 2:
        question = study.ask()
        said.append(question.options)
        study.tell(question, answer)
    return [*said, study.best(), study.status()]


@pytest.mark.parametrize(
    ("feedback", "rule", "constrained"), [*FAST, *(pytest.param(*one, marks=pytest.mark.slow) for one in ALL)]
)
def test_a_study_is_the_same_under_another_default_dtype(float64, feedback, rule, constrained):
    usual = course(feedback, rule, SPACE.where("gain + steps <= 5") if constrained else SPACE)
    float64()
    # computed once, and so by the default dtype of the first study
    search._sobol.cache_clear()
    search._sobol_settings.cache_clear()
    again = course(feedback, rule, SPACE.where("gain + steps <= 5") if constrained else SPACE)
    assert repr(again) == repr(usual)
