"""Delegate to ddx: the commands that execute beads or ask a model, and their answers.

Rules: docs/formats/helix.md §1 (agents), §3.11 and §3.12 (results, degradation), docs/formats/ddx.md §4
and §6. No bead is ever selected for a loop; ddx picks.

`chosen` decides who does the work: a command line's ``--agent`` and ``--model`` come first, then ``HELIX_AGENT`` and
``HELIX_MODEL``, then the settings. The settings' model is used only with the settings' agent.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from helix_tui.core.ddx.attempts.report import MalformedReport, parse_report
from helix_tui.core.ddx.client import QUIET, TOO_OLD, Ddx, DdxError, ddx_missing, last_error, not_started
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.ddx.files import money, whole
from helix_tui.core.ddx.help_text import DdxVerb
from helix_tui.core.ddx.names import BARE, DdxAction
from helix_tui.core.ddx.probe import dialect_of
from helix_tui.core.editing.steps import check_ids
from helix_tui.core.ground.errors import with_who
from helix_tui.core.ground.process import Finished, run_to_files
from helix_tui.core.ground.processes.family import mark_for
from helix_tui.core.ground.project import Project, ddx_environment, find_ddx
from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.ground.writes import make_folder, replace_file
from helix_tui.core.supervision.stages.table import StagePrompt

TIMEOUT_S = 2700.0
"""Default time limit of an agent or an attempt; ``HELIX_AGENT_TIMEOUT`` overrides it."""

LOGS = ".helix-logs"

_VERB_MEANINGS: dict[DdxAction, str] = {
    "drain": "drain the queue",
    "one_bead": "execute one bead",
    "ask_model": "give a prompt to an agent",
}

OTHER_DDX = "run `ddx upgrade`, or name another one with --ddx"
TOO_OLD_TEXT = "the loop of this ddx has no --json, and without it nobody can tell what it did"

_FOOTER = re.compile(r"tokens\s+used\s*:?\s*\n?\s*(\d[\d,._]*)", re.IGNORECASE)
_SAID = {"output", "result", "condensed_output"}


class AgentChoice(Struct, frozen=True):
    """Who is to do the work: a person's choice, passed to ddx unchanged."""

    harness: str = ""
    model: str = ""
    effort: str = ""
    reviewer: str = ""
    """Who reviews, checks and polishes, as ``harness`` or ``harness/model``."""
    alternate: str = ""
    """Who builds in place of ``harness``, so that what one agent designs another builds (docs/formats/helix.md §1)."""

    @property
    def flags(self) -> dict[str, str]:
        """As ddx's flags."""
        return {"--harness": self.harness, "--model": self.model, "--effort": self.effort}

    def for_agent(self, agent: str) -> AgentChoice:
        """The choice for one of the two agents: a reviewer does not get the model of another harness."""
        return self if agent == "primary" else self.given_to(self.reviewer)

    def given_to(self, reviewer: str) -> AgentChoice:
        """The choice with a reviewer at work; a model applies only to the harness that it was named with."""
        if reviewer in ("", self.harness):
            return self
        harness, _, model = reviewer.partition("/")
        return AgentChoice(harness, model, self.effort, self.reviewer)

    @property
    def builder(self) -> AgentChoice:
        """The choice for the execution of beads."""
        return self.given_to(self.alternate)

    @property
    def review_flags(self) -> dict[str, str]:
        """Who is to do ddx's own reviews, as the flags of its loop."""
        harness, _, model = self.reviewer.partition("/")
        return {"--review-harness": harness, "--review-model": model}


NOBODY = AgentChoice()
"""ddx's own choice."""


class AgentAnswer(Struct, frozen=True):
    """An agent's answer."""

    text: str
    """The text, cleaned; may be empty."""
    rc: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    problem: str = ""
    """Why it is not an answer, or ""."""
    log: Path | None = None


