"""DDx's evidence settles what was injected, once; and teaches lessons that wait for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.attempts.attempt import Attempt, Review
from helix_tui.core.ddx.attempts.evidence import AttemptCheck, AttemptEvidence
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import NS, parse_now
from helix_tui.core.memory.changes import MemoryChanges
from helix_tui.core.memory.lessons import Proposals
from helix_tui.core.memory.memory_store import MemoryStore, open_memory
from helix_tui.core.memory.provenance import AcceptRule
from helix_tui.core.memory.reports import Proposal
from helix_tui.core.supervision.agents.learning import (
    Learned,
    Learner,
    accept_by_rule,
    accepted_by,
    judge,
    summed,
)

START = parse_now("2026-08-21T20:00:00Z")
DONE = Attempt("a", "b", status="success")
ASIDE = Attempt("a", "b", status="success", on_branch=False)


@pytest.mark.parametrize(
    ("attempt", "evidence", "verdict"),
    [
        (DONE, AttemptEvidence(), "passed"),
        (replace(DONE, status=""), AttemptEvidence(), None),
        (replace(DONE, review=Review("BLOCK")), AttemptEvidence(), "failed"),
        (replace(DONE, review=Review("REQUEST_CHANGES")), AttemptEvidence(), "failed"),
        (replace(DONE, review=Review("APPROVE")), AttemptEvidence(), "passed"),
        (DONE, AttemptEvidence(checks=(AttemptCheck("vet", "fail"),)), "failed"),
        (DONE, AttemptEvidence(checks=(AttemptCheck("vet", "fail", required=False),)), "passed"),
        (DONE, AttemptEvidence(checks=(AttemptCheck("vet", "pass"),)), "passed"),
        (DONE, AttemptEvidence(checks=(AttemptCheck("2", "pass"), AttemptCheck("1", "needs_judgment"))), "passed"),
        (ASIDE, AttemptEvidence(), None),
        (replace(ASIDE, review=Review("APPROVE")), AttemptEvidence(), "passed"),
        (replace(DONE, status_source="result"), AttemptEvidence(), None),
        (replace(DONE, status_source="result", held=True), AttemptEvidence(), None),
        (Attempt("a", "b", status="already_satisfied"), AttemptEvidence(), None),
        (Attempt("a", "b", status="no_changes"), AttemptEvidence(), "failed"),
        (Attempt("a", "b", status="execution_failed"), AttemptEvidence(), "failed"),
        (Attempt("a", "b", status="execution_failed", failure_mode="auth_error"), AttemptEvidence(), None),
        (Attempt("a", "b", status="execution_failed", failure_mode="timeout"), AttemptEvidence(), "failed"),
        (Attempt("a", "b", status="execution_failed", stopped="context canceled"), AttemptEvidence(), None),
        (Attempt("a", "b", status="post_run_check_failed"), AttemptEvidence(), "failed"),
        (Attempt("a", "b", status="land_conflict"), AttemptEvidence(), None),
        (Attempt("a", "b", status="push_failed"), AttemptEvidence(), None),
        (Attempt("a", "b", status="preserved_needs_review"), AttemptEvidence(), None),
        (Attempt("a", "b", status="review_terminal_block"), AttemptEvidence(), "failed"),
        (Attempt("a", "b", status="review_malfunction", on_branch=False), AttemptEvidence(), None),
        (Attempt("a", "b", status="declined_needs_decomposition"), AttemptEvidence(), None),
        (Attempt("a", "b", status="a_word_of_next_year"), AttemptEvidence(), None),
    ],
)
def test_the_evidence_decides(attempt: Attempt, evidence: AttemptEvidence, verdict: str | None) -> None:
    judged = judge(attempt, evidence)
    assert judged.verdict == verdict
    assert judged.why


class World:
    """A project with attempts, and its memory at a clock."""

    def __init__(self, root: Path) -> None:
        (root / ".ddx" / "executions").mkdir(parents=True)
        self.root = root
        self.now = START - 3600 * NS
        self.memory: MemoryStore = open_memory(root / ".helix" / "helix.db", clock=lambda: self.now, teacher="person")
        self.rows: list[dict[str, Any]] = []

    def bead(self, bead_id: str, title: str) -> None:
        self.rows.append({"id": bead_id, "title": title, "status": "open", "issue_type": "bug"})
        text = "".join(json.dumps(row) + "\n" for row in self.rows)
        (self.root / ".ddx" / "beads.jsonl").write_text(text)

    def attempt(self, number: int, bead_id: str, said: str = "", **result: Any) -> str:
        """An attempt that began ``number`` minutes after the start and took one."""
        attempt_id = f"20260821T20{number:02}00-{number:08x}"
        folder = self.root / ".ddx" / "executions" / attempt_id
        folder.mkdir()
        document = {
            "attempt_id": attempt_id,
            "bead_id": bead_id,
            "started_at": f"2026-08-21T20:{number:02}:00Z",
            "finished_at": f"2026-08-21T20:{number:02}:59Z",
            "status": "success",
            "outcome": "merged",
        } | result
        (folder / "result.json").write_text(json.dumps(document))
        if said:
            (folder / "embedded").mkdir()
            line = {"type": "text_delta", "sequence": 1, "data": {"text": said}}
            (folder / "embedded" / "agent-claude-1755806400000000000.jsonl").write_text(json.dumps(line) + "\n")
        return attempt_id

    def look(self) -> tuple[Any, tuple[Attempt, ...]]:
        project = find_project(self.root, env={})
        beads = read_tracker(project.beads_file).beads
        index = AttemptIndex(project.ddx_dir)
        index.refresh(beads)
        return beads, index.attempts

    def learn(self, **options: Any) -> list[Learned]:
        beads, attempts = self.look()
        return Learner(find_project(self.root, env={}), self.memory).learn(beads, attempts, **options)

    def counts(self, name: str) -> tuple[float, float, float]:
        memory = self.memory.get(name)
        assert memory is not None
        return memory.helped, memory.failed, memory.verified_helped + memory.verified_failed


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.bead("x-1", "Sort sailings by the clock")
    world.memory.store("Sorting sailings by text puts 10:00 before 9:00", "parse the times first")
    yield world
    world.memory.close()


NAME = "sorting-sailings-by-text-puts-10-00-before-9-00"
FAILED = {"status": "execution_failed", "outcome": "error", "error": "the clock has no zone"}


def test_what_landed_with_a_claimed_memory_credits_it_once(world: World) -> None:
    world.memory.inject("sort sailings by the clock", bead="x-1")
    world.attempt(1, "x-1", f'DELIVERED: done\nUTILIZED: ["{NAME}"]')
    learned = world.learn()
    assert [each.report.helped for each in learned if each.report] == [(NAME,)]
    assert world.counts(NAME) == (1, 0, 1)
    assert world.learn() == []
    assert world.counts(NAME) == (1, 0, 1)
    assert [outcome.bead for outcome in world.memory.outcomes(name=NAME)] == ["x-1"]


def test_each_attempt_that_saw_a_beads_block_is_named_in_the_ledger(world: World) -> None:
    world.memory.inject("sort sailings by the clock", bead="x-1")
    first = world.attempt(1, "x-1", f"UTILIZED: [{NAME}]")
    world.learn()
    assert [line.attempt for line in world.memory.injections()] == [first]
    second = world.attempt(2, "x-1", f"UTILIZED: [{NAME}]", **FAILED)
    world.learn()
    assert {line.attempt: line.bead for line in world.memory.injections()} == {first: "x-1", second: "x-1"}
    assert len({line.at for line in world.memory.injections()}) == 1
    assert world.counts(NAME) == (1, 1, 2)
    memory = world.memory.get(NAME)
    assert memory is not None
    assert memory.shown == 2
    assert world.learn() == []
    checks = world.root / ".ddx" / "executions" / first / "checks"
    checks.mkdir()
    (checks / "vet.json").write_text(json.dumps({"name": "vet", "status": "fail", "message": "unused"}))
    world.learn()
    assert len(world.memory.injections()) == 2
    assert world.counts(NAME) == (0, 2, 2)


def test_what_the_agent_said_is_read_from_its_own_record_where_ddx_kept_none(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    world.memory.inject("sort sailings by the clock", bead="x-1")
    attempt = world.attempt(1, "x-1")
    folder = tmp_path / "claude" / "projects" / f"-tmp--execute-bead-wt-x-1-{attempt}"
    folder.mkdir(parents=True)
    part = {"type": "text", "text": f'Done: it sorts. UTILIZED: ["{NAME}"]'}
    spoken = {"type": "assistant", "message": {"content": [part]}}
    (folder / "6bd67120.jsonl").write_text(json.dumps(spoken) + "\n")
    (folder.parent / f"{folder.name}-other").mkdir()
    assert [each.claimed for each in world.learn()] == [(NAME,)]
    assert world.counts(NAME) == (1, 0, 1)


def test_a_claim_before_a_failure_is_blamed(world: World) -> None:
    world.memory.inject("sort sailings by the clock", bead="x-1")
    world.attempt(1, "x-1", f"DELIVERED: all done\nUTILIZED: [{NAME}]", **FAILED)
    world.learn()
    assert world.counts(NAME) == (0, 1, 1)


def test_an_injection_belongs_to_attempts_that_began_after_it(world: World) -> None:
    world.attempt(1, "x-1")
    world.now = START + 120 * NS
    world.memory.inject("sort sailings by the clock", bead="x-1")
    world.attempt(5, "x-1", f"UTILIZED: [{NAME}]")
    world.learn()
    assert world.counts(NAME) == (1, 0, 1)


def test_an_outcome_that_evidence_turns_round_is_turned_round(world: World) -> None:
    world.memory.inject("sort sailings by the clock", bead="x-1")
    attempt = world.attempt(1, "x-1", f"UTILIZED: [{NAME}]")
    world.learn()
    checks = world.root / ".ddx" / "executions" / attempt / "checks"
    checks.mkdir()
    (checks / "vet.json").write_text(json.dumps({"name": "vet", "status": "fail", "message": "unused"}))
    world.learn()
    assert world.counts(NAME) == (0, 1, 1)


def test_failures_and_what_landed_afterwards_become_lessons_that_wait(world: World) -> None:
    world.attempt(1, "x-1", **FAILED)
    landed = world.attempt(2, "x-1")
    (world.root / ".ddx" / "executions" / landed / "decisions.md").write_text("Parse times with their zone.\n")
    learned = world.learn()
    lessons = {each.proposal.type: each.proposal for each in learned if each.proposal}
    assert lessons["failure"].resolution == "the clock has no zone"
    assert lessons["failure"].trigger.startswith("Sort sailings by the clock: ")
    assert lessons["pattern"].resolution == "Parse times with their zone."
    assert "after 1 that did not" in lessons["pattern"].reason
    assert summed(learned) == "2 lessons proposed"
    assert len(world.memory.list()) == 1
    assert world.learn() == []


def test_a_failure_that_has_an_exit_code_only_is_told_in_its_agents_last_words(world: World) -> None:
    bare = {"status": "execution_failed", "outcome": "task_failed", "detail": "exit status 1", "error": "exit status 1"}
    world.attempt(1, "x-1", said="API Error: Unable to connect", **bare)
    world.bead("x-2", "Sort fares")
    world.attempt(2, "x-2", **bare)
    said = {each.attempt.bead_id: each.proposal.resolution for each in world.learn() if each.proposal}
    assert said == {"x-1": "API Error: Unable to connect", "x-2": "exit status 1"}


def test_a_failure_whose_evidence_is_gone_is_told_in_the_words_of_its_bead(world: World) -> None:
    """ddx writes the agent's reason below the first line of the bead's event."""
    attempt = world.attempt(1, "x-1", status="no_changes", detail="no_changes")
    event = {"kind": "execute-bead", "summary": "no_changes", "created_at": "2026-08-21T20:02:00Z"}
    world.rows[0]["events"] = [event | {"body": f"no_changes\nrationale: no clock has a zone\nattempt_id={attempt}"}]
    world.bead("x-2", "Another")
    (learned,) = world.learn()
    assert learned.proposal is not None
    assert learned.proposal.resolution == "no clock has a zone"


def test_a_lesson_is_remembered_when_it_is_accepted_and_forgotten_when_that_is_undone(world: World) -> None:
    world.attempt(1, "x-1", **FAILED)
    world.learn()
    memory_changes = MemoryChanges(world.memory)
    proposals = Learner(find_project(world.root, env={}), world.memory).proposals
    memory_change, refused = memory_changes.accept(proposals.all())
    assert memory_change is not None
    assert not refused
    assert not proposals.all()
    assert len(world.memory.list()) == 2
    assert memory_changes.undo() is not None
    assert len(world.memory.list()) == 1
    assert len(proposals.all()) == 1
    assert memory_changes.decline(proposals.all()) is not None
    assert not proposals.all()
    assert world.learn() == []


@pytest.mark.parametrize(
    ("type_", "trigger", "resolution"),
    [
        ("pattern", "Sort the sailings by clock", "parse times with their zone"),
        ("failure", "Sailings sort wrongly at midnight", "give the clock a zone"),
    ],
)
def test_undoing_a_lesson_takes_back_what_it_added_to_a_memory_that_said_so_already(
    world: World, type_: str, trigger: str, resolution: str
) -> None:
    known = f"Task: {trigger}" if type_ == "pattern" else trigger
    name = world.memory.store(known, "as it was", type_, taught_by="attempt").name
    world.memory.store(known, "as it was", type_, taught_by="attempt")
    world.memory.feedback([name], [name], "passed")
    before = world.memory.get(name)
    proposals = Learner(find_project(world.root, env={}), world.memory).proposals
    proposals.add(Proposal(0, "a-1", "x-1", type_, trigger, resolution, "it landed"))
    world.now += NS
    MemoryChanges(world.memory).accept(proposals.all())
    assert world.memory.get(name) != before
    MemoryChanges(world.memory).undo()
    assert world.memory.get(name) == before
    assert world.memory.variants(name) == []


def test_a_bead_that_fails_four_times_in_one_way_teaches_one_lesson(world: World) -> None:
    for number in range(1, 5):
        world.attempt(number, "x-1", **FAILED)
    beads, attempts = world.look()
    learner = Learner(find_project(world.root, env={}), world.memory)
    assert len(learner.preview(beads, attempts)) == 1
    assert len(world.learn()) == 1
    world.attempt(5, "x-1", **FAILED)
    assert world.learn() == []
    assert [each.attempt for each in learner.proposals.all()] == [attempts[0].attempt_id]
    assert len(learner.proposals.attempts()) == 5
    MemoryChanges(world.memory).decline(learner.proposals.all())
    world.attempt(6, "x-1", **FAILED)
    assert world.learn() == []
    world.attempt(7, "x-1", **FAILED | {"error": "the harbour has no table"})
    assert [each.proposal.resolution for each in world.learn() if each.proposal] == ["the harbour has no table"]


def test_an_error_that_names_its_attempt_teaches_one_lesson_too(world: World) -> None:
    for number in range(1, 4):
        named = f"invalid id x-1:20260821T20{number:02}00-{number:08x}: byte 0x20"
        world.attempt(number, "x-1", **FAILED | {"error": named})
    assert len(world.learn()) == 1
    world.attempt(4, "x-1", **FAILED | {"error": "invalid id x-1:20260821T200400-00000004: byte 0x20"})
    assert world.learn() == []


def test_three_beads_that_fail_in_one_way_make_it_systemic(world: World) -> None:
    learner = Learner(find_project(world.root, env={}), world.memory)
    trigger, resolution = "The timetable of the ferry is stale", "fetch it before it is read"
    for number in range(4):  # as an earlier release kept them: four equal ones of one bead
        with world.memory.write() as db:
            db.execute(
                "INSERT INTO proposal (attempt, bead, type, trigger, resolution, at) VALUES (?, ?, ?, ?, ?, ?)",
                [f"a-{number}", "x-1", "failure", trigger, resolution, "2026-08-21T20:00:00Z"],
            )
    MemoryChanges(world.memory).accept(learner.proposals.all())
    known = next(each for each in world.memory.list() if each.trigger == trigger)
    assert (known.type, known.seen) == ("failure", 1)
    types = []
    for bead in ("x-2", "x-3"):
        learner.proposals.add(Proposal(0, f"a-{bead}", bead, "failure", trigger, resolution, "it failed"))
        MemoryChanges(world.memory).accept(learner.proposals.all())
        found = world.memory.get(known.id)
        types.append(found.type if found is not None else "")
    assert types == ["failure", "systemic"]
    MemoryChanges(world.memory).undo()
    found = world.memory.get(known.id)
    assert found is not None
    assert (found.type, found.seen) == ("failure", 2)


def _attempt(bead: str, outcome: str, number: int) -> Attempt:
    ends: dict[str, dict[str, Any]] = {
        "landed": {"status": "success", "on_branch": True},
        "refused": {"status": "review_block", "detail": "pre-land review: BLOCK", "preserve_ref": "refs/ddx/x"},
        "failed": {"status": "execution_failed"},
    }
    return Attempt(f"20260810T10000{number}-0000000{number}", bead, **ends[outcome])


@pytest.mark.parametrize(
    ("rule", "accepted"),
    [
        ("landed-after-refusal", [1]),
        ("none", []),
        ("failures", [1, 3]),
        ("patterns", [2]),
        ("all", [1, 2, 3, 4]),
    ],
)
def test_a_rule_accepts_what_it_names(rule: AcceptRule, accepted: list[int]) -> None:
    attempts = [_attempt("x-1", "refused", 1), _attempt("x-1", "landed", 2), _attempt("x-2", "failed", 3)]
    attempts += [_attempt("x-2", "landed", 4), _attempt("x-3", "refused", 5)]
    lessons = [
        Proposal(1, "a", "x-1", "failure", "t", "r", ""),
        Proposal(2, "b", "x-2", "pattern", "t", "r", ""),
        Proposal(3, "c", "x-3", "failure", "t", "r", ""),
        Proposal(4, "d", "x-1", "failure", "t", "r", "", taught_by="agent"),
    ]
    assert [each.id for each in accepted_by(rule, lessons, attempts)] == accepted


def test_an_agent_applies_no_rule(world: World) -> None:
    attempts = [_attempt("x-1", "refused", 1), _attempt("x-1", "landed", 2)]
    with open_memory(world.memory.path) as agent:
        Proposals(agent).add(Proposal(0, "a-9", "x-1", "failure", "The ferry is late at night", "Ask the pilot", "so"))
        assert accept_by_rule(agent, "all", attempts) is None
        assert accept_by_rule(world.memory, "landed-after-refusal", attempts) is not None
    with open_memory(world.memory.path) as agent:
        stored = agent.store("The pier is closed at night", "Ask the harbour").name
    assert accept_by_rule(world.memory, "failures", attempts) is None
    assert accept_by_rule(world.memory, "all", attempts) is not None
    assert (world.memory.get(stored) or world.memory.list()[0]).accepted
    (memory,) = [each for each in world.memory.list() if each.trigger == "The ferry is late at night"]
    assert (memory.taught_by, memory.accepted) == ("attempt", True)


def test_old_attempts_teach_no_lessons_but_settle(world: World) -> None:
    world.memory.inject("sort sailings by the clock", bead="x-1")
    world.attempt(1, "x-1", f"UTILIZED: [{NAME}]", **FAILED)
    learned = world.learn(since=START + 3600 * NS)
    assert [each.proposal for each in learned] == [None]
    assert world.counts(NAME) == (0, 1, 1)


def test_a_preview_changes_nothing(world: World) -> None:
    world.memory.inject("sort sailings by the clock", bead="x-1")
    world.attempt(1, "x-1", **FAILED)
    beads, attempts = world.look()
    learner = Learner(find_project(world.root, env={}), world.memory)
    assert [each.document()["verdict"] for each in learner.preview(beads, attempts)] == ["failed"]
    assert not learner.proposals.all()
    assert world.counts(NAME) == (0, 0, 0)


def test_pruning_and_fading_are_taken_back(world: World) -> None:
    world.memory.feedback(injected=[NAME], utilized=[NAME], verified="passed", attempt="p")
    for number in range(9):
        world.memory.feedback(injected=[NAME], utilized=[NAME], verified="failed", attempt=f"f{number}")
    memory_changes = MemoryChanges(world.memory)
    assert memory_changes.prune()[0] is not None
    assert not world.memory.list()
    memory_changes.undo()
    assert world.counts(NAME)[:2] == (1, 9)
    world.memory.store("Another thing that helped once", "do it again", type="pattern")
    name = "another-thing-that-helped-once"
    world.memory.feedback(injected=[name], utilized=[name], verified="passed", attempt="q")
    world.now += 90 * 86_400 * NS
    assert memory_changes.fade()[0] is not None
    assert memory_changes.fade(days=1000)[0] is None
    assert world.counts(name)[0] < 1
    memory_changes.undo()
    assert world.counts(name)[:2] == (1, 0)
    assert [memory_change.undone for memory_change in memory_changes.all()] == [True, True]
    assert memory_changes.undo() is None
