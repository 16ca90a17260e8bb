"""Run one program to its end: no terminal, a time limit and an output limit. `processes.start` starts it.

It gets its own session, so that ``ctrl+c`` in the console does not reach it and its descendants are known: the whole
session is ended at the time limit or when the program ends. `processes.family`, which does that, is imported when it
is first needed: most programs end by themselves.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.core.ground import log as logs
from helix_tui.core.ground.files import read_last
from helix_tui.core.ground.processes.start import PIPE, Process, TimeoutExpired, start
from helix_tui.core.ground.writes import open_own

if TYPE_CHECKING:
    from helix_tui.core.ground.processes.family import Member

_CHUNK = 1 << 16
_LAST = 1 << 16
"""Bytes kept of the end of a truncated stream."""
_GRACE_S = 2.0
_LAST_GRACE_S = 0.3
"""As `_GRACE_S`, while the console quits."""
_LINGER_S = 0.3
_STEP_S = 0.01
_SHOWN = 2_000
"""Characters of stderr that the log shows."""
_WATCH_S = 0.05


class Finished(Struct, frozen=True):
    """How a program ended and what it printed."""

    argv: tuple[str, ...]
    rc: int
    stdout: bytes
    stderr: bytes
    seconds: float
    truncated: bool = False
    """Output was dropped: the beginning is kept, and the end too unless the program was ended at the cap."""
    timed_out: bool = False

    @property
    def out(self) -> str:
        """Standard output as text."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def err(self) -> str:
        """Standard error as text."""
        return self.stderr.decode("utf-8", "replace")


class Leaving(OSError):
    """The console is quitting: no program is started any more, and one that only read was ended."""


class _Running:
    """Running programs of one kind, so that another thread can end them."""

    def __init__(self) -> None:
        self.ended = False
        self._change = threading.Condition()
        self._running: set[Process] = set()

    def check(self) -> None:
        if self.ended:
            raise Leaving("the console is quitting")

    def begin(self, process: Process) -> None:
        with self._change:
            self._running.add(process)
        # `end_reads` was called after the program started
        if self.ended and self is _reads:
            self.signal(signal.SIGKILL)

    def leave(self, process: Process) -> None:
        with self._change:
            self._running.discard(process)
            self._change.notify_all()

    def signal(self, sign: signal.Signals) -> None:
        from helix_tui.core.ground.processes.family import family, signal_all

        with self._change:
            for process in self._running:
                signal_all(family(process.pid), sign)

    def wait(self, seconds: float) -> bool:
        """Wait until none runs; False on timeout."""
        with self._change:
            return self._change.wait_for(lambda: not self._running, seconds)


_reads = _Running()
"""Programs that only read and may be ended at any time."""
_writes = _Running()
"""All other programs."""


def end_reads() -> None:
    """Start no program any more, and end every read-only one without waiting."""
    _reads.ended = _writes.ended = True
    _reads.signal(signal.SIGKILL)


def end_writes(patience: float = 0.0) -> None:
    """End every program that may be changing something, unless it ends within ``patience`` seconds.

    Politely first, then by force.
    """
    if _writes.wait(patience):
        return
    _writes.signal(signal.SIGTERM)
    if not _writes.wait(_LAST_GRACE_S):
        _writes.signal(signal.SIGKILL)


def allow_programs() -> None:
    """Undo `end_reads`."""
    _reads.ended = _writes.ended = False


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    cap: int = 16 << 20,
    stop_at_cap: bool = False,
    leftovers: bool = False,
    keep: Sequence[int] = (),
    given: bytes = b"",
) -> Finished:
    """Run a program and wait for its end.

    Beyond ``cap`` bytes the middle of a stream is read and dropped, so that a command that changes something is not
    ended half-way and the end of its output is kept. ``stop_at_cap`` is for a read-only program: it is ended at the
    cap, and by `end_reads`. With ``leftovers``, the rest of its session is ended after it. ``keep`` are inherited file
    descriptors: a lock among them stays held until the program ends, even if the console is killed first. ``given`` is
    its standard input.

    Raises:
        OSError: the program cannot be started.
        Leaving: the console is quitting.
    """
    words = tuple(os.fspath(word) for word in argv)
    # a program that may be ended at the cap only reads, so it may be ended at any time
    group = _reads if stop_at_cap else _writes
    group.check()
    started = time.monotonic()
    # never the console's own input: some ddx verbs read from a terminal
    with tempfile.TemporaryFile() if given else open(os.devnull, "rb") as source:
        if given:
            source.write(given)
            source.seek(0)
        process = start(words, cwd=cwd, env=env, stdin=source, stdout=PIPE, stderr=PIPE, keep=keep)
    with process:
        collected = _Collected(cap, stop_at_cap)
        group.begin(process)
        try:
            timed_out = not collected.read(process, started + timeout, reap=not leftovers)
        finally:
            _end(process, leftovers=leftovers)
            group.leave(process)
    if stop_at_cap:
        group.check()  # ended while quitting: what it printed is not its answer
    return _logged(
        Finished(
            words,
            process.returncode,
            collected.stdout.whole(),
            collected.stderr.whole(),
            time.monotonic() - started,
            truncated=collected.truncated,
            timed_out=timed_out,
        )
    )


