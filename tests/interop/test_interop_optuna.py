import json
import pickle
import threading

import optuna
import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState
from optuna_dashboard import _preferential_history as history
from optuna_dashboard.preferential import create_study as create_preferential
from optuna_dashboard.preferential import load_study as load_preferential

import askwise as aw
from askwise.interop.optuna import BinarySampler, PreferentialSampler, _Chart
from askwise.numerics.seeds import generator
from askwise.study import Preference, Worst

optuna.logging.set_verbosity(optuna.logging.ERROR)

PLAIN = aw.kernel("matern52", [0.3, 0.3], 4.0)  # not learned, which takes time

MIXED = {
    "gain": FloatDistribution(-3.0, 5.0),
    "rate": FloatDistribution(1e-4, 1e-1, log=True),
    "share": FloatDistribution(0.1, 0.7, step=0.2),
    "bands": IntDistribution(1, 9),
    "units": IntDistribution(4, 512, log=True),
    "block": IntDistribution(3, 17, step=7),
    "mode": CategoricalDistribution([None, True, 3, 2.5, "a"]),
    "only": CategoricalDistribution(["one"]),
    "same": FloatDistribution(2.0, 2.0),
}


def height(x: float, y: float) -> float:
    """A hill of height 3 with its top at (0.7, 0.3), and 3 deep around it."""
    return 6 * float(torch.exp(torch.tensor(-12 * ((x - 0.7) ** 2 + (y - 0.3) ** 2)))) - 3


def binary_study(sampler, direction="maximize", **options) -> optuna.Study:
    return optuna.create_study(direction=direction, sampler=sampler, **options)


def noisy_answers(seed: int, wanted: int = 1):
    """An objective that succeeds more surely the higher on the hill it is."""
    source = generator("user", seed)

    def objective(trial: optuna.Trial) -> int:
        rise = height(trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1))
        yes = torch.rand((), generator=source) < torch.special.ndtr(torch.tensor(rise))
        return wanted if yes else 1 - wanted

    return objective


def settings(study) -> list[dict]:
    return [trial.params for trial in study.trials]


# yes/no objectives


def test_more_trials_succeed_than_at_random_and_the_best_is_on_the_hill():
    succeeded = {"ours": 0, "random": 0}
    for name, sampler in (("ours", BinarySampler(seed=0, kernel=PLAIN)), ("random", RandomSampler(seed=0))):
        study = binary_study(sampler)
        study.optimize(noisy_answers(0), n_trials=20)
        succeeded[name] += sum(trial.value for trial in study.trials[8:])
        if name == "ours":
            best = sampler.best(study)
            reached = height(**best.params)
            assert 0.5 < best.probability < 1
    assert succeeded["ours"] > 2 * succeeded["random"]
    assert reached > 1


def test_minimizing_means_wanting_zeros():
    runs = []
    for wanted, direction in enumerate(["minimize", "maximize"]):
        study = binary_study(BinarySampler(seed=0, kernel=PLAIN), direction)
        study.optimize(noisy_answers(0, wanted), n_trials=7)
        runs.append((settings(study), study.sampler.best(study)))
    assert runs[0] == runs[1]


def mixed_objective(trial: optuna.Trial) -> bool:
    params = {name: trial._suggest(name, kind) for name, kind in MIXED.items()}
    return params["mode"] is None and params["bands"] >= 4


def test_a_mixed_space_is_searched_within_its_ranges():
    study = binary_study(BinarySampler(seed=1, kernel=aw.kernel("matern52", 0.7, 4.0)))
    study.enqueue_trial({"mode": None, "bands": 9})
    study.optimize(mixed_objective, n_trials=6)
    assert sum("askwise:proposed" in trial.system_attrs for trial in study.trials) >= 2
    for trial in study.trials:
        for name, kind in MIXED.items():
            assert kind._contains(kind.to_internal_repr(trial.params[name]))
        assert all(isinstance(trial.params[name], int) for name in ("bands", "block", "units"))
    assert set(study.sampler.best(study).params) == set(MIXED) - {"only", "same"}


@pytest.mark.slow
def test_the_best_of_a_mixed_space_is_found():
    study = binary_study(BinarySampler(seed=1))
    study.optimize(mixed_objective, n_trials=18)
    assert sum(trial.value for trial in study.trials[8:]) >= 7  # a random one succeeds once in 7.5
    best = study.sampler.best(study).params
    assert best["mode"] is None
    assert best["bands"] >= 4


