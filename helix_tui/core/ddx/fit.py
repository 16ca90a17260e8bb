"""Whether a tracker and the installed ddx fit: who wrote the one, and what the other reads of it.

docs/decisions/0003: where they differ it is said in one line, with the way out.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from helix_tui.core.beads.readiness import tracker_era
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.dialect import Dialect, RowGate
from helix_tui.core.ground.text import clean_line

SAMPLES = 5
"""How many beads are named."""


class Remark(Struct, frozen=True):
    """What a person must know of the installed ddx before believing a queue, with the way out."""

    text: str
    short: tuple[str, ...] = ()
    """The same in fewer words, the longest first, for where there is less room."""

    def __str__(self) -> str:
        return self.text


class Shut(Struct, frozen=True):
    """A tracker on which the installed ddx refuses every command."""

    gate: RowGate
    ids: tuple[str, ...]
    """The beads for which it does."""

    @property
    def command(self) -> str:
        """What DDx names as the way out."""
        return self.gate.command

    @property
    def short(self) -> str:
        """The fact alone, for where a bead is called ready."""
        return f"ddx refuses every command ({self.gate.code})"

    @property
    def cause(self) -> str:
        """What ddx refuses, and for which beads."""
        named = ", ".join(clean_line(bead_id, 60) for bead_id in self.ids[:SAMPLES])
        more = f" and {len(self.ids) - SAMPLES} more" if len(self.ids) > SAMPLES else ""
        return f"ddx refuses every command here ({self.gate.code}): {self.gate.kind} {self.gate.word} on {named}{more}"

    @property
    def fix(self) -> str:
        """What to do about it, in one sentence."""
        return f"Run `{self.command}`."

    @property
    def forms(self) -> tuple[str, ...]:
        """The way out with the code, and alone."""
        return f"{self.gate.code}: run `{self.command}`", f"run `{self.command}`"

    def record(self) -> dict[str, object]:
        """As JSON."""
        return {"code": self.gate.code, "ids": list(self.ids), "command": self.command}

    def __str__(self) -> str:
        return f"{self.cause}; run `{self.command}`"


def shut(beads: Mapping[str, Bead], dialect: Dialect | None) -> Shut | None:
    """Why the installed ddx would refuse every command on these beads; None where it would not."""
    if dialect is None or not dialect.gates:
        return None
    for gate in dialect.gates:
        if gate.kind == "label":
            ids = tuple(bead_id for bead_id, bead in beads.items() if gate.word in bead.labels)
        else:
            ids = tuple(bead_id for bead_id, bead in beads.items() if bead.status == gate.word)
        if ids:
            return Shut(gate, ids)
    return None


def difference(beads: Mapping[str, Bead], dialect: Dialect | None) -> Remark | None:
    """One line where another release wrote the tracker than the one at hand; else None."""
    if dialect is None or not dialect.proven or not beads:
        return None
    rule, wrote = dialect.rule, tracker_era(beads)
    if wrote == rule.name:
        return None
    left = [bead for bead in beads.values() if bead.status not in TERMINAL]
    if wrote == "april":
        unread = 0 if rule.old_keys else sum(bead.has_april_keys for bead in left)
        return Remark(
            f"an earlier DDx wrote this tracker; ready is what the installed ddx gives out"
            f"{_unread(unread, 'execute-loop-…')}: a bead that must wait needs `helix-tui eligible ID off`",
            (
                "an earlier DDx wrote this tracker: `helix-tui eligible ID off` holds a bead back",
                "an earlier DDx wrote this tracker",
            ),
        )
    unread = 0 if rule.new_keys else sum(bead.has_work_keys for bead in left)
    return Remark(
        f"a later DDx wrote this tracker; ready is what the installed ddx gives out"
        f"{_unread(unread, 'work-…')}: run `ddx upgrade`, or name the later one with --ddx",
        (
            "a later DDx wrote this tracker: run `ddx upgrade`, or name the later one with --ddx",
            "a later DDx wrote it: run `ddx upgrade`",
        ),
    )


def _unread(count: int, keys: str) -> str:
    if not count:
        return ""
    return f", which does not read the {keys} keys of {count} bead{'s' if count != 1 else ''}"


def remarks(beads: Mapping[str, Bead], dialect: Dialect | None) -> tuple[Remark, ...]:
    """What a person must know of the installed ddx before believing a queue."""
    refused = shut(beads, dialect)
    said = Remark(str(refused), refused.forms) if refused else None
    return tuple(remark for remark in (said, difference(beads, dialect)) if remark is not None)
