"""What a study is created with: checked once, written as JSON, never changed."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from gpytorch.kernels import Kernel

from askwise.data import Data
from askwise.feedback import KINDS, Feedback
from askwise.fitting import expected_kernel, expected_length
from askwise.inference import infer
from askwise.kernels import Name, Stationary, covariance, kernel
from askwise.rules import Asks, Rule, parse
from askwise.space import Choice, Space

__all__ = ["Plan"]

_CHOICE_LENGTH = 1.2


@dataclass(frozen=True, eq=False)
class Plan:
    """The settings of a study."""

    space: Space
    feedback: Feedback
    rule: Rule
    size: int
    seed: int
    kernel: Kernel | Name
    """Fixed, or the name of one whose parameters are learned from the answers."""
    initial: int
    """How many questions are asked at random before the first model."""
    expires: float | int | None
    """Seconds after which an unanswered question may be asked again."""

    @classmethod
    def checked(  # noqa: PLR0913 - one for each setting
        cls,
        space: object,
        feedback: object = "duel",
        rule: object = None,
        size: object = None,
        seed: object = 0,
        kernel: object = "matern52",
        initial: object = None,
        expires: object = None,
    ) -> "Plan":
        """A plan from what was given, or an error that says what is wrong with it."""
        if not isinstance(space, Space):
            raise TypeError(f"space must be a Space; got {space!r}. Write Space(gain=Real(0, 10)), say.")
        if not isinstance(feedback, str) or feedback not in KINDS:
            raise ValueError(
                f"feedback must be 'binary', 'duel' or 'batch'; got {feedback!r}. Choose one of the three."
            )
        return cls(
            space,
            cast(Feedback, feedback),
            _checked_rule(KINDS[feedback].rule if rule is None else rule, feedback),
            _checked_size(feedback, size),
            _whole("seed", seed, lowest=None),
            _checked_kernel(kernel, space.d),
            _whole("initial", KINDS[feedback].initial if initial is None else initial, lowest=0),
            _checked_seconds(expires),
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON, which :meth:`from_dict` reads back."""
        return {
            "space": self.space.to_dict(),
            "feedback": self.feedback,
            "rule": str(self.rule),
            "size": self.size,
            "seed": self.seed,
            "kernel": self.kernel if isinstance(self.kernel, str) else _spelled(self.kernel),
            "initial": self.initial,
            "expires": self.expires,
        }

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> "Plan":
        """The plan that was written so."""
        given = dict(settings)
        if isinstance(given["kernel"], Mapping):
            spelled = given["kernel"]
            given["kernel"] = kernel(spelled["name"], spelled["lengthscale"], spelled["outputscale"])
        return cls.checked(Space.from_dict(given.pop("space")), **given)

    def expected_kernel(self) -> Kernel:
        """The kernel to expect of this space; two categories of a choice have about half in common."""
        names = self.space.owners
        length = expected_length(len(set(names)))
        choices = [isinstance(self.space.parameters[name], Choice) for name in names]
        lengths = [_CHOICE_LENGTH if choice else length for choice in choices]
        return expected_kernel(cast(Name, self.kernel), lengths)


def _checked_rule(rule: object, feedback: str) -> Rule:
    if not isinstance(rule, str | Rule):
        raise TypeError(f"rule must be a Rule or its spelling; got {rule!r}. Write rule='muc', say.")
    chosen = parse(rule) if isinstance(rule, str) else rule
    if Asks(feedback) not in chosen.asks:
        kinds = ", ".join(sorted(chosen.asks))
        raise ValueError(
            f"rule must ask {feedback} questions; got {chosen}, which asks {kinds}. Choose another."
        )
    return chosen


def _checked_size(feedback: str, size: object) -> int:
    value = KINDS[feedback].size if size is None else size
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or (value < 2 if feedback == "batch" else value != KINDS[feedback].size):  # type: ignore[operator]
        expected = "2 or more" if feedback == "batch" else str(KINDS[feedback].size)
        raise ValueError(f"size must be {expected} for {feedback} questions; got {size!r}. Leave it out.")
    return cast(int, value)


def _checked_kernel(given: object, d: int) -> Kernel | Name:
    if not isinstance(given, str | Kernel):
        raise TypeError(f"kernel must be a GPyTorch kernel or a name; got {given!r}. Write 'matern52', say.")
    if isinstance(given, str):
        kernel(cast(Name, given))
        return cast(Name, given)
    infer(Data.binary(torch.empty(0, d, dtype=torch.float64), torch.empty(0)), given)
    return given


def _whole(name: str, value: object, lowest: int | None) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or (lowest is not None and value < lowest):
        least = "" if lowest is None else f", {lowest} or more"
        raise ValueError(f"{name} must be a whole number{least}; got {value!r}. Leave it out.")
    return value


def _checked_seconds(value: object) -> float | int | None:
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < cast(float, value) < math.inf:
        raise ValueError(
            f"expires must be a positive number of seconds; got {value!r}. Leave it out to wait."
        )
    return cast(float, value)


def _spelled(given: Kernel) -> dict[str, Any]:
    """A kernel of the three that have names, as JSON."""
    prior = covariance(given)
    if not isinstance(prior, Stationary) or given.batch_shape:
        raise ValueError(
            f"kernel must be a name or of the kind that askwise.kernel makes, to be stored; got {given!r}. "
            "Use one of these, or keep the study in memory."
        )
    return {
        "name": prior.name,
        "lengthscale": prior.lengthscale.flatten().tolist(),
        "outputscale": prior.outputscale.item(),
    }
