"""Detect questions about the records of the work rather than its files; parse which records, and on what subject.

"Which beads touch the parser?" asks for a list of beads; "what went wrong with ddx-12ab last time?" for an account of
an attempt; "why was the lease limit changed?" for reasons, which may be in commits and beads as well as in documents. A
repository may itself be about beads or attempts, so the form of the sentence decides, not a single word.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ask.records import Library, Records, Span
from helix_tui.core.ask.retrieval.question import terms_in
from helix_tui.core.ask.retrieval.search import Pool
from helix_tui.core.ask.retrieval.trees import Policy

RECORD_SPANS = 48
WHY_SPANS = 8
"""Maximum number of passages of records, and of commits, for a question that wants no list."""
LEAST_DOER = 5
"""A word in -er or -or with more letters than this counts as an agent noun: *parser*, not *user*."""
RECORD_WORTH = 0.9
"""Weight of the best passage of a record among those of files, if both may answer."""

RecordKind = Literal["bead", "attempt", "review", "memory", "run", "commit"]

Shape = Literal["list", "account", "why", "none"]
"""A list of records; what happened to one; reasons for a change; or not about records, which may still help."""

_NOUNS: dict[RecordKind, str] = {
    "bead": "beads|tickets|work items|backlog items|bead|ticket|work item",
    "attempt": "attempts|executions|attempt|execution",
    "review": "reviews|reviewers|review|reviewer",
    "memory": "memories|lessons|memory|lesson",
    "run": "runs|run logs|loop logs|run log",
    "commit": "commits|commit",
}
_MANY = "|".join(noun for nouns in _NOUNS.values() for noun in nouns.split("|") if noun.endswith("s"))
_ONE = "|".join(noun for nouns in _NOUNS.values() for noun in nouns.split("|") if not noun.endswith("s"))
_ID = re.compile(
    r"(?<![\w/.-])(?:[A-Za-z][A-Za-z0-9_.]{0,40}-[0-9a-z][0-9a-z.]{2,30}|\d{8}T\d{6}-[0-9a-f]{6,16})(?![\w/-])"
)
_ASKS = (
    r"^\W*(?:please\s+|and\s+)?(?:which|what|list|any|all|show(?:\s+me)?|find|are\s+there(?:\s+any)?"
    r"|do\s+we\s+have(?:\s+any)?|how\s+many)\s+(?:of\s+)?(?:the\s+|our\s+|other\s+)?"
    r"(?P<state>(?:open|closed|ready|failed|past|earlier|recent|landed|refused)\s+)?"
)
_LIST = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"{_ASKS}(?P<noun>{_MANY})\b(?!\s+(?:is|are|does|do|means?|when|if|after|before|where|exist)\b(?!\s+(?:about|on|for|concerned)\b))\s*(?P<rest>.*)",
        # only about the past: "did any", not "does any"
        rf"^\W*(?:did|has|have|was|were)\s+(?:there\s+)?any\s+(?:of\s+(?:the|our)\s+)?(?P<noun>{_MANY}|{_ONE})\b\s*(?P<rest>.+)",
        # a singular only with a verb: "which commit removed", not "which bead to pick"
        rf"{_ASKS}(?P<noun>{_ONE})\s+(?=(?:\w+ed|touches|changes|fixes|made|broke|wrote|has|is\s+about)\b)(?P<rest>.+)",
        rf"^\W*(?P<state>(?:open|closed)\s+)?(?P<noun>{_MANY})\s+(?:that|which|about|on|for|touching|mentioning|concerning|with)\s+(?P<rest>.+)",
    )
)
_STATES: dict[RecordKind, str] = {
    "bead": r"ready|running|proposed|cancelled|superseded|closed",
    "attempt": r"landed|failed|refused|kept\s+aside|interrupted|satisfied",
}
_IN_STATE = tuple(
    re.compile(
        r"^\W*(?:please\s+)?(?:which|what|list|show(?:\s+me)?|how\s+many)\s+(?:of\s+)?(?:the\s+|our\s+)?"
        rf"(?:(?P<before>{states})\s+)?(?P<noun>{_NOUNS[kind]})"
        rf"(?:\s+(?:that\s+)?(?:(?:is|are|were|was|have|has)\s+)?(?:now\s+)?(?P<after>{states}))?"
        r"(?:\s+(?:now|are\s+there|there\s+are|do\s+we\s+have|so\s+far))*\W*$",
        re.IGNORECASE,
    )
    for kind, states in _STATES.items()
)
"""A list of all records in one state, whatever their subject: "which beads are ready?", "how many attempts landed?"."""
_REMEMBERED = re.compile(
    r"^\W*what\s+(?:(?:do|have|did)\s+we|has\s+been|was|is)\s+(?:remember(?:ed)?|know|known|learnt?|learned)"
    r"(?:\s+(?:about|of|on|from))?\s+(?P<rest>.+)"
    r"|^\W*have\s+we\s+(?:seen|met|had)\s+(?P<more>.+)",
    re.IGNORECASE | re.DOTALL,
)
_FRAME = re.compile(
    r"^(?:(?:that|which|who|have|has|had|do|does|did|were|was|are|is|there|ever|already|we|in|on|of|for|to|with|by|about"
    r"|touch(?:es|ed|ing)?|concern(?:s|ed|ing)?|mention(?:s|ed|ing)?|speaks?|spoke|talk(?:s|ed)?|change(?:s|d)?|changing"
    r"|affect(?:s|ed|ing)?|deals?|dealt|works?|worked|working|involv(?:e|es|ed|ing)|relat(?:e|es|ed|ing)|cover(?:s|ed)?"
    r"|say|says|said|tell|tells|know|knows|anything|something|end|ended|ends|because|found|the|a|an|our|this|these|why|who|when|how|what)\b\s*)+",
    re.IGNORECASE,
)
_ACCOUNT = re.compile(
    r"\bwhat\s+(?:went\s+wrong|happened|came\s+of|became\s+of|was\s+tried|did\s+\w+\s+try|failed)\b"
    r"|\bwhy\s+(?:did|was|has|were|is)\b.{0,60}\b(?:fail|failed|refused|rejected|interrupted|not\s+land|kept\s+aside|preserved)\b"
    r"|\bhow\s+did\b.{0,60}\b(?:end|go)\b|\blast\s+time\b|\bwhat\s+did\s+the\s+review(?:er)?\b"
    r"|\b(?:has\s+any(?:one|body)|have\s+we)\s+(?:ever\s+)?(?:tried|attempted)\b",
    re.IGNORECASE,
)
_MADE_BY = re.compile(
    r"^\W*(?:which|what)\s+(?:model|harness|agent)\s+(?:has\s+|had\s+)?"
    r"(?:landed|did|made|wrote|closed|tried|attempted|finished|implemented|built|worked\s+(?:on|at)|failed(?:\s+(?:at|on|in|with))?)"
    r"\s+(?P<it>.+)",
    re.IGNORECASE | re.DOTALL,
)
"""Which model, harness or agent worked on a bead: its attempts record that."""
_MOST = re.compile(
    r"^\W*(?:which|what)\s+(?:model|harness|agent)s?\s+(?P<did>.+?)\s+(?:the\s+)?(?:most|least|fewest)\b(?:\s+(?:of\s+)?(?:the\s+)?"
    rf"(?:{_MANY}|work|often|times))?\W*$",
    re.IGNORECASE,
)
"""Which model, harness or agent did something most or least often, whatever the subject."""
_COST = re.compile(
    r"^\W*(?:what|how\s+much)\s+(?:did|has|have)\s+(?!(?:the|our)\s+(?:last|latest|previous)\b)"
    r"(?:it\s+costs?\s+to\s+(?P<it>.+)|(?P<of>.+?)\s+cost\b)",
    re.IGNORECASE | re.DOTALL,
)
"""The cost of the work on a bead, which its attempts record."""
_WHY = re.compile(
    r"\bwhy\s+(?:was|were|did|has|have|is|are|do|does)\b.{0,100}\b(?:chang|remov|add|renam|mov|drop|delet|replac|introduc|rais"
    r"|lower|revert|switch|split|merg|increas|decreas|bump|deprecat|rewrit|rewrot|mad|disabl|enabl|limit)\w*"
    r"|^\W*when\s+(?:was|were|did|has|have)\b"
    r"|^\W*who\s+(?:was|were|did|has)?\b.{0,80}\b(?:chang|remov|add|renam|introduc|land|clos|revert|fix|delet|wrote)\w*"
    r"|\bsince\s+when\b",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"\b(?:chang|remov|add|renam|mov|drop|delet|replac|introduc|rais|lower|revert|switch|bump|disabl|enabl|land|clos|fix)"
    r"(?:ed|es|ing|e|s)?\b|\b(?:made|wrote|written|since when)\b",
    re.IGNORECASE,
)
"""Words for a change, which are removed from the subject: every commit message has one."""
_SUBJECT_OF_ACCOUNT = re.compile(
    r"\b(?:wrong\s+(?:with|in)|happened\s+(?:to|with|in)|came\s+of|became\s+of|tried\s+(?:to|for|with|on)?|review(?:er)?\s+say\s+(?:about|of|to)?)\s+"
    r"(?P<it>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_TAIL = re.compile(
    r"\s*(?:\b(?:the\s+)?last\s+time|\bso\s+far|\brecently|\blately|\bbefore)?\s*[?!.\s]*$", re.IGNORECASE
)
_ENDED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"(?:were\s+|was\s+)?(?:refused|rejected|turned\s+down)(?:\s+by\s+(?:a\s+|the\s+)?review(?:er)?)?", ("refused",)),
    (r"(?:were\s+|was\s+)?(?:kept\s+aside|preserved|set\s+aside)", ("kept aside",)),
    (r"(?:were\s+|was\s+)?(?:interrupted|stopped|killed|cancell?ed)", ("interrupted",)),
    (r"changed\s+nothing|made\s+no\s+changes?|(?:ended\s+)?without\s+(?:any\s+)?changes?", ("no change",)),
    (r"found\s+(?:the|their)\s+work\s+done(?:\s+already)?|were\s+satisfied(?:\s+already)?", ("satisfied",)),
    (r"did\s+not\s+land|not\s+landed|never\s+landed", ("failed", "kept aside", "refused", "interrupted", "no change")),
    (r"landed|succeeded|were\s+merged", ("landed",)),
    (r"failed|fail|went\s+wrong|ended\s+in\s+(?:an?\s+)?(?:error|failure)s?", ("failed",)),
)
"""Phrases that ask for attempts by outcome, with these outcomes."""
EVERY_END = ("landed", "kept aside", "refused", "no change", "satisfied", "failed", "interrupted")
_CAUSE = re.compile(
    r"\b(?:because(?:\s+of)?|due\s+to|owing\s+to|for\s+want\s+of|over|from|with|by|on\s+account\s+of)\s+(?P<cause>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_MET = re.compile(r"\b(?:r[au]n\s+into|hit|met)\s+(?P<cause>.+)$", re.IGNORECASE | re.DOTALL)
"""Phrases that name only a cause: an attempt that ran into a conflict did not land."""
_NOT_LANDED = ("failed", "kept aside", "refused", "interrupted")
"""Outcomes meant by *failed* with a cause: an attempt that ddx kept aside for a conflict has failed for the user."""


MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MONTHS = tuple(name[:3].lower() for name in MONTHS)
_MONTH = r"(?P<month>(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6})"
_DAYS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)\b",
        rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+{_MONTH}\b\.?,?(?:\s+(?P<year>\d{{4}}))?",
        rf"\b{_MONTH}\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>\d{{4}}))?",
    )
)
_WHOLE_MONTH = re.compile(rf"\b(?:in|during)\s+{_MONTH}\b(?:\s+(?P<year>\d{{4}}))?(?!\s*\d)", re.IGNORECASE)
_NEAR_DAY = re.compile(r"\b(?P<near>today|yesterday)\b", re.IGNORECASE)
_HAPPENED = re.compile(
    r"\bwhat\s+(?:has\s+)?(?:happened|was\s+done|landed|failed|went\s+wrong)\b|\bwhat\s+did\b.{1,40}\b(?:do|try|change|land|get\s+done)\b"
    r"|\b(?:how|why)\s+did\b.{0,60}\b(?:run|loop)\b|\bwhat\s+came\s+of\b.{0,40}\b(?:run|loop)\b|\bruns?\s+(?:of|on)\b",
    re.IGNORECASE,
)
"""Phrases that ask what happened, on a day if one is named."""
_LAST_RUN = re.compile(
    r"\b(?:what\s+did|how\s+did|why\s+did|what\s+happened\s+(?:in|during)|what\s+came\s+of)\s+(?:the|our)\s+"
    r"(?:(?:last|latest|previous|most\s+recent)\s+(?:run|loop)|(?:run|loop)\s+(?=do\b|go\b|end\b|stop\b))"
    r"|\bwhat\s+happened\s+(?:last\s+night|overnight|while\s+(?:i|we)\s+(?:was|were)\s+away)\b",
    re.IGNORECASE,
)


class RecordsAsked(Struct, frozen=True):
    """A question's request for records."""

    shape: Shape
    kinds: tuple[RecordKind, ...] = ()
    """The kinds that it names; empty if any may answer."""
    ids: tuple[str, ...] = ()
    """Words that look like the id of a bead or an attempt, as written."""
    subject: str = ""
    """The subject of the records, in the question's words without its frame."""
    state: str = ""
    """The state to which a list is limited, as a word of the question; ``_`` joins several words (``kept_aside``)."""
    ended: tuple[str, ...] = ()
    """Outcomes of the attempts to list; empty for any."""
    cause: str = ""
    """The cause of that outcome, in the question's words."""
    one_bead: bool = False
    """Whether it is about one bead, found by its title."""
    day: str = ""
    """The requested day, as for ``Records.of_day``."""
    month: str = ""
    """The month of the attempts to list: ``2026-04``, or ``04`` of any year."""
    by_model: bool = False
    """Whether to count attempts by model."""

    @property
    def all_in_state(self) -> bool:
        """Whether it asks for everything in one state, whatever the subject."""
        return self.shape == "list" and bool(self.state and self.kinds) and not self.subject and not self.ids

    @property
    def only_records(self) -> bool:
        """Whether only records can answer."""
        return self.shape == "list" or (self.shape == "account" and bool(self.ids or self.kinds))


