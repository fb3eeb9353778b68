"""What askwise expects of a rule and of a storage."""

import pytest

from askwise.rules import parse
from askwise.testing import RuleContract, StorageContract


class TestVarianceChallenge(RuleContract):
    @pytest.fixture
    def rule(self):
        return parse("variance_challenge")


class TestJsonLines(StorageContract):
    @pytest.fixture
    def address(self, tmp_path):
        return f"jsonl://{tmp_path}"
