"""Kinds of parameters, one a file: everything about a kind is in its class.

The unit mapping, the coordinates that the search sees, JSON and TOML, how a value is read, shown and drawn.
Dropping in a file is all it takes to add one; another package may add one through the entry point
``askwise.parameters``.
"""

from importlib import import_module
from pkgutil import iter_modules

from askwise.space.parameters.base import KINDS as KINDS
from askwise.space.parameters.base import Axis as Axis
from askwise.space.parameters.base import Coordinate as Coordinate
from askwise.space.parameters.base import Parameter as Parameter
from askwise.space.parameters.base import Setting as Setting
from askwise.space.parameters.base import Value as Value
from askwise.space.parameters.choice import Choice as Choice
from askwise.space.parameters.fixed import Fixed as Fixed
from askwise.space.parameters.integer import Integer as Integer
from askwise.space.parameters.ordinal import Ordinal as Ordinal
from askwise.space.parameters.real import Real as Real

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
