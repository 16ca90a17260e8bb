"""Make text safe for a terminal, measure it and cut it; stem English words; split blocks in a bead.

Text from files and processes is untrusted until it has passed through here. A title may contain escape sequences that
recolour or retitle the terminal, bidirectional controls that make one id look like another, or newlines that break a
row. ``clean_line`` and ``clean_block`` return text that is safe to write to a terminal as it is; all outside text on a
screen must pass through them.

`stem_english` is the English stemmer of snowballstemmer, without the other languages that its package imports.

`split_block` finds the block of memories in a bead's description: showing a bead needs only that, not the memory
modules (24 MB with their libraries). `with_context` puts HELIX's own block there.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from importlib.util import find_spec, module_from_spec
from typing import Any

# ESC-introduced sequences: CSI, OSC/DCS/APC/PM/SOS up to their terminator, and two-byte escapes.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -~]?"
)
# C0 and C1 controls, bidi controls and isolates, zero-width characters, BOM, tags, lone surrogates,
# variation selectors and skin tones (terminals disagree on the width that they give the character before).
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U0001f3fb-\U0001f3ff\U000e0000-\U000e01ef]"
)
_CLEAN = re.compile(r"[ -~]*\Z")
_BLANKS = re.compile(r"\s+")

MAX_LINE = 2_000
"""Maximum characters of one line kept for a screen."""

_PACKAGE = "snowballstemmer"

BEGIN, END = "<helix-memory>", "</helix-memory>"
"""Markers around the block."""

_BLOCK = re.compile(rf"\n*{re.escape(BEGIN)}\n?(.*?)\n?{re.escape(END)}\n*", re.DOTALL)

CONTEXT_BEGIN, CONTEXT_END = "<helix-context>", "</helix-context>"
"""Markers around what HELIX gives the agent of one attempt: its stance and the digest of the project's context."""

_CONTEXT = re.compile(rf"\n*{re.escape(CONTEXT_BEGIN)}\n?(.*?)\n?{re.escape(CONTEXT_END)}", re.DOTALL)


class LatePattern:
    """A pattern compiled on first use, for processes that live a tenth of a second and may not need it."""

    def __init__(self, shape: str, flags: int = 0) -> None:
        self._shape, self._flags = shape, flags

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """The matches in a text."""
        return self._pattern.finditer(text)

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in a text."""
        return self._pattern.search(text)

    def match(self, text: str) -> re.Match[str] | None:
        """The match at the start of a text."""
        return self._pattern.match(text)

    def findall(self, text: str) -> list[str]:
        """The matched texts; the pattern has at most one group."""
        return self._pattern.findall(text)

    def sub(self, put: str | Callable[[re.Match[str]], str], text: str) -> str:
        """The text with every match replaced."""
        return self._pattern.sub(put, text)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._shape, self._flags)


def clean_line(text: object, limit: int = MAX_LINE) -> str:
    """One line without control sequences, bidi controls or runs of blanks, at most ``limit`` characters."""
    if not isinstance(text, str):
        text = "" if text is None else str(text)
    # cut before cleaning: a title of megabytes must not slow every row
    cut = len(text) > limit
    if cut:
        text = text[: limit * 2]
    # most texts are plain ASCII: one check saves three substitutions
    if not _CLEAN.match(text):
        text = _UNSAFE.sub("", _BLANKS.sub(" ", _ESCAPES.sub("", text)))
    text = _BLANKS.sub(" ", text).strip() if "  " in text or text[:1] == " " or text[-1:] == " " else text
    return text[: limit - 1] + "…" if cut or len(text) > limit else text


_OUR_COLOURS = LatePattern(r"\x1b\[(?:0|1|2|3[0-7]|1;36)m")
_MISLEADING = LatePattern("[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean_output(text: str) -> str:
    """What a command prints, however it was put together, without control sequences but for our own colours."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    cleaned, end = [], 0
    for colour in _OUR_COLOURS.finditer(text):
        cleaned += [_UNSAFE.sub("", _ESCAPES.sub("", text[end : colour.start()])), colour.group()]
        end = colour.end()
    return "".join((*cleaned, _UNSAFE.sub("", _ESCAPES.sub("", text[end:]))))


