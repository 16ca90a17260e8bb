"""Read the results of one turn of ddx's loop, and raise the questions in agents' answers.

`read_turn` validates a report before it is used (docs/formats/helix.md §3.11, docs/formats/ddx.md §4). Only the report
object counts, not the loop's exit code. Unknown fields are ignored, unknown statuses are kept verbatim and never count
as success. `raise_from` asks about what a stage's answer leaves open; `answer_question` writes an answer into its bead,
where the next agent reads it (§4), which decides a conflict and unblocks the work.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.pieces import Piece, merge
from helix_tui.core.ddx.attempts.report import MalformedReport, parse_report
from helix_tui.core.ddx.client import FAILED, MALFORMED, DdxError, advice_for, last_error
from helix_tui.core.ddx.files import instant, money, text, whole
from helix_tui.core.ddx.names import ATTEMPT_ID, Outcome
from helix_tui.core.editing.execute.curator import Curator, Result
from helix_tui.core.editing.operations import DropChange
from helix_tui.core.ground.files import below, read_bytes
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_instant, parse_instant
from helix_tui.core.supervision.signals.escalation import answering, kept_by
from helix_tui.core.supervision.signals.questions import OpenQuestion, OpenQuestions
from helix_tui.core.supervision.signals.responses import Level, response_to
from helix_tui.core.supervision.signals.undecided import plan_undecided, undecided
from helix_tui.core.supervision.stages import injection
from helix_tui.core.supervision.stages.delegate import token_count, tokens_in
from helix_tui.core.supervision.stages.stage_run import StageOutcome

_WHAT = "execute-loop-json"

_SIGNALS = frozenset({"sigint", "sigterm", "context_cancelled"})
"""Exit reasons of a ddx ended by a signal."""

_NONE = frozenset({"", "none", "0", "no", "n/a", "-"})
_CLASS = re.compile(r"\W*(physics[- ]level|resolvable|gap)\b\W*", re.IGNORECASE)
_IDS = re.compile(r"[,;\s]+")

_WAITING = {"NEEDS_CLARIFICATION": "clarification", "GUIDANCE_NEEDED": "guidance"}
"""Status of a stage -> the kind of question it raises."""

_FILED = {"conflict": ("kind:escalation", "escalation"), "gap": ("kind:speculative", "gap")}
"""Kind of conflict -> the label and the first word of its bead at autonomy high."""


class LoopResult(Struct, frozen=True):
    """One attempt as reported by the loop."""

    bead_id: str
    status: str
    attempt_id: str = ""
    detail: str = ""
    harness: str = ""
    model: str = ""
    provider: str = ""
    session_id: str = ""
    base_rev: str = ""
    result_rev: str = ""
    preserve_ref: str = ""
    retry_after: str = ""
    rationale: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
    duration_ms: int | None = None
    interrupted: bool = False
    """Whether its ddx was interrupted: then a failure says nothing about the bead."""
    judged: Attempt | None = None
    """The attempt from its records; None until they are read."""

    @property
    def word(self) -> str:
        """The word it is counted and shown under: ddx's status, or interrupted."""
        outcome = self.attempt.verdict.outcome
        cut = outcome == "interrupted" or (self.interrupted and outcome == "failed")
        return "interrupted" if cut else self.attempt.status or self.status

    @property
    def outcome(self) -> Outcome:
        """Its outcome: what ddx calls a ``success`` may be kept aside."""
        return "interrupted" if self.word == "interrupted" else self.attempt.verdict.outcome

    @property
    def success(self) -> bool:
        """Whether it counts as a cycle, if its bead is closed."""
        return response_to(self.attempt) == "count"

    @property
    def attempt(self) -> Attempt:
        """The attempt with its verdict, from its records or, before those exist, from the loop's report."""
        return self.judged or merge(self.attempt_id, {"loop": self.piece()})

    def piece(self, at: int | None = None) -> Piece:
        """The loop's report as one source on the attempt; ``at`` is its time."""
        return Piece(
            "loop",
            self.attempt_id,
            self.bead_id,
            self.status,
            detail=self.detail,
            session_id=self.session_id,
            base_rev=self.base_rev,
            result_rev=self.result_rev,
            preserve_ref=self.preserve_ref,
            retry_after=parse_instant(self.retry_after),
            no_changes_rationale=self.rationale,
            at=at,
        )

    def record(self) -> dict[str, Any]:
        """Its entry in the run's state."""
        kept = ("bead_id", "status", "attempt_id", "detail", "harness", "model", "provider", "session_id")
        revs = ("base_rev", "result_rev", "preserve_ref", "retry_after", "tokens", "cost_usd", "duration_ms")
        return {name: getattr(self, name) for name in (*kept, *revs)}


