"""One thread for linear algebra: the cores belong to the agents that this program watches.

With a thread a core, OpenBLAS spins while others work: on two busy cores the light encoder then takes seven
times the CPU that it takes with one.
"""

from __future__ import annotations

from functools import cache

from threadpoolctl import threadpool_limits


@cache  # each call makes a circle of objects that only the collector takes apart, and looks through /proc
def use_one_thread() -> None:
    """Keep numpy's BLAS to one thread from now on, in this process."""
    threadpool_limits(limits=1, user_api="blas")
