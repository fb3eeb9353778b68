"""The HTTP API does what Study does, and refuses in words; tests of the client compare the rest."""

import csv
import io
import json

import pytest

import askwise as aw
from askwise.study import load
from served import DUEL

HALL = "/api/v1/studies/hall"
SOFT, HARD = {"gain": 1.0, "mode": "soft"}, {"gain": 2.0, "mode": "hard"}


def told(response, status):
    """The error of a response."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert {*error} == {"what", "expected", "got", "advice", "message"}
    assert error["message"].startswith(f"{error['what']} must {error['expected']}; got ")
    return error["message"]


def test_an_answer_brings_the_next_question_the_same_as_a_study_asks_bit_for_bit(owner):
    study = aw.Study.of(load(DUEL).plan())
    sent = owner.post(f"{HALL}/ask", json={}).json()
    for number in range(5):
        question = study.ask()
        assert (sent["id"], sent["options"]) == (question.id, question.options)
        assert (tuple(sent["order"]), sent["labels"]) == (question.order, ["A", "B"])
        study.tell(question, number % 2)
        body = {"question": number, "answer": number % 2, "seconds": 1.5, "next": True}
        done = owner.post(f"{HALL}/tell", json=body).json()
        assert (done["status"], done["answers"]) == ("answered", number + 1)
        sent = done["next"]


def test_a_conflicting_answer_is_refused_and_the_same_again_is_not(owner):
    owner.post(f"{HALL}/ask", json={})
    for _ in range(2):
        assert owner.post(f"{HALL}/tell", json={"question": 0, "answer": 1}).status_code == 200
    message = told(owner.post(f"{HALL}/tell", json={"question": 0, "answer": 0}), 409)
    assert message.startswith("question 0 must be open to be answered; got one that is answered")
    assert [one["answer"] for one in owner.get(f"{HALL}/history").json()] == [{"prefers": 1}]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("tell", {"question": 0, "answer": 2}, 422, "answer must be 0 or 1"),
        ("tell", {"question": 0, "answer": True}, 422, "answer must be 0 or 1"),
        ("tell", {"question": 0}, 422, "answer must be given once; got none"),
        ("tell", {"question": 0, "answer": 1, "winner": 0}, 422, "answer must be given once"),
        ("tell", {"question": 0, "answer": 1, "second": 2}, 422, "second must fit the description"),
        ("tell", {"question": 0, "answer": 1, "seconds": -1}, 422, "seconds must fit the description"),
        ("tell", {"question": "0", "answer": 1}, 422, "question must fit the description"),
        ("tell", {"question": 7, "answer": 1}, 404, "question must be one that was asked"),
        ("skip", {"question": 7}, 404, "question must be one that was asked"),
        ("amend", {"question": 0, "answer": 1}, 409, "question 0 must have an answer to amend"),
        ("ask", {"context": {"noise": "loud"}}, 422, "context must "),
        ("record", {"options": [SOFT], "answer": 1}, 422, "options must be 2"),
        ("record", {"options": [SOFT, {"gain": 99, "mode": "soft"}], "answer": 1}, 422, "gain must "),
        ("predict", {"settings": [{"gain": 3}]}, 422, " must "),
        ("undo", {}, 422, "key must be given, or the header Idempotency-Key; got none"),
        ("undo", {"key": "k"}, 422, "n must be at most 0, the number of answers and skips"),
        ("undo", {"n": 0, "key": "k"}, 422, "n must fit the description"),
        ("change", {"self": 1}, 422, "setting must be one of space, rule"),
        ("change", {"seed": 4}, 422, "seed must stay as it was at the first question"),
        ("change", {"space": {"gain": {"type": "real", "low": 9, "high": 1}}}, 422, "low must be below high"),
        ("change", {"space": {"x": {"type": "items", "table": "/etc/passwd"}}}, 422, "table of x must be "),
        ("change", {"constraints": ["gain <= -1"]}, 422, "constraints must "),
        ("change", {"kernel": {"name": "se", "lengthscale": [-1], "outputscale": 1}}, 422, " must "),
        ("change", {"expires": 0}, 422, "expires must "),
    ],
)
def test_what_is_refused_is_refused_in_words_and_nothing_is_written(asked, path, body, status, message):
    before = asked.get(f"{HALL}/export.json").json()["events"]
    assert message in told(asked.post(f"{HALL}/{path}", json=body), status)
    assert asked.get(f"{HALL}/export.json").json()["events"] == before


def test_what_is_recorded_with_a_key_is_recorded_once(owner):
    body = {"options": [SOFT, HARD], "answer": 1}
    for _ in range(2):
        assert owner.post(f"{HALL}/record", json=body, headers={"Idempotency-Key": "k1"}).json()["id"] == 0
        assert owner.post(f"{HALL}/record", json=body | {"key": "k2"}).json()["id"] == 1
    assert len(owner.get(f"{HALL}/history").json()) == 2
    other = body | {"options": [HARD, SOFT]}
    message = told(owner.post(f"{HALL}/record", json=other, headers={"Idempotency-Key": "k1"}), 409)
    assert message.startswith("key must be new, or come with the same options")


def test_a_lost_undo_is_sent_again_and_done_once(owner):
    for number in range(3):
        owner.post(f"{HALL}/ask", json={})
        owner.post(f"{HALL}/tell", json={"question": number, "answer": 1})
    for _ in range(2):
        undone = owner.post(f"{HALL}/undo", json={}, headers={"Idempotency-Key": "k1"}).json()
        assert ([one["id"] for one in undone["questions"]], undone["answers"]) == ([2], 2)
    assert owner.post(f"{HALL}/undo", json={"key": "k2"}).json()["questions"][0]["id"] == 1
    assert owner.post(f"{HALL}/ask", json={}).json()["id"] == 1


def test_a_study_is_created_by_a_text_or_by_tables_once(owner):
    text = DUEL.replace("hall", "second / hall")
    tables = {
        "study": {"name": "third", "feedback": "binary"},
        "space": {"x": {"type": "integer", "low": 0, "high": 9}},
    }
    for _ in range(2):
        made = owner.post("/api/v1/studies", json={"toml": text})
        assert made.status_code == 201, made.text
        assert owner.post("/api/v1/studies", json=tables).json()["feedback"] == "binary"
    listed = {one["name"]: one["id"] for one in owner.get("/api/v1/studies").json()}
    assert [*listed] == ["hall", "second / hall", "third"]
    assert owner.post(f"/api/v1/studies/{listed['second / hall']}/ask", json={}).status_code == 200
    changed = owner.post("/api/v1/studies", json={"toml": text.replace("high = 40", "high = 41")})
    assert told(changed, 409).startswith("name must be new")
    assert "be described once" in told(owner.post("/api/v1/studies", json={}), 422)


def test_a_paused_study_asks_nothing_but_takes_answers(owner):
    owner.post(f"{HALL}/ask", json={})
    assert owner.post(f"{HALL}/pause", json={"paused": True}).json()["paused"]
    assert told(owner.post(f"{HALL}/ask", json={"participant": "b"}), 409).startswith("study must be running")
    done = owner.post(f"{HALL}/tell", json={"question": 0, "answer": None, "next": True}).json()
    assert (done["status"], done["next"]) == ("answered", None)
    owner.post(f"{HALL}/pause", json={"paused": False})
    assert owner.post(f"{HALL}/ask", json={}).json()["id"] == 1


def test_exports_have_what_was_answered(owner):
    owner.post(f"{HALL}/record", json={"options": [SOFT, HARD], "answer": 1, "participant": "=1+1"})
    exported = owner.get(f"{HALL}/export.csv")
    assert exported.headers["content-disposition"] == 'attachment; filename="hall.csv"'
    rows = list(csv.DictReader(io.StringIO(exported.text)))
    assert [(row["mode"], row["outcome"], row["participant"]) for row in rows] == [
        ("soft", "worse", "'=1+1"),
        ("hard", "better", "'=1+1"),
    ]
    assert owner.get(f"{HALL}/export.json").json()["questions"][0]["answer"] == {"prefers": 1}
    assert owner.get(f"{HALL}/participants").json() == [{"name": "=1+1", "answers": 1}]


def test_parameters_of_addresses_are_json(asked):
    assert told(asked.get(f"{HALL}/best?context=loud"), 422).startswith("context must be a JSON object")
    assert told(asked.get(f"{HALL}/nothing"), 404).startswith("address must exist")
    assert told(asked.get("/api/v1/studies/nothing"), 404).startswith("study must be one that is served")
    assert told(asked.put(f"{HALL}/ask"), 405).startswith("method must be one that this address takes")
    assert told(asked.post(f"{HALL}/ask", content=b"{"), 422)
    assert json.dumps(asked.get("/api/v1/openapi.json").json()).count("cdn") == 0


def test_the_page_of_the_api_describes_every_route(asked):
    shown, described = asked.get("/api/v1/docs").text, asked.get("/api/v1/openapi.json").json()
    assert len(described["paths"]) > 20
    assert all(path in shown for path in described["paths"])
    assert "<script" not in shown
