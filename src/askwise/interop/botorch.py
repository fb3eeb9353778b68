"""A belief as a BoTorch model, and the rules of the paper as BoTorch acquisition functions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, SupportsIndex, get_args

import torch
from gpytorch.distributions import MultivariateNormal
from jaxtyping import Float
from linear_operator import to_linear_operator
from torch import Tensor

from askwise.errors import Refused, extra
from askwise.interop.answers import Feedback, as_told, drawn, each_given, told
from askwise.model import Belief, given_answers, noise_variance, paths
from askwise.rules.muc import MaximallyUncertainChallenge
from askwise.rules.ucb_phi import UpperCredibleBoundPhi

with extra("botorch", "askwise.interop.botorch"):
    from botorch.acquisition.acquisition import AcquisitionFunction
    from botorch.acquisition.objective import PosteriorTransform
    from botorch.models.model import Model
    from botorch.posteriors.gpytorch import GPyTorchPosterior
    from botorch.posteriors.posterior import Posterior
    from botorch.sampling.base import MCSampler
    from botorch.sampling.pathwise.paths import SamplePath
    from botorch.sampling.pathwise.posterior_samplers import DrawMatheronPaths
    from botorch.utils.transforms import t_batch_mode_transform

_SMALLEST = 1e-14  # variances below it are rounding; their logarithm would have no gradient


class BeliefModel(Model):
    r"""The Gaussian posterior of f, with one output and the belief's lanes as batch shape.

    Here x beats x' with probability :math:`\Phi(f(x) - f(x'))`.  BoTorch's ``PairwiseGP`` has
    :math:`\Phi((u(x) - u(x')) / \sqrt 2)`, so that :math:`u = \sqrt 2 f`: its outputscale is twice ours.
    ``PairwiseBayesianActiveLearningByDisagreement`` has our link.

    BoTorch's observation is the response r(x) = f(x) + noise that an answer is made from: a yes where
    r(x) > 0, with noise of variance 1; or the point of highest response wins, with noise of variance 1/2.
    ``posterior(observation_noise=True)`` is about r.  Nobody sees r, so ``condition_on_observations`` takes
    answers, and ``fantasize`` draws answers.

    ``feedback``: what a question about q points is.  ``"binary"``: yes or no for each of them; ``"duel"``:
    which of them is best.  By default a duel if there is any comparison in the data.

    The model wraps a finished belief: it has no parameters to fit and no buffers to move.  Points are moved
    to the belief's device and to float64; gradients flow through them alone.

    >>> import askwise as aw
    >>> from botorch.acquisition.preference import AnalyticExpectedUtilityOfBestOption
    >>> data = aw.Data.duels([[[0.2], [0.6]], [[0.6], [0.9]]], [0, 1])
    >>> model = BeliefModel(aw.infer(data, aw.kernel("se", lengthscale=[0.3])))
    >>> eubo = AnalyticExpectedUtilityOfBestOption(model)
    >>> bool(eubo(torch.tensor([[0.5], [0.7]])) > eubo(torch.tensor([[0.2], [0.9]])))
    True
    """

    def __init__(self, belief: Belief, feedback: Feedback | None = None) -> None:
        """Wrap this belief."""
        super().__init__()
        if feedback not in (None, *get_args(Feedback)):
            raise Refused("feedback", "be 'binary' or 'duel'", repr(feedback), "Choose one of the two.")
        # the evidence may be part of an autograd graph, which cannot be deep-copied
        self.belief = replace(belief, log_evidence=belief.log_evidence.detach())
        self.feedback: Feedback = feedback or ("duel" if (belief.data.second >= 0).any() else "binary")

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

    @property
    def train_inputs(self) -> tuple[Float[Tensor, "*lane p d"]]:
        """The same points, the one that was queried last at the end."""
        data = self.belief.data
        row = torch.arange(data.n, device=data.first.device).expand_as(data.first)
        latest = torch.full_like(data.points[..., 0], -1, dtype=torch.long)
        latest = latest.scatter_reduce(-1, data.first, 2 * row, "amax")
        # without a second point, the first once more, and no later
        index = torch.where(data.second < 0, data.first, data.second)
        latest = latest.scatter_reduce(-1, index, 2 * row + (data.second >= 0).long(), "amax")
        order = latest.argsort(dim=-1, stable=True)
        return (data.points.gather(-2, order[..., None].expand_as(data.points)),)

    def forward(self, X: Float[Tensor, "*b q d"]) -> MultivariateNormal:
        """Joint distribution of f at the q points of each batch."""
        # lazy: a dense covariance would be factorised at once, which fails where points repeat
        mean, cov = self.belief.joint(X.to(self.datapoints))
        return MultivariateNormal(mean, to_linear_operator(cov))

    def posterior(
        self,
        X: Float[Tensor, "*b q d"],
        output_indices: Sequence[SupportsIndex] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """Joint posterior of f at the q points of each batch, or of the responses there.

        ``observation_noise``: whether of the responses; or the variance of their noise, [.., 1 or q, 1].
        """
        if output_indices is not None:
            self.subset_output(output_indices)
        distribution = self(X)
        if observation_noise is not False:
            variance = self._noise(X) if observation_noise is True else observation_noise[..., 0]
            noise = torch.diag_embed(variance.to(distribution.mean).expand_as(distribution.mean))
            cov = to_linear_operator(distribution.covariance_matrix + noise)
            distribution = MultivariateNormal(distribution.mean, cov)
        posterior = GPyTorchPosterior(distribution)
        return posterior if posterior_transform is None else posterior_transform(posterior=posterior, X=X)

    def _noise(self, X: Tensor) -> Float[Tensor, "*c q"]:
        """Variance of the noise of the response at each point."""
        each = 0.5 if self.feedback == "duel" else 1.0
        x, slopes = X.to(self.datapoints), self.belief.slopes
        return each * (torch.ones_like(x[..., 0]) if slopes is None else noise_variance(slopes, x))

    def condition_on_observations(
        self, X: Float[Tensor, "*b q d"], Y: Tensor, **kwargs: Any
    ) -> "BeliefModel":
        """The model once these answers are known, as if inferred from all answers at once, by EP.

        ``Y``: yes or no at each point, [.., q, 1] of 1 and 0; or comparisons as in ``PairwiseGP``, integers
        [.., m, 2], whose first is the place in X of the point that won, and second of the one that lost.
        Batches of X, Y and the model broadcast.  The result is differentiable in X.
        """
        if kwargs:
            advice = "Leave them out: answers have the noise of the model."
            raise Refused("condition_on_observations", "have X and Y alone", ", ".join(kwargs), advice)
        x = X.to(self.datapoints)
        answers = told(x, Y, torch.broadcast_shapes(x.shape[:-2], Y.shape[:-2], self.batch_shape))
        return BeliefModel(given_answers(self.belief, as_told(answers, self.belief.data)), self.feedback)

    def fantasize(
        self,
        X: Float[Tensor, "*b q d"],
        sampler: MCSampler,
        observation_noise: Tensor | None = None,
        **kwargs: Any,
    ) -> "BeliefModel":
        """The model after each of several answers to a question about the q points, drawn at random.

        Its batch shape is the sampler's, then that of X.  Answers differ in a few ways only, so that the
        number of fantasies hardly matters for the time.  A duel of one point says nothing.  Gradients in X
        are those at the answers drawn; that their probabilities depend on X, too, is lost, as answers jump.
        """
        if observation_noise is not None:
            advice = "Leave it out: answers have the noise of the model."
            raise Refused("observation_noise", "be None", "a tensor", advice)
        x = X.to(self.datapoints)
        with torch.no_grad():
            responses = sampler(self.posterior(x, observation_noise=True))[..., 0]
            answers = drawn(self.feedback, responses, self.belief.data, sampler.seed)
        after = each_given(self.belief, self.feedback, x, answers, len(sampler.sample_shape))
        return BeliefModel(after, self.feedback)

    def subset_output(self, idcs: Sequence[SupportsIndex]) -> "BeliefModel":
        """This model, whose only output is 0."""
        if list(idcs) != [0]:
            raise Refused("output indices", "be [0]", idcs, "A belief has one output, f.")
        return self


class _Draws(SamplePath):
    """Draws of f as functions, for BoTorch's Thompson sampling."""

    def __init__(self, model: BeliefModel, sample_shape: torch.Size) -> None:
        if model.batch_shape:
            got, advice = tuple(model.batch_shape), "Take one of them: BeliefModel(belief.select(0))."
            raise Refused("belief to draw from", "have no lanes", got, advice)
        super().__init__()
        self.sample_shape, self.like = sample_shape, model.datapoints
        # BoTorch draws from torch's own source of random numbers, and so does this
        source = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        self.path = paths.draw(model.belief, sample_shape.numel(), source)

    def set_ensemble_as_batch(self, ensemble_as_batch: bool) -> None:
        """Nothing to set: a belief is no ensemble."""

    def forward(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*c n"]:
        """Values of the draws; the last batches of X, if any, are the points of each draw."""
        lanes = torch.broadcast_shapes(X.shape[:-2], self.sample_shape)
        x = X.to(self.like).expand(*lanes, *X.shape[-2:])
        others = len(lanes) - len(self.sample_shape)
        first = x.movedim(tuple(range(others)), tuple(range(-2 - others, -2)))  # [*sample, *others, n, d]
        kept = first.shape[len(self.sample_shape) : -1]
        values = self.path(first.reshape(self.sample_shape.numel(), kept.numel(), -1))
        return values.reshape(*self.sample_shape, *kept).movedim(
            tuple(range(-1 - others, -1)), tuple(range(others))
        )


@DrawMatheronPaths.register(BeliefModel)  # type: ignore[untyped-decorator]
def _draws(model: BeliefModel, *, sample_shape: torch.Size, **_: Any) -> _Draws:
    return _Draws(model, sample_shape)


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
