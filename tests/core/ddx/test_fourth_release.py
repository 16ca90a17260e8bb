"""A release that nobody knows: a scripted executable between the known ones. It gets what it proves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helix_tui.core.beads.readiness import classify
from helix_tui.core.ddx.dialect import Dialect, rule_for
from helix_tui.core.ddx.probe import at_hand
from helix_tui.core.ddx.remarks import remarks
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import parse_now
from helix_tui.core.supervision.stages.build import undone
from helix_tui.core.supervision.stages.delegate import AgentChoice, Delegate
from tests.programs import parse_rows, write_program

pytestmark = pytest.mark.long

NOW = parse_now("2026-08-01T12:00:00Z")

FOURTH = """
import json, os, sys
words = sys.argv[1:]
helps = {{
    "work": "  --once\\n  --json\\n  --harness string",
    "try": "  -h, --help\\n  --json\\n  --model string",
    "bead update": "  --set stringArray\\n  --status string",
    "bead create": "  --set stringArray\\n  --depends-on strings",
    "bead ready": "  --execution\\n  --json",
}}
if "--help" in words:
    name = " ".join(word for word in words if word != "--help")
    if name not in helps:
        sys.exit(1)
    print("About it. The old --local is gone.\\n\\nUsage:\\n  ddx " + name + " [flags]\\n\\nFlags:")
    print(helps[name])
    if os.environ.get("FOURTH") == "heeds":
        print("Stop conditions:\\n  signal   SIGINT/SIGTERM received between attempts")
    sys.exit(0)
if os.environ.get("FOURTH") == "mute":
    sys.exit(3)
file = ".ddx/beads.jsonl"
rows = [json.loads(line) for line in open(file)]
closed = {{row["id"] for row in rows if row["status"] == "closed"}}
if words[:2] == ["bead", "ready"] and os.environ.get("FOURTH") == "lacks":
    sys.exit("Error: unknown flag: --execution")
elif words[:2] == ["bead", "list"]:
    print(json.dumps(rows))
elif words[:2] == ["bead", "ready"]:
    # old keys pause, childless epics are work, a title makes no epic, a claim in the row holds
    parents = {{row.get("parent") for row in rows}}
    ready = [
        row for row in rows
        if row["status"] == "open" and "execute-loop-retry-after" not in row and "superseded-by" not in row
        and row.get("execution-eligible") is not False
        and not (row["issue_type"] == "epic" and row["id"] in parents)
        and all(edge["depends_on_id"] in closed for edge in row.get("dependencies", ()))
        and "needs_human" not in row.get("labels", ())
    ]
    print(json.dumps(sorted(ready, key=lambda row: (row["priority"], row["created_at"], row["id"]))))
elif words[:2] == ["bead", "status"]:
    print(json.dumps({{"ready": 0, "blocked": 0}}))
elif words[:2] == ["doc", "audit"]:
    # of three documents it reads the hidden one and misses the metric of the gate; a status may be a list
    print(json.dumps([{{"path": path}} for path in (".kept/t-hidden.md", "t-gate.md") if os.path.exists(path)]))
    sys.exit(1)
elif words[:2] == ["bead", "update"]:
    row = next(row for row in rows if row["id"] == words[2])
    if "--claim" in words:
        row |= {{"status": "in_progress", "claimed-at": "2026-08-01T00:00:00Z"}}
    for word in words:
        if word.startswith("queue-rank="):
            row["queue-rank"] = float(word.partition("=")[2])
    if "--status" in words:
        sys.exit(1)
    open(file, "w").writelines(json.dumps(row, separators=(",", ":")) + "\\n" for row in rows)
else:
    sys.exit(1)
"""


@pytest.fixture
def fourth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("HELIX_DDX_TRIAL")
    path = tmp_path / "ddx"
    write_program(path, FOURTH.format())
    return path


def known(path: Path) -> Dialect:
    found = at_hand(str(path), path.parent)
    assert found is not None
    return found


def test_it_gets_what_its_help_and_a_trial_prove(fourth: Path) -> None:
    found = known(fourth)
    assert found.proven
    assert (found.rule.old_keys, found.rule.new_keys, found.rule.titled_epics) == (True, False, False)
    assert (found.lifecycle, found.leases, found.claim_in_row, found.rank_is_number) == (
        False,
        False,
        True,
        True,
    )
    assert (found.closes_waiting, found.closes_epics, found.gives_out_waiting) == (False, False, True)
    assert (found.rank, found.depends_on, found.blocker_reason) == (False, True, False)
    assert (found.drain, found.carries_through, found.gives_back) == (("work",), True, False)
    row = {
        "id": "a",
        "title": "Epic: x",
        "status": "open",
        "priority": 1,
        "execute-loop-retry-after": "2099-01-01T00:00:00Z",
    }
    beads = parse_rows(json.dumps(row).encode()).beads
    assert classify(beads, now=NOW, era=rule_for(found)).ready == ()


def test_its_commands_are_those_of_its_own_help(fourth: Path) -> None:
    delegate = Delegate(find_project(fourth.parent), str(fourth))
    who = AgentChoice("codex", "m")
    assert delegate.drain(who) == ("work", "--once", "--json", "--harness", "codex")
    assert delegate.one_bead("a", who) == ("try", "a", "--json", "--model", "m")
    assert undone(delegate.dialect) == ()


def test_where_no_trial_succeeds_only_its_verbs_are_known(fourth: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOURTH", "mute")
    found = known(fourth)
    assert not found.proven
    assert found.drain == ("work",)
    assert rule_for(found) == "auto", "the tracker's own era decides, and nobody says it is this ddx's rule"
    assert (found.closes_waiting, found.gives_out_waiting, found.waits_on_parents) == (True, True, True)
    (said,) = remarks({}, found)
    assert "could not be tried" in said.text, "what nobody knows is no ground to refuse, and is said"
    monkeypatch.delenv("FOURTH")
    monkeypatch.setattr("helix_tui.core.ddx.probe._seen", {})
    assert known(fourth).proven, "what may pass is tried again"


def test_what_an_interrupt_costs_is_what_its_help_says(fourth: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOURTH", "heeds")
    found = known(fourth)
    assert found.claim_in_row, "where the claim stands says nothing of that: 10 May lets go of one in the row"
    assert found.gives_back


def test_what_it_lacks_leaves_the_rest_of_the_trial(fourth: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOURTH", "lacks")
    found = known(fourth)
    assert (found.proven, rule_for(found)) == (False, "auto")
    assert (found.closes_waiting, found.gives_out_waiting, found.rank_is_number) == (False, True, True)
    (said,) = remarks({}, found)
    assert "unknown flag: --execution" in said.text
    monkeypatch.setenv("FOURTH", "mute")
    monkeypatch.setattr("helix_tui.core.ddx.probe._seen", {})
    assert known(fourth) == found, "kept by its content: it is not asked again"
