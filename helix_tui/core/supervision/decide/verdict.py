"""Decide NEXT_ACTION from facts alone, if they suffice.

Order of the rules: docs/formats/helix.md §2. A rule that needs judgement about documents is not decided here:
the answer then says so, and the agent decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from msgspec import Struct, field, to_builtins

from helix_tui.core.beads.counts import QueueCounts
from helix_tui.core.beads.readiness import looks_like_epic
from helix_tui.core.beads.states import states_where
from helix_tui.core.ddx.documents.source import DocumentChange
from helix_tui.core.editing.steps import called, named
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import format_instant
from helix_tui.core.supervision.decide.facts import Facts
from helix_tui.core.supervision.signals.drift import STALE
from helix_tui.core.supervision.signals.kept_changes import refusal_words
from helix_tui.core.supervision.signals.questions import OpenQuestion
from helix_tui.core.supervision.signals.scope import EVERYTHING, Scope, scope_word

MAX_CHANGES = 5
"""Maximum changed documents named one by one."""

_DECIDES_ON_CHANGE = (
    "a person lands, drops or retries these changes; helix-tui check --apply keeps workers from the beads until then"
)

REFUSED_BY_REVIEW = "refused_by_review"


class VerdictReason(Struct, frozen=True):
    """One fact that supports the answer, or is worth knowing besides."""

    code: str
    detail: str
    refs: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return cast(dict[str, Any], to_builtins(self))


class NextVerdict(Struct, frozen=True):
    """What should happen next and why."""

    next_action: str
    """Empty if the facts do not decide."""
    reasons: tuple[VerdictReason, ...] = ()
    recommended_command: str = ""
    would_change_if: str = ""
    next_eligible: str = ""
    decided_by: str = "facts"
    """``facts`` or ``prompt``; ``none`` if undecided."""
    scope: Scope = EVERYTHING
    drain: str = "ddx work"
    """How the installed ddx drains the queue."""
    text: str = ""
    """The agent's answer, if one was asked."""
    tokens: int = 0
    cost_usd: float = 0.0
    counts: QueueCounts = field(default=QueueCounts())
    """The counts of the scope, as printed everywhere."""
    notes: tuple[VerdictReason, ...] = field(default=())
    """Further facts that do not decide."""

    @property
    def decided(self) -> bool:
        """Whether there is an answer."""
        return bool(self.next_action)

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "next_action": self.next_action or None,
            "decided_by": self.decided_by,
            "reasons": [reason.record() for reason in (*self.reasons, *self.notes)],
            "recommended_command": self.recommended_command,
            "would_change_if": self.would_change_if,
            "next_eligible": self.next_eligible or None,
            "scope": self.scope,
        }


def decide(facts: Facts) -> NextVerdict:
    """The answer from the facts; ``next_action`` is empty if they do not decide."""
    # the order of docs/formats/helix.md §2: what overrides every later answer comes first
    rules = (_refused, _unread, _blocked_by_a_person, _stale, _refused_by_review, _stopped, _ready)
    found = next((verdict for rule in rules if (verdict := rule(facts))), None) or _unready(facts)
    return NextVerdict(
        found.next_action,
        found.reasons,
        found.recommended_command or command_for(found.next_action, facts.scope, facts.drain),
        found.would_change_if,
        facts.next_eligible,
        "facts" if found.next_action else "none",
        facts.scope,
        facts.drain,
        counts=facts.counts,
        notes=_further(facts, found.reasons),
    )


def _further(facts: Facts, reasons: tuple[VerdictReason, ...]) -> tuple[VerdictReason, ...]:
    """Further facts, each once."""
    codes = {reason.code for reason in reasons}
    said = {reason.detail for reason in reasons}
    kept: list[VerdictReason] = []
    for note in _notes(facts):
        if note.code not in codes and note.detail not in said:
            said.add(note.detail)
            kept.append(note)
    return tuple(kept)


def command_for(code: str, scope: Scope, drain: str = "ddx work") -> str:
    """The exact command for an answer; ``drain`` is this ddx's command that drains the queue."""
    about = "" if scope is EVERYTHING else f" {scope}"
    return {
        "BUILD": drain,
        "DESIGN": f"helix-tui design{about}",
        "POLISH": f"helix-tui polish{about}",
        "ALIGN": f"helix-tui align {scope_word(scope)}",
        "BACKFILL": f"helix-tui backfill {scope_word(scope)}",
        "WAIT": "helix-tui stuck",
        "GUIDANCE": "helix-tui input --questions",
    }.get(code, "")


def _unread(facts: Facts) -> NextVerdict | None:
    """Unreadable lines, which cannot be judged, and which ddx drops or fails on."""
    if not facts.unread:
        return None
    reason = VerdictReason("unreadable_line", f"{facts.unread}; ddx fails on it, or drops it when it next writes")
    return NextVerdict("GUIDANCE", (reason,), "helix-tui doctor", would_change_if="the line is repaired or deleted")


