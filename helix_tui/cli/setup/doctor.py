"""``helix-tui doctor``: what is installed, what is missing, and whether ddx picks the same beads as helix-tui.

``--bundle FILE`` packs what a defect report needs into one archive, without secrets and texts of beads.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import wrap
from typing import Any

import msgspec

from helix_tui import __version__
from helix_tui.cli.call import Call, CliError, DoctorCheck, locate, sentence
from helix_tui.cli.loading import NO_TRACKER, Present, judge
from helix_tui.cli.memory.checks import examine_memory
from helix_tui.cli.queue_lines import claims_left
from helix_tui.core.beads.states import STATES
from helix_tui.core.beads.tracker import Tracker, find_archived, read_archive, read_tracker
from helix_tui.core.ddx.client import MALFORMED, Ddx, DdxError, ddx_missing
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.ddx.documents.graph import DocumentsUnreadable
from helix_tui.core.ddx.documents.source import read_documents
from helix_tui.core.ddx.git_state import implementation_changes, tracked, written_and_shown
from helix_tui.core.ddx.names import VERBS
from helix_tui.core.ddx.probe import dialect_of, verb_beside
from helix_tui.core.ddx.runs.running import beads_at_work
from helix_tui.core.ground import log as logs
from helix_tui.core.ground import process
from helix_tui.core.ground.files import NAMES, files_below, is_file, open_file, read_status
from helix_tui.core.ground.log import BACKUPS, MAX_BYTES, scrubbed
from helix_tui.core.ground.processes.programs import program
from helix_tui.core.ground.project import Project, ddx_environment, find_ddx
from helix_tui.core.ground.text import capitalized, clean_line, counted
from helix_tui.core.ground.time import now_ns
from helix_tui.core.ground.trust.person import state_folder
from helix_tui.core.statements.counts import count_project
from helix_tui.core.supervision.signals.orphans import gone
from helix_tui.settings.file import settings_file

MAX_IDS = 20

_PACKAGES = ("textual", "rich", "watchfiles", "msgspec", "sqlite-utils", "numpy", "tokenizers")

_SIZES = (".ddx", ".helix", ".git/info")
"""Folders whose files are listed with their sizes."""

_MAX_LISTED = 500
"""How many files the list of a folder names; the rest are counted."""

_VARIABLES = ("TERM", "COLORTERM", "LANG", "LC_ALL", "NO_COLOR", "TMUX", "SHELL", "EDITOR", "TEXTUAL")
"""Variables whose values are included; for HELIX_… and DDX_… only whether they are set."""

_MARKS = {True: ("ok   ", "success"), False: ("BAD  ", "error"), None: ("–    ", "muted")}

_MAX_FILES = 5
"""Uncommitted files that are named."""


def examine_ddx(call: Call, project: Project, present: Present | None) -> Iterator[DoctorCheck]:
    """Find ddx, probe its capabilities, and compare its pick order with helix-tui's."""
    path = find_ddx(call.ddx)
    if path is None:
        missing = ddx_missing(("ddx",), str(call.ddx or os.environ.get("DDX_BIN", "")))
        yield DoctorCheck("ddx", False, f"{missing.message}; reading works without it", _advice(missing))
        return
    ddx = Ddx(path, project.root, ddx_environment(project, os.environ))
    try:
        dialect = dialect_of(path, project.root, env=ddx.env)
        refused = ddx.settings_gate(verb_beside(dialect), changes=dialect.needs_settings)
    except DdxError as error:
        yield DoctorCheck("ddx", False, error.message, _advice(error))
        return
    yield DoctorCheck("ddx", True, str(path))
    yield _verbs(dialect)
    if refused is not None:
        fix = f"{capitalized(refused.fix)}."
        yield DoctorCheck("configuration", False, f"ddx would start no work: {refused.reason}", fix)
    yield from _own_files(project, dialect)
    if present is not None:
        yield _readiness(call, project, ddx)
    yield _documents(project, ddx)


