"""Changing a real tracker through a real program: done, taken back, interrupted, contradicted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ddx.client import MISSING, DdxError
from helix_tui.core.editing import operations as op
from helix_tui.core.editing.differences import Conflict
from helix_tui.core.editing.execute import gate as executable
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import Executable, GateBusy, WriteGate, WritesForbidden
from helix_tui.core.editing.journal import Journal, Rewrite
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.undo import EntryChecker, NotUndoable, Unreadable
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.project import find_project
from tests.core.supervision.conftest import WorldFactory, make_curator, row

Scripted = Callable[[str], Path]


def rows(era: str = "head") -> list[dict[str, object]]:
    return [
        row("a", era=era, labels=["helix", " odd"], notes="n", priority=0),
        row("b", "a", era=era),
        row("c", "a", "b", era=era, parent="e"),
        row("e", era=era, issue_type="epic", title="Epic: e"),
        row("done", era=era, status="closed", owner="me"),
    ]


@pytest.mark.long
def test_many_operations_are_one_change_and_go_back_as_one(world: WorldFactory) -> None:
    here = world(rows())
    before = here.settled()
    wishes: list[Operation] = [
        op.SetEligible("a", False),
        op.Supersede("b", "a"),
        op.RemoveDependency("c", "b"),
        op.AddDependency("e", "a"),
        op.SetParent("c", None),
        op.SetPriority("a", 4),
        op.ChangeLabels("a", add=["x"], remove=["helix"]),
        op.SetFields("b", {"title": "-t", "notes": "two\nlines", "type": "bug", "foo": "true", "bar": "5"}),
        op.ClearFields("a", ["notes"]),
        op.ClaimBead("a", "me"),
    ]
    done = here.curator.run(wishes)
    assert (done.error, done.problems, done.plan.refusals) == (None, (), ())
    changed = here.rows()
    assert changed["a"]["labels"] == [" odd", "x"]
    assert (changed["a"]["priority"], changed["a"]["status"]) == (4, "in_progress")
    assert changed["b"]["foo"] is True
    assert done.entry is not None
    assert done.entry.undoable
    assert done.newly_blocked == ()
    back = here.curator.undo()
    assert back is not None
    assert back.problems == ()
    assert here.settled() == before
    assert here.curator.undo() is None
    again = here.curator.redo()
    assert again is not None
    assert here.rows()["a"]["labels"] == [" odd", "x"]
    assert here.curator.redo() is None
    assert here.curator.undo() is not None
    assert here.settled() == before


def test_closing_tells_what_became_ready_and_reopening_undoes_it(world: WorldFactory) -> None:
    here = world(rows())
    before = here.settled()
    done = here.curator.run([op.CloseBead("a")])
    assert done.newly_ready == ("b",)
    undone = here.curator.undo()
    assert undone is not None
    assert undone.newly_blocked == ("b",)
    after = {bead_id: {k: v for k, v in each.items() if k != "events"} for bead_id, each in here.settled().items()}
    assert after == before


def test_a_new_bead_gets_its_id_everywhere(world: WorldFactory) -> None:
    here = world(rows())
    done = here.curator.run([op.CreateBead(title="New one", depends_on=["a"], notes="later", labels=["helix"])])
    (made,) = done.created.values()
    new = here.rows()[made]
    assert (new["title"], new["priority"], new["notes"]) == ("New one", 2, "later")
    assert done.entry is not None
    assert done.entry.before == {made: None}
    assert here.curator.undo() is not None
    assert here.rows()[made]["status"] == "cancelled"


def test_what_somebody_changed_since_is_not_taken_back(world: WorldFactory) -> None:
    here = world(rows())
    here.curator.run([op.SetPriority("a", 4), op.SetPriority("b", 4)])
    here.rewrite("a", priority=3)
    untouched = here.tracker.read_bytes()
    with pytest.raises(Conflict) as caught:
        here.curator.undo()
    (difference,) = caught.value.differences
    assert (difference.bead_id, difference.field, difference.ours, difference.theirs) == (
        "a",
        "priority",
        4,
        3,
    )
    assert caught.value.entry is not None
    assert here.tracker.read_bytes() == untouched
    here.rewrite("a", priority=4, notes="of no concern")
    assert here.curator.undo() is not None
    assert (here.rows()["a"]["priority"], here.rows()["a"]["notes"]) == (0, "of no concern")


def test_an_undo_is_not_done_again_over_somebodys_change(world: WorldFactory) -> None:
    here = world(rows())
    here.curator.run([op.SetPriority("a", 4)])
    here.curator.undo()
    here.rewrite("a", priority=2)
    with pytest.raises(Conflict):
        here.curator.redo()


def test_what_has_no_way_back_is_not_tried(world: WorldFactory) -> None:
    here = world(rows())
    done = here.curator.run([op.CancelBead("a")])
    assert done.entry is not None
    assert not done.entry.undoable
    with pytest.raises(NotUndoable, match="stays cancelled"):
        here.curator.undo()


def test_a_restore_takes_back_everything_newer(world: WorldFactory) -> None:
    here = world(rows())
    first = here.curator.run([op.SetPriority("a", 1)])
    here.curator.run([op.SetPriority("a", 2)])
    here.again(who="agent").run([op.SetPriority("a", 3)])
    assert first.entry is not None
    undo_plan, _ = here.curator.plan_undo(here.curator.history().back_to(first.entry.id))
    assert [turn.entry.id for turn in undo_plan.turns] == ["op-5", "op-3"]
    done = list(here.curator.restore(first.entry.id))
    assert [step.args for step in undo_plan.steps] == [step.args for each in done for step in each.plan.steps]
    assert [result.entry.of for result in done if result.entry] == ["op-5", "op-3"]
    assert here.rows()["a"]["priority"] == 1
    with pytest.raises(KeyError):
        list(here.curator.restore("op-99"))


def test_a_persons_undo_leaves_an_agents_change_alone(world: WorldFactory) -> None:
    here = world(rows())
    here.curator.run([op.SetPriority("a", 1)])
    here.again(who="agent").run([op.SetPriority("b", 1)])
    here.curator.undo()
    assert (here.rows()["a"]["priority"], here.rows()["b"]["priority"]) == (0, 1)


def test_an_agents_environment_makes_an_agent_of_the_command_line(world: WorldFactory) -> None:
    here = world(rows())
    agent = here.again(who="cli", env={**os.environ, "CLAUDECODE": "1"})
    done = agent.run([op.SetPriority("a", 1)])
    assert done.entry is not None
    assert done.entry.who.kind == "agent"


def test_nothing_to_do_leaves_no_trace(world: WorldFactory) -> None:
    here = world(rows())
    before = here.tracker.read_bytes()
    done = here.curator.run([op.SetEligible("a", True)])
    assert done.entry is None
    assert here.tracker.read_bytes() == before
    assert here.curator.history().entries == ()


def test_read_only_shuts_the_one_gate(world: WorldFactory) -> None:
    here = world(rows(), read_only=True)
    here.again().run([op.SetPriority("a", 1)])
    before = here.tracker.read_bytes()
    journal = (here.root / ".helix" / "journal.jsonl").read_bytes()
    for deed in (lambda: here.curator.run([op.SetPriority("a", 2)]), here.curator.undo, here.curator.redo):
        with pytest.raises(WritesForbidden, match="--read-only"):
            deed()
    assert here.curator.plan([op.SetPriority("a", 2)]).lines
    assert here.tracker.read_bytes() == before
    assert (here.root / ".helix" / "journal.jsonl").read_bytes() == journal


def test_a_plan_that_was_shown_holds_or_nothing_is_done(world: WorldFactory) -> None:
    here = world(rows())
    wish = [op.ChangeLabels("a", add=["x"])]
    shown = here.curator.plan(wish)
    here.rewrite("a", labels=["helix", "theirs"])
    with pytest.raises(Conflict, match="theirs"):
        here.curator.run(wish, shown=shown)
    assert here.rows()["a"]["labels"] == ["helix", "theirs"]
    assert here.curator.run(wish, shown=here.curator.plan(wish)).error is None
    assert here.rows()["a"]["labels"] == ["helix", "theirs", "x"]


@pytest.mark.parametrize("rank", ["--5", "+-5", "9" * 5_000, "five"], ids=["signs", "both", "long", "word"])
def test_what_is_no_rank_is_refused(world: WorldFactory, rank: str) -> None:
    (refusal,) = world(rows()).curator.plan([op.SetFields("a", {"queue-rank": rank})]).refusals
    assert refusal.why.startswith("a rank is a whole number")


def test_after_ddx_init_the_queue_is_empty_and_without_a_ddx_folder_there_is_none(
    world: WorldFactory,
) -> None:
    here = world(rows())
    here.tracker.unlink()
    assert here.curator.look().queue.beads == {}
    assert here.curator.run([op.SetPriority("a", 1)]).plan.refusals
    here.tracker.parent.rename(here.root / "elsewhere")
    with pytest.raises(Unreadable):
        here.curator.run([op.SetPriority("a", 1)])


def test_what_ddx_made_of_a_wish_is_journalled_and_taken_back(world: WorldFactory, scripted: Scripted) -> None:
    program = scripted("args = [a.replace('foo=x', 'foo=y') for a in args]\nsys.exit(passed())")
    here = world(rows())
    here.curator = make_curator(here.root, program=program)
    done = here.curator.run([op.SetFields("a", {"foo": "x"})])
    assert done.entry is not None
    assert (done.entry.result, done.entry.after) == ("done", {"a": {"foo": "y"}})
    assert "stores it differently" in done.problems[0]
    assert done.entry.undoable
    here.curator.undo()
    assert "foo" not in here.rows()["a"]


def test_the_line_ends_that_ddx_stores_are_foretold(world: WorldFactory) -> None:
    there = world([row("a-1")])
    done = there.curator.run([op.SetFields("a-1", {"colour": "one\r\ntwo\r\n"})])
    assert (done.error, done.problems) == (None, ())
    assert there.rows()["a-1"]["colour"] == "one\ntwo\n"


def test_a_change_done_again_and_taken_back_stands_as_taken_back(world: WorldFactory) -> None:
    here = world(rows())
    first = here.curator.run([op.SetPriority("a", 1)]).entry
    assert first is not None
    here.curator.undo()
    again = here.curator.redo()
    assert again is not None
    assert again.entry is not None
    assert here.curator.undo(again.entry) is not None
    marks = EntryChecker().marks(here.curator.history(), here.curator.look().queue.beads)
    assert {marks[first.id].state, marks[again.entry.id].state} == {"undone"}
    with pytest.raises(NotUndoable, match="still there"):
        here.curator.undo(again.entry)


def test_what_others_made_ready_meanwhile_is_not_ours(world: WorldFactory, scripted: Scripted) -> None:
    made = 'open(\'.ddx/beads.jsonl\', \'a\').write(\'{"id":"theirs","title":"t"}\\n\')'
    here = world(rows())
    here.curator = make_curator(here.root, program=scripted(f"code = passed()\n{made}\nsys.exit(code)"))
    done = here.curator.run([op.SetPriority("a", 1)])
    assert "theirs" in here.curator.look().queue.ready
    assert done.newly_ready == ()


def test_a_line_that_ddx_drops_is_in_the_journal(world: WorldFactory, scripted: Scripted) -> None:
    here = world(rows())
    with here.tracker.open("a") as file:
        file.write("no bead at all\n")
    drops = (
        "lines = open('.ddx/beads.jsonl').read().split('\\n')\n"
        "open('.ddx/beads.jsonl', 'w').write('\\n'.join(line for line in lines if 'no bead' not in line))\n"
        "sys.exit(passed())"
    )
    here.curator = make_curator(here.root, program=scripted(drops))
    entry = here.curator.run([op.SetPriority("a", 1)]).entry
    assert entry is not None
    assert any("no bead at all" in trace for trace in entry.traces)


REWRITES = """

