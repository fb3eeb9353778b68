"""Round numbers on axes."""

import itertools
import math
from collections.abc import Iterator, Sequence

from matplotlib.ticker import MaxNLocator

ROOM = 28  # letters of tick labels that fit side by side below a narrow panel
STEPS = (1, 2, 5, 10)
"""Steps between the ticks of a linear axis, times powers of ten."""
_MOST = 10  # ticks of an axis
_HIGH = 1.5  # letters that a label takes on an upright axis, where its length does not count
_FRACTIONS = 2  # decimals of thousands and millions


def log_ticks(low: float | int, high: float | int, whole: bool, room: int = ROOM) -> list[float]:
    """Round numbers from low to high, the most regular that are enough and do not touch.

    ``room``: letters that fit side by side; 0 on an upright axis.
    """
    for ticks, enough in _candidates(low, high):
        inside = [tick for tick in ticks if low <= tick <= high and not (whole and tick % 1)]
        if enough <= len(inside) <= _MOST and not _crowded(inside, math.log(high / low), room):
            return inside
    return [float(low), float(high)]


def _candidates(low: float | int, high: float | int) -> Iterator[tuple[list[float], int]]:
    """Ticks to try, and the least number of them that is enough."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for parts, enough in (((1, 2, 5), 4), ((1, 2, 3, 4, 6, 8), 4)):
        yield [part * 10.0**power for power in powers for part in parts], enough
    for count in (5, 4, 3, 2) if high < 10 * low else ():
        yield [float(tick) for tick in MaxNLocator(count, steps=STEPS).tick_values(low, high)], 3
    yield [part * 10.0**power for power in powers for part in (1, 3)], 3
    for step in range(1, len(powers) + 1):
        yield [10.0**power for power in powers if power % step == 0], 2


def _crowded(ticks: Sequence[float], length: float, room: int) -> bool:
    """Whether neighbouring labels would touch on an axis with this range of logarithms."""
    widths = [_letters(label) if room else _HIGH for label in numbers(ticks)]
    return any(
        math.log(right / left) / length * (room or ROOM) < 1 + (one + other) / 2
        for (left, one), (right, other) in itertools.pairwise(zip(ticks, widths, strict=True))
    )


def numbers(ticks: Sequence[float]) -> list[str]:
    """Short labels: 500, 1k, 2M; powers of ten where some numbers are very small or very large."""
    if any(not 1e-3 <= tick < 1e9 for tick in ticks):
        return [_power(tick) for tick in ticks]
    large = [tick for tick in ticks if tick >= 1000]
    short = all(len(_short(tick).partition(".")[2]) <= _FRACTIONS for tick in large)
    return [_short(tick) if short else f"{tick:.10g}" for tick in ticks]


def _short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.10g}{letter}"
    return f"{value:g}"


def _power(value: float) -> str:
    if 1e-3 <= value < 1e4:
        return f"{value:g}"
    mantissa, power = f"{value:e}".split("e")
    front = f"{float(mantissa):g}"
    times = "" if front == "1" else rf"{front} \times "
    return rf"${times}10^{{{int(power)}}}$"


def _letters(label: str) -> float:
    """Width of a label; exponents are small."""
    return len(label) if "$" not in label else 3.5 + 2.5 * ("times" in label)
