"""Records in files that others may have written: what is not as it should be is found here, where it is read.

A file that is not JSON reads as None, and a field of a wrong type as absent, so that nothing behind a reader meets
either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct


def decode_json(raw: bytes | str | None) -> Any:
    """The JSON in a text; None where there is none, or something else."""
    try:
        return msgspec.json.decode(raw) if raw else None
    # the decoder gives up on deep nesting with a RecursionError
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def encode_json(document: Mapping[str, Any], enc_hook: Callable[[Any], Any] = str) -> bytes:
    """A document as JSON; question marks stand for the bytes of a file's name that are no text."""
    try:
        return msgspec.json.encode(document, enc_hook=enc_hook)
    except UnicodeEncodeError:
        import json  # as good as no document needs it

        plain = msgspec.to_builtins(document, enc_hook=enc_hook)
        return json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace")


def fitting_fields(document: Mapping[str, Any], kind: type[Struct]) -> dict[str, Any]:
    """The fields of a record that have the types of ``kind``; the others have its defaults."""
    fitting = {}
    for name, hint in _hints(kind).items():
        if name in document:
            with suppress(msgspec.ValidationError):
                fitting[name] = msgspec.convert(document[name], hint)
    return fitting


_hints = cache(get_type_hints)
