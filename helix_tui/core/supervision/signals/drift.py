"""Drift: changes by others in open beads since they were last seen, found before anything is executed.

Rules: docs/decisions/0008, docs/formats/helix.md §2 (queue drift). A bead seen for the first time is its own baseline.
Our own changes, from the journal, are not drift; later changes by others are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.editing.execute.gate import WriteGate
from helix_tui.core.editing.execute.reconciliation import in_words
from helix_tui.core.editing.journal import JournalHistory
from helix_tui.core.editing.steps import called
from helix_tui.core.editing.values import canonical, same
from helix_tui.core.ground.files import Stamp, open_file, read_bytes, stamp_of
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import format_instant, now_ns, parse_instant
from helix_tui.core.ground.writes import replace_file

FIELDS = ("spec-id", "parent", "superseded-by", "replaces", "dependencies", "execution-eligible")
"""The fields of an open bead in a snapshot."""

STALE = frozenset({"parent", "spec-id"})
"""Fields whose drift makes a bead stale; drift of other fields is only reported."""

MAX_SNAPSHOT = 256 << 20

_MEANING = {
    "spec-id": "it may be built against a different specification from the one reviewed",
    "parent": "it moved in the tree and now belongs to another epic",
    "superseded-by": "workers no longer pick it",
    "replaces": "it now replaces something else",
    "dependencies": "its dependencies changed",
    "execution-eligible": "whether workers may pick it changed",
    "": "it is no longer in the tracker",
}


class Drift(Struct, frozen=True):
    """One field of one open bead that differs from what was last seen or acknowledged."""

    bead_id: str
    field: str
    """Empty if the whole bead is gone."""
    was: Any
    now: Any

    @property
    def meaning(self) -> str:
        """What it means for the queue."""
        return _MEANING[self.field]

    def __str__(self) -> str:
        if not self.field:
            return f"{called(self.bead_id)} is gone from the tracker"
        return f"{called(self.bead_id)}: {self.field} was {_shown(self.was)} and is {_shown(self.now)}"


class _Document(Struct):
    """The snapshot as it is written."""

    beads: dict[str, dict[str, Any]]
    taken_at: str
    journal_seq: int = 0


class Baseline(Struct, frozen=True):
    """The last seen or acknowledged state of every open bead."""

    beads: Mapping[str, Mapping[str, Any]] = {}
    taken_at: int = 0
    journal_seq: int = 0
    """The last of our own changes included in it."""
    problem: str = ""
    """Why the file could not be used; everything then counts as seen for the first time."""


def fingerprint(bead: Bead) -> dict[str, Any]:
    """The snapshot's fields of a bead; absent ones are left out, and only a boolean false means not eligible."""
    row: dict[str, Any] = {
        "spec-id": bead.spec_id,
        "parent": bead.parent,
        "superseded-by": bead.superseded_by,
        "dependencies": sorted(bead.depends_on),
        "execution-eligible": False if bead.execution_eligible is False else None,
    }
    if b'"replaces"' in bead.raw:
        replaces = bead.document().get("replaces")
        row["replaces"] = replaces if isinstance(replaces, str) else None
    return {name: value for name, value in row.items() if value not in (None, "", [])}