def records_asked(text: str) -> RecordsAsked:
    """Parse a question's request for records."""
    head = text.strip().split("\n", 1)[0]
    # many words have a hyphen; an id has a digit after its last one
    ids = tuple(dict.fromkeys(found for found in _ID.findall(head) if any(map(str.isdigit, found.rpartition("-")[2]))))
    if len(head.split()) > 40:
        return RecordsAsked("none", ids=ids)
    # a question with an id is about that bead, not about the whole day
    day = "" if ids else _day_asked(head)
    if day:
        return RecordsAsked("account", ("run",), subject=_plain(head), day=day)
    in_state = next(filter(None, (pattern.search(head) for pattern in _IN_STATE)), None)
    if in_state is not None and (in_state["before"] is None) != (in_state["after"] is None):
        word = "_".join((in_state["before"] or in_state["after"]).lower().split())
        return RecordsAsked("list", _kinds_in(in_state["noun"]), state=word)
    for pattern in _LIST:
        found = pattern.search(head)
        if found is not None:
            state = (found.groupdict().get("state") or "").strip().lower()
            listed = RecordsAsked("list", _kinds_in(found["noun"]), ids, _plain(found["rest"]), state)
            return _by_end(listed, found["rest"]) if listed.kinds == ("attempt",) else listed
    cost = _COST.search(head)
    if cost is not None:
        return RecordsAsked("account", ("bead",), ids, _bare(cost["it"] or cost["of"]), one_bead=not ids)
    known = _REMEMBERED.search(head)
    if known is not None:
        return RecordsAsked("list", ("memory",), ids, _plain(known["rest"] or known["more"]))
    most = _MOST.search(head)
    if most is not None:
        ended = _by_end(RecordsAsked("list", ("attempt",)), most["did"]).ended or EVERY_END
        return RecordsAsked("list", ("attempt",), ended=ended, by_model=True)
    made = _MADE_BY.search(head)
    if made is not None:
        return RecordsAsked("account", ("bead",), ids, _plain(made["it"]), one_bead=not ids)
    if _ACCOUNT.search(head):
        subject = _SUBJECT_OF_ACCOUNT.search(head)
        kinds, about = _kinds_in(head), _plain(subject["it"] if subject else head)
        # "the exit code bead" names one by its title
        by_title = subject is not None and "bead" in kinds and not ids
        return RecordsAsked("account", kinds, ids, _bare(about) if by_title else about, one_bead=by_title)
    if _WHY.search(head):
        return RecordsAsked("why", _kinds_in(head), ids, _plain(_CHANGED.sub(" ", head)))
    return RecordsAsked("account" if ids else "none", ids=ids, subject=_plain(head))


