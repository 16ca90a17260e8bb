"""Attempts from every source: who belongs to whom, whose word counts, what is not looked at again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.beads.record import Bead, decode_bead
from helix_tui.core.ddx.attempts.evidence import read_evidence
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.claims import Hold
from helix_tui.core.ddx.names import STATUSES, status_of
from helix_tui.core.ground.time import parse_instant

FIRST = "20260801T100000-aaaaaaaa"
SECOND = "20260801T110000-bbbbbbbb"


class Place:
    """A tracker's folder and a pen."""

    def __init__(self, root: Path) -> None:
        self.ddx = root / ".ddx"
        self.ddx.mkdir()
        self.beads: dict[str, Bead] = {}
        self.index = AttemptIndex(self.ddx)

    def write(self, name: str, *documents: Mapping[str, Any] | str) -> Path:
        path = self.ddx / name
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = [document if isinstance(document, str) else json.dumps(document) for document in documents]
        path.write_text("".join(f"{text}\n" for text in texts))
        return path

    def bundle(self, attempt: str, bead: str = "b-1", **result: Any) -> None:
        self.write(f"executions/{attempt}/manifest.json", {"attempt_id": attempt, "bead_id": bead, "base_rev": "aaa"})
        if result:
            self.write(f"executions/{attempt}/result.json", {"bead_id": bead, "attempt_id": attempt, **result})

    def row(self, bead: str = "b-1", *events: Mapping[str, Any], **fields: object) -> None:
        row = {"id": bead, "title": "t", "status": "open", "events": list(events), **fields}
        self.beads[bead] = decode_bead(json.dumps(row).encode())

    def look(self) -> Any:
        self.index.refresh(self.beads)
        (attempt,) = self.index.attempts
        return attempt


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def event(kind: str, summary: str, body: object = "", at: str = "2026-08-01T10:05:00Z") -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    return {"kind": kind, "summary": summary, "body": text, "created_at": at}


def metric(attempt: str, outcome: str, bead: str = "b-1", **more: object) -> dict[str, Any]:
    return {"schema_version": 1, "attempt_id": attempt, "bead_id": bead, "outcome": outcome, **more}


def loop_result(**data: object) -> dict[str, Any]:
    return {
        "type": "bead.result",
        "ts": "2026-08-01T10:05:01Z",
        "session_id": "l",
        "data": {"bead_id": "b-1", **data},
    }


def test_the_sources_of_one_attempt_become_one_record(place: Place) -> None:
    place.bundle(
        FIRST, status="success", outcome="task_succeeded", session_id="eb-1", harness="claude",
        model="sonnet", base_rev="aaa", result_rev="bbb", duration_ms=5000, started_at="2026-08-01T10:00:01Z",
        finished_at="2026-08-01T10:00:06Z", cost_usd=0.5, tokens=30, exit_code=0,
    )  # fmt: skip
    usage = {"input_tokens": 20, "cached_tokens": 5, "output_tokens": 10, "tokens": 30}
    place.write(f"executions/{FIRST}/usage.json", usage)
    place.write("metrics/attempts.jsonl", metric(FIRST, "success", session_id="eb-1", provider="p"))
    place.row("b-1", event("cost", "", {"attempt_id": FIRST, "cost_usd": 0.5}), event("execute-bead", "success"))
    place.write("agent-logs/agent-loop-1.jsonl", loop_result(status="success", session_id="eb-1", result_rev="ccc"))
    attempt = place.look()
    assert attempt.attempt_id == FIRST
    assert (attempt.status, attempt.status_source, attempt.kind) == ("success", "loop", "landed")
    assert (attempt.landed, attempt.preserved, attempt.finished) == (True, False, True)
    assert (attempt.base_rev, attempt.result_rev) == ("aaa", "ccc")
    assert (attempt.harness, attempt.model, attempt.provider) == ("claude", "sonnet", "p")
    assert (attempt.duration_ms, attempt.cost_usd) == (5000, 0.5)
    assert (attempt.tokens.input, attempt.tokens.cached, attempt.tokens.output, attempt.tokens.total) == (
        20,
        5,
        10,
        30,
    )
    assert attempt.started_at == parse_instant("2026-08-01T10:00:01Z")
    assert set(attempt.sources) >= {"result", "manifest", "metrics", "cost", "event", "loop"}


