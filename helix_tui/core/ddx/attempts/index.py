"""Index every attempt of a project: merge all records as files change, and ask git about landing.

`AttemptIndex` assigns records to attempts: evidence folders and metrics name the attempt; a loop's result names its
session; an event of April names neither, and belongs to the attempt of the cost event just before it, else to the one
with the same commits or the nearest end (docs/formats/ddx.md §1, §4, §5).

`BranchHistory` says which revisions are in the history of the target branch. Two git runs answer for any number of
revisions; git runs again only when a branch has moved, and, if it merely grew, only for revisions that were not there
before.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt, Review
from helix_tui.core.ddx.attempts.book import AttemptBook, NamelessEnd, deciding
from helix_tui.core.ddx.attempts.costs import AgentCall
from helix_tui.core.ddx.attempts.pieces import NO_ROW, Piece, Source, merge, revisions, with_baselines
from helix_tui.core.ddx.attempts.sources.begun import BegunAttempts
from helix_tui.core.ddx.attempts.sources.from_bundles import BundleFolders, FoundBundle
from helix_tui.core.ddx.attempts.sources.from_events import (
    BeadEvents,
    EventRow,
    attempt_named,
    cost_piece,
    event_piece,
    recovery_piece,
    worktree_piece,
)
from helix_tui.core.ddx.attempts.sources.from_events import loop_piece as _loop_piece
from helix_tui.core.ddx.attempts.sources.from_metrics import MetricsFile, metric_piece
from helix_tui.core.ddx.attempts.sources.from_run_state import RunStates
from helix_tui.core.ddx.attempts.sources.from_sessions import Spent
from helix_tui.core.ddx.attempts.sources.loop_logs import LoopLogs
from helix_tui.core.ddx.claims import Hold
from helix_tui.core.ddx.names import event_kind
from helix_tui.core.ground.files import Stamp, stamp_of
from helix_tui.core.ground.git import ask_git
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS

_FULL = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_TARGETS = ("HEAD", "refs/heads/main", "refs/heads/master")
"""Usual target branches: DDx lands on the branch checked out in the main work tree, but that may have been switched
since.
"""

_NEAR = 180 * NS
"""How far an event may be from an attempt's end to be assigned to it, if nothing else links them."""

_LONGEST = 12 * 3600 * NS
"""How long after its start an attempt known only from its work tree may have ended."""

MAX_LOOP_RESULTS = 40_000
"""Maximum number of loop results kept, the last reported: 0.6 KB each, 24 MB in all."""


