"""Parse a question, once for the whole run: its names, quoted words, places, content words; and its slots.

A slot is one of these that needs evidence, weighted by its rarity in the index. It is covered by the words of a span,
never by a path, a generated header, or the text of a tree (docs/formats/ask.md §2). Parsing depends on no repository
and no language model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from helix_tui.core.ask.tokens import STOP_WORDS, distinct_terms, parts, stem

MOST_CHARS = 20_000
"""Maximum characters of a question that are read."""
FOLLOWS = "\n\nAfter: "
"""Separator between a question that refers back and the one before it."""
MOST_SLOTS = 8
MOST_HINTS = 6

_ASKING = frozenset(
    [
        "define",
        "describe",
        "explain",
        "find",
        "give",
        "list",
        "mean",
        "meaning",
        "means",
        "show",
        "tell",
        "repo",
        "repository",
    ]
)
"""Words that only ask; a name written as code never counts as one."""

_QUOTED = re.compile(r"`([^`\n]{2,80})`|\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|‘([^’\n]{2,80})’")
_PATH = re.compile(
    r"(?<![\w:/])(?:[\w.@+-]+/)+[\w.@+-]+|(?<![\w/.])[\w-]+\.[a-z][a-z0-9]{0,4}(?![\w.(])"
    r"|\b[A-Z][A-Z0-9]+(?:-[A-Z]+)*-\d{2,}\b"
)
"""Paths, file names, and numbers of documents such as ``FEAT-003``."""
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
_FILE_ENDS = frozenset(
    [
        "py",
        "pyi",
        "ts",
        "tsx",
        "js",
        "jsx",
        "mjs",
        "cjs",
        "go",
        "rs",
        "java",
        "c",
        "h",
        "cc",
        "cpp",
        "hpp",
        "md",
        "rst",
        "txt",
        "toml",
        "yaml",
        "yml",
        "json",
        "jsonl",
        "sh",
        "sql",
        "css",
        "html",
        "cfg",
        "ini",
        "lock",
        "xml",
        "proto",
        "rb",
        "php",
        "kt",
        "swift",
        "cs",
        "lua",
        "vue",
        "svelte",
    ]
)
_DEFINITION = re.compile(
    r"^\W*(?:what(?:'s|’s|\s+is|\s+are)|define|(?:the\s+)?meaning\s+of)\s+(?P<it>[^?!.\n]+?)"
    r"(?:\s+(?:in|within|of|for)\s+(?:this|the|our)\s+\w+)?\s*[?!.]*$"
    r"|^\W*what\s+(?:does|do)\s+(?P<meant>[^?!.\n]+?)\s+mean\b",
    re.IGNORECASE,
)
_WORKS = re.compile(r"^(\W*how\s+(?:does|do|is|are)\b.*?)\s+(?:works?|done|implemented)\s*[?!.]*$", re.IGNORECASE)
"""A question how something works; that word is not what it is about."""
_ARTICLE = re.compile(r"^(?:a|an|the|this|our)\s+", re.IGNORECASE)


class Question(Struct, frozen=True):
    """A parsed question."""

    text: str
    title: str
    """Its first line."""
    names: tuple[str, ...]
    """Identifiers as written, without a call's parentheses."""
    quoted: tuple[str, ...]
    """Quoted texts other than single identifiers and paths."""
    paths: tuple[str, ...]
    """Texts that look like a path of the repository, or the number of a document."""
    words: tuple[str, ...]
    """Lower-case content words in order, each once."""
    focus: str = ""
    """What a question for a definition asks about; else empty."""

    @property
    def terms(self) -> tuple[str, ...]:
        """The stems of its words."""
        return tuple(dict.fromkeys(stem(word) for word in self.words))