def test_what_the_loop_says_is_stronger_than_what_the_worker_wrote(place: Place) -> None:
    ref = f"refs/ddx/iterations/b-1/{FIRST}-0123456789ab"
    place.bundle(FIRST, status="success", outcome="task_succeeded", session_id="eb-1")
    place.row("b-1", event("execute-bead", "land_conflict", f"merge conflict\npreserve_ref={ref}\nbase_rev=aaa"))
    attempt = place.look()
    assert (attempt.status, attempt.status_source) == ("land_conflict", "event")
    assert (attempt.landed, attempt.preserved, attempt.preserve_ref) == (False, True, ref)
    place.write("agent-logs/agent-loop-1.jsonl", loop_result(status="push_failed", session_id="eb-1"))
    attempt = place.look()
    assert (attempt.status, attempt.status_source) == ("push_failed", "loop")


@pytest.mark.parametrize(
    ("result", "row", "landed", "preserved"),
    [
        ({"status": "success", "outcome": "merged"}, {}, True, False),
        ({"status": "success", "outcome": "task_succeeded"}, {}, True, False),
        ({"status": "success", "outcome": "task_succeeded"}, {"status": "in_progress"}, False, False),
        ({"status": "success", "outcome": "task_succeeded", "candidate_ref": "r"}, {}, False, False),
        ({"status": "success", "outcome": "preserved", "preserve_ref": "refs/x"}, {}, False, True),
        ({"status": "push_failed", "outcome": "merged"}, {}, True, False),
        ({"status": "post_run_check_failed", "outcome": "preserved"}, {}, False, True),
        ({"status": "preserved_for_later_release"}, {}, False, True),
        ({"status": "execution_failed", "outcome": "task_failed"}, {}, False, False),
        ({"status": "no_changes", "outcome": "task_no_changes"}, {}, False, False),
        ({"status": "already_satisfied"}, {"status": "closed"}, False, False),
        ({"status": "brand_new_word", "landed_rev": "abc"}, {}, True, False),
        ({"status": "brand_new_word"}, {}, False, False),
        (
            {"status": "success", "candidate_ref": "r", "session_id": "eb-1"},
            {"status": "closed", "session_id": "eb-1", "closing_commit_sha": "abc"},
            True,
            False,
        ),
    ],
)
def test_landed_and_preserved_are_facts_of_their_own(
    place: Place, result: dict[str, Any], row: dict[str, Any], landed: bool, preserved: bool
) -> None:
    place.bundle(FIRST, **result)
    place.row("b-1", **row)
    attempt = place.look()
    assert (attempt.landed, attempt.preserved) == (landed, preserved)
    assert attempt.status == result["status"]


@pytest.mark.parametrize("cost", [0, -1, None, "free", True])
def test_an_unknown_cost_is_none(place: Place, cost: object) -> None:
    place.bundle(FIRST, status="execution_failed", cost_usd=cost)
    place.write(f"executions/{FIRST}/usage.json", {"cost_usd": cost})
    attempt = place.look()
    assert attempt.cost_usd is None
    assert attempt.tokens.total is None


def test_a_crashed_attempt_has_no_status(place: Place) -> None:
    place.bundle(FIRST)
    attempt = place.look()
    assert (attempt.status, attempt.finished, attempt.kind) == ("", False, "other")
    assert attempt.started_at == parse_instant("2026-08-01T10:00:00Z")


@pytest.mark.parametrize("with_manifest", [True, False])
def test_a_review_is_no_attempt_but_a_verdict_on_one(place: Place, with_manifest: bool) -> None:
    place.bundle(FIRST, status="success", outcome="merged", result_rev="ccc")
    place.bundle(SECOND, status="execution_failed", result_rev="ddd")
    review = "20260801T100500-cccccccc"
    place.write(f"executions/{review}/result.json", {"verdict": "BLOCK", "rationale": "no test"})
    place.write(f"executions/{review}/prompt.md", '<bead-review>\n  <bead id="b-1" iter=1>')
    if with_manifest:
        place.write(f"executions/{review}/manifest.json", {"verdict": "BLOCK", "bead_id": "b-1", "result_rev": "ccc"})
    place.index.refresh({})
    first, second = place.index.by_bead("b-1")[::-1]
    assert [attempt.attempt_id for attempt in place.index.attempts] == [SECOND, FIRST]
    assert first.review is not None
    assert (first.review.verdict, first.review.rationale) == ("BLOCK", "no test")
    assert second.review is None


