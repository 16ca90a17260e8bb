"""A planned change in words: its commands, what would follow, and how it could be taken back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.editing.contrast import shown
from helix_tui.core.editing.execute.dropped_lines import unread_warning
from helix_tui.core.editing.plan.planner import Plan
from helix_tui.core.editing.preview.whatif import Consequences
from helix_tui.core.editing.undo.conflicts import Difference
from helix_tui.core.ground.text import clean_block, clean_line, short_id
from helix_tui.screens.editing.change_runner import Preview
from helix_tui.widgets.base.line import Line, Span
from helix_tui.widgets.forms.page import Page

WHOLE = 6
"""Commands that are written out; of more only this many stand above what follows from them."""

MOST = 12
"""Beads of one kind that are named one by one."""


ROOMY = 58
"""Cells from which a line has room for an id beside a title."""


def tell_outlook(page: Page, outlook: Preview) -> None:
    """Everything about a change that has not run."""
    plan = outlook.plan
    if not plan.steps and not plan.refusals:
        page.paragraph([("Nothing to do: ", "muted"), (clean_line(plan.title, 300), "text")])
        return
    for refusal in plan.refusals[:MOST]:
        page.paragraph([("✗ ", "error bold"), (clean_line(refusal.why, 600), "error")], 2)
    if len(plan.refusals) > MOST:
        page.paragraph([(f"✗ and {len(plan.refusals) - MOST:,} more", "error")])
    if not plan.steps:
        return
    _places(page, outlook.follows, outlook.queue_state.queue)
    tell_commands(page, plan)
    for note in plan.notes:
        page.paragraph([("◆ ", "attention"), (clean_line(note, 600), "text")], 2)
    for warning in unread_warning(outlook.queue_state.tracker, outlook.embedded):
        page.paragraph([("◆ ", "attention"), (warning, "attention")], 2)
    tell_follows(page, outlook.follows, outlook.queue_state.queue)
    tell_way_back(page, plan)
    if len(plan.lines) > WHOLE:
        page.caption("all commands", f"{len(plan.lines):,}")
        for line in plan.lines:
            page.line([(clean_line(line, 1_000), "text")])


def tell_commands(page: Page, plan: Plan) -> None:
    """The commands as one would type them."""
    if len(plan.lines) > WHOLE:
        for line in plan.lines[: WHOLE // 2]:
            page.line([("$ ", "running"), (clean_line(line, 1_000), "text bold")])
        page.line([(f"  and {len(plan.lines) - WHOLE // 2:,} more, all of them below", "muted")])
        return
    for line in plan.lines:
        for number, part in enumerate(clean_block(line, 4_000).split("\n")):
            page.paragraph([("  " if number else "$ ", "running"), (part, "text bold")], 2)


def tell_follows(page: Page, follows: Consequences, queue: Queue) -> None:
    """What would become of the queue."""
    before, after = follows.ready
    page.caption("what follows", f"{before:,} ready, then {after:,}" if before != after else f"{before:,} ready")
    if follows.order:
        page.paragraph([(follows.order, "muted")])
    if not follows:
        return
    _beads(page, "+ ready", "success", follows.newly_ready, queue)
    _beads(page, "− ready", "waiting", follows.newly_blocked, queue)
    for bead_id, status in follows.falls.items():
        fallen = f"✓ {clean_line(status, 20)} by ddx itself  "
        page.line([(fallen, "muted"), _title(bead_id, queue)], _ident(page, bead_id))
    for cycle in follows.cycles:
        ring = " → ".join(clean_line(bead_id, 60) for bead_id in (*cycle, cycle[0]))
        page.paragraph([("↻ wait in a circle: ", "error bold"), (ring, "error")], 2)
    for orphan in follows.orphaned[:MOST]:
        who = f"{short_id(clean_line(orphan.bead_id, 60))} "
        why = f" would wait on {short_id(clean_line(orphan.waits_on, 60))}, which {orphan.why}"
        named: Line = [(who, "muted"), _title(orphan.bead_id, queue), (why, "attention")]
        page.paragraph([("◆ ", "attention bold"), *named], 2)
    if len(follows.orphaned) > MOST:
        page.line([(f"◆ and {len(follows.orphaned) - MOST:,} more that would wait for ever", "attention")])
    if follows.next_before != follows.next_after:
        _next(page, follows, queue)


def _places(page: Page, follows: Consequences, queue: Queue) -> None:
    """First the changed beads themselves: where each is picked now, and then."""
    alone = len(follows.places) == 1
    for place in follows.places[:MOST]:
        title = _title(place.bead_id, queue)
        lead: Span = ("this bead  " if alone else "", "muted")
        page.line([lead, title], _ident(page, place.bead_id))
        page.paragraph([("  ", "muted"), (str(place), "text bold")], 2)
    if len(follows.places) > MOST:
        page.line([(f"and {len(follows.places) - MOST:,} more beads", "muted")])


def _beads(page: Page, word: str, ink: str, ids: Sequence[str], queue: Queue) -> None:
    for bead_id in ids[:MOST]:
        page.line([(f"{word}  ", ink), _title(bead_id, queue)], _ident(page, bead_id))
    if len(ids) > MOST:
        page.line([(f"{word}  ", ink), (f"and {len(ids) - MOST:,} more", "muted")])


def _title(bead_id: str, queue: Queue) -> Span:
    bead = queue.beads.get(bead_id)
    return clean_line(bead.title, 200) if bead is not None else "the new bead", "text"


def _ident(page: Page, bead_id: str, note: str = "") -> Line:
    """At the right: a note, and the id where there is room for it."""
    ident = f"  {short_id(clean_line(bead_id, 60)):>12}" if page.width >= ROOMY else ""
    return [(note, "muted"), (ident, "muted")]


def _next(page: Page, follows: Consequences, queue: Queue) -> None:
    """The next ten as they would be, each with the place that it has now."""
    was = {bead_id: place for place, bead_id in enumerate(queue.ready, 1)}
    page.caption("next, in this order")
    for place, bead_id in enumerate(follows.next_after, 1):
        before = was.get(bead_id)
        moved: Span = ("  ", "text")
        if before is None:
            moved = ("+ ", "success bold")
        elif before != place:
            moved = ("↑ ", "success") if before > place else ("↓ ", "waiting")
        note = f"was {before}" if before is not None and before != place else ""
        page.line([(f"{place:>2} ", "muted"), moved, _title(bead_id, queue)], _ident(page, bead_id, note))


def tell_way_back(page: Page, plan: Plan) -> None:
    """Whether it could be taken back, and what would stay."""
    if plan.kind in ("undo", "redo"):
        return
    if not plan.undoable:
        lost = clean_line("; ".join(plan.back.lost), 400)
        page.paragraph([("Cannot be undone: ", "attention bold"), (lost, "attention")], 2)
    else:
        page.paragraph([(f"Undo with u{told_way_back(plan)}", "muted")], 2)
        for trace in plan.back.traces[:MOST]:
            page.paragraph([(f"  {clean_line(trace, 300)}", "muted")], 2)


def told_way_back(plan: Plan) -> str:
    """By which commands it would be undone, to end a sentence."""
    lines = plan.way_back
    if len(lines) == 1:
        return f": {clean_line(lines[0], 600)}"
    return f" by {len(lines):,} commands, the first: {clean_line(lines[0], 600)}" if lines else ""


def tell_differences(page: Page, found: Iterable[Difference], mine: str = "expected") -> None:
    """Both versions of everything that somebody changed, one above the other."""
    by_bead: dict[str, list[Difference]] = {}
    for each in found:
        by_bead.setdefault(each.bead_id, []).append(each)
    for bead_id, differing in by_bead.items():
        page.caption(clean_line(bead_id, 80))
        for each in differing:
            page.paragraph([(clean_line(each.field, 60), "text bold")])
            _version(page, mine, "muted", each.field, each.ours)
            _version(page, "now", "attention", each.field, each.theirs)


def _version(page: Page, word: str, ink: str, field: str, value: Any) -> None:
    text = clean_block(value, 4_000) if isinstance(value, str) else shown(field, value, 4_000)
    for number, line in enumerate(text.split("\n")):
        page.paragraph([(f"  {'' if number else word:<10}", ink), (line, "text")], 12)
