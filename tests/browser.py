"""A browser at the participants' page."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
]
DESK: dict[str, Any] = {"viewport": {"width": 1200, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; tests are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip("there is no chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=QUIET)
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """Somebody at the page; every complaint of the browser is an error."""

    def __init__(self, browser: Any, address: str, **looks: Any) -> None:
        self.context = browser.new_context(**(looks or DESK))
        self.address, self.complaints = address, list[str]()
        self.page = self.tab()

    def tab(self) -> Any:
        page = self.context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self._hear(said))
        page.goto(self.address)
        return page

    def _hear(self, said: Any) -> None:
        lost = "net::ERR" in said.text or "status of" in said.text  # what tests do on purpose
        if said.type in ("error", "warning") and not lost:
            self.complaints.append(said.text)

    def start(self) -> "Visitor":
        self.page.click("#begin:enabled")
        return self.sees(1)

    def sees(self, number: int, page: Any = None) -> "Visitor":
        """Wait for this question, until it takes answers."""
        page = page or self.page
        page.wait_for_selector(f".question[data-ready='{number}']")
        page.wait_for_timeout(300)
        return self

    def press(self, key: str) -> "Visitor":
        self.page.keyboard.press(key)
        return self

    def code(self) -> str:
        self.page.wait_for_selector("#end:not([hidden])")
        return str(self.page.inner_text("#code"))


def link_to(server: str, study: str = "hall", participant: str | None = None) -> str:
    """The address of the page, by a new link of the server whose experimenter's link this is."""
    import askwise as aw

    made = aw.Client(server, study)._post("links", {"participant": participant})
    return f"{server.partition('/?token=')[0]}{made['path']}"
