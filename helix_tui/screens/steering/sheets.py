"""Sheets of the helm: what comes next and why; the loop, what can be done to it, and the end of its log."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on

from helix_tui.core.opening import read_end
from helix_tui.core.project import machine_name
from helix_tui.core.supervision.bearing import Bearing
from helix_tui.core.supervision.check.verdict import Reason
from helix_tui.core.text import clean_line
from helix_tui.screens.curating.choosing import Choice, ChoiceSheet
from helix_tui.screens.curating.sheet import Sheet
from helix_tui.screens.steering.helm import LEFT_UNDONE, READ_ONLY, Helm
from helix_tui.widgets import figures
from helix_tui.widgets.curation.page import Page
from helix_tui.widgets.lists.line import Span
from helix_tui.widgets.lists.rowlist import RowList

if TYPE_CHECKING:
    from helix_tui.core.live import Change, Snapshot

INKS = {
    "BUILD": "success bold",
    "WAIT": "waiting bold",
    "GUIDANCE": "attention bold",
    "STOP": "muted bold",
}
"""Ink of a NEXT_ACTION; the planning ones are plain."""

WHO = {
    "facts": "decided by the facts alone",
    "prompt": "decided by an agent who looked at the documents",
    "none": "no fact decides, and no agent was asked",
}

LOG_LINES = 200
LOG_BYTES = 32 << 10
LOOK_EVERY = 1.0


class NextSheet(Sheet):
    """NEXT_ACTION with its reasons, what carries it out, and what would change it."""

    FOOTER: ClassVar[tuple[str, ...]] = ("go.open", "copy.id=copy command", "go.back")

    def __init__(self) -> None:
        super().__init__("next action")
        self.bearing = Bearing()

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """The newest answer."""
        self.tick()

    def tick(self) -> None:
        """The answer may be another one."""
        bearing = self.console.bearing
        if bearing is not None and bearing is not self.bearing:
            self.bearing = bearing
            self.rewrite()

    def write(self, page: Page) -> None:
        """Code, reasons, command, condition."""
        verdict = self.bearing.verdict
        if not verdict.next_action:
            page.paragraph([("nothing has been looked at yet", "muted")])
            return
        page.line(
            [
                (verdict.next_action, INKS.get(verdict.next_action, "text bold")),
                (f"  {WHO[verdict.decided_by]}", "muted"),
            ],
            key="verdict",
        )
        self._reasons(page, verdict.reasons, "text")
        if verdict.recommended_command:
            page.paragraph(
                [("run     ", "muted"), (clean_line(verdict.recommended_command, 300), "running")], 8
            )
        if verdict.would_change_if:
            page.paragraph([("until   ", "muted"), (clean_line(verdict.would_change_if, 400), "text")], 8)
        if verdict.next_eligible:
            page.line([("next    ", "muted"), (clean_line(verdict.next_eligible, 40), "text")])
        if verdict.notes:
            page.caption("also")
            self._reasons(page, verdict.notes, "muted")

    def _reasons(self, page: Page, reasons: Iterable[Reason], ink: str) -> None:
        for number, reason in enumerate(reasons):
            spans: list[Span] = [("· ", "muted"), (clean_line(reason.detail, 600), ink)]
            refs = [ref for ref in reason.refs if ref in self.console.snapshot.queue.beads]
            if refs:
                page.line(spans, key=f"bead:{number}:{ink}:{refs[0]}")
            else:
                page.paragraph(spans, 2)

    @on(RowList.Opened)
    def go_there(self, event: RowList.Opened) -> None:
        """To the first bead that a reason names."""
        event.stop()
        if event.key.startswith("bead:"):
            bead_id = event.key.split(":", 3)[3]
            self.dismiss()
            self.console.go_to_bead(bead_id)

    def action_copy_id(self) -> None:
        """The command, to the clipboard."""
        command = clean_line(self.bearing.verdict.recommended_command, 300)
        if command:
            self.console.copy(command, command)


class LoopSheet(ChoiceSheet):
    """The loop: how it stands, what can be done to it, and the end of its log."""

    def __init__(self, bead_id: str) -> None:
        """``bead_id``: the bead under the cursor, that can be carried through alone; may be empty."""
        super().__init__("loop", ())
        self.bearing = Bearing()
        self._bead_id = bead_id
        self._log: tuple[str, ...] = ()

    @property
    def helm(self) -> Helm:
        """What can be done."""
        return self.console.helm

    def on_mount(self) -> None:
        """Follow the log."""
        super().on_mount()
        self.set_interval(LOOK_EVERY, self._look)

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """How it stands now."""
        self.tick()

    def tick(self) -> None:
        """The loop may have gone on."""
        bearing = self.console.bearing
        if not self.choices or (bearing is not None and bearing is not self.bearing):
            self.bearing = bearing or self.bearing
            self.choices = tuple(self._deeds())
            self.rewrite()
            self._look()

    def _workers(self) -> Iterable[int]:
        """Processes of ddx on this machine that HELIX's loop did not start."""
        holder, pending = self.bearing.run.holder, self.bearing.run.state.pending.get("pid")
        ours = {holder.pid if holder is not None else 0, pending}
        for run in self.console.snapshot.runs:
            if run.live and run.pid and run.pid not in ours and run.machine in ("", machine_name()):
                yield run.pid

    def _look(self) -> None:
        log = self.bearing.run.state.log
        if log:
            self.run_worker(partial(self._read, Path(log)), thread=True, group="log", exclusive=True)

    def _read(self, path: Path) -> None:
        lines = tuple(clean_line(line, 300) for line in read_end(path, LOG_BYTES).splitlines()[-LOG_LINES:])
        if lines != self._log:
            self.app.call_from_thread(self._take, lines)

    def _take(self, lines: tuple[str, ...]) -> None:
        self._log = lines
        self.rewrite()

    def _deeds(self) -> list[Choice]:
        helm, run = self.helm, self.bearing.run
        active = run.condition == "active"
        off = READ_ONLY if helm.read_only else ""
        idle = off or ("" if active else "no loop of HELIX runs")
        deeds = [
            Choice(
                "s",
                "s",
                "start",
                "in the background; it outlives the console",
                helm.start,
                off or ("it runs already" if active else ""),
            )
        ]
        if self.bearing.wish:
            deeds.append(Choice("r", "r", "go on", f"takes the {self.bearing.wish} back", helm.resume, idle))
        else:
            deeds.append(Choice("p", "p", "pause", "after the bead in hand", helm.pause, idle))
        deeds += [
            Choice(
                "x",
                "x",
                "stop",
                "after the bead in hand: nothing is lost",
                partial(helm.stop, now=False),
                idle,
            ),
            Choice(
                "X", "X", "stop now", "interrupts ddx and the attempt", partial(helm.stop, now=True), idle
            ),
        ]
        for pid in self._workers():
            words = "a worker of ddx that we did not start; it knows no softer way"
            deeds.append(Choice("", "", f"interrupt {pid}", words, partial(helm.interrupt, pid), off))
        if self._bead_id:
            do = partial(helm.run_one, self._bead_id)
            deeds.append(Choice("o", "o", "only this bead", clean_line(self._bead_id, 80), do, off))
        return deeds

    def write(self, page: Page) -> None:
        """State, deeds, log."""
        run = self.bearing.run
        ink = {"active": "running", "died": "error"}.get(run.condition, "text")
        page.paragraph([(clean_line(run.explanation, 600), ink)])
        state = run.state
        if run.condition != "never":
            said = f"{state.completed_cycles} of {state.attempted_cycles} cycles completed"
            said += f" · {figures.tokens(state.total_tokens or None)} tokens"
            for status, count in state.outcomes.items():
                said += f" · {count} {clean_line(status, 40)}"
            page.paragraph([(said, "muted")])
        if self.bearing.wish:
            page.paragraph([(f"asked to {self.bearing.wish} after the bead in hand", "waiting")])
        page.blank()
        super().write(page)
        page.blank()
        page.paragraph([("s  ", "running"), (shlex.join(self.helm.start_words), "muted")], 3)
        if self._bead_id:
            command = shlex.join(self.helm.one_bead_words(self._bead_id))
            page.paragraph([("o  ", "running"), (command, "muted")], 3)
            page.paragraph([("   ", "muted"), (LEFT_UNDONE[self.helm.era], "muted")], 3)
        if self._log:
            page.caption("log", clean_line(Path(state.log).name, 60))
            for line in self._log:
                page.line([(line, "muted")])
