"""Below 40 columns: the counts, what runs, what is next, what needs me. Enter opens any of it.

Where a missing bead was last seen, in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from helix_tui.core.ddx.history import BeadHistory
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, format_age
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.themes.roles import SIGNS, UNKNOWN
from helix_tui.widgets.base.line import Span, cut, rule, spread
from helix_tui.widgets.base.row_source import Row, Rows
from helix_tui.widgets.rows.attempts import title_of
from helix_tui.widgets.rows.bead import RowContext, note_of, sign_of

MOST_NEXT = 5
MOST_GONE = 2
"""Dead runs that are named: any number of them lies below what is next otherwise."""
MOST_NEEDS = 200


def strip_rows(world: RowContext, needs: Sequence[Need], width: int) -> Rows:
    """The rows of the strip."""
    rows: list[Row] = []
    running, gone = _running(world)
    for caption, ids in (("running", running), ("next", world.queue.ready[:MOST_NEXT])):
        if ids:
            rows.append(Row(f"caption:{caption}", tuple(rule(caption, width)), selectable=False))
            rows += [_bead_row(bead_id, caption, world, width) for bead_id in ids]
        if caption == "running" and gone:
            rows.append(Row("more:running", ((f"! {gone:,} more gone", "error"),)))
    if needs:
        rows.append(Row("caption:needs", tuple(rule("needs me", width, f"{len(needs)}")), selectable=False))
        first: dict[str, Need] = {}
        for need in needs[:MOST_NEEDS]:
            first.setdefault(need.bead_id or need.key, need)
        rows += [_need_row(need, world) for need in first.values()]
    rows.append(Row("caption:counts", tuple(rule("all", width, f"{len(world.queue.beads):,}")), selectable=False))
    for state, count in world.queue.counts().items():
        sign = SIGNS.get(state, UNKNOWN)
        rows.append(
            Row(
                f"count:{state}",
                ((f"{sign.glyph} ", sign.ink), (sign.word, "text")),
                ((f"{count:,}", "muted"),),
            )
        )
    return Rows(rows)


def _running(world: RowContext) -> tuple[list[str], int]:
    """The beads of live runs and of the first dead ones, and how many dead ones that leaves out."""
    known = [bead_id for bead_id in world.runs if bead_id in world.queue.beads]
    live = [bead_id for bead_id in known if world.runs[bead_id].live]
    gone = [bead_id for bead_id in known if not world.runs[bead_id].live]
    return live + gone[:MOST_GONE], len(gone[MOST_GONE:])


def _bead_row(bead_id: str, caption: str, world: RowContext, width: int) -> Row:
    bead = world.queue.beads[bead_id]
    sign, note = sign_of(bead, world), note_of(bead, world, brief=True)
    left: list[Span] = [(f"{sign.glyph} ", sign.ink), title_of(bead_id, world.queue.beads)]
    right = [(cut(note[0], width // 3), note[1])] if note else []
    return Row(f"{caption}:{bead_id}", tuple(spread(left, right, width)))


def _need_row(need: Need, world: RowContext) -> Row:
    bead = world.queue.beads.get(need.bead_id)
    said = title_of(bead.id, world.queue.beads) if bead is not None else (clean_line(need.reason, 200), "text")
    key = f"need:{need.bead_id}" if bead is not None else f"need:{need.key}"
    from helix_tui.screens.needs.rows import WORDS  # only where something waits

    glyph, ink, _ = WORDS.get(need.kind, ("◆", "attention bold", ""))
    return Row(key, ((f"{glyph} ", ink), said))


@lru_cache(maxsize=4)
def _history(project: Project) -> BeadHistory:
    return BeadHistory(project)


def last_seen_words(project: Project, bead_id: str, now: int) -> str:
    """One sentence. This may run git: call it from a worker."""
    seen = _history(project).last_seen(bead_id)
    if seen is None:
        return "neither the archive nor the git history knows it"
    age = f", {format_age((now - seen.when) / NS)} ago" if seen.when is not None else ""
    where = "in the archive" if seen.where == "archive" else f"in git before {seen.rev[:8]}"
    return f"{where} as {clean_line(seen.status, 30)}{age}: {clean_line(seen.title, 200)}"