def _own_files(project: Project, dialect: Dialect) -> Iterator[DoctorCheck]:
    """Files of its own for which a ddx stops, unless git ignores them."""
    if project.git_dir is None or "operator_attention" not in dialect.verbs:
        return
    for folder in written_and_shown(project.root):
        detail = f"git does not ignore {folder}, where ddx writes at each start: ddx since late May 2026 then stops"
        yield DoctorCheck("ddx's files", None, detail, f"Enter {folder} in .gitignore, and commit that.")


def _verbs(dialect: Dialect) -> DoctorCheck:
    lacking = [verb_name for verb_name in VERBS if verb_name not in dialect.verbs]
    if not dialect.drain:
        return DoctorCheck(
            "verbs",
            False,
            "its help names no loop that drains a queue",
            "Run `ddx upgrade`, or name another one with --ddx.",
        )
    detail = f"drains with `ddx {' '.join(dialect.drain)}`"
    if lacking:
        detail += f"; does not know: {', '.join(verb_name.replace('_', ' ') for verb_name in lacking)}"
    return DoctorCheck("verbs", True, detail)


def _readiness(call: Call, project: Project, ddx: Ddx) -> DoctorCheck:
    """Both answers as of now; if the tracker was written between them, ours is computed again."""
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


def _documents(project: Project, ddx: Ddx) -> DoctorCheck:
    """How many documents there are, and who says so."""
    try:
        documents = read_documents(project, ddx)
    except DocumentsUnreadable as error:
        return DoctorCheck("documents", False, error.message, error.advice)
    found = counted(len(documents.all), "document")
    return DoctorCheck(
        "documents", True, f"{found}, as ddx says" if documents.source == "ddx" else f"{found}; {documents.note}"
    )


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
        "readiness", False, detail, "Trust ddx's answer, and please report this with `helix-tui queue --json`."
    )


def _named(what: str, ids: Sequence[str]) -> str:
    if not ids:
        return ""
    more = f" and {len(ids) - MAX_IDS} more" if len(ids) > MAX_IDS else ""
    return f"{what}: {_cleaned(ids[:MAX_IDS])}{more}"


def _cleaned(ids: Iterable[str]) -> str:
    return ", ".join(clean_line(bead_id, 80) for bead_id in ids)


def _advice(error: DdxError) -> str:
    """The advice, and where the unreadable answer has been kept."""
    if error.exit_code != MALFORMED or not error.output:
        return f"{sentence(error.advice)}."
    with tempfile.NamedTemporaryFile(prefix="helix-ddx-answer-", suffix=".txt", delete=False) as file:
        file.write(error.output)
    return f"{sentence(error.advice)}; the answer is kept in {Path(file.name)}"


