"""Figures of studies, beliefs and rules; needs matplotlib (``askwise[plots]``).

Every function returns a :class:`matplotlib.figure.Figure`; save it with ``figure.savefig("name.png")``.
Colours are safe for the colour-blind, and marks differ in shape as well: expected values are dark blue to
yellow, uncertainty is white to purple, the score of a question is white to black.
"""

from askwise.plots.decomposition import bounds_compared as bounds_compared
from askwise.plots.decomposition import decomposition_maps as decomposition_maps
from askwise.plots.importance import study_importance as study_importance
from askwise.plots.level import study_level as study_level
from askwise.plots.maps import study_maps as study_maps
from askwise.plots.maps import study_slices as study_slices
from askwise.plots.maps import study_uncertainty as study_uncertainty
from askwise.plots.progress import study_progress as study_progress
from askwise.plots.questions import question as question
from askwise.plots.raters import study_raters as study_raters
from askwise.plots.scores import study_score as study_score
