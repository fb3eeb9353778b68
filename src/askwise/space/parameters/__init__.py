"""Kinds of parameters, one per file.

The class of a kind defines everything about it: the mapping to the unit cube, the coordinates that the search
sees, JSON and TOML, how values are read, shown and drawn.  A new file here adds a kind; another package adds
one through the entry point ``askwise.parameters``.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
