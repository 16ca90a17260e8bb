"""Workers at work in a project, and hooks that may refuse a change.

Run records, leases and workers' status files are read as they stand on disk (docs/formats/ddx.md §4). A project's hooks
``.ddx/hooks/validate-bead-create`` and ``-update`` may refuse a record (§2); `change_row` is the one way of changing
one, with its time, its checks and its hook.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from helix_ddx.files import go_json, stamp
from helix_ddx.flags import Refused
from helix_ddx.store.places import TrackerRow, lease_folder
from helix_ddx.store.tracker import Beads, check_row
from helix_ddx.store.workspace import VerbCall
from helix_tui.core.beads.readiness import Claims
from helix_tui.core.beads.record import Bead, UnreadableLine
from helix_tui.core.ground.files import open_file
from helix_tui.core.ground.processes.threads import pid_alive
from helix_tui.core.ground.project import Project, lease_roots, machine_name
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, parse_instant

TIMEOUT_S = 60

FRESH = 90 * NS
"""How long a heartbeat counts, in both eras."""

HELD = 2 * 3600 * NS
"""How long a lease counts whose process lives on this machine."""

_ENDED = frozenset({"exited", "failed", "stopped", "reaped"})
_MAX_BYTES = 4 << 20


def run_hook(call: VerbCall, name: str, record: bytes) -> None:
    """Ask a hook, if the project has one.

    Raises:
        Refused: it says no, cannot be started or does not answer.
    """
    path = call.workspace.ddx / "hooks" / name
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise Refused(f"bead: hook stat: {error}") from None
    if stat.S_ISDIR(mode) or not mode & 0o111:
        return
    from helix_ddx.files import OtherError, hook  # only where there is a hook

    try:
        code, said = hook(path, record, timeout=TIMEOUT_S)
    except OtherError as problem:
        raise Refused(f"bead: hook {name}: {problem}") from None
    said = said or "validation failed"
    if code == 2:
        call.warn(f"bead: hook {name} warning: {said}")
    elif code == 1:
        raise Refused(f"bead: hook {name}: {said}")
    elif code:
        # ended by a signal, Go says -1 and Python the signal's number
        raise Refused(f"bead: hook {name} exit {max(code, -1)}: {said}")


Source = Literal["lease", "run-state", "sidecar"]


class ActiveWork(Struct, frozen=True):
    """One file's statement about a worker."""

    source: Source
    bead_id: str = ""
    attempt_id: str = ""
    worker_id: str = ""
    owner: str = ""
    machine: str = ""
    harness: str = ""
    model: str = ""
    phase: str = ""
    message: str = ""
    pid: int | None = None
    started_at: int | None = None
    at: int | None = None
    """The last sign of life, in nanoseconds since the epoch."""
    expires_at: int | None = None

    def is_fresh(self, now: int) -> bool:
        """Whether `ddx work status` lists it."""
        if self.pid is not None and self.source != "lease" and not pid_alive(self.pid):
            return False
        if self.source == "run-state":
            return self.expires_at is not None and self.expires_at > now
        return self.at is not None and now - self.at <= FRESH

    def holds(self, now: int, here: str) -> bool:
        """Whether a lease keeps others from its bead: fresh, or its process lives on this machine."""
        if self.at is None or self.at <= 0:
            return False
        age = now - self.at
        if age <= FRESH:
            return True
        return bool(here) and self.machine == here and age <= HELD and self.pid is not None and pid_alive(self.pid)


def read_leases(project: Project, env: Mapping[str, str]) -> list[ActiveWork]:
    """Leases in every place where some release keeps them; of two on one bead, the fresher."""
    found: dict[str, ActiveWork] = {}
    for root in lease_roots(project, env):
        for path, document in _documents(root.glob("*.json")):
            bead_id = _word(document, "bead_id") or path.stem
            lease = _holder("lease", document, bead_id=bead_id, at=_instant(document, "updated_at"))
            if bead_id not in found or (lease.at or 0) > (found[bead_id].at or 0):
                found[bead_id] = lease
    return list(found.values())


def held_beads(project: Project, env: Mapping[str, str], now: int) -> dict[str, bool]:
    """Bead with a lease -> whether that keeps others from it."""
    here = machine_name(env)
    return {lease.bead_id: lease.holds(now, here) for lease in read_leases(project, env)}


def read_run_records(project: Project) -> list[ActiveWork]:
    """Run records: one a project (April), one an attempt (later)."""
    paths = [*(project.ddx_dir / "run-state").glob("*.json"), project.ddx_dir / "run-state.json"]
    found: dict[tuple[str, str], ActiveWork] = {}
    for _, document in _documents(paths):
        bead_id, attempt_id = _word(document, "bead_id"), _word(document, "attempt_id")
        at = _instant(document, "refreshed_at") or _instant(document, "started_at")
        phase = _word(document, "candidate_cycle_phase") or _word(document, "phase")
        record = _holder("run-state", document, bead_id=bead_id, phase=phase, at=at)
        known = found.get((bead_id, attempt_id))
        if bead_id and (known is None or (record.at or 0) > (known.at or 0)):
            found[bead_id, attempt_id] = record
    return list(found.values())