code = passed()
import json
lines = [json.loads(line) for line in open('.ddx/beads.jsonl')]
for row in lines:
    fills = dict(title='', status='open', priority=0, issue_type='task', schema_version=1, created_at=T, updated_at=T)
    row.update({name: value for name, value in fills.items() if name not in row})
    if isinstance(row['priority'], str):
        row['priority'] = 0
open('.ddx/beads.jsonl', 'w').write(''.join(json.dumps(row, separators=(',', ':')) + '\\n' for row in lines))
sys.exit(code)
""".replace("T)", "'0001-01-01T00:00:00Z')").replace("T,", "'0001-01-01T00:00:00Z',")
"""A ddx that encodes every row again at any change, as every real one does."""


@pytest.fixture
def old_rows(world: WorldFactory, scripted: Scripted, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A tracker of an earlier release, one row with a priority that is text, and such a ddx."""
    monkeypatch.delenv("HELIX_DDX_TRIAL")
    here = world([*rows("april"), {**row("old", era="april"), "priority": "3"}])
    here.curator = make_curator(here.root, program=scripted(REWRITES))
    return here


def _rewrites(found: Iterable[Rewrite]) -> dict[tuple[str, Any, Any], set[str]]:
    return {(each.field, each.before, each.after): set(each.beads) for each in found}


