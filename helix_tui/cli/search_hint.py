"""The hint that search by meaning lacks its weights: once a person, at the first ``memory`` or ``ask`` without."""

from __future__ import annotations

import os
from contextlib import suppress

from helix_tui.cli.call import Call
from helix_tui.core.embedding import Loaded, load_encoder
from helix_tui.core.ground.project import user_cache_dirs

_HINT = "weights-hint"


def hint_once(call: Call, loaded: Loaded | None = None) -> None:
    """Say once a person that search goes by words, and what to do about it."""
    if os.environ.get("HELIX_EMBEDDER") == "off":
        return
    folder = next(iter(user_cache_dirs(os.environ)), None)
    # the mark first: to load the encoder takes a third of a second
    if folder is None or (folder / "helix-tui" / _HINT).exists():
        return
    if (loaded or load_encoder()).encoder is not None:
        return
    call.note("helix: searching by words only; helix-tui setup fetches the weights for search by meaning")
    mark = folder / "helix-tui" / _HINT
    with suppress(OSError):  # told again the next time
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
