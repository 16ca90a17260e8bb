"""Read DDx's index of agent calls, one row per call for any purpose, and assign the calls to attempts (`Spent`).

Format: docs/formats/ddx.md §5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import Attempt, Tokens
from helix_tui.core.ddx.attempts.costs import AgentCall, Part
from helix_tui.core.ddx.attempts.sources.loop_logs import LoopEntry, unrecorded_checks
from helix_tui.core.ddx.files import LineTail, instant, money
from helix_tui.core.ground.files import Folder
from helix_tui.core.ground.time import NS

FOLLOWS_S = 30
"""Seconds within which ddx reviews or triages an attempt after its end."""


NEAR_ROWS = 16
"""How many rows back its attempt is searched for: several workers write into one index."""


_NOT_REACHED = ("ResolveRoute:", "under-specified routing", "no viable routing candidate")
"""Details of a call for which ddx found no agent, so that none was called."""

CHECKED_S = 900
"""Seconds between ddx's readiness check of a bead and the attempt that follows."""


class _Row(Struct, gc=False, rename="camel"):
    """One row; fields of a later schema are left out."""

    id: str = ""
    bead_id: str = msgspec.field(default="", name="beadID")
    prompt_sha: str = msgspec.field(default="", name="promptSHA")
    started_at: str = ""
    ended_at: str = ""
    cost: float | None = None
    cost_present: bool | None = None
    tokens: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    outcome: str = ""
    bundle_path: str = ""
    base_rev: str = ""
    detail: str = ""
    duration_ms: int = 0
    surface: str = ""
    """Set by one writer only (April to June): the one that takes the end of a call for its begin."""


_decode = msgspec.json.Decoder(_Row).decode


class IndexedCall(Struct, frozen=True):
    """One row of the index."""

    call: AgentCall
    session_id: str
    started_at: int
    failed: bool
    reviewed_apart: bool
    """Whether it is work of a release whose reviews name no attempt (April)."""
    input: int | None
    cached: int | None
    output: int | None


class SessionIndex:
    """All rows so far; appended rows are added, and a rewritten file is read from its start."""

    def __init__(self, ddx_dir: Path) -> None:
        self._folder = Folder(ddx_dir / "agent-logs" / "sessions")
        self._tails: dict[str, LineTail] = {}
        self._by_file: dict[str, list[IndexedCall]] = {}  # unbounded: costs are summed over all of them
        self._seen: dict[str, set[int]] = {}  # only the hash of each row: rows are 1 KB each
        self.calls: tuple[IndexedCall, ...] = ()
        """Every call in the order in which the rows were written."""
        self.unread = 0
        """Number of lines that are not rows."""

    def refresh(self) -> list[IndexedCall]:
        """Read appended rows; return the new ones, or all if a file was replaced or removed."""
        names = [name for name in self._folder.names() if name.startswith("sessions-") and name[-6:] == ".jsonl"]
        new: list[IndexedCall] = []
        # calls removed with a file must leave the sums, so return all again
        again = bool(self._tails.keys() - set(names))
        for gone in self._tails.keys() - set(names):
            del self._tails[gone], self._by_file[gone], self._seen[gone]
        for name in names:
            tail = self._tails.setdefault(name, LineTail(self._folder.path / name))
            found = self._by_file.setdefault(name, [])
            seen = self._seen.setdefault(name, set())
            while True:
                lines = tail.poll()
                if tail.replaced:
                    again = True
                    found.clear()
                    seen.clear()
                new += self._take(lines, found, seen)
                if not tail.behind:
                    break
        if new or again:
            self.calls = tuple(call for name in sorted(self._by_file) for call in self._by_file[name])
        return list(self.calls) if again else new

    def _take(self, lines: Iterable[bytes], found: list[IndexedCall], seen: set[int]) -> list[IndexedCall]:
        new = []
        for line in lines:
            if not line.strip() or hash(line) in seen:
                continue
            seen.add(hash(line))
            call = _read(line, found)
            if call is None:
                self.unread += 1
            else:
                found.append(call)
                new.append(call)
        return new


def _read(line: bytes, before: list[IndexedCall]) -> IndexedCall | None:
    try:
        row = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    began = instant(row.started_at)
    ended = instant(row.ended_at) or began
    if began is None or ended is None:
        return None
    if row.surface:
        began, ended = began - row.duration_ms * NS // 1000, began
    attempt_id = row.bundle_path.rstrip("/").rpartition("/")[2]
    # May writes a total of 0 beside its parts
    total = max(row.tokens, row.input_tokens + row.output_tokens)
    made = bool(row.cost or total) or not any(mark in row.detail for mark in _NOT_REACHED)
    known = total > 0
    # ``cost_present`` distinguishes a free call from one of unknown cost
    usd = row.cost if row.cost and money(row.cost) else 0.0 if row.cost_present or not made else None
    call = AgentCall(_part(row), ended, usd, total if known or not made else None, row.bead_id, attempt_id, made)
    indexed = IndexedCall(
        call,
        row.id,
        began,
        row.outcome == "failure",
        call.part == "work" and not row.prompt_sha,
        row.input_tokens if known else None,
        row.cached_tokens if known else None,
        row.output_tokens if known else None,
    )
    return indexed if attempt_id or row.bead_id else _following(indexed, before)


