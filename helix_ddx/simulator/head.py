"""The simulation of August's DDx, step by step (recorded in loops/head-*.jsonl).

Lease, sidecar and run-state beside the row; a readiness call before; the transcript in a local clone,
copied into the project at the end; candidates that are pinned, reviewed, repaired if needed, and landed.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from helix_ddx.files import attempt_id, second
from helix_ddx.simulator import evidence
from helix_ddx.simulator import head_records as records
from helix_ddx.simulator.head_ends import HeadEnds
from helix_ddx.simulator.head_records import Cycle
from helix_ddx.simulator.script import HARNESS
from helix_ddx.simulator.streams import LandConflict, land, subject
from helix_ddx.simulator.worker import Cancelled, Json, SimulatedAttempt, SimulatedResult
from helix_ddx.store.git import GitError, git, head
from helix_ddx.store.places import copies_folder
from helix_ddx.store.tracker import Row


class HeadWorker(HeadEnds):
    """One ``ddx work``, simulated."""

    def attempt(self, row: Row) -> SimulatedResult:
        """Claim, ask whether it is ready, work, review, land, close."""
        bead = str(row["id"])
        self.course = records.Course()
        claimed = self.clock()
        row = self.claim(bead)
        self.say(f"\n▶ {bead}: {row.get('title', '')}")
        self.log("pre_claim_intake.start", bead_id=bead)
        self.say(f"{self.hour()} readiness check: starting route: harness={HARNESS} model={self.model}")
        attempt: SimulatedAttempt | None = None
        try:
            self.ask_readiness(row)
            self.show_sidecar(bead)
            self.commit_tracker("pre_dispatch_commits", attempt_id(self.clock(), "")[:-1])
            attempt = self._prepare(row)
            attempt.claimed = claimed
            result = self._carry(attempt)
        except Cancelled:
            result = self._abort(bead, attempt, claimed)
        self.running = None
        return result

    def execute_one(self, bead: str) -> int:
        """``try``: run one named bead; exit code 0 if closed, 1 if not, 2 if refused."""
        row = self.store.read().get(bead)
        if row is None:
            self.err.write(f"Error: bead: not found: {bead}\n")
            return 1
        rows = self.store.read()
        needs = [edge["depends_on_id"] for edge in row.get("dependencies", ())]
        open_needs = [need for need in needs if rows.get(need, {}).get("status") != "closed"]
        if open_needs:
            self.err.write(f"bead has unmet dependencies: {', '.join(open_needs)}\nError: \n")
            return 2
        self._open()
        self._preflight()
        result = self.attempt(row)
        self.results.append(result)
        self.say(f"\nbead: {bead}\nstatus: {result.status}\ndetail: {result.detail}")
        self.say(f"result_rev: {result.row['result_rev']}")
        if result.landed:
            self.say(f"landed_branch: {result.row['landed_branch']}")
        self.say(f"project_root: {self.project}\nrouting intent: difficulty=easy minPower=0 source=readiness")
        self.finish(self.cancelled or "once_complete")
        return 130 if self.cancelled else 0 if result.closed else 1

    # --- the agent's work -------------------------------------------------------------------------------

    def _prepare(self, row: Row) -> SimulatedAttempt:
        """Run-state first, then the clone with manifest and prompt in it."""
        attempt = self.new_attempt(row, head(self.project), "clone")
        self.running = attempt
        with self.git_section("evidence_local_exclude"):
            self._exclude_evidence()
            self.course.state = records.run_state(attempt, self.pid, self.clock())
            self.write_state()
        attempt.copy.make()
        folder = attempt.copy.path / evidence.bundle(attempt.id)
        prompt = evidence.prompt(row)
        manifest = evidence.manifest(
            attempt.id,
            {key: value for key, value in row.items() if key != "simulate"},
            attempt.base,
            self.clock(),
            HARNESS,
            attempt.act.model,
            str(attempt.copy.path).lstrip("/"),
        )
        self.disk.create(folder / "manifest.json", evidence.document(manifest | {"prompt_sha": evidence.sha(prompt)}))
        self.disk.create(folder / "prompt.md", prompt)
        self.write_state(session_id=attempt.session)
        attempt.begun = self.clock()
        return attempt

    def _carry(self, attempt: SimulatedAttempt) -> SimulatedResult:
        """Run the agent, and act on its result."""
        act = attempt.act
        failure = self._failure_of(attempt)
        self.implement(attempt, failure)
        attempt.ended = self.clock()
        folder = attempt.copy.path / evidence.bundle(attempt.id)
        self.disk.create(folder / "usage.json", evidence.document(records.used(attempt)))
        self._add_usage_events(attempt, failure)
        if failure:
            return self._give_up(attempt, failure)
        if act.outcome == "already_satisfied":
            return self._satisfied(attempt)
        if act.outcome == "no_changes":
            return self._declined(attempt) if act.rationale else self._without_evidence(attempt)
        attempt.rev = self._commit(attempt)
        if not self._review_until_content(attempt):
            return self._exhausted(attempt)
        return self._land_candidate(attempt)

    def _failure_of(self, attempt: SimulatedAttempt) -> str:
        """What the agent's harness says when it fails; empty when it does not."""
        words = {
            "execution_failed": "exit status 1",
            "stall": "turn timeout exceeded",
            "structural_validation_failed": "the bead is not well formed",
        }
        default = words.get(attempt.act.outcome, "")
        return (attempt.act.detail or default) if default else ""

    def _commit(self, attempt: SimulatedAttempt, repair: int = 0) -> str:
        title = str(attempt.row.get("title", ""))
        trailers = {
            "Ddx-Attempt-Id": attempt.id,
            "Ddx-Worker-Id": self.loop_id,
            "Ddx-Harness": HARNESS,
            "Ddx-Model": attempt.act.model,
        }
        message = f"fix: repair {repair} of {attempt.bead}" if repair else subject(title)
        return attempt.copy.commit(message, trailers, self.clock())

    def _add_usage_events(self, attempt: SimulatedAttempt, failure: str) -> None:
        act = attempt.act
        source = "legacy agent execute-bead"
        route: Json = {"resolved_provider": HARNESS, "resolved_model": act.model, "route_reason": "explicit"}
        route |= {"fallback_chain": [], "requested_harness": HARNESS, "requested_model": self.model}
        summary = f"provider={HARNESS} model={act.model} reason=explicit"
        self.add_event(attempt.bead, self.make_event("routing", summary, route, actor="ddx", source=source))
        cost = evidence.cost_event(
            attempt.id,
            HARNESS,
            act.model,
            (act.input_tokens, act.output_tokens),
            act.cost_usd,
            attempt.duration_ms,
            self.clock(),
            source,
            int(bool(failure)),
            route_reason="explicit",
            cost_source="unknown",
        )
        self.add_event(attempt.bead, cost)

    # --- review and repair ------------------------------------------------------------------------------

    def _review_until_content(self, attempt: SimulatedAttempt) -> bool:
        """Pin a candidate, have it reviewed, repair it once; returns whether the reviewer approves in the end."""
        for index in (0, 1):
            cycle = self._pin(attempt, index)
            if self.orders.no_review:
                cycle.verdict, cycle.review = "APPROVE", attempt.id
                return True
            self.review(attempt, cycle)
            if cycle.verdict == "APPROVE":
                return True
            self._classify(attempt, cycle)
            if index == 0:
                self._start_repair(attempt, cycle)
                self.repair(attempt, cycle)
                attempt.rev = self._repaired(attempt)
        return False

    def _pin(self, attempt: SimulatedAttempt, index: int) -> Cycle:
        cycle = Cycle(index, attempt.rev, f"refs/ddx/iterations/{attempt.id}/{index}")
        self.course.cycles.append(cycle)
        if index:
            self.course.state["cycle_index"] = index
        self.write_state(candidate_cycle_phase="candidate", candidate_rev=cycle.rev)
        attempt.copy.keep(cycle.ref, cycle.rev)
        body = {"candidate_ref": cycle.ref, "cycle_index": index, "attempt_id": attempt.id}
        body |= {"base_rev": attempt.base, "result_rev": cycle.rev}
        self.add_event(attempt.bead, self.make_event("candidate_cycle_pinned", "", body, actor="", source=""))
        self.write_state(candidate_cycle_phase="review", candidate_ref=cycle.ref, review_active=True)
        return cycle

    def _classify(self, attempt: SimulatedAttempt, cycle: Cycle) -> None:
        gap = "review_fixable_gap"
        body = {"candidate_ref": cycle.ref, "cycle_index": cycle.index, "attempt_id": attempt.id}
        body |= {"base_rev": attempt.base, "result_rev": cycle.rev, "review_group_id": cycle.review}
        body |= {"verdict": cycle.verdict, "classification": gap}
        self.add_event(attempt.bead, self.make_event("candidate-review-classified", gap, body, actor="", source=""))

    def _start_repair(self, attempt: SimulatedAttempt, cycle: Cycle) -> None:
        gap = "review_fixable_gap"
        body: Json = {"attempt_id": attempt.id, "base_rev": attempt.base, "failed_candidate_rev": cycle.rev}
        body |= {"repair_cycle_index": 1, "classification": gap}
        self.add_event(attempt.bead, self.make_event("repair-cycle-started", gap, body, actor="", source=""))
        self.write_state(candidate_cycle_phase="repair", repair_active=True)

    def _repaired(self, attempt: SimulatedAttempt) -> str:
        """A repair that changes something: one more line beside the first edit."""
        first = attempt.act.edits[0]
        comment = "#" if first.path.endswith((".py", ".txt", ".sh")) else ""
        attempt.copy.apply(replace(first, old="", new=f"{comment} repaired after review\n".lstrip()))
        return self._commit(attempt, repair=1)

    # --- landing ----------------------------------------------------------------------------------------

    def _land_candidate(self, attempt: SimulatedAttempt) -> SimulatedResult:
        act = attempt.act
        outcome = {"required_exec_summary": "skipped"}
        self._publish(
            attempt,
            # written before landing, as in DDx: this success may still become a conflict
            self._document(attempt, "success", "task_succeeded", "success", **outcome),
        )
        attempt.copy.keep(f"refs/ddx/attempt-backend/result-{attempt.bead}-{attempt.id}", attempt.rev)
        self._leave_clone(attempt)
        if act.outcome == "post_run_check_failed":
            return self._blocked_by_checks(attempt)
        scratch = copies_folder(self.project, self.env) / f"ddx-land-wt-{self.chance.getrandbits(32)}"
        scratch.parent.mkdir(parents=True, exist_ok=True)
        with self.lock_folder("offline-coordination.lock"):
            try:
                with self.git_section("land_ref_update"):
                    message = f"Merge bead {attempt.bead} attempt {attempt.id} into main"
                    landed = land(self.project, attempt.rev, message, scratch, self.clock())
            except (LandConflict, GitError) as error:
                return self._conflict(attempt, str(error), scratch)
            # nothing is done in it here, but its line is in DDx's log
            with self.git_section("land_post_land_finalize"):
                pass
            more: Json = {"landed_rev": landed, "landed_branch": "main", "orchestrator_status": "success"}
            self._write_result(attempt, "success", "merged", "success", **more)
            self._journal_landing(attempt)
        self.add_event(attempt.bead, self._intent(attempt))
        self.hide_sidecar()
        summary = f"provider={HARNESS} model={act.model}"
        self.add_event(attempt.bead, self.make_event("routing", summary, records.routed(attempt), actor="ddx"))
        row = self._row(attempt, "success", "success", landed_rev=landed, landed_branch="main", result_rev=landed)
        return self._close(attempt, "success", "success", landed, row)

    def _conflict(self, attempt: SimulatedAttempt, why: str, scratch: Path) -> SimulatedResult:
        """Someone else changed the same lines: keep the work at a ref, and merge with their side winning."""
        ref = f"refs/ddx/iterations/{attempt.bead}/{attempt.id}-{head(self.project)[:12]}"
        git(self.project, "update-ref", ref, attempt.rev)
        more: Json = {"landed_branch": "main", "orchestrator_status": "land_conflict", "reason": why}
        more |= {"preserve_ref": ref, "required_exec_summary": "skipped"}
        self._write_result(attempt, "land_conflict", "preserved", why, **more)
        self._journal_landing(attempt)
        if not attempt.act.recovers:
            return self._preserved(attempt, "land_conflict", why, ref)
        message = f"Merge preserved iteration {ref} after base drift (ort -X ours)"
        tip = land(self.project, attempt.rev, message, scratch, self.clock(), ours=True)
        body = f"preserve_ref={ref}\nnew_tip={tip}"
        said = "preserved iteration auto-recovered onto current tip via ort"
        self.add_event(
            attempt.bead, self.make_event("land-conflict-auto-recovered", said, body, source="legacy agent try")
        )
        self.add_event(attempt.bead, self._intent(attempt))
        self.hide_sidecar()
        detail = "auto-recovered: merged preserved iteration onto current tip via ort"
        row = self._row(attempt, "success", detail, landed_branch="main", preserve_ref=ref, result_rev=tip)
        return self._close(attempt, "success", detail, tip, row, preserve=ref)

    def _blocked_by_checks(self, attempt: SimulatedAttempt) -> SimulatedResult:
        """A check of the project failed: keep the work at a ref, and release the bead."""
        detail = attempt.act.detail or "pre-merge checks blocked: simulation-check"
        name = detail.rpartition(":")[2].strip() or "simulation-check"
        check = {"status": "block", "message": attempt.act.rationale or detail}
        folder = self.project / evidence.bundle(attempt.id)
        self.disk.replace(folder / "checks" / f"{name}.json", evidence.document(check))
        now = second(self.clock()).replace("-", "").replace(":", "")
        ref = f"refs/ddx/iterations/{attempt.bead}/{now}-{attempt.base[:12]}"
        git(self.project, "update-ref", ref, attempt.rev)
        more: Json = {"orchestrator_status": "post_run_check_failed", "reason": detail, "preserve_ref": ref}
        self._write_result(attempt, "post_run_check_failed", "preserved", detail, **more)
        self.add_event(attempt.bead, self.make_event("checks-blocked", name, check["message"]))
        return self._preserved(attempt, "post_run_check_failed", detail, ref)

    def _preserved(self, attempt: SimulatedAttempt, status: str, detail: str, ref: str) -> SimulatedResult:
        """The work is kept, the bead is open again."""
        self.add_event(attempt.bead, self._intent(attempt))
        self._release(attempt.bead)
        self.hide_sidecar()
        self._add_outcome(attempt, status, detail, reason=status, preserve=ref)
        row = self._row(attempt, status, detail, preserve_ref=ref, outcome_reason=status)
        result = SimulatedResult(attempt.bead, attempt.id, status, detail, row, preserved=ref)
        self.say(f"✗ {attempt.bead} → preserved: {detail}")
        return self._wind_up(attempt, result)
