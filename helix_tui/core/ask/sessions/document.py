"""A run as one JSON document, for ``helix-tui ask --json`` and the history; and as a trace with a certificate. The
document's keys are those of docs/formats/ask.md §4. A trace has one JSON object per line; its last line says which of
the nine acceptance criteria are met by this run, with the hash of the lines above it except the timings, which a second
run must reproduce (docs/formats/ask.md §7; docs/decisions/0017).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from helix_tui.core.ask.answer.answer import Citation, best_evidence, ranked_by_use, would_decide
from helix_tui.core.ask.answer.compaction import DroppedSpan, Item, Kept, assembly_hash
from helix_tui.core.ask.answer.grounding import denies
from helix_tui.core.ask.answer.passages import Passage
from helix_tui.core.ask.records import Span, item_id, record_place
from helix_tui.core.ask.retrieval.controller import RetrievalStep
from helix_tui.core.ask.retrieval.pool import PoolEntry
from helix_tui.core.ask.retrieval.senses import Weighed
from helix_tui.core.ask.retrieval.tree_walk import WalkNode
from helix_tui.core.ask.sessions.session import AskRun
from helix_tui.core.ground.writes import replace_file

MOST_RANKED = 100

_HEAD = ("question", "kind", "revision", "slots", "thresholds")
_PARTS = {"ambiguity": ("ambiguity_",), "alignment": ("code_", "symbols_"), "compaction": ("compaction_",)}


def document_of(run: AskRun, timings: Mapping[str, float] | None = None) -> dict[str, Any]:
    """The whole run; everything but ``timings_ms`` and ``model`` depends only on question and content."""
    retrieval, policy = run.retrieval, run.policy
    return {
        "question": run.asked or run.question.text,
        "asked_as": run.question.text,
        "follows": _follows(run),
        "kind": "definition" if run.question.focus else "question",
        "revision": run.revision,
        "answer": run.answer,
        "tier_selected": run.tier,
        "tier": run.result,
        "citations": [_citation(citation) for citation in run.citations],
        "subject": list(run.question.words),
        "reranked": run.reranked,
        "partial": run.partial,
        "passages": [_passage(passage, run) for passage in run.passages],
        "evidence": [_chosen(one) for one in run.compaction.kept],
        "dropped": [_chosen(one) for one in run.compaction.dropped],
        "slots": [
            {
                "id": slot.id,
                "label": slot.label,
                "source": slot.source,
                "required": slot.required,
                "weight": slot.weight,
                "covered_by": list(run.covered_by.get(slot.id, ())),
            }
            for slot in run.slots
        ],
        "controller_steps": [step_of(step) for step in retrieval.steps],
        "evidence_ok": bool(retrieval.steps) and retrieval.steps[-1].evidence_ok,
        "slot_coverage_ok": bool(retrieval.steps) and retrieval.steps[-1].slot_coverage_ok,
        "retrieval_iterations": len(retrieval.steps),
        "retrieval_stop_reason": retrieval.stop,
        "retrieval_stop_detail": retrieval.detail,
        "queries": retrieval.queries,
        "thresholds": {
            "min_doc_span_count": policy.min_doc_span_count,
            "min_slot_coverage_ratio": policy.min_slot_coverage_ratio,
            "max_iters": policy.max_iters,
            "max_files": policy.max_files,
            "max_span_bytes": policy.max_span_bytes,
            "max_runtime_ms": policy.max_runtime_ms,
        },
        "items": [
            {
                "type": item.type,
                "path": item.path,
                "hash": item.hash,
                "header": item.header,
                "start": item.start,
                "end": item.end,
            }
            for item in run.items
        ],
        "assembly_hash": assembly_hash(run.items),
        **_compaction(run),
        **_ambiguity(run),
        **_alignment(run),
        "tool_results_applied": bool(run.tool_results),
        "tool_results_fallback_applied": bool(run.fallback),
        "tool_results_fallback_reason": run.fallback,
        "grounded_claim_ratio": run.grounding.ratio,
        "grounded_claim_threshold": run.grounding.threshold,
        "claims": [
            {"text": claim.text, "cites": list(claim.cites), "grounded": claim.grounded, "why": claim.why}
            for claim in run.grounding.claims
        ],
        "tree_walk_depth": run.depth,
        "tree_walk": [_walk_node(node) for node in run.walk],
        "clarify": clarify_of(run),
        "not_found": [slot.label for slot in run.missing],
        # the items that a model reports as used come first; without a model the order is the ranking's
        "ranked_files": ranked_by_use([one.file for one in run.ranked[:MOST_RANKED]], (one.span for one in _used(run))),
        "timings_ms": {name: round(ms, 1) for name, ms in {**run.timings, **(timings or {})}.items()},
        "model_calls": run.model_calls,
        "model": _model(run),
        **_without_model(run),
    }


def _follows(run: AskRun) -> dict[str, Any]:
    """The question that this one follows, and how much of its evidence is still valid; empty if there is none."""
    earlier = run.earlier
    if earlier is None:
        return {}
    return {"id": earlier.get("id", ""), "question": earlier.get("question", ""), "kept": run.kept_of_earlier}


def _used(run: AskRun) -> list[Citation]:
    """The items that the model used, in its order; empty if its answer was not used."""
    by_number = {one.number: one for one in run.given}
    return [] if run.fallback else [by_number[number] for number in run.read.used if number in by_number]


def _without_model(run: AskRun) -> dict[str, Any]:
    """The answer that was replaced by a model's, for comparison; else empty."""
    if run.without_model is None:
        return {}
    answer, tier, kind = run.without_model
    cited = [_citation(one) for one in run.drafted.cited]
    return {
        "answer_without_model": answer,
        "tier_without_model": tier,
        "result_without_model": kind,
        "citations_without_model": cited,
    }


