"""Wishes of curation, each in our words and as a person types it to ddx."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Words = tuple[str, ...]
Typed = Callable[[str, str, dict[str, Any]], list[Words]]
"""Of a bead, another bead and the row as it stands: what is typed, command by command."""

REASON = "lifecycle-external-blocker-reason"
"""Why a bead is blocked, as rows name it: ddx of August has a flag for it besides."""


@dataclass(frozen=True)
class Kind:
    """One wish: in our words, and as a person types it to ddx."""

    name: str
    ours: Callable[[str, str], Words]
    typed: Typed


def _update(*words: str) -> Typed:
    return lambda bead, other, row: [("bead", "update", bead, *words)]


def set_field(name: str, text: str, flag: str = "") -> Kind:
    typed = _update(flag, text) if flag else _update("--set", f"{name}={text}")
    return Kind(f"set {name} {text!r:.20}", lambda bead, other: ("set", bead, f"{name}={text}"), typed)


def _labels(bead: str, row: dict[str, Any], *, add: str = "", remove: str = "") -> list[Words]:
    left = [label for label in row.get("labels") or [] if label != remove]
    left += [add] if add and add not in left else []
    return [("bead", "update", bead, "--labels", ",".join(left))]


_FIRST = (
    set_field("priority", "0", "--priority"),
    set_field("priority", "4", "--priority"),
    set_field("title", "Größer, “quoted” & $HOME", "--title"),
    set_field("description", "two\n\nlines -- and a tab\t.", "--description"),
    set_field("acceptance", "true exits 0", "--acceptance"),
    set_field("notes", "-n is no flag", "--notes"),
    set_field("spec-id", "FEAT-001"),
    set_field("colour", "blue"),
    set_field("lines", "one\r\ntwo\r\n"),
    set_field("size", "3"),
    set_field("ratio", "0.50"),
    set_field("flag", "true"),
    set_field("list", '["a", "b"]'),
    Kind(
        "unset colour",
        lambda bead, other: ("unset", bead, "colour"),
        _update("--unset", "colour"),
    ),
    Kind(
        "label add",
        lambda bead, other: ("label", bead, "--add", "area:core"),
        lambda bead, other, row: _labels(bead, row, add="area:core"),
    ),
    Kind(
        "label remove",
        lambda bead, other: ("label", bead, "--remove", "one"),
        lambda bead, other, row: _labels(bead, row, remove="one"),
    ),
    Kind(
        "dep add",
        lambda bead, other: ("dep", "add", bead, other),
        lambda bead, other, row: [("bead", "dep", "add", bead, other)],
    ),
    Kind(
        "dep remove",
        lambda bead, other: ("dep", "remove", bead, other),
        lambda bead, other, row: [("bead", "dep", "remove", bead, other)],
    ),
    Kind(
        "parent",
        lambda bead, other: ("set", bead, f"parent={other}"),
        lambda bead, other, row: [("bead", "update", bead, "--parent", other)],
    ),
    Kind(
        "supersede",
        lambda bead, other: ("supersede", bead, other),
        lambda bead, other, row: [("bead", "update", bead, "--set", f"superseded-by={other}")],
    ),
    Kind(
        "eligible off",
        lambda bead, other: ("eligible", bead, "off"),
        _update("--set", "execution-eligible=false"),
    ),
    Kind(
        "eligible on",
        lambda bead, other: ("eligible", bead, "on"),
        lambda bead, other, row: [
            ("bead", "update", bead, "--set", "execution-eligible=true") for _ in range("execution-eligible" in row)
        ],
    ),
    Kind(
        "claim",
        lambda bead, other: ("claim", bead, "--assignee", "Ada"),
        _update("--claim", "--assignee", "Ada"),
    ),
    Kind("unclaim", lambda bead, other: ("unclaim", bead), _update("--unclaim")),
    Kind("close", lambda bead, other: ("close", bead), lambda bead, other, row: [("bead", "close", bead)]),
    Kind(
        "reopen",
        lambda bead, other: ("reopen", bead, "--reason", "not done", "--append-notes", "again"),
        lambda bead, other, row: [("bead", "reopen", bead, "--reason", "not done", "--append-notes", "again")],
    ),
    Kind(
        "cancel",
        lambda bead, other: ("cancel", bead),
        lambda bead, other, row: [
            *[("bead", "update", bead, "--unclaim")] * (row["status"] == "in_progress"),
            ("bead", "update", bead, "--status", "cancelled"),
        ],
    ),
    Kind(
        "block",
        lambda bead, other: (
            "set",
            bead,
            "status=blocked",
            f"{REASON}=no licence",
        ),
        lambda bead, other, row: [
            ("bead", "update", bead, "--status", "blocked", "--external-blocker-reason", "no licence"),
            ("bead", "update", bead, "--status", "blocked", "--set", f"{REASON}=no licence"),
        ],
    ),
    Kind(
        "rank top",
        lambda bead, other: ("rank", bead, "--top"),
        lambda bead, other, row: [("bead", "queue", "top", bead)],
    ),
    Kind(
        "rank after",
        lambda bead, other: ("rank", bead, "--after", other),
        lambda bead, other, row: [("bead", "queue", "move", bead, "--after", other)],
    ),
)

ODD = "<b>&amp; \\n 'q' “Größe” \u0301\u200d👩\u200d💻 \u202eabc\u2028 =x"
LONG = "word " * 120

_MORE = (
    set_field("title", ODD, "--title"),
    set_field("title", "--status=closed", "--title"),
    set_field("title", f"{LONG}end", "--title"),
    set_field("notes", "", "--notes"),
    set_field("notes", "one\r\ntwo\n\n\t- three 🙂\n", "--notes"),
    set_field("description", f"```\n@file {ODD}\n```\n", "--description"),
    set_field("acceptance", "1. `true`\n2. `test -f x` passes", "--acceptance"),
    set_field("priority", "9", "--priority"),
    set_field("priority", "1", "--priority"),
    set_field("spec-id", ODD),
    set_field("size", "12345678901234567890"),
    set_field("size", "1e3"),
    set_field("ratio", "-0.0"),
    set_field("nothing", "null"),
    set_field("odd", ODD),
    set_field("object", '{"a": {"b": [1, 2.50, "x"]}}'),
    set_field("space", "  both ends  "),
    set_field("pair", "a=b=c"),
    set_field("größe", "ja"),
    set_field("a.b", "dotted"),
    set_field("Colour", "Red"),
    set_field("owner", "Ada", "--assignee"),
    Kind("type", lambda bead, other: ("set", bead, "type=bug"), _update("--set", "issue_type=bug")),
    set_field("status", "in_progress", "--status"),
    set_field("status", "proposed", "--status"),
    Kind(
        "unset three",
        lambda bead, other: ("unset", bead, "colour", "spec-id", "nobody-has-it"),
        _update("--unset", "colour", "--unset", "spec-id", "--unset", "nobody-has-it"),
    ),
    Kind(
        "unset eligible",
        lambda bead, other: ("unset", bead, "execution-eligible"),
        _update("--unset", "execution-eligible"),
    ),
    Kind(
        "label add two",
        lambda bead, other: ("label", bead, "--add", "Größe: x", "--add", "one"),
        lambda bead, other, row: [
            (
                "bead",
                "update",
                bead,
                "--labels",
                ",".join([*dict.fromkeys([*row.get("labels", []), "Größe: x", "one"])]),
            )
        ],
    ),
    Kind(
        "label swap",
        lambda bead, other: ("label", bead, "--remove", "two", "--remove", "absent", "--add", "three"),
        lambda bead, other, row: _labels(bead, row, add="three", remove="two"),
    ),
    Kind(
        "dep add itself",
        lambda bead, other: ("dep", "add", bead, bead),
        lambda bead, other, row: [("bead", "dep", "add", bead, bead)],
    ),
    Kind(
        "parent none",
        lambda bead, other: ("set", bead, "parent="),
        _update("--parent", ""),
    ),
    Kind(
        "parent itself",
        lambda bead, other: ("set", bead, f"parent={bead}"),
        lambda bead, other, row: [("bead", "update", bead, "--parent", bead)],
    ),
    Kind(
        "claim as ddx decides",
        lambda bead, other: ("claim", bead),
        _update("--claim"),
    ),
    Kind("reopen bare", lambda bead, other: ("reopen", bead), lambda bead, other, row: [("bead", "reopen", bead)]),
    Kind(
        "rank before",
        lambda bead, other: ("rank", bead, "--before", other),
        lambda bead, other, row: [("bead", "queue", "move", bead, "--before", other)],
    ),
    Kind(
        "rank clear",
        lambda bead, other: ("rank", bead, "--clear"),
        lambda bead, other, row: [("bead", "queue", "clear", bead)] * ("queue-rank" in row),
    ),
    Kind(
        "three fields",
        lambda bead, other: ("set", bead, "priority=1", "notes=n", "colour=blue"),
        _update("--priority", "1", "--notes", "n", "--set", "colour=blue"),
    ),
    Kind(
        "two beads' priority",
        lambda bead, other: ("set", bead, other, "priority=1"),
        lambda bead, other, row: [("bead", "update", each, "--priority", "1") for each in (bead, other)],
    ),
    Kind(
        "two beads closed",
        lambda bead, other: ("close", bead, other),
        lambda bead, other, row: [("bead", "close", each) for each in (bead, other)],
    ),
    Kind(
        "two beads off",
        lambda bead, other: ("eligible", bead, other, "off"),
        lambda bead, other, row: [
            ("bead", "update", each, "--set", "execution-eligible=false") for each in (bead, other)
        ],
    ),
    Kind(
        "create under",
        lambda bead, other: (
            "create",
            "Made",
            "--no-triage",
            "--parent",
            bead,
            "--labels",
            "one,two",
            "--acceptance",
            "`true`",
        ),
        lambda bead, other, row: [
            (
                *("bead", "create", "Made", "--type", "task", "--priority", "2"),
                *("--parent", bead, "--labels", "one,two", "--acceptance", "`true`"),
            )
        ],
    ),
)
"""Odd text, values at the edges, several at once."""

KINDS = (*_FIRST, *_MORE)
