"""One step of the loop: what is believed after these answers, and what to ask next."""

from dataclasses import dataclass

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Bool, Float
from torch import Tensor

from askwise.belief import Belief
from askwise.data import Data
from askwise.domain import Domain
from askwise.inference import Method, infer
from askwise.rules import Rule
from askwise.search import Search
from askwise.seeds import Generators, check_one_a_lane

__all__ = ["Query", "ask", "check_size", "next_query"]

_TOLERANCE = 1e-5  # of EP: with 80 duels means are then exact to 2e-6, and a sixth of the sweeps is saved
_TWINS, _DRAWS = 1e-6, 64  # settings closer than this are one and the same to a person
_LANES_AT_ONCE = 64  # on a CPU: with 8 most rules take half as long again for each


@dataclass(frozen=True)
class Query:
    """A question, and the belief that it was chosen by."""

    points: Float[Tensor, "*lane m d"]
    belief: Belief
    optimum: Float[Tensor, "*lane 1 d"] | None = None
    """The point believed best, if it was asked for: of highest mean, or likeliest to get a yes."""


def next_query(  # noqa: PLR0913
    data: Data,
    rule: Rule,
    kernel: Kernel,
    m: int,
    source: Generators,
    *,
    method: Method = "ep",
    warm: Belief | None = None,
    domain: Domain | None = None,
    identify: bool = False,
) -> Query:
    """The question to ask after these answers: ``m`` points of the unit cube for each lane.

    A function of its arguments alone: the same answers, rule, kernel and state of ``source`` give the
    same question, and a lane with a generator of its own is asked what it would be asked alone.  Make
    the generators anew for each question: how far one is used up may depend on the other lanes.
    ``warm``, an earlier belief about the first of the answers, saves time; it moves a question as far as
    the tolerance of inference lets it, below 1e-4 in the tests.  ``domain`` says which points are
    settings, if not all are.  ``identify``: also look for the point that is believed best.

    >>> import askwise as aw
    >>> data = aw.Data.duels([[[0.2], [0.6]], [[0.6], [0.9]]], [0, 1])
    >>> query = next_query(data, aw.rules.parse("muc"), aw.kernel("se", 0.3), 2, aw.seeds.generator(0))
    >>> query.points.shape
    torch.Size([2, 1])
    """
    check_size(rule, m)
    tolerance = _TOLERANCE if method == "ep" else None
    generators = source if method == "gibbs" else None
    belief = infer(data, kernel, method, warm=warm, tolerance=tolerance, generators=generators)
    points, optimum = _asked(belief, rule, m, source, domain, identify)
    return Query(points, belief, optimum)


def ask(
    belief: Belief, rule: Rule, m: int, source: Generators, domain: Domain | None = None
) -> Float[Tensor, "*lane m d"]:
    """What the rule asks, given what is believed; with a domain, about different settings of it."""
    return _asked(belief, rule, m, source, domain, identify=False)[0]


def _asked(
    belief: Belief, rule: Rule, m: int, source: Generators, domain: Domain | None, identify: bool
) -> tuple[Float[Tensor, "*lane m d"], Float[Tensor, "*lane 1 d"] | None]:
    """The question, and the point believed best; on a CPU a few lanes at a time."""
    lanes = torch.arange(belief.data.lanes.numel(), device=belief.data.points.device)
    with torch.no_grad():
        if belief.data.points.is_cuda or len(lanes) <= _LANES_AT_ONCE:
            return _chosen(belief, rule, m, Search.around(belief, source, domain), identify)
        asked, best = [], []
        for part in lanes.split(_LANES_AT_ONCE):
            some, own = belief.select(part), source
            if not isinstance(source, torch.Generator):
                check_one_a_lane(source, belief.data.lanes)
                own = [source[lane] for lane in part.tolist()]
            points, optimum = _chosen(some, rule, m, Search.around(some, own, domain), identify)
            asked.append(points)
            best.append(optimum)
        return torch.cat(asked), torch.cat([part for part in best if part is not None]) if identify else None


def _chosen(
    belief: Belief, rule: Rule, m: int, search: Search, identify: bool
) -> tuple[Float[Tensor, "*lane m d"], Float[Tensor, "*lane 1 d"] | None]:
    points = rule.ask(belief, m, search)
    if search.domain is not None:
        points = _told_apart(points, search.domain, search)
    if not identify:
        return points, None
    return points, search.likeliest(belief) if m == 1 else search.champion(belief)


def _told_apart(
    points: Float[Tensor, "*lane m d"], domain: Domain, search: Search
) -> Float[Tensor, "*lane m d"]:
    """The question with another setting, drawn at random, in the place of each that was there before.

    Of few settings a rule may well choose one twice, and then there is nothing to compare.  If the
    domain has no other (that is found by some draws and steps), the twin stays.
    """
    for member in range(1, points.shape[-2]):
        own, earlier = points[..., member, None, :], points[..., :member, :]
        if not _repeats(own, earlier).any():
            continue
        steps = domain.snapped(domain.neighbours(own[..., 0, :]))
        others = torch.cat([own, search.random(_DRAWS), steps], -2)
        first = (~_repeats(others, points[..., :member, :])).to(torch.uint8).argmax(-1)[..., None, None]
        chosen = others.gather(-2, first.expand_as(own))
        points = torch.cat([earlier, chosen, points[..., member + 1 :, :]], -2)
    return points


def _repeats(
    some: Float[Tensor, "*lane k d"], earlier: Float[Tensor, "*lane j d"]
) -> Bool[Tensor, "*lane k"]:
    return ((some[..., :, None, :] - earlier[..., None, :, :]).abs() < _TWINS).all(-1).any(-1)


def check_size(rule: Rule, m: int) -> None:
    """Refuse a number of points that the rule does not ask about."""
    kind = "binary" if m == 1 else "duel" if m == 2 else "batch"
    if m < 1 or kind not in rule.asks:
        kinds = ", ".join(sorted(rule.asks))
        raise ValueError(
            f"rule {rule} must be used for what it asks ({kinds}); got m = {m}. "
            "One point is a yes/no question, two are a duel, more are a batch."
        )
