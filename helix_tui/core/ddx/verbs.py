"""Which verbs and flags a ddx has: each verb asked by its own ``--help``.

A parent answers for a child that it does not have, and an unknown word under a known one has cobra print the
known one's help: only a usage line that names the verb is an answer. A help without any usage line says
nothing; it is taken at its word that it answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from helix_tui.core.ddx.names import VERBS
from helix_tui.core.ground.text import clean_line

Words = tuple[str, ...]

_ROW = re.compile(r"^\s+(?:-\w, )?(--[\w-]+)", re.MULTILINE)
_CODE = re.compile(r"^[ \t]*(\d{1,3})[ \t]+(\S.*)$", re.MULTILINE)
_ANYWHERE = re.compile(r"(?<![\w-])--\w[\w-]*")


@dataclass(frozen=True, slots=True)
class DdxVerb:
    """One deed's verb, as one ddx speaks it."""

    words: Words
    """After ``ddx``."""
    flags: frozenset[str] = frozenset()
    """Those that its help names; empty where it names none."""
    codes: tuple[tuple[int, str], ...] = ()
    """What its help says that it ends with, and when; empty where it says nothing of that."""

    def knows(self, flag: str) -> bool:
        """Whether its help names a flag."""
        return flag in self.flags

    def meaning(self, code: int) -> str:
        """What its help says of an exit code; empty where it says nothing."""
        return next((said for number, said in self.codes if number == code), "")

    def takes(self, flag: str) -> bool:
        """Whether it takes a flag, as far as anybody can tell: a help without any speaks against none."""
        return not self.flags or flag in self.flags


def read_verbs(ask: Callable[[Words], str | None]) -> dict[str, DdxVerb]:
    """The verb of each deed that a ddx can do, the newer where it speaks two.

    Args:
        ask: the help of a verb; None where it does not answer.
    """
    silent: dict[str, list[DdxVerb]] = {}
    found: dict[str, DdxVerb] = {}
    for deed, forms in VERBS.items():
        answers = [(words, text) for words in forms if (text := ask(words)) is not None]
        own = [DdxVerb(words, flags_in(text), codes_in(text)) for words, text in answers if _is_help_of(text, words)]
        # April has `ddx work` too, as another name of its loop; a later one's watches.
        own.sort(key=lambda verb: verb.words == ("work",) and not verb.knows("--watch"))
        if own:
            found[deed] = own[0]
        else:
            silent[deed] = [DdxVerb(words, flags_in(text)) for words, text in answers if "Usage:" not in text]
    # Where no help says whose it is: the older loop, and for the other deeds what goes with the loop.
    loop = found.get("drain") or next(iter(silent.get("drain", ())[-1:]), None)
    place = -1 if loop is not None and loop.words == VERBS["drain"][-1] else 0
    found |= {deed: verbs[place] for deed, verbs in silent.items() if verbs}
    return found if loop is None else found | {"drain": loop}


def flags_in(text: str) -> frozenset[str]:
    """The flags that a help lists; where it lists none, those that it mentions."""
    return frozenset(_ROW.findall(text.partition("Flags:")[2]) or _ANYWHERE.findall(text))


def codes_in(text: str) -> tuple[tuple[int, str], ...]:
    """The exit codes that a help lists, each with what it means."""
    listed = re.split(r"\n\s*\n", text.partition("Exit codes:\n")[2], maxsplit=1)[0]
    return tuple((int(code), clean_line(said, 200)) for code, said in _CODE.findall(listed))


def _is_help_of(text: str, words: Words) -> bool:
    """Whether a help text is the verb's own."""
    wanted = re.compile(r"^\s*\S+\s+" + r"\s+".join(map(re.escape, words)) + r"(?=\s|$)", re.MULTILINE)
    return wanted.search(text.partition("Usage:")[2]) is not None
