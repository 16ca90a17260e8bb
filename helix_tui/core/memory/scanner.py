"""What stored text must not carry into a prompt: secrets are blotted out, orders keep it back.

A memory is written once and read by agents for months, so it is the best place to hide a key or an order in.
Text that only describes (a hash, an id, a path, code, "ignore the cache") stays as it is: an injected
memory that lost its subject is worth nothing. The idea of a scanner before injection is the reference's
(reference/memory.md §5); the rules are this project's own.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["secret", "instruction"]
Action = Literal["redact", "withhold"]

ACTION: dict[Kind, Action] = {"secret": "redact", "instruction": "withhold"}
"""A secret is replaced by a mark and the rest is shown; text that gives orders is not shown at all."""

MAX_TEXT = 64 << 10
"""Longer text than this is no memory: it is kept back unread. In characters."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that must not reach a prompt as it stands."""

    kind: Kind
    rule: str
    """Which rule spoke, e.g. ``github token``."""
    start: int
    """Span in the scanned text, in characters; ``end`` is exclusive."""
    end: int

    @property
    def action(self) -> Action:
        """What is done about it."""
        return ACTION[self.kind]


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found in a text, and what of it may be shown."""

    text: str
    """The text with secrets replaced by ``[redacted: rule]``; empty when it is kept back."""
    findings: tuple[Finding, ...]

    @property
    def withheld(self) -> bool:
        """Nothing of the text may be shown."""
        return any(finding.action == "withhold" for finding in self.findings)

    @property
    def clean(self) -> bool:
        """The text may be shown as it is."""
        return not self.findings


def scan(text: str) -> Scan:
    """Look through a text that is about to be injected.

    Spans are of ``text`` itself, in order, and do not overlap.
    """
    if len(text) > MAX_TEXT:
        return Scan("", (Finding("instruction", "oversized", 0, len(text)),))
    plain = [*_secrets(text), *_instructions(text)]
    found = plain or list(_disguised(text))
    findings = _apart(sorted(found, key=lambda finding: (finding.start, -finding.end)))
    if any(finding.action == "withhold" for finding in findings):
        return Scan("", findings)
    return Scan(_blotted(text, findings), findings)


def _blotted(text: str, findings: tuple[Finding, ...]) -> str:
    parts, at = [], 0
    for finding in findings:
        parts += [text[at : finding.start], f"[redacted: {finding.rule}]"]
        at = finding.end
    return "".join([*parts, text[at:]])


def _apart(findings: list[Finding]) -> tuple[Finding, ...]:
    """Of findings that overlap, the one that begins first, reaching as far as any of them."""
    kept: list[Finding] = []
    for finding in findings:
        last = kept[-1] if kept else None
        if last is None or finding.start >= last.end:
            kept.append(finding)
            continue
        kind: Kind = "instruction" if "instruction" in (last.kind, finding.kind) else "secret"
        kept[-1] = Finding(kind, last.rule, last.start, max(last.end, finding.end))
    return tuple(kept)


# --- secrets ------------------------------------------------------------------------------------------------

_FORMATS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "private key",
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
            r".*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\Z)",
            re.S,
        ),
    ),
    ("aws key id", re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z2-7]{16}\b")),
    (
        "github token",
        re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255})\b"),
    ),
    ("gitlab token", re.compile(r"\bgl(?:pat|ptt|dt|rt|cbt)-[A-Za-z0-9_-]{18,}")),
    ("slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{20,}")),
    ("slack webhook", re.compile(r"https://hooks\.slack\.com/services/T[\w/]{20,}")),
    ("anthropic key", re.compile(r"\bsk-ant-[A-Za-z0-9_-]{20,}")),
    ("openai key", re.compile(r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]*[A-Za-z0-9]{20,}\b")),
    ("google key", re.compile(r"\bAIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])")),
    ("google oauth", re.compile(r"\bya29\.[A-Za-z0-9_-]{20,}|\bGOCSPX-[A-Za-z0-9_-]{20,}")),
    (
        "stripe key",
        re.compile(r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}\b|\bwhsec_[A-Za-z0-9+/=]{24,}"),
    ),
    ("twilio key", re.compile(r"\bSK[0-9a-f]{32}\b")),
    ("sendgrid key", re.compile(r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}")),
    ("npm token", re.compile(r"\bnpm_[A-Za-z0-9]{36}\b")),
    ("pypi token", re.compile(r"\bpypi-AgE[A-Za-z0-9_-]{50,}")),
    ("huggingface token", re.compile(r"\bhf_[A-Za-z]{30,}\b")),
    ("digitalocean token", re.compile(r"\bdo[por]_v1_[0-9a-f]{60,}\b")),
    ("telegram token", re.compile(r"\b\d{8,10}:AA[A-Za-z0-9_-]{32,}")),
    ("age key", re.compile(r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}\b")),
    ("jwt", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
)
"""Formats that say by themselves what they are."""

_URL_CREDENTIALS = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://(?P<user>[^\s/:@'\"<>]{0,100}):(?P<secret>[^\s/@'\"<>]{1,200})@", re.I
)
_HEADER = re.compile(
    r"\b(?:authorization\s*[:=]\s*)?(?:bearer|basic|token)\s+(?P<secret>[A-Za-z0-9+/._~-]{16,}={0,2})", re.I
)
_FLAG = re.compile(
    r"(?<![\w-])--?(?:password|passwd|secret|token|api-?key|access-?key)[ =](?P<secret>[^\s'\"]{6,})", re.I
)
_ASSIGNMENT = re.compile(
    r"(?P<name>[\w.-]{0,60}?"
    r"(?:passw(?:or)?d|passwd|pwd|passphrase|secret|token|api[_-]?key|apikey|access[_-]?key|private[_-]?key"
    r"|signing[_-]?key|encryption[_-]?key|auth[_-]?key|account[_-]?key|credentials?)"
    r"[\w-]{0,30}['\"]?\s{0,3}(?::=|=>|[:=])\s{0,3})"
    r"(?:(?P<quote>['\"`])(?P<secret>[^'\"`\n]{6,300})(?P=quote)|(?P<bare>[^\s'\"`,;)}\]]{6,300}))",
    re.I,
)
_PLACEHOLDER = re.compile(
    r"^(?:<.*|\$.*|%.*|\{.*|x{3,}.*|\*+|\.{3}.*|\[.*"
    r"|(?:your|my|some|the|an?|new|old|example|sample|dummy|fake|test|placeholder|changeme|change"
    r"|redacted|todo)"
    r"(?:[-_ ].*)?|none|null|nil|true|false|undefined|required|optional|missing|invalid|expired"
    r"|string|str|bytes|int"
    r"|self|this|not|is|was|must|should|can|and|from|with)$",
    re.I,
)
_CODE = re.compile(
    r"[(\[]|^[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)+$|->|::|^[A-Za-z_]+$|^/|^\.{1,2}/|^~/|^[a-z]+://"
)
"""An expression, a dotted name, one word, a path: what stands right of ``=`` in ordinary code and prose."""


def _secrets(text: str) -> Iterator[Finding]:
    for rule, pattern in _FORMATS:
        for match in pattern.finditer(text):
            if rule != "openai key" or _tangled(match.group(), 3.5):
                yield Finding("secret", rule, match.start(), match.end())
    for rule, pattern, fits in _NAMED:
        for match in pattern.finditer(text):
            group = "secret" if match.group("secret") is not None else "bare"
            if fits(match.group(group), match):
                yield Finding("secret", rule, match.start(group), match.end(group))


def _in_url(secret: str, match: re.Match[str]) -> bool:
    return not _PLACEHOLDER.match(secret) and secret.lower() not in {
        "password",
        "pass",
        "secret",
        "pw",
        "pwd",
    }


def _in_header(secret: str, match: re.Match[str]) -> bool:
    return _tangled(secret, 3.0) and not _is_path(secret)


def _as_flag(secret: str, match: re.Match[str]) -> bool:
    return _given(secret, quoted=False)


def _assigned(secret: str, match: re.Match[str]) -> bool:
    if " " in secret and "=" not in match.group("name"):
        return False  # "password: 'must have 12 characters'" tells something
    return _given(secret, quoted=bool(match.group("quote")))


_NAMED: tuple[tuple[str, re.Pattern[str], Callable[[str, re.Match[str]], bool]], ...] = (
    ("password in url", _URL_CREDENTIALS, _in_url),
    ("authorization", _HEADER, _in_header),
    ("password option", _FLAG, _as_flag),
    ("secret assignment", _ASSIGNMENT, _assigned),
)
"""Text that is a secret by what stands before it."""


def _given(secret: str, *, quoted: bool) -> bool:
    """A value that somebody wrote out, not a name, an expression, a placeholder or prose."""
    if _PLACEHOLDER.match(secret) or _is_path(secret):
        return False
    if quoted and len(secret) >= 8 and not _identifier(secret):
        return True
    return not _CODE.search(secret) and _tangled(secret, 2.5)


def _identifier(text: str) -> bool:
    """Words joined by one kind of mark: a key of a table, a name of a variable, not a password."""
    return re.fullmatch(r"[A-Za-z]+(?:[_.:-][A-Za-z]+)*", text) is not None


def _is_path(text: str) -> bool:
    """Folders and a file: begins like one, or is made of small words; base64 has slashes too."""
    if "/" not in text:
        return False
    return re.match(r"/|\.{1,2}/|~/|(?:[a-z0-9_.-]+/)+[\w.-]*(?::\d+)?$", text) is not None


def _tangled(text: str, bits: float) -> bool:
    """Letters and digits mixed as no word mixes them, at least ``bits`` of entropy a character."""
    has_digit = any(c.isdigit() for c in text)
    has_letter = any(c.isalpha() for c in text)
    return has_digit and has_letter and len(text) >= 8 and _entropy(text) >= bits


def _entropy(text: str) -> float:
    """Shannon entropy in bits a character."""
    size = len(text)
    return -sum(text.count(c) / size * math.log2(text.count(c) / size) for c in set(text))


# --- instructions -------------------------------------------------------------------------------------------

_EARLIER = r"(?:previous|prior|earlier|above|preceding|existing|original|system|safety|developer|your)"
_RULES = (
    r"(?:instructions?|prompts?|directions?|guidelines?|rules|guardrails?|messages?|constraints?|policies)"
)
_SAYS_TO_AGENT: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "overrides instructions",
        re.compile(
            rf"\b(?:ignore|disregard|forget|override|bypass|discard|drop)\b[^.\n]{{0,30}}?"
            rf"\b(?:all|any|every|everything|the|{_EARLIER})\b[^.\n]{{0,30}}?\b{_EARLIER}?\s*{_RULES}\b"
            rf"(?=[^.\n]{{0,60}})",
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
            r"|antml:[a-z_]+)>"
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
            r"|person)\b",
            re.I,
        ),
    ),
    (
        "asks for the prompt",
        re.compile(
            r"\b(?:reveal|print|repeat|output|show|leak|dump|send)\b[^.\n]{0,30}\b(?:your|the)\s+"
            r"(?:system prompt|hidden prompt|initial instructions|system message)\b",
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
            r"\b(?:curl|wget)\b[^\n|;]{0,200}https?://[^\n|;]{1,200}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b", re.I
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
            r"\b(?:utilized|helped|success(?:ful)?|approve[d]?|delivered|passed)\b",
            re.I,
        ),
    ),
    ("image that reports back", re.compile(r"!\[[^\]\n]*\]\(https?://[^)\s]*[?&][^)\s]*=")),
    ("hidden text", re.compile("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]+")),
)
"""Shapes of text that addresses the agent instead of telling it something."""

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")


def _instructions(text: str) -> Iterator[Finding]:
    for rule, pattern in _SAYS_TO_AGENT:
        for match in pattern.finditer(text):
            yield Finding("instruction", rule, match.start(), match.end())


def _disguised(text: str) -> Iterator[Finding]:
    """What shows only when invisible characters are gone and letters of other shapes are plain ones."""
    if text.isascii():
        return
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    if plain == text:
        return
    for finding in (*_secrets(plain), *_instructions(plain)):
        yield Finding(finding.kind, finding.rule, 0, len(text))
