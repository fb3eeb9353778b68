"""Rules for choosing the next question, one a file; dropping in a file is all it takes to add one."""

import importlib
import pkgutil

from askwise.rules.base import RULES as RULES
from askwise.rules.base import Asks as Asks
from askwise.rules.base import Rule as Rule
from askwise.rules.base import parse as parse

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
