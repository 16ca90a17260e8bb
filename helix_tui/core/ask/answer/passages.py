"""Find the passages that answer a question, best first: short runs of lines that cover its subject, in the form asked
for.

A passage is scored by the share of the subject that adjacent lines cover *together*; a heading or a definition's name
counts for every line below it. Lines in the form of an answer add to the score: a branch for "what happens", a value
for "how long", similar lines for "which", a reason for "why", instructions for "how to". The weights were set on five
repositories and checked on five others (bench/ask.md); a change of one weight moves the share of facts found by less
than .02.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ask.answer.branches import Branch, branches_for, test_of
from helix_tui.core.ask.answer.sentences import (
    around_quote,
    cut_code,
    cut_document,
    imports_in,
    items_in,
    section_around,
    with_lead,
)
from helix_tui.core.ask.corpus.listing import completes_for_a_shell
from helix_tui.core.ask.records import Library, Span, text_hash
from helix_tui.core.ask.retrieval.subject import Asks, QuestionSubject, Wording, union

WINDOW = 8
"""Number of lines that count as one place."""
SPANS = 80
"""Maximum spans for the whole question; `SUBJECT_SPANS` for its subject alone, `DOC_SPANS` in documents."""
SUBJECT_SPANS = 60
DOC_SPANS = 20
SPANS_OF_A_FILE = 6
CLOSER = 40
"""Number of best spans that are cut as they would be quoted, then scored again."""
MOST_PASSAGES = 12
ALIKE = 0.6
"""Share of lines in common with a better passage that makes a copy: manuals are often kept once per version."""
LONG_LINE = 400
MOST_WHOLE = 2
"""Number of passages to extend to their whole section or definition, so that lists are complete and named."""
MOST_WHOLE_LINES = 60
"""Longer sections stay cut. A limit of 90 lines finds .01 more of the facts of bench/ask.md, in answers 7 % longer."""

MOST_TELLING = 4
"""Number of best passages that decide the label: the quoted ones."""
MOST_CONSTANTS = 2
"""Maximum number of constants to define for a value; each is one line of the answer."""
LEAST_OF_CONSTANT = 0.2
"""Minimum share of the subject in the line that names it together with its definition."""
MOST_LINES_OF_CONSTANT = 4
MOST_TESTED = 2
"""Maximum number of branches for which to find a test."""
MOST_BLAMED = 2
"""Maximum number of passages whose lines are looked up in the git history for "why": 0.1 s each."""
MOST_COMMITS = 8
MOST_COMMITS_TOLD = 2
"""Maximum number of commits to read for a reason, and to quote, so that code is quoted too."""
NEAR_BEST = 3
"""Maximum distance in lines of a neighbour of the best line."""
FARTHER = 0.5
"""Weight of a commit whose lines are farther away, relative to a neighbour's."""

_COMMENT = " \t#/*;\"'-"
"""Characters before the first word of a comment or docstring."""
_NUMBER = re.compile(r"\d")
_CONSTANT = re.compile(
    r"\b(?:_?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|_?[A-Z]{3,}|(?:k|[dD]efault|[mM]ax(?:imum)?|[mM]in(?:imum)?)[A-Z]\w+"
    r"|[A-Za-z]+[a-z][A-Z]\w+)\b"
)
_VALUES = ("constant", "field")
_COUNTS = re.compile(r"\bhow\b", re.IGNORECASE)
_LITERAL = re.compile(r"=.*(?:\d|[\"'`])")

