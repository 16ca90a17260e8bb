"""Notify a person of news since the last look: what needs them, and the end of a run.

Each notification leaves a marker in ``.helix/notified/``, created so that only one of several consoles notifies; when
its cause is gone the marker is removed, and a recurrence is news again.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.runs.running import Run, beads_at_work
from helix_tui.core.ground.process import run as run_program
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_instant
from helix_tui.core.ground.writes import open_own, remove
from helix_tui.core.statements.counts import need_you
from helix_tui.core.statements.ending import run_ended
from helix_tui.core.supervision.decide.need_kinds import GROUPS, KINDS, SILENT
from helix_tui.core.supervision.decide.needs import Need

COMMAND_TIMEOUT_S = 20.0
MAX_LISTED = 50
"""Maximum needs passed to a user's command one by one."""


NO_BEADS: Mapping[str, Bead] = {}


class Notification(Struct, frozen=True):
    """One notification; needs that arrive together share one."""

    event: Literal["needs", "run_ended"]
    title: str
    body: str
    keys: tuple[str, ...]
    """Its subjects, so that each is reported once."""
    needs: tuple[Need, ...] = ()
    waiting: int = 0
    """The total number of things that wait for a person."""

    def document(self, project: Project, now: int) -> bytes:
        """The JSON for a user's command."""
        found: dict[str, Any] = {
            "schema": "notification/1",
            "event": self.event,
            "at": format_instant(now),
            "project": os.fspath(project.root),
            "title": self.title,
            "body": self.body,
            "waiting": self.waiting,
            "needs": [{**need.record(), "group": KINDS[need.kind].group} for need in self.needs[:MAX_LISTED]],
        }
        return msgspec.json.encode(found)


class NewsWatch(Struct):
    """Compares one look with the last; everything in the first is old."""

    known: frozenset[str] | None = None
    _working_since: int = 0
    _gone: set[str] = field(default_factory=set)

    def see(
        self,
        needs: Sequence[Need],
        runs: Sequence[Run],
        attempts: AttemptBook,
        *,
        now: int,
        loop: bool = False,
        beads: Mapping[str, Bead] = NO_BEADS,
    ) -> list[Notification]:
        """The notifications since the last look.

        Args:
            loop: whether HELIX's loop is active, even between two beads.
            beads: the beads, for their titles.
        """
        keys = frozenset(need.key for need in needs)
        notifications: list[Notification] = []
        if self.known is not None:
            fresh = tuple(need for need in needs if need.key not in self.known and need.kind not in SILENT)
            self._gone |= self.known - keys
            if fresh:
                notifications.append(_of_needs(fresh, len(needs), beads))
        self.known = keys
        at_work = bool(beads_at_work(runs))
        if at_work and not self._working_since:
            self._working_since = now
        # between two beads HELIX's loop has no worker, but its run has not ended
        elif self._working_since and not at_work and not loop and not any(run.live for run in runs):
            notifications.append(_of_run(attempts, self._working_since, len(needs)))
            self._working_since = 0
        return notifications

    def gone(self) -> frozenset[str]:
        """Subjects that are gone since the last call."""
        found, self._gone = frozenset(self._gone), set()
        return found


def _of_needs(fresh: tuple[Need, ...], waiting: int, beads: Mapping[str, Bead]) -> Notification:
    counted = Counter(KINDS[need.kind].group for need in fresh)
    body = clean_line(fresh[0].reason, 160)
    if len(fresh) > 1:
        body = "new: " + ", ".join(
            f"{count:,} {name if count > 1 else GROUPS[name]}" for name, count in counted.items()
        )
    else:
        bead = beads.get(fresh[0].bead_id)
        about = f"“{clean_line(bead.title, 60)}”: " if bead is not None and bead.title else ""
        kind = GROUPS[KINDS[fresh[0].kind].group]
        body = f"{kind}: {about}{body.removeprefix(f'{kind}; ').removeprefix(f'{kind}: ')}"
    return Notification("needs", need_you(waiting), body, tuple(need.key for need in fresh), fresh, waiting)


