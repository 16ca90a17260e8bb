"""The table of stages: stance, prompt, governing bead or not, effort, permissions and trailers of each.

Rules: docs/formats/helix.md §1, §3.7 and §6. A new planning command needs a row here, a prompt under ``prompts/`` and a
row in the command line's table.

`render` fills the prompt of a stage: the built-in one or the repository's own. A prompt is Markdown with ``$name``
placeholders. The repository overrides one with a file of the same name in ``.helix/prompts/``, which can use the same
placeholders for scope, facts and trailers.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from msgspec import Struct

from helix_tui.core.ground.files import read_bytes
from helix_tui.core.ground.project import Project
from helix_tui.core.supervision.signals.scope import WORD

STANCES = {
    "planning": "exploratory, assumption-surfacing, artifact-authoring",
    "execution": "contract-following, bounded, anti-feature-creep",
    "review": "adversarial, defect-seeking, risk-first",
    "alignment": "top-down, conservative, drift-seeking",
    "supervisory": "concise, state-oriented, policy-applying",
}
"""Family of stages -> the stance of its prompts (CONTRACT-001)."""

NEXT_ACTIONS = ("BUILD", "DESIGN", "POLISH", "ALIGN", "BACKFILL", "WAIT", "GUIDANCE", "STOP")
"""Every possible answer of a check."""

MAX_PROMPT = 1 << 20

PLACES = ("scope", "request", "facts", "rounds", "autonomy", "stance", "trailers", "root", "bead", "bead_rules")
"""The placeholders of a prompt; ``context`` is prepended to the prompt of a stage that writes."""

BEAD_RULES = """\
Each bead that you make keeps the rules that ddx's hook asks for: a label `helix`, one `phase:` label (or `activity:`,
where the repository uses that), its real dependencies, acceptance that a machine can check (a command and what it must
do, or a file or field and what it must be), and the document that governs it as `spec-id`. Where no document governs
it, its type is `chore`, never `task`: a chore needs none."""
"""The requirements for HELIX's own beads, given to every stage that creates some (docs/formats/helix.md §5)."""


class Trailer(Struct, frozen=True):
    """One ``NAME: value`` line required at the end of a stage's answer."""

    name: str
    words: tuple[str, ...] = ()
    """The allowed values; empty: any."""
    required: bool = False
    count: bool = False
    """Whether it is a whole number."""
    word: bool = False
    """Whether it is one word, a path or an id; anything after it is ignored."""


class Stage(Struct, frozen=True):
    """One kind of bounded work done with a prompt, not by executing a bead."""

    name: str
    family: str
    effort: str
    agent: str
    """``primary``, ``alternate`` or ``review``: which of the agents that check each other does it."""
    trailers: tuple[Trailer, ...] = ()
    governed: bool = False
    """Whether it needs a governing bead, claimed or created first."""
    writes: bool = True
    """Whether it changes documents or beads, so that its agent needs permission."""
    scope: str = WORD
    """Its default scope."""
    there: bool = False
    """Whether it examines existing things: a scope that matches nothing is refused before an agent is paid."""

    @property
    def stance(self) -> str:
        """The stance of its family."""
        return STANCES[self.family]

    @property
    def status(self) -> Trailer | None:
        """Its status trailer."""
        return self.trailers[0] if self.trailers else None


def _status(name: str, *words: str, required: bool = False) -> Trailer:
    return Trailer(name, words, required)


def _count(name: str) -> Trailer:
    return Trailer(name, count=True)


