"""The JSON of the API: what is sent (``...In``) and what comes back (``...Out``)."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt

from askwise.study import Entry, Question, labels
from askwise.study.answers import UNGIVEN
from askwise.web.studies import Served

Setting = Annotated[
    dict[str, Any],
    Field(description="A value for each parameter, in natural units.", examples=[{"gain": 12.5}]),
]
Context = Annotated[Setting | None, Field(description="Values of the context parameters, if there are any.")]
Participant = Annotated[
    str | None, Field(description="Who answers; needed where people differ.", max_length=200)
]
Number = Annotated[StrictInt, Field(description="The number of the question.", ge=0, lt=2**31)]
Seconds = Annotated[float | None, Field(description="Response time.", ge=0, le=1e9, allow_inf_nan=False)]
Reason = Annotated[str | None, Field(description="Why, in words.", max_length=10_000)]


class _In(BaseModel):
    """What is sent; a key that is not known is refused, since it may be a misspelled one."""

    model_config = ConfigDict(extra="forbid")


class Part(BaseModel):
    """What was refused: ``what`` must ``expected``; got ``got``. ``advice``"""

    what: str
    expected: str
    got: str
    advice: str
    message: str


class Problem(BaseModel):
    """A refusal; nothing was changed."""

    error: Part


class StudyIn(_In):
    """A new study: a study file as text, or the same tables as JSON."""

    toml: Annotated[str | None, Field(description="A study file, as `askwise init` writes it.")] = None
    study: Annotated[
        dict[str, Any] | None,
        Field(description="The table [study].", examples=[{"name": "hall", "feedback": "duel"}]),
    ] = None
    space: Annotated[
        dict[str, dict[str, Any]] | None,
        Field(
            description="The tables [space.NAME].",
            examples=[{"gain": {"type": "real", "low": 0, "high": 40}}],
        ),
    ] = None


class StudyOut(BaseModel):
    """A study that is served."""

    id: str
    """Its part of addresses."""
    name: str
    question: str
    feedback: str
    size: int
    participants: str
    answers: int
    paused: bool
    settings: dict[str, Any]
    """Everything that questions depend on."""

    @classmethod
    def of(cls, served: Served, paused: bool) -> "StudyOut":
        """A study as it is listed."""
        study = served.study
        return cls(
            id=served.id,
            name=served.name,
            question=served.config.question,
            feedback=study.feedback,
            size=study.size,
            participants=study.plan.people.participants,
            answers=study.count(),
            paused=paused,
            settings=study.plan.to_dict(),
        )


class AskIn(_In):
    """Whom to ask, and in which context."""

    participant: Participant = None
    context: Context = None
    beside: Annotated[
        list[Number], Field(description="Open questions that are being answered already.", max_length=1000)
    ] = []


class QuestionOut(BaseModel):
    """A question to show: its options, left to right."""

    id: int
    options: list[dict[str, Any]]
    labels: list[str]
    participant: str | None
    context: dict[str, Any] | None
    question: str
    """What to ask, in words."""
    feedback: str
    order: list[int] | None = None
    """Which member of the rule's query each option is; not for participants, who must not know."""

    @classmethod
    def of(cls, served: Served, question: Question, blinded: bool) -> "QuestionOut":
        """A question of a study."""
        return cls(
            id=question.id,
            options=question.options,
            labels=labels(len(question.options)),
            participant=question.participant,
            context=question.context,
            question=served.config.question,
            feedback=served.study.feedback,
            order=None if blinded else list(question.order),
        )


class _Told(_In):
    """An answer, by one of these; ``null`` as ``answer`` is "can't decide"."""

    answer: Annotated[
        StrictBool | StrictInt | None,
        Field(description="Yes/no: true or false. Duel: 0 or 1. null: can't decide.", examples=[1]),
    ] = None
    winner: Annotated[StrictInt | None, Field(description="Batch: the best option.")] = None
    ranking: Annotated[
        list[StrictInt] | None, Field(description="Batch: options, best first.", max_length=1000)
    ] = None
    pairs: Annotated[
        list[tuple[StrictInt, StrictInt]] | None,
        Field(description="Batch: pairs of options, better first.", max_length=10_000),
    ] = None
    worst: Annotated[StrictInt | None, Field(description="Batch: the worst option.")] = None

    @property
    def told(self) -> dict[str, Any]:
        """The arguments of :meth:`Study.tell` by which it was answered."""
        answer = self.answer if "answer" in self.model_fields_set else UNGIVEN
        named = {name: getattr(self, name) for name in ("winner", "ranking", "pairs", "worst")}
        return {"answer": answer, **named}


