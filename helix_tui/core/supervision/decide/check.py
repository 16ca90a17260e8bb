"""Determine NEXT_ACTION: facts first; if they do not decide, an agent reads the documents.

Rules: docs/formats/helix.md §2. The answer always says which of the two decided. `Checker` may ask an agent, for
``check`` and the loop. `take_status_summary` is for the console: it asks no agent, and if the facts do not decide, its
answer says what was not checked.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.documents.source import DocumentChange, Documents, GoverningDocuments
from helix_tui.core.editing.execute.curator import Curator, QueueState
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import midnight
from helix_tui.core.supervision.decide.facts import Facts, gather_facts
from helix_tui.core.supervision.decide.verdict import NextVerdict, VerdictReason, command_for, decide
from helix_tui.core.supervision.run_state.budget import (
    NO_BUDGET,
    Budget,
    BudgetUse,
    Spending,
    budget_in_force,
    budget_of,
    budget_uses,
)
from helix_tui.core.supervision.run_state.run_control import LoopRequest, read_request
from helix_tui.core.supervision.run_state.run_status import RunStatus, last_stoppage, run_status
from helix_tui.core.supervision.run_state.state import RunState, load_state
from helix_tui.core.supervision.signals.document_conflicts import DocumentFinding, find_conflicts, open_spec_ids
from helix_tui.core.supervision.signals.drift import Drift, DriftWatch
from helix_tui.core.supervision.signals.kept_changes import attempts_now
from helix_tui.core.supervision.signals.orphans import Orphan, find_left
from helix_tui.core.supervision.signals.questions import OpenQuestion, OpenQuestions, read_questions
from helix_tui.core.supervision.signals.scope import EVERYTHING, Scope, read_scope, scope_word
from helix_tui.core.supervision.signals.stoppage import Stoppage
from helix_tui.core.supervision.signals.tried import still_tried
from helix_tui.core.supervision.stages.delegate import NOBODY, AgentAnswer, AgentChoice, Delegate
from helix_tui.core.supervision.stages.stage_run import StageOutcome, perform
from helix_tui.core.supervision.stages.table import STAGES

Asking = Literal["auto", "never", "always"]
"""When an agent is asked: if the facts do not decide, never, or always."""

DOCUMENTS_AGE_S = 5.0
"""How long a reading of the documents is valid: one check needs them twice."""

UNREADABLE = "unable to determine NEXT_ACTION from check output"

UNKNOWN = NextVerdict("")


class CheckFailed(HelixError):
    """The agent failed, or did not name a code.

    Attributes:
        facts: the answer of the facts alone.
        kind: ``check_failed`` or ``check_unreadable``.
        tokens, cost_usd: the cost of its answer; 0 if unknown.
    """

    def __init__(self, message: str, facts: NextVerdict, kind: str, answer: AgentAnswer) -> None:
        super().__init__(message)
        self.facts = facts
        self.kind = kind
        self.tokens = answer.tokens
        self.cost_usd = answer.cost_usd


class DocumentFacts(Struct):
    """What the documents contribute to the next action, cached between looks.

    Attributes:
        patience_s: how long the list of changed documents is valid while they stay the same, as it needs git.
    """

    governing: GoverningDocuments
    patience_s: float = 0.0
    _conflicts: tuple[Documents, frozenset[str], tuple[DocumentFinding, ...]] | None = None
    _changes: tuple[Documents, tuple[DocumentChange, ...], float] | None = None

    def look(self, project: Project, beads: Mapping[str, Bead]) -> DocumentLook:
        """The current documents; conflicts are searched for once per reading and set of names in use."""
        known, spec_ids = self.governing.get(), open_spec_ids(beads)
        if self._conflicts is None or self._conflicts[0] is not known or self._conflicts[1] != spec_ids:
            self._conflicts = (known, spec_ids, find_conflicts(known, spec_ids))
        fresh = self._changes is not None and self._changes[0] is known
        if not fresh or self._changes is None or time.monotonic() - self._changes[2] > self.patience_s:
            self._changes = (known, known.changes(project, beads), time.monotonic())
        return DocumentLook(self.governing, known, self._conflicts[2], self._changes[1])


class DocumentLook(Struct, frozen=True):
    """The documents, their conflicts, and which of them changed."""

    governing: GoverningDocuments
    documents: Documents
    conflicts: tuple[DocumentFinding, ...]
    changes: tuple[DocumentChange, ...]


def document_facts(curator: Curator, queue: Queue) -> DocumentFacts:
    """The reader of a project's documents, through ddx if installed."""
    ddx = curator.reader()
    return DocumentFacts(GoverningDocuments(curator.project, ddx, max_age_s=DOCUMENTS_AGE_S))


