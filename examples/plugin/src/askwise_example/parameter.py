"""A kind of parameter: everything about it is in its class."""

import math
from dataclasses import dataclass

from askwise import Refused
from askwise.space import Axis, Coordinate, Parameter


@dataclass(frozen=True, repr=False)
class PowerOfTwo(Parameter):
    """2, 4, 8, .. between ``low`` and ``high``, such as the length of a window."""

    low: int
    high: int
    context: bool = False
    unit: str = ""

    kind = "power_of_two"

    def __post_init__(self):
        """Refuse bounds that are not powers of two."""
        for name in ("low", "high"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1 or value & (value - 1):
                raise Refused(name, "be a power of two", repr(value), "Write 64, say.")
        if self.low >= self.high:
            raise Refused("low", "be below high", f"{self.low} and {self.high}", "Swap them.")

    @property
    def coordinates(self):
        """One coordinate: the exponent, in steps of one."""
        return (Coordinate(math.log2(self.low), math.log2(self.high), step=1.0),)

    @property
    def _exponents(self):
        return range(int(math.log2(self.low)), int(math.log2(self.high)) + 1)

    def natural(self, places):
        """The power at a place; all have equal shares of the unit interval."""
        count = len(self._exponents)
        return 2 ** self._exponents[min(int(places[0] * count), count - 1)]

    def places(self, value):
        """The place of a power."""
        if isinstance(value, bool) or value not in [2**k for k in self._exponents]:
            raise Refused("value", f"be a power of two from {self.range_text}", repr(value), "Choose one.")
        return [(math.log2(value) - self._exponents[0]) / (len(self._exponents) - 1)]

    def axis(self, count, cells):
        """All powers on a logarithmic axis."""
        at = [float(2**k) for k in self._exponents]
        edges = [2 ** (k - 0.5) for k in (*self._exponents, self._exponents[-1] + 1)]
        values = [2**k for k in self._exponents]
        return Axis(values, at, edges, (edges[0], edges[-1]), log=True, discrete=True)

    @property
    def range_text(self):
        """The lowest and the highest value."""
        return f"{self.low} to {self.high}"

    def read(self, text):
        """A whole number."""
        try:
            return int(text)
        except ValueError:
            raise Refused("value", "be a whole number", repr(text), "Write 64, say.") from None
