"""Studies as TOML: there and back, and errors that name the line."""

import json
import math
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askwise.errors import NotFound
from askwise.space import Choice, Fixed, Integer, Real, Space
from askwise.study.config import Config, load, template

HOUSE = r"^line \d+: [^;]+ must [^;]+; got .+\. .+"
values = st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
parameters = st.one_of(
    st.tuples(st.just("real"), st.floats(1e-3, 1), st.floats(2, 1e6), st.booleans()),
    st.tuples(st.just("integer"), st.integers(1, 99), st.integers(100, 999), st.booleans()),
    st.lists(st.text(), min_size=2, max_size=4, unique=True).map(lambda texts: ("choice", texts)),
    values.map(lambda value: ("fixed", value)),
)
settings_of = st.fixed_dictionaries(
    {"name": st.text(), "question": st.text(), "seed": st.integers(-5, 2**40)},
    optional={
        "kernel": st.sampled_from(["se", "matern32", "matern52"]),
        "initial": st.integers(0, 9),
        "expires": st.floats(1e-3, 1e6) | st.integers(1, 10**6),
        "storage": st.text(),
        "repeats": st.floats(0, 0.5) | st.just(0),
    },
)
asked = st.sampled_from(
    [
        {},
        {"feedback": "binary"},
        {"feedback": "binary", "rule": "ucb_phi(beta=2.5)"},
        {"feedback": "duel", "size": 2},
        {"feedback": "batch", "size": 4, "rule": "muc_joint"},
        {"rule": "eubo"},
    ]
)


def parameter(kind: str, *details: object, unit: str = "") -> Real | Integer | Choice | Fixed:
    if kind in ("real", "integer"):
        return (Real if kind == "real" else Integer)(*details, unit=unit)
    return Choice(details[0]) if kind == "choice" else Fixed(details[0])


def written(config: Config) -> str:
    """The config as TOML."""
    lines = ["[study]"]
    for field in fields(config):
        if field.name in ("page", "stimulus"):  # tables of their own
            continue
        value = getattr(config, field.name)
        if field.name != "space" and value is not None and value != ():
            lines.append(f"{field.name} = {toml(value)}")
    lines.append(f"constraints = {toml(config.space.constraints)}")
    for name, keys in config.space.to_dict()["parameters"]:
        lines += ["", f"[space.{toml(name)}]", *(f"{key} = {toml(value)}" for key, value in keys.items())]
    return "\n".join(lines) + "\n"


def toml(value: object) -> str:
    if isinstance(value, str):  # JSON leaves one character as it is that TOML wants escaped
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    return str(value).lower() if isinstance(value, bool) else repr(value)


@settings(max_examples=15)
@given(
    settings_of, asked, st.dictionaries(st.text(), parameters, max_size=4), st.text(max_size=4), st.booleans()
)
def test_a_study_is_read_back_from_what_is_written(given_settings, asked, kinds, unit, constrained):
    named = {name: parameter(*kind, unit=unit) for name, kind in kinds.items()}
    space = Space(**{**named, "x": Real(0, 10), "t": Integer(0, 3, context=True)})
    if constrained:
        space = space.where("x + 2 * t <= 10", "x >= 0.5")
    config = Config(space=space, **given_settings, **asked)
    assert load(written(config)) == config


@pytest.mark.parametrize("feedback", ["binary", "duel", "batch"])
def test_the_template_is_a_study(feedback, tmp_path):
    file = tmp_path / "askwise.toml"
    file.write_text(template(feedback))
    config = load(file)
    assert (config.feedback, config.name, config.storage) == (feedback, "my study", "sqlite:///study.db")
    assert config == load(str(file)) == load(template(feedback)) == load(written(config))
    assert list(config.space.parameters) == ["gain", "cutoff", "bands", "mode"]
    assert config.space.parameters["cutoff"] == Real(100, 10_000, log=True, unit="Hz")
    assert config.size == (3 if feedback == "batch" else None)
    assert config.question.endswith("?")


