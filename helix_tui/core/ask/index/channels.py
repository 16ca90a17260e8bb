"""The channels of the ranking, each of which scores every file (docs/formats/ask.md §8).

Words: BM25 over chunks, whole files, names and paths. Misspelt names: the nearest defined ones by trigrams.
Symbols: names written as in code. Calls: what the definitions found first call or build on. Meaning: one
vector per file or passage (all-MiniLM-L6-v2). A channel without evidence gives zeros.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Protocol

import numpy as np
from msgspec import Struct

from helix_tui.core.ask.corpus.reader import Pieces
from helix_tui.core.ask.index.database import Database
from helix_tui.core.ask.index.question import IndexQuery
from helix_tui.core.ask.index.segment import NAME, FieldLengths
from helix_tui.core.ask.index.view import IndexView
from helix_tui.core.ask.records import Role
from helix_tui.core.ask.tokens import STOP_WORDS, parts, stem, terms_of, words
from helix_tui.core.embedding.minilm import DIMENSIONS, Encoder, load_encoder

K1 = 1.2
B = 0.75
LONG_WORD = 6
SHORT_FORM = 3
"""Minimum letters of a word with a short form, of the short form, and of what it omits."""
LEAST_FILES = 2
MOST_SHARE = 0.08
"""Minimum number and maximum share of files with a short form in their names: one may be chance, many mean nothing."""
BEST = (1.0, 0.5)
"""Weights of the best chunks of a file."""


class Lexical(Struct, frozen=True):
    """Scores by words. The first four are float64 (files,), the last float64 (chunks,)."""

    best: np.ndarray
    whole: np.ndarray
    names: np.ndarray
    path: np.ndarray
    chunks: np.ndarray


def score_words(weights: Sequence[tuple[str, float]], view: IndexView) -> Lexical:
    """The lexical scores of every file, for (term, weight) pairs in order of term."""
    chunks = np.zeros(len(view.chunks.lengths))
    whole = np.zeros(len(view.whole.lengths))
    names = np.zeros(len(view.names.lengths))
    for term, weight in weights:
        numbers, counts = view.postings(term)
        if len(numbers):
            _add(chunks, view.chunks, numbers, counts, weight)
            # only chunks have lists: those of whole files are their sums
            rows, sums = _by_row(view.row_of[numbers], counts)
            _add(whole, view.whole, rows, sums, weight)
        rows, counts = view.postings(NAME + term)
        if len(rows):
            _add(names, view.names, rows, counts, weight)
    best = best_chunks(chunks, view)
    return Lexical(best[view.row], whole[view.row], names[view.row], paths(weights, view), chunks)


def best_chunks(chunks: np.ndarray, view: IndexView) -> np.ndarray:
    """For each row the sum of its best chunks, each further one counting less."""
    best = np.zeros(len(view.whole.lengths))
    hits = np.flatnonzero(chunks > 0)
    if not len(hits):
        return best
    # the chunks that hit, row by row with the best first; then each one's rank within its row
    order = hits[np.lexsort((-chunks[hits], view.row_of[hits]))]
    rows = view.row_of[order]
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    rank = np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
    for at, share in enumerate(BEST):
        of_rank = rank == at
        best[rows[of_rank]] += share * chunks[order[of_rank]]
    return best


def paths(weights: Sequence[tuple[str, float]], view: IndexView) -> np.ndarray:
    """BM25 over the words of each path: its name counts twice, its last three folders once."""
    index = view.path_index
    scores = np.zeros(len(view))
    for term, weight in weights:
        found = index.posting(term)
        if found is not None:
            _add(scores, index.field, found[0], found[1], weight)
    return scores


def shortened(question: IndexQuery, view: IndexView) -> np.ndarray:
    """Score of abbreviations of the question's words in names and paths, float64 (files,): ``expr`` of "expression".

    A short form is the beginning of a long word, found in some names of this repository but not in most.
    """
    said = {term for term, _ in question.weights}
    forms: set[str] = set()
    for word in {found.lower() for found in words(question.title)}:
        if not word.isalpha() or len(word) < LONG_WORD or word in STOP_WORDS:
            continue
        for size in range(SHORT_FORM, len(word) - SHORT_FORM + 1):
            form = word[:size]
            files = len(view.postings(NAME + form)[0]) if form not in STOP_WORDS and stem(form) not in said else 0
            if LEAST_FILES <= files <= max(2 * LEAST_FILES, MOST_SHARE * len(view)):
                forms.add(form)
    found = score_words([(form, 1.0) for form in sorted(forms)], view) if forms else None
    total = np.zeros(len(view))
    for scores in (found.names, found.path) if found is not None else ():
        most = scores.max(initial=0.0)
        total += scores / most if most > 0 else scores
    return total


def _by_row(rows: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts of chunks summed by row; the chunks of a row are adjacent."""
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    return rows[begins], np.add.reduceat(counts, begins)


