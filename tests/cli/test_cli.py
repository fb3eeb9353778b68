"""The command line: every command, what it prints, what it refuses, and that a refusal changes nothing."""

import csv
import errno
import io
import json
import os
import pty
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console
from typer.testing import CliRunner

import askwise as aw
from askwise.cli import conversation, main
from askwise.cli.screen import table
from askwise.cli.session import opened
from askwise.space import readable
from askwise.storage import Draft, Event, Finding, open_record
from askwise.study import Entry, Preference, State, Tie, YesNo

HOUSE = re.compile(r"^[^;\n]+ must [^;\n]+; got [^\n]+\. [^\n]+$")
COMMANDS = [
    *("init", "check", "doctor", "ask", "tell", "run", "undo", "expire", "status", "best", "level"),
    *("plot", "simulate", "predict", "compare", "history", "replay", "export", "import", "backup", "salvage"),
    *("change", "shell"),
]
NOISE = "[space.noise]\ntype = 'choice'\nvalues = ['quiet', 'loud']\ncontext = true\n"
SPACE = """
[space.gain]
type = "real"
low = 0
high = 40
unit = "dB"
[space.cutoff]
type = "real"
low = 100
high = 10000
log = true
[space.mode]
type = "choice"
values = ["soft", "hard"]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(feedback: str = "duel", more: str = "", space: str = SPACE) -> Path:
    file = Path("askwise.toml")
    head = f'[study]\nname = "hall"\nfeedback = "{feedback}"\nstorage = "study.db"\nseed = 3\n'
    more = more if "initial" in more else f"initial = 99\n{more}"  # questions at random take no time
    file.write_text(f"{head}{more}{space}")
    return file


def told(*words: str, typed: str | None = None, code: int = 0) -> str:
    """What a command prints; it must end with this code."""
    result = CliRunner().invoke(main, list(words), input=typed)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    assert "\x1b" not in result.output
    return result.stdout


def document(*words: str, typed: str | None = None, code: int = 0) -> dict:
    return json.loads(told(*words, "--json", typed=typed, code=code))


def refused(*words: str) -> str:
    """The one line on stderr, after which the record must be as it was."""
    before = recorded()
    result = CliRunner().invoke(main, list(words))
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    line = result.stderr.removesuffix("\n")
    assert HOUSE.match(line), line
    assert recorded() == before
    return line


def recorded() -> list[Event]:
    if not Path("study.db").exists():
        return []
    with closing(open_record("study.db", "hall", None)) as record:
        return record.events()


def history() -> list[Entry]:
    return list(State.after(recorded()).entries.values())


def answers() -> list[dict | None]:
    return [None if entry.answer is None else entry.answer.to_json() for entry in history()]


def statuses() -> list[str]:
    return [entry.status for entry in history()]


# help


def test_help_is_fast_and_does_not_import_torch():
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from askwise.cli import main\n"
        f"for command in {[*COMMANDS, 'serve', 'bench']}:\n"
        "    assert CliRunner().invoke(main, [command, '--help']).exit_code == 0\n"
        "heavy = ('torch', 'sqlalchemy', 'matplotlib', 'askwise.study', 'rich.table')\n"
        "assert not [name for name in heavy if name in sys.modules]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    times = []
    for _ in range(3):
        began = _time_of_children()  # not the clock's: others may be at work here
        words = [sys.executable, "-m", "askwise", "--help"]
        shown = subprocess.run(words, capture_output=True, text=True, timeout=60)
        times.append(_time_of_children() - began)
    assert min(times) < 0.3
    assert shown.stdout.startswith("Usage: askwise [OPTIONS] COMMAND")
    assert re.findall(r"^  (\w+)  ", shown.stdout, re.MULTILINE) == [*COMMANDS, "serve", "bench"]


def _time_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_every_command_has_json_and_study():
    for command in COMMANDS:
        shown = told(command, "--help")
        assert "--json" in shown
        assert ("-s, --study FILE" in shown) == (command != "salvage")  # which is about a file


def test_the_version_is_printed():
    assert re.match(r"askwise \d+\.\d+\.\d+$", told("--version").strip())


# errors


def test_a_missing_file_is_reported_in_one_line():
    assert "study file must exist" in refused("check")
    assert "nowhere.toml" in refused("ask", "-s", "nowhere.toml")


def test_an_error_in_the_file_names_file_and_line():
    file = written(space=SPACE.replace("high = 40", "high = -1"))
    line = refused("check")
    number = 1 + file.read_text().split("\n").index("high = -1")
    assert line.startswith(f"askwise: askwise.toml: line {number - 1}: low must be below high") or (
        f"line {number}" in line
    )


def test_an_error_is_json_on_request():
    written()
    told("ask")
    line = refused("tell", "0", "C")
    assert document("tell", "0", "C", code=1) == {"error": line.removeprefix("askwise: ")}
    assert document("best", "-s", "nowhere.toml", code=1)["error"].startswith("study file must exist")


def test_a_wrong_option_is_a_usage_error_and_json_on_request():
    result = CliRunner().invoke(main, ["ask", "--nonsense"])
    assert result.exit_code == 2
    assert "No such option" in result.stderr
    assert "No such option" in document("ask", "--nonsense", code=2)["error"]


def test_a_bug_still_gives_a_traceback(monkeypatch):
    written()

    def broken(*_: object) -> None:
        raise ValueError("something within")

    monkeypatch.setattr(aw.Study, "status", broken)
    result = CliRunner().invoke(main, ["status"])
    assert isinstance(result.exception, ValueError)
    assert str(result.exception) == "something within"


def test_a_file_without_storage_can_be_checked_but_not_asked():
    written()
    Path("askwise.toml").write_text(Path("askwise.toml").read_text().replace('storage = "study.db"\n', ""))
    assert "no storage" in told("check")
    assert "storage must be given" in refused("ask")


def test_a_file_changed_after_the_first_question_is_refused():
    file = written()
    told("ask")
    file.write_text(file.read_text().replace("high = 40", "high = 50"))
    line = refused("ask")
    assert "parameter gain must stay as it is in the record; got a change, high was 40, is 50. " in line
    assert line.endswith("Run `askwise change` to go on so, or change it back.")
    file.write_text(file.read_text().replace("high = 50", "high = 40").replace("seed = 3", "seed = 4"))
    for command in ("best", "change"):
        assert "seed must stay as it was at the first question, 3, since the questions so far" in refused(
            command
        )
    file.write_text(file.read_text().replace("seed = 4", "seed = 3").replace("[space.mode]", "[space.kind]"))
    assert "parameters must stay as they were at the first question, gain, cutoff, mode; " in refused(
        "status"
    )


def test_a_unit_may_be_changed_and_is_shown():
    file = written()
    told("ask")
    file.write_text(file.read_text().replace('"dB"', '"sone"'))
    assert re.search(r"gain +[\d.]+ sone +[\d.]+ sone", told("ask"))
    assert re.search(r"gain +[\d.]+ sone", told("best"))


def test_a_password_is_not_shown(monkeypatch):
    from askwise.cli import session

    file = written()
    address = "postgresql://ann:secret@host/db?password=secret"
    file.write_text(file.read_text().replace('"study.db"', f'"{address}"'))
    monkeypatch.setattr(session, "recorded_study", lambda config, prefetch: None)
    for shown in (told("check"), told("check", "--json")):
        assert "secret" not in shown
        assert "postgresql://ann:***@host/db" in shown


def test_every_command_computes_with_one_thread():
    written()
    for words in (["best"], ["doctor"]):
        torch.set_num_threads(2)
        told(*words)
        assert torch.get_num_threads() == 1


# init, check


@pytest.mark.parametrize("feedback", ["binary", "duel", "batch"])
def test_init_writes_a_file_that_is_in_order(feedback):
    assert "Wrote askwise.toml" in told("init", "--feedback", feedback)
    shown = document("check")
    assert shown["feedback"] == feedback
    assert (shown["recorded"], shown["questions"], shown["answers"]) == (False, 0, 0)
    assert not Path("study.db").exists()


def test_init_does_not_replace_a_file_unless_forced():
    Path("mine.toml").write_text("precious")
    assert "mine.toml, which exists" in refused("init", "mine.toml")
    assert Path("mine.toml").read_text() == "precious"
    assert document("init", "mine.toml", "--force", "--feedback", "batch")["file"] == "mine.toml"
    assert 'feedback = "batch"' in Path("mine.toml").read_text()
    assert "check -s other.toml" in told("init", "-s", "other.toml")
    assert "folder/x.toml must be accessible" in refused("init", "folder/x.toml")


def test_check_shows_the_space_the_settings_and_the_record():
    rate = "[space.rate]\ntype = 'fixed'\nvalue = 48\n"
    written(more='constraints = ["gain + cutoff <= 9000"]\nexpires = 60\n', space=SPACE + rate + NOISE)
    shown = told("check")
    assert re.search(r"gain +real +0 to 40 +dB", shown)
    assert re.search(r"cutoff +real, log +100 to 10000", shown)
    assert re.search(r"mode +choice +soft, hard", shown)
    assert re.search(r"rate +fixed +48", shown)
    assert re.search(r"noise +choice, context +quiet, loud", shown)
    assert "where gain + cutoff <= 9000" in shown
    assert re.search(r"expires +after 60 s", shown)
    assert "No answers yet" in shown
    told("ask", "-c", "noise=loud")
    told("tell", "a")
    assert re.search(r"1 answer to 1 question in .*study\.db", told("check").replace("\n", ""))


def test_the_record_lies_beside_the_study_file(tmp_path):
    (tmp_path / "sub").mkdir()
    written().rename(tmp_path / "sub" / "askwise.toml")
    told("ask", "-s", "sub/askwise.toml")
    assert (tmp_path / "sub" / "study.db").exists()
    assert not (tmp_path / "study.db").exists()


def test_commands_that_only_look_create_no_record():
    written()
    for command in ("check", "status", "best", "export", "replay"):
        told(command)
    assert os.listdir() == ["askwise.toml"]


# ask, tell


def test_ask_shows_the_options_side_by_side_in_their_units():
    written()
    shown = told("ask")
    asked = document("ask")
    assert shown.startswith("Question 0: Which is better?")
    assert re.search(r"\n +A +B *\n", shown)
    first, second = (f"{option['gain']:.4g}" for option in asked["options"])
    assert re.search(rf"gain +{re.escape(first)}\d* dB +{re.escape(second)}\d* dB", shown)
    assert "`askwise tell 0 ANSWER`: A or B, or tie, skip, void." in shown
    assert asked["labels"] == ["A", "B"]
    assert asked["id"] == 0


def test_participants_and_contexts_have_their_own_questions():
    written(space=SPACE + NOISE)
    for command in ("ask", "run", "simulate", "plot"):
        line = refused(command)
        assert line == "askwise: context must set noise; got no noise. Add --context noise=..."
    assert "--context must be NAME=VALUE, each of noise once at most; got 'gain=3'" in refused(
        "ask", "-c", "gain=3"
    )
    assert document("ask", "-c", "noise=quiet", "-p", "ann")["context"] == {"noise": "quiet"}
    other = document("ask", "--context", "noise=loud", "--participant", "bob")
    assert (other["id"], other["participant"]) == (1, "bob")
    assert {option["noise"] for option in other["options"]} == {"loud"}
    assert "--context must be NAME=VALUE" in refused("ask", "-c", "noise")
    assert "noise must be one of quiet, loud; got 'x'" in refused("ask", "-c", "noise=x")
    assert "open questions must be exactly one if no id is given; got 2 (0, 1)" in refused("tell", "A")


def test_tell_takes_the_only_open_question():
    written()
    assert "got none. Run `askwise ask` first" in refused("tell", "A")
    told("ask")
    assert told("tell", "b", "--seconds", "2.5") == "Question 0 recorded: B preferred. 1 answer so far.\n"
    (entry,) = history()
    assert (entry.answer, entry.seconds) == (Preference(1), 2.5)


def test_tell_amends_voids_and_skips():
    written()
    told("ask")
    told("tell", "0", "A")
    assert "must be open to be answered" in refused("tell", "0", "B")
    assert document("tell", "0", "B", "--amend", "--reason", "typo")["answer"] == {"prefers": 1}
    assert recorded()[-1].body["reason"] == "typo"
    assert document("tell", "0", "void", "--reason", "noise")["status"] == "voided"
    assert "--reason must be used with" in refused("tell", "0", "A", "--reason", "why")
    assert "got skip" in refused("tell", "0", "skip", "--amend")
    told("ask")
    assert document("tell", "skip") == {
        "id": 1, "status": "skipped", "answer": None, "words": "", "answers": 0,
    }  # fmt: skip
    told("ask")
    shown = told("tell", "can't-decide")
    assert shown == "Question 2 recorded: can't decide between A and B. 1 answer so far.\n"
    told("ask")
    assert told("tell", "skip") == "Question 3 is skipped. 1 answer so far.\n"


def test_tell_refuses_what_it_cannot_read():
    written()
    told("ask")
    assert "must be the letter of the preferred option; got '1'" in refused("tell", "0", "1")
    assert "must be the letter of the preferred option; got '0'" in refused("tell", "0")
    assert "got 'C'" in refused("tell", "0", "C")
    assert "got 'A>B'" in refused("tell", "0", "A>B")
    assert "got 'first A'" in refused("tell", "first", "A")
    assert "got '1 A'" in refused("tell", "0", "1", "A")
    assert "got 'worst A'" in refused("tell", "0", "worst", "A")
    assert "tell must be given an answer" in refused("tell", "0", "A", "--pairs", "A>B")
    assert "got nothing" in refused("tell")
    assert "question must be one that was asked" in refused("tell", "7", "A")
    assert "--pairs must be used with a batch" in refused("tell", "--pairs", "A>B")
    assert "seconds must be a number" in refused("tell", "A", "--seconds", "-1")
    assert document("tell", "0", "1", "--index")["answer"] == {"prefers": 1}


def test_tell_takes_rankings_pairs_and_the_worst_of_a_batch():
    written("batch", "size = 4\n")
    for words, answer in [
        (["C"], {"ranking": [2]}),
        (["c>a"], {"ranking": [2, 0]}),
        (["D, B, A, C"], {"ranking": [3, 1, 0]}),
        (["2,0", "--index"], {"ranking": [2, 0]}),
        (["--pairs", "A>B; C>B"], {"pairs": [[0, 1], [2, 1]]}),
        (["--pairs", "A>B"], {"pairs": [[0, 1]]}),
        (["pairs A>B, C>B"], {"pairs": [[0, 1], [2, 1]]}),
        (["pairs", "C>B"], {"pairs": [[2, 1]]}),
        (["a>b;c>b"], {"pairs": [[0, 1], [2, 1]]}),
        (["worst", "c"], {"worst": 2}),
        (["worst 1", "--index"], {"worst": 1}),
    ]:
        number = document("ask")["id"]
        assert document("tell", str(number), *words)["answer"] == answer
    told("ask")
    words = "C worst; nothing said of A, B and D"
    assert f"recorded: {words}. 12 answers so far." in told("tell", "worst", "C")
    assert document("tell", "11", "worst", "2", "--index", "--amend")["words"] == words.translate(
        str.maketrans("ABCD", "0123")
    )
    told("ask")
    assert "pairs must be like A>B" in refused("tell", "--pairs", "A>B>C")
    assert "each option once" in refused("tell", "A>A")
    assert "got 'E'" in refused("tell", "E")


# run


def test_run_asks_until_there_are_enough_answers():
    written()
    shown = told("run", "--answers", "3", typed="a\nB\nt\nq\n")
    assert answers() == [{"prefers": 0}, {"prefers": 1}, {"undecided": True}]
    assert all(0 <= entry.seconds < 10 for entry in history())
    assert "2 of 3 answers" in shown
    assert "Recommended setting, after 3 answers" in shown
    assert document("run", "-n", "5", typed="a\ns\na\n") == {"answers": 5, "given": 2, "interrupted": False}


def test_run_ends_with_q_or_the_end_of_the_input_and_the_question_stays_open():
    written()
    told("run", typed="a\nq\n")
    assert statuses() == ["answered", "open"]
    told("run", typed="b\n")
    assert statuses() == ["answered", "answered", "open"]


def test_run_takes_back_any_number_of_answers_and_asks_them_again():
    written()
    shown = told("run", typed="u\na\nb\nu\nu\nb\na\ns\nq\n")
    assert "There is nothing to undo." in shown
    assert "Took back the reply to question 1, to be asked again." in shown
    assert [(entry.status, entry.answer) for entry in history()[:3]] == [
        ("answered", Preference(1)),
        ("answered", Preference(0)),
        ("skipped", None),
    ]


def test_run_asks_what_was_undone_first_after_a_restart():
    written()
    told("run", typed="a\nu\nq\n")
    assert statuses() == ["open", "open"]
    told("run", typed="b\nu\nb\nq\n")  # back over the start of this run
    assert statuses() == ["answered", "open"]
    told("run", "--participant", "anna", typed="u\nq\n")  # not what somebody else answered
    assert statuses()[:2] == ["answered", "open"]


def test_run_says_what_it_did_not_understand_and_waits():
    written("binary")
    shown = told("run", "-n", "1", typed="perhaps\n1\ny\n")
    assert "'perhaps' is not an answer here. Keys: y yes, n no, t tie, s skip, u undo, q quit." in shown
    assert history()[0].answer == YesNo(True)


def test_run_takes_rankings_of_batches():
    written("batch")
    told("run", "-n", "2", typed="b>a\nc\n")
    assert answers() == [{"ranking": [1, 0]}, {"ranking": [2]}]


def test_run_reads_every_reply_back():
    written("batch", "size = 4\n")
    shown = told("run", "-n", "4", typed="b>a\nc\n-d\nskip\npairs a>b\n")
    told_back = [
        "B best, then A; C and D below both", "C best; A, B and D below it",
        "D worst; nothing said of A, B and C", "A better than B; nothing else said",
    ]  # fmt: skip
    found = [line.removeprefix("> ") for line in shown.splitlines()]
    assert [line for line in found if line in told_back] == told_back
    assert answers() == [{"ranking": [1, 0]}, {"ranking": [2]}, {"worst": 3}, None, {"pairs": [[0, 1]]}]
    assert "b the best, b>a the best in order, -c the worst, pairs b>a these two alone, t tie" in shown


def at_the_terminal(monkeypatch, *lines: str) -> None:
    """Let somebody type these lines and then end the input."""
    typed = iter(f"{line}\n" for line in lines)
    stdin = SimpleNamespace(readline=lambda: next(typed, ""), isatty=lambda: True)
    monkeypatch.setattr(conversation, "sys", SimpleNamespace(stdin=stdin))


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (["b>a", ""], {"ranking": [1, 0]}),
        (["-c", ""], {"worst": 2}),
        (["b>a", "pairs b>a", ""], {"pairs": [[1, 0]]}),
        (["b>a", "c"], {"ranking": [2]}),
        (["b>a", "u", "-a", ""], {"worst": 0}),
        (["b>a", "what", "", "c"], {"ranking": [2]}),
        (["c"], {"ranking": [2]}),
        (["t"], {"undecided": True}),
        (["b>a", "q"], None),
        (["b>a"], None),
    ],
)
def test_a_reply_of_more_than_one_key_is_confirmed_or_corrected(typed, answer, monkeypatch):
    written("batch")
    at_the_terminal(monkeypatch, *typed)
    shown = told("run", "-n", "1")
    assert answers() == [answer]
    assert ("Enter records it; or type another answer." in shown) == (len(typed) > 1 or answer is None)


def test_undo_at_the_confirmation_leaves_the_answer_before_alone(monkeypatch):
    written("batch")
    at_the_terminal(monkeypatch, "a", "b>c", "u", "c")
    assert "Not recorded. Answer again." in told("run", "-n", "2")
    assert answers() == [{"ranking": [0]}, {"ranking": [2]}]


def test_run_records_response_times(monkeypatch):
    written()
    times = iter([100.0, 107.25, 200.0, 201.5])
    monkeypatch.setattr(conversation, "time", SimpleNamespace(monotonic=lambda: next(times)))
    told("run", "-n", "2", typed="what\na\nb\n")
    assert [entry.seconds for entry in history()] == [7.25, 1.5]


def test_ctrl_c_loses_nothing(monkeypatch):
    written()
    typed = iter(["a\n", "b\n"])

    def readline() -> str:
        for line in typed:
            return line
        raise KeyboardInterrupt

    monkeypatch.setattr(conversation, "sys", SimpleNamespace(stdin=SimpleNamespace(readline=readline)))
    shown = told("run", "-n", "5", code=130)
    assert "Nothing is lost: the record has 2 answers. The same command resumes." in shown
    assert statuses() == ["answered", "answered", "open"]


def test_context_is_refused_where_there_is_none():
    written()
    assert "got 'gain=3', and there is no such parameter" in refused("ask", "-c", "gain=3")


def somebody_else_answers(answer: bool | int) -> None:
    with closing(aw.Study.open("study.db", "hall")) as study:
        study.tell(study.ask(), answer)


@pytest.mark.parametrize("other", [0, 1])
def test_a_session_goes_on_after_somebody_else_has_answered(monkeypatch, other):
    written()
    heard = iter([lambda: somebody_else_answers(other), lambda: None])

    def readline() -> str:
        next(heard)()
        return "b\n"

    monkeypatch.setattr(conversation, "sys", SimpleNamespace(stdin=SimpleNamespace(readline=readline)))
    shown = told("run", "-n", "2")
    assert shown.count("Somebody else answered question 0 meanwhile; their answer stays.") == 1
    assert "Question 1" in shown
    assert answers() == [{"prefers": other}, {"prefers": 1}]


# status, best, plot, replay


def answered(count: int) -> None:
    """So many answers by somebody who likes it loud."""
    with opened(Path("askwise.toml"), writes=True) as session:
        for _ in range(count):
            question = session.study.ask()
            gains = [option["gain"] for option in question.options]
            louder = sorted(range(len(gains)), key=lambda k: -gains[k])
            how = {"binary": {"answer": gains[0] > 20}, "duel": {"answer": louder[0]}}
            session.study.tell(question, **how.get(session.study.feedback, {"ranking": louder}))


def answered_before(count: int) -> None:
    """So many duels in which the louder one won, from a file."""
    gains = [(40 * (k * 0.618 % 1), 40 * (k * 0.381 % 1)) for k in range(1, count + 1)]
    rows = [
        f"{a},{b},{300 * k},1000,soft,{'soft' if k % 2 else 'hard'},{'A' if a > b else 'B'}"
        for k, (a, b) in enumerate(gains, 1)
    ]
    Path("before.csv").write_text("\n".join(["gain_a,gain_b,cutoff_a,cutoff_b,mode_a,mode_b,answer", *rows]))
    told("import", "before.csv")


def test_status_counts_and_gives_a_hint():
    written(more="initial = 5\n")
    assert "too little has been answered" in told("status")
    answered_before(6)
    told("ask")
    told("tell", "tie")
    told("ask")
    shown = told("status")
    assert [re.search(rf" {name} +(\d+) *\n", shown)[1] for name in ("answers", "undecided", "open")] == [
        *"711"
    ]
    assert "voided" not in shown
    number = r"-?[\d.]+(e-?\d+)?"
    expected = (
        rf"One more answer is expected to improve the setting by {number}, all further ones together by"
    )
    assert re.search(rf"{expected} {number} \(1 is a difference that is preferred in 84% of duels\)\.", shown)
    assert re.search(r"\n\n(Go on|Nearly|You may stop): .+\.\n$", shown)


def test_status_as_json_has_every_count():
    written()
    answered(2)
    found = document("status")
    assert found.pop("hint").startswith("Go on: too little")
    assert [(check["name"], check["flagged"]) for check in found.pop("checks")] == [("sides", False)]
    assert found == {
        "name": "hall",
        "answers": 2,
        "gain": None,
        "regret": None,
        "misclassified": None,
        "participant": None,
        "raters": None,
        **dict.fromkeys(("undecided", "skipped", "voided", "open", "expired"), 0),
    }


def test_best_is_what_was_liked_and_beats_a_reference():
    written()
    assert "No answers yet, so this is a guess" in told("best")
    answered_before(12)
    found = document("best")
    assert found["params"]["gain"] > 30
    assert found["answers"] == 12
    shown = told("best", "-r", "gain=1", "-r", "cutoff=1000", "-r", "mode=soft")
    against = document("best", "-r", "gain=1", "-r", "cutoff=1000", "-r", "mode=soft")
    assert against["probability"] > 0.8
    assert against["reference"] == {"gain": 1.0, "cutoff": 1000.0, "mode": "soft"}
    assert f"preferred to the reference {against['probability']:.0%} of the time" in shown
    assert f"{found['params']['mode']}" in shown
    assert "params must be gain, cutoff, mode" in refused("best", "-r", "gain=1")
    assert "gain must be a number; got 'loud'" in refused("best", "-r", "gain=loud")


def test_answers_that_always_name_the_first_are_flagged_and_nobody_is_told_to_stop():
    written(more="initial = 20\n")
    for _ in range(11):
        assert "not to be trusted" not in told("best")
        told("ask")
        told("tell", "A", "--seconds", "2")
    sentence = "In the order shown, options were chosen 11 and 0 times; it is random."
    doubt = "Until that is explained, probabilities are not to be trusted.\n"
    assert told("best").endswith(f"% of the time.\n\n{sentence} {doubt}")
    lowered = sentence[0].lower() + sentence[1:]
    assert told("status").endswith(f"\n\nLook at the answers first: {lowered} {doubt}")
    first, second = document("best")["checks"]
    assert first == {"name": "sides", "flagged": True, "detail": sentence}
    assert second == {"name": "speed", "flagged": False, "detail": "0 of 11 answers took less than 0.3 s."}
    assert document("status")["checks"] == [first, second]


def test_a_file_that_stops_repeating_questions_is_refused():
    written(more="repeats = 0.05\n")
    assert re.search(r"repeats +0.05 of the questions are asked twice", told("check"))
    told("ask")
    written()
    assert "repeats must stay as it is in the record, 0.05; got not given" in refused("status")


def test_best_of_yes_and_no_says_how_often_it_works():
    written("binary")
    answered(4)
    found = document("best")
    assert f"expected to work {found['probability']:.0%} of the time" in told("best")
    shown = told("best", "-r", "gain=1", "-r", "cutoff=1000", "-r", "mode=soft")
    assert "more likely to work than the reference" in shown
    assert "guess" not in shown


def test_plot_writes_what_it_says(monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from askwise import plots

    seen = {}

    def drawing(kind: str) -> Callable:
        def draw(study: aw.Study, context: dict | None, participant: str | None, **over: object) -> object:
            seen[kind] = (study.name, context, participant, over)
            return pyplot.figure()

        return draw

    kinds = ("slices", "maps", "importance", "uncertainty", "score", "progress")
    for kind in kinds:
        monkeypatch.setattr(plots, f"study_{kind}", drawing(kind), raising=False)
    written(space=SPACE + NOISE)
    names = told("plot", "--out", "pictures", "-c", "noise=loud").split()
    assert names == [f"pictures/{kind}.png" for kind in kinds]
    assert all(Path(name).read_bytes().startswith(b"\x89PNG") for name in names)
    assert seen["maps"] == ("hall", {"noise": "loud"}, None, {})
    assert document("plot", "--kind", "maps", "-c", "noise=loud") == {"files": {"maps": "plots/maps.png"}}
    told("plot", "-c", "noise=loud", "--pair", "gain, cutoff")
    pair = ["gain", "cutoff"]
    over = {kind: seen[kind][-1] for kind in kinds if seen[kind][-1]}
    assert over == {"maps": {"pairs": [pair]}, "uncertainty": {"pair": pair}, "score": {"pair": pair}}
    told("plot", "-c", "noise=loud", "--pairs", "all")
    assert {kind: seen[kind][-1] for kind in kinds if seen[kind][-1]} == {"maps": {"pairs": "all"}}


def test_figures_over_pairs_are_drawn_or_refused_and_nothing_is_left_behind():
    written()
    assert "study must have answers to be drawn; got none" in refused("plot", "--out", "new")
    answered(6)
    assert told("plot", "--kind", "maps", "--pairs", "all").split() == ["plots/maps.png"]
    assert told("plot", "--kind", "importance").split() == ["plots/importance.png"]
    for words in (["--pair", "gain"], ["--pair", "gain,gain"], ["--pair", "gain,volume"]):
        assert "pair must " in refused("plot", "--kind", "maps", "--out", "new", *words)
    line = refused("plot", "--kind", "slices", "--out", "new", "--pair", "gain,cutoff")
    assert (
        "--pairs must be given for figures over pairs of parameters: maps, level, uncertainty, score; got"
        in line
    )
    assert not Path("new").exists()


def test_replay_says_whether_all_questions_are_reproduced_and_which_are_not(monkeypatch):
    written(more="initial = 3\n")
    answered(4)
    assert told("replay") == "all 4 questions reproduced bit for bit\n"
    assert document("replay") == {"questions": 4, "different": [], "other_programs": []}
    with closing(open_record("study.db", "hall", None)) as record:
        settings, events = record.settings, record.events()
    Path("study.db").unlink()
    asked = next(event for event in events if event.kind == "asked" and event.question == 2)
    asked.body["options"][0]["gain"] = 12.5
    events[0].body["program"] |= {"torch": "1.0", "engine": "another"}
    with closing(open_record("study.db", "hall", settings)) as record:
        record.append_all([Draft(e.kind, e.question, e.body, e.at) for e in events], expected=0)
    shown = told("replay", code=1)
    assert re.search(
        r"[12] of 4 questions come out differently, by at most [\d.]+ of a parameter's range", shown
    )
    assert f"Questions 0 to 3 were asked with torch 1.0 (now {torch.__version__})." in shown
    assert "12.5 dB" in shown
    (different, *_) = document("replay", code=1)["different"]
    assert (different["id"], different["program"]["torch"]) == (2, "1.0")
    assert different["distance"] > 0.001


# export, import


def test_a_table_has_a_row_for_each_option():
    written()
    answered(2)
    told("ask")
    rows = list(csv.DictReader(told("export").splitlines()))
    assert " ".join(rows[0]) == "question option gain cutoff mode status outcome participant seconds asked"
    assert [(row["question"], row["option"], row["status"]) for row in rows] == [
        (str(number), label, "open" if number == 2 else "answered") for number in range(3) for label in "AB"
    ]
    for better, worse in zip(rows[:4:2], rows[1:4:2], strict=True):
        assert {better["outcome"], worse["outcome"]} == {"better", "worse"}
        louder = max(better, worse, key=lambda row: float(row["gain"]))
        assert louder["outcome"] == "better"
    assert rows[-1]["outcome"] == ""
    assert abs(time.time() - _seconds(rows[0]["asked"])) < 100


def _seconds(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize("feedback", ["binary", "duel", "batch"])
@pytest.mark.parametrize("form", ["csv", "json"])
def test_what_is_exported_can_be_imported(feedback, form):
    written(feedback)
    answered(2)
    with opened(Path("askwise.toml"), writes=True) as session:
        session.study.tell(session.study.ask("ann"), None)
        session.study.skip(session.study.ask())
        if feedback == "batch":
            session.study.tell(session.study.ask(), pairs=[(0, 1), (2, 1)])
            session.study.tell(session.study.ask(), pairs=[(2, 0)])
            session.study.tell(session.study.ask(), winner=2)
            session.study.tell(session.study.ask(), worst=1)
    file = f"out.{form}"
    shown = document("export", "--format", form, "--out", file)
    before = history()
    assert shown == {"file": file, "format": form, "questions": len(before)}
    Path("study.db").unlink()
    for rest in Path().glob("study.db-*"):
        rest.unlink()
    assert document("import", file) == {
        "file": file, "imported": len(before) - 1, "left_out": 1, "answers": len(before) - 1,
    }  # fmt: skip
    kept = [entry for entry in before if entry.status == "answered"]
    for entry, again in zip(kept, history(), strict=True):
        assert again.answer == entry.answer
        assert again.participant == entry.participant
        for option, same in zip(entry.options, again.options, strict=True):
            assert same["mode"] == option["mode"]
            assert [same["gain"], same["cutoff"]] == pytest.approx(
                [option["gain"], option["cutoff"]], rel=1e-12
            )


def test_simple_tables_are_imported():
    written("binary")
    Path("in.csv").write_text(
        "\N{ZERO WIDTH NO-BREAK SPACE}gain,cutoff,mode,answer\n"  # as spreadsheets begin a file
        "3,1000,soft,yes\n\n4.5,200,hard,No\n5,300,hard,\n"
    )
    assert told("import", "in.csv") == (
        "Recorded 2 answers from in.csv (1 question without an answer left out); the study now has 2.\n"
    )
    assert answers() == [{"yes": True}, {"yes": False}]
    (option,) = history()[1].options
    assert list(option.values()) == [4.5, pytest.approx(200), "hard"]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_answers_that_the_study_already_has_are_not_imported_twice(form):
    written()
    answered(3)
    told("export", "-f", form, "--out", "out")
    assert "new to the study; got 3 in out, all of which it already has" in refused("import", "out")
    told("tell", "2", "void")
    assert document("import", "out")["answers"] == 5
    assert document("import", "out", "--again")["answers"] == 8


def test_another_answer_to_the_same_question_is_imported():
    written("binary")
    Path("in.csv").write_text("gain,cutoff,mode,answer\n3,1000,soft,yes\n")
    told("import", "in.csv")
    Path("in.csv").write_text("gain,cutoff,mode,answer\n3,1000,soft,no\n")
    told("import", "in.csv")
    Path("in.csv").write_text("gain,cutoff,mode,answer\n3,1000,soft,no\n3,1000,soft,no\n")
    assert document("import", "in.csv")["answers"] == 4


def test_simple_tables_of_duels_and_batches_are_imported():
    header = "gain_a,gain_b,cutoff_a,cutoff_b,mode_a,mode_b,answer,participant\n"
    written("duel")
    Path("in.csv").write_text(header + "1,2,300,400,soft,hard,B,ann\n1,2,300,400,soft,hard,tie,\n")
    told("import", "in.csv")
    assert [(entry.answer, entry.participant) for entry in history()] == [
        (Preference(1), "ann"),
        (Tie(), None),
    ]
    Path("batch").mkdir()
    os.chdir("batch")
    written("batch", space='[space.gain]\ntype = "real"\nlow = 0\nhigh = 9\n')
    Path("in.csv").write_text(
        "gain_a,gain_b,gain_c,answer\n1,2,3,C>A\n1,2,3,A>B;C>B\n1,2,3,B\n"
        '1,2,3,worst B\n1,2,3,\'-c\n1,2,3,pairs B>A\n1,2,3,"pairs B>A, C>A"\n'
    )
    told("import", "in.csv")
    assert answers() == [
        {"ranking": [2, 0]}, {"pairs": [[0, 1], [2, 1]]}, {"ranking": [1]},
        {"worst": 1}, {"worst": 2}, {"pairs": [[1, 0]]}, {"pairs": [[1, 0], [2, 0]]},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("gain,cutoff,mode,answer\n3,1000,soft,yes\n99,1000,soft,yes\n", "row 3: parameter gain must"),
        ("gain,cutoff,mode,answer\n3,1000,soft,yes\n3,1000,soft,2\n", "row 3: answer must be yes or no"),
        (
            "gain,cutoff,mode,answer\n3,1000,soft,yes\n3,1000,mild,no\n",
            "row 3: mode must be one of soft, hard",
        ),
        ("gain,cutoff,mode,answer\n3,1000,soft\n", "row 2 must have 4 cells"),
        ("gain,cutoff,answer\n3,1000,yes\n", "got no mode"),
        ("gain,cutoff,mode,colour,answer\n3,1000,soft,red,yes\n", "got 'colour'"),
        ("gain,gain,answer\n", "'gain' twice"),
        ("", "must be CSV with a header"),
        ("{", "must be JSON"),
        ('{"questions": 3}', "must have a list of questions"),
        ('{"questions": [{"status": "answered"}]}', "question 0: it must have options"),
    ],
)
def test_a_wrong_row_is_named_and_nothing_is_imported(table, message):
    written("binary")
    Path("in.csv").write_text(table)
    assert message in refused("import", "in.csv")
    assert not Path("study.db").exists()


def test_an_export_of_another_kind_of_study_is_refused():
    written("duel")
    answered(1)
    told("export", "--out", "duel.csv")
    told("export", "--out", "duel.json", "-f", "json")
    text = Path("duel.csv").read_text()
    Path("odd.csv").write_text(text.replace("better", "best"))
    assert "row 2: outcome must be" in refused("import", "odd.csv")
    Path("swapped.csv").write_text(text.replace("0,A", "0,B"))
    assert "options of a question must be A, B" in refused("import", "swapped.csv")
    Path("study.db").unlink()
    written("binary")
    assert "options must be 1" in refused("import", "duel.csv")
    assert "options must be 1" in refused("import", "duel.json")
    written("duel", space=SPACE.replace("space.mode", "space.kind"))
    assert "columns must be those of this study's export" in refused("import", "duel.csv")


def test_a_parameter_named_like_a_column_needs_json():
    written(space='[space.status]\ntype = "real"\nlow = 0\nhigh = 9\n')
    told("ask")
    assert "got status. Use --format json" in refused_export()
    assert len(history()) == 1


def refused_export() -> str:
    result = CliRunner().invoke(main, ["export"])
    assert result.exit_code == 1
    assert HOUSE.match(result.stderr.strip())
    return result.stderr


# simulate


def test_simulate_prints_a_table_and_a_sentence():
    written()
    shown = told("simulate", "--answers", "11", "--users", "2")
    assert re.search(r"\n +10 +-?\d+% \(-?\d+% to -?\d+%\) +\d+% \(\d+% to \d+%\)", shown)
    assert re.search(r"With 11 answers, 2 of 2 users are recommended a setting at least -?\d+% of the", shown)
    assert not Path("study.db").exists()


def test_simulations_are_repeatable_and_differ_by_seed():
    written("binary")
    one = document("simulate", "-n", "3", "-k", "1")
    assert one == document("simulate", "-n", "3", "-k", "1")
    assert one != document("simulate", "-n", "3", "-k", "1", "--seed", "1")
    assert [row["answers"] for row in one["after"]] == [3]
    assert all(len(row["share"]) == 1 for row in one["after"])


def test_simulate_compares_kinds_of_question_by_minutes():
    written()
    options = ("simulate", "--minutes", "0.5", "-k", "2", "--look", "1", "--seconds", "duel=10")
    shown = told(*options)
    assert re.search(r"\n duel +10 +3 +-?\d+% \(-?\d+% to -?\d+%\)", shown)
    assert re.search(r"After 0\.5 minutes (duel|(best|worst|ranking) of 4) is ahead", shown)
    assert not Path("study.db").exists()
    found = document(*options)
    assert [(one["kind"], one["seconds"]) for one in found["kinds"]] == [
        *(("duel", 10), ("best", 9.5), ("worst", 9.5), ("ranking", 12.5))
    ]
    last = found["kinds"][0]["after"][-1]
    assert (last["minutes"], last["answers"], len(last["share"])) == (0.5, 3, 2)
    assert last["interval"][0] <= sum(last["share"]) / 2 <= last["interval"][1]
    assert len(found["behind"]) == 3
    assert "one user is not enough" in told("simulate", "--minutes", "0.5", "-k", "1", "--size", "3")


@pytest.mark.parametrize(
    "options",
    [
        ("--look", "3"),
        ("--seconds", "duel=3"),
        ("--minutes", "1", "-n", "3"),
        ("--minutes", "0.01"),
        ("--minutes", "1", "--seconds", "duel"),
        ("--minutes", "1", "--seconds", "tie=3"),
    ],
)
def test_simulate_refuses_what_does_not_belong_together(options):
    written()
    result = CliRunner().invoke(main, ["simulate", *options])
    assert result.exit_code == 1
    assert HOUSE.match(result.stderr.strip())


# doctor


def test_doctor_finds_no_problem():
    written()
    answered(2)
    shown = told("doctor")
    assert "PROBLEM" not in shown
    for what in ("versions", "threads", "inference", "storage", "write permission", "integrity", "record"):
        assert f"ok       {what}: " in shown
    assert "2 questions, 2 answers" in shown
    assert "gives 1.427299, the exact value" in shown
    found = document("doctor")
    assert found["ok"]
    assert {finding["what"] for finding in found["findings"]} >= {"free disk", "time per question"}
    assert len(history()) == 2


def test_doctor_works_without_a_study():
    shown = told("doctor")
    assert "no askwise.toml here; `askwise init` writes one" in shown
    assert "PROBLEM" in told("doctor", "-s", "nowhere.toml", code=1)


def test_doctor_finds_a_damaged_record():
    written()
    answered(2)
    told("export", "-f", "json")
    data = bytearray(Path("study.db").read_bytes())
    data[4096 : 4096 + 2000] = os.urandom(2000)
    Path("study.db").write_bytes(bytes(data))
    for rest in Path().glob("study.db-*"):
        rest.unlink()
    shown = told("doctor", code=1)
    assert "PROBLEM" in shown
    assert not document("doctor", code=1)["ok"]


def test_doctor_reports_an_invalid_storage_once_and_in_plain_words():
    written()
    Path("study.db").write_text("no database, but long enough to be taken for something else " * 40)
    lines = [line for line in told("doctor", code=1).splitlines() if line.startswith("PROBLEM")]
    assert len(lines) == 1
    assert re.match(r"PROBLEM  storage: storage must be a study file; got .*Choose another name\.$", lines[0])


def test_doctor_warns_of_slow_questions(monkeypatch):
    from askwise.cli import checkup

    times = iter([0.0, 2.5])
    monkeypatch.setattr(checkup, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    assert "PROBLEM  time per question: 2.5 s. Close other programs" in told("doctor", code=1)


def test_doctor_reports_wrong_numbers(monkeypatch):
    from askwise.cli import checkup

    monkeypatch.setattr(checkup, "kernel", lambda *_: aw.kernel("se", [0.3], 5.0))
    assert "PROBLEM  inference" in told("doctor", code=1)
    assert Finding("x", True, "y").advice == ""


# as it looks


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12.3456, "12.35"), (0.5, "0.5"), (1234.56, "1235"), (9999.9, "10000"), (0.0, "0"), (-3.0, "-3"),
        (0.00123456, "0.001235"), (1e-7, "1.000e-07"), (1.5e9, "1.500e+09"), (7, "7"), ("soft", "soft"),
    ],
)  # fmt: skip
def test_values_are_readable(value, text):
    assert readable(value) == text


def test_names_are_not_broken_in_a_narrow_terminal():
    out = Console(width=24, record=True, file=io.StringIO())
    out.print(table(["", ""], [("a name of some length", "and much to say of it, in many words")]))
    assert "a name of some length" in out.export_text()


def test_brackets_in_texts_are_shown_as_they_are():
    space = SPACE.replace('["soft", "hard"]', '["[red]soft", ":smile:"]')
    written(more='question = "[bold]Which?"\n', space=space)
    shown = told("check") + told("ask")
    assert "[red]soft, :smile:" in shown
    assert "[bold]Which?" in shown


def in_terminal(words: list[str], typed: bytes, more: dict[str, str]) -> tuple[bytes, int]:
    """What a terminal would show, and the exit code; Ctrl-C is typed as in one."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update({"TERM": "xterm-256color", **more})
        os.execv(sys.executable, [sys.executable, "-m", "askwise", *words])
    shown, new, waiting = b"", b"", [typed[k : k + 2] for k in range(0, len(typed), 2)]
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        shown, new = shown + part, new + part  # a prompt may come in two parts
        if not part:
            break
        if new.rstrip(b"\x1b[0m").endswith(b"> ") and waiting:
            key, new = waiting.pop(0), b""
            os.write(terminal, key.rstrip(b".") or key)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(status)