class BranchHistory:
    """Says whether a revision is in the history of the target branch. Runs git: not for the UI thread."""

    def __init__(self, project: Project, *, timeout: float = 10.0) -> None:
        """Ask about this project's branch, with ``timeout`` seconds for each git run."""
        self._project = project
        self._timeout = timeout
        here = project.branch() if project.primary is not None and not project.detached else None
        self._targets = (*_TARGETS, *([f"refs/heads/{here}"] if here else []))
        """What ddx lands from a linked work tree is on the branch that is checked out there."""
        self._answers: dict[str, bool | None] = {}
        """By revision, 0.2 KB each; unbounded, as all attempts on disk are counted."""
        self._stamps: tuple[Stamp | None, ...] | None = None
        self._tips: frozenset[str] = frozenset()

    def holds(self, revision: str) -> bool | None:
        """The answer of the last `look`; None if the revision is missing or git could not answer."""
        return self._answers.get(revision)

    def holds_any(self, revisions: Iterable[str]) -> bool | None:
        """True if one of them is in the history, False if none of those known to git is; None if git knows none."""
        answers = {self._answers.get(revision) for revision in revisions} - {None}
        return True in answers if answers else None

    def look(self, revisions: Iterable[str]) -> set[str]:
        """Check these revisions, and earlier ones again if a branch moved; return those whose answer changed."""
        if self._project.common_dir is None:
            return set()
        stamps = self._look_at_refs()
        moved = stamps != self._stamps
        wanted = {revision for revision in revisions if _FULL.match(revision)}
        asked = wanted - self._answers.keys()
        if moved:
            # what is in the history stays there as long as the branch only grows
            asked |= wanted | {rev for rev, answer in self._answers.items() if not answer}
        if not asked and not moved:
            return set()
        before = dict(self._answers)
        tips = self._ask(asked)
        # the branch was reset or rebased: landed revisions may be gone from it
        if moved and tips is not None and not self._grew(tips):
            tips = self._ask(self._answers.keys() | asked)
        # if git failed, the old stamps stay and the next look asks again
        if tips is not None:
            self._tips, self._stamps = tips, stamps
        return {rev for rev, answer in self._answers.items() if before.get(rev) is not answer}

    def _look_at_refs(self) -> tuple[Stamp | None, ...]:
        common = self._project.common_dir or Path()
        heads = common / "refs" / "heads"
        branch = Project(self._project.root, self._project.ddx_dir, common, common).branch() or ""
        names = [heads / name for name in (branch, "main", "master", self._project.branch() or "main")]
        # a branch is stored in its own file, in packed-refs or in a reftable
        others = (common / "HEAD", common / "packed-refs", common / "reftable" / "tables.list")
        return tuple(stamp_of(path) for path in (*others, *names))

    def _grew(self, tips: frozenset[str]) -> bool:
        """Whether every revision that was in the history still is."""
        lost = [tip for tip in self._tips - tips if self._answers.get(tip) is not True]
        return not lost

    def _ask(self, revisions: Iterable[str]) -> frozenset[str] | None:
        """Check these revisions; return the tips of the branches, or None if git failed."""
        asked = sorted({*revisions, *self._tips})
        found = self._git(("cat-file", "--batch-check=%(objectname) %(objecttype)"), (*self._targets, *asked))
        if found is None:
            return None
        lines = found.split("\n")
        present = [name for name, _, kind in (line.partition(" ") for line in lines) if kind == "commit"]
        tips = frozenset(line.partition(" ")[0] for line in lines[: len(self._targets)] if line.endswith(" commit"))
        here = set(present) & set(asked)
        outside: set[str] = set()
        if here and tips:
            excluded = tuple(f"^{tip}" for tip in sorted(tips))
            # revisions not reachable from a tip are outside the history
            listed = self._git(("rev-list", "--stdin"), (*sorted(here), *excluded))
            if listed is None:
                return None
            outside = set(listed.split("\n"))
        for revision in asked:
            self._answers[revision] = revision not in outside if revision in here and tips else None
        return tips

    def _git(self, words: Sequence[str], lines: Sequence[str]) -> str | None:
        """git's output for these input lines; None if it failed or timed out."""
        given = "".join(f"{line}\n" for line in lines).encode("ascii")
        found = ask_git(self._project.main_root, *words, timeout=self._timeout, given=given)
        return None if found is None or found.truncated else found.out


def merge_report(branch: BranchHistory | None, report: Piece) -> Attempt:
    """An attempt known from a single report, with git's answer about its revisions. Runs git."""
    made = revisions({report.source: report})
    if branch is None:
        return merge(report.attempt_id, {report.source: report})
    branch.look(made)
    return merge(report.attempt_id, {report.source: report}, on_branch=branch.holds_any(made))


_Pieces = dict[str, dict[Source, Piece]]


class _Gathered(Struct, frozen=True):
    """The pieces from all sources on one bead's attempts."""

    pieces: _Pieces
    reviews: dict[str, list[Review]]
    nameless: tuple[NamelessEnd, ...]


