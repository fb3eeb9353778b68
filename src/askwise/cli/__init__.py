"""The command line: `askwise`, or `python -m askwise`.

Files of commands (setup, answering, results, bench) import torch only when a command runs, so that help comes
at once; the work is done in the other files.
"""

from importlib import import_module

from askwise.cli.app import main as main

for _commands in ("setup", "answering", "results", "bench"):  # in the order of the help
    import_module(f"askwise.cli.{_commands}")
