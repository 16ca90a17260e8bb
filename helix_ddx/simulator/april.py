"""The simulation of April's DDx, step by step (recorded in loops/april-*.jsonl).

Claim in the row, one run-state for the project, transcript in the project's own evidence folder, a linked
worktree, landing by fast forward or merge, review after the merge, cooldown keys on what did not work.
"""

from __future__ import annotations

import json

from helix_ddx.files import attempt_id, second, stamp
from helix_ddx.simulator import april_records as records
from helix_ddx.simulator import evidence
from helix_ddx.simulator.script import HARNESS, SAY
from helix_ddx.simulator.streams import AgentStream, LandConflict, land, subject
from helix_ddx.simulator.worker import (
    LEASE_TTL,
    ClaimRaceError,
    Json,
    SimulatedAttempt,
    SimulatedResult,
    Worker,
    why_nothing,
)
from helix_ddx.store import places
from helix_ddx.store.git import GitError, commit, git, head
from helix_ddx.store.tracker import Row, event
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, parse_instant

COOLDOWN = 6 * 3600 * NS
HEARTBEAT = 30 * NS
REVIEWER = "simulation-large"

CLAIM_KEYS = ("owner", "claimed-at", "claimed-machine", "claimed-pid", "execute-loop-heartbeat-at")


_SKIPPED = {
    "epic_container": "skipped_epics",
    "retry_cooldown": "skipped_on_cooldown",
    "not_eligible": "skipped_not_eligible",
    "superseded": "skipped_superseded",
}


