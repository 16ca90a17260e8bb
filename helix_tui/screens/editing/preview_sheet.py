"""What a change would do, before it runs: its commands, what follows, and the way back."""

from __future__ import annotations

from textual import events, on

from helix_tui.core.beads.graph import with_titles
from helix_tui.core.editing.undo import PlanChanged
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.keymap import id_of
from helix_tui.screens.editing.change_runner import Preview, Trouble
from helix_tui.screens.editing.preview_text import (
    Ended,
    render_differences,
    render_outlook,
    render_trouble,
    run_request,
)
from helix_tui.screens.editing.requests import ChangeRequest, UndoRequest
from helix_tui.screens.sheet import Sheet
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.form import Page


class PreviewSheet(Sheet):
    """Shown before every change. Enter runs exactly the commands that stand here."""

    FOOTER = ("go.open=run", "copy.id=copy commands", "go.back=cancel")

    def __init__(
        self,
        request: ChangeRequest,
        ended: Ended | None = None,
        *,
        changed: PlanChanged | None = None,
    ) -> None:
        """Make a sheet.

        Args:
            request: what may be done.
            ended: told when it was done, or why it was not; never told when it was left.
            changed: it was shown before, and the queue has changed since, so that other commands would run.
        """
        super().__init__(clean_line(request.title, 200))
        self.request = request
        self.outlook: Preview | None = None
        self._ended = ended
        self._changed = changed

    def on_mount(self) -> None:
        """Begin to look ahead."""
        super().on_mount()
        self._look(self.request)

    def _look(self, request: ChangeRequest) -> None:
        self.request, self.outlook = request, None
        self.caption.show(clean_line(request.title, 200))

        def arrived(outlook: Preview) -> None:
            # a key may have turned it into another request meanwhile
            if self.request is request and not self.has_left:
                self.outlook = outlook
                self.caption.show(clean_line(with_titles(outlook.plan.title, outlook.queue_state.queue.beads), 200))
                self.footer.show(self.FOOTER if outlook.plan.steps else ("go.back",))
                self.rewrite()

        def failed(error: Trouble) -> None:
            if self.request is request and not self.has_left:
                self.dismiss()
                render_trouble(self.console, request, error)
                if self._ended is not None:
                    self._ended(error)

        self.console.change_runner.foresee(request, arrived, failed)

    def write(self, page: Page) -> None:
        """The outlook, once it is there."""
        if self.outlook is None:
            page.line([("… working out the effect", "waiting")])
            return
        if self._changed is not None:
            why = "The queue changed since this was shown. Nothing ran. This is the plan now:"
            page.paragraph([("◆ ", "attention bold"), (why, "attention")], 2)
            render_differences(page, self._changed.differences)
            page.blank()
        render_outlook(page, self.outlook, self.request.already)

    def on_key(self, event: events.Key) -> None:
        """A key of the operation itself turns it into another one."""
        key_id = id_of(event.key, "beads", self.console.keymap)
        other = self.request.turned(key_id) if key_id else None
        if other is not None:
            event.stop()
            self._look(other)

    @on(RowList.Opened)
    def run_it(self, event: RowList.Opened) -> None:
        """Run what is shown."""
        event.stop()
        if self.outlook is None:
            return
        self.dismiss()
        if self.outlook.plan.steps:
            run_request(
                self.console,
                self.request,
                self.outlook.plan,
                self._take_back,
                self._ended,
                again=self._show_again,
            )

    def _show_again(self, error: PlanChanged) -> None:
        """Nothing ran: the queue is another one, and so is the plan."""
        self.console.push_screen(PreviewSheet(self.request, self._ended, changed=error))

    def _take_back(self) -> None:
        self.console.push_screen(PreviewSheet(UndoRequest("undo")))

    async def action_back(self) -> None:
        """Leave it; a text that was written for it is not lost."""
        await super().action_back()
        if self.request.draft_file:
            kept = clean_line(self.request.draft_file, 400)
            self.console.say(f"nothing was changed; your text is kept in {kept}")

    def action_copy_id(self) -> None:
        """The commands, to the clipboard."""
        if self.outlook is not None and self.outlook.plan.lines:
            lines = self.outlook.plan.lines
            what = "the command" if len(lines) == 1 else f"{len(lines):,} commands"
            self.console.copy("\n".join(clean_block(line) for line in lines), what)