@pytest.mark.parametrize("name", [name for name, kind in MIXED.items() if not kind.single()])
def test_every_value_of_a_parameter_survives_the_way_through_the_space_and_back(name):
    from askwise.interop.optuna import _Chart

    kind = MIXED[name]
    chart = _Chart({name: kind})
    source = RandomSampler(seed=0)
    for _ in range(20):
        value = source.sample_independent(None, None, name, kind)
        trial = optuna.trial.create_trial(value=0.0, params={name: value}, distributions={name: kind})
        setting = chart.setting(trial)
        again = chart.params(chart.space.natural(chart.space.unit(setting)))[name]
        assert type(again) is type(value)
        assert again == (value if not isinstance(value, float) else pytest.approx(value, rel=1e-12))
    ends = [chart.params(chart.space.natural(point))[name] for point in _ends(chart.space.d)]
    if not isinstance(kind, CategoricalDistribution):
        assert ends == [kind.low, kind.high]


def _ends(d: int) -> list[torch.Tensor]:
    return [torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)]


def test_categories_that_are_not_plain_values_are_searched_too():
    study = binary_study(BinarySampler(seed=0, kernel=aw.kernel("se", 1.2)))
    with pytest.warns(UserWarning, match="Choices for a categorical distribution should be"):
        study.optimize(lambda trial: trial.suggest_categorical("c", [[1], {"a": 2}, None]) == [1], n_trials=9)
    assert study.sampler.best(study).params == {"c": [1]}


def test_equal_seeds_give_equal_trials_and_other_seeds_others():
    runs = []
    for seed in (0, 0, 1):
        study = binary_study(BinarySampler(seed=seed, kernel=PLAIN))
        study.optimize(noisy_answers(0), n_trials=7)
        runs.append(settings(study))
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_without_a_seed_every_sampler_differs():
    runs = []
    for _ in range(2):
        study = binary_study(BinarySampler())
        study.optimize(noisy_answers(0), n_trials=2)
        runs.append(settings(study))
    assert runs[0] != runs[1]


def test_a_stored_study_continues_as_if_it_had_never_stopped(tmp_path):
    answers = [number % 3 == 0 for number in range(5)]
    fixed = aw.kernel("se", 0.5)
    whole = binary_study(BinarySampler(seed=3, kernel=fixed))
    url = f"sqlite:///{tmp_path}/study.db"
    binary_study(BinarySampler(seed=3, kernel=fixed), storage=url, study_name="s")

    def answered(trial: optuna.Trial) -> bool:
        trial.suggest_float("x", 0, 1), trial.suggest_categorical("c", [None, 1])
        return answers[trial.number]

    whole.optimize(answered, n_trials=5)
    for count in (1, 3, 1):
        sampler = pickle.loads(pickle.dumps(BinarySampler(seed=3, kernel=fixed)))
        optuna.load_study(study_name="s", storage=url, sampler=sampler).optimize(answered, n_trials=count)
    assert settings(optuna.load_study(study_name="s", storage=url)) == settings(whole)


def test_failed_and_pruned_trials_are_ignored():
    study, plain = binary_study(BinarySampler(seed=0)), binary_study(BinarySampler(seed=0))
    space = {"x": FloatDistribution(0, 1)}
    for k in range(6):
        for one in (study, plain):
            one.add_trial(
                optuna.trial.create_trial(value=float(k > 2), params={"x": k / 6}, distributions=space)
            )
    for state in (TrialState.FAIL, TrialState.PRUNED):
        study.add_trial(optuna.trial.create_trial(state=state, params={"x": 0.9}, distributions=space))
        plain.add_trial(
            optuna.trial.create_trial(state=TrialState.FAIL, params={}, distributions={})
        )  # so that numbers agree
    assert study.ask(space).params == plain.ask(space).params


def answered_study(count: int = 5, **options) -> optuna.Study:
    study = binary_study(BinarySampler(seed=2, kernel=PLAIN), **options)
    study.optimize(noisy_answers(5), n_trials=count)
    return study


@pytest.mark.parametrize("storage", ["memory", "rdb"])
def test_trials_that_run_at_once_are_all_different(tmp_path, storage):
    study = answered_study(storage=None if storage == "memory" else f"sqlite:///{tmp_path}/study.db")
    square = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}
    points = torch.tensor([list(study.ask(square).params.values()) for _ in range(3)])
    assert torch.pdist(points).min() > 0.02


