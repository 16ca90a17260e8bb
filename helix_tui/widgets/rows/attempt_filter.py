"""A filter on runs and attempts: words, fields, and what lights up in the rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.text import clean_line
from helix_tui.widgets.outcomes import look_of


class AttemptFilter:
    """Words that an attempt must hold, all of them; ``key:word`` asks one field, ``-`` turns a word round."""

    FIELDS = ("status", "bead", "harness", "model")

    def __init__(self, text: str, beads: Mapping[str, Bead] | None = None) -> None:
        self.text = text
        self.words = text.lower().split()
        self._beads = beads

    @property
    def problem(self) -> str:
        """What is not understood, in one sentence; empty when all is."""
        keys = (word.lstrip("-").partition(":") for word in self.words)
        strange = next((key for key, colon, _ in keys if colon and key.isalpha() and key not in self.FIELDS), "")
        return f"no field “{clean_line(strange, 20)}”; there are {', '.join(self.FIELDS)}" if strange else ""

    def matches(self, attempt: Attempt) -> bool:
        """Whether the attempt passes."""
        return all(self._has(attempt, word) for word in self.words)

    def matches_run(self, run: Run) -> bool:
        """Whether something that runs passes; its status is ``running``, ``silent`` or ``gone``."""
        said = {"alive": "running", "silent": "running silent", "dead": "gone"}[run.verdict]
        shown = Attempt(run.attempt_id or "", run.bead_id or "", status=said, harness=run.harness, model=run.model)
        return self.matches(shown)

    def _has(self, attempt: Attempt, word: str) -> bool:
        wanted = not word.startswith("-") or len(word) == 1
        word = word if wanted else word[1:]
        key, colon, value = word.partition(":")
        if colon and key in self.FIELDS:
            return (value in self._field(attempt, key).lower()) is wanted
        held = " ".join(self._field(attempt, name) for name in self.FIELDS)
        return (word in f"{held} {attempt.attempt_id}".lower()) is wanted

    def _field(self, attempt: Attempt, name: str) -> str:
        if name == "status":
            return f"{look_of(attempt).word} {attempt.status}"
        if name == "bead":
            bead = (self._beads or {}).get(attempt.bead_id)
            return f"{attempt.bead_id} {bead.title}" if bead is not None else attempt.bead_id
        return attempt.harness if name == "harness" else attempt.model

    def pattern(self) -> re.Pattern[str] | None:
        """What the words light up in the rows."""
        words = [word for word in self.words if word[0] != "-" and word.split(":")[0] not in self.FIELDS]
        return re.compile("|".join(map(re.escape, words)), re.IGNORECASE) if words else None

    def ways(self, start: str, attempts: Iterable[Attempt]) -> list[tuple[str, str]]:
        """Ways to go on with the word that is being typed, with what each is."""
        key, colon, value = start.lower().partition(":")
        if not colon:
            return [(f"{name}:", "") for name in self.FIELDS if start and name.startswith(key)]
        if key not in ("status", "harness", "model"):
            return []
        counts = Counter(getattr(attempt, key) for attempt in attempts)
        found = [(f"{key}:{name}", f"{count:,}") for name, count in counts.most_common() if value in name.lower()]
        return [(clean_line(way, 80), count) for way, count in found if " " not in way and not way.endswith(":")]
