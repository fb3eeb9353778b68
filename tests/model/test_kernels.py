"""Closed forms against GPyTorch, and spectra against their definition."""

import inspect
import math

import pytest
import scipy.integrate
import scipy.stats
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

import askwise as aw
from askwise.model.kernels import Covariance, Stationary, covariance
from askwise.numerics.seeds import generator as seeded
from tensors import assert_same_slopes, f64, uniform

NAMES = ("se", "matern32", "matern52")
each_name = pytest.mark.parametrize("name", NAMES)


@each_name
def test_values_and_gradients_agree_with_gpytorch(name):
    kernel = aw.kernel(name, [0.3, 0.7], 2.0).requires_grad_(True)
    x, y = uniform(5, 2).requires_grad_(), uniform(4, 2, seed=1).requires_grad_()
    inputs = [x, y, *kernel.parameters()]
    ours, theirs = covariance(kernel).cross(x, y), kernel(x, y).to_dense()
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
    assert_same_slopes(ours, theirs, inputs, rtol=1e-9, atol=1e-10)


@each_name
def test_gradients_are_zero_where_points_coincide(name):
    prior, x = covariance(aw.kernel(name, 0.3)), uniform(3, 2).requires_grad_()
    (grad,) = torch.autograd.grad(prior.paired(x, x.detach()).sum(), x)
    assert (grad == 0).all()
    assert torch.autograd.gradcheck(lambda x: prior.cross(x, uniform(3, 2)), (x,))


def composites():
    lanes = {"batch_shape": torch.Size([3])}
    laned = ScaleKernel(RBFKernel(**lanes), **lanes) + ScaleKernel(MaternKernel(nu=1.5, **lanes), **lanes)
    return {
        "named": aw.kernel("matern32", [0.3, 0.7], 2.0),
        "named lanes": aw.kernel("se", f64([[0.3, 0.7], [0.1, 0.2], [1.0, 2.0]]), f64([1.0, 2.0, 3.0])),
        "sum": (ScaleKernel(RBFKernel(ard_num_dims=2)) + ScaleKernel(MaternKernel(nu=2.5))).double(),
        "sum lanes": laned.double(),
        "active dims": ScaleKernel(RBFKernel(active_dims=[1])).double(),
        "matern 1/2": ScaleKernel(MaternKernel(nu=0.5)).double(),
    }


@pytest.mark.parametrize("which", composites())
def test_cross_diagonal_and_paired_agree(which):
    prior, x, y = covariance(composites()[which]), uniform(3, 4, 2), uniform(3, 4, 2, seed=1)
    torch.testing.assert_close(prior.paired(x, y), prior.cross(x, y).diagonal(dim1=-2, dim2=-1))
    torch.testing.assert_close(prior.diagonal(x), prior.cross(x, x).diagonal(dim1=-2, dim2=-1))
    torch.testing.assert_close(prior.cross(x, y), prior.cross(y, x).mT)
    assert isinstance(prior, Covariance)


def test_other_kernels_go_through_gpytorch():
    kernels = composites()
    for which in ("sum", "sum lanes", "active dims", "matern 1/2"):
        assert not isinstance(covariance(kernels[which]), Stationary)
    x, y = uniform(5, 2), uniform(4, 2, seed=1)
    for kernel in (kernels["active dims"], RBFKernel(active_dims=[1]).double()):
        torch.testing.assert_close(covariance(kernel).cross(x, y), kernel(x, y).to_dense())


