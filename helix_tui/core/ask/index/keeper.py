"""The thread that reads a work tree into its index and keeps it fresh."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import PurePosixPath

from msgspec import Struct

from helix_tui.core.ask.corpus.listing import NothingToAsk, left_out
from helix_tui.core.ask.index.index import RepositoryIndex, open_index
from helix_tui.core.ask.records import Progress
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.files import is_folder
from helix_tui.core.ground.git import GitFailed
from helix_tui.core.ground.processes.threads import keep_at
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line

STEP_MS = 250
"""How often the watcher wakes while nothing happens."""

QUIET_MS = 800
"""How long files must be unchanged before they are read again."""

PATIENCE_S = 3.0
"""How long a question waits for the whole repository once a part of it can be searched: a small one is complete by
then, and a large one is searched as far as it was read."""


class State(Struct, frozen=True):
    """The state of the index."""

    files: int = 0
    progress: Progress | None = None
    """How far reading is; None if nothing is being read."""
    problem: str = ""


class IndexKeeper:
    """Reads a project's files into its index, in its own thread, until it is stopped."""

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
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, which closes the database."""
        self._stop.set()

    def index(self, timeout: float = 30.0) -> RepositoryIndex | None:
        """The index, as soon as part of it can be searched, or None."""
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
                # if the tree cannot be watched the index can still be searched
                self._stop.wait()
            finally:
                # do not hand out an index that is being closed
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
                self._ready.set()  # what has been read can be searched
            self._say(State(len(index.documents()) if progress.phase == "done" else self.state.files, progress))

        done = index.refresh(report, stop=self._stop.is_set)
        self._ready.set()
        self._whole.set()
        self._say(State(done.files))

    def _follow(self, index: RepositoryIndex) -> None:
        """Refresh after changes until stopped; if the kernel has no watches left, changes are not followed."""
        new: set[str] = set()
        while not self._stop.is_set():
            new = {folder for folder in new if is_folder(folder)}
            folders = self._folders(index) | new
            try:
                new |= self._follow_in(folders, index)
            except FileNotFoundError:  # a folder was removed before it was watched
                self._stop.wait(0.5)
            except (OSError, RuntimeError) as error:
                logs.logger("ask").warning("changes of files are not followed: %s", clean_line(str(error), 200))
                return

    def _follow_in(self, folders: set[str], index: RepositoryIndex) -> set[str]:
        """Refresh after changes in some folders until others must be watched; return the folders that appeared."""
        import watchfiles  # imported here: it takes 30 ms, in the watching thread only

        new: set[str] = set()
        settled = False
        for changes in watchfiles.watch(
            *sorted(folders),
            watch_filter=lambda _, path: self._concerns(path),
            debounce=QUIET_MS,
            step=STEP_MS,
            stop_event=self._stop,
            rust_timeout=500,
            yield_on_timeout=True,
            raise_interrupt=False,
            # recursive watches would follow every evidence folder, and watchfiles keeps an entry for each one after
            # its removal: 7 MB after 40,000
            recursive=False,
        ):
            if settled and not changes:
                continue
            # files may have changed while the watches were set up
            settled = True
            self._read(index)
            new |= {path for _, path in changes if is_folder(path) and self._concerns(f"{path}/x")}
            if self._folders(index) | new != folders:
                break
        return new

    def _folders(self, index: RepositoryIndex) -> set[str]:
        """The existing folders of documents, the root, and git's folder, where ``git add`` changes the index."""
        root = self._project.root
        # asked after every change: paths are made of distinct folders only, not of every file
        places = {document.file.rpartition("/")[0] for document in index.documents()}
        wanted = {root, *(root / above for place in map(PurePosixPath, places) for above in (place, *place.parents))}
        if self._project.git_dir is not None:
            wanted.add(self._project.git_dir)
        return {str(folder) for folder in wanted if is_folder(folder)}

    def _concerns(self, path: str) -> bool:
        """Whether a change of a path may change the index."""
        if self._project.git_dir is not None and path.startswith(f"{self._project.git_dir}{os.sep}"):
            return path == str(self._project.git_dir / "index")
        return left_out(path.removeprefix(f"{self._project.root}{os.sep}")) is None
