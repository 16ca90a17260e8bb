"""A form of several fields: it offers completions for the field being typed in, and shows what is wrong so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import Input, TextArea

from helix_tui.core.ground.text import clean_line
from helix_tui.widgets.base.entry import Entry
from helix_tui.widgets.base.line import Line, Span, SpanLine, column
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Row, Rows
from helix_tui.widgets.text.page import Page

LABEL_CELLS = 13
MAX_COMPLETIONS = 5
MAX_FINDINGS_LINES = 5

Ways = Callable[[str], Sequence[tuple[str, str]]]
"""(completion, help) for the word being typed."""


class FormField(Struct, frozen=True):
    """One field of a form."""

    name: str
    label: str
    text: str = ""
    hint: str = ""
    lines: int = 1
    """Its height in lines; more than one for a text of several lines."""
    ways: Ways | None = None
    several: bool = False
    """Whether it holds several words, separated by commas."""


class _Label(SpanLine):
    def __init__(self, text: str, width: int | None) -> None:
        super().__init__()
        self._line: Line = [(f" {text}", "muted")]
        if width is not None:
            self.styles.width = width

    def spans(self, width: int) -> Line:
        return self._line


class Form(Vertical):
    """Posts `Changed` on every key; its owner checks the texts and answers with `say`."""

    DEFAULT_CSS = """
    Form { height: 1fr; }
    Form > #fields { height: 1fr; }
    Form .row { height: 1; }
    Form .row > Input { width: 1fr; }
    Form .row.-here { background: $helix-selection; }
    Form TextArea {
        background: $helix-ground; color: $helix-text; border: none; border-left: outer $helix-rule;
        padding: 0 0 0 1; margin: 0 1;
    }
    Form TextArea:focus { border: none; border-left: outer $helix-running; }
    Form #ways, Form #said { height: auto; }
    """

    class Changed(Message):
        """A text has changed."""

    def __init__(self, fields: Sequence[FormField]) -> None:
        super().__init__()
        self.fields = tuple(fields)
        self._entries: dict[str, Entry] = {}
        self._papers: dict[str, TextArea] = {}
        self._ways: Sequence[tuple[str, str]] = ()
        self._choice = -1
        self._ways_list = RowList(id="ways", cursor_needs_focus=True)
        self._said = RowList(id="said", cursor_needs_focus=True)
        # tab goes from field to field; completions are stepped through from the field itself
        self._ways_list.can_focus = self._said.can_focus = False

    def compose(self) -> ComposeResult:
        """The fields, then completions and findings."""
        with VerticalScroll(id="fields", can_focus=False):
            for field in self.fields:
                if field.lines == 1:
                    yield self._row(field)
                else:
                    yield _Label(f"{field.label}  {field.hint}", None)
                    paper = TextArea(field.text, id=f"field-{field.name}", soft_wrap=True)
                    paper.cursor_blink = False
                    paper.styles.height = field.lines
                    self._papers[field.name] = paper
                    yield paper
        yield self._ways_list
        yield self._said

    def _row(self, field: FormField) -> Horizontal:
        entry = Entry(
            field.text,
            take=self._take,
            placeholder=field.hint,
            # a word that is one of a few is replaced as a whole; a list of words is added to
            select_on_focus=field.ways is not None and not field.several,
            id=f"field-{field.name}",
        )
        self._entries[field.name] = entry
        return Horizontal(_Label(field.label, LABEL_CELLS), entry, classes="row")

    def on_mount(self) -> None:
        """Offer nothing and show no findings."""
        self._ways_list.display = self._said.display = False

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts of the fields, by name."""
        found = {name: entry.value for name, entry in self._entries.items()}
        found |= {name: paper.text for name, paper in self._papers.items()}
        # before it is mounted there are no widgets to read: the texts are the initial ones
        return {field.name: found.get(field.name, field.text) for field in self.fields}

    @property
    def touched(self) -> bool:
        """Whether any text differs from the initial one."""
        return any(self.texts[field.name] != field.text for field in self.fields)

    def written(self, name: str) -> bool:
        """Whether a field's text differs from the initial one; True for an unknown field."""
        field = next((field for field in self.fields if field.name == name), None)
        return field is None or self.texts[name] != field.text

    def focus_first(self) -> None:
        """Focus the first field."""
        first = self.fields[0].name
        (self._entries.get(first) or self._papers[first]).focus(scroll_visible=False)

    def say(self, findings: Sequence[tuple[Span, str]]) -> None:
        """Show what is wrong so far: a sign and a sentence each."""
        page = Page(self.size.width - 2)
        for sign, words in findings:
            page.paragraph([sign, (clean_line(words, 400), "text")], 2)
        rows = page.rows
        self._said.display = bool(len(rows))
        self._said.styles.height = min(len(rows), MAX_FINDINGS_LINES)
        self._said.show(rows)

    # --- keys ---------------------------------------------------------------------------------------------

    def _take(self, key: str) -> bool:
        steps = {"down": 1, "ctrl+n": 1, "up": -1, "ctrl+p": -1}
        if key in steps and self._ways:
            self._choice = (self._choice + steps[key]) % len(self._ways)
            self._ways_list.select(str(self._choice))
            self._ways_list.flag({str(self._choice): ("▸", "running bold")})
        elif key == "enter" and self._choice >= 0:
            self._take_way()
        elif key in ("enter", "down"):
            self.screen.focus_next()
        elif key == "up":
            self.screen.focus_previous()
        else:
            return False
        return True

    @on(RowList.Opened)
    @on(RowList.Selected)
    def chosen(self, event: RowList.Opened | RowList.Selected) -> None:
        """Select the completion that was clicked; a second click takes it."""
        event.stop()
        if event.rows is self._ways_list and isinstance(event, RowList.Opened):
            self._choice = int(event.key)
            self._take_way()

    @on(Input.Changed)
    @on(TextArea.Changed)
    def tell(self, event: Message) -> None:
        """Update on every key."""
        event.stop()
        self._offer()
        self.post_message(self.Changed())

    def on_descendant_focus(self) -> None:
        """Each field has its own completions."""
        self._offer()

    def _here(self) -> tuple[FormField, Entry] | None:
        for field in self.fields:
            entry = self._entries.get(field.name)
            if entry is not None and entry.has_focus:
                return field, entry
        return None

    def _offer(self) -> None:
        here = self._here()
        self._ways, self._choice = (), -1
        if here is not None:
            field, entry = here
            # with several words, the last one is being typed
            typed = (entry.value.rpartition(",")[2] if field.several else entry.value).strip()
            found = field.ways(typed) if field.ways is not None else ()
            self._ways = [way for way in found if way[0] != typed][:MAX_COMPLETIONS]
        wide = max((cell_len(text) for text, _ in self._ways), default=0) + 2
        self._ways_list.show(
            Rows(
                Row(
                    str(place),
                    ((column(clean_line(text, 80), min(wide, 30)), "text"), (clean_line(help, 200), "muted")),
                )
                for place, (text, help) in enumerate(self._ways)
            )
        )
        self._ways_list.flag({})
        self._ways_list.styles.height = len(self._ways)
        self._ways_list.display = bool(self._ways)

    def _take_way(self) -> None:
        here = self._here()
        if here is None or not 0 <= self._choice < len(self._ways):
            return
        field, entry = here
        before = entry.value.rpartition(",")[0] if field.several else ""
        entry.value = (before + ", " if before else "") + self._ways[self._choice][0]
        entry.cursor_position = len(entry.value)