class LoopTurn(Struct, frozen=True):
    """The report of one call of ddx's loop."""

    results: tuple[LoopResult, ...] = ()
    attempts: int = 0
    no_ready_work: bool = False
    next_retry_after: str = ""
    exit_reason: str = ""
    attention: str = ""
    """What ddx wants a person to look at, or ""."""
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    document: Mapping[str, Any] = {}

    def interrupted(self) -> LoopTurn:
        """The turn marked as interrupted: its failures did not happen by themselves."""
        return replace(self, results=tuple(replace(result, interrupted=True) for result in self.results))

    @property
    def signalled(self) -> bool:
        """Whether ddx says that a signal ended it."""
        return self.exit_reason in _SIGNALS

    @property
    def idle(self) -> str:
        """Why ddx picked nothing, in its own words; April names beads, head counts them."""
        detail = self.document.get("no_ready_work_detail")
        said = [
            f"{name.replace('_', ' ')}: {_in_words(value)}"
            for name, value in (detail.items() if isinstance(detail, dict) else ())
            # Go writes a time that was never set as 0001-01-01
            if value and name != "execution_ready" and not str(value).startswith("0001-")
        ]
        return clean_line(", ".join(filter(None, [self.exit_reason.replace("_", " "), *said])), 300)


def _in_words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def read_turn(finished: Finished, project: Project) -> LoopTurn:
    """Read the report of a loop.

    Raises:
        DdxError: it failed without a message (1), or its output breaks the contract (65).
    """
    try:
        report = parse_report(finished.out)
    except MalformedReport as error:
        # why there is no report: our own actions on ddx come before its output
        if finished.timed_out:
            raise _failed(finished, f"ddx gave no answer in {finished.seconds:.0f} s and was ended") from None
        if finished.truncated:
            raise _failed(finished, "ddx printed more output than is kept and was ended") from None
        if finished.rc < 0:
            raise _failed(finished, f"ddx was ended by {_signal(-finished.rc)} while it was at work") from None
        if finished.rc != 0 and not _begins_json(finished.out):
            raise _failed(finished, last_error(finished)) from None
        why = "empty payload" if not finished.out.strip() else _top_level(finished.out) or str(error)
        raise malformed(finished, why) from None
    document = report.document
    # an error that ddx prints as an object is not a report
    if finished.rc != 0 and not {"results", "attempts", "project_root"} & document.keys():
        raise _failed(finished, last_error(finished))
    rows = document.get("results")
    if rows is not None and not isinstance(rows, list):
        raise malformed(finished, "results field is not an array")
    missing = [problem for place, row in enumerate(rows or ()) for problem in _missing(place, row)]
    if missing:
        raise malformed(finished, "missing required field(s):\n" + "\n".join(f"  - {each}" for each in missing))
    results = tuple(_result(row, project) for row in rows or ())
    said = whole(document.get("attempts"))
    tokens = sum(result.tokens for result in results) or token_count(document)
    idle = document.get("no_ready_work_detail")
    attention = document.get("operator_attention")
    turn = LoopTurn(
        results=results,
        attempts=len(results) if said is None else max(said, len(results)),
        no_ready_work=report.no_ready_work,
        next_retry_after=text(idle, "next_retry_after") if isinstance(idle, dict) else "",
        exit_reason=report.exit_reason,
        attention=_attention(attention) if isinstance(attention, dict) else "",
        tokens=tokens or tokens_in(finished.err) or tokens_in(report.lead),
        cost_usd=sum(result.cost_usd for result in results),
        seconds=finished.seconds,
        document=document,
    )
    return turn.interrupted() if turn.signalled else turn


