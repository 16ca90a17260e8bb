"""Parse a question: its kind, names and words; and its slots, which need evidence.

Parsing a question depends on no repository and no language model.

Required slots come only from the user's own words and from concepts of the repository; headings and trees only guide
retrieval (docs/formats/ask.md §2). A slot is covered by the words of a span, never by a path, a generated header, or
the text of a tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from helix_tui.core.ask.tokens import STOP_WORDS, distinct_terms, parts, stem

Kind = Literal["definition", "location", "usage", "mechanism", "check", "task"]
"""What it is; where it is; who uses it; how or why it works; whether it is true; a piece of work to do."""

LONG_WORDS = 40
"""Minimum words of a text (an issue or a bead), as opposed to a sentence."""

KEYWORDS = 4
"""Maximum words of a text that asks nothing for it to count as a subject to explain."""

MOST_CHARS = 20_000
"""Maximum characters of a question that are read."""

FOLLOWS = "\n\nAfter: "
"""Separator between a question that refers back and the one before it; its words are not searched for."""

_ONLY_ASKS = """
explain describe show tell find list give help understand know want wants need needs please mean means meant happen
happens happened becomes become exactly possible repo repository codebase project kind kinds sort sorts type types
level levels way ways reason reasons difference differences differ differs different compare compared versus vs there
somebody someone anybody nobody something anything everything everybody thing things stuff place places purpose
question answer actually currently really even else several certain various unless otherwise told given said asked
"""
ASKING_ONLY = frozenset(_ONLY_ASKS.split())
"""Words that only ask. They are part of the subject only if written as code, or if nothing else is left."""

_HOW_TO_ANSWER = """
explain describe define definition mean means meaning meant show tell find list give help understand know
want need work works working happen happens happening handle handles look looks see done called call calls
thing things stuff way ways exactly please repo repository codebase project code file files function
functions class method module located location lives live defined implemented implementation implement
purpose difference kind sort type overview summary summarise summarize detail details example examples
question answer inside currently actually possible used use uses using user make makes made does come comes
get taken
"""
_ASKING = frozenset(_HOW_TO_ANSWER.split()) | ASKING_ONLY
"""Words about how to answer, not about what; a name written as code never counts."""

_QUOTED = re.compile(r"`([^`\n]{2,80})`|\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|‘([^’\n]{2,80})’")
_PATH = re.compile(r"(?<![\w/])(?:[\w.@+-]+/)+[\w.@+-]+|(?<![\w/.])[\w-]+\.[a-z][a-z0-9]{0,4}(?![\w.(])")
_NAME = re.compile(
    r"[A-Za-z_]\w+(?:(?:\.|::)[A-Za-z_]\w+)+(?:\(\))?"  # dotted
    r"|[A-Za-z_]\w*\(\)"  # called
    r"|\b_*[A-Za-z0-9]+(?:_+[A-Za-z0-9]+)+_*\b"  # snake
    r"|\b_+[A-Za-z]\w*\b"
    r"|\b[a-z]+[A-Z]\w*\b"  # camel
    r"|\b[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+\b"  # Pascal
    r"|\b[A-Z]{2,}[A-Z0-9]*[a-z]\w*\b"
    r"|\b[A-Za-z]+\d+[A-Za-z]\w*\b"
)
_WORD = re.compile(r"[^\W_][\w'’-]*")

_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("mechanism", re.compile(r"^\W*(?:how (?!many|much)|why)\b")),
    (
        "usage",
        re.compile(
            r"\b(who|what|which \w+|where)\b.{0,40}"
            r"\b(calls?|uses?|imports?|used|called|imported|depends on)\b"
        ),
    ),
    (
        "location",
        re.compile(r"\bwhere\b|\bwhich (file|module|function|class|method|package|line|test)s?\b|\bin what file"),
    ),
    ("mechanism", re.compile(r"\bhow\b|\bwhy\b|\bexplain\b|\bwhat happens\b|\bwalk me through\b|\bdescribe\b")),
    (
        "definition",
        re.compile(r"\bwhat('s| is| are| was| does| do)\b|\bdefine\b|\bdefinition\b|\bmeaning\b|\bmeans?\b"),
    ),
    ("check", re.compile(r"^\W*(is|are|was|does|do|did|can|could|has|have|should|will|must|may)\b")),
    ("location", re.compile(r"\b(find|locate|show me)\b")),
)
"""The first match applies; without one, a question or a text of at most `KEYWORDS` words is a mechanism, else a task.
"""


class Question(Struct, frozen=True):
    """A parsed question."""

    text: str
    kind: Kind
    names: tuple[str, ...]
    """Identifiers as written, without a call's parentheses."""
    quoted: tuple[str, ...]
    """Quoted texts other than single identifiers and paths."""
    paths: tuple[str, ...]
    """Texts that look like a path of the repository."""
    words: tuple[str, ...]
    """Lower-case content words in order, each once."""
    focus: str = ""
    """The subject of a definition, mechanism or location, in the question's words; else empty."""

    @property
    def is_long(self) -> bool:
        """Whether it is a text rather than a sentence."""
        return len(self.text.split()) >= LONG_WORDS

    @property
    def terms(self) -> tuple[str, ...]:
        """The stems of its words."""
        return tuple(dict.fromkeys(stem(word) for word in self.words))