def write_bundle(call: Call, target: Path, checks: Sequence[DoctorCheck]) -> list[tuple[str, int]]:
    """Write the archive; (name, bytes) of what is in it.

    Raises:
        CliError: it exists already, or cannot be written.
    """
    project = locate(call)
    parts = _with_contents(list(_parts(project, checks)))
    try:
        # never overwrites a file
        with open(target, "xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in parts:
                archive.writestr(name, text)
    except FileExistsError:
        raise CliError(f"{target} exists already", "Name a file that does not exist yet.") from None
    except OSError as error:
        raise CliError(
            f"the bundle cannot be written: {target}: {error.strerror or error}", "Name another place."
        ) from None
    return [(name, len(text)) for name, text in parts]


def _with_contents(parts: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """The parts, preceded by one that lists them, for readers of the archive alone."""
    listed = "".join(f"{len(text):>12,}  {name}\n" for name, text in parts)
    return [("contents.txt", listed.encode()), *parts]


def _parts(project: Project, checks: Sequence[DoctorCheck]) -> Iterator[tuple[str, bytes]]:
    """(name, content), every text scrubbed of secrets and the home folder."""
    home = str(Path.home())

    def clean(text: str) -> bytes:
        return scrubbed(text).replace(home, "~").encode("utf-8", "replace")

    yield "versions.txt", clean("\n".join(_versions()) + "\n")
    yield (
        "checks.json",
        clean(_json([{"name": c.name, "ok": c.ok, "detail": c.detail, "fix": c.fix} for c in checks])),
    )
    yield "sizes.txt", clean("\n".join(_sizes(project.root)) + "\n")
    yield "tracker.json", clean(_json(_tracker_counts(project)))
    yield "environment.txt", clean("\n".join(_environment_lines()) + "\n")
    settings = settings_file()
    if is_file(settings):
        yield "settings.toml", clean(_read(settings))
    own, user = logs.log_file(), state_folder() / "logs" / logs.NAME
    for folder, path in (("log", own), *((("log-of-the-user", user),) if user != own else ())):
        for number in range(BACKUPS + 1):
            each = path.with_name(f"{path.name}.{number}") if number else path
            # a second name would be a file elsewhere
            if is_file(each) and read_status(each).st_nlink == 1:
                yield f"{folder}/{each.name}", clean(_read(each))


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _read(path: Path) -> str:
    try:
        with open_file(path) as file:
            return file.read(2 * MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return f"cannot be read: {error}\n"


def _versions() -> Iterator[str]:
    yield f"helix-tui {__version__}"
    yield f"Python {platform.python_version()} ({platform.python_implementation()})"
    yield f"{platform.system()} {platform.release()} {platform.machine()}"
    for name in _PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield f"{name} missing"


def _sizes(root: Path) -> Iterator[str]:
    """Sizes of helix-tui's and DDx's files, no contents."""
    for folder in _SIZES:
        top = root / folder
        if not top.is_dir():
            yield f"{folder}/  missing"
            continue
        count = total = 0
        for path, size in files_below(top):
            count, total = count + 1, total + size
            if count <= _MAX_LISTED:
                yield f"{size:>12,}  {path.relative_to(root)}"
        yield f"{total:>12,}  {folder}/ in all, {counted(count, 'file')}"


def _tracker_counts(project: Project) -> dict[str, Any]:
    """Counts of the tracker: beads by era, by status, and what could not be read. No texts."""
    from collections import Counter

    from helix_tui.core.beads.readiness import classify
    from helix_tui.core.beads.tracker import read_tracker
    from helix_tui.core.ground.time import now_ns

    tracker = read_tracker(project.beads_file)
    queue = classify(tracker.beads, now=now_ns(), era="auto")
    return {
        "beads": len(tracker.beads),
        "rule": queue.rule,
        "statuses": dict(Counter(bead.status for bead in tracker.beads.values())),
        "states": dict(Counter(queue.standing(bead_id).state for bead_id in tracker.beads)),
        "dropped": [[row.line, row.reason] for row in tracker.dropped][:100],
        "missing": tracker.missing,
        "problem": tracker.problem,
    }


def _environment_lines() -> Iterator[str]:
    for name in _VARIABLES:
        yield f"{name}={os.environ.get(name, '')}"
    for name in sorted(os.environ):
        if name.startswith(("HELIX_", "DDX_")):
            yield f"{name} is set"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option that packs a report to attach to an issue."""
    parser.add_argument(
        "--bundle",
        metavar="FILE",
        type=Path,
        help="pack log, versions, settings, sizes and eras into a zip, secrets removed",
    )


def run(call: Call) -> int:
    """Run every check; 1 if something is wrong."""
    checks = list(examine(call))
    packed: dict[str, Any] = {}
    if call.options.bundle and call.options.dry_run:
        call.note(f"{call.options.bundle} is not written (--dry-run)")
    elif call.options.bundle:
        packed = _pack(call, checks)
    if call.json:
        found = [{"name": c.name, "ok": c.ok, "detail": c.detail, "fix": c.fix} for c in checks]
        call.emit({"checks": found, **packed})
    elif packed:
        call.print(f"{packed['bundle']} holds, without secrets and texts of beads:")
        for part in packed["contents"]:
            call.print(f"  {part['bytes']:>10,}  {part['name']}")
    else:
        for line in listing(call, checks):
            call.print(line)
    if packed:
        return 0
    return 1 if any(check.ok is False for check in checks) else 0


def _pack(call: Call, checks: list[DoctorCheck]) -> dict[str, Any]:

    target: Path = call.options.bundle
    contents = [{"name": name, "bytes": size} for name, size in write_bundle(call, target, checks)]
    return {"bundle": str(target), "contents": contents}


def listing(call: Call, checks: list[DoctorCheck]) -> list[str]:
    """Each check in as many lines as it needs."""
    width = max(len(check.name) for check in checks)
    indent = " " * (width + 7)
    lines = []
    for check in checks:
        mark, role = _MARKS[check.ok]
        room = call.paint.width - len(indent)
        first, *rest = wrap(clean_line(check.detail), room) or [""]
        lines.append(f"{call.paint(mark, role)}{check.name:<{width}}  {first}")
        if check.fix and check.ok is not True:
            rest += [call.paint(line, "muted") for line in wrap(clean_line(check.fix), room)]
        lines += [indent + line for line in rest]
    return lines


def examine(call: Call) -> Iterator[DoctorCheck]:
    """Every check, in a sensible order."""
    parts = (f"helix-tui {__version__}", f"Python {platform.python_version()}", f"textual {_version('textual')}")
    yield DoctorCheck("program", True, ", ".join(parts))
    yield _terminal()
    yield _git()
    project = locate(call)
    yield _project(project)
    yield from _work_tree(project)
    yield from _last_worker(project)
    tracker = read_tracker(project.beads_file)
    yield _tracker(project, tracker)
    yield from _archive(project)
    lacking = tracker.missing and not project.ddx_dir.is_dir()
    # a `.ddx` without a tracker is an empty queue; without a `.ddx` there is no queue
    present = None if lacking or tracker.problem else judge(call, project, tracker)
    if present is not None:
        yield from _queue(present)
    yield from examine_ddx(call, project, present)
    yield from examine_memory(project)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _terminal() -> DoctorCheck:
    size = shutil.get_terminal_size((0, 0))
    where = "tmux" if os.environ.get("TMUX") else "no tmux"
    encoding = (sys.stdout.encoding or "ascii").lower()
    detail = f"TERM={os.environ.get('TERM', 'unset')}, {where}, {encoding}"
    if sys.stdout.isatty():
        detail += f", {size.columns}×{size.lines}"
    if "utf" not in encoding:
        return DoctorCheck("terminal", False, detail, "Set LANG=C.UTF-8, or start the console with --ascii.")
    return DoctorCheck("terminal", True, detail)


def _git() -> DoctorCheck:
    git = program("git")
    if git is None:
        return DoctorCheck("git", False, "no git on PATH", "Install git: the demo and DDx itself need it.")
    try:
        done = process.run([git, "--version"], timeout=10)
    except OSError as error:
        return DoctorCheck("git", False, f"{git} does not start: {error}", "Try `git --version` by hand.")
    if done.timed_out:
        return DoctorCheck("git", False, f"{git} does not answer", "Try `git --version` by hand.")
    return DoctorCheck("git", done.rc == 0, f"{clean_line(done.out)}, {clean_line(git)}")


def _project(project: Project) -> DoctorCheck:
    branch = project.branch()
    detail = f"{project.root}, " + (f"branch {branch}" if branch else "no git repository around it")
    if project.ddx_dir.is_dir():
        return DoctorCheck("project", True, f"{detail}, records in {project.ddx_dir}")
    return DoctorCheck("project", False, f"{detail}; no {project.ddx_dir}", NO_TRACKER)


def _last_worker(project: Project) -> Iterator[DoctorCheck]:
    """What stopped the last worker and would stop the next one."""
    from helix_tui.core.supervision.signals.stoppage import find_stoppage

    stoppage = find_stoppage(project)
    if stoppage is not None:
        # a cause that no longer exists is not a fault; one that cannot be checked is only quoted
        ok = True if stoppage.present is False else False if stoppage.present else None
        name = "next worker" if stoppage.foretold else "last worker"
        yield DoctorCheck(name, ok, stoppage.words, stoppage.fix)


def _work_tree(project: Project) -> Iterator[DoctorCheck]:
    """What would keep ddx from starting an attempt, and helix-tui files that git should not track."""
    if project.git_dir is None:
        return
    found = implementation_changes(project.root)
    if found is None:
        yield DoctorCheck("work tree", None, "git cannot tell what is uncommitted here")
    elif found:
        some = ", ".join(clean_line(path, 80) for path in found[:_MAX_FILES])
        more = f" and {len(found) - _MAX_FILES} more" if len(found) > _MAX_FILES else ""
        yield DoctorCheck(
            "work tree",
            False,
            f"{counted(len(found), 'file')} not committed: {some}{more}",
            "ddx since late May 2026 starts no attempt beside such changes; older ones commit them with the "
            "next attempt. Commit them, or `git stash --include-untracked`.",
        )
    else:
        yield DoctorCheck("work tree", True, "nothing uncommitted that would stop ddx")
    ours = [path for path in tracked(project.root, NAMES) if "/prompts/" not in path]
    if ours:
        folders = " ".join(sorted({path.split("/")[0] for path in ours}))
        detail = f"git tracks {counted(len(ours), 'file')} that helix-tui changes: {clean_line(ours[0], 80)}"
        fix = f"`git rm -r --cached {folders}`, and commit that; the files stay."
        yield DoctorCheck("helix-tui's files", False, detail, fix)


def _tracker(project: Project, tracker: Tracker) -> DoctorCheck:
    if tracker.missing:
        here = project.ddx_dir.is_dir()
        detail = f"no bead yet: {project.beads_file} is not there" if here else f"no {project.beads_file}"
        return DoctorCheck("tracker", None if here else False, detail, "`ddx bead create` makes the first bead.")
    if tracker.problem:
        return DoctorCheck("tracker", False, tracker.problem, "DDx itself needs to read it too.")
    detail = f"{counted(len(tracker.beads), 'bead')} in {counted(tracker.rows, 'row')}, {tracker.size:,} bytes"
    if tracker.folded:
        detail += f", {counted(len(tracker.folded), 'id')} on more than one line"
    if tracker.dropped:
        first = tracker.dropped[0]
        return DoctorCheck(
            "tracker",
            False,
            f"{detail}; {counted(len(tracker.dropped), 'line')} unread: {first.line}, {first.reason}",
            "`helix-tui queue --json` lists them under dropped. ddx drops them at its next write; the embedded tracker "
            "writes nothing until they are corrected.",
        )
    return DoctorCheck("tracker", True, detail)


def _archive(project: Project) -> Iterator[DoctorCheck]:
    """The parts of ddx's archive that cannot be read."""
    archive = read_archive(project.archive_file)
    if archive.problem:
        yield DoctorCheck("archive", False, archive.problem, "Its content is neither counted nor found.")
    elif archive.dropped:
        yield DoctorCheck("archive", False, archive.unread, "Their content is neither counted nor found.")


def _queue(present: Present) -> Iterator[DoctorCheck]:
    queue = present.queue
    states = ", ".join(f"{number} {STATES[state].sign.word}" for state, number in queue.counts().items())
    said = f"judged by the rules of {present.judged_by}: {states or 'empty'}"
    put_away = count_project(present.project, queue).put_away
    yield DoctorCheck("queue", True, ", ".join(filter(None, (said, put_away))))
    for remark in present.remarks:
        yield DoctorCheck("ddx and tracker", False, remark, "See `helix-tui queue`.")
    missing = {edge.missing for edge in queue.graph.dangling}
    if missing:
        waiting = len({edge.bead_id for edge in queue.graph.dangling})
        said = f"{counted(waiting, 'bead waits', 'beads wait')} for {len(missing)} not in the tracker"
        away = len(find_archived(present.project.archive_file, missing))
        said += f", {away} of them archived" if away else ""
        fix = "They never become ready, and ddx does not report them: `helix-tui queue --json`, under dangling."
        yield DoctorCheck("dependencies", False, said, fix)
    if queue.graph.cycles:
        yield DoctorCheck(
            "cycles",
            False,
            counted(len(queue.graph.cycles), "dependency cycle"),
            "`helix-tui queue --json` lists them under cycles; remove one edge from each.",
        )
    left = gone(present.runs, queue)
    at_work = f"{len(beads_at_work(present.runs))} at work"
    if left.held:
        fix = "`helix-tui needs` says which, and what can be done."
        yield DoctorCheck("workers", False, claims_left(left), fix)
    elif left.all:
        yield DoctorCheck("workers", True, f"{at_work}; {claims_left(left)}")
    else:
        yield DoctorCheck("workers", True, at_work)
