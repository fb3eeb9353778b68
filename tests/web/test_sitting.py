"""A participant's sitting over HTTP: what it shows, what it hides, and what it refuses."""

import html
import json
import re
import time

import pytest
from fastapi.testclient import TestClient

import askwise as aw
from askwise.errors import Refused
from askwise.study.words import WORDS
from askwise.web import logs
from askwise.web.app import create
from askwise.web.settings import Settings
from served import DUEL

SITTING = "/api/v1/studies/hall/sitting"
SVG = "[stimulus]\nhtml = '<svg xmlns=\"http://www.w3.org/2000/svg\"><text>{gain}</text></svg>'\n"


@pytest.fixture
def sit(tmp_path):
    """Serve a study file; a client with the pass of a participant."""
    clients = []

    def sit(text, participant="Ann", **more):
        file = tmp_path / "hall.toml"
        file.write_text(text)
        app = create(Settings(str(tmp_path / "askwise.db"), (str(file),), **more))
        client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
        clients.append(client.__enter__())
        gate = app.state.gate
        link = gate.file.add_link("hall", participant)
        client.headers["Authorization"] = f"Bearer {gate.pass_of(link)}"
        client.page = f"/p/{gate.pass_of(link)}"
        return client

    yield sit
    for client in clients:
        client.__exit__(None, None, None)


def test_values_are_shown_with_units_and_nothing_tells_which_is_the_champion(sit):
    client = sit(DUEL.replace("high = 40", 'high = 40\nunit = "dB"'))
    moment = client.post(f"{SITTING}/next").json()
    assert "order" not in str(moment)
    first, second = (look["rows"] for look in moment["shown"]["looks"])
    assert [row["name"] for row in first] == ["gain", "mode"]
    assert first[0]["value"].endswith(" dB")
    assert all(0 <= rows[0]["at"] <= 1 and rows[1]["at"] is None for rows in (first, second))
    assert first[1]["differs"] == (first[1]["value"] != second[1]["value"])