def read_workers(project: Project) -> list[ActiveWork]:
    """Workers' status files, in their own form or in a server's."""
    found = []
    for path, document in _documents((project.ddx_dir / "workers").glob("*/status.json")):
        ended = _word(document, "state") in _ENDED or _instant(document, "finished_at") is not None
        # only a server's record has an end; a worker's own file just grows old
        if ended and "worker_id" not in document:
            continue
        attempt = document.get("current_attempt")
        both = {**document, **(attempt if isinstance(attempt, dict) else {})}
        phase = _word(document, "phase") or _word(both, "phase") or _word(document, "substate")
        bead_id = "" if phase == "terminal" else _word(document, "current_bead") or _word(both, "bead_id")
        named = _word(document, "worker_id") or _word(document, "id") or path.parent.name
        at = _instant(document, "last_activity_at")
        found.append(_holder("sidecar", both, bead_id=bead_id, phase=phase, at=at, worker_id=named))
    return found


def _documents(paths: Iterable[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Files that hold a JSON object, by name; one that is missing, too large or malformed is left out."""
    for path in sorted(paths):
        try:
            with open_file(path) as file:
                # one byte more than may be, to tell that it is too large
                raw = file.read(_MAX_BYTES + 1)
            document = msgspec.json.decode(raw) if len(raw) <= _MAX_BYTES else None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(document, dict):
            yield path, document


def _holder(
    source: Source, document: Mapping[str, Any], *, bead_id: str, at: int | None, phase: str = "", worker_id: str = ""
) -> ActiveWork:
    return ActiveWork(
        source,
        bead_id=bead_id,
        attempt_id=_word(document, "attempt_id"),
        worker_id=worker_id or _word(document, "worker_id"),
        owner=_word(document, "owner"),
        machine=_word(document, "machine"),
        harness=_word(document, "harness"),
        model=_word(document, "model"),
        phase=phase,
        message=_word(document, "message") or _word(document, "route"),
        pid=_pid(document.get("pid")),
        started_at=_instant(document, "started_at"),
        at=at,
        expires_at=_instant(document, "expires_at"),
    )


def _word(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    return clean_line(value, 400) if isinstance(value, str) else ""


def _instant(document: Mapping[str, Any], key: str) -> int | None:
    return parse_instant(document.get(key))


def _pid(value: object) -> int | None:
    # some releases write it as text
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def claims_of(call: VerbCall) -> Claims:
    """What readiness needs to know from outside the tracker."""
    project = call.workspace.project
    origin = project.origin_head() or ""
    return Claims(leases=held_beads(project, call.env, call.clock()), origin_head=origin)


def read_lease(call: VerbCall, bead_id: str) -> dict[str, Any] | None:
    """The lease on a bead, wherever some release put it."""
    if not _is_name(bead_id):
        return None
    for root in lease_roots(call.workspace.project, call.env):
        try:
            found = json.loads((root / f"{bead_id}.json").read_bytes()[: 1 << 16])
        except (OSError, ValueError):
            continue
        if isinstance(found, dict):
            return found
    return None


def write_lease(call: VerbCall, bead_id: str, owner: str, at: int) -> None:
    """Write a lease on the bead."""
    if not _is_name(bead_id):
        return
    folder = lease_folder(call.workspace.root, call.env)
    folder.mkdir(parents=True, exist_ok=True)
    lease = {"bead_id": bead_id}
    lease |= {"owner": owner} if owner else {}
    lease |= {"machine": machine_name(call.env), "started_at": stamp(at), "updated_at": stamp(at)}
    text = go_json({**lease, "pid": os.getpid()}) + "\n"
    beside = folder / f"{bead_id}.json.tmp-{os.urandom(5).hex()}"
    try:
        beside.write_text(text, encoding="utf-8")
        beside.rename(folder / f"{bead_id}.json")
    finally:
        beside.unlink(missing_ok=True)


def remove_lease(call: VerbCall, bead_id: str) -> None:
    """Remove the leases on the bead."""
    if not _is_name(bead_id):
        return
    own = lease_folder(call.workspace.root, call.env)
    # in every place: it moved between releases, and any of them would still hold the bead
    for root in (own, *lease_roots(call.workspace.project, call.env)):
        (root / f"{bead_id}.json").unlink(missing_ok=True)


def _is_name(bead_id: str) -> bool:
    # an id with a slash would name a file outside the folder
    return Path(bead_id).name == bead_id


def change_row(call: VerbCall, beads: Beads, bead_id: str, change: Callable[[TrackerRow], None]) -> Bead:
    """Change one record, with the time, the checks and the hook that go with every change.

    Raises:
        Refused: there is no such bead, or something objects.
    """
    row = beads.row(bead_id)
    try:
        change(row)
    except UnreadableLine as problem:
        raise Refused(f"bead: {bead_id}: {problem}; nothing was written") from None
    row.put("updated_at", stamp(call.clock()))
    check_row(row)
    run_hook(call, "validate-bead-update", row.line())
    return beads.put(row)
