"""What a command does not mean to change stays as it is, to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helix_ddx.files import loads, pretty, time_text
from helix_ddx.store.places import TrackerRow
from tests.helix_ddx.bead.conftest import MakeDesk

ODD = (
    '{"id":"demo-2","zz":1.50,"title":"second","status":"open","big":1e400,"deep":{"b":[1.0,{"a":null}],"a":"<&>"},'
    '"huge":123456789012345678901234567890,"priority":2,"escaped":"\\u003c\\ud83d\\ude00 \\/","raw":"<é>",'
    '"created_at":"2026-04-01T00:00:00Z","updated_at":"2026-04-01T00:00:00Z" }'
)
"""A record that DDx would not write so: unsorted, with numbers and escapes of odd spelling."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def test_a_record_that_nobody_touched_keeps_its_bytes(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"}, ODD, {"id": "demo-3"})
    bench.must("update", "demo-1", "--title", "new")
    bench.must("create", "another", "--priority", "2")
    bench.must("dep", "add", "demo-3", "demo-1")
    assert ODD in bench.tracker.read_text().split("\n")


def test_a_record_that_was_touched_keeps_the_spelling_of_every_other_field(desk: MakeDesk) -> None:
    bench = desk(ODD)
    bench.must("update", "demo-2", "--set", "spec-id=FEAT-1")
    line = bench.tracker.read_text().rstrip("\n")
    for part in (
        '"zz":1.50',
        '"big":1e400',
        '"deep":{"b":[1.0,{"a":null}],"a":"<&>"}',
        '"huge":123456789012345678901234567890',
        '"escaped":"\\u003c\\ud83d\\ude00 \\/"',
        '"raw":"<é>"',
        '"spec-id":"FEAT-1"',
    ):
        assert part in line
    names = [name for name, _ in json.JSONDecoder(object_pairs_hook=list).decode(line)]
    assert names == sorted(names)


def test_bytes_that_are_no_text_survive(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"}, b'{"id":"demo-2","title":"\xff\xfe","status":"open","x":"\\ud800"}')
    bench.must("update", "demo-1", "--priority", "1")
    bench.must("update", "demo-2", "--priority", "1")
    data = bench.tracker.read_bytes()
    assert b'"title":"\xff\xfe"' in data
    assert b'"x":"\\ud800"' in data


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=st.dictionaries(st.text(max_size=8), JSON, max_size=5))
@pytest.mark.long
def test_any_record_comes_back_as_it_went(fields: dict[str, object]) -> None:
    line = json.dumps({**fields, "id": "demo-1"}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    again = TrackerRow.of(line).line()
    assert json.loads(again) == {**fields, "id": "demo-1"}
    assert TrackerRow.of(again).line() == again


@settings(max_examples=100)
@given(value=JSON)
def test_indented_json_means_the_same(value: object) -> None:
    text = json.dumps(value)
    assert json.loads(pretty(loads(text))) == json.loads(text)
    assert not set("<>&\u2028\u2029") & set(pretty(loads(text)))


@pytest.mark.parametrize(
    ("written", "again"),
    [
        ("2026-04-01T00:00:00Z", "2026-04-01T00:00:00Z"),
        ("2026-04-01T00:00:00.120Z", "2026-04-01T00:00:00.12Z"),
        ("2026-04-01T00:00:00.000Z", "2026-04-01T00:00:00Z"),
        ("2026-04-01T02:00:00.5+02:00", "2026-04-01T02:00:00.5+02:00"),
        ("2026-04-01T00:00:00.1234567891Z", "2026-04-01T00:00:00.123456789Z"),
        ("yesterday", "0001-01-01T00:00:00Z"),
        ("", "0001-01-01T00:00:00Z"),
    ],
)
def test_times_are_written_as_go_writes_them(written: str, again: str) -> None:
    assert time_text(written) == again


@pytest.mark.parametrize(
    "spoiled",
    ['{"id": "demo-9", ', "not json", "[1]", '{"title":"no id"}', '{"id":"demo-9","x":NaN}', "\x00\x01"],
)
def test_a_file_with_a_line_that_is_no_record_is_read_but_never_written(spoiled: str, desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"}, spoiled, {"id": "demo-2"})
    before = bench.tracker.read_bytes()
    listed = bench("list", "--json")
    assert (listed.rc, [row["id"] for row in listed.json]) == (0, ["demo-1", "demo-2"])
    assert listed.err.startswith("bead: read line 2: ")
    for words in (
        ("create", "x"),
        ("update", "demo-1", "--priority", "1"),
        ("update", "demo-1", "--claim"),
        ("close", "demo-1"),
        ("dep", "add", "demo-1", "demo-2"),
        ("evidence", "add", "demo-1"),
    ):
        answer = bench(*words)
        assert answer.rc == 1
        assert "line 2 is not a record" in answer.error
        assert "nothing was written" in answer.error
    assert bench.tracker.read_bytes() == before
    assert sorted(path.name for path in bench.tracker.parent.iterdir()) == ["beads.jsonl"]


def test_a_parse_rows_nothing_but_rubbish_is_an_error(desk: MakeDesk) -> None:
    answer = desk("rubbish", "{")("list")
    assert answer.rc == 1
    assert "2 malformed record(s), 0 valid" in answer.error


def test_a_list_that_is_none_is_not_written_over(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1", "dependencies": "oops"}, {"id": "demo-2"}, {"id": "demo-3", "events": 7})
    before = bench.tracker.read_bytes()
    assert "dependencies is not a list" in bench("dep", "add", "demo-1", "demo-2").error
    assert "events is not a list" in bench("evidence", "add", "demo-3").error
    assert bench.tracker.read_bytes() == before


def test_a_tracker_that_cannot_be_written_stays(desk: MakeDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = desk({"id": "demo-1"})
    before = bench.tracker.read_bytes()

    def full(_: Path, __: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", full)
        answer = bench("update", "demo-1", "--priority", "1")
    assert answer.rc == 1
    assert "No space left on device" in answer.error
    assert bench.tracker.read_bytes() == before
    assert not list(bench.tracker.parent.glob("*.tmp-*"))
    assert not list(bench.tracker.parent.glob("*.lock"))
