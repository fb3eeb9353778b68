"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["DEFAULT_FILE", "AsJson", "Context", "Participant", "StudyFile"]

DEFAULT_FILE = Path("askwise.toml")

StudyFile = Annotated[
    Path, typer.Option("--study", "-s", metavar="FILE", help="The study.", show_default=True)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Participant = Annotated[str | None, typer.Option("--participant", "-p", metavar="NAME", help="Who answers.")]
Context = Annotated[
    list[str] | None,
    typer.Option(
        "--context",
        "-c",
        metavar="NAME=VALUE",
        help="A parameter that is given, not chosen; may be repeated.",
    ),
]
