"""Names of memories, as an option gives them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from helix_tui.cli.call import CliError


def names(option: str, text: str) -> Sequence[str]:
    """The names in a JSON list; a list with memories in it, as recall prints them, is one too."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise CliError(f"{option} is not JSON: {error}", f"For example: {option} '[\"name\"]'", 2) from None
    items = found if isinstance(found, list) else [found]
    found_names = [str(item.get("name", "")) if isinstance(item, dict) else item for item in items]
    if not all(isinstance(name, str | int) and not isinstance(name, bool) for name in found_names):
        raise CliError(f"{option} is not a list of names", f"For example: {option} '[\"name\"]'", 2)
    return [str(name) for name in found_names if name != ""]