STAGES = {
    stage.name: stage
    for stage in (
        Stage(
            "check",
            "supervisory",
            "low",
            "alternate",
            (Trailer("NEXT_ACTION", NEXT_ACTIONS, required=True),),
            writes=False,
        ),
        Stage(
            "input",
            "planning",
            "high",
            "primary",
            (
                _status("INPUT_STATUS", "COMPLETE", "NEEDS_CLARIFICATION", "BLOCKED", required=True),
                Trailer("BEADS_CREATED"),
                Trailer("BEADS_UPDATED"),
                Trailer("AUTONOMY_LEVEL", ("low", "medium", "high")),
                Trailer("CONFLICTS"),
                Trailer("NEXT_ACTION", NEXT_ACTIONS),
            ),
        ),
        Stage(
            "frame", "planning", "high", "primary", (_status("FRAME_STATUS", "COMPLETE", "GUIDANCE_NEEDED", "BLOCKED"),)
        ),
        Stage(
            "design",
            "planning",
            "high",
            "primary",
            (
                _status("PLAN_STATUS", "CONVERGED", "COMPLETE", "GUIDANCE_NEEDED", "BLOCKED"),
                Trailer("PLAN_DOCUMENT", word=True),
                _count("PLAN_ROUNDS"),
            ),
        ),
        Stage(
            "polish",
            "planning",
            "medium",
            "alternate",
            (
                _status("POLISH_STATUS", "CONVERGED", "COMPLETE", "GUIDANCE_NEEDED", "BLOCKED"),
                _count("ISSUES_MODIFIED"),
                _count("ISSUES_CREATED"),
            ),
            there=True,
        ),
        Stage(
            "evolve",
            "planning",
            "high",
            "primary",
            (
                _status("EVOLUTION_STATUS", "COMPLETE", "GUIDANCE_NEEDED", "BLOCKED"),
                Trailer("ARTIFACTS_UPDATED"),
                Trailer("ISSUES_CREATED"),
                Trailer("CONFLICTS"),
            ),
        ),
        Stage(
            "align",
            "alignment",
            "high",
            "primary",
            (
                _status("ALIGN_STATUS", "COMPLETE", "INCOMPLETE", "BLOCKED"),
                _count("GAPS_FOUND"),
                _count("EXECUTION_ISSUES_CREATED"),
            ),
            governed=True,
            there=True,
        ),
        Stage(
            "backfill",
            "planning",
            "high",
            "primary",
            (
                _status("BACKFILL_STATUS", "COMPLETE", "GUIDANCE_NEEDED", "BLOCKED", required=True),
                Trailer("BACKFILL_REPORT", required=True, word=True),
                Trailer("RESEARCH_EPIC", required=True, word=True),
            ),
        ),
        Stage(
            "review",
            "review",
            "high",
            "review",
            (
                _status("REVIEW_STATUS", "CLEAN", "ISSUES_FOUND", required=True),
                _count("ISSUES_COUNT"),
                _count("FINDINGS_FILED"),
            ),
            scope="last-commit",
            there=True,
        ),
        Stage(
            "experiment",
            "execution",
            "high",
            "primary",
            (
                _status("EXPERIMENT_STATUS", "CONVERGED", "ITERATION_COMPLETE", "NO_IMPROVEMENT", "CLOSED"),
                _count("EXPERIMENT_ITERATIONS"),
                _count("EXPERIMENT_KEPT"),
                Trailer("EXPERIMENT_BEST"),
                Trailer("EXPERIMENT_CONFIDENCE"),
            ),
            scope="",
        ),
    )
}
"""Every stage by its name."""


class StagePrompt(Struct, frozen=True):
    """One stage's prompt, ready for an agent."""

    stage: Stage
    text: str
    source: Path | None
    """The repository's own file, or None for the built-in one."""


def prompt_path(project: Project, stage: Stage) -> Path:
    """The path of a repository's own prompt for a stage."""
    return project.helix_dir / "prompts" / f"{stage.name}.md"


def render(project: Project, stage: Stage, values: Mapping[str, str]) -> StagePrompt:
    """A stage's prompt with its placeholders filled; other ``$`` are left unchanged."""
    own = prompt_path(project, stage)
    raw = read_bytes(own, MAX_PROMPT)
    template = raw.decode("utf-8", "replace") if raw and raw.strip() else _shipped(stage)
    filled = dict.fromkeys(PLACES, "") | {
        "stance": stage.stance,
        "trailers": _contract(stage),
        "root": str(project.root),
        "bead_rules": BEAD_RULES,
        "scope": stage.scope,
        **values,
    }
    text = Template(template).safe_substitute(filled).strip() + "\n"
    context = values.get("context", "").strip()
    # a check, which writes nothing, gets the facts instead
    if context and stage.writes:
        text = f"{context}\n\n---\n\n{text}"
    return StagePrompt(stage, text, own if raw and raw.strip() else None)


def _shipped(stage: Stage) -> str:
    return (
        files("helix_tui.core.supervision.stages")
        .joinpath("prompts", f"{STAGES[stage.name].name}.md")
        .read_text("utf-8")
    )


def _contract(stage: Stage) -> str:
    """The trailers as lines for an agent to copy."""
    lines = []
    for trailer in stage.trailers:
        value = " | ".join(trailer.words) or ("<number>" if trailer.count else "<text>")
        lines.append(f"{trailer.name}: {value}")
    return "\n".join(lines)
