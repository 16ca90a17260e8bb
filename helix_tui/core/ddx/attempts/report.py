"""Read what a loop prints with ``--json``: a text stream, and at its end one object (docs/formats/ddx.md §4)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_line

_REPORTED = frozenset({"project_root", "attempts", "results", "no_ready_work"})
"""Fields that identify a report among the objects of a text stream (docs/formats/ddx.md §4)."""

_OBJECT_START = re.compile(r'^\{(?=\r?$|")', re.MULTILINE)
_DECODER = json.JSONDecoder()


class LoopReport(Struct, frozen=True):
    """The object that ``--json`` prints at the end, with the fields of any release."""

    document: Mapping[str, Any]
    lead: str
    """The text stream before it."""

    @property
    def results(self) -> tuple[Mapping[str, Any], ...]:
        """One object per attempt; other values are left out."""
        results = self.document.get("results")
        return tuple(r for r in results if isinstance(r, dict)) if isinstance(results, list) else ()

    @property
    def exit_reason(self) -> str:
        """Why the loop ended, in DDx's words; April does not say."""
        return clean_line(self.document.get("exit_reason") or "", 200)

    @property
    def no_ready_work(self) -> bool:
        """Whether the queue had nothing to pick."""
        return self.document.get("no_ready_work") is True


class MalformedReport(HelixError, ValueError):
    """A text stream that does not end in a JSON object, although it should."""


def parse_report(output: str) -> LoopReport:
    """The last report in a loop's output that starts a line: ``{`` alone, or the whole on one line.

    The text before it is the text stream; anything after it is ignored, including JSON objects that a harness logs. If
    no object has a field of a report, the last one is used.

    Raises:
        MalformedReport: no such object, or it is cut off; the message says which.
    """
    found: tuple[dict[str, Any], int] | None = None
    end, problem = 0, "there is no JSON object in it" if output.strip() else "it is empty"
    for match in _OBJECT_START.finditer(output):
        if match.start() < end:
            continue  # inside the previous object
        is_report = found is not None and not _REPORTED.isdisjoint(found[0])
        try:
            document, end = _DECODER.raw_decode(output, match.start())
        except (ValueError, RecursionError) as error:
            if not is_report:
                found, problem = None, f"its JSON object does not parse: {clean_line(str(error), 200)}"
            continue
        if not is_report or not _REPORTED.isdisjoint(document):
            found = (document, match.start())
    if found is None:
        raise MalformedReport(problem)
    return LoopReport(found[0], output[: found[1]])
