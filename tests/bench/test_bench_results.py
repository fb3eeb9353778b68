"""Results on disk: written atomically, counted if missing, and small when packed."""

import errno
import os
import re
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from askwise.bench.campaign import Campaign
from askwise.bench.chunks import Chunk, Folder, Unusable, write_atomically
from askwise.bench.experiments import EXPERIMENTS, Arm, Experiment
from askwise.bench.functions import FUNCTIONS
from askwise.bench.lanes import RunId
from askwise.bench.report.page import Page
from askwise.bench.results import load, pack
from askwise.bench.user import User
from askwise.errors import Refused

HOUSE = re.compile(r"^[^;\n]+ must [^;\n]+; got [^\n]+\. [^\n]+$")
WHOLE = EXPERIMENTS["batch-as-run"]
# different numbers of points and dimensions, to be padded when packed
MIXED = Experiment(
    name="mixed",
    title="Duels and batches",
    about="For tests.",
    arms=(Arm("muc", 2, "duel"), Arm("muc", 3, "batch"), Arm("random", 2)),
    replicates=2,
    iterations=5,
    initial=2,
    scale="raw",
    prior="recovered",
    functions=("hartmann6", "forrester", "trid"),
    user=User(lapses=0.1),
)


def made_up(experiment: Experiment, function: str, label: str) -> Chunk:
    """Made-up runs of all replicates of an arm on a function."""
    source = np.random.default_rng(len(function) + 100 * len(label))
    lanes, t, m = experiment.replicates, experiment.iterations, experiment.arm(label).m
    d, pairs = FUNCTIONS[function].dim, experiment.arm(label).pairs
    return Chunk(
        ids=tuple(RunId(experiment.name, function, label, replicate) for replicate in range(lanes)),
        questions=source.random((lanes, t, m, d)),
        answers=source.random((lanes, t, pairs)) < 0.5,
        optima=source.random((lanes, t, d)),
        scores=source.normal(size=(lanes, t)),
        converged=source.random((lanes, t)) < 0.9,
        seconds=source.random(t),
        hardware="an abacus",
    )


def kept(experiment: Experiment, directory: Path, but: tuple[tuple[str, str], ...] = ()) -> Path:
    """A directory with such runs of an experiment, except those of some functions and arms."""
    folder = Folder(directory)
    folder.path.mkdir(exist_ok=True)
    folder.write_about({"experiment": asdict(experiment), "seed": "by name"})
    for arm in experiment.arms:
        for function in experiment.functions:
            if (function, arm.label) not in but:
                folder.write(made_up(experiment, function, arm.label))
    return directory


def refusal(directory: Path, **options: bool) -> str:
    with pytest.raises(ValueError, match="must") as caught:
        load(directory, **options)
    assert HOUSE.match(str(caught.value)), caught.value
    return str(caught.value)


# chunks


def test_a_chunk_is_read_back_as_it_was_written(tmp_path):
    chunk = made_up(MIXED, "trid", "batch")
    again = Chunk.read(kept_file(chunk, tmp_path))
    assert again.ids == chunk.ids
    assert again.hardware == chunk.hardware
    for name in ("questions", "answers", "optima", "scores", "converged", "seconds"):
        np.testing.assert_array_equal(getattr(again, name), getattr(chunk, name))
        assert getattr(again, name).dtype == getattr(chunk, name).dtype


def kept_file(chunk: Chunk, directory: Path) -> Path:
    return Folder(directory).write(chunk)


def test_the_name_of_a_chunk_follows_from_its_runs(tmp_path):
    one, other = made_up(MIXED, "trid", "batch"), made_up(MIXED, "trid", "duel")
    assert one.name == replace(one, hardware="another").name
    assert one.name != other.name
    assert re.fullmatch("[0-9a-f]{24}", one.name)


