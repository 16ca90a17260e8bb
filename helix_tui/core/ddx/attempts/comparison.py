"""Two attempts of one bead side by side."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.evidence import AttemptCheck, Diff, git_diff, read_diff, read_evidence, result_of
from helix_tui.core.ground.text import clean_line

MOST_PATHS = 500
"""Files that the difference of two results is asked of."""


class Side(Struct, frozen=True):
    """One of the two, with what has to be read of it."""

    attempt: Attempt
    diff: Diff
    """What it changed of its own base."""
    checks: tuple[AttemptCheck, ...] = ()


class AttemptComparison(Struct, frozen=True):
    """Two attempts and the difference of their results."""

    earlier: Side
    later: Side
    between: Diff
    """From the earlier result to the later one, in the files that either of them touched."""


def previous_attempt(attempt: Attempt, siblings: tuple[Attempt, ...]) -> Attempt | None:
    """The attempt on the same bead before this one; ``siblings`` are all of them, newest first."""
    places = [place for place, other in enumerate(siblings) if other.attempt_id == attempt.attempt_id]
    older = siblings[places[0] + 1 :] if places else ()
    return older[0] if older else None


def compare(root: Path, earlier: Attempt, later: Attempt, *, timeout: float = 8.0) -> AttemptComparison:
    """Read both and the difference. This runs git: call it from a worker."""
    sides = [
        Side(each, read_diff(root, each, timeout=timeout), read_evidence(each).checks) for each in (earlier, later)
    ]
    return AttemptComparison(sides[0], sides[1], _between(root, sides[0], sides[1], timeout))


def _between(root: Path, earlier: Side, later: Side, timeout: float) -> Diff:
    if later.diff.error:
        return Diff(error=f"{clean_line(later.attempt.attempt_id, 60)}: {later.diff.error}")
    # the later change can still be read where the earlier one is gone
    if earlier.diff.error:
        said = f"all that the later one changed; nothing is left of the earlier one ({earlier.diff.error})"
        return replace(later.diff, warning=said)
    one, other = result_of(earlier.attempt), result_of(later.attempt)
    if one == other:
        return Diff(error="both have the same result")
    paths = sorted(touched(earlier.diff.text) | touched(later.diff.text))
    return git_diff(root, one, other, paths=paths[:MOST_PATHS], timeout=timeout)


def touched(text: str) -> set[str]:
    """The files that a diff names, by their names after it and before it."""
    found = set()
    for line in text.split("\n"):
        for start in ("+++ b/", "--- a/", "rename from ", "rename to "):
            if line.startswith(start):
                # git puts a tab after a name with blanks
                found.add(line[len(start) :].rstrip('\t"'))
    return found
