"""What the user has set: ``~/.config/helix-tui/settings.toml``: a theme, a threshold, keys of their own.

    theme = "helix-paper"
    model_dir = "~/models/all-MiniLM-L6-v2"
    agent = "claude"           # who does the work, where neither --agent nor HELIX_AGENT says
    model = "sonnet"           # the model behind that agent
    stall_after = 600          # seconds without an event after which a worker is called silent
    systemic_days = 7          # days within which three occurrences make a failure systemic
    [keys]
    "move.down" = "n,down"

A file that cannot be read costs its settings and one notice, never the start. Whether a theme or a key exists
is the app's to say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from helix_tui.core.ground.text import clean_line

_MAX_FILE = 1 << 16


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings as written, and one sentence for each that could not be read."""

    theme: str = ""
    keymap: Mapping[str, str] = field(default_factory=dict)
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
        return Settings(problems=(f"{path.name} is not read: {clean_line(str(error), 120)}",))
    theme, keys = document.get("theme", ""), document.get("keys", {})
    problems = [] if isinstance(theme, str) else ["theme: write a name as a text"]
    stall = document.get("stall_after")
    if stall is not None and (isinstance(stall, bool) or not isinstance(stall, int | float) or stall <= 0):
        problems.append("stall_after: write a number of seconds")
        stall = None
    days = document.get("systemic_days")
    if days is not None and (isinstance(days, bool) or not isinstance(days, int | float) or not days > 0):
        problems.append("systemic_days: write a number of days")
        days = None
    if not isinstance(keys, dict):
        problems.append("keys: write a table, key id = key")
        keys = {}
    keymap = {key_id: names for key_id, names in keys.items() if isinstance(names, str)}
    problems += [f"{clean_line(key_id, 40)}: write a key as a text" for key_id in keys if key_id not in keymap]
    who = {name: document.get(name, "") for name in ("agent", "model")}
    for name, value in who.items():
        if not isinstance(value, str):
            problems.append(f"{name}: write a name as a text")
            who[name] = ""
    model_dir = document.get("model_dir", "")
    if not isinstance(model_dir, str):
        problems.append("model_dir: write a folder as a text")
        model_dir = ""
    return Settings(
        theme if isinstance(theme, str) else "",
        keymap,
        os.path.expanduser(model_dir),
        tuple(problems),
        stall,
        clean_line(who["agent"], 120),
        clean_line(who["model"], 120),
        days,
    )