@pytest.mark.long
def test_what_a_write_does_to_other_rows_is_recorded_and_remains(old_rows: Any) -> None:
    curator: Curator = old_rows.curator
    queue_state = curator.look()
    foretold = curator.foretell(curator.plan([op.SetPriority("a", 1)]), queue_state)
    added = {("schema_version", None, 1): set(queue_state.queue.beads)}
    assert _rewrites(foretold.rewrites) == added
    added_words = "schema_version 1 on 6 beads (a, b, c and 3 more): ddx adds it"
    assert any(added_words in note for note in foretold.notes)
    entry = curator.run([op.SetPriority("a", 1)]).entry
    assert entry is not None
    assert _rewrites(entry.rewritten) == added | {("priority", "3", 0): {"old"}}
    assert any(added_words in trace for trace in entry.traces)
    assert any("priority 0 instead of “3” on old: ddx rewrites it" in trace for trace in entry.traces)
    # the undo restores the change and names what remains; its own write finds nothing to rewrite
    turn = curator.plan_undo([entry])[0].turns[0]
    assert set(entry.traces) <= set(turn.traces)
    undone = curator.undo()
    assert undone is not None
    assert undone.entry is not None
    assert set(entry.traces) <= set(undone.plan.notes)
    assert undone.entry.rewritten == ()
    assert curator.look().queue.beads["a"].priority == 0