class Checker(Struct):
    """Determines the next action of one project.

    Attributes:
        delegate: asks the agent; None: only the facts decide.
        trouble: why what was seen of the beads could not be saved, in one sentence; else "".
        records: the records of attempts, read again at each look; None until they are needed.
    """

    curator: Curator
    questions: OpenQuestions
    delegate: Delegate | None = None
    agent_choice: AgentChoice = NOBODY
    found: DocumentFacts | None = None
    trouble: str = ""
    records: AttemptIndex | None = None

    def attempts(self, queue_state: QueueState) -> AttemptBook:
        """The attempts that decide whether a worker would land a refused change."""
        if self.records is None:
            self.records = AttemptIndex.of(self.curator.project)
        return attempts_now(self.records, queue_state.queue, queue_state.dialect)

    def facts(
        self, scope: Scope = EVERYTHING, *, queue_state: QueueState | None = None, documents: bool = True
    ) -> Facts:
        """Gather the facts. New beads and our own changes are added to the drift snapshot.

        Args:
            documents: whether to read the documents, through ddx if installed.

        Raises:
            Unreadable: there is no queue, or it cannot be read.
        """
        queue_state = queue_state or self.curator.look()
        project = self.curator.project
        state = load_state(project)
        left = find_left(queue_state.runs, queue_state.queue)
        return _facts_of(
            queue_state,
            project,
            self._documents(queue_state.queue) if documents else None,
            scope=scope,
            state=state,
            drift=self.drift(queue_state),
            orphans=left.orphans,
            dead=left.honoured,
            # answered ones too: they show which conflicts between documents are decided
            questions=self.questions.all(),
            stoppage=last_stoppage(project, queue_state.runs, state),
            attempts=self.attempts(queue_state),
        )

    def _documents(self, queue: Queue) -> DocumentFacts:
        """The documents, read once for related calls."""
        if self.found is None:
            self.found = document_facts(self.curator, queue)
        return self.found

    def drift(self, queue_state: QueueState) -> tuple[Drift, ...]:
        """The drift: what others changed since it was last seen."""
        watch = DriftWatch(self.curator.project, self.curator.gate)
        history = self.curator.history()
        if self.curator.gate.read_only:
            return watch.check(queue_state.queue.beads, history)
        try:
            return watch.settle(queue_state.queue.beads, history)
        except OSError as error:
            # a full disk does not keep anybody from reading
            self.trouble = f"what was seen cannot be kept: {error.strerror or error}"
            return watch.check(queue_state.queue.beads, history)

    def check(self, scope: Scope = EVERYTHING, *, asking: Asking = "auto", stamp: str = "check") -> NextVerdict:
        """Determine the next action.

        Raises:
            CheckFailed: the agent failed, or its answer names no code.
            DdxError: the facts do not decide and there is no ddx to ask (127, 69).
            Unreadable: there is no queue, or it cannot be read.
        """
        facts = self.facts(scope)
        verdict = decide(facts)
        if asking == "never" or (verdict.decided and asking == "auto"):
            return verdict if verdict.decided else undecided(verdict)
        if self.delegate is None:
            return undecided(verdict) if not verdict.decided else verdict
        done = perform(
            self.curator.project,
            self.delegate,
            STAGES["check"],
            {"scope": scope_word(scope), "facts": facts_text(facts, verdict)},
            self.agent_choice,
            stamp,
        )
        return self._from_agent(done, verdict)

    def _from_agent(self, done: StageOutcome, facts: NextVerdict) -> NextVerdict:
        if done.answer.problem:
            raise CheckFailed(f"check failed: {done.answer.problem}", facts, "check_failed", done.answer)
        code = done.trailers.get("NEXT_ACTION")
        if not code:
            raise CheckFailed(UNREADABLE, facts, "check_unreadable", done.answer)
        # no STOP while something is ready (decision 0006): the facts' answer, if any, takes precedence
        if code == "STOP" and facts.decided:
            said = clean_line(done.answer.text, 300)
            denied = VerdictReason("agent", f"the agent answered STOP, which the queue contradicts: {said}")
            tokens, cost = done.answer.tokens, done.answer.cost_usd
            return replace(facts, notes=(*facts.notes, denied), tokens=tokens, cost_usd=cost)
        about = read_scope(_named_scope(done.answer.text, code)) or facts.scope
        said = _section(done.answer.text, ("Remaining Work Assessment", "Remaining Work", "Reason", "Reasons"))
        rest = " ".join(line for line in done.answer.text.split("\n") if "NEXT_ACTION" not in line)
        detail = said or clean_line(rest, 300).strip() or "the agent gives no reason"
        return replace(
            facts,
            next_action=code,
            reasons=(VerdictReason("agent", detail),),
            notes=(*facts.reasons, *facts.notes),
            recommended_command=command_for(code, about, facts.drain),
            would_change_if=_section(done.answer.text, ("Stop Or Escalation Condition", "Would Change If", "Condition"))
            or facts.would_change_if,
            decided_by="prompt",
            text=done.answer.text,
            tokens=done.answer.tokens,
            cost_usd=done.answer.cost_usd,
        )


