"""Questions and answers: ask, tell, skip, amend, void, undo, expire, record, history.

Each may be sent again after a lost connection: a question that is open is asked again, the same answer
changes nothing, and what is recorded or taken back has a key.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from pydantic import StringConstraints

from askwise.errors import Refused
from askwise.study.answers import UNGIVEN
from askwise.web.access import Access, Owner, Person, acting, gate, the_link
from askwise.web.api.models import (
    AmendIn,
    AskIn,
    DoneOut,
    EntryOut,
    ExpireIn,
    JoinIn,
    JoinOut,
    QuestionOut,
    RecordIn,
    SkipIn,
    TellIn,
    UndoIn,
    UndoneOut,
    VoidIn,
)
from askwise.web.lookup import TheStudy, studies
from askwise.web.studies import Served

router = APIRouter(tags=["questions"], prefix="/studies/{study}")
Key = Annotated[
    Annotated[str, StringConstraints(min_length=1, max_length=200)] | None,
    Header(alias="Idempotency-Key", description="Done once with the same key."),
]


@router.post("/join")
def join(request: Request, study: TheStudy, access: Person, sent: JoinIn) -> JoinOut:
    """A token for one participant, in exchange for a link that is for anybody."""
    link = the_link(access, study.name)
    who = gate(request).newcomer(link, sent.participant) if access.participant is None else access.participant
    return JoinOut(participant=who, token=gate(request).pass_of(link, who))


@router.post("/ask")
def ask(request: Request, study: TheStudy, access: Person, sent: AskIn) -> QuestionOut:
    """The next question for this participant; the previous one if it is still open."""
    who = acting(access, study.name, sent.participant)
    question = studies(request).ask(study, who, sent.context, sent.beside)
    return QuestionOut.of(study, question, blinded=not access.is_owner)


@router.post("/tell")
def tell(request: Request, study: TheStudy, access: Person, sent: TellIn) -> DoneOut:
    """Record an answer; another one to the same question is a conflict (409)."""
    _check_own(access, study, sent.question)
    study.study.tell(sent.question, seconds=sent.seconds, **sent.told)
    return _done(request, study, sent.question, access, sent.next)


@router.post("/skip")
def skip(request: Request, study: TheStudy, access: Person, sent: SkipIn) -> DoneOut:
    """Record that there will be no answer."""
    _check_own(access, study, sent.question)
    study.study.skip(sent.question, sent.seconds, reason=sent.reason)
    return _done(request, study, sent.question, access, sent.next)


@router.post("/amend")
def amend(request: Request, study: TheStudy, access: Owner, sent: AmendIn) -> DoneOut:
    """Replace an answer; the one before stays in the record."""
    study.study.amend(sent.question, reason=sent.reason, **sent.told)
    return _done(request, study, sent.question, access)


@router.post("/void")
def void(request: Request, study: TheStudy, access: Owner, sent: VoidIn) -> DoneOut:
    """Take a question and its answer out of the model; both stay in the record."""
    study.study.void(sent.question, sent.reason)
    return _done(request, study, sent.question, access)


@router.post("/undo")
def undo(request: Request, study: TheStudy, access: Owner, sent: UndoIn, key: Key = None) -> UndoneOut:
    """Take back the last answers and skips, once with the same key; their questions are asked again."""
    key = sent.key or key
    if key is None:
        advice = "Send a new one with each request, and the same if you have to send it again."
        raise Refused("key", "be given, or the header Idempotency-Key", "none", advice)
    taken = study.study.undo(sent.n, key=key, **sent.whose)
    studies(request).tell_others(study)
    shown = [QuestionOut.of(study, question, blinded=False) for question in taken]
    return UndoneOut(questions=shown, answers=study.study.count())


@router.post("/expire")
def expire(request: Request, study: TheStudy, access: Owner, sent: ExpireIn) -> DoneOut:
    """Give up waiting for an answer, so that the question may be asked again."""
    study.study.expire(sent.question)
    return _done(request, study, sent.question, access)


@router.post("/record", status_code=201)
def record(request: Request, study: TheStudy, access: Owner, sent: RecordIn, key: Key = None) -> DoneOut:
    """Add a question that was asked and answered elsewhere; with the same key, once."""
    whose: dict[str, Any] = {"participant": sent.participant, "seconds": sent.seconds}
    question = study.study.record(sent.options, key=sent.key or key, **whose, **sent.told)
    return _done(request, study, question.id, access)


@router.get("/history")
def history(study: TheStudy, access: Owner) -> list[EntryOut]:
    """Every question, by number, and what became of it."""
    return [EntryOut.of(entry) for entry in study.study.history()]


@router.get("/history/{question}")
def entry(study: TheStudy, access: Owner, question: int) -> EntryOut:
    """One question, and what became of it."""
    return EntryOut.of(study.study.entry(question))


def _check_own(access: Access, study: Served, question: int) -> None:
    """Participants answer their own questions only; of others they do not learn that there are any."""
    if not access.is_owner:
        study.check_asked(question, acting(access, study.name, None))


def _done(request: Request, study: Served, question: int, access: Access, more: bool = False) -> DoneOut:
    """What became of a question, and perhaps the next one for the same participant."""
    studies(request).tell_others(study)
    entry = study.study.entry(question)
    count = study.study.count("answered", UNGIVEN if access.is_owner else entry.participant)
    done = DoneOut(id=question, status=entry.status, answers=count)
    if more and not studies(request).is_paused(study):
        next_one = studies(request).ask(study, entry.participant, entry.context)
        done.next = QuestionOut.of(study, next_one, blinded=not access.is_owner)
    return done
