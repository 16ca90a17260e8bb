"""Which encoder serves this process, in words where there is none."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from msgspec.structs import replace

from helix_tui.core.embedding.minilm import Encoder, Loaded
from helix_tui.core.embedding.weights import Search, find_weights

CHOICES = ("auto", "light", "sentence-transformers", "off")

FIX = "`helix-tui setup` fetches the weights (91 MB) after asking; HELIX_MODEL_DIR names a folder that has them."

_lock = threading.Lock()
_encoder: tuple[object, Encoder] | None = None
"""What the newest encoder was made of, and it: one, because its weights are most of what a process holds."""


def load_encoder(
    choice: str | None = None, *, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> Loaded:
    """The encoder that ``choice`` or ``HELIX_EMBEDDER`` asks for, or the reason why there is none.

    ``auto`` takes sentence-transformers, the embedder of record, where it is installed and finds the model, else
    the light encoder. An encoder is loaded once a process and shared. Never raises for what is missing or
    broken, never touches the network.
    """
    env = os.environ if env is None else env
    choice = choice or env.get("HELIX_EMBEDDER") or "auto"
    if choice not in CHOICES:
        return Loaded(None, f"no embedder “{choice[:40]}”", f"HELIX_EMBEDDER is one of: {', '.join(CHOICES)}.")
    if choice == "off":
        return Loaded(None, "the embedder is switched off", "Unset HELIX_EMBEDDER to search by meaning.")
    search = find_weights(folder, env=env)
    # looked for without importing it: the import takes seconds
    installed = choice != "light" and find_spec("sentence_transformers") is not None
    if choice == "sentence-transformers" and not installed:
        return Loaded(None, "sentence-transformers is not installed", "`pip install 'helix-tui[semantic]'`")
    record = _of_record(search) if installed else None
    # who names it gets it or the reason why not; `auto` goes on to the light encoder
    if record is not None and (record.encoder is not None or choice == "sentence-transformers"):
        return record
    if search.weights is None:
        return record or Loaded(None, _nowhere(search), FIX)
    light = _light(search)
    return light if record is None else replace(light, detail=f"{light.detail}; {record.detail}")


def _light(search: Search) -> Loaded:
    weights = search.weights
    assert weights is not None
    try:
        from helix_tui.core.embedding.minilm import MiniLM

        status = os.stat(weights.model), os.stat(weights.tokenizer)
        # weights that were replaced while this process runs are another encoder
        stamps = [(one.st_ino, one.st_mtime_ns, one.st_size) for one in status]
        encoder = _shared(("light", weights.folder, *stamps), lambda: MiniLM(weights))
    except (ImportError, OSError, ValueError) as error:
        return Loaded(None, f"the light encoder does not load: {error}", FIX)
    return Loaded(encoder, f"all-MiniLM-L6-v2, light encoder, weights from {weights.origin}")


def _of_record(search: Search) -> Loaded:
    from helix_tui.core.embedding.minilm import SentenceTransformers

    folder = search.weights.folder if search.weights else None
    try:
        encoder = _shared(("of record", folder), lambda: SentenceTransformers(folder))
    except (ImportError, OSError, ValueError, RuntimeError) as error:
        said = str(error).partition("\n")[0][:200]
        return Loaded(None, f"sentence-transformers does not load the model: {said}", FIX)
    origin = search.weights.origin if search.weights else "its own cache"
    return Loaded(encoder, f"all-MiniLM-L6-v2, sentence-transformers, weights from {origin}")


def _shared(key: object, make: Callable[[], Encoder]) -> Encoder:
    """The one encoder of this process: memory, recall and ask use the same weights."""
    global _encoder
    # held while it loads, so that a second thread waits for the same encoder instead of loading 90 MB again
    with _lock:
        if _encoder is None or _encoder[0] != key:
            _encoder = key, make()
        return _encoder[1]


def _nowhere(search: Search) -> str:
    if search.refused:
        return f"no usable weights of all-MiniLM-L6-v2: {search.refused[0]}"
    return "no weights of all-MiniLM-L6-v2 on this machine"
