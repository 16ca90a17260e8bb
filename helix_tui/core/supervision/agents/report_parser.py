"""Parse Claude Code's hook messages and agents' transcripts, as untrusted text.

Shapes: docs/formats/memory.md §7. Every field may be missing or of another type; a transcript may be huge, cut off or
not a transcript at all. Only its end is read. A command's result: ``is_error``, and a text that begins with ``Exit code
N`` if it failed (Claude Code 2.1).
"""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from msgspec import Struct, field

from helix_tui.core.ground.files import open_file

if TYPE_CHECKING:
    from helix_tui.core.memory.session_check import SessionCheck

EDITING = {"Edit", "Write", "MultiEdit", "NotebookEdit"}
"""Tools that change a file."""

_TAIL = 256 << 10
_WORK = 32 << 20
"""Bytes at the end of a transcript searched for the commands of a session."""
_HEAD = 128 << 10
_FIRST_LINES = 8
_MAX_CHARS = 4_000

Report = Literal["delivered", "blocked", "partial", ""]

_CHANGING = re.compile(
    r"(?<![\w&=<>-])[12]?>>?[ \t]*(?!&|/dev/|/tmp/)[\w./~$\"'-]"
    r"|\b(?:sed|perl)\s+(?:-\S+\s+)*-\w*i|\btee\s+(?!/dev/)"
    r"|\bgit\s+(?:-\S+\s+)*(?:apply|am|checkout|switch|restore|reset|revert|stash|merge|rebase|pull|cherry-pick)\b"
    r"|\b(?:patch|mv|cp|rm)\s|\b(?:ruff\s+format|black|prettier|gofmt|rustfmt|cargo\s+fmt)\b|--fix\b|--write\b"
)
"""Commands that change files. A false match loses a verdict, a missed one could make it wrong."""

_CUT_OFF = {130, 137, 143}
"""Exit codes of a command ended by a person or a timeout, which say nothing about the work."""

_UTILIZED = re.compile(
    r"^\W{0,4}UTILIZED\b[*_]*:[*_ \t]*(.*)$|(?<=[\s.:;*_(])UTILIZED\b[*_]*:[*_ \t]*(\[[^\]\n]*\])", re.M
)
"""A separate line, or a bracketed list after other words: ``Done: x works. UTILIZED: ["a"]``."""

_REPORTS: dict[str, Report] = {"DELIVERED": "delivered", "BLOCKED": "blocked", "PARTIAL": "partial"}


class HookMessage(Struct, frozen=True):
    """The relevant fields of a hook message; empty if missing or of another type."""

    session: str = ""
    cwd: str = ""
    tool: str = ""
    file: str = ""
    agent_id: str = ""
    agent_type: str = ""
    transcript: str = ""
    """The session's transcript."""
    agent_transcript: str = ""
    message: str = ""
    """The agent's last message."""
    prompt: str = ""
    """The person's prompt."""


class AgentTask(Struct, frozen=True):
    """The task given to an agent."""

    objective: str
    files: tuple[str, ...] = ()
    briefed: bool = False
    """Its text contains memories already, as the brief of a workspace does."""


class Spawned(Struct, frozen=True):
    """A task handed by a session to a sub-agent."""

    call: str
    """Id of the tool call, or the task itself if the transcript has none."""
    agent_type: str
    task: AgentTask
    ended: bool
    """Whether its result has arrived."""


class AgentClaim(Struct, frozen=True):
    """An agent's report on its own work: a claim, never an outcome."""

    report: Report = ""
    summary: str = ""
    utilized: tuple[str, ...] = field(default=())


class Ran(Struct, frozen=True):
    """The commands of a session, and when it last changed a file, on one scale: larger is later."""

    checks: tuple[SessionCheck, ...] = ()
    last_change: int | None = None


_Form = TypeVar("_Form")


