"""What a real ddx and helix-tui say of one project at the same instant, fact by fact."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real.stranger import Stranger

Facts = Mapping[str, Any]


def ddx_says(stranger: Stranger) -> Facts:
    """ddx's own answers, each by the verb of this release that gives it."""
    verbs = {
        "ready": ("bead", "ready", "--execution"),
        "list": ("bead", "list"),
        "blocked": ("bead", "blocked"),
        "status": ("bead", "status"),
    }
    if stranger.release.workers:
        verbs["workers"] = stranger.release.workers
    if not stranger.release.is_april:
        verbs["focus"] = ("work", "focus")
    said = _together({name: _ddx(stranger, words) for name, words in verbs.items()})
    # before the end of April the rows name no kind: what is blocked there waits for other beads
    blocked = {row["id"]: row.get("blocker", {"kind": "dependency"}).get("kind", "") for row in said["blocked"] or ()}
    status = said["status"]
    if "dependency_waiting" in status:  # since May; its `bead blocked` is what waits for somebody outside
        waiting, held = status["dependency_waiting"], len(blocked)
    else:
        waiting, held = sum(kind == "dependency" for kind in blocked.values()), status["blocked"]
    # without a verb for workers: what the rows tell of claims
    workers = (
        said.get("workers", [{"bead_id": r["id"]} for r in said["list"] or () if r["status"] == "in_progress"]) or ()
    )
    workers = workers["workers"] or () if isinstance(workers, dict) else workers
    return {
        "ready": [row["id"] for row in said["ready"] or ()],
        "closed": {row["id"] for row in said["list"] or () if row["status"] == "closed"},
        "blocked": held,
        "waiting": waiting,
        "running": {row["bead_id"] for row in workers if row.get("bead_id")},
        "needs": {row["id"] for row in (said.get("focus") or {}).get("human_required") or ()},
        "recorded": _recorded(stranger),
    }


def _recorded(stranger: Stranger) -> set[str]:
    """The beads of run records whose ddx is alive: ddx of 10 May writes one before its verb names the bead."""
    found = set()
    for path in (stranger.here / ".ddx" / "run-state").glob("*.json"):
        with contextlib.suppress(OSError, ValueError):  # it went, or is half written
            record = json.loads(path.read_text())
            if Path(f"/proc/{record.get('pid')}").exists():
                found.add(str(record.get("bead_id")))
    return found


def we_say(stranger: Stranger, faces: Collection[str]) -> dict[str, Facts]:
    """The same facts on each face that tells them: ``queue``, ``status``, and where asked ``check``."""
    said = _together({name: _ours(stranger, name) for name in faces})
    queue, status = said["queue"], said["status"]
    states = {row["id"]: row["state"] for row in queue["beads"]}
    parked = {row["id"] for row in status["parked_beads"] if row["reason"] == "operator-attention"}
    running = status["running_bead"]
    return {
        "queue": {
            "ready": queue["ready"],
            "closed": {row["id"] for row in queue["beads"] if row["status"] == "closed"},
            "running": {run["bead_id"]: run["phase"] for run in queue["running"] if run["live"]},
            "needs": {bead_id for bead_id, state in states.items() if state == "proposed"},
            "waiting": sum(state == "waiting_dependencies" for state in states.values()),
        },
        "status": {
            **_counts(status["tracker"]),
            "running": {running["id"]: ""} if running else {},
            "needs": parked,
        },
        **({"check": _counts(said["check"]["queue_health"])} if "check" in said else {}),
        "attempts": {
            "outcomes": {row["attempt_id"]: row["verdict"]["outcome"] for row in said["attempts"]["attempts"]}
        },
    }


def _counts(counts: Mapping[str, Any]) -> Facts:
    return {
        "#ready": counts["ready_execution"],
        "#closed": counts["closed"],
        "blocked": counts["blocked"],
        "waiting": counts["waiting"],
    }


def _ddx(stranger: Stranger, words: tuple[str, ...]) -> Callable[[], Any]:
    return lambda: json.loads(stranger.ddx(*words, "--json", check=True).stdout or "null")


def _ours(stranger: Stranger, command: str) -> Callable[[], Any]:
    more = ("--no-model",) if command == "check" else ()
    return lambda: stranger.tui_json(command, *more)


