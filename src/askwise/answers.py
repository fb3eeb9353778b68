"""Answers as people give them, as the record keeps them, and as the model takes them.

In the record an answer is a small JSON object with one key:
``{"yes": true}``, ``{"prefers": 1}``, ``{"ranking": [2, 0]}`` (best first, perhaps only the first few),
``{"pairs": [[2, 0], [1, 0]]}`` (each better, worse) or ``{"undecided": true}``.
"""

import operator
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from askwise.data import Data

__all__ = ["UNGIVEN", "Answer", "data_of", "pending_data", "read_answer", "whole"]

Answer = dict[str, Any]
UNGIVEN: Any = type("Ungiven", (), {"__repr__": lambda _: "no answer"})()
"""Stands for an answer that was left out, for None is one: "can't decide"."""
Answered = tuple[Float[Tensor, "m d"], Answer]


def read_answer(
    feedback: str,
    size: int,
    answer: object = UNGIVEN,
    *,
    ranking: object = None,
    winner: object = None,
    pairs: object = None,
) -> Answer:
    """The answer as the record keeps it, or an error that says how to give one."""
    more = {"ranking": ranking, "winner": winner, "pairs": pairs}
    given = {name: value for name, value in more.items() if value is not None}
    if answer is not UNGIVEN:
        given["answer"] = answer
    if len(given) != 1:
        what = ", ".join(f"{name}={value!r}" for name, value in given.items()) or "none"
        raise ValueError(f"answer must be given once; got {what}. {_HOW[feedback]}")
    ((name, value),) = given.items()
    if name == "answer" and value is None:
        return {"undecided": True}
    if feedback == "batch":
        return _of_batch(name, value, size)
    number = value if feedback == "duel" or not _is_truth(value) else int(value)  # type: ignore[call-overload]
    index = whole(number)
    if name != "answer" or index not in (0, 1):
        what = "True or False" if feedback == "binary" else "0 or 1, the index of the preferred option"
        got = repr(value) if name == "answer" else f"{name}={value!r}"
        raise ValueError(f"answer must be {what}; got {got}. {_HOW[feedback]}")
    return {"yes": bool(index)} if feedback == "binary" else {"prefers": index}


_HOW = {
    "binary": "Tell True, False, or None for can't decide.",
    "duel": "Tell 0, 1, or None for can't decide.",
    "batch": "Tell winner=2, ranking=[2, 0, 1], pairs=[(2, 0)] (better first), or None for can't decide.",
}


def _of_batch(name: str, value: object, size: int) -> Answer:
    if name == "winner" or (name == "answer" and whole(value) is not None):
        best = whole(value)
        if best is None or not 0 <= best < size:
            raise ValueError(
                f"winner must be one of the options 0 to {size - 1}; got {value!r}. {_HOW['batch']}"
            )
        return {"ranking": [best]}
    if name == "ranking":
        return {"ranking": _read_ranking(value, size)}
    if name == "pairs":
        return {"pairs": _read_pairs(value, size)}
    raise ValueError(f"answer must say which options are better; got {value!r}. {_HOW['batch']}")


def _read_ranking(value: object, size: int) -> list[int]:
    places = _indices(value)
    if not places or len(set(places)) != len(places) or not all(0 <= place < size for place in places):
        raise ValueError(
            f"ranking must name options of 0 to {size - 1}, each once at most, best first; "
            f"got {value!r}. {_HOW['batch']}"
        )
    # who comes last is known when all others are placed
    return places[: size - 1] if len(places) == size else places


def _read_pairs(value: object, size: int) -> list[list[int]]:
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    listed = list(value) if several and getattr(value, "ndim", 1) > 0 else []  # type: ignore[call-overload]
    read = [_indices(pair) for pair in listed]
    proper = all(
        pair is not None and len(set(pair)) == len(pair) == 2 and all(0 <= k < size for k in pair)
        for pair in read
    )
    unordered = [frozenset(pair or ()) for pair in read]
    if not read or not proper or len(set(unordered)) != len(unordered):
        raise ValueError(
            f"pairs must name two different options of 0 to {size - 1} each, better first, no pair twice; "
            f"got {value!r}. {_HOW['batch']}"
        )
    return sorted(pair for pair in read if pair)


def _indices(value: object) -> list[int] | None:
    """A sequence of whole numbers as a list; None for anything else."""
    if not isinstance(value, Sequence | np.ndarray | Tensor) or isinstance(value, str | bytes):
        return None
    if getattr(value, "ndim", 1) == 0:
        return None
    read = [whole(part) for part in value]
    return None if None in read else [part for part in read if part is not None]


def whole(value: object) -> int | None:
    """A whole number of any kind as an int; None for anything else, truth values among it."""
    try:
        return None if _is_truth(value) else operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _is_truth(value: object) -> bool:
    return isinstance(value, bool | np.bool_) or (
        isinstance(value, Tensor) and value.dtype == torch.bool and value.numel() == 1
    )


def data_of(answers: Sequence[Answered], d: int) -> Data:
    """All answers as rows for inference."""
    data = Data.binary(torch.empty(0, d, dtype=torch.float64), torch.empty(0))
    for (kind, *_), run in groupby(answers, key=_kind):  # one call for many alike: `+` is slow
        data = data + _ROWS[kind](list(run))
    return data


def _kind(answered: Answered) -> tuple[str, int, int]:
    points, answer = answered
    ((kind, value),) = answer.items()
    return kind, len(points), len(value) if kind == "ranking" else 0


def _stacked(run: list[Answered]) -> Tensor:
    return torch.stack([points for points, _ in run])


def _from_yes(run: list[Answered]) -> Data:
    return Data.binary(_stacked(run)[:, 0], torch.tensor([int(answer["yes"]) for _, answer in run]))


def _from_preference(run: list[Answered]) -> Data:
    return Data.duels(_stacked(run), torch.tensor([1 - answer["prefers"] for _, answer in run]))


def _from_ranking(run: list[Answered]) -> Data:
    return Data.rankings(_stacked(run), torch.tensor([answer["ranking"] for _, answer in run]))


def _from_pairs(run: list[Answered]) -> Data:
    duels = [points[pair] for points, answer in run for pair in answer["pairs"]]
    return Data.duels(torch.stack(duels), torch.ones(len(duels)))


def _from_ties(run: list[Answered]) -> Data:
    return Data.ties(_stacked(run))


_ROWS = {
    "yes": _from_yes,
    "prefers": _from_preference,
    "ranking": _from_ranking,
    "pairs": _from_pairs,
    "undecided": _from_ties,
}


def pending_data(questions: Sequence[Float[Tensor, "m d"]]) -> Data:
    """Rows that the answers to open questions will be about: each option, or the first beside each other."""
    if len(questions[0]) == 1:
        return Data.binary(torch.cat(list(questions)), torch.ones(len(questions)))
    duels = [torch.stack([points[0], other]) for points in questions for other in points[1:]]
    return Data.duels(torch.stack(duels), torch.ones(len(duels)))
