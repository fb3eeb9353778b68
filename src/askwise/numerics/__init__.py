"""Numerics for Gaussian processes with binary outcomes: float64, differentiable, with stated accuracy.

The normal distribution in both tails, epistemic and aleatoric uncertainty, expected improvements, roots of
singular matrices, batched BFGS, generators seeded by name.  Nothing here knows about queries or beliefs.
"""

from askwise.numerics import seeds as seeds
from askwise.numerics.autograd import Sloped as Sloped
from askwise.numerics.autograd import by_autograd as by_autograd
from askwise.numerics.autograd import last as last
from askwise.numerics.autograd import sloped as sloped
from askwise.numerics.bfgs import Objective as Objective
from askwise.numerics.bfgs import Pruning as Pruning
from askwise.numerics.bfgs import minimize as minimize
from askwise.numerics.improvement import expected_best as expected_best
from askwise.numerics.improvement import log_expected_improvement as log_expected_improvement
from askwise.numerics.improvement import log_rate_improvement as log_rate_improvement
from askwise.numerics.linalg import cholesky as cholesky
from askwise.numerics.linalg import leading_rows as leading_rows
from askwise.numerics.linalg import root as root
from askwise.numerics.linalg import scaled_inverse as scaled_inverse
from askwise.numerics.linalg import thin_root as thin_root
from askwise.numerics.linalg import triangle_gram as triangle_gram
from askwise.numerics.mixtures import Mixed as Mixed
from askwise.numerics.mixtures import by_moments as by_moments
from askwise.numerics.mixtures import kernel_information as kernel_information
from askwise.numerics.mixtures import mixed_deviation as mixed_deviation
from askwise.numerics.mixtures import mixed_entropy as mixed_entropy
from askwise.numerics.mixtures import mixed_expectation as mixed_expectation
from askwise.numerics.mixtures import mixed_information as mixed_information
from askwise.numerics.mixtures import mixed_log_variance as mixed_log_variance
from askwise.numerics.mixtures import mixed_logit as mixed_logit
from askwise.numerics.mixtures import mixed_moments as mixed_moments
from askwise.numerics.mixtures import mixed_rate as mixed_rate
from askwise.numerics.normal import binary_entropy as binary_entropy
from askwise.numerics.normal import deviation as deviation
from askwise.numerics.normal import gauss_legendre as gauss_legendre
from askwise.numerics.normal import hazard as hazard
from askwise.numerics.normal import interval_moments as interval_moments
from askwise.numerics.normal import log_ndtr as log_ndtr
from askwise.numerics.normal import ndtr as ndtr
from askwise.numerics.normal import owens_t as owens_t
from askwise.numerics.normal import standardised as standardised
from askwise.numerics.normal import success_probability as success_probability
from askwise.numerics.normal import truncated_moments as truncated_moments
from askwise.numerics.normal import utility_deviation as utility_deviation
from askwise.numerics.normal import utility_mean as utility_mean
from askwise.numerics.precision import plain_precision as plain_precision
from askwise.numerics.seeds import Generators as Generators
from askwise.numerics.seeds import check_one_a_lane as check_one_a_lane
from askwise.numerics.seeds import generator as generator
from askwise.numerics.seeds import of_lanes as of_lanes
from askwise.numerics.seeds import one_thread as one_thread
from askwise.numerics.seeds import rand as rand
from askwise.numerics.seeds import randn as randn
from askwise.numerics.seeds import seeded_place as seeded_place
from askwise.numerics.seeds import sobol as sobol
from askwise.numerics.uncertainty import aleatoric_entropy as aleatoric_entropy
from askwise.numerics.uncertainty import aleatoric_variance as aleatoric_variance
from askwise.numerics.uncertainty import epistemic_deviation as epistemic_deviation
from askwise.numerics.uncertainty import epistemic_variance as epistemic_variance
from askwise.numerics.uncertainty import houlsby_information as houlsby_information
from askwise.numerics.uncertainty import log_epistemic_variance as log_epistemic_variance
from askwise.numerics.uncertainty import mutual_information as mutual_information
from askwise.numerics.version import VERSION as VERSION