class AttemptIndex:
    """All attempts, newest first, merged from bundles, metrics, events and loop logs."""

    def __init__(
        self, ddx_dir: Path, branch: BranchHistory | None = None, about: str = "", *, records: Path | None = None
    ) -> None:
        """Read the records under ``ddx_dir``; ``branch`` checks which results have landed.

        Args:
            about: only the attempts on beads with this in their id are merged.
            records: the folder of the workers' records, if that is another.
        """
        records = records or ddx_dir
        self._branch = branch
        self._about = about
        self._revisions: dict[str, dict[str, tuple[str, ...]]] = {}
        self._bundles = BundleFolders(records)
        self._metrics = MetricsFile(records)
        self._events = BeadEvents(ddx_dir)
        self._run_states = RunStates(records)
        self._logs = LoopLogs(records)
        self._begun = BegunAttempts()
        self._spent = Spent(records)
        self._loop_results: dict[str, dict[str, Piece]] = defaultdict(dict)
        self._results_in_order: dict[tuple[str, str], None] = {}
        """Bead and key of every loop result, in reported order."""
        self._by_bead: dict[str, tuple[Attempt, ...]] = {}
        self._nameless: dict[str, tuple[NamelessEnd, ...]] = {}
        self._all: tuple[Attempt, ...] | None = ()
        self._all_nameless: tuple[NamelessEnd, ...] | None = ()

    @classmethod
    def of(cls, project: Project, about: str = "") -> AttemptIndex:
        """The index of a project, with git's answer on what has landed."""
        branch = BranchHistory(project) if project.common_dir is not None else None
        return cls(project.ddx_dir, branch, about, records=project.records_dir)

    def refresh(
        self,
        beads: Mapping[str, Bead],
        changed: Iterable[Path] | None = None,
        *,
        holds: Mapping[str, Hold] | None = None,
    ) -> set[str]:
        """Read what changed on disk; return the ids of beads whose attempts were merged again.

        Args:
            changed: the only paths that may have changed; None checks everything.
            holds: bead to its hold (`runs.running.holds`); without it a row in progress counts as held.
        """
        changed = None if changed is None else list(changed)
        dirty = self._bundles.refresh(changed)
        dirty |= self._metrics.refresh()
        dirty |= self._run_states.refresh()
        dirty |= self._events.refresh(beads, changed, holds)
        dirty |= self._take_loop_results(changed)
        dirty |= self._spent.refresh()
        if self._about:
            dirty = {bead_id for bead_id in dirty if self._about in bead_id}
        pieces = self._gather(dirty)
        # git's answer may change for beads whose records did not
        dirty |= self._ask_git(pieces)
        if dirty:
            self._merge(dirty, pieces | self._gather(dirty - pieces.keys()))
        return dirty

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt, newest first."""
        if self._all is None:
            every = (attempt for attempts in self._by_bead.values() for attempt in attempts)
            self._all = with_baselines(sorted(every, key=_age_key, reverse=True))
        return self._all

    def by_bead(self, bead_id: str) -> tuple[Attempt, ...]:
        """The attempts of one bead, newest first."""
        return self._by_bead.get(bead_id, ())

    def deciding(self, bead_id: str) -> Attempt | None:
        """The attempt that decides a bead's state."""
        return deciding(self.by_bead(bead_id))

    def get(self, attempt_id: str) -> Attempt | None:
        """One attempt by its id."""
        return next((attempt for attempt in self.attempts if attempt.attempt_id == attempt_id), None)

    def judged(self, report: Piece, since: int = 0) -> Attempt:
        """Judge an attempt that ddx reports, from its records once they have its end.

        If they have only the worker's result, the report is merged with them; if there are none, it is used alone. Git
        is asked about its revisions either way. Runs git.

        Args:
            since: start of the time in which an attempt at the same bead is meant, if the report names none.
        """
        known = self._meant(report, since)
        if known is not None and known.finished and not known.only_its_worker_says:
            return known
        if known is None:
            return merge_report(self._branch, report)
        gathered = self._gather({known.bead_id})[known.bead_id]
        own = gathered.pieces[known.attempt_id]
        own["loop"] = report
        made = revisions(own)
        if self._branch is not None:
            self._branch.look(made)
        row = replace(self._events.rows.get(known.bead_id, NO_ROW), retry_after=None)
        reviews = gathered.reviews[known.attempt_id]
        return merge(known.attempt_id, own, row, reviews, on_branch=self._on_branch(made))

    def _meant(self, report: Piece, since: int) -> Attempt | None:
        if report.attempt_id:
            return self.get(report.attempt_id)
        newest = next(iter(self.by_bead(report.bead_id)), None)
        return newest if newest is not None and (newest.started_at or 0) >= since else None

    @property
    def book(self) -> AttemptBook:
        """All attempts known now."""
        return AttemptBook(self.attempts, self.other_calls, self.nameless)

    @property
    def other_calls(self) -> tuple[AgentCall, ...]:
        """Calls of agents that belong to no attempt: a check that led to none, a question, a plan."""
        return self._spent.other

    @property
    def nameless(self) -> tuple[NamelessEnd, ...]:
        """Ends recorded in beads that belong to no known attempt."""
        if self._all_nameless is None:
            self._all_nameless = tuple(end for ends in self._nameless.values() for end in ends)
        return self._all_nameless

    @property
    def problems(self) -> Mapping[Path, str]:
        """Evidence files that could not be read, and why."""
        return self._bundles.problems

    @property
    def left_out(self) -> int:
        """Number of evidence folders not read because there are too many newer ones."""
        return self._bundles.unread

    @property
    def unread_metrics(self) -> int:
        """Number of rows of the metrics file that are not attempts."""
        return self._metrics.unread

    def _take_loop_results(self, changed: list[Path] | None) -> set[str]:
        entries = self._logs.poll(changed)
        dirty = self._spent.take(entries)
        for entry in entries:
            if self._begun.take(entry):
                dirty.add(entry.bead_id)
            if entry.type == "bead.result" and entry.bead_id:
                piece = _loop_piece(entry)
                # April names no attempt: results are distinguished by session, else by instant
                key = piece.attempt_id or piece.session_id or str(entry.at)
                self._loop_results[entry.bead_id][key] = piece
                # a repeated result moves to the end; the oldest are dropped
                self._results_in_order.pop((entry.bead_id, key), None)
                self._results_in_order[entry.bead_id, key] = None
                dirty.add(entry.bead_id)
        for bead_id, key in [*islice(self._results_in_order, max(0, len(self._results_in_order) - MAX_LOOP_RESULTS))]:
            del self._results_in_order[bead_id, key], self._loop_results[bead_id][key]
            if not self._loop_results[bead_id]:
                del self._loop_results[bead_id]
            dirty.add(bead_id)
        return dirty

    def _ask_git(self, pieces: Mapping[str, _Gathered]) -> set[str]:
        """Ask git about the revisions of these attempts; return the beads whose answer changed."""
        for bead_id, gathered in pieces.items():
            self._revisions[bead_id] = {one: revisions(own) for one, own in gathered.pieces.items()}
        if self._branch is None:
            return set()
        wanted = {rev for bead_id in pieces for made in self._revisions[bead_id].values() for rev in made}
        news = self._branch.look(wanted)
        if not news:
            return set()
        return {
            bead_id
            for bead_id, attempts in self._revisions.items()
            if any(rev in news for attempt in attempts.values() for rev in attempt)
        }

    def _on_branch(self, made: Iterable[str]) -> bool | None:
        """git's answer on an attempt's revisions: one of them landed, or none that git knows did."""
        return self._branch.holds_any(made) if self._branch is not None else None

    def _gather(self, dirty: set[str]) -> dict[str, _Gathered]:
        """The pieces from all sources on these beads' attempts."""
        found_by_bead = _group(self._bundles.found, dirty)
        metrics_by_bead: dict[str, list[Piece]] = defaultdict(list)
        for row in self._metrics.rows.values() if dirty else ():
            if row.bead_id in dirty:
                metrics_by_bead[row.bead_id].append(metric_piece(row))
        return {
            bead_id: self._gather_bead(bead_id, found_by_bead[bead_id], metrics_by_bead[bead_id]) for bead_id in dirty
        }

    def _gather_bead(self, bead_id: str, found: list[FoundBundle], metrics: list[Piece]) -> _Gathered:
        pieces: _Pieces = defaultdict(dict)
        for one in found:
            for piece in one.pieces:
                pieces[piece.attempt_id][piece.source] = piece
        for piece in metrics:
            pieces[piece.attempt_id]["metrics"] = piece
        for attempt_id in self._events.worktrees(bead_id):
            pieces[attempt_id].setdefault("name", worktree_piece(attempt_id, bead_id))
        for piece in self._run_states.of(bead_id):
            pieces[piece.attempt_id]["run-state"] = piece
        nameless = _add_events(pieces, self._events.of(bead_id), bead_id)
        _add_loop_results(pieces, self._loop_results.get(bead_id, {}).values())
        hold = self._events.rows.get(bead_id, NO_ROW).hold
        began = (_first_seen(one, own)[0] for one, own in pieces.items())
        for piece in self._begun.without_evidence(bead_id, began):
            # while its worker lives, its evidence is still to come
            if hold is None or hold.gone or not hold.covers(piece.started_at):
                pieces[piece.attempt_id]["heartbeat"] = piece
        reviews = _assign_reviews(pieces, [one for one in found if one.review is not None])
        return _Gathered(pieces, reviews, nameless)

    def _merge(self, dirty: set[str], gathered: Mapping[str, _Gathered]) -> None:
        for bead_id in dirty:
            merged = self._spent.share(bead_id, self._merge_bead(bead_id, gathered[bead_id]))
            if self._nameless.get(bead_id, ()) != gathered[bead_id].nameless:
                self._nameless[bead_id] = gathered[bead_id].nameless
                self._all_nameless = None
            if merged:
                self._by_bead[bead_id] = merged
            else:
                self._by_bead.pop(bead_id, None)
                self._revisions.pop(bead_id, None)
        self._all = None

    def _merge_bead(self, bead_id: str, gathered: _Gathered) -> tuple[Attempt, ...]:
        pieces = gathered.pieces
        row = self._events.rows.get(bead_id, NO_ROW)
        # the row concerns only the newest attempt
        older = replace(row, retry_after=None, hold=None)
        made = self._revisions[bead_id]
        merged: list[Attempt] = []
        for attempt_id in sorted(pieces, key=lambda one: _first_seen(one, pieces[one]), reverse=True):
            merged.append(
                merge(
                    attempt_id,
                    pieces[attempt_id],
                    older if merged else row,
                    gathered.reviews[attempt_id],
                    on_branch=self._on_branch(made[attempt_id]),
                )
            )
        return tuple(merged)


