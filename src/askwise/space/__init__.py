"""Named parameters in natural units, and which points of the unit cube are settings.

A `Space` maps settings to points and back; its `Domain` tells the search about steps, choices, contexts
and linear constraints.  Settings in natural units need no torch: what computes with points imports it when it
is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from askwise.space.parameters.base import KINDS as KINDS
from askwise.space.parameters.base import Axis as Axis
from askwise.space.parameters.base import Coordinate as Coordinate
from askwise.space.parameters.base import Parameter as Parameter
from askwise.space.parameters.base import Setting as Setting
from askwise.space.parameters.base import Value as Value
from askwise.space.parameters.base import readable as readable
from askwise.space.parameters.choice import Choice as Choice
from askwise.space.parameters.fixed import Fixed as Fixed
from askwise.space.parameters.integer import Integer as Integer
from askwise.space.parameters.items import Items as Items
from askwise.space.parameters.ordinal import Ordinal as Ordinal
from askwise.space.parameters.real import Real as Real
from askwise.space.space import Space as Space

if TYPE_CHECKING:
    from askwise.space.domain import LISTED as LISTED
    from askwise.space.domain import Domain as Domain
    from askwise.space.pool import Pool as Pool

_HOMES = {"LISTED": "domain", "Domain": "domain", "Pool": "pool"}


def __getattr__(name: str) -> object:
    """Names that need torch, imported when they are first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'askwise.space' has no attribute {name!r}")
    return getattr(import_module(f"askwise.space.{_HOMES[name]}"), name)