def _citation(one: Citation) -> dict[str, Any]:
    """A source as cited."""
    return {
        "id": one.number,
        "file": one.span.file,
        "start": one.start,
        "end": one.end,
        "header": one.span.header,
        "hash": one.span.hash,
        "item": item_id(one.span),
        "source": source_of(one.span),
    }


def source_of(span: Span) -> dict[str, str]:
    """The kind of a source and the id that opens it; a file's id is its path."""
    place = record_place(span.file, span.header)
    if place is None:
        return {"kind": "file", "id": span.file}
    return {"kind": place.kind, "id": place.id, "record": place.record}


def _chosen(one: Kept | DroppedSpan) -> dict[str, Any]:
    return evidence_of(one.entry) | {"part": one.part, "why": one.why}


def _passage(one: Passage, run: AskRun) -> dict[str, Any]:
    span = one.span
    numbers = {source.span.key: source.number for source in run.drafted.sources}
    return {
        "id": numbers.get(one.found.key, 0),
        "file": span.file,
        "start": span.start,
        "end": span.end,
        "header": span.header,
        "hash": span.hash,
        "line": one.line,
        "score": one.score,
        "covered": one.covered,
        "likeness": one.likeness,
        "text": span.text,
    }


def evidence_of(entry: PoolEntry) -> dict[str, Any]:
    """A span of evidence."""
    span = entry.span
    kind = "doc" if entry.is_doc else "test" if span.role == "test" else "code" if entry.is_code else span.role
    return {
        "file": span.file,
        "start": span.start,
        "end": span.end,
        "kind": kind,
        "shape": span.kind,
        "header": span.header,
        "hash": span.hash,
        "score": round(entry.relevance, 6),
        "channels": {name: round(value, 6) for name, value in sorted(span.channels.items())},
        "via": entry.via,
        "step": entry.step,
        "query": entry.query,
        "slots": sorted(entry.slots),
        "text": span.text,
    }


def step_of(step: RetrievalStep) -> dict[str, Any]:
    """A step of the controller, in camelCase as in docs/formats/ask.md §4."""
    return {
        "step": step.step,
        "action": step.action,
        "reason": step.reason,
        "evidenceOk": step.evidence_ok,
        "slotCoverageOk": step.slot_coverage_ok,
        "docCoverageOk": step.doc_coverage_ok,
        "confidence": step.confidence,
        "missingSlots": list(step.missing_slots),
        "slotCoverage": step.slot_coverage,
        "spansAdded": step.spans_added,
        "spans": step.spans,
        "files": step.files,
        "queries": list(step.queries),
    }


def _compaction(run: AskRun) -> dict[str, Any]:
    compaction = run.compaction
    return {
        "compaction_applied": compaction.applied,
        "compaction_dropped": len(compaction.dropped),
        "compaction_kept": len(compaction.kept),
        "compaction_policy": compaction.policy,
        "compaction_budget": compaction.budget,
        "compaction_rationale": [{"file": file, "line": line} for file, line in compaction.rationale],
    }


