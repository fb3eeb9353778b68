"""Figures of studies, of what is believed and of what the rules ask; needs matplotlib (``askwise[plots]``).

Every function returns a :class:`matplotlib.figure.Figure`; save it with ``figure.savefig("name.png")``.
Colours are told apart by the colour-blind too (Okabe & Ito, cividis), and marks differ in shape as well.
"""

from askwise.plots.doubt import bounds_compared as bounds_compared
from askwise.plots.doubt import decomposition_maps as decomposition_maps
from askwise.plots.maps import study_maps as study_maps
from askwise.plots.maps import study_uncertainty as study_uncertainty
from askwise.plots.progress import study_progress as study_progress
from askwise.plots.questions import question as question
from askwise.plots.scores import study_score as study_score
from askwise.plots.slices import study_slices as study_slices

__all__ = [
    "bounds_compared",
    "decomposition_maps",
    "question",
    "study_maps",
    "study_progress",
    "study_score",
    "study_slices",
    "study_uncertainty",
]
