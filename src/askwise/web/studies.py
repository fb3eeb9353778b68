"""The studies that are served: those of the files, those in the database, and those made here."""

import hashlib
import re
import threading
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from askwise.errors import Conflict, NotFound, Refused
from askwise.stimuli import KINDS
from askwise.storage import StudyNotFound, names
from askwise.study import FEEDBACKS, Config, Question, Study, load
from askwise.study.ahead import Ahead
from askwise.study.files import check_agreement, read_config, recorded_study
from askwise.web.changes import Changes
from askwise.web.desk import Desk
from askwise.web.serverfile import Kept, ServerFile
from askwise.web.settings import Settings

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FILES_ONLY = ("storage", "import")  # keys by which a study would reach beyond itself


@dataclass(frozen=True)
class Served:
    """A study that is open here."""

    id: str
    """Its part of addresses."""
    config: Config
    study: Study

    @property
    def name(self) -> str:
        """Its name in the record."""
        return self.config.name

    def check_asked(self, question: int, participant: str | None) -> None:
        """Refuse a question that was not asked of this participant, as one that does not exist."""
        with suppress(NotFound):
            if self.study.entry(question).participant == participant:
                return
        raise NotFound("question", "be one that you were asked", repr(question), "Ask for a question first.")


def id_of(name: str) -> str:
    """The part of an address that stands for a study: its name, if that is plain enough.

    >>> id_of("hall"), id_of("Hearing aids / 2")
    ('hall', 'Hearing-aids-2-65eef3')
    """
    if _PLAIN.fullmatch(name):
        return name
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:80]
    return f"{plain or 'study'}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


