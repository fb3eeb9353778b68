"""What a belief implies for the recommended setting: how good it is, what is left to gain, and how surely.

Everything works in lanes: a study is one lane without the dimension, a campaign computes thousands at once
and gets for each what a study with the same answers would be told.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.model import Belief, Data, Kernels, infer, paths
from askwise.numerics import Generators, generator, ndtr
from askwise.search import Search
from askwise.study.answers import Answer
from askwise.study.feedback import Chances, Feedback

Answering = Callable[[Tensor, Answer], Data]
"""Rows of an answer to a query [*lane, m, d]."""
CROWD = 256  # settings spread over the space that the recommended one is compared with
_RIVALS, _DRAWS = 1024, 256  # settings among which draws of f have their best, and number of draws
FEW = 0.01
"""Share of settings below which they are few."""
_SAME = 0.02  # settings this close to the recommended one, in shares of the range, count as the same


@dataclass(frozen=True)
class Expectations:
    """What is left to gain, in units of the noise of one answer."""

    gain: Float[Tensor, "*lane"]
    """By how much the next answer is expected to improve the recommended setting."""
    regret: Float[Tensor, "*lane"]
    """By how much the best setting is expected to be better."""
    rate: Float[Tensor, "*lane"]
    """How often the best setting is expected to be preferred; yes/no: by how much more often it succeeds."""
    few: Float[Tensor, "*lane"]
    """Probability that fewer than one setting in a hundred is noticeably better."""


def source(seed: int, purpose: str) -> torch.Generator:
    """Random numbers of the study with this seed; the same each time, so that a number says what changed."""
    return generator("askwise study", seed, purpose)


def chance(
    kind: Feedback,
    belief: Belief,
    search: Search,
    point: Float[Tensor, "*lane 1 d"],
    reference: Float[Tensor, "*lane 1 d"] | None,
) -> Float[Tensor, "*lane"]:
    """Probability that a setting is preferred to the reference, or else to one at random.

    Yes/no: that it succeeds; with a reference, that it is more likely to succeed than that.
    """
    if kind.compares:
        rivals = search.space_filling(CROWD) if reference is None else reference
        return belief.success_probability(point.expand_as(rivals), rivals).mean(-1)
    if reference is None:
        return belief.success_probability(point)[..., 0]
    return belief.probability_of_better(point, reference)[..., 0]


def rivals_of(search: Search, point: Float[Tensor, "*lane 1 d"]) -> Float[Tensor, "*lane k d"]:
    """The recommended setting and those that may be better: queried ones and 1,024 space-filling ones."""
    return torch.cat([point, search.warm, search.space_filling(_RIVALS)], -2)


def expectations(  # noqa: PLR0913
    kind: Feedback,
    belief: Belief,
    kernel: Kernel | Kernels,
    search: Search,
    query: Float[Tensor, "*lane m d"],
    chances: Chances,
    answered: Answering,
    *,
    source: Generators,
) -> Expectations:
    """What is left to gain, by this query and in total.

    ``chances``: the answers that may come; ``answered`` makes rows of them.
    """
    point = kind.champion(search, belief)
    drawn = paths.draw_at(rivals_of(search, point), belief, _DRAWS, source, roughly=True)
    here, margin = drawn[..., 0], belief.data.margin
    top, filling = drawn.amax(-1), drawn[..., -_RIVALS:]
    last = filling.topk(math.ceil(FEW * _RIVALS), -1).values[..., -1]  # if it is not better, few are
    few = (~is_better(kind, last, here, margin)).double().mean(0)
    gain = _expected_gain(belief, kernel, search, point, query, chances, answered)
    return Expectations(gain, (top - here).mean(0), rate(kind, top, here, margin).mean(0), few)


def rate(kind: Feedback, other: Tensor, here: Tensor, margin: Tensor | float = 0.0) -> Tensor:
    """How often a setting of utility ``other`` is preferred; yes/no: by how much more often it succeeds."""
    if not kind.compares:
        return ndtr(other) - ndtr(here)
    return (ndtr(other - here - margin) + ndtr(other - here + margin)) / 2  # a tie counts for both


def is_better(kind: Feedback, other: Tensor, here: Tensor, margin: Tensor | float = 0.0) -> Tensor:
    """Whether a setting of utility ``other`` is noticeably better."""
    return rate(kind, other, here, margin) >= kind.noticeable


def confidence(
    belief: Belief,
    best: Float[Tensor, "*lane 1 d"],
    rivals: Float[Tensor, "*lane k d"],
    source: Generators,
) -> Float[Tensor, "*lane"]:
    """Probability that no rival is better than the best, but for those within 2% of each range from it."""
    chances = probability_of_best(belief, torch.cat([best, rivals], -2), source)
    return chances[..., 0] + torch.where(same(best, rivals), chances[..., 1:], 0.0).sum(-1)


def same(best: Float[Tensor, "*lane 1 d"], rivals: Float[Tensor, "*lane k d"]) -> Tensor:
    """Which rivals count as the same setting."""
    return (rivals - best).abs().amax(-1) < _SAME


def probability_of_best(
    belief: Belief, points: Float[Tensor, "*lane k d"], source: Generators
) -> Float[Tensor, "*lane k"]:
    """Probability of each setting to be the best of these, by draws of f."""
    drawn = paths.draw_at(points, belief, 4 * _DRAWS, source, roughly=True)
    first = drawn.argmax(-1).movedim(0, -1)
    counts = points.new_zeros(*first.shape[:-1], points.shape[-2], dtype=torch.float32)
    return counts.scatter_add(-1, first, torch.ones_like(first, dtype=torch.float32)) / len(drawn)


def _expected_gain(
    belief: Belief,
    kernel: Kernel | Kernels,
    search: Search,
    point: Tensor,
    query: Tensor,
    chances: Chances,
    answered: Answering,
) -> Float[Tensor, "*lane"]:
    """Expected rise of the highest mean, now at ``point``, by a query."""
    now = belief.mean(point)[..., 0]
    expected = torch.zeros_like(now)
    for likely, answer in chances:
        data = (belief.data + answered(query, answer)).with_margin(belief.data.margin)
        later = infer(data, kernel, warm=belief).like(belief)
        found = search.champion_after(later, belief)
        expected = expected + likely * later.mean(torch.cat([found, point], -2)).amax(-1)
    return (expected - now).clamp_min(0)