@pytest.mark.slow
def test_in_a_terminal_there_is_colour_and_ctrl_c_ends_with_130():
    written()
    shown, code = in_terminal(["run", "-n", "9"], b"a\nb\n\x03.", {})
    assert code == 130, shown.decode()
    assert b"\x1b[" in shown
    assert b"Nothing is lost: the record has 2 answers" in shown
    assert statuses() == ["answered", "answered", "open"]


@pytest.mark.slow
def test_no_color_is_respected():
    written()
    shown, code = in_terminal(["ask"], b"", {"NO_COLOR": "1"})
    assert code == 0
    assert not re.search(rb"\x1b\[[0-9;]*3\dm", shown)


# what files and texts of others may contain


def test_no_cell_is_a_formula_and_every_value_is_found_again():
    values = ["=1+1", "+a", "-b", "@c", "'=d", "'e", "-3.5", "f"]
    listed = f"[space.'=x']\ntype = 'choice'\nvalues = {json.dumps(values)}\n"
    written("binary", space=f"{listed}[space.y]\ntype='real'\nlow=-9\nhigh=-1\n")
    with opened(Path("askwise.toml"), writes=True) as session:
        for value in values:
            session.study.record([{"=x": value, "y": -3.5}], True, participant="=cmd()")
    text = told("export")
    rows = list(csv.reader(io.StringIO(text)))
    assert [row[2] for row in rows] == ["'=x", "'=1+1", "'+a", "'-b", "'@c", "''=d", "'e", "-3.5", "f"]
    assert {row[3] for row in rows[1:]} == {"-3.5"}
    assert not any(cell.startswith(("=", "+", "@", "\t", "\r")) for row in rows for cell in row)
    before = [(entry.options, entry.participant) for entry in history()]
    Path("out.csv").write_text(text)
    told("import", "out.csv", "--again")
    assert [(entry.options, entry.participant) for entry in history()] == before * 2


