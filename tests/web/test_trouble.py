"""What goes wrong with people and networks: nothing is lost, and nothing is stored twice."""

import time
from collections import Counter

import pytest

import askwise as aw
from askwise.web.settings import Settings
from browser import Visitor, chromium, link_to
from served import DUEL, Process, in_thread, serving

PAGE = "[page]\nanswers = {}\n"


@pytest.fixture(scope="module")
def browser():
    with chromium() as one:
        yield one


@pytest.fixture
def link(tmp_path):
    (tmp_path / "hall.toml").write_text(DUEL + PAGE.format(4))
    with in_thread(Settings(str(tmp_path / "askwise.db"), (str(tmp_path / "hall.toml"),))) as one:
        yield one


def record(tmp_path):
    with aw.Study.open(tmp_path / "askwise.db", "hall") as study:
        return study.history(), Counter(event.kind for event in study.events())


def test_a_double_click_answers_once(browser, link, tmp_path):
    visitor = Visitor(browser, link_to(link)).start()
    visitor.page.locator(".take").nth(0).dblclick()
    visitor.sees(2)
    visitor.page.keyboard.down("ArrowRight")  # and a key that is held
    for _ in range(5):
        visitor.page.keyboard.down("ArrowRight")
    visitor.page.keyboard.up("ArrowRight")
    visitor.sees(3)
    entries, kinds = record(tmp_path)
    assert [entry.answer.to_json() for entry in entries[:2]] == [{"prefers": 0}, {"prefers": 1}]
    assert kinds == {"asked": 3, "answered": 2}
    assert visitor.complaints == []


def test_the_second_of_two_clicks_does_not_answer_a_question_that_nobody_has_seen(browser, link, tmp_path):
    visitor = Visitor(browser, link_to(link)).start()
    visitor.page.evaluate(
        """() => new Promise((done) => {
            const watch = new MutationObserver(() => {
                const take = document.querySelector(".question[data-ready='2'] .take");
                if (!take) return;
                watch.disconnect();
                take.click(); // at the moment when the next question appears
                setTimeout(done, 100);
            });
            watch.observe(document, {subtree: true, childList: true, attributes: true});
            document.querySelector(".take").click();
        })"""
    )
    visitor.sees(2)
    assert record(tmp_path)[1] == {"asked": 2, "answered": 1}


@pytest.mark.slow
def test_undo_waits_for_an_answer_that_is_on_its_way(browser, link, tmp_path):
    visitor = Visitor(browser, link_to(link)).start()
    visitor.press("ArrowLeft").sees(2)
    visitor.context.set_offline(True)
    visitor.press("ArrowRight").page.wait_for_selector("text=Your answer is kept")
    assert visitor.page.is_disabled("#undo")
    visitor.page.click("#undo", force=True)
    visitor.press("Backspace")
    visitor.context.set_offline(False)
    visitor.sees(3)
    visitor.page.click("#undo:enabled")
    visitor.page.wait_for_selector("text=replaces the one you gave")
    visitor.sees(2).press("ArrowLeft").sees(3)
    entries, kinds = record(tmp_path)
    assert [entry.answer.to_json() for entry in entries[:2]] == [{"prefers": 0}, {"prefers": 0}]
    assert kinds == {"asked": 3, "answered": 2, "amended": 1}


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2], ids=["taps", "clicks"])
@pytest.mark.parametrize("apart", [80, 300])
def test_a_double_click_on_undo_counts_once(browser, link, apart, count):
    visitor = Visitor(browser, link_to(link)).start()
    page = visitor.press("ArrowLeft").sees(2).page
    box = page.locator("#undo").bounding_box()
    place = box["x"] + 20, box["y"] + box["height"] / 2
    page.mouse.click(*place)
    page.wait_for_timeout(apart)
    page.mouse.click(*place, click_count=count)
    page.wait_for_timeout(1000)
    assert page.inner_text("#undo") == "Keep my answer"
    visitor.sees(1)
    page.mouse.click(*place)  # and a click of its own counts
    visitor.sees(2)
    assert page.inner_text("#undo") == "Undo"


