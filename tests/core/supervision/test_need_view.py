"""Needs as somebody looks at them: groups, folds, filter, what is put off, and what can be done about each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helix_tui.core.beads.readiness import Queue, classify
from helix_tui.core.editing.execute.gate import WriteGate, WritesForbidden
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import NS, parse_now
from helix_tui.core.supervision.decide.need_kinds import GROUPS, KINDS
from helix_tui.core.supervision.decide.need_view import (
    LANDING,
    NeedContext,
    Without,
    bring_back,
    complete_need_filter,
    grouped,
    need_filter,
    operations_for,
    put_off,
    shared_actions,
)
from helix_tui.core.supervision.decide.needs import Need, read_snoozes, snooze_file, split_snoozed
from tests.programs import parse_rows

NOW = parse_now("2026-08-21T22:00:28Z")
DAY = 86_400 * NS
QUEUE = classify(
    parse_rows(
        b'{"id":"a","title":"Refund the fare","priority":0,"labels":["area:pay"]}\n'
        b'{"id":"b","title":"Print the timetable","dependencies":[{"depends_on_id":"gone"}]}\n'
        b'{"id":"x","dependencies":[{"depends_on_id":"y"}]}\n{"id":"y","dependencies":[{"depends_on_id":"x"}]}\n'
        b'{"id":"p","status":"proposed","priority":2}\n{"id":"dropped","status":"cancelled"}'
    ).beads,
    now=NOW,
)
NEEDS = (
    Need("conflict", "a", "land it?", 2, question_id="q-1", since=NOW - NS * 60),
    Need("dead_run", "a", "no heartbeat", 0, since=NOW - 3 * DAY, usd=1.5),
    Need("proposed", "p", "accept or reject", 1, since=NOW - 30 * DAY, assigned="anna"),
    Need("lesson", "", "failure: boom → retry", 0, ref="7", usd=0.2),
)


def test_every_kind_has_a_heading_and_something_that_can_be_done() -> None:
    assert {kind.group for kind in KINDS.values()} == set(GROUPS)
    assert all(kind.actions for kind in KINDS.values()), "nothing answers that there is no quick action"


def test_groups_stand_by_urgency_and_the_heaviest_before_the_old() -> None:
    claims = [Need("dead_run", f"c-{n}", "dead", n % 2, since=NOW - n * DAY, usd=float(n)) for n in range(12)]
    first, second = grouped([*claims, NEEDS[0]], NOW)
    assert (first.name, second.name) == ("questions", "stale claims")
    assert [need.bead_id for need in second.shown[:3]] == ["c-11", "c-9", "c-7"], "what blocks, then what cost most"
    assert {need.bead_id for need in second.folded} == {"c-8", "c-10"}
    assert set(second.needs) == set(claims)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "conflict dead_run proposed lesson"),
        ("kind:stale", "dead_run"),
        ("-kind:stale kind:proposals,lessons", "proposed lesson"),
        ("waits>2d", "dead_run proposed"),
        ("waits>172800", "dead_run proposed"),
        ("waits<=1h", "conflict"),
        ("cost>=1", "dead_run"),
        ("blocks:2", "conflict"),
        ("assigned:none", "conflict dead_run lesson"),
        ("assigned:me", "proposed"),
        ("refund", "conflict dead_run"),
        ("boom", "lesson"),
        ("p<=0", "conflict dead_run"),
        ("label:area:pay -land", "dead_run"),
        ("waits>", "conflict dead_run proposed lesson"),
    ],
)
def test_the_filter_knows_needs_and_their_beads(text: str, expected: str) -> None:
    found = need_filter(text, me="anna")
    assert found.problem == ""
    assert " ".join(need.kind for need in found.passing(NEEDS, NeedContext(QUEUE, NOW))) == expected


def test_what_a_filter_does_not_know_is_said_with_what_it_does() -> None:
    assert "kind" in need_filter("colour:red").problem
    assert "assigned" in need_filter("colour:red").problem
    assert "duration" in need_filter("waits>soon").problem
    context = NeedContext(QUEUE, NOW, NEEDS)
    assert [each.text for each in complete_need_filter("kind:st", 7, context)] == ["stale-claims"]
    assert "waits>=" in [each.text for each in complete_need_filter("wai", 3, context)]


def test_what_is_put_off_comes_back_by_the_clock_or_by_a_change(tmp_path: Path) -> None:
    (tmp_path / ".ddx").mkdir()
    (tmp_path / ".helix").mkdir()
    project = find_project(tmp_path)
    gate = WriteGate(project, read_only=False)
    until_changed = Need("dead_run", "a", "dead for 3d", 0, mark="one")
    put_off(project, gate, NEEDS[2:3], until=NOW + DAY, by="anna", now=NOW)
    put_off(project, gate, [until_changed], until=None, by="anna", now=NOW)
    needs = (NEEDS[0], until_changed, NEEDS[2])

    split = split_snoozed(needs, read_snoozes(project), NOW)
    assert (split.active, split.snoozed, split.wakes_at) == ((NEEDS[0],), needs[1:], NOW + DAY)
    assert NEEDS[2] in split_snoozed(needs, read_snoozes(project), NOW + DAY).active
    other = Need("dead_run", "a", "dead for 4d", 0, mark="two")
    assert split_snoozed([other], read_snoozes(project), NOW).active == (other,)
    bring_back(project, gate, {until_changed.key})
    assert until_changed in split_snoozed(needs, read_snoozes(project), NOW).active
    with pytest.raises(WritesForbidden):
        put_off(project, WriteGate(project, read_only=True), needs, until=None, by="", now=NOW)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"snoozed": 3}', '{"snoozed": [{"key": 3}, {"key": "a:b"}]}'])
def test_a_broken_list_of_what_is_put_off_puts_little_off(tmp_path: Path, text: str) -> None:
    (tmp_path / ".ddx").mkdir()
    (tmp_path / ".helix").mkdir()
    project = find_project(tmp_path)
    snooze_file(project).write_text(text)
    assert read_snoozes(project).keys() <= {"a:b"}


def _wishes(action: str, need: Need, queue: Queue = QUEUE) -> list[tuple[str, str, str]]:
    operations = operations_for(action, [need], queue)  # type: ignore[arg-type]
    return [(each.kind, each.bead_id, json.dumps(each.record()["values"])) for each in operations]


def test_actions_become_operations_on_the_bead() -> None:
    assert _wishes("release", NEEDS[1]) == [("unclaim", "a", '{"force": false}')]
    assert _wishes("accept", NEEDS[2]) == [("set", "p", '{"fields": {"status": "open"}}')]
    assert _wishes("reject", NEEDS[2]) == [("cancel", "p", "{}")]
    need = Need("merge_conflict", "a", "kept", 0, attempt_id="20260821T100000-aaaaaaaa", kept_rev="c0ffee")
    assert _wishes("reject", need) == [("drop", "a", json.dumps({"attempt_id": need.attempt_id, "rev": "c0ffee"}))]
    missing = Need("missing_dependency", "b", "waits on gone", 0)
    assert _wishes("undepend", missing) == [("undepend", "b", '{"on": "gone"}')]
    assert len(_wishes("undepend", Need("cycle", "x", "circle", 0))) == 1, "one cut breaks a circle"
    assert _wishes("accept", NEEDS[3]) == [], "a lesson is no bead"


def test_many_together_have_the_actions_that_all_have() -> None:
    def shared(*needs: Need, without: Without = lambda need: ()) -> list[str]:
        return [action.id for action in shared_actions(needs, without)]

    proposed, other = NEEDS[2], Need("proposed", "b", "no worker picks it", 0)
    assert shared(proposed, proposed) == ["accept", "reject", "land"]
    assert shared(proposed, proposed, NEEDS[3]) == ["accept", "reject"]
    assert shared() == []
    asked = Need("conflict", "a", "kept aside", 0, question_id="q-2")
    assert "reject" in shared(asked)
    assert not {"answer", "reject"} & set(shared(asked, asked)), "one answer each"
    assert "answer" not in shared(NEEDS[0], NEEDS[0]), "each question has its own answer"
    assert shared(proposed, other, without=lambda need: LANDING) == ["accept", "reject"], "nothing was kept aside"
    assert "land" in shared(proposed, other, without=lambda need: LANDING if need is other else ()), "one was"
