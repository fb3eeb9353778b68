"""A study as a TOML file: read with errors that name the line, written, and a template to fill in."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from askwise.feedback import KINDS, Feedback
from askwise.tables import Refused, Tables

if TYPE_CHECKING:  # what needs torch is imported when a study is read
    import askwise.space

__all__ = ["Config", "dumps", "load", "template"]

Kernel = Literal["se", "matern32", "matern52"]
_KERNELS = ("se", "matern32", "matern52")


@dataclass(frozen=True)
class Config:
    """What a file says of a study; what it leaves out is None, or the default."""

    name: str
    space: "askwise.space.Space"
    question: str = ""
    """What people are asked, in words."""
    feedback: Feedback = "duel"
    rule: str | None = None
    seed: int = 0
    size: int | None = None
    kernel: Kernel = "matern52"
    initial: int | None = None
    expires: float | int | None = None
    storage: str | None = None


def load(source: str | Path) -> Config:
    """The study that a TOML file (or a text of more than one line) describes.

    >>> load('[study]\\nname = "hall"\\n[space.gain]\\ntype = "real"\\nlow = 0\\nhigh = 40').space
    Space(gain=Real(0, 40))
    """
    is_text = isinstance(source, str) and "\n" in source
    file = Tables.read(str(source) if is_text else _content(Path(source)))
    for key in file.content:
        file.check_known((), key, ("study", "space"))
    study = file.table("study")
    for key, value in study.items():
        file.check_known(("study",), key, [*_STUDY])
        _STUDY[key](file.at("study", key), key, value)
    if "name" not in study:
        raise file.at("study")('name must be given; got none. Add name = "..." under [study].')
    space = _space(file, study.pop("constraints", []))
    config = Config(space=space, **study)
    _check_plan(file, config)
    if "question" not in study:
        config = Config(**{**vars(config), "question": KINDS[config.feedback].question})
    return config


def dumps(config: Config) -> str:
    """The config as TOML, which :func:`load` reads back."""
    lines = ["[study]"]
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name != "space" and value is not None:
            lines.append(f"{field.name} = {_toml(value)}")
    if config.space.constraints:
        lines.append(f"constraints = {_toml(config.space.constraints)}")
    for name, settings in config.space.to_dict()["parameters"]:
        lines += [
            "",
            f"[space.{_key(name)}]",
            *(f"{key} = {_toml(value)}" for key, value in settings.items()),
        ]
    return "\n".join(lines) + "\n"


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except FileNotFoundError:
        raise FileNotFoundError(
            f"study file must exist; got {str(path)!r}, where there is none. Create it, or give another path."
        ) from None
    except UnicodeDecodeError:
        raise ValueError(
            f"study file must be text in UTF-8; got other bytes in {str(path)!r}. Save it as UTF-8."
        ) from None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float)


def _is(what: str, example: str, fits: Callable[[Any], bool]) -> Callable[[Refused, str, object], None]:
    def check(refused: Refused, key: str, value: object) -> None:
        if not fits(value):
            raise refused(f"{key} must be {what}; got {value!r}. Write {key} = {example}, say.")

    return check


_TEXT = _is("text in quotes", '"..."', lambda value: isinstance(value, str))
_WHOLE, _NUMBER = _is("a whole number", "3", _is_whole), _is("a number", "2.5", _is_number)
_TRUTH = _is("true or false", "true", lambda value: isinstance(value, bool))
_FEEDBACK = _is("'binary', 'duel' or 'batch'", '"duel"', lambda value: value in KINDS)
_TEXTS = _is(
    "a list of texts",
    '["a + b <= 10"]',
    lambda value: isinstance(value, list) and all(isinstance(part, str) for part in value),
)
_STUDY = {
    **dict.fromkeys(("name", "question", "rule", "storage"), _TEXT),
    **dict.fromkeys(("seed", "size", "initial"), _WHOLE),
    "feedback": _FEEDBACK,
    "kernel": _is("'se', 'matern32' or 'matern52'", '"matern52"', lambda value: value in _KERNELS),
    "expires": _NUMBER,
    "constraints": _TEXTS,
}
_BOTH = {"type": _TEXT, "log": _TRUTH, "context": _TRUTH, "unit": _TEXT}
_KINDS = {
    "real": {"low": _NUMBER, "high": _NUMBER, **_BOTH},
    "integer": {"low": _WHOLE, "high": _WHOLE, **_BOTH},
    "choice": {
        "values": _is(
            "a list of texts, numbers, true or false",
            '["a", "b"]',
            lambda value: isinstance(value, list) and all(map(_is_plain, value)),
        ),
        "type": _TEXT,
        "context": _TRUTH,
    },
    "fixed": {"value": _is("text, a number, true or false", "3", _is_plain), "type": _TEXT},
}


def _space(file: Tables, constraints: list[str]) -> "askwise.space.Space":
    from askwise.space import Space

    parameters = {}
    for name in file.table("space"):
        parameters[name] = _parameter(file, name)
    try:
        space = Space(**parameters)
    except ValueError as error:
        raise file.at("space")(str(error)) from None
    try:
        return space.where(*constraints) if constraints else space
    except ValueError as error:
        raise file.at("study", "constraints")(str(error)) from None


def _parameter(file: Tables, name: str) -> Any:
    from askwise.parameters import from_dict

    path, settings = ("space", name), file.table("space", name)
    kind = settings.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise file.at(*path, "type")(
            f'type of {name} must be one of {", ".join(_KINDS)}; got {kind!r}. Write type = "real", say.'
        )
    for key, value in settings.items():
        file.check_known(path, key, [*_KINDS[kind]])
        _KINDS[kind][key](file.at(*path, key), key, value)
    try:
        return from_dict(settings)
    except (ValueError, TypeError) as error:
        raise file.at(*path, str(error).split()[0])(str(error)) from None


def _check_plan(file: Tables, config: Config) -> None:
    """Refuse what no study can be created with."""
    from askwise.plan import Plan
    from askwise.rules import parse

    try:
        if config.rule is not None:
            parse(config.rule)
    except ValueError as error:
        raise file.at("study", "rule")(str(error)) from None
    settings = {name: value for name, value in vars(config).items() if name not in _UNPLANNED}
    try:
        Plan.checked(**settings)
    except (ValueError, TypeError) as error:
        raise file.at("study", str(error).split()[0])(str(error)) from None


_UNPLANNED = ("name", "question", "storage")


def _toml(value: object) -> str:
    if isinstance(value, str):
        # JSON leaves one character as it is that TOML wants escaped
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def template(feedback: Feedback = "duel") -> str:
    """A commented file to start from, which describes a small study."""
    size = f"size = {KINDS[feedback].size}\n" if feedback == "batch" else ""
    kind = KINDS[feedback]
    return _TEMPLATE.format(
        feedback=feedback, question=kind.question, rule=kind.rule, size=size, initial=kind.initial
    )


_TEMPLATE = """\
# What is studied, and how.  What is commented out shows the default, or an example.

