"""Frozen records of the memory and its operations, and its errors.

Each error says what is wrong with the memory, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct, to_builtins

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.shares import Share, share
from helix_tui.core.ground.time import format_instant
from helix_tui.core.memory.provenance import TAUGHT_BY, Teacher

TYPES = ("failure", "pattern", "systemic")
"""Types of memories (docs/decisions/0013). A database may contain others, which are kept and shown unchanged."""

RELATIONS = ("co_occurs", "causes", "solves", "similar")
"""Kinds of edges that helix names; ``led_to`` and ``supersedes`` are accepted too."""

MORE_RELATIONS = ("led_to", "supersedes")

SYSTEMIC_NOTE = "This has occurred 3+ times. Consider architectural changes."
"""Helix v2's note on a systemic memory."""

PROVEN_AT = 5
"""Minimum verified outcomes for a memory to be called proven."""

USER_PROVIDED = "user-provided"
"""A source with this word marks a memory entered by a person, which is never merged away or pruned."""

VERDICTS: tuple[Verdict, ...] = ("passed", "failed", "partial")


def proves(helped: float, failed: float) -> bool:
    """Whether verified outcomes show that a memory helps more often than not: at least `PROVEN_AT` of them, and the
    lower end of their 95 % interval above one half.
    """
    # partial outcomes leave fractions; Wilson's interval is one of whole counts
    return helped + failed >= PROVEN_AT and share(round(helped), round(helped + failed)).low > 0.5


Mode = Literal["semantic", "keyword"]

Scope = Literal["task", "path", "bead"]
"""Why a memory was shown: for the task, or only for a file about to be changed, where not being claimed does not count
against it. ``bead``: for the task, in a bead's block, so that later attempts at that bead see it too.
"""

Verdict = Literal["passed", "failed", "partial"]
"""The verified outcome of an attempt."""


def count(value: float) -> int | float:
    """A count for display, without decimals if whole."""
    return int(value) if value == int(value) else round(value, 3)


class Memory(Struct, frozen=True):
    """One remembered failure or pattern, with its usage data."""

    id: int
    name: str
    type: str
    trigger: str
    resolution: str
    helped: float = 0.0
    failed: float = 0.0
    created_at: int | None = None
    """None if the stored time cannot be read."""
    last_used: int | None = None
    source: str = ""
    verified_helped: float = 0.0
    """The part of ``helped`` from verified outcomes (docs/decisions/0014)."""
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
    """Number of this wording: 1, plus one for each resolution that replaced another
    (docs/decisions/0016).
    """

    taught_by: Teacher = "import"
    accepted: bool = True
    """Whether agents are shown it: what an agent taught waits for a person, or for a rule of a person."""
    marks: tuple[str, ...] = ()
    """Scanner rules that its text meets; the other fields are then screened."""
    verdict: str | None = None
    """The scanner's verdict when stored: empty for a clean text; None if not scanned."""

    @property
    def withheld(self) -> bool:
        """Whether its text poses as somebody or hides what it says, so that it is not shown."""
        return any(mark.startswith("form") for mark in self.marks)

    @property
    def provenance(self) -> str:
        """Who taught it, in words; empty for an import, which nobody can be named for."""
        waits = "" if self.accepted else ", waits for acceptance"
        return "" if self.taught_by == "import" and self.accepted else f"{TAUGHT_BY[self.taught_by]}{waits}"

    @property
    def protected(self) -> bool:
        """Whether a person entered it, so that it is never merged away or pruned."""
        return USER_PROVIDED in self.source

    @property
    def counted(self) -> tuple[float, float]:
        """Helped and failed as it is judged by: the verified outcomes, the reports only where none is verified."""
        if self.verified:
            return self.verified_helped, self.verified_failed
        return self.helped, self.failed

    @property
    def verified(self) -> float:
        """Verified outcomes of both kinds."""
        return self.verified_helped + self.verified_failed

    @property
    def effectiveness(self) -> float:
        """``helped / (helped + failed)`` of what is counted, 0.5 without feedback (docs/formats/memory.md §5)."""
        helped, failed = self.counted
        return helped / (helped + failed) if self.tried else 0.5

    @property
    def uses(self) -> float:
        """Counted outcomes of both kinds."""
        return sum(self.counted)

    @property
    def tried(self) -> bool:
        """Whether there is any feedback."""
        return self.uses > 0

    @property
    def interval(self) -> Share:
        """The effectiveness with its 95 % interval."""
        # partial outcomes leave fractions; Wilson's interval is one of whole counts
        return share(round(self.counted[0]), round(self.uses))

    @property
    def proven(self) -> bool:
        """Whether verified outcomes show that it helps more often than not."""
        return self.verified > 0 and proves(*self.counted)

    @property
    def label(self) -> str:
        """``[75%]`` or ``[unproven]``, as in helix v2, with a note if unverified."""
        if not self.tried:
            return "[unproven]"
        return f"[{round(100 * self.effectiveness)}%{'' if self.verified else ', unverified'}]"

    @property
    def note(self) -> str:
        """Its note: that of a systemic memory."""
        return SYSTEMIC_NOTE if self.type == "systemic" else ""

    def document(self) -> dict[str, Any]:
        """The keys of helix v1's row, followed by new ones."""
        found = {
            "id": self.id,
            "name": self.name,
            "type": self.type,
            "trigger": self.trigger,
            "resolution": self.resolution,
            "helped": count(self.helped),
            "failed": count(self.failed),
            "effectiveness": round(self.effectiveness, 3),
            "counted": {"helped": count(self.counted[0]), "failed": count(self.counted[1])},
            "created_at": stamp(self.created_at),
            "last_used": stamp(self.last_used),
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
            "taught_by": self.taught_by,
            "accepted": self.accepted,
            "provenance": self.provenance,
            "marks": list(self.marks),
            "withheld": self.withheld,
        }
        return found | ({"note": self.note} if self.note else {})