def _part(row: _Row) -> Part:
    if row.bundle_path:
        return "work" if row.base_rev or row.prompt_sha else "reviews"
    if row.bead_id:
        return "work" if row.id.startswith("eb-") else "checks"
    return "other"


def _following(indexed: IndexedCall, before: list[IndexedCall]) -> IndexedCall:
    """Assign a call without an id: the first one after the end of an attempt is its review or its triage.

    It belongs to the attempt that ended last: one before it may have changed nothing, and is then not reviewed. A
    failure, of the work or its review, is followed by a triage.
    """
    # newest first: a call after two attempts belongs to the one that ended last
    recent = before[-NEAR_ROWS:]
    followed: set[str] = set()
    for each in reversed(recent):
        attempt_id, late = each.call.attempt_id, indexed.started_at - each.call.at
        if not attempt_id or attempt_id in followed or not 0 <= late < FOLLOWS_S * NS:
            continue
        failed = each.failed and each.call.part in ("work", "reviews")
        if failed or (each.reviewed_apart and each.call.part == "work"):
            part: Part = "triage" if failed else "reviews"
            named = replace(indexed.call, part=part, bead_id=each.call.bead_id, attempt_id=attempt_id)
            return replace(indexed, call=named)
        followed |= {attempt_id} if each.call.part in ("reviews", "triage") else set()
    return indexed


class Spent:
    """Assigns the calls in ddx's session index to attempts."""

    def __init__(self, ddx_dir: Path) -> None:
        self._index = SessionIndex(ddx_dir)
        self._by_bead: dict[str, list[IndexedCall]] = {}
        self._other: dict[str, tuple[AgentCall, ...]] = {}
        self._unrecorded: dict[AgentCall, None] = {}

    def refresh(self) -> set[str]:
        """Read appended calls; return the ids of their beads."""
        new = self._index.refresh()
        if not new and len(self._index.calls) == sum(map(len, self._by_bead.values())):
            return set()
        # all were returned again: beads that lost their rows differ too
        dirty = set(self._by_bead) if len(new) == len(self._index.calls) else set()
        grouped: dict[str, list[IndexedCall]] = defaultdict(list)
        for call in self._index.calls:
            grouped[call.call.bead_id].append(call)
        self._by_bead = dict(grouped)
        dirty |= {each.call.bead_id for each in new}
        for bead_id in dirty:
            self._other[bead_id] = tuple(each.call for each in self._by_bead.get(bead_id, ()))
        return dirty

    def take(self, entries: Iterable[LoopEntry]) -> set[str]:
        """Count the calls that loop logs tell of and the index does not; return the ids of their beads."""
        found = dict.fromkeys(unrecorded_checks(entries))
        self._unrecorded |= found
        return {call.bead_id for call in found}

    @property
    def other(self) -> tuple[AgentCall, ...]:
        """Calls that belong to no attempt."""
        return (*(call for calls in self._other.values() for call in calls), *self._unrecorded)

    def share(self, bead_id: str, attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
        """The attempts of a bead, newest first, each with its calls; unassigned calls are kept separately."""
        calls = self._by_bead.get(bead_id)
        if not calls:
            return tuple(attempts)
        shares: dict[str, list[IndexedCall]] = defaultdict(list)
        other = []
        for call in calls:
            owner = _owner(call, attempts)
            if owner is None:
                other.append(call.call)
            else:
                shares[owner].append(call)
        self._other[bead_id] = tuple(other)
        return tuple(_with_calls(attempt, shares.get(attempt.attempt_id, ())) for attempt in attempts)


def _owner(each: IndexedCall, attempts: Sequence[Attempt]) -> str | None:
    """The attempt for which a call was made."""
    for attempt in attempts:
        if each.call.attempt_id == attempt.attempt_id:
            return attempt.attempt_id
        if not each.call.attempt_id and each.session_id and each.session_id == attempt.session_id:
            return attempt.attempt_id
    if each.call.part != "checks":
        return None
    later = [
        (attempt.started_at, attempt.attempt_id)
        for attempt in attempts
        # an attempt's name has whole seconds: it may seem to begin before its check
        if attempt.started_at is not None and -NS <= attempt.started_at - each.started_at < CHECKED_S * NS
    ]
    return min(later)[1] if later else None


def _with_calls(attempt: Attempt, calls: Iterable[IndexedCall]) -> Attempt:
    """An attempt with its calls; the usage of its own cycles is their sum, not the last one's."""
    held = list(calls)
    if not held:
        return attempt
    work = [each for each in held if each.call.part == "work"]
    changed = replace(attempt, calls=tuple(each.call for each in held))
    if not work:
        return changed
    usd = [each.call.usd for each in work if each.call.usd is not None]
    total = [each.call.tokens for each in work if each.call.tokens is not None]
    # a sum without one cycle would be less than the attempt's own record
    if len(usd) == len(work) and any(usd):
        changed = replace(changed, cost_usd=sum(usd))
    if len(total) == len(work) and any(total):
        parts = [
            sum(filter(None, (getattr(each, name) for each in work))) or None for name in ("input", "cached", "output")
        ]
        changed = replace(changed, tokens=Tokens(parts[0], parts[1], parts[2], sum(total)))
    return changed
