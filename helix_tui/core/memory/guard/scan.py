"""Screen everything that leaves the memory: secrets are redacted, text that poses as somebody or hides is withheld.

`outward` marks the methods whose results are screened; `shown` knows which fields of each record are texts, names or
records. A scan reads a text as written and in plain letters (`undisguised`), together with the texts shown beside it.
Verdicts on stored texts are cached with the version of the rules.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any, Literal, ParamSpec, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ground.secret_rules import secrets
from helix_tui.core.memory import plan_records, records, reports
from helix_tui.core.memory.guard.forms import forms, undisguised
from helix_tui.core.memory.records import Memory
from helix_tui.core.memory.words import dashed

RULES = 11
"""Version of the scanner's rules: verdicts of other versions are ignored."""

FORM, SECRET = "form: ", "secret: "
"""Prefixes of rule names."""

P = ParamSpec("P")
R = TypeVar("R")

_SHORT = 8
"""Characters below which a name cannot be harmful."""

_MAX_TOGETHER = 16 << 10
"""Characters up to which texts shown together are read as one."""

ACTION: dict[Kind, Action] = {"secret": "redact", "form": "withhold"}
"""What is done with a finding: secrets are redacted; text that poses or hides is withheld."""

MAX_TEXT = 64 << 10
"""Maximum characters of a memory; longer text is withheld unread."""


def digest(*texts: str) -> str:
    """The key of a cached verdict: a hash of the rules and the texts."""
    return f"{RULES}:{zlib.crc32(chr(0).join(texts).encode('utf-8', 'replace')):08x}"


def verdict_of(texts: tuple[str, str, str], known: object, rules: object) -> str | None:
    """The rules met by exactly these texts, from the cache, or None."""
    return str(rules or "") if known == digest(*texts) else None


def verdict(*texts: str) -> str:
    """The rules that texts meet, each by itself and all together; empty if clean."""
    # also as one text: half a key or half a marker in each is visible in neither
    found = [rule for text in (*texts, " ".join(texts[:2])) for rule in screen(text)[0]]
    return "; ".join(dict.fromkeys(found))


@lru_cache(maxsize=4_096)
def screen(text: str) -> tuple[tuple[str, ...], str]:
    """(the rules that a text meets, the screened text)."""

    found = scan(text)
    if found.clean:
        return (), text
    rules = tuple(
        dict.fromkeys((FORM if finding.kind == "form" else SECRET) + finding.rule for finding in found.findings)
    )
    return rules, withheld(rules) if found.withheld else found.text


def withheld(rules: tuple[str, ...]) -> str:
    """The replacement for a text that poses or hides."""
    told = [rule.removeprefix(FORM) for rule in rules if rule.startswith(FORM)]
    return f"[withheld: {', '.join(told)}]"


def outward(method: Callable[P, R]) -> Callable[P, R]:
    """Decorate a method whose result leaves the memory and passes `shown`."""

    @wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        found: R = shown(method(*args, **kwargs))
        return found

    return guarded


def shown_text(text: str) -> str:
    """A screened text: secrets redacted, one that poses or hides replaced by a mark."""
    if not text:
        return text
    rules, safe = screen(text)
    return safe if rules else text


