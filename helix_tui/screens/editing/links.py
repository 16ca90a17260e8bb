"""Keys that link a bead to another one, or to a label: what can be picked, and the change that follows.

Beads and labels are offered as rows, found by any words of id, title and labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from helix_tui.core.beads.readiness import Queue, looks_like_epic
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.beads.states import STATES
from helix_tui.core.editing import operations
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.core.supervision.requests import FocusRequest, request_for
from helix_tui.screens.editing.choices import Pick, PickSheet, whom
from helix_tui.widgets.base.line import Span

if TYPE_CHECKING:
    from helix_tui.screens.editing.keys import TargetScreen

NONE = "none:"
"""The key of the row that removes the link."""

NEW = "new:"
"""Prefix of a label that is not in use yet."""


@lru_cache(maxsize=2)
def _words_of(queue: Queue) -> tuple[tuple[str, str], ...]:
    """Each bead's searchable text in lower case, unfinished beads first."""
    words = [
        (bead.id, f"{bead.id} {bead.title} {' '.join(map(str, bead.labels))}".lower()) for bead in queue.beads.values()
    ]
    # stable: both halves keep the tracker's order
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
    sign = STATES[queue.state(bead.id)].sign
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
    """The row that removes the link."""
    return Pick(NONE, (("✗ ", "attention"), (words, "text")))


def offer_beads(
    queue: Queue, but: Collection[str] = (), *, first: Sequence[Pick] = (), fits: Callable[[Bead], bool] | None = None
) -> Callable[[str], Iterable[Pick]]:
    """What a picker offers: the rows of ``first`` while nothing is typed, then beads."""

    def offer(text: str) -> Iterator[Pick]:
        yield from first if not text.strip() else ()
        for bead in beads_like(text, queue, but):
            if fits is None or fits(bead):
                yield bead_pick(bead, queue)

    return offer


def offer_parents(queue: Queue, but: Collection[str], first: Sequence[Pick]) -> Callable[[str], Iterable[Pick]]:
    """Beads, with epics and beads that have children first."""

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
    """Labels in use, those of the beads first; any other text is offered as a new label."""
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
        return ("✗ ", "attention"), name, ("  remove", "muted")
    if worn:
        return ("✗ ", "attention"), name, (f"  remove from {worn}", "muted")
    return ("+ ", "success"), name, ("  add", "muted")


def labels_in_use(queue: Queue) -> list[str]:
    """Every label, the most used first."""
    uses = Counter(label for bead in queue.beads.values() for label in bead.labels if isinstance(label, str))
    return sorted(uses, key=lambda label: (-uses[label], label))


def supersede(screen: TargetScreen, beads: Sequence[Bead]) -> None:
    """Ask which bead replaces them."""
    if not beads:
        return
    queue = screen.console.snapshot.queue
    marked = any(bead.superseded_by for bead in beads)
    first = [none_pick("nothing replaces it")] if marked else []

    def picked(keys: tuple[str, ...]) -> None:
        by = None if keys[0] == NONE else keys[0]
        screen.look_ahead(request_for([operations.Supersede(bead.id, by) for bead in beads]))

    offer = offer_beads(queue, {bead.id for bead in beads}, first=first)
    title = f"{whom(beads)} is replaced by …"
    screen.console.push_screen(PickSheet(title, offer, picked, lead="replaced by"))


def depend(screen: TargetScreen, beads: Sequence[Bead]) -> None:
    """Ask what they wait on; reversed, what waits on them. Picking an existing link removes it."""
    if not beads:
        return
    edges = _Edges(screen.console.snapshot.queue, beads)

    def picked(keys: tuple[str, ...]) -> None:
        screen.look_ahead(request_for(list(edges.changed(keys[0]))))

    def turn() -> tuple[str, str]:
        edges.onward = not edges.onward
        return edges.title, edges.lead

    sheet = PickSheet(edges.title, edges.offer, picked, lead=edges.lead, turn=turn)
    screen.console.push_screen(sheet)


