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
    from askwise import numerics as numerics
    from askwise import rules as rules
    from askwise.errors import Conflict as Conflict
    from askwise.errors import NotFound as NotFound
    from askwise.errors import Refused as Refused
    from askwise.errors import Unavailable as Unavailable
    from askwise.loop import next_query as next_query
    from askwise.model import Belief as Belief
    from askwise.model import Data as Data
    from askwise.model import features as features
    from askwise.model import fit as fit
    from askwise.model import infer as infer
    from askwise.model import kernel as kernel
    from askwise.model import paths as paths
    from askwise.model import uncertainty as uncertainty
    from askwise.numerics import seeds as seeds
    from askwise.space import Choice as Choice
    from askwise.space import Fixed as Fixed
    from askwise.space import Integer as Integer
    from askwise.space import Ordinal as Ordinal
    from askwise.space import Real as Real
    from askwise.space import Space as Space
    from askwise.storage import StudyNotFound as StudyNotFound
    from askwise.study import Best as Best
    from askwise.study import Question as Question
    from askwise.study import Status as Status
    from askwise.study import Study as Study

_PACKAGES = ("bench", "numerics", "rules")
_HOMES = {
    "errors": ("Conflict", "NotFound", "Refused", "Unavailable"),
    "loop": ("next_query",),
    "model": ("Belief", "Data", "features", "fit", "infer", "kernel", "paths", "uncertainty"),
    "numerics": ("seeds",),
    "space": ("Choice", "Fixed", "Integer", "Ordinal", "Real", "Space"),
    "storage": ("StudyNotFound",),
    "study": ("Best", "Question", "Status", "Study"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_PACKAGES, *_HOME]


def __getattr__(name: str) -> object:
    """A public name, imported when it is first used: torch takes seconds, and `askwise --help` needs none."""
    if name in _PACKAGES:
        return import_module(f"askwise.{name}")
    if name in _HOME:
        value = getattr(import_module(f"askwise.{_HOME[name]}"), name)
    elif not name[0].isupper() or (value := _parameter_kind(name)) is None:
        raise AttributeError(f"module 'askwise' has no attribute {name!r}")
    globals()[name] = value
    return value


def _parameter_kind(name: str) -> type | None:
    """A kind of parameter that a file or a plug-in has added."""
    kinds = import_module("askwise.space").KINDS
    return next((kind for kind in kinds.values() if kind.__name__ == name), None)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