def _ambiguity(run: AskRun) -> dict[str, Any]:
    ambiguity = run.ambiguity
    return {
        "ambiguity_term": ambiguity.term if ambiguity.weighed else "",
        "ambiguity_candidates": [one.sense.label for one in ambiguity.weighed],
        "ambiguity_scores": [
            {
                "label": one.sense.label,
                "score": one.score,
                "evidence_mass": one.evidence_mass,
                "slot_coverage_ratio": one.slot_coverage_ratio,
                "proof_density": one.proof_density,
            }
            for one in ambiguity.weighed
        ],
        "ambiguity_gap": ambiguity.gap,
        "ambiguity_threshold": run.policy.dominance_threshold,
        "ambiguity_selected": ambiguity.selected,
        "ambiguity_reason": ambiguity.reason,
    }


def _alignment(run: AskRun) -> dict[str, Any]:
    alignment = run.alignment
    return {
        "code_alignment_applied": alignment.applied,
        "code_alignment_chain": [
            {"doc": link.doc, "symbol": link.symbol, "definition": link.definition, "use": link.use, "test": link.test}
            for link in alignment.links
        ],
        "symbols_extracted": list(alignment.extracted),
        "symbols_resolved": list(alignment.resolved),
        "code_spans_added": alignment.added,
    }


def _walk_node(node: WalkNode) -> dict[str, Any]:
    return {
        "tree": node.tree,
        "source": node.source,
        "id": node.id,
        "title": node.title,
        "depth": node.depth,
        "role": node.part if node.bound else "hint",
        "bound": node.bound,
        "path": node.path,
        "detail": node.detail,
        "span": node.span,
        "stale": node.stale,
        "fields": dict(node.fields),
    }


def clarify_of(run: AskRun) -> dict[str, Any]:
    """The required fields of a clarify (docs/formats/ask.md §6); empty if there is none."""
    if run.tier != "Clarify":
        return {}
    ambiguity, split = run.ambiguity, run.retrieval.stop == "dominance_split"
    which = "Which folder do you mean?" if run.empty else "Which file or name do you mean?"
    searched = [*run.retrieval.queries, *(one.query for one in ambiguity.weighed if split)]
    satisfy = [would_decide(ambiguity)] if split else [slot.would_satisfy for slot in run.missing]
    if run.empty:
        # no other question helps where there is nothing to search
        satisfy = ["text files in this folder, or another folder: `helix-tui ask -C DIR …`"]
    return {
        "question": f"Which “{ambiguity.term}” do you mean?" if split else which,
        "failed_term": ambiguity.term if split else ", ".join(slot.label for slot in run.missing),
        "options": [_option(one) for one in ambiguity.weighed[:2]] if split else [],
        "searched_queries": list(dict.fromkeys(searched)),
        "top_candidates": [
            {"file": one.entry.span.file, "header": one.entry.span.header, "start": one.entry.span.start}
            for one in run.compaction.kept[:6]
        ],
        "would_satisfy": satisfy or ["a question that names a file, a symbol or a heading of the repository"],
    }


def _option(one: Weighed) -> dict[str, Any]:
    evidence = best_evidence(one)
    return {
        "label": one.sense.label,
        "score": one.score,
        "evidence": [
            {"file": span.file, "start": span.start, "end": span.end, "header": span.header, "hash": span.hash}
            for span in one.spans[:3]
        ],
        "says": evidence[1] if evidence is not None else "",
        "at": f"{evidence[0].file}:{evidence[2]}" if evidence is not None else "",
    }


def _model(run: AskRun) -> dict[str, Any]:
    reply = run.model
    if reply is None:
        return {}
    return {
        "command": reply.command,
        "harness": reply.harness,
        "model": reply.model,
        "input_tokens": reply.input_tokens,
        "output_tokens": reply.output_tokens,
        "cost_usd": reply.cost_usd,
        "error": reply.error,
        "taken": not run.fallback,
        "items": [{"n": one.number, "item": item_id(one.span), "hash": one.span.hash} for one in run.given],
        "used": list(run.read.used),
        "left_out": [{"text": one.text, "why": one.why} for one in run.read.left_out],
    }


