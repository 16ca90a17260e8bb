"""What the memory holds and what its operations return, as frozen records, and its errors.

Each error says in words what is wrong with the memory, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.shares import Share, share
from helix_tui.core.ground.time import format_instant

TYPES = ("failure", "pattern", "systemic")
"""Types of memories (docs/decisions/0013). A database may hold others; they are kept and shown as they
are."""

RELATIONS = ("co_occurs", "causes", "solves", "similar")
"""Kinds of edges that helix names; ``led_to`` and ``supersedes`` are accepted too."""

MORE_RELATIONS = ("led_to", "supersedes")

SYSTEMIC_NOTE = "This has occurred 3+ times. Consider architectural changes."
"""Helix v2's words beside a systemic memory."""

PROVEN_AT = 5
"""Verified outcomes from which on a memory may be called proven."""

USER_PROVIDED = "user-provided"
"""A source with this word marks what a person has put in: no rule merges it away or prunes it."""

Mode = Literal["semantic", "keyword"]

Scope = Literal["task", "path", "bead"]
"""What a memory was shown for: the task, or only a file that was about to be changed. What is shown for a
file may well not be needed: that it was not claimed says nothing against it. ``bead``: for the task, by the
block in a bead, so that later attempts at that bead see it too."""

Verdict = Literal["passed", "failed", "partial"]
"""What verification said of an attempt."""

VERDICTS: tuple[Verdict, ...] = ("passed", "failed", "partial")


def count(value: float) -> int | float:
    """A count as people write it: whole where it is whole."""
    return int(value) if value == int(value) else round(value, 3)


class Memory(Struct, frozen=True):
    """One remembered failure or pattern with what is known of its use."""

    id: int
    name: str
    type: str
    trigger: str
    resolution: str
    helped: float = 0.0
    failed: float = 0.0
    created_at: int | None = None
    """None where the stored time cannot be read."""
    last_used: int | None = None
    source: str = ""
    verified_helped: float = 0.0
    """The part of ``helped`` that a verified outcome stands behind (docs/decisions/0014)."""
    verified_failed: float = 0.0
    seen: int = 1
    """How often it was stored: 1, and one more for each duplicate merged into it."""
    shown: int = 0
    """How often it was injected."""
    lift: float | None = None
    """Base-rate-adjusted verified outcome (docs/formats/memory.md §5); None before any verified trial."""
    trials: float = 0.0
    """Weighted verified trials behind ``lift``."""
    revision: int = 1
    """Which wording this is: 1, and one more for each resolution that replaced another
    (docs/decisions/0016)."""

    marks: tuple[str, ...] = ()
    """Rules of the scanner that its text meets; what stands in the other fields is screened then."""
    verdict: str | None = None
    """What the scanner said when it was stored: nothing for a clean text; None where it has not been read."""

    @property
    def withheld(self) -> bool:
        """Whether its text gives orders: no agent is shown it."""
        return any(mark.startswith("order") for mark in self.marks)

    @property
    def protected(self) -> bool:
        """Whether a person has put it in as their own: never merged away, never pruned."""
        return USER_PROVIDED in self.source

    @property
    def effectiveness(self) -> float:
        """``helped / (helped + failed)``, 0.5 without feedback (docs/formats/memory.md §5)."""
        uses = self.helped + self.failed
        return self.helped / uses if uses > 0 else 0.5

    @property
    def uses(self) -> float:
        """Counted feedback of both kinds."""
        return self.helped + self.failed

    @property
    def tried(self) -> bool:
        """Whether there is any feedback."""
        return self.uses > 0

    @property
    def interval(self) -> Share:
        """The effectiveness with its 95 % interval."""
        # partial outcomes leave fractions; Wilson's interval is one of whole counts
        return share(round(self.helped), round(self.uses))

    @property
    def proven(self) -> bool:
        """Whether verified outcomes show that it helps more often than not.

        At least `PROVEN_AT` of them, and the lower end of their 95 % interval above one half.
        """
        verified = self.verified_helped + self.verified_failed
        return verified >= PROVEN_AT and share(round(self.verified_helped), round(verified)).low > 0.5

    @property
    def label(self) -> str:
        """``[75%]`` or ``[unproven]``, as helix v2 shows it; what nobody verified is said to be that."""
        if not self.tried:
            return "[unproven]"
        verified = self.verified_helped + self.verified_failed
        share_of = f"{round(100 * self.effectiveness)}%"
        return f"[{share_of}]" if verified > 0 else f"[{share_of}, unverified]"

    @property
    def note(self) -> str:
        """What has to be said beside it: the note of a systemic memory."""
        return SYSTEMIC_NOTE if self.type == "systemic" else ""

    def document(self) -> dict[str, Any]:
        """The keys of helix v1's row, and ours after them."""
        found = {
            "id": self.id,
            "name": self.name,
            "type": self.type,
            "trigger": self.trigger,
            "resolution": self.resolution,
            "helped": count(self.helped),
            "failed": count(self.failed),
            "effectiveness": round(self.effectiveness, 3),
            "created_at": _stamp(self.created_at),
            "last_used": _stamp(self.last_used),
            "source": self.source,
            "tried": self.tried,
            "proven": self.proven,
            "interval": [round(self.interval.low, 3), round(self.interval.high, 3)],
            "verified": {"helped": count(self.verified_helped), "failed": count(self.verified_failed)},
            "unverified": {
                "helped": count(max(0.0, self.helped - self.verified_helped)),
                "failed": count(max(0.0, self.failed - self.verified_failed)),
            },
            "seen": self.seen,
            "shown": self.shown,
            "lift": None if self.lift is None else round(self.lift, 3),
            "revision": self.revision,
            "protected": self.protected,
            "marks": list(self.marks),
            "withheld": self.withheld,
        }
        return found | ({"note": self.note} if self.note else {})