def understand(text: str) -> Question:
    """Parse a question; an empty one has no words."""
    text = text[:MOST_CHARS].strip()
    head = text.split("\n", 1)[0]
    quoted = tuple(dict.fromkeys(next(filter(None, found)).strip() for found in _QUOTED.findall(text)))
    paths = tuple(dict.fromkeys(found.strip("./") for found in _PATH.findall(text) if "/" in found or _is_file(found)))
    names = names_in(text)
    names += [quote.removesuffix("()") for quote in quoted if re.fullmatch(r"[A-Za-z_]\w*(\(\))?", quote)]
    # `config_loader.py` is a file, not an identifier
    names = [name for name in dict.fromkeys(names) if not any(name in path for path in paths)]
    kind = _kind(head, long=len(text.split()) >= LONG_WORDS)
    return Question(
        text=text,
        kind=kind,
        names=tuple(names),
        quoted=tuple(
            quote for quote in quoted if quote.removesuffix("()") not in names and quote.strip("./") not in paths
        ),
        paths=paths,
        words=_content_words(text, names, paths),
        focus=_focus(head) if kind in ("definition", "mechanism", "location") else "",
    )


def names_in(text: str) -> list[str]:
    """The words of a text that are written like code, each once: dotted, called, with an underscore or camel case."""
    return list(dict.fromkeys(name.removesuffix("()") for name in _NAME.findall(text)))


def _is_file(text: str) -> bool:
    """Whether a text with a dot is a file name rather than a dotted name or the end of a sentence."""
    return text.rpartition(".")[2] in _SUFFIXES


_FILE_ENDS = """
py pyi ts tsx js jsx mjs cjs go rs java c h cc cpp hpp md rst txt toml yaml yml json jsonl sh sql css html
cfg ini lock xml proto rb php kt swift cs lua vue svelte
"""
_SUFFIXES = frozenset(_FILE_ENDS.split())


def _kind(head: str, *, long: bool) -> Kind:
    lowered = head.lower()
    if long and "?" not in head:
        return "task"
    for kind, pattern in _KINDS:
        if pattern.search(lowered):
            return kind
    return "mechanism" if "?" in head or len(head.split()) <= KEYWORDS else "task"


def _content_words(text: str, names: list[str], paths: tuple[str, ...]) -> tuple[str, ...]:
    """Words that are neither stop words, nor about the answer, nor part of a name or path."""
    # longest first, so that a name inside another one does not split it
    for taken in sorted((*names, *paths), key=len, reverse=True):
        text = text.replace(taken, " ")
    kept: dict[str, None] = {}
    for word in _WORD.findall(text.replace("’", "'")):
        word = word.removesuffix("'s").strip("'-").lower()
        if len(word) < 2 or word in STOP_WORDS or word in _ASKING or word.isdigit():
            continue
        for part in word.split("-"):
            if len(part) > 1 and part not in STOP_WORDS and part not in _ASKING:
                kept.setdefault(part)
    return tuple(kept)


_FOCUS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"what\s+(?:does|do)\s+(?P<it>.+?)\s+(?:mean|means|stand for|do|refer to)\b",
        r"(?:what(?:'s|’s|\s+is|\s+are|\s+was)|who\s+is|define|explain|describe|meaning\s+of)\s+(?P<it>.+)",
        r"where\s+(?:is|are|does|do)\s+(?P<it>.+?)(?:\s+(?:found|defined|declared|implemented|handled|set|made"
        r"|done|computed|located|happen|happening|come|live))*$",
        r"how\s+(?:does|do|is|are)\s+(?P<it>.+?)(?:\s+(?:work|works|done|handled|implemented|computed))?$",
    )
)
_FOCUS_TAIL = re.compile(
    r"\s+(?:in|within|inside|of|for|from)\s+(?:this|the|our|that)\s+(?:repo|repository|project|codebase|code|program)\b.*$",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:a|an|the|this|our)\s+", re.IGNORECASE)


def _focus(head: str) -> str:
    """The subject of a question: ``What is a cavity in this repo?`` -> ``cavity``."""
    head = head.strip().rstrip("?!. ")
    for pattern in _FOCUS:
        found = pattern.search(head)
        if found is not None:
            words = _ARTICLE.sub("", _FOCUS_TAIL.sub("", found["it"]).strip())
            return words.strip("`\"“”'’ ").removesuffix("()")
    return ""


