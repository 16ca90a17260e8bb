"""Whether a client of agents started this process: Claude Code, Codex and their like (docs/security.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

VARIABLES = (
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


def started_by_client(env: Mapping[str, str]) -> bool:
    """Whether a client's variable is set, or a client is among the parents.

    A chain of parents that does not end counts as one.
    """
    return any(env.get(name) for name in VARIABLES) or _below_a_client(os.getppid())


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
