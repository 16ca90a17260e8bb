"""The journal: two records a change, numbered, never lost, never torn for good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helix_tui.core.editing import operations
from helix_tui.core.editing.journal import Journal, JournalEntry, JournalError, Who
from helix_tui.core.editing.steps import OperationRefused
from helix_tui.core.editing.undo import operations_of
from helix_tui.core.ground.time import parse_now

AT = parse_now("2026-08-21T22:00:28Z")
ME = Who("human", "me", 1)


def begin(journal: Journal, *, who: Who = ME, kind: str = "eligible", of: str = "", title: str = "t") -> str:
    return journal.begin(
        at=AT, who=who, kind=kind, title=title, steps=[{"command": ["bead"]}], operations=[], before={}, of=of
    )


def finish(journal: Journal, entry_id: str, **changes: Any) -> None:
    record: dict[str, Any] = {
        "result": "done",
        "before": {"a": {"x": None}},
        "after": {"a": {"x": 1}},
        "undoable": True,
    }
    journal.finish(entry_id, at=AT, **{**record, **changes})


def test_a_change_is_known_before_and_after(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "new" / "journal.jsonl")
    assert journal.read().entries == ()
    entry_id = begin(journal)
    assert [entry.id for entry in journal.read().pending] == [entry_id]
    finish(journal, entry_id, traces=["a trace"])
    (entry,) = journal.read().entries
    assert (entry.id, entry.result, entry.at, entry.who) == (entry_id, "done", AT, ME)
    assert (entry.before, entry.after, entry.traces) == ({"a": {"x": None}}, {"a": {"x": 1}}, ("a trace",))
    assert entry.commands == (("ddx", "bead"),)
    assert Journal(journal.path).read().entries == (entry,)


def test_of_more_changes_than_are_held_the_newest_and_those_without_an_outcome_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("helix_tui.core.editing.journal.MAX_ENTRIES", 3)
    journal = Journal(tmp_path / "journal.jsonl")
    cut_off = begin(journal)
    ids = [begin(journal) for _ in range(5)]
    for entry_id in ids:
        finish(journal, entry_id)
    last = begin(journal)
    for reader in (journal, Journal(journal.path)):
        history = reader.read()
        assert [entry.id for entry in history.pending] == [cut_off, last]
        assert len(history.entries) + history.left_out == 7
        assert history.dropped == 0
    finish(journal, cut_off)
    begin(journal)
    assert journal.read().get(ids[-1]) is not None
    assert journal.read().dropped == 0


def test_undo_and_redo_follow_each_other(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    first, second = begin(journal), begin(journal)
    for entry_id in (first, second):
        finish(journal, entry_id)
    machine = begin(journal, who=Who("agent", "bot"))
    finish(journal, machine)
    failed = begin(journal)
    finish(journal, failed, result="failed", after={}, undoable=False)
    assert [entry.id for entry in journal.read().to_undo(ME)] == [second, first]
    assert [entry.id for entry in journal.read().to_undo(Who("agent", "bot"))] == [machine]
    assert [entry.id for entry in journal.read().to_undo(Who("agent", "other"))] == []
    assert [entry.id for entry in journal.read().to_undo()] == [machine, second, first]
    finish(journal, begin(journal, kind="undo", of=second))
    assert [entry.id for entry in journal.read().to_undo(ME)] == [first]
    assert [entry.id for entry in journal.read().to_redo(ME)] == [second]
    finish(journal, begin(journal, kind="redo", of=second), after={"a": {"x": 7}})
    history = journal.read()
    assert [entry.id for entry in history.to_undo(ME)] == [second, first]
    assert history.to_undo(ME)[0].after == {"a": {"x": 7}}
    assert [entry.id for entry in history.back_to(first)] == [second, machine]
    with pytest.raises(KeyError):
        history.back_to("op-99")


def test_the_way_to_a_point_takes_back_what_came_after_and_does_again_what_was_taken_back(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    first, second = begin(journal), begin(journal)
    finish(journal, first)
    finish(journal, second)
    undo = begin(journal, kind="undo", of=first)
    finish(journal, undo)
    third = begin(journal)
    finish(journal, third)
    history = journal.read()
    ways = [(entry.id, entry.standing) for entry in history.back_to(second)]
    assert ways == [(third, True), (first, False)]
    assert [entry.id for entry in history.back_to(undo)] == [third]
    assert history.back_to(third) == ()


def test_a_journal_that_cannot_be_read_says_so_and_comes_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    finish(journal, begin(journal))
    assert len(journal.look().entries) == 1
    journal.path.rename(tmp_path / "away")
    os.mkfifo(journal.path)
    assert "not a regular file" in journal.look().problem
    assert len(journal.look().entries) == 1
    journal.path.unlink()
    (tmp_path / "away").rename(journal.path)
    assert journal.look().problem == ""
    assert len(journal.look().entries) == 1


def test_a_line_without_an_end_is_told_and_nothing_new_is_the_same_history(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    finish(journal, begin(journal))
    one = journal.read()
    assert journal.read() is one
    with open(journal.path, "ab") as file:
        file.write(b'{"v":1,"seq"')
    assert journal.read().torn
    begin(journal)
    two = journal.read()
    assert (two.torn, two.dropped, len(two.entries)) == (False, 1, 2)


@pytest.mark.parametrize(
    "field", ['"steps":[{"command":5}]', '"before":{"a":[1]}', '"before":7', '"who":[]', '"at":{}']
)
def test_a_record_of_another_shape_is_counted_and_never_shown(tmp_path: Path, field: str) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    begin(journal)
    name = field.partition(":")[0].strip('"')
    record = json.loads(journal.path.read_text())
    record[name] = json.loads("{" + field + "}")[name]
    journal.path.write_text(json.dumps(record) + "\n")
    history = journal.read()
    assert all(entry.commands == () for entry in history.entries)
    assert len(history.entries) + history.dropped == 1


def test_a_new_change_ends_what_can_be_done_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    first = begin(journal)
    finish(journal, first)
    finish(journal, begin(journal, kind="undo", of=first))
    assert journal.read().to_redo()
    finish(journal, begin(journal))
    assert not journal.read().to_redo()


def test_an_undo_that_stopped_half_way_leaves_the_rest_to_take_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    first = begin(journal)
    finish(
        journal,
        first,
        before={"a": {"x": None, "y": 0}, "b": {"x": None}},
        after={"a": {"x": 1, "y": 2}, "b": {"x": 1}},
    )
    half = begin(journal, kind="undo", of=first)
    finish(journal, half, result="partial", before={"a": {"x": 1}}, after={"a": {"x": None}})
    (left,) = journal.read().to_undo()
    assert left.after == {"a": {"y": 2}, "b": {"x": 1}}
    assert left.before == {"a": {"y": 0}, "b": {"x": None}}


@pytest.mark.parametrize(
    "garbage",
    [
        b'{"v":1,"seq":9,"record":"inten',
        b"[]\n",
        b'{"record":"outcome","id":"op-77"}\n',
        b"\xff\xfe\n",
        b'{"record":"intent"}\n',
        b'{"record":"intent","id":"x","seq":"y","at":"never","who":"me","kind":1,"title":2,"steps":3,"before":4}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_what_cannot_be_read_is_counted_and_harms_nothing(tmp_path: Path, garbage: bytes) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    first = begin(journal)
    finish(journal, first)
    with journal.path.open("ab") as file:
        file.write(garbage)
    second = begin(journal)
    finish(journal, second)
    for reader in (journal, Journal(journal.path)):
        history = reader.read()
        assert [entry.id for entry in history.entries] == [first, second]
        assert [entry.result for entry in history.entries] == ["done", "done"]
        assert history.dropped == 1
    assert len({entry.seq for entry in journal.read().entries}) == 2


def test_a_line_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    begin(journal)
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-10])
    reader = Journal(journal.path)
    assert reader.read().entries == ()
    journal.path.write_bytes(whole)
    assert len(reader.read().entries) == 1
    assert reader.read().dropped == 0


def test_a_journal_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    begin(journal)
    begin(journal)
    assert len(journal.read().entries) == 2
    kept = journal.path.read_bytes().split(b"\n")[0] + b"\n"
    (tmp_path / "other").write_bytes(kept)
    os.replace(tmp_path / "other", journal.path)
    assert len(journal.read().entries) == 1
    journal.path.unlink()
    assert journal.read().entries == ()


def test_what_cannot_be_written_down_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError):
        begin(Journal(tmp_path / "file" / "journal.jsonl"))


def test_many_processes_number_their_lines_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    code = (
        "import sys; from pathlib import Path\n"
        "from helix_tui.core.editing.journal import Journal, Who\n"
        "journal = Journal(Path(sys.argv[1]))\n"
        "for n in range(25):\n"
        "    e = journal.begin(at=n, who=Who('cli'), kind='k', title='x' * 3000, steps=[],\n"
        "        operations=[], before={})\n"
        "    journal.finish(e, at=n, result='done', before={}, after={})\n"
    )
    crowd = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(4)]
    assert [process.wait(60) for process in crowd] == [0] * 4
    lines = [json.loads(line) for line in path.read_text().split("\n") if line]
    assert [line["seq"] for line in lines] == list(range(1, 201))
    history = Journal(path).read()
    assert len(history.entries) == 100
    assert not history.pending
    assert not history.dropped


KINDS = {each.__struct_config__.tag: each for each in get_args(operations.Recorded)}


@settings(max_examples=200)
@given(st.sampled_from(sorted(KINDS)).flatmap(lambda kind: _operations(KINDS[kind])))
def test_an_operation_comes_back_from_its_line_as_it_was(operation: operations.Operation) -> None:
    record = json.loads(json.dumps(operation.record()))
    (again,) = operations_of(_entry(record))
    assert again.record() == record
    assert type(again) is type(operation)


@pytest.mark.parametrize(
    "values",
    [{"before": "b", "after": ""}, {"before": "b", "after": "", "top": False, "where": "x"}, {"before": 1}, None, []],
)
def test_an_operation_of_another_form_is_refused_rather_than_guessed(values: object) -> None:
    for kind in ("rank", "made up", None):
        with pytest.raises(OperationRefused, match="cannot be read by this release"):
            operations_of(_entry({"kind": kind, "bead_id": "a", "values": values}))


def _operations(kind: type[operations.Operation]) -> st.SearchStrategy[operations.Operation]:
    return st.builds(kind, **{field.name: st.from_type(field.type) for field in msgspec.structs.fields(kind)})


def _entry(record: dict[str, Any]) -> JournalEntry:
    return JournalEntry("j-1", 1, 0, ME, "rank", "t", operations=(record,))