def _refused(facts: Facts) -> NextVerdict | None:
    """ddx refuses the tracker, or the work that is ready, which must be fixed first."""
    if facts.shut is None or not facts.shut.matters(facts.ready):
        return None
    reason = VerdictReason(facts.shut.gate.code, str(facts.shut), facts.shut.ids)
    return NextVerdict(
        "GUIDANCE", (reason,), facts.shut.command, would_change_if=f"a person does this: {facts.shut.remedy}"
    )


def _blocked_by_a_person(facts: Facts) -> NextVerdict | None:
    stopping = [question for question in facts.questions if question.stops]
    # a conflict that is asked about already is named by its question
    clashing = facts.unasked
    if not stopping and not clashing:
        return None
    reasons = tuple(VerdictReason("physics-level", each.text, each.documents) for each in clashing) + tuple(
        VerdictReason(each.kind, each.text, (each.bead_id,) if each.bead_id else ()) for each in stopping
    )
    # a look changes nothing: what it found in the documents is asked by `check`, and can be answered from then on
    if clashing:
        asks = "a person answers what this asks: helix-tui check"
        return NextVerdict("GUIDANCE", reasons, "helix-tui check", would_change_if=asks)
    return NextVerdict("GUIDANCE", reasons, would_change_if="a person answers: helix-tui input --questions")


def _stale(facts: Facts) -> NextVerdict | None:
    stale = [each for each in facts.drift if each.field in STALE]
    if not stale:
        return None
    reasons = tuple(VerdictReason("drift", f"{each}: {each.meaning}", (each.bead_id,)) for each in stale)
    return NextVerdict(
        "POLISH",
        reasons,
        would_change_if=("a polish pass reviews them, or a person acknowledges them: helix-tui check --acknowledge"),
    )


def _refused_by_review(facts: Facts) -> NextVerdict | None:
    """A bead is ready whose change a review refused: the next worker would land that change."""
    if not any(bead_id in facts.refused for bead_id in facts.ready):
        return None
    return NextVerdict("GUIDANCE", tuple(_refusals(facts)), "helix-tui needs", would_change_if=_DECIDES_ON_CHANGE)


def _refusals(facts: Facts) -> Iterable[VerdictReason]:
    for bead_id, attempt in facts.refused.items():
        words = refusal_words(facts.queue.beads[bead_id], attempt)
        yield VerdictReason(REFUSED_BY_REVIEW, words, (bead_id,))


def _stopped(facts: Facts) -> NextVerdict | None:
    """Something is ready, but the cause that stopped the last worker would stop the next one too."""
    stoppage = facts.stoppage
    # a cause that cannot be checked from here (None) is only reported
    if stoppage is None or not stoppage.present or not facts.ready:
        return None
    reason = VerdictReason("worker_stopped", stoppage.words, stoppage.paths[:20])
    return NextVerdict("GUIDANCE", (reason,), stoppage.command, f"a person does this: {stoppage.fix}")


def _ready(facts: Facts) -> NextVerdict | None:
    if not facts.ready:
        return None
    queue = facts.queue
    work = [bead_id for bead_id in facts.ready if not looks_like_epic(queue.beads[bead_id])]
    if not work:
        reason = VerdictReason("only_epics", f"only epics are ready: {named(facts.ready)}", facts.ready)
        return NextVerdict("POLISH", (reason,), would_change_if="they are broken down into beads")
    # one bead that is fit for a worker makes the answer BUILD; what others lack is reported beside it
    unsafe = {*facts.vague, *facts.ungoverned, *_missing_acceptance(facts)}
    waits = {question.bead_id: question for question in facts.questions if question.kind != "approval"}
    safe = [bead_id for bead_id in work if bead_id not in unsafe and bead_id not in waits]
    if not safe and (asked := [waits[bead_id] for bead_id in work if bead_id in waits]):
        return _for_answers(asked)
    if safe:
        workers = facts.counts.for_workers
        names = f"{'; ' if facts.counts.asked else ': '}{named(workers)}"
        reason = VerdictReason("ready", f"{facts.counts}{names}", workers[:20])
        # ddx knows no questions of HELIX's: its own loop would pick those beads too
        command = "helix-tui run" if facts.counts.asked else ""
        return NextVerdict("BUILD", (reason,), command, would_change_if="no ready bead is left")
    if set(work) <= set(facts.ungoverned):
        reason = VerdictReason(
            "missing_authority",
            f"what is ready names documents that do not exist: {named(_specs(facts))}",
            facts.ungoverned,
        )
        return NextVerdict("DESIGN", (reason,), would_change_if="the documents that the beads name exist")
    reason = VerdictReason(
        "vague_acceptance",
        f"the acceptance of what is ready cannot be checked automatically: {named(work)}",
        tuple(work[:20]),
    )
    return NextVerdict("POLISH", (reason,), would_change_if="their acceptance names a command or something to look at")


