"""The context of one command: its words, the project with its settings, the tracker, and its output.

Of ``.ddx/config.yaml`` only a few plain settings are obeyed, so it is searched, not parsed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from helix_ddx.files import pretty
from helix_ddx.flags import GivenFlags
from helix_tui.core.ground.project import Project, find_project
from helix_tui.core.ground.time import now_ns

if TYPE_CHECKING:
    from helix_ddx.store.tracker import BeadStore

_SECTION = re.compile(r"(?m)^(\w+):[ \t]*(\{[^}\n]*\})?[ \t]*(?:#.*)?$")
_SCALAR = r"[ \t]*:[ \t]*(?:\"([^\"\n]*)\"|'([^'\n]*)'|([^\s#,}][^\n#,}]*))"


# `cached_property` keeps its value in the dictionary of an instance
class Workspace(Struct, frozen=True, dict=True):
    """One project with a tracker, or with a place for one."""

    project: Project
    env: Mapping[str, str]

    @property
    def ddx(self) -> Path:
        """DDx's folder."""
        return self.project.ddx_dir

    @property
    def root(self) -> Path:
        """The folder that DDx calls the project: the one that holds ``.ddx``."""
        return self.ddx.parent if self.ddx.name == ".ddx" else self.ddx

    @cached_property
    def _config(self) -> str:
        try:
            return (self.ddx / "config.yaml").read_text(encoding="utf-8", errors="replace")[: 1 << 20]
        except OSError:
            return ""

    def setting(self, section: str, name: str) -> str:
        """A plain setting, ``git.auto_commit``; empty where there is none."""
        return read_setting(self._config, section, name)

    def prefix(self) -> str:
        """What ids begin with, up to and with the dash."""
        wanted = self.env.get("DDX_BEAD_PREFIX") or self.setting("bead", "id_prefix") or self._folder_name()
        return wanted if wanted.endswith("-") else f"{wanted}-"

    def _folder_name(self) -> str:
        """The name of the git root's folder, as git itself would name it."""
        start = self.root.resolve()
        for folder in (start, *start.parents):
            if (folder / ".git").exists():
                return folder.name or "bx"
        return start.name or "bx"


def find_workspace(here: Path, env: Mapping[str, str]) -> Workspace:
    """The workspace that a folder lies in."""
    return Workspace(find_project(here, env=env), env)


def read_setting(config: str, section: str, name: str) -> str:
    """One plain value of a config.yaml, two levels deep, in block or in flow style."""
    starts = list(_SECTION.finditer(config))
    for place, start in enumerate(starts):
        if start[1] != section:
            continue
        end = starts[place + 1].start() if place + 1 < len(starts) else len(config)
        if start[2]:
            match = re.search(rf"[{{,][ \t]*{re.escape(name)}{_SCALAR}", start[2])
        else:
            match = re.search(rf"(?m)^[ \t]+{re.escape(name)}{_SCALAR}", config[start.end() : end])
        if match:
            return next((group for group in match.groups() if group is not None), "").strip()
    return ""


class VerbCall(Struct, dict=True):
    """One command.

    Attributes:
        out: pieces of the answer, printed when the command has ended well or badly.
        err: lines for people, printed as they come.
    """

    given: GivenFlags
    clock: Callable[[], int] = now_ns
    env: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    out: list[bytes] = []
    err: list[str] = []
    here: Path = field(default_factory=Path.cwd)

    @property
    def id(self) -> str:
        """The first word: the bead's id."""
        return self.given.words[0]

    @cached_property
    def workspace(self) -> Workspace:
        """The project that the command is given in."""
        return find_workspace(self.here, self.env)

    @cached_property
    def store(self) -> BeadStore:
        """Its tracker."""
        from helix_ddx.store.tracker import BeadStore  # the help needs none

        return BeadStore(self.workspace.ddx, warn=self.warn, clock=self.clock)

    def say(self, text: str) -> None:
        """Add a line to the answer."""
        self.out.append(text.encode("utf-8", "replace") + b"\n")

    def say_json(self, value: Any) -> None:
        """Make the answer a JSON document whose fields are sorted."""
        self.out.append(pretty(value).encode("utf-8", "replace"))

    def warn(self, line: str) -> None:
        """Print a message for the user beside the answer."""
        self.err.append(line)

    def assignee(self) -> str:
        """Who acts here."""
        names = ("DDX_AGENT_NAME", "USER", "LOGNAME", "USERNAME", "SUDO_USER")
        return next((self.env[name] for name in names if self.env.get(name)), "ddx")
