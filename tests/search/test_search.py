"""The search against known maxima, grids and other algorithms, and its guarantees."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

import askwise as aw
from askwise.model.belief import Belief
from askwise.model.predictive import Score
from askwise.numerics.seeds import generator
from askwise.rules import parse
from askwise.search import batches as challengers
from askwise.search.ascent import Differentiable, finite_scores, with_gradient
from askwise.search.batches import Pairs, best_challengers
from askwise.search.search import Search
from tensors import f64, uniform

Scored = Callable[[Tensor], Tensor]


def searching(d: int, lanes: tuple[int, ...] = (), warm: Tensor | None = None) -> Search:
    warm = torch.full((*lanes, 1, d), 0.5, dtype=torch.float64) if warm is None else warm
    return Search(torch.Size(lanes), generator(0), warm)


def bowl(centre: Tensor) -> Scored:
    """A bowl per lane, for points [.., k, d] and centres [.., d]; steeper in later dimensions."""
    steep = torch.arange(1, centre.shape[-1] + 1, dtype=torch.float64)
    return lambda x: -(steep * (x - centre[..., None, :]).square()).sum(-1)


def rippled(centre: Tensor) -> Scored:
    """A bowl with ripples: many local maxima, the best of them at the centre."""

    def score(x: Tensor) -> Tensor:
        gap = x - centre[..., None, :]
        return ((15 * gap).cos() - 4 * gap.square()).sum(-1)

    return score


def near(got: Tensor, want: Tensor, atol: float = 1e-4) -> None:
    torch.testing.assert_close(got, want.expand_as(got), rtol=0, atol=atol)


@dataclass
class Recorded:
    """A score that records its inputs and values."""

    score: Scored
    points: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)

    def __call__(self, x: Tensor) -> Tensor:
        value = self.score(x)
        self.points.append(x.detach().clone())
        self.values.append(value.detach().clone())
        return value


# known maxima


PLACES = {
    "inside": [0.37, 0.61, 0.2, 0.83, 0.5],
    "edge": [0.0, 0.61, 1.0, 0.83, 0.5],
    "corner": [1.0, 0.0, 0.0, 1.0, 1.0],
    "outside": [1.3, 0.61, -0.2, 0.83, 0.5],
    "just inside": [1e-3, 1 - 1e-3, 1e-3, 1e-3, 1 - 1e-3],
}


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("place", PLACES)
def test_the_top_of_a_bowl_is_found(place, d):
    centre = f64(PLACES[place][:d])
    found = searching(d).argmax(bowl(centre))
    assert found.shape == (1, d)
    near(found, centre.clamp(0, 1), 1e-5)
    beyond = (centre <= 0) | (centre >= 1)
    assert torch.equal(found[0, beyond], centre[beyond].clamp(0, 1))


@pytest.mark.parametrize("d", [30, pytest.param(70, marks=pytest.mark.slow)])
def test_the_top_of_a_bowl_in_many_dimensions_is_found(d):
    near(searching(d).argmax(bowl(f64([0.4] * d))), f64(0.4), 1e-2)


def plateau(x: Tensor) -> Tensor:
    """Equal to the last bit but close to one point, as a score is far from all answers."""
    return torch.where((x - 0.5).abs().amax(-1) < 0.05, -1.0, 0.0).double()


def test_of_equal_scores_each_run_takes_another_point():
    warm = torch.full((1, 2), 0.5, dtype=torch.float64)
    seeds = [generator("plateau", run) for run in range(40)]
    alone = [Search(torch.Size(), seed, warm).argmax(plateau) for seed in seeds]
    assert len({tuple(one[0].tolist()) for one in alone}) >= 36  # of 384, two of 40 may have the same
    assert 0.35 < torch.cat(alone).mean() < 0.65
    together = Search(torch.Size([40]), seeds, warm.expand(40, 1, 2)).argmax(plateau)
    assert torch.equal(together, torch.stack(alone))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_best_of_many_maxima_is_found(d):
    centres = torch.cat([uniform(20, d, seed=d), (uniform(4, d) > 0.5).double()])
    found = searching(d, (24,)).argmax(rippled(centres))
    near(found, centres[:, None])


@pytest.mark.parametrize(("d", "width"), [(1, 0.02), (2, 0.06)])
def test_the_higher_of_two_peaks_is_found_even_if_it_is_narrower(d, width):
    centres = uniform(20, 2, d, seed=3)

    def score(x: Tensor) -> Tensor:
        gap = (x[..., None, :] - centres[:, None]).square().sum(-1)
        return (f64([1.0, 1.2]) * (-gap / f64([0.3, width]).square() / 2).exp()).amax(-1)

    found = searching(d, (20,)).argmax(score)
    assert (score(found) > 1.2 - 1e-6).all()


def test_a_narrow_peak_near_a_warm_point_is_found():
    peak = f64([0.7431, 0.2212])

    def score(x: Tensor) -> Tensor:
        gap = (x - peak).square().sum(-1)
        return 0.5 * bowl(f64([0.3, 0.3]))(x) + (-gap / 2e-3**2 / 2).exp()

    known = torch.stack([f64([0.1, 0.9]), peak + 2e-3, f64([0.9, 0.9])])
    near(searching(2, warm=known).argmax(score), peak)
    near(searching(2).argmax(score), f64([0.3, 0.3]), 1e-2)


def test_maxima_of_every_height_and_scale_are_found():
    centres = uniform(5, 2)
    factor, shift = f64([1e-12, 1e-3, 1.0, 1e3, 1e12])[:, None], f64([0.0, 5.0, -3.0, 1e3, -1e9])[:, None]
    near(searching(2, (5,)).argmax(lambda x: shift + factor * rippled(centres)(x)), centres[:, None])


def test_a_maximum_at_a_kink_is_found():
    top = f64([0.3, 0.8])
    found = searching(2).argmax(lambda x: -(x - top).abs().sum(-1))
    near(found, top, 2e-3)


# groups and draws


def apart(centres: Tensor) -> Scored:
    """Groups [.., q, d] whose members each have their own optimum, [.., q, d]."""
    return lambda x: -(x - centres).square().sum((-1, -2))


@pytest.mark.parametrize(("q", "d"), [(2, 1), (2, 2), (4, 2), (3, 5), (13, 2)])
def test_the_best_group_is_found(q, d):
    centres = (1.3 * uniform(q, d) - 0.15).clamp(0, 1)
    found = searching(d).argmax(apart(centres), q=q)
    assert found.shape == (q, d)
    near(found, centres)


def test_a_narrow_peak_near_an_extra_group_is_found():
    centres = uniform(3, 2, seed=4)

    def score(x: Tensor) -> Tensor:
        return 2 * (apart(centres)(x) / 1e-3**2 / 2).exp() - 0.1 * x.square().sum((-1, -2))

    extra = torch.stack([torch.ones(3, 2).double(), centres + 3e-4])
    near(searching(2).argmax(score, q=3, extra=extra), centres, 1e-4)
    near(searching(2).argmax(score, q=3), f64(0.0), 1e-3)


def test_the_result_is_never_worse_than_an_extra_group():
    """For a rough score with a local maximum near each start."""

    def score(x: Tensor) -> Tensor:
        return (60 * x).sin().sum((-1, -2)) - (x - 0.5).square().sum((-1, -2))

    extra = uniform(7, 4, 2, seed=5)
    for k in range(7):
        found = searching(2).argmax(score, q=4, extra=extra[k : k + 1])
        assert score(found) >= score(extra[k])


def test_each_draw_has_its_own_maximum():
    centres = uniform(6, 3, 2)
    found = searching(2, (3,)).argmax(rippled(centres), draws=6)
    assert found.shape == (6, 3, 1, 2)
    near(found, centres[..., None, :])


def test_one_draw_is_a_draw():
    assert searching(2).argmax(bowl(uniform(1, 2)), draws=1).shape == (1, 1, 2)


# lanes and repeatability


@pytest.mark.parametrize("kind", ["points", "groups", "draws"])
def test_lanes_together_equal_lanes_alone(kind):
    warm, lanes = uniform(9, 4, 2, seed=1), range(9)
    shape = {"points": (9, 2), "groups": (9, 3, 2), "draws": (4, 9, 2)}[kind]
    centres = uniform(*shape)
    options = {"points": {}, "groups": {"q": 3}, "draws": {"draws": 4}}[kind]
    make = apart if kind == "groups" else rippled
    together = searching(2, (9,), warm).argmax(make(centres), **options)
    for k in lanes:
        own = centres[:, k] if kind == "draws" else centres[k]
        alone = searching(2, (), warm[k]).argmax(make(own), **options)
        near(together[:, k] if kind == "draws" else together[k], alone, 1e-9)


def test_the_same_search_gives_the_same_result():
    score, search = rippled(uniform(5, 2)), searching(2, (5,))
    assert torch.equal(search.argmax(score), search.argmax(score))


def test_a_search_does_not_use_its_random_source():
    search = searching(2)
    search.argmax(bowl(f64([0.3, 0.3])))
    search.space_filling(9), search.corners()
    assert torch.equal(search.source.get_state(), generator(0).get_state())


# non-finite and constant scores


def walled(beyond: float, cut: float, centre: Tensor) -> Scored:
    return lambda x: torch.where(x[..., 0] > cut, beyond, bowl(centre)(x))


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("cut", [0.9, 0.6, 0.3])
@pytest.mark.parametrize("beyond", [-math.inf, math.nan, math.inf])
def test_a_non_finite_score_is_never_chosen(beyond, cut, d):
    centre = f64([cut - 0.033] * d)
    near(searching(d).argmax(walled(beyond, cut, centre)), centre, 1e-5)


@pytest.mark.parametrize("beyond", [-math.inf, math.nan, math.inf])
def test_a_group_with_a_non_finite_score_is_never_chosen(beyond):
    centres = 0.2 + 0.5 * uniform(2, 2)

    def score(x: Tensor) -> Tensor:
        return torch.where(x[..., 0, 0] > centres[0, 0] + 0.2, beyond, apart(centres)(x))

    extra = torch.ones(3, 2, 2).double()
    near(searching(2).argmax(score, q=2, extra=extra), centres, 1e-5)


def test_a_non_finite_score_counts_less_than_any_start_that_is_not_a_local_maximum():
    values = finite_scores(f64([[1.0, math.nan, 3.0, -math.inf, math.inf]]))[0]
    penalty = 2 * (3.0 - 1.0)  # of such a start: twice the range
    assert values[[0, 2]].tolist() == [1.0, 3.0]
    assert (values[[1, 3, 4]] < 1.0 - penalty).all()


@pytest.mark.parametrize("value", [0.0, 7.0, -math.inf, math.nan, math.inf])
@pytest.mark.parametrize("q", [1, 2])
def test_a_constant_score_gives_any_point_of_the_cube(value, q):
    dims = -1 if q == 1 else (-1, -2)
    found = searching(2, (3,)).argmax(lambda x: 0 * x.sum(dims) + value, q=q)
    assert found.shape == (3, q, 2)
    assert ((found >= 0) & (found <= 1)).all()


def test_a_score_may_ignore_the_points():
    found = searching(2).argmax(lambda x: torch.zeros_like(x[..., 0]))
    assert ((found >= 0) & (found <= 1)).all()


def test_a_lane_without_a_finite_score_does_not_disturb_the_others():
    centres = uniform(3, 2)

    def score(x: Tensor) -> Tensor:
        return bowl(centres)(x) + f64([0.0, -math.inf, 0.0])[:, None]

    near(searching(2, (3,)).argmax(score)[[0, 2]], centres[[0, 2], None], 1e-5)


@pytest.mark.parametrize("centre", [[0.5, 0.5], [1.5, -0.5], [0.0, 1.0]])
def test_no_point_outside_the_cube_is_evaluated(centre):
    for q in (1, 2):
        score = Recorded(bowl(f64(centre)) if q == 1 else apart(f64([centre, centre])))
        search = searching(2, warm=uniform(3, 2).round())
        assert ((found := search.argmax(score, q=q)) >= 0).all()
        assert (found <= 1).all()
        assert all(((x >= 0) & (x <= 1)).all() for x in score.points)


def test_no_evaluated_point_is_better_than_the_result():
    """For rough scores, with a candidate near many of their maxima."""
    for k, frequency in enumerate((5.0, 20.0, 100.0, 500.0)):
        rough = Recorded(lambda x, f=frequency: (f * x).sin().prod(-1) - (x - 0.4).square().sum(-1))
        found = searching(2, warm=uniform(5, 2, seed=k)).argmax(rough)
        assert rough(found).item() >= torch.cat([v.reshape(-1) for v in rough.values]).max().item() - 1e-9


# beliefs


def height(x: Tensor) -> Tensor:
    return 1 - 6 * (x - 0.6).square().sum(-1) + 0.5 * (9 * x).sin().sum(-1)


def inferred(lanes: int, d: int, n: int = 8, name: str = "matern52") -> Belief:
    """Noisy yes/no answers and duels, different in each lane, as is the lengthscale."""
    X, pairs = uniform(lanes, n, d, seed=d), uniform(lanes, n, 2, d, seed=d + 1)
    yes = uniform(lanes, n, seed=5) < torch.special.ndtr(height(X))
    won = uniform(lanes, n, seed=6) < torch.special.ndtr(
        2 * height(pairs)[..., 0] - 2 * height(pairs)[..., 1]
    )
    length = 0.1 * 10 ** uniform(lanes, d, seed=7)
    return aw.infer(aw.Data.binary(X, yes) + aw.Data.duels(pairs, won), aw.kernel(name, length, 3.0))


def grid(d: int) -> Tensor:
    axis = torch.linspace(0, 1, 1001 if d == 1 else 51, dtype=torch.float64)
    return axis[:, None] if d == 1 else torch.cartesian_prod(axis, axis)


def scores(belief: Belief, champion: Tensor) -> dict[str, Scored]:
    """The scores that rules search."""
    f, difference = belief.predictive, belief.predictive.against(champion)
    return {
        "mean": f.mean_only().score(),
        **{name: f.score(parse(name).score) for name in ("ucb_phi", "ucb_f", "ucb_f(beta=3)")},
        **{name: difference.score(parse(name).score) for name in ("muc", "eiig", "max_entropy_challenge")},
        "log muc": difference.score(parse("muc").log_score),
        "log ei": f.score(parse("ei").log_score),
    }


@pytest.mark.parametrize(
    ("name", "d"),
    [
        ("se", 1),
        ("matern32", 2),
        *(
            pytest.param(*rest, marks=pytest.mark.slow)
            for rest in (("se", 2), ("matern32", 1), ("matern52", 2))
        ),
    ],
)
def test_no_point_of_a_grid_is_better_by_a_thousandth_for_any_of_many_beliefs(name, d):
    lanes = 20 if d == 1 else 8
    belief = inferred(lanes, d, name=name)
    search = Search.around(belief, generator(1))
    champion = search.champion(belief)
    for which, score in scores(belief, champion).items():
        found = search.argmax(score)
        best = torch.cat([score(part) for part in grid(d).split(2048)], -1).amax(-1)
        short = best - score(found)[..., 0]
        assert short.max() < 1e-3, which
        assert (short < 1e-5).sum() >= lanes - 1, which


@pytest.mark.parametrize("d", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_scores_with_and_without_their_own_gradient_lead_to_the_same_point(d):
    belief = inferred(10, d)
    search = Search.around(belief, generator(1))
    for score in scores(belief, search.champion(belief)).values():
        assert isinstance(score, Differentiable)
        plain = lambda x, score=score: score(x)  # noqa: E731
        assert not isinstance(plain, Differentiable)
        near(search.argmax(score), search.argmax(plain), 1e-5)


def test_gradients_come_from_the_score_itself_or_from_autograd():
    belief, x = inferred(4, 2), uniform(4, 5, 2)
    score = belief.predictive.score(parse("ucb_phi").score)
    for got, want in zip(with_gradient(score, x), with_gradient(lambda x: score(x), x), strict=True):
        torch.testing.assert_close(got, want)
        assert not want.requires_grad

    class Wrong:
        def __call__(self, x: Tensor) -> Tensor:
            return bowl(f64([0.2, 0.2]))(x)

        def with_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return self(x) + 1, torch.full_like(x, 3.0)

    value, grad = with_gradient(Wrong(), x)
    assert torch.equal(value, Wrong()(x) + 1)
    assert (grad == 3).all()


def test_a_start_on_the_champion_does_not_stop_the_search_for_its_challenger():
    """There the log epistemic variance is minus infinity."""
    belief = inferred(5, 2)
    search = Search.around(belief, generator(1))
    champion = search.champion(belief)
    score = belief.predictive.against(champion).score(parse("muc").log_score)
    stuck = Search(search.lanes, search.source, champion)
    torch.testing.assert_close(score(stuck.argmax(score)), score(search.argmax(score)), rtol=0, atol=1e-6)


# starting points


def test_the_warm_points_are_the_best_queried_points_and_perturbations_of_them():
    belief = inferred(6, 2, n=20)
    points = belief.data.points
    warm = Search.around(belief, generator(0)).warm
    assert ((warm >= 0) & (warm <= 1)).all()
    best = belief.mean(points).argsort(-1, descending=True)[:, :10]
    for lane, places in enumerate(best):
        queried = points[lane, places]
        assert ((warm[lane][:, None] - queried).abs().amax(-1) == 0).any(0).all()
        others = (warm[lane][:, None] - points[lane]).abs().amax(-1).amin(-1)
        assert (others > 0).sum() >= 10  # perturbations


def test_a_point_that_was_always_the_second_of_a_duel_is_a_warm_point():
    belief = aw.infer(aw.Data.duels([[[0.6], [0.1]]], [0]), aw.kernel("se", 0.3))
    assert {0.6, 0.1} <= set(Search.around(belief, generator(0)).warm[:, 0].tolist())


def test_without_answers_the_warm_point_is_the_centre():
    for lanes in ((), (3,)):
        nothing = aw.Data.binary(torch.zeros(*lanes, 0, 2), torch.zeros(*lanes, 0))
        search = Search.around(aw.infer(nothing, aw.kernel("se")), generator(0))
        assert torch.equal(search.warm, torch.full((*lanes, 1, 2), 0.5, dtype=torch.float64))


def test_each_lane_has_the_warm_points_it_has_alone():
    belief = inferred(3, 2)
    warm = Search.around(belief, [generator(k) for k in range(3)]).warm
    for k in range(3):
        near(warm[k], Search.around(belief.select(k), generator(k)).warm, 1e-12)


@pytest.mark.parametrize("lanes", [(), (4,)])
@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_all_corners_are_listed_in_low_dimension(d, lanes):
    corners = searching(d, lanes).corners()
    assert corners.shape == (*lanes, 2**d, d)
    found = {tuple(corner) for corner in corners.reshape(-1, d).tolist()}
    assert found == set(itertools.product((0.0, 1.0), repeat=d))


@pytest.mark.parametrize("d", [7, 8, 20])
def test_in_high_dimension_there_are_sixty_four_distinct_corners(d):
    corners = searching(d).corners()
    assert corners.shape == (64, d)
    assert ((corners == 0) | (corners == 1)).all()
    assert len(corners.unique(dim=0)) == 64
    assert ((corners.mean(0) - 0.5).abs() < 1e-12).all()


@pytest.mark.parametrize("d", [1, 2, 5])
def test_space_filling_points_are_even_over_the_cube(d):
    points = searching(d, (2,)).space_filling(256)
    assert points.shape == (2, 256, d)
    assert ((points >= 0) & (points <= 1)).all()
    assert torch.equal(points[0], points[1])
    near(points[0].mean(0), f64(0.5), 0.01)
    counts = (points[0] * 16).floor().long()
    for column in counts.unbind(-1):
        assert (column.bincount(minlength=16) == 16).all()
    assert torch.equal(points, searching(d, (2,)).space_filling(256))


# challengers


def exchange_batches(belief: Belief, champion: Tensor, m: int, text: str) -> tuple[Tensor, Tensor]:
    """Batches that the exchange algorithm builds, without the champion, and all candidates with it."""
    search = Search(belief.data.lanes, generator(0), belief.data.points)
    points = torch.cat([champion, challengers._candidates(belief, champion, m, search)], -2)
    chosen, _ = challengers._exchange(Pairs.of(belief, points), belief.data.lanes, m, parse(text).total)
    return challengers._points(points, chosen[..., 1:]), points


def groups_of(points: Tensor, m: int) -> Tensor:
    """The champion with every choice of m - 1 candidates."""
    choice = torch.combinations(torch.arange(len(points)), m - 1, with_replacement=True)
    return torch.cat([torch.zeros(len(choice), 1, dtype=torch.long), choice], -1)


@pytest.mark.parametrize("text", ["muc", "muc_joint"])
@pytest.mark.parametrize("m", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_the_exchange_algorithm_finds_the_best_batch_of_few_candidates(text, m, monkeypatch):
    monkeypatch.setattr(challengers, "_CANDIDATES", 8)
    beliefs, total = inferred(12, 1), parse(text).total
    best = []
    for lane in range(12):
        belief = beliefs.select(lane)
        champion = Search.around(belief, generator(0)).champion(belief)
        extra, points = exchange_batches(belief, champion, m, text)
        assert len(points) == 1 + 8 + 8 + 2  # all candidates, since there are few
        every = total(Pairs.of(belief, points[groups_of(points, m)])).max()
        found = total(Pairs.of(belief, torch.cat([champion.expand(len(extra), 1, 1), extra], -2)))
        assert found.max() <= every + 1e-9
        best.append(bool(found.max() >= every - 1e-9))
    assert sum(best) >= 11


@pytest.mark.parametrize("text", ["muc", "muc_joint"])
def test_no_exchange_of_one_member_improves_the_best_batch(text):
    belief, total, m = inferred(4, 2), parse(text).total, 4
    search = Search.around(belief, generator(0))
    champion = search.champion(belief)
    extra, each = exchange_batches(belief, champion, m, text)
    for lane in range(4):
        alone, points = belief.select(lane), each[lane]
        batches = torch.cat([champion[lane].expand(len(extra), 1, 2), extra[:, lane]], -2)
        values = total(Pairs.of(alone, batches))
        batch = batches[values.argmax()]
        for place in range(1, m):
            other = batch.expand(len(points), -1, -1).clone()
            other[:, place] = points
            assert total(Pairs.of(alone, other)).max() <= values.max() + 1e-9


@pytest.mark.parametrize("text", ["muc", "muc_joint"])
def test_challengers_are_no_worse_than_the_batches_they_start_from(text):
    belief, total, m = inferred(3, 2), parse(text).total, 3
    search = Search.around(belief, generator(0))
    champion = search.champion(belief)

    def value(x: Tensor) -> Tensor:
        return total(Pairs.of(belief, torch.cat([champion.expand(*x.shape[:-2], 1, -1), x], -2)))

    extra, _ = exchange_batches(belief, champion, m, text)
    found = best_challengers(belief, champion, m, search, total)
    assert found.shape == (3, m - 1, 2)
    assert (value(found) >= value(extra).amax(0) - 1e-12).all()
    assert (value(found) > value(extra).amax(0) + 1e-9).any()
    assert (found[..., 0].diff(dim=-1) > -2e-6).all()  # in lexicographic order


@pytest.mark.parametrize("m", [3, 5])
def test_each_member_of_the_best_batch_is_replaced_by_the_best_candidates(m, monkeypatch):
    monkeypatch.setattr(challengers, "_REPLACEMENTS", 4)
    belief, total = inferred(3, 2), parse("muc").total
    search = Search.around(belief, generator(0))
    champion = search.champion(belief)
    points = torch.cat([champion, challengers._candidates(belief, champion, m, search)], -2)
    pairs = Pairs.of(belief, points)
    batches, _ = challengers._exchange(pairs, belief.data.lanes, m, total)
    others = challengers._with_other_members(pairs, batches, total)
    assert others.shape == (4 * (m - 1), 3, m)

    def value(lane: int, members: Tensor) -> Tensor:
        return total(Pairs.of(belief.select(lane), points[lane, members]))

    for lane in range(3):
        values = total(pairs.among(batches[..., None, :]))[:, lane, 0]  # ties differ in rounding
        best = batches[values.argmax(), lane]
        each = others[:, lane].view(4, m - 1, m).movedim(0, 1)
        for member in range(1, m):
            got = each[member - 1]
            kept = [place for place in range(m) if place != member]
            assert (got[:, kept] == best[kept]).all()
            trial = best.expand(points.shape[-2], -1).clone()
            trial[:, member] = torch.arange(points.shape[-2])
            near(value(lane, got).sort().values, value(lane, trial).topk(4).values.sort().values, 1e-12)


def test_batches_of_more_than_nine_are_not_repaired(monkeypatch):
    def refuse(*_: object) -> Tensor:
        raise AssertionError

    monkeypatch.setattr(challengers, "_CANDIDATES", 8)
    monkeypatch.setattr(challengers, "_with_other_members", refuse)
    belief = inferred(2, 1)
    search = Search.around(belief, generator(0))
    best_challengers(belief, search.champion(belief), 10, search, parse("muc").total)


def test_candidates_fill_the_space_and_have_the_worst_opponents_of_the_champion():
    belief = inferred(3, 2)
    search = Search.around(belief, generator(0))
    champion = search.champion(belief)
    got = challengers._candidates(belief, champion, 3, search)
    assert got.shape == (3, 128, 2)
    near(got[0, :32], search.space_filling(256)[0, :32], 0)
    near(got[0, 32:64], search.faces(256)[0, :32], 0)
    every = torch.cat([search.space_filling(256), search.faces(256), search.corners()], -2)
    doubt = belief.predictive.against(champion).score(parse("muc").score)
    rest = torch.cat([every[:, 32:256], every[:, 288:]], 1)
    near(doubt(got[:, 64:]).sort(descending=True).values, doubt(rest).topk(64).values, 1e-12)


def test_a_single_challenger_is_that_of_the_duel():
    belief = inferred(8, 2)
    search = Search.around(belief, generator(0))
    champion, muc = search.champion(belief), parse("muc")
    found = best_challengers(belief, champion, 2, search, muc.total)
    score = belief.predictive.against(champion).score(muc.score)
    assert found.shape == (8, 1, 2)
    torch.testing.assert_close(score(found), score(search.argmax(score)), rtol=0, atol=1e-6)


def test_pairs_among_members_equal_those_of_their_group():
    belief, x = inferred(3, 2), uniform(3, 7, 2)
    members = torch.tensor([[0, 3, 3], [6, 1, 2], [0, 0, 0], [5, 4, 3]]).expand(2, 3, 4, 3)
    got = Pairs.of(belief, x).among(members)
    for s, lane, t in itertools.product(range(2), range(3), range(4)):
        want = Pairs.of(belief.select(lane), x[lane, members[s, lane, t]])
        near(got.var[s, lane, t], want.var, 1e-12)
        near(got.epistemic[s, lane, t], want.epistemic, 1e-12)


def test_pairs_have_the_moments_of_differences():
    belief, x = inferred(3, 2), uniform(5, 3, 4, 2)
    pairs, muc = Pairs.of(belief, x), parse("muc")
    for i, j in itertools.product(range(4), repeat=2):
        mean, var = belief.difference(x[..., i : i + 1, :], x[..., j : j + 1, :])
        near(pairs.var[..., i, j], var[..., 0], 1e-10)
        near(pairs.epistemic[..., i, j], muc.score(mean, var)[..., 0], 1e-10)


def test_champion_and_challenger_share_the_correlations_of_their_candidates(monkeypatch):
    belief, calls = inferred(3, 2), []
    plain = Score.correlation

    def counted(score: Score, x: Tensor, dtype: torch.dtype) -> Tensor:
        calls.append(x)
        return plain(score, x, dtype)

    monkeypatch.setattr(Score, "correlation", counted)
    search = Search.around(belief, generator(0))
    champion = search.champion(belief)
    computed, challenger = len(calls), belief.predictive.against(champion).score(parse("muc").log_score)
    assert computed == 1
    found = search.argmax(challenger)
    assert len(calls) == computed
    monkeypatch.setattr("askwise.search.search._KEPT_ENTRIES", {"cpu": 0})
    alone = Search.around(belief, generator(0))
    near(alone.argmax(challenger), found, 0)
    assert not alone._correlations
