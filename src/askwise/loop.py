"""One step of Bayesian optimization: infer the belief, choose the next query."""

from dataclasses import dataclass

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.model import Belief, Data, Kernels, Method, infer
from askwise.numerics import Generators, check_one_a_lane, of_lanes
from askwise.rules import Rule, check_size
from askwise.search import Search, coincide
from askwise.space import Domain

EP_TOLERANCE = 1e-5
"""With 80 duels means are then accurate to 2e-6, and a sixth of the sweeps is saved."""
_REPLACEMENTS = 64  # random settings from which a duplicate is replaced
_CHUNK_LANES = 64  # on a CPU; with 8, most rules take half as long again per lane


@dataclass(frozen=True)
class Query:
    """A query, and the belief from which it was chosen."""

    points: Float[Tensor, "*lane m d"]
    belief: Belief
    optimum: Float[Tensor, "*lane 1 d"] | None = None
    """The estimated optimum, if requested: the point of highest mean, or of highest success probability."""


def next_query(  # noqa: PLR0913
    data: Data,
    rule: Rule,
    kernel: Kernel | Kernels,
    m: int,
    source: Generators,
    *,
    method: Method = "ep",
    warm: Belief | None = None,
    domain: Domain | None = None,
    identify: bool = False,
) -> Query:
    """The next query given the data: ``m`` points of the unit cube for each lane.

    A pure function: the same data, rule, kernel and state of ``source`` give the same query, and a lane with
    its own generator gets the query that it would get alone.  Create the generators anew for each query: how
    many numbers one has drawn may depend on the other lanes.  ``warm``, a belief given the first of these
    answers, saves time; it changes a query within the tolerance of inference, by less than 1e-4 in the
    tests.  ``domain``: the settings among the points of the cube; None if all are.  ``identify``: also return
    the estimated optimum.

    >>> import askwise as aw
    >>> data = aw.Data.duels([[[0.2], [0.6]], [[0.6], [0.9]]], [0, 1])
    >>> query = next_query(data, aw.rules.parse("muc"), aw.kernel("se", 0.3), 2, aw.seeds.generator(0))
    >>> query.points.shape
    torch.Size([2, 1])
    """
    check_size(rule, m)
    tolerance = EP_TOLERANCE if method == "ep" else None
    generators = source if method == "gibbs" else None
    belief = infer(data, kernel, method, warm=warm, tolerance=tolerance, generators=generators)
    points, optimum = _in_chunks(belief, rule, m, source, domain, identify)
    return Query(points, belief, optimum)


def ask(
    belief: Belief, rule: Rule, m: int, source: Generators, domain: Domain | None = None
) -> Float[Tensor, "*lane m d"]:
    """The query that the rule chooses given the belief; in a domain, of distinct settings."""
    return _in_chunks(belief, rule, m, source, domain, identify=False)[0]


def ask_by(search: Search, belief: Belief, rule: Rule, m: int) -> Float[Tensor, "*lane m d"]:
    """The same by a search that may know the champion."""
    with torch.no_grad():
        return _choose(belief, rule, m, search, identify=False)[0]


def _in_chunks(
    belief: Belief, rule: Rule, m: int, source: Generators, domain: Domain | None, identify: bool
) -> tuple[Float[Tensor, "*lane m d"], Float[Tensor, "*lane 1 d"] | None]:
    """The query and the estimated optimum, on a CPU in chunks of lanes."""
    lanes = torch.arange(belief.data.lanes.numel(), device=belief.data.points.device)
    with torch.no_grad():
        if belief.data.points.is_cuda or len(lanes) <= _CHUNK_LANES:
            return _choose(belief, rule, m, Search.around(belief, source, domain), identify)
        check_one_a_lane(source, belief.data.lanes)
        parts = []
        for chunk in lanes.split(_CHUNK_LANES):
            some = belief.select(chunk)
            search = Search.around(some, of_lanes(source, chunk), domain)
            parts.append(_choose(some, rule, m, search, identify))
        optima = [optimum for _, optimum in parts if optimum is not None]
        return torch.cat([points for points, _ in parts]), torch.cat(optima) if identify else None


def _choose(
    belief: Belief, rule: Rule, m: int, search: Search, identify: bool
) -> tuple[Float[Tensor, "*lane m d"], Float[Tensor, "*lane 1 d"] | None]:
    points = _distinct(rule.ask(belief, m, search), search)
    if not identify:
        return points, None
    return points, search.likeliest(belief) if m == 1 else search.champion(belief)


def _distinct(points: Float[Tensor, "*lane m d"], search: Search) -> Float[Tensor, "*lane m d"]:
    """The query with each duplicate setting of a domain replaced by a random one, or else by a neighbour.

    In a domain with few settings a rule may choose one twice, which leaves nothing to compare.  If no
    replacement is new, the duplicate stays.
    """
    if search.domain is None:
        return points
    for member in range(1, points.shape[-2]):
        point, earlier = points[..., member, None, :], points[..., :member, :]
        if not coincide(point, earlier).any():
            continue
        steps = search.snapped(search.domain.neighbours(point[..., 0, :]))
        others = torch.cat([point, search.random(_REPLACEMENTS), steps], -2)
        first = (~coincide(others, earlier).any(-1)).to(torch.uint8).argmax(-1)[..., None, None]
        chosen = others.gather(-2, first.expand_as(point))
        points = torch.cat([earlier, chosen, points[..., member + 1 :, :]], -2)
    return points
