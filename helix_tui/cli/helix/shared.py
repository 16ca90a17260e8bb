"""What the HELIX commands share: the choice of agent, printing a command, and exit codes."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from helix_tui.cli.call import Call, CliError, locate
from helix_tui.cli.editing.change import clear_errors, curator_of
from helix_tui.core.editing.execute.curator import Curator, QueueState
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import capitalized, clean_block, clean_line
from helix_tui.core.supervision.signals.questions import OpenQuestions
from helix_tui.core.supervision.signals.responses import DEFAULT, LEVELS, Level, level_of
from helix_tui.core.supervision.stages.delegate import AgentChoice, Delegate, chosen, environment_options, unheard
from helix_tui.core.supervision.stages.stage_run import AlignmentActive
from helix_tui.settings.file import load_settings

__all__ = ["clear_errors", "curator_of"]


def add_agent_options(parser: argparse.ArgumentParser, *, dry_run: bool = True) -> None:
    """Add the options that choose the agent, its model and its limits."""
    group = parser.add_argument_group("the agent that does the work")
    group.add_argument(
        "--agent", "--harness", dest="agent", default="", metavar="NAME", help="the harness that ddx starts"
    )
    for name in ("claude", "codex", "ddx-agent", "embedded", "forge"):
        group.add_argument(f"--{name}", dest="agent", action="store_const", const=name, help=argparse.SUPPRESS)
    group.add_argument(
        "--review-agent",
        default="",
        metavar="NAME[/MODEL]",
        help="another harness for checks and reviews, and its model (HELIX_REVIEW_AGENT, else HELIX_ALT_AGENT)",
    )
    group.add_argument("--model", default="", metavar="NAME", help="the model, as ddx calls it")
    group.add_argument("--effort", default="", metavar="LEVEL", help="the model's reasoning effort")
    group.add_argument(
        "--timeout", type=float, default=0.0, metavar="S", help="time limit in seconds (HELIX_AGENT_TIMEOUT)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print only how it ended and what failed")
    if dry_run:
        parser.add_argument("--dry-run", action="store_true", help="print the exact command; do nothing")


class _Once(argparse.Action):
    """An option that may be given only once: with two levels of autonomy it is unclear which one was meant."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, option: str | None = None
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"{option} is given twice")
        setattr(namespace, self.dest, values)


def add_autonomy(parser: argparse.ArgumentParser) -> None:
    """Add the ``--autonomy`` option."""
    parser.add_argument(
        "--autonomy",
        action=_Once,
        choices=LEVELS,
        default=None,
        help="how much it decides on its own (default: HELIX_AUTONOMY, settings, medium); `helix-tui help autonomy`",
    )


def autonomy_of(call: Call) -> Level:
    """The level given as an option, else in the environment, else in the settings, else medium."""
    wanted = getattr(call.options, "autonomy", None) or environment_options(os.environ).get("autonomy", "")
    # read only if neither option nor environment gives a level
    wanted = wanted or load_settings().autonomy or DEFAULT
    level = level_of(wanted)
    if level is not None:
        return level
    raise CliError(
        f"autonomy is low, medium or high, not “{clean_line(wanted, 40)}”", "Correct HELIX_AUTONOMY.", exit_code=2
    )


def agent_choice_of(call: Call) -> AgentChoice:
    """The agent and model that were chosen."""
    options, settings = call.options, load_settings()
    return chosen(
        os.environ,
        agent=options.agent,
        model=options.model,
        effort=options.effort,
        review_agent=options.review_agent,
        set_agent=settings.agent,
        set_model=settings.model,
    )


def note_unheard(call: Call, words: Sequence[str], agent_choice: AgentChoice) -> None:
    """Report the given options that the command cannot pass on."""
    for line in unheard(words, agent_choice):
        call.note(f"helix: {line}")


def refuse_in_attempt(call: Call) -> None:
    """Refuse to act on a project's own work tree from the folder that ddx made for one attempt.

    Raises:
        CliError: the call is made in such a folder (docs/decisions/0021); only ddx works and lands there.
    """
    project = locate(call)
    if project.attempt is None:
        return
    whose = f"for attempt {project.attempt.attempt}" if project.attempt.attempt else "for an attempt"
    folder, root = clean_line(str(project.attempt.root), 300), shlex.quote(str(project.root))
    raise CliError(
        f"cannot {call.command} in {folder}: ddx made this folder {clean_line(whose, 100)}, and "
        f"{call.command} would act on the project's own work tree",
        f"The agent of an attempt commits with git, and ddx lands it. A person runs "
        f"`helix-tui {call.command} -C {clean_line(root, 300)}`.",
        exit_code=2,
    )


def refuse_shut(queue_state: QueueState, project: Project) -> None:
    """Refuse to start if ddx would refuse to work here, land nothing, or stop for the cause of the last stop.

    Raises:
        CliError: ddx would do so.
    """
    from helix_tui.core.supervision.signals.stoppage import find_stoppage, foretell_stoppage

    if queue_state.shut is not None:
        raise CliError(f"nothing was started: {queue_state.shut.cause}", queue_state.shut.fix)
    stoppage = foretell_stoppage(project) or find_stoppage(project, queue_state.runs)
    if stoppage is not None and stoppage.present:
        raise CliError(f"nothing was started: {stoppage.words}", f"{capitalized(stoppage.fix)}.")


def note_difference(call: Call, queue_state: QueueState) -> None:
    """Warn on stderr if another release than the installed ddx wrote the tracker."""
    if queue_state.difference is not None:
        call.note(str(queue_state.difference))


def delegate_of(call: Call, curator: Curator) -> Delegate:
    """This project's ddx."""
    return Delegate(curator.project, call.ddx, timeout=call.options.timeout)


def questions_of(curator: Curator) -> OpenQuestions:
    """This project's questions."""
    return OpenQuestions(curator.project, curator.gate)


def shown(words: Sequence[str]) -> str:
    """A command as one would type it in a shell."""
    return clean_block(shlex.join(words), 20_000)


def show_dry_run(call: Call, commands: Sequence[Sequence[str]], *, prompt: str = "", **more: object) -> int:
    """Print the commands that would run and, on stderr, the agent's prompt."""
    if call.json:
        asked = {"prompt": prompt} if prompt else {}
        call.emit({"commands": [list(words) for words in commands], "dry_run": True, **asked, **more})
        return 0
    for words in commands:
        call.print(shown(words))
    if prompt and not call.options.quiet:
        call.note(f"helix: the prompt would be:\n{clean_block(prompt).rstrip()}")
    return 0


@contextmanager
def explained() -> Iterator[None]:
    """Turn what can go wrong in supervision into a message and an exit code."""
    with clear_errors():
        try:
            yield
        except AlignmentActive as error:
            raise CliError(
                clean_line(str(error), 600), "Wait for it; if nobody is working on it, `helix-tui unclaim` that bead."
            ) from None
