"""The operations on the queue: one class a kind, with its values and its plan."""

from helix_tui.core.editing.kinds.create_bead import CreateBead
from helix_tui.core.editing.kinds.fields import (
    AddDependency,
    ChangeLabels,
    ClearFields,
    DropChange,
    RemoveDependency,
    SetEligible,
    SetParent,
    SetPriority,
    SetRank,
    Supersede,
)
from helix_tui.core.editing.kinds.lifecycle import (
    CancelBead,
    ClaimBead,
    CloseBead,
    CloseWithCommit,
    ReleaseBead,
    ReopenBead,
    SetFields,
)
from helix_tui.core.editing.operation import Operation

__all__ = [
    "AddDependency",
    "CancelBead",
    "ChangeLabels",
    "ClaimBead",
    "ClearFields",
    "CloseBead",
    "CloseWithCommit",
    "CreateBead",
    "DropChange",
    "Operation",
    "Recorded",
    "ReleaseBead",
    "RemoveDependency",
    "ReopenBead",
    "SetEligible",
    "SetFields",
    "SetParent",
    "SetPriority",
    "SetRank",
    "Supersede",
]

Recorded = (
    AddDependency
    | CancelBead
    | ChangeLabels
    | ClaimBead
    | ClearFields
    | CloseBead
    | CloseWithCommit
    | CreateBead
    | DropChange
    | ReleaseBead
    | RemoveDependency
    | ReopenBead
    | SetEligible
    | SetFields
    | SetParent
    | SetPriority
    | SetRank
    | Supersede
)
"""Every operation, for reading one from the journal."""
