"""One of several that curate a tracker at once; it tells on stdout what it has been promised.

``load_curator.py PROJECT NAME SEED COUNT ERA [focus]``: COUNT mixed operations on shared and own beads, each
planned, gated, journalled; a line is printed, and flushed, once the curator has told that it was done. With
``focus`` it puts the focus on and takes it off instead, over and over.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from helix_tui.core.editing import operations as op
from helix_tui.core.editing.differences import Conflict
from helix_tui.core.editing.execute.curator import Curator, Result
from helix_tui.core.editing.execute.gate import find_executable
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.undo import NotUndoable
from helix_tui.core.ground.project import find_project
from helix_tui.core.supervision.signals.focus import plan_focus, plan_unfocus

SHARED = tuple(f"demo-{number:08x}" for number in range(6))
LAID_ASIDE = "laid-aside"


class Worker:
    """Gives operations and remembers what they promised."""

    def __init__(self, project: Path, name: str, seed: int) -> None:
        found = find_project(project)
        self.curator = Curator(found, lambda: find_executable(found, None), who="agent", env=dict(os.environ))
        self.name = name
        self.random = random.Random(seed)
        self.own: list[str] = []

    def one(self, number: int) -> None:
        """One operation of a kind that chance picks."""
        key, bead = f"{self.name}-{number}", self.random.choice(SHARED)
        kinds: list[Callable[[str, str], None]] = [
            self.create,
            self.label,
            self.label,
            self.set,
            self.depend,
            self.finish,
            self.claim,
            self.undo,
            self.bulk,
        ]
        self.random.choice(kinds)(key, bead)

    def create(self, key: str, bead: str) -> None:
        """A bead of one's own."""
        done = self.run([op.CreateBead(title=f"made by {key}", labels=["own"])])
        if done is not None and done.created:
            self.own.extend(done.created.values())
            promise("bead", *done.created.values(), f"made by {key}")

    def label(self, key: str, bead: str) -> None:
        """Labels are written whole: whoever reads an old row loses somebody's."""
        if self.run([op.ChangeLabels(bead, add=[key])]):
            promise("label", bead, key)

    def set(self, key: str, bead: str) -> None:
        """A field that is nobody else's."""
        if self.run([op.SetFields(bead, {key: f"value {key}"})]):
            promise("field", bead, key, f"value {key}")

    def depend(self, key: str, bead: str) -> None:
        """An edge between own beads, so that there is no circle."""
        if len(self.own) > 1 and self.run([op.AddDependency(self.own[-1], self.own[0])]):
            promise("edge", self.own[-1], self.own[0])

    def finish(self, key: str, bead: str) -> None:
        """The oldest bead of one's own is done with; every other time it is opened again."""
        if len(self.own) > 3:
            mine = self.own[1]
            if self.run([op.CloseBead(mine)]) and self.random.random() < 0.5:
                self.run([op.ReopenBead(mine, "again")])

    def claim(self, key: str, bead: str) -> None:
        """Take a bead and let go of it."""
        if len(self.own) > 2 and self.run([op.ClaimBead(self.own[2], self.name)]):
            self.run([op.ReleaseBead(self.own[2])])

    def undo(self, key: str, bead: str) -> None:
        """A change that is taken back leaves nothing."""
        field = f"{LAID_ASIDE}-{key}"
        done = self.run([op.SetFields(bead, {field: "x"})])
        if done is not None and done.entry is not None:
            try:
                if self.curator.undo(done.entry) is not None:
                    promise("nothing", bead, field)
            except (Conflict, NotUndoable):
                promise("conflict", bead, field)

    def bulk(self, key: str, bead: str) -> None:
        """Several beads as one change."""
        if self.run([op.ChangeLabels(other, add=[key]) for other in SHARED[:3]]):
            for other in SHARED[:3]:
                promise("label", other, key)

    def run(self, operations: Sequence[Operation]) -> Result | None:
        """What came of it, if all of it was done."""
        try:
            done = self.curator.run(operations)
        except Conflict:
            promise("conflict")
            return None
        whole = done.error is None and not done.problems and not done.plan.refusals
        if done.error is not None:
            promise("error", done.error.message)
        return done if whole else None


def promise(*words: str) -> None:
    """Say that something is in the tracker now, for good."""
    os.write(1, (json.dumps(words) + "\n").encode())


def turn_focus(curator: Curator, count: int) -> None:
    """The focus on and off."""
    for _ in range(count):
        curator.run_steps("focus", "focus", lambda writing, _: plan_focus(writing, "demo-epic"))
        promise("on")
        curator.run_steps("focus", "no focus", lambda writing, _: plan_unfocus(writing))
        promise("off")


def main() -> None:
    """Work until the count is reached or somebody kills us."""
    project, name, seed, count, *more = sys.argv[1:]
    os.chdir(project)
    worker = Worker(Path(project), name, int(seed))
    if more == ["focus"]:
        turn_focus(worker.curator, int(count))
    else:
        for number in range(int(count)):
            worker.one(number)
    promise("done")


if __name__ == "__main__":
    main()
