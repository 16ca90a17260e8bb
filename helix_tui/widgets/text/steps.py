"""The steps of a run as paragraphs: what each searched and brought, senses, symbols, compaction, time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from helix_tui.core.ground.text import clean_line
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.text.answer import Document, open_key
from helix_tui.widgets.text.pane import Para, section

MOST_QUERIES = 4


def steps_paras(document: Document) -> list[Para]:
    """Everything that was done, with what it brought."""
    paras = [section("retrieval", clean_line(document.get("retrieval_stop_reason"), 40))]
    for step in document.get("controller_steps") or ():
        paras += step_paras(step)
    paras += list(_senses(document))
    paras += list(_chain(document))
    paras += list(_compaction(document))
    paras += list(_spent(document))
    return paras


def step_paras(step: Mapping[str, Any]) -> Iterator[Para]:
    """One step of the controller: what it brought, why it was taken, what it searched."""
    number = step.get("step")
    action = clean_line(step.get("action"), 40).replace("_", " ")
    yield Para(
        f"step {number}",
        (
            (f"{number} ", "running"),
            (f"{action}  ", "text bold"),
            (f"+{step.get('spansAdded', 0)} spans, {step.get('slotCoverage', 0):.0%} of slots", "text"),
        ),
        (*_flag("docs", step.get("docCoverageOk")), *_flag("evidence", step.get("evidenceOk")),
         (f" {step.get('confidence', 0):.2f}", "muted")),
        hang=2,
    )  # fmt: skip
    yield Para(f"step {number} why", ((f"  {clean_line(step.get('reason'), 300)}", "muted"),), hang=2)
    missing = ", ".join(clean_line(label, 60) for label in step.get("missingSlots") or ())
    if missing:
        yield Para(f"step {number} open", ((f"  open: {missing}", "attention"),), hang=2)
    for place, query in enumerate((step.get("queries") or ())[:MOST_QUERIES]):
        yield Para(f"step {number} query {place}", ((f"  “{clean_line(query, 200)}”", "muted"),), hang=3)


def _flag(name: str, good: object) -> tuple[Span, ...]:
    return ((f"{name} ", "muted"), ("✓ ", "success") if good else ("– ", "muted"))


def _senses(document: Document) -> Iterator[Para]:
    scores = document.get("ambiguity_scores") or ()
    if not scores:
        return
    yield section("senses", clean_line(document.get("ambiguity_reason"), 40).replace("_", " "))
    for number, one in enumerate(scores):
        label = clean_line(one.get("label"), 120)
        chosen = one.get("label") == document.get("ambiguity_selected")
        parts = (
            f"mass {one.get('evidence_mass', 0):.2f} × coverage {one.get('slot_coverage_ratio', 0):.2f}"
            f" × proof {one.get('proof_density', 0):.2f} = {one.get('score', 0):.2f}"
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
    yield section("documents to code", f"+{document.get('code_spans_added', 0)} spans")
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
        spans = (
            (f"{clean_line(one.get('file'), 160)}  ", "text"),
            (clean_line(one.get("line"), 200), "muted"),
        )
        yield Para(f"rationale {number}", spans, hang=2)


def _spent(document: Document) -> Iterator[Para]:
    yield section("time and budgets")
    timings = document.get("timings_ms") or {}
    said = " · ".join(f"{clean_line(name, 20)} {value:.0f} ms" for name, value in timings.items())
    yield Para("timings", ((said, "muted"),))
    budgets = {**(document.get("thresholds") or {}), **(document.get("compaction_budget") or {})}
    yield Para("budgets", ((" · ".join(f"{clean_line(k, 40)} {v:g}" for k, v in budgets.items()), "muted"),))


def brief_paras(lines: Sequence[tuple[str, str]]) -> list[Para]:
    """What was done so far, a line each: (stage, what came of it)."""
    return [
        Para(
            f"brief {number}",
            ((f"{number:>2} ", "running"), (f"{stage:<9}", "text bold"), (clean_line(said, 300), "text")),
            hang=12,
        )
        for number, (stage, said) in enumerate(lines, 1)
    ]


def brief_of(document: Document) -> list[tuple[str, str]]:
    """The same of a run that is over."""
    lines = [("retrieve", _brief_step(step)) for step in document.get("controller_steps") or ()]
    scores = document.get("ambiguity_scores") or ()
    if scores:
        said = " · ".join(f"{one.get('label')} {one.get('score', 0):.2f}" for one in scores[:3])
        lines.append(("senses", f"{said} → {document.get('ambiguity_selected') or 'undecided'}"))
    resolved = document.get("symbols_resolved") or ()
    if resolved:
        lines.append(("align", f"{', '.join(resolved[:4])}: +{document.get('code_spans_added', 0)} spans of code"))
    kept, dropped = document.get("compaction_kept", 0), document.get("compaction_dropped", 0)
    lines.append(("compact", f"{kept + dropped} → {kept} spans"))
    ratio, least = document.get("grounded_claim_ratio", 0.0), document.get("grounded_claim_threshold", 0.0)
    sign = "≥" if ratio >= least else "<"
    who = "model" if document.get("model") and not document.get("tool_results_fallback_applied") else "answer"
    lines.append((who, f"ratio {ratio:.2f} {sign} {least:.2f}: {document.get('tier_selected', '')}"))
    return lines


def _brief_step(step: Mapping[str, Any]) -> str:
    missing = ", ".join(str(label) for label in (step.get("missingSlots") or ())[:3])
    said = f"{str(step.get('action', '')).replace('_', ' ')}: +{step.get('spansAdded', 0)} spans"
    return f"{said}, {step.get('slotCoverage', 0):.0%} of slots" + (f", open: {missing}" if missing else "")
