"""The experimenter's pages in a real browser, under the policy that forbids everything inline."""

import re

import pytest

import askwise as aw
import axe
from askwise.web.settings import Settings
from browser import DESK, PHONE, Visitor, chromium
from served import DUEL, in_thread

LOOKS = [{**size, "color_scheme": scheme} for size in (DESK, PHONE) for scheme in ("light", "dark")]
TABS = ("answers", "links", "export")
THRESHOLD = """
[study]
name = "threshold"
feedback = "binary"
initial = 3
[space.contrast]
type = "real"
low = 0.01
high = 1
log = true
"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as one:
        yield one


@pytest.fixture
def server(tmp_path):
    for name, text in (("hall", DUEL), ("threshold", THRESHOLD)):
        (tmp_path / f"{name}.toml").write_text(text)
    files = tuple(str(tmp_path / f"{name}.toml") for name in ("hall", "threshold"))
    with in_thread(Settings(str(tmp_path / "askwise.db"), files)) as link:
        yield link


@pytest.fixture
def visit(browser, server):
    """Opens pages, and closes them before the server ends, which waits for those that wait for news."""
    visitors = []

    def visit(path="", **looks):
        visitor = Visitor(browser, server, **looks)
        visitor.page.set_default_timeout(20_000)
        visitors.append(visitor)
        if path:
            visitor.page.goto(re.sub(r"/\?.*", f"/{path}", server))
        return visitor

    yield visit
    for visitor in visitors:
        visitor.context.close()


def answer(server, study="hall", count=1, participant=None):
    client = aw.Client(server, study)
    for _ in range(count):
        question = client.ask(participant)
        first, last = question.options[0], question.options[-1]
        better = last["gain"] > first["gain"] if "gain" in first else first["contrast"] > 0.2
        client.tell(question, int(better) if "gain" in first else better)


def test_an_answer_appears_on_the_page_at_once(visit, server):
    answer(server, count=3)
    visitor = visit()
    page = visitor.page
    page.click("text=hall")
    page.wait_for_selector("#desk[data-shown='3']")
    answer(server)
    page.wait_for_selector("#desk[data-shown='4']")
    assert page.inner_text("[data-count='answered']") == "4"
    assert page.locator("#slices canvas").count() == 2
    assert page.locator("#maps canvas").count() == 4
    assert "gain" in page.inner_text("#best")
    assert page.inner_text("#live") == "live"
    assert visitor.complaints == []


@pytest.mark.slow
def test_a_study_from_the_form_to_its_first_answers(visit, server):
    visitor = visit()
    page = visitor.page
    page.click("text=New study >> nth=0")
    page.fill("[name='name']", "aid")
    page.fill("[name='0.name']", "gain")
    page.fill("[name='0.low']", "0")
    page.fill("[name='0.high']", "loud")
    page.wait_for_selector("[name='0.high'][aria-invalid='true']")
    assert "high must be a number; got 'loud'" in page.inner_text("#problem")
    page.fill("[name='0.high']", "40")
    page.click("text=Add a parameter")
    page.fill("[name='2.name']", "mode")
    page.select_option("[name='2.type']", "choice")
    page.fill("[name='2.values']", "soft, hard")
    page.wait_for_selector("text=This is a study that can be created.")
    assert 'values" = ["soft", "hard"]' in page.text_content("#preview")
    page.click("text=Create the study")
    page.wait_for_url("**/studies/aid")
    page.wait_for_selector("text=Nobody has answered yet")
    page.click("#start .button")
    page.fill("[name='participant']", "Ann")
    page.click("button >> text=Make a link")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.querySelector('.qr').naturalWidth") > 0
    page.click("text=Copy")
    page.wait_for_selector("text=Copied")
    token = page.input_value(".copy input").rpartition("/")[2]
    page.click("nav >> text=Overview")
    page.wait_for_selector("#desk[data-shown='0']")
    participant = aw.Client(re.sub("token=.*", f"token={token}", server), "aid")
    for _ in range(3):
        participant.tell(participant.ask(), 1)
    page.wait_for_selector("#desk[data-shown='3']")
    assert page.is_hidden("#start")
    assert "Ann" in page.inner_text("#people")
    assert visitor.complaints == []


@pytest.mark.slow
def test_a_mistake_in_toml_is_marked_at_its_line(visit, server):
    visitor = visit("new")
    page = visitor.page
    page.check("#mode-toml")
    text = page.input_value("#toml").replace("high = 40", "hihg = 40")
    page.fill("#toml", text)
    page.wait_for_selector("#lines .bad")
    line = 1 + text.split("\n").index("hihg = 40")
    assert page.inner_text("#lines .bad") == str(line)
    assert "Did you mean 'high'?" in page.inner_text("#problem")
    page.fill("#toml", text.replace("hihg", "high"))
    page.wait_for_selector("text=This is a study that can be created.")
    assert visitor.complaints == []


@pytest.mark.slow
def test_an_answer_is_amended_and_a_conflict_is_said(visit, server):
    answer(server, count=2)
    visitor = visit("studies/hall/answers")
    page = visitor.page
    page.click("#q0 summary")
    page.select_option("#q0 [name='answer']", "tie")
    page.fill("#q0 form >> nth=0 >> [name='reason']", "pressed the wrong key")
    page.click("#q0 >> text=Amend >> nth=1")
    page.wait_for_selector("#q0.changed")
    assert "can't decide" in page.inner_text("#q0")
    assert "pressed the wrong key" in page.inner_text("#q0")
    aw.Client(server, "hall").void(1)
    page.click("#q1 summary")
    page.click("#q1 .danger")
    assert "question 1 must be as you saw it; got a change to voided meanwhile" in page.inner_text(
        "[role='alert']"
    )


@pytest.mark.slow
def test_charts_are_read_by_keyboard_and_by_mouse(visit, server):
    answer(server, count=4)
    visitor = visit("studies/hall")
    page = visitor.page
    page.wait_for_selector("#desk[data-shown='4']")
    slider = page.locator("#slices .cursor >> nth=0")
    slider.focus()
    before = slider.get_attribute("aria-valuetext")
    page.keyboard.press("ArrowLeft")
    after = slider.get_attribute("aria-valuetext")
    assert before != after
    assert after == page.inner_text("#slices .readout >> nth=0")
    page.locator("#cursors .cursor >> nth=0").focus()
    page.keyboard.press("Home")
    assert page.inner_text("#map-readout").startswith("gain")
    first = page.inner_text("#map-readout")
    page.locator("#maps .u-over >> nth=2").hover(position={"x": 60, "y": 40})
    assert page.inner_text("#map-readout") != first
    page.click("#slices >> text=As a table >> nth=0")
    page.wait_for_selector("#slices table tbody tr")
    assert page.locator("#slices table tbody tr").count() >= 10
    assert visitor.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS, ids=["desk", "desk-dark", "phone", "phone-dark"])
def test_axe_finds_nothing_wrong_and_nothing_is_wider_than_the_page(visit, server, look):
    answer(server, count=4, participant="Ann")
    answer(server, "threshold", count=5)
    look = {**look, "bypass_csp": True, "reduced_motion": "reduce"}
    visitor = visit(**look)
    page = visitor.page
    aw.Client(server, "hall")._post("links", {"participant": "Ann"})
    for path in (
        "",
        "new",
        "studies/hall",
        "studies/threshold",
        "studies/hall/answers",
        "studies/hall/links",
    ):
        page.goto(re.sub(r"/\?.*", f"/{path}", server))
        if path in ("studies/hall", "studies/threshold"):
            page.wait_for_selector("#desk[data-shown]")
        for folded in page.locator("summary").all():
            folded.click()
        assert axe.violations(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    assert visitor.complaints == []


def test_a_study_with_a_level_shows_its_shares_and_a_map_of_it(visit, server):
    level = THRESHOLD.replace('"threshold"', '"grasp"').replace("initial = 3", "level = 0.8")
    client = aw.Client(server).create(f'{level}[space.speed]\ntype = "real"\nlow = 0\nhigh = 5\n')
    for number in range(12):
        client.record([{"contrast": 0.01 + 0.08 * number, "speed": 0.4 * number}], number > 5)
    visitor = visit("studies/grasp")
    visitor.page.wait_for_selector("#desk[data-shown='12']")
    for side in ("inside", "outside", "misclassified"):
        assert re.fullmatch(r"[\d.]+%", visitor.page.inner_text(f"#{side}"))
    assert visitor.page.locator("#maps h3").first.inner_text() == "Probability of reaching the level"
    assert "probability of reaching the level" in visitor.page.inner_text("#map-readout")
    assert not visitor.complaints
