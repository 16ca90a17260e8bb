"""Titles cut where they are alike, never where they differ.

Thirteen beads that all begin ``attempt-backend: verify combined reusable`` look alike once each is cut at its
end. Here the words at which a title parts from any other one in the list are kept, and the stretches between
them that it shares with others give way to ``…``: ``attempt-backend: verify … part 3``.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from rich.cells import cell_len

from helix_tui.widgets.base.line import cut

_GAP = "… "

_NEAR_CELLS = 9
"""Cells that the word before a difference may take: ``part`` beside ``3``."""
_SORTS_LAST = chr(0x10FFFF)


class Titles:
    """The titles of a list, sorted once; each is asked for the places at which it parts from the others."""

    def __init__(self, titles: Iterable[str] = ()) -> None:
        self._sorted = sorted({f"{title} " for title in titles})
        self.shortened = lru_cache(maxsize=1024)(self._shortened)

    def _parting(self, title: str) -> list[int]:
        """Where the words begin at which a title differs from another one that begins like it, ascending."""
        text = f"{title} "
        places: set[int] = set()
        low, high = bisect_left(self._sorted, text), bisect_left(self._sorted, text + _SORTS_LAST)
        for before in (low - 1, high):
            while 0 <= before < len(self._sorted):
                place = _same_words(text, self._sorted[before])
                places.add(place)
                if not place:
                    break
                begin = text[:place]
                edge = bisect_left(self._sorted, begin)
                before = edge - 1 if before < low else bisect_left(self._sorted, begin + _SORTS_LAST)
        return sorted(place for place in places if 0 < place < len(title))

    def _shortened(self, title: str, width: int) -> str:
        """The title in at most ``width`` cells, with the words that tell it apart from the others."""
        if cell_len(title) <= width:
            return title
        places = self._parting(title)
        last = places[-1] if places else 0
        if not last or cell_len(title[: _word_end(title, last)]) < width:
            return cut(title, width)  # what differs is in what a plain cut leaves
        return _elided(title, places, width)


def _same_words(one: str, other: str) -> int:
    """Characters of the words that two texts begin with alike, each with the blank behind it."""
    same = 0
    for same, (left, right) in enumerate(zip(one, other, strict=False)):  # noqa: B007
        if left != right:
            break
    else:
        same = min(len(one), len(other))
    return one.rfind(" ", 0, same) + 1


def _word_end(title: str, at: int) -> int:
    end = title.find(" ", at)
    return len(title) if end < 0 else end


def _elided(title: str, places: list[int], width: int) -> str:
    """Keep the words at ``places``; of the rest as much as there is room for, what follows them first."""
    kept = [(0, _word_end(title, 0))]
    for place in reversed(places):  # the nearest relatives are told apart by the last of them
        insort(kept, (place, _word_end(title, place)))
        if cell_len(_joined(title, kept)) > width:
            kept.remove((place, _word_end(title, place)))
    kept = _with_word_before(title, kept, width)
    for tail in (True, False):
        kept = _grown(title, kept, width, tail=tail)
    kept[-1] = (kept[-1][0], len(title))  # as many letters of the next word as there is room for
    return cut(_joined(title, kept), width)


def _with_word_before(title: str, kept: list[tuple[int, int]], width: int) -> list[tuple[int, int]]:
    """The word before the last difference too, where it is short: ``part 3`` says more than ``3``."""
    begin, end = kept[-1]
    before = title.rfind(" ", 0, max(0, begin - 1)) + 1
    if len(kept) < 2 or begin - before > _NEAR_CELLS or before <= kept[-2][1]:
        return kept
    wider = [*kept[:-1], (before, end)]
    return wider if cell_len(_joined(title, wider)) <= width else kept


def _grown(title: str, kept: list[tuple[int, int]], width: int, *, tail: bool) -> list[tuple[int, int]]:
    """More words behind the last kept ones (``tail``), or behind the first ones, as long as they fit."""
    kept = _merged(kept)
    while True:
        place = len(kept) - 1 if tail else 0
        begin, end = kept[place]
        if end >= len(title):
            return kept
        grown = _merged([*kept[:place], (begin, _word_end(title, end + 1)), *kept[place + 1 :]])
        if cell_len(_joined(title, grown)) > width:
            return kept
        kept = grown


def _merged(kept: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches that only a blank lies between as one."""
    merged = kept[:1]
    for begin, end in kept[1:]:
        if begin <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _joined(title: str, kept: list[tuple[int, int]]) -> str:
    """The kept stretches with a gap between them, and ``…`` where the end is missing."""
    parts = [title[kept[0][0] : kept[0][1]]]
    for (_, end), (begin, last) in pairwise(kept):
        parts += [_GAP if begin > end + 1 else " ", title[begin:last]]
    return "".join(parts) + ("…" if kept[-1][1] < len(title) else "")