@pytest.mark.long
def test_a_change_of_a_dead_process_holds_what_its_write_added_to_other_rows(old_rows: Any) -> None:
    journal, before = old_rows.curator.journal, old_rows.curator.look().queue.beads
    intended = old_rows.curator.foretell(old_rows.curator.plan([op.SetPriority("a", 1)]), old_rows.curator.look())
    assert old_rows.curator.run([op.SetPriority("a", 1)]).entry is not None
    # its process dies before the outcome is written
    journal.path.write_bytes(journal.path.read_bytes().split(b"\n")[0] + b"\n")
    (settled,) = make_curator(old_rows.root, program=Path(old_rows.curator.executable().words[0])).recover()
    assert settled.recovered
    assert {each.field: set(each.beads) for each in settled.rewritten} == {"schema_version": set(before)}
    assert settled.rewritten == intended.rewrites


# --- a ddx that misbehaves -----------------------------------------------------------------------------


def test_a_bulk_change_that_fails_half_way_says_what_stands(world: WorldFactory, scripted: Scripted) -> None:
    here = world(rows())
    before = here.settled()
    program = scripted(
        "if number() == 2:\n"
        "    error = 'Error: bead: lock timeout (owner pid: 7)\\n'\n"
        "    sys.stderr.write(error + 'Usage:\\n' + 'x' * 3_000_000 + '\\n' + error); sys.exit(1)\n"
        "sys.exit(passed())"
    )
    curator = make_curator(here.root, program=program)
    done = curator.run([op.SetPriority(bead_id, 4) for bead_id in ("a", "b", "c")])
    assert done.error is not None
    assert "owner pid: 7" in done.error.message
    assert "holds the tracker" in done.error.advice
    assert done.entry is not None
    assert (done.entry.result, done.entry.after) == ("partial", {"a": {"priority": 4}})
    assert [here.rows()[bead_id]["priority"] for bead_id in ("a", "b", "c")] == [4, 2, 2]
    curator.undo()
    assert here.settled() == before


