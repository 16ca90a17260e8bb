"""``helix-tui needs``: everything that waits for a person and what can be done about it, once or on every change."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from helix_tui.cli.call import Call, CliError, check_heard, heard
from helix_tui.cli.helix.shared import curator_of, explained
from helix_tui.cli.queue_lines import title_of
from helix_tui.core.beads.filter_language import Filter
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.editing.execute.curator import QueueState
from helix_tui.core.ground.text import clean_line, fit, short_id
from helix_tui.core.ground.time import NS, format_age, format_instant
from helix_tui.core.supervision.decide.monitor import BackgroundMonitor, needs_now
from helix_tui.core.supervision.decide.need_kinds import KINDS
from helix_tui.core.supervision.decide.need_view import (
    LANDING,
    NeedContext,
    actions_of,
    bring_back,
    grouped,
    need_filter,
    next_morning,
    put_off,
    senseless,
    span_seconds,
    stake,
)
from helix_tui.core.supervision.decide.needs import Need, SplitNeeds, read_snoozes

MAX_LINES = 8
"""How many needs of one group are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--filter", metavar="QUERY", default="", help="like: kind:proposals waits>3d blocks>=1 text")
    parser.add_argument(
        "--watch", action="store_true", help="keep running: print a line per change, or with --json a document"
    )
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="with --watch: how often to look")
    parser.add_argument("--snooze", nargs="+", metavar="KEY", help="snooze these, by their key in --json")
    parser.add_argument("--for", dest="span", default="1h", metavar="SPAN", help="with --snooze: 1h, tomorrow, change")
    parser.add_argument("--wake", nargs="+", metavar="KEY", help="bring back what was snoozed")


class NeedsReader:
    """Reads a project repeatedly; unchanged files are not read again."""

    def __init__(self, call: Call) -> None:
        self.curator = curator_of(call)
        self.clock = call.clock
        # polled at each look, so it needs no callback
        self._monitor = BackgroundMonitor(self.curator.project, lambda _: None, clock=self.clock)
        self._index = AttemptIndex.of(self.curator.project)
        self.state: QueueState
        self.attempts = AttemptBook()

    def look(self) -> SplitNeeds:
        """What waits for a person now, and what is snoozed."""
        with explained():
            self.state = self.curator.look(self._index)
        self.attempts = self._index.book
        found = self._monitor.look(self.state, self.curator.history(), self.attempts)
        return needs_now(self.curator.project, self.state, self.attempts, found, self.clock())

    def document(self, need: Need) -> dict[str, Any]:
        """A need as JSON, with its heading, its bead's title, and what can be done."""
        bead = self.state.queue.beads.get(need.bead_id)
        attempt = self.attempts.get(need.attempt_id)
        offered = actions_of(need, senseless(need, attempt))
        return {
            **need.record(),
            "group": KINDS[need.kind].group,
            "title": bead.title if bead is not None else None,
            "actions": [
                {"id": each.id, "label": each.label, "effect": each.effect, "command": each.command_for(need) or None}
                for each in offered
            ],
        }


def run(call: Call) -> int:
    """Print what waits for a person, or snooze some of it."""
    wanted = need_filter(call.options.filter)
    if wanted.problem:
        raise CliError(wanted.problem, "A filter is written like: kind:proposals waits>3d blocks>=1 text", 2)
    reader = NeedsReader(call)
    split = reader.look()
    if call.options.snooze or call.options.wake:
        if _put_off(call, reader, split):
            return 0
        split = reader.look()
    if call.options.watch:
        return _watch(call, reader, wanted, split)
    passing = wanted.passing(split.active, NeedContext(reader.state.queue, call.now))
    snoozes = read_snoozes(reader.curator.project)
    if call.json:
        call.emit(
            {
                "as_of": format_instant(call.now),
                "count": len(split.active),
                "groups": {group.name: len(group.needs) for group in grouped(split.active, call.now)},
                "needs": [reader.document(need) for need in passing],
                "snoozed": [
                    reader.document(need) | {"until": snoozes[need.key].until or None} for need in split.snoozed
                ],
            }
        )
        return 0
    for line in _lines(call, reader, passing, split):
        call.print(line)
    return 0


