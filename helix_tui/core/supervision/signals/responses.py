"""HELIX's response to each result of DDx, and its autonomy at each level (low, medium, high): followed by the loop,
printed by ``helix-tui help outcomes|autonomy`` and the docs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, assert_never

from msgspec import Struct

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.interpretation import interpret
from helix_tui.core.ddx.attempts.verdict import found_after_landing
from helix_tui.core.ddx.names import STATUSES, Outcome, status_of
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.supervision.signals.questions import OpenQuestions

Level = Literal["low", "medium", "high"]

LEVELS: tuple[Level, ...] = ("low", "medium", "high")

DEFAULT: Level = "medium"

SHORT: dict[Level, str] = {
    "low": "asks before each dispatch, injection and change",
    "medium": "asks where something is ambiguous, continues with the rest",
    "high": "continues past what can be resolved, with an escalation bead",
}
"""Each level in a few words."""

RULES: tuple[tuple[str, str, str, str], ...] = (
    ("a bead is to be executed", "asks first", "executes", "executes"),
    ("HELIX injects a bead or changes the queue", "asks first", "does it, journalled", "does it, journalled"),
    ("a planning pass is due (DESIGN, POLISH, ALIGN)", "asks first", "runs it once", "runs it once"),
    (
        "an attempt was kept aside, was refused, or ended with an unknown status",
        "asks, and stops",
        "asks, keeps workers from that bead, continues with the others",
        "files an escalation bead with its assumption, continues without that bead",
    ),
    (
        "open beads name a superseded document, or documents of different rank supersede each other",
        "asks, continues with the replacing or higher-ranked one",
        "asks, continues with the replacing or higher-ranked one",
        "files an escalation bead, continues with the replacing or higher-ranked one",
    ),
    (
        "a document that beads name or other documents depend on is missing",
        "names it, skips its beads",
        "names it, skips its beads",
        "files a bead for the gap, lets its beads wait for it, continues with the others",
    ),
    ("two documents of equal rank supersede each other (physics-level)", "stops", "stops", "stops"),
    ("an agent declines a bead because it contradicts itself", "stops", "stops", "stops"),
    ("NEXT_ACTION is BACKFILL, WAIT, GUIDANCE or STOP", "stops", "stops", "stops"),
)
"""Event, and HELIX's response at low, medium and high; printed by `helix-tui help autonomy` and the docs."""

RESPONSES: dict[Response, str] = {
    "count": (
        "A completed cycle, where the work landed and the bead is closed: a review is injected, acceptance scripts "
        "run, a bead that grew two children becomes an epic."
    ),
    "nothing": "No cycle and no review: it was done already, or it landed under another word. The run continues.",
    "later": (
        "No cycle. DDx sets its own cooldown; a bead that stays ready is skipped by this run until its record changes. "
        "If the reason says that the bead contradicts itself, the run stops."
    ),
    "again": "No cycle. DDx makes the next attempt itself, with the feedback it got. The run continues.",
    "polish": "No cycle. The run names `helix-tui polish ID` and skips the bead.",
    "ask": (
        "No cycle. Low and medium ask and keep workers from the bead; medium continues with the others. High files an "
        "escalation bead and continues without it."
    ),
}
"""The responses in words."""

UNKNOWN_STATUS = "any other word"
"""The table's name for an unknown status."""


def level_of(word: str) -> Level | None:
    """The level of a word, or None."""
    return next((level for level in LEVELS if level == word), None)


GuardedAction = Literal["dispatch", "injection", "curation", "stage"]
"""Actions that need approval at level low."""


class ApprovalNeeded(HelixError):
    """A person must approve first; the question is in *Needs me*."""

    def __init__(self, question_id: str, text: str, refused: bool = False) -> None:
        super().__init__(text)
        self.question_id = question_id
        self.refused = refused


class Autonomy(Struct):
    """What one run may do by itself.

    Attributes:
        confirm: asks the person at the terminal; None if there is none, and the question is recorded.
    """

    level: Level
    questions: OpenQuestions
    run_id: str = ""
    confirm: Callable[[str], bool] | None = None

    @property
    def escalates(self) -> bool:
        """Whether a resolvable conflict is passed with an escalation bead instead of a question."""
        return self.level == "high"

    def permit(self, action: GuardedAction, about: str, text: str, *, lasting: bool = False) -> None:
        """Continue, or ask first.

        Args:
            about: identifies the action: an answer for one does not apply to another.
            lasting: one approval covers every repetition of the same action.

        Raises:
            ApprovalNeeded: it is not approved, or was refused.
        """
        if self.level != "low":
            return
        if self.confirm is not None:
            if self.confirm(text):
                return
            raise ApprovalNeeded("", text, refused=True)
        key = f"approval:{action}:{about}"
        # an approval is used up by one step (decision 0011); a lasting one is found again by its key
        given = self.questions.take_approval(key)
        if given is None and lasting:
            given = self.questions.approved_before(key) or None
        if given:
            return
        if given is False:
            raise ApprovalNeeded("", text, refused=True)
        question = self.questions.ask("approval", text, key=key, options=("yes", "no"), run_id=self.run_id)
        raise ApprovalNeeded(question.id, text)


Response = Literal["count", "nothing", "later", "again", "polish", "ask"]


def respond(status: str, outcome: Outcome, *, faulted: bool = False) -> Response:
    """HELIX's response to an attempt.

    Args:
        status: DDx's word.
        outcome: its outcome, by the verdict.
        faulted: whether a review or a push failed after landing.
    """
    landed = outcome == "landed" and not faulted
    known = status_of(status)
    # before "ask": what ddx retries by itself waits for nobody (docs/formats/helix.md §4)
    if known.retried and not landed:
        return "again"
    if not known.known or faulted:
        return "ask"
    response: Response
    match outcome:
        case "kept_aside" | "refused" | "unknown":
            response = "ask"
        case "landed":
            response = "count" if status == "success" else "nothing"  # no other word counts a cycle (CONTRACT-001)
        case "satisfied":
            response = "nothing"
        case "no_change" | "failed" | "interrupted" | "unfinished":
            response = "polish" if status == "structural_validation_failed" else "later"
        case never:
            assert_never(never)
    return response


def response_to(attempt: Attempt) -> Response:
    """HELIX's response to an attempt, by its verdict."""
    return respond(attempt.status, attempt.verdict.outcome, faulted=attempt.faulted)


def table() -> list[tuple[str, str, Response, str]]:
    """(status, meaning, HELIX's response, a person's next step) of each status, by its word alone."""
    rows = []
    for word in (*STATUSES, UNKNOWN_STATUS):
        status = status_of(word)
        faulted = status.outcome == "landed" and found_after_landing(word)
        reading = interpret(Attempt(attempt_id="", status=word, status_source="event"), 0)
        rows.append((word, status.meaning, respond(word, status.outcome, faulted=faulted), reading.follow_up))
    return rows
