"""Events of a bead that lie beside its row: DDx moves a closed bead's events into an attachment.

Format: docs/formats/ddx.md §1; one JSON object a line, under ``.ddx/attachments``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.files import decode_object, read_bytes

_CAP = 16 << 20


def attached_events(ddx_dir: Path, bead: Bead) -> list[dict[str, Any]]:
    """The events in a bead's attachment, in the order of the file; a line that is no event is passed over.

    A name that leads out of the attachments folder is not followed.
    """
    folder = ddx_dir / "attachments"
    path = folder / bead.events_attachment
    if not bead.events_attachment or ".." in path.parts or not path.is_relative_to(folder):
        return []
    events = []
    for line in (read_bytes(path, _CAP) or b"").split(b"\n"):
        try:
            event = decode_object(line)
        except ValueError:
            continue
        events.append(event)
    return events
