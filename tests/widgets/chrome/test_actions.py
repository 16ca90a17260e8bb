"""The last few actions of an agent: calls with their outcomes, however results arrive."""

from __future__ import annotations

from helix_tui.core.ddx.runs.transcript_events import Event
from helix_tui.widgets.chrome.actions import KEPT, ActionLog, outcome


def call(tool: str, target: str, call_id: str = "", at: int = 0) -> Event:
    return Event(at, "tool", "tool_call", tool=tool, summary=f"{tool} {target}", call_id=call_id)


def result(call_id: str = "", *, ok: bool = True, tool: str = "", ms: int = 250) -> Event:
    return Event(1, "result", "tool_result", tool=tool, ok=ok, duration_ms=ms, call_id=call_id, summary="out")


def log(*events: Event) -> ActionLog:
    made = ActionLog()
    made.take(events)
    return made


def test_a_call_is_open_until_its_result_comes() -> None:
    made = log(call("Bash", "make", "t1"))
    assert made.last(3)[0].open
    made.take([result("t1", ok=False)])
    (action,) = made.last(3)
    assert (action.name, action.target, action.ok, action.duration_ms) == ("Bash", "make", False, 250)


def test_results_of_parallel_calls_find_their_own() -> None:
    made = log(call("Read", "a", "t1"), call("Read", "b", "t2"), result("t2", ok=False), result("t1"))
    assert [(action.target, action.ok) for action in made.last(3)] == [("a", True), ("b", False)]


def test_a_result_without_an_id_ends_the_newest_open_call_of_its_tool() -> None:
    made = log(call("Read", "a"), call("Bash", "b"), result(tool="Read"))
    assert [(action.name, action.open) for action in made.last(3)] == [("Read", False), ("Bash", True)]


def test_a_service_log_tells_call_and_outcome_in_one_line() -> None:
    line = Event(5, "result", "progress", tool="Bash", summary="Bash go test out=2 kB", ok=True, duration_ms=9)
    (action,) = log(line).last(3)
    assert (action.name, action.target, action.ok) == ("Bash", "go test", True)


def test_thinking_shows_only_while_it_is_the_newest() -> None:
    thinking = Event(1, "thinking", summary="thinking ...")
    assert [action.name for action in log(thinking, thinking).last(3)] == ["thinking"]
    assert [action.name for action in log(thinking, call("Bash", "x")).last(3)] == ["Bash"]


def test_only_the_newest_are_kept_and_what_is_no_action_is_none() -> None:
    events = [call("Bash", str(number)) for number in range(KEPT + 5)]
    made = log(*events, Event(1, "route", summary="r"), Event(1, "session", summary="s"))
    assert [action.target for action in made.last(2)] == [str(KEPT + 3), str(KEPT + 4)]
    assert len(made.last(100)) == KEPT
    assert made.last(0) == ()


def test_an_outcome_in_words() -> None:
    assert outcome(None, 5) == []
    assert [text for text, _ in outcome(True, None)] == ["ok"]
    assert "".join(text for text, _ in outcome(False, 3_200)) == "failed 3.2s"