_FORMS: dict[Asks, str] = {
    "value": r"(?:[=:(<>,]|\bdefaults?\b.{0,30}|\b(?:is|are|to|of|than|after|every|most)\b)\s*[\"'`]?[-+]?\d"
    r"|\b\d[\d_,.]*\s*(?:ms|s|m|h|d|kb|mb|%|seconds|minutes|hours|days|weeks|bytes|lines)?\b|\bdefault",
    "what happens": r"\b(?:if|else|elif|case|when|switch|except|catch|raise|throws?|panic|unless|otherwise|errors?"
    r"|fail\w*|abort\w*|return|returned|rejects?)\b|=>",
    "why": r"\b(?:because|since|so that|otherwise|avoids?|in order to|reasons?|due to|instead|workarounds?"
    r"|prevents?|ensures?|irrespective|therefore|rather|fixme|cannot|can't|does not|doesn't|not|would|allows?|must"
    r"|never)\b",
    "how to": r"^\s*(?:\$|>|```|\.\. code)|\s--?[a-z][\w-]+|`[^`]+`"
    r"|\b(?:use|set|add|run|call|pass|you can|specify|enable|install|create|provide|export|just)\b",
    "where": r"^\s*(?:(?:export|pub(?:\([^)]*\))?|static|async|public|private|protected|final|abstract)\s+)*"
    r"(?:def|class|func|fn|function|struct|enum|type|interface|trait|impl|const|let|var|val)\b"
    r"|^[\w*\s]+\w+\([^;]*\)\s*\{|[/\\]\w|os\.environ|getenv|env::var",
    "list": r"^\s*(?:[-*+•]|\d+[.)])\s+|^\s*\||^\s*[\"'`]?[\w.:/<>{}^!-]+[\"'`]?\s*(?:[=:({][^;{]*)?[,;|)}]*\s*$"
    r"|^\s*(?:case|when)\b|,.*,.*,",
    "compare": r"\b(?:whereas|while|but|instead|unlike|differ\w*|faster|slower|better|than|both|however)\b",
    "what is": r"\b(?:is|are|means|refers to|describes?|represents?)\s+(?:an?|the)\b"
    r"|^\s*(?:class|struct|interface|type|enum)\b",
}
"""For each kind of question, the pattern of a line that has the form of an answer."""


BRANCH = 1.4
"""Weight of the score of a branch whose condition is asked about; the score of its words is added."""
BRANCH_SAID = 0.5
"""Share of the subject from which a branch counts as about it, though its condition may be written with other signs."""
SETS = 1.0
SETS_ONCE = 0.4
"""Bonus for a document line that sets what the question wants to set, or defines what it asks the meaning of;
`SETS_ONCE` if it sets it by a ``--flag``.
"""


@cache
def _form(asks: Asks) -> re.Pattern[str] | None:
    pattern = _FORMS.get(asks)
    return re.compile(pattern, re.IGNORECASE) if pattern else None


_ROLES: dict[str, dict[Asks, float]] = {
    "doc": {
        "how to": 1.0,
        "why": 0.9,
        "what is": 1.0,
        "compare": 1.0,
        "list": 0.95,
        "value": 0.9,
        "where": 0.75,
        "who uses": 0.5,
    },
    "source": {"how to": 0.7, "why": 0.9, "compare": 0.85},
    "test": {"who uses": 0.8, "what happens": 0.6, "how to": 0.6},
    "example": {"how to": 0.85},
    "record": {"why": 1.0},
}
_OTHER_ROLE = {"doc": 0.9, "source": 1.0, "test": 0.45, "example": 0.6, "config": 0.6}
"""Weight of each kind of file: for some kinds of questions in `_ROLES`, otherwise here. Rules, how-tos, reasons and
comparisons are in documents, and code that uses the same words rarely explains them; branches, values and places are in
code.
"""
_ELSE = 0.4
_NEWS = re.compile(
    r"(?:^|/)(?:changelog|changes|history|news|licen[cs]e|copying|authors|notice|release[-_ ]?notes)[^/]*$",
    re.IGNORECASE,
)
NEWS = 0.6
"""Weight of a changelog or licence; not applied to "why", where it may be the only evidence."""
COMPLETION, _COMPLETION = 0.4, "complet"
"""Weight of shell completions if the question is not about them: they list options without explaining."""
_TESTING = re.compile(r"^(?:tests?|mod tests?|spec)\b|\btest_", re.IGNORECASE)


