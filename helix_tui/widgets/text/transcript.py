"""An attempt's transcript, one row per event, and the raw files of its evidence folder.

The transcript grows at the end; enter unfolds an event. A call's row shows its result as soon as that is
known; the result's own row shows the output. While it follows, the pane stays at the end: moving up ends that, the
last row starts it again.

Each file has a header, and is read when it is unfolded.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.cells import cell_len, set_cell_size

from helix_tui.core.ddx.attempts.evidence import EvidenceFile
from helix_tui.core.ddx.runs.transcript_events import Event
from helix_tui.core.ground.text import counted
from helix_tui.core.ground.time import clock_time
from helix_tui.widgets.base.line import Line, Span, cut, spread, wrap_spans
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Gesture, RowSource
from helix_tui.widgets.chrome.actions import answers, outcome, target_of
from helix_tui.widgets.text.pane import FoldPane, Para, Paragraphs

NARROW = 48
"""The width below which a row shortens time and tool."""

_LOOK_BACK = 64

MAX_PROSE_LINES = 6
"""How many lines of an agent's message are shown without unfolding."""

MAX_UNFOLDED = 200
"""How many events a search unfolds at once."""

_LOOKS = {
    "text": ("says", "text"),
    "thinking": ("thinking", "muted italic"),
    "route": ("route", "muted"),
    "session": ("session", "muted"),
    "error": ("error", "error bold"),
}

_SAID = ("text", "error")
"""Kinds of event shown as text."""

_SHORT = {"thinking": "think", "session": "sess"}
"""Words for a narrow pane."""

MAX_LINES = 3_000


class Script:
    """All events of one attempt so far, and which result answers which call. It only grows."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.results: dict[int, int] = {}
        """Place of a call -> place of its result."""
        self.calls: dict[int, int] = {}
        """Place of a result -> place of its call."""

    def add(self, events: Iterable[Event]) -> set[int]:
        """Append events; returns the calls whose result became known."""
        answered = set()
        for event in events:
            place = len(self.events)
            self.events.append(event)
            if event.kind == "result" and (call := self._call_of(event)) is not None:
                self.results[call], self.calls[place] = place, call
                answered.add(call)
        return answered

    def _call_of(self, result: Event) -> int | None:
        newest = len(self.events) - 2
        # a call is answered within a few events; do not search a log without results from its start each
        # time
        for place in range(newest, max(-1, newest - _LOOK_BACK), -1):
            event = self.events[place]
            free = event.kind == "tool" and place not in self.results
            if free and answers(result, event.call_id, event.tool):
                return place
        return None


class Prose:
    """An agent's message, wrapped for a width: the text in its row, and the lines below it."""

    def __init__(self, said: str, width: int, *, more: bool = False) -> None:
        """``more``: there is text beyond ``said``."""
        offset, margin = _offset(width), _margin(width)
        # a placeholder for time and word, so that the first line breaks where the row's text does
        lead = "." * (offset - 1) + " "
        # wrap no more than can be shown
        lines = wrap_spans([(lead + said[: MAX_PROSE_LINES * width], "text")], width, margin)
        texts = ["".join(text for text, _ in line) for line in lines]
        self.first = texts[0][offset:]
        self.below = tuple(texts[1:MAX_PROSE_LINES])
        self.whole = not more and len(texts) <= MAX_PROSE_LINES and len(said) <= MAX_PROSE_LINES * width


