"""Studies of items: every rule, storage, replay, study files, and a changed table."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

import askwise as aw
from askwise.numerics import generator
from askwise.rules import RULES
from askwise.search import Search
from askwise.study import load

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data"
NUMBERS = torch.rand(60, 2, generator=generator("pool"), dtype=torch.float64)
TABLE = {
    "name": [f"wine {k}" for k in range(60)],
    "sugar": NUMBERS[:, 0].tolist(),
    "acid": NUMBERS[:, 1].tolist(),
}


def wines() -> aw.Items:
    return aw.Items(TABLE, features=["sugar", "acid"], id="name")


def worth(option: dict) -> float:
    return -10 * ((option["sugar"] - 0.6) ** 2 + (option["acid"] - 0.4) ** 2)


def answered(study: aw.Study, count: int) -> aw.Study:
    for _ in range(count):
        question = study.ask()
        values = [worth(option) for option in question.options]
        assert len({option["name"] for option in question.options}) == len(values)
        if study.feedback == "binary":
            study.tell(question, values[0] > -1)
        elif study.feedback == "duel":
            study.tell(question, values.index(max(values)))
        else:
            study.tell(question, winner=values.index(max(values)))
    return study


@pytest.mark.parametrize("rule", [key for key, rule in RULES.items() if "duel" in rule.asks])
def test_every_rule_of_duels_asks_about_two_items(rule):
    answered(aw.Study(wines(), rule=rule, initial=3), 5)


@pytest.mark.parametrize("feedback", ["binary", "batch"])
def test_yes_no_questions_and_batches_are_about_items(feedback):
    assert answered(aw.Study(wines(), feedback, initial=2), 6).best().params["name"] in TABLE["name"]


def test_the_best_item_is_found_and_named():
    study = answered(aw.Study(wines(), seed=1), 30)
    best = max(TABLE["name"], key=lambda name: worth(wines().row(name)))
    assert study.best().params == {"name": best}
    top = study.top(40)
    assert len({one.params["name"] for one in top}) == 40
    assert top[0].params == {"name": best}
    assert all(0 < one.probability < 1 for one in top)


def test_a_stored_study_goes_on_without_its_table_and_replays(tmp_path):
    with answered(aw.Study(wines(), storage=tmp_path / "s.db", initial=3), 5) as study:
        expected = study.ask()
    with aw.Study.open(tmp_path / "s.db") as study:
        assert study.ask() == expected
        assert all(one.equal for one in study.replay())
        assert all(option.keys() == {"name"} for entry in study.history() for option in entry.options)


def test_a_changed_table_is_refused_in_words(tmp_path):
    aw.Study(wines(), storage=tmp_path / "s.db").close()
    changed = {**TABLE, "sugar": [0.123, *TABLE["sugar"][1:]]}
    more = wines().with_rows({"name": ["new"], "sugar": [0.5], "acid": [0.5]})
    for items, problem in (
        (
            aw.Items(changed, features=["sugar", "acid"], id="name"),
            r"sugar = 0\.123 instead of .* for 'wine 0'",
        ),
        (more, r"a table with 1 more \('new', say\)"),
    ):
        with pytest.raises(ValueError, match=f"^table of name must be as study 'study' .*; got {problem}"):
            aw.Study(items, storage=tmp_path / "s.db")


def test_a_study_file_names_a_table_next_to_it(tmp_path):
    lines = [",".join(map(str, row)) for row in zip(*TABLE.values(), strict=True)]
    (tmp_path / "wines.csv").write_text("\n".join(["name,sugar,acid", *lines]))
    (tmp_path / "study.toml").write_text(
        '[study]\nname = "w"\n[space.wine]\ntype = "items"\ntable = "wines.csv"\n'
        'features = ["sugar", "acid"]\nid = "name"\n'
    )
    assert load(tmp_path / "study.toml").space == aw.Space(wine=wines())
    (tmp_path / "wines.csv").unlink()
    with pytest.raises(aw.NotFound, match=r"line 5: table must exist; got .*wines\.csv"):
        load(tmp_path / "study.toml")


def test_items_in_a_context_and_beside_a_number():
    space = aw.Space(wine=wines(), temperature=aw.Real(8, 18), guest=aw.Choice(["a", "b"], context=True))
    study = aw.Study(space, initial=2)
    for _ in range(4):
        question = study.ask(context={"guest": "a"})
        assert all(8 <= option["temperature"] <= 18 for option in question.options)
        study.tell(question, 0)
    assert study.best({"guest": "b"}).params["guest"] == "b"


@pytest.mark.parametrize("kernel", ["matern32", "matern52", "se"])
def test_of_items_that_nothing_is_known_of_each_seed_takes_another(kernel):
    pool = aw.Space(w=aw.Items([f"item {number}" for number in range(300)])).domain(None)
    belief = aw.infer(aw.Data.binary(pool.listed[:3], [0, 0, 0]), aw.kernel(kernel, [1e-6]))
    champions = [Search.around(belief, aw.seeds.generator(seed), pool).champion(belief) for seed in range(20)]
    assert len({str(champion.tolist()) for champion in champions}) > 15


def test_the_best_item_is_found_under_a_prior_that_single_precision_cannot_tell_apart():
    source = generator("items")
    features = torch.randn(800, 4, generator=source).tolist()
    table = {"id": list(range(800)), **{name: [row[k] for row in features] for k, name in enumerate("abcd")}}
    pool = aw.Space(w=aw.Items(table, id="id", features=list("abcd"))).domain(None)
    duels = torch.randint(800, (300, 2), generator=source)
    X = pool.listed[duels[duels[:, 0] != duels[:, 1]]]
    worth = X.sum(-1) + (9 * X).sin().sum(-1) + 0.7 * torch.randn(X.shape[:-1], generator=source)
    data = aw.Data.duels(X, (worth[:, 1] > worth[:, 0]).long())
    belief = aw.infer(data, aw.kernel("se", [100.0] * 4, 1e6))
    best = Search.around(belief, aw.seeds.generator(0), pool).champion(belief)
    assert float(belief.mean(best)) == pytest.approx(float(belief.mean(pool.listed).max()), abs=1e-6)


def test_what_was_never_asked_is_unknown_without_features():
    study = aw.Study(aw.Items(TABLE["name"], id="name"), initial=3)
    for _ in range(5):
        study.tell(study.ask(), 0)
    asked = {option["name"] for entry in study.history() for option in entry.options}
    others = [{"name": name} for name in TABLE["name"] if name not in asked]
    assert all(one.mean == 0 for one in study.predict(others))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def counted(path: Path) -> list[dict]:
    """Duels of a table of pairs with how often the first won, lost and tied."""
    return [
        {"options": [{"name": row["first"]}, {"name": row["second"]}], "answer": answer}
        for row in rows(path)
        for outcome, answer in (("win", 0), ("loss", 1), ("tie", None))
        for _ in range(int(row[outcome]))
    ]


def one_by_one(path: Path) -> list[dict]:
    """Duels of a table with a row for each."""
    return [
        {"options": [{"name": row["first"]}, {"name": row["second"]}], "answer": 1 - int(row["won"])}
        for row in rows(path)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("duels", "estimates", "column"),
    [
        (counted(ROOT / "examples/springall.csv"), "springall-r.csv", "worth"),
        (counted(DATA / "german-parties.csv"), "german-parties-r.csv", "worth"),
        (one_by_one(DATA / "sound-quality.csv"), "sound-quality-r.csv", "thurstone"),
    ],
    ids=["springall", "german parties", "sound quality"],
)
def test_worths_without_features_are_those_of_the_probit_fit_in_r(duels, estimates, column):
    wanted = rows(DATA / estimates)
    names = [row["item"] for row in wanted]
    study = aw.Study(aw.Items(names, id="name"), lapses=0)
    study.record_many(duels)
    worths = [one.mean for one in study.predict([{"name": name} for name in names])]
    assert np.corrcoef(worths, [float(row[column]) for row in wanted])[0, 1] > 0.999
