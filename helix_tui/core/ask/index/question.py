"""Parse a question for the index: its terms with weights, and explicit names of code."""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ask.tokens import count_terms

MAX_CHARS = 20_000
LONGEST_ASKED = 20
"""Maximum words of a question; a longer text is a report, unless it plainly asks."""
LONGEST_QUESTION = 60
"""Maximum words of a text that plainly asks: one paragraph that begins or ends like a question."""
Shape = Literal["name", "question", "report", "work"]
"""A single name; a question; a problem or a wish reported; a task with its verification."""
_ASKS = re.compile(
    r"^\W*(?:how|what|where|why|when|which|who|whose|does|do|is|are|can|could|should|will|did|has|have"
    r"|in what|under what|explain|describe|list|show|find|compare)\b",
    re.IGNORECASE,
)
_TRACE = re.compile(r"^Traceback|^\s+at [\w.$]+\(|panicked at|^goroutine \d+|^>>> ", re.MULTILINE)
_COMMIT_TITLE = re.compile(
    r"^(?:feat|fix|docs?|tests?|refactor|perf|chore|build|ci|style|spec|design|impl)(?:\([^)]*\))?!?: ", re.IGNORECASE
)
_AREA_TITLE = re.compile(r"^[a-z][\w-]*(?:\([\w./, -]+\))?!?: ")
_TOLD = re.compile(
    r"\b(?:I|I'm|I've|[Mm]y|me)\b"
    r"|(?i:\b(?:reproduc|expected behaviou?r|actual behaviou?r|stack ?trace|regression in|after upgrad))"
)
_PROVED = re.compile(
    r"\bacceptance\b|\bAC[\s-]?\d|\bAC-|\bin[- ]scope\b|\bout of scope\b|\bnon-?goals?\b|\bdone when\b"
    r"|\b(?:required|new|focused|regression) tests?\b|\btests? (?:cover|pass|prove|assert|verif)"
    r"|\b(?:go|cargo|npm|pnpm|yarn|make) test\b",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\b[A-Z][A-Z0-9]+(?:-[A-Z]+)*-\d{2,}\b")
_HEADING = re.compile(r"^(#+)\s", re.MULTILINE)
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED = re.compile(r"`([^`\n]{1,120})`")
_DOTTED = re.compile(r"(?<![\w./-])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![\w/])")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\(")
_COMPOUND = re.compile(
    r"\b(?:[a-z_]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*|[A-Z]{2,}[a-z]\w*|_*[A-Za-z][A-Za-z0-9]*_\w+|__\w+__)\b"
)
_CAPITAL = re.compile(r"\b[A-Z][a-zA-Z0-9]{2,}\b")
_PATH = re.compile(
    r"(?<![\w:/])(?:[\w.@+-]+/)*[\w.@+-]+\.[A-Za-z][A-Za-z0-9]{0,9}\b|(?<![\w:/])(?:[\w.@+-]+/)+[\w.@+-]+"
)
_FRAME = re.compile(
    r'File "([^"\n]+)", line \d+|\bat (?:async )?[\w.$<>]+ \(([^():\n]+):\d+:\d+\)'
    r"|\b([\w./-]+\.\w{1,4}):\d+"
)
_KINDS = {
    "test": re.compile(
        r"\b(?:tests?|testing|unittests?|pytest|fixtures?|coverage|specs?|e2e|mock(?:s|ed|ing)?)\b", re.IGNORECASE
    ),
    "doc": re.compile(
        r"^(?:docs?|spec|design|adr|prd|plan|research)(?:\([^)]*\))?:"  # the subject of a work item
        r"|\bhow (?:to|(?:do|can|should|would) (?:I|you|we|one))\b"  # instructions are found in documents
        r"|\b(?:docs?|documentation|documented|readme|changelog|guide|tutorial|docstrings?|typos?|wording|adr|prd|runbook)\b",
        re.IGNORECASE,
    ),
    "example": re.compile(r"\b(?:examples?|samples?|demos?|cookbook|quickstart)\b", re.IGNORECASE),
    "config": re.compile(
        r"\b(?:ci|workflows?|github actions?|docker(?:file)?|makefile|pre-commit|lint(?:er|ing)?|pyproject"
        r"|tsconfig|eslint|build system|packaging|release|version bump|bump|dependenc(?:y|ies))\b",
        re.IGNORECASE,
    ),
}


class IndexQuery(Struct, frozen=True):
    """A query to the index."""

    text: str
    title: str
    """Its first line."""
    weights: tuple[tuple[str, float], ...]
    """(term, weight) in order of term."""
    title_terms: frozenset[str]
    symbols: tuple[str, ...]
    """Names written as in code: quoted, called, dotted, or of several parts."""
    capitals: tuple[str, ...]
    """Capitalised words, which may be names of types or begin a sentence."""
    paths: tuple[str, ...]
    """Paths and file names that it mentions."""
    numbered: tuple[str, ...]
    """Numbers of documents and the like: ``FEAT-003``."""
    frames: tuple[str, ...]
    """Files of stack traces, the innermost first."""
    modules: tuple[str, ...]
    """Dotted names: ``package.module.name``."""
    kinds: frozenset[str]
    """The kinds of file that it names: test, doc, example, config."""

    @property
    def shape(self) -> Shape:
        """The kind of text, from its form alone."""
        size = len(self.text.split())
        if size == 1:
            return "name"
        if size <= LONGEST_ASKED:
            return "question"
        if size <= LONGEST_QUESTION and "\n" not in self.text and (_ASKS.match(self.text) or self.text.endswith("?")):
            return "question"
        if _TRACE.search(self.text):
            return "report"
        planned = _AREA_TITLE.match(self.title) or _PROVED.search(self.text)
        return "work" if _COMMIT_TITLE.match(self.title) or (planned and not _TOLD.search(self.text)) else "report"

    def titled(self) -> IndexQuery | None:
        """The title as a separate query; None if the text has none: a name, a question, a filled-in form."""
        marks = _HEADING.match(self.title)
        is_form = marks is not None and [found for found in _HEADING.findall(self.text) if found == marks[1]][1:]
        if self.shape not in ("report", "work") or "\n" not in self.text or is_form:
            return None
        return replace(self, weights=_weights(self.title, self.title))


def read_question(text: str) -> IndexQuery:
    """Parse a question; only the beginning of a very long one counts."""
    text = text[:MAX_CHARS].strip()
    title = text.partition("\n")[0]
    # the output and imports of an example are not what the text asks for
    prose = _FENCED.sub(" ", text)
    # more than three words are a command or a sentence
    quoted = [match for match in _QUOTED.findall(text) if len(match.split()) <= 3]
    dotted = _DOTTED.findall(text)
    named = [word for phrase in quoted for word in re.findall(r"[A-Za-z_]\w+", phrase)]
    named += [match.rpartition(".")[2] for match in dotted]
    named += _CALLED.findall(text) + _COMPOUND.findall(text)
    if len(text.split()) == 1:
        # a single word is taken for a name, however it is written
        named += re.findall(r"[A-Za-z_]\w*", text)
    asked = IndexQuery(
        text,
        title,
        _weights(text, title),
        frozenset(count_terms(title)),
        tuple(sorted({name for name in named if len(name) > 2})),
        tuple(sorted(set(_CAPITAL.findall(prose)))),
        tuple(sorted(set(_PATH.findall(text)))),
        tuple(sorted(set(_NUMBERED.findall(text)))),
        _frames(text),
        tuple(sorted(set(dotted))),
        _kinds(prose),
    )
    # any report may mention a test or an example; only its title names its subject
    return asked if asked.shape in ("name", "question") else replace(asked, kinds=_kinds(title))


def _frames(text: str) -> tuple[str, ...]:
    """Files of stack traces, the innermost first: Python prints that one last, others print it first."""
    python: list[str] = []
    others: list[str] = []
    for match in _FRAME.finditer(text):
        into = python if match.group(1) else others
        into.append(next(group for group in match.groups() if group))
    return tuple(dict.fromkeys([*reversed(python), *others]))


def _kinds(text: str) -> frozenset[str]:
    """The kinds of file that a text asks for; of a report only the title is read, as any report may mention a test
    or an example.
    """
    prose = _QUOTED.sub(" ", text)
    return frozenset(kind for kind, words in _KINDS.items() if words.search(prose))


def _weights(text: str, title: str, k3: float = 2.0, title_share: float = 0.5) -> tuple[tuple[str, float], ...]:
    """A term's weight grows with its count up to a limit; a term of the title counts more."""
    counts = count_terms(text)
    in_title: Counter[str] = count_terms(title) if "\n" in text else Counter()
    return tuple(
        (term, (k3 + 1) * times / (k3 + times) + (title_share if term in in_title else 0.0))
        for term, times in sorted(counts.items())
    )