@pytest.mark.slow
def test_two_tabs_answer_each_question_once(browser, link, tmp_path):
    visitor = Visitor(browser, link_to(link)).start()
    other = visitor.tab()
    other.click("#begin:enabled")
    visitor.sees(1, other)
    visitor.press("ArrowLeft").sees(2)
    visitor.sees(2, other)  # it has heard of the answer, and moved on
    # a tab that has not heard: an old answer to the first question is not taken, and says so
    moment = other.evaluate(
        """async () => {
            const { post } = await import("/static/participant/server.js");
            const first = await post("answer", {question: 0, answer: 1});
            const same = await post("answer", {question: 0, answer: 0});
            const none = await post("answer", {question: 77, answer: 0});
            return [first, same, none].map((one) => [one.noted, one.answered, one.shown.id]);
        }"""
    )
    assert moment == [[False, 1, 1], [True, 1, 1], [False, 1, 1]]
    entries, kinds = record(tmp_path)
    assert entries[0].answer.to_json() == {"prefers": 0}
    assert kinds == {"asked": 2, "answered": 1}


@pytest.mark.slow
def test_back_forward_and_reload_lose_nothing(browser, link, tmp_path):
    visitor = Visitor(browser, link_to(link)).start()
    page = visitor.page
    before = page.inner_text(".options")
    page.reload()
    page.click("#begin:enabled")  # nothing is answered yet
    visitor.sees(1)
    assert page.inner_text(".options") == before
    visitor.press("ArrowLeft").sees(2)
    before = page.inner_text(".options")
    page.goto("about:blank")
    page.go_back()
    visitor.sees(2)
    assert page.inner_text(".options") == before
    page.reload()
    visitor.sees(2)
    assert page.inner_text(".options") == before
    visitor.press("ArrowLeft").sees(3)
    assert record(tmp_path)[1] == {"asked": 3, "answered": 2}
    assert visitor.complaints == []


@pytest.mark.slow
def test_ten_seconds_without_a_connection(browser, link, tmp_path):
    visitor = Visitor(browser, link_to(link)).start()
    visitor.context.set_offline(True)
    visitor.press("ArrowRight").page.wait_for_selector("text=Your answer is kept")
    visitor.press("ArrowLeft")  # too late to change one's mind
    time.sleep(10)
    assert record(tmp_path)[1] == {"asked": 1}
    visitor.context.set_offline(False)
    visitor.sees(2)
    visitor.page.wait_for_selector("text=Nothing was lost")
    entries, kinds = record(tmp_path)
    assert entries[0].answer.to_json() == {"prefers": 1}
    assert entries[0].seconds < 5  # not the time without a connection
    assert kinds == {"asked": 2, "answered": 1}
    assert visitor.complaints == []


@pytest.mark.slow
def test_an_answer_survives_a_closed_page_without_a_connection(browser, link, tmp_path):
    visitor = Visitor(browser, link_to(link)).start()
    visitor.context.set_offline(True)
    visitor.press("ArrowRight").page.wait_for_selector("text=Your answer is kept")
    visitor.page.close()
    visitor.context.set_offline(False)
    visitor.page = visitor.tab()
    visitor.sees(2)
    entries, kinds = record(tmp_path)
    assert entries[0].answer.to_json() == {"prefers": 1}
    assert kinds == {"asked": 2, "answered": 1}


@pytest.mark.slow
def test_a_lost_response_is_asked_for_again(browser, link, tmp_path):
    visitor = Visitor(browser, link_to(link)).start()
    lost = []

    def lose(route):
        if not lost:
            lost.append(route.fetch())  # the server has it; the browser hears nothing
            route.abort()
        else:
            route.continue_()

    visitor.page.route("**/sitting/answer", lose)
    visitor.press("ArrowRight").sees(2)
    assert len(lost) == 1
    assert record(tmp_path)[1] == {"asked": 2, "answered": 1}


