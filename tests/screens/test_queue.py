"""The queue screen: every key and every state, on a tracker that holds one bead of each."""

from __future__ import annotations

import json
from typing import cast

import pytest
from textual.pilot import Pilot

from helix_tui.screens.queue.queue_screen import QueueScreen
from tests.screens.conftest import Console, MakeConsole


def queue(app: Console) -> QueueScreen:
    return cast(QueueScreen, app.screen)


async def type_text(pilot: Pilot[int], text: str) -> None:
    for char in text:
        await pilot.press({":": "colon", " ": "space", "-": "minus"}.get(char, char))


async def settled(pilot: Pilot[int]) -> None:
    """Until the detail has followed the cursor."""
    screen = cast(QueueScreen, pilot.app.screen)
    screen.show_detail()
    await pilot.pause()


async def test_the_first_frame_has_the_queue_and_the_bead_that_is_next(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        assert queue(app).selected_bead == app.snapshot.queue.ready[0]
        assert app.sees("▸ ○")
        assert app.sees("2 lines unread ▸")
        assert app.sees("ready, picked next")


@pytest.mark.long
async def test_keys_move_the_cursor(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 12)) as pilot:
        rows = queue(app).list
        await pilot.press("j", "j", "k")
        assert rows.selected_index == 1
        await pilot.press("G")
        assert rows.selected_index == len(rows.source) - 1
        await pilot.press("g")
        assert rows.selected_index == 0
        await pilot.press("ctrl+d")
        assert rows.selected_index > 1
        await pilot.press("ctrl+u")
        assert rows.selected_index == 0
        await pilot.press("pagedown")
        assert rows.selected_index > 1
        await pilot.press("pageup")
        assert rows.selected_index == 0


async def test_every_view_begins_at_its_first_row_below_a_heading(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000003")
        for kind in ("tree", "lanes", "order", "dag"):
            await pilot.press("right_square_bracket")
            assert queue(app).kind == kind
            source = queue(app).list.source
            first = next(index for index in range(len(source)) if not source.heads(index))
            assert queue(app).list.selected_index == first
            assert (first > 0) == (kind == "lanes"), "only lanes begin with a heading"
        await pilot.press("left_square_bracket")
        assert queue(app).kind == "order"


async def test_neighbours_are_followed_along_edges(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000001")
        await pilot.press("J", "enter")
        assert queue(app).selected_bead == "demo-00000002"
        await pilot.press("J", "enter")
        assert queue(app).selected_bead == "demo-00000003"
        await pilot.press("K")
        assert queue(app).selected_bead == "demo-00000002"


async def test_a_diamond_keeps_all_its_edges(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 44)) as pilot:
        await pilot.pause()
        line = next(line for line in app.rows() if "Join both ends" in line)
        assert "↳" in line or line.count("┴") + line.count("╯") + line.count("┤") >= 2


async def test_folds_open_with_enter_and_with_l_and_close_with_h(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 44)) as pilot:
        await pilot.press("G", "k")
        before = len(queue(app).list.source)
        key = queue(app).list.selected_key or ""
        assert key.startswith("fold:")
        await pilot.press("enter")
        assert len(queue(app).list.source) > before
        await pilot.press("h")
        assert len(queue(app).list.source) == before
        await pilot.press("l")
        assert len(queue(app).list.source) > before
        assert queue(app).list.selected_key == key


