"""One bead in sentences: its state, who works on it, why it is not picked, what would free it, what it blocks.

The detail, ``why``, a copied bead and the lists say these; ids stand in full, and each place shows titles its own way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from helix_tui.core.beads.graph import circle_ahead, circle_of
from helix_tui.core.beads.readiness import Queue, looks_like_epic
from helix_tui.core.beads.record import DRIFTED, REFUSED, TERMINAL, Bead, hold_reason
from helix_tui.core.beads.states import STATES
from helix_tui.core.ddx.runs.running import Run, unheard_claim
from helix_tui.core.ground.text import clean_line, counted, short_id
from helix_tui.core.ground.time import NS, format_age, format_span
from helix_tui.core.supervision.signals.kept_changes import refusal_words
from helix_tui.core.supervision.signals.questions import WAITS
from helix_tui.core.supervision.signals.tried import UNDECIDED

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.attempt import Attempt
    from helix_tui.core.ddx.remarks import Shut
    from helix_tui.core.supervision.signals.questions import Asked

MAX_CUTS = 4

Topic = Literal["state", "worker", "claim", "but", "because", "attempt", "cycle", "break", "blocks"]

_UNTIL_DECIDED = {
    DRIFTED: "its parent or document changed: polish it, or accept that (helix-tui check --acknowledge)",
    REFUSED: "a review refused its change: land it, drop it or attempt it afresh (helix-tui needs)",
}
"""Reason of a hold to what ends it."""

_ESCALATIONS = frozenset({"kind:escalation", "kind:speculative"})


class Statement(Struct, frozen=True):
    """One sentence about a bead."""

    topic: Topic
    text: str
    refs: tuple[str, ...] = ()
    """Beads that it is about, where a place may list them one by one."""
    role: str = "text"
    command: str = ""
    """The command line that does what it says."""


def explain(
    bead: Bead,
    queue: Queue,
    *,
    runs: Iterable[Run] = (),
    held: Sequence[str] = (),
    shut: Shut | None = None,
    last: Attempt | None = None,
) -> Iterator[Statement]:
    """Every sentence about a bead, what a person can act on before the queue's own reasons.

    Args:
        runs: the runs on it.
        held: what it waits for a person or HELIX (`held_by`).
        shut: what the installed ddx refuses here.
        last: its last attempt.
    """
    refused = f"; {shut.short}" if shut is not None and queue.state(bead.id) == "ready" else ""
    yield Statement("state", place_words(bead.id, queue, asked=bool(held)) + refused)
    runs = tuple(runs)
    yield from (Statement("worker", run_words(run, queue.as_of)) for run in runs)
    if claimed := unheard_claim(bead, next(iter(runs), None)):
        yield Statement("claim", claimed)
    # ddx would pick a ready bead while HELIX or a person still has a question about it
    topic: Topic = "but" if bead.id in queue.position else "because"
    for cause in held:
        yield Statement(topic, clean_line(cause.replace(f"{bead.id}: ", ""), 600), role="attention")
    reasons = queue.standing(bead.id).reasons
    for reason in reasons:
        yield Statement("because", clean_line(reason.detail, 600), reason.refs)
    if not reasons and bead.id not in queue.position:
        yield Statement("because", f"its status is {clean_line(bead.status, 40)}")
    if last is not None:
        yield Statement("attempt", _attempt_words(last, queue))
    yield from _of_cycle(bead.id, queue)
    if blocks := _blocks(bead, queue):
        yield blocks


def place_words(bead_id: str, queue: Queue, *, asked: bool = False) -> str:
    """The state of a bead; of a ready one also its place in DDx's order.

    Args:
        asked: whether HELIX or a person still has a question about it, which DDx does not know.
    """
    place = queue.position.get(bead_id)
    if place is None:
        return STATES[queue.state(bead_id)].sign.word
    if place == 1 and not asked:
        return "ready, picked next"
    return f"ready, {place} of {len(queue.ready)} in pick order"


def run_words(run: Run, now: int) -> str:
    """What a run is known to do, with what, for how long, and whether it is alive."""
    agent = " ".join(filter(None, (clean_line(run.harness, 40), clean_line(run.model, 60))))
    since = f"for {format_span((now - run.started_at) / NS)}" if run.started_at else ""
    doing = clean_line(run.last_tool or run.phase or run.message, 300)
    why = clean_line(run.why, 300) or "running"
    return " · ".join(filter(None, (why if run.live else f"{run.verdict}: {why}", agent, since, doing)))


def held_by(bead: Bead, questions: Iterable[Asked] = (), refused: Attempt | None = None) -> tuple[str, ...]:
    """What a bead waits for that a person can act on; empty if the queue's own reasons say it all.

    Args:
        questions: HELIX's questions.
        refused: its attempt whose change a review refused.
    """
    if bead.status in TERMINAL:
        return ()
    found = [
        f"waits for your answer to {question.id}: {question.text}"
        for question in questions
        if question.bead_id == bead.id and not question.answered
    ]
    if refused is not None and not hold_reason(bead):
        found.append(refusal_words(bead, refused))
    if bead.execution_eligible is not False:
        return tuple(found)
    # the whole row is decoded only if its bytes contain the mark: this runs for every bead that is not ready
    held = bead.document().get(UNDECIDED) if f'"{UNDECIDED}"'.encode() in bead.raw else None
    if isinstance(held, str) and held.startswith("tried"):
        found.append("tried in this run and skipped until its record changes or the run ends")
    elif isinstance(held, str) and held.startswith(WAITS):
        found.append(clean_line(held, 200))
    elif not found and held is not None:
        found.append("waits for your decision on its last attempt")
    if reason := hold_reason(bead):
        found.append(_UNTIL_DECIDED.get(reason, reason))
    if bead.focus_epic:
        found.append(f"held back by the focus on {bead.focus_epic}")
    if _ESCALATIONS & set(bead.labels):
        found.append("waits for your decision; no worker picks it")
    return tuple(found)


def _attempt_words(last: Attempt, queue: Queue) -> str:
    from helix_tui.core.ddx.attempts.interpretation import interpret
    from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS

    age = f" {format_age((queue.as_of - last.at) / NS)} ago" if last.at is not None else ""
    return (
        f"{OUTCOME_WORDS[last.verdict.outcome]}{age}: {clean_line(interpret(last, queue.as_of, queue).follow_up, 300)}"
    )


def _of_cycle(bead_id: str, queue: Queue) -> Iterator[Statement]:
    """The cycle that a bead is in or waits on, and what would break it."""
    mine = circle_of(queue, bead_id)
    circle = mine or circle_ahead(queue, bead_id)
    if circle is None:
        return
    said = "in a dependency cycle" if mine else "waits on a dependency cycle"
    yield Statement("cycle", f"{said}, and can never start: {circle.path(clean_line)}", circle.ids, "error")
    for cut in circle.cuts[:MAX_CUTS]:
        waiter, needed = clean_line(cut.waiter), clean_line(cut.needed)
        then = f"{waiter} is ready" if cut.frees else f"{waiter} still waits for others"
        said = f"{waiter} no longer waits on {needed}: then {then}"
        yield Statement("break", said, (cut.waiter,), command=f"helix-tui dep remove {waiter} {needed}")


def _blocks(bead: Bead, queue: Queue) -> Statement | None:
    """How many beads wait on it, and which of them closing it makes ready; None if it is closed."""
    if bead.status == "closed":
        return None
    waits, freed = queue.graph.chains.holds_up.get(bead.id, 0), queue.unblocks(bead.id)
    if not waits:
        return Statement("blocks", "nothing", role="muted")
    critical = ", on the critical path" if queue.graph.chains.on_critical_path(bead.id) else ""
    then = f"closing it makes {len(freed):,} ready" if freed else "they wait on others too"
    direct = sum(queue.beads[on].status not in TERMINAL for on in queue.graph.dependents.get(bead.id, ()))
    through = f", {direct:,} of them directly" if direct != waits else ""
    return Statement("blocks", f"{counted(waits, 'bead')}{through}{critical}; {then}", freed)


# --- in a list ----------------------------------------------------------------------------------------------


class Note(Struct, frozen=True):
    """The most important fact about a state in a few words."""

    text: str
    role: str


def note_on(
    bead: Bead, queue: Queue, now: int, *, run: Run | None = None, asked: str = "", brief: bool = False
) -> Note | None:
    """Time left, progress, the model at work, the replacing bead, the question that it waits for; None for nothing.

    Args:
        asked: the id of the open question about it.
        brief: without the model.
    """
    if run is not None:
        return _note_on_run(run, now, brief)
    standing = queue.standing(bead.id)
    state = standing.state
    if asked and state == "ready":
        return Note(f"asks {asked}", "attention")
    if state == "retry_cooldown" and standing.until is not None:
        return Note(f"in {format_span((standing.until - now) / NS)}", "waiting")
    if state == "superseded":
        return Note(f"→ {short_id(clean_line(bead.superseded_by, 60))}", "muted")
    if state == "epic_container" or (looks_like_epic(bead) and queue.graph.children.get(bead.id)):
        done, of = queue.graph.progress(bead.id)
        return Note(f"in focus {done}/{of}", "running") if bead.focus_since else Note(f"{done}/{of}", "muted")
    if state == "unknown_status":
        return Note(clean_line(bead.status, 40), "attention")
    if state == "not_eligible" and bead.focus_epic:
        return Note("held by focus", "muted")
    if STATES[state].worded:
        return Note(STATES[state].sign.word, STATES[state].sign.role)
    if bead.injected and bead.status not in TERMINAL:
        return Note(f"+ {clean_line(bead.injected, 24)}", "edge")
    return None


def _note_on_run(run: Run, now: int, brief: bool) -> Note:
    model = "" if brief else clean_line(run.model or run.harness, 24)
    if run.verdict == "dead":
        return Note(f"{model} dead".strip(), "error")
    if run.verdict == "silent":
        quiet = format_age((now - run.last_event_at) / NS) if run.last_event_at else ""
        return Note(f"silent {quiet}".strip(), "error")
    since = f"{format_span((now - run.started_at) / NS)} " if run.started_at else ""
    return Note(f"{since}{model}".strip() or "running", "running")
