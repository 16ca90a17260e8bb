"""The console's terminal: Textual's driver, hardened against ways in which a terminal could end it.

Textual 8.2.8 stops reading keys on a byte that is not UTF-8 and on a report that it cannot parse, blocks
forever once a terminal takes no more output, stops drawing where another program left the terminal
non-blocking, spins on one that sends no more, starts a second time on SIGCONT after a SIGSTOP, and leaves the
terminal as it is on SIGTERM. Its driver creates its decoder and its writer itself: these names are replaced in its
module.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import selectors
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from encodings.utf_8 import IncrementalDecoder
from queue import Queue
from socket import socketpair
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, Any, TextIO, cast

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from helix_tui.core.ground import log as logs
from helix_tui.core.ground.processes.start import Process, start

if TYPE_CHECKING:
    from helix_tui.app import HelixApp

LEAVE = (signal.SIGTERM, signal.SIGHUP)
"""Signals on which the console quits as by a key; a second one of the same kind ends it at once."""
HELD_CHARS = 64_000
"""How much is held at most until the queue of a frame's pieces is empty."""
LAST_WRITE_S = 0.8
"""How long a terminal that takes nothing at all is waited for once the console quits."""
GUEST_S = 1.2
"""How long a program that has the terminal may take to end once the console quits."""

_KEY = re.compile(r"\x1b\[(\d+)(?:[;:][\d;:]*)?u")
"""A key in kitty's protocol, by its code point."""

MOST_DIGITS = 12

SHORT_WAITS = 3
"""How many short waits follow a key, of a tenth of a second each."""

WAITING_WRITES = 30
"""How many pieces wait for the terminal before the console waits for it, as in Textual."""

# a handler, since a program would inherit that a signal is ignored
_WHILE_LENT: dict[signal.Signals, Any] = {
    signal.SIGTSTP: signal.SIG_DFL,
    signal.SIGINT: lambda number, frame: None,
    signal.SIGQUIT: lambda number, frame: None,
}


class Decoder(IncrementalDecoder):
    """Reads UTF-8; an invalid byte becomes a replacement character, a key beyond Unicode nothing."""

    def __init__(self) -> None:
        super().__init__("replace")

    def decode(self, data: Any, final: bool = False) -> str:
        """Text of these bytes.

        Raises:
            EOFError: the input has ended.
        """
        # a closed terminal reads as no bytes again and again: Textual would spin on it
        if not data and not final:
            raise EOFError("the terminal is closed")
        return _KEY.sub(_possible, super().decode(data, final))


def _possible(key: re.Match[str]) -> str:
    """A key as it was sent, if its code point is one."""
    return key[0] if len(key[1]) < MOST_DIGITS and int(key[1]) <= sys.maxunicode else ""


class _Writer(threading.Thread):
    """Writes to the terminal; while quitting, what it does not take is discarded, so that nothing waits for it.

    In place of Textual's ``WriterThread``, whose methods it has.
    """

    def __init__(self, file: TextIO) -> None:
        super().__init__(daemon=True, name="terminal-output")
        self._waiting: Queue[str | None] = Queue(WAITING_WRITES)
        self._encoding = file.encoding
        self._leaving, self._taken_at = False, time.monotonic()
        self.discarded = False
        """Whether the terminal took no output while quitting."""
        try:
            # opened again, so that no other program that uses the terminal finds it non-blocking
            self._terminal = os.open(os.ttyname(file.fileno()), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:  # no terminal, or one of another user
            self._terminal = os.dup(file.fileno())

    def write(self, text: str) -> None:
        """Write a text, later."""
        self._waiting.put(text)

    def flush(self) -> None:
        """Nothing: what is written goes out as soon as it can."""

    def leave(self) -> None:
        """Wait for the terminal only a little while from now on."""
        self._leaving, self._taken_at = True, time.monotonic()

    def stop(self) -> None:
        """Write what is left, and stop."""
        if not self.discarded:
            self.leave()
        self._waiting.put(None)
        self.join()

    def run(self) -> None:
        """Write until stopped."""
        held, size = [], 0
        while True:
            text = self._waiting.get()
            # always taken from the queue: Textual waits for room in it, and would wait forever
            if text is not None:
                held.append(text)
                size += len(text)
            # a frame comes in many pieces
            if text is None or size >= HELD_CHARS or not self._waiting.qsize():
                self._send("".join(held).encode(self._encoding, "backslashreplace"))
                held, size = [], 0
            if text is None:
                os.close(self._terminal)
                return

    def _send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._terminal, rest) :]
                self._taken_at = time.monotonic()
            except BlockingIOError:
                if self._leaving and time.monotonic() > self._taken_at + LAST_WRITE_S:
                    self.discarded = True
                    return
                select.select([], [self._terminal], [], LAST_WRITE_S / 4)
            except OSError:
                return


class _Keys(selectors.SelectSelector):
    """Waits for keys. Textual waits a tenth of a second at a time, to see an escape that stands alone and its end: here
    only after a key, and until it is told that this is the end.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ends, self._begins = socketpair()
        self._short = 0
        """How many waits stay short."""
        self._ending = False
        self.register(self._ends, selectors.EVENT_READ)

    def end(self) -> None:
        """Wait no longer than Textual asks for."""
        self._ending = True
        with suppress(OSError):  # it has ended already
            self._begins.send(b".")

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What can be read."""
        ready = super().select(timeout if self._short or self._ending else None)
        typed = [(key, mask) for key, mask in ready if key.fileobj is not self._ends]
        self._short = SHORT_WAITS if typed else max(0, self._short - 1)
        if len(typed) < len(ready):
            self.unregister(self._ends)
        return typed

    def close(self) -> None:
        """Release it."""
        super().close()
        self._ends.close()
        self._begins.close()


