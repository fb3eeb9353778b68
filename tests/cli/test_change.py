"""`askwise change`: the study file was edited after the first question."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import askwise as aw
from askwise.cli import main

HEAD = '[study]\nname = "hall"\nstorage = "study.db"\ninitial = 99\n'
GAIN = '[space.gain]\ntype = "real"\nlow = 0\nhigh = {high}\nunit = "dB"\n'
WINE = '[space.wine]\ntype = "items"\ntable = "wines.csv"\nfeatures = ["sugar"]\nid = "name"\n'


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(high: int = 40, more: str = "", space: str = "") -> None:
    Path("askwise.toml").write_text(f"{HEAD}{more}{GAIN.format(high=high)}{space}")


def run(*words: str, typed: str | None = None, code: int = 0) -> str:
    result = CliRunner().invoke(main, list(words), input=typed)
    assert result.exit_code == code, result.output
    return " ".join((result.stdout or result.stderr).split())


def kinds() -> list[str]:
    with aw.Study.open("study.db", "hall") as study:
        return [event.kind for event in study._ledger.record.events()]


def test_an_edited_file_is_applied_after_confirmation():
    written()
    assert "study must have a record to change; got none" in run("change", code=1)
    run("ask")
    assert "askwise.toml says what is recorded: nothing to change." in run("change")
    written(60, 'rule = "muc_joint"\nconstraints = ["gain <= 55"]\n')
    assert "Run `askwise change` to go on so, or change it back." in run("ask", code=1)
    said = "gain: 0 to 40 becomes 0 to 60 dB constraints: none becomes gain <= 55 rule: muc becomes muc_joint"
    assert run("change", typed="n\n") == f"{said} Change the study so? [y/N]: n Nothing was changed."
    assert kinds() == ["asked"]
    shown = run("change", "--reason", "too quiet", typed="y\n")
    assert shown == f"{said} Change the study so? [y/N]: y Changed; questions from here on follow the file."
    assert kinds() == ["asked", "changed"]
    run("tell", "0", "A")
    run("ask")
    assert "reproduced bit for bit" in run("replay")
    with aw.Study.open("study.db", "hall") as study:
        assert study.changes()[0].reason == "too quiet"
    assert "nothing to change" in run("change", "--yes")
    written()
    assert "high was 60, is 40" in run("status", code=1)


def test_json_shows_what_would_change_and_changes_it_with_yes_only():
    written()
    run("ask")
    written(60, "expires = 60\n")
    words = ["gain: 0 to 40 becomes 0 to 60 dB", "expires: never becomes after 60 s"]
    for extra, changed in (([], False), (["--yes"], True)):
        shown = CliRunner().invoke(main, ["change", "--json", *extra])
        assert json.loads(shown.stdout) == {"changes": words, "changed": changed}
        assert kinds() == ["asked"] + ["changed"] * changed
    assert json.loads(CliRunner().invoke(main, ["change", "--json"]).stdout) == {
        "changes": [],
        "changed": False,
    }


def test_what_must_stay_is_refused_by_change_as_well():
    written()
    run("ask")
    for more, message in (
        (
            'feedback = "binary"\n',
            "feedback must stay as it was at the first question, duel, since the answers",
        ),
        ("seed = 1\n", "seed must stay"),
        ('participants = "population"\n', "participants must stay"),
    ):
        written(more=more)
        shown = run("change", "--yes", code=1)
        assert message in shown
        assert "Begin another study" in shown
    written(space='[space.new]\ntype = "integer"\nlow = 1\nhigh = 3\n')
    assert "parameters must stay as they were at the first question, gain; got gain, new" in run(
        "change", "--yes", code=1
    )
    Path("askwise.toml").write_text(f'{HEAD}[space.gain]\ntype = "real"\nlow = 1\nhigh = 40\nlog = true\n')
    assert "log of gain must stay" in run("change", "--yes", code=1)
    assert kinds() == ["asked"]


def test_rows_may_be_added_to_a_table_of_items():
    Path("wines.csv").write_text("name,sugar\nChablis,1.2\nRioja,2.5\n")
    written(space=WINE)
    run("ask")
    Path("wines.csv").write_text("name,sugar\nChablis,1.2\nRioja,2.5\nPort,9.0\n")
    assert "parameter wine must stay" in run("ask", code=1)
    assert "wine: 1 more item, Port" in run("change", "--yes")
    run("tell", "0", "A")
    assert re.search(r"wine", run("ask"))
    assert "nothing to change" in run("change")
    Path("wines.csv").write_text("name,sugar\nChablis,1.2\nPort,9.0\n")
    assert "table of wine must keep the items that are there" in run("change", "--yes", code=1)