def test_a_running_trial_counts_even_before_its_parameters_are_stored():
    study = answered_study()
    first, second = study.ask(), study.ask()
    first.relative_params  # noqa: B018 - it is decided here
    gap = [first.relative_params[name] - second.relative_params[name] for name in ("x", "y")]
    assert max(map(abs, gap)) > 0.01
    assert not first.params


def test_threads_that_ask_at_the_same_moment_get_different_trials():
    study = answered_study()
    square = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}
    barrier, asked = threading.Barrier(3), []

    def ask() -> None:
        torch.set_num_threads(1)
        barrier.wait()
        asked.append(list(study.ask(square).params.values()))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.pdist(torch.tensor(asked)).min() > 0.02


def test_jobs_in_parallel_work():
    study = binary_study(BinarySampler(seed=0, kernel=PLAIN))
    study.optimize(noisy_answers(0), n_trials=8, n_jobs=2)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 8
    assert len({json.dumps(params) for params in settings(study)}) == 8


def test_parameters_outside_the_common_space_are_drawn_at_random():
    def objective(trial: optuna.Trial) -> bool:
        x = trial.suggest_float("x", 0, 1)
        if trial.number % 2:
            trial.suggest_float(f"only in {trial.number}", 5, 6)
        return x > 0.5

    study = binary_study(BinarySampler(seed=0, kernel=aw.kernel("matern52", 0.3, 4.0)))
    study.optimize(objective, n_trials=6)
    assert 5 <= study.trials[5].params["only in 5"] <= 6
    assert set(study.sampler.best(study).params) == {"x"}


def test_a_trial_that_was_enqueued_outside_its_range_is_left_out():
    study = answered_study()
    study.enqueue_trial({"x": 7.0, "y": 0.5})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(noisy_answers(6), n_trials=2)
    assert study.trials[-2].params["x"] == 7.0
    assert 0 <= study.trials[-1].params["x"] <= 1


@pytest.mark.parametrize("value", [0.5, -1.0, 1e-9, float("inf"), float("nan")])
def test_one_odd_value_is_ignored_with_a_warning_and_the_study_goes_on(value):
    study, plain = answered_study(), answered_study()

    def odd(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        return value

    if value == value:  # Optuna itself lets a trial fail whose value is not a number
        message = rf"^trial 5 is ignored: its value must be 0 or 1; got {value:g}$"
        with pytest.warns(UserWarning, match=message):
            study.optimize(odd, n_trials=1)
    else:
        study.optimize(odd, n_trials=1)
    fail = optuna.trial.create_trial(state=TrialState.FAIL, params={}, distributions={})
    plain.add_trial(fail)  # so that numbers agree
    for one in (study, plain):
        one.optimize(noisy_answers(7), n_trials=2)
    assert settings(study)[6:] == settings(plain)[6:]
    assert study.sampler.best(study) == plain.sampler.best(plain)


@pytest.mark.filterwarnings("ignore:trial . is ignored")
def test_an_objective_that_is_not_about_success_is_refused():
    study = binary_study(BinarySampler(seed=0))
    message = r"^objective must return 0 or 1; got 2.5, 3.5, 4.5, .. in 3 of 5 trials\. Return True or False"
    values = iter([0, 2.5, 3.5, 1, 4.5, 1])

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0, 1)
        return next(values)

    with pytest.raises(aw.Refused, match=message):
        study.optimize(objective, n_trials=6)
    assert [trial.state for trial in study.trials[:5]] == [TrialState.COMPLETE] * 5
    with pytest.raises(aw.Refused, match=message):
        study.sampler.best(study)


@pytest.mark.parametrize("made", [BinarySampler, PreferentialSampler])
def test_several_objectives_are_refused(made):
    study = optuna.create_study(directions=["maximize"] * 2, sampler=made(seed=0))
    with pytest.raises(ValueError, match=r"^study must have one objective; got 2\. "):
        study.ask()


