"""Needs as rows: a heading a group, a line a need in columns, a line for what is folded away."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal

from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.core.ground.time import NS, format_age
from helix_tui.core.supervision.decide.need_actions import ActionId, NeedAction, actions_of, shared_actions
from helix_tui.core.supervision.decide.need_view import NeedGroup, stake
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.keymap import BY_ID, shown
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import Line, Span, column, fit, rule, spread, width_of
from helix_tui.widgets.base.row_source import RowSource

WORDS = {
    "physics-level": ("!", "error bold", "contradiction"),
    "guidance": ("?", "attention bold", "guidance"),
    "approval": ("?", "attention bold", "approval"),
    "conflict": ("◆", "attention bold", "outcome"),
    "ambiguous": ("◆", "attention bold", "unclear"),
    "escalation": ("◆", "attention bold", "escalation"),
    "clarification": ("?", "attention bold", "clarification"),
    "gap": ("?", "attention", "gap"),
    "worker_stopped": ("!", "error bold", "stopped"),
    "budget": ("!", "attention bold", "budget"),
    "dead_run": ("!", "error bold", "dead worker"),
    "silent_run": ("!", "error bold", "silent worker"),
    "orphaned_claim": ("!", "error bold", "stale claim"),
    "drift": ("◆", "attention bold", "drift"),
    "tried": ("✗", "error", "passed over"),
    "focus": ("◆", "attention bold", "focus"),
    "proposed": ("◆", "attention bold", "proposed"),
    "preserved_review_blocked": ("◆", "attention bold", "review"),
    "merge_conflict": ("◆", "attention bold", "merge conflict"),
    "failing_check": ("✗", "attention bold", "failing check"),
    "refused": ("◆", "attention bold", "refused"),
    "landed_faulted": ("!", "attention bold", "fault found"),
    "kept_aside": ("◆", "attention bold", "kept aside"),
    "lesson": ("◆", "attention", "lesson"),
    "cycle": ("↻", "error", "circle"),
    "archived_dependency": ("?", "error", "archived"),
    "missing_dependency": ("?", "error", "missing"),
    "cancelled_dependency": ("✗", "error", "cancelled"),
    "unknown_status": ("?", "attention bold", "unknown"),
    "unread_lines": ("?", "attention bold", "unread"),
}
"""Sign, ink and word of each kind of need; a new kind shows by its own name."""

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
"""Which key of the registry each action is on."""

SNOOZED = "snoozed"
REASON_LEAST = 90
"""Cells from which every row says its reason in a column of its own."""

_USD, _AGE, _WHO = 8, 5, 12
_WORD = 16

RowKind = Literal["group", "need", "fold"]

Without = Callable[[Need], Collection[ActionId]]
"""The actions that make no sense for a need as it is now."""


class NeedRow(Struct, frozen=True):
    """One row: a heading, a need, or what is folded away."""

    kind: RowKind
    group: str
    needs: tuple[Need, ...]

    @property
    def key(self) -> str:
        """Unique in the list and the same over reloads."""
        return self.needs[0].key if self.kind == "need" else f"{self.kind}:{self.group}"

    def actions(self, without: Without) -> tuple[NeedAction, ...]:
        """What can be done about it; of many needs what all of them have."""
        if self.group == SNOOZED:
            return ()
        if self.kind == "need":
            return actions_of(self.needs[0], without(self.needs[0]))
        return shared_actions(self.needs)


def need_rows(groups: Iterable[NeedGroup], closed: Collection[str], unfolded: Collection[str]) -> tuple[NeedRow, ...]:
    """The rows of some groups.

    Args:
        closed: groups of which only the heading is shown.
        unfolded: groups of which the old needs are shown too.
    """
    rows: list[NeedRow] = []
    for group in groups:
        rows.append(NeedRow("group", group.name, group.needs))
        if group.name in closed:
            continue
        opened = group.name in unfolded
        rows += [NeedRow("need", group.name, (need,)) for need in (group.needs if opened else group.shown)]
        if group.folded and not opened:
            rows.append(NeedRow("fold", group.name, group.folded))
    return tuple(rows)


class NeedRows(RowSource):
    """The rows of *Needs me*; the selected one says on a second line what can be done about it, on which keys."""

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
        self.rows = rows
        self._queue, self._now, self._keymap, self._without = queue, now, keymap, without
        self._closed = frozenset(closed)
        self._places = {row.key: place for place, row in enumerate(rows)}
        needs = [need for row in rows for need in row.needs]
        kinds: dict[str, set[str]] = {}
        for row in rows:
            kinds.setdefault(row.group, set()).update(need.kind for need in row.needs)
        self._mixed = {group for group, found in kinds.items() if len(found) > 1} - {"stale claims"}
        """Groups in which a row says of what kind it is: elsewhere the heading does."""
        self._has_usd = any(need.usd for need in needs)
        self._stake = max((len(stake(need)) for need in needs if need.waiting), default=0)
        self._has_who = any(need.assigned for need in needs)

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, index: int) -> str:
        return self.rows[index].key

    def index(self, key: str) -> int | None:
        return self._places.get(key)

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
            words = f"{len(row.needs):,} older than 7 d"
            return fit([("  … ", "muted"), (words, "muted"), *self._sums(row)], width)
        return self._need(row.needs[0], width, row.group)

    def _heading(self, row: NeedRow, width: int) -> Line:
        sign = "▸ " if row.group in self._closed else ""
        sums = "".join(text for text, _ in self._sums(row))
        return rule(f"{sign}{row.group}  {len(row.needs):,}{sums}", width)

    def _sums(self, row: NeedRow) -> list[Span]:
        """What the needs of a row hold up and have cost together."""
        usd = sum(need.usd or 0 for need in row.needs)
        most = max((need.waiting for need in row.needs), default=0)
        said = [f"blocks up to {most:,}"] if most else []
        said += [_money(usd, all(need.usd_complete for need in row.needs))] if usd else []
        return [(f"  {' · '.join(said)}", "muted")] if said else []

    def _need(self, need: Need, width: int, group: str) -> Line:
        glyph, ink, word = WORDS.get(need.kind, ("◆", "attention bold", need.kind.replace("_", " ")))
        left: list[Span] = [(f"{glyph} ", ink)]
        right = self._figures(need, width)
        room = width - width_of(left) - width_of(right) - 1
        title = title_of(need, self._queue)
        if width >= 60 and group in self._mixed:
            left.append((column(word, _WORD), ink.removesuffix(" bold")))
            room -= _WORD
        bead = self._queue.beads.get(need.bead_id)
        if width < REASON_LEAST or not need.bead_id:
            left.append((title, "text"))
        else:
            share = max(28, room * 11 // 20)
            named = clean_line(bead.title, 300) if bead is not None else f"{short_id(need.bead_id)} not in the tracker"
            left += [
                (column(named, share), "text" if bead is not None else "muted"),
                (clean_line(need.reason, 400), "muted"),
            ]
        return spread(left, right, width)

    def _figures(self, need: Need, width: int) -> list[Span]:
        """Why it stands where it stands, in columns: what it holds up, what it has cost, how long it waits."""
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

    def paint_more(self, index: int, width: int) -> Line | None:
        """Its id, and what can be done on which key."""
        row = self.rows[index]
        lead = f"  {short_id(clean_line(row.needs[0].bead_id, 60))}  " if row.kind == "need" else "  "
        if width < 48 or not row.needs[0].bead_id:
            lead = "  "
        return fit([(lead, "muted"), *keys_beside(row, self._keymap, self._without)], width)


def _money(usd: float | None, complete: bool) -> str:
    """Dollars, or nothing where none are known to have been spent; ``≥`` where the cost of a call is unknown."""
    return ("" if complete else "≥") + figures.money(usd) if usd else ""


def keys_beside(row: NeedRow, keymap: Mapping[str, str], without: Without) -> list[Span]:
    """The actions of a row, each behind its key; of many needs those that all of them have."""
    spans: list[Span] = []
    all_ = f" all {len(row.needs):,}" if row.kind != "need" and len(row.needs) > 1 else ""
    for action in row.actions(without):
        spans += _key(KEYS[action.id], action.label + (all_ if not spans else ""), keymap)
    spans += _key("needs.snooze", "bring back" if row.group == SNOOZED else "snooze", keymap)
    if row.kind == "fold":
        spans += _key("go.open", "show", keymap)
    return spans


def _key(key_id: str, label: str, keymap: Mapping[str, str]) -> list[Span]:
    return [(f"{shown(BY_ID[key_id], keymap)} ", "running"), (f"{label}  ", "muted")]


def title_of(need: Need, queue: Queue) -> str:
    """The title of its bead; without one, what it is about in its own words."""
    bead = queue.beads.get(need.bead_id)
    if need.kind == "lesson":
        return clean_line(need.reason, 400)
    if bead is None:
        return clean_line(": ".join(filter(None, (short_id(need.bead_id), need.reason))), 400)
    return clean_line(bead.title, 300)
