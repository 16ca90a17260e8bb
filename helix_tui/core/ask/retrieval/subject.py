"""Determine a question's kind of answer and its subject, and match the subject's words with texts.

"Which kinds of errors does the parser report?" is framed by *which kinds of*; its subject is *errors*, *parser* and
*report*. Frame words come from closed lists, never from their frequency in the repository: a frequent noun may well be
what is asked about.

A question says *environment*, *directory*, *message* or *file names* where code has ``env``, ``dir``, ``msg`` or
``filename``: `Wording` matches stems, parts of names and abbreviations. Joined words, other forms and abbreviations
count for less than the word itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ask.retrieval.phrases import meanings_in, without_idioms
from helix_tui.core.ask.retrieval.question import ASKING_ONLY, FOLLOWS, LONG_WORDS, MOST_CHARS, names_in
from helix_tui.core.ask.tokens import STOP_WORDS, parts, stem, terms_of
from helix_tui.core.embedding.word_vectors import near

Asks = Literal[
    "how to",
    "where",
    "why",
    "what happens",
    "who uses",
    "list",
    "value",
    "compare",
    "what is",
    "how it works",
    "whether",
    "task",
]
"""The kinds of answers: instructions, a place, a reason, a branch, call sites, several things, one value, a comparison
of two things, a definition, a mechanism, yes or no; or a piece of work.
"""

LIGHT = 0.35
"""Weight of a word of little meaning relative to a noun: it decides only if the nouns do not."""

_COUNTED = r"(?:long|many|much|often|deep|big|large|far|high|old|fast|soon|late|wide|small|frequently)"
_QUANTITY = (
    r"(?:default|limit|maximum|minimum|max|min|size|timeout|time-out|number|value|port"
    r"|(?:exit|status|error|return) (?:code|status)|code|version|length|depth|threshold|interval|address|name|path|url"
    r"|colou?r|width|height|amount|budget|ratio|rate|status)"
)
_USED = (
    r"(?:calls?|uses?|imports?|invokes?|called|used|imported|depends? on|relies on|subclass(?:es)?|implements?"
    r"|overrides?|reads?)"
)
_AGENT = r"(?:i|we|you|one|somebody|someone|a user|users|people|a person|an? \w+)"
_PART = r"(?:file|module|function|class|method|package|folder|directory|line|test|part|place|component)"
_DIFFERENT = (
    r"\bdifferences?\b|\bdiffers?\b|\bdifferent (?:from|than|to)\b|\bhow .*\bdifferent\b|\bwhat(?:'s| is) different\b"
    r"|\bcompare[ds]?\b|\bcomparison\b|\bversus\b|\bvs\b"
)
_PLURAL = r"(?!is\b|was\b|this\b|does\b|has\b|process\b|class\b|status\b)\w+[^s\W]s\b"

_FRAMES: tuple[tuple[Asks, str], ...] = (
    ("who uses", rf"\b(?:who|what|which (?!\w*s? (?:is|are))\w+)(?: \w+)? {_USED}\b(?! (?:to|for)\b)"),
    ("who uses", r"\bwhere (?:is|are|does|do|was) .{1,60} (?:called|used|imported|invoked|referenced)\b"),
    ("who uses", r"\b(?:callers?|usages?|uses|call sites?) of\b"),
    # "where", "why" and "what happens" may well ask about a difference
    ("compare", rf"^(?!.*\b(?:where|why|what happens)\b).*(?:{_DIFFERENT})"),
    ("how to", rf"\bhow (?:do|can|could|should|would|might|must|may|shall) {_AGENT}\b|\bhow to\b|\bsteps to\b"),
    ("how to", rf"\bis there (?:a|any) way\b|^can {_AGENT}\b|\bhow (?:can|could|should|must) .{{1,60}} be \w+"),
    ("how to", r"\bwhat do i (?:have to|need to|do)\b"),
    ("why", r"\bwhy\b|\breason (?:for|that|why|behind)\b|\bwhat is the (?:reason|rationale|point)\b|\bhow come\b"),
    ("value", rf"\bhow {_COUNTED}\b"),
    ("list", r"\b(?:which|what) (?:kinds?|types?|sorts?|levels?|phases?|options?|steps?|ways?|reasons?|places) "),
    ("what happens", r"\bwhat (?:happens|happened|will happen|would happen|becomes|follows|goes wrong)\b|\bwhat if\b"),
    ("what happens", r"^when (?:is|are|does|do|will)\b|\bwhat (?:does|do) .{1,60}\b(?:when|if|with a|on an?|after)\b"),
    ("value", rf"\bwh(?:at|ich)(?: is| are|'s)?(?: the)?(?: \w+){{0,2}} {_QUANTITY}\b(?! names?\b)"),
    ("value", r"\bat (?:most|least)\b"),
    ("what happens", r"\bwhat (?:is|are) .{1,60}\b(?:when|if|after|while)\b"),
    ("list", rf"\b(?:which|what) {_PART}s? names\b|\b(?:which|what) methods\b"),
    ("where", rf"\bwhere\b|\b(?:which|what) (?!parts\b|components\b){_PART}s?\b|^(?:find|locate)\b"),
    ("where", r"\bhow is .{1,60} recogni[sz]ed\b"),
    ("value", r"\bby default\b"),
    ("list", rf"\b(?:which|what) (?:\w+ ){{0,2}}{_PLURAL}|\blist\b|\bname (?:all|the)\b|\benumerate\b"),
    ("list", r"\b(?:to|from|by|in|with|under|for) wh(?:at|ich) \w+s\b|\bwhat (?:can|may|could|else)\b|\bfrom where\b"),
    ("list", r"\bwhat .{1,40} (?:are|is) there\b"),
    ("what is", r"\bwhat(?:'s| is| are| was| were)\b|\bwhat (?:does|do) .{1,60} (?:mean|stand for|refer to)\b"),
    ("what is", r"\bdefin(?:e|ition)\b|\bmeaning\b"),
    ("how it works", r"\bhow\b|\bexplain\b|\bdescribe\b|\bwalk me through\b|\bwhat (?:does|do) .{1,60} do\b"),
    ("value", r"^wh(?:at|ich)\b"),
    ("whether", r"^(?:is|are|was|were|does|do|did|can|could|has|have|should|will|must|may)\b"),
)
"""Patterns of the kinds of answers; the first that matches applies."""

_OF_LITTLE_MEANING = """
use used uses using user users make makes made making work works working take takes taken keep keeps kept leave leaves
left put puts set sets look looks looked come comes came go goes going get gets got do does done let lets run runs
running change changes changed changing call calls called say says hear hears try tried tries pick picked picks choose
chosen decide decided decides begin begins start started turn turns bring brings hold holds stay become stand stands
belong belongs own new old same another others certain first last next only whole single default defaults configured
config program application app code file files function functions class classes method methods module modules value
values name names number numbers part parts time times handle handles handled implemented implement defined define
located live lives longer long short big small much many more less most least permanently automatically nicely properly
see sees seen find finds want wants need needs give gives given around ever
"""
_LIGHT_WORDS = frozenset(_OF_LITTLE_MEANING.split())

_WORD = re.compile(r"[^\W_][\w'’+#-]*")
_SECOND = re.compile(r",? and (?=(?:(?:by|with|in|from) )?(?:what|when|where|why|how|who|which)\b)")
"""Start of a second question in the same sentence; the first one decides the kind of answer."""
_CLAUSE = re.compile(r"(?<=[.!?])\s+|\n")


_ASKS_FOR = re.compile(r"\basks?\b(?=(?: \w+){0,3} for\b)|^define\b", re.IGNORECASE)
"""A request ("if I ask a shop for bread", "Define a bead"), whose verb is removed; "ask the user" is an action."""
_WHICH = re.compile(r"\b(?:which|what) (\w+)")
_TURNING = re.compile(r"\b(?:again|without|although|except)\b")
"""Words that change a question's meaning: "sent again", "without the embedded ones". Over all sets of bench/ask.md, 6
answers would be labelled "answered" without such a word in them; 4 of them are right.
"""


_WITHOUT = re.compile(r"\bwithout\s(?P<what>.+)")
"""What a question wants to do without: lines that say *without* it answer, and lines that only name it rarely do."""

_TO_SET = frozenset(
    ("change", "set", "configure", "choose", "switch", "enable", "disable", "select", "customize", "adjust", "specify")
)


class SubjectWord(Struct, frozen=True):
    """One word of the subject."""

    word: str
    """As in the question, in lower case."""
    term: str
    """Its stem."""
    weight: float
    """1, or `LIGHT` for a word that matters less."""
    place: int
    """Its position among the words of the question: neighbours may be one name in code."""
    means: tuple[str, ...] = ()
    """What code calls a verb with a particle; its own word is then of little meaning."""


class QuestionSubject(Struct, frozen=True, dict=True):
    """A question with its subject and kind of answer."""

    text: str
    asks: Asks
    words: tuple[SubjectWord, ...]
    names: tuple[str, ...]
    """Identifiers, as written."""

    @cached_property
    def two_things(self) -> bool:
        """Whether the question has a second one in the same sentence."""
        return bool(_SECOND.search(self.text.lower()))

    @cached_property
    def one_word(self) -> bool:
        """Whether the subject has at most one word of full weight, and the question no name."""
        return not self.names and sum(one.weight == 1 for one in self.words) <= 1

    @cached_property
    def of_little_meaning(self) -> bool:
        """Whether no word of the subject has full weight: they are in any place of a program."""
        return not self.names and all(one.weight < 1 for one in self.words)

    @cached_property
    def turned_by(self) -> tuple[str, ...]:
        """Words that change the meaning of the last question, each once."""
        return tuple(dict.fromkeys(_TURNING.findall(self.text.split(FOLLOWS)[0].lower())))

    @cached_property
    def direct(self) -> re.Pattern[str] | None:
        """The pattern of a line that sets what the question wants to set (``theme = …``, or ``--theme`` as the group
        *once*), does *without* what it wants to do without, or defines what it asks the meaning of (``| theme | …``, *a
        theme is a …*); None for another question.
        """
        named = [re.escape(one.word.removesuffix("s")) for one in self.words if one.weight == 1]
        if not named:
            return None
        left_out = _WITHOUT.search(self.text.lower()) if self.asks in ("how to", "list", "whether") else None
        spared = [word for word in named if left_out and re.search(rf"\b{word}", left_out["what"])]
        if spared:
            return re.compile(rf"\bwithout\s(?:\w+\s){{0,2}}\W?(?:{'|'.join(spared)})", re.IGNORECASE)
        if self.asks in ("what is", "value"):
            name = rf"[*_`\"]*{'s?[ _-]?'.join(re.escape(one.word.removesuffix('s')) for one in self.words)}s?[*_`\"]*"
            cell = rf"\|\s*(?:[^|]*,\s*)?{name}(?:,[^|]*|\s\([^|]*)?\s*\|"
            means = r":\s|\s(?:[–—-]+|(?:is|are|means?)\s(?:an?|the|each|every|how|one|what))\s"
            return re.compile(rf"^\s*(?:{cell}|(?:[-*+]\s+)?(?:an?\s|the\s)?{name}(?:{means}))", re.IGNORECASE)
        if self.asks != "how to" or not _TO_SET & frozenset(re.findall(r"[a-z]+", self.text.lower())):
            return None
        name = rf"(?:\w+[-_.])?(?:{'|'.join(named)})s?(?:[-_.]\w+)?"
        return re.compile(rf"(?:^|[\s\"'`(])(?:{name}[\"'`]?\s*(?:=|:\s)\s*\S|(?P<once>--{name}\b))", re.IGNORECASE)

    @cached_property
    def proper(self) -> frozenset[str]:
        """The words that are written with capitals within the sentence: names of products, which nothing else means."""
        names = re.findall(r"(?<=[a-z,]\s)(?=\w*[a-z])\w*[A-Z]\w*", self.text)
        return frozenset(part for name in names for part in parts(name))

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """The stems of its words, each once."""
        return tuple(dict.fromkeys(one.term for one in self.words))

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Index pairs in `words` of neighbours in the question."""
        return tuple(
            (at, at + 1) for at in range(len(self.words) - 1) if self.words[at + 1].place - self.words[at].place == 1
        )