def _day_asked(head: str) -> str:
    """The day whose events a question asks for, or ``last`` for the last run; empty if it asks for neither."""
    named = _named_day(head) if _HAPPENED.search(head) else ""
    return named or ("last" if _LAST_RUN.search(head) else "")


def _named_day(text: str) -> str:
    """The day in a text, in the form of ``Records.of_day``; empty if there is none."""
    found = next(filter(None, (pattern.search(text) for pattern in _DAYS)), None)
    if found is None:
        near = _NEAR_DAY.search(text)
        return "" if near is None else near["near"].lower()
    named = found.groupdict()
    return "-".join(filter(None, (named["year"], named.get("m") or _number(named["month"]), f"{int(named['d']):02}")))


def _named_month(text: str) -> str:
    """The whole month that a text names, as ``2026-04`` or ``04``; empty if there is none."""
    found = _WHOLE_MONTH.search(text)
    return "" if found is None else "-".join(filter(None, (found["year"], _number(found["month"]))))


def _number(month: str) -> str:
    """The number of a month by its name: ``April`` -> ``04``."""
    return f"{_MONTHS.index(month[:3].lower()) + 1:02}"


def _by_end(asked: RecordsAsked, rest: str) -> RecordsAsked:
    """Add the outcome and cause that ``rest`` names, and its day or month, to a list of attempts; unchanged if it names
    neither outcome nor cause.
    """
    hits = [(found, ended) for words, ended in _ENDED if (found := re.search(rf"\b(?:{words})\b", rest, re.IGNORECASE))]
    if hits:
        # the outcome that is named first: a later one belongs to the cause
        found, ended = min(hits, key=lambda hit: hit[0].start())
        about = f"{rest[: found.start()]} {rest[found.end() :]}"
        day = _named_day(about)
        month = "" if day else _named_month(about)
        if day or month:
            about = reduce(lambda text, pattern: pattern.sub(" ", text), (*_DAYS, _WHOLE_MONTH, _NEAR_DAY), about)
        why = _CAUSE.search(about)
        cause = _plain(why["cause"]) if why else ""
        subject = _plain(re.sub(r"\b(?:at|of|for)\b", " ", about[: why.start()] if why else about))
        return replace(
            asked,
            subject=subject,
            ended=_NOT_LANDED if cause and ended == ("failed",) else ended,
            cause=cause,
            day=day,
            month=month,
        )
    met = _MET.search(rest)
    if met:
        return replace(asked, subject=_plain(rest[: met.start()]), ended=_NOT_LANDED, cause=_plain(met["cause"]))
    return asked


