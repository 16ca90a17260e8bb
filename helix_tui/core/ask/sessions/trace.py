"""A run as a trace: one JSON object a line, at the end a certificate over all that a second run must repeat.

The last line says which of the nine acceptance criteria hold for this run, and the hash of the lines
above it but for the timings (docs/formats/ask.md §7; docs/decisions/0017).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from helix_tui.core.ask.answer.grounding import denies
from helix_tui.core.ground.helix_folder import make_folder

_HEAD = ("question", "kind", "revision", "slots", "thresholds")
_PARTS = {
    "ambiguity": ("ambiguity_",),
    "alignment": ("code_", "symbols_"),
    "compaction": ("compaction_",),
}


def write_trace(path: Path, document: Mapping[str, Any]) -> str:
    """Write a run's trace and return its certificate.

    Raises:
        OSError: the file cannot be written.
    """
    lines = list(trace_lines(document))
    make_folder(path.parent)
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return str(lines[-1]["certificate_hash"])


def trace_lines(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a run in their order, and the certificate."""
    digest = hashlib.sha256()
    for line in _events(document):
        digest.update(msgspec.json.encode(line) + b"\n")
        yield line
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
    """The nine criteria of docs/formats/ask.md §7, each as it stands for one run."""
    docs = [span for span in document["evidence"] if span["kind"] == "doc" and span["slots"]]
    cited = {citation["file"] for citation in document["citations"]}
    scores = document["ambiguity_scores"]
    coverage = [step["slotCoverage"] for step in document["controller_steps"]]
    split = document["ambiguity_reason"] == "split"
    resolved = len(scores) < 2 or bool(document["ambiguity_selected"]) or split
    ratio, threshold = document["grounded_claim_ratio"], document["grounded_claim_threshold"]
    return {
        "evidence is not denied": not docs or not denies(document["answer"], ()),
        "a matching file is cited": not docs or bool(cited),
        "the tree walk is in the envelope": isinstance(document["tree_walk"], list),
        "ambiguity is resolved or asked": resolved and (not split or len(document["clarify"].get("options", ())) == 2),
        "documents lead to code": not document["symbols_resolved"] or document["code_alignment_applied"],
        "one model call at most": document["model_calls"] <= 1,
        "item hashes are stable": len({(item["type"], item["hash"]) for item in document["items"]}) > 0,
        "the grounded tier is earned": document["tier_selected"] != "Grounded" or ratio >= threshold,
        "coverage never falls": coverage == sorted(coverage),
    }
