"""The detection service's threads share their memory: what one of them has freed serves the others."""

import subprocess
import sys

import pytest

# Threads that each hold some memory at the same time; prints how many arenas they took it from.
THREADS = """
import ctypes, sys, threading
from ttmark.services.cli.serve import bound_arenas
if sys.argv[1] == "bound":
    bound_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
together = threading.Barrier(12)
def hold():
    together.wait()
    held = [libc.malloc(50_000) for _ in range(20)]
    together.wait()
threads = [threading.Thread(target=hold) for _ in range(12)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
print(open(sys.argv[2]).read().count("<heap nr="))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of glibc")
def test_many_threads_take_memory_from_two_arenas(tmp_path_factory: pytest.TempPathFactory) -> None:
    def arenas(how: str) -> int:
        file = tmp_path_factory.mktemp("arenas") / "info.xml"
        return int(subprocess.check_output([sys.executable, "-c", THREADS, how, str(file)]))

    assert arenas("bound") <= 2 < arenas("as usual")