def _kinds_in(text: str) -> tuple[RecordKind, ...]:
    return tuple(kind for kind, nouns in _NOUNS.items() if re.search(rf"\b(?:{nouns})\b", text, re.IGNORECASE))


def _bare(text: str) -> str:
    """A part of a question without its frame and the words for a record: ``the exit code bead`` -> ``exit code``."""
    return _plain(re.sub(rf"\b(?:{_ONE}|{_MANY})\b", " ", text, flags=re.IGNORECASE))


def _plain(text: str) -> str:
    """A part of a question without its frame: ``that touch the parser?`` -> ``parser``."""
    return _TAIL.sub("", _FRAME.sub("", text.strip())).strip(" ?!.,;:\"'`“”")


# --- passages of the records --------------------------------------------------------------------------------


def consult(library: Library, asked: RecordsAsked, text: str, *, nothing_else: bool) -> list[Span]:
    """Passages of records for a question; empty if it does not ask about records and the files may answer.

    Args:
        library: the repository and its records.
        asked: the question's request for records.
        text: the question.
        nothing_else: whether the files have no evidence, so that any record may help.
    """
    # beads are no evidence for a question about files, unless the files have none
    if asked.shape == "none" and not nothing_else:
        return []
    found: list[Span] = []
    if asked.kinds == ("commit",):
        return _commits(library, asked.subject, RECORD_SPANS, least=0.5)
    records = library.records
    if asked.month and records is not None:
        began = re.compile(rf"\bon (?:\d+-)?{re.escape(asked.month)}-\d\d\b")
        return [span for span in records.ended(asked.ended) if began.search(span.text)]
    if asked.day:
        day = None if records is None else records.of_day(asked.day)
        if records is not None and day is not None and asked.ended:
            of_day = {span.key for span in day.attempts}
            return [span for span in records.ended(asked.ended) if span.key in of_day]
        return [] if day is None else [*day.runs, *day.attempts]
    if records is not None and asked.all_in_state:
        return list(records.in_state(asked.kinds[0], asked.state)[1])
    if records is not None:
        if asked.ended:
            return list(records.ended(asked.ended))
        if asked.one_bead:
            found = _one_bead(records, asked.subject)
        for word in asked.ids:
            found += records.named(word)
        # a list wants beads *about* something: "parser" finds those with "parse" too
        if not found and asked.shape == "list":
            subject = " ".join([asked.subject, *filter(None, map(doing, sorted(terms_in(asked.subject))))])
            found += records.search(subject, spans=RECORD_SPANS, kinds=asked.kinds)
        elif not found:
            found += records.search(asked.subject or text, spans=WHY_SPANS, kinds=asked.kinds)
    if asked.shape == "why":
        found += _commits(library, asked.subject, WHY_SPANS)
    return found


