"""The settings of a study: checked once, stored as JSON, never changed."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from askwise import plugins
from askwise.errors import NotFound, Refused, WrongType
from askwise.space import Items, Space
from askwise.study.feedback import Feedback, feedback_of
from askwise.study.people import SHARED, People

if TYPE_CHECKING:
    from gpytorch.kernels import Kernel

    from askwise.model import Data
    from askwise.rules import Rule
else:  # only rules and kernels need torch, which takes seconds to import
    Data = Kernel = Rule = Any

_KERNEL = "matern52"
_BUILT_IN = ("se", "matern32", "matern52")  # kernels that need not be looked up, nor torch be imported
_MOST_REPEATS = 0.5  # a repeated question must have been asked before
_NEW: dict[str, object] = {"lapses": "learned", "threshold": "best"}  # what new studies assume of people


@dataclass(frozen=True, eq=False)
class Plan:
    """The checked settings of a study."""

    space: Space
    feedback: str
    """``binary``, ``duel`` or ``batch``."""
    spelled_rule: Rule | str
    """The rule; or its spelling, if it is one of ours that was checked before and nobody has used it yet."""
    size: int
    seed: int
    kernel: Kernel | str
    """Fixed, or the name of one whose parameters are learned from the answers."""
    initial: int
    """Number of space-filling questions before the first model."""
    expires: float | int | None
    """Seconds after which an unanswered question may be asked again."""
    repeats: float = 0.0
    """Share of questions that are earlier ones asked again, to see whether the answers agree."""
    people: People = SHARED
    implied: frozenset[str] = frozenset()
    """Settings of new studies that nobody asked for; a study that was begun without them goes on so."""

    @classmethod
    def checked(cls, *settings: object, enough: bool = True, **named: object) -> "Plan":
        """A plan of a new study with the settings of :meth:`read`, whose space has ``enough`` settings."""
        new = {name: value for name, value in _NEW.items() if named.get(name) is None}
        plan = replace(cls.read(*settings, **(named | new)), implied=frozenset(new))
        if not enough or (plan.space.contexts and plan.space.constraints):
            return plan  # how many settings there are depends on the context
        plan.check_enough(None)
        return plan

    @classmethod
    def read(  # noqa: PLR0913 - one for each setting
        cls,
        space: object,
        feedback: object = "duel",
        rule: object = None,
        size: object = None,
        seed: object = 0,
        kernel: object = _KERNEL,
        initial: object = None,
        expires: object = None,
        repeats: object = 0.0,
        **people: object,
    ) -> "Plan":
        """A plan with these settings, ``people`` those of :class:`People`; refuses invalid ones."""
        if isinstance(space, Items):
            space = Space({space.id or "item": space})
        if not isinstance(space, Space):
            raise WrongType("space", "be a Space", repr(space), "Write Space(gain=Real(0, 10)), say.")
        kind = feedback_of(feedback)
        return cls(
            space,
            str(feedback),
            _checked_rule(rule, kind),
            kind.check_size(size),
            _whole("seed", seed, lowest=None),
            _checked_kernel(kernel, space.d),
            _whole("initial", kind.initial if initial is None else initial, lowest=0),
            _checked_seconds(expires),
            _checked_share(repeats),
            People.read(kind.compares, **people),
        )

    @functools.cached_property
    def rule(self) -> Rule:
        """The rule that chooses questions."""
        from askwise.rules import parse

        return parse(self.spelled_rule) if isinstance(self.spelled_rule, str) else self.spelled_rule

    @property
    def kind(self) -> Feedback:
        """The kind of question."""
        return feedback_of(self.feedback)

    def check_enough(self, context: Mapping[str, Any] | None) -> None:
        """Refuse a space that has too few settings to ask about, or hides them too well."""
        needed = max(2, self.size)
        found = self.space.count(context)
        if found < needed:
            each = "" if self.size < 2 else f", as many as a question shows ({self.size})"
            others = "and perhaps others that are too close to each other, or hard to find"
            got = f"{found} {others}" if self.space.constraints else found
            advice = "Loosen a constraint, narrow the ranges, or compute a parameter from the others."
            if not self.space.constraints:
                advice = "Add values or parameters." if self.size < 2 else "Add values, or lower the size."
            raise Refused("space", f"have {needed} settings or more{each}", got, advice)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON, which :meth:`from_dict` reads back."""
        own = [] if isinstance(self.spelled_rule, str) else [type(self.spelled_rule)]
        homes = plugins.home_of(*own, *map(type, self.space.parameters.values()))
        homes = sorted({*homes, *_kernel_home(self.kernel)})
        written = {
            "space": self.space.to_dict(),
            "feedback": self.feedback,
            "rule": str(self.spelled_rule),
            "size": self.size,
            "seed": self.seed,
            "kernel": self.kernel if isinstance(self.kernel, str) else _spelled(self.kernel),
            "initial": self.initial,
            "expires": self.expires,
        }
        # what is not the default only, so that plans are written as they were before there was such a key
        added = {"repeats": self.repeats, "imports": homes}
        return written | {key: value for key, value in added.items() if value} | self.people.to_dict()

    def written_like(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """The plan as JSON, with what nobody asked for as it is in a stored study."""
        kept = {key: value for key, value in self.to_dict().items() if key not in self.implied}
        return kept | {key: stored[key] for key in self.implied if key in stored}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> "Plan":
        """The plan that :meth:`to_dict` wrote."""
        given = dict(settings)
        homes = given.pop("imports", [])
        if isinstance(given["kernel"], Mapping):
            from askwise.model import kernel

            spelled = given["kernel"]
            given["kernel"] = kernel(spelled["name"], spelled["lengthscale"], spelled["outputscale"])
        try:
            # not refused for want of settings: it may have been begun before that was checked
            space = Space.from_dict(given.pop("space"))
            if homes or not isinstance(given["kernel"], str):
                return cls.read(space, **given)
            checked = cls.read(space, **(given | {"rule": None, "kernel": _KERNEL}))
            return replace(checked, spelled_rule=given["rule"], kernel=given["kernel"])
        except NotFound as error:
            if not homes:
                raise
            wanted = " ".join(f"--import {home}" for home in homes)
            advice = f"It comes from {', '.join(homes)}: install that, or add {wanted}."
            raise NotFound(error.what, error.expected, error.got, advice) from None

    def expected_kernel(self) -> Kernel:
        """The kernel that is expected for this space, with priors on its parameters."""
        from askwise import model

        assert isinstance(self.kernel, str)
        owners = [self.space.parameters[name] for name in self.space.owners]
        chosen = {id(parameter): parameter.dimensions for parameter in owners}
        length = model.expected_length(sum(chosen.values()))
        lengths = [length if one.expected_length is None else one.expected_length for one in owners]
        return model.expected_kernel(self.kernel, lengths)


def no_answers(d: int) -> Data:
    """The data of a study in which nothing has been answered yet."""
    import torch

    from askwise.model import Data

    return Data.binary(torch.empty(0, d, dtype=torch.float64), torch.empty(0))


def _checked_rule(rule: object, kind: Feedback) -> Rule | str:
    if rule is None or (isinstance(rule, str) and rule == kind.rule):
        return kind.rule
    from askwise.rules import Rule, parse

    if not isinstance(rule, str | Rule):
        raise WrongType("rule", "be a Rule or its spelling", repr(rule), "Write rule='muc', say.")
    chosen = parse(rule) if isinstance(rule, str) else rule
    if kind.asks not in chosen.asks:
        kinds = ", ".join(sorted(chosen.asks))
        got = f"{chosen}, which asks {kinds}"
        raise Refused("rule", f"ask {kind.asks} questions", got, "Choose another.")
    return chosen


def _checked_kernel(given: object, d: int) -> Kernel | str:
    if isinstance(given, str) and given in _BUILT_IN:
        return given
    from gpytorch.kernels import Kernel

    from askwise import model

    if not isinstance(given, str | Kernel):
        raise WrongType("kernel", "be a GPyTorch kernel or a name", repr(given), "Write 'matern52', say.")
    if isinstance(given, str):
        model.kernel(given)
    else:
        model.infer(no_answers(d), given)
    return given


def _kernel_home(given: Kernel | str) -> list[str]:
    """The module that registered a kernel family; empty if it is built in."""
    if not isinstance(given, str) or given in _BUILT_IN:
        return []
    from askwise.model import kernel_home

    return kernel_home(given)


def _whole(name: str, value: object, lowest: int | None) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or (lowest is not None and value < lowest):
        least = "" if lowest is None else f", {lowest} or more"
        raise Refused(name, f"be a whole number{least}", repr(value), "Leave it out.")
    return value


def _checked_seconds(value: Any) -> float | int | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 < value < math.inf):
        raise Refused(
            "expires", "be a positive number of seconds", repr(value), "Leave it out to wait for ever."
        )
    return value


def _checked_share(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0 <= value <= _MOST_REPEATS):
        expected = f"be a share of questions from 0 to {_MOST_REPEATS}"
        raise Refused("repeats", expected, repr(value), "Write 0.05 for one in twenty, or leave it out.")
    return float(value)


def _spelled(given: Kernel) -> dict[str, Any]:
    """One of the three built-in kernels, as JSON."""
    from askwise import model

    prior = model.covariance(given)
    if not isinstance(prior, model.Stationary) or given.batch_shape:
        expected = "be a name or a kernel made by askwise.kernel, to be stored"
        raise Refused("kernel", expected, repr(given), "Use one of these, or keep the study in memory.")
    length, variance = prior.lengthscale.flatten().tolist(), prior.outputscale.item()
    return {"name": prior.name, "lengthscale": length, "outputscale": variance}
