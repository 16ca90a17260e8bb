"""Describe what the installed ddx does, verb by verb and rule by rule.

Three things are distinguished (docs/decisions/0003): the era of a record, the era of a tracker, and the release of the
installed ddx. A `Dialect` describes the third: what its help names and what a trial on a throw-away queue proved,
determined once per executable (`probe`). The release number is never used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from helix_tui.core.beads.readiness import APRIL as APRIL_RULE
from helix_tui.core.beads.readiness import HEAD as HEAD_RULE
from helix_tui.core.beads.readiness import Era as AnyEra
from helix_tui.core.beads.readiness import Rule
from helix_tui.core.ddx.names import BARE, VERBS, DdxAction, Era
from helix_tui.core.ground.time import NS

if TYPE_CHECKING:
    from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.help_text import DdxVerb, Words

FRESH = 90 * NS
"""How long a heartbeat is fresh."""


HELD = 2 * 3600 * NS
"""How long a lease is fresh while its process runs on this machine; the upper limit for any claim."""


BOOKKEEPING = (
    ".ddx/beads.jsonl",
    ".ddx/beads-archive.jsonl",
    ".ddx/run-state.json",
    ".ddx/.git-tracker.lock",
    ".ddx/beads.lock",
    "cleanup.json",
    ".ddx/.git-tracker.lock/",
    ".ddx/attachments/",
    ".ddx/beads.lock/",
    ".ddx/coordination/",
    ".ddx/executions/",
    ".ddx/harness-sessions/",
    ".ddx/metrics/",
    ".ddx/run-state/",
    ".ddx/runs/",
    ".ddx/workers/",
)
"""Its bookkeeping files and folders, of all releases: none refuses to work because of changes there."""


NO_TRIAL = "HELIX_DDX_TRIAL"
"""If set to ``off``, no trial is run: what the help does not say is taken from the tracker."""

_ROUTE = "--effort --harness --model"

_TRACKER: dict[DdxAction, DdxVerb] = {
    "ready": DdxVerb(("bead", "ready")),
    "show": DdxVerb(("bead", "show")),
    "close": DdxVerb(("bead", "close")),
    "reopen": DdxVerb(("bead", "reopen")),
    "dep": DdxVerb(("bead", "dep")),
    "evidence": DdxVerb(("bead", "evidence")),
    "export": DdxVerb(("bead", "export")),
}


def _flags(text: str) -> frozenset[str]:
    return frozenset(text.split())


Refused = Literal["every command", "every change and all work", "all work"]
"""What a gate makes a ddx refuse; only the first includes its list of what is ready."""


class RowGate(Struct, frozen=True):
    """A value in a row that makes a ddx refuse every command."""

    kind: str
    """``label`` or ``status``."""
    word: str
    code: str
    """DDx's own name of the refusal."""
    command: str
    """The remedy that DDx names."""


class FileGate(Struct, frozen=True):
    """A file beside the tracker, as it is in one project, for which a ddx refuses commands there."""

    code: str
    command: str
    """What shows or removes the cause."""
    reason: str
    """The cause, in ddx's own words where it has any."""
    fix: str
    """What to do about it."""
    refuses: Refused


