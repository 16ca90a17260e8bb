"""Find conflicts between governing documents: resolvable, unresolvable, and gaps.

`contradict` says whether two demands cannot both hold: each is read once (`read_demand`: words that exclude each other,
who must do what, how long), then they are compared by what was read. `find_conflicts` reads the demands and links of
all documents; of two that differ, the document of higher authority decides (`TIERS`). A rule that is unsure about
subject and object reports nothing (docs/formats/helix.md §4).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Literal

from msgspec import Struct

from helix_tui.core.ddx.documents.graph import GraphDocument
from helix_tui.core.ddx.documents.source import Documents
from helix_tui.core.ground.files import below, read_bytes
from helix_tui.core.ground.text import LatePattern, clean_line


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\S+", text))


EXCLUSIVE = (
    (r"\breal[- ]?time\b", r"\bbatch[- ]only\b|\bonly (in )?batch"),
    (
        r"\boffline[- ]only\b|\b(work|run|function|start)s? offline\b|\bwithout (a |any )?network\b",
        r"\bonline[- ]only\b|\brequires? (an? )?(permanent )?(network|internet)\b",
    ),
    (r"\bsingle[- ]user only\b", r"\bmulti(ple)?[- ]user"),
    (r"\bsynchronous(ly)?\b", r"\basynchronous(ly)?\b"),
    (r"\bcase[- ]sensitive\b", r"\bcase[- ]insensitive\b"),
    (r"\bimmutable\b", r"\bmutable\b"),
    (r"\bread[- ]only\b", r"\bmust (be able to )?write\b"),
    (r"\bstateless\b", r"\bmust (keep|hold) state\b|\bstateful\b"),
)
"""Pairs of patterns that cannot both be demanded of one thing."""

_EXCLUSIVE = tuple(tuple(LatePattern(side, re.I) for side in pair) for pair in EXCLUSIVE)
_ANY_EXCLUSIVE = LatePattern("|".join(side for pair in EXCLUSIVE for side in pair), re.I)
_NOT = LatePattern(r"\b(must not|shall not|should not|may not|cannot|can not|never|must never|no longer|not)\b", re.I)
_DENIED = LatePattern(
    r"\b(not|never|no longer|cannot|rather than|instead of|was|were|used to be)(\s+\w+){0,2}\s+$", re.I
)
"""Words that negate what follows: "never in real time", "was synchronous"."""
_MODAL = LatePattern(
    r"\b(must|shall|should|will|may|has to|have to|needs? to|always|only|is|are|be|the|a|an|to)\b", re.I
)
_COMMON = _words(
    "all and any app application as at by data deliver delivered do each every everything for from in it "
    "its no of on only or our process processing product provide require run service should software "
    "support system that their they this thi use user via we when which with without work update updated"
)
"""Unspecific words; plurals without their s."""


class _Demanded(Struct, frozen=True):
    """A word of a pair that excludes itself, and what else the demand names."""

    pair: int
    side: int
    about: frozenset[str]


class _Doing(Struct, frozen=True):
    """Who must or must not do what, as words in order."""

    who: frozenset[str]
    """Empty if nobody is named, or the whole product."""
    what: tuple[str, ...]
    denied: bool
    anybody: bool
    """Whether it is said of everyone: "no part may write"."""


class _Lasting(Struct, frozen=True):
    """A duration in seconds or a number, as a range; equal ``about`` means the same thing."""

    about: tuple[str, frozenset[str], frozenset[str]]
    least: float
    most: float


class Demand(Struct, frozen=True):
    """One demand as the rules see it."""

    words: frozenset[str]
    denied: bool
    exclusive: tuple[_Demanded, ...]
    doing: _Doing | None
    lasting: _Lasting | None
    counted: _Lasting | None

    @property
    def special(self) -> bool:
        """Whether it may contradict a demand with few common words."""
        return bool(self.exclusive)


@lru_cache(maxsize=4096)
def read_demand(text: str) -> Demand:
    """Read the demand of a sentence."""
    exclusive = tuple(_exclusive(text)) if _ANY_EXCLUSIVE.search(text) else ()
    return Demand(words_of(text), _denied(text), exclusive, _doing(text), _lasting(text), _counted(text))


def contradict(one: str, other: str) -> bool:
    """Whether two demands cannot both hold."""
    first, second = read_demand(one), read_demand(other)
    return (
        any(
            left.pair == right.pair and left.side != right.side and _about_the_same(left.about, right.about)
            for left in first.exclusive
            for right in second.exclusive
        )
        or _negated(first, second)
        or (first.lasting is not None and second.lasting is not None and _differ(first.lasting, second.lasting))
        or (first.counted is not None and second.counted is not None and _differ(first.counted, second.counted))
        or (first.doing is not None and second.doing is not None and _forbids(first.doing, second.doing))
    )


def words_of(text: str) -> frozenset[str]:
    """The words of a demand without modal words."""
    plain = _MODAL.sub(" ", _NOT.sub(" ", text.lower()))
    return frozenset(word.rstrip("s") for word in re.findall(r"[\w+.-]*\w", plain))


def _denied(text: str) -> bool:
    return any(not text[found.end() :].lower().startswith(" only") for found in _NOT.finditer(text))


def _exclusive(text: str) -> Iterator[_Demanded]:
    for number, pair in enumerate(_EXCLUSIVE):
        if all(pattern.search(text) for pattern in pair):
            continue  # both are named: a choice, or two things
        for side, pattern in enumerate(pair):
            if any(not _DENIED.search(text[: found.start()]) for found in pattern.finditer(text)):
                yield _Demanded(number, side, words_of(pattern.sub(" ", text)) - _COMMON)


def _about_the_same(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether two demands are about the same thing, sharing at least half of the shorter's words. One that names
    nothing is about everything.
    """
    return not first or not second or len(first & second) * 2 >= min(len(first), len(second))