def test_a_study_of_the_other_kind_is_refused():
    space = {"x": FloatDistribution(0, 1)}
    plain, mixed_up = binary_study(PreferentialSampler(seed=0)), preferential(BinarySampler(seed=0))
    message = r"^study must be preferential; got a plain one\. Create it with optuna_dashboard\.preferential"
    for ask in (lambda: plain.ask(space), lambda: plain.sampler.best(plain)):
        with pytest.raises(aw.Refused, match=message):
            ask()
    message = r"^study must have an objective that returns 0 or 1; got a preferential one\. "
    for ask in (lambda: mixed_up.ask(space), lambda: mixed_up._study.sampler.best(mixed_up)):
        with pytest.raises(aw.Refused, match=message):
            ask()


def test_a_new_seed_brings_other_trials():
    space, first = {"x": FloatDistribution(0, 1)}, []
    for reseeded in (False, True):
        sampler = BinarySampler(seed=0)
        if reseeded:
            sampler.reseed_rng()
        first.append(binary_study(sampler).ask(space).params)
    assert first[0] != first[1]


@pytest.mark.parametrize("made", [BinarySampler, PreferentialSampler])
def test_bad_settings_are_refused_at_once(made):
    with pytest.raises(ValueError, match=r"^rule must be one of .*; got 'kg'"):
        made("kg")
    with pytest.raises(ValueError, match=r"^initial must be a whole number, 0 or more; got -1"):
        made(initial=-1)


def test_a_rule_of_the_other_kind_is_refused():
    with pytest.raises(ValueError, match=r"^rule must ask binary questions; got muc"):
        BinarySampler("muc")
    with pytest.raises(ValueError, match=r"^rule must ask duel questions; got ucb_phi"):
        PreferentialSampler("ucb_phi")


def test_nothing_is_recommended_before_the_first_answer():
    plain, preferences = binary_study(BinarySampler(seed=0)), preferential(PreferentialSampler(seed=0))
    message = r"^study must have answers about parameters that vary; got none"
    for study, sampler in ((plain, plain.sampler), (preferences, preferences._study.sampler)):
        with pytest.raises(ValueError, match=message):
            sampler.best(study)


def test_a_fixed_kernel_is_taken_as_it_is():
    fixed = aw.kernel("se", [0.3, 0.3], 2.0)
    runs = []
    for options in ({"kernel": fixed}, {}):
        study = binary_study(BinarySampler(seed=0, **options))
        study.optimize(noisy_answers(0), n_trials=6)
        runs.append(settings(study))
    assert runs[0] != runs[1]


# studies of preferences