class AprilWorker(Worker):
    """One ``ddx agent execute-loop``, simulated."""

    era = "april"
    LOOP = "ddx agent execute-loop"
    ONE = "ddx agent execute-bead"

    def begin(self) -> None:
        """The loop's log begins."""
        self.beat_at = self.clock()
        self.running: SimulatedAttempt | None = None
        self.disk.create(self.log_path)
        self.log(
            "loop.start",
            assignee=self.owner,
            harness=HARNESS,
            model=self.model,
            once=self.orders.once,
            project_root=str(self.project),
            session_id=self.loop_id,
            worker_id=self.owner,
        )

    def idle(self) -> None:
        """April polls without output."""

    def lost_race(self, row: Row) -> None:
        """Log that the bead was skipped."""
        self.log("preclaim.skipped", bead_id=row["id"], reason="claimed by another worker")

    def attempt(self, row: Row) -> SimulatedResult:
        """Claim, work, land, review, close."""
        claimed = self.clock()
        row = self._claim(str(row["id"]))
        self.say(f"\n▶ {row['id']}: {row.get('title', '')}")
        self.log("bead.claimed", assignee=self.owner, bead_id=row["id"], title=row.get("title", ""))
        attempt = self._prepare(row)
        attempt.claimed = claimed
        ending = self._execute(attempt)
        if ending is not None:
            result = self._release(attempt, ending)
        else:
            result = self._land_and_review(attempt)
        self.remove_copy(attempt)
        self._report(attempt, result)
        return result

    def execute_one(self, bead: str) -> int:
        """``execute-bead``: no claim, no review, no closing; it lands the code and prints one object."""
        row = self.store.read().get(bead)
        if row is None:
            self.err.write(f"Error: bead: not found: {clean_line(bead)}\n")
            return 1
        self.beat_at = self.clock()
        self.running = None
        attempt = self._prepare(row, track=False)
        ending = self._execute(attempt)
        printed = records.result(attempt, ending) | {"required_exec_summary": "skipped"}
        if ending is None:
            try:
                printed |= {"result_rev": self._land(attempt), "outcome": "merged"}
            except (LandConflict, GitError) as error:
                ref = self._preserve(attempt)
                printed |= {"outcome": "preserved", "status": "land_conflict", "detail": str(error)}
                printed |= {"preserve_ref": ref}
        self.remove_copy(attempt)
        self.say(json.dumps(printed, indent=2))
        return 0

    def finish(self, reason: str) -> None:
        """Write the log's last line, and print the result object or the summary."""
        counts = self.counts()
        failed = [result for result in self.results if not result.closed]
        if self.orders.as_json:
            document: Json = {"project_root": str(self.project), **counts}
            if not self.results:
                document["no_ready_work"] = True
            document["no_ready_work_detail"] = why_nothing(self.queue(), _SKIPPED) if not self.results else {}
            document["last_success_at"] = self.last_success
            if failed:
                document["last_failure_status"] = self.last_failure()
            if self.results:
                document["results"] = [result.row for result in self.results]
            self.out.write(json.dumps(document, indent=2) + "\n")
        else:
            done, good, bad = counts["attempts"], counts["successes"], counts["failures"]
            self.say(f"\nproject: {self.project}\ncompleted: {done}  |  successes: {good}  |  failures: {bad}")
            if failed:
                self.say("\nfailed:")
                for result in failed:
                    self.say(f"  - {result.bead}: {result.detail}")
        self.out.flush()
        self.log("loop.end", **counts, last_failure_status=self.last_failure())

    def heartbeat(self) -> None:
        """Renew the heartbeat in the row."""
        if self.running is not None and self.clock() - self.beat_at >= HEARTBEAT:
            self.beat_at = self.clock()
            self.change(self.running.bead, lambda row: row.update({"execute-loop-heartbeat-at": stamp(self.beat_at)}))

    # --- the steps --------------------------------------------------------------------------------------

    def _claim(self, bead: str) -> Row:
        now = self.clock()
        self.beat_at = now
        claim = {
            "status": "in_progress",
            "owner": self.owner,
            "claimed-at": second(now),
            "claimed-machine": self.machine,
            "claimed-pid": str(self.pid),
            "execute-loop-heartbeat-at": stamp(now),
        }

        def take(row: Row) -> None:
            beat = parse_instant(row.get("execute-loop-heartbeat-at")) or 0
            # a claim whose heartbeat is too old may be taken over (docs/formats/ddx.md §2)
            if row["status"] == "closed" or (row["status"] == "in_progress" and now - beat < LEASE_TTL):
                raise ClaimRaceError(bead)
            row.update(claim)

        return self.change(bead, take)

    def _prepare(self, row: Row, track: bool = True) -> SimulatedAttempt:
        """Commit uncommitted changes, and check out a worktree."""
        if track:
            now = self.clock()
            commit(self.project, f"chore: update tracker (execute-bead {attempt_id(now, '')[:-1]})", ".ddx/beads.jsonl")
        attempt = self.new_attempt(row, head(self.project), "wt")
        if track and git(self.project, "status", "--porcelain", "--", ".", ":!.ddx/beads.jsonl"):
            attempt.base = attempt.rev = attempt.copy.base = commit(
                self.project, f"chore: checkpoint pre-execute-bead {attempt.id}"
            )
        attempt.copy.make()
        return attempt

    def _execute(self, attempt: SimulatedAttempt) -> records.AttemptEnding | None:
        """Run the agent, from run-state to result.json; returns how it ended if it made no commit."""
        self.running = attempt
        state = self.ddx / "run-state.json"
        folder = self.project / evidence.bundle(attempt.id)
        model = attempt.act.model
        self.disk.replace(state, records.run_state(attempt, self.clock()))
        manifest = evidence.manifest(
            attempt.id, attempt.row, attempt.base, self.clock(), HARNESS, model, str(attempt.copy.path).lstrip("/")
        )
        self.disk.replace(folder / "manifest.json", evidence.document(manifest))
        self.disk.replace(folder / "prompt.md", evidence.prompt(attempt.row))
        attempt.begun = self.clock()
        self._play(attempt, AgentStream(self.disk, folder / "embedded", self.clock, records.metadata(attempt)))
        attempt.ended = self.clock()
        ending = records.ending_of(attempt)
        self.add_session(records.session(attempt, self.project_id, ending))
        self._add_usage_events(attempt, ending)
        self.disk.replace(folder / "usage.json", evidence.document(records.used(attempt)))
        if attempt.act.outcome == "post_run_check_failed":
            self.disk.replace(folder / "checks.json", evidence.document(records.failed_checks(attempt, self.clock())))
        self.disk.replace(folder / "result.json", evidence.document(records.result(attempt, ending)))
        # from here until the review is over only the row names the bead (docs/formats/ddx.md §4.6)
        self.disk.delete(state)
        self.running = None
        return ending

    def _play(self, attempt: SimulatedAttempt, stream: AgentStream) -> None:
        """Write the transcript, making the edits as they are reported."""
        act, copy = attempt.act, attempt.copy
        self.wait(0.3)
        if rationale := records.rationale(attempt):
            self.disk.replace(copy.path / evidence.bundle(attempt.id) / "no_changes_rationale.txt", f"{rationale}\n")
        if act.opening:
            stream.text(act.opening)
        calls = act.calls or ()
        edits = list(act.edits) if records.ending_of(attempt) is None else []
        for number, call in enumerate(calls, 1):
            self.wait(0.7)
            if call.tool == SAY:
                stream.text(call.output)
                continue
            stream.call(number, call)
            if edits and call.tool == "Edit":
                copy.apply(edits.pop(0))
            self.wait(call.beats)
            stream.result(number, call)
        if act.silence_beats:
            self.wait(act.silence_beats)
        if act.outcome == "killed":
            # claim and run-state stay, as with any killed worker
            self.die()
        for edit in edits:
            copy.apply(edit)
        self.person_commits(act)
        self.wait(0.7)
        if act.closing and records.ending_of(attempt) is None:
            stream.text(act.closing)
        self.wait(0.5)
        if records.ending_of(attempt) is None:
            trailers = {
                "Ddx-Attempt-Id": attempt.id,
                "Ddx-Worker-Id": self.owner,
                "Ddx-Harness": HARNESS,
                "Ddx-Model": act.model,
            }
            attempt.rev = copy.commit(subject(str(attempt.row.get("title", ""))), trailers, self.clock())

    def _land_and_review(self, attempt: SimulatedAttempt) -> SimulatedResult:
        bead, act = attempt.bead, attempt.act
        if act.outcome == "post_run_check_failed":
            return self._preserved(attempt, "post_run_check_failed", act.detail or "post-run checks failed")
        try:
            landed = self._land(attempt)
        except (LandConflict, GitError) as error:
            return self._preserved(attempt, "land_conflict", str(error))
        said = f"provider={HARNESS} model={act.model}"
        self.add_event(bead, self._event("routing", said, records.routed(attempt), self.LOOP))
        # only now: April reviews after landing
        verdict = "" if self.orders.no_review else self._review(attempt, landed)
        if verdict in ("REQUEST_CHANGES", "BLOCK"):
            return self._reopen(attempt, landed, verdict)
        close = {"status": "closed", "closing_commit_sha": landed, "session_id": attempt.session}
        self.change(bead, lambda row: row.update(close))
        self._add_outcome(attempt, "success", "success", landed)
        self.last_success = stamp(self.clock())
        self.say(f"✓ {bead} → merged ({landed[:8]})")
        row = records.loop_row(attempt, "success", "success", result_rev=landed, review_verdict=verdict)
        return SimulatedResult(bead, attempt.id, "success", "success", row, landed=landed, closed=True)

    def _land(self, attempt: SimulatedAttempt) -> str:
        """Land on the branch, and commit the evidence after it; returns the new tip."""
        short = attempt.id[:16]
        scratch = places.temp_folder(self.env) / f"ddx-land-wt-{self.chance.getrandbits(32)}"
        message = f"Merge bead {attempt.bead} attempt {short} into main"
        land(self.project, attempt.rev, message, scratch, self.clock())
        return commit(
            self.project, f"chore: add execution evidence [{short}]", evidence.bundle(attempt.id), at=self.clock()
        )

    def _preserve(self, attempt: SimulatedAttempt) -> str:
        ref = f"refs/ddx/iterations/{attempt.bead}/{attempt.id}-{head(self.project)[:12]}"
        attempt.copy.keep(ref, attempt.rev)
        return ref

    def _preserved(self, attempt: SimulatedAttempt, status: str, detail: str) -> SimulatedResult:
        """The work could not land: keep it at a ref, and release the bead."""
        ref = self._preserve(attempt)
        self._unclaim(attempt.bead)
        self._add_outcome(attempt, status, detail, attempt.rev, preserve=ref)
        self.say(f"✓ {attempt.bead} → preserved: {detail}")
        row = records.loop_row(attempt, status, detail, result_rev=attempt.rev, preserve_ref=ref)
        return SimulatedResult(attempt.bead, attempt.id, status, detail, row, preserved=ref)

    def _review(self, attempt: SimulatedAttempt, landed: str) -> str:
        """Review what has landed; returns the verdict."""
        review = attempt_id(self.clock(), f"{self.chance.getrandbits(32):08x}")
        folder = self.project / evidence.bundle(review)
        begun = self.clock()
        stream = AgentStream(self.disk, self.ddx / "agent-logs", self.clock)
        self.disk.replace(folder / "prompt.md", evidence.review_prompt(attempt.row, landed))
        self.wait(0.3)
        stream.text("Reviewing the change.")
        self.wait(1.5)
        verdict = evidence.verdict_of(attempt.act, 0)
        act = attempt.act
        used = evidence.usage("", HARNESS, REVIEWER, (act.input_tokens, act.output_tokens), act.cost_usd)
        session = evidence.session_row(
            self.new_id("as"), self.project_id, "", HARNESS, REVIEWER, (begun, self.clock()), used, "subscription"
        )
        self.add_session(session)
        manifest = records.review_manifest(attempt, review, REVIEWER, landed, verdict)
        self.disk.replace(folder / "manifest.json", evidence.document(manifest))
        self.disk.replace(folder / "result.json", evidence.document({"verdict": verdict}))
        log = self.project / evidence.bundle(attempt.id) / "reviewer-stream.log"
        self.disk.replace(log, evidence.review_text(attempt.row, act, verdict))
        artifact = f"{verdict}\nartifact: {evidence.bundle(attempt.id)}/reviewer-stream.log"
        self.add_event(attempt.bead, self._event("review", verdict, artifact, self.LOOP, self.owner))
        return verdict

    def _reopen(self, attempt: SimulatedAttempt, landed: str, verdict: str) -> SimulatedResult:
        """The review refused it: the code stays, and the bead is open again with the review in its notes."""
        bead = attempt.bead
        detail = f"post-merge review: {verdict}"
        status = "review_request_changes" if verdict == "REQUEST_CHANGES" else "review_block"
        notes = evidence.review_text(attempt.row, attempt.act, verdict)

        def reopen(row: Row) -> None:
            row["status"] = "open"
            row["notes"] = f"{row['notes']}\n{notes}" if row.get("notes") else notes
            row.setdefault("events", []).append(self._event("reopen", f"review: {verdict}", "", "", ""))
            for key in CLAIM_KEYS:
                row.pop(key, None)

        self.change(bead, reopen)
        self._add_outcome(attempt, status, detail, landed)
        self.say(f"✓ {bead} → error: {detail}")
        row = records.loop_row(attempt, status, detail, result_rev=landed, review_verdict=verdict)
        return SimulatedResult(bead, attempt.id, status, detail, row, landed=landed)

    def _release(self, attempt: SimulatedAttempt, ending: records.AttemptEnding) -> SimulatedResult:
        """Nothing to land: the bead is already done, or is released, usually with a cooldown."""
        bead, act = attempt.bead, attempt.act
        rationale = records.rationale(attempt)
        if act.outcome == "already_satisfied" and act.verified:
            close = {"status": "closed", "closing_commit_sha": attempt.base, "session_id": attempt.session}
            self.change(bead, lambda row: row.update(close))
            self._add_outcome(attempt, "already_satisfied", rationale, attempt.base)
            self.last_success = stamp(self.clock())
            self.say(f"✓ {bead} → already_satisfied")
            done = records.loop_row(attempt, "already_satisfied", rationale, result_rev=attempt.base)
            return SimulatedResult(bead, attempt.id, "already_satisfied", rationale, done, closed=True)
        retry = second(self.clock() + COOLDOWN) if ending.cools else ""
        self._unclaim(bead)
        if ending.cools:
            self.change(bead, lambda row: self._cool(row, ending, retry))
        self._add_outcome(attempt, ending.status, ending.detail, attempt.base, retry=retry, rationale=rationale)
        word = f"error: {ending.detail}" if ending.error else "no_changes" + (f": {rationale}" if rationale else "")
        self.say(f"✓ {bead} → {word}")
        row = records.loop_row(
            attempt,
            ending.status,
            ending.detail,
            result_rev=attempt.base,
            retry_after=retry,
            no_changes_rationale=rationale,
        )
        return SimulatedResult(bead, attempt.id, ending.status, ending.detail, row)

    def _unclaim(self, bead: str) -> None:
        def give_back(row: Row) -> None:
            row["status"] = "open"
            for key in CLAIM_KEYS:
                row.pop(key, None)

        self.change(bead, give_back)

    def _cool(self, row: Row, ending: records.AttemptEnding, retry: str) -> None:
        row["execute-loop-retry-after"] = retry
        row["execute-loop-last-status"] = ending.status
        row["execute-loop-last-detail"] = ending.detail
        if ending.status == "no_changes":
            row["execute-loop-no-changes-count"] = int(row.get("execute-loop-no-changes-count", 0)) + 1

    def _report(self, attempt: SimulatedAttempt, result: SimulatedResult) -> None:
        self.log(
            "bead.result",
            base_rev=attempt.base,
            bead_id=attempt.bead,
            detail=result.detail,
            duration_ms=(self.clock() - attempt.claimed) // 1_000_000,
            no_changes_rationale=result.row.get("no_changes_rationale", ""),
            preserve_ref=result.preserved,
            result_rev=result.row["result_rev"],
            session_id=attempt.session,
            status=result.status,
        )

    def _add_usage_events(self, attempt: SimulatedAttempt, ending: records.AttemptEnding | None) -> None:
        act = attempt.act
        route = {"resolved_provider": HARNESS, "resolved_model": act.model, "fallback_chain": []}
        said = f"provider={HARNESS} model={act.model}"
        self.add_event(attempt.bead, self._event("routing", said, route, self.ONE))
        cost = evidence.cost_event(
            attempt.id,
            HARNESS,
            act.model,
            (act.input_tokens, act.output_tokens),
            act.cost_usd,
            attempt.duration_ms,
            self.clock(),
            self.ONE,
            int(ending is not None and ending.error),
        )
        self.add_event(attempt.bead, cost)

    def _add_outcome(
        self,
        attempt: SimulatedAttempt,
        status: str,
        detail: str,
        rev: str,
        *,
        preserve: str = "",
        retry: str = "",
        rationale: str = "",
    ) -> None:
        body = records.outcome_text(attempt, detail, rev, preserve, retry, rationale)
        self.add_event(attempt.bead, self._event("execute-bead", status, body, self.LOOP, self.owner))

    def _event(self, kind: str, summary: str, body: Json | str, source: str, actor: str = "ddx") -> dict[str, str]:
        text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
        return event(kind, summary, text, self.clock(), actor=actor, source=source)
