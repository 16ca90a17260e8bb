"""What one run costs: every call of an agent since it began, each once.

ddx's session index has a row for each; where it has none of an attempt or a question, what ddx's report or
the agent's answer says of it stands in.

Attempts that ddx's loop told a run of and of which no evidence is left: what its results said of them.

ddx's evidence is the one record of attempts (CONTRACT-001); what the run's state keeps of the results
stands in only where that record has nothing.

Whose a call is that names no attempt: ddx's session index says the bead at most, and several workers write into it.

Each loop of ddx, of a command line or of its server, keeps a log of the beads that it takes up. The loop that
spoke of a bead last before a call began made the call.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import MEMORY_CLASSES, Attempt, Piece, memory_class
from helix_tui.core.ddx.attempts.calls import IndexedCall, SessionIndex
from helix_tui.core.ddx.attempts.index import BranchHistory, merge_report
from helix_tui.core.ddx.attempts.loop_log import LoopEntry, LoopLogs
from helix_tui.core.ddx.attempts.sums import AgentCall, Sums, sum_calls
from helix_tui.core.ddx.files import decode_object, read_bytes, stamp_of
from helix_tui.core.ddx.names import instant, money, text, whole
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, parse_instant
from helix_tui.core.supervision.run_state.state import load_state
from helix_tui.core.supervision.stages.results import LoopResult, LoopTurn

_LOOKED_AT = "picker."
"""How the entries on beads begin that a loop did not take up: another was quicker, say."""


class WhoseCall:
    """Tells the calls of one turn from those of workers beside it, by the logs that grew since it began."""

    def __init__(self, ddx_dir: Path, since: int, results: Iterable[LoopResult]) -> None:
        """Read those logs.

        Args:
            since: when the turn began, in nanoseconds.
            results: what the turn's ddx reported.
        """
        ours = {result.session_id for result in results if result.session_id}
        logs = LoopLogs(ddx_dir)
        self._said: list[tuple[int, str, bool]] = []  # when, of which bead, by a worker beside
        stamps = ((path, stamp_of(path)) for path in logs.paths())
        grown = [path for path, stamp in stamps if stamp is not None and stamp[0] >= since // NS * NS]
        loops = [entries for path in grown if (entries := logs.poll([path]))]
        begun = [entries for entries in loops if (entries[0].at or 0) >= since // NS * NS]
        own = [entries for entries in begun if ours & _told(entries)]
        if not own:
            own = [entries for entries in begun if not _told(entries)]
        for entries in loops:
            beside = not any(entries is each for each in own)
            taken = (each for each in entries if not each.type.startswith(_LOOKED_AT))
            self._said += [(each.at, each.bead_id, beside) for each in taken if each.at is not None]
        self._said.sort()

    def beside(self, call: IndexedCall) -> bool:
        """Whether a worker beside the turn made it; not where no log says."""
        bead_id = call.call.bead_id
        for at, named, beside in reversed(self._said):
            if at <= call.started_at and (named == bead_id or not bead_id):
                return beside
        return False


def _told(entries: Sequence[LoopEntry]) -> set[str]:
    """The sessions whose results a loop has reported."""
    return {told for each in entries if each.type == "bead.result" and (told := each.text("session_id"))}


class Account:
    """Reads off what the turns and questions of one run cost."""

    def __init__(self, ddx_dir: Path, *, anew: bool = True) -> None:
        """Open the account; what the index holds by now is counted, unless it may be of a run that died."""
        self._ddx_dir = ddx_dir
        self._index = SessionIndex(ddx_dir)
        self._counted: set[tuple[str, int]] = set()
        if anew:
            self._index.refresh()
            self._counted = {_key(each) for each in self._index.calls}

    def turn(self, turn: LoopTurn, since: int, booked: Collection[str] = ()) -> tuple[Sums, tuple[LoopResult, ...]]:
        """What a turn of ddx cost, and the attempts of it that its report leaves out (May tries again).

        Args:
            since: instant before which nothing is of this turn.
            booked: ids of attempts that are counted already.
        """
        told = {result.attempt_id for result in turn.results}
        calls = self._made_by(turn, since, booked)
        worked = {call.attempt_id for call in calls if call.part == "work"}
        missing = [result for result in turn.results if result.attempt_id not in worked]
        calls += [_from_report(result) for result in missing]
        if missing and missing == list(turn.results) and not any(result.tokens for result in missing) and turn.tokens:
            calls[-1] = replace(calls[-1], tokens=turn.tokens)  # a harness that tells its tokens on stderr
        unsaid = {call.attempt_id: call.bead_id for call in calls if call.part == "work" and call.attempt_id}
        left_out = [self._result(name, unsaid[name]) for name in sorted(unsaid.keys() - told)]
        return sum_calls(calls), tuple(left_out) if turn.results else ()

    def _made_by(self, turn: LoopTurn, since: int, booked: Collection[str]) -> list[AgentCall]:
        """The calls of a turn: of its attempts, and what names none of them and no worker beside has made."""
        told = {result.attempt_id for result in turn.results if result.attempt_id}
        beads = {result.bead_id for result in turn.results}
        new = [each for each in self._new(since) if each.call.attempt_id not in booked]
        likely = [each for each in new if not each.call.attempt_id or each.call.bead_id in beads]
        whose = WhoseCall(self._ddx_dir, since, turn.results)
        return [
            each.call for each in new if each.call.attempt_id in told or (each in likely and not whose.beside(each))
        ]

    def question(self, since: int, tokens: int, usd: float) -> Sums:
        """What a question to an agent, or a planning stage, cost."""
        named_nothing = (each.call for each in self._new(since) if not each.call.attempt_id and not each.call.bead_id)
        calls = list(named_nothing)  # what names a bead is of a worker beside
        if not calls:
            calls = [AgentCall("other", since, usd or None, tokens or None)]
        return sum_calls(calls)

    def _new(self, since: int) -> Iterable[IndexedCall]:
        """Rows from the second of ``since`` on that were not counted yet."""
        self._index.refresh()
        for each in reversed(self._index.calls):
            key = _key(each)
            if each.call.at < since // NS * NS:
                return
            if key not in self._counted and each.started_at >= since // NS * NS:
                self._counted.add(key)
                yield each

    def _result(self, attempt_id: str, bead_id: str) -> LoopResult:
        raw = read_bytes(self._ddx_dir / "executions" / attempt_id / "result.json")
        try:
            said = decode_object(raw or b"")
        except ValueError:
            said = {}
        status, detail = text(said, "status") or "unknown", clean_line(text(said, "detail"), 400)
        return LoopResult(bead_id, status, attempt_id, detail)


def _key(each: IndexedCall) -> tuple[str, int]:
    return (each.session_id, each.started_at)


def _from_report(result: LoopResult) -> AgentCall:
    return AgentCall("work", 0, result.cost_usd or None, result.tokens or None, result.bead_id, result.attempt_id)


def with_given(project: Project, attempts: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """Attempts by the memories that they were given: in their bead, or by a hook as the ledger has it."""
    if not (project.helix_dir / "helix.db").exists() and not os.environ.get("HELIX_DB_PATH"):
        return tuple(attempts)
    from helix_tui.core.memory.recall.ledger import memories_given  # its libraries take half a second

    given = {name: memory_class(count) for name, count in memories_given(project).items()}
    return tuple(
        replace(each, memories=told)
        if (told := given.get(each.attempt_id)) and MEMORY_CLASSES.index(told) > _class_of(each)
        else each
        for each in attempts
    )


def _class_of(attempt: Attempt) -> int:
    return MEMORY_CLASSES.index(attempt.memories) if attempt.memories in MEMORY_CLASSES else -1


def with_told(project: Project, attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """Attempts with evidence, by the memories that each was given, and those of the last run that have none."""
    known = {attempt.attempt_id for attempt in attempts}
    evident = {attempt.bead_id for attempt in attempts}
    branch, told = BranchHistory(project), []
    for cycle in load_state(project).cycles:
        rows = cycle.get("attempts")
        for row in rows if isinstance(rows, list) else ():
            if not isinstance(row, dict):
                continue
            name = text(row, "attempt_id")
            # Without a name nobody can tell whether the evidence of its bead is of this very attempt.
            if name not in known if name else text(row, "bead_id") not in evident:
                piece = _piece(name, row, parse_instant(str(cycle.get("at", ""))))
                told.append(merge_report(branch, piece))
    return with_given(project, (*attempts, *told))


def _piece(name: str, row: Mapping[str, Any], at: int | None) -> Piece:
    words = ("bead_id", "status", "detail", "session_id", "harness", "model", "provider")
    revs = ("base_rev", "result_rev", "preserve_ref")
    said: dict[str, Any] = {word: text(row, word) for word in (*words, *revs)}
    return Piece(
        "loop",
        name,
        **said,
        tokens=whole(row.get("tokens")) or None,
        cost_usd=money(row.get("cost_usd")) or None,
        duration_ms=whole(row.get("duration_ms")),
        retry_after=instant(row.get("retry_after")),
        finished_at=at,
    )
