"""Progress of a campaign."""

import io
import time
from types import SimpleNamespace

from askwise.bench.progress import Progress, shown


def progress_after(seconds: float) -> Progress:
    clock = SimpleNamespace(now=100.0)
    progress = Progress(total=40, done=10, iterations=50, clock=lambda: clock.now)
    clock.now += seconds
    return progress


def test_progress_shows_the_speed_and_the_time_left():
    progress = progress_after(20.0)
    assert str(progress) == "10 of 40 runs, 0:00:20 so far"
    progress.done += 10
    assert str(progress) == "20 of 40 runs, 25 iterations/s, 0:00:40 left"
    progress.done += 20
    assert str(progress) == "40 of 40 runs, 75 iterations/s, 0:00:20 in all"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_rewrites_its_line_on_a_terminal_and_adds_lines_elsewhere(monkeypatch):
    monkeypatch.setattr("askwise.bench.progress._OFTEN", 0.01)
    terminal, file = Terminal(), io.StringIO()
    for out in (terminal, file):
        progress = progress_after(20.0)
        with shown(progress, out):
            time.sleep(0.1)
            progress.done += 30
    lines = terminal.getvalue().split("\r\x1b[K")
    assert len(lines) > 3
    assert lines[1] == "10 of 40 runs, 0:00:20 so far"
    assert lines[-1] == "40 of 40 runs, 75 iterations/s, 0:00:20 in all\n"
    assert file.getvalue().splitlines() == [lines[1], lines[-1].rstrip()]
