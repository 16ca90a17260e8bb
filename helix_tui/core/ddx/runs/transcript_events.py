"""Read one line of a transcript: what it tells, in a line and in detail (docs/formats/ddx.md §4.6)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from helix_tui.core.ddx.files import decode_object
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.core.ground.time import parse_instant

Kind = Literal["tool", "result", "text", "thinking", "route", "session", "error", "other"]


SUMMARY = 300


DETAIL = 40_000

_TELLING = ("command", "cmd", "file_path", "path", "notebook_path", "pattern", "query", "url", "prompt", "description")

# ddx writes `3000tok` in its messages
_TOKENS = re.compile(r"\b(\d{1,15})tok\b", re.ASCII)

_PAIR = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

# some releases keep work trees in a pool, each in a ``slot-N`` below its folder
_WORKTREE = re.compile(r"[^\s\"'=]*/\.execute-bead-[^\s/\"']+(?:/slot-\d+)?/?")


class Event(Struct, frozen=True):
    """One step of an agent at work. ``summary`` and ``detail`` are cleaned and safe to show."""

    at: int | None
    kind: Kind
    type: str = ""
    """The line's own type, verbatim."""
    tool: str = ""
    summary: str = ""
    detail: str = ""
    ok: bool | None = None
    duration_ms: int | None = None
    tokens: int | None = None
    """Tokens of the session so far, if the line has them."""
    cost_usd: float | None = None
    seq: int | None = None
    phase: str = ""
    """The phase that starts here, in DDx's words: route, thinking, tool, response, done."""
    call_id: str = ""
    role: str = ""
    """Role of the session, if the line has it: implementer, reviewer, lifecycle."""


def read_event(line: bytes) -> Event:
    """The event of a transcript line; a line that is not JSON becomes an ``error`` that shows it."""
    try:
        entry = decode_object(line)
    except ValueError:
        return Event(None, "error", summary=clean_line(f"unreadable line: {_text(line)}", SUMMARY))
    data = entry.get("data")
    data = data if isinstance(data, dict) else {}
    kind = _word(entry.get("type"))
    # DDx's service writes ts and seq, the agent time and sequence
    at = parse_instant(entry.get("ts")) or parse_instant(entry.get("time"))
    seq = _count(entry.get("seq", entry.get("sequence")))
    reader = _READERS.get(kind, _other)
    fields = reader(data)
    role = _role(entry, data)
    return Event(at=at, seq=seq, type=kind, role=role, **fields)


def tool_line(name: str, given: Any) -> str:
    """A tool call in one line: its name and target."""
    return clean_line(f"{name} {target(given)}", SUMMARY)


def target(given: Any) -> str:
    """The informative part of a tool's input: the command, the file, the pattern."""
    if isinstance(given, str):
        pairs = dict(_PAIR.findall(given)) if given.startswith("{") else {}
        if not pairs:
            return shorten_paths(clean_line(given, SUMMARY))
        given = {key: value.replace('\\"', '"').replace("\\\\", "\\") for key, value in pairs.items()}
    if not isinstance(given, Mapping):
        return ""
    for key in _TELLING:
        value = given.get(key)
        if isinstance(value, str) and value.strip():
            return shorten_paths(clean_line(value, SUMMARY))
        if isinstance(value, list) and value:
            return shorten_paths(clean_line(" ".join(map(str, value)), SUMMARY))
    return clean_line(_compact(given), SUMMARY) if given else ""


def shorten_paths(text: str) -> str:
    """Paths inside an attempt's work tree as paths inside the project."""
    return _WORKTREE.sub("", text) if ".execute-bead-" in text else text


def _progress(data: dict[str, Any]) -> dict[str, Any]:
    phase, state = _word(data.get("phase")), _word(data.get("state"))
    fields: dict[str, Any] = {
        "phase": phase,
        "duration_ms": _count(data.get("duration_ms")),
        "tokens": _count(data.get("total_tokens")) or None,
        "call_id": _word(data.get("tool_call_id")),
    }
    if phase == "tool":
        return fields | _progress_tool(data, state)
    message = clean_line(_without_task(data), SUMMARY)
    if phase == "thinking":
        return fields | {"kind": "thinking", "summary": message or "thinking"}
    if phase == "route":
        return fields | {"kind": "route", "summary": message}
    if phase == "response":
        done = state == "complete"
        return fields | {"kind": "session", "summary": message, "phase": "done" if done else phase}
    if phase == "compaction":
        return fields | {"kind": "other", "summary": message or "compaction"}
    return fields | {"kind": "other", "summary": message or clean_line(_compact(data), SUMMARY)}


