"""A run's document for display: result, answer, sources with their lines, what was not found.

The command line and the screen both use this, for a current run and for a stored one. Slots, spans and stop reasons
remain in the document, for the steps view and for programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec import Struct

from helix_tui.core.ask.records import Result, record_place
from helix_tui.core.ground.text import clean_block, clean_line

Document = Mapping[str, Any]

MAX_LINES = 8
"""Maximum lines of one source shown below it."""
_EARLIER: dict[str, Result] = {"not found": "nothing found", "Clarify": "nothing found"}
"""What runs of earlier versions have as their result, or as their tier; all others show sources."""
_PARTS = re.compile(r"\n\n(?:Sources|Not found|Tree walk):\n")
_TITLE = re.compile(r"[^\s•-][^.!?\n]{0,200}:")
_HEAD = re.compile(r"`(?P<file>[^`]+?):(?P<start>\d+)(?:[-–](?P<end>\d+))?`.*\[(?P<number>\d+)\]\s*")
_CODE = "    "
_RECORD = re.compile(r"\b(bead|memory|run|commit):([\w.-]*\w)(?::\d+(?:[-–]\d+)?)?")
"""A record's place in the answer's text, shown as ``bead ddx-1234``."""
_DEFINES = re.compile(
    r"\s*(?:[\w<>\[\], ]+\s)?(?:def|class|func|fn|function|type|interface|struct|const|let|var|enum)\b"
)

BlockKind = Literal["text", "title", "item", "code", "gap"]


def walk_belongs_to_answer(document: Document) -> bool:
    """Whether the tree walk is part of the answer and not of the steps alone: it walks a tree that the repository
    keeps itself, or our answer took the place of a model's that denied its evidence.
    """
    walk = document.get("tree_walk") or ()
    return bool(walk) and (
        bool(document.get("tool_results_fallback_applied")) or any(node.get("source") for node in walk)
    )


class Block(Struct, frozen=True):
    """A line of an answer, or a block of code in it."""

    kind: BlockKind
    text: str = ""
    file: str = ""
    """For code, its file."""
    start: int = 0
    """For code, its first line in the file; 0 if unknown."""


class SourceLine(Struct, frozen=True):
    """A source as listed."""

    number: int
    words: str
    """Its place: ``src/a.py:12–30``, or ``bead ddx-1234, Acceptance``."""
    header: str
    """The definition, heading or title that contains it."""
    file: str
    start: int
    lines: tuple[str, ...]
    """Its lines that are shown."""
    more: int
    """The number of lines that are not shown."""
    kind: str
    """``file``, or the kind of record."""
    id: str
    """The key that opens it: a path, or the id of a bead, an attempt, a memory."""


def result_of(document: Document) -> Result:
    """The result of a question, in words."""
    if (document.get("clarify") or {}).get("options"):
        return "which one?"
    said = str(document.get("tier") or document.get("tier_selected"))
    results: tuple[Result, ...] = get_args(Result)
    taken = bool((document.get("model") or {}).get("taken"))
    return next((result for result in results if result == said), _EARLIER.get(said, "answer" if taken else "sources"))


def answer_blocks(document: Document, text: str | None = None) -> Iterator[Block]:
    """The answer in lines, without its list of sources and what was not found, which are shown separately.

    Args:
        document: the run.
        text: another answer of the run than the one that was used.
    """
    body = _PARTS.split(clean_block(document.get("answer") if text is None else text))[0]
    lines = body.split("\n")
    at = 0
    file, start = "", 0
    while at < len(lines):
        line = lines[at]
        # only the text of an answer is stored, in which quoted lines are indented
        if line.startswith(_CODE):
            end = at
            while end < len(lines) and (lines[end].startswith(_CODE) or (not lines[end] and _goes_on(lines, end))):
                end += 1
            yield Block("code", "\n".join(one.removeprefix(_CODE) for one in lines[at:end]), file, start)
            at = end
            continue
        head = _HEAD.match(line)
        file, start = (head["file"], int(head["start"])) if head is not None else ("", 0)
        yield _block(_RECORD.sub(r"\1 \2", line))
        at += 1


def _goes_on(lines: Sequence[str], at: int) -> bool:
    """Whether code continues after empty lines."""
    return next((line for line in lines[at:] if line), "").startswith(_CODE)


def _block(line: str) -> Block:
    if not line.strip():
        return Block("gap")
    if line.startswith("- "):
        return Block("item", line[2:])
    return Block("title", line.rstrip(":")) if _TITLE.fullmatch(line) else Block("text", line)


def sources_of(document: Document, *, cited: Sequence[Mapping[str, Any]] | None = None) -> Iterator[SourceLine]:
    """The sources in order of number, each with its lines unless the answer quotes them already; without files that
    are quoted under their place.
    """
    body = str(document.get("answer"))
    shown = [block.text for block in answer_blocks(document) if block.kind != "gap"]
    said = _flat(" ".join(shown))
    for one in document.get("citations") or () if cited is None else cited:
        file, header = clean_line(one.get("file"), 300), clean_line(one.get("header"), 200)
        start, end = _whole(one.get("start")), _whole(one.get("end"))
        place = record_place(file, header)
        if place is None and f"`{file}:{start}-{end}`" in body:
            continue
        lines = _lines_of(document, file, start, end)
        fresh = [line for line in lines if _flat(line) and _flat(line) not in said]
        is_quoted = place is not None and place.kind == "bead" and _flat(header.partition(" > ")[0]) in said
        # not twice: half of its lines, or a bead's title, are in the answer above
        if is_quoted or len(fresh) * 2 <= len([line for line in lines if line.strip()]):
            lines = ()
        first, lines, more = _excerpt(lines, header)
        span = f"{start}" if start == end else f"{start}–{end}"
        yield SourceLine(
            _whole(one.get("id")),
            place.words if place is not None else f"{file}:{span}",
            header.partition(" > ")[0] if place is not None else header,
            file,
            start + first,
            lines,
            more,
            place.kind if place is not None else "file",
            place.id if place is not None else file,
        )


def _lines_of(document: Document, file: str, start: int, end: int) -> tuple[str, ...]:
    """The lines of a source, from the evidence that contains them; empty if it is not stored."""
    for one in document.get("evidence") or ():
        first, last = _whole(one.get("start")), _whole(one.get("end"))
        if one.get("file") == file and first <= start and end <= last:
            lines = clean_block(one.get("text")).split("\n")
            return tuple(lines[start - first : end - first + 1])
    return ()


def _excerpt(lines: Sequence[str], header: str) -> tuple[int, tuple[str, ...], int]:
    """(lines left out before, lines, lines left out after), from the definition that the source is named after."""
    name = re.compile(rf"(?<!\w){re.escape(header.rpartition('.')[2])}(?!\w)") if header else None
    named = (at for at, line in enumerate(lines) if name is not None and _DEFINES.match(line) and name.search(line))
    full = (at for at, line in enumerate(lines) if line.strip())
    first = next(named, next(full, 0))
    end = max((at + 1 for at, line in enumerate(lines) if line.strip()), default=0)
    kept = [*lines[first : min(end, first + MAX_LINES)]]
    while kept and not kept[-1].strip():
        kept.pop()
    return first, tuple(kept), max(0, end - first - MAX_LINES)


def not_found_of(document: Document) -> list[str]:
    """The parts of the question without evidence."""
    if "not_found" in document:
        return [clean_line(label, 80) for label in document["not_found"]]
    slots = document.get("slots") or ()
    return [clean_line(slot.get("label"), 80) for slot in slots if slot.get("required") and not slot.get("covered_by")]


def what_would_decide(document: Document) -> list[str]:
    """For a question whose answer is *nothing found*: the evidence that it would need, and what was searched.

    Empty for other results: *which one?* says it in the text of its answer.
    """
    clarify = document.get("clarify")
    if result_of(document) != "nothing found" or not isinstance(clarify, Mapping):
        return []
    lines = [f"it would need {clean_line(each, 200)}" for each in clarify.get("would_satisfy") or ()]
    asked = [f"“{clean_line(each, 80)}”" for each in clarify.get("searched_queries") or ()]
    return [*lines, f"searched: {'; '.join(asked[:6])}"] if asked else lines


def reservations_of(document: Document) -> list[str]:
    """What limits the answer, a sentence each: read in part, in order of words alone, or without a word of the question
    where its text does not say so.
    """
    said = [clean_line(document.get("partial"), 200)] if document.get("partial") else []
    if result_of(document) == "sources" and document.get("reranked") is False and len(document["passages"]) > 1:
        said.append("in order of words alone: the encoder has no weights here (`helix-tui setup`)")
    missing = not_found_of(document) if result_of(document) in ("sources", "answer") else []
    if missing and "\nNot found: " not in str(document.get("answer")):
        said.append(f"not found: {', '.join(f'“{label}”' for label in missing)}")
    return said


def seconds_of(document: Document) -> float:
    """The duration of the run in seconds."""
    total = (document.get("timings_ms") or {}).get("total", 0.0)
    return total / 1_000 if isinstance(total, int | float) else 0.0


def _flat(text: str) -> str:
    return " ".join(re.findall(r"\w+", text)).lower()


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
