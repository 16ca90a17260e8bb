"""Beads whose outcome a person must judge: they wait, the rest goes on, and everything is given back."""

from __future__ import annotations

from typing import Any

import pytest

from helix_tui.core.supervision.decide.facts import gather_facts
from helix_tui.core.supervision.decide.verdict import decide
from helix_tui.core.supervision.signals.tried import UNDECIDED
from helix_tui.core.supervision.signals.undecided import UNDECIDED_PRIOR
from helix_tui.core.supervision.stages.results import answer_question
from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import Stage, StageFactory

pytestmark = pytest.mark.long

CONFLICT = {"results": [{"status": "land_conflict", "fields": {"preserve_ref": "refs/ddx/iterations/a-1/x"}}]}
WAYS: dict[str, Any] = {
    "absent": {},
    "true": {"execution__eligible": True},
    "text": {"execution__eligible": "yes"},
}


def eligibility(world: Stage, bead_id: str) -> dict[str, Any]:
    return {
        name: value
        for name, value in world.rows()[bead_id].items()
        if name == "execution-eligible" or name.startswith("helix-held")
    }


@pytest.mark.parametrize("before", WAYS)
@pytest.mark.parametrize("level", ["medium", "high"])
def test_the_rest_goes_on_without_it_and_it_is_given_back_as_it_was(
    stage: StageFactory, before: str, level: str
) -> None:
    fields = WAYS[before]
    world = stage([row("a-1", **fields), row("a-2", "a-1"), row("b-1")])
    world.turns(CONFLICT)
    outcome = world.run(autonomy=level)
    assert world.executed == ["a-1 land_conflict", "b-1 success"]
    assert outcome.stop.reason == ("question" if level == "medium" else "no_progress")
    assert outcome.stop.code == 0
    assert outcome.stop.detail.startswith("nothing else was ready")
    assert "a-1" in outcome.stop.detail  # which is ready once the run has ended
    assert outcome.state.completed_cycles == 1
    assert eligibility(world, "a-1") == {name.replace("__", "-"): value for name, value in fields.items()}


def test_the_next_run_still_waits_for_the_answer_and_goes_on_with_it(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns(CONFLICT)
    world.run()
    assert world.run().stop.reason == "question"
    assert len(world.executed) == 1
    (question,) = world.questions
    curator = world.curator()
    answer_question(curator, world.store, question.id, "rebase it")
    world.run()
    assert world.executed == ["a-1 land_conflict", "a-1 success"]
    assert world.rows()["a-1"]["helix-decision"] == "rebase it"


def test_what_it_stops_for_names_what_it_passed_over_too(stage: StageFactory) -> None:
    """Those are ready once the run has ended: nothing else is."""
    world = stage([row("a-1"), row("b-1")])
    world.turns(CONFLICT, {"results": [{"status": "execution_failed"}]})
    stop = world.run().stop
    assert (stop.reason, world.curator().look().queue.ready) == ("question", ("a-1", "b-1"))
    assert stop.detail.startswith("nothing else was ready; tried once, stays open: b-1 (")
    assert stop.detail.endswith("; and a-1 waits for a decision")


@pytest.mark.parametrize("ends", [CONFLICT, {"results": [{"status": "execution_failed"}]}], ids=["asks", "failed"])
def test_an_epic_whose_ready_beads_the_run_skips_gives_the_focus_up(stage: StageFactory, ends: dict[str, Any]) -> None:
    """What the focus held back is ready then: "nothing else is ready" would be false."""
    world = stage([row("e-1", issue_type="epic"), row("c-1", parent="e-1"), row("o-1", priority=3)])
    world.turns(ends)
    world.run(focus="e-1")
    assert world.executed == [f"c-1 {ends['results'][0]['status']}", "o-1 success"]
    assert any("releasing focus" in line for line in world.said)


def test_an_answer_while_the_run_goes_on_takes_it_up_again(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("b-1"), row("c-1")])
    world.turns(CONFLICT, {"results": [{}], "answer": "again"}, CONFLICT)
    outcome = world.run()
    assert world.executed == ["a-1 land_conflict", "b-1 success", "a-1 land_conflict", "c-1 success"]
    assert outcome.stop.reason == "question"
    assert [question.answered for question in world.store.all()] == [True, False]


