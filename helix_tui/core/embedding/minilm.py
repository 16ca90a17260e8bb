"""The encoders: all-MiniLM-L6-v2 in numpy (the light one), or by sentence-transformers (the one of record).

In numpy it is six layers of BERT, the mean over all tokens, unit length. Either model is unloaded while unused.
`load_encoder` returns the encoder of this process, or why there is none.
"""

from __future__ import annotations

import os
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from helix_tui.core.embedding.weights import MappedTensors, Search, Weights, find_weights, use_one_thread
from helix_tui.core.ground.files import open_file, read_status

IDLE_S = 600.0
"""Seconds without a text after which a model is unloaded: 70 MB of the light encoder, 90 MB of
sentence-transformers. The next text brings either back within a second.
"""

Model = TypeVar("Model")

MODEL_ID = "sentence-transformers/all-MiniLM-L6-v2"
"""The embedder of record (docs/decisions/0020)."""

DIMENSIONS = 384

MAX_TOKENS = 256
"""Where sentence-transformers cuts a text for this model (its sentence_bert_config.json)."""

_QUIET = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_PROGRESS_BARS")

_WORDS = "embeddings.word_embeddings.weight"
"""47 MB, of which a text needs a few rows: their pages are given back after each call."""

_LAYERS = 6
_HEADS = 12
_EPSILON = np.float32(1e-12)

_BATCH_TOKENS = 256
"""Tokens of a batch, padding included: what is worked out for them takes 15 MB, and fits a cache better than
more would; 32 texts of 256 tokens took 600 MB."""

_THREADS = 2

_MAX_TEXT = 8_000
"""Characters of a text that can matter: 256 tokens are far fewer."""

CHOICES = ("auto", "light", "sentence-transformers", "off")
FIX = "`helix-tui setup` fetches the weights (91 MB) after asking; HELIX_MODEL_DIR names a folder that has them."


