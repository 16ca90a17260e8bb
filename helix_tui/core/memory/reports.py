"""Frozen records of what memory operations report besides memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, to_builtins
from msgspec.structs import asdict

from helix_tui.core.ground.text import counted
from helix_tui.core.memory.provenance import Teacher
from helix_tui.core.memory.records import Memory, Mode, Verdict, count

State = Literal["open", "accepted", "declined", "repeated"]
"""The state of a lesson; ``repeated``: the bead's same lesson had been proposed before."""


class Similar(Struct, frozen=True):
    """A memory with its similarity to a text."""

    memory: Memory
    similarity: float

    def document(self) -> dict[str, Any]:
        """The memory's keys, with helix v2's ``_similarity``."""
        return self.memory.document() | {
            "_similarity": round(self.similarity, 3),
            "similarity": round(self.similarity, 4),
        }


class Suggestion(Struct, frozen=True, rename={"from_name": "from", "to_name": "to"}):
    """An edge that may be worth adding."""

    from_name: str
    to_name: str
    rel_type: str
    reason: str
    confidence: float

    def document(self) -> dict[str, Any]:
        """Helix v2's keys."""
        return {**to_builtins(self), "confidence": round(self.confidence, 3)}


class FeedbackReport(Struct, frozen=True):
    """What a round of feedback changed, and what it rejected."""

    helped: tuple[str, ...] = ()
    unhelpful: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    """Injected, but not affected by this outcome (failed and not claimed)."""
    missing: tuple[str, ...] = ()
    """Unknown names."""
    ignored: tuple[str, ...] = ()
    """Claimed, but never injected."""
    outside_ledger: tuple[str, ...] = ()
    """Reported as injected, but not in the ledger of this attempt."""
    verdict: Verdict | None = None
    attempt: str = ""
    duplicate: bool = False
    """Whether this attempt was settled before, so that nothing changed."""
    replaced: bool = False
    """Whether earlier, weaker feedback on this attempt was undone first."""

    @property
    def verified(self) -> bool:
        """Whether the outcome was verified."""
        return self.verdict is not None

    def document(self) -> dict[str, Any]:
        """Helix v1's ``helped, unhelpful, missing`` (two counts and names), followed by new keys."""
        return {
            "helped": len(self.helped),
            "unhelpful": len(self.unhelpful),
            "missing": list(self.missing),
            "verified": self.verified,
            "verdict": self.verdict,
            "attempt": self.attempt,
            "duplicate": self.duplicate,
            "replaced": self.replaced,
            "helped_names": list(self.helped),
            "unhelpful_names": list(self.unhelpful),
            "unchanged": list(self.unchanged),
            "ignored": list(self.ignored),
            "outside_ledger": list(self.outside_ledger),
        }


class Pruned(Struct, frozen=True):
    """What pruning removed, or would remove."""

    removed: tuple[Memory, ...]
    remaining: int
    applied: bool

    def document(self) -> dict[str, Any]:
        """Helix v1's ``pruned, remaining``, helix v2's ``removed``."""
        names = [memory.name for memory in self.removed]
        return {
            "pruned": len(names) if self.applied else 0,
            "remaining": self.remaining,
            "removed": names if self.applied else [],
            "candidates": names,
            "applied": self.applied,
        }


class Decayed(Struct, frozen=True):
    """Dormant memories, and whether their counts were faded."""

    candidates: tuple[Memory, ...]
    days: float
    min_uses: float
    applied: bool

    def document(self) -> dict[str, Any]:
        """Helix v1's keys, and helix v2's ``decayed``."""
        return {
            "candidates_for_decay": [memory.name for memory in self.candidates],
            "count": len(self.candidates),
            "threshold_days": count(self.days),
            "min_uses_to_survive": count(self.min_uses),
            "decayed": len(self.candidates) if self.applied else 0,
            "applied": self.applied,
        }


