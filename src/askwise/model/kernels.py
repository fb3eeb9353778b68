"""Prior covariances: GPyTorch kernels by name or as objects, and the spectra that features need.

The three named kernels are evaluated here in closed form with the parameters of the GPyTorch object: 80 x
80 points take 26 us instead of 203 us, and distances are norms of differences, because expanding the
square loses digits between close points.  Any other GPyTorch kernel is evaluated by calling it.
"""

import copy
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from jaxtyping import Float
from torch import Tensor

from askwise import plugins
from askwise.errors import NotFound, Refused
from askwise.model.data import Lanes
from askwise.numerics import Generators, last, randn

SMOOTHNESS: dict[str, float] = {"se": math.inf, "matern32": 1.5, "matern52": 2.5}
"""The built-in families: the squared exponential and two Matern kernels, by their parameter nu."""
_NAME = {nu: name for name, nu in SMOOTHNESS.items()}
_AVERAGED = "averaged"  # in studies, many kernels instead of one
_BLOCK_ENTRIES = {"cpu": 2**17, "cuda": 2**28}  # covariances that fit a cache: 4 million take 35 ms, not 90
_REGISTERED: dict[str, Callable[..., Kernel]] = {}


def register_kernel(name: str) -> Callable[[Callable[..., Kernel]], Callable[..., Kernel]]:
    """Decorator that registers a function building another kernel family under a name for :func:`kernel`.

    It takes GPyTorch's ``ard_num_dims``, ``batch_shape`` and ``lengthscale_constraint``, and returns a kernel
    with a lengthscale.  Rules that draw f at random need one of the built-in families.
    """

    def register(build: Callable[..., Kernel]) -> Callable[..., Kernel]:
        if name in SMOOTHNESS or name in _REGISTERED or name == _AVERAGED:
            raise Refused("kernel", "have a name of its own", f"{name!r} twice", "Rename one.")
        _REGISTERED[name] = build
        return build

    return register


def kernel_home(name: str) -> list[str]:
    """The module that registered this family; empty if it is built in."""
    return [] if name in SMOOTHNESS else plugins.home_of(_REGISTERED[name])


def _family(name: str, **options: Any) -> Kernel:
    if name in SMOOTHNESS:
        return RBFKernel(**options) if name == "se" else MaternKernel(nu=SMOOTHNESS[name], **options)
    plugins.load("kernels")
    if name not in _REGISTERED:
        known = ", ".join(repr(known) for known in (*SMOOTHNESS, *_REGISTERED))
        raise NotFound("kernel", f"be one of {known}", repr(name), "Choose one of them.")
    return _REGISTERED[name](**options)


class Scaled(ScaleKernel):  # type: ignore[misc]
    """GPyTorch's, but that it asks torch for no common shape, which imports sympy: a quarter of a second."""

    @property
    def batch_shape(self) -> torch.Size:
        """The lanes of its parameters and those of the kernel that it scales."""
        return (
            _broadcast(self._batch_shape, self.base_kernel.batch_shape)
            if self._modules
            else self._batch_shape
        )

    @batch_shape.setter
    def batch_shape(self, lanes: torch.Size) -> None:
        self._batch_shape = lanes


def _broadcast(one: torch.Size, other: torch.Size) -> torch.Size:
    """The common shape."""
    return torch.Size(np.broadcast_shapes(one, other))


