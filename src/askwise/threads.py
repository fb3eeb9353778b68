"""One thread for what must come out the same everywhere.

With more, torch adds up in another order, and the last bits of a question depend on the machine.  For
matrices as small as those of a study more threads are slower, too.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["one_thread"]

_LOCK = threading.Lock()
_inside, _before = 0, 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute with one thread in here; the number is what it was when the last has left."""
    global _inside, _before
    with _LOCK:
        if _inside == 0:
            _before = torch.get_num_threads()
        _inside += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if _inside == 0:
                torch.set_num_threads(_before)
