"""What the bench of human answers counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import ask_human


def test_identifiers_are_names_of_code_outside_blocks() -> None:
    text = "The `ensure_ascii` flag of DefaultJSONProvider goes to `json.dumps()`.\n```py\nhidden_name = 1\n```\nWords."
    assert ask_human.identifiers_of(text) == ["ensure_ascii", "json", "dumps", "DefaultJSONProvider"]


def test_a_set_that_is_not_there_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sys.argv", ["ask_human", f"lost={tmp_path}:{tmp_path / 'none.jsonl'}", "--cache", str(tmp_path)]
    )
    assert ask_human.main() == 0
    assert "lost: not measured" in capsys.readouterr().out
