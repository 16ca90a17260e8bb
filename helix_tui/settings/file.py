"""The user's settings in ``~/.config/helix-tui/settings.toml``.

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

A line that cannot be read costs itself and a notice; if the file cannot be read, the defaults apply, with one. Whether
a theme or a key exists is checked by the app.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct, field

from helix_tui.core.ground.text import clean_line
from helix_tui.core.memory.provenance import AcceptRule
from helix_tui.settings.quiet_hours import QUIET_FORM, QuietHours, parse_quiet
from helix_tui.settings.toml import read_fields, read_toml
from helix_tui.settings.views import SavedView, read_views

if TYPE_CHECKING:
    from helix_tui.core.supervision.run_state.budget import Budget, Limits

TerminalWay = Literal["bell", "osc9", "osc777", "osc99"]
"""How to notify through a terminal: its bell, or one of three sequences for a desktop notification."""

TERMINAL_WAYS: tuple[TerminalWay, ...] = get_args(TerminalWay)

_Positive = Annotated[float, Meta(gt=0)]
_Name = Annotated[str, Meta(description="a name in quotes")]
_Budget = Annotated[str, Meta(description='a text like "$5, 2M tokens, 10 attempts"')]


class SettingsFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The lines of the file; each description says how to write one."""

    theme: _Name = ""
    keymap: Annotated[Mapping[str, str], Meta(description="a table, key id = keys in quotes")] = field(
        default_factory=dict, name="keys"
    )
    model_dir: Annotated[str, Meta(description="a folder in quotes")] = ""
    """The folder of the weights for search by meaning; HELIX_MODEL_DIR takes precedence."""
    stall_after_s: Annotated[_Positive | None, Meta(description="a number of seconds")] = field(
        default=None, name="stall_after"
    )
    """None if not set."""
    agent: _Name = ""
    """The agent; the command line and HELIX_AGENT take precedence."""
    model: _Name = ""
    """The model behind that agent."""
    systemic_days: Annotated[_Positive | None, Meta(description="a number of days")] = None
    """None if not set; HELIX_SYSTEMIC_DAYS takes precedence."""
    autonomy: Annotated[Literal["", "low", "medium", "high"], Meta(description="low, medium or high, in quotes")] = ""
    """The command line and HELIX_AUTONOMY take precedence."""
    accept_lessons: Annotated[AcceptRule, Meta(description=f"one of {', '.join(get_args(AcceptRule))}, in quotes")] = (
        "landed-after-refusal"
    )
    """Which lessons are accepted without asking."""
    budget_run: _Budget = ""
    """What a run may cost."""
    budget_day: _Budget = ""
    """What a day may cost in all."""
    views: Annotated[tuple[SavedView, ...], Meta(description="tables with a name and a filter")] = field(
        default=(), name="view"
    )
    """Saved views, as written."""
    notify: Annotated[str, Meta(description="a command in quotes")] = ""
    """The notification command."""
    notify_terminal: Annotated[
        # an empty list is valid: no terminal notification
        tuple[TerminalWay, ...] | None,
        Meta(description=f"a list of {', '.join(TERMINAL_WAYS)}; an empty one is silent"),
    ] = None
    """Ways to notify through the terminal; None uses what it supports."""
    quiet: Annotated[str, Meta(description=f"{QUIET_FORM}, in quotes")] = ""
    """The quiet hours."""

    @property
    def quiet_hours(self) -> QuietHours:
        """The quiet hours."""
        return parse_quiet(self.quiet)

    @property
    def budget(self) -> Budget:
        """The budgets of a run and a day; no limit if not set."""
        from helix_tui.core.supervision.run_state.budget import Budget

        return Budget(_limits(self.budget_run), _limits(self.budget_day))


class Settings(SettingsFile, frozen=True):
    """The settings as read."""

    problems: tuple[str, ...] = ()
    """One message for each line that could not be read."""


def settings_file(env: Mapping[str, str] | None = None) -> Path:
    """The path of the settings, whether or not the file exists."""
    env = os.environ if env is None else env
    base = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME", ""), ".config")
    return Path(base, "helix-tui", "settings.toml")


def load_settings(path: Path | None = None) -> Settings:
    """The settings of a file; the defaults if there is none."""
    try:
        document = read_toml(settings_file() if path is None else path)
    except ValueError as error:
        return Settings(problems=(str(error),))
    keys, views = document.pop("keys", {}), document.pop("view", [])
    values, problems = read_fields(document, SettingsFile, _CHECKS)
    keymap, of_keys = _read_keys(keys)
    written_views, of_views = read_views(views)
    return Settings(**values, keymap=keymap, views=written_views, problems=(*problems, *of_keys, *of_views))


def _read_keys(table: object) -> tuple[dict[str, str], list[str]]:
    """The keymap, and one message for each line of ``[keys]`` that could not be read."""
    lines = table if isinstance(table, dict) else {"keys": table}
    keymap = {key_id: names for key_id, names in lines.items() if isinstance(names, str) and lines is table}
    return keymap, [f"{clean_line(key_id, 40)}: write a key in quotes" for key_id in lines if key_id not in keymap]


def settings_schema() -> dict[str, Any]:
    """What may stand in the file, as a JSON schema, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(SettingsFile)}


def _limits(text: str) -> Limits:
    from helix_tui.core.supervision.run_state.budget import parse_limits  # most people set no budget

    return parse_limits(text)


def _valid(parse: Callable[[str], object]) -> Callable[[str], str]:
    """A check that a text means something; it stays as it was written."""

    def check(text: str) -> str:
        parse(text)
        return text

    return check


def _name(text: str) -> str:
    return clean_line(text, 120)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    # no shell expands ~ in the file
    "model_dir": os.path.expanduser,
    "agent": _name,
    "model": _name,
    "budget_run": _valid(_limits),
    "budget_day": _valid(_limits),
    "quiet": _valid(parse_quiet),
}
"""By the key of a line, what its type does not say."""
