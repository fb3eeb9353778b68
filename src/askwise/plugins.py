"""What other packages add: rules, functions, kernels, storages and kinds of parameters.

An installed package names its modules as entry points of the groups ``askwise.rules``,
``askwise.functions``, ``askwise.kernels``, ``askwise.storages`` and ``askwise.parameters``; importing such a
module registers what it defines.  For a module of your own, :func:`use`, ``--import`` or, in a study file,
``import = [..]`` do the same.
"""

import importlib
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Literal

from askwise.errors import NotFound, Refused

Group = Literal["rules", "functions", "kernels", "storages", "parameters"]

_loaded: set[str] = set()
_used: list[str] = []


def load(group: Group) -> None:
    """Import every module that installed packages name under this group; once."""
    if group in _loaded:
        return
    _loaded.add(group)  # first: a plug-in may ask for the registry that it is about to extend
    for point in entry_points(group=f"askwise.{group}"):
        try:
            point.load()
        except Exception as error:
            _loaded.discard(group)
            plugin, got = point.dist.name if point.dist else point.value, f"{error!r} from {point.value}"
            raise Refused(f"plug-in {plugin}", "be importable", got, "Update or remove it.") from error


def use(module: str, folder: Path | None = None) -> None:
    """Import a module of the user, installed or in this folder (by default the working directory)."""
    place = str(Path.cwd() if folder is None else folder)
    if place not in sys.path:
        sys.path.append(place)  # last: what is installed keeps its names
    expected, advice = f"name a module that is installed or in {place}", "Write my_rules for my_rules.py."
    missing = NotFound("import", expected, repr(module), advice)
    if not all(part.isidentifier() for part in module.split(".")):
        raise missing
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):  # the module is there, what it imports is not
            raise
        raise missing from None
    if module not in _used:
        _used.append(module)


def used() -> tuple[str, ...]:
    """The modules that were imported by :func:`use`, for processes that must know them too."""
    return tuple(_used)


def home_of(*parts: object) -> list[str]:
    """The modules in which classes and functions are defined that are not part of askwise."""
    homes = {str(getattr(part, "__module__", "askwise")) for part in parts}
    return sorted(home for home in homes if home.partition(".")[0] != "askwise")
