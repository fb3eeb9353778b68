"""A belief as a BoTorch model, so that BoTorch's acquisition functions and optimizers run on it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import SupportsIndex

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.posteriors.posterior import Posterior
from gpytorch.distributions import MultivariateNormal
from jaxtyping import Float
from linear_operator import to_linear_operator
from torch import Tensor

from askwise.belief import Belief

__all__ = ["BeliefModel"]


class BeliefModel(Model):
    r"""The Gaussian posterior of f, with one output and the belief's lanes as batch shape.

    An answer here is a look through :math:`\Phi(f(x) - f(x'))`.  BoTorch's ``PairwiseGP`` has
    :math:`\Phi((u(x) - u(x')) / \sqrt 2)`, so the same answers say :math:`u = \sqrt 2 f`: its
    outputscale is twice ours.  ``PairwiseBayesianActiveLearningByDisagreement`` has our link.

    The model is a view of a finished belief: it has no parameters to fit and no buffers to move.
    Points go to the belief's device and to float64, and gradients flow in them alone.  An answer is
    no Gaussian observation, so there is no ``condition_on_observations`` and nothing that fantasizes
    (knowledge gradient) works: infer a new belief from ``data + answer`` instead.

    >>> import askwise as aw
    >>> from botorch.acquisition.preference import AnalyticExpectedUtilityOfBestOption
    >>> data = aw.Data.duels([[[0.2], [0.6]], [[0.6], [0.9]]], [0, 1])
    >>> model = BeliefModel(aw.infer(data, aw.kernel("se", lengthscale=[0.3])))
    >>> eubo = AnalyticExpectedUtilityOfBestOption(model)
    >>> bool(eubo(torch.tensor([[0.5], [0.7]])) > eubo(torch.tensor([[0.2], [0.9]])))
    True
    """

    def __init__(self, belief: Belief) -> None:
        """View this belief as a model."""
        super().__init__()
        # the evidence may hang on the graph of its kernel, which a deep copy could not follow
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
        """The distinct points that were asked about."""
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
            raise ValueError(
                f"observation_noise must be False; got {observation_noise}. "
                "Answers are 0 or 1, not f plus noise: ask belief.success_probability for their odds."
            )
        x = X.to(self.datapoints)
        # lazy: a dense covariance would be factorised at once, and fail where points repeat
        mean, cov = self.belief.joint(x)
        posterior = GPyTorchPosterior(MultivariateNormal(mean, to_linear_operator(cov)))
        return posterior if posterior_transform is None else posterior_transform(posterior=posterior, X=X)

    def subset_output(self, idcs: Sequence[SupportsIndex]) -> "BeliefModel":
        """This model, whose only output is 0."""
        if list(idcs) != [0]:
            raise ValueError(f"output indices must be [0]; got {idcs}. A belief has one output, f.")
        return self
