"""Run one stage: find, take over or create its governing bead, render its prompt, give it to an agent, and check the
answer against the stage's contract.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import read_archive
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.ddx.documents.source import GoverningDocuments
from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.curator import Curator, Result
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.steps import called
from helix_tui.core.editing.undo import Unreadable
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import below, is_file, read_bytes, status_of
from helix_tui.core.ground.git import GitFailed, ask_git, read_git
from helix_tui.core.ground.processes.threads import pid_alive
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.ground.writes import replace_file
from helix_tui.core.supervision.signals.orphans import ALIGN, PLANNING, governs_alignment
from helix_tui.core.supervision.signals.scope import (
    Scope,
    named_beads,
    names_of,
    read_scope,
    scope_word,
    siblings,
    written_like_a_bead,
)
from helix_tui.core.supervision.stages.delegate import LOGS, AgentAnswer, AgentChoice, Delegate
from helix_tui.core.supervision.stages.injection import ALIGNMENT, REVIEW, activity_prefix, injected_type, type_for
from helix_tui.core.supervision.stages.table import STANCES, Stage, render
from helix_tui.core.supervision.stages.trailers import NO_TRAILERS, Trailers, parse_trailers

CLEAN, ISSUES_FOUND = 0, 10
"""Exit codes of a review."""

_NAMES_CAP = 1 << 20
"""Bytes of file names searched for a name similar to a scope."""

ACCEPTANCE = (
    "`ddx bead show <this> --json` shows notes that record ALIGN_STATUS: COMPLETE, and the "
    "report file that they name exists"
)

_SPEC = re.compile(r"(FEAT|US|SD|TD|TP|ADR|CONTRACT)-")
_AREAS = ("ui", "api", "data", "infra", "cli")

_BY_PATH = (
    ("website", "site"),
    ("docs/demos", "demo"),
    ("docs", "docs"),
    ("tests", "testing"),
    ("scripts", "cli"),
    ("bin", "cli"),
    ("workflows", "workflow"),
    (".ddx", "workflow"),
)

EVERY = 5
"""Completed cycles after which the context is refreshed."""

_RULES = """## Key Rules

- Carry out the bead you were given; what is not in its acceptance is not part of it.
- Authority order: Vision > PRD > Specs > Architecture > Designs > Tests > Code
- Verify what you changed, not the whole workspace.
- Absorb small adjacent work (<100 lines, same module) instead of creating tickets.
- Use ddx bead subcommands for all issue operations.
- Commit with the bead's id in the message."""

_STAGE_RULES = """## Key Rules

- Authority order: Vision > PRD > Specs > Architecture > Designs > Tests > Code
- Use ddx bead subcommands for all issue operations."""
"""The rules of every stage; the others are those of a bead's execution."""

_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_FENCE = re.compile(r"\s*(```+|~~~+)\s*(.*)")

QUICK_LINES = 40
"""Maximum lines of a Quick Reference given to agents."""


class StageOutcome(Struct, frozen=True):
    """How a stage ended."""

    stage: Stage
    answer: AgentAnswer
    trailers: Trailers = NO_TRAILERS
    problems: tuple[str, ...] = ()
    """What the contract requires and the answer lacks."""
    code: int = 0
    """The command's exit code."""

    @property
    def ok(self) -> bool:
        """Whether it completed with a valid answer."""
        return not self.problems and not self.answer.problem

    @property
    def why(self) -> str:
        """What is wrong, in one line."""
        return self.answer.problem or "; ".join(self.problems)

    @property
    def status(self) -> str:
        """The value of its status trailer."""
        return self.trailers.get(self.stage.status.name) if self.stage.status else ""


def perform(
    project: Project, delegate: Delegate, stage: Stage, values: Mapping[str, str], agent_choice: AgentChoice, stamp: str
) -> StageOutcome:
    """Run a stage.

    Args:
        values: the values of the prompt's placeholders (`table.PLACES`).
        stamp: prefix of the prompt's and the answer's file names.

    Raises:
        DdxError: no ddx (127), or one that cannot ask (69).
        OSError: the log folder cannot be written.
    """
    prompt = render(project, stage, values)
    answer = delegate.ask(prompt, agent_choice_for(stage, agent_choice), stamp)
    trailers = parse_trailers(answer.text, stage)
    return _held(project, StageOutcome(stage, answer, trailers, trailers.problems))


def agent_choice_for(stage: Stage, agent_choice: AgentChoice) -> AgentChoice:
    """Who does a stage, and with what effort: as requested, else as in the stage's row."""
    chosen = agent_choice.for_agent(stage.agent)
    return replace(chosen, effort=chosen.effort or stage.effort)


