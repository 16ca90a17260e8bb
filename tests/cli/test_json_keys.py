"""Every document of ``--json`` has the keys that it had: scripts rely on them, so they only gain.

``python -m tests.cli.test_json_keys`` writes the recorded keys anew; a key that is missing there is a break.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helix_ddx.demo.workspace import bead_id, build_demo
from helix_tui.cli.program import main
from helix_tui.cli.programs import helix_ddx_file
from helix_tui.core.ground.time import NS, format_instant

RECORDED = Path(__file__).resolve().parents[1] / "data" / "json_keys.json"
NOW = 1_795_000_000 * NS
OPEN, OTHER, CLOSED, EPIC = (bead_id(key) for key in ("accents", "winter", "layout", "import"))

COMMANDS = f"""
queue
queue --archived --order dag
why {OPEN}
attempts
attempts --bead {CLOSED}
insights --by model
insights --by parent
doc graph
doc audit
doc stale
doc search parse
doc changed
needs
next
status
stuck
check
check --dry-run
triage "Say the hour" --type task --labels helix,activity:build --spec-id SD-1 --acceptance "`true` passes" --dry-run
journal
doctor
trust --show
help
input --questions
snapshot --screen queue --format json
snapshot --screen loop --format json
snapshot --screen memory --format json
snapshot --screen insights --format json
set {OPEN} priority=1 --dry-run
unset {OPEN} description --dry-run
label {OPEN} --add x --dry-run
dep add {OPEN} {OTHER} --dry-run
supersede {OPEN} {OTHER} --dry-run
eligible {OPEN} off --dry-run
rank {OPEN} --top --dry-run
focus {EPIC} --dry-run
claim {OPEN} --dry-run
unclaim {OPEN} --dry-run
close {OPEN} --dry-run
reopen {CLOSED} --dry-run
cancel {OPEN} --dry-run
create "Say the hour" --type task --labels helix,activity:build --spec-id SD-1 --acceptance "`true` passes" --dry-run
run --dry-run
build --dry-run
demo --dry-run
install-hooks --dry-run
set {OPEN} priority=1
journal
undo
redo
memory store --trigger "the parser drops lines" --resolution "count from one" --type failure
memory store --trigger "a test needs the clock" --resolution "give it a fixed instant" --type pattern
memory recall "parser lines"
memory list
memory get 1
memory inject --objective "mend the parser of lines"
memory relate --from 1 --to 2 --type similar
memory edges
memory connected 1
memory similar-recent "the parser drops lines"
memory suggest-edges 1
memory decay
memory prune --dry-run
memory consolidate
memory learn
memory proposals
memory plan list
memory exploration list
memory workspace list
memory health
ask "where is a line parsed?"
""".strip().splitlines()
"""Run one after the other in one demo: what a change wrote, the next one reads."""


def keys_of(value: object, path: str = "") -> Iterator[str]:
    """Each place in a document with the kind of value there, like ``beads[].priority int``."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from keys_of(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner, f"{path}[]")
    yield f"{path} {type(value).__name__}"


def documents(root: Path) -> dict[str, Any]:
    """What each command answers, by its words."""
    answers: dict[str, Any] = {}
    common = ("--json", "--ddx", str(helix_ddx_file()), "-C", str(root), "--now", format_instant(NOW))
    for words in COMMANDS:
        out = io.TextIOWrapper(io.BytesIO(), "utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.TextIOWrapper(io.BytesIO())):
            main([*shlex.split(words), *common])
        answers.setdefault(words, json.loads(out.buffer.getvalue()))
    return answers


def missing(recorded: list[str], document: object) -> list[str]:
    """Places that the document lacks; what is null here or was null there is of any kind."""
    present: dict[str, set[str]] = {}
    for entry in keys_of(document):
        place, _, kind = entry.rpartition(" ")
        present.setdefault(place, set()).add(kind)
    absent = []
    for entry in recorded:
        place, _, kind = entry.rpartition(" ")
        kinds = present.get(place, set())
        if not kinds or (kind != "NoneType" and kind not in kinds and "NoneType" not in kinds):
            absent.append(entry)
    return absent


@pytest.mark.long
def test_each_document_has_the_keys_that_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELIX_EMBEDDER", "off")
    recorded: dict[str, list[str]] = json.loads(RECORDED.read_text())
    answers = documents(build_demo(tmp_path / "demo", NOW).project)
    assert set(recorded) <= set(answers)
    assert {words: absent for words, keys in recorded.items() if (absent := missing(keys, answers[words]))} == {}


def test_a_key_that_is_gone_or_another_kind_is_seen() -> None:
    recorded = sorted(set(keys_of({"beads": [{"id": "a", "usd": None}], "count": 1})))
    assert missing(recorded, {"beads": [{"id": "b", "usd": 0.5, "new": 1}], "count": 2}) == []
    assert missing(recorded, {"beads": [{"usd": 0.5}], "count": "2"}) == ["beads[].id str", "count int"]


def record() -> None:
    """Write the keys of all documents."""
    os.environ |= {"HELIX_EMBEDDER": "off", "HOME": tempfile.mkdtemp()}
    folder = Path(tempfile.mkdtemp())
    answers = documents(build_demo(folder / "demo", NOW).project)
    keys = {words: sorted(set(keys_of(document))) for words, document in answers.items()}
    RECORDED.write_text(json.dumps(keys, indent=1) + "\n")
    shutil.rmtree(folder)
    sys.stdout.write(f"{len(keys)} documents, {sum(map(len, keys.values()))} places\n")


if __name__ == "__main__":
    record()
