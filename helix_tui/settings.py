"""What the user has set in ``~/.config/helix-tui/settings.toml``, and what the console keeps: saved views, the layout.

    theme = "helix-paper"
    model_dir = "~/models/all-MiniLM-L6-v2"
    agent = "claude"           # who does the work, where neither --agent nor HELIX_AGENT says
    model = "sonnet"           # the model behind that agent
    stall_after = 600          # seconds without an event after which a worker is called silent
    autonomy = "medium"        # how far HELIX's loop goes by itself: low, medium, high
    accept_lessons = "none"    # lessons that `memory learn --apply` takes in by itself: failures, patterns, all
    systemic_days = 7          # days within which three occurrences make a failure systemic
    budget_run = "$5"          # what a run may cost: "$5, 2M tokens, 10 attempts"
    budget_day = "$20"         # what a day may cost, whoever spends it
    notify = "notify-me"       # a command that is told what needs you and when a run ends, as JSON on its input
    notify_terminal = ["bell"] # of bell, osc9, osc777, osc99; else what the terminal is known for
    quiet = "22:00-07:00"      # when nobody is told; what comes up meanwhile is told afterwards
    [keys]
    "move.down" = "n,down"
    [[view]]                   # a slice of the queue, on `V` and on a key of its own
    name = "bugs by age"
    filter = "type:bug order:-age"
    columns = ["labels", "age"]
    key = "f6"

A file that cannot be read costs its settings and one notice, never the start. Whether a theme or a key exists
is the app's to say.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS

if TYPE_CHECKING:
    from helix_tui.core.supervision.run_state.budget import Budget

_MAX_FILE = 1 << 16


class SavedView(Struct, frozen=True):
    """A slice of the queue: which beads, in which order, how and with which columns they are shown."""

    name: str
    filter: str = ""
    """In the filter language, its order too."""
    view: str = ""
    """``dag``, ``tree``, ``lanes`` or ``order``; empty for whatever is shown."""
    columns: tuple[str, ...] | None = None
    """None leaves them to the width."""
    key: str = ""
    """In Textual's spelling, as ``f6``; empty where only ``V`` leads to it."""
    saved: bool = False
    """Kept by the console, and not written by hand or part of it."""

    def as_toml(self) -> str:
        """The view as a table of ``views.toml``."""
        parts: dict[str, object] = {"name": self.name, "filter": self.filter, "view": self.view, "key": self.key}
        if self.columns is not None:
            parts["columns"] = list(self.columns)
        # JSON's \u names halves of an emoji, which TOML refuses; of control characters JSON leaves DEL as it is
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
    SavedView("waits for a person", "state:proposed,preserved_review_blocked,unknown_status order:-age"),
)
"""Views that the console brings along."""


def read_views(document: Mapping[str, Any], *, saved: bool = False) -> tuple[list[SavedView], list[str]]:
    """The views of a file, and one sentence for each that could not be read."""
    tables, views, problems = document.get("view", []), [], []
    for place, table in enumerate(tables if isinstance(tables, list) else [tables], 1):
        texts = [table.get(name, "") for name in ("name", "filter", "view", "key")] if isinstance(table, dict) else []
        columns = table.get("columns") if isinstance(table, dict) else None
        # only the name must be there: a view without a filter shows every bead
        if not texts or not all(isinstance(text, str) for text in texts) or not texts[0].strip():
            problems.append(f"view {place}: write a table with a name and a filter, both texts")
            continue
        # columns that cannot be read cost the columns, not the view
        if columns is not None and not (isinstance(columns, list) and all(isinstance(each, str) for each in columns)):
            problems.append(f"view {place}: write columns as a list of names")
            columns = None
        name, text, view, key = (clean_line(each, 200).strip() for each in texts)
        shown = None if columns is None else tuple(columns)
        views.append(SavedView(name, text, view, shown, key, saved))
    return views, problems


TERMINAL_WAYS = ("bell", "osc9", "osc777", "osc99")
"""How a terminal can be told: its bell, or one of three sequences for a note on the desktop."""