def _add(scores: np.ndarray, field: FieldLengths, units: np.ndarray, counts: np.ndarray, weight: float) -> None:
    found = len(units)
    # BM25 with Lucene's added 1: the weight of a term found in most files is never negative
    idf = np.log(1.0 + (field.count - found + 0.5) / (found + 0.5))
    norm = K1 * (1.0 - B + B * field.lengths[units] / field.average)
    scores[units] += weight * idf * counts * (K1 + 1.0) / (counts + norm)


SHORTEST = 5
LEAST = 0.5
"""Trigram similarity (Dice) below which two names do not match."""
_NEAREST = 3


def score_fuzzy(question: IndexQuery, view: IndexView) -> np.ndarray:
    """Score of each file's definitions with a spelling similar to an unknown word, float64 (files,)."""
    scores = np.zeros(len(view))
    for word in unknown_words(question, view):
        for likeness, name in nearest(word, view)[:_NEAREST]:
            files = view.files_defining(name, any_case=True)
            for at in files:
                scores[at] += likeness / len(files) ** 0.7
    return scores


def unknown_words(question: IndexQuery, view: IndexView) -> list[str]:
    """The words of a question that are in no file, in order."""
    found = {word for word in words(question.title) if len(word) >= SHORTEST and word.lower() not in STOP_WORDS}
    return sorted(word for word in found if not any(_known(term, view) for term in terms_of(word)))


def nearest(word: str, view: IndexView) -> list[tuple[float, str]]:
    """(similarity, name) of the defined names most similar to a word, best first."""
    folded = word.lower()
    liked = [(_dice(_trigrams(folded), _trigrams(name)), name) for name in view.names_like(folded)]
    return sorted((pair for pair in liked if pair[0] >= LEAST), key=lambda pair: (-pair[0], pair[1]))


def _known(term: str, view: IndexView) -> bool:
    return len(view.postings(term)[0]) > 0 or len(view.postings(NAME + term)[0]) > 0


def _trigrams(name: str) -> set[str]:
    padded = f" {name} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}


def _dice(one: set[str], two: set[str]) -> float:
    return 2 * len(one & two) / (len(one) + len(two)) if one and two else 0.0


SHARE_OF_CAPITAL = 0.5
"""A capitalised word may only begin a sentence."""
SHARE_OF_PHRASE = 0.2
"""Adjacent words that make a name when joined: "user agent" and ``user_agent``."""
PHRASE = (2, 3)
# the power of the number of files that define it, as measured (docs/formats/ask.md §8)
_SYMBOL_RARITY = -0.7
_OWN_FILE = 1.5
"""Extra weight of a definition in a file named after it."""


def score_symbols(question: IndexQuery, view: IndexView) -> np.ndarray:
    """Score of each file's definitions of names in the question, float64 (files,)."""
    scores = _phrases(question, view)
    plain = (name for name in question.capitals if name not in question.symbols)
    for name, share in [(name, 1.0) for name in question.symbols] + [(name, SHARE_OF_CAPITAL) for name in plain]:
        files = defining(name, view)
        if not files:
            continue
        sources = sum(view.documents[at].role == "source" for at in files)
        weight = share * max(sources, 1) ** _SYMBOL_RARITY
        for at in files:
            scores[at] += weight * (_OWN_FILE if _named_after(view.paths[at], name) else 1.0)
    return scores


def _phrases(question: IndexQuery, view: IndexView) -> np.ndarray:
    """Definitions named by joined words of the title, in any case."""
    said = [word.lower() for word in words(question.title) if word.lower() not in STOP_WORDS]
    runs = ["_".join(said[at : at + size]) for size in PHRASE for at in range(len(said) - size + 1)]
    scores = np.zeros(len(view))
    for name in dict.fromkeys(name for run in runs for name in (run, run.replace("_", ""))):
        files = view.files_defining(name, any_case=True)
        for at in files:
            scores[at] += SHARE_OF_PHRASE * len(files) ** _SYMBOL_RARITY
    return scores


def defining(name: str, view: IndexView) -> list[int]:
    """The files that define a name, by position; if none does in this case, those that do in another."""
    return view.files_defining(name) or view.files_defining(name, any_case=True)


