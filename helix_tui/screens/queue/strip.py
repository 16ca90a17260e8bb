"""The digest of the queue below 40 columns: what runs, what is next, what needs me, and the counts.

Enter opens any of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.themes.roles import SIGNS, UNKNOWN, need_sign
from helix_tui.widgets.base.line import Span, Titles, cut, rule, spread, width_of
from helix_tui.widgets.base.row_source import Row, Rows
from helix_tui.widgets.rows.attempts import title_of, titles_of
from helix_tui.widgets.rows.bead import RowContext, note_of, sign_of

MAX_NEXT = 5
MAX_NEEDS = 200


def strip_rows(world: RowContext, needs: Sequence[Need], width: int) -> Rows:
    """The rows of the strip."""
    rows: list[Row] = []
    live = [bead_id for bead_id, run in world.runs.items() if run.live and bead_id in world.queue.beads]
    # a bead that waits for two reasons has one row, with the sign of the more urgent one
    by_bead: dict[str, list[Need]] = {}
    for need in needs[:MAX_NEEDS]:
        by_bead.setdefault(need.bead_id or need.key, []).append(need)
    first = {about: (each[0], len(each)) for about, each in by_bead.items()}
    upcoming = world.queue.ready[:MAX_NEXT]
    shown = {*live, *upcoming, *(need.bead_id for need, _ in first.values())} & world.queue.beads.keys()
    titles = titles_of(shown, world.queue.beads)
    for caption, ids in (("running", live), ("next", upcoming)):
        if ids:
            rows.append(Row(f"caption:{caption}", tuple(rule(caption, width)), selectable=False))
            rows += [_bead_row(bead_id, caption, world, titles, width) for bead_id in ids]
    if needs:
        rows.append(Row("caption:needs", tuple(rule("needs me", width, f"{len(needs)}")), selectable=False))
        rows += [_need_row(need, times, world, titles, width) for need, times in first.values()]
    rows.append(Row("caption:counts", tuple(rule("all", width, f"{len(world.queue.beads):,}")), selectable=False))
    for state, count in world.queue.counts().items():
        sign = SIGNS.get(state, UNKNOWN)
        rows.append(
            Row(f"count:{state}", ((f"{sign.glyph} ", sign.ink), (sign.word, "text")), ((f"{count:,}", "muted"),))
        )
    return Rows(rows)


def _bead_row(bead_id: str, caption: str, world: RowContext, titles: Titles, width: int) -> Row:
    bead = world.queue.beads[bead_id]
    sign, note = sign_of(bead, world), note_of(bead, world, brief=True)
    right = [(cut(note[0], width // 3), note[1])] if note else []
    title, ink = title_of(bead_id, world.queue.beads)
    room = width - 2 - (width_of(right) + 1 if right else 0)
    left: list[Span] = [(f"{sign.glyph} ", sign.ink), (titles.shortened(title, room), ink)]
    return Row(f"{caption}:{bead_id}", tuple(spread(left, right, width)))


def _need_row(need: Need, times: int, world: RowContext, titles: Titles, width: int) -> Row:
    """The row of a bead that needs somebody; with the number of its needs, so that the rows add up to the caption's."""
    bead = world.queue.beads.get(need.bead_id)
    said, ink_ = title_of(bead.id, world.queue.beads) if bead is not None else (clean_line(need.reason, 200), "text")
    key = f"need:{need.bead_id}" if bead is not None else f"need:{need.key}"
    glyph, ink, _ = need_sign(need.kind)
    right: list[Span] = [(f"{times}×", "muted")] if times > 1 else []
    room = width - 2 - (width_of(right) + 1 if right else 0)
    return Row(key, tuple(spread([(f"{glyph} ", ink), (titles.shortened(said, room), ink_)], right, width)))