def test_a_running_review_is_no_attempt(place: Place) -> None:
    place.bundle(FIRST, status="success")
    place.write(f"executions/{SECOND}/prompt.md", '<bead-review>\n  <bead id="b-1" iter=1>')
    assert place.look().attempt_id == FIRST


def test_events_without_an_id_belong_to_the_attempt_whose_cost_came_before(place: Place) -> None:
    for attempt in (FIRST, SECOND):
        place.bundle(attempt)
    place.row(
        "b-1",
        event("execute-bead", "execution_failed", "committing tracker: fatal"),
        event("cost", "", {"attempt_id": FIRST}),
        event("execute-bead", "no_changes", "no_changes\nretry_after=2026-08-01T16:00:00Z"),
        event("execute-bead", "execution_failed", "the claim failed, no attempt was made"),
        event("cost", "", {"attempt_id": SECOND}),
        event("execute-bead", "success", "success\nresult_rev=eee", "2026-08-01T11:05:00Z"),
    )
    place.index.refresh(place.beads)
    second, first = place.index.by_bead("b-1")
    assert (first.status, second.status, second.result_rev) == ("no_changes", "success", "eee")
    assert first.retry_after == parse_instant("2026-08-01T16:00:00Z")


def test_events_of_a_closed_bead_are_read_from_its_attachment(place: Place) -> None:
    events = [event("cost", "", {"attempt_id": FIRST, "cost_usd": 1.5}), event("execute-bead", "success")]
    place.write("attachments/b-1/events.jsonl", *events, "{half")
    place.row("b-1", status="closed", events_attachment="b-1/events.jsonl")
    attempt = place.look()
    assert (attempt.status, attempt.cost_usd) == ("success", 1.5)
    place.row("b-2", status="closed", events_attachment="../../etc/passwd")
    assert place.look().bead_id == "b-1"


def test_the_row_tells_when_to_retry_its_newest_attempt(place: Place) -> None:
    place.bundle(FIRST, status="no_changes")
    place.bundle(SECOND, status="no_changes")
    place.row("b-1", **{"work-last-status": "no_changes", "work-retry-after": "2026-08-02T00:00:00Z"})
    place.index.refresh(place.beads)
    second, first = place.index.by_bead("b-1")
    assert (second.retry_after is not None, first.retry_after) == (True, None)


def test_only_what_changed_is_merged_again(place: Place) -> None:
    place.bundle(FIRST, status="success", outcome="merged")
    place.bundle(SECOND, bead="b-2", status="no_changes")
    younger = [f"20260802T1000{second:02}-aaaaaaaa" for second in range(40)]
    for name in younger:
        place.bundle(name, bead="b-3")
    assert place.index.refresh({}) == {"b-1", "b-2", "b-3"}
    before = place.index.by_bead("b-1")
    assert place.index.refresh({}) == set()
    place.bundle(SECOND, bead="b-2", status="execution_failed", detail="longer than before")
    assert place.index.refresh({}, [place.ddx / "beads.jsonl"]) == set(), "not hinted, not looked at"
    assert place.index.refresh({}, [place.ddx / "executions" / SECOND / "result.json"]) == {"b-2"}
    assert place.index.by_bead("b-1") is before
    assert place.index.by_bead("b-2")[0].status == "execution_failed"
    for name in ("result.json", "manifest.json"):
        (place.ddx / "executions" / SECOND / name).unlink()
    (place.ddx / "executions" / SECOND).rmdir()
    assert place.index.refresh({}) == {"b-2"}
    assert place.index.by_bead("b-2") == ()


