"""What an attempt produces while it runs: two live transcripts, and its copy of the code.

The agent's events and the service's go into a file each (docs/formats/ddx.md §4.4). The agent works in a local clone
(§4.6); it lands by fast forward when nobody committed meanwhile, else by a merge that is made in a folder of its own.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from helix_ddx.files import Disk, go_json, stamp
from helix_ddx.simulator.script import HARNESS, Act, FileEdit, ToolCall
from helix_ddx.store.git import GitError, alone, commit, git, head
from helix_tui.core.ground.time import NS

Json = dict[str, Any]

_NEVER = {"observed_at": "0001-01-01T00:00:00Z"}


class AgentStream:
    """``agent-<harness>-<ns>.jsonl``: text, tool calls and their results as the agent emits them."""

    def __init__(self, disk: Disk, folder: Path, clock: Callable[[], int], metadata: Json | None = None) -> None:
        self.disk, self.clock, self.metadata = disk, clock, metadata
        self.path = folder / f"agent-{HARNESS}-{clock()}.jsonl"
        self.sequence = 0
        disk.create(self.path)

    def text(self, text: str) -> None:
        """A message of the agent."""
        self._emit("text_delta", {"text": text})

    def call(self, number: int, call: ToolCall) -> None:
        """A tool begins."""
        self._emit("tool_call", {"id": f"t{number}", "name": call.tool, "input": dict(call.input)})

    def result(self, number: int, call: ToolCall) -> None:
        """A tool ended: its output, or its error when the output begins with ``error:``."""
        data: Json = {"id": f"t{number}"}
        if call.failed:
            data["error"] = call.output.removeprefix("error:").strip()
        elif call.output:
            data["output"] = call.output
        self._emit("tool_result", data)

    def _emit(self, kind: str, data: Json) -> None:
        row: Json = {"type": kind, "sequence": self.sequence, "time": stamp(self.clock())}
        if self.metadata is not None:
            row["metadata"] = self.metadata
        self.sequence += 1
        self.disk.append(self.path, go_json(row | {"data": data}) + "\n")


class ServiceStream:
    """``svc-<ns>.jsonl`` (head): what the service reports that runs the agent; ``seq`` skips as DDx's."""

    def __init__(
        self,
        disk: Disk,
        folder: Path,
        clock: Callable[[], int],
        *,
        task: str,
        act: Act,
        requested: str,
        role: str,
        work_dir: Path,
        prompt: str,
        metadata: Json,
        permissions: str = "",
        min_power: int = 0,
        correlation: str = "",
    ) -> None:
        self.disk, self.clock, self.act = disk, clock, act
        self.begun = self.last = clock()
        self.name = f"svc-{self.begun}"
        self.path = folder / f"{self.name}.jsonl"
        self.task = task or self.name
        self.seq = 4
        self.tools = 0
        self.tokens_in_context = max(1, len(prompt) // 4)
        self.sticky: Json = {"key_present": True, "bonus": 0} if correlation else {"bonus": 0}
        self.route: Json = {
            "requested_harness": HARNESS,
            "resolved_harness": HARNESS,
            "harness_source": "request_harness",
            "requested_model": requested,
            "resolved_model": act.model,
        }
        extra = {"correlation_id": correlation} if correlation else {}
        extra |= {"role": role}
        start: Json = {"provider": "", "model": act.model, "sticky": self.sticky, "utilization": _NEVER, **self.route}
        start |= {"work_dir": str(work_dir), "max_iterations": 0, "prompt": prompt, "metadata": metadata | extra}
        decision: Json = {"harness": HARNESS, "model": act.model, "reason": "explicit", "sticky": {"bonus": 0}}
        decision |= {"utilization": _NEVER, "requested_model": requested, "requested_harness": HARNESS}
        decision |= {"min_power": min_power} if min_power else {}
        decision |= {"estimated_prompt_tokens": self.tokens_in_context}
        decision |= {"permissions": permissions} if permissions else {}
        decision |= {"role": role} | ({"correlation_id": correlation} if correlation else {})
        decision |= {"harness_source": "request_harness", "session_id": self.name}
        decision |= {"snapshot_captured_at": _NEVER["observed_at"]}
        said = f"route {HARNESS}/{act.model}"
        self._write(
            self._line(0, "session.start", start),
            self._line(1, "routing_decision", decision),
            self._progress(1, "route", "start", message=f"{self.task} {said}", session_summary=said),
            self._progress(2, "thinking", "start", round=1, message=f"{self.task} # 1 thinking ...", **self._turn()),
        )
        self.metadata = metadata

    def tool(self, call: ToolCall, took_ms: int) -> str:
        """A tool has ended; the same in the words of the text stream."""
        self.tools += 1
        self.seq += 1
        command = "{" + ", ".join(f'{key}="{_cut(str(value))}"' for key, value in call.input.items()) + "}"
        size, lines = len(call.output.encode()), len(call.output.splitlines())
        measure = f"out={size}B {lines} line{'s' if lines != 1 else ''}"
        done = "failed" if call.failed else "done"
        message = f"{self.task} # 1     +{self._since() // 1000}s tool `{command}` {done} {took_ms}ms"
        data: Json = {"round": 1, "message": message, "turn_index": 1, "tool_name": call.tool}
        data |= {"tool_call_id": f"t{self.tools}", "tool_call_index": self.tools}
        data |= {"command": command, "action": call.tool}
        if call.output and not call.failed:
            data |= {"output_summary": measure, "output_bytes": size, "output_lines": lines}
        data |= {"duration_ms": took_ms, "since_last_ms": self._since()} | self._context()
        self._write(self._progress(self.seq, "tool", "complete", **data))
        self.seq += 2
        self.last = self.clock()
        output = f" < {measure}" if call.output and not call.failed else ""
        return f"ok {self.tools} {call.tool}{output} {took_ms}ms"

    def end(self, output: str, error: str = "") -> int:
        """The agent is done; the milliseconds that it took."""
        took = (self.clock() - self.begun) // 1_000_000
        act = self.act
        tokens = {"input": act.input_tokens, "output": act.output_tokens, "cache_read": act.input_tokens // 10}
        data: Json = {"status": "error" if error else "success", "output": output}
        data["tokens"] = tokens | {"total": act.input_tokens + act.output_tokens}
        if act.cost_usd is not None:
            data["cost_usd"] = act.cost_usd
        data |= {"duration_ms": took, "model": act.model, "sticky": self.sticky, "utilization": _NEVER, **self.route}
        if self.metadata:
            data["metadata"] = self.metadata
        if error:
            data["error"] = error
        total = act.input_tokens + act.output_tokens
        done: Json = {"round": 1, "message": f"{self.task} # 1     +{self._since() // 1000}s done {total}tok"}
        done |= {"turn_index": 1, "duration_ms": took, "since_last_ms": self._since()}
        done |= {"tok_per_sec": act.output_tokens / max(took / 1000, 0.001), "input_tokens": act.input_tokens}
        done |= {"output_tokens": act.output_tokens, "total_tokens": total} | self._context()
        self._write(self._line(2, "session.end", data), self._progress(self.seq + 1, "response", "complete", **done))
        return took

    def _turn(self) -> Json:
        return {"turn_index": 1} | self._context()

    def _context(self) -> Json:
        count = self.tokens_in_context
        summary = f"subprocess tool_calls={self.tools} context_messages=1 context_tokens_estimate={count}"
        return {"context_messages": 1, "context_tokens_estimate": count, "session_summary": summary}

    def _since(self) -> int:
        return (self.clock() - self.last) // (NS // 1000)

    def _progress(self, seq: int, phase: str, state: str, **data: Any) -> str:
        head: Json = {"phase": phase, "state": state, "source": phase, "task_id": self.task}
        return self._line(seq, "progress", head | data)

    def _line(self, seq: int, kind: str, data: Json) -> str:
        row: Json = {"session_id": self.name, "seq": seq, "type": kind, "ts": stamp(self.clock())}
        return go_json(row | {"data": data}) + "\n"

    def _write(self, *lines: str) -> None:
        for line in lines:
            self.disk.append(self.path, line)


def _cut(text: str, limit: int = 12) -> str:
    text = text.strip().replace("\n", " ")
    return text if len(text) <= 2 * limit else text[:limit] + "..."


class Copy(Struct):
    """The folder that one attempt works in."""

    project: Path
    path: Path
    base: str

    def make(self) -> None:
        """Check out the base in a folder of its own."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with alone(self.project):  # objects that are being written are not all there yet
            git(self.project, "clone", "-q", "--local", "--no-checkout", str(self.project), str(self.path))
        git(self.path, "checkout", "-q", "--detach", self.base)

    def apply(self, edit: FileEdit) -> None:
        """Change a file as the edit says."""
        apply_edit(self.path, edit)

    def commit(self, message: str, trailers: dict[str, str], at: int) -> str:
        """Commit the code, never ``.ddx``."""
        text = message + "\n\n" + "".join(f"{name}: {value}\n" for name, value in trailers.items())
        return commit(self.path, text, ".", ":!.ddx", at=at)

    def keep(self, ref: str, rev: str) -> None:
        """Give a commit of the copy a name in the project."""
        with alone(self.project):
            git(self.project, "fetch", "-q", "--no-tags", str(self.path), f"+{rev}:{ref}")

    def remove(self) -> None:
        """Remove the folder, whatever is in it."""
        if self.path.exists():
            shutil.rmtree(self.path)


def apply_edit(folder: Path, edit: FileEdit) -> None:
    """Replace ``old`` by ``new`` in a file of a folder; without ``old``, or when it is not there, append.

    Raises:
        GitError: the path leads out of the folder.
    """
    path = folder / edit.path
    if not path.resolve().is_relative_to(folder.resolve()):
        raise GitError(f"the edit of {edit.path} is outside the project")
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    if edit.old and edit.old in text:
        path.write_text(text.replace(edit.old, edit.new, 1), encoding="utf-8")
        return
    # a last line without its end must not run into the new one
    gap = "\n" if text and not text.endswith("\n") else ""
    path.write_text(text + gap + edit.new, encoding="utf-8")


class LandConflict(RuntimeError):
    """Two commits change the same lines."""


def land(project: Path, rev: str, message: str, scratch: Path, at: int, *, ours: bool = False) -> str:
    """Land a commit on the branch; returns the new tip.

    Args:
        message: of the merge commit, when the branch has moved.
        scratch: a folder to merge in; it is gone afterwards.
        ours: let the branch win where both changed the same lines.

    Raises:
        LandConflict: it cannot be merged, and ``ours`` is not set.
        GitError: the project's files stand in the way.
    """
    with alone(project):
        tip = head(project)
        merged = rev
        if git(project, "merge-base", tip, rev) != tip:
            merged = _merge(project, rev, tip, message, scratch, at, ("-X", "ours") if ours else ())
        git(project, "merge", "-q", "--ff-only", merged)
    return merged


def _merge(project: Path, rev: str, tip: str, message: str, scratch: Path, at: int, strategy: tuple[str, ...]) -> str:
    # in a separate folder: a conflict must not appear in a person's files
    git(project, "worktree", "add", "-q", "--detach", str(scratch), tip)
    try:
        try:
            git(scratch, "merge", "-q", "--no-ff", *strategy, "-m", message, rev, at=at)
        except GitError as error:
            if "onflict" not in str(error) and not _unmerged(scratch):
                raise
            raise LandConflict("merge conflict") from None
        return head(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        git(project, "worktree", "prune")


def _unmerged(folder: Path) -> bool:
    return bool(git(folder, "ls-files", "--unmerged"))


def subject(title: str) -> str:
    """A commit's first line made of a bead's title: one line, no control characters, not too long."""
    plain = re.sub(r"[^\x20-\x7e]+", " ", title)
    plain = re.sub(r"\s+", " ", plain).strip() or "work on the bead"
    return f"feat: {plain[0].lower()}{plain[1:64]}".rstrip()
