"""Ask: questions on the left with their steps as they happen, on the right the answer with its sources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical

from helix_tui.core.ask.index.keeper import State
from helix_tui.core.ask.retrieval.tree_walk import DEPTHS, Depth
from helix_tui.core.ask.sessions.session import News
from helix_tui.core.beads.filter_language import Completion
from helix_tui.core.ddx.runs.transcript import attached_events
from helix_tui.core.evidence.records import today_of
from helix_tui.core.evidence.session import AskRequest, AskSession, Document, ModelSettings
from helix_tui.core.evidence.sources import ArchivedAttempts, WorkRecords, read_memories, read_runs
from helix_tui.core.ground.text import clean_line
from helix_tui.keymap import bindings
from helix_tui.screens.ask.answers import (
    TABS,
    AnswerView,
    Drafted,
    IndexStands,
    QuestionLine,
    Stepped,
    index_words,
    open_file,
    open_record,
)
from helix_tui.screens.background import JobHost
from helix_tui.screens.panes import ReadingScreen
from helix_tui.settings.file import load_settings
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.chrome.header import Caption
from helix_tui.widgets.text.answer import record_of, sense_of, target_of
from helix_tui.widgets.text.ask_runs import READY, RUNNING, RunRow, RunRows, StepDone, doing_paras, doing_words
from helix_tui.widgets.text.pane import TextPane

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.attempt import Attempt
    from helix_tui.core.snapshot.snapshot import Change, Snapshot
    from helix_tui.widgets.chrome.bottom import Prompt


class AskScreen(JobHost, ReadingScreen):
    """Screen 4."""

    NAME = "ask"
    PANES = "#ask-panes"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("ask")]
    FOOTER = ("ask.new=ask, or type", "ask.on", "go.open", "go.view", "ask.model", "app.help")
    READING_FOOTER = ("go.open", "go.back", "ask.on", "go.view", "move.next-part", "app.help")
    CLARIFY_FOOTER = ("ask.first", "ask.second", "ask.new", "go.view", "app.help")

    def __init__(self) -> None:
        super().__init__()
        self.list = RowList(id="asked")
        self.caption = Caption("questions")
        self.steps_caption = Caption("steps", id="steps-caption")
        self.brief = TextPane(id="ask-steps")
        self.view = AnswerView(id="answer-pane", classes="beside")
        self.questions: AskSession | None = None
        self.with_model = False
        self.depth: Depth = "root_to_anchor"
        self._request: AskRequest | None = None
        """What is being answered."""
        self._news: list[StepDone] = []
        self._draft: Document | None = None
        self._ready: tuple[str, ...] = ()
        self._wanted = ""
        """A question that was asked before the first snapshot."""
        self._archived: ArchivedAttempts | None = None
        self.line = QuestionLine(self._jobs, self._show_line, self.set_timer)

    def compose_body(self) -> ComposeResult:
        """Questions and steps on the left, the run under the cursor on the right."""
        with Container(id="ask-panes"):
            with Vertical(id="asked-pane"):
                yield self.caption
                yield self.list
                yield self.steps_caption
                yield self.brief
            yield self.view

    def on_unmount(self) -> None:
        """Release the session."""
        if self.questions is not None:
            self.questions.stop()

    # --- news ---------------------------------------------------------------------------------------------

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Open the session of the project with the first snapshot; show the questions."""
        if self.questions is None and snapshot.condition != "loading":
            settings = load_settings()
            self.questions = self.view.questions = AskSession(
                snapshot.project,
                ddx=self.console.ddx_named,
                keep=not self.console.read_only,
                hear=self._hear_index,
                present=self._work,
                who=ModelSettings(set_agent=settings.agent, set_model=settings.model),
            )
            self.questions.start()
            self._jobs.start("ready", self.questions.ready, self._take_ready, self._say_trouble)
        self._show_rows()
        self.show_detail()

    def _work(self) -> WorkRecords:
        """The present records of the work; called in the asking thread."""
        snapshot = self.console.snapshot
        # if a bead is in both, the tracker's record counts
        beads = {**snapshot.archive, **snapshot.tracker.beads}
        project = snapshot.project
        memories, runs = read_memories(project), read_runs(project)
        events = partial(attached_events, project.ddx_dir)
        book = snapshot.attempts
        if self._archived is None:
            self._archived = ArchivedAttempts(project)
        past = self._archived.of(snapshot.archive)

        def attempts(bead_id: str) -> Sequence[Attempt]:
            return past(bead_id) if bead_id in snapshot.archive else book.of_bead(bead_id)

        return WorkRecords(beads, attempts, memories, runs, events=events, today=today_of(snapshot.queue))

    def _hear_index(self, state: State) -> None:
        """Pass the state of the index on to the app's thread; called in the thread that keeps the index."""
        self.post_message(IndexStands(state))

    def _take_ready(self, ready: tuple[str, ...]) -> None:
        self._ready = ready
        self._show_rows()
        self.show_detail()
        wanted, self._wanted = self._wanted, ""
        self.ask(wanted)

    def tick(self) -> None:
        """Refresh the ages."""
        super().tick()
        if self.is_mounted:
            self._show_rows()

    def on_index_stands(self, event: IndexStands) -> None:
        """Indexing has progressed, or is done."""
        self._say_index(event.state)

    def _say_index(self, state: State) -> None:
        model = " · model on" if self.with_model else ""
        said = index_words(state, narrow=self.is_narrow)
        self.caption.show("questions", f"{clean_line(said, 100)}{model}")

    def _say_trouble(self, said: str) -> None:
        self.console.say(said, "error")

    # --- questions ----------------------------------------------------------------------------------------

    def _show_rows(self) -> None:
        rows: list[RunRow] = []
        if self._request is not None:
            doing = self._news[-1].words if self._news else "begins"
            rows.append(RunRow(RUNNING, self._request.text.partition("\n")[0], note=doing))
        past = self.questions.history.list() if self.questions is not None else ()
        marked = self.view.marked
        rows += [
            RunRow(one.id, one.question, one.result, one.seconds, one.asked_at, marked=one.id == marked) for one in past
        ]
        asked = {one.question for one in past}
        ready = [text for text in self._ready if text not in asked]
        if ready:
            rows.append(RunRow("ready", note="suggested questions"))
            rows += [RunRow(f"{READY}{text}", text) for text in ready]
        if not rows:
            rows.append(RunRow("none", note="nothing asked yet: type a question"))
        self.list.show(RunRows(rows, self.console.now()))
        if self.questions is not None:
            self._say_index(self.questions.state)

    @property
    def key(self) -> str:
        """The row under the cursor."""
        return self.list.selected_key or ""

    @property
    def document(self) -> Document | None:
        """The run that is shown."""
        return self.view.document

    def show_detail(self) -> None:
        """Show the run under the cursor; while a question is typed, the files that match it."""
        key, questions = self.key, self.questions
        if self.line.text:
            self.view.show_files(self.line.text, self.line.files)
        elif key == RUNNING and self._request is not None:
            self.view.show_running(self._request.text, tuple(self._news), self._draft)
            self._show_steps(self._news)
        # already read, or never asked: there is no file to read
        elif key in self.view.loaded or not key or key.startswith(READY):
            document = self.view.loaded.get(key)
            self.view.show(document, key)
            self._show_steps(())
        elif questions is not None:
            work = partial(questions.history.load, key)
            self._jobs.start("past", work, partial(self._take_past, key), self._say_trouble)
        self.say_keys()

    def _show_steps(self, doing: Sequence[StepDone]) -> None:
        """Show the progress below the questions; when it is done, the questions get the space back."""
        for part in (self.steps_caption, self.brief):
            part.set_class(bool(doing), "-doing")
        self.brief.update_text(doing_paras(doing))

    def _take_past(self, key: str, document: Document | None) -> None:
        if document is not None:
            self.view.loaded[key] = document
            if self.key == key:
                self.show_detail()

    def say_keys(self) -> None:
        """Show the keys of the focused pane in the footer, or those that choose a sense."""
        if self.prompt is None:
            options = ((self.document or {}).get("clarify") or {}).get("options")
            reading = self.READING_FOOTER if self.focused is self.view.pane else self.FOOTER
            self.footer.key_ids = tuple(self.CLARIFY_FOOTER if options else reading)

    def on_resize(self) -> None:
        """Lay the rows out for the new width."""
        self._show_rows()

    # --- asking -------------------------------------------------------------------------------------------

    async def action_ask(self) -> None:
        """Type a question."""
        await self.begin("")

    async def action_ask_on(self) -> None:
        """Type a question that keeps the evidence of the answer that is shown."""
        if self.document is None or self.key not in self.view.loaded:
            self.console.say("no answer to continue from: type a question", "warning")
            return
        await self.begin("", follows=self.key)

    async def begin(self, text: str, follows: str = "") -> None:
        """Open the prompt with a text in it; ``follows`` is the run that the question follows up."""
        if self.prompt is None:
            from helix_tui.widgets.chrome.bottom import Prompt

            self.line.follows = follows
            self.prompt = Prompt("follow up" if follows else "ask", self._ways_on, text=text)
            await self.mount(self.prompt)

    async def take_letter(self, letter: str, does: str, act: Callable[[], Awaitable[object]]) -> bool:
        """Letters typed in quick succession begin a question."""

        async def press() -> None:
            if self.is_current:  # unless the user has gone elsewhere with the mouse meanwhile
                await act()

        return self.prompt is None and await self.line.take_letter(letter, does, press, self.begin)

    def _ways_on(self, text: str, cursor: int) -> list[Completion]:
        """Suggested questions, earlier ones, and files."""
        past = self.questions.history.list() if self.questions is not None else ()
        return self.line.ways_on([*self._ready, *(one.question for one in past)], text)

    def on_prompt_changed(self, event: Prompt.Changed) -> None:
        """Show the matching files while a question is typed."""
        event.stop()
        if event.prompt is self.prompt:
            self.line.find(event.text, self.questions)

    def _show_line(self) -> None:
        if self.prompt is not None:
            self.prompt.offer()
            self.show_detail()

    async def on_prompt_done(self, event: Prompt.Done) -> None:
        """Ask the typed question."""
        if event.prompt is not self.prompt:
            return
        event.stop()
        self.prompt = None
        self.list.focus(scroll_visible=False)
        await event.prompt.remove()
        self.say_keys()
        chosen = self.line.chosen(event.text)
        self.line.end()
        self.show_detail()
        if event.kept and chosen is not None:
            self._say_if(open_file(self.app, self.questions, chosen.file, chosen.line))
        elif event.kept and self._request is not None:
            self.console.say("one question at a time; this one is still being answered", "warning")
            await self.begin(event.text, self.line.follows)
        elif event.kept:
            self.ask(event.text, follows=self.line.follows)

    def ask(self, text: str, sense: str = "", follows: str = "") -> None:
        """Ask; steps show as they happen."""
        questions = self.questions
        if questions is None:
            self._wanted = text
        if questions is None or not text.strip():
            return
        if self._request is not None:
            self.console.say("one question at a time; this one is still being answered", "warning")
            return
        self._request = AskRequest(text.strip(), sense, self.depth, self.with_model, follows)
        self._news, self._draft, self.view.tab = [], None, "answer"
        work = partial(questions.answer, self._request, self.console.now(), self._hear_step, self._hear_draft)
        self._jobs.start("ask", work, self._take_answer, self._take_failure)
        self._show_rows()
        self.list.select(RUNNING)
        self.show_detail()
        if self.is_narrow:
            self.open_detail()

    def _hear_step(self, news: News) -> None:
        """Pass a step on to the app's thread; called in the asking thread."""
        self.post_message(Stepped(news))

    def _hear_draft(self, document: Document) -> None:
        """Pass a draft on to the app's thread; called in the asking thread."""
        self.post_message(Drafted(document))

    def on_stepped(self, event: Stepped) -> None:
        """Add a step."""
        news = event.news
        self._news.append(doing_words(news.stage, news.text, news.step.action if news.step is not None else ""))
        self._show_rows()
        self.show_detail()

    def on_drafted(self, event: Drafted) -> None:
        """Show something to read while the model is asked."""
        if self._request is not None:
            self._draft = event.document
            self.show_detail()

    def _take_answer(self, found: tuple[str, Document]) -> None:
        ident, document = found
        watching = self.key == RUNNING
        self._request = None
        self.view.loaded[ident] = document
        self._show_rows()
        # a user who has gone to another run meanwhile stays there
        if watching and not self.list.select(ident):
            self.view.show(document, ident)
            self._show_steps(())
        else:
            self.show_detail()

    def _take_failure(self, said: str) -> None:
        self._request = None
        self._show_rows()
        self.show_detail()
        self._say_trouble(said)

    def action_ask_again(self) -> None:
        """Ask the same question on the present files."""
        if self.document is not None:
            # a follow-up is asked again as a follow-up
            follows = str((self.document.get("follows") or {}).get("id", ""))
            self.ask(str(self.document.get("question", "")), follows=follows)

    def action_choose(self, place: int) -> None:
        """Choose one of two senses."""
        options = ((self.document or {}).get("clarify") or {}).get("options") or ()
        if place < len(options):
            self._ask_sense(str(options[place].get("label", "")))

    def _ask_sense(self, label: str) -> None:
        self.ask(str((self.document or {}).get("question", "")), label)

    # --- opening ------------------------------------------------------------------------------------------

    @on(RowList.Opened, "#asked")
    def open_row(self, event: RowList.Opened) -> None:
        """Ask a suggested question; open a run."""
        event.stop()
        if event.key.startswith(READY):
            self.ask(event.key.removeprefix(READY))
        if self.is_narrow or not event.key.startswith(READY):
            self.open_detail()

    @on(RowList.Opened, "#answer")
    def open_line(self, event: RowList.Opened) -> None:
        """Open a source in the editor, or choose an option."""
        event.stop()
        # a row's key is its paragraph's and, behind a line break, which of its lines the row is
        key = event.key.partition("\n")[0]
        target, sense, record = target_of(key), sense_of(key), record_of(key)
        if sense:
            self._ask_sense(sense)
        elif record is not None:
            self._say_if(open_record(self.console, self.app, self.questions, *record))
        elif target is not None:
            self._say_if(open_file(self.app, self.questions, *target))

    def _say_if(self, said: str) -> None:
        if said:
            self.console.say(said, "warning")

    # --- keys ---------------------------------------------------------------------------------------------

    def detail_panes(self) -> tuple[TextPane]:
        """The answer."""
        return (self.view.pane,)

    def action_turn_tab(self, step: int) -> None:
        """Go to the next or previous tab of the answer."""
        self.view.turn(step)

    def action_why(self) -> None:
        """Show why each span was kept or dropped; again, back to the answer."""
        self.view.open_tab("evidence" if self.view.tab != "evidence" else "answer")

    def action_turn_depth(self) -> None:
        """Change the depth of the tree walk, and ask again with it."""
        self.depth = DEPTHS[(DEPTHS.index(self.depth) + 1) % len(DEPTHS)]
        self.console.say(f"tree walk: {self.depth.replace('_', ' ')}")
        self.action_ask_again()

    def action_turn_model(self) -> None:
        """Turn answers phrased by a model on or off."""
        self.with_model = not self.with_model
        self._show_rows()
        self.console.say("a model phrases the next answer" if self.with_model else "answers are made without a model")

    def action_mark(self) -> None:
        """Compare others with this run."""
        if self.key in self.view.loaded:
            self.view.mark(self.key)
            self._show_rows()

    def action_trace(self) -> None:
        """Write the run as JSON lines."""
        questions, document = self.questions, self.document
        if document is None or questions is None:
            return
        if self.console.read_only:
            self.console.say("read-only: nothing is written", "warning")
            return
        work = partial(questions.trace, self.key, document)
        self._jobs.start("trace", work, lambda where: self.console.say(f"written: {where}"), self._say_trouble)

    def action_copy_id(self) -> None:
        """Copy the place under the cursor, or the hash of the run's items."""
        target = self.view.target if self.focused is self.view.pane else None
        text = f"{target[0]}:{target[1]}" if target is not None else self.view.hash
        if text:
            self.console.copy(clean_line(text, 400), clean_line(text, 60))

    def action_copy_markdown(self) -> None:
        """Copy the answer with its sources."""
        if self.document is not None:
            self.console.copy(str(self.document.get("answer", "")), "the answer")

    def commands(self) -> Iterable[tuple[str, str, Callable[[], object]]]:
        """The palette's commands for this screen."""
        for name in TABS:
            yield f"ask {name}", "another view of this answer", partial(self.view.open_tab, name)
        for text in self._ready:
            yield f"ask: {text}", "a suggested question", partial(self.ask, text)