class Passage(Struct, frozen=True):
    """A run of lines about the subject, as quoted."""

    span: Span
    score: float
    together: float
    """The largest share of the subject that `WINDOW` lines cover together, with heading, name and path, 0 to 1."""
    line: int
    """Number of the line that covers most of the subject."""
    best_line: float
    """The share of the subject on this line alone."""
    form: float
    """The share of its lines that have the form of an answer."""
    named: float
    """The share of the subject in the name of its definition or in its heading."""
    valued: float
    """The largest share of the subject on one line with a number."""
    defines: bool = False
    """Whether a line defines what the question asks the meaning of."""
    branch: Branch | None = None
    """The branch that it quotes, if one matches the question's condition."""
    found: tuple[int, int] = (0, 0)
    """First and last line of the span from which it was cut; (0, 0) for a record."""
    cut: tuple[int, int] = (0, 0)
    """First and last line to quote, if its span was extended to what was found; else (0, 0)."""
    tests: str = ""
    """``file:line`` of the branch that it tests; empty unless it is such a test."""

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line for which it was chosen: those to quote, without those to which it was extended."""
        first, last = self.cut if self.cut[0] else (self.span.start, self.span.end)
        # a long span is shortened once more for the evidence
        return max(first, self.span.start), min(last, self.span.end)

    @property
    def text(self) -> str:
        """The lines to quote."""
        first, last = self.lines
        return "\n".join(self.span.text.split("\n")[first - self.span.start : last - self.span.start + 1])

    def within(self, most_bytes: int) -> Passage:
        """Itself with as many of the lines to which it was extended as fit, those nearest to the quote."""
        span, (first, last) = self.span, self.lines
        lines = span.text.split("\n")
        sizes = [len(line.encode("utf-8", "surrogateescape")) + 1 for line in lines]
        start, end, size = span.start, span.end, sum(sizes) - 1
        while size > most_bytes and (start < first or end > last):
            if first - start >= end - last:
                size, start = size - sizes[start - span.start], start + 1
            else:
                size, end = size - sizes[end - span.start], end - 1
        if (start, end) == (span.start, span.end):
            return self
        text = "\n".join(lines[start - span.start : end - span.start + 1])
        return replace(
            self, span=replace(span, start=start, end=end, text=text, hash=text_hash(text)), cut=(first, last)
        )


def passages_for(
    library: Library, subject: QuestionSubject, skip: frozenset[str] = frozenset(), records: Sequence[Span] = ()
) -> tuple[Passage, ...]:
    """Return the best passages of a repository for a question, without copies or overlaps.

    Args:
        library: the repository.
        subject: what is asked about.
        skip: files that guide the search but never answer.
        records: spans of records that may answer too.
    """
    if not subject.words:
        return ()
    wording = Wording(subject, library.share)
    spans = [*(span for span in _found(library, wording) if span.file not in skip), *records]
    most = max((span.score for span in spans), default=0.0) or 1.0
    # score every span as found, then cut and score only the best again: cutting reads their files
    near = [
        (score, at, span) for span in spans for score, at in [_nearest(span, wording, span.score / most)] if score > 0
    ]
    near.sort(key=lambda row: (-row[0], row[2].key))
    judged: dict[tuple[str, int, int], Passage] = {}
    for score, at, span in near[:CLOSER]:
        one = _judge(library, span, at, wording, score)
        held = judged.get(one.span.key)
        if held is None or one.score > held.score:
            judged[one.span.key] = one
    if subject.asks == "what happens":
        for one in _of_branches(library, branches_for(library, spans, wording), wording):
            held = judged.get(one.span.key)
            if held is None or one.score > held.score:
                judged[one.span.key] = one
        best = _with_wholes(library, tuple(_distinct(_in_order(judged.values()))))
        return tuple(_as_found(library, _with_tests(library, best, spans, wording)))
    if subject.asks == "why":
        best = tuple(_distinct(_in_order(judged.values())))
        passages = []
        for span, standing in _commits_behind(library, best):
            score, at = _nearest(span, wording, standing)
            # a commit whose message does not mention the subject gives no reason for it
            passages += [_judge(library, span, at, wording, score)] if score > 0 else []
        for one in _in_order(passages)[:MOST_COMMITS_TOLD]:
            judged.setdefault(one.span.key, one)
    best = _with_wholes(library, tuple(_distinct(_in_order(judged.values()))))
    found = tuple(_as_found(library, best))
    return tuple(_with_constants(library, found, wording)) if subject.asks == "value" else found


def _with_constants(library: Library, passages: Sequence[Passage], wording: Wording) -> list[Passage]:
    """The passages, and after those to quote the definitions of the constants that they name and that say most of the
    subject: code states a value once, and uses its name where the question's words are.
    """
    quoted, rest = list(passages[:MOST_TELLING]), list(passages[MOST_TELLING:])
    said: dict[str, dict[int, float]] = {}
    for header, line in ((one.span.header, line[:LONG_LINE]) for one in quoted for line in one.text.split("\n")):
        for name in _CONSTANT.findall(line):
            said[name] = union((said.get(name, {}), wording.in_text(header), wording.in_text(line)))
    found: list[Passage] = []
    for name, words in said.items():
        span = _constant(library, name, _NUMBER if _COUNTS.search(wording.subject.text) else _LITERAL)
        own = wording.in_text(span.text) if span is not None else {}
        # what is called otherwise is another value of the same place
        if span is not None and own and not any(_quotes(one, span) for one in quoted):
            one = _judge(library, span, 0, wording, 0.0)
            share = wording.covered(union((words, own)))
            found.append(replace(one, span=span, line=span.start, score=round(share, 6), found=(0, 0)))
    constants = _in_order(one for one in found if one.score >= LEAST_OF_CONSTANT)[:MOST_CONSTANTS]
    for at, one in enumerate(quoted):
        for span in (other.span for other in constants if _overlap(other.span, one.span)):
            # beside the quote already: the quote begins or ends with it
            first, last = min(one.lines[0], span.start), max(one.lines[1], span.end)
            if last - first - (one.lines[1] - one.lines[0]) <= WINDOW:
                quoted[at] = one = replace(one, cut=(first, last))
    constants = [one for one in constants if not any(_quotes(other, one.span) for other in quoted)]
    rest = [one for one in rest if not any(_overlap(one.span, other.span) for other in constants)]
    return [*quoted, *constants, *rest]


def _quotes(one: Passage, span: Span) -> bool:
    """Whether the first line of a span is among the lines that a passage quotes."""
    return one.span.file == span.file and one.lines[0] <= span.start <= one.lines[1]


def _constant(library: Library, name: str, literal: re.Pattern[str]) -> Span | None:
    """The one definition of a constant, if it is a short one with a literal value."""
    defined = [one for one in library.definitions(name) if one.role in ("source", "config") and one.kind in _VALUES]
    if len(defined) != 1 or defined[0].end - defined[0].start >= MOST_LINES_OF_CONSTANT:
        return None
    span = library.span_at(defined[0].file, defined[0].start, defined[0].end)
    return span if span is not None and literal.search(span.text.partition(name)[2]) else None


def _with_wholes(library: Library, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Extend the first passages to their whole section or definition if no better one overlaps it; drop worse ones
    that do.
    """
    found = list(passages)
    for one in passages[:MOST_WHOLE]:
        whole = _whole_of(library, one.span) if one in found else None
        better = found[: found.index(one)] if whole else []
        if whole is not None and not any(_overlap(other.span, whole) for other in better):
            rest = [other for other in found if other is one or not _overlap(other.span, whole)]
            found = [replace(one, span=whole) if other is one else other for other in rest]
    return tuple(found)


