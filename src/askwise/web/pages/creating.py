"""A new study, from a form or from TOML."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from askwise.errors import Refused
from askwise.study import FEEDBACKS, template
from askwise.web.access import Owner, OwnersForm
from askwise.web.forms import TYPES, Draft, finding, rows_of
from askwise.web.lookup import studies
from askwise.web.pages.frame import go, with_forms
from askwise.web.problems import status_of

router = APIRouter()
_EXAMPLE: dict[str, Any] = {
    "feedback": "duel",
    "0.type": "real",
    "0.log": "",
    "1.type": "real",
}


@router.get("/new")
def new(request: Request, access: Owner) -> Response:
    """An empty form, and a study file to start from."""
    return _page(request, _EXAMPLE, _plain_template(), "form")


@router.post("/new/check")
def check(request: Request, form: OwnersForm) -> dict[str, Any]:
    """What is wrong with a study, as one types; nothing is written."""
    return vars(finding(form, studies(request).check_new))


@router.post("/new")
def create(request: Request, form: OwnersForm) -> Response:
    """Create it, or show what is wrong beside what was written."""
    try:
        return go(request, f"/studies/{studies(request).create(Draft.sent(form).text).id}")
    except Refused as error:
        mode = str(form.get("mode", "form"))
        text = str(form.get("toml", "")) or _plain_template()
        return _page(request, dict(form), text, mode, error)


def _page(
    request: Request, given: dict[str, Any], text: str, mode: str, error: Refused | None = None
) -> Response:
    rows = sorted(rows_of(given))
    values = {
        "given": given,
        "rows": rows or [0],
        "toml": text,
        "mode": mode,
        "error": error,
        "types": TYPES,
        "kinds": {name: kind.question for name, kind in FEEDBACKS.items()},
    }
    return with_forms(request, "new.html", values, 200 if error is None else status_of(error))


def _plain_template() -> str:
    """The template of `askwise init`, without the keys that a server does not take."""
    lines = template("duel").split("\n")
    return "\n".join(line for line in lines if not line.startswith(("storage =", "# import =")))
