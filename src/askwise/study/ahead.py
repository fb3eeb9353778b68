"""A process that computes questions ahead of their time.

In a thread of a server this work would slow down every request, since one thread of a Python program runs at
a time.  What is asked does not depend on who computes it, to the last bit.
"""

import functools
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, Any

from askwise.errors import Refused
from askwise.study.answers import Answer
from askwise.study.model import Model
from askwise.study.plan import Plan
from askwise.study.questions import Situation, next_question
from askwise.study.shelf import Shelf
from askwise.study.snapshot import Chosen
from askwise.study.state import Answered

_PLANS = 64  # whose models are kept
_ANSWERS = 2**15  # of which there is one copy
_READY = "ready"


class Ahead:
    """Computes questions there; here, while the process is not ready or if it fails."""

    def __init__(self) -> None:
        """Nothing is started yet."""
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False

    def start(self) -> None:
        """Start the process, once; it takes a few seconds until it is ready."""
        with self._lock:
            if self._process is not None:
                return
            command = [sys.executable, "-m", "askwise.study.ahead"]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            # a session of its own: Ctrl-C is for the server, with which it ends
            self._process = subprocess.Popen(command, start_new_session=True, **pipes)
            threading.Thread(target=self._await, args=(self._process,), daemon=True).start()

    def __call__(self, model: Model, situation: Situation) -> Chosen:
        """Options of the next question, and which member of the rule's query each is."""
        found = None
        with self._lock:
            if self._ready and (text := _written(model.plan)) is not None:
                try:
                    found = self._asked(text, situation)
                except (OSError, EOFError, ValueError):
                    self._ready = False  # it has ended
        return next_question(model, situation) if found is None else found

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._ready = False
            if self._process is None:
                return
            self._process.kill()  # it keeps nothing
            with suppress(OSError):  # of what it has not read
                self._process.communicate()

    def _asked(self, text: str, situation: Situation) -> Chosen | None:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        _send(self._process.stdin, {"plan": text, "situation": _as_json(situation)})
        found = _received(self._process.stdout)
        return None if found is None else (found[0], found[1])

    def _await(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        with suppress(OSError, EOFError, ValueError):
            self._ready = _received(process.stdout) == _READY


@functools.lru_cache(_PLANS)
def _written(plan: Plan) -> str | None:
    """A plan as text; None if the other process cannot know what is in it."""
    try:
        settings = plan.to_dict()
    except Refused:  # a kernel that cannot be written
        return None
    return None if settings.get("imports") else json.dumps(settings)


@functools.lru_cache(_PLANS)
def _model(text: str) -> Model:
    plan = Plan.from_dict(json.loads(text))
    return Model(plan, Shelf(plan))


@functools.lru_cache(_ANSWERS)
def _known(answered: Answered) -> Answered:
    """The same answer as it came before: caches of the model would keep a copy for each time it came."""
    return answered


def _serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer requests until the other side is gone; what fails is None, and computed there."""

    with suppress(EOFError):
        _send(replies, _READY)
        while True:
            request = _received(requests)
            try:
                found = next_question(_model(request["plan"]), _situation(request["situation"]))
            except Exception:  # whoever needs the question will meet it again, and say so
                found = None
            _send(replies, found)


def _send(pipe: IO[bytes], message: object) -> None:
    """One line of JSON, in which floats keep all their digits."""
    pipe.write(json.dumps(message).encode() + b"\n")
    pipe.flush()


def _received(pipe: IO[bytes]) -> Any:
    line = pipe.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return json.loads(line)


def _as_json(situation: Situation) -> dict[str, Any]:
    answers = [[one.options, one.answer.to_json(), one.participant] for one in situation.answers]
    return vars(situation) | {"answers": answers}


def _situation(given: dict[str, Any]) -> Situation:
    answers = tuple(
        _known(Answered(tuple(options), Answer.from_json(answer), who))
        for options, answer, who in given["answers"]
    )
    lists = {"answers": answers, "pending": tuple(given["pending"]), "asked": tuple(given["asked"])}
    return Situation(**given | lists)


if __name__ == "__main__":
    own = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not come between replies
    with suppress(BrokenPipeError), os.fdopen(own, "wb") as replies:
        _serve(sys.stdin.buffer, replies)