class Recalled(Struct, frozen=True):
    """A memory found by a query, with every term of its score.

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
    """Bonus for edges to direct hits, at most 0.2; 0 unless neighbours were requested."""
    similarity: float | None = None
    """Cosine of query and memory; None if one of them has no vector of this model."""
    keyword: float = 0.0
    """Share of the query's words, weighted by rarity, that the memory has."""
    files: tuple[str, ...] = ()
    """Requested files that the memory mentions."""
    via: tuple[str, ...] = ()
    """Names of the direct hits whose neighbour it is, if it was included for that."""
    direct: bool = True
    """Whether it is relevant by itself, not only filling a place."""
    ranker: str = "seed"
    terms: Mapping[str, float] = {}
    """Further terms of the ranker: for ``lift`` its ``lift``, ``use`` and ``worth``."""

    def document(self) -> dict[str, Any]:
        """The memory's keys with the terms, under our names and helix v1's with an underscore."""
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
    """The result of a query, and how it was searched."""

    found: tuple[Recalled, ...]
    mode: Mode
    detail: str
    """One sentence: the encoder, or why by keywords only; and what could not be compared."""
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
    """The result of storing a memory."""

    status: Literal["added", "merged", "revised", "rejected", "strengthened", "skipped"]
    name: str = ""
    reason: str = ""
    id: int | None = None
    type: str = ""
    promoted: bool = False
    """Whether it is the third similar failure, and now systemic."""
    similar: tuple[str, ...] = ()
    """Names of the similar failures that were counted."""
    similarity: float | None = None
    """Similarity of a merged memory to its target."""
    mode: Mode = "keyword"
    revision: int = 1
    """The revision with that text."""
    marks: tuple[str, ...] = ()
    """Scanner rules that its text meets: it is stored, but shown only screened."""
    replaced: int = 0
    """The revision that was replaced; 0 if none."""
    waits: bool = False
    """Whether it waits for acceptance."""

    def document(self) -> dict[str, Any]:
        """Helix v1's ``status, name, reason``, followed by new keys."""
        similarity = None if self.similarity is None else round(self.similarity, 4)
        return {**to_builtins(self), "similarity": similarity, "replaced": self.replaced or None}


