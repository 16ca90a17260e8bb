"""How a head attempt that lands nothing ends, and the parts common to all endings."""

from __future__ import annotations

from typing import Any

from helix_ddx.files import go_json, second, stamp
from helix_ddx.simulator import evidence
from helix_ddx.simulator import head_records as records
from helix_ddx.simulator.head_calls import HeadCalls
from helix_ddx.simulator.script import HARNESS
from helix_ddx.simulator.worker import Json, SimulatedAttempt, SimulatedResult
from helix_ddx.store.git import head
from helix_ddx.store.tracker import Row
from helix_tui.core.ground.time import NS

NO_EVIDENCE = "agent exited without a commit or no_changes_rationale.txt"
COOLDOWN = 6 * 3600 * NS
EXHAUSTED = "repair-cycle-exhausted"
TERMINAL = ("closed", "cancelled")


class HeadEnds(HeadCalls):
    """Releasing, parking, closing, and the records that go with it."""

    def _publish(self, attempt: SimulatedAttempt, result: Json) -> None:
        """result.json into the clone, then all evidence from there into the project."""
        source = attempt.copy.path / evidence.bundle(attempt.id)
        target = self.project / evidence.bundle(attempt.id)
        self.disk.create(source / "result.json", evidence.document(result))
        for path in sorted(source.rglob("*")):
            if path.is_file():
                self.disk.create(target / path.relative_to(source), path.read_text(encoding="utf-8"))
        self.drop_state(attempt)

    def _leave_clone(self, attempt: SimulatedAttempt) -> None:
        with self.git_section("evidence_local_exclude"):
            self._exclude_evidence()
        self.remove_copy(attempt)
        with self.git_section("evidence_local_exclude"):
            self._exclude_evidence()

    def _exclude_evidence(self) -> None:
        """Evidence stays out of git, by the repository's own exclude file."""
        path = self.project / ".git" / "info" / "exclude"
        line = "/.ddx/executions/\n"
        if path.parent.parent.is_dir() and line not in (path.read_text(encoding="utf-8") if path.exists() else ""):
            path.parent.mkdir(exist_ok=True)
            with path.open("a", encoding="utf-8") as out:
                out.write(line)

    def _write_result(self, attempt: SimulatedAttempt, status: str, outcome: str, detail: str, **more: Any) -> None:
        document = self._document(attempt, status, outcome, detail, **more)
        self.disk.replace(self.project / evidence.bundle(attempt.id) / "result.json", evidence.document(document))

    def _journal_landing(self, attempt: SimulatedAttempt) -> None:
        payload = {"attempt_id": attempt.id, "base_rev": attempt.base, "bead_id": attempt.bead}
        payload |= {"evidence_dir": evidence.bundle(attempt.id), "result_rev": attempt.rev}
        payload |= {"target_branch": "", "worktree_dir": str(self.project)}
        self.add_to_journal("land", f"land:{attempt.bead}:{attempt.id}", payload)

    def _intent(self, attempt: SimulatedAttempt) -> dict[str, str]:
        summary, body = records.routing_intent(attempt)
        return self.make_event("execution-routing-intent", summary, body, actor="ddx")

    def _release(self, bead: str) -> None:
        """Reopen the bead without an owner."""

        def free(row: Row) -> None:
            row["status"] = "open"
            row.pop("owner", None)

        self.change(bead, free)
        self.drop_lease(bead)

    def _add_outcome(
        self, attempt: SimulatedAttempt, status: str, detail: str, *, landed: str = "", reason: str = "", **more: str
    ) -> None:
        text = records.outcome_text(attempt, self.course, status, detail, landed=landed, reason=reason, **more)
        entry = self.make_event("execute-bead", status, text)
        attachment = self.ddx / "attachments" / attempt.bead / "events.jsonl"
        if landed and attachment.exists():
            self.disk.append(attachment, go_json(entry) + "\n")
            # the row says all the same when the bead changed last
            self.change(attempt.bead, lambda row: None)
        else:
            self.add_event(attempt.bead, entry)

    def _document(self, attempt: SimulatedAttempt, status: str, outcome: str, detail: str, **more: Any) -> Json:
        """result.json; ``try`` knows no rate limit."""
        if self.orders.only:
            more["rate_limit_budget"] = ""
        return records.result(attempt, self.course, str(self.project), status, outcome, detail, **more)

    def _row(self, attempt: SimulatedAttempt, status: str, detail: str, **more: Any) -> Json:
        return records.loop_row(attempt, self.course, str(self.project), status, detail, **more)

    def _wind_up(self, attempt: SimulatedAttempt, result: SimulatedResult) -> SimulatedResult:
        """The last records of an attempt: metrics, the log's result, a commit of the tracker."""
        metric = evidence.attempt_metric(
            attempt.id,
            attempt.bead,
            attempt.session,
            attempt.span,
            attempt.act.model,
            HARNESS,
            result.status,
            records.total_cost(attempt, len(self.course.cycles)),
        )
        if self.course.cycles:
            metric["review_verdict"] = self.course.cycles[-1].verdict
        self.disk.append(self.ddx / "metrics" / "attempts.jsonl", go_json(metric) + "\n")
        data: Json = {"base_rev": attempt.base, "bead_id": attempt.bead, "detail": result.detail}
        data |= {"duration_ms": (self.clock() - attempt.claimed) // 1_000_000, "preserve_ref": result.preserved}
        data |= {"result_rev": result.row["result_rev"], "session_id": attempt.session, "status": result.status}
        if result.status == "no_evidence_produced":
            data["no_evidence_paths"] = None
        else:
            data["no_changes_rationale"] = result.row.get("no_changes_rationale", "")
        self.log("bead.result", **data)
        self.drop_lease(attempt.bead)
        self.running = None
        self.commit_tracker("durable_audit_snapshot", attempt.id)
        return result

    def _close(
        self,
        attempt: SimulatedAttempt,
        status: str,
        detail: str,
        rev: str,
        row: Json,
        *,
        preserve: str = "",
        rationale: str = "",
    ) -> SimulatedResult:
        """The bead is done: closed, its events moved out of the row, its epic closed when it was the last."""
        bead = attempt.bead
        close = {"status": "closed", "closing_commit_sha": rev, "session_id": attempt.session}
        self.change(bead, lambda row: row.update(close))
        self._close_epic(str(attempt.row.get("parent", "")))
        self._move_events_out(bead)
        self._add_outcome(attempt, status, detail, landed=rev, preserve=preserve, rationale=rationale)
        self.last_success = stamp(self.clock())
        landed = "" if status == "already_satisfied" else rev
        result = SimulatedResult(bead, attempt.id, status, detail, row, landed=landed, preserved=preserve, closed=True)
        self.say(f"✓ {bead} → merged ({rev[:8]})" if landed else f"✓ {bead} → already_satisfied")
        return self._wind_up(attempt, result)

    def _close_epic(self, parent: str) -> None:
        """An epic whose children are all done closes by itself."""
        rows = self.store.read()
        epic = rows.get(parent)
        if epic is None or epic.get("issue_type") != "epic" or epic.get("status") in TERMINAL:
            return
        children = [row for row in rows.values() if row.get("parent") == parent]
        if not all(row.get("status") in TERMINAL for row in children):
            return
        body = f"closed_because: all_children_terminal\ntotal_children: {len(children)}"
        entry = self.make_event(
            "epic_auto_close",
            "auto-closed: all children reached terminal state",
            body,
            actor="",
            source="Store.Close.walkUpClosureCandidate",
        )

        def close(row: Row) -> None:
            row["status"] = "closed"
            row.setdefault("events", []).append(entry)

        self.change(parent, close)

    def _move_events_out(self, bead: str) -> None:
        moved: list[dict[str, str]] = []

        def move(row: Row) -> None:
            moved.extend(row.pop("events", ()))
            row["events_attachment"] = f"{bead}/events.jsonl"

        self.change(bead, move)
        path = self.ddx / "attachments" / bead / "events.jsonl"
        self.disk.append(path, "".join(go_json(entry) + "\n" for entry in moved))

    # --- when nothing lands -----------------------------------------------------------------------------

    def _give_up(self, attempt: SimulatedAttempt, failure: str) -> SimulatedResult:
        """The agent failed: the bead is open again, and a triage says why."""
        status = "execution_failed"
        if attempt.act.outcome == "structural_validation_failed":
            status = attempt.act.outcome
        mode = "timeout" if attempt.act.outcome == "stall" else "unknown"
        more: Json = {"error": failure, "failure_mode": mode, "ddx_owner_stage": "attempt"}
        self._publish(attempt, self._document(attempt, status, "task_failed", failure, **more))
        self._leave_clone(attempt)
        self.add_event(attempt.bead, self._intent(attempt))
        self._release(attempt.bead)
        self.hide_sidecar()
        reason = self.triage(attempt, failure, status)
        self._add_outcome(attempt, status, failure, reason=reason)
        row = self._row(attempt, status, failure, error=failure, ddx_owner_stage="attempt", outcome_reason=reason)
        self.say(f"✗ {attempt.bead} → {reason}: {failure}")
        return self._wind_up(attempt, SimulatedResult(attempt.bead, attempt.id, status, failure, row))

    def _without_evidence(self, attempt: SimulatedAttempt) -> SimulatedResult:
        """Neither a commit nor a reason: a person has to look, and the loop ends."""
        bead, status = attempt.bead, "no_evidence_produced"
        more: Json = {"reason": NO_EVIDENCE, "error": NO_EVIDENCE, "failure_mode": status}
        self._publish(attempt, self._document(attempt, status, "task_no_evidence", NO_EVIDENCE, **more))
        self._leave_clone(attempt)
        self._park(bead, status)
        self.add_transition(bead, "proposed", "no_changes_operator_required", operator=True)
        self.hide_sidecar()
        self.drop_lease(bead)
        attention = {
            "attempt_id": attempt.id,
            "automation_action": "released claim and parked bead to proposed",
            "base_rev": attempt.base,
            "bead_id": bead,
            "detail": NO_EVIDENCE,
            "dirty_paths": None,
            "preserve_ref": "",
            "reason": status,
            "result_rev": attempt.base,
            "suggested_action": "look at the attempt, then reopen the bead or cancel it",
        }
        self.add_event(bead, self.make_event("operator_attention", status, attention))
        self._add_outcome(attempt, status, NO_EVIDENCE, reason=status)
        self.log(
            "loop.operator_attention",
            bead_id=bead,
            dirty_paths=None,
            message=NO_EVIDENCE,
            preserve_ref="",
            project_root=str(self.project),
            reason=status,
        )
        self.attention = {"reason": status, "bead_id": bead, "project_root": str(self.project), "message": NO_EVIDENCE}
        self.say(f"✗ {bead} → {status}: {NO_EVIDENCE}")
        row = self._row(attempt, status, NO_EVIDENCE, error=NO_EVIDENCE, outcome_reason=status)
        result = SimulatedResult(bead, attempt.id, status, NO_EVIDENCE, row, stops="operator_attention")
        return self._wind_up(attempt, result)

    def _park(self, bead: str, reason: str) -> None:
        waits = {
            "status": "proposed",
            "needs-human-reason": reason,
            "needs-human-since": second(self.clock()),
            "needs-human-source": self.SOURCE,
            "needs-human-suggested-action": "look at the attempt, then reopen the bead or cancel it",
            "needs-human-summary": NO_EVIDENCE,
        }

        def park(row: Row) -> None:
            row.update(waits)
            row.pop("owner", None)

        self.change(bead, park)

    def _satisfied(self, attempt: SimulatedAttempt) -> SimulatedResult:
        """There was nothing to do; a command that the agent named decides whether that is true."""
        bead, act = attempt.bead, attempt.act
        why = evidence.rationale(attempt.row, act).strip()
        more: Json = {"no_changes_rationale": why, "failure_mode": "no_changes"}
        self._publish(attempt, self._document(attempt, "no_changes", "task_no_changes", "no_changes", **more))
        self._leave_clone(attempt)
        proof = why.rpartition("verification_command: ")[2]
        if act.verified:
            self.add_event(bead, self._intent(attempt))
            self.hide_sidecar()
            self.add_event(
                bead,
                self.make_event(
                    "no_changes_verified", "no_changes_verified", f"verification_command={proof}\nexit_code=0"
                ),
            )
            row = self._row(attempt, "already_satisfied", "already_satisfied", no_changes_rationale=why)
            return self._close(attempt, "already_satisfied", "already_satisfied", attempt.base, row, rationale=why)
        self.change(
            bead, lambda row: row.update({"work-no-changes-count": int(row.get("work-no-changes-count", 0)) + 1})
        )
        self.hide_sidecar()
        self.add_event(bead, self._intent(attempt))
        unverified = f"verification_command={proof}\nexit_code=2\noutput:\n"
        self.add_event(bead, self.make_event("no_changes_unverified", "no_changes_unverified", unverified))
        skipped = "reviewer skipped: empty diff (no commits produced)"
        self.add_event(bead, self.make_event("reviewer-skipped-empty-diff", skipped, ""))

        def doubt(row: Row) -> None:
            row["work-no-changes-next-min-power"] = 1
            row["labels"] = [*(row.get("labels") or ()), "triage:no-changes-unverified"]

        self.change(bead, doubt)
        self._release(bead)
        self.add_transition(bead, "open", "operator review required before another automated attempt")
        self._add_outcome(attempt, "no_changes", "no_changes", reason="no_changes", rationale=why, escalations="1")
        self.say(f"• {bead} → no_changes: {why}")
        row = self._row(
            attempt,
            "no_changes",
            "no_changes",
            no_changes_rationale=why,
            escalation_count=1,
            outcome_reason="no_changes",
        )
        return self._wind_up(attempt, SimulatedResult(bead, attempt.id, "no_changes", "no_changes", row))

    def _declined(self, attempt: SimulatedAttempt) -> SimulatedResult:
        """The agent changed nothing and says why: the bead gets a cooldown, then a stronger agent tries it."""
        bead, status = attempt.bead, "no_changes"
        why = evidence.rationale(attempt.row, attempt.act).strip()
        more: Json = {"no_changes_rationale": why, "failure_mode": status}
        self._publish(attempt, self._document(attempt, status, "task_no_changes", status, **more))
        self._leave_clone(attempt)
        retry = second(self.clock() + COOLDOWN)
        rest = {
            "work-retry-after": retry,
            "work-last-status": "no_changes_autonomous_retry",
            "work-last-detail": attempt.act.rationale,
            "work-smart-retry": True,
            "work-smart-retry-reason": attempt.act.rationale,
            "work-smart-retry-suggested-action": "retry with a smart agent",
            "work-suggested-action": "retry with a smart agent",
        }

        def put_to_rest(row: Row) -> None:
            row.update(rest)
            row["work-no-changes-count"] = int(row.get("work-no-changes-count", 0)) + 1

        self.change(bead, put_to_rest)
        self.hide_sidecar()
        self.add_event(bead, self._intent(attempt))
        self._release(bead)
        self.add_transition(bead, "open", "no_changes with a reason: retry after a rest")
        self._add_outcome(attempt, status, status, reason=status, rationale=why)
        self.say(f"• {bead} → no_changes: {attempt.act.rationale}")
        row = self._row(attempt, status, status, no_changes_rationale=why, retry_after=retry, outcome_reason=status)
        return self._wind_up(attempt, SimulatedResult(bead, attempt.id, status, status, row))

    def _exhausted(self, attempt: SimulatedAttempt) -> SimulatedResult:
        """The reviewer refused the repair too."""
        bead, ref = attempt.bead, self.course.cycles[-1].ref
        detail = f"pre-land repair: {EXHAUSTED}"
        more: Json = {"preserve_ref": ref, "failure_mode": EXHAUSTED, "required_exec_summary": "skipped"}
        self._publish(attempt, self._document(attempt, EXHAUSTED, "task_succeeded", detail, **more))
        attempt.copy.keep(f"refs/ddx/attempt-backend/result-{bead}-{attempt.id}", attempt.rev)
        self._leave_clone(attempt)
        self.add_event(bead, self._intent(attempt))
        said = records.reviewed(attempt.act, self.course) | {"outcome_reason": EXHAUSTED}
        self.add_event(bead, self.make_event(EXHAUSTED, EXHAUSTED, said))
        self._release(bead)
        self.add_transition(bead, "open", "repair cycle exhausted: escalating implementer to higher powerClass")
        self.hide_sidecar()
        self._add_outcome(attempt, EXHAUSTED, detail, reason=EXHAUSTED, preserve=ref)
        self.say(f"✗ {bead} → preserved: {detail}")
        row = self._row(attempt, EXHAUSTED, detail, preserve_ref=ref, outcome_reason=EXHAUSTED)
        return self._wind_up(attempt, SimulatedResult(bead, attempt.id, EXHAUSTED, detail, row, preserved=ref))

    def _abort(self, bead: str, attempt: SimulatedAttempt | None, claimed: int) -> SimulatedResult:
        """Stopped halfway: keep what the attempt has produced, and release the bead."""
        detail = "context canceled"
        self.log("loop.attempt_terminated", bead_id=bead, reason=self.cancelled)
        # stopped before there was a clone; its records need an attempt all the same
        if attempt is None:
            attempt = self.new_attempt(self.store.read().get(bead, {"id": bead}), head(self.project), "clone")
            attempt.claimed = claimed
        attempt.ended = self.clock()
        if attempt.copy.path.exists():
            more: Json = {"error": detail, "failure_mode": "unknown", "ddx_owner_stage": "attempt"}
            document = self._document(attempt, "execution_failed", "task_failed", detail, **more)
            self._publish(attempt, document)
            self._leave_clone(attempt)
        self._release(bead)
        self.hide_sidecar()
        self._add_outcome(attempt, "execution_failed", detail, reason=self.cancelled)
        row = self._row(attempt, "execution_failed", detail, error=detail, outcome_reason=self.cancelled)
        self.say(f"✗ {bead} → error: {detail}")
        return self._wind_up(attempt, SimulatedResult(bead, attempt.id, "execution_failed", detail, row))
