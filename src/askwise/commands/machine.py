"""Commands that run, several at a time: what they print, how they end, and that none is left behind."""

import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from askwise.errors import Refused, printable, shortened

TIMED_OUT = 124
"""The code of a command that took too long, as `timeout` has it."""
LEFT_OPEN = "Try it by hand; the question stays open."
_KEPT = 65536  # bytes of output that are kept
_LINES, _LONGEST = 10, 200  # lines that are shown of it, and characters of each
_GRACE = 2.0  # seconds between a request to end and the end
_LATE = 0.5  # seconds to wait for output after the end; what a command leaves behind may hold it open


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    words: Sequence[str]
    code: int
    """Exit code, minus the number of a signal, or that of a time-out."""
    seconds: float
    """How long it took, or was allowed to take."""
    timed_out: bool
    printed: str
    """The end of its standard output."""
    complained: str
    """The end of its standard error."""
    output: str
    """The end of both together."""

    @property
    def how(self) -> str:
        """How it ended, in words."""
        how = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        if self.timed_out:
            how = f"time-out after {self.seconds:g} s"
        return f"{how} from {shortened(shlex.join(self.words), _LONGEST)}"

    @property
    def last_lines(self) -> str:
        """The last lines of its output, short enough to be kept."""
        lines = [printable(shortened(line, _LONGEST)) for line in self.output.splitlines() if line.strip()]
        return "\n".join(lines[-_LINES:])


class Machine:
    """Whatever runs commands; it can be stopped with all of them."""

    def __init__(
        self, option: str, timeout: float | None, reads: bool, folder: os.PathLike[str] | None = None
    ) -> None:
        """``option``: by which commands are given; ``reads``: whether they may read our standard input.

        ``folder``: where they run, by default where we do.
        """
        self._option, self._timeout, self._reads, self._folder = option, timeout, reads, folder
        self._lock, self._running, self._stopped = threading.Lock(), set[subprocess.Popen[bytes]](), False

    def run(self, words: Sequence[str], given: Mapping[str, str]) -> Ended | None:
        """Run a command to its end; None if the machine was stopped.

        Its output also goes to our standard error at once, since programs read our standard output.
        """
        began = time.monotonic()
        process = self._started(words, given)
        if process is None:
            return None
        output = _Output(process)
        timed_out = False
        try:
            process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:  # Ctrl-C included
            if process.returncode is None:
                _end([process])
            with self._lock:
                self._running.discard(process)
        seconds = round(time.monotonic() - began, 3)
        output.wait()
        if self._stopped:
            return None
        if timed_out and self._timeout is not None:
            return Ended(words, TIMED_OUT, self._timeout, True, *output.texts())
        return Ended(words, process.returncode, seconds, False, *output.texts())

    def stop(self) -> None:
        """End all commands, and start no more."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        _end(running)

    def _started(self, words: Sequence[str], given: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._stopped:
                return None
            try:
                process = subprocess.Popen(
                    words,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    stdin=None if self._reads else subprocess.DEVNULL,
                    start_new_session=True,
                    cwd=self._folder,
                    env={**os.environ, **given},
                )
            except OSError as error:
                got = f"{words[0]!r}: {str(error.strerror).lower()}"
                raise Refused(self._option, "be a program", got, LEFT_OPEN) from None
            except ValueError as error:  # a zero in a word
                raise Refused(self._option, "be made of words without zeros", error, LEFT_OPEN) from None
            self._running.add(process)
            return process


class _Output:
    """What a command prints, passed on at once; the end of it is kept."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._lock, self._kept = threading.Lock(), {"printed": b"", "complained": b"", "output": b""}
        streams = {"printed": process.stdout, "complained": process.stderr}
        self._threads = [
            threading.Thread(target=self._pass_on, args=one, daemon=True) for one in streams.items()
        ]
        for thread in self._threads:
            thread.start()

    def _pass_on(self, name: str, stream: IO[bytes]) -> None:
        with stream:
            while part := os.read(stream.fileno(), _KEPT):
                with self._lock:
                    for kept in (name, "output"):
                        self._kept[kept] = (self._kept[kept] + part)[-_KEPT:]
                with suppress(OSError):  # nobody listens any more
                    os.write(2, part)

    def wait(self) -> None:
        """Wait for the rest of the output, unless something holds it open."""
        latest = time.monotonic() + _LATE
        for thread in self._threads:
            thread.join(max(0.0, latest - time.monotonic()))

    def texts(self) -> tuple[str, str, str]:
        """What was printed, what was complained, and both."""
        with self._lock:
            printed, complained, both = (kept.decode("utf-8", "replace") for kept in self._kept.values())
        return printed, complained, both


def _end(running: Sequence["subprocess.Popen[bytes]"]) -> None:
    """End commands with all processes that they started: first asked to, then killed."""
    try:
        _send(running, signal.SIGTERM)
        latest = time.monotonic() + _GRACE
        for process in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, latest - time.monotonic()))
    finally:  # also if Ctrl-C is pressed again
        _send(running, signal.SIGKILL)
    for process in running:
        process.wait()


def _send(running: Sequence["subprocess.Popen[bytes]"], how: signal.Signals) -> None:
    for process in running:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, how)