SQUARE = {"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}


def preferred_to(trial, other, source: torch.Generator) -> bool:
    lead = height(**trial.params) - height(**other.params)
    return bool(torch.rand((), generator=source) < torch.special.ndtr(torch.tensor(lead)))


def active(study) -> list:
    """The trials that somebody looks at: neither beaten nor skipped."""
    beaten = {worse.number for _, worse in study.preferences}
    return [trial for trial in study.trials if trial.number not in beaten]


def compared(study, answers: int, seed: int = 0) -> None:
    """Let a simulated user compare the first and the last trial on the screen, again and again."""
    source = generator("user", seed)
    for _ in range(answers):
        while study.should_generate():
            study.ask(SQUARE)
        shown = active(study)
        better, worse = shown[0], shown[-1]
        if preferred_to(worse, better, source):
            better, worse = worse, better
        study.report_preference(better, worse)


def preferential(sampler, **options):
    return create_preferential(n_generate=2, sampler=sampler, **options)


def test_a_preferential_study_finds_a_better_setting_than_at_random():
    study = preferential(PreferentialSampler(seed=0, kernel=PLAIN))
    by_chance = preferential(RandomSampler(seed=0))
    compared(study, 16)
    compared(by_chance, 16)
    missing = 3 - height(**study._study.sampler.best(study).params)
    assert missing < (3 - height(**by_chance.best_trials[0].params)) / 2
    assert missing < 0.5


@pytest.mark.parametrize("rule", ["muc", "dueling_ucb"])
def test_the_challenger_has_the_highest_score_against_the_unbeaten_trial(rule):
    fixed = aw.kernel("se", [0.3, 0.3], 4.0)
    study = preferential(PreferentialSampler(rule, seed=0, kernel=fixed))
    compared(study, 7)
    lucky = study.ask(SQUARE).number
    study.report_preference(study.trials[lucky], study.best_trials)
    pairs = [[list(trial.params.values()) for trial in pair] for pair in study.preferences]
    belief = aw.infer(aw.Data.duels(pairs, [1] * len(pairs)), fixed)
    (survivor,) = study.best_trials
    asked = torch.tensor([list(study.ask(SQUARE).params.values())], dtype=torch.float64)
    side = torch.linspace(0, 1, 60, dtype=torch.float64)
    others = torch.cat([asked, torch.cartesian_prod(side, side)])
    champion = torch.tensor([list(survivor.params.values())], dtype=torch.float64)
    score = aw.rules.parse(rule).score(*belief.difference(others, champion.expand_as(others)))
    assert score[0] >= score[1:].max() - 1e-12  # the best may be a point of the grid
    top = others[belief.mean(others).argmax()]
    assert (top - champion).abs().max() > 0.05  # else the rule's own champion would do as well


def chosen_worst(study, source: torch.Generator) -> None:
    """What the dashboard does: of all trials on the screen, one is clicked as the worst."""
    shown = active(study)
    assert len(shown) == 4
    worst = min(shown, key=lambda trial: height(**trial.params) + float(torch.randn((), generator=source)))
    study.report_preference([trial for trial in shown if trial is not worst], worst)


def shown_trials(count: int, study) -> list:
    for k in range(count):
        params = {"x": (0.3 + 0.618 * k) % 1, "y": (0.1 + 0.37 * k) % 1}
        study.add_trial(optuna.trial.create_trial(value=0.0, params=params, distributions=SQUARE))
    return study.trials


def place_of(*trials) -> torch.Tensor:
    return torch.tensor([list(trial.params.values()) for trial in trials], dtype=torch.float64)


def test_the_trial_clicked_as_the_worst_is_the_worst_of_all_that_were_shown():
    """As the dashboard itself reports it, takes it back and reports it again."""
    sampler = PreferentialSampler(seed=0, kernel=PLAIN, initial=3)
    study, expected = preferential(sampler), preferential(sampler)
    trials, inner = shown_trials(4, study), study._study
    shown_trials(4, expected)
    clicked = history.NewHistory("ChooseWorst", candidates=[0, 1, 2, 3], clicked=2)
    made = history.report_history(inner._study_id, inner._storage, clicked)
    belief = aw.infer(aw.Data.worst(place_of(*trials)[None], [2]), PLAIN)
    found = sampler.best(study)
    assert found.params == pytest.approx(best_of(belief), abs=0.02)
    expected.report_preference([trials[k] for k in (3, 0, 1)], trials[2])  # in another order, from Python
    assert found == sampler.best(expected)
    history.remove_history(inner._study_id, inner._storage, made)
    with pytest.raises(aw.Refused, match="have answers"):
        sampler.best(study)
    history.restore_history(inner._study_id, inner._storage, made)
    assert found == sampler.best(study)
    study.ask(SQUARE)
    assert study.trials[-1].system_attrs["askwise:proposed"]  # three comparisons, as many as are wanted


def best_of(belief: aw.Belief) -> dict[str, float]:
    side = torch.linspace(0, 1, 101, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side)
    return dict(zip("xy", grid[belief.mean(grid).argmax()].tolist(), strict=True))


def answers_of(study) -> list:
    return list(study._study.sampler._answers(study._study, _Chart(SQUARE)))


def test_reports_are_worsts_where_one_trial_is_worse_than_several_and_duels_elsewhere():
    study = preferential(PreferentialSampler(seed=0, kernel=PLAIN))
    trials = shown_trials(5, study)
    study.report_preference(trials[0], trials[1])
    study.report_preference([trials[2], trials[0]], [trials[1], trials[3]])
    study.report_preference([trials[4], trials[0]], trials[2])
    study.report_preference(trials[3], [trials[0], trials[1]])
    said = [([one["x"] for one in answer.options], answer.answer) for answer in answers_of(study)]
    x = [trial.params["x"] for trial in trials]
    pairs = [(0, 1), (0, 1), (2, 1), (0, 3), (3, 0), (3, 1), (2, 3)]
    duels = [([x[better], x[worse]], Preference(0)) for better, worse in pairs]
    assert said == [*duels, ([x[0], x[4], x[2]], Worst(2))]


def test_a_trial_without_all_parameters_is_left_out_of_those_that_were_shown():
    study = preferential(PreferentialSampler(seed=0, kernel=PLAIN))
    trials = shown_trials(4, study)
    half = {"x": SQUARE["x"]}
    study.add_trial(optuna.trial.create_trial(value=0.0, params={"x": 0.5}, distributions=half))
    lone = study.trials[4]
    study.report_preference([trials[0], lone, trials[1]], trials[2])
    study.report_preference([trials[0], lone], trials[3])
    study.report_preference([trials[0], trials[1]], lone)
    assert [(len(one.options), one.answer) for one in answers_of(study)] == [
        (3, Worst(2)),
        (2, Preference(0)),
    ]


def test_a_study_with_four_trials_at_a_time_may_be_loaded_again_for_every_trial(tmp_path):
    url, source = f"sqlite:///{tmp_path}/study.db", generator("user")
    sampler = PreferentialSampler(seed=0, kernel=PLAIN, initial=3)
    create_preferential(n_generate=4, study_name="s", storage=url, sampler=sampler)
    kept = create_preferential(n_generate=4, sampler=sampler)
    state = source.get_state()
    for _ in range(3):
        while kept.should_generate():
            kept.ask(SQUARE)
        chosen_worst(kept, source)
    source.set_state(state)
    for _ in range(3):
        study = load_preferential(study_name="s", storage=url, sampler=sampler)
        while study.should_generate():
            study.ask(SQUARE)
        chosen_worst(study, source)
    assert len(study.preferences) == 9
    for stored, other in zip(study.trials, kept.trials, strict=True):
        assert stored.params == pytest.approx(other.params, abs=1e-6)


def test_challengers_not_compared_yet_are_all_different():
    study = preferential(PreferentialSampler(seed=0, kernel=PLAIN))
    compared(study, 6)
    points = torch.tensor([list(study.ask(SQUARE).params.values()) for _ in range(4)])
    assert torch.pdist(points).min() > 0.02
    for trial in study.trials[-4:]:  # and each was chosen, not drawn at random for want of another
        assert trial.system_attrs["askwise:proposed"] == trial.params


def test_the_order_in_which_preferences_are_stored_does_not_matter():
    studies = [preferential(PreferentialSampler(seed=0)) for _ in range(2)]
    for study, numbers in zip(studies, [range(11), range(10, -1, -1)], strict=True):
        for k in range(12):
            x = (0.3 + 0.618 * k) % 1
            study.add_trial(
                optuna.trial.create_trial(value=0.0, params={"x": x, "y": k / 12}, distributions=SQUARE)
            )
        trials = study.trials
        for k in numbers:
            ordered = sorted(trials[k : k + 2], key=lambda trial: -height(**trial.params))
            study.report_preference(*ordered)
    assert studies[0].ask(SQUARE).params == studies[1].ask(SQUARE).params


def test_if_all_trials_are_beaten_the_best_of_the_model_is_challenged():
    study = preferential(PreferentialSampler(seed=0, initial=1))
    first, second = (study.ask(SQUARE) for _ in range(2))
    trials = study.trials
    study.report_preference(trials[first.number], trials[second.number])
    study.report_preference(trials[second.number], trials[first.number])
    assert not study.best_trials
    assert all(0 <= value <= 1 for value in study.ask(SQUARE).params.values())


def test_if_no_challenger_is_new_one_is_drawn_at_random():
    study = preferential(PreferentialSampler(seed=0, initial=1))
    two = {"c": CategoricalDistribution(["a", None])}
    while len({trial.params["c"] for trial in study.trials}) < 2:
        study.ask(two)
    by_value = {trial.params["c"]: trial for trial in study.trials}
    study.report_preference(by_value["a"], by_value[None])
    assert all(study.ask(two).params["c"] in ("a", None) for _ in range(3))
    assert study._study.sampler.best(study).params == {"c": "a"}


@pytest.mark.slow
def test_preferences_in_a_mixed_space():
    study = preferential(PreferentialSampler(seed=0))
    for _ in range(14):
        while study.should_generate():
            study.ask(MIXED)
        shown = sorted(active(study), key=lambda trial: (trial.params["mode"] == "a", trial.params["bands"]))
        study.report_preference(shown[-1], shown[0])
    best = study._study.sampler.best(study).params
    assert best["mode"] == "a"
    assert best["bands"] >= 6
    for trial in study.trials:
        assert all(kind._contains(kind.to_internal_repr(trial.params[name])) for name, kind in MIXED.items())
