"""The actions of *Needs me*: retry, lessons, snooze, resolving a merge; and the changes to the queue that
only it makes: an answer with its effects, a kept change landed by hand.

A question has a sheet: its whole text, the possible answers and what each does, the evidence below.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.evidence import AttemptEvidence, Diff, read_diff, read_evidence
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import NS
from helix_tui.core.supervision.decide.need_view import HOUR_S, MORNING, Snoozes, next_morning, set_snoozes
from helix_tui.core.supervision.decide.needs import Need, Snooze
from helix_tui.core.supervision.stages.delegate import AgentChoice
from helix_tui.screens.editing.choices import Choice, ChoiceSheet, LineSheet, whom
from helix_tui.screens.editing.confirm import carry_through, kept_changes
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.figures import CHECK_SIGNS
from helix_tui.widgets.text.page import Page

if TYPE_CHECKING:
    from helix_tui.core.editing.execute.gate import WriteGate
    from helix_tui.core.ground.project import Project
    from helix_tui.screens.base import Console

MAX_MODELS = 8

MAX_DIFF_LINES = 400
MAX_TEXT = 4_000
RETRY = "retry: attempt it again as it is described"


class BesideQueue(Struct, frozen=True):
    """One action outside the queue, in a worker thread: do and undo, each returning its result in words."""

    do: Callable[[], str]
    undo: Callable[[], str]


# --- snooze -----------------------------------------------------------------------------------------------


def snooze_sheet(count: int, now: int, until: Callable[[int | None], object]) -> ChoiceSheet:
    """How long some needs are snoozed; None: until they change."""
    whom = "this" if count == 1 else f"{count:,} of these"
    choices = [
        Choice("1", "1", "an hour", "", partial(until, now + HOUR_S * NS)),
        Choice("2", "2", "tomorrow", f"{MORNING}:00", partial(until, next_morning(now))),
        Choice("3", "3", "until it changes", "until the bead, its attempt or the reason changes", partial(until, None)),
    ]
    return ChoiceSheet(f"snooze {whom}", choices)


def snoozing(project: Project, gate: WriteGate, put: Callable[[], Snoozes], said: str) -> BesideQueue:
    """Snooze needs, or bring them back; undo restores each one's previous state.

    Args:
        project: whose needs they are.
        gate: permits writing the list of snoozed needs.
        put: does it, and returns the previous states.
        said: what was done, in words.
    """
    stood: dict[str, Snooze | None] = {}

    def do() -> str:
        stood.update(put())
        return f"{said} · u undoes it"

    def undo() -> str:
        set_snoozes(project, gate, stood)
        return f"undone: {said}"

    return BesideQueue(do, undo)


# --- another attempt --------------------------------------------------------------------------------------


def retry_sheet(console: Console, needs: Sequence[Need], attempts: Iterable[Attempt]) -> ChoiceSheet:
    """Choose the model for another attempt; each choice shows its command, and what came of past ``attempts``."""
    ids = tuple(need.bead_id for need in needs)
    tried = [attempt for attempt in attempts if attempt.model and attempt.finished]
    models = Counter((each.harness, each.model) for each in tried)
    landed = Counter((each.harness, each.model) for each in tried if each.landed)
    controls = console.loop_controls

    def words(who: AgentChoice | None) -> str:
        found = controls.one_bead_words(ids[0], who)
        more = f", then {len(ids) - 1:,} more" if len(ids) > 1 else ""
        return f"{shlex.join(found)}{more}" if found else ""

    def run(who: AgentChoice | None = None) -> Callable[[], None]:
        return partial(carry_through, console, ids, partial(controls.run_beads, ids, who))

    off = "" if words(None) else "this ddx has no command that executes one bead"
    choices = [Choice("0", "0", "the project's default", words(None), run(), off)]
    for place, ((harness, model), count) in enumerate(models.most_common(MAX_MODELS), 1):
        who = AgentChoice(harness, model)
        said = f"{landed[harness, model]:,} of {counted(count, 'attempt')} landed   {words(who)}"
        label = clean_line(f"{harness} {model}", 60)
        choices.append(Choice(str(place), str(place), label, said, run(who), off))

    # April's ddx refuses a model without its harness
    harness = controls.who.harness or next((name for (name, _), _ in models.most_common() if name), "")

    def typed(text: str) -> None:
        if text:
            run(AgentChoice(harness, text))()

    ask = partial(console.push_screen, LineSheet("which model?", "model", typed))
    choices.append(Choice("t", "t", "another model", "type its name", ask, off))
    about = "The bead is attempted once, in the background. This costs money."
    if len(ids) > 1:
        about = f"{len(ids):,} beads are attempted once each, one after the other, in the background. This costs money."
    if kept_changes(console, ids):
        about += " This ddx may land a kept change as it is, without an agent; you will be asked to confirm."
    beads = console.snapshot.queue.beads
    return ChoiceSheet(
        f"which model retries {whom([beads[bead_id] for bead_id in ids if bead_id in beads])}?", choices, about
    )


class ShownAttempt(Struct, frozen=True):
    """The evidence that was read for the attempt."""

    evidence: AttemptEvidence
    diff: Diff


class QuestionSheet(ChoiceSheet):
    """The question and its answers; below them the failed check, the review and the diff, once they are read."""

    FOOTER = ("go.open=choose", "move.down", "move.up", "go.back")

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice],
        about: str,
        *,
        bead: Bead | None = None,
        attempt: Attempt | None = None,
        root: Path | None = None,
    ) -> None:
        """Make a sheet.

        Args:
            title: the question in a few words.
            choices: the answers, each with what it does.
            about: the question in full.
            bead: its bead.
            attempt: its attempt, whose evidence is shown.
            root: the repository that has its diff.
        """
        super().__init__(title, choices, about)
        self._bead, self._attempt, self._root = bead, attempt, root
        self.shown: ShownAttempt | None = None

    def on_mount(self) -> None:
        """Start reading the evidence."""
        super().on_mount()
        if self._attempt is not None and self._root is not None:
            self.run_worker(self._read, thread=True, group="evidence", exclusive=True)

    def _read(self) -> None:
        if self._attempt is None or self._root is None:
            return
        attempt = ShownAttempt(read_evidence(self._attempt, self._bead), read_diff(self._root, self._attempt))
        self.app.call_from_thread(self._take, attempt)

    def _take(self, found: ShownAttempt) -> None:
        self.shown = found
        if not self.has_left:
            self.rewrite()

    def write(self, page: Page) -> None:
        """Question, answers, evidence."""
        if self._bead is not None and (title := clean_line(self._bead.title, 300)):
            page.paragraph([("about ", "muted"), (title, "text bold")], 6)
        super().write(page)
        if self._attempt is not None:
            self._write_attempt(page, self._attempt)

    def _write_attempt(self, page: Page, attempt: Attempt) -> None:
        page.caption("evidence", clean_line(attempt.attempt_id, 60))
        page.paragraph([(clean_line(attempt.verdict.why, 600), "text")])
        if self.shown is None:
            page.line([("… reading the evidence", "waiting")])
            return
        for line in evidence_lines(self.shown):
            page.line(line)


def evidence_lines(shown: ShownAttempt) -> Iterable[Line]:
    """The evidence about a change: checks, the failing ones first, the review, the diff."""
    evidence, diff = shown.evidence, shown.diff
    if evidence.missing:
        yield [(clean_line(evidence.missing, 300), "muted")]
    for check in sorted(evidence.checks, key=lambda check: check.outcome):
        sign, ink = CHECK_SIGNS[check.outcome]
        yield [(f"{sign} ", ink), (check.name, "text"), (f"  {check.message}", "muted")]
    for caption, said in (("review", evidence.review), ("told in its bead", evidence.told)):
        if said:
            yield [(caption, "muted")]
            yield from ([(f"  {line}", "text")] for line in said[:MAX_TEXT].splitlines() if line.strip())
    if diff.warning or diff.error:
        yield [(clean_line(diff.error or diff.warning, 300), "attention")]
    lines = diff.text.splitlines()
    for line in lines[:MAX_DIFF_LINES]:
        yield [(line, _diff_ink(line))]
    if len(lines) > MAX_DIFF_LINES:
        yield [(f"… {counted(len(lines) - MAX_DIFF_LINES, 'more line')}: enter on the row opens the attempt", "muted")]


def _diff_ink(line: str) -> str:
    if line.startswith(("diff ", "+++", "---", "index ")):
        return "muted"
    if line.startswith("@@"):
        return "running"
    return {"+": "success", "-": "error"}.get(line[:1], "text")


def answer_choices(
    options: Sequence[str],
    *,
    answer: Callable[[str], object],
    land: Callable[[], object] | None,
    drop: Callable[[], object] | None,
    edit: Callable[[], object] | None,
    words: Callable[[], object],
) -> list[Choice]:
    """The answers to a question: those that it offers, then the actions on its bead.

    Args:
        answer: records one of the answers.
        land: lands the kept change; None without one.
        drop: gives the kept change up and starts over; None without one.
        edit: opens the bead's texts in the editor; None without a bead.
        words: asks for a typed answer.
    """
    given_up = "; the kept change is given up" if drop is not None else ""
    choices = [
        Choice(str(place), str(place), clean_line(option, 60), "", partial(answer, option))
        for place, option in enumerate(options[:8], 1)
    ]
    if edit is not None:
        retry = f"recorded in the bead as the decision; workers may attempt it again{given_up}"
        choices.append(Choice("r", "r", "retry", retry, partial(answer, RETRY)))
    if land is not None:
        choices.append(Choice("l", "l", "land", "merges the kept change into the branch and closes the bead", land))
    if drop is not None:
        choices.append(Choice("d", "d", "drop", "the kept change stays at its ref; the next attempt starts over", drop))
    if edit is not None:
        choices.append(Choice("e", "e", "edit", "opens the bead's texts in $EDITOR; the question stays open", edit))
    return [*choices, Choice("t", "t", "type an answer", f"the next agent reads it{given_up}", words)]