def malformed(finished: Finished, why: str) -> DdxError:
    """The error for invalid output (65)."""
    message = f"{_WHAT}: {why}"
    return DdxError(finished.argv, message, "a newer ddx may have changed its output", MALFORMED, finished.stdout)


def _failed(finished: Finished, message: str) -> DdxError:
    # messages of ddx's command line library for what this release lacks
    code = 69 if "unknown flag" in message or "unknown command" in message else FAILED
    return DdxError(finished.argv, message, advice_for(message, finished.argv), code, finished.stdout)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _begins_json(out: str) -> bool:
    return any(line.startswith(("{", "[")) for line in out.split("\n"))


def _top_level(out: str) -> str:
    first = next((line for line in out.split("\n") if line.strip()), "")
    return "top-level value is not a JSON object" if first.lstrip()[:1] in '["0123456789tfn' else ""


def _missing(place: int, row: object) -> list[str]:
    if not isinstance(row, dict):
        return [f"results[{place}]"]
    wanted = ("bead_id", "status")
    return [
        f"results[{place}].{name}" for name in wanted if not isinstance(row.get(name), str) or not row[name].strip()
    ]


def _result(row: Mapping[str, Any], project: Project) -> LoopResult:
    def word(name: str) -> str:
        return clean_line(text(row, name), 400)

    attempt_id = word("attempt_id")
    tokens, cost = token_count(row), money(row.get("cost_usd"))
    # the id becomes part of a path
    if not tokens and ATTEMPT_ID.fullmatch(attempt_id):
        tokens, cost = _usage(project, attempt_id, cost)
    return LoopResult(
        bead_id=text(row, "bead_id"),
        status=word("status"),
        attempt_id=attempt_id,
        detail=word("detail"),
        harness=word("harness"),
        model=word("model"),
        provider=word("provider"),
        session_id=word("session_id"),
        base_rev=word("base_rev"),
        result_rev=word("result_rev"),
        preserve_ref=word("preserve_ref"),
        retry_after=_retry(row),
        rationale=clean_line(text(row, "no_changes_rationale") or text(row, "review_rationale"), 2000),
        tokens=tokens,
        cost_usd=cost or 0.0,
        duration_ms=whole(row.get("duration_ms")),
    )


def _retry(row: Mapping[str, Any]) -> str:
    at = instant(row.get("retry_after"))
    return format_instant(at) if at is not None else clean_line(text(row, "retry_after"), 80)


def _usage(project: Project, attempt_id: str, cost: float | None) -> tuple[int, float | None]:
    """Tokens and cost from the attempt's evidence, if the loop does not report them."""
    folder = below(project.records_dir / "executions", attempt_id)
    for name in ("usage.json", "result.json"):
        document = decode_json(read_bytes(folder / name, 1 << 20))
        if isinstance(document, dict) and (tokens := token_count(document)):
            return tokens, cost or money(document.get("cost_usd"))
    return 0, cost


def _attention(document: Mapping[str, Any]) -> str:
    words = [text(document, name) for name in ("reason", "message")]
    bead_id = text(document, "bead_id")
    return clean_line(": ".join(filter(None, [*words, bead_id])), 400)


def ambiguous(result: LoopResult) -> bool:
    """Whether a person may have to decide on it: preserved work, faults found after landing, or an unknown status.

    What merely failed or changed nothing is retried by ddx itself after its cooldown.
    """
    return response_to(result.attempt) == "ask"


