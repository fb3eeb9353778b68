"""Batch MUC that knows that duels are correlated."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.belief import Belief
from askwise.challengers import Pairs, best_challengers
from askwise.rules.base import Asks, Rule
from askwise.search import Search

__all__ = ["JointMaximallyUncertainChallenge"]

_COIN = 0.25  # variance of a fair coin
_TINY = 1e-12


@dataclass(frozen=True)
class JointMaximallyUncertainChallenge(Rule):
    r"""Pit the likely best point against challengers whose duels together tell most.

    .. math::

        x_1 = \arg\max_x \mu_f(x), \qquad
        (x_2, \dots, x_m) = \arg\max \tfrac12 \log\det\Big(I + \frac{C}{1/4}\Big), \qquad
        C_{ab} = \rho_{ab} \sqrt{V_a V_b}

    over all pairs a, b of members, where :math:`V_a` is the epistemic variance of the pair's answer
    and :math:`\rho_{ab}` the correlation of the two differences of f: the information of answers with
    covariance C seen through the noise of fair coins.  To first order in C it is twice the sum
    of ``muc``; for a duel it asks what ``muc`` asks; the rest is the penalty for asking the same twice,
    so that members do not coincide while anything else is uncertain.

    C has the rank of the m - 1 differences to the champion, with covariance D: the determinant is
    that of :math:`I + 4\, U^\top D\, U`, where :math:`U U^\top` is the Laplacian of the graph of pairs
    with weights :math:`V_a / \sigma_a^2`, without the champion's row.
    """

    key = "muc_joint"
    title = "Joint Maximally Uncertain Challenge"
    asks = frozenset({Asks.DUEL, Asks.BATCH})
    source = "askwise; the correlation that Fauvel & Chalk (2021), supplement, find missing in batch MUC"
    cost = "a search of the mean, and one of a determinant of size m - 1 in m - 1 points"

    def ask(self, belief: Belief, m: int, search: Search) -> Float[Tensor, "*lane m d"]:
        """The champion and its challengers."""
        champion = search.champion(belief)
        challengers = best_challengers(belief, champion, m, search, self.total)
        return torch.cat([champion, challengers], -2)

    def total(self, pairs: Pairs) -> Tensor:
        """Information of all duels in a batch."""
        weight = pairs.doubt / pairs.var.clamp_min(_TINY)
        laplacian = torch.diag_embed(weight.sum(-1) + _TINY) - weight
        lower, _ = torch.linalg.cholesky_ex(laplacian[..., 1:, 1:])
        apart = pairs.var[..., 0, 1:]
        cov = (apart[..., :, None] + apart[..., None, :] - pairs.var[..., 1:, 1:]) / 2
        inner = lower.mT @ cov @ lower / _COIN
        factor, info = torch.linalg.cholesky_ex(
            inner + torch.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        )
        information = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return torch.where(info == 0, information, -torch.inf)