class TellIn(_Told):
    """An answer to a question."""

    question: Number
    seconds: Seconds = None
    next: Annotated[bool, Field(description="Whether to ask the next question at once.")] = False


class SkipIn(_In):
    """A question without an answer."""

    question: Number
    seconds: Seconds = None
    reason: Reason = None
    next: Annotated[bool, Field(description="Whether to ask the next question at once.")] = False


class AmendIn(_Told):
    """Another answer in place of one."""

    question: Number
    reason: Reason = None


class VoidIn(_In):
    """A question to take out of the model."""

    question: Number
    reason: Reason = None


class ExpireIn(_In):
    """A question whose answer is no longer awaited."""

    question: Number


class RecordIn(_Told):
    """A question that was asked and answered elsewhere."""

    options: Annotated[list[Setting], Field(min_length=1, max_length=1000)]
    participant: Participant = None
    seconds: Seconds = None
    key: Annotated[
        str | None,
        Field(
            description="Recorded once with the same key; or send the header Idempotency-Key.", max_length=200
        ),
    ] = None


class UndoIn(_In):
    """How many answers and skips to take back, and whose."""

    n: Annotated[StrictInt, Field(description="How many, the last ones first.", ge=1, le=10_000)] = 1
    participant: Annotated[
        str | None,
        Field(description="Of whom; null: who has no name. Left out: whoever came last.", max_length=200),
    ] = None
    key: Annotated[
        str | None,
        Field(description="Taken back once with the same key; or send Idempotency-Key.", max_length=200),
    ] = None

    @property
    def whose(self) -> dict[str, str | None]:
        """The participant, if one was given; null is one."""
        return {"participant": self.participant} if "participant" in self.model_fields_set else {}


class UndoneOut(BaseModel):
    """Questions that are open again, and the number of answers left."""

    questions: list[QuestionOut]
    answers: int


class KernelIn(_In):
    """A kernel that is not learned."""

    name: str
    lengthscale: Annotated[list[float], Field(min_length=1, max_length=1000)]
    outputscale: float


class ChangeIn(_In):
    """Settings with which a study goes on; those that are left out stay."""

    model_config = ConfigDict(extra="allow")  # settings that cannot change are refused with the reason

    space: Annotated[
        dict[str, dict[str, Any]] | None,
        Field(
            description="The tables [space.NAME] of all parameters, as of a new study.",
            examples=[{"gain": {"type": "real", "low": 0, "high": 60}}],
        ),
    ] = None
    constraints: Annotated[
        list[str] | None, Field(description="With space: none if left out.", max_length=1000)
    ] = None
    rule: Annotated[str | None, Field(description="null: the usual one.")] = None
    kernel: str | KernelIn = "matern52"
    expires: Annotated[int | float | None, Field(description="Seconds; null: never.")] = None
    repeats: float = 0.0
    level: Annotated[float | None, Field(description="A success rate; null: the best is looked for.")] = None
    reason: Reason = None


class ChangedOut(BaseModel):
    """What has changed, in words; nothing if all was so before."""

    changes: list[str]


class ChangeOut(BaseModel):
    """A change of a study that had begun."""

    number: int
    """Number of its event."""
    at: float
    """When, in seconds since 1970."""
    words: list[str]
    reason: str | None


