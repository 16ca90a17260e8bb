"""What ddx can do, and whether it would pick the same beads as we say it would."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from helix_tui.cli.call import Call
from helix_tui.cli.loading import Present, judge
from helix_tui.cli.report.checks import DoctorCheck
from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.client import MALFORMED, Ddx, DdxError
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.ddx.documents.graph import DocumentsUnreadable
from helix_tui.core.ddx.documents.source import read_documents
from helix_tui.core.ddx.names import VERBS
from helix_tui.core.ddx.probe import dialect_of
from helix_tui.core.ground.project import Project, find_ddx, find_project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import now_ns

MOST_IDS = 20


def examine_ddx(call: Call, project: Project, present: Present | None) -> Iterator[DoctorCheck]:
    """Find ddx, ask what it speaks, and compare its pick order with ours."""
    path = find_ddx(call.ddx)
    if path is None:
        wanted = call.ddx or os.environ.get("DDX_BIN")
        detail = f"{wanted} is not an executable" if wanted else "no ddx on PATH"
        fix = "Install it, or name one with --ddx PATH or DDX_BIN."
        yield DoctorCheck("ddx", False, f"{detail}; reading works without it", fix)
        return
    ddx = Ddx(path, project.root, _environment(project))
    try:
        dialect = dialect_of(path, project.root, env=ddx.env)
    except DdxError as error:
        yield DoctorCheck("ddx", False, error.message, _advice(error))
        return
    yield DoctorCheck("ddx", True, str(path))
    yield _verbs(dialect)
    if present is not None:
        yield _readiness(call, project, ddx)
    yield _documents(project, ddx, dialect)


def _environment(project: Project) -> dict[str, str] | None:
    """ddx looks for the git root; a project named by ``-C`` inside another one must be pointed at."""
    if find_project(project.root).ddx_dir == project.ddx_dir:
        return None
    return {**os.environ, "DDX_BEAD_DIR": os.fspath(project.ddx_dir)}


def _verbs(dialect: Dialect) -> DoctorCheck:
    lacking = [deed for deed in VERBS if deed not in dialect.verbs]
    if not dialect.drain:
        return DoctorCheck(
            "verbs",
            False,
            "its help names no loop that drains a queue",
            "Run `ddx upgrade`, or name another one with --ddx.",
        )
    detail = f"drains with `ddx {' '.join(dialect.drain)}`"
    if lacking:
        detail += f"; does not know: {', '.join(deed.replace('_', ' ') for deed in lacking)}"
    return DoctorCheck("verbs", True, detail)


def _readiness(call: Call, project: Project, ddx: Ddx) -> DoctorCheck:
    """Both answers as of now; if a write came between them, ours is taken once more."""
    theirs: Sequence[str] = ()
    ours: Sequence[str] = ()
    for _ in range(2):
        try:
            theirs = ddx.ready_execution()
        except DdxError as error:
            return DoctorCheck("readiness", False, f"ddx did not answer: {error.message}", _advice(error))
        ours = judge(call, project, read_tracker(project.beads_file), now=now_ns()).queue.picked_by_ddx
        if tuple(ours) == tuple(theirs):
            return DoctorCheck("readiness", True, f"ddx picks the same {len(ours)} in the same order")
    return compare(ours, theirs)


def _documents(project: Project, ddx: Ddx, dialect: Dialect) -> DoctorCheck:
    """Whether our own reader makes the same graph of the documents as ddx does."""
    try:
        documents = read_documents(project, ddx, dialect)
    except DocumentsUnreadable as error:
        return DoctorCheck("documents", False, str(error), "Correct the file; `ddx doc audit` fails on it too.")
    counted = f"{len(documents.all)} documents"
    if dialect.documents.hidden:
        counted += " (hidden folders too, as this ddx reads them)"
    if documents.source != "ddx":
        return DoctorCheck("documents", True, f"{counted}; {documents.note}")
    if not documents.differences:
        return DoctorCheck("documents", True, f"{counted}, the same for ddx and for our own reader")
    few = "; ".join(documents.differences[:3])
    fix = "No action needed: ddx's own graph is used. Please report it with `helix-tui doc graph --own --json`."
    return DoctorCheck("documents", None, f"{len(documents.differences)} differences: {few}", fix)


def compare(ours: Sequence[str], theirs: Sequence[str]) -> DoctorCheck:
    """How two pick orders differ, in ids."""
    here, there = frozenset(ours), frozenset(theirs)
    parts = [
        _named("only helix-tui says ready", [bead_id for bead_id in ours if bead_id not in there]),
        _named("only ddx says ready", [bead_id for bead_id in theirs if bead_id not in here]),
    ]
    if here == there:
        first = next(place for place, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1])
        parts.append(f"the same {len(ours)} in another order: place {first + 1} is {ours[first]} here, "
                     f"{theirs[first]} there")  # fmt: skip
    detail = "; ".join(filter(None, parts))
    return DoctorCheck(
        "readiness", False, detail, "Trust ddx's answer, and please report it with `helix-tui queue --json`."
    )


def _named(what: str, ids: Sequence[str]) -> str:
    if not ids:
        return ""
    more = f" and {len(ids) - MOST_IDS} more" if len(ids) > MOST_IDS else ""
    return f"{what}: {_cleaned(ids[:MOST_IDS])}{more}"


def _cleaned(ids: Iterable[str]) -> str:
    return ", ".join(clean_line(bead_id, 80) for bead_id in ids)


def _advice(error: DdxError) -> str:
    """What to do, and where the answer that could not be read has been kept."""
    if error.exit_code != MALFORMED or not error.output:
        return error.advice
    with tempfile.NamedTemporaryFile(prefix="helix-ddx-answer-", suffix=".txt", delete=False) as file:
        file.write(error.output)
    return f"{error.advice}; the answer is kept in {Path(file.name)}"
