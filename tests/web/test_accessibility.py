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
