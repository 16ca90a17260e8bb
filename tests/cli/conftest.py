"""Run the command line, inside this process where that is enough and as a real program where it is not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from helix_tui.cli.program import main


@dataclass(frozen=True)
class Ran:
    """What came of one call."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout."""
        document = json.loads(self.out)
        assert isinstance(document, dict)
        return document


Cli = Callable[..., Ran]


@pytest.fixture
def cli(capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Call the program in this process."""

    def call(*words: object) -> Ran:
        code = main([str(word) for word in words])
        sys.stdout.flush()
        captured = capfdbinary.readouterr()
        return Ran(code, captured.out.decode(), captured.err.decode())

    return call


@pytest.fixture
def program() -> Cli:
    """Call the program as a process of its own."""

    def call(*words: object, stdin: bytes = b"") -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "helix_tui", *map(str, words)],
            input=stdin,
            capture_output=True,
            timeout=60,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call
