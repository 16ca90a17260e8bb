"""Holding one of DDx's locks for a command, or refusing it in DDx's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from helix_ddx.base.refusal import Refused
from helix_ddx.store.lock import FolderLock, LockTimeout


@contextmanager
def held(lock: FolderLock) -> Iterator[None]:
    """Hold a lock.

    Raises:
        Refused: somebody else holds it for too long, or its folder cannot be made.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(lock.held())
        except LockTimeout as problem:
            raise Refused(str(problem)) from None
        except OSError as error:
            raise Refused(f"bead: lock dir: {error}") from None
        yield
