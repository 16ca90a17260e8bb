"""Who taught a memory, and whether agents are shown it (docs/decisions/0033).

A *person* is at the console, or at a command line that no agent's client started. An *agent* is whoever a client
started: its words wait until a person, or a rule of a person, accepts them. An *attempt* is a lesson of DDx's evidence.
An *import* was in a store that was there before memories said who taught them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal, get_args

Teacher = Literal["person", "agent", "attempt", "import"]

TEACHERS: tuple[Teacher, ...] = get_args(Teacher)

TAUGHT_BY: Mapping[Teacher, str] = {
    "person": "taught by a person",
    "agent": "taught by an agent",
    "attempt": "taught by an attempt",
    "import": "imported",
}
"""The teacher in words."""

ACCEPTED_AT_ONCE: frozenset[Teacher] = frozenset({"person", "attempt", "import"})
"""Teachers whose memories do not wait."""

AcceptRule = Literal["landed-after-refusal", "none", "failures", "patterns", "all"]
"""Which lessons are accepted without asking; a person sets it in the settings (`accept_lessons`)."""

SIGNS = (
    "AIDER_MODEL", "AI_AGENT", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PLUGIN_ROOT",
    "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CODEX_MANAGED_BY_NPM", "CURSOR_AGENT",
    "CURSOR_TRACE_ID", "DDX_AGENT_NAME", "DDX_ATTEMPT_ID", "GEMINI_CLI", "GOOSE_TERMINAL", "OPENCODE",
)  # fmt: skip
"""Variables that clients set for what they start: one is enough."""

CLIENTS = frozenset({
    "aider", "amp", "claude", "codex", "copilot", "crush", "cursor-agent", "ddx", "ddx-agent", "gemini", "goose",
    "helix-ddx", "opencode", "qwen",
})  # fmt: skip
"""Programs that run agents; a process below one of them is an agent's."""

_INTERPRETERS = frozenset({
    "bash", "bun", "deno", "env", "node", "nodejs", "npm", "npx", "python", "python3", "sh", "uv", "uvx",
})  # fmt: skip
_VERBS = frozenset({"exec", "run", "tool", "x"})
"""Words between an interpreter and what it runs: ``uv run aider``."""
_MAX_PARENTS = 64


def teacher_here(env: Mapping[str, str] | None = None) -> Teacher:
    """Who this process speaks for: a person, unless a client's variable is set or a client is among its parents.

    A chain of parents that does not end counts as an agent.
    """
    env = os.environ if env is None else env
    if any(env.get(name) for name in SIGNS):
        return "agent"
    return "agent" if _below_a_client(os.getppid()) else "person"


def _below_a_client(pid: int) -> bool:
    import psutil  # takes 15 ms, which the console need not pay

    with suppress(psutil.NoSuchProcess):  # it has ended, and this process belongs to the first one now
        process: psutil.Process | None = psutil.Process(pid)
        for _ in range(_MAX_PARENTS):
            if process is None or process.pid <= 1:
                return False
            words: list[str] = []
            with suppress(psutil.AccessDenied):  # another user's, as the login's: its name must do
                words = process.cmdline()
            if is_client(process.name(), words):
                return True
            process = process.parent()
        return True
    return False


def is_client(name: str, words: list[str]) -> bool:
    """Whether a process runs agents, by its name and its command line.

    ``node …/claude`` and ``python -m aider`` are clients by what the interpreter runs.
    """
    names = [name, *words[:1]]
    if words and _base(words[0]) in _INTERPRETERS:
        names += [word for word in words[1:] if not word.startswith("-") and word not in _VERBS][:1]
    return any(_base(word) in CLIENTS or _package(word) for word in names)


def _base(word: str) -> str:
    """The program's name in a path, without the ending of a script or a version."""
    name = word.rpartition("/")[2].lower()
    return name.removesuffix(".js").removesuffix(".mjs").removesuffix(".py").removesuffix(".exe")


def _package(word: str) -> bool:
    """Whether a script is in the package of a client: ``…/node_modules/@anthropic-ai/claude-code/cli.js``."""
    folders = word.partition("node_modules/")[2].split("/")[:-1]
    return bool({"claude-code", "gemini-cli", "qwen-code", "opencode-ai", *CLIENTS} & set(folders))


def text_digest(name: str, trigger: str, resolution: str) -> str:
    """What was taught, to tell whether another program has changed it since."""
    return hashlib.sha256("\0".join((name, trigger, resolution)).encode("utf-8", "replace")).hexdigest()[:32]


def teacher_of(value: object) -> Teacher:
    """A stored teacher; a row that another program wrote names none, and that program is an agent's."""
    return next((teacher for teacher in TEACHERS if teacher == value), "agent")
