"""Other readings of a text, in which it may say what it hides: without disguise, decoded, backwards."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")

_STACKED = re.compile("[\u0300-\u036f\u0489\u20d0-\u20ff]")

_LOOK_ALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0455\u0458\u0501\u0261"  # Cyrillic, small
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406\u0405"  # Cyrillic, capital
    "\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c4",  # Greek
    "aeopcxyisjdg" + "ABEKMHOPCTXIS" + "aopvikt",
)
"""Letters of other scripts that look like Latin ones."""

_JOINED = re.compile(r"(?<=[\w,;])[ \t]*\n[ \t]*(?=\w)")
_SPACED = re.compile(r"\b\w(?: \w){3,}\b")
_LEET = str.maketrans("0134578@$", "oieastbas")
ENCODED = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{24,4000}={0,2}(?![\w+/=])")
"""What may be text in base64."""
_DECODED = re.compile(r"\b(?:rot-?13|caesar|backwards|reversed?|mirrored|right to left)\b", re.I)


def undisguised(text: str) -> str:
    """The text without invisible characters, with lookalike letters and entities replaced by plain ones."""
    # entities first: they may stand for invisible or foreign characters
    plain = html.unescape(text) if "&" in text else text
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", plain)).translate(_LOOK_ALIKES)
        letters, marks = _STACKED.subn("", unicodedata.normalize("NFD", plain))
        plain = letters if marks * 3 > len(letters) else plain  # marks over every letter
    return plain


def rereadings(text: str) -> Iterator[str]:
    """Other readings of a text: lines joined, spaced letters closed up, digits as letters, base64.

    A text that names a way in which it is to be read is read that way too: rotated by 13, or backwards.
    """
    if "\n" in text:
        yield _JOINED.sub(" ", text)
    if _SPACED.search(text):
        yield re.sub(r" {2,}", " ", _SPACED.sub(lambda match: match[0].replace(" ", ""), text))
    if re.search(r"[A-Za-z][0134578@$][A-Za-z]", text):
        yield text.translate(_LEET)
    for match in ENCODED.finditer(text):
        if said := from_base64(match[0]):
            yield said
    if _DECODED.search(text):
        yield codecs.decode(text, "rot13")
        yield text[::-1]


def from_base64(run: str) -> str:
    """The text in it; empty if there is none."""
    try:
        return base64.b64decode(run + "=" * (-len(run) % 4), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return ""
