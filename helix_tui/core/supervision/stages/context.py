"""``.helix/context.md``: what an agent should know of the repository before it does anything.

Format: docs/formats/helix.md §1a. It is made anew when a run starts, when the focus changes and after every
fifth completed cycle; the build and test commands are those of the Quick Reference in AGENTS.md.
"""

from __future__ import annotations

import re
from pathlib import Path

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.files import read_bytes
from helix_tui.core.ground.files import replace_file
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line

EVERY = 5
"""Completed cycles after which it is refreshed."""

_RULES = """## Key Rules

- Carry out the bead you were given; what is not in its acceptance is not part of it.
- Authority order: Vision > PRD > Specs > Architecture > Designs > Tests > Code
- Verify what you changed, not the whole workspace.
- Absorb small adjacent work (<100 lines, same module) instead of creating tickets.
- Use ddx bead subcommands for all issue operations.
- Commit with the bead's id in the message."""

_HEADING = re.compile(r"^#.*[Qq]uick [Rr]eference")


def context_path(project: Project) -> Path:
    """Where it stands."""
    return project.helix_dir / "context.md"


def refresh_context(project: Project, queue: Queue, *, epic: str = "") -> Path:
    """Make the context anew from the repository and the queue.

    Raises:
        OSError: it cannot be written.
    """
    path = context_path(project)
    replace_file(path, context_text(project, queue, epic=epic).encode("utf-8", "replace"))
    return path


def context_text(project: Project, queue: Queue, *, epic: str = "") -> str:
    """The context as Markdown."""
    statuses = [bead.status for bead in queue.beads.values()]
    counts = (
        f"ready={len(queue.ready)}, open={statuses.count('open')}, "
        f"in-progress={statuses.count('in_progress')}, closed={statuses.count('closed')}"
    )
    head = f"# HELIX Execution Context\n\nProject root: {project.root}\nTracker: {project.beads_file}\n"
    parts = [f"{head}Issue counts: {counts}"]
    commands = quick_reference(project)
    if commands:
        parts.append(f"## Build/Test Commands\n\n```bash\n{commands}\n```")
    bead = queue.beads.get(epic)
    if bead is not None:
        rows = {
            "ID": bead.id,
            "Title": bead.title,
            "Spec": bead.spec_id,
            "Acceptance": bead.document().get("acceptance"),
        }
        lines = [f"{name}: {clean_line(value, 1000)}" for name, value in rows.items() if value]
        parts.append("## Current Epic\n\n" + "\n".join(lines))
    return "\n\n".join([*parts, _RULES]) + "\n"


def quick_reference(project: Project) -> str:
    """The first bash fence of the Quick Reference in AGENTS.md; empty where there is none."""
    raw = read_bytes(project.root / "AGENTS.md", 1 << 20)
    lines = clean_block((raw or b"").decode("utf-8", "replace")).split("\n")
    start = next((n for n, line in enumerate(lines) if _HEADING.match(line)), None)
    if start is None:
        return ""
    inside: list[str] = []
    open_fence = False
    for line in lines[start + 1 :]:
        fence = line.strip()
        if not open_fence and re.match(r"```(bash|sh|shell|console)\b", fence):
            open_fence = True
        elif open_fence and fence.startswith("```"):
            return "\n".join(inside)
        elif open_fence:
            inside.append(line)
    return "\n".join(inside)
