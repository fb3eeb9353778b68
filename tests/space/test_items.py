"""A pool of items: its coordinates, its search, and what is refused."""

import re

import pytest
import torch

from askwise.model import Data, covariance, infer, kernel
from askwise.numerics import generator
from askwise.search import Search
from askwise.space import Integer, Items, Parameter, Real, Space
from askwise.study.plan import Plan

WINES = {"name": ["Chablis", "Rioja", "Port"], "sugar": [1.0, 2.0, 5.0], "acid": [7.0, 5.0, 4.0]}


def wines(**more: object) -> Items:
    return Items(WINES, **{"features": ["sugar", "acid"], "id": "name", **more})


def pool(count: int, width: int = 3) -> Items:
    numbers = torch.rand(count, width, generator=generator("items"), dtype=torch.float64)
    return Items(numbers.numpy())


def test_a_list_of_names_needs_nothing_else():
    assert Items(["Chablis", "Rioja"]) == Items(["Chablis", "Rioja"], id="name")


def test_all_kinds_of_tables_are_the_same_pool(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "wines.csv"
    pandas.DataFrame(WINES).to_csv(path, index=False)
    rows = [dict(zip(WINES, row, strict=True)) for row in zip(*WINES.values(), strict=True)]
    for table in (path, str(path), pandas.DataFrame(WINES), rows):
        assert Items(table, features=["sugar", "acid"], id="name") == wines()


def test_features_are_linear_between_the_ends_of_the_table():
    torch.testing.assert_close(wines().rows[:, 0], torch.tensor([0.05, 0.275, 0.95]).double())


def test_items_that_are_added_do_not_move_the_others():
    more = wines().with_rows({"name": ["Syrup", "Vinegar"], "sugar": [80.0, 0.0], "acid": [4.5, 40.0]})
    assert torch.equal(more.rows[:3], wines().rows)
    assert ((more.rows > 0) & (more.rows < 1)).all()
    assert more.places("Syrup")[0] > more.places("Port")[0]
    assert more.places("Vinegar")[0] < more.places("Chablis")[0]
    assert Parameter.from_dict(more.to_dict()) == more


def test_a_slope_at_the_end_of_the_table_goes_on_beyond_it():
    more = wines().with_rows({"name": ["sweet"], "sugar": [5.0 + 1e-6], "acid": [5.0]})
    slope = (more.places("sweet")[0] - more.places("Port")[0]) / 1e-6
    assert slope == pytest.approx(0.9 / 4, rel=1e-3)


@pytest.mark.parametrize("name", ["se", "matern32", "matern52"])
def test_items_without_features_are_independent_under_the_prior(name):
    items = Items([f"item {number}" for number in range(1100)], id="name")
    prior = covariance(Plan.read(items, kernel=name).expected_kernel())
    cov = prior.cross(items.rows, items.rows)
    assert torch.equal(cov, prior.outputscale * torch.eye(1100, dtype=torch.float64))


def test_the_search_finds_the_best_of_all_items():
    items = pool(3000)
    domain = Space(item=items).domain()
    search = Search(torch.Size(), generator(1), torch.full((1, 3), 0.5, dtype=torch.float64), domain)
    target = torch.tensor([0.3, 0.8, 0.6]).double()
    found = search.argmax(lambda x: -(x - target).square().sum(-1))
    assert torch.equal(found[0], items.rows[(items.rows - target).square().sum(-1).argmin()])


@pytest.mark.parametrize("other", [Real(0, 1), Integer(0, 100)])
def test_the_search_finds_the_best_item_together_with_a_number(other):
    items = pool(500)
    domain = Space(item=items, other=other).domain()
    best = torch.linspace(0, 1, 500, dtype=torch.float64)  # each item is best at a number of its own
    worth = torch.rand(500, generator=generator(2), dtype=torch.float64)

    def score(x: torch.Tensor) -> torch.Tensor:
        item = torch.cdist(x[..., :3], items.rows.expand(*x.shape[:-2], -1, -1)).argmin(-1)
        return worth[item] - 50 * (x[..., 3] - best[item]).square()

    search = Search(torch.Size(), generator(1), torch.full((1, 4), 0.5, dtype=torch.float64), domain)
    found = score(search.argmax(score))
    assert found > worth.max() - 0.01


def test_random_settings_have_all_items_equally_often():
    items = pool(10)
    domain = Space(item=items, other=Real(0, 1)).domain()
    search = Search(torch.Size(), generator(3), torch.full((1, 4), 0.5, dtype=torch.float64), domain)
    drawn = search.random(5000)[:, :3]
    counts = torch.stack([(drawn == row).all(-1).sum() for row in items.rows])
    assert counts.sum() == 5000
    assert ((counts - 500).abs() < 5 * 450**0.5).all()


def test_batches_are_of_different_items():
    from askwise.loop import ask
    from askwise.rules import parse

    items = pool(40)
    data = Data.duels(items.rows[:8].view(4, 2, 3), torch.tensor([1.0, 0, 1, 1]))
    belief = infer(data, kernel("matern52", [0.4] * 3, 4.0))
    points = ask(belief, parse("muc_joint"), 6, generator(4), Space(item=items).domain())
    assert len(points.unique(dim=0)) == 6
    assert all((items.rows == point).all(-1).any() for point in points)


def test_a_setting_may_hold_the_features_of_its_item():
    space = Space(wine=wines(), temperature=Real(8, 18))
    setting = {"wine": "Rioja", "temperature": 9.0}
    described = {**setting, "sugar": 2.0, "acid": 5.0}
    assert space.described(setting) == described
    assert torch.equal(space.unit(described), space.unit(setting))
    with pytest.raises(ValueError, match=r"^sugar must be 2\.0, as for this wine; got 3\.0"):
        space.unit({**described, "sugar": 3.0})


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: wines(features=["sweet"]), "table must have a column 'sweet'; got name, sugar, acid"),
        (lambda: wines(features="sugar"), "features must be a list of columns; got 'sugar'"),
        (lambda: Items({"a": [1, 2]}), "items must have features or an id; got neither"),
        (lambda: Items({"a": [1.0, 1.0]}, ["a"]), "feature a must have different values; got all 1"),
        (lambda: Items({"a": [1, "x"]}, ["a"]), "feature a must be a finite number; got 'x' in row 2"),
        (lambda: Items({"a": [1, 1, 2]}, ["a"]), "items must differ in a feature; got 0 and 1, which do not"),
        (lambda: Items(["a", "b", "a"], id="n"), "n must be different for each item; got 'a' twice"),
        (lambda: Items(["a"], id="n"), "items must be from 2 to 100,000; got 1"),
        (
            lambda: Items({"a": [1, 2], "b": [1]}, ["a"]),
            "table must have columns of equal length; got 2 of a",
        ),
        (lambda: Items("no.csv", ["a"]), "table must exist; got 'no.csv', where there is none"),
        (lambda: Items(3, ["a"]), "table must be a CSV file, a DataFrame, .*; got 3"),
        (lambda: wines().places("Malbec"), "value must be one of the 3 items; got 'Malbec'"),
        (lambda: wines().with_rows({"name": ["x"]}), "table must have a column 'sugar'"),
        (lambda: Space(sugar=Real(0, 1), wine=wines()), "names of .* must all differ; got 'sugar' twice"),
    ],
)
def test_what_is_no_pool_is_refused(make, problem):
    with pytest.raises((ValueError, TypeError, LookupError), match=f"^{problem}") as error:
        make()
    assert re.search(r"\. \S.*\.$", str(error.value))
