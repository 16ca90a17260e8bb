"""Find the branches of code whose conditions a question names, what they do, and their tests.

A branch is a guard (``if``, ``case``, ``except``, ``catch``, an arm of a match) with the lines indented below it, or a
statement that raises, refuses or reports, with the nearest guard above it. Its condition is described by the guard, its
comment and its message; the constant or class of an error by its definition. Branches are found by lines and
indentation, in the same way for every language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from helix_tui.core.ask.records import Definition, Library, Span
from helix_tui.core.ask.retrieval.subject import Wording, union

MOST_FILES = 24
"""Maximum number of files to read for branches: those with the best spans."""
MOST_BRANCHES = 12
"""Maximum number of branches judged as passages."""
BODY = 10
"""Maximum lines of a branch to read: deeper code usually has another guard."""
ABOVE = 16
"""Maximum lines above a statement to search for its guard."""
OUTER = 0.6
"""Weight of outer guards and of the definition's name relative to the branch itself."""
LINKED = 0.8
"""Weight of the definition of an error relative to the branch itself."""
MOST_LINKED = 60
ENDS = 0.15
"""Bonus of a branch that raises, refuses or exits."""
SENSE = 0.2
"""Bonus of a branch whose comparison matches the question."""
READ = 4
SENSED = 0.7
LINE = 300

_GUARD = re.compile(
    r"^\s*(?:\}\s*)?(?:else\s+)?(?:if|elif|elsif|case|when|except|catch|unless|guard)\b"
    r"|^\s*(?:Some|None|Ok|Err|Self::|_|[A-Z]\w*::|\d)[^;\"]{0,120}=>"
)
_ENDING = re.compile(
    r"(?:^|[;{:)]|=>|\belse|\breturn|\bawait)\s*(?:raise|throw)\b|\b(?:panic|bail|anyhow|unreachable|eprintln)!|\bpanic\("
    r"|\b(?:exit|abort|reject|fatal|Fatalf?|Err|Errorf|[a-z]\w*Error)\(|\berrors\.New\(|\bnew \w*(?:Error|Exception)\("
    r"|\breturn\b[^\"'`]{0,40}\b(?:[Ee]rr\b|Err[A-Z_])|\b(?:log\w*|console|warnings?)\.(?:error|warn\w*|crit\w*)\("
)
_COMMENT = re.compile(r"^\s*(?:#(?!\[)|//|/\*|\*)")
_NAME = re.compile(r"\b[A-Z][A-Za-z]*[a-z]\w*\b|\b[A-Z]+_[A-Z_]+\b|\b_?msg\b")

_SENSES = (
    (
        r"\b(?:zero|empty|nothing|blank|no|none|missing|without|absent|unset|null|nobody|exists?)\b",
        r"\bnot \w|!\s*\w|\bis None\b|[=!]= ?(?:nil|null|None|undefined|0|-1|''|\"\")|is_?empty|is_none|None =>"
        r"|\(\) ?== ?0|<= ?0|< ?1\b|not_?found|\bENOENT|miss",
    ),
    (
        r"\b(?:too (?:large|big|many|much|high)|larger|bigger|longer|more|exceed\w*|over|above|greater|limit|grows)\b",
        r" >=? |exceed|limit|\bmax|too |overflow",
    ),
    (r"\b(?:too long|longer|in time|slow\w*|hangs?|time allowed|never answers?)\b", r"time_?d? ?out|deadline|expire"),
    (r"\b(?:too (?:small|few|short|little|low)|smaller|less|fewer|below|under|negative)\b", r" <=? |\bmin|too "),
    (
        r"\b(?:same|equal|twice|duplicates?|already|second|again)\b",
        r"==| in |already|duplicate|contains|has\w*\(|exists",
    ),
    (
        r"\b(?:another|other|different|wrong|invalid|unknown|not|never|cannot|fails?|failed|error|mis\w+)\b|n't\b",
        r"!=|!\s*\w|\bnot\b|except|catch|Err|err|invalid|unknown|fail|not_?found|== ?-1|undefined",
    ),
)
"""Conditions in plain words, with patterns of how code writes them."""


