"""What a turn cost, and the attempts of it that ddx's report leaves out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from helix_tui.core.ddx.attempts.pieces import Piece, merge
from helix_tui.core.ground.time import parse_instant
from helix_tui.core.supervision.run_state.budget import Account
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
    turn = LoopTurn((LoopResult("b-1", "execution_failed", LAST, "context canceled"),), 1)
    sums, left_out = account.turn(turn, 0)
    assert [(each.attempt_id, each.word) for each in left_out] == [(FIRST, word)]
    assert sums.usd == 0.08


def test_what_ddx_landed_of_an_earlier_attempt_costs_nothing_again(tmp_path: Path) -> None:
    landed = merge(FIRST, {"recovery": Piece("recovery", FIRST, "b-1", status="success", recovered=True)})
    told = LoopResult("b-1", "success", FIRST, "dangling-success recovery", tokens=3000, cost_usd=0.04)
    for result, usd in ((told, 0.04), (replace(told, judged=landed), 0.0)):
        sums, left_out = Account(tmp_path).turn(LoopTurn((result,), 1), 0)
        assert (sums.usd or 0.0, left_out) == (usd, ())


def written(path: Path, *rows: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def said(session: str, second: int, kind: str, **data: object) -> dict[str, object]:
    return {"session_id": session, "ts": f"2026-08-01T10:00:{second:02}Z", "type": kind, "data": data}


THROWN_AWAY = "lifecycle dispatch: project root mutation rejected"


def called(second: int, bead_id: str = "", attempt_id: str = "") -> dict[str, object]:
    at = f"2026-08-01T10:00:{second:02}.5Z"
    row: dict[str, object] = {"id": f"as-{second}", "beadID": bead_id, "startedAt": at, "endedAt": at}
    row |= {"cost": 0.04, "costPresent": True, "tokens": 3000}
    return row | ({"bundlePath": f".ddx/executions/{attempt_id}", "baseRev": "a"} if attempt_id else {})


@pytest.mark.parametrize("beside", [5, 11], ids=["began before the turn", "began during the turn"])
def test_what_a_worker_beside_has_called_for_is_in_no_turn(tmp_path: Path, beside: int) -> None:
    account, since = Account(tmp_path), parse_instant("2026-08-01T10:00:10Z") or 0
    logs = tmp_path / "agent-logs"
    result = ("bead.result", {"bead_id": "b-1", "session_id": "eb-1"})
    other = ("bead.result", {"bead_id": "b-2", "session_id": "eb-2"})
    written(
        logs / "agent-loop-1.jsonl",
        said("one", beside, "loop.start"),
        said("one", 12, "bead.claimed", bead_id="b-2"),
        said("one", 12, "pre_claim_intake.start", bead_id="b-2"),
        said("one", 12, "pre_claim_intake.warn", bead_id="b-2", detail=THROWN_AWAY),
        said("one", 13, "picker.claim_race", bead_id="b-1"),
        said("one", 16, other[0], **other[1]),
    )
    written(
        logs / "agent-loop-2.jsonl",
        said("two", 10, "loop.start"),
        said("two", 12, "pre_claim_intake.start", bead_id="b-1"),
        said("two", 12, "pre_claim_intake.warn", bead_id="b-1", detail=THROWN_AWAY),
        said("two", 17, result[0], **result[1]),
    )
    sessions = logs / "sessions" / "sessions-2026-08.jsonl"
    written(sessions, called(13, "b-2"), called(14, "b-1"), called(15, "b-2", LAST), called(16, "b-1", FIRST))
    turn = LoopTurn((LoopResult("b-1", "success", FIRST, session_id="eb-1"),), 1)
    sums, left_out = account.turn(turn, since)
    assert {name: part.calls for name, part in sums.parts.items()} == {"work": 1, "checks": 2}
    assert (round(sums.usd or 0, 2), sums.complete) == (0.08, False), "ddx wrote no cost of the check it threw away"
    assert left_out == ()


def test_a_question_costs_what_names_no_bead(tmp_path: Path) -> None:
    account = Account(tmp_path)
    sessions = tmp_path / "agent-logs" / "sessions" / "sessions-2026-08.jsonl"
    written(sessions, called(13, "b-2"), called(14), called(15, "b-2", LAST))
    assert account.question(0, 0, 0.0).whole.calls == 1
