"""What the experimenter takes along: the record as CSV and JSON, and figures."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from askwise.web import figures
from askwise.web.access import Owner
from askwise.web.desk import key_of
from askwise.web.lens import Lens
from askwise.web.lookup import TheStudy, studies
from askwise.web.pages.frame import framed

router = APIRouter(prefix="/studies/{study}")


@router.get("/export")
def show(request: Request, study: TheStudy, access: Owner) -> Response:
    """All files that there are."""
    titles = {name: title for name, (title, _) in figures.FIGURES.items()}
    if len(study.study.participants()) < 2:
        titles.pop("raters")
    if study.study.plan.level is None:
        titles.pop("level")
    lens = Lens.of(study.study, request.query_params)
    values = {"figures": titles, "kinds": list(figures.KINDS), "lens": lens, "tab": "export"}
    return framed(request, study, "export.html", values)


@router.get("/figures/{name}.{kind}")
def figure(request: Request, study: TheStudy, access: Owner, name: str, kind: str) -> Response:
    """A figure as PNG, SVG or PDF."""
    lens = Lens.of(study.study, request.query_params)
    key = (study.id, "figure", name, kind, lens.key, key_of(study.study))
    drawn = studies(request).desk.get(key, lambda: figures.figure(study.study, lens, name, kind))
    headers = {"Content-Disposition": f'attachment; filename="{study.id}-{name}.{kind}"'}
    return Response(drawn, media_type=figures.KINDS[kind], headers=headers)