def test_an_answer_gives_back_what_a_killed_run_left_held(stage: StageFactory) -> None:
    held = {"execution__eligible": False, UNDECIDED.replace("-", "__"): "a decision"}
    world = stage([row("a-1", **held, **{UNDECIDED_PRIOR.replace("-", "__"): "absent"}), row("b-1")])
    asked = world.store.ask("conflict", "what now?", key="conflict:a-1", bead_id="a-1")
    world.turns({"kill_parent": True, "results": []})
    answer_question(world.curator(), world.store, asked.id, "again")
    assert eligibility(world, "a-1") == {}


def test_a_run_gives_back_what_a_killed_one_left_held_and_nobody_asks_about(stage: StageFactory) -> None:
    held = {"execution__eligible": False, UNDECIDED.replace("-", "__"): "a decision"}
    world = stage([row("a-1", **held, **{UNDECIDED_PRIOR.replace("-", "__"): True})])
    world.run()
    assert world.executed == ["a-1 success"]
    assert eligibility(world, "a-1") == {"execution-eligible": True}


def test_guidance_is_next_where_all_that_is_ready_waits_for_an_answer(stage: StageFactory) -> None:
    world = stage([row("a-1", acceptance="`make test` passes"), row("b-1", acceptance="`make test` passes")])
    for bead_id, code in (("a-1", "BUILD"), ("b-1", "GUIDANCE")):
        world.store.ask("conflict", f"what of {bead_id}?", key=bead_id, bead_id=bead_id)
        facts = gather_facts(world.curator().look(), questions=world.questions)
        verdict = decide(facts)
        assert verdict.next_action == code
    assert [reason.refs for reason in verdict.reasons] == [("a-1",), ("b-1",)]


def test_low_holds_nothing_back_without_a_yes(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("b-1")])
    world.store.ask("conflict", "what now?", key="conflict:a-1", bead_id="a-1")
    assert world.run(autonomy="low").stop.reason == "question"
    assert eligibility(world, "a-1") == {}


def test_low_gives_the_focus_back_without_asking_again(stage: StageFactory) -> None:
    world = stage([row("e-1", issue_type="epic"), row("c-1", parent="e-1", priority=1), row("t-1")])
    dispatch = "let ddx execute one bead (the next would be c-1 “Title of c-1”)"
    for asked in ("focus on e-1 “Title of e-1”?", dispatch):
        world.run(autonomy="low")
        (question,) = world.questions
        assert question.text.startswith(asked)
        assert not any(key.startswith(("helix-focus", "execution-")) for key in world.rows()["t-1"])
        world.store.answer(question.id, "yes")


def test_low_asks_for_the_focus_on_an_epic_once(stage: StageFactory) -> None:
    rows = [row("e-1", issue_type="epic"), row("c-1", parent="e-1", priority=1), row("c-2", parent="e-1")]
    world = stage([*rows, row("t-1")])
    texts = []
    for _ in range(3):
        world.run(autonomy="low")
        (question,) = world.questions
        texts.append(question.text)
        world.store.answer(question.id, "yes")
    world.run(autonomy="low")
    assert [text.split(" ")[0] for text in texts] == ["focus", "let", "let"]
    assert world.executed == ["c-1 success", "c-2 success"]


