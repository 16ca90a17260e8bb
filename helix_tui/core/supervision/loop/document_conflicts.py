"""What a run does about conflicts between documents before it dispatches anything.

Rules: docs/formats/helix.md §4, docs/decisions/0011. Demands that cannot both hold stop it; what can be
resolved is asked about, or at autonomy high passed with an escalation bead; a missing document is asked
about, or stood in for by a gap bead.
"""

from __future__ import annotations

from collections.abc import Iterable

from helix_tui.core.ddx.documents.source import Documents, GoverningDocuments
from helix_tui.core.supervision.loop.epic_focus import inject
from helix_tui.core.supervision.loop.work import LoopWork, Stop, Stopped
from helix_tui.core.supervision.signals.document_conflicts import DocumentFinding, find_conflicts
from helix_tui.core.supervision.signals.questions import OpenQuestions
from helix_tui.core.supervision.stages import injection
from helix_tui.core.supervision.stages.injection import Trigger

MOST = 20
"""Findings that one run raises; the rest waits until these are decided."""

_LABEL = {"resolvable": "kind:escalation", "gap": "kind:speculative"}


def settle_documents(work: LoopWork) -> None:
    """Raise what the documents disagree about.

    Raises:
        Stopped: two demands cannot both hold.
    """
    findings = undecided(work.questions, find_conflicts(_documents(work)))[:MOST]
    for finding in findings:
        if finding.kind == "physics-level":
            continue
        if work.autonomy.escalates:
            _file(work, finding)
        elif finding.kind == "resolvable":
            _ask(work, "conflict", finding)
    clashing = [finding for finding in findings if finding.kind == "physics-level"]
    for finding in clashing:
        _ask(work, "physics-level", finding)
    if clashing:
        raise Stopped(Stop("physics_level", clashing[0].text, 0, "helix-tui input --questions"))


def _documents(work: LoopWork) -> Documents:
    seen = work.look()
    return GoverningDocuments(work.project, work.curator.reader(seen.queue), seen.dialect).get()


def _ask(work: LoopWork, kind: str, finding: DocumentFinding) -> None:
    work.questions.ask(kind, finding.text, key=finding.key, run_id=work.state.run_id, about=finding.statements)


def undecided(questions: OpenQuestions, findings: Iterable[DocumentFinding]) -> list[DocumentFinding]:
    """Findings that nobody has decided, each of them once."""
    decided = {question.key for question in questions.all() if question.answered_at}
    return [finding for finding in findings if finding.key not in decided]


def _file(work: LoopWork, finding: DocumentFinding) -> None:
    """A bead for a person, with the assumption under which the work goes on."""
    queue = work.look().queue
    label = _LABEL[finding.kind]
    if injection.decision_standing(queue, label, finding.key):
        return
    assumed = "the document named first wins" if finding.kind == "resolvable" else "it adds no requirement"
    title = "escalation: documents disagree" if finding.kind == "resolvable" else "gap: a document is missing"
    trigger = Trigger("documents", work.state.completed_cycles, finding.documents[0])
    wish = injection.decision_bead(
        queue,
        label,
        f"{title} ({finding.documents[0]})",
        finding.text,
        key=finding.key,
        spec_id=finding.documents[0],
        acceptance=f"`{finding.documents[0]}` records the decision",
        assumed=assumed,
    )
    inject(work, wish, "escalation" if finding.kind == "resolvable" else "gap", trigger)
