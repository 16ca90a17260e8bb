"""Waiting for files to change: few folders, none of them recursive.

DDx replaces files by rename, so folders are watched and not files (docs/formats/ddx.md §3). A project may
hold thousands of evidence folders and of those only the running ones change, so each folder is named.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.project import Project, lease_roots
from helix_tui.core.ground.text import clean_line

STEP_MS = 4
"""How long nothing more may change before a group of changes counts as whole."""
GROUP_MS = 30
"""How long a group of changes may go on growing."""

_UNWATCHED = "files are checked once a second, not watched: "
_RAISE = "; raise fs.inotify.max_user_watches"

_IN_DDX = ("", "run-state", "workers", "executions", "metrics", "agent-logs", "runs")


def folders_to_watch(project: Project, runs: Iterable[Run]) -> dict[str, tuple[int, int]]:
    """Existing folders in which something of interest can change, each with its (device, inode).

    The nearest existing ancestor stands in for a folder that is not there yet, so that its appearance is
    noticed; the inode tells a folder from another one that has taken its name.
    """
    wanted = [project.root, *(project.ddx_dir / name for name in _IN_DDX)]
    wanted += [project.ddx_dir.parent, project.helix_dir]
    if project.git_dir is not None:
        wanted.append(project.git_dir)
    wanted.extend(lease_roots(project))
    wanted.extend(_worker_folders(project))
    for run in runs:
        wanted.extend(run.folders)
        if run.transcript is not None:
            wanted.append(run.transcript.parent)
        if run.attempt_id:
            wanted.append(project.ddx_dir / "executions" / run.attempt_id)
    found: dict[str, tuple[int, int]] = {}
    for folder in wanted:
        status = _stat_folder(folder)
        if status is not None:
            found[str(folder)] = status
    if not found:
        for ancestor in project.root.parents:
            status = _stat_folder(ancestor)
            if status is not None:
                found[str(ancestor)] = status
                break
    return found


def _worker_folders(project: Project, most: int = 64) -> list[Path]:
    """The newest worker folders; names begin with a kind and end with a time, so they sort by age."""
    try:
        with os.scandir(project.ddx_dir / "workers") as entries:
            folders = sorted((e.name for e in entries if e.is_dir()), key=lambda n: n.rpartition("-")[2])
    except OSError:
        return []
    return [project.ddx_dir / "workers" / name for name in folders[-most:]]


def _stat_folder(folder: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


class Watcher:
    """Waits for changes in a set of folders; where the kernel has no watches left, it only waits.

    ``problem`` says in one sentence why it does not watch, if it does not.
    """

    def __init__(self, folders: Iterable[str], stop: threading.Event, timeout_ms: int) -> None:
        import watchfiles  # 50 ms of import, and only the live thread pays it

        self._stop = stop
        self._timeout_ms = timeout_ms
        self.problem = ""
        self._changes: Iterator[set[tuple[watchfiles.Change, str]]] | None = watchfiles.watch(
            *(folder for folder in folders if os.access(folder, os.R_OK)),
            watch_filter=None,
            debounce=GROUP_MS,
            step=STEP_MS,
            stop_event=stop,
            rust_timeout=timeout_ms,
            yield_on_timeout=True,
            raise_interrupt=False,
            recursive=False,
            # with True, watchfiles 1 says nothing either when the kernel has no watches left
            ignore_permission_denied=False,
        )

    def wait(self) -> set[str]:
        """Paths that changed, after at most the timeout; empty when none did or the wait was ended."""
        if self._changes is not None:
            try:
                return {path for _, path in next(self._changes, ())}
            except FileNotFoundError:
                self._changes = None  # a folder went away before it was watched: the next plan knows
                return {""}
            except (OSError, RuntimeError) as error:
                self._changes = None
                why = clean_line(str(error).partition(" about [")[0].rstrip("."), 120)
                self.problem = f"{_UNWATCHED}{why}{_RAISE if 'limit' in why else ''}"
        self._stop.wait(self._timeout_ms / 1000)
        return set()

    def close(self) -> None:
        """Give the watches back."""
        if isinstance(self._changes, Generator):
            self._changes.close()
        self._changes = None
