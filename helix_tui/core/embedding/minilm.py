"""all-MiniLM-L6-v2 in numpy: six layers of BERT, mean pooling, unit length.

Ready in a third of a second where sentence-transformers takes six (reference/memory.md §9), with the same
vectors to three decimals (tests/semantic compares them).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from helix_tui.core.embedding.encoder import DIMENSIONS, MAX_TOKENS, MODEL_ID
from helix_tui.core.embedding.threads import use_one_thread
from helix_tui.core.embedding.weights import Weights

Array = NDArray[np.float32]

_LAYERS = 6
_HEADS = 12
_EPSILON = np.float32(1e-12)
_BATCH = 32
_MAX_TEXT = 8_000
"""Characters of a text that can matter: 256 tokens are far fewer."""


class MiniLM:
    """The light encoder."""

    model_id = MODEL_ID

    def __init__(self, weights: Weights) -> None:
        """Load the weights.

        Raises:
            OSError, ValueError: the files cannot be read as this model.
        """
        try:
            tensors = load_file(weights.model)
            self._tokenizer: Tokenizer = Tokenizer.from_file(str(weights.tokenizer))
            self._words = tensors["embeddings.word_embeddings.weight"]
            types = tensors["embeddings.token_type_embeddings.weight"]
            self._positions: Array = tensors["embeddings.position_embeddings.weight"] + types[0]
            self._norm = _norm(tensors, "embeddings.LayerNorm")
            self._layers = [_Layer(tensors, f"encoder.layer.{number}") for number in range(_LAYERS)]
        except (KeyError, SafetensorError) as error:
            raise ValueError(f"not the weights of {MODEL_ID}: {error}") from error
        except OSError:
            raise
        except Exception as error:  # tokenizers raises a bare one for every kind of bad file
            raise ValueError(f"not the tokenizer of {MODEL_ID}: {error}") from error
        # Matrices this small gain nothing from threads, and on a busy machine lose twentyfold by them. One
        # thread adds up in one order, too: the same text has the same vector on every machine.
        use_one_thread()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()

    def encode(self, texts: Sequence[str]) -> Array:
        """Unit vectors, shape (n, 384), in the order of the texts."""
        if not texts:
            return np.zeros((0, DIMENSIONS), np.float32)
        clean = [text[:_MAX_TEXT].encode("utf-8", "replace").decode("utf-8") for text in texts]
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(clean)]
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        out = np.empty((len(ids), DIMENSIONS), np.float32)
        for start in range(0, len(order), _BATCH):
            chosen = order[start : start + _BATCH]
            out[chosen] = self._batch([ids[place] for place in chosen])
        return out

    def _batch(self, ids: list[list[int]]) -> Array:
        longest = max(map(len, ids))
        tokens = np.zeros((len(ids), longest), np.int64)
        mask = np.zeros((len(ids), longest), np.float32)
        for row, numbers in enumerate(ids):
            tokens[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
        state = _normalised(self._words[tokens] + self._positions[:longest], *self._norm)
        hidden = (mask - 1)[:, None, None, :] * np.float32(1e9)
        for layer in self._layers:
            state = layer(state, hidden)
        mean = (state * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        unit: Array = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return unit


class _Layer:
    """Self-attention and the two dense layers after it."""

    def __init__(self, tensors: dict[str, Array], name: str) -> None:
        attention, own = f"{name}.attention", f"{name}.attention.self"
        parts = [_dense(tensors, f"{own}.{part}") for part in ("query", "key", "value")]
        self._qkv = np.concatenate([part[0] for part in parts], axis=1), np.concatenate([p[1] for p in parts])
        self._out = _dense(tensors, f"{attention}.output.dense")
        self._out_norm = _norm(tensors, f"{attention}.output.LayerNorm")
        self._up = _dense(tensors, f"{name}.intermediate.dense")
        self._down = _dense(tensors, f"{name}.output.dense")
        self._down_norm = _norm(tensors, f"{name}.output.LayerNorm")

    def __call__(self, state: Array, hidden: Array) -> Array:
        rows, length, width = state.shape
        qkv = (state @ self._qkv[0] + self._qkv[1]).reshape(rows, length, 3, _HEADS, width // _HEADS)
        query, key, value = qkv.transpose(2, 0, 3, 1, 4)
        weight = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // _HEADS)) + hidden
        weight = np.exp(weight - weight.max(-1, keepdims=True))
        weight /= weight.sum(-1, keepdims=True)
        seen = (weight @ value).transpose(0, 2, 1, 3).reshape(rows, length, width)
        state = _normalised(seen @ self._out[0] + self._out[1] + state, *self._out_norm)
        wide = _gelu(state @ self._up[0] + self._up[1])
        return _normalised(wide @ self._down[0] + self._down[1] + state, *self._down_norm)


def _dense(tensors: dict[str, Array], name: str) -> tuple[Array, Array]:
    return tensors[f"{name}.weight"].T, tensors[f"{name}.bias"]


def _norm(tensors: dict[str, Array], name: str) -> tuple[Array, Array]:
    return tensors[f"{name}.weight"], tensors[f"{name}.bias"]


def _normalised(state: Array, weight: Array, bias: Array) -> Array:
    centred = state - state.mean(-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(-1, keepdims=True) + _EPSILON)
    scaled: Array = centred / spread * weight + bias
    return scaled


def _gelu(value: Array) -> Array:
    """The exact GELU, with erf to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
    size = np.abs(value) * np.float32(np.sqrt(0.5))
    step = 1 / (1 + np.float32(0.3275911) * size)
    series = step * np.float32(1.061405429) - np.float32(1.453152027)
    for factor in (1.421413741, -0.284496736, 0.254829592):
        series = series * step + np.float32(factor)
    erf = np.copysign(1 - series * step * np.exp(-size * size), value)
    result: Array = value * np.float32(0.5) * (1 + erf)
    return result
