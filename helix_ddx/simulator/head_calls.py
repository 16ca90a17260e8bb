"""The calls of a head worker to its harness, simulated: readiness, implementation, review, repair, triage."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace

from helix_ddx.files import attempt_id, stamp
from helix_ddx.simulator import evidence
from helix_ddx.simulator import head_records as records
from helix_ddx.simulator.head_loop import HeadLoop
from helix_ddx.simulator.head_records import Cycle
from helix_ddx.simulator.script import HARNESS, SAY, Act
from helix_ddx.simulator.streams import AgentStream, ServiceStream
from helix_ddx.simulator.worker import Json, SimulatedAttempt
from helix_ddx.store.tracker import Row

_HELPER = Act(input_tokens=2850, output_tokens=150, cost_usd=0.0, model="simulation-small")
"""The cost of a call that is not about the code itself."""


class HeadCalls(HeadLoop):
    """Every transcript that a head worker leaves."""

    def ask_readiness(self, row: Row) -> None:
        """The readiness call; in the simulation a bead is always ready."""
        bead = str(row["id"])
        prompt = f"MODE: intake\nThis is a simulation: no model reads this.\n{json.dumps(row.get('title', ''))}\n"
        stream = self._service(
            self.ddx / "agent-logs",
            task=bead,
            act=_HELPER,
            role="lifecycle",
            work_dir=self.project,
            prompt=prompt,
            metadata={"bead_id": bead},
            permissions="safe",
            min_power=7,
        )
        self._say_start("readiness", bead, _HELPER)
        # only made: the agent's own transcript stays empty in such a call
        AgentStream(self.disk, self.ddx / "agent-logs", self.clock)
        self.wait(1.0)
        answer = {
            "classification": "ready",
            "tractability": "tractable",
            "score": 0.9,
            "rationale": "simulated",
            "difficulty": {"estimated_difficulty": "easy", "reason": "simulated"},
            "readiness_checks": [],
            "suggested_fixes": [],
            "suggested_child_beads": [],
            "waivers_applied": [],
        }
        took = stream.end(json.dumps(answer))
        self._say_end("readiness", _HELPER, took)
        self._add_call_session(stream, _HELPER, bead)
        self.wait(0.3)

    def implement(self, attempt: SimulatedAttempt, failure: str) -> None:
        """The agent works in its clone; both transcripts grow there."""
        self.write_record(attempt, records.new_record(attempt, self.clock(), bundled=True))
        correlation = f"{attempt.bead}:{attempt.id}"
        prompt = evidence.prompt(attempt.row)
        metadata = self._metadata(attempt, prompt)
        service = self._work_service(attempt, prompt, metadata, correlation)
        self._start_record(attempt, service)
        self._say_start("do", attempt.bead, attempt.act)
        agent = AgentStream(self.disk, self.embedded(attempt), self.clock, metadata)
        self._play(attempt, agent, service, "do", failure)
        self._end_work(attempt, service, "do", failure)

    def repair(self, attempt: SimulatedAttempt, cycle: Cycle) -> None:
        """The agent works again on the review's findings."""
        self.write_record(attempt, records.new_record(attempt, self.clock(), bundled=True))
        prompt = f"Repair bead {attempt.bead}.\n\n{records.words_of(attempt.act, cycle)}\n\nThis is a simulation.\n"
        folder = attempt.copy.path / evidence.bundle(attempt.id)
        self.disk.create(folder / "repair-1.md", prompt)
        metadata = self._metadata(attempt, evidence.prompt(attempt.row))
        metadata |= {"failed_candidate_rev": cycle.rev, "phase": "repair", "repair_cycle": "1"}
        service = self._work_service(attempt, prompt, metadata, f"{attempt.bead}:{attempt.id}:repair:1")
        self._start_record(attempt, service)
        self._say_start("repair", attempt.bead, attempt.act)
        agent = AgentStream(self.disk, self.embedded(attempt), self.clock, metadata)
        # a person's commit and the silence belong to the first run; what a repair changes is `_repaired`'s
        again = replace(attempt, act=replace(attempt.act, person=None, silence_beats=0.0, edits=()))
        self._play(again, agent, service, "repair", "")
        self._end_work(attempt, service, "repair", "")

    def review(self, attempt: SimulatedAttempt, cycle: Cycle) -> None:
        """Review a candidate; the verdict is stored in the cycle."""
        cycle.review = attempt_id(self.clock(), f"{self.chance.getrandbits(32):08x}")
        prompt = evidence.review_prompt(attempt.row, cycle.rev)
        self.disk.create(self.project / evidence.bundle(cycle.review) / "prompt.md", prompt)
        self.write_record(attempt, records.new_record(attempt, self.clock(), bundled=False))
        metadata = {
            "attempt_id": attempt.id,
            "bead_id": attempt.bead,
            "candidate_ref": cycle.ref,
            "cycle_index": str(cycle.index),
            "result_rev": cycle.rev,
            "review_group_id": cycle.review,
            "reviewer_index": "0",
            "role": "reviewer",
            "session_id": attempt.session,
        }
        begun = self.clock()
        stream = self._service(
            self.ddx / "agent-logs",
            task=attempt.bead,
            act=attempt.act,
            role="reviewer",
            work_dir=attempt.copy.path,
            prompt=prompt,
            metadata=metadata,
            permissions="safe",
            min_power=7,
            correlation=f"{attempt.bead}:{attempt.id}:review:{cycle.index}",
        )
        agent = AgentStream(self.disk, self.ddx / "agent-logs", self.clock, metadata)
        self._start_record(attempt, stream)
        self.wait(0.3)
        agent.text("Reviewing the change.")
        self.wait(1.5)
        cycle.verdict = evidence.verdict_of(attempt.act, cycle.index)
        said = records.review_result(attempt, cycle)
        answer = {"schema_version": 1, "verdict": cycle.verdict, "summary": said["rationale"]}
        answer |= {"per_ac": said["per_ac"], "findings": said.get("findings", [])}
        took = stream.end(f"```json\n{json.dumps(answer)}\n```")
        row = self._session(attempt.session, attempt.bead, attempt.act, (begun, self.clock()), stream.path)
        row["bundlePath"] = evidence.bundle(attempt.id)
        log = str(stream.path.relative_to(self.project))
        order = ("nativeSessionID", "bundlePath", "nativeLogRef")
        self.add_session(
            row
            | {name: row[name] if name == "bundlePath" else str(stream.path) for name in order}
            | {"nativeLogRef": log}
        )
        done = records.ended_record(self.course.record, attempt, str(stream.path), took, "", self.clock())
        self.write_record(attempt, done)

    def triage(self, attempt: SimulatedAttempt, failure: str, status: str) -> str:
        """The triage call after a failure; returns the reason's name."""
        stream = self._service(
            self.ddx / "agent-logs",
            task="",
            act=_HELPER,
            role="lifecycle",
            work_dir=self.project,
            prompt="MODE: triage\nThis is a simulation: no model reads this.\n",
            metadata={},
        )
        AgentStream(self.disk, self.ddx / "agent-logs", self.clock)
        self.wait(0.5)
        reason = "transport"
        answer: Json = {"classification": reason, "recommended_action": "release_claim_retry"}
        answer |= {"rationale": "simulated", "suggested_amendments": [], "suggested_followup_beads": []}
        stream.end(json.dumps(answer))
        self._add_call_session(stream, _HELPER, "")
        body: Json = {"base_rev": attempt.base, "classification": reason, "detail": failure, "rationale": "simulated"}
        body |= {"recommended_action": "release_claim_retry", "result_rev": attempt.rev}
        body |= {"session_id": attempt.session, "status": status}
        body |= {"suggested_amendments": [], "suggested_followup_beads": []}
        summary = f"{reason}: release_claim_retry"
        self.add_event(attempt.bead, self.make_event("bead-quality.triage", summary, body))
        return reason

    # --- pieces -----------------------------------------------------------------------------------------

    def _play(
        self, attempt: SimulatedAttempt, agent: AgentStream, service: ServiceStream, phase: str, failure: str
    ) -> None:
        act, copy = attempt.act, attempt.copy
        edits = [] if failure or act.outcome in ("no_changes", "already_satisfied") else list(act.edits)
        self.wait(0.3)
        if act.outcome == "already_satisfied" or (act.outcome == "no_changes" and act.rationale):
            note = copy.path / evidence.bundle(attempt.id) / "no_changes_rationale.txt"
            self.disk.create(note, evidence.rationale(attempt.row, act))
        if act.opening:
            agent.text(act.opening)
        number = 0
        for call in act.calls or ():
            self.wait(0.7)
            if call.tool == SAY:
                agent.text(call.output)
                continue
            number += 1
            begun = self.clock()
            agent.call(number, call)
            if edits and call.tool == "Edit":
                copy.apply(edits.pop(0))
            self.wait(call.beats)
            # killed while a tool runs: the transcript has its call and no result
            if act.outcome == "killed" and not call.output:
                self.die()
            agent.result(number, call)
            self.tell(f"{phase} {service.tool(call, (self.clock() - begun) // 1_000_000)}")
        if act.silence_beats:
            self.wait(act.silence_beats)
        if act.outcome == "killed":
            self.die()
        for edit in edits:
            copy.apply(edit)
        self.person_commits(act)
        self.wait(0.7)
        if act.closing and not failure and act.outcome not in ("no_changes", "already_satisfied"):
            agent.text(act.closing)
        self.wait(0.5)

    def _end_work(self, attempt: SimulatedAttempt, service: ServiceStream, phase: str, failure: str) -> None:
        took = service.end(attempt.act.closing or "", failure)
        self._say_end(phase, attempt.act, took)
        row = self._session(
            attempt.session, attempt.bead, attempt.act, (service.begun, self.clock()), service.path, bool(failure)
        )
        row["promptSHA"] = evidence.sha(evidence.prompt(attempt.row))
        row |= {"bundlePath": evidence.bundle(attempt.id), "baseRev": attempt.base}
        if failure:
            row["detail"] = failure
        self.add_session(row)
        done = records.ended_record(self.course.record, attempt, str(service.path), took, failure, self.clock())
        self.write_record(attempt, done)

    def _start_record(self, attempt: SimulatedAttempt, stream: ServiceStream) -> None:
        record = self.course.record | {"phase": "running", "updated_at": stamp(self.clock())}
        self.write_record(attempt, record | {"fizeau": {"public_session_ref": stream.name}})

    def _service(self, folder: Path, *, act: Act, **about: object) -> ServiceStream:
        return ServiceStream(self.disk, folder, self.clock, act=act, requested=self.model, **about)  # type: ignore[arg-type]

    def _work_service(self, attempt: SimulatedAttempt, prompt: str, metadata: Json, correlation: str) -> ServiceStream:
        return self._service(
            self.embedded(attempt),
            task=attempt.bead,
            act=attempt.act,
            role="implementer",
            work_dir=attempt.copy.path,
            prompt=prompt,
            metadata=metadata,
            permissions="unrestricted",
            correlation=correlation,
        )

    def _metadata(self, attempt: SimulatedAttempt, prompt: str) -> Json:
        folder = evidence.bundle(attempt.id)
        return {
            "DDX_ATTEMPT_ID": attempt.id,
            "DDX_BEAD_DIR": str(self.ddx),
            "DDX_BEAD_ID": attempt.bead,
            "DDX_MODE": "bead_execution",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "PATH": "/usr/bin:/bin",
            "attempt_id": attempt.id,
            "base_rev": attempt.base,
            "bead_id": attempt.bead,
            "bundle_path": folder,
            "prompt_file": f"{folder}/prompt.md",
            "prompt_sha": evidence.sha(prompt),
            "session_id": attempt.session,
            "worker_id": "",
        }

    def _session(
        self, session: str, bead: str, act: Act, span: tuple[int, int], log: Path, failed: bool = False
    ) -> Json:
        usage = evidence.usage("", HARNESS, act.model, (act.input_tokens, act.output_tokens), act.cost_usd)
        row = evidence.session_row(session, self.project_id, bead, HARNESS, act.model, span, usage, "unknown")
        if act.cost_usd is not None:
            row["fizeau_cost_present"] = True
        row |= {"cachedTokens": act.input_tokens // 10, "outcome": "failure" if failed else "success"}
        return row | {"exitCode": int(failed), "nativeSessionID": str(log), "nativeLogRef": str(log)}

    def _add_call_session(self, stream: ServiceStream, act: Act, bead: str) -> None:
        row = self._session(self.new_id("as"), bead, act, (stream.begun, self.clock()), stream.path)
        self.add_session(row | {"nativeLogRef": str(stream.path.relative_to(self.project))})

    def _say_start(self, phase: str, bead: str, act: Act) -> None:
        tell = self.say_progress if phase == "readiness" else self.tell
        tell(f"{phase} route {HARNESS}/{act.model} reason=explicit")
        tell(f"{phase} {bead} route {HARNESS}/{act.model}")
        tell(f"{phase} thinking ...")

    def _say_end(self, phase: str, act: Act, took_ms: int) -> None:
        rate = act.output_tokens / max(took_ms / 1000, 0.001)
        took = f"{took_ms / 1000:g}s" if took_ms >= 1000 else f"{took_ms}ms"
        tell = self.say_progress if phase == "readiness" else self.tell
        tell(f"{phase} response complete {act.output_tokens} tok in {took}, {rate:.1f} tok/s")

    def say_progress(self, text: str) -> None:
        """A line with the time that ``--json`` silences."""
        self.say(f"{self.hour()} {text}")
