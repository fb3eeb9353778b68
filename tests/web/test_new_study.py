"""A new study from the form and from TOML, checked as one types."""

import tomllib

import pytest

from askwise.web.forms import Draft
from served import DUEL

FORM = {"mode": "form", "name": "aid", "question": "Clearer?", "feedback": "duel", "repeats": "0.1"}
GAIN = {"0.name": "gain", "0.type": "real", "0.low": "1", "0.high": "40", "0.unit": "dB", "0.log": "yes"}
MODE = {"2.name": "mode", "2.type": "choice", "2.values": "soft, hard, 3", "2.low": "9"}
EMPTY = {"1.name": "", "1.type": "real", "1.low": " "}


@pytest.fixture
def send(browser, csrf):
    return lambda path, form: browser.post(path, data={**form, "csrf": csrf})


def test_a_form_is_a_study_file():
    read = tomllib.loads(Draft.of(FORM | GAIN | EMPTY | MODE).text)
    assert read["study"] == {"name": "aid", "question": "Clearer?", "feedback": "duel", "repeats": 0.1}
    assert read["space"]["gain"] == {"type": "real", "low": 1, "high": 40, "unit": "dB", "log": True}
    assert read["space"]["mode"] == {"type": "choice", "values": ["soft", "hard", 3]}


def test_a_study_is_created_from_the_form(send, browser):
    checked = send("/new/check", FORM | GAIN | MODE).json()
    assert checked["problem"] is None
    assert "aid" not in browser.app.state.studies.names()
    page = send("/new", FORM | GAIN | MODE)
    assert page.url.path == "/studies/aid"
    assert "Clearer?" in page.text
    assert browser.app.state.studies.get("aid").study.plan.repeats == 0.1
    taken = send("/new/check", FORM | GAIN).json()
    assert taken["problem"].startswith("name must be new; got 'aid', which exists.")
    assert taken["field"] == "name"


MISTAKES = [
    ({"0.low": "x"}, "0.low", "low must be a number; got 'x'."),
    ({"0.high": ""}, "0.name", "high must be given"),
    ({"2.values": "soft"}, "2.values", "values must"),
    ({"name": ""}, "name", "name must be given; got none."),
    ({"repeats": "lots"}, "repeats", "repeats must be a number; got 'lots'."),
    ({"2.name": "gain"}, "2.name", "name must be that of one parameter; got 'gain'."),
    ({"0.name": ""}, "0.name", "name must be that of one parameter; got none."),
    ({"size": "7"}, "size", "size must be 2 for duel questions"),
]


def test_a_mistake_in_the_form_names_its_field(send):
    for change, field, words in MISTAKES:
        found = send("/new/check", FORM | GAIN | MODE | change).json()
        assert words in found["problem"]
        assert found["field"] == field


def test_a_mistake_in_toml_names_its_line_and_nothing_is_written(send, browser):
    text = DUEL.replace('"hall"', '"aid"').replace("high = 40", 'high = "loud"')
    found = send("/new/check", {"mode": "toml", "toml": text}).json()
    line = 1 + text.split("\n").index('high = "loud"')
    assert found["line"] == line
    assert found["problem"].startswith(f"line {line}: high must")
    refused = send("/new", {"mode": "toml", "toml": text})
    assert refused.status_code == 422
    assert f"line {line}: high must" in refused.text
    assert "high = &#34;loud&#34;" in refused.text
    assert browser.app.state.studies.names() == ["hall"]
    assert (
        send("/new/check", {"mode": "toml", "toml": text.replace('"loud"', "40")}).json()["problem"] is None
    )


def test_a_text_that_reaches_for_files_or_is_no_toml_is_refused(send):
    evil = DUEL.replace("seed = 3", 'import = ["os"]').replace("hall", "aid")
    assert "import must be left out" in send("/new/check", {"mode": "toml", "toml": evil}).json()["problem"]
    for text in ("", "[study", "x = " + "[" * 5000):
        assert send("/new/check", {"mode": "toml", "toml": text}).json()["problem"]


def test_the_template_of_the_page_is_a_study(send, browser):
    page = browser.get("/new").text
    text = page.partition('wrap="off">')[2].partition("</textarea>")[0]
    text = text.replace("&#34;", '"').replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">")
    assert send("/new/check", {"mode": "toml", "toml": text}).json()["problem"] is None


def test_carriage_returns_of_browsers_do_not_matter(send):
    text = DUEL.replace("hall", "aid").replace("\n", "\r\n")
    assert send("/new", {"mode": "toml", "toml": text}).url.path == "/studies/aid"


def test_a_study_with_the_address_of_another_is_refused(owner):
    first = owner.post("/api/v1/studies", json={"toml": DUEL.replace('"hall"', '"two words"')})
    second = owner.post("/api/v1/studies", json={"toml": DUEL.replace('"hall"', f'"{first.json()["id"]}"')})
    assert (first.status_code, second.status_code) == (201, 409)
    assert "which has the address of 'two words'" in second.text


@pytest.mark.parametrize("name", ["\u00b2", "\u00b2.name", "9" * 5000, "9" * 5000 + ".name"])
def test_fields_of_no_row_are_no_rows(send, name):
    assert send("/new/check", {name: "x"}).status_code < 500
    assert send("/new", {name: "x"}).status_code < 500
