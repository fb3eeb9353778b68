"""The experimenter's pages: what they show, what they change, and what they refuse."""

import re
from urllib.parse import quote

import pytest

from askwise.web.app import create
from served import DUEL

HALL = "/studies/hall"
API = "/api/v1/studies/hall"
PAGES = ["/", "/new", HALL, f"{HALL}/answers", f"{HALL}/links", f"{HALL}/export"]
DATA = ["live", "outlook", "importance", "people", "slices", "hint", "map?over=gain&over=mode"]


def answered(client, count: int = 5) -> None:
    """Answers of somebody who likes it loud."""
    study = client.app.state.studies.get("hall").study
    for _ in range(count):
        question = study.ask("Ann")
        study.tell(question, int(question.options[1]["gain"] > question.options[0]["gain"]), seconds=2.0)


def test_nobody_else_sees_the_experimenters_pages(anybody):
    link = anybody.app.state.gate.file.add_link("hall", "Ann")
    passed = {"Authorization": f"Bearer {anybody.app.state.gate.pass_of(link)}"}
    for path in [*PAGES, *(f"{HALL}/{name}" for name in DATA), f"{HALL}/figures/slices.png"]:
        assert anybody.get(path).status_code == 401, path
        assert anybody.get(path, headers=passed).status_code == 401, path


def test_every_change_needs_the_token_of_a_form(browser):
    answered(browser, 1)
    link = browser.app.state.gate.file.add_link("hall", "Ann")
    for path in ("/new", "/new/check", f"{HALL}/pause", f"{HALL}/links", f"{HALL}/links/{link.id}/revoke"):
        assert browser.post(path, data={"paused": "yes", "toml": "", "csrf": "guess"}).status_code == 403
    for path in (f"{HALL}/answers/0/amend", f"{HALL}/answers/0/void", "/sign-out"):
        assert browser.post(path, data={"answer": "A"}).status_code == 403
    studies = browser.app.state.studies
    assert not studies.file.kept.links[link.id].revoked
    assert not studies.is_paused(studies.get("hall"))
    assert studies.get("hall").study.count() == 1


def test_pages_have_nothing_inline_and_all_their_files(browser):
    answered(browser)
    browser.app.state.gate.file.add_link("hall", None)
    for path in PAGES:
        page = browser.get(path)
        assert page.status_code == 200, path
        assert page.headers["referrer-policy"] == "same-origin"  # else browsers send forms from "null"
        assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]* src=)", page.text), path
        for file in re.findall(r'(?:src|href)="(/static/[^"]+|[^"]+qr\.svg)"', page.text):
            assert browser.get(file).status_code == 200, file


def test_numbers_are_those_of_the_study(browser):
    answered(browser)
    study = browser.app.state.studies.get("hall").study
    status = study.status()
    outlook = browser.get(f"{HALL}/outlook?reference.gain=10&reference.mode=hard").json()
    best = study.best(reference={"gain": 10.0, "mode": "hard"})
    assert outlook["best"]["probability"] == best.probability
    assert outlook["best"]["reference"] == [{"name": "gain", "text": "10"}, {"name": "mode", "text": "hard"}]
    assert outlook["best"]["better"] == study.compare(best.params, {"gain": 10.0, "mode": "hard"}).better
    assert (outlook["gain"], outlook["regret"]) == (status.gain, status.regret)
    assert outlook["unknown"]
    importance = browser.get(f"{HALL}/importance").json()["each"]
    assert {one["name"]: one["value"] for one in importance} == {
        name: one.value for name, one in study.importance().items()
    }
    assert browser.get(f"{HALL}/live").json()["counts"]["answered"] == 5
    (person,) = browser.get(f"{HALL}/people").json()
    assert (person["name"], person["answers"], person["seconds"]) == ("Ann", 5, 2.0)
    assert {check["title"] for check in person["checks"]} == {"Side bias", "Response times"}


def test_a_study_without_answers_says_what_it_takes(browser):
    for name in ("slices", "importance", "map?over=gain&over=mode"):
        assert browser.get(f"{HALL}/{name}").json() == {"missing": "It takes a first answer to show this."}
    outlook = browser.get(f"{HALL}/outlook").json()
    assert (outlook["best"], outlook["checks"], outlook["short"]) == (None, [], "Go on")
    assert "Nobody has answered yet" in browser.get(HALL).text


def test_a_reference_that_is_none_is_refused_in_words(browser):
    answered(browser, 1)
    refused = browser.get(f"{HALL}/outlook?reference.gain=loud", headers={"Accept": "application/json"})
    assert refused.status_code == 422
    assert "gain must" in refused.json()["error"]["message"]