class Branch(Struct, frozen=True):
    """A branch: the line of its guard, the one that acts, and its last, all counted from 1."""

    file: str
    guard: int
    acts: int
    acted: int
    """The last line of the statement that acts."""
    end: int
    score: float
    said: float
    """The share of the subject that the branch itself covers, 0 to 1."""


def branches_for(library: Library, spans: Iterable[Span], wording: Wording) -> list[Branch]:
    """The branches whose conditions match a subject best, best first, from the source files of some spans."""
    best: dict[str, float] = {}
    for span in spans:
        if span.role == "source" and span.kind != "section":
            best[span.file] = max(best.get(span.file, 0.0), span.score)
    most = max(best.values(), default=0.0) or 1.0
    senses = list(_senses_of(wording))
    linked = _Linked(library, wording)
    found: list[Branch] = []
    for file in sorted(best, key=lambda file: (-best[file], file))[:MOST_FILES]:
        standing = 0.35 * best[file] / most
        lines = [line[:LINE] for line in library.lines(file)]
        found += _of_file(file, lines, library.definitions_in(file), wording, senses, linked, standing)
    found.sort(key=lambda one: (-one.score, one.file, one.guard))
    return found[:MOST_BRANCHES]


class _Sense(Struct, frozen=True):
    """A code pattern for a condition of the question, and the subject's words for that condition."""

    code: re.Pattern[str]
    said: Mapping[int, float]


def is_condition(word: str) -> bool:
    """Whether a word is a condition that code may write with other signs: zero, twice, limit."""
    return any(re.fullmatch(plain, word) for plain, _ in _SENSES)


def _senses_of(wording: Wording) -> Iterator[_Sense]:
    for plain, code in _SENSES:
        if re.search(plain, wording.subject.text, re.I):
            words = enumerate(wording.subject.words)
            yield _Sense(re.compile(code), {at: SENSED for at, one in words if re.fullmatch(plain, one.word)})


class _Linked:
    """The match of error definitions with the subject, each looked up once."""

    def __init__(self, library: Library, wording: Wording) -> None:
        self._library = library
        self._wording = wording
        self._said: dict[str, Mapping[int, float]] = {}

    def said(self, line: str) -> dict[int, float]:
        found = [self._of(name) for name in _NAME.findall(line)[:4]]
        return {at: LINKED * strength for at, strength in union(found).items()}

    def _of(self, name: str) -> Mapping[int, float]:
        if name not in self._said:
            self._said[name] = {}
            if len(self._said) <= MOST_LINKED:
                texts = []
                for one in self._library.definitions(name)[:2]:
                    # the comment above it and its first lines usually explain an error
                    first = max(1, one.start - 2)
                    texts += list(self._library.lines(one.file, first, min(one.end, one.start + 4)))
                self._said[name] = self._wording.in_text("\n".join(text[:LINE] for text in texts))
        return self._said[name]


class _Names:
    """The match of the enclosing definitions' names with the subject."""

    def __init__(self, definitions: Sequence[Definition], wording: Wording) -> None:
        self._definitions = definitions
        self._wording = wording
        self._said: dict[str, Mapping[int, float]] = {}

    def said(self, line: int) -> Mapping[int, float]:
        header = ""
        for one in self._definitions:
            if one.start > line:
                break
            header = one.header if one.end >= line else header
        if header not in self._said:
            self._said[header] = self._wording.in_text(header)
        return self._said[header]