def kernel(
    name: str, lengthscale: float | Sequence[float] | Tensor = 0.3, outputscale: float | Tensor = 1.0
) -> ScaleKernel:
    """A GPyTorch kernel with these parameters, in float64, for points in the unit cube.

    ``lengthscale``: a number, one per dimension, or a tensor [lane, d]; ``outputscale``: the prior variance,
    a number or a tensor [lane].

    >>> kernel("matern52", lengthscale=[0.2, 0.5], outputscale=2.0).base_kernel.nu
    2.5
    """
    length = torch.atleast_1d(torch.as_tensor(lengthscale, dtype=torch.float64)).detach()
    scale = torch.as_tensor(outputscale, dtype=torch.float64).detach()
    for what, value in (("lengthscale", length), ("outputscale", scale)):
        if not (torch.isfinite(value) & (value > 0)).all():
            raise Refused(what, "be positive and finite", value.tolist(), "Give a positive number.")
    try:
        lanes = _broadcast(length.shape[:-1], scale.shape)
    except ValueError:
        lanes = None
    if lanes is None or len(lanes) > 1:
        expected = "be a number, [d] or [lane, d], and outputscale a number or [lane]"
        got = f"shapes {tuple(length.shape)} and {tuple(scale.shape)}"
        raise Refused("lengthscale", expected, got, "Give both the same lanes.")
    # on a log scale steps are relative, so that 1e-3 and 1e3 are as easy to reach as 1
    positive = gpytorch.constraints.Positive(transform=torch.exp, inv_transform=torch.log)
    options = {"ard_num_dims": length.shape[-1], "batch_shape": lanes, "lengthscale_constraint": positive}
    base = _family(name, **options)
    built = Scaled(base, batch_shape=lanes, outputscale_constraint=positive).double()
    base.lengthscale = length.expand(*lanes, -1)[..., None, :]
    built.outputscale = scale.expand(lanes)
    return built.requires_grad_(False)


@dataclass(frozen=True)
class _GPyTorchCovariance:
    """Any GPyTorch kernel, evaluated by calling it."""

    kernel: Kernel

    @property
    def lanes(self) -> torch.Size:
        return self.kernel.batch_shape

    def cross(self, x: Tensor, y: Tensor) -> Tensor:
        # GPyTorch adds jitter to the covariance of points with themselves where a sum has a low-rank part;
        # with one extra point the two sets differ
        more = torch.cat([y, y.new_zeros(*y.shape[:-2], 1, y.shape[-1])], -2)
        with gpytorch.settings.lazily_evaluate_kernels(False):
            return self.kernel(x, more).to_dense()[..., :-1]

    def diagonal(self, x: Tensor) -> Tensor:
        return self.kernel(x, diag=True)

    def paired(self, x: Tensor, y: Tensor) -> Tensor:
        return self.kernel(x, y, diag=True)

    def detached(self) -> "_GPyTorchCovariance":
        return _GPyTorchCovariance(copy.deepcopy(self.kernel).requires_grad_(False))

    def scaled(self, factor: Tensor) -> "_GPyTorchCovariance":
        scaled = ScaleKernel(self.kernel, batch_shape=factor.shape).to(factor)
        scaled.outputscale = factor
        return _GPyTorchCovariance(scaled.requires_grad_(False))

    def select(self, lanes: Lanes) -> "_GPyTorchCovariance":
        return _GPyTorchCovariance(self.kernel[lanes]) if self.kernel.batch_shape else self


