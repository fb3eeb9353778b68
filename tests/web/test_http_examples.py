"""Programs in other languages use the API: each is run against a server, as far as a machine allows."""

import functools
import http.server
import importlib.util
import shutil
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

import askwise as aw
from askwise.web.settings import Settings
from served import in_thread

EXAMPLES = Path(__file__).parents[2] / "examples"
GRATINGS = """
[study]
name = "gratings"
[space.contrast]
type = "real"
low = 0.01
high = 1
log = true
[space.cycles]
type = "real"
low = 0.5
high = 16
log = true
"""


def link_of(server: str, study: str, participant: str = "P1") -> str:
    made = aw.Client(server, study)._post("links", {"participant": participant})
    return server.partition("/?token=")[0] + made["path"]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "script"), [("Rscript", "study.R"), ("octave-cli", "study.m")])
def test_r_and_octave_answer_twenty_duels(settings, program, script):
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    if (
        program == "Rscript"
        and subprocess.run([program, "-e", "library(httr2)"], capture_output=True).returncode
    ):
        pytest.skip("needs the package httr2")
    with in_thread(settings) as server:
        command = [program, EXAMPLES / "http" / script, link_of(server, "hall")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout.strip()) == (0, "Answers: 20"), done.stderr
        study = aw.Client(server, "hall")
        assert study.answers_by_participant() == {"P1": 20}
        assert abs(study.best().params["gain"] - 25) < 8


def fake_psychopy(keys: list[str]) -> dict[str, types.ModuleType]:
    """As much of PsychoPy as the example uses; the participant presses these keys."""
    pressed = iter(keys)

    class Anything:
        def __init__(self, *_: object, **__: object) -> None:
            self.drawn = 0

        def __getattr__(self, name: str) -> object:
            return lambda *_, **__: None

    package = types.ModuleType("psychopy")
    parts = {
        "core": {"Clock": Anything, "wait": lambda seconds: None},
        "event": {"waitKeys": lambda keyList, timeStamped: [(next(pressed), 0.5)]},
        "monitors": {"Monitor": Anything},
        "visual": {"Window": Anything, "GratingStim": Anything},
    }
    for name, content in parts.items():
        module = types.ModuleType(f"psychopy.{name}")
        vars(module).update(content)
        setattr(package, name, module)
    return {"psychopy": package, **{f"psychopy.{name}": getattr(package, name) for name in parts}}


def test_psychopy_answers_duels_of_its_participant(tmp_path, monkeypatch):
    """With a stand-in for PsychoPy: what it shows is not tested."""
    (tmp_path / "gratings.toml").write_text(GRATINGS)
    for name, module in fake_psychopy(["left", "right", "down", "escape"]).items():
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.spec_from_file_location("duel", EXAMPLES / "http" / "psychopy_duel.py")
    duel = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(duel)
    with in_thread(Settings(str(tmp_path / "a.db"), (str(tmp_path / "gratings.toml"),))) as server:
        duel.run(link_of(server, "gratings"))
        answered = aw.Client(server, "gratings").history()
    assert [one.status for one in answered] == ["answered"] * 3 + ["open"]
    assert [one.answer.to_json() for one in answered[:3]] == [
        {"prefers": 0},
        {"prefers": 1},
        {"undecided": True},
    ]
    assert [one.seconds for one in answered[:3]] == [0.5] * 3


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of the jsPsych example with jsPsych beside it."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLES / "jspsych", folder, dirs_exist_ok=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, "jspsych@8"]
    if subprocess.run(command, cwd=folder, capture_output=True, timeout=300).returncode:
        pytest.skip("jspsych cannot be installed")
    handler = functools.partial(_Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.slow
def test_jspsych_runs_the_study_in_a_browser_on_another_site(site, settings, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("needs chromium")
    shared = Settings(settings.storage, settings.files, origins=(site,))
    with in_thread(shared) as server, playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page, complaints = opened.new_page(), []
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.goto(f"{site}/index.html#{link_of(server, 'hall')}")
        study = aw.Client(server, "hall")

        def click(number: int, button: int) -> None:
            page.wait_for_function("n => window.jsPsych.data.get().count() === n", arg=number)
            page.wait_for_selector(".askwise button:enabled")
            page.locator(".askwise button").nth(button).click()

        for number in range(3):
            click(number, number)  # A, B, can't decide
        page.wait_for_function("window.jsPsych.data.get().count() === 3")
        page.wait_for_selector(".askwise button:enabled")
        page.screenshot(path=tmp_path / "jspsych.png")
        shown = page.inner_text(".askwise")
        kept = page.evaluate("window.jsPsych.data.get().values()")
        page.reload()  # goes on with the open question
        for number in range(20):
            click(number, 1)
        page.get_by_text("Thank you.").wait_for()
        opened.close()
        history = study.history()
    assert complaints == []
    assert shown.startswith("Which sounds better?")
    assert "Can't decide" in shown
    assert [one.answer.to_json() for one in history[:3]] == [
        {"prefers": 0},
        {"prefers": 1},
        {"undecided": True},
    ]
    assert [one["question"] for one in kept] == [0, 1, 2]
    assert [one["options"] for one in kept] == [list(entry.options) for entry in history[:3]]
    assert all(
        abs(one["rt"] / 1000 - entry.seconds) < 0.002 for one, entry in zip(kept, history, strict=False)
    )
    assert [one.status for one in history] == ["answered"] * 23 + ["open"]
    assert {one.participant for one in history} == {"P1"}
