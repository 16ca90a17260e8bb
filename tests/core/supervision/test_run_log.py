"""The log of a run: its own lines, apart from the output of programs and from texts that it quotes."""

from __future__ import annotations

from pathlib import Path

from helix_tui.core.supervision.run_state.run_log import Teller, said_lines


def test_what_was_put_before_an_agent_is_no_line_of_the_run(tmp_path: Path) -> None:
    teller = Teller(tmp_path / "run.log", lambda line: None)
    teller.verbose("put before the agent of “One”:\n--- context ---\n- Verify what you changed\n--- end context ---")
    assert said_lines(teller.path.read_text()) == ["put before the agent of “One”:"]
    teller.always("cycle 1: landed")
    assert said_lines(teller.path.read_text())[-1] == "cycle 1: landed"
