"""What every request passes: the names it may use, its size, its rate, and the headers of its answer."""

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Collection
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from askwise.errors import Refused
from askwise.web.problems import Forbidden, TooLarge, TooMany, answer_to, too_large

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
    "font-src 'self'; frame-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""The Content-Security-Policy of pages: everything from this server, nothing inline."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # addresses of participants have their pass in them
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
"""Headers of every response that does not say otherwise."""
LOCAL = ("localhost", "127.0.0.1", "::1")
_EVERYWHERE = ("0.0.0.0", "::", "")
_MOST_ADDRESSES = 10_000


class Guards:
    """ASGI middleware around the whole application."""

    def __init__(
        self,
        app: ASGIApp,
        root: str,
        host: str,
        hosts: Collection[str],
        origins: Collection[str],
        largest: int,
        rate: float,
    ) -> None:
        """``root``: path before every address; ``host``: where it listens; others are trusted, too."""
        self._app, self._root, self._origins, self._largest = app, root, frozenset(origins), largest
        self._hosts = frozenset({*LOCAL, *hosts, host} - {*_EVERYWHERE})
        self._everywhere = host in _EVERYWHERE
        self._rate = Rate(rate, burst=4 * rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request, then pass it on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        if self._root and not scope["path"].startswith(f"{self._root}/"):  # the proxy has taken it away
            scope["path"] = self._root + scope["path"]
        scope["root_path"] = self._root
        headers, counted = Headers(scope=scope), _Counted(receive, self._largest)
        guarded = _with_headers(send)
        try:
            self._check(scope, headers)
            counted.check(headers.get("content-length"))
            await self._app(scope, counted, guarded)
        except (Forbidden, TooMany, TooLarge, BadHost) as error:
            await answer_to(Request(scope), error)(scope, receive, guarded)

    def _check(self, scope: Scope, headers: Headers) -> None:
        client = (scope.get("client") or ("",))[0]
        if not self._rate.admits(client):
            raise TooMany("requests", "come more slowly", "too many from one address", "Wait a second.")
        host = headers.get("host", "")
        if not self._is_known(host):
            advice = "Use its own address, or start it with --allow-host."
            raise BadHost("host", "be one by which this server is known", repr(host), advice)
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins and _place(origin) != host:
            advice = "Use a page of this server, or start it with --allow-origin."
            raise Forbidden("origin", "be this server", repr(origin), advice)
        if headers.get("sec-fetch-site") == "cross-site" and origin is None and scope["method"] != "GET":
            raise Forbidden("request", "come from a page of this server", "another site", "Open it here.")

    def _is_known(self, host: str) -> bool:
        name = _name(host) if _is_plain(host) else ""
        # by an address of numbers no foreign name can lead here
        return name in self._hosts or (self._everywhere and _is_number(name))


def _place(origin: str) -> str | None:
    """Host and port of an origin; None of what is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:  # such as a bracket that is not closed
        return None


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


class BadHost(Refused):
    """The request names another host."""

    status = 400


class Rate:
    """A limit for each address: so many a second, and a burst."""

    def __init__(self, rate: float, burst: float) -> None:
        """A bucket of ``burst`` that refills by ``rate`` a second."""
        self._rate, self._burst, self._lock = rate, burst, threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admits(self, who: str) -> bool:
        """Whether one more is within the limit."""
        now = time.monotonic()
        with self._lock:
            left, then = self._left.pop(who, (self._burst, now))
            left = min(self._burst, left + (now - then) * self._rate)
            self._left[who] = (max(left - 1, 0.0), now)
            if len(self._left) > _MOST_ADDRESSES:
                self._left.popitem(last=False)
        return left >= 1


class _Counted:
    """Receives a body, up to a number of bytes."""

    def __init__(self, receive: Receive, largest: int) -> None:
        self._receive, self._largest, self._size = receive, largest, 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        if self._size > self._largest:  # while the body is read, FastAPI lets only this kind through
            raise HTTPException(413)
        return message

    def check(self, length: str | None) -> None:
        if length is not None and length.isdigit() and int(length) > self._largest:
            raise too_large()


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def _is_plain(host: str) -> bool:
    return bool(host) and not any(char in host for char in "/?#@\\ ")


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
