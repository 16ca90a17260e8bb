"""The user's settings in ``~/.config/helix-tui/settings.toml``, and what the console saves: views and layout.

    theme = "helix-paper"
    model_dir = "~/models/all-MiniLM-L6-v2"
    agent = "claude"           # who does the work, unless --agent or HELIX_AGENT says
    model = "sonnet"           # the model behind that agent
    stall_after = 600          # seconds without an event after which a worker is called silent
    autonomy = "medium"        # how much HELIX's loop decides on its own: low, medium, high
    accept_lessons = "landed-after-refusal"  # lessons accepted without asking; or none, failures, patterns, all
    systemic_days = 7          # days within which three occurrences make a failure systemic
    budget_run = "$5"          # what a run may cost: "$5, 2M tokens, 10 attempts"
    budget_day = "$20"         # what a day may cost in all
    notify = "notify-me"       # a command that gets what needs you and the end of a run, as JSON on stdin
    notify_terminal = ["bell"] # of bell, osc9, osc777, osc99; default: what the terminal supports
    quiet = "22:00-07:00"      # quiet hours; what comes up meanwhile is sent afterwards
    [keys]
    "move.down" = "n,down"
    [[view]]                   # a slice of the queue (view = "needs": of Needs me), on `V` and on its own key
    name = "bugs by age"
    filter = "type:bug order:-age"
    columns = ["labels", "age"]
    key = "f6"

If the file cannot be read, the defaults apply, with one notice. Whether a theme or a key exists
is checked by the app.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from helix_tui.core.beads.states import states_where
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS
from helix_tui.core.ground.trust.person import state_folder
from helix_tui.core.memory.provenance import AcceptRule

if TYPE_CHECKING:
    from helix_tui.core.supervision.run_state.budget import Budget

_MAX_FILE = 1 << 16


OF_NEEDS = "needs"
"""In place of a way to look at the queue: the view is one of *Needs me*."""

TERMINAL_WAYS: tuple[TerminalWay, ...] = ("bell", "osc9", "osc777", "osc99")
"""How to notify through a terminal: its bell, or one of three sequences for a desktop notification."""

QUIET_FORM = "write it like 22:00-07:00"
_QUIET = re.compile(r"(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)\Z")


class SavedView(Struct, frozen=True):
    """A slice of the queue: which beads, in which order, how and with which columns they are shown; or a filter of
    *Needs me*."""

    name: str
    filter: str = ""
    """In the filter language, its order too."""
    view: str = ""
    """``dag``, ``tree``, ``lanes`` or ``order``; empty keeps the present one; ``needs`` is a filter of *Needs me*."""
    columns: tuple[str, ...] | None = None
    """None lets the width decide."""
    key: str = ""
    """In Textual's spelling, as ``f6``; empty if it has no key."""
    saved: bool = False
    """Saved from the console, not written by hand or built in."""

    def as_toml(self) -> str:
        """The view as a table of ``views.toml``."""
        parts: dict[str, object] = {"name": self.name, "filter": self.filter, "view": self.view, "key": self.key}
        if self.columns is not None:
            parts["columns"] = list(self.columns)
        # JSON escapes halves of an emoji, which TOML refuses; of control characters JSON does not escape DEL
        lines = [
            f"{name} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
            for name, value in parts.items()
            if value or name == "columns"
        ]
        return "\n".join(["[[view]]", *lines])


OWN_VIEWS = (
    SavedView(
        "ready, what unblocks most", "ready:yes order:unblocks,-age", columns=("unblocks", "holds", "priority", "age")
    ),
    SavedView("critical path", "path:yes order:path", columns=("holds", "priority", "age", "epic")),
    SavedView("held up longest", "state:waiting_dependencies,retry_cooldown order:-age", columns=("age", "epic")),
    SavedView("changed today", "updated<1d order:updated", columns=("updated", "priority", "labels")),
    SavedView("parked", f"state:{','.join(states_where(lane='parked'))} order:-age"),
)
"""The built-in views."""


