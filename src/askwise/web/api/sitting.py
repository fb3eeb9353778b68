"""A participant's sitting: the next question with what is shown of it, up to the planned number."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from askwise.web.access import Access, Person, acting
from askwise.web.api.models import Number, TellIn
from askwise.web.lookup import TheStudy, presenting, studies
from askwise.web.presenting import Look
from askwise.web.sitting import Moment, Sitting
from askwise.web.studies import Served

router = APIRouter(tags=["sittings"], prefix="/studies/{study}/sitting")


class AnswerIn(TellIn):
    """An answer of a participant."""

    again: Annotated[bool, Field(description="Whether it replaces the last answer.")] = False


class AheadIn(BaseModel):
    """The question that somebody is thinking about."""

    question: Number


class LookOut(BaseModel):
    """What is shown of an option."""

    kind: Annotated[str, Field(description="parameters, text, image, audio, video, html or missing.")]
    rows: Annotated[list[dict[str, Any]] | None, Field(description="Name and value of each parameter.")] = (
        None
    )
    text: str | None = None
    src: Annotated[str | None, Field(description="Where a picture, sound, film or page is.")] = None


class ShownOut(BaseModel):
    """A question as a participant sees it."""

    id: int
    labels: list[str]
    looks: list[LookOut]
    again: bool


class MomentOut(BaseModel):
    """Where a participant is."""

    answered: int
    planned: int | None
    shown: ShownOut | None
    pause: bool
    paused: bool
    noted: Annotated[bool, Field(description="Whether the answer was taken; the question may have another.")]
    code: str | None
    reveal: list[LookOut]


@router.post("/next")
def next_question(request: Request, study: TheStudy, access: Person) -> MomentOut:
    """The next question of this participant, or the end."""
    return _out(request, _sitting(request, study, access).now())


@router.post("/answer")
def answer(request: Request, study: TheStudy, access: Person, sent: AnswerIn) -> MomentOut:
    """Record an answer, and get the next question; the same answer again changes nothing."""
    sitting = _sitting(request, study, access)
    return _out(request, sitting.answer(sent.question, sent.told, sent.seconds, sent.again))


@router.post("/back")
def back(request: Request, study: TheStudy, access: Person) -> MomentOut:
    """The last answered question, to be answered again."""
    return _out(request, _sitting(request, study, access).back())


@router.post("/end")
def end(request: Request, study: TheStudy, access: Person) -> MomentOut:
    """Stop answering: thanks and the completion code."""
    return _out(request, _sitting(request, study, access).end())


@router.post("/ahead")
def ahead(request: Request, study: TheStudy, access: Person, sent: AheadIn) -> list[LookOut]:
    """What may be shown next, to be loaded while somebody thinks; in no order that would tell anything."""
    looks = _sitting(request, study, access).ahead(sent.question)
    return [_look(request, look) for look in looks]


def _sitting(request: Request, study: Served, access: Access) -> Sitting:
    return Sitting(studies(request), presenting(request), study, acting(access, study.name, None))


def _out(request: Request, moment: Moment) -> MomentOut:
    shown, parts = moment.shown, vars(moment) | {"shown": None}
    parts["reveal"] = [_look(request, look) for look in moment.reveal]
    if shown is not None:
        looks = [_look(request, look) for look in shown.looks]
        parts["shown"] = ShownOut(**vars(shown) | {"looks": looks})
    return MomentOut(**parts)


def _look(request: Request, look: Look) -> LookOut:
    """With the address at which the browser finds it."""
    root = request.scope.get("root_path", "").rstrip("/")
    place = {"src": f"{root}/media/{look['media']}"} if "media" in look else {}
    return LookOut.model_validate(look | place)
