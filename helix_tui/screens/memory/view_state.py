"""The memory as rows and text: the views of the Memory screen, and the page for the row under the cursor.

The memory is opened in a thread, read into one frozen state, and closed with the screen. A missing database
is not created by looking; if it cannot be opened, the screen says why. A page is put together in a thread: a
memory, a lesson, a plan, a task, an exploration.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
from msgspec import Struct

from helix_tui.core.embedding.minilm import load_encoder
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.core.ground.time import NS, format_age
from helix_tui.core.memory.lessons import Proposals
from helix_tui.core.memory.memory_store import MemoryStore, look_into, open_memory
from helix_tui.core.memory.plan_records import Exploration, MemoryPlan, TaskWorkspace, in_order
from helix_tui.core.memory.ranking import recency
from helix_tui.core.memory.records import (
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseForeign,
    DatabaseMissing,
    DatabaseNewer,
    Memory,
    MemoryFault,
    Recalled,
)
from helix_tui.core.memory.reports import Health, Proposal
from helix_tui.core.memory.store.database import database_path
from helix_tui.core.memory.tasks.plans import Plans
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.base.row_source import Row
from helix_tui.widgets.text.memory import MemoryFacts, MemoryRow, count, memory_page
from helix_tui.widgets.text.pane import Para, block, section

BUSY_SECONDS = 2.0

CONDITIONS: dict[type[MemoryFault], str] = {
    DatabaseMissing: "missing",
    DatabaseBusy: "locked",
    DatabaseCorrupt: "corrupt",
    DatabaseForeign: "foreign",
    DatabaseNewer: "newer",
}

VIEWS = ("all", "failure", "pattern", "systemic", "dormant", "harmful", "proposed", "plans")
_DAY = 86_400 * NS

_ROOMY = 100
"""The width from which the views leave room for more text."""

_BELONGS: Mapping[str, Callable[[MemoryRow], bool]] = {
    "all": lambda row: True,
    "failure": lambda row: row.kind == "failure",
    "pattern": lambda row: row.kind == "pattern",
    "systemic": lambda row: row.kind == "systemic",
    "dormant": lambda row: row.dormant,
    "harmful": lambda row: row.harmful,
}


class MemoryViewState(Struct, frozen=True):
    """The whole memory at one moment."""

    condition: str = "loading"
    """``loading``, ``live``, ``empty``, or why there is nothing to show."""
    problem: str = ""
    fix: str = ""
    seq: tuple[int, ...] = ()
    memories: tuple[Memory, ...] = ()
    health: Health | None = None
    dormant: frozenset[str] = frozenset()
    harmful: frozenset[str] = frozenset()
    """The memories that pruning would remove."""
    proposals: tuple[Proposal, ...] = ()
    plans: tuple[MemoryPlan, ...] = ()
    explorations: tuple[Exploration, ...] = ()
    workspaces: tuple[TaskWorkspace, ...] = ()
    path: str = ""
    names: dict[str, Memory] = {}


class MemorySession:
    """One open memory. Everything here is called in threads."""

    def __init__(self, project: Project, *, read_only: bool, clock: Callable[[], int]) -> None:
        self._project = project
        self._read_only = read_only
        self._clock = clock
        self._store: MemoryStore | None = None
        self._lock = threading.Lock()
        self.path = database_path(project)

    def store(self) -> MemoryStore:
        """The open memory.

        Raises:
            MemoryFault: it cannot be opened, or does not exist.
        """
        with self._lock:
            # a deleted file still exists behind its open handle: anything written there would be lost
            if self._store is None or not self.path.exists():
                self._let_go()
                if not self.path.exists():
                    raise DatabaseMissing(f"there is no {self.path}", "`helix-tui memory store` creates one.")
                encoder = load_encoder()
                if self._read_only:
                    self._store = open_memory(self.path, encoder, read_only=True, clock=self._clock, teacher="person")
                else:
                    self._store = look_into(
                        self.path, encoder, clock=self._clock, busy_seconds=BUSY_SECONDS, teacher="person"
                    )
            return self._store

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        if self._store is not None:
            with suppress(MemoryFault):
                self._store.close()
            self._store = None

    def read(self, known: MemoryViewState) -> MemoryViewState:
        """The memory as it is now; ``known`` itself if nothing has changed since."""
        try:
            store = self.store()
            seq = (store.seq, *_marks(store))
            if seq == known.seq and known.condition in ("live", "empty"):
                return known
            return _memory_view(store, seq)
        except MemoryFault as fault:
            # reopened at the next look: the file may have been replaced, or be free by then
            self.close()
            condition = next((word for kind, word in CONDITIONS.items() if isinstance(fault, kind)), "unreadable")
            return MemoryViewState(condition, fault.message, fault.advice, path=str(self.path))


def _marks(store: MemoryStore) -> tuple[int, ...]:
    """A number that changes when something other than the memories themselves has changed."""
    counted = (
        "SELECT coalesce(max(id), 0) FROM injection",
        "SELECT coalesce(max(id), 0) FROM outcome",
        "SELECT coalesce(max(id), 0) + count(*) FILTER (WHERE state = 'open') FROM proposal",
        "SELECT coalesce(sum(id * length(status)), 0) FROM plan",
        # the status of a row changes in place: its words differ in length, so the sum differs too
        "SELECT coalesce(sum(id * length(status)), 0) FROM workspace",
        "SELECT coalesce(max(id), 0) FROM exploration",
    )
    return tuple(int(store.read(query)[0][0]) for query in counted)


def _memory_view(store: MemoryStore, seq: tuple[int, ...]) -> MemoryViewState:
    memories = tuple(store.list())
    plans = Plans(store)
    proposals = tuple(Proposals(store).all())
    state = MemoryViewState(
        "live",
        seq=seq,
        memories=memories,
        health=store.health(),
        dormant=frozenset(memory.name for memory in store.decay().candidates),
        harmful=frozenset(memory.name for memory in store.prune(apply=False).removed),
        proposals=proposals,
        plans=tuple(plans.plans()),
        explorations=tuple(plans.explorations()),
        workspaces=tuple(plans.workspaces()),
        path=str(store.path),
        names={memory.name: memory for memory in memories},
    )
    if memories or proposals or state.plans or state.explorations:
        return state
    return MemoryViewState("empty", seq=seq, health=state.health, path=state.path)


def memory_rows(memory_view: MemoryViewState, now: int, hits: Mapping[str, Recalled] | None = None) -> list[MemoryRow]:
    """Every memory as a row: systemic first, then by proven help; or in the order of a search."""
    memories = memory_view.memories
    if hits is not None:
        memories = tuple(memory_view.names[name] for name in hits if name in memory_view.names)
    ages = [(now - (memory.last_used or memory.created_at or now)) / _DAY for memory in memories]
    fresh = recency(np.array(ages, dtype=np.float64))
    rows = [
        _row(memory, float(fresh[place]), memory_view, hits.get(memory.name) if hits is not None else None)
        for place, memory in enumerate(memories)
    ]
    if hits is None:
        rows.sort(key=_standing)
    return rows


def belonging(rows: Sequence[MemoryRow], view: str) -> list[MemoryRow]:
    """The rows of a view."""
    return [row for row in rows if _BELONGS[view](row)]


def _standing(row: MemoryRow) -> tuple[bool, bool, float, float]:
    # by the lower end of the interval: by the share itself, one success in one use would come first
    return (row.kind != "systemic", not row.tried, -row.low, -row.recency)


def _row(memory: Memory, fresh: float, memory_view: MemoryViewState, hit: Recalled | None) -> MemoryRow:
    interval, (helped, failed) = memory.interval, memory.counted
    harmful = memory.name in memory_view.harmful
    dormant = memory.name in memory_view.dormant
    unverified = memory.tried and not memory.verified
    note = f"seen {memory.seen} times" if memory.seen > 1 else "unverified" if unverified else ""
    if memory.type == "systemic":
        note = f"◆ {memory.seen} similar" if memory.seen > 1 else "◆ recurring"
    if not memory.accepted:
        note = "◆ waits"
    if harmful or dormant:
        note = "harmful" if harmful else "dormant"
    return MemoryRow(
        name=memory.name,
        title=clean_line(memory.trigger, 400),
        kind=memory.type,
        helped=helped,
        failed=failed,
        effectiveness=memory.effectiveness,
        low=interval.low,
        high=interval.high,
        verified=memory.verified,
        recency=fresh,
        last_used=memory.last_used,
        score=None if hit is None else hit.score,
        dormant=dormant,
        harmful=harmful,
        note=note,
    )


def proposal_rows(proposals: Sequence[Proposal], now: int) -> list[Row]:
    """The waiting lessons, one per row."""
    return [
        Row(
            f"proposal {proposal.id}",
            (
                (" ◆ ", "attention"),
                (clean_line(proposal.trigger, 300), "text"),
                (f"  {clean_line(proposal.resolution, 300)}", "muted"),
            ),
            ((f" {proposal.type}", "waiting" if proposal.type == "failure" else "success"),),
        )
        for proposal in proposals
    ]


def plan_rows(memory_view: MemoryViewState, now: int) -> list[Row]:
    """Plans with their workspaces under them, then explorations."""
    rows: list[Row] = []
    for plan in memory_view.plans:
        rows.append(_plan_row(plan, now))
        rows += [
            _workspace_row(workspace) for workspace in reversed(memory_view.workspaces) if workspace.plan_id == plan.id
        ]
    for exploration in memory_view.explorations:
        age = "" if exploration.created_at is None else format_age(max(0.0, (now - exploration.created_at) / NS))
        rows.append(
            Row(
                f"exploration {exploration.id}",
                ((" ? ", "edge"), (clean_line(exploration.objective, 300), "text")),
                ((f" explored {age}", "muted"),),
            )
        )
    return rows


def _plan_row(plan: MemoryPlan, now: int) -> Row:
    ink = "attention" if plan.problems else "running"
    return Row(
        f"plan {plan.id}",
        ((" ▣ ", ink), (clean_line(plan.objective, 300), "text bold")),
        ((f" {counted(len(plan.tasks), 'task')}", "muted"), (f" {clean_line(plan.status, 12)}", "muted")),
    )


def _workspace_row(each: TaskWorkspace) -> Row:
    glyph, ink = {"delivered": ("✓", "success"), "blocked": ("⊘", "error")}.get(each.status, ("○", "running"))
    return Row(
        f"workspace {each.id}",
        ((f"   {glyph} ", ink), (clean_line(f"{each.seq} {each.slug}", 80), "text")),
        (
            (f" {counted(len(each.injected), 'memory', 'memories')}", "muted"),
            (f" {clean_line(each.status, 12)}", "muted"),
        ),
    )


def counts(memory_view: MemoryViewState, width: int) -> str:
    """The counts by kind, in the longest form that fits beside the views."""
    health = memory_view.health
    if health is None:
        return ""
    if width < _ROOMY:
        return f"{health.total:,}"
    return health.words


def alerts(memory_view: MemoryViewState) -> Line:
    """What a person should look at: recurring problems, harmful memories, lessons that wait, issues."""
    parts: list[tuple[str, str]] = []
    if memory_view.harmful:
        parts.append((f"! {len(memory_view.harmful)} harmful", "error"))
    systemic = [each for each in memory_view.memories if each.type == "systemic"]
    if systemic:
        first = clean_line(systemic[0].trigger, 120)
        more = f" and {len(systemic) - 1} more" if len(systemic) > 1 else ""
        parts.append((f"◆ recurring: {first}{more}", "attention"))
    waiting = sum(not memory.accepted for memory in memory_view.memories)
    if waiting:
        parts.append((f"◆ {counted(waiting, 'memory', 'memories')} of agents to review", "attention"))
    if memory_view.proposals:
        parts.append((f"◆ {counted(len(memory_view.proposals), 'lesson to review', 'lessons to review')}", "attention"))
    if not parts and memory_view.health is not None:
        issue = next(iter(memory_view.health.issues), "")
        parts.append((clean_line(issue, 200), "muted") if issue else ("nothing to review", "success"))
    return [piece for place, part in enumerate(parts) for piece in ((("   ", "text"),) if place else ()) + (part,)]


def empty_state(memory_view: MemoryViewState) -> list[Line] | None:
    """The text if there is nothing to list: why, and what to do."""
    if memory_view.condition == "live":
        return None
    if memory_view.condition == "loading":
        return [[("Reading the memory …", "text bold")]]
    if memory_view.condition in ("missing", "empty"):
        return [
            [("No memories yet.", "text bold")],
            [],
            [
                ("Looked for " if memory_view.condition == "missing" else "Opened ", "muted"),
                (clean_line(memory_view.path, 300), "text"),
            ],
            [],
            [("helix-tui memory store", "running"), ("    remembers a failure or a pattern", "muted")],
            [("helix-tui memory learn", "running"), ("    draws lessons from attempts that ended", "muted")],
            [("helix-tui install-hooks --claude", "running")],
            [("                          lets Claude Code's agents read and claim them", "muted")],
            [],
            [("This screen fills as soon as there is one.", "muted")],
        ]
    headline = {
        "locked": "The memory is in use by another process.",
        "newer": "A newer helix-tui wrote this memory.",
        "corrupt": "The memory is damaged.",
        "foreign": "This is not a HELIX memory.",
    }.get(memory_view.condition, "The memory cannot be read.")
    return [
        [(headline, "error bold")],
        [],
        [(clean_line(memory_view.problem, 400), "text")],
        [(clean_line(memory_view.fix, 400), "muted")],
        [],
        [("It is checked again every few seconds.", "muted")],
    ]


def prune_lines(memories: Sequence[Memory]) -> list[Line]:
    """What pruning or fading would affect, one per line."""
    return [
        [
            (f"{count(memory.counted[0]):>4} / {count(memory.counted[1]):<4}", "error"),
            (f" {memory.label:<11}", "muted"),
            (clean_line(memory.trigger, 300), "text"),
        ]
        for memory in memories
    ]


def fresh(known: MemoryViewState, memory_view: MemoryViewState) -> frozenset[str]:
    """Names of memories that came or changed since."""
    # on the first look everything would be new
    if known.condition != "live":
        return frozenset()
    return frozenset(name for name, memory in memory_view.names.items() if known.names.get(name) != memory)


def nothing(view: str, query: str, turn: str) -> Row:
    """The row of an empty view.

    Args:
        turn: the key of the next view.
    """
    words = {
        "proposed": "no lesson to review; ended attempts propose them",
        "plans": "no plan; `helix-tui memory plan add` stores one",
        "all": "no memory; `helix-tui memory store` adds one",
    }.get(view, f"no {view} memory")
    words += f" · {turn} next view"
    if query and view not in ("proposed", "plans"):
        words = "no memory matches; esc shows all"
    return Row("nothing", ((f"  {words}", "muted"),), selectable=False)


def page_of(
    memory_session: MemorySession,
    memory_view: MemoryViewState,
    key: str,
    row: MemoryRow | None,
    hit: Recalled | None,
    now: int,
) -> list[Para]:
    """The page of the row with this key; empty if there is no such row."""
    kind, _, number = key.partition(" ")
    if row is not None:
        return _memory(memory_session, memory_view, row, hit, now)
    if not number.isdecimal():
        return []
    wanted = int(number)
    for proposal in memory_view.proposals:
        if kind == "proposal" and proposal.id == wanted:
            return list(_proposal(proposal))
    for plan in memory_view.plans:
        if kind == "plan" and plan.id == wanted:
            return list(_plan(plan, memory_view))
    for workspace in memory_view.workspaces:
        if kind == "workspace" and workspace.id == wanted:
            return list(_workspace(workspace))
    for exploration in memory_view.explorations:
        if kind == "exploration" and exploration.id == wanted:
            return list(_exploration(exploration))
    return []


def _memory(
    memory_session: MemorySession, memory_view: MemoryViewState, row: MemoryRow, hit: Recalled | None, now: int
) -> list[Para]:
    memory = memory_view.names[row.name]
    try:
        store = memory_session.store()
        facts = MemoryFacts(
            memory,
            row,
            store.edges(memory.name),
            store.injections(name=memory.name),
            store.outcomes(name=memory.name),
            hit,
            now,
            revisions=store.revisions(memory.name),
        )
    except MemoryFault as fault:
        facts = MemoryFacts(memory, row, hit=hit, now=now, trouble=clean_line(fault.message, 300))
    return memory_page(facts)


def _proposal(each: Proposal) -> Iterator[Para]:
    yield Para(
        "lesson",
        (("a lesson waiting for acceptance", "text bold"), (f"  #{each.id}", "muted")),
        ((each.type, "waiting" if each.type == "failure" else "success"),),
    )
    yield Para("keys", (("a", "running"), ("  accepts or declines it", "muted")))
    yield section("trigger")
    yield from block("trigger", clean_block(each.trigger, 8_000))
    yield section("resolution")
    yield from block("resolution", clean_block(each.resolution, 8_000))
    yield section("based on")
    yield Para("reason", ((clean_line(each.reason, 400), "text"),))
    yield Para(f"attempt {each.attempt}\tattempt", (("→ the attempt", "edge"),), opens=True)
    if each.bead:
        yield Para(f"bead {each.bead}\tbead", ((f"→ {clean_line(each.bead, 80)}", "edge"),), opens=True)


def _plan(plan: MemoryPlan, memory_view: MemoryViewState) -> Iterator[Para]:
    yield Para("plan", ((f"plan {plan.id}", "text bold"),), ((clean_line(plan.status, 20), "muted"),))
    yield from block("objective", clean_block(plan.objective, 4_000))
    for number, problem in enumerate(plan.problems):
        yield Para(f"problem {number}", ((clean_line(problem, 300), "error"),))
    for word, idioms in (("use", plan.required), ("avoid", plan.forbidden)):
        if idioms:
            yield Para(word, ((f"{word} ", "muted"), (clean_line("; ".join(idioms), 400), "text")))
    if not plan.problems:
        yield section(f"tasks {len(plan.tasks)}", key="tasks")
        for task in in_order(plan.tasks):
            waits = f"after {', '.join(task.depends)}" if task.depends else "first"
            yield Para(
                f"task {task.seq}",
                ((f"{clean_line(task.title, 80)}  ", "text bold"), (clean_line(task.objective, 300), "text")),
                ((f"{waits} · {task.budget} calls", "muted"),),
                hang=2,
            )
            files = clean_line(", ".join(task.delta), 300) or "any file"
            verify = clean_line(task.verify, 200)
            yield Para(f"task {task.seq} how", ((f"  {files} · `{verify}`", "muted"),), hang=2)


def _workspace(each: TaskWorkspace) -> Iterator[Para]:
    yield Para(
        "workspace",
        ((clean_line(f"{each.seq} {each.slug}", 120), "text bold"),),
        ((clean_line(each.status, 20), "muted"),),
    )
    yield from block("objective", clean_block(each.objective, 4_000))
    if each.delivered:
        yield section("delivered" if each.status == "delivered" else "said")
        yield from block("delivered", clean_block(each.delivered, 4_000))
    yield section(f"injected {len(each.injected)}", key="injected")
    used = set(each.utilized)
    for name in each.injected:
        word, ink = ("used", "success") if name in used else ("shown", "muted")
        yield Para(f"memory {name}\t{each.id}", ((clean_line(name, 200), "text"),), ((word, ink),), opens=True)
    if each.parents:
        yield section("lineage")
        for number, parent in enumerate(each.parents):
            yield Para(f"parent {number}", ((clean_line(parent, 300), "text"),))


def _exploration(found: Exploration) -> Iterator[Para]:
    yield Para("exploration", ((f"exploration {found.id}", "text bold"),))
    yield from block("objective", clean_block(found.objective, 4_000))
    yield section("found")
    text = json.dumps(found.data, indent=2, ensure_ascii=False)
    yield from block("data", clean_block(text, 40_000), code=True)