class Dialect(Struct, frozen=True, kw_only=True):
    """What one ddx does with a queue."""

    rule: Rule
    """Which rows a worker may pick."""
    lifecycle: bool
    """Status changes are checked; blocked, proposed and cancelled exist."""
    leases: bool
    """A claim writes a lease file outside the repository."""
    claim_in_row: bool
    """A claim writes its owner and time into the row."""
    rank_is_number: bool
    """``--set queue-rank=3`` is stored as a number, else as text."""
    gives_out_waiting: bool
    """A bead whose dependencies are open can be claimed."""
    closes_waiting: bool
    """… and closed."""
    waits_on_parents: bool
    """A bead may wait for one of its ancestors."""
    closes_superseded: bool
    """Closing a bead closes those it supersedes."""
    closes_ineligible: bool
    """Closing the last child closes a parent that no worker may pick."""
    closes_epics: bool
    """… and an epic."""
    climbs: bool
    """… and its ancestors."""
    cancelled_counts: bool
    """A cancelled child counts as finished for that."""
    commits: bool = False
    """Each command that changes a row makes a commit of the tracker."""
    commits_staged: bool = False
    """Closing a bead commits the staged changes and writes that commit into the row."""
    gates: tuple[RowGate, ...] = ()
    schema: int = 0
    """Lowest version in ``.ddx/lifecycle-schema.json`` that it takes; 0 if it takes any."""
    needs_settings: bool = False
    """Whether it fails a change, after making it, in a project whose configuration is not valid."""
    fills: Mapping[str, Any] | None = None
    """What any write adds to each row of the tracker that lacks it; None if a write leaves the other rows alone."""
    here: FileGate | None = None
    """For which file of the project at hand it refuses commands there; None if it refuses none."""
    verbs: Mapping[DdxAction, DdxVerb] = {}
    """Action to its verb, with flags."""
    proven: bool = True
    """Whether a trial proved its picking rule; else it is a guess."""
    doubt: str = ""
    """Why a trial could not prove it, in ddx's own words; empty if it did or no trial was run."""

    @property
    def drain(self) -> tuple[str, ...]:
        """Arguments after ``ddx`` that drain the queue; empty if it cannot."""
        verb = self.verbs.get("drain")
        return verb.words if verb is not None else ()

    @property
    def rank(self) -> bool:
        """Whether it can order beads inside a priority (``bead queue``)."""
        return "queue" in self.verbs

    @property
    def depends_on(self) -> bool:
        """Whether ``bead create`` takes ``--depends-on``."""
        return "create" in self.verbs and self.verbs["create"].knows("--depends-on")

    @property
    def blocker_reason(self) -> bool:
        """Whether ``bead update`` takes ``--external-blocker-reason``."""
        return "update" in self.verbs and self.verbs["update"].knows("--external-blocker-reason")

    @property
    def lands_kept(self) -> bool:
        """Whether a worker lands a kept change before any new attempt, unless its commit was rejected.

        Its ``bead update`` takes ``--reject-preserved`` (August).
        """
        return "update" in self.verbs and self.verbs["update"].knows("--reject-preserved")

    @property
    def works_from_linked(self) -> bool:
        """Whether a worker in a linked work tree takes beads from the primary tracker (docs/formats/ddx.md §4).

        Those do whose ddx keeps a queue-rank as a number: both are of June (ddx-231dff55).
        """
        return self.rank_is_number

    @property
    def carries_through(self) -> bool:
        """Whether its verb for one bead claims it, checks its dependencies, lands and closes it.

        It may land a kept change as it is (August does; May keeps it at its ref); help does not say.
        """
        verb = self.verbs.get("one_bead")
        return verb is not None and verb.words != BARE

    def words(self, action: DdxAction) -> Words:
        """The words after ``ddx`` for an action; those of the newest release if this one's are not known."""
        verb = self.verbs.get(action)
        return verb.words if verb is not None else VERBS[action][0]

    @property
    def gives_back(self) -> bool:
        """Whether an interrupted attempt releases its bead, because its loop handles signals."""
        verb = self.verbs.get("drain")
        return verb is not None and verb.heeds_signals

    @property
    def family(self) -> Era:
        """The family of its words and statuses."""
        return self.rule.name

    @property
    def kept_heartbeat(self) -> str:
        """The other family's heartbeat key, which stays in the row when a bead is released."""
        return "work-heartbeat-at" if not self.rule.new_keys else "execute-loop-heartbeat-at"


_APRIL_VERBS = _TRACKER | {
    "drain": DdxVerb(("agent", "execute-loop"), _flags(f"--json --local --once {_ROUTE}")),
    "one_bead": DdxVerb(("agent", "execute-bead"), _flags(f"--json {_ROUTE}")),
    "workers": DdxVerb(("agent", "workers")),
    "create": DdxVerb(("bead", "create"), _flags("--set")),
    "update": DdxVerb(("bead", "update"), _flags("--set")),
}


_AUGUST_VERBS = _TRACKER | {
    "drain": DdxVerb(("work",), _flags(f"--json --once --watch {_ROUTE}"), heeds_signals=True),
    "one_bead": DdxVerb(("try",), _flags(_ROUTE)),
    "workers": DdxVerb(("work", "status")),
    "plan": DdxVerb(("work", "plan")),
    "queue": DdxVerb(("bead", "queue")),
    "operator_attention": DdxVerb(("bead", "operator-attention")),
    "cooldown": DdxVerb(("bead", "cooldown")),
    "create": DdxVerb(("bead", "create"), _flags("--set --depends-on")),
    "update": DdxVerb(("bead", "update"), _flags("--set --external-blocker-reason")),
}


APRIL = Dialect(
    rule=APRIL_RULE,
    lifecycle=False,
    leases=False,
    claim_in_row=True,
    rank_is_number=False,
    gives_out_waiting=True,
    closes_waiting=True,
    waits_on_parents=True,
    closes_superseded=False,
    closes_ineligible=False,
    closes_epics=False,
    climbs=False,
    cancelled_counts=False,
    verbs=_APRIL_VERBS,
)
"""The releases of April 2026, and the embedded tracker simulating them."""


AUGUST = Dialect(
    rule=HEAD_RULE,
    lifecycle=True,
    leases=True,
    claim_in_row=False,
    rank_is_number=True,
    gives_out_waiting=False,
    closes_waiting=False,
    waits_on_parents=False,
    closes_superseded=True,
    closes_ineligible=True,
    closes_epics=True,
    climbs=True,
    cancelled_counts=True,
    verbs=_AUGUST_VERBS,
)
"""The releases of August 2026, and the embedded tracker simulating them."""


FAMILIES: Mapping[Era, Dialect] = {"april": APRIL, "head": AUGUST}
"""Each family's dialect, if nothing more is known."""


def rule_for(dialect: Dialect | None, era: AnyEra = "auto") -> AnyEra | Rule:
    """The rule for rows: the era asked for, else a proven rule, else each row's own era."""
    return dialect.rule if era == "auto" and dialect is not None and dialect.proven else era


def dialect_or_family(dialect: Dialect | None, queue: Queue) -> Dialect:
    """The dialect of the installed ddx; without one, that of the rule which judged the queue."""
    return dialect or FAMILIES[queue.default_era]
