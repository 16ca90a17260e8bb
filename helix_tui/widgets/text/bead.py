"""One bead in full: its state and why, what it waits on, what waits on it, its attempts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from helix_tui.core.beads.graph import with_titles
from helix_tui.core.beads.readiness import looks_like_epic
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import describe
from helix_tui.core.ddx.attempts.costs import format_sum, sum_calls
from helix_tui.core.ground.text import clean_line, counted, short_id, split_block
from helix_tui.core.ground.time import NS, format_age, parse_instant
from helix_tui.core.statements.why import Topic, explain
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import Line, Span, heading, packed, spread, wrap_spans
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Gesture, Row, Rows
from helix_tui.widgets.figures import look_of
from helix_tui.widgets.rows.bead import RowContext, age_of, sign_of
from helix_tui.widgets.text.markdown import prose, verbatim

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.attempt import Attempt

MAX_EVENTS = 60
"""How many events are listed, newest first; the last line says how many more there are."""

MAX_LINKS = 40
MANY_REFS = 8
MAX_LABEL_LINES = 3

_SHOWN_ELSEWHERE = frozenset(
    {"id", "title", "status", "priority", "issue_type", "labels", "parent", "dependencies", "owner", "notes"}
    | {"description", "acceptance", "events", "created_at", "updated_at", "schema_version"}
)

_LEADS: Mapping[Topic, str] = {
    "worker": "run",
    "claim": "claim",
    "but": "but",
    "because": "why",
    "attempt": "last",
    "cycle": "ring",
    "break": "cut",
    "blocks": "blocks",
}


class DetailFacts(Struct, frozen=True):
    """A bead with everything that the pane shows about it."""

    bead: Bead
    world: RowContext
    attempts: Sequence[Attempt] = ()
    """Newest first."""
    attached: Sequence[Mapping[str, Any]] = ()
    """Older events, stored outside the row."""
    causes: Sequence[str] = ()
    """Why HELIX or a person holds it, if that can be acted on."""
    of_parts: Sequence[Attempt] = ()
    """The attempts on its children, and on theirs."""


class ArchivedFacts(Struct, frozen=True):
    """A bead of ddx's archive: read-only."""

    bead: Bead
    world: RowContext
    attempts: Sequence[Attempt] = ()
    attached: Sequence[Mapping[str, Any]] = ()


class MissingFacts(Struct, frozen=True):
    """A bead that others wait on and that is missing from the tracker."""

    bead_id: str
    world: RowContext
    last_seen: str = ""
    """Where it was last seen, in words; empty while that is being looked up."""


class DetailView(RowList):
    """The pane. Its rows are lines of text; those that name a bead are links."""

    class BeadChosen(Gesture):
        """Enter on a line that names a bead."""

        def __init__(self, bead_id: str) -> None:
            super().__init__()
            self.bead_id = bead_id

    class AttemptChosen(Gesture):
        """Enter on a line that names an attempt."""

        def __init__(self, attempt_id: str) -> None:
            super().__init__()
            self.attempt_id = attempt_id

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, cursor_needs_focus=True)
        self._facts: DetailFacts | ArchivedFacts | MissingFacts | None = None
        self._id = ""

    def show_bead(self, facts: DetailFacts | ArchivedFacts | MissingFacts | None) -> None:
        """Show a bead, or nothing. The same bead keeps its scroll position."""
        bead_id = facts.bead_id if isinstance(facts, MissingFacts) else facts.bead.id if facts else ""
        other = bead_id != self._id
        self._facts, self._id = facts, bead_id
        self._layout(from_top=other)

    def on_resize(self) -> None:
        """Wrap the lines for the new width."""
        super().on_resize()
        self._layout(from_top=False)

    def _layout(self, *, from_top: bool) -> None:
        if not self.size.width:
            return
        rows: list[Row] = []
        if isinstance(self._facts, DetailFacts):
            rows = detail_rows(self._facts, self._text_width)
        elif isinstance(self._facts, ArchivedFacts):
            rows = archived_rows(self._facts, self._text_width)
        elif self._facts is not None:
            rows = missing_rows(self._facts, self._text_width)
        if from_top:
            self.empty()
        self.show(Rows(rows))

    @property
    def attempt_id(self) -> str:
        """The attempt that the line under the cursor names; empty for other lines."""
        kind, _, rest = (self.selected_key or "").partition(":")
        return rest if kind == "attempt" and self.has_focus else ""

    def action_open(self) -> None:
        """Go to the bead or the attempt that the line names."""
        kind, _, rest = (self.selected_key or "").partition(":")
        if kind == "to":
            self.post_message(self.BeadChosen(rest.partition(":")[2]))
        elif kind == "attempt":
            self.post_message(self.AttemptChosen(rest))


