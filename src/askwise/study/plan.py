"""The settings of a study, checked and stored as JSON; some may change, by an event of the record."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from askwise import plugins
from askwise.errors import NotFound, Refused, WrongType
from askwise.rules import checked_level
from askwise.space import Items, Space
from askwise.study.feedback import AVERAGED as AVERAGED
from askwise.study.feedback import Feedback, feedback_of
from askwise.study.people import NAMES, SHARED, People

if TYPE_CHECKING:
    from gpytorch.kernels import Kernel

    from askwise.model import Data
    from askwise.rules import Rule
else:  # only rules and kernels need torch, which takes seconds to import
    Data = Kernel = Rule = Any

_KERNEL = "matern52"  # of studies that do not say
_BUILT_IN = ("se", "matern32", "matern52", AVERAGED)  # need not be looked up, nor torch be imported
_MOST_REPEATS = 0.5  # a repeated question must have been asked before
_NEW: dict[str, object] = {"lapses": "learned", "threshold": "best"}  # what new studies assume of people


CHANGEABLE = ("space", "rule", "level", "kernel", "expires", "repeats")
"""Settings that may change in a study that has begun."""
_ABSENT: dict[str, Any] = {
    "repeats": 0.0,
    "level": None,
    "imports": [],
}  # not written in a plan that has these


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
    """Fixed, the name of one whose parameters are learned from the answers, or ``averaged``."""
    initial: int
    """Number of space-filling questions before the first model."""
    expires: float | int | None
    """Seconds after which an unanswered question may be asked again."""
    repeats: float = 0.0
    """Share of questions that are earlier ones asked again, to see whether the answers agree."""
    level: float | None = None
    """The success rate of the settings it looks for, all of them; None to look for the best setting."""
    people: People = SHARED
    implied: frozenset[str] = frozenset()
    """Settings of new studies that nobody asked for; a study that was begun without them goes on so."""
    typed_rule: str | None = None
    """The rule as it was given, if that was a text, which may leave settings to their defaults."""

    @classmethod
    def checked(cls, *settings: object, enough: bool = True, **named: object) -> "Plan":
        """A plan of a new study with the settings of :meth:`read`, whose space has ``enough`` settings."""
        new = {name: value for name, value in _NEW.items() if named.get(name) is None}
        plan = replace(cls.read(*settings, **(named | new)), implied=frozenset(new))
        if named.get("kernel") is None:
            plan = replace(plan, kernel=plan.kind.kernel, implied=plan.implied | {"kernel"})
        if enough:
            plan.check_enough_anywhere()
        return plan

    @classmethod
    def read(  # noqa: PLR0913 - one for each setting
        cls,
        space: object,
        feedback: object = "duel",
        rule: object = None,
        size: object = None,
        seed: object = 0,
        *,
        kernel: object = None,
        initial: object = None,
        expires: object = None,
        repeats: object = 0.0,
        level: object = None,
        **people: object,
    ) -> "Plan":
        """A plan with these settings, ``people`` those of :class:`People`; refuses invalid ones."""
        kind, where = feedback_of(feedback), as_space(space)
        rate = None if level is None else _checked_level(level, kind)
        return cls(
            where,
            str(feedback),
            _checked_rule(rule, kind, rate),
            kind.check_size(size),
            _whole("seed", seed, lowest=None),
            _KERNEL if kernel is None else _checked_kernel(kernel, where.d),
            _whole("initial", kind.initial if initial is None else initial, lowest=0),
            _checked_seconds(expires),
            _checked_share(repeats),
            rate,
            People.read(kind.compares, **people),
            typed_rule=rule if isinstance(rule, str) else None,
        )

    @functools.cached_property
    def rule(self) -> Rule:
        """The rule that chooses questions."""
        from askwise.rules import parse

        given = self.spelled_rule
        rule = parse(given, recorded=True) if isinstance(given, str) else given
        return rule if self.level is None else rule.at_level(self.level)

    @property
    def has_usual_rule(self) -> bool:
        """Whether the rule is the one of studies that name none."""
        return str(self.spelled_rule) == self.kind.usual_rule(self.level)

    def changed(self, **instead: Any) -> "Plan":
        """The plan with other values of some of the ``CHANGEABLE`` settings."""
        unchecked: dict[str, object] = {"rule": None}  # was checked before: torch need not be imported for it
        if isinstance(self.kernel, str):
            unchecked["kernel"] = _KERNEL
        given = {name: getattr(self, name) for name in CHANGEABLE if name not in unchecked}
        people = {name: getattr(self.people, name) for name in NAMES}
        fixed = {"feedback": self.feedback, "size": self.size, "seed": self.seed, "initial": self.initial}
        plan = Plan.read(**(given | unchecked | instead), **fixed, **people)
        same: dict[str, Any] = {} if "rule" in instead else {"spelled_rule": self.spelled_rule}
        if "kernel" not in instead:
            same["kernel"] = self.kernel
        return replace(plan, space=plan.space.like(self.space), implied=self.implied, **same)

    def changed_by(self, written: Mapping[str, Any]) -> "Plan":
        """The plan after a change that :func:`difference` wrote."""
        given = {name: value for name, value in written.items() if name in CHANGEABLE}
        return _with_modules(
            written.get("imports", []), lambda: self.changed(**_with_rule(_read_back(given)))
        )

    @property
    def kind(self) -> Feedback:
        """The kind of question."""
        return feedback_of(self.feedback)

    def check_enough_anywhere(self) -> None:
        """Refuse a space with too few settings, unless their number depends on the context."""
        if not (self.space.contexts and self.space.constraints):
            self.check_enough(None)

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
        written = {
            "space": self.space.to_dict(),
            "feedback": self.feedback,
            "rule": str(self.spelled_rule),
            "size": self.size,
            "seed": self.seed,
            "kernel": spelled(self.kernel),
            "initial": self.initial,
            "expires": self.expires,
        }
        # what is not the default only, so that plans are written as they were before there was such a key
        added = {"repeats": self.repeats, "level": self.level, "imports": self.imports}
        return _without_absent(written | added) | self.people.to_dict()

    @property
    def imports(self) -> list[str]:
        """Modules of other packages that it needs."""
        own = [] if isinstance(self.spelled_rule, str) else [type(self.spelled_rule)]
        homes = plugins.home_of(*own, *map(type, self.space.parameters.values()))
        return sorted({*homes, *_kernel_home(self.kernel)})

    def written_like(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """The plan as JSON, with what nobody asked for as it is in a stored study."""
        kept = {key: value for key, value in self.to_dict().items() if key not in self.implied}
        if kept["rule"] != stored["rule"] and self._is_rule_of(stored):
            kept["rule"] = stored["rule"]
        if kept["space"] != stored["space"]:
            kept["space"] = self.space.like(Space.from_dict(stored["space"])).to_dict()
        return kept | {key: stored[key] for key in self.implied if key in stored}

    def _is_rule_of(self, stored: Mapping[str, Any]) -> bool:
        """Whether the stored rule is this one although it is written otherwise: its defaults have changed."""
        if stored["rule"] == self.typed_rule:
            return True
        same = str(self.spelled_rule).partition("(")[0] == stored["rule"].partition("(")[0]
        return same and bool(_with_rule(stored)["rule"] == self.rule)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> "Plan":
        """The plan that :meth:`to_dict` wrote."""
        given = dict(settings)
        homes = given.pop("imports", [])

        def read() -> Plan:
            # not refused for want of settings: it may have been begun before that was checked
            back = _read_back(given)
            if homes or not isinstance(back["kernel"], str):
                return cls.read(**_with_rule(back))
            checked = cls.read(**(back | {"rule": None, "kernel": _KERNEL}))
            return replace(checked, spelled_rule=back["rule"], kernel=back["kernel"])

        return _with_modules(homes, read)

    def expected_kernel(self) -> Kernel:
        """The kernel that is expected for this space, with priors on its parameters."""
        from askwise import model

        assert isinstance(self.kernel, str)
        owners = [self.space.parameters[name] for name in self.space.owners]
        chosen = {id(parameter): parameter.dimensions for parameter in owners}
        length = model.expected_length(sum(chosen.values()))
        lengths = [length if one.expected_length is None else one.expected_length for one in owners]
        name = _KERNEL if self.averages else self.kernel
        return model.expected_kernel(name, lengths, averaged=self.averages)

    @property
    def averages(self) -> bool:
        """Whether it averages over kernels."""
        return isinstance(self.kernel, str) and self.kernel == AVERAGED


def as_space(given: object) -> Space:
    """A space; items alone are one with one parameter."""
    space = Space({given.id or "item": given}) if isinstance(given, Items) else given
    if not isinstance(space, Space):
        raise WrongType("space", "be a Space", repr(space), "Write Space(gain=Real(0, 10)), say.")
    return space


def written_after(settings: Mapping[str, Any], changes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A plan as JSON after changes."""
    written = dict(settings)
    for change in changes:
        written |= {name: value for name, value in change.items() if name in (*CHANGEABLE, "imports")}
    return _without_absent(written)


