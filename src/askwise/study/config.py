"""A study as a TOML file: read with errors that name the line, and a template to fill in."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askwise import plugins
from askwise.errors import NotFound, Refused
from askwise.study.feedback import FEEDBACKS
from askwise.study.page import Page, read_page
from askwise.study.stimulus import read_stimulus
from askwise.study.toml import Tables
from askwise.study.values import FLAG, NUMBER, TEXT, WHOLE, Check, list_of, must_be, of

if TYPE_CHECKING:  # what needs torch is imported when a study is read
    import askwise.space
    import askwise.study.plan
    from askwise.stimuli import Stimulus


@dataclass(frozen=True)
class Config:
    """The content of a study file; settings that it leaves out are None or the default."""

    name: str
    space: "askwise.space.Space"
    question: str = ""
    """What people are asked, in words."""
    feedback: str = "duel"
    rule: str | None = None
    seed: int = 0
    size: int | None = None
    kernel: str | None = None
    initial: int | None = None
    expires: float | int | None = None
    repeats: float | int = 0.0
    level: float | int | None = None
    participants: str | None = None
    aim: str | None = None
    lapses: float | int | str | None = None
    guess: float | int = 0.0
    noise: str | None = None
    storage: str | None = None
    imports: tuple[str, ...] = ()
    """The user's own modules, to be imported first."""
    page: Page = field(default_factory=Page)
    """What participants read, and how many questions they answer."""
    stimulus: "Stimulus | None" = None
    """What options look or sound like; None to show their values."""

    def plan(self, **instead: Any) -> "askwise.study.plan.Plan":
        """The plan of the study, with some settings changed."""
        from askwise.study.plan import Plan

        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return Plan.checked(**{k: v for k, v in (settings | instead).items() if k not in _UNPLANNED})


_UNPLANNED = ("name", "question", "storage", "imports", "page", "stimulus")


def load(source: str | Path, *, known: bool = False) -> Config:
    """The study that a TOML file (or a text of more than one line) describes.

    ``known``: it is recorded as the file says, so what takes long to check was checked then: the rule, the
    kernel, and whether there is something to ask about.

    >>> load('[study]\\nname = "hall"\\n[space.gain]\\ntype = "real"\\nlow = 0\\nhigh = 40').space
    Space(gain=Real(0, 40))
    """
    is_text = isinstance(source, str) and "\n" in source
    file = Tables.read(str(source) if is_text else _content(Path(source)))
    for key in file.content:
        file.check_known((), key, ("study", "space", "page", "stimulus"))
    study = file.table("study")
    for key, value in study.items():
        file.check_known(("study",), key, [*_STUDY])
        _STUDY[key](file.at("study", key), key, value)
    if "name" not in study:
        raise Refused("name", "be given", "none", 'Add name = "..." under [study].', file.at("study"))
    study.setdefault("question", FEEDBACKS[study.get("feedback", Config.feedback)].question)
    imports = tuple(study.pop("import", ()))
    with file.placing("study", "import"):
        for module in imports:
            plugins.use(module, None if is_text else Path(source).absolute().parent)
    folder = Path() if is_text else Path(source).parent
    space = _space(file, folder, study.pop("constraints", []), known)
    kind = FEEDBACKS[study.get("feedback", Config.feedback)]
    page = read_page(file, kind, study.get("size"), space)
    stimulus = read_stimulus(file, space, folder)
    config = Config(space=space, imports=imports, page=page, stimulus=stimulus, **study)
    if not known:
        _check_plan(file, config)
    return config


def _check_plan(file: Tables, config: Config) -> None:
    with file.placing("study", "rule"):
        if config.rule not in (None, FEEDBACKS[config.feedback].rule):
            from askwise.rules import parse

            parse(str(config.rule))
    with file.placing("study"):
        config.plan()


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors begin a file with a byte order mark
    except FileNotFoundError:
        got = f"{str(path)!r}, where there is none"
        raise NotFound("study file", "exist", got, "Create it, or give another path.") from None
    except UnicodeDecodeError:
        got = f"other bytes in {str(path)!r}"
        raise Refused("study file", "be text in UTF-8", got, "Save it as UTF-8.") from None


_STUDY: dict[str, Check] = {
    **dict.fromkeys(("name", "question", "rule", "storage", "kernel"), TEXT),
    **dict.fromkeys(("participants", "aim", "noise"), TEXT),
    "lapses": must_be('a number or "learned"', "0.02", of(int, float, str)),
    "guess": must_be("a number", "0.25", of(int, float)),
    **dict.fromkeys(("seed", "size", "initial"), WHOLE),
    "feedback": must_be("'binary', 'duel' or 'batch'", '"duel"', lambda value: value in [*FEEDBACKS]),
    **dict.fromkeys(("expires", "repeats"), NUMBER),
    "level": must_be("a number", "0.95", of(int, float)),
    "constraints": must_be("a list of texts", '["a + b <= 10"]', list_of(str)),
    "import": must_be("a list of modules", '["my_rules"]', list_of(str)),
}
_PLAIN = (str, int, float, bool)
_BY_TYPE: dict[object, Check] = {
    str: TEXT,
    int: WHOLE,
    float | int: NUMBER,
    float | int | None: NUMBER,
    bool: FLAG,
    str | int | float | bool: must_be("text, a number, true or false", "3", of(*_PLAIN)),
    Sequence[Any]: must_be("a list of texts, numbers, true or false", '["a", "b"]', list_of(*_PLAIN)),
}
"""What a key of a parameter must be, by the type of the field."""