class Recalled(Struct, frozen=True):
    """A memory that answers a query, with every term of its score.

    By the ranker ``seed``: ``score = 0.5·relevance + 0.3·effectiveness + 0.2·recency (+ bonus)``.
    """

    memory: Memory
    score: float
    relevance: float
    """0 to 1, the term of the score: the larger of ``similarity`` and ``keyword``."""
    effectiveness: float
    recency: float
    """``2^(-days since last use, else creation / 7)``, within 0 to 1."""
    bonus: float = 0.0
    """What edges to direct hits add, at most 0.2; 0 unless neighbours were asked for."""
    similarity: float | None = None
    """Cosine of query and memory; None where one of them has no vector of this model."""
    keyword: float = 0.0
    """Share of the query's words, weighted by rarity, that the memory has."""
    files: tuple[str, ...] = ()
    """Asked-for files that the memory speaks of."""
    via: tuple[str, ...] = ()
    """Names of the direct hits that it is a neighbour of, where that is why it is here."""
    direct: bool = True
    """Relevant by itself, not only filling a place."""
    ranker: str = "seed"
    terms: Mapping[str, float] = {}
    """Further terms of the ranker: of ``lift`` its ``lift``, ``use`` and ``worth``."""

    def document(self) -> dict[str, Any]:
        """The memory's keys with the terms, under our names and under helix v1's with an underscore."""
        found = self.memory.document()
        found |= {
            "score": round(self.score, 4),
            "relevance": round(self.relevance, 4),
            "effectiveness": round(self.effectiveness, 4),
            "recency": round(self.recency, 4),
            "bonus": round(self.bonus, 4),
            "similarity": None if self.similarity is None else round(self.similarity, 4),
            "keyword": round(self.keyword, 4),
            "files": list(self.files),
            "via": list(self.via),
            "direct": self.direct,
            "ranker": self.ranker,
            "_score": round(self.score, 3),
            "_relevance": round(self.relevance, 3),
            "_recency": round(self.recency, 3),
        }
        if self.terms:
            found["terms"] = {name: round(value, 4) for name, value in self.terms.items()}
        return found


class Recall(Struct, frozen=True):
    """The answer to a query: what was found, and how it was searched."""

    found: tuple[Recalled, ...]
    mode: Mode
    detail: str
    """One sentence: which encoder, or why by keywords only; also what could not be compared."""
    signal: Literal["", "NO_PRIOR_MEMORY", "NO_MATCHING"] = ""
    """Why nothing was found: the store is empty, or nothing in it matches."""

    def document(self) -> dict[str, Any]:
        """What ``memory recall`` prints."""
        return {
            "mode": self.mode,
            "detail": self.detail,
            "signal": self.signal,
            "memories": [hit.document() for hit in self.found],
        }


