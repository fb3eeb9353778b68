"""How long a first question takes: torch is slow to import, and nothing else should be."""

import subprocess
import sys

import pytest

FIRST = """
import sys

import askwise as aw

study = aw.Study(aw.Space(x=aw.Real(0, 1), y=aw.Real(0, 1)), feedback={feedback!r}, initial=2)
for answer in (1, 0, 1):
    study.tell(study.ask(), answer)
study.best()
print(*set(sys.modules).intersection(["torch", "sympy", "scipy.optimize", "scipy.linalg", "pandas"]))
"""


@pytest.mark.parametrize("feedback", ["duel", pytest.param("binary", marks=pytest.mark.slow)])
def test_a_question_from_a_model_needs_no_slow_package_but_torch(feedback):
    code = FIRST.format(feedback=feedback)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["torch"], found.stderr
