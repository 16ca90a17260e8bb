"""Whose a call is that names no attempt: ddx's session index says the bead at most, and several workers write into it.

Each loop of ddx, of a command line or of its server, keeps a log of the beads that it takes up. The loop that
spoke of a bead last before a call began made the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from helix_tui.core.ddx.attempts.calls import IndexedCall
from helix_tui.core.ddx.attempts.loop_log import LoopEntry, LoopLogs
from helix_tui.core.ddx.files import stamp_of
from helix_tui.core.ground.time import NS
from helix_tui.core.supervision.stages.results import LoopResult

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