def _negated(first: Demand, second: Demand) -> bool:
    """Whether one is the negation of the other."""
    if first.denied == second.denied:
        return False
    union = first.words | second.words
    return len(union) >= 2 and len(first.words & second.words) / len(union) >= 0.8


# ── actions ──

_TOKEN = LatePattern(r"\w[\w.+/-]*\w|\w|[,:()]")
_ASKED = (
    r"must|shall|should|will|may|can|has to|have to|needs? to|(?:is|are) (?:required|allowed|expected|permitted) to"
)
_ORDER = LatePattern(
    rf"^(?P<who>[^,:;()]*?)\b(?:(?P<never>cannot|(?:(?:{_ASKED}|does|do) )(?:not|never)|never"
    rf"|(?:is|are) (?:not allowed|forbidden|prohibited) to)|(?P<must>{_ASKED}))\s+"
    r"(?:(?:always|also|then|be able to|be)\s+)*(?P<what>.+)$",
    re.I,
)
_NOBODY = LatePattern(r"^\s*(?:nothing|nobody|no one|no\s+\w+(?:\s+\w+)?)\s*$", re.I)
_ARTICLES = _words("the a an its their his our your this these those any")
_LINKING = _words(
    "to from in into on onto at by with within without over via through for of about against under above before after "
    "during until till when whenever while where if unless except once because so as than and or but "
    "every each only again then instead here there nightly daily weekly hourly , : ( )"
)
"""Words that may follow a complete object, but are never part of one."""
_HEDGED = _words("only just merely solely all both more most longer directly except unless otherwise")
"""Words with which a "not" denies only part."""
_WHOLE = _COMMON | {"tool", "program", "he", "she", "one"}


def _doing(text: str) -> _Doing | None:
    found = _ORDER.match(text)
    if found is None:
        return None
    denied, anybody = found["never"] is not None, _NOBODY.match(found["who"]) is not None
    if anybody and not denied:
        denied = True
    elif anybody:
        return None  # "nothing may not …"
    what = tuple(_plain(word) for word in _TOKEN.findall(found["what"].lower()) if word not in _ARTICLES)
    # "must not only …", or the negation of a bare verb, forbids too little to contradict a demand
    if denied and (_HEDGED & set(what) or len([word for word in what if word not in _LINKING]) < 2):
        return None
    who = frozenset() if anybody else frozenset(map(_plain, re.findall(r"\w+", found["who"].lower())))
    return _Doing(who - _ARTICLES - _WHOLE, what, denied, anybody)


def _plain(word: str) -> str:
    # the s of a plural: "gas" and "class" keep theirs
    return word if len(word) < 4 or word.endswith("ss") else word.rstrip("s")


def _forbids(one: _Doing, other: _Doing) -> bool:
    """Whether one must do what the other must not: the denied words occur in it in order."""
    if one.denied == other.denied:
        return False
    never, must = (one, other) if one.denied else (other, one)
    if not never.anybody and never.who != must.who:
        return False
    return must.what[:1] == never.what[:1] and _within(never.what, must.what)