@pytest.mark.parametrize(
    ("encoding", "works"), [("utf-16", True), ("utf-8-sig", True), ("latin-1", False), ("utf-16-le", False)]
)
def test_files_of_spreadsheets_are_read_or_refused_in_words(encoding, works):
    written("binary", space="[space.x]\ntype = 'choice'\nvalues = ['größer', 'kleiner']\n")
    Path("in.csv").write_text("x,answer\ngrößer,yes\n", encoding=encoding)
    if works:
        assert "Recorded 1 answer" in told("import", "in.csv")
    else:
        assert "Save it as UTF-8" in refused("import", "in.csv")


EXPORTED = "question,option,gain,cutoff,mode,status,outcome,participant,seconds,asked\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"questions": ' + "[" * 100_000, "file must be JSON that"),
        ('{"questions": [' + "9" * 5000 + "]}", "file must be JSON that"),
        (EXPORTED + "0,A,1,200,soft,answered,yes,,soon,x\n", "seconds must be a number; got 'soon'"),
        ("gain,cutoff,mode,answer\nmuch;more,200,soft,yes\n", "gain must be a number; got 'much;more'"),
        ("gain,cutoff,mode,answer\n" + "x" * 100_000 + ",200,soft,yes\n", "... (100,002 characters)"),
        ("gain|cutoff|mode|answer\n1|200|soft|yes\n", "columns must be"),
    ],
    ids=["deep", "digits", "seconds", "semicolon", "long", "delimiter"],
)  # fmt: skip
def test_strange_contents_are_refused_in_a_line(content, problem):
    written("binary")
    Path("in.csv").write_text(content)
    line = refused("import", "in.csv")
    assert problem in line
    assert len(line) < 1000