def answer_question(
    curator: Curator, questions: OpenQuestions, question_id: str, text: str
) -> tuple[OpenQuestion, str]:
    """Answer a question; if it concerns a bead, write the decision into it, journalled.

    Returns:
        the question, and the commit of the kept change dropped by the answer, or "".

    Raises:
        UnknownQuestion: there is no open question with this id.
        DdxError, Unreadable, WritesForbidden: the bead cannot be written; the question then stays open.
    """
    asked = next((each for each in questions.open() if each.id == question_id), None)
    given_up = ""
    # the bead first: if it cannot be written, the question stays open
    if asked is not None and asked.bead_id and asked.kind != "approval":
        queue = curator.look().queue
        if asked.bead_id in queue.beads:
            kept = kept_by(curator.project, queue.beads)
            requested = answering(queue.beads[asked.bead_id], text, queue.as_of, kept)
            given_up = next((operation.rev[:12] for operation in requested if isinstance(operation, DropChange)), "")
            _done(curator.run(requested, title=f"record the answer to {question_id}"))
        if asked.bead_id in (held := undecided(queue)):
            rest = [bead_id for bead_id in held if bead_id != asked.bead_id]
            title = f"release {asked.bead_id}, which waited for the answer"
            _done(curator.run_steps("hold", title, lambda writing, _: plan_undecided(writing, rest)))
    return questions.answer(question_id, text), given_up


def _done(done: Result) -> None:
    if done.error is not None:
        raise done.error


def raise_from(
    curator: Curator, questions: OpenQuestions, done: StageOutcome, level: Level
) -> tuple[OpenQuestion, ...]:
    """Raise the questions in a stage's answer: contradictions always, the rest if the level asks; otherwise each
    conflict and gap gets a bead for a person instead.

    Raises:
        DdxError, Unreadable, WritesForbidden: as the curator.
    """
    name = done.stage.name
    raised, passed = [], []
    for kind, words in conflicts_in(done.trailers.get("CONFLICTS")):
        key = f"{name}:{kind}:{words[:200]}"
        if kind == "physics-level" or level != "high":
            raised.append(questions.ask(kind, words, key=key))
        else:
            passed.append((kind, words, key))
    if passed:
        _file(curator, done, passed)
    wanted = _WAITING.get(done.status)
    if wanted:
        text = next((line for line in done.answer.text.split("\n") if line.rstrip().endswith("?")), "")
        text = text.strip(" \t*#>-") or f"{name} needs to know more: read its answer in {done.answer.log}"
        raised.append(questions.ask(wanted, text, key=f"{name}:{wanted}:{text[:200]}"))
    return tuple(raised)


def conflicts_in(trailer: str) -> Iterable[tuple[str, str]]:
    """(kind, text) of each conflict in a CONFLICTS trailer; resolvable by default."""
    if trailer.strip().lower() in _NONE:
        return
    for part in re.split(r";\s*", trailer):
        if part.strip().lower() in _NONE:
            continue
        match = _CLASS.match(part.strip())
        physics = re.search(r"physics[- ]level", part, re.IGNORECASE)
        gap = match is not None and match.group(1).lower() == "gap"
        words = part.strip()[match.end() :] if match is not None else part.strip()
        yield ("physics-level" if physics else "gap" if gap else "conflict"), words or part.strip()


def _file(curator: Curator, done: StageOutcome, passed: Iterable[tuple[str, str, str]]) -> None:
    """File a bead for each conflict and gap, unless the agent created one or one exists."""
    queue = curator.look().queue
    made = [queue.beads[word] for word in _IDS.split(done.trailers.get("BEADS_CREATED")) if word in queue.beads]
    requested = []
    for kind, words, key in passed:
        label, title = _FILED[kind]
        by_agent = next((bead for bead in made if label in bead.labels), None)
        if by_agent is not None:
            # each bead of the agent covers one conflict
            made.remove(by_agent)
        elif not injection.decision_standing(queue, label, key):
            shown = f"{title}: {clean_line(words, 80)}"
            assumed = f"what {done.stage.name} did with it, from its answer"
            requested.append(injection.decision_bead(queue, label, shown, words, key=key, assumed=assumed))
    if requested:
        error = curator.run(requested, title=f"file what {done.stage.name} left for a person").error
        if error is not None:
            raise error