def name_parts(name: str) -> tuple[str, ...]:
    """The stems of an identifier's parts, in order: ``retryAfter`` -> retri, after."""
    return tuple(stem(part) for part in parts(name) if len(part) > 1)


SlotSource = Literal["name", "quote", "concept", "word", "heading"]

MOST_SLOTS = 8
MOST_HINTS = 6
COMMON_SHARE = 0.35
"""Share of all files from which a word is too common for a slot, unless all words are."""

Frequency = Callable[[str], float]
"""Term -> share of the files that have it, 0 to 1."""


class Slot(Struct, frozen=True):
    """One part of the question that needs evidence."""

    id: str
    """Lower-case words joined by hyphens."""
    label: str
    """The text to show."""
    source: SlotSource
    required: bool
    terms: tuple[str, ...]
    """Stems, all of which a span must have; a name's parts must be in one identifier or side by side."""

    @property
    def would_satisfy(self) -> str:
        """The evidence that would cover it, in one sentence."""
        if self.source == "name":
            return f"a span that defines, documents or uses `{self.label}`"
        if self.source == "quote":
            return f"a span with the words “{self.label}”"
        return f"a span that speaks of “{self.label}”"


def slots_of(question: Question, frequency: Frequency, concepts: Sequence[str] = ()) -> tuple[Slot, ...]:
    """The required slots of a question; ``concepts`` are names of concepts in it, longest first."""
    found: dict[str, Slot] = {}

    def add(label: str, source: SlotSource, terms: tuple[str, ...]) -> None:
        ident = slug(label)
        # "retry after" and `retry_after` are one thing to find evidence for
        if terms and ident and ident not in found and not any(slot.terms == terms for slot in found.values()):
            found[ident] = Slot(ident, label, source, True, terms)

    for name in question.names:
        add(name, "name", name_parts(name) or (name.lower(),))
    for quote in question.quoted:
        add(quote, "quote", tuple(stem(word.lower()) for word in re.findall(r"\w+", quote)))
    words = list(question.words)
    for concept in concepts:
        terms = tuple(dict.fromkeys(stem(word) for word in re.findall(r"\w+", concept.lower())))
        if len(terms) > 1 and set(terms) <= {stem(word) for word in words}:
            add(concept, "concept", terms)
            words = [word for word in words if stem(word) not in terms]
    room = MOST_SLOTS - len(found)
    for word in _telling(words, frequency, room if not question.is_long else min(room, 4)):
        add(word, "word", (stem(word),))
    return tuple(found.values())[:MOST_SLOTS]


def _telling(words: Sequence[str], frequency: Frequency, most: int) -> list[str]:
    """The most informative words, in the question's order; common ones only if there are no others."""
    shares = {word: frequency(stem(word)) for word in words}
    telling = [word for word in words if shares[word] < COMMON_SHARE] or list(words)
    if len(telling) <= most:
        return telling
    # the rarest; a word that is in no file comes last, as no span can cover it
    kept = set(sorted(telling, key=lambda word: (shares[word] or 1.0, telling.index(word)))[: max(0, most)])
    return [word for word in telling if word in kept]


def hints_of(headings: Iterable[str], slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """Soft slots: headings that share two terms or more with the required ones. They never fail a run."""
    known = {term for slot in slots for term in slot.terms}
    found: dict[str, Slot] = {}
    for heading in headings:
        terms = tuple(dict.fromkeys(stem(word) for word in re.findall(r"\w+", heading.lower())))
        if len(known.intersection(terms)) > 1 and len(found) < MOST_HINTS:
            found.setdefault(slug(heading), Slot(slug(heading), heading, "heading", False, terms))
    return tuple(found.values())


def slug(label: str) -> str:
    """``TS_ratio`` -> ts-ratio."""
    return "-".join(re.findall(r"[^\W_]+", label.lower()))


@lru_cache(maxsize=4096)
def terms_in(text: str) -> frozenset[str]:
    """The distinct terms of a text, those in its names included."""
    return frozenset(distinct_terms((text,)))


@lru_cache(maxsize=512)
def _name_pattern(name: str) -> re.Pattern[str]:
    """A pattern of a name, or its parts side by side: ``retry_after`` finds retryAfter and retry-after."""
    pieces = [re.escape(piece) for piece in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name.rpartition(".")[2])]
    return re.compile(r"(?<![^\W_])" + r"[\W_]?".join(pieces or [re.escape(name)]) + r"(?![^\W_])", re.IGNORECASE)


def covers(slot: Slot, text: str) -> bool:
    """Whether the words of a span cover a slot."""
    if slot.source == "name":
        return _name_pattern(slot.label).search(text) is not None
    if slot.source == "quote":
        wanted = r"\W+".join(map(re.escape, re.findall(r"\w+", slot.label)))
        return bool(wanted) and re.search(rf"(?<!\w){wanted}(?!\w)", text, re.IGNORECASE) is not None
    return terms_in(text).issuperset(slot.terms)
