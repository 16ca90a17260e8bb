"""The one registry of keys: bindings, footer, help and command palette are all read from here.

A key means one thing everywhere. Only keys that do something are listed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import product, zip_longest
from unicodedata import lookup

from msgspec import Struct
from textual.binding import Binding

_SHOWN = {
    "exclamation_mark": "!",
    "colon": ":",
    "slash": "/",
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "full_stop": ".",
    "greater_than_sign": ">",
    "at": "@",
    "plus": "+",
    "minus": "-",
    "number_sign": "#",
    "vertical_line": "|",
    "backslash": "\\",
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "underscore": "_",
}
"""Keys whose Textual name differs from the Unicode name or from what people write."""

_HABITS: Mapping[str, tuple[str, ...]] = {
    "ctrl+z": ("change.undo",),
    "ctrl+y": ("change.redo",),
    "ctrl+r": ("change.redo",),
    "ctrl+n": ("change.new",),
    "ctrl+f": ("find.filter", "move.page-down"),
    "ctrl+b": ("move.page-up",),
    "ctrl+l": ("app.try-again",),
    "ctrl+g": ("go.to",),
    "ctrl+k": ("go.palette",),
    "ctrl+w": ("app.quit",),
    "Q": ("app.quit",),
    "f1": ("app.help",),
    "f2": ("change.edit",),
    "f10": ("app.quit",),
    "delete": ("change.close",),
    "backspace": ("go.back",),
    "D": ("change.close",),
    "less_than_sign": ("move.first", "pane.narrower"),
    "equals_sign": ("pane.zoom",),
    "underscore": ("pane.zoom",),
    "b": ("move.page-up", "go.view-back"),
    "S": ("list.sort", "list.views"),
    "m": ("change.mark",),
    "P": ("change.raise", "change.parent"),
    "r": ("app.try-again", "change.redo"),
    "i": ("ask.new",),
    "I": ("change.edit",),
    "M": ("go.memory",),
    "H": ("move.fold",),
    "asterisk": ("change.mark",),
    "semicolon": ("go.to",),
    "comma": ("list.columns",),
}
"""Keys with a meaning in other programs (lazygit, k9s, vim, gh-dash, editors) -> our keys that do the same."""

_PLACES = {
    "app": "the console, after esc",
    "list": "a list",
    "beads": "the queue",
    "sheet": "a sheet",
    "form": "a form",
    "panes": "a screen with two panes",
    "half-way": "a change under way",
    "needs": "Needs me",
    "columns": "choosing columns",
    "tour": "the tour",
}


class Key(Struct, frozen=True):
    """One thing that a key does."""

    id: str
    """Its name in the settings' keymap."""
    keys: str
    """Keys in Textual's spelling, by comma; the first is the one that is shown."""
    action: str
    label: str
    """One or two words, for the footer."""
    scope: str
    """Where it applies: ``app``, ``screen`` (any of helix-tui's), ``list``, ``beads`` (any with a bead under the
    cursor), ``sheet`` (open while something is being changed), or the name of a screen."""
    help: str
    """One sentence, for the help screen and the palette."""


