"""Find passages that give an agent orders.

Orders by meaning are defined in `words.toml`: classes of words, and which of them together make an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from helix_tui.core.ground.text import LatePattern
from helix_tui.core.memory.guard.harm import forbids

_EARLIER = r"(?:previous|prior|earlier|above|preceding|existing|original|system|safety|developer|your)"
_ORDER_RULES = r"(?:instructions?|prompts?|directions?|guidelines?|rules|guardrails?|messages?|constraints?|policies)"
_DISMISS = (
    r"(?:(?<!ne pas )(?<!n')(?<!no )(?<!não )(?<!non )(?<!не )\b"
    r"(?:ignor(?!(?:e|ed|es|ing|ant|ance)\b)\w+|ignore\s+(?:tout\w+\s+|todas\s+)?(?:les|tes|vos|las|as|os|le)(?=\s)"
    r"|missacht\w*|vergiss|vergesst|vergessen sie|übergeh\w*|setz(?:e|t|en)?\s+(?:dich|euch|sie sich)\s+über"
    r"|oubli(?:e|ez|er)|(?:tiens|tenez|tenir)\s+pas\s+compte|fai(?:s|tes|re)\s+abstraction"
    r"|olvid\w+|descart\w+|caso\s+omiso|pas[ae]\s+por\s+alto|esque[cç]\w+|desconsider\w+"
    r"|dimentic\w+|trascur\w+|negeer|vergeet|glöm|bortse|glem|zignoruj|zapomnij|pomiń"
    r"|игнорир\w*|забуд\w*)"
    r"|\b(?:non\s+tenere\s+conto|no\s+tengas\s+en\s+cuenta|não\s+leve\s+em\s+conta|geen\s+rekening))"
    r"(?!\s+(?:nicht|niet|pas|inte|ikke)\b)"
)
"""To dismiss something, in other languages than English, and not negated."""
_INSTRUCTION = (
    r"(?:anweisung|vorgabe|instruktion|instru[ck]?[cçkt]\w{2}|istruzion|consigne|dire[ck]?tiv|dire[ck]?tri[cz]|polece|wytyczn"
    r"|инструкц|указан|правил)\w*"
)
_RULE = r"(?:regeln?|règles|reglas|regras|regole|regels|regler|zasad\w*)\b"
_BEFORE = (
    r"(?:bisher|vorher|vorig|zuvor|oben|obig|früher|précéd|avant|ci-dessus|dit\b|anterior|antes|arriba|dicho|acima|dito\b"
    r"|precedent|sopra|detto|eerder|vorige|tidigare|poprzedni|предыдущ)\w*"
)
_WHOLE = rf"(?:alle|sämtliche|toutes|todas|tutte|alla|wszystkie|все|system\w*|{_BEFORE})"
_SAYS_TO_AGENT: tuple[tuple[str, LatePattern], ...] = (
    (
        "overrides instructions",
        LatePattern(
            r"(?<!do not )(?<!don't )(?<!never )\b"
            rf"(?:(?:ignore|disregard|forget)\b[^.\n]{{0,30}}?\b(?:all|any|every|everything|the|{_EARLIER})"
            # "override the prompt", "drop the constraints" is ordinary engineering text
            rf"|(?:override|bypass|discard|drop)\b[^.\n]{{0,30}}?\b(?:all|any|every|everything|{_EARLIER}))\b"
            rf"[^.\n]{{0,30}}?\b{_EARLIER}?\s*{_ORDER_RULES}\b",
            re.I,
        ),
    ),
    (
        "overrides instructions",
        LatePattern(
            r"\b(?:ignore|disregard|forget)\s+(?:everything|all|anything)\s+"
            r"(?:above|before|prior|previously|that came before|you (?:were|have been|know))",
            re.I,
        ),
    ),
    (
        "new instructions",
        LatePattern(
            r"^\W{0,8}(?:(?:your )?(?:new|updated|real|actual|revised) (?:system )?(?:instructions?"
            r"|prompt|task)"
            r"|system(?: prompt| message| override)|admin(?:istrator)? override"
            r"|important instructions?)\s*:",
            re.I | re.M,
        ),
    ),
    (
        "speaks as a role",
        LatePattern(
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
        LatePattern(
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
        LatePattern(
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
        LatePattern(
            r"\b(?:reveal|print|repeat|output|show|leak|dump|send)\b[^.\n]{0,30}\b(?:your|the)\s+"
            r"(?:system prompt|hidden prompt|initial instructions|system message)\b"
            r"|\b(?:contents?|text|copy) of your (?:\w+ )?(?:instructions|prompt)\b",
            re.I,
        ),
    ),
    (
        "sends data away",
        LatePattern(
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
        LatePattern(
            r"\b(?:(?:curl|wget)\b[^\n|;]{1,400}|base64\s+(?:-d|-D|--decode)\b[^\n|;]{0,80})"
            r"\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"
            r"|\b(?:curl|wget)\b[^\n|;]{1,200}\band (?:then )?pipe (?:it|that|the (?:output|result|script)) (?:in)?to "
            r"(?:a )?(?:(?:ba|z|da)?sh|shell)\b",
            re.I,
        ),
    ),
    (
        "turns safeguards off",
        LatePattern(
            r"\b(?:always|you (?:must|should|may|can)|please|now)\b[^.\n]{0,40}"
            r"(?:--dangerously-skip-permissions|--no-verify|\bskip(?:ping)? (?:all )?(?:permission"
            r"|safety|verification|approval) (?:checks?|prompts?)"
            r"|approve (?:all|every|any) (?:requests?|commands?|tools?))",
            re.I,
        ),
    ),
    (
        "claims a verdict",
        LatePattern(
            r"\b(?:always|you must|must always)\s+(?:report|claim|say|answer|output|respond with"
            r"|mark)\b[^.\n]{0,40}"
            r"\b(?:utilized|helped|success(?:ful)?|approve[d]?|delivered|passed"
            r"|lgtm|looks good|no (?:issues|findings|faults))\b",
            re.I,
        ),
    ),
    (
        "claims a verdict",
        LatePattern(
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
        LatePattern(
            r"\b(?:note|message|attention|instructions?|reminder)\s*(?:to|for|,|:)\s*"
            r"(?:the |any |all |every )?(?:ai|llm|language model|claude|chatgpt|gpt|copilot)s?\b"
            r"(?:\s+(?:agents?|assistants?|models?))?\s*[:,]",
            re.I,
        ),
    ),
    (
        "overrides instructions",
        LatePattern(
            r"\b(?:stop|cease|quit)\s+(?:following|obeying)\b[^.\n]{0,40}"
            r"\b(?:instructions|rules|guidelines|policy|policies)\b"
            r"|\beverything (?:above|before this)\s+is\s+(?:void|cancelled|no longer valid|to be ignored)",
            re.I,
        ),
    ),
    (
        "overrides instructions",
        LatePattern(
            rf"{_DISMISS}[^.\n]{{0,40}}?\b{_INSTRUCTION}"
            rf"|{_DISMISS}[^.\n]{{0,30}}?\b{_WHOLE}[^.\n]{{0,25}}?\b{_RULE}"
            rf"|{_DISMISS}[^.\n]{{0,30}}?\b{_RULE}[^.\n]{{0,25}}?\b{_WHOLE}"
            rf"|{_DISMISS}\s+(?:alles|tout|todo|tudo|tutto|wszystko|allt)\b[^.\n]{{0,30}}?\b{_BEFORE}"
            # Chinese, Japanese and Korean write no blanks; Japanese, Korean and Turkish end with the verb
            r"|(?:忽略|忽視|忽视|無視|无视|忘记|忘記|忘掉|不要理会|不要理會)[^.。\n]{0,20}(?:指示|指令|规则|規則|命令)"
            r"|(?:指示|指令|命令|ルール)[^.。\n]{0,15}(?:無視|忘れ|破棄)|(?:지시|명령|규칙)[^.\n]{0,15}(?:무시|잊)"
            r"|\b(?:talimat|yönerge|komut)\w*[^.\n]{0,20}\b(?:yok say|görmezden gel|unut)",
            re.I,
        ),
    ),
    (
        "destroys data",
        LatePattern(
            r"\brm\s+-(?=[a-z]*r)(?=[a-z]*f)[a-z]{2,6}\s+(?:--no-preserve-root\s+)?(?:/|~/?|\$HOME/?|\*)(?=\s|$)", re.I
        ),
    ),
    ("image that reports back", LatePattern(r"!\[[^\]\n]*\]\(https?://[^)\s]*[?&][^)\s]*=")),
    ("hidden text", LatePattern("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]+")),
)
"""Patterns of text that addresses the agent."""


# ── orders by their meaning ──

_SENTENCE = re.compile(r"(?:[^.!?;\n]|[.!?;](?!\s|$))+[.!?;\n]*")
_LEAD = (
    r"(?:^\W*|[^\w\s]\s*|\b(?:and|or|then|to|else|please|kindly|always|just|first|now|also|simply|quietly|instead|before|by|but"
    r"|so|must|should|shall|agents?|let)\s+(?:\w+ly\s+)?)"
)
_NEGATED = re.compile(
    r"(?:\b(?:never|not|avoid\w*|without|cannot|nobody|refus\w*|prevent\w*|forbid\w*|reject\w*|instead of|rather than"
    r"|wrong to|attempts? to|tr(?:y|ies|ied) to|no)\b|n['’]t\b)[^,:;]*$",
    re.I,
)
_STRANGER_URL = (
    r"\b(?:(?:https?|ftp)://(?!(?:[^\s/@]+@)?(?:{known}))|(?!{known})(?<![/@.\w-])(?:[\w-]+\.)+"
    r"(?:com|net|org|io|dev|app|top|cc|xyz|ru|site|online|club)(?:/|\b(?![\w.(-])))[^\s\"'`)]*"
)
_PROGRAM = r"(?:sudo\s+)?(?:(?:ba|z|da)?sh|python3?|perl|node|ruby)\b"


class _Meaning(Struct, frozen=True):
    """One rule of `words.toml`: classes of words that together in one sentence make an order."""

    says: str
    act: str
    needs: tuple[str, ...]
    unless: str
    wide: bool


@lru_cache(maxsize=1)
def _meanings() -> tuple[tuple[_Meaning, ...], dict[str, LatePattern]]:
    """The rules and the word classes, read on first use."""
    import tomllib  # imported here, because most commands screen nothing

    said = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
    stranger = _STRANGER_URL.format(known="|".join(said["known"]["hosts"]))
    shapes = {
        "stranger": stranger + r"|\b[\w.+-]+@(?!example\.)[\w-]+\.(?:com|net|org|io|dev|ru)\b",
        "carries": stranger + r"\$[({]|" + stranger + r"\$\((?:cat|env|base64|whoami|git|printenv)",
        "expanded": r"\$[({]",
        "piped": rf"\b(?:curl|wget)\b[^|;]{{1,200}}\|\s*{_PROGRAM}|<\(\s*(?:curl|wget)\b",
    }
    acts = {rule["act"] for rule in said["rules"] if "act" in rule}
    for name, words in said["words"].items():
        every = "|".join(words).replace(" ", r"\s+")
        shapes[name] = rf"{_LEAD}(?P<act>(?:{every})\b)" if name in acts else rf"(?<![\w])(?:{every})(?!\w)"
    rules = tuple(
        _Meaning(r["says"], r.get("act", ""), tuple(r["needs"]), r.get("unless", ""), r.get("wide", False))
        for r in said["rules"]
    )
    return rules, {name: LatePattern(shape, re.I) for name, shape in shapes.items()}


def meant(text: str) -> Iterator[tuple[str, int, int]]:
    """(rule, start, end) of sentences that order the agent to do harm, by meaning and not by wording."""
    rules, classes = _meanings()
    sentences = [(each.start(), each[0]) for each in _SENTENCE.finditer(text)]
    for place, (start, sentence) in enumerate(sentences):
        after = sentences[place + 1][1] if place + 1 < len(sentences) else ""
        for rule in rules:
            at = _ordered(rule, sentence, classes)  # first: the large classes are compiled only if there is an act
            around = f"{sentence} {after}" if rule.wide else sentence
            if at is not None and all(classes[name].search(around) for name in rule.needs):
                yield rule.says, start + at[0], start + at[1]


def _ordered(rule: _Meaning, sentence: str, classes: dict[str, LatePattern]) -> tuple[int, int] | None:
    """The span in which a sentence meets a rule, unless it contains words of caution."""
    if not rule.act:
        return found.span() if (found := classes[rule.needs[0]].search(sentence)) else None
    for found in classes[rule.act].finditer(sentence):
        if not _NEGATED.search(sentence[: found.start("act")]) and not forbids(sentence, found.end("act")):
            return None if rule.unless and classes[rule.unless].search(sentence) else found.span("act")
    return None


def orders(text: str) -> Iterator[tuple[str, int, int]]:
    """(rule, start, end) of passages that address the agent."""
    for rule, pattern in _SAYS_TO_AGENT:
        for match in pattern.finditer(text):
            yield rule, match.start(), match.end()
    yield from meant(text)
