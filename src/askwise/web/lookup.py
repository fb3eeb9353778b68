"""Dependencies by which routes get the study that an address names."""

from typing import Annotated

from fastapi import Depends, Path, Request

from askwise.web.access import somebody_known
from askwise.web.presenting import Presenting
from askwise.web.studies import Served, Studies


def studies(request: Request) -> Studies:
    """The registry of studies."""
    return request.app.state.studies


def presenting(request: Request) -> Presenting:
    """What makes pictures and sounds of options."""
    return request.app.state.presenting


def _served(
    request: Request,
    study: Annotated[str, Path(description="The id of the study.")],
    known: Annotated[None, Depends(somebody_known)],  # or strangers could open studies, and learn their names
) -> Served:
    return studies(request).get(study)


TheStudy = Annotated[Served, Depends(_served)]
"""The study in the address."""