KEYS: tuple[Key, ...] = (
    Key("move.down", "j,down", "cursor_down", "down", "list", "Next row."),
    Key("move.up", "k,up", "cursor_up", "up", "list", "Previous row."),
    Key("move.first", "g,home", "first", "top", "list", "First row."),
    Key("move.last", "G,end", "last", "bottom", "list", "Last row."),
    Key("move.half-down", "ctrl+d", "half_down", "half down", "list", "Half a page down."),
    Key("move.half-up", "ctrl+u", "half_up", "half up", "list", "Half a page up."),
    Key("move.page-down", "pagedown", "page_down", "page down", "list", "A page down."),
    Key("move.page-up", "pageup", "page_up", "page up", "list", "A page up."),
    Key(
        "move.fold",
        "h,left",
        "fold",
        "fold",
        "queue,loop,memory,ask,insights,journal,needs",
        "Fold the row, or go to the pane on the left.",
    ),
    Key(
        "move.unfold",
        "l,right",
        "unfold",
        "unfold",
        "queue,loop,memory,ask,insights,journal,needs",
        "Unfold it, or go to the pane on the right.",
    ),
    Key(
        "move.dependent",
        "J",
        "dependent",
        "dependent",
        "queue",
        "To a bead that this one blocks, or back; in the detail the next section.",
    ),
    Key(
        "move.needed",
        "K",
        "needed",
        "needed",
        "queue",
        "To a bead that blocks this one, or back (in the detail: previous section).",
    ),
    Key(
        "move.next-part",
        "J",
        "turn_part(1)",
        "next part",
        "loop,journal,ask,memory,needs",
        "Next attempt; elsewhere the next section.",
    ),
    Key(
        "move.part-before",
        "K",
        "turn_part(-1)",
        "previous part",
        "loop,journal,ask,memory,needs",
        "Previous attempt (in a pane or a list of groups: previous section).",
    ),
    Key("move.follow", "full_stop", "follow", "follow", "loop", "Follow the newest (toggle)."),
    Key("move.jump", "f", "jump", "jump", "list", "Jump: type the letter shown on a row."),
    Key("go.queue", "1", "show_screen('queue')", "queue", "app", "The queue."),
    Key("go.loop", "2", "show_screen('loop')", "loop", "app", "Attempts: what landed or failed, and what runs now."),
    Key("go.memory", "3", "show_screen('memory')", "memory", "app", "Memories and their effectiveness."),
    Key("go.ask", "4", "show_screen('ask')", "ask", "app", "Ask the repository a question."),
    Key("go.insights", "5", "show_screen('insights')", "insights", "app", "Cost and outcome, by model and kind."),
    Key("go.journal", "6", "show_screen('journal')", "journal", "app", "Every change made with helix-tui."),
    Key(
        "go.needs-me",
        "exclamation_mark",
        "needs_me",
        "needs me",
        "app",
        "Everything that waits for a person, most urgent first.",
    ),
    Key(
        "go.next-action", "greater_than_sign", "next_action", "next action", "app", "What should happen next, and why."
    ),
    Key("go.steer", "L", "loop", "loop", "app", "Start, pause or stop the loop or a worker; its budget; run one bead."),
    Key("go.to", "colon", "go_to", "go to", "app", "Go to a bead, a screen or a command by name."),
    Key("app.try-again", "f5", "try_again", "try again", "app", "Retry what could not be shown."),
    Key("go.palette", "ctrl+p", "command_palette", "palette", "app", "Every command, with search."),
    Key("go.open", "enter", "open", "open", "list", "Open the row."),
    Key("go.back", "escape", "step_back", "back", "screen", "Back; never quits."),
    Key("go.pane", "tab", "next_pane", "next pane", "screen", "Next pane."),
    Key("go.pane-back", "shift+tab", "previous_pane", "previous pane", "screen", "Previous pane."),
    Key(
        "go.view",
        "right_square_bracket",
        "turn_tab(1)",
        "view",
        "queue,loop,memory,ask,insights,needs",
        "Next view of this pane; from a row about an attempt, its diff.",
    ),
    Key(
        "go.view-back",
        "left_square_bracket",
        "turn_tab(-1)",
        "previous view",
        "queue,loop,memory,ask,insights,needs",
        "Previous view; from a row about an attempt, the attempt beside the previous one.",
    ),
    Key("pane.zoom", "z", "zoom", "zoom", "panes", "Give this pane all the room (toggle)."),
    Key(
        "pane.wider",
        "vertical_line",
        "split(1)",
        "wider",
        "panes",
        "Move the split: more room for the list, up to 80 %.",
    ),
    Key(
        "pane.narrower",
        "backslash",
        "split(-1)",
        "narrower",
        "panes",
        "Move the split: less room for the list, down to 20 %.",
    ),
    Key("list.columns", "C", "columns", "columns", "queue,loop", "Choose the columns of the list and their order."),
    Key(
        "open.editor",
        "ctrl+e",
        "open_editor",
        "editor",
        "queue,loop,needs",
        "Open the file in $EDITOR at this line; from a row, at the first change of its latest attempt.",
    ),
    Key("open.pager", "P", "page", "pager", "loop", "Show the diff, transcript, prompt or file in $PAGER."),
    Key("list.sort", "o", "sort", "sort", "queue,loop,insights", "Choose how the rows are sorted; again reverses it."),
    Key(
        "list.views",
        "V",
        "views",
        "views",
        "queue,needs",
        "Saved views of the queue and of Needs me, by name; save this one.",
    ),
    Key("columns.earlier", "plus", "move_column(-1)", "earlier", "columns", "Move the column to the left."),
    Key("columns.later", "minus", "move_column(1)", "later", "columns", "Move the column to the right."),
    Key("columns.automatic", "r", "automatic", "automatic", "columns", "Choose the columns by the width."),
    Key(
        "find.filter",
        "slash",
        "filter",
        "filter",
        "queue,loop,memory,journal,help,needs",
        "Show only what a query matches, as you type.",
    ),
    Key("find.next", "n", "next_match", "next match", "list", "Next row that matches."),
    Key("find.previous", "N", "previous_match", "previous match", "list", "Previous row that matches."),
    Key(
        "ask.new",
        "i",
        "ask",
        "ask",
        "ask,queue",
        "Ask the repository (a word typed in Ask does too); in the queue, about this bead.",
    ),
    Key("ask.on", "I", "ask_on", "follow up", "ask", "Follow up: a question that keeps the evidence of this answer."),
    Key("ask.again", "R", "ask_again", "ask again", "ask", "The same question, on the files as they are."),
    Key("ask.why", "O", "why", "why", "ask", "Every passage that was kept or dropped, and why."),
    Key("ask.first", "A", "choose(0)", "first sense", "ask", "Choose the first of two senses."),
    Key("ask.second", "B", "choose(1)", "second sense", "ask", "Choose the second of two senses."),
    Key("ask.depth", "W", "turn_depth", "tree depth", "ask", "Change how much of the tree is shown."),
    Key("ask.model", "m", "turn_model", "model", "ask", "Let a model phrase the answer (toggle)."),
    Key("ask.trace", "T", "trace", "trace", "ask", "Write the run as JSON lines."),
    Key("change.actions", "a", "actions", "actions", "beads,needs,memory", "What can be done about this row."),
    Key(
        "change.mark",
        "space",
        "mark",
        "mark",
        "queue,loop,ask,needs,columns",
        "Mark the row: to change several, or to compare a run.",
    ),
    Key("change.range", "v", "mark_range", "range", "queue,needs", "Mark from here to where the cursor goes."),
    Key("needs.accept", "A", "accept", "accept", "needs", "Accept, approve or acknowledge it."),
    Key("needs.reject", "D", "reject", "reject", "needs", "Reject, decline, drop or refuse it."),
    Key("needs.retry", "R", "retry", "retry", "needs", "Attempt it again, with a model of your choice."),
    Key("needs.land", "M", "land", "land", "needs", "Merge the kept change and close the bead."),
    Key("needs.snooze", "Z", "snooze", "snooze", "needs", "Snooze it: an hour, until tomorrow, until it changes."),
    Key("needs.assign", "at", "assign", "assign", "needs", "Assign it to a person."),
    Key("change.eligible", "e", "eligible", "eligible", "beads", "Allow or forbid workers to pick this bead."),
    Key("change.supersede", "s", "supersede", "superseded", "beads", "Name the bead that replaces this one."),
    Key("change.depend", "d", "depend", "depends", "beads", "Add or remove a dependency."),
    Key("change.parent", "p", "parent", "parent", "beads", "Set or clear the parent."),
    Key("change.raise", "plus", "priority(-1)", "raise", "beads", "Raise the priority by one, up to P0."),
    Key("change.lower", "minus", "priority(1)", "lower", "beads", "Lower the priority by one, down to P4."),
    Key("change.label", "number_sign", "label", "label", "beads", "Add or remove labels."),
    Key("change.claim", "c", "claim", "claim", "beads", "Claim or release."),
    Key("change.close", "x", "close", "close", "beads", "Close, reopen or cancel."),
    Key("change.edit", "E", "edit", "edit", "beads", "Edit the title and texts in $EDITOR."),
    Key("change.new", "N", "new_bead", "new", "beads", "New bead, checked as you type."),
    Key("change.focus", "F", "focus_epic", "focus", "beads", "Focus on this epic (toggle)."),
    Key("change.what-if", "w", "what_if", "what if", "beads", "What closing this bead would unblock; changes nothing."),
    Key(
        "change.undo",
        "u",
        "undo",
        "undo",
        "beads,half-way,journal,memory",
        "Undo your last change (in the journal: the selected one).",
    ),
    Key(
        "change.redo",
        "U",
        "redo",
        "redo",
        "beads,journal",
        "Redo the last undone change (in the journal: the selected one).",
    ),
    Key("change.restore", "r", "restore", "restore", "journal", "Restore to just after this change."),
    Key("change.stop", "X", "stop_change", "stop", "beads", "Stop a change of many beads after the current command."),
    Key("change.go-on", "ctrl+o", "go_on", "go on", "form", "Preview what this form would do."),
    Key(
        "copy.id",
        "y",
        "copy_id",
        "copy",
        "beads,loop,journal,sheet,ask,memory",
        "Copy the id, or the commands of a planned change.",
    ),
    Key(
        "copy.markdown",
        "Y",
        "copy_markdown",
        "copy all",
        "queue,journal,ask",
        "Copy the bead, the change or the answer.",
    ),
    Key(
        "memory.edit",
        "E",
        "edit_memory",
        "edit",
        "memory",
        "Correct its text; the old text stays in its history.",
    ),
    Key("memory.supersede", "s", "supersede_memory", "superseded", "memory", "Name the memory that replaces this one."),
    Key("memory.remove", "D", "remove_memory", "remove", "memory", "Remove this memory; u restores it."),
    Key("tour.next", "ctrl+t", "tour_next", "next step", "tour", "The next step of the tour; starts it where offered."),
    Key("tour.end", "ctrl+x", "tour_end", "end tour", "tour", "End the tour, or close its offer."),
    Key("app.help", "question_mark", "help", "all", "app", "Every key."),
    Key("app.quit", "q", "quit", "quit", "app", "Quit; HELIX's loop keeps running, except in the demo."),
)

