"""The list of attempts: what each row says at each width, and that nothing moves under the cursor."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt, Tokens
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.time import NS, parse_now
from helix_tui.widgets.chrome.actions import Action
from helix_tui.widgets.figures import look_of
from helix_tui.widgets.rows.attempt_table import AttemptFilter
from helix_tui.widgets.rows.attempts import AttemptList, AttemptOrder, AttemptRows, Board, RunView, paint_attempt
from tests.widgets.host import Host

NOW = parse_now("2026-08-21T12:00:00Z")
MINUTE = 60 * NS

BEADS = {
    "ddx-1": Bead(id="ddx-1", title="Pin the provider release"),
    "ddx-2": Bead(id="ddx-2", title="Land gate [/rejects] \x1b[31mstale refs"),
}


def attempt(number: int, status: str = "success", **fields: object) -> Attempt:
    made = Attempt(
        f"20260821T{number:06}-0000abcd",
        "ddx-1",
        status=status,
        model="opus",
        harness="claude",
        started_at=NOW - (number + 1) * MINUTE,
        finished_at=NOW - number * MINUTE,
        duration_ms=540_000,
        tokens=Tokens(total=220_000),
        cost_usd=1.1,
    )
    return replace(made, **fields)


def run(**fields: object) -> RunView:
    made = Run("ddx-2", "20260821T999999-0000abcd", started_at=NOW - 4 * MINUTE, harness="claude", model="sonnet")
    actions = fields.pop("actions", ())
    return RunView(replace(made, **fields), actions)  # type: ignore[arg-type]


def board(attempts: list[Attempt], *runs: RunView) -> Board:
    return Board(runs, AttemptOrder(attempts), BEADS, NOW)


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (attempt(1), "landed"),
        (attempt(1, "land_conflict"), "kept aside"),
        (attempt(1, "execution_failed"), "failed"),
        (attempt(1, "no_changes"), "no change"),
        (attempt(1, "already_satisfied"), "satisfied"),
        (attempt(1, "no_evidence_produced"), "no change"),
        (attempt(1, "success", on_branch=False), "kept aside"),
        (attempt(1, "success", status_source="result", held=True), "landing"),
        (attempt(1, "review_block"), "landed"),
        (attempt(1, "review_block", detail="pre-land review: BLOCK"), "refused"),
        (attempt(1, "repair-cycle-exhausted"), "refused"),
        (attempt(1, "execution_failed", detail="signal: terminated"), "interrupted"),
        (attempt(1, "quantum_superposed"), "quantum_superposed"),
        (attempt(1, ""), "interrupted"),
        (attempt(1, "", held=True), "no result"),
    ],
)
def test_a_status_in_words_and_an_unknown_one_verbatim(made: Attempt, word: str) -> None:
    assert look_of(made).word == word


async def test_a_row_at_full_width_says_everything_and_unknown_cost_is_not_zero() -> None:
    rows = AttemptList()
    app = Host(rows)
    async with app.run_test(size=(124, 10)) as pilot:
        rows.show_board(board([attempt(1), attempt(2, cost_usd=None, duration_ms=None, tokens=Tokens())]))
        await pilot.pause()
        heading, first, second, *_ = app.rows()
        assert "Today  2 landed" in heading
        assert "≥$1.10 · 220k tok · 9m 00s" in heading
        for part in ("✓ ", "Pin the provider release", "opus", "9m", "220k", "$1.10"):
            assert part in first
        assert second.count("·") == 3
        assert "$0" not in second


@pytest.mark.parametrize("width", [32, 40, 48, 60, 80, 120])
async def test_the_title_stays_at_every_width(width: int) -> None:
    rows = AttemptList()
    app = Host(rows)
    async with app.run_test(size=(width, 10)) as pilot:
        rows.show_board(board([attempt(1)], run(actions=(Action("Bash", "go test ./work", ok=True),))))
        await pilot.pause()
        shown = app.rows()
        assert any("Pin the pro" in line for line in shown)
        assert any("Land gate" in line for line in shown)
        assert any("go test" in line for line in shown)


async def test_a_running_entry_has_its_last_actions_with_outcome_and_time() -> None:
    actions = (
        Action("Edit", "work/watchdog.go", NOW - 230 * NS, ok=True, duration_ms=40),
        Action("Bash", "go test ./work/...", NOW - 220 * NS, ok=False, duration_ms=3_200),
        Action("thinking", "…", NOW - 200 * NS, kind="thinking"),
    )
    rows = AttemptList()
    app = Host(rows)
    async with app.run_test(size=(80, 10)) as pilot:
        rows.show_board(board([], run(actions=actions, tokens=38_000)))
        await pilot.pause()
        first, edit, bash, thinking, *_ = app.rows()
        assert "◉ Land gate [/rejects] stale refs" in first
        assert "4m 00s" in first
        assert "38k tok" in first
        assert "Edit" in edit
        assert "+10s" in edit
        assert "failed 3.2s" in bash
        assert "thinking" in thinking


async def test_silent_and_dead_are_told_apart_with_the_reason_in_words() -> None:
    silent = run(verdict="silent", why="its heartbeat is fresh, but it has done nothing for 12m")
    gone = run(attempt_id="20260821T888888-0000abcd", verdict="dead", live=False, why="its process 77 is gone")
    rows = AttemptList()
    app = Host(rows)
    async with app.run_test(size=(80, 12)) as pilot:
        rows.show_board(board([], silent, gone))
        await pilot.pause()
        shown = app.rows()
        assert any("Land gate" in line and line.endswith("silent") for line in shown)
        assert any("its heartbeat is fresh, but it has done nothing for 12m" in line for line in shown)
        assert any("Land gate" in line and line.endswith("dead") for line in shown)
        assert not any("its process 77 is gone" in line for line in shown)
        rows.action_cursor_down()  # the row of a worker that is dead unfolds to the reason
        await pilot.pause()
        assert any("its process 77 is gone" in line for line in app.rows())


MANY_RUNS = [
    run(attempt_id=f"20260821T99999{number}-0000abcd", actions=(Action("Bash", f"make check-{number}"),))
    for number in range(5)
]


@pytest.mark.parametrize(("width", "height", "pinned"), [(46, 30, 5), (46, 12, 2), (78, 10, 2), (120, 40, 5)])
async def test_what_runs_stays_above_the_list_however_far_it_is_scrolled(width: int, height: int, pinned: int) -> None:
    rows = AttemptList()
    app = Host(rows)
    async with app.run_test(size=(width, height)) as pilot:
        rows.show_board(board([attempt(number) for number in range(1, 90)], *MANY_RUNS))
        rows.action_last()
        await pilot.pause()
        shown = app.rows()
        for number in range(pinned):
            assert any(f"make check-{number}" in line and "sonnet" in line for line in shown)
        assert sum("Land gate" in line and "4m" in line for line in shown) == pinned
        assert any(f"and {5 - pinned} more" in line for line in shown) == (pinned < 5)
        assert rows.selected_key in {attempt(89).attempt_id}
        assert any("▌" in line for line in shown)
        rows.action_first()
        assert rows.selected_key == MANY_RUNS[0].key
        # what has no room above is still a row of the list
        for _ in range(4):
            rows.action_cursor_down()
        await pilot.pause()
        assert rows.selected_key == MANY_RUNS[4].key
        assert any("make check-4" in line for line in app.rows())


async def test_a_run_that_begins_and_ends_moves_no_row_under_the_cursor_and_leaves_no_line_behind() -> None:
    rows = AttemptList()
    app = Host(rows)
    ended = [attempt(number) for number in range(1, 60)]
    async with app.run_test(size=(80, 16)) as pilot:
        rows.show_board(board(ended))
        for _ in range(30):
            rows.action_cursor_down()
        await pilot.pause()
        key, place = rows.selected_key, next(y for y, line in enumerate(app.rows()) if "▌" in line)
        rows.show_board(board(ended, *MANY_RUNS[:1]))
        await pilot.pause()
        assert rows.selected_key == key
        assert next(y for y, line in enumerate(app.rows()) if "▌" in line) == place
        assert any("make check-0" in line for line in app.rows()[:2])
        rows.show_board(board(ended))
        await pilot.pause()
        assert rows.selected_key == key
        assert not any("make check" in line for line in app.rows())


async def test_a_new_attempt_moves_nothing_under_a_cursor_that_left_the_top() -> None:
    rows = AttemptList()
    app = Host(rows)
    attempts = [attempt(number) for number in range(10, 60)]
    async with app.run_test(size=(80, 20)) as pilot:
        rows.focus()
        rows.show_board(board(attempts))
        await pilot.press("j", "j", "j")
        await pilot.pause()
        held, before = rows.selected_key, _line_of_cursor(app.rows())
        rows.show_board(board([attempt(9), *attempts], run()))
        await pilot.pause()
        assert rows.selected_key == held
        assert _line_of_cursor(app.rows()) == before


async def test_following_stays_on_top_and_stops_when_somebody_moves() -> None:
    rows = AttemptList()
    async with Host(rows).run_test(size=(80, 20)) as pilot:
        rows.focus()
        rows.show_board(board([attempt(5), attempt(6)]))
        assert rows.following
        rows.show_board(board([attempt(4), attempt(5), attempt(6)]))
        assert rows.selected_key == attempt(4).attempt_id
        await pilot.press("j")
        assert not rows.following
        rows.show_board(board([attempt(3), attempt(4), attempt(5), attempt(6)]))
        assert rows.selected_key == attempt(5).attempt_id
        rows.follow(True)
        assert rows.selected_key == attempt(3).attempt_id
        rows.follow(False)
        rows.show_board(board([attempt(2), attempt(3)]))
        assert rows.selected_key == attempt(3).attempt_id


async def test_the_selection_goes_along_when_a_run_ends() -> None:
    rows = AttemptList()
    async with Host(rows).run_test(size=(80, 20)) as pilot:
        rows.show_board(board([attempt(5)], run(), run(attempt_id="20260821T777777-0000abcd", bead_id="ddx-1")))
        rows.focus()
        await pilot.press("j")
        ended = rows.selected_key
        assert ended == "20260821T777777-0000abcd"
        rows.show_board(board([attempt(1, attempt_id=ended), attempt(5)], run()))
        assert rows.selected_key == ended
        assert rows.selected_attempt is not None


async def test_next_and_previous_attempt_on_the_same_bead() -> None:
    rows = AttemptList()
    others = [attempt(n, bead_id="ddx-2") for n in range(2, 6)]
    async with Host(rows).run_test(size=(80, 20)):
        rows.show_board(board([attempt(1), *others, attempt(7)]))
        rows.turn_part(1)
        assert rows.selected_key == attempt(7).attempt_id
        rows.turn_part(-1)
        assert rows.selected_key == attempt(1).attempt_id


async def test_six_thousand_attempts_are_one_list() -> None:
    rows = AttemptList()
    async with Host(rows).run_test(size=(120, 30)) as pilot:
        rows.focus()
        rows.show_board(board([attempt(number) for number in range(6_088)]))
        await pilot.press("G")
        assert rows.selected_key == attempt(6_087).attempt_id
        heading = "".join(text for text, _ in rows.source.paint(0, 100))
        assert heading.startswith("Today  721 landed")
        assert len(rows.source) > 6_088, "a caption for each day"


def test_a_filter_asks_words_and_fields_and_lights_them_up() -> None:
    one = attempt(1, "execution_failed", model="gpt-5.4-mini", harness="codex")
    for text, passes in (
        ("", True),
        ("pin release", True),
        ("pin nothing", False),
        ("status:failed model:gpt", True),
        ("status:merged", False),
        ("-status:merged", True),
        ("-codex", False),
        ("outcome:failed", True),
        ("outcome:landed", False),
        ("outcome:execution", False),
        ("bead:ddx-1", True),
        ("HARNESS:codex", True),
        ("(unclosed", False),
    ):
        assert AttemptFilter(text, BEADS).matches(one) is passes, text
    pattern = AttemptFilter("status:fail (pin -x", BEADS).pattern()
    assert pattern is not None
    assert [pattern.search(text) is not None for text in ("(PIN", "fail", "x")] == [True, False, False]
    assert AttemptFilter("status:fail", BEADS).pattern() is None


def test_a_filter_narrows_what_runs_too() -> None:
    silent, alive = run(verdict="silent").run, run().run
    wanted = AttemptFilter("status:silent land", BEADS)
    assert wanted.matches_run(silent)
    assert not wanted.matches_run(alive)


def test_a_filter_offers_fields_and_what_stands_in_them() -> None:
    attempts = [attempt(1, "execution_failed"), attempt(2), attempt(3)]
    wanted = AttemptFilter("", BEADS)
    assert wanted.ways("st", attempts) == [("status:", "")]
    assert wanted.ways("status:", attempts) == [("status:success", "2"), ("status:execution_failed", "1")]
    assert wanted.ways("outcome:f", attempts) == [("outcome:failed", "1")]
    assert wanted.ways("bead:", attempts) == []


def _line_of_cursor(rows: list[str]) -> int:
    return next(number for number, line in enumerate(rows) if line.startswith("▌"))


@pytest.mark.parametrize("width", [56, 66, 78, 100, 130])
def test_the_title_keeps_its_room_and_the_cost_stays(width: int) -> None:
    title = "Keep attempt metrics apart from all the evidence"
    made = attempt(1, harness="claude", model="claude-sonnet-4-6-of-a-long-name", cost_usd=1.1)
    beads = {made.bead_id: Bead(id=made.bead_id, title=title)}
    shown = "".join(text for text, _ in paint_attempt(made, replace(board([made]), beads=beads), width))
    assert title[: width - 20] in shown
    for part in ("$1.10", "9m", *(["sonnet"] if width >= 100 else [])):
        assert part in shown


def test_a_narrow_row_keeps_half_of_its_cells_for_the_title() -> None:
    title = "Keep attempt metrics apart from all the evidence"
    made = attempt(1, harness="claude", model="claude-sonnet-4-6", cost_usd=1.1, duration_ms=540_000)
    beads = {made.bead_id: Bead(id=made.bead_id, title=title)}
    shown = "".join(text for text, _ in paint_attempt(made, replace(board([made]), beads=beads), 51))
    assert title[:25] in shown
    assert "$1.10" in shown
    assert "sonnet" not in shown


def test_a_narrow_row_s_figures_are_whole_or_not_there() -> None:
    made = attempt(1, model="claude-sonnet-4-6", cost_usd=1.1, duration_ms=240_000)
    rows = AttemptRows(board([made]), 46)
    (line,) = rows.paint_more(len(rows) - 1, 46)
    said = "".join(text for text, _ in line)
    assert "$1.10" in said
    assert len(said) <= 46
    assert not said.endswith(("·", "· "))