def _progress_tool(data: dict[str, Any], state: str) -> dict[str, Any]:
    name = clean_line(data.get("tool_name") or data.get("action") or "tool", 80)
    call = tool_line(name, data.get("command") or data.get("target") or "")
    if state != "complete":
        return {"kind": "tool", "tool": name, "summary": call, "detail": _block(data.get("command"))}
    said = clean_line(data.get("output_summary") or "", SUMMARY)
    error = clean_line(data.get("error") or "", SUMMARY)
    return {
        "kind": "result",
        "tool": name,
        "ok": not error,
        "phase": "thinking",
        "summary": clean_line(f"{call} {error or said}", SUMMARY),
        "detail": _block(data.get("output_excerpt") or error),
    }


def _without_task(data: dict[str, Any]) -> str:
    """A progress message without the bead id that DDx puts before each; with tokens formatted as in other lines."""
    message = data.get("message") or data.get("session_summary") or ""
    task = data.get("task_id")
    if isinstance(message, str) and isinstance(task, str) and task:
        message = message.removeprefix(task).lstrip()
        message = re.sub(r"^#\s*\d+\s+(\+\d+\w+\s+)?", "", message)
    return _TOKENS.sub(lambda found: f"{int(found[1]):,} tok", message) if isinstance(message, str) else ""


def _text_delta(data: dict[str, Any]) -> dict[str, Any]:
    said = data.get("text") or data.get("delta") or data.get("content") or ""
    if isinstance(said, Mapping):
        said = said.get("text") or ""
    if not said:
        return {"kind": "other", "phase": "response"}
    return {"kind": "text", "phase": "response", "summary": clean_line(said, SUMMARY), "detail": _block(said)}


def _thinking(data: dict[str, Any]) -> dict[str, Any]:
    return _text_delta(data) | {"kind": "thinking", "phase": "thinking"}


def _tool_call(data: dict[str, Any]) -> dict[str, Any]:
    name = clean_line(data.get("name") or data.get("tool_name") or data.get("tool") or "tool", 80)
    given = data.get("input", data.get("arguments", data.get("args")))
    fields: dict[str, Any] = {
        "kind": "tool",
        "phase": "tool",
        "tool": name,
        "call_id": _word(data.get("id") or data.get("tool_call_id") or data.get("call_id")),
        "summary": tool_line(name, given),
        "detail": _block(given if isinstance(given, str) else _pretty(given)),
        "duration_ms": _count(data.get("duration_ms")),
    }
    if "output" in data or data.get("error"):  # the native agent writes call and result as one line
        fields |= {"kind": "result", "phase": "thinking", "ok": not data.get("error")}
        fields["detail"] = _block(data.get("error") or data.get("output"))
    return fields


def _tool_result(data: dict[str, Any]) -> dict[str, Any]:
    said = data.get("output", data.get("content", data.get("result", "")))
    failed = bool(data.get("error") or data.get("is_error"))
    error = data.get("error")
    shown = error if isinstance(error, str) and error else said
    shown = shown if isinstance(shown, str) else _pretty(shown)
    return {
        "kind": "result",
        "phase": "thinking",
        "ok": not failed,
        "tool": clean_line(data.get("name") or data.get("tool_name") or "", 80),
        "call_id": _word(data.get("id") or data.get("tool_call_id") or data.get("call_id")),
        "summary": clean_line(shown, SUMMARY),
        "detail": _block(shown),
        "duration_ms": _count(data.get("duration_ms")),
    }


def _session_start(data: dict[str, Any]) -> dict[str, Any]:
    route = _route_words(data)
    return {
        "kind": "session",
        "phase": "route",
        "summary": clean_line(f"session started {route}", SUMMARY),
        "detail": _block(data.get("prompt")),
    }


