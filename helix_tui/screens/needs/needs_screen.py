"""Needs me: everything that waits for a person, grouped, each with its reason, what it blocks, and its keys.

The supervisor's home screen. Every key acts on the marked rows, else on the row, or on a whole group from its
heading; a change to the queue is previewed, journalled, and undone with ``u``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, assert_never

from textual import on
from textual.binding import BindingType

from helix_tui.core.beads.states import OPENED_BY_A_PERSON
from helix_tui.core.editing.steps import named
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.supervision.decide.need_changes import (
    AnswerRequest,
    LandRequest,
    OpenRequest,
    kept_change,
    settle_lessons,
    undo_lessons,
)
from helix_tui.core.supervision.decide.need_kinds import KINDS, STALE_CLAIMS, ActionId
from helix_tui.core.supervision.decide.need_view import (
    actions_of,
    assign_to,
    bring_back,
    by_means,
    operations_for,
    put_off,
    shared_actions,
)
from helix_tui.core.supervision.decide.needs import Need, conflict_ref
from helix_tui.core.supervision.requests import hold_request, recovery, request_for, upkeep
from helix_tui.core.supervision.signals.escalation import Kept
from helix_tui.core.supervision.signals.questions import MAX_QUESTION
from helix_tui.core.supervision.stages.landing import KeptChange, Landing, kept_ref, resolve
from helix_tui.keymap import BY_ID, bindings, names, shown
from helix_tui.screens.editing.choices import Choice, ChoiceSheet, LineSheet
from helix_tui.screens.editing.confirm import kept_changes
from helix_tui.screens.editing.forms import editor_words
from helix_tui.screens.external_editor import leave_for, open_first_change
from helix_tui.screens.needs import actions
from helix_tui.screens.needs.actions import QuestionSheet, answer_choices
from helix_tui.screens.needs.need_list import KEYS, NeedList, title_of
from helix_tui.screens.sheet import LinesSheet
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.base.row_list import RowList

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.attempt import Attempt
    from helix_tui.core.supervision.signals.orphans import Orphan

Steps = list[actions.BesideQueue]


class NeedsScreen(NeedList):
    """``!``"""

    SCOPE = "needs"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("needs")]

    # --- acting ---------------------------------------------------------------------------------------------

    def _able(self, action: ActionId) -> list[Need]:
        """The chosen needs to which the action applies; a notice if there are none, or nothing may be changed."""
        # snoozed needs have to be brought back first
        chosen = [need for need in self.chosen() if need in self.console.needs]
        able = [need for need in chosen if action in {each.id for each in self._actions(need)}]
        if not able:
            self._advise(chosen)
            return []
        return able if self.may_change() else []

    def _actions(self, need: Need) -> tuple[Any, ...]:
        return actions_of(need, without=self._without(need))

    def _advise(self, needs: Sequence[Need]) -> None:
        """Tell the user which keys the row has, after a key that does not apply."""
        if not needs:
            self.console.say("nothing is selected", "warning")
            return
        keymap = self.console.keymap
        ways = [f"{shown(BY_ID[KEYS[action.id]], keymap)} {action.label}" for action in self._actions(needs[0])]
        ways.append(f"{shown(BY_ID['needs.snooze'], keymap)} snooze")
        self.console.say(f"here: {', '.join(ways)}; a lists everything", "warning")

    def action_accept(self) -> None:
        """Accept, approve, acknowledge or reopen, depending on the kind."""
        self._settle("accept")

    def action_reject(self) -> None:
        """Reject, decline, drop or refuse, depending on the kind."""
        self._settle("reject")

    def _settle(self, action: ActionId) -> None:
        yes = action == "accept"
        for means, needs in by_means(action, self._able(action)).items():
            match means:
                case "drop":
                    self._drop(needs[0])  # one by one, because each answer is previewed
                case "lesson":
                    self._lessons(needs, yes)
                case "approval":
                    for need in needs:
                        self.console.loop_controls.answer(need.question_id, "yes" if yes else "no")
                case "acknowledge":
                    self.console.acknowledge([need.bead_id for need in needs])
                    self.console.say(f"acknowledged {counted(len(needs), 'changed bead')}")
                case "focus":
                    self.look_ahead(upkeep())
                case "change":
                    self._change(action, needs)
                case _:
                    assert_never(means)

    def _change(self, action: ActionId, needs: Sequence[Need]) -> None:
        """Preview the change of the queue that an action makes; one that opens beads says what ddx then lands."""
        operations = operations_for(action, needs, self.console.snapshot.queue)
        opened = [need.bead_id for need in needs if action == "accept" and need.decision.kind in OPENED_BY_A_PERSON]
        lands = self.console.loop_controls.dialect.lands_kept
        kept = tuple(kept_changes(self.console, opened)) if lands else ()
        if operations:
            self.look_ahead(OpenRequest(tuple(operations), kept=kept) if kept else request_for(operations))

    def _lessons(self, needs: Sequence[Need], yes: bool) -> None:
        count = counted(len(needs), "lesson")
        lines: list[Line] = [[(clean_line(need.reason, 600), "text")] for need in needs]

        def decided() -> None:
            project, clock = self.console.snapshot.project, self.console.now
            settle = partial(settle_lessons, project, needs, accept=yes, clock=clock)
            self._new(actions.BesideQueue(settle, partial(undo_lessons, project, clock=clock)))

        self.app.push_screen(LinesSheet(f"{'accept' if yes else 'decline'} {count}", lines, "u undoes it.", decided))

    def _new(self, step: actions.BesideQueue) -> None:
        """Record a new action; earlier undone ones can no longer be redone."""
        self._redo.clear()
        self._job(step)

    def _job(self, step: actions.BesideQueue, came: Steps | None = None, *, back: bool = False) -> None:
        """Do or undo an action outside the queue in a thread; report the result, and look again.

        ``came``: the list that the action was taken from, and returns to if it fails.
        """
        way = self._redo if back else self._undo

        def do() -> None:
            try:
                said, severity = (step.undo if back else step.do)(), "information"
            except (HelixError, OSError) as error:
                said, severity = clean_line(str(error), 300), "warning"
            self.app.call_from_thread(self._did, said, severity, step, way if severity == "information" else came)

        self.run_worker(do, thread=True, group="needs")

    def _did(self, said: str, severity: str, step: actions.BesideQueue, to: Steps | None) -> None:
        self.console.say(said, severity)
        # only what was done can be undone, and a failed undo can be tried again
        if to is not None:
            to.append(step)
        self.marked, self._anchor = frozenset(), None
        self.console.refresh_needs()

    def action_claim(self) -> None:
        """Release stale claims, each checked again first; on other rows claim or release the bead."""
        stale_ = [need for need in self.chosen() if need.kind in STALE_CLAIMS]
        if not stale_:
            super().action_claim()
            return
        if not self.may_change():
            return
        known = {orphan.bead_id: orphan for orphan in self._claims()}
        orphans = [known[need.bead_id] for need in stale_ if need.bead_id in known]
        # all are certainly dead: each is checked again when it is released
        if len(orphans) == len(stale_):
            self.look_ahead(recovery(orphans))
        else:
            self.look_ahead(request_for(operations_for("release", stale_, self.console.snapshot.queue)))

    def _claims(self) -> tuple[Orphan, ...]:
        """The claims that are certainly dead."""
        watch = self.console.monitor
        return (*watch.concerns.orphans, *watch.concerns.dead) if watch is not None else ()

    def action_retry(self) -> None:
        """Attempt it again, with a model to choose."""
        needs = self._able("retry")
        if needs:
            self.console.push_screen(actions.retry_sheet(self.console, needs, self.console.snapshot.attempts))

    def action_land(self) -> None:
        """Merge the kept change, and close the bead."""
        self._land(self._able("land"))

    def _land(self, needs: Sequence[Need]) -> None:
        pairs = [(need, attempt) for need in needs if (attempt := self._attempt(need)) is not None]
        if pairs:
            self._preview_landing(*(kept_change(need, attempt) for need, attempt in pairs))

    def _preview_landing(self, *changes: KeptChange) -> None:
        self.look_ahead(LandRequest(Landing(changes)))

    def action_depend(self) -> None:
        """Remove the dependencies that never resolve; on other rows pick one."""
        operations = operations_for("undepend", self._of_kind("undepend"), self.console.snapshot.queue)
        if not operations:
            super().action_depend()
        elif self.may_change():
            self.look_ahead(request_for(operations))

    def action_eligible(self) -> None:
        """Keep workers from beads that a person must decide on; on other rows as usual."""
        wanted = self.may_be_held(self._of_kind("hold"))
        if not wanted:
            super().action_eligible()
        elif self.may_change():
            self.look_ahead(hold_request(wanted))

    def _of_kind(self, action: ActionId) -> list[Need]:
        return [need for need in self.chosen() if action in {each.id for each in self._actions(need)}]

    def action_edit(self) -> None:
        """Resolve a merge in the editor; on other rows edit the bead."""
        need = self.need
        attempt = self._attempt(need) if need is not None else None
        if (
            need is None
            or attempt is None
            or self.marked
            or "resolve" not in {action.id for action in self._actions(need)}
        ):
            super().action_edit()
        elif self.may_change():
            change, root = kept_change(need, attempt), self.console.snapshot.project.root
            self.run_worker(partial(self._resolve, root, change), thread=True, group="resolve", exclusive=True)

    def _resolve(self, root: Path, change: KeptChange) -> None:
        """Find the conflicts of a change, in a thread: git may take a while."""
        try:
            words, resolved = editor_words(os.environ), resolve(root, change)
        except (HelixError, OSError) as error:
            self.app.call_from_thread(self.console.say, clean_line(str(error), 400), "warning")
            return
        self.app.call_from_thread(self._resolve_by_hand, words, resolved)

    def _resolve_by_hand(self, words: Sequence[str], change: KeptChange) -> None:
        """Open the conflicts in the editor, then preview the landing with what was edited."""
        resolution = change.resolution
        files = [os.fspath(resolution.folder / name) for name in resolution.copies] if resolution is not None else []
        problem = leave_for(self.app, [*words, *files]) if files else ""
        if problem:
            self.console.say(f"{problem}: nothing was changed", "warning")
        else:
            self._preview_landing(change)

    def action_snooze(self) -> None:
        """Snooze the chosen needs; bring snoozed ones back."""
        chosen = self.chosen()
        away = {need.key for need in self.console.snoozed}
        if not chosen or not self.may_change():
            return
        project, gate, keys = self.console.snapshot.project, self.console.change_runner.curator.gate, _keys(chosen)
        # all of them are snoozed: the same key brings them back
        if keys <= away:
            wake = partial(bring_back, project, gate, keys)
            self._new(actions.snoozing(project, gate, wake, f"brought back {len(keys):,}"))
            return

        def until(instant: int | None) -> None:
            put = partial(put_off, project, gate, chosen, until=instant, by=self._me, now=self.console.now())
            self._new(actions.snoozing(project, gate, put, f"snoozed {len(keys):,}"))

        self.console.push_screen(actions.snooze_sheet(len(chosen), self.console.now(), until))

    def action_assign(self) -> None:
        """Assign the items to a person."""
        if not self.bead_ids():
            self.console.say("only an item about a bead can be assigned", "warning")
            return
        if not self.may_change():
            return
        needs, me = self.chosen(), self._me

        def to(who: str) -> None:
            title = f"assign {named(self.bead_ids())} to {clean_line(who, 60) or 'nobody'}"
            self.look_ahead(request_for(assign_to(needs, self.console.snapshot.queue, who), title))

        ask = LineSheet("assign to whom?", "name", lambda name: to(clean_line(name, 60)) if name else None)
        choices = [
            Choice("m", "m", "me", me, partial(to, me)),
            Choice("n", "n", "nobody", "", partial(to, "")),
            Choice("t", "t", "another person", "type a name", partial(self.console.push_screen, ask)),
        ]
        self.console.push_screen(ChoiceSheet("who will deal with it?", choices))

    def action_undo(self) -> None:
        """Undo the last action: here, outside the queue, else in the queue."""
        if self._undo:
            self._job(self._undo.pop(), self._undo, back=True)
        else:
            super().action_undo()

    def action_redo(self) -> None:
        """Redo the last undone action: here, outside the queue, else in the queue."""
        if self._redo:
            self._job(self._redo.pop(), self._redo)
        else:
            super().action_redo()

    # --- questions------------------------------------------------------------------------------------------

    def action_actions(self) -> None:
        """Open the row's actions; a question opens its answers directly."""
        need = self.need
        if need is not None and KINDS[need.kind].opens == "question" and not self.marked:
            if self.may_change():
                self._answer(need)
            return
        chosen = self.chosen()
        if not chosen:
            return
        offered = {KEYS[action.id]: action for action in shared_actions(chosen, self._without)}
        choices = [self._choice(key_id, each.label, each.effect) for key_id, each in offered.items()]
        more = ("needs.snooze", "needs.assign", "change.close", "change.edit", "go.open")
        choices += [
            self._choice(key_id, BY_ID[key_id].label, BY_ID[key_id].help) for key_id in more if key_id not in offered
        ]
        title, about = f"{len(chosen):,} that need you", ""
        if len(chosen) == 1:
            title, about = title_of(chosen[0], self.console.snapshot.queue), clean_line(chosen[0].reason, MAX_QUESTION)
        self.console.push_screen(ChoiceSheet(title, choices, about))

    def _choice(self, key_id: str, label: str, effect: str) -> Choice:
        key, keymap = BY_ID[key_id], self.console.keymap
        return Choice(names(keymap.get(key.id, key.keys))[0], shown(key, keymap), label, effect, self._doer(key.action))

    def _doer(self, action: str) -> Callable[[], object]:
        if action == "open":
            return partial(self.call_later, self.list.action_open)
        # later: the sheet has to be closed before the action asks which screen is active
        return partial(self.call_later, self.app.run_action if action == "loop" else self.run_action, action)

    def _answer(self, need: Need) -> None:
        """Show the question with its answers; without a bead and without answers, ask for a typed one at once."""
        bead = self.console.snapshot.queue.beads.get(need.bead_id)
        words = partial(self._in_words, need)
        if (bead is None and not need.options) or (need.kind in ("escalation", "gap") and not need.question_id):
            words()
            return
        attempt = self._attempt(need)
        kept = bool(kept_ref(attempt)) and attempt is not None and attempt.preserved
        choices = answer_choices(
            need.options,
            answer=partial(self._record, need),
            land=partial(self._land, [need]) if kept else None,
            drop=partial(self._drop, need) if kept else None,
            edit=partial(self.call_later, super().action_edit) if bead is not None else None,
            words=words,
        )
        self.console.push_screen(
            QuestionSheet(
                f"answer {need.question_id}",
                choices,
                clean_line(need.reason, MAX_QUESTION),
                bead=bead,
                attempt=attempt,
                root=self.console.snapshot.project.root,
            )
        )

    def _in_words(self, need: Need) -> None:
        about = clean_line(need.reason, MAX_QUESTION)
        title = f"answer {need.question_id}" if need.question_id else "decide"
        written = lambda text: self._record(need, text) if text else None  # noqa: E731
        self.console.push_screen(LineSheet(title, "answer", written, about))

    def _record(self, need: Need, text: str) -> None:
        """Record an answer, with a preview if it is written into a bead."""
        if need.bead_id in self.console.snapshot.queue.beads:
            self.look_ahead(AnswerRequest(need, text, self._kept), ended=lambda _: self.console.refresh_needs())
        elif need.kind == "contradiction":
            summary = self.console.status_summary
            found = (
                [each for each in summary.unasked if conflict_ref(each) == need.conflict] if summary is not None else []
            )
            if found:
                self.console.loop_controls.settle(found[0], text)
            else:
                self.console.say("the documents no longer say this", "warning")
        else:
            self.console.loop_controls.answer(need.question_id, text)

    def _drop(self, need: Need) -> None:
        self._record(need, "drop: the kept change is not landed; start over")

    @property
    def _kept(self) -> Kept:
        return self.console.snapshot.attempts.deciding

    # --- navigation -----------------------------------------------------------------------------------------

    @on(RowList.Opened, "#overlay")
    def go_there(self, event: RowList.Opened) -> None:
        """Open a question, an attempt, a bead, the unread lines; fold or unfold a heading."""
        event.stop()
        row = self._rows.get(event.key)
        if row is None:
            return
        if row.kind != "need":
            closes = row.kind == "group" and row.group not in self._folded
            (self.action_fold if closes else self.action_unfold)()
            return
        need = row.needs[0]
        opens = KINDS[need.kind].opens
        if opens == "lines":
            self.console.list_unread()
        elif opens == "question":
            self.action_actions()
        elif opens == "attempt" and self._attempt(need) is not None:
            self.console.open_attempt(need.attempt_id)
        elif need.bead_id:
            self.console.go_to_bead(need.bead_id)
        else:
            self.call_later(self.app.run_action, "loop")

    def action_turn_tab(self, step: int) -> None:
        """Show the diff of the row's attempt, or compare the attempt with the previous one on its bead."""
        attempt = self._latest()
        if attempt is None:
            self.console.say("no attempt on this row", "warning")
        else:
            self.console.open_attempt(attempt.attempt_id, "diff" if step > 0 else "compare")

    def _latest(self) -> Attempt | None:
        """The row's attempt: the one that caused it, else the latest on its bead."""
        need = self.need
        if need is None:
            return None
        tried = self.console.snapshot.attempts.of_bead(need.bead_id) if need.bead_id else ()
        return self._attempt(need) or next(iter(tried), None)

    def action_open_editor(self) -> None:
        """Open that attempt's first change in the editor."""
        open_first_change(self, self._latest())

    def show_bead(self, bead_id: str) -> None:
        """Leave the cursor where it is: this is not a list of beads."""

    def commands(self) -> Iterable[tuple[str, str, Callable[[], object]]]:
        """The actions on beads, and on all drift at once."""
        yield from super().commands()
        drift = [need.bead_id for need in self.console.needs if need.kind == "drift"]
        if drift and not self.console.read_only:
            said = f"acknowledge {counted(len(drift), 'changed bead')}"
            yield "acknowledge all drift", said, partial(self.console.acknowledge, drift)
        wanted = self.may_be_held(self.console.needs)
        if wanted and not self.console.read_only:
            request = hold_request(wanted)
            yield "keep beads from workers until you decide", request.title, partial(self.look_ahead, request)


def _keys(needs: Iterable[Need]) -> frozenset[str]:
    return frozenset(need.key for need in needs)