_QUIET = re.compile(r"(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)\Z")


class QuietHours(Struct, frozen=True):
    """From when to when nobody is told, in minutes of the local day; none where both are the same."""

    start: int = 0
    end: int = 0

    def hold(self, now: int) -> bool:
        """Whether it is quiet at an instant."""
        moment = datetime.fromtimestamp(now // NS)
        minute = moment.hour * 60 + moment.minute
        # a span that starts later than it ends goes over midnight
        if self.start <= self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


def parse_quiet(text: str) -> QuietHours:
    """``22:00-07:00``; an empty text is none.

    Raises:
        ValueError: it is written otherwise.
    """
    if not text.strip():
        return QuietHours()
    found = _QUIET.match(text.strip())
    # 24 is no hour: a text that does not match fails as an hour out of range does
    numbers = [int(each) for each in found.groups()] if found is not None else [24]
    if found is None or max(numbers[::2]) > 23 or max(numbers[1::2]) > 59:
        raise ValueError("write it like 22:00-07:00")
    return QuietHours(numbers[0] * 60 + numbers[1], numbers[2] * 60 + numbers[3])


class Settings(Struct, frozen=True):
    """Settings as written, and one sentence for each that could not be read."""

    theme: str = ""
    keymap: Mapping[str, str] = {}
    model_dir: str = ""
    """Where the weights for search by meaning lie; what HELIX_MODEL_DIR says comes before it."""
    problems: tuple[str, ...] = ()
    stall_after_s: float | None = None
    """None where nothing is set."""
    agent: str = ""
    """Who does the work; what a command line or HELIX_AGENT says comes before it."""
    model: str = ""
    """The model behind that agent."""
    systemic_days: float | None = None
    """None where nothing is set; what HELIX_SYSTEMIC_DAYS says comes before it."""
    autonomy: str = ""
    """low, medium, high; what a command line or HELIX_AUTONOMY says comes before it."""
    accept_lessons: str = ""
    """none, failures, patterns, all: the rule by which lessons are taken in without asking each time."""
    budget_texts: Mapping[str, str] = {}
    """What a ``run`` and a ``day`` may cost, as written."""
    views: tuple[SavedView, ...] = ()
    """Slices of the queue, as the file has them."""
    notify: str = ""
    """The command that is told what needs a person."""
    notify_terminal: tuple[str, ...] | None = None
    """Ways to tell the terminal; None leaves them to what it is known for."""
    quiet: QuietHours = field(default_factory=QuietHours)
    """When nobody is told."""

    @property
    def budget(self) -> Budget:
        """What a run and a day may cost; no limit where nothing is set."""
        from helix_tui.core.supervision.run_state.budget import Budget, parse_limits

        return Budget(*(parse_limits(self.budget_texts.get(span, "")) for span in ("run", "day")))


def settings_file(env: Mapping[str, str] | None = None) -> Path:
    """Where the settings lie, whether or not they are there."""
    env = os.environ if env is None else env
    base = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME", ""), ".config")
    return Path(base, "helix-tui", "settings.toml")


def load_settings(path: Path | None = None) -> Settings:
    """The settings of a file; the defaults where there is none."""
    path = settings_file() if path is None else path
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_FILE).decode()
        import tomllib  # here, because most people have no such file

        document = tomllib.loads(text)
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError) as error:
        return Settings(problems=(f"{path.name} cannot be read: {clean_line(str(error), 120)}",))
    theme, keys = document.get("theme", ""), document.get("keys", {})
    problems = [] if isinstance(theme, str) else ["theme: must be a name in quotes"]
    stall = document.get("stall_after")
    # a bool is an int to Python: `stall_after = true` would be one second; and TOML knows nan: `not > 0`, not `<= 0`
    if stall is not None and (isinstance(stall, bool) or not isinstance(stall, int | float) or not stall > 0):
        problems.append("stall_after: write a number of seconds")
        stall = None
    days = document.get("systemic_days")
    if days is not None and (isinstance(days, bool) or not isinstance(days, int | float) or not days > 0):
        problems.append("systemic_days: write a number of days")
        days = None
    views, unread = read_views(document)
    problems += unread
    if not isinstance(keys, dict):
        problems.append("keys: write a table, key id = key")
        keys = {}
    keymap = {key_id: names for key_id, names in keys.items() if isinstance(names, str)}
    problems += [f"{clean_line(key_id, 40)}: must be a key in quotes" for key_id in keys if key_id not in keymap]
    who = {name: document.get(name, "") for name in ("agent", "model")}
    for name, value in who.items():
        if not isinstance(value, str):
            problems.append(f"{name}: must be a name in quotes")
            who[name] = ""
    autonomy = document.get("autonomy", "")
    if autonomy not in ("", "low", "medium", "high"):
        problems.append("autonomy: write low, medium or high")
        autonomy = ""
    accept = document.get("accept_lessons", "")
    if accept not in ("", "none", "failures", "patterns", "all"):
        problems.append("accept_lessons: write none, failures, patterns or all")
        accept = ""
    model_dir = document.get("model_dir", "")
    if not isinstance(model_dir, str):
        problems.append("model_dir: must be a folder in quotes")
        model_dir = ""
    budget = _budget_texts(document, problems)
    telling = _notifying(document, problems)
    return Settings(
        theme if isinstance(theme, str) else "",
        keymap,
        # the file has no shell that resolves ~
        os.path.expanduser(model_dir),
        tuple(problems),
        stall,
        clean_line(who["agent"], 120),
        clean_line(who["model"], 120),
        days,
        autonomy,
        accept,
        budget,
        tuple(views),
        *telling,
    )


