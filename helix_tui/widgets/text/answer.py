"""A run of Ask as paragraphs: its answer, its sources with their lines, what was not found, its evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helix_tui.core.ask.records import field_lines, record_place
from helix_tui.core.ask.sessions.envelope import (
    answer_blocks,
    reservations_of,
    result_of,
    seconds_of,
    sources_of,
    walk_belongs_to_answer,
    what_would_decide,
)
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.figures import result_ink
from helix_tui.widgets.text.highlight import highlighted
from helix_tui.widgets.text.pane import Para, Wrap, section

Document = Mapping[str, Any]
SENSE_KEYS = ("A", "B")
_OPEN, _SENSE, _RECORD = "open ", "sense ", "record "

_CITED = re.compile(r"(\[\d[\d,;–\- ]*\])")

MAX_LINES = 60
"""How many lines of one span are shown."""


def open_key(file: object, line: object, tag: object = "") -> str:
    """The key of a paragraph that leads to a line of a file; the tag keeps keys apart."""
    return f"{_OPEN}{tag}\t{line}\t{file}"


def target_of(key: str) -> tuple[str, int] | None:
    """The file and line that a paragraph's key leads to."""
    if not key.startswith(_OPEN):
        return None
    _, line, file = key.split("\t", 2)
    return file, int(line) if line.isdigit() else 1


def record_key(kind: str, ident: str, tag: object = "") -> str:
    """The key of a paragraph that leads to a record."""
    return f"{_RECORD}{tag}\t{kind}\t{ident}"


def record_of(key: str) -> tuple[str, str] | None:
    """The kind and id of the record that a paragraph's key leads to."""
    if not key.startswith(_RECORD):
        return None
    _, kind, ident = key.split("\t", 2)
    return kind, ident


def sense_of(key: str) -> str:
    """The sense that a paragraph's key chooses; empty if it chooses none."""
    return key.removeprefix(_SENSE) if key.startswith(_SENSE) else ""


def file_paras(text: str, files: Sequence[Any]) -> list[Para]:
    """The files that match what is being typed, each with its best line; ``files`` are `core.evidence`'s."""
    if not files:
        return [Para("none", ((f"no file mentions “{clean_line(text, 60)}”", "muted"),))]
    paras = [section("files", "enter asks")]
    for number, file in enumerate(files):
        header: tuple[Span, ...] = ((f"  {clean_line(file.header, 100)}", "muted"),) if file.header else ()
        key = open_key(file.file, file.line, f"file {number}")
        paras.append(Para(key, ((clean_line(file.file, 300), "text bold"), *header), wrap="no", opens=True))
        if file.text:
            spans: tuple[Span, ...] = ((f"{file.line:>6}  ", "edge"), (clean_line(file.text, 300), "text"))
            paras.append(Para(open_key(file.file, file.line, f"line {number}"), spans, wrap="no"))
    return paras


def answer_paras(document: Document) -> list[Para]:
    """The answer, its sources with their lines, and what was not found."""
    return [
        *_head(document),
        *body_paras(document),
        *_options(document),
        *_sources(document),
        *_would_decide(document),
        *_walk(document, own=True),
        *_model(document),
    ]


def _head(document: Document) -> Iterator[Para]:
    title, *rest = clean_block(document.get("question"), 4_000).split("\n")
    yield Para("question", ((title, "text bold"),))
    if any(line.strip() for line in rest):
        yield Para("question more", ((f"… {counted(len(rest), 'more line')} of the question", "muted"),))
    follows = clean_line((document.get("follows") or {}).get("question"), 200)
    if follows:
        yield Para("follows", ((f"↳ follows: {follows}", "muted"),), hang=2)
    result = result_of(document)
    glyph, ink = result_ink(result)
    yield Para("result", ((f"{glyph} {result}", f"{ink} bold"), (f" · {seconds_of(document):.2f} s", "muted")))
    for number, said in enumerate(reservations_of(document)):
        yield Para(f"reservation {number}", ((said, "waiting"),))
    yield Para("head end")