def run_to_files(
    argv: Sequence[str | os.PathLike[str]],
    *,
    out: Path,
    err: Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float,
    cap: int = 64 << 20,
    most: int = 1 << 30,
    grace: float = 10.0,
    started: Callable[[int], None] = lambda pid: None,
    stop: Callable[[], bool] = lambda: False,
) -> Finished:
    """Run a program with its output in files, so that it survives if the console is killed.

    However it ends, the rest of its session is ended too.

    Args:
        out, err: output files, created anew and kept.
        timeout: seconds after which it is ended.
        cap: bytes returned from the end of each stream, where a report is.
        most: bytes of output after which it is ended, before it fills the disk.
        grace: seconds to end by itself after an interrupt.
        started: called with the process id at once.
        stop: polled a few times a second; once true, the program is interrupted as by ctrl+c.

    Raises:
        OSError: the program cannot be started or a file cannot be created.
    """
    words = tuple(os.fspath(word) for word in argv)
    begun = time.monotonic()
    flags = os.O_WRONLY | os.O_TRUNC
    with open(open_own(out, flags), "wb") as to_out, open(open_own(err, flags), "wb") as to_err:
        with contextlib.suppress(OSError):
            fcntl.flock(to_out, fcntl.LOCK_EX | fcntl.LOCK_NB)  # inherited by the program, for `files.is_locked`
        process = start(words, cwd=cwd, env=env, stdout=to_out, stderr=to_err)
    members: set[Member] = set()

    def stopped() -> bool:
        if not stop():
            return False
        from helix_tui.core.ground.processes.family import family

        members.update(family(process.pid))  # a process that leaves the session is known only through its parent
        return True

    with process:
        try:
            started(process.pid)
            timed_out, full = _watch_files(process, (out, err), begun + timeout, most, grace, stopped)
        finally:
            _end(process, leftovers=True, seen=members)
    return _logged(
        Finished(
            words,
            process.returncode,
            read_last(out, cap),
            read_last(err, cap),
            time.monotonic() - begun,
            truncated=full,
            timed_out=timed_out,
        )
    )


def _logged(done: Finished) -> Finished:
    """Log the command, its result and its duration; texts and output only at debug level."""
    how = "no answer in time" if done.timed_out else f"rc {done.rc}"
    logs.program(done.argv, f"{how}, output cut" if done.truncated else how, done.seconds)
    log = logs.logger("process")
    if log.isEnabledFor(10):  # logging.DEBUG
        log.debug("argv %r, stderr %r", list(done.argv), done.err[-_SHOWN:])
    return done


def _watch_files(
    process: Process,
    files: Sequence[Path],
    deadline: float,
    most: int,
    grace: float,
    stop: Callable[[], bool],
) -> tuple[bool, bool]:
    """Wait for a program to end; return (timed out, printed too much)."""
    interrupted = False
    while True:
        if _has_ended(process, _WATCH_S, step=_WATCH_S / 2):
            return False, False
        if time.monotonic() > deadline:
            # ended here after an interrupt is not a timeout
            return not interrupted, False
        if sum(path.stat().st_size for path in files if path.exists()) > most:
            return False, True
        if not interrupted and stop():
            interrupted = True
            deadline = min(deadline, time.monotonic() + grace)
            _signal_group(process, signal.SIGINT)


class _Stream:
    """The kept part of one stream: its beginning and, where wanted, its end."""

    def __init__(self, cap: int, last: int) -> None:
        self.truncated = False
        self._cap, self._last = cap, last
        self._head, self._tail = bytearray(), bytearray()

    def take(self, data: bytes) -> None:
        room = self._cap - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        self.truncated = self.truncated or len(data) > room
        # trimmed now and then, not at every read
        if len(self._tail) > _CHUNK + self._last:
            self._tail = self._end()

    def whole(self) -> bytes:
        tail = self._end()
        return bytes(self._head[: self._cap - len(tail)] + tail)

    def _end(self) -> bytearray:
        return self._tail[-self._last :] if self._last else bytearray()


class _Collected:
    def __init__(self, cap: int, stop_at_cap: bool) -> None:
        last = 0 if stop_at_cap else min(cap // 2, _LAST)
        self.stdout, self.stderr = _Stream(cap, last), _Stream(cap, last)
        self._stop_at_cap = stop_at_cap

    @property
    def truncated(self) -> bool:
        return self.stdout.truncated or self.stderr.truncated

    def read(self, process: Process, deadline: float, *, reap: bool = True) -> bool:
        """Read both streams to their end; False on timeout.

        A child that outlives the program and holds its streams open is not waited for.
        """
        assert process.stdout is not None
        assert process.stderr is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ, self.stdout)
            selector.register(process.stderr, selectors.EVENT_READ, self.stderr)
            while selector.get_map():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                ready = selector.select(min(left, _LINGER_S))
                # the program has ended and nothing more arrives: a child still holds its streams
                if not ready and _has_ended(process, 0.0):
                    break
                for key, _ in ready:
                    data = os.read(key.fd, _CHUNK)
                    if not data:
                        selector.unregister(key.fileobj)
                        continue
                    key.data.take(data)
                    if self.truncated and self._stop_at_cap:
                        return True
        if not reap:
            return _has_ended(process, max(0.0, deadline - time.monotonic()))
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except TimeoutExpired:
            return False
        return True


def _end(process: Process, *, leftovers: bool = False, seen: Iterable[Member] = ()) -> None:
    """End the program and its session if they still run, politely first.

    The program is reaped only after its session is gone, so that its id is not reused meanwhile.

    Args:
        leftovers: end its session even where the program has ended by itself.
        seen: processes it started earlier; those still running are ended with it.
    """
    if process.returncode is None and (leftovers or not _has_ended(process, 0.0)):
        from helix_tui.core.ground.processes.family import end, family

        end({*seen, *family(process.pid)})
    with contextlib.suppress(TimeoutExpired):
        process.wait(_GRACE_S)


def _signal_group(process: Process, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, sign)


def _has_ended(process: Process, within: float, *, step: float = _STEP_S) -> bool:
    """Whether a child ended within some seconds; does not reap it."""
    deadline = time.monotonic() + within
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(step)
    return True