@dataclass(frozen=True)
class Stationary:
    r"""The squared exponential or a Matern kernel, with one lengthscale per dimension.

    With :math:`r^2 = \sum_k ((x_k - y_k) / \ell_k)^2`:

    .. math:: s^2 e^{-r^2/2}, \qquad s^2 (1 + \sqrt3 r) e^{-\sqrt3 r}, \qquad
        s^2 (1 + \sqrt5 r + \tfrac53 r^2) e^{-\sqrt5 r}
    """

    name: str
    lengthscale: Float[Tensor, "*lane d"]
    outputscale: Float[Tensor, "*lane"]

    @property
    def lanes(self) -> torch.Size:
        """Shape of the lanes of the parameters: empty if all lanes share them."""
        return self.outputscale.shape

    def select(self, lanes: Lanes) -> "Stationary":
        """The covariance of some of the lanes; itself if all lanes share the parameters."""
        if not self.lanes:
            return self
        return Stationary(self.name, self.lengthscale[lanes], self.outputscale[lanes])

    def cross(self, x: Tensor, y: Tensor) -> Tensor:
        """Covariance between every point of ``x`` and every point of ``y``."""
        length = self.lengthscale[..., None, :]
        cross: Tensor = _Correlation.apply(x / length, y / length, self.name)  # type: ignore[no-untyped-call]
        return self.outputscale[..., None, None] * cross

    def diagonal(self, x: Tensor) -> Tensor:
        """Variance at every point of ``x``."""
        return self.outputscale[..., None] * x.new_ones(x.shape[:-1])

    def paired(self, x: Tensor, y: Tensor) -> Tensor:
        """Covariance of each point of ``x`` with the point of ``y`` at the same index."""
        length = self.lengthscale[..., None, :]
        first, second = (part[..., None, :] for part in torch.broadcast_tensors(x / length, y / length))
        cross: Tensor = _Correlation.apply(first, second, self.name)  # type: ignore[no-untyped-call]
        return self.outputscale[..., None] * cross[..., 0, 0]

    def detached(self) -> "Stationary":
        """A copy without gradients in its parameters."""
        return Stationary(self.name, self.lengthscale.detach().clone(), self.outputscale.detach().clone())

    def flattened(self) -> "Stationary":
        """The same with its lanes counted in one dimension."""
        return Stationary(self.name, self.lengthscale.flatten(0, -2), self.outputscale.flatten())

    def scaled(self, factor: Float[Tensor, "*lane"]) -> "Stationary":
        """The same correlation with this multiple of the variance."""
        scale = self.outputscale * factor
        return Stationary(self.name, self.lengthscale.expand(*scale.shape, -1), scale)

    def spectral_density(self, omega: Float[Tensor, "*b m d"]) -> Float[Tensor, "*b m"]:
        r"""Fourier transform of the kernel at angular frequencies ``omega``.

        .. math:: S(\omega) = \int k(r) e^{-i \omega^\top r} dr = s^2 \prod_k \ell_k \cdot
            \begin{cases} (2\pi)^{d/2} e^{-q/2} & \text{squared exponential} \\
            \dfrac{(4\pi)^{d/2} \Gamma(\nu + d/2) (2\nu)^\nu}{\Gamma(\nu)} (2\nu + q)^{-\nu - d/2}
            & \text{Matern} \end{cases}, \quad q = \sum_k (\ell_k \omega_k)^2

        Source: Rasmussen & Williams (2006), eq. 4.15.
        """
        d, nu = omega.shape[-1], SMOOTHNESS[self.name]
        q = (omega * self.lengthscale[..., None, :]).square().sum(-1)
        if nu == math.inf:
            shape = (2 * math.pi) ** (d / 2) * torch.exp(-q / 2)
        else:
            gammas = math.gamma(nu + d / 2) / math.gamma(nu)
            constant = (4 * math.pi) ** (d / 2) * gammas * (2 * nu) ** nu
            shape = constant * (2 * nu + q).pow(-nu - d / 2)
        volume = self.lengthscale.expand(*self.lengthscale.shape[:-1], d).prod(-1)
        return (self.outputscale * volume)[..., None] * shape

    def spectral_draws(
        self, count: int, d: int, generators: Generators, lanes: torch.Size | None = None
    ) -> Float[Tensor, "*lane count d"]:
        """Draws from the normalised spectral density: normal, or Student's t."""
        nu, length, lanes = SMOOTHNESS[self.name], self.lengthscale, self.lanes if lanes is None else lanes
        draws = randn(generators, lanes, count, d, like=length)
        if nu != math.inf:
            chi = randn(generators, lanes, count, int(2 * nu), like=length)
            draws = draws / chi.square().mean(-1, keepdim=True).sqrt()
        return draws / length[..., None, :]

    def bandwidth(self, mass: float) -> float:
        """Frequency times lengthscale beyond which a fraction ``mass`` of the 1-D spectrum lies.

        That is normal, or Student's t with three or five degrees of freedom.
        """
        _check_fraction("mass", mass)
        if self.name == "se":
            return -float(torch.special.ndtri(torch.tensor(mass / 2, dtype=torch.float64)))
        degrees = 2 * SMOOTHNESS[self.name]

        def excess(angle: float) -> float:
            sine = math.sin(angle)
            part = 1 if degrees == 3 else 1 + 2 / 3 * sine**2
            return (angle - sine * math.cos(angle) * part) / math.pi - mass / 2

        return math.sqrt(degrees) / math.tan(_zero(excess, 0.0, math.pi / 2))

    def reach(self, correlation: float) -> float:
        """Distance in lengthscales at which the correlation falls to this value."""
        _check_fraction("correlation", correlation)
        return _reach(self.name, correlation)


Covariance = Stationary | _GPyTorchCovariance
"""Prior covariance of f; batches of points broadcast with its lanes."""


