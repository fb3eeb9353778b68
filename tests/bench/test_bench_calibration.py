"""Studies in lanes are asked and told what a study is; reliability is measured as it is defined."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from askwise.study import Study, confidence
from campaigns import BENCHMARKS, script

COUNT = 13  # answers: beyond the first model, and a refit


@pytest.fixture(scope="module")
def calibration():
    with script("calibration") as module:
        yield module


# lanes


def retold(lanes, lane: int) -> Study:
    """A study with the answers of a lane, which must ask the same questions."""
    study = Study.of(lanes.plans[lane])
    for query, said in zip(lanes.questions, lanes.answers, strict=True):
        question = study.ask()
        points = torch.stack([study.space.unit(setting) for setting in question.options])
        torch.testing.assert_close(points, query[lane], rtol=0, atol=1e-5)
        study.tell(question, int(not said[lane]) if len(points) == 2 else bool(said[lane]))
    return study


@pytest.mark.parametrize(
    ("feedback", "kernel"), [("duel", "matern52"), ("duel", "averaged"), ("binary", "matern52")]
)
def test_studies_in_lanes_are_asked_and_told_what_a_study_is(calibration, feedback, kernel):
    names = [("forrester", 3, 0), ("gramacy_lee", 10, 1), ("gramacy_lee", 1, 0)]
    cases = [calibration.Case(feedback, *name) for name in names]
    lanes = calibration.Lanes(cases, kernel=kernel)
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


def test_a_study_without_both_outcomes_says_nothing(calibration, monkeypatch):
    cases = [calibration.Case("binary", "forrester", 3, replicate) for replicate in range(2)]
    lanes = calibration.Lanes(cases)
    values, easy = lanes.values, torch.tensor([0.0, 100.0])  # the second always works
    monkeypatch.setattr(lanes, "values", lambda x: (values(x).mT + easy).mT)
    while lanes.count < 5:
        lanes.step()
    assert lanes.ready.tolist() == [True, False]
    assert lanes.told()["replicate"].tolist() == [0]
    untouched = calibration.Lanes(cases)
    filling = []
    for count in range(5):
        untouched.answers = lanes.answers[:count]
        filling.append(untouched.query()[1])
    torch.testing.assert_close(torch.stack(filling), torch.stack([query[1] for query in lanes.questions]))


def test_an_interrupted_run_goes_on_where_it_was(calibration, monkeypatch, tmp_path):
    computed = []

    def compute(task):
        computed.append(task.cases)
        if len(computed) == 2:
            raise KeyboardInterrupt
        rows = np.zeros(len(task.cases), calibration.COLUMNS)
        for row, case in zip(rows, task.cases, strict=True):
            row["function"], row["feedback"], row["replicate"] = case.function, case.feedback, case.replicate
            row["level"] = case.level
        return rows

    monkeypatch.setattr(calibration, "computed", compute)
    wanted, out = calibration.cases(["forrester", "trid"], 2), tmp_path / "rows.npz"

    def run(some):
        return calibration.run(some, out, calibration.ThisProcess(), "cpu", 12)

    with pytest.raises(KeyboardInterrupt):
        run(wanted)
    rows = run(wanted)
    assert len(rows) == len(wanted) == 24
    assert sorted(case for some in (computed[0], *computed[2:]) for case in some) == sorted(wanted)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npz"]
    count = len(computed)
    assert len(run(calibration.cases(["forrester", "trid"], 3))) == 36
    assert sum(map(len, computed[count:])) == 12


def test_a_run_needs_neither_figures_nor_databases():
    code = """
import sys
sys.modules |= dict.fromkeys(("matplotlib", "sqlalchemy", "pandas", "typer"))
import calibration
calibration.Lanes([calibration.Case("duel", "forrester", 1, 0)]).step()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, cwd=BENCHMARKS)


# reliability


@pytest.fixture(scope="module")
def page():
    with script("calibration_page") as module:
        yield module