class Consolidated(Struct, frozen=True):
    """Near-duplicates that were merged."""

    merged: tuple[tuple[str, str], ...]
    """Pairs of (removed, kept)."""
    remaining: int
    skipped: str = ""
    """Why nothing could be compared, or ""."""

    def document(self) -> dict[str, Any]:
        """Helix v1's ``merged, remaining``, or its ``status, reason``."""
        if self.skipped:
            return {"status": "skipped", "reason": self.skipped, "merged": 0, "remaining": self.remaining}
        return {
            "merged": len(self.merged),
            "remaining": self.remaining,
            "pairs": [{"from": gone, "into": kept} for gone, kept in self.merged],
        }


class TypeCount(Struct, frozen=True):
    """The number of memories of a type, and their total counts."""

    count: int
    helped: float
    failed: float


class Health(Struct, frozen=True):
    """The health of the store."""

    total: int
    by_type: Mapping[str, TypeCount]
    counted: tuple[float, float]
    """Helped and failed of all memories, each as it is judged (`Memory.counted`)."""
    proven: int
    """Memories of which verified outcomes show that they help."""
    with_feedback: int
    with_verified_feedback: int
    relationships: int
    edge_types: Mapping[str, int]
    injections: int
    settled: int
    """Attempts with feedback."""
    without_vector: int
    """Memories without a vector of the current encoder."""
    mode: Mode
    detail: str
    systemic: tuple[str, ...]
    issues: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """Helix v1's rule: there are memories, there is feedback, there are no issues."""
        return self.total > 0 and self.with_feedback > 0 and not self.issues

    @property
    def effectiveness(self) -> float:
        """Effectiveness over all memories, 0.5 without feedback."""
        uses = sum(self.counted)
        return self.counted[0] / uses if uses > 0 else 0.5

    @property
    def words(self) -> str:
        """The health in half a line: how many memories there are, how many of them proven and systemic."""
        if not self.total:
            return ""
        systemic = [f"{len(self.systemic)} systemic"] if self.systemic else []
        return ", ".join([counted(self.total, "memory", "memories"), f"{self.proven or 'none'} proven", *systemic])

    def document(self) -> dict[str, Any]:
        """Helix v1's keys, helix v2's names for two of them, and ours."""
        return {
            "status": "HEALTHY" if self.healthy else "NEEDS_ATTENTION",
            "total": self.total,
            "total_memories": self.total,
            "by_type": {
                name: {"count": each.count, "helped": count(each.helped), "failed": count(each.failed)}
                for name, each in self.by_type.items()
            },
            "effectiveness": round(self.effectiveness, 3),
            "counted": {"helped": count(self.counted[0]), "failed": count(self.counted[1])},
            "with_feedback": self.with_feedback,
            "with_verified_feedback": self.with_verified_feedback,
            "relationships": self.relationships,
            "total_edges": self.relationships,
            "edge_types": dict(self.edge_types),
            "injections": self.injections,
            "settled_attempts": self.settled,
            "without_vector": self.without_vector,
            "systemic": list(self.systemic),
            "mode": self.mode,
            "detail": self.detail,
            "issues": list(self.issues),
        }


class Assessment(Struct, frozen=True):
    """Whether to continue an approach (docs/formats/memory.md §3)."""

    recommendation: Literal["continue", "pivot", "escalate"]
    reason: str
    attempts: int
    suggested_pivot: str = ""

    def document(self) -> dict[str, Any]:
        """Helix v1's keys."""
        return {**to_builtins(self), "suggested_pivot": self.suggested_pivot or None}


class Proposal(Struct, frozen=True):
    """A lesson and its state."""

    id: int
    attempt: str
    bead: str
    type: str
    """failure or pattern."""
    trigger: str
    resolution: str
    reason: str
    """Its evidence."""
    state: State = "open"
    at: str = ""
    """When it was derived, in DDx's time format."""
    memory: str = ""
    """The memory made from it; of one that is open, the memory itself, which an agent stored and which waits."""
    taught_by: Teacher = "attempt"

    @property
    def ref(self) -> str:
        """What a person names it by: its number, or the name of the memory that waits."""
        return str(self.id) if self.id else self.memory

    @property
    def source(self) -> str:
        """The source of a memory made from it."""
        return f"attempt {self.attempt}"

    def document(self) -> dict[str, Any]:
        """The JSON shape of a proposal."""
        return asdict(self)
