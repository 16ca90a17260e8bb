"""The transcript pane: every event once, outcomes at their calls, following, unfolding, hostile text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.ddx.runs.transcript_events import Event, read_event
from helix_tui.core.ground.time import clock_time
from helix_tui.widgets.text.pane import Para
from helix_tui.widgets.text.transcript import Script, ScriptRows, TranscriptPane
from tests.widgets.host import Host

SECOND = 1_000_000_000


def tool(number: int, tool_name: str = "Bash") -> Event:
    return Event(
        number * SECOND,
        "tool",
        "tool_call",
        tool=tool_name,
        summary=f"{tool_name} do {number}",
        call_id=f"t{number}",
    )


def done(number: int, *, ok: bool = True, said: str = "it went well") -> Event:
    return Event(
        number * SECOND + 5,
        "result",
        "tool_result",
        ok=ok,
        summary=said,
        detail=said,
        duration_ms=3_200,
        call_id=f"t{number}",
    )


def words(number: int) -> Event:
    return Event(number * SECOND, "text", "text_delta", summary=f"word {number}", detail=f"word {number}\nand more")


async def test_a_call_carries_its_outcome_and_the_result_stands_below() -> None:
    pane = TranscriptPane()
    app = Host(pane)
    async with app.run_test(size=(80, 10)) as pilot:
        pane.add([words(1), tool(2)])
        await pilot.pause()
        assert "do 2" in app.rows()[1]
        assert "ok" not in app.rows()[1]
        pane.add([done(2)])
        await pilot.pause()
        assert app.rows()[1].rstrip().endswith("ok 3.2s")
        assert "└" in app.rows()[2]
        assert "it went well" in app.rows()[2]


async def test_a_failure_says_so_in_words() -> None:
    pane = TranscriptPane()
    app = Host(pane)
    async with app.run_test(size=(80, 10)) as pilot:
        pane.add([tool(1), done(1, ok=False, said="exit status 1")])
        await pilot.pause()
        assert "failed 3.2s" in app.rows()[0]


async def test_it_follows_the_end_until_somebody_moves_up_and_again_from_the_last_row() -> None:
    pane = TranscriptPane()
    async with Host(pane).run_test(size=(60, 6)) as pilot:
        pane.focus()
        pane.add([words(n) for n in range(20)])
        await pilot.pause()
        assert pane.selected_key == "19"
        await pilot.press("k")
        assert not pane.following
        pane.add([words(20)])
        assert pane.selected_key == "18"
        await pilot.press("G")
        assert pane.following
        pane.add([words(21)])
        assert pane.selected_key == "21"


async def test_enter_unfolds_the_text_of_an_event_and_folds_it_again() -> None:
    pane = TranscriptPane()
    app = Host(pane)
    async with app.run_test(size=(60, 12)) as pilot:
        pane.focus()
        pane.add([words(1), words(2), words(3)])
        await pilot.press("g", "j", "enter")
        await pilot.pause()
        assert any("│ and more" in line for line in app.rows())
        assert pane.selected_key == "1"
        pane.add([words(4)])
        await pilot.pause()
        assert any("│ and more" in line for line in app.rows())
        assert pane.fold()
        await pilot.pause()
        assert not any("│ and more" in line for line in app.rows())


async def test_a_note_stands_there_until_events_come() -> None:
    pane = TranscriptPane()
    app = Host(pane)
    async with app.run_test(size=(60, 12)) as pilot:
        pane.clear([Para("a", (("No lines yet.", "text"),)), Para("b", (("Wait.", "text"),))])
        pane.focus()
        await pilot.press("j")
        await pilot.pause()
        assert "No lines yet." in app.rows()[0]
        pane.add([words(7)])
        await pilot.pause()
        assert "word 7" in app.rows()[0]


async def test_landmarks_are_failures_and_sessions() -> None:
    pane = TranscriptPane()
    async with Host(pane).run_test(size=(60, 12)) as pilot:
        start = Event(0, "session", "session.start", summary="session started")
        pane.add([start, tool(1), done(1), tool(2), done(2, ok=False), words(3)])
        await pilot.press("g")
        pane.select("0")
        pane.turn_part(1)
        assert pane.selected_key == "4"
        pane.turn_part(-1)
        assert pane.selected_key == "0"


async def test_hostile_lines_do_no_harm() -> None:
    lines = [
        b'{"type":"text_delta","data":{"text":"\\u001b[31mred\\u001b]0;title\\u0007 [/bold] \\u202egnp"}}',
        b"\xff\xfe not json \x1b[2J",
        b'{"type":"tool_call","data":{"name":"[@click=app.quit()]x[/]","input":{"command":"\\u001b[2Jrm"}}}',
        b'{"type":"text_delta","data":{"text":"' + b"y" * 3_000_000 + b'"}}',
    ]
    pane = TranscriptPane()
    app = Host(pane)
    async with app.run_test(size=(60, 12)) as pilot:
        pane.focus()
        pane.add([read_event(line) for line in lines])
        await pilot.press("g", "enter", "G", "enter")
        await pilot.pause()
        shown = "\n".join(app.rows())
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "[/bold]" in shown


@given(
    st.integers(1, 12),
    st.dictionaries(st.integers(0, 11), st.lists(st.just("line"), min_size=0, max_size=4), max_size=5),
)
def test_rows_keys_and_places_agree(count: int, unfolded: dict[int, list[str]]) -> None:
    script = Script()
    script.add(words(n) for n in range(count))
    rows = ScriptRows(script, {place: lines for place, lines in unfolded.items() if place < count})
    keys = [rows.key(index) for index in range(len(rows))]
    assert len(set(keys)) == len(keys)
    assert [rows.index(key) for key in keys] == list(range(len(rows)))
    assert [key for key in keys if "." not in key] == [str(n) for n in range(count)]
    assert rows.index("a note's key") is None
    for index in range(len(rows)):
        rows.paint(index, 80)


async def test_a_row_says_its_kind_once_and_the_hour_at_any_width() -> None:
    at = 1_780_000_000 * 1_000_000_000
    script = Script()
    script.add([Event(at, "thinking", summary="thinking about locks"), Event(at, "thinking", type="thinking")])
    for width in (100, 36):
        rows = ["".join(text for text, _ in ScriptRows(script, {}).paint(place, width)) for place in (0, 1)]
        assert rows[0].count("think") == 1
        assert rows[1].count("think") == 1
        assert rows[0][:5] == clock_time(at)[:5]


async def test_what_an_agent_says_is_read_in_full_without_a_key() -> None:
    pane = TranscriptPane()
    app = Host(pane)
    long = "the boats leave at nine and come back at ten " * 2
    endless = "word " * 200
    async with app.run_test(size=(48, 24)) as pilot:
        pane.focus()
        said = [Event(n * SECOND, "text", "text_delta", summary=text) for n, text in enumerate((long, endless))]
        pane.add(said)
        await pilot.press("g")
        shown = " ".join(row.strip("▌▐ ") for row in app.rows()[:3])
        assert long.strip() in shown, app.rows()
        assert sum("word word" in row for row in app.rows()) == 6, "what is long goes on when somebody asks"
        await pilot.press("enter")
        assert sum("boats" in row for row in app.rows()) == 1
        assert "…" in app.rows()[0]
        await pilot.press("enter")
        assert long.strip() in " ".join(row.strip("▌▐ ") for row in app.rows()[:3])
        await pilot.press("j", "j", "j", "enter")
        assert sum("word word" in row for row in app.rows()) > 6
