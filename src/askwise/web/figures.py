"""The figures of `askwise.plots` as files."""

import io
import threading
from collections.abc import Callable
from typing import Any

from askwise import plots
from askwise.errors import NotFound
from askwise.study import Study
from askwise.web.lens import Lens

FIGURES: dict[str, tuple[str, Callable[..., Any]]] = {
    "slices": ("Along each parameter", plots.study_slices),
    "maps": ("Over pairs of parameters", plots.study_maps),
    "level": ("Settings that reach the level", plots.study_level),
    "uncertainty": ("Epistemic and aleatoric uncertainty", plots.study_uncertainty),
    "score": ("The score of the next question", plots.study_score),
    "progress": ("Progress", plots.study_progress),
    "raters": ("The people who answer", plots.study_raters),
}
"""Every figure: its title, and what draws it."""
KINDS = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf"}
"""Kinds of files, and what browsers call them."""
_DRAWING = threading.Lock()  # matplotlib's style is one of the whole process
_DPI = 150


def figure(study: Study, lens: Lens, name: str, kind: str) -> bytes:
    """A figure as a file."""
    if name not in FIGURES or kind not in KINDS:
        expected = f"be one of {', '.join(FIGURES)} as {', '.join(KINDS)}"
        raise NotFound("figure", expected, repr(f"{name}.{kind}"), "Choose one of them.")
    whose = {} if name == "raters" else {"participant": lens.participant}
    out = io.BytesIO()
    with _DRAWING:
        FIGURES[name][1](study, context=lens.context, **whose).savefig(out, format=kind, dpi=_DPI)
    return out.getvalue()