def test_a_link_is_made_shown_as_a_code_and_revoked(browser, csrf):
    browser.post(f"{HALL}/links", data={"participant": "Ann", "csrf": csrf})
    (link,) = browser.app.state.gate.file.kept.links.values()
    page = browser.get(f"{HALL}/links").text
    address = f"http://localhost/p/{browser.app.state.gate.pass_of(link)}"
    assert f'data-copy="{address}"' in page
    code = browser.get(f"{HALL}/links/{link.id}/qr.svg")
    assert code.headers["content-type"] == "image/svg+xml"
    assert code.text.startswith("<svg")
    assert browser.get(address).status_code == 200
    browser.post(f"{HALL}/links/{link.id}/revoke", data={"csrf": csrf})
    assert browser.get(address).status_code == 401
    assert browser.get(f"{HALL}/links/{link.id}/qr.svg").status_code == 404
    assert "1 revoked" in browser.get(f"{HALL}/links").text
    long = browser.post(f"{HALL}/links", data={"participant": "A" * 201, "csrf": csrf})
    assert (long.status_code, "at most 200 characters" in long.text) == (422, True)


def test_a_link_of_another_study_is_not_revoked_here(browser, csrf):
    link = browser.app.state.gate.file.add_link("other", None)
    assert browser.post(f"{HALL}/links/{link.id}/revoke", data={"csrf": csrf}).status_code == 404
    assert not browser.app.state.gate.file.kept.links[link.id].revoked


def test_a_pause_is_kept_across_restarts(browser, csrf, settings):
    page = browser.post(f"{HALL}/pause", data={"paused": "yes", "csrf": csrf})
    assert "Paused" in page.text
    headers = {"X-CSRF-Token": csrf, "Accept": "application/json"}
    assert browser.post(f"{API}/ask", json={}, headers=headers).status_code == 409
    again = create(settings)
    assert again.state.studies.is_paused(again.state.studies.get("hall"))
    again.state.studies.close()
    browser.post(f"{HALL}/pause", data={"paused": "no", "csrf": csrf})
    assert browser.post(f"{API}/ask", json={}, headers=headers).status_code == 200
    assert browser.get(f"{HALL}/live").json()["paused"] is False


def seen(browser, question: int) -> str:
    page = browser.get(f"{HALL}/answers").text
    part = page.partition(f'id="q{question}"')[2]
    return re.search(r'name="seen" value="([^"]*)"', part)[1].replace("&#39;", "'")


def test_an_answer_is_amended_and_voided_with_a_reason(browser, csrf):
    answered(browser, 2)
    study = browser.app.state.studies.get("hall").study
    other = "A" if study.entry(0).answer.prefers else "B"
    sent = {"csrf": csrf, "answer": other, "reason": "wrong key", "seen": seen(browser, 0)}
    page = browser.post(f"{HALL}/answers/0/amend", data=sent)
    assert page.status_code == 200
    assert "wrong key" in page.text
    assert study.entry(0).answer.prefers == (other == "B")
    browser.post(f"{HALL}/answers/1/void", data={"csrf": csrf, "reason": "noise", "seen": seen(browser, 1)})
    assert (study.entry(1).status, study.entry(1).reason) == ("voided", "noise")


def test_a_change_of_what_others_have_changed_meanwhile_is_a_conflict_in_words(browser, csrf):
    answered(browser, 1)
    study = browser.app.state.studies.get("hall").study
    before = seen(browser, 0)
    study.amend(0, None)
    for path, more in (("amend", {"answer": "A"}), ("void", {})):
        page = browser.post(f"{HALL}/answers/0/{path}", data={"csrf": csrf, "seen": before, **more})
        assert page.status_code == 409
        assert "question 0 must be as you saw it; got a change to can&#39;t decide" in page.text
    assert study.entry(0).status == "answered"


def test_an_answer_that_cannot_be_read_or_amended_is_refused_above_the_table(browser, csrf):
    answered(browser, 1)
    study = browser.app.state.studies.get("hall").study
    sent = {"csrf": csrf, "answer": "C", "seen": seen(browser, 0)}
    page = browser.post(f"{HALL}/answers/0/amend", data=sent)
    assert (page.status_code, "answer must be the letter" in page.text) == (422, True)
    open_one = study.ask("Bo")
    page = browser.post(f"{HALL}/answers/1/amend", data={"csrf": csrf, "answer": "A", "seen": "open"})
    assert (page.status_code, "must have an answer to amend" in page.text) == (409, True)
    assert study.entry(open_one).status == "open"
    assert browser.post(f"{HALL}/answers/9/void", data={"csrf": csrf, "seen": ""}).status_code == 404


