"""``version``: which program answers, and as which release of DDx."""

from __future__ import annotations

from helix_ddx.store.call import VerbCall
from helix_tui import __version__


def tell(call: VerbCall) -> None:
    """``version``; DDx has no machine-readable form of it either."""
    call.say(f"DDx stand-in: helix-ddx {__version__}\nSpeaks: {call.era}")