class ScriptRows(RowSource):
    """The first ``count`` events of a script; those in ``unfolded`` have their text below them."""

    def __init__(
        self, script: Script, unfolded: Mapping[int, Sequence[str]], prose: Mapping[int, Prose] | None = None
    ) -> None:
        """``prose``: agents' messages that continue below their row, except unfolded ones."""
        self._script = script
        self._prose = prose or {}
        unfolded = {**{place: said.below for place, said in self._prose.items()}, **unfolded}
        self._count = len(script.events)
        self._open = sorted(unfolded)
        self._lines = [unfolded[place] for place in self._open]
        self._ahead = [0]
        """How many unfolded lines precede the n-th unfolded event."""
        for lines in self._lines:
            self._ahead.append(self._ahead[-1] + len(lines))
        self._rows = [place + ahead for place, ahead in zip(self._open, self._ahead, strict=False)]

    def __len__(self) -> int:
        return self._count + self._ahead[-1]

    def place(self, index: int) -> tuple[int, int]:
        """The event that a row belongs to, and which of its lines the row is; 0 is the event itself."""
        number = bisect.bisect_right(self._rows, index) - 1
        if number < 0:
            return index, 0
        line = index - self._rows[number]
        if line <= len(self._lines[number]):
            return self._open[number], line
        return index - self._ahead[number + 1], 0

    def row_of(self, place: int) -> int:
        """The row of an event."""
        return place + self._ahead[bisect.bisect_left(self._open, place)]

    def key(self, index: int) -> str:
        place, line = self.place(index)
        return f"{place}.{line}" if line else str(place)

    def index(self, key: str) -> int | None:
        name, _, line = key.partition(".")
        place = int(name) if name.isdecimal() else -1  # the key of a note that events have replaced
        if not 0 <= place < self._count:
            return None
        number = bisect.bisect_left(self._open, place)
        unfolded = number < len(self._open) and self._open[number] == place
        return self.row_of(place) + (int(line) if line and unfolded else 0)

    def paint(self, index: int, width: int) -> Line:
        place, line = self.place(index)
        if line:
            number = bisect.bisect_left(self._open, place)
            if place in self._prose:
                return [(self._lines[number][line - 1], "text")]
            return [(" " * _margin(width), "text"), ("│ ", "rule"), (self._lines[number][line - 1], "muted")]
        said = self._prose.get(place)
        return paint_event(self._script, place, width, said.first if said is not None else None)

    def text(self, index: int) -> str:
        place, line = self.place(index)
        event = self._script.events[place]
        return f"{event.tool} {event.summary}" if not line else "".join(text for text, _ in self.paint(index, 400))


def _margin(width: int) -> int:
    return 10 if width >= NARROW else 6


def _column(width: int) -> int:
    """The width of an event's kind, with the blank after it."""
    return 9 if width >= NARROW else 6


def _offset(width: int) -> int:
    """The column where an event's text begins: after the clock time, which is as wide as the kind, and the kind."""
    return 2 * _column(width)


def paint_event(script: Script, place: int, width: int, said: str | None = None) -> Line:
    """One event as a line: time, tool, target and result; ``said``: the part of its text in the line."""
    event = script.events[place]
    wide = width >= NARROW
    time = clock_time(event.at)
    when: Span = ((time if wide else time[:5]) + " ", "muted")
    column = _column(width)
    if event.kind == "tool":
        answer = script.results.get(place)
        result = script.events[answer] if answer is not None else None
        ending = outcome(result.ok, result.duration_ms) if result is not None else []
        return _row(when, (event.tool, "running"), [(target_of(event), "text")], ending, column, width)
    if event.kind == "result":
        return _paint_result(script, place, when, column, width)
    name, ink = _LOOKS.get(event.kind, ("", "muted"))
    if said is None:
        said = _without(name, event.summary or event.type)
    name = name if wide else _SHORT.get(name, name)
    return _row(when, (name, "muted" if ink == "text" else ink), [(said, ink)], [], column, width)


def _without(name: str, said: str) -> str:
    """An event's text, without the word already shown before it."""
    words = said[len(name) :] if name and said.lower().startswith(name) else said
    return words.lstrip(" .:") or "…"


def _paint_result(script: Script, place: int, when: Span, column: int, width: int) -> Line:
    event = script.events[place]
    ink = "error" if event.ok is False else "muted"
    call = script.calls.get(place)
    if call is None:
        target = target_of(event)
        said = event.summary.partition(" out=")[2]
        body: list[Span] = [(target, "text"), (f"  {said}" if said else "", ink)]
        return _row(when, (event.tool or "result", "running"), body, _ending(event), column, width)
    name = "" if call == place - 1 else event.tool
    blank: Span = (" " * len(when[0]), "text")
    return _row(blank, (f"└ {name}", "edge"), [(event.summary or "no output", ink)], [], column, width)


def _ending(event: Event) -> list[Span]:
    return outcome(event.ok, event.duration_ms)


def _row(when: Span, name: Span, body: list[Span], ending: list[Span], column: int, width: int) -> Line:
    label = cut(name[0], column - 1)
    spans: list[Span] = [when, (label + " " * max(1, column - len(label)), name[1]), *body]
    return spread(spans, [(" ", "text"), *ending] if ending else [], width)


