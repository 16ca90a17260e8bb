"""Judge a session by the checks that it ran.

A session that DDx does not judge is settled by the exit codes of its commands, never by its agent's report
(docs/formats/memory.md §4).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.records import Verdict

if TYPE_CHECKING:
    from helix_tui.core.memory.reports import FeedbackReport


_RUNNER = r"(?:(?:uv|poetry|pipenv|pdm|hatch|bundle|npx|pnpm|yarn|bun|conda)\s+(?:run\s+|exec\s+|dlx\s+)?)?"

_CHECK = re.compile(
    rf"^(?:\w+=\S*\s+)*(?:time\s+|timeout\s+\S+\s+|nice\s+(?:-n\s*\S+\s+)?)*{_RUNNER}(?:\S*/)?(?:"
    r"pytest\b|py\.test\b|python[\d.]*\s+(?:-\w+\s+)*-m\s+(?:pytest|unittest|mypy|tox|nox)\b|tox\b|nox\b|mypy\b"
    r"|pyright\b|ruff\s+(?:check|format\s+--check)\b|flake8\b|pylint\b"
    r"|(?:npm|pnpm|yarn|bun)\s+(?:run\s+|run-script\s+)?(?:test|t|lint|check|typecheck|build|verify)\b"
    r"|jest\b|vitest\b|mocha\b|playwright\s+test\b|cypress\s+run\b|tsc\b|eslint\b|biome\s+(?:check|ci)\b"
    r"|go\s+(?:test|vet|build)\b|golangci-lint\b|staticcheck\b"
    r"|cargo\s+(?:\+\S+\s+)?(?:test|nextest|check|clippy|build)\b"
    r"|(?:make|gmake|just|ninja|task)\s+(?:\S+\s+)*?\S*(?:test|check|lint|verify|build)\S*"
    r"|ctest\b|bazel\s+(?:test|build)\b|(?:\./)?gradlew?\s+(?:\S+\s+)*?(?:test|check|build)\b"
    r"|mvnw?\s+(?:\S+\s+)*?(?:test|verify|package)\b|dotnet\s+(?:test|build)\b|swift\s+(?:test|build)\b"
    r"|rspec\b|rake\s+(?:test|spec)\b|rubocop\b|phpunit\b|mix\s+(?:test|credo)\b|sbt\s+(?:\S+\s+)*?test\b"
    r"|zig\s+(?:build\s+)?test\b|dart\s+(?:test|analyze)\b|flutter\s+(?:test|analyze)\b|bats\b|shellcheck\b"
    r")"
)
"""Commands whose exit code verifies work."""

_NO_RUN = re.compile(r"\s(?:--help|-h|--version|--collect-only|--co|--list|--dry-run|-n)(?=\s|$)")
_JOINED = re.compile(r"\s*(?:&&|\|\||;|\||(?<!>)&(?![&>])|\n)\s*")
_PYTEST = re.compile(r"pytest|py\.test")

_NOTHING_RAN = 5
"""Exit code of pytest where no test was collected."""


class SessionCheck(Struct, frozen=True):
    """A command that a session ran."""

    command: str
    exit_code: int | None
    """None if unknown, e.g. cut off or in the background."""
    position: int = 0
    """Where in the session it ran: larger is later, on one scale with the changes of files."""


class Judgement(Struct, frozen=True):
    """The verdict from the checks of a session, or none."""

    verdict: Verdict | None
    why: str


def judge_session(checks: Sequence[SessionCheck], last_change: int | None = None) -> Judgement:
    """The verdict on a session by the checks that it ran, each by its last run.

    Args:
        checks: every command that was run, in any order; those that are not checks are skipped.
        last_change: position of the last file change; earlier checks do not count.
    """
    last: dict[str, SessionCheck] = {}
    for check in sorted(checks, key=lambda check: check.position):
        command = checking(check.command)
        if command and not (_PYTEST.search(command) and check.exit_code == _NOTHING_RAN):
            last[command] = check
    if not last:
        return Judgement(None, "no check ran whose exit code proves anything")
    current = {command: check for command, check in last.items() if last_change is None or check.position > last_change}
    if not current:
        return Judgement(None, "files were changed after the last check")
    unknown = [command for command, check in current.items() if check.exit_code is None]
    failed = [command for command, check in current.items() if check.exit_code]
    # one failure is enough, whatever the result of checks that did not end
    if failed:
        return Judgement("failed", f"`{failed[-1][:120]}` failed")
    if unknown:
        return Judgement(None, f"how `{unknown[-1][:120]}` ended is not known")
    command = next(reversed(current))
    more = f" and {len(current) - 1} more" if len(current) > 1 else ""
    return Judgement("passed", f"`{command[:120]}`{more} passed")


def checking(command: str) -> str:
    """The check in a command line whose exit code is the line's; else "".

    ``cd src && pytest -q`` is one; ``pytest | tail``, ``pytest || true`` and ``pytest; echo done`` do not count, as
    their exit code is another command's.
    """
    line = command.strip()
    # with both, the first failure of any command in the line is the line's
    strict = bool(re.search(r"\bset\s+-\w*e", line)) and "pipefail" in line
    operators = _JOINED.findall(line)
    parts = _JOINED.split(line)
    found = [place for place, part in enumerate(parts) if _CHECK.match(part) and not _NO_RUN.search(part)]
    if not found:
        return ""
    place = found[-1]
    after = {operator.strip() for operator in operators[place:]}
    # `||` and `&` hide a failure whatever is set, `;` and `|` unless the shell is strict
    if after & {"||", "&"} or (after - {"&&"} and not strict):
        return ""
    return " ".join(parts[place].split())


def settle_session(
    memory: MemoryStore,
    attempt: str,
    checks: Sequence[SessionCheck],
    *,
    last_change: int | None = None,
    kind: str = "",
    unfinished: bool = False,
    ended: bool = False,
) -> tuple[Judgement, FeedbackReport | None]:
    """Settle the memories shown to a session or one of its agents. Without a verdict nothing is counted before it ends;
    then what it reports as used, as unverified.

    Only for work that DDx does not judge: a DDx attempt is settled by its evidence. A later verdict on
    the same session replaces the earlier one.

    Args:
        unfinished: whether its agent reports that the task is not done; then checks that hold prove nothing.
        ended: whether it does nothing more.
    """
    judged = judge_session(checks, last_change)
    if unfinished and judged.verdict == "passed":
        judged = Judgement(None, f"{judged.why}, but the task is not done")
    claims = ended and not unfinished and memory.read("SELECT name FROM claim WHERE attempt = ?", [attempt])
    if not (judged.verdict or claims) or not memory.injections(attempt=attempt):
        return judged, None
    return judged, memory.feedback(verified=judged.verdict, attempt=attempt, kind=kind, revise=True)
