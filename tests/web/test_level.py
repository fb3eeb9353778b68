"""Studies with a level on a server: form, API, client and the experimenter's page."""

import csv
import io
import tomllib

import pytest

import askwise as aw
from askwise.web.forms import Draft
from served import in_thread

LEVEL = """
[study]
name = "grasp"
feedback = "binary"
level = 0.8
kernel = "se"
[space.force]
type = "real"
low = 0
high = 10
[space.speed]
type = "real"
low = 0
high = 5
"""
GRASP = "/api/v1/studies/grasp"


@pytest.fixture
def grasp(owner):
    owner.post("/api/v1/studies", json={"toml": LEVEL})
    for number in range(12):
        setting = {"force": number * 0.9, "speed": number % 5}
        sent = {"options": [setting], "answer": 3 < setting["force"] < 8, "key": f"k{number}"}
        assert owner.post(f"{GRASP}/record", json=sent).status_code == 201
    return owner


def test_the_form_takes_a_level():
    form = {
        "name": "grasp",
        "feedback": "binary",
        "level": "0.9",
        "0.name": "force",
        "0.low": "0",
        "0.high": "9",
    }
    assert tomllib.loads(Draft.of(form).text)["study"] == {
        "name": "grasp",
        "feedback": "binary",
        "level": 0.9,
    }


def test_the_form_says_what_is_wrong_with_a_level(browser, csrf):
    form = {"mode": "form", "name": "grasp", "feedback": "binary", "level": "high", "csrf": csrf}
    form |= {"0.name": "force", "0.type": "real", "0.low": "0", "0.high": "9"}
    found = browser.post("/new/check", data=form).json()
    assert found["field"] == "level"
    assert found["problem"].startswith("level must be a number; got 'high'.")
    assert 'name="level"' in browser.get("/new").text


def test_the_api_has_the_level_set(grasp):
    found = grasp.get(f"{GRASP}/level", params={"confidence": 0.9, "safest": 2}).json()
    assert (found["level"], found["confidence"], len(found["safest"])) == (0.8, 0.9, 2)
    assert grasp.get(f"{GRASP}/level?level=0.5").json()["level"] == 0.5
    assert grasp.get(f"{GRASP}/status").json()["misclassified"] == pytest.approx(found["misclassified"])
    assert grasp.get(f"{GRASP}/best").json()["above_level"] is not None
    rows = list(csv.DictReader(io.StringIO(grasp.get(f"{GRASP}/level/settings.csv?count=9").text)))
    assert len(rows) == 9
    assert {row["side"] for row in rows} <= {"inside", "outside", "unclear"}
    refused = grasp.get(f"{GRASP}/level?level=2")
    assert refused.status_code == 422
    assert "level must be a success rate between 0 and 1; got 2.0" in refused.json()["error"]["message"]
    changed = grasp.post(f"{GRASP}/change", json={"level": 0.9}).json()
    assert changed == {"changes": ["level: 0.8 becomes 0.9"]}


def test_a_client_gets_what_a_study_gives(settings):
    study = aw.Study(aw.Space(force=aw.Real(0, 10), speed=aw.Real(0, 5)), "binary", level=0.8, kernel="se")
    with in_thread(settings) as link:
        client = aw.Client(link).create(LEVEL)
        for number in range(8):
            setting = {"force": number, "speed": number % 5}
            for one in (study, client):
                one.record([setting], number > 3)
        assert client.level_set(safest=2) == study.level_set(safest=2)
        assert client.classified(5, 0.5) == study.classified(5, 0.5)
        assert client.status() == study.status()
        assert client.change(level=None) == study.change(level=None)


def test_the_page_speaks_of_the_level(grasp):
    page = grasp.get("/studies/grasp", headers={"Accept": "text/html"}).text
    assert "Expected to be taken for the wrong side" in page
    assert "Expected regret" not in page
    outlook = grasp.get("/studies/grasp/outlook").json()
    assert 0 <= outlook["level"]["inside"] <= 1
    assert "success rate of 80%" in outlook["level"]["words"]
    assert "at least 80% of the time has a probability of" in outlook["best"]["sentence"]
    values = grasp.get("/studies/grasp/map?over=force&over=speed").json()["values"]
    assert all(0 <= value <= 1 for row in values["above"] for value in row)
    assert grasp.get("/studies/grasp/figures/level.png").headers["content-type"] == "image/png"
    assert "figures/level.png" in grasp.get("/studies/grasp/export", headers={"Accept": "text/html"}).text
    assert "figures/level.png" not in grasp.get("/studies/hall/export", headers={"Accept": "text/html"}).text
