"""Optuna samplers for objectives that only say yes or no, and for preferential studies.

    optuna.create_study(direction="maximize", sampler=BinarySampler(seed=0))
    optuna_dashboard.preferential.create_study(n_generate=2, sampler=PreferentialSampler(seed=0))

They keep no state: the next trial follows from its number, the seed, the answers and the trials still
running. So a study that is loaded again continues as if it had never stopped, and several workers with the
same seed do not try the same settings.
"""

import functools
import json
import secrets
import threading
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused, extra
from askwise.model import Belief, Data, away_from_pending
from askwise.numerics import generator
from askwise.rules import Rule
from askwise.search import Search
from askwise.space import Choice, Integer, Real, Setting, Space
from askwise.study import (
    Answered,
    Best,
    Model,
    Plan,
    Preference,
    Situation,
    Worst,
    YesNo,
    best,
    next_question,
)

with extra("optuna", "askwise.interop.optuna"):
    from optuna import Study
    from optuna.distributions import BaseDistribution, CategoricalDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import intersection_search_space
    from optuna.study import StudyDirection
    from optuna.trial import FrozenTrial, TrialState

if TYPE_CHECKING:
    from optuna_dashboard.preferential import PreferentialStudy


_PROPOSED = "askwise:proposed"  # the setting of a trial, before Optuna stores its parameters one by one
_IS_PREFERENTIAL = "preference:is_preferential"  # Optuna-dashboard's mark on a study
_TOO_MANY_ODD = 3  # values other than 0 and 1, if there are fewer of these
_ONE_AT_A_TIME = threading.Lock()  # each thread must see what the others have proposed
_WEIGHTS = (1.0, 8.0, 64.0)  # answers that a running trial counts as: raised until the next one differs
_SAME = 1e-3


@dataclass(frozen=True)
class _Chart:
    """Optuna's parameters as a space of ours, in which steps and categories are numbered."""

    distributions: Mapping[str, BaseDistribution]

    @functools.cached_property
    def _axes(self) -> dict[str, Any]:
        return {name: _axis(kind) for name, kind in self.distributions.items()}

    @functools.cached_property
    def space(self) -> Space:
        """The space, with parameters of the same names."""
        return Space(**{name: parameter for name, (parameter, *_) in self._axes.items()})

    def setting(self, trial: FrozenTrial) -> Setting | None:
        """The setting of a trial; None if a parameter is missing or outside its range."""
        kinds, held = self.distributions.items(), trial.system_attrs.get(_PROPOSED, {})
        if self.distributions.keys() <= trial.params.keys():
            held = {name: kind.to_internal_repr(trial.params[name]) for name, kind in kinds}
        if not all(name in held and kind._contains(held[name]) for name, kind in kinds):
            return None
        numbers = {name: (held[name] - low) / step for name, (_, low, _, step) in self._axes.items()}
        reals = [name for name, (parameter, *_) in self._axes.items() if isinstance(parameter, Real)]
        return {name: number if name in reals else round(number) for name, number in numbers.items()}

    def settings(self, trials: Sequence[FrozenTrial]) -> list[Setting]:
        """The settings of those trials that have one."""
        return [setting for trial in trials if (setting := self.setting(trial)) is not None]

    def stored(self, setting: Setting) -> dict[str, Any]:
        """A setting in the numbers that Optuna stores."""
        axes = self._axes.items()
        return {name: min(low + setting[name] * step, high) for name, (_, low, high, step) in axes}

    def params(self, setting: Setting) -> dict[str, Any]:
        """A setting in the values that the objective sees."""
        stored = self.stored(setting)
        return {name: kind.to_external_repr(stored[name]) for name, kind in self.distributions.items()}