class IdleModel(Generic[Model]):
    """Loads a model on demand and unloads it after a while without use. Thread-safe."""

    def __init__(
        self,
        make: Callable[[], Model],
        *,
        forget: Callable[[], None] = lambda: None,
        idle_s: float = IDLE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``make`` loads the model, ``forget`` is called when it is unloaded, ``clock`` returns seconds."""
        self.idle_s = idle_s
        self._clock = clock
        self._make, self._forget = make, forget
        self._lock = threading.Lock()
        self._used_at = clock()
        self._timer: threading.Timer | None = None
        self._model: Model | None = make()
        self._wait(idle_s)

    @property
    def loaded(self) -> bool:
        """Whether the model is in memory now."""
        return self._model is not None

    def use(self) -> Model:
        """The model, loaded again if needed; restarts the idle time."""
        with self._lock:
            self._used_at = self._clock()
            if self._model is None:
                self._model = self._make()
            # a timer that runs is left alone, for each is a thread: at its end it sees that the model was used
            if self._timer is None:
                self._wait(self.idle_s)
            return self._model

    def _wait(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self.let_go_if_idle)
        # the end of the process must not wait for it
        self._timer.daemon = True
        self._timer.name = "helix-encoder-idle"
        self._timer.start()

    def let_go_if_idle(self) -> None:
        """Unload the model if it was idle long enough; else check again later."""
        with self._lock:
            left = self._used_at + self.idle_s - self._clock()
            if left > 0:
                self._wait(left)
                return
            self._model = self._timer = None
            self._forget()


Mode = Literal["semantic", "keyword"]


class Encoder(Protocol):
    """Turns texts into unit vectors. An encoder derives from it: what it does not do in a way of its own is here."""

    model_id: str
    """The id of the model; vectors of different ids are never compared."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One float32 row of length 1 for each text, shape (n, dimensions); (0, dimensions) for none."""

    def encode_apart(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The same, each text as if it were alone: the last digits of a batch's vectors depend on its other texts."""
        return np.concatenate([self.encode([text]) for text in texts]) if texts else self.encode(texts)


class Loaded(Struct, frozen=True):
    """An encoder, or why there is none."""

    encoder: Encoder | None
    detail: str
    """One sentence for a person: which encoder on which weights, or why search is by keywords only."""
    fix: str = ""
    """What to do if there is no encoder."""

    @property
    def mode(self) -> Mode:
        """How memory and Ask search."""
        return "keyword" if self.encoder is None else "semantic"


def _imported_quietly() -> Any:
    """Import the library of the encoder of record, without network access and progress bars.

    Its libraries read the variables while they are imported; agents that are started later do not inherit them.
    """
    before = {name: os.environ.get(name) for name in _QUIET}
    os.environ |= dict.fromkeys(_QUIET, "1")
    try:
        return import_module("sentence_transformers")
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class SentenceTransformers(Encoder):
    """The encoder of record; loading it takes seconds, so never on a screen's thread. The model is let go
    after ten minutes without a text; the library, 300 MB with torch, stays: Python cannot unload it."""

    model_id = MODEL_ID

    def __init__(self, folder: Path | None, *, idle_s: float = IDLE_S) -> None:
        """Load the model of a folder, or the one in the library's own cache.

        Raises:
            ImportError: sentence-transformers is not installed.
            OSError, ValueError: there is no such model on this machine; the network is never asked.
        """
        library = _imported_quietly()

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


Array = NDArray[np.float32]


class MiniLM(Encoder):
    """The light encoder. Thread-safe."""

    model_id = MODEL_ID

    def __init__(self, weights: Weights, *, idle_s: float = IDLE_S) -> None:
        """Map the weights and read the tokenizer.

        Raises:
            OSError, ValueError: the files cannot be read as this model.
        """
        # kept, so that coming back after a rest asks nothing of the disk that could have changed meanwhile
        with open_file(weights.tokenizer) as file:
            tokenizer = file.read()
        self._tensors = tensors = MappedTensors(weights.model)
        self.model = IdleModel(lambda: _Model(tensors, tokenizer), forget=tensors.release, idle_s=idle_s)
        # Matrices this small gain nothing from threads, and on a busy machine lose twentyfold by them. One
        # thread adds up in one order, too: the same text has the same vector on every machine.
        use_one_thread()

    def encode(self, texts: Sequence[str]) -> Array:
        """Unit vectors, shape (n, 384), in the order of the texts."""
        if not texts:
            return np.zeros((0, DIMENSIONS), np.float32)
        vectors = self.model.use().encode(texts)
        self._tensors.release(_WORDS)
        return vectors

    def encode_apart(self, texts: Sequence[str]) -> Array:
        """The same, each text as if it were alone.

        Two threads share them, as one core is busy with nothing else while somebody waits; a vector is of one thread.
        """
        model = self.model.use()
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="helix-encode") as threads:
            rows = list(threads.map(lambda text: model.encode([text]), texts))
        self._tensors.release(_WORDS)
        return np.concatenate([np.zeros((0, DIMENSIONS), np.float32), *rows])


class _Model:
    """Weights and tokenizer."""

    def __init__(self, tensors: MappedTensors, tokenizer: bytes) -> None:
        try:
            self._words = tensors[_WORDS]
            types = tensors["embeddings.token_type_embeddings.weight"]
            # every token is in BERT's first segment, so that segment's row is added once for all
            self._positions: Array = tensors["embeddings.position_embeddings.weight"] + types[0]
            self._norm = _norm(tensors, "embeddings.LayerNorm")
            self._layers = [_Layer(tensors, f"encoder.layer.{number}") for number in range(_LAYERS)]
        except KeyError as error:
            raise ValueError(f"not the weights of {MODEL_ID}: {error}") from error
        from tokenizers import Tokenizer  # 4 MB that only this model needs: most consoles never load it

        try:
            self._tokenizer = Tokenizer.from_buffer(tokenizer)
        except Exception as error:  # tokenizers raises a bare one for every kind of bad file
            raise ValueError(f"not the tokenizer of {MODEL_ID}: {error}") from error
        self._tokenizer.enable_truncation(MAX_TOKENS)
        # the file asks for padding to 128; batches are padded here, to their own longest text
        self._tokenizer.no_padding()

    def encode(self, texts: Sequence[str]) -> Array:
        """Unit vectors in the order of the texts."""
        # half of a surrogate pair, as in a file's name that is no UTF-8, would be refused by the tokenizer
        clean = [text[:_MAX_TEXT].encode("utf-8", "replace").decode("utf-8") for text in texts]
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(clean)]
        out = np.empty((len(ids), DIMENSIONS), np.float32)
        for chosen in _batches(ids):
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
        # after the softmax padding has a weight of 0
        hidden = (mask - 1)[:, None, None, :] * np.float32(1e9)
        for layer in self._layers:
            state = layer(state, hidden)
        # the model's own pooling: the mean over all tokens that are no padding
        mean = (state * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        unit: Array = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return unit


def _batches(ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Positions of texts to process together: of similar length, and limited in total."""
    batch: list[int] = []
    # by length, so that little of a batch is padding
    for place in sorted(range(len(ids)), key=lambda place: len(ids[place])):
        if batch and (len(batch) + 1) * len(ids[place]) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


class _Layer:
    """Self-attention and the two dense layers after it."""

    def __init__(self, tensors: MappedTensors, name: str) -> None:
        attention, own = f"{name}.attention", f"{name}.attention.self"
        self._qkv = [_dense(tensors, f"{own}.{part}") for part in ("query", "key", "value")]
        self._out = _dense(tensors, f"{attention}.output.dense")
        self._out_norm = _norm(tensors, f"{attention}.output.LayerNorm")
        self._up = _dense(tensors, f"{name}.intermediate.dense")
        self._down = _dense(tensors, f"{name}.output.dense")
        self._down_norm = _norm(tensors, f"{name}.output.LayerNorm")

    def __call__(self, state: Array, hidden: Array) -> Array:
        rows, length, width = state.shape
        shape = (rows, length, _HEADS, width // _HEADS)
        query, key, value = ((state @ weight + bias).reshape(shape).transpose(0, 2, 1, 3) for weight, bias in self._qkv)
        weight = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(width // _HEADS)) + hidden
        weight = np.exp(weight - weight.max(-1, keepdims=True))
        weight /= weight.sum(-1, keepdims=True)
        seen = (weight @ value).transpose(0, 2, 1, 3).reshape(rows, length, width)
        state = _normalised(seen @ self._out[0] + self._out[1] + state, *self._out_norm)
        wide = _gelu(state @ self._up[0] + self._up[1])
        return _normalised(wide @ self._down[0] + self._down[1] + state, *self._down_norm)


def _dense(tensors: MappedTensors, name: str) -> tuple[Array, Array]:
    # PyTorch keeps the weights of a layer as (out, in)
    return tensors[f"{name}.weight"].T, tensors[f"{name}.bias"]


def _norm(tensors: MappedTensors, name: str) -> tuple[Array, Array]:
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


_lock = threading.Lock()
_encoder: tuple[object, Encoder] | None = None
"""The newest encoder and its key: only one, because its weights are most of a process's memory."""


def load_encoder(
    choice: str | None = None, *, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> Loaded:
    """The encoder requested by ``choice`` or ``HELIX_EMBEDDER``, or why there is none.

    ``auto`` takes sentence-transformers, the embedder of record, if it is installed and finds the model, else the light
    encoder. An encoder is loaded once per process and shared. Never raises for missing or broken files, never uses the
    network.
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
    # if named explicitly, it or the reason is returned; `auto` falls back to the light encoder
    if record is not None and (record.encoder is not None or choice == "sentence-transformers"):
        return _with(record, search.passed_over)
    if search.weights is None:
        return record or Loaded(None, _nowhere(search), FIX)
    return _with(_light(search), "" if record is None else record.detail, search.passed_over)


def _with(loaded: Loaded, *more: str) -> Loaded:
    """An encoder with more to say of it: what was not used in its place, and why."""
    return replace(loaded, detail="; ".join(filter(None, (loaded.detail, *more))))


def _light(search: Search) -> Loaded:
    weights = search.weights
    assert weights is not None
    try:
        status = read_status(weights.model), read_status(weights.tokenizer)
        # weights that were replaced while this process runs are another encoder
        stamps = [(one.st_ino, one.st_mtime_ns, one.st_size) for one in status]
        encoder = _shared(("light", weights.folder, *stamps), lambda: MiniLM(weights))
    except (ImportError, OSError, ValueError) as error:
        return Loaded(None, f"the light encoder does not load: {error}", FIX)
    return Loaded(encoder, f"all-MiniLM-L6-v2, light encoder, weights from {weights.origin}")


def _of_record(search: Search) -> Loaded:
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
