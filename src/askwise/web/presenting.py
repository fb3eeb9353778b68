"""What participants see of an option: its values, or what the stimulus of the study makes of them."""

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from askwise.errors import Refused
from askwise.space import Space
from askwise.stimuli import Link, Stimulus
from askwise.study import Config
from askwise.study.state import as_text
from askwise.study.stimulus import stimulus_of
from askwise.web.media import Store
from askwise.web.studies import Served

Look = dict[str, Any]
"""How a page presents an option: its ``kind``, and the ``rows``, ``text`` or ``src`` to present."""
_KEPT = 10_000  # looks that are remembered
_LOG = logging.getLogger("askwise.web")


class Presenting:
    """Makes what is shown, once for each setting, several at a time."""

    def __init__(self, store: Store, command: str | None = None) -> None:
        """``command``: makes the options of all studies, as one in their files would."""
        self.store, self._command = store, command
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[str, str], Future[Look]] = OrderedDict()
        self._stimuli: dict[str, Stimulus | None] = {}  # of the studies that were shown
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="askwise stimuli")

    def looks(self, served: Served, options: Sequence[Mapping[str, Any]]) -> list[Look]:
        """What is shown of these options; of one that cannot be made, that it is missing."""
        stimulus = self.stimulus(served)
        if stimulus is None:
            return [{"kind": "parameters", "rows": rows} for rows in tables(served.config.space, options)]
        futures = [self._future(served, stimulus, option) for option in options]
        return [_finished(future, served) for future in futures]

    def stimulus(self, served: Served) -> Stimulus | None:
        """What makes the options of a study; None if their values are shown."""
        with self._lock:
            if served.id not in self._stimuli:
                self._stimuli[served.id] = self._made_for(served.config)
            return self._stimuli[served.id]

    def check(self, config: Config) -> None:
        """Refuse a command that does not fit a study."""
        self._made_for(config)

    def _made_for(self, config: Config) -> Stimulus | None:
        if self._command is None:
            return config.stimulus
        try:
            return stimulus_of("command", self._command, config.space, Path.cwd())
        except Refused as error:
            raise error.about("--present") from None

    def close(self) -> None:
        """End what is running, and start nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for stimulus in filter(None, self._stimuli.values()):
            stimulus.close()

    def _future(self, served: Served, stimulus: Stimulus, option: Mapping[str, Any]) -> "Future[Look]":
        key = (served.id, as_text(option))
        with self._lock:
            future = self._made.pop(key, None)
            if future is None or (future.done() and (future.cancelled() or future.exception() is not None)):
                future = self._pool.submit(self._look, stimulus, dict(option))
            self._made[key] = future
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return future

    def _look(self, stimulus: Stimulus, option: Mapping[str, Any]) -> Look:
        made = stimulus.of(option)
        if isinstance(made, Link):
            return {"kind": made.shown, "src": made.url}
        if made.shown == "text":
            return {"kind": "text", "text": made.data.decode("utf-8", "replace")}
        return {"kind": made.shown, "media": self.store.put(made)}


def _finished(future: "Future[Look]", served: Served) -> Look:
    try:
        return dict(future.result())
    except (Refused, OSError) as error:  # participants are not told why: it may show values
        about = {"study": served.name, "reason": str(error)}
        _LOG.error("an option cannot be shown", extra=about)
        return {"kind": "missing"}


def tables(space: Space, options: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows of a table for each option: what varies, with units, and whether it differs here."""
    shown = {name: one for name, one in space.parameters.items() if one.width and not one.context}
    found = []
    for option in options:
        rows = []
        for name, parameter in shown.items():
            value = option[name]
            places = parameter.places(value) if parameter.width == 1 and not parameter.columns else []
            at = None if not places or parameter.one_hot else round(places[0], 4)
            rows.append(_row(name, parameter.text(value), value, options, at))
            rows += [_row(key, str(part), part, options) for key, part in parameter.row(value).items()]
        found.append(rows)
    return found


def _row(
    name: str, text: str, value: object, options: Sequence[Mapping[str, Any]], at: float | None = None
) -> dict[str, Any]:
    differs = any(option.get(name) != value for option in options)
    return {"name": name, "value": text, "differs": differs, "at": at}