class _Message(Struct):
    """Values are decoded on use: a host may send any type, of any size, under any name."""

    session_id: msgspec.Raw = msgspec.Raw()
    cwd: msgspec.Raw = msgspec.Raw()
    tool_name: msgspec.Raw = msgspec.Raw()
    tool_input: msgspec.Raw = msgspec.Raw()
    agent_id: msgspec.Raw = msgspec.Raw()
    agent_type: msgspec.Raw = msgspec.Raw()
    transcript_path: msgspec.Raw = msgspec.Raw()
    agent_transcript_path: msgspec.Raw = msgspec.Raw()
    last_assistant_message: msgspec.Raw = msgspec.Raw()
    prompt: msgspec.Raw = msgspec.Raw()


class _ToolInput(Struct):
    file_path: msgspec.Raw = msgspec.Raw()
    notebook_path: msgspec.Raw = msgspec.Raw()


def read_hook_message(raw: bytes) -> HookMessage | None:
    """The message on stdin; None if it is not a JSON object."""
    decoded = _decoded(raw.removeprefix(codecs.BOM_UTF8), _Message)
    if decoded is None:
        return None
    tool_input = _decoded(bytes(decoded.tool_input), _ToolInput) or _ToolInput()
    return HookMessage(
        session=_said(decoded.session_id, 200),
        cwd=_said(decoded.cwd),
        tool=_said(decoded.tool_name, 200),
        file=_said(tool_input.file_path) or _said(tool_input.notebook_path),
        agent_id=_said(decoded.agent_id, 200),
        agent_type=_said(decoded.agent_type, 200),
        transcript=_said(decoded.transcript_path),
        agent_transcript=_said(decoded.agent_transcript_path),
        message=_said(decoded.last_assistant_message, 200_000),
        prompt=_said(decoded.prompt, 200_000),
    )


