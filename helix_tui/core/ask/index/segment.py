"""A segment: some blobs, cut into chunks, and for every term its chunks.

A posting list is packed as the chunks' numbers inside the segment (uint32, ascending, little-endian) followed by the
counts (uint8, 255 also for more). A term of a name (definition, heading) has the prefix `NAME`, and its numbers are
those of blobs. The module also has the lengths of each field's units, which BM25 needs, and the one field that is built
in memory: the words of paths.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

import msgspec
import numpy as np
from msgspec import Struct

from helix_tui.core.ask.corpus.reader import Pieces
from helix_tui.core.ask.tokens import count_terms, make_terms, parts, terms_of, words
from helix_tui.core.ask.tokens import stem as stem_of

NAME = "\x01"
"""Prefix of a term of a name."""
_AFTER_NAMES = "\x02"
"""Sorts after every term of a name, and before every other."""
_MOST = 255


class Blob(Struct, frozen=True, array_like=True):
    """One content: its key, its parts, and the reason if it is not searched."""

    key: str
    language: str
    lines: int
    size: int
    defined: list[str]
    """The names of its definitions, each once, in order."""
    pieces: bytes
    """Its parts, packed by whoever read them: thousands wait to be written, and take a fifth of the memory."""
    refused: str = ""

    @classmethod
    def of(cls, key: str, pieces: Pieces, refused: str = "") -> Blob:
        """A content of some parts."""
        defined = sorted({one.name for one in pieces.definitions})
        return cls(key, pieces.language, pieces.lines, pieces.size, defined, _pack(pieces), refused)


_pack = msgspec.msgpack.Encoder().encode


class Segment(Struct, array_like=True):
    """Blobs with their posting lists; every number in it is the segment's own."""

    blobs: list[Blob]
    chunks: bytes
    """uint32 per blob: its number of chunks."""
    lengths: bytes
    """uint32 per chunk: its number of terms."""
    names: bytes
    """uint32 per blob: the number of terms in its names."""
    terms: list[str]
    """In order, so that those of names come first."""
    sizes: bytes
    """uint32 per term: the length of its posting list."""
    numbers: bytes
    """uint32: the chunks or blobs of all posting lists, in order of term."""
    counts: bytes
    """uint8 for each of them."""

    def postings(self) -> Iterator[tuple[str, bytes]]:
        """(term, packed list) in order of term."""
        numbers, counts, begin = self.numbers, self.counts, 0
        for term, size in zip(self.terms, np.frombuffer(self.sizes, "<u4").tolist(), strict=True):
            end = begin + size
            yield term, numbers[begin * 4 : end * 4] + counts[begin:end]
            begin = end


MOST_WORDS = 300_000
"""Maximum words that a reader keeps between two segments, 200 bytes each: most words of a segment were in an earlier
one, and computing the terms of a word costs twenty times as much as a lookup."""
_APART = bytes(code if code < 128 and (chr(code).isalnum() or chr(code) == "_") else 32 for code in range(256))
"""Translates ASCII characters that separate words to spaces."""


class _Numbers(dict[str, int]):
    """The number of each term, assigned on first use."""

    def __missing__(self, term: str) -> int:
        found = self[term] = len(self)
        return found


class WordsSaid(dict[str | bytes, bytes]):
    """The packed term numbers of each word, so that counting a text needs only lookups."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = _Numbers()

    def __missing__(self, word: str | bytes) -> bytes:
        terms = make_terms(word if isinstance(word, str) else word.decode("ascii"))
        found = self[word] = array("I", map(self.numbers.__getitem__, terms)).tobytes()
        return found

    def forget(self) -> None:
        """Clear the cache if it is too large."""
        if len(self) > MOST_WORDS:
            self.clear()
            self.numbers.clear()

    def in_text(self, text: str) -> bytes:
        """The numbers of a text's terms, packed, in order of occurrence."""
        # splitting by a table takes a third of the time of the pattern, which only other letters need
        said = text.encode("ascii").translate(_APART).split() if text.isascii() else words(text)
        return b"".join(map(self.__getitem__, said))


