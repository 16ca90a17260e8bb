"""What *Needs me* does beside changing the queue: attempts once more, lessons, putting off, resolving a merge."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from textual.app import SuspendNotSupported

from helix_tui.core.editing.steps import OperationRefused
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import NS
from helix_tui.core.supervision.decide.need_view import HOUR_S, MORNING, Snooze, Snoozes, next_morning, set_snoozes
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.core.supervision.stages.delegate import AgentChoice
from helix_tui.core.supervision.stages.landing import MergeOutcome, call_off, end_resolving, kept_ref, merge_kept
from helix_tui.screens.editing.choices import Choice, ChoiceSheet, LineSheet
from helix_tui.screens.editing.preview_text import NoEditor, editor_words
from helix_tui.screens.external_editor import run_editor
from helix_tui.screens.loop.kept_change import carry_through, kept_changes

if TYPE_CHECKING:
    from collections import Counter

    from helix_tui.core.ddx.attempts.attempt import Attempt
    from helix_tui.core.editing.execute.gate import WriteGate
    from helix_tui.core.ground.project import Project
    from helix_tui.core.memory import MemoryStore
    from helix_tui.core.memory.lessons.changes import MemoryChanges
    from helix_tui.screens.base import Console, HelixScreen

MOST_MODELS = 8


class BesideQueue(Struct, frozen=True):
    """One thing done beside the queue, in a worker thread: each way does it and says what came of it."""

    do: Callable[[], str]
    undo: Callable[[], str]


# --- put off ----------------------------------------------------------------------------------------------


def snooze_sheet(count: int, now: int, until: Callable[[int | None], object]) -> ChoiceSheet:
    """For how long some needs are put off; None is until they change."""
    whom = "this" if count == 1 else f"{count:,} of these"
    choices = [
        Choice("1", "1", "an hour", "", partial(until, now + HOUR_S * NS)),
        Choice("2", "2", "tomorrow", f"{MORNING}:00", partial(until, next_morning(now))),
        Choice(
            "3",
            "3",
            "until it changes",
            "until the bead, its attempt or the reason changes",
            partial(until, None),
        ),
    ]
    return ChoiceSheet(f"snooze {whom}", choices)


def snoozing(project: Project, gate: WriteGate, put: Callable[[], Snoozes], said: str) -> BesideQueue:
    """Putting needs off, or bringing them back; undo leaves each as it stood.

    Args:
        project: whose needs they are.
        gate: what lets the list of them be written.
        put: does it; how each stood before.
        said: what was done, in words.
    """
    stood: dict[str, Snooze | None] = {}

    def do() -> str:
        stood.update(put())
        return f"{said} · u undoes it"

    def undo() -> str:
        set_snoozes(project, gate, stood)
        return f"undone: {said}"

    return BesideQueue(do, undo)


# --- lessons ----------------------------------------------------------------------------------------------


def settle_lessons(project: Project, needs: Sequence[Need], *, accept: bool, clock: Callable[[], int]) -> str:
    """Accept or decline lessons; what came of it. For a worker thread.

    Raises:
        OperationRefused: the memory cannot be changed.
    """
    from helix_tui.core.memory.lessons.proposals import Proposals

    wanted = {need.ref for need in needs}
    with _changes(project, clock) as (memory, changes):
        chosen = [each for each in Proposals(memory).all() if str(each.id) in wanted]
        done, refused = changes.accept(chosen) if accept else (changes.decline(chosen), [])
    said = f"{clean_line(done.title, 200)} · u undoes it" if done is not None else "nothing was changed"
    return "; ".join([said, *(clean_line(why, 200) for why in refused)])


def undo_lessons(project: Project, *, clock: Callable[[], int]) -> str:
    """Undo the last change of the memory; what came of it. For a worker thread.

    Raises:
        OperationRefused: what it changed has been changed since.
    """
    with _changes(project, clock) as (_, changes):
        done = changes.undo()
    return f"undone: {clean_line(done.title, 200)}" if done is not None else "there is nothing to undo"


@contextmanager
def _changes(project: Project, clock: Callable[[], int]) -> Iterator[tuple[MemoryStore, MemoryChanges]]:
    """The open memory; its libraries take half a second, which only those pay who change it."""
    from helix_tui.core.memory import MemoryFault, database_path, look_into
    from helix_tui.core.memory.lessons.changes import MemoryChanges

    try:
        with look_into(database_path(project), clock=clock) as memory:
            yield memory, MemoryChanges(memory)
    except MemoryFault as fault:
        raise OperationRefused(f"{fault.message}; {fault.advice}") from None


# --- another attempt --------------------------------------------------------------------------------------


def retry_sheet(console: Console, needs: Sequence[Need], models: Counter[tuple[str, str]]) -> ChoiceSheet:
    """Which model attempts some beads once more; each choice shows the command that it runs.

    Args:
        models: (harness, model) of past attempts, and how often.
    """
    ids = tuple(need.bead_id for need in needs)
    controls = console.loop_controls

    def words(who: AgentChoice | None) -> str:
        found = controls.one_bead_words(ids[0], who)
        more = f", then {len(ids) - 1:,} more" if len(ids) > 1 else ""
        return f"{shlex.join(found)}{more}" if found else ""

    def run(*who: AgentChoice) -> Callable[[], None]:
        return partial(carry_through, console, ids, partial(controls.run_beads, ids, *who))

    off = "" if words(None) else "this ddx has no command that executes one bead"
    choices = [Choice("0", "0", "the project's default", words(None), run(), off)]
    for place, ((harness, model), count) in enumerate(models.most_common(MOST_MODELS), 1):
        who = AgentChoice(harness, model)
        said = f"{words(who)}   {counted(count, 'attempt')} so far"
        label = clean_line(f"{harness} {model}", 60)
        choices.append(Choice(str(place), str(place), label, said, run(who), off))

    # a ddx of April refuses a model without its harness
    harness = controls.who.harness or next((name for (name, _), _ in models.most_common() if name), "")

    def typed(text: str) -> None:
        if text:
            run(AgentChoice(harness, text))()

    ask = partial(console.push_screen, LineSheet("which model?", "model", typed))
    choices.append(Choice("t", "t", "another model", "type its name", ask, off))
    about = "The bead is attempted once, in the background. This costs money."
    if len(ids) > 1:
        about = f"{len(ids):,} beads are attempted once each, one after the other, in the background. This costs money."
    if kept_changes(console, ids):
        about += " This ddx may land a kept change as it is, without an agent; you are asked once more."
    title = f"retry {clean_line(', '.join(ids[:3]), 80)}{' …' if len(ids) > 3 else ''} with which model?"
    return ChoiceSheet(title, choices, about)


# --- a merge with conflicts -------------------------------------------------------------------------------


class Resolving:
    """A kept change merged with its conflicts in the user's editor: git in a thread, the editor in the terminal."""

    def __init__(self, screen: HelixScreen, need: Need, attempt: Attempt | None, made: Callable[[str], object]) -> None:
        """``made`` is told the merge commit, where one was made."""
        self._screen, self._need, self._attempt, self._made = screen, need, attempt, made
        self._root = screen.console.snapshot.project.root

    def begin(self) -> None:
        """Merge; where that conflicts, open the editor."""
        try:
            words = editor_words(os.environ)
        except NoEditor as error:
            self._say(str(error))
            return
        self._in_thread(
            lambda: merge_kept(self._root, self._need.bead_id, kept_ref(self._attempt), keep_conflict=True),
            lambda merged: self._edit(words, merged) if merged.conflicts else self._made(merged.sha),
        )

    def _edit(self, words: Sequence[str], merged: MergeOutcome) -> None:
        files = [os.fspath(path) for path in merged.conflicts]
        problem = ""
        try:
            with self._screen.app.suspend():
                code = run_editor([*words, *files])
            problem = f"the editor ended with {code}" if code else ""
        except SuspendNotSupported:
            problem = "this terminal cannot be given to an editor"
        except OSError as error:
            problem = clean_line(str(error), 200)
        if problem:
            said = f"{problem}: the merge was aborted"
            self._in_thread(lambda: call_off(self._root), lambda _: self._say(said))
        else:
            self._in_thread(lambda: end_resolving(self._root, merged.conflicts), self._made)

    def _in_thread(self, work: Callable[[], Any], done: Callable[[Any], object]) -> None:
        call = self._screen.app.call_from_thread

        def do() -> None:
            try:
                found = work()
            except (OperationRefused, OSError) as error:
                call(self._say, str(error))
                return
            call(done, found)

        self._screen.run_worker(do, thread=True, group="resolve")

    def _say(self, text: str) -> None:
        self._screen.console.say(clean_line(text, 400), "warning")