class TranscriptPane(RowList):
    """The transcript of one attempt."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, cursor_needs_focus=True)
        self.script = Script()
        self.following = True
        self._unfolded: set[int] = set()
        self._folded: set[int] = set()
        """Messages that the user folded to one row."""
        self._prose: dict[int, Prose] = {}
        """Agents' messages that do not fit in their row, at `_prose_width`, up to `_prose_seen`."""
        self._prose_width = self._prose_seen = 0
        self._note: Sequence[Para] = ()

    def clear(self, note: Sequence[Para] = (), *, follow: bool = True) -> None:
        """Drop the events, for another attempt; show ``note`` until some arrive."""
        self._begin(Script(), follow=follow)
        self._note = note
        self._draw()

    def take(self, script: Script, *, follow: bool) -> None:
        """Show a script that was read elsewhere, from its top or at its end."""
        self._begin(script, follow=follow)
        self.empty()
        self._draw()

    def _begin(self, script: Script, *, follow: bool) -> None:
        self.script = script
        self._unfolded.clear()
        self._folded.clear()
        self._prose, self._prose_seen = {}, 0
        self.following = follow

    def say(self, note: Sequence[Para]) -> None:
        """Set the text shown while there are no events."""
        self._note = note
        if not self.script.events:
            self._draw()

    def add(self, events: Sequence[Event]) -> None:
        """Add the events since the last call."""
        if events:
            answered = self.script.add(events)
            self._draw(changed={str(place) for place in answered})

    def follow(self, on: bool) -> None:
        """Follow the end, or stop following."""
        self.following = on
        if on:
            self._to_end()

    def _draw(self, changed: Iterable[str] = ()) -> None:
        if not self.size.width:
            return
        if self.script.events:
            self._break_prose()
            lines = {place: self._detail(place) for place in self._unfolded}
            shut = self._unfolded | self._folded
            prose = {place: said for place, said in self._prose.items() if place not in shut}
            self.show(ScriptRows(self.script, lines, prose), changed=set(changed))
        else:
            self.show(Paragraphs(self._note, self._text_width))
        if self.following:
            self._to_end()

    def _break_prose(self) -> None:
        """Wrap agents' messages for the present width: the new ones, or all if the width has changed."""
        if self._prose_width != self._text_width:
            self._prose, self._prose_width, self._prose_seen = {}, self._text_width, 0
        events = self.script.events
        for place in range(self._prose_seen, len(events)):
            if events[place].kind in _SAID:
                event = events[place]
                text = _without(_LOOKS[event.kind][0], event.summary)
                prose = Prose(text, self._text_width, more=len(event.detail or "") > len(event.summary) + 1)
                if prose.below:
                    self._prose[place] = prose
        self._prose_seen = len(events)

    def _to_end(self) -> None:
        if len(self.source) and self.selected_index != len(self.source) - 1:
            self._move_to(len(self.source) - 1)

    def _detail(self, place: int) -> Sequence[str]:
        event = self.script.events[place]
        width = max(8, self._text_width - _margin(self._text_width) - 2)
        said = event.detail or event.summary
        return [
            "".join(text for text, _ in line)
            for raw in said.rstrip("\n").split("\n")
            for line in wrap_spans([(raw, "muted")], width, words=False)
        ]

    def on_resize(self) -> None:
        """Lay it out for the new width."""
        self._draw()

    # --- keys ---------------------------------------------------------------------------------------------

    def _step(self, count: int) -> None:
        super()._step(count)
        # moving back to the last row by hand turns following on again
        self.following = self.selected_index == len(self.source) - 1

    def scroll_lines(self, count: int) -> None:
        """Scrolling up stops following."""
        self.following = self.following and count > 0
        super().scroll_lines(count)

    def _here(self) -> int | None:
        source = self.source
        if isinstance(source, ScriptRows) and 0 <= self.selected_index < len(source):
            return source.place(self.selected_index)[0]
        return None

    def action_open(self) -> None:
        """Unfold the event under the cursor, or fold it again."""
        place = self._here()
        if place is not None:
            self._set_fold(place, unfold=not self._is_open(place))

    def _is_open(self, place: int) -> bool:
        """Whether an event is shown in full."""
        said = self._prose.get(place)
        return place in self._unfolded or (said is not None and said.whole and place not in self._folded)

    def fold(self) -> bool:
        """Fold the event under the cursor; False when it is folded already."""
        place = self._here()
        if place is None or not (place in self._unfolded or (place in self._prose and place not in self._folded)):
            return False
        self._set_fold(place, unfold=False)
        return True

    def unfold(self) -> bool:
        """Unfold the event under the cursor; False when it is unfolded already."""
        place = self._here()
        if place is None or self._is_open(place):
            return False
        self._set_fold(place, unfold=True)
        return True

    def _set_fold(self, place: int, *, unfold: bool) -> None:
        self.following = False
        said = self._prose.get(place)
        detail = unfold and (said is None or not said.whole)
        self._unfolded = self._unfolded | {place} if detail else self._unfolded - {place}
        self._folded = self._folded | {place} if said is not None and not unfold else self._folded - {place}
        self.select(str(place))
        self._draw()

    def unfold_matches(self, words: str) -> None:
        """Unfold events whose text contains some words, at most `MAX_UNFOLDED`."""
        wanted = words.lower()
        found = [
            place
            for place, event in enumerate(self.script.events)
            # a match in the row itself needs no unfolding
            if wanted in (event.detail or "").lower() and wanted not in f"{event.tool} {event.summary}".lower()
        ]
        if found and len(found) <= MAX_UNFOLDED:
            self.following = False
            self._unfolded |= set(found)
            self._draw()

    def turn_part(self, step: int) -> None:
        """Go to the next or previous failure or session."""
        here = self._here()
        if here is None:
            return
        place = here + step
        while 0 <= place < len(self.script.events):
            event = self.script.events[place]
            if event.kind == "error" or event.ok is False or event.type == "session.start":
                self.following = False
                self.select(str(place))
                return
            place += step


