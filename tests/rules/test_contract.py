import pytest

from askwise.rules import RULES
from askwise.testing import RuleContract


class TestEvery(RuleContract):
    @pytest.fixture(params=sorted(RULES))
    def rule(self, request):
        return RULES[request.param]()
