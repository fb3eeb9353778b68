"""The success rate that separates settings that work from those that do not."""

from statistics import NormalDist

from askwise.errors import Refused

LEVEL = 0.95
"""The level of rules that look for one, unless they or the study say otherwise."""


def checked_level(value: object) -> float:
    """A success rate between 0 and 1; anything else is refused."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0 < value < 1):  # type: ignore[operator]
        raise Refused("level", "be a success rate between 0 and 1", repr(value), "Write 0.95 for 95%.")
    return float(value)  # type: ignore[arg-type]


def latent_level(level: float) -> float:
    r"""The value of f at which the success rate is the level, :math:`\Phi^{-1}`.

    >>> round(latent_level(0.95), 3)
    1.645
    """
    return NormalDist().inv_cdf(checked_level(level))