def _as_found(library: Library, passages: Sequence[Passage]) -> Iterator[Passage]:
    """Extend passages to the span from which they were cut, as far as no other one is in it: a source need not be as
    short as its quote, and the value or list may be just beside the words.
    """
    taken: list[Span] = []
    for at, one in enumerate(passages):
        span, (start, end) = one.span, one.found
        others = [other for other in (*taken, *(other.span for other in passages[at + 1 :])) if other.file == span.file]
        start = max([min(start, span.start), *(other.end + 1 for other in others if other.end < span.start)])
        end = min([max(end, span.end), *(other.start - 1 for other in others if other.start > span.end)])
        start, end = around_quote((span.start, span.end), (start, end), MOST_WHOLE_LINES)
        if one.found[0] and not one.tests and (start, end) != (span.start, span.end):
            found = library.span_at(span.file, start, end)
            if found is not None:
                whole = replace(span, start=found.start, end=found.end, text=found.text, hash=found.hash)
                one = replace(one, span=whole, cut=(span.start, span.end))
        taken.append(one.span)
        yield one


def _whole_of(library: Library, span: Span) -> Span | None:
    """The section or definition around a passage; None for a record, or if none is larger and short enough."""
    lines = library.lines(span.file)
    if span.role == "record" or len(lines) < span.end:
        return None
    first, last = span.start - 1, span.end - 1
    if span.role == "doc" or span.kind == "section":
        start, end = section_around(lines, first, last)
    else:
        holding = [one for one in library.definitions_in(span.file) if one.start <= span.start and one.end >= span.end]
        shortest = min(holding, key=lambda one: one.end - one.start, default=None)
        if shortest is None:
            return None
        start, end = with_lead(lines, shortest.start - 1), shortest.end - 1
    start, end = min(start, first), max(end, last)
    if end - start >= MOST_WHOLE_LINES or (start, end) == (first, last):
        return None
    text = "\n".join(lines[start : end + 1])
    return replace(span, start=start + 1, end=end + 1, text=text, hash=text_hash(text))


