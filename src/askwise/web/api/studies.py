"""Studies: list, create, look at one."""

from fastapi import APIRouter, Request

from askwise.web.access import Owner
from askwise.web.api.models import StudyOut
from askwise.web.lookup import TheStudy, studies
from askwise.web.studies import Served

router = APIRouter(tags=["studies"])


def summary(served: Served) -> StudyOut:
    """A study in a list."""
    study = served.study
    return StudyOut(
        id=served.id,
        name=served.name,
        question=served.config.question,
        feedback=study.feedback,
        size=study.size,
        participants=study.plan.people.participants,
        answers=study.count(),
    )


@router.get("/studies")
def list_studies(request: Request, access: Owner) -> list[StudyOut]:
    """All studies that are served."""
    return [summary(served) for served in studies(request)]


@router.get("/studies/{study}")
def show_study(study: TheStudy, access: Owner) -> StudyOut:
    """One study."""
    return summary(study)
