"""One run in tabs: answer, evidence, steps, and how it differs from another run; the line in which a question is typed,
and where the sources of an answer open.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any

from textual import on
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer

from helix_tui.core.ask.index.keeper import State
from helix_tui.core.ask.sessions.session import News
from helix_tui.core.beads.filter_language import Completion
from helix_tui.core.evidence.session import AskSession, Document, FoundFile, differences
from helix_tui.core.ground.recent import Recent
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import format_instant
from helix_tui.core.supervision.stages.delegate import LOGS
from helix_tui.screens.background import JobHost, Jobs
from helix_tui.screens.base import Console
from helix_tui.screens.external_editor import open_at
from helix_tui.widgets.chrome.header import PaneTabs
from helix_tui.widgets.text.answer import answer_paras, evidence_paras, file_paras, target_of, two_answers_paras
from helix_tui.widgets.text.ask_runs import StepDone, doing_paras
from helix_tui.widgets.text.ask_steps import compare_paras, steps_paras
from helix_tui.widgets.text.pane import Para, TextPane

TABS = ("answer", "evidence", "steps", "compare")

_PARAS = {"answer": answer_paras, "evidence": evidence_paras, "steps": steps_paras}

MAX_LOADED = 16
"""How many runs are kept in memory, about 0.1 MB each (8 at most); others are read again from their files."""

BAR_CELLS = 12

MIN_TYPED_CHARS = 3
"""How many characters must be typed before files are searched."""

TYPED_TOGETHER = 2.0
"""Seconds within which letters count as one word: `how` begins with a key of lists."""

LETTER_WAITS = 0.35
"""Seconds for which a letter that is a key waits for another one; a typist takes half of that."""

AT_ONCE = {
    *("move.down", "move.up", "move.first", "move.last", "move.fold", "move.next-part", "move.previous-part"),
    *("ask.new", "ask.on"),
}
"""Keys that act at once: they only move, or open the prompt themselves."""

MAX_COMPLETIONS = 8

MAX_FILES = 5
"""How many files are offered as completions; the pane shows more."""


class AnswerView(JobHost, Vertical):
    """The tabs of one run, or of the run in progress."""

    DEFAULT_CSS = """
    AnswerView { height: 1fr; width: 1fr; background: $helix-ground; }
    AnswerView > PaneTabs { height: 1; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.tabs = PaneTabs(TABS)
        self.pane = TextPane(id="answer")
        self.tab = "answer"
        self.document: Document | None = None
        """The run that is shown."""
        self.questions: AskSession | None = None
        self.loaded: Recent[str, Document] = Recent(MAX_LOADED)
        """Runs that have been read, by id."""
        self.marked = ""
        """Id of the run that others are compared with."""
        self._key = ""
        self._asked: tuple[str, Sequence[StepDone]] | None = None
        self._drawn: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """The tab line, and the pane."""
        yield self.tabs
        yield self.pane

    # --- contents -----------------------------------------------------------------------------------------

    def show(self, document: Document | None, key: str) -> None:
        """Show a run; ``key`` is its row's."""
        self._asked, self.document, self._key = None, document, key
        self._draw()

    def show_running(self, question: str, news: Sequence[StepDone], drafted: Document | None = None) -> None:
        """Show the progress, or what there is to read while the model is working."""
        self._asked, self.document, self._key = (question, news), drafted, ""
        self._draw()

    def open_tab(self, name: str) -> None:
        """Show another tab of the run."""
        self.tab = name
        self._draw()

    def turn(self, step: int) -> None:
        """Go to the next or previous tab."""
        self.open_tab(TABS[(TABS.index(self.tab) + step) % len(TABS)])

    @on(PaneTabs.Pressed)
    def _press(self, event: PaneTabs.Pressed) -> None:
        event.stop()
        self.open_tab(event.name)

    def mark(self, key: str) -> None:
        """Compare other runs with this one; unmark it if it is marked already."""
        self.marked = "" if self.marked == key else key
        self._draw()

    def on_resize(self) -> None:
        """Draw what was not drawn while there was no room."""
        self._drawn = ()
        self._draw()

    def _draw(self) -> None:
        """Draw the open tab if its content has changed."""
        steps = len(self._asked[1]) if self._asked is not None else -1
        subject = (self._key, id(self.document), self.tab)
        state = (*subject, steps, self.marked, tuple(self.loaded))
        if state == self._drawn or not self.size.width:
            return
        # the same run in the same tab keeps its scroll position; another one starts at the top
        same = self._drawn[:3] == subject
        self._drawn = state
        (self.pane.update_text if same else self.pane.read)(self._paras())
        self.tabs.show(self.tab, self.hash)

    def _paras(self) -> Sequence[Para]:
        document = self.document
        if document is None and self._asked is not None:
            head = Para("question", ((clean_line(self._asked[0], 600), "text bold"),))
            return [head, Para("gap"), *doing_paras(self._asked[1])]
        if document is None:
            return _invitation(self._key)
        return self._comparison(document) if self.tab == "compare" else _PARAS[self.tab](document)

    @property
    def hash(self) -> str:
        """One hash over the items of the run."""
        return clean_line((self.document or {}).get("assembly_hash"), 20)

    @property
    def target(self) -> tuple[str, int] | None:
        """The file and line under the cursor."""
        para = self.pane.para
        return target_of(para.key) if para is not None else None

    def show_files(self, text: str, files: Sequence[FoundFile]) -> None:
        """Show the files that match the question being typed."""
        self._asked, self.document, self._key = None, None, ""
        self._drawn = ()
        self.pane.update_text(file_paras(text, files))
        self.tabs.show("answer", "")

    # --- two runs -----------------------------------------------------------------------------------------

    def _comparison(self, document: Document) -> Sequence[Para]:
        """The model's answer beside the one without it; else two runs: the marked one, or the last on the question."""
        if "answer_without_model" in document and not self.marked:
            return two_answers_paras(document)
        other = self._other(document)
        if not other:
            return [Para("none", (("nothing to compare with: space marks a run, R asks again", "muted"),))]
        before = self.loaded.get(other)
        if before is not None:
            return compare_paras(differences(before, document), _named(before), _named(document))
        if self.questions is not None:
            work = partial(self.questions.history.load, other)
            self._jobs.start("other", work, partial(self._take_other, other), lambda _: None)
        return [Para("wait", (("reading …", "muted"),))]

    def _other(self, document: Document) -> str:
        if self.marked and self.marked != self._key:
            return self.marked
        past = self.questions.history.list() if self.questions is not None else ()
        asked = document.get("question")
        # ids begin with the time, so a smaller one is older, and the list has the newest first
        return next((one.id for one in past if one.question == asked and one.id < self._key), "")

    def _take_other(self, key: str, document: Document | None) -> None:
        if document is not None:
            self.loaded[key] = document
            self._draw()


def _named(document: Mapping[str, Any]) -> str:
    """A run in one line: its time, question and hash."""
    asked = document.get("asked_at_ns")
    when = f"{format_instant(asked)}  " if isinstance(asked, int) and asked else ""
    return f"{when}{clean_line(document.get('question'), 200)}  {document.get('assembly_hash', '')}"


def _invitation(key: str) -> list[Para]:
    """The text shown without a run: the key that asks a suggested question, or what can be done here."""
    if key:
        return [Para("how", (("enter", "running"), ("  ask", "muted")))]
    words = (
        (("Ask this repository something.", "text bold"),),
        (),
        (("i", "running"), ("  type a question; on a bead in the queue it asks about that", "muted")),
        (),
        (
            ("Answers are sentences of the repository, each with its source.", "muted"),
            (" If a word has two meanings, you are asked which one; what was not found is listed.", "muted"),
        ),
        (
            (
                "Beads, attempts, reviews, memories and commits are searched too: “which beads touch the parser?”",
                "muted",
            ),
        ),
    )
    return [Para(f"invite {number}", line) for number, line in enumerate(words)]


class Stepped(Message):
    """A step of the run in progress."""

    def __init__(self, news: News) -> None:
        super().__init__()
        self.news = news


class Drafted(Message):
    """The answer without a model is there; the model is still being asked."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.document = document


class IndexStands(Message):
    """The state of the index has changed."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state

    def can_replace(self, message: Message) -> bool:
        """Only the newest state counts."""
        return isinstance(message, IndexStands)


def index_words(state: State, *, narrow: bool) -> str:
    """The state of the index: an error, the progress, or the number of files."""
    progress = state.progress
    if state.problem:
        return state.problem
    if progress is not None and progress.total:
        rate = f"{progress.files_per_second:,.0f} files/s"
        if narrow:
            return f"{progress.done / progress.total:.0%} · {rate}"
        cells = progress.done * BAR_CELLS // progress.total
        return f"{'█' * cells}{'░' * (BAR_CELLS - cells)} {progress.done:,} of {progress.total:,} · {rate}"
    files = counted(state.files, "file") if state.files else "no files"
    return "reading …" if progress is not None else files


class QuestionLine:
    """A question being typed: the files that match it so far, and the run that it follows."""

    def __init__(self, jobs: Jobs, shown: Callable[[], None], set_timer: Callable[..., Timer]) -> None:
        """``shown`` is called when the matching files change; ``set_timer`` is the screen's."""
        self.text = ""
        """The text being typed while its files show; else empty."""
        self.files: tuple[FoundFile, ...] = ()
        self.follows = ""
        """The run that the question follows up."""
        self._jobs = jobs
        self._shown = shown
        self._set_timer = set_timer
        self._letters = ""
        """Letters that were typed one right after the other."""
        self._typed_at = 0.0
        self._held: tuple[str, Callable[[], Awaitable[object]]] | None = None
        """A letter that waits for the next one, and what presses it as a key."""
        self._waiting: Timer | None = None

    async def take_letter(
        self, letter: str, does: str, act: Callable[[], Awaitable[object]], begin: Callable[[str], Awaitable[None]]
    ) -> bool:
        """Take a pressed key as the beginning of a question, or let it wait; False if it is to act as a key at once.

        A letter that is not a key begins a question, with the letters typed right before it. One that is a key
        waits a moment: where another letter follows, both begin a question (`Why`, `quite`), and no key was pressed.

        Args:
            does: the id of the key that it is here; empty where it is none.
            act: presses that key.
            begin: opens the line with a text in it.
        """
        now = monotonic()
        if now - self._typed_at > TYPED_TOGETHER or letter in self._letters:
            self._letters = ""  # a repeated key is a move, not typing
        writes = len(letter) == 1 and letter.isalpha()
        # hardly a word continues with j or k
        waited = await self._end_waiting(letter if writes and does not in ("move.down", "move.up") else "")
        if not writes:
            self._letters = ""
            return False
        self._typed_at = now
        self._letters += letter
        if does and not waited:
            if does not in AT_ONCE:
                self._held = letter, act
                self._waiting = self._set_timer(LETTER_WAITS, self._end_waiting)
            return does not in AT_ONCE
        word, self._letters = self._letters, ""
        await begin(word)
        return True

    async def _end_waiting(self, letter: str = "") -> bool:
        """Press the waiting key, unless the new letter makes a word of both; whether it does."""
        if self._held is None:
            return False
        (first, act), self._held = self._held, None
        if self._waiting is not None:
            self._waiting.stop()
        # no word has a capital after a small letter: `m` and `R` are two keys
        if letter and letter != first and not (first.islower() and letter.isupper()):
            return True
        self._letters = "" if letter else self._letters
        await act()
        return False

    def find(self, text: str, session: AskSession | None) -> None:
        """Search, in a thread, for files that match a text; the newest text counts."""
        text = text.strip()
        # while the files are being read there is nothing to search in
        if session is None or session.state.progress is not None:
            return
        if len(text) < MIN_TYPED_CHARS:
            self._take("", ())
        else:
            self._jobs.start("files", partial(session.files, text), partial(self._take, text), lambda _: None)

    def _take(self, text: str, files: Sequence[FoundFile]) -> None:
        self.text, self.files = text, tuple(files)
        self._shown()

    def end(self) -> None:
        """Typing has ended."""
        self._jobs.drop("files")
        self.text, self.files = "", ()

    def chosen(self, text: str) -> FoundFile | None:
        """The offered file whose path the text is, if any."""
        return next((file for file in self.files if file.file == text.strip()), None)

    def ways_on(self, known: Iterable[str], text: str) -> list[Completion]:
        """Suggested and earlier questions, then files."""
        wanted = text.strip().lower()
        asked = [
            Completion(earlier, 0, "")
            for earlier in dict.fromkeys(known)
            if wanted in earlier.lower() and earlier != text
        ]
        if not wanted:
            return asked[:MAX_COMPLETIONS]
        files = [Completion(file.file, 0, file.header or file.text) for file in self.files if file.file != text][
            :MAX_FILES
        ]
        # files take precedence over questions: an earlier question can also be found by its row
        return [*asked[: MAX_COMPLETIONS - len(files)], *files]


def open_file(app: App[object], session: AskSession | None, file: str, line: int) -> str:
    """Open a file of the repository in the editor; returns an error text, or nothing."""
    return clean_line(open_at(app, session.project.root / file, line), 200) if session is not None else ""


def open_record(console: Console, app: App[object], session: AskSession | None, kind: str, ident: str) -> str:
    """Open a record where it belongs: a bead in the queue, an attempt in the loop, a memory on its screen, a log in the
    editor; a commit's hash is copied. Returns an error text, or nothing."""
    if kind == "bead":
        console.go_to_bead(ident)
    elif kind == "attempt":
        console.open_attempt(ident)
    elif kind == "memory":
        console.open_memory(ident)
    elif kind == "queue":
        app.call_later(app.run_action, "app.show_screen('queue')")
    elif kind == "run" and session is not None:
        return open_file(app, session, f"{session.project.main_root}/{LOGS}/{ident}", 1)
    else:
        console.copy(ident, f"commit {ident}")
    return ""
