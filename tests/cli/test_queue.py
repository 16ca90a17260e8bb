"""``helix-tui queue``: the contract of docs/formats/cli.md, and what people read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.beads.readiness import classify
from helix_tui.core.beads.record import Bead, Dependency
from tests.cli.conftest import Cli
from tests.conftest import ProjectFactory

NOW = "2026-08-21T22:00:28Z"


def bead(bead_id: str, *waits_on: str, **fields: Any) -> dict[str, Any]:
    """A row; keyword underscores become dashes where DDx writes dashes."""
    row: dict[str, Any] = {
        "id": bead_id,
        "title": f"Title of {bead_id}",
        "status": "open",
        "priority": 1,
        "issue_type": "task",
        "created_at": "2026-08-01T00:00:00Z",
        "schema_version": 1,
    }
    if waits_on:
        row["dependencies"] = [{"issue_id": bead_id, "depends_on_id": target, "type": "blocks"} for target in waits_on]
    return row | fields


ROWS = [
    bead("demo-a1", priority=0),
    bead("demo-b2", "demo-a1", parent="demo-e5"),
    bead("demo-c3", "demo-a1", "demo-b2"),
    bead("demo-d4", "demo-gone"),
    bead("demo-e5", issue_type="epic"),
    bead("demo-f6", status="closed"),
    bead("demo-g7", status="resting"),
    bead("demo-h8", "demo-i9"),
    bead("demo-i9", "demo-h8"),
    '{"id": "demo-j10", "title": "cut o',
]


def test_document_has_exactly_the_promised_keys(cli: Cli, project: ProjectFactory) -> None:
    ran = cli("queue", "--json", "-C", project(ROWS), "--now", NOW)
    assert ran.code == 0
    document = ran.document
    assert document["schema"] == "queue/1"
    assert {
        "source", "era", "as_of", "counts", "ready", "beads", "running", "dropped", "unknown_statuses",
        "dangling", "cycles",
    } <= document.keys()  # fmt: skip
    assert set(document["source"]) == {"kind", "path", "sha256", "mtime", "rows", "archived"}
    for row in document["beads"]:
        assert set(row) == {
            "id", "title", "status", "state", "reasons", "priority", "parent", "depends_on", "dependents",
            "unblocks", "holds_up", "chain", "on_critical_path", "running",
        }  # fmt: skip
        for reason in row["reasons"]:
            assert set(reason) == {"kind", "detail", "refs"}


def test_document_tells_the_truth_about_every_line(cli: Cli, project: ProjectFactory) -> None:
    document = cli("queue", "--json", "-C", project(ROWS), "--now", NOW).document
    beads = {row["id"]: row for row in document["beads"]}
    assert document["era"] == "head"
    assert document["as_of"] == NOW
    assert document["ready"] == ["demo-a1"]
    assert document["source"]["rows"] == 10
    assert [line["line"] for line in document["dropped"]] == [10]
    assert document["unknown_statuses"] == {"resting": 1}
    assert document["dangling"] == [{"bead_id": "demo-d4", "missing": "demo-gone"}]
    assert document["cycles"] == [["demo-h8", "demo-i9"]]
    assert beads["demo-a1"]["state"] == "ready"
    assert beads["demo-a1"]["unblocks"] == 1
    assert beads["demo-a1"]["dependents"] == ["demo-b2", "demo-c3"]
    assert beads["demo-b2"]["parent"] == "demo-e5"
    assert beads["demo-c3"]["reasons"][0]["refs"] == ["demo-a1", "demo-b2"]
    assert beads["demo-e5"]["state"] == "epic_container"
    assert beads["demo-g7"]["state"] == "unknown_status"
    assert sum(document["counts"].values()) == 9


def test_titles_are_raw_in_json_and_clean_for_people(cli: Cli, project: ProjectFactory) -> None:
    title = "red \x1b[31malert\x1b]0;gotcha\x07 \u202eright to left [bold]markup[/bold]"
    root = project([bead("demo-a1", title=title)])
    assert cli("queue", "--json", "-C", root).document["beads"][0]["title"] == title
    listed = cli("queue", "-C", root).out
    assert "\x1b" not in listed
    assert "\u202e" not in listed
    assert "[bold]markup[/bold]" in listed


def test_odd_records_keep_the_columns(cli: Cli, project: ProjectFactory) -> None:
    root = project(
        [
            bead("demo-a1", priority=10**30, title=""),
            '{"id":"demo-\\ud800","title":"\\ud801","status":"open"}',
            bead("demo-b2", title="w" * 10_000),
        ]
    )
    for order in ("pick", "tree", "dag"):
        lines = cli("queue", "--order", order, "-C", root).out.splitlines()
        assert all(len(line) <= 100 for line in lines)
        assert any("(no title)" in line for line in lines)
        assert len(cli("queue", "--order", order, "--json", "-C", root).document["beads"]) == 3


def test_filter_keeps_what_it_matches_and_refuses_what_it_does_not_understand(
    cli: Cli, project: ProjectFactory
) -> None:
    root = project(ROWS)
    ran = cli("queue", "--json", "--filter", "state:ready,waiting_dependencies p<=0", "-C", root)
    assert [row["id"] for row in ran.document["beads"]] == ["demo-a1"]
    assert ran.document["counts"]["closed"] == 1
    unclear = cli("queue", "--json", "--filter", "colour:red", "-C", root)
    assert unclear.code == 2
    assert "colour" in unclear.document["error"]["message"]
    assert "1 closed" in cli("queue", "--filter", "status:closed", "-C", root).out


@pytest.mark.parametrize("order", ["pick", "tree", "dag"])
def test_every_order_holds_every_bead_once(cli: Cli, project: ProjectFactory, order: str) -> None:
    document = cli("queue", "--json", "--order", order, "-C", project(ROWS)).document
    ids = [row["id"] for row in document["beads"]]
    assert sorted(ids) == sorted(f"demo-{name}" for name in ["a1", "b2", "c3", "d4", "e5", "f6", "g7", "h8", "i9"])


def test_era_forces_one_rule(cli: Cli, project: ProjectFactory) -> None:
    root = project([bead("demo-a1", issue_type="epic"), bead("demo-b2")])
    assert cli("queue", "--json", "--era", "head", "-C", root).document["ready"] == ["demo-a1", "demo-b2"]
    april = cli("queue", "--json", "--era", "april", "-C", root).document
    assert april["ready"] == ["demo-b2"]
    assert april["era"] == "april"


def test_listing_says_what_is_not_shown(cli: Cli, project: ProjectFactory) -> None:
    out = cli("queue", "-C", project(ROWS), "--now", NOW).out
    assert "1 closed" in out
    assert "1 line unread" in out
    assert "line 10" in out
    assert "resting" in out
    assert "demo-gone" in out
    assert "dependency cycle" in out
    assert all(len(line) <= 100 for line in out.splitlines())


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([], "the queue is empty"),
        (["{torn"], "no line of the tracker can be read"),
        ([bead("demo-a1", status="closed")], "every bead is closed or cancelled"),
        ([bead("demo-a1", status="closed"), "{torn"], "every bead that can be read is closed or cancelled"),
    ],
)
def test_a_listing_without_rows_says_why_there_are_none(
    rows: list[Any], why: str, cli: Cli, project: ProjectFactory
) -> None:
    assert why in cli("queue", "-C", project(rows)).out


def test_no_tracker_is_an_error_with_a_way_out(cli: Cli, tmp_path: Path) -> None:
    ran = cli("queue", "-C", tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert "beads.jsonl" in ran.err
    assert "helix-tui demo" in ran.err
    ran = cli("queue", "--json", "-C", tmp_path)
    assert ran.code == 1
    assert ran.document["error"]["code"] == 1


def test_a_folder_in_place_of_the_tracker_is_an_error(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / ".ddx" / "beads.jsonl").mkdir(parents=True)
    ran = cli("queue", "-C", tmp_path)
    assert ran.code == 1
    assert "cannot read" in ran.err


def test_named_folder_wins_over_the_repository_around_it(cli: Cli, project: ProjectFactory) -> None:
    outer = project([bead("outer-1")], git=True)
    inner = outer / "inner"
    (inner / ".ddx").mkdir(parents=True)
    (inner / ".ddx" / "beads.jsonl").write_text('{"id": "inner-1", "title": "t"}\n')
    assert cli("queue", "--json", "-C", inner).document["ready"] == ["inner-1"]
    (outer / "plain").mkdir()
    assert cli("queue", "--json", "-C", outer / "plain").document["ready"] == ["outer-1"]


@pytest.mark.parametrize(("tracker", "golden", "now"), [
    ("beads-head.jsonl", "head-headengine", "2026-08-21T22:00:28Z"),
    ("beads-2026-04.jsonl", "april-oldengine", "2026-04-24T13:41:04Z"),
])  # fmt: skip
def test_ready_is_ddx_own_order(cli: Cli, tmp_path: Path, shared: Path, tracker: str, golden: str, now: str) -> None:
    import json

    (tmp_path / ".ddx").mkdir()
    (tmp_path / ".ddx" / "beads.jsonl").write_bytes((shared / "data/ddx" / tracker).read_bytes())
    recorded = json.loads((shared / "data/ddx/golden" / golden / "ready-execution.json").read_text())
    document = cli("queue", "--json", "-C", tmp_path, "--now", now).document
    assert document["ready"] == [row["id"] for row in recorded]


_IDS = [f"b{number}" for number in range(7)]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["open", "open", "open", "in_progress", "closed", "cancelled", "blocked", "odd"]),
            st.lists(st.sampled_from([*_IDS, "gone"]), max_size=3),
            st.booleans(),
        ),
        min_size=7,
        max_size=7,
    )
)
def test_unblocks_in_one_pass_equals_the_queue_asked_bead_by_bead(
    rows: list[tuple[str, list[str], bool]],
) -> None:
    beads = {
        bead_id: Bead(
            id=bead_id,
            status=status,
            dependencies=tuple(Dependency(target) for target in targets),
            execution_eligible=False if withheld else None,
        )
        for bead_id, (status, targets, withheld) in zip(_IDS, rows, strict=True)
    }
    queue = classify(beads, now=0)
    freed = queue.unblock_counts
    assert {bead_id: freed[bead_id] for bead_id in beads} == {
        bead_id: len(queue.unblocks(bead_id)) for bead_id in beads
    }


def test_a_view_of_needs_me_is_no_filter_of_the_queue(
    cli: Cli, project: ProjectFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(ROWS)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "helix-tui").mkdir()
    (tmp_path / "helix-tui" / "views.toml").write_text(
        '[[view]]\nname = "old ones"\nfilter = "waits>3d"\nview = "needs"\n'
    )
    refused = cli("queue", "--view", "old ones", "-C", root)
    assert refused.code == 2
    assert "helix-tui needs --filter 'waits>3d'" in refused.err


def test_a_view_filters_and_sorts_and_an_unknown_one_is_said(cli: Cli, project: ProjectFactory) -> None:
    root = project(ROWS)
    shown = cli("queue", "--view", "critical path", "--json", "-C", root, "--now", NOW)
    same = cli("queue", "--filter", "path:yes order:path", "--json", "-C", root, "--now", NOW)
    assert [row["id"] for row in shown.document["beads"]] == [row["id"] for row in same.document["beads"]] != []
    unknown = cli("queue", "--view", "nothing", "-C", root)
    assert unknown.code == 2
    assert "critical path" in unknown.err
