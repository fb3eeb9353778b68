"""The experimenter's page about one study, and the numbers that its script asks for."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from askwise.plots.scene import NothingToDraw
from askwise.study import Study
from askwise.web import charts, overview, quality
from askwise.web.access import Owner, OwnersForm
from askwise.web.desk import answers_key, key_of
from askwise.web.lens import Lens, chosen
from askwise.web.lookup import TheStudy, studies
from askwise.web.pages.frame import framed, go
from askwise.web.studies import Served

router = APIRouter(prefix="/studies/{study}")
Names = Annotated[list[str], Query(max_length=2)]


@router.get("")
def show(request: Request, study: TheStudy, access: Owner) -> Response:
    """One study: what is known, and how well people answer."""
    lens = Lens.of(study.study, request.query_params)
    values = {
        "lens": lens,
        "chosen": chosen(study.study.space),
        "counts": overview.counts(study.study.history()),
        "tab": "overview",
    }
    return framed(request, study, "study.html", values)


@router.post("/pause")
def pause(request: Request, study: TheStudy, form: OwnersForm) -> Response:
    """Ask nothing for now, or go on."""
    studies(request).pause(study, form.get("paused") == "yes")
    return go(request, f"/studies/{study.id}")


@router.get("/live")
def live(request: Request, study: TheStudy, access: Owner) -> dict[str, Any]:
    """What changes with every event, and the name of the answers, by which a page knows what is stale."""
    entries = study.study.history()
    return {
        "key": answers_key(entries),
        "counts": overview.counts(entries),
        "paused": studies(request).is_paused(study),
        "last": max((entry.asked for entry in entries), default=None),
    }


@router.get("/outlook")
def outlook(request: Request, study: TheStudy, access: Owner) -> dict[str, Any]:
    """The recommended setting, whether to go on, and the checks of the answers."""
    return _kept(request, study, "outlook", overview.outlook)


@router.get("/importance")
def importance(request: Request, study: TheStudy, access: Owner) -> dict[str, Any]:
    """Which parameters matter."""
    return _kept(request, study, "importance", overview.importance)


@router.get("/people")
def people(request: Request, study: TheStudy, access: Owner) -> list[dict[str, Any]]:
    """How well everybody answers."""
    return _kept(request, study, "people", quality.people)


@router.get("/slices")
def slices(request: Request, study: TheStudy, access: Owner) -> dict[str, Any]:
    """Predictions along each parameter."""
    return _kept(request, study, "slices", charts.slices)


@router.get("/map")
def map_of(request: Request, study: TheStudy, access: Owner, over: Names) -> dict[str, Any]:
    """Values over two parameters."""

    def compute(model: Study, lens: Lens) -> dict[str, Any]:
        return charts.map_of(model, lens, over)

    return _kept(request, study, f"map {over}", compute)


def _kept(request: Request, study: Served, name: str, compute: Callable[[Study, Lens], Any]) -> Any:
    """What was computed for these answers, or is now, after participants' questions."""
    lens = Lens.of(study.study, request.query_params)
    key = (study.id, name, lens.key, key_of(study.study))
    try:
        return studies(request).desk.get(key, lambda: compute(study.study, lens))
    except NothingToDraw:
        return {"missing": overview.missing(study.study)}
