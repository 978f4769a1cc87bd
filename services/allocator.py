"""How the C library's allocator keeps memory that a service has given up."""

import ctypes
import sys

# Of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_ARENAS = 2
_LARGE_BYTES = 1 << 20


def bound_arenas() -> None:
    """Makes memory that threads have freed usable by all of them; called before there are threads.

    By default threads allocate from 8 arenas for each core, and every arena keeps what it once held. What is
    large goes back to the system at once. Systems without glibc are left as they are.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_M_ARENA_MAX, _ARENAS)
    mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)
