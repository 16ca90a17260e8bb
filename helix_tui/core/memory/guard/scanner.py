"""What stored text must not carry into a prompt: secrets are blotted out, orders keep it back.

A memory is written once and read by agents for months, so it is the best place to hide a key or an order in.
Text that only describes (a hash, an id, a path, code, "ignore the cache") stays as it is: an injected
memory that lost its subject is worth nothing. The idea of a scanner before injection is the reference's
(docs/formats/memory.md §7); the rules are this project's own.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from helix_tui.core.ground.secret_rules import secrets
from helix_tui.core.memory.guard.harm_rules import harm
from helix_tui.core.memory.guard.order_rules import orders, rereadings, undisguised

Kind = Literal["secret", "instruction"]
Action = Literal["redact", "withhold"]

ACTION: dict[Kind, Action] = {"secret": "redact", "instruction": "withhold"}
"""A secret is replaced by a mark and the rest is shown; text that gives orders is not shown at all."""

MAX_TEXT = 64 << 10
"""Longer text than this is no memory: it is kept back unread. In characters."""


class ScanFinding(Struct, frozen=True):
    """One place that must not reach a prompt as it stands."""

    kind: Kind
    rule: str
    """Which rule spoke, e.g. ``github token``."""
    start: int
    """Span in the scanned text, in characters; ``end`` is exclusive."""
    end: int

    @property
    def action(self) -> Action:
        """What is done about it."""
        return ACTION[self.kind]


class Scan(Struct, frozen=True):
    """What was found in a text, and what of it may be shown."""

    text: str
    """The text with secrets replaced by ``[redacted: rule]``; empty when it is kept back."""
    findings: tuple[ScanFinding, ...]

    @property
    def withheld(self) -> bool:
        """Nothing of the text may be shown."""
        return any(finding.action == "withhold" for finding in self.findings)

    @property
    def clean(self) -> bool:
        """The text may be shown as it is."""
        return not self.findings


def scan(text: str) -> Scan:
    """Look through a text that is about to be injected.

    Spans are of ``text`` itself, in order, and do not overlap.
    """
    if len(text) > MAX_TEXT:
        return Scan("", (ScanFinding("instruction", "oversized", 0, len(text)),))
    found = _found(text) or _hidden(text)
    findings = _apart(sorted(found, key=lambda finding: (finding.start, -finding.end)))
    if any(finding.action == "withhold" for finding in findings):
        return Scan("", findings)
    return Scan(_blotted(text, findings), findings)


def _found(text: str) -> list[ScanFinding]:
    return [
        *(ScanFinding("secret", *place) for place in secrets(text)),
        *(ScanFinding("instruction", *place) for place in orders(text)),
        *(ScanFinding("instruction", *place) for place in harm(text)),
    ]


def _hidden(text: str) -> list[ScanFinding]:
    """What shows only in another reading of the text: it has no place in this one, so all of it is meant."""
    bare = undisguised(text)
    found = _found(bare) if bare != text else []
    if not found:
        found = [
            ScanFinding("instruction", *place) for other in rereadings(bare) for place in (*orders(other), *harm(other))
        ]
    return [ScanFinding(each.kind, each.rule, 0, len(text)) for each in found]


def _blotted(text: str, findings: tuple[ScanFinding, ...]) -> str:
    parts, at = [], 0
    for finding in findings:
        parts += [text[at : finding.start], f"[redacted: {finding.rule}]"]
        at = finding.end
    return "".join([*parts, text[at:]])


def _apart(findings: list[ScanFinding]) -> tuple[ScanFinding, ...]:
    """Of findings that overlap, the one that begins first, reaching as far as any of them."""
    kept: list[ScanFinding] = []
    for finding in findings:
        last = kept[-1] if kept else None
        if last is None or finding.start >= last.end:
            kept.append(finding)
            continue
        kind: Kind = "instruction" if "instruction" in (last.kind, finding.kind) else "secret"
        kept[-1] = ScanFinding(kind, last.rule, last.start, max(last.end, finding.end))
    return tuple(kept)
