"""Regret against its definition."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from askwise.bench.experiments import Arm
from askwise.bench.problems import Problem
from askwise.bench.regret import levels, normalised_regret
from askwise.bench.results import Results
from campaigns import HOUSE, SHOWN, small


def test_the_best_score_has_no_regret_and_the_mean_one():
    for scale, score in (("raw", "value"), ("rescaled", "probability"), ("standardised", "value")):
        experiment = replace(small("bbo"), scale=scale, score=score, arms=(Arm("random", 1),))
        found = [levels(name, scale, score) for name in SHOWN]
        scores = np.array([[[level.best, level.usual, level.best + 1e-12]] for level in found])
        regret = normalised_regret(Results(experiment, {"random": scores}, {}, {}, {}))["random"]
        np.testing.assert_allclose(regret, np.broadcast_to([0, 1, 0], regret.shape), atol=1e-12)


def test_levels_are_the_maximum_and_the_mean_of_a_function():
    sphere = levels("sphere", "raw", "value")
    assert sphere.best == 0
    assert sphere.usual == pytest.approx(-2 * 5.12**2 / 3, rel=1e-4)  # of minus a sum of two squares
    trid = levels("trid", "raw", "value")
    assert trid.best == 2
    # -(x1-1)^2 - (x2-1)^2 + x1 x2 on [-4, 4]^2
    assert trid.usual == pytest.approx(-2 * (16 / 3 + 1), rel=1e-4)


def test_a_probability_has_one_for_its_maximum_where_the_value_is_infinite():
    assert levels("sphere", "rescaled", "value").best == math.inf
    assert levels("sphere", "rescaled", "probability").best == 1


def test_a_mean_probability_is_that_of_points_drawn_at_random(generator):
    drawn = torch.rand(200_000, 2, generator=generator, dtype=torch.float64)
    mean = Problem.of("ursem_waves", "rescaled").score(drawn, "probability").mean()
    assert levels("ursem_waves", "rescaled", "probability").usual == pytest.approx(float(mean), abs=3e-3)


def test_regret_without_a_maximum_is_refused():
    experiment = replace(small("bbo", ("ackley", "sphere")), scale="rescaled", arms=(Arm("random", 1),))
    held = Results(experiment, {"random": np.zeros((2, 10, 6))}, {}, {}, {})
    with pytest.raises(ValueError, match=HOUSE):
        normalised_regret(held)
