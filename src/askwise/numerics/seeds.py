"""Reproducible runs, on every machine: seeds from the identity of a run, torch on one thread."""

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from askwise.errors import Refused

Generators = torch.Generator | Sequence[torch.Generator]
"""One generator for all lanes, or one per lane."""
_LOCK = threading.Lock()
_depth, _before = 0, 1


def generator(*identity: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator seeded by a hash of the run's identity: experiment, function, rule, replicate.

    Equal identities give equal streams on every machine; ``("a", 12)`` and ``("a1", 2)`` differ.

    >>> generator("duels", "ackley", "muc", 3).initial_seed()
    3980177516130439173
    """
    name = "".join(f"{type(part).__name__}:{len(str(part))}:{part}" for part in identity)
    seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 1
    return torch.Generator(device).manual_seed(seed)


def sobol(d: int, count: int) -> Tensor:
    """The first points of a scrambled Sobol sequence with a fixed seed: float64 [count, d].

    In torch the first one depends on the default dtype.  Here it has the digits of float32, the usual one.
    """
    points = torch.quasirandom.SobolEngine(d, scramble=True, seed=0).draw(count, dtype=torch.float64)
    points[:1] = points[:1].float().double()
    return points


def randn(generators: Generators, lanes: torch.Size, *shape: int, like: Tensor) -> Tensor:
    """Standard normals [*lanes, *shape]; with one generator per lane, each lane draws as it would alone."""
    return _drawn(torch.randn, generators, lanes, shape, like)


def rand(generators: Generators, lanes: torch.Size, *shape: int, like: Tensor) -> Tensor:
    """Uniforms in the open interval (0, 1), drawn like :func:`randn`."""
    drawn = _drawn(torch.rand, generators, lanes, shape, like)
    return drawn.clamp_min(torch.finfo(drawn.dtype).eps / 2)


def _drawn(
    draw: Callable[..., Tensor], generators: Generators, lanes: torch.Size, shape: Sequence[int], like: Tensor
) -> Tensor:
    check_one_a_lane(generators, lanes)
    if isinstance(generators, torch.Generator):
        options = {"dtype": like.dtype, "device": generators.device}
        return draw(*lanes, *shape, generator=generators, **options).to(like.device)
    # moved to a GPU together: a thousand copies take as long as the rest of a step
    drawn = [draw(*shape, generator=each, dtype=like.dtype, device=each.device) for each in generators]
    return torch.stack(drawn).to(like.device).reshape(*lanes, *shape)


def seeded_place(generators: Generators, lanes: torch.Size, count: int, device: torch.device) -> Tensor:
    """A place from 0 to count - 1 for each lane, by the seed of its generator, which draws nothing."""
    check_one_a_lane(generators, lanes)
    if isinstance(generators, torch.Generator):
        return torch.full(lanes, generators.initial_seed() % count, device=device)
    places = [each.initial_seed() % count for each in generators]
    return torch.tensor(places, device=device).reshape(lanes)


def check_one_a_lane(generators: Generators, lanes: torch.Size) -> None:
    """Raise unless there is one generator for all lanes or one per lane."""
    if isinstance(generators, int):
        advice = f"Write aw.seeds.generator({generators})."
        raise Refused("generator", "be a torch.Generator, or one for each lane", generators, advice)
    if not isinstance(generators, torch.Generator) and len(generators) != lanes.numel():
        expected = f"be one, or one for each of the {lanes.numel()} lanes"
        raise Refused("generators", expected, len(generators), "Give as many as there are lanes.")


def of_lanes(generators: Generators, lanes: Tensor) -> Generators:
    """The generators of some lanes."""
    if isinstance(generators, torch.Generator):
        return generators
    return [generators[lane] for lane in lanes.tolist()]


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread; leaving the outermost block restores the previous number.

    Several threads sum in another order, and the last bits of a query would depend on the machine.  For the
    small matrices of a study one thread is faster, too.
    """
    global _depth, _before
    with _LOCK:
        if _depth == 0:
            _before = torch.get_num_threads()
        _depth += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            _depth -= 1
            if _depth == 0:
                torch.set_num_threads(_before)