class _Sampler(BaseSampler):
    """What both samplers share: from the trials of a study to answers, and back."""

    _preferential: bool
    """Whether studies must be preferential, or else must not."""
    _other_kind: tuple[str, str, str]
    """What a study must be, what one of the other kind is, and what to do about it."""

    def __init__(
        self, feedback: str, rule: str | Rule, seed: int | None, kernel: Kernel | str, initial: int
    ) -> None:
        self._seed = secrets.randbits(32) if seed is None else seed
        self._before_seed, self._after_seed = (feedback, rule, None), (kernel, initial)
        named = kernel if isinstance(kernel, str) else "matern52"  # the dimension is checked later
        _plan(Space(any=Real(0, 1)), (*self._before_seed, self._seed, named, initial))

    @property
    def _settings(self) -> tuple[Any, ...]:
        return (*self._before_seed, self._seed, *self._after_seed)

    def reseed_rng(self) -> None:
        """Take another seed; Optuna asks for that when jobs run in parallel."""
        self._seed = secrets.randbits(32)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Refuse a study of another kind."""
        self._check(study)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial | None = None
    ) -> dict[str, BaseDistribution]:
        """The parameters that all finished trials have in common, and that can vary."""
        found = intersection_search_space(study.get_trials(deepcopy=False))
        return {name: kind for name, kind in found.items() if not kind.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The parameters of the next trial; none while trials are drawn at random."""
        self._check(study)
        if not search_space:
            return {}
        chart = _Chart(search_space)
        with _ONE_AT_A_TIME:
            setting = self._next(study, trial, chart, _model(chart.space, self._settings))
            if setting is None:
                return {}
            study._storage.set_trial_system_attr(trial._trial_id, _PROPOSED, chart.stored(setting))
            return chart.params(setting)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A parameter drawn at random, by Optuna's own sampler."""
        self._check(study)
        source = generator("askwise optuna", self._seed, trial.number, param_name)
        drawn = RandomSampler(seed=source.initial_seed() % 2**32)
        return drawn.sample_independent(study, trial, param_name, param_distribution)

    def best(self, study: "Study | PreferentialStudy") -> Best:
        """The setting that the model recommends after all answers; it need not have been tried.

        Its parameters are those that all finished trials have in common and that can vary.
        """
        inner: Study = getattr(study, "_study", study)
        self._check(inner)
        chart = _Chart(self.infer_relative_search_space(inner))
        answers = self._answers(inner, chart) if chart.distributions else ()
        if not answers:
            raise Refused("study", "have answers about parameters that vary", "none", "Ask some first.")
        with _ONE_AT_A_TIME:
            model = _model(chart.space, self._settings)
            belief, search = model.searched(answers, None, None)
            advised = best(belief, model.plan, search)
        return replace(advised, params=chart.params(advised.params))

    def _check(self, study: Study) -> None:
        """Refuse a study of several objectives, or of the other kind."""
        if len(study.directions) != 1:
            raise Refused("study", "have one objective", len(study.directions), "Return a single value.")
        if (_IS_PREFERENTIAL in study._storage.get_study_system_attrs(study._study_id)) != self._preferential:
            raise Refused("study", *self._other_kind)

    @abstractmethod
    def _answers(self, study: Study, chart: _Chart) -> tuple[Answered, ...]:
        """All answers of the study, oldest first."""

    @abstractmethod
    def _next(self, study: Study, trial: FrozenTrial, chart: _Chart, model: Model) -> Setting | None:
        """The next setting; None to draw it at random."""


