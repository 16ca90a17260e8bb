"""The live feed on real files: what changes arrives, whatever happens to the folder."""

from __future__ import annotations

import errno
import json
import os
import queue as queues
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import NS, parse_now
from helix_tui.core.snapshot.feed import Gatherer, Live, folders_to_watch, take_snapshot
from helix_tui.core.snapshot.snapshot import Change, Snapshot, compare

pytestmark = [pytest.mark.realtime, pytest.mark.long]

WAIT_S = 20
"""How long a test waits for news before it fails; news takes milliseconds."""


def write(ddx: Path, *rows: dict[str, Any]) -> None:
    ddx.mkdir(parents=True, exist_ok=True)
    temporary = ddx / f"beads.jsonl.tmp-{os.getpid()}"
    temporary.write_text("".join(json.dumps({"title": "t", **row}) + "\n" for row in rows))
    os.replace(temporary, ddx / "beads.jsonl")


class Listener:
    """Collects what a feed publishes."""

    def __init__(self, project: Project) -> None:
        self.news: queues.Queue[tuple[Snapshot, Change]] = queues.Queue()
        self.count = 0
        self.live = Live(project, self._hear)

    def _hear(self, snapshot: Snapshot, change: Change) -> None:
        self.count += 1
        self.news.put((snapshot, change))

    def until(self, holds: Callable[[Snapshot], bool]) -> tuple[Snapshot, Change]:
        """The first news for which something holds."""
        while True:
            snapshot, change = self.news.get(timeout=WAIT_S)
            if holds(snapshot):
                return snapshot, change


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def listener(root: Path) -> Iterator[Listener]:
    found = Listener(Project(root, root / ".ddx"))
    yield found
    found.live.stop()


def test_a_change_names_the_beads_that_differ(root: Path, listener: Listener) -> None:
    write(
        root / ".ddx",
        {"id": "a"},
        {"id": "b", "dependencies": [{"depends_on_id": "a"}]},
        {"id": "c", "priority": 3},
    )
    listener.live.start()
    first, change = listener.until(lambda s: s.condition == "live")
    assert change.everything
    assert first.queue.ready == ("a", "c")
    write(
        root / ".ddx",
        {"id": "a", "status": "closed"},
        {"id": "b", "dependencies": [{"depends_on_id": "a"}]},
        {"id": "c", "priority": 3},
    )
    second, change = listener.until(lambda s: s.queue.ready == ("b", "c"))
    assert change.beads == {"a", "b"}
    assert second.generation > first.generation
    assert second.queue.beads["c"] is first.queue.beads["c"]


def test_a_project_that_gets_a_queue_later_loses_it_and_gets_it_back(root: Path, listener: Listener) -> None:
    listener.live.start()
    listener.until(lambda s: s.condition == "no-ddx")
    write(root / ".ddx", {"id": "a"})
    listener.until(lambda s: s.condition == "live" and "a" in s.queue.beads)
    shutil.rmtree(root / ".ddx")
    gone, _ = listener.until(lambda s: s.condition == "gone")
    assert not gone.queue.beads
    write(root / ".ddx", {"id": "b"})
    listener.until(lambda s: s.condition == "live" and "b" in s.queue.beads)
    write(root / ".ddx", {"id": "c"})
    listener.until(lambda s: "c" in s.queue.beads)


def test_a_folder_swapped_for_another_is_followed(root: Path, listener: Listener) -> None:
    write(root / ".ddx", {"id": "a"})
    listener.live.start()
    listener.until(lambda s: "a" in s.queue.beads)
    write(root / "other", {"id": "b"})
    os.rename(root / ".ddx", root / "old")
    os.rename(root / "other", root / ".ddx")
    listener.until(lambda s: "b" in s.queue.beads)
    write(root / ".ddx", {"id": "c"})
    listener.until(lambda s: "c" in s.queue.beads)


def test_a_burst_of_a_thousand_changes_makes_few_snapshots_and_the_last_one_counts(
    root: Path, listener: Listener
) -> None:
    write(root / ".ddx", {"id": "a", "title": "start"})
    listener.live.start()
    listener.until(lambda s: s.condition == "live")
    for turn in range(1000):
        write(root / ".ddx", {"id": "a", "title": f"turn {turn}"})
    listener.until(lambda s: s.queue.beads["a"].title == "turn 999")
    assert listener.count < 200


