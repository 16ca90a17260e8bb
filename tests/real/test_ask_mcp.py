"""A real Claude Code asks our MCP server, configured by one line, with a scripted model behind it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.core.evidence.work import make_work
from tests.real.model import serving

TOOLS = ("search", "ask", "open")
STEPS: list[dict[str, Any]] = [
    {"tool": "WaitForMcpServers", "input": {}},
    {"tool": "mcp__helix__search", "input": {"query": "read a line of the timetable"}},
    {"tool": "mcp__helix__ask", "input": {"question": "which beads touch the parser?"}},
    {"tool": "mcp__helix__open", "input": {"id": "bead:fy-1a2b"}},
    {"text": "Done."},
]


def test_it_is_connected_by_one_line_and_every_tool_answers(claude: Path, tmp_path: Path) -> None:
    project = make_work(tmp_path / "ferry").root
    home = tmp_path / "home"
    home.mkdir()
    with serving({"": STEPS}) as model:
        env = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.port}",
            "ANTHROPIC_API_KEY": "none",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

        def run(*words: str) -> str:
            done = subprocess.run(
                [str(claude), *words], cwd=project, env=env, capture_output=True, text=True, timeout=120, check=True
            )
            return done.stdout

        run("mcp", "add", "helix", "--", "helix-tui", "ask", "--serve")
        assert "Connected" in run("mcp", "list")
        allowed = " ".join(f"mcp__helix__{name}" for name in TOOLS)
        assert run("-p", "What touches the parser?", "--allowedTools", allowed).strip() == "Done."
        results = str(model.asked[-1]["messages"])
    for part in ("ferry/timetable.py", "splits a stop name at its comma", "## Acceptance", "hash"):
        assert part in results, part
