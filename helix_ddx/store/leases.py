"""Head's claims beside the tracker: one small file a bead, in a folder that is named after the project.

Formats: docs/formats/ddx.md §1 (lease) and §4.3. What counts as fresh is decided in `holders`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from helix_ddx.base.files import go_json
from helix_ddx.base.stamps import stamp
from helix_ddx.store.call import VerbCall
from helix_ddx.store.holders import held_beads
from helix_ddx.store.places import lease_folder
from helix_tui.core.beads.readiness import Claims
from helix_tui.core.ground.project import lease_roots, machine_name


def claims_of(call: VerbCall) -> Claims:
    """What readiness needs to know from outside the tracker."""
    project = call.workspace.project
    origin = project.origin_head() or ""
    if not call.head:
        return Claims(origin_head=origin)
    return Claims(leases=held_beads(project, call.env, call.clock()), origin_head=origin)


def read_lease(call: VerbCall, bead_id: str) -> dict[str, Any] | None:
    """The lease on a bead, wherever some release put it."""
    if not call.head or not _is_name(bead_id):
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
    """Say that somebody here holds the bead."""
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
    """Nobody holds the bead any more."""
    if not call.head or not _is_name(bead_id):
        return
    own = lease_folder(call.workspace.root, call.env)
    for root in (own, *lease_roots(call.workspace.project, call.env)):
        (root / f"{bead_id}.json").unlink(missing_ok=True)


def _is_name(bead_id: str) -> bool:
    return Path(bead_id).name == bead_id