def damaged(content: bytes) -> dict[str, bytes]:
    flipped = bytearray(content)
    flipped[content.index(b"scores.npy") + 200] ^= 1
    return {
        "empty": b"",
        "cut": content[:-40],
        "half": content[: len(content) // 2],
        "flipped": bytes(flipped),
    }


@pytest.mark.parametrize("how", ["empty", "cut", "half", "flipped", "text", "other arrays", "one array"])
def test_a_damaged_chunk_is_noticed(tmp_path, how):
    path = kept_file(made_up(MIXED, "trid", "batch"), tmp_path)
    if how == "text":
        path.write_text("scores")
    elif how == "other arrays":
        with path.open("wb") as out:
            np.savez(out, scores=np.zeros(3))
    elif how == "one array":
        with path.open("wb") as out:
            np.save(out, np.zeros(3))
    else:
        path.write_bytes(damaged(path.read_bytes())[how])
    with pytest.raises(Unusable, match="must hold runs of this experiment; got a damaged file") as caught:
        Chunk.read(path)
    assert HOUSE.match(str(caught.value))
    assert caught.value.path == path


def test_a_chunk_of_another_experiment_is_not_used(tmp_path):
    folder = Folder(kept(MIXED, tmp_path, but=(("trid", "duel"),)))
    folder.write(made_up(replace(MIXED, name="other"), "trid", "duel"))
    folder.write(made_up(replace(MIXED, iterations=4), "forrester", "duel"))
    wrong = [each for each in folder.read(MIXED) if isinstance(each, Unusable)]
    assert sorted(re.search("got (.*?)\\.", str(each))[1] for each in wrong) == [
        "4 iterations of mixed",
        "5 iterations of other",
    ]


# files


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_nothing_else(tmp_path, monkeypatch):
    path = write_atomically(tmp_path / "about.json", lambda out: out.write(b"old") and None)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"about\.json must be written; got no space left on device") as caught:
        write_atomically(path, lambda out: out.write(b"new") and None)
    assert HOUSE.match(str(caught.value))
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_record_is_not_overwritten_by_results(tmp_path):
    content = b"SQLite format 3\0 and more"
    (tmp_path / "report.md").write_bytes(content)
    (tmp_path / "about.json").write_bytes(content)
    with pytest.raises(Refused, match=r"^file must not be the record of a study; got .*about.json, which"):
        write_atomically(tmp_path / "about.json", lambda out: out.write(b"new"))
    with pytest.raises(Refused, match=r"^file must not be the record of a study; got .*report.md, which"):
        Page(tmp_path).save()
    assert {path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == {content}


def test_unfinished_files_are_ignored_and_removed(tmp_path):
    folder = Folder(kept(MIXED, tmp_path))
    (folder.chunks / "0123.npz.77.tmp").write_bytes(b"half")
    (folder.path / "about.json.77.tmp").write_bytes(b"half")
    assert len(list(folder.read(MIXED))) == 9
    load(tmp_path)
    folder.sweep()
    assert not list(tmp_path.rglob("*.tmp"))
    assert len(list(folder.chunks.iterdir())) == 9


# results


def test_results_are_those_of_the_chunks(tmp_path):
    results = load(kept(MIXED, tmp_path))
    assert results.experiment == MIXED
    assert results.functions == MIXED.functions
    assert list(results.scores) == ["duel", "batch", "random"]
    for arm in MIXED.arms:
        for row, function in enumerate(MIXED.functions):
            chunk = made_up(MIXED, function, arm.label)
            np.testing.assert_array_equal(results.scores[arm.label][row], chunk.scores)
            np.testing.assert_array_equal(results.converged[arm.label][row], chunk.converged)
            np.testing.assert_array_equal(results.firsts[arm.label, function].questions, chunk.questions[0])
        spent = sum(made_up(MIXED, function, arm.label).seconds for function in MIXED.functions)
        np.testing.assert_allclose(results.seconds[arm.label], spent / 6)


def test_missing_runs_are_counted_with_the_command_that_computes_them(tmp_path):
    reduced = WHOLE.reduced(functions=("trid", "perm"), replicates=4)
    said = refusal(kept(reduced, tmp_path / "a b", but=(("trid", "muc"), ("perm", "random"))))
    assert "must hold all 24 runs of the experiment; got 16 (8 missing)" in said
    there = f"'{tmp_path}/a b'"
    assert said.endswith(
        f"`askwise bench run batch-as-run --functions trid,perm --replicates 4 --out {there}`."
    )


def test_damaged_files_are_counted_with_the_missing_runs(tmp_path):
    folder = Folder(kept(MIXED, tmp_path))
    next(folder.chunks.iterdir()).write_bytes(b"")
    assert "got 16 (2 missing; unusable files: 1)" in refusal(tmp_path)


def test_partial_results_leave_out_functions_that_are_not_finished(tmp_path):
    full = load(kept(MIXED, tmp_path))
    partial = load(kept(MIXED, tmp_path / "less", but=(("forrester", "batch"),)), partial=True)
    assert partial.functions == ("hartmann6", "trid")
    for label, scores in partial.scores.items():
        np.testing.assert_array_equal(scores, full.scores[label][[0, 2]])
    assert {function for _, function in partial.firsts} == {"hartmann6", "trid"}
    none = kept(MIXED, tmp_path / "none", but=tuple((name, "duel") for name in MIXED.functions))
    assert "(6 missing)" in refusal(none, partial=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "must hold a campaign"),
        ("{", "must be JSON"),
        ("[]", "must describe a campaign"),
        ('{"experiment": {"name": "x"}}', "must be written as this version writes it"),
    ],
)
def test_a_directory_without_a_campaign_is_refused(tmp_path, text, message):
    if text is not None:
        (tmp_path / "about.json").write_text(text)
    assert message in refusal(tmp_path)


