"""The command line: `askwise`, or `python -m askwise`.

The modules that define commands (setup, answering, results, simulating, predicting, record, ...)
import torch only when a command runs, so that ``--help`` is fast; the other modules do the work.
"""

from importlib import import_module

from askwise.cli.app import main as main

for _commands in (
    "setup",
    "answering",
    "results",
    "simulating",
    "predicting",
    "record",
    "change",
    "shell",
    "serve",
    "bench",
):  # their order in --help
    import_module(f"askwise.cli.{_commands}")
