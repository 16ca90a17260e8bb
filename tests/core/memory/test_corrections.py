"""A memory can be corrected: revisions, edits, one in place of another, each with its way back."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager

import pytest
from sqlite_utils import Database

from helix_tui.core.memory.changes import MemoryChange, MemoryChanges
from helix_tui.core.memory.lessons import Proposals
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.records import Memory, MemoryEdit, MemoryFault, UnknownMemory
from helix_tui.core.memory.reports import Proposal
from helix_tui.core.memory.write.same_problem import one_matter, same_problem
from tests.core.memory.conftest import Clock, Opener, Plane, name_of

TRIGGER = "Celery worker loses tasks on restart"
WRONG = "set max_retries=100"
RIGHT = "WRONG before: max_retries=100 made it worse; set acks_late instead"


def _of(memory: MemoryStore, name: str) -> Memory:
    found = memory.get(name)
    assert found is not None
    return found


@pytest.mark.parametrize("mode", ["semantic", "keyword"])
def test_another_resolution_for_a_known_trigger_is_what_holds(opener: Opener, plane: Plane, mode: str) -> None:
    memory = opener(plane if mode == "semantic" else None)
    plane.put(f"{TRIGGER} {RIGHT}", TRIGGER, 0.8)
    name = name_of(memory, TRIGGER, WRONG)
    memory.feedback([name], [name], "failed")
    stored = memory.store(TRIGGER, RIGHT)
    assert (stored.status, stored.name, stored.revision, stored.replaced) == ("revised", name, 2, 1)
    for found in (_of(memory, name), memory.recall(TRIGGER).found[0].memory, memory.list()[0]):
        assert (found.resolution, found.uses, found.revision) == (RIGHT, 0, 2)
    assert RIGHT in memory.inject(TRIGGER).text
    assert [
        (revision.number, revision.memory.resolution, revision.memory.failed) for revision in memory.revisions(name)
    ] == [(1, WRONG, 1)]


def test_the_words_of_the_newest_revision_find_it(words_only: MemoryStore) -> None:
    name = name_of(words_only, TRIGGER, WRONG)
    words_only.store(TRIGGER, "switch the broker to acks_late")
    assert [hit.memory.name for hit in words_only.recall("acks_late broker", gate=0.3).found] == [name]


def test_a_stale_resolution_does_not_come_back_by_being_stored_again(memory: MemoryStore) -> None:
    name = name_of(memory, TRIGGER, WRONG)
    memory.store(TRIGGER, RIGHT)
    again = memory.store(TRIGGER, WRONG)
    assert (again.status, again.reason) == ("merged", "revision 1 says so; revision 2 has replaced it")
    assert _of(memory, name).resolution == RIGHT


def test_an_outcome_counts_for_the_revision_that_was_shown(words_only: MemoryStore) -> None:
    memory = words_only
    name = name_of(memory, TRIGGER, WRONG)
    memory.inject(TRIGGER, attempt="early")
    memory.store(TRIGGER, RIGHT)
    memory.inject(TRIGGER, attempt="late")
    memory.feedback(utilized=[name], verified="failed", attempt="early")
    memory.feedback(utilized=[name], verified="passed", attempt="late")
    newest, (older,) = _of(memory, name), memory.revisions(name)
    assert (newest.helped, newest.failed, newest.verified_helped, newest.shown) == (1, 0, 1, 1)
    assert (older.memory.helped, older.memory.failed, older.memory.verified_failed) == (0, 1, 1)
    memory.feedback(utilized=[name], verified="passed", attempt="early", revise=True)
    assert memory.revisions(name)[0].memory.helped == 1
    assert [outcome.revision for outcome in memory.outcomes(name)] == [1, 2]


PAIRS = [
    ("Worker exits with code 137 at start", "Worker exits with code 127 at start"),
    ("Password authentication fails in production", "Password authentication fails in staging"),
    ("Migration 0042 fails on a lock", "Migration 0057 fails on a lock"),
    ("The upload is cut off before the checksum", "The upload is cut off after the checksum"),
    ("rename() fails with EACCES on the cache", "rename() fails with ENOENT on the cache"),
    ("The build fails on Linux runners", "The build fails on macOS runners"),
    ("The gateway answers 502 under load", "The gateway answers 504 under load"),
    ("test_login_form times out", "test_logout_form times out"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_problems_that_differ_in_what_tells_them_apart_stay_apart(
    memory: MemoryStore, plane: Plane, one: str, other: str
) -> None:
    plane.put(other, one, 0.95)
    plane.put(f"{other} look at it", f"{one} look at it", 0.97)
    first = memory.store(one, "look at it")
    second = memory.store(other, "look at it")
    assert (first.status, second.status) == ("added", "added")
    assert memory.consolidate().merged == ()
    assert not one_matter(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Snapshot tests fail after upgrading React", "Snapshot tests fail after upgrading Vue"),
        ("Nightly job runs twice in winter", "Nightly job runs twice in summer"),
        ("Parser accepts a trailing comma", "Parser rejects a trailing comma"),
        ("Sorting of names ignores case", "Sorting of names ignores accents"),
    ],
)
def test_a_word_in_the_place_of_another_tells_apart_though_both_resolve_alike(
    memory: MemoryStore, plane: Plane, one: str, other: str
) -> None:
    plane.put(other, like=one, cosine=0.97)
    names = [memory.store(text, "do it again").name for text in (one, other)]
    assert len(set(names)) == 2
    assert [memory.recall(text, limit=1).found[0].memory.name for text in (one, other)] == names


def test_near_triggers_that_resolve_in_different_ways_stay_apart(memory: MemoryStore, plane: Plane) -> None:
    plane.put("Tasks get lost when the worker restarts", TRIGGER, 0.9)
    memory.store(TRIGGER, "set acks_late")
    assert memory.store("Tasks get lost when the worker restarts", "use a durable queue").status == "added"


def test_one_problem_is_one_in_capitals_articles_and_plurals() -> None:
    assert same_problem("Circular import in the auth models", "circular imports in AUTH model")
    assert not same_problem("Retry before the backup", "Backup before the retry")
    assert not same_problem("The cache is enabled", "The cache is not enabled")


def test_an_edit_that_says_something_else_is_a_revision(memory: MemoryStore, clock: Clock) -> None:
    name = name_of(memory, TRIGGER, WRONG)
    memory.feedback([name], [name], "passed")
    before = _of(memory, name)
    clock.forward(3)
    looked = memory.edit(name, MemoryEdit(resolution=RIGHT), apply=False)
    assert (looked.kind, looked.after.revision, looked.after.helped) == ("revised", 2, 0)
    assert _of(memory, name) == before
    memory_change, done = MemoryChanges(memory).edit(name, MemoryEdit(resolution=RIGHT))
    assert memory_change is not None
    assert done.sentence == "revision 2 holds; revision 1 stays in its history with its 1 helped / 0 failed"
    assert (_of(memory, name).resolution, _of(memory, name).helped) == (RIGHT, 0)
    assert MemoryChanges(memory).undo() is not None
    assert _of(memory, name) == before
    assert memory.revisions(name) == []
    assert memory.recall(f"{TRIGGER} {WRONG}").found[0].similarity == pytest.approx(1, abs=1e-4)


def test_an_edit_that_says_the_same_keeps_the_counts(memory: MemoryStore) -> None:
    name = name_of(memory, TRIGGER, "set acks late")
    memory.feedback([name], [name], "passed")
    memory_changes = MemoryChanges(memory)
    _, done = memory_changes.edit(name, MemoryEdit(resolution="Set acks late.", source="user-provided"))
    assert (done.kind, _of(memory, name).helped, _of(memory, name).revision) == ("reworded", 1, 1)
    assert _of(memory, name).protected
    memory_changes.undo()
    assert (_of(memory, name).resolution, _of(memory, name).source) == ("set acks late", "")


def test_undoing_an_edit_keeps_what_the_revision_did_meanwhile(memory: MemoryStore) -> None:
    name = name_of(memory, TRIGGER, WRONG)
    memory_changes = MemoryChanges(memory)
    memory_changes.edit(name, MemoryEdit(resolution=RIGHT))
    memory.feedback([name], [name], "failed")
    memory_changes.undo()
    assert (_of(memory, name).resolution, _of(memory, name).failed) == (WRONG, 0)
    assert [(revision.number, revision.memory.failed) for revision in memory.revisions(name)] == [(2, 1)]


def test_an_edit_cannot_be_undone_over_a_newer_one(memory: MemoryStore) -> None:
    name = name_of(memory, TRIGGER, WRONG)
    memory_changes = MemoryChanges(memory)
    memory_changes.edit(name, MemoryEdit(resolution=RIGHT))
    memory.store(TRIGGER, "use another broker altogether")
    with pytest.raises(MemoryFault, match="changed since"):
        memory_changes.undo()
    assert _of(memory, name).resolution == "use another broker altogether"


def test_an_older_revision_can_be_brought_back(memory: MemoryStore) -> None:
    name = name_of(memory, TRIGGER, WRONG)
    memory.feedback([name], [name], "passed")
    memory.store(TRIGGER, RIGHT)
    memory_changes = MemoryChanges(memory)
    memory_changes.edit(name, MemoryEdit(revision=1))
    assert (_of(memory, name).resolution, _of(memory, name).helped, _of(memory, name).revision) == (
        WRONG,
        1,
        1,
    )
    memory_changes.undo()
    assert (_of(memory, name).resolution, _of(memory, name).revision) == (RIGHT, 2)
    with pytest.raises(MemoryFault, match="no older revision 7"):
        memory.edit(name, MemoryEdit(revision=7))


@pytest.mark.parametrize(
    "change", [MemoryEdit(resolution=" "), MemoryEdit(trigger="short"), MemoryEdit(type="decision")]
)
def test_what_cannot_be_stored_cannot_be_edited_in(memory: MemoryStore, change: MemoryEdit) -> None:
    name = name_of(memory, TRIGGER, WRONG)
    with pytest.raises(MemoryFault, match="refused"):
        memory.edit(name, change)
    with pytest.raises(UnknownMemory):
        memory.edit("nobody", change)


def test_a_superseded_memory_stays_in_the_history_of_what_holds(words_only: MemoryStore) -> None:
    memory = words_only
    old = name_of(memory, TRIGGER, WRONG)
    memory.feedback([old], [old], "failed")
    memory.inject(TRIGGER, attempt="early")
    new = name_of(memory, "Tasks vanish when the broker goes away", "make the queue durable")
    other = name_of(memory, "A deploy restarts every worker", "roll them one by one")
    memory.relate(other, old, "causes")
    before = _of(memory, old), memory.edges()
    memory_changes = MemoryChanges(memory)
    memory_change, done = memory_changes.supersede(old, new)
    assert (memory_change.kind, done.after.name) == ("supersede", new)
    assert memory.get(old) is None
    assert memory.successor(old) == _of(memory, new)
    assert old not in [hit.memory.name for hit in memory.recall(TRIGGER, limit=10).found]
    assert {edge.to_name for edge in memory.edges(other)} == {new}
    memory.feedback(utilized=[old], verified="failed", attempt="early")
    assert [(revision.memory.name, revision.memory.failed) for revision in memory.revisions(new)] == [(old, 2)]
    memory_changes.undo()
    assert memory.revisions(new) == []
    assert _of(memory, old).failed == 2
    assert (_of(memory, old).trigger, memory.edges()) == (before[0].trigger, before[1])


def test_a_memory_does_not_supersede_itself(memory: MemoryStore) -> None:
    name = name_of(memory, TRIGGER, WRONG)
    with pytest.raises(MemoryFault, match="itself"):
        memory.supersede(name, name)


def test_what_a_person_has_put_in_is_merged_and_replaced_by_nothing(memory: MemoryStore) -> None:
    name = memory.store(TRIGGER, "set acks_late", source="user-provided").name
    assert memory.store(TRIGGER, "set acks_late").status == "merged"
    other = memory.store(TRIGGER, WRONG)
    assert (other.status, other.name == name) == ("added", False)
    assert memory.store(TRIGGER, "set acks_late", source="user-provided").status == "merged"
    assert _of(memory, name).resolution == "set acks_late"
    memory.feedback([name], [name], "failed", attempt="1")
    for number in range(4):
        memory.feedback([name], [name], "failed", attempt=f"again {number}")
    assert memory.prune().removed == ()
    memory.consolidate(0.5)
    assert memory.get(name) is not None


def test_a_person_corrects_by_storing_it_as_their_own(memory: MemoryStore) -> None:
    name = name_of(memory, TRIGGER, WRONG)
    stored = memory.store(TRIGGER, RIGHT, source="user-provided")
    assert (stored.status, stored.name) == ("revised", name)
    assert _of(memory, name).protected


def test_an_accepted_lesson_that_revises_is_taken_back_as_a_whole(memory: MemoryStore) -> None:
    name = memory.store(TRIGGER, WRONG, taught_by="attempt").name
    memory.feedback([name], [name], "passed")
    before = _of(memory, name)
    lesson = Proposal(0, "attempt-1", "b-1", "failure", TRIGGER, RIGHT, "it landed")
    Proposals(memory).add(lesson)
    memory_changes = MemoryChanges(memory)
    memory_changes.accept(Proposals(memory).all())
    assert _of(memory, name).resolution == RIGHT
    memory_changes.undo()
    assert _of(memory, name) == before
    assert memory.read("SELECT count(*) FROM memory_occurrence") == [(1,)]
    assert len(Proposals(memory).all()) == 1


def test_undoing_a_merged_lesson_takes_its_words_out_of_the_search(memory: MemoryStore, plane: Plane) -> None:
    again = "The Celery workers lose tasks, on restart!"
    plane.put(again, TRIGGER, 0.95)
    name = name_of(memory, TRIGGER, WRONG)
    before = memory.read("SELECT words FROM memory_words")
    Proposals(memory).add(Proposal(0, "attempt-1", "b-1", "failure", again, WRONG, "it landed"))
    memory_changes = MemoryChanges(memory)
    memory_changes.accept(Proposals(memory).all())
    assert len(memory.variants(name)) == 1
    assert memory.read("SELECT words FROM memory_words") != before
    memory_changes.undo()
    assert not memory.variants(name)
    assert memory.read("SELECT words FROM memory_words") == before


def test_two_processes_that_undo_at_once_take_back_two_changes(
    opener: Opener, plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = opener(plane), opener(plane)
    first, second = name_of(one, TRIGGER, WRONG), name_of(one, "Another matter altogether")
    for name in (first, second):
        MemoryChanges(one).remove([name])
    undone: list[MemoryChange | None] = []
    write = other.write

    def late() -> AbstractContextManager[Database]:
        if not undone:  # the other process comes first
            undone.append(MemoryChanges(one).undo())
        return write()

    monkeypatch.setattr(other, "write", late)
    undone.append(MemoryChanges(other).undo())
    assert [change.title for change in undone if change] == [f"remove “{second}”", f"remove “{first}”"]
    assert len(one.list()) == 2


def test_a_database_of_an_earlier_release_gets_revisions(opener: Opener) -> None:
    memory = opener()
    name = name_of(memory, TRIGGER, WRONG)
    memory.inject(TRIGGER, attempt="early")
    path = memory.path
    memory.close()
    connection = sqlite3.connect(path)
    connection.executescript(
        "DROP TRIGGER helix_memory_history_removed; DROP TABLE memory_revision; DROP TABLE memory_occurrence;"
        "ALTER TABLE memory_extra DROP COLUMN revision; ALTER TABLE injection_memory DROP COLUMN revision;"
        "ALTER TABLE outcome DROP COLUMN revision;"
    )
    connection.close()
    memory = opener()
    memory.store(TRIGGER, RIGHT)
    memory.feedback(utilized=[name], verified="failed", attempt="early")
    assert (_of(memory, name).uses, memory.revisions(name)[0].memory.failed) == (0, 1)


def test_a_memory_removed_by_its_number_is_named(opener: Opener, plane: Plane) -> None:
    memory = opener(plane)
    name = name_of(memory, TRIGGER, WRONG)
    (row,) = memory.list()
    change = MemoryChanges(memory).remove(["none-such", str(row.id)])
    assert change is not None
    assert change.title == f"remove “{name}”"
