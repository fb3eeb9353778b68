"""Every rule on a mixture over kernels keeps the contract of rules."""

import pytest
from tests.tensors import f64

from askwise.model import Kernels, Stationary
from askwise.rules import RULES
from askwise.testing import RuleContract

LENGTHS, SCALES = f64([0.25, 0.4, 0.8]), f64([1.0, 4.0, 2.0])
LONG = ["muc", "muc_joint"]


class Averaged(RuleContract):
    studied = "averaged"

    def prior(self, data):
        lanes, d = tuple(data.lanes), data.points.shape[-1]
        scales = SCALES.view(-1, *[1] * len(lanes)).expand(-1, *lanes)
        lengths = LENGTHS.view(-1, *[1] * len(lanes), 1).expand(*scales.shape, d)
        return Kernels.equally_likely(Stationary("matern52", lengths, scales))


class Shortly(Averaged):
    def sizes(self, rule):
        return [2] if rule.key in LONG else super().sizes(rule)[-1:]


@pytest.mark.parametrize("key", sorted(RULES))
def test_lanes_together_get_the_queries_they_get_alone(key):
    Shortly().test_lanes_together_get_the_queries_they_get_alone(RULES[key]())


@pytest.mark.slow
class TestEvery(Averaged):
    @pytest.fixture(params=sorted(RULES))
    def rule(self, request):
        return RULES[request.param]()