BY_ID: Mapping[str, Key] = {key.id: key for key in KEYS}


def bindings(scope: str) -> list[Binding]:
    """The Textual bindings of a scope."""
    return [
        Binding(key.keys, key.action, key.label, show=False, id=key.id, tooltip=key.help)
        for key in KEYS
        if scope in key.scope.split(",")
    ]


@lru_cache(maxsize=512)
def as_typed(name: str) -> str:
    """A key's name as people write it: ``trade_mark_sign`` is the character, ``f12`` and ``ctrl+z`` stay."""
    if name in _SHOWN:
        return _SHOWN[name]
    # characters from the terminal must not be shown raw
    if not name.isprintable():  # half a character, or an unknown control sequence
        return "this character"
    # of a key with modifiers only the last part is a Unicode name
    before, plus, last = name.rpartition("+")
    if plus:
        return f"{before}+{as_typed(last)}"
    # Textual derives its name from the Unicode one; the reverse has to be tried, with a limit on the attempts
    words = name.upper().split("_")
    for joints in product(" -", repeat=min(len(words) - 1, 8)):  # Textual writes both as _
        with suppress(KeyError):
            found = lookup("".join(map("".join, zip_longest(words, joints, fillvalue=""))))
            # the name of a blank is clearer than the blank
            if len(name) > 1 and found.isprintable() and not found.isspace():
                return found
    return name


