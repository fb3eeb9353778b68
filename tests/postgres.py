"""A PostgreSQL database for a test, where there is a server, and a server that a test may stop."""

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

SERVER = os.environ.get("ASKWISE_TEST_POSTGRES")


@contextmanager
def fresh_schema(server: str | None = SERVER) -> Iterator[str]:
    """The address of a schema of its own, dropped afterwards."""
    if not server:
        pytest.skip("needs PostgreSQL: run `tests/with-postgres make test`, or set ASKWISE_TEST_POSTGRES")
    schema = f"askwise_{uuid.uuid4().hex}"
    run(server, f"CREATE SCHEMA {schema}")
    try:
        yield f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{schema}"
    finally:
        run(server, f"DROP SCHEMA {schema} CASCADE")


def run(address: str, *statements: str) -> list[tuple]:
    """The rows of the last statement."""
    with psycopg.connect(address) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


class Server:
    """A server that nobody else uses."""

    def __init__(self, address: str) -> None:
        self.address = address
        [[folder]], [[programs]] = (
            run(address, "SHOW data_directory"),
            run(address, "SELECT setting FROM pg_config WHERE name = 'BINDIR'"),
        )
        self._folder, self._programs = Path(folder), Path(programs)

    def restart(self, how: str) -> None:
        """Stop it and start it again: ``fast``, ``immediate`` (without a checkpoint) or ``kill``."""
        if how == "kill":
            self._kill()
        root = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        mode = "immediate" if how == "kill" else how
        control = [self._programs / "pg_ctl", "-D", self._folder, "-l", self._folder.parent / "log"]
        quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)  # the server would keep ours
        subprocess.run([*root, *control, "-w", "-m", mode, "restart"], cwd="/", check=True, **quiet)

    def backends(self) -> list[int]:
        """Processes of the server, one for each client."""
        rows = "FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        return [pid for (pid,) in run(self.address, f"SELECT pid {rows} ORDER BY pid")]

    def _kill(self) -> None:
        leader = int((self._folder / "postmaster.pid").read_text().split()[0])
        os.kill(leader, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while Path(f"/proc/{leader}").exists() and time.monotonic() < deadline:
            time.sleep(0.02)  # until the system has forgotten it, there must not be another


@contextmanager
def own_server() -> Iterator[Server]:
    """A server that a test may stop; others would lose theirs."""
    others = {name: value for name, value in os.environ.items() if name != "ASKWISE_TEST_POSTGRES"}
    wait = ["sh", "-c", 'echo "$ASKWISE_TEST_POSTGRES" && cat']  # until we close its input, or die
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(
        [Path(__file__).with_name("with-postgres"), *wait], env=others, text=True, **pipes
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        address = holder.stdout.readline().strip()
        if not address:
            holder.communicate()
            pytest.skip("needs the programs of PostgreSQL: initdb and pg_ctl")
        try:
            yield Server(address)
        finally:
            holder.communicate()
