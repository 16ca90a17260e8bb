"""``helix-tui ask --serve``: the official client lists and calls the tools, and stdout holds nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from helix_tui.cli.program import main
from tests.core.evidence.work import make_work

if TYPE_CHECKING:
    from mcp import ClientSession

pytestmark = pytest.mark.long


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project of this test's person alone: an index that another person's server makes is nobody's here."""
    return make_work(tmp_path / "ferry").root


@asynccontextmanager
async def _client(root: Path) -> AsyncIterator[ClientSession]:
    # its models of the protocol take a second, in each worker of the suite
    from mcp import ClientSession, StdioServerParameters, stdio_client

    words = ["-m", "helix_tui", "-C", str(root), "ask", "--serve"]
    async with (
        stdio_client(StdioServerParameters(command=sys.executable, args=words)) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def _call(session: ClientSession, tool: str, **given: Any) -> dict[str, Any]:
    done = await session.call_tool(tool, given)
    assert not done.is_error, done.content
    found = done.structured_content
    assert isinstance(found, dict)
    return found


async def test_tools_are_listed_and_answer_with_hashes(root: Path) -> None:
    async with _client(root) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(tools) == {"search", "ask", "open"}
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())

        found = await _call(session, "search", query="read a line of the timetable")
        assert found["files"][0] == "ferry/timetable.py"
        item = found["items"][0]
        opened = await _call(session, "open", id=item["id"], hash=item["hash"])
        assert opened["unchanged"]
        assert opened["text"] == item["text"]

        told = await _call(session, "ask", question="which beads touch the parser?")
        assert told["result"] == "sources"
        source = next(one for one in told["sources"] if one["id"].startswith("bead:fy-1a2b:"))
        assert "comma" in (await _call(session, "open", id=source["id"]))["text"]
        whole = await _call(session, "open", id="bead:fy-1a2b")
        assert "## Acceptance" in whole["text"]


async def test_a_changed_file_has_another_hash(tmp_path: Path) -> None:
    root = make_work(tmp_path / "ferry").root
    async with _client(root) as session:
        before = await _call(session, "open", id="README.md")
        (root / "README.md").write_text("# Ferry\n\nTimes of boats.\n")
        after = before
        for _ in range(3_000):  # the server follows the files; each look costs a few milliseconds
            after = await _call(session, "open", id="README.md", hash=before["hash"])
            if not after["unchanged"]:
                break
        assert after["text"] == "# Ferry\n\nTimes of boats."
        assert not after["unchanged"]


async def test_what_is_not_there_is_said_and_nothing_outside_is_read(root: Path) -> None:
    async with _client(root) as session:
        for ident in ("nothing.py", "../../etc/passwd", "/etc/passwd", "bead:fy-none", "commit:zzz"):
            done = await session.call_tool("open", {"id": ident})
            assert done.is_error
            assert "nothing here is called" in str(done.content)


async def test_nothing_asked_is_refused(root: Path) -> None:
    async with _client(root) as session:
        for tool, given, why in (("ask", {"question": " "}, "is empty"), ("search", {"query": ""}, "has no words")):
            done = await session.call_tool(tool, given)
            assert done.is_error
            assert why in str(done.content)


def test_a_client_that_goes_while_it_is_answered_is_no_failure(root: Path) -> None:
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    asked[0]["params"]["clientInfo"] = {"name": "a client", "version": "1"}
    words = [sys.executable, "-m", "helix_tui", "-C", str(root), "ask", "--serve"]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdout.close()
        for one in asked:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **one}) + "\n")
        server.stdin.close()
        assert (server.wait(60), server.stderr.read()) == (0, "")


def test_a_question_beside_serve_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-C", str(root), "ask", "--serve", "why?"]) == 2
    assert "takes no question" in capsys.readouterr().err


def test_without_the_package_it_says_how_to_get_it(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    assert main(["-C", str(root), "ask", "--serve"]) == 1
    said = capsys.readouterr().err
    assert "pipx inject helix-tui 'mcp>=2,<3'" in said
    assert "pip install 'helix-tui" not in said  # no such distribution: the name is free for anybody
