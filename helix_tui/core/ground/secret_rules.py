"""Find secrets in a text: by their format, by the words before them, by randomness.

Tuned on titles, descriptions and acceptance of real trackers, so that engineering text is kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import pairwise

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
    ("github token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255})\b")),
    ("gitlab token", re.compile(r"\bgl(?:pat|ptt|dt|rt|cbt)-[A-Za-z0-9_-]{18,}")),
    ("slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{20,}")),
    ("slack webhook", re.compile(r"https://hooks\.slack\.com/services/T[\w/]{20,}")),
    ("anthropic key", re.compile(r"\bsk-ant-[A-Za-z0-9_-]{20,}")),
    ("openai key", re.compile(r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]*[A-Za-z0-9]{20,}\b")),
    ("google key", re.compile(r"\bAIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])")),
    ("google oauth", re.compile(r"\bya29\.[A-Za-z0-9_-]{20,}|\bGOCSPX-[A-Za-z0-9_-]{20,}")),
    ("stripe key", re.compile(r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}\b|\bwhsec_[A-Za-z0-9+/=]{24,}")),
    ("twilio key", re.compile(r"\bSK[0-9a-f]{32}\b")),
    ("sendgrid key", re.compile(r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}")),
    ("npm token", re.compile(r"\bnpm_[A-Za-z0-9]{36}\b")),
    ("pypi token", re.compile(r"\bpypi-AgE[A-Za-z0-9_-]{50,}")),
    ("huggingface token", re.compile(r"\bhf_[A-Za-z]{30,}\b")),
    ("digitalocean token", re.compile(r"\bdo[por]_v1_[0-9a-f]{60,}\b")),
    ("telegram token", re.compile(r"\b\d{8,10}:AA[A-Za-z0-9_-]{32,}")),
    ("age key", re.compile(r"\bAGE-SECRET-KEY-1[A-Z0-9]{50,}\b")),
    ("discord token", re.compile(r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}\b")),
    ("discord webhook", re.compile(r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}")),
    ("vault token", re.compile(r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}")),
    ("doppler token", re.compile(r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{20,}")),
    ("mailgun key", re.compile(r"\bkey-[0-9a-f]{32}\b")),
    ("databricks token", re.compile(r"\bdapi[0-9a-f]{32}\b")),
    ("postman key", re.compile(r"\bPMAK-[0-9a-f]{24}-[0-9a-f]{34}\b")),
    ("new relic key", re.compile(r"\bNRAK-[A-Z0-9]{27}\b")),
    ("azure signature", re.compile(r"[?&]sig=[A-Za-z0-9%+/_-]{40,}")),
    ("password hash", re.compile(r"\$(?:apr1|2[abxy]|5|6|y|argon2id?)\$[./A-Za-z0-9$=,+]{20,}")),
    (
        "service token",  # a vendor's prefix, then only random letters and digits
        re.compile(
            r"\b(?:(?:pat|api|fly|secret|rnd|tkn)[_-](?=[A-Za-z0-9]{24})"  # also words, so no dashes follow
            r"|(?:shp(?:at|ca|pa|ss)|lin_(?:api|oauth)|ntn|fig[do]|glsa|glc|dckr_(?:pat|oat)"
            r"|pscale_\w{2,5}"
            r"|sq0[a-z]{3}|EAAA|EAACEdEose0cBA|tfp|ATATT|rubygems|nfp|sntrys)[_-]?)"
            r"(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_=-]{24,255}(?![\w-])"
        ),
    ),
    ("jwt", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
)
"""Formats that identify a secret by themselves."""

# words joined by dashes can match these formats too
_MUST_BE_RANDOM = {"openai key", "service token"}

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
    r"(?:passw(?:or)?d|passwd|pwd|passphrase|(?<=[_-])pass|secret|token|api[ _-]?key|apikey"
    r"|access[_-]?key|private[_-]?key"
    r"|(?:signing|encryption|auth|account|deploy)[ _-]?key|credentials?)"
    r"[\w-]{0,30}['\"]?\s{0,3}(?::=|=>|[:=])\s{0,3})"
    r"(?:(?P<quote>['\"`])(?P<secret>[^'\"`\n]{6,300})(?P=quote)|(?P<bare>[^\s'\"`,;)}\]]{6,300}))",
    re.I,
)
_ON_COMMAND_LINE = re.compile(
    r"\b(?:curl\b[^\n|;]{0,200}?\s(?:-u|--user)[ =]?['\"]?[^\s:'\"]{1,80}:(?P<secret>[^\s'\"]{4,100})"
    r"|(?:mysql\w*\b[^\n|;]{0,200}?\s-p|sshpass\s+-p\s?)['\"]?(?P<bare>[^\s'\"-][^\s'\"]{3,100}))"
)
_NETRC = re.compile(
    r"\blogin\s+\S{1,80}\s+password\s+(?P<secret>\S{4,100})"
    r"|\b(?:user(?:name)?|account|login|as)\s+\S{1,80}\s+(?:and|with)(?: the)? password\s+"
    r"(?P<bare>(?=\S*\d)(?=\S*[A-Za-z])\S{5,100})",
    re.I,
)
_COOKIE = re.compile(r"\b(?:set-)?cookie:\s*[^\n=]{1,60}=(?P<secret>[A-Za-z0-9%._~+/-]{16,400})", re.I)
_SAID = re.compile(
    r"\b(?:password|passphrase|secret|token|(?:api|access|secret|private)[ _-]key)\b[^.\n:=]{0,20}?"
    r"\b(?:is|to|was|becomes)[ :]+['\"`]?(?P<secret>[^\s'\"`,;]{8,200})",
    re.I,
)
_ABROAD = "kennwort|contraseña|senha|wachtwoord|lösenord|parola|пароль|密码|密碼|パスワード|비밀번호"
"""A password in other languages than English, where its word has no *pass* in it."""
_WORD_SAID = re.compile(
    r"\b(?:pass ?word|passwd|pass[ -]?phrase|passcode|pwd|pin"
    rf"|passwort|mot de passe|{_ABROAD}"
    r"|user\b[^.\n]{0,30}?\bpass(?=\s?[:=])"
    r"|(?:recovery|backup|one-time|unlock) (?:codes?|keys?|pins?))(?: (?:for|of|on|at) [\w .-]{1,40}?)?\s*(?:\bis\b"
    r"|\bwas\b|\b(?:ist|lautet|war|est|es|é|är)\b|是|は|[:=])\s*"
    r"(?P<quote>['\"`]?)(?P<secret>[^\s'\"`,;]{4,64})",
    re.I,
)
"""A password in a sentence: letters mixed with digits, or a quoted word."""
_TOKEN_SAID = re.compile(
    r"\b(?:token|secret|(?:api|access|secret|private)[ _-]key)(?: (?:for|of|on"
    r"|at) [\w .-]{1,40}?)?\s+(?:is|was)\s+"
    r"['\"`]?(?P<secret>[A-Za-z0-9_-]{8,200})",
    re.I,
)
_LOGIN = re.compile(
    r"\b(?:log ?in|sign in|authenticate|credentials?)\b[^.\n/]{0,20}?\b(?:with|as|using|are|is)?[ :]*"
    r"[`'\"]?[A-Za-z][\w.-]{1,40}\s?[/:]\s?(?P<secret>(?=[^\s/]*\d)(?=[^\s/]*[A-Za-z])[^\s'\"`,;/]{5,64})",
    re.I,
)
_HINT = re.compile(
    r"pass|pwd|\bpin\b|secret|token|key|credential|log ?in|sign in|authenticat|cookie|bearer|basic|://|curl|mysql"
    rf"|{_ABROAD}"
    r"|code is|(?:recovery|backup|one-time|unlock) code",
    re.I,
)
"""A text without any of these contains no secret in words."""
_ALGORITHM = re.compile(
    r"^(?:argon2\w*|sha-?\d+\w*|md5|base\d+|b64|pbkdf2|utf-?\d+|ascii\d*|oauth2?|x509|rsa\d*|aes\d*"
    r"|pkcs\d+|v\d+"
    r"|\d+(?:st|nd|rd|th|ms|s|min|h|d|px|k|kb|mb|x|chars?)?)\b",
    re.I,
)
_RANDOM = re.compile(r"(?<![\w/+.=@-])(?P<secret>[A-Za-z0-9_-]{32,200})(?![\w/+=@-])")
_PLACEHOLDER = re.compile(
    r"^(?:<.*|\$.*|%.*|\{.*|x{3,}.*|\*+|\.{3}.*|\[.*"
    r"|(?:your|my|some|the|an?|new|old|example|sample|dummy|fake|test|placeholder|changeme|change"
    r"|redacted|todo)"
    r"(?:[-_ ].*)?|none|null|nil|true|false|undefined|required|optional|missing|invalid|expired"
    r"|string|str|bytes|int"
    r"|self|this|not|is|was|must|should|can|and|from|with)$",
    re.I,
)
_CODE = re.compile(r"[(\[]|^[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)+$|->|::|^[A-Za-z_]+$|^/|^\.{1,2}/|^~/|^[a-z]+://")
"""An expression, a dotted name, one word, a path: the usual right side of ``=`` in code and prose."""


def secrets(text: str) -> Iterator[tuple[str, int, int]]:
    """(rule, start, end) of every secret in a text."""
    for rule, pattern in _FORMATS:
        for match in pattern.finditer(text):
            if rule not in _MUST_BE_RANDOM or _tangled(match.group(), 3.5):
                yield rule, match.start(), match.end()
    telling = _HINT.search(text) is not None
    for rule, pattern, fits in _NAMED:
        if not telling and rule != "random string":
            continue
        for match in pattern.finditer(text):
            group = "secret" if match["secret"] is not None else "bare"  # a pattern with two groups
            if fits(match.group(group), match):
                yield rule, match.start(group), match.end(group)


def _in_header(secret: str, match: re.Match[str]) -> bool:
    if match.group().lower().startswith("authorization") and secret.lower() != secret:
        return not _PLACEHOLDER.match(secret)
    return _tangled(secret, 3.0) and not _is_path(secret)


def _spelt_out(secret: str, match: re.Match[str]) -> bool:
    return not _PLACEHOLDER.match(secret) and not _is_path(secret)


def _in_cookie(secret: str, match: re.Match[str]) -> bool:
    return _tangled(secret, 3.5)


def _in_prose(secret: str, match: re.Match[str]) -> bool:
    """A word unlike any name: letters mixed with digits, or random."""
    word = secret.rstrip(".!?)]")
    among = re.search(r"[A-Za-z]\d+[A-Za-z]", word) is not None and any(c.isupper() for c in word)
    return among and not _CODE.search(word) and _tangled(word, 2.8) and not _is_path(word)


def _names_a_secret(secret: str, match: re.Match[str]) -> bool:
    """Letters with digits that do not name an algorithm, or a quoted word that is not a placeholder."""
    word = secret.rstrip(".!?)]")
    said = match.group().lower()
    if said.startswith("pin"):
        return re.fullmatch(r"\d{4,8}", word) is not None
    # a recovery code may be all digits
    if "code" in said and sum(map(str.isdigit, word)) >= 6:
        return True
    if _PLACEHOLDER.match(word) or _ALGORITHM.match(word) or (_CODE.search(word) and not word.isalpha()):
        return False
    mixed = any(c.isdigit() for c in word) and any(c.isalpha() for c in word)
    return len(word) >= 5 and (mixed or (bool(match["quote"]) and "=" not in match.group() and word.isalpha()))


def _told_token(secret: str, match: re.Match[str]) -> bool:
    """Letters and digits that alternate often and are not a hash."""
    if _ALGORITHM.match(secret) or re.fullmatch(r"[0-9a-f]+", secret) or "-" in secret:
        return False
    kinds = [c.isdigit() for c in secret]
    return sum(one != other for one, other in pairwise(kinds)) >= 3 and _entropy(secret) >= 2.8


def _login(secret: str, match: re.Match[str]) -> bool:
    return not _ALGORITHM.match(secret) and not _is_path(secret) and not _CODE.search(secret)


def _random(secret: str, match: re.Match[str]) -> bool:
    """Upper case, lower case and digits in random order: names in no style alternate so often."""
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" if c.islower() else "-" for c in secret]
    if not {"d", "u", "l"} <= set(kinds) or kinds.count("d") < 3:
        return False
    changes = sum(one != other for one, other in pairwise(kinds))
    return changes >= 0.45 * len(secret) and _entropy(secret) >= 4.2


def _in_url(secret: str, match: re.Match[str]) -> bool:
    return not _PLACEHOLDER.match(secret) and secret.lower() not in {"password", "pass", "secret", "pw", "pwd"}


def _as_flag(secret: str, match: re.Match[str]) -> bool:
    return _given(secret, quoted=False)


def _assigned(secret: str, match: re.Match[str]) -> bool:
    if " " in secret and "=" not in match.group("name"):
        return False  # "password: 'must have 12 characters'" is a message
    return _short_password(secret, match) or _given(secret, quoted=bool(match.group("quote")))


_NAMED: tuple[tuple[str, re.Pattern[str], Callable[[str, re.Match[str]], bool]], ...] = (
    ("password in url", _URL_CREDENTIALS, _in_url),
    ("authorization", _HEADER, _in_header),
    ("password option", _FLAG, _as_flag),
    ("secret assignment", _ASSIGNMENT, _assigned),
    ("password option", _ON_COMMAND_LINE, _spelt_out),
    ("password", _NETRC, _spelt_out),
    ("cookie", _COOKIE, _in_cookie),
    ("secret in words", _SAID, _in_prose),
    ("password in words", _WORD_SAID, _names_a_secret),
    ("secret in words", _TOKEN_SAID, _told_token),
    ("password in words", _LOGIN, _login),
    ("random string", _RANDOM, _random),
)
"""Text that is a secret because of the words before it."""


def _given(secret: str, *, quoted: bool) -> bool:
    """Whether a value is a literal, not a name, an expression, a placeholder or prose."""
    if _PLACEHOLDER.match(secret) or _is_path(secret):
        return False
    if quoted and len(secret) >= 8 and not _identifier(secret):
        return True
    return not _CODE.search(secret) and _tangled(secret, 2.5)


def _short_password(secret: str, match: re.Match[str]) -> bool:
    """A short password: six characters are enough if the name says just “password”."""
    named = re.search(r"(?:passw(?:or)?d|passwd|pwd)['\"]?\s{0,3}(?::=|=>|[:=])\s{0,3}\Z", match.group("name"), re.I)
    mixed = re.fullmatch(r"(?=.*\d)(?=.*[A-Za-z])[^\s()\[\]{}$<>/\\]{6,7}", secret)
    return bool(named and mixed)


def _identifier(text: str) -> bool:
    """Words joined by one kind of separator: a key or a variable name, not a password."""
    return re.fullmatch(r"[A-Za-z]+(?:[_.:-][A-Za-z]+)*", text) is not None


def _is_path(text: str) -> bool:
    """Whether a text is a path: begins like one or consists of short words; base64 has slashes too."""
    if "/" not in text:
        return False
    return re.match(r"/|\.{1,2}/|~/|(?:[a-z0-9_.-]+/)+[\w.-]*(?::\d+)?$", text) is not None


def _tangled(text: str, bits: float) -> bool:
    """Letters and digits mixed unlike any word, with at least ``bits`` of entropy per character."""
    has_digit = any(c.isdigit() for c in text)
    has_letter = any(c.isalpha() for c in text)
    return has_digit and has_letter and len(text) >= 8 and _entropy(text) >= bits


def _entropy(text: str) -> float:
    """Shannon entropy in bits per character."""
    size = len(text)
    return -sum(text.count(c) / size * math.log2(text.count(c) / size) for c in set(text))
