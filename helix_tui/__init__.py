"""helix-tui: a terminal console for people who supervise coding agents working a DDx queue."""

import sys

__version__ = "0.1.0"

if "typing_extensions" not in sys.modules:
    # msgspec looks there first for names that Python 3.11 has itself: 20 ms of every process
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import msgspec  # noqa: F401

    del sys.modules["typing_extensions"]
