"""Every operation from the command line on real rows of both eras, one bead and several, and back again.

The rows in ``tests/data/curation`` are DDx's own, their texts cut. The embedded tracker runs in this process.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from helix_ddx.__main__ import main as helix_ddx
from helix_tui.core.ddx.client import DdxError, last_error
from helix_tui.core.editing.execute.gate import Executable
from helix_tui.core.ground.process import Finished
from tests.cli.conftest import Cli
from tests.conftest import ProjectFactory

DATA = Path(__file__).resolve().parents[1] / "data" / "curation"
NOW = {"head": "2026-08-21T22:00:28Z"}
HISTORY = {"events", "events_attachment"}
"""What ddx keeps of a deed, whatever is taken back."""


def run_here(
    self: Executable, args: Sequence[str], *, keep: object = (), timeout: object = None, reads: bool = False
) -> Finished:
    """`Executable.run` without a process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    was = dict(os.environ)
    os.environ.update(self.env)
    try:
        with contextlib.chdir(self.root), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = helix_ddx(list(args))
            out.flush()
            err.flush()
    finally:
        os.environ.clear()
        os.environ.update(was)
    finished = Finished(tuple(args), code, out.buffer.getvalue(), err.buffer.getvalue(), 0.0)
    if code:
        raise DdxError(tuple(args), last_error(finished), "")
    return finished


@pytest.fixture(autouse=True)
def _no_ddx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(Executable, "run", run_here)


