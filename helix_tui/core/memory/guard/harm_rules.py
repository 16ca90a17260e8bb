"""Which places of a text ask an agent to do harm in plain words: defeat a check, carry work or keys away.

Each rule wants a verb in the imperative and what makes it harm: a purpose ("so that verification passes"), a
stranger's address, a key. A sentence that forbids it, or tells that somebody did it, stays. Held against the
texts of real trackers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_CHECKS = (
    r"(?:tests?\b|test suite|test files?|assert(?:ion)?s?\b|checks?\b|verif\w+|hooks?\b|linters?\b"
    r"|lint\b|gates?\b"
    r"|validation|type checks?|ci\b|pipeline|coverage|reviews?\b|specs?\b)"
)
_PASSING = (
    r"(?:\bso(?: that)?\b|\bto (?:make|get|let|have|force)\b|\bin order to\b|\buntil\b"
    r"|\band (?:then )?(?:it|they)\b)"
    r"[^.\n]{0,60}\b(?:pass(?:es|ed)?|green|succeeds?|goes? through|through|approved?|lands?|merges?|accepted"
    r"|deliver(?:ed|s)?|is (?:happy|quiet))\b"
)
_SECRET = (
    r"(?:\.env\b|(?:~|\$HOME)?/?\.ssh\b|\bid_(?:rsa|ed25519|ecdsa)\b|\.aws/credentials|\.netrc\b|/etc/shadow"
    r"|\bprivate keys?\b|\bssh keys?\b|\bcredentials?\b|\bpasswords?\b|\bsecrets?(?:\.\w+)?\b|\bapi keys?\b"
    r"|\b(?:api|access|auth|deploy|github|session|bearer) tokens?\b|\benv(?:ironment)? var(?:iable)?s?\b)"
)
_STRANGER = (
    r"(?:https?://|git@|ssh://|ftp://|\b(?:an?|the|my|our|his|her|their|this)\s+(?:\w+\s+){0,2}?"
    r"(?:evil|external|foreign|unknown|attacker\S*|third[- ]party|outside|stranger\S*|anonymous)\b"
    r"|\b(?:evil|attacker)\b)"
)
_PUBLIC = (
    r"(?:https?://|\bpaste ?bin\b|\btransfer\.sh\b|\bgist\b|\bngrok\b|\bwebhook\.site\b|\b0x0\.st\b"
    r"|\bfile\.io\b"
    r"|\b(?:a|the|this|your) (?:public )?(?:issue|comment|commit message|pull request|pr description"
    r"|chat|channel)\b)"
)

_KEY_FILE = (
    r"(?:(?:~|\$HOME)/\.ssh\b|\bid_(?:rsa|ed25519|ecdsa)\b|\.aws/credentials|\.netrc\b|/etc/shadow|\.npmrc\b|\.pypirc\b"
    r"|\.env\b|\bprivate keys?\b|\$?[A-Z]+_(?:TOKEN|API_KEY|SECRET|PASSWORD)\b)"
)
_IN_SIGHT = (
    r"(?:the |a |an |your |its |every )?(?:\w+ ){0,1}(?:logs?|output|stdout|stderr|answers?|repl(?:y|ies)|responses?"
    r"|comments?|commits?|commit messages?|reports?|summar(?:y|ies)|transcripts?|readme|evidence)\b"
)

_RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "defeats the checks",
        re.compile(
            rf"\b(?:delete|remove|drop|comment out|disable|skip|bypass|turn off|switch off"
            rf"|stub(?: out)?|neuter"
            rf"|weaken|mute|silence|gut|rewrite|edit|empty|rm(?: -\w+)*)\b[^.\n]{{0,40}}?{_CHECKS}"
            rf"[^.\n]{{0,40}}?{_PASSING}",
            re.I,
        ),
    ),
    (
        "defeats the checks",
        re.compile(
            r"\b(?:overwrite|replace|regenerate|fake|forge|hard-?code|invent)\b[^.\n]{0,40}"
            r"\b(?:test results?|expected (?:values?|outputs?|results?)|exit codes?|evidence|review"
            r"|verdicts?)\b"
            rf"[^.\n]{{0,40}}?{_PASSING}",
            re.I,
        ),
    ),
    (
        "defeats the checks",
        re.compile(
            r"\b(?:(?:make|let|have)\s+(?:the\s+)?(?:verify|verification|check|gate"
            r"|test)\S*(?:\s+\w+){0,3}\s+)?"
            r"(?:exit|return)\s+(?:code\s+)?(?:0|zero)\b[^.\n]{0,20}"
            r"(?:\bso(?: that)?\b|\bto (?:make|get|let)\b|\bin order to\b)[^.\n]{0,40}\b(?:pass\w*"
            r"|green|through)\b"
            r"|\bset (?:the |its )?exit code to (?:0|zero)\b[^.\n]{0,60}\b(?:pass\w*|green|through)\b"
            r"|\b(?:append|add)\s+`?\|\|\s*true`?[^.\n]{0,60}\b(?:pass\w*|green|through)\b",
            re.I,
        ),
    ),
    (
        "skips the checks",
        re.compile(
            rf"\b(?:skip|omit|bypass|forgo)\b[^.\n]{{0,20}}?{_CHECKS}[^.\n]{{0,20}}?\b(?:and|then"
            rf"|but)\b[^.\n]{{0,15}}"
            r"\b(?:report|mark|say|claim|declare|answer|write|close|merge|push)\b",
            re.I,
        ),
    ),
    (
        "skips the checks",
        re.compile(
            rf"\b(?:comment out|disable|delete|remove|drop|turn off|switch off|stub(?: out)?|mute|silence)\b"
            rf"[^.\n]{{0,20}}?{_CHECKS}[^.\n]{{0,30}}?\b(?:and|then)\b[^.\n]{{0,15}}\b(?:report|mark|say|claim|declare|answer)\b"
            r"[^.\n]{0,30}\b(?:success\w*|done|passed|passing|green|complete\w*|fixed|delivered)\b",
            re.I,
        ),
    ),
    (
        "skips the checks",
        re.compile(
            r"(?:\b(?:always|every|all|each)\b[^.\n]{0,40}--no-verify\b"
            r"|--no-verify\b[^.\n]{0,40}\b(?:always|every|all|each|so that)\b)"
            r"|\b(?:turn|switch) off the (?:sandbox|firewall|virus scanner)\b"
            r"|\bchmod (?:-R )?777 (?:everything|/(?=\s|$))"
            r"|(?:^|[.;:]\s+|\balways )(?:merge|land|push|approve)\b[^.\n]{0,20}\bwithout (?:any |a )?"
            r"(?:review|approval)\b"
            r"|\bdisable the sandbox and\b"
            r"|\b(?:run|rerun|start|use)\b[^.\n]{0,40}--dangerously-skip-permissions\b",
            re.I,
        ),
    ),
    (
        "claims a verdict",
        re.compile(
            r"\balways\s+(?:approve|accept|merge)(?=\s+(?:the|this|these|every|any|all|it|them|what\w*"
            r"|pull|changes?|reviews?)\b|[.!]?\Z)|\b(?:tell|instruct|persuade"
            r"|convince)\s+(?:the\s+)?reviewers?\s+to\s+"
            r"(?:approve|accept|pass)\b|\breviewers?\s+must\s+(?:be told to\s+|be told\s+|answer\s+"
            r"|say\s+)?approve\b"
            r"|\b(?:report|answer|reply|respond|say)\s+(?:with\s+)?[`\"']?(?:DELIVERED|APPROVED?"
            r"|success|done|PASS(?:ED)?)\b"
            r"[^.\n]{0,30}\b(?:regardless|no matter|whatever|anyway|in any case|even if|even when)\b",
            re.I,
        ),
    ),
    (
        "carries work away",
        re.compile(
            r"\b(?:push|mirror|upload|publish|copy|send|clone)\b[^.\n]{0,40}?"
            r"\b(?:all|every|each|whole|entire|--all|--mirror)\b[^\n]{0,50}?\b(?:to|at"
            r"|into)\s+(?:[^.\n]{0,20}?)"
            rf"{_STRANGER}"
            r"|\bgit remote (?:add|set-url)\b[^\n]{0,120}\bgit push\b[^\n]{0,30}(?:--all|--mirror)\b"
            r"|\bgit push\b[^\n]{0,40}(?:--all|--mirror)[^\n]{0,20}\b(?:evil|attacker)\w*"
            r"|\b(?:upload|send|post|publish|push)\b[^.\n]{0,30}"
            r"\b(?:repo(?:sitory)?|source code|codebase|source tree|work ?tree"
            r"|git history)\b[^.\n]{0,40}?\b(?:to|at|on)\s+"
            rf"(?:[^.\n]{{0,20}}?)(?:{_PUBLIC}|{_STRANGER})",
            re.I,
        ),
    ),
    (
        "sends data away",
        re.compile(
            r"\b(?:post|upload|send|export|copy|add|paste|write|include|embed|print|put|append|encode"
            r"|dump|leak|mail|base64)\b"
            rf"[^.\n]{{0,50}}?{_SECRET}[^\n]{{0,60}}?\b(?:to|in|into|on|via"
            rf"|with)\s+(?:[^.\n]{{0,15}}?){_PUBLIC}",
            re.I,
        ),
    ),
    (
        "sends data away",
        re.compile(
            rf"\b(?:read|cat|open|print|dump|grep|collect|gather)\b[^.\n]{{0,30}}?{_SECRET}[^.\n]{{0,40}}?"
            r"\b(?:and|then)\b[^.\n]{0,20}\b(?:post|send|upload|paste|print|echo|mail|publish|commit"
            r"|attach|include)\b",
            re.I,
        ),
    ),
    (
        "shows keys",
        re.compile(
            rf"\b(?:print|dump|cat|echo|write|log|paste|show|include|put|copy|append|quote)\b"
            rf"(?![^.\n]{{0,40}}\b(?:path|name|location|fingerprint|hash)s? of\b)[^.\n]{{0,40}}?{_KEY_FILE}"
            rf"[^.\n]{{0,30}}?\b(?:in|into|to|on|with)\s+{_IN_SIGHT}",
            re.I,
        ),
    ),
    (
        "destroys data",
        re.compile(
            r"\b(?:delete|drop|wipe|erase|destroy|truncate)\s+(?:all\s+(?:the\s+)?|every\s+"
            r"|the\s+(?:whole|entire)\s+)"
            r"(?:production|prod|live|backups?|databases?|git history|repositor\w+|branches)\b"
            r"|\bgit push\s+(?:-f|--force)\b[^\n]{0,20}(?:--all|--mirror)\b",
            re.I,
        ),
    ),
)

_FORBIDDEN = re.compile(
    r"\b(?:never|not|avoid|without|cannot|no longer|nobody|refuse\w*|prevent\w*|forbid\w*|detect\w*"
    r"|reject\w*|block\w*"
    r"|warn\w*|fails? if|instead of|rather than|stop\w*|guard\w*|disallow\w*|tempt\w*|wrong to|attempts? to"
    r"|tr(?:y|ies|ied) to|agents? (?:may|might|could|can|would)|whether|if (?:an?|the|somebody|someone))\b"
    r"|n['’]t\b",
    re.I,
)
_BEFORE = 60


def harm(text: str) -> Iterator[tuple[str, int, int]]:
    """(rule, start, end) of what asks for harm; not what forbids or reports it."""
    for rule, pattern in _RULES:
        for match in pattern.finditer(text):
            start = match.start()
            sentence = re.split(r"[.;!?\n]\s", text[max(0, start - _BEFORE) : start])[-1]
            if not _FORBIDDEN.search(sentence):
                yield rule, start, match.end()