def _within(words: Sequence[str], text: Sequence[str]) -> bool:
    """Whether words occur in a text in order, with only parts of an object between them and none after them."""
    at = -1
    for word in words:
        try:
            found = text.index(word, at + 1)
        except ValueError:
            return False
        between = text[at + 1 : found]
        if len(between) > 3 or (_LINKING - {"and", "or", ","}) & set(between):
            return False
        if between and at >= 0 and text[at] in _LINKING:
            return False  # "to the disk before the network" is not "to the network"
        at = found
    after = text[at + 1 : at + 2]
    return not after or after[0] in _LINKING or after[0].endswith("ly") or after[0][0].isdigit()


# ── durations ──

_SECONDS: Mapping[str, float] = {
    "millisecond": 0.001, "ms": 0.001, "second": 1, "sec": 1, "s": 1, "minute": 60, "min": 60, "hour": 3600,
    "h": 3600, "day": 86_400, "d": 86_400, "week": 604_800, "month": 2_592_000, "quarter": 7_776_000,
    "year": 31_536_000,
}  # fmt: skip
_NUMBERS = {
    word: number for number, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight"), 1)
} | {
    "a": 1,
    "an": 1,
    "nine": 9,
    "ten": 10,
    "every": 1,
    "twelve": 12,
    "fourteen": 14,
    "thirty": 30,
    "sixty": 60,
    "ninety": 90,
}
_LENGTH = LatePattern(
    rf"(?P<bound>\b(?:at least|no less than|a minimum of|at most|no more than|no longer than|up to|a maximum of"
    rf"|within|less than|under|more than|over)\s+)?(?<![\w.])"
    rf"(?P<number>\d+(?:\.\d+)?|\b(?:{'|'.join(_NUMBERS)}|every)\b)[\s-]?"
    rf"(?P<unit>{'|'.join(sorted(_SECONDS, key=len, reverse=True))})s?\b",
    re.I,
)
_FOREVER = LatePattern(r"\b(?:for ?ever|indefinitely|permanently|for good|without (?:a )?(?:time )?limit)\b", re.I)
_KEPT = r"(?P<keep>keep|keeps|kept|retain|retains|retained|store|stores|stored|preserved?|preserves)"
_GONE = (
    r"(?P<drop>deletes?|deleted|removed?|removes|purged?|purges|erased?|erases|discards?|discarded|expires?|expired"
    r"|pruned?|prunes)"
)
_BEING = r"(?P<be>(?:is|are|be|being|been|get|gets)\s+(?P<not>(?:not|never)\s+)?(?:\w+ly\s+)?)"
_PASSIVE, _ACTIVE = (
    LatePattern(rf"^(?P<who>.*?)\b{being}(?<!the )(?<!a )(?<!our )(?:{_KEPT}|{_GONE})\b(?P<rest>.*)$", re.I)
    for being in (_BEING, _BEING + "?")
)
_REASON = LatePattern(r"\b(?:by|because|so that|since|as required|in order)\b.*$", re.I)
_AT_LEAST = frozenset(
    (
        "at least", "no less than", "no fewer than", "not less than", "not fewer than", "a minimum of",
        "more than", "over",
    )
)  # fmt: skip


def _lasting(text: str) -> _Lasting | None:
    """The duration in a demand, if it gives exactly one."""
    lengths = list(_LENGTH.finditer(text))
    forever = _FOREVER.search(text)
    if len(lengths) + (forever is not None) > 1:
        return None
    kept = _PASSIVE.match(text) or _ACTIVE.match(text)
    if kept is not None and not (lengths and lengths[0].start() < kept.start("rest")):
        return _retention(kept, lengths, forever is not None)
    if not lengths or _NOT.search(text):
        return None
    about = words_of(text[: lengths[0].start()] + " " + text[lengths[0].end() :]) - {"every"}
    bare = about - _COMMON
    return _Lasting(("", about, frozenset()), *_bounds(lengths[0])) if len(bare) >= 2 else None


_AMOUNT = LatePattern(
    r"\b(?P<bound>at least|(?:no|not) (?:less|fewer) than|a minimum of|at most|(?:no|not) more than"
    r"|up to|a maximum of|less than|fewer than|more than|over|exactly)\s+"
    rf"(?P<number>\d[\d,]*(?:\.\d+)?|{'|'.join(_NUMBERS)})\b(?!\s*(?:{'|'.join(_SECONDS)})s?\b)",
    re.I,
)
_EXCEED = LatePattern(r"\b(?:(?:must|may|shall|should|can) ?not|never|does not|do not) exceed\b", re.I)


