"""A study on a server, with the methods of a study here; needs nothing but the standard library to connect.

>>> study = Client("http://127.0.0.1:8000/?token=abc", "hall")  # the link that `askwise serve` printed
>>> study
Client('http://127.0.0.1:8000', 'hall')
"""

import http.client
import json
import random
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from askwise.errors import Conflict, Failed, NotFound, Refused, Unreachable
from askwise.space import Items, Space
from askwise.study.answers import UNGIVEN, Answer
from askwise.study.changes import Change
from askwise.study.checks import Check
from askwise.study.level_sets import Classified, LevelSet
from askwise.study.plan import as_space, spelled
from askwise.study.predictions import Comparison, Prediction
from askwise.study.question import Question, Status
from askwise.study.raters import Estimate, Rater, Raters
from askwise.study.recommendation import Best
from askwise.study.state import Entry

if TYPE_CHECKING:
    from gpytorch.kernels import Kernel

    from askwise.rules import Rule
else:  # a client computes nothing
    Kernel = Rule = Any

Given = bool | int | Answer | None
Setting = Mapping[str, Any]
_KINDS = {404: NotFound, 409: Conflict, 429: Failed, 503: Failed}
_AGAIN = (429, 502, 503, 504)  # of a server or a proxy that may work in a moment
_NAMED = ("ranking", "pairs", "worst")


