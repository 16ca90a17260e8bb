"""A run as paragraphs: its answer with citations, sources, tree walk and coverage; its steps; its evidence.

Everything is drawn from the run's document, the same that ``helix-tui ask --json`` prints and the history
keeps, so a past run shows as a new one does. A paragraph's key says where enter leads: ``open FILE:LINE``,
``sense LABEL``.

The evidence of a run as paragraphs.

Spans with their code, why each was kept or dropped; two runs compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.figures import tier_ink
from helix_tui.widgets.text.markdown import highlighted
from helix_tui.widgets.text.pane import Para, section

Document = Mapping[str, Any]

SENSE_KEYS = ("A", "B")
_OPEN, _SENSE = "open ", "sense "


def open_key(file: object, line: object, tag: object = "") -> str:
    """The key of a paragraph that leads to a line of a file; the tag keeps keys apart."""
    return f"{_OPEN}{tag}\t{line}\t{file}"


def target_of(key: str) -> tuple[str, int] | None:
    """The file and line that a paragraph's key leads to."""
    if not key.startswith(_OPEN):
        return None
    _, line, file = key.split("\t", 2)
    return file, int(line) if line.isdigit() else 1


def sense_of(key: str) -> str:
    """The sense that a paragraph's key chooses; empty where it chooses none."""
    return key.removeprefix(_SENSE) if key.startswith(_SENSE) else ""


_CITED = re.compile(r"(\[\d[\d,;–\- ]*\])")


# --- the answer -------------------------------------------------------------------------------------------


def answer_paras(document: Document) -> list[Para]:
    """The answer, what it rests on, and what is missing."""
    return [
        *_head(document),
        *_body(document),
        *_options(document),
        *_sources(document),
        *_walk(document),
        *_coverage(document),
        *_counts(document),
    ]


def _head(document: Document) -> Iterator[Para]:
    title, *rest = clean_block(document.get("question"), 4_000).split("\n")
    yield Para("question", ((title, "text bold"),))
    if any(line.strip() for line in rest):
        yield Para("question more", ((f"… {len(rest)} more lines of the question", "muted"),))
    glyph, ink = tier_ink(document.get("tier_selected", ""))
    spans: list[Span] = [(f"{glyph} {clean_line(document.get('tier_selected'), 40).lower()}", f"{ink} bold")]
    stop = clean_line(document.get("retrieval_stop_reason"), 40)
    spans.append((f" · {_slot_count(document)} · {stop} · {_seconds(document)}", "muted"))
    yield Para("tier", tuple(spans))
    detail = clean_line(document.get("retrieval_stop_detail"), 200)
    if detail:
        yield Para("tier detail", ((detail, "muted"),))
    yield Para("head end")


def _slot_count(document: Document) -> str:
    required = [slot for slot in document.get("slots", ()) if slot.get("required")]
    covered = sum(bool(slot.get("covered_by")) for slot in required)
    return f"{covered} of {len(required)} slot{'s' * (len(required) != 1)}"


def _seconds(document: Document) -> str:
    return f"{(document.get('timings_ms') or {}).get('total', 0.0) / 1_000:.2f} s"


def _body(document: Document) -> Iterator[Para]:
    """The text of the answer; its list of sources follows as rows of its own."""
    text = clean_block(document.get("answer")).partition("\n\nSources:\n")[0]
    for number, line in enumerate(text.split("\n")):
        key = f"answer {number}"
        if not line.strip():
            yield Para(key)
        elif re.fullmatch(r"[A-Z][\w ]{2,40}:", line):
            yield Para(key, ((line, "muted bold"),))
        else:
            bullet = "• " if line.startswith("- ") else ""
            yield Para(key, tuple(_cited(bullet + line.removeprefix("- "))), hang=len(bullet))


def _cited(text: str) -> Iterator[Span]:
    """A line with its citations and names apart."""
    for piece in _CITED.split(text):
        if _CITED.fullmatch(piece):
            yield piece, "running"
        else:
            for place, part in enumerate(piece.split("`")):
                if part:
                    yield part, "text bold" if place % 2 else "text"


