"""The numbers of a queue, counted once and worded once: ready beads, those for workers, and all the others."""

from __future__ import annotations

from helix_tui.core.beads.counts import QueueCounts, count_queue
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.states import STATES, State
from helix_tui.core.beads.tracker import only_archived, read_archive
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import counted
from helix_tui.core.supervision.signals.questions import beads_in_question, read_questions


def count_project(project: Project, queue: Queue) -> QueueCounts:
    """The numbers of a whole queue; reads the questions that HELIX keeps, and ddx's archive."""
    asked = beads_in_question(read_questions(project.helix_dir / "questions.json"))
    return count_queue(queue, asked, archive=only_archived(read_archive(project.archive_file), queue.beads))


def queue_line(counts: QueueCounts) -> str:
    """``12 beads · 8 ready, 6 can run: q-1 and q-2 wait for you · 1 running · 2 waiting for
    others · 0 blocked outside · 1 closed, 8 more archived (9 closed in all) · 2 epics, 1 cancelled``."""
    parts = (
        counted(counts.total, "bead"),
        str(counts),
        f"{counts.running:,} running",
        f"{counts.waiting:,} waiting for others",
        f"{counts.outside:,} blocked outside",
        ", ".join(filter(None, (f"{counts.closed:,} closed", counts.put_away))),
        ", ".join(_of_state(state, number) for state, number in counts.rest),
    )
    return " · ".join(filter(None, parts))


def _of_state(state: State, number: int) -> str:
    word = STATES[state].sign.word
    # the other states are adjectives: "3 cancelled", "2 superseded"
    return counted(number, word, "" if state == "epic_container" else word)


def need_you(number: int) -> str:
    """``3 need you``: how many things wait for a person."""
    return f"{number:,} need{'s' * (number == 1)} you" if number else "nothing needs you"
