"""Everything that the participants' page says; ``[page.words]`` replaces it, for another language, say."""

import re
from collections.abc import Mapping

from askwise.errors import Refused

WORDS: Mapping[str, str] = {
    # before
    "start": "Start",
    "agree": "I agree and want to take part",
    "how_yes_no": "You see one option at a time. Say yes or no to each.",
    "how_better": "You see two options at a time. Choose the one that you like better.",
    "how_best": "You see several options at a time. Choose the one that you like best.",
    "how_worst": "You see several options at a time. Choose the one that you like least.",
    "how_ranking": "You see several options at a time. Put them in order, best first.",
    "how_keys": "Use the mouse, touch, or the keys shown on the buttons.",
    # questions
    "option": "Option {option}",
    "yes": "Yes",
    "no": "No",
    "better": "{option} is better",
    "best": "{option} is best",
    "worst": "{option} is worst",
    "undecided": "Can't decide",
    "undo": "Undo",
    "undoing": "This is your last question again. A new answer replaces the one you gave.",
    "keep": "Keep my answer",
    "progress": "{answered} of {planned}",
    "answered": "{answered} answered",
    "number": "Question {number}",
    "loading": "Loading",
    "unloadable": "This option could not be loaded.",
    "again": "Try again",
    # sounds and films
    "play": "Play {option}",
    "stop": "Stop {option}",
    "playing": "Playing {option}",
    # rankings
    "ranking": "Drag the options into order, best first, or move them with the arrows.",
    "up": "Move {option} up",
    "down": "Move {option} down",
    "moved": "{option} is now at place {place} of {count}",
    "first": "Best",
    "last": "Worst",
    "submit": "This is my order",
    # between
    "break": "Time for a break",
    "break_text": "You have answered {answered} questions. Rest your eyes and ears, and go on when you like.",
    "continue": "Go on",
    "finish": "Finish here",
    # trouble
    "offline": "No connection. Your answer is kept, and sent as soon as there is one.",
    "online": "Connected again. Nothing was lost.",
    "elsewhere": "That question was already answered, or went to somebody else meanwhile.",
    "paused": "The study is paused",
    "paused_text": "Your answers are safe. Come back later, or try again now.",
    "trouble": "That did not work",
    "needs_script": "This page needs JavaScript.",
    # after
    "thanks": "Thank you!",
    "recorded": "All your answers are recorded. You can close this page.",
    "reveal": "The best one, as far as the answers tell",
    "code": "Your completion code",
    "copy": "Copy",
    "copied": "Copied",
}
"""The words in English, by their keys; what stands in braces is filled in."""
_PLACE = re.compile(r"\{(\w+)\}")


def with_words(given: Mapping[str, str]) -> dict[str, str]:
    """All words, with those that are given in place of the English ones."""
    for key, text in given.items():
        allowed = _PLACE.findall(WORDS[key])
        for name in _PLACE.findall(text):
            if name not in allowed:
                expected = "have only " + ", ".join(f"{{{one}}}" for one in allowed) + " in braces"
                raise Refused(key, expected if allowed else "have no braces", f"{{{name}}}", "Correct it.")
    return {**WORDS, **given}
