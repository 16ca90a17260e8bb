"""Parse the trailers of a stage's answer (docs/formats/helix.md §2 and §6).

An answer ends in ``NAME: value`` lines, which are read as tolerantly as agents write them. Bold marks and backticks are
ignored; a line may be a heading, a list item, a table cell or an object member, in any case. A line that repeats the
instructions (``A | B | C``, ``<text>``) is not an answer. NEXT_ACTION counts only as HELIX writes it, and its first
line; of every other trailer the last one, as answers quote their instructions first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.stages.table import NEXT_ACTIONS, Stage, Trailer

_MARKS = str.maketrans("", "", "*`")
_LEAD = r"""^[ \t>#|\-+"'{(\[_\d.)]*"""
_BETWEEN = r"""["'_ \t]*(?:[:=|]|\n)[\s"'(\[_]*"""
"""The separator between a name and its value: a sign, or the end of a heading's line."""
_TEMPLATE = re.compile(r"<[\w ]+>$")


class Trailers(Struct, frozen=True):
    """The trailers of one answer."""

    values: Mapping[str, str] = {}
    problems: tuple[str, ...] = ()
    """What the stage's contract requires and the answer lacks; else empty."""

    def get(self, name: str) -> str:
        """A trailer's value, or ""."""
        return self.values.get(name, "")


NO_TRAILERS = Trailers()


def parse_next_action(answer: str) -> str:
    """The first code in a check's answer, or ""; the name and the code count only as HELIX writes them, in capitals
    (FEAT-002, docs/formats/helix.md §2).
    """
    codes = "|".join(NEXT_ACTIONS)
    match = re.search(rf"NEXT_ACTION: *({codes})\b{_not_template(NEXT_ACTIONS)}", answer.translate(_MARKS))
    return match[1] if match else ""


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
            other = _another_word(plain, trailer)
            problems.append(
                f"{stage.name} output says {trailer.name}: {other}, which is none of {', '.join(trailer.words)}"
                if other
                else f"{stage.name} output missing {trailer.name} trailer"
            )
    return Trailers(values, tuple(problems))


def _all(plain: str, trailer: Trailer) -> list[str]:
    """Every value of a trailer in an answer, in order."""
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


def _another_word(plain: str, trailer: Trailer) -> str:
    """An answer's invalid value of a trailer with fixed values; "" if it only repeats the choices."""
    if not trailer.words:
        return ""
    said = next(reversed(_all(plain, Trailer(trailer.name))), "")
    match = re.search(rf"\b({'|'.join(map(re.escape, trailer.words))})\b", said, re.IGNORECASE)
    return "" if match else clean_line(said, 60)


def _find(pattern: str, plain: str) -> list[str]:
    return re.findall(pattern, plain, re.MULTILINE | re.IGNORECASE)


def _not_template(words: tuple[str, ...]) -> str:
    """A lookahead that forbids a second word of the list of choices."""
    return rf"(?![ \t]*[|/][ \t]*(?:{'|'.join(words)})\b)"
