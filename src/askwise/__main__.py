"""`python -m askwise` is `askwise`."""

import sys

from askwise.errors import Unavailable, extra


def run() -> None:
    """The command `askwise`; without the packages that it needs, one line says which."""
    try:
        with extra("cli", "the command line"):
            from askwise.cli import main
    except Unavailable as error:
        sys.exit(f"askwise: {error}")
    main(prog_name="askwise")


if __name__ == "__main__":
    run()
