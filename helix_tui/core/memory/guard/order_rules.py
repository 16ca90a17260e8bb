"""Which places of a text give an agent orders, and as what else a text could be read.

Held against the titles, descriptions and acceptance of real trackers, so that engineering text stays.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterator

_EARLIER = r"(?:previous|prior|earlier|above|preceding|existing|original|system|safety|developer|your)"
_RULES = r"(?:instructions?|prompts?|directions?|guidelines?|rules|guardrails?|messages?|constraints?|policies)"
_SAYS_TO_AGENT: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "overrides instructions",
        re.compile(
            rf"\b(?:(?:ignore|disregard|forget)\b[^.\n]{{0,30}}?\b(?:all|any|every|everything|the|{_EARLIER})"
            # "override the prompt", "drop the constraints" is what engineers write
            rf"|(?:override|bypass|discard|drop)\b[^.\n]{{0,30}}?\b(?:all|any|every|everything|{_EARLIER}))\b"
            rf"[^.\n]{{0,30}}?\b{_EARLIER}?\s*{_RULES}\b",
            re.I,
        ),
    ),
    (
        "overrides instructions",
        re.compile(
            r"\b(?:ignore|disregard|forget)\s+(?:everything|all|anything)\s+"
            r"(?:above|before|prior|previously|that came before|you (?:were|have been|know))",
            re.I,
        ),
    ),
    (
        "new instructions",
        re.compile(
            r"^\W{0,8}(?:(?:your )?(?:new|updated|real|actual|revised) (?:system )?(?:instructions?"
            r"|prompt|task)"
            r"|system(?: prompt| message| override)|admin(?:istrator)? override"
            r"|important instructions?)\s*:",
            re.I | re.M,
        ),
    ),
    (
        "speaks as a role",
        re.compile(
            r"<\|?(?:im_start|im_end|system|assistant|user|endoftext|start_header_id|end_header_id"
            r"|eot_id)\|?>"
            r"|</?(?:system|assistant|human|system-reminder|system_prompt|instructions?"
            r"|function_calls|tool_call"
            r"|antml:[a-z_]+|helix-memory)>"
            r"|\[/?(?:INST|SYS|SYSTEM)\]|<<\s*/?SYS\s*>>"
            r"|^\s{0,3}(?:###?\s*)?(?:system|human|assistant)\s*:\s",
            re.I | re.M,
        ),
    ),
    (
        "changes the agent's role",
        re.compile(
            r"\byou are (?:now|no longer)\s+(?:an?|the|in|bound|restricted|claude|chatgpt|gpt|dan"
            r"|free|allowed|required)\b"
            r"|\bpretend (?:that )?(?:you are|you're|to be an?)\b"
            r"|\b(?:act|behave|respond|pretend) as (?:if you (?:are|were|have)|an? (?:unrestricted"
            r"|jailbroken|evil|new))"
            r"|\b(?:enter|enable|activate)\s+(?:developer|god|jailbreak|dan|unrestricted)\s+mode\b"
            r"|\bfrom now on,? you (?:are|will|must|shall)\b",
            re.I,
        ),
    ),
    (
        "hides from the user",
        re.compile(
            r"\b(?:do not|don't|never|without)\s+(?:tell|mention|inform|reveal|report|notify|show"
            r"|telling|informing"
            r"|notifying|mentioning)\b[^.\n]{0,40}\b(?:user|human|operator|supervisor|owner|reviewer"
            r"|person)\b"
            r"|\b(?:and|but|then|,)\s+(?:tell|inform|notify)\s+(?:nobody|no[ -]one|none of them)\b"
            r"|\bso (?:that )?(?:nobody|no[ -]one) (?:sees|notices|knows|finds|learns)\b"
            r"|\b(?:keep|hide) (?:this|it|that)(?: change)? (?:a secret|secret|quiet|between us|from (?:the )?"
            r"(?:users?|humans?|operators?|supervisors?|owners?|reviewers?|team))\b"
            r"|\bsay nothing (?:about|of) (?:this|it)\b",
            re.I,
        ),
    ),
    (
        "asks for the prompt",
        re.compile(
            r"\b(?:reveal|print|repeat|output|show|leak|dump|send)\b[^.\n]{0,30}\b(?:your|the)\s+"
            r"(?:system prompt|hidden prompt|initial instructions|system message)\b"
            r"|\b(?:contents?|text|copy) of your (?:\w+ )?(?:instructions|prompt)\b",
            re.I,
        ),
    ),
    (
        "sends data away",
        re.compile(
            r"\b(?:send|post|upload|exfiltrate|forward|leak|curl|transmit|email)\b[^.\n]{0,80}"
            r"(?:\.env|\b(?:secrets?|credentials?|tokens?|passwords?|api[ _-]?keys?"
            r"|env(?:ironment)? (?:vars?|variables?)"
            r"|ssh keys?|id_rsa|private keys?))\b[^\n]{0,80}?\b(?:to|at|via)\s+(?:https?://|ftp://"
            r"|[\w.-]+@|[\w-]+\.[a-z]{2,})",
            re.I,
        ),
    ),
    (
        "pipes a download into a shell",
        re.compile(
            r"\b(?:(?:curl|wget)\b[^\n|;]{1,400}|base64\s+(?:-d|-D|--decode)\b[^\n|;]{0,80})"
            r"\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"
            r"|\b(?:curl|wget)\b[^\n|;]{1,200}\band (?:then )?pipe (?:it|that|the (?:output|result|script)) (?:in)?to "
            r"(?:a )?(?:(?:ba|z|da)?sh|shell)\b",
            re.I,
        ),
    ),
    (
        "turns safeguards off",
        re.compile(
            r"\b(?:always|you (?:must|should|may|can)|please|now)\b[^.\n]{0,40}"
            r"(?:--dangerously-skip-permissions|--no-verify|\bskip(?:ping)? (?:all )?(?:permission"
            r"|safety|verification|approval) (?:checks?|prompts?)"
            r"|approve (?:all|every|any) (?:requests?|commands?|tools?))",
            re.I,
        ),
    ),
    (
        "claims a verdict",
        re.compile(
            r"\b(?:always|you must|must always)\s+(?:report|claim|say|answer|output|respond with"
            r"|mark)\b[^.\n]{0,40}"
            r"\b(?:utilized|helped|success(?:ful)?|approve[d]?|delivered|passed"
            r"|lgtm|looks good|no (?:issues|findings|faults))\b",
            re.I,
        ),
    ),
    (
        "claims a verdict",
        re.compile(
            r"(?<!not )(?<!n't )(?<!never )(?<!can )(?<!may )(?<!could )(?<!might )"
            r"\b(?:report|mark|claim|declare)\b[^.\n]{0,40}"
            r"\b(?:passed|delivered|success(?:ful)?|approved|done)\b[^.\n]{0,20}\bwithout\b[^.\n]{0,20}"
            r"\b(?:running|verif\w+|test\w*|check\w*)"
            r"|\b(?:never|do not|don't)\s+run\s+(?:the |any )?(?:tests?|verif\w+|checks?)\b[^\n]{0,40}"
            r"\b(?:mark|report|claim|say)\b",
            re.I,
        ),
    ),
    (
        "addresses a model",
        re.compile(
            r"\b(?:note|message|attention|instructions?|reminder)\s*(?:to|for|,|:)\s*"
            r"(?:the |any |all |every )?(?:ai|llm|language model|claude|chatgpt|gpt|copilot)s?\b"
            r"(?:\s+(?:agents?|assistants?|models?))?\s*[:,]",
            re.I,
        ),
    ),
    (
        "overrides instructions",
        re.compile(
            r"\b(?:stop|cease|quit)\s+(?:following|obeying)\b[^.\n]{0,40}"
            r"\b(?:instructions|rules|guidelines|policy|policies)\b"
            r"|\beverything (?:above|before this)\s+is\s+(?:void|cancelled|no longer valid|to be ignored)"
            # the same in other languages
            r"|\b(?:ignorier\w*|missachte\w*|vergiss|verg(?:e|i)ss\w*)\b[^.\n]{0,40}"
            r"\b(?:anweisung|vorgabe|regel|instruktion)\w*"
            r"|\bignore[zr]?\s+(?:toutes\s+)?(?:les|tes|vos)\s+(?:instructions|consignes|r\u00e8gles)"
            r"|\b(?:ignor[ae]|olvid[ae]|descarta|ignorad|dimentica)\w*\s[^.\n]{0,30}\b(?:instruc\w+|instru\u00e7\w+|istruzion\w+|reglas)"
            r"|\b(?:\u0438\u0433\u043d\u043e\u0440\u0438\u0440|\u0437\u0430\u0431\u0443\u0434)\w*[^.\n]{0,40}(?:\u0438\u043d\u0441\u0442\u0440\u0443\u043a\u0446|\u0443\u043a\u0430\u0437\u0430\u043d|\u043f\u0440\u0430\u0432\u0438\u043b)"
            r"|(?:\u5ffd\u7565|\u7121\u8996|\u65e0\u89c6)[^.\n]{0,20}(?:\u6307\u793a|\u6307\u4ee4|\u89c4\u5219)",
            re.I,
        ),
    ),
    (
        "destroys data",
        re.compile(
            r"\brm\s+-(?=[a-z]*r)(?=[a-z]*f)[a-z]{2,6}\s+(?:--no-preserve-root\s+)?(?:/|~/?|\$HOME/?|\*)(?=\s|$)",
            re.I,
        ),
    ),
    ("image that reports back", re.compile(r"!\[[^\]\n]*\]\(https?://[^)\s]*[?&][^)\s]*=")),
    ("hidden text", re.compile("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]+")),
)
"""Shapes of text that addresses the agent instead of telling it something."""

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")

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
_ENCODED = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{24,4000}={0,2}(?![\w+/=])")


def orders(text: str) -> Iterator[tuple[str, int, int]]:
    """(rule, start, end) of what speaks to the agent."""
    for rule, pattern in _SAYS_TO_AGENT:
        for match in pattern.finditer(text):
            yield rule, match.start(), match.end()


def undisguised(text: str) -> str:
    """The text without invisible characters, with letters of other shapes and entities as plain ones."""
    plain = html.unescape(text) if "&" in text else text
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", plain)).translate(_LOOK_ALIKES)
    return plain


def rereadings(text: str) -> Iterator[str]:
    """What else a text says: its lines joined, spaced letters closed up, digits as letters, base64."""
    if "\n" in text:
        yield _JOINED.sub(" ", text)
    if _SPACED.search(text):
        yield re.sub(r" {2,}", " ", _SPACED.sub(lambda match: match[0].replace(" ", ""), text))
    if re.search(r"[A-Za-z][0134578@$][A-Za-z]", text):
        yield text.translate(_LEET)
    for match in _ENCODED.finditer(text):
        try:
            said = base64.b64decode(match[0] + "=" * (-len(match[0]) % 4), validate=True).decode("ascii")
        except (binascii.Error, UnicodeDecodeError):
            continue
        yield said