def undecided(verdict: NextVerdict) -> NextVerdict:
    """The answer if the facts do not decide and no agent is asked: stop, and say what was not checked."""
    reason = VerdictReason("not_looked", "undecided: nothing is ready, and no agent has checked the documents")
    return replace(
        verdict,
        next_action="STOP",
        decided_by="none",
        reasons=(*verdict.reasons, reason),
        would_change_if="an agent checks the documents: helix-tui check --ask",
    )


def facts_text(facts: Facts, verdict: NextVerdict, about: str = "") -> str:
    """The facts as lines for a prompt; text from beads is cleaned.

    Args:
        about: the document in question, if the scope does not name it.
    """
    health = facts.health
    numbers = ("total", "open", "in_progress", "closed", "ready", "ready_execution", "blocked", "cooling")
    lines = ["Queue health: " + ", ".join(f"{name}={health[name]}" for name in numbers)]
    lines.append(f"without area: {health['without_area']}, without context digest: {health['without_digest']}")
    lines += [f"- {each.code}: {clean_line(each.detail, 400)}" for each in (*verdict.reasons, *verdict.notes)]
    for bead_id in facts.left[:40]:
        bead = facts.queue.beads[bead_id]
        state = facts.queue.state(bead_id)
        lines.append(f"- {clean_line(bead_id, 60)} [{state}] {clean_line(bead.title, 120)}")
    if len(facts.left) > 40:
        lines.append(f"- and {len(facts.left) - 40} more")
    if facts.documents is not None:
        lines += documents_text(facts.documents, about or scope_word(facts.scope), facts.queue)
    return "\n".join(lines)


def documents_text(documents: Documents, about: str, queue: Queue) -> list[str]:
    """The document graph for a prompt: counts, and the dependencies of the document in question."""
    issues = counted(len(documents.graph.issues), "issue")
    counts = f"{counted(len(documents.all), 'document')}, {len(documents.stale)} stale, {issues}"
    who = "ddx" if documents.source == "ddx" else "their own frontmatter"
    verbs = "`helix-tui doc graph|show|deps|dependents|stale|audit|changed|search`"
    return [f"Document graph, by {who}: {counts}; {verbs}", *documents.brief(about, queue.beads.values())]


def _section(text: str, names: tuple[str, ...]) -> str:
    """The text of an answer under one of some headings, on the heading's line or the next."""
    for name in names:
        # agents write headings with #, in bold, as list items, or as plain words before a colon
        match = re.search(rf"(?mi)^[ \t#*\-\d.]*{re.escape(name)}[*:\s]*[ \t]*\n?[ \t]*([^\n#][^\n]*)", text)
        if match:
            return clean_line(match.group(1).strip("* "), 400)
    return ""


