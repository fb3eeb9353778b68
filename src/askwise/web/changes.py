"""News of studies: who waits for them hears at once what this process wrote, and soon what others did."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import AsyncIterator

import anyio.to_thread

from askwise.study import Study

_POLL = 1.0  # seconds between looks at the record, for what other processes wrote
_ALIVE = 15.0  # seconds after which a connection without news gets a sign of life


class Changes:
    """Wakes those who wait for news of a study."""

    def __init__(self) -> None:
        """Nobody waits yet."""
        self._lock = threading.Lock()
        self._waiting: dict[str, set[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = defaultdict(set)
        self._ended = False

    def tell(self, id: str) -> None:
        """Something was written to this study; called by any thread."""
        with self._lock:
            waiting = list(self._waiting[id])
        for loop, news in waiting:
            loop.call_soon_threadsafe(news.set)

    def end(self) -> None:
        """Let everybody go, since the server ends."""
        self._ended = True
        for id in list(self._waiting):
            self.tell(id)

    async def of(self, id: str, study: Study) -> AsyncIterator[int | None]:
        """The number of the study's last event, now and whenever it has changed; None as a sign of life."""
        here = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._waiting[id].add(here)
        try:
            last, silent = -1, 0.0
            while not self._ended:
                here[1].clear()
                now = await anyio.to_thread.run_sync(study.last_event)
                if now != last or silent >= _ALIVE:
                    yield now if now != last else None
                    last, silent = now, 0.0
                try:
                    await asyncio.wait_for(here[1].wait(), _POLL)
                except TimeoutError:
                    silent += _POLL
        finally:
            with self._lock:
                self._waiting[id].discard(here)
