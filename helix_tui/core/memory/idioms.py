"""Idioms of a plan, read as a program can: the code that a change must show, and the code that it must not add.

Rules: docs/formats/memory.md §3. Code is what stands between backticks, else what no prose writes: a call, a
decorator, an option, a dotted or joined name, a quotation. A rule with a condition (unless, outside tests) is looked
for only where its author put the code between backticks; everything else is for whoever reads the change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

_TICKED = re.compile(r"`([^`\n]{2,200})`")
_BARE = re.compile(
    r"(?P<quoted>\"[^\"\n]{2,80}\"|“[^”\n]{2,80}”|(?<!\w)'[^'\n]{2,80}'(?!\w))"
    r"|(?P<code>@[A-Za-z_][\w.]*(?:\(\))?"  # a decorator
    r"|(?<![\w-])--[a-z][\w-]+"  # an option
    r"|(?<![\w.])[A-Za-z_][\w.]*(?:::\w+)*[!]?\((?:\))?"  # a call
    r"|(?<![\w./])[A-Za-z_]\w+(?:(?:\.|::)[A-Za-z_]\w+)+(?![\w/])"  # a dotted name
    r"|(?<![\w./])\w+_\w+(?![\w./])|(?<![\w./])[a-z]{2,}[A-Z][a-z]\w*(?![\w./]))"  # a joined name
)
_PROSE = re.compile(r"(?i)\.(?:js|ts|py|rs|go|md|net|io|com|org|json|toml|ya?ml|css|html|txt|cfg|ini|sql|sh|db)$")
"""Endings of products and files, which are no dotted names."""

_CUE = re.compile(
    r"(?i)\b(?P<instead>instead of|rather than|in place of)\b"
    r"|\b(?P<no>(?:do not|don['’]t|never|not|no|avoid|forbid|ban)"
    r"(?:\s+(?:ever|use|using|call|calling|add|import|write))*)\b"
    r"|\b(?P<yes>use|using|prefer|call|import)\b"
)
_CONDITION = re.compile(r"(?i)\b(?:unless|except|only|outside|without|where|when|if|inside|in tests?|in \w+ code)\b")
_PURPOSE = re.compile(r"(?i)\b(?:for|in|on|to)\s+(?P<words>[^.;:,]+)")
_COMMON = frozenset(
    ("this", "that", "the", "all", "any", "each", "every", "code", "file", "files", "module", "function")
)


class Idiom(Struct, frozen=True):
    """One rule."""

    text: str
    wanted: tuple[str, ...] = ()
    """Code of which a changed file must have one."""
    banned: tuple[str, ...] = ()
    """Code that no added line may have."""
    purpose: tuple[str, ...] = ()
    """What it is for, as beginnings of words; empty: for everything."""

    def concerns(self, task: str) -> bool:
        """Whether a task, by its own words, does what the rule is for; always where no words are given."""
        said = task.lower()
        return not self.purpose or not said.strip() or any(word in said for word in self.purpose)


def parse_idiom(text: str, *, forbidden: bool) -> Idiom:
    """The code that a rule names, and whether it wants or bans it: as its list says, and the words before it."""
    ticked = [(found.start(), found[1]) for found in _TICKED.finditer(text)]
    named = ticked or ([] if _CONDITION.search(text) else list(_bare(text)))
    cues = list(_CUE.finditer(_TICKED.sub(lambda each: " " * len(each[0]), text)))
    wanted: list[str] = []
    banned: list[str] = []
    for place, code in named:
        before = [cue for cue in cues if cue.end() <= place]
        cue = before[-1].lastgroup if before else ""
        if forbidden:
            other = bool(banned) and cue in ("instead", "yes")  # what to do in place of it
            banned += [] if other else [code]
        else:
            (banned if cue in ("instead", "no") else wanted).append(code)
    purpose = () if forbidden or not wanted else _purpose(text, named[0][0])
    return Idiom(text, tuple(wanted), tuple(banned), purpose)


def shows(text: str, code: str) -> bool:
    """Whether a text has a piece of code, as a whole name; ``name()`` is any call of it."""
    sought = code[:-1] if code.endswith("()") else code
    begin = r"(?<!\w)" if sought[:1].isalnum() or sought[:1] == "_" else ""
    end = r"(?!\w)" if sought[-1:].isalnum() or sought[-1:] == "_" else ""
    return re.search(begin + re.escape(sought) + end, text) is not None


def _bare(text: str) -> Iterator[tuple[int, str]]:
    for found in _BARE.finditer(text):
        code = found["code"] or found["quoted"][1:-1]
        if code.strip() and not (found["code"] and _PROSE.search(code)):
            yield found.start(), code


def _purpose(text: str, place: int) -> tuple[str, ...]:
    found = _PURPOSE.search(text, place)
    words = re.findall(r"[a-z]{3,}", found["words"].lower()) if found else ()
    return tuple(dict.fromkeys(word[:5] for word in words if word not in _COMMON))
