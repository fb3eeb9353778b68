"""The JSON of the API."""

from pydantic import BaseModel


class StudyOut(BaseModel):
    """A study that is served."""

    id: str
    name: str
    question: str
    feedback: str
    size: int
    participants: str
    answers: int
