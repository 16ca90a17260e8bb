"""all-MiniLM-L6-v2 through sentence-transformers, the embedder of record (rulings.md 28), kept offline."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from helix_tui.core.embedding.encoder import DIMENSIONS, MAX_TOKENS, MODEL_ID


class SentenceTransformers:
    """The encoder of record; loading it takes seconds, so never on a screen's thread."""

    model_id = MODEL_ID

    def __init__(self, folder: Path | None) -> None:
        """Load the model of a folder, or the one in the library's own cache.

        Raises:
            ImportError: sentence-transformers is not installed.
            OSError, ValueError: there is no such model on this machine; the network is never asked.
        """
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
            os.environ[name] = "1"
        library = import_module("sentence_transformers")
        self._model: Any = library.SentenceTransformer(
            str(folder) if folder else MODEL_ID, device="cpu", local_files_only=True
        )
        self._model.max_seq_length = MAX_TOKENS

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (n, 384), in the order of the texts."""
        if not texts:
            return np.zeros((0, DIMENSIONS), np.float32)
        found = self._model.encode(
            list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        return np.asarray(found, np.float32)
