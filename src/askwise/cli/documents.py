"""What commands print as JSON, and `askwise shell` answers, about a question or a reply."""

from typing import Any

from askwise.cli.session import Session
from askwise.study import Entry, Question, labels


def asked_json(session: Session, question: Question) -> dict[str, Any]:
    """A question to be answered."""
    return {
        "id": question.id,
        "question": session.config.question,
        "feedback": session.study.feedback,
        "labels": labels(len(question.options)),
        "options": question.options,
        "participant": question.participant,
        "context": question.context,
    }


def told_json(session: Session, number: int, words: str) -> dict[str, Any]:
    """A reply that was recorded; ``words``: what it says."""
    entry = session.study.entry(number)
    answer = entry.answer and entry.answer.to_json()
    head = {"id": number, "status": entry.status, "answer": answer, "words": words}
    return {**head, "answers": session.study.count()}


def entry_json(entry: Entry) -> dict[str, Any]:
    """A question and what became of it."""
    whole = {name: value for name, value in vars(entry).items() if name != "answered"}  # which is a cache
    return {**whole, "answer": entry.answer and entry.answer.to_json()}