def _of_branches(library: Library, branches: Iterable[Branch], wording: Wording) -> Iterator[Passage]:
    """Yield branches as passages, cut as they would be quoted."""
    for branch in branches:
        lines = library.span_at(branch.file, branch.guard, branch.end)
        if lines is not None:
            yield replace(_judge(library, lines, 0, wording, BRANCH * branch.score), branch=branch)


def _with_tests(
    library: Library, passages: Sequence[Passage], spans: Sequence[Span], wording: Wording
) -> tuple[Passage, ...]:
    """The passages, then the tests of the best branches, each once; passages that overlap a test are dropped."""
    branches = [one.branch for one in passages[:MOST_TELLING] if one.branch is not None]
    tests: list[Passage] = []
    for branch in branches[:MOST_TESTED]:
        span = test_of(library, branch, spans, wording)
        if span is not None and not any(_overlap(span, one.span) for one in tests):
            found = _judge(library, span, 0, wording, 0.0)
            tests.append(replace(found, span=span, line=span.start, score=0.0, tests=f"{branch.file}:{branch.guard}"))
    return (*(one for one in passages if not any(_overlap(one.span, test.span) for test in tests)), *tests)


def _overlap(one: Span, other: Span) -> bool:
    return one.file == other.file and one.start <= other.end and other.start <= one.end


def _in_order(judged: Iterable[Passage]) -> list[Passage]:
    return sorted(judged, key=lambda one: (-one.score, one.span.key))


def _commits_behind(library: Library, passages: Sequence[Passage]) -> list[tuple[Span, float]]:
    """The commits that last changed the lines of the best passages, each with its weight, 1 for the best."""
    worth: dict[str, float] = {}
    files = [one for one in passages if one.span.role != "record" and not _NEWS.search(one.span.file)]
    for rank, one in enumerate(files[:MOST_BLAMED], 1):
        span = one.span
        for line, sha in enumerate(library.origins(span.file, span.start, span.end), span.start):
            near = 1.0 if abs(line - one.line) <= NEAR_BEST else FARTHER
            worth[sha] = max(worth.get(sha, 0.0), near / rank)
    asked = sorted(worth, key=lambda sha: (-worth[sha], sha))[:MOST_COMMITS]
    return [(span, worth[sha]) for span in library.commits_of(asked) for sha in asked if sha.startswith(_sha(span))]


def _sha(commit: Span) -> str:
    return commit.file.removeprefix("commit:")