def shown(key: Key, keymap: Mapping[str, str] | None = None) -> str:
    """The key as people write it, with the settings applied."""
    first = names((keymap or {}).get(key.id, key.keys))[0]
    return as_typed(first)


def shown_all(key: Key, keymap: Mapping[str, str] | None = None) -> str:
    """All keys bound to it."""
    return " ".join(as_typed(name) for name in names((keymap or {}).get(key.id, key.keys)))


def id_of(name: str, scope: str, keymap: Mapping[str, str] | None = None) -> str:
    """The id of a pressed key in a scope; empty if it is not bound there."""
    for key in KEYS:
        if scope in key.scope.split(",") and name in names((keymap or {}).get(key.id, key.keys)):
            return key.id
    return ""


def keys_of(scopes: Collection[str]) -> list[Key]:
    """Every key that applies in one of these scopes."""
    return [key for key in KEYS if not set(scopes).isdisjoint(key.scope.split(","))]


def instead_of(name: str, keymap: Mapping[str, str] | None = None) -> str:
    """The message for a key that does nothing here: where it works, and which key works here."""
    pressed = as_typed(name)
    elsewhere = []
    for key in KEYS:
        if name in names((keymap or {}).get(key.id, key.keys)):
            places = [_PLACES.get(scope, scope.capitalize()) for scope in key.scope.split(",")[:2]]
            elsewhere.append(f"“{key.label}” in {' and '.join(places)}")
    meant = [f"{BY_ID[key_id].label}: {shown(BY_ID[key_id], keymap)}" for key_id in _HABITS.get(name, ())]
    said = f"{pressed} does nothing here."
    if elsewhere:
        said += f" It is {', '.join(dict.fromkeys(elsewhere))}."
    if meant:
        said += f" You may want {', '.join(meant)}."
    return said if elsewhere or meant else f"{said} {shown(BY_ID['app.help'], keymap)} lists every key."


