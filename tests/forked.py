"""Python programs of the tests as forks of one that has loaded everything: to load a ddx costs fifty times its answer.

`ForkedPopen` stands in place of `subprocess.Popen` behind the product's door to programs. The embedded tracker and the
scripts that `tests.programs` writes are forked by a server (this module, run as a program); every other program is
started as ever. What is forked is a child of this process with a pid, folder, environment, session and streams of its
own; only its command line is the server's. Linux alone lets a process adopt its grandchildren, so elsewhere, and in
tests marked ``processes``, every program is started.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helix_tui.core.editing.execute.gate import EMBEDDED
from tests.programs import SCRIPT

CAN_FORK = sys.platform == "linux"
_ADOPT = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""
_MOST = 1 << 18
"""Bytes of a request: its words and its environment."""


def job_of(path: str, words: Sequence[str]) -> tuple[str, list[str]] | None:
    """The module or script that is run so, and its own words; None if it is something else."""
    if tuple(words[: len(EMBEDDED)]) == EMBEDDED:
        return "helix_ddx", list(words[len(EMBEDDED) :])
    if path == str(Path(sys.executable).with_name("helix-ddx")):
        return "helix_ddx", list(words[1:])
    with open(path, "rb") as file:
        return (path, list(words[1:])) if file.read(len(SCRIPT)) == SCRIPT.encode() else None


class ForkedPopen(subprocess.Popen[bytes]):
    """A program of the tests as a fork, any other as ever."""

    def _execute_child(self, args: Any, executable: Any, *rest: Any) -> None:
        job = job_of(executable, args)
        if job is None:
            super()._execute_child(args, executable, *rest)  # type: ignore[misc]
            return
        keep, cwd, env = rest[2:5]
        given, _, _, out, _, err = rest[8:14]
        request = {"job": job, "cwd": cwd and os.fspath(cwd), "env": dict(os.environ if env is None else env)}
        request |= {"session": rest[19], "keep": list(keep)}
        self.pid = _server().spawn(request, [given, out, err, *keep])
        self._child_created = True
        self._close_pipe_fds(*rest[8:14])  # type: ignore[attr-defined]


class _Server:
    """The other end of the socket."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [sys.executable, "-m", "tests.forked", str(theirs.fileno())]
        self._program = subprocess.Popen(argv, pass_fds=(theirs.fileno(),), start_new_session=True)
        theirs.close()
        atexit.register(self._close)

    def _close(self) -> None:
        self._socket.close()
        self._program.wait()

    def spawn(self, request: dict[str, Any], descriptors: Sequence[int]) -> int:
        """The pid of a new child of this process."""
        with self._lock:
            _adopt(True)
            try:
                socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
                pid = int(self._socket.recv(_MOST))
                self._socket.recv(_MOST)  # its parent has ended
            finally:
                _adopt(False)
        return pid


@functools.cache
def _server() -> _Server:
    return _Server()


def _adopt(whether: bool) -> None:
    if ctypes.CDLL(None).prctl(_ADOPT, int(whether), 0, 0, 0):
        raise OSError("prctl")


def _serve(descriptor: int) -> None:
    """Fork a grandchild for each request, until there are no more."""
    for package in ("helix_ddx", "helix_ddx.verbs", "helix_ddx.store", "helix_ddx.simulator"):
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
            if module.name != "__main__":
                importlib.import_module(f"{package}.{module.name}")
    importlib.import_module("tests.double")
    line = socket.socket(fileno=descriptor)
    while True:
        data, descriptors, _, _ = socket.recv_fds(line, _MOST, 16)
        if not data:
            return
        between = os.fork()
        if not between:
            child = os.fork()
            if not child:
                _become(json.loads(data), descriptors)
            line.send(str(child).encode())
            os._exit(0)
        os.waitpid(between, 0)
        for each in descriptors:
            os.close(each)
        line.send(b"ended")


def _become(request: dict[str, Any], descriptors: Sequence[int]) -> None:
    """Be the program that was asked for, to its end."""
    code = 1
    try:
        if request["session"]:
            os.setsid()
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(sign, signal.default_int_handler if sign == signal.SIGINT else signal.SIG_DFL)
        # above all that is open here, so that none is overwritten before it is in its place
        high = [os.dup2(descriptor, 200 + place) for place, descriptor in enumerate(descriptors)]
        for place, each in zip((0, 1, 2, *request["keep"]), high, strict=True):
            os.dup2(each, place)
        wanted = {0, 1, 2, *request["keep"]}
        for each in range(3, 300):
            if each not in wanted:
                with contextlib.suppress(OSError):  # it may not be open
                    os.close(each)
        os.chdir(request["cwd"] or "/")
        os.environ.clear()
        os.environ.update(request["env"])
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r")), "utf-8")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w")), "utf-8")
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(2, "w")), "utf-8", "backslashreplace", write_through=True
        )
        code = _run(*request["job"])
        sys.stdout.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(end.code + "\n")
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130
    except BaseException:  # noqa: BLE001 - as Python does at the end of a program
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _run(program: str, words: list[str]) -> int:
    sys.argv = [program, *words]
    if program == "helix_ddx":
        from helix_ddx.__main__ import main

        return main(words)
    sys.path.insert(0, os.path.dirname(program))
    runpy.run_path(program, run_name="__main__")
    return 0


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
