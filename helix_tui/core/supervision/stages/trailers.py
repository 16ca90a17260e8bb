"""What a stage's answer ends in: ``NAME: value`` lines, read as tolerantly as agents write them.

Rules: docs/formats/helix.md §2 (NEXT_ACTION) and §6. Bold marks and backticks are passed over anywhere; a
line may be a heading, an item, a cell of a table or a member of an object, and its case may be off. A line
that repeats the instructions (``A | B | C``, ``<text>``) answers nothing. The first NEXT_ACTION decides,
of every other trailer the last one does, for answers quote their instructions first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.stages.table import NEXT_ACTIONS, Stage, Trailer

_MARKS = str.maketrans("", "", "*`")
_LEAD = r"""^[ \t>#|\-+"'{(\[_\d.)]*"""
_BETWEEN = r"""["'_ \t]*(?:[:=|]|\n)[\s"'(\[_]*"""
"""What stands between a name and its word: a sign, or the end of a heading's line."""
_TEMPLATE = re.compile(r"<[\w ]+>$")


@dataclass(frozen=True, slots=True)
class Trailers:
    """The trailers of one answer."""

    values: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    """What the stage's contract asks for and the answer lacks; empty where it holds."""

    def get(self, name: str) -> str:
        """A trailer's value, or nothing."""
        return self.values.get(name, "")

    def number(self, name: str) -> int | None:
        """A trailer's value as a whole number."""
        found = re.match(r"\d+", self.get(name))
        return int(found.group()) if found else None


NO_TRAILERS = Trailers()


def parse_next_action(answer: str) -> str:
    """The code that a check's answer names first, or nothing; one written exactly goes before any other."""
    plain = answer.translate(_MARKS)
    exact = re.search(rf"NEXT_ACTION:[ \t]*({'|'.join(NEXT_ACTIONS)})\b{_not_template(NEXT_ACTIONS)}", plain)
    if exact:
        return exact.group(1)
    loose = _all(plain, Trailer("NEXT_ACTION", NEXT_ACTIONS))
    return loose[0] if loose else ""


def parse_trailers(answer: str, stage: Stage) -> Trailers:
    """The trailers of a stage in its agent's answer."""
    plain = answer.translate(_MARKS)
    values: dict[str, str] = {}
    problems: list[str] = []
    for trailer in stage.trailers:
        if trailer.name == "NEXT_ACTION":
            value = parse_next_action(answer)
        else:
            value = next(reversed(_all(plain, trailer)), "")
        if value:
            values[trailer.name] = clean_line(value, 1000)
        elif trailer.required:
            problems.append(f"{stage.name} output missing {trailer.name} trailer")
    return Trailers(values, tuple(problems))


def _all(plain: str, trailer: Trailer) -> list[str]:
    """Every value that an answer gives a trailer, in order."""
    name = trailer.name.replace("_", "[_ -]")
    if trailer.words:
        words = "|".join(re.escape(word).replace("_", "[_ -]") for word in trailer.words)
        pattern = rf"{_LEAD}{name}{_BETWEEN}({words})\b{_not_template(trailer.words)}"
        named = {word.lower(): word for word in trailer.words}
        return [named[re.sub("[ -]", "_", word.lower())] for word in _find(pattern, plain)]
    if trailer.count:
        return _find(rf"{_LEAD}{name}{_BETWEEN}(\d+)\b", plain)
    found = _find(rf"""{_LEAD}{name}["'_ \t]*[:=|][ \t]*(\S[^\n]*)""", plain)
    values = [value.strip(" \t\r|\"'") for value in found]
    if trailer.word:
        values = [value.split()[0].rstrip(".,;") for value in values if value]
    return [value for value in values if value and not _TEMPLATE.match(value)]


def _find(pattern: str, plain: str) -> list[str]:
    return re.findall(pattern, plain, re.MULTILINE | re.IGNORECASE)


def _not_template(words: tuple[str, ...]) -> str:
    """What must not follow: a second word of the list of those that may be said."""
    return rf"(?![ \t]*[|/][ \t]*(?:{'|'.join(words)})\b)"
