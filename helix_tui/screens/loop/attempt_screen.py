"""One attempt, in tabs: evidence, diff, transcript, prompt, raw, compare.

The open tab reads in threads what it needs (the ``load_`` functions), and says in words what is missing. Moving on
cancels earlier requests; nothing is read for a tab that was not opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace
from textual import on
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.comparison import compare, previous_attempt
from helix_tui.core.ddx.attempts.evidence import AttemptEvidence, Diff, EvidenceFile, read_diff, read_evidence
from helix_tui.core.ddx.files import MAX_POLL
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ddx.runs.transcript import TranscriptTail, transcript_folders
from helix_tui.core.ddx.runs.transcript_events import Event
from helix_tui.core.ground.files import read_bytes
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.screens.background import JobHost
from helix_tui.screens.external_editor import GIT_SECONDS, page_at, page_text
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.chrome.header import PaneTabs
from helix_tui.widgets.text.attempt_evidence import (
    AttemptSubject,
    ComparisonFacts,
    ComparisonPane,
    EvidencePane,
    SubjectLine,
    short_name,
)
from helix_tui.widgets.text.diff import DiffFiles, DiffPane, painted
from helix_tui.widgets.text.diff_lines import DiffFacts, parse_diff
from helix_tui.widgets.text.pane import Para, TextPane
from helix_tui.widgets.text.prompt import PromptPane
from helix_tui.widgets.text.transcript import RawPane, Script, TranscriptPane, size_of

FILE_CAP = 512 << 10
LONG_LINE = 4_000
_MAX_POLLS = 32

ALIKE = "Both attempts produced the same files."
TABS = ("evidence", "diff", "transcript", "prompt", "raw", "compare")

_NEEDS: Mapping[str, tuple[str, ...]] = {
    "evidence": ("evidence", "diff"),
    "diff": ("diff",),
    "transcript": ("transcript",),
    "prompt": ("evidence",),
    "raw": ("evidence",),
    "compare": ("compare",),
}
"""The key of what a tab has to read."""

FILES_BESIDE = 110
"""The width from which the files of a diff are listed beside it."""

LOOK_SECONDS = 0.6

LINGER = 6
"""How often a transcript is read again after its run ended: the last lines arrive when the file is moved."""


def load_evidence(attempt: Attempt, run: Run | None, bead: Bead | None) -> AttemptEvidence:
    """The contents of an attempt's evidence folder, which may exist only in its work tree while it runs."""
    if run is not None and run.worktree is not None and attempt.attempt_id:
        own = run.worktree / ".ddx" / "executions" / attempt.attempt_id
        # the project's folder counts as soon as it exists
        if (attempt.bundle is None or not attempt.bundle.is_dir()) and own.is_dir():
            attempt = replace(attempt, bundle=own)
    evidence = read_evidence(attempt, bead)
    if evidence.missing and run is not None and run.live:
        return replace(evidence, missing="It has no evidence folder yet: DDx makes one when the agent starts.")
    return evidence


def load_diff(project: Project, attempt: Attempt, *, running: bool) -> DiffFacts:
    """What an attempt changed, and notes to read first."""
    if running and not attempt.result_rev:
        return DiffFacts(before=(("It is still running: its changes are known when it ends.", "muted"),))
    diff = read_diff(project.root, attempt, timeout=GIT_SECONDS)
    base = clean_line(attempt.base_rev, 80)
    result = clean_line(attempt.result_rev or attempt.landed_rev, 80)
    command = f"git diff {base[:12]} {result[:12]}" if base and result else ""
    return DiffFacts(painted(parse_diff(diff.text)), tuple(_sentences(diff, command)), command, diff.text)


def load_comparison(project: Project, earlier: Attempt, later: Attempt, now: int) -> ComparisonFacts:
    """Two attempts, their files, and the difference of their results."""
    found = compare(project.root, earlier, later, timeout=GIT_SECONDS)
    sentences = list(_sentences(found.between, "")) or ([] if found.between.text else [(ALIKE, "muted")])
    between = DiffFacts(painted(parse_diff(found.between.text)), tuple(sentences), "", found.between.text)
    return ComparisonFacts(found, parse_diff(found.earlier.diff.text), parse_diff(found.later.diff.text), between, now)


def _sentences(diff: Diff, command: str) -> Iterable[tuple[str, str]]:
    if diff.error:
        yield f"No diff: {diff.error}.", "muted"
    if diff.warning:
        yield f"◆ {diff.warning}", "attention"
    for merge in diff.merges:
        yield f"landed through merge {merge}", "waiting"
    if diff.truncated:
        yield f"Only the beginning is shown; {command} shows all.", "attention"


