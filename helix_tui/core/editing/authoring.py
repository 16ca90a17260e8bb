"""HELIX's authoring rules: what a bead needs before a worker should pick it.

Rules: docs/formats/helix.md §5, docs/decisions/0010. Acceptance is *deterministic* if a machine could check it: a
command and what it must do, or a named thing and what it must be. The text as a whole decides; while it is typed, each
item that no machine can check is reported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from helix_tui.core.editing.steps import called
from helix_tui.core.editing.values import targets
from helix_tui.core.ground.text import LatePattern

PHASES = ("frame", "design", "test", "build", "deploy", "iterate", "review")

REQUIRED_LABEL = "helix"

_NEED_ACCEPTANCE = frozenset({"task", "epic"})
_NEED_SPEC = frozenset({"task"})

_COMMAND = LatePattern(
    r"\b(bash|biome|bun|cargo|ddx|git|go|helix|just|lefthook|node|npm|pnpm|pytest|python3?|ruff|uv|yarn)\b"
    # words of English too, unless what follows is a command's
    r"|(?-i:\btest (?:! )?-[a-z] \S|\b(?:curl|diff|grep|jq|ls|rg) (?:-\w|['\"]|\S+ \S*[./]\w))",
    re.IGNORECASE,
)
_CHECK = LatePattern(
    r"\b("
    r"pass(es|ed|ing)?|fail(s|ed|ing)?|returns?|returned|returning|contain(s|ed|ing)?|match(es|ed|ing)?|"
    r"exist(s|ed|ing)?|prints?|printed|printing|show(s|ed|n|ing)?|creat(e|es|ed|ing)|updat(e|es|ed|ing)|"
    r"record(s|ed|ing)?|clos(e|es|ed|ing)|promot(e|es|ed|ing)|flag(s|ged|ging)?|reject(s|ed|ing)?|"
    r"includ(e|es|ed|ing)|document(s|ed|ing)?|writ(e|es|ten|ing)|wrote|mark(s|ed|ing)?|"
    r"exit(s|ed|ing)?|succeed(s|ed|ing)?|equal(s|ed)?|assert(s|ed|ing)?|prov(e|es|ed|ing)|verif(y|ies|ied|ying)"
    r")\b",
    re.IGNORECASE,
)
_TARGET = LatePattern(
    r"`[^`]+`|(?:^|[\s`])(?:[\w.-]+/)+[\w.-]+|status|label|tracker|field|notes|"
    r"(?-i:\bTest[A-Z]\w+)|\btest_\w+|\bmake [\w.-]+ (?:passes|succeeds|exits|fails|prints)",
    re.IGNORECASE | re.ASCII,
)
"""Names of commands, paths, fields, tests as languages name them, and make targets."""
_VAGUE = LatePattern(r"\b(works?|correct(ly)?|complete(ly)?|aligned?)\b", re.IGNORECASE)
Level = Literal["error", "warning"]


class AuthoringFinding(Struct, frozen=True):
    """One missing or improvable part of a bead."""

    level: Level
    code: str
    message: str

    def __str__(self) -> str:
        return f"[triage] {self.level}: {self.message}"


class AuthoringVerdict(Struct, frozen=True):
    """All findings about one bead."""

    findings: tuple[AuthoringFinding, ...] = ()

    @property
    def errors(self) -> tuple[AuthoringFinding, ...]:
        """What must be corrected."""
        return tuple(finding for finding in self.findings if finding.level == "error")

    @property
    def warnings(self) -> tuple[AuthoringFinding, ...]:
        """What should be improved."""
        return tuple(finding for finding in self.findings if finding.level == "warning")

    @property
    def exit_code(self) -> int:
        """Exit code for a ddx hook: 1 refuses, 2 warns, 0 accepts."""
        return 1 if self.errors else 2 if self.warnings else 0


def deterministic(text: str) -> bool:
    """Whether one acceptance statement can be checked by a machine."""
    command, check = _COMMAND.search(text) is not None, _CHECK.search(text) is not None
    if check and (command or _TARGET.search(text) is not None):
        return True
    # a command suffices, unless the text makes its outcome a matter of opinion (“make works”)
    return False if _VAGUE.search(text) else command


def vague_items(acceptance: str) -> tuple[str, ...]:
    """The items of an acceptance text that no machine can check; the whole text if it has no items."""
    return tuple(item for item in acceptance_items(acceptance) if not deterministic(item))


def acceptance_items(acceptance: str) -> tuple[str, ...]:
    """The items of an acceptance text: numbered, bulleted or one per line; indented lines continue an item."""
    items: list[str] = []
    marked = False
    for line in acceptance.split("\n"):
        match = re.match(r"\s*(?:\(?\d+[.)]|[-*•]|AC[-\s]?\d+[.:)])\s+(.*)", line)
        if match:
            marked = True
            items.append(match.group(1).strip())
        elif line.strip():
            # without bullets every line is an item, even an indented one
            if marked and items and line[:1].isspace():
                items[-1] += " " + line.strip()
            else:
                items.append(line.strip())
    return tuple(item for item in items if item)


def judge(bead: Mapping[str, Any], known: Collection[str] | None = None, *, strict: bool = False) -> AuthoringVerdict:
    """Check a bead against the authoring rules.

    Args:
        bead: its fields by the names that rows use.
        known: ids of the tracker, for its dependencies; None if unknown.
        strict: vague acceptance is an error, as for beads created here; else a warning.
    """
    return AuthoringVerdict(tuple(_findings(bead, known, strict)))


def judge_text(acceptance: str) -> AuthoringVerdict:
    """Findings per acceptance item, for a text being typed."""
    return AuthoringVerdict(tuple(_vague(item, "warning") for item in vague_items(acceptance)))


def _findings(bead: Mapping[str, Any], known: Collection[str] | None, strict: bool) -> Iterable[AuthoringFinding]:
    kind = str(bead.get("issue_type") or "task")
    labels = [text.strip() for text in bead.get("labels") or () if isinstance(text, str)]
    if not str(bead.get("title") or "").strip():
        yield AuthoringFinding("error", "title", "title required")
    if REQUIRED_LABEL not in labels:
        yield AuthoringFinding("error", "label", f'missing required label "{REQUIRED_LABEL}"')
    if not _activities(labels):
        wanted = ",".join(PHASES)
        yield AuthoringFinding("error", "phase", f"missing phase label (phase:{{{wanted}}} or activity:{{{wanted}}})")
    if kind in _NEED_SPEC and not str(bead.get("spec-id") or "").strip():
        yield AuthoringFinding("error", "spec", "spec-id required for a task")
    acceptance = str(bead.get("acceptance") or "").strip()
    if kind in _NEED_ACCEPTANCE and not acceptance:
        yield AuthoringFinding("error", "acceptance", f"acceptance required for type {kind}")
    for target in _targets(bead):
        if known is not None and target not in known:
            yield AuthoringFinding("error", "dependency", f"dependency {called(target)} does not exist")
    if kind in _NEED_ACCEPTANCE and acceptance and not deterministic(acceptance):
        yield _vague(acceptance, "error" if strict else "warning")
    if not any(text.startswith("kind:") for text in labels):
        yield AuthoringFinding("warning", "kind", "consider adding a kind label")


def _activities(labels: Sequence[str]) -> list[str]:
    # HELIX's data writes phase:*, its documents activity:*; both count (docs/decisions/0010)
    return [text for text in labels if text.startswith(("phase:", "activity:")) and text.partition(":")[2] in PHASES]


def _targets(bead: Mapping[str, Any]) -> tuple[str, ...]:
    edges = bead.get("dependencies")
    return targets(edges) if isinstance(edges, list) else ()


def _vague(text: str, level: Level) -> AuthoringFinding:
    advice = "name a command and what it must do, or a file, field or label and what it must be"
    return AuthoringFinding(level, "vague", f"no machine can check “{called(text)}”; {advice}")
