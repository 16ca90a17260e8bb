"""Read the verbs, flags and exit codes that a ddx names in its help.

Each verb is read by its own ``--help``: for an unknown subcommand cobra prints the parent's help, so only a usage line
that names the verb counts. A help text without any usage line is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.core.ddx.names import VERBS, DdxAction
from helix_tui.core.ground.text import clean_line

if TYPE_CHECKING:
    pass


Words = tuple[str, ...]


_ROW = re.compile(r"^\s+(?:-\w, )?(--[\w-]+)", re.MULTILINE)


_CODE = re.compile(r"^[ \t]*(\d{1,3})[ \t]+(\S.*)$", re.MULTILINE)


_ANYWHERE = re.compile(r"(?<![\w-])--\w[\w-]*")


class DdxVerb(Struct, frozen=True):
    """The verb of one action in one ddx."""

    words: Words
    """Arguments after ``ddx``."""
    flags: frozenset[str] = frozenset()
    """The flags in its help; empty if there are none."""
    codes: tuple[tuple[int, str], ...] = ()
    """The exit codes in its help, with their meanings; empty if there are none."""
    heeds_signals: bool = False
    """Whether its help describes SIGINT; else SIGINT just kills it."""

    def knows(self, flag: str) -> bool:
        """Whether its help names a flag."""
        return flag in self.flags

    def meaning(self, code: int) -> str:
        """What its help says about an exit code, or ""."""
        return next((said for number, said in self.codes if number == code), "")

    def takes(self, flag: str) -> bool:
        """Whether it may take a flag; a help text without flags excludes none."""
        return not self.flags or flag in self.flags


def read_verbs(ask: Callable[[Words], str | None]) -> dict[DdxAction, DdxVerb]:
    """The verb of each action that a ddx supports, the newer one of two.

    Args:
        ask: returns the help of a verb, or None.
    """
    silent: dict[DdxAction, list[DdxVerb]] = {}
    found: dict[DdxAction, DdxVerb] = {}
    for action, forms in VERBS.items():
        answers = [(words, text) for words in forms if (text := ask(words)) is not None]
        # a parent answers for an unknown verb: only a help text that names the verb is its own
        own = [
            DdxVerb(words, flags_in(text), codes_in(text), "SIGINT" in text)
            for words, text in answers
            if _is_help_of(text, words)
        ]
        # April also has `ddx work`, as an alias of its loop; later ones watch.
        own.sort(key=lambda verb: verb.words == ("work",) and not verb.knows("--watch"))
        if own:
            found[action] = own[0]
        else:
            silent[action] = [DdxVerb(words, flags_in(text)) for words, text in answers if "Usage:" not in text]
    # If no help text is decisive: the older loop, and for other actions what goes with the loop.
    loop = found.get("drain") or next(iter(silent.get("drain", ())[-1:]), None)
    place = -1 if loop is not None and loop.words == VERBS["drain"][-1] else 0
    found |= {action: verbs[place] for action, verbs in silent.items() if verbs}
    return found if loop is None else found | {"drain": loop}


def flags_in(text: str) -> frozenset[str]:
    """The flags that a help text lists, or else mentions."""
    return frozenset(_ROW.findall(text.partition("Flags:")[2]) or _ANYWHERE.findall(text))


def codes_in(text: str) -> tuple[tuple[int, str], ...]:
    """The exit codes that a help text lists, with their meanings."""
    listed = re.split(r"\n\s*\n", text.partition("Exit codes:\n")[2], maxsplit=1)[0]
    return tuple((int(code), clean_line(said, 200)) for code, said in _CODE.findall(listed))


def _is_help_of(text: str, words: Words) -> bool:
    """Whether a help text is the verb's own."""
    wanted = re.compile(r"^\s*\S+\s+" + r"\s+".join(map(re.escape, words)) + r"(?=\s|$)", re.MULTILINE)
    return wanted.search(text.partition("Usage:")[2]) is not None