@pytest.mark.parametrize("feedback", ["binary", "duel", "batch"])
def test_the_template_explains_who_answers_and_guesses_only_where_a_yes_can_be_one(feedback):
    text = template(feedback)
    assert all(f"\n# {name} = " in text for name in ("participants", "aim", "lapses", "noise"))
    assert ("\n# guess = 0.0\n" in text) == (feedback == "binary")
    assert "\n\n\n\n" not in text


def test_people_are_read_from_the_file():
    more = 'participants = "population"\naim = "population"\nlapses = 0.05\nnoise = "setting"'
    people = load(GOOD.replace(DUEL, more)).plan().people
    assert (people.participants, people.aim, people.lapses, people.noise) == (
        "population",
        "population",
        0.05,
        "setting",
    )
    binary = load(GOOD.replace(DUEL, 'feedback = "binary"\nguess = 0.25')).plan().people
    assert (binary.guess, binary.lapses) == (0.25, "learned")


def test_what_the_template_comments_out_is_valid_too():
    lines = template("duel").splitlines()
    shown = [line.removeprefix("# ") if re.match(r"# (\w+ = |\[)", line) else line for line in lines]
    config = load("\n".join(line for line in shown if not line.startswith("#")))
    assert config.space.constraints == ("gain + 2 * bands <= 40",)
    assert config.space.contexts == ("noise",)
    assert config.space.parameters["rate"] == Fixed(48000)
    assert (config.rule, config.seed, config.kernel, config.initial, config.expires) == (
        "muc",
        0,
        "averaged",
        10,
        3600,
    )


