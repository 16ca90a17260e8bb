"""A scripted model on the loopback, behind a real Claude Code: answers ``POST /v1/messages`` with steps.

No model and no network. Which list of steps: the first whose words stand in the conversation's first message;
the n-th step answers a conversation that holds n results of tools.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = dict[str, Any]
Script = Mapping[str, Sequence[Step]]
"""Words of a first message -> its steps: ``text``, or ``tool`` with ``input``; ``""`` fits every message."""


class Model:
    """What the client asked, in order, and how it is answered."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[dict[str, Any]] = []
        self.port = 0

    def conversation(self, words: str) -> str:
        """The last request, as text, of conversations that carry tools and begin with these words."""
        found = [each for each in self.asked if each.get("tools") and words in _opening(each)]
        assert found, f"nobody asked the model about {words!r}"
        return "\n".join(_said(message) for message in found[-1]["messages"])

    def answer(self, request: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """The events that answer a request."""
        self.asked.append(request)
        number, opening = len(self.asked), _opening(request)
        parts = [part for message in request.get("messages", []) for part in _parts(message)]
        results = sum(part.get("type") == "tool_result" for part in parts)
        steps = next(steps for words, steps in self.script.items() if words in opening)
        step = steps[min(results, len(steps) - 1)] if request.get("tools") else {"text": "ok"}
        usage = {"input_tokens": 100, "output_tokens": 20}
        usage |= {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        message: Step = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "content": [],
            "usage": usage,
        }
        message["model"] = request.get("model", "")
        message |= dict.fromkeys(("stop_reason", "stop_sequence"))
        if "tool" in step:
            block: Step = {"type": "tool_use", "id": f"toolu_{number}", "name": step["tool"], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(step["input"])}
        else:
            block = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": step["text"]}
        ends: Step = {"stop_reason": "tool_use" if "tool" in step else "end_turn", "stop_sequence": None}
        return [
            ("message_start", {"message": message}),
            ("content_block_start", {"index": 0, "content_block": block}),
            ("content_block_delta", {"index": 0, "delta": delta}),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": ends, "usage": {"output_tokens": 20}}),
            ("message_stop", {}),
        ]


@contextmanager
def serving(script: Script) -> Iterator[Model]:
    """A model on a port of the loopback."""
    model = Model(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self._send(b'{"data": []}', "application/json")

        def do_HEAD(self) -> None:
            self._send(b"", "application/json")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            if "count_tokens" in self.path or "/messages" not in self.path:
                self._send(b'{"input_tokens": 100}', "application/json")
                return
            events = model.answer(body)
            lines = (f"event: {kind}\ndata: {json.dumps({'type': kind, **told})}\n\n" for kind, told in events)
            self._send("".join(lines).encode(), "text/event-stream")

        def _send(self, body: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def _said(message: Mapping[str, Any]) -> str:
    return "\n".join(part["text"] for part in _parts(message) if part.get("type") == "text")


def _opening(request: Mapping[str, Any]) -> str:
    return "\n".join(_said(message) for message in request.get("messages", [])[:1])
