"""An index that is kept fresh while somebody may ask: a thread that reads, then reads again what changes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import watchfiles
from msgspec import Struct

from helix_tui.core.ask.corpus.git import GitFailed
from helix_tui.core.ask.corpus.listing import NothingToAsk
from helix_tui.core.ask.corpus.roles import left_out
from helix_tui.core.ask.index.index import RepositoryIndex, open_index
from helix_tui.core.ask.records import Progress
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.threads import keep_at

QUIET_MS = 800
"""How long files must lie still before they are read again."""


class State(Struct, frozen=True):
    """How the index stands."""

    files: int = 0
    progress: Progress | None = None
    """How far reading is; None where nothing is being read."""
    problem: str = ""


PATIENCE_S = 3.0
"""How long a question waits for all of the repository once a part of it can be asked: a small one is whole by
then, and a large one answers from what there is."""


class IndexKeeper:
    """Reads a project's files into its index, from a thread of its own, until it is stopped."""

    def __init__(self, project: Project, tell: Callable[[State], None], *, watch: bool = True) -> None:
        """``tell`` is called from the thread with every new state."""
        self._project = project
        self._tell = tell
        self._watch = watch
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._whole = threading.Event()
        self._thread = threading.Thread(
            target=keep_at, args=(self._keep, self._stop.wait), name="ask-index", daemon=True
        )
        self._index: RepositoryIndex | None = None
        self.state = State(progress=Progress("list", 0, 0, 0.0))

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the database is closed by it."""
        self._stop.set()

    def index(self, timeout: float = 30.0) -> RepositoryIndex | None:
        """The index, as soon as any of it can be asked; None where there is none."""
        self._ready.wait(timeout)
        self._whole.wait(min(timeout, PATIENCE_S))
        return self._index

    def _say(self, state: State) -> None:
        self.state = state
        self._tell(state)

    def _keep(self) -> None:
        try:
            index = open_index(self._project)
            self._index = index
            try:
                self._read(index)
                if self._watch:
                    self._follow(index)
                self._stop.wait()
            finally:
                self._index = None
                index.close()
        except (NothingToAsk, GitFailed, OSError) as error:
            self._say(State(problem=str(error)))
        finally:
            self._ready.set()
            self._whole.set()

    def _read(self, index: RepositoryIndex) -> None:
        def report(progress: Progress) -> None:
            if progress.phase == "parse" and progress.done:
                self._ready.set()  # what has been read can be asked
            self._say(State(len(index.documents()) if progress.phase == "done" else self.state.files, progress))

        done = index.refresh(report, stop=self._stop.is_set)
        self._ready.set()
        self._whole.set()
        self._say(State(done.files))

    def _follow(self, index: RepositoryIndex) -> None:
        """Read again after changes; a repository too large for the kernel's watches is not followed."""
        root = str(self._project.root)
        for _ in watchfiles.watch(
            root,
            watch_filter=lambda _, path: left_out(path[len(root) + 1 :]) is None,
            debounce=QUIET_MS,
            stop_event=self._stop,
            rust_timeout=500,
            yield_on_timeout=False,
            raise_interrupt=False,
        ):
            self._read(index)
