"""A bead's events: in its record, or, once it is closed at head, in a file of their own.

Formats: docs/formats/ddx.md §1. Existing events are kept unchanged, whatever else they
hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helix_ddx.files import compact, go_json, loads, stamp, time_text
from helix_ddx.flags import Refused
from helix_ddx.store.places import TrackerRow
from helix_ddx.store.tracker import write_whole
from helix_tui.core.beads.record import UnreadableLine
from helix_tui.core.ground.files import RefusedFileError, open_file, path_part, read_bytes

MAX_FIELD = 65_535
"""Bytes of one field of an event; what is longer loses its middle."""

_WORDS = ("actor", "body", "created_at", "kind", "source", "summary")

Event = dict[str, Any]


def new_event(kind: str, at: int, *, summary: str = "", body: str = "", actor: str = "", source: str = "") -> Event:
    """One entry of a bead's history."""
    return {
        "actor": actor,
        "body": capped(body),
        "created_at": stamp(at),
        "kind": kind,
        "source": source,
        "summary": capped(summary),
    }


def capped(text: str) -> str:
    """A field no longer than DDx allows: two thirds of its beginning, a third of its end."""
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_FIELD:
        return text
    marker = f"\n…[truncated, {len(data)} bytes]\n".encode()
    budget = MAX_FIELD - len(marker)
    head = budget * 2 // 3
    # cut by bytes: the half of a character at either cut is dropped
    return (data[:head] + marker + data[len(data) - (budget - head) :]).decode("utf-8", "ignore")


def attachment(ddx: Path, bead_id: str) -> Path:
    """The file in which head keeps the events of a closed bead.

    Raises:
        Refused: the id cannot be the name of a folder.
    """
    try:
        return ddx / "attachments" / path_part(bead_id) / "events.jsonl"
    except RefusedFileError as error:
        raise Refused(f"bead: {bead_id}: {error.strerror}") from None


def is_attached(row: TrackerRow) -> bool:
    """Whether the bead's events lie in a file of their own."""
    return bool(row.text("events_attachment").strip())


def events_of(row: TrackerRow, ddx: Path) -> list[Event]:
    """A bead's events, wherever they are stored."""
    if is_attached(row):
        return read_attachment(attachment(ddx, row.text("id")))
    return [event for event in _decoded(row) if isinstance(event, dict)]


def read_attachment(path: Path) -> list[Event]:
    """The events of a closed bead; a file that is not there holds none.

    Raises:
        Refused: a line of it is no event.
    """
    try:
        with open_file(path) as file:
            data = file.read()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Refused(f"bead: read events attachment {path}: {error.strerror}") from None
    events: list[Event] = []
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            event = loads(line)
        except (ValueError, RecursionError) as error:
            raise Refused(f"bead: parse events attachment {path}: {error}") from None
        if not isinstance(event, dict):
            raise Refused(f"bead: parse events attachment {path}: not an object")
        events.append(event)
    return events


def add_inline(row: TrackerRow, *events: Event) -> None:
    """Add events to a record.

    Raises:
        Refused: its ``events`` are no list.
    """
    try:
        kept = row.items("events")
    except UnreadableLine as problem:
        raise Refused(f"bead: {row.text('id')}: {problem}; nothing was written") from None
    row.put_list("events", kept + [go_json(event).encode() for event in events])


def add_attached(ddx: Path, bead_id: str, event: Event) -> None:
    """Add an event to the file of a closed bead."""
    path = attachment(ddx, bead_id)
    data = read_bytes(path, 1 << 30) or b""
    # a last line without its end must not run into ours
    if data and not data.endswith(b"\n"):
        data += b"\n"
    write_whole(path, data + _attached_line(event))


def move_out(row: TrackerRow, ddx: Path) -> None:
    """Put a closed bead's events into their own file; the file is there before the record forgets them."""
    events = _decoded(row)
    if not events or not all(isinstance(event, dict) for event in events):
        return
    bead_id = row.text("id")
    # the file first: killed in between, the events are there twice, and not lost
    write_whole(attachment(ddx, bead_id), b"".join(_attached_line(event) for event in events))
    row.drop("events")
    row.put("events_attachment", f"{bead_id}/events.jsonl")


def move_in(row: TrackerRow, ddx: Path) -> None:
    """Put the events of a bead back into its record."""
    if not is_attached(row):
        return
    events = read_attachment(attachment(ddx, row.text("id")))
    row.put_list("events", [compact(event).encode("utf-8", "replace") for event in events])
    row.drop("events_attachment")


def last_verdict(events: list[Event]) -> str:
    """What the last review said, empty where there was none."""
    known = ("APPROVE", "BLOCK", "REQUEST_CHANGES", "REQUEST_CLARIFICATION")
    verdicts = [str(event.get("summary", "")).strip().upper() for event in events if event.get("kind") == "review"]
    return next((verdict for verdict in reversed(verdicts) if verdict in known), "")


def shown(event: Event) -> dict[str, Any]:
    """An event as ``evidence list --json`` has it: no empty fields, in DDx's order."""
    words = {name: event.get(name) for name in _WORDS}
    texts = {name: word if isinstance(word, str) else "" for name, word in words.items()}
    ordered: dict[str, Any] = {"kind": texts["kind"]}
    ordered |= {name: texts[name] for name in ("summary", "body", "actor") if texts[name]}
    ordered["created_at"] = time_text(texts["created_at"])
    ordered |= {"source": texts["source"]} if texts["source"] else {}
    return ordered


def _decoded(row: TrackerRow) -> list[Any]:
    value = row.value("events")
    return value if isinstance(value, list) else []


def _attached_line(event: Event) -> bytes:
    """One line of an attachment, in which ``<>&`` stay as they are, unlike in the tracker."""
    return compact(event, html=False).encode("utf-8", "replace") + b"\n"
