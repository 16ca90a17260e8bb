"""A mapping of bounded size."""

from __future__ import annotations

from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(dict[Key, Value]):
    """A dict of at most ``most`` entries: a new entry evicts the one set longest ago.

    Only ``[key] = value`` enforces the bound.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: Key, value: Value) -> None:
        """Set an entry; one that is set again counts as new."""
        # a dict keeps an old key's place, so remove it first
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self.most:
            del self[next(iter(self))]