class Client:
    """A study on a server; each call may be repeated without harm, and is after a lost connection.

    ``address``: that of the server, or a link with a token in it: the one that `askwise serve` printed, or a
    participant's.  ``study``: the id of the study; a participant's link knows it.  ``token``: if the address
    has none.  ``patience``: seconds to go on trying when the server does not answer.
    """

    def __init__(
        self,
        address: str,
        study: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 60.0,
        patience: float = 30.0,
    ) -> None:
        """Nothing is sent yet."""
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            advice = "Copy the link that `askwise serve` printed."
            raise Refused("address", "begin with http:// or https://", repr(address), advice)
        root, is_link, link = parts.path.partition("/p/")
        found = link if is_link else parse_qs(parts.query).get("token", [None])[0]
        self.address = f"{parts.scheme}://{parts.netloc}{root.rstrip('/')}"
        self._token, self._study = token or found, study
        self._timeout, self._patience = timeout, patience

    def __repr__(self) -> str:
        """Where it is, without the token."""
        return f"Client({self.address!r}, {self._study!r})"

    # studies

    def studies(self) -> list[dict[str, Any]]:
        """All studies on the server; their ``id`` is what a client is made with."""
        return self._get("/studies")

    def create(self, text: str) -> "Client":
        """Create a study from the text of a study file; the same again changes nothing."""
        made = self._send("POST", "/studies", {"toml": text})
        client = Client(self.address, made["id"], self._token, timeout=self._timeout)
        client._patience = self._patience
        return client

    @property
    def study(self) -> str:
        """The id of the study; of a participant's link, the server is asked for it."""
        if self._study is None:
            self._study = self._get("/whoami")["study"]
        if self._study is None:
            expected, advice = "be named", f"Choose one of {[one['id'] for one in self.studies()]}."
            raise Refused("study", expected, "none", advice)
        return self._study

    # questions and answers

    def ask(
        self,
        participant: str | None = None,
        context: Setting | None = None,
        *,
        beside: Collection[int] = (),
    ) -> Question:
        """The next question for this participant; the previous one if it is still open."""
        sent = {"participant": participant, "context": context, "beside": list(beside)}
        return _question(self._post("ask", sent))

    def tell(
        self,
        question: Question | int,
        answer: Given = UNGIVEN,
        *,
        ranking: Sequence[int] | None = None,
        winner: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        worst: int | None = None,
        seconds: float | int | None = None,
    ) -> None:
        """Record an answer, as :meth:`askwise.Study.tell` does."""
        told = _told(answer, ranking=ranking, winner=winner, pairs=pairs, worst=worst)
        self._post("tell", {"question": _number(question), "seconds": seconds, **told})

    def skip(
        self, question: Question | int, seconds: float | int | None = None, *, reason: str | None = None
    ) -> None:
        """Record that there will be no answer."""
        self._post("skip", {"question": _number(question), "seconds": seconds, "reason": reason})

    def amend(
        self,
        question: Question | int,
        answer: Given = UNGIVEN,
        *,
        ranking: Sequence[int] | None = None,
        winner: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        worst: int | None = None,
        reason: str | None = None,
    ) -> None:
        """Replace an answer; what was there before stays in the record."""
        told = _told(answer, ranking=ranking, winner=winner, pairs=pairs, worst=worst)
        self._post("amend", {"question": _number(question), "reason": reason, **told})

    def void(self, question: Question | int, reason: str | None = None) -> None:
        """Take a question and its answer out of the model."""
        self._post("void", {"question": _number(question), "reason": reason})

    def undo(self, n: int = 1, participant: Any = UNGIVEN, *, key: str | None = None) -> list[Question]:
        """Take back the last answers and skips; once, however often it has to be sent."""
        whose = {} if participant is UNGIVEN else {"participant": participant}
        sent = {"n": n, "key": key or uuid.uuid4().hex, **whose}
        return [_question(one) for one in self._post("undo", sent)["questions"]]

    def expire(self, question: Question | int) -> None:
        """Give up waiting for an answer."""
        self._post("expire", {"question": _number(question)})

    def record(  # noqa: PLR0913 - one for each way to answer
        self,
        options: Sequence[Setting],
        answer: Given = UNGIVEN,
        *,
        ranking: Sequence[int] | None = None,
        winner: int | None = None,
        pairs: Sequence[tuple[int, int]] | None = None,
        worst: int | None = None,
        participant: str | None = None,
        seconds: float | int | None = None,
        key: str | None = None,
    ) -> Entry:
        """Add a question that was asked and answered elsewhere; once, however often it has to be sent."""
        told = _told(answer, ranking=ranking, winner=winner, pairs=pairs, worst=worst)
        whose = {"participant": participant, "seconds": seconds, "key": key or uuid.uuid4().hex}
        return self.entry(self._post("record", {"options": list(options), **whose, **told})["id"])

    def change(
        self,
        *,
        space: Space | Items = UNGIVEN,
        rule: str | Rule | None = UNGIVEN,
        kernel: Kernel | str = UNGIVEN,
        expires: float | int | None = UNGIVEN,
        repeats: float = UNGIVEN,
        level: float | None = UNGIVEN,
        reason: str | None = None,
        **others: object,
    ) -> list[str]:
        """Go on with other settings from here, as :meth:`askwise.Study.change` does; what changes, in words.

        Nothing if nothing does, as when it had to be sent again.
        """
        sent: dict[str, Any] = {"rule": rule, "kernel": kernel, "level": level}
        sent |= {"expires": expires, "repeats": repeats}
        sent = {name: value for name, value in sent.items() if value is not UNGIVEN} | others
        if space is not UNGIVEN:
            written = as_space(space).to_dict()
            sent |= {"space": dict(written["parameters"]), "constraints": written.get("constraints", [])}
        if "kernel" in sent:
            sent["kernel"] = spelled(kernel)
        if rule not in (UNGIVEN, None):
            sent["rule"] = str(rule)
        return self._post("change", sent | {"reason": reason})["changes"]

    def changes(self) -> list[Change]:
        """Every change of the study, in order."""
        return [Change(**one) for one in self._get(f"{self._path}/changes")]

    def history(self) -> list[Entry]:
        """Every question, by number, and what became of it."""
        return [_entry(one) for one in self._get(f"{self._path}/history")]

    def entry(self, question: Question | int) -> Entry:
        """A question and what became of it."""
        return _entry(self._get(f"{self._path}/history/{_number(question)}"))

    # results

    def best(
        self,
        context: Setting | None = None,
        reference: Setting | None = None,
        participant: str | None = None,
    ) -> Best:
        """The setting most likely to be best, and how certain that is."""
        return Best(**self._asked_for("best", participant, context=context, reference=reference))

    def status(self, context: Setting | None = None, participant: str | None = None) -> Status:
        """The number of answers, the expected gain of one more, and whether to go on."""
        found = self._asked_for("status", participant, context=context)
        return Status(**found | {"checks": [Check(**check) for check in found["checks"]]})

    def checks(self, participant: str | None = None) -> list[Check]:
        """Whether the answers look as if somebody had looked at the questions."""
        return [Check(**check) for check in self._asked_for("checks", participant)]

    def level_set(
        self,
        level: float | None = None,
        confidence: float = 0.95,
        context: Setting | None = None,
        participant: str | None = None,
        *,
        safest: int = 5,
    ) -> LevelSet:
        """Which settings work at least so often: shares of the space, and the safest."""
        given = {"level": level, "confidence": confidence, "context": context, "safest": safest}
        found = self._asked_for("level", participant, **given)
        shares = {name: _estimate(found[name]) for name in ("inside", "outside", "unclear", "share")}
        return LevelSet(**found | shares | {"safest": [_prediction(one) for one in found["safest"]]})

    def classified(
        self,
        count: int = 1024,
        level: float | None = None,
        confidence: float = 0.95,
        context: Setting | None = None,
        participant: str | None = None,
    ) -> list[Classified]:
        """Settings spread over the space, each with its side of the level."""
        given = {"count": count, "level": level, "confidence": confidence, "context": context}
        return [Classified(**one) for one in self._asked_for("level/settings", participant, **given)]

    def predict(
        self,
        settings: Setting | Sequence[Setting],
        context: Setting | None = None,
        participant: str | None = None,
    ) -> list[Prediction]:
        """What the model says of settings, with intervals of 95%."""
        each = [settings] if isinstance(settings, Mapping) else list(settings)
        sent = {"settings": each, "context": context, "participant": participant}
        return [_prediction(one) for one in self._post("predict", sent)]

    def compare(
        self, first: Setting, second: Setting, context: Setting | None = None, participant: str | None = None
    ) -> Comparison:
        """Which of two settings is better, and how sure that is."""
        sent = {"first": first, "second": second, "context": context, "participant": participant}
        found = self._post("compare", sent)
        return Comparison(**found | {"interval": tuple(found["interval"])})

    def top(
        self, k: int = 5, context: Setting | None = None, participant: str | None = None
    ) -> list[Prediction]:
        """The best settings of those that were asked about, best first."""
        return [_prediction(one) for one in self._asked_for("top", participant, k=k, context=context)]

    def importance(
        self, context: Setting | None = None, participant: str | None = None
    ) -> dict[str, Estimate]:
        """Which parameters matter, most first."""
        found = self._asked_for("importance", participant, context=context)
        return {name: _estimate(one) for name, one in found.items()}

    def raters(self, participant: str | None = None) -> Raters:
        """What is learned of the people: lapses, noise, and how much they differ."""
        found = self._asked_for("raters", participant)
        each = [
            Rater(one["name"], one["answers"], _estimate(one["lapse"]), _estimate(one["noise"]))
            for one in found["each"]
        ]
        share, margin = (found[name] and _estimate(found[name]) for name in ("share", "margin"))
        slopes = None if found["slopes"] is None else [_estimate(one) for one in found["slopes"]]
        return Raters(each, share, slopes, margin)

    def answers_by_participant(self) -> dict[str | None, int]:
        """How many answers everybody has given, in the order of their first answers."""
        return {one["name"]: one["answers"] for one in self._get(f"{self._path}/participants")}

    def participants(self) -> list[str | None]:
        """Everybody who has answered, in the order of their first answers."""
        return list(self.answers_by_participant())

    # requests

    @property
    def _path(self) -> str:
        return f"/studies/{quote(self.study, safe='')}"

    def _asked_for(self, what: str, participant: str | None, **others: Any) -> Any:
        given = {"participant": participant, **others}
        words = {key: json.dumps(one) if isinstance(one, Mapping) else one for key, one in given.items()}
        query = urlencode({key: one for key, one in words.items() if one is not None})
        return self._get(f"{self._path}/{what}{'?' * bool(query)}{query}")

    def _get(self, path: str) -> Any:
        return self._send("GET", path)

    def _post(self, what: str, sent: Mapping[str, Any]) -> Any:
        return self._send("POST", f"{self._path}/{what}", sent)

    def _send(self, method: str, path: str, sent: Mapping[str, Any] | None = None) -> Any:
        """What the server answers; asked again while it does not answer, since no request does harm twice."""
        body = None if sent is None else json.dumps(sent, default=_plain).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        url, latest, pause = f"{self.address}/api/v1{path}", time.monotonic() + self._patience, 0.1
        while True:
            request = urllib.request.Request(url, body, headers, method=method)
            try:
                with _DIRECT.open(request, timeout=self._timeout) as response:
                    return json.load(response)
            except urllib.error.HTTPError as error:
                refusal, again = _refusal(error), error.code in _AGAIN
            except (OSError, http.client.HTTPException, ValueError) as error:
                got = f"{self.address} ({getattr(error, 'reason', error)})"
                advice = "Check that it runs; the same call again is safe."
                refusal, again = Unreachable("server", "be reachable", got, advice), True
            if not again or time.monotonic() + pause > latest:
                raise refusal
            time.sleep(random.uniform(0.5, 1.0) * pause)
            pause = min(2 * pause, 5.0)


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nothing, so that the token goes nowhere else."""

    def redirect_request(self, *_: Any) -> None:
        """None: a redirection is an error."""


_DIRECT = urllib.request.build_opener(_Stay)


def _refusal(error: urllib.error.HTTPError) -> Refused:
    """The refusal that the server sent."""
    kind = _KINDS.get(error.code, Refused if error.code < 500 else Failed)
    try:
        said = json.load(error)["error"]
        return kind(said["what"], said["expected"], said["got"], said["advice"])
    except (ValueError, KeyError, TypeError, OSError):
        return kind("server", "answer", f"status {error.code}", "Check the address.")


def _told(answer: Given, **named: Any) -> dict[str, Any]:
    """An answer as JSON: only what was given, since null is an answer."""
    told = {name: value for name, value in named.items() if value is not None}
    if isinstance(answer, Answer):
        ((key, value),) = answer.to_json().items()
        told[key if key in _NAMED else "answer"] = None if key == "undecided" else value
    elif answer is not UNGIVEN:
        told["answer"] = answer
    return told


def _number(question: Question | int) -> int:
    return question.id if isinstance(question, Question) else question


def _plain(value: Any) -> Any:
    """A number or an array of another library as JSON."""
    for convert in ("tolist", "item"):
        if hasattr(value, convert):
            return getattr(value, convert)()
    raise Refused("value", "be one that JSON has", repr(value), "Convert it first.")


def _question(sent: Mapping[str, Any]) -> Question:
    order = sent["order"] or range(len(sent["options"]))  # participants do not learn it
    return Question(sent["id"], sent["options"], tuple(order), sent["participant"], sent["context"])


def _entry(sent: Mapping[str, Any]) -> Entry:
    answer = None if sent["answer"] is None else Answer.from_json(sent["answer"])
    parts = {"options": tuple(sent["options"]), "order": tuple(sent["order"]), "answer": answer}
    return Entry(**{**sent, **parts})


def _estimate(sent: Mapping[str, Any]) -> Estimate:
    return Estimate(sent["value"], None if sent["interval"] is None else tuple(sent["interval"]))


def _prediction(sent: Mapping[str, Any]) -> Prediction:
    return Prediction(
        **{
            **sent,
            "interval": tuple(sent["interval"]),
            "probability_interval": tuple(sent["probability_interval"]),
        }
    )