def detail_rows(facts: DetailFacts, width: int) -> list[Row]:
    """Every line of the pane, for a width."""
    bead, world = facts.bead, facts.world
    document = bead.document()
    rows = _Rows(width)
    rows.wrapped([(clean_line(bead.title, 2000) or "(no title)", "text bold")])
    _standing(rows, bead, world, facts.causes)
    rows.wrapped(_identity(bead, world))
    labels_cut = rows.labels(bead)
    _links(rows, bead, world)
    _texts(rows, facts, document)
    _fields(rows, document, {"labels"} if labels_cut else set())
    return rows.rows


def _texts(rows: _Rows, facts: DetailFacts | ArchivedFacts, document: Mapping[str, Any]) -> None:
    """Add its texts and attempts."""
    rows.verbatim("acceptance", document.get("acceptance"))
    description, memories = split_block(str(document.get("description") or ""))
    rows.prose("description", description)
    rows.prose("memories shown to the worker", memories)
    rows.prose("notes", document.get("notes"))
    if isinstance(facts, DetailFacts):
        _spent(rows, facts)
    _attempts(rows, facts)
    inline = document.get("events")
    _events(rows, [*facts.attached, *(inline if isinstance(inline, list) else ())], facts.world.now)


def archived_rows(facts: ArchivedFacts, width: int) -> list[Row]:
    """How an archived bead ended, what waits on it, and its text."""
    bead, rows = facts.bead, _Rows(width)
    rows.wrapped([(clean_line(bead.title, 2000) or "(no title)", "text bold")])
    rows.wrapped([(describe(bead).words, "text")])
    said = f"{clean_line(bead.id, 80)} · {clean_line(bead.issue_type, 40)} · P{bead.priority}"
    rows.wrapped([(said, "muted")])
    labels_cut = rows.labels(bead)
    waiting = facts.world.queue.graph.dependents.get(bead.id, ())
    if waiting:
        rows.section(f"blocks {len(waiting)}")
        said = "ddx does not look into the archive, so these beads never start. Remove the dependency: d on the bead."
        rows.wrapped([("? ", "error bold"), (said, "text")])
        for other in waiting[:MAX_LINKS]:
            rows.bead(other, facts.world, key="waited-on-by")
    document = bead.document()
    _texts(rows, facts, document)
    _fields(rows, document, {"labels"} if labels_cut else set())
    return rows.rows


def missing_rows(facts: MissingFacts, width: int) -> list[Row]:
    """What is known of a missing bead: what waits on it, where it was last seen."""
    rows = _Rows(width)
    rows.wrapped([(clean_line(facts.bead_id, 200), "text bold")])
    rows.line([])
    rows.wrapped([("? ", "error bold"), ("not in the tracker: beads that wait on it never become ready", "text")])
    rows.wrapped([("last ", "muted"), (facts.last_seen or "looking …", "text")])
    waiting = facts.world.queue.graph.dependents.get(facts.bead_id, ())
    if waiting:
        rows.section(f"blocks {len(waiting)}")
        for other in waiting[:MAX_LINKS]:
            rows.bead(other, facts.world, key="waited-on-by")
    return rows.rows