def taken_by(name: str, keymap: Mapping[str, str] | None = None) -> str:
    """What a key does in any scope, in a word; empty if it is free."""
    for key in KEYS:
        if name in names((keymap or {}).get(key.id, key.keys)):
            return key.label
    return ""


def checked_keymap(wanted: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The valid part of a user's keymap, and one message for each invalid part."""
    refused: dict[str, str] = {}
    # a refused row keeps its default keys, so that no other row can use them
    while True:
        held, more = _checked_rows({key_id: keys for key_id, keys in wanted.items() if key_id not in refused})
        if not more:
            return held, [refused[key_id] for key_id in wanted if key_id in refused]
        refused |= more


def _checked_rows(wanted: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The rows of a keymap that do not clash with the default keys of the others, and why each other row is refused."""
    held: dict[str, str] = {}
    problems: dict[str, str] = {}
    # keys of rows that the user rebinds are free for other rows
    taken = {name: key.id for key in KEYS if key.id not in wanted for name in names(key.keys)}
    for key_id, keys in wanted.items():
        # across all scopes: a key means one thing everywhere, in a user's keymap too
        clash = next((name for name in names(keys) if taken.get(name, key_id) != key_id), None)
        if key_id not in BY_ID:
            problems[key_id] = f"no key is called {key_id!r}"
        elif not names(keys):
            problems[key_id] = f"{key_id}: no key given"
        elif clash is not None:
            problems[key_id] = f"{key_id}: {clash!r} is already {taken[clash]}"
        else:
            held[key_id] = ",".join(names(keys))
            taken.update(dict.fromkeys(names(keys), key_id))
    return held, problems


def names(keys: str) -> Sequence[str]:
    """The keys of a comma-separated list."""
    return [name.strip() for name in keys.split(",") if name.strip()]
