"""Kinds of parameters, one a file: everything about a kind is in its class.

The unit mapping, the coordinates that the search sees, JSON and TOML, how a value is read, shown and drawn.
Dropping in a file is all it takes to add one; another package may add one through the entry point
``askwise.parameters``.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
