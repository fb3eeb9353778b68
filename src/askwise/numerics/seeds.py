"""Random streams seeded by the identity of a run, so that each run can be repeated alone."""

import hashlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from askwise.errors import Refused

Generators = torch.Generator | Sequence[torch.Generator]
"""One generator for all lanes, or one per lane."""


def generator(*identity: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator seeded by a hash of the run's identity: experiment, function, rule, replicate.

    Equal identities give equal streams on every machine; ``("a", 12)`` and ``("a1", 2)`` differ.

    >>> generator("duels", "ackley", "muc", 3).initial_seed()
    3980177516130439173
    """
    name = "".join(f"{type(part).__name__}:{len(str(part))}:{part}" for part in identity)
    seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 1
    return torch.Generator(device).manual_seed(seed)


def randn(generators: Generators, lanes: torch.Size, *shape: int, like: Tensor) -> Tensor:
    """Standard normals [*lanes, *shape]; with one generator per lane, each lane draws as it would alone."""
    return _drawn(torch.randn, generators, lanes, shape, like)


def rand(generators: Generators, lanes: torch.Size, *shape: int, like: Tensor) -> Tensor:
    """Uniforms in the open interval (0, 1), drawn like :func:`randn`."""
    drawn = _drawn(torch.rand, generators, lanes, shape, like)
    return drawn.clamp_min(torch.finfo(drawn.dtype).eps / 2)


def _drawn(
    draw: Callable[..., Tensor],
    generators: Generators,
    lanes: torch.Size,
    shape: tuple[int, ...],
    like: Tensor,
) -> Tensor:
    if isinstance(generators, torch.Generator):
        options = {"dtype": like.dtype, "device": generators.device}
        return draw(*lanes, *shape, generator=generators, **options).to(like.device)
    check_one_a_lane(generators, lanes)
    drawn = [_drawn(draw, own, torch.Size(), shape, like) for own in generators]
    return torch.stack(drawn).reshape(*lanes, *shape)


def check_one_a_lane(generators: Sequence[torch.Generator], lanes: torch.Size) -> None:
    """Raise unless there is one generator per lane."""
    if len(generators) != lanes.numel():
        expected = f"be one, or one for each of the {lanes.numel()} lanes"
        raise Refused("generators", expected, len(generators), "Give as many as there are lanes.")