def read_views(document: Mapping[str, Any], *, saved: bool = False) -> tuple[list[SavedView], list[str]]:
    """The views of a file, and one message for each that could not be read."""
    tables, views, problems = document.get("view", []), [], []
    for place, table in enumerate(tables if isinstance(tables, list) else [tables], 1):
        texts = [table.get(name, "") for name in ("name", "filter", "view", "key")] if isinstance(table, dict) else []
        columns = table.get("columns") if isinstance(table, dict) else None
        # only the name is required: a view without a filter shows every bead
        if not texts or not all(isinstance(text, str) for text in texts) or not texts[0].strip():
            problems.append(f"view {place}: write a table with a name and a filter, both texts")
            continue
        # invalid columns are dropped, the view is kept
        if columns is not None and not (isinstance(columns, list) and all(isinstance(each, str) for each in columns)):
            problems.append(f"view {place}: write columns as a list of names")
            columns = None
        name, text, view, key = (clean_line(each, 200).strip() for each in texts)
        shown = None if columns is None else tuple(columns)
        views.append(SavedView(name, text, view, shown, key, saved))
    return views, problems


TerminalWay = Literal["bell", "osc9", "osc777", "osc99"]


class QuietHours(Struct, frozen=True):
    """The quiet hours in minutes of the local day; none if both are equal."""

    start: int = 0
    end: int = 0

    def hold(self, now: int) -> bool:
        """Whether it is quiet at an instant."""
        moment = datetime.fromtimestamp(now // NS)
        minute = moment.hour * 60 + moment.minute
        # a span that starts later than it ends crosses midnight
        if self.start <= self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


def parse_quiet(text: str) -> QuietHours:
    """Parse ``22:00-07:00``; an empty text means none.

    Raises:
        ValueError: the text has another form.
    """
    if not text.strip():
        return QuietHours()
    found = _QUIET.match(text.strip())
    # 24 is not an hour: a text that does not match fails like an hour out of range
    numbers = [int(each) for each in found.groups()] if found is not None else [24]
    if found is None or max(numbers[::2]) > 23 or max(numbers[1::2]) > 59:
        raise ValueError(QUIET_FORM)
    return QuietHours(numbers[0] * 60 + numbers[1], numbers[2] * 60 + numbers[3])


class Settings(Struct, frozen=True):
    """The settings as written, and one message for each that could not be read."""

    theme: str = ""
    keymap: Mapping[str, str] = {}
    model_dir: str = ""
    """The folder of the weights for search by meaning; HELIX_MODEL_DIR takes precedence."""
    problems: tuple[str, ...] = ()
    stall_after_s: float | None = None
    """None if not set."""
    agent: str = ""
    """The agent; the command line and HELIX_AGENT take precedence."""
    model: str = ""
    """The model behind that agent."""
    systemic_days: float | None = None
    """None if not set; HELIX_SYSTEMIC_DAYS takes precedence."""
    autonomy: str = ""
    """low, medium or high; the command line and HELIX_AUTONOMY take precedence."""
    accept_lessons: AcceptRule = "landed-after-refusal"
    """Which lessons are accepted without asking."""
    budget_texts: Mapping[str, str] = {}
    """What a ``run`` and a ``day`` may cost, as written."""
    views: tuple[SavedView, ...] = ()
    """Saved views, as written."""
    notify: str = ""
    """The notification command."""
    notify_terminal: tuple[str, ...] | None = None
    """Ways to notify through the terminal; None uses what it supports."""
    quiet: QuietHours = field(default_factory=QuietHours)
    """The quiet hours."""

    @property
    def budget(self) -> Budget:
        """The budgets of a run and a day; no limit if not set."""
        from helix_tui.core.supervision.run_state.budget import Budget, parse_limits

        return Budget(*(parse_limits(self.budget_texts.get(span, "")) for span in ("run", "day")))


_Positive = Annotated[float, Meta(gt=0)]

_KINDS: Mapping[str, tuple[Any, str]] = {
    "theme": (str, "must be a name in quotes"),
    "keys": (dict[str, Any], "write a table, key id = key"),
    "model_dir": (str, "must be a folder in quotes"),
    "stall_after": (_Positive, "write a number of seconds"),
    "agent": (str, "must be a name in quotes"),
    "model": (str, "must be a name in quotes"),
    "systemic_days": (_Positive, "write a number of days"),
    "autonomy": (Literal["", "low", "medium", "high"], "write low, medium or high"),
    "accept_lessons": (AcceptRule, f"write one of {', '.join(get_args(AcceptRule))}"),
    "notify": (str, "must be a command in quotes"),
    "notify_terminal": (
        # an empty list is valid: no terminal notification
        tuple[TerminalWay, ...],
        f"write a list of {', '.join(TERMINAL_WAYS)}; an empty one is silent",
    ),
    "quiet": (str, QUIET_FORM),
}
"""A line of the file -> its type, and how to write it."""


def settings_file(env: Mapping[str, str] | None = None) -> Path:
    """The path of the settings, whether or not the file exists."""
    env = os.environ if env is None else env
    base = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME", ""), ".config")
    return Path(base, "helix-tui", "settings.toml")


def load_settings(path: Path | None = None) -> Settings:
    """The settings of a file; the defaults if there is none."""
    path = settings_file() if path is None else path
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_FILE).decode()
        import tomllib  # imported here, because most people have no such file

        document = tomllib.loads(text)
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError) as error:
        return Settings(problems=(f"{path.name} cannot be read: {clean_line(str(error), 120)}",))
    views, problems = read_views(document)
    values: dict[str, Any] = {}
    for name, (kind, advice) in _KINDS.items():
        if name not in document:
            continue
        try:
            values[name] = msgspec.convert(document[name], kind)
        except msgspec.ValidationError:
            problems.append(f"{name}: {advice}")
    keys = values.get("keys", {})
    keymap = {key_id: names for key_id, names in keys.items() if isinstance(names, str)}
    problems += [f"{clean_line(key_id, 40)}: must be a key in quotes" for key_id in keys if key_id not in keymap]
    try:
        quiet = parse_quiet(values.get("quiet", ""))
    except ValueError as error:
        problems.append(f"quiet: {error}")
        quiet = QuietHours()
    budget = _budget_texts(document, problems)
    return Settings(
        theme=values.get("theme", ""),
        keymap=keymap,
        # no shell expands ~ in the file
        model_dir=os.path.expanduser(values.get("model_dir", "")),
        problems=tuple(problems),
        stall_after_s=values.get("stall_after"),
        agent=clean_line(values.get("agent", ""), 120),
        model=clean_line(values.get("model", ""), 120),
        systemic_days=values.get("systemic_days"),
        autonomy=values.get("autonomy", ""),
        accept_lessons=values.get("accept_lessons", "landed-after-refusal"),
        budget_texts=budget,
        views=tuple(views),
        notify=values.get("notify", ""),
        notify_terminal=values.get("notify_terminal"),
        quiet=quiet,
    )