class EntryOut(BaseModel):
    """A question and what became of it."""

    id: int
    status: str
    options: list[dict[str, Any]]
    order: list[int]
    participant: str | None
    context: dict[str, Any] | None
    answer: dict[str, Any] | None
    seconds: float | None
    reason: str | None
    asked: float
    """When it was last asked, in seconds since 1970."""
    seen: int | None
    """Number of events known when the study chose it; null if it was recorded."""

    @classmethod
    def of(cls, entry: Entry) -> "EntryOut":
        """A question of the record."""
        return cls(
            id=entry.id,
            status=entry.status,
            options=[dict(option) for option in entry.options],
            order=list(entry.order),
            participant=entry.participant,
            context=None if entry.context is None else dict(entry.context),
            answer=None if entry.answer is None else entry.answer.to_json(),
            seconds=entry.seconds,
            reason=entry.reason,
            asked=entry.asked,
            seen=entry.seen,
        )


class DoneOut(BaseModel):
    """A question after a change, and the next one if it was wanted."""

    id: int
    status: str
    answers: int
    """Answers so far; of a participant's own, for a participant."""
    next: QuestionOut | None = None
    """Null if it was not wanted, or the study is paused."""


class BestOut(BaseModel):
    """The recommended setting."""

    params: dict[str, Any]
    mean: float
    std: float
    probability: float
    above_level: float | None


class PredictIn(_In):
    """Settings to predict."""

    settings: Annotated[list[Setting], Field(min_length=1, max_length=10_000)]
    context: Context = None
    participant: Participant = None


class PredictionOut(BaseModel):
    """What is known of a setting."""

    params: dict[str, Any]
    mean: float
    std: float
    interval: tuple[float, float]
    probability: float
    probability_interval: tuple[float, float]
    above_level: float | None


class CompareIn(_In):
    """Two settings to compare."""

    first: Setting
    second: Setting
    context: Context = None
    participant: Participant = None


class ComparisonOut(BaseModel):
    """Which of two settings is better."""

    probability: float
    better: float
    difference: float
    interval: tuple[float, float]


class CheckOut(BaseModel):
    """A check of the answers."""

    name: str
    flagged: bool
    detail: str


class StatusOut(BaseModel):
    """How far a study has come."""

    answers: int
    undecided: int
    skipped: int
    voided: int
    open: int
    expired: int
    gain: float | None
    regret: float | None
    hint: str
    checks: list[CheckOut]
    misclassified: float | None


class EstimateOut(BaseModel):
    """A number that was learned, with an interval of 95%."""

    value: float
    interval: tuple[float, float] | None


class LevelSetOut(BaseModel):
    """Which settings work at least so often, as shares of the space."""

    level: float
    confidence: float
    inside: EstimateOut
    outside: EstimateOut
    unclear: EstimateOut
    share: EstimateOut
    misclassified: float
    settings: int
    safest: list[PredictionOut]


class ClassifiedOut(BaseModel):
    """A setting, and on which side of the level it is."""

    params: dict[str, Any]
    rate: float
    above_level: float
    side: str


class RaterOut(BaseModel):
    """One of the people."""

    name: str | None
    answers: int
    lapse: EstimateOut
    noise: EstimateOut


class RatersOut(BaseModel):
    """What is learned of the people."""

    each: list[RaterOut]
    share: EstimateOut | None
    slopes: list[EstimateOut] | None
    margin: EstimateOut | None


class ParticipantOut(BaseModel):
    """Somebody who has answered."""

    name: str | None
    answers: int


class LinkIn(_In):
    """For whom a link is; by default for anybody, each with a name of their own."""

    participant: Annotated[str | None, Field(min_length=1, max_length=200)] = None


class LinkOut(BaseModel):
    """A participant's link."""

    id: str
    participant: str | None
    path: str
    """To be put after the address of the server."""
    token: str
    """To be sent as bearer token to ask, tell and skip."""
    created: float
    revoked: bool


class WhoOut(BaseModel):
    """Whose token it is: the server's own, or a participant's for one study."""

    owner: bool
    study: str | None
    participant: str | None


class JoinIn(_In):
    """The name that a participant goes by; by default a random one."""

    participant: Annotated[str | None, Field(min_length=1, max_length=200)] = None


class JoinOut(BaseModel):
    """A participant, and the token by which they ask, tell and skip."""

    participant: str
    token: str


class PauseIn(_In):
    """Whether a study asks nothing for now."""

    paused: bool
