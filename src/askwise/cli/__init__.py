"""The command line: `askwise`, or `python -m askwise`."""

from importlib import import_module

from askwise.cli.app import main as main

__all__ = ["main"]

for _commands in (
    "setup",
    "answering",
    "results",
    "exchange",
    "planning",
    "bench",
):  # in the order of the help
    import_module(f"askwise.cli.{_commands}")
