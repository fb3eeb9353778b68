"""Answers to questions about points of BoTorch, given or drawn at random, as data of ours.

The points are not checked, copied or merged, so that gradients flow through them.
"""

from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from askwise.errors import Refused
from askwise.model import Belief, Data, given_answers

Feedback = Literal["binary", "duel"]
"""What a question about q points is: yes or no for each of them, or which of them is best."""


def told(x: Float[Tensor, "*b q d"], Y: Tensor, lanes: torch.Size) -> Data:
    """Answers as BoTorch hands them over: yes and no [.., q, 1], or comparisons [.., m, 2] of places in x."""
    q, x = x.shape[-2], x.expand(*lanes, *x.shape[-2:])
    Y = Y.expand(*lanes, *Y.shape[-2:])
    if Y.shape[-1] == 2 and not (Y.is_floating_point() or Y.dtype == torch.bool):
        if ((Y < 0) | (q <= Y)).any():
            got = int(Y[(Y < 0) | (q <= Y)][0])
            raise Refused("Y", f"hold places in X, 0 to {q - 1}", got, "Count the points of X from 0.")
        won, lost = Y.long().unbind(-1)
        return Data(x, won, lost, torch.ones_like(won, dtype=x.dtype))
    if Y.shape[-2:] != (q, 1) or not ((Y == 0) | (Y == 1)).all():
        expected = f"be answers: 1 or 0 for each point, [.., {q}, 1], or pairs of places in X, [.., m, 2]"
        advice = "Values of f are never observed, so none can be given."
        raise Refused("Y", expected, f"shape {tuple(Y.shape)} of {Y.dtype}", advice)
    return _rows("binary", x, 2.0 * Y[..., 0].to(x) - 1.0)


def as_told(answers: Data, before: Data) -> Data:
    """The answers of people who lapse and guess as often as at the last answer before."""
    rate = _lapse(before).expand_as(answers.lapse)
    return replace(answers, lapse=rate, guess=before.guess.expand(answers.lanes))


def drawn(
    feedback: Feedback, responses: Float[Tensor, "*s q"], before: Data, seed: int
) -> Float[Tensor, "*s r"]:
    """Answers of people who have these responses: signs of rows, or the place of the best of three or more.

    They lapse and guess as :func:`as_told`, by random numbers of this seed.
    """
    several = feedback == "duel" and responses.shape[-1] > 2
    if several:
        if before.margin.any():
            expected = "hold two points where people may be undecided"
            raise Refused("X", expected, responses.shape[-1], "Ask about two at once.")
        seen = responses.argmax(-1, keepdim=True).to(responses)
    else:
        lead = responses if feedback == "binary" else responses[..., :-1] - responses[..., 1:]
        seen = torch.where(lead.abs() > before.margin[..., None], lead.sign(), 0.0)
    if not before.has_lapses:
        return seen
    source = torch.Generator(responses.device).manual_seed(seed)
    chance, blind = (torch.rand(seen.shape, generator=source, device=seen.device).to(seen) for _ in range(2))
    blind = (blind * responses.shape[-1]).floor() if several else torch.where(blind < 0.5, -1.0, 1.0)
    lapse, guess = _lapse(before), before.guess[..., None]
    blind = torch.where(guess > 0, torch.where(chance < guess, 1.0, -1.0), blind)  # a guess is a yes
    return torch.where(chance < lapse + guess, blind, seen)


def each_given(
    belief: Belief, feedback: Feedback, x: Float[Tensor, "*b q d"], answers: Float[Tensor, "*s r"], dims: int
) -> Belief:
    """The belief given each of the answers drawn, [*draws, *lanes, r] with ``dims`` dimensions of draws."""
    draws, lanes, r = answers.shape[:dims], answers.shape[dims:-1], answers.shape[-1]
    kinds, index = _distinct(answers.flatten(0, -2))
    if len(kinds) >= draws.numel():
        return _given(belief, feedback, x, answers)
    # many draws, few possible answers: each is inferred once
    possible = kinds.reshape(len(kinds), *(1 for _ in lanes), r).expand(-1, *lanes, r)
    flat = _given(belief, feedback, x, possible).in_lanes(torch.Size([len(kinds), *lanes]))
    lane = torch.arange(lanes.numel(), device=x.device).reshape(lanes)
    chosen = flat.select(index.reshape(*draws, *lanes) * lanes.numel() + lane)
    return replace(chosen, prior=belief.prior)


def _distinct(rows: Float[Tensor, "s r"]) -> tuple[Float[Tensor, "k r"], Int[Tensor, " s"]]:
    """The distinct rows, and the index of each row among them."""
    if rows.shape[-1] == 0:  # which `unique` refuses
        return rows[:1], torch.zeros(len(rows), dtype=torch.long, device=rows.device)
    return rows.unique(dim=0, return_inverse=True)


def _given(belief: Belief, feedback: Feedback, x: Tensor, answers: Float[Tensor, "*c r"]) -> Belief:
    """The belief given one answer in each lane."""
    rows = _rows(feedback, x.expand(*answers.shape[:-1], *x.shape[-2:]), answers)
    return given_answers(belief, as_told(rows, belief.data))


def _rows(feedback: Feedback, x: Float[Tensor, "*c q d"], answers: Float[Tensor, "*c r"]) -> Data:
    q, places = x.shape[-2], torch.arange(x.shape[-2], device=x.device).expand(x.shape[:-1])
    if feedback == "binary":
        return Data(x, places, torch.full_like(places, -1), answers)
    if q <= 2:
        return Data(x, places[..., :-1], places[..., 1:], answers)
    return _winner(x, answers.long())


def _winner(x: Float[Tensor, "*c q d"], winner: Int[Tensor, "*c 1"]) -> Data:
    """One of q points has won: the others are compared with it, and share its noise (`Data.rankings`)."""
    q = x.shape[-2]
    others = torch.arange(q - 1, device=x.device)
    others = others + (others >= winner).long()
    rows = torch.ones_like(others, dtype=x.dtype)
    noise = torch.zeros_like(x[..., 0]).scatter(-1, winner, 0.5)
    first = winner.expand_as(others)
    data = Data(x, first, others, rows, noise, rows / 2)
    return replace(data, answer=torch.zeros_like(first), chance=rows / q)


def _lapse(data: Data) -> Float[Tensor, "*lane 1"]:
    """Probability of a lapse in the last answer."""
    return data.lapse[..., -1:] if data.n else data.guess[..., None] * 0
