"""all-MiniLM-L6-v2 through sentence-transformers, the embedder of record (docs/decisions/0020), kept
offline."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helix_tui.core.embedding.encoder import DIMENSIONS, MAX_TOKENS, MODEL_ID
from helix_tui.core.embedding.idle import IDLE_S, IdleModel


class SentenceTransformers:
    """The encoder of record; loading it takes seconds, so never on a screen's thread. The model is let go
    after ten minutes without a text; the library, 300 MB with torch, stays: Python cannot unload it."""

    model_id = MODEL_ID

    def __init__(self, folder: Path | None, *, idle_s: float = IDLE_S) -> None:
        """Load the model of a folder, or the one in the library's own cache.

        Raises:
            ImportError: sentence-transformers is not installed.
            OSError, ValueError: there is no such model on this machine; the network is never asked.
        """
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
            os.environ[name] = "1"
        library = import_module("sentence_transformers")

        def make() -> Any:
            model = library.SentenceTransformer(
                str(folder) if folder else MODEL_ID, device="cpu", local_files_only=True
            )
            model.max_seq_length = MAX_TOKENS
            return model

        self.model = IdleModel(make, idle_s=idle_s)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (n, 384), in the order of the texts."""
        if not texts:
            return np.zeros((0, DIMENSIONS), np.float32)
        found = self.model.use().encode(
            list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        return np.asarray(found, np.float32)