class TerminalDriver(LinuxDriver):
    """Textual's driver for Linux and macOS, for `HelixApp`.

    Signals are handled in the event loop: a handler may interrupt a write to the
    terminal, and one that writes itself would then wait forever.
    """

    def __init__(self, app: HelixApp, **options: Any) -> None:
        super().__init__(app, **options)
        self._console, self._app_loop = app, asyncio.get_running_loop()
        app.terminal = self
        self._handlers: dict[signal.Signals, Any] = {}
        self._stopped = self._continued = self._deaf = False
        self._guest: Process | None = None
        self._output: _Writer | None = None
        self._input: _Keys | None = None
        # in place of Textual's
        signal.signal(signal.SIGTSTP, self._stop_soon)
        signal.signal(signal.SIGCONT, self._continue)

    def start_application_mode(self) -> None:
        """Take the terminal, and watch for signals to quit."""
        self._deaf = False
        linux_driver.selectors = SimpleNamespace(  # type: ignore[attr-defined, assignment]
            EVENT_READ=selectors.EVENT_READ, SelectSelector=self._open_input
        )
        linux_driver.WriterThread = self._open_output  # type: ignore[assignment, attr-defined]
        super().start_application_mode()  # type: ignore[no-untyped-call]
        for number in LEAVE:
            # this runs after every suspension too; under nohup, SIGHUP stays ignored
            if number not in self._handlers and signal.getsignal(number) is not signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, self._leave)

    def close(self) -> None:
        """Restore the terminal; at the end the signal handlers too."""
        super().close()
        if not self._console.leaving:  # the terminal is only lent
            return
        while self._handlers:
            signal.signal(*self._handlers.popitem())
        for number in (signal.SIGTSTP, signal.SIGCONT):
            signal.signal(number, signal.SIG_DFL)
        if self._output is not None and self._output.discarded:
            # the last lines of the command would wait for such a terminal forever
            self._write_nowhere()

    def _open_input(self) -> _Keys:
        # stored before the flag is read: `disable_input` sets the flag before it reads what is stored
        self._input = _Keys()
        if self._deaf:
            self._input.end()
        return self._input

    def disable_input(self) -> None:
        """Stop reading keys."""
        self._deaf = True
        if self._input is not None:
            self._input.end()
        super().disable_input()

    def _open_output(self, file: TextIO) -> _Writer:
        self._output = _Writer(file)
        return self._output

    @staticmethod
    def _write_nowhere() -> None:
        for stream in (sys.__stdout__, sys.__stderr__):
            os.dup2(os.open(os.devnull, os.O_WRONLY), cast(TextIO, stream).fileno())

    def lend(self, command: Sequence[str]) -> int:
        """Run a program in the terminal until it exits, while the app is suspended; return its exit code.

        It stops and continues with this process, as one job of the shell, ``ctrl+c`` is meant for it alone, and it is
        ended if this process has to quit.

        Raises:
            OSError: it does not start.
        """
        began = time.monotonic()
        before = {number: signal.signal(number, handler) for number, handler in _WHILE_LENT.items()}
        try:
            self._guest = start(command, stdin=None, stdout=None, stderr=None, own_session=False)
            # with a timeout it is polled: after a stop another thread may get a signal, which interrupts no wait here
            code = self._guest.wait(threading.TIMEOUT_MAX)
            logs.program(command, f"rc {code}", time.monotonic() - began)
            return code
        finally:
            self._guest = None
            for number, handler in before.items():
                signal.signal(number, handler)

    def _leave(self, number: int, _: FrameType | None) -> None:
        # restore the previous handler at once: a second signal is meant seriously
        before = self._handlers.pop(signal.Signals(number), signal.SIG_DFL)
        signal.signal(number, before)
        # the event loop may be waiting for the terminal, or for the program that has it
        if self._output is not None:
            self._output.leave()
        if self._stopped:
            # the terminal was restored before the stop and is the shell's: nothing more is written to it or read
            self._write_nowhere()
            os.dup2(os.pipe()[0], self.fileno)
        if self._guest is not None:
            self._guest.send_signal(number)
            threading.Timer(GUEST_S, self._guest.kill).start()
        # through the app's queue: an app that quits while it is starting would fail
        self._app_loop.call_soon_threadsafe(self._console.call_later, self._console.exit, None, 128 + number)

    def _stop_soon(self, *_: Any) -> None:
        self._continued = False
        self._app_loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        """Restore the terminal, stop unless SIGCONT has come, and take it again: another program may have used it."""
        self.suspend_application_mode()
        if not self._continued:
            self._stopped = True
            os.kill(os.getpid(), signal.SIGSTOP)
            while not self._continued:
                time.sleep(0.01)  # the process is stopped here
            self._stopped = False
        self.resume_application_mode()
        self._console.app_resume_signal.publish(self._console)
        # another program has drawn over it meanwhile
        self._console.call_later(self._console.refresh, layout=True)

    def _continue(self, *_: Any) -> None:
        self._continued = True
        if not self._stopped:
            self._app_loop.call_soon_threadsafe(self._stop)

    def run_input_thread(self) -> None:
        """Read until stopped; what cannot be parsed is logged and skipped."""
        while True:
            try:
                super().run_input_thread()
            except (EOFError, OSError):
                # while quitting, input is no longer needed
                if not self.exit_event.is_set():
                    self._console.call_later(self._console.panic)
            except Exception as error:  # noqa: BLE001 - the barrier logs it
                self._console.barrier.report(error)
                continue
            return


def install() -> None:
    """Make Textual's driver use our decoder; each driver of ours opens its own writer."""
    # a name in Textual's module: its driver creates it inside a method, where nothing can be passed in
    linux_driver.getincrementaldecoder = lambda _: Decoder  # type: ignore[assignment, attr-defined]