def test_an_index_about_one_bead_knows_the_same_of_it_and_nothing_else(place: Place) -> None:
    place.bundle(FIRST, "b-1", status="success", cost_usd=0.5)
    place.bundle(SECOND, "b-2", status="execution_failed")
    cost = {"kind": "cost", "summary": "", "body": json.dumps({"attempt_id": FIRST, "cost_usd": 0.75})}
    place.row("b-1", cost, {"kind": "execute-bead", "summary": "success", "body": "merged"})
    place.row("b-2")
    place.index.refresh(place.beads)
    alone = AttemptIndex(place.ddx, about="b-1")
    alone.refresh(place.beads)
    assert alone.attempts == place.index.by_bead("b-1") != ()


def test_what_was_written_before_anybody_could_watch_is_found_without_a_hint(place: Place) -> None:
    place.row(status="open")
    place.index.refresh(place.beads)
    (place.ddx / "executions" / FIRST).mkdir(parents=True)
    place.index.refresh(place.beads, [place.ddx / "executions" / FIRST])
    assert place.index.by_bead("b-1") == ()
    place.bundle(FIRST, status="success", outcome="merged")
    place.index.refresh(place.beads, [place.ddx / "run-state.json"])
    assert [a.status for a in place.index.by_bead("b-1")] == ["success"]


def test_evidence_that_ddx_put_away_as_old_still_tells(place: Place) -> None:
    place.bundle(FIRST, status="success", outcome="merged")
    place.bundle(SECOND, status="no_changes")
    place.index.refresh({})
    month = place.ddx / "executions-archive" / "2026" / "08"
    month.mkdir(parents=True)
    (place.ddx / "executions" / FIRST).rename(month / FIRST)
    place.index.refresh({}, [place.ddx / "executions" / FIRST])
    moved = place.index.get(FIRST)
    assert moved is not None
    assert (moved.status, moved.landed, moved.bundle) == ("success", True, month / FIRST)
    assert read_evidence(moved).files
    assert [attempt.attempt_id for attempt in place.index.attempts] == [SECOND, FIRST]
    again = AttemptIndex(place.ddx)
    again.refresh({})
    assert again.attempts == place.index.attempts
    shutil.rmtree(month)
    place.index.refresh({}, [place.ddx / "executions"])
    assert [attempt.attempt_id for attempt in place.index.attempts] == [SECOND]


def test_an_attachment_that_comes_after_its_row_is_found_without_a_hint(place: Place) -> None:
    place.row(status="open")
    place.index.refresh(place.beads)
    place.row(status="closed", events_attachment="b-1/events.jsonl")
    place.index.refresh(place.beads, [place.ddx / "beads.jsonl"])
    assert place.index.by_bead("b-1") == ()
    cost = {"kind": "cost", "body": json.dumps({"attempt_id": FIRST, "cost_usd": 1.5})}
    place.write("attachments/b-1/events.jsonl", cost, {"kind": "execute-bead", "summary": "success"})
    place.index.refresh(place.beads, [place.ddx / "metrics"])
    assert [(a.status, a.cost_usd) for a in place.index.by_bead("b-1")] == [("success", 1.5)]


def test_metrics_are_taken_in_row_by_row_and_from_the_start_when_rewritten(place: Place) -> None:
    path = place.write("metrics/attempts.jsonl", metric(FIRST, "success"), "{oops", metric("", "success"))
    place.index.refresh({})
    assert [a.attempt_id for a in place.index.attempts] == [FIRST]
    assert place.index.unread_metrics == 2
    with path.open("a") as more:
        more.write(
            json.dumps(metric(SECOND, "no_changes", duration_ms="long", cost_usd=2)) + "\n" + '{"attempt_id": "cut'
        )
    assert place.index.refresh({}, []) == {"b-1"}
    assert [(a.attempt_id, a.cost_usd) for a in place.index.attempts] == [(SECOND, 2.0), (FIRST, None)]
    place.write("metrics/attempts.jsonl", metric(SECOND, "success"))
    place.index.refresh({})
    assert [(a.attempt_id, a.status) for a in place.index.attempts] == [(SECOND, "success")]


