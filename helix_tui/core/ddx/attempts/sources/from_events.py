"""Read events about attempts: in a bead's row, in the attachment of a closed bead, in the logs of loops.

Format: docs/formats/ddx.md §1 (events) and §4 (loop logs, which record the same events).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.pieces import Piece, RowFacts
from helix_tui.core.ddx.attempts.sources.loop_logs import LoopEntry
from helix_tui.core.ddx.claims import Hold
from helix_tui.core.ddx.files import decode_object, instant, money, text, whole
from helix_tui.core.ddx.names import ATTEMPT_ID, began_at, event_kind
from helix_tui.core.ground.files import Stamp, below, read_bytes, stamp_of
from helix_tui.core.ground.text import clean_block, clean_line

REJECTED = "preserved-result-rejected"
"""Event kinds for a kept commit that must not land: ``bead update --reject-preserved``, or it no longer merges."""

ACCEPTED = ("triaged", "needs_human_resolved")
"""Event kinds for a parked bead that a person has given back: ``bead update --status open``, ``human resolve``."""

_BOX = re.compile("[\u2500-\u257f]+")
"""Box-drawing characters."""

_KEY_VALUE = re.compile(r"\w+=")

MAX_TOLD = 20_000
"""Characters of what is told: a reason of some paragraphs."""

_IN_PATH = re.compile(rf"executions/(?P<id>{ATTEMPT_ID.pattern})")

_IS_VALUE = re.compile(r'(?:^|\n)[\w -]*[:=] ?[^\s"]*\Z|":\s*"[^"\s]*\Z')
"""The text before a path that is the value of a key: ``artifact: .ddx/``, ``"evidence":".ddx/``."""

_WORKTREE = "execute-bead-wt-"
"""Prefix of the folder of an attempt's work tree; the bead and the attempt follow."""

_MARK = _WORKTREE.encode()

_MADE_IN = re.compile(rf"\.{_WORKTREE}(.+)-({ATTEMPT_ID.pattern})-[0-9a-f]{{8}}\Z")
"""Id of a bead that an agent filed in its work tree, where DDx used the folder's name as the project's."""


class EventRow(Struct, frozen=True):
    """One event of a bead about an attempt."""

    kind: str
    summary: str
    body: str
    at: int | None


class _Event(Struct, gc=False):
    kind: str = ""
    summary: str = ""
    body: str = ""
    created_at: str = ""


class _Row(Struct, gc=False):
    """The fields of a tracker row about attempts, which the queue does not need."""

    session_id: str = ""
    closing_commit_sha: str = ""


class _Story(Struct, gc=False):
    """The events of a tracker row."""

    events: list[_Event] = []


_decode_row = msgspec.json.Decoder(_Row).decode
_decode_story = msgspec.json.Decoder(_Story).decode
_decode_event = msgspec.json.Decoder(_Event).decode