def _missing_acceptance(facts: Facts) -> list[str]:
    """Beads under HELIX's rules without acceptance; other beads are not judged by them."""
    return [bead_id for bead_id in facts.unaccepted if "helix" in facts.queue.beads[bead_id].labels]


def _specs(facts: Facts) -> list[str]:
    return list(dict.fromkeys(facts.queue.beads[bead_id].spec_id for bead_id in facts.ungoverned))


def _unready(facts: Facts) -> NextVerdict:
    """Nothing is ready: what blocks the beads that hold up the rest."""
    # before waiting: time does not repair a dependency
    mend = list(_mendable(facts))
    if mend:
        # nothing is to be judged where an archived dependency only has to be removed
        away = [pair for pair in facts.never_met if pair[1] in facts.archived]
        command = _removal(*away[0]) if len(away) == len(mend) else ""
        return NextVerdict("POLISH", tuple(mend), command, "the dependencies or epics named here are repaired")
    asked = [question for question in facts.questions if question.kind != "approval"]
    if asked and not facts.moving:
        return _for_answers(asked)
    waits = _waits(facts)
    if waits:
        when = f", the first at {facts.next_eligible}" if facts.cooling else ""
        ends = f"a worker finishes, a claim runs out or a cooldown ends{when}"
        if facts.dead and not facts.moving and not facts.cooling:
            ids = " ".join(called(each.bead_id) for each in facts.dead)
            ends = f"ddx gives them out again, or a person releases them: helix-tui stuck --recover {ids}"
        return NextVerdict("WAIT", tuple(waits), would_change_if=ends)
    if facts.refused:
        return NextVerdict("GUIDANCE", tuple(_refusals(facts)), "helix-tui needs", _DECIDES_ON_CHANGE)
    person = _in_states(facts, states_where(lane="parked"))
    if person:
        return NextVerdict("GUIDANCE", tuple(person), "helix-tui stuck", would_change_if="a person decides on them")
    outside = _in_states(facts, states_where(lane="waiting", mover="person"))
    if outside:
        return NextVerdict(
            "WAIT", tuple(outside), would_change_if="the blocker is gone, and a person says so: helix-tui needs"
        )
    if facts.finished_epics:
        reason = VerdictReason(
            "finished_epic",
            f"everything under {named(facts.finished_epics)} is closed: close the epic and review it",
            facts.finished_epics,
        )
        return NextVerdict("BUILD", (reason,), "helix-tui run", would_change_if="the epic is closed")
    rest = _in_states(facts, states_where(lane="set aside", mover="whoever holds it"))
    if facts.outside:
        detail = f"nothing is ready in {scope_word(facts.scope)}; elsewhere {named(facts.outside)}"
        rest.insert(0, VerdictReason("ready_elsewhere", detail, facts.outside[:20]))
    return NextVerdict("", tuple(rest), would_change_if="a bead becomes ready")


def _for_answers(asked: Iterable[OpenQuestion]) -> NextVerdict:
    reasons = tuple(VerdictReason(each.kind, each.text, (each.bead_id,) if each.bead_id else ()) for each in asked)
    return NextVerdict("GUIDANCE", reasons, would_change_if="a person answers: helix-tui input --questions")


def _gone(facts: Facts, target: str) -> str:
    """Why a dependency is never met."""
    if target in facts.queue.beads:
        return "cancelled"
    return (
        f"{facts.archived[target].words}, where ddx does not look" if target in facts.archived else "not in the tracker"
    )


def _code(facts: Facts, target: str) -> str:
    return "cancelled_dependency" if target in facts.queue.beads else "dangling_dependency"


def _removal(bead_id: str, target: str) -> str:
    return f"helix-tui dep remove {called(bead_id)} {called(target)}"


def _mendable(facts: Facts) -> Iterable[VerdictReason]:
    for bead_id, target in facts.never_met:
        gone = _gone(facts, target)
        if target in facts.archived:
            gone += f": {_removal(bead_id, target)}"
        yield VerdictReason(
            _code(facts, target), f"{called(bead_id)} waits on {called(target)}, which is {gone}", (bead_id, target)
        )
    yield from _cycles(facts)
    if facts.hollow:
        detail = f"nothing is left under {named(facts.hollow)}, and nothing was closed"
        yield VerdictReason("only_epics", detail, facts.hollow)


def _cycles(facts: Facts) -> Iterable[VerdictReason]:
    for cycle in facts.cycles:
        yield VerdictReason("cycle", f"in a dependency cycle: {' → '.join(map(called, (*cycle, cycle[0])))}", cycle)