def _named_after(path: str, name: str) -> bool:
    stem = path.rpartition("/")[2].partition(".")[0]
    return stem.replace("_", "").replace("-", "").lower() == name.replace("_", "").lower()


MOST_NAMES = 40
"""Maximum names followed from one seed, the first mentioned ones."""
MOST_FILES = 6
"""A name defined by more files than this is not followed."""
SECOND_SEEDS = 10
"""Maximum definitions of the first step that are followed further."""
IMPORTED = 2.0
"""Extra weight of a definition if the seed's file imports its module: names coincide by chance, imports do not."""
MOST_LINES = 120
MOST_CALLED = 400
"""Maximum places whose called names are in memory: 5 KB each, and a question follows some fifty."""
_CALLED = re.compile(r"(?<![^\W\d])([^\W\d]\w{2,}+)\s*+(?:!|::<[^<>\n]{0,60}>|<[^<>\n]{0,60}>)?\(")
"""A name that is called. It gives no letters back: none may follow it, and trying took two thirds of the time."""
_BUILT_ON = re.compile(r"\b([A-Z]\w{2,})\b")
_RARITY = -0.7
_LONG_LINE = 400


class CallSeed(Struct, frozen=True):
    """Lines of a file from which calls are followed."""

    at: int
    """The file's position."""
    start: int
    end: int
    weight: float


class Reader(Protocol):
    """Access to files besides their words."""

    def lines(self, file: str, start: int = 1, end: int | None = None) -> list[str]: ...

    def pieces(self, file: str) -> Pieces: ...


def score_calls(seeds: Sequence[CallSeed], view: IndexView, reader: Reader) -> tuple[np.ndarray, np.ndarray]:
    """Scores of one and of two steps along the calls of some seeds, each float64 (files,)."""
    first, found = _step(seeds, view, reader)
    second, _ = _step(_further(found, view, reader), view, reader)
    return first, second


def _step(
    seeds: Sequence[CallSeed], view: IndexView, reader: Reader
) -> tuple[np.ndarray, dict[tuple[int, str], float]]:
    """Scores of the files that define names called by the seeds, and (file, name) -> its value."""
    scores, found = np.zeros(len(view)), dict[tuple[int, str], float]()
    called = [(seed, _names_of(seed, view, reader)) for seed in seeds]
    defining = view.files_defining_each({name for _, names in called for name in names})
    for seed, names in called:
        imported = _steps_of(reader.pieces(view.paths[seed.at]).imports)
        for name in names:
            files = defining.get(name, ())
            if len(files) > MOST_FILES:
                continue
            for at in files:
                near = IMPORTED if not imported.isdisjoint(_names_of_module(view.paths[at])) else 1.0
                share = seed.weight * near * len(files) ** _RARITY
                if at != seed.at:
                    scores[at] += share
                found[at, name] = found.get((at, name), 0.0) + share
    return scores, found


def _further(found: Mapping[tuple[int, str], float], view: IndexView, reader: Reader) -> list[CallSeed]:
    """The best definitions reached, as seeds."""
    best = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:SECOND_SEEDS]
    seeds = []
    for (at, name), weight in best:
        for one in reader.pieces(view.paths[at]).definitions:
            if one.name == name and one.kind not in ("field", "constant"):
                seeds.append(CallSeed(at, one.start, one.end, weight))
                break
    return seeds


def _names_of(seed: CallSeed, view: IndexView, reader: Reader) -> list[str]:
    """The names that a seed calls or builds on and does not define itself, first mention first."""
    place = seed.at, seed.start, seed.end
    found = view.called.get(place)
    if found is None:
        # the searches of one question begin at the same few places
        if len(view.called) >= MOST_CALLED:
            view.called.clear()
        found = view.called[place] = _read_names(seed, view.paths[seed.at], reader)
    return found


def _read_names(seed: CallSeed, path: str, reader: Reader) -> list[str]:
    text = "\n".join(
        line[:_LONG_LINE] for line in reader.lines(path, seed.start, min(seed.end, seed.start + MOST_LINES - 1))
    )
    own = {one.name for one in reader.pieces(path).definitions if seed.start <= one.start <= seed.end}
    names = dict.fromkeys([*_CALLED.findall(text), *_BUILT_ON.findall(text)])
    return [name for name in names if name not in own][:MOST_NAMES]


def _steps_of(imports: Iterable[str]) -> frozenset[str]:
    """The last two parts of each imported module."""
    return frozenset(step.lower() for one in imports for step in re.split(r"[./:\\]+", one)[-2:] if step)


def _names_of_module(path: str) -> tuple[str, ...]:
    """The last parts of an import of a file: its name without extension, and its folder's."""
    *folders, name = path.lower().split("/")
    return (name.partition(".")[0], *folders[-1:])


