"""Needs me: one ranked list of what waits on a person, each with its reason and what waits on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.gate import WritesForbidden
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.core.supervision.signals.hold import drifted, stale
from helix_tui.keymap import bindings
from helix_tui.screens.editing.choices import Choice, ChoiceSheet, LineSheet
from helix_tui.screens.editing.preview_sheet import PreviewSheet
from helix_tui.screens.editing.requests import ChangeRequest, DriftRequest, RecoveryRequest, request_for, upkeep
from helix_tui.screens.sheet import OverlayScreen
from helix_tui.screens.status_bar_model import counts_of
from helix_tui.widgets.base.line import Line, Span, spread, wrap_spans
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Row, Rows, RowSource

if TYPE_CHECKING:
    from helix_tui.core.beads.readiness import Queue
    from helix_tui.core.snapshot import Change, Snapshot
    from helix_tui.core.supervision.signals.orphans import Orphan

WORDS = {
    "physics-level": ("!", "error bold", "contradiction"),
    "guidance": ("?", "attention bold", "guidance"),
    "approval": ("?", "attention bold", "approve"),
    "conflict": ("◆", "attention bold", "conflict"),
    "ambiguous": ("◆", "attention bold", "ambiguous"),
    "escalation": ("◆", "attention bold", "escalation"),
    "clarification": ("?", "attention bold", "clarify"),
    "gap": ("?", "attention", "gap"),
    "worker_stopped": ("!", "error bold", "stopped"),
    "dead_run": ("!", "error bold", "dead worker"),
    "silent_run": ("!", "error bold", "silent worker"),
    "orphaned_claim": ("!", "error bold", "orphaned"),
    "drift": ("◆", "attention bold", "drift"),
    "tried": ("✗", "error", "tried"),
    "focus": ("◆", "attention bold", "focus"),
    "proposed": ("◆", "attention bold", "proposed"),
    "preserved_review_blocked": ("◆", "attention bold", "review"),
    "refused": ("◆", "attention bold", "refused"),
    "kept_aside": ("◆", "attention bold", "kept aside"),
    "cycle": ("↻", "error", "circle"),
    "archived_dependency": ("?", "error", "archived"),
    "missing_dependency": ("?", "error", "missing"),
    "cancelled_dependency": ("✗", "error", "cancelled"),
    "unknown_status": ("?", "attention bold", "unknown"),
    "unread_lines": ("?", "attention bold", "unread"),
}
"""Sign, ink and word of each kind of need; a new kind shows by its own name."""

DEEDS = {
    "escalation": "decide",
    "gap": "decide",
    "drift": "acknowledge",
    "focus": "keep the focus",
    "orphaned_claim": "release the claim",
    "dead_run": "release the claim",
    "archived_dependency": "remove the dependency",
}
"""What the one key does about a kind of need."""

REASON_SHARE = 3
"""The reason of the selected row takes at most one part of so many of the screen, below the list."""

REASON_LEAST = 90
"""Cells from which every row says its reason behind its title."""

_KIND_CELLS = 14


class NeedRows(RowSource):
    """Needs as rows of one line; the selected one says on a second line what can be done about it."""

    def __init__(self, needs: tuple[Need, ...], queue: Queue, deed_of: Callable[[Need], str]) -> None:
        self.needs = needs
        self._queue = queue
        self._deed_of = deed_of
        self._places = {need.key: place for place, need in enumerate(needs)}

    def __len__(self) -> int:
        return len(self.needs)

    def key(self, index: int) -> str:
        return self.needs[index].key

    def index(self, key: str) -> int | None:
        return self._places.get(key)

    def text(self, index: int) -> str:
        need = self.needs[index]
        return f"{need.bead_id} {need.reason}"

    def paint(self, index: int, width: int) -> Line:
        return spread(*self._sides(self.needs[index], width), width)

    def _sides(self, need: Need, width: int) -> tuple[list[Span], list[Span]]:
        glyph, ink, word = WORDS.get(need.kind, ("◆", "attention bold", need.kind))
        bead = self._queue.beads.get(need.bead_id)
        title = clean_line(bead.title if bead is not None else called_of(need), 300)
        left: list[Span] = [(f"{glyph} ", ink)]
        if width >= 60:
            left.append((f"{word} ".ljust(_KIND_CELLS), ink.removesuffix(" bold")))
        left.append((title, "text"))
        if bead is not None and width >= REASON_LEAST:
            left.append((f"  {clean_line(need.reason, 300)}", "muted"))
        right: list[Span] = [(f"{need.waiting} wait{'s' * (need.waiting == 1)}", "muted")] if need.waiting else []
        if bead is not None and width >= 60:
            right.append((f"  P{bead.priority}", "muted"))
        return left, right

    def paint_more(self, index: int, width: int) -> Line | None:
        """Its id, and the key that deals with it."""
        need = self.needs[index]
        if not need.bead_id:
            return None
        spans: list[Span] = [(f"  {short_id(clean_line(need.bead_id, 60))}  ", "muted")]
        word = self._deed_of(need)
        if need.bead_id not in self._queue.beads and not word:
            return [*spans, ("not in the tracker", "muted")]
        return [
            *spans,
            *([("a ", "running"), (word, "muted")] if word else [("enter opens the bead", "muted")]),
        ]


def called_of(need: Need) -> str:
    """What a need without a bead is called: the id that it names, and its reason."""
    return ": ".join(filter(None, (short_id(need.bead_id), need.reason)))


def _asked(need: Need) -> str:
    return f"answer {need.question_id}" if need.question_id else "decide"


class NeedsScreen(OverlayScreen):
    """``!``"""

    TITLE_TEXT = "needs me"
    SCOPE = "needs"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("needs")]
    FOOTER = ("go.open", "move.jump", "go.back", "app.help")

    def __init__(self) -> None:
        super().__init__()
        self.reason = RowList(id="reason")
        self.reason.can_focus = False

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """The list, most urgent first."""
        needs = self.console.needs
        counts = counts_of(snapshot.queue, self.console.status_summary)
        number = f"{len(needs):,}" if needs else ""
        said = str(counts) if snapshot.condition in ("live", "empty") else ""
        self.caption.show(" ".join(filter(None, (self.TITLE_TEXT, number))), said)
        if needs:
            self.list.show(NeedRows(needs, snapshot.queue, self.deed_of))
        else:
            words = "nothing waits on you" if snapshot.condition in ("live", "empty") else "no queue"
            self.list.show(Rows([Row("none", ((f"  {words}", "muted"),), selectable=False)]))
        self.say_deed()

    @property
    def need(self) -> Need | None:
        """What the cursor stands on."""
        key = self.list.selected_key
        return next((need for need in self.console.needs if need.key == key), None)

    def deed_of(self, need: Need) -> str:
        """What the one key does about a need; empty where that takes more than a key."""
        if need.kind in ("orphaned_claim", "dead_run") and not self._claims(need):
            return ""
        if need.kind == "drift" and self._may_be_held(need):
            return "hold or acknowledge"
        return "answer" if need.question_id else DEEDS.get(need.kind, "")

    def _claims(self, need: Need) -> list[Orphan]:
        """The claims behind a need that can be released from here."""
        watch = self.console.monitor
        found = (*watch.concerns.orphans, *watch.concerns.dead) if watch is not None else ()
        return [orphan for orphan in found if orphan.bead_id == need.bead_id]

    def compose_body(self) -> ComposeResult:
        """The list, and the reason of its row in full."""
        yield self.list
        yield self.reason

    def on_resize(self) -> None:
        """The reason breaks elsewhere."""
        self.say_deed()

    def _say_reason(self, need: Need | None) -> None:
        width = max(16, self.app.size.width - 2)
        said = clean_line(need.reason, 2_000) if need is not None else ""
        lines = wrap_spans([(said, "text")], width) if said else []
        rows = [Row(f"{place}", tuple(line), selectable=False) for place, line in enumerate(lines)]
        self.reason.styles.height = min(len(rows), max(2, self.app.size.height // REASON_SHARE))
        self.reason.display = bool(rows)
        self.reason.show(Rows(rows))

    @on(RowList.Selected, "#overlay")
    def say_deed(self) -> None:
        """The footer says what the one key does about this row; above it stands why it is here."""
        need = self.need
        word = self.deed_of(need) if need is not None else ""
        self._say_reason(need)
        keys = self.FOOTER if self.console.needs else ("go.back", "app.help")
        self.footer.show((f"change.actions={word}", *keys) if word else keys)

    def action_actions(self) -> None:
        """Deal with it: seen before it runs, where it changes the queue."""
        need = self.need
        if need is None:
            return
        try:
            self.console.change_runner.check()
        except WritesForbidden as error:
            self.console.say(str(error), "warning")
            return
        if need.question_id:
            self._answer(need)
        elif need.kind in ("escalation", "gap"):
            self._in_words(need, partial(self.console.loop_controls.decide, need.bead_id))
        elif need.kind == "drift":
            self._drifted(need)
        elif need.kind == "archived_dependency" and self.console.monitor is not None:
            gone = self.console.monitor.concerns.archived
            bead = self.console.snapshot.queue.beads.get(need.bead_id)
            edges = [on for on in (bead.depends_on if bead is not None else ()) if on in gone]
            if edges:
                request = request_for([operations.undepend(need.bead_id, on) for on in edges])
                self.console.push_screen(PreviewSheet(request))
        elif need.kind == "focus":
            self.console.push_screen(PreviewSheet(upkeep()))
        elif claims := self._claims(need) if need.kind in ("orphaned_claim", "dead_run") else []:
            self.console.push_screen(PreviewSheet(RecoveryRequest(tuple(claims))))
        else:
            self.console.say("No quick action. Enter opens the bead.")

    def _drifted(self, need: Need) -> None:
        """Keep workers from it until somebody has polished it, or take what changed as seen."""
        seen = partial(self.console.acknowledge, [need.bead_id])
        if not self._may_be_held(need):
            seen()
            return
        request = DriftRequest((need.bead_id,))
        keep = Choice(
            "k",
            "k",
            "keep workers off this bead",
            "until the change is acknowledged",
            partial(self._show, request),
        )
        accept = Choice("s", "s", "acknowledge", "workers may pick this bead as it is now", seen)
        self.console.push_screen(ChoiceSheet("drift", [keep, accept], clean_line(need.reason, 2_000)))

    def _may_be_held(self, need: Need) -> bool:
        """Whether workers are still to be kept off a drifted bead."""
        queue, watch = self.console.snapshot.queue, self.console.monitor
        drift = watch.concerns.drift if watch is not None else ()
        return need.bead_id in queue.beads and need.bead_id in stale(drift) - set(drifted(queue))

    def _show(self, request: ChangeRequest) -> None:
        self.console.push_screen(PreviewSheet(request))

    def _answer(self, need: Need) -> None:
        """Ask for the answer: one of those that are offered, or any."""
        told = partial(self.console.loop_controls.answer, need.question_id)
        if not need.options:
            self._in_words(need, told)
            return
        choices = [
            Choice(str(place), str(place), clean_line(option, 60), "", partial(told, option))
            for place, option in enumerate(need.options[:8], 1)
        ]
        words = Choice("9", "9", "type an answer", "", partial(self._in_words, need, told))
        self.console.push_screen(ChoiceSheet(_asked(need), [*choices, words], clean_line(need.reason, 2_000)))

    def _in_words(self, need: Need, told: Callable[[str], None]) -> None:
        about = clean_line(need.reason, 2_000)
        sheet = LineSheet(_asked(need), "answer", lambda text: told(text) if text else None, about)
        self.console.push_screen(sheet)

    def commands(self) -> Iterable[tuple[str, str, Callable[[], object]]]:
        """What is done to all of them at once."""
        changed = [need.bead_id for need in self.console.needs if need.kind == "drift"]
        if changed and not self.console.change_runner.curator.gate.read_only:
            said = f"acknowledge {len(changed):,} changed bead{'s' * (len(changed) != 1)}"
            yield "acknowledge all drift", said, partial(self.console.acknowledge, changed)
            watch = self.console.monitor
            fresh = stale(watch.concerns.drift if watch is not None else ())
            fresh -= set(drifted(self.console.snapshot.queue))
            if fresh:
                request = DriftRequest(tuple(sorted(fresh)))
                yield "keep drifted beads from workers", request.title, partial(self._show, request)

    @on(RowList.Opened)
    def go_there(self, event: RowList.Opened) -> None:
        """To the bead, or to the list of unread lines."""
        event.stop()
        kind, _, bead_id = event.key.partition(":")
        if kind == "unread_lines":
            self.console.list_unread()
        elif kind == "worker_stopped" and not bead_id:
            self.console.say(clean_line(need.reason, 600) if (need := self.need) else "")
        elif (need := self.need) is not None and need.question_id and not need.bead_id:
            self._answer(need)
        else:
            self.console.go_to_bead(bead_id)