def test_a_command_that_did_its_work_and_then_failed_counts_as_done(world: WorldFactory, scripted: Scripted) -> None:
    here = world(rows())
    curator = make_curator(here.root, program=scripted("passed(); sys.exit('Error: auto-commit failed')"))
    done = curator.run([op.SetPriority("a", 4)])
    assert done.error is not None
    assert done.entry is not None
    assert (done.entry.result, done.entry.undoable, done.made_anyway) == ("done", True, True)


@pytest.mark.parametrize(
    "code",
    ["passed(); sys.exit('Error: auto-commit failed')", "words = passed; os.close(1); sys.exit(words())"],
)
def test_a_bead_that_was_made_though_ddx_did_not_say_so_is_told(
    world: WorldFactory, scripted: Scripted, code: str
) -> None:
    here = world(rows())
    before = here.rows()
    curator = make_curator(here.root, program=scripted(code))
    done = curator.run([op.CreateBead(title="New", labels=["x"])])
    assert done.error is not None
    (made,) = here.rows().keys() - before.keys()
    assert list(done.created.values()) == [made]
    assert done.made_anyway
    assert done.entry is not None
    assert (done.entry.after[made] or {})["title"] == "New"


@pytest.mark.long
def test_a_command_that_says_it_did_and_did_not_is_a_problem(world: WorldFactory, scripted: Scripted) -> None:
    here = world(rows())
    done = make_curator(here.root, program=scripted("sys.exit(0)")).run([op.SetPriority("a", 4)])
    assert done.error is None
    assert "priority is 0, not 4; ddx reported no error and did not change it" in done.problems[0]
    assert done.entry is not None
    assert (done.entry.result, done.entry.after) == ("failed", {})
    created = make_curator(here.root, program=scripted("print('demo-1'); sys.exit(0)"))
    made = created.run([op.CreateBead(title="New")])
    assert made.error is not None
    assert "no new bead" in made.error.message


def test_a_line_before_the_id_of_a_new_bead_is_no_harm(world: WorldFactory, scripted: Scripted) -> None:
    here = world(rows())
    noise = "print('\\U0001f4a1 DDx 9 is available\\n', flush=True); sys.exit(passed())"
    done = make_curator(here.root, program=scripted(noise)).run([op.CreateBead(title="New", notes="n")])
    assert done.error is None
    (made,) = done.created.values()
    assert here.rows()[made]["notes"] == "n"


@pytest.mark.long
def test_a_ddx_that_hangs_is_ended_and_the_state_told(
    world: WorldFactory, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world(rows())
    program = scripted("time.sleep(600)")
    curator = make_curator(here.root, program=program)
    curator.plan([op.SetPriority("a", 4)])
    monkeypatch.setattr(executable, "TIMEOUT_S", 0.3)
    done = curator.run([op.SetPriority("a", 4)])
    assert done.error is not None
    assert "no answer" in done.error.message
    assert done.entry is not None
    assert done.entry.result == "failed"


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143)])
def test_an_interrupted_change_tells_what_stands(
    world: WorldFactory, monkeypatch: pytest.MonkeyPatch, stop: BaseException, code: int
) -> None:
    here = world(rows())
    whole = Executable.run

    def run(self: Executable, args: Sequence[str], **options: Any) -> Finished:
        if "b" in args:
            raise stop
        return whole(self, args, **options)

    monkeypatch.setattr(Executable, "run", run)
    done = here.curator.run([op.SetPriority(bead_id, 4) for bead_id in ("a", "b", "c")])
    assert done.error is not None
    assert (done.error.message, done.error.exit_code) == ("interrupted", code)
    assert done.entry is not None
    assert (done.entry.result, done.entry.after) == ("partial", {"a": {"priority": 4}})


def test_whoever_waits_at_the_gate_is_told_for_whom(world: WorldFactory) -> None:
    here = world(rows())
    told: list[str] = []
    with here.curator.gate.open():
        gate = WriteGate(here.curator.project, patience_s=0.05, waits=told.append, noticed_s=0.0)
        with pytest.raises(GateBusy), gate.open():
            pass
    assert told == [f"process {os.getpid()}"]


