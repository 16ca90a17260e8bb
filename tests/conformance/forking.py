"""Our helix-ddx, loaded once and forked for each command: what costs most of a short command is loading it.

``forking.py`` reads one request a line (argv, cwd, env, where output goes) and answers with the exit code. A
command still is a process of its own, with its own pid, folder and environment.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any


def serve() -> None:
    """Answer requests until there are no more."""
    program = importlib.import_module("helix_ddx.__main__")
    package = importlib.import_module("helix_ddx.verbs")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            os._exit(_run(program.main, request))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


def _run(main: Any, request: dict[str, Any]) -> int:
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for descriptor, path in ((1, request["out"]), (2, request["err"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), descriptor)
    try:
        code = int(main(request["argv"]))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


class ForkingDdx:
    """The other end of the line."""

    def __init__(self, folder: Path) -> None:
        self.out, self.err = folder / "out", folder / "err"
        self.server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, argv: list[str], cwd: Path, env: dict[str, str]) -> tuple[int, str, str]:
        """One command; its exit code, its output and what it said beside it."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        request = {"argv": argv, "cwd": str(cwd), "env": env, "out": str(self.out), "err": str(self.err)}
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        code = int(self.server.stdout.readline())
        return code, self.out.read_text("utf-8"), self.err.read_text("utf-8")

    def close(self) -> None:
        """End it."""
        self.server.communicate(timeout=30)


if __name__ == "__main__":
    serve()
