"""Writes docs/web/experimenter-*.png: the experimenter's pages with simulated people; needs Chromium.

Run with ``make screenshots`` after a change of what they look like.
"""

import io
import math
import random
import re
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import askwise as aw
from askwise.study import load
from askwise.web.app import create
from askwise.web.settings import Settings

OUT = Path(__file__).parent / "web"
CHROMIUM = "/usr/bin/chromium"
STUDY = """
[study]
name = "hearing aid"
question = "Which sounds clearer?"
seed = 5
repeats = 0.1
[space.gain]
type = "real"
low = 0
high = 40
unit = "dB"
[space.cutoff]
type = "real"
low = 100
high = 10000
log = true
unit = "Hz"
[space.bands]
type = "integer"
low = 1
high = 8
[space.mode]
type = "choice"
values = ["soft", "hard"]
"""
THRESHOLD = """
[study]
name = "contrast threshold"
question = "Did you see it?"
feedback = "binary"
[space.contrast]
type = "real"
low = 0.01
high = 1
log = true
"""
REFERENCE = "?reference.gain=15&reference.cutoff=1000&reference.bands=4&reference.mode=hard"
SHOTS: list[tuple[str, str, dict[str, Any], int]] = [
    ("overview", f"studies/hearing-aid{REFERENCE}", {}, 2700),
    ("overview-top", f"studies/hearing-aid{REFERENCE}", {}, 787),
    ("overview-dark", f"studies/hearing-aid{REFERENCE}", {"color_scheme": "dark"}, 1350),
    ("overview-phone", "studies/hearing-aid", {"viewport": {"width": 360, "height": 800}}, 1500),
    ("new", "new", {}, 1000),
    ("answers", "studies/hearing-aid/answers", {}, 800),
    ("links", "studies/hearing-aid/links", {}, 760),
    ("studies", "", {}, 420),
]
"""Name, address, looks and height of every picture."""


def utility(setting: dict[str, Any]) -> float:
    """What the simulated people like."""
    if "contrast" in setting:
        return 3 * math.log10(setting["contrast"] / 0.1)
    away = (setting["gain"] - 24) / 9, math.log(setting["cutoff"] / 1800) / 1.1, (setting["bands"] - 5) / 3
    return 2 * ((setting["mode"] == "soft") * 0.5 - sum(part**2 for part in away))


def answered(place: str, text: str, count: int, people: list[str]) -> None:
    """A study with the answers of simulated people."""
    config = load(text)
    with aw.Study.of(config.plan(), place, config.name) as study:
        source = random.Random(1)
        for number in range(count):
            question = study.ask(people[number % len(people)])
            values = [utility(option) for option in question.options]
            lead = values[-1] - (values[0] if len(values) > 1 else 0) + source.gauss(0, 1)
            answer: Any = lead > 0 if len(values) == 1 else int(lead > 0) if abs(lead) > 0.2 else None
            study.tell(question, answer, seconds=round(source.lognormvariate(1.2, 0.4), 1))


def shoot(browser: Browser, server: str, name: str, looks: dict[str, Any], path: str, height: int) -> None:
    """One picture, with few colours, so that it is small."""
    looks = {"viewport": {"width": 1180, "height": 900}, **looks}
    page = browser.new_context(**looks).new_page()
    page.goto(server)
    page.goto(re.sub(r"/\?.*", f"/{path}", server))
    if "hearing" in path and "/" not in path.partition("/")[2]:
        page.wait_for_selector("#desk[data-shown]", timeout=60_000)
    if path == "new":
        for field, value in (("name", "hearing aid 2"), ("0.name", "gain"), ("0.low", "0"), ("0.high", "4O")):
            page.fill(f"[name='{field}']", value)
        page.wait_for_selector("[aria-invalid]")
    if "answers" in path:
        page.click("#q57 summary")
    page.wait_for_load_state("load")
    page.wait_for_timeout(1500)
    taken = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
    cut = taken.crop((0, 0, taken.width, min(taken.height, height)))
    cut.quantize(256, kmeans=2).save(OUT / f"experimenter-{name}.png", optimize=True)
    page.context.close()


def main() -> None:
    """All pictures."""
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        place = f"sqlite:///{folder}/askwise.db"
        files: list[str] = []
        for text, count, people in ((STUDY, 60, ["Ann", "Bo", "Chi"]), (THRESHOLD, 20, ["Dee"])):
            answered(place, text, count, people)
            files.append(f"{folder}/{len(files)}.toml")
            Path(files[-1]).write_text(text)
        app = create(Settings(place, tuple(files), largest=2**20))
        for name in ("Ann", None):
            app.state.gate.file.add_link("hearing aid", name)
        app.state.studies.pause(next(one for one in app.state.studies if "contrast" in one.name), True)
        server = uvicorn.Server(uvicorn.Config(app, port=8000, log_config=None, timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        link = f"http://127.0.0.1:8000/?token={app.state.gate.file.kept.token}"
        ids = {served.name: served.id for served in app.state.studies}
        with sync_playwright() as driver:
            options = ["--headless", "--no-sandbox", "--disable-gpu"]
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=options)
            for name, path, looks, height in SHOTS:
                shoot(browser, link, name, looks, path.replace("hearing-aid", ids["hearing aid"]), height)
            browser.close()
        server.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