class Stored(Struct, frozen=True):
    """What became of a memory that was to be stored."""

    status: Literal["added", "merged", "revised", "rejected", "strengthened", "skipped"]
    name: str = ""
    reason: str = ""
    id: int | None = None
    type: str = ""
    promoted: bool = False
    """It is the third similar failure and is systemic from now on."""
    similar: tuple[str, ...] = ()
    """Names of the similar failures that were counted."""
    similarity: float | None = None
    """Of a merged one to what it was merged into."""
    mode: Mode = "keyword"
    revision: int = 1
    """The revision that says so."""
    marks: tuple[str, ...] = ()
    """Rules of the scanner that its text meets: it is kept, and shown to nobody as it stands."""
    replaced: int = 0
    """The revision that held before a revised one; 0 where none was replaced."""

    def document(self) -> dict[str, Any]:
        """Helix v1's ``status, name, reason``, and ours after them."""
        return {
            "status": self.status,
            "name": self.name,
            "reason": self.reason,
            "id": self.id,
            "type": self.type,
            "promoted": self.promoted,
            "similar": list(self.similar),
            "similarity": None if self.similarity is None else round(self.similarity, 4),
            "mode": self.mode,
            "revision": self.revision,
            "replaced": self.replaced or None,
            "marks": list(self.marks),
        }


class Revision(Struct, frozen=True):
    """An earlier wording of a memory, with what it did while it was shown."""

    number: int
    memory: Memory
    """As it was; its id and name are those it had then."""
    replaced_at: int | None
    reason: Literal["revised", "edited", "superseded"]

    def document(self) -> dict[str, Any]:
        """As ``memory get`` lists it."""
        found = self.memory.document()
        keys = ("id", "name", "type", "trigger", "resolution", "helped", "failed", "effectiveness", "tried")
        return {
            "revision": self.number,
            "replaced_at": _stamp(self.replaced_at),
            "reason": self.reason,
            **{name: found[name] for name in (*keys, "verified", "shown", "created_at", "source")},
        }


class Edge(Struct, frozen=True):
    """A relationship between two memories."""

    id: int
    from_name: str
    to_name: str
    rel_type: str
    weight: float
    created_at: int | None = None

    def document(self) -> dict[str, Any]:
        """The row's keys, as helix v2's code gives them."""
        return {
            "id": self.id,
            "from_name": self.from_name,
            "to_name": self.to_name,
            "rel_type": self.rel_type,
            "weight": count(self.weight),
            "created_at": _stamp(self.created_at),
        }


class Related(Struct, frozen=True):
    """What came of relating two memories."""

    status: Literal["added", "strengthened", "rejected"]
    edge: Edge | None = None
    reason: str = ""

    def document(self) -> dict[str, Any]:
        """The keys of helix v1 and v2."""
        found: dict[str, Any] = {"status": self.status, "reason": self.reason}
        if self.edge is not None:
            edge = self.edge
            found |= {"from": edge.from_name, "to": edge.to_name, "rel_type": edge.rel_type}
            found["weight"] = count(edge.weight)
        return found


class Connected(Struct, frozen=True):
    """A memory reached along edges."""

    memory: Memory
    hop: int
    via: str
    """Kind of the edge of the last step."""
    weight: float

    def document(self) -> dict[str, Any]:
        """The memory's keys, with helix v1's ``_hop`` and ``_via``."""
        return self.memory.document() | {"_hop": self.hop, "_via": self.via, "weight": count(self.weight)}


class ShownMemory(Struct, frozen=True):
    """One memory of an injection, as it was shown."""

    memory_id: int
    name: str
    position: int
    """From 0, in the order of the text."""
    score: float
    relevance: float
    label: str
    """``[75%]`` or ``[unproven]`` at that time."""
    revision: int = 1
    """Which wording of it was shown."""


