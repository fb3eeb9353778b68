"""Keys by which answers of a file are imported once."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from askwise.errors import Refused
from askwise.study import Answer, Study
from askwise.study.answer_tables import Imported, content_key


def check_new(file: Path, rows: Sequence[Imported], study: Study) -> None:
    """Refuse a file if the study already has all its answers, since they would count twice."""
    there = Counter(
        _identity(entry.options, entry.answer, entry.participant, study)
        for entry in study.history()
        if entry.status == "answered" and entry.answer is not None
    )
    given = Counter(_identity(row.options, row.answer, row.participant, study) for row in rows)
    if given and given <= there:
        got = f"{len(rows)} in {file}, all of which it already has"
        raise Refused("answers", "be new to the study", got, "Add --again if they were given a second time.")


def import_key(rows: Sequence[Imported], study: Study, again: bool) -> str:
    """By which these answers are recorded once; ``again``: a key that has not been used."""
    keys = (content_key(rows) + " again" * times for times in count())
    return next(key for key in keys if not (again and study.is_recorded(key)))


def _identity(
    options: Sequence[Mapping[str, Any]], answer: Answer, participant: str | None, study: Study
) -> str:
    """A key that is equal for equal settings in the same order with the same answer, up to rounding.

    Where people differ, the answers of two of them are not the same.
    """
    places = [[round(place, 9) for place in point] for point in study.model.points(options).tolist()]
    who = participant if study.plan.people.differ else None
    return json.dumps([places, answer.to_json(), who], sort_keys=True)
