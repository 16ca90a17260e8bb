"""The steps of a plan: each a ddx command with all that is known before it runs.

`CommandStep` is one command, `PlanBuilder` collects them, each planned on the `Overlay` left by those before it;
nothing is changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.ddx.names import DdxAction
from helix_tui.core.ddx.remarks import Shut
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_line

if TYPE_CHECKING:
    pass
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.values import Edits, same

NEW = "(new)"
"""Placeholder for the id of a bead that does not exist yet, replaced in later commands by the id that ddx prints."""

MAX_VALUE = 120_000
"""Maximum bytes of one value: the kernel's limit for a command-line argument."""

CLAIM_FIELDS = (
    "claimed-at",
    "claimed-machine",
    "claimed-pid",
    "claimed-session",
    "claimed-worktree",
    "execute-loop-heartbeat-at",
    "work-heartbeat-at",
)
"""Fields that a claim writes into the row; only releasing the bead removes them."""

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

_IDS: Mapping[DdxAction, slice] = {"create": slice(0), "dep": slice(1, 3), "queue": slice(1, 2)}
"""Which words after the verb are ids; of every other action the first is."""


class OperationRefused(HelixError):
    """An operation that is not possible now; the message says why and what would help, in one sentence."""


class CommandStep(Struct, frozen=True):
    """One command, its preconditions and its changes."""

    args: tuple[str, ...]
    """Arguments after ``ddx``."""
    edits: Edits = {}
    """The certain values of the rows afterwards."""
    before: Edits = {}
    """The values of the same fields before, so that changes by others are not overwritten."""
    watched: tuple[tuple[str, str], ...] = ()
    """Further (bead, field) pairs that the command may change to values that only ddx knows."""
    ripple: Edits = {}
    """Changes that ddx will most likely make to other rows by itself."""
    leases: Mapping[str, bool] = {}
    """Claims outside the rows that it takes or releases."""
    creates: str = ""
    """The placeholder for the id of the bead that it creates."""


class PlanBuilder:
    """Collects the steps of a plan, each planned on the result of those before it.

    Attributes:
        busy: beads with a live worker, by more than a claim.
        claimed: beads held by a worker or a person not known to be dead.
        refused: why ddx would refuse every change; then nothing is planned.
        notes: warnings to show before the commands run.
    """

    def __init__(
        self,
        overlay: Overlay,
        dialect: Dialect,
        busy: Collection[str] = (),
        *,
        claimed: Collection[str] = (),
        refused: Shut | None = None,
    ) -> None:
        self.overlay = overlay
        self.dialect = dialect
        self.busy = busy
        self.claimed = claimed
        self.refused = refused if refused is not None and refused.bars_changes else None
        self.steps: list[CommandStep] = []
        self.notes: list[str] = []

    def add(
        self,
        action: DdxAction,
        args: Iterable[str],
        edits: Edits,
        *,
        watched: Iterable[tuple[str, str]] = (),
        ripple: Edits | None = None,
        leases: Mapping[str, bool] | None = None,
        creates: str = "",
    ) -> None:
        """Append one command: what ddx is to do, and the words after its verb."""
        if self.refused is not None:
            raise OperationRefused(str(self.refused))
        after = tuple(args)
        words = (*self.dialect.words(action), *after)
        check_words(words)
        check_ids(after[_IDS.get(action, slice(0, 1))])
        for bead_id, fields in edits.items():
            self._check_labels(bead_id, fields.get("labels") or ())
            self._check_gates(bead_id, fields)
        # its preconditions: the values left by the steps before it
        before = {bead_id: self.overlay.values(bead_id, fields) for bead_id, fields in edits.items()}
        step = CommandStep(words, edits, before, tuple(watched), ripple or {}, leases or {}, creates)
        self.steps.append(step)
        self.overlay.apply(edits, leases)
        self.overlay.apply(ripple or {})

    def _check_labels(self, bead_id: str, labels: Iterable[object]) -> None:
        """Refuse labels with a comma, at which ddx would split them."""
        for text in labels:
            if isinstance(text, str) and "," in text:
                raise OperationRefused(
                    f"the label “{called(text)}” of {called(bead_id)} has a comma, at which ddx would split "
                    "it for good; remove that label first, or leave the labels of this bead as they are"
                )

    def _check_gates(self, bead_id: str, fields: Mapping[str, Any]) -> None:
        """Refuse a value that would make this ddx refuse every further command."""
        have = self.overlay.values(bead_id, ("labels", "status")) if bead_id in self.overlay else {}
        for gate in self.dialect.gates:
            if gate.kind == "label":
                # only what the step itself adds: an existing label is reported by `shut`
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
        """Append one ``bead update`` that leaves the bead with these fields; nothing if it has them."""
        changed = {
            name: value for name, value in fields.items() if not same(name, self.overlay.value(bead_id, name), value)
        }
        if changed or flags:
            self.add("update", (bead_id, *flags, *update_words(changed)), {bead_id: changed}, watched=watched)


def update_words(fields: Mapping[str, Any]) -> list[str]:
    """The flags of ``bead update`` that set fields to values, or remove them for None."""
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
    """A flag and its value; a value that looks like a flag is escaped."""
    return [f"{flag}={value}"] if value.startswith("-") else [flag, value]


def stored(name: str, text: str, dialect: Dialect) -> Any:
    """The value that ``--set name=text`` leaves in the row: ``true`` and ``false`` become booleans, a rank in some
    releases a number, and lines end in LF (every release reads ``--set`` as CSV, which drops the CR).
    """
    if text in ("true", "false"):
        return text == "true"
    if name == "queue-rank" and dialect.rank_is_number and re.fullmatch(r"-?[0-9]{1,19}", text):
        return int(text)
    return text.replace("\r\n", "\n")


def check_words(words: Iterable[str]) -> None:
    """Refuse arguments that a command line cannot contain.

    Raises:
        OperationRefused: an argument is too long, or has a character that no command accepts.
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


def check_ids(ids: Iterable[str]) -> None:
    """Refuse ids that ddx would not read as ids.

    Raises:
        OperationRefused: an id is empty, begins with a dash, or has control characters.
    """
    for bead_id in ids:
        if not re.fullmatch(r"[^-\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*", bead_id):
            raise OperationRefused(
                f"the id “{called(bead_id)}” is empty, begins with “-” or has control characters; "
                "correct the id in the tracker by hand"
            )


def called(bead_id: str) -> str:
    """A bead's id for a sentence."""
    return clean_line(bead_id, 60)


def named(ids: Iterable[str], most: int = 5) -> str:
    """Some ids for a sentence."""
    some = [called(bead_id) for bead_id in ids]
    more = len(some) - most
    return ", ".join(some[:most]) + (f" and {more} more" if more > 0 else "")
