"""What the installed ddx does, verb by verb and rule by rule, and whether that fits the tracker.

Three things are told apart (docs/decisions/0003): the era of a record, the era of a tracker, and the release of the
installed ddx. A `Dialect` is the third: what its help names and what a trial on a throw-away queue proved; it is asked
once per binary, kept by its content, and never guessed. Nothing asks which release it is.

`read_verbs` finds which verbs and flags it has, each verb by its own ``--help``: an unknown word under a known one has
cobra print the known one's help, so only a usage line that names the verb is an answer. A help without any usage line
says nothing; it is taken at its word that it answers.

`remarks` says in one line, with the way out, where tracker and ddx differ: who wrote the one, what the other reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.core.beads.readiness import APRIL as APRIL_RULE
from helix_tui.core.beads.readiness import HEAD as HEAD_RULE
from helix_tui.core.beads.readiness import Era as AnyEra
from helix_tui.core.beads.readiness import Rule, tracker_era
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.names import BARE, VERBS, Era
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import NS

if TYPE_CHECKING:
    from helix_tui.core.beads.readiness import Queue

Words = tuple[str, ...]

_ROW = re.compile(r"^\s+(?:-\w, )?(--[\w-]+)", re.MULTILINE)
_CODE = re.compile(r"^[ \t]*(\d{1,3})[ \t]+(\S.*)$", re.MULTILINE)
_ANYWHERE = re.compile(r"(?<![\w-])--\w[\w-]*")


class DdxVerb(Struct, frozen=True):
    """The verb of one action, as one ddx speaks it."""

    words: Words
    """After ``ddx``."""
    flags: frozenset[str] = frozenset()
    """Those that its help names; empty where it names none."""
    codes: tuple[tuple[int, str], ...] = ()
    """What its help says that it ends with, and when; empty where it says nothing of that."""
    heeds_signals: bool = False
    """Its help tells what SIGINT does to it; else that ends it where it stands."""

    def knows(self, flag: str) -> bool:
        """Whether its help names a flag."""
        return flag in self.flags

    def meaning(self, code: int) -> str:
        """What its help says of an exit code; empty where it says nothing."""
        return next((said for number, said in self.codes if number == code), "")

    def takes(self, flag: str) -> bool:
        """Whether it takes a flag, as far as anybody can tell: a help without any speaks against none."""
        return not self.flags or flag in self.flags


def read_verbs(ask: Callable[[Words], str | None]) -> dict[str, DdxVerb]:
    """The verb of each action that a ddx can do, the newer where it speaks two.

    Args:
        ask: the help of a verb; None where it does not answer.
    """
    silent: dict[str, list[DdxVerb]] = {}
    found: dict[str, DdxVerb] = {}
    for action, forms in VERBS.items():
        answers = [(words, text) for words in forms if (text := ask(words)) is not None]
        # a parent answers for a verb that it does not have: only a help that names the verb is its own
        own = [
            DdxVerb(words, flags_in(text), codes_in(text), "SIGINT" in text)
            for words, text in answers
            if _is_help_of(text, words)
        ]
        # April has `ddx work` too, as another name of its loop; a later one's watches.
        own.sort(key=lambda verb: verb.words == ("work",) and not verb.knows("--watch"))
        if own:
            found[action] = own[0]
        else:
            silent[action] = [DdxVerb(words, flags_in(text)) for words, text in answers if "Usage:" not in text]
    # Where no help says whose it is: the older loop, and for the other actions what goes with the loop.
    loop = found.get("drain") or next(iter(silent.get("drain", ())[-1:]), None)
    place = -1 if loop is not None and loop.words == VERBS["drain"][-1] else 0
    found |= {action: verbs[place] for action, verbs in silent.items() if verbs}
    return found if loop is None else found | {"drain": loop}


def flags_in(text: str) -> frozenset[str]:
    """The flags that a help lists; where it lists none, those that it mentions."""
    return frozenset(_ROW.findall(text.partition("Flags:")[2]) or _ANYWHERE.findall(text))


def codes_in(text: str) -> tuple[tuple[int, str], ...]:
    """The exit codes that a help lists, each with what it means."""
    listed = re.split(r"\n\s*\n", text.partition("Exit codes:\n")[2], maxsplit=1)[0]
    return tuple((int(code), clean_line(said, 200)) for code, said in _CODE.findall(listed))


def _is_help_of(text: str, words: Words) -> bool:
    """Whether a help text is the verb's own."""
    wanted = re.compile(r"^\s*\S+\s+" + r"\s+".join(map(re.escape, words)) + r"(?=\s|$)", re.MULTILINE)
    return wanted.search(text.partition("Usage:")[2]) is not None


