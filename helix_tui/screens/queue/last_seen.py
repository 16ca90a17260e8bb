"""Where a missing bead was last seen, in words."""

from __future__ import annotations

from functools import lru_cache

from helix_tui.core.ddx.history import BeadHistory
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, format_age


@lru_cache(maxsize=4)
def _history(project: Project) -> BeadHistory:
    return BeadHistory(project)


def last_seen_words(project: Project, bead_id: str, now: int) -> str:
    """One sentence. This may run git: call it from a worker."""
    seen = _history(project).last_seen(bead_id)
    if seen is None:
        return "neither the archive nor the git history knows it"
    age = f", {format_age((now - seen.when) / NS)} ago" if seen.when is not None else ""
    where = "in the archive" if seen.where == "archive" else f"in git before {seen.rev[:8]}"
    return f"{where} as {clean_line(seen.status, 30)}{age}: {clean_line(seen.title, 200)}"