def load_transcript(folders: Sequence[Path]) -> tuple[TranscriptTail, Script]:
    """All events of an attempt so far, and the tail that reads later ones."""
    tail, script = TranscriptTail(folders), Script()
    for _ in range(_MAX_POLLS):
        script.add(read_appended(tail))
        if not tail.behind:
            break
    return tail, script


def read_appended(tail: TranscriptTail) -> list[Event]:
    """What has been written since the last look; lines too long to read are counted."""
    before = tail.skipped
    events = tail.poll()
    left_out = tail.skipped - before
    if left_out:
        lines = counted(left_out, "line")
        said = f"{lines} of more than {size_of(MAX_POLL)} not shown, see {tail.path}"
        events.append(Event(None, "error", summary=clean_line(said, 300)))
    return events


def load_file(file: EvidenceFile) -> list[str]:
    """The lines of one evidence file, JSON indented; a message if it cannot be shown."""
    # one byte more than is shown reveals that there is more
    raw = read_bytes(file.path, FILE_CAP + 1)
    if raw is None:
        return ["It cannot be read: it is gone or not a regular file."]
    if b"\0" in raw[:4096]:
        return [f"Binary, {size_of(file.size)}; not shown."]
    # a truncated document cannot be indented
    if file.name.endswith(".json") and len(raw) <= FILE_CAP:
        raw = _indented(raw)
    lines = clean_block(raw[:FILE_CAP].decode("utf-8", "replace"), FILE_CAP).rstrip("\n").split("\n")
    shown = [_short(line) for line in lines]
    if len(raw) > FILE_CAP and file.size > FILE_CAP:
        shown.append(f"… {size_of(file.size - FILE_CAP)} more in {clean_line(str(file.path), 300)}")
    return shown


