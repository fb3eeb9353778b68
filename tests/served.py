"""Study files for tests of the server, and the server as a process."""

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from askwise.web.app import create
from askwise.web.settings import Settings

DUEL = """
[study]
name = "hall"
question = "Which sounds better?"
seed = 3
initial = 3
[space.gain]
type = "real"
low = 0
high = 40
[space.mode]
type = "choice"
values = ["soft", "hard"]
"""


class Process:
    """`askwise serve` in a process of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        command = [sys.executable, "-m", "askwise", "serve", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, cwd=folder, text=True, **pipes)
        assert self.process.stdout is not None
        self.link = self.process.stdout.readline().strip()

    @property
    def port(self) -> str:
        return self.link.split(":")[2].partition("/")[0]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)

    def end(self, number: int = signal.SIGINT) -> tuple[int, str, str]:
        """Exit code, what else it printed, and its errors."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[Process]:
    """A server until the end of the block."""
    server = Process(folder, *words)
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def in_thread(settings: Settings) -> Iterator[str]:
    """The link of a server in this process: without a process of its own, it starts at once."""
    app = create(settings)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/?token={app.state.gate.file.kept.token}"
        finally:
            server.should_exit = True
            thread.join()
