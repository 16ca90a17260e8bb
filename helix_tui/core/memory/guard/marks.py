"""What the scanner says of a stored text, kept beside it, so that asking again costs nothing.

The scanner is loaded only where a text has to be read: a hook of Claude Code that finds all of it marked does
without.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

RULES = 2
"""Raised whenever the scanner's rules change: verdicts of other rules are not believed."""

ORDER, SECRET = "order: ", "secret: "
"""What a rule is about, before its name."""


def digest(*texts: str) -> str:
    """What a verdict is kept under: the rules and the texts that they read."""
    return f"{RULES}:{zlib.crc32(chr(0).join(texts).encode('utf-8', 'replace')):08x}"


def verdict_of(texts: tuple[str, str, str], known: object, rules: object) -> str | None:
    """The rules that were met when these very texts were read, or None where they have not been read."""
    return str(rules or "") if known == digest(*texts) else None


def verdict(*texts: str) -> str:
    """The rules that texts meet, each by itself and all together; nothing where they are clean."""
    found = [rule for text in (*texts, " ".join(texts[:2])) for rule in screen(text)[0]]
    return "; ".join(dict.fromkeys(found))


@lru_cache(maxsize=4_096)
def screen(text: str) -> tuple[tuple[str, ...], str]:
    """(rules that a text meets, the text as it may be shown)."""
    from helix_tui.core.memory.guard.scanner import scan

    found = scan(text)
    if found.clean:
        return (), text
    rules = tuple(
        dict.fromkeys((ORDER if each.kind == "instruction" else SECRET) + each.rule for each in found.findings)
    )
    return rules, withheld(rules) if found.withheld else found.text


def withheld(rules: tuple[str, ...]) -> str:
    """What stands in place of a text that gives orders."""
    told = [rule.removeprefix(ORDER) for rule in rules if rule.startswith(ORDER)]
    return f"[withheld: {', '.join(told)}]"