class _Rows:
    """Collects lines with keys that are stable over reloads."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: list[Row] = []
        self._section = ""
        self._line = 0

    def section(self, caption: str, right: str = "") -> None:
        """Begin a section."""
        if self.rows:
            self.line(())
        self._section, self._line = caption.partition(" ")[0], 0
        self.line(heading(caption, self.width, right), landmark=True)

    def line(self, spans: Line, key: str = "", *, landmark: bool = False) -> None:
        """Add one line, unwrapped."""
        self._line += 1
        leads = key.startswith(("to:", "attempt:"))
        self.rows.append(Row(key or f"{self._section}/{self._line}", tuple(spans), leads=leads, landmark=landmark))

    def wrapped(self, spans: Line) -> None:
        """Add a paragraph."""
        for line in wrap_spans(spans, self.width):
            self.line(line)

    def prose(self, caption: str, text: object) -> None:
        """Add a section of Markdown; nothing if the text is empty."""
        if isinstance(text, str) and text.strip():
            self.section(caption)
            for line in prose(text, self.width):
                self.line(line)

    def verbatim(self, caption: str, text: object) -> None:
        """Add a section of literal text; nothing if it is empty."""
        if isinstance(text, str) and text.strip():
            self.section(caption)
            for line in verbatim(text, self.width):
                self.line(line)

    def labels(self, bead: Bead) -> bool:
        """All labels in a few lines, or as many as fit and how many more; True if some were left out."""
        lines = packed([[(clean_line(label, 60), "edge")] for label in bead.labels], self.width)
        shown = (
            MAX_LABEL_LINES if len(lines) > MAX_LABEL_LINES + 1 else len(lines)
        )  # no extra line only to say that one is left out
        for line in lines[:shown]:
            self.line(line)
        left_out = sum((len(line) + 1) // 2 for line in lines[shown:])  # a label, a gap, a label …
        if left_out:
            self.line([(f"+{counted(left_out, 'label')} in the record below", "muted")])
        return bool(left_out)

    def bead(self, bead_id: str, world: RowContext, *, key: str) -> None:
        """Add a line that links to another bead."""
        bead = world.queue.beads.get(bead_id)
        key = f"to:{key}:{bead_id}"
        if bead is None:
            ink = "error" if key.startswith("to:blocked-by") else "muted"
            self.line([("? ", ink), (clean_line(bead_id, 80), "text"), (" is not in the tracker", ink)], key)
            return
        sign = sign_of(bead, world)
        spans: list[Span] = [(f"{sign.glyph} ", sign.ink), (short_id(clean_line(bead_id, 60)), "muted"), (" ", "text")]
        spans.append((clean_line(bead.title, 300), sign.title_ink))
        note = world.note_on(bead)
        self.line(spread(spans, [(note.text, note.role)] if note is not None else [], self.width), key)


def _identity(bead: Bead, world: RowContext) -> Line:
    parts = [clean_line(bead.id, 80), clean_line(bead.issue_type, 40), f"P{bead.priority}"]
    if bead.queue_rank is not None:
        parts.append(f"rank {bead.queue_rank}")
    if bead.owner:
        parts.append(f"owner {clean_line(bead.owner, 40)}")
    created, updated = age_of(bead, world.now), parse_instant(bead.updated_at)
    if created:
        parts.append(f"created {created} ago")
    if updated is not None:
        parts.append(f"updated {format_age((world.now - updated) / NS)} ago")
    return [(" · ".join(parts), "muted")]


def _standing(rows: _Rows, bead: Bead, world: RowContext, causes: Sequence[str]) -> None:
    queue, run, last = world.queue, world.runs.get(bead.id), ""
    for said in explain(bead, queue, runs=(run,) if run is not None else (), held=causes):
        if said.topic == "state":
            sign = sign_of(bead, world)
            # a dead worker's claim says nothing of whether ddx gives the bead out again
            text = said.text if run is None or run.live else f"{sign.word}, {said.text}"
            word, _, place = text.partition(",")
            rows.wrapped([(f"{sign.glyph} {word}", f"{sign.ink} bold"), (f",{place}" if place else "", "text")])
            continue
        lead, last = "and" if said.topic == last else _LEADS[said.topic], said.topic
        room = 600 if len(said.refs) <= MANY_REFS else 160  # the ids follow below, one per line
        rows.wrapped([(f"{lead:<7}", "muted"), (clean_line(with_titles(said.text, queue.beads), room), said.role)])


def _links(rows: _Rows, bead: Bead, world: RowContext) -> None:
    graph = world.queue.graph
    sections = (
        ("blocked by", bead.depends_on),
        ("blocks", graph.dependents.get(bead.id, ())),
        ("children", graph.children.get(bead.id, ())),
        ("part of", (bead.parent,) if bead.parent else ()),
        ("superseded by", (bead.superseded_by,) if bead.superseded_by else ()),
    )
    for caption, ids in sections:
        if not ids:
            continue
        rows.section(f"{caption} {len(ids)}" if len(ids) > 1 else caption, _share(caption, ids[0], world))
        # unfinished ones come first: it waits on those
        for other in sorted(ids[:MAX_LINKS], key=lambda other: _is_done(world, other)):
            rows.bead(other, world, key=caption.replace(" ", "-"))
        if len(ids) > MAX_LINKS:
            rows.line([(f"… {len(ids) - MAX_LINKS} more", "muted")])


def _share(caption: str, parent_id: str, world: RowContext) -> str:
    """How much of the parent is done, unless its line says so, as an epic's does."""
    parent = world.queue.beads.get(parent_id)
    if caption != "part of" or parent is None or looks_like_epic(parent):
        return ""
    done, of = world.queue.graph.progress(parent_id)
    return f"{done} of {of} closed"


