"""Doing one stage: render its prompt, give it to an agent, hold its answer to the stage's contract."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.stages.commit import NO_TRAILERS, Trailers, parse_trailers
from helix_tui.core.supervision.stages.delegate import LOGS, AgentAnswer, AgentChoice, Delegate
from helix_tui.core.supervision.stages.table import Stage, render

CLEAN, ISSUES_FOUND = 0, 10
"""Exit codes of a review."""


class StageOutcome(Struct, frozen=True):
    """How a stage ended."""

    stage: Stage
    answer: AgentAnswer
    trailers: Trailers = NO_TRAILERS
    problems: tuple[str, ...] = ()
    """What the contract asks for and is not there."""
    code: int = 0
    """What the command exits with."""

    @property
    def ok(self) -> bool:
        """Whether it was done and its answer holds."""
        return not self.problems and not self.answer.problem

    @property
    def why(self) -> str:
        """What is wrong, in one line."""
        return self.answer.problem or "; ".join(self.problems)

    @property
    def status(self) -> str:
        """The word that says how it ended."""
        return self.trailers.get(self.stage.status.name) if self.stage.status else ""


def perform(
    project: Project, delegate: Delegate, stage: Stage, values: Mapping[str, str], wishes: AgentChoice, stamp: str
) -> StageOutcome:
    """Do a stage.

    Args:
        values: what fills the prompt's places (`prompting.PLACES`).
        stamp: begins the names of the files that keep prompt and answer.

    Raises:
        DdxError: no ddx (127), or one that cannot ask (69).
        OSError: the log folder cannot be written.
    """
    prompt = render(project, stage, values)
    answer = delegate.ask(prompt, wishes_for(stage, wishes), stamp)
    trailers = parse_trailers(answer.text, stage)
    return _held(project, StageOutcome(stage, answer, trailers, trailers.problems))


def wishes_for(stage: Stage, wishes: AgentChoice) -> AgentChoice:
    """Who does a stage, and with what effort: what was asked for, else what the stage's row says."""
    chosen = wishes.for_agent(stage.agent)
    return replace(chosen, effort=chosen.effort or stage.effort)


def command_of(project: Project, delegate: Delegate, stage: Stage, wishes: AgentChoice) -> tuple[str, ...]:
    """The exact command that a stage runs; the prompt's file is named, not written.

    Raises:
        DdxError: no ddx (127), or one that cannot ask (69).
    """
    place = Path(LOGS, f"<time>-{stage.name}.prompt.md")
    return ("ddx", *delegate.question(place, wishes_for(stage, wishes), writes=stage.writes))


def _held(project: Project, done: StageOutcome) -> StageOutcome:
    """The outcome with what its stage's own contract makes of it."""
    if done.answer.problem:
        return replace(done, code=max(done.answer.rc, 1), problems=())  # a signal has no code of its own
    judged = _JUDGES.get(done.stage.name, _plain)(project, done)
    return replace(judged, code=1) if judged.problems else judged


def _plain(project: Project, done: StageOutcome) -> StageOutcome:
    return replace(done, code=1 if done.status == "BLOCKED" else 0)


def _review(project: Project, done: StageOutcome) -> StageOutcome:
    """CLEAN 0, ISSUES_FOUND 10; findings without a count cannot be followed up."""
    if done.status != "ISSUES_FOUND":
        return done
    if done.trailers.number("ISSUES_COUNT") is None:
        return replace(done, problems=(*done.problems, "review output missing ISSUES_COUNT trailer"))
    return replace(done, code=ISSUES_FOUND)


def _backfill(project: Project, done: StageOutcome) -> StageOutcome:
    """Three trailers, and a report that exists inside the repository."""
    report = done.trailers.get("BACKFILL_REPORT")
    problems = list(done.problems)
    if report and not _inside(project, report):
        problems.append(f"declared backfill report does not exist: {clean_line(report, 200)}")
    return replace(done, problems=tuple(problems), code=1 if done.status == "BLOCKED" else 0)


def _inside(project: Project, name: str) -> bool:
    root = project.root.resolve()
    try:
        path = (root / name).resolve()
    except (OSError, ValueError):
        return False
    return path.is_relative_to(root) and path.is_file()


_JUDGES = {"review": _review, "backfill": _backfill}