def shown_texts(texts: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Screened texts that are shown together, and the rules that they meet, also read as one."""
    read = [screen(text) for text in texts]
    rules = tuple(rule for met, _ in read for rule in met)
    whole, _ = screen(" ".join(texts)) if len(texts) > 1 and sum(map(len, texts)) < _MAX_TOGETHER else ((), "")
    split = tuple(rule for rule in whole if rule not in rules)
    if any(rule.startswith(FORM) for rule in split):
        return [withheld(split)] * len(texts), rules + split
    return [
        _apart_from(texts, place) if split and not any(rule.startswith(FORM) for rule in met) else said
        for place, (met, said) in enumerate(read)
    ], rules + split


def _apart_from(texts: Sequence[str], place: int) -> str:
    """One of some texts without the secrets found when all are read as one."""
    text = texts[place]
    begin = sum(len(each) + 1 for each in texts[:place])
    for finding in reversed(scan(" ".join(texts)).findings):
        start, end = max(0, finding.start - begin), min(len(text), finding.end - begin)
        if start < end:
            text = f"{text[:start]}[redacted: {finding.rule}]{text[end:]}"
    return text


def shown_name(name: str) -> str:
    """A screened name; a mark if it poses, hides or contains a secret."""
    return name if _clean_name(name) else "withheld"


def shown(value: Any) -> Any:
    """A screened record; unchanged if it contains no text of a memory."""
    whole = _RECORDS.get(type(value))
    if whole is not None:
        return whole(value)
    fields = _FIELDS.get(type(value))
    if fields is not None:
        return replace(value, **{name: way(getattr(value, name)) for name, way in fields.items()})
    if isinstance(value, list):
        return [shown(each) for each in value]
    if isinstance(value, tuple):
        if value and all(isinstance(each, str) for each in value):
            return tuple(shown_texts(value)[0])
        return tuple(shown(each) for each in value)
    return value


def _memory(value: Memory) -> Memory:
    # found clean by the same rules when it was stored (`verdict_of`)
    if value.verdict == "":
        return value
    (trigger, resolution), met = shown_texts((value.trigger, value.resolution))
    more, source = screen(value.source)
    rules = tuple(dict.fromkeys((*met, *more)))
    if not rules:
        return value if _clean_name(value.name) else replace(value, name=str(value.id))
    # another program may have made the name from the withheld text; then use the number
    hidden = (trigger, resolution) != (value.trigger, value.resolution) and not (
        dashed(trigger).startswith(value.name.rstrip("-0123456789")) or value.name.startswith(f"{value.type}-marked")
    )
    name = str(value.id) if hidden or not _clean_name(value.name) else value.name
    return replace(value, name=name, trigger=trigger, resolution=resolution, source=source, marks=rules)


def _numbered(value: Any) -> Any:
    """A screened record with a memory's name and number."""
    return value if _clean_name(value.name) else replace(value, name=str(value.memory_id))


def _stored(value: records.Stored) -> records.Stored:
    name = value.name if _clean_name(value.name) else str(value.id)
    return replace(value, name=name, similar=_names(value.similar))


def _proposal(value: reports.Proposal) -> reports.Proposal:
    (trigger, resolution), _ = shown_texts((value.trigger, value.resolution))
    name, reason = shown_name(value.memory), shown_text(value.reason)
    return replace(value, trigger=trigger, resolution=resolution, reason=reason, memory=name)


def _plan(value: plan_records.MemoryPlan) -> plan_records.MemoryPlan:
    """A screened plan; if parts are withheld, no beads are made from it."""
    idioms = (*value.required, *value.forbidden)
    (objective, framework, *rest), met = shown_texts((value.objective, value.framework, *idioms))
    read = [_task(task, value.objective) for task in value.tasks]
    rules = tuple(dict.fromkeys([*met, *(rule for _, some in read for rule in some)]))
    problems = tuple(map(shown_text, value.problems))
    if not rules:
        return replace(value, problems=problems)
    return replace(
        value,
        objective=objective,
        framework=framework,
        required=tuple(rest[: len(value.required)]),
        forbidden=tuple(rest[len(value.required) :]),
        tasks=tuple(task for task, _ in read),
        problems=(f"parts of it are kept back: {', '.join(rules)}", *problems),
        digest=value.key.partition("-")[2],
    )


def _task(value: plan_records.PlanTask, above: str) -> tuple[plan_records.PlanTask, tuple[str, ...]]:
    said = (above, value.objective, value.verify, *value.delta)
    (_, objective, verify, *delta), rules = shown_texts(said)
    seq, slug, *depends = _names((value.seq, value.slug, *value.depends))
    if (seq, slug, *depends) != (value.seq, value.slug, *value.depends):
        rules = (*rules, "form: in a name")
    task = replace(value, seq=seq, slug=slug, objective=objective, verify=verify)
    return replace(task, delta=tuple(delta), depends=tuple(depends)), rules


def _tree(value: Any, above: str = "") -> Any:
    """A screened JSON document; adjacent texts, or those below a key, are read as one too."""
    if isinstance(value, str):
        return shown_texts((above, value))[0][1]
    if isinstance(value, list):
        texts = iter(shown_texts([above, *(each for each in value if isinstance(each, str))])[0][1:])
        return [next(texts) if isinstance(each, str) else _tree(each, above) for each in value]
    if isinstance(value, dict):
        beside = [each for name, said in value.items() for each in (name, said) if isinstance(each, str)]
        texts = iter(shown_texts([above, *beside])[0][1:])
        found = {}
        for name, each in value.items():
            key = shown_name(next(texts))
            found[key] = next(texts) if isinstance(each, str) else _tree(each, name)
        return found
    return value


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(shown_name(name) for name in names)


_Way = Callable[[Any], Any]

_RECORDS: Mapping[type, _Way] = {
    Memory: _memory,
    records.ShownMemory: _numbered,
    records.MemoryOutcome: _numbered,
    records.Stored: _stored,
    reports.Proposal: _proposal,
    plan_records.MemoryPlan: _plan,
}
"""Records with a special screening function."""

_FIELDS: Mapping[type, Mapping[str, _Way]] = {
    records.Recalled: {"memory": shown, "via": _names},
    records.Recall: {"found": shown},
    records.Revision: {"memory": shown},
    records.Connected: {"memory": shown},
    records.Edge: {"from_name": shown_name, "to_name": shown_name},
    records.Related: {"edge": shown},
    records.Injection: {
        "shown": shown,
        "objective": shown_text,
        "withheld": lambda reasons: {shown_name(name): why for name, why in reasons.items()},
    },
    records.Correction: {"before": shown, "after": shown},
    reports.Similar: {"memory": shown},
    reports.Suggestion: {"from_name": shown_name, "to_name": shown_name},
    reports.Decayed: {"candidates": shown},
    reports.Pruned: {"removed": shown},
    reports.Consolidated: {"merged": lambda pairs: tuple(_names(pair) for pair in pairs)},
    reports.Health: {"systemic": _names},
    reports.Assessment: {"reason": shown_text, "suggested_pivot": shown_text},
    reports.FeedbackReport: dict.fromkeys(
        ("helped", "unhelpful", "unchanged", "missing", "ignored", "outside_ledger"), _names
    ),
    plan_records.Exploration: {"objective": shown_text, "data": _tree},
    plan_records.TaskWorkspace: {
        "slug": shown_name,
        "objective": shown_text,
        "data": _tree,
        "delivered": shown_text,
        "utilized": lambda names: _names(shown_texts(names)[0]),
    },
}
"""For each record type the fields to screen, and how."""


@lru_cache(maxsize=4_096)
def _clean_name(name: str) -> bool:
    """Whether a name is harmless: read as words, and in capitals as keys are written."""
    if len(name) < _SHORT:
        return True
    return not any(screen(text)[0] for text in (name, name.replace("-", " "), name.upper()))


Kind = Literal["secret", "form"]
Action = Literal["redact", "withhold"]


class ScanFinding(Struct, frozen=True):
    """One passage that must not reach a prompt unchanged."""

    kind: Kind
    rule: str
    """The rule that matched, e.g. ``github token``."""
    start: int
    """Span in the scanned text, in characters; ``end`` is exclusive."""
    end: int

    @property
    def action(self) -> Action:
        """What is done with it."""
        return ACTION[self.kind]


class Scan(Struct, frozen=True):
    """The findings in a text, and the screened text."""

    text: str
    """The text with secrets replaced by ``[redacted: rule]``; empty if withheld."""
    findings: tuple[ScanFinding, ...]

    @property
    def withheld(self) -> bool:
        """Whether nothing of the text may be shown."""
        return any(finding.action == "withhold" for finding in self.findings)

    @property
    def clean(self) -> bool:
        """Whether the text may be shown unchanged."""
        return not self.findings


def scan(text: str) -> Scan:
    """Scan a text that is about to be injected.

    Spans are of ``text`` itself, in order, and do not overlap.
    """
    if len(text) > MAX_TEXT:
        return Scan("", (ScanFinding("form", "oversized", 0, len(text)),))
    # passages in the plain text can be redacted alone, those of another reading cannot
    found = _found(text) or _hidden(text)
    findings = _apart(sorted(found, key=lambda finding: (finding.start, -finding.end)))
    if any(finding.action == "withhold" for finding in findings):
        return Scan("", findings)
    return Scan(_blotted(text, findings), findings)


def _found(text: str) -> list[ScanFinding]:
    return [
        *(ScanFinding("secret", *place) for place in secrets(text)),
        *(ScanFinding("form", *place) for place in forms(text)),
    ]


def _hidden(text: str) -> list[ScanFinding]:
    """Findings only in another reading of the text; they have no position here, so they span all of it."""
    bare = undisguised(text)
    found = _found(bare) if bare != text else []
    return [ScanFinding(each.kind, each.rule, 0, len(text)) for each in found]


def _blotted(text: str, findings: tuple[ScanFinding, ...]) -> str:
    parts, at = [], 0
    for finding in findings:
        parts += [text[at : finding.start], f"[redacted: {finding.rule}]"]
        at = finding.end
    return "".join([*parts, text[at:]])


def _apart(findings: list[ScanFinding]) -> tuple[ScanFinding, ...]:
    """Merge overlapping findings into the first, extended to the end of the last."""
    kept: list[ScanFinding] = []
    for finding in findings:
        last = kept[-1] if kept else None
        if last is None or finding.start >= last.end:
            kept.append(finding)
            continue
        kind: Kind = "form" if "form" in (last.kind, finding.kind) else "secret"
        kept[-1] = ScanFinding(kind, last.rule, last.start, max(last.end, finding.end))
    return tuple(kept)