def _waits(facts: Facts) -> list[VerdictReason]:
    found = []
    if facts.moving:
        found.append(VerdictReason("claimed", f"worked on or held: {named(facts.moving)}", facts.moving))
    found += [VerdictReason("dead_claim", str(each), (each.bead_id,)) for each in facts.dead]
    if facts.cooling:
        first, until = facts.cooling[0]
        detail = f"{len(facts.cooling)} on cooldown, the next ({called(first)}) ends at {format_instant(until)}"
        found.append(VerdictReason("cooldown", detail, tuple(bead_id for bead_id, _ in facts.cooling)))
    return found


def _in_states(facts: Facts, states: tuple[str, ...]) -> list[VerdictReason]:
    found = []
    for state in states:
        ids = tuple(bead_id for bead_id in facts.left if facts.queue.state(bead_id) == state)
        if ids:
            why = facts.queue.standing(ids[0]).reasons
            detail = f"{state.replace('_', ' ')}: {named(ids)}" + (f" ({called(why[0].detail)})" if why else "")
            found.append(VerdictReason(state, detail, ids))
    return found


def _notes(facts: Facts) -> Iterable[VerdictReason]:
    """Notes that do not decide but are worth knowing."""
    if facts.unnamed:
        name = called(scope_word(facts.scope))
        detail = f"no bead, label or specification here is called {name}: all beads were checked"
        yield VerdictReason("scope", detail)
    for tried in facts.tried:
        yield VerdictReason("tried", f"{called(tried.bead_id)} {tried.words}", (tried.bead_id,))
    if facts.stoppage is not None:
        yield VerdictReason("worker_stopped", facts.stoppage.words, facts.stoppage.paths[:20])
    yield from (VerdictReason("orphan", str(orphan), (orphan.bead_id,)) for orphan in facts.orphans)
    for run in facts.stalls:
        yield VerdictReason("stall", f"{called(run.bead_id or '')}: {run.why}", (run.bead_id or "",))
    yield from _refusals(facts)
    yield from (VerdictReason("drift", f"{each}: {each.meaning}", (each.bead_id,)) for each in facts.drift)
    yield from _changed_documents(facts.changes)
    for bead_id in dict.fromkeys(bead_id for bead_id, _ in facts.never_met):
        gone = [target for waiter, target in facts.never_met if waiter == bead_id]
        why: dict[str, list[str]] = {}
        for target in gone:
            why.setdefault(_gone(facts, target), []).append(called(target))
        reasons = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in why.items())
        yield VerdictReason(_code(facts, gone[0]), f"{called(bead_id)} waits on {reasons}", (bead_id, *gone))
    yield from _cycles(facts)
    for code, ids, what in (
        ("vague_acceptance", facts.vague, "acceptance cannot be checked automatically"),
        ("missing_acceptance", facts.unaccepted, "no acceptance"),
        ("missing_authority", facts.ungoverned, "a document that does not exist"),
        ("superseded_open", facts.superseded, "superseded but still open"),
        ("finished_epic", facts.finished_epics, "epics under which everything is closed"),
    ):
        if ids:
            yield VerdictReason(code, f"{what}: {named(ids)}", ids)
    if facts.cooling:
        yield VerdictReason("cooldown", f"{len(facts.cooling)} on cooldown, the next ends at {facts.next_eligible}")
    for conflict in facts.conflicts:
        yield VerdictReason(conflict.kind, conflict.text, conflict.documents)
    for question in facts.questions:
        yield VerdictReason("question", question.text, (question.bead_id,) if question.bead_id else ())


def _changed_documents(changes: Sequence[DocumentChange]) -> Iterable[VerdictReason]:
    """Each changed document with its dependents and their beads; of many, the first and the number."""
    for change in changes[:MAX_CHANGES]:
        when = f"changed at {format_instant(change.when)}" if change.when is not None else "changed since a review"
        when = "is changed and not committed" if change.uncommitted else when
        parts = [f"{called(change.document.id)} “{clean_line(change.document.title, 80)}” {when}"]
        if change.dependents:
            parts.append(f"{named(change.dependents)} depend{'s' if len(change.dependents) == 1 else ''} on it")
        if change.reviewed:
            parts.append(f"reviewed against its older text: {named(change.reviewed)}")
        if change.beads:
            parts.append(f"open beads written before: {named(change.beads)}")
        yield VerdictReason("document_changed", "; ".join(parts), (change.document.id, *change.beads))
    rest = changes[MAX_CHANGES:]
    if rest:
        detail = f"{counted(len(rest), 'more document')} changed: helix-tui doc changed"
        yield VerdictReason("document_changed", detail, tuple(change.document.id for change in rest))
