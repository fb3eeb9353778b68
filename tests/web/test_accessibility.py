"""axe-core finds nothing wrong with any state of the participants' page, light or dark, desk or phone."""

import pytest

import axe
from askwise.web.settings import Settings
from browser import DESK, PHONE, Visitor, chromium, link_to
from served import DUEL, in_thread

PAGE = """
[page]
answers = 3
break = 2
consent = "You may stop at any time."
reveal = true
"""
STIMULI = {
    "values": "",
    "text": '[stimulus]\ntext = "{gain} {mode}"\n',
    "image": '[stimulus]\nhtml = \'<svg xmlns="http://www.w3.org/2000/svg"><circle r="{gain}"/></svg>\'\n',
    "page": "[stimulus]\nhtml = '<html lang=\"en\"><title>T</title><main><h1>{gain}</h1></main></html>'\n",
}
WAYS = {"ranking": "batch", "worst": "batch", "winner": "batch"}
LOOKS = [{**size, "color_scheme": scheme} for size in (DESK, PHONE) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def browser():
    with chromium() as one:
        yield one


@pytest.fixture
def serve(tmp_path):
    def serve(text):
        (tmp_path / "hall.toml").write_text(text)
        return in_thread(Settings(str(tmp_path / "askwise.db"), (str(tmp_path / "hall.toml"),)))

    return serve


def check(visitor):
    assert axe.violations(visitor.page) == []
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS, ids=["desk", "desk-dark", "phone", "phone-dark"])
@pytest.mark.parametrize("stimulus", STIMULI)
def test_every_state_of_a_duel(browser, serve, look, stimulus):
    look = {**look, "bypass_csp": True, "reduced_motion": "reduce"}
    with serve(DUEL + PAGE + STIMULI[stimulus]) as link:
        visitor = Visitor(browser, link_to(link), **look)
        visitor.page.wait_for_selector("#begin:enabled")
        check(visitor)
        visitor.start()
        check(visitor)
        visitor.press("ArrowLeft").sees(2)
        visitor.page.click("#undo")
        visitor.page.wait_for_selector("text=replaces the one you gave")
        check(visitor)
        visitor.sees(1).press("ArrowLeft").sees(2)
        visitor.context.set_offline(True)
        visitor.press("ArrowLeft").page.wait_for_selector("text=Your answer is kept")
        check(visitor)
        visitor.context.set_offline(False)
        visitor.page.wait_for_selector("#break:not([hidden])")
        check(visitor)
        visitor.page.click("#continue")
        visitor.sees(3).press("ArrowLeft").code()
        check(visitor)


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS, ids=["desk", "desk-dark", "phone", "phone-dark"])
@pytest.mark.parametrize("way", [*WAYS, "yes_no"])
def test_every_way_to_answer(browser, serve, look, way):
    kind = 'feedback = "binary"' if way == "yes_no" else 'feedback = "batch"\nsize = 4'
    page = "[page]\nanswers = 2\n" if way == "yes_no" else f'[page]\nanswer = "{way}"\n'
    with serve(DUEL.replace('name = "hall"', f'name = "hall"\n{kind}') + page) as link:
        visitor = Visitor(browser, link_to(link), bypass_csp=True, **look).start()
        check(visitor)


@pytest.mark.slow
@pytest.mark.parametrize("width", [320, 360, 1200])
@pytest.mark.parametrize("planned", [None, 30])
def test_long_words_wrap_in_the_bar(browser, serve, width, planned):
    page = (f"answers = {planned}\n" if planned else "") + (
        '[page.words]\nundo = "Rückgängig machen"\nanswered = "{answered} beantwortet"\n'
        'progress = "{answered} von {planned} beantwortet"\nfinish = "Hier beenden"\n'
    )
    with serve(DUEL + "[page]\n" + page) as link:
        visitor = Visitor(browser, link_to(link), viewport={"width": width, "height": 740}).start()
        visitor.press("ArrowLeft").sees(2)
        assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shown = ("undo", "count") if planned else ("undo", "count", "finish")
        boxes = [visitor.page.locator(f"#{one}").bounding_box() for one in shown]
        for index, one in enumerate(boxes):
            assert one["x"] >= 0
            assert one["x"] + one["width"] <= width
            for other in boxes[:index]:
                beside = other["x"] + other["width"] <= one["x"] or one["x"] + one["width"] <= other["x"]
                assert beside or other["y"] + other["height"] <= one["y"]


@pytest.mark.slow
@pytest.mark.parametrize("width", [700, 1200])
def test_names_keep_whole_words_beside_long_values(browser, serve, width):
    long = "It sounds as if one were in a hall with many people, most of whom talk at the same time"
    values = f'["{long}", "{long}, loudly"]'
    text = DUEL.replace('["soft", "hard"]', values).replace("space.mode", "space.impression")
    with serve(text) as link:
        visitor = Visitor(browser, link_to(link), viewport={"width": width, "height": 800}).start()
        name = visitor.page.locator("dt", has_text="impression").first.bounding_box()
        assert name["height"] < 40  # one line
        assert visitor.page.locator("dl").first.evaluate("one => one.scrollWidth <= one.clientWidth")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("way", ["better", "ranking"])
def test_the_ring_of_a_focused_button_is_not_cut_off(browser, serve, way, scheme):
    ring = """one => {
        const looks = getComputedStyle(one);
        const out = parseFloat(looks.outlineOffset) + parseFloat(looks.outlineWidth);
        const box = one.getBoundingClientRect(), card = one.closest(".card").getBoundingClientRect();
        const room = Math.min(box.left - card.left, card.right - box.right, card.bottom - box.bottom);
        return [looks.outlineStyle, room - out];
    }"""
    text = DUEL
    if way == "ranking":
        text = text.replace('name = "hall"', 'name = "hall"\nfeedback = "batch"\nsize = 3')
        text += '[page]\nanswer = "ranking"\n'
    with serve(text) as link:
        visitor = Visitor(browser, link_to(link), **DESK, color_scheme=scheme).start().press("Tab")
        style, room = visitor.page.locator(".card button:focus").evaluate(ring)
        assert style == "solid"
        assert room >= 0