FORMS = {
    "tables": '[study]\nname = "s"\n[space.gain]\ntype = "real"\nlow = 1\nhigh = 40\nlog = true\n'
    '[space.mode]\ntype = "choice"\nvalues = ["a", 1, true]',
    "inline": '[study]\nname = "s"\n[space]\ngain = {type="real", low=1, high=40, log=true}\n'
    'mode = {type = "choice", values = ["a", 1, true]}',
    "dotted": 'study.name = "s"\nspace.gain = {type="real", low=1, high=40, log=true}\n'
    'space.mode.type = "choice"\nspace.mode.values = [\n  "a", # one\n  1,\n  true]',
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_toml_are_read_alike(form):
    config = load(FORMS[form])
    assert config.space == Space(gain=Real(1, 40, log=True), mode=Choice(["a", 1, True]))
    assert config == Config(name="s", space=config.space, question="Which is better?")


GOOD = '''\
# a study
[study]
name = "hall"
feedback = "duel"

[space.gain]
type = "real"
low = 0
high = 40

[space.mode]
type = "choice"
values = [
    "soft",
    "hard",
]

[space.bands]
type = "integer"
high = 8
low = 1
'''  # fmt: skip

DUEL = 'feedback = "duel"'
BAD = [
    ('name = "hall"', "name = 3", 3, "name must be text in quotes; got 3"),
    ('name = "hall"', 'nam = "hall"', 3, "key must be one of name, .*; got 'nam'. Did you mean 'name'?"),
    ('name = "hall"', 'zzz = "hall"', 3, "key must be one of name, .*; got 'zzz'. Leave it out."),
    ('name = "hall"\n', "", 2, "name must be given; got none"),
    (DUEL, 'feedback = "duels"', 4, "feedback must be 'binary', 'duel' or 'batch'; got 'duels'"),
    (DUEL, "feedback = 2", 4, "feedback must be 'binary', 'duel' or 'batch'; got 2"),
    (DUEL, 'feedback = "duel"\nrule = "mux"', 5, "rule must be one of .*; got 'mux'"),
    (DUEL, 'feedback = "duel"\nrule = "muc(b=2)"', 5, "setting of muc must be nothing; got 'b'"),
    (DUEL, 'feedback = "binary"\nrule = "muc"', 5, "rule must ask binary questions; got muc"),
    (DUEL, 'feedback = "duel"\nsize = 5', 5, "size must be 2 for duel questions; got 5"),
    (DUEL, 'feedback = "duel"\nsize = 2.0', 5, "size must be a whole number; got 2.0"),
    (DUEL, 'feedback = "duel"\nseed = true', 5, "seed must be a whole number; got True. Write seed = 3"),
    (DUEL, 'feedback = "duel"\nrepeats = "often"', 5, "repeats must be a number; got 'often'"),
    (DUEL, 'feedback = "duel"\nrepeats = 2', 5, "repeats must be a share of questions from 0 to 0.5; got 2"),
    (DUEL, 'participants = "each"', 4, "participants must be 'shared', 'separate' or .*; got 'each'"),
    (DUEL, "participants = 3", 4, "participants must be text in quotes; got 3"),
    (DUEL, '\naim = "population"', 5, "aim must be 'person' unless people have something in common"),
    (DUEL, 'participants = "population"\naim = "all"', 5, "aim must be 'person' or 'population'; got 'all'"),
    (DUEL, "lapses = 2", 4, "lapses must be a share of answers from 0 to 0.5; got 2. Write 0.02 for 2%"),
    (DUEL, 'lapses = "some"', 4, "lapses must be a share of answers .*; got 'some'. Write 0.02 .* 'learned'"),
    (DUEL, "lapses = true", 4, "lapses must be a number or .learned.; got True"),
    (DUEL, "lapses = nan", 4, "lapses must be a share of answers from 0 to 0.5; got nan"),
    (DUEL, "guess = 0.25", 4, "guess must be 0 where settings are compared; got 0.25"),
    (DUEL, 'feedback = "binary"\nguess = 0.9', 5, "guess must be a share of answers from 0 to 0.5; got 0.9"),
    (DUEL, 'noise = "loud"', 4, "noise must be 'constant' or 'setting'; got 'loud'"),
    (DUEL, 'feedback = "duel"\nexpires = -1', 5, "expires must be a positive number"),
    (DUEL, 'feedback = "duel"\ninitial = -1', 5, "initial must be a whole number, 0 or more"),
    (DUEL, 'feedback = "duel"\n\nkernel = "sse"', 6, "kernel must be one of 'se', .*; got 'sse'"),
    (DUEL, 'constraints = [\n"gain <= 3",\n"gain >= 4"]', 4, "constraints must leave at least one"),
    (DUEL, 'constraints = "gain <= 3"', 4, "constraints must be a list of texts; got 'gain <= 3'"),
    (DUEL, 'constraints = ["mode <= 3"]', 4, "constraint must name numeric parameters"),
    ("low = 0", "low = 50", 8, "low must be below high; got 50 and 40"),
    ("low = 0", 'low = "0"', 8, "low must be a number; got '0'"),
    ("low = 0", "low = inf", 8, "low must be finite"),
    ("low = 0", "low = 0\nlog = true", 8, "low must be positive for a logarithmic parameter; got 0"),
    ("low = 0", "low = 0\nlog = 1", 9, "log must be true or false; got 1"),
    ("low = 0\n", "", 6, "low must be given for a parameter of type real; got none"),
    ("low = 0", "low = 0\nlov = 1", 9, "key must be one of low, .*; got 'lov'. Did you mean 'low'?"),
    ("low = 0", "low = 0\nunit = 1", 9, "unit must be text in quotes; got 1"),
    ("low = 0", "low = 1979-05-27", 8, "low must be a number; got datetime"),
    ('type = "real"', 'type = "reel"', 7, "type of gain must be one of choice, .*, real; got 'reel'"),
    ('type = "real"\n', "", 6, "type of gain must be one of choice, .*, real; got None"),
    ('"hard",', '"soft",', 13, "values must all differ; got 'soft' twice"),
    ('    "hard",\n', "", 13, "values must be at least two; got"),
    ('"hard",', "[1],", 13, "values must be a list of texts, numbers, true or false; got"),
    ("high = 8", "high = 8.5", 20, "high must be a whole number; got 8.5"),
    ("low = 1", "low = 9", 21, "low must be below high; got 9 and 8"),
    ("[space.bands]", "[space.bands.more]", 18, "type of bands must be one of"),
    ("[space.bands]", "[spaces.bands]", 18, "key must be .*; got 'spaces'. Did you mean 'space'?"),
    ("[space.bands]", "[other]", 18, "key must be one of study, space, page, stimulus; got 'other'"),
    ("low = 0", "low = ", 8, "study file must be TOML; got "),
    ("low = 0", "low = 0\nlow = 1", 9, "study file must be TOML; got cannot overwrite a value"),
    ('"hard",\n]', '"hard",', 17, "study file must be TOML; got "),
]  # fmt: skip


@pytest.mark.parametrize(("was", "becomes", "line", "problem"), BAD, ids=[f"{bad[1]!r}" for bad in BAD])
def test_errors_name_the_line_and_the_remedy(was, becomes, line, problem):
    load(GOOD)
    assert was in GOOD
    with pytest.raises(ValueError, match=HOUSE) as refused:
        load(GOOD.replace(was, becomes, 1))
    assert re.match(f"line {line}: ({problem.replace('?', '[?]')})", str(refused.value)), refused.value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("\n", "study file must have \\[study\\]; got none"),
        ('[study]\nname = "a"', "study file must have \\[space\\]; got none"),
        ('[study]\nname = "a"\n[space]', "space must have at least one parameter to choose; got none"),
        ('[study]\nname = "a"\n[space.a]\ntype="fixed"\nvalue=2', "space must have at least one parameter"),
        ('[study]\nname = "a"\n[space]\na = 3', "a must be a table; got 3"),
        ("study = 3\nspace = 4", "study must be a table; got 3"),
    ],
)
def test_files_without_what_a_study_needs_are_refused(text, problem):
    with pytest.raises(ValueError, match=rf"^line \d+: {problem}"):
        load(text)


