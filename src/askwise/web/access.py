"""Who may do what: the owner by a token or a cookie, participants by signed links to one study.

The owner's token comes in a header (``Authorization: Bearer ...``), or in the printed link, for which the
browser gets a cookie.  A participant's pass names a link, by which it can be revoked, and a participant.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Response
from itsdangerous import BadSignature, URLSafeSerializer
from starlette.datastructures import FormData

from askwise.errors import Refused
from askwise.web.problems import Denied, Forbidden
from askwise.web.serverfile import Link, ServerFile

_SAFE = ("GET", "HEAD", "OPTIONS")
_YEAR = 365 * 24 * 3600


@dataclass(frozen=True)
class Access:
    """Who asks: the owner, or somebody with a link."""

    link: Link | None = None
    participant: str | None = None

    @property
    def is_owner(self) -> bool:
        """Whether everything is allowed."""
        return self.link is None


class Gate:
    """Makes and checks tokens, cookies and links."""

    def __init__(self, file: ServerFile, *, secure: bool, root_path: str = "") -> None:
        """Keys are read from this file, at each request if they have changed."""
        self.file, self._secure, self._path = file, secure, root_path or "/"

    # the owner

    def is_token(self, text: str) -> bool:
        """Whether this is the owner's token."""
        return hmac.compare_digest(text.encode(), self.file.kept.token.encode())

    def sign_in(self, response: Response) -> None:
        """Give the browser a cookie in exchange for the token."""
        # not the token itself, which would open the API to whoever reads the cookie; void with the token
        self._set_cookie(response, "owner", self._signer("owner").dumps(_digest(self.file.kept.token)))

    def sign_out(self, response: Response) -> None:
        """Take the cookie away."""
        response.delete_cookie(self._cookie("owner"), path=self._path)

    def is_signed_in(self, request: Request) -> bool:
        """Whether the browser has the owner's cookie."""
        read = self._read("owner", request.cookies.get(self._cookie("owner")))
        return read == _digest(self.file.kept.token)

    @property
    def csrf(self) -> str:
        """What forms of the owner's pages must send along, and no other site can know."""
        kept = self.file.kept
        return hmac.new(kept.secret.encode(), f"csrf {kept.token}".encode(), "sha256").hexdigest()

    def check_csrf(self, given: str | None) -> None:
        """Refuse a change that does not come from a page of this server."""
        if not hmac.compare_digest((given or "").encode(), self.csrf.encode()):
            raise Forbidden("form", "come from a page of this server", "another", "Load the page again.")

    # participants

    def pass_of(self, link: Link, participant: str | None = None) -> str:
        """What to put into an address, or to send as a bearer token; without a participant, for anybody."""
        return self._signer("link").dumps([link.id, link.participant or participant])

    def is_pass(self, text: str) -> bool:
        """Whether this server made it, for whichever link."""
        return self._read("link", text) is not None

    def admitted(self, text: str) -> Access:
        """Whom a participant's pass admits."""
        read = self._read("link", text)
        name, who = read if isinstance(read, list) and len(read) == 2 else ("", None)
        link = self.file.kept.links.get(name)
        if link is None or link.revoked:
            raise Denied("link", "be one that is valid", "another", "Ask whoever sent it for a new one.")
        return Access(link, who)

    def newcomer(self, link: Link, name: str | None = None) -> str:
        """A participant who came by a link for anybody, by their own name or a random one."""
        own = (one.participant for one in self.file.kept.links.values() if one.study == link.study)
        if name is not None and name in own:
            advice = "Choose another name, or use that link."
            raise Forbidden("participant", "be somebody without a link of their own", repr(name), advice)
        return f"guest-{secrets.token_hex(6)}" if name is None else name

    def guest(self, request: Request, response: Response, link: Link) -> str:
        """The anonymous participant that this browser is; a new one gets a cookie."""
        read = self._read("guest", request.cookies.get(self._cookie(link.id)))
        name = read[1] if isinstance(read, list) and len(read) == 2 and read[0] == link.id else None
        if name is None:
            name = self.newcomer(link)
            self._set_cookie(response, link.id, self._signer("guest").dumps([link.id, name]))
        return str(name)

    # signatures

    def _signer(self, use: str) -> URLSafeSerializer:
        how = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
        return URLSafeSerializer(self.file.kept.secret, salt=f"askwise {use}", signer_kwargs=how)

    def _read(self, use: str, text: str | None) -> object:
        try:
            return self._signer(use).loads(text or "")
        except BadSignature:
            return None

    def _cookie(self, use: str) -> str:
        # browsers share cookies between all ports of a host: two servers must not take each other's
        return f"askwise-{_digest(self.file.kept.secret)[:8]}-{use}"

    def _set_cookie(self, response: Response, use: str, value: str) -> None:
        options = {"path": self._path, "httponly": True, "samesite": "lax", "secure": self._secure}
        response.set_cookie(self._cookie(use), value, max_age=_YEAR, **options)  # type: ignore[arg-type]


