"""Who is to do the work: a command line, then the environment, then the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from helix_tui.core.evidence.session import model_command
from helix_tui.core.supervision.stages.delegate import chosen
from helix_tui.settings.file import load_settings


def test_a_command_line_comes_first_then_the_environment_then_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('agent = "claude"\nmodel = "sonnet"\n')
    settings = load_settings(file)
    set_so = {"set_agent": settings.agent, "set_model": settings.model}
    nobody = chosen({})
    assert (nobody.harness, nobody.model) == ("", "")
    kept = chosen({}, **set_so)
    assert (kept.harness, kept.model) == ("claude", "sonnet")
    other = chosen({"HELIX_AGENT": "codex"}, **set_so)
    assert (other.harness, other.model) == ("codex", ""), "the model goes with the agent it was set with"
    typed = chosen({"HELIX_AGENT": "codex", "HELIX_MODEL": "m"}, agent="claude", model="opus", **set_so)
    assert (typed.harness, typed.model) == ("claude", "opus")
    file.write_text("agent = 3\n")
    assert load_settings(file).problems == ("agent: write a name in quotes",)


def test_a_question_to_a_model_says_who_is_to_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ddx"
    program.write_text(
        '#!/bin/sh\n[ "$1" = run ] || exit 1\n'
        "printf 'Usage:\\n  ddx run [flags]\\n\\nFlags:\\n  --harness x\\n  --model x\\n  --prompt x\\n'\n"
    )
    program.chmod(0o755)
    who = chosen({"HELIX_AGENT": "claude", "HELIX_MODEL": "sonnet"}).flags
    words = model_command(program, tmp_path, prompt="P", seconds=5, who=who)
    assert words == (str(program), "run", "--harness", "claude", "--model", "sonnet", "--prompt", "P")