class Revision(Struct, frozen=True):
    """An earlier wording of a memory, with its own counts."""

    number: int
    memory: Memory
    """The memory as it was, with its id and name then."""
    replaced_at: int | None
    reason: Literal["revised", "edited", "superseded"]

    def document(self) -> dict[str, Any]:
        """As ``memory get`` lists it."""
        found = self.memory.document()
        keys = ("id", "name", "type", "trigger", "resolution", "helped", "failed", "effectiveness", "counted", "tried")
        return {
            "revision": self.number,
            "replaced_at": stamp(self.replaced_at),
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
        return {**to_builtins(self), "weight": count(self.weight), "created_at": stamp(self.created_at)}


class Related(Struct, frozen=True):
    """The result of relating two memories."""

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


class ShownMemory(Struct, frozen=True, rename={"memory_id": "id"}):
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
    """The revision that was shown."""


class Injection(Struct, frozen=True):
    """A line of the ledger: what was shown to whom, in which order."""

    id: int
    at: int | None
    attempt: str
    """The attempt, task or agent run that feedback will name; else empty."""
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
    """Name -> why a matching memory was not shown."""
    scope: Scope = "task"

    @property
    def in_bead(self) -> bool:
        """Whether it was shown in a bead's block, to a known attempt or to none yet."""
        return bool(self.bead) and (not self.attempt or self.scope == "bead")

    def document(self) -> dict[str, Any]:
        """What ``memory inject`` prints."""
        shown = [
            {**to_builtins(each), "score": round(each.score, 4), "relevance": round(each.relevance, 4)}
            for each in self.shown
        ]
        names = [each.name for each in self.shown]
        return {**to_builtins(self), "at": stamp(self.at), "injected": names, "shown": shown}


class MemoryOutcome(Struct, frozen=True):
    """The effect of one attempt on one memory's counts."""

    attempt: str
    memory_id: int
    name: str
    at: int | None
    verdict: Verdict | None
    """None: unverified (counted by helix v1's rule)."""
    claimed: bool
    helped: float
    failed: float
    bead: str = ""
    revision: int = 1
    """The revision of the memory."""

    @property
    def verified(self) -> bool:
        """Whether the outcome was verified."""
        return self.verdict is not None

    def document(self) -> dict[str, Any]:
        """As ``memory get`` lists it."""
        found: dict[str, Any] = to_builtins(self)
        del found["memory_id"]
        counts = {"helped": count(self.helped), "failed": count(self.failed)}
        return found | counts | {"at": stamp(self.at), "verified": self.verified}


def outcome_counts(outcomes: Iterable[MemoryOutcome]) -> str:
    """``1 helped, 1 not counted``: what outcomes say of a memory; those that speak neither way are not counted."""
    outcomes = tuple(outcomes)
    helped = sum(outcome.helped > 0 for outcome in outcomes)
    failed = sum(outcome.failed > 0 >= outcome.helped for outcome in outcomes)
    counts = ((helped, "helped"), (failed, "failed"), (len(outcomes) - helped - failed, "not counted"))
    return ", ".join(f"{number:,} {word}" for number, word in counts if number) or "no outcome yet"


def stamp(instant: int | None) -> str | None:
    """An instant as JSON has it; None if unknown."""
    return None if instant is None else format_instant(instant)


CorrectionKind = Literal["unchanged", "relabelled", "reworded", "revised", "superseded"]


class MemoryEdit(Struct, frozen=True):
    """New values for a memory; None leaves a field unchanged."""

    trigger: str | None = None
    resolution: str | None = None
    type: str | None = None
    source: str | None = None
    revision: int | None = None
    """Restore this older revision instead."""


class Correction(Struct, frozen=True):
    """The effect of a correction, planned or done."""

    kind: CorrectionKind
    before: Memory
    after: Memory
    """The memory afterwards; for a superseded one, its successor."""
    way_back: dict[str, Any]

    @property
    def sentence(self) -> str:
        """The effect on the counts, in one sentence."""
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
    """A memory operation failed; nothing was lost."""


class DatabaseMissing(MemoryFault):
    """The database does not exist, and was opened read-only."""


class DatabaseBusy(MemoryFault):
    """Another process held the database too long."""


class DatabaseCorrupt(MemoryFault):
    """The file is not an SQLite database, or is damaged."""


class DatabaseForeign(MemoryFault):
    """The file is another program's database."""


class DatabaseNewer(MemoryFault):
    """The database was written by a later release of helix-tui."""


class DatabaseReadOnly(MemoryFault):
    """The database was opened read-only, or its disk is not writable."""


class DatabaseFull(DatabaseReadOnly):
    """The disk is full; reading still works."""


class UnknownMemory(MemoryFault):
    """No memory has this name or id."""
