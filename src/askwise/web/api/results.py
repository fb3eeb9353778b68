"""What was learned: best, status, checks, predictions, people, exports."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, Response

from askwise.errors import Refused
from askwise.study import CONFIDENCE
from askwise.study.export import csv_text, json_text, level_csv
from askwise.web.access import Owner
from askwise.web.api.models import (
    BestOut,
    CheckOut,
    ClassifiedOut,
    CompareIn,
    ComparisonOut,
    EstimateOut,
    LevelSetOut,
    ParticipantOut,
    PredictIn,
    PredictionOut,
    RatersOut,
    StatusOut,
)
from askwise.web.lookup import TheStudy

router = APIRouter(tags=["results"], prefix="/studies/{study}")
Whose = Annotated[
    str | None, Query(description="Of whom, where people differ.", min_length=1, max_length=200)
]
Where = Annotated[
    str | None,
    Query(description="Values of the context parameters, as JSON.", examples=['{"noise": "loud"}']),
]
Reference = Annotated[str | None, Query(description="A setting to compare with, as JSON.")]


@router.get("/best")
def best(
    study: TheStudy,
    access: Owner,
    participant: Whose = None,
    context: Where = None,
    reference: Reference = None,
) -> BestOut:
    """The setting most likely to be best, and how certain that is."""
    given, rival = _setting("context", context), _setting("reference", reference)
    return BestOut(**vars(study.study.best(given, rival, participant)))


@router.get("/status")
def status(study: TheStudy, access: Owner, participant: Whose = None, context: Where = None) -> StatusOut:
    """The number of answers, the expected gain of one more, and whether to go on."""
    found = study.study.status(_setting("context", context), participant)
    return StatusOut(**vars(found) | {"checks": [CheckOut(**vars(check)) for check in found.checks]})


Count = Annotated[int, Query(description="How many; all, if there are no more.", ge=1, le=100_000)]
Rate = Annotated[float | None, Query(description="A success rate; by default that of the study.")]
Confidence = Annotated[float, Query(description="Probability from which a setting is put on a side.")]


@router.get("/level")
def level(
    study: TheStudy,
    access: Owner,
    level: Rate = None,
    confidence: Confidence = CONFIDENCE,
    participant: Whose = None,
    context: Where = None,
    safest: Annotated[int, Query(ge=1, le=100)] = 5,
) -> LevelSetOut:
    """Which settings work at least so often: shares of the space, and the safest."""
    given = _setting("context", context)
    found = study.study.level_set(level, confidence, given, participant, safest=safest)
    return LevelSetOut.model_validate(found, from_attributes=True)


@router.get("/level/settings")
def level_settings(
    study: TheStudy,
    access: Owner,
    count: Count = 1024,
    level: Rate = None,
    confidence: Confidence = CONFIDENCE,
    participant: Whose = None,
    context: Where = None,
) -> list[ClassifiedOut]:
    """Settings spread over the space, each with its side of the level."""
    given = _setting("context", context)
    found = study.study.classified(count, level, confidence, given, participant)
    return [ClassifiedOut(**vars(one)) for one in found]


@router.get("/level/settings.csv", response_class=PlainTextResponse)
def level_settings_csv(
    study: TheStudy,
    access: Owner,
    count: Count = 1024,
    level: Rate = None,
    confidence: Confidence = CONFIDENCE,
    participant: Whose = None,
    context: Where = None,
) -> Response:
    """The same as a table."""
    found = study.study.classified(count, level, confidence, _setting("context", context), participant)
    return _file(level_csv(found), "text/csv", f"{study.id}-level.csv")


@router.get("/checks")
def checks(study: TheStudy, access: Owner, participant: Whose = None) -> list[CheckOut]:
    """Whether the answers look as if somebody had looked at the questions."""
    return [CheckOut(**vars(check)) for check in study.study.checks(participant)]


@router.post("/predict")
def predict(study: TheStudy, access: Owner, sent: PredictIn) -> list[PredictionOut]:
    """What the model says of settings, with intervals of 95%."""
    found = study.study.predict(sent.settings, sent.context, sent.participant)
    return [PredictionOut(**vars(one)) for one in found]


@router.post("/compare")
def compare(study: TheStudy, access: Owner, sent: CompareIn) -> ComparisonOut:
    """Which of two settings is better, and how sure that is."""
    return ComparisonOut(**vars(study.study.compare(sent.first, sent.second, sent.context, sent.participant)))


@router.get("/top")
def top(
    study: TheStudy,
    access: Owner,
    k: Annotated[int, Query(ge=1, le=1000)] = 5,
    participant: Whose = None,
    context: Where = None,
) -> list[PredictionOut]:
    """The best settings of those that were asked about, best first."""
    found = study.study.top(k, _setting("context", context), participant)
    return [PredictionOut(**vars(one)) for one in found]


@router.get("/importance")
def importance(
    study: TheStudy, access: Owner, participant: Whose = None, context: Where = None
) -> dict[str, EstimateOut]:
    """Which parameters matter, most first."""
    found = study.study.importance(_setting("context", context), participant)
    return {name: EstimateOut(**vars(one)) for name, one in found.items()}


@router.get("/raters")
def raters(study: TheStudy, access: Owner, participant: Whose = None) -> RatersOut:
    """What is learned of the people: lapses, noise, and how much they differ."""
    return RatersOut.model_validate(study.study.raters(participant), from_attributes=True)


@router.get("/participants")
def participants(study: TheStudy, access: Owner) -> list[ParticipantOut]:
    """Everybody who has answered, in the order of their first answers."""
    counts = study.study.answers_by_participant()
    return [ParticipantOut(name=name, answers=count) for name, count in counts.items()]


@router.get("/export.csv", response_class=PlainTextResponse)
def export_csv(study: TheStudy, access: Owner) -> Response:
    """A row for each option of each question, as `askwise export` writes it."""
    return _file(csv_text(study.study), "text/csv", f"{study.id}.csv")


@router.get("/export.json")
def export_json(study: TheStudy, access: Owner) -> dict[str, Any]:
    """The whole record, as `askwise export --format json` writes it."""
    return _file(json_text(study.study, study.config.question), "application/json", f"{study.id}.json")  # type: ignore[return-value]


def _file(text: str, kind: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(
        text.encode("utf-8", "surrogatepass"), media_type=f"{kind}; charset=utf-8", headers=headers
    )


def _setting(name: str, text: str | None) -> dict[str, Any] | None:
    """The setting in a parameter of the address."""
    if text is None:
        return None
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise Refused(name, "be a JSON object of parameters", repr(text), 'Write {"gain": 3}, say.')
    return read