def _group(found: Mapping[str, FoundBundle], dirty: set[str]) -> dict[str, list[FoundBundle]]:
    groups: dict[str, list[FoundBundle]] = defaultdict(list)
    for one in found.values():
        if one.bead_id in dirty:
            groups[one.bead_id].append(one)
    return groups


def _add_events(pieces: _Pieces, events: Iterable[EventRow], bead_id: str) -> tuple[NamelessEnd, ...]:
    """Assign each event to its attempt, in written order; return the ends left over."""
    nameless = []
    last_named = disrupted = ""
    for event in events:
        match event_kind(event.kind).role:
            case "disruption":
                # in a word or two (``context_canceled``); the event of its end follows
                disrupted = event.summary.strip().replace("_", " ")
            case "cost":
                piece = cost_piece(event, bead_id)
                if piece is not None:
                    pieces[piece.attempt_id]["cost"] = piece
                    last_named = piece.attempt_id
            case "end":
                named = attempt_named(event.body, bead_id, pieces)
                attempt_id = named or last_named or _by_commits_or_time(pieces, event)
                # the cost event came just before this end; the next end without a name is another attempt's
                last_named = ""
                if attempt_id:
                    pieces[attempt_id]["event"] = event_piece(event, attempt_id, bead_id)
                    pieces[attempt_id]["event"].stopped = disrupted
                else:
                    nameless.append(NamelessEnd(bead_id, clean_line(event.summary.strip(), 80), event.at))
                disrupted = ""
            case "recovery":
                attempt_id = attempt_named(event.body, bead_id, pieces)
                if attempt_id:
                    pieces[attempt_id]["recovery"] = recovery_piece(event, attempt_id, bead_id)
            case "step":
                last_named = attempt_named(event.body, known=pieces) or last_named
            case "aside":
                pass
            case never:
                assert_never(never)
    return tuple(nameless)


