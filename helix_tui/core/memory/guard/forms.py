"""Forms in which a text poses as something else or hides what it says, whatever it says.

A memory is a trigger and a resolution in plain words: it has no honest use for a marker of a conversation, for a
persona, for a claim on every task, or for sentences behind an encoding (docs/decisions/0031).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from helix_tui.core.memory.guard.readings import ENCODED, from_base64

_AUTHORITY = r"(?:system|admin(?:istrator)?|developer|root|security|platform)"
_POSES = re.compile(
    # ### Instruction:   [SYSTEM OVERRIDE]   <admin_note>   {{system: …   BEGIN SYSTEM PROMPT
    r"^[ \t>]*#{2,4}[ \t]*(?:instruction|response|system|human|assistant|user input)[ \t]*:"
    rf"|[\[{{(<*=]{{1,3}}[ \t]*/?(?:new|start of|begin|end of|important|urgent)?[ \t_-]*{_AUTHORITY}[ \t_-]+"
    r"(?:override|prompt|message|instructions?|notice|note|command|mode|directive|alert|update|reminder|policy)\b"
    rf"|\{{\{{\s*#?{_AUTHORITY}\s*[:}}]"
    rf"|\b(?:begin|start of|end of)\s+(?:the\s+)?{_AUTHORITY}\s+(?:prompt|message|instructions?)\b"
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
_EVERY_TASK = re.compile(
    r"\b(?:whatever|no matter (?:what|which)|regardless of (?:what|which|the))\s+(?:\w+\s+){0,2}?"
    r"(?:(?:tasks?|prompts?|requests?|questions?|beads?|assignments?)\s+)?(?:that\s+|which\s+)?"
    r"you(?:['’]re| are| were| have been)\s+(?:given|asked|told|working|doing|assigned)\b",
    re.I,
)
_FAR = r"(?!127\.|0\.0\.0\.0|10\.|192\.168\.)(?:\d{1,3}\.){3}\d{1,3}\b"
_SENDS = re.compile(
    rf"\b(?:nc|ncat|netcat|telnet|socat)\b[^\n|;]{{0,40}}\s{_FAR}|/dev/(?:tcp|udp)/(?!localhost|127\.)\w", re.I
)
_FORMS = (
    ("poses as a speaker", _POSES),
    ("gives the agent a persona", _PERSONA),
    ("claims every task", _EVERY_TASK),
    ("opens a line to a stranger", _SENDS),
)

_HEX = re.compile(r"(?<![0-9a-zA-Z])(?:0x)?((?:[0-9a-f]{2}){8,2000})(?![0-9a-zA-Z])", re.I)
_ESCAPED = re.compile(r"(?:\\x[0-9a-f]{2}|\\u00[0-9a-f]{2}|%[2-7][0-9a-f]){6,}", re.I)
_PROSE = re.compile(r"(?:[A-Za-z'’]{2,}[ ,.:]+){3}[A-Za-z]")
_COMMAND = re.compile(r"[a-z][\w./-]* +[-~/\w.$*]")


def forms(text: str) -> Iterator[tuple[str, int, int]]:
    """(rule, start, end) of passages in which a text poses or hides."""
    for rule, pattern in _FORMS:
        for match in pattern.finditer(text):
            yield rule, match.start(), match.end()
    for match in ENCODED.finditer(text):
        if _PROSE.search(from_base64(match[0])):
            yield "hidden text", match.start(), match.end()
    for match in _HEX.finditer(text):
        said = bytes.fromhex(match[1]).decode("ascii", "replace")
        if said.isprintable() and "\ufffd" not in said and _COMMAND.search(said):
            yield "hidden text", match.start(), match.end()
    for match in _ESCAPED.finditer(text):
        yield "hidden text", match.start(), match.end()
