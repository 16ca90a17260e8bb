"""What is listed, ranked, paused, waited for, imported and exported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from helix_ddx.__main__ import main
from tests.helix_ddx.bead.conftest import Desk, MakeDesk


def edge(target: str) -> dict[str, str]:
    return {"depends_on_id": target, "issue_id": "x", "type": "blocks"}


# --- dependencies ---------------------------------------------------------------------------------------


def test_dependencies_are_added_once_and_removed(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"}, {"id": "demo-2"}, {"id": "demo-3", "dependencies": [edge("gone")]})
    bench.must("dep", "add", "demo-1", "demo-2")
    once = bench.tracker.read_bytes()
    bench.must("dep", "add", "demo-1", "demo-2")
    assert bench.tracker.read_bytes() == once
    added = bench.rows()["demo-1"]["dependencies"]
    assert list(added[0]) == ["issue_id", "depends_on_id", "type", "created_at"]
    bench.must("dep", "remove", "demo-1", "demo-2")
    assert "dependencies" not in bench.rows()["demo-1"]
    bench.must("dep", "remove", "demo-1", "never-there")
    bench.must("dep", "add", "demo-3", "demo-1")
    assert bench.rows()["demo-3"]["dependencies"][0] == edge("gone")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("nope", "demo-1"), "bead: not found: nope"),
        (("demo-1", "nope"), "bead: dependency not found: nope"),
        (("demo-1", "demo-1"), "bead: cannot depend on self"),
        (("demo-3", "demo-1"), "bead: circular dependency: demo-3 -> demo-1"),
        (
            ("demo-5", "demo-1"),
            "bead: dependency demo-1 is an ancestor in the parent chain for demo-5: demo-4 -> demo-1",
        ),
        (("demo-6", "demo-1"), "bead: parent cycle detected: demo-7 -> demo-6 -> demo-7"),
    ],
)
def test_dependencies_that_cannot_be(words: tuple[str, str], why: str, desk: MakeDesk) -> None:
    bench = desk(
        {"id": "demo-1", "dependencies": [edge("demo-2")]},
        {"id": "demo-2", "dependencies": [edge("demo-3")]},
        {"id": "demo-3"},
        {"id": "demo-4", "parent": "demo-1"},
        {"id": "demo-5", "parent": "demo-4"},
        {"id": "demo-6", "parent": "demo-7"},
        {"id": "demo-7", "parent": "demo-6"},
    )
    before = bench.tracker.read_bytes()
    assert bench("dep", "add", *words).error == why
    assert bench.tracker.read_bytes() == before


def test_a_tree_ends_even_where_beads_wait_in_a_circle(desk: MakeDesk) -> None:
    chain: list[dict[str, Any]] = [
        {"id": f"c-{number}", "dependencies": [edge(f"c-{number - 1}")]} for number in range(1, 1500)
    ]
    bench = desk(
        {"id": "a"},
        {"id": "b", "dependencies": [edge("a"), edge("c")]},
        {"id": "c", "dependencies": [edge("b")]},
        {"id": "c-0"},
        *chain,
    )
    lines = bench.must("dep", "tree", "a").split("\n")
    assert lines[:3] == ["a [open] bead a", "  └── b [open] bead b", "      └── c [open] bead c"]
    assert len(bench.must("dep", "tree").split("\n")) > 1500


@pytest.mark.parametrize("depends_on", ["demo-1,demo-2", "demo-1"])
def test_a_bead_can_be_born_waiting(depends_on: str, desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"}, {"id": "demo-2"})
    born = bench.must("create", "x", "--depends-on", depends_on, "--depends-on", "demo-1")
    targets = [each["depends_on_id"] for each in bench.rows()[born]["dependencies"]]
    assert targets == depends_on.split(",")
    assert bench("create", "x", "--depends-on", "nope").error == "bead: dependency not found: nope"


# --- lists ----------------------------------------------------------------------------------------------


def test_list_filters_as_ddx_does(desk: MakeDesk) -> None:
    bench = desk(
        {"id": "demo-1", "labels": ["a", "b"], "owner": "me", "spec-id": "S", "n": 5, "on": True},
        {"id": "demo-2", "status": "closed", "labels": ["a"]},
    )

    def ids(*words: str) -> list[str]:
        return [row["id"] for row in bench("ls", "--json", *words).json]

    assert ids("--label", "a") == ["demo-1", "demo-2"]
    assert ids("--label", "a", "--status", "open") == ["demo-1"]
    assert ids("--where", "spec-id=S", "--where", "assignee=me", "--where", "n=5", "--where", "on=true") == ["demo-1"]
    assert ids("--where", "spec-id=") == ["demo-2"]
    assert ids("--where", "priority=2") == []
    assert ids("--where", "no equals sign") == ["demo-1", "demo-2"]
    assert bench.must("list", "--status", "closed") == "demo-2  closed        P2  bead demo-2 [a]"
    assert bench.must("list", "--status", "nope") == "No beads found."


def test_lists_tolerate_fields_of_a_wrong_type(desk: MakeDesk) -> None:
    bench = desk('{"id":"demo-1","title":7,"priority":"high","labels":"x","created_at":5,"status":"open"}')
    shown = bench("list", "--json").json[0]
    assert (shown["title"], shown["priority"], shown["created_at"]) == ("", 0, "0001-01-01T00:00:00Z")
    assert bench("ready").rc == bench("show", "demo-1").rc == bench("status").rc == 0


def test_a_field_whose_name_is_no_text_costs_no_answer(desk: MakeDesk) -> None:
    bench = desk(b'{"id":"demo-1","title":"T","spec-id":"S","status":"proposed","z\xff":1}')
    for words in (
        ("list", "--where", "spec-id=S"),
        ("show", "demo-1"),
        ("show", "demo-1", "--json"),
        ("evidence", "list", "demo-1"),
        *([("needs-human",), ("cooldown", "show", "demo-1")]),
    ):
        assert bench(*words).rc == 0, words
    assert bench.must("list", "--where", "spec-id=S").startswith("demo-1")
    before = bench.tracker.read_bytes()
    refused = bench("update", "demo-1", "--set", "a=b")
    assert (refused.rc, "cannot be separated" in refused.error) == (1, True)
    assert bench.tracker.read_bytes() == before


def test_head_counts_who_is_at_work(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"}, {"id": "demo-2", "status": "proposed"})
    bench.must("update", "demo-1", "--claim")
    report = bench("status", "--json").json
    assert (report["open"], report["in_progress"], report["ready"], report["needs_human"]) == (0, 1, 0, 1)
    work = report["active_work"]
    assert (work["count"], work["bead_ids"]) == (1, ["demo-1"])
    assert (work["records"][0]["source"], work["records"][0]["owner"]) == ("claim", "tester")
    assert "Active bead IDs:    demo-1" in bench.must("status").split("\n")


# --- rank and cooldown ----------------------------------------------------------------------------------


def _three(desk: MakeDesk, **ranks: int | None) -> Desk:
    rows = []
    for name in "abcd":
        rank = ranks.get(name)
        created = f"2026-04-0{ord(name) - 96}T00:00:00Z"
        rows.append({"id": name, "created_at": created, **({} if rank is None else {"queue-rank": rank})})
    return desk(*rows, {"id": "other", "priority": 1})


@pytest.mark.parametrize(
    ("ranks", "words", "order"),
    [
        ({}, ("top", "c"), {"c": 0}),
        ({"a": 0}, ("top", "c"), {"a": 0, "c": -1}),
        ({"a": 0, "b": 10}, ("move", "c", "--after", "a"), {"a": 0, "b": 10, "c": 1}),
        ({"a": 0, "b": 1}, ("move", "c", "--after", "a"), {"a": 0, "c": 10, "b": 20, "d": 30}),
        ({}, ("move", "a", "--before", "d"), {"b": 0, "c": 10, "a": 20, "d": 30}),
        ({"a": 5}, ("move", "d", "--after", "a"), {"a": 5, "d": 6}),
    ],
)
def test_ranks_are_sparse(ranks: dict[str, int], words: tuple[str, ...], order: dict[str, int], desk: MakeDesk) -> None:
    bench = _three(desk, **ranks)
    bench.must("queue", *words)
    assert {name: row["queue-rank"] for name, row in bench.rows().items() if "queue-rank" in row} == order
    bench.must("queue", "clear", words[1])
    assert "queue-rank" not in bench.rows()[words[1]]


def test_focus_tells_what_the_loop_will_not_take(
    desk: MakeDesk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at = desk(
        {"id": "demo-a", "priority": 0, "status": "proposed", "needs-human-summary": "look"},
        {"id": "demo-b", "dependencies": [{"depends_on_id": "gone"}]},
        {"id": "demo-c", "issue_type": "epic"},
        {"id": "demo-d", "parent": "demo-c", "execution-eligible": False},
        {"id": "demo-e", "superseded-by": "demo-b"},
        {"id": "demo-f", "work-retry-after": "2999-01-01T00:00:00Z", "priority": 1},
        {"id": "demo-g", "status": "blocked", "lifecycle-external-blocker-reason": "vendor"},
        {"id": "demo-h", "status": "in_progress"},
    )
    monkeypatch.chdir(at.root)
    assert main(["work", "focus", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["human_required"] == [{"id": "demo-a", "title": "bead demo-a", "reason": "look"}]
    assert [(row["id"], row["blocker_kind"], row.get("detail")) for row in report["blocked_or_planning"]] == [
        ("demo-f", "retry-cooldown", "retry after: 2999-01-01T00:00:00Z"),
        ("demo-b", "dependency", "unclosed deps: gone"),
        ("demo-c", "epic-only", "ordinary ddx work skips epic/container beads"),
        ("demo-d", "not-execution-eligible", None),
        ("demo-e", "superseded", "demo-b"),
        ("demo-g", "blocked-status", "vendor"),
    ]
    assert report["ready_summary"] == {"count": 1, "depth": "shallow"}
    assert report["worker_recommendation"] == "1 bead(s) ready; run 'ddx work' to process."
    assert "1 bead(s) are in_progress" in report["unknowns"][0]
    assert main(["work", "focus"]) == 0
    told = capsys.readouterr().out
    assert "=== Blocked / planning (6) ===" in told
    assert "  [demo-g] bead demo-g\n       blocker: blocked-status — vendor\n" in told


@pytest.mark.parametrize(
    ("words", "rank"),
    [
        (("update", "demo-1", "--set", "queue_rank= +5 "), 5),
        (("update", "demo-1", "--set", "queue-rank=-3"), -3),
        (("update", "demo-1", "--unset", "queue_rank"), None),
        (("update", "demo-1", "--unset", "queue-rank"), None),
        (("queue", "top", "demo-1"), 1),
        (("queue", "clear", "demo-1"), None),
    ],
)
def test_head_writes_one_rank_under_one_name(words: tuple[str, ...], rank: int | None, desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1", "queue_rank": 7}, {"id": "demo-2", "queue_rank": 2})
    bench.must(*words)
    row = bench.rows()["demo-1"]
    assert (row.get("queue-rank"), row.get("queue_rank")) == (rank, None)
    before = bench.tracker.read_bytes()
    refused = bench("update", "demo-1", "--set", "queue-rank=soon")
    assert (refused.rc, refused.error) == (1, 'queue-rank must be an integer, got: "soon"')
    assert bench.tracker.read_bytes() == before


def test_ranks_stay_within_a_priority(desk: MakeDesk) -> None:
    bench = _three(desk)
    why = "bead: queue move limited to one priority bucket: a (P2) and other (P1)"
    assert bench("queue", "move", "a", "--after", "other").error == why
    assert bench("queue", "move", "a", "--after", "nope").error == "bead: not found: nope"
    assert bench("queue", "top", "nope").error == "bead: not found: nope"


def test_a_cooldown_is_shown_and_ended(desk: MakeDesk) -> None:
    pause = {
        "work-retry-after": "2099-01-01T00:00:00Z",
        "work-last-status": "no_changes",
        "work-last-detail": "why",
    }
    bench = desk({"id": "demo-1", **pause}, {"id": "demo-2"}, {"id": "demo-3", **pause, "work-last-status": "x"})
    assert bench.must("cooldown", "show", "demo-1").split("\n") == [
        "bead:        demo-1",
        "retry_after: 2099-01-01T00:00:00Z",
        "last_status: no_changes",
        "last_detail: why",
    ]
    assert bench("cooldown", "show", "demo-1", "--json").json["parked_until"] == "2099-01-01T00:00:00Z"
    assert bench.must("cooldown", "clear", "demo-1") == "Cleared cooldown on demo-1"
    assert bench.must("cooldown", "clear", "demo-1") == "demo-1: no cooldown set"
    assert bench.must("clear-cooldown", "--reason", "nothing") == "0 cooldowns cleared"
    assert bench.must("clear-cooldown", "--all") == "1 cooldowns cleared\n  demo-3"
    row = bench.rows()["demo-3"]
    assert "work-retry-after" not in row
    assert row["events"][0]["kind"] == "cooldown-cleared"


# --- what waits for a person ----------------------------------------------------------------------------


def test_claims_that_a_stuck_worker_gave_up(desk: MakeDesk) -> None:
    body = json.dumps({"attempt_id": "a-1", "last_activity_at": "t", "diagnosis": "hung <b>"})
    at = "2026-05-01T00:00:00.5Z"
    events = [
        {"kind": "operator_attention", "summary": "consecutive_wedge", "body": body, "created_at": at},
        {"kind": "operator_attention", "summary": "no_evidence_produced", "created_at": at},
    ]
    bench = desk({"id": "demo-1", "events": events}, {"id": "demo-2"})
    assert bench("operator-attention", "--json").json == [
        {
            "bead_id": "demo-1",
            "attempt_id": "a-1",
            "last_activity_at": "t",
            "reason": "consecutive_wedge",
            "diagnosis": "hung <b>",
            "created_at": "2026-05-01T00:00:00Z",
        }
    ]
    assert bench.must("operator-attention").startswith("demo-1  attempt=a-1  last_activity_at=t  consecutive_wedge")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--action", "retry"), "open"),
        (("--action", "split", "--children", "demo-2,demo-3"), "open"),
        (("--action", "obsolete"), "closed"),
        (("--action", "defer"), "proposed"),
    ],
)
def test_a_person_decides_about_a_proposed_bead(words: tuple[str, ...], status: str, desk: MakeDesk) -> None:
    meta = {"needs-human-reason": "why", "needs-human-summary": "s", "labels": ["needs_human", "kept"]}
    bench = desk({"id": "demo-1", "status": "proposed", **meta}, {"id": "demo-2"}, {"id": "demo-3"})
    assert bench.must("needs-human") == "demo-1  P2  bead demo-1  s"
    assert bench("needs-human", "--json").json[0]["reason"] == "why"
    bench.must("human", "resolve", "demo-1", *words, "--note", "said so")
    row = bench.rows()["demo-1"]
    assert row["status"] == status
    if status == "open":
        assert (row["labels"], "needs-human-reason" in row) == (["kept"], False)
    events = bench("evidence", "list", "demo-1", "--json").json
    assert events[-1]["kind"] == "needs_human_resolved"
    targets = [each["depends_on_id"] for each in row.get("dependencies", ())]
    assert targets == (["demo-2", "demo-3"] if "split" in words else [])


# --- import and export ----------------------------------------------------------------------------------


def test_what_is_exported_can_be_imported(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1", "n": 1.50}, {"id": "demo-2", "dependencies": [edge("demo-1")]})
    before = bench.tracker.read_bytes()
    bench.must("export", "out/beads.jsonl")
    assert (bench.root / "out" / "beads.jsonl").read_bytes() == before
    assert bench.must("import", "--from", "jsonl", "out/beads.jsonl") == "Imported 0 beads"
    bench.tracker.write_text("")
    assert bench.must("import", "--from", "jsonl", "out/beads.jsonl") == "Imported 2 beads"
    assert bench.tracker.read_bytes() == before


def test_import_puts_right_what_cannot_be_and_tells_what_it_skips(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1", "title": "kept"})
    rows = [
        {"id": "demo-1", "title": "other"},
        {"id": "demo-2", "title": "t", "status": "doing", "priority": 9, "zz": {"b": 1, "a": 2}},
        {"id": "demo-3", "title": "t", "dependencies": [edge("gone")]},
    ]
    (bench.root / "in.json").write_text(json.dumps([*rows, {"title": "no id"}]))
    answer = bench("import", "--from", "jsonl", "in.json")
    assert answer.out == "Imported 2 beads\n"
    assert answer.err.split("\n")[:2] == [
        "bead: import: skipped 1 malformed record(s)",
        "bead: import: demo-3 has dangling dep gone (skipped)",
    ]
    found = bench.rows()
    assert (found["demo-1"]["title"], found["demo-2"]["status"], found["demo-2"]["priority"]) == (
        "kept",
        "open",
        4,
    )
    circle = [
        {"id": "x", "title": "t", "dependencies": [edge("y")]},
        {"id": "y", "title": "t", "dependencies": [edge("x")]},
    ]
    (bench.root / "circle.jsonl").write_text("\n".join(map(json.dumps, circle)))
    before = bench.tracker.read_bytes()
    assert "would create circular dependency involving x" in bench("import", "--from", "jsonl", "circle.jsonl").error
    assert bench.tracker.read_bytes() == before
    assert bench("import", "--from", "jsonl", "nope.jsonl").error.endswith("nope.jsonl: no such file or directory")


def test_init_takes_over_what_an_older_helix_kept(desk: MakeDesk) -> None:
    bench = desk()
    bench.tracker.unlink()
    (bench.root / ".helix").mkdir()
    (bench.root / ".helix" / "issues.jsonl").write_text('{"id":"hx-1","title":"t"}\n')
    lines = bench.must("init").split("\n")
    assert lines == [
        f"Initialized bead storage at {bench.tracker}",
        "Migrated 1 beads from .helix/issues.jsonl",
    ]
    assert list(bench.rows()) == ["hx-1"]
    assert bench.must("init") == lines[0]


# --- where it lies, and what ids begin with -------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "env", "prefix"),
    [
        ("", "", "demo-"),
        ("bead: {}\n", "", "demo-"),
        ("bead:\n  id_prefix: hx\n", "", "hx-"),
        ("bead: {id_prefix: 'hx-'}\n", "", "hx-"),
        ('other:\n  id_prefix: no\nbead:\n    id_prefix: "a.b"  # why\n', "", "a.b-"),
        ("bead:\n  id_prefix: hx\n", "env", "env-"),
    ],
)
def test_what_ids_begin_with(
    config: str, env: str, prefix: str, desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = desk(git=True)
    (bench.root / ".ddx" / "config.yaml").write_text(config)
    if env:
        monkeypatch.setenv("DDX_BEAD_PREFIX", env)
    below = bench.root / "src"
    below.mkdir()
    here, bench.root = bench.root, below
    born = bench.must("create", "x")
    bench.root = here
    assert born in bench.rows()
    assert born.rpartition("-")[0] + "-" == prefix


def test_the_tracker_can_lie_elsewhere(desk: MakeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = desk({"id": "demo-1"})
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv("DDX_BEAD_DIR", str(elsewhere))
    bench.must("init")
    born = bench.must("create", "x")
    assert born in (elsewhere / "beads.jsonl").read_text()
    assert list(bench.rows()) == ["demo-1"]


def test_attempts_are_summed_up(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"})
    for number, result in enumerate(({"tokens": 10, "cost_usd": 0.5, "duration_ms": 100}, {"tokens": 5}, None)):
        folder = bench.root / ".ddx" / "executions" / f"20260401T00000{number}-0000000{number}"
        folder.mkdir(parents=True)
        text = "broken" if result is None else json.dumps({"bead_id": "demo-1", **result})
        (folder / "result.json").write_text(text)
    totals = {"attempt_count": 2, "total_tokens": 15, "total_cost_usd": 0.5, "avg_duration_ms": 50}
    assert bench("metrics", "--json").json == [{"bead_id": "demo-1", "title": "bead demo-1", **totals}]
    assert bench("show", "demo-1", "--json").json["metrics"] == totals
    assert "demo-1" in bench.must("metrics").split("\n")[1]


def test_doctor_finds_what_ddx_would_stumble_over(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1", "notes": "x" * 70_000}, {"id": "demo-2", "dependencies": [edge("gone")]}, "rubbish")
    answer = bench("doctor", "--json")
    found = {(finding["kind"], finding["bead_id"]) for finding in answer.json["findings"]}
    assert found == {
        ("oversized_field", "demo-1"),
        ("dangling_dep", "demo-2"),
        ("unparseable_line", "line 3 (unparseable)"),
    }
    assert bench("doctor").error == "bead doctor: 3 finding(s) — run `ddx bead doctor --fix` to repair"
    bench.tracker.write_text("")
    assert "clean (no fields exceed 65535 bytes)" in bench.must("doctor")


def test_lint_tells_what_a_machine_can_check(desk: MakeDesk) -> None:
    acceptance = "1. `parse_rows` exists\n2. The tests pass\n3. it is nice\n   and friendly\n4. never calls `eval`"
    report = desk({"id": "demo-1", "acceptance": acceptance})("lint", "demo-1", "--json").json
    assert [item["kind"] for item in report["items"]] == ["symbol", "build-gate", "prose", "negative"]
    assert report["items"][2]["text"] == "it is nice and friendly"
    assert (report["score"], report["passes_threshold"]) == (0.75, True)
