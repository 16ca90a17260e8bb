"""Every sum of money and tokens equals the agent's own count of its calls, to the cent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.real.stranger import Stranger

MODES = [
    ("ok", "APPROVE"),
    ("ok", "BLOCK"),
    ("ok", "REQUEST_CHANGES"),
    ("fail", "APPROVE"),
    ("nochange", "APPROVE"),
    ("rationale", "APPROVE"),
]


def own_count(stranger: Stranger) -> list[dict[str, Any]]:
    """What the scripted agent wrote down of its calls."""
    path = stranger.home / "calls.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def agrees(stranger: Stranger, spent: dict[str, Any]) -> None:
    """Dollars, tokens and calls are the agent's."""
    calls = own_count(stranger)
    usd = sum(call["cost_usd"] or 0.0 for call in calls)
    tokens = sum(call["tokens"] or 0 for call in calls)
    told = (round(spent["usd"] or 0.0, 4), spent["tokens"] or 0, spent["calls"])
    assert told == (round(usd, 4), tokens, len(calls)), spent
    assert spent["complete"]
    assert round(sum(part["usd"] or 0.0 for part in spent["parts"].values()), 4) == round(usd, 4)


@pytest.mark.parametrize(("mode", "verdict"), MODES, ids=["-".join(pair) for pair in MODES])
def test_a_drain_of_ddx_costs_what_the_agent_counted(stranger: Stranger, mode: str, verdict: str) -> None:
    for number in range(2):
        stranger.bead(f"Write {number}")
    stranger.commit("beads")
    stranger.mode(mode)
    stranger.verdict(verdict)
    stranger.drained()
    assert own_count(stranger)
    agrees(stranger, stranger.tui_json("attempts")["spent"])
    agrees(stranger, stranger.tui_json("insights")["burn"]["last_24h"]["spent"])


@pytest.mark.parametrize("mode", ["ok", "fail"])
def test_a_run_costs_what_the_agent_counted_and_counts_every_attempt(stranger: Stranger, mode: str) -> None:
    for number in range(2):
        stranger.bead(f"Write {number}")
    stranger.commit("beads")
    stranger.mode(mode)
    stranger.supervised("--no-auto-review", "--no-auto-align")
    status = stranger.tui_json("status")["run"]
    agrees(stranger, status["spent"])
    attempts = stranger.tui_json("attempts")
    assert status["attempted_cycles"] == len(attempts["attempts"])
    assert status["spent"] == attempts["spent"]


def test_an_unknown_cost_is_a_least_one(stranger: Stranger) -> None:
    stranger.bead("Write it")
    stranger.commit("beads")
    stranger.mode("ratelimit")
    waits = "--rate-limit-max-wait" in stranger.ddx("work", "--help").stdout
    stranger.drained("--once", *(("--rate-limit-max-wait", "1s") if waits else ()))
    document = stranger.tui_json("attempts")
    assert not document["spent"]["complete"]
    assert document["attempts"][0]["cost_usd"] is None
    assert document["spent"]["parts"]["work"]["usd"] is None