def _session_end(data: dict[str, Any]) -> dict[str, Any]:
    status = _word(data.get("status")) or _word(data.get("finish_reason")) or "ended"
    tokens, cost, error = _total(data), _cost(data), data.get("error")
    parts = [f"session ended: {status}"]
    if tokens is not None:
        parts.append(f"{tokens:,} tok")
    if cost is not None:
        parts.append(f"${cost:.4f}")
    if error:
        parts.append(str(error))
    return {
        "kind": "error" if error else "session",
        "phase": "done",
        "ok": status in ("success", "completed", "stop", "end_turn") and not error,
        "summary": clean_line(", ".join(parts), SUMMARY),
        "detail": _block(data.get("output") or data.get("text") or error),
        "tokens": tokens,
        "cost_usd": cost,
        "duration_ms": _count(data.get("duration_ms")),
    }


def _routing(data: dict[str, Any]) -> dict[str, Any]:
    reason = _word(data.get("reason"))
    words = f"route {_route_words(data)}" + (f" because {reason}" if reason else "")
    return {"kind": "route", "phase": "route", "summary": clean_line(words, SUMMARY)}


def _llm_request(data: dict[str, Any]) -> dict[str, Any]:
    messages = data.get("messages")
    count = f" of {counted(len(messages), 'message')}" if isinstance(messages, list) else ""
    return {"kind": "thinking", "phase": "thinking", "summary": f"model request{count}"}


def _llm_response(data: dict[str, Any]) -> dict[str, Any]:
    error = data.get("error")
    tokens = _total(data)
    words = clean_line(error or data.get("content") or data.get("text") or "model answered", SUMMARY)
    return {
        "kind": "error" if error else "text" if data.get("content") or data.get("text") else "session",
        "phase": "thinking",
        "ok": not error,
        "summary": words,
        "detail": _block(error or data.get("content") or data.get("text")),
        "tokens": tokens,
        "duration_ms": _count(data.get("latency_ms", data.get("duration_ms"))),
    }


def _error(data: dict[str, Any]) -> dict[str, Any]:
    words = data.get("error") or data.get("message") or _compact(data)
    return {"kind": "error", "ok": False, "summary": clean_line(words, SUMMARY), "detail": _block(words)}


def _other(data: dict[str, Any]) -> dict[str, Any]:
    words = data.get("message") or data.get("summary") or data.get("text")
    if not isinstance(words, str):
        words = _compact(data) if data else ""
    return {"kind": "other", "summary": clean_line(words, SUMMARY)}


_READERS = {
    "progress": _progress,
    "text_delta": _text_delta,
    "text": _text_delta,
    "llm.delta": _text_delta,
    "thinking_delta": _thinking,
    "thinking": _thinking,
    "reasoning_delta": _thinking,
    "tool_call": _tool_call,
    "tool.call": _tool_call,
    "tool_result": _tool_result,
    "tool.result": _tool_result,
    "session.start": _session_start,
    "session.end": _session_end,
    "final": _session_end,
    "routing_decision": _routing,
    "override": _routing,
    "llm.request": _llm_request,
    "llm.response": _llm_response,
    "error": _error,
}


def _role(entry: dict[str, Any], data: dict[str, Any]) -> str:
    for place in (data, data.get("metadata"), entry.get("metadata")):
        if isinstance(place, dict) and isinstance(place.get("role"), str):
            return clean_line(place["role"], 40)
    return ""


def _route_words(data: dict[str, Any]) -> str:
    harness = _word(data.get("resolved_harness") or data.get("harness") or data.get("provider"))
    model = _word(data.get("resolved_model") or data.get("model"))
    return "/".join(part for part in (harness, model) if part)


def _total(data: dict[str, Any]) -> int | None:
    """The tokens in a line, or None; harnesses that do not count them write 0."""
    for key in ("tokens", "usage"):
        counts = data.get(key)
        if isinstance(counts, dict):
            total = _count(counts.get("total", counts.get("total_tokens")))
            parts = [_count(counts.get(part)) for part in ("input", "output")]
            return total or sum(part or 0 for part in parts) or None
    return _count(data.get("total_tokens", data.get("tokens"))) or None


def _cost(data: dict[str, Any]) -> float | None:
    cost = data.get("cost_usd")
    return float(cost) if isinstance(cost, int | float) and cost > 0 else None


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == value and abs(value) < 1e15 else None


def _word(value: object) -> str:
    return clean_line(value, 200) if isinstance(value, str) else ""


def _block(value: object) -> str:
    if value is None or value == "":
        return ""
    return clean_block(value if isinstance(value, str) else _pretty(value), DETAIL)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _pretty(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _text(line: bytes) -> str:
    return line[:SUMMARY].decode("utf-8", "replace")