def _together(asked: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    with ThreadPoolExecutor(len(asked)) as pool:
        futures = {name: pool.submit(ask) for name, ask in asked.items()}
        return {name: future.result() for name, future in futures.items()}


@dataclass
class Ticks:
    """Looks at a project while something works in it.

    A look takes some seconds, one face after the other. What counts is what ddx says before and after it, and
    a face that differs counts where no file that tells of beads and claims changed meanwhile: a bead may be
    let go and parked in between, and ddx then says the same before and after.
    """

    stranger: Stranger
    killed: bool = False
    """A worker was killed: ddx of April calls it running for good."""
    compared: dict[str, int] = field(default_factory=dict)
    """Fact -> how often it was compared."""
    differing: list[str] = field(default_factory=list)
    outcomes: dict[str, list[str]] = field(default_factory=dict)
    """Of each attempt, what it was called at each look."""
    ticks: int = 0
    passing: list[str] = field(default_factory=list)
    """Differences that are not held against anybody: the files changed during the look."""
    _standing: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """Of a face and a fact: the last look whose difference passed, and how many in a row have."""

    def look(self) -> None:
        """One look: ddx, then each face of ours, then ddx again."""
        calls = len(self.stranger.calls())
        faces = ("queue", "status", "attempts", *(() if self.ticks % 3 else ("check",)))
        files = self.stranger.claims_and_rows()
        before, ours, after = ddx_says(self.stranger), we_say(self.stranger, faces), ddx_says(self.stranger)
        changed = files != self.stranger.claims_and_rows()
        moved = calls != len(self.stranger.calls())
        self.ticks += 1
        for attempt_id, outcome in ours.pop("attempts")["outcomes"].items():
            self.outcomes.setdefault(attempt_id, []).append(outcome)
        for face, facts in ours.items():
            for name, said in facts.items():
                fact = name.lstrip("#")
                theirs = before[fact]
                if theirs != after[fact]:
                    continue
                if fact == "running" and (moved or self._calls_the_dead_running):
                    continue  # an agent began meanwhile: it may have ended, too
                same = _same(name, said, theirs, before["recorded"] & after["recorded"])
                if not same and changed:
                    self._let_pass(face, name, f"{said}, ddx {theirs}")
                    continue
                self.compared[fact] = self.compared.get(fact, 0) + 1
                if not same:
                    self.differing.append(f"tick {self.ticks}, {face}: {name} {said}, ddx {theirs}")

    def _let_pass(self, face: str, name: str, said: str) -> None:
        """A difference while files changed passes twice; the third look in a row that finds it counts it."""
        last, number = self._standing.get((face, name), (0, 0))
        number = number + 1 if last == self.ticks - 1 else 1
        self._standing[face, name] = self.ticks, number
        (self.passing if number < 3 else self.differing).append(f"tick {self.ticks}, {face}: {name} {said}")

    def changed_their_minds(self) -> dict[str, list[str]]:
        """Attempts that landed in the end, and were called something else before than not yet ended (R15).

        What met a conflict is kept aside first, and is landed by the same worker where it recovers by itself.
        """
        return {
            name: said
            for name, said in self.outcomes.items()
            if said[-1] == "landed" and not set(said) <= {"unfinished", "landed", *self._kept(name)}
        }

    def _kept(self, attempt_id: str) -> set[str]:
        """What an attempt is called meanwhile for which ddx made a ref to keep it aside."""
        refs = self.stranger.git("for-each-ref", "--format=%(refname)", "refs/ddx/iterations")
        return {"kept_aside"} if f"/{attempt_id}-" in refs else set()

    @property
    def _calls_the_dead_running(self) -> bool:
        """ddx of April says of a worker that was killed that it runs, for good."""
        return self.killed and self.stranger.release.is_april


def _same(name: str, said: Any, theirs: Any, recorded: Collection[str]) -> bool:
    """Whether a face says what ddx says; ``#`` is the number alone.

    Of running ddx names a bead only while its agent is at work: before and after that (readiness check,
    review, landing) we name the bead that the worker holds, with the phase, or the bead of its run record.
    """
    if name.startswith("#"):
        return bool(said == len(theirs))
    if name == "running":
        between = len(said) == 1 and (not {"running"} & set(said.values()) or set(said) <= set(recorded))
        return set(said) == theirs or (not theirs and between)
    return bool(said == theirs)