class Studies:
    """Every study by its id; opened when it is first asked for."""

    def __init__(self, settings: Settings, file: ServerFile) -> None:
        """Read the study files, and refuse what is wrong with them; nothing is recorded yet."""
        self._settings, self.file, self.changes, self.desk = settings, file, Changes(), Desk()
        self._lock = threading.RLock()
        self._ahead = Ahead() if settings.ahead else None
        self._open: dict[str, Served] = {}
        self._files: dict[str, tuple[Path, Config]] = {}
        for path in map(Path, settings.files):
            config = read_config(path)
            if config.storage is None:
                config = replace(config, storage=settings.storage)
            if config.name in self._files:
                other = self._files[config.name][0]
                got = f"{config.name!r} in {other} and {path}"
                raise Refused("names of studies", "differ", got, "Rename one of them.")
            study = recorded_study(config)
            if study is not None:
                with closing(study):
                    check_agreement(path, config, study.plan)
            self._files[config.name] = (path, config)

    @property
    def configs(self) -> list[Config]:
        """What the study files say."""
        return [config for _, config in self._files.values()]

    def names(self) -> list[str]:
        """The names of all studies: of the files in their order, then the others."""
        others = {*names(self._settings.storage), *self.file.kept.studies} - {*self._files}
        return [*self._files, *sorted(others)]

    def __iter__(self) -> Iterator[Served]:
        """All studies, opened."""
        return map(self._opened, self.names())

    def get(self, id: str) -> Served:
        """The study with this id."""
        if id in self._open:  # without the lock, which somebody may hold while another one is opened
            return self._open[id]
        with self._lock:
            if id not in self._open:
                found = next((name for name in self.names() if id_of(name) == id), None)
                if found is None:
                    raise _not_served(id)
                self._opened(found)
            return self._open[id]

    def check_new(self, text: str) -> Config:
        """The study that a text describes, refused as :meth:`create` would; nothing is written."""
        config = checked_text(text)
        if config.name in self.names() and self.file.kept.studies.get(config.name) != text:
            raise Conflict("name", "be new", f"{config.name!r}, which exists", "Choose another name.")
        same = (name for name in self.names() if name != config.name and id_of(name) == id_of(config.name))
        if (other := next(same, None)) is not None:
            got = f"{config.name!r}, which has the address of {other!r}"
            raise Conflict("name", "be new", got, "Choose another name.")
        return config

    def create(self, text: str) -> Served:
        """A study from a TOML text, kept in the server's database."""
        with self._lock:
            config = self.check_new(text)
            if config.name in self.file.kept.studies:
                return self._opened(config.name)  # sent again, perhaps after a lost connection

            def add(kept: Kept) -> Kept:
                return replace(kept, studies=kept.studies | {config.name: text})

            Study.of(config.plan(), self._settings.storage, config.name).close()
            self.file.change(add)
            return self._opened(config.name)

    def ask(
        self,
        served: Served,
        participant: str | None,
        context: Mapping[str, Any] | None = None,
        beside: Collection[int] = (),
    ) -> Question:
        """The next question, unless the study is paused."""
        if self.is_paused(served):
            raise Conflict("study", "be running to ask", "a pause", "Come back later.")
        with self.desk.participant():
            question = served.study.ask(participant, context, beside=beside)
        self.tell_others(served)
        return question

    def tell_others(self, served: Served) -> None:
        """Wake the pages that wait for news of this study."""
        self.changes.tell(served.id)

    def is_paused(self, served: Served) -> bool:
        """Whether the study asks nothing for now."""
        return served.name in self.file.kept.paused

    def pause(self, served: Served, paused: bool) -> None:
        """Ask nothing for now, or go on."""

        def changed(kept: Kept) -> Kept:
            others = tuple(name for name in kept.paused if name != served.name)
            return replace(kept, paused=(*others, served.name) if paused else others)

        self.file.change(changed)
        self.tell_others(served)

    def close(self) -> None:
        """Close all records."""
        self.changes.end()
        with self._lock:
            for served in self._open.values():
                served.study.close()
            self._open.clear()
            if self._ahead is not None:
                self._ahead.close()

    def _opened(self, name: str) -> Served:
        with self._lock:
            id = id_of(name)
            if id not in self._open:
                config = self._config(name)
                if self._ahead is not None:
                    self._ahead.start()
                study = recorded_study(config, prefetch=self._ahead or True)
                if study is None:
                    study = Study.of(config.plan(), config.storage, name, prefetch=self._ahead or True)
                self._open[id] = Served(id, config, study)
            return self._open[id]

    def _config(self, name: str) -> Config:
        if name in self._files:
            return self._files[name][1]
        text, storage = self.file.kept.studies.get(name), self._settings.storage
        if text is not None:
            return replace(load(text + "\n"), storage=storage)
        found = Config(name, None, storage=storage)  # type: ignore[arg-type] # only its place is asked for
        study = recorded_study(found)
        if study is None:
            raise _not_served(name)
        with closing(study):
            plan = study.plan
        words = FEEDBACKS[plan.feedback].question
        return Config(name, plan.space, words, feedback=plan.feedback, storage=storage)


def _not_served(id: str) -> StudyNotFound:
    return StudyNotFound("study", "be one that is served", repr(id), "List them at /api/v1/studies.")


def checked_text(text: str) -> Config:
    """The study of a text that came by a request: it must not name files or modules."""
    try:
        content: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        content = {}  # refused below, with the line
    study, space, stimulus = content.get("study"), content.get("space"), content.get("stimulus")
    for key in _FILES_ONLY:
        if isinstance(study, dict) and key in study:
            advice = "Leave it out, or start the server with a study file."
            raise Refused(key, "be left out of a study that is created here", repr(study[key]), advice)
    for key, value in stimulus.items() if isinstance(stimulus, dict) else ():
        if key in KINDS and KINDS[key].reaches:
            advice = "Use text, html or url, or start the server with a study file."
            raise Refused(key, "be left out of a study that is created here", repr(value), advice)
    for name, parameter in space.items() if isinstance(space, dict) else ():
        if isinstance(parameter, dict) and isinstance(parameter.get("table"), str):
            advice = "Write its columns, or start the server with a study file."
            raise Refused(f"table of {name}", "be written out here", "the name of a file", advice)
    return load(text + "\n")
