"""Studies: list, create, look at one, change, pause."""

from fastapi import APIRouter, Request

from askwise.web.access import Owner, Person, gate
from askwise.web.api.changing import arguments
from askwise.web.api.models import (
    ChangedOut,
    ChangeIn,
    ChangeOut,
    LinkIn,
    LinkOut,
    PauseIn,
    StudyIn,
    StudyOut,
    WhoOut,
)
from askwise.web.lookup import TheStudy, studies
from askwise.web.serverfile import Link
from askwise.web.studies import Served, id_of
from askwise.web.toml import toml_of

router = APIRouter(tags=["studies"])


def _shown(request: Request, served: Served) -> StudyOut:
    return StudyOut.of(served, studies(request).is_paused(served))


@router.get("/whoami")
def whoami(access: Person) -> WhoOut:
    """Whose token was sent, and for which study it is good; null for all."""
    study = None if access.link is None else id_of(access.link.study)
    return WhoOut(owner=access.is_owner, study=study, participant=access.participant)


@router.get("/studies")
def list_studies(request: Request, access: Owner) -> list[StudyOut]:
    """All studies that are served."""
    return [_shown(request, served) for served in studies(request)]


@router.post("/studies", status_code=201)
def create(request: Request, access: Owner, sent: StudyIn) -> StudyOut:
    """Create a study; the same study again changes nothing.

    It is kept in the server's database, so it names no storage, module or file.
    """
    return _shown(request, studies(request).create(toml_of(sent.toml, sent.study, sent.space)))


@router.get("/studies/{study}")
def show(request: Request, study: TheStudy, access: Owner) -> StudyOut:
    """One study."""
    return _shown(request, study)


@router.post("/studies/{study}/change")
def change(request: Request, study: TheStudy, access: Owner, sent: ChangeIn) -> ChangedOut:
    """Go on with other settings; all answers stay. The same change again changes nothing."""
    words = study.study.change(**arguments(sent, study.study.plan))
    studies(request).tell_others(study)
    return ChangedOut(changes=words)


@router.get("/studies/{study}/changes")
def changes(study: TheStudy, access: Owner) -> list[ChangeOut]:
    """Every change of the study, in order."""
    return [ChangeOut(**vars(one)) for one in study.study.changes()]


@router.post("/studies/{study}/pause")
def pause(request: Request, study: TheStudy, access: Owner, sent: PauseIn) -> StudyOut:
    """Ask nothing for now, or go on; open questions may still be answered."""
    studies(request).pause(study, sent.paused)
    return _shown(request, study)


@router.get("/studies/{study}/links")
def list_links(request: Request, study: TheStudy, access: Owner) -> list[LinkOut]:
    """Links of participants, also those that were revoked."""
    return [
        _link(request, link) for link in gate(request).file.kept.links.values() if link.study == study.name
    ]


@router.post("/studies/{study}/links", status_code=201)
def add_link(request: Request, study: TheStudy, access: Owner, sent: LinkIn) -> LinkOut:
    """A new link, for one participant or for anybody."""
    return _link(request, gate(request).file.add_link(study.name, sent.participant))


@router.delete("/studies/{study}/links/{link}")
def revoke_link(request: Request, study: TheStudy, access: Owner, link: str) -> LinkOut:
    """Close a link for good."""
    file = gate(request).file
    known = file.kept.links.get(link)
    return _link(request, file.revoke(link if known is not None and known.study == study.name else ""))


def _link(request: Request, link: Link) -> LinkOut:
    token = gate(request).pass_of(link)
    parts = {name: getattr(link, name) for name in ("id", "participant", "created", "revoked")}
    return LinkOut(path=f"/p/{token}", token=token, **parts)
