"""What Claude Code tells a hook, and what an agent says in its transcript: read as hostile text.

Shapes: reference/memory.md §6. Every field may be missing or of another type; a transcript may be huge, cut
off or no transcript at all. Only the end of one is read.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from helix_tui.core.opening import open_nonblocking

MAX_STDIN = 64 << 20
"""Bytes of a hook's stdin that are read; an edit carries the text it writes. What is longer is not answered.
"""

_TAIL = 256 << 10
_LONGEST = 4_000

Report = Literal["delivered", "blocked", "partial", ""]


@dataclass(frozen=True, slots=True)
class Heard:
    """The fields of a hook's message that matter here; empty where they are missing or of another type."""

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
    """What the agent said last."""


@dataclass(frozen=True, slots=True)
class Task:
    """What an agent was asked to do."""

    objective: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """What an agent says of its own work: a claim, never an outcome."""

    report: Report = ""
    summary: str = ""
    utilized: tuple[str, ...] = field(default=())


_Form = TypeVar("_Form")


class _Message(msgspec.Struct):
    """Values stay unread until somebody asks: a host may send any type, of any size, under any name."""

    session_id: msgspec.Raw = msgspec.Raw()
    cwd: msgspec.Raw = msgspec.Raw()
    tool_name: msgspec.Raw = msgspec.Raw()
    tool_input: msgspec.Raw = msgspec.Raw()
    agent_id: msgspec.Raw = msgspec.Raw()
    agent_type: msgspec.Raw = msgspec.Raw()
    transcript_path: msgspec.Raw = msgspec.Raw()
    agent_transcript_path: msgspec.Raw = msgspec.Raw()
    last_assistant_message: msgspec.Raw = msgspec.Raw()


class _ToolInput(msgspec.Struct):
    file_path: msgspec.Raw = msgspec.Raw()
    notebook_path: msgspec.Raw = msgspec.Raw()


def hear(raw: bytes) -> Heard | None:
    """The message on stdin; None where it is no JSON object."""
    told = _decoded(raw.removeprefix(codecs.BOM_UTF8), _Message)
    if told is None:
        return None
    tool_input = _decoded(bytes(told.tool_input), _ToolInput) or _ToolInput()
    return Heard(
        session=_said(told.session_id, 200),
        cwd=_said(told.cwd),
        tool=_said(told.tool_name, 200),
        file=_said(tool_input.file_path) or _said(tool_input.notebook_path),
        agent_id=_said(told.agent_id, 200),
        agent_type=_said(told.agent_type, 200),
        transcript=_said(told.transcript_path),
        agent_transcript=_said(told.agent_transcript_path),
        message=_said(told.last_assistant_message, 200_000),
    )


def _decoded(raw: bytes, form: type[_Form]) -> _Form | None:
    try:
        return msgspec.json.decode(raw, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _said(raw: msgspec.Raw, limit: int = _LONGEST) -> str:
    """A string of a message, as `_text` gives it; nothing where it is of another type."""
    return _text(_decoded(bytes(raw), str), limit)


def last_task(transcript: str) -> Task | None:
    """The task that was handed to the newest sub-agent, from the end of the session's transcript."""
    for entry in _newest_first(transcript):
        for part in reversed(_content(entry)):
            if part.get("type") == "tool_use" and part.get("name") in ("Task", "Agent"):
                asked = part.get("input")
                asked = asked if isinstance(asked, dict) else {}
                return read_task(_text(asked.get("prompt"), 100_000) or _text(asked.get("description")))
    return None


def read_task(prompt: str) -> Task | None:
    """The objective and files of a prompt: its ``OBJECTIVE:`` and ``DELTA:`` lines, else its beginning."""
    if not prompt.strip():
        return None
    found = re.search(r"^\W{0,4}OBJECTIVE\b[*_]*:[*_ \t]*(.+)$", prompt, re.M)
    objective = (found.group(1) if found else prompt).strip()[:1000]
    delta = re.search(r"^\W{0,4}(?:DELTA|RELEVANT_FILES)\b[*_]*:[*_ \t]*(.+)$", prompt, re.M)
    return Task(objective, _names(delta.group(1)) if delta else ())


def claim_of(heard: Heard) -> Claim:
    """What the agent reports: from its last message, else from the end of its transcript."""
    text = heard.message or _last_said(heard.agent_transcript or heard.transcript)
    ends = list(re.finditer(r"^\W{0,4}(DELIVERED|BLOCKED|PARTIAL)\b[*_]*:[*_ \t]*(.*)$", text, re.M))
    used = list(re.finditer(r"^\W{0,4}UTILIZED\b[*_]*:[*_ \t]*(.*)$", text, re.M))
    report: Report = ""
    summary = ""
    if ends:
        report = _REPORTS[ends[-1].group(1)]
        summary = ends[-1].group(2).strip()[:1000]
    return Claim(report, summary, _names(used[-1].group(1)) if used else ())


_REPORTS: dict[str, Report] = {"DELIVERED": "delivered", "BLOCKED": "blocked", "PARTIAL": "partial"}


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
    """The entries at the end of a JSONL transcript, the newest first; what is no object is passed over."""
    for line in reversed(_tail(transcript).split(b"\n")):
        try:
            entry = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            yield entry


def _tail(path: str) -> bytes:
    if not path or "\0" in path:
        return b""
    try:
        with open(Path(path).expanduser(), "rb", opener=open_nonblocking) as file:
            told = os.fstat(file.fileno())
            if not stat.S_ISREG(told.st_mode):
                return b""
            file.seek(max(0, told.st_size - _TAIL))
            return file.read(_TAIL)
    except (OSError, RuntimeError, UnicodeError):  # RuntimeError: no home folder to expand ~ to
        return b""


def _text(value: object, limit: int = _LONGEST) -> str:
    """A string that can be written as UTF-8 and holds no NUL, at most ``limit`` characters; else nothing."""
    if not isinstance(value, str):
        return ""
    return value[:limit].replace("\0", "").encode("utf-8", "replace").decode("utf-8")
