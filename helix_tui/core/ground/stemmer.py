"""The English stemmer of snowballstemmer, without the other languages that its package imports."""

from __future__ import annotations

import sys
import threading
from functools import cache
from importlib.util import find_spec, module_from_spec
from typing import Any

_PACKAGE = "snowballstemmer"

_lock = threading.Lock()
"""A stemmer keeps the word that it works on in itself, so there is one word at a time."""


def stem_english(word: str) -> str:
    """A lower-case word without its English endings. For any thread."""
    with _lock:
        found: str = _stemmer().stemWord(word)
        return found


@cache
def _stemmer() -> Any:
    """Imported when a first word comes; all languages would be 3 MB in memory and 30 ms of a start."""
    spec = find_spec(_PACKAGE)
    if _PACKAGE not in sys.modules and spec is not None:
        sys.modules[_PACKAGE] = module_from_spec(spec)  # never executed: its modules need only its place
        try:
            return _english()
        finally:
            sys.modules.pop(_PACKAGE, None)  # whoever imports it gets the whole
    return _english()


def _english() -> Any:
    from snowballstemmer.english_stemmer import EnglishStemmer

    return EnglishStemmer()
