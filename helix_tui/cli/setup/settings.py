"""``helix-tui settings``: what can be set, what is, and what is wrong with it."""

from __future__ import annotations

import argparse

import msgspec

from helix_tui.cli.call import Call
from helix_tui.core.ground.text import clean_line
from helix_tui.settings.file import SettingsFile, load_settings, settings_file, settings_schema
from helix_tui.settings.toml import described

_MAX_VALUE = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--schema", action="store_true", help="the JSON schema of the file, for editors")


def run(call: Call) -> int:
    """Print the settings; exit code 1 if a line of the file cannot be read."""
    if call.options.schema:
        call.emit(settings_schema())
        return 0
    path, settings = settings_file(), load_settings()
    written = msgspec.to_builtins(settings)
    problems = written.pop("problems")
    if call.json:
        call.emit({"file": str(path), "exists": path.exists(), "settings": written, "problems": problems})
        return int(bool(problems))
    call.print(f"{clean_line(str(path), _MAX_VALUE)}{'' if path.exists() else ' (no such file: the defaults apply)'}")
    default = msgspec.to_builtins(SettingsFile())
    for field in msgspec.structs.fields(SettingsFile):
        name = field.encode_name
        value = clean_line(msgspec.json.encode(written[name]).decode(), _MAX_VALUE)
        call.print(f"  {name:<16} {'not set: ' + described(field) if written[name] == default[name] else value}")
    for problem in problems:
        call.note(f"helix-tui: {problem}")
    return int(bool(problems))
