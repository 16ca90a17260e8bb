"""What an encoder is, and what looking for one may come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL_ID = "sentence-transformers/all-MiniLM-L6-v2"
"""The embedder of record (docs/decisions/0020)."""

DIMENSIONS = 384

MAX_TOKENS = 256
"""Where sentence-transformers cuts a text for this model (its sentence_bert_config.json)."""

Mode = Literal["semantic", "keyword"]


class Encoder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def model_id(self) -> str:
        """Which model made a vector; vectors of different ids are never compared."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One float32 row of length 1 for each text, shape (n, dimensions); (0, dimensions) for none."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """An encoder, or the reason why there is none."""

    encoder: Encoder | None
    detail: str
    """One sentence for a person: which encoder on which weights, or why search is by keywords only."""
    fix: str = ""
    """What to do about it, where there is no encoder."""

    @property
    def mode(self) -> Mode:
        """How memory and ask can search."""
        return "keyword" if self.encoder is None else "semantic"