def _counted(text: str) -> _Lasting | None:
    """The number of something, if a demand bounds exactly one number."""
    said = _EXCEED.sub("is at most", text)
    found = _AMOUNT.search(said)
    if found is None or len(re.findall(r"(?<![\w.-])\d[\d,.]*", said)) > found["number"][0].isdigit():
        return None
    about = words_of(said[: found.start()] + " " + said[found.end() :])
    if _NOT.search(said[: found.start()]) or len(about - _COMMON) < 2:
        return None
    number = float(_NUMBERS.get(found["number"].lower()) or found["number"].replace(",", ""))
    bound = " ".join(found["bound"].lower().split())
    # "more than 5" and "fewer than 6" exclude their bounds
    least, most = {"exactly": (number, number), "more than": (math.nextafter(number, math.inf), math.inf)}.get(
        bound, (number, math.inf) if bound in _AT_LEAST else (0.0, number)
    )
    if bound in ("less than", "fewer than"):
        most = math.nextafter(number, -math.inf)
    return _Lasting(("number", about, frozenset()), least, most)


def _retention(kept: re.Match[str], lengths: Sequence[re.Match[str]], forever: bool) -> _Lasting | None:
    """What is kept or deleted, and for how long; "never deleted" means forever."""
    never = _NOT.search(kept["who"]) is not None or kept["not"] is not None
    if never and (kept["keep"] or lengths or forever):
        return None  # "not kept" and "not deleted before …" give no length
    if forever and not kept["keep"]:
        return None
    if not (lengths or forever or never):
        return None
    rest = kept["rest"]
    mark = _LENGTH.search(rest) or _FOREVER.search(rest)
    before, after = (rest[: mark.start()], rest[mark.end() :]) if mark else (rest, "")
    passive = kept["be"] or (kept["drop"] or "").lower().startswith("expire")
    about, scope = (kept["who"], before + after) if passive else (before, after)
    if never and not passive:
        about, _, scope = _split_scope(before)
    thing = words_of(about) - _FILLING
    if not thing:
        return None
    least, most = (math.inf, math.inf) if not lengths else _bounds(lengths[0])
    # "deleted within 30 days": sooner is fine too
    if kept["drop"] and lengths and re.search(r"\bwithin\b", lengths[0]["bound"] or "", re.I):
        least = 0.0
    return _Lasting(("kept", thing, words_of(_REASON.sub("", scope)) - _FILLING), least, most)


def _split_scope(text: str) -> tuple[str, str, str]:
    """Split an object from its circumstances."""
    found = re.search(r"\b(?:without|unless|until|before|after|when|while|if|except|during|outside|in|on|from)\b", text)
    return (text[: found.start()], "", text[found.start() :]) if found else (text, "", "")


_FILLING = _words("for after within and then it must shall will should at least most up")


def _bounds(length: re.Match[str]) -> tuple[float, float]:
    """A range of durations, in seconds."""
    number = length["number"].lower()
    seconds = float(_NUMBERS.get(number) or number) * _SECONDS[length["unit"].lower()]
    bound = " ".join((length["bound"] or "").lower().split())
    if not bound:
        return seconds, seconds
    return (seconds, math.inf) if bound in _AT_LEAST else (0.0, seconds)


def _differ(one: _Lasting, other: _Lasting) -> bool:
    """Whether two ranges for the same thing are disjoint."""
    return one.about == other.about and max(one.least, other.least) > min(one.most, other.most)


Class = Literal["physics-level", "resolvable", "gap"]

TIERS = (
    ("vision", 0),
    ("prd", 1),
    ("feat", 2),
    ("us", 3),
    ("adr", 4),
    ("arch", 4),
    ("sd", 5),
    ("td", 6),
    ("tp", 7),
    ("test", 8),
    ("plan", 9),
)
"""Prefix of a document's name or id -> its authority; 0 is the highest."""

LOWEST = 10
MAX_DOCUMENT = 1 << 20
MAX_STATEMENTS = 2000