def read_subject(text: str) -> QuestionSubject:
    """Parse a question; one without words has an empty subject."""
    text = text[:MOST_CHARS].strip()
    # the last question decides the kind of answer; earlier ones add to the subject
    asked, *before = text.split(FOLLOWS)
    head = _question_of(asked)
    asks = _asks(head)
    names = tuple(names_in(text))
    words = _words_of(asked if asks == "task" else head, names, asks)
    return QuestionSubject(text, asks, _with_earlier_words(words, before, names), names)


def _with_earlier_words(
    words: tuple[SubjectWord, ...], before: Sequence[str], names: tuple[str, ...]
) -> tuple[SubjectWord, ...]:
    """The words of a question, then those of the questions before it that it does not repeat.

    Their words in -ed get little weight: a follow-up asks anew what is done to a thing.
    """
    for question in before:
        known = {one.term for one in words}
        # not a neighbour of any word before it
        first = max((one.place for one in words), default=-2) + 2
        words += tuple(
            replace(one, weight=LIGHT if one.word.endswith("ed") else one.weight, place=first + one.place)
            for one in _words_of(_question_of(question), names, _asks(_question_of(question)))
            if one.term not in known
        )
    return words


def _question_of(text: str) -> str:
    """The last sentence that ends in a question mark, or else the whole text."""
    asking = [one for one in _CLAUSE.split(text) if one.rstrip().endswith("?")]
    # a description may come before the question
    return asking[-1].strip() if asking else text