@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, "x = " + "9" * 5000], ids=["deep", "digits"])
def test_a_strange_study_file_is_refused_in_a_line(text):
    Path("askwise.toml").write_text(text)
    assert "study file must " in refused("check")


def test_an_id_of_thousands_of_digits_is_no_question():
    written()
    told("ask")
    assert "id must be the number of a question" in refused("tell", "9" * 5000, "A")


def test_bytes_that_are_no_text_are_no_answer():
    written()
    result = CliRunner().invoke(main, ["run"], input=b"\xff\xfe\nA\nq\n")
    assert result.exception is None
    assert "is not an answer here" in result.stdout
    assert statuses() == ["answered", "open"]


def test_nothing_commands_the_terminal():
    evil = "\x1b]0;owned\x07\x9b31m\u202e"
    space = SPACE.replace("gain]", f"{json.dumps('ga' + evil)}]").replace('"soft"', json.dumps("so" + evil))
    written("binary", f"question = {json.dumps('Well' + evil)}\n", space)
    shown = [told("check"), told("ask"), told("run", typed="y\nq\n"), told("status"), told("best")]
    shown += [told("check", "--json"), told("ask", "--json")]
    for words in (
        ["tell", evil],
        [f"--{evil}"],
        [evil],
        ["ask", f"--{evil}"],
        ["check", "-s", evil],
        ["best", "-r", evil],
    ):
        result = CliRunner().invoke(main, words)
        assert result.exit_code
        shown.append(result.output)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", "".join(shown))
    assert r"\x1b]0;owned\x07\x9b31m\u202e" in shown[1]


