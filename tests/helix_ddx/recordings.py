"""The recorded runs: from the real files where they are, else from what is committed of them.

``python -m tests.helix_ddx.recordings`` writes the committed part anew: facts without values.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from helix_ddx.store.tracker import Row
from tests.helix_ddx.player import TimelineStep, read_timeline
from tests.helix_ddx.shapes import Seen, Token, shape, tokens_of

GIVEN = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "ddx" / "loops"
COMMITTED = Path(__file__).resolve().parents[1] / "data" / "loops" / "facts"

NAMES = (
    *("head-success", "head-drain-text", "head-mixed", "head-no-changes", "head-failed", "head-satisfied"),
    *("head-conflict", "head-review-block", "head-killed", "head-one-bead", "head-one-blocked", "head-empty"),
)

LEFT_OUT = {
    r"metrics/locks\.jsonl": "samples of how long DDx held its own locks: no fact about the work",
    r"embedded/git-": "a shim that keeps the agent's git from the repository's settings: there is no agent",
    r"ddx-(land-wt|conflict-recover|gate-wt)-": "git's checkout for a merge, gone after some ms",
    r"\.lock/|\.tmp(-|$)": "a lock or a half-written file that a look met by chance",
}
"""Files of a recording that the simulation does not write, or that are only seen by chance, and why."""

_CLAIM = ("owner", "claimed-at", "claimed-machine", "claimed-pid", "execute-loop-heartbeat-at")
_VALUES = (
    (r"demo-[0-9a-f]{8}", "<bead>"),
    (r"\b[0-9a-f]{40}\b|\([0-9a-f]{8}\)", "<rev>"),
    (r"(?m)^\d\d:\d\d:\d\d", "<time>"),
    (r"(claude|simulation)/\S+", "<route>"),
    (r"harness=\S+ model=\S+", "<route>"),
    (r"\d+(\.\d+)? tok", "N tok"),
    (r"\d+(\.\d+)?(ms|s)\b", "<span>"),
    (r"out=\d+B \d+ lines?", "<size>"),
)


def left_out(path: str) -> bool:
    """Whether a file is not compared."""
    return any(re.search(pattern, path) for pattern in LEFT_OUT)


def facts(name: str) -> list[Token]:
    """What a recording holds, as tokens."""
    if GIVEN.is_dir():
        return tokens_of(_files(_steps(name)))
    document = _committed(name)
    shapes = json.loads((COMMITTED / "shapes.json").read_text(encoding="utf-8"))
    names = [re.sub(r"@[0-9a-f]{10}", lambda found: str(shapes[found[0]]), name) for name in document["names"]]
    things = document["things"]
    return [Token(names[name], at, things[thing], count) for name, at, thing, count in document["facts"]]


def rows_before(name: str) -> list[Row]:
    """The beads as they were before the worker came."""
    if not GIVEN.is_dir():
        rows: list[Row] = _committed(name)["rows"]
        return rows
    timeline = read_timeline(GIVEN / f"{name}.jsonl")
    texts = [step.text for step in timeline.steps if step.path == "$P/.ddx/beads.jsonl" and step.text]
    if not texts:
        step = next(step for step in timeline.after if step.argv[1:4] == ("bead", "list", "--json"))
        listed: list[Row] = json.loads(step.stdout)
        return listed
    rows = [json.loads(line) for line in texts[0].split("\n") if line]
    for row in rows:
        if row["status"] == "in_progress":
            row["status"] = "open"
        for key in (*_CLAIM, "events"):
            row.pop(key, None)
    return rows


def printed(name: str) -> tuple[list[str], Any]:
    """What a recorded run said on stdout: its lines without their values, and the keys of the last object."""
    if not GIVEN.is_dir():
        document = _committed(name)
        return document["lines"], document["object"]
    return said("\n".join(step.text for step in _steps(name) if step.src == "stdout"))


def said(text: str) -> tuple[list[str], Any]:
    """The same of any text."""
    for expression, value in _VALUES:
        text = re.sub(expression, value, text)
    lines = [line.rstrip() for line in text.splitlines()]
    begin = next((place for place, line in enumerate(lines) if line == "{"), len(lines))
    return lines[:begin], shape(json.loads("\n".join(lines[begin:]))) if begin < len(lines) else None


def _steps(name: str) -> tuple[TimelineStep, ...]:
    return read_timeline(GIVEN / f"{name}.jsonl").steps


def _files(steps: Sequence[TimelineStep]) -> Iterator[Seen]:
    for step in steps:
        if step.is_file and not left_out(step.path):
            yield Seen(step.t, step.path, step.op, step.text)


def _committed(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((COMMITTED / f"{name}.json").read_text(encoding="utf-8"))
    return document


_LONG = re.compile(r"\{[^ ]{50,}\}")


def _write(name: str, shapes: dict[str, str]) -> None:
    """One recording's facts; what is long in them goes into the shapes, once for all."""

    def shorten(found: re.Match[str]) -> str:
        short = f"@{hashlib.sha256(found[0].encode()).hexdigest()[:10]}"
        shapes[short] = found[0]
        return short

    tokens = facts(name)
    names = list(dict.fromkeys(token.name for token in tokens))
    things = list(dict.fromkeys(token.thing for token in tokens))
    lines, document = printed(name)
    short = {
        "names": [_LONG.sub(shorten, one) for one in names],
        "things": things,
        "facts": [[names.index(one.name), one.at, things.index(one.thing), one.count] for one in tokens],
        "rows": rows_before(name),
        "lines": lines,
        "object": document,
    }
    text = json.dumps(short, ensure_ascii=False, separators=(",", ":"))
    COMMITTED.mkdir(exist_ok=True)
    (COMMITTED / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    long: dict[str, str] = {}
    for recorded in NAMES:
        _write(recorded, long)
    text = json.dumps(long, indent=0, sort_keys=True) + "\n"
    (COMMITTED / "shapes.json").write_text(text, encoding="utf-8")