def read_question(text: str) -> Question:
    """Parse a question; an empty one has no words."""
    text = text[:MOST_CHARS].strip()
    title = text.partition("\n")[0]
    quoted = tuple(dict.fromkeys(next(filter(None, found)).strip() for found in _QUOTED.findall(text)))
    paths = tuple(dict.fromkeys(found.strip("./") for found in _PATH.findall(text) if _is_place(found)))
    names = names_in(text)
    names += [quote.removesuffix("()") for quote in quoted if re.fullmatch(r"[A-Za-z_]\w*(\(\))?", quote)]
    if len(text.split()) == 1 and not paths:
        # a single word is taken for a name, however it is written
        names += re.findall(r"[A-Za-z_]\w+", text)
    # `config_loader.py` is a file, not an identifier
    names = [name for name in dict.fromkeys(names) if not any(name in path for path in paths)]
    other = tuple(one for one in quoted if one.removesuffix("()") not in names and one.strip("./") not in paths)
    words = _content_words(_WORKS.sub(r"\1", text), names, paths)
    return Question(text, title, tuple(names), other, paths, words, _focus(title))


def names_in(text: str) -> list[str]:
    """The words of a text that are written like code, each once: dotted, called, with an underscore or camel case."""
    return list(dict.fromkeys(name.removesuffix("()") for name in _NAME.findall(text)))


def _is_place(text: str) -> bool:
    """Whether a text is a path or a file's name rather than a dotted name or the end of a sentence."""
    return "/" in text or text.rpartition(".")[2] in _FILE_ENDS or "." not in text


def _content_words(text: str, names: Iterable[str], paths: Iterable[str]) -> tuple[str, ...]:
    """Words that are neither stop words, nor only ask, nor part of a name or path."""
    # longest first, so that a name inside another one does not split it
    for taken in sorted((*names, *paths), key=len, reverse=True):
        text = text.replace(taken, " ")
    kept: dict[str, None] = {}
    for word in _WORD.findall(text.replace("’", "'")):
        for part in word.removesuffix("'s").strip("'-").lower().split("-"):
            if len(part) > 1 and part not in STOP_WORDS and part not in _ASKING:
                kept.setdefault(part)
    return tuple(kept)


def _focus(title: str) -> str:
    """The subject of a question for a definition: ``What is a cavity in this repo?`` -> ``cavity``."""
    match = _DEFINITION.search(title)
    said = "" if match is None else match["it"] or match["meant"]
    return _ARTICLE.sub("", said.strip()).strip("`\"“”'’ ").removesuffix("()")


# -- slots ---------------------------------------------------------------------------------------------------

SlotSource = Literal["name", "quote", "concept", "word", "heading"]
Rarity = Callable[[str], float]
"""Term -> its weight by rarity in the index; the highest for a term that nothing has."""


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
    weight: float = 1.0
    """Its share of the coverage, before it is divided by the sum of all."""

    @property
    def would_satisfy(self) -> str:
        """The evidence that would cover it, in one sentence."""
        if self.source == "name":
            return f"a span that defines, documents or uses `{self.label}`"
        if self.source == "quote":
            return f"a span with the words “{self.label}”"
        return f"a span that speaks of “{self.label}”"


def slots_of(question: Question, rarity: Rarity, concepts: Sequence[str] = ()) -> tuple[Slot, ...]:
    """The required slots of a question; ``concepts`` are names of concepts in it, longest first."""
    found: dict[str, Slot] = {}

    def add(label: str, source: SlotSource, terms: tuple[str, ...]) -> None:
        ident = slug(label)
        # "retry after" and `retry_after` are one thing to find evidence for
        if terms and ident and ident not in found and not any(slot.terms == terms for slot in found.values()):
            found[ident] = Slot(ident, label, source, True, terms, round(max(map(rarity, terms)), 4))

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
    for word in words:
        add(word, "word", (stem(word),))
    # the rarest say most; in the question's order
    kept = sorted(found.values(), key=lambda slot: -slot.weight)[:MOST_SLOTS]
    return tuple(slot for slot in found.values() if slot in kept)


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


def name_parts(name: str) -> tuple[str, ...]:
    """The stems of an identifier's parts, in order: ``retryAfter`` -> retri, after."""
    return tuple(stem(part) for part in parts(name) if len(part) > 1)


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
