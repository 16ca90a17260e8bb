"""Instants: DDx's times, to the nanosecond and as strict as Go."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.ground.time import NS, format_age, format_instant, format_span, parse_instant, parse_now


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1970-01-01T02:00:00+02:00", 0),
        ("0001-01-01T00:00:00Z", -62_135_596_800 * NS),
        ("1969-12-31T23:59:59.25Z", -750_000_000),
        ("2026-02-30T00:00:00Z", None),
        ("2026-08-21", None),
        ("2026-08-21T22:00:28", None),
        ("2026-08-21 22:00:28Z", None),
        ("2026-08-21T22:00:28Z\n", None),
        ("", None),
        (None, None),
        (1755813628, None),
    ],
)
def test_parse_instant(text: object, want: int | None) -> None:
    assert parse_instant(text) == want


@given(st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)), st.integers(0, 999_999_999))
def test_every_instant_survives(moment: datetime, nanoseconds: int) -> None:
    text = moment.replace(microsecond=0).isoformat() + f".{nanoseconds:09d}".rstrip("0").rstrip(".") + "Z"
    seconds = int(moment.replace(microsecond=0, tzinfo=UTC).timestamp())
    assert parse_instant(text) == seconds * NS + nanoseconds
    assert format_instant(seconds * NS + nanoseconds) == moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_now_may_be_written_shorter() -> None:
    assert parse_now("2026-08-21") == parse_now("2026-08-21T00:00:00Z") == parse_now("2026-08-21T00:00:00")
    assert parse_now("2026-08-21T02:00:00+02:00") == parse_now("2026-08-21")
    with pytest.raises(ValueError, match="write it like"):
        parse_now("yesterday")


def test_ages_and_spans_are_short() -> None:
    assert [format_age(s) for s in (-5, 12, 300, 7200, 86_400 * 3, 86_400 * 40, 86_400 * 900)] == [
        "0s", "12s", "5m", "2h", "3d", "5w", "2y",
    ]  # fmt: skip
    assert [format_span(s) for s in (5, 252, 18_720, 180_000)] == ["5s", "4m 12s", "5h 12m", "2d 2h"]


def test_an_instant_beyond_all_calendars_is_their_last_second() -> None:
    latest = parse_instant("9999-12-31T23:59:59.999999999-14:00")
    assert latest is not None
    assert format_instant(latest + 90 * NS) == format_instant(10**30) == "9999-12-31T23:59:59Z"
