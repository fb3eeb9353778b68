"""Find the best setting of something nobody can measure, only answer questions about.

>>> import askwise as aw
>>> data = aw.Data.duels([[[0.2], [0.6]], [[0.6], [0.9]]], [0, 1])
>>> belief = aw.infer(data, aw.kernel("se", lengthscale=[0.3]))
>>> f"{belief.success_probability(data.points[1:2], data.points[:1]).item():.2f}"
'0.69'
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from askwise import bench, numerics, rules
    from askwise.client import Client
    from askwise.errors import Conflict, NotFound, Refused, Unavailable
    from askwise.loop import next_query
    from askwise.model import Belief, Data, Observer, features, fit, infer, kernel, paths, uncertainty
    from askwise.numerics import seeds
    from askwise.space import Choice, Fixed, Integer, Items, Ordinal, Real, Space
    from askwise.storage import StudyNotFound
    from askwise.study import Best, Check, Question, Raters, Status, Study

__all__ = ["Best", "Check", "Choice", "Fixed", "Integer", "Items", "Ordinal", "Question", "Raters", "Real"]
__all__ += ["Conflict", "NotFound", "Refused", "Space", "Status", "Study", "StudyNotFound", "Unavailable"]
__all__ += [
    "Belief",
    "Client",
    "Data",
    "Observer",
    "bench",
    "features",
    "fit",
    "infer",
    "kernel",
    "next_query",
    "numerics",
]
__all__ += ["paths", "rules", "seeds", "uncertainty"]

# GPyTorch's, on import, in every process: nobody who uses askwise can do anything about it
warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", DeprecationWarning)

_HOMES = {
    "client": ("Client",),
    "errors": ("Conflict", "NotFound", "Refused", "Unavailable"),
    "loop": ("next_query",),
    "model": ("Belief", "Data", "Observer", "features", "fit", "infer", "kernel", "paths", "uncertainty"),
    "numerics": ("seeds",),
    "space": ("Choice", "Fixed", "Integer", "Items", "Ordinal", "Real", "Space"),
    "storage": ("StudyNotFound",),
    "study": ("Best", "Check", "Question", "Raters", "Status", "Study"),
}


def __getattr__(name: str) -> object:
    """A public name, imported when it is first used: torch takes seconds, and `askwise --help` needs none."""
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is not None:
        value = getattr(import_module(f"askwise.{home}"), name)
    elif name in __all__:
        value = import_module(f"askwise.{name}")
    else:  # perhaps a kind of parameter that a file or a plug-in has added
        kinds = import_module("askwise.space").KINDS.values() if name[0].isupper() else ()
        value = next((kind for kind in kinds if kind.__name__ == name), None)
        if value is None:
            raise AttributeError(f"module 'askwise' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
