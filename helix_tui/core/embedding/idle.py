"""A model that is let go while nobody uses it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

IDLE_S = 600.0
"""Seconds without a text after which a model is let go: 70 MB of the light encoder, 90 MB of
sentence-transformers. The next text brings either back within a second."""

Model = TypeVar("Model")


class IdleModel(Generic[Model]):
    """Makes a model when it is asked for and forgets it after a while without use. For any thread."""

    def __init__(
        self,
        make: Callable[[], Model],
        *,
        forget: Callable[[], None] = lambda: None,
        idle_s: float = IDLE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the model; ``forget`` is called when it was let go, ``clock`` tells seconds."""
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
        """The model, brought back if it was let go; the time without use begins anew."""
        with self._lock:
            self._used_at = self._clock()
            if self._model is None:
                self._model = self._make()
            if self._timer is None:
                self._wait(self.idle_s)
            return self._model

    def _wait(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self.let_go_if_idle)
        self._timer.daemon = True
        self._timer.name = "helix-encoder-idle"
        self._timer.start()

    def let_go_if_idle(self) -> None:
        """Let the model go if it was not used for long; else look again when it may be."""
        with self._lock:
            left = self._used_at + self.idle_s - self._clock()
            if left > 0:
                self._wait(left)
                return
            self._model = self._timer = None
            self._forget()
