"""The bottom of a screen: the footer with at most six keys, and prompts to type in or to choose a bead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Input

from helix_tui.core.beads.filter_language import Completion
from helix_tui.core.ground.text import clean_line
from helix_tui.keymap import BY_ID, names, shown
from helix_tui.widgets.base.line import Line, Span, SpanLine, column, width_of
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Gesture, Row, Rows
from helix_tui.widgets.chrome.header import Caption

MAX_KEYS = 6

_MAX_COMPLETIONS = 8
_STEPS = {"down": 1, "ctrl+n": 1, "up": -1, "ctrl+p": -1}
MAX_LINES = 8


class KeyLine(SpanLine):
    """The footer. Its last key (help) stays when others are dropped; a click on a key presses it."""

    class Pressed(Gesture):
        """A key was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name
            """In Textual's spelling."""

    key_ids: reactive[tuple[str, ...]] = reactive(())
    """The keys shown, in order; the last one stays when others do not fit."""
    note = reactive("")
    """Shown in place of the keys while it is not empty."""
    work = reactive("")
    """The present activity, shown first while it is not empty."""

    def __init__(self, key_ids: Sequence[str], keymap: dict[str, str] | None = None) -> None:
        super().__init__()
        self.set_reactive(KeyLine.key_ids, tuple(key_ids))
        self.keymap = keymap or {}

    def on_click(self, event: events.Click) -> None:
        """Press the key under the pointer."""
        at = 0
        for key_id, part in self._parts(self.size.width):
            at += width_of(part)
            if event.x < at:
                if key_id:
                    keys = self.keymap.get(key_id, BY_ID[key_id].keys)
                    self.post_message(self.Pressed(names(keys)[0]))
                return

    def spans(self, width: int) -> Line:
        """As many keys as fit."""
        return [span for _, part in self._parts(width) for span in part]

    def _parts(self, width: int) -> list[tuple[str, list[Span]]]:
        """The parts of the line, each with the id of its key; plain text has none."""
        # its room is reserved first: the others are dropped from the right, and the help key stays
        *others, last = [(key_id.partition("=")[0], self._key(key_id)) for key_id in self.key_ids[:MAX_KEYS]]
        if self.note:
            others = [("", [(f" {self.note}  ", "waiting")])]
        if self.work:
            others = [("", [(f" {self.work}  ", "waiting bold")]), *others]
        left = width - width_of(last[1])
        parts: list[tuple[str, list[Span]]] = []
        for key_id, part in others:
            left -= width_of(part)
            if left < 0:
                break
            parts.append((key_id, part))
        return [*parts, last]

    def _key(self, key_id: str) -> list[Span]:
        """The key with an id; ``id=word`` replaces the registry's label."""
        key_id, _, word = key_id.partition("=")
        key = BY_ID[key_id]
        return [(f" {shown(key, self.keymap)}", "running"), (f" {word or key.label} ", "muted")]


Complete = Callable[[str, int], Sequence[Completion]]


class _Word(SpanLine):
    """A label beside the text field, as wide as its text."""

    def __init__(self, spans: Line = ()) -> None:
        super().__init__()
        self._spans = spans
        self.styles.width = width_of(spans)

    def say(self, spans: Line) -> None:
        self._spans = spans
        self.styles.width = width_of(spans)
        self.refresh()

    def spans(self, width: int) -> Line:
        return self._spans


class _Field(Input):
    """The text field. Keys that are not text belong to the prompt."""

    def on_key(self, event: events.Key) -> None:
        """Take a key before it is text."""
        prompt = self.parent.parent if self.parent is not None else None
        if isinstance(prompt, Prompt) and prompt.take_key(event.key):
            event.stop()
            event.prevent_default()


