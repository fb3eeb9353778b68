"""Pictures of a study in files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from askwise.study import Study

__all__ = ["saved_pictures"]


def saved_pictures(
    study: Study, kinds: Sequence[str], context: Mapping[str, Any] | None, folder: Path
) -> dict[str, Path]:
    """The files of the pictures, by kind."""
    try:
        from askwise import plots
    except ImportError as error:
        raise ImportError(
            f"plot must have matplotlib; got: {error}. Run `pip install askwise[plots]`."
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    saved = {}
    for kind in kinds:
        figure = getattr(plots, f"study_{kind}")(study, context=context)
        saved[kind] = folder / f"{kind}.png"
        figure.savefig(saved[kind], dpi=150)
    return saved
