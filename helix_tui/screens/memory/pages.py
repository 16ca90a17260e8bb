"""The page under the cursor, put together in a thread: a memory, a lesson, a plan, a task, an exploration."""

from __future__ import annotations

import json
from collections.abc import Iterator

from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.memory import MemoryFault, Recalled
from helix_tui.core.memory.plan_records import Exploration, MemoryPlan, TaskWorkspace, in_order
from helix_tui.core.memory.reports import Proposal
from helix_tui.screens.memory.memory_session import MemorySession, MemoryViewState
from helix_tui.widgets.rows.memories import MemoryRow
from helix_tui.widgets.text.memory import MemoryFacts, memory_page
from helix_tui.widgets.text.pane import Para, block, section


def page_of(
    memory_session: MemorySession,
    memory_view: MemoryViewState,
    key: str,
    row: MemoryRow | None,
    hit: Recalled | None,
    now: int,
) -> list[Para]:
    """What there is to read of the row with this key; nothing where there is none."""
    kind, _, number = key.partition(" ")
    if row is not None:
        return _memory(memory_session, memory_view, row, hit, now)
    if not number.isdecimal():
        return []
    wanted = int(number)
    for each in memory_view.proposals:
        if kind == "proposal" and each.id == wanted:
            return list(_proposal(each))
    for plan in memory_view.plans:
        if kind == "plan" and plan.id == wanted:
            return list(_plan(plan, memory_view))
    for workspace in memory_view.workspaces:
        if kind == "workspace" and workspace.id == wanted:
            return list(_workspace(workspace))
    for found in memory_view.explorations:
        if kind == "exploration" and found.id == wanted:
            return list(_exploration(found))
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
        (("a lesson that waits", "text bold"), (f"  #{each.id}", "muted")),
        ((each.type, "waiting" if each.type == "failure" else "success"),),
    )
    yield Para("keys", (("a", "running"), ("  accepts or declines it", "muted")))
    yield section("trigger")
    yield from block("trigger", clean_block(each.trigger, 8_000))
    yield section("resolution")
    yield from block("resolution", clean_block(each.resolution, 8_000))
    yield section("rests on")
    yield Para("reason", ((clean_line(each.reason, 400), "text"),))
    yield Para(f"attempt {each.attempt}\tattempt", (("→ the attempt", "edge"),), opens=True)
    if each.bead:
        yield Para(f"bead {each.bead}\tbead", ((f"→ {clean_line(each.bead, 80)}", "edge"),), opens=True)


def _plan(plan: MemoryPlan, memory_view: MemoryViewState) -> Iterator[Para]:
    yield Para("plan", ((f"plan {plan.id}", "text bold"),), ((clean_line(plan.status, 20), "muted"),))
    yield from block("objective", clean_block(plan.objective, 4_000))
    for number, problem in enumerate(plan.problems):
        yield Para(f"problem {number}", ((clean_line(problem, 300), "error"),))
    for word, idioms in (("keep to", plan.required), ("avoid", plan.forbidden)):
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