class Delegate(Struct):
    """One project's ddx.

    Attributes:
        timeout: time limit in seconds of an attempt or an agent.
        stop: polled while ddx is running; once true, ddx is interrupted.
        began: called with the process id of what was started.
        grace: seconds for an interrupted ddx to report; less than the wait of `stop_run`.
    """

    project: Project
    explicit: str | None = None
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    timeout: float = 0.0
    stop: Callable[[], bool] = lambda: False
    began: Callable[[int], None] = lambda pid: None
    grace: float = 6.0

    def __post_init__(self) -> None:
        self.env = ddx_environment(self.project, self.env)
        self.timeout = self.timeout or seconds_of(self.env.get("HELIX_AGENT_TIMEOUT", ""), TIMEOUT_S)

    @property
    def ddx(self) -> Ddx:
        """The executable.

        Raises:
            DdxError: there is none (127).
        """
        found = find_ddx(self.explicit, self.env)
        if found is None:
            wanted = self.explicit or self.env.get("DDX_BIN", "")
            raise ddx_missing(("ddx",), wanted)
        return Ddx(found, self.project.root, self.env)

    @property
    def dialect(self) -> Dialect:
        """The dialect of this ddx.

        Raises:
            DdxError: there is none (127), or it does not answer.
        """
        ddx = self.ddx
        return dialect_of(ddx.path, ddx.root, env=self.env)

    # --- commands --------------------------------------------------------------------------------------

    def drain(self, agent_choice: AgentChoice) -> tuple[str, ...]:
        """The command of one turn of the loop, after ``ddx``.

        Raises:
            DdxError: no ddx (127), or one that cannot say what it did (69).
        """
        verb = self._verb("drain")
        if not verb.takes("--json"):
            raise DdxError(("ddx", *verb.words), TOO_OLD_TEXT, OTHER_DDX, TOO_OLD)
        words = [*verb.words, "--once", "--json"]
        if verb.knows("--local"):
            words.append("--local")  # without it April passes the work to a server and returns at once
        for flag, value in agent_choice.review_flags.items():
            words += [flag, value] if value and verb.knows(flag) else []
        return (*words, *_chosen(verb, agent_choice))

    def one_bead(self, bead_id: str, agent_choice: AgentChoice) -> tuple[str, ...]:
        """The command that executes one chosen bead.

        Raises:
            DdxError: no ddx (127), or one without that verb (69).
            OperationRefused: the id cannot be an argument.
        """
        verb = self._verb("one_bead")
        check_ids((bead_id,))
        # a help text without flags excludes none: only April's verb is known to take this one
        as_json = ("--json",) if verb.takes("--json") and (verb.flags or verb.words == BARE) else ()
        return (*verb.words, bead_id, *as_json, *_chosen(verb, agent_choice))

    def question(self, prompt_file: Path, agent_choice: AgentChoice, *, writes: bool) -> tuple[str, ...]:
        """The command that gives a prompt to an agent.

        Raises:
            DdxError: no ddx (127), or one without that verb (69).
        """
        verb = self._verb("ask_model")
        words = [*verb.words, "--json", "--prompt", os.fspath(prompt_file)]
        if verb.takes("--permissions"):
            words += ["--permissions", "unrestricted" if writes else "safe"]
        if verb.takes("--timeout"):
            words += ["--timeout", f"{self.timeout:.0f}s"]
        return (*words, *_chosen(verb, agent_choice))

    def _verb(self, verb_name: DdxAction) -> DdxVerb:
        verb = self.dialect.verbs.get(verb_name)
        if verb is None:
            message = f"the help of this ddx names no verb to {_VERB_MEANINGS[verb_name]}"
            raise DdxError(("ddx",), message, OTHER_DDX, TOO_OLD)
        if self.project.primary is not None and verb_name != "ask_model" and not self.dialect.works_from_linked:
            raise DdxError(
                ("ddx", *verb.words),
                "in a linked work tree a worker of this ddx uses a separate copy of the tracker",
                f"start it in {clean_line(str(self.project.primary), 300)}",
                TOO_OLD,
            )
        return verb

    # --- running ---------------------------------------------------------------------------------------

    def execute(self, words: tuple[str, ...], out: Path) -> Finished:
        """Run a ddx command with its output in ``out`` and ``out`` with ``.err``.

        Raises:
            DdxError: it cannot be started (127), or its output cannot be written.
        """
        ddx = self.ddx
        argv = (os.fspath(ddx.path), *words)
        try:
            logs_folder(self.project)
            return run_to_files(
                argv,
                out=out,
                err=out.with_suffix(".err"),
                cwd=ddx.root,
                env={**self.env, **QUIET, **mark_for(argv[0])},
                timeout=self.timeout,
                grace=self.grace,
                started=self.began,
                stop=self.stop,
            )
        except (FileNotFoundError, PermissionError) as error:
            # of the log folder, not of ddx
            if error.filename and Path(error.filename).parent == out.parent:
                raise
            raise not_started(argv, ddx.path, error) from None

    def ask(self, prompt: StagePrompt, agent_choice: AgentChoice, stamp: str) -> AgentAnswer:
        """Give a prompt to an agent and wait for its answer, which is kept in the log folder.

        Raises:
            DdxError: no ddx (127), or one that cannot ask (69).
            OSError: the log folder cannot be written.
        """
        base = logs_folder(self.project) / f"{stamp}-{prompt.stage.name}"
        prompt_file = base.with_suffix(".prompt.md")
        # before the prompt is written: a ddx that cannot ask leaves no file behind
        words = self.question(prompt_file, agent_choice, writes=prompt.stage.writes)
        replace_file(prompt_file, prompt.text.encode("utf-8", "replace"))
        out = base.with_suffix(".out")
        finished = self.execute(words, out)
        return read_answer(finished, out)


