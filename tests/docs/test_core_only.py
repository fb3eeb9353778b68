"""What `pip install askwise` gives without extras: studies in memory."""

import subprocess
import sys

EXTRAS = (
    "sqlalchemy",
    "alembic",
    "psycopg",
    "typer",
    "rich",
    "matplotlib",
    "optuna",
    "botorch",
    "sklearn",
    "distributed",
    "fastapi",
    "uvicorn",
)
PROGRAM = f"""
import importlib, sys
sys.modules |= dict.fromkeys({EXTRAS!r})
import askwise as aw
study = aw.Study(aw.Space(gain=aw.Real(0, 1), mode=aw.Choice(["a", "b"])), initial=2)
for _ in range(3):
    study.tell(study.ask(), 0)
assert 0 <= study.best().params["gain"] <= 1
try:
    aw.Study(study.space, storage="study.db")
except ImportError as error:
    print(error)
for module in ("interop.optuna", "interop.botorch"):
    try:
        importlib.import_module("askwise." + module)
    except aw.Unavailable as error:
        print(error)
"""


def test_the_core_asks_and_tells_without_extras():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True
    )
    lines = done.stdout.splitlines()
    assert lines[0].startswith("storage must have the packages of askwise[storage]; got ")
    extras = ("storage", "optuna", "botorch")
    assert [line.rpartition(". ")[2] for line in lines] == [
        f"Run `pip install askwise[{name}]`." for name in extras
    ]