def _of_file(
    file: str,
    lines: Sequence[str],
    definitions: Sequence[Definition],
    wording: Wording,
    senses: Sequence[_Sense],
    linked: _Linked,
    standing: float,
) -> Iterator[Branch]:
    prose = _prose(lines)
    depth = [len(line) - len(line.lstrip()) if line.strip() else -1 for line in lines]
    said: dict[int, dict[int, float]] = {}
    names = _Names(definitions, wording)

    def says(at: int) -> dict[int, float]:
        if at not in said:
            said[at] = wording.in_text(lines[at])
        return said[at]

    seen: set[int] = set()
    for at, line in enumerate(lines):
        # a docstring that says "raises" is not a branch
        if at in prose or not (_GUARD.search(line) or _ENDING.search(line)):
            continue
        guards = _guards_of(at, lines, depth)
        guard = guards[0] if guards else at
        end = _end_of(guard, depth, lines) if guards else _statement_end(at, lines)
        acts = at if at != guard else _acts(guard, end, lines)
        # a guard and the statement it leads to are one branch
        if acts in seen:
            continue
        seen.add(acts)
        last = _statement_end(acts, lines)
        # the branch itself: its condition, which may take several lines, and what it does
        own: list[Mapping[int, float]] = [
            says(number) for number in (*range(guard, min(end, guard + READ) + 1), *range(acts, last + 1))
        ]
        # a comment on a branch is above its guard or on the first line below it
        comments = [says(n) for n in (guard - 1, guard - 2, guard + 1) if 0 <= n < len(lines) and n in prose]
        own += comments
        own.append(linked.said(lines[acts]) if _ENDING.search(lines[acts]) else {})
        text = "\n".join(lines[number] for number in (guard, acts))
        meant = [sense for sense in senses if sense.code.search(text)]
        own += [sense.said for sense in meant]
        together = union(own)
        if not together:
            continue
        # context counts for less: the outer guards, and the name of the definition
        outer = union([*(says(number) for number in guards[1:3]), names.said(at + 1)])
        around = {number: OUTER * strength for number, strength in outer.items()}
        alone, with_outer = wording.covered(together), wording.covered(union((together, around)))
        score = 0.6 * alone + 0.4 * with_outer + standing
        score += ENDS * bool(_ENDING.search(lines[acts])) + SENSE * bool(meant)
        yield Branch(file, guard + 1, acts + 1, last + 1, max(end, last) + 1, round(score, 6), round(alone, 4))


def _prose(lines: Sequence[str]) -> frozenset[int]:
    """The lines of comments and docstrings."""
    found, quoted = [], ""
    for at, line in enumerate(lines):
        opening = re.match(r"\s*[rR]?(\"\"\"|''')", line)
        if quoted:
            found.append(at)
            quoted = "" if quoted in line else quoted
        elif opening:
            found.append(at)
            quoted = opening[1] if line.count(opening[1]) == 1 else ""
        elif _COMMENT.match(line):
            found.append(at)
    return frozenset(found)


def _guards_of(at: int, lines: Sequence[str], depth: Sequence[int]) -> list[int]:
    """The guards around a line, nearest first; the line itself comes first if it is one."""
    found = [at] if _GUARD.search(lines[at]) else []
    level = depth[at]
    for above in range(at - 1, max(-1, at - ABOVE - 1), -1):
        # only less indented lines enclose this one
        if 0 <= depth[above] < level:
            level = depth[above]
            if _GUARD.search(lines[above]):
                found.append(above)
            if level == 0:
                break
    return found


def _end_of(guard: int, depth: Sequence[int], lines: Sequence[str]) -> int:
    """The last line of a branch, at most `BODY` lines below its guard."""
    end = guard
    for at in range(guard + 1, min(len(lines), guard + BODY + 1)):
        # the closing bracket of a condition over several lines may have the guard's depth; the branch does not end
        # there
        if 0 <= depth[at] <= depth[guard] and not lines[at].lstrip().startswith((")", "]")):
            return at if lines[at].strip() in ("}", "};", "})", "},") else end
        if depth[at] >= 0:
            end = at
    return end


def _statement_end(at: int, lines: Sequence[str]) -> int:
    """The last line of a statement that begins at a line."""
    end, opened = at, 0
    for number in range(at, min(len(lines), at + BODY)):
        opened += sum(lines[number].count(mark) for mark in "([{") - sum(lines[number].count(mark) for mark in ")]}")
        end = number
        if opened <= 0:
            break
    return end