def covariance(kernel: Kernel) -> Covariance:
    """The covariance of a GPyTorch kernel, differentiable in its parameters."""
    base, outputscale = kernel, None
    if type(kernel) in (ScaleKernel, Scaled) and kernel.active_dims is None:
        base, outputscale = kernel.base_kernel, kernel.outputscale
    if base.active_dims is None and type(base) in (RBFKernel, MaternKernel):
        name = "se" if type(base) is RBFKernel else _NAME.get(base.nu)
        if name is not None:
            length = base.lengthscale[..., 0, :]
            scale = length.new_ones(()) if outputscale is None else outputscale
            lanes = _broadcast(length.shape[:-1], scale.shape)
            return Stationary(name, length.expand(*lanes, -1), scale.expand(lanes))
    return _GPyTorchCovariance(kernel)


class _Correlation(torch.autograd.Function):
    """Correlation of every point of x with every point of y, in units of the lengthscale."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, name: str) -> Tensor:
        ctx.name = name
        if not any(ctx.needs_input_grad):
            x, y = x * DECAY[name], y * DECAY[name]
            blocks = x.split(max(1, _BLOCK_ENTRIES[x.device.type] // max(1, y.shape[-2])), -2)
            parts = [decayed(name, distance(block, y)) for block in blocks]
            return parts[0] if len(parts) == 1 else torch.cat(parts, -2)
        r = distance(x, y)
        ctx.save_for_backward(x, y, r)
        return correlation_at(name, r)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, y, r = ctx.saved_tensors
        pull = last(steepness(ctx.name, r), x, y) * grad
        by_x = grad_in_first(x, y, pull).sum_to_size(x.shape) if ctx.needs_input_grad[0] else None
        by_y = grad_in_first(y, x, pull.mT).sum_to_size(y.shape) if ctx.needs_input_grad[1] else None
        return by_x, by_y, None


def distance(x: Float[Tensor, "*a q d"], y: Float[Tensor, "*b p d"]) -> Float[Tensor, "*c q p"]:
    """Distances between all points, as norms of differences."""
    if not x.is_cuda:
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    # on an H200 cdist would take nine tenths of a campaign's time
    return squared_distance(x, y).sqrt_()


def squared_distance(x: Float[Tensor, "*a q d"], y: Float[Tensor, "*b p d"]) -> Float[Tensor, "*c q p"]:
    """Squared distances between all points, by differences."""
    if not x.is_cuda:
        return distance(x, y).square_()
    square = (x[..., :, None, 0] - y[..., None, :, 0]).square_()
    for k in range(1, x.shape[-1]):
        apart = x[..., :, None, k] - y[..., None, :, k]
        square.addcmul_(apart, apart)
    return square


def squares_by_kernel(
    x: Float[Tensor, "*a q d"], y: Float[Tensor, "*b p d"], lengths: Float[Tensor, "k *b d"]
) -> Float[Tensor, "k *c q p"]:
    """Squared distances between all points in the lengths of each kernel, from squares that all share."""
    squares = (x.mT[..., :, None] - y.mT[..., None, :]).square_().to(lengths.dtype)
    found = lengths.pow(-2).movedim(0, -2) @ squares.flatten(-2)
    return found.unflatten(-1, squares.shape[-2:]).movedim(-3, 0)


def raised(x: Float[Tensor, "*a q d"]) -> Float[Tensor, "*a q e"]:
    """Points with two more coordinates, for :func:`squares`."""
    return torch.cat([x, x.square().sum(-1, keepdim=True), torch.ones_like(x[..., :1])], -1)


def squares(x: Float[Tensor, "*a q d"], dual: Float[Tensor, "*b p e"]) -> Float[Tensor, "*c q p"]:
    """Squared distances between all points as one matrix product, in a quarter of the time of distances.

    They lose the last digits of short distances, which covariances among the data need and a search does
    not: a correlation errs by 1e-16 times the squares of the points in lengthscales, which must not be
    :func:`tiny`.
    """
    return (raised(x) @ dual.mT).clamp_min_(0)


def tiny(lengths: Float[Tensor, "*b"], dtype: torch.dtype = torch.float64) -> bool:
    """Whether one of the lengthscales is too short for :func:`squares`, such as those of items."""
    return float(lengths.min()) < _SHORTEST[dtype]


def dual(y: Float[Tensor, "*b p d"]) -> Float[Tensor, "*b p e"]:
    """Points y such that ``raised(x) @ dual(y).mT`` are squared distances."""
    return torch.cat([-2 * y, torch.ones_like(y[..., :1]), y.square().sum(-1, keepdim=True)], -1)


def grad_in_first(x: Tensor, y: Tensor, pull: Float[Tensor, "*c q p"]) -> Float[Tensor, "*c q d"]:
    """Sum over y of ``pull * (x - y)``: gradients of correlations in x, if ``pull`` has the steepness."""
    return pull.sum(-1, keepdim=True) * x - pull @ y


@functools.lru_cache(maxsize=256)
def _reach(name: str, correlation: float) -> float:
    def excess(r: float) -> float:
        return correlation - float(correlation_at(name, torch.tensor(r, dtype=torch.float64)))

    return _zero(excess, 0.0, 100.0)


def _zero(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a function becomes positive, by bisection: scipy takes a quarter of a second to import."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return middle


def _check_fraction(what: str, value: float) -> None:
    if not 0 < value < 1:
        raise Refused(what, "lie between 0 and 1", f"{value:g}", "Choose a smaller tolerance.")


def correlation_at(name: str, r: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """Correlation at distances in units of the lengthscale."""
    return decayed(name, r * DECAY[name])


DECAY = {"se": 1.0, "matern32": math.sqrt(3), "matern52": math.sqrt(5)}
"""Multiples of the distance in lengthscales that :func:`decayed` and :func:`correlation_and_fall` take."""
_LEAST = {torch.float64: -600.0, torch.float32: -60.0}  # exponents of correlations that are zero
_SHORTEST = {torch.float64: 1e-4, torch.float32: 2e-3}  # lengthscales for squares without their last digits
_NEAR = 1e-3  # distance below which the infinite third derivative of a Matern 3/2 is cut off
FALL = {"se": -1.0, "matern32": -1.0, "matern52": -1 / 3}


def decayed(name: str, r: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """Correlation at distances in lengthscales times :data:`DECAY`, which are overwritten."""
    # in place: with hundreds of candidates memory traffic dominates
    if name == "se":
        return r.square_().mul_(-0.5).exp_()
    if r.dtype == torch.float32:
        r.clamp_max_(-_LEAST[r.dtype])  # as in _bell; else thirty times as long where lengthscales are short
    decay = r.neg().exp_()
    if name == "matern32":
        return decay.mul_(r.add_(1))
    return decay.mul_(r.addcmul_(r, r, value=1 / 3).add_(1))


def decayed_by_square(name: str, square: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """The same from the squares of these distances, which are overwritten."""
    return _bell(square) if name == "se" else decayed(name, square.sqrt_())


def _bell(square: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """:math:`e^{-s/2}`, or 1e-26 or 1e-260 where it is less; the square is overwritten.

    An exponential that is zero or a subnormal number takes a CPU up to a hundred times as long as another.
    """
    return square.mul_(-0.5).clamp_min_(_LEAST[square.dtype]).exp_()


def correlation_and_fall(
    name: str, square: Float[Tensor, "*b"]
) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b"]]:
    """Correlation at distances r in lengthscales times :data:`DECAY`, and its derivative in r over
    ``FALL * r``, from the squares of r, which are overwritten.

    Together and without constants they take half the operations.
    """
    if name == "se":
        correlation = _bell(square)
        return correlation, correlation
    r = square.sqrt_()
    decay = r.neg().exp_()
    straight = torch.addcmul(decay, decay, r)
    if name == "matern32":
        return straight, decay
    # into memory that is there already: of thousands of points it costs more than the arithmetic
    return torch.addcmul(straight, decay.mul_(r), r, value=1 / 3, out=decay), straight


def bend(name: str, square: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """Minus the derivative of the fall of :func:`correlation_and_fall` in r over r."""
    if name == "se":
        return _bell(square.clone())
    r = square.sqrt()
    decay = r.neg().exp_()
    return decay.div_(r.clamp_min_(_NEAR)) if name == "matern32" else decay


def steepness(name: str, r: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """Derivative of the correlation in r, divided by r: finite at r = 0."""
    if name == "se":
        return r.square().mul_(-0.5).exp_().neg_()
    if name == "matern32":
        return (r * -math.sqrt(3)).exp_().mul_(-3)
    scaled = r * math.sqrt(5)
    return scaled.neg().exp_().mul_(scaled.add_(1)).mul_(-5 / 3)