def _asks(head: str) -> Asks:
    lowered = " ".join(head.lower().replace("’", "'").split())
    if "?" not in head and len(lowered.split()) > LONG_WORDS:
        return "task"
    lowered = _SECOND.split(lowered)[0]
    for asks, frame in _FRAMES:
        if re.search(frame, lowered):
            return asks
    return "what is" if len(lowered.split()) <= 4 or "?" in head else "task"


def _words_of(head: str, names: tuple[str, ...], asks: Asks) -> tuple[SubjectWord, ...]:
    """The words of the subject: without stop words and words that only ask; each stem once."""
    parts_of_names = {part for name in names for part in (*parts(name), name.lower())}
    found: dict[str, SubjectWord] = {}
    framed: dict[str, SubjectWord] = {}
    head = without_idioms(head)
    meant = meanings_in(head, asks)
    for place, (word, term) in enumerate(_pieces(_ASKS_FOR.sub("", head))):
        # in `use_cache`, "use" is part of the subject; alone it only asks
        coded = word in parts_of_names
        if word in STOP_WORDS and not coded:
            continue
        means, weighs = ((), False) if coded else meant.get(word, ((), False))
        light = not (coded or weighs) and (means or word in _LIGHT_WORDS or (word.endswith("ly") and len(word) > 4))
        one = SubjectWord(word, term, LIGHT if light else 1.0, place, means)
        (framed if word in ASKING_ONLY and not coded else found).setdefault(one.term, one)
    # if only words that ask are left, they are the subject; the noun of "which level" is, if no other one is
    if found and all(one.weight < 1 for one in found.values()):
        asked = {stem(word) for word in _WHICH.findall(head.lower())}
        found = {term: one for term, one in framed.items() if term in asked} | found
    return tuple((found or framed).values())


