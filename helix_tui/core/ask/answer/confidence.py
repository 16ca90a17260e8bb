"""Decide how an answer is labelled: whether its passages answer the question, are only evidence, or are about something
else.

The thresholds were read off questions with facts written by hand; bench/ask.md has how often each label is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from helix_tui.core.ask.answer.branches import is_condition
from helix_tui.core.ask.answer.passages import MOST_TELLING, Passage
from helix_tui.core.ask.records import Library
from helix_tui.core.ask.retrieval.subject import ALIKE, Asks, QuestionSubject, Wording

AnswerKind = Literal["answered", "evidence found", "not found"]
"""Labels of an answer: a passage answers the question, something relevant was found, or nothing."""

TOGETHER = 0.6
"""Minimum share of the subject in one passage for a list, instructions or call sites. On bench/ask_facts.jsonl 44 of 50
such answers are right.
"""
VALUED = 0.54
"""Minimum share on the line with the value: 5 of 6 such answers are right."""
VALUE_NAMED = 0.2
"""Or minimum share in the name of the first passage: what a definition is named after has its value there. Of the 29
"answered" by this alone 25 are right, 24 of 26 without this repository's; from .1 to .25 83 to 86 %.
"""
SURE = 1.8
"""Score from which the best passage answers a question, except for a meaning, which a quoted line must define. 6 of 7
such answers are right.
"""
BOTH = 0.95
"""Minimum share in one passage if two things are asked for: with less, one of them is missing."""
COMPARED = 0.8
"""Minimum share in one passage for a comparison: with less, one of the two things is missing. Of 3 such answers 2 were
wrong.
"""
ITEMS, LISTED = 0.5, 0.5
"""Minimum share of the best passage's lines that are items or cases, for "list", and of the subject on one line of it:
what a list is of is said by one line, and statements that only look like items have its words here and there. Of the 6
such answers below it 3 were right.
"""
AGREED = 1.2
"""Minimum `agreement` of the quoted passages with the ranking of files, which knows other things: names, calls,
digests, history. Below it a passage must cover `ALONE` of the subject. Of 272 "answered" on 532 questions 228 were
right, of the 27 that this lowers 13; thresholds of 1.0 and 1.35, and shares of .85 and .95, do about as well.
"""
ALONE = 0.9
LEAD = 0.2
"""Lead of the best passage over the second from which it answers a question that one place answers, whatever share it
covers: code says a condition in other signs and a reason in other words, and of several places that match equally well
the one that is asked about is as likely another. Of 36 branches that lead so far 33 are right, of 5 reasons that
nothing else calls answered 5, of 16 places (also by `SURE`) 12.
"""
_ONE_PLACE: frozenset[Asks] = frozenset(("what happens", "where", "why"))
AHEAD, AHEAD_OF_SECOND = 0.5, 0.1
"""Leads over the fourth and the second that are as good: two branches of one place are near each other. Of 10 more
"answered" 10 are right, with leads of .4 and .6 over the fourth 15 of 19 and 8 of 8.
"""
LEAST_LED = 1.5
"""Score below which even such a lead is none of an answer: the others say even less. No right one is below 1.6."""
LEAST_SCORE = 1.0
"""Minimum score of the best passage for instructions and by a lead over the fourth: below it, words of the question
that stand in one place by chance are called an answer. Of 6 such answers 3 were right.
"""
REASON_LEAD = 0.15
"""Lead over the fourth passage from which "why", "how it works" and "whether" are answered: where four say the same
words, none of them says why, or how, or that it is so; and a reason need not repeat the words of what it is for. Of 46
answers by it 42 are right, of 33 nearer ones 15.
"""
_BY_LEAD: frozenset[Asks] = frozenset(("why", "how it works", "whether"))
LEAST = 0.2
"""Share of the subject below which even the best passage counts as not mentioning it."""
LACKING = 0.5
LACKING_THINGS = 0.25
"""Minimum weighted share of the subject in words without evidence for it to count as not mentioned; `LACKING_THINGS`
for things (`_is_thing`), as an action may be phrased in many ways.
"""
_NUMERALS = frozenset(
    ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "hundred", "thousand", "million")
)
"""Numbers in words: code writes them in digits, and nobody asks whether a *two* is there."""
_TESTS = re.compile(r"test|fixtur|mock|exampl|data")
_BY_SHARE: frozenset[Asks] = frozenset(("how to", "list", "who uses", "why"))
_IN_WORDS: frozenset[Asks] = frozenset(("how to", "where"))
"""Kinds that a word that turns a question must be quoted for: a step or a place without it is that of the plain thing.
A branch, a reason or an item says *again* or *without* by a loop or a condition: of 13 such answers 12 are right.
"""


def lacking(library: Library, subject: QuestionSubject, passages: Sequence[Passage]) -> tuple[str, ...]:
    """The words of a subject without evidence, if they are too large a share for an answer; else empty.

    Words found only in tests or data, which are full of invented examples, have no evidence unless the question is
    about them. Words in -ed are not counted: an action may be phrased in many ways; nor are numbers. A word near in
    meaning counts in the quoted passages only: some text of a repository has one for nearly every word.
    """
    wording = Wording(subject, library.share)
    said: set[int] = set()
    made_up: set[int] = set()
    for rank, one in enumerate(one for one in passages if not one.tests):
        into = made_up if one.span.role in ("test", "data") and not any(map(_TESTS.match, subject.terms)) else said
        least = 0.0 if rank < MOST_TELLING else ALIKE
        found_in = wording.in_text(f"{one.span.header}\n{one.text}")
        into.update(at for at, strength in found_in.items() if strength > least)
    found = [
        at
        for at, one in enumerate(subject.words)
        if one.weight == 1
        and not one.word.endswith("ed")
        and one.word not in _NUMERALS
        and not (subject.asks == "what happens" and is_condition(one.word))
        and at not in said
        and (at in made_up or not wording.known[at])
    ]
    things = [at for at in found if _is_thing(subject.words[at].word, subject)]
    if (
        sum(wording.weights[at] for at in found) < LACKING * wording.total
        and sum(wording.weights[at] for at in things) < LACKING_THINGS * wording.total
    ):
        return ()
    return tuple(subject.words[at].word for at in found)


def _is_thing(word: str, subject: QuestionSubject) -> bool:
    """Whether a word of a question follows an article or similar word, or is part of a name written with capitals.

    One word may come between, *a bar chart*, but not before a word in -s, which may be a verb.
    """
    between = "" if word.endswith("s") else r"(?:[\w-]+\s+)?"
    article = rf"\b(?:the|an?|our|which|what|many|all|each|every|any)\s+{between}{re.escape(word)}\b"
    return word in subject.proper or bool(re.search(article, subject.text, re.I))


def agreement(passages: Sequence[Passage], ranked: Iterable[str]) -> float:
    """How far the quoted passages are from the files that rank first: the sum of 1 / rank of their files, 0 to 4."""
    ranks = {file: rank for rank, file in reversed([*enumerate(ranked, 1)])}
    telling = [one for one in passages if not one.tests][:MOST_TELLING]
    return sum(1 / ranks[one.span.file] for one in telling if one.span.file in ranks)


def kind_of_answer(
    asks: Asks,
    passages: Sequence[Passage],
    *,
    two_things: bool = False,
    turned_by: Sequence[str] = (),
    one_word: bool = False,
    of_little_meaning: bool = False,
    agreed: float = AGREED,
) -> AnswerKind:
    """The label of an answer from its passages; bench/ask.md gives how often each is right.

    Args:
        asks: the kind of answer asked for.
        passages: the passages, best first.
        two_things: whether the question asks for something else too.
        turned_by: words that change the meaning of the question.
        one_word: whether its subject has at most one word of full weight, and no name.
        of_little_meaning: whether its subject has no word of full weight, and no name.
        agreed: the `agreement` of the passages with the ranking of files.
    """
    telling = [one for one in passages if not one.tests][:MOST_TELLING]
    if not telling or max(one.together for one in telling) < LEAST:
        return "not found"
    # the next four rules only lower the label: they come before a decisive score
    quoted = " ".join(one.text for one in telling).lower()
    if asks in _IN_WORDS and not all(re.search(rf"\b{re.escape(word)}\b", quoted) for word in turned_by):
        return "evidence found"
    if of_little_meaning:
        return "evidence found"
    if two_things and max(one.together for one in telling) < BOTH:
        return "evidence found"
    if asks == "list" and (telling[0].form < ITEMS or telling[0].best_line < LISTED):
        return "evidence found"
    # a word of the subject is in every name of its module, so neither names nor the score tell what it means
    if asks == "what is":
        return "answered" if any(one.defines for one in telling) else "evidence found"
    if asks in _ONE_PLACE and _leads(asks, telling):
        return "answered"
    # where several branches say much the same, the one that is asked about is as likely beside them: 54 of 92 are right
    if asks == "what happens":
        return "evidence found"
    if agreed < AGREED and max(one.together for one in telling) < ALONE:
        return "evidence found"
    if (asks == "how to" or asks in _BY_LEAD) and telling[0].score < LEAST_SCORE:
        return "evidence found"
    if asks in _BY_LEAD and len(telling) == MOST_TELLING:
        return "answered" if telling[0].score - telling[-1].score >= REASON_LEAD else "evidence found"
    if telling[0].score >= SURE:
        return "answered"
    # one word is covered together wherever it occurs
    if one_word:
        return "evidence found"
    if asks in _BY_SHARE:
        sure = max(one.together for one in telling) >= TOGETHER
    elif asks == "compare":
        sure = max(one.together for one in telling) >= COMPARED
    else:
        named = max(one.valued for one in telling) >= VALUED or telling[0].named >= VALUE_NAMED
        sure = asks == "value" and named
    return "answered" if sure else "evidence found"


def _leads(asks: Asks, telling: Sequence[Passage]) -> bool:
    """Whether the best passage is far enough ahead of the others to be the one place that is asked about."""
    if len(telling) < 2:
        return False
    second, last = (telling[0].score - telling[at].score for at in (1, -1))
    if asks != "what happens":
        return second >= LEAD
    far = second >= AHEAD_OF_SECOND and last >= AHEAD and len(telling) == MOST_TELLING
    return telling[0].score >= LEAST_LED and (second >= LEAD or far)