async def test_the_tree_folds_a_parent_and_h_goes_up(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("right_square_bracket")
        queue(app).list.select("demo-00000002")
        await pilot.press("h")
        assert queue(app).selected_bead == "demo-0000000a"
        before = len(queue(app).list.source)
        await pilot.press("h")
        assert len(queue(app).list.source) < before
        await pilot.press("l")
        assert len(queue(app).list.source) == before


@pytest.mark.long
async def test_a_filter_is_live_completed_kept_and_cleared(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("slash")
        await type_text(pilot, "sta")
        await pilot.press("tab")
        assert app.sees("/ state:") or app.sees("/ status:")
        await pilot.press("ctrl+u")
        await type_text(pilot, "diamond")
        await pilot.pause()
        assert queue(app).selected_bead == "demo-0000000d"
        assert app.sees("1 of 21")
        await pilot.press("enter")
        assert app.sees("/ diamond")
        assert app.focused is queue(app).list
        await pilot.press("escape")
        await pilot.pause()
        assert not queue(app).filter.tests
        assert queue(app).selected_bead == "demo-0000000d"


@pytest.mark.long
async def test_a_filter_called_off_leaves_the_one_before(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("slash")
        await type_text(pilot, "metrics")
        await pilot.press("enter", "slash")
        await type_text(pilot, "zzz")
        await pilot.press("escape")
        await pilot.pause()
        assert queue(app).filter.text == "metrics"


@pytest.mark.long
async def test_what_a_filter_does_not_understand_is_said_in_place(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        shown = len(queue(app).list.source)
        await pilot.press("slash")
        await type_text(pilot, "colour:red")
        await pilot.pause()
        assert any("no field" in line and "/ colour:red" in line for line in app.rows())
        assert len(queue(app).list.source) == shown  # a wrong word counts as not there yet


@pytest.mark.long
async def test_matches_light_up_and_n_steps_through_them(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("slash")
        await type_text(pilot, "route")
        await pilot.press("enter")
        await pilot.press("n")
        first = queue(app).selected_bead
        await pilot.press("n")
        assert {first, queue(app).selected_bead} == {"demo-00000002", "demo-00000003"}
        await pilot.press("N")
        assert queue(app).selected_bead == first


async def test_jump_labels_take_the_next_key(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("f")
        assert queue(app).list.jumping
        await pilot.press("d")
        assert not queue(app).list.jumping
        assert queue(app).list.selected_index == 2
        await pilot.press("f", "escape")
        assert not queue(app).list.jumping
        assert queue(app).list.selected_index == 2


@pytest.mark.long
async def test_in_the_detail_only_lines_that_lead_somewhere_have_a_letter(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("colon", *"demo-00000002", "enter", "tab", "f")
        detail = queue(app).detail
        keys = [detail.source.key(index) for index in range(len(detail.source))]
        leading = [key for key in keys if key.startswith(("to:", "attempt:"))]
        assert leading
        await pilot.press("f")
        assert not detail.jumping
        assert detail.selected_key == leading[0]


async def test_a_bead_opens_beside_the_list_where_there_is_room(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("enter")
        assert app.focused is queue(app).detail
        await pilot.press("escape")
        assert app.focused is queue(app).list
        await pilot.press("tab")
        assert app.focused is queue(app).detail
        await pilot.press("shift+tab")
        assert app.focused is queue(app).list


async def test_a_bead_opens_over_the_list_in_a_side_pane(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(48, 30)) as pilot:
        queue(app).go_to("demo-00000001")
        await pilot.press("enter")
        await pilot.pause()
        assert app.sees("Acceptance")
        assert app.sees("`go test ./work/...` passes")
        await pilot.press("escape")
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000001"


@pytest.mark.parametrize(
    ("bead", "words"),
    [
        ("demo-00000005", "waits"),
        ("demo-00000006", "retry in 5h 12m"),
        ("demo-00000007", "proposed"),
        ("demo-00000008", "waits for the vendor's fix"),
        ("demo-00000009", "superseded by demo-00000001"),
        ("demo-0000000a", "children not closed"),
        ("demo-0000000e", "demo-gone0001"),
        ("demo-00000011", "paused_for_audit"),
        ("demo-00000012", "decomposed into two children"),
        ("demo-0000000b", "closed"),
    ],
)
async def test_the_detail_says_why(console: MakeConsole, bead: str, words: str) -> None:
    app = console()
    async with app.run_test(size=(130, 44)) as pilot:
        assert queue(app).go_to(bead)
        await settled(pilot)
        assert app.sees(words)


async def test_the_detail_shows_what_the_record_holds_known_or_not(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 70)) as pilot:
        queue(app).go_to("demo-00000001")
        await settled(pilot)
        for words in (
            "closing it makes",
            "Blocks 2",
            "0000000a Epic: Metrics",
            "a-kind-of-tomorrow",
            "area:work",
        ):
            assert app.sees(words), words
        await pilot.press("enter", "G")
        await pilot.pause()
        assert app.sees("a-field-of-tomorrow")


async def test_events_beside_the_tracker_are_read_and_shown(console: MakeConsole) -> None:
    row = {"id": "demo-1", "title": "Done", "status": "closed", "events_attachment": "demo-1/events.jsonl"}
    app = console([json.dumps(row)])
    folder = app.root / ".ddx" / "attachments" / "demo-1"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text('{"kind":"execute-bead","summary":"landed long ago"}\n')
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-1")
        await settled(pilot)
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.sees("landed long ago")


async def test_a_line_of_the_detail_leads_to_its_bead(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 60)) as pilot:
        queue(app).go_to("demo-00000001")
        await settled(pilot)
        queue(app).detail.select("to:blocks:demo-00000005")
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000005"


async def test_the_selection_survives_every_reload(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 20)) as pilot:
        queue(app).go_to("demo-0000000d")
        y = queue(app).list.selected_index - queue(app).list._view.top
        tracker = app.root / ".ddx" / "beads.jsonl"
        rows = tracker.read_text().splitlines()
        extra = [
            json.dumps({"id": f"demo-1000000{n}", "title": f"New {n}", "status": "open", "priority": 0})
            for n in range(8)
        ]
        tracker.write_text("\n".join([*extra, *rows]) + "\n")
        change = app.feed.look()
        await pilot.pause()
        assert "demo-10000001" in change.beads
        assert queue(app).selected_bead == "demo-0000000d"
        assert queue(app).list.selected_index - queue(app).list._view.top == y


async def test_a_selected_bead_that_goes_away_leaves_the_cursor_near(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000014")
        place = queue(app).list.selected_index
        tracker = app.root / ".ddx" / "beads.jsonl"
        tracker.write_text("".join(f"{line}\n" for line in tracker.read_text().splitlines() if "00000014" not in line))
        app.feed.look()
        await pilot.pause()
        assert abs(queue(app).list.selected_index - place) <= 1


async def test_id_and_markdown_go_to_the_clipboard(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000001")
        await pilot.press("y")
        assert app.clipboard == "demo-00000001"
        await pilot.press("Y")
        assert app.clipboard.startswith("# Keep attempt metrics apart")
        assert "## Acceptance" in app.clipboard


async def test_no_ddx_says_what_was_looked_for_and_fills_when_it_comes(console: MakeConsole) -> None:
    app = console(None)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert app.sees("No DDx queue here.")
        assert app.sees("beads.jsonl")
        assert app.sees("helix-tui demo")
        (app.root / ".ddx").mkdir()
        app.feed.look()
        await pilot.pause()
        assert app.sees("The queue is empty.")
        (app.root / ".ddx" / "beads.jsonl").write_text('{"id":"demo-1","title":"Here at last","status":"open"}\n')
        app.feed.look()
        await pilot.pause()
        assert app.sees("Here at last")


async def test_a_tracker_that_goes_away_is_said_and_comes_back(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 30)) as pilot:
        tracker = app.root / ".ddx" / "beads.jsonl"
        text = tracker.read_text()
        tracker.unlink()
        app.feed.look()
        await pilot.pause()
        assert app.sees("The tracker is gone.")
        tracker.write_text(text)
        app.feed.look()
        await pilot.pause()
        assert app.sees("Keep attempt metrics apart")


async def test_a_tracker_without_a_legible_line_says_so(console: MakeConsole) -> None:
    app = console(["{", "nonsense"])
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert app.sees("None of the 2 lines")


@pytest.mark.parametrize("size", [(31, 20), (80, 7), (20, 5)])
async def test_below_32_by_8_one_line_says_so(console: MakeConsole, size: tuple[int, int]) -> None:
    app = console()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert app.rows()[0].startswith("too small")
        assert "32 × 8" in app.rows()[0]
        assert not any(app.rows()[1:])


async def test_the_strip_counts_and_leads_to_what_needs_me(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(36, 40)) as pilot:
        await pilot.pause()
        for words in ("Next", "Needs me", "cools down"):
            assert app.sees(words), words
        queue(app).list.select("count:ready")
        await pilot.press("enter")
        await pilot.pause()
        assert queue(app).filter.text == "state:ready"
        await pilot.press("escape")
        queue(app).list.select("need:demo-00000007")
        await pilot.press("enter")
        await pilot.pause()
        assert app.sees("Split the federated search")


async def test_a_resize_keeps_the_bead_under_the_cursor(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(160, 40)) as pilot:
        queue(app).go_to("demo-00000005")
        for width in (48, 80, 120, 60):
            await pilot.resize_terminal(width, 30)
            await pilot.pause()
            assert queue(app).selected_bead == "demo-00000005"


async def test_the_mouse_selects_opens_and_scrolls(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 14)) as pilot:
        rows = queue(app).list
        await pilot.click(rows, offset=(10, 3))
        assert rows.selected_index == 3
        await pilot.click(rows, offset=(10, 3), times=2)
        await pilot.pause()
        assert app.focused is queue(app).detail
        rows.scroll_lines(3)
        assert rows._view.top == 3
        assert rows.selected_index == 3
