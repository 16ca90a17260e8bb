"""What happens while a question is typed and while it is answered, and where the sources of an answer open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from time import monotonic

from textual.app import App
from textual.message import Message

from helix_tui.core.ask.index.index import State
from helix_tui.core.ask.sessions.session import News
from helix_tui.core.beads.query import Completion
from helix_tui.core.evidence.session import AskSession, Document, FoundFile
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.supervision.stages.delegate import LOGS
from helix_tui.screens.background import Jobs
from helix_tui.screens.base import Console
from helix_tui.screens.external_editor import open_at

BAR_CELLS = 12
LEAST_TYPED = 3
"""Characters from which files are looked for."""
TYPED_TOGETHER = 2.0
"""Seconds within which letters are typed as one word: `how` begins with a key of lists."""
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

    def __init__(self, jobs: Jobs, shown: Callable[[], None]) -> None:
        """``shown`` is called when other files than before speak to the text."""
        self.text = ""
        """What is being typed, while its files show; empty otherwise."""
        self.files: tuple[FoundFile, ...] = ()
        self.follows = ""
        """The run that the question goes on from."""
        self._jobs = jobs
        self._shown = shown
        self._letters = ""
        """Letters that were keys, typed one right after the other."""
        self._typed_at = 0.0

    async def take_letter(self, letter: str, bound: bool, begin: Callable[[str], Awaitable[None]]) -> bool:
        """Begin a question with a letter that no key has, and with those that were typed together with it.

        Returns whether it began; a letter that a key has only stays in mind for the next one.
        """
        now = monotonic()
        if now - self._typed_at > TYPED_TOGETHER or letter in self._letters:
            self._letters = ""  # who presses a key again moves and does not write
        self._typed_at = now
        before, self._letters = self._letters, self._letters + letter if len(letter) == 1 and letter.isalpha() else ""
        if bound or not self._letters:
            return False
        self._letters = ""
        await begin(before + letter)
        return True

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
