"""A filter of a list by words, for rows that have no filter language of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from helix_tui.core.ground.text import clean_line


class WordFilter:
    """Words that a row must all contain; ``key:word`` tests one field, ``-`` negates a word."""

    FIELDS: tuple[str, ...] = ()

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.words = text.lower().split()

    @property
    def problem(self) -> str:
        """What is not understood, in one sentence; empty if all is."""
        keys = (word.lstrip("-").partition(":") for word in self.words)
        strange = next((key for key, colon, _ in keys if colon and key.isalpha() and key not in self.FIELDS), "")
        return f"no field “{clean_line(strange, 20)}”; there are {', '.join(self.FIELDS)}" if strange else ""

    def pattern(self) -> re.Pattern[str] | None:
        """The text that the words highlight in the rows."""
        words = [word for word in self.words if word[0] != "-" and word.split(":")[0] not in self.FIELDS]
        return re.compile("|".join(map(re.escape, words)), re.IGNORECASE) if words else None

    def _accepts(self, fields: Mapping[str, str], text: str) -> bool:
        """Whether a row passes, by the text of its fields and that in which a plain word is looked for."""
        for word in self.words:
            negated = word.startswith("-") and len(word) > 1
            bare = word[1:] if negated else word
            key, colon, value = bare.partition(":")
            contained = value in fields[key].lower() if colon and key in fields else bare in text.lower()
            if contained is negated:
                return False
        return True
