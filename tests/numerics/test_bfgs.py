"""Batched BFGS against known minima and scipy."""

import math
from collections.abc import Callable

import pytest
import scipy.optimize
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from askwise.numerics.bfgs import Objective, Pruning, minimize
from tensors import uniform


def f64(*values) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def with_gradient(f: Callable[[Tensor], Tensor]) -> Objective:
    """The function [lane, k] -> [lane] and its gradient."""

    def objective(x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_()
        value = f(x)
        return value.detach(), torch.autograd.grad(value.sum(), x)[0]

    return objective


def minimized(f: Callable[[Tensor], Tensor], start: Tensor, low=-math.inf, high=math.inf, **options):
    bounds = (torch.full_like(start, low), torch.full_like(start, high))
    return minimize(with_gradient(f), start, *bounds, **options)


def by_scipy(f: Callable[[Tensor], Tensor], start: Tensor, low=-math.inf, high=math.inf):
    """Minimiser [k] and value of one lane by L-BFGS-B."""

    def one(x):
        value, grad = with_gradient(f)(torch.as_tensor(x)[None])
        return value.item(), grad[0].numpy()

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000}
    bounds = [(low, high)] * len(start)
    found = scipy.optimize.minimize(
        one, start.numpy(), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return torch.as_tensor(found.x), found.fun


def rosenbrock(x: Tensor) -> Tensor:
    return (100 * (x[:, 1:] - x[:, :-1].square()).square() + (1 - x[:, :-1]).square()).sum(-1)


def random_quadratics(lanes: int, k: int, condition: float, generator: torch.Generator):
    """Matrices [lane, k, k] of this condition number in random coordinates, and minimisers [lane, k]."""
    basis, _ = torch.linalg.qr(torch.randn(lanes, k, k, generator=generator, dtype=torch.float64))
    eigenvalues = torch.logspace(0, math.log10(condition), k, dtype=torch.float64)
    centre = torch.randn(lanes, k, generator=generator, dtype=torch.float64)
    return (basis * eigenvalues) @ basis.mT, centre


def quadratic(matrix: Tensor, centre: Tensor) -> Callable[[Tensor], Tensor]:
    def f(x: Tensor) -> Tensor:
        gap = x - centre
        return (gap * (matrix @ gap[..., None])[..., 0]).sum(-1) / 2

    return f


@pytest.mark.parametrize("k", [1, 2, 6, 20])
@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
def test_the_minimum_of_a_quadratic_is_found(k, condition, generator):
    matrix, centre = random_quadratics(8, k, condition, generator)
    x, value = minimized(quadratic(matrix, centre), torch.zeros_like(centre))
    torch.testing.assert_close(x, centre, rtol=0, atol=2e-5)  # the smallest curvature is 1
    torch.testing.assert_close(value, torch.zeros(8).double(), rtol=0, atol=1e-9)


# in 5-D other starts lead elsewhere
STARTS = [[-1.2, 1.0], [3.0, -3.0]], [[0.0] * 5, [1.3, 0.7, 0.8, 1.9, 1.2]]


@pytest.mark.parametrize("starts", STARTS, ids=["2-D", "5-D"])
def test_the_valley_of_rosenbrock_is_followed_to_its_end(starts):
    x, value = minimized(rosenbrock, f64(*starts), max_steps=300)
    assert (value < 1e-8).all()
    torch.testing.assert_close(x, torch.ones_like(x), rtol=0, atol=1e-3)


@pytest.mark.parametrize("scales", [(1e-3, 1.0, 1e3), (1e6, 1e4, 1.0), (1e-4, 1e4)])
def test_variables_of_very_different_scale_are_all_found(scales):
    curvature, centre = f64(*scales), torch.linspace(-1, 1, len(scales), dtype=torch.float64)

    def f(x: Tensor) -> Tensor:
        return (curvature * (x - centre).square()).sum(-1) / 2

    x, value = minimized(f, f64([0.3] * len(scales), [-4.0] * len(scales)), gradient_tolerance=1e-8)
    assert (value < 1e-10).all()
    torch.testing.assert_close((x - centre).abs() * curvature.sqrt(), torch.zeros_like(x), rtol=0, atol=1e-4)


@pytest.mark.parametrize("factor", [1e-4, 1e4, 1e8])
def test_the_scale_of_the_value_matters_only_for_the_tolerance(factor):
    start = f64([-1.2, 1.0])
    x, _ = minimized(lambda x: factor * rosenbrock(x), start, max_steps=300, gradient_tolerance=1e-5 * factor)
    torch.testing.assert_close(x, torch.ones_like(x), rtol=0, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("condition", [3.0, 300.0])
def test_minima_on_bounds_agree_with_scipy(seed, condition):
    matrix, centre = random_quadratics(4, 5, condition, torch.Generator().manual_seed(seed))
    x, value = minimized(quadratic(matrix, centre), torch.zeros_like(centre), -0.4, 0.4)
    assert (x.abs() == 0.4).any()
    for lane in range(4):
        there, best = by_scipy(quadratic(matrix[lane], centre[lane]), torch.zeros(5).double(), -0.4, 0.4)
        assert value[lane].item() == pytest.approx(best, abs=1e-8, rel=1e-8)
        torch.testing.assert_close(x[lane], there, rtol=0, atol=1e-4)


@pytest.mark.parametrize("high", [0.2, 0.7])
def test_a_curved_valley_is_followed_along_a_bound(high):
    start = f64([-1.2, -0.5, 0.1])
    x, value = minimized(rosenbrock, start, -2.0, high, max_steps=300)
    there, best = by_scipy(rosenbrock, start[0], -2.0, high)
    assert value.item() == pytest.approx(best, abs=1e-8)
    torch.testing.assert_close(x[0], there, rtol=0, atol=1e-4)


def test_a_minimum_in_a_corner_is_reached_exactly():
    x, _ = minimized(lambda x: (x + x.square() / 9).sum(-1), f64([0.5, 0.9, 0.1], [1.0, 1.0, 0.0]), 0.0, 1.0)
    assert torch.equal(x, torch.zeros_like(x))


def test_a_start_on_the_wrong_bound_leaves_it():
    x, _ = minimized(lambda x: (x - 0.5).square().sum(-1), f64([0.0, 1.0]), 0.0, 1.0)
    torch.testing.assert_close(x, torch.full_like(x, 0.5))


def test_a_start_outside_the_bounds_is_clamped_before_any_evaluation():
    seen = []

    def f(x: Tensor) -> Tensor:
        seen.append(x.detach().clone())
        return (x - 0.3).square().sum(-1)

    minimized(f, f64([-5.0, 7.0]), 0.0, 1.0)
    assert torch.equal(seen[0], f64([0.0, 1.0]))
    assert all(((x >= 0) & (x <= 1)).all() for x in seen)


def test_each_variable_of_each_lane_has_its_own_bounds():
    lower, upper = f64([0.0, -1.0], [0.5, -9.0]), f64([2.0, 3.0], [0.5, -8.0])
    x, _ = minimize(
        with_gradient(lambda x: (x - 1).square().sum(-1)), torch.zeros(2, 2).double(), lower, upper
    )
    torch.testing.assert_close(x, f64([1.0, 1.0], [0.5, -8.0]), rtol=0, atol=1e-5)


def wavy(frequency: Tensor, slope: Tensor) -> Callable[[Tensor], Tensor]:
    """A bowl with many local minima, different in each lane."""
    return lambda x: ((frequency * x).sin() + slope * x + x.square() / 10).sum(-1)


def test_lanes_together_equal_lanes_alone(generator):
    frequency, slope, start = 3 * torch.randn(3, 20, 4, generator=generator, dtype=torch.float64)
    together = minimized(wavy(frequency, slope), start, -2.5, 2.5)
    alone = [minimized(wavy(frequency[i], slope[i]), start[i : i + 1], -2.5, 2.5) for i in range(len(start))]
    for part, parts in zip(together, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(part, torch.cat(parts), rtol=1e-9, atol=1e-9)


def test_skipping_converged_lanes_does_not_change_a_pruned_search(generator, monkeypatch):
    frequency, slope = (torch.rand(12, 1, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    start = torch.rand(12 * 30, 3, generator=generator, dtype=torch.float64)
    evaluated: list[int] = []

    def objective(flat: Tensor) -> tuple[Tensor, Tensor]:
        evaluated.append(len(flat))
        value, grad = with_gradient(wavy(20 * frequency, slope))(flat.view(12, -1, 3))
        return value.view(-1), grad.view(-1, 3)

    def found() -> tuple[Tensor, Tensor]:
        evaluated.clear()
        bounds = torch.zeros_like(start), torch.ones_like(start)
        return minimize(objective, start, *bounds, pruning=Pruning(30, keep=4, after=5), value_tolerance=1e-9)

    some, total = found(), sum(evaluated)
    monkeypatch.setattr("askwise.numerics.bfgs._COMPACT_FROM", math.inf)
    every = found()
    assert total < sum(evaluated)
    torch.testing.assert_close(some, every, rtol=0, atol=1e-9)


def test_leaving_out_converged_groups_does_not_change_a_pruned_search(generator):
    frequency, slope = (torch.rand(40, 1, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    start = torch.rand(40 * 6, 3, generator=generator, dtype=torch.float64)
    evaluated: list[int] = []

    class Waves:
        def __init__(self, groups: Tensor, divisible: bool) -> None:
            self.groups, self.divisible = groups, divisible

        def __call__(self, flat: Tensor) -> tuple[Tensor, Tensor]:
            evaluated.append(len(flat))
            each = wavy(20 * frequency[self.groups], slope[self.groups])
            value, grad = with_gradient(each)(flat.view(len(self.groups), -1, 3))
            return value.view(-1), grad.view(-1, 3)

        def among(self, groups: Tensor) -> "Waves":
            return Waves(self.groups[groups], self.divisible)

    def found(divisible: bool) -> tuple[Tensor, Tensor]:
        evaluated.clear()
        objective, pruning = Waves(torch.arange(40), divisible), Pruning(6, keep=2, after=5)
        bounds = torch.zeros_like(start), torch.ones_like(start)
        return minimize(objective, start, *bounds, pruning=pruning, value_tolerance=1e-9)

    every, total = found(divisible=False), sum(evaluated)
    some = found(divisible=True)
    assert sum(evaluated) < 0.8 * total
    torch.testing.assert_close(some, every, rtol=0, atol=1e-9)


def test_a_converged_lane_stays_where_it_is():
    seen = []

    def f(x: Tensor) -> Tensor:
        seen.append(x.detach().clone())
        bowl = x.square() @ f64(0.5, 1.5)
        return torch.cat([bowl[:2], rosenbrock(x[2:])])

    x, _ = minimized(f, f64([0.0, 0.0], [0.7, -0.3], [-1.2, 1.0]), gradient_tolerance=1e-2)
    path = torch.stack(seen)
    assert len(path) > 20
    assert torch.equal(x[0], f64(0.0, 0.0))
    assert (path[:, 0] == 0).all()
    assert (x[1] != 0).any()  # converged, but would still move if it were allowed to
    settled = int((path[:, 1] == x[1]).all(-1).long().argmax())
    assert settled < len(path) / 2
    assert (path[settled:, 1] == x[1]).all()


def projected_gradient(f: Callable[[Tensor], Tensor], x: Tensor, low: float, high: float) -> Tensor:
    _, grad = with_gradient(f)(x)
    active = ((x == low) & (grad > 0)) | ((x == high) & (grad < 0))
    assert active.any()
    return grad * ~active


def test_a_lane_converges_only_where_its_projected_gradient_is_small(generator):
    f = quadratic(*random_quadratics(30, 4, 50.0, generator))
    x, _ = minimized(f, torch.zeros(30, 4).double(), -0.5, 0.5, gradient_tolerance=1e-6)
    assert projected_gradient(f, x, -0.5, 0.5).abs().max() <= 1e-6


@pytest.mark.parametrize("seed", [1, 3])
def test_every_lane_of_a_rough_function_ends_at_a_stationary_point(seed):
    """In one of these the quasi-Newton direction fails and the gradient takes over."""
    generator = torch.Generator().manual_seed(seed)
    frequency, slope, start = torch.randn(3, 300, 3, generator=generator, dtype=torch.float64)
    f = wavy(20 * frequency, slope)
    x, _ = minimized(f, start, -1.0, 1.0)
    assert projected_gradient(f, x, -1.0, 1.0).abs().max() <= 1e-5


def test_without_steps_the_result_is_the_start_and_its_value():
    start = f64([0.4, 0.2])
    x, value = minimized(rosenbrock, start, max_steps=0)
    assert torch.equal(x, start)
    assert torch.equal(value, rosenbrock(start))


def test_no_variable_moves_further_than_the_longest_step():
    seen = []

    def f(x: Tensor) -> Tensor:
        seen.append(x.detach().clone())
        return (1e6 * x).sum(-1)

    minimized(f, f64([0.0, 0.0]), max_steps=3, longest_step=0.5)
    assert (torch.stack(seen).diff(dim=0).abs() <= 0.5).all()
    assert torch.equal(seen[-1], f64([-1.5, -1.5]))


@pytest.mark.parametrize("beyond", [math.inf, math.nan, -math.inf])
def test_a_non_finite_value_counts_as_too_high(beyond):
    def f(x: Tensor) -> Tensor:
        inside = 10 * x.clamp_min(1e-3) - x.clamp_min(1e-3).log()
        return torch.where(x > 1e-2, inside, beyond + 0 * x).sum(-1)

    x, value = minimized(f, f64([2.0, 2.0], [0.011, 3.0]))
    torch.testing.assert_close(x, torch.full_like(x, 0.1), rtol=0, atol=1e-5)
    assert value.isfinite().all()


def test_a_step_to_a_non_finite_gradient_is_rejected():
    def objective(x: Tensor) -> tuple[Tensor, Tensor]:
        gap = x - 0.1
        return gap.square().sum(-1), torch.where(x < 0, math.nan, 2 * gap)

    x, _ = minimize(objective, f64([1.5]), f64([-math.inf]), f64([math.inf]))
    torch.testing.assert_close(x, f64([0.1]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_a_lane_without_a_finite_value_does_not_disturb_the_others(bad):
    def f(x: Tensor) -> Tensor:
        return torch.cat([bad * x[:1].square().sum(-1), rosenbrock(x[1:])])

    start = f64([0.3, 0.4], [-1.2, 1.0])
    x, value = minimized(f, start)
    assert torch.equal(x[0], start[0])
    alone, best = minimized(rosenbrock, start[1:])
    torch.testing.assert_close(x[1:], alone)
    torch.testing.assert_close(value[1:], best)


@settings(max_examples=30)
@given(
    st.integers(0, 2**32),
    st.integers(1, 5),
    st.floats(-3, 3),
    st.sampled_from([(-math.inf, math.inf), (-1.0, 1.0), (0.0, 0.0)]),
    st.integers(0, 25),
)
def test_the_result_is_inside_and_never_worse_than_the_start(seed, k, height, bounds, max_steps):
    """Rough functions with infinite walls, from arbitrary starts."""
    generator = torch.Generator().manual_seed(seed)
    frequency, slope, start = 10**height * torch.randn(3, 6, k, generator=generator, dtype=torch.float64)

    def f(x: Tensor) -> Tensor:
        rough = wavy(frequency, slope)(x)
        return torch.where(x[:, 0] > start[:, 0] + 1, math.inf, rough)

    start = start.clamp(*bounds)
    x, value = minimized(f, start, *bounds, max_steps=max_steps)
    assert ((x >= bounds[0]) & (x <= bounds[1])).all()
    assert (value <= f(start)).all()
    assert torch.equal(value, f(x))


@pytest.mark.parametrize("high", [math.inf, 0.7, 0.2])
def test_evaluations_are_at_most_four_times_those_of_scipy(high):
    start = f64([-1.2, -0.5, 0.1])
    ours, theirs = [], []

    def counted(calls: list[int]) -> Callable[[Tensor], Tensor]:
        def f(x: Tensor) -> Tensor:
            calls.append(1)
            return rosenbrock(x)

        return f

    _, value = minimized(counted(ours), start, -2.0, high, max_steps=1000)
    _, best = by_scipy(counted(theirs), start[0], -2.0, high)
    assert value.item() == pytest.approx(best, abs=1e-8)
    assert len(ours) <= 4 * len(theirs)


# pruning and a given inverse Hessian


def valleys(x: Tensor) -> tuple[Tensor, Tensor]:
    """A curved bowl with ripples, and its gradient."""
    value = ((12 * x).cos() + 8 * (x - 0.3).square()).sum(-1)
    return value, -12 * (12 * x).sin() + 16 * (x - 0.3)


def pruned(start: Tensor, pruning: Pruning | None, **options: object) -> tuple[Tensor, Tensor]:
    bounds = torch.zeros_like(start), torch.ones_like(start)
    return minimize(valleys, start, *bounds, pruning=pruning, **options)


@pytest.mark.parametrize(
    ("group", "keep", "after"), [(8, 1, 3), (8, 4, 0), (8, 8, 2), (2, 1, 100), (1, 1, 1)]
)
@pytest.mark.parametrize("max_steps", [0, 1, 30])
def test_the_kept_lanes_of_each_group_are_returned_and_the_best_start_is_never_lost(
    group, keep, after, max_steps
):
    start = uniform(6 * group, 3)
    x, value = pruned(start, Pruning(group, keep, after), max_steps=max_steps)
    assert x.shape == (6 * keep, 3)
    assert torch.equal(value, valleys(x)[0])
    first = valleys(start)[0].view(6, group).amin(-1)
    assert (value.view(6, keep).amin(-1) <= first).all()


def test_pruned_groups_end_where_their_best_lane_would_have_ended_alone():
    start = uniform(10 * 30, 2)
    _, value = pruned(start, Pruning(10, 3, 4), gradient_tolerance=1e-8)
    _, alone = pruned(start, None, gradient_tolerance=1e-8)
    short = value.view(30, 3).amin(-1) - alone.view(30, 10).amin(-1)
    assert (short < 1e-9).sum() >= 27


def test_groups_are_pruned_at_the_end_if_the_search_stops_before():
    start = uniform(4 * 5, 2)
    x, _ = pruned(start, Pruning(4, 2, 9), max_steps=0)
    order = valleys(start)[0].view(5, 4).topk(2, -1, largest=False).indices
    want = start.view(5, 4, 2).gather(1, order[..., None].expand(5, 2, 2))
    assert torch.equal(x.view(5, 2, 2), want)


def test_pruned_groups_do_not_disturb_each_other():
    start = uniform(4 * 5, 2)
    together, _ = pruned(start, Pruning(4, 2, 3))
    for k in range(5):
        alone, _ = pruned(start[4 * k : 4 * k + 4], Pruning(4, 2, 3))
        torch.testing.assert_close(together[2 * k : 2 * k + 2], alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_a_lane_without_a_finite_value_does_not_stop_the_others_of_its_group(bad):
    def objective(x: Tensor) -> tuple[Tensor, Tensor]:
        value, grad = valleys(x)
        return torch.where(x[:, 0] > 0.9, bad, value), grad

    start = torch.cat([uniform(3, 2) * 0.8, f64([0.95, 0.5])])
    bounds = torch.zeros_like(start), torch.ones_like(start)
    _, value = minimize(objective, start, *bounds, pruning=Pruning(4, 2, 3))
    _, alone = minimize(objective, start[:3], *(b[:3] for b in bounds))
    assert value.nan_to_num(math.inf).min() <= alone.min() + 1e-9


def test_with_its_inverse_hessian_a_quadratic_takes_one_step():
    steep, centre, calls = f64(1.0, 40.0, 900.0), f64(0.5, 0.4, 0.6), []

    def objective(x: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(1)
        return (steep * (x - centre).square()).sum(-1) / 2, steep * (x - centre)

    start = uniform(4, 3)
    bounds = torch.zeros_like(start), torch.ones_like(start)
    x, _ = minimize(objective, start, *bounds, inverse=torch.diag(1 / steep).expand(4, 3, 3))
    torch.testing.assert_close(x, centre.expand_as(x), rtol=0, atol=1e-12)
    assert len(calls) <= 2


def test_known_values_and_gradients_save_the_first_evaluation(generator):
    calls = []

    def objective(x: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(x)
        return (x - 0.3).pow(4).sum(-1), 4 * (x - 0.3).pow(3)

    start = torch.rand(4, 2, generator=generator, dtype=torch.float64)
    bounds = torch.zeros_like(start), torch.ones_like(start)
    want, count = minimize(objective, start, *bounds), len(calls)
    calls.clear()
    got = minimize(objective, start, *bounds, known=((start - 0.3).pow(4).sum(-1), 4 * (start - 0.3).pow(3)))
    torch.testing.assert_close(got, want, rtol=0, atol=0)
    assert len(calls) == count - 1