class Injection(Struct, frozen=True):
    """A line of the ledger: what was shown to whom, in which order."""

    id: int
    at: int | None
    attempt: str
    """The attempt, task or agent run that feedback will name; empty for a look without one."""
    bead: str
    agent: str
    objective: str
    kind: str
    """Kind of task, for base rates: empty where unknown."""
    mode: Mode
    ranker: str
    shown: tuple[ShownMemory, ...] = ()
    text: str = ""
    """The block; empty when read back from the ledger."""
    signal: str = ""
    detail: str = ""
    withheld: Mapping[str, str] = {}
    """Name -> why a memory that matched was not shown."""
    scope: Scope = "task"

    @property
    def in_bead(self) -> bool:
        """Whether the bead's own block showed it: to an attempt that is known by now, or to none yet."""
        return bool(self.bead) and (not self.attempt or self.scope == "bead")

    def document(self) -> dict[str, Any]:
        """What ``memory inject`` prints."""
        return {
            "id": self.id,
            "at": _stamp(self.at),
            "attempt": self.attempt,
            "bead": self.bead,
            "agent": self.agent,
            "objective": self.objective,
            "kind": self.kind,
            "mode": self.mode,
            "ranker": self.ranker,
            "injected": [shown.name for shown in self.shown],
            "shown": [
                {
                    "id": shown.memory_id,
                    "name": shown.name,
                    "position": shown.position,
                    "score": round(shown.score, 4),
                    "relevance": round(shown.relevance, 4),
                    "label": shown.label,
                    "revision": shown.revision,
                }
                for shown in self.shown
            ],
            "text": self.text,
            "signal": self.signal,
            "detail": self.detail,
            "withheld": dict(self.withheld),
            "scope": self.scope,
        }


class MemoryOutcome(Struct, frozen=True):
    """What one attempt did to one memory's counts."""

    attempt: str
    memory_id: int
    name: str
    at: int | None
    verdict: Verdict | None
    """None: nobody verified (helix v1's rule was used)."""
    claimed: bool
    helped: float
    failed: float
    bead: str = ""
    revision: int = 1
    """Which wording of the memory it speaks of."""

    @property
    def verified(self) -> bool:
        """Whether a verified outcome stands behind it."""
        return self.verdict is not None

    def document(self) -> dict[str, Any]:
        """As ``memory get`` lists it."""
        return {
            "attempt": self.attempt,
            "bead": self.bead,
            "name": self.name,
            "at": _stamp(self.at),
            "verdict": self.verdict,
            "verified": self.verified,
            "claimed": self.claimed,
            "helped": count(self.helped),
            "failed": count(self.failed),
            "revision": self.revision,
        }


def _stamp(instant: int | None) -> str | None:
    return None if instant is None else format_instant(instant)


CorrectionKind = Literal["unchanged", "relabelled", "reworded", "revised", "superseded"]


class MemoryEdit(Struct, frozen=True):
    """What is to be written in place of what stands there; None leaves it."""

    trigger: str | None = None
    resolution: str | None = None
    type: str | None = None
    source: str | None = None
    revision: int | None = None
    """Bring this older revision back instead."""


class Correction(Struct, frozen=True):
    """What a correction does, or has done."""

    kind: CorrectionKind
    before: Memory
    after: Memory
    """As it is afterwards; of one that is superseded, what holds in its place."""
    way_back: dict[str, Any]

    @property
    def sentence(self) -> str:
        """What becomes of the counts."""
        counts = f"{self.before.helped:g} helped / {self.before.failed:g} failed"
        if self.kind == "revised":
            return (
                f"revision {self.after.revision} holds; revision {self.before.revision} stays in its history"
                f" with its {counts}"
            )
        if self.kind == "superseded":
            return f"it stays in the history of {self.after.name} with its {counts}"
        if self.kind == "unchanged":
            return "nothing would change"
        return f"it says the same: its {counts} are kept"

    def document(self) -> dict[str, Any]:
        """The JSON shape of a correction."""
        return {
            "status": self.kind,
            "name": self.after.name,
            "id": self.after.id,
            "revision": self.after.revision,
            "sentence": self.sentence,
            "before": self.before.document(),
            "after": self.after.document(),
        }


class MemoryFault(HelixError):
    """The memory cannot do what was asked; nothing was lost."""


class DatabaseMissing(MemoryFault):
    """There is no database, and it was opened for reading only."""


class DatabaseBusy(MemoryFault):
    """Another process held the database for longer than we waited."""


class DatabaseCorrupt(MemoryFault):
    """The file is no SQLite database, or a damaged one."""


class DatabaseForeign(MemoryFault):
    """The file is a database of some other program."""


class DatabaseNewer(MemoryFault):
    """A later release of helix-tui has written it."""


class DatabaseReadOnly(MemoryFault):
    """It was opened for reading, or the disk does not let us write."""


class DatabaseFull(DatabaseReadOnly):
    """The disk has no room left: what is there can be read."""


class UnknownMemory(MemoryFault):
    """No memory has this name or id."""
