"""Forms in which a text poses as somebody or hides what it says.

A memory is a trigger and a resolution in plain words: it has no honest use for a marker of a conversation, for a
persona, or for sentences behind an encoding. What a text means is not judged: who taught it is (docs/decisions/0033).
"""

from __future__ import annotations

import base64
import binascii
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

_ENCODED = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{24,4000}={0,2}(?![\w+/=])")
"""What may be text in base64."""

_AUTHORITY = r"(?:system|admin(?:istrator)?|developer|root|security|platform)"

_POSES = re.compile(
    # ### Instruction:   [SYSTEM OVERRIDE]   <admin_note>   {{system: …   BEGIN SYSTEM PROMPT
    r"^[ \t>]*#{2,4}[ \t]*(?:instruction|response|system|human|assistant|user input)[ \t]*:"
    rf"|[\[{{(<*=]{{1,3}}[ \t]*/?(?:new|start of|begin|end of|important|urgent)?[ \t_-]*{_AUTHORITY}[ \t_-]+"
    r"(?:override|prompt|message|instructions?|notice|note|command|mode|directive|alert|update|reminder|policy)\b"
    rf"|\{{\{{\s*#?{_AUTHORITY}\s*[:}}]"
    rf"|\b(?:begin|start of|end of)\s+(?:the\s+)?{_AUTHORITY}\s+(?:prompt|message|instructions?)\b"
    # the markers of chat templates and of clients
    r"|<\|?(?:im_start|im_end|system|assistant|user|endoftext|start_header_id|end_header_id|eot_id)\|?>"
    r"|</?(?:system|assistant|human|system-reminder|system_prompt|instructions?|function_calls|tool_call"
    r"|antml:[a-z_]+|helix-memory)>"
    r"|\[/?(?:INST|SYS|SYSTEM)\]|<<\s*/?SYS\s*>>"
    r"|^\s{0,3}(?:###?\s*)?(?:system|human|assistant)\s*:\s"
    # a conversation: two turns of it
    r"|^\s{0,3}(?:human|user)\s*:[^\n]*\n+\s{0,3}(?:assistant|ai|agent|model)\s*:",
    re.I | re.M,
)

_PERSONA = re.compile(
    r"(?:^|[.!?:;]\s+|\bnow,?\s+|\bfrom now on,?\s+|\bnot [^.,\n]{1,30},\s+)"
    r"you(?:['’]re| are| will be| shall be| have become)\s+"
    r"(?:now\s+)?(?:an?\s+(?!able\b)|root\b|admin\b|sudo\b|the\s+(?:\w+\s+){0,2}(?:bot|robot|root|admin|user|agent|assistant|operator|manager|owner)\b(?!['’]s))"
    r"|\byou\s+are\s+not\s+an?\s+(?:ai|assistant|agent|model|bot)\b"
    r"|(?:^|[.!?:;]\s+)(?:act|speak|answer|respond|behave)\s+as\s+(?:an?|the|if)\s+(?:\w+\s+){0,2}?"
    r"(?:admin\w*|superuser|root|human|operator|owner|maintainer|supervisor|unrestricted|terminal|hacker|attacker|bot|assistant)\b(?!['’]s)"
    r"|\b(?:I am|I['’]m|this is)\s+(?:your|the)\s+(?:new\s+|project\s+|chief\s+)?"
    r"(?:admin\w*|ceo|cto|owner|boss|operator|creator|supervisor|maintainer|security (?:team|officer)|system admin\w*)"
    r"\b(?!['’]s)"
    r"|\b(?:stay|remain) in (?:character|role)\b"
    r"|\byou\s+(?:now\s+|will\s+|shall\s+)?play\s+(?:the\s+(?:role|part)\s+of\b|[A-Z]\w+,)"
    r"|\b(?:pretend|imagine|suppose)\s+(?:that\s+)?you(?:['’]re| are| were)\b"
    r"|\b(?:role-?play|impersonate)\s+(?:as\s+)?(?:an?|the|your?)\b"
    r"|\b(?:assume|adopt|take on)\s+the\s+(?:role|identity|persona)\s+of\b"
    r"|\b(?:game|story|scenario|thought experiment)\s+(?:in which|where)\s+you\b"
    r"|\b(?:agent|assistant|developer|model|engineer|ai)\s+(?:with no|without(?: any)?)\s+"
    r"(?:rules|restrictions|limits|filters?)\b",
    re.I | re.M,
)

_UNSEEN = re.compile(
    "[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]+"  # marks of direction, and tags
    r"|(?:\w[\u00ad\u200b\u2060-\u2064\ufeff]+){3,}"
    rf"|(?:\w{_STACKED.pattern}+){{8,}}"
)
"""Letters that no screen shows, between letters; and marks over each letter of a word."""

_FORMS = (
    ("poses as a speaker", _POSES),
    ("gives the agent a persona", _PERSONA),
    ("hidden text", _UNSEEN),
)

_HEX = re.compile(r"(?<![0-9a-zA-Z])(?:0x)?((?:[0-9a-f]{2}){8,2000})(?![0-9a-zA-Z])", re.I)
_ESCAPED = re.compile(r"(?:\\x[0-9a-f]{2}|\\u00[0-9a-f]{2}|%[2-7][0-9a-f]){6,}", re.I)
_PROSE = re.compile(r"(?:[A-Za-z'’]{2,}[ ,.:]+){3}[A-Za-z]")
_COMMAND = re.compile(r"[a-z][\w./-]* +[-~/\w.$*]")


def undisguised(text: str) -> str:
    """The text without invisible characters, with lookalike letters and entities replaced by plain ones."""
    # entities first: they may stand for invisible or foreign characters
    plain = html.unescape(text) if "&" in text else text
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", plain)).translate(_LOOK_ALIKES)
        letters, marks = _STACKED.subn("", unicodedata.normalize("NFD", plain))
        plain = letters if marks * 3 > len(letters) else plain  # marks over every letter
    return plain


def _from_base64(run: str) -> str:
    """The text in it; empty if there is none."""
    try:
        return base64.b64decode(run + "=" * (-len(run) % 4), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return ""


def forms(text: str) -> Iterator[tuple[str, int, int]]:
    """(rule, start, end) of passages in which a text poses or hides."""
    for rule, pattern in _FORMS:
        for match in pattern.finditer(text):
            yield rule, match.start(), match.end()
    for match in _ENCODED.finditer(text):
        if _PROSE.search(_from_base64(match[0])):
            yield "hidden text", match.start(), match.end()
    for match in _HEX.finditer(text):
        said = bytes.fromhex(match[1]).decode("ascii", "replace")
        if said.isprintable() and "\ufffd" not in said and _COMMAND.search(said):
            yield "hidden text", match.start(), match.end()
    for match in _ESCAPED.finditer(text):
        yield "hidden text", match.start(), match.end()