def command_of(project: Project, delegate: Delegate, stage: Stage, agent_choice: AgentChoice) -> tuple[str, ...]:
    """The exact command that a stage runs; the prompt's file is named, not written.

    Raises:
        DdxError: no ddx (127), or one that cannot ask (69).
    """
    place = Path(LOGS, f"<time>-{stage.name}.prompt.md")
    return ("ddx", *delegate.question(place, agent_choice_for(stage, agent_choice), writes=stage.writes))


class Missing(Struct, frozen=True):
    """A scope that matches nothing."""

    why: str
    near: tuple[str, ...] = ()
    """The most similar names."""


def find_missing(project: Project, queue: Queue, stage: Stage, word: str) -> Missing | None:
    """What is missing for a scope that matches nothing; None if it matches, or if unknown.

    Several words are a description for the agent.
    """
    scope = read_scope(word)
    if scope is None or scope == stage.scope or len(scope.split()) > 1 or named_beads(queue, scope):
        return None
    path = scope.partition("#")[0].partition(":")[0]
    if status_of(below(project.root, path)) is not None:  # it may look like a bead's id
        return None
    archive = read_archive(project.archive_file).beads
    if scope in archive:
        return None
    if written_like_a_bead(queue, scope):
        return Missing("the tracker has no such bead", _near(scope, (*queue.beads, *archive)))
    if not stage.there or _is_said(project, queue, scope):
        return None
    documents = GoverningDocuments(project).get()
    if documents.search(scope, most=1):
        return None
    listed = ask_git(project.root, "ls-files", "-z", cap=_NAMES_CAP)
    files = listed.out.split("\0") if listed is not None else []
    stems = (stem for name in files for stem in (name, Path(name).name, Path(name).stem))
    why = "no bead, label, document, file, commit or word of the repository is called so"
    return Missing(why, _near(scope, dict.fromkeys((*names_of(queue), *documents.all, *stems, *_AREAS))))


def _is_said(project: Project, queue: Queue, word: str) -> bool:
    """Whether a word is an area, occurs in a bead's title or a file, or is a commit, a range or a file pattern to git;
    True also if git fails.
    """
    if word.removeprefix("area:") in scope_areas(project, None):
        return True
    whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
    if any(whole.search(bead.title) for bead in queue.beads.values()):
        return True
    quiet = ("rev-list", "--max-count=1", "--quiet", "--end-of-options", word.removeprefix("commit:"), "--")
    files = (":(exclude).ddx", ":(exclude).helix")  # beads were checked already; a prompt kept there may quote the word
    try:
        return (
            read_git(project.root, *quiet, check=False).rc == 0
            or bool(read_git(project.root, "ls-files", "-z", "--", word, cap=1, check=False).out)
            or read_git(project.root, "grep", "-qiwF", "-e", word, "--", ".", *files, check=False).rc != 1
        )
    except GitFailed:
        return True