MOST_BY_MEANING = 40
MOST_PASSAGES = 30
"""Maximum files compared. Forty unknown ones take .8 s."""
FEW_WORDS = 12
DIGEST = 240
PASSAGE = 260
"""Maximum characters of a digest or a passage: some sixty tokens."""
_COMMENTS = 170
_CODE = (6, 80)
"""Maximum lines and characters of code that represent a passage without a comment."""
_PROSE = re.compile(r"^\s*(?:#|//|\*|/\*|\"\"\"|''')|^\s*[A-Z][a-z]+ [a-z]")
_MARKS = re.compile(r"^[\s#/*\"']+|[\"*/]+$")
QUESTION = 400
_SILENT: frozenset[Role] = frozenset({"data", "config"})
_HELD = 1_000
"""Maximum vectors in memory: 3 MB."""
_STEP = 3
"""Decimals of a similarity that count: the others differ between machines."""


@cache
def encoder() -> Encoder | None:
    """The encoder of this process, or None without its weights."""
    return load_encoder().encoder


def speaks_for(role: Role) -> bool:
    """Whether files of a role are embedded."""
    return role not in _SILENT


def digest(path: str, pieces: Pieces) -> str:
    """The text that summarises a file for embedding."""
    steps = path.split("/")
    place = " ".join(word for step in steps[-3:] for word in parts(step.partition(".")[0]))
    names = [" ".join(parts(one.name)) for one in pieces.definitions if _tells(one.name, one.kind)]
    names += [title.text for title in pieces.titles]
    return f"{place}. {pieces.summary[: DIGEST // 2]}. {', '.join(dict.fromkeys(names))}"[:DIGEST]


def passage(path: str, header: str, lines: Sequence[str]) -> str:
    """The text that summarises a passage for embedding."""
    place = " ".join(word for step in path.split("/")[-2:] for word in parts(step.partition(".")[0]))
    prose = " ".join(_MARKS.sub("", line) for line in lines if _PROSE.match(line))[:_COMMENTS]
    code = " ".join(line.strip() for line in lines[: _CODE[0]])[: _CODE[1]]
    return f"{place}. {' '.join(parts(header))}. {prose or code}"[:PASSAGE]


def _tells(name: str, kind: str) -> bool:
    return kind not in ("field", "constant") and not name.startswith("__")


class Meanings:
    """The vectors of digests: those in memory, those in the database, and newly computed ones."""

    def __init__(self, database: Callable[[], Database]) -> None:
        """``database`` returns the open database, as it may be replaced."""
        self._database = database
        self._held: dict[str, np.ndarray] = {}

    def score(self, text: str, digests: Sequence[str]) -> np.ndarray | None:
        """How far each digest's similarity to a text is above the average, in standard deviations, float64 (digests,);
        None without an encoder.
        """
        asked = _encoded(text[:QUESTION])
        if asked is None or not digests:
            return None
        vectors = self._vectors(digests)
        alike = np.round((vectors * asked).sum(axis=1), _STEP)
        spread = float(alike.std())
        return np.clip((alike - alike.mean()) / spread, 0.0, None) if spread > 0 else np.zeros(len(digests))

    def _vectors(self, digests: Sequence[str]) -> np.ndarray:
        """float64 (digests, dimensions)."""
        keys = [_key(text) for text in digests]
        unknown = sorted({key for key in keys if key not in self._held})
        # all are dropped at once; those that this question needs are read from the database again
        if len(self._held) + len(unknown) > _HELD:
            self._held.clear()
            unknown = sorted(set(keys))
        found = self._database().meanings(unknown)
        texts = dict(zip(keys, digests, strict=True))
        model = encoder()
        new = [key for key in unknown if key not in found] if model is not None else []
        if model is not None and new:
            # apart: a text then ranks the same in every question
            vectors = model.encode_apart([texts[key] for key in new])
            made = [(key, vector.astype("<f2").tobytes()) for key, vector in zip(new, vectors, strict=True)]
            self._database().keep_meanings(made)
            found.update(made)
        # a new vector is read back from its half floats, so that it ranks as it will from the database
        self._held.update((key, np.frombuffer(packed, "<f2").astype(np.float64)) for key, packed in found.items())
        silent = np.zeros(DIMENSIONS)
        return np.array([self._held.get(key, silent) for key in keys])


@lru_cache(256)
def _encoded(text: str) -> np.ndarray | None:
    model = encoder()
    return None if model is None else model.encode([text])[0].astype(np.float64)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
