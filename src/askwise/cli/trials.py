"""Questions answered by a command, several at a time if wanted."""

import functools
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from askwise.cli.app import counted
from askwise.cli.claims import Claims, claims
from askwise.cli.codes import Codes
from askwise.cli.conversation import Done, Interview, interviewed, record_unless_answered
from askwise.cli.outcome import Outcome, outcome
from askwise.cli.places import environment, place_names, values_by_place
from askwise.commands import Machine, filled, template_words
from askwise.errors import Failed, Refused
from askwise.space import readable
from askwise.study import Question, labels

MOST_FAILURES = 5
"""Different questions in a row after whose failures a run ends."""
_MOST_SKIPS = 20  # in a row: a machine that always says skip would run for ever


@dataclass(frozen=True)
class Command:
    """A command that answers questions, and what to do if it fails."""

    text: str
    codes: Codes = field(default_factory=Codes)
    timeout: float | None = None
    retries: int = 2
    jobs: int = 1


def trials(interview: Interview, command: Command) -> Done:
    """Run a command for each question until there are enough answers."""
    study, config = interview.session.study, interview.session.config
    if study.plan.kind.compares and "no" in (command.codes.meanings[code] for code in command.codes.listed):
        advice = "A command that compares prints its answer; leave the codes out."
        raise Refused("--no-codes", "be used with a yes/no study", f"a {study.feedback} study", advice)
    words = template_words(command.text, place_names(study.space.parameters, study.size))

    def talk() -> None:
        with _stopped_by_signals(), claims(str(config.storage), config.name) as held:
            machine = Machine("--command", command.timeout, reads=command.jobs == 1)
            _Crew(interview, command, words, machine, held).work()

    return interviewed(interview, talk)


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Let a closed terminal or `kill` end the commands, as Ctrl-C does: a machine must not go on alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.default_int_handler) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_ENDING = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]  # not on Windows


