"""Numbers as the report prints them."""

import math
import re

from askwise.bench.regret import Interval

__all__ = ["measured", "short", "spelled", "within"]

_LONG = re.compile(r"\d+\.\d{4,}")
_PLAIN = (-4, 5)  # powers of ten between which numbers are written out


def measured(mean: float, error: float) -> str:
    """A mean with its standard error to two digits, if it has one, and the mean to the same place.

    >>> measured(3.14159, 0.0271), measured(-123456.0, 4321.0), measured(2.5, 0.0)
    ('3.142 ± 0.027', '-1.235e5 ± 0.043e5', '2.5 ± 0')
    """
    if not math.isfinite(error):
        return short(mean)
    if error == 0:
        return f"{short(mean)} ± 0"
    power = _power(max(abs(mean), error))
    unit, suffix = (1.0, "") if _PLAIN[0] <= power < _PLAIN[1] else (10.0**power, f"e{power}")
    places = max(0, 1 - _power(error / unit))
    return f"{_fixed(mean / unit, places)}{suffix} ± {error / unit:.{places}f}{suffix}"


def within(interval: Interval, places: int = 3) -> str:
    """A mean with its interval, if it has one.

    >>> within(Interval(0.51234, 0.49, 0.53))
    '0.512 [0.490, 0.530]'
    """
    mean = _fixed(interval.mean, places)
    if not math.isfinite(interval.high - interval.low):
        return mean
    return f"{mean} [{_fixed(interval.low, places)}, {_fixed(interval.high, places)}]"


def short(value: float) -> str:
    """A number to four digits.

    >>> short(0.00012345), short(1234567.0), short(-0.0)
    ('0.0001234', '1.235e6', '0')
    """
    power = _power(value)
    if value == 0 or _PLAIN[0] <= power < _PLAIN[1]:
        return f"{value + 0.0:.4g}"
    return f"{value / 10.0**power:.4g}e{power}"


def spelled(label: str) -> str:
    """The label of an arm, with at most four digits of its numbers.

    >>> spelled("ucb_f(beta=2.3263478740408408)"), spelled("muc m=5")
    ('ucb_f(beta=2.326)', 'muc m=5')
    """
    return _LONG.sub(lambda found: f"{float(found[0]):.4g}", label)


def _fixed(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text.lstrip("-") if float(text) == 0 else text  # never minus zero


def _power(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value and math.isfinite(value) else 0
