"""Describe what the installed ddx does, verb by verb and rule by rule, and whether it fits the tracker.

Three things are distinguished (docs/decisions/0003): the era of a record, the era of a tracker, and the release of the
installed ddx. A `Dialect` describes the third: what its help names and what a trial on a throw-away queue proved,
determined once per binary and cached by its content. The release number is never used.

`read_verbs` finds its verbs and flags, each verb by its own ``--help``: for an unknown subcommand cobra prints the
parent's help, so only a usage line that names the verb counts. A help text without any usage line is accepted.

`remarks` states in one line, with the remedy, where tracker and ddx differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from helix_tui.core.beads.readiness import APRIL as APRIL_RULE
from helix_tui.core.beads.readiness import HEAD as HEAD_RULE
from helix_tui.core.beads.readiness import Era as AnyEra
from helix_tui.core.beads.readiness import Rule, tracker_era
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.names import BARE, VERBS, DdxAction, Era
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import NS

if TYPE_CHECKING:
    from helix_tui.core.beads.readiness import Queue

Words = tuple[str, ...]

_ROW = re.compile(r"^\s+(?:-\w, )?(--[\w-]+)", re.MULTILINE)
_CODE = re.compile(r"^[ \t]*(\d{1,3})[ \t]+(\S.*)$", re.MULTILINE)
_ANYWHERE = re.compile(r"(?<![\w-])--\w[\w-]*")


class DdxVerb(Struct, frozen=True):
    """The verb of one action in one ddx."""

    words: Words
    """Arguments after ``ddx``."""
    flags: frozenset[str] = frozenset()
    """The flags in its help; empty if there are none."""
    codes: tuple[tuple[int, str], ...] = ()
    """The exit codes in its help, with their meanings; empty if there are none."""
    heeds_signals: bool = False
    """Whether its help describes SIGINT; else SIGINT just kills it."""

    def knows(self, flag: str) -> bool:
        """Whether its help names a flag."""
        return flag in self.flags

    def meaning(self, code: int) -> str:
        """What its help says about an exit code, or ""."""
        return next((said for number, said in self.codes if number == code), "")

    def takes(self, flag: str) -> bool:
        """Whether it may take a flag; a help text without flags excludes none."""
        return not self.flags or flag in self.flags


def read_verbs(ask: Callable[[Words], str | None]) -> dict[DdxAction, DdxVerb]:
    """The verb of each action that a ddx supports, the newer one of two.

    Args:
        ask: returns the help of a verb, or None.
    """
    silent: dict[DdxAction, list[DdxVerb]] = {}
    found: dict[DdxAction, DdxVerb] = {}
    for action, forms in VERBS.items():
        answers = [(words, text) for words in forms if (text := ask(words)) is not None]
        # a parent answers for an unknown verb: only a help text that names the verb is its own
        own = [
            DdxVerb(words, flags_in(text), codes_in(text), "SIGINT" in text)
            for words, text in answers
            if _is_help_of(text, words)
        ]
        # April also has `ddx work`, as an alias of its loop; later ones watch.
        own.sort(key=lambda verb: verb.words == ("work",) and not verb.knows("--watch"))
        if own:
            found[action] = own[0]
        else:
            silent[action] = [DdxVerb(words, flags_in(text)) for words, text in answers if "Usage:" not in text]
    # If no help text is decisive: the older loop, and for other actions what goes with the loop.
    loop = found.get("drain") or next(iter(silent.get("drain", ())[-1:]), None)
    place = -1 if loop is not None and loop.words == VERBS["drain"][-1] else 0
    found |= {action: verbs[place] for action, verbs in silent.items() if verbs}
    return found if loop is None else found | {"drain": loop}


def flags_in(text: str) -> frozenset[str]:
    """The flags that a help text lists, or else mentions."""
    return frozenset(_ROW.findall(text.partition("Flags:")[2]) or _ANYWHERE.findall(text))


def codes_in(text: str) -> tuple[tuple[int, str], ...]:
    """The exit codes that a help text lists, with their meanings."""
    listed = re.split(r"\n\s*\n", text.partition("Exit codes:\n")[2], maxsplit=1)[0]
    return tuple((int(code), clean_line(said, 200)) for code, said in _CODE.findall(listed))


def _is_help_of(text: str, words: Words) -> bool:
    """Whether a help text is the verb's own."""
    wanted = re.compile(r"^\s*\S+\s+" + r"\s+".join(map(re.escape, words)) + r"(?=\s|$)", re.MULTILINE)
    return wanted.search(text.partition("Usage:")[2]) is not None


# --- not shown by help or trial, and the same in every release tested ---

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
        return f"{self.remedy[:1].upper()}{self.remedy[1:]}."

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
