"""The filter language: ``status:open -label:docs p<=1 ready:yes "two words"``.

Terms are joined by *and*; ``-`` before a term negates it; a comma inside a value means *or*. A term that cannot be
parsed is searched for as text and reported in ``Filter.problem``: a typing error never hides rows silently. What can be
filtered defines its fields, each one `Field`, and what a word without a field searches.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from helix_tui.core.ground.text import clean_line

Row = TypeVar("Row")
Around = TypeVar("Around")
"""What a row is judged by, beside itself."""

Test = Callable[[Row, Around], bool]

_TOKEN = re.compile(r'(-?)(?:([A-Za-z_-]+)(<=|>=|:|=|<|>))?("[^"]*"?|[^\s"]*)')
_OPERATOR = re.compile(r"-?[a-z_-]+(<=|>=|:|<|>)")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d|w)\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TRUE = frozenset({"yes", "y", "true", "1"})
_FALSE = frozenset({"no", "n", "false", "0"})
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    ":": operator.eq,
}


class Field(Struct, Generic[Row, Around], frozen=True):
    """One field of the language."""

    help: str
    example: str
    """A valid term."""
    make: Callable[[str, str], Test[Row, Around] | None]
    """The test of an operator and a value; None while the value is still being typed.

    Raises:
        ValueError: the value means nothing; the message says what would.
    """
    values: Callable[[Around], Iterable[tuple[str, str]]] = lambda around: ()
    """The values offered while one types, each with its meaning."""
    ordered: bool = False
    """Whether its values can be compared with ``<`` and ``>``."""
    turned: bool = False
    """Whether a minus before a value turns it round."""


class Filter(Struct, Generic[Row, Around], frozen=True):
    """A parsed filter. The empty one matches everything."""

    text: str
    tests: tuple[Test[Row, Around], ...] = ()
    """One per term; if empty, every row passes."""
    problem: str = ""
    """What could not be parsed and what would be, in one sentence; else empty."""
    words: tuple[str, ...] = ()
    """Plain search words in lower case, for a list to highlight."""

    def matches(self, row: Row, around: Around) -> bool:
        """Whether a row matches every term."""
        return all(test(row, around) for test in self.tests)

    def passing(self, rows: Iterable[Row], around: Around) -> tuple[Row, ...]:
        """The rows that match."""
        return tuple(row for row in rows if self.matches(row, around))


class Completion(Struct, frozen=True):
    """A completion: ``text`` replaces the input from ``replace_from`` to the cursor."""

    text: str
    replace_from: int
    help: str


def parse(
    text: str, fields: Mapping[str, Field[Row, Around]], word: Callable[[str], Test[Row, Around]]
) -> Filter[Row, Around]:
    """Parse a filter; never fails."""
    tests: list[Test[Row, Around]] = []
    words: list[str] = []
    problem = ""
    for minus, name, sign, value in terms(text):
        try:
            test = _term(fields, word, name, sign, value)
        except ValueError as error:
            problem = problem or str(error)
            test = word(f"{name}{sign}{value}".lower())
        if test is None:
            continue  # a term that is still being typed
        if not name and not minus:
            words.append(value.lower())
        tests.append(_negated(test) if minus else test)
    return Filter(text, tuple(tests), problem, tuple(words))


def terms(text: str) -> Iterable[tuple[str, str, str, str]]:
    """The terms of a filter: minus, field, operator and value, each "" where there is none."""
    for token in _TOKEN.finditer(text):
        minus, name, sign, value = token.groups()
        if token.group().strip():
            yield minus, (name or "").lower(), sign or "", value.strip('"')


def _term(
    fields: Mapping[str, Field[Row, Around]],
    word: Callable[[str], Test[Row, Around]],
    name: str,
    sign: str,
    value: str,
) -> Test[Row, Around] | None:
    if not name:
        return word(value.lower()) if value else None
    field = fields.get(name)
    if field is None:
        raise ValueError(f"no field “{clean_line(name, 20)}”; there are {', '.join(fields)}")
    if not value:
        return None
    if sign not in (":", "=") and not field.ordered:
        raise ValueError(f"“{name}” cannot be compared; write {name}:{clean_line(value, 20)}")
    return field.make(sign, value)


def complete(
    text: str, cursor: int, fields: Mapping[str, Field[Row, Around]], around: Around, limit: int = 12
) -> list[Completion]:
    """Completions of the term at the cursor, the likeliest first."""
    start = max(text.rfind(" ", 0, cursor), -1) + 1
    term = text[start:cursor]
    if term.startswith("-"):
        start, term = start + 1, term[1:]
    name, colon, typed = term.partition(":")
    if not colon:
        begun = [(f"{name}{_operator(field)}", field.help) for name, field in fields.items()]
        found = [Completion(key, start, help_) for key, help_ in begun if key.startswith(term)]
        return found[:limit] if term else found
    field = fields.get(name.lower())
    if field is None:
        return []
    # a comma means or: complete the last value
    typed = typed.rpartition(",")[2]
    typed = typed.removeprefix("-") if field.turned else typed
    values = [(value, help_) for value, help_ in field.values(around) if value.lower().startswith(typed.lower())]
    return [
        Completion(f'"{value}"' if " " in value else value, cursor - len(typed), help_)
        for value, help_ in values[:limit]
        if value != typed
    ]


def _operator(field: Field[Row, Around]) -> str:
    """The operator with which a field is mostly used: that of its example."""
    match = _OPERATOR.match(field.example)
    return match[1] if match is not None else ":"


def _negated(test: Test[Row, Around]) -> Test[Row, Around]:
    return lambda row, around: not test(row, around)


# --- kinds of fields --------------------------------------------------------------------------------------


def alternatives(value: str) -> tuple[str, ...]:
    """The alternatives of a value, in lower case."""
    return tuple(part.lower() for part in value.split(",") if part)


def one_of(read: Callable[[Row, Around], str]) -> Callable[[str, str], Test[Row, Around]]:
    """A text that is one of the alternatives."""

    def make(sign: str, value: str) -> Test[Row, Around]:
        wanted = alternatives(value)
        return lambda row, around: read(row, around).lower() in wanted

    return make


def part_of(read: Callable[[Row, Around], str]) -> Callable[[str, str], Test[Row, Around]]:
    """A text that contains one of the alternatives."""

    def make(sign: str, value: str) -> Test[Row, Around]:
        wanted = alternatives(value)

        def test(row: Row, around: Around) -> bool:
            have = read(row, around).lower()
            return any(part in have for part in wanted)

        return test

    return make


def yes_no(read: Test[Row, Around]) -> Callable[[str, str], Test[Row, Around] | None]:
    """A truth: ``yes`` or ``no``."""

    def make(sign: str, value: str) -> Test[Row, Around] | None:
        if value.lower() in _TRUE:
            return read
        if value.lower() in _FALSE:
            return _negated(read)
        if "yes".startswith(value.lower()) or "no".startswith(value.lower()):
            return None  # still being typed
        raise ValueError(f"“{clean_line(value, 20)}” is neither yes nor no")

    return make


def compared(
    read: Callable[[Row, Around], float | None], parse_value: Callable[[str], float]
) -> Callable[[str, str], Test[Row, Around]]:
    """A number, which is compared; an unknown one matches nothing."""

    def make(sign: str, value: str) -> Test[Row, Around]:
        wanted, compare = parse_value(value), _COMPARE[sign]
        return lambda row, around: (have := read(row, around)) is not None and compare(have, wanted)

    return make


def whole_number(value: str) -> float:
    """A count or a priority (``P1``)."""
    return _number(int, value.lower().removeprefix("p"), value)


def number(value: str) -> float:
    """A number or a sum (``$2``)."""
    return _number(float, value.lstrip("$"), value)


def _number(read: Callable[[str], float], text: str, value: str) -> float:
    try:
        return read(text)
    except ValueError:
        raise ValueError(f"“{clean_line(value, 20)}” is not a number") from None


def seconds(value: str) -> float:
    """The seconds of a duration like ``90m`` or ``3d``."""
    match = _SPAN.match(value.lower())
    if match is None:
        raise ValueError(f"“{clean_line(value, 20)}” is not a duration; write it like 30m, 12h or 3d")
    return float(match[1]) * _SECONDS[match[2]]
