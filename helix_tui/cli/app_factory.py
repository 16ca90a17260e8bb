"""Making the app for a call: the options that the console, its snapshot and the demo share."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from helix_tui.cli import programs
from helix_tui.cli.call import Call, CliError
from helix_tui.core.ground.text import clean_line
from helix_tui.core.snapshot.snapshot import Change, Snapshot

if TYPE_CHECKING:
    from helix_tui.app import Feed, HelixApp, LookOut

OnChange = Callable[[Snapshot, Change], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that the console, its snapshot and the demo share."""
    parser.add_argument(
        "--screen", metavar="NAME", default="", help="the screen: queue, loop, memory, needs, … (default: home)"
    )
    parser.add_argument("--pane", action="store_true", help="side-pane layout, for 40 to 60 columns")
    parser.add_argument("--theme", metavar="NAME", help="helix-night, helix-paper, helix-stark, helix-16")
    parser.add_argument("--ascii", action="store_true", help="plain letters instead of glyphs")


def make_app(
    call: Call, open_feed: Callable[[OnChange], Feed], *, look_out: LookOut = "live", home: bool = False
) -> HelixApp:
    """The app for this call; with ``home``, it opens on Needs me unless another screen was asked for."""
    # Textual reads this on import: a key right after a frame waits 4 ms for the next frame, not 17
    os.environ.setdefault("TEXTUAL_FPS", "240")
    from helix_tui.app import HelixApp
    from helix_tui.screens import SCREENS, SHEETS
    from helix_tui.settings.file import load_settings, settings_file
    from helix_tui.settings.layout import Layout, layout_file
    from helix_tui.settings.views import ViewBook

    options, settings = call.options, load_settings()
    named = "" if options.screen == "home" else options.screen
    options.screen = named or "queue"
    if options.screen not in (*SCREENS, *SHEETS):
        name = clean_line(options.screen, 40)
        raise CliError(f"there is no screen “{name}”", f"Choose one of: {', '.join((*SCREENS, *SHEETS))}.", 2)
    return HelixApp(
        open_feed,
        read_only=call.read_only,
        pane=options.pane,
        ascii_only=options.ascii,
        theme=options.theme,
        screen=options.screen,
        settings=settings,
        view_book=ViewBook(settings.views, settings_file().with_name("views.toml")),
        # a snapshot shows the default layout, whatever the user has arranged since
        kept=Layout(layout_file() if look_out == "live" else None),
        clock=call.clock,
        ddx=call.ddx,
        look_out=look_out,
        own=programs.helix_tui(),
        home=home and not options.pane and not named,
    )
