"""Changes of a study that has begun: what may change, how the record keeps it, and how people read it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from askwise.errors import Refused
from askwise.space import Space
from askwise.storage import Event
from askwise.study.people import SHARED
from askwise.study.plan import AVERAGED, CHANGEABLE, Plan, spelled, written_after

if TYPE_CHECKING:
    from gpytorch.kernels import Kernel

    from askwise.study.model import Model
else:  # only models and kernels need torch, which takes seconds to import
    Kernel = Model = Any

_KIND = "the answers so far are to questions of another kind"
_PEOPLE = "it says how the answers so far came about"
_WHY = {
    "feedback": _KIND,
    "size": _KIND,
    "seed": "the questions so far were drawn by it",
    "initial": "it says which of the questions so far were to fill the space",
    **dict.fromkeys(("participants", "aim", "lapses", "guess", "noise", "threshold"), _PEOPLE),
    "name": "the study is found by it",
    "storage": "the record is kept there",
}
BEGIN_ANOTHER = "Begin another study; record_many, or `askwise import`, takes the answers along."


@dataclass(frozen=True)
class Change:
    """A change of a study, as the record has it."""

    number: int
    """Number of its event."""
    at: float
    """When it was made, in seconds since 1970."""
    words: list[str]
    """What changed, such as ``gain: 0 to 40 becomes 0 to 60 dB``."""
    reason: str | None
    """Why, if somebody said so."""


def refusal(name: str, stays: object, got: object, place: str = "") -> Refused:
    """The refusal to change a setting on which the answers so far depend."""
    why = _WHY.get(name, "what was asked depends on it")
    expected = f"stay as it was at the first question, {stays}, since {why}"
    return Refused(name, expected, got, BEGIN_ANOTHER, place)


def check_changeable(plan: Plan, others: Mapping[str, object]) -> None:
    """Refuse to change settings that must stay, saying why."""
    for name, value in others.items():
        if name not in _WHY:
            raise Refused("setting", f"be one of {', '.join(CHANGEABLE)}", repr(name), "Change one of these.")
        stays = getattr(plan, name, getattr(plan.people, name, "one of these"))
        raise refusal(name, repr(stays), repr(value))


def check_same(
    plan: Plan, settings: Mapping[str, Any], changes: Sequence[Mapping[str, Any]], name: str
) -> None:
    """Refuse a plan that is not that of a stored study after its changes."""
    now = written_after(settings, changes)
    if plan.to_dict() == now or (given := plan.written_like(now)) == now:
        return
    # what is not written has the default
    stored, asked = ({"repeats": 0.0, "level": None, **asdict(SHARED), **one} for one in (now, given))
    first = next(key for key in {**now, **given} if asked.get(key) != stored.get(key))
    if changes and plan.written_like(settings) == settings:
        expected = f"be as study {name!r} is since it was changed, {stored.get(first)!r}"
        got = f"{asked.get(first)!r}, with which it began"
        raise Refused(first, expected, got, "Open it by Study.open.")
    change = f"Study.open(...).change({first}=...)"
    advice = f"To go on so, use {change}; or " if first in CHANGEABLE else ""
    advice += "open it by Study.open, or choose another name."
    advice = advice[0].upper() + advice[1:]
    if first == "space":
        Space.from_dict(stored[first]).check_same_items(Space.from_dict(asked[first]), name, advice)
    is_now = "is" if changes else "was created with"
    expected = f"be as study {name!r} {is_now}, {stored.get(first)!r}"
    raise Refused(first, expected, repr(asked.get(first)), advice)


def difference(before: Plan, after: Plan) -> tuple[dict[str, Any], list[str]]:
    """What the record keeps of a change, and the same in words; both empty if nothing changes."""
    written: dict[str, Any] = {}
    said = before.space.change_to(after.space)
    if before.space.to_dict() != after.space.to_dict():
        written["space"] = after.space.to_dict()
    if str(before.spelled_rule) != str(after.spelled_rule):
        written["rule"] = str(after.spelled_rule)
        said.append(f"rule: {before.spelled_rule} becomes {after.spelled_rule}")
    if before.level != after.level:
        written["level"] = after.level
        said.append(f"level: {_level_text(before.level)} becomes {_level_text(after.level)}")
    if not _is_same_kernel(before.kernel, after.kernel):
        written["kernel"] = spelled(after.kernel)
        said.append(f"kernel: {_kernel_text(before.kernel)} becomes {_kernel_text(after.kernel)}")
    if before.expires != after.expires:
        written["expires"] = after.expires
        said.append(f"expires: {_expiry(before.expires)} becomes {_expiry(after.expires)}")
    if before.repeats != after.repeats:
        written["repeats"] = after.repeats
        said.append(f"repeats: {before.repeats:g} becomes {after.repeats:g}")
    if written and before.imports != after.imports:
        written["imports"] = after.imports
    return written, said


class Course:
    """The plan of a study and the model by it, as they change with the record."""

    def __init__(self, plan: Plan, shared: bool = False) -> None:
        """Begin with this plan; ``shared``: with programs whose learned kernels are worth looking for."""
        self._shared, self._followed = shared, 0
        self._plan = plan
        self._model: Model | None = None

    def plan_after(self, changes: Mapping[int, Event]) -> Plan:
        """The plan after these changes, of which earlier ones were the first."""
        if len(changes) > self._followed:
            for event in list(changes.values())[self._followed :]:
                self._plan = self._plan.changed_by(event.body)
            self._followed = len(changes)
        return self._plan

    def model_after(self, changes: Mapping[int, Event]) -> Model:
        """The model by that plan."""
        plan = self.plan_after(changes)
        if self._model is None or self._model.plan is not plan:
            self._model = self._model_of(plan)
        return self._model

    def _model_of(self, plan: Plan) -> Model:
        from askwise.study.model import Model
        from askwise.study.shelf import Shelf

        return Model(plan, Shelf(plan) if self._shared else None)


def told(plan: Plan, events: Iterable[Event]) -> list[Change]:
    """The changes of a study that began with this plan, in words."""
    found = []
    for event in events:
        after = plan.changed_by(event.body)
        _, words = difference(plan, after)
        found.append(Change(event.number, event.at, words, event.body.get("reason")))
        plan = after
    return found


def _is_same_kernel(before: Kernel | str, after: Kernel | str) -> bool:
    if before is after:
        return True
    try:
        return spelled(before) == spelled(after)
    except Refused:  # one that cannot be written; if it is the new one, writing it will be refused
        return False


def _kernel_text(kernel: Kernel | str) -> str:
    if isinstance(kernel, str):
        return kernel if kernel == AVERAGED else f"{kernel}, learned"
    from askwise.model import covariance

    prior = covariance(kernel)
    return f"{getattr(prior, 'name', type(kernel).__name__)}, fixed"


def _level_text(level: float | None) -> str:
    return "none" if level is None else f"{level:g}"


def _expiry(seconds: float | None) -> str:
    return "never" if seconds is None else f"after {seconds:g} s"