class RawPane(FoldPane):
    """Files by name and size. Unfolding one requests its content."""

    class Wanted(Gesture):
        """The content of a file is requested."""

        def __init__(self, file: EvidenceFile) -> None:
            super().__init__()
            self.file = file

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.files: tuple[EvidenceFile, ...] = ()
        self._contents: dict[str, Sequence[str]] = {}
        self._note: Sequence[Para] = ()

    def show_files(self, files: Sequence[EvidenceFile], note: Sequence[Para] = (), *, other: bool) -> None:
        """Show a folder, or the text in its place; new files start folded."""
        known = set() if other else {file.name for file in self.files}
        self.files, self._note = tuple(files), note
        fresh = {file.name for file in files} - known
        if other:
            self._contents = {}
            self.begin(fresh)
        else:
            self._folded |= fresh
            self.rebuild()

    @property
    def place(self) -> tuple[Path, int] | None:
        """The file under the cursor, and the line; 1 if it is not shown as it is on disk."""
        para = self.para
        name, _, line = para.key.partition("\t") if para is not None else ("", "", "")
        file = next((file for file in self.files if file.name == name), None)
        if file is None:
            return None
        return file.path, int(line) + 1 if line.isdecimal() and not name.endswith(".json") else 1

    def give(self, name: str, lines: Sequence[str]) -> None:
        """Set the content of a file, or the reason why there is none."""
        self._contents[name] = lines
        self.rebuild()

    def set_fold(self, key: str, *, on: bool) -> None:
        """Unfolding reads the file again: it may have grown."""
        super().set_fold(key, on=on)
        file = next((file for file in self.files if file.name == key), None)
        if not on and file is not None:
            self.post_message(self.Wanted(file))

    def build(self, width: int) -> Sequence[Para]:
        """The headers, and the lines of unfolded files."""
        if not self.files:
            return self._note
        return list(self._paras_of(width))

    def _paras_of(self, width: int) -> Iterator[Para]:
        for file in self.files:
            folded = self.is_folded(file.name)
            mark: Span = ("▸ " if folded else "▾ ", "running")
            size = size_of(file.size)
            name = short_path(file.name, width - len(size) - 4)
            spans: tuple[Span, ...] = (mark, (name, "text bold"))
            yield Para(file.name, spans, ((size, "muted"),), wrap="no", landmark=True, opens=True)
            if not folded:
                lines = self._contents.get(file.name, ("reading …",))
                yield from content_paras(file.name, lines)


def content_paras(name: str, lines: Sequence[str]) -> Iterator[Para]:
    """The lines of a file, indented below its header."""
    for number, line in enumerate(lines[:MAX_LINES]):
        yield Para(f"{name}\t{number}", (("  ", "text"), (line, "text")), wrap="cells", hang=2)
    if len(lines) > MAX_LINES:
        yield Para(f"{name}\tmore", ((f"  … {counted(len(lines) - MAX_LINES, 'more line')}", "attention"),))


def short_path(name: str, width: int) -> str:
    """A path in at most ``width`` cells, cut in the middle: its beginning and end say most."""
    if cell_len(name) <= width:
        return name
    half = max(2, (width - 1) // 2)
    return f"{set_cell_size(name, max(1, width - 1 - half)).rstrip()}…{name[-half:]}"


def size_of(count: int) -> str:
    """A file's size in short form: ``940 B``, ``12 kB``, ``3.4 MB``."""
    if count < 1_000:
        return f"{count} B"
    if count < 999_500:
        return f"{count / 1_000:.0f} kB"
    return f"{count / 1_000_000:.1f} MB"
