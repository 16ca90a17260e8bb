"""The keyword leg: FTS5 finds candidates by their rarest words, rarity weighs what they have in common.

Bounded whatever the query: as many words, from the rarest on, as have at most :data:`MOST_POSTINGS` memories
between them, and at most :data:`MOST_CANDIDATES` memories.

Words of the field that are used for one another, for search without an encoder.

A question shares few words with what it looks for: "runs out of RAM", "memory grows until it is killed". Each
line is a group; a word may stand in several. Written for English, as the stems are.

``kin.xz`` beside this file has more, and by how close they are: the eight nearest of each of 9,600 stems
that descriptions of published packages use, by the cosine of all-MiniLM-L6-v2 (Apache-2.0) between the
words alone, less their mean, from .42 on. A line is a stem and its neighbours, the cosine in hundredths at
the end of each. `bench.related_words` makes it, of words alone, without a look at any memory or question.
"""

from __future__ import annotations

import lzma
import math
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache, lru_cache
from pathlib import Path

from sqlite_utils import Database

from helix_tui.core.memory.ranking import stem, words

_GROUPS = """
auth authentication authorization login signin credential credentials session token jwt oauth password sso
permission permitted allowed allow deny denied forbidden rights access readonly read-only
secret credential key token password
db database postgres postgresql sqlite mysql sql
table schema column ddl
migration migrate schema alter
connection session socket pool
exhausted exhaust many limit full
slow latency performance lag sluggish speed
timeout hang hangs stall stuck freeze wait waits forever deadlock
lock locks locked block blocks blocked deadlock contention
load traffic busy concurrency pressure
flaky race intermittent timing nondeterministic random sporadic sometimes unstable now then
test tests spec suite check
job jobs worker task tasks celery queue background
process daemon service server worker
restart reboot rebooted restarted redeploy
crash kill killed die dies abort segfault oom
lose loses lost vanish vanishes disappear disappears drop dropped missing gone
container docker image pod kubernetes k8s
big large huge size grow grows bloat gb mb heavy
expire expires expired invalid
stale old outdated obsolete previous former
upload uploads transfer transferred download send
deploy deployment release rollout ship version
ci pipeline workflow runner actions build
tag tags push release
timezone hour hours dst daylight saving utc clock time timestamp timestamps date
cache cached redis memoize
memory ram oom leak heap
import imports importer load loading loaded ingest
circular cycle cyclic mutual loop recursive each
module package dependency library
twice duplicate duplicated double repeated second again
webhook event callback notification delivery deliveries
bill billing invoice invoices price prices payment total totals amount
round rounding cent decimal precision float
page pages pagination paging offset cursor
row rows entry entries record records item items
insert inserted add added create change changes
skip skips missing miss omitted
error errors fail fails failure failed broken break breaks exception wrong
file files filename filenames folder directory path
unicode encoding utf utf8 umlaut umlauts character accent
search find lookup query index
log logs logging trace
disk space storage volume full
environment env variable variables config configuration setting settings
network http request requests api endpoint url
mail email smtp newsletter newsletters message
rate throttle throttling quota limit 429
button click element dialog modal popup page
render renders rerender re-render redraw repaint display
type types typing annotation annotations mypy checker
hook hooks trigger precommit
git repository repo branch worktree checkout commit
parallel concurrent simultaneously together thread threads
start starts startup boot launch initialization init
cleanup close closes free shutdown
retry retries backoff repeat
delete remove removes prune drop
order sort sorted sequence
number count counts quantity
user account customer person
permission rights role admin
browser chrome firefox safari playwright selenium
frontend ui react component view
certificate tls ssl https cert
proxy gateway ingress loadbalancer nginx
parse parser parsing decode syntax
json yaml toml xml csv
thread async asyncio await coroutine
mock stub fake fixture
lint linter format formatter style
compile compiler build linker
windows linux macos platform
domain subdomain origin cors host
field fields attribute attributes property column
document documents record
leak leaks leaking
bytes stream streaming chunk chunks
"""

RELATED = 0.65
"""How much of a word another one of its group is."""


@cache
def _groups() -> dict[str, frozenset[str]]:
    """Stem -> all stems that stand in a group with it."""
    found: dict[str, set[str]] = {}
    for line in _GROUPS.split("\n"):
        stems = {stem(word.replace("-", "")) for word in line.split()}
        for each in stems:
            found.setdefault(each, set()).update(stems - {each})
    return {each: frozenset(others) for each, others in found.items()}


@lru_cache(maxsize=4_096)
def related(term: str) -> frozenset[str]:
    """Stems that may stand for this one; none for a name of code."""
    return _groups().get(term, frozenset())


