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
from textual.worker import Worker

from helix_tui.core.ask.index.index import State
from helix_tui.core.ask.sessions.session import News
from helix_tui.core.beads.query import Completion
from helix_tui.core.evidence.session import AskSession, Document, FoundFile, differences
from helix_tui.core.ground.recent import Recent
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import format_instant
from helix_tui.core.supervision.stages.delegate import LOGS
from helix_tui.screens.background import Jobs
from helix_tui.screens.base import Console
from helix_tui.screens.external_editor import open_at
from helix_tui.widgets.chrome.header import PaneTabs
from helix_tui.widgets.text.answer import (
    answer_paras,
    compare_paras,
    doing_paras,
    evidence_paras,
    file_paras,
    steps_paras,
    target_of,
    two_answers_paras,
)
from helix_tui.widgets.text.pane import Para, TextPane

TABS = ("answer", "evidence", "steps", "compare")

_PARAS = {"answer": answer_paras, "evidence": evidence_paras, "steps": steps_paras}


MOST_LOADED = 16
"""Runs that are held, some 0.1 MB each (8 at most); others are read again from their files."""


class AnswerView(Vertical):
    """The tabs of one run, or of the one under way."""

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
        self.loaded: Recent[str, Document] = Recent(MOST_LOADED)
        """Runs that have been read, by id."""
        self.marked = ""
        """Id of the run that others are compared with."""
        self._key = ""
        self._asked: tuple[str, Sequence[str]] | None = None
        self._drawn: tuple[object, ...] = ()
        self._jobs = Jobs(self)

    def compose(self) -> ComposeResult:
        """The tab line, and the pane."""
        yield self.tabs
        yield self.pane

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A run that was asked for has been read."""
        event.stop()
        self._jobs.settle(event.worker)

    # --- what it shows ------------------------------------------------------------------------------------

    def show(self, document: Document | None, key: str) -> None:
        """Show a run; ``key`` is its row's."""
        self._asked, self.document, self._key = None, document, key
        self._draw()

    def show_running(self, question: str, news: Sequence[str], drafted: Document | None = None) -> None:
        """Show what is being done, or what there is to read while a model is asked."""
        self._asked, self.document, self._key = (question, news), drafted, ""
        self._draw()

    def open_tab(self, name: str) -> None:
        """Look at the run another way."""
        self.tab = name
        self._draw()

    def turn(self, step: int) -> None:
        """The next tab, or the one before."""
        self.open_tab(TABS[(TABS.index(self.tab) + step) % len(TABS)])

    @on(PaneTabs.Pressed)
    def _press(self, event: PaneTabs.Pressed) -> None:
        event.stop()
        self.open_tab(event.name)

    def mark(self, key: str) -> None:
        """Compare others with this run; with none where it is marked already."""
        self.marked = "" if self.marked == key else key
        self._draw()

    def on_resize(self) -> None:
        """Draw what was not drawn while there was no room."""
        self._drawn = ()
        self._draw()

    def _draw(self) -> None:
        """Draw the open tab if it differs from what stands there."""
        steps = len(self._asked[1]) if self._asked is not None else -1
        subject = (self._key, id(self.document), self.tab)
        state = (*subject, steps, self.marked, tuple(self.loaded))
        if state == self._drawn or not self.size.width:
            return
        # the same run in the same tab keeps the place that is read; another one begins at its top
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
        """The file and line that the cursor stands on."""
        para = self.pane.para
        return target_of(para.key) if para is not None else None

    def show_files(self, text: str, files: Sequence[FoundFile]) -> None:
        """Show the files that speak to what is being typed."""
        self._asked, self.document, self._key = None, None, ""
        self._drawn = ()
        self.pane.update_text(file_paras(text, files))
        self.tabs.show("answer", "")

    # --- two runs -----------------------------------------------------------------------------------------

    def _comparison(self, document: Document) -> Sequence[Para]:
        """The model's answer against ours; else the run against the marked one, or the last that asked the same."""
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
    """A run in a line: when it was asked, its question, its hash."""
    asked = document.get("asked_at_ns")
    when = f"{format_instant(asked)}  " if isinstance(asked, int) and asked else ""
    return f"{when}{clean_line(document.get('question'), 200)}  {document.get('assembly_hash', '')}"


def _invitation(key: str) -> list[Para]:
    """What stands where no run is shown: the key of a ready question, or what can be done here."""
    if key:
        return [Para("how", (("enter", "running"), ("  asks it", "muted")))]
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