def read_answer(finished: Finished, log: Path | None = None) -> AgentAnswer:
    """Read an agent's answer, in any form of ddx or harness."""
    document = _document(finished)
    text, rc = _text(finished, document), finished.rc
    said = whole(document.get("exit_code"), low=-(1 << 31))
    rc = rc or said or 0
    problem = ""
    if finished.timed_out:
        problem = f"no answer after {finished.seconds:.0f} s"
    elif finished.truncated:
        problem = "it printed more output than is kept"
    elif rc:
        error = document.get("error")
        message = clean_line(error, 400) if isinstance(error, str) and error else last_error(finished)
        problem = with_who(message, finished.err)
    # the answer itself may speak of tokens: a footer is its end
    ending = "\n".join(text.rstrip().split("\n")[-2:])
    footers = (tokens_in(printed) for printed in (finished.err, str(document.get("stderr") or ""), ending))
    tokens = token_count(document) or next(filter(None, footers), 0)
    return AgentAnswer(clean_block(text), rc, tokens, money(document.get("cost_usd")) or 0.0, problem, log)


def token_count(document: Mapping[str, Any]) -> int:
    """The tokens in a result or an answer; 0 if none."""
    total = next((n for key in ("total_tokens", "tokens") if (n := whole(document.get(key)))), 0)
    parts = [whole(document.get(key)) or 0 for key in ("input_tokens", "output_tokens")]
    usage = document.get("usage")
    nested = token_count(usage) if isinstance(usage, dict) else 0
    return total or sum(parts) or nested


def tokens_in(text: str) -> int:
    """The tokens of a harness's footer, as Codex writes it to stderr or stdout; the last one counts."""
    found = _FOOTER.findall(text)
    return int(re.sub(r"\D", "", found[-1])) if found else 0


def seconds_of(text: str, otherwise: float) -> float:
    """A number of seconds from the environment."""
    try:
        value = float(text)
    except ValueError:
        return otherwise
    return value if 0 < value < 1e7 else otherwise


def logs_folder(project: Project) -> Path:
    """The log folder, created if missing and ignored by git."""
    return make_folder(project.logs_dir)


def unheard(words: Sequence[str], agent_choice: AgentChoice) -> tuple[str, ...]:
    """Which of a person's choices are not passed on because this ddx lacks the option."""
    asked = (("--harness", agent_choice.harness), ("--model", agent_choice.model), ("--effort", agent_choice.effort))
    return tuple(
        f"this ddx does not take {flag}: {clean_line(value, 60)} is not passed on"
        for flag, value in asked
        if value and flag not in words
    )


def _chosen(verb: DdxVerb, agent_choice: AgentChoice) -> list[str]:
    words: list[str] = []
    for flag, value in (
        ("--harness", agent_choice.harness),
        ("--model", agent_choice.model),
        ("--effort", agent_choice.effort),
    ):
        if value and verb.takes(flag):
            words += [flag, value]
    return words


def _document(finished: Finished) -> dict[str, Any]:
    """The JSON object that the answer is or ends in; empty if it is text."""
    whole_output = decode_json(finished.stdout)
    if isinstance(whole_output, dict):
        return whole_output
    try:
        found = dict(parse_report(finished.out).document)
    except MalformedReport:
        return {}
    return found if _SAID & found.keys() else {}


def _text(finished: Finished, document: Mapping[str, Any]) -> str:
    for key in ("output", "result", "condensed_output"):
        value = document.get(key)
        if isinstance(value, str) and value.strip():
            return value
    spoken = _stream_text(finished.out)
    if spoken or document:
        return spoken
    return finished.out


def _stream_text(out: str) -> str:
    """The joined text of an agent in a stream of JSON lines (``item.completed``)."""
    parts = []
    for line in out.split("\n"):
        if not line.startswith("{") or '"item"' not in line:
            continue
        event = decode_json(line)
        item = event.get("item") if isinstance(event, dict) else None
        text = item.get("text") if isinstance(item, dict) else None
        if isinstance(text, str):
            parts.append(text)
    return "\n".join(parts)


def environment_options(env: Mapping[str, str]) -> dict[str, str]:
    """A run's options from the environment, where the command line has none (docs/formats/helix.md
    §1).
    """
    names = {
        "harness": "HELIX_AGENT",
        "reviewer": "HELIX_REVIEW_AGENT",
        "alternate": "HELIX_ALT_AGENT",
        "model": "HELIX_MODEL",
        "effort": "HELIX_EFFORT",
        "autonomy": "HELIX_AUTONOMY",
        "auto_align": "HELIX_AUTO_ALIGN",
    }
    given = {name: env.get(variable, "").strip() for name, variable in names.items()}
    if given["alternate"] in ("auto", "none"):
        del given["alternate"]
    return {name: value for name, value in given.items() if value}


def chosen(
    env: Mapping[str, str],
    *,
    agent: str = "",
    model: str = "",
    effort: str = "",
    review_agent: str = "",
    set_agent: str = "",
    set_model: str = "",
) -> AgentChoice:
    """Who is to do the work.

    Args:
        env: the environment.
        agent, model, effort, review_agent: from the command line.
        set_agent, set_model: from the settings.
    """
    given = environment_options(env)
    harness = agent or given.get("harness", "") or set_agent
    model = model or given.get("model", "") or (set_model if harness == set_agent else "")
    alternate = given.get("alternate", "")
    return AgentChoice(
        harness,
        model,
        effort or given.get("effort", ""),
        review_agent or given.get("reviewer", "") or alternate,
        alternate,
    )
