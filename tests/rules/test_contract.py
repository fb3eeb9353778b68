import pytest

from askwise.rules import RULES
from askwise.testing import RuleContract

LONG = ["muc", "muc_joint"]  # whose batches take long; those of `kss` and `random` are in the fast suite


class TestEvery(RuleContract):
    @pytest.fixture(params=sorted(RULES))
    def rule(self, request):
        return RULES[request.param]()

    def sizes(self, rule):
        return [2] if rule.key in LONG else super().sizes(rule)


@pytest.mark.slow
class TestBatches(RuleContract):
    @pytest.fixture(params=LONG)
    def rule(self, request):
        return RULES[request.param]()
