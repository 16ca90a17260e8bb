"""The controller steps of a run of Ask as paragraphs, and two runs compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helix_tui.core.ground.text import clean_line, counted
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.text.answer import Document, coverage_paras, open_key
from helix_tui.widgets.text.pane import Para, section

_SIGNS = {"same": ("=", "muted"), "changed": ("~", "waiting"), "added": ("+", "success"), "removed": ("−", "error")}

MAX_QUERIES = 4


def compare_paras(changes: Sequence[Any], before: str, after: str) -> list[Para]:
    """How the items of two runs differ; ``changes`` are `core.ask`'s item changes."""
    counts = {kind: sum(change.kind == kind for change in changes) for kind in _SIGNS}
    said = " · ".join(f"{count} {kind}" for kind, count in counts.items())
    paras = [
        Para("before", (("− ", "error"), (clean_line(before, 300), "text"))),
        Para("after", (("+ ", "success"), (clean_line(after, 300), "text"))),
        section("items", said),
    ]
    # differences come first
    for number, change in enumerate(sorted(changes, key=lambda one: one.kind == "same")):
        sign, ink = _SIGNS[change.kind]
        hashes = change.after if change.kind in ("same", "added") else f"{change.before} → {change.after or 'gone'}"
        place = " ".join(part for part in (clean_line(change.path, 200), clean_line(change.header, 120)) if part)
        paras.append(
            Para(
                f"item {number}",
                ((f"{sign} ", ink), (f"{change.type.replace('_', ' ')}  ", "muted"), (place, "text")),
                ((hashes, "muted"),),
                hang=2,
            )
        )
    return paras


def steps_paras(document: Document) -> list[Para]:
    """All steps and their results."""
    paras = [section("retrieval", clean_line(document.get("retrieval_stop_reason"), 40))]
    for step in document.get("controller_steps") or ():
        paras += step_paras(step)
    paras += list(_senses(document))
    paras += list(_chain(document))
    paras += list(_compaction(document))
    paras += list(coverage_paras(document))
    paras += list(_found_by(document))
    paras += list(_spent(document))
    return paras


def _found_by(document: Document) -> Iterator[Para]:
    """Each kept span with the channels that found it and the slots that it covers."""
    kept = document.get("evidence") or ()
    if kept:
        yield section("spans", f"{len(kept)} kept")
    for number, one in enumerate(kept):
        channels = " ".join(
            f"{clean_line(name, 20)} {value:.2f}" for name, value in (one.get("channels") or {}).items()
        )
        slots = ", ".join(clean_line(slot, 40) for slot in one.get("slots") or ())
        parts = [clean_line(one.get("part"), 20), f"via {clean_line(one.get('via'), 20)}", channels]
        parts += [f"slots {slots}"] if slots else []
        place = f"{clean_line(one.get('file'), 300)}:{one.get('start')}–{one.get('end')}"
        right: tuple[Span, ...] = ((f"{one.get('score', 0):.2f}", "muted"),)
        said = f"  {' · '.join(part for part in parts if part)}"
        yield Para(f"found by {number}", ((place, "text"), (said, "muted")), right, hang=4)


def step_paras(step: Mapping[str, Any]) -> Iterator[Para]:
    """One step of the controller: its result, its reason, its queries."""
    number = step.get("step")
    action = clean_line(step.get("action"), 40).replace("_", " ")
    yield Para(
        f"step {number}",
        (
            (f"{number} ", "running"),
            (f"{action}  ", "text bold"),
            (f"+{counted(step.get('spansAdded', 0), 'span')}, {step.get('slotCoverage', 0):.0%} of slots", "text"),
        ),
        (*_flag("docs", step.get("docCoverageOk")), *_flag("evidence", step.get("evidenceOk")),
         (f" {step.get('confidence', 0):.2f}", "muted")),
        hang=2,
    )  # fmt: skip
    yield Para(f"step {number} why", ((f"  {clean_line(step.get('reason'), 300)}", "muted"),), hang=2)
    missing = ", ".join(clean_line(label, 60) for label in step.get("missingSlots") or ())
    if missing:
        yield Para(f"step {number} open", ((f"  open: {missing}", "attention"),), hang=2)
    for place, query in enumerate((step.get("queries") or ())[:MAX_QUERIES]):
        yield Para(f"step {number} query {place}", ((f"  “{clean_line(query, 200)}”", "muted"),), hang=3)


def _flag(name: str, good: object) -> tuple[Span, ...]:
    return ((f"{name} ", "muted"), ("✓ ", "success") if good else ("– ", "muted"))


def _senses(document: Document) -> Iterator[Para]:
    scores = document.get("ambiguity_scores") or ()
    if not scores:
        return
    yield section("senses", clean_line(document.get("ambiguity_reason"), 40).replace("_", " "))
    for number, score in enumerate(scores):
        label = clean_line(score.get("label"), 120)
        chosen = score.get("label") == document.get("ambiguity_selected")
        parts = (
            f"mass {score.get('evidence_mass', 0):.2f} × coverage {score.get('slot_coverage_ratio', 0):.2f}"
            f" × proof {score.get('proof_density', 0):.2f} = {score.get('score', 0):.2f}"
        )
        ink = "text bold" if chosen else "text"
        spans: tuple[Span, ...] = ((f"{'▸' if chosen else ' '} {label}  ", ink), (parts, "muted"))
        yield Para(f"sense {number}", spans, hang=2)
    gap = f"lead {document.get('ambiguity_gap', 0):.2f}, wanted {document.get('ambiguity_threshold', 0):.2f}"
    yield Para("sense gap", ((gap, "muted"),))


def _chain(document: Document) -> Iterator[Para]:
    links = document.get("code_alignment_chain") or ()
    if not links:
        return
    yield section("documents to code", f"+{counted(document.get('code_spans_added', 0), 'span')}")
    for number, link in enumerate(links):
        symbol, definition = clean_line(link.get("symbol"), 80), clean_line(link.get("definition"), 160)
        tail = [f"used {clean_line(link['use'], 120)}"] if link.get("use") else []
        tail += [f"tested {clean_line(link['test'], 120)}"] if link.get("test") else []
        file, _, lines = str(link.get("definition", "")).rpartition(":")
        yield Para(
            open_key(file, lines.partition("-")[0], number),
            ((symbol, "text bold"), (f" → {definition}", "text"), (f"  {' · '.join(tail)}", "muted")),
            hang=2,
            opens=True,
        )


def _compaction(document: Document) -> Iterator[Para]:
    kept, dropped = document.get("compaction_kept", 0), document.get("compaction_dropped", 0)
    yield section("compaction", f"{kept + dropped} → {kept}")
    yield Para("policy", ((clean_line(document.get("compaction_policy"), 200), "muted"),))
    for number, one in enumerate(document.get("compaction_rationale") or ()):
        spans = ((f"{clean_line(one.get('file'), 160)}  ", "text"), (clean_line(one.get("line"), 200), "muted"))
        yield Para(f"rationale {number}", spans, hang=2)


def _spent(document: Document) -> Iterator[Para]:
    yield section("time and budgets")
    timings = document.get("timings_ms") or {}
    said = " · ".join(f"{clean_line(name, 20)} {value:.0f} ms" for name, value in timings.items())
    yield Para("timings", ((said, "muted"),))
    budgets = {**(document.get("thresholds") or {}), **(document.get("compaction_budget") or {})}
    yield Para("budgets", ((" · ".join(f"{clean_line(k, 40)} {v:g}" for k, v in budgets.items()), "muted"),))