def _by_commits_or_time(pieces: _Pieces, event: EventRow) -> str:
    piece = event_piece(event, "", "")
    free = {attempt_id: own for attempt_id, own in pieces.items() if "event" not in own}
    for attempt_id, own in free.items():
        result = own.get("result")
        if result is not None and piece.result_rev and result.base_rev == piece.base_rev:
            return attempt_id
    if event.at is None:
        return ""
    near = [
        (abs(event.at - ended), attempt_id)
        for attempt_id, own in free.items()
        if (ended := _end(own)) is not None and -_NEAR < event.at - ended < _NEAR
    ]
    if near:
        return min(near)[1]
    # an attempt known only from its work tree has no end to compare with
    began = [
        (seen, attempt_id)
        for attempt_id, own in free.items()
        if own.keys() == {"name"} and 0 <= event.at - (seen := _first_seen(attempt_id, own)[0]) < _LONGEST
    ]
    return max(began)[1] if began else ""


def _add_loop_results(pieces: _Pieces, results: Iterable[Piece]) -> None:
    """Assign each loop result to the attempt with its id, its session, or the nearest end."""
    by_session = {
        piece.session_id: attempt_id for attempt_id, own in pieces.items() for piece in own.values() if piece.session_id
    }
    for piece in results:
        attempt_id = piece.attempt_id or by_session.get(piece.session_id, "")
        if not attempt_id and piece.at is not None:
            began = [
                (seen, one)
                for one, own in pieces.items()
                if "loop" not in own and (seen := _first_seen(one, own)[0]) <= piece.at
            ]
            attempt_id = max(began)[1] if began else ""
        if attempt_id:
            pieces[attempt_id]["loop"] = piece


