"""Whole studies in a real browser, by keyboard, touch and drag; the record is as it should be."""

import math
import struct
import wave
from collections import Counter

import pytest

import askwise as aw
from askwise.web.settings import Settings
from browser import PHONE, Visitor, chromium, link_to
from served import DUEL, in_thread, serving

PAGE = """
[page]
title = "Sounds"
answers = 15
break = 6
"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as one:
        yield one


@pytest.fixture
def served(tmp_path):
    """Serve a study file; the link of the experimenter."""

    def serve(text, **more):
        (tmp_path / "hall.toml").write_text(text)
        return in_thread(Settings(str(tmp_path / "askwise.db"), (str(tmp_path / "hall.toml"),), **more))

    return serve


def record(tmp_path):
    """The questions of the study and its events, by kind."""
    with aw.Study.open(tmp_path / "askwise.db", "hall") as study:
        return study.history(), Counter(event.kind for event in study.events())


def test_three_duels_by_keyboard_with_an_undo(browser, served, tmp_path):
    text = DUEL + PAGE.replace("15", "3").replace("break = 6", "")
    with served(text) as link:
        visitor = Visitor(browser, link_to(link, participant="Ann")).start()
        assert "0 of 3" in visitor.page.inner_text("#bar")
        visitor.press("ArrowLeft").sees(2).press("b").sees(3)
        visitor.press("Backspace").page.wait_for_selector("text=replaces the one you gave")
        visitor.sees(2).press("ArrowLeft").sees(3).press("ArrowDown")
        code = visitor.code()
        again = Visitor(browser, visitor.address)
        assert again.code() == code
        assert visitor.complaints == again.complaints == []
    entries, kinds = record(tmp_path)
    assert [entry.answer.to_json() for entry in entries] == [
        {"prefers": 0},
        {"prefers": 0},
        {"undecided": True},
    ]
    assert {entry.participant for entry in entries} == {"Ann"}
    assert all(0.2 < entry.seconds < 30 for entry in entries)
    assert kinds == {"asked": 3, "answered": 3, "amended": 1}


@pytest.mark.slow
def test_fifteen_duels_by_keyboard_with_breaks(browser, served, tmp_path):
    with served(DUEL + PAGE) as link:
        visitor = Visitor(browser, link_to(link)).start()
        for number in range(1, 16):
            visitor.sees(number).press(["ArrowLeft", "ArrowRight", "a", "b"][number % 4])
            if number in (6, 12):
                visitor.page.wait_for_selector("#break:not([hidden])")
                assert f"{number} questions" in visitor.page.inner_text("#break-text")
                visitor.page.keyboard.press("Tab")
                visitor.press("Enter")
        assert visitor.code()
        assert visitor.complaints == []
    entries, kinds = record(tmp_path)
    chosen = [entry.answer.to_json()["prefers"] for entry in entries]
    assert chosen == [{1: 1, 2: 0, 3: 1, 0: 0}[number % 4] for number in range(1, 16)]
    assert kinds == {"asked": 15, "answered": 15}


@pytest.mark.slow
def test_fifteen_duels_by_touch_on_a_phone(browser, served, tmp_path):
    with served(DUEL + PAGE.replace("break = 6", "")) as link:
        visitor = Visitor(browser, link_to(link), **PHONE)
        visitor.page.tap("#begin:enabled")
        for number in range(1, 16):
            visitor.sees(number)
            width = visitor.page.evaluate("document.documentElement.scrollWidth")
            assert width <= 360  # nothing sticks out
            sizes = visitor.page.eval_on_selector_all(
                ".question button", "all => all.map(one => one.getBoundingClientRect().height)"
            )
            assert min(sizes) >= 44
            if number % 5 == 0:
                visitor.page.tap("text=Can't decide")
            else:
                visitor.page.locator(".card").nth(number % 2).tap()
        visitor.code()
        assert visitor.complaints == []
    entries, kinds = record(tmp_path)
    answers = [entry.answer.to_json() for entry in entries]
    assert answers == [
        {"undecided": True} if number % 5 == 0 else {"prefers": number % 2} for number in range(1, 16)
    ]
    assert kinds == {"asked": 15, "answered": 15}


BATCH = DUEL.replace('name = "hall"', 'name = "hall"\nfeedback = "batch"\nsize = 4')


@pytest.mark.slow
def test_a_ranking_by_drag_buttons_and_keys(browser, served, tmp_path):
    with served(BATCH + '[page]\nanswer = "ranking"\nanswers = 3\n') as link:
        visitor = Visitor(browser, link_to(link)).start()
        page = visitor.page
        first, last = (page.locator(".ranking .card").nth(place).bounding_box() for place in (0, 3))
        page.mouse.move(first["x"] + 80, first["y"] + first["height"] / 2)
        page.mouse.down()
        page.mouse.move(last["x"] + 80, last["y"] + last["height"] / 2 + 5, steps=12)
        page.mouse.up()
        page.click("text=This is my order")
        visitor.sees(2)
        page.click("[aria-label='Move D up']")
        page.click("[aria-label='Move D up']")
        assert page.inner_text("#spoken") == "D is now at place 2 of 4"
        page.click("text=This is my order")
        visitor.sees(3)
        page.focus("[aria-label='Move B up']")
        visitor.press("ArrowUp")
        page.click("text=This is my order")
        visitor.code()
        assert visitor.complaints == []
    entries, _ = record(tmp_path)
    assert [entry.answer.to_json()["ranking"] for entry in entries] == [
        [1, 2, 3],  # the last of four follows
        [0, 3, 1],
        [1, 0, 2],
    ]


def touch(page, x, start, end):
    """Put a finger on the page, move it up or down and lift it."""
    finger = page.context.new_cdp_session(page)
    for step in range(21):
        kind = "touchMove" if step else "touchStart"
        point = {"x": x, "y": start + (end - start) * step / 20}
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        page.wait_for_timeout(20)
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(300)


@pytest.mark.slow
def test_a_finger_on_a_ranking_scrolls_and_at_the_handle_drags(browser, served):
    def order():
        labels = page.eval_on_selector_all(".ranking .card", "all => all.map(one => one.dataset.label)")
        return "".join(labels)

    def middle(label):
        box = page.locator(f".card[data-label={label}] .handle").bounding_box()
        return box["y"] + box["height"] / 2

    with served(BATCH.replace("size = 4", "size = 6") + '[page]\nanswer = "ranking"\n') as link:
        visitor = Visitor(browser, link_to(link), **{**PHONE, "viewport": {"width": 360, "height": 560}})
        page = visitor.start().page
        touch(page, 180, 500, 150)
        assert page.evaluate("scrollY") > 100
        assert order() == "ABCDEF"
        page.evaluate("scrollTo(0, 0)")
        handle = page.locator(".handle").first.bounding_box()
        assert handle["width"] >= 44
        touch(page, handle["x"] + 20, middle("A"), middle("B") + 15)
        assert order() == "BACDEF"
        assert page.inner_text("#spoken") == "A is now at place 2 of 6"
        finger = page.context.new_cdp_session(page)  # what is held at the edge of the window scrolls it
        for kind, y in (("touchStart", middle("B")), ("touchMove", 300), ("touchMove", 550)):
            point = {"x": handle["x"] + 20, "y": y}
            finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        page.wait_for_timeout(3000)
        last = page.locator(".ends").last.bounding_box()
        assert 400 < last["y"] < 560  # as far as the list goes
        finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        page.wait_for_timeout(300)
        assert order() == "ACDEFB"
        assert visitor.complaints == []


@pytest.mark.slow
def test_the_arrow_down_scrolls_where_there_is_something_to_scroll_to(browser, served, tmp_path):
    with served(DUEL + "[page]\nanswers = 9\n") as link:
        visitor = Visitor(browser, link_to(link), viewport={"width": 800, "height": 300}).start()
        page = visitor.page
        assert page.locator(".down kbd").is_hidden()
        visitor.press("ArrowDown")
        page.wait_for_timeout(1000)
        assert page.evaluate("scrollY") > 0
        assert record(tmp_path)[1] == {"asked": 1}
        page.set_viewport_size({"width": 800, "height": 900})
        page.locator(".down kbd").wait_for(state="visible")
        visitor.press("ArrowDown").sees(2)
    assert record(tmp_path)[0][0].answer.to_json() == {"undecided": True}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "words", "told"), [("winner", "C is best", "ranking"), ("worst", "C is worst", "worst")]
)
def test_the_best_or_the_worst_of_four(browser, served, tmp_path, way, words, told):
    with served(BATCH + f'[page]\nanswer = "{way}"\nanswers = 2\n') as link:
        visitor = Visitor(browser, link_to(link)).start()
        visitor.page.click(f"text={words}")
        visitor.sees(2).press("d").code()
    entries, _ = record(tmp_path)
    given = [entry.answer.to_json()[told] for entry in entries]
    assert given == ([[2], [3]] if told == "ranking" else [2, 3])


@pytest.mark.slow
def test_yes_and_no_in_other_words(browser, served, tmp_path):
    text = DUEL.replace('name = "hall"', 'name = "hall"\nfeedback = "binary"') + (
        '[page]\nanswers = 3\nundecided = false\nlanguage = "de"\nconsent = "Freiwillig."\n'
        '[page.words]\nyes = "Ja"\nno = "Nein"\nagree = "Einverstanden"\n'
        'progress = "{answered} von {planned}"\n'
    )
    with served(text) as link:
        visitor = Visitor(browser, link_to(link))
        page = visitor.page
        assert page.get_attribute("html", "lang") == "de"
        assert record(tmp_path)[1] == {}  # nothing before consent
        page.click("text=Einverstanden")
        visitor.sees(1)
        assert page.inner_text("#count") == "0 von 3"
        assert page.locator("text=Can't decide").count() == 0
        page.click("text=Ja")
        visitor.sees(2).press("n").sees(3).press("ArrowDown").press("ArrowRight").code()
    entries, _ = record(tmp_path)
    assert [entry.answer.to_json()["yes"] for entry in entries] == [True, False, True]


def write_tone(path, pitch):
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        samples = (int(9000 * math.sin(2 * math.pi * pitch * k / 8000)) for k in range(6400))
        out.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))


TONES = """
[study]
name = "hall"
question = "Which sounds better?"
[space.pitch]
type = "ordinal"
values = [220, 330, 440]
[page]
answers = 3
[stimulus]
file = "tones/{pitch}.wav"
"""


@pytest.mark.slow
def test_sounds_are_played_one_at_a_time_and_again(browser, served, tmp_path):
    (tmp_path / "tones").mkdir()
    for pitch in (220, 330, 440):
        write_tone(tmp_path / "tones" / f"{pitch}.wav", pitch)
    with served(TONES) as link:
        visitor = Visitor(browser, link_to(link)).start()
        page = visitor.page
        assert page.eval_on_selector_all("audio", "all => all.every(one => one.readyState === 4)")
        assert "pitch" not in page.content()  # nothing tells which is which
        for _ in range(2):
            page.click("[aria-label='Play A']")
            page.wait_for_selector("text=Playing A")
            visitor.press("2")
            page.wait_for_selector("text=Playing B")
            playing = page.eval_on_selector_all("audio", "all => all.map(one => !one.paused)")
            assert playing == [False, True]
            page.wait_for_selector("text=Play B")
        visitor.press("ArrowRight").sees(2).press("a").sees(3).press("b").code()
        assert visitor.complaints == []
    assert record(tmp_path)[1] == {"asked": 3, "answered": 3}


@pytest.mark.slow
def test_pages_of_html_cannot_reach_ours(browser, served, tmp_path):
    text = DUEL.replace('values = ["soft", "hard"]', 'values = ["<b>soft</b>", "hard"]') + (
        "[page]\nanswers = 2\n[stimulus]\nhtml = '''<style>p { color: teal }</style><p id=p>{mode} {gain}</p>"
        "<script>try { top.document.title = 'owned'; } catch { p.append(' kept out') }"
        "fetch('/').catch(() => p.append(' alone'))</script>'''\n"
    )
    with served(text) as link:
        visitor = Visitor(browser, link_to(link)).start()
        visitor.complaints.clear()  # the policy says what it has blocked
        page = visitor.page
        frames = [one for one in page.frames if one is not page.main_frame]
        assert len(frames) == 2
        for frame in frames:
            frame.wait_for_selector("text=kept out alone")
            assert frame.locator("b").count() == 0  # values are escaped
            assert (
                frame.evaluate("getComputedStyle(document.getElementById('p')).color") == "rgb(0, 128, 128)"
            )
        assert page.title() == "Which sounds better?"
        visitor.press("ArrowLeft").sees(2)


@pytest.mark.slow
@pytest.mark.parametrize("used", [False, True])
def test_a_click_into_a_frame_takes_the_keys_only_if_it_has_a_use_for_them(browser, served, tmp_path, used):
    piece = "<input id=i>" if used else "<i>{mode}</i>"
    with served(DUEL + f"[page]\nanswers = 9\n[stimulus]\nhtml = '<p>{{gain}}</p>{piece}'\n") as link:
        visitor = Visitor(browser, link_to(link)).start()
        page = visitor.page
        page.frames[1].click("input" if used else "p")
        page.wait_for_timeout(300)
        assert page.evaluate("document.activeElement.tagName") == ("IFRAME" if used else "H1")
        if used:
            page.keyboard.type("b")
            assert page.frames[1].input_value("input") == "b"
            page.focus(".question h1")
        else:
            page.keyboard.press("Tab")  # who comes by Tab is left there, and gets past it
            seen = [page.evaluate("document.activeElement.tagName")]
            for _ in range(3):
                page.keyboard.press("Tab")
                page.wait_for_timeout(50)
                seen.append(page.evaluate("document.activeElement.className"))
            assert "quiet down" in seen
        assert record(tmp_path)[1] == {"asked": 1}
        visitor.press("ArrowLeft").sees(2)
        assert visitor.complaints == []


@pytest.mark.slow
def test_the_demonstration_needs_no_files_and_ends_with_a_flower(browser, tmp_path):
    with serving(tmp_path, "--demo") as server:
        visitor = Visitor(browser, server.link).start()
        for number in range(1, 21):
            visitor.sees(number).press("ArrowRight")
            if number == 10:
                visitor.page.click("#continue")
        visitor.code()
        visitor.page.wait_for_selector("#reveal img")
        assert visitor.page.evaluate("document.querySelector('#reveal img').naturalWidth") > 0
        assert visitor.complaints == []
        server.end()
    assert list(tmp_path.iterdir()) == []