# what happens to files


def test_an_import_is_all_or_nothing_and_happens_once():
    written("binary")
    Path("in.csv").write_text(EXPORTED + "".join(f"{n},A,{n},200,soft,answered,yes,,{s},x\n" for n, s in BAD))
    assert "row 4: seconds must be a number from 0 to 1e+09; got -1.0" in refused("import", "in.csv")
    assert not Path("study.db").exists()
    Path("in.csv").write_text(Path("in.csv").read_text().replace("-1.0", "3.5"))
    assert document("import", "in.csv")["answers"] == 3
    assert "in.csv was imported before: nothing to do. Add --again" in told("import", "in.csv")
    assert document("import", "in.csv") == {"file": "in.csv", "imported": 0, "left_out": 0, "answers": 3}
    assert document("import", "in.csv", "--again")["answers"] == 6
    assert document("import", "in.csv", "--again")["answers"] == 9


BAD = [(0, "1.0"), (1, "2.0"), (2, "-1.0")]


@pytest.mark.slow
def test_an_import_that_is_killed_is_repeated_without_doubling():
    rows = "".join(f"{n / 100},{200 + n},soft,{'yes' if n % 2 else 'no'}\n" for n in range(3000))
    Path("in.csv").write_text("gain,cutoff,mode,answer\n" + rows)
    written("binary")
    for wait in (0.0, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0):
        words = [sys.executable, "-m", "askwise", "import", "in.csv"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(2.0 + wait)
        process.kill()
        process.communicate()
        assert document("status")["answers"] in (0, 3000) if Path("study.db").exists() else True
    told("import", "in.csv")
    assert len(history()) == 3000


def test_another_study_in_the_same_place_is_begun_only_on_purpose():
    written()
    told("ask")
    Path("askwise.toml").write_text(Path("askwise.toml").read_text().replace('"hall"', '"hull"'))
    line = refused("ask")
    assert "name must be one of the studies in " in line
    assert line.endswith("'hall'; got 'hull'. Correct it, or add --new to begin another study.")
    told("check")  # which records nothing
    told("ask", "--new")
    told("ask")


def test_a_record_is_copied_and_the_copy_salvaged():
    written()
    assert "study must have a record to copy; got none yet" in refused("backup", "copy.db")
    answered(3)
    assert told("backup", "copy.db") == "Copied the record to copy.db and checked the copy.\n"
    assert "file must be new; got " in refused("backup", "copy.db")
    assert "hall: 6 events saved, all there are.\nWrote copy.db.salvaged." in told("salvage", "copy.db")
    Path("study.db").unlink()
    Path("copy.db.salvaged").rename("study.db")
    assert told("replay") == "all 3 questions reproduced bit for bit\n"
    saved = document("salvage", "copy.db", "--out", "other.db")
    assert saved == {"file": "other.db", "studies": [{"name": "hall", "events": 6, "lost": 0}]}
    with open("copy.db", "r+b") as file:
        file.truncate(5000)
    Path("study.db").write_bytes(Path("copy.db").read_bytes())
    for words in (["status"], ["best"], ["ask"], ["replay"], ["export"], ["check"]):
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 1
        assert result.output.startswith("askwise: storage must be whole; got ")
        assert result.output.endswith("or run `askwise salvage`.\n")
    assert "PROBLEM" in told("doctor", code=1)


def test_no_command_overwrites_a_record(tmp_path):
    written()
    answered(3)
    for name in ("slices.png", "report.md"):
        told("backup", name)
    before = {path.name: path.read_bytes() for path in Path.cwd().glob("*") if path.is_file()}
    for words in (
        ["init", "study.db", "--force"],
        ["init", "--force", "-s", "study.db"],
        ["export", "--out", "study.db"],
        ["export", "--out", "study.db", "-f", "json"],
        ["export", "--out", "study.db-wal"],
        ["plot", "--kind", "slices", "--out", "."],
    ):
        line = refused(*words)
        assert "file must not be the record of a study; got " in line
        assert line.endswith(", which is part of one. Choose another name.")
    for words in (["init", "study.db"], ["backup", "study.db"], ["salvage", "study.db", "--out", "study.db"]):
        assert "file must be new; got " in refused(*words)
    assert {path.name: path.read_bytes() for path in Path.cwd().glob("*") if path.is_file()} == before
    told("replay")


def test_doctor_reads_every_event_if_asked_to():
    written()
    answered(2)
    assert "ok       events: all 4 as they were written" in told("doctor", "--deep")
    assert "events:" not in told("doctor")


def test_no_warning_of_a_library_is_shown():
    written()
    for words in (["check"], ["ask"]):
        command = [sys.executable, "-W", "default", "-m", "askwise", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_no_warning_of_a_library_is_shown_by_workers():
    campaign = ["bench", "run", "pbo", "--functions", "forrester", "--rules", "random", "--replicates", "2"]
    for where in (["--workers", "2"], ["--dask", "local"]):
        command = [sys.executable, "-W", "default", "-m", "askwise", *campaign, "--iterations", "2", *where]
        done = subprocess.run([*command, "--out", where[0]], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0
        assert "Warning" not in done.stderr


def test_an_export_does_not_overwrite_its_study_file():
    file = written()
    before = file.read_bytes()
    told("ask")
    for form in ("csv", "json"):
        assert "be another than the study file" in refused("export", "--format", form, "--out", str(file))
    assert file.read_bytes() == before


def test_an_export_that_fails_leaves_the_file_before_as_it_was(monkeypatch):
    written()
    told("ask")
    told("export", "--out", "good.csv")
    before = Path("good.csv").read_bytes()
    told("tell", "A")

    def full(file, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        line = refused("export", "--out", "good.csv")
    assert "disk must have room for what is written; got no space left on device." in line
    assert Path("good.csv").read_bytes() == before


def test_names_and_reasons_of_halves_of_characters_are_refused():
    written()
    assert "participant must be text" in refused("ask", "-p", "Jos\udce9")
    told("ask")
    assert "reason must be text" in refused("tell", "skip", "--reason", "\ud83d")


def test_carriage_returns_survive_an_export():
    space = SPACE + '[space.other]\ntype = "choice"\nvalues = ["a\\rb", "c"]\n'
    written(space=space)
    for _ in range(4):
        told("ask")
        told("tell", "A")
    told("export", "--out", "all.csv")
    told("import", "all.csv", "--again")
    entries = history()
    assert [entry.options[0]["other"] for entry in entries[:4]] == [
        e.options[0]["other"] for e in entries[4:]
    ]


def test_whole_numbers_may_be_written_as_programs_write_them():
    written(space="[space.n]\ntype = 'integer'\nlow = 1\nhigh = 5\n", more="initial = 1\n")
    for _ in range(2):
        told("ask")
        told("tell", "A")
    assert told("predict", "n=2.0") == told("predict", "n=2")
    assert "n must be a whole number; got '2.5'" in refused("predict", "n=2.5")


@pytest.mark.parametrize("answer", [{"yes": 1}, {"undecided": False}, {"yes": None}])
def test_an_answer_that_a_file_gets_wrong_is_refused(answer):
    written()
    told("ask")
    told("tell", "A")
    document = json.loads(told("export", "--format", "json"))
    document["questions"][0]["answer"] = answer
    Path("wrong.json").write_text(json.dumps(document))
    assert "must have options, status, answer" in refused("import", "wrong.json", "--again")


def test_without_a_standard_input_a_run_ends():
    written()
    command = [sys.executable, "-m", "askwise", "run", "-n", "9"]
    ended = subprocess.run(f"{' '.join(command)} <&-", shell=True, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("scale", "words"),
    [("[[0, 10]]", ""), ('["19"]', "scale of a must be a pair"), ("[1]", "scale of a must be a pair")],
)
def test_the_scale_of_items_is_read_from_a_study_file(scale, words):
    table = f'[space.w]\ntype = "items"\ntable = {{a = [1, 2, 5]}}\nfeatures = ["a"]\nscale = {scale}\n'
    written(space=table)
    assert words in (refused("check") if words else told("check"))


def test_blanks_around_values_and_names_survive_an_export():
    written(space=SPACE + '[space.other]\ntype = "choice"\nvalues = [" a", "a", "a ", "\\t"]\n')
    for who in (" Ann", "Ann") * 3:
        told("ask", "-p", who)
        told("tell", "A")
    told("export", "--out", "all.csv")
    told("import", "all.csv", "--again")
    entries = [(entry.participant, [option["other"] for option in entry.options]) for entry in history()]
    assert entries[:6] == entries[6:]