@pytest.mark.slow
def test_a_server_that_is_killed_and_comes_back(browser, tmp_path):
    (tmp_path / "hall.toml").write_text(DUEL + PAGE.format(4))
    with serving(tmp_path, "hall.toml") as server:
        visitor = Visitor(browser, link_to(server.link, participant="Ann")).start()
        visitor.press("ArrowLeft").sees(2)
        server.kill()
        visitor.press("ArrowRight").page.wait_for_selector("text=Your answer is kept")
        again = Process(tmp_path, "hall.toml", "--port", server.port)
        try:
            visitor.sees(3).press("ArrowLeft").sees(4).press("ArrowLeft").code()
        finally:
            again.kill()
    entries, kinds = record(tmp_path)
    assert [entry.answer.to_json()["prefers"] for entry in entries] == [0, 1, 0, 0]
    assert kinds == {"asked": 4, "answered": 4}
    assert visitor.complaints == []


def paused(browser, link):
    """The owner of a study that is paused, and somebody who has answered its first question."""
    client = aw.Client(link, "hall")
    visitor = Visitor(browser, link_to(link)).start()
    client._post("pause", {"paused": True})
    visitor.press("ArrowLeft").page.wait_for_selector("#paused:not([hidden])")
    return client, visitor


@pytest.mark.slow
def test_a_study_that_is_paused_goes_on(browser, link, tmp_path):
    client, visitor = paused(browser, link)
    client._post("pause", {"paused": False})
    visitor.page.click("#retry")
    visitor.sees(2)
    assert record(tmp_path)[1] == {"asked": 2, "answered": 1}


@pytest.mark.slow
def test_a_page_notices_that_a_paused_study_goes_on(browser, link, tmp_path):
    client, visitor = paused(browser, link)
    asked = []
    visitor.page.on("request", lambda request: asked.append(request.url))
    visitor.page.wait_for_timeout(11_000)
    assert len(asked) == 2  # gently
    client._post("pause", {"paused": False})
    visitor.sees(2)
    visitor.page.wait_for_timeout(6000)
    assert len(asked) == 3
    assert record(tmp_path)[1] == {"asked": 2, "answered": 1}
    assert visitor.complaints == []


@pytest.mark.slow
def test_a_break_ends_with_the_question_that_is_next_by_then(browser, tmp_path):
    (tmp_path / "hall.toml").write_text(DUEL + PAGE.format(9) + "break = 2\n")
    with in_thread(Settings(str(tmp_path / "askwise.db"), (str(tmp_path / "hall.toml"),))) as link:
        visitor = Visitor(browser, link_to(link)).start()
        other = visitor.tab()
        other.click("#begin:enabled")
        visitor.sees(1, other)
        visitor.press("ArrowLeft").sees(2).sees(2, other).press("ArrowLeft")
        for page in (visitor.page, other):
            page.wait_for_selector("#break:not([hidden])")
        visitor.page.click("#continue")
        visitor.sees(3).press("ArrowLeft").sees(4)
        other.click("#continue")
        visitor.sees(4, other)
        assert other.inner_text(".options") == visitor.page.inner_text(".options")
    assert record(tmp_path)[1] == {"asked": 4, "answered": 3}


@pytest.mark.slow
def test_twenty_participants_at_once(browser, tmp_path):
    (tmp_path / "hall.toml").write_text(
        DUEL.replace("seed = 3", 'seed = 3\nparticipants = "separate"') + PAGE.format(4)
    )
    with serving(tmp_path, "hall.toml") as server:
        link = link_to(server.link)
        visitors = [Visitor(browser, link) for _ in range(20)]
        for visitor in visitors:
            visitor.page.click("#begin:enabled")
        for number in range(1, 5):
            for visitor in visitors:
                visitor.page.wait_for_selector(f".question[data-ready='{number}']")
            time.sleep(0.3)
            for visitor in visitors:  # all of them within a moment
                visitor.press("ArrowLeft")
        codes = {visitor.code() for visitor in visitors}
        assert [visitor.complaints for visitor in visitors] == [[]] * 20
    assert len(codes) == 20
    entries, kinds = record(tmp_path)
    each = Counter(entry.participant for entry in entries if entry.status == "answered")
    assert sorted(each.values()) == [4] * 20
    assert kinds == {"asked": 80, "answered": 80}