def _notifying(document: Mapping[str, object], problems: list[str]) -> tuple[str, tuple[str, ...] | None, QuietHours]:
    """The command, the ways of the terminal, the quiet hours; a sentence for each that cannot be read."""
    command, ways, quiet = (document.get(name) for name in ("notify", "notify_terminal", "quiet"))
    if command is not None and not isinstance(command, str):
        problems.append("notify: must be a command in quotes")
        command = None
    # an empty list is an answer: the terminal is told in no way
    if ways is not None and not (isinstance(ways, list) and all(way in TERMINAL_WAYS for way in ways)):
        problems.append(f"notify_terminal: write a list of {', '.join(TERMINAL_WAYS)}; an empty one is silent")
        ways = None
    try:
        hours = parse_quiet(quiet) if isinstance(quiet, str) else QuietHours()
        if quiet is not None and not isinstance(quiet, str):
            raise ValueError("write it like 22:00-07:00")
    except ValueError as error:
        problems.append(f"quiet: {error}")
        hours = QuietHours()
    return command or "", None if ways is None else tuple(ways), hours


def _budget_texts(document: Mapping[str, object], problems: list[str]) -> dict[str, str]:
    """The budgets that can be understood; a sentence for each that cannot."""
    found: dict[str, str] = {}
    for span in ("run", "day"):
        text = document.get(f"budget_{span}", "")
        # `== ""` and not falsy: a 0 is a mistake to be told, not a missing line
        if text == "":
            continue
        from helix_tui.core.supervision.run_state.budget import HOW, parse_limits  # most people set none

        try:
            parse_limits(text if isinstance(text, str) else "?")
            found[span] = str(text)
        except ValueError:
            problems.append(f"budget_{span}: {HOW}")
    return found


# --- what the console keeps by itself -----------------------------------------------------------------------


def layout_file(env: Mapping[str, str] | None = None) -> Path:
    """Where the console keeps how its user left it: columns, splits; ``~/.local/state/helix-tui/layout.json``."""
    env = os.environ if env is None else env
    base = env.get("XDG_STATE_HOME") or os.path.join(env.get("HOME", ""), ".local", "state")
    return Path(base, "helix-tui", "layout.json")


