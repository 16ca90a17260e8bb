"""What a stage's answer ends in: ``NAME: value`` lines, read as tolerantly as agents write them.

Rules: reference/helix.md §2 (NEXT_ACTION) and §6. Bold marks and backticks are passed over anywhere; the
first NEXT_ACTION decides, of every other trailer the last one does, for answers quote their instructions
first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from helix_tui.core.supervision.stages import NEXT_ACTIONS, Stage, Trailer
from helix_tui.core.text import clean_line

_MARKS = str.maketrans("", "", "*`")
_NEXT_ACTION = re.compile(r"NEXT_ACTION: *(" + "|".join(NEXT_ACTIONS) + r")\b")


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
    """The code that a check's answer names first, or nothing."""
    found = _NEXT_ACTION.search(answer.translate(_MARKS))
    return found.group(1) if found else ""


def parse_trailers(answer: str, stage: Stage) -> Trailers:
    """The trailers of a stage in its agent's answer."""
    plain = answer.translate(_MARKS)
    values: dict[str, str] = {}
    problems: list[str] = []
    for trailer in stage.trailers:
        value = parse_next_action(answer) if trailer.name == "NEXT_ACTION" else _last(plain, trailer)
        if value:
            values[trailer.name] = clean_line(value, 1000)
        elif trailer.required:
            problems.append(f"{stage.name} output missing {trailer.name} trailer")
    return Trailers(values, tuple(problems))


def _last(plain: str, trailer: Trailer) -> str:
    value = r"(" + "|".join(map(re.escape, trailer.words)) + r")\b" if trailer.words else r"([^\n]*\S)"
    if trailer.count:
        value = r"(\d+)\b"
    lines = re.findall(rf"(?m)^[ \t>\-]*{trailer.name}:[ \t]*{value}", plain)
    return str(lines[-1]).strip() if lines else ""
