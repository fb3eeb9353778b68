"""The pictures of docs/web.md: the participants' page in a real browser.  Run with ``make screenshots``."""

import io
import json
import math
import struct
import subprocess
import sys
import tempfile
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import askwise as aw

OUT = Path(__file__).parent / "web"
MOST = 78_000  # bytes of a picture
DESK: dict[str, Any] = {"viewport": {"width": 1200, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
DARK: dict[str, Any] = {"color_scheme": "dark"}
HALL = """
[study]
name = "hall"
question = "Which hearing aid would you rather wear?"
{more}
[page]
title = "Hearing aids"
answers = 24
{page}
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
high = 3
[space.mode]
type = "choice"
values = ["soft", "hard"]
{stimulus}
"""


def main() -> None:
    """Take all pictures."""
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as place:
        browser = driver.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        folder = Path(place)
        with _server(folder, "--demo") as link:
            for name, look in {"light": DESK, "dark": DESK | DARK, "phone": PHONE}.items():
                _shot(browser, link, f"demo-{name}", look)
            _shot(browser, link, "start", DESK, None)
            _shot(browser, link, "end", DESK, _to_the_end)
        for study, look in _studies(folder).items():
            with _server(folder, f"{study}.toml", "--storage", f"{study}.db") as link:
                _shot(browser, link, study, look)
        browser.close()


def _studies(folder: Path) -> dict[str, dict[str, Any]]:
    """Study files, and how each is looked at."""
    for mode in ("soft", "hard"):
        _write_tone(folder / f"{mode}.wav")
    kinds = {
        "values": (DESK, "", "", ""),
        "values-phone": (PHONE | DARK, "", "", ""),
        "sounds": (DESK | DARK, "", "", '[stimulus]\nfile = "{mode}.wav"'),
        "ranking-phone": (PHONE, 'feedback = "batch"\nsize = 3', 'answer = "ranking"', ""),
        "yes-no-phone": (PHONE | DARK, 'feedback = "binary"', "", '[stimulus]\ntext = "{gain} dB, {mode}"'),
    }
    for name, (_, more, page, stimulus) in kinds.items():
        text = HALL.replace("{more}", more).replace("{page}", page).replace("{stimulus}", stimulus)
        (folder / f"{name}.toml").write_text(text)
    return {name: look for name, (look, *_) in kinds.items()}


@contextmanager
def _server(folder: Path, *words: str) -> Iterator[str]:
    """The link of a participant, until the end of the block."""
    command = [sys.executable, "-m", "askwise", "serve", "--json", *words]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        lines = iter(process.stdout.readline, "")
        said = json.loads("".join(_until("}\n", lines)))
        if "participants" in said:
            yield said["participants"]
        else:
            made = aw.Client(said["link"], "hall")._post("links", {"participant": None})
            yield said["link"].partition("/?token=")[0] + made["path"]
    finally:
        process.terminate()
        process.wait()


def _until(last: str, lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if line == last:
            return


def _begin(page: Page) -> None:
    page.click("#begin:enabled")
    page.wait_for_selector(".question[data-ready]")
    for number in (1, 2, 3):
        page.wait_for_timeout(700)
        if page.locator(".ranking").count():
            page.click("text=This is my order")
        else:
            page.keyboard.press("ArrowRight")
        page.wait_for_selector(f".question[data-ready='{number + 1}']")
    if page.locator(".player").count():
        page.click("[aria-label='Play B']")
    page.mouse.move(0, 0)


def _to_the_end(page: Page) -> None:
    _begin(page)
    for number in range(4, 21):
        page.wait_for_selector(f".question[data-ready='{number}']")
        page.wait_for_timeout(400)
        page.keyboard.press("ArrowRight")
        if number == 10:
            page.click("#continue")
    page.wait_for_selector("#end:not([hidden]) img")


def _shot(
    browser: Browser,
    link: str,
    name: str,
    look: dict[str, Any],
    prepare: Callable[[Page], None] | None = _begin,
) -> None:
    page = browser.new_context(**look, device_scale_factor=2 if look.get("is_mobile") else 1).new_page()
    page.goto(link)
    page.wait_for_selector("#begin:enabled")
    if prepare is not None:
        prepare(page)
    page.wait_for_timeout(500)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    page.context.close()
    _save_small(picture, OUT / f"{name}.png")


def _save_small(picture: Image.Image, path: Path) -> None:
    """As large as fits into the size that the pages' pictures may have."""
    for share in (1.0, 0.85, 0.75, 0.65, 0.6, 0.55, 0.5):
        size = (round(share * picture.width), round(share * picture.height))
        small = picture.resize(size, Image.Resampling.LANCZOS)
        small.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size < MOST:
            return


def _write_tone(path: Path) -> None:
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        samples = (int(9000 * math.sin(0.3 * k)) for k in range(24_000))
        out.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))


if __name__ == "__main__":
    main()
