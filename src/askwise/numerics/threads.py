"""Single-threaded torch, for results that are bit-identical on every machine.

With several threads torch sums in another order, and the last bits of a query depend on the machine.  For
the small matrices of a study one thread is faster, too.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_LOCK = threading.Lock()
_depth, _before = 0, 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread; leaving the outermost block restores the previous number."""
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