def test_a_line_is_found_after_texts_and_lists_of_several_lines():
    text = (
        '[study]\nname = """\n[space.a]\nlow = 3\n"""\nconstraints = [\n  # [space.b]\n]\n\n'
        '[space."my gain".x]\n[space.b]\n"type" = "real" # = 3\nlow = 2\nhigh = 1\n'
    )
    with pytest.raises(ValueError, match=r"^line 10: type of my gain must be one of"):
        load(text)
    with pytest.raises(ValueError, match=r"^line 12: low must be below high; got 2 and 1"):
        load(text.replace('[space."my gain".x]\n', ""))


def test_windows_line_ends_count_as_one():
    with pytest.raises(ValueError, match=r"^line 8: low must be below high"):
        load(GOOD.replace("low = 0", "low = 50").replace("\n", "\r\n"))


def test_a_byte_order_mark_is_ignored(tmp_path):
    file = tmp_path / "askwise.toml"
    file.write_text(template("duel"), encoding="utf-8-sig")
    assert load(file).name == "my study"


def test_a_missing_file_or_one_that_is_not_text_is_refused(tmp_path):
    with pytest.raises(NotFound, match=r"^study file must exist; got 'nowhere\.toml'"):
        load("nowhere.toml")
    (tmp_path / "odd.toml").write_bytes(b"[study]\nname = '\xff\xfe'")
    with pytest.raises(ValueError, match=r"^study file must be text in UTF-8; got other bytes in"):
        load(tmp_path / "odd.toml")


def test_numbers_keep_their_type_and_their_digits():
    space = Space(a=Real(0.1, 1e300), b=Fixed(1.0), c=Fixed(1), d=Choice([True, 1, "1", math.pi]))
    again = load(written(Config("s", space))).space
    assert repr(again) == repr(space)


def test_importing_the_configuration_module_does_not_take_seconds():
    code = "import sys, askwise.study.config; sys.exit('torch' in sys.modules)"
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