def _pieces(head: str) -> list[tuple[str, str]]:
    """Lower-case words with their stems, in order; identifiers and hyphenated words split into parts, single letters
    left out.

    An identifier with a stop word, ``to_json``, stays whole: no text is matched by a *to*, and *json* alone is another
    thing.
    """
    found: list[tuple[str, str]] = []
    for word in re.findall(r"[\w'’+#-]+", head):
        # "don't" becomes "don", "user's" becomes "user"
        word = re.split("['’]", word.strip("'’-"))[0]
        coded = bool(re.search(r"[_A-Z]", word[1:])) or "_" in word
        pieces = [piece for piece in (parts(word) if coded else word.lower().split("-")) if len(piece) > 1]
        terms = terms_of(word) if _TOKEN.fullmatch(word) else ()
        if coded and terms and len(pieces) > 1 and not STOP_WORDS.isdisjoint(pieces):
            found.append((word.lower(), terms[-1]))
        else:
            found += [(piece, stem(piece)) for piece in pieces]
    return found


JOINED = 0.95
"""Strength of a match with two neighbours in the question that are one word in code."""
DERIVED = 0.7
"""Strength of another form of the word with a different stem: index, indexer; write, written."""
SHORT = 0.6
"""Strength of an abbreviation, or of the word without its negative prefix."""
ALIKE = 0.5
"""Strength of a match with a word near in meaning, for a word that the repository does not have: pause, delay."""
MOST_WEIGHT = 6.0

