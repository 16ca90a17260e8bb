"""The same queue, drained by ddx and by ``helix-tui run``: the same beads land, for no more calls (R6)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from helix_tui.core.ground.project import find_project
from helix_tui.core.supervision.run_state.run_control import request
from tests.real.conftest import SCRIPTED
from tests.real.stranger import PATIENCE, Release, Stranger
from tests.real.test_ends import wait_for

CHECKED = "1. `test -f README.md` passes"

QUEUES = {
    "mixed": ("ok", "fail", "ok", "nochange", "ok", "block", "ok", "ok"),
    "failing first": ("fail", "fail", "fail", "fail", "ok", "ok"),
    "all good": ("ok", "ok", "ok", "ok"),
    "nothing": ("nochange", "nochange", "nochange", "nochange", "ok", "ok"),
}


def fill(stranger: Stranger, words: tuple[str, ...]) -> None:
    """One bead for each word, in this order, the last waiting for the one before it."""
    made: list[str] = []
    for number, word in enumerate(words):
        after = (made[-1],) if number == len(words) - 1 else ()
        made.append(stranger.bead(f"Write {number} [{word}]", priority=min(number, 4), after=after, acceptance=CHECKED))
    stranger.commit("beads")


def landed(stranger: Stranger) -> set[str]:
    """The titles of what is closed."""
    rows = stranger.rows()
    return {rows[bead_id]["title"] for bead_id in stranger.closed()}


def calls_by_title(stranger: Stranger) -> Counter[str]:
    """How many calls each bead took: a readiness check tells of the bead that is worked on next."""
    found, untold, title = Counter[str](), 0, ""
    for call in stranger.calls():
        if call["kind"] == "intake":
            untold += 1
        elif call["kind"] != "ask":
            title = call["title"] or title
            found[title] += 1 + untold
            untold = 0
    found[title] += untold
    return found


@pytest.mark.parametrize("queue", QUEUES)
def test_a_run_lands_what_ddx_lands_for_no_more_calls(
    stranger: Stranger, release: Release, tmp_path: Path, queue: str
) -> None:
    twin = Stranger(tmp_path / "twin", release, SCRIPTED).make()
    for each in (stranger, twin):
        fill(each, QUEUES[queue])
    try:
        twin.drained()
        for _ in QUEUES[queue]:  # August stops at what left no evidence: a person starts it again
            if twin.asks_for_a_person() and twin.ready():
                twin.drained()
        done = stranger.supervised()
    finally:
        twin.clean_up()
    assert done.returncode == 0, done.stderr
    assert landed(stranger) >= landed(twin), done.stderr
    assert len(stranger.calls("ask")) <= 1, "once the queue is drained, one question for what comes next"
    took, there = calls_by_title(stranger), calls_by_title(twin)
    reviews = Counter(call["title"] for call in stranger.calls("work") if call["title"].startswith("review: "))
    done_here = {title for title in landed(stranger) if not title.startswith("review: ")}
    assert set(reviews) == {f"review: {title}" for title in done_here}, "HELIX reviews each success"
    assert max(reviews.values(), default=0) <= 1
    own = sum(number for title, number in took.items() if title not in reviews)
    assert own <= there.total(), (took, there)
    assert not stranger.processes()


@pytest.mark.usefixtures("lands")
def test_a_loop_that_is_paused_starts_nothing_until_it_is_resumed(stranger: Stranger) -> None:
    ids = {stranger.bead(f"Write {number}", acceptance=CHECKED) for number in range(3)}
    stranger.commit("beads")
    (stranger.home / "pace").write_text("2")
    project = find_project(stranger.project)
    done = stranger.tui("start", *stranger.agent_words)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: stranger.calls("work"), PATIENCE)
    request(project, "pause")
    wait_for(lambda: stranger.tui_json("status")["run"]["phase"] == "paused", PATIENCE)
    worked = len(stranger.calls())
    status = stranger.tui_json("status")
    assert (status["condition"], status["running_bead"], status["tracker"]["running"]) == ("active", None, 0)
    ready = set(stranger.ready())
    assert ids - stranger.closed() <= ready == set(stranger.tui_json("queue")["ready"])
    assert len(stranger.calls()) == worked
    request(project, "")
    wait_for(lambda: stranger.closed() >= ids, PATIENCE)
    wait_for(lambda: stranger.tui_json("status")["condition"] == "stopped", PATIENCE)
    wait_for(lambda: not stranger.processes())  # it says that it is done, then it goes
