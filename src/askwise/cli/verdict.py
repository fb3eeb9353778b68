"""The recommended setting in words."""

from rich.console import Console

from askwise.cli.screen import counted, setting_table
from askwise.cli.session import Session, answers_of
from askwise.study import Best, Study

__all__ = ["print_best", "sentence"]


def print_best(out: Console, session: Session, found: Best, has_reference: bool = False) -> None:
    """Show a recommended setting and how sure that is."""
    study = session.study
    count = answers_of(study)
    if not count:
        out.print("No answers yet, so this is a guess; `askwise run` asks.")
    elif study.feedback == "binary" and not _has_worked(study):
        out.print("Nothing has worked yet, so this is a guess.")
    out.print(f"Recommended setting, after {counted(count, 'answer')}:\n")
    out.print(setting_table(found.params, session.config.space))
    out.print()
    out.print(sentence(study.feedback, found.probability, has_reference))


def _has_worked(study: Study) -> bool:
    return any(entry.status == "answered" and entry.answer == {"yes": True} for entry in study.history())


def sentence(feedback: str, probability: float, has_reference: bool) -> str:
    """What the probability of a recommended setting means."""
    rate = f"{probability:.0%}"
    if feedback == "binary" and has_reference:
        return f"It is more likely to work than the reference with a probability of {rate}."
    if feedback == "binary":
        return f"It is expected to work {rate} of the time."
    rival = "the reference" if has_reference else "a setting at random"
    return f"It is expected to be preferred to {rival} {rate} of the time."