def _space(file: Tables, folder: Path, constraints: list[str], known: bool) -> "askwise.space.Space":
    from askwise.space import Space

    parameters = {name: _parameter(file, folder, name) for name in file.table("space")}
    with file.placing("space"):
        space = Space(**parameters)
    with file.placing("study", "constraints"):
        if known:
            return Space.from_dict(space.to_dict() | {"constraints": constraints})
        return space.where(*constraints) if constraints else space


def _parameter(file: Tables, folder: Path, name: str) -> "askwise.space.Parameter":
    from askwise.space import Parameter

    path, settings = ("space", name), file.table("space", name)
    try:
        kind = Parameter.of_kind(settings.get("type"))
    except Refused as error:
        what, advice = f"type of {name}", 'Write type = "real", say.'
        raise Refused(what, error.expected, error.got, advice, file.at(*path, "type")) from None
    types = {"type": str, **typing.get_type_hints(kind)}
    known = [*(field.name for field in fields(kind)), "type"]  # type: ignore[arg-type]
    for key, value in settings.items():
        file.check_known(path, key, known)
        if types[key] in _BY_TYPE:
            _BY_TYPE[types[key]](file.at(*path, key), key, value)
    with file.placing(*path):
        return Parameter.from_dict(kind.in_folder(settings, folder))


def template(feedback: str = "duel") -> str:
    """A commented file to start from, which describes a small study."""
    kind = FEEDBACKS[feedback]
    size = f"size = {kind.size}\n" if len(kind.sizes) > 1 else ""
    guess, level = ("", "") if kind.compares else (_GUESS, _LEVEL.format(kind=kind))
    return _TEMPLATE.format(feedback=feedback, kind=kind, size=size, guess=guess, level=level)


_GUESS = """
# Where a yes can be a lucky guess, how often it is: 0.25 in a task with four alternatives.
# guess = 0.0
"""


_LEVEL = """
# To find all settings that work at least this often, instead of the best one; the usual rule is then
# {kind.level_rule}.
# level = 0.95
"""


_TEMPLATE = """\
# What is studied, and how.  Settings that are commented out show the default or an example.

[study]
name = "my study"

# What people are asked.
question = "{kind.question}"

# "binary": did it work?  "duel": which of two is better?  "batch": compare several (size = how many).
feedback = "{feedback}"
{size}
# Where answers are kept.  Without it they are kept in memory, and lost at the end.
storage = "sqlite:///study.db"

# The rule that chooses questions, and the number of space-filling questions before it takes over.
# rule = "{kind.rule}"
# initial = {kind.initial}
{level}
# Equal seeds and equal answers give equal questions.
# seed = 0

# How smoothly the answers depend on the parameters is learned.  "averaged" averages over kernels, as what is
# learned of them is uncertain; "matern52" takes the likeliest one, "se" is smoother, "matern32" rougher.
# kernel = "{kind.kernel}"

# Seconds after which a question without an answer may be asked again.
# expires = 3600

# Share of questions that are asked twice, to see whether the answers agree: 0.05 is one in twenty.
# repeats = 0.0

# Who answers.  "shared": one person, or several with the same taste.  "separate": several, each with
# questions and a best setting of their own.  "population": the same, but everybody's answers help to
# understand the others.  Say who answers with `askwise run --participant NAME`.
# participants = "shared"

# In a population: whether questions look for what is best for each "person", or for all, the "population".
# aim = "person"

# Share of answers that are given without looking: "learned" from them, or a number (0.02 is one in fifty).
# lapses = "learned"
{guess}
# "constant": answers are equally certain everywhere.  "setting": at some settings less than at others.
# noise = "constant"

# Linear constraints on the parameters, in natural units, with <= or >=.
# constraints = ["gain + 2 * bands <= 40"]

# Your own modules that define rules, kernels or kinds of parameters, next to this file or installed.
# import = []


# Each parameter has a table, [space.<its name>], of type "real", "integer", "ordinal", "choice", "items" or
# "fixed".

[space.gain]
type = "real"
low = 0
high = 40
unit = "dB"  # shown beside the value

[space.cutoff]
type = "real"
low = 100
high = 10000
log = true  # ratios matter, not differences
unit = "Hz"
# step = 10  # only 100, 110, 120, ..., if the device takes no others

[space.bands]
type = "integer"
low = 1
high = 8

[space.mode]
type = "choice"
values = ["soft", "hard"]  # texts, numbers, true or false, without an order

# [space.window]
# type = "ordinal"
# values = [128, 256, 512, 1024]  # in order; the model uses it

# [space.wine]
# type = "items"  # one of the rows of a table
# table = {{name = ["Chablis", "Rioja"], sugar = [1.2, 2.5]}}  # or a file next to this one, "wines.csv"
# features = ["sugar"]  # columns with numbers; without any, each item has a worth of its own
# id = "name"  # column with the name of an item

# [space.rate]
# type = "fixed"  # always the same
# value = 48000

# [space.noise]
# type = "choice"
# values = ["quiet", "loud"]
# context = true  # given with each question, not chosen


# What `askwise serve` shows of an option, by default its values; docs/web.md has all of it.

# [stimulus]
# file = "sounds/{{gain}}-{{mode}}.wav"  # or text, html, url, command, render

# [page]
# title = "Hearing aids"
# instructions = "Listen to both, then choose the one you would rather wear."
# answers = 30  # of each participant
# break = 10  # offered after every ten
"""