def test_a_missing_ddx_is_told_and_not_replaced(world: WorldFactory, tmp_path: Path) -> None:
    here = world(rows())
    project = find_project(here.root)
    curator = Curator(project, lambda: executable.find_executable(project, str(tmp_path / "none")))
    with pytest.raises(DdxError) as caught:
        curator.run([op.SetPriority("a", 4)])
    assert caught.value.exit_code == MISSING
    assert not curator.history().entries


def test_somebody_who_changes_the_bead_meanwhile_is_not_overwritten(world: WorldFactory, scripted: Scripted) -> None:
    here = world(rows())
    meddle = (
        "code = passed()\n"
        "import json\n"
        f"path = {str(here.tracker)!r}\n"
        "rows = [json.loads(line) for line in open(path)]\n"
        "for each in rows:\n"
        "    if each['id'] == 'b': each['labels'] = ['theirs']\n"
        "open(path + '.x', 'w').write(''.join(json.dumps(each) + '\\n' for each in rows))\n"
        "os.replace(path + '.x', path)\n"
        "sys.exit(code)"
    )
    curator = make_curator(here.root, program=scripted(meddle))
    with pytest.raises(Conflict, match="theirs"):
        curator.run([op.ChangeLabels("a", add=["x"]), op.ChangeLabels("b", add=["x"])])
    assert here.rows()["b"]["labels"] == ["theirs"]
    (entry,) = curator.history().entries
    assert (entry.result, list(entry.after)) == ("partial", ["a"])


# --- a process that dies -------------------------------------------------------------------------------


@pytest.mark.long
def test_a_killed_process_leaves_what_the_next_one_settles(world: WorldFactory, scripted: Scripted) -> None:
    """kill -9 between the second and the third of five commands; the third still runs to its end."""
    here = world(rows())
    before = here.settled()
    program = scripted("if number() == 3:\n    os.kill(os.getppid(), 9)\nsys.exit(passed())")
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.core.supervision.conftest import make_curator\n"
        "from helix_tui.core.editing import operations as op\n"
        "curator = make_curator(Path(sys.argv[1]), program=Path(sys.argv[2]))\n"
        "curator.run([op.SetPriority(b, 4) for b in ('a', 'b', 'c', 'e')] + [op.CreateBead(title='Lost')])\n"
    )
    root = Path(__file__).resolve().parents[3]
    ended = subprocess.run([sys.executable, "-c", code, str(here.root), str(program)], cwd=root, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    curator = here.again()
    assert [entry.result for entry in curator.history().entries] == ["pending"]
    (entry,) = curator.recover()
    assert (entry.result, entry.recovered) == ("partial", True)
    assert list(entry.after) == ["a", "b", "c"]
    assert curator.recover() == ()
    curator.undo()
    assert here.settled() == before


def test_a_bead_made_just_before_the_end_is_found_again(world: WorldFactory) -> None:
    here = world(rows())
    done = here.curator.run([op.CreateBead(title="Found")])
    journal = Journal.of(here.curator.project)
    lines = journal.path.read_bytes().split(b"\n")
    journal.path.write_bytes(lines[0] + b"\n")
    (entry,) = here.again().recover()
    assert entry.result == "done"
    assert list(entry.after) == list(done.created.values())


def test_an_intent_that_came_to_nothing_is_settled_as_such(world: WorldFactory) -> None:
    here = world(rows())
    here.curator.run([op.SetPriority("a", 4)])
    journal = Journal.of(here.curator.project)
    journal.path.write_bytes(journal.path.read_bytes().split(b"\n")[0] + b"\n")
    here.rewrite("a", priority=0)
    (entry,) = here.again().recover()
    assert (entry.result, entry.after, entry.undoable) == ("not_done", {}, False)


def test_one_writer_at_a_time(world: WorldFactory) -> None:
    here = world(rows())
    with here.curator.gate.open():
        impatient = WriteGate(here.curator.project, patience_s=0.0)
        with pytest.raises(GateBusy, match=str(os.getpid())), impatient.open():
            pass


@pytest.mark.long
def test_several_processes_lose_nothing(world: WorldFactory) -> None:
    """Four processes add labels to the same bead: read, change, write is one step for all of ours."""
    here = world(rows())
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.core.supervision.conftest import make_curator\n"
        "from helix_tui.core.editing import operations as op\n"
        "curator = make_curator(Path(sys.argv[1]))\n"
        "for n in range(3):\n"
        "    done = curator.run([op.ChangeLabels('a', add=[f'{sys.argv[2]}-{n}'])])\n"
        "    assert done.error is None and not done.problems, (done.error, done.problems)\n"
    )
    root = Path(__file__).resolve().parents[3]
    crowd = [
        subprocess.Popen([sys.executable, "-c", code, str(here.root), f"p{number}"], cwd=root) for number in range(4)
    ]
    assert [process.wait(100) for process in crowd] == [0] * 4
    labels = set(here.rows()["a"]["labels"])
    assert labels == {"helix", " odd"} | {f"p{p}-{n}" for p in range(4) for n in range(3)}
    history = here.curator.history()
    assert len(history.entries) == 12
    assert all(entry.result == "done" for entry in history.entries)


