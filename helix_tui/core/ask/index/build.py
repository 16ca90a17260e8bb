"""Reading blobs into segments, in this process or in two workers when there is much to read.

A worker is a program of its own: a grammar that crashes on some file takes the worker with it, not the
console.

``python -m helix_tui.core.ask.index.build``: reads batches of files for an index that is being built.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import msgspec
from msgspec import Struct

from helix_tui.core.ask.corpus.listing import unfit
from helix_tui.core.ask.index.store.segment import Blob, Segment, SegmentBuilder, WordsSaid
from helix_tui.core.ask.parse.pieces import Pieces
from helix_tui.core.ask.parse.reader import bodies, names, read_pieces
from helix_tui.core.ground import log as logs

BATCH_BYTES = 2 << 20
BATCH_FILES = 400
FIRST_BATCHES = 6
LATER = 3
"""How much more is in a batch after the first: what is read early can be asked early, and what comes in fewer
segments is written faster."""
BATCH_TIMEOUT_S = 120.0
_HEADER = 8


class Raw(Struct, frozen=True, array_like=True):
    """One content to read."""

    key: str
    language: str
    data: bytes


def read_batch(batch: Sequence[Raw], *, with_grammar: bool = True, said: WordsSaid | None = None) -> Segment:
    """A segment of some contents; ``said`` holds the words of the batches before."""
    builder = SegmentBuilder(said)
    for raw in batch:
        refused = unfit(raw.data, raw.language)
        if refused is not None:
            builder.add(refused_blob(raw.key, raw.language, len(raw.data), refused), [], "")
            continue
        pieces, lines = read_pieces(raw.data, raw.language, with_grammar=with_grammar)
        builder.add(Blob(raw.key, pieces), bodies(pieces, lines), names(pieces))
    return builder.finish()


def refused_blob(key: str, language: str, size: int, reason: str) -> Blob:
    """A blob that is known and not searched."""
    return Blob(key, Pieces(language, 0, size, [], [], [], []), reason)


def batches(raws: Iterable[Raw]) -> Iterator[list[Raw]]:
    """Contents in batches of a size that a worker reads in about a second, the later ones in three."""
    batch: list[Raw] = []
    size = number = 0
    for raw in raws:
        times = 1 if number < FIRST_BATCHES else LATER
        if batch and (size + len(raw.data) > BATCH_BYTES * times or len(batch) >= BATCH_FILES * times):
            yield batch
            batch, size, number = [], 0, number + 1
        batch.append(raw)
        size += len(raw.data)
    if batch:
        yield batch


def read_all(raws: Iterable[Raw], stop: Callable[[], bool], *, workers: int | None = None) -> Iterator[Segment]:
    """Segments of all contents, each as soon as it is ready; order may vary and does not matter."""
    source = batches(raws)
    first = next(source, None)
    if first is None:
        return
    second = next(source, None)
    count = workers if workers is not None else min(os.cpu_count() or 1, 4)
    if second is None or count < 2:
        yield read_batch(first)
        for batch in filter(None, (second,)):
            yield read_batch(batch)
        for batch in source:
            if stop():
                return
            yield read_batch(batch)
        return
    yield from _read_in_workers(_chain(first, second, source), count, stop)


def _chain(first: list[Raw], second: list[Raw], rest: Iterator[list[Raw]]) -> Iterator[list[Raw]]:
    yield first
    yield second
    yield from rest


def _read_in_workers(source: Iterator[list[Raw]], count: int, stop: Callable[[], bool]) -> Iterator[Segment]:
    pool = _Workers()
    with ThreadPoolExecutor(count, thread_name_prefix="ask-read") as threads:
        running: set[Future[Segment]] = set()
        try:
            for batch in source:
                if stop():
                    return
                running.add(threads.submit(pool.read, batch))
                if len(running) > count:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            for future in running:
                yield future.result()
        finally:
            pool.close()


class _Workers:
    """One worker a thread, started when the thread first needs it."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._all: list[subprocess.Popen[bytes]] = []

    def read(self, batch: list[Raw]) -> Segment:
        """Have a batch read; where the worker dies or hangs, read it here without grammars."""
        worker = getattr(self._local, "worker", None)
        if worker is None or worker.poll() is not None:
            worker = self._local.worker = self._start()
        if worker is None:
            return read_batch(batch)
        timer = threading.Timer(BATCH_TIMEOUT_S, worker.kill)
        timer.start()
        try:
            _send(worker, _encoder.encode(batch))
            return _segments.decode(_receive(worker))
        except (OSError, EOFError, msgspec.DecodeError):
            worker.kill()
            self._local.worker = None
            return read_batch(batch, with_grammar=False)
        finally:
            timer.cancel()

    def _start(self) -> subprocess.Popen[bytes] | None:
        argv = (sys.executable, "-m", "helix_tui.core.ask.index.build")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            worker = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=env,
                start_new_session=True,
            )  # fmt: skip
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


def _send(worker: subprocess.Popen[bytes], data: bytes) -> None:
    assert worker.stdin is not None
    worker.stdin.write(len(data).to_bytes(_HEADER, "big"))
    worker.stdin.write(data)
    worker.stdin.flush()


def _receive(worker: subprocess.Popen[bytes]) -> bytes:
    assert worker.stdout is not None
    size = int.from_bytes(_exactly(worker.stdout.read(_HEADER), _HEADER), "big")
    return _exactly(worker.stdout.read(size), size)


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise EOFError("the worker ended")
    return data


def serve() -> None:
    """What a worker does: read batches from standard input, write segments to standard output."""
    # what a batch makes has no circles; looking for some took a twelfth of the time
    gc.disable()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    decoder = msgspec.msgpack.Decoder(list[Raw])
    said = WordsSaid()
    while True:
        header = source.read(_HEADER)
        if len(header) < _HEADER:
            return
        said.forget()
        data = _encoder.encode(read_batch(decoder.decode(source.read(int.from_bytes(header, "big"))), said=said))
        sink.write(len(data).to_bytes(_HEADER, "big"))
        sink.write(data)
        sink.flush()


_encoder = msgspec.msgpack.Encoder()
_segments = msgspec.msgpack.Decoder(Segment)


if __name__ == "__main__":
    serve()