class _Field:
    """The terms of one kind of unit, in order of occurrence."""

    def __init__(self, said: WordsSaid) -> None:
        self.lengths = array("I")
        self._said = said
        self._units: list[bytes] = []

    def add(self, text: str) -> None:
        """Add a unit."""
        unit = self._said.in_text(text)
        self.lengths.append(len(unit) // 4)
        self._units.append(unit)

    def postings(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The number of a term, a unit with it, and how often it has it, in order of both."""
        said = np.frombuffer(b"".join(self._units), np.uint32).astype(np.uint64)
        units = np.repeat(np.arange(len(self.lengths), dtype=np.uint64), self.lengths)
        # term and unit in one number: a single sort groups by term, orders its units and counts them
        found, counts = np.unique((said << np.uint64(32)) | units, return_counts=True)
        # the lower half of each number is the unit
        return (found >> np.uint64(32)).astype(np.int64), found.astype("<u4"), np.minimum(counts, _MOST)


class SegmentBuilder:
    """Collects blobs into a segment."""

    def __init__(self, said: WordsSaid | None = None) -> None:
        """``said`` has the words of earlier segments, if any; it is not thread-safe."""
        self._said = said = WordsSaid() if said is None else said
        self._blobs: list[Blob] = []
        self._chunks = array("I")
        self._bodies, self._names = _Field(said), _Field(said)

    def __len__(self) -> int:
        return len(self._blobs)

    def add(self, blob: Blob, bodies: Sequence[str], names: str) -> None:
        """Add a blob with the text of each of its chunks and its names."""
        self._blobs.append(blob)
        self._chunks.append(len(bodies))
        for text in bodies:
            self._bodies.add(text)
        self._names.add(names)

    def finish(self) -> Segment:
        """The segment of everything added."""
        known = list(self._said.numbers)
        terms: list[str] = []
        lists: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for prefix, field in ((NAME, self._names), ("", self._bodies)):
            said, units, counts = field.postings()
            begins = np.flatnonzero(np.diff(said, prepend=-1))
            terms += [prefix + known[number] for number in said[begins].tolist()]
            lists.append((np.diff(np.append(begins, len(said))), units, counts))
        lengths, names = _bytes(self._bodies.lengths), _bytes(self._names.lengths)
        return Segment(self._blobs, _bytes(self._chunks), lengths, names, *_by_term(terms, lists))


def joined(segments: Sequence[Segment]) -> Segment:
    """Several segments as one, in the order given."""
    if len(segments) == 1:
        return segments[0]
    lists: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    chunk_base = blob_base = 0
    for segment in segments:
        sizes = np.frombuffer(segment.sizes, "<u4")
        of_names = int(sizes[: bisect_left(segment.terms, _AFTER_NAMES)].sum())
        numbers = np.frombuffer(segment.numbers, "<u4").copy()
        numbers[:of_names] += np.uint32(blob_base)
        numbers[of_names:] += np.uint32(chunk_base)
        lists.append((sizes, numbers, np.frombuffer(segment.counts, np.uint8)))
        chunk_base += len(segment.lengths) // 4
        blob_base += len(segment.blobs)
    return Segment(
        [blob for segment in segments for blob in segment.blobs],
        b"".join(segment.chunks for segment in segments),
        b"".join(segment.lengths for segment in segments),
        b"".join(segment.names for segment in segments),
        *_by_term([term for segment in segments for term in segment.terms], lists),
    )


def _by_term(
    terms: Sequence[str], lists: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]
) -> tuple[list[str], bytes, bytes, bytes]:
    """The last four fields of a segment, of (sizes, numbers, counts) of terms; a term that is there again continues
    its list.
    """
    sizes, numbers, counts = (np.concatenate(part) for part in zip(*lists, strict=True))
    ordered = sorted(set(terms))
    place = {term: at for at, term in enumerate(ordered)}
    term_of = np.repeat(np.fromiter(map(place.__getitem__, terms), np.int64, len(terms)), sizes)
    order = np.argsort(term_of, kind="stable")
    return (
        ordered,
        np.bincount(term_of, minlength=len(ordered)).astype("<u4").tobytes(),
        numbers[order].astype("<u4").tobytes(),
        counts[order].astype(np.uint8).tobytes(),
    )


def shifted(parts: Iterable[tuple[int, bytes]]) -> bytes:
    """Concatenate posting lists, adding a number to the chunks of each."""
    numbers, counts = [], []
    for base, data in parts:
        size = len(data) // 5 * 4
        if base == 0:
            numbers.append(data[:size])
        elif size == 4:  # most terms are in one place, for which an array would cost ten times as much
            numbers.append((int.from_bytes(data[:4], "little") + base).to_bytes(4, "little"))
        else:
            numbers.append((unpacked(data)[0] + np.uint32(base)).tobytes())
        counts.append(data[size:])
    return b"".join(numbers) + b"".join(counts)


def unpacked(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """A posting list as (numbers uint32 (n,), counts uint8 (n,))."""
    size = len(data) // 5
    return np.frombuffer(data, "<u4", size), np.frombuffer(data, np.uint8, size, size * 4)


def _bytes(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = array("I", numbers)
        numbers.byteswap()
    return numbers.tobytes()


_SAYS_NOTHING = frozenset({"__init__", "index", "mod", "lib", "main", "doc"})


class FieldLengths(Struct, frozen=True):
    """The lengths of one kind of unit (chunk, file, name list) and which of them count."""

    lengths: np.ndarray
    """float64 (n,)."""
    live: np.ndarray
    """bool (n,)."""
    count: int
    average: float

    @classmethod
    def of(cls, lengths: np.ndarray, live: np.ndarray) -> FieldLengths:
        """A field with its statistics over the live units."""
        count = int(live.sum())
        total = int(lengths[live].sum())
        return cls(lengths.astype(np.float64), live, count, max(total / count, 1e-9) if count else 1.0)


class PathIndex(Struct, frozen=True):
    """The words of all paths of a view."""

    field: FieldLengths
    words: list[str]
    """The words of file names, without extensions; the folder's if the name is unspecific."""
    word_of: np.ndarray
    """int64: a word of a file's name, by position in `words`…"""
    file_of_word: np.ndarray
    """…and that file."""
    with_stem: dict[str, list[int]]
    """The words of names by their stem, by position in `words`."""
    alphabetical: list[tuple[str, int]]
    """The words of names with their position in `words`, in order."""
    _place: dict[str, int]
    """The place of each term in `_first`."""
    _first: np.ndarray
    """int64 (terms + 1,): where each term begins in the next two."""
    _files: np.ndarray
    _counts: np.ndarray

    def posting(self, term: str) -> tuple[np.ndarray, np.ndarray] | None:
        """The files with a term in their paths, ascending, and how often; None if there is none."""
        place = self._place.get(term)
        if place is None:
            return None
        start, end = self._first[place], self._first[place + 1]
        return self._files[start:end], self._counts[start:end]

    def packed(self) -> bytes:
        """Itself as bytes: twenty thousand paths take half a second to read anew."""
        arrays = (self.field.lengths, self.word_of, self.file_of_word, self._first, self._files, self._counts)
        lists = (self.words, self.with_stem, self.alphabetical, list(self._place))
        return msgspec.msgpack.encode((*(one.astype("<u4").tobytes() for one in arrays), *lists))

    @classmethod
    def of(cls, packed: bytes) -> PathIndex:
        """The same again.

        Raises:
            msgspec.MsgspecError, ValueError: these are no such bytes.
        """
        *arrays, words_, with_stem, alphabetical, terms = msgspec.msgpack.decode(packed, type=_PackedPaths)
        read = [np.frombuffer(one, "<u4") for one in arrays]
        lengths, word_of, file_of_word, first, files = (one.astype(np.int64) for one in read[:5])
        return cls(
            FieldLengths.of(lengths, np.ones(len(lengths), bool)),
            words_,
            word_of,
            file_of_word,
            with_stem,
            alphabetical,
            {term: at for at, term in enumerate(terms)},
            first,
            files,
            read[5].astype(np.float64),
        )


_PackedPaths = tuple[
    bytes, bytes, bytes, bytes, bytes, bytes, list[str], dict[str, list[int]], list[tuple[str, int]], list[str]
]


def index_paths(files: list[str]) -> PathIndex:
    """The words of paths, by position in the list."""
    # every name is read but each folder only once, and lists become arrays once: a first question waits for this
    in_folder: dict[str, Counter[str]] = {}
    place, number_of = _numbering(), _numbering()
    terms: list[int] = []
    times: list[int] = []
    distinct = np.zeros(len(files), np.int64)
    lengths = np.zeros(len(files), np.int64)
    word_of: list[int] = []
    of_name = np.zeros(len(files), np.int64)
    for at, path in enumerate(files):
        folder, _, name = path.rpartition("/")
        stem = name.partition(".")[0] or name
        around = in_folder.get(folder)
        if around is None:
            # parts near the root (src, the package's name) are in every path and distinguish none
            around = in_folder[folder] = count_terms(" ".join(folder.split("/")[-3:]))
        counts = dict(around)
        said = [term for word in words(stem) for term in terms_of(word)]
        for term in said:
            counts[term] = counts.get(term, 0) + 2
        terms += map(place.__getitem__, counts)
        times += counts.values()
        distinct[at], lengths[at] = len(counts), 2 * len(said) + around.total()
        own = parts(folder.rpartition("/")[2] if stem in _SAYS_NOTHING and folder else stem)
        word_of += map(number_of.__getitem__, own)
        of_name[at] = len(own)
    with_stem: dict[str, list[int]] = {}
    for word, number in number_of.items():
        with_stem.setdefault(stem_of(word), []).append(number)
    numbers = np.array(terms, np.int64)
    order = np.argsort(numbers, kind="stable")
    positions = np.arange(len(files))
    return PathIndex(
        FieldLengths.of(lengths, np.ones(len(files), bool)),
        list(number_of),
        np.array(word_of, np.int64),
        np.repeat(positions, of_name),
        with_stem,
        sorted(number_of.items()),
        dict(place),
        np.concatenate([[0], np.cumsum(np.bincount(numbers, minlength=len(place)))]).astype(np.int64),
        np.repeat(positions, distinct)[order],
        np.array(times, np.float64)[order],
    )


def _numbering() -> defaultdict[str, int]:
    """Numbers words from 0 as they are looked up."""
    return defaultdict(count().__next__)
