"""Optuna's own tests of samplers, on objectives that return 0 or 1.

Its objectives return sums of parameters.  Here every value counts as a success where it is above a threshold:
otherwise the sampler would rightly refuse these studies.  `PreferentialSampler` has no place here: the tests
create plain studies, which it refuses.
"""

from collections.abc import Callable
from typing import Any

import optuna
import pytest
from optuna.samplers import BaseSampler
from optuna.testing import pytest_samplers
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

import askwise as aw
from askwise.interop.optuna import BinarySampler

pytestmark = pytest.mark.slow

_THRESHOLD = 2.0


def succeeds(value: float) -> float:
    return float(value > _THRESHOLD)


@pytest.fixture(autouse=True)
def yes_or_no(monkeypatch):
    """Every objective and every value told says yes or no."""
    optimize, tell = optuna.Study.optimize, optuna.Study.tell

    def optimized(self: optuna.Study, func: Callable[[optuna.Trial], float], *args: Any, **kw: Any) -> None:
        optimize(self, lambda trial: succeeds(func(trial)), *args, **kw)

    def told(self: optuna.Study, trial: optuna.Trial, values: float, **kw: Any) -> Any:
        return tell(self, trial, succeeds(values), **kw)

    monkeypatch.setattr(optuna.Study, "optimize", optimized)
    monkeypatch.setattr(optuna.Study, "tell", told)


class TestBinarySampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """All of its tests of samplers for one objective."""

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: BinarySampler(seed=0)

    def test_nan_objective_value(self, sampler: Callable[[], BaseSampler], monkeypatch) -> None:
        # Deviation: theirs compares best values that are neither 0 nor 1.  The same with values that are:
        # a trial whose value is not a number fails, and the study goes on.
        monkeypatch.undo()
        study = optuna.create_study(sampler=sampler())
        for value in (1.0, 1.0, float("nan"), 0.0):
            study.optimize(lambda t, value=value: t.suggest_float("x", 0.1, 0.2) * 0 + value, n_trials=1)
        assert study.best_value == 0
        assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE"]


def test_no_test_of_optuna_is_left_out():
    """The only other tests are of samplers for several objectives, which ours refuses."""
    cases = {name for name, case in vars(pytest_samplers).items() if name.endswith("SamplerTestCase")}
    taken = {case.__name__ for case in TestBinarySampler.__mro__ if case.__name__ in cases}
    assert cases - taken == {"MultiObjectiveSamplerTestCase"}
    study = optuna.create_study(directions=["minimize"] * 2, sampler=BinarySampler(seed=0))
    with pytest.raises(aw.Refused, match="have one objective"):
        study.ask()