def test_what_lies_in_the_root_beside_ddx_is_no_news(root: Path) -> None:
    write(root / ".ddx", {"id": "a"})
    feed = Live(Project(root, root / ".ddx"), lambda snapshot, change: None)
    assert not feed._concerns({str(root / "build.log"), str(root / "src")})
    assert feed._concerns({str(root / ".ddx")})
    assert feed._concerns({"/elsewhere/leases/a.json"})


def test_time_alone_ends_a_cooldown(root: Path) -> None:
    write(root / ".ddx", {"id": "a", "work-retry-after": "2026-08-21T22:10:00Z"})
    now = [parse_now("2026-08-21T22:00:00Z")]
    gatherer = Gatherer(Project(root, root / ".ddx"), clock=lambda: now[0])
    first = gatherer.gather()
    assert first.queue.state("a") == "retry_cooldown"
    now[0] += 599 * NS
    assert gatherer.gather().queue is first.queue
    now[0] += NS
    assert gatherer.gather().queue.state("a") == "ready"


def test_a_worker_that_dies_without_a_word_is_noticed(root: Path) -> None:
    write(root / ".ddx", {"id": "a"})
    state = {
        "bead_id": "a",
        "attempt_id": "20260821T215500-0123abcd",
        "pid": os.getpid(),
        "started_at": "2026-08-21T21:59:00Z",
        "refreshed_at": "2026-08-21T21:59:55Z",
        "expires_at": "2026-08-21T22:01:55Z",
    }
    (root / ".ddx/run-state.json").write_text(json.dumps(state))
    now = [parse_now("2026-08-21T22:00:00Z")]
    gatherer = Gatherer(Project(root, root / ".ddx"), clock=lambda: now[0])
    assert gatherer.gather().queue.state("a") == "running"
    now[0] += 600 * NS
    snapshot = gatherer.gather()
    assert [run.verdict for run in snapshot.runs] == ["dead"]
    assert snapshot.queue.state("a") == "ready"
    now[0] += NS
    assert not compare(snapshot, gatherer.gather()), "that it grew older is no news"


