"""The last few results of functions that depend on nothing but what their key says."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Result = TypeVar("Result")


class Recent:
    """Results by key; the ones that were not asked for longest are dropped first."""

    def __init__(self, most: int = 16) -> None:
        """Nothing is known yet; ``most``: results that are kept."""
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[object, object]] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], Result], same: Sequence[object] = ()) -> Result:
        """What was computed for this key and the ``same`` objects, or what is computed now."""
        # objects are told apart by their place in memory, so they are kept, lest another one takes it
        full = key, tuple(map(id, same))
        known = self._kept.pop(full, None)
        found = (compute(), tuple(same)) if known is None else known
        self._kept[full] = found
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return found[0]  # type: ignore[return-value]