def body_paras(document: Document, text: str | None = None, tag: str = "answer") -> Iterator[Para]:
    """The text of an answer; code is highlighted by language, and numbered if its place is known."""
    for number, block in enumerate(answer_blocks(document, text)):
        key = f"{tag} {number}"
        if block.kind == "gap":
            yield Para(key)
        elif block.kind == "title":
            yield Para(key, ((block.text, "muted bold"),))
        elif block.kind == "code":
            yield from code_paras(key, block.text.split("\n"), block.file, block.start)
        else:
            bullet = "• " if block.kind == "item" else ""
            yield Para(key, tuple(_cited(bullet + block.text)), hang=len(bullet))


def _wrap_of(file: str) -> Wrap:
    """Where a line of a file may break: prose between words, code anywhere, because its blanks matter."""
    return "words" if file.lower().endswith((".md", ".rst", ".txt", ".adoc")) else "cells"


def code_paras(tag: str, lines: Sequence[str], file: str, start: int, *, indent: int = 2) -> Iterator[Para]:
    """Highlighted lines of a file; enter opens the file at the line."""
    width = len(str(start + len(lines)))
    place = record_place(file)
    for number, spans in enumerate(highlighted("\n".join(lines), file), start):
        key = open_key(file, number, tag) if file else f"{tag} {number}"
        key = record_key(place.kind, place.id, f"{tag} {number}") if place is not None else key
        said = f"{number:>{width}}  " if start else ""
        yield Para(key, ((" " * indent + said, "edge"), *spans), wrap=_wrap_of(file), hang=indent + len(said))


def _cited(text: str) -> Iterator[Span]:
    """A line with citations and names as separate spans."""
    for piece in _CITED.split(text):
        if _CITED.fullmatch(piece):
            yield piece, "running"
        else:
            for place, part in enumerate(piece.split("`")):
                if part:
                    # every second part was between backquotes
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
    sources = list(sources_of(document))
    if sources:
        yield section("sources", "enter opens")
    for source in sources:
        key = (
            open_key(source.id, source.start, source.number)
            if source.kind == "file"
            else record_key(source.kind, source.id, source.number)
        )
        header: tuple[Span, ...] = ((f"  {source.header}", "muted"),) if source.header else ()
        yield Para(key, ((f"[{source.number}] ", "running"), (source.words, "text"), *header), hang=4, opens=True)
        if source.lines:
            file = source.file if source.kind == "file" else ""
            yield from code_paras(f"source {source.number}", source.lines, file, source.start if file else 0, indent=4)
        if source.more:
            yield Para(f"more {source.number}", ((f"    … {counted(source.more, 'more line')}", "muted"),))


def _would_decide(document: Document) -> Iterator[Para]:
    decide = what_would_decide(document)
    if decide:
        yield section("what would decide")
        for number, line in enumerate(decide):
            yield Para(f"decide {number}", (("• ", "muted"), (line, "text")), hang=2)


def _walk(document: Document, *, own: bool) -> Iterator[Para]:
    """The evidence's place in the trees; with ``own`` only where it belongs to the answer."""
    nodes = document.get("tree_walk") or ()
    if not nodes or (own and not walk_belongs_to_answer(document)):
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
        for line in field_lines(node.get("fields") or {}):
            yield Para(f"walk {number} {line}", ((f"{indent}    {clean_line(line, 200)}", "muted"),), wrap="no")


def coverage_paras(document: Document) -> Iterator[Para]:
    """The slots that needed evidence, and where it was found: part of the steps."""
    yield from _walk(document, own=False)
    slots = [slot for slot in document.get("slots", ()) if slot.get("required")]
    if slots:
        yield section("coverage", f"{sum(bool(slot.get('covered_by')) for slot in slots)} of {len(slots)} slots")
    for slot in slots:
        places = [clean_line(place, 120) for place in slot.get("covered_by") or ()]
        label = clean_line(slot.get("label"), 80)
        glyph: Span = ("✓ ", "success") if places else ("✗ ", "attention")
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        said = f"{places[0]}{more}" if places else "not found"
        yield Para(f"slot {slot.get('id')}", (glyph, (label, "text"), (f"  {said}", "muted")), hang=2)
    kept, dropped = document.get("compaction_kept", 0), document.get("compaction_dropped", 0)
    ratio, least = document.get("grounded_claim_ratio", 0.0), document.get("grounded_claim_threshold", 0.0)
    sign = "≥" if ratio >= least else "<"
    tier = clean_line(document.get("tier_selected"), 40).lower()
    said = f"{tier} · kept {kept} · dropped {dropped} · claims {ratio:.2f} {sign} {least:.2f}"
    yield Para("counts", ((said, "muted"),))