@pytest.mark.parametrize(("began", "took"), [({}, None), ({"ts_start": "2026-08-01T10:00:00Z"}, 0)])
def test_a_duration_of_0_of_work_whose_begin_ddx_forgot_is_unknown(
    place: Place, began: dict[str, str], took: int | None
) -> None:
    row = metric(FIRST, "success", ts_end="2026-08-01T10:30:00Z", duration_ms=0, **began)
    place.write("metrics/attempts.jsonl", row)
    assert place.look().duration_ms == took


def test_a_second_row_of_an_attempt_leaves_what_only_the_first_one_knows(place: Place) -> None:
    known: dict[str, Any] = {"ts_start": "2026-08-01T10:00:01Z", "duration_ms": 928135, "model": "gpt", "cost_usd": 1.5}
    place.write(
        "metrics/attempts.jsonl",
        metric(FIRST, "review_malfunction", ts_end="2026-08-01T10:15:29Z", **known),
        metric(FIRST, "preserved_needs_review", ts_end="2026-08-01T10:20:00Z", duration_ms=0),
    )
    attempt = place.look()
    assert (attempt.status, attempt.finished_at) == ("preserved_needs_review", parse_instant("2026-08-01T10:20:00Z"))
    assert (attempt.duration_ms, attempt.model, attempt.cost_usd) == (928135, "gpt", 1.5)
    assert attempt.started_at == parse_instant("2026-08-01T10:00:01Z")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"bead_id": 5}', "\x00", '{"verdict": {}}', '{"cycle_trace": 7}'])
def test_a_malformed_file_costs_only_itself(place: Place, text: str) -> None:
    place.bundle(FIRST, status="success")
    place.write(f"executions/{SECOND}/result.json", text)
    place.write(f"executions/{SECOND}/manifest.json", {"bead_id": "b-1", "requested": "?"})
    place.index.refresh({})
    assert FIRST in {attempt.attempt_id for attempt in place.index.attempts}
    assert all(path.name == "result.json" for path in place.index.problems)


def test_an_attempt_of_which_only_its_work_tree_is_named_is_one(place: Place) -> None:
    tree = f"/tmp/ddx-exec-wt/.execute-bead-wt-b-1-{FIRST}"
    place.row("b-1", event("disruption_detected", "resource_exhausted", {"detail": f"stat {tree}/.git"}))
    attempt = place.look()
    assert (attempt.attempt_id, attempt.bead_id, attempt.status) == (FIRST, "b-1", "")
    assert attempt.verdict.outcome == "interrupted"
    assert attempt.started_at == parse_instant("2026-08-01T10:00:00Z")
    place.row("b-1", event("execute-bead", "execution_failed", f"preparing {tree}/.git: no such file"))
    attempt = place.look()
    assert (attempt.attempt_id, attempt.verdict.outcome) == (FIRST, "failed")
    place.row("b-1", event("execute-bead", "execution_failed", f"preparing {tree.replace('b-1', 'x-1')}"))
    place.index.refresh(place.beads)
    assert place.index.attempts == ()  # another bead's work tree


def test_a_path_in_a_message_of_git_names_no_attempt_of_another_bead(place: Place) -> None:
    place.row("b-1", event("cost", "", {"attempt_id": FIRST}), event("execute-bead", "success", "success"))
    said = f"git worktree add: error: unable to create file .ddx/executions/{FIRST}/usage.json: No such file"
    place.row(
        "b-2",
        event("cost", "", {"attempt_id": SECOND}),
        event("execute-bead", "no_changes", "no changes"),
        event("disruption_detected", "resource_exhausted", {"detail": said}),
        event("execute-bead", "execution_failed", said),
    )
    place.index.refresh(place.beads)
    assert {(a.attempt_id, a.bead_id, a.status) for a in place.index.attempts} == {
        (FIRST, "b-1", "success"),
        (SECOND, "b-2", "no_changes"),
    }


def test_a_hook_that_refused_is_named_by_the_words_in_its_banner(place: Place) -> None:
    banner = "╭────╮\n│ 🥊 lefthook v2.1.5  hook: pre-commit │\n╰────╯\n│  go-test (skip)"
    place.row(
        "b-1",
        event("cost", "tokens=1", {"attempt_id": FIRST}),
        event("execute-bead", "execution_failed", f"committing tracker: {banner}"),
    )
    assert place.look().detail == "committing tracker: 🥊 lefthook v2.1.5 hook: pre-commit"


