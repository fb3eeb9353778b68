"""The page on study files has every key that there is, and no other."""

import re
from dataclasses import fields

import pytest

from askwise.space import KINDS
from askwise.stimuli import KINDS as STIMULI
from askwise.study import config, page, stimulus
from askwise.study.config import Config
from askwise.study.page import Page
from askwise.study.people import People
from pages import DOCS

TEXT = (DOCS / "study-file.md").read_text(encoding="utf-8")


def table(heading):
    """The keys below a heading, and the default of each as the page says."""
    part = TEXT.partition(f"{heading}\n")[2].partition("\n#")[0]
    found = {}
    for keys, default in re.findall(r"^\| (`.*?) \| *(.*?) *\| .* \|$", part, re.MULTILINE):
        found |= dict.fromkeys(re.findall(r"`(\w+)`", keys), default)
    return found


def test_keys_of_the_study_are_those_of_the_code():
    assert set(table("## `[study]`")) == set(config._STUDY)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].__module__.startswith("askwise.")])
def test_keys_of_a_parameter_are_those_of_the_code(kind):
    assert set(table(f'### `type = "{kind}"`')) == {field.name for field in fields(KINDS[kind])}


def test_keys_of_the_page_are_those_of_the_code():
    assert set(table("## `[page]`")) == set(page._KEYS)


def test_keys_of_stimuli_are_those_of_the_code():
    assert set(table("## `[stimulus]`")) == {*STIMULI, *stimulus._MORE}


def value(text):
    """What a default in code is, or None where the page explains it in words."""
    plain = text.strip("`")
    if plain in ("true", "false"):
        return plain == "true"
    if re.fullmatch(r'"\w+"', plain):
        return plain.strip('"')
    return float(plain) if re.fullmatch(r"[\d.]+", plain) else None


@pytest.mark.parametrize(("heading", "homes"), [("study", (People, Config)), ("page", (Page,))])
def test_defaults_are_those_of_the_code(heading, homes):
    checked = 0
    for key, text in table(f"## `[{heading}]`").items():
        home = next((one for one in homes if hasattr(one, key)), None)
        if home is None or value(text) is None or key in ("lapses", "size"):  # new studies, batches
            continue
        assert getattr(home, key) == value(text), key
        checked += 1
    assert checked >= 3