# --- the given trackers --------------------------------------------------------------------------------


def test_a_given_tracker_comes_back_as_it_was(shared: Path, world: WorldFactory) -> None:
    given = [
        json.loads(line)
        for line in (shared / "data" / "ddx" / "beads-head.jsonl").read_text("utf-8").split("\n")
        if line
    ]
    here = world(given)
    before = here.settled()
    queue = here.curator.look().queue
    first, second, third = queue.ready[:3]
    waiting = next(bead_id for bead_id in queue.beads if set(queue.beads[bead_id].depends_on) & queue.beads.keys())
    target = next(other for other in queue.beads[waiting].depends_on if other in queue.beads)
    closed = next(bead_id for bead_id, bead in queue.beads.items() if bead.status == "closed" and not bead.parent)
    wishes = [
        op.SetEligible(first, False),
        op.Supersede(second, first),
        op.AddDependency(third, first),
        op.RemoveDependency(waiting, target),
        op.SetParent(first, None),
        op.SetPriority(second, 4),
        op.ChangeLabels(third, add=["x"], remove=list(queue.beads[third].labels[:1])),
        op.SetFields(first, {"title": "t", "description": "d", "acceptance": "", "notes": "n", "owner": "me"}),
        op.ClearFields(closed, ["spec-id", "notes"]),
        op.ReopenBead(closed, "look again"),
    ]
    wishes.append(op.SetRank(second, top=True))
    done = here.curator.run(wishes)
    assert (done.error, done.problems, done.plan.refusals) == (None, (), ())
    assert here.settled() != before
    back = here.curator.undo()
    assert back is not None
    assert (back.error, back.problems) == (None, ())
    differing = [bead_id for bead_id, each in here.settled().items() if each != before[bead_id]]
    assert not differing


def test_a_bulk_change_can_be_stopped_between_two_commands(world: WorldFactory) -> None:
    here = world(rows())
    seen = []

    def progress(done: int, total: int) -> bool:
        seen.append((done, total))
        return done < 2

    here.curator.progress = progress
    done = here.curator.run([op.SetPriority(bead_id, 4) for bead_id in ("a", "b", "c")])
    assert seen == [(0, 3), (1, 3), (2, 3)]
    assert done.ran == 2
    assert done.error is not None
    assert "stopped on request" in done.error.message
    assert [here.rows()[bead_id]["priority"] for bead_id in ("a", "b", "c")] == [4, 4, 2]
    here.curator.progress = None
    assert here.curator.undo() is not None
    assert [here.rows()[bead_id]["priority"] for bead_id in ("a", "b", "c")] == [0, 2, 2]


def test_what_falls_by_itself_comes_back_with_the_undo(world: WorldFactory) -> None:
    here = world(
        [
            row("e", issue_type="epic", owner="me"),
            row("child", parent="e", labels=["x"]),
            row("old", **{"superseded-by": "child"}),
        ]
    )
    before = here.settled()
    done = here.curator.run([op.CloseBead("child")])
    assert {bead_id: each["status"] for bead_id, each in here.rows().items()} == dict.fromkeys(
        ("e", "child", "old"), "closed"
    )
    assert done.entry is not None
    assert done.entry.after.keys() == {"e", "child", "old"}
    undone = here.curator.undo()
    assert undone is not None
    assert undone.problems == ()
    after = {bead_id: {k: v for k, v in each.items() if k != "events"} for bead_id, each in here.settled().items()}
    assert after == before
