"""What a study tells is computed once, as long as nothing changes."""

import pytest
import torch

import askwise as aw
from askwise.study import expectations
from askwise.study.recent import Recent

SPACE = aw.Space(x=aw.Real(0, 1))
KERNEL = aw.kernel("matern52", 0.3, 4.0)


def answered(feedback: str = "duel", count: int = 6, **options) -> aw.Study:
    study = aw.Study(SPACE, feedback, kernel=KERNEL, lapses=0, initial=3, **options)
    source = torch.Generator().manual_seed(1)
    for _ in range(count):
        study.tell(study.ask(), int(torch.rand((), generator=source) < 0.5))
    return study


@pytest.fixture
def outlooks(monkeypatch) -> list[int]:
    """One entry for each outlook that is computed."""
    counted, whole = [], expectations.expectations
    monkeypatch.setattr(
        expectations, "expectations", lambda *given, **named: counted.append(1) or whole(*given, **named)
    )
    return counted


def test_a_status_that_is_asked_for_again_is_not_computed_again(outlooks):
    study = answered()
    first = study.status()
    assert study.status() == first
    assert len(outlooks) == 1
    question = study.ask()  # the one that was expected to come next
    study.status()
    assert len(outlooks) == 1
    study.skip(question)  # another one is next
    study.status()
    assert len(outlooks) == 2


def test_a_status_follows_every_answer_and_every_amendment(outlooks):
    study = answered()
    before = study.status()
    question = study.ask()
    study.tell(question, 1)
    after = study.status()
    assert (before.answers, after.answers) == (6, 7)
    study.amend(question, 0)
    amended = study.status()
    assert amended.answers == 7
    assert amended.regret != after.regret
    assert len(outlooks) == 3


def test_a_change_of_the_list_that_was_returned_is_not_kept():
    study = answered()
    study.status().checks.clear()
    assert study.status().checks


def test_results_are_told_apart_by_their_key_and_by_the_objects_they_depend_on():
    recent, one, other = Recent(), [1], [1]
    assert recent.get("a", lambda: 1, one) == 1
    assert recent.get("a", lambda: 2, one) == 1
    assert recent.get("b", lambda: 2, one) == 2
    entries = [object()], [object()]
    assert [recent.get("c", lambda n=n: n, same) for n, same in enumerate(entries)] == [0, 1]
    assert [recent.get("c", lambda: 5, same) for same in entries] == [0, 1]
    assert other == one


def test_only_the_last_few_results_are_kept():
    recent = Recent()
    for number in range(40):
        recent.get(number, lambda number=number: number)
    assert recent.get(39, lambda: -1) == 39
    assert recent.get(0, lambda: -1) == -1