def gate(request: Request) -> Gate:
    """The gate of the server."""
    return request.app.state.gate


def _bearer(request: Request) -> str | None:
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if kind.lower() == "bearer" else None


def _is_owner_by_cookie(request: Request) -> bool:
    """Whether the owner's token came as a cookie; refuses whoever has neither."""
    here, given = gate(request), _bearer(request)
    if given is not None:
        if not here.is_token(given):
            raise Denied("token", "be that of this server", "another", HOW)
        return False
    if not here.is_signed_in(request):
        raise Denied("token", "be given", "none", HOW)
    return True


def owner(request: Request) -> Access:
    """The owner, by token or cookie; changes by cookie must come from a script of our pages."""
    if _is_owner_by_cookie(request) and request.method not in _SAFE:
        gate(request).check_csrf(request.headers.get("x-csrf-token"))
    return Access()


async def owners_form(request: Request) -> FormData:
    """What the owner sent by a form of our pages, which has a hidden field ``csrf``."""
    by_cookie, form = _is_owner_by_cookie(request), await request.form()
    if by_cookie:
        gate(request).check_csrf(str(form.get("csrf", "")))
    return form


HOW = "Send `Authorization: Bearer TOKEN`, or open the link that `askwise serve` printed."


def owner_or_participant(request: Request) -> Access:
    """The owner, or somebody with a participant's pass as bearer token."""
    given = _bearer(request)
    if given is None or gate(request).is_token(given):
        return owner(request)
    if not gate(request).is_pass(given):
        raise Denied("token", "be that of this server, or of a participant", "another", HOW)
    return gate(request).admitted(given)


def somebody_known(request: Request) -> None:
    """Refuse whoever is neither the owner nor a participant, whatever they ask for."""
    given = _bearer(request)
    if given is None or gate(request).is_token(given):
        _is_owner_by_cookie(request)
    else:
        owner_or_participant(request)


OwnersForm = Annotated[FormData, Depends(owners_form)]
Owner = Annotated[Access, Depends(owner)]
Person = Annotated[Access, Depends(owner_or_participant)]


def the_link(access: Access, study: str) -> Link:
    """The link by which somebody came; it is good for its study only."""
    if access.link is None:
        raise Refused("token", "be a participant's", "that of the server", "Make a link first.")
    if access.link.study != study:
        raise Forbidden("link", "be for this study", "one for another", "Use the link to this study.")
    return access.link


def acting(access: Access, study: str, given: str | None) -> str | None:
    """The participant for whom something is asked or told: for the owner anybody, else oneself."""
    if access.is_owner:
        return given
    the_link(access, study)
    if access.participant is None:
        advice = "Get a token of your own by POST .../join first."
        raise Forbidden("link", "be for one participant", "one for anybody", advice)
    if given not in (None, access.participant):
        raise Forbidden("participant", "be the one of the link", "another", "Leave it out.")
    return access.participant


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