def test_a_bead_that_ends_while_files_are_read_is_not_shown_beside_the_next_one(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker ends one bead and takes the next after its run record was read and before leases are."""
    ddx, leases = root / ".ddx", root / "leases"
    now = "2026-08-21T22:00:00Z"

    def taken(bead_id: str) -> None:
        """Replace what says that a bead is worked on, in each of its places."""
        held = {"bead_id": bead_id, "pid": os.getpid(), "started_at": now, "refreshed_at": now, "updated_at": now}
        for folder in (ddx / "run-state", leases):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / f"{bead_id}.json").write_text(
                json.dumps({**held, "attempt_id": f"20260821T215500-0000000{bead_id}"})
            )

    def roots(*_: Any) -> tuple[Path, ...]:
        if pending:
            pending.pop()
            taken("b")
            write(ddx, {"id": "a", "status": "closed"}, {"id": "b", "status": "in_progress"})
        return (leases,)

    pending = ["b"]
    write(ddx, {"id": "a", "status": "in_progress"}, {"id": "b"})
    taken("a")
    monkeypatch.setattr("helix_tui.core.ddx.claims.lease_roots", roots)
    snapshot = Gatherer(Project(root, ddx), clock=lambda: parse_now(now)).gather()
    assert not pending
    assert [run.bead_id for run in snapshot.runs] == ["b"]
    assert (snapshot.tracker.beads["a"].status, snapshot.queue.state("b")) == ("closed", "running")


def test_bad_lines_and_unknown_statuses_are_notices(root: Path) -> None:
    write(root / ".ddx", {"id": "a", "status": "paused"})
    with open(root / ".ddx/beads.jsonl", "a") as file:
        file.write("{half a line")
    metrics = root / ".ddx" / "metrics" / "attempts.jsonl"
    metrics.parent.mkdir()
    metrics.write_text('{"no": "attempt"}\n{half\n')
    snapshot = take_snapshot(Project(root, root / ".ddx"))
    assert {notice.kind: notice.text for notice in snapshot.notices} == {
        "unread": "1 line unread",
        "attempts": "2 lines of metrics unread",
        "status": "unknown status: paused",
    }


def test_an_empty_folder_and_an_empty_file_are_an_empty_queue(root: Path) -> None:
    project = Project(root, root / ".ddx")
    assert take_snapshot(project).condition == "no-ddx"
    (root / ".ddx").mkdir()
    assert take_snapshot(project).condition == "empty"
    (root / ".ddx/beads.jsonl").write_bytes(b"")
    assert take_snapshot(project).condition == "empty"


def test_folders_that_do_not_exist_are_not_watched(root: Path) -> None:
    watched = folders_to_watch(Project(root, root / ".ddx"), ())
    assert str(root) in watched
    assert all(os.path.isdir(folder) for folder in watched)
    assert folders_to_watch(Project(root / "a/b", root / "a/b/.ddx"), ())


def test_without_watches_changes_still_arrive_and_the_feed_says_so(
    root: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "OS file watch limit reached")

    monkeypatch.setattr("watchfiles.main.RustNotify", none_left)
    write(root / ".ddx", {"id": "a-1"})
    listener.live.start()
    said, _ = listener.until(lambda snapshot: any(notice.kind == "watch" for notice in snapshot.notices))
    assert "checked once a second" in next(notice.text for notice in said.notices if notice.kind == "watch")
    write(root / ".ddx", {"id": "a-1"}, {"id": "a-2"})
    listener.until(lambda snapshot: "a-2" in snapshot.tracker.beads)
    bundle = root / ".ddx" / "executions" / "20260820T101010-0000000a"
    bundle.mkdir(parents=True)
    result = {"bead_id": "a-2", "attempt_id": bundle.name, "status": "success"}
    (bundle / "result.json").write_text(json.dumps(result))
    listener.until(lambda snapshot: any(one.bead_id == "a-2" for one in snapshot.attempts.newest(1)))
    monkeypatch.undo()
    shutil.rmtree(root / ".ddx")  # other folders: they are watched anew
    listener.until(lambda snapshot: not any(notice.kind == "watch" for notice in snapshot.notices))


def test_without_watches_looking_at_everything_takes_a_tenth_of_the_time(
    root: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "OS file watch limit reached")

    seconds, looks = [1_000.0], queues.Queue[tuple[float, bool]]()
    gather = Gatherer.gather

    def slow(self: Gatherer, *, attempts: bool = True, changed: Any = None) -> Snapshot:
        """A look at everything takes 5 seconds, any other none; a tick is one second."""
        seconds[0] += 5 if attempts and changed is None else 1
        if attempts:
            looks.put((seconds[0], changed is None))
        return gather(self, attempts=attempts, changed=changed)

    monkeypatch.setattr("watchfiles.main.RustNotify", none_left)
    monkeypatch.setattr("helix_tui.core.snapshot.feed.monotonic", lambda: seconds[0])
    monkeypatch.setattr("helix_tui.core.snapshot.feed.POLL_S", 0.001)
    monkeypatch.setattr(Gatherer, "gather", slow)
    write(root / ".ddx", {"id": "a-1"})
    listener.live.start()
    seen = [looks.get(timeout=WAIT_S) for _ in range(150)]
    everything = [at for at, all_of_it in seen if all_of_it]
    assert 2 <= len(everything) <= 5
    assert min(b - a for a, b in pairwise(everything)) >= 50


def test_a_project_that_is_never_quiet_is_looked_at_whole_too(
    root: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt's evidence far below its folder changes, where nothing watches."""
    monkeypatch.setattr("helix_tui.core.snapshot.feed.FULL_LOOK_S", 0.5)
    bundles = [root / ".ddx" / "executions" / f"20260820T1010{number:02d}-0000000a" for number in range(40)]
    write(root / ".ddx", {"id": "a-1"})
    for bundle in bundles:
        bundle.mkdir(parents=True)
        (bundle / "result.json").write_text(json.dumps({"bead_id": "a-1", "status": "execution_failed"}))
    listener.live.start()
    listener.until(lambda snapshot: len(snapshot.attempts) == 40)
    (bundles[0] / "result.json").write_text(json.dumps({"bead_id": "a-1", "status": "no_changes"}))
    for number in range(10_000):
        write(root / ".ddx", {"id": "a-1", "title": f"{number}"})
        snapshot, _ = listener.until(lambda snapshot: bool(snapshot.tracker.beads))
        attempt = snapshot.attempts.get(bundles[0].name)
        if attempt is not None and attempt.status == "no_changes":
            return
        if number > 40:
            break
    pytest.fail("only what the watches tell of was looked at")
