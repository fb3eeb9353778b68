"""Named parameters in natural units, and which points of the unit cube are settings.

A `Space` maps settings to points and back; its `Domain` tells the search about steps, choices, contexts
and linear constraints.
"""

from askwise.space.domain import Domain as Domain
from askwise.space.parameters import KINDS as KINDS
from askwise.space.parameters import Axis as Axis
from askwise.space.parameters import Choice as Choice
from askwise.space.parameters import Fixed as Fixed
from askwise.space.parameters import Integer as Integer
from askwise.space.parameters import Ordinal as Ordinal
from askwise.space.parameters import Parameter as Parameter
from askwise.space.parameters import Real as Real
from askwise.space.parameters import Setting as Setting
from askwise.space.parameters import Value as Value
from askwise.space.parameters.base import readable as readable
from askwise.space.space import Space as Space
