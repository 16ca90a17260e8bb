"""Answers on DDx's own trackers, byte for byte those of DDx's own code."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from helix_ddx.flags import GivenFlags
from helix_ddx.store.workspace import VerbCall
from helix_ddx.verbs import create_update, status
from helix_ddx.verbs import lists as listing
from helix_tui.core.ground.time import parse_now

TRACKERS = {
    "april": ("beads-2026-04.jsonl", "april-oldengine", "2026-04-24T13:41:04Z"),
    "head": ("beads-head.jsonl", "head-headengine", "2026-08-21T22:00:28Z"),
}
JSON, EXECUTION = {"json": ["true"]}, {"json": ["true"], "execution": ["true"]}


@pytest.mark.parametrize("era", ["april", "head"])
@pytest.mark.parametrize(
    ("golden", "verb", "flags"),
    [
        ("ready.json", listing.ready, JSON),
        ("ready-execution.json", listing.ready, EXECUTION),
        ("blocked-all.json", listing.blocked, JSON),
        ("dep-tree.txt", create_update.tree, {}),
        ("status.json", status.status, JSON),
    ],
)
def test_an_answer_is_ddxs_own(
    era: str,
    golden: str,
    verb: Callable[[VerbCall], None],
    flags: dict[str, list[str]],
    shared: Path,
    tmp_path: Path,
) -> None:
    if era == "head" and golden in ("blocked-all.json", "status.json"):
        pytest.skip("head's command prints another selection than the store's answer that was kept")
    source, folder, now = TRACKERS[era]
    (tmp_path / ".ddx").mkdir()
    shutil.copy(shared / "data" / "ddx" / source, tmp_path / ".ddx" / "beads.jsonl")
    call = VerbCall(era, GivenFlags(values=flags), clock=lambda: parse_now(now), here=tmp_path)
    verb(call)
    assert b"".join(call.out) == (shared / "data" / "ddx" / "golden" / folder / golden).read_bytes()
