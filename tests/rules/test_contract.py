import pytest

from askwise.rules import RULES
from askwise.testing import RuleContract

LONG = ["muc", "muc_joint"]  # whose batches take long; those of `kss` and `random` are in the fast suite
STUDIED = ["kss", "muc", "random", "ucb_phi"]  # whose studies are in the fast suite


class TestEvery(RuleContract):
    @pytest.fixture(params=sorted(RULES))
    def rule(self, request):
        return RULES[request.param]()

    @pytest.mark.parametrize("rule", STUDIED, indirect=True)
    def test_its_study_asks_about_different_settings_and_replays(self, rule):
        super().test_its_study_asks_about_different_settings_and_replays(rule)

    def sizes(self, rule):
        return [2] if rule.key in LONG else super().sizes(rule)


@pytest.mark.slow
class TestBatches(RuleContract):
    @pytest.fixture(params=LONG)
    def rule(self, request):
        return RULES[request.param]()


@pytest.mark.slow
class TestOtherStudies(RuleContract):
    @pytest.fixture(params=sorted({*RULES} - {*STUDIED}))
    def rule(self, request):
        return RULES[request.param]()
