"""Read files for the index: their parts, and the terms of their passages, names and paths.

Many files are read in batches by workers (one process a thread); if a worker dies or hangs, its batch is read without
grammars.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import msgspec
from msgspec import Struct

from helix_tui.core.ask.corpus.languages import language_of
from helix_tui.core.ask.corpus.listing import role_of, standing, unfit
from helix_tui.core.ask.corpus.reader import Pieces, bodies, names, read_pieces
from helix_tui.core.ask.index.database import ReadFile, stored
from helix_tui.core.ask.tokens import make_terms, words
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.processes.programs import NEUTRAL, python_argv
from helix_tui.core.ground.processes.start import PIPE, Process, start

BATCH_BYTES = 2 << 20
BATCH_FILES = 400
BATCH_TIMEOUT_S = 120.0
_HEADER = 8
_KEPT_WORDS = 300_000
"""Words whose terms a worker keeps, 200 bytes each: most words of a file stood in an earlier one."""
_UNSPECIFIC = frozenset({"__init__", "index", "mod", "lib", "main", "doc"})
"""Names of files that say nothing: their folder is named instead."""


class Raw(Struct, frozen=True, array_like=True):
    """One file to read; an integer in place of its bytes is the size of one that is too large."""

    path: str
    oid: str
    data: bytes | int


class _Terms(dict[str, str]):
    """The terms of each word, separated by blanks, made when it is first met."""

    def __missing__(self, word: str) -> str:
        if len(self) > _KEPT_WORDS:
            self.clear()
        found = self[word] = " ".join(make_terms(word))
        return found

    def of(self, text: str) -> str:
        """The terms of a text, in order."""
        return " ".join(filter(None, map(self.__getitem__, words(text))))


_terms = _Terms()


def read_batch(batch: Sequence[Raw], *, with_grammar: bool = True) -> list[ReadFile]:
    """Some files as they are stored."""
    return [_read(raw, with_grammar=with_grammar) for raw in batch]


def _read(raw: Raw, *, with_grammar: bool) -> ReadFile:
    language = language_of(raw.path)
    role, weight = role_of(raw.path), standing(raw.path)
    size = raw.data if isinstance(raw.data, int) else len(raw.data)
    refused = "too large" if isinstance(raw.data, int) else unfit(raw.data, language)
    if isinstance(raw.data, int) or refused is not None:
        empty = Pieces(language, 0, size, [], [], [])
        return ReadFile(raw.path, raw.oid, empty, [], "", role=role, standing=weight, refused=refused or "")
    pieces, lines = read_pieces(raw.data, language, with_grammar=with_grammar)
    passages = [_terms.of(text) for text in bodies(pieces, lines)]
    return ReadFile(raw.path, raw.oid, pieces, passages, _terms.of(names(pieces)), place_terms(raw.path), role, weight)


def read_record(path: str, digest: str, text: str) -> ReadFile:
    """A record of the work, a Markdown text, as it is stored."""
    text = stored(text)
    pieces, lines = read_pieces(text.encode(), "markdown")
    passages = [_terms.of(body) for body in bodies(pieces, lines)]
    return ReadFile(stored(path), digest, pieces, passages, "", role="record", text=text)


def place_terms(path: str) -> str:
    """The terms of a path: its name without extension twice, its last three folders once."""
    *folders, name = path.split("/")
    stem = name.partition(".")[0] or name
    if stem in _UNSPECIFIC and folders:
        stem = folders[-1]
    return _terms.of(" ".join((stem, stem, *folders[-3:], name.partition(".")[2])))


def batches(raws: Iterable[Raw]) -> Iterator[list[Raw]]:
    """Files in batches of a size that a worker reads in about a second."""
    batch: list[Raw] = []
    size = 0
    for raw in raws:
        length = len(raw.data) if isinstance(raw.data, bytes) else 0
        if batch and (size + length > BATCH_BYTES or len(batch) >= BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(raw)
        size += length
    if batch:
        yield batch


def read_all(raws: Iterable[Raw], stop: Callable[[], bool], *, workers: int | None = None) -> Iterator[list[ReadFile]]:
    """All files, batch by batch as each is ready; the order may vary and does not matter."""
    # one batch is read here: a worker is started only if there is a second one
    source = batches(raws)
    first = next(source, None)
    if first is None:
        return
    second = next(source, None)
    count = workers if workers is not None else min(os.cpu_count() or 1, 4)
    rest = (batch for part in ((first, second), source) for batch in part if batch is not None)
    if second is None or count < 2:
        for batch in rest:
            if stop():
                return
            yield read_batch(batch)
        return
    yield from _read_in_workers(rest, count, stop)


def _read_in_workers(source: Iterator[list[Raw]], count: int, stop: Callable[[], bool]) -> Iterator[list[ReadFile]]:
    pool = _Workers()
    with ThreadPoolExecutor(count, thread_name_prefix="ask-read") as threads:
        running: set[Future[list[ReadFile]]] = set()
        try:
            for batch in source:
                if stop():
                    return
                running.add(threads.submit(pool.read, batch))
                # one more batch than workers is queued, so that none is idle while the next is prepared
                if len(running) > count:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            for future in running:
                yield future.result()
        finally:
            pool.close()


class _Workers:
    """One worker per thread, started on first use."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._all: list[Process] = []

    def read(self, batch: list[Raw]) -> list[ReadFile]:
        """Read a batch in a worker; if that dies or hangs, read it here without grammars."""
        worker = getattr(self._local, "worker", None)
        if worker is None or worker.poll() is not None:
            worker = self._local.worker = self._start()
        if worker is None:
            return read_batch(batch)
        timer = threading.Timer(BATCH_TIMEOUT_S, worker.kill)
        timer.start()
        try:
            _send(worker, _encoder.encode(batch))
            return _files.decode(_receive(worker))
        except (OSError, EOFError, msgspec.DecodeError):
            worker.kill()
            self._local.worker = None
            # grammars are C code, the one part that can crash or hang on a file
            return read_batch(batch, with_grammar=False)
        finally:
            timer.cancel()

    def _start(self) -> Process | None:
        argv = python_argv("helix_tui.core.ask.index.reading")
        try:
            worker = start(argv, cwd=NEUTRAL, stdin=PIPE, stdout=PIPE)
        except OSError as error:
            logs.logger("ask").warning("%s: does not start: %s", logs.masked(argv), error)
            return None
        self._all.append(worker)
        logs.logger("ask").info("%s: started as %d", logs.masked(argv), worker.pid)
        return worker

    def close(self) -> None:
        """End every worker."""
        for worker in self._all:
            worker.kill()
            with worker:
                pass


def _send(worker: Process, data: bytes) -> None:
    assert worker.stdin is not None
    worker.stdin.write(len(data).to_bytes(_HEADER, "big"))
    worker.stdin.write(data)
    worker.stdin.flush()


def _receive(worker: Process) -> bytes:
    assert worker.stdout is not None
    size = int.from_bytes(_exactly(worker.stdout.read(_HEADER), _HEADER), "big")
    return _exactly(worker.stdout.read(size), size)


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise EOFError("the worker ended")
    return data


def serve() -> None:
    """Run a worker: read batches of files from standard input, write what they hold to standard output."""
    # a batch creates no reference cycles; garbage collection took a twelfth of the time
    gc.disable()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    decoder = msgspec.msgpack.Decoder(list[Raw])
    while True:
        header = source.read(_HEADER)
        if len(header) < _HEADER:
            return
        data = _encoder.encode(read_batch(decoder.decode(source.read(int.from_bytes(header, "big")))))
        sink.write(len(data).to_bytes(_HEADER, "big"))
        sink.write(data)
        sink.flush()


_encoder = msgspec.msgpack.Encoder()
_files = msgspec.msgpack.Decoder(list[ReadFile])


if __name__ == "__main__":
    serve()
