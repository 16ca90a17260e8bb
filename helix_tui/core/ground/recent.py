"""A mapping that cannot grow without end."""

from __future__ import annotations

from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(dict[Key, Value]):
    """At most ``most`` entries: a new one sends away the one that was set longest ago.

    Only ``[key] = value`` heeds the bound; it is how a cache is filled.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: Key, value: Value) -> None:
        """Set it; what is set again counts as new."""
        # a dict keeps an old key's place: taken out first, it goes to the end
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self.most:
            del self[next(iter(self))]
