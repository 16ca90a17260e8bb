"""A prompt laid out: each part of DDx's XML under its name, its text as Markdown, parts common to all prompts folded.

DDx writes prompts as XML whose texts are Markdown with character references, line breaks above all. Nothing is
left out: a part that is folded says how many lines it has, and raw shows the file as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape

from msgspec import Struct

from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.text.markdown import prose
from helix_tui.widgets.text.pane import FoldPane, Para

SHARED = frozenset({"instructions", "constraints", "output-contract", "rubric"})
"""Parts that are the same in every prompt: they start folded."""

SHORT = 100
"""The longest one-line text shown beside its name."""

_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*)((?:\s+[\w:.-]+=(?:\"[^\"]*\"|'[^']*'))*)\s*(/?)>")
_REFERENCE = re.compile(r"&(?:#[xX][0-9a-fA-F]{1,6}|#[0-9]{1,7}|lt|gt|amp|quot|apos);")
"""XML's character references; those of HTML are plain text."""

_HEADING = re.compile(r"^#{1,3} +(.+)$", re.MULTILINE)


class PromptPart(Struct, frozen=True):
    """One part of a prompt."""

    name: str
    about: str
    """The attributes of its tag."""
    text: str


def decoded(text: str) -> str:
    """A cleaned text with its XML references resolved."""
    return clean_block(_REFERENCE.sub(lambda found: unescape(found.group()), text))


def parts_of(text: str) -> list[PromptPart]:
    """The parts of a prompt in order; a prompt without XML is split at its headings."""
    if not text.lstrip().startswith("<"):
        # Markdown alone: an & in it is an &, but DDx writes line breaks as references here too
        return _by_headings(decoded(text) if "&#" in text else text)
    open_tags: list[tuple[str, str]] = []
    parts: list[PromptPart] = []
    at = 0
    for tag in _TAG.finditer(text):
        _take(parts, open_tags, text[at : tag.start()])
        at = tag.end()
        closes, name, about, empty = tag.groups()
        about = clean_line(decoded(about), 300).strip()
        if closes:
            names = [known for known, _ in open_tags]
            if name in names:
                # close the innermost tag of that name: unclosed tags inside it end with it
                del open_tags[len(names) - 1 - names[::-1].index(name) :]
        elif empty:
            parts.append(PromptPart(" › ".join([*(known for known, _ in open_tags[1:]), name]), about, ""))
        else:
            open_tags.append((name, about))
            if about and len(open_tags) > 1:
                parts.append(PromptPart(" › ".join(known for known, _ in open_tags[1:]), about, ""))
    _take(parts, open_tags, text[at:])
    return parts


def _take(parts: list[PromptPart], open_tags: Sequence[tuple[str, str]], raw: str) -> None:
    """Append text between two tags to the innermost open part."""
    said = decoded(raw).strip("\n")
    if not said.strip():
        return
    # the outermost tag is the prompt itself, the same in all prompts
    name = " › ".join(known for known, _ in open_tags[1:]) or (open_tags[0][0] if open_tags else "text")
    parts.append(PromptPart(name, "", said))


def _by_headings(text: str) -> list[PromptPart]:
    parts, name, at = [], "beginning", 0
    for heading in _HEADING.finditer(text):
        parts.append(PromptPart(name, "", text[at : heading.start()].strip("\n")))
        name, at = clean_line(heading[1].strip(), 200), heading.end()
    parts.append(PromptPart(name, "", text[at:].strip("\n")))
    return [part for part in parts if part.text.strip() or part.name != "beginning"]


class PromptPane(FoldPane):
    """The prompt of one attempt."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._parts: Sequence[PromptPart] = ()
        self._note: Sequence[Para] = ()

    def show_prompt(self, text: str, note: Sequence[Para] = ()) -> None:
        """Show a prompt from the top, or the text in its place."""
        self._parts, self._note = (parts_of(text) if text.strip() else ()), note
        folded = {str(place) for place, part in enumerate(self._parts) if part.name.split(" › ")[0] in SHARED}
        # a prompt with only common parts would show nothing
        self.begin(folded if len(folded) < len(self._parts) else set())

    def build(self, width: int) -> Sequence[Para]:
        """Each part under its name."""
        return list(self._paras_of(width)) if self._parts else self._note

    def _paras_of(self, width: int) -> Iterator[Para]:
        for place, part in enumerate(self._parts):
            key = str(place)
            one_line = "\n" not in part.text.strip() and len(part.text) <= SHORT
            about: tuple[Span, ...] = ((f"  {part.about}", "muted"),) if part.about else ()
            if one_line:
                spans: tuple[Span, ...] = ((f"  {part.text.strip()}", "text"),) if part.text.strip() else ()
                yield Para(key, ((part.name, "edge bold"), *spans, *about), hang=2, landmark=True)
                continue
            folded, lines = self.is_folded(key), part.text.count("\n") + 1
            mark: Span = ("▸ " if folded else "▾ ", "running")
            right: tuple[Span, ...] = ((counted(lines, "line"), "muted"),)
            yield Para(key, (mark, (part.name, "edge bold"), *about), right, landmark=True, opens=True)
            if not folded:
                for number, line in enumerate(prose(part.text, max(16, width - 2))):
                    yield Para(f"{key}:{number}", (("  ", "text"), *line), wrap="no")

    def folded_texts(self) -> Iterator[tuple[str, str]]:
        """The folded parts."""
        return ((str(place), part.text) for place, part in enumerate(self._parts) if self.is_folded(str(place)))