def _replace(path: Path, text: str) -> None:
    """Write a whole file, by rename.

    Raises:
        OSError: the folder cannot be made, or the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # by process: two consoles of one user may write at once, and each replaces the whole file
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)


class ViewBook:
    """Every saved view: those written by hand, those kept from the console, those that it brings along.

    The console keeps its own in ``views.toml`` beside the settings, in the same words; of one name the first
    counts. `write` is for a thread.
    """

    def __init__(self, by_hand: Sequence[SavedView] = (), path: Path | None = None) -> None:
        """Read the kept ones; without a file they are kept for as long as the process runs."""
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
        # the first of a name counts: what somebody wrote by hand, then what was kept
        for view in (*self._by_hand, *self._kept, *OWN_VIEWS):
            found.setdefault(view.name, view)
        return tuple(found.values())

    def named(self, name: str) -> SavedView | None:
        """The view of a name."""
        return next((view for view in self.views if view.name == name), None)

    def keep(self, view: SavedView) -> None:
        """Keep a view, in place of one of the same name."""
        self._kept = (*(other for other in self._kept if other.name != view.name), replace(view, saved=True))

    def drop(self, name: str) -> None:
        """Keep it no longer."""
        self._kept = tuple(view for view in self._kept if view.name != name)

    def write(self) -> None:
        """Write the kept ones.

        Raises:
            OSError: the folder cannot be made, or the file cannot be written.
        """
        if self.path is not None:
            head = "# Views saved from the console (V). Edit them, or write such tables in settings.toml.\n\n"
            # each change is written in a thread of its own, and all of them use one temporary name
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
            self.path = None  # what somebody broke by hand is not overwritten
            return
        self._kept, self.problems = tuple(views), tuple(f"{path.name}: {problem}" for problem in problems)


class Layout:
    """How the user left the console. Read once at the start; `write` is for a thread.

    Without a file (tests, one printed frame) it is kept for as long as the process runs.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._kept: dict[str, Any] = {}
        self._lock = threading.Lock()
        self.problem = ""
        """Why the file was not read, in one sentence; empty where all is well."""
        if path is not None:
            self._read(path)

    @property
    def first_start(self) -> bool:
        """Whether nothing was ever kept: the console is new to its user."""
        # a file that cannot be read was written by somebody: that is no first start
        return self.path is not None and not self._kept and not self.problem

    def note_start(self) -> None:
        """From now on it is no first start."""
        self._kept = {**self._kept, "seen": True}

    def columns(self, of: str) -> tuple[str, ...] | None:
        """The names of the columns that were chosen for a list, in order; None where nobody chose any."""
        chosen = self._kept.get("columns", {}).get(of)
        return tuple(chosen) if chosen is not None else None

    def choose_columns(self, of: str, names: Sequence[str] | None) -> None:
        """Keep the columns of a list; None leaves the choice to the console again."""
        self._keep("columns", of, None if names is None else list(names))

    def order(self, of: str) -> tuple[str, bool]:
        """By what a list was last sorted, and whether turned round; empty where nobody chose."""
        kept = self._kept.get("order", {}).get(of, "")
        return kept.removeprefix("-"), kept.startswith("-")

    def choose_order(self, of: str, name: str, *, turned: bool) -> None:
        """Keep by what a list is sorted."""
        self._keep("order", of, f"{'-' * turned}{name}")

    def split(self, of: str) -> int | None:
        """How many of a hundred cells the list of a screen takes; None where nobody said."""
        share = self._kept.get("split", {}).get(of)
        # a file edited by hand must not hide a pane
        return share if share is None else min(90, max(10, int(share)))

    def move_split(self, of: str, share: int) -> None:
        """Keep where the split of a screen is."""
        self._keep("split", of, share)

    def write(self) -> None:
        """Write the file, by rename.

        Raises:
            OSError: the folder cannot be made, or the file cannot be written.
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
    """The parts of a layout that are what they should be; a file that somebody edited cannot end the start."""
    # the file is there, so the console is not new to its user, whatever is in it
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
