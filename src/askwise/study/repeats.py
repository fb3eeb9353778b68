"""Questions that are asked again, to see whether the answers agree."""

import json
import math
from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.model import Belief
from askwise.numerics import generator
from askwise.space import Setting
from askwise.study.answers import Tie
from askwise.study.plan import Plan
from askwise.study.state import Answered, as_text

_REMEMBERED = 5  # answers after which a question is asked again at the earliest


def is_repeat(plan: Plan, number: int) -> bool:
    """Whether the question of this number asks an earlier one again, if there is one to ask.

    They are as evenly spread as their share allows, from a start that is drawn by the seed.
    """
    if not plan.repeats:
        return False
    start = torch.rand((), generator=generator("askwise study", plan.seed, "repeats"), dtype=torch.float64)
    before, after = (math.floor(count * plan.repeats + float(start)) for count in (number, number + 1))
    return after > before


def subject(options: Sequence[Setting]) -> str:
    """What a question is about, whatever the sides on which its options are shown."""
    return as_text(sorted(map(as_text, options)))


def repeatable(
    answers: Sequence[Answered], context: Setting | None, pending: Sequence[str] = ()
) -> list[tuple[Setting, ...]]:
    """The options of the questions in this context that were asked once and decided, but for the last few."""
    given = context or {}
    times = Counter(subject(one.options) for one in answers)
    times.update(subject(json.loads(members)) for members in pending)
    return [
        one.options
        for one in answers[: max(0, len(answers) - _REMEMBERED)]
        if times[subject(one.options)] == 1
        and not isinstance(one.answer, Tie)
        and all(option[name] == value for option in one.options for name, value in given.items())
    ]


def surest(belief: Belief, queries: Float[Tensor, "n m d"]) -> int:
    """The query whose answer the model is surest of: of several settings, between the best two.

    Rules ask what is hard to foresee, where honest people as well say now this, now that.  Two answers to a
    question that has a clear answer agree if somebody looks at it, and half of the time if nobody does.
    """
    if queries.shape[-2] == 1:
        mean, var = belief.moments(queries[:, 0])
    else:
        best = belief.mean(queries.flatten(0, 1)).reshape(queries.shape[:-1]).topk(2).indices
        first, second = (queries[torch.arange(len(queries)), member] for member in best.unbind(-1))
        mean, var = belief.difference(first, second)
    return int((mean.abs() / (1 + var).sqrt()).argmax())
