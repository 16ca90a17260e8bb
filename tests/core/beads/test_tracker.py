"""Reading trackers: nothing lost, nothing raised, nothing decoded twice."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.beads.record import Bead, FileBuffer, copy_to_disk, decode_bead
from helix_tui.core.beads.tracker import Found, Image, TrackerReader, read_lines, read_tracker
from tests.programs import parse_rows


def write(path: Path, *rows: dict[str, Any] | bytes) -> None:
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    temporary = path.with_name("new")
    temporary.write_bytes(b"".join(line + b"\n" for line in lines))
    os.replace(temporary, path)


def test_bad_lines_are_counted_and_shown_and_cost_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "beads.jsonl"
    write(
        path,
        {"id": "a", "title": "one"},
        b'{"id":"b","title":"cut o',
        b"",
        b"[1, 2]",
        b'{"title":"no id"}',
        b'{"id":"c","priority":NaN}',
        b"\x00\xff\x1b[31m",
        b"[" * 100_000,
        {"id": "d", "description": "x" * 300_000},
    )
    tracker = read_tracker(path)
    assert list(tracker.beads) == ["a", "d"]
    assert [dropped.line for dropped in tracker.dropped] == [2, 4, 5, 6, 7, 8]
    assert tracker.rows == 8
    assert all("\x1b" not in dropped.excerpt for dropped in tracker.dropped)
    assert tracker.dropped[2].reason == "no id"


def test_a_field_of_the_wrong_type_costs_that_field_only() -> None:
    bead = decode_bead(
        b'{"id":"a","title":null,"priority":"2","labels":["x",5],"dependencies":[{"depends_on_id":"b"},7,{}],'
        b'"parent":["p"],"issue_type":"","claimed-pid":"17","extra":{"k":[1]}}'
    )
    assert (bead.title, bead.priority, bead.labels, bead.parent) == ("", 0, ("x",), "")
    assert bead.depends_on == ("b",)
    assert (bead.issue_type, bead.status, bead.pid) == ("task", "open", 17)
    assert bead.document()["extra"] == {"k": [1]}


def test_unknown_fields_survive_byte_for_byte() -> None:
    line = b'{"id":"a","zz":{"deep":[1,2,{"x":null}]},"\\u00e9":1.50, "labels" : [ ] }'
    assert decode_bead(line).raw == line


def test_invalid_characters_do_not_lose_the_bead() -> None:
    assert decode_bead(b'{"id":"a","title":"caf\xe9"}').title == "caf\ufffd"
    assert decode_bead(b'{"id":"a","title":"x\\ud800y"}').title == "x?y"


def test_the_last_line_of_an_id_wins_and_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "beads.jsonl"
    write(path, {"id": "a", "title": "old"}, {"id": "b"}, {"id": "a", "title": "new"})
    tracker = read_tracker(path)
    assert list(tracker.beads) == ["b", "a"]
    assert tracker.beads["a"].title == "new"
    assert tracker.folded == {"a": (1, 3)}


def test_lines_end_at_newlines_only() -> None:
    tracker = parse_rows('{"id":"a","title":"x\u2028y\u0085z"}\r\n{"id":"b"}'.encode())
    assert list(tracker.beads) == ["a", "b"]


def test_a_reload_keeps_the_objects_of_rows_that_did_not_change(tmp_path: Path) -> None:
    path = tmp_path / "beads.jsonl"
    rows: list[dict[str, Any]] = [{"id": f"b{i:03}", "title": f"t{i}"} for i in range(50)]
    write(path, *rows)
    reader = TrackerReader(path)
    first = reader.read()
    assert reader.read() is first
    rows[10]["title"] = "changed"
    del rows[30]
    rows.insert(5, {"id": "b004x"})
    write(path, *rows)
    second = reader.read()
    same = [bead_id for bead_id, bead in second.beads.items() if first.beads.get(bead_id) is bead]
    assert len(second.beads) == 50
    assert len(same) == 48
    assert second.beads["b010"].document()["title"] == "changed"
    assert first.beads["b010"].document()["title"] == "t10"
    assert first.beads["b030"].document()["title"] == "t30"


def test_a_tracker_that_is_replaced_whole_reads_right(tmp_path: Path) -> None:
    path = tmp_path / "beads.jsonl"
    write(path, *({"id": f"a{i}", "title": "x" * i} for i in range(200)))
    reader = TrackerReader(path)
    first = reader.read()
    write(path, *({"id": f"a{i}", "title": "y" * i} for i in range(100, 400)))
    second = reader.read()
    write(path, {"id": "only"})
    third = reader.read()
    assert [len(tracker.beads) for tracker in (first, second, third)] == [200, 300, 1]
    assert first.beads["a150"].document()["title"] == "x" * 150
    assert second.beads["a150"].document()["title"] == "y" * 150


IDS = st.sampled_from("abcdefgh")
LINES = st.one_of(
    st.builds(lambda key, title: json.dumps({"id": key, "title": title}).encode(), IDS, st.text(max_size=9000)),
    st.sampled_from([b"", b"  ", b"{", b'{"title":"no id"}']),
)
FILES = st.lists(LINES, max_size=12).flatmap(
    lambda lines: st.sampled_from([b"\n".join(lines), b"".join(line + b"\n" for line in lines)])
)


@given(st.lists(FILES, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_reading_again_gives_what_reading_afresh_gives(states: list[bytes], random: Random) -> None:
    """From state to state, each a shuffle, a cut or a growth of the one before, or another file."""
    image = through_file = None
    for state in states:
        lines = state.split(b"\n")
        for then in (state, b"\n".join(random.sample(lines, len(lines))), state[: len(state) // 2]):
            afresh = read_lines(then, len(then))
            image = read_lines(then, len(then), image)
            assert image.starts == afresh.starts
            assert list(map(shown, image.found)) == list(map(shown, afresh.found))
            through_file = read_from_file(then, through_file)
            assert through_file.starts == afresh.starts
            assert list(map(shown, through_file.found)) == list(map(shown, afresh.found))


def read_from_file(data: bytes, last: Image | None) -> Image:
    """As a reader that holds neither the file nor what it read before."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        image = read_lines(FileBuffer(os.dup(file.fileno()), len(data)), len(data), last)
    if image.unsettled:
        image = read_lines(data, len(data), last)
    if not isinstance(image.base, FileBuffer) and (copy := copy_to_disk(memoryview(image.base))):
        image.base_moved(copy)
    return image