def _of_run(attempts: AttemptBook, since: int, waiting: int) -> Notification:
    body, ended = run_ended(attempts.newest(500), since)
    last = ended[0].attempt_id if ended else format_instant(since)
    return Notification("run_ended", "the run has ended", body, (f"run:{last}",), waiting=waiting)


def claimed(project: Project, keys: Collection[str]) -> frozenset[str]:
    """Claim the subjects that no console has reported yet.

    Raises:
        OSError: no marker can be created.
    """
    folder = project.helix_dir / "notified"
    ours = set()
    for key in keys:
        with suppress(FileExistsError):
            os.close(open_own(_marker(folder, key), os.O_EXCL | os.O_WRONLY))
            ours.add(key)
    return frozenset(ours)


def forget(project: Project, keys: Iterable[str]) -> None:
    """Forget subjects that are gone, so that they can be news again."""
    folder = project.helix_dir / "notified"
    for key in keys:
        with suppress(OSError):
            remove(_marker(folder, key))


def _marker(folder: Path, key: str) -> Path:
    return folder / hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32]


# --- delivery -----------------------------------------------------------------------------------------


def terminal_ways(env: Mapping[str, str]) -> tuple[str, ...]:
    """How to notify through the terminal of an environment: its bell, and its own kind of notification."""
    hints = " ".join(env.get(name, "") for name in ("TERM_PROGRAM", "LC_TERMINAL", "TERM", "TERMINAL_EMULATOR")).lower()
    if "KITTY_WINDOW_ID" in env or "kitty" in hints:
        return ("bell", "osc99")
    if any(name in hints for name in ("iterm", "wezterm", "ghostty", "warp")) or "WT_SESSION" in env:
        return ("bell", "osc9")
    if any(name in hints for name in ("rxvt", "foot", "contour")):
        return ("bell", "osc777")
    return ("bell",)


def sequences(ways: Iterable[str], note: Notification, *, tmux: bool) -> str:
    """The escape sequences for the terminal, passed through tmux to the outer one."""
    title, body = _plain(note.title), _plain(note.body)
    made = {
        "bell": "\a",
        "osc9": f"\x1b]9;{title}: {body}\x1b\\",
        "osc777": f"\x1b]777;notify;{title};{body}\x1b\\",
        # kitty's protocol: d=0 announces another part of the same note, d=1 ends it
        "osc99": f"\x1b]99;i=helix:d=0:p=title;{title}\x1b\\\x1b]99;i=helix:d=1:p=body;{body}\x1b\\",
    }
    said = ""
    for way in ways:
        text = made[way]
        # tmux passes a wrapped sequence, with each ESC doubled, to the outer terminal; it passes a bell by itself
        said += f"\x1bPtmux;{text.replace(chr(27), chr(27) * 2)}\x1b\\" if tmux and way != "bell" else text
    return said


def _plain(text: str) -> str:
    """Text that cannot end a sequence or separate fields."""
    return clean_line(text, 200).replace(";", ",")


def run_command(command: str, document: bytes, folder: Path) -> str:
    """Pass a notification to the user's own command, as JSON on stdin; return why it failed, or "".

    Without a shell, but split into arguments like one.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"notify cannot be read as a command: {error}"
    if not words:
        return "notify names no command"
    try:
        done = run_program(words, cwd=folder, timeout=COMMAND_TIMEOUT_S, cap=1 << 16, given=document + b"\n")
    except OSError as error:
        return f"{clean_line(words[0], 80)} does not start: {error.strerror}"
    if done.timed_out:
        return f"{clean_line(words[0], 80)} took longer than {COMMAND_TIMEOUT_S:.0f} s and was ended"
    return f"{clean_line(words[0], 80)} ended with {done.rc}" if done.rc else ""
