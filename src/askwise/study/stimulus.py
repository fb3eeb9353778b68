"""What options look or sound like, as a study file says in ``[stimulus]``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from askwise.errors import Refused
from askwise.study.toml import Tables
from askwise.study.values import TEXT, Check, must_be, of, one_of

if TYPE_CHECKING:
    from askwise.space import Space
    from askwise.stimuli import Stimulus

_POSITIVE = must_be("a number of seconds above 0", "60", lambda value: of(int, float)(value) and value > 0)
_MORE: dict[str, Check] = {
    "timeout": _POSITIVE,
    "shown": must_be("'image', 'audio' or 'video'", '"image"', one_of("image", "audio", "video")),
}


def read_stimulus(file: Tables, space: "Space", folder: Path) -> "Stimulus | None":
    """The table ``[stimulus]`` of a study file; None without one, to show values."""
    if "stimulus" not in file.content:
        return None
    from askwise.stimuli import KINDS

    given = file.table("stimulus")
    for key, value in given.items():
        file.check_known(("stimulus",), key, [*KINDS, *_MORE])
        _MORE.get(key, TEXT)(file.at("stimulus", key), key, value)
    sources = [key for key in given if key in KINDS]
    if len(sources) != 1:
        expected, got = f"have one of {', '.join(KINDS)}", " and ".join(sources) or "none"
        raise Refused("stimulus", expected, got, f"Write {_example()}, say.", file.at("stimulus"))
    with file.placing("stimulus", sources[0]):
        return stimulus_of(sources[0], given.pop(sources[0]), space, folder, **given)


def stimulus_of(key: str, value: str, space: "Space", folder: Path, **more: Any) -> "Stimulus":
    """The stimulus of this kind; refuses what cannot work."""
    from askwise.stimuli import KINDS, Settings

    names = [*space.parameters]
    for parameter in space.parameters.values():
        names += parameter.columns
    return KINDS[key](Settings(value, tuple(names), folder.absolute(), **more))


def _example() -> str:
    from askwise.stimuli import KINDS

    return f"file = {KINDS['file'].example}"
