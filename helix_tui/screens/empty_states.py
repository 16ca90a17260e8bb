"""What the queue says when there is no queue to show: what was looked for, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helix_tui.core.ground.text import clean_line
from helix_tui.widgets.base.line import Line

if TYPE_CHECKING:
    from helix_tui.core.snapshot import Snapshot


def placard(snapshot: Snapshot) -> list[Line] | None:
    """The paragraphs for a state without a queue; None where there is one."""
    project, tracker = snapshot.project, snapshot.tracker
    file = clean_line(str(project.beads_file), 300)
    if snapshot.condition == "loading":
        return [[("Reading the queue …", "text bold")], [(file, "muted")]]
    if snapshot.condition == "no-ddx":
        return [
            [("No DDx queue here.", "text bold")],
            [],
            [("Looked for ", "muted"), (file, "text")],
            [],
            [("ddx init", "running"), ("              creates one in this repository", "muted")],
            [("helix-tui -C DIR", "running"), ("      opens another project", "muted")],
            [("helix-tui demo", "running"), ("        shows the console on a throw-away project", "muted")],
            [],
            [("This screen fills as soon as the file is there.", "muted")],
        ]
    if snapshot.condition == "gone":
        return [
            [("The tracker is gone.", "attention bold")],
            [],
            [
                (file, "text"),
                (" was here and is gone: moved, deleted, or not on this branch.", "muted"),
            ],
            [("Everything returns when the file does.", "muted")],
        ]
    if snapshot.condition == "unreadable" and not tracker.beads:
        return [
            [("The tracker cannot be read.", "error bold")],
            [],
            [(clean_line(tracker.problem, 300), "text")],
            [(file, "muted")],
        ]
    if snapshot.condition == "empty" or not tracker.beads:
        lines: list[Line] = [[("The queue is empty.", "text bold")], [], [(file, "muted")], []]
        if tracker.dropped:
            count = len(tracker.dropped)
            lines[0] = [(f"None of the {count:,} lines of the tracker can be read.", "error bold")]
            lines.append([("!", "running"), ("  lists them with the reason for each", "muted")])
        lines += [
            [("N", "running"), ("  writes the first bead, judged while you write it", "muted")],
            [("i", "running"), ("  asks the repository", "muted")],
            [("?", "running"), ("  every key", "muted")],
        ]
        return lines
    return None