# packed


def test_packed_results_are_read_back_with_what_may_be_rounded_rounded(tmp_path):
    there = kept(MIXED, tmp_path / "there")
    results, packed = load(there), load(pack(there, tmp_path / "packed"))
    assert packed.experiment == results.experiment
    assert packed.about == results.about
    for label, scores in results.scores.items():
        assert packed.scores[label].dtype == np.float64
        np.testing.assert_allclose(packed.scores[label], scores, rtol=8e-6)
        np.testing.assert_array_equal(packed.converged[label], results.converged[label])
        np.testing.assert_array_equal(packed.seconds[label], results.seconds[label])
    assert packed.firsts.keys() == results.firsts.keys()
    for key, first in results.firsts.items():
        for name, array in vars(first).items():
            found = getattr(packed.firsts[key], name)
            np.testing.assert_allclose(found, array, atol=1e-7, err_msg=f"{key} {name}")
            assert getattr(packed.firsts[key], name).dtype == array.dtype


def test_packed_results_are_small_and_read_by_numpy_alone(tmp_path):
    pack(kept(MIXED, tmp_path / "there"), tmp_path / "packed")
    path = tmp_path / "packed" / "scores.npz"
    assert sorted(file.name for file in path.parent.iterdir()) == ["about.json", "scores.npz"]
    with zipfile.ZipFile(path) as file:
        assert {entry.compress_type for entry in file.infolist()} == {zipfile.ZIP_LZMA}
    with np.load(path) as file:
        assert file["scores"].dtype == np.float32
        assert file["scores"].shape == (3, 3, 2, 5)
        assert file["arms"].tolist() == ["duel", "batch", "random"]
        assert file["functions"].tolist() == list(MIXED.functions)


def test_equal_results_are_packed_into_equal_files(tmp_path):
    there = kept(MIXED, tmp_path / "there")
    one, other = (pack(there, tmp_path / name) / "scores.npz" for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_only_finished_campaigns_are_packed_and_only_elsewhere(tmp_path):
    there = kept(MIXED, tmp_path / "there", but=(("trid", "duel"),))
    with pytest.raises(ValueError, match="2 missing"):
        pack(there, tmp_path / "packed")
    assert not (tmp_path / "packed").exists()
    full = kept(MIXED, tmp_path / "full")
    with pytest.raises(ValueError, match="must not hold chunks") as caught:
        pack(full, full)
    assert HOUSE.match(str(caught.value))
    pack(full, tmp_path / "packed")
    with pytest.raises(ValueError, match="must not be that of a packed campaign") as caught:
        Campaign(MIXED, tmp_path / "packed").run()
    assert HOUSE.match(str(caught.value))


def test_more_rules_are_packed_beside_those_that_are_there(tmp_path):
    whole = load(kept(MIXED, tmp_path / "whole"))
    for name, arms in (("two", MIXED.arms[1:]), ("one", MIXED.arms[:2])):  # "batch" is in both
        packed = load(pack(kept(replace(MIXED, arms=arms), tmp_path / name), tmp_path / "packed"))
    assert {*packed.scores} == {*whole.scores} == {arm.label for arm in packed.experiment.arms}
    for label, scores in whole.scores.items():
        np.testing.assert_allclose(packed.scores[label], scores, rtol=8e-6)
        np.testing.assert_array_equal(packed.converged[label], whole.converged[label])
    assert packed.firsts.keys() == whole.firsts.keys()


@pytest.mark.parametrize("change", [{"replicates": 1}, {"functions": MIXED.functions[:2]}, {"user": User()}])
def test_other_runs_are_not_packed_beside_those_that_are_there(tmp_path, change):
    pack(kept(MIXED, tmp_path / "there"), tmp_path / "packed")
    before = (tmp_path / "packed" / "scores.npz").read_bytes()
    with pytest.raises(Refused) as caught:
        pack(kept(replace(MIXED, **change), tmp_path / "other"), tmp_path / "packed")
    assert HOUSE.match(str(caught.value))
    assert (tmp_path / "packed" / "scores.npz").read_bytes() == before


def test_a_truncated_packed_file_is_refused(tmp_path):
    path = pack(kept(MIXED, tmp_path / "there"), tmp_path / "packed") / "scores.npz"
    path.write_bytes(path.read_bytes()[:-200])
    assert "must be a packed campaign" in refusal(tmp_path / "packed")