_HEADING = LatePattern(r"^#{1,6}\s+(.*)")
_ITEM = LatePattern(r"\s*(?:[-*•]|\d+[.)])\s+(.*\S)")
_WANTED = LatePattern(r"\b(constraints?|requirements?)\b", re.IGNORECASE)
_CHOICE = LatePattern(r"\buses?\s+(?P<what>[\w.+-]+)\s+(?:for|as)\s+(?P<why>[\w -]{3,60})", re.IGNORECASE)
_LINK = LatePattern(r"\[\[([A-Za-z][\w.-]*)\]\]")
_PLACEHOLDER = LatePattern(r"(?<![A-Za-z])(?:X{2,}|N{2,}|ID)(?![A-Za-z])")
_FENCE = LatePattern(r"\s{0,12}(?:[-*>]\s+|\d+[.)]\s+)?(`{3,}|~{3,})")
_INDENTED = LatePattern(r"(?: {4}|\t)\s*\S")
_LISTED = LatePattern(r"\s{0,3}(?:[-*+]|\d+[.)])\s")
_SPAN = LatePattern(r"(?s)(?<!`)(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)")
_COMMENT = LatePattern(r"(?s)<!--.*?-->")


class Statement(Struct, frozen=True):
    """One demand of one document."""

    document: str
    tier: int
    text: str


class DocumentFinding(Struct, frozen=True):
    """Two conflicting demands, or a broken reference."""

    kind: Class
    text: str
    documents: tuple[str, ...]
    """The deciding one first, if any."""
    statements: tuple[tuple[str, str], ...] = ()
    """The (document, statement) pairs in conflict; empty for a gap."""
    missing: str = ""
    """For a gap: the document that does not exist."""

    @property
    def key(self) -> str:
        """A key that is stable for the same finding: a missing document is one gap, whoever refers to it."""
        return f"{self.kind}:{self.missing or self.text}"[:400]


def find_conflicts(documents: Documents) -> tuple[DocumentFinding, ...]:
    """Every conflict and gap in a repository's documents, unresolvable ones first.

    Documents, their names and dependencies come from the document graph; superseded and historical ones demand nothing.
    """
    statements: list[Statement] = []
    links: list[tuple[str, str]] = []
    for document in _read(documents):
        text = (read_bytes(below(documents.graph.root, document.path), MAX_DOCUMENT) or b"").decode("utf-8", "replace")
        tier = tier_of(document.id, document.path)
        if document.bucket != "historical_superseded":
            statements += [Statement(document.path, tier, line) for line in demands(text)]
        links += [(document.path, link) for link in references(Path(document.path), text)]
    found = list(_between(statements[:MAX_STATEMENTS]))
    declared = {(issue.path, issue.id) for issue in documents.graph.issues if issue.kind == "missing_dep"}
    found += [
        DocumentFinding("gap", f"{name} refers to {clean_line(link, 60)}, which does not exist", (name,), missing=link)
        for name, link in _told_once(links)
        if (name, link) not in declared and documents.find(link) is None
    ]
    found += [_missing(documents, name, needed) for name, needed in sorted(declared) if not _example(Path(name))]
    order = {"physics-level": 0, "resolvable": 1, "gap": 2}
    findings = sorted(found, key=lambda finding: (order[finding.kind], finding.text))
    return tuple({finding.key: finding for finding in reversed(findings)}.values())[::-1]


def _read(documents: Documents) -> list[GraphDocument]:
    """Documents whose text is read: those of the graph and those under ``docs``, by path."""
    every = (*documents.all.values(), *documents.graph.undeclared)
    return sorted((each for each in every if not _example(Path(each.path))), key=lambda each: each.path)


def _missing(documents: Documents, name: str, needed: str) -> DocumentFinding:
    """The gap for a declared dependency that does not exist."""
    like = documents.find(needed)
    near = f"; a search finds {like.document.path} {like.words}" if like is not None else ""
    text = f"{name} depends on {clean_line(needed, 60)}, an id that no document declares{near}"
    return DocumentFinding("gap", text, (name,), missing=needed)


def _example(path: Path) -> bool:
    """Whether a document is only an example or a template."""
    return any(word in part.lower() for part in path.parts for word in ("template", "example"))


def references(path: Path, text: str) -> Iterator[str]:
    """What a document links to as ``[[ID]]``, each once; examples and placeholders link to nothing.

    Text in code spans, fences, indented code, tables, comments and frontmatter counts as an example, and so does
    everything in a template or an example.
    """
    if _example(path):
        return
    for link in dict.fromkeys(_LINK.findall(_prose(text))):
        if not _PLACEHOLDER.search(link):
            yield link


