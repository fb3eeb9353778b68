"""Batch MUC that accounts for the correlation of duels."""

import torch
from torch import Tensor

from askwise.rules.base import Asks, Belief, Points, Rule, Search
from askwise.search import Pairs, best_challengers

_NOISE = 0.01  # assumed variance of a success rate observed by one duel
_TINY = 1e-12


class JointMaximallyUncertainChallenge(Rule):
    r"""Pit the champion against challengers whose duels with it are jointly most informative.

    .. math::

        x_1 = \arg\max_x \mu_f(x), \qquad
        (x_2, \dots, x_m) = \arg\max \tfrac12 \log\det\Big(I + \frac{m - 1}{0.01}\, C\Big), \qquad
        C_{ij} = \rho_{ij} \sqrt{V_i V_j}

    where :math:`V_i` is the epistemic variance of the duel of :math:`x_i` with the champion :math:`x_1`,
    and :math:`\rho_{ij}` the correlation of :math:`f(x_i) - f(x_1)` and :math:`f(x_j) - f(x_1)`.  The
    score is the information about rates with covariance C observed with noise of variance 0.01, divided
    among the :math:`m - 1` duels of each member.  That is less noise than an answer has (1/4), so that
    repeating a duel is worth little: with 1/4, a third of a batch of 25 were duplicates.  For a duel the
    query is that of ``muc``.  Information that two members share counts once, so duplicates are rare; they
    are asked.
    Unlike ``muc`` it ignores the duels between challengers: a duel of two bad points may be uncertain, too,
    but does not help to find the best one.
    """

    key, title = "muc_joint", "Joint Maximally Uncertain Challenge"
    asks = frozenset({Asks.DUEL, Asks.BATCH})
    source = "askwise; the correlation that Fauvel & Chalk (2021), supplement, find missing in batch MUC"
    cost = "a search of the mean, and one of a determinant of size m - 1 in m - 1 points"

    def ask(self, belief: Belief, m: int, search: Search) -> Points:
        """The champion and its challengers."""
        champion = search.champion(belief)
        return torch.cat([champion, best_challengers(belief, champion, m, search, self.total)], -2)

    def total(self, pairs: Pairs) -> Tensor:
        """Information from the duels of a batch's first member with all others."""
        apart, challengers = pairs.var[..., 0, 1:], pairs.var.shape[-1] - 1
        cov = (apart[..., :, None] + apart[..., None, :] - pairs.var[..., 1:, 1:]) / 2
        scale = (pairs.epistemic[..., 0, 1:].clamp_min(_TINY**2) / apart.clamp_min(_TINY)).sqrt()
        signal = scale[..., :, None] * cov * scale[..., None, :] * (challengers / _NOISE)
        eye = torch.eye(challengers, dtype=signal.dtype, device=signal.device)
        factor, info = torch.linalg.cholesky_ex(signal + eye)
        information = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return torch.where(info == 0, information, -torch.inf)
