"""One ddx command with all that is known about it before it runs, and how its words are written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from helix_tui.core.ddx.dialect import Dialect, Shut
from helix_tui.core.editing.overlay import Edits, Overlay, same
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_line

NEW = "(new)"
"""Stands for the id of a bead that does not exist yet; in a later command ddx's answer takes its place."""

MAX_VALUE = 120_000
"""Bytes of one value: a kernel takes no longer word on a command line."""

CLAIM_FIELDS = (
    "claimed-at",
    "claimed-machine",
    "claimed-pid",
    "claimed-session",
    "claimed-worktree",
    "execute-loop-heartbeat-at",
    "work-heartbeat-at",
)
"""What a claim writes into the row; only letting go of the bead takes it away again."""

FLAGS = {
    "title": "--title",
    "priority": "--priority",
    "labels": "--labels",
    "acceptance": "--acceptance",
    "owner": "--assignee",
    "parent": "--parent",
    "description": "--description",
    "notes": "--notes",
}
"""Fields that ``bead update`` has a flag for; an empty text clears them."""


class OperationRefused(HelixError):
    """An operation that does not hold now; the message is one sentence saying why and what would help."""


class CommandStep(Struct, frozen=True):
    """One command, what it rests on and what it changes."""

    args: tuple[str, ...]
    """Words after ``ddx``."""
    edits: Edits = {}
    """What the rows hold afterwards, for certain."""
    before: Edits = {}
    """What they held before, the same fields: whoever changed them since is not overwritten."""
    watched: tuple[tuple[str, str], ...] = ()
    """Further (bead, field) pairs that the command may change in a way that only ddx knows."""
    ripple: Edits = {}
    """What ddx will most likely do to other rows by itself."""
    leases: Mapping[str, bool] = {}
    """Claims outside the rows that it takes or lets go."""
    creates: str = ""
    """The stand-in for the id of the bead that it makes."""


class PlanBuilder:
    """Collects the steps of a plan, each planned on what the ones before it leave.

    Attributes:
        busy: beads that a live worker is on, by more than a claim.
        refused: why ddx would refuse whatever it is asked; then nothing is planned.
        notes: what somebody should know before the commands run.
    """

    def __init__(
        self, overlay: Overlay, dialect: Dialect, busy: Collection[str] = (), *, refused: Shut | None = None
    ) -> None:
        self.overlay = overlay
        self.dialect = dialect
        self.busy = busy
        self.refused = refused
        self.steps: list[CommandStep] = []
        self.notes: list[str] = []

    def add(
        self,
        args: Iterable[str],
        edits: Edits,
        *,
        watched: Iterable[tuple[str, str]] = (),
        ripple: Edits | None = None,
        leases: Mapping[str, bool] | None = None,
        creates: str = "",
    ) -> None:
        """Append one command."""
        if self.refused is not None:
            raise OperationRefused(str(self.refused))
        words = tuple(args)
        check_words(words)
        for bead_id, fields in edits.items():
            self._check_labels(bead_id, fields.get("labels") or ())
            self._check_gates(bead_id, fields)
        before = {bead_id: self.overlay.values(bead_id, fields) for bead_id, fields in edits.items()}
        step = CommandStep(words, edits, before, tuple(watched), ripple or {}, leases or {}, creates)
        self.steps.append(step)
        self.overlay.apply(edits, leases)
        self.overlay.apply(ripple or {})

    def _check_labels(self, bead_id: str, labels: Iterable[object]) -> None:
        """Refuse to write labels one of which ddx, given all of them in one word, would cut in two."""
        for text in labels:
            if isinstance(text, str) and "," in text:
                raise OperationRefused(
                    f"the label “{called(text)}” of {called(bead_id)} has a comma, at which ddx would split "
                    "it for good; remove that label first, or leave the labels of this bead as they are"
                )

    def _check_gates(self, bead_id: str, fields: Mapping[str, Any]) -> None:
        """Refuse what would make this ddx refuse every command from then on."""
        have = self.overlay.values(bead_id, ("labels", "status")) if bead_id in self.overlay else {}
        for gate in self.dialect.gates:
            if gate.kind == "label":
                brings = gate.word in (fields.get("labels") or ()) and gate.word not in (have.get("labels") or ())
            else:
                brings = fields.get(gate.kind) == gate.word != have.get(gate.kind)
            if brings:
                raise OperationRefused(
                    f"with the {gate.kind} {gate.word} on a bead this ddx refuses every command, reading too "
                    f"({gate.code}); only `{gate.command}` would help, and it removes the {gate.kind}"
                )

    def update(
        self,
        bead_id: str,
        fields: Mapping[str, Any],
        *,
        flags: Sequence[str] = (),
        watched: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Append one ``bead update`` that leaves the bead with these fields; nothing where it has them."""
        changed = {
            name: value for name, value in fields.items() if not same(name, self.overlay.value(bead_id, name), value)
        }
        if changed or flags:
            args = ("bead", "update", bead_id, *flags, *update_words(changed))
            self.add(args, {bead_id: changed}, watched=watched)


def update_words(fields: Mapping[str, Any]) -> list[str]:
    """The flags of ``bead update`` that set fields to values, or take them away where the value is None."""
    words: list[str] = []
    for name, value in fields.items():
        if name in FLAGS:
            words += option(FLAGS[name], _flag_text(name, value))
        elif name == "status":
            words += option("--status", str(value))
        elif value is None:
            words += option("--unset", name)
        else:
            words += option("--set", f"{name}={_set_text(value)}")
    return words


def _flag_text(name: str, value: Any) -> str:
    if value is None:
        return ""
    return ",".join(value) if name == "labels" else str(value)


def _set_text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def option(flag: str, value: str) -> list[str]:
    """A flag and its value; a value that looks like a flag is written so that it cannot be one."""
    return [f"{flag}={value}"] if value.startswith("-") else [flag, value]


def stored(name: str, text: str, dialect: Dialect) -> Any:
    """What ``--set name=text`` leaves in the row: two words become a truth, a rank in some
    releases a number."""
    if text in ("true", "false"):
        return text == "true"
    if name == "queue-rank" and dialect.rank_is_number and text.lstrip("-").isdecimal():
        return int(text)
    return text


def check_words(words: Iterable[str]) -> None:
    """Refuse what cannot be said on a command line.

    Raises:
        Refused: a word is too long, or holds a character that no command can take.
    """
    for word in words:
        if "\0" in word:
            raise OperationRefused("the text holds a NUL character, which no command can take; remove it")
        try:
            size = len(word.encode())
        except UnicodeEncodeError:
            raise OperationRefused("the text holds half a character (a lone surrogate), which is not Unicode") from None
        if size > MAX_VALUE:
            raise OperationRefused(
                f"the text has {size:,} bytes and a command accepts {MAX_VALUE:,}; shorten it, or put it in a file"
            )


def called(bead_id: str) -> str:
    """A bead's id for a sentence."""
    return clean_line(bead_id, 60)


def named(ids: Iterable[str], most: int = 5) -> str:
    """Some ids for a sentence."""
    some = [called(bead_id) for bead_id in ids]
    more = len(some) - most
    return ", ".join(some[:most]) + (f" and {more} more" if more > 0 else "")