def test_a_bead_that_was_filed_in_a_work_tree_names_the_attempt(place: Place) -> None:
    place.row("b-1", event("execute-bead", "review_block", "post-merge review: BLOCK"))
    child = f".execute-bead-wt-b-1-{FIRST}-0123abcd"
    place.row(child)
    attempt = place.look()
    assert (attempt.attempt_id, attempt.status, attempt.landed) == (FIRST, "review_block", True)
    place.row("b-1", event("execute-bead", "success", "success", at="2026-08-02T10:05:00Z"))
    assert place.look().verdict.outcome == "interrupted"  # a day later is another attempt's end
    del place.beads[child]
    place.index.refresh(place.beads)
    assert place.index.attempts == ()


def test_real_folders_hold_38_attempts_and_two_reviews(shared: Path, tmp_path: Path) -> None:
    (tmp_path / ".ddx").mkdir()
    (tmp_path / ".ddx" / "executions").symlink_to(shared / "data" / "ddx" / "executions")
    index = AttemptIndex(tmp_path / ".ddx")
    index.refresh({})
    assert len(index.attempts) == 38
    assert not any(status_of(attempt.status).word == "" for attempt in index.attempts)
    assert all(attempt.cost_usd is None or attempt.cost_usd > 0 for attempt in index.attempts)


def test_every_known_status_has_a_meaning_and_an_unknown_one_is_no_success() -> None:
    assert all(status.meaning for status in STATUSES.values())
    assert {word for word, status in STATUSES.items() if status.successful} == {
        "success",
        "already_satisfied",
    }
    unknown = status_of("landed_sideways")
    assert (unknown.word, unknown.successful, unknown.known) == ("landed_sideways", False, False)
    assert unknown.outcome == "unknown"


RECORD = {"bead_id": "b-1", "attempt_id": FIRST, "started_at": "2026-08-01T10:00:01Z", "harness": "claude"}


def test_of_a_worker_that_was_killed_the_run_record_tells(place: Place) -> None:
    """May: its evidence folder comes when the agent has ended; what it had cost by then nobody knows."""
    place.row()
    path = place.write(f"run-state/{FIRST}.json", {**RECORD, "refreshed_at": "2026-08-01T10:00:20Z"})
    place.index.refresh(place.beads, holds={"b-1": Hold(parse_instant("2026-08-01T10:00:00Z"))})
    (attempt,) = place.index.attempts
    assert (attempt.verdict.outcome, attempt.harness) == ("unfinished", "claude")
    gone = "its worker is dead (process 7); ddx gives the bead out again at 10:01:50"
    holds = {"b-1": Hold(parse_instant("2026-08-01T10:00:00Z"), gone)}
    assert place.index.refresh(place.beads, holds=holds) == {"b-1"}
    (attempt,) = place.index.attempts
    assert (attempt.verdict.outcome, attempt.verdict.proof) == ("interrupted", "worker")
    assert gone in attempt.verdict.why
    assert (attempt.sums.complete, attempt.sums.whole.calls) == (False, 1)
    place.write(f"run-state/{FIRST}.json", {**RECORD, "refreshed_at": "2026-08-01T10:00:50Z"})
    assert not place.index.refresh(place.beads, holds=holds), "a heartbeat is no news"
    path.unlink()
    place.index.refresh(place.beads, holds=holds)
    assert not place.index.attempts


def heartbeat(name: str, at: str, loop: str = "l") -> dict[str, Any]:
    data = {"bead_id": "b-1", "attempt_id": name, "phase": "running", "harness": "claude", "model": "sonnet"}
    return {"type": "worker.heartbeat", "ts": f"2026-08-01T{at}Z", "session_id": loop, "data": data}