def roles(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Ids by what can be tried on them."""

    def which(fits: Callable[[Mapping[str, Any]], bool], *statuses: str) -> list[str]:
        return [key for key, row in rows.items() if row["status"] in (statuses or ("open",)) and fits(row)]

    def waits(row: Mapping[str, Any]) -> list[str]:
        return [edge["depends_on_id"] for edge in row.get("dependencies", ())]

    return {
        "open": which(lambda row: row["issue_type"] != "epic"),
        "free": which(
            lambda row: not waits(row) and row["issue_type"] != "epic" and row.get("execution-eligible") is not False
        ),
        "held": which(lambda row: row.get("execution-eligible") is False),
        "waiting": which(lambda row: bool(rows.keys() & waits(row))),
        "on": [
            next(other for other in waits(rows[key]) if other in rows)
            for key in which(lambda row: bool(rows.keys() & waits(row)))
        ],
        "child": which(lambda row: bool(row.get("parent"))),
        "labelled": which(lambda row: bool(row.get("labels"))),
        "ranked": which(lambda row: "queue-rank" in row),
        "noted": which(lambda row: bool(row.get("notes"))),
        "closed": which(lambda row: not waits(row), "closed"),
        "taken": which(lambda row: True, "in_progress"),
        "blocked": which(lambda row: True, "blocked"),
        "proposed": which(lambda row: True, "proposed"),
        "epic": [
            key
            for key in which(lambda row: row["issue_type"] == "epic")
            if any(row.get("parent") == key and row["status"] == "open" for row in rows.values())
        ],
    }


TEXT = "Ünï <b>&\u2028 “q” $HOME `id` 😀"

CASES = """
    eligible {free[0]} off                                 | bytes
    eligible {free[0]} {free[1]} {open[2]} off             | bytes
    eligible {held[0]} on                                  | bytes
    supersede {open[0]} {open[1]}                          | bytes
    supersede {open[0]},{open[1]} {open[2]}                | bytes
    dep add {free[0]} {free[1]}                            | bytes
    dep add {free[0]},{free[1]} {open[2]}                  | bytes
    dep remove {waiting[0]} {on[0]}                        | edges
    set {open[0]} parent={epic[0]}                         | bytes
    set {open[0]} {open[1]} {open[2]} parent={epic[0]}     | bytes
    set {child[0]} parent=                                 | bytes
    unset {child[0]},{child[1]} parent                     | bytes
    set {open[0]} priority=4                               | bytes
    set {open[0]} {open[1]} {open[2]} priority=3           | bytes
    rank {free[0]} --top                                   | bytes
    rank {ranked[0]},{ranked[1]} --clear                   | bytes
    rank {ranked[0]} --after {ranked[1]}                   | bytes
    label {labelled[0]} --add area:new                     | bytes
    label {labelled[0]} {labelled[1]} --add a --remove helix | bytes
    set {labelled[0]} labels=                              | bytes
    claim {free[0]}                                        | bytes
    claim {free[0]} {free[1]}                              | bytes
    unclaim {taken[0]}                                     | bytes
    close {free[0]}                                        | history
    close {free[0]} {free[1]}                              | history
    close {taken[0]}                                       | history
    close {blocked[0]}                                     | history
    set {blocked[0]} status=open                           | bytes
    set {proposed[0]} status=open                          | never
    reopen {closed[0]} --reason because                    | history
    reopen {closed[0]} {closed[1]} --append-notes 'more <&>' | history
    cancel {free[0]}                                       | never
    set {free[0]} status=blocked lifecycle-external-blocker-reason=vendor | bytes
    set {noted[0]} 'title={text}' 'notes={text}'           | bytes
    set {open[0]} {open[1]} 'acceptance={text}' description=-d | bytes
    set {noted[0]} notes= description=                     | bytes
    set {open[0]} type=bug spec-id=S-1 owner=me foo=true   | bytes
    create 'A new thing' --no-triage --parent {epic[0]} --depends-on {open[0]} --set k=v | never
    focus {epic[0]}                                        | bytes
"""
UPDATED = re.compile(r'"updated_at":"[^"]*"')


def given_rows(era: str) -> dict[str, str]:
    lines = (DATA / f"{era}.jsonl").read_text("utf-8").split("\n")[:-1]
    return {json.loads(line)["id"]: line for line in lines}


def cases() -> list[Any]:
    """Each operation in each era that has it and a row to try it on."""
    found = []
    by_era = {era: roles({k: json.loads(v) for k, v in given_rows(era).items()}) for era in NOW}
    for line in CASES.strip().split("\n"):
        words, _, goal = line.rpartition("|")
        for era, ids in by_era.items():
            with contextlib.suppress(IndexError):
                argv = shlex.split(words.format(text=TEXT, **ids))
                found.append(pytest.param(era, argv, goal.strip(), id=f"{era}: {words.strip()[:60]}"))
    return found


@pytest.mark.parametrize(("era", "argv", "goal"), cases())
def test_an_operation_goes_there_and_back(
    cli: Cli, project: ProjectFactory, era: str, argv: list[str], goal: str
) -> None:
    given = given_rows(era)
    root = project(list(given.values()))
    path = root / ".ddx" / "beads.jsonl"

    def now() -> dict[str, str]:
        return {json.loads(line)["id"]: line for line in path.read_text("utf-8").split("\n")[:-1]}

    def call(*more: str) -> dict[str, Any]:
        ran = cli(*more, "--json", "-C", root, "--now", NOW[era])
        assert ran.code == 0, ran.err
        return ran.document

    done = call(*argv)
    assert done["commands"], done
    assert done["after"], done
    touched = set(done["after"])
    assert {key for key, line in now().items() if line != given.get(key)} == touched
    if goal == "never" and argv[0] != "create":
        assert done["why_not"], done
        stands = path.read_bytes()
        ran = cli("undo", "-C", root)
        assert ran.code == 1
        assert "cannot be undone" in ran.err
        assert path.read_bytes() == stands
        return
    call("undo")
    for key, line in now().items():
        if key not in given:
            assert json.loads(line)["status"] == "cancelled", "ddx deletes no bead"
        elif UPDATED.sub("", line) != UPDATED.sub("", given[key]):
            was, stands = json.loads(given[key]), json.loads(line)
            left = {name for name in was.keys() | stands.keys() if was.get(name) != stands.get(name)}
            if goal == "edges" and left == {"dependencies", "updated_at"}:
                edges = [sorted(e["depends_on_id"] for e in row["dependencies"]) for row in (was, stands)]
                assert edges[0] == edges[1]
                continue
            assert goal == "history", (key, left)
            assert left <= HISTORY | {"updated_at"}, (key, left)
            assert any("will still show the reopen" in trace for trace in done["traces"]), done