def _near(word: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names most similar to a word; quadratic in their length."""
    from difflib import get_close_matches

    short = {name[:80].lower(): name for name in names if name}
    return tuple(short[match] for match in get_close_matches(word[:80].lower(), short, n=3))


def _held(project: Project, done: StageOutcome) -> StageOutcome:
    """Check the outcome against its stage's own contract."""
    if done.answer.problem:
        return replace(done, code=max(done.answer.rc, 1), problems=())  # a signal has no separate code
    judged = _JUDGES.get(done.stage.name, _plain)(project, done)
    return replace(judged, code=1) if judged.problems else judged


def _plain(project: Project, done: StageOutcome) -> StageOutcome:
    return replace(done, code=1 if done.status == "BLOCKED" else 0)


def _review(project: Project, done: StageOutcome) -> StageOutcome:
    """Check a review: CLEAN 0, ISSUES_FOUND 10; findings need a count to be followed up."""
    if done.status != "ISSUES_FOUND":
        return done
    if not done.trailers.get("ISSUES_COUNT"):
        return replace(done, problems=(*done.problems, "review output missing ISSUES_COUNT trailer"))
    return replace(done, code=ISSUES_FOUND)


def _backfill(project: Project, done: StageOutcome) -> StageOutcome:
    """Check a backfill: three trailers, and a report that exists inside the repository."""
    report = done.trailers.get("BACKFILL_REPORT")
    problems = list(done.problems)
    # an agent names the file
    if report and not is_file(below(project.root, report)):
        problems.append(f"declared backfill report does not exist: {clean_line(report, 200)}")
    return replace(done, problems=tuple(problems), code=1 if done.status == "BLOCKED" else 0)


_JUDGES = {"review": _review, "backfill": _backfill}


class AlignmentActive(HelixError):
    """An alignment of this scope is already running."""


class Governing(Struct, frozen=True):
    """The plan for a governing bead: the operations, and its id."""

    mode: Literal["created", "claimed", "reclaimed"]
    bead_id: str
    """Empty until it is created."""
    operations: tuple[Operation, ...]


def plan_governing(curator: Curator, scope: Scope, queue: Queue) -> Governing:
    """Plan how to get the governing bead of a scope.

    Raises:
        AlignmentActive: it is being worked on.
    """
    project = curator.project
    title = f"align: {scope_word(scope)}"
    labels = governing_labels(project, queue, scope)
    found = [bead for bead in queue.beads.values() if _governs(bead, title)]
    # a claim by lease leaves the row open: a running bead is not free
    free = next((bead for bead in found if bead.status == "open" and queue.state(bead.id) != "running"), None)
    if free is not None:
        return Governing("claimed", free.id, tuple(_taking(free, labels)))
    bead = next((bead for bead in found if bead.status in ("in_progress", "open")), None)
    if bead is None:
        return Governing("created", "", (_new(scope, title, labels, queue),))
    # whatever its age: nobody on this machine is behind such a claim any more
    if not any(run.bead_id == bead.id and run.left is not None for run in curator.look().runs):
        raise AlignmentActive(
            f"alignment already active for {scope_word(scope)} under owner {called(bead.owner or 'unknown')} "
            f"({called(bead.id)}); "
            f"refusing duplicate dispatch; if nobody is working on it: helix-tui unclaim {called(bead.id)}"
        )
    return Governing("reclaimed", bead.id, (operations.ReleaseBead(bead.id), *_taking(bead, labels)))


def acquire(curator: Curator, scope: Scope) -> tuple[Governing, Result]:
    """Get the governing bead of a scope; return its id and what was done.

    Raises:
        AlignmentActive: it is being worked on, or was taken meanwhile.
        DdxError, Unreadable, WritesForbidden: as the curator.
    """
    planned = plan_governing(curator, scope, curator.look().queue)
    done = curator.run(planned.operations, title=f"govern the alignment of {scope_word(scope)}")
    if done.error is not None:
        raise done.error
    refused = done.plan.refusals
    if refused:
        raise AlignmentActive(f"the governing bead cannot be claimed: {refused[0].why}")
    made = next(iter(done.created.values()), planned.bead_id)
    return Governing(planned.mode, made, planned.operations), done


def hand_back(curator: Curator, governing: Governing) -> str:
    """Release the governing bead after its dispatch, so that the next alignment can use it at once. One that another
    worker holds is left alone.

    Returns:
        Why it is still claimed, or "".
    """
    name = called(governing.bead_id)
    try:
        bead = curator.look().queue.beads.get(governing.bead_id)
        if bead is None or bead.status != "in_progress":
            return ""
        if bead.pid is not None and bead.pid != os.getpid() and pid_alive(bead.pid):
            return ""
        error: Exception | None = curator.run(
            [operations.ReleaseBead(governing.bead_id)], title=f"hand back {name}"
        ).error
    except (DdxError, Unreadable) as failure:
        error = failure
    return "" if error is None else f"{name} stays claimed ({error}): helix-tui unclaim {name}"


def governing_labels(project: Project, queue: Queue, scope: Scope) -> list[str]:
    """The labels of a governing bead."""
    areas = [f"area:{name}" for name in scope_areas(project, scope)]
    return ["helix", f"{activity_prefix(queue)}:review", PLANNING, ALIGN, *areas]


def scope_areas(project: Project, scope: Scope) -> list[str]:
    """The areas of a scope: from its path, or from the project's concerns."""
    if scope is not None:
        if scope.startswith("area:"):
            return [scope.removeprefix("area:")]
        found = [area for path, area in _BY_PATH if scope == path or scope.startswith(f"{path}/")]
        found += ["artifacts"] if "/artifacts" in scope else []
        if found:
            return list(dict.fromkeys(found))
    raw = read_bytes(project.root / "docs" / "helix" / "01-frame" / "concerns.md", 1 << 20) or b""
    named = dict.fromkeys(re.findall(r"`area:([\w-]+)`", raw.decode("utf-8", "replace")))
    return list(named) or list(_AREAS)


def _governs(bead: Bead, title: str) -> bool:
    return bead.title == title and governs_alignment(bead)


def _taking(bead: Bead, labels: list[str]) -> Iterable[Operation]:
    missing = [label for label in labels if label not in bead.labels]
    if missing:
        yield operations.ChangeLabels(bead.id, add=missing)
    yield operations.ClaimBead(bead.id)


def _new(scope: Scope, title: str, labels: list[str], queue: Queue) -> operations.CreateBead:
    areas = [label.removeprefix("area:") for label in labels if label.startswith("area:")]
    spec = scope if scope is not None and _SPEC.match(scope) else ""
    return operations.CreateBead(
        title=title,
        issue_type=type_for(spec),
        priority=1,
        labels=labels,
        spec_id=spec,
        acceptance=ACCEPTANCE.replace(" <this>", ""),
        description=(
            f"Scope: {scope_word(scope)}\nScope areas: {', '.join(areas)}\n"
            "Every gap classified, a bead for each real one, a traceability matrix."
        ),
        # it only governs: no worker may pick it
        fields={"execution-eligible": "false"},
    )


def context_path(project: Project) -> Path:
    """The file with the project context for agents."""
    return project.helix_dir / "context.md"


def refresh_context(project: Project, queue: Queue, *, epic: str = "") -> Path:
    """Rewrite the context from the repository and the queue.

    Raises:
        OSError: it cannot be written.
    """
    path = context_path(project)
    replace_file(path, context_text(project, queue, epic=epic).encode("utf-8", "replace"))
    return path


def agent_context(project: Project, queue: Queue, bead: Bead, *, epic: str = "") -> str:
    """What the agent of a bead gets besides the bead: the stance of its stage, and the digest of the context.

    The stance depends on the kind of work (CONTRACT-001): executing is bounded, reviewing looks for defects.
    """
    family = "execution"
    if injected_type(bead) == REVIEW or "kind:review" in bead.labels:
        family = "review"
    elif injected_type(bead) == ALIGNMENT or governs_alignment(bead):
        family = "alignment"
    context = context_text if family == "execution" else stage_context
    digest = context(project, queue, epic=epic).split("\n\n", 2)[2].strip()  # no path of this machine
    related = [f"- {sibling} {clean_line(queue.beads[sibling].title, 200)}" for sibling in siblings(queue, bead.id)[1:]]
    if related and family == "execution":
        digest += "\n\n".join(("", "## Related ready beads, which get attempts of their own", "\n".join(related)))
    return f"Stance ({family}): {STANCES[family]}\n\n{digest}"


def stage_context(project: Project, queue: Queue, *, epic: str = "") -> str:
    """The context of a stage that has a prompt of its own: without the rules of a bead's execution."""
    return context_text(project, queue, epic=epic, rules=_STAGE_RULES)


def context_text(project: Project, queue: Queue, *, epic: str = "", rules: str = _RULES) -> str:
    """The context as Markdown."""
    statuses = [bead.status for bead in queue.beads.values()]
    counts = (
        f"ready={len(queue.ready)}, open={statuses.count('open')}, "
        f"in-progress={statuses.count('in_progress')}, closed={statuses.count('closed')}"
    )
    head = f"# HELIX Execution Context\n\nProject root: {project.root}\nTracker: {project.beads_file}\n"
    parts = [f"{head}Issue counts: {counts}"]
    commands = quick_reference(project)
    if commands:
        parts.append(f"## Build/Test Commands\n\n{commands}")
    bead = queue.beads.get(epic)
    if bead is not None:
        rows = {
            "ID": bead.id,
            "Title": bead.title,
            "Spec": bead.spec_id,
            "Acceptance": bead.document().get("acceptance"),
        }
        lines = [f"{name}: {clean_line(value, 1000)}" for name, value in rows.items() if value]
        parts.append("## Current Epic\n\n" + "\n".join(lines))
    return "\n\n".join([*parts, rules]) + "\n"


def quick_reference(project: Project) -> str:
    """The fenced commands of the Quick Reference in AGENTS.md, else its text; else ""."""
    raw = read_bytes(project.root / "AGENTS.md", 1 << 20)
    inside: list[str] = []
    section: list[str] = []
    level, fence = 0, ""
    for line in clean_block((raw or b"").decode("utf-8", "replace")).split("\n"):
        mark, heading = _FENCE.match(line), _HEADING.match(line)
        if fence and mark and mark[1].startswith(fence) and not mark[2]:
            fence = ""
        elif mark and not fence:
            fence = mark[1]
        elif fence:
            inside += [line] if level else []
        # the next heading of the same level ends the section; a lower one belongs to it
        elif heading and level and len(heading[1]) <= level:
            break
        elif heading and not level:
            level = len(heading[1]) if "quick reference" in heading[2].lower() else 0
        elif level and line.strip():
            section.append(line)
    return "\n".join(["```bash", *inside[:QUICK_LINES], "```"] if inside else section[:QUICK_LINES])