def _put_off(call: Call, reader: NeedsReader, split: SplitNeeds) -> bool:
    """Snooze and wake, or with ``--dry-run`` show what would change; True if nothing else is to be printed."""
    every = {need.key: need for need in (*split.active, *split.snoozed)}
    keys = [*(call.options.snooze or ()), *(call.options.wake or ())]
    unknown = next((key for key in keys if key not in every), "")
    # checked before anything is written: all keys are snoozed, or none
    if unknown:
        raise CliError(
            f"nothing waiting has the key “{clean_line(unknown, 80)}”", "`helix-tui needs --json` lists the keys.", 2
        )
    project, gate, until = reader.curator.project, reader.curator.gate, _until(call)
    if call.options.dry_run:
        _foretell(call, keys, until)
        return True
    with explained():
        if call.options.wake:
            bring_back(project, gate, call.options.wake)
        if call.options.snooze:
            needs = [every[key] for key in call.options.snooze]
            who = reader.curator.me.user
            put_off(project, gate, needs, until=until, by=who, now=call.now)
    return False


def _foretell(call: Call, keys: Iterable[str], until: int | None) -> None:
    """Print what snoozing and waking would do."""
    snooze, wake = call.options.snooze or [], call.options.wake or []
    if call.json:
        end = format_instant(until) if until is not None else None
        call.emit({"dry_run": True, "snooze": snooze, "until": end, "wake": wake})
        return
    for key in keys:
        end = "until it changes" if until is None else f"until {format_instant(until)}"
        call.print(clean_line(f"would snooze {key} {end}" if key in snooze else f"would wake {key}", 400))
    call.print("nothing was changed (--dry-run)")


def _until(call: Call) -> int | None:
    """When a snooze ends; None if it ends on a change."""
    span = call.options.span
    if span == "change":
        return None
    if span == "tomorrow":
        return next_morning(call.now)
    try:
        return call.now + int(span_seconds(span) * NS)
    except ValueError:
        raise CliError(
            f"“{clean_line(span, 40)}” is not a duration", "Write --for 1h, 3d, tomorrow or change.", 2
        ) from None


def _lines(call: Call, reader: NeedsReader, needs: Iterable[Need], split: SplitNeeds) -> Iterable[str]:
    groups = grouped(needs, call.now)
    if not groups:
        yield "nothing waits for you" if not split.active else f"none of {len(split.active):,} matches"
    for group in groups:
        yield call.paint(f"{group.name}  {len(group.needs):,}", "bold")
        for need in group.needs[:MAX_LINES]:
            age = format_age((call.now - need.since) / NS) if need.since is not None else ""
            figures = "  ".join(filter(None, (need.assigned, stake(need), age)))
            yield fit(f"  {_title(reader, need)}", max(20, call.paint.width - len(figures) - 2)) + f"  {figures}"
            yield call.paint("    " + fit(clean_line(need.reason, 300), call.paint.width - 4).rstrip(), "muted")
        command = next((each for each in actions_of(group.needs[0], LANDING) if each.command), None)
        if len(group.needs) > MAX_LINES:
            yield call.paint(f"  … {len(group.needs) - MAX_LINES:,} more: --filter or --json show them", "muted")
        if command is not None:
            yield call.paint(f"  → {clean_line(command.command_in(group.needs), 300)}", "running")
    if split.snoozed:
        first = f", the first until {format_instant(split.wakes_at)}" if split.wakes_at else ", until they change"
        yield call.paint(f"{len(split.snoozed):,} snoozed{first}", "muted")


def _title(reader: NeedsReader, need: Need) -> str:
    bead = reader.state.queue.beads.get(need.bead_id)
    if bead is None:
        return need.question_id or need.ref or need.kind.replace("_", " ")
    asked = f"{need.question_id}  " if need.question_id else ""
    return f"{asked}{short_id(clean_line(bead.id, 60))}  {title_of(bead)}"


def _watch(call: Call, reader: NeedsReader, wanted: Filter[Need, NeedContext], split: SplitNeeds) -> int:
    """Print the present needs, then each one that appears or disappears, until interrupted."""
    known: dict[str, Need] = {}
    while True:
        now = {need.key: need for need in wanted.passing(split.active, NeedContext(reader.state.queue, reader.clock()))}
        for key, need in now.items():
            if key not in known:
                _print(call, reader, "new", need)
        for key, need in known.items():
            if key not in now:
                _print(call, reader, "gone", need)
        known = now
        time.sleep(max(0.2, call.options.every))
        # without output, the watch would not notice that its reader has exited
        check_heard()
        try:
            split = reader.look()
        except CliError as error:  # it may be readable again the next time
            call.note(error.message)


def _print(call: Call, reader: NeedsReader, event: str, need: Need) -> None:
    if call.json:
        line = msgspec.json.encode({"schema": "needs-event/1", "event": event, "need": reader.document(need)})
        call.emit_line(line)
        return
    sign = "+" if event == "new" else "-"
    call.print(f"{sign} {KINDS[need.kind].group}  {_title(reader, need)}  {clean_line(need.reason, 200)}")
    with heard():
        sys.stdout.flush()
