"""`python -m askwise` is `askwise`."""

from askwise.cli import main

if __name__ == "__main__":
    main(prog_name="askwise")