class BeadEvents:
    """Events about attempts, inline in the row or in the attachment of a closed bead.

    Their texts are not kept: they are half of a tracker (11 MB of 21), and are needed only when the attempts of a bead
    are merged again.
    """

    def __init__(self, ddx_dir: Path) -> None:
        self._attachments = ddx_dir / "attachments"
        self.rows: dict[str, RowFacts] = {}
        self._beads: dict[str, Bead] = {}
        self._attached: dict[str, Stamp] = {}
        self._awaited: set[str] = set()
        self._holds: Mapping[str, Hold] | None = None
        self._made_in: dict[str, tuple[str, str]] = {}
        """Beads filed in a work tree, each with the bead and attempt it belongs to."""

    def refresh(
        self, beads: Mapping[str, Bead], changed: Iterable[Path] | None = None, holds: Mapping[str, Hold] | None = None
    ) -> set[str]:
        """Read changed rows and attachments; return the ids of their beads.

        ``holds`` maps beads to their holds; without it a row in progress counts as held.
        """
        dirty: set[str] = set()
        # a lease that appears or vanishes changes the outcome of its bead's attempts, though no row changed
        before, now = self._holds or {}, holds or {}
        touched = {each for each in before.keys() | now.keys() if before.get(each) != now.get(each)}
        self._holds = holds
        first = not self._beads
        for gone in self._beads.keys() - beads.keys():
            del self._beads[gone]
            self.rows.pop(gone, None)
            self._attached.pop(gone, None)
            # a bead filed in a work tree concerns an attempt at another bead, which is merged again too
            dirty |= {gone, *self._made_in.pop(gone, ())[:1]}
        # an attachment is in a folder named after its bead
        hints = None if changed is None else {path.parent.name for path in changed} | self._awaited
        for bead in beads.values():
            new = self._beads.get(bead.id) is not bead  # a row that did not change keeps its object
            if new or bead.id in touched:
                self._take_row(bead)
                dirty |= {bead.id, *self._made_in.get(bead.id, ())[:1]}
                if new and not first:
                    self._awaited.add(bead.id)  # its attachment may appear later; if long gone, ignore it
            elif hints is not None and bead.id not in hints:
                continue
            if bead.events_attachment and self._take_attachment(bead):
                dirty.add(bead.id)
            if not bead.events_attachment or bead.id in self._attached:
                self._awaited.discard(bead.id)
        return dirty

    def of(self, bead_id: str) -> list[EventRow]:
        """All events of a bead about attempts, in the order in which they were written."""
        bead = self._beads.get(bead_id)
        if bead is None:
            return []
        attached = self._read_attachment(bead) if bead_id in self._attached else []
        inline = [_event_row(event) for event in _events_of(bead) if event_kind(event.kind).role != "aside"]
        return attached + inline

    def worktrees(self, bead_id: str) -> set[str]:
        """Attempts at a bead named by their work tree in its row, its attachment or a bead filed there."""
        filed = {attempt for owner, attempt in self._made_in.values() if owner == bead_id}
        bead = self._beads.get(bead_id)
        if bead is None:
            return filed
        said = [bead.raw]
        if bead_id in self._attached:
            said.append(self._attachment_bytes(bead))
        named = (in_worktrees(raw.decode("utf-8", "replace"), bead_id) for raw in said if _MARK in raw)
        return filed.union(*named)

    def _take_row(self, bead: Bead) -> None:
        try:
            row = _decode_row(bead.raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            row = _lenient_row(bead.document())
        self._beads[bead.id] = bead
        if made_in := _MADE_IN.match(bead.id):
            self._made_in[bead.id] = (made_in[1], made_in[2])
        self.rows[bead.id] = RowFacts(
            status=bead.status,
            session_id=row.session_id,
            closing_commit=row.closing_commit_sha,
            last_status=bead.work_last_status or bead.loop_last_status,
            retry_after=instant(bead.work_retry_after) or instant(bead.loop_retry_after),
            hold=self._hold(bead),
        )

    def _hold(self, bead: Bead) -> Hold | None:
        if bead.status in TERMINAL:
            return None
        if self._holds is None:
            return Hold() if bead.status == "in_progress" else None
        return self._holds.get(bead.id)

    def _take_attachment(self, bead: Bead) -> bool:
        """Read a bead's attachment; return whether it appeared, changed or vanished."""
        stamp = stamp_of(below(self._attachments, bead.events_attachment))
        if stamp is None:
            return self._attached.pop(bead.id, None) is not None
        if self._attached.get(bead.id) == stamp:
            return False
        self._attached[bead.id] = stamp
        return True

    def _attachment_bytes(self, bead: Bead) -> bytes:
        return read_bytes(below(self._attachments, bead.events_attachment), 64 << 20) or b""

    def _read_attachment(self, bead: Bead) -> list[EventRow]:
        raw = self._attachment_bytes(bead)
        return [event for line in raw.split(b"\n") if (event := _attached_event(line)) is not None]


def loop_piece(entry: LoopEntry) -> Piece:
    """The piece from a loop's result; the index finds its attempt."""
    data = entry.data
    return Piece(
        "loop",
        text(data, "attempt_id"),
        entry.bead_id,
        status=text(data, "status"),
        detail=clean_line(text(data, "detail"), 2000),
        session_id=text(data, "session_id"),
        harness=text(data, "harness"),
        model=text(data, "model"),
        duration_ms=whole(data.get("duration_ms")),
        cost_usd=money(data.get("cost_usd")),
        base_rev=text(data, "base_rev"),
        result_rev=text(data, "result_rev"),
        landed_rev=text(data, "landed_rev"),
        preserve_ref=text(data, "preserve_ref"),
        retry_after=instant(data.get("retry_after")),
        no_changes_rationale=clean_block(text(data, "no_changes_rationale"), 20_000),
        review_verdict=text(data, "review_verdict"),
        at=entry.at,
    )


def event_piece(event: EventRow, attempt_id: str, bead_id: str) -> Piece:
    """The piece from a bead's ``execute-bead`` event: summary = status, body = prose and k=v lines."""
    values = event_values(event.body)
    return Piece(
        "event",
        attempt_id,
        bead_id,
        status=event.summary.strip(),
        detail=_detail(event.body),
        base_rev=values.get("base_rev", ""),
        result_rev=values.get("result_rev", ""),
        preserve_ref=values.get("preserve_ref", ""),
        retry_after=instant(values.get("retry_after")),
        at=event.at,
    )


def _opening(body: str) -> str:
    """The first line of a body; of a hook manager's banner, which is a box of three lines, what is written in it."""
    first, *others = body.split("\n", 3)
    if "╭─" not in first:
        return first
    return " ".join(_BOX.sub(" ", " ".join((first, *others[:2]))).split())


def _detail(body: str) -> str:
    """The first line of prose; a body without any starts with its k=v lines."""
    first = _opening(body)
    return clean_line("" if "=" in first.split(" ")[0] else first, 2000)


def told_below(bead: Bead, attempt: Attempt) -> str:
    """What DDx wrote below the first line of an attempt's event, such as a reason or what a review found; else ""."""
    own = [
        (abs((instant(each.created_at) or 0) - (attempt.recorded_at or attempt.counted_at)), number, each.body)
        for number, each in enumerate(_events_of(bead))
        if event_kind(each.kind).role == "end" and _detail(each.body) == attempt.detail
    ]
    if not own:
        return ""
    body = min(own)[2]
    prose = takewhile(lambda line: not _KEY_VALUE.match(line), body.split("\n")[1:])
    # a gate that held the change back is named in a line of its own
    return clean_block("\n".join(prose), MAX_TOLD).strip() or clean_block(event_values(body).get("gate_summary", ""))


def found_fault(bead: Bead, attempt: Attempt) -> str:
    """The first line of what a review found, from an attempt's event; "" if there is none."""
    said = told_below(bead, attempt).partition("\n")[0]
    # the agent's own reason may stand before what the review found, and nothing shows where it ends
    return "" if said.startswith("rationale:") else clean_line(said, 300).rstrip(".")


def recovery_piece(event: EventRow, attempt_id: str, bead_id: str) -> Piece:
    """The piece from a later DDx call that handled an attempt's result (``landed_tip`` or ``preserve_ref``)."""
    values = event_values(event.body)
    recovered = event.kind == "dangling-success-recovery"
    return Piece(
        "recovery",
        attempt_id,
        bead_id,
        status="success" if recovered else "",  # ddx's own status for it, in its metrics and its result
        landed_rev=values.get("landed_tip") or values.get("result_rev", "") if recovered else "",
        preserve_ref=values.get("preserve_ref", ""),
        recovered=recovered,
        at=event.at,
    )


def was_rejected(bead: Bead, rev: str) -> bool:
    """Whether a bead's history rejects landing this commit, by a person's decision or by ddx's."""
    # search the bytes first: events are half of a tracker, and few beads have this one
    if not rev or REJECTED.encode() not in bead.raw:
        return False
    rejections = (event_values(each.body) for each in _events_of(bead) if each.kind == REJECTED)
    return any(values.get("result_rev") == rev for values in rejections)


def accepted_at(bead: Bead) -> int:
    """When a person last gave a parked bead back to workers; 0 if nobody did."""
    if not any(kind.encode() in bead.raw for kind in ACCEPTED):
        return 0
    given = (each for each in _events_of(bead) if each.kind in ACCEPTED and each.summary != "action=defer")
    return max((instant(each.created_at) or 0 for each in given), default=0)


def cost_piece(event: EventRow, bead_id: str) -> Piece | None:
    """The piece from a ``cost`` event; None if its body is not an object with an attempt id."""
    data = _json_body(event.body)
    attempt_id = text(data, "attempt_id")
    if not attempt_id:
        return None
    return Piece(
        "cost",
        attempt_id,
        bead_id,
        harness=text(data, "harness"),
        model=text(data, "model"),
        duration_ms=whole(data.get("duration_ms")),
        tokens_in=whole(data.get("input_tokens")),
        tokens_out=whole(data.get("output_tokens")),
        tokens=whole(data.get("total_tokens")),
        cost_usd=money(data.get("cost_usd")),
        exit_code=whole(data.get("exit_code"), low=-(1 << 31)),
        at=event.at,
    )


def event_values(body: str) -> dict[str, str]:
    """The ``key=value`` lines of an event's body."""
    pairs = (line.partition("=") for line in body.split("\n"))
    return {key: value.strip() for key, equals, value in pairs if equals and key.isidentifier()}


def attempt_named(body: str, bead_id: str = "", known: Collection[str] = ()) -> str:
    """The attempt that an event names: in its JSON body, as ``attempt_id=``, inside a reference or a path, or by the
    work tree of an attempt at ``bead_id``.

    A path within a sentence may be another attempt's (git names files that it cannot write): it counts only if the
    attempt is ``known`` to be the bead's, or is newer than all of those.
    """
    named = text(_json_body(body), "attempt_id") or event_values(body).get("attempt_id", "")
    if named:
        return named
    for marker in ('"attempt_id":"', "preserve_ref="):
        at = body.find(marker)
        if at >= 0:
            match = ATTEMPT_ID.search(body, at, at + 300)
            if match is not None:
                return match[0]
    for found in _IN_PATH.finditer(body):
        attempt_id, before = found["id"], body[max(0, found.start() - 200) : found.start()]
        if attempt_id in known or attempt_id > max(known, default="") or _IS_VALUE.search(before):
            return attempt_id
    # ids start with a time: the largest is the newest attempt
    return max(in_worktrees(body, bead_id), default="") if bead_id else ""


def in_worktrees(said: str, bead_id: str) -> set[str]:
    """The attempts at a bead whose work trees are named in a text."""
    if _WORKTREE not in said:
        return set()
    return set(re.findall(rf"{_WORKTREE}{re.escape(bead_id)}-({ATTEMPT_ID.pattern})", said))


def worktree_piece(attempt_id: str, bead_id: str) -> Piece:
    """The piece from the name of a work tree: an attempt and its start."""
    return Piece("name", attempt_id, bead_id, started_at=began_at(attempt_id))


def _lenient_row(document: Mapping[str, Any]) -> _Row:
    return _Row(text(document, "session_id"), text(document, "closing_commit_sha"))


def _events_of(bead: Bead) -> list[_Event]:
    try:
        return _decode_story(bead.raw).events
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        events = bead.document().get("events")
    rows = [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []
    return [_Event(*(text(event, key) for key in ("kind", "summary", "body", "created_at"))) for event in rows]


def _attached_event(line: bytes) -> EventRow | None:
    try:
        event = _decode_event(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return _event_row(event) if event_kind(event.kind).role != "aside" else None


def _event_row(event: _Event) -> EventRow:
    return EventRow(event.kind, event.summary, event.body, instant(event.created_at))


def _json_body(body: str) -> dict[str, Any]:
    if not body.startswith("{"):
        return {}
    try:
        return decode_object(body.encode("utf-8", "replace"))
    except ValueError:
        return {}
