"""Every key that changes the queue, on trackers of both eras through the embedded tracker, and back again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest
from textual.pilot import Pilot

from helix_tui.core.editing import operations
from helix_tui.core.ground.trust import person
from helix_tui.screens.editing.choices import ChoiceSheet, LineSheet, PickSheet
from helix_tui.screens.editing.forms import FormSheet
from helix_tui.screens.editing.preview import HalfWaySheet, PreviewSheet, TroubleSheet
from helix_tui.screens.loop.loop_screen import LoopScreen
from helix_tui.screens.queue.bead_screen import BeadScreen
from helix_tui.screens.queue.queue_screen import QueueScreen
from helix_tui.screens.sheet import LinesSheet
from tests.core.supervision.conftest import row, settled
from tests.double import write_ddx
from tests.programs import write_program
from tests.screens.conftest import Console, MakeConsole

pytestmark = pytest.mark.long

WAIT_S = 60.0


def rows_of(app: Console) -> dict[str, dict[str, Any]]:
    """The rows as they stand in the file, but for what an undo may leave."""
    text = (app.root / ".ddx" / "beads.jsonl").read_text(encoding="utf-8")
    rows = {found["id"]: settled(found) for found in map(json.loads, text.splitlines())}
    for each in rows.values():
        each.pop("events_attachment", None)
    return rows


def rewrite(app: Console, bead_id: str, **fields: Any) -> None:
    """Somebody else changes a row."""
    path = app.root / ".ddx" / "beads.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for each in rows:
        if each["id"] == bead_id:
            each.update(fields)
    other = path.with_suffix(".new")
    other.write_text("".join(json.dumps(each, sort_keys=True) + "\n" for each in rows))
    other.replace(path)


def toasts(app: Console) -> str:
    """All that was said so far."""
    return "\n".join(notice.message for notice in app.told)


async def thought(pilot: Pilot[int]) -> None:
    """Until the change runner has nothing left to do, and the screen knows what came of it."""
    app = cast(Console, pilot.app)
    for _ in range(3):  # a click becomes a key, a key a message, a message an errand
        await pilot.pause()
    assert await asyncio.to_thread(app.change_runner.settle, WAIT_S)
    await pilot.pause()
    app.feed.look()
    await pilot.pause()


async def press(pilot: Pilot[int], *keys: str) -> None:
    """Keys, one after the other, each with what it leads to."""
    names = {"+": "plus", "-": "minus", "#": "number_sign"}
    for key in keys:
        await pilot.press(names.get(key, key))
        await thought(pilot)


async def type_text(pilot: Pilot[int], text: str) -> None:
    names = {" ": "space", "-": "minus", ".": "full_stop", ":": "colon", ",": "comma", "/": "slash"}
    await pilot.press(*(names.get(char, char) for char in text))
    await pilot.pause()


def ahead(app: Console) -> str:
    """The commands on the sheet that looks ahead."""
    assert isinstance(app.screen, PreviewSheet), app.screen
    assert app.screen.outlook is not None
    return "\n".join(app.screen.outlook.plan.lines)


def tracker() -> list[str]:
    rows = [
        row("demo-a", priority=1, title="Alpha", labels=["area:one"]),
        row("demo-b", "demo-a", title="Beta", labels=["area:one", "area:two"]),
        row("demo-c", title="Gamma", acceptance="1. it holds", description="Before"),
        row("demo-d", title="Delta", parent="demo-e"),
        row("demo-e", title="Epsilon", issue_type="epic"),
        row("demo-f", title="Phi", status="closed"),
    ]
    return [json.dumps(each, sort_keys=True) for each in rows]


@pytest.fixture
def app(console: MakeConsole) -> Console:
    return console(tracker())


def on(app: Console, bead_id: str) -> None:
    queue = cast(QueueScreen, app.screen)
    assert queue.go_to(bead_id)


async def there_and_back(
    app: Console,
    bead_id: str,
    do: Callable[[Pilot[int]], Any],
    check: Callable[[dict[str, Any]], bool],
    turns: str = "u",
) -> None:
    """Do it by keys, see what it did, take it back; with more turns, do it again and take it back."""
    async with app.run_test(size=(120, 40)) as pilot:
        await thought(pilot)
        before = rows_of(app)
        on(app, bead_id)
        await do(pilot)
        assert isinstance(app.screen, PreviewSheet), toasts(app)
        assert ahead(app).startswith("ddx bead ")
        assert rows_of(app) == before
        await press(pilot, "enter")
        assert isinstance(app.screen, QueueScreen), app.rows()
        assert check(rows_of(app)), rows_of(app)
        for key in turns:
            await press(pilot, key, "enter")
            assert isinstance(app.screen, QueueScreen), app.rows()
            after = rows_of(app)
            if key == "U":
                assert check(after), after
            else:
                assert after == before


async def test_what_has_a_key_is_done_by_name_as_well(console: MakeConsole) -> None:
    app = console(tracker())
    async with app.run_test(size=(120, 40)) as pilot:
        await thought(pilot)
        for way_in in ("colon", "ctrl+p"):
            on(app, "demo-c")
            await pilot.press(way_in)
            await type_text(pilot, "what if")
            await pilot.press("enter")
            await thought(pilot)
            assert "bead close demo-c" in ahead(app)
            await press(pilot, "escape")


CASES: dict[str, tuple[str, list[str], Callable[[dict[str, Any]], bool]]] = {
    "eligible off": ("demo-a", ["e"], lambda rows: rows["demo-a"]["execution-eligible"] is False),
    "raise": ("demo-a", ["+"], lambda rows: rows["demo-a"]["priority"] == 0),
    "lower twice": ("demo-a", ["-", "-"], lambda rows: rows["demo-a"]["priority"] == 3),
    "superseded": (
        "demo-a",
        ["s", *"gamma", "enter"],
        lambda rows: rows["demo-a"]["superseded-by"] == "demo-c",
    ),
    "waits on": (
        "demo-c",
        ["d", *"alpha", "enter"],
        lambda rows: rows["demo-c"]["dependencies"] == [("demo-a", "blocks")],
    ),
    "is waited on by": (
        "demo-c",
        ["d", "tab", *"alpha", "enter"],
        lambda rows: rows["demo-a"]["dependencies"] == [("demo-c", "blocks")],
    ),
    "waits no longer": ("demo-b", ["d", "enter"], lambda rows: "dependencies" not in rows["demo-b"]),
    "under": ("demo-a", ["p", *"epsi", "enter"], lambda rows: rows["demo-a"]["parent"] == "demo-e"),
    "under none": ("demo-d", ["p", "enter"], lambda rows: "parent" not in rows["demo-d"]),
    "label added": (
        "demo-a",
        ["#", *"two", "enter"],
        lambda rows: rows["demo-a"]["labels"] == ["area:one", "area:two"],
    ),
    "label new": (
        "demo-a",
        ["#", *"fresh", "enter"],
        lambda rows: rows["demo-a"]["labels"] == ["area:one", "fresh"],
    ),
    "labels away": (
        "demo-b",
        ["#", "tab", "down", "tab", "enter"],
        lambda rows: "labels" not in rows["demo-b"],
    ),
    "claimed": ("demo-a", ["c"], lambda rows: rows["demo-a"]["status"] == "in_progress"),
    "closed": ("demo-a", ["x", "x"], lambda rows: rows["demo-a"]["status"] == "closed"),
    "closed by what if": ("demo-a", ["w"], lambda rows: rows["demo-a"]["status"] == "closed"),
    "opened again": (
        "demo-f",
        ["x", "r", *"why", "enter"],
        lambda rows: rows["demo-f"]["status"] == "open",
    ),
    "by the menu": ("demo-a", ["a", "e"], lambda rows: rows["demo-a"]["execution-eligible"] is False),
    "focus": ("demo-e", ["F"], lambda rows: rows["demo-c"]["execution-eligible"] is False),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_key_does_it_and_undo_takes_it_back(app: Console, case: str) -> None:
    bead_id, keys, check = CASES[case]
    turns = "uUu" if case in ("claimed", "waits on", "closed", "focus") else "u"
    await there_and_back(app, bead_id, lambda pilot: press(pilot, *keys), check, turns)


@pytest.mark.parametrize("place", ["top", "before", "after"])
async def test_the_rank_moves_where_ddx_speaks_of_it(app: Console, place: str) -> None:
    async def do(pilot: Pilot[int]) -> None:
        cast(QueueScreen, app.screen).action_rank(place)
        if place != "top":
            await type_text(pilot, "gamma")
            await press(pilot, "enter")
        await thought(pilot)

    await there_and_back(app, "demo-d", do, lambda rows: "queue-rank" in rows["demo-d"])


async def test_cancelling_is_for_good_and_says_so(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-c")
        await press(pilot, "x", "c")
        assert app.sees("Cannot be undone")
        await press(pilot, "enter")
        assert rows_of(app)["demo-c"]["status"] == "cancelled"
        await press(pilot, "u")
        assert isinstance(app.screen, TroubleSheet)
        assert app.sees("a cancelled bead stays cancelled")


async def test_marked_beads_and_ranges_are_one_change(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await thought(pilot)
        before = rows_of(app)
        queue = cast(QueueScreen, app.screen)
        await press(pilot, "g", "space", "v", "j", "j", "v")
        assert len(queue.marked) == 4
        assert app.sees("4 marked")
        await press(pilot, "e")
        assert ahead(app).count("\n") == 3
        await press(pilot, "enter")
        assert not queue.marked
        changed = [bead_id for bead_id, each in rows_of(app).items() if each != before[bead_id]]
        assert len(changed) == 4
        await press(pilot, "u", "enter")
        assert rows_of(app) == before


async def test_escape_drops_marks_and_gone_beads_lose_theirs(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        queue = cast(QueueScreen, app.screen)
        on(app, "demo-c")
        await press(pilot, "space")
        assert queue.marked == {"demo-c"}
        path = app.root / ".ddx" / "beads.jsonl"
        kept = [line for line in path.read_text().splitlines() if '"demo-c"' not in line]
        path.write_text("".join(f"{line}\n" for line in kept))
        app.feed.look()
        await pilot.pause()
        assert not queue.marked
        await press(pilot, "space", "escape")
        assert not queue.marked
        assert queue.bead_ids() == (queue.selected_bead,)


async def test_the_sheet_copies_what_it_would_run_and_runs_nothing_when_left(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        before = rows_of(app)
        on(app, "demo-a")
        await press(pilot, "e", "y")
        assert app.sees("Undo with u: ddx bead update demo-a --unset execution-eligible")
        assert app.clipboard == "ddx bead update demo-a --set execution-eligible=false"
        await press(pilot, "e")
        assert app.sees("Nothing to do")
        await press(pilot, "escape")
        assert isinstance(app.screen, QueueScreen)
        assert rows_of(app) == before


async def test_what_follows_is_told_before(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-a")
        await press(pilot, "w")
        assert app.sees("+ ready  Beta")
        assert app.sees("Next, in this order")
        await press(pilot, "escape")
        on(app, "demo-a")
        await press(pilot, "d", *"beta", "enter")
        assert app.sees("they would form a dependency cycle")
        await press(pilot, "enter")
        assert isinstance(app.screen, QueueScreen)


async def test_the_detail_on_the_whole_screen_has_the_same_keys(app: Console) -> None:
    async with app.run_test(size=(48, 30)) as pilot:
        on(app, "demo-a")
        await press(pilot, "enter")
        assert isinstance(app.screen, BeadScreen)
        await press(pilot, "e", "enter")
        assert isinstance(app.screen, BeadScreen)
        assert rows_of(app)["demo-a"]["execution-eligible"] is False


# --- what somebody else changes ---------------------------------------------------------------------------


async def test_a_change_meanwhile_shows_both_versions_and_the_plan_once_more(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await thought(pilot)
        on(app, "demo-a")
        await press(pilot, "-")
        rewrite(app, "demo-a", priority=4)
        await press(pilot, "enter")
        assert isinstance(app.screen, PreviewSheet)
        assert app.sees("Nothing was run. The new plan")
        assert app.sees("expected  1")
        assert app.sees("now       4")
        assert rows_of(app)["demo-a"]["priority"] == 4
        await press(pilot, "enter")
        assert rows_of(app)["demo-a"]["priority"] == 2


async def test_an_undo_that_would_run_something_else_by_now_is_shown_once_more(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-a")
        await press(pilot, "-", "enter")
        on(app, "demo-c")
        await press(pilot, "-", "enter", "u")
        first = app.change_runner.curator.history().entries[-1]
        app.change_runner.curator.undo(first)  # somebody else takes it back and does something of their own
        app.change_runner.curator.run([operations.SetPriority("demo-c", 0)])
        await press(pilot, "enter")
        assert isinstance(app.screen, TroubleSheet | PreviewSheet)
        assert rows_of(app)["demo-c"]["priority"] == 0


async def test_an_undo_that_comes_at_once_is_of_the_change_that_still_runs(app: Console) -> None:
    async with app.run_test(size=(120, 30)) as pilot:
        await press(pilot, "-")
        await pilot.press("enter", "u")
        await thought(pilot)
        assert app.sees("Undo op-1"), app.rows()


async def test_a_redo_that_would_run_something_else_by_now_runs_nothing(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-a")
        await press(pilot, "-", "enter", "u", "enter", "U")
        assert isinstance(app.screen, PreviewSheet)
        app.change_runner.curator.run([operations.SetPriority("demo-a", 0)])
        await press(pilot, "enter")
        assert isinstance(app.screen, TroubleSheet | PreviewSheet)
        assert rows_of(app)["demo-a"]["priority"] == 0


async def test_a_restore_that_would_run_more_by_now_is_shown_once_more(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-a")
        await press(pilot, "-", "enter", "-", "enter")
        before = rows_of(app)["demo-a"]["priority"]
        app.change_runner.curator.run([operations.SetPriority("demo-c", 0)])
        app.feed.look()
        await press(pilot, "6")
        await press(pilot, "end", "r")
        assert isinstance(app.screen, PreviewSheet)
        app.change_runner.curator.run([operations.SetPriority("demo-b", 3)])
        await press(pilot, "enter")
        assert isinstance(app.screen, PreviewSheet)
        assert rows_of(app)["demo-a"]["priority"] == before
        assert rows_of(app)["demo-b"]["priority"] == 3


async def test_esc_asks_once_before_it_discards_what_was_typed(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-a")
        await press(pilot, "N")
        assert not app.sees("✗")
        await type_text(pilot, "Fix it")
        await press(pilot, "escape")
        assert isinstance(app.screen, FormSheet)
        assert "Press esc again to discard" in toasts(app)
        assert app.screen.form.texts["title"] == "Fix it"
        await press(pilot, "escape")
        assert isinstance(app.screen, QueueScreen)


async def test_esc_asks_also_after_the_errors_were_shown_and_asks_nothing_of_them(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-a")
        await press(pilot, "N")
        await type_text(pilot, "Fix it")
        await press(pilot, "ctrl+o", "escape")
        assert isinstance(app.screen, FormSheet)
        await press(pilot, "escape")
        assert isinstance(app.screen, QueueScreen)
        await press(pilot, "N")
        await type_text(pilot, "Fix it")
        await press(pilot, "escape", "ctrl+o")
        assert isinstance(app.screen, FormSheet)
        assert "Press ctrl+o again to continue anyway" in toasts(app)


async def test_esc_asks_once_before_it_discards_a_line(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        told: list[str] = []
        line = LineSheet("why is it opened again?", "reason", told.append)
        app.push_screen(line)
        await pilot.pause()
        await type_text(pilot, "it broke")
        await press(pilot, "escape")
        assert app.screen is line
        assert "Press esc again to discard" in toasts(app)
        await type_text(pilot, " twice")
        await press(pilot, "escape")
        assert app.screen is line, "what was typed since is asked about anew"
        assert line.entry.value == "it broke twice"
        await press(pilot, "escape")
        assert isinstance(app.screen, QueueScreen)
        assert told == []
        app.push_screen(LineSheet("why?", "reason", told.append))
        await pilot.pause()
        await press(pilot, "escape")
        assert isinstance(app.screen, QueueScreen), "an empty line asks nothing"


async def test_esc_asks_once_where_a_reason_to_reopen_was_typed(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        app.go_to_bead("demo-f")
        await pilot.pause()
        await press(pilot, "x", "r")
        assert isinstance(app.screen, LineSheet)
        await type_text(pilot, "not done")
        await press(pilot, "escape")
        assert isinstance(app.screen, LineSheet)
        await press(pilot, "enter")
        assert "not done" in ahead(app)


async def test_esc_asks_once_before_it_discards_what_was_marked(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-a")
        await press(pilot, "number_sign", "tab", "escape")
        assert "Press esc again to discard" in toasts(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, QueueScreen)


async def test_an_undo_never_writes_over_what_somebody_changed(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-a")
        await press(pilot, "-", "enter")
        rewrite(app, "demo-a", priority=0)
        await press(pilot, "u")
        assert isinstance(app.screen, TroubleSheet)
        assert app.sees("now       0")
        assert rows_of(app)["demo-a"]["priority"] == 0
        await press(pilot, "escape")
        assert isinstance(app.screen, QueueScreen)


async def test_a_key_right_after_a_change_rests_on_what_is_there_then(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-a")
        for _ in range(2):  # the second one before any snapshot knows of the first
            await pilot.press("minus")
            await pilot.pause()
            assert await asyncio.to_thread(app.change_runner.settle, WAIT_S)
            await pilot.pause()
            await pilot.press("enter")
            assert await asyncio.to_thread(app.change_runner.settle, WAIT_S)
            await pilot.pause()
        assert isinstance(app.screen, QueueScreen), app.rows()


# --- texts ------------------------------------------------------------------------------------------------


async def test_a_new_bead_is_judged_while_it_is_written(app: Console) -> None:
    async with app.run_test(size=(120, 44)) as pilot:
        await thought(pilot)
        before = rows_of(app)
        on(app, "demo-d")
        await press(pilot, "N")
        assert isinstance(app.screen, FormSheet)
        await type_text(pilot, "Sell tickets")
        assert not app.sees("title required")
        assert app.sees("spec-id required for a task")
        await press(pilot, "tab", "tab", "1", "tab", "tab", *"alph", "down", "enter", "tab")
        await type_text(pilot, "helix,phase:build,kind:x")
        await press(pilot, "tab", *"FEAT", "tab")
        await type_text(pilot, "it works correctly")
        assert app.sees("no machine can check")
        await press(pilot, "ctrl+a", "ctrl+k")
        await type_text(pilot, "pytest passes")
        assert not app.sees("no machine can check")
        await press(pilot, "ctrl+o")
        command = ahead(app)
        for words in ("'Sell tickets'", "--priority 1", "--parent demo-e", "--acceptance 'pytest passes'"):
            assert words in command, command
        await press(pilot, "enter")
        made = next(each for bead_id, each in rows_of(app).items() if bead_id not in before)
        assert made["title"] == "Sell tickets"
        assert made["dependencies"] == [("demo-a", "blocks")]
        assert made["labels"] == ["helix", "phase:build", "kind:x"]
        assert cast(QueueScreen, app.screen).selected_bead == made["id"]


async def test_a_draft_is_not_lost_by_one_key(app: Console) -> None:
    async with app.run_test(size=(120, 44)) as pilot:
        await press(pilot, "N")
        await type_text(pilot, "Half a thought")
        await press(pilot, "escape")
        assert isinstance(app.screen, FormSheet)
        await press(pilot, "escape")
        assert isinstance(app.screen, QueueScreen)


async def test_texts_are_edited_in_a_form(app: Console) -> None:
    async def do(pilot: Pilot[int]) -> None:
        cast(QueueScreen, app.screen).action_edit_form()
        await pilot.pause()
        await type_text(pilot, " more")
        await press(pilot, "ctrl+o")

    await there_and_back(app, "demo-c", do, lambda rows: rows["demo-c"]["title"] == "Gamma more")


async def test_a_form_shows_what_somebody_wrote_meanwhile(app: Console) -> None:
    async with app.run_test(size=(120, 44)) as pilot:
        on(app, "demo-c")
        cast(QueueScreen, app.screen).action_edit_form()
        await pilot.pause()
        await type_text(pilot, " mine")
        rewrite(app, "demo-c", title="Gamma theirs")
        await press(pilot, "ctrl+o")
        assert isinstance(app.screen, TroubleSheet)
        assert app.sees("yours     Gamma mine")
        assert app.sees("now       Gamma theirs")
        await press(pilot, "escape")
        assert isinstance(app.screen, FormSheet)
        assert app.screen.form.texts["title"] == "Gamma mine"
        await press(pilot, "ctrl+o", "enter")
        assert rows_of(app)["demo-c"]["title"] == "Gamma mine"


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, console: MakeConsole) -> Callable[[str], None]:
    """Let $EDITOR be a program that changes the file it is given."""

    def make(code: str) -> None:
        path = write_program(
            tmp_path / "an editor", f"import sys\npath = sys.argv[1]\ntext = open(path).read()\n{code}"
        )
        monkeypatch.setenv("EDITOR", f"'{path}'")
        monkeypatch.setattr(Console, "suspend", lambda self: nullcontext())

    return make


async def test_texts_are_edited_in_the_editor(app: Console, editor: Callable[[str], None]) -> None:
    editor("open(path, 'w').write(text.replace('Before', 'After\\n\\nlines').replace('Gamma', 'Gamma 2'))")

    def check(rows: dict[str, Any]) -> bool:
        found = rows["demo-c"]
        return (found["title"], found["description"]) == ("Gamma 2", "After\n\nlines")

    await there_and_back(app, "demo-c", lambda pilot: press(pilot, "E"), check)


async def test_a_text_from_the_editor_is_not_lost_when_its_change_is_left(
    app: Console, editor: Callable[[str], None]
) -> None:
    editor("open(path, 'w').write(text.replace('Before', 'Long thoughts'))")
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-c")
        await press(pilot, "E", "escape")
        path = Path(toasts(app).rpartition("kept in ")[2])
        assert "Long thoughts" in await asyncio.to_thread(path.read_text, encoding="utf-8")


async def test_what_the_editor_leaves_as_it_was_changes_nothing(app: Console, editor: Callable[[str], None]) -> None:
    editor("pass")
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-c")
        await press(pilot, "E")
        assert "nothing was edited" in toasts(app)
        editor("open(path, 'w').write('x'); sys.exit(3)")
        await press(pilot, "E")
        assert "editor ended with 3" in toasts(app)


async def test_without_an_editor_a_word_says_what_to_do(app: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-c")
        await press(pilot, "E")
        assert "set EDITOR" in toasts(app)
        monkeypatch.setenv("EDITOR", "/nowhere/ed -x")
        await press(pilot, "E")
        assert "which does not exist" in toasts(app)


async def test_an_edit_of_a_bead_changed_meanwhile_is_kept_in_a_file(
    app: Console, editor: Callable[[str], None]
) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-c")
        path = app.root / ".ddx" / "beads.jsonl"
        editor(
            "open(path, 'w').write(text.replace('Before', 'Mine'))\n"
            f"rows = open({str(path)!r}).read()\n"
            f"open({str(path)!r}, 'w').write(rows.replace('Before', 'Theirs'))"
        )
        await press(pilot, "E")
        assert isinstance(app.screen, TroubleSheet)
        for words in ("yours     Mine", "now       Theirs", "Your text is kept in"):
            assert app.sees(words), app.rows()
        assert rows_of(app)["demo-c"]["description"] == "Theirs"


# --- when it cannot be ------------------------------------------------------------------------------------


async def test_read_only_says_so_at_every_key(console: MakeConsole) -> None:
    app = console(tracker(), read_only=True)
    async with app.run_test(size=(120, 40)) as pilot:
        before = (app.root / ".ddx" / "beads.jsonl").read_bytes()
        for key in ("e", "s", "d", "p", "+", "-", "#", "c", "x", "E", "N", "F", "w", "u", "U", "a"):
            app.clear_notifications()
            await press(pilot, key)
            assert isinstance(app.screen, QueueScreen), key
            assert "--read-only" in toasts(app), key
        assert (app.root / ".ddx" / "beads.jsonl").read_bytes() == before
        assert not (app.root / ".helix").exists()


async def test_a_line_that_cannot_be_read_is_named_before_and_after(console: MakeConsole) -> None:
    app = console([*tracker(), '{"id":"torn'])
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-a")
        await press(pilot, "e")
        assert app.sees("line 7 of beads.jsonl cannot be read")
        await press(pilot, "enter")
        assert isinstance(app.screen, TroubleSheet | HalfWaySheet)
        assert app.sees("line 7")
        assert app.sees("correct or remove that line")
        assert app.sees("Nothing was changed")


@pytest.fixture
def fake(tmp_path: Path) -> Callable[[str], str]:
    """A ddx that does as a script says and passes on to the embedded tracker with ``passed()``."""

    def make(code: str) -> str:
        return str(write_ddx(tmp_path / "fake-ddx", code))

    return make


async def test_a_bulk_change_that_fails_half_way_shows_the_exact_state(
    console: MakeConsole, fake: Callable[[str], str]
) -> None:
    ddx = fake("if 'demo-c' in args: sys.exit('Error: disk on fire')\nsys.exit(passed())")
    app = console(tracker(), ddx=ddx)
    async with app.run_test(size=(120, 40)) as pilot:
        await thought(pilot)
        before = rows_of(app)
        queue = cast(QueueScreen, app.screen)
        queue.marked = frozenset(("demo-a", "demo-c", "demo-d"))
        order = queue.bead_ids()
        await press(pilot, "e", "enter")
        assert isinstance(app.screen, HalfWaySheet)
        assert app.sees("disk on fire")
        ran = order.index("demo-c")
        assert app.sees(f"{ran} of 3 ran")
        assert app.sees("✗ failed")
        lines = "\n".join(app.rows())
        assert lines.count("✓ ran") == ran
        assert lines.count("○ not run") == 2 - ran
        await press(pilot, "u", "enter")
        assert rows_of(app) == before


async def test_a_conflict_in_the_middle_says_what_is_done(
    console: MakeConsole, fake: Callable[[str], str], tmp_path: Path
) -> None:
    path = tmp_path / "demo" / ".ddx" / "beads.jsonl"
    ddx = fake(
        "code = passed()\n"
        f"rows = open({str(path)!r}).read()\n"
        f"open({str(path)!r}, 'w').write(rows.replace('\"title\":\"Delta\"', "
        '\'"execution-eligible":false,"title":"Delta"\'))\n'
        "sys.exit(code)"
    )
    rows = [json.dumps(json.loads(line), separators=(",", ":")) for line in tracker()]
    app = console(rows, ddx=ddx)
    async with app.run_test(size=(120, 40)) as pilot:
        await thought(pilot)
        queue = cast(QueueScreen, app.screen)
        queue.marked = frozenset(("demo-a", "demo-d"))
        await press(pilot, "e", "enter")
        assert isinstance(app.screen, TroubleSheet), app.rows()
        assert app.sees("1 of 2 commands had already run")
        await press(pilot, "escape", "u", "enter")
        assert "execution-eligible" not in rows_of(app)["demo-a"]


@pytest.mark.parametrize("name", ["beads-head.jsonl", "beads-2026-04.jsonl"])
async def test_a_real_tracker_comes_back_byte_for_byte(console: MakeConsole, shared: Path, name: str) -> None:
    lines = (shared / "data" / "ddx" / name).read_text(encoding="utf-8").splitlines()
    app = console(lines)
    tracker_file = app.root / ".ddx" / "beads.jsonl"

    def by_id() -> dict[str, str]:
        text = tracker_file.read_text(encoding="utf-8")
        return {json.loads(line)["id"]: line for line in text.splitlines()}

    async with app.run_test(size=(120, 40)) as pilot:
        await thought(pilot)
        before, rows = by_id(), rows_of(app)
        queue = cast(QueueScreen, app.screen)
        await press(pilot, "space", "space", "space")
        marked = set(queue.marked)
        assert len(marked) == 3
        await press(pilot, "-", "enter")
        assert {bead_id for bead_id, line in by_id().items() if line != before[bead_id]} == marked
        await press(pilot, "u", "enter")
        after = by_id()
        assert {bead_id: line for bead_id, line in after.items() if bead_id not in marked} == {
            bead_id: line for bead_id, line in before.items() if bead_id not in marked
        }
        assert rows_of(app) == rows


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("sys.stderr.write('Error: unknown flag: --set\\n'); sys.exit(1)", "another release may"),
        ("sys.stderr.write('x' * 3_000_000 + '\\nError: too much\\n'); sys.exit(1)", "too much"),
        ("os.kill(os.getpid(), 9)", "ended with -9"),
        ("sys.exit(0)", "demo-a"),
    ],
    ids=["too old", "floods", "killed", "lies"],
)
async def test_a_ddx_that_fails_leaves_the_console_usable(
    console: MakeConsole, fake: Callable[[str], str], code: str, said: str
) -> None:
    app = console(tracker(), ddx=fake(code))
    async with app.run_test(size=(120, 40)) as pilot:
        before = rows_of(app)
        on(app, "demo-a")
        await press(pilot, "e", "enter")
        assert isinstance(app.screen, TroubleSheet | HalfWaySheet)
        assert app.sees(said), app.rows()
        assert rows_of(app) == before
        await press(pilot, "escape", "j")
        assert isinstance(app.screen, QueueScreen)
        assert not app.change_runner.pending


async def test_a_ddx_that_is_not_there_says_what_to_do(console: MakeConsole) -> None:
    app = console(tracker(), ddx="/nowhere/ddx")
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-a")
        await press(pilot, "e")
        assert isinstance(app.screen, TroubleSheet)
        assert app.sees("ddx binary not found at /nowhere/ddx")
        assert app.sees("--ddx or DDX_BIN")


async def test_a_running_change_is_marked_counted_and_can_be_stopped(
    console: MakeConsole, fake: Callable[[str], str], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    ddx = fake(f"while not os.path.exists({str(gate)!r}): time.sleep(0.01)\nsys.exit(passed())")
    app = console(tracker(), ddx=ddx)
    async with app.run_test(size=(120, 40)) as pilot:
        await thought(pilot)
        queue = cast(QueueScreen, app.screen)
        queue.marked = frozenset(("demo-a", "demo-c", "demo-d"))
        await press(pilot, "e")
        await pilot.press("enter")
        while "changing 0 of 3" not in queue.footer.work:
            await pilot.pause()
        assert set(app.change_runner.pending) == {"demo-a", "demo-c", "demo-d"}
        assert app.sees("changing 0 of 3")
        assert sum(line.startswith("…") for line in app.rows()) >= 2
        await pilot.press("j", "X")
        gate.touch()
        await thought(pilot)
        assert isinstance(app.screen, HalfWaySheet)
        assert app.sees("stopped on request")
        assert app.sees("1 of 3 ran")
        assert not app.change_runner.pending
        assert not queue.footer.work


async def test_the_palette_and_the_menu_have_every_key(app: Console) -> None:
    async with app.run_test(size=(120, 44)) as pilot:
        on(app, "demo-a")
        await press(pilot, "a")
        assert isinstance(app.screen, ChoiceSheet)
        offered = {choice.label for choice in app.screen.choices}
        assert {"eligible", "depends", "new", "undo", "rank first", "edit in a form"} <= offered
        await press(pilot, "escape")
        names = {command.name for command in app.offered(app.screen)}
        assert offered <= names


async def test_a_closed_bead_says_what_cannot_be_done_with_it(app: Console) -> None:
    async with app.run_test(size=(120, 44)) as pilot:
        on(app, "demo-f")
        await press(pilot, "a")
        assert isinstance(app.screen, ChoiceSheet)
        off = {choice.label for choice in app.screen.choices if choice.off}
        assert off == {"eligible", "superseded", "raise", "lower", "claim", "what if"}
        assert app.sees("closed: reopen it first (x)")
        await press(pilot, "e")
        assert isinstance(app.screen, ChoiceSheet), "nothing happens but a word"
        await press(pilot, "escape")
        on(app, "demo-a")
        await press(pilot, "+", "enter", "+")
        assert app.sees("Nothing to do: the bead is already P0")


async def test_the_mouse_works_in_sheets(app: Console) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        on(app, "demo-a")
        await press(pilot, "d")
        assert isinstance(app.screen, PickSheet)
        line = next(y for y, text in enumerate(app.rows()) if "Gamma" in text and y > 10)
        await pilot.click(offset=(5, line), times=2)
        await thought(pilot)
        assert "demo-c" in ahead(app)
        await pilot.click(offset=(3, len(app.rows()) - 1))
        await thought(pilot)
        assert rows_of(app)["demo-a"]["dependencies"] == [("demo-c", "blocks")]


async def test_the_loop_changes_the_bead_of_an_attempt(app: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "2")
        assert isinstance(app.screen, LoopScreen)
        await press(pilot, "e")
        assert "no bead under the cursor" in toasts(app)
        monkeypatch.setattr(app.screen, "bead_ids", lambda: ("demo-a",))
        await press(pilot, "e", "enter")
        assert rows_of(app)["demo-a"]["execution-eligible"] is False


async def test_a_long_title_does_not_push_the_question_about_it_out_of_a_side_pane(console: MakeConsole) -> None:
    bead = row("demo-a", title="Say which line of a timetable is wrong, and count lines from one")
    app = console([json.dumps(bead, sort_keys=True)])
    async with app.run_test(size=(48, 24)) as pilot:
        await press(pilot, "x")
        assert app.sees("Close, reopen or cancel")


async def test_a_hook_of_the_repository_is_shown_and_allowed_by_a_key_and_the_change_goes_on(
    console: MakeConsole,
) -> None:
    app = console(tracker())
    hook = app.root / ".ddx" / "hooks" / "validate-bead-update"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\necho checked >> hook-ran\n")
    hook.chmod(0o755)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "+", "enter")
        assert isinstance(app.screen, LinesSheet)
        assert app.sees("validate-bead-update: ddx runs it at a change of a bead")
        assert app.sees("echo checked >> hook-ran")
        await press(pilot, "escape")
        assert rows_of(app)["demo-a"]["priority"] == 1
        await press(pilot, "+", "enter", "enter")
        assert rows_of(app)["demo-a"]["priority"] == 0
        await press(pilot, "-", "enter")
        assert rows_of(app)["demo-a"]["priority"] == 1, "asked once"


async def test_what_cannot_be_entered_as_allowed_is_said_and_nothing_runs(console: MakeConsole) -> None:
    app = console(tracker())
    hook = app.root / ".ddx" / "hooks" / "validate-bead-update"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\necho checked >> hook-ran\n")
    hook.chmod(0o755)
    ledger = person.state_folder() / person.LEDGER
    ledger.parent.mkdir(parents=True, exist_ok=True)
    ledger.write_text("no ledger")
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await press(pilot, "+", "enter", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.sees("nothing was allowed")
        assert rows_of(app)["demo-a"]["priority"] == 1
    assert not (app.root / ".ddx" / "hook-ran").exists()
