"""Say in one line, with the remedy, where the installed ddx does not fit the queue."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.core.beads.readiness import tracker_era
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ground.text import capitalized, clean_line, counted

if TYPE_CHECKING:
    pass
from helix_tui.core.ddx.dialect import Dialect, FileGate, Refused, RowGate

SAMPLES = 5
"""Maximum number of beads named."""


class Remark(Struct, frozen=True):
    """A warning about the installed ddx that affects the queue, with the remedy."""

    text: str
    short: tuple[str, ...] = ()
    """Shorter versions, the longest first."""

    def __str__(self) -> str:
        return self.text


class Shut(Struct, frozen=True):
    """A project in which the installed ddx refuses every command, every change, or to start work."""

    gate: RowGate | FileGate
    ids: tuple[str, ...] = ()
    """The beads that cause it; none if a file does."""

    @property
    def command(self) -> str:
        """The remedy that DDx names, or what shows the cause."""
        return self.gate.command

    @property
    def refuses(self) -> Refused:
        """What it refuses."""
        return self.gate.refuses if isinstance(self.gate, FileGate) else "every command"

    @property
    def briefly(self) -> str:
        """What it refuses, in a word."""
        return {"every command": "all", "every change and all work": "changes", "all work": "work"}[self.refuses]

    @property
    def lists(self) -> bool:
        """Whether ddx still lists what is ready."""
        return self.refuses != "every command"

    @property
    def bars_changes(self) -> bool:
        """Whether it refuses changes of the queue."""
        return self.refuses != "all work"

    def matters(self, ready: Collection[str]) -> bool:
        """Whether a person must act before the queue moves; refused work matters once some bead is ready."""
        return self.bars_changes or bool(ready)

    @property
    def short(self) -> str:
        """The fact alone, shown beside ready beads."""
        return f"ddx refuses {self.refuses} ({self.gate.code})"

    @property
    def cause(self) -> str:
        """What ddx refuses, and for which beads or which file."""
        said = f"ddx refuses {self.refuses} here ({self.gate.code})"
        if isinstance(self.gate, FileGate):
            return f"{said}: {self.gate.reason}"
        named = ", ".join(clean_line(bead_id, 60) for bead_id in self.ids[:SAMPLES])
        more = f" and {len(self.ids) - SAMPLES} more" if len(self.ids) > SAMPLES else ""
        return f"{said}: {self.gate.kind} {self.gate.word} on {named}{more}"

    @property
    def remedy(self) -> str:
        """What to do about it, as the end of a sentence."""
        return self.gate.fix if isinstance(self.gate, FileGate) else f"run `{self.command}`"

    @property
    def fix(self) -> str:
        """What to do about it, in one sentence."""
        return f"{capitalized(self.remedy)}."

    @property
    def forms(self) -> tuple[str, ...]:
        """The remedy with the code, and without it."""
        return f"{self.gate.code}: {self.remedy}", self.remedy

    def record(self) -> dict[str, object]:
        """As JSON."""
        return {"code": self.gate.code, "ids": list(self.ids), "command": self.command, "refuses": self.refuses}

    def __str__(self) -> str:
        return f"{self.cause}; {self.remedy}"


def shut(beads: Mapping[str, Bead], dialect: Dialect | None) -> Shut | None:
    """What the installed ddx would refuse in a project with these beads, and why; or None."""
    if dialect is None:
        return None
    for gate in dialect.gates:
        if gate.kind == "label":
            ids = tuple(bead_id for bead_id, bead in beads.items() if gate.word in bead.labels)
        else:
            ids = tuple(bead_id for bead_id, bead in beads.items() if bead.status == gate.word)
        if ids:
            return Shut(gate, ids)
    return Shut(dialect.here) if dialect.here is not None else None


def untried(dialect: Dialect | None) -> Remark | None:
    """One line if the installed ddx could not be tried, else None."""
    if dialect is None or not dialect.doubt:
        return None
    return Remark(
        f"the installed ddx could not be tried ({dialect.doubt}): ready is judged by the rules of the DDx that wrote"
        " this tracker; run `helix-tui doctor`",
        (
            "the installed ddx could not be tried, so the tracker says what is ready: run `helix-tui doctor`",
            "ddx could not be tried: run `helix-tui doctor`",
        ),
    )


def difference(beads: Mapping[str, Bead], dialect: Dialect | None) -> Remark | None:
    """One line if another release than the installed one wrote the tracker, else None."""
    # without a trial the tracker's own rule judges its rows, so there is no difference to report
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
    return f", which does not read the {keys} keys of {counted(count, 'bead')}"


def remarks(beads: Mapping[str, Bead], dialect: Dialect | None) -> tuple[Remark, ...]:
    """Warnings about the installed ddx that affect the queue."""
    refused = shut(beads, dialect)
    said = Remark(str(refused), refused.forms) if refused else None
    others = (untried(dialect), difference(beads, dialect))
    return tuple(remark for remark in (said, *others) if remark is not None)