def test_answers_are_selected_and_come_in_pages(browser, monkeypatch):
    monkeypatch.setattr("askwise.web.answers.PAGE", 2)
    answered(browser, 3)
    browser.app.state.studies.get("hall").study.ask("Bo")
    shown = re.findall(r'id="q(\d+)"', browser.get(f"{HALL}/answers").text)
    assert shown == ["3", "2"]
    assert re.findall(r'id="q(\d+)"', browser.get(f"{HALL}/answers?page=2").text) == ["1", "0"]
    assert re.findall(r'id="q(\d+)"', browser.get(f"{HALL}/answers?participant=Bo").text) == ["3"]
    assert "No questions here" in browser.get(f"{HALL}/answers?status=voided&page=x").text


def test_what_people_write_is_shown_as_text(browser):
    study = browser.app.state.studies.get("hall").study
    evil = "<script>alert(1)</script>"
    study.tell(study.ask(evil), 0)
    browser.app.state.gate.file.add_link("hall", evil)
    for path in (f"{HALL}/answers", f"{HALL}/links", f"{HALL}/answers?participant={quote(evil)}"):
        assert evil not in browser.get(path).text
        assert "&lt;script&gt;" in browser.get(path).text


@pytest.mark.parametrize("kinds", ["png", pytest.param("svg pdf", marks=pytest.mark.slow)])
def test_figures_are_files(browser, kinds):
    answered(browser, 3)
    for kind in kinds.split():
        start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind]
        found = browser.get(f"{HALL}/figures/uncertainty.{kind}")
        assert found.content.startswith(start)
        assert f'filename="hall-uncertainty.{kind}"' in found.headers["content-disposition"]


def test_an_unknown_figure_and_one_without_answers_are_refused(browser):
    assert browser.get(f"{HALL}/figures/taste.png").status_code == 404
    assert browser.get(f"{HALL}/figures/slices.exe").status_code == 404
    assert browser.get(f"{HALL}/figures/slices.png").status_code == 422


def test_signing_out_takes_the_cookie_away(browser, csrf):
    assert "Signed out" in browser.post("/sign-out", data={"csrf": csrf}).text
    assert browser.get("/").status_code == 401


def test_pages_of_people_who_differ_and_of_contexts(browser, csrf):
    text = DUEL.replace('"hall"', '"apart"').replace("seed = 3", 'seed = 3\nparticipants = "separate"')
    text += '[space.noise]\ntype = "choice"\nvalues = ["quiet", "loud"]\ncontext = true\n'
    browser.post("/new", data={"mode": "toml", "toml": text, "csrf": csrf})
    study = browser.app.state.studies.get("apart").study
    assert "context.noise" in browser.get("/studies/apart").text
    for who in ("Ann", "Bo"):
        for _ in range(3):
            study.tell(study.ask(who, {"noise": "loud"}), 0)
    page = browser.get("/studies/apart?participant=Bo&context.noise=quiet").text
    assert "<option selected>Bo</option>" in page
    assert "<option selected>quiet</option>" in page
    found = browser.get("/studies/apart/slices?participant=Bo&context.noise=quiet").json()
    assert [curve["axis"]["name"] for curve in found["curves"]] == ["gain", "mode"]
    assert len(found["curves"][0]["asked"]) == 6
    people = browser.get("/studies/apart/people?participant=Bo").json()
    assert [row["contradicting"] is None for row in people] == [True, False]
    assert browser.get("/studies/apart/outlook").json()["best"]["params"][0]["name"] == "gain"


@pytest.mark.parametrize("page", ["\u00b2", "9" * 5000, "-1", "x", ""])
def test_a_page_that_is_no_number_is_the_first(browser, page):
    assert browser.get(f"{HALL}/answers", params={"page": page}).status_code == 200


def test_from_a_conflict_the_filter_leads_back_to_the_answers(browser, csrf):
    shown = browser.post(f"{HALL}/answers/7/amend", data={"csrf": csrf, "answer": "A"})
    assert f'method="get" action="{HALL}/answers"' in shown.text


def test_consent_is_asked_of_whom_others_recorded_something(browser):
    studies, gate = browser.app.state.studies, browser.app.state.gate
    study, link = studies.get("hall"), gate.file.add_link("hall", "P1")
    gains = ({"gain": 1.0, "mode": "soft"}, {"gain": 2.0, "mode": "soft"})
    study.study.record(gains, 1, participant="P1")
    page = f"/p/{gate.pass_of(link)}"
    assert 'data-started=""' in browser.get(page).text
    question = study.study.ask("P1")
    study.study.tell(question, 0)
    assert 'data-started="yes"' in browser.get(page).text