def _model(document: Document) -> Iterator[Para]:
    model = document.get("model") or {}
    if model:
        yield Para("model gap")
        yield Para("model", ((_model_line(document, model), "muted"),))
    if "answer_without_model" in document:
        left_out = len(model.get("left_out") or ())
        said = f"{counted(left_out, 'claim')} left out: not in what is cited · " if left_out else ""
        yield Para("model compared", ((f"{said}“compare” has the answer without it", "muted"),), hang=2)


def two_answers_paras(document: Document) -> list[Para]:
    """The answers with and without the model, one below the other, and what only one of them cites."""
    mine = [one.get("item") for one in document.get("citations_without_model") or ()]
    its = [one.get("item") for one in document.get("citations") or ()]
    both = len(set(mine) & set(its))
    counts = f"in both {both} · only with the model {len(its) - both} · only without {len(mine) - both}"
    without = result_of({**document, "tier": document.get("result_without_model", "")})
    paras = [section("with the model", result_of(document)), *body_paras(document, tag="with")]
    paras += [section("without it", without), *body_paras(document, str(document["answer_without_model"]), "without")]
    paras += [section("sources"), Para("sources counted", ((counts, "text"),))]
    for number, one in enumerate((document.get("model") or {}).get("left_out") or ()):
        said = f"left out: {clean_line(one.get('text'), 300)}"
        paras.append(Para(f"left {number}", ((said, "attention"), (f"  {clean_line(one.get('why'), 200)}", "muted"))))
    return paras


def _model_line(document: Document, model: Mapping[str, Any]) -> str:
    name = clean_line(model.get("model") or model.get("harness") or model.get("command"), 60)
    tokens = [count for count in (model.get("input_tokens"), model.get("output_tokens")) if count is not None]
    spent = f" · {sum(tokens):,} tok" if tokens else ""
    cost = f" · ${model['cost_usd']:.4f}" if model.get("cost_usd") is not None else ""
    why = clean_line(document.get("tool_results_fallback_reason"), 200)
    return f"model {name}{spent}{cost}" + (f" · not taken: {why}" if why else "")


def evidence_paras(document: Document) -> list[Para]:
    """Every kept span with its code and the reason; below them the dropped ones."""
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
    file, header = clean_line(one.get("file"), 300), clean_line(one.get("header"), 160)
    place = record_place(file, header)
    words = place.words if place is not None else f"{file}:{one.get('start')}–{one.get('end')}"
    opens = record_key(place.kind, place.id, key) if place is not None else open_key(file, one.get("start"), key)
    head: tuple[Span, ...] = ((words, "text bold"), (f"  {header}" if header else "", "muted"))
    yield Para(opens, head, ((clean_line(one.get("why"), 120), "muted"),), hang=2, landmark=True, opens=True)


def _span_lines(place: int, one: Mapping[str, Any]) -> Iterator[Para]:
    """The highlighted lines of a span, numbered as in its file."""
    file = str(one.get("file", ""))
    lines = highlighted(clean_block(one.get("text")), file)
    for number, spans in enumerate(lines[:MAX_LINES], int(one.get("start") or 1)):
        key = open_key(file, number, f"line {place}")
        yield Para(key, ((f"{number:>6}  ", "edge"), *spans), wrap=_wrap_of(file), hang=8)
    if len(lines) > MAX_LINES:
        more = f"        … {counted(len(lines) - MAX_LINES, 'more line')}"
        yield Para(f"more {place}", ((more, "muted"),))
    yield Para(f"gap {place}")
