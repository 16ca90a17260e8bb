"""Questions: raised once, ranked among what waits on a person, answered, and the answer used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.editing.execute.gate import WriteGate, WritesForbidden
from helix_tui.core.editing.operations import DropChange, Operation, SetFields
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import parse_now
from helix_tui.core.supervision.decide.needs import asked_of, needs_of
from helix_tui.core.supervision.signals.escalation import answering, decide_escalation
from helix_tui.core.supervision.signals.questions import OpenQuestions, UnknownQuestion, read_questions, still_asked
from helix_tui.core.supervision.stages.results import answer_question, conflicts_in
from tests.core.supervision.conftest import WorldFactory, queue_of, row
from tests.programs import parse_rows

NOW = parse_now("2026-08-21T22:00:28Z")


def _questions(root: Path, *, read_only: bool = False) -> OpenQuestions:
    project = find_project(root)
    return OpenQuestions(project, WriteGate(project, read_only))


def test_a_question_is_raised_once_while_it_stands(tmp_path: Path) -> None:
    questions = _questions(tmp_path)
    first = questions.ask("conflict", "which?", key="k")
    assert questions.ask("conflict", "which one?", key="k") == first
    questions.answer(first.id, "this")
    assert questions.ask("conflict", "again?", key="k").id == "q-2"
    assert [question.id for question in questions.open()] == ["q-2"]
    with pytest.raises(UnknownQuestion):
        questions.answer("q-1", "that")


def test_an_approval_is_used_up(tmp_path: Path) -> None:
    questions = _questions(tmp_path)
    asked = questions.ask("approval", "go?", key="k")
    assert questions.take_approval("k") is None
    questions.answer(asked.id, "Yes")
    assert questions.take_approval("k") is True
    assert questions.take_approval("k") is None


def test_read_only_asks_nothing(tmp_path: Path) -> None:
    with pytest.raises(WritesForbidden):
        _questions(tmp_path, read_only=True).ask("gap", "?", key="k")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"questions": [1, {"id": 3}]}', '{"questions": null}'])
def test_a_broken_file_holds_no_questions(tmp_path: Path, text: str) -> None:
    path = tmp_path / "questions.json"
    path.write_text(text)
    assert read_questions(path) == ()


def test_needs_me_ranks_what_stops_everything_first(tmp_path: Path) -> None:
    questions = _questions(tmp_path)
    questions.ask("conflict", "a-1 is kept aside", key="a", bead_id="a-1")
    questions.ask("physics-level", "cannot both hold", key="b")
    questions.ask("physics-level", "nor these", key="c")
    queue = queue_of([row("a-1"), row("a-2", "a-1"), row("p-1", status="proposed")])
    needs = needs_of(queue, (), Tracker(tmp_path), questions=asked_of(find_project(tmp_path)))
    assert [need.kind for need in needs] == ["physics-level", "physics-level", "conflict", "proposed"]
    assert len({need.key for need in needs}) == 4
    assert needs[2].waiting == 1


def test_an_answer_about_a_bead_is_written_into_it(world: WorldFactory) -> None:
    there = world([row("a-1", notes="seen before\n")])
    questions = OpenQuestions(there.curator.project, there.curator.gate)
    asked = questions.ask("conflict", "which?", key="k", bead_id="a-1")
    answer_question(there.curator, questions, asked.id, "take the second")
    row_now = there.rows()["a-1"]
    assert row_now["helix-decision"] == "take the second"
    assert row_now["notes"].startswith("seen before\n\nDECISION [")
    assert row_now["notes"].endswith("]: take the second"), "ddx puts notes into its prompt, not our fields"
    assert questions.open() == ()


REV = "c0ffee" + "0" * 34


@pytest.mark.parametrize(
    ("text", "status", "then"),
    [
        ("one line is enough", "repair-cycle-exhausted", [DropChange("a", "20260820T100000-a", REV)]),
        ("do not land it", "repair-cycle-exhausted", [DropChange("a", "20260820T100000-a", REV)]),
        ("please land it", "repair-cycle-exhausted", [SetFields("a", {"helix-allowed": "20260820T100000-a"})]),
        ("one line is enough", "execution_failed", []),
    ],
)
def test_an_answer_gives_up_what_is_kept_unless_it_says_land(text: str, status: str, then: list[Operation]) -> None:
    attempt = Attempt("20260820T100000-a", "a", status=status, status_source="event", result_rev=REV)
    bead = parse_rows(b'{"id":"a"}').beads["a"]
    decided, *more = answering(bead, text, NOW, {"a": attempt}.get)
    assert isinstance(decided, SetFields)
    assert decided.fields["helix-decision"] == text
    assert more == then
    event = {"kind": "preserved-result-rejected", "body": f"result_rev={attempt.result_rev}"}
    rejected = parse_rows(json.dumps({"id": "a", "events": [event]}).encode()).beads["a"]
    assert len(answering(rejected, text, NOW, {"a": attempt}.get)) == 1


def test_an_escalation_is_a_need_and_ends_with_the_decision(world: WorldFactory) -> None:
    waits = {"labels": ["kind:escalation"], "execution__eligible": False, "helix__trigger__bead": "a-1"}
    gap = {"labels": ["kind:speculative"], "execution__eligible": False, "description": "PRD-1 is missing"}
    rows = [row("a-1"), row("e-1", description="which of the two?", **waits), row("g-1", **gap)]
    others = [row("x-1", labels=["kind:speculative"]), row("e-0", **(waits | {"status": "closed"}))]
    there = world([*rows, *others])
    needs = needs_of(there.curator.look().queue, (), Tracker(there.curator.project.beads_file))
    assert [(need.kind, need.bead_id, need.reason) for need in needs] == [
        ("escalation", "e-1", "which of the two?"),
        ("gap", "g-1", "PRD-1 is missing"),
    ]
    decide_escalation(there.curator, "e-1", "the first")
    after = there.rows()
    assert after["e-1"]["status"] == "closed"
    assert [after[name]["helix-decision"] for name in ("e-1", "a-1")] == ["the first", "the first"]
    with pytest.raises(KeyError):
        decide_escalation(there.curator, "e-1", "again")


@pytest.mark.parametrize(
    ("trailer", "found"),
    [
        ("none", []),
        ("", []),
        ("physics-level: real-time vs batch", [("physics-level", "real-time vs batch")]),
        ("resolvable: sqlite or postgres; none", [("conflict", "sqlite or postgres")]),
        ("Physics level - a; b differs", [("physics-level", "a"), ("conflict", "b differs")]),
    ],
)
def test_conflicts_are_read_from_a_trailer(trailer: str, found: list[tuple[str, str]]) -> None:
    assert list(conflicts_in(trailer)) == found


CLASH = "# PRD\n\n## Constraints\n\n- The *service* is stateless.\n"


def _asked_of_documents(root: Path) -> OpenQuestions:
    """A physics-level question that two documents have led to."""
    for name, line in (("one.md", CLASH), ("two.md", CLASH.replace("stateless", "stateful"))):
        (root / "docs").mkdir(exist_ok=True)
        (root / "docs" / name).write_text(line)
    questions = _questions(root)
    about = [("docs/one.md", "The service is stateless"), ("docs/two.md", "The service is stateful")]
    questions.ask("physics-level", "which?", key="k", about=about)
    return questions


def test_a_question_stands_while_its_documents_say_the_same(tmp_path: Path) -> None:
    (question,) = _asked_of_documents(tmp_path).open()
    assert question.stops


@pytest.mark.parametrize("change", ["remove", "rewrite"])
def test_a_question_whose_cause_is_gone_is_gone(tmp_path: Path, change: str) -> None:
    questions = _asked_of_documents(tmp_path)
    path = tmp_path / "docs" / "two.md"
    path.unlink() if change == "remove" else path.write_text(CLASH)
    assert questions.open() == ()
    assert not questions.all()[0].stops
    (gone,) = questions.withdraw({})
    assert gone.gone.startswith("docs/two.md")
    assert questions.withdraw({}) == ()
    assert read_questions(questions.path, look=False)[0].gone == gone.gone


def test_a_question_about_a_bead_that_is_closed_is_gone(tmp_path: Path) -> None:
    questions = _questions(tmp_path)
    questions.ask("conflict", "what of it?", key="conflict:a-1", bead_id="a-1")
    questions.ask("approval", "go?", key="approval:dispatch:a-1")
    questions.ask("conflict", "and this?", key="d", bead_id="a-2")
    queue = queue_of([row("a-1", status="closed", updated_at="2099-01-01T00:00:00Z"), row("a-2")])
    assert [each.id for each in still_asked(questions.all(), queue.beads)] == ["q-3"]
    needs = needs_of(queue, (), Tracker(Path()), questions=questions.all())
    assert [need.question_id for need in needs if need.question_id] == ["q-3"]
    beads = queue.beads
    assert {each.id for each in questions.withdraw(beads)} == {"q-1", "q-2"}
    assert [each.id for each in questions.open()] == ["q-3"]


def test_a_question_about_a_bead_that_was_closed_before_stands(tmp_path: Path) -> None:
    questions = _questions(tmp_path)
    questions.ask("ambiguous", "it still fails", key="acceptance:check.sh", bead_id="a-1")
    questions.ask("conflict", "landed and refused", key="conflict:a-1", bead_id="a-1")
    beads = queue_of([row("a-1", status="closed", updated_at="2020-01-01T00:00:00Z")]).beads
    assert len(still_asked(questions.all(), beads)) == 2