class DriftWatch:
    """Compares a project's open beads with the snapshot in ``.helix/queue-snapshot.json``."""

    def __init__(self, project: Project, gate: WriteGate) -> None:
        self.path = project.helix_dir / "queue-snapshot.json"
        self._archive = project.archive_file
        self._gate = gate
        self._prints: dict[str, tuple[Bead, dict[str, Any]]] = {}
        self._known: tuple[Stamp | None, Baseline] = (None, Baseline())

    def check(self, beads: Mapping[str, Bead], history: JournalHistory) -> tuple[Drift, ...]:
        """All drift, in tracker order; changes nothing."""
        return self._find(beads, _with_ours(self.read(), history))

    def settle(self, beads: Mapping[str, Bead], history: JournalHistory) -> tuple[Drift, ...]:
        """Find drift, then record new beads and our own changes; drift stays until it is acknowledged.

        Raises:
            WritesForbidden: --read-only; `check` finds without writing.
        """
        self._gate.check()
        found, kept = self._settled(beads, history)
        if kept is None:
            return found
        with self._gate.open():
            # again under the lock: another process may have written the snapshot meanwhile
            found, kept = self._settled(beads, history)
            if kept is not None:
                self._write(kept, history)
            return found

    def _settled(
        self, beads: Mapping[str, Bead], history: JournalHistory
    ) -> tuple[tuple[Drift, ...], dict[str, Mapping[str, Any]] | None]:
        """The drift, and the new snapshot; None if it is unchanged."""
        on_disk = self.read()
        baseline = _with_ours(on_disk, history)
        found = self._find(beads, baseline)
        drifted = {drift.bead_id for drift in found}
        kept: dict[str, Mapping[str, Any]] = {}
        for bead_id, bead in beads.items():
            if bead_id in drifted:
                kept[bead_id] = baseline.beads[bead_id]
            elif bead.status not in TERMINAL:
                kept[bead_id] = self._print(bead)
        # gone from the tracker: its entry stays, so that it is reported until acknowledged
        for bead_id in drifted - kept.keys():
            kept[bead_id] = baseline.beads[bead_id]
        return found, (None if kept == on_disk.beads and on_disk.taken_at else kept)

    def _print(self, bead: Bead) -> dict[str, Any]:
        """A bead's fingerprint, cached while its record is unchanged."""
        known = self._prints.get(bead.id)
        if known is None or known[0] is not bead:
            known = self._prints[bead.id] = (bead, fingerprint(bead))
        return known[1]

    def acknowledge(
        self, beads: Mapping[str, Bead], history: JournalHistory, ids: Iterable[str] | None = None
    ) -> tuple[Drift, ...]:
        """Record the current state of some or all beads as seen; return the acknowledged drift.

        Raises:
            WritesForbidden: --read-only.
        """
        with self._gate.open():
            baseline = _with_ours(self.read(), history)
            found = self._find(beads, baseline)
            wanted = set(ids) if ids is not None else {drift.bead_id for drift in found}
            kept = dict(baseline.beads)
            for bead_id in wanted:
                bead = beads.get(bead_id)
                if bead is None or bead.status in TERMINAL:
                    kept.pop(bead_id, None)
                else:
                    kept[bead_id] = fingerprint(bead)
            self._write(kept, history)
            return tuple(drift for drift in found if drift.bead_id in wanted)

    def read(self) -> Baseline:
        """The snapshot on disk; empty if it is missing or broken."""
        stamp = stamp_of(self.path)
        if stamp is None or stamp != self._known[0]:
            self._known = (stamp, self._read())
        return self._known[1]

    def _read(self) -> Baseline:
        try:
            with open_file(self.path) as file:
                raw = file.read(MAX_SNAPSHOT)
        except FileNotFoundError:
            return Baseline()
        except OSError as error:
            return Baseline(problem=f"{self.path.name} cannot be read: {error.strerror}")
        try:
            document = msgspec.json.decode(raw, type=_Document)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Baseline(problem=f"{self.path.name} is not a snapshot; a new one will be taken")
        beads = {
            bead_id: {name: value for name, value in row.items() if name in FIELDS}
            for bead_id, row in document.beads.items()
        }
        return Baseline(beads, parse_instant(document.taken_at) or 0, document.journal_seq)

    def _find(self, beads: Mapping[str, Bead], baseline: Baseline) -> tuple[Drift, ...]:
        gone = [bead_id for bead_id in baseline.beads if bead_id not in beads]
        if gone:
            archive = read_bytes(self._archive, MAX_SNAPSHOT) or b""
            # an archived bead is not lost; search the bytes for its quoted id instead of decoding a large archive
            gone = [bead_id for bead_id in gone if msgspec.json.encode(bead_id) not in archive]
        lost = (Drift(bead_id, "", True, None) for bead_id in gone)
        return (*self._compare(beads, baseline), *lost)

    def _compare(self, beads: Mapping[str, Bead], baseline: Baseline) -> list[Drift]:
        drifts: list[Drift] = []
        for bead_id, bead in beads.items():
            row = baseline.beads.get(bead_id)
            if row is None or bead.status in TERMINAL:
                continue
            now = self._print(bead)
            if now == row:
                continue
            drifts += [
                Drift(bead_id, name, row.get(name), now.get(name))
                for name in FIELDS
                if not _alike(name, row.get(name), now.get(name))
            ]
        return drifts

    def _write(self, beads: Mapping[str, Mapping[str, Any]], history: JournalHistory) -> None:
        document = {
            "schema": "queue-snapshot/1",
            "taken_at": format_instant(now_ns()),
            "journal_seq": max((entry.seq for entry in history.entries), default=0),
            "beads": beads,
        }
        replace_file(self.path, msgspec.json.encode(document) + b"\n")


def _with_ours(baseline: Baseline, history: JournalHistory) -> Baseline:
    """The baseline with our own changes since it was taken, which are not drift."""
    ours = [entry for entry in history.entries if entry.seq > baseline.journal_seq]
    if not ours:
        return baseline
    beads = {bead_id: dict(row) for bead_id, row in baseline.beads.items()}
    for entry in ours:
        for bead_id, fields in entry.after.items():
            row = beads.get(bead_id)
            # first seen with this change, or removed by it: no entry to update
            if row is None or fields is None:
                continue
            for name, value in fields.items():
                if name in FIELDS:
                    row[name] = _kept(name, value)
    return Baseline(beads, baseline.taken_at, baseline.journal_seq, baseline.problem)


def _kept(name: str, value: Any) -> Any:
    """A journalled value in the snapshot's form."""
    if name == "dependencies":
        return list(canonical(name, value) or ())
    if name == "execution-eligible":
        return False if value is False else None
    return value


def _alike(name: str, was: Any, now: Any) -> bool:
    if name == "dependencies":
        return sorted(map(str, was or ())) == sorted(now or ())
    return same(name, was or None if was is not False else False, now)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(called, map(str, value))) or "none"
    return in_words(value)
