"""What a turn cost, and the attempts of it that ddx's report leaves out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helix_tui.core.supervision.run_state.account import Account
from helix_tui.core.supervision.stages.results import LoopResult, LoopTurn

FIRST, LAST = "20260801T100005-aaaaaaaa", "20260801T100006-bbbbbbbb"


@pytest.mark.parametrize(("detail", "word"), [("context canceled", "interrupted"), ("", "execution_failed")])
def test_an_attempt_that_a_report_leaves_out_has_the_word_of_its_evidence(
    tmp_path: Path, detail: str, word: str
) -> None:
    account = Account(tmp_path)
    sessions = tmp_path / "agent-logs" / "sessions" / "sessions-2026-08.jsonl"
    sessions.parent.mkdir(parents=True)
    for second, name in ((5, FIRST), (6, LAST)):
        folder = tmp_path / "executions" / name
        folder.mkdir(parents=True)
        result = {"bead_id": "b-1", "attempt_id": name, "status": "execution_failed", "detail": detail}
        (folder / "result.json").write_text(json.dumps(result))
        at = f"2026-08-01T10:00:{second:02}Z"
        row: dict[str, object] = {"id": name, "beadID": "b-1", "startedAt": at, "endedAt": at, "baseRev": "a"}
        row |= {"cost": 0.04, "costPresent": True, "tokens": 3000, "bundlePath": f".ddx/executions/{name}"}
        with sessions.open("a") as file:
            file.write(json.dumps(row) + "\n")
    told = LoopTurn((LoopResult("b-1", "execution_failed", LAST, "context canceled"),), 1)
    sums, left_out = account.turn(told, 0)
    assert [(each.attempt_id, each.word) for each in left_out] == [(FIRST, word)]
    assert sums.usd == 0.08