def test_of_a_worker_killed_before_its_evidence_came_the_loop_log_tells(place: Place) -> None:
    """August: once its record and its work tree are cleaned up, nothing else names that attempt or its call."""
    place.row()
    begun = "20260801T100000-18ea00d8"
    place.write("agent-logs/agent-loop-1.jsonl", heartbeat(begun, "10:00:00"), heartbeat(begun, "10:00:30"))
    since = parse_instant("2026-08-01T09:59:58Z")
    place.index.refresh(place.beads, holds={"b-1": Hold(since)})
    assert not place.index.attempts, "its worker lives, and its evidence comes under another name"
    place.index.refresh(place.beads, holds={"b-1": Hold(since, "its worker is dead")})
    (attempt,) = place.index.attempts
    assert (attempt.verdict.outcome, attempt.harness, attempt.model) == ("interrupted", "claude", "sonnet")
    assert attempt.started_at == parse_instant("2026-08-01T10:00:00Z")
    assert (attempt.sums.complete, attempt.sums.whole.calls) == (False, 1)
    # a second worker takes the bead within a minute: its evidence is not that of the first
    place.write(
        "agent-logs/agent-loop-2.jsonl",
        heartbeat("20260801T100050-18ea00d9", "10:00:50", "m"),
        {**loop_result(status="success", session_id="eb-1"), "session_id": "m"},
    )
    place.bundle("20260801T100054-bbbbbbbb", status="success", session_id="eb-1")
    place.index.refresh(place.beads, holds={})
    assert [one.verdict.outcome for one in place.index.attempts] == ["landed", "interrupted"]


@pytest.mark.parametrize("after_s", [0, 3, 59])
def test_a_beginning_and_the_evidence_that_follows_it_are_one_attempt(place: Place, after_s: int) -> None:
    place.row()
    place.write("agent-logs/agent-loop-1.jsonl", heartbeat("20260801T100000-18ea00d8", "10:00:00.9"))
    place.bundle(f"20260801T1000{after_s:02}-aaaaaaaa")
    assert place.look().attempt_id.endswith("aaaaaaaa")


def test_a_beginning_with_a_result_is_no_attempt_of_its_own(place: Place) -> None:
    place.row()
    begun = heartbeat("20260801T100000-18ea00d8", "10:00:00")
    place.write("agent-logs/agent-loop-1.jsonl", begun, loop_result(status="no_changes", session_id="eb-1"))
    place.index.refresh(place.beads)
    assert not place.index.attempts


def test_a_loop_that_stops_before_an_agent_starts_has_made_no_attempt(place: Place) -> None:
    place.row()
    stop = {"reason": "checkpoint_dirty", "bead_id": "b-1", "dirty_paths": ["stray.txt"]}
    place.write(
        "agent-logs/agent-loop-1.jsonl",
        heartbeat("20260801T100000-18ea00d8", "10:00:00"),
        {"type": "loop.operator_attention", "ts": "2026-08-01T10:00:01Z", "session_id": "l", "data": stop},
    )
    place.index.refresh(place.beads)
    assert not place.index.attempts
    assert place.index.book.spent_since(0).whole.calls == 0


def test_a_new_hold_says_nothing_of_an_attempt_that_began_before_it(place: Place) -> None:
    place.row()
    place.write(f"run-state/{FIRST}.json", RECORD)
    place.index.refresh(place.beads, holds={"b-1": Hold(parse_instant("2026-08-01T10:09:00Z"))})
    (attempt,) = place.index.attempts
    assert attempt.verdict.outcome == "interrupted"
    assert "left no result" in attempt.verdict.why


@pytest.mark.parametrize(
    ("trigger", "outcome"),
    [("context canceled", "interrupted"), ("", "failed"), ("idle timeout", "failed")],
)
def test_ddx_says_why_it_ended_the_processes_of_an_attempt(place: Place, trigger: str, outcome: str) -> None:
    """August: after ctrl-C the result blames the provider; what ddx cleaned up says that it was cancelled."""
    detail = "agent: provider process exited without emitting a final event"
    place.bundle(FIRST, status="execution_failed", outcome="task_failed", detail=detail, error=detail)
    place.row()
    assert place.look().verdict.outcome == "failed"
    place.write(f"executions/{FIRST}/process-cleanup.json", {"attempt_id": FIRST, "trigger": trigger})
    assert place.look().verdict.outcome == outcome
