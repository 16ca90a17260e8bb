"""Who taught a memory, and whether agents are shown it (docs/decisions/0033).

A *person* is at the console, or at a command line that no agent's client started. An *agent* is whoever a client
started: its words wait until a person, or a rule of a person, accepts them. An *attempt* is a lesson of DDx's evidence.
An *import* was in a store that was there before memories said who taught them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Literal, get_args

from helix_tui.core.ground.processes.clients import started_by_client

Teacher = Literal["person", "agent", "attempt", "import"]

TEACHERS: tuple[Teacher, ...] = get_args(Teacher)

TAUGHT_BY: Mapping[Teacher, str] = {
    "person": "taught by a person",
    "agent": "taught by an agent",
    "attempt": "taught by an attempt",
    "import": "imported",
}
"""The teacher in words."""

ACCEPTED_AT_ONCE: frozenset[Teacher] = frozenset({"person", "attempt", "import"})
"""Teachers whose memories do not wait."""

AcceptRule = Literal["landed-after-refusal", "none", "failures", "patterns", "all"]
"""Which lessons are accepted without asking; a person sets it in the settings (`accept_lessons`)."""


def teacher_here(env: Mapping[str, str] | None = None) -> Teacher:
    """Who this process speaks for: an agent if a client started it, else a person."""
    return "agent" if started_by_client(os.environ if env is None else env) else "person"


def text_digest(name: str, trigger: str, resolution: str) -> str:
    """What was taught, to tell whether another program has changed it since."""
    return hashlib.sha256("\0".join((name, trigger, resolution)).encode("utf-8", "replace")).hexdigest()[:32]


def teacher_of(value: object) -> Teacher:
    """A stored teacher; a row that another program wrote names none, and that program is an agent's."""
    return next((teacher for teacher in TEACHERS if teacher == value), "agent")