class BinarySampler(_Sampler):
    """A sampler for objectives that return 0 or 1, False or True; the direction says which is wanted.

    Trials are drawn at random until there are ``initial`` of them and both outcomes have occurred.  Failed
    and pruned trials do not count; running ones are not tried again.  A trial with another value is ignored,
    with a warning; an objective that returns such values most of the time is refused.
    ``study.best_trial`` is any trial that succeeded; ``sampler.best(study)`` is the setting most likely to
    succeed.

    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(direction="maximize", sampler=BinarySampler(seed=1))
    >>> study.optimize(lambda trial: abs(trial.suggest_float("x", 0, 10) - 7) < 2, n_trials=10)
    >>> 5 < study.sampler.best(study).params["x"] < 9
    True
    """

    _preferential = False
    _other_kind = (
        "have an objective that returns 0 or 1",
        "a preferential one",
        "Use PreferentialSampler, or optuna.create_study.",
    )

    def __init__(
        self,
        rule: str | Rule = "ucb_phi",
        seed: int | None = None,
        kernel: Kernel | str = "matern52",
        initial: int = 3,
    ) -> None:
        """``kernel``: fixed, or the name of one whose parameters are learned from the answers."""
        super().__init__("binary", rule, seed, kernel, initial)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Warn of a value other than 0 and 1, which is ignored."""
        if state == TrialState.COMPLETE and values is not None and values[0] not in (0, 1):
            message = f"trial {trial.number} is ignored: its value must be 0 or 1; got {values[0]:g}"
            warnings.warn(message, UserWarning, stacklevel=2)

    def _answers(self, study: Study, chart: _Chart) -> tuple[Answered, ...]:
        wanted = int(study.direction == StudyDirection.MAXIMIZE)
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        odd = [trial.value for trial in done if trial.value not in (0, 1)]
        if len(odd) >= max(_TOO_MANY_ODD, len(done) - len(odd) + 1):
            got = f"{', '.join(f'{value:g}' for value in odd[:3])}, .. in {len(odd)} of {len(done)} trials"
            advice = "Return True or False from it, or use another sampler."
            raise Refused("objective", "return 0 or 1", got, advice)
        outcomes = [(chart.setting(trial), trial.value) for trial in done if trial.value in (0, 1)]
        known = [(setting, value == wanted) for setting, value in outcomes if setting is not None]
        return tuple(Answered((setting,), YesNo(success)) for setting, success in known)

    def _next(self, study: Study, trial: FrozenTrial, chart: _Chart, model: Model) -> Setting | None:
        waiting = tuple(json.dumps([setting]) for setting in chart.settings(_running(study, trial)))
        situation = Situation(trial.number, self._answers(study, chart), waiting)
        ((setting,), _) = next_question(model, situation)
        return setting


class PreferentialSampler(_Sampler):
    """A sampler for ``optuna_dashboard.preferential`` studies: it proposes challengers of the champion.

    The champion is the unbeaten trial of highest posterior mean.  The next trial is the last member of the
    query that ``rule`` asks with this champion; a rule without a champion chooses both members.  Trials are
    drawn at random until ``initial`` comparisons are reported.  Trials not compared yet, or skipped, are not
    proposed again.  A report that one trial is worse than several others, as when the worst of all is clicked
    in the dashboard, is one answer about all of them; any other is a duel for each pair.

    ``study.best_trials`` are the trials that are unbeaten, perhaps by luck; ``sampler.best(study)`` is the
    setting that the model recommends after all duels.
    """

    _preferential = True
    _other_kind = (
        "be preferential",
        "a plain one",
        "Create it with optuna_dashboard.preferential.create_study, or use BinarySampler.",
    )

    def __init__(
        self,
        rule: str | Rule = "muc",
        seed: int | None = None,
        kernel: Kernel | str = "matern52",
        initial: int = 5,
    ) -> None:
        """``kernel``: fixed, or the name of one whose parameters are learned from the answers."""
        super().__init__("duel", rule, seed, kernel, initial)

    def _answers(self, study: Study, chart: _Chart) -> tuple[Answered, ...]:
        reports = _reports(study)  # before the trials, as there may be new ones
        trials = study.get_trials(deepcopy=False)
        known = {trial.number: setting for trial in trials if (setting := chart.setting(trial)) is not None}
        shown = [[each for each in report if each in known] for report in reports if report[-1] in known]
        # storages return them in any order; the latest of the trials says when they were compared
        shown.sort(key=lambda numbers: (*sorted(numbers, reverse=True), *numbers))
        options = [tuple(known[number] for number in numbers) for numbers in shown if len(numbers) > 1]
        return tuple(Answered(one, _last_is_worst(len(one))) for one in options)

    def _next(self, study: Study, trial: FrozenTrial, chart: _Chart, model: Model) -> Setting | None:
        answers = self._answers(study, chart)
        if sum(len(one.options) - 1 for one in answers) < max(1, model.plan.initial):
            return None
        belief, space = model.belief(answers), model.plan.space
        domain = space.domain()
        source = functools.partial(generator, "askwise optuna", self._seed, trial.number)
        unbeaten = chart.settings(_preferential(study).best_trials)
        if unbeaten:
            places = model.points(unbeaten)
            champion = places[belief.mean(places).argmax()][None]
        else:
            champion = Search.around(belief, source(), domain).champion(belief)
        running = chart.settings(_running(study, trial))
        others = model.points(running) if running else champion[:0]
        duels = Data.duels(torch.stack([others, champion.expand_as(others)], -2), torch.ones(len(others)))

        def choose(expected: Belief) -> Tensor:
            around = Search.around(expected, source(), domain)
            search = _Defended(around.lanes, around.source, around.warm, domain, champion)
            with torch.no_grad():
                return model.plan.rule.ask(expected, 2, search)[-1]

        def is_new(found: Tensor) -> bool:
            return bool(((torch.cat([champion, others]) - found).abs().amax(-1) > _SAME).all())

        found, new = away_from_pending(belief, duels, choose, is_new, _WEIGHTS)
        return space.natural(found) if new else None


@dataclass(frozen=True)
class _Defended(Search):
    """A search whose champion is given."""

    holder: Float[Tensor, "1 d"] | None = None

    def champion(self, belief: Belief) -> Float[Tensor, "1 d"]:
        return super().champion(belief) if self.holder is None else self.holder


@functools.lru_cache(maxsize=8)
def _model(space: Space, settings: tuple[Any, ...]) -> Model:
    return Model(_plan(space, settings))


def _plan(space: Space, settings: tuple[Any, ...]) -> Plan:
    *begun, kernel, initial = settings
    # what Optuna optimises is rarely a person
    return Plan.checked(space, *begun, kernel=kernel, initial=initial, lapses=0.0)


def _preferential(study: Study) -> "PreferentialStudy":
    from optuna_dashboard.preferential import PreferentialStudy  # not needed for yes/no studies

    return PreferentialStudy(study)


def _reports(study: Study) -> list[list[int]]:
    """Numbers of trials that were compared at once, the worst last; the others are not compared."""
    from optuna_dashboard.preferential._system_attrs import get_preferences

    found: list[list[int]] = []
    for item in study._storage.get_study_system_attrs(study._study_id).items():
        pairs = get_preferences(dict([item]))  # a report is an attribute of the study
        better, worse = ({pair[side] for pair in pairs} for side in (0, 1))
        if len(worse) == 1 and len(better) == len(pairs):
            found.append([*sorted(better), *worse])
        else:
            found += [list(pair) for pair in pairs]
    return found


def _last_is_worst(count: int) -> Preference | Worst:
    return Preference(0) if count == 2 else Worst(count - 1)


def _running(study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
    """The other unfinished trials."""
    others = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return [other for other in others if other.number != trial.number]


def _axis(kind: Any) -> tuple[Real | Integer | Choice, Any, Any, Any]:
    """Our parameter for one of Optuna's; first, last and step of the numbers that Optuna stores."""
    if isinstance(kind, CategoricalDistribution):
        return Choice(range(len(kind.choices))), 0, len(kind.choices) - 1, 1
    if kind.step is None or kind.log:  # these are not renumbered
        return (Real if kind.step is None else Integer)(kind.low, kind.high, kind.log), 0, kind.high, 1
    return Integer(0, round((kind.high - kind.low) / kind.step)), kind.low, kind.high, kind.step