def _decoded(raw: bytes, form: type[_Form]) -> _Form | None:
    try:
        return msgspec.json.decode(raw, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _said(raw: msgspec.Raw, limit: int = _MAX_CHARS) -> str:
    """A string of a message, as in `_text`; "" for another type."""
    return _text(_decoded(bytes(raw), str), limit)


def spawned(transcript: str) -> list[Spawned]:
    """The tasks handed to sub-agents, oldest first, from the end of the session's transcript."""
    found: list[Spawned] = []
    ended: set[str] = set()
    for entry in _newest_first(transcript):
        # newest first: a result is met before the call that it answers
        for part in reversed(_content(entry)):
            if part.get("type") == "tool_result":
                ended.add(_text(part.get("tool_use_id"), 200))
            elif part.get("type") == "tool_use" and part.get("name") in ("Task", "Agent"):
                asked = part.get("input")
                asked = asked if isinstance(asked, dict) else {}
                task = read_task(_text(asked.get("prompt"), 100_000) or _text(asked.get("description")))
                call = _text(part.get("id"), 200)
                if task is not None:
                    kind = _text(asked.get("subagent_type"), 200)
                    found.append(Spawned(call or task.objective, kind, task, bool(call) and call in ended))
    return found[::-1]


def open_tasks(every: Sequence[Spawned], agent_type: str) -> list[Spawned]:
    """The running tasks that an agent of this type may just have been given: those of its type, oldest first.

    A call without a type matches any agent. Plugins write their name before the type: ``helix:builder``.
    """
    running = [each for each in every if not each.ended]
    plain = agent_type.rpartition(":")[2]
    same = [each for each in running if plain and each.agent_type.rpartition(":")[2] == plain]
    return same or [each for each in running if not (each.agent_type and plain)]


def own_task(hook_message: HookMessage) -> AgentTask | None:
    """The task of an agent from the first message of its own transcript, if that exists yet."""
    for path in _own_transcripts(hook_message):
        for line in _read(path, 0, _HEAD).split(b"\n")[:_FIRST_LINES]:
            entry = _object(line)
            if entry.get("type") == "user":
                return read_task(_asked(entry))
    return None


def _own_transcripts(hook_message: HookMessage) -> list[str]:
    """Possible paths of a sub-agent's own transcript, the likeliest first."""
    paths = [hook_message.agent_transcript] if hook_message.agent_transcript else []
    # the id comes from the host and becomes part of a path
    if hook_message.transcript.endswith(".jsonl") and re.fullmatch(r"[\w-]{1,200}", hook_message.agent_id):
        paths.append(f"{hook_message.transcript.removesuffix('.jsonl')}/subagents/agent-{hook_message.agent_id}.jsonl")
    return paths


def commands_run(hook_message: HookMessage) -> Ran:
    """What the agent of this message ran and changed: the sub-agent's work, else the session's."""
    if not hook_message.agent_id:
        return _work(hook_message.transcript, sidechains=False)
    every = (_work(path, sidechains=True) for path in _own_transcripts(hook_message))
    return next((ran for ran in every if ran.checks or ran.last_change is not None), Ran())


def _work(transcript: str, *, sidechains: bool) -> Ran:
    """Commands and changes in a transcript; a change counts from the arrival of its result.

    Another agent's work counts as a change at that moment, as its commands are in its own transcript. One in the
    background continues after its call returns, with no recorded end.
    """
    from helix_tui.core.memory.session_check import SessionCheck

    uses: dict[str, dict[str, Any]] = {}
    checks: list[SessionCheck] = []
    change: int | None = None
    unending = False
    for position, part, entry in _tool_parts(transcript, sidechains):
        if part.get("type") == "tool_use":
            uses[_text(part.get("id"), 200)] = part
            continue
        use = uses.pop(_text(part.get("tool_use_id"), 200), {})
        asked = use.get("input")
        asked = asked if isinstance(asked, dict) else {}
        command = _text(asked.get("command"), 20_000) if use.get("name") == "Bash" else ""
        if command:
            checks.append(SessionCheck(command, _exit_code(part, entry, asked), position))
        if _changes(use, command) and (command or part.get("is_error") is not True):
            change = position - 1 if command else position  # a check after a change in the same line covers it
            unending = unending or asked.get("run_in_background") is True
    if unending or any(_changes(use, "") for use in uses.values()):  # the latter started, without a result yet
        change = sys.maxsize
    return Ran(tuple(checks), change)


def _tool_parts(transcript: str, sidechains: bool) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Tool calls and their results, oldest first, with spaced positions."""
    lines = _read(transcript, -_WORK, _WORK).split(b"\n")
    for number, line in enumerate(lines):
        # up to 32 MB are scanned: only lines that may contain a call or its result are decoded
        entry = _object(line) if b"tool_use" in line or b"tool_result" in line else {}
        if not sidechains and entry.get("isSidechain") is True:
            continue
        for part in _content(entry):
            if part.get("type") in ("tool_use", "tool_result"):
                yield number * 2, part, entry


def _changes(use: dict[str, Any], command: str) -> bool:
    """Whether a tool call may have changed files."""
    return use.get("name") in {*EDITING, "Task", "Agent"} or bool(_CHANGING.search(command))


def _exit_code(result: dict[str, Any], entry: dict[str, Any], asked: dict[str, Any]) -> int | None:
    """The exit code of a command; None if its result does not contain it."""
    content = result.get("content")
    said = _text(content, 100_000) if isinstance(content, str) else _joined(content)
    tool_result = entry.get("toolUseResult")
    tool_result = tool_result if isinstance(tool_result, dict) else {}
    if (
        asked.get("run_in_background") is True
        or tool_result.get("backgroundTaskId")
        or tool_result.get("interrupted") is True
    ):
        return None
    if result.get("is_error") is True:
        match = re.match(r"(?:Error: )?Exit code (\d{1,3})\b", said)
        code = int(match[1]) if match else 0
        return code if code and code not in _CUT_OFF else None
    # neither a command that still runs nor a check that ran no test proves anything
    if re.search(r"^Command (?:was |is )?(?:manually )?(?:running in |backgrounded)|^Ran 0 tests\b", said, re.M):
        return None
    return 0


def _joined(content: object) -> str:
    parts = content if isinstance(content, list) else []
    return "\n".join(_text(part.get("text"), 100_000) for part in parts if isinstance(part, dict))


def _asked(entry: dict[str, Any]) -> str:
    """The text of a user message: a string, or parts."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return _text(content, 100_000)
    return "\n".join(_text(part.get("text"), 100_000) for part in _content(entry)).strip()


def read_task(prompt: str) -> AgentTask | None:
    """The objective and files of a prompt, from its ``OBJECTIVE:`` and ``DELTA:`` lines, else its beginning."""
    if not prompt.strip():
        return None
    match = re.search(r"^\W{0,4}OBJECTIVE\b[*_]*:[*_ \t]*(.+)$", prompt, re.M)
    objective = (match.group(1) if match else prompt).strip()[:1000]
    delta = re.search(r"^\W{0,4}(?:DELTA|RELEVANT_FILES)\b[*_]*:[*_ \t]*(.+)$", prompt, re.M)
    # not imported above: an answered hook loads this module and may need no memory
    from helix_tui.core.memory.injection import FAILURES, PATTERNS

    briefed = not {FAILURES, PATTERNS}.isdisjoint(map(str.strip, prompt.splitlines()))
    return AgentTask(objective, _names(delta.group(1)) if delta else (), briefed)


def claim_of(hook_message: HookMessage) -> AgentClaim:
    """The agent's report, from its last message, else from the end of its transcript."""
    text = hook_message.message or _last_said(hook_message.agent_transcript or hook_message.transcript)
    ends = list(re.finditer(r"^\W{0,4}(DELIVERED|BLOCKED|PARTIAL)\b[*_]*:[*_ \t]*(.*)$", text, re.M))
    used = list(_UTILIZED.finditer(text))
    report: Report = ""
    summary = ""
    if ends:
        report = _REPORTS[ends[-1].group(1)]
        summary = ends[-1].group(2).strip()[:1000]
    return AgentClaim(report, summary, _names(used[-1][1] or used[-1][2] or "") if used else ())


def _names(text: str) -> tuple[str, ...]:
    """A list as agents write one: JSON, or words between commas; at most 100."""
    text = text.strip()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = text.strip("[](){}").split(",")
    if not isinstance(found, list):
        return ()
    names = (name.strip(" \t\"'`*") for name in found if isinstance(name, str))
    plain = [name[:300] for name in names if name and name.lower() not in ("none", "n/a")]
    return tuple(dict.fromkeys(plain))[:100]


def _last_said(transcript: str) -> str:
    for entry in _newest_first(transcript):
        if entry.get("type") != "assistant":
            continue
        said = [_text(part.get("text"), 200_000) for part in _content(entry) if part.get("type") == "text"]
        if any(said):
            return "\n".join(said)
    return ""


def _content(entry: dict[str, Any]) -> list[dict[str, Any]]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _newest_first(transcript: str) -> Iterator[dict[str, Any]]:
    """The objects at the end of a JSONL transcript, newest first; other lines are skipped."""
    for line in reversed(_read(transcript, -_TAIL, _TAIL).split(b"\n")):
        if entry := _object(line):
            yield entry


def _object(line: bytes) -> dict[str, Any]:
    """The object on a line; an empty one if there is none."""
    try:
        entry = json.loads(line) if line.strip() else None
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _read(path: str, start: int, size: int) -> bytes:
    """Bytes of a file from its start, or from its end if ``start`` is negative; empty without a file."""
    if not path or "\0" in path:
        return b""
    try:
        with open_file(Path(path).expanduser()) as file:
            file.seek(start if start >= 0 else max(0, file.seek(0, os.SEEK_END) + start))
            return file.read(size)
    except (OSError, RuntimeError, UnicodeError):  # RuntimeError: no home folder for ~
        return b""


def _text(value: object, limit: int = _MAX_CHARS) -> str:
    """A string of at most ``limit`` characters, encodable as UTF-8 and without NUL; else ""."""
    if not isinstance(value, str):
        return ""
    return value[:limit].replace("\0", "").encode("utf-8", "replace").decode("utf-8")