def _found(library: Library, wording: Wording) -> list[Span]:
    """The spans found for the question, for its subject alone, also in other words where the repository lacks its own,
    and in the documents, each once with its best score.
    """
    subject = wording.subject
    alone = " ".join(one.word for one in subject.words if one.weight == 1 and not one.means)
    found: dict[tuple[str, int, int], Span] = {}
    searches = [library.search(subject.text, spans=SPANS, per_file=SPANS_OF_A_FILE)]
    if subject.asks != "task":
        if alone:
            searches.append(library.search(alone, spans=SUBJECT_SPANS, per_file=SPANS_OF_A_FILE))
        if wording.alike:
            other = f"{alone} {' '.join(wording.alike)}"
            searches.append(library.search(other, spans=SUBJECT_SPANS, per_file=SPANS_OF_A_FILE))
    # where a repository lists its terms, a short row among them says what a frequent word means
    terms = f"{subject.text} glossary" if subject.asks == "what is" else subject.text
    searches.append(library.search(terms, spans=DOC_SPANS, docs_only=True))
    for search in searches:
        for span in search.spans:
            held = found.get(span.key)
            if held is None or span.score > held.score:
                found[span.key] = span
    return list(found.values())


def _nearest(span: Span, wording: Wording, standing: float) -> tuple[float, int]:
    """The score of a span and the index of its best window of lines; ``(0.0, 0)`` if it lacks the subject."""
    lines = span.text.split("\n")
    said = _said_by(lines, span, wording)
    everything = union(said)
    around = _around(span, wording)
    whole = wording.covered(union((everything, around)))
    if whole <= 0:
        return 0.0, 0
    form, direct = _form(wording.subject.asks), wording.subject.direct if span.role == "doc" else None
    formed = [bool(form and form.search(line[:LONG_LINE])) for line in lines]
    sets = [_bonus(line, direct) for line in lines]
    items = items_in(lines)
    best, begin = -1.0, 0
    for at in range(max(1, len(lines) - WINDOW + 1)):
        window = said[at : at + WINDOW]
        # a window whose first and last lines match nothing covers no more than the one before it
        if at and not (window[0] or window[-1]):
            continue
        together = _said_together(window, items[at : at + WINDOW], wording)
        own, with_head = wording.covered(together), wording.covered(union((together, around)))
        score = 0.5 * own + 0.5 * with_head + 0.25 * with_head * sum(formed[at : at + WINDOW]) / WINDOW
        score += max(sets[at : at + WINDOW])
        # the first of equal windows wins, whatever the last digit of a sum is on this machine
        if score > best + 1e-9:
            best, begin = score, at
    score = 0.6 * best + 0.25 * whole + 0.15 * wording.covered(wording.in_text(span.header)) + 0.35 * standing
    return score * _worth(span, wording.subject), begin


def _said_by(lines: Sequence[str], span: Span, wording: Wording) -> list[dict[int, float]]:
    """The match of each line with the subject; imports count only in documents and for "who uses"."""
    said = [wording.in_text(line[:LONG_LINE]) for line in lines]
    if span.role != "doc" and wording.subject.asks != "who uses":
        for at in imports_in(lines):
            said[at] = {}
    return said


def _bonus(line: str, direct: re.Pattern[str] | None) -> float:
    found = direct.search(line[:LONG_LINE]) if direct else None
    return 0.0 if found is None else SETS_ONCE if found.groupdict().get("once") else SETS


def _worth(span: Span, subject: QuestionSubject) -> float:
    asks = subject.asks
    # Rust keeps unit tests in the file that they test
    role = "test" if span.role == "source" and _TESTING.search(span.header) else span.role
    worth = _ROLES.get(role, {}).get(asks, _OTHER_ROLE.get(role, _ELSE))
    if completes_for_a_shell(span.file) and not any(term.startswith(_COMPLETION) for term in subject.terms):
        return worth * COMPLETION
    return worth * (NEWS if asks != "why" and _NEWS.search(span.file) else 1.0)


def _around(span: Span, wording: Wording) -> dict[int, float]:
    """The match of a span's heading, name and path, which counts for all its lines."""
    around = {at: 0.6 * strength for at, strength in wording.in_text(span.file).items()}
    for at, strength in wording.in_text(span.header).items():
        around[at] = max(around.get(at, 0.0), 0.9 * strength)
    return around