def _assign_reviews(pieces: _Pieces, found: list[FoundBundle]) -> dict[str, list[Review]]:
    """Assign each review to the attempt with its commits, else to the newest that began before it."""
    reviews: dict[str, list[Review]] = defaultdict(list)
    for one in found:
        if one.review is None:
            continue
        attempt_id = _reviewed(pieces, one, one.review)
        if attempt_id:
            reviews[attempt_id].append(one.review)
    return reviews


def _reviewed(pieces: _Pieces, found: FoundBundle, review: Review) -> str:
    revisions = {found.reviewed_rev, found.reviewed_base} - {""}
    for attempt_id, own in pieces.items():
        if any(piece.result_rev in revisions for piece in own.values() if piece.result_rev):
            return attempt_id
    began = [(_first_seen(attempt_id, own)[0], attempt_id) for attempt_id, own in pieces.items()]
    # a review's folder has whole seconds, and an attempt may end within one
    before = [(seen, attempt_id) for seen, attempt_id in began if review.at is None or seen <= review.at + NS]
    return max(before)[1] if before else ""


def _end(own: Mapping[Source, Piece]) -> int | None:
    return next((piece.finished_at for piece in own.values() if piece.finished_at is not None), None)


def _first_seen(attempt_id: str, own: Mapping[Source, Piece]) -> tuple[int, str]:
    began = [piece.started_at for piece in own.values() if piece.started_at is not None]
    ended = [piece.at for piece in own.values() if piece.at is not None]
    return (min(began) if began else min(ended, default=0), attempt_id)


def _age_key(attempt: Attempt) -> tuple[int, str]:
    """Sort key: the date shown in lists, its end, else its start."""
    return (attempt.counted_at, attempt.attempt_id)