def test_media_are_kept_by_their_hash_and_cannot_harm(sit):
    client = sit(DUEL + SVG)
    moment = client.post(f"{SITTING}/next").json()
    assert "'gain'" not in str(moment)
    assert "rows': [" not in str(moment)  # values are not sent where they are not shown
    look = moment["shown"]["looks"][0]
    del client.headers["Authorization"]  # as a browser loads a picture
    answer = client.get(look["src"])
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert "immutable" in answer.headers["cache-control"]
    part = client.get(look["src"], headers={"Range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, b"<svg")
    for name in ("0" * 40 + ".svg", "../hall.toml", "%2e%2e%2fhall.toml", "0" * 40 + ".py", "x"):
        assert client.get(f"/media/{name}").status_code == 404


def test_html_is_served_in_a_sandbox(sit):
    client = sit(DUEL + "[stimulus]\nhtml = '<p>{gain}</p>'\n")
    look = client.post(f"{SITTING}/next").json()["shown"]["looks"][0]
    answer = client.get(look["src"])
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'")
    assert "allow-same-origin" not in policy


def test_a_picture_that_cannot_be_made_is_missing_and_the_log_says_why(sit, caplog):
    client = sit(DUEL + '[stimulus]\ncommand = "false {gain} {out}"\n')
    looks = client.post(f"{SITTING}/next").json()["shown"]["looks"]
    assert [look["kind"] for look in looks] == ["missing", "missing"]
    lines = [json.loads(logs._Lines().format(record)) for record in caplog.records]
    assert [line["study"] for line in lines] == ["hall", "hall"]
    assert all("exit code 1" in line["reason"] for line in lines)


def test_each_picture_is_made_once(sit, tmp_path):
    script = tmp_path / "draw.sh"
    script.write_text('#!/bin/sh\necho "$1" >> log\nprintf "%s" "$1" > "$2"\n')
    script.chmod(0o700)
    client = sit(DUEL + '[stimulus]\ncommand = "./draw.sh {gain} {out.txt}"\n')
    moments = [client.post(f"{SITTING}/next").json() for _ in range(3)]
    assert moments[0] == moments[2]
    shown = [look["text"] for look in moments[0]["shown"]["looks"]]
    assert sorted((tmp_path / "log").read_text().split()) == sorted(shown)


def test_what_may_come_next_is_made_while_somebody_thinks(sit):
    client = sit(DUEL + SVG)
    moment = client.post(f"{SITTING}/next").json()
    for _ in range(4):  # past the first questions, which depend on no answer
        ahead = client.post(f"{SITTING}/ahead", json={"question": moment["shown"]["id"]}).json()
        sent = {"question": moment["shown"]["id"], "answer": 1}
        moment = client.post(f"{SITTING}/answer", json=sent).json()
        coming = {look["src"] for look in ahead}
        assert {look["src"] for look in moment["shown"]["looks"]} <= coming


def test_present_takes_the_place_of_what_the_file_says(sit):
    client = sit(DUEL + SVG, present='sh -c \'printf %s "$ASKWISE_MODE" > "$ASKWISE_OUT"\' {out}')
    looks = client.post(f"{SITTING}/next").json()["shown"]["looks"]
    assert {look["text"] for look in looks} <= {"soft", "hard"}


def test_a_command_that_does_not_fit_is_refused_before_anything_is_served(sit):
    with pytest.raises(Refused, match=r"--present must name parameters in braces .* got {gian}"):
        sit(DUEL, present="x {gian} {out}")


def test_the_end_comes_after_the_planned_answers_with_a_code_of_ones_own(sit):
    client = sit(DUEL + "[page]\nanswers = 2\nreveal = true\n")
    for number in range(2):
        client.post(f"{SITTING}/next")
        moment = client.post(f"{SITTING}/answer", json={"question": number, "answer": 1}).json()
    assert (moment["shown"], moment["answered"], len(moment["reveal"])) == (None, 2, 1)
    assert client.post(f"{SITTING}/next").json()["code"] == moment["code"]
    assert len(client.post(f"{SITTING}/next").json()["code"]) == 9


def test_the_last_answer_alone_can_be_replaced(sit, tmp_path):
    client = sit(DUEL)
    client.post(f"{SITTING}/next")
    for number in range(2):
        client.post(f"{SITTING}/answer", json={"question": number, "answer": 1})
    back = client.post(f"{SITTING}/back").json()
    assert (back["shown"]["id"], back["shown"]["again"]) == (1, True)
    first = client.post(f"{SITTING}/answer", json={"question": 0, "answer": 0, "again": True}).json()
    assert (first["noted"], first["shown"]["id"]) == (False, 2)
    second = client.post(f"{SITTING}/answer", json={"question": 1, "answer": 0, "again": True}).json()
    assert (second["noted"], second["shown"]["id"], second["answered"]) == (True, 2, 2)
    with aw.Study.open(tmp_path / "askwise.db", "hall") as study:
        assert [entry.answer.to_json() for entry in study.history()[:2]] == [{"prefers": 1}, {"prefers": 0}]


def test_answers_to_questions_of_others_or_of_nobody_are_not_taken(sit, tmp_path):
    client = sit(DUEL)
    client.post(f"{SITTING}/next")
    gate = client.app.state.gate
    bob = {"Authorization": f"Bearer {gate.pass_of(gate.file.add_link('hall', 'Bob'))}"}
    for question in (0, 99):
        sent = {"question": question, "answer": 1}
        moment = client.post(f"{SITTING}/answer", json=sent, headers=bob).json()
        assert (moment["noted"], moment["answered"], moment["shown"]["id"]) == (False, 0, 1)
    assert client.post(f"{SITTING}/answer", json={"question": 0, "answer": 7}).status_code == 422
    with aw.Study.open(tmp_path / "askwise.db", "hall") as study:
        assert study.count() == 0


def test_a_link_is_good_for_sittings_of_its_own_study(sit):
    client = sit(DUEL)
    owner = {"Authorization": f"Bearer {client.app.state.gate.file.kept.token}"}
    client.post("/api/v1/studies", json={"toml": DUEL.replace("hall", "other")}, headers=owner)
    for path in ("next", "back", "end"):
        assert client.post(f"/api/v1/studies/other/sitting/{path}").status_code == 403
        assert client.post(f"{SITTING}/{path}", headers={"Authorization": ""}).status_code == 401


def test_a_study_that_came_by_a_request_runs_nothing_and_reads_nothing(owner):
    for line in ("command = 'touch x {out}'", "file = 'a.txt'", "render = 'os:getcwd'"):
        text = DUEL.replace("hall", "other") + f"[stimulus]\n{line}\n"
        answer = owner.post("/api/v1/studies", json={"toml": text})
        assert answer.status_code == 422
        assert "left out of a study that is created here" in answer.json()["error"]["message"]
    text = DUEL.replace("hall", "other") + "[stimulus]\ntext = '{gain}'\n"
    assert owner.post("/api/v1/studies", json={"toml": text}).status_code == 201


def test_the_page_allows_pictures_from_the_server_that_the_study_names_and_no_other(sit):
    client = sit(DUEL + '[stimulus]\nurl = "https://lab.example.org/{mode}.png"\n')
    policy = client.get(client.page).headers["content-security-policy"]
    assert "img-src 'self' https://lab.example.org;" in policy
    assert "script-src 'self';" in policy
    assert "frame-src 'self'" in policy


def test_all_words_can_be_replaced(sit):
    words = "".join(f'{key} = "our {key}."\n' for key in WORDS)
    client = sit(DUEL + f"[page]\nconsent = 'C'\n[page.words]\n{words}")
    text = html.unescape(client.get(client.page).text)
    spoken = re.sub(r"data-words=.*", "", text)
    assert [key for key in WORDS if f"our {key}." not in text] == []
    for english in ("Undo", "Thank you", "Copy", "break"):
        assert not re.search(rf">[^<]*{english}\\b(?!\\.)", spoken)


def test_words_of_the_page_are_escaped(sit):
    client = sit(DUEL + "[page]\ntitle = '<script>x</script>'\n[page.words]\nyes = '\"><b>'\n")
    text = client.get(client.page).text
    assert "<script>x" not in text
    assert '"><b>' not in text


@pytest.mark.slow
def test_a_prefetched_question_comes_at_once(sit):
    client = sit(DUEL)
    moment = client.post(f"{SITTING}/next").json()
    for _ in range(5):
        time.sleep(0.5)  # somebody thinks
        began = time.perf_counter()
        moment = client.post(
            f"{SITTING}/answer", json={"question": moment["shown"]["id"], "answer": 1}
        ).json()
        took = time.perf_counter() - began
    assert took < 0.5
