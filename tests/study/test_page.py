"""The tables [page] and [stimulus] of a study file, with errors that name the line."""

import pytest

from askwise.errors import Refused
from askwise.study import Page, load
from served import DUEL

LINE = DUEL.count("\n")  # the last line of the study without them


def page(text, study=DUEL):
    return load(f"{study}{text}").page


def test_without_a_table_the_page_has_its_defaults():
    assert load(DUEL).page == Page()
    assert load(DUEL).stimulus is None


def test_everything_may_be_said():
    found = page(
        '[page]\ntitle = "T"\ninstructions = "I"\nconsent = "C"\nthanks = "D"\nlanguage = "ar"\nanswers = 9\n'
        'break = 3\nundecided = false\ncode = "X"\nreveal = true\n[page.words]\nyes = "Ja"\n'
    )
    assert (found.title, found.pause, found.direction, found.words["yes"]) == ("T", 3, "rtl", "Ja")
    assert found.words["no"] == "No"
    assert [number for number in range(10) if found.pauses_after(number)] == [3, 6, 9]


def test_a_page_changes_no_question():
    assert load(DUEL + "[page]\nanswers = 3\n").plan().to_dict() == load(DUEL).plan().to_dict()


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[page]\ntitel = 'T'", 2, "Did you mean 'title'"),
        ("[page]\nanswers = 0", 2, "answers must be a whole number from 1; got 0"),
        ("[page]\nbreak = true", 2, "break must be a whole number from 1"),
        ("[page]\nundecided = 'no'", 2, "true or false"),
        ("[page]\nlanguage = 'e n'", 2, "the code of a language"),
        ("[page]\nanswer = 'ranking'", 2, "unless a batch is compared"),
        ("[page]\n[page.words]\nyess = 'Ja'", 3, "Did you mean 'yes'"),
        ("[page]\n[page.words]\nbetter = '{otpion}'", 3, r"have only {option} in braces; got {otpion}"),
        ("[page]\n[page.words]\nyes = '{option}'", 3, "have no braces"),
        ("[page]\n[page.words]\nyes = 3", 3, "text in quotes"),
        ("[page]\ncontext = {gain = 3}", 2, "context"),
        ("[stimulus]\n", 1, "have one of text, html, file, url, command, render; got none"),
        ("[stimulus]\ntext = 'a'\nhtml = 'b'", 1, "got text and html"),
        ("[stimulus]\nfile = '../a.wav'", 2, "inside the folder"),
        ("[stimulus]\ntext = '{gian}'", 2, "have parameters in braces (gain, mode); got {gian}"),
        ("[stimulus]\ncommand = 'x {out}'\ntimeout = 0", 3, "a number of seconds above 0"),
        ("[stimulas]\n", 1, "Did you mean 'stimulus'"),
    ],
)
def test_mistakes_are_refused_by_their_line(text, line, message):
    with pytest.raises(Refused) as error:
        load(DUEL + text + "\n")
    assert error.value.place == f"line {LINE + line}"
    assert message in str(error.value)


def test_the_worst_is_of_three_or_more():
    batch = DUEL.replace('name = "hall"', 'name = "hall"\nfeedback = "batch"\nsize = 2')
    with pytest.raises(Refused, match="where two are compared"):
        page("[page]\nanswer = 'worst'\n", batch)
    assert page("[page]\nanswer = 'worst'\n", batch.replace("size = 2", "size = 3")).answer == "worst"


def test_the_context_of_the_page_is_one_of_the_space():
    study = DUEL + '[space.room]\ntype = "choice"\nvalues = ["small", "large"]\ncontext = true\n'
    assert page("[page]\ncontext = {room = 'large'}\n", study).context == {"room": "large"}
    with pytest.raises(Refused, match="room"):
        page("[page]\ncontext = {room = 'huge'}\n", study)
