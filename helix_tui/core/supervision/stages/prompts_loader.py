"""The prompts of the stages: ours, or the repository's own in their place.

A prompt is Markdown with ``$name`` places. The repository overrides one by putting a file of the same name
into ``.helix/prompts/``; what it says of scope, facts and trailers it can take over by the same places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from helix_tui.core.ddx.files import read_bytes
from helix_tui.core.ground.project import Project
from helix_tui.core.supervision.stages.table import STAGES, Stage

MAX_PROMPT = 1 << 20

PLACES = ("scope", "request", "facts", "rounds", "autonomy", "stance", "trailers", "root", "bead")
"""What a prompt can name with ``$``."""


@dataclass(frozen=True, slots=True)
class StagePrompt:
    """One stage's prompt, ready to be given to an agent."""

    stage: Stage
    text: str
    source: Path | None
    """The repository's own file, or None where it is ours."""


def prompt_path(project: Project, stage: Stage) -> Path:
    """Where a repository puts its own prompt for a stage."""
    return project.helix_dir / "prompts" / f"{stage.name}.md"


def render(project: Project, stage: Stage, values: Mapping[str, str]) -> StagePrompt:
    """A stage's prompt with its places filled; a ``$`` that names no place stays as it is."""
    own = prompt_path(project, stage)
    raw = read_bytes(own, MAX_PROMPT)
    template = raw.decode("utf-8", "replace") if raw and raw.strip() else _shipped(stage)
    filled = dict.fromkeys(PLACES, "") | {
        "stance": stage.stance,
        "trailers": _contract(stage),
        "root": str(project.root),
        "scope": stage.scope,
        **values,
    }
    text = Template(template).safe_substitute(filled).strip() + "\n"
    context = read_bytes(project.helix_dir / "context.md", MAX_PROMPT)
    if context and stage.writes:
        text = f"{context.decode('utf-8', 'replace').strip()}\n\n---\n\n{text}"
    return StagePrompt(stage, text, own if raw and raw.strip() else None)


def _shipped(stage: Stage) -> str:
    return (
        files("helix_tui.core.supervision.stages")
        .joinpath("prompts", f"{STAGES[stage.name].name}.md")
        .read_text("utf-8")
    )


def _contract(stage: Stage) -> str:
    """The trailers as lines that an agent can copy."""
    lines = []
    for trailer in stage.trailers:
        value = " | ".join(trailer.words) or ("<number>" if trailer.count else "<text>")
        lines.append(f"{trailer.name}: {value}")
    return "\n".join(lines)
