"""Numbers about requests, in the text format of Prometheus, added up over all workers."""

import json
import os
import threading
import time
from bisect import bisect_left
from collections import Counter
from contextlib import suppress
from pathlib import Path

BOUNDS = (0.005, 0.01, 0.03, 0.1, 0.15, 0.3, 1.0, 3.0, 10.0)
"""Upper bounds of the classes of times, in seconds."""
_EVERY = 1.0  # seconds between two notes for other workers


class Metrics:
    """Counts requests and their times; workers leave notes for each other in a folder."""

    def __init__(self, folder: str | None) -> None:
        """``folder``: shared by all workers; None if there is one."""
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._note = None if folder is None else Path(folder, f"{os.getpid()}.json")
        self._noted = 0.0

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """One more request; ``route`` is the pattern of its address, not the address."""
        about = f'method="{method}",route="{route}"'
        with self._lock:
            self._counts[f'askwise_requests_total{{{about},status="{status}"}}'] += 1
            for bound in [*BOUNDS[bisect_left(BOUNDS, seconds) :], "+Inf"]:
                self._counts[f'askwise_request_seconds_bucket{{{about},le="{bound}"}}'] += 1
            self._counts[f"askwise_request_seconds_count{{{about}}}"] += 1
            self._counts[f"askwise_request_seconds_sum{{{about}}}"] += seconds  # type: ignore[assignment]
            self._write()

    def text(self) -> str:
        """All counts, with those of the other workers."""
        with self._lock:
            total = Counter(self._counts)
        if self._note is not None:
            for other in self._note.parent.glob("*.json"):
                with suppress(OSError, ValueError):
                    if other != self._note:
                        total.update(json.loads(other.read_text()))
        lines = ["# TYPE askwise_requests_total counter", "# TYPE askwise_request_seconds histogram"]
        kinds = {"askwise_requests_total": 0, "askwise_request_seconds": 1}
        groups: list[list[str]] = [[lines[0]], [lines[1]]]
        for name, value in total.items():
            groups[next(at for kind, at in kinds.items() if name.startswith(kind))].append(f"{name} {value}")
        return "\n".join(line for group in groups for line in group) + "\n"

    def _write(self) -> None:
        if self._note is None or time.monotonic() < self._noted + _EVERY:
            return
        self._noted = time.monotonic()
        part = self._note.with_suffix(".part")
        with suppress(OSError):
            part.write_text(json.dumps(self._counts))
            part.replace(self._note)
