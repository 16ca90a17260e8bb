"""Answers on DDx's own trackers, byte for byte those of DDx's own code."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from helix_ddx.flags import GivenFlags
from helix_ddx.store.workspace import VerbCall
from helix_ddx.verbs import create_update
from helix_ddx.verbs import lists as listing
from helix_tui.core.ground.time import parse_now

JSON, EXECUTION = {"json": ["true"]}, {"json": ["true"], "execution": ["true"]}


@pytest.mark.parametrize(
    ("golden", "verb", "flags"),
    [
        ("ready.json", listing.ready, JSON),
        ("ready-execution.json", listing.ready, EXECUTION),
        ("dep-tree.txt", create_update.tree, {}),
    ],
)
def test_an_answer_is_ddxs_own(
    golden: str,
    verb: Callable[[VerbCall], None],
    flags: dict[str, list[str]],
    shared: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / ".ddx").mkdir()
    shutil.copy(shared / "data" / "ddx" / "beads-head.jsonl", tmp_path / ".ddx" / "beads.jsonl")
    call = VerbCall(GivenFlags(values=flags), clock=lambda: parse_now("2026-08-21T22:00:28Z"), here=tmp_path)
    verb(call)
    assert b"".join(call.out) == (shared / "data" / "ddx" / "golden" / "head-headengine" / golden).read_bytes()