def shown(found: Found) -> object:
    """What stands on a line, wherever a bead keeps its bytes."""
    return (found.id, found.title, found.raw) if isinstance(found, Bead) else found


def test_a_missing_file_is_a_state_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "beads.jsonl"
    reader = TrackerReader(path)
    assert reader.read().missing
    write(path, {"id": "a"})
    assert list(reader.read().beads) == ["a"]
    path.unlink()
    assert reader.read().missing


def test_a_folder_in_its_place_is_a_problem_in_words_and_keeps_the_last_rows(tmp_path: Path) -> None:
    path = tmp_path / "beads.jsonl"
    write(path, {"id": "a"})
    reader = TrackerReader(path)
    reader.read()
    path.unlink()
    path.mkdir()
    tracker = reader.read()
    assert "beads.jsonl" in tracker.problem
    assert list(tracker.beads) == ["a"]


def test_the_digest_is_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "beads.jsonl"
    write(path, {"id": "a"})
    assert read_tracker(path, digest=True).digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_tracker(path).digest == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(
    [
        "id",
        "title",
        "status",
        "priority",
        "labels",
        "dependencies",
        "parent",
        "queue-rank",
        "execution-eligible",
    ]
)


@given(st.dictionaries(NAMES | st.text(max_size=6), JSON, max_size=8))
def test_any_object_is_a_bead_or_a_reason(document: dict[str, Any]) -> None:
    line = json.dumps(document).encode()
    bead_id = document.get("id")
    tracker = parse_rows(line)
    if isinstance(bead_id, str) and bead_id:
        (bead,) = tracker.beads.values()
        assert bead.id == bead_id.encode("utf-8", "replace").decode()
        assert bead.raw == line
    else:
        assert [dropped.reason for dropped in tracker.dropped] == ["no id"]


