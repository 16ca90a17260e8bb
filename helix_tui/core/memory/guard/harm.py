"""Find passages that ask an agent to do harm: defeat a check, exfiltrate work or keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from helix_tui.core.ground.text import LatePattern

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
    r"(?:https?://|\bpaste ?bin\b|\b(?:a|the|this|your) paste (?:service|site)\b"
    r"|\btransfer\.sh\b|\bgist\b|\bngrok\b|\bwebhook\.site\b|\b0x0\.st\b"
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

# gaps are bounded, and most end with the sentence: distant words belong to two statements
_HARM_RULES: tuple[tuple[str, LatePattern], ...] = (
    (
        "defeats the checks",  # in other languages than English
        LatePattern(
            r"\b(?:lösch|entfern|deaktivier|überspring|supprim|effac|désactiv|saute|borr|elimin|desactiv|quit[ae]|apag|remov"
            r"|desativ|cancell|rimuov|disattiv|verwijder|удал|отключ)\w*[^.\n]{0,30}?\b(?:tests?|prüfung\w*|pruebas?|testes"
            r"|prove|vérification\w*|verifi[ck]\w*|тест\w*)\b[^.\n]{0,40}?\b(?:damit|so ?dass|bis|pour que|afin que"
            r"|jusqu'à|para que|até que|affinché|così che|finché|zodat|чтобы)\b[^.\n]{0,40}?"
            r"\b(?:durchl|grün|besteh|passe|vert|réuss|pase|verde|passi|slaag|groen|прош|пройд|зел)"
            r"|(?:删除|禁用|跳过)[^.。\n]{0,10}(?:测试|检查)[^.。\n]{0,20}(?:通过|绿)",
            re.I,
        ),
    ),
    (
        "defeats the checks",
        LatePattern(
            rf"\b(?:delete|remove|drop|comment out|disable|skip|bypass|turn off|switch off"
            rf"|stub(?: out)?|neuter"
            rf"|weaken|mute|silence|gut|rewrite|edit|empty|rm(?: -\w+)*)\b[^.\n]{{0,40}}?{_CHECKS}"
            rf"[^.\n]{{0,40}}?{_PASSING}",
            re.I,
        ),
    ),
    (
        "defeats the checks",
        LatePattern(
            r"\b(?:overwrite|replace|regenerate|fake|forge|hard-?code|invent)\b[^.\n]{0,40}"
            r"\b(?:test results?|expected (?:values?|outputs?|results?)|exit codes?|evidence|review"
            r"|verdicts?)\b"
            rf"[^.\n]{{0,40}}?{_PASSING}",
            re.I,
        ),
    ),
    (
        "defeats the checks",
        LatePattern(
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
        LatePattern(
            rf"\b(?:skip|omit|bypass|forgo)\b[^.\n]{{0,20}}?{_CHECKS}[^.\n]{{0,20}}?\b(?:and|then"
            rf"|but)\b[^.\n]{{0,15}}"
            r"\b(?:report|mark|say|claim|declare|answer|write|close|merge|push)\b",
            re.I,
        ),
    ),
    (
        "skips the checks",
        LatePattern(
            rf"\b(?:comment out|disable|delete|remove|drop|turn off|switch off|stub(?: out)?|mute|silence)\b"
            rf"[^.\n]{{0,20}}?{_CHECKS}[^.\n]{{0,30}}?\b(?:and|then)\b[^.\n]{{0,15}}\b(?:report|mark|say|claim|declare|answer)\b"
            r"[^.\n]{0,30}\b(?:success\w*|done|passed|passing|green|complete\w*|fixed|delivered)\b",
            re.I,
        ),
    ),
    (
        "skips the checks",
        LatePattern(
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
        LatePattern(
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
        LatePattern(
            r"\b(?:push|mirror|upload|publish|copy|send|clone)\b[^.\n]{0,40}?"
            r"\b(?:all|every|each|whole|entire|--all|--mirror)\b[^\n]{0,50}?\b(?:to|at"
            r"|into)\s+(?:[^.\n]{0,20}?)"
            rf"{_STRANGER}"
            r"|\bgit remote (?:add|set-url)\b[^\n]{0,120}\bgit push\b[^\n]{0,30}(?:--all|--mirror)\b"
            r"|\bgit push\b[^\n]{0,40}(?:--all|--mirror)[^\n]{0,20}\b(?:evil|attacker)\w*"
            r"|\bpush\b[^.\n]{0,30}?(?:https?://|git@|ssh://)[^\s]+[^.\n]{0,20}?\binstead of\b[^.\n]{0,15}?"
            r"\b(?:origin|upstream|the remote)\b"
            r"|\b(?:upload|send|post|publish|push)\b[^.\n]{0,30}"
            r"\b(?:repo(?:sitory)?|source code|codebase|source tree|work ?tree"
            r"|git history)\b[^.\n]{0,40}?\b(?:to|at|on)\s+"
            rf"(?:[^.\n]{{0,20}}?)(?:{_PUBLIC}|{_STRANGER})",
            re.I,
        ),
    ),
    (
        "sends data away",
        LatePattern(
            r"\b(?:post|upload|send|export|copy|add|paste|write|include|embed|print|put|append|encode"
            r"|dump|leak|mail|base64)\b"
            rf"[^.\n]{{0,50}}?{_SECRET}[^\n]{{0,60}}?\b(?:to|in|into|on|via"
            rf"|with)\s+(?:[^.\n]{{0,15}}?){_PUBLIC}",
            re.I,
        ),
    ),
    (
        "sends data away",
        LatePattern(
            rf"\b(?:read|cat|open|print|dump|grep|collect|gather)\b[^.\n]{{0,30}}?{_SECRET}[^.\n]{{0,40}}?"
            r"\b(?:and|then)\b[^.\n]{0,20}\b(?:post|send|upload|paste|print|echo|mail|publish|commit"
            r"|attach|include)\b",
            re.I,
        ),
    ),
    (
        "shows keys",
        LatePattern(
            rf"\b(?:print|dump|cat|echo|write|log|paste|show|include|put|copy|append|quote)\b"
            rf"(?![^.\n]{{0,40}}\b(?:path|name|location|fingerprint|hash)s? of\b)[^.\n]{{0,40}}?{_KEY_FILE}"
            rf"[^.\n]{{0,30}}?\b(?:in|into|to|on|with)\s+{_IN_SIGHT}",
            re.I,
        ),
    ),
    (
        "destroys data",
        LatePattern(
            r"\b(?:delete|drop|wipe|erase|destroy|truncate)\s+(?:all\s+(?:the\s+)?|every\s+"
            r"|the\s+(?:whole|entire)\s+)"
            r"(?:production|prod|live|backups?|databases?|git history|repositor\w+|branches)\b"
            r"|\bgit push\s+(?:-f|--force)\b[^\n]{0,20}(?:--all|--mirror)\b",
            re.I,
        ),
    ),
    (
        "acts for a person",
        LatePattern(
            r"\b(?:approve|sign|accept|confirm|merge|countersign|vote)\b[^.\n]{0,30}"
            r"(?:\byourself\b|\bin (?:the )?name of\b|\bon behalf of\b"
            r"|\bas (?:the )?(?:owner|reviewer|admin\w*|maintainer)\b"
            r"|\badmin (?:bypass|override|rights)\b)"
            r"|\b(?:use|take|read|borrow|steal)\b[^.\n]{0,20}\b(?:keys?|tokens?|passwords?|credentials?|accounts?|login)\b"
            r"[^.\n]{0,20}\b(?:of (?:the |an)?other \w+|(?:somebody|someone) else)",
            re.I,
        ),
    ),
    (
        "hides from the user",
        LatePattern(
            r"\bso (?:that )?(?:(?:nobody|no[ -]one|none)\b(?: (?:ever|has to|needs? to|can|will|else)){0,2}"
            r"|(?:you|your \w+|the (?:supervisor|user|reviewer|owner|operator|human)s?)\b[^.\n]{0,15}?"
            r"(?:\b(?:never|cannot|not|no longer)\b|n't\b)(?: be)?)\s+"
            r"(?:see|look|read|notic|follow|trac|find|found|stop|ask|know|check|detect|audit|learn)\w*"
            r"|[,;]\s*(?:and )?(?:(?:they|he|she) (?:will |does |do |can)?(?:never|not|n't) "
            r"|(?:nobody|no[ -]one) (?:will |ever )*)"
            r"(?:notices?|measures?|finds? out|looks?)\b(?! up)"
            r"|\bso (?:that )?the (?:supervisor|user|reviewer|owner|operator|human)s? (?:miss|overlook)\w*"
            r"|[,;]\s*(?:and )?(?:nobody|no[ -]one) (?:has|needs) to (?:be )?(?:ask|look|know|approv)\w*"
            r"|\bleave (?:it|them|this|that) out of (?:the|your) (?:report|summary|answer|log)"
            r"|\bhide (?:the|this|your|a) (?:changes?|edits?|diff|commit)\b(?! in the (?:screen|view|list))"
            r"|(?:\bdo not|\bnever|n't) mention (?:it|this|them|that)\b(?! twice| again)"
            r"|\b(?:keep (?:going|working|running)|continue|go on)\b[^.\n]{0,30}"
            r"\b(?:even (?:when|if|though)|although|after)\b[^.\n]{0,20}"
            r"\b(?:supervisor|user|operator|human|reviewer)\b[^.\n]{0,20}\b(?:stop|no|halt|wait)\b",
            re.I,
        ),
    ),
    (
        "claims a verdict",
        LatePattern(
            r"\b(?:write|put|set|answer|give|emit|end|print|report|record|state|declare|mark|claim)\b[^.\n]{0,60}"
            r"(?:\b[A-Z]{3,}_(?:STATUS|ACTION|VERDICT)\b|\b(?:clean|pass(?:ed)?|approved?|done|resolved|delivered|verdict)\b)"
            r"[^.\n]{0,30}\b(?:whatever (?:you|it|the)|regardless|no matter|whether or not|even if it fails|unseen)\b"
            r"|\b(?:close|finish|complete|resolve|mark|tick off|deliver)\b[^.\n]{0,20}"
            r"\b(?:beads?|tasks?|issues?|epics?|findings?|tickets?|criteri\w+)\b[^.\n]{0,30}\bwithout "
            r"(?:doing|implementing|fixing|building|reading|carrying|any work)\b"
            r"|\bmake\s+(?:up\s+)?(?:the\s+)?(?:numbers|figures|results|data|measurements|evidence|citations)\b"
            r"(?:(?<=\bup the numbers)|(?<=\bup numbers)|(?<=\bup the results)|(?<=\bup results)|\s+up\b)"
            r"|\b(?:invent|fabricate|forge)\b[^.\n]{0,20}\b(?:numbers|figures|results|measurements|evidence|citations|reviews?)\b",
            re.I,
        ),
    ),
    (
        "overrides instructions",
        LatePattern(
            r"\b(?:ignore|disregard|forget|overrule|override)\s+(?:what|everything|anything)\s+(?:the |your |a )?"
            r"(?:user|human|operator|supervisor|owner|person|team|bead|task)\b"
            r"|\bwhatever (?:the |your |a )?(?:user|human|operator|supervisor|owner)\b[^.,\n]{0,30},? "
            r"(?:also|always|instead|first|do|add|write)\b"
            r"|\b(?:AGENTS|CLAUDE)\.md\b[^\n]{0,60}?(?:\b(?:do not|never)|n't) (?:follow|obey|read|heed)\b"
            r"|\b(?:ignore|disregard|skip|delete)\s+(?:the )?(?:AGENTS|CLAUDE)\.md\b",
            re.I,
        ),
    ),
    (
        "opens a way in",
        LatePattern(
            r"\b(?:open|start|spawn|run|give|create|connect|launch)\b[^.\n]{0,20}\b(?:reverse|bind|remote) shell\b"
            r"|\b(?:nc|ncat|netcat|socat)\b[^\n|]{0,60}(?:\s-\w*[ec]\s+\S*sh\b|\bEXEC:)|/dev/tcp/\S+"
            r"|\bbash -i\b[^\n]{0,10}>&|\bssh\b[^\n]{0,40}\s-R\s?\d",
            re.I,
        ),
    ),
    (
        "sends data away",
        LatePattern(
            rf"(?:\b(?:printenv|env|history)\s*|\b(?:cat|tar|zip|base64|grep)\b[^\n|]{{0,60}}?{_SECRET}[^\n|]{{0,40}})\|"
            r"(?:[^\n|]{0,60}\|){0,3}\s*(?:curl|wget|nc|ncat|netcat|telnet|mail|sendmail|socat|ssh)\b",
            re.I,
        ),
    ),
    (
        "defeats the checks",
        LatePattern(
            r"\b(?:delete|remove|drop|comment out|disable|skip|xfail)\b[^.\n]{0,25}\b(?:tests?|assert(?:ion)?s?"
            r"|checks?|specs?)\s+(?:that|which)\s+(?:is |are |still )*"
            r"(?:fail\w*|red\b|broken|do(?:es)? not pass|don't pass)"
            r"|\b(?:delete|remove|rm(?: -\w+)*|empty|chmod -x|disable|unset|rename)\b[^.\n]{0,25}"
            r"(?:\.git/hooks|core\.hooksPath|\b(?:pre-)?commit hooks?\b)[^.\n]{0,30}\b(?:and|then|before)\b[^.\n]{0,20}"
            r"\b(?:commit|push)\b"
            r"|\b(?:turn|switch|take|lift|disable|remove|suspend|bypass)\b[^.\n]{0,25}\bprotection\b[^.\n]{0,40}"
            r"\b(?:push|merge|land)\b|(?:^|[.;:,]\s*|\b(?:then|and) )force[- ]push\b[^.\n]{0,15}"
            r"\b(?:main|master|trunk|release|production)\b"
            r"|\b(?:turn|switch|disable)\b[^.\n]{0,30}\b(?:certificate|tls|ssl|signature) "
            r"(?:checks?|verification|validation)\b"
            r"[^.\n]{0,25}\b(?:for good|everywhere|in all|always|permanently)\b"
            r"|\b(?:set|raise|remove|delete|edit|lift)\b[^.\n]{0,40}\bbudgets?\b[^\n]{0,60}\b(?:never|no longer) "
            r"(?:stops?|stopped|ends?|limit\w*)\b"
            r"|\b(?:add|put|set|allow)\b[^.\n]{0,30}\bBash\(\*\)",
            re.I,
        ),
    ),
    # commands whose form alone says that checks or the work of others are overridden
    (
        "destroys data",
        LatePattern(
            r"\bgit push\b(?=[^\n.;|]{0,60}?\s(?:-f|--force)(?![\w-]))"
            r"[^\n;|]{0,60}?\b(?:main|master|trunk|develop|release\S*|production)\b"
            r"|\bgit filter-(?:branch|repo)\b[^\n]{0,80}\b(?:force[- ]?push|git push\b[^\n]{0,20}\s(?:-f|--force)\b)"
            r"|\b(?:when|whenever|if|before|after)\b[^.\n]{0,60}?\b(?:delete|remove|wipe|erase|rm -\w+)\s+(?:the\s+)?`?"
            r"\.(?:git|ddx|helix)\b(?!/\w|ignore|attributes|modules)",
            re.I,
        ),
    ),
    (
        "defeats the checks",
        LatePattern(
            r"\b(?:when|whenever|if|as soon as|until|so that|to land|to go faster)\b[^.\n]{0,80}?"
            r"(?:\bcore\.hooksPath\b[^.\n]{0,20}/dev/null|--no-verify\b"
            r"|\b(?:delete|remove|comment out|drop)\b[^.\n]{0,15}\b(?:failing|red|broken|offending) tests?\b"
            r"|\b(?:disable|switch off|turn off)\b[^.\n]{0,25}\b(?:2fa|two-factor|mfa|authentication)\b)"
            r"|\bcore\.hooksPath\b[^.\n]{0,20}/dev/null|--no-verify\b[^.\n]{0,30}\b(?:when|whenever|if) "
            r"|\b(?:disable|turn off|remove)\b[^.\n]{0,25}\b(?:linter|type ?checker|scanner|two-factor|2fa)\b"
            r"[^\n]{0,40}\b(?:when|whenever|if|once)\b[^.\n]{0,30}\b(?:complain|fail|find|report|block|refuse)\w*"
            r"|\b(?:add|set|put)\b[^.\n]{0,10}continue-on-error\b[^.\n]{0,20}\b(?:every|all|each)\b",
            re.I,
        ),
    ),
    (
        "destroys data",
        LatePattern(
            r"\bterraform\s+destroy\b[^\n]{0,40}-auto-approve|\bkubectl\s+delete\s+(?:ns|namespaces?|all)\b[^\n]{0,20}--all\b",
            re.I,
        ),
    ),
)

# words before a match that make it advice or a report
_FORBIDDEN = re.compile(
    r"\b(?:never|not|avoid|without|cannot|no longer|nobody|refuse\w*|prevent\w*|forbid\w*|detect\w*"
    r"|reject\w*|block\w*"
    r"|warn\w*|fails? if|instead of|rather than|stop\w*|guard\w*|disallow\w*|tempt\w*|wrong to|attempts? to"
    r"|tr(?:y|ies|ied) to|agents? (?:may|might|could|can|would)|whether|if (?:an?|the|somebody|someone))\b"
    r"|n['’]t\b",
    re.I,
)
_IS_FORBIDDEN = (
    r"\b(?:is|are)\s+(?:not (?:allowed|permitted)|never (?:allowed|permitted)|forbidden|refused|prohibited|rejected"
    r"|disallowed|banned)\b"
)
_FORBIDDEN_AFTER = re.compile(rf"\W{{0,3}}{_IS_FORBIDDEN}", re.I)
_OTHER_CLAUSE = r"when\w*|if|once|after|before|as|because|since|that|which|who|until|while|wherever|where|and|or|then"
# nothing before it that is the subject, and nothing after it: "… when the hook is refused", "… is forbidden but do it"
_FORBIDDEN_BY_ITS_END = re.compile(
    rf"(?:(?!\b(?:{_OTHER_CLAUSE})\b)[^,:;.!?\n])*{_IS_FORBIDDEN}"
    rf"(?:(?!\b(?:{_OTHER_CLAUSE}|but|unless|except|so|yet|though|although|however)\b)[^,:;.!?\n])*(?:[.!?\n]|$)",
    re.I,
)
_CONDITION = re.compile(r"^\W*(?:when|whenever|after|once|as soon as)\b[^,]*,\s", re.I)
"""A clause before an order: what is rejected in it is not the order."""
_BEFORE = 60


def forbids(text: str, at: int) -> bool:
    """Whether the sentence says from there on that something is forbidden, and nothing else."""
    return _FORBIDDEN_BY_ITS_END.match(text, at) is not None


def harm(text: str) -> Iterator[tuple[str, int, int]]:
    """(rule, start, end) of passages that ask for harm, not those that forbid or report it."""
    for rule, pattern in _HARM_RULES:
        for match in pattern.finditer(text):
            start = match.start()
            sentence = re.split(r"[.;!?\n]\s", text[max(0, start - _BEFORE) : start])[-1]
            sentence = _CONDITION.sub("", sentence)
            is_told = _FORBIDDEN.search(sentence) or _FORBIDDEN_AFTER.match(text, match.end())
            if not is_told and not forbids(text, start):
                yield rule, start, match.end()
