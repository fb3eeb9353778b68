"""A belief as a BoTorch model, and the rules of the paper as BoTorch acquisition functions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import SupportsIndex

import torch
from gpytorch.distributions import MultivariateNormal
from jaxtyping import Float
from linear_operator import to_linear_operator
from torch import Tensor

from askwise.errors import Refused, extra
from askwise.model import Belief
from askwise.rules.muc import MaximallyUncertainChallenge
from askwise.rules.ucb_phi import UpperCredibleBoundPhi

with extra("botorch", "askwise.interop.botorch"):
    from botorch.acquisition.acquisition import AcquisitionFunction
    from botorch.acquisition.objective import PosteriorTransform
    from botorch.models.model import Model
    from botorch.posteriors.gpytorch import GPyTorchPosterior
    from botorch.posteriors.posterior import Posterior
    from botorch.utils.transforms import t_batch_mode_transform

_SMALLEST = 1e-14  # variances below it are rounding; their logarithm would have no gradient


class BeliefModel(Model):
    r"""The Gaussian posterior of f, with one output and the belief's lanes as batch shape.

    Here x beats x' with probability :math:`\Phi(f(x) - f(x'))`.  BoTorch's ``PairwiseGP`` has
    :math:`\Phi((u(x) - u(x')) / \sqrt 2)`, so that :math:`u = \sqrt 2 f`: its outputscale is twice ours.
    ``PairwiseBayesianActiveLearningByDisagreement`` has our link.

    The model wraps a finished belief: it has no parameters to fit and no buffers to move.  Points are moved
    to the belief's device and to float64; gradients flow through them alone.  An answer is not a
    Gaussian observation, so there is no ``condition_on_observations``, and acquisition functions that
    fantasize (knowledge gradient) do not work: infer a new belief from ``data + answer`` instead.

    >>> import askwise as aw
    >>> from botorch.acquisition.preference import AnalyticExpectedUtilityOfBestOption
    >>> data = aw.Data.duels([[[0.2], [0.6]], [[0.6], [0.9]]], [0, 1])
    >>> model = BeliefModel(aw.infer(data, aw.kernel("se", lengthscale=[0.3])))
    >>> eubo = AnalyticExpectedUtilityOfBestOption(model)
    >>> bool(eubo(torch.tensor([[0.5], [0.7]])) > eubo(torch.tensor([[0.2], [0.9]])))
    True
    """

    def __init__(self, belief: Belief) -> None:
        """Wrap this belief."""
        super().__init__()
        # the evidence may be part of an autograd graph, which cannot be deep-copied
        self.belief = replace(belief, log_evidence=belief.log_evidence.detach())

    @property
    def num_outputs(self) -> int:
        """One: f."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """The belief's lanes, with which the batches of points broadcast."""
        return self.belief.data.lanes

    @property
    def datapoints(self) -> Float[Tensor, "*lane p d"]:
        """The distinct points that were queried."""
        return self.belief.data.points

    def posterior(
        self,
        X: Float[Tensor, "*b q d"],
        output_indices: Sequence[SupportsIndex] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """Joint posterior of f at the q points of each batch."""
        if output_indices is not None:
            self.subset_output(output_indices)
        if observation_noise is not False:
            advice = "Answers are 0 or 1, not f plus noise: use belief.success_probability instead."
            raise Refused("observation_noise", "be False", observation_noise, advice)
        x = X.to(self.datapoints)
        # lazy: a dense covariance would be factorised at once, which fails where points repeat
        mean, cov = self.belief.joint(x)
        posterior = GPyTorchPosterior(MultivariateNormal(mean, to_linear_operator(cov)))
        return posterior if posterior_transform is None else posterior_transform(posterior=posterior, X=X)

    def subset_output(self, idcs: Sequence[SupportsIndex]) -> "BeliefModel":
        """This model, whose only output is 0."""
        if list(idcs) != [0]:
            raise Refused("output indices", "be [0]", idcs, "A belief has one output, f.")
        return self


class UCBPhi(AcquisitionFunction):
    r"""The rule ``ucb_phi`` for any BoTorch model whose answers are yes with probability :math:`\Phi(f)`."""

    def __init__(self, model: Model, beta: float = UpperCredibleBoundPhi.beta) -> None:
        """Bound the success rate of this model."""
        super().__init__(model)
        self.rule = UpperCredibleBoundPhi(beta)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Float[Tensor, "*b 1 d"]) -> Float[Tensor, "*c"]:
        """The bound at each point."""
        mean, cov = _moments(self.model, X)
        return self.rule.score(mean[..., 0], cov[..., 0, 0].clamp_min(0))


class LogMUC(AcquisitionFunction):
    r"""The logarithm of the objective of ``muc`` for a duel with a given champion.

    For any BoTorch model where x beats x' with probability :math:`\Phi(f(x) - f(x'))`.
    """

    _log = True

    def __init__(self, model: Model, champion: Float[Tensor, "*c d"]) -> None:
        """Look for challengers of ``champion``, [d] or [1, d]."""
        if champion.shape[:-1] not in ((), (1,)):
            got = f"shape {tuple(champion.shape)}"
            raise Refused("champion", "be one point, [d] or [1, d]", got, "Give one.")
        super().__init__(model)
        self.rule = MaximallyUncertainChallenge()
        self.champion: Tensor
        self.register_buffer("champion", champion.detach().reshape(1, -1))

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Float[Tensor, "*b 1 d"]) -> Float[Tensor, "*c"]:
        """Logarithm of the epistemic variance of each point's duel with the champion."""
        if self.champion.shape[-1] != X.shape[-1]:
            expected, got = f"have the {X.shape[-1]} coordinates of the points", self.champion.shape[-1]
            raise Refused("champion", expected, got, "Give a point of the same space.")
        pair = torch.cat([X, self.champion.to(X).expand_as(X)], -2)
        mean, cov = _moments(self.model, pair)
        var = cov[..., 0, 0] + cov[..., 1, 1] - 2 * cov[..., 0, 1]
        return self.rule.log_score(mean[..., 0] - mean[..., 1], var.clamp_min(_SMALLEST))


def _moments(model: Model, X: Tensor) -> tuple[Tensor, Tensor]:
    """Mean [.., q] and covariance [.., q, q] of a model with one output."""
    distribution = model.posterior(X).distribution  # type: ignore[attr-defined]
    return distribution.mean, distribution.covariance_matrix
