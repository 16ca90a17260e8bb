"""The one writer of beads.jsonl: its lock, its rename, and that it loses nothing."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helix_ddx.files import Disk, go_json
from helix_ddx.flags import Refused
from helix_ddx.store.events import add_attached, attachment
from helix_ddx.store.tracker import LockTimeout, Store, write_whole
from helix_tui.core.ground.files import RefusedFileError, add_root
from helix_tui.core.ground.time import NS

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
IDS = st.text("abcdef0123456789.-_", min_size=1, max_size=12)


@settings(max_examples=60)
@given(
    rows=st.dictionaries(IDS, st.dictionaries(st.text(max_size=8), VALUES, max_size=4), max_size=4),
    junk=st.lists(st.sampled_from(["{", "[1]", "not json", '{"title":"no id"}', '{"id":7}']), max_size=3),
)
def test_a_change_keeps_every_row_and_every_line(
    rows: dict[str, dict[str, Any]], junk: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = Store(tmp_path_factory.mktemp("store"), Disk())
    expected = {bead: {**row, "id": bead} for bead, row in rows.items()}
    store.write_new(list(expected.values()), tuple(junk))
    with store.change() as found:
        assert found == expected
        found["zz-new"] = {"id": "zz-new", "title": "<&>"}
    assert store.read() == expected | {"zz-new": {"id": "zz-new", "title": "<&>"}}
    lines = store.path.read_text().split("\n")
    assert [line for line in lines if line in junk] == junk
    assert not list(store.path.parent.glob("*.tmp*"))


def test_rows_stand_as_go_writes_them(tmp_path: Path) -> None:
    store = Store(tmp_path, Disk())
    store.write_new([{"title": "a <b> & c\u2028", "id": "x-2"}, {"id": "x-1", "b": 1, "a": {"z": 1, "y": 2}}])
    first, second, end = store.path.read_text().split("\n")
    assert first == '{"a":{"z":1,"y":2},"b":1,"id":"x-1"}'
    assert second == '{"id":"x-2","title":"a \\u003cb\\u003e \\u0026 c\\u2028"}'
    assert end == ""
    assert json.loads(go_json({"a": "<é\u2029>"})) == {"a": "<é\u2029>"}


def test_an_exception_changes_nothing_and_frees_the_lock(tmp_path: Path) -> None:
    store = Store(tmp_path, Disk())
    store.write_new([{"id": "x"}])

    def spoil() -> None:
        with store.change() as rows:
            rows.clear()
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        spoil()
    assert list(store.read()) == ["x"]
    assert not store.lock_folder.exists()


def test_the_lock_is_a_folder_with_its_owner(tmp_path: Path) -> None:
    store = Store(tmp_path, Disk())
    with store.locked():
        assert (store.lock_folder / "pid").read_text() == str(os.getpid())
        assert len(list(store.lock_folder.iterdir())) == 3


def test_a_held_lock_is_waited_for_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDX_BEAD_LOCK_TIMEOUT", "0s")
    store = Store(tmp_path, Disk())
    with store.locked(), pytest.raises(LockTimeout, match=f"owner pid: {os.getpid()}"), store.locked():
        pass


@pytest.mark.parametrize(
    ("pid", "acquired"),
    [("999999999", "2026-11-21T08:00:00Z"), (str(os.getpid()), "2020-01-01T00:00:00Z")],
    ids=["dead", "ancient"],
)
def test_a_dead_or_ancient_lock_is_broken(pid: str, acquired: str, tmp_path: Path) -> None:
    store = Store(tmp_path, Disk(), clock=lambda: 1_795_000_000 * NS)
    store.lock_folder.mkdir()
    (store.lock_folder / "pid").write_text(pid)
    (store.lock_folder / "acquired_at").write_text(acquired)
    with store.change() as rows:
        rows["x"] = {"id": "x"}
    assert list(store.read()) == ["x"]
    assert not list(tmp_path.glob("*.lock"))


def test_writers_do_not_lose_each_others_changes(tmp_path: Path) -> None:
    store = Store(tmp_path, Disk())
    store.write_new([{"id": "x", "count": 0}])

    def count() -> None:
        for _ in range(10):
            with store.change() as rows:
                rows["x"]["count"] += 1

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert store.read()["x"]["count"] == 30


@pytest.mark.parametrize("bead_id", ["../../x", "/tmp/x", "a/b", "..", "a\nb"])
def test_an_id_that_is_no_name_reaches_no_file(bead_id: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be the name of a file"):
        attachment(tmp_path / ".ddx", bead_id)
    with pytest.raises(Refused):
        add_attached(tmp_path / ".ddx", bead_id, {"kind": "note"})
    assert list(tmp_path.iterdir()) == []


def test_what_the_tracker_writes_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    root = tmp_path / "clone"
    (root / ".ddx").mkdir(parents=True)
    (root / ".ddx" / "attachments").symlink_to(tmp_path / "home")
    add_root(root)
    with pytest.raises(Refused, match="a link"):
        write_whole(root / ".ddx" / "attachments" / "de-1" / "events.jsonl", b"{}")
    for write in (Disk().append, Disk().create, Disk().replace):
        with pytest.raises(RefusedFileError):
            write(root / ".ddx" / "attachments" / "de-1" / "events.jsonl", "{}")
    assert list((tmp_path / "home").iterdir()) == []
