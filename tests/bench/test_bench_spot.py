"""Spot checks find differences from committed results, and measure how much better a query scores."""

from dataclasses import asdict, replace

import pytest

from askwise.bench.chunks import Chunk, Folder
from askwise.bench.experiments import EXPERIMENTS, Arm
from askwise.bench.functions import FUNCTIONS
from askwise.bench.lanes import RunId, run
from askwise.bench.results import Transcript, load, pack
from campaigns import script

TINY = EXPERIMENTS["bbo"].reduced(functions=("forrester",), rules=("ucb_phi",), replicates=5, iterations=4)
IDS = tuple(RunId("bbo", "forrester", "ucb_phi", each) for each in range(5))


@pytest.fixture(scope="module")
def spot():
    with script("spot") as module:
        yield module


@pytest.fixture(scope="module")
def runs():
    return run(TINY, IDS)


def committed(directory, runs, moved=0.0, worse=0.0):
    """Packed results of these runs, with the third query of the first run moved and all scores lowered."""
    chunk = Chunk.of(IDS, runs, "an abacus")
    questions = chunk.questions.copy()
    questions[0, 2] += moved
    folder = Folder(directory / "whole")
    folder.path.mkdir()
    folder.write_about({"experiment": asdict(TINY)})
    folder.write(replace(chunk, questions=questions, scores=chunk.scores - worse))
    return load(pack(folder.path, directory / "packed"))


def test_equal_runs_are_reported_as_equal(spot, runs, tmp_path):
    found = spot.compared(committed(tmp_path, runs), ("ucb_phi", "forrester"), runs)
    assert (found.noticed, found.parted, found.answered) == (0, 0, 0)
    assert found.largest < 1e-7  # queries are kept in float32
    assert (found.runs, found.same_throughout, found.same_end, found.better) == (5, 5, 5, 0)
    assert found.p[0] == 1
    assert found.medians[0] == pytest.approx(found.medians[1], rel=1e-5)


@pytest.mark.parametrize(("moved", "noticed", "parted"), [(1e-2, 3, 3), (1e-5, 3, 0), (1e-8, 0, 0)])
def test_the_query_that_differs_is_found(spot, runs, tmp_path, moved, noticed, parted):
    found = spot.compared(committed(tmp_path, runs, moved), ("ucb_phi", "forrester"), runs)
    assert (found.noticed, found.parted) == (noticed, parted)
    assert found.largest == pytest.approx(0 if parted else moved, abs=1e-7)


def test_final_scores_that_differ_are_found(spot, runs, tmp_path):
    found = spot.compared(committed(tmp_path, runs, worse=100.0), ("ucb_phi", "forrester"), runs)
    assert (found.same_end, found.better) == (0, 5)
    assert found.p[0] < 0.01
    assert found.medians[0] == pytest.approx(found.medians[1] + 100, abs=1e-3)  # kept in 16 bits


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "rule", "m"),
    [
        ("bbo", "ucb_f", 1),
        ("bbo", "thompson", 1),
        ("pbo", "muc", 2),
        pytest.param("bbo", "binary_ei", 1, marks=slow),
        pytest.param("pbo", "duel_thompson", 2, marks=slow),
        pytest.param("pbo", "eiig(k=0.1)", 2, marks=slow),
        pytest.param("pbo", "kss", 2, marks=slow),
        pytest.param("batch", "muc", 3, marks=slow),
    ],
)
def test_no_query_scores_better_than_that_of_the_rule(spot, name, rule, m):
    experiment = replace(EXPERIMENTS[name], arms=(Arm(rule, m),), iterations=7)
    run_id = RunId(name, "forrester", rule, 1)
    runs = run(experiment, [run_id])
    asked = Transcript(runs.questions[0].numpy(), runs.answers[0].numpy(), runs.optima[0].numpy())
    for member in range(m):
        gaps = []
        for place in (0.03, 0.5, 0.97):
            others = asked.questions.copy()
            others[-1, member] = place
            gaps.append(spot.gap(experiment, run_id, asked, replace(asked, questions=others), 7))
        assert min(gaps) > -1e-6
        assert 1e-3 < max(gaps) <= 1


def test_the_same_cells_are_chosen_every_time_and_the_first_rule_is_among_them(spot):
    pbo = EXPERIMENTS["pbo"]
    cells = spot.chosen(pbo, 5)
    assert cells == spot.chosen(pbo, 5)
    assert cells[0][0] == "muc"
    assert len({arm for arm, _ in cells}) == len({function for _, function in cells}) == 5
    few = EXPERIMENTS["batch"]
    assert [arm for arm, _ in spot.chosen(few, 4)].count("muc") == 2
    drawn = {FUNCTIONS[function].dim for arm, function in spot.chosen(few, 40) if arm == "kss"}
    assert max(drawn) == spot.MOST_DIMENSIONS
