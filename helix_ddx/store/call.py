"""What one command has to work with: its words, the tracker, and where to speak."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from helix_ddx.base.flags import GivenFlags
from helix_ddx.base.go_format import pretty
from helix_ddx.store.workspace import Workspace, find_workspace
from helix_tui.core.ground.time import now_ns

if TYPE_CHECKING:
    from helix_ddx.store.tracker import BeadStore


class VerbCall(Struct, dict=True):
    """One command.

    Attributes:
        out: pieces of the answer, printed when the command has ended well or badly.
        err: lines for people, printed as they come.
    """

    era: str
    given: GivenFlags
    clock: Callable[[], int] = now_ns
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    out: list[bytes] = []
    err: list[str] = []
    here: Path = field(default_factory=Path.cwd)

    @property
    def head(self) -> bool:
        """Whether the newer release is spoken."""
        return self.era == "head"

    @property
    def id(self) -> str:
        """The first word: the bead that is meant."""
        return self.given.words[0]

    @cached_property
    def workspace(self) -> Workspace:
        """The project that the command is given in."""
        return find_workspace(self.here, self.env)

    @cached_property
    def store(self) -> BeadStore:
        """Its tracker."""
        from helix_ddx.store.tracker import BeadStore  # the help needs none

        return BeadStore(self.workspace.ddx, self.era, warn=self.warn, clock=self.clock)

    def say(self, text: str) -> None:
        """Add a line to the answer."""
        self.out.append(text.encode("utf-8", "replace") + b"\n")

    def say_json(self, value: Any) -> None:
        """Make the answer a JSON document whose fields are sorted."""
        self.out.append(pretty(value).encode("utf-8", "replace"))

    def warn(self, line: str) -> None:
        """Tell the person something beside the answer."""
        self.err.append(line)

    def assignee(self) -> str:
        """Who acts here."""
        names = ("DDX_AGENT_NAME", "USER", "LOGNAME", "USERNAME", "SUDO_USER")
        return next((self.env[name] for name in names if self.env.get(name)), "ddx")
