"""A PostgreSQL database for a test, where there is a server."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

SERVER = os.environ.get("ASKWISE_TEST_POSTGRES")


@contextmanager
def fresh_schema() -> Iterator[str]:
    """The address of a schema of its own, dropped afterwards."""
    if not SERVER:
        pytest.skip("needs PostgreSQL: run `tests/with-postgres make test`, or set ASKWISE_TEST_POSTGRES")
    schema = f"askwise_{uuid.uuid4().hex}"
    run(SERVER, f"CREATE SCHEMA {schema}")
    try:
        yield f"{SERVER}{'&' if '?' in SERVER else '?'}options=-csearch_path%3D{schema}"
    finally:
        run(SERVER, f"DROP SCHEMA {schema} CASCADE")


def run(address: str, *statements: str) -> list[tuple]:
    """The rows of the last statement."""
    with psycopg.connect(address) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []
