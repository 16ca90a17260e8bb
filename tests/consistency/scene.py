"""A project at an instant, and the command line to ask about it."""

from __future__ import annotations

import argparse
import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helix_tui.cli.call import Call
from helix_tui.cli.program import main


@dataclass
class Scene:
    """A project at an instant."""

    root: Path
    now: str
    _asked: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict)

    def ask(self, *words: str) -> dict[str, Any]:
        """The JSON document that a command prints; a scene stands still, so it is asked once."""
        if words in self._asked:
            return self._asked[words]
        code, out = self.run(*words, "--json")
        assert code == 0, f"{words}: exit code {code}: {out[:400]}"
        document = json.loads(out)
        assert isinstance(document, dict)
        self._asked[words] = document
        return document

    def lines(self, *words: str) -> list[str]:
        """The lines that a command prints for people."""
        code, out = self.run(*words)
        assert code == 0, f"{words}: exit code {code}: {out[:400]}"
        return out.splitlines()

    def run(self, *words: str) -> tuple[int, str]:
        """Call the program in this process; what it printed, and on trouble what it complained of."""
        raw = io.BytesIO()
        out = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
        aside = io.StringIO()
        with redirect_stdout(out), redirect_stderr(aside):
            code = main([*words, "-C", str(self.root), "--now", self.now, "--no-color", "--read-only"])
            sys.stdout.flush()
        return code, raw.getvalue().decode() + (aside.getvalue() if code else "")

    def call(self, command: str) -> Call:
        """A call of the command line, as its functions take it."""
        given = {
            "directory": self.root,
            "now": self.now,
            "json": True,
            "read_only": True,
            "no_color": True,
            "ddx": None,
        }
        return Call.of(command, argparse.Namespace(**given))
