"""What can stop a worker that somebody else started, the softest means first, each by its own name.

No release has a word for "end after the current bead" (docs/decisions/0026). What every release does: a worker
that finds nothing to pick ends, or idles where it watches. So the softest means is to keep the other beads from
workers; it cuts no attempt short, reaches workers on other machines, and one undo gives the beads to workers
again. Next come ddx's own commands for the workers of its server; last a signal, as ctrl+c in its terminal.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.text import counted

MANAGED = "worker-"
"""How the ids of workers begin that ddx's server runs; a worker from a command line is ``agent-loop-…``."""

GIVEN_BACK = "ddx ends the attempt and releases the bead"
LEFT_CLAIMED = "ddx ends the attempt and leaves the claim to expire: Needs me will offer to recover it"


class StopMeans(Struct, frozen=True):
    """One way to stop a worker."""

    kind: Literal["hold", "command", "signal"]
    name: str
    """What it is called: a command, or a signal and a process."""
    effect: str
    words: tuple[str, ...] = ()
    """After ``ddx``, of a command."""
    pid: int = 0
    beads: tuple[str, ...] = ()
    """Beads to keep from workers, of a hold."""


def ways_to_stop(run: Run, queue: Queue, dialect: Dialect, *, here: str) -> tuple[StopMeans, ...]:
    """What can stop a worker, the softest first; empty for one that does not live.

    Args:
        run: the worker.
        here: this machine's name: only its processes can be signalled.
    """
    if not run.live:
        return ()
    found = [hold(queue, {run.bead_id or ""})]
    managed = managed_id(run)
    elsewhere = run.machine not in ("", here)
    # April's server works inside itself: a signal to that process would end other projects' workers too
    server = run.pid is not None and not elsewhere and is_server(run.pid)
    stop, desired = dialect.verbs.get("stop_worker"), dialect.verbs.get("set_workers")
    if stop is not None and (managed or server):
        target = (managed,) if managed else ("--bead", run.bead_id or "")
        words = (*stop.words, *target)
        found.append(StopMeans("command", _shown(words), f"its server cuts the attempt short; {GIVEN_BACK}", words))
    elif desired is not None and managed:
        words = (*desired.words, "--count", "0")
        effect = (
            "its server ends all its workers here within 30 s, and starts no new ones; a running attempt is cut short"
        )
        found.append(StopMeans("command", _shown(words), effect, words))
    if run.pid is not None and not elsewhere and not server:
        effect = GIVEN_BACK if dialect.gives_back else LEFT_CLAIMED
        again = "; its server starts another" if managed and desired is not None else ""
        name = f"ctrl+c (SIGINT) to process {run.pid}"
        found.append(StopMeans("signal", name, effect + again, pid=run.pid))
    return tuple(found)


def hold(queue: Queue, at_work: Collection[str]) -> StopMeans:
    """Keep from workers whatever they could pick after the beads at work."""
    beads = next_picks(queue, at_work)
    count = counted(len(beads), "bead")
    effect = "workers end after the current bead, or idle if they watch; u allows the beads again"
    if not beads:
        return StopMeans("hold", "wait", "nothing else is ready: workers end after the current bead")
    return StopMeans("hold", f"hold {count} (execution-eligible=false)", effect, beads=beads)


def next_picks(queue: Queue, at_work: Collection[str]) -> tuple[str, ...]:
    """The beads that a worker could pick now, in its order, and those that the beads at work make ready."""
    freed = [
        bead_id
        for done in at_work
        for bead_id in queue.graph.dependents.get(done, ())
        if queue.state(bead_id) == "waiting_dependencies"
        and all(
            reason.kind == "waiting_dependencies" and set(reason.refs) <= set(at_work)
            for reason in queue.standing(bead_id).reasons
        )
    ]
    return tuple(dict.fromkeys([*(each for each in queue.ready if each not in at_work), *freed]))


def managed_id(run: Run) -> str:
    """The id by which ddx's server knows a worker; empty for one that it does not run."""
    names = [run.worker_id or "", *(fact.value for fact in run.facts if fact.name == "worker")]
    return next((worker for worker in names if worker.startswith(MANAGED)), "")


def is_server(pid: int) -> bool:
    """Whether a process of this machine is ddx's server, that runs workers inside itself (April): a signal
    to it would end every worker of every project.
    """
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4096).split(b"\0")[:3]
    except OSError:
        return False
    return b"server" in words[1:]


def _shown(words: tuple[str, ...]) -> str:
    return " ".join(("ddx", *words))
