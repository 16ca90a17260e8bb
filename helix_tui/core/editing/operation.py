"""What every operation on the queue has.

An operation states an intention, as data: the bead and the values. Its `plan` appends ddx commands for one state of the
tracker, each with its preconditions and effects; neither changes anything.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, to_builtins

from helix_tui.core.editing.steps import PlanBuilder


class Operation(Struct, frozen=True, tag_field="kind"):
    """One requested change; the tag of each class is its name in the journal."""

    bead_id: str

    @property
    def kind(self) -> str:
        """Its name in the journal."""
        return str(self.__struct_config__.tag)

    @property
    def saying(self) -> str:
        """The change in words, with ``{}`` for its bead or beads."""
        raise NotImplementedError

    def record(self) -> dict[str, Any]:
        """As the journal keeps it: the kind, the bead and the other values."""
        values = to_builtins(self)
        return {"kind": values.pop("kind"), "bead_id": values.pop("bead_id"), "values": values}

    def plan(self, writing: PlanBuilder) -> None:
        """Append the commands that make the change on the rows as the plan so far leaves them.

        Raises:
            OperationRefused: it is not possible now.
        """
        raise NotImplementedError