def _named_scope(text: str, code: str) -> str:
    """The scope of the command that an answer recommends."""
    # agents may call the program `helix`, as FEAT-002 does, and use the old name of design
    verb = {"BACKFILL": "backfill", "DESIGN": "(?:design|plan)", "POLISH": "polish", "ALIGN": "align"}.get(code)
    found = re.search(rf"\bhelix(?:-tui)? {verb} +([^\s`*<>]+)", text) if verb else None
    return clean_line(found.group(1), 120) if found and not found.group(1).startswith("-") else ""


class StatusSummary(Struct, frozen=True):
    """The state of a project at one look."""

    verdict: NextVerdict = UNKNOWN
    """NEXT_ACTION with its reasons; its code is empty before anything was read."""
    run: RunStatus = RunStatus()
    """The state of HELIX's own loop."""
    requested: LoopRequest = ""
    """A pending request to the loop."""
    stoppage: Stoppage | None = None
    """What stopped the last worker of ddx, if it must be fixed."""
    refused: Mapping[str, Attempt] = {}
    """Beads whose change a review refused, and which the next worker would land, each with the attempt."""
    unasked: tuple[DocumentFinding, ...] = ()
    """Conflicts between documents that stop the work and that nobody has been asked about."""
    budget: Budget = NO_BUDGET
    """The budget of a run and a day: that of the active run, else of the next."""

    def budget_uses(self, book: AttemptBook, now: int, *, of_new_run: bool = False) -> tuple[BudgetUse, ...]:
        """Each part of the budget with the amount spent, the most exhausted first.

        Args:
            of_new_run: as a run that starts now would find it, where none is under way.
        """
        if not self.budget:
            return ()
        state, start = self.run.state, midnight(now)
        new = Spending() if of_new_run else None
        run = Spending(state.sums, state.attempted_cycles) if self.run.condition == "active" else new
        day = Spending(book.spent_since(start), book.begun_since(start)) if self.budget.day else Spending()
        return budget_uses(self.budget, run=run, day=day)

    @property
    def questions(self) -> tuple[OpenQuestion, ...]:
        """What HELIX asks a person."""
        return self.run.questions


def _facts_of(
    queue_state: QueueState,
    project: Project,
    documents: DocumentFacts | None,
    *,
    state: RunState,
    questions: Iterable[OpenQuestion],
    drift: Iterable[Drift],
    orphans: Iterable[Orphan],
    dead: Iterable[Orphan],
    stoppage: Stoppage | None,
    attempts: AttemptBook,
    scope: Scope = EVERYTHING,
) -> Facts:
    """The facts behind the next action, for `check` and every screen; None leaves the documents out."""
    read = documents.look(project, queue_state.queue.beads) if documents is not None else None
    return gather_facts(
        queue_state,
        scope=scope,
        drift=drift,
        orphans=orphans,
        dead=dead,
        questions=questions,
        governing=read.governing if read else None,
        conflicts=read.conflicts if read else (),
        documents=read.documents if read else None,
        changes=read.changes if read else (),
        tried=still_tried(state.tried, queue_state.queue),
        attempts=attempts,
        stoppage=stoppage,
        archive=project.archive_file,
    )


def take_status_summary(
    queue_state: QueueState,
    project: Project,
    attempts: AttemptBook,
    *,
    drift: Iterable[Drift] = (),
    orphans: Iterable[Orphan] = (),
    dead: Iterable[Orphan] = (),
    documents: DocumentFacts | None = None,
    default_budget: Budget = NO_BUDGET,
) -> StatusSummary:
    """The current state of the work. Reads a few small files and the documents; changes nothing and asks no agent."""
    status = run_status(project, queue_state.queue.beads)
    # answered ones too: they show which conflicts between documents are decided
    every = read_questions(project.helix_dir / "questions.json")
    stoppage = last_stoppage(project, queue_state.runs, status.state)
    facts = _facts_of(
        queue_state,
        project,
        documents,
        state=status.state,
        drift=drift,
        orphans=orphans,
        dead=dead,
        questions=every,
        stoppage=stoppage,
        attempts=attempts,
    )
    verdict = decide(facts)
    found = verdict if verdict.decided else undecided(verdict)
    # a run's state includes its command line (--budget), which is in no settings file
    held = budget_of(status.state.budget) if status.condition == "active" else NO_BUDGET
    budget = held or budget_in_force(project, default=default_budget)
    return StatusSummary(found, status, read_request(project), stoppage, facts.refused, facts.unasked, budget)