def write_trace(path: Path, document: Mapping[str, Any]) -> str:
    """Write a run's trace and return its certificate.

    Raises:
        OSError: the file cannot be written.
    """
    lines = list(trace_lines(document))
    replace_file(path, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return str(lines[-1]["certificate_hash"])


def trace_lines(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a run in their order, and the certificate."""
    digest = hashlib.sha256()
    for line in _events(document):
        digest.update(msgspec.json.encode(line) + b"\n")
        yield line
    # outside the digest, for no second run repeats them
    yield {"event": "timings", "timings_ms": document["timings_ms"], "model": document["model"]}
    checks = acceptance(document)
    yield {
        "event": "certificate",
        "verdict": "PASS" if all(checks.values()) else "FAIL",
        "checks": checks,
        "certificate_hash": digest.hexdigest(),
        "integrity": "OK" if checks["item hashes are stable"] else "BROKEN",
    }


def _events(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"event": "question", **{name: document[name] for name in _HEAD}}
    for step in document["controller_steps"]:
        yield {"event": "step", **step}
    yield {
        "event": "stop",
        "reason": document["retrieval_stop_reason"],
        "detail": document["retrieval_stop_detail"],
        "iterations": document["retrieval_iterations"],
    }
    for name, prefix in _PARTS.items():
        yield {"event": name, **{key: value for key, value in document.items() if key.startswith(prefix)}}
    for item in document["items"]:
        yield {"event": "item", **item}
    yield {
        "event": "answer",
        **{
            name: document[name]
            for name in (
                "answer",
                "tier_selected",
                "citations",
                "claims",
                "grounded_claim_ratio",
                "grounded_claim_threshold",
                "tree_walk",
                "clarify",
                "model_calls",
                "assembly_hash",
            )
        },
    }


def acceptance(document: Mapping[str, Any]) -> dict[str, bool]:
    """Whether one run meets each of the nine criteria of docs/formats/ask.md §7; each of them can fail, and those about
    evidence do where there is none.
    """
    some = bool(document["evidence"])
    # a document without a word of the question is not evidence that could be denied
    docs = [span for span in document["evidence"] if span["kind"] == "doc" and span["slots"]]
    found = (*document["evidence"], *document["dropped"])
    matching = {span["file"] for span in found if span["slots"] or span["why"].startswith("answers")}
    cited = {citation["file"] for citation in document["citations"]}
    scores = document["ambiguity_scores"]
    coverage = [step["slotCoverage"] for step in document["controller_steps"]]
    split = document["ambiguity_reason"] == "split"
    resolved = len(scores) < 2 or bool(document["ambiguity_selected"]) or split
    ratio, threshold = document["grounded_claim_ratio"], document["grounded_claim_threshold"]
    return {
        "evidence is not denied": some and (not docs or not denies(document["answer"], ())),
        "a matching file is cited": some and (not docs or bool(cited & matching)),
        "the tree walk is in the envelope": some and _walk_holds(document),
        "ambiguity is resolved or asked": resolved and (not split or len(document["clarify"].get("options", ())) == 2),
        "documents lead to code": some and (not document["symbols_resolved"] or document["code_alignment_applied"]),
        "one model call at most": document["model_calls"] <= 1,
        "item hashes are stable": _hashes_hold(document),
        "the grounded tier is earned": document["tier_selected"] != "Grounded" or ratio >= threshold,
        "coverage never falls": coverage == sorted(coverage),
    }


def _walk_holds(document: Mapping[str, Any]) -> bool:
    """Whether every node bound to a span names a kept document's, and kept documents have at least one such node."""
    places = {f"{span['file']}:{span['start']}-{span['end']}" for span in document["evidence"] if span["kind"] == "doc"}
    bound = [node for node in document["tree_walk"] if node["bound"]]
    return all(node["span"] in places for node in bound) and (bool(bound) or not places)


def _hashes_hold(document: Mapping[str, Any]) -> bool:
    """Whether the items' hashes can be reproduced from their content, and the assembly's from them."""
    items = document["items"]
    # hashed again from the evidence's own text: a document edited since does not pass
    made = {
        Item("proof_spans", span["file"], span["header"], span["start"], span["end"], span["text"]).hash
        for span in document["evidence"]
    }
    listed = {item["hash"] for item in items if item["type"] == "proof_spans"}
    whole = "\n".join(f"{item['type']}:{item['hash']}" for item in items)
    return made == listed and hashlib.sha256(whole.encode()).hexdigest()[:12] == document["assembly_hash"]
