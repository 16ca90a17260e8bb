"""The evidence of a run as paragraphs.

Spans with their code, why each was kept or dropped; two runs compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.widgets.text.answer import Document, open_key
from helix_tui.widgets.text.code import highlighted
from helix_tui.widgets.text.pane import Para, section

MOST_LINES = 60
"""Lines of one span that are shown."""


def evidence_paras(document: Document) -> list[Para]:
    """Every span that was kept, with its code and why; below them those that were dropped."""
    kept, dropped = document.get("evidence") or (), document.get("dropped") or ()
    paras = [section("kept", f"{len(kept)}")] if kept else []
    for number, one in enumerate(kept):
        paras += _span_head(f"kept {number}", one)
        paras += _span_lines(number, one)
    if dropped:
        paras.append(section("dropped", f"{len(dropped)}", key="dropped"))
    for number, one in enumerate(dropped):
        paras += _span_head(f"dropped {number}", one)
    return paras or [Para("none", (("nothing was found", "muted"),))]


def _span_head(key: str, one: Mapping[str, Any]) -> Iterator[Para]:
    file = clean_line(one.get("file"), 300)
    header = clean_line(one.get("header"), 160)
    place = f"{file}:{one.get('start')}–{one.get('end')}"
    yield Para(
        open_key(one.get("file"), one.get("start"), key),
        ((place, "text bold"), (f"  {header}" if header else "", "muted")),
        ((f"{one.get('score', 0):.2f}", "muted"),),
        hang=2,
        landmark=True,
        opens=True,
    )
    found_by = (one.get("channels") or {}).items()
    channels = " ".join(f"{clean_line(name, 20)} {value:.2f}" for name, value in found_by)
    slots = ", ".join(clean_line(slot, 40) for slot in one.get("slots") or ())
    parts = [clean_line(one.get("why"), 120), clean_line(one.get("part"), 20)]
    parts.append(f"via {clean_line(one.get('via'), 20)}")
    parts += [f"slots {slots}"] if slots else []
    parts += [channels] if channels else []
    yield Para(f"{key} why", ((f"  {' · '.join(part for part in parts if part)}", "muted"),), hang=4)


def _span_lines(place: int, one: Mapping[str, Any]) -> Iterator[Para]:
    """The lines of a span in the inks of its language, numbered as in its file."""
    file = str(one.get("file", ""))
    lines = highlighted(clean_block(one.get("text")), file)
    for number, spans in enumerate(lines[:MOST_LINES], int(one.get("start") or 1)):
        key = open_key(file, number, f"line {place}")
        yield Para(key, ((f"{number:>6}  ", "edge"), *spans), wrap="cells", hang=8)
    if len(lines) > MOST_LINES:
        more = f"        … {len(lines) - MOST_LINES} more lines"
        yield Para(f"more {place}", ((more, "muted"),))
    yield Para(f"gap {place}")


_SIGNS = {
    "same": ("=", "muted"),
    "changed": ("~", "waiting"),
    "added": ("+", "success"),
    "removed": ("−", "error"),
}


def compare_paras(changes: Sequence[Any], before: str, after: str) -> list[Para]:
    """How the items of two runs differ; ``changes`` are `core.ask`'s item changes."""
    counts = {kind: sum(one.kind == kind for one in changes) for kind in _SIGNS}
    said = " · ".join(f"{count} {kind}" for kind, count in counts.items())
    paras = [
        Para("before", (("− ", "error"), (clean_line(before, 300), "text"))),
        Para("after", (("+ ", "success"), (clean_line(after, 300), "text"))),
        section("items", said),
    ]
    for number, one in enumerate(sorted(changes, key=lambda one: one.kind == "same")):
        sign, ink = _SIGNS[one.kind]
        hashes = one.after if one.kind in ("same", "added") else f"{one.before} → {one.after or 'gone'}"
        place = " ".join(part for part in (clean_line(one.path, 200), clean_line(one.header, 120)) if part)
        paras.append(
            Para(
                f"item {number}",
                ((f"{sign} ", ink), (f"{one.type.replace('_', ' ')}  ", "muted"), (place, "text")),
                ((hashes, "muted"),),
                hang=2,
            )
        )
    return paras