@cache
def _table() -> dict[str, str]:
    text = lzma.decompress(Path(__file__).with_name("kin.xz").read_bytes()).decode("ascii")
    return dict(line.split(" ", 1) for line in text.split("\n"))


@lru_cache(maxsize=4_096)
def kin_of(term: str) -> Mapping[str, float]:
    """Stems close in meaning to this one, and how close, below 1; none for a name of code."""
    near = {word[:-2]: int(word[-2:]) / 100 for word in _table().get(term, "").split()}
    return near | {word: max(RELATED, near.get(word, 0.0)) for word in related(term)}


MOST_WORDS = 32
MOST_POSTINGS = 6_000
MOST_CANDIDATES = 300

MOST_REFINED = 64
"""The best candidates, of which is looked at where they have a word: in the trigger or in the resolution."""

IN_RESOLUTION = 0.7
"""What a word of the resolution is worth against one of the trigger: a question tells of a situation, as
triggers do. Chosen over .6, .8, .9 and 1 in seven of eight rounds that leave one set of questions out."""


def coverage(database: Database, terms: Sequence[str], total: int, *, kin: bool = False) -> dict[int, float]:
    """Memory id -> share of the terms it has, each weighted by its rarity; 0 < share <= 1.

    With ``kin`` a word that is close in meaning counts for a term, by how close it is (`thesaurus`), and a
    word of the trigger more than one of the resolution.

    Args:
        database: An open memory.
        terms: Words as `words.telling` or `words.identifiers` gives them.
        total: How many memories there are.
    """
    terms = terms[:MOST_WORDS]
    if not terms or not total:
        return {}
    close = {term: {**(kin_of(term) if kin else {}), term: 1.0} for term in terms}
    frequency = _frequencies(database, list(dict.fromkeys(word for each in close.values() for word in each)))
    weight = {term: _rarity(frequency.get(term, 0), total) for term in terms}
    sought = _rarest(frequency, set(terms))
    whole = sum(weight.values())
    if not sought or not whole:
        return {}
    expression = " OR ".join(f'"{term}"' for term in sought)
    rows = database.execute(
        "SELECT rowid, words FROM memory_words WHERE memory_words MATCH ? ORDER BY rank LIMIT ?",
        [expression, MOST_CANDIDATES],
    ).fetchall()
    texts = {memory_id: set(text.split()) for memory_id, text in rows}
    found = {memory_id: _share(weight, close, has) / whole for memory_id, has in texts.items()}
    if kin:
        _refine(database, found, texts, lambda has: _share(weight, close, has) / whole)
    return {memory_id: value for memory_id, value in found.items() if value}


def _share(weight: Mapping[str, float], close: Mapping[str, Mapping[str, float]], has: Set[str]) -> float:
    """The weight of the terms that a text has, each as far as the closest of its words goes."""
    return sum(
        each * max((near for word, near in close[term].items() if word in has), default=0.0)
        for term, each in weight.items()
    )


def _refine(
    database: Database,
    found: dict[int, float],
    texts: Mapping[int, Set[str]],
    share: Callable[[Set[str]], float],
) -> None:
    """Let the words of triggers count for more, in the best candidates."""
    best = sorted(found, key=lambda memory_id: -found[memory_id])[:MOST_REFINED]
    marks = ", ".join("?" * len(best))
    keys = database.execute(f"SELECT memory_id, key FROM memory_key WHERE memory_id IN ({marks})", best)
    triggers = {memory_id: set(words(str(key))) & texts[memory_id] for memory_id, key in keys.fetchall()}
    for memory_id in found:
        trigger = share(triggers[memory_id]) if memory_id in triggers else 0.0
        found[memory_id] = trigger + IN_RESOLUTION * (found[memory_id] - trigger)


def _frequencies(database: Database, terms: Sequence[str]) -> dict[str, int]:
    marks = ", ".join("?" * len(terms))
    rows = database.execute(f"SELECT term, doc FROM memory_vocabulary WHERE term IN ({marks})", list(terms))
    return dict(rows.fetchall())


def _rarity(frequency: int, total: int) -> float:
    """The inverse document frequency of BM25, never below zero."""
    return math.log(1 + max(0.0, total - frequency + 0.5) / (frequency + 0.5))


def _rarest(frequency: dict[str, int], own: Set[str]) -> list[str]:
    """Words from the rarest on, as many as stay within the bound, the query's own first; one at least."""
    found: list[str] = []
    postings = 0
    for term in sorted(frequency, key=lambda term: (term not in own, frequency[term], term)):
        postings += frequency[term]
        if found and postings > MOST_POSTINGS:
            break
        found.append(term)
    return found