BAR_CELLS = 12
LEAST_TYPED = 3
"""Characters from which files are looked for."""
TYPED_TOGETHER = 2.0
"""Seconds within which letters are typed as one word: `how` begins with a key of lists."""
LETTER_WAITS = 0.35
"""Seconds for which a letter that is a key waits for another one: fingers that write take half of that."""
AT_ONCE = {
    *("move.down", "move.up", "move.first", "move.last", "move.fold", "move.next-part", "move.previous-part"),
    *("ask.new", "ask.on"),
}
"""Keys that wait for nothing: they only move, or open the line themselves."""
MOST_WAYS = 8
MOST_FILES = 5
"""Files among the ways to go on; the pane shows more of them."""


class Stepped(Message):
    """A step of the run that is under way."""

    def __init__(self, news: News) -> None:
        super().__init__()
        self.news = news


class Drafted(Message):
    """The answer without a model is there; the model is still being asked."""

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.document = document


class IndexStands(Message):
    """The index stands otherwise than before."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state

    def can_replace(self, message: Message) -> bool:
        """Only the newest state counts."""
        return isinstance(message, IndexStands)


def index_words(state: State, *, narrow: bool) -> str:
    """How the index stands: what is wrong, how far reading is, or how many files there are."""
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
    """A question that is being typed: the files that speak to it so far, and what it follows."""

    def __init__(self, jobs: Jobs, shown: Callable[[], None], set_timer: Callable[..., Timer]) -> None:
        """``shown`` is called when other files than before speak to the text; ``set_timer`` is the screen's."""
        self.text = ""
        """What is being typed, while its files show; empty otherwise."""
        self.files: tuple[FoundFile, ...] = ()
        self.follows = ""
        """The run that the question goes on from."""
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
        """Take a pressed key as the begin of a question, or let it wait; False where it is to be a key at once.

        A letter that is no key begins a question, with the letters that were typed right before it. One that is a key
        waits a moment: where another letter follows, both begin a question (`Why`, `quite`), and no key was pressed.

        Args:
            does: the id of the key that it is here; empty where it is none.
            act: presses that key.
            begin: opens the line with a text in it.
        """
        now = monotonic()
        if now - self._typed_at > TYPED_TOGETHER or letter in self._letters:
            self._letters = ""  # who presses a key again moves and does not write
        writes = len(letter) == 1 and letter.isalpha()
        # hardly a word goes on with j or k
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
        """Press the key that waits, unless a letter came that makes a word of both; whether it makes one."""
        if self._held is None:
            return False
        (first, act), self._held = self._held, None
        if self._waiting is not None:
            self._waiting.stop()
        # no word goes on with a capital behind a small letter: `m` and `R` are two keys
        if letter and letter != first and not (first.islower() and letter.isupper()):
            return True
        self._letters = "" if letter else self._letters
        await act()
        return False

    def find(self, text: str, session: AskSession | None) -> None:
        """Look for the files that speak to a text, in a thread; the newest text counts."""
        text = text.strip()
        # while the files are being read there is nothing to search in
        if session is None or session.state.progress is not None:
            return
        if len(text) < LEAST_TYPED:
            self._take("", ())
        else:
            self._jobs.start("files", partial(session.files, text), partial(self._take, text), lambda _: None)

    def _take(self, text: str, files: Sequence[FoundFile]) -> None:
        self.text, self.files = text, tuple(files)
        self._shown()

    def end(self) -> None:
        """Nobody types any more."""
        self._jobs.drop("files")
        self.text, self.files = "", ()

    def chosen(self, text: str) -> FoundFile | None:
        """The file that a text is the path of, where it is one that was offered."""
        return next((one for one in self.files if one.file == text.strip()), None)

    def ways_on(self, known: Iterable[str], text: str) -> list[Completion]:
        """Questions that are ready or were asked before, then files."""
        wanted = text.strip().lower()
        asked = [Completion(one, 0, "") for one in dict.fromkeys(known) if wanted in one.lower() and one != text]
        if not wanted:
            return asked[:MOST_WAYS]
        files = [Completion(one.file, 0, one.header or one.text) for one in self.files if one.file != text][:MOST_FILES]
        # questions give way to files: what somebody asked before is found by its row too
        return [*asked[: MOST_WAYS - len(files)], *files]


def open_file(app: App[object], session: AskSession | None, file: str, line: int) -> str:
    """Open a file of the repository in the editor; what went wrong, or nothing."""
    return clean_line(open_at(app, session.project.root / file, line), 200) if session is not None else ""


def open_record(console: Console, app: App[object], session: AskSession | None, kind: str, ident: str) -> str:
    """Open a record where it belongs: a bead in the queue, an attempt in the loop, a memory on its screen, a log in the
    editor; a commit's hash is copied. What went wrong, or nothing."""
    if kind == "bead":
        console.go_to_bead(ident)
    elif kind == "attempt":
        console.open_attempt(ident)
    elif kind == "memory":
        console.open_memory(ident)
    elif kind == "run":
        return open_file(app, session, f"{LOGS}/{ident}", 1)
    else:
        console.copy(ident, f"commit {ident}")
    return ""
