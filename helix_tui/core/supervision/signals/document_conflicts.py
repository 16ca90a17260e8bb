"""Conflicts between governing documents: what can be resolved, what cannot both hold, and what is missing.

Taxonomy and heuristic: docs/formats/helix.md §4. Only statements under a heading of constraints or
requirements are read; the order of authority comes first (a higher document decides over a lower one, so
only two of the same tier can contradict each other for good); what nothing makes sure of is resolvable.
Outcomes of ddx are never classified here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Literal

from msgspec import Struct

from helix_tui.core.ddx.documents.graph import GraphDocument
from helix_tui.core.ddx.documents.source import Documents
from helix_tui.core.ddx.files import read_bytes
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.signals.contradiction import contradict, read_demand, words_of

Class = Literal["physics-level", "resolvable", "gap"]

TIERS = (
    ("vision", 0),
    ("prd", 1),
    ("feat", 2),
    ("us", 3),
    ("adr", 4),
    ("arch", 4),
    ("sd", 5),
    ("td", 6),
    ("tp", 7),
    ("test", 8),
    ("plan", 9),
)
"""Beginning of a document's name or id -> its authority; 0 decides over all."""

LOWEST = 10
MAX_DOCUMENT = 1 << 20
MOST_STATEMENTS = 2000

_HEADING = re.compile(r"^#{1,6}\s+(.*)")
_ITEM = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+(.*\S)")
_WANTED = re.compile(r"\b(constraints?|requirements?)\b", re.IGNORECASE)
_CHOICE = re.compile(r"\buses?\s+(?P<what>[\w.+-]+)\s+(?:for|as)\s+(?P<why>[\w -]{3,60})", re.IGNORECASE)
_LINK = re.compile(r"\[\[([A-Za-z][\w.-]*)\]\]")
_PLACEHOLDER = re.compile(r"(?<![A-Za-z])(?:X{2,}|N{2,}|ID)(?![A-Za-z])")
_FENCE = re.compile(r"\s{0,12}(?:[-*>]\s+|\d+[.)]\s+)?(`{3,}|~{3,})")
_SPAN = re.compile(r"(?s)(?<!`)(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)")
_COMMENT = re.compile(r"(?s)<!--.*?-->")


class Statement(Struct, frozen=True):
    """One demand of one document."""

    document: str
    tier: int
    text: str


class DocumentFinding(Struct, frozen=True):
    """Two demands that differ, or one that leads nowhere."""

    kind: Class
    text: str
    documents: tuple[str, ...]
    """The deciding one first, where there is one."""
    statements: tuple[tuple[str, str], ...] = ()
    """(document, statement) pairs that it rests on; none of a gap."""

    @property
    def key(self) -> str:
        """The same for the same finding."""
        return f"{self.kind}:{self.text}"[:400]


def find_conflicts(documents: Documents) -> tuple[DocumentFinding, ...]:
    """Every conflict and gap in a repository's documents, what cannot both hold first.

    Which documents there are, what each is called and what it depends on, the document graph says; one that is
    superseded or of the past demands nothing any more.
    """
    statements: list[Statement] = []
    links: list[tuple[str, str]] = []
    for document in _read(documents):
        text = (read_bytes(documents.graph.root / document.path, MAX_DOCUMENT) or b"").decode("utf-8", "replace")
        tier = tier_of(document.id, document.path)
        if document.bucket != "historical_superseded":
            statements += [Statement(document.path, tier, line) for line in demands(text)]
        links += [(document.path, link) for link in references(Path(document.path), text)]
    found = list(_between(statements[:MOST_STATEMENTS]))
    declared = {(issue.path, issue.id) for issue in documents.graph.issues if issue.kind == "missing_dep"}
    found += [
        DocumentFinding("gap", f"{name} refers to {clean_line(link, 60)}, which does not exist", (name,))
        for name, link in _told_once(links)
        if (name, link) not in declared and documents.find(link) is None
    ]
    found += [_missing(documents, name, needed) for name, needed in sorted(declared) if not _example(Path(name))]
    order = {"physics-level": 0, "resolvable": 1, "gap": 2}
    return tuple(sorted(found, key=lambda each: (order[each.kind], each.text)))


def _read(documents: Documents) -> list[GraphDocument]:
    """Documents whose text is looked at: those of the graph and those under ``docs``, by path."""
    every = (*documents.all.values(), *documents.graph.undeclared)
    return sorted((each for each in every if not _example(Path(each.path))), key=lambda each: each.path)


def _missing(documents: Documents, name: str, needed: str) -> DocumentFinding:
    """A dependency that a document declares and that no document has."""
    like = documents.find(needed)
    near = f"; a search finds {like.document.path} {like.words}" if like is not None else ""
    text = f"{name} depends on {clean_line(needed, 60)}, an id that no document declares{near}"
    return DocumentFinding("gap", text, (name,))