# --- what neither help nor trial tells, and is the same in every release that was tried ---

FRESH = 90 * NS
"""How long a heartbeat counts."""

HELD = 2 * 3600 * NS
"""How long a lease counts whose process lives on this machine, and the end of any claim's credit."""

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
"""Where its bookkeeping lies, files and folders of all releases together: none stops at changes there."""

NO_TRIAL = "HELIX_DDX_TRIAL"
"""Set to ``off``, nothing is tried: what the help does not say is then taken from the tracker."""


def _flags(text: str) -> frozenset[str]:
    return frozenset(text.split())


class RowGate(Struct, frozen=True):
    """Something in a row for which a ddx refuses every command."""

    kind: str
    """``label`` or ``status``."""
    word: str
    code: str
    """DDx's own name of the refusal."""
    command: str
    """What DDx names as the way out."""


class DocumentRule(Struct, frozen=True):
    """What a ddx takes into its document graph."""

    hidden: bool
    """Documents in folders whose name begins with a dot are read too, but for its own, git's and Claude's."""
    status: bool
    """``ddx.status`` is a field of its own: a value there that is not text is an error."""
    gates: bool
    """A gate whose metric no document defines is an issue."""


class Dialect(Struct, frozen=True, kw_only=True):
    """What one ddx does with a queue."""

    rule: Rule
    """Which rows a worker may pick."""
    lifecycle: bool
    """Each change of status is checked; there are blocked, proposed and cancelled."""
    leases: bool
    """A claim writes a lease file beside the repository."""
    claim_in_row: bool
    """A claim writes who and since when into the row."""
    rank_is_number: bool
    """``--set queue-rank=3`` is stored as a number, else as text."""
    gives_out_waiting: bool
    """A bead whose dependencies are open can be claimed."""
    closes_waiting: bool
    """… and closed."""
    waits_on_parents: bool
    """A bead may wait for one above it in the tree."""
    closes_superseded: bool
    """Closing a bead closes those that it replaces."""
    closes_ineligible: bool
    """Closing the last child closes a parent that no worker may pick."""
    closes_epics: bool
    """… and an epic."""
    climbs: bool
    """… and what is above that."""
    cancelled_counts: bool
    """A cancelled child counts as finished there."""
    documents: DocumentRule
    """What its document graph takes in."""
    commits_staged: bool = False
    """Closing a bead commits what is staged here, and writes that commit into the row."""
    gates: tuple[RowGate, ...] = ()
    verbs: Mapping[str, DdxVerb] = {}
    """Per action the verb that it answered to, with its flags."""
    proven: bool = True
    """A trial proved by what rule it picks; else that is a guess."""
    doubt: str = ""
    """Why a trial could not prove that, in ddx's own words; empty where it did, or where nothing was tried."""

    @property
    def drain(self) -> tuple[str, ...]:
        """How it drains the queue, after ``ddx``; empty where it cannot."""
        verb = self.verbs.get("drain")
        return verb.words if verb is not None else ()

    @property
    def rank(self) -> bool:
        """It orders beads inside a priority (``bead queue``)."""
        return "queue" in self.verbs

    @property
    def depends_on(self) -> bool:
        """``bead create`` takes ``--depends-on``."""
        return "create" in self.verbs and self.verbs["create"].knows("--depends-on")

    @property
    def blocker_reason(self) -> bool:
        """``bead update`` takes ``--external-blocker-reason``."""
        return "update" in self.verbs and self.verbs["update"].knows("--external-blocker-reason")

    @property
    def lands_kept(self) -> bool:
        """A worker lands what an attempt has left aside, before any new attempt, unless that commit was rejected.

        Its ``bead update`` takes ``--reject-preserved`` (August).
        """
        return "update" in self.verbs and self.verbs["update"].knows("--reject-preserved")

    @property
    def carries_through(self) -> bool:
        """Its verb for one bead claims it, looks at its dependencies, lands and closes it.

        What was kept aside it may land as it is (August does; May keeps it at its ref), which no help tells.
        """
        verb = self.verbs.get("one_bead")
        return verb is not None and verb.words != BARE

    @property
    def gives_back(self) -> bool:
        """An attempt that is interrupted lets go of its bead: its loop heeds signals."""
        verb = self.verbs.get("drain")
        return verb is not None and verb.heeds_signals

    @property
    def family(self) -> Era:
        """The family of words and statuses, for what has to speak them."""
        return self.rule.name

    @property
    def kept_heartbeat(self) -> str:
        """The heartbeat key that letting go of a bead leaves in the row: one of the other family."""
        return "work-heartbeat-at" if not self.rule.new_keys else "execute-loop-heartbeat-at"


