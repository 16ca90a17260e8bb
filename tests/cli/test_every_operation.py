"""Every operation from the command line, alone and on several beads, then undone: the file as it was.

On small trackers of both releases always; ``HELIX_LOAD=full`` takes the given ones too.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import format_instant, now_ns
from helix_tui.core.snapshot.feed import take_snapshot
from tests.cli.conftest import Cli
from tests.conftest import ProjectFactory
from tests.core.supervision.conftest import go_line, row

pytestmark = pytest.mark.long

FULL = os.environ.get("HELIX_LOAD") == "full"
GIVEN = {"head": "beads-head.jsonl", "april": "beads-2026-04.jsonl"}

Words = Callable[["Picked"], list[str]]


class Picked:
    """Beads of a tracker that operations can be tried on, whatever else it holds."""

    def __init__(self, queue: Queue) -> None:
        beads = queue.beads
        self.ready = [bead_id for bead_id in queue.ready if queue.state(bead_id) == "ready"][:3]
        self.waiting, self.target = next(
            (bead_id, other)
            for bead_id, bead in beads.items()
            for other in bead.depends_on
            if other in beads and bead.status != "closed"
        )
        self.described = next(bead_id for bead_id in self.ready if b'"description"' in beads[bead_id].raw)
        self.closed = [
            bead_id
            for bead_id, bead in beads.items()
            if bead.status == "closed" and not bead.parent and not bead.superseded_by and not bead.owner
        ][:2]
        self.epic = next(
            bead_id
            for bead_id in beads
            if any(beads[child].status == "open" for child in queue.graph.children.get(bead_id, ()))
            and beads[bead_id].status not in ("closed", "cancelled")
        )


OPERATIONS: dict[str, Words] = {
    "eligible off": lambda p: ["eligible", p.ready[0], "off"],
    "supersede": lambda p: ["supersede", p.ready[0], p.ready[1]],
    "dep add": lambda p: ["dep", "add", p.ready[0], p.ready[1]],
    "dep remove": lambda p: ["dep", "remove", p.waiting, p.target],
    "parent": lambda p: ["set", p.ready[0], f"parent={p.ready[1]}"],
    "priority": lambda p: ["set", p.ready[0], "priority=4"],
    "labels": lambda p: ["label", p.ready[0], "--add", "area:x", "--add", "kind:y"],
    "title and texts": lambda p: [
        "set", p.ready[0], "title=-t", "description=one\ntwo", "acceptance=<a> & b", "notes=n", "owner=me",
    ],
    "type and own fields": lambda p: ["set", p.ready[0], "type=bug", "spec-id=S-1", "fresh=true", "even=5"],
    "unset": lambda p: ["unset", p.described, "description", "acceptance", "labels"],
    "claim": lambda p: ["claim", p.ready[0]],
    "close": lambda p: ["close", p.ready[0]],
    "reopen": lambda p: ["reopen", p.closed[0], "--reason", "look again"],
    "focus": lambda p: ["focus", p.epic],
    "priority, in bulk": lambda p: ["set", ",".join(p.ready), "priority=3"],
    "labels, in bulk": lambda p: ["label", *p.ready, "--add", "area:bulk"],
    "eligible, in bulk": lambda p: ["eligible", ",".join(p.ready), "off"],
    "reopen, in bulk": lambda p: ["reopen", *p.closed],
    "close, in bulk": lambda p: ["close", *p.ready[:2]],
}  # fmt: skip

AT_HEAD: dict[str, Words] = {
    "rank": lambda p: ["rank", p.ready[0], "--top"],
    "blocked": lambda p: [
        "set", p.ready[0], "status=blocked", "lifecycle-external-blocker-reason=waits for the vendor",
    ],
}  # fmt: skip


def small() -> list[str]:
    """A tracker in which every operation finds its bead."""
    rows = [
        row("demo-1", description="d", acceptance="a", labels=["helix", " odd", "x"]),
        row("demo-2", priority=1, owner="somebody", odd=1.5),
        row("demo-3", parent="demo-e", notes="two\nlines"),
        row("demo-4", "demo-1", "demo-2"),
        row("demo-5", status="closed"),
        row("demo-6", status="closed", closing_commit_sha="abc"),
        row("demo-e", issue_type="epic", title="Epic: e"),
        row("demo-h", execution__eligible=True),
    ]
    return [go_line(each).rstrip("\n") for each in rows]


def neutral(line: bytes) -> tuple[str, list[object]]:
    """A line without what an undo may leave: instants, the order of edges, the history of reopenings."""
    document = json.loads(line)
    edges = sorted((edge["depends_on_id"], edge.get("type")) for edge in document.pop("dependencies", None) or ())
    for name in ("updated_at", "events", "events_attachment", "schema_version"):
        document.pop(name, None)
    return json.dumps(document), list(edges)


def check_back(before: bytes, after: bytes) -> None:
    """The same rows in the same order; those that nobody touched to the byte."""
    old, new = before.splitlines(), after.splitlines()
    assert len(old) == len(new)
    for one, two in zip(old, new, strict=True):
        assert one == two or neutral(one) == neutral(two)


def trial(cli: Cli, root: Path, words: list[str]) -> None:
    tracker = root / ".ddx" / "beads.jsonl"
    before = tracker.read_bytes()
    # one instant for both: a focus mark holds it, and a second may pass between two calls
    now = format_instant(now_ns())
    shown = cli(*words, "--dry-run", "--json", "-C", root, "--now", now).document
    assert tracker.read_bytes() == before
    assert shown["commands"], words
    done = cli(*words, "--json", "-C", root, "--now", now)
    assert (done.code, done.err) == (0, ""), (words, done.err)
    assert done.document["commands"] == shown["commands"]
    assert tracker.read_bytes() != before
    assert done.document["undoable"], done.document["why_not"]
    foretold = cli("undo", "--dry-run", "--json", "-C", root).document
    back = cli("undo", "--json", "-C", root)
    assert (back.code, back.err) == (0, ""), (words, back.err)
    ran = [operation["commands"] for operation in back.document["operations"]]
    assert ran == [operation["commands"] for operation in foretold["operations"]]
    check_back(before, tracker.read_bytes())


def picked(root: Path) -> Picked:
    return Picked(take_snapshot(find_project(root), attempts=False).queue)


@pytest.fixture(autouse=True)
def _embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)


@pytest.mark.parametrize("name", [*OPERATIONS, *AT_HEAD])
def test_done_and_taken_back(name: str, cli: Cli, project: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(small())
    trial(cli, root, (OPERATIONS | AT_HEAD)[name](picked(root)))


@pytest.mark.skipif(not FULL, reason="HELIX_LOAD=full takes the given trackers too")
def test_done_and_taken_back_on_the_given_trackers(
    cli: Cli, shared: Path, project: ProjectFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project()
    shutil.copy(shared / "data" / "ddx" / GIVEN["head"], root / ".ddx" / "beads.jsonl")
    beads = picked(root)
    for name, words in (OPERATIONS | (AT_HEAD)).items():
        if name != "focus":  # hundreds of commands: the small trackers do that
            trial(cli, root, words(beads))


def test_what_has_no_way_back_says_so_beforehand(
    cli: Cli, project: ProjectFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(small())
    words = ["cancel", "demo-1"]
    shown = cli(*words, "--dry-run", "--json", "-C", root).document
    assert not shown["undoable"]
    assert shown["why_not"]
    assert cli(*words, "-C", root).code == 0
    refused = cli("undo", "-C", root)
    assert refused.code == 1
    assert "cannot be undone" in refused.err
