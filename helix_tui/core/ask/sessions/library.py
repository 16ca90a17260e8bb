"""The index as the loop asks it: what one question looks up, looked up once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from helix_tui.core.ask.corpus.roles import role_of
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.records import Definition, Heading, Kind, RankedFile, Span, Tree, Use, text_hash
from helix_tui.core.ask.retrieval.slots import terms_in

DOC_FILES = 24
"""Documents whose sections and headings are looked at for one query."""
MOST_SPAN_LINES = 120
MOST_OPENING = 60
"""Lines of a README that introduce."""
_README = re.compile(r"(?:^|/)readme[^/]*$", re.IGNORECASE)
_KINDS: dict[str, Kind] = {"class": "class", "type": "class", "function": "function", "method": "function"}


@dataclass(frozen=True, slots=True)
class FoundSpans:
    """What one search brought."""

    files: tuple[RankedFile, ...]
    spans: tuple[Span, ...]


class IndexLibrary:
    """One question's view of an index; make another one for the next question."""

    def __init__(self, index: RepositoryIndex) -> None:
        self._index = index
        self._ranked: dict[str, list[RankedFile]] = {}
        self._headings: dict[str, list[Heading]] = {}
        self._trees: list[Tree] | None = None

    @property
    def revision(self) -> str:
        """The commit that is asked about; empty for the work tree."""
        return self._index.commit or ""

    def search(self, text: str, *, spans: int = 60, docs_only: bool = False) -> FoundSpans:
        """Files and spans for a text, through every channel."""
        ranked = self._rank(text)
        if not docs_only:
            return FoundSpans(tuple(ranked), tuple(map(self._whole, self._index.search(text, spans))))
        docs = self._docs(text)
        found = self._index.search(text, spans, per_file=2, files=docs) if docs else []
        return FoundSpans(tuple(one for one in ranked if one.role == "doc"), tuple(map(self._whole, found)))

    def _whole(self, span: Span) -> Span:
        """A document's span that begins inside a fence, from the fence on: nobody takes it for prose then."""
        if span.role != "doc" or span.start == 1:
            return span
        before = self._index.lines(span.file, 1, span.start - 1)
        fences = [number for number, line in enumerate(before, 1) if line.lstrip().startswith(("```", "~~~"))]
        if len(fences) % 2 == 0 or span.start - fences[-1] > MOST_SPAN_LINES:
            return span
        text = "\n".join([*before[fences[-1] - 1 :], span.text])
        return replace(span, start=fences[-1], text=text, hash=text_hash(text))

    def definitions(self, name: str, *, any_case: bool = False) -> Sequence[Definition]:
        """Where an identifier is defined; of a dotted one, the last part within the one before."""
        owner, _, last = name.replace("::", ".").rpartition(".")
        found = self._index.definitions(last, any_case=any_case)
        owners = owner.rpartition(".")[2]
        within = [one for one in found if owners and owners in (*one.header.split("."), _module(one.file))]
        return within or (found if not owner else [])

    def uses(self, name: str, *, most: int = 50) -> Sequence[Use]:
        """Lines that mention an identifier without defining it."""
        return self._index.uses(name.replace("::", ".").rpartition(".")[2], most)

    def headings(self, terms: Sequence[str]) -> Sequence[Heading]:
        """Headings with any of some stems, in the documents that speak most of the question.

        Where none of these has any, those that speak most of the terms are looked at too.
        """
        if not terms:
            return []
        wanted, said = frozenset(terms), " ".join(terms)
        texts = dict.fromkeys((next(iter(self._ranked), said), said))
        for text in texts:
            found = [
                one
                for file in self._docs(text)
                for one in self._headings_of(file)
                if not wanted.isdisjoint(terms_in(one.title))
            ]
            if found:
                return found
        return []

    def trees(self) -> Sequence[Tree]:
        """The trees that the repository keeps."""
        if self._trees is None:
            self._trees = self._index.trees()
        return self._trees

    def opening(self) -> Span | None:
        """The beginning of the repository's README, the one nearest its root; None where it has none."""
        files = [one.file for one in self._index.documents() if _README.search(one.file) and one.role == "doc"]
        first = min(files, key=lambda file: (file.count("/"), file), default=None)
        return None if first is None else self.span_at(first, 1, MOST_OPENING)

    def span_at(self, file: str, start: int, end: int) -> Span | None:
        """Some lines of a file as a span; None where the file has no such lines."""
        lines = self._index.lines(file, start, min(end, start + MOST_SPAN_LINES - 1))
        if not lines:
            return None
        end = start + len(lines) - 1
        text = "\n".join(lines)
        kind, header = self._place(file, start, end)
        return Span(file, start, end, kind, header, text, text_hash(text), role=role_of(file))

    def _place(self, file: str, start: int, end: int) -> tuple[Kind, str]:
        """What the lines are and in which definition or section they stand."""
        definitions = self._index.definitions_in(file)
        middle = (start + end) // 2
        around = [one for one in definitions if one.start <= start and end <= one.end]
        around = around or [one for one in definitions if one.start == start or one.start <= middle <= one.end]
        if around:
            inner = max(around, key=lambda one: (one.start, -one.end))
            exact = inner.start == start
            return (_KINDS.get(inner.kind, "lines") if exact else "lines"), inner.header
        sections = [one for one in self._headings_of(file) if one.start <= start <= one.end]
        if sections:
            return "section", max(sections, key=lambda one: (one.start, one.level)).path
        return "lines", ""

    def _headings_of(self, file: str) -> list[Heading]:
        if file not in self._headings:
            self._headings[file] = self._index.headings(file)
        return self._headings[file]

    def share(self, term: str) -> float:
        """The share of all files that have a stem."""
        return self._index.share(term)

    def _rank(self, text: str) -> list[RankedFile]:
        if text not in self._ranked:
            self._ranked[text] = self._index.rank_files(text)
        return self._ranked[text]

    def _docs(self, text: str) -> list[str]:
        return [one.file for one in self._rank(text) if one.role == "doc"][:DOC_FILES]


def _module(file: str) -> str:
    return file.rpartition("/")[2].partition(".")[0]