def _without_absent(written: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in written.items() if name not in _ABSENT or value != _ABSENT[name]}


def _read_back(written: Mapping[str, Any]) -> dict[str, Any]:
    """Settings from their JSON, as far as that is not what they are."""
    given = dict(written)
    if "space" in given:
        given["space"] = Space.from_dict(given["space"])
    if isinstance(given.get("kernel"), Mapping):
        from askwise.model import kernel

        parts = given["kernel"]
        given["kernel"] = kernel(parts["name"], parts["lengthscale"], parts["outputscale"])
    return given


def _with_rule(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with the rule that their text meant when it was recorded."""
    if "rule" not in given:
        return dict(given)
    from askwise.rules import parse

    return {**given, "rule": parse(given["rule"], recorded=True)}


def _with_modules(homes: Sequence[str], read: Callable[[], Plan]) -> Plan:
    """What is read; if something is not known, the refusal says which of these modules it comes from."""
    try:
        return read()
    except NotFound as error:
        if not homes:
            raise
        wanted = " ".join(f"--import {home}" for home in homes)
        advice = f"It comes from {', '.join(homes)}: install that, or add {wanted}."
        raise NotFound(error.what, error.expected, error.got, advice) from None


def no_answers(d: int) -> Data:
    """The data of a study in which nothing has been answered yet."""
    import torch

    from askwise.model import Data

    return Data.binary(torch.empty(0, d, dtype=torch.float64), torch.empty(0))


def _checked_level(level: object, kind: Feedback) -> float:
    if kind.compares:
        advice = "Ask yes/no questions, feedback='binary', or leave it out."
        raise Refused("level", "be left out where settings are compared", repr(level), advice)
    return checked_level(level)


def _checked_rule(rule: object, kind: Feedback, level: float | None) -> Rule | str:
    usual = kind.usual_rule(level)
    if rule is None or (isinstance(rule, str) and rule == usual):
        return usual
    from askwise.rules import Rule, parse

    if not isinstance(rule, str | Rule):
        raise WrongType("rule", "be a Rule or its spelling", repr(rule), "Write rule='muc', say.")
    chosen = parse(rule) if isinstance(rule, str) else rule
    if kind.asks not in chosen.asks:
        kinds = ", ".join(sorted(chosen.asks))
        got = f"{chosen}, which asks {kinds}"
        raise Refused("rule", f"ask {kind.asks} questions", got, "Choose another.")
    if level is None:
        return chosen
    # the study says the level, once: in a record the rule is spelled without it
    plain = chosen.at_level(None)
    if chosen not in (plain, plain.at_level(level)):
        raise Refused("rule", f"have the level of the study, {level:g}", chosen, "Leave out its level.")
    return plain


def _checked_kernel(given: object, d: int) -> Kernel | str:
    if isinstance(given, str) and given in _BUILT_IN:
        return given
    from gpytorch.kernels import Kernel

    from askwise import model

    if not isinstance(given, str | Kernel):
        raise WrongType("kernel", "be a GPyTorch kernel or a name", repr(given), "Write 'matern52', say.")
    if isinstance(given, str):
        try:
            model.kernel(given)
        except NotFound as error:
            raise NotFound(
                error.what, f"{error.expected}, or {AVERAGED!r}", error.got, error.advice
            ) from None
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


def spelled(given: Kernel | str) -> str | dict[str, Any]:
    """A name, or one of the three built-in kernels, as JSON."""
    if isinstance(given, str):
        return given
    from askwise import model

    prior = model.covariance(given)
    if not isinstance(prior, model.Stationary) or prior.lanes:
        expected = "be a name or a kernel made by askwise.kernel, to be stored"
        raise Refused("kernel", expected, repr(given), "Use one of these, or keep the study in memory.")
    length, variance = prior.lengthscale.flatten().tolist(), prior.outputscale.item()
    return {"name": prior.name, "lengthscale": length, "outputscale": variance}
