"""The list of *Needs me*: a heading per group, a line per need in columns, folds, marks, the filter, and the text
below the row under the cursor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from rich.cells import cell_len
from textual import on

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.core.ground.time import NS, format_age
from helix_tui.core.supervision.decide import need_view
from helix_tui.core.supervision.decide.monitor import Concerns
from helix_tui.core.supervision.decide.need_kinds import KINDS, ActionId, KindName, NeedAction
from helix_tui.core.supervision.decide.need_view import NeedContext, NeedGroup, Without, need_filter, stake
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.core.supervision.signals.kept_changes import hold_reasons
from helix_tui.core.supervision.signals.questions import MAX_QUESTION
from helix_tui.keymap import BY_ID, shown
from helix_tui.screens.editing.keys import MARKED, PENDING, BeadKeys
from helix_tui.screens.filter import NeedViewKeys
from helix_tui.screens.sheet import OverlayScreen
from helix_tui.screens.status_bar_model import counts_of
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import (
    Line,
    Span,
    column,
    cut,
    fit,
    heading,
    packed,
    spread,
    unpadded,
    width_of,
    wrap_spans,
)
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import KeyedRows, Row, Rows

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from helix_tui.core.beads.filter_language import Completion, Filter
    from helix_tui.core.ddx.attempts.attempt import Attempt
    from helix_tui.core.snapshot.snapshot import Change, Snapshot
    from helix_tui.screens.needs.actions import BesideQueue

KEYS: Mapping[ActionId, str] = {
    "answer": "go.open",
    "lines": "go.open",
    "accept": "needs.accept",
    "reject": "needs.reject",
    "retry": "needs.retry",
    "land": "needs.land",
    "release": "change.claim",
    "resolve": "change.edit",
    "undepend": "change.depend",
    "hold": "change.eligible",
    "loop": "go.steer",
}
"""The key, in the registry, of each action."""

SNOOZED = "snoozed"
MIN_REASON_WIDTH = 90
"""The width from which every row has a column for its reason."""

_USD, _AGE, _WHO = 8, 5, 12
_WORD = 16

RowKind = Literal["group", "need", "fold"]

REASON_SHARE = 3
"""The text about the selected row takes at most this fraction (1/n) of the screen."""


class NeedRow(Struct, frozen=True):
    """One row: a heading, a need, or what is folded away."""

    kind: RowKind
    group: str
    needs: tuple[Need, ...]

    @property
    def key(self) -> str:
        """Unique in the list and stable over reloads."""
        return self.needs[0].key if self.kind == "need" else f"{self.kind}:{self.group}"

    def actions(self, without: Without) -> tuple[NeedAction, ...]:
        """Its actions; a snoozed need has none."""
        return need_view.shared_actions(self.needs, without) if self.group != SNOOZED else ()


def need_rows(
    groups: Sequence[NeedGroup], closed: Collection[str], unfolded: Collection[str], *, lines: int = 0
) -> tuple[NeedRow, ...]:
    """The rows of some groups.

    Args:
        groups: all groups, the most urgent first.
        closed: groups whose heading alone is shown.
        unfolded: groups whose old needs are shown too.
        lines: how many rows fit; spare rows go to old needs of the first groups.
    """
    # lines left over once every group shows its minimum
    left = lines - sum(1 if group.name in closed else 1 + len(group.shown) + bool(group.folded) for group in groups)
    rows: list[NeedRow] = []
    for group in groups:
        rows.append(NeedRow("group", group.name, group.needs))
        if group.name in closed:
            continue
        more = len(group.folded)
        if group.name not in unfolded and more - 1 > left:
            # at least two stay folded: a line saying "1 more" would take as much room as the row itself
            more = max(0, min(left, more - 2))
        left -= more - (more == len(group.folded) > 0)  # the line that counts them is in it
        rows += [NeedRow("need", group.name, (need,)) for need in (*group.shown, *group.folded[:more])]
        if rest := group.folded[more:]:
            rows.append(NeedRow("fold", group.name, rest))
    return tuple(rows)


class NeedRows(KeyedRows[NeedRow]):
    """The rows of *Needs me*; the selected one has a second line with its actions and keys."""

    def __init__(
        self,
        rows: tuple[NeedRow, ...],
        queue: Queue,
        *,
        now: int,
        keymap: Mapping[str, str],
        closed: Collection[str],
        without: Without,
    ) -> None:
        super().__init__(rows)
        self._queue, self._now, self._keymap, self._without = queue, now, keymap, without
        self._closed = frozenset(closed)
        needs = [need for row in rows for need in row.needs]
        kinds: dict[str, set[KindName]] = {}
        for row in rows:
            kinds.setdefault(row.group, set()).update(need.kind for need in row.needs)
        # there are two kinds of stale claims, handled alike
        self._mixed = {group for group, found in kinds.items() if len(found) > 1} - {"stale claims"}
        """Groups whose rows show their kind; elsewhere the heading does."""
        said = [KINDS[kind].word for group in self._mixed for kind in kinds[group]]
        self._word = min(_WORD, max(map(cell_len, said), default=0) + 2)
        self._has_usd = any(need.usd for need in needs)
        about = [queue.beads[need.bead_id] for need in needs if need.bead_id in queue.beads]
        self._title_cells = max((cell_len(clean_line(bead.title, 300)) for bead in about), default=0)
        self._reason_cells = max((cell_len(_beside(need, "", "")) for need in needs if need.bead_id), default=0)
        self._stake = max((len(stake(need)) for need in needs if need.waiting), default=0)
        self._has_who = any(need.assigned for need in needs)

    def heads(self, index: int) -> bool:
        return self.rows[index].kind == "group"

    def text(self, index: int) -> str:
        row = self.rows[index]
        if row.kind != "need":
            return ""
        need = row.needs[0]
        return f"{need.bead_id} {title_of(need, self._queue)} {need.reason}"

    def paint(self, index: int, width: int) -> Line:
        row = self.rows[index]
        if row.kind == "group":
            return self._heading(row, width)
        if row.kind == "fold":
            words = f"  … {len(row.needs):,} more, older than 7 d"
            return fit([(words + self._sums(row, width - cell_len(words)), "muted")], width)
        return self._need(row.needs[0], width, row.group)

    def _heading(self, row: NeedRow, width: int) -> Line:
        sign: list[Span] = [("▸ ", "running")] if row.group in self._closed else []
        count = f"{len(row.needs):,}"
        room = width - width_of(sign)
        sums = self._sums(row, room - cell_len(row.group) - cell_len(count) - 2)
        return [*sign, *heading(row.group, room, beside=count + sums)]

    def _sums(self, row: NeedRow, room: int) -> str:
        """What a row's needs block and have cost together; a figure is whole or not there."""
        usd = sum(need.usd or 0 for need in row.needs)
        most = max((need.waiting for need in row.needs), default=0)
        said = [f"worst one blocks {most:,}"] if most else []
        said += [_money(usd, all(need.usd_complete for need in row.needs))] if usd else []
        while said and cell_len(" · ".join(said)) + 2 > room:
            said.pop(0)
        return f"  {' · '.join(said)}" if said else ""

    def _need(self, need: Need, width: int, group: str) -> Line:
        kind = KINDS[need.kind]
        spans: list[Span] = [(f"{kind.glyph} ", kind.ink)]
        right = self._figures(need, width)
        room = width - width_of(spans) - width_of(right) - 1
        title = title_of(need, self._queue)
        word: list[Span] = []
        if width >= 60 and group in self._mixed:
            word = [(column(kind.word, self._word), kind.ink.removesuffix(" bold"))]
        bead = self._queue.beads.get(need.bead_id)
        if width < MIN_REASON_WIDTH or not need.bead_id:
            spans += word
            spans.append((title, "text"))
        else:
            share = min(max(28, room * 11 // 20, room - self._reason_cells), self._title_cells + 2)
            named = clean_line(bead.title, 300) if bead is not None else f"{short_id(need.bead_id)} not in the tracker"
            spans.append((column(cut(named, share - 2), share), "text" if bead is not None else "muted"))
            spans += [*word, (_beside(need, kind.word, named), "muted")]
        return spread(spans, unpadded(right), width)

    def _figures(self, need: Need, width: int) -> list[Span]:
        """What decides its place, in columns: what it blocks, what it has cost, how long it has waited."""
        age = format_age((self._now - need.since) / NS) if need.since is not None else ""
        bead = self._queue.beads.get(need.bead_id)
        spans: list[Span] = []
        if self._has_who and width >= 100:
            spans.append((clean_line(need.assigned, _WHO - 2).rjust(_WHO), "running"))
        if self._stake and width >= 48:
            words = stake(need) if width >= 72 else (f"▸{need.waiting}" if need.waiting else "")
            spans.append((words.rjust(self._stake + 2 if width >= 72 else 5), "attention" if need.waiting else "muted"))
        if self._has_usd and width >= 80:
            spans.append((_money(need.usd, need.usd_complete).rjust(_USD), "text"))
        if width >= 60:
            spans.append((f"P{bead.priority}".rjust(4) if bead is not None else "    ", "muted"))
        spans.append((age.rjust(_AGE), "muted"))
        return spans

    def paint_more(self, index: int, width: int) -> Sequence[Line]:
        """Its id, and its actions with their keys, on as many lines as they take."""
        row = self.rows[index]
        lead = f"  {short_id(clean_line(row.needs[0].bead_id, 60))}  " if row.kind == "need" else "  "
        if width < 48 or not row.needs[0].bead_id:
            lead = "  "
        keys = keys_beside(row, self._keymap, self._without)
        pairs = [keys[place : place + 2] for place in range(0, len(keys), 2)]
        # the blanks behind the last label of a line need no room
        lines = packed(pairs, width - len(lead) + 2, 0)
        return [
            fit([(lead if not place else " " * len(lead), "muted"), *line], width) for place, line in enumerate(lines)
        ]


def _money(usd: float | None, complete: bool) -> str:
    """Dollars; empty if none are known to have been spent; ``≥`` if the cost of a call is unknown."""
    return figures.money(usd, complete) if usd else ""


def keys_beside(row: NeedRow, keymap: Mapping[str, str], without: Without) -> list[Span]:
    """The actions of a row, each after its key; for several needs, those that all share."""
    spans: list[Span] = []
    for action in row.actions(without):
        # the first says how many; for the others it is the same number
        label = action.label_for(len(row.needs)) if not spans else action.label
        spans += _key(KEYS[action.id], label, keymap)
    spans += _key("needs.snooze", "bring back" if row.group == SNOOZED else "snooze", keymap)
    if row.kind == "fold":
        spans += _key("go.open", "show", keymap)
    return spans


def _beside(need: Need, word: str, title: str) -> str:
    """The reason beside the title of its bead: without the bead's id or title, and without what the heading says."""
    reason = need.reason.replace(f": {title}", "", 1) if need.kind == "lesson" else need.reason
    for said in (f"{need.bead_id}: ", f"{word}; ", f"{KINDS[need.kind].group}: "):
        reason = reason.removeprefix(said)
    return clean_line(reason, 400)


def _key(key_id: str, label: str, keymap: Mapping[str, str]) -> list[Span]:
    return [(f"{shown(BY_ID[key_id], keymap)} ", "running"), (f"{label}  ", "muted")]


def title_of(need: Need, queue: Queue) -> str:
    """The title of its bead; without a bead, its own description."""
    bead = queue.beads.get(need.bead_id)
    if need.kind == "lesson":
        return clean_line(need.reason, 400)
    if bead is None:
        return clean_line(": ".join(filter(None, (short_id(need.bead_id), need.reason))), 400)
    return clean_line(bead.title, 300)


class NeedList(BeadKeys, NeedViewKeys, OverlayScreen):
    """The needs as rows; `NeedsScreen` has the actions."""

    TITLE_TEXT = "needs me"
    FOOTER = ("go.back", "go.to", "change.actions", "find.filter", "change.undo", "app.help")

    def __init__(self) -> None:
        super().__init__()
        self.reason = RowList(id="reason")
        self.reason.can_focus = False
        self.marked: frozenset[str] = frozenset()
        self._anchor: str | None = None
        self._before: frozenset[str] = frozenset()  # the marks before the present range
        self._folded: set[str] = {SNOOZED}
        self._unfolded: set[str] = set()
        self._filter = need_filter("")
        self._rows: dict[str, NeedRow] = {}
        self._undo: list[BesideQueue] = []
        """Actions outside the queue done here, the latest last."""
        self._redo: list[BesideQueue] = []
        """Those that were undone since, the latest last."""
        self._begun = False
        """Whether everything was looked at once; from then on the cursor belongs to the user."""
        self._placed = ""
        """Where the cursor was placed until then."""

    def compose_body(self) -> ComposeResult:
        """The list, and the text about its row."""
        yield self.caption
        yield self.list
        yield self.reason

    # --- contents -------------------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Show the groups, the most urgent first; within each, by what is blocked and what it has cost."""
        now, queue = self.console.now(), snapshot.queue
        needs, snoozed = self.console.needs, self.console.snoozed
        passing = self._filter.passing(needs, self._judged_by)
        groups = list(need_view.grouped(passing, now))
        if away := self._filter.passing(snoozed, self._judged_by):
            groups.append(NeedGroup(SNOOZED, away, ()))
        rows = self._arranged(groups)
        was = self.row
        self._rows = {row.key: row for row in rows}
        self._caption(snapshot, len(needs), len(passing), len(snoozed))
        if rows:
            keymap = self.console.keymap
            source = NeedRows(rows, queue, now=now, keymap=keymap, closed=self._folded, without=self._without)
            self.list.show(source, question=self._filter.text)
            self._to_need(rows, was)
        else:
            none = Row("none", (self._empty(snapshot),), selectable=False)
            self.list.show(Rows([none]), question=self._filter.text)
        self.marked &= {need.key for need in (*needs, *snoozed)}
        self._before &= self.marked
        self._flag()
        self.say_row()

    def _arranged(self, groups: Sequence[NeedGroup]) -> tuple[NeedRow, ...]:
        """Show the rows; old ones too if the bars, the second line and the longest reason leave room."""
        size = self.app.size
        room, most = size.height - 5, max(2, size.height // REASON_SHARE)
        rows = need_rows(groups, self._folded, self._unfolded, lines=room - most)
        if len(rows) < room and any(row.kind == "fold" for row in rows):
            said = min(most, max(len(self._about(row, max(16, size.width - 2))) for row in rows))
            rows = need_rows(groups, self._folded, self._unfolded, lines=room - said)
        return rows

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
        return (
            "  nothing matches: esc shows all" if self._filter.text else "  nothing waits for you: esc goes back",
            "muted",
        )

    def _to_need(self, rows: Sequence[NeedRow], was: NeedRow | None) -> None:
        """Keep the cursor on a need when its row disappears; at first put it on the most urgent one."""
        # attempts and claims are read after the first frame; only then is the most urgent need known
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

    def show_again(self) -> None:
        from helix_tui.core.snapshot.snapshot import Change

        self.show_snapshot(self.console.snapshot, Change())

    show_ages = show_again

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
        """What a key acts on: the marked rows, else the row, or the whole group on its heading."""
        if self.marked:
            return tuple(each for each in (*self.console.needs, *self.console.snoozed) if each.key in self.marked)
        return self.row.needs if self.row is not None else ()

    def bead_ids(self) -> tuple[str, ...]:
        """The beads of the needs that a key acts on."""
        return tuple(dict.fromkeys(need.bead_id for need in self.chosen() if need.bead_id))

    def on_resize(self) -> None:
        """Wrap the reason and fit the rows for the new size."""
        if self._rows:
            self.show_again()

    @on(RowList.Selected, "#overlay")
    def say_row(self) -> None:
        """Below the list: title and reason in full, where the row has no room for them."""
        if self._anchor is not None:
            self.mark(self._range())
        row = self.row
        width = max(16, self.app.size.width - 2)
        rows = [] if row is None else self._about(row, width)
        self.reason.styles.height = min(len(rows), max(2, self.app.size.height // REASON_SHARE))
        self.reason.display = bool(rows)
        self.reason.show(Rows(rows))
        self.footer.key_ids = self.FOOTER if self._rows else ("go.back", "go.to", "app.help")

    def _about(self, row: NeedRow, width: int) -> list[Row]:
        source, need = self.list.source, row.needs[0]
        place = source.index(row.key)
        if row.kind != "need" or place is None:
            return []
        is_cut = any("…" in text for text, _ in source.paint(place, width))
        if not is_cut and width >= MIN_REASON_WIDTH:
            return []
        bead = self.console.snapshot.queue.beads.get(need.bead_id)
        named = clean_line(bead.title, 300) if bead is not None and is_cut else ""
        lines = list(wrap_spans([(named, "text bold")], width)) if named else []
        lines += wrap_spans([(clean_line(need.reason, MAX_QUESTION), "text")], width)
        return [Row(f"{number}", line, selectable=False) for number, line in enumerate(lines)]

    def _without(self, need: Need) -> frozenset[ActionId]:
        """The actions that do not apply to a need at present."""
        senseless = frozenset[ActionId]() if need.kind == "drift" else need_view.senseless(need, self._attempt(need))
        return senseless if self.may_be_held([need]) else senseless | {"hold"}

    def may_be_held(self, needs: Iterable[Need]) -> dict[str, str]:
        """The beads of needs that workers should be kept from until a person decides, and are not yet."""
        beads, watch = self.console.snapshot.queue.beads, self.console.monitor
        found = watch.concerns if watch is not None else Concerns()
        reasons = hold_reasons(found.drift, found.status_summary.refused)
        ids = {need.bead_id for need in needs if need.bead_id in beads and need.bead_id in reasons}
        return {bead_id: reasons[bead_id] for bead_id in ids if beads[bead_id].execution_eligible is not False}

    def _attempt(self, need: Need) -> Attempt | None:
        """The attempt of a need."""
        return self.console.snapshot.attempts.get(need.attempt_id) if need.attempt_id else None

    # --- marks and folds ------------------------------------------------------------------------------------

    def action_mark(self) -> None:
        """Mark or unmark the row, or on a heading its whole group, and move to the next."""
        row = self.row
        if row is None:
            return
        self._anchor = None
        keys = {need.key for need in row.needs}
        self.mark(self.marked - keys if keys <= self.marked else self.marked | keys)
        self.list.action_cursor_down()

    def action_mark_range(self) -> None:
        """Begin a range under the cursor, or end the current one."""
        if self._anchor is not None:
            self._anchor = None
        elif self.row is not None:
            self._anchor, self._before = self.row.key, self.marked
            self.mark(self._range())

    def _range(self) -> frozenset[str]:
        keys = list(self._rows)
        here = self.list.selected_key
        if self._anchor not in keys or here not in keys:
            return self.marked
        first, last = sorted((keys.index(self._anchor), keys.index(here)))
        rows = [self._rows[key] for key in keys[first : last + 1]]
        # a heading means its whole group only if it is the entire range
        drawn = (need.key for row in rows if row.kind != "group" or len(rows) == 1 for need in row.needs)
        return self._before.union(drawn)

    def mark(self, keys: frozenset[str]) -> None:
        if keys != self.marked:
            self.marked = keys
            self._flag()
            passing = len(self._filter.passing(self.console.needs, self._judged_by))
            self._caption(self.console.snapshot, len(self.console.needs), passing, len(self.console.snoozed))

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
        """Show a sign on the rows that are being changed."""
        super().show_pending(beads, work)
        self._flag()

    def after_change(self, beads: tuple[str, ...], created: tuple[str, ...]) -> None:
        """Remove the marks of rows whose action is done; the cursor stays."""
        del created
        gone = {need.key for need in self.console.needs if need.bead_id in beads}
        self._anchor = None
        self.mark(self.marked - gone)
        # the change to the queue is the latest now: u undoes that
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
        """Unfold the group under the cursor; if it is unfolded already, its old needs too."""
        if (row := self.row) is not None:
            (self._folded.discard if row.group in self._folded else self._unfolded.add)(row.group)
            self.show_again()

    def action_turn_part(self, step: int) -> None:
        """Go to the heading of the next or previous group."""
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
            self.return_to("", self.list.selected_key)
        elif len(self.app.screen_stack) == 1:  # the console began here
            self.app.call_later(self.app.run_action, "show_screen('queue')")
        else:
            await super().action_back()

    # --- the filter -----------------------------------------------------------------------------------------

    @property
    def filter_text(self) -> str:
        """The filter in force."""
        return self._filter.text

    def _parsed(self, text: str) -> Filter[Need, NeedContext]:
        return need_filter(text, me=self._me)

    @property
    def _judged_by(self) -> NeedContext:
        return NeedContext(self.console.snapshot.queue, self.console.now(), self.console.needs)

    @property
    def _me(self) -> str:
        return str(self.console.change_runner.curator.me.user) if self.may_write() else ""

    def ways_on(self, text: str, cursor: int) -> Sequence[Completion]:
        """Completions."""
        return need_view.complete_need_filter(text, cursor, self._judged_by)

    def filter_problem(self, text: str) -> str:
        """The part of a text that is not understood."""
        return self._parsed(text).problem

    def filter_with(self, text: str) -> None:
        """Show what passes."""
        self._filter = self._parsed(text)
        self.show_again()

    def has_matches(self) -> bool:
        """Whether anything passes the filter in force."""
        return bool(self._rows)

    def filter_count(self) -> str:
        """How many needs pass, of how many."""
        passing = self._filter.passing(self.console.needs, self._judged_by)
        return f"{len(passing):,} of {len(self.console.needs):,}"