class _Edges:
    """What some beads wait on, or what waits on them, to add or remove links."""

    def __init__(self, queue: Queue, beads: Sequence[Bead]) -> None:
        self.onward = True
        """True: they wait on the picked beads; False: the picked beads wait on them."""
        self._queue, self._beads = queue, beads
        self._but = {bead.id for bead in beads}

    @property
    def title(self) -> str:
        """The question, with the direction in words."""
        who = whom(self._beads)
        return f"{who} waits on …" if self.onward else f"… waits on {who}"

    @property
    def lead(self) -> str:
        """The direction alone, which fits at any width."""
        return "waits on" if self.onward else "is waited on by"

    def there(self) -> list[str]:
        """The beads linked to any of them in this direction."""
        graph = self._queue.graph
        found = [
            other
            for bead in self._beads
            for other in (bead.depends_on if self.onward else graph.dependents.get(bead.id, ()))
        ]
        return list(dict.fromkeys(found))

    def offer(self, text: str) -> Iterator[Pick]:
        """The linked beads first, to remove the link; then every other bead."""
        there = self.there()
        wanted = text.lower().split()
        note = ("no longer" if self.onward else "no longer waits:", "attention")
        for other in there:
            bead = self._queue.beads.get(other)
            words = f"{other} {bead.title if bead is not None else ''}".lower()
            if all(word in words for word in wanted):
                yield missing_pick(other, note) if bead is None else bead_pick(bead, self._queue, note)
        for bead in beads_like(text, self._queue, self._but.union(there)):
            yield bead_pick(bead, self._queue)

    def changed(self, other: str) -> Iterable[operations.Operation]:
        """The edges to add, or to remove if they exist."""
        operation = operations.RemoveDependency if other in self.there() else operations.AddDependency
        for bead in self._beads:
            yield operation(bead.id, other) if self.onward else operation(other, bead.id)


def parent(screen: TargetScreen, beads: Sequence[Bead]) -> None:
    """Ask for their parent."""
    if not beads:
        return
    queue = screen.console.snapshot.queue
    first = [none_pick("no parent")] if any(bead.parent for bead in beads) else []

    def picked(keys: tuple[str, ...]) -> None:
        under = None if keys[0] == NONE else keys[0]
        screen.look_ahead(request_for([operations.SetParent(bead.id, under) for bead in beads]))

    offer = offer_parents(queue, {bead.id for bead in beads}, first)
    screen.console.push_screen(PickSheet(f"{whom(beads)} is under …", offer, picked, lead="under"))


def label(screen: TargetScreen, beads: Sequence[Bead]) -> None:
    """Ask for labels: labels that they have are removed, others added."""
    if not beads:
        return
    worn = {label for bead in beads for label in bead.labels}

    def picked(keys: tuple[str, ...]) -> None:
        add = [key.removeprefix(NEW) for key in keys if key not in worn]
        remove = [key for key in keys if key in worn]
        screen.look_ahead(request_for([operations.ChangeLabels(bead.id, add=add, remove=remove) for bead in beads]))

    offer = offer_labels(screen.console.snapshot.queue, beads)
    screen.console.push_screen(PickSheet(f"labels of {whom(beads)}", offer, picked, lead="#", several=True))


def rank(screen: TargetScreen, beads: Sequence[Bead], place: str) -> None:
    """Move them within their priority: to the top, before or after another bead, or without a rank."""
    if not beads:
        return
    if place in ("top", "clear"):
        # the last one moved to the top ends up first
        ordered = beads[::-1] if place == "top" else beads
        wanted = [operations.SetRank(bead.id, top=place == "top") for bead in ordered]
        screen.look_ahead(request_for(wanted))
        return
    level = beads[0].priority

    def picked(keys: tuple[str, ...]) -> None:
        if place == "before":
            wanted = [operations.SetRank(bead.id, before=keys[0]) for bead in beads]
        else:
            # each is put right after the same bead, so the last one moved ends up first
            wanted = [operations.SetRank(bead.id, after=keys[0]) for bead in beads[::-1]]
        screen.look_ahead(request_for(wanted))

    offer = offer_beads(
        screen.console.snapshot.queue, {bead.id for bead in beads}, fits=lambda bead: bead.priority == level
    )
    screen.console.push_screen(PickSheet(f"{whom(beads)} comes {place} …", offer, picked, lead=place))


def focus(screen: TargetScreen, beads: Sequence[Bead]) -> None:
    """Focus on the epic under the cursor; on the epic in focus, or on any other bead, end the focus."""
    if not beads:
        return
    if len(beads) > 1:
        screen.console.say("a focus is on one epic; unmark the others", "warning")
        return
    screen.look_ahead(FocusRequest(beads[0]))
