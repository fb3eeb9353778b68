"""Find the best setting of something nobody can measure, only answer questions about.

>>> import askwise as aw
>>> data = aw.Data.duels([[[0.2], [0.6]], [[0.6], [0.9]]], [0, 1])
>>> belief = aw.infer(data, aw.kernel("se", lengthscale=[0.3]))
>>> f"{belief.success_probability(data.points[1:2], data.points[:1]).item():.2f}"
'0.69'
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askwise import bench as bench
    from askwise import features as features
    from askwise import numerics as numerics
    from askwise import paths as paths
    from askwise import rules as rules
    from askwise import seeds as seeds
    from askwise import uncertainty as uncertainty
    from askwise.advice import Best as Best
    from askwise.belief import Belief as Belief
    from askwise.data import Data as Data
    from askwise.fitting import fit as fit
    from askwise.inference import infer as infer
    from askwise.kernels import kernel as kernel
    from askwise.loop import next_query as next_query
    from askwise.space import Choice as Choice
    from askwise.space import Fixed as Fixed
    from askwise.space import Integer as Integer
    from askwise.space import Real as Real
    from askwise.space import Space as Space
    from askwise.storage import StudyNotFound as StudyNotFound
    from askwise.study import Question as Question
    from askwise.study import Status as Status
    from askwise.study import Study as Study

_MODULES = ("bench", "features", "numerics", "paths", "rules", "seeds", "uncertainty")
_HOMES = {
    "advice": ("Best",),
    "belief": ("Belief",),
    "data": ("Data",),
    "fitting": ("fit",),
    "inference": ("infer",),
    "kernels": ("kernel",),
    "loop": ("next_query",),
    "space": ("Choice", "Fixed", "Integer", "Real", "Space"),
    "storage": ("StudyNotFound",),
    "study": ("Question", "Status", "Study"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_MODULES, *_HOME]


def __getattr__(name: str) -> object:
    """A public name, imported when it is first used: torch takes seconds, and `askwise --help` needs none."""
    if name in _MODULES:
        return import_module(f"askwise.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'askwise' has no attribute {name!r}")
    value = getattr(import_module(f"askwise.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