_SHORT_FORMS = """
argument arg args | attribute attr | authentication auth | authorization auth | background bg | button btn | buffer
buf | character char chr | command cmd | configuration cfg conf config | connection conn | constant const | context
ctx | count cnt | current cur | database db | definition def | destination dst dest | developer dev | dictionary dict
| difference diff | directory dir folder | document doc | element elem | environment env | error err | evaluate eval |
exception exc | execute exec | expression expr | extension ext | foreground fg | function fn func | header hdr |
identifier id ident | image img | implementation impl | index idx | information info | initialize init | integer int |
iteration iter | length len | library lib | maximum max | memory mem | message msg | minimum min | number num nr |
object obj | operation op | option opt | package pkg | parameter param | password passwd pwd | pointer ptr | position
pos | previous prev | process proc | program prog | property prop | reference ref | regular regex | repository repo |
request req | response res resp | result res | return ret | second sec | sequence seq | source src | standard std |
statistics stats | string str | temporary tmp temp | terminal term tty | text txt | utility util | value val |
variable var | vector vec | window win | colour color col | secret key token | statement stmt | specification spec |
synchronous sync | transaction tx | user usr
| setting config
"""


_IRREGULAR_FORMS = """
arise arose arisen | become became | begin began begun | break broke broken | bring brought | build built | buy bought |
catch caught | choose chose chosen | deal dealt | draw drew drawn | drive drove | eat ate eaten | fall fell fallen |
feed fed | fight fought | flee fled | forbid forbade forbidden | forget forgot forgotten | freeze froze frozen |
give gave given | grow grew grown | hang hung | hide hid hidden | hold held | keep kept | know knew known | lay laid |
lend lent | lose lost | mistake mistook mistaken | overdraw overdrew overdrawn | override overrode overridden |
overtake overtook overtaken | overwrite overwrote overwritten | pay paid | rebuild rebuilt | redraw redrew redrawn |
rewind rewound | rewrite rewrote rewritten | seek sought | sell sold | send sent | shake shook shaken |
shrink shrank shrunk | sleep slept | speak spoke spoken | spend spent | spin spun | stand stood | steal stole stolen |
strike struck | swear swore sworn | sweep swept | take took taken | teach taught | tear tore torn | tell told |
throw threw thrown | understand understood | undo undid undone | wake woke woken | withdraw withdrew withdrawn |
wear wore worn | write wrote written
"""
"""Verbs and their forms that no stemmer meets. Without those that are words of code themselves: *found* (not found),
*left* and *right*, *bound*, *read*, *set*, *ran* and *run*, *lead*, *saw*, *won*, *rose*.
"""
_VERB = {
    stem(form): stem(verb)
    for verb, *forms in (group.split() for group in " ".join(_IRREGULAR_FORMS.split()).split("|"))
    for form in (verb, *forms)
}
"""The stem of the verb of each form, itself too."""


