"""``helix-tui doctor --bundle FILE``: what a defect report needs, in one archive.

No secrets are in it, and no texts of beads.

The archive is a zip of text files; what is in it is listed on stdout, so that whoever attaches it knows.
"""

from __future__ import annotations

import os
import platform
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from helix_tui import __version__
from helix_tui.cli.call import Call, CliError
from helix_tui.cli.loading import locate
from helix_tui.cli.report.checks import DoctorCheck
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.log import BACKUPS, MAX_BYTES, scrubbed
from helix_tui.core.ground.project import Project, files_below
from helix_tui.settings import settings_file

_PACKAGES = ("textual", "rich", "watchfiles", "msgspec", "sqlite-utils", "numpy", "tokenizers")
_SIZES = (".ddx", ".helix", ".git/info")
"""Folders whose files are listed with their sizes."""
_MAX_LISTED = 500
"""Files that a folder's list names; the rest is counted."""
_VARIABLES = ("TERM", "COLORTERM", "LANG", "LC_ALL", "NO_COLOR", "TMUX", "SHELL", "EDITOR", "TEXTUAL")
"""Variables whose values are told; of ours and of DDx's (HELIX_…, DDX_…) only that they are set."""


def write_bundle(call: Call, target: Path, checks: Sequence[DoctorCheck]) -> list[tuple[str, int]]:
    """Write the archive; (name, bytes) of what is in it.

    Raises:
        CliError: it exists already, or cannot be written.
    """
    project = locate(call)
    parts = _with_contents(list(_parts(project, checks)))
    try:
        with open(target, "xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in parts:
                archive.writestr(name, text)
    except FileExistsError:
        raise CliError(f"{target} exists already", "Name a file that does not exist yet.") from None
    except OSError as error:
        raise CliError(
            f"the bundle cannot be written: {target}: {error.strerror or error}", "Name another place."
        ) from None
    return [(name, len(text)) for name, text in parts]


def _with_contents(parts: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """The parts, and before them one that lists them, for whoever gets the archive without our words."""
    listed = "".join(f"{len(text):>12,}  {name}\n" for name, text in parts)
    return [("contents.txt", listed.encode()), *parts]


def _parts(project: Project, checks: Sequence[DoctorCheck]) -> Iterator[tuple[str, bytes]]:
    """(name, content), every text scrubbed of secrets and the home folder."""
    home = str(Path.home())

    def clean(text: str) -> bytes:
        return scrubbed(text).replace(home, "~").encode("utf-8", "replace")

    yield "versions.txt", clean("\n".join(_versions()) + "\n")
    yield (
        "checks.json",
        clean(_json([{"name": c.name, "ok": c.ok, "detail": c.detail, "fix": c.fix} for c in checks])),
    )
    yield "sizes.txt", clean("\n".join(_sizes(project.root)) + "\n")
    yield "tracker.json", clean(_json(_tracker(project)))
    yield "environment.txt", clean("\n".join(_environment()) + "\n")
    settings = settings_file()
    if settings.is_file():
        yield "settings.toml", clean(_read(settings))
    own, user = logs.log_file(), logs.state_folder() / "logs" / logs.NAME
    for folder, path in (("log", own), *((("log-of-the-user", user),) if user != own else ())):
        for number in range(BACKUPS + 1):
            each = path.with_name(f"{path.name}.{number}") if number else path
            if each.is_file():
                yield f"{folder}/{each.name}", clean(_read(each))


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(2 * MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return f"cannot be read: {error}\n"


def _versions() -> Iterator[str]:
    yield f"helix-tui {__version__}"
    yield f"Python {platform.python_version()} ({platform.python_implementation()})"
    yield f"{platform.system()} {platform.release()} {platform.machine()}"
    for name in _PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield f"{name} missing"


def _sizes(root: Path) -> Iterator[str]:
    """Sizes of our files and of DDx's, no contents."""
    for folder in _SIZES:
        top = root / folder
        if not top.is_dir():
            yield f"{folder}/  missing"
            continue
        count = total = 0
        for path, size in files_below(top):
            count, total = count + 1, total + size
            if count <= _MAX_LISTED:
                yield f"{size:>12,}  {path.relative_to(root)}"
        yield f"{total:>12,}  {folder}/ in all, {count:,} files"


def _tracker(project: Project) -> dict[str, Any]:
    """Counts of the tracker: beads by era, by status, and what could not be read. No texts."""
    from collections import Counter

    from helix_tui.core.beads.readiness import classify
    from helix_tui.core.beads.tracker import read_tracker
    from helix_tui.core.ground.time import now_ns

    tracker = read_tracker(project.beads_file)
    queue = classify(tracker.beads, now=now_ns(), era="auto")
    return {
        "beads": len(tracker.beads),
        "rule": queue.rule,
        "statuses": dict(Counter(bead.status for bead in tracker.beads.values())),
        "states": dict(Counter(queue.standing(bead_id).state for bead_id in tracker.beads)),
        "dropped": [[row.line, row.reason] for row in tracker.dropped][:100],
        "missing": tracker.missing,
        "problem": tracker.problem,
    }


def _environment() -> Iterator[str]:
    for name in _VARIABLES:
        yield f"{name}={os.environ.get(name, '')}"
    for name in sorted(os.environ):
        if name.startswith(("HELIX_", "DDX_")):
            yield f"{name} is set"
