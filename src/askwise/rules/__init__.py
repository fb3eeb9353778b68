"""Acquisition rules, which choose the next query: one per file, registered by its existence.

A rule maps a belief to the points to query (`Rule.ask`); `parse` reads its name and settings.  Other packages
add rules through the entry point ``askwise.rules``.  Names are imported on first use, so that `Asks` is
available without loading torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from askwise.rules.asks import Asks
from askwise.rules.levels import checked_level, latent_level

if TYPE_CHECKING:
    from askwise.rules.base import RULES, Rule, challenge, check_size, incumbent, parse, sampled_maxima

__all__ = ["RULES", "Asks", "Rule", "challenge", "check_size", "checked_level", "incumbent", "latent_level"]
__all__ += ["parse", "sampled_maxima"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'askwise.rules' has no attribute {name!r}")
    base = import_module("askwise.rules.base")
    return base.registry() if name == "RULES" else getattr(base, name)