[study]
name = "my study"

# What people are asked.
question = "{question}"

# "binary": did it work?  "duel": which of two is better?  "batch": compare several (size = how many).
feedback = "{feedback}"
{size}
# Where answers are kept.  Without it they are kept in memory, and lost at the end.
storage = "sqlite:///study.db"

# How questions are chosen, and how many of the first ones at random.
# rule = "{rule}"
# initial = {initial}

# Equal seeds and equal answers give equal questions.
# seed = 0

# How smooth the answers are in the parameters: "se" is smoother, "matern32" rougher.
# kernel = "matern52"

# Seconds after which a question without an answer may be asked again.
# expires = 3600

# Sums of parameters in natural units, compared by <= or >=.
# constraints = ["gain + 2 * bands <= 40"]


# Each parameter has a table, [space.<its name>].  Its type is "real", "integer", "choice" or "fixed".

[space.gain]
type = "real"
low = 0
high = 40
unit = "dB"  # shown beside the value

[space.cutoff]
type = "real"
low = 100
high = 10000
log = true  # its ratios count, not its differences
unit = "Hz"

[space.bands]
type = "integer"
low = 1
high = 8

[space.mode]
type = "choice"
values = ["soft", "hard"]  # texts, numbers, true or false, without an order

# [space.rate]
# type = "fixed"  # always the same
# value = 48000

# [space.noise]
# type = "choice"
# values = ["quiet", "loud"]
# context = true  # given with each question, not chosen
"""
