"""Memory that does not grow with the number of threads.

A server answers in dozens of threads.  By default glibc keeps memory for each of them, and so does MKL, with
which torch computes: with 100 participants a server grew by 20 KB an answer, and by 4 without.
"""

import ctypes
import os
from contextlib import suppress

_M_ARENA_MAX = -8  # of glibc's mallopt


def use_less() -> None:
    """Let threads share their memory; to be called before torch is imported, and in every process."""
    os.environ.setdefault("MKL_DISABLE_FAST_MM", "1")  # processes that are started from here have it, too
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
