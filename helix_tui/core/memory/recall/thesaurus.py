"""Words of the field that are used for one another, for search without an encoder.

A question shares few words with what it looks for: "runs out of RAM", "memory grows until it is killed". Each
line is a group; a word may stand in several. Written for English, as the stems are.

``kin.xz`` beside this file has more, and by how close they are: the eight nearest of each of 9,600 stems
that descriptions of published packages use, by the cosine of all-MiniLM-L6-v2 (Apache-2.0) between the
words alone, less their mean, from .42 on. A line is a stem and its neighbours, the cosine in hundredths at
the end of each. `bench.related_words` makes it, of words alone, without a look at any memory or question.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from helix_tui.core.memory.words import stem

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