class Prompt(Vertical):
    """The prompt. It posts what is typed, and at the end whether it was accepted."""

    DEFAULT_CSS = """
    Prompt { split: bottom; height: auto; background: $helix-ground; }
    Prompt RowList { height: auto; max-height: 8; }
    Prompt > #line { layout: horizontal; height: 1; }
    Prompt Input { width: 1fr; border: none; height: 1; padding: 0; }
    """

    class Changed(Message):
        """The text has changed."""

        def __init__(self, prompt: Prompt, text: str, unfinished: bool) -> None:
            super().__init__()
            self.prompt = prompt
            self.text = text
            self.unfinished = unfinished
            """There are completions for the last word."""

    class Done(Gesture):
        """Typing has ended; ``kept`` is false if it was cancelled."""

        def __init__(self, prompt: Prompt, text: str, kept: bool) -> None:
            super().__init__()
            self.prompt = prompt
            self.text = text
            self.kept = kept

    def __init__(
        self, lead: str, complete: Complete, *, text: str = "", must_choose: bool = False, id: str | None = None
    ) -> None:
        """Make a prompt.

        Args:
            lead: the label before the text.
            complete: gives completions for a text and a position in it.
            text: the initial text.
            must_choose: enter takes the first completion even if the cursor is on none.
            id: of the widget.
        """
        super().__init__(id=id)
        self._complete = complete
        self._must_choose = must_choose
        self._ways: Sequence[Completion] = ()
        self._choice = -1
        self._lead = _Word([(f"{lead} ", "running bold")])
        self._note = _Word()
        self._note.styles.max_width = "60%"
        self._field = _Field(value=text, select_on_focus=False)
        self._field.cursor_blink = False  # no blinking: nothing moves unless it changed
        self._rule = Caption("tab completes")
        self._list = RowList()
        # every key belongs to the text field, which passes on those that are not text
        self._list.can_focus = False
        self._before = text
        self._stood = False

    def compose(self) -> ComposeResult:
        """Completions above, the line below."""
        yield self._rule
        yield self._list
        with Vertical(id="line"):
            yield self._lead
            yield self._field
            yield self._note

    def on_mount(self) -> None:
        """Take the focus for the first key."""
        self._field.cursor_position = len(self._field.value)
        self._field.focus(scroll_visible=False)
        self.offer()

    def say(self, spans: Line) -> None:
        """Show a note at the right of the line: how many match, or what is not understood."""
        self._note.say([(" ", "text"), *spans, (" ", "text")])

    def on_input_changed(self, event: Input.Changed) -> None:
        """Update on every key."""
        event.stop()
        self.offer()
        self.post_message(self.Changed(self, event.value, bool(self._ways)))

    def take_key(self, key: str) -> bool:
        """Handle keys that are not text; False for text."""
        if key == "escape":
            # with the previous text, so that listeners need not remember it
            self.post_message(self.Done(self, self._before, kept=False))
        elif key == "enter":
            if self._choice >= 0:
                self._take()
            self.post_message(self.Done(self, self._field.value, kept=True))
        elif key == "tab":
            self._choice = max(self._choice, 0)
            self._take()
        elif key in _STEPS and self._ways:
            self._choice = (self._choice + _STEPS[key]) % len(self._ways)
            self._list.select(str(self._choice))
        else:
            return False
        return True

    def take_ahead(self, event: events.Key) -> bool:
        """Take a key that was typed before the line had the focus; False if it is not for the line."""
        focused = self.app.focused
        if self._stood and focused is not self._field:
            return False  # the user has left the line: keys are for the focused widget
        if not event.is_printable or event.character is None:
            return self.take_key(event.key)
        self._field.insert_text_at_cursor(event.character)
        return True

    def on_descendant_focus(self) -> None:
        """The line has the focus: keys now arrive by themselves."""
        self._stood = True

    def on_row_list_opened(self, event: RowList.Opened) -> None:
        """Take the completion that was double-clicked."""
        event.stop()
        self._choice = int(event.key)
        self._take()

    def on_row_list_selected(self, event: RowList.Selected) -> None:
        """Keep the event from other widgets."""
        event.stop()

    def _take(self) -> None:
        if not 0 <= self._choice < len(self._ways):
            return
        way, field = self._ways[self._choice], self._field
        rest = field.value[field.cursor_position :]
        field.value = field.value[: way.replace_from] + way.text + rest
        field.cursor_position = way.replace_from + len(way.text)
        self.offer()

    def offer(self) -> None:
        """Show the completions of the present text."""
        self._ways = self._complete(self._field.value, self._field.cursor_position)[:_MAX_COMPLETIONS]
        # where any text is allowed no completion is preselected: enter takes what was typed
        self._choice = 0 if self._must_choose and self._ways else -1
        if self._must_choose:
            self.say([("nothing found", "attention")] if self._field.value.strip() and not self._ways else ())
        wide = max((cell_len(way.text) for way in self._ways), default=0) + 2
        self._list.show(
            Rows(
                Row(
                    str(place),
                    ((column(clean_line(way.text, 80), min(wide, 40)), "text"), (clean_line(way.help, 200), "muted")),
                )
                for place, way in enumerate(self._ways)
            )
        )
        self._rule.display = self._list.display = bool(self._ways)
        self._list.styles.height = len(self._ways)


class Words(SpanLine):
    """One line with a text set from outside."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._say: Callable[[int], Line] = lambda width: ()

    def show(self, say: Callable[[int], Line]) -> None:
        """Show another text, made for the width."""
        self._say = say
        self.refresh()

    def spans(self, width: int) -> Line:
        return self._say(width)


class Chooser(Vertical):
    """It is mounted when there are several choices, and removed by the widget that mounted it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("J", "step(1)", show=False, id="move.dependent"),
        Binding("K", "step(-1)", show=False, id="move.needed"),
        Binding("escape", "call_off", show=False, id="go.back"),
    ]
    DEFAULT_CSS = """
    Chooser { split: bottom; height: auto; background: $helix-ground; }
    Chooser RowList { height: auto; }
    """

    class Looked(Message):
        """The cursor is on another choice."""

        def __init__(self, chooser: Chooser, key: str) -> None:
            super().__init__()
            self.chooser = chooser
            self.key = key

    class Done(Gesture):
        """One was chosen; none if it was cancelled."""

        def __init__(self, chooser: Chooser, key: str | None) -> None:
            super().__init__()
            self.chooser = chooser
            self.key = key

    def __init__(self, caption: str, ways: Sequence[Row], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._caption = Caption(caption, "enter opens, esc goes back")
        self._list = RowList()
        self._ways = ways

    def compose(self) -> ComposeResult:
        """The caption above, the choices below."""
        yield self._caption
        yield self._list

    def on_mount(self) -> None:
        """Show the first choice first."""
        self._list.styles.height = min(MAX_LINES, len(self._ways))
        self._list.show(Rows(self._ways))
        self._list.focus(scroll_visible=False)

    def action_step(self, step: int) -> None:
        """Go to the next or previous choice, cyclically."""
        keys = [way.key for way in self._ways]
        self._list.select(keys[(self._list.selected_index + step) % len(keys)])

    def action_call_off(self) -> None:
        """Cancel: go back to the start."""
        self.post_message(self.Done(self, None))

    @on(RowList.Selected)
    def _look(self, event: RowList.Selected) -> None:
        event.stop()
        if event.key is not None:
            self.post_message(self.Looked(self, event.key))

    @on(RowList.Opened)
    def _choose(self, event: RowList.Opened) -> None:
        event.stop()
        self.post_message(self.Done(self, event.key))