def _judge(library: Library, found: Span, at: int, wording: Wording, near: float) -> Passage:
    """Cut a span as it would be quoted and score it; ``near`` is its score as found."""
    span = _cut(library, found, at, wording)
    lines = span.text.split("\n")
    said = _said_by(lines, span, wording)
    each = [wording.covered(one) for one in said]
    best = max(range(len(lines)), key=lambda number: (each[number], -number))
    around, items = _around(span, wording), items_in(lines)
    together = max(
        wording.covered(
            union((_said_together(said[first : first + WINDOW], items[first : first + WINDOW], wording), around))
        )
        for first in range(max(1, len(lines) - WINDOW + 1))
    )
    form = _form(wording.subject.asks)
    formed = sum(bool(form and form.search(line[:LONG_LINE])) for line in lines) / len(lines)
    worth = _worth(span, wording.subject)
    score = near + (0.3 * wording.covered(union((*said, around))) + 0.3 * each[best]) * worth + 0.3 * formed
    named = wording.covered(wording.in_text(re.split(r" > |\.", span.header)[-1]))
    valued = max((each[at] for at, line in enumerate(lines) if _NUMBER.search(line)), default=0.0)
    means = wording.subject.direct if wording.subject.asks == "what is" else None
    best_line, form_share, name_share, value_share = (round(one, 4) for one in (each[best], formed, named, valued))
    return Passage(
        span,
        round(score, 6),
        round(together, 4),
        span.start + best,
        best_line,
        form_share,
        name_share,
        value_share,
        defines=any(_bonus(line.lstrip(_COMMENT), means) for line in lines),
        found=(0, 0) if span.role == "record" else (found.start, found.end),
    )


def _cut(library: Library, found: Span, at: int, wording: Wording) -> Span:
    """Cut a span to the section or definition around its best lines, which begin at index ``at``."""
    first = found.start - 1 + at
    last = min(first + WINDOW, found.end) - 1
    if found.role == "record":
        own, before = found.text.split("\n"), found.start - 1
        start, end = cut_document(own, first - before, last - before)
        text = "\n".join(own[start : end + 1])
        return replace(found, start=before + start + 1, end=before + end + 1, text=text, hash=text_hash(text))
    lines = library.lines(found.file)
    # the file has become shorter since it was indexed
    if len(lines) < found.end:
        return found
    header = found.header
    if found.role == "doc" or found.kind == "section":
        start, end = cut_document(lines, first, last)
    else:
        said = {
            number: wording.covered(wording.in_text(lines[number][:LONG_LINE])) for number in range(first, last + 1)
        }
        best = max(said, key=lambda number: (said[number], -number))
        around = [one for one in library.definitions_in(found.file) if one.start <= best + 1 <= one.end > one.start]
        around.sort(key=lambda one: one.end - one.start)
        start, end = cut_code(lines, first, last, [(one.start - 1, one.end - 1) for one in around])
        # name it after the largest definition whose first line is quoted
        inside = [one.header for one in around if one.start - 1 >= start]
        header = inside[-1] if inside else around[0].header if around else header
    text = "\n".join(lines[start : end + 1])
    return replace(found, start=start + 1, end=end + 1, header=header, text=text, hash=text_hash(text))


def _distinct(ordered: Iterable[Passage]) -> Iterator[Passage]:
    """Yield at most `MOST_PASSAGES` passages that neither overlap nor repeat a better one."""
    taken: list[Passage] = []
    said: list[frozenset[str]] = []
    for one in ordered:
        span = one.span
        # brackets and blank lines are common to any two passages
        lines = frozenset(line.strip() for line in span.text.split("\n") if len(line.strip()) > 3)
        overlaps = any(_overlap(other.span, span) for other in taken)
        copied = any(len(lines & other) >= ALIKE * max(1, len(lines)) for other in said)
        if overlaps or copied:
            continue
        taken.append(one)
        said.append(lines)
        yield one
        if len(taken) >= MOST_PASSAGES:
            return


def _said_together(said: Sequence[Mapping[int, float]], items: Sequence[bool], wording: Wording) -> dict[int, float]:
    """The match of adjacent lines: of the best row or item with the lines before the first, else of all lines."""
    if True not in items:
        return union(said)
    groups: list[list[Mapping[int, float]]] = [[]]
    for one, begins in zip(said, items, strict=True):
        if begins:
            groups.append([])
        groups[-1].append(one)
    lead, *rest = map(union, groups)
    return max((union((lead, item)) for item in rest), key=wording.covered)
