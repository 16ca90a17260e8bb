"""A question where it stands: its whole text, what can be answered and what each answer does, the evidence below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.evidence import AttemptEvidence, Diff, read_diff, read_evidence
from helix_tui.core.ground.text import clean_line
from helix_tui.screens.editing.choices import Choice, ChoiceSheet
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.form import Page

MAX_DIFF_LINES = 400
MAX_TEXT = 4_000
RETRY = "retry: attempt it again as it is described"


class ShownAttempt(Struct, frozen=True):
    """What was read of the attempt in question."""

    evidence: AttemptEvidence
    diff: Diff


class QuestionSheet(ChoiceSheet):
    """The question and its answers; under them the check that failed, the review and the diff, once they are read."""

    FOOTER = ("go.open=choose", "move.down", "move.up", "go.back")

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice],
        about: str,
        *,
        bead_title: str = "",
        attempt: Attempt | None = None,
        root: Path | None = None,
    ) -> None:
        """Make a sheet.

        Args:
            title: what is asked, in a few words.
            choices: the answers, each with what it does.
            about: the question in full.
            bead_title: of the bead that it is about.
            attempt: the attempt that it is about; its evidence is shown.
            root: the repository that has its diff.
        """
        super().__init__(title, choices, about)
        self._bead_title, self._attempt, self._root = bead_title, attempt, root
        self.shown: ShownAttempt | None = None

    def on_mount(self) -> None:
        """Begin to read the evidence."""
        super().on_mount()
        if self._attempt is not None and self._root is not None:
            self.run_worker(self._read, thread=True, group="evidence", exclusive=True)

    def _read(self) -> None:
        if self._attempt is None or self._root is None:
            return
        found = ShownAttempt(read_evidence(self._attempt), read_diff(self._root, self._attempt))
        self.app.call_from_thread(self._take, found)

    def _take(self, found: ShownAttempt) -> None:
        self.shown = found
        if not self.has_left:
            self.rewrite()

    def write(self, page: Page) -> None:
        """Question, answers, evidence."""
        if self._bead_title:
            page.paragraph([("about ", "muted"), (self._bead_title, "text bold")], 6)
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
    """What speaks for and against a change: checks, the failing ones first, the review, the diff."""
    evidence, diff = shown.evidence, shown.diff
    if evidence.missing:
        yield [(clean_line(evidence.missing, 300), "muted")]
    for check in sorted(evidence.checks, key=lambda check: check.passed):
        sign, ink = ("✓", "success") if check.passed else ("✗", "error bold")
        yield [(f"{sign} ", ink), (check.name, "text"), (f"  {check.message}", "muted")]
    if evidence.review:
        yield [("review", "muted")]
        yield from ([(f"  {line}", "text")] for line in evidence.review[:MAX_TEXT].splitlines() if line.strip())
    if diff.warning or diff.error:
        yield [(clean_line(diff.error or diff.warning, 300), "attention")]
    lines = diff.text.splitlines()
    for line in lines[:MAX_DIFF_LINES]:
        yield [(line, _diff_ink(line))]
    if len(lines) > MAX_DIFF_LINES:
        yield [(f"… {len(lines) - MAX_DIFF_LINES:,} more lines: enter on the row opens the attempt", "muted")]


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
    """The answers to a question: those that it offers, then what can be done with the bead that it is about.

    Args:
        answer: records one of the answers.
        land: lands the kept change; None where there is none.
        drop: leaves it aside and begins afresh; None where there is none.
        edit: opens the bead's texts in the editor; None where it is about no bead.
        words: asks for an answer in words.
    """
    given_up = "; the kept change is given up" if drop is not None else ""
    choices = [
        Choice(str(place), str(place), clean_line(option, 60), "", partial(answer, option))
        for place, option in enumerate(options[:8], 1)
    ]
    if edit is not None:
        retry = f"written into the bead as the decision; workers may attempt it again{given_up}"
        choices.append(Choice("r", "r", "retry", retry, partial(answer, RETRY)))
    if land is not None:
        choices.append(Choice("l", "l", "land", "merges the kept change into the branch and closes the bead", land))
    if drop is not None:
        choices.append(Choice("d", "d", "drop", "the kept change stays at its ref; the next attempt starts over", drop))
    if edit is not None:
        choices.append(Choice("e", "e", "edit", "opens the bead's texts in $EDITOR; the question stays open", edit))
    return [*choices, Choice("t", "t", "type an answer", f"written where the next agent reads it{given_up}", words)]