def _options(document: Document) -> Iterator[Para]:
    options = (document.get("clarify") or {}).get("options") or ()
    if not options:
        return
    yield Para("options start")
    for key, option in zip(SENSE_KEYS, options, strict=False):
        label = clean_line(option.get("label"), 120)
        spans: tuple[Span, ...] = ((f"{key}  ", "attention bold"), (label, "text bold"))
        score: tuple[Span, ...] = ((f"{option.get('score', 0):.2f}", "muted"),)
        yield Para(f"{_SENSE}{option.get('label')}", spans, score, opens=True)
        said = clean_line(option.get("says"), 300)
        where = clean_line(option.get("at"), 200)
        if said:
            yield Para(f"says {key}", ((f"   {said} ", "text"), (where, "muted")), hang=3)


def _sources(document: Document) -> Iterator[Para]:
    citations = document.get("citations") or ()
    if citations:
        yield section("sources", "enter opens")
    for one in citations:
        number, file = one.get("id"), clean_line(one.get("file"), 300)
        first, last = one.get("start"), one.get("end")
        place = f"{first}" if first == last else f"{first}–{last}"
        spans = ((f"[{number}] ", "running"), (f"{file}:{place}", "text"))
        header = clean_line(one.get("header"), 120)
        more: tuple[Span, ...] = ((f"  {header}", "muted"),) if header else ()
        yield Para(open_key(one.get("file"), first, number), (*spans, *more), hang=4, opens=True)


def _walk(document: Document) -> Iterator[Para]:
    nodes = document.get("tree_walk") or ()
    if not nodes:
        return
    bound = sum(bool(node.get("bound")) for node in nodes)
    depth = clean_line(document.get("tree_walk_depth"), 40).replace("_", " ")
    yield section("tree walk", f"{depth} · {bound} of {len(nodes)} bound")
    for number, node in enumerate(nodes):
        indent = "  " * min(8, int(node.get("depth") or 0))
        is_bound = bool(node.get("bound"))
        title = clean_line(node.get("title"), 120)
        glyph, ink = ("● ", "text") if is_bound else ("· ", "muted")
        spans: list[Span] = [(indent + glyph, "success" if is_bound else "muted"), (title, ink)]
        if node.get("stale"):
            spans.append(("  stale", "waiting"))
        key = f"walk {number}"
        place = str(node.get("span") or "")
        if is_bound and place:
            file, _, lines = place.rpartition(":")
            key = open_key(file, lines.partition("-")[0], f"walk {number}")
            spans.append((f"  {clean_line(place, 120)}", "muted"))
        yield Para(key if number == 0 or is_bound else f"walk {number}", tuple(spans), wrap="no", opens=is_bound)


def _coverage(document: Document) -> Iterator[Para]:
    slots = [slot for slot in document.get("slots", ()) if slot.get("required")]
    if slots:
        yield section("coverage")
    for slot in slots:
        places = [clean_line(place, 120) for place in slot.get("covered_by") or ()]
        label = clean_line(slot.get("label"), 80)
        glyph: Span = ("✓ ", "success") if places else ("✗ ", "attention")
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        said = f"{places[0]}{more}" if places else "not found"
        yield Para(f"slot {slot.get('id')}", (glyph, (label, "text"), (f"  {said}", "muted")), hang=2)


def _counts(document: Document) -> Iterator[Para]:
    kept, dropped = document.get("compaction_kept", 0), document.get("compaction_dropped", 0)
    ratio, least = document.get("grounded_claim_ratio", 0.0), document.get("grounded_claim_threshold", 0.0)
    sign = "≥" if ratio >= least else "<"
    yield Para("counts start")
    yield Para(
        "counts",
        ((f"kept {kept} · dropped {dropped} (o why) · claims {ratio:.2f} {sign} {least:.2f}", "muted"),),
    )
    model = document.get("model") or {}
    if model:
        yield Para("model", ((_model_line(document, model), "muted"),))


def _model_line(document: Document, model: Mapping[str, Any]) -> str:
    name = clean_line(model.get("model") or model.get("harness") or model.get("command"), 60)
    tokens = [count for count in (model.get("input_tokens"), model.get("output_tokens")) if count is not None]
    spent = f" · {sum(tokens):,} tok" if tokens else ""
    cost = f" · ${model['cost_usd']:.4f}" if model.get("cost_usd") is not None else ""
    why = clean_line(document.get("tool_results_fallback_reason"), 200)
    return f"model {name}{spent}{cost}" + (f" · not taken: {why}" if why else "")


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
