"""Where the tracker of a command lies, and the few settings of ``.ddx/config.yaml`` that it obeys.

Rules: docs/formats/ddx.md §0 (conventions), §1 (ids), §6 (settings).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.core.ground.project import Project, find_project

if TYPE_CHECKING:
    pass

_SECTION = re.compile(r"(?m)^(\w+):[ \t]*(\{[^}\n]*\})?[ \t]*(?:#.*)?$")
_SCALAR = r"[ \t]*:[ \t]*(?:\"([^\"\n]*)\"|'([^'\n]*)'|([^\s#,}][^\n#,}]*))"


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
            found = re.search(rf"[{{,][ \t]*{re.escape(name)}{_SCALAR}", start[2])
        else:
            found = re.search(rf"(?m)^[ \t]+{re.escape(name)}{_SCALAR}", config[start.end() : end])
        if found:
            return next((group for group in found.groups() if group is not None), "").strip()
    return ""
