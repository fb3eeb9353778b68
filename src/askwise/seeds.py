"""Random generators that follow from the identity of a run, so that it can be repeated alone."""

import hashlib

import torch

__all__ = ["generator"]


def generator(*identity: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator seeded by a hash of what is drawn for: experiment, function, rule, replicate.

    Equal identities give equal streams on every machine; ``("a", 12)`` and ``("a1", 2)`` differ.

    >>> generator("duels", "ackley", "muc", 3).initial_seed()
    2969462050671256059
    """
    name = "\x1f".join(f"{type(part).__name__}:{part}" for part in identity)
    seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 1
    return torch.Generator(device).manual_seed(seed)