_ROUTE = "--effort --harness --model"
_TRACKER = {
    action: DdxVerb(("bead", action)) for action in ("ready", "show", "close", "reopen", "dep", "evidence", "export")
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
    documents=DocumentRule(hidden=True, status=False, gates=False),
    verbs=_APRIL_VERBS,
)
"""The releases of April 2026, and the embedded tracker where it plays them."""

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
    documents=DocumentRule(hidden=False, status=True, gates=True),
    verbs=_AUGUST_VERBS,
)
"""The releases of August 2026, and the embedded tracker where it plays them."""

FAMILIES: Mapping[Era, Dialect] = {"april": APRIL, "head": AUGUST}
"""What stands for a family where nothing more is known."""


def rule_for(dialect: Dialect | None, era: AnyEra = "auto") -> AnyEra | Rule:
    """By what rows are judged: an era that somebody asks for, else a proven rule, else each by its own."""
    return dialect.rule if era == "auto" and dialect is not None and dialect.proven else era


def dialect_or_family(dialect: Dialect | None, queue: Queue) -> Dialect:
    """What the installed ddx does; where there is none, what that would do whose rule judged the queue."""
    return dialect or FAMILIES[queue.default_era]


SAMPLES = 5
"""How many beads are named."""


class Remark(Struct, frozen=True):
    """What a person must know of the installed ddx before believing a queue, with the way out."""

    text: str
    short: tuple[str, ...] = ()
    """The same in fewer words, the longest first, for where there is less room."""

    def __str__(self) -> str:
        return self.text


class Shut(Struct, frozen=True):
    """A tracker on which the installed ddx refuses every command."""

    gate: RowGate
    ids: tuple[str, ...]
    """The beads for which it does."""

    @property
    def command(self) -> str:
        """What DDx names as the way out."""
        return self.gate.command

    @property
    def short(self) -> str:
        """The fact alone, for where a bead is called ready."""
        return f"ddx refuses every command ({self.gate.code})"

    @property
    def cause(self) -> str:
        """What ddx refuses, and for which beads."""
        named = ", ".join(clean_line(bead_id, 60) for bead_id in self.ids[:SAMPLES])
        more = f" and {len(self.ids) - SAMPLES} more" if len(self.ids) > SAMPLES else ""
        return f"ddx refuses every command here ({self.gate.code}): {self.gate.kind} {self.gate.word} on {named}{more}"

    @property
    def fix(self) -> str:
        """What to do about it, in one sentence."""
        return f"Run `{self.command}`."

    @property
    def forms(self) -> tuple[str, ...]:
        """The way out with the code, and alone."""
        return f"{self.gate.code}: run `{self.command}`", f"run `{self.command}`"

    def record(self) -> dict[str, object]:
        """As JSON."""
        return {"code": self.gate.code, "ids": list(self.ids), "command": self.command}

    def __str__(self) -> str:
        return f"{self.cause}; run `{self.command}`"


def shut(beads: Mapping[str, Bead], dialect: Dialect | None) -> Shut | None:
    """Why the installed ddx would refuse every command on these beads; None where it would not."""
    if dialect is None or not dialect.gates:
        return None
    for gate in dialect.gates:
        if gate.kind == "label":
            ids = tuple(bead_id for bead_id, bead in beads.items() if gate.word in bead.labels)
        else:
            ids = tuple(bead_id for bead_id, bead in beads.items() if bead.status == gate.word)
        if ids:
            return Shut(gate, ids)
    return None


def untried(dialect: Dialect | None) -> Remark | None:
    """One line where the installed ddx could not be tried; else None."""
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
    """One line where another release wrote the tracker than the one at hand; else None."""
    # without a trial the tracker's own rule judges its rows, and there is no difference to tell of
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
    """What a person must know of the installed ddx before believing a queue."""
    refused = shut(beads, dialect)
    said = Remark(str(refused), refused.forms) if refused else None
    others = (untried(dialect), difference(beads, dialect))
    return tuple(remark for remark in (said, *others) if remark is not None)