@pytest.mark.parametrize(
    "base", [RBFKernel(), RBFKernel(ard_num_dims=2), MaternKernel(nu=1.5), MaternKernel(nu=2.5)]
)
def test_a_bare_kernel_has_variance_one(base):
    base, x, y = base.double(), uniform(5, 2), uniform(4, 2, seed=1)
    prior = covariance(base)
    assert isinstance(prior, Stationary)
    torch.testing.assert_close(prior.cross(x, y), base(x, y).to_dense(), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(prior.diagonal(x), torch.ones(5, dtype=torch.float64))


@each_name
def test_a_lane_has_its_own_parameters(name):
    length, scale = f64([[0.3, 0.7], [0.1, 0.2]]), f64([1.0, 5.0])
    prior, x, y = covariance(aw.kernel(name, length, scale)), uniform(2, 5, 2), uniform(2, 4, 2, seed=1)
    assert prior.lanes == (2,)
    for lane in range(2):
        alone = covariance(aw.kernel(name, length[lane], float(scale[lane])))
        torch.testing.assert_close(prior.cross(x, y)[lane], alone.cross(x[lane], y[lane]))
        torch.testing.assert_close(prior.cross(x[0], y[0])[lane], alone.cross(x[0], y[0]))
        torch.testing.assert_close(prior.diagonal(x[0])[lane], alone.diagonal(x[0]))


@each_name
def test_close_points_keep_their_digits(name):
    """All kernels fall off as r^2; differences keep the digits of r, an expanded square does not."""
    prior = covariance(aw.kernel(name, 1e-6))
    curvature = {"se": 1 / 2, "matern32": 3 / 2, "matern52": 5 / 6}[name]
    gap = float(f64(0.5 + 1e-9) - f64(0.5)) / 1e-6
    decrease = 1 - float(prior.cross(f64([[0.5]]), f64([[0.5 + 1e-9]])))
    assert decrease == pytest.approx(curvature * gap**2, rel=5e-3)


def test_a_detached_covariance_does_not_follow_its_kernel():
    x = uniform(3, 2)
    for kernel in (aw.kernel("se", 0.3), composites()["sum"]):
        kernel.requires_grad_(True)
        kept = covariance(kernel).detached()
        before = kept.cross(x, x)
        with torch.no_grad():
            for parameter in kernel.parameters():
                parameter.add_(1.0)
        assert not before.requires_grad
        torch.testing.assert_close(kept.cross(x, x), before, rtol=0, atol=0)


@each_name
def test_the_spectral_density_transforms_back_to_the_kernel_in_one_dimension(name):
    prior = covariance(aw.kernel(name, 0.4, 2.0))

    def density(omega):
        return float(prior.spectral_density(f64([[omega]])))

    for r in (0.0, 0.3, 1.0):
        half, _ = scipy.integrate.quad(lambda w, r=r: density(w) * math.cos(w * r), 0, 400, limit=400)
        assert half / math.pi == pytest.approx(
            float(prior.cross(f64([[0.0]]), f64([[r]]))), rel=1e-5, abs=1e-5
        )


@each_name
def test_the_spectral_density_transforms_back_to_the_kernel_in_two_dimensions(name):
    """With one lengthscale per dimension; omega = tan(t) maps the plane to a square."""
    length = f64([0.5, 1.5])
    prior = covariance(aw.kernel(name, length, 2.0))
    t = (torch.arange(1200, dtype=torch.float64) + 0.5) / 1200 * math.pi - math.pi / 2
    scaled, weight = t.tan(), math.pi / 1200 / t.cos().square()
    omega = torch.cartesian_prod(scaled / length[0], scaled / length[1])
    area = torch.outer(weight, weight).reshape(-1) / length.prod()
    values = prior.spectral_density(omega) * area / (2 * math.pi) ** 2
    for gap in ([0.0, 0.0], [0.2, 0.3], [0.5, 0.0]):
        back = (values * (omega @ f64(gap)).cos()).sum()
        want = prior.cross(f64([[0.0, 0.0]]), f64([gap]))[0, 0]
        torch.testing.assert_close(back, want, rtol=2e-3, atol=2e-3)


@each_name
def test_spectral_draws_have_the_kernel_as_characteristic_function(name):
    prior, gaps = covariance(aw.kernel(name, [0.3, 0.9])), f64([[0.0, 0.0], [0.2, 0.1], [0.1, 0.8]])
    omega = prior.spectral_draws(200_000, 2, seeded("draws", name))
    want = prior.cross(torch.zeros(1, 2, dtype=torch.float64), gaps)[0]
    torch.testing.assert_close((omega @ gaps.mT).cos().mean(0), want, rtol=0, atol=6e-3)


def test_spectral_draws_have_lanes():
    prior = covariance(aw.kernel("matern32", f64([[0.3, 0.9], [3.0, 9.0]])))
    draws = prior.spectral_draws(20_000, 2, seeded("lanes"))
    assert draws.shape == (2, 20_000, 2)
    ratio = draws[0].abs().median(0).values / draws[1].abs().median(0).values
    torch.testing.assert_close(ratio, f64([10.0, 10.0]), rtol=0.1, atol=0)


@each_name
def test_the_bandwidth_leaves_that_fraction_of_the_spectrum_beyond(name):
    prior = covariance(aw.kernel(name, 0.2))
    beyond = prior.bandwidth(0.05) / 0.2

    def density(omega):
        return float(prior.spectral_density(f64([[omega]]))) / math.pi

    within, _ = scipy.integrate.quad(density, 0, beyond)
    assert within == pytest.approx(0.95, rel=1e-6)


@each_name
def test_the_reach_is_where_the_correlation_has_that_value(name):
    prior = covariance(aw.kernel(name, 1.0))
    for value in (0.9, 0.1, 1e-6):
        assert float(prior.cross(f64([[0.0]]), f64([[prior.reach(value)]]))) == pytest.approx(value, rel=1e-6)


def test_an_unknown_name_is_refused():
    unchecked = inspect.unwrap(aw.kernel)  # past the type checks of the tests
    with pytest.raises(ValueError, match=r"kernel must be one of 'se', .*; got 'rbf'"):
        unchecked("rbf")


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_scales_must_be_positive_and_finite(bad):
    with pytest.raises(ValueError, match="lengthscale must be positive and finite; got"):
        aw.kernel("se", [0.3, bad])
    with pytest.raises(ValueError, match="outputscale must be positive and finite; got"):
        aw.kernel("se", 0.3, bad)


def test_scales_with_too_many_dimensions_are_refused():
    with pytest.raises(ValueError, match=r"lengthscale must be a number, \[d\] or \[lane, d\]"):
        aw.kernel("se", torch.ones(2, 3, 4))


def test_scales_with_different_lanes_are_refused():
    with pytest.raises(ValueError, match="lengthscale"):
        aw.kernel("se", torch.ones(3, 2), torch.ones(2))


@pytest.mark.parametrize("value", [0.0, 1.5])
def test_a_correlation_that_is_never_reached_is_refused(value):
    with pytest.raises(ValueError, match="correlation must"):
        covariance(aw.kernel("se")).reach(value)


def test_named_kernels_do_not_require_gradients():
    kernel = aw.kernel("matern52", [0.2, 0.5], 2.0)
    assert not any(parameter.requires_grad for parameter in kernel.parameters())
    torch.testing.assert_close(kernel.base_kernel.lengthscale, f64([[0.2, 0.5]]))
    torch.testing.assert_close(kernel.outputscale, f64(2.0))
