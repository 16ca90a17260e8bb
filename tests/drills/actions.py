"""What a monkey does, and what others do meanwhile: everything follows from a seed, keys as a terminal sends them."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.keys import REPLACED_KEYS, _get_unicode_name_from_key

from helix_tui.core.beads.query import FIELDS
from helix_tui.keymap import BY_ID, KEYS, keys_of, names
from helix_tui.screens import SCREENS, SHEETS
from tests.drills.projects import PROJECTS

Action = tuple[str, Any]

LEAVES = {"q", "ctrl+q", "ctrl+c"}
"""Keys that end the console, as they should."""

TYPED = [*"abcdefghijklmnoprstuvwxyz0123456789 :/.,-_#@!?()[]{}<>'\"\\éß字\u200d"]
TYPED += ["backspace", "delete", "ctrl+w"]
OFTEN = [*"123456ajk", "escape", "escape", "enter", "enter", "tab", "down", "up", "ctrl+p"]
SAID = [
    "which beads are ready?",
    "what failed last?",
    "why is the first one not next",
    "$5, 2M tokens, 10 attempts",
    "order:age status:open",
    "path:yes",
    "bob",
    "mine=status:open",
]
"""What a person types on a line: a question, a budget, an order, a name, a view."""
PLACES: Mapping[str, Sequence[tuple[str, ...]]] = {
    "queue": [("1",), ("1", "V"), ("1", "o"), ("1", "enter"), ("1", "a"), ("1", "v", "j", "j", "a")],
    "needs": [("!",), ("!", "enter"), ("!", "a"), ("!", "space", "j", "space"), ("!", "v", "j", "j"), ("!", "J", "Z")],
    "loop": [("2",), ("2", "enter", "]"), ("2", "enter", "[", "space"), ("2", "o"), ("L",), ("L", "b"), (">",)],
    "memory": [("3",), ("3", "]"), ("3", "a"), ("3", "E"), ("3", "s")],
    "ask": [("4",), ("4", "i"), ("1", "i"), ("4", "I"), ("4", "]")],
    "insights": [("5",), ("5", "]"), ("5", "enter")],
    "journal": [("6",), ("6", "j", "u"), ("6", "enter")],
    "help": [("?",), ("?", "/")],
    "columns": [("1", "C"), ("2", "C")],
    "tour": [("ctrl+t",), (":", "tour", "enter")],
}
"""How a person comes to a place, by the scope of its keys."""
PASTES = ["", "one line", "two\nlines\n", "\x1b[31mred[/]", "字" * 200, "x" * 20_000, "status:open", "\udcff"]
SIZES = [(1, 1), (2, 1), (1, 40), (8, 3), (20, 8), (40, 20)]
LARGE = [(60, 24), (80, 24), (120, 40), (140, 44), (160, 48), (100, 30), (300, 90)]

ODD = [
    "\x1b",
    "\x1b[",
    "\x1bO",
    "\x1b[<0;",
    "\x1b[<0;9999;9999M",
    "\x1b[<0;-3;0M",
    "\x1b[<35;5;5M",
    "\x1b[<64;5;5M",
    "\x1b[<65;5;5M",
    "\x1b[I",
    "\x1b[O",
    "\x1b[999999999u",
    "\x1b[55296u",
    "\x1b[1114111u",
    "\x1b[1;1R",
    "\x1b[?2026;1$y",
    "\x1b]0;title\x07",
    "\x00",
    "\udcff\udcfe",
]
"""Sequences cut off, reports that nobody asked for, bytes that are no text."""

POSTURES: Mapping[str, Mapping[str, Any]] = {
    "full": {},
    "pane": {"pane": True},
    "read-only": {"read_only": True},
    "ascii": {"ascii_only": True},
}


@dataclass(frozen=True, slots=True)
class Case:
    """What is run: everything but the actions follows from it."""

    seed: int
    project: str
    posture: str
    form: str = "inside"
    """``inside`` this process, or behind a ``terminal`` of its own."""


FORMS = ("inside", "terminal")


def cases(first: int, forms: Sequence[str] = FORMS) -> Sequence[Case]:
    """Each project in each posture and form, with seeds from ``first`` on."""
    names = [(project, posture, form) for posture in POSTURES for project in PROJECTS for form in forms]
    return [Case(first + number, *each) for number, each in enumerate(names)]


def actions_of(seed: int, count: int) -> list[Action]:
    """The actions of a seed."""
    rng = random.Random(seed)
    keys = sorted({key for entry in KEYS for key in entry.keys.split(",")} - LEAVES)
    actions: list[Action] = []
    while len(actions) < count:
        kind = rng.random()
        if rng.random() < 0.5:
            actions.append(("bound", rng.random()))
        elif rng.random() < 0.004:
            actions.append(("stop", None))
        elif kind < 0.06:
            actions += _stay(rng)
        elif kind < 0.10:
            actions += _line(rng)
        elif kind < 0.50:
            actions.append(("key", rng.choice(keys)))
        elif kind < 0.76:
            actions.append(("key", rng.choice(OFTEN)))
        elif kind < 0.89:
            actions.append(("key", rng.choice(TYPED)))
        elif kind < 0.95:
            actions.append(("click", (rng.random(), rng.random(), rng.randint(1, 2))))
        elif kind < 0.965:
            actions.append(("paste", rng.choice(PASTES)))
        elif kind < 0.975:
            actions.append(("text", rng.choice(ODD)))
        elif kind < 0.98:
            actions += [("change", rng.getrandbits(32)) for _ in range(rng.choice([1, 1, 2, 6]))]
        elif kind < 0.985:
            actions += [("size", rng.choice(SIZES + LARGE)) for _ in range(20)]
        else:
            actions += [("size", rng.choice(SIZES)), ("size", rng.choice(LARGE))]
        if rng.random() < 0.25:
            actions.append(("rest", rng.random() < 0.2))
    return actions


def _stay(rng: random.Random) -> Iterator[Action]:
    """Go somewhere as a person goes, and use the keys that are told there for a while."""
    place = rng.choice(sorted(PLACES))
    way = rng.choice(PLACES[place])
    scopes = {place, "list", "panes", "beads", "form"} if place != "tour" else {"tour", "app"}
    every, own = (
        sorted({name for entry in keys_of(some) for name in names(entry.keys)} - LEAVES) for some in (scopes, {place})
    )
    yield "key", "escape"
    for word in way:
        yield ("key", word) if word in _WAYS else ("paste", word)
        yield "rest", True
    for _ in range(rng.randint(4, 24)):
        kind = rng.random()
        if kind < 0.15:
            yield from (("paste", rng.choice(SAID)), ("key", rng.choice(["enter", "ctrl+o"])))
        else:
            yield "key", rng.choice(["enter", "enter", "escape"] if kind < 0.3 else own if kind < 0.7 else every)
        if kind > 0.6:
            yield "rest", kind > 0.8


def _line(rng: random.Random) -> Iterator[Action]:
    """Open what is typed into, from the table of keys, and type a query, a command or a name, key by key."""
    opened = rng.choice(["find.filter", "go.to", "go.palette", "list.views", "needs.assign", "ask.new", "change.label"])
    key = BY_ID[opened]
    yield "key", "escape"
    yield "key", names(key.keys)[0]
    yield "rest", rng.random() < 0.3
    said = rng.choice(_queries(rng) if opened in ("find.filter", "list.views") else _COMMANDS)
    said = said[: rng.randint(1, len(said))] if rng.random() < 0.4 else said
    yield from (("key", letter) for letter in said)
    if rng.random() < 0.3:
        yield "key", rng.choice(["down", "up", "tab", "backspace", "ctrl+w", "home"])
    yield "key", rng.choice(["enter", "enter", "enter", "escape", "ctrl+o", "tab"])
    yield "rest", rng.random() < 0.3


def _queries(rng: random.Random) -> list[str]:
    """A few filters, of the fields that there are; some are cut, turned or of the wrong kind."""
    chosen = [rng.choice([*FIELDS]) for _ in range(3)]
    values = ["yes", "no", "1", "*", "open", "2d", "-", "(", '"a b', "area:*"]
    made = [FIELDS[name].example if rng.random() < 0.6 else f"{name}:{rng.choice(values)}" for name in chosen]
    return [made[0], f"-{made[1]}", " ".join(made), f"name={made[2]}"]


_COMMANDS = sorted({*(entry.label for entry in KEYS), *SCREENS, *SHEETS, "tour", "screenshot", "theme", *SAID})
"""What can be named to go to it or do it."""


_WAYS = {*"123456!>?:/abCEIiJjLosuVvZ[]", "enter", "space", "ctrl+t"}
"""Keys of the ways; what else stands there is typed."""


def _sequences() -> Mapping[str, str]:
    found = {"escape": "\x1b[27u"}
    for sequence, named in ANSI_SEQUENCES_KEYS.items():
        if isinstance(named, tuple) and len(named) == 1:
            found.setdefault(named[0].value, sequence)
    return found


_SEQUENCES = _sequences()

BOUND = sorted({name for key in KEYS for name in names(key.keys)} - LEAVES)
"""All keys that are bound somewhere, for a console that cannot be asked which screen is open."""


def bound_key(share: float, open_keys: Sequence[str] = BOUND) -> Action:
    """One of the keys that do something here; ``share`` chooses it."""
    sendable = {*BOUND, *_SEQUENCES}
    keys = [key for key in open_keys if key not in LEAVES and (len(key) == 1 or key in sendable)] or BOUND
    return "key", keys[int(share * len(keys))]


def sent(action: Action, size: tuple[int, int]) -> str:
    """What a terminal of that size sends for it; empty for what is no input."""
    kind, value = action
    if kind == "key":
        return str(value) if len(value) == 1 else _SEQUENCES.get(value) or _character(value)
    if kind == "paste":
        return f"\x1b[200~{value}\x1b[201~"
    if kind == "click":
        across, down, times = value
        at = f"{int(across * size[0]) + 1};{int(down * size[1]) + 1}"
        return f"\x1b[<0;{at}M\x1b[<0;{at}m" * int(times)
    return str(value) if kind == "text" else ""


def _character(key: str) -> str:
    """The character of a key that has a name, e.g. ``full_stop``."""
    return unicodedata.lookup(_get_unicode_name_from_key(REPLACED_KEYS.get(key, key)))


def shorten(actions: Sequence[Action], fails: Callable[[Sequence[Action]], bool], most: int = 80) -> list[Action]:
    """The fewest of the actions, in their order, that still fail: delta debugging, in so many tries."""
    kept, parts, tries = list(actions), 2, 0
    while len(kept) > 1 and tries < most:
        size = max(1, -(-len(kept) // parts))
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            tries += 1
            if fewer and fails(fewer):
                kept, parts = fewer, max(2, parts - 1)
                break
            if tries >= most:
                break
        else:
            if size == 1:
                break
            parts = min(len(kept), parts * 2)
    return kept