def _is_done(world: RowContext, bead_id: str) -> bool:
    bead = world.queue.beads.get(bead_id)
    return bead is not None and bead.status == "closed"


def _spent(rows: _Rows, facts: DetailFacts) -> None:
    """What an epic has cost so far: the attempts on its children and on itself."""
    if facts.of_parts:
        attempts = (*facts.of_parts, *facts.attempts)
        sums = sum_calls(call for attempt in attempts for call in attempt.spent)
        rest = "" if sums.complete else "; ≥ because the cost of some is unknown"
        many = f" in {counted(len(attempts), 'attempt')} on it and its children{rest}"
        rows.wrapped([("spent  ", "muted"), (format_sum(sums), "text"), (many, "muted")])


def _attempts(rows: _Rows, facts: DetailFacts | ArchivedFacts) -> None:
    if not facts.attempts:
        return
    rows.section(f"attempts {len(facts.attempts)}")
    for attempt in facts.attempts[:MAX_LINKS]:
        look = look_of(attempt)
        rows.line(
            spread(
                [
                    (f"{look.glyph} ", look.ink),
                    (look.word, "text"),
                    (f"  {clean_line(attempt.model or attempt.harness, 24)}", "muted"),
                ],
                [(_figures(attempt, facts.world.now), "muted")],
                rows.width,
            ),
            key=f"attempt:{attempt.attempt_id}",
        )
    if len(facts.attempts) > MAX_LINKS:
        rows.line([(f"… {len(facts.attempts) - MAX_LINKS} more", "muted")])


def _figures(attempt: Attempt, now: int) -> str:
    duration = figures.short_span(attempt.duration_ms)
    tokens, cost = figures.tokens(attempt.sums.tokens), format_sum(attempt.sums)
    when = figures.day_or_time(attempt.finished_at or attempt.started_at, now)
    return f"{duration:>4} {tokens:>5} {cost:>6} {when:>7}"


def _events(rows: _Rows, events: Sequence[object], now: int) -> None:
    found = [event for event in events if isinstance(event, dict)]
    if not found:
        return
    rows.section(f"events {len(found)}", "newest first")
    # DDx appends them: the newest is at the end
    for event in list(reversed(found))[:MAX_EVENTS]:
        at = parse_instant(event.get("created_at"))
        ago = format_age((now - at) / NS) if at is not None else ""
        kind, summary = clean_line(event.get("kind"), 60), clean_line(event.get("summary"), 300)
        body = clean_line(event.get("body"), 200)
        rows.line([(f"{ago:>4} ", "muted"), (f"{kind or 'event'} ", "text bold"), (summary or body, "text")])
    if len(found) > MAX_EVENTS:
        rows.line([(f"… {len(found) - MAX_EVENTS} older", "muted")])


def _fields(rows: _Rows, document: Mapping[str, Any], cut_short: Set[str]) -> None:
    """Add all other fields of the record, known or not, and those shown shortened above: nothing is hidden."""
    others = sorted(key for key in document if key not in _SHOWN_ELSEWHERE or key in cut_short)
    if not others:
        return
    rows.section(f"record {len(others)} more field{'s' * (len(others) != 1)}")
    for key in others:
        value = document[key]
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:2000]
        rows.wrapped([(f"{clean_line(key, 80)}  ", "muted"), (clean_line(text, 600), "text")])


def as_markdown(bead: Bead, world: RowContext) -> str:
    """The bead as plain text to copy: title, facts, reasons, acceptance and description."""
    document, (state, *said) = bead.document(), explain(bead, world.queue)
    parts = [f"# {clean_line(bead.title)}", "", f"`{clean_line(bead.id)}` · {state.text} · P{bead.priority}"]
    parts += [f"- {each.text}" for each in said if each.topic == "because"]
    for name in ("acceptance", "description", "notes"):
        text = document.get(name)
        if isinstance(text, str) and text.strip():
            parts += ["", f"## {name.capitalize()}", "", *_block(text)]
    return "\n".join(parts) + "\n"


def _block(text: str) -> Iterable[str]:
    from helix_tui.core.ground.text import clean_block

    return clean_block(text).strip("\n").split("\n")