def escape_json(line: bytes) -> bytes:
    """A JSON text that says the same, with C1 controls and direction marks, which act on a terminal, escaped."""
    if line.isascii():
        return line
    return _MISLEADING.sub(lambda mark: f"\\u{ord(mark.group()):04x}", line.decode("utf-8", "replace")).encode()


def clean_words(text: object, limit: int) -> str:
    """As `clean_line`, but what is cut is cut between two words: an id or a number is whole or not there."""
    line = clean_line(text)
    if len(line) <= limit:
        return line
    # a single word that is longer than the limit has to be cut
    whole = line[: limit - 1].rpartition(" ")[0].rstrip(" ,;:")
    return f"{whole} …" if whole else clean_line(line, limit)


def capitalized(text: str) -> str:
    """A text with its first letter in capitals; the others stay."""
    return f"{text[:1].upper()}{text[1:]}"


def counted(number: int, one: str, many: str = "") -> str:
    """``1 bead``, ``2 beads``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def clean_block(text: object, limit: int = 400_000, tab: int = 4) -> str:
    """Text of several lines, without control sequences; tabs become blanks, CRLF becomes LF.

    Text beyond ``limit`` characters is cut, and the last line says how much.
    """
    if not isinstance(text, str):
        text = "" if text is None else str(text)
    beyond = len(text) - limit
    if beyond > 0:
        text = text[:limit]
    text = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(tab)
    text = _UNSAFE.sub("", _ESCAPES.sub("", text))
    return f"{text}\n… {counted(beyond, 'more character')}" if beyond > 0 else text


def cell_width(text: str) -> int:
    """Width of cleaned text in terminal cells: wide East Asian and emoji 2, combining marks 0 (by wcwidth)."""
    if text.isascii():
        return len(text)
    import wcwidth  # imported only for text that needs its tables: most titles do not

    return max(0, wcwidth.wcswidth(text))


def fit(text: str, width: int) -> str:
    """Cleaned text cut or padded to exactly ``width`` cells; a cut ends in ``…``."""
    if width <= 0:
        return ""
    if text.isascii():
        return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"
    have = cell_width(text)
    if have > width:
        import wcwidth

        text = wcwidth.clip(text, 0, width - 1) + "…"
        have = cell_width(text)
    return text + " " * (width - have)


def short_id(bead_id: str, width: int = 12) -> str:
    """A bead id for a narrow place: the part after the last dash if it has 4 or more, else cut in the middle."""
    if len(bead_id) <= width:
        return bead_id
    tail = bead_id.rpartition("-")[2]
    if 4 <= len(tail) <= width:
        return tail
    half = (width - 1) // 2
    return f"{bead_id[: width - 1 - half]}…{bead_id[-half:]}"


_lock = threading.Lock()
"""A stemmer keeps its current word as state, so only one word is stemmed at a time."""


def stem_english(word: str) -> str:
    """A lower-case word without its English endings. Thread-safe."""
    with _lock:
        found: str = _stemmer().stemWord(word)
        return found


@cache
def _stemmer() -> Any:
    """Load the stemmer on first use; importing all languages would cost 3 MB of memory and 30 ms at start."""
    spec = find_spec(_PACKAGE)
    if _PACKAGE not in sys.modules and spec is not None:
        sys.modules[_PACKAGE] = module_from_spec(spec)  # never executed: its modules need only its location
        try:
            return _english()
        finally:
            sys.modules.pop(_PACKAGE, None)  # a later import gets the whole package
    return _english()


def _english() -> Any:
    from snowballstemmer.english_stemmer import EnglishStemmer

    return EnglishStemmer()


def split_block(description: str) -> tuple[str, str]:
    """Split a description into the text without its blocks and the content of the blocks."""
    if BEGIN not in description:
        return description, ""
    held = "\n\n".join(part for part in _BLOCK.findall(description) if part.strip())
    return _BLOCK.sub("\n\n", description).strip("\n"), held


def with_context(description: str, text: str) -> str:
    """A description with this context at its end, replacing any former one; none for an empty text."""
    bare = _CONTEXT.sub("", description) if CONTEXT_BEGIN in description else description
    return f"{bare}\n\n{CONTEXT_BEGIN}\n{text}\n{CONTEXT_END}".lstrip("\n") if text else bare
