"""Our scores compared with the authors'."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from askwise.bench.published import PUBLISHED
from askwise.bench.regret import levels
from askwise.bench.report.page import Recipe, short
from askwise.bench.results import load
from campaigns import HOUSE, keep, made_up, script, small, table


@pytest.fixture(scope="module")
def authors():
    with script("fidelity") as module:
        yield module


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    experiment = small("batch-as-run")
    return keep(tmp_path_factory.mktemp("results") / experiment.name, experiment, made_up(experiment))


@pytest.fixture(scope="module")
def batch(directory):
    return load(directory)


def test_scores_are_better_worse_or_indistinguishable(authors, batch):
    function = batch.functions[0]
    muc = batch.scores["muc"][0]
    level = levels(function, "raw", "value")
    theirs = {
        "muc": {function: muc - 10},
        "kss": {function: batch.scores["kss"][0] + 10},
        "random": {function: batch.scores["random"][0] + 1e-8 * (level.best - level.usual)},
    }
    found = {row.rule: row for row in authors.fidelity(batch, theirs)}
    assert [found[rule].verdict() for rule in ("muc", "kss", "random")] == [
        "better",
        "worse",
        "indistinguishable",
    ]
    assert found["muc"].p == pytest.approx(
        mannwhitneyu(muc[:, -1], muc[:, -1] - 10, alternative="two-sided", method="asymptotic").pvalue
    )
    assert found["random"].p == 1
    assert found["muc"].ours_median == pytest.approx(np.median(muc[:, -1]))
    assert found["muc"].theirs_mean == pytest.approx(muc[:, -1].mean() - 10)


def test_runs_of_unequal_length_are_compared_at_the_end_of_the_shorter(authors, batch):
    function = batch.functions[0]
    shorter = batch.scores["muc"][0][:, :4]
    (row,) = authors.fidelity(batch, {"muc": {function: shorter}})
    assert row.ours_mean == row.theirs_mean == pytest.approx(shorter[:, -1].mean())
    assert row.p == 1


def test_equal_constants_are_indistinguishable(authors, batch):
    flat = replace(batch, scores={"muc": np.zeros((2, 10, 6))})
    (row,) = authors.fidelity(flat, {"muc": {batch.functions[0]: np.zeros((9, 6))}})
    assert (row.p, row.verdict()) == (1, "indistinguishable")


def test_the_authors_scores_are_read_by_our_names(authors, tmp_path, directory, capsys):
    source = PUBLISHED["batch"].source
    arrays = {
        f"{source}/ackley/MVT": np.zeros((3, 6)),
        f"{source}/Ursem_waves/random_acquisition_tour": np.ones((3, 6)),
    }
    np.savez(
        tmp_path / "s.npz",
        **arrays,
        **{"another/ackley/MVT": np.ones((1, 1)), f"{source}/egg/BKG": np.ones(1)},
    )
    found = authors.authors_scores(tmp_path / "s.npz", "batch-as-run")
    assert {rule: sorted(functions) for rule, functions in found.items()} == {
        "muc": ["ackley"],
        "kss": [],
        "random": ["ursem_waves"],
    }
    authors.main([str(tmp_path / "s.npz"), str(directory), "--out", str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text()
    rows = table(text, "Functions on which our final scores")
    assert {
        rule: sum(int(row[f"at 0.05<br>{verdict}"]) for verdict in ("better", "indistinguishable", "worse"))
        for rule, row in rows.items()
    } == {
        "muc": 1,
        "random": 1,
    }
    assert f"python benchmarks/fidelity.py s.npz {directory}" in text
    authors.main([str(tmp_path / "s.npz"), str(directory)])
    assert capsys.readouterr().out == text


def test_a_table_of_fidelity_has_every_function(authors, batch):
    theirs = {"muc": dict(zip(batch.functions, batch.scores["muc"] - 1, strict=True))}
    rows = authors.fidelity(batch, theirs)
    means = {"muc": authors.overall(batch, theirs, "muc")}
    text = authors.fidelity_table(rows, means, "batch-as-run", Recipe("make it"))
    rows_of_muc = table(text, "Final scores of `muc`")
    assert tuple(rows_of_muc) == batch.functions
    for row in rows:
        assert rows_of_muc[row.function]["median<br>theirs"] == short(row.theirs_median)
        assert rows_of_muc[row.function]["ours are"] == row.verdict()


def test_small_differences_count_at_the_weaker_level_and_in_the_mean(authors, batch):
    source = np.random.default_rng(0)
    ours = replace(batch, scores={"muc": source.normal(0.0, 1.0, (2, 20, 1))})
    shifts = dict(zip(batch.functions, (0.4, 0.0), strict=True))
    theirs = {"muc": {name: source.normal(shift, 1.0, (30, 1)) for name, shift in shifts.items()}}
    rows = authors.fidelity(ours, theirs)
    assert [row.verdict() for row in rows] == ["indistinguishable"] * 2
    assert [row.verdict(0.05) for row in rows] == ["worse", "indistinguishable"]
    found = authors.overall(ours, theirs, "muc")
    expected = [
        np.mean(ours.scores["muc"][place] > theirs["muc"][name].T)
        for place, name in enumerate(batch.functions)
    ]
    assert found.fixed.mean == pytest.approx(np.mean(expected))
    assert found.fixed.low < found.fixed.mean < found.fixed.high < 0.55
    means = {"muc": found}
    row = table(authors.fidelity_table(rows, means, "batch-as-run", Recipe("make it")), "Functions on")["muc"]
    assert (row["at 0.0005<br>worse"], row["at 0.05<br>worse"]) == ("0", "1")
    assert row["ours end above theirs<br>these functions"].startswith(f"{found.fixed.mean:.3f} [")


def test_experiments_that_the_authors_did_not_run_are_refused(authors, tmp_path):
    np.savez(tmp_path / "s.npz", **{"a/ackley/MVT": np.zeros((2, 2))})
    with pytest.raises(ValueError, match=HOUSE):
        authors.authors_scores(tmp_path / "s.npz", "pbo-learned")
    with pytest.raises(ValueError, match=HOUSE):
        authors.authors_scores(tmp_path / "s.npz", "pbo-as-run")
    for other in (tmp_path, tmp_path / "none.npz"):
        with pytest.raises(ValueError, match="must be the file of the authors' scores; got"):
            authors.authors_scores(other, "pbo-as-run")
