"""Requests in JSON, one a line, about a study that stays open: for programs in any language."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from askwise.cli.app import message_of
from askwise.cli.documents import asked_json, entry_json, told_json
from askwise.cli.session import Session
from askwise.cli.telling import open_question
from askwise.errors import Refused
from askwise.study import Answer, labels
from askwise.study.answers import UNGIVEN
from askwise.study.validation import check_participant, checked_count

Reply = dict[str, Any]
Setting = Mapping[str, Any]


class Requests:
    """What can be asked of an open study; each method is a request, its parameters are the keys."""

    def __init__(self, session: Session) -> None:
        """About the study of this session."""
        self.session, self.study = session, session.study

    def reply(self, line: str) -> Reply:
        """The reply to a line; whatever goes wrong is an ``error`` in it."""
        try:
            handle, given = self._read(line)
            return handle(**given)
        except Exception as error:  # the other program goes on, and the next line may be better
            unexpected = f"{error!r}. This should not happen: please report it."
            return {"error": message_of(error) or unexpected}

    def _read(self, line: str) -> tuple[Callable[..., Reply], dict[str, Any]]:
        """The request of a line and its values; refuses what is no request, and unknown keys."""
        try:
            given = json.loads(line)
        except (ValueError, RecursionError) as error:
            advice = 'Write {"do": "ask"}, say.'
            raise Refused("line", "be a JSON object", error, advice) from None
        if not isinstance(given, dict) or not isinstance(given.get("do"), str):
            raise Refused("line", 'be an object with "do"', line.strip(), 'Write {"do": "ask"}, say.')
        do = given.pop("do")
        known = [name for name, _ in inspect.getmembers(type(self), inspect.isfunction)]
        known = [name for name in known if not name.startswith("_") and name != "reply"]
        if do not in known:
            raise Refused("do", f"be one of {', '.join(known)}, quit", repr(do), "Choose one of them.")
        handle: Callable[..., Reply] = getattr(self, do)
        parameters = inspect.signature(handle).parameters
        for key in given:
            if key not in parameters:
                expected = f"be {', '.join(parameters) or 'none'}"
                raise Refused(f"keys of {do}", expected, repr(key), "Leave it out, or correct it.")
        for name, parameter in parameters.items():
            if parameter.default is parameter.empty and name not in given:
                raise Refused(name, f"be given to {do}", "none", "Add it.")
        return handle, given

    def ask(self, participant: str | None = None, context: Setting | None = None) -> Reply:
        """The next question, or the one that is still open."""
        return asked_json(self.session, self.study.ask(participant, context))

    def tell(
        self,
        question: Any = None,
        answer: Any = UNGIVEN,
        ranking: Any = None,
        winner: Any = None,
        pairs: Any = None,
        worst: Any = None,
        seconds: Any = None,
    ) -> Reply:
        """Record an answer; ``answer`` may be text, as it is typed in a terminal."""
        number = self._number(question)
        told = {"ranking": ranking, "winner": winner, "pairs": pairs, "worst": worst}
        self.study.tell(number, self._answer(answer), **_whole(told), seconds=seconds)
        return self._told(number)

    def amend(
        self,
        question: Any,
        answer: Any = UNGIVEN,
        ranking: Any = None,
        winner: Any = None,
        pairs: Any = None,
        worst: Any = None,
        reason: Any = None,
    ) -> Reply:
        """Replace an answer."""
        number = self._number(question)
        told = {"ranking": ranking, "winner": winner, "pairs": pairs, "worst": worst}
        self.study.amend(number, self._answer(answer), **_whole(told), reason=reason)
        return self._told(number)

    def skip(self, question: Any = None, seconds: Any = None, reason: Any = None) -> Reply:
        """Record that there will be no answer."""
        number = self._number(question)
        self.study.skip(number, seconds, reason=reason)
        return self._told(number)

    def void(self, question: Any, reason: Any = None) -> Reply:
        """Take a question and its answer out of the model."""
        number = self._number(question)
        self.study.void(number, reason)
        return self._told(number)

    def expire(self, question: Any = None) -> Reply:
        """Give up waiting for an answer."""
        number = self._number(question)
        self.study.expire(number)
        return self._told(number)

    def undo(self, n: Any = 1, participant: Any = UNGIVEN) -> Reply:
        """Take back the last answers."""
        taken = self.study.undo(_whole(n), participant)
        return {"undone": [question.id for question in taken], "answers": self.study.count()}

    def best(
        self, context: Setting | None = None, reference: Setting | None = None, participant: Any = None
    ) -> Reply:
        """The recommended setting."""
        found = self.study.best(context, reference, participant)
        checks = [asdict(check) for check in self.study.checks(participant)]
        return {"participant": participant, **asdict(found), "answers": self.study.count(), "checks": checks}

    def status(self, context: Setting | None = None, participant: Any = None) -> Reply:
        """How far the study has come."""
        return {"participant": participant, **asdict(self.study.status(context, participant))}

    def level(
        self,
        level: Any = None,
        confidence: Any = 0.95,
        context: Setting | None = None,
        participant: Any = None,
    ) -> Reply:
        """Which settings work at least so often."""
        found = self.study.level_set(level, confidence, context, participant)
        return {"participant": participant, **asdict(found)}

    def predict(self, settings: Any, context: Setting | None = None, participant: Any = None) -> Reply:
        """What the model says of settings."""
        found = self.study.predict(settings, context, participant)
        return {"participant": participant, "predictions": [asdict(one) for one in found]}

    def compare(
        self, first: Any, second: Any, context: Setting | None = None, participant: Any = None
    ) -> Reply:
        """Which of two settings is better."""
        return {"participant": participant, **asdict(self.study.compare(first, second, context, participant))}

    def history(self, last: Any = None, participant: Any = UNGIVEN) -> Reply:
        """The questions and what became of them, newest last."""
        if participant is not UNGIVEN:
            check_participant(participant)
        found = [one for one in self.study.history() if participant in (UNGIVEN, one.participant)]
        shown = found if last is None else found[-checked_count("last", _whole(last)) :]
        return {"questions": [entry_json(entry) for entry in shown], "all": len(found)}

    def _number(self, question: Any) -> int:
        """The number of a question; of the only open one if it is left out."""
        return open_question(self.study) if question is None else _whole(question)

    def _answer(self, answer: Any) -> Any:
        """An answer as Python takes it; text is read as in a terminal."""
        if isinstance(answer, str):
            return self.study.plan.kind.typed(answer, labels(self.study.size))
        return _whole(answer)

    def _told(self, number: int) -> Reply:
        entry = self.study.entry(number)
        answer: Answer | None = entry.answer if entry.status == "answered" else None
        words = "" if answer is None else answer.in_words(labels(self.study.size))
        return told_json(self.session, number, words)


def _whole(value: Any) -> Any:
    """The value with whole numbers as such, though a language may write them as 1.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _whole(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_whole(part) for part in value]
    return value
