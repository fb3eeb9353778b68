"""A change of a study that was sent as JSON, as the arguments of :meth:`askwise.Study.change`."""

from collections.abc import Mapping
from typing import Any

from askwise.errors import Refused
from askwise.model import kernel
from askwise.space import Space
from askwise.study import Plan
from askwise.study.changes import check_changeable
from askwise.web.api.models import ChangeIn, KernelIn
from askwise.web.studies import checked_text
from askwise.web.toml import toml_of


def arguments(sent: ChangeIn, plan: Plan) -> dict[str, Any]:
    """What to go on with; only what was sent, since null means something."""
    check_changeable(plan, sent.model_extra or {})
    given = {name: getattr(sent, name) for name in ("rule", "level", "expires", "repeats", "reason")}
    given = {name: value for name, value in given.items() if name in sent.model_fields_set}
    if "kernel" in sent.model_fields_set:
        given["kernel"] = _kernel(sent.kernel)
    if sent.space is not None:
        given["space"] = _space(sent.space, sent.constraints or [])
    elif sent.constraints is not None:
        given["space"] = Space(plan.space.parameters).where(*sent.constraints)
    return given


def _kernel(sent: str | KernelIn) -> Any:
    return sent if isinstance(sent, str) else kernel(sent.name, sent.lengthscale, sent.outputscale)


def _space(tables: Mapping[str, Mapping[str, Any]], constraints: list[str]) -> Space:
    """The space of these tables, read as those of a new study are."""
    try:
        return checked_text(toml_of(None, {"name": "changed", "constraints": constraints}, tables)).space
    except Refused as error:  # its line is one of a text that nobody has seen
        raise type(error)(error.what, error.expected, error.got, error.advice) from None