def statements(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    source = np.random.default_rng(seed)
    return source.random(count), source.random(count), source.integers(0, 34, count)


def test_statements_that_are_true_as_often_as_said_lie_on_the_diagonal(page):
    said, chance, group = statements(40_000, 1)
    bins = page.reliability(said, (chance < said).astype(float), group)
    assert sum(one.true.count for one in bins) == len(said)
    assert [one.true.value for one in bins] == pytest.approx([one.said for one in bins], abs=0.03)
    inside = [one.true.interval[0] <= one.said <= one.true.interval[1] for one in bins]
    assert sum(inside) >= len(bins) - 2
    assert page.calibration_error(bins) < 0.02


def test_overconfident_statements_lie_below_it_by_as_much_as_they_are(page):
    said, chance, group = statements(40_000, 2)
    bins = page.reliability(said, (chance < said**2).astype(float), group)
    assert [one.true.value for one in bins] == pytest.approx([one.said**2 for one in bins], abs=0.03)
    middle = [one for one in bins if 0.2 < one.said < 0.8]
    assert all(one.true.interval[1] < one.said for one in middle)
    assert page.calibration_error(bins) == pytest.approx(1 / 6, abs=0.01)  # of x - x^2 over [0, 1]


def test_a_bin_has_its_lower_edge_and_the_last_one_both(page):
    said = np.array([0.0, 0.1, 0.1999, 0.95, 1.0])
    bins = page.reliability(said, np.array([0.0, 1.0, 0.0, 1.0, 0.0]), [0] * 5)
    assert [(one.true.count, one.true.value) for one in bins] == [(1, 0.0), (2, 0.5), (2, 0.5)]


def test_an_interval_is_as_wide_as_functions_differ_not_as_their_studies_do(page):
    same = np.repeat([1.0, 0.0], 500)
    one = page.share(same, np.repeat([0, 1], 500))
    assert (one.value, one.interval) == (0.5, (0.0, 1.0))
    many = page.share(same, np.arange(1000))
    assert many.interval == pytest.approx((0.469, 0.531), abs=0.005)


def test_the_hint_is_judged_at_its_first_time_and_whenever_it_is_said(page, calibration):
    rows = np.zeros(4, calibration.COLUMNS)
    rows["feedback"], rows["function"], rows["d"] = "duel", "trid", 1
    rows["answers"], rows["replicate"] = [10, 20, 40, 10], [0, 0, 0, 1]
    rows["few"], rows["rate"] = [0.5, 0.99, 0.99, 0.99], [0.6, 0.6, 0.6, 0.7]
    rows["true_share"], rows["true_rate"] = [0, 0.05, 0.049, 0], [0.6, 0.9, 0.8, 0.6]
    found = page.judged(rows, page.rule(0.9))
    assert (found.once.value, found.ever.value, found.none.value, found.told) == (0.0, 0.5, 0.0, 1)
    assert page.judged(rows[2:], page.rule(0.9)).once.value == 1
    assert page.judged(rows[2:], page.rule(0.9)).fewest.value == 0  # not as few as the model says
    rows["feedback"] = "binary"
    assert page.right(rows).tolist() == page.fewest(rows).tolist() == [True, False, False, True]
    rows["feedback"] = "duel"
    assert page.now(rows).tolist() == page.rule(page.SURE_NOW)(rows).tolist() == [False, True, True, False]
    assert page.before(rows).tolist() == [True, True, True, False]
    assert page.studies(rows) == 2


def test_the_limit_of_the_hint_is_the_one_tuned_on_the_committed_results(page, calibration):
    rows = np.load(calibration.RESULTS)["rows"]
    assert page.tuned(rows) == page.SURE_NOW
    odd, even = (set(half["function"].tolist()) for half in page.halves(rows))
    assert {"ackley", "trid"} <= odd
    assert {"beale", "sphere"} <= even