@given(st.lists(st.binary(max_size=60), max_size=12))
def test_any_bytes_are_counted_line_by_line(lines: list[bytes]) -> None:
    data = b"\n".join(lines)
    tracker = parse_rows(data)
    rows = [line for line in data.split(b"\n") if line.strip()]
    folded = sum(len(numbers) - 1 for numbers in tracker.folded.values())
    assert tracker.rows == len(rows)
    assert len(tracker.beads) + len(tracker.dropped) + folded == len(rows)


def test_real_trackers_read_whole(shared: Path) -> None:
    for name, rows in (("beads-head.jsonl", 188), ("beads-2026-04.jsonl", 839)):
        tracker = read_tracker(shared / "data/ddx" / name)
        assert (len(tracker.beads), len(tracker.dropped), dict(tracker.folded)) == (rows, 0, {})


def _large(folder: Path, beads: int = 1_200, change: Mapping[str, str] | None = None) -> Path:
    """A tracker of some nine MB: large enough to be put away."""
    change = change or {}
    path = folder / "beads.jsonl"
    draft = folder / "next"
    with draft.open("w") as file:
        for number in range(beads):
            row = {"id": f"b-{number}", "title": change.get(f"b-{number}", "as it was"), "notes": "x" * 7_500}
            file.write(json.dumps(row) + "\n")
    draft.rename(path)
    return path


def test_lines_of_a_large_tracker_are_put_away_and_read_as_before(tmp_path: Path) -> None:
    reader = TrackerReader(_large(tmp_path))
    before = reader.read().beads
    raw = {bead_id: bead.raw for bead_id, bead in before.items()}
    in_memory = before["b-1"].where[0]
    reader.rest()
    assert before["b-1"].where[0] is not in_memory
    assert {bead_id: bead.raw for bead_id, bead in before.items()} == raw
    _large(tmp_path, change={"b-7": "another"})
    after = reader.read().beads
    reader.rest()
    assert [bead_id for bead_id in after if after[bead_id] is not before[bead_id]] == ["b-7"]
    assert after["b-7"].document()["title"] == "another"
    assert before["b-7"].document()["title"] == "as it was"
    assert after["b-6"].raw == raw["b-6"]


def test_a_disk_without_room_leaves_the_lines_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    reader = TrackerReader(_large(tmp_path))
    beads = reader.read().beads
    reader.rest()
    assert beads["b-1100"].document()["id"] == "b-1100"


def test_of_many_states_only_the_lines_in_use_are_kept(tmp_path: Path) -> None:
    reader = TrackerReader(_large(tmp_path))
    reader.read()
    reader.rest()
    base = reader.read().beads["b-0"].where[0]
    changed: dict[str, str] = {}
    for turn in range(6):
        changed |= {f"b-{number}": f"turn {turn}" for number in range(turn * 20, turn * 20 + 20)}
        _large(tmp_path, change=changed)
        beads = reader.read().beads
        reader.rest()
        kept = {id(bead.where[0]): len(bead.where[0]) for bead in beads.values()}
        assert sum(kept.values()) < 9.5e6 + 20 * (turn + 1) * 7_700
    assert beads["b-1199"].where[0] is base
    changed |= {f"b-{number}": "all of these" for number in range(600)}
    _large(tmp_path, change=changed)
    beads = reader.read().beads
    assert len({id(bead.where[0]) for bead in beads.values()}) == 1, "more than a few: kept whole"
    assert beads["b-3"].document()["title"] == "all of these"
