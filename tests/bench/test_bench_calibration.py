"""Studies in lanes are asked and told what a study is; reliability is measured as it is defined."""

import numpy as np
import pytest
import torch

from askwise.study import Study, confidence
from campaigns import script

COUNT = 13  # answers: beyond the first model, and a refit


@pytest.fixture(scope="module")
def calibration():
    with script("calibration") as module:
        yield module


# lanes


def retold(lanes, lane: int) -> Study:
    """A study with the answers of a lane, which must ask the same questions."""
    study = Study.of(lanes.cases[lane].plan())
    for query, said in zip(lanes.questions, lanes.answers, strict=True):
        question = study.ask()
        points = torch.stack([study.space.unit(setting) for setting in question.options])
        torch.testing.assert_close(points, query[lane], rtol=0, atol=1e-5)
        study.tell(question, int(not said[lane]) if len(points) == 2 else bool(said[lane]))
    return study


@pytest.mark.parametrize("feedback", ["duel", "binary"])
def test_studies_in_lanes_are_asked_and_told_what_a_study_is(calibration, feedback):
    names = [("forrester", 3, 0), ("gramacy_lee", 10, 1), ("gramacy_lee", 1, 0)]
    cases = [calibration.Case(feedback, *name) for name in names]
    lanes = calibration.Lanes(cases)
    while lanes.count < COUNT:
        lanes.step()
    with torch.no_grad():
        rows = lanes.told()
    assert [(row["function"], row["level"], row["replicate"]) for row in rows] == names
    for lane, row in enumerate(rows):
        study = retold(lanes, lane)
        reference = study.space.natural(lanes.references[lane, 0])
        status, best, against = study.status(), study.best(), study.best(reference=reference)
        at_best = study.space.unit(best.params)[None]
        asked = torch.cat([query[lane] for query in lanes.questions])
        expected = {
            "answers": status.answers,
            "gain": status.gain,
            "regret": status.regret,
            "random": best.probability,
            "reference": against.probability,
            "better": study.compare(best.params, reference).better,
            "best": confidence(study.belief(), study.plan, at_best, asked),
        }
        assert {name: row[name] for name in expected} == pytest.approx(expected, abs=1e-4)
