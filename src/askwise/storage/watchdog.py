"""A limit on how long a server may keep us waiting, which holds even if the server is frozen.

Time-outs of PostgreSQL are kept by the server itself; those of TCP count from what its kernel still
acknowledges.  So the connection is cut from this side.
"""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class Watchdog:
    """Cuts connections on which something takes too long."""

    def __init__(self, seconds: float) -> None:
        """``seconds``: how long the work in :meth:`over` may take."""
        self.seconds, self.has_cut = seconds, False

    @contextmanager
    def over(self, connection: Any) -> Iterator[None]:
        """Watch over work on this psycopg connection; when it is cut, the work fails as without a server."""
        self.has_cut = False
        with socket.socket(fileno=os.dup(connection.fileno())) as line:
            timer = threading.Timer(self.seconds, self._cut, [line])
            timer.daemon = True
            timer.start()
            try:
                yield
            finally:
                timer.cancel()

    def _cut(self, line: socket.socket) -> None:
        self.has_cut = True
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