def _short_forms() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for group in " ".join(_SHORT_FORMS.split()).split("|"):
        whole, *shorts = group.split()
        found.setdefault(stem(whole), set()).update(stem(short) for short in shorts)
    return {whole: frozenset(shorts) for whole, shorts in found.items()}


_SHORTS = _short_forms()
_TOKEN = re.compile(r"\w+")
_NEGATED = re.compile(r"^(?:un|in|non|dis)(?=[a-z]{5})")

Hit = tuple[int, float]
"""(index of the word in the subject, strength of the match, 0 to 1)."""


class Wording:
    """The words of one subject, and how texts match them."""

    def __init__(self, subject: QuestionSubject, share: Callable[[str], float]) -> None:
        """Prepare the words of a subject; ``share`` returns the share of all files that have a term."""
        self.subject = subject
        shares = [max(map(share, map(stem, one.means or (one.word,)))) or share(one.term) for one in subject.words]
        self.known = tuple(found > 0 for found in shares)
        """For each word, whether the repository has its stem."""
        self.weights = tuple(
            one.weight * (1.0 + min(MOST_WEIGHT, -math.log(found)) / 2 if found > 0 else 2.0)
            for one, found in zip(subject.words, shares, strict=True)
        )
        """The weight of each word: more for rare words, never 0."""
        self.total = sum(self.weights) or 1.0
        self._exact = {one.term: at for at, one in enumerate(subject.words) if not one.means}
        self._joined: dict[str, tuple[Hit, ...]] = {}
        words = [one.word for one in subject.words]
        for first, second in subject.pairs:
            pair = ((first, JOINED), (second, JOINED))
            # "files names" matches `filenames` too
            for joined in (words[first] + words[second], words[first].rstrip("s") + words[second]):
                self._joined.setdefault(stem(joined), pair)
        self._alike: dict[str, tuple[Hit, ...]] = {}
        for at, one in enumerate(subject.words):
            for term, strength in self._others(at, one):
                self._alike[term] = (*self._alike.get(term, ()), (at, strength))
        heavy = {at for at, one in enumerate(subject.words) if one.weight == 1}
        self.alike = tuple(t for t, hits in self._alike.items() if share(t) > 0 and heavy & {at for at, _ in hits})
        """The words of the repository near in meaning to those of the subject that it does not have."""
        self._may_say = may_have(_ways_of([*self._exact, *self._joined, *words, *self._alike]))
        self._seen: dict[str, tuple[Hit, ...]] = {}
        self._said: dict[str, tuple[Hit, ...]] = {}

    def _others(self, at: int, one: SubjectWord) -> list[tuple[str, float]]:
        """Other words that stand for one, with the strength of their match."""
        if one.means:
            return [*((stem(word), DERIVED) for word in one.means), (one.term, LIGHT)]
        found = () if self.known[at] or one.word in self.subject.proper else _near_in_meaning(one.term)
        return [(term, ALIKE) for term in found]

    def hits(self, term: str) -> tuple[Hit, ...]:
        """The words of the subject that a term matches, and how well."""
        found = self._seen.get(term)
        if found is None:
            found = self._seen[term] = self._find(term)
        return found

    def _find(self, term: str) -> tuple[Hit, ...]:
        exact = self._exact.get(term)
        if exact is not None:
            return ((exact, 1.0),)
        if term in self._joined:
            return self._joined[term]
        found = dict(self._alike.get(term, ()))
        for at, one in enumerate(self.subject.words):
            strength = _form_of(one.word, one.term, term)
            if strength > found.get(at, 0.0):
                found[at] = strength
        return tuple(found.items())

    def said_by(self, word: str) -> tuple[Hit, ...]:
        """The words of the subject that one raw word of a text matches; an identifier by its parts."""
        found = self._said.get(word)
        # most words of a text match nothing, and stemming them is the expensive part
        if found is None and not self._may_say.search(word):
            found = self._said[word] = ()
        elif found is None:
            best: dict[int, float] = {}
            terms = terms_of(word)
            for term in (
                # the last term is the whole identifier; only its parts are joined in pairs
                (*terms, *(first + second for first, second in pairwise(terms[:-1]))) if len(terms) > 2 else terms
            ):
                for at, strength in self.hits(term):
                    best[at] = max(best.get(at, 0.0), strength)
            found = self._said[word] = tuple(best.items())
        return found

    def in_text(self, text: str) -> dict[int, float]:
        """The best match of each word of the subject in a text."""
        best: dict[int, float] = {}
        said = self._said
        for word in _TOKEN.findall(text):
            found = said.get(word)
            # asked of every word of a hundred thousand lines: most are known, and match nothing
            for at, strength in self.said_by(word) if found is None else found:
                if strength > best.get(at, 0.0):
                    best[at] = strength
        return best

    def covered(self, said: Mapping[int, float]) -> float:
        """The share of the subject, by weight, that a match covers."""
        return sum(self.weights[at] * strength for at, strength in said.items()) / self.total


