"""The screen as a picture, for ``helix-tui snapshot --format svg`` and ``screenshot``."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App

_LED_BY_BLANKS = re.compile(
    r'(<text class="[^"]*" x=")([\d.]+)(" y="[\d.]+" textLength=")([\d.]+)("[^>]*>)((?:&#160;)+)'
)
_CELL = 12.2
"""Width of a cell in the picture, as Rich draws it: 20 × 0.61."""


def picture_of(app: App[Any]) -> str:
    """What is on screen, as SVG."""
    return steady(app.export_screenshot())


def steady(svg: str) -> str:
    """The picture with every text starting at its first letter.

    Some renderers, such as librsvg, drop leading blanks of a text, so that words run together.
    """

    def begun(found: re.Match[str]) -> str:
        lead, x, middle, length, end, blanks = found.groups()
        cells = blanks.count("&#160;") * _CELL
        return f"{lead}{float(x) + cells:g}{middle}{max(0.0, float(length) - cells):g}{end}"

    return _LED_BY_BLANKS.sub(begun, svg)


def keep_picture(svg: str, name: str, folder: Path | None = None) -> Path:
    """Write a picture to a new file; by default in the user's downloads folder.

    Raises:
        OSError: it cannot be written.
    """
    if folder is None:
        from platformdirs import user_downloads_path

        folder = user_downloads_path()
    folder.mkdir(parents=True, exist_ok=True)
    names = (f"{name}-{number}" if number > 1 else name for number in itertools.count(1))
    file = next(path for each in names if not (path := folder / f"{each}.svg").exists())
    # "x": another console may have created that file meanwhile
    with file.open("x", encoding="utf-8") as out:
        out.write(svg)
    return file
