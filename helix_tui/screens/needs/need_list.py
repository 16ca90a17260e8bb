"""The list of *Needs me*: groups, folds, marks, the filter, and what is said below the row under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual import on

from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.decide.need_actions import ActionId, senseless
from helix_tui.core.supervision.decide.need_view import (
    NeedFilter,
    NeedGroup,
    filter_ways,
    grouped,
)
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.core.supervision.signals.hold import drifted, stale
from helix_tui.keymap import BY_ID, shown
from helix_tui.screens.editing.keys import BeadKeys
from helix_tui.screens.editing.marks import MARKED, PENDING
from helix_tui.screens.filter import FilteringScreen
from helix_tui.screens.needs.rows import KEYS, SNOOZED, NeedRow, NeedRows, need_rows
from helix_tui.screens.sheet import OverlayScreen
from helix_tui.screens.status_bar_model import counts_of
from helix_tui.widgets.base.line import Line, Span, wrap_spans
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Row, Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from helix_tui.core.beads.query import Completion
    from helix_tui.core.ddx.attempts.attempt import Attempt
    from helix_tui.core.snapshot import Change, Snapshot
    from helix_tui.screens.needs.actions import BesideQueue

REASON_SHARE = 3
"""What is said of the selected row takes at most one part of so many of the screen, below the list."""


class NeedList(BeadKeys, FilteringScreen, OverlayScreen):
    """What waits on a person as rows; what the keys do about it is `NeedsScreen`'s."""

    TITLE_TEXT = "needs me"
    FOOTER = ("needs.snooze", "change.mark", "find.filter", "change.undo", "app.help")

    def __init__(self) -> None:
        super().__init__()
        self.reason = RowList(id="reason")
        self.reason.can_focus = False
        self.marked: frozenset[str] = frozenset()
        self._anchor: str | None = None
        self._folded: set[str] = {SNOOZED}
        self._unfolded: set[str] = set()
        self._filter = NeedFilter("")
        self._rows: dict[str, NeedRow] = {}
        self._undo: list[BesideQueue] = []
        """What was done here beside the queue, the latest last."""
        self._redo: list[BesideQueue] = []
        """What of it was undone since, the latest last."""
        self._begun = False
        """Everything was looked at once, so that the cursor is its user's."""
        self._placed = ""
        """Where the cursor was put meanwhile."""

    def compose_body(self) -> ComposeResult:
        """The list, and what there is to say of its row."""
        yield self.list
        yield self.reason

    # --- what is shown --------------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """The groups, the most urgent first; in each what holds up and has cost most."""
        now, queue = self.console.now(), snapshot.queue
        needs, snoozed = self.console.needs, self.console.snoozed
        passing = self._filter.passing(needs, queue, now)
        groups = list(grouped(passing, now))
        if away := self._filter.passing(snoozed, queue, now):
            groups.append(NeedGroup(SNOOZED, away, ()))
        rows = need_rows(groups, self._folded, self._unfolded)
        was = self.row
        self._rows = {row.key: row for row in rows}
        self._caption(snapshot, len(needs), len(passing), len(snoozed))
        if rows:
            keymap = self.console.keymap
            source = NeedRows(rows, queue, now=now, keymap=keymap, closed=self._folded, without=self._without)
            self.list.show(source)
            self._to_need(rows, was)
        else:
            self.list.show(Rows([Row("none", (self._empty(snapshot),), selectable=False)]))
        self.marked &= {need.key for need in (*needs, *snoozed)}
        self._flag()
        self.say_row()

    def _caption(self, snapshot: Snapshot, all_: int, passing: int, snoozed: int) -> None:
        count = f"{passing:,} of {all_:,}" if self._filter.text else f"{all_:,}" if all_ else ""
        parts = (f"{len(self.marked):,} marked" if self.marked else "", f"{snoozed:,} snoozed" if snoozed else "")
        counts = counts_of(snapshot.queue, self.console.status_summary)
        said = (*parts, str(counts) if snapshot.condition in ("live", "empty") else "")
        lead = f"/ {clean_line(self._filter.text, 80)}" if self._filter.text else ""
        self.caption.show(" ".join(filter(None, (self.TITLE_TEXT, count, lead))), " · ".join(filter(None, said)))

    def _empty(self, snapshot: Snapshot) -> Span:
        if snapshot.condition not in ("live", "empty"):
            return ("  no queue", "muted")
        return ("  nothing matches: esc shows all" if self._filter.text else "  nothing waits for you", "muted")

    def _to_need(self, rows: Sequence[NeedRow], was: NeedRow | None) -> None:
        """The cursor stands on a need where it stood on one that is gone, and at first on the most urgent one."""
        begins, self._begun = not self._begun, self.console.has_looked and self.console.snapshot.attempts_read
        gone = was is None or (was.kind == "need" and was.key not in self._rows)
        here = self.list.selected_index
        if begins and (was is None or was.key == self._placed):
            here = 0
        elif not gone or not 0 <= here < len(rows) or rows[here].kind != "group":
            return
        after = next((row for row in rows[here:] if row.kind == "need"), None)
        if after is not None:
            self._placed = after.key
            self.list.select(after.key)

    def show_ages(self) -> None:
        """The ages in the rows."""
        self.show_again()

    def show_again(self) -> None:
        from helix_tui.core.snapshot.snapshot import Change

        self.show_snapshot(self.console.snapshot, Change())

    @property
    def row(self) -> NeedRow | None:
        """The row under the cursor."""
        return self._rows.get(self.list.selected_key or "")

    @property
    def need(self) -> Need | None:
        """The need under the cursor; None on a heading of several."""
        row = self.row
        return row.needs[0] if row is not None and (row.kind == "need" or len(row.needs) == 1) else None

    def chosen(self) -> tuple[Need, ...]:
        """What a key acts on: what is marked, else the row, all of a group from its heading."""
        if self.marked:
            return tuple(each for each in (*self.console.needs, *self.console.snoozed) if each.key in self.marked)
        return self.row.needs if self.row is not None else ()

    def bead_ids(self) -> tuple[str, ...]:
        """The beads of what a key acts on."""
        return tuple(dict.fromkeys(need.bead_id for need in self.chosen() if need.bead_id))

    def on_resize(self) -> None:
        """The reason breaks elsewhere."""
        self.say_row()

    @on(RowList.Selected, "#overlay")
    def say_row(self) -> None:
        """Below the list: the reason in full, and each action with what it does; the first of them in the footer."""
        if self._anchor is not None:
            self.mark(self._range())
        row = self.row
        width = max(16, self.app.size.width - 2)
        rows = [] if row is None else self._about(row, width)
        self.reason.styles.height = min(len(rows), max(2, self.app.size.height // REASON_SHARE))
        self.reason.display = bool(rows)
        self.reason.show(Rows(rows))
        keys = [f"{KEYS[each.id]}={each.label}" for each in self._offered(row)[:2]]
        self.footer.show((*keys, *self.FOOTER) if self._rows else ("go.back", "app.help"))

    def _about(self, row: NeedRow, width: int) -> list[Row]:
        lines: list[Line] = []
        if row.kind == "need":
            lines += wrap_spans([(clean_line(row.needs[0].reason, 2_000), "text")], width)
        for action in self._offered(row) if width >= 60 else ():
            key = shown(BY_ID[KEYS[action.id]], self.console.keymap)
            lines.append([(f"{key:<6}", "running"), (f"{action.label}  ", "text"), (action.effect, "muted")])
        return [Row(f"{place}", tuple(line), selectable=False) for place, line in enumerate(lines)]

    def _offered(self, row: NeedRow | None) -> tuple[Any, ...]:
        if row is None or row.group == SNOOZED:
            return ()
        return row.actions(self._without)

    def _without(self, need: Need) -> frozenset[ActionId]:
        """What makes no sense for a need as it is now."""
        held = need.kind == "drift" and not self.may_be_held(need)
        return frozenset({"hold"}) if held else senseless(need, self._attempt(need))

    def may_be_held(self, need: Need) -> bool:
        """Whether workers are still to be kept off a drifted bead."""
        queue, watch = self.console.snapshot.queue, self.console.monitor
        drift = watch.concerns.drift if watch is not None else ()
        return need.bead_id in queue.beads and need.bead_id in stale(drift) - set(drifted(queue))

    def _attempt(self, need: Need) -> Attempt | None:
        """The attempt that a need is about."""
        return self.console.snapshot.attempts.get(need.attempt_id) if need.attempt_id else None

    # --- marks and folds ------------------------------------------------------------------------------------

    def action_mark(self) -> None:
        """Mark or unmark the row, a heading for all of its group, and go on to the next."""
        row = self.row
        if row is None:
            return
        self._anchor = None
        keys = {need.key for need in row.needs}
        self.mark(self.marked - keys if keys <= self.marked else self.marked | keys)
        self.list.action_cursor_down()

    def action_mark_range(self) -> None:
        """Begin a range under the cursor, or end the one that is being drawn."""
        if self._anchor is not None:
            self._anchor = None
        elif self.row is not None:
            self._anchor = self.row.key
            self.mark(self._range())

    def _range(self) -> frozenset[str]:
        keys = list(self._rows)
        here = self.list.selected_key
        if self._anchor not in keys or here not in keys:
            return self.marked
        first, last = sorted((keys.index(self._anchor), keys.index(here)))
        rows = [self._rows[key] for key in keys[first : last + 1]]
        drawn = (need.key for row in rows if row.kind != "group" or len(rows) == 1 for need in row.needs)
        return self.marked | frozenset(drawn)

    def mark(self, keys: frozenset[str]) -> None:
        if keys != self.marked:
            self.marked = keys
            self._flag()
            snapshot = self.console.snapshot
            passing = len(self._filter.passing(self.console.needs, snapshot.queue, self.console.now()))
            self._caption(snapshot, len(self.console.needs), passing, len(self.console.snoozed))

    def _flag(self) -> None:
        changing = set(self.console.change_runner.pending) if self.may_write() else set()
        flags: dict[str, Span] = {}
        for key, row in self._rows.items():
            if row.kind == "need" and row.needs[0].bead_id in changing:
                flags[key] = PENDING
            elif row.needs and {need.key for need in row.needs} <= self.marked:
                flags[key] = MARKED
        self.list.flag(flags)

    def may_write(self) -> bool:
        return not self.console.read_only

    def show_pending(self, beads: Any, work: str) -> None:
        """A sign on the rows that are being changed."""
        super().show_pending(beads, work)
        self._flag()

    def after_change(self, beads: tuple[str, ...], created: tuple[str, ...]) -> None:
        """What was done to marked rows is done: their marks go; the cursor stays."""
        del created
        gone = {need.key for need in self.console.needs if need.bead_id in beads}
        self._anchor = None
        self.mark(self.marked - gone)
        self._undo.clear()
        self._redo.clear()

    def action_fold(self) -> None:
        """Fold the group under the cursor."""
        if (row := self.row) is not None:
            self._unfolded.discard(row.group)
            self._folded.add(row.group)
            self.show_again()
            self.list.select(f"group:{row.group}")

    def action_unfold(self) -> None:
        """Show the group under the cursor, the old ones too where it is shown already."""
        if (row := self.row) is not None:
            if row.group in self._folded:
                self._folded.discard(row.group)
            else:
                self._unfolded.add(row.group)
            self.show_again()

    def action_next_part(self) -> None:
        """To the heading of the next group."""
        self._to_group(1)

    def action_previous_part(self) -> None:
        """To the heading of the group before."""
        self._to_group(-1)

    def _to_group(self, step: int) -> None:
        keys = list(self._rows)
        heads = [place for place, row in enumerate(self._rows.values()) if row.kind == "group"]
        here = self.list.selected_index
        ahead = [place for place in heads if (place > here if step > 0 else place < here)]
        if ahead:
            self.list.select(keys[ahead[0] if step > 0 else ahead[-1]])

    async def action_back(self) -> None:
        """Drop marks, then the filter, then leave."""
        if self.marked:
            self._anchor = None
            self.mark(frozenset())
        elif self._filter.text:
            self.filter_with("")
        elif len(self.app.screen_stack) == 1:  # the console began here
            self.app.call_later(self.app.run_action, "show_screen('queue')")
        else:
            await super().action_back()

    # --- the filter -----------------------------------------------------------------------------------------

    @property
    def filter_text(self) -> str:
        """The filter in force."""
        return self._filter.text

    def _parsed(self, text: str) -> NeedFilter:
        return NeedFilter(text, me=self._me)

    @property
    def _me(self) -> str:
        return str(self.console.change_runner.curator.me.user) if self.may_write() else ""

    def ways_on(self, text: str, cursor: int) -> Sequence[Completion]:
        """Ways to go on typing."""
        return filter_ways(text, cursor, self.console.needs, self.console.snapshot.queue)

    def filter_problem(self, text: str) -> str:
        """What of a text is not understood."""
        return self._parsed(text).problem

    def filter_with(self, text: str) -> None:
        """Show what passes."""
        self._filter = self._parsed(text)
        self.show_again()

    def has_matches(self) -> bool:
        """Whether anything passes the filter in force."""
        return bool(self._rows)

    def filter_count(self) -> str:
        """How many of how many pass."""
        passing = self._filter.passing(self.console.needs, self.console.snapshot.queue, self.console.now())
        return f"{len(passing):,} of {len(self.console.needs):,}"