def _indented(raw: bytes) -> bytes:
    try:
        return msgspec.json.format(raw, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return raw


def _short(line: str) -> str:
    return line if len(line) <= LONG_LINE else f"{line[:LONG_LINE]}… {counted(len(line) - LONG_LINE, 'more character')}"


def no_transcript(attempt: Attempt, folders: Sequence[Path], *, running: bool) -> list[Para]:
    """What is shown instead of a transcript."""
    if not attempt.attempt_id:
        said, why = "No attempt yet.", "The worker is claiming a bead or between beads."
    elif running:
        said, why = "No lines yet.", "They appear here as the agent writes them."
    else:
        said = "No transcript here."
        why = "DDx keeps transcripts on the machine that ran the attempt; the other tabs have what is left."
    note = [Para("none", ((said, "text bold"),)), Para("none 2", ((why, "muted"),))]
    # while it runs the lines are about to come; where they were looked for matters only once they are missing
    for number, folder in enumerate(() if running else folders):
        lead = "looked in  " if not number else "           "
        note.append(Para(f"looked {number}", ((lead + clean_line(str(folder), 300), "muted"),), hang=11))
    return note


class AttemptView(JobHost, Vertical):
    """The tabs of one attempt."""

    DEFAULT_CSS = "AttemptView { height: 1fr; width: 1fr; background: $helix-ground; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.title_line = SubjectLine(id="attempt-title")
        self.tabs = PaneTabs(TABS)
        self.evidence = EvidencePane(id="evidence")
        self.diff = DiffPane(id="diff")
        self.files = DiffFiles(id="diff-files")
        # shown by a diff of several files: hidden later, it would have the whole screen laid out once more
        self.files.display = False
        self.diff_and_files = Horizontal(self.files, Vertical(self.diff, id="diff-beside"), id="diff-and-files")
        self.transcript = TranscriptPane(id="transcript")
        self.prompt = PromptPane(id="prompt")
        self.raw = RawPane(id="raw")
        self.comparison = ComparisonPane(id="compare")
        self._beside: Attempt | None = None
        """The marked attempt to compare with; if none, the previous one on the same bead."""
        self.current = "evidence"
        self._chosen = False
        """Whether the user chose a tab; before that, a running attempt opens on its transcript."""
        self.project: Project | None = None
        self._subject: AttemptSubject | None = None
        self._asked: set[str] = set()
        self._tail: TranscriptTail | None = None
        self._linger = 0
        self._painted: dict[str, object] = {}
        self._raw_of = ""

    def compose(self) -> ComposeResult:
        """The attempt's title when the list is not in view; the tab line; the panes, of which one shows."""
        yield self.title_line
        yield self.tabs
        yield self.diff_and_files
        yield from (pane for pane in self._panes().values() if pane is not self.diff)

    def on_mount(self) -> None:
        """Show only the open tab; read a live transcript repeatedly."""
        self._show_current()
        self.set_interval(LOOK_SECONDS, self.look)

    def _panes(self) -> dict[str, RowList]:
        return {
            "evidence": self.evidence,
            "diff": self.diff,
            "transcript": self.transcript,
            "prompt": self.prompt,
            "raw": self.raw,
            "compare": self.comparison,
        }

    @property
    def pane(self) -> RowList:
        """The pane of the open tab."""
        return self._panes()[self.current]

    @property
    def subject(self) -> AttemptSubject | None:
        """The attempt that is shown."""
        return self._subject

    # --- contents -----------------------------------------------------------------------------------------

    def show(self, project: Project, subject: AttemptSubject | None) -> None:
        """Show an attempt, or a newer state of the one that is shown."""
        self.project = project
        old = self._subject
        if subject is None or old is None or subject.key != old.key:
            self._let_go()
        else:
            if subject.attempt != old.attempt or subject.running != old.running:
                self._asked -= {
                    "evidence",
                    "diff",
                    "compare",
                }  # the old state stays on screen until the new one is read
            if old.running and not subject.running:
                self._linger = LINGER
            subject = replace(subject, evidence=old.evidence, diff=old.diff, trouble=old.trouble)
        self._subject = subject
        if subject is not None and not self._chosen and (old is None or subject.key != old.key):
            self._open("transcript" if subject.running else "evidence")
        self._paint()
        self._ask()
        self.look()

    def _let_go(self) -> None:
        for kind in ("evidence", "diff", "transcript", "compare"):
            self._jobs.drop(kind)
        self._asked.clear()
        self._painted.clear()
        self._tail, self._linger = None, 0

    def open_tab(self, name: str) -> None:
        """Open the tab that the user chose; other attempts are shown in it too."""
        self._chosen = True
        self._open(name)
        self._paint()
        self._ask()
        self.look()

    def _open(self, name: str) -> None:
        """Show another tab; the focus follows if it was here."""
        focused = self.screen.focused in self._panes().values()
        self.current = name
        self.diff_and_files.display = name == "diff"
        # a hidden pane takes no focus
        self.pane.display = True
        if focused:
            self.screen.set_focus(
                self.pane, scroll_visible=False
            )  # at once: the next key may come before the next refresh
        self._show_current()

    def turn(self, step: int) -> None:
        """Go to the next or previous tab."""
        self.open_tab(TABS[(TABS.index(self.current) + step) % len(TABS)])

    @on(PaneTabs.Pressed)
    def _press(self, event: PaneTabs.Pressed) -> None:
        event.stop()
        self.open_tab(event.name)

    # --- the cursor's place, for editor and pager ---------------------------------------------------------

    def place(self) -> tuple[Path, int] | None:
        """The file and line number under the cursor; None if the line belongs to no file."""
        subject, project = self._subject, self.project
        if subject is None or project is None:
            return None
        if self.current == "diff" and (here := self.diff.here or self.diff.top) is not None:
            return project.root / self.diff.facts.files[here[0]].path, here[1]
        if self.current == "transcript" and self._tail is not None and self._tail.path is not None:
            return self._tail.path, 1
        if self.current == "prompt" and subject.evidence is not None:
            file = next((file for file in subject.evidence.files if file.name == "prompt.md"), None)
            return (file.path, 1) if file is not None else None
        if self.current == "raw":
            return self.raw.place
        return None

    def page(self) -> str:
        """Show the open tab's content in the pager; an error message if that fails."""
        app: App[object] = self.app
        if self.current == "diff" and self.diff.facts.text:
            return page_text(app, self.diff.facts.text, ".diff")
        place = self.place()
        return page_at(app, *place) if place is not None else "nothing here can be shown in a pager"

    @on(RowList.Selected)
    def _say_file(self, event: RowList.Selected) -> None:
        """Keep the diff and its list of files together: follow the cursor, go to a chosen file."""
        # each follows the other; only the one with the focus leads, else they would answer each other forever
        if event.rows is self.diff:
            self.say_tabs()
            if self.diff.here is not None and not self.files.has_focus:
                self.files.point_at(self.diff.here[0])
        elif event.rows is self.files and self.files.has_focus and self.files.number is not None:
            self.diff.go_to_file(self.files.number)

    @on(RowList.Opened)
    def _read_chosen_file(self, event: RowList.Opened) -> None:
        if event.rows is self.files:
            event.stop()
            self.diff.focus(scroll_visible=False)

    def _place_files(self) -> None:
        """Put the list of files beside the diff if both have room, else above it."""
        beside = len(self.diff.facts.files) > 1 and self.size.width >= FILES_BESIDE
        self.files.display = beside
        self.diff_and_files.set_class(beside, "-listed")
        if beside:
            self.files.styles.width = min(44, max(26, self.size.width // 5))
        self.files.show_files(self.diff.facts.files)
        if self.diff.listed is beside:
            self.diff.listed = not beside
            self.diff.rebuild()

    @on(EvidencePane.Followed)
    def _follow_to_diff(self, event: EvidencePane.Followed) -> None:
        if event.kind == "diff":
            event.stop()
            self.open_tab("diff")
            self.diff.select(f"{event.name}\n0")

    def on_resize(self) -> None:
        """Draw a pane that was hidden before."""
        self._place_files()
        self._paint()
        self._ask()

    def _show_current(self) -> None:
        for name, pane in self._panes().items():
            pane.display = name == self.current
        self.diff_and_files.display = self.current == "diff"
        self.say_tabs()

    def say_tabs(self) -> None:
        """Show on the tab line which attempt it is, or that its transcript is followed."""
        note = ""
        if self._subject is not None:
            follows = self.current == "transcript" and self.transcript.following and self._subject.running
            note = "follows" if follows else short_name(self._subject.attempt)
            if self.current == "diff":
                note = self.diff.where or note
        self.tabs.show(self.current, note)

    @property
    def _visible(self) -> bool:
        return bool(self.size.width) and self.screen.is_current

    # --- reading ------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Request what the open tab needs, unless it was requested already."""
        subject, project = self._subject, self.project
        if subject is None or project is None or not subject.attempt.attempt_id or not self._visible:
            return
        for kind in _NEEDS[self.current]:
            if kind in self._asked:
                continue
            # before it arrives: updates of the attempt come while it is still being read
            self._asked.add(kind)
            failed = partial(self._show_failure, kind)
            attempt = subject.attempt
            if kind == "evidence":
                bead = (subject.beads or {}).get(attempt.bead_id)
                self._jobs.start(kind, partial(load_evidence, attempt, subject.run, bead), self._take_evidence, failed)
            elif kind == "diff":
                work = partial(load_diff, project, attempt, running=subject.running)
                self._jobs.start(kind, work, self._take_diff, failed)
            elif kind == "compare":
                self._ask_to_compare(project, subject, failed)
            else:
                self._jobs.start(kind, partial(load_transcript, self._folders()), self._take_transcript, failed)

    def _folders(self) -> Sequence[Path]:
        """The folders where the attempt's transcripts may be."""
        subject, project = self._subject, self.project
        if subject is None or project is None or not subject.attempt.attempt_id:
            return ()
        own = subject.run.folders if subject.run is not None else ()
        kept = transcript_folders(project.records_dir, subject.attempt.attempt_id, None)
        return tuple(dict.fromkeys((*own, *kept)))

    def _show_failure(self, kind: str, why: str) -> None:
        if self._subject is not None:
            trouble = f"the {kind} cannot be read ({why}); leave the attempt and come back to try again"
            self._subject = replace(self._subject, trouble=trouble)
            if kind == "compare":
                self.comparison.show_comparison(None, [Para("trouble", ((clean_line(trouble, 600), "error"),))])
            self._painted.clear()
            self._paint()

    def _take_evidence(self, evidence: AttemptEvidence) -> None:
        if self._subject is not None:
            self._subject = replace(self._subject, evidence=evidence, trouble="")
            self._paint()

    def compare_with(self, attempt: Attempt | None) -> None:
        """Compare with this attempt from now on; None: with the previous one on the same bead."""
        self._beside = attempt
        self._asked.discard("compare")
        self._ask()

    def _ask_to_compare(self, project: Project, subject: AttemptSubject, failed: Callable[[str], None]) -> None:
        attempt, marked = subject.attempt, self._beside
        other = marked if marked is not None and marked.attempt_id != attempt.attempt_id else None
        other = other or previous_attempt(attempt, tuple(subject.siblings))
        if other is None:
            said = "No earlier attempt on this bead. space in the list marks one to compare with."
            self.comparison.show_comparison(None, [Para("none", ((said, "muted"),))])
            return
        self.comparison.show_comparison(None, [Para("waits", (("comparing …", "muted"),))])
        # the earlier one on the left, whichever of them was marked
        pair = sorted((other, attempt), key=lambda each: each.started_at or each.finished_at or 0)
        work = partial(load_comparison, project, pair[0], pair[1], subject.now)
        self._jobs.start("compare", work, self.comparison.show_comparison, failed)

    def _take_diff(self, diff: DiffFacts) -> None:
        if self._subject is not None:
            self._subject = replace(self._subject, diff=diff)
            self._paint()

    def _take_transcript(self, found: tuple[TranscriptTail, Script]) -> None:
        self._tail, script = found
        running = self._subject is not None and self._subject.running
        self.transcript.take(script, follow=running)
        self._painted["transcript"] = script
        self._paint()
        self.look()

    def look(self) -> None:
        """Check whether the transcript of a running attempt has grown."""
        subject, tail = self._subject, self._tail
        if subject is None or tail is None or self.current != "transcript" or not self._visible:
            return
        # one look at a time: two would read the same tail
        if not (subject.running or self._linger) or self._jobs.busy("transcript"):
            return
        self._linger = max(0, self._linger - 1)
        tail.watch(self._folders())
        failed = partial(self._show_failure, "transcript")
        self._jobs.start("transcript", partial(read_appended, tail), self.transcript.add, failed)

    # --- painting -----------------------------------------------------------------------------------------

    def _paint(self) -> None:
        """Show what is known by now in the open tab, if it has changed."""
        self.say_tabs()
        self.title_line.show(self._subject)
        subject = self._subject
        if subject is None:
            self._paint_nothing()
        elif self.current == "evidence":
            other = self._is_new("evidence", subject.key)
            self.evidence.show_subject(subject, other=other)
        elif self.current == "diff":
            self._paint_diff(subject)
        elif self.current == "transcript":
            self._paint_transcript(subject)
        elif self.current == "compare":
            return  # `_ask_to_compare` shows what it reads
        else:
            self._paint_files(subject, subject.evidence)

    def _is_new(self, tab: str, shown: object) -> bool:
        """Whether a tab's content has changed; it is recorded as shown."""
        before = self._painted.get(tab)
        self._painted[tab] = shown
        return before is not shown and before != shown

    def _paint_nothing(self) -> None:
        if self._is_new(self.current, "nothing"):
            note = [Para("none", (("No attempt is selected.", "muted"),))]
            if isinstance(self.pane, TranscriptPane):
                self.pane.clear(note)
            elif isinstance(self.pane, TextPane):
                self.pane.read(note)

    def _paint_diff(self, subject: AttemptSubject) -> None:
        words = subject.trouble or ("reading the diff …" if subject.attempt.attempt_id else "No attempt yet.")
        waits = DiffFacts(before=((words, "muted"),))
        diff = subject.diff or waits
        if self._is_new("diff", diff):
            self.diff.show_diff(diff)
            self._place_files()

    def _paint_transcript(self, subject: AttemptSubject) -> None:
        if not subject.attempt.attempt_id:
            if self._is_new("transcript", subject.key):
                self.transcript.clear(no_transcript(subject.attempt, (), running=True))
        elif self._tail is None:
            words = subject.trouble or "reading the transcript …"
            if self._is_new("transcript", (subject.key, words)):
                self.transcript.clear([Para("waits", ((words, "muted"),))], follow=subject.running)
        else:
            note = no_transcript(subject.attempt, self._folders(), running=subject.running)
            self.transcript.say(note)

    def _paint_files(self, subject: AttemptSubject, evidence: AttemptEvidence | None) -> None:
        reading = "reading its evidence …" if subject.attempt.attempt_id else "No attempt yet."
        words = subject.trouble or reading
        if evidence is not None:
            words = evidence.missing or f"There is no {self.current} in its evidence."
        note = [Para("none", ((words, "muted"),))]
        new = self._is_new(self.current, evidence if evidence is not None else words)
        if new and self.current == "prompt":
            text = evidence.prompt if evidence is not None else ""
            self.prompt.show_prompt(text, note)
        elif new:
            other = self._raw_of != subject.key
            self._raw_of = subject.key
            self.raw.show_files(evidence.files if evidence is not None else (), note, other=other)

    @on(RawPane.Wanted)
    def _read_file(self, event: RawPane.Wanted) -> None:
        event.stop()
        name, give = event.file.name, self.raw.give
        self._jobs.start(
            f"file {name}",
            partial(load_file, event.file),
            lambda lines: give(name, lines),
            lambda why: give(name, [f"It cannot be read: {why}."]),
        )