def _example(path: Path) -> bool:
    """Whether a document only shows how one is written."""
    return any(word in part.lower() for part in path.parts for word in ("template", "example"))


def references(path: Path, text: str) -> Iterator[str]:
    """What a document links to as ``[[ID]]``, each once; examples and placeholders link to nothing.

    Text in code spans, fences, tables, comments and frontmatter shows how something is written, and so does
    everything in a template or an example.
    """
    if _example(path):
        return
    for link in dict.fromkeys(_LINK.findall(_prose(text))):
        if not _PLACEHOLDER.search(link):
            yield link


def _prose(text: str) -> str:
    """A document without what only shows how something is written."""
    if text.startswith("---\n"):
        text = text[4:].partition("\n---")[2]
    kept: list[str] = []
    fence = ""
    for line in _COMMENT.sub("", text).split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not line.strip(" `~") else fence
        elif mark:
            fence = mark[1]
        elif not line.lstrip(" >").startswith("|"):
            kept.append(line)
    return _SPAN.sub("", "\n".join(kept))


def _told_once(links: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Links of documents; those of a copy (a website has some) stand for nothing beside their original."""
    told: dict[tuple[str, str], tuple[str, str]] = {}
    for name, link in sorted(links, key=lambda pair: ("website" in Path(pair[0]).parts, pair[0].count("/"))):
        told.setdefault((Path(name).name, link), (name, link))
    return list(told.values())


def demands(text: str) -> Iterator[str]:
    """What is demanded under headings of constraints and requirements: items of lists, sentences of prose."""
    inside = fenced = False
    part: list[str] = []
    for line in (*text.split("\n"), "# end"):
        fence = line.lstrip().startswith(("```", "~~~"))
        fenced ^= fence
        heading = None if fenced else _HEADING.match(line)
        item = _ITEM.match(line)
        if heading or item or fence or not line.strip():
            yield from _sentences(" ".join(part))
            part = []
        if heading:
            inside = _WANTED.search(heading.group(1)) is not None
        elif inside and not (fenced or fence) and line.strip() and not line.lstrip().startswith("|"):
            part.append(item.group(1) if item else line.strip())


def _sentences(text: str) -> Iterator[str]:
    """The sentences of one item or paragraph."""
    for sentence in re.split(r"(?<=[.!?;])\s+", text):
        plain = clean_line(re.sub(r"[*`_]", "", sentence), 400).strip()
        if plain:
            yield plain.rstrip(".;")


def tier_of(identity: str, path: str) -> int:
    """The authority of a document, by its id or name; the lower the number, the more it decides."""
    for word in (identity.lower(), Path(path).stem.lower()):
        for start, tier in TIERS:
            if re.match(rf"(helix\.)?(product-)?{start}([-.\d]|$)", word):
                return tier
    return LOWEST


def classify(one: Statement, other: Statement) -> DocumentFinding | None:
    """Whether two demands are in conflict, and which class it is."""
    if contradict(one.text, other.text):
        return _judged(one, other, certain=True)
    first, second = _CHOICE.search(one.text), _CHOICE.search(other.text)
    if not (first and second) or words_of(first["why"]) != words_of(second["why"]):
        return None
    return _judged(one, other, certain=False) if first["what"].lower() != second["what"].lower() else None


def _between(statements: list[Statement]) -> Iterator[DocumentFinding]:
    by_word: dict[str, list[Statement]] = {}
    special = [each for each in statements if read_demand(each.text).special]
    for each in statements:
        for word in words_of(each.text):
            by_word.setdefault(word, []).append(each)
    seen: set[frozenset[Statement]] = set()
    groups: Iterable[list[Statement]] = (*(group for group in by_word.values() if len(group) < 60), special)
    for group in groups:
        for one, other in combinations(group, 2):
            pair = frozenset((one, other))
            if pair in seen or one == other:
                continue
            seen.add(pair)
            finding = classify(one, other)
            if finding is not None:
                yield finding


def _judged(one: Statement, other: Statement, *, certain: bool) -> DocumentFinding:
    said = tuple((each.document, each.text) for each in (one, other))
    if one.tier != other.tier:
        high, low = sorted((one, other), key=lambda each: each.tier)
        text = f"“{high.text}” ({high.document}) decides over “{low.text}” ({low.document})"
        return DocumentFinding("resolvable", text, (high.document, low.document), said)
    text = f"“{one.text}” ({one.document}) and “{other.text}” ({other.document})"
    both = (one.document, other.document)
    if certain:
        return DocumentFinding("physics-level", f"{text} cannot both hold", both, said)
    return DocumentFinding("resolvable", f"{text} make different choices for the same goal", both, said)
