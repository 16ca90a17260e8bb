"""Garbage that a screen's first display leaves is collected when nobody waits for a frame."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from helix_tui.garbage import GarbageCollection


@contextmanager
def collections() -> Iterator[list[int]]:
    """The generations that are collected meanwhile."""
    seen: list[int] = []

    def hear(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.callbacks.append(hear)
    gc.disable()  # only what is asked for
    try:
        yield seen
    finally:
        gc.enable()
        gc.callbacks.remove(hear)


@pytest.mark.long
def test_a_first_display_is_collected_in_the_next_second_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    garbage = GarbageCollection()
    monkeypatch.setitem(sys.modules, "a_screen_shown_first", ModuleType("a_screen_shown_first"))
    with collections() as seen:
        survivors = [[n] for n in range(30_000)]
        garbage.tick(busy=True, freeze=False)
        assert seen == []
        garbage.tick(busy=False, freeze=False)
        assert seen == [2]
        garbage.tick(busy=False, freeze=False)
        assert seen == [2, 0]
    assert len(survivors) == 30_000


@pytest.mark.long
def test_a_busy_second_collects_many_young_objects_only() -> None:
    garbage = GarbageCollection()
    with collections() as seen:
        gc.collect()
        seen.clear()
        garbage.tick(busy=True, freeze=False)
        assert seen == []
        survivors = [[n] for n in range(30_000)]
        garbage.tick(busy=True, freeze=False)
        assert seen == [0]
    assert len(survivors) == 30_000
