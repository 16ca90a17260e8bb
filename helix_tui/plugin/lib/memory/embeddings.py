"""Whether memories are searched by meaning."""

from __future__ import annotations

from memory.core import health


def is_available() -> bool:
    """Whether there is an encoder; without one they are searched by words."""
    return bool(health()["mode"] == "semantic")