def _acts(guard: int, end: int, lines: Sequence[str]) -> int:
    """The line that shows what a branch does: the first that raises, refuses or reports, else its first."""
    inside = [at for at in range(guard, end + 1) if _ENDING.search(lines[at])]
    return inside[0] if inside else min(guard + 1, end)


# --- the test of a branch ---------------------------------------------------------------------------------

MOST_NAMES = 4
MOST_USES = 60
TEST_LINES = 40
LEAST_SAID, LEAST_NAMED = 0.4, 0.35
"""Minimum shares of the subject in a test and in its name for it to belong to a branch."""
MESSAGE = 12
"""Minimum characters of a distinctive message."""
_TEST = re.compile(
    r"^\s*(?:test|it|Deno\.test)(?:\.\w+)*\s*\(|^\s*(?:async )?def test|^func Test|^\s*(?:async )?fn \w+"
    r"|^\s*(?:public )?void \w+"
)
_STRING = re.compile(r"\"([^\"]+)\"|'([^']+)'|`([^`]+)`")
_HOLE = re.compile(r"\$?\{[^}]*\}|%\S|\\\S")


def test_of(library: Library, branch: Branch, spans: Iterable[Span], wording: Wording) -> Span | None:
    """The test of a branch: it names its error, message or function, and matches the subject best; None if there is
    none.
    """
    lines = library.lines(branch.file)
    acts = "\n".join(lines[branch.acts - 1 : branch.acted])
    around = [one.name for one in library.definitions_in(branch.file) if one.start <= branch.guard <= one.end]
    # errors first, then the definition around the branch; `msg` is too common a name
    names = list(dict.fromkeys([*(name for name in _NAME.findall(acts) if name.strip("_") != "msg"), *around[-1:]]))
    found: dict[tuple[str, int], tuple[float, Span]] = {}
    for name in names[:MOST_NAMES]:
        for use in library.uses(name, most=MOST_USES, role="test"):
            _add_test(library, found, use.file, use.line, name, wording)
    for piece in _messages("\n".join(lines[branch.guard - 1 : branch.acted])):
        for span in spans:
            at = span.text.find(piece) if span.role == "test" else -1
            if at >= 0:
                _add_test(library, found, span.file, span.start + span.text.count("\n", 0, at), piece, wording)
    best = max(found.values(), key=lambda row: (row[0], row[1].file, -row[1].start), default=None)
    return best[1] if best is not None else None


def _messages(text: str) -> Iterator[str]:
    """The fixed parts of a statement's messages that are long enough to be distinctive."""
    for groups in _STRING.findall(text):
        for piece in _HOLE.split("".join(groups)):
            if len(piece.strip(" .:")) >= MESSAGE:
                yield piece.strip(" .:")


def _add_test(
    library: Library, found: dict[tuple[str, int], tuple[float, Span]], file: str, line: int, by: str, wording: Wording
) -> None:
    """Add the test around a line to ``found``, if it is relevant and scores higher than before."""
    lines = library.lines(file)
    first = next((at for at in range(line, max(0, line - TEST_LINES), -1) if _TEST.match(lines[at - 1])), 0)
    if not first:
        return
    last = min(len(lines), max(line, first) + 3)
    text = "\n".join(text[:LINE] for text in lines[first - 1 : last])
    said = wording.covered(wording.in_text(text))
    named = wording.covered(wording.in_text(lines[first - 1]))
    # the message belongs to this branch; a name is in tests of other branches too
    message = len(by) >= MESSAGE and " " in by
    if not message and (said < LEAST_SAID or named < LEAST_NAMED):
        return
    score = said + named + 0.5 * message
    span = library.span_at(file, first, last)
    held = found.get((file, first))
    if span is not None and (held is None or score > held[0]):
        found[file, first] = (round(score, 6), span)
