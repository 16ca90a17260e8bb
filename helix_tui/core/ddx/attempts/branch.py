"""Which revisions are in the history of the branch that work lands on, asked of git and kept.

Two runs of git answer for any number of revisions. They are asked again only when a branch has moved, and
then only about those that were not there before, as long as the branch merely grew.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from helix_tui.core.ddx.attempts.attempt import Attempt, Piece, merge, revisions
from helix_tui.core.ddx.files import Stamp, stamp_of
from helix_tui.core.ground.process import Finished, run
from helix_tui.core.ground.project import Project

_FULL = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_CAP = 64 << 20
_TARGETS = ("HEAD", "refs/heads/main", "refs/heads/master")
"""What DDx lands on is the branch checked out in the main work tree; a person may have gone to another since,
so the usual names count too."""


class BranchHistory:
    """Says whether a revision is in the history of the target branch. Runs git: not for the UI thread."""

    def __init__(self, project: Project, *, timeout: float = 10.0) -> None:
        """Ask about this project's branch; each run of git may take ``timeout`` seconds."""
        self._project = project
        self._timeout = timeout
        self._answers: dict[str, bool | None] = {}
        """By revision, 0.2 KB each: no cache, what all attempts on disk name is summed up."""
        self._stamps: tuple[Stamp | None, ...] | None = None
        self._tips: frozenset[str] = frozenset()

    def holds(self, revision: str) -> bool | None:
        """What the last `look` found; None where the revision is not here or git could not tell."""
        return self._answers.get(revision)

    def holds_any(self, revisions: Iterable[str]) -> bool | None:
        """One of them is in the history, or all that git knows are not; None where it knows none."""
        answers = {self._answers.get(revision) for revision in revisions} - {None}
        return True in answers if answers else None

    def look(self, revisions: Iterable[str]) -> set[str]:
        """Find out about these revisions, and again about others where a branch moved; those whose answer is
        another than before."""
        if self._project.common_dir is None:
            return set()
        stamps = self._look_at_refs()
        moved = stamps != self._stamps
        wanted = {each for each in revisions if _FULL.match(each)}
        asked = wanted - self._answers.keys()
        if moved:
            asked |= wanted | {rev for rev, answer in self._answers.items() if not answer}
        if not asked and not moved:
            return set()
        before = dict(self._answers)
        tips = self._ask(asked)
        if moved and tips is not None and not self._grew(tips):
            tips = self._ask(self._answers.keys() | asked)
        if tips is not None:
            self._tips, self._stamps = tips, stamps
        return {rev for rev, answer in self._answers.items() if before.get(rev) is not answer}

    def _look_at_refs(self) -> tuple[Stamp | None, ...]:
        common = self._project.common_dir or Path()
        heads = common / "refs" / "heads"
        branch = Project(self._project.root, self._project.ddx_dir, common, common).branch() or ""
        names = [heads / name for name in (branch, "main", "master")]
        others = (common / "HEAD", common / "packed-refs", common / "reftable" / "tables.list")
        return tuple(stamp_of(path) for path in (*others, *names))

    def _grew(self, tips: frozenset[str]) -> bool:
        """Whether everything that was in the history still is."""
        lost = [tip for tip in self._tips - tips if self._answers.get(tip) is not True]
        return not lost

    def _ask(self, revisions: Iterable[str]) -> frozenset[str] | None:
        """Answer for these; the tips of the branches, or None where git did not say."""
        asked = sorted({*revisions, *self._tips})
        found = self._git(("cat-file", "--batch-check=%(objectname) %(objecttype)"), (*_TARGETS, *asked))
        if found is None:
            return None
        lines = found.out.split("\n")
        present = [name for name, _, kind in (line.partition(" ") for line in lines) if kind == "commit"]
        tips = frozenset(line.partition(" ")[0] for line in lines[: len(_TARGETS)] if line.endswith(" commit"))
        here = set(present) & set(asked)
        outside: set[str] = set()
        if here and tips:
            excluded = tuple(f"^{tip}" for tip in sorted(tips))
            listed = self._git(("rev-list", "--stdin"), (*sorted(here), *excluded))
            if listed is None:
                return None
            outside = set(listed.out.split("\n"))
        for revision in asked:
            self._answers[revision] = revision not in outside if revision in here and tips else None
        return tips

    def _git(self, args: Sequence[str], lines: Sequence[str]) -> Finished | None:
        """What git printed for these lines of input; None where it failed or took too long."""
        env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
        argv = ("git", "--no-pager", "-C", os.fspath(self._project.main_root), *args)
        try:
            with tempfile.NamedTemporaryFile("w", prefix="helix-revs-", encoding="ascii") as file:
                file.write("".join(f"{line}\n" for line in lines))
                file.flush()
                finished = run(argv, env=env, timeout=self._timeout, cap=_CAP, stop_at_cap=True, stdin=Path(file.name))
        except OSError:
            return None
        return None if finished.timed_out or finished.truncated or finished.rc != 0 else finished


def merge_report(branch: BranchHistory | None, report: Piece) -> Attempt:
    """An attempt of which there is one report only, with git's word on what it made. Runs git."""
    made = revisions({report.source: report})
    if branch is None:
        return merge(report.attempt_id, {report.source: report})
    branch.look(made)
    return merge(report.attempt_id, {report.source: report}, on_branch=branch.holds_any(made))