def _prose(text: str) -> str:
    """A document without its examples."""
    if text.startswith("---\n"):
        text = text[4:].partition("\n---")[2]
    kept: list[str] = []
    fence, may_be_code, listed = "", True, False
    for line in _COMMENT.sub("", text).split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not line.strip(" `~") else fence
        elif mark:
            fence = mark[1]
        elif may_be_code and _INDENTED.match(line):
            continue
        elif not line.lstrip(" >").startswith("|"):
            kept.append(line)
        # code is indented below an empty line; below a list, that is a further paragraph of its item
        if line.strip():
            may_be_code = False
            listed = _LISTED.match(line) is not None or (listed and line[0] in " \t")
        else:
            may_be_code = not listed
    return _SPAN.sub("", "\n".join(kept))


def _told_once(links: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Links of documents, without those of copies (as on a website) beside their original."""
    texts: dict[tuple[str, str], tuple[str, str]] = {}
    for name, link in sorted(links, key=lambda pair: ("website" in Path(pair[0]).parts, pair[0].count("/"))):
        texts.setdefault((Path(name).name, link), (name, link))
    return list(texts.values())


def demands(text: str) -> Iterator[str]:
    """The demands under headings of constraints and requirements: list items and sentences."""
    inside = fenced = False
    part: list[str] = []
    # an extra heading ends the last paragraph
    for line in (*text.split("\n"), "# end"):
        fence = line.lstrip().startswith(("```", "~~~"))
        fenced ^= fence
        heading = None if fenced else _HEADING.match(line)
        item = _ITEM.match(line)
        if heading or item or fence or not line.strip():
            yield from _sentences(" ".join(part))
            part = []
        if heading:
            inside = _WANTED.search(heading.group(1)) is not None
        elif inside and not (fenced or fence) and line.strip() and not line.lstrip().startswith("|"):
            part.append(item.group(1) if item else line.strip())


def _sentences(text: str) -> Iterator[str]:
    """The sentences of one item or paragraph."""
    for sentence in re.split(r"(?<=[.!?;])\s+", text):
        plain = clean_line(re.sub(r"[*`_]", "", sentence), 400).strip()
        if plain:
            yield plain.rstrip(".;")


def tier_of(identity: str, path: str) -> int:
    """The authority of a document, by its id or name; the lower the number, the more it decides."""
    for word in (identity.lower(), Path(path).stem.lower()):
        for start, tier in TIERS:
            if re.match(rf"(helix\.)?(product-)?{start}([-.\d]|$)", word):
                return tier
    return LOWEST


def classify(one: Statement, other: Statement) -> DocumentFinding | None:
    """The conflict of two demands with its class, or None."""
    if contradict(one.text, other.text):
        return _judged(one, other, certain=True)
    first, second = _CHOICE.search(one.text), _CHOICE.search(other.text)
    if not (first and second) or words_of(first["why"]) != words_of(second["why"]):
        return None
    return _judged(one, other, certain=False) if first["what"].lower() != second["what"].lower() else None


def _between(statements: list[Statement]) -> Iterator[DocumentFinding]:
    by_word: dict[str, list[Statement]] = {}
    special = [each for each in statements if read_demand(each.text).special]
    for each in statements:
        for word in words_of(each.text):
            by_word.setdefault(word, []).append(each)
    seen: set[frozenset[Statement]] = set()
    # a word shared by 60 demands is unspecific, and pairs grow quadratically
    groups: Iterable[list[Statement]] = (*(group for group in by_word.values() if len(group) < 60), special)
    for group in groups:
        for one, other in combinations(group, 2):
            pair = frozenset((one, other))
            if pair in seen or one == other:
                continue
            seen.add(pair)
            finding = classify(one, other)
            if finding is not None:
                yield finding


def _judged(one: Statement, other: Statement, *, certain: bool) -> DocumentFinding:
    said = tuple((each.document, each.text) for each in (one, other))
    if one.tier != other.tier:
        high, low = sorted((one, other), key=lambda each: each.tier)
        text = f"“{high.text}” ({high.document}) decides over “{low.text}” ({low.document})"
        return DocumentFinding("resolvable", text, (high.document, low.document), said)
    text = f"“{one.text}” ({one.document}) and “{other.text}” ({other.document})"
    both = (one.document, other.document)
    if certain:
        return DocumentFinding("physics-level", f"{text} cannot both hold", both, said)
    return DocumentFinding("resolvable", f"{text} make different choices for the same goal", both, said)