def _budget_texts(document: Mapping[str, object], problems: list[str]) -> dict[str, str]:
    """The valid budgets; one message for each invalid one."""
    found: dict[str, str] = {}
    for span in ("run", "day"):
        text = document.get(f"budget_{span}", "")
        # `== ""`, not falsy: a 0 is a mistake to report, not a missing line
        if text == "":
            continue
        from helix_tui.core.supervision.run_state.budget import HOW, parse_limits  # most people set no budget

        try:
            parse_limits(text if isinstance(text, str) else "?")
            found[span] = str(text)
        except ValueError:
            problems.append(f"budget_{span}: {HOW}")
    return found


# --- what the console saves ---------------------------------------------------------------------------------


def layout_file(env: Mapping[str, str] | None = None) -> Path:
    """The file of the saved layout: columns, splits; ``~/.local/state/helix-tui/layout.json``."""
    return state_folder(env) / "layout.json"


def _replace(path: Path, text: str) -> None:
    """Write a whole file, by rename.

    Raises:
        OSError: the folder cannot be created, or the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # by process: two consoles of one user may write at once, and each replaces the whole file
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)


class ViewBook:
    """All views: those written by hand, those saved from the console, the built-in ones.

    The console saves its own in ``views.toml`` beside the settings, in the same format; for one name the first
    counts. `write` is for a thread.
    """

    def __init__(self, by_hand: Sequence[SavedView] = (), path: Path | None = None) -> None:
        """Read the saved ones; without a file they last as long as the process."""
        self.path = path
        self.problems: tuple[str, ...] = ()
        self._by_hand = tuple(by_hand)
        self._kept: tuple[SavedView, ...] = ()
        self._lock = threading.Lock()
        if path is not None:
            self._read(path)

    @property
    def views(self) -> tuple[SavedView, ...]:
        """All of them, each name once."""
        found: dict[str, SavedView] = {}
        # the first of a name counts: hand-written views, then saved ones
        for view in (*self._by_hand, *self._kept, *OWN_VIEWS):
            found.setdefault(view.name, view)
        return tuple(found.values())

    def named(self, name: str) -> SavedView | None:
        """The view of a name."""
        return next((view for view in self.views if view.name == name), None)

    def keep(self, view: SavedView) -> None:
        """Save a view, replacing one of the same name."""
        self._kept = (*(other for other in self._kept if other.name != view.name), replace(view, saved=True))

    def drop(self, name: str) -> None:
        """Remove a saved view."""
        self._kept = tuple(view for view in self._kept if view.name != name)

    def write(self) -> None:
        """Write the saved ones.

        Raises:
            OSError: the folder cannot be created, or the file cannot be written.
        """
        if self.path is not None:
            head = "# Views saved from the console (V). Edit them, or write such tables in settings.toml.\n\n"
            # each change is written in a separate thread, and all use one temporary name
            with self._lock:
                _replace(self.path, head + "".join(f"{view.as_toml()}\n\n" for view in self._kept))

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                text = file.read(_MAX_FILE).decode()
            import tomllib

            views, problems = read_views(tomllib.loads(text), saved=True)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            self.problems = (f"{path.name} cannot be read: {clean_line(str(error), 120)}",)
            self.path = None  # a file broken by hand is not overwritten
            return
        self._kept, self.problems = tuple(views), tuple(f"{path.name}: {problem}" for problem in problems)


class Layout:
    """The saved layout. Read once at the start; call `write` in a thread.

    Without a file (tests, one printed frame) it lasts as long as the process.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._kept: dict[str, Any] = {}
        self._lock = threading.Lock()
        self.problem = ""
        """Why the file was not read, in one sentence; empty if it was."""
        if path is not None:
            self._read(path)

    @property
    def first_start(self) -> bool:
        """Whether nothing was ever saved: this is the first start."""
        # an unreadable file exists, so this is not the first start
        return self.path is not None and not self._kept and not self.problem

    def note_start(self) -> None:
        """Record that the first start is over."""
        self._kept = {**self._kept, "seen": True}

    def columns(self, of: str) -> tuple[str, ...] | None:
        """The chosen columns of a list, in order; None if none were chosen."""
        chosen = self._kept.get("columns", {}).get(of)
        return tuple(chosen) if chosen is not None else None

    def choose_columns(self, of: str, names: Sequence[str] | None) -> None:
        """Save the columns of a list; None lets the width decide again."""
        self._keep("columns", of, None if names is None else list(names))

    def order(self, of: str) -> tuple[str, bool]:
        """The last order of a list, and whether it was reversed; empty if none was chosen."""
        kept = self._kept.get("order", {}).get(of, "")
        return kept.removeprefix("-"), kept.startswith("-")

    def choose_order(self, of: str, name: str, *, turned: bool) -> None:
        """Save the order of a list."""
        self._keep("order", of, f"{'-' * turned}{name}")

    def split(self, of: str) -> int | None:
        """The share of the list of a screen in percent; None if not set."""
        share = self._kept.get("split", {}).get(of)
        # a file edited by hand must not hide a pane
        return share if share is None else min(90, max(10, int(share)))

    def move_split(self, of: str, share: int) -> None:
        """Save the split of a screen."""
        self._keep("split", of, share)

    def write(self) -> None:
        """Write the file, by rename.

        Raises:
            OSError: the folder cannot be created, or the file cannot be written.
        """
        if self.path is not None:
            with self._lock:
                document = {"schema": "layout/1", **self._kept}
                _replace(self.path, json.dumps(document, indent=1, sort_keys=True) + "\n")

    def _keep(self, what: str, of: str, value: object) -> None:
        # a new table each time: a thread may be writing the old one
        table = {**self._kept.get(what, {})}
        table.pop(of, None)
        if value is not None:
            table[of] = value
        self._kept = {**self._kept, what: table}

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                document = json.loads(file.read(_MAX_FILE))
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            self.problem = f"{path.name} cannot be read: {clean_line(str(error), 120)}"
            return
        if isinstance(document, dict):
            self._kept = _well_formed(document)


def _well_formed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The valid parts of a layout; an edited file must not prevent the start."""
    # the file exists, so this is not the first start, whatever is in it
    kept: dict[str, Any] = {"seen": True}
    columns, order, split = (document.get(name) for name in ("columns", "order", "split"))
    if isinstance(columns, dict):
        kept["columns"] = {
            of: [name for name in names if isinstance(name, str)]
            for of, names in columns.items()
            if isinstance(names, list)
        }
    if isinstance(order, dict):
        kept["order"] = {of: name for of, name in order.items() if isinstance(name, str)}
    if isinstance(split, dict):
        # `type is`, since a bool is an int to isinstance
        kept["split"] = {of: share for of, share in split.items() if type(share) is int}
    return kept
