"""Beads and labels to pick from: found by any words of id, title and labels, as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache

from helix_tui.core.beads.readiness import Queue, looks_like_epic
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.screens.editing.choices import Pick
from helix_tui.themes.alphabet import SIGNS, UNKNOWN
from helix_tui.widgets.base.line import Span

NONE = "none:"
"""The key of the row that takes something away."""

NEW = "new:"
"""Before the text of a label that nobody uses yet."""


@lru_cache(maxsize=2)
def _words_of(queue: Queue) -> tuple[tuple[str, str], ...]:
    """Per bead what is searched, in lower case; those that are not finished first."""
    words = [
        (bead.id, f"{bead.id} {bead.title} {' '.join(map(str, bead.labels))}".lower()) for bead in queue.beads.values()
    ]
    words.sort(key=lambda pair: queue.beads[pair[0]].status in TERMINAL)
    return tuple(words)


def beads_like(text: str, queue: Queue, but: Collection[str] = ()) -> Iterator[Bead]:
    """Beads in which every word of a text stands, unfinished ones first; all of them for no text."""
    wanted = text.lower().split()
    for bead_id, words in _words_of(queue):
        if bead_id not in but and all(word in words for word in wanted):
            yield queue.beads[bead_id]


def bead_pick(bead: Bead, queue: Queue, note: Span = ("", "text")) -> Pick:
    """A bead as a row: its sign, title and id."""
    sign = SIGNS.get(queue.state(bead.id), UNKNOWN)
    left = (
        (f"{sign.glyph} ", sign.ink),
        (f"{note[0]} " if note[0] else "", note[1]),
        (clean_line(bead.title, 300) or "(no title)", sign.title_ink),
    )
    return Pick(bead.id, left, ((f"{short_id(clean_line(bead.id, 60))}  P{bead.priority}", "muted"),))


def missing_pick(bead_id: str, note: Span) -> Pick:
    """An id that the tracker does not hold, as a row."""
    left = (("? ", "error bold"), (f"{note[0]} ", note[1]), (clean_line(bead_id, 80), "text"))
    return Pick(bead_id, left, (("not in the tracker", "error"),))


def none_pick(words: str) -> Pick:
    """The row that takes something away."""
    return Pick(NONE, (("✗ ", "attention"), (words, "text")))


def offer_beads(
    queue: Queue,
    but: Collection[str] = (),
    *,
    first: Sequence[Pick] = (),
    fits: Callable[[Bead], bool] | None = None,
) -> Callable[[str], Iterable[Pick]]:
    """What a picker offers: the rows of ``first`` while nothing is typed, then beads."""

    def offer(text: str) -> Iterator[Pick]:
        yield from first if not text.strip() else ()
        for bead in beads_like(text, queue, but):
            if fits is None or fits(bead):
                yield bead_pick(bead, queue)

    return offer


def offer_parents(queue: Queue, but: Collection[str], first: Sequence[Pick]) -> Callable[[str], Iterable[Pick]]:
    """Beads, those that are epics or have children already first."""

    def offer(text: str) -> Iterator[Pick]:
        yield from first if not text.strip() else ()
        others = []
        for bead in beads_like(text, queue, but):
            if looks_like_epic(bead) or queue.graph.children.get(bead.id):
                yield bead_pick(bead, queue)
            else:
                others.append(bead)
        yield from (bead_pick(bead, queue) for bead in others)

    return offer


def offer_labels(queue: Queue, beads: Sequence[Bead]) -> Callable[[str], Iterable[Pick]]:
    """Labels in use, those of the beads first; a text that is none of them as a new one."""
    uses = Counter(label for bead in queue.beads.values() for label in bead.labels if isinstance(label, str))
    worn = Counter(label for bead in beads for label in bead.labels if isinstance(label, str))
    known = sorted(uses, key=lambda label: (-worn[label], -uses[label], label))

    def offer(text: str) -> Iterator[Pick]:
        wanted = text.strip().lower()
        for label in known:
            if wanted in label.lower():
                yield Pick(label, _label_sign(worn[label], len(beads), label), ((f"{uses[label]:,}", "muted"),))
        if wanted and text.strip() not in uses:
            yield Pick(NEW + text.strip(), (("+ ", "success"), (clean_line(text, 80), "text")), (("new", "muted"),))

    return offer


def _label_sign(worn: int, of: int, label: str) -> tuple[Span, ...]:
    name: Span = (clean_line(label, 80), "text")
    if worn == of:
        return ("✗ ", "attention"), name, ("  take away", "muted")
    if worn:
        return ("✗ ", "attention"), name, (f"  take away from {worn}", "muted")
    return ("+ ", "success"), name, ("  add", "muted")


def labels_in_use(queue: Queue) -> list[str]:
    """Every label, the most used first."""
    uses = Counter(label for bead in queue.beads.values() for label in bead.labels if isinstance(label, str))
    return sorted(uses, key=lambda label: (-uses[label], label))