def test_low_uses_each_yes_for_the_bead_that_it_was_given_for(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2"), row("a-3")])
    for executed in range(3):
        world.run(autonomy="low")
        assert len(world.executed) == executed
        (question,) = world.questions
        assert f"a-{executed + 1}" in question.text
        world.store.answer(question.id, "yes")
    world.run(autonomy="low")
    assert [line.split()[0] for line in world.executed] == ["a-1", "a-2", "a-3"]


@pytest.mark.parametrize(
    "spec",
    [
        {"status": "execution_failed"},
        {"status": "execution_failed", "fields": {"retry_after": "2020-01-01T00:00:00Z"}},
        {"status": "success", "close": False},
        {"status": "no_changes", "do": [["bead", "update", "{id}", "--set", "work-no-changes-count={n}"]]},
    ],
    ids=["failure", "cooldown-in-the-past", "success-that-stays-open", "notes-of-the-worker"],
)
def test_a_bead_that_comes_back_for_ever_ends_the_run_with_a_reason(stage: StageFactory, spec: dict[str, Any]) -> None:
    world = stage([row("a-1"), row("b-1", priority=3), row("c-1", "a-1")])
    do = [[word.replace("{n}", "1") for word in words] for words in spec.get("do", ())]
    world.turns({"results": [spec | {"bead_id": "a-1"} | ({"do": do} if do else {})]})
    outcome = world.run()
    assert (outcome.stop.reason, outcome.stop.code) == ("no_progress", 0)
    assert f"a-1 ({spec['status']}" in outcome.stop.detail
    assert [line.split()[0] for line in world.executed] == ["a-1", "b-1"]
    assert eligibility(world, "a-1") == {}
    assert any("skipping a-1" in line for line in world.said)
    (stuck,) = [blocker for blocker in outcome.state.blockers if blocker["bead_id"] == "a-1"]
    assert stuck["reason"] == "tried"


def test_low_passes_over_what_failed_with_one_yes_and_comes_to_an_end(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("b-1", priority=3), row("c-1", priority=4)])
    world.turns({"results": [{"bead_id": "a-1", "status": "execution_failed"}]})
    asked = []
    for _ in range(10):
        outcome = world.run(autonomy="low")
        if outcome.stop.reason != "approval":
            break
        (question,) = world.questions
        asked.append(question.text)
        world.store.answer(question.id, "yes")
    assert outcome.stop.reason == "no_progress"
    assert [line.split()[0] for line in world.executed] == ["a-1", "b-1", "c-1"]
    assert sum(text.startswith("skip a-1 “Title of a-1”: tried in this run") for text in asked) == 1
    assert len(asked) == 4
    assert world.run(autonomy="low").stop.detail.startswith(
        "let ddx execute one bead (the next would be a-1 “Title of a-1”)"
    )


def test_a_bead_whose_record_changes_is_tried_again(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("b-1", priority=3)])
    change = ["bead", "update", "a-1", "--title", "smaller"]
    world.turns(
        {"results": [{"bead_id": "a-1", "status": "execution_failed"}]},
        {"results": [{"bead_id": "b-1", "status": "success", "do": [change]}]},
        {"results": [{"bead_id": "a-1", "status": "success"}]},
    )
    world.run()
    assert world.rows()["a-1"]["status"] == "closed"
    assert [line.split()[0] for line in world.executed] == ["a-1", "b-1", "a-1"]


def test_a_true_that_stood_there_is_given_back_and_is_no_change(stage: StageFactory) -> None:
    world = stage([row("a-1", **{"execution-eligible": True}), row("b-1", priority=3)])
    world.turns({"results": [{"bead_id": "a-1", "status": "execution_failed"}]})
    assert world.run().stop.reason == "no_progress"
    assert eligibility(world, "a-1") == {"execution-eligible": True}
    assert len(world.executed) == 2


def test_a_ddx_that_picks_what_is_held_back_ends_the_run(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("b-1")])
    world.turns(*({"results": [{"bead_id": "a-1", "status": "execution_failed"}]} for _ in range(6)))
    outcome = world.run()
    assert (outcome.stop.reason, len(world.executed)) == ("no_progress", 2)
    assert "although this run had skipped it" in outcome.stop.detail


def test_two_beads_that_fail_are_each_tried_once(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("b-1")])
    failing = [{"results": [{"bead_id": name, "status": "execution_failed"}]} for name in ("a-1", "b-1") * 6]
    world.turns(*failing)
    outcome = world.run()
    assert outcome.stop.reason == "no_progress"
    assert [line.split()[0] for line in world.executed] == ["a-1", "b-1"]
    assert {each["bead_id"] for each in outcome.state.tried} == {"a-1", "b-1"}
    assert not any(key.startswith(("helix-held", "execution-")) for r in world.rows().values() for key in r)
