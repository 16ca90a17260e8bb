"""Phrases of plain questions that mean another thing than their words: *left out* is ``exclude`` in code, *how large*
asks for a size, *if I say nothing* is a default.

A verb alone, *left* or *taken*, is in every program; with its particle it is one action, and code has one word for it.
"""

from __future__ import annotations

import re

_PHRASES = """
leave leaves leaving left keep keeps kept + out = exclude ignore skip omit filter |
take takes taken took strip stripped + out = remove strip extract |
switch switched turn turns turned + on = enable activate | switch switched turn turns turned + off = disable |
throw throws throwing threw thrown + away = discard drop evict delete |
hold holds held + back = delay throttle debounce defer | put puts + together = merge join concat combine |
put puts + back = restore reset revert | go goes going + back = revert restore legacy |
split taken take + apart = split tokenize | cut cuts + off = truncate clip |
look looks looked + up = lookup resolve find | make makes made + up = generate random |
work works worked + out = compute calculate determine resolve |
clean cleans cleaned tidy tidied + up = cleanup remove | shut shuts + down = shutdown close terminate |
fill fills filled + in = render substitute complete | find finds found + out = detect determine discover |
give gives gave given + up = abort retry timeout fail | go goes went gone + on = resume continue |
try tries tried + again = retry retries | another + try = retry retries | another + attempt = retry retries |
send sends sent + again = resend repeat | start starts started + again = restart | get + rid = remove disable |
same + time = concurrent concurrently simultaneous parallel lock race
"""
_MEASURES = """
large big = size length limit | long = duration timeout interval delay length | often frequently = interval period every
| deep = depth level nesting | high = height | wide = width columns | old = age | fast = speed rate
"""
_KEPT = """
keep keeps kept stored = store save persist write path | disk = path dir write |
look looks looked = search lookup locate path
"""


def _table(text: str) -> list[tuple[str, tuple[str, ...]]]:
    rows = (row.split("=") for row in " ".join(text.split()).split("|"))
    return [(asked.strip(), tuple(means.split())) for asked, means in rows]


_VERBS = tuple(
    (re.compile(rf"\b({'|'.join(verbs.split())})(?=(?: [\w'-]+){{0,3}}? {particle.strip()}\b)"), means)
    for asked, means in _table(_PHRASES)
    for verbs, particle in [asked.split("+")]
)
_MEASURED = {word: means for asked, means in _table(_MEASURES) for word in asked.split()}
_HOW = re.compile(r"\bhow (\w+)")
_PLACED = {word: means for asked, means in _table(_KEPT) for word in asked.split()}

_INTERRUPT = re.compile(r"\b(?:press(?:es|ed|ing)? )?ctrl ?[-+] ?c\b", re.IGNORECASE)
_INTERRUPTED = ("interrupt", "sigint", "keyboardinterrupt")
_IDLE = re.compile(
    r"\bin (?:which|what) order\b|\bin the meantime\b|\bby accident\b|\bfor (?:a while|some time)\b|\bat (?:all|once)\b"
    r"|\bin (?:effect|place of|fact)\b|\bof course\b|\bmake sure\b",
    re.IGNORECASE,
)
"""Phrases that add nothing to what is asked about."""
_SAID = r"(?:say|said|give|given|set|configured?|specify|specified|choose|chosen|pass|passed|named?|stated?|defined?)"
_BY_DEFAULT = re.compile(
    rf",?\b(?:(?:if|when|unless|while) (?:(?:i|we|you) (?:have )?{_SAID} (?:nothing|none|no (?P<what>\w+))"
    rf"|(?:nothing|none) (?:is|was|has been) {_SAID}(?: on the command line)?)"
    rf"|unless (?:i )?{_SAID}(?: otherwise)?|unless told otherwise"
    r"|if (?:i|we|you) (?:do not|don['’]t) say(?: how \w+)?|out of the box)\b",
    re.IGNORECASE,
)
"""A condition that only says *by default*: "if I say nothing", "unless told otherwise"."""


def without_idioms(text: str) -> str:
    """A question without phrases that add nothing, and with one word for those that have one."""
    text = _INTERRUPT.sub("interrupt", _IDLE.sub("", text))
    return _BY_DEFAULT.sub(lambda found: f" by default {found['what'] or ''}", text)


def meanings_in(text: str, asks: str) -> dict[str, tuple[tuple[str, ...], bool]]:
    """The words of a question that mean what code calls otherwise: its words for them, and whether they weigh like a
    noun, as an action does and a measure does not.

    Args:
        text: the question.
        asks: the kind of answer that it wants.
    """
    lowered = text.lower()
    placed = _PLACED if asks == "where" else {}
    found = {word: (means, False) for word, means in placed.items() if re.search(rf"\b{word}\b", lowered)}
    found |= {word: (_MEASURED[word], False) for word in _HOW.findall(lowered) if word in _MEASURED}
    found |= {verb: (means, True) for pattern, means in _VERBS for verb in pattern.findall(lowered)}
    return found | ({"interrupt": (_INTERRUPTED, True)} if "interrupt" in lowered else {})
