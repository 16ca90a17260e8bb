"""What a repository brings that would run when a person changes something, and whether the person allowed it.

Hooks and lefthook files are known by their content, settings that name commands by their text, build gates by the
repository. What a hook calls is not read. HELIX's own hook is known by its digest (docs/security.md).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import is_file, names_in, read_bytes, status_of, text_of
from helix_tui.core.ground.git import ask_git, own_settings
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line, counted, fit
from helix_tui.core.ground.trust import person

OWN_HOOK = "c8fa336f814b948ce5bd7597c5f58fae7d66bdf092eaad357072f1e2b3ef85c4"
"""Digest of the hook that `install-hooks` writes."""

NOT_ALLOWED = 77
SHOWN_LINES = 5
_MAX_HOOK = 8 << 20
LEFTHOOK = ("lefthook.yml", "lefthook.yaml", ".lefthook.yml")
GATES = {"Cargo.toml": "cargo check", "package.json": "npm test"}
_GIT_PROGRAMS = (
    r"^(filter\..*\.(clean|smudge|process)|merge\..*\.driver|diff\..*\.(command|textconv)|diff\.external|credential\..*"
    r"|core\.(hookspath|fsmonitor|sshcommand|editor|askpass|gitproxy|pager|alternaterefscommand)|gpg\..*(program|command)"
    r"|remote\..*\.(vcs|uploadpack|receivepack)|trailer\..*\.(command|cmd)|submodule\..*\.update|protocol\..*allow)$"
)
_DDX_COMMAND = re.compile(r"^\s*-?\s*[\w-]*(?:command|cmd|exec|binary)s?\s*:\s*\S", re.IGNORECASE)


class Brought(Struct, frozen=True):
    """One thing of a repository that waits until the person allows it."""

    entry: person.Allowed
    """Its entry in the ledger, once it is allowed."""
    runs: str
    """When it runs, or why it is not used, in words."""
    lines: tuple[str, ...] = ()
    """Its first lines; none of a build gate."""

    @property
    def subject(self) -> str:
        """A file in the repository, or a command."""
        return self.entry.subject

    def describe(self) -> list[str]:
        """What it is, when it runs, its first lines."""
        return [f"{clean_line(self.subject, 120)}: {self.runs}", *(f"    {line}" for line in self.lines)]


class NotAllowed(HelixError, OSError):
    """Something that the repository brings would run, and the person has not allowed it."""

    exit_code = NOT_ALLOWED

    def __init__(self, project: Project, waiting: tuple[Brought, ...]) -> None:
        names = ", ".join(clean_line(brought.subject, 80) for brought in waiting[:4])
        more = f" and {len(waiting) - 4} more" if len(waiting) > 4 else ""
        super().__init__(
            f"nothing was changed: this repository brings {counted(len(waiting), 'thing')} that would run and that you "
            f"have not allowed: {names}{more}",
            "`helix-tui trust` shows and allows them.",
        )
        self.project, self.waiting = project, waiting


def brought_by(project: Project) -> tuple[Brought, ...]:
    """Everything of a repository that a change, a commit or a worker would run."""
    settings = _git_settings(project.root)
    return (*_hooks(project, settings[""]), *_settings(project, settings), *_gates(project))


def not_allowed(project: Project) -> tuple[Brought, ...]:
    """What of it the person has not allowed; empty where the repository brings nothing."""
    brought = brought_by(project)
    allowed = set(person.load()) if brought else set()
    return tuple(item for item in brought if item.entry not in allowed)


def require_allowed(project: Project, *, gated: bool) -> None:
    """Refuse to go on while something would run that the person has not allowed.

    Args:
        gated: whether the build gates would run too.

    Raises:
        NotAllowed: what it is.
    """
    waiting = tuple(brought for brought in not_allowed(project) if gated or brought.subject not in GATES.values())
    if waiting:
        raise NotAllowed(project, waiting)


def allow(brought: tuple[Brought, ...]) -> None:
    """Enter these in the person's ledger.

    Raises:
        LedgerUnreadable: the ledger exists and cannot be read.
        OSError: it cannot be written.
    """
    person.allow(*(item.entry for item in brought))


def allow_written(project: Project, path: Path) -> None:
    """Enter a hook that this program has just written: the person asked for it."""
    allow((_by_content(project, path, ""),))


def _git_settings(root: Path) -> dict[str, list[tuple[str, str]]]:
    """The settings of git that name programs, of this repository ("") and by the path of each submodule: a `git add`
    above looks into them.
    """
    settings: dict[str, list[tuple[str, str]]] = {}
    waiting = [""]
    while waiting:
        path = waiting.pop()
        settings[path] = own_settings(root / path, _GIT_PROGRAMS)
        listed = ask_git(root / path, "ls-files", "--stage", "-z")
        entries = [] if listed is None else os.fsdecode(listed.stdout).split("\0")
        submodules = [path + entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")]
        waiting += [f"{submodule}/" for submodule in submodules if status_of(root / submodule / ".git") is not None]
    return settings


def _hooks(project: Project, settings: list[tuple[str, str]]) -> Iterator[Brought]:
    folders = [(project.ddx_dir / "hooks", "ddx runs it at a change of a bead")]
    if project.common_dir is not None:
        folders.append((project.common_dir / "hooks", "git runs it at a commit, a merge or a push"))
    named = [project.root / value for name, value in settings if name == "core.hookspath"]
    folders += [(folder, "git runs it: core.hooksPath names its folder") for folder in named]
    for folder, runs in folders:
        for name in names_in(folder):
            path = folder / name
            if path.is_file() and os.access(path, os.X_OK) and not name.endswith(".sample"):
                brought = _by_content(project, path, runs)
                if brought.entry.digest != OWN_HOOK:
                    yield brought
    for name in LEFTHOOK:
        if is_file(project.root / name):
            yield _by_content(project, project.root / name, "lefthook runs its commands at a commit")


def _settings(project: Project, settings: Mapping[str, list[tuple[str, str]]]) -> Iterator[Brought]:
    for submodule, named in settings.items():
        lines = [f"{name} = {value}" for name, value in named if value not in ("", "true", "false")]
        if lines:
            runs = "git runs the programs that it names"
            yield _brought(project, f"{submodule}.git/config", runs, os.fsencode("\n".join(lines)))
    path = project.ddx_dir / "config.yaml"
    lines = [line.strip() for line in text_of(path).split("\n") if _DDX_COMMAND.match(line)]
    if lines:
        yield _brought(
            project, _name(project, path), "ddx runs the commands that it names", os.fsencode("\n".join(lines))
        )
    for name in names_in(project.ddx_dir / "checks"):
        yield _by_content(project, project.ddx_dir / "checks" / name, "ddx runs its command after an attempt")


def _gates(project: Project) -> Iterator[Brought]:
    for name, command in GATES.items():
        if is_file(project.root / name):
            yield _brought(project, command, f"`commit` runs it as the build gate of {name}")


def _by_content(project: Project, path: Path, runs: str) -> Brought:
    data = read_bytes(path, _MAX_HOOK)
    if data is None or len(data) == _MAX_HOOK:  # a link to elsewhere, or too large: known by the file itself
        status = path.stat()
        data = f"{os.path.realpath(path)} {status.st_ino} {status.st_size} {status.st_mtime_ns}".encode()
    return _brought(project, _name(project, path), runs, data)


def _brought(project: Project, subject: str, runs: str, content: bytes | None = None) -> Brought:
    digest = "" if content is None else hashlib.sha256(content).hexdigest()
    text = clean_block((content or b"").decode("utf-8", "replace"))
    lines = [fit(line, 120).rstrip() for line in text.split("\n") if line.strip()]
    if len(lines) > SHOWN_LINES:
        lines[SHOWN_LINES:] = [f"… {counted(len(lines) - SHOWN_LINES, 'more line')}"]
    entry = person.Allowed("run", os.path.realpath(project.main_root), subject, digest)
    return Brought(entry, runs, tuple(lines))


def _name(project: Project, path: Path) -> str:
    return os.path.relpath(path, project.main_root)
