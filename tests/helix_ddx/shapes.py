"""What is compared of a run: which files, in which order, with which keys; never the values.

A run becomes a list of tokens, one a fact that a reader can see: a log line of some kind, a state of a
document, a state of a bead's row, a file that begins or goes. A recording looked once in 15 ms, so it holds
each fact with a time, missed what was there for less than that, and says nothing about the order of facts of
one moment.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

TICK = 0.035
"""Seconds between two facts of a recording from which on their order counts: two looks and some slack."""

_PATTERNS = (
    (re.compile(r"(?<!\d)\d{19}(?!\d)"), "<ns>"),
    (re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])"), "<hash>"),
    (re.compile(r"sessions-\d{4}-\d\d"), "sessions-<month>"),
    (re.compile(r"agent-(?!loop)[a-z]+-(?=<ns>)"), "agent-<harness>-"),
    (re.compile(r"ddx-exec-wt/\.execute-bead-wt-"), ".execute-bead-wt-"),
    (re.compile(r"\$H/\.cache/ddx/exec-wt/"), "$X/"),
)
_ATTEMPT = re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}")
_BEAD = re.compile(r"demo-[0-9a-f]{8}")
_TELLING = ("execute-bead", "review", "reopen", "operator_attention", "epic_auto_close")
"""Kinds of events whose summary is a word of the format and not of the data."""


@dataclass(frozen=True)
class Seen:
    """One change of a file as it was seen: when (a time or a place in a list), where, how, the text."""

    at: float
    path: str
    op: str
    text: str


@dataclass(frozen=True)
class Token:
    """One fact about a run, and when it was first seen."""

    name: str
    at: float
    thing: str = ""
    """What this is a state of: a later state replaces it, so a look may miss it. Empty for what stays."""
    count: int = 0
    """Which one it is of several that are alike."""


def tokens_of(changes: Iterable[Seen], first_rows: dict[str, dict[str, Any]] | None = None) -> list[Token]:
    """Every fact of a run, in order."""
    return _Tokens(first_rows).of(changes)


class _Tokens:
    def __init__(self, first_rows: dict[str, dict[str, Any]] | None) -> None:
        self.rows = first_rows
        self.names: dict[str, str] = {}
        self.counted: Counter[str] = Counter()
        self.texts: dict[str, str] = {}
        self.states: dict[str, str] = {}
        self.tokens: list[Token] = []

    def of(self, changes: Iterable[Seen]) -> list[Token]:
        for change in changes:
            path = self.pattern(change.path)
            if change.op == "delete":
                self.texts.pop(path, None)
                self.states.pop(path, None)
                self.add(f"{path} gone", change.at)
            elif path == "$P/.ddx/beads.jsonl":
                self.tracker(change)
            elif path.endswith((".jsonl", ".log")):
                self.lines(path, change)
            else:
                self.state(path, text_shape(change.text), change.at)
        return self.tokens

    def add(self, name: str, at: float) -> None:
        self.counted[name] += 1
        self.tokens.append(Token(name, at, count=self.counted[name]))

    def state(self, path: str, shape: str, at: float) -> None:
        if self.states.get(path) != shape:
            self.states[path] = shape
            self.tokens.append(Token(f"{path} {shape}", at, path))

    def lines(self, path: str, change: Seen) -> None:
        before = self.texts.get(path)
        if before is None:
            self.add(f"{path} begins", change.at)
        fresh = change.text
        if change.op != "append" and before and change.text.startswith(before):
            fresh = change.text[len(before) :]
        self.texts[path] = (before or "") + fresh
        for line in fresh.splitlines():
            self.add(f"{path} {line_shape(line)}", change.at)

    def tracker(self, change: Seen) -> None:
        rows = {row["id"]: row for row in map(json.loads, filter(None, change.text.split("\n")))}
        for bead, row in rows.items():
            if self.rows is None:
                # the recording does not hold what was there before: what carries a trace of a worker is new
                changed = row["status"] == "in_progress" or bool(row.get("events"))
            else:
                changed = row != self.rows.get(bead)
            if changed:
                self.state(f"row {self.named(bead, 'bead')}", row_shape(row), change.at)
        self.rows = rows

    def pattern(self, path: str) -> str:
        for expression, name in _PATTERNS:
            path = expression.sub(name, path)
        path = _ATTEMPT.sub(lambda found: self.named(found[0], "attempt"), path)
        return _BEAD.sub(lambda found: self.named(found[0], "bead"), path)

    def named(self, text: str, kind: str) -> str:
        """Ids by their order of appearance, so that two runs name them alike."""
        if text not in self.names:
            number = sum(name.startswith(f"<{kind}") for name in self.names.values()) + 1
            self.names[text] = f"<{kind} {number}>"
        return self.names[text]


def shape(value: Any) -> Any:
    """The keys of a JSON value, all the way down; a list has the shapes of its items, each once."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        unique: list[Any] = []
        for item in map(shape, value):
            if item not in unique:
                unique.append(item)
        return unique
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return shape(json.loads(value))
        except ValueError:
            return 0
    return 0


def text_shape(text: str) -> str:
    """A document's keys, or that it is text, or that it is empty."""
    if not text.strip():
        return "empty"
    try:
        value = json.loads(text)
    except ValueError:
        return "text"
    return dump(shape(value)) if isinstance(value, dict) else "text"


def line_shape(line: str) -> str:
    """A log line's kind and keys."""
    try:
        row = json.loads(line)
    except ValueError:
        return "text"
    if not isinstance(row, dict):
        return "text"
    kind = row.get("type") or row.get("kind") or row.get("operation") or ""
    data = row.get("data")
    phase = data.get("phase", "") if kind == "progress" and isinstance(data, dict) else ""
    return f"{kind} {phase} {dump(shape(row))}"


def row_shape(row: dict[str, Any]) -> str:
    """A bead's status, keys and history."""
    events = [
        f"{entry['kind']}:{entry['summary'] if entry['kind'] in _TELLING else ''}{dump(shape(entry))}"
        for entry in row.get("events", ())
    ]
    return f"{row['status']} {' '.join(sorted(set(row) - {'events', 'simulate'}))} | {' '.join(events)}"


def dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