def _one_bead(records: Records, subject: str) -> list[Span]:
    """All passages of the first bead found whose title has all words of a subject; empty if there is none."""
    wanted = terms_in(subject)
    for span in records.search(subject, spans=RECORD_SPANS, kinds=("bead",)) if wanted else ():
        if wanted <= terms_in(records.title(span.file)):
            return list(records.named(span.file.partition(":")[2]))
    return []


def _commits(library: Library, subject: str, most: int, least: float = 0.51) -> list[Span]:
    """Commits found with at least the share ``least`` of the subject's words, best first."""
    wanted = terms_in(subject)
    found = library.commits(subject, most)
    return [span for span in found if len(wanted & terms_in(span.text)) >= least * len(wanted)]


def doing(term: str) -> str:
    """The verb of an agent noun: parser -> parse; else ""."""
    return f"{term[:-2]}e" if len(term) > LEAST_DOER and term.endswith(("er", "or")) else ""


def with_records(pool: Pool, spans: list[Span], *, step: int, query: str, policy: Policy) -> Pool:
    """Add passages of records to a pool, each weighed relative to the best of them; one without a score counts as the
    best.
    """
    best = max((span.score for span in spans), default=0.0) or 1.0
    scored = [(span, "record", RECORD_WORTH * (span.score / best if span.score else 1.0)) for span in spans]
    return pool.with_spans(scored, step=step, query=query, policy=policy)  # type: ignore[arg-type]