@dataclass
class _Crew:
    """Commands at work, each on a question of its own; only they run in threads of their own."""

    interview: Interview
    command: Command
    words: list[str]
    machine: Machine
    claims: Claims
    running: dict[Future[Outcome | None], tuple[Question, int]] = field(default_factory=dict)
    """Questions at work, with the numbers of their jobs."""
    failed: list[tuple[Question, Outcome]] = field(default_factory=list)
    """Questions whose commands failed since the last answer: the next one shows that the machine works and
    their settings are to blame."""
    aside: list[tuple[Question, Outcome]] = field(default_factory=list)
    """Questions to be skipped when the run ends; until then they are pending, so that others keep away from
    them: a skip teaches the model nothing, and the same question would follow from the same answers."""
    skips: int = 0
    """Number of questions in a row that the command has skipped."""

    def work(self) -> None:
        """Run commands until there are enough answers."""
        with self._pool() as pool:
            self._start(pool)
            while self.running:
                for future in wait(self.running, return_when=FIRST_COMPLETED).done:
                    question, _ = self.running.pop(future)
                    if (found := future.result()) is not None:
                        self._take(question, found)
                self._check_progress()
                self._start(pool)

    @contextmanager
    def _pool(self) -> Iterator[ThreadPoolExecutor]:
        with ThreadPoolExecutor(self.command.jobs) as pool:
            try:
                yield pool
            finally:  # Ctrl-C included: no command is left behind, and no answer lost
                self.machine.stop()
                self._take_finished()
                self._skip_aside()

    def _take_finished(self) -> None:
        """Record the answers of commands that ended before they were stopped."""
        wait(self.running)
        for future, (question, _) in self.running.items():
            found = None if future.exception() else future.result()
            if found is not None and found.telling is not None:
                self._take(question, found)

    def _start(self, pool: ThreadPoolExecutor) -> None:
        """Start as many commands as there may be, but not more than answers are wanted."""
        target = self.interview.target
        while len(self.running) < self.command.jobs:
            if target is not None and self.interview.count + len(self.running) >= target:
                return
            question = self._next()
            # others may have answered while it was chosen
            if target is not None and self.interview.count + len(self.running) >= target:
                self.claims.release(question.id)
                return
            busy = [job for _, job in self.running.values()]
            job = next(job for job in range(1, self.command.jobs + 1) if job not in busy)
            self.running[pool.submit(self._attempts, question, job)] = (question, job)

    def _next(self) -> Question:
        """A question that nobody else is at work on."""
        study, others = self.interview.session.study, set[int]()
        while True:
            beside = self.claims.held | others
            question = study.ask(self.interview.participant, self.interview.context, beside=beside)
            if not self.claims.take(question.id):
                others.add(question.id)
            elif study.entry(question.id).status == "open":
                return question
            else:  # answered by those who had claimed it before
                self.claims.release(question.id)

    def _attempts(self, question: Question, job: int) -> Outcome | None:
        """What the command answers in the end; None if it was stopped."""
        words = filled(self.words, values_by_place(question.options))
        given = environment(question, {"job": job})
        for attempt in range(1, self.command.retries + 2):
            ended = self.machine.run(words, given)
            if ended is None:
                return None
            found = outcome(self.interview.session.study, self.command.codes, ended)
            if found.telling is not None:
                break
            tried = f" ({counted(attempt, 'attempt')})"
            output = f"\n{ended.last_lines}" if ended.last_lines else ""
            found = Outcome(None, f"{found.reason}{tried}{output}", found.seconds)
        return found

    def _take(self, question: Question, found: Outcome) -> None:
        """Record what a command has answered, or note that it failed."""
        if found.telling is None:
            self.failed.append((question, found))
            first = found.reason.partition("\n")[0]
            self.interview.console.print(f"Question {question.id} failed: {first}.")
            return
        if found.telling.answer is None:
            self.aside.append((question, found))
            self._print(question, "skip")
            self.skips += 1
            return
        study, telling = self.interview.session.study, found.telling
        record = functools.partial(telling.record, study, question.id, seconds=found.seconds)
        if record_unless_answered(self.interview, question, record):
            self._print(question, found.telling.read_back)
        self.claims.release(question.id)
        self.skips = 0
        self.aside += self.failed
        self.failed.clear()

    def _skip_aside(self) -> None:
        study, skipped = self.interview.session.study, []
        for question, found in sorted(self.aside, key=lambda one: one[0].id):
            skip = functools.partial(study.skip, question, found.seconds, reason=found.reason)
            if record_unless_answered(self.interview, question, skip):
                skipped.append(str(question.id))
        if skipped:
            word = "question" if len(skipped) == 1 else "questions"
            self.interview.console.print(f"Skipped {word} {', '.join(skipped)}; the record says why.")

    def _check_progress(self) -> None:
        """End the run if the machine does not seem to work."""
        if self.skips >= _MOST_SKIPS:
            expected, got = f"answer one of {_MOST_SKIPS} questions in a row", f"{self.skips} skips"
            raise Failed("--command", expected, got, "Look at what it prints; these questions are skipped.")
        if len(self.failed) >= MOST_FAILURES:
            numbers = [str(question.id) for question, _ in self.failed]
            advice = (
                f"Try it by hand; questions {', '.join(numbers)} stay open. If such settings cannot be "
                f"tried, skip them (`askwise tell {numbers[0]} skip`, or --skip-codes)."
            )
            _, last = self.failed[-1]
            expected = f"answer one of {MOST_FAILURES} questions in a row"
            raise Failed("--command", expected, last.reason.partition("\n")[0], advice)

    def _print(self, question: Question, said: str) -> None:
        count, target = self.interview.count, self.interview.target
        of = f"/{target}" if target and count <= target else ""
        each = [
            ", ".join(f"{name} {readable(value)}" for name, value in option.items())
            for option in question.options
        ]
        names = labels(len(each))
        shown = (
            each[0]
            if len(each) == 1
            else "; ".join(f"{name}: {one}" for name, one in zip(names, each, strict=True))
        )
        self.interview.console.print(f"{count}{of}  {said:3}  {shown}")
