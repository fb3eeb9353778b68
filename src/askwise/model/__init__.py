"""The probabilistic model: a Gaussian process observed through answers.

Answers become signed rows (`Data`), a kernel is the prior, and EP, Laplace or Gibbs infer the posterior
(`Belief`).  From it follow predictions, draws of f, fitted kernels, and the effect of pending queries.
Points lie in the unit cube; everything works on many lanes at once.
"""

from askwise.model import features as features
from askwise.model import paths as paths
from askwise.model import uncertainty as uncertainty
from askwise.model.belief import Belief as Belief
from askwise.model.conditioning import given_answers as given_answers
from askwise.model.copies import with_parameters as with_parameters
from askwise.model.data import Data as Data
from askwise.model.data import Extended as Extended
from askwise.model.data import Threshold as Threshold
from askwise.model.data import with_rater_column as with_rater_column
from askwise.model.evidence import average_evidence as average_evidence
from askwise.model.evidence import chance_evidence as chance_evidence
from askwise.model.evidence import held_out as held_out
from askwise.model.evidence import infer_shares as infer_shares
from askwise.model.features import lane_groups as lane_groups
from askwise.model.features import lanes_by as lanes_by
from askwise.model.fitting import Fitted as Fitted
from askwise.model.fitting import fit as fit
from askwise.model.fitting import refit_count as refit_count
from askwise.model.gibbs import hallucinated as hallucinated
from askwise.model.groups import GroupScore as GroupScore
from askwise.model.inference import Method as Method
from askwise.model.inference import infer as infer
from askwise.model.kernels import SMOOTHNESS as SMOOTHNESS
from askwise.model.kernels import Stationary as Stationary
from askwise.model.kernels import correlation_at as correlation_at
from askwise.model.kernels import covariance as covariance
from askwise.model.kernels import distance as distance
from askwise.model.kernels import kernel as kernel
from askwise.model.kernels import kernel_home as kernel_home
from askwise.model.kernels import register_kernel as register_kernel
from askwise.model.kernels import steepness as steepness
from askwise.model.margins import margin_interval as margin_interval
from askwise.model.margins import with_fitted_margin as with_fitted_margin
from askwise.model.mixture import Kernels as Kernels
from askwise.model.mixture import Mixture as Mixture
from askwise.model.observer import EXPECTED_SHARE as EXPECTED_SHARE
from askwise.model.observer import LAPSE as LAPSE
from askwise.model.observer import Learnable as Learnable
from askwise.model.observer import Observer as Observer
from askwise.model.particles import averaged as averaged
from askwise.model.pending import away_from_pending as away_from_pending
from askwise.model.predictive import Formula as Formula
from askwise.model.predictive import Score as Score
from askwise.model.predictive import noise_variance as noise_variance
from askwise.model.priors import expected_kernel as expected_kernel
from askwise.model.priors import expected_length as expected_length
from askwise.model.uncertainty import Decomposition as Decomposition
from askwise.model.uncertainty import decompose as decompose