def _near_in_meaning(asked: str) -> list[str]:
    """The terms near in meaning to one, and their abbreviations; other forms of itself are `_form_of`'s."""
    found = [term for term in near(asked) if not term.startswith(asked) and not asked.startswith(term)]
    return sorted({*found, *(short for term in found for short in _SHORTS.get(term, ()))})


_BEGIN = 3
_STEMMED_ANEW = {"di": "dy", "li": "ly", "ti": "ty", "sk": "sk"}
"""Beginnings of stems and of words that have them: *dying*, *lying*, *tying*, *skies*."""


def may_have(terms: Iterable[str]) -> re.Pattern[str]:
    """A pattern that matches any raw text with one of some terms: stemming its words costs a hundred times as much."""
    begins = {
        begin
        for term in terms
        if term
        for begin in (
            term[: _BEGIN if len(term) > _BEGIN else 2],
            _STEMMED_ANEW.get(term[:2], term[:_BEGIN]),
        )
    }
    return re.compile("|".join(map(re.escape, sorted(begins))) or r"(?!)", re.IGNORECASE)


def _ways_of(terms: Iterable[str]) -> set[str]:
    """Some terms, and those of their other forms for `_form_of` that begin differently."""
    ways = set(terms)
    ways |= {short for term in ways for short in _SHORTS.get(term, ())}
    ways |= {whole for whole, shorts in _SHORTS.items() if not shorts.isdisjoint(ways)}
    verbs = {_VERB[term] for term in ways if term in _VERB}
    ways |= {form for form, verb in _VERB.items() if verb in verbs}
    return ways | {_NEGATED.sub("", term) for term in ways}


def union(rows: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """The combined match of several texts: the best match of each word."""
    best: dict[int, float] = {}
    for row in rows:
        for at, strength in row.items():
            if strength > best.get(at, 0.0):
                best[at] = strength
    return best


def _form_of(word: str, asked: str, term: str) -> float:
    """How strongly a term matches as another form of a word; 0.0 if it is none."""
    if term in _SHORTS.get(asked, ()) or asked in _SHORTS.get(term, ()):
        return SHORT
    if term in _VERB and _VERB[term] == _VERB.get(asked):
        return DERIVED
    shorter, longer = sorted((asked, term), key=len)
    if len(shorter) >= 5 and longer.startswith(shorter) and len(longer) - len(shorter) <= 4:
        return DERIVED
    if 3 <= len(term) <= 5 and len(word) >= len(term) + 4 and word.startswith(term):
        return SHORT * 0.8
    bare = _NEGATED.sub("", asked)
    if bare != asked and len(bare) >= 5 and (term.startswith(bare[:6]) or (bare.startswith(term) and len(term) > 4)):
        return SHORT
    return 0.0
