"""What was freed goes back."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

FREED = """
from pathlib import Path
from helix_tui.core.ground.processes.threads import give_back
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])
blocks = [bytes(3_000) for _ in range(20_000)]
last = blocks[-1]
del blocks
before = resident()
give_back()
print((before - resident()) * 4096)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc")
def test_what_lies_free_below_something_held_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 30_000_000


HEAPS = """
import ctypes, threading
from helix_tui.core.ground.processes.threads import keep_heaps_small
keep_heaps_small()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
meeting = threading.Barrier(9)
def hold():
    libc.malloc(100_000)
    meeting.wait()
for _ in range(8):
    threading.Thread(target=hold).start()
meeting.wait()
libc.fdopen.restype = ctypes.c_void_p
out = libc.fdopen(1, b"w")
libc.malloc_info(0, ctypes.c_void_p(out))
libc.fflush(ctypes.c_void_p(out))
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the C library is not glibc")
def test_threads_share_two_heaps() -> None:
    done = subprocess.run([sys.executable, "-c", HEAPS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.count("<heap nr=") == 2


LARGE_BLOCKS = """
from pathlib import Path
from helix_tui.core.ground.processes.threads import keep_heaps_small
keep_heaps_small()
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
for size in range(1, 31):
    b"x" * (size * 1_000_000)  # glibc by itself keeps blocks of up to such a size in the heap from here on
blocks, held = [], []
for _ in range(40):
    blocks.append(b"x" * 1_000_000)
    held.append(b"x" * 100_000)
before = resident()
del blocks
print(before - resident())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the C library is not glibc")
def test_a_large_block_is_gone_as_it_is_freed() -> None:
    done = subprocess.run([sys.executable, "-c", LARGE_BLOCKS], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 30_000_000
