"""`python -m askwise` is `askwise`."""

import os
import sys

from askwise.errors import Unavailable, extra


def run() -> None:
    """The command `askwise`; without the packages that it needs, one line says which."""
    try:
        with extra("cli", "the command line"):
            from askwise.cli import main
    except Unavailable as error:
        sys.exit(f"askwise: {error}")
    _mend_streams()
    main(prog_name="askwise")


def _mend_streams() -> None:
    """Daemons have none; and what no terminal can show is written as an escape, not as an error."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - as long as the program runs
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    run()
